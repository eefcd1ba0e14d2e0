/* test_scribe.c: the process that writes a checkpoint file: its messages and its sandbox
 * (test_sandbox.c tries each forbidden action). */
#include "capture/file/child.h"
#include "capture/recording/recording.h"
#include "capture/store/scribe.h"
#include "capture/store/store.h"
#include "libref/base/dtype.h"
#include "tests/support/counted.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/vn-scribe-XXXXXX", path[64];

/* ---- its calls, counted in both processes (--wrap) ------------------------------------------- */

static _Atomic long *calls; /* shared */

#define COUNT(type, name, parameters, arguments) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		if (calls) \
			(*calls)++; \
		return __real_##name arguments; \
	}
COUNT(ssize_t, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags))
COUNT(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
COUNT(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags))
COUNT(int, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))

static long  writes = -1; /* that the child makes before it ends; -1: it goes on */
static pid_t test;

ssize_t __real_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at)
{
	if (writes >= 0 && getpid() != test && writes-- == 0)
		_exit(1);
	return __real_pwrite(fd, from, n, at);
}

/* ---- helpers --------------------------------------------------------------------------------- */

static vn_place  place;
static vn_scribe scribe;

static vn_status create(bool whole)
{
	vn_error   err = { "" };
	vn_message m = { 0 };

	CU_ASSERT_EQUAL_FATAL(vn_place_open(&place, path, true, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_scribe_start(&scribe, &place, &err), VN_OK);
	vn_message_put_int(&m, 8);
	vn_message_put_int(&m, whole);
	return vn_scribe_do(&scribe, VN_SCRIBE_CREATE, &m, NULL, &err);
}

static void begin(void)
{
	CU_ASSERT_EQUAL_FATAL(create(false), VN_OK);
}

static void end(void)
{
	vn_scribe_end(&scribe);
	unlink(place.partial);
	vn_place_close(&place);
}

static vn_status begin_step(int number)
{
	vn_message m = { 0 };

	vn_message_put_int(&m, number);
	for (int i = 0; i < 4; i++)
		vn_message_put_int(&m, 0);
	return vn_scribe_do(&scribe, VN_SCRIBE_STEP, &m, NULL, NULL);
}

/* ---- the first moment ------------------------------------------------------------------------ */

/* Does it open, as a recording that holds nothing? */
static bool is_unfinished(const char *file)
{
	vn_error      err = { "" };
	vn_recording *r = NULL;
	const bool    opens = vn_recording_open(file, &r, &err) == VN_OK && !vn_recording_complete(r) &&
	                   vn_recording_count(r) == 0;

	if (!opens)
		fprintf(stderr, "%s\n", err.text);
	vn_recording_close(r);
	return opens;
}

static void a_file_is_empty_or_opens_before_each_of_its_first_writes(void)
{
	test = getpid();
	for (int whole = 0; whole < 2; whole++)
		for (long n = 0, done = 0; !done; n++) {
			struct stat left;
			writes = n;
			done = create(whole) == VN_OK;
			CU_ASSERT_EQUAL(stat(place.partial, &left), 0);
			CU_ASSERT(left.st_size == 0 || is_unfinished(place.partial));
			CU_ASSERT_EQUAL(left.st_size > 0, n > 0);
			writes = -1;
			end();
		}
}

/* ---- messages -------------------------------------------------------------------------------- */

static void a_message_is_a_call_at_each_end_and_so_is_its_answer(void)
{
	enum { MANY = 50 };

	begin();
	CU_ASSERT_EQUAL(begin_step(0), VN_OK);
	const long before = *calls;
	for (int i = 1; i <= MANY; i++)
		CU_ASSERT_EQUAL(begin_step(i), VN_OK);
	CU_ASSERT_TRUE(labs(*calls - before - 4 * MANY) <=
	               1); /* the child may be in its next recv already, now or before */
	end();
}

static void a_message_of_any_length_comes_whole(void)
{
	enum { MOST = 3 << 20 };
	char    *text = malloc(MOST);
	vn_error err;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	begin();
	for (size_t n = 4000; n < MOST;
	     n = n < 4200 ? n + 8 : 3 * n) { /* around what comes with the head, and beyond what a socket holds */
		vn_message m = { 0 };

		memset(text, 'x', n);
		vn_message_put_text(&m, NULL); /* which a name may not be; the text behind it is not looked at */
		vn_message_put_bytes(&m, text, n);
		err = (vn_error) { "" };
		CU_ASSERT_NOT_EQUAL(vn_scribe_do(&scribe, VN_SCRIBE_START, &m, NULL, &err), VN_OK);
		CU_ASSERT_PTR_NULL(strstr(err.text, "crashed"));
		CU_ASSERT_EQUAL(begin_step((int)n), VN_OK); /* it understands what comes next */
	}
	end();
	free(text);
}

/* A store sends them with their numbers and goes on before the answer comes: at most a call at each
 * end for the message and one for the answer, however slow this process is. */
static void a_small_tensor_takes_no_answer(void)
{
	enum { MANY = 2000 };
	const vn_shape shape = { 1, { 2 } };
	const float    numbers[2] = { 1, -2 };
	const int32_t  id = 7, position = 0;
	vn_facts       facts = { 0 };
	vn_store      *s = NULL;
	vn_error       err = { "" };

	CU_ASSERT_EQUAL_FATAL(vn_store_create_whole(path, true, &s, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_run(s, &facts, &id, &position, 1, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_step(s, &(vn_step) { 0, 0, 1, 0, 1 }, &err), VN_OK);
	const long before = *calls;
	for (int i = 0; i < MANY; i++) {
		vn_tensor_label l = { .order = -1, .layer = -1 };
		snprintf(l.name, sizeof l.name, "foreign.%d", i);
		CU_ASSERT_EQUAL(vn_store_begin(s, &l, VN_F32, &shape, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_store_write(s, numbers, 2, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_store_end(s, &err), VN_OK);
	}
	CU_ASSERT_EQUAL(vn_store_tensors(s, NULL), MANY);
	CU_ASSERT_TRUE(*calls - before <= 4 * MANY + 1);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	unlink(path);
}

/* Groups of a file that is written as a whole are made at the end of their step. */
static void a_tensor_named_as_a_group_is_refused_by_that_name(void)
{
	static const char *const name[][2] = { { "layer0.a", "layer0.a.b" }, { "layer0.a.b", "layer0.a" } };
	const vn_shape           shape = { 1, { 1 } };
	const int32_t            id = 7, position = 0;
	const float              number = 1;

	for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
		vn_facts  facts = { 0 };
		vn_store *s = NULL;
		vn_error  err = { "" };
		CU_ASSERT_EQUAL_FATAL(vn_store_create_whole(path, true, &s, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_store_run(s, &facts, &id, &position, 1, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_store_step(s, &(vn_step) { 0, 0, 1, 0, 1 }, &err), VN_OK);
		for (int i = 0; i < 2; i++) {
			vn_tensor_label l = { .order = -1, .layer = 0 };
			snprintf(l.name, sizeof l.name, "%s", name[k][i]);
			CU_ASSERT_EQUAL(vn_store_begin(s, &l, VN_F32, &shape, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_store_write(s, &number, 1, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_store_end(s, &err), VN_OK);
		}
		CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "layer0.a is a tensor, and others are named layer0.a.NAME"));
		vn_store_abandon(&s);
		unlink(path);
	}
}

static void a_scribe_that_is_killed_is_told_of(void)
{
	vn_error   err = { "" };
	vn_message m = { 0 };

	begin();
	kill(scribe.pid, SIGKILL);
	CU_ASSERT_EQUAL(vn_scribe_do(&scribe, VN_SCRIBE_CLOSE, &m, NULL, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "was killed, usually for lack of memory"));
	end();
}

/* ---- after a failure of HDF5 ----------------------------------------------------------------- */

/* A tensor of four zeros. */
static vn_status put_tensor(const char *name)
{
	vn_scribe_tensor t = { .dtype = VN_F32, .shape = { 1, { 4 } } };
	vn_message       start = { 0 }, finish = { 0 };

	snprintf(t.label.name, sizeof t.label.name, "%s", name);
	vn_message_put_bytes(&start, &t, sizeof t);
	CU_ASSERT_EQUAL_FATAL(vn_scribe_do(&scribe, VN_SCRIBE_START, &start, NULL, NULL), VN_OK);
	vn_message_put_bytes(&finish, &t, sizeof t);
	return vn_scribe_do(&scribe, VN_SCRIBE_FINISH, &finish, NULL, NULL);
}

static size_t read_partial(char *to, size_t most)
{
	FILE        *f = fopen(place.partial, "rb");
	const size_t n = f ? fread(to, 1, most, f) : 0;

	if (f)
		fclose(f);
	return n;
}

/* HDF5 keeps new objects in memory; a half-made object must not reach the disk. */
static void after_a_failure_of_hdf5_the_file_stays_as_it_was_published_last(void)
{
	static char before[1 << 20], after[1 << 20];
	vn_message  m = { 0 };
	int64_t     left = -1;

	begin();
	CU_ASSERT_EQUAL(begin_step(0), VN_OK);
	CU_ASSERT_EQUAL(put_tensor("embed"), VN_OK);
	CU_ASSERT_EQUAL(put_tensor("final_norm"), VN_OK);
	usleep(400000); /* in a silence, both are published */
	const size_t n = read_partial(before, sizeof before);
	CU_ASSERT(n > 0 && n < sizeof before);
	CU_ASSERT_EQUAL(put_tensor("no/such/group"), VN_ERR_IO); /* with all its attributes, but no name */
	vn_message_put_int(&m, false);
	CU_ASSERT_EQUAL(vn_scribe_do(&scribe, VN_SCRIBE_CLOSE, &m, &left, NULL), VN_OK);
	CU_ASSERT_EQUAL(left, 2);
	CU_ASSERT_EQUAL(read_partial(after, sizeof after), n);
	CU_ASSERT_EQUAL(memcmp(before, after, n), 0);
	end();
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

/* A line of /proc/PID/status. */
static bool says(const char *line)
{
	char name[64], got[256];
	bool found = false;

	snprintf(name, sizeof name, "/proc/%d/status", (int)scribe.pid);
	FILE *f = fopen(name, "re");
	while (f && fgets(got, sizeof got, f))
		found |= strncmp(got, line, strlen(line)) == 0;
	if (f)
		fclose(f);
	return found;
}

static void it_runs_in_a_sandbox(void)
{
	char     words[64];
	vn_error err;

	CU_ASSERT_EQUAL(vn_child_sandbox_gaps(words, sizeof words, &err), VN_OK);
	begin();
	CU_ASSERT_TRUE(says("NoNewPrivs:\t1"));
	CU_ASSERT_TRUE(strstr(words, "seccomp") != NULL || says("Seccomp:\t2"));
	end();
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(a_file_is_empty_or_opens_before_each_of_its_first_writes),
		                           TEST(a_message_is_a_call_at_each_end_and_so_is_its_answer),
		                           TEST(a_message_of_any_length_comes_whole),
		                           TEST(a_small_tensor_takes_no_answer),
		                           TEST(a_tensor_named_as_a_group_is_refused_by_that_name),
		                           TEST(a_scribe_that_is_killed_is_told_of),
		                           TEST(after_a_failure_of_hdf5_the_file_stays_as_it_was_published_last),
		                           TEST(it_runs_in_a_sandbox),
		                           CU_TEST_INFO_NULL };
	void              *shared = counted_map(sizeof *calls);

	if (shared == MAP_FAILED || !mkdtemp(dir)) {
		perror("test_scribe: cannot be prepared");
		return 2;
	}
	calls = shared;
	snprintf(path, sizeof path, "%s/r.h5", dir);
	const int status = run_suite("scribe", tests);
	rmdir(dir);
	return status;
}
