/* test_verify.c: numbers against the digests that their file has of them
 * (capture/recording/verify.h), trouble of the system while they are read, and the processes that
 * read them. mmap and pread fail when they are told to. */
#include "capture/recording/derive.h"
#include "capture/recording/verify.h"
#include "capture/view/box.h"
#include "capture/view/residual.h"
#include "capture/view/view.h"
#include "compare/chapters/compare.h"
#include "compare/match/sides.h"
#include "tests/support/recording_help.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool maps_fail;

void *__real_mmap(void *at, size_t bytes, int may, int how, int fd, off_t from);
void *__wrap_mmap(void *at, size_t bytes, int may, int how, int fd, off_t from);
void *__wrap_mmap(void *at, size_t bytes, int may, int how, int fd, off_t from)
{
	if (maps_fail && fd >= 0) {
		errno = EIO;
		return MAP_FAILED;
	}
	return __real_mmap(at, bytes, may, how, fd, from);
}

static bool reads_fail;

ssize_t __real_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
	if (reads_fail) {
		errno = EIO;
		return -1;
	}
	return __real_pread(fd, to, n, at);
}

static int forks, accompanied; /* how many of them while there were other threads */

static int count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int  n = -2; /* . and .. */
	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
	forks++;
	accompanied += count_threads() > 1;
	return __real_fork();
}

/* ---- files ----------------------------------------------------------------------------------- */

static const float six[6] = { 1, 2, 3, 4, 5, 6 };
static const char  other[] = "0123456789abcdef0123456789abcdef";

static void sign(hid_t step, const char *name, const char *digest)
{
	hid_t d = H5Dopen2(step, name, H5P_DEFAULT);
	put_text(d, "digest", digest);
	H5Dclose(d);
}

static void put_packed(hid_t step, const char *name)
{
	hid_t how = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(how, 2, (hsize_t[]) { 1, 3 });
	H5Pset_deflate(how, 1);
	H5Dclose(put_data(step, name, H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, how, six));
	H5Pclose(how);
}

/* `good`, `bad` and `without` as they lie; `packed`, `packed_bad`;
 * `final_norm` is a second name of bad. */
static vn_recording *make_all(void)
{
	const vn_digest d = vn_digest_of(six, sizeof six);
	hid_t           step, f = make_file(&step);
	put_floats(step, "good");
	put_floats(step, "bad");
	put_packed(step, "packed");
	put_packed(step, "packed_bad");
	sign(step, "good", d.hex);
	sign(step, "packed", d.hex);
	sign(step, "bad", other);
	sign(step, "packed_bad", other);
	H5Lcreate_hard(step, "bad", step, "final_norm", H5P_DEFAULT, H5P_DEFAULT);
	close_file(f, step);
	return opens();
}

static int find_entry(const vn_recording *r, const char *name)
{
	const int i = vn_recording_find(r, 0, name);
	CU_ASSERT_TRUE_FATAL(i >= 0);
	return i;
}

static void has_read(const vn_recording *r, int64_t checked, int64_t wrong, int64_t without)
{
	vn_verified v = { 0 };
	vn_recording_verified(r, &v);
	CU_ASSERT_EQUAL(v.checked, checked);
	CU_ASSERT_EQUAL(v.wrong, wrong);
	CU_ASSERT_EQUAL(v.without, without);
}

static vn_status all_of(vn_recording *r, const char *name)
{
	const void     *data;
	vn_error        err = { "" };
	const vn_status st = vn_recording_data(r, find_entry(r, name), &data, &err);
	vn_recording_release(r, find_entry(r, name));
	if (st == VN_ERR_DAMAGED)
		CU_ASSERT_TRUE(strstr(err.text, path) && strstr(err.text, "step 0: ") &&
		               strstr(err.text, "do not match its digest (written 0123"));
	return st;
}

static vn_status a_part_of(vn_recording *r, const char *name)
{
	float x;
	return vn_recording_read(r, find_entry(r, name), 5, 1, &x, NULL);
}

