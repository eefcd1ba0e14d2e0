/* test_bulk.c: datasets and groups that are written as bytes, read and changed by HDF5. */
#include "capture/file/bulk.h"
#include "capture/file/h5.h"
#include "libref/plan/plan.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/vn-bulk-XXXXXX";

static const vn_shape      shape = { 2, { 2, 3 } };
static const unsigned char f32[20] = { 0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0 };

/* Names of 3 to 127 bytes. */
static const char *name_of(size_t i, char name[VN_NAME_MAX])
{
	snprintf(name, VN_NAME_MAX, "t%zu.%0*d", i, (int)(i * 31 % 90) + 1, 7);
	return name;
}

static void put_attributes(vn_bulk *b, size_t i)
{
	vn_bulk_put_int(b, "layer", -(int64_t)i);
	vn_bulk_put_real(b, "mean", (double)i / 3);
}

/* ---- making files ---------------------------------------------------------------------------- */

/* The place of numbers that another writes, as the store does with large ones. */
static int64_t written_by_another(vn_bulk *b, int fd, const float *numbers, size_t bytes)
{
	const int64_t at = vn_bulk_place(b, bytes);
	CU_ASSERT_EQUAL(pwrite(fd, numbers, bytes, (off_t)at), (ssize_t)bytes);
	return at;
}

/* A file with the group /g of n datasets; twice: the last has the name of the first. Returns the
 * address of the first object. */
static uint64_t make_file(size_t n, bool texts, bool twice, vn_status *st)
{
	const int     fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	vn_driver    *d = vn_driver_create(fd, path, 0);
	vn_bulk      *b = vn_bulk_create(fd, path, d);
	hid_t         how = H5Pcreate(H5P_FILE_ACCESS);
	vn_bulk_link *link = calloc(n + 1, sizeof *link);
	char(*name)[VN_NAME_MAX] = calloc(n + 1, sizeof *name);
	const char *given = NULL;
	vn_error    err = { "" };

	CU_ASSERT_FATAL(fd >= 0 && d && b && link && name);
	CU_ASSERT_FATAL(H5Pset_driver(how, (hid_t)vn_driver_id(), vn_driver_info(d)) >= 0);
	H5Pset_libver_bounds(how, H5F_LIBVER_V18, H5F_LIBVER_V18);
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, how);
	CU_ASSERT_FATAL(f >= 0 && H5Fflush(f, H5F_SCOPE_GLOBAL) >= 0 && vn_driver_publish(d, &err) == VN_OK);
	vn_driver_hold(d);
	for (size_t i = 0; i < n; i++) {
		const float   numbers[6] = { (float)i, 2, 3, 4, 5, 6 };
		const int64_t at = i % 3 ? vn_bulk_numbers(b, numbers, sizeof numbers)
		                         : written_by_another(b, fd, numbers, sizeof numbers);
		vn_bulk_begin_dataset(b, &shape, f32, sizeof f32, at, sizeof numbers);
		put_attributes(b, i);
		if (texts)
			vn_bulk_put_text(b, "axes", name_of(i, name[i]));
		link[i] = (vn_bulk_link) { .name = name_of(twice && i + 1 == n ? 0 : i, name[i]),
			                       .address = vn_bulk_end_dataset(b) };
	}
	const uint64_t first = n ? link[0].address : 0;
	vn_bulk_begin_group(b, true);
	vn_bulk_put_int(b, "rows", (int64_t)n);
	const uint64_t group = vn_bulk_end_group(b, link, n, &given);
	CU_ASSERT_EQUAL(given != NULL, twice);
	*st = vn_bulk_end(b, &err);
	hid_t g = *st ? H5I_INVALID_HID : H5Oopen_by_addr(f, group);
	if (!*st)
		CU_ASSERT_TRUE(g >= 0 && H5Olink(g, f, "g", H5P_DEFAULT, H5P_DEFAULT) >= 0);
	vn_h5_close(g);
	vn_driver_release(d);
	CU_ASSERT_TRUE(H5Fclose(f) >= 0);
	CU_ASSERT_EQUAL(vn_driver_publish(d, &err), VN_OK);
	H5Pclose(how);
	vn_bulk_destroy(b);
	vn_driver_destroy(d);
	close(fd);
	free(name);
	free(link);
	return first;
}

