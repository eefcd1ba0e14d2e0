/* test_identity.c: what a file holds, without reading numbers that a digest stands for
 * (capture/recording/identity.h). */
#include "capture/recording/identity.h"
#include "capture/recording/recording_internal.h"
#include "tests/support/recording_help.h"

static const char one[] = "0123456789abcdef0123456789abcdef", two[] = "0123456789abcdef0123456789abcdee";

static hid_t put_large(hid_t step, const char *name, hsize_t rows)
{
	return put_data(step, name, H5T_IEEE_F32LE, 2, (hsize_t[]) { rows, 1024 }, H5P_DEFAULT, NULL);
}

/* `free` has no digest; rows: of 4 kB. */
static void make_recording(hsize_t rows, const char *digest)
{
	hid_t  step, f = make_file(&step), d = put_large(step, "signed", rows);
	float *zero = calloc(rows, 4096), x = 1;

	put_text(d, "digest", digest);
	H5Dwrite(d, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, zero);
	free(zero);
	H5Dclose(d);
	d = put_data(step, "free", H5T_IEEE_F32LE, 1, (hsize_t[]) { 1 }, H5P_DEFAULT, &x);
	H5Dclose(d);
	close_file(f, step);
}

/* Writes a byte to where the numbers of a tensor are. */
static void change_number(const char *name)
{
	vn_recording *r = opens();
	const int64_t at = r->source[vn_recording_find(r, 0, name)].offset;
	FILE         *f = fopen(path, "r+");

	vn_recording_close(r);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fseek(f, (long)at, SEEK_SET);
	fputc('x', f);
	fclose(f);
}

static bool differs(const vn_digest *from)
{
	vn_digest now;

	CU_ASSERT_EQUAL_FATAL(vn_recording_identity(path, &now, NULL), VN_OK);
	return strcmp(from->hex, now.hex) != 0;
}

static vn_digest identity(void)
{
	vn_digest d = { "" };

	CU_ASSERT_EQUAL_FATAL(vn_recording_identity(path, &d, NULL), VN_OK);
	return d;
}

static void of_a_small_file_every_byte_counts(void)
{
	make_recording(1, one);
	const vn_digest was = identity();
	CU_ASSERT_FALSE(differs(&was));
	change_number("signed");
	CU_ASSERT_TRUE(differs(&was));
}

static void of_a_large_one_digests_stand_for_their_numbers(void)
{
	make_recording(4096, one);
	const vn_digest was = identity();
	change_number("signed");
	CU_ASSERT_FALSE(differs(&was));
	change_number("free");
	CU_ASSERT_TRUE(differs(&was));
	make_recording(4096, two);
	CU_ASSERT_TRUE(differs(&was));
}

static void a_file_that_is_no_recording_has_one_and_one_that_is_absent_has_none(void)
{
	vn_digest d;
	FILE     *f = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("no", f);
	fclose(f);
	const vn_digest was = identity();
	CU_ASSERT_EQUAL(truncate(path, 17 << 20), 0);
	CU_ASSERT_TRUE(differs(&was));
	unlink(path);
	CU_ASSERT_EQUAL(vn_recording_identity(path, &d, NULL), VN_ERR_NOTFOUND);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(of_a_small_file_every_byte_counts),
		TEST(of_a_large_one_digests_stand_for_their_numbers),
		TEST(a_file_that_is_no_recording_has_one_and_one_that_is_absent_has_none),
		CU_TEST_INFO_NULL,
	};
	return run_recordings("identity", tests);
}