/* ---- what is handed out ---------------------------------------------------------------------- */

static void numbers_that_contradict_their_digest_are_not_handed_out(void)
{
	vn_recording *r = make_all();
	has_read(r, 0, 0, 0);
	CU_ASSERT_EQUAL(all_of(r, "good"), VN_OK);
	CU_ASSERT_EQUAL(all_of(r, "packed"), VN_OK);
	CU_ASSERT_EQUAL(all_of(r, "embed"), VN_OK);
	has_read(r, 2, 0, 1);
	CU_ASSERT_EQUAL(all_of(r, "bad"), VN_ERR_DAMAGED);
	CU_ASSERT_EQUAL(all_of(r, "packed_bad"), VN_ERR_DAMAGED);
	has_read(r, 2, 2, 1);
	CU_ASSERT_EQUAL(all_of(r, "final_norm"), VN_ERR_DAMAGED); /* the same tensor */
	has_read(r, 2, 2, 1);
	vn_recording_close(r);
}

static void a_part_is_handed_out_when_all_of_the_tensor_holds(void)
{
	vn_recording *r = make_all();
	CU_ASSERT_EQUAL(a_part_of(r, "good"), VN_OK);
	CU_ASSERT_EQUAL(a_part_of(r, "packed"), VN_OK);
	CU_ASSERT_EQUAL(a_part_of(r, "bad"), VN_ERR_DAMAGED);
	CU_ASSERT_EQUAL(a_part_of(r, "packed_bad"), VN_ERR_DAMAGED);
	has_read(r, 2, 2, 0);
	vn_recording_close(r);
}

static void a_view_is_of_the_tensor_as_it_is_stored(void)
{
	const int     exchanged[VN_MAX_RANK] = { 1, 0 };
	vn_recording *r = make_all();
	vn_view_axes(r, find_entry(r, "good"), exchanged);
	vn_view_axes(r, find_entry(r, "bad"), exchanged);
	CU_ASSERT_EQUAL(all_of(r, "good"), VN_OK);
	CU_ASSERT_EQUAL(all_of(r, "bad"), VN_ERR_DAMAGED);
	CU_ASSERT_EQUAL(a_part_of(r, "bad"), VN_ERR_DAMAGED);
	has_read(r, 1, 1, 0);
	vn_recording_close(r);
}