/* ---- reading them ---------------------------------------------------------------------------- */

static bool read_attribute(hid_t o, const char *key, hid_t type, void *to)
{
	hid_t      a = H5Aexists(o, key) > 0 ? H5Aopen(o, key, H5P_DEFAULT) : H5I_INVALID_HID;
	const bool good = a >= 0 && H5Aread(a, type, to) >= 0;
	vn_h5_close(a);
	return good;
}

/* Whether dataset i of the group is as it was made; numbers: its numbers, too. */
static bool is_whole(hid_t g, size_t i, bool numbers)
{
	char    name[VN_NAME_MAX];
	float   x[6] = { 0 };
	double  mean = -1;
	int64_t layer = 1;
	hid_t   d = H5Dopen2(g, name_of(i, name), H5P_DEFAULT), space = d >= 0 ? H5Dget_space(d) : H5I_INVALID_HID;
	bool    good = d >= 0 && H5Sget_simple_extent_npoints(space) == 6 && H5Sget_simple_extent_ndims(space) == 2 &&
	            read_attribute(d, "layer", H5T_NATIVE_INT64, &layer) && layer == -(int64_t)i &&
	            read_attribute(d, "mean", H5T_NATIVE_DOUBLE, &mean) && fabs(mean - (double)i / 3) < 1e-9 &&
	            (!numbers || (H5Dread(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0 &&
	                          (size_t)x[0] == i && (int)x[5] == 6));
	vn_h5_close(space);
	vn_h5_close(d);
	return good;
}

static hsize_t links_of(hid_t g)
{
	H5G_info_t info = { 0 };
	return H5Gget_info(g, &info) >= 0 ? info.nlinks : HSIZE_UNDEF;
}

typedef struct sorted {
	size_t n;
	char   last[VN_NAME_MAX];
} sorted;

static herr_t count_sorted(hid_t g, const char *name, const H5L_info_t *l, void *ctx)
{
	sorted *s = ctx;
	(void)g, (void)l;
	CU_ASSERT_TRUE(strcmp(s->last, name) < 0);
	snprintf(s->last, sizeof s->last, "%s", name);
	s->n++;
	return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Around the sizes at which links leave the header, blocks of the heap become larger and more, and
 * the index gets another level (45, 1149 and 26449 links). */
static void a_group_of_any_size_is_read(void)
{
	static const size_t size[] = { 0, 1, 32, 33, 45, 46, 800, 1149, 1150, 1151, 26449, 26450 };
	vn_status           st;

	for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
		H5O_info_t info;
		sorted     s = { 0 };
		size_t     good = 0;
		int64_t    rows = -1;

		make_file(size[k], size[k] < 100, false, &st);
		CU_ASSERT_EQUAL(st, VN_OK);
		hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), g = H5Gopen2(f, "g", H5P_DEFAULT);
		CU_ASSERT_FATAL(g >= 0);
		CU_ASSERT_EQUAL(links_of(g), size[k]);
		CU_ASSERT_TRUE(H5Oget_info2(g, &info, H5O_INFO_BASIC) >= 0 && info.rc == 1);
		CU_ASSERT_TRUE(read_attribute(g, "rows", H5T_NATIVE_INT64, &rows) && rows == (int64_t)size[k]);
		for (size_t i = 0; i < size[k]; i++)
			good += is_whole(g, i, true);
		CU_ASSERT_EQUAL(good, size[k]);
		CU_ASSERT_EQUAL(H5Lexists(g, "t1.8", H5P_DEFAULT), 0);
		CU_ASSERT_TRUE(H5Literate(g, H5_INDEX_NAME, H5_ITER_INC, NULL, count_sorted, &s) >= 0);
		CU_ASSERT_EQUAL(s.n, size[k]);
		H5Gclose(g);
		H5Fclose(f);
	}
}

