/* test_object_header.c: headers of datasets that HDF5 wrote, read without it. */
#include "capture/file/object_header.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/vn-header-XXXXXX";

typedef struct attributes {
	char    axes[16], op[8];
	int64_t order, nan;
	double  max;
} attributes;

static const vn_header_attribute list[] = {
	{ "axes", VN_ATTRIBUTE_TEXT, offsetof(attributes, axes), 16 },
	{ "op", VN_ATTRIBUTE_TEXT, offsetof(attributes, op), 8 },
	{ "order", VN_ATTRIBUTE_WHOLE, offsetof(attributes, order), 0 },
	{ "nan", VN_ATTRIBUTE_WHOLE, offsetof(attributes, nan), 0 },
	{ "max", VN_ATTRIBUTE_REAL, offsetof(attributes, max), 0 },
};
enum { N = sizeof list / sizeof *list, ALL = (1 << N) - 1 };

/* ---- making files ------------------------------------------------------------------------ */

static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };

static void put_attribute(hid_t o, const char *name, hid_t type, int n, const void *value)
{
	const hsize_t dim = (hsize_t)n;
	hid_t         space = n ? H5Screate_simple(1, &dim, NULL) : H5Screate(H5S_SCALAR);
	hid_t         a = H5Acreate2(o, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	CU_ASSERT_TRUE(a >= 0 && H5Awrite(a, type, value) >= 0);
	H5Aclose(a);
	H5Sclose(space);
}

static hid_t text_type(size_t size, bool utf8)
{
	hid_t t = H5Tcopy(H5T_C_S1);
	H5Tset_size(t, size);
	H5Tset_cset(t, utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII);
	return t;
}

static void put_text(hid_t o, const char *name, const char *text, bool utf8)
{
	hid_t t = text_type(H5T_VARIABLE, utf8);
	put_attribute(o, name, t, 0, &text);
	H5Tclose(t);
}

/* A file with a dataset of six numbers, open for attributes. */
static hid_t make_file(bool newer, hid_t dcpl, hid_t *dset)
{
	hid_t how = H5Pcreate(H5P_FILE_ACCESS), space = H5Screate_simple(2, (hsize_t[]) { 2, 3 }, NULL);
	if (newer)
		H5Pset_libver_bounds(how, H5F_LIBVER_V18, H5F_LIBVER_V18);
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, how);
	*dset = H5Dcreate2(f, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	CU_ASSERT_TRUE_FATAL(*dset >= 0 && H5Dwrite(*dset, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
	H5Sclose(space);
	H5Pclose(how);
	return f;
}

static uint64_t close_file(hid_t f, hid_t d)
{
	H5O_info_t info;
	CU_ASSERT_TRUE(H5Oget_info2(d, &info, H5O_INFO_BASIC) >= 0);
	H5Oclose(d);
	CU_ASSERT_TRUE(H5Fclose(f) >= 0);
	return info.addr;
}

static bool read_header(uint64_t at, attributes *to, vn_object_header *h)
{
	struct stat       st;
	vn_header_reader *r = calloc(1, sizeof *r);
	r->fd = open(path, O_RDONLY);
	CU_ASSERT_EQUAL(fstat(r->fd, &st), 0);
	r->bytes = st.st_size;
	const bool good = vn_object_header_read(r, at, list, N, to, h);
	close(r->fd);
	free(r);
	return good;
}

static void put_attributes(hid_t d)
{
	put_attribute(d, "order", H5T_STD_I64LE, 0, &(int64_t) { -7 });
	put_attribute(d, "nan", H5T_STD_I64LE, 0, &(int64_t) { INT64_MAX });
	put_attribute(d, "max", H5T_IEEE_F64LE, 0, &(double) { 0.1 });
	put_text(d, "axes", "token hidden", true);
	put_text(d, "op", "", false);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void is_read(bool newer)
{
	attributes       s = { .op = "?" };
	vn_object_header h;
	unsigned char    code[100];
	size_t           n = sizeof code;
	float            x[6];
	hid_t            d, f = make_file(newer, H5P_DEFAULT, &d);

	put_attributes(d);
	put_attribute(d, "of no interest", H5T_STD_I64LE, 0, &(int64_t) { 3 });
	CU_ASSERT_TRUE_FATAL(read_header(close_file(f, d), &s, &h));
	CU_ASSERT_EQUAL(h.found, ALL);
	CU_ASSERT_STRING_EQUAL(s.axes, "token hidden");
	CU_ASSERT_STRING_EQUAL(s.op, "");
	CU_ASSERT_EQUAL(s.order, -7);
	CU_ASSERT_EQUAL(s.nan, INT64_MAX);
	CU_ASSERT_EQUAL(s.max, 0.1);
	CU_ASSERT_TRUE(h.shape.rank == 2 && h.shape.dim[0] == 2 && h.shape.dim[1] == 3);
	CU_ASSERT_TRUE(H5Tencode(H5T_IEEE_F32LE, NULL, &n) >= 0 && H5Tencode(H5T_IEEE_F32LE, code, &n) >= 0);
	CU_ASSERT_EQUAL_FATAL(h.type_bytes, n - 2);
	CU_ASSERT_EQUAL(memcmp(h.type, code + 2, n - 2), 0);
	int fd = open(path, O_RDONLY);
	CU_ASSERT_EQUAL(pread(fd, x, sizeof x, (off_t)h.offset), sizeof x);
	CU_ASSERT_EQUAL(h.stored, sizeof x);
	CU_ASSERT_EQUAL(memcmp(x, numbers, sizeof x), 0);
	close(fd);

	f = make_file(newer, H5P_DEFAULT, &d); /* no attributes */
	CU_ASSERT_TRUE(read_header(close_file(f, d), &s, &h) && h.found == 0);
}

static void what_hdf5_wrote_is_read(void)
{
	is_read(false);
	is_read(true);
}

static void a_changed_byte_is_noticed(void)
{
	attributes       s;
	vn_object_header h;
	hid_t            d, f = make_file(true, H5P_DEFAULT, &d);
	int              noticed = 0;

	put_attributes(d);
	const uint64_t at = close_file(f, d);
	CU_ASSERT_TRUE(read_header(at, &s, &h));
	int fd = open(path, O_RDWR);
	for (off_t i = (off_t)at; i < (off_t)at + 250; i++) { /* the first piece of the header */
		unsigned char was, now;
		CU_ASSERT_EQUAL(pread(fd, &was, 1, i), 1);
		now = was ^ 0x10;
		CU_ASSERT_EQUAL(pwrite(fd, &now, 1, i), 1);
		noticed += !read_header(at, &s, &h);
		CU_ASSERT_EQUAL(pwrite(fd, &was, 1, i), 1);
	}
	CU_ASSERT_EQUAL(noticed, 250);
	CU_ASSERT_TRUE(read_header(at, &s, &h));
	for (off_t end = (off_t)at + 200; end > 0; end -= 37) {
		CU_ASSERT_EQUAL(ftruncate(fd, end), 0);
		CU_ASSERT_FALSE(read_header(at, &s, &h));
	}
	CU_ASSERT_FALSE(read_header(UINT64_MAX, &s, &h));
	close(fd);
}

static void is_left_to_hdf5(bool newer)
{
	attributes       s;
	vn_object_header h;
	hid_t d, f = make_file(newer, H5P_DEFAULT, &d), dcpl = H5Pcreate(H5P_DATASET_CREATE), t = text_type(5, true);

	put_attribute(d, "order", H5T_STD_I32LE, 0, &(int32_t) { 1 });
	CU_ASSERT_FALSE(read_header(close_file(f, d), &s, &h));
	f = make_file(newer, H5P_DEFAULT, &d);
	put_attribute(d, "max", H5T_IEEE_F64LE, 1, &(double) { 1 }); /* a list of one */
	CU_ASSERT_FALSE(read_header(close_file(f, d), &s, &h));
	f = make_file(newer, H5P_DEFAULT, &d);
	put_attribute(d, "of no interest", H5T_STD_I16BE, 2, (int16_t[]) { 1, 2 });
	CU_ASSERT_FALSE(read_header(close_file(f, d), &s, &h));
	f = make_file(newer, H5P_DEFAULT, &d);
	put_attribute(d, "axes", t, 0, "token");
	CU_ASSERT_FALSE(read_header(close_file(f, d), &s, &h));
	f = make_file(newer, H5P_DEFAULT, &d);
	put_text(d, "op", "12345678", true); /* one more than there is room for */
	CU_ASSERT_FALSE(read_header(close_file(f, d), &s, &h));
	f = make_file(newer, H5P_DEFAULT, &d);
	for (int i = 0; i < 12; i++) /* more than HDF5 keeps in a header of version 2 */
		put_attribute(d, (char[]) { (char)('a' + i), 0 }, H5T_STD_I64LE, 0, &(int64_t) { i });
	CU_ASSERT_EQUAL(read_header(close_file(f, d), &s, &h), !newer);
	H5Pset_chunk(dcpl, 2, (hsize_t[]) { 2, 3 });
	f = make_file(newer, dcpl, &d);
	CU_ASSERT_FALSE(read_header(close_file(f, d), &s, &h));
	f = make_file(newer, H5P_DEFAULT, &d);
	hid_t g = H5Gcreate2(f, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dclose(d);
	CU_ASSERT_FALSE(read_header(close_file(f, g), &s, &h)); /* a group */
	H5Pclose(dcpl);
	H5Tclose(t);
}

static void what_is_unusual_is_left_to_hdf5(void)
{
	is_left_to_hdf5(false);
	is_left_to_hdf5(true);
}

/* Where `what` is in the file; n bytes of it. */
static off_t find_bytes(int fd, const void *what, size_t n)
{
	static unsigned char all[1 << 16];
	const ssize_t        size = pread(fd, all, sizeof all, 0);
	const unsigned char *p = size > 0 ? memmem(all, (size_t)size, what, n) : NULL;
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	return p - all;
}

/* A header of version 1, which has no checksums, with one byte changed. */
static bool read_with(uint64_t at, int fd, off_t byte, unsigned char now)
{
	attributes       s;
	vn_object_header h;
	unsigned char    was;
	CU_ASSERT_TRUE(read_header(at, &s, &h));
	CU_ASSERT_EQUAL(pread(fd, &was, 1, byte), 1);
	CU_ASSERT_EQUAL(pwrite(fd, &now, 1, byte), 1);
	const bool good = read_header(at, &s, &h);
	CU_ASSERT_EQUAL(pwrite(fd, &was, 1, byte), 1);
	return good;
}

/* HDF5 refuses these files, or reads another string. */
static void what_hdf5_refuses_is_not_read(void)
{
	static const unsigned char layout[] = { 8, 0, 24, 0, 0 }, fill[] = { 5, 0, 8, 0 }, order[] = "order\0\0\0\x10\x08";
	hid_t                      d, f = make_file(false, H5P_DEFAULT, &d);

	put_text(d, "axes", "token", true);
	put_text(d, "op", "", true);
	put_attribute(d, "order", H5T_STD_I64LE, 0, &(int64_t) { 1 });
	const uint64_t at = close_file(f, d);
	const int      fd = open(path, O_RDWR);
	const off_t    heap = find_bytes(fd, "GCOL\1", 5);
	CU_ASSERT_FALSE(
		read_with(at, fd, find_bytes(fd, layout, sizeof layout) + 4, 0x60)); /* flags that exclude each other */
	CU_ASSERT_FALSE(read_with(at, fd, find_bytes(fd, layout, sizeof layout) + 4, 0x80)); /* one that is none */
	CU_ASSERT_FALSE(read_with(at, fd, find_bytes(fd, fill, sizeof fill) + 8, 9));        /* a version that is none */
	CU_ASSERT_FALSE(read_with(at, fd, find_bytes(fd, order, sizeof order - 1) - 4, 11)); /* the size of its datatype */
	CU_ASSERT_FALSE(
		read_with(at, fd, find_bytes(fd, order, sizeof order - 1) + 2, 0)); /* a name that ends before its end */
	CU_ASSERT_FALSE(read_with(at, fd, heap + 40, 1));                       /* a second object of number 1 */
	CU_ASSERT_FALSE(read_with(at, fd, heap + 40, 9));                       /* no object for an empty string */
	CU_ASSERT_FALSE(read_with(at, fd, heap + 24, 9)); /* an object that is longer than the string in it */
	CU_ASSERT_FALSE(read_with(at, fd, heap + 9, 8));  /* a collection that is too small for one */
	close(fd);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(what_hdf5_wrote_is_read),
		TEST(a_changed_byte_is_noticed),
		TEST(what_is_unusual_is_left_to_hdf5),
		TEST(what_hdf5_refuses_is_not_read),
		CU_TEST_INFO_NULL,
	};
	const int fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	const int failed = run_suite("object header", tests);
	unlink(path);
	return failed;
}