static void what_is_gathered_is_checked_where_it_comes_from(void)
{
	vn_recording *base = make_all(), *r;
	vn_piece piece[2] = { vn_box_whole(0, find_entry(base, "good"), vn_recording_entry(base, find_entry(base, "good"))),
		                  vn_box_whole(0, find_entry(base, "bad"), vn_recording_entry(base, find_entry(base, "bad"))) };
	vn_entry e = *vn_recording_entry(base, find_entry(base, "good"));
	CU_ASSERT_EQUAL_FATAL(vn_derive(path, &base, 1, &r, NULL), VN_OK);
	e.name = "kept";
	CU_ASSERT_EQUAL(vn_derive_keep(r, &e, 0, piece[0].entry, NULL), VN_OK);
	e.name = "two";
	e.shape.dim[0] = 4;
	piece[1].to[0] = 2;
	CU_ASSERT_EQUAL(vn_derive_add(r, &e, piece, 2, VN_JOIN_PLACED, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_derive_end(r, NULL), VN_OK);

	float x[12];
	CU_ASSERT_EQUAL(a_part_of(r, "kept"), VN_OK);
	has_read(r, 1, 0, 0);
	CU_ASSERT_EQUAL(vn_recording_read(r, find_entry(r, "two"), 0, 12, x, NULL), VN_ERR_DAMAGED);
	has_read(r, 1, 1, 0); /* good is not counted again */
	vn_recording_allow_damage(r);
	CU_ASSERT_EQUAL(vn_recording_read(r, find_entry(r, "two"), 0, 12, x, NULL), VN_OK);
	CU_ASSERT_EQUAL(x[11], 6);
	has_read(r, 1, 1, 0);
	vn_recording_close(r);
}

static void count_words(void *context, const char *words)
{
	int *n = context;
	CU_ASSERT_PTR_NOT_NULL(strstr(words, "found "));
	++*n;
}

static void whoever_opened_it_may_allow_it(void)
{
	vn_recording *r = make_all();
	int           n = 0;
	vn_recording_allow_damage(r);
	CU_ASSERT_EQUAL(all_of(r, "bad"), VN_OK);
	CU_ASSERT_EQUAL(all_of(r, "packed_bad"), VN_OK);
	has_read(r, 0, 2, 0);
	vn_recording_wrong(r, count_words, &n);
	CU_ASSERT_EQUAL(n, 2);
	vn_recording_close(r);
}

static void show_learns_the_digest_that_it_has(void)
{
	const vn_digest d = vn_digest_of(six, sizeof six);
	vn_recording   *r = make_all();
	vn_digest       found;
	CU_ASSERT_EQUAL(vn_recording_found(r, find_entry(r, "bad"), &found, NULL), VN_OK);
	CU_ASSERT_STRING_EQUAL(found.hex, d.hex);
	CU_ASSERT_EQUAL(vn_recording_found(r, find_entry(r, "good"), &found, NULL), VN_OK);
	CU_ASSERT_STRING_EQUAL(found.hex, "");
	vn_recording_close(r);
}

static void an_empty_digest_is_not_none(void)
{
	hid_t step, f = make_file(&step);
	sign(step, "embed", "");
	close_file(f, step);
	is_refused("embed", "attribute digest is empty");
	f = make_file(&step);
	sign(step, "embed", "0123456789abcdef0123456789abcdeg");
	close_file(f, step);
	is_refused("embed", "digest");
}

/* ---- on credit ------------------------------------------------------------------------------- */

static void a_borrower_takes_the_digest(void)
{
	const vn_digest d = vn_digest_of(six, sizeof six);
	vn_recording   *r = make_all();
	const void     *data;
	bool            unchecked;
	CU_ASSERT_EQUAL(vn_recording_lend(r, find_entry(r, "bad"), &data, &unchecked, NULL), VN_OK);
	CU_ASSERT_TRUE(unchecked);
	CU_ASSERT_EQUAL(memcmp(data, six, sizeof six), 0);
	CU_ASSERT_EQUAL(vn_recording_lend(r, find_entry(r, "final_norm"), &data, &unchecked, NULL), VN_OK);
	CU_ASSERT_FALSE(unchecked); /* once is enough */
	has_read(r, 0, 0, 0);
	vn_recording_vouch(r, find_entry(r, "bad"), &d);
	has_read(r, 0, 1, 0);
	CU_ASSERT_EQUAL(vn_recording_lend(r, find_entry(r, "bad"), &data, &unchecked, NULL), VN_ERR_DAMAGED);
	CU_ASSERT_EQUAL(vn_recording_lend(r, find_entry(r, "packed_bad"), &data, &unchecked, NULL),
	                VN_ERR_DAMAGED); /* it is read as a whole: checked at once */
	CU_ASSERT_EQUAL(vn_recording_lend(r, find_entry(r, "embed"), &data, &unchecked, NULL), VN_OK);
	CU_ASSERT_FALSE(unchecked); /* nothing to check it by */
	vn_recording_close(r);
}

static void what_nobody_vouched_for_is_checked_at_last(void)
{
	vn_recording *r = make_all();
	const void   *data;
	bool          unchecked;
	CU_ASSERT_EQUAL(vn_recording_lend(r, find_entry(r, "bad"), &data, &unchecked, NULL), VN_OK);
	vn_recording_defer(r, true);
	CU_ASSERT_EQUAL(a_part_of(r, "good"), VN_OK);
	vn_recording_defer(r, false);
	has_read(r, 0, 0, 0);
	CU_ASSERT_EQUAL(vn_recording_verify(r, NULL), VN_OK);
	has_read(r, 1, 1, 0);
	vn_recording_close(r);
}

static void a_look_before_leaves_the_digest_to_the_borrower(void)
{
	vn_recording *r = make_all();
	const void   *data;
	bool          unchecked;
	vn_recording_defer(r, true);
	CU_ASSERT_EQUAL(a_part_of(r, "bad"), VN_OK);
	vn_recording_defer(r, false);
	CU_ASSERT_EQUAL(vn_recording_lend(r, find_entry(r, "bad"), &data, &unchecked, NULL), VN_OK);
	CU_ASSERT_TRUE(unchecked);
	vn_recording_close(r);
}

/* Rows of several units, and of one; heads before tokens; the last unit shorter;
 * one thread and more. */
static void the_pass_takes_the_digest_of_the_bytes_in_their_order(void)
{
	static const struct {
		vn_shape    shape;
		const char *axes;
	} as[] = {
		{ { 2, { 1024, 300 } }, "token hidden" },
		{ { 3, { 3, 700, 90 } }, "head token key" },
		{ { 1, { 200001 } }, "" },
		{ { 2, { 3, 2 } }, "token hidden" },
	};
	for (size_t k = 0; k < sizeof as / sizeof *as; k++)
		for (int threads = 1; threads <= 4; threads++) {
			const size_t n = (size_t)vn_shape_count(&as[k].shape);
			float       *x = malloc(n * sizeof *x);
			uint16_t    *y = malloc(n * sizeof *y);
			vn_job       job = { .ref = { .dtype = VN_F32, .shape = as[k].shape, .data = x },
				                 .cand = { .dtype = VN_F16, .shape = as[k].shape, .data = y },
				                 .axes = as[k].axes,
				                 .digest = { true, true } };
			CU_ASSERT_TRUE_FATAL(x && y);
			for (size_t i = 0; i < n; i++)
				x[i] = (float)(i % 1021) / 64, y[i] = (uint16_t)(i % 1009);
			CU_ASSERT_EQUAL(vn_measure_many(&job, 1, threads, NULL), VN_OK);
			CU_ASSERT_STRING_EQUAL(job.found[0].hex, vn_digest_of(x, n * sizeof *x).hex);
			CU_ASSERT_STRING_EQUAL(job.found[1].hex, vn_digest_of(y, n * sizeof *y).hex);
			free(x);
			free(y);
		}
}

/* Of several candidates each has the digits that it has alone, and the reference's
 * digest is taken once. */
static void jobs_of_one_reference_are_measured_as_each_alone(void)
{
	enum { CANDIDATES = 4, TOKENS = 301, WIDTH = 600, N = TOKENS * WIDTH };
	static float    x[N], y[CANDIDATES][N];
	static uint16_t half[N];
	for (int i = 0; i < N; i++) {
		x[i] = (float)(i % 1021 - 500) / 64;
		for (int k = 0; k < CANDIDATES; k++)
			y[k][i] = x[i] + (float)(i % (7 + k)) / 1024;
		half[i] = vn_f32_to_f16(y[1][i]);
	}
	for (int i = 0; i < N; i++) /* two thirds of the channels have few numbers, for this candidate alone */
		if (i % WIDTH < 400 && i / WIDTH % 16)
			y[2][i] = INFINITY;
	for (int threads = 1; threads <= 4; threads++) {
		vn_job together[CANDIDATES];
		for (int k = 0; k < CANDIDATES; k++)
			together[k] = (vn_job) {
				.ref = { .dtype = VN_F32, .shape = { 2, { TOKENS, WIDTH } }, .data = x },
				.cand = { .dtype = k == 1 ? VN_F16 : VN_F32,
				          .shape = { 2, { TOKENS, WIDTH } },
				          .data = k == 1 ? (void *)half : (void *)y[k] },
				.axes = "token vocab",
				.scores = true,
				.digest = { k == 0, true },
			};
		vn_job alone[CANDIDATES];
		memcpy(alone, together, sizeof alone);
		CU_ASSERT_EQUAL(vn_measure_many(together, CANDIDATES, threads, NULL), VN_OK);
		CU_ASSERT_STRING_EQUAL(together[0].found[0].hex, vn_digest_of(x, sizeof x).hex);
		for (int k = 0; k < CANDIDATES; k++) {
			CU_ASSERT_EQUAL(vn_measure_many(&alone[k], 1, 1, NULL), VN_OK);
			CU_ASSERT_EQUAL(memcmp(together[k].m.value, alone[k].m.value, sizeof alone[k].m.value), 0);
			CU_ASSERT_EQUAL(together[k].m.at, alone[k].m.at);
			CU_ASSERT_STRING_EQUAL(together[k].found[1].hex, alone[k].found[1].hex);
		}
	}
}

/* ---- one file twice -------------------------------------------------------------------------- */

static void a_file_given_twice_is_two_recordings(void)
{
	const char   *twice[] = { path, path };
	vn_recording *r[2];
	const void   *data;
	vn_recording_close(make_all());
	CU_ASSERT_EQUAL_FATAL(vn_recording_open_all(twice, 2, r, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_count(r[1]), vn_recording_count(r[0]));
	const int good = find_entry(r[0], "good"), bad = find_entry(r[0], "bad"), packed = find_entry(r[0], "packed");
	CU_ASSERT_TRUE(vn_recording_same_bytes(r[0], good, r[1], good));
	CU_ASSERT_FALSE(vn_recording_same_bytes(r[0], good, r[1], bad));
	CU_ASSERT_FALSE(vn_recording_same_bytes(r[0], packed, r[1], packed)); /* not mapped */
	CU_ASSERT_EQUAL(vn_recording_data(r[0], bad, &data, NULL), VN_ERR_DAMAGED);
	has_read(r[0], 0, 1, 0);
	has_read(r[1], 0, 0, 0);
	vn_recording_close(r[0]);
	for (int k = 0; k < 2; k++) { /* and again after it was unmapped */
		CU_ASSERT_EQUAL_FATAL(vn_recording_data(r[1], good, &data, NULL), VN_OK);
		CU_ASSERT_EQUAL(memcmp(data, six, sizeof six), 0);
		vn_recording_unmap(r[1]);
	}
	vn_recording_close(r[1]);
}

/* A few tensors that HDF5 reads; the second one that is asked for brings more of them. */
enum { MANY_PACKED = 6 };

static bool each_is_six(vn_recording *r, int from, int to)
{
	const void *data;
	bool        same = true;
	for (int i = from; i < to; i++) {
		const int entry = find_entry(r, (char[]) { 'o', 'w', 'n', (char)('0' + i), 0 });
		same = same && vn_recording_data(r, entry, &data, NULL) == VN_OK && memcmp(data, six, sizeof six) == 0;
		vn_recording_release(r, entry);
	}
	return same;
}

static void a_process_made_after_unmapping_reads_what_was_read_ahead(void)
{
	int           status = 0;
	char          name[8];
	hid_t         step, f = make_file(&step);
	vn_recording *r;
	for (int i = 0; i < MANY_PACKED; i++) {
		snprintf(name, sizeof name, "own%d", i);
		put_packed(step, name);
	}
	close_file(f, step);
	r = opens();
	CU_ASSERT_TRUE(each_is_six(r, 0, 2));
	vn_recording_unmap(r);
	const pid_t child = fork();
	if (child == 0)
		_exit(each_is_six(r, 2, MANY_PACKED) ? 0 : 1);
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_TRUE(each_is_six(r, 0, MANY_PACKED));
	vn_recording_close(r);
}

/* ---- trouble --------------------------------------------------------------------------------- */

static void a_map_or_a_read_that_the_system_refuses_is_trouble(void)
{
	vn_recording *r = make_all();
	const int     good = vn_recording_find(r, 0, "good");
	const vn_term term[] = { { r, good }, { r, good }, { r, good } };
	vn_error      err = { "" };
	double        left;
	maps_fail = true;
	CU_ASSERT_EQUAL(all_of(r, "good"), VN_ERR_IO);
	maps_fail = false;
	reads_fail = true;
	CU_ASSERT_EQUAL(a_part_of(r, "good"), VN_ERR_IO);
	const vn_status st = a_part_of(
		r, "packed"); /* HDF5 reads in another process, which does not report what the system refused */
	CU_ASSERT(st == VN_ERR_IO || st == VN_ERR_NOMEM);
	CU_ASSERT_EQUAL(vn_residual_left(term, 3, &left, &err), VN_ERR_IO); /* not unknown: a name map decides by it */
	reads_fail = false;
	CU_ASSERT_EQUAL(vn_residual_left(term, 3, &left, &err), VN_OK);
	CU_ASSERT_EQUAL(left, 1);                     /* x - x - x */
	CU_ASSERT_EQUAL(a_part_of(r, "good"), VN_OK); /* no failure is kept */
	CU_ASSERT_EQUAL(a_part_of(r, "packed"), VN_OK);
	vn_recording_close(r);
}

static void a_file_that_changes_while_it_is_read_is_trouble(void)
{
	const struct timespec at[] = { { 1, 0 }, { 1, 0 } };
	vn_recording         *r = make_all();
	vn_error              err = { "" };
	CU_ASSERT_EQUAL(vn_recording_verify(r, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(utimensat(AT_FDCWD, path, at, 0), 0);
	CU_ASSERT_EQUAL(vn_recording_verify(r, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	vn_recording_close(r);
	r = opens();
	const int   fd = open(path, O_RDWR);
	struct stat was;
	char        byte;
	CU_ASSERT_FATAL(fd >= 0 && fstat(fd, &was) == 0 && pread(fd, &byte, 1, was.st_size - 1) == 1);
	usleep(20000); /* the kernel's clock of files ticks each 4 ms */
	CU_ASSERT_EQUAL_FATAL(pwrite(fd, &byte, 1, was.st_size - 1), 1);
	CU_ASSERT_EQUAL_FATAL(futimens(fd, (struct timespec[]) { was.st_atim, was.st_mtim }), 0); /* set back */
	close(fd);
	CU_ASSERT_EQUAL(vn_recording_verify(r, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "while it was read"));
	vn_recording_close(r);
	r = opens();
	CU_ASSERT_EQUAL_FATAL(truncate(path, 1 << 20), 0);
	CU_ASSERT_EQUAL(vn_recording_verify(r, &err), VN_ERR_IO);
	vn_recording_close(r);
}

static vn_status open_sides(vn_comparison *c, const char *ref, const char *cand, vn_error *err)
{
	const vn_sides s = { .ref = ref, .cand = &cand, .n_cand = 1, .batch_row = -1, .ref_batch_row = -1 };
	return vn_sides_open(&s, &c->opened, &c->result.remarks, err);
}

static void trouble_ends_a_comparison_and_is_no_finding(void)
{
	static const char        limits[] = "version: 1\ndefaults: { nmse: 1.0e-6 }\n";
	const vn_compare_options o = { .allow = VN_ALLOW_ITSELF | VN_ALLOW_DIGEST };
	for (int mapping = 0; mapping < 2; mapping++) {
		vn_comparison c = { .opened.request.options = &o };
		vn_error      err = { "" };
		vn_recording_close(make_all());
		CU_ASSERT_EQUAL_FATAL(open_sides(&c, path, path, &err), VN_OK);
		CU_ASSERT_EQUAL_FATAL(vn_limits_parse("limits", limits, sizeof limits - 1, &c.opened.request.limits, &err),
		                      VN_OK);
		maps_fail = mapping == 0;
		reads_fail = mapping == 1;
		CU_ASSERT_EQUAL(vn_compare(&c, &err), VN_ERR_IO);
		maps_fail = reads_fail = false;
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
		vn_comparison_close(&c);
	}
}

/* Fills a file with logits, and a tensor that is measured in parts: compressed. */
static void make_packed(const char *name, float first)
{
	enum { HEADS = 2, ROWS = 2, WIDTH = 1100000, VOCAB = 4 };
	const hsize_t parts[] = { HEADS, ROWS, WIDTH }, rows[] = { ROWS, VOCAB };
	const float   logits[ROWS * VOCAB] = { first, 2, 3, 4, 5, 6, 7, 8 };
	hid_t         step, f = make_file(&step), how = H5Pcreate(H5P_DATASET_CREATE), d;
	float        *x = calloc((size_t)HEADS * ROWS * WIDTH, sizeof *x);

	CU_ASSERT_PTR_NOT_NULL_FATAL(x);
	x[0] = first;
	H5Pset_chunk(how, 3, (hsize_t[]) { 1, ROWS, WIDTH });
	H5Pset_deflate(how, 1);
	d = put_data(step, "parts", H5T_IEEE_F32LE, 3, parts, how, x);
	put_text(d, "axes", "head token dim");
	H5Dclose(d);
	H5Pset_chunk(how, 2, rows);
	H5Dclose(put_data(step, "logits", H5T_IEEE_F32LE, 2, rows, how, logits));
	H5Pclose(how);
	close_file(f, step);
	CU_ASSERT_EQUAL(rename(path, name), 0);
	free(x);
}

/* It would inherit what the others had locked. */
static void no_process_is_made_beside_a_thread(void)
{
	static const char        limits[] = "version: 1\ndefaults: { nmse: 1.0e-6 }\n";
	const vn_compare_options o = { .threads = 3 };
	char                     name[2][sizeof path + 4];
	vn_comparison            c = { .opened.request.options = &o };
	vn_error                 err = { "" };

	for (int i = 0; i < 2; i++) {
		snprintf(name[i], sizeof name[i], "%s.%d", path, i);
		make_packed(name[i], i ? 100 : 1);
	}
	forks = accompanied = 0;
	CU_ASSERT_EQUAL_FATAL(open_sides(&c, name[0], name[1], &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_limits_parse("limits", limits, sizeof limits - 1, &c.opened.request.limits, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_compare(&c, &err), VN_OK);
	CU_ASSERT_EQUAL(c.result.verdict.n_fails, 2);
	CU_ASSERT_TRUE(forks >= 6); /* to open both; parts and logits of both */
	CU_ASSERT(accompanied == 0 || is_emulated());
	vn_comparison_close(&c);
	for (int i = 0; i < 2; i++)
		unlink(name[i]);
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(numbers_that_contradict_their_digest_are_not_handed_out),
		                           TEST(a_part_is_handed_out_when_all_of_the_tensor_holds),
		                           TEST(a_view_is_of_the_tensor_as_it_is_stored),
		                           TEST(what_is_gathered_is_checked_where_it_comes_from),
		                           TEST(whoever_opened_it_may_allow_it),
		                           TEST(show_learns_the_digest_that_it_has),
		                           TEST(an_empty_digest_is_not_none),
		                           TEST(a_borrower_takes_the_digest),
		                           TEST(what_nobody_vouched_for_is_checked_at_last),
		                           TEST(a_look_before_leaves_the_digest_to_the_borrower),
		                           TEST(the_pass_takes_the_digest_of_the_bytes_in_their_order),
		                           TEST(jobs_of_one_reference_are_measured_as_each_alone),
		                           TEST(a_file_given_twice_is_two_recordings),
		                           TEST(a_process_made_after_unmapping_reads_what_was_read_ahead),
		                           TEST(a_map_or_a_read_that_the_system_refuses_is_trouble),
		                           TEST(a_file_that_changes_while_it_is_read_is_trouble),
		                           TEST(trouble_ends_a_comparison_and_is_no_finding),
		                           TEST(no_process_is_made_beside_a_thread),
		                           CU_TEST_INFO_NULL };
	return run_recordings("verify", tests);
}