static void a_text_is_read(void)
{
	vn_status st;
	size_t    good = 0;
	hid_t     type = vn_h5_text_type();

	make_file(100, true, false, &st);
	hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), g = H5Gopen2(f, "g", H5P_DEFAULT);
	for (size_t i = 0; i < 100; i++) {
		char  name[VN_NAME_MAX], *text = NULL;
		hid_t d = H5Dopen2(g, name_of(i, name), H5P_DEFAULT);
		good += read_attribute(d, "axes", type, &text) && strcmp(text, name) == 0;
		H5free_memory(text);
		H5Dclose(d);
	}
	CU_ASSERT_EQUAL(good, 100);
	H5Tclose(type);
	H5Gclose(g);
	H5Fclose(f);
}

/* Links and attributes of each kind are added and removed, as h5py would. */
static void hdf5_changes_what_was_written(void)
{
	static const size_t size[] = { 5, 40, 3000 };
	enum { ADDED = 2500 };
	vn_status st;
	char      name[VN_NAME_MAX];

	for (size_t k = 0; k < 3; k++) {
		const size_t n = size[k];
		size_t       good = 0, left = 0;
		make_file(n, true, false, &st);
		hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), g = H5Gopen2(f, "g", H5P_DEFAULT);
		for (size_t i = 0; i < ADDED; i++) {
			snprintf(name, sizeof name, "new%zu", i);
			good += H5Lcreate_soft("t0.7", g, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
		}
		for (size_t i = 0; i < n; i += 3)
			good += H5Ldelete(g, name_of(i, name), H5P_DEFAULT) >= 0;
		hid_t d = H5Dopen2(g, name_of(1, name), H5P_DEFAULT);
		for (char a = 'a'; a <= 'z'; a++)
			CU_ASSERT_TRUE(vn_h5_put_int(d, (char[]) { a, 0 }, a));
		CU_ASSERT_TRUE(vn_h5_put_text(g, "note", "changed"));
		H5Dclose(d);
		H5Gclose(g);
		CU_ASSERT_TRUE(H5Fclose(f) >= 0);
		f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), g = H5Gopen2(f, "g", H5P_DEFAULT);
		for (size_t i = 0; i < n; i++) {
			const bool there = H5Lexists(g, name_of(i, name), H5P_DEFAULT) > 0;
			CU_ASSERT_EQUAL(there, i % 3 != 0);
			left += there && is_whole(g, i, true);
		}
		for (size_t i = 0; i < ADDED; i++) {
			snprintf(name, sizeof name, "new%zu", i);
			good += H5Lexists(g, name, H5P_DEFAULT) > 0;
		}
		CU_ASSERT_EQUAL(good, 2 * ADDED + (n + 2) / 3);
		CU_ASSERT_EQUAL(left, n - (n + 2) / 3);
		CU_ASSERT_EQUAL(links_of(g), ADDED + left);
		H5Gclose(g);
		H5Fclose(f);
	}
}

