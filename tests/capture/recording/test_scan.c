/* test_scan.c: the table of weights as a child reads it (capture/recording/scan.h), and what a
 * child reads where HDF5 gets no memory. HDF5's allocation functions are the ones below. */
#include "tests/support/counted.h"
#include "tests/support/recording_help.h"

#include "libref/base/sanitizer.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ---- a table of weights ---------------------------------------------------------------- */

enum { ROWS = 3 };

typedef struct row {
	char    name[12], dtype[4], shape[8];
	int16_t spare;
	float   min, max; /* max: big-endian in the file */
	double  mean;
	int32_t nan;
	int64_t inf; /* the last column */
} row;

static const row written[ROWS] = {
	{ "a.weight", "f32", "2x3", 7, -1.5f, 2.5f, 0.25, 1, 2 },
	{ "b.weight", "f16", "4", 7, -3, 8, 0.5, 0, 0 },
	{ "c.weight", "f64", "", 7, -0.125f, 64, 1, 3, 1000 },
};

/* A tensor whose bytes HDF5 has to change, with attributes. */
static void put_packed(hid_t in)
{
	const float x[6] = { 1, 2, 3, 4, 5, 6 };
	const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, (hsize_t[]) { 2, 3 }, NULL);

	H5Pset_chunk(dcpl, 2, (hsize_t[]) { 2, 2 });
	H5Pset_shuffle(dcpl);
	H5Pset_deflate(dcpl, 6);
	const hid_t d = H5Dcreate2(in, "packed", H5T_IEEE_F64BE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	CU_ASSERT_TRUE(H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
	put_text(d, "axes", "token hidden");
	put_attr(d, "order", H5T_STD_I16BE, (const int16_t[]) { 256 });
	H5Dclose(d);
	H5Sclose(space);
	H5Pclose(dcpl);
}

static hid_t text_of(size_t n)
{
	hid_t t = H5Tcopy(H5T_C_S1);
	H5Tset_size(t, n);
	return t;
}

#define COLUMN(table, field, of) H5Tinsert(table, #field, offsetof(row, field), of)

static void make_file_with_table(void)
{
	hid_t step, f = make_file(&step), model = H5Gcreate2(f, "model", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(row));
	hid_t text[] = { text_of(sizeof written->name), text_of(sizeof written->dtype), text_of(sizeof written->shape) };
	row   stored[ROWS];

	COLUMN(type, name, text[0]);
	COLUMN(type, dtype, text[1]);
	COLUMN(type, shape, text[2]);
	COLUMN(type, spare, H5T_NATIVE_INT16);
	COLUMN(type, min, H5T_IEEE_F32LE);
	COLUMN(type, max, H5T_IEEE_F32BE);
	COLUMN(type, mean, H5T_IEEE_F64LE);
	COLUMN(type, nan, H5T_STD_I32LE);
	COLUMN(type, inf, H5T_STD_I64LE);
	memcpy(stored, written, sizeof stored);
	for (int i = 0; i < ROWS; i++) {
		uint32_t word;
		memcpy(&word, &stored[i].max, sizeof word);
		word = __builtin_bswap32(word);
		memcpy(&stored[i].max, &word, sizeof word);
	}
	H5Dclose(put_data(model, "weights", type, 1, (hsize_t[]) { ROWS }, H5P_DEFAULT, stored));
	for (int i = 0; i < 3; i++)
		H5Tclose(text[i]);
	H5Tclose(type);
	H5Gclose(model);
	put_packed(step);
	close_file(f, step);
}

/* Returns the first row that differs; -1: none. */
static int wrong_row(const vn_recording *r)
{
	const vn_weight_row *w;
	if (vn_recording_weights(r, &w) != ROWS)
		return 0;
	for (int i = 0; i < ROWS; i++) {
		const row      *x = &written[i];
		const vn_stats *s = &w[i].stats;
		if (strcmp(w[i].name, x->name) != 0 || strcmp(vn_dtype_name(w[i].dtype), x->dtype) != 0 ||
		    s->min != (double)x->min || s->max != (double)x->max || s->mean != x->mean || !isnan(s->rms) ||
		    s->nan != x->nan || s->inf != x->inf || *w[i].digest.hex)
			return i;
	}
	return -1;
}

static void columns_of_any_width_and_order_of_bytes_are_read(void)
{
	make_file_with_table();
	vn_recording *r = opens();
	CU_ASSERT_EQUAL(wrong_row(r), -1);
	vn_recording_close(r);
}

/* HDF5 (1.10.8) does not check it. */
static void a_column_outside_its_row_is_refused(void)
{
	static const char last[8] = "inf";
	const uint32_t    far[] = { sizeof(row) - 7, sizeof(row), 1u << 20, UINT32_MAX - 7 };
	struct stat       st;

	if (newer) /* the header has a checksum, so HDF5 refuses it when a byte is changed */
		return;
	make_file_with_table();
	const int fd = open(path, O_RDWR);
	CU_ASSERT_EQUAL_FATAL(fstat(fd, &st), 0);
	char *data = malloc((size_t)st.st_size);
	CU_ASSERT_EQUAL_FATAL(read(fd, data, (size_t)st.st_size), st.st_size);
	const char *at = memmem(data, (size_t)st.st_size, last, sizeof last);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
		CU_ASSERT_EQUAL(pwrite(fd, &far[i], sizeof *far, at + sizeof last - data), sizeof *far);
		is_refused("/model/weights", "column inf cannot be read");
	}
	free(data);
	close(fd);
}

