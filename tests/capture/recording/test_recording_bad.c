/* test_recording_bad.c: hostile checkpoint files, read by capture/recording/recording.h. */
#include "tests/support/recording_help.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- not recordings --------------------------------------------------------------------- */

static void write_file(const void *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CU_ASSERT_EQUAL(write(fd, data, bytes), (ssize_t)bytes);
	close(fd);
}

static void what_is_no_hdf5_file_is_refused(void)
{
	vn_recording *r = NULL;
	vn_error      err;

	write_file("", 0);
	is_refused("is empty", "");
	write_file("hello, world\n", 13);
	is_refused("not an HDF5 file", "");
	write_file("\x89HDF\r\n\x1a\n", 8);
	is_refused("not an HDF5 file", "");
	write_file("\x1f\x8b\b", 3);
	is_refused("compressed by gzip", "");
	unlink(path);
	is_refused("No such file", "");
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	is_refused("is a pipe", "");
	unlink(path);
	CU_ASSERT_EQUAL(vn_recording_open(dir, &r, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is a directory"));
	H5Fclose(create(path));
	is_refused("not a recording", "");
}

static void a_truncated_file_is_refused_wherever_it_is_cut(void)
{
	hid_t step, f = make_file(&step);
	close_file(f, step);
	struct stat st;
	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	for (off_t size = st.st_size - 1; size > 0; size -= 512) {
		CU_ASSERT_EQUAL(truncate(path, size), 0);
		is_refused(size < 48 ? "not an HDF5 file" : "bytes are here", "");
	}
}

static void what_must_be_there_is_missed(void)
{
	static const struct {
		const char *of, *what, *why;
	} part[] = {
		{ "/", "complete", "complete is missing" },
		{ "/", "format_version", "format_version" },
		{ "/", "format", "not a recording" },
		{ "/run", "engine", "no attribute engine" },
		{ "/run", "precision", "no attribute precision" },
	};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		hid_t step, f = make_file(&step);
		H5Adelete_by_name(f, part[i].of, part[i].what, H5P_DEFAULT);
		close_file(f, step);
		is_refused(part[i].why, "");
	}
	static const char *const list[] = { "run/token_ids", "run/positions", "run" };
	for (int i = 0; i < 3; i++) {
		hid_t step, f = make_file(&step);
		H5Ldelete(f, list[i], H5P_DEFAULT);
		close_file(f, step);
		is_refused("/run", "");
	}
}

/* ---- links --------------------------------------------------------------------------------- */

static void links_other_than_hard_ones_are_refused(void)
{
	hid_t step, f = make_file(&step);
	H5Lcreate_external("/etc/passwd", "/x", step, "out", H5P_DEFAULT, H5P_DEFAULT);
	close_file(f, step);
	is_refused("/step.0", "out is an external link");

	f = make_file(&step);
	H5Lcreate_soft("/step.0", step, "round", H5P_DEFAULT, H5P_DEFAULT);
	close_file(f, step);
	is_refused("/step.0", "round is a soft link");

	f = make_file(&step);
	H5Ldelete(f, "run/token_ids", H5P_DEFAULT);
	H5Lcreate_external("/etc/passwd", "/x", f, "run/token_ids", H5P_DEFAULT, H5P_DEFAULT);
	close_file(f, step);
	is_refused("/run/token_ids", "external link");

	f = make_file(&step);
	H5Lcreate_soft("/run", f, "notes", H5P_DEFAULT, H5P_DEFAULT);
	close_file(f, step);
	is_refused("/", "soft link");
}

static void a_group_within_itself_is_refused(void)
{
	hid_t step, f = make_file(&step);
	H5Lcreate_hard(f, "/step.0", step, "round", H5P_DEFAULT, H5P_DEFAULT);
	close_file(f, step);
	is_refused("/step.0/round", "a group with two names");

	f = make_file(&step);
	H5Lcreate_hard(f, "/", step, "root", H5P_DEFAULT, H5P_DEFAULT);
	close_file(f, step);
	is_refused("/step.0/root", "a group with two names");
}

static void long_and_double_names_are_refused(void)
{
	char  name[200];
	hid_t step, f = make_file(&step);

	memset(name, 'x', 128);
	name[128] = '\0';
	put_floats(step, name);
	close_file(f, step);
	is_refused("/step.0", "more than 127 bytes");

	f = make_file(&step);
	hid_t g = H5Gcreate2(step, "layer0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_floats(g, "q");
	put_floats(step, "layer0.q");
	H5Gclose(g);
	close_file(f, step);
	is_refused("layer0.q", "twice");

	f = make_file(&step);
	g = H5Gcreate2(step, "more.1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_int(g, "continues", 1);
	put_floats(g, "embed");
	H5Gclose(g);
	close_file(f, step);
	is_refused("embed", "twice");

	f = make_file(&step);
	put_floats(step, "bell\a");
	close_file(f, step);
	is_refused("/step.0", "control characters");
}

/* ---- datasets ------------------------------------------------------------------------------- */

static void storage_elsewhere_is_refused(void)
{
	hid_t step, f = make_file(&step), dcpl = H5Pcreate(H5P_DATASET_CREATE), space;

	H5Pset_external(dcpl, "/etc/passwd", 0, 24);
	H5Dclose(put_data(step, "outside", H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, dcpl, NULL));
	H5Pclose(dcpl);
	close_file(f, step);
	is_refused("/step.0/outside", "in another file");

	f = make_file(&step);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	space = H5Screate_simple(2, (hsize_t[]) { 2, 3 }, NULL);
	H5Pset_virtual(dcpl, space, "/etc/passwd", "x", space);
	H5Dclose(put_data(step, "virtual", H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, dcpl, NULL));
	H5Sclose(space);
	H5Pclose(dcpl);
	close_file(f, step);
	is_refused("/step.0/virtual", "a virtual dataset");
}

static void absurd_sizes_are_refused(void)
{
	const hsize_t eight[8] = { 1, 1, 1, 1, 1, 1, 1, 1 }, huge[2] = { (hsize_t)1 << 30, (hsize_t)1 << 30 };
	hid_t         step, f = make_file(&step), dcpl;

	H5Dclose(put_data(step, "rank8", H5T_IEEE_F32LE, 8, eight, H5P_DEFAULT, NULL));
	close_file(f, step);
	is_refused("/step.0/rank8", "rank 8, more than 6");

	f = make_file(&step);
	H5Dclose(put_data(step, "huge", H5T_IEEE_F32LE, 2, huge, H5P_DEFAULT, NULL));
	close_file(f, step);
	is_refused("/step.0/huge", "");

	f = make_file(&step);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(dcpl, 2, (hsize_t[]) { 64, 64 });
	H5Pset_deflate(dcpl, 9);
	H5Dclose(put_data(step, "bomb", H5T_IEEE_F32LE, 2, (hsize_t[]) { 1 << 24, 1 << 24 }, dcpl, NULL));
	H5Pclose(dcpl);
	close_file(f, step);
	is_refused("/step.0/bomb", "cannot come from the 0 that are stored");

	f = make_file(&step);
	H5Dclose(put_data(step, "unwritten", H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, H5P_DEFAULT, NULL));
	close_file(f, step);
	is_refused("/step.0/unwritten", "never written");

	f = make_file(&step);
	hid_t null = H5Screate(H5S_NULL);
	H5Dclose(H5Dcreate2(step, "null", H5T_IEEE_F32LE, null, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	H5Sclose(null);
	close_file(f, step);
	is_refused("/step.0/null", "no shape");
}

/* One tensor `x` of an integer type whose attribute dtype says `word`. */
static void make_codes(hid_t type, const char *word)
{
	static const unsigned char code[8] = { 0x38, 0x7e, 0x01, 0xff, 0, 0, 0, 0 };
	hid_t step, f = make_file(&step), d = put_data(step, "x", type, 1, (hsize_t[]) { 2 }, H5P_DEFAULT, code);
	if (word)
		put_text(d, "dtype", word);
	H5Dclose(d);
	close_file(f, step);
}

static void bytes_are_what_their_attribute_says(void)
{
	static const struct {
		const char *word;
		vn_dtype    dtype;
	} good[] = { { "f8_e4m3", VN_F8_E4M3 }, { "f8_e5m2", VN_F8_E5M2 } };
	for (int i = 0; i < 4; i++) {
		make_codes(i / 2 ? H5T_STD_U8BE : H5T_STD_U8LE, good[i % 2].word);
		vn_recording *r = opens();
		const int     at = vn_recording_find(r, 0, "x");
		const void   *data;
		CU_ASSERT_EQUAL(vn_recording_entry(r, at)->dtype, good[i % 2].dtype);
		CU_ASSERT_EQUAL(vn_recording_data(r, at, &data, NULL), VN_OK);
		CU_ASSERT_EQUAL(memcmp(data, "\x38\x7e", 2), 0);
		vn_recording_close(r);
	}
	make_codes(H5T_STD_U8LE, NULL);
	is_refused("/step.0/x", "without the attribute dtype = f8_e4m3 or f8_e5m2");
	make_codes(H5T_STD_U8LE, "bf16");
	is_refused("/step.0/x", "without the attribute dtype = f8_e4m3 or f8_e5m2");
	make_codes(H5T_STD_U16LE, "f8_e5m2");
	is_refused("/step.0/x", "without the attribute dtype = bf16");
	make_codes(H5T_STD_I32LE, "f32");
	is_refused("/step.0/x", "it holds i32, but its attribute dtype is f32");
	make_codes(H5T_STD_I8LE, "f8_e4m3");
	is_refused("/step.0/x", "its type is not one of");
	make_codes(H5T_STD_I32LE, "int32"); /* a word of somebody else's */
	vn_recording *r = opens();
	CU_ASSERT_EQUAL(vn_recording_entry(r, vn_recording_find(r, 0, "x"))->dtype, VN_I32);
	vn_recording_close(r);
}

static void foreign_types_and_filters_are_refused(void)
{
	hid_t         step, f = make_file(&step), pair = H5Tcreate(H5T_COMPOUND, 8), text = H5Tcopy(H5T_C_S1), dcpl;
	const char    words[2][4] = { "ab", "cd" };
	const int64_t whole[2] = { 1, 2 };

	H5Tinsert(pair, "re", 0, H5T_IEEE_F32LE);
	H5Tinsert(pair, "im", 4, H5T_IEEE_F32LE);
	H5Dclose(put_data(step, "complex", pair, 1, (hsize_t[]) { 1 }, H5P_DEFAULT, (float[]) { 1, 2 }));
	close_file(f, step);
	is_refused("/step.0/complex", "not one of f16, bf16, f32, f64");
	H5Tclose(pair);

	f = make_file(&step);
	H5Tset_size(text, 4);
	H5Dclose(put_data(step, "words", text, 1, (hsize_t[]) { 2 }, H5P_DEFAULT, words));
	H5Tclose(text);
	close_file(f, step);
	is_refused("/step.0/words", "not one of f16, bf16, f32, f64");

	f = make_file(&step);
	H5Dclose(put_data(step, "whole", H5T_STD_I64LE, 1, (hsize_t[]) { 2 }, H5P_DEFAULT, whole));
	close_file(f, step);
	is_refused("/step.0/whole", "not one of f16, bf16, f32, f64");

	f = make_file(&step);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(dcpl, 2, (hsize_t[]) { 2, 3 });
	H5Pset_scaleoffset(dcpl, H5Z_SO_FLOAT_DSCALE, 2);
	H5Dclose(put_data(step, "filtered", H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, dcpl, (float[6]) { 0 }));
	H5Pclose(dcpl);
	close_file(f, step);
	is_refused("/step.0/filtered", "is not one of deflate, shuffle, fletcher32");

	f = make_file(&step);
	hid_t named = H5Tcopy(H5T_IEEE_F32LE);
	H5Tcommit2(step, "type", named, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Tclose(named);
	close_file(f, step);
	is_refused("/step.0/type", "neither a tensor nor a group");
}

/* ---- attributes and what stands beside the tensors ------------------------------------------ */

static void attributes_of_the_wrong_kind_are_refused(void)
{
	static char long_text[5000];
	hid_t       step, f = make_file(&step), d, space, a;

	memset(long_text, 'y', sizeof long_text - 1);
	d = H5Dopen2(step, "embed", H5P_DEFAULT);
	put_text(d, "point", long_text);
	H5Dclose(d);
	close_file(f, step);
	is_refused("/step.0/embed", "attribute point has 4999 bytes");

	f = make_file(&step);
	d = H5Dopen2(step, "embed", H5P_DEFAULT);
	put_text(d, "order", "first");
	H5Dclose(d);
	close_file(f, step);
	is_refused("/step.0/embed", "order is not a whole number");

	f = make_file(&step);
	d = H5Dopen2(step, "embed", H5P_DEFAULT);
	put_text(d, "digest", "DEADBEEF");
	H5Dclose(d);
	close_file(f, step);
	is_refused("embed", "DEADBEEF");

	f = make_file(&step);
	space = H5Screate_simple(1, (hsize_t[]) { 1000 }, NULL);
	a = H5Acreate2(step, "position", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
	H5Aclose(a);
	H5Sclose(space);
	close_file(f, step);
	is_refused("/step.0", "does not hold one value");

	f = make_file(&step);
	put_int(step, "position", 5);
	close_file(f, step);
	is_refused("/step.0", "tokens from position 5 exceed the run's 2");

	static const char *const number[] = { "position", "tokens", "first_row", "rows" };
	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		f = make_file(&step);
		put_int(step, number[i], -1);
		close_file(f, step);
		is_refused("/step.0", "-1");
	}
	f = make_file(&step);
	d = H5Dopen2(step, "embed", H5P_DEFAULT);
	put_int(d, "order", -1);
	H5Dclose(d);
	close_file(f, step);
	is_refused("embed", "order -1");
}

static void a_large_attribute_of_the_run_is_cut_and_not_trusted(void)
{
	static char big[60000];
	hid_t       step, f = make_file(&step), run = H5Gopen2(f, "run", H5P_DEFAULT);

	memset(big, 'z', sizeof big - 1);
	put_text(run, "prompt", big);
	put_text(run, "odd", "\xff\xfe ok");
	H5Gclose(run);
	close_file(f, step);
	vn_recording *r = opens();
	CU_ASSERT_EQUAL(strlen(vn_facts_get(vn_recording_run(r), "prompt")), VN_FACT_VALUE - 1);
	CU_ASSERT_STRING_EQUAL(vn_facts_get(vn_recording_run(r), "odd"), "?? ok");
	vn_recording_close(r);
}

static void token_ids_must_fit_their_digest_and_positions(void)
{
	hid_t step, f = make_file(&step), d = H5Dopen2(f, "run/token_ids", H5P_DEFAULT);
	put_text(d, "digest", "00000000000000000000000000000000");
	H5Dclose(d);
	close_file(f, step);
	is_refused("/run/token_ids", "its digest is");

	f = make_file(&step);
	H5Ldelete(f, "run/positions", H5P_DEFAULT);
	H5Dclose(put_data(f, "run/positions", H5T_STD_I32LE, 1, (hsize_t[]) { 1 }, H5P_DEFAULT, (int32_t[]) { 0 }));
	close_file(f, step);
	is_refused("2 token ids, but 1 positions", "");

	f = make_file(&step);
	H5Ldelete(f, "run/token_ids", H5P_DEFAULT);
	H5Dclose(put_data(f, "run/token_ids", H5T_STD_I64LE, 1, (hsize_t[]) { 2 }, H5P_DEFAULT, (int64_t[]) { 1, -1 }));
	close_file(f, step);
	is_refused("/run/token_ids", "element 1 is -1");
}

/* Bits flipped, also in a file without checksums: a recording or one line, and we
 * are still here. Tests/fuzz does the same by the thousands. */
static void damage_is_survived(void)
{
	hid_t       step, f = make_file(&step);
	struct stat st;
	close_file(f, step);
	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	unsigned char *data = malloc((size_t)st.st_size);
	int            fd = open(path, O_RDWR);
	CU_ASSERT_EQUAL_FATAL(read(fd, data, (size_t)st.st_size), st.st_size);
	for (off_t at = 8; at < st.st_size; at += 29) {
		unsigned char was = data[at], now = (unsigned char)(was ^ 0xa5);
		vn_recording *r;
		vn_error      err = { 0 };
		CU_ASSERT_EQUAL(pwrite(fd, &now, 1, at), 1);
		if (vn_recording_open(path, &r, &err))
			CU_ASSERT_TRUE(*err.text && !r);
		vn_recording_close(r);
		CU_ASSERT_EQUAL(pwrite(fd, &was, 1, at), 1);
	}
	close(fd);
	free(data);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(what_is_no_hdf5_file_is_refused),
		TEST(a_truncated_file_is_refused_wherever_it_is_cut),
		TEST(what_must_be_there_is_missed),
		TEST(links_other_than_hard_ones_are_refused),
		TEST(a_group_within_itself_is_refused),
		TEST(long_and_double_names_are_refused),
		TEST(storage_elsewhere_is_refused),
		TEST(absurd_sizes_are_refused),
		TEST(bytes_are_what_their_attribute_says),
		TEST(foreign_types_and_filters_are_refused),
		TEST(attributes_of_the_wrong_kind_are_refused),
		TEST(a_large_attribute_of_the_run_is_cut_and_not_trusted),
		TEST(token_ids_must_fit_their_digest_and_positions),
		TEST(damage_is_survived),
		CU_TEST_INFO_NULL,
	};
	return run_recordings("bad recordings", tests);
}