/* The header of a dataset, to the byte. */
static void a_header_is_what_hdf5_writes(void)
{
	enum { HEADER = 256, LAYOUT_AT = 12 + 40 + 24 + 6 + 4 + 2 };
	unsigned char ours[HEADER], theirs[HEADER];
	vn_status     st;
	H5O_info_t    info;
	const int64_t at = (int64_t)make_file(1, false, false, &st);
	int           fd = open(path, O_RDONLY);

	CU_ASSERT_EQUAL(pread(fd, ours, HEADER, at), HEADER);
	close(fd);
	hid_t how = H5Pcreate(H5P_FILE_ACCESS), dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hid_t space = H5Screate_simple(2, (hsize_t[]) { 2, 3 }, NULL);
	H5Pset_libver_bounds(how, H5F_LIBVER_V18, H5F_LIBVER_V18);
	H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
	H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER);
	H5Pset_obj_track_times(dcpl, false);
	H5Pset_attr_phase_change(dcpl, 64, 0);
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, how);
	hid_t d = H5Dcreate2(f, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	CU_ASSERT_TRUE(vn_h5_put_int(d, "layer", 0) && vn_h5_put_real(d, "mean", 0));
	CU_ASSERT_TRUE(H5Oget_info2(d, &info, H5O_INFO_BASIC | H5O_INFO_HDR) >= 0);
	H5Dclose(d);
	H5Fclose(f);
	H5Sclose(space);
	H5Pclose(dcpl);
	H5Pclose(how);
	fd = open(path, O_RDONLY);
	CU_ASSERT_EQUAL(pread(fd, theirs, HEADER, (off_t)info.addr), HEADER);
	close(fd);
	/* Theirs may have room left at its end; size and checksum differ then. */
	const size_t n = (size_t)ours[10] + 12;
	CU_ASSERT_TRUE(n < HEADER && info.hdr.nmesgs >= 7);
	memset(ours + 10, 0, 2), memset(theirs + 10, 0, 2);
	memset(ours + LAYOUT_AT, 0, 8), memset(theirs + LAYOUT_AT, 0, 8);
	CU_ASSERT_EQUAL(memcmp(ours, theirs, n), 0);
}

static void a_name_given_twice_is_told_of(void)
{
	vn_status st;
	make_file(20, false, true, &st);
	make_file(2000, false, true, &st);
}

/* Every structure has a checksum: no changed byte becomes another name or attribute. */
static void a_changed_byte_is_found(void)
{
	enum { N = 60 };
	vn_status      st;
	size_t         refused = 0, changed = 0;
	const uint64_t from = make_file(N, false, false, &st);
	int            fd = open(path, O_RDWR);
	const off_t    end = lseek(fd, 0, SEEK_END);

	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	for (off_t at = (off_t)from; at < end; at += 37) {
		unsigned char x;
		CU_ASSERT_EQUAL(pread(fd, &x, 1, at), 1);
		x ^= 16;
		CU_ASSERT_EQUAL(pwrite(fd, &x, 1, at), 1);
		hid_t  f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), g = f >= 0 ? H5Gopen2(f, "g", H5P_DEFAULT) : f;
		size_t good = 0;
		for (size_t i = 0; g >= 0 && i < N; i++) {
			char       name[VN_NAME_MAX];
			const bool there = H5Oexists_by_name(g, name_of(i, name), H5P_DEFAULT) > 0;
			hid_t      d = there ? H5Dopen2(g, name, H5P_DEFAULT) : H5I_INVALID_HID;
			if (d >= 0) { /* if it is told as whole, it is */
				good++;
				changed += !is_whole(g, i, false);
			}
			vn_h5_close(d);
		}
		refused += good < N;
		vn_h5_close(g);
		vn_h5_close(f);
		x ^= 16;
		CU_ASSERT_EQUAL(pwrite(fd, &x, 1, at), 1);
	}
	close(fd);
	CU_ASSERT_EQUAL(changed, 0);
	CU_ASSERT_TRUE(refused > 100);
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(a_group_of_any_size_is_read),
		                           TEST(a_text_is_read),
		                           TEST(hdf5_changes_what_was_written),
		                           TEST(a_header_is_what_hdf5_writes),
		                           TEST(a_name_given_twice_is_told_of),
		                           TEST(a_changed_byte_is_found),
		                           CU_TEST_INFO_NULL };
	const int          fd = mkstemp(path);

	if (fd < 0) {
		perror(path);
		return 2;
	}
	close(fd);
	const int status = run_suite("bulk", tests);
	unlink(path);
	return status;
}