/* ---- without memory -------------------------------------------------------------------- */

#ifndef VN_SANITIZED /* a sanitizer has allocation functions of its own */
static struct requests {
	pid_t parent;
	long  seen, refused; /* those of a child's libraries so far; which is refused, from 1 on; 0: none */
} * requests;            /* shared with children */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *old, size_t n);

extern char __executable_start, etext; /* of the linker: where this program's code is */

/* Not libseccomp's: it is called only where there is memory (capture/file/sandbox.c). */
static bool refuse(const char *from)
{
	Dl_info library;

	if (!requests || getpid() == requests->parent || (from >= &__executable_start && from < &etext) ||
	    (dladdr(from, &library) && strstr(library.dli_fname, "libseccomp")))
		return false;
	return ++requests->seen == requests->refused;
}

void *malloc(size_t n)
{
	return refuse(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t each)
{
	return refuse(__builtin_return_address(0)) ? NULL : __libc_calloc(n, each);
}
void *realloc(void *old, size_t n)
{
	return refuse(__builtin_return_address(0)) ? NULL : __libc_realloc(old, n);
}

/* What was opened, apart from the weights. */
static bool is_rest_right(const vn_recording *r)
{
	const int32_t *ids, *positions;
	const int      packed = vn_recording_find(r, 0, "packed"), embed = vn_recording_find(r, 0, "embed");

	if (vn_recording_tokens(r, &ids, &positions) != 2 || packed < 0 || embed < 0)
		return false;
	const vn_entry *e = vn_recording_entry(r, packed);
	return ids[0] == 7 && ids[1] == 8 && positions[0] == 0 && positions[1] == 1 && e->order == 1 &&
	       strcmp(e->axes, "token hidden") == 0 && e->dtype == VN_F64 && e->shape.rank == 2 && e->shape.dim[1] == 3 &&
	       strcmp(vn_facts_get(vn_recording_run(r), "engine"), "foreign") == 0;
}

static bool are_numbers_right(const double *x)
{
	for (int i = 0; i < 6; i++)
		if (x[i] != i + 1)
			return false;
	return true;
}

/* Opens the file and reads a tensor of it. Returns what is not as it was written;
 * NULL: nothing is, or *refused. */
static const char *read_file(bool *refused)
{
	vn_recording *r = NULL;
	vn_error      err = { "" };
	const void   *x;
	const char   *wrong = NULL;

	*refused = vn_recording_open(path, &r, &err) != VN_OK;
	if (!*refused && wrong_row(r) >= 0)
		wrong = "the table of weights";
	else if (!*refused && !is_rest_right(r))
		wrong = "the lists or attributes";
	else if (!*refused && !(*refused = vn_recording_data(r, vn_recording_find(r, 0, "packed"), &x, &err) != VN_OK) &&
	         !are_numbers_right(x))
		wrong = "the numbers of a tensor";
	if (*refused && !*err.text)
		wrong = "nothing said";
	vn_recording_close(r);
	return wrong;
}

/* HDF5 1.10.8 can return other bytes than those of a column, without an error. */
static void where_hdf5_gets_no_memory_what_is_read_is_right_or_refused(void)
{
	bool reached = true, refused;
	int  read = 0, wrong = 0;

	requests = counted_map(sizeof *requests);
	CU_ASSERT_TRUE_FATAL(requests != MAP_FAILED);
	make_file_with_table();
	for (long n = 1; reached; n += newer ? 1 : 3) { /* of the older headers a third, to save time */
		*requests = (struct requests) { .parent = getpid(), .refused = n };
		const char *what = read_file(&refused);
		reached = requests->seen >= n;
		read += reached && !refused;
		if (what && wrong++ == 0)
			fprintf(stderr, "request %ld: %s\n", n, what);
	}
	CU_ASSERT_TRUE(read > 0); /* HDF5 can do without some */
	CU_ASSERT_EQUAL(wrong, 0);
	munmap(requests, sizeof *requests);
	requests = NULL;
}
#endif

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(columns_of_any_width_and_order_of_bytes_are_read),
		TEST(a_column_outside_its_row_is_refused),
#ifndef VN_SANITIZED
		TEST(where_hdf5_gets_no_memory_what_is_read_is_right_or_refused),
#endif
		CU_TEST_INFO_NULL,
	};
	return run_recordings("tables", tests);
}
