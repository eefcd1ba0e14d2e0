/* test_store_trouble.c: the files left when writing a checkpoint file cannot begin or fails. */
#include "tests/support/store_help.h"

#include "libref/base/files.h"
#include "libref/base/sanitizer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void expect_refusal(const vn_plan *p, const char *to, bool force, const char *why)
{
	vn_store *s = NULL;
	vn_error  err = { 0 };
	CU_ASSERT_NOT_EQUAL(vn_store_create(to, force, p, &s, &err), VN_OK);
	CU_ASSERT_PTR_NULL(s);
	if (!strstr(err.text, why))
		fprintf(stderr, "expected '%s' in '%s'\n", why, err.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

static void bad_output_paths_are_refused_with_a_reason(void)
{
	vn_plan *p = make_plan();
	char     name[128];

	expect_refusal(p, dir, true, "is a directory");
	expect_refusal(p, "", true, "empty");
	expect_refusal(p, "/dev/null", true, "not a regular file");
	snprintf(name, sizeof name, "%s/none/x.h5", dir);
	expect_refusal(p, name, false, "No such file or directory");
	snprintf(name, sizeof name, "%s/", path);
	expect_refusal(p, name, false, "names a directory");
	CU_ASSERT_EQUAL(symlink("/etc/passwd", partial), 0);
	expect_refusal(p, path, false, "symbolic link");
	remove_files();
	vn_plan_destroy(p);
}

static void an_existing_file_is_replaced_by_force_alone(void)
{
	vn_plan *p = make_plan();
	vn_error err;
	int      fd = open(path, O_WRONLY | O_CREAT, 0600);

	CU_ASSERT_EQUAL(write(fd, "old", 3), 3);
	expect_refusal(p, path, false, "exists already");
	expect_refusal(p, path, true, "is not a recording");
	CU_ASSERT_EQUAL(pwrite(fd, "\x89HDF\r\n\x1a\n", 8, 0), 8); /* how one begins; no more of it is looked at */
	close(fd);
	vn_store *s = begin_store(p, true);
	CU_ASSERT_PTR_NULL(open_file(path)); /* still the old one */
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	CU_ASSERT_PTR_NOT_NULL(r);
	vn_recording_close(r);
	vn_plan_destroy(p);
	remove_files();
}

/* What is not the beginning of an incomplete recording is kept, as is what the command reads, or
 * has two names. */
static void a_partial_file_of_others_is_kept(void)
{
	vn_plan  *p = make_plan();
	vn_error  err;
	char      other[96];
	vn_store *s = begin_store(p, false);

	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	CU_ASSERT_EQUAL(rename(path, partial), 0); /* a complete one */
	expect_refusal(p, path, false, "is marked as complete");
	expect_refusal(p, path, true, "is marked as complete");
	vn_inputs_watch(true);
	vn_recording *r = open_file(partial);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	expect_refusal(p, path, false, "is read by this command");
	vn_recording_close(r);
	CU_ASSERT_EQUAL(rename(partial, path), 0);
	expect_refusal(p, path, true, "is read by this command");
	vn_inputs_watch(false);
	unlink(path);

	s = begin_store(p, false);
	vn_store_abandon(&s); /* has no tensor, so nothing is left */
	CU_ASSERT_FALSE(exists(partial));
	const int fd = open(partial, O_WRONLY | O_CREAT, 0600);
	snprintf(other, sizeof other, "%s.other", partial);
	CU_ASSERT_EQUAL(link(partial, other), 0);
	expect_refusal(p, path, false, "has another name, too");
	unlink(other);
	CU_ASSERT_EQUAL(write(fd, "old", 3), 3);
	expect_refusal(p, path, false, "is not what an interrupted run left");
	CU_ASSERT_EQUAL(ftruncate(fd, 0), 0); /* as a run leaves it that was killed at once */
	close(fd);
	s = begin_store(p, false);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_plan_destroy(p);
	remove_files();
}

static void a_file_that_appears_meanwhile_is_not_replaced(void)
{
	vn_plan  *p = make_plan();
	vn_store *s = begin_store(p, false);
	vn_error  err;

	close(open(path, O_WRONLY | O_CREAT, 0600));
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another program has created it in the meantime"));
	CU_ASSERT_TRUE(exists(partial));
	vn_plan_destroy(p);
	remove_files();
}

static void a_second_writer_is_refused(void)
{
	vn_plan  *p = make_plan();
	vn_store *s = begin_store(p, false);
	expect_refusal(p, path, true, "another process is writing it");
	vn_store_abandon(&s);
	s = begin_store(p, false);
	CU_ASSERT_PTR_NOT_NULL(s);
	vn_store_abandon(&s);
	vn_plan_destroy(p);
	remove_files();
}

/* Runs in a child, because the limit cannot be raised again. */
static void a_full_disk_is_an_error_and_what_was_whole_stays(void)
{
	pid_t child = fork();
	int   status;

	if (child == 0) {
		vn_plan      *p = make_plan();
		vn_store     *s = begin_store(p, false);
		struct rlimit most = { 300 << 10, 300 << 10 };
		float        *x = calloc(1 << 20, sizeof *x);
		vn_error      err = { 0 };
		signal(SIGXFSZ, SIG_DFL); /* create ignores it itself; a parent may have done so before */
		vn_store_abandon(&s);
		s = begin_store(p, false);
		setrlimit(RLIMIT_FSIZE, &most);
		put_tensor(s, 0, VN_F32, T, 200, x, &err);
		put_tensor(s, 2, VN_F32, T, 1 << 17, x, &err);
		vn_status st = vn_store_commit(&s, &err);
		_exit(st == VN_ERR_IO && strstr(err.text, "attn_norm") && strstr(err.text, "File too large") ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_FALSE(exists(path));
	vn_recording *r = open_file(partial);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_FALSE(vn_recording_complete(r));
	CU_ASSERT_TRUE(vn_recording_find(r, 0, "embed") >= 0);
	CU_ASSERT_EQUAL(vn_recording_count(r), 1);
	vn_recording_close(r);
	remove_files();
}

/* A sanitizer's run time needs terabytes of addresses, and ends the program without them. */
#ifndef VN_SANITIZED
/* With this much address space left, the result is a whole file or an error. Runs in a child,
 * because the limit cannot be raised again. */
static int write_with(rlim_t left)
{
	const pid_t child = fork();
	int         status;

	if (child == 0) {
		vn_plan      *p = make_plan();
		struct rlimit most = { 0 };
		float         x[T * D] = { 0 };
		long long     pages = 0;
		vn_error      err = { "" };
		FILE         *f = fopen("/proc/self/statm", "r");
		if (!f || fscanf(f, "%lld", &pages) != 1 || !freopen("/dev/null", "w", stderr))
			_exit(3);
		fclose(f);
		most.rlim_cur = most.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + left;
		setrlimit(RLIMIT_AS, &most);
		vn_store *s = begin_store(p, false);
		vn_status st = s ? VN_OK : VN_ERR_NOMEM;
		for (int v = 0; v < 8 && !st; v++)
			if (p->value[v].alias_of < 0)
				st = put_tensor(s, v, VN_F32, T, D, x, &err);
		if (!st)
			st = vn_store_commit(&s, &err);
		vn_store_abandon(&s);
		_exit(st ? 1 : 0);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}
#endif

static bool begun(const char *name);

/* What rewrites a file can be run again: half of it, of which HDF5 may have left
 * anything, is of no use. */
static void half_of_a_whole_file_is_removed(void)
{
	pid_t child = fork();
	int   status;

	if (child == 0) {
		struct rlimit   most = { 300 << 10, 300 << 10 };
		vn_tensor_label l = { .name = "embed", .order = -1, .layer = -1, .axes = "token" };
		vn_shape        shape = { 1, { 1 << 17 } };
		float          *x = calloc(1 << 17, sizeof *x);
		vn_store       *s = NULL;
		vn_error        err = { 0 };
		vn_status       st = vn_store_create_whole(path, false, &s, &err);

		setrlimit(RLIMIT_FSIZE, &most);
		for (int i = 0; !st && i < 2; i++) {
			snprintf(l.name, sizeof l.name, "t%d", i);
			if (!(st = vn_store_begin(s, &l, VN_F32, &shape, &err)) && !(st = vn_store_write(s, x, 1 << 17, &err)))
				st = vn_store_end(s, &err);
		}
		if (exists(partial) && (st = vn_store_commit(&s, &err)) == VN_OK)
			_exit(1);
		vn_store_abandon(&s);
		_exit(st == VN_ERR_IO ? 0 : 2);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_FALSE(exists(path));
	CU_ASSERT_FALSE(exists(partial));
	remove_files();
}

static void want_of_memory_is_an_error_and_what_was_whole_stays(void)
{
#ifndef VN_SANITIZED
	int written = 0, refused = 0;

	for (rlim_t left = 0; left < (rlim_t)96 << 20; left += (rlim_t)2 << 20) {
		const bool    good = write_with(left) == 0;
		vn_recording *r = good ? open_file(path) : begun(partial) ? open_file(partial) : NULL;
		CU_ASSERT_EQUAL(exists(path), good);
		if (good || begun(partial))
			CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		if (r)
			CU_ASSERT_EQUAL(vn_recording_complete(r), good);
		vn_recording_close(r);
		written += good;
		refused += !good;
		remove_files();
	}
	CU_ASSERT_TRUE(written > 0);
	CU_ASSERT_TRUE(refused > 0 || is_emulated());
#endif
}

static _Atomic size_t refused_bytes; /* the next realloc of so many fails */

void *__wrap_realloc(void *p, size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n)
{
	size_t wanted = n;
	return n && atomic_compare_exchange_strong(&refused_bytes, &wanted, 0) ? NULL : __real_realloc(p, n);
}

/* Small tensors wait in a message for others: one that found no memory is empty, and must not count
 * as none. */
static void a_small_tensor_without_memory_is_an_error(void)
{
	const float  x[T * D] = { 0 };
	const size_t first = 2 * sizeof(int64_t) + 1024; /* of a message's first piece: message.c */
	vn_plan     *p = make_plan();
	vn_store    *s = begin_store(p, false);
	vn_error     err = { 0 };
	const int    v = vn_plan_find(p, "layer1.attn_norm");

	refused_bytes = first;
	(void)(put_tensor(s, v, VN_F32, T, D, x, &err) || vn_store_commit(&s, &err));
	CU_ASSERT_EQUAL(refused_bytes, 0);
	CU_ASSERT_TRUE(strstr(err.text, "memory") != NULL);
	CU_ASSERT_FALSE(exists(path));
	vn_store_abandon(&s);
	vn_plan_destroy(p);
	remove_files();
}

/* The first words of a file are its signature, written last of the first things. */
static bool begun(const char *name)
{
	char  first[8] = "";
	FILE *f = fopen(name, "rb");
	bool  good = f && fread(first, 1, 8, f) == 8 && memcmp(first, "\211HDF\r\n\032\n", 8) == 0;

	if (f)
		fclose(f);
	return good;
}

/* A child writes steps as fast as it can, which go to disk ten times a second, and
 * is killed at a random moment: alone, so that the process which writes for it ends
 * by itself, or both at once. */
static void after_kill_9_the_partial_file_opens(void)
{
	enum { MOST = 20000 };
	int opened = 0, tensors = 0, decoded = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1); /* also waits for the child's own child */
	srand(1);
	for (int turn = 0; turn < 50; turn++) {
		vn_plan *p = make_plan();
		pid_t    child = fork();
		if (child == 0) {
			setpgid(0, 0);
			vn_store   *s = begin_decoding(p, MOST);
			const float x[T * D] = { 1 };
			bool        want[64];
			vn_error    err;
			memset(want, 1, sizeof want);
			for (int n = 0; n <= MOST; n++) {
				if (n)
					vn_store_token(s, T + n - 1, 1000 + n, &err);
				vn_store_step(s, &(vn_step) { n, n ? T + n - 1 : 0, n ? 1 : T, 0, n ? 1 : T }, &err);
				for (int v = 0; v < p->n_values; v++)
					if (p->value[v].alias_of < 0 && p->value[v].size[0] == VN_T)
						put_tensor(s, v, VN_F32, n ? 1 : T, D, x, &err);
				vn_store_aliases(s, want, &err);
			}
		}
		usleep((useconds_t)(rand() % 250000));
		if (turn % 2 || kill(-child, SIGKILL) != 0)
			kill(child, SIGKILL);
		while (wait(NULL) > 0)
			;
		vn_plan_destroy(p);
		struct stat   st;
		vn_error      err = { 0 };
		vn_recording *r = NULL;
		if (stat(partial, &st) != 0 || !begun(partial))
			continue; /* killed before its first word was whole */
		if (vn_recording_open(partial, &r, &err))
			fprintf(stderr, "turn %d: %s\n", turn, err.text);
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		CU_ASSERT_FALSE(vn_recording_complete(r));
		/* No tensor is there that is not whole. */
		for (int i = 0; i < vn_recording_count(r); i++) {
			const void     *data;
			const vn_entry *e = vn_recording_entry(r, i);
			CU_ASSERT_EQUAL(vn_recording_data(r, i, &data, &err), VN_OK);
			CU_ASSERT_STRING_EQUAL(vn_digest_of(data, (size_t)vn_shape_count(&e->shape) * 4).hex,
			                       vn_entry_digest(e).hex);
		}
		/* Every step has its token, and no token is made up. */
		const int32_t *id;
		const vn_step *step;
		const int64_t  n = vn_recording_tokens(r, &id, NULL);
		const int      steps = vn_recording_steps(r, &step);
		for (int64_t i = T; i < n; i++)
			CU_ASSERT_EQUAL(id[i], 1001 + i - T);
		CU_ASSERT_TRUE(steps == 0 || n >= T + steps - 1);
		decoded += steps > 1;
		opened++;
		tensors += vn_recording_count(r);
		vn_recording_close(r);
	}
	CU_ASSERT_TRUE(opened > 20 || is_emulated());
	CU_ASSERT_TRUE(tensors > 100 || is_emulated());
	CU_ASSERT_TRUE(decoded > 10 || is_emulated());
	remove_files();
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(bad_output_paths_are_refused_with_a_reason),
		TEST(an_existing_file_is_replaced_by_force_alone),
		TEST(a_partial_file_of_others_is_kept),
		TEST(a_file_that_appears_meanwhile_is_not_replaced),
		TEST(a_second_writer_is_refused),
		TEST(a_full_disk_is_an_error_and_what_was_whole_stays),
		TEST(half_of_a_whole_file_is_removed),
		TEST(want_of_memory_is_an_error_and_what_was_whole_stays),
		TEST(a_small_tensor_without_memory_is_an_error),
		TEST(after_kill_9_the_partial_file_opens),
		CU_TEST_INFO_NULL,
	};
	return run_store_suite("store_trouble", tests);
}
