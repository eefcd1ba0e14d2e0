/* test_recording.c: reading checkpoint files (capture/recording.h), above all
 * those that somebody made to hurt. HDF5 itself makes them here. */
#include "capture/recording.h"
#include "capture/view.h"
#include "tests/suite.h"

#include <hdf5.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/vn-recording-XXXXXX";
static char path[64];

/* ---- making files ------------------------------------------------------------------ */

static void put_attr(hid_t o, const char *name, hid_t type, const void *value)
{
	hid_t space = H5Screate(H5S_SCALAR), a = H5Acreate2(o, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	CU_ASSERT_TRUE(a >= 0 && H5Awrite(a, type, value) >= 0);
	H5Aclose(a);
	H5Sclose(space);
}

static void put_text(hid_t o, const char *name, const char *text)
{
	hid_t type = H5Tcopy(H5T_C_S1);
	H5Tset_size(type, strlen(text) + 1);
	put_attr(o, name, type, text);
	H5Tclose(type);
}

static void put_int(hid_t o, const char *name, int64_t x)
{
	put_attr(o, name, H5T_NATIVE_INT64, &x);
}

static hid_t put_data(hid_t in, const char *name, hid_t type, int rank, const hsize_t *dim, hid_t dcpl, const void *data)
{
	hid_t space = H5Screate_simple(rank, dim, NULL);
	hid_t d = H5Dcreate2(in, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	CU_ASSERT_TRUE(d >= 0);
	if (data)
		CU_ASSERT_TRUE(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	H5Sclose(space);
	return d;
}

static void put_floats(hid_t in, const char *name)
{
	static const float x[6] = { 1, 2, 3, 4, 5, 6 };
	H5Dclose(put_data(in, name, H5T_IEEE_F32LE, 2, (hsize_t[]){ 2, 3 }, H5P_DEFAULT, x));
}

/* Of which version HDF5 writes headers: 1, or 2 with checksums as our own files have them. */
static bool newer;

static hid_t create(const char *name)
{
	hid_t how = H5Pcreate(H5P_FILE_ACCESS);
	if (newer)
		H5Pset_libver_bounds(how, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
	hid_t f = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, how);
	H5Pclose(how);
	return f;
}

/* A whole, good file with one tensor `embed`; *step is the open group of step 0. */
static hid_t make(hid_t *step)
{
	static const int32_t ids[2] = { 7, 8 }, positions[2] = { 0, 1 };
	hid_t f = create(path);
	hid_t run = H5Gcreate2(f, "run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

	put_text(f, "format", "vernier-checkpoint");
	put_int(f, "format_version", 1);
	put_int(f, "complete", 1);
	put_text(run, "engine", "foreign");
	put_text(run, "precision", "f32");
	H5Dclose(put_data(run, "token_ids", H5T_STD_I32LE, 1, (hsize_t[]){ 2 }, H5P_DEFAULT, ids));
	H5Dclose(put_data(run, "positions", H5T_STD_I32LE, 1, (hsize_t[]){ 2 }, H5P_DEFAULT, positions));
	H5Gclose(run);
	*step = H5Gcreate2(f, "step.0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_floats(*step, "embed");
	return f;
}

static void done(hid_t f, hid_t step)
{
	H5Gclose(step);
	CU_ASSERT_TRUE(H5Fclose(f) >= 0);
}

static vn_recording *opens(void)
{
	vn_recording *r = NULL;
	vn_error      err = { 0 };
	if (vn_recording_open(path, &r, &err))
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	return r;
}

/* One line that names the file and has these words. */
static void is_refused(const char *a, const char *b)
{
	vn_recording *r = NULL;
	vn_error      err = { 0 };

	CU_ASSERT_NOT_EQUAL(vn_recording_open(path, &r, &err), VN_OK);
	CU_ASSERT_PTR_NULL(r);
	vn_recording_close(r);
	if (!strstr(err.text, a) || !strstr(err.text, b))
		fprintf(stderr, "expected '%s' and '%s' in '%s'\n", a, b, err.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, a));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, b));
}

static void expect_values(vn_recording *r, const char *name, vn_dtype dtype, int64_t n)
{
	const void *data;
	vn_error    err = { 0 };
	double      x[6];
	int         i = vn_recording_find(r, 0, name);

	CU_ASSERT_TRUE_FATAL(i >= 0);
	CU_ASSERT_EQUAL(vn_recording_entry(r, i)->dtype, dtype);
	CU_ASSERT_EQUAL_FATAL(vn_shape_count(&vn_recording_entry(r, i)->shape), n);
	CU_ASSERT_EQUAL_FATAL(vn_recording_data(r, i, &data, &err), VN_OK);
	vn_to_f64(x, data, dtype, 6);
	for (int k = 0; k < 6; k++)
		CU_ASSERT_EQUAL(x[k], k + 1);
	vn_recording_release(r, i);
}

/* ---- what is accepted ----------------------------------------------------------------- */

static void a_foreign_file_with_the_least_there_must_be_opens(void)
{
	hid_t step, f = make(&step);
	done(f, step);
	vn_recording  *r = opens();
	const vn_step *s;
	CU_ASSERT_TRUE(vn_recording_complete(r));
	CU_ASSERT_PTR_NULL(vn_recording_plan(r));
	CU_ASSERT_PTR_NULL(vn_recording_family(r));
	CU_ASSERT_EQUAL_FATAL(vn_recording_steps(r, &s), 1);
	CU_ASSERT_EQUAL(s->tokens, 2);
	CU_ASSERT_EQUAL(s->rows, 2);
	CU_ASSERT_FALSE(vn_recording_entry(r, 0)->has_stats);
	CU_ASSERT_EQUAL(vn_recording_entry(r, 0)->order, -1);
	CU_ASSERT_EQUAL(vn_recording_find(r, 0, "nothing"), -1);
	CU_ASSERT_EQUAL(vn_recording_find(r, 1, "embed"), -1);
	expect_values(r, "embed", VN_F32, 6);
	vn_recording_close(r);
}

static void a_layer_that_is_not_said_is_the_name_s(void)
{
	static const struct { const char *name; int said, layer; } is[] = {
		{ "layer3.output", -2, 3 }, { "layer0.output", 7, 7 }, { "layer12", -2, -1 }, { "layers.1", -2, -1 }, { "layer-1.x", -2, -1 },
		{ "layer99999999999.x", -2, -1 }, { "layer3.v_proj", -1, -1 },
	};
	hid_t step, f = make(&step);
	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		char at[64], *dot;
		snprintf(at, sizeof at, "%s", is[i].name);
		hid_t group = step;
		if ((dot = strchr(at, '.'))) {
			*dot++ = '\0';
			if (H5Lexists(step, at, H5P_DEFAULT) > 0)
				group = H5Gopen2(step, at, H5P_DEFAULT);
			else
				group = H5Gcreate2(step, at, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		}
		put_floats(group, dot ? dot : at);
		if (is[i].said > -2) {
			hid_t d = H5Dopen2(group, dot ? dot : at, H5P_DEFAULT);
			put_int(d, "layer", is[i].said);
			H5Dclose(d);
		}
		if (group != step)
			H5Gclose(group);
	}
	done(f, step);
	vn_recording *r = opens();
	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		const int e = vn_recording_find(r, 0, is[i].name);
		CU_ASSERT_TRUE_FATAL(e >= 0);
		CU_ASSERT_EQUAL(vn_recording_entry(r, e)->layer, is[i].layer);
	}
	vn_recording_close(r);
}

static void big_endian_chunked_and_compressed_tensors_are_read(void)
{
	static const float x[6] = { 1, 2, 3, 4, 5, 6 };
	hid_t step, f = make(&step), dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hid_t space = H5Screate_simple(2, (hsize_t[]){ 2, 3 }, NULL), d;

	d = H5Dcreate2(step, "big", H5T_IEEE_F64BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
	H5Dclose(d);
	H5Pset_chunk(dcpl, 2, (hsize_t[]){ 2, 2 });
	H5Dclose(put_data(step, "chunked", H5T_IEEE_F32LE, 2, (hsize_t[]){ 2, 3 }, dcpl, x));
	H5Pset_shuffle(dcpl);
	H5Pset_deflate(dcpl, 6);
	H5Pset_fletcher32(dcpl);
	H5Dclose(put_data(step, "gzip", H5T_IEEE_F32LE, 2, (hsize_t[]){ 2, 3 }, dcpl, x));
	H5Pclose(dcpl);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_layout(dcpl, H5D_COMPACT);
	H5Dclose(put_data(step, "compact", H5T_IEEE_F32LE, 2, (hsize_t[]){ 2, 3 }, dcpl, x));
	H5Pclose(dcpl);
	H5Sclose(space);
	done(f, step);

	vn_recording *r = opens();
	expect_values(r, "big", VN_F64, 6);
	expect_values(r, "chunked", VN_F32, 6);
	expect_values(r, "gzip", VN_F32, 6);
	expect_values(r, "compact", VN_F32, 6);
	vn_recording_close(r);
}

static void bfloat16_needs_its_mark(void)
{
	static const uint16_t x[6] = { 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0 };
	hid_t step, f = make(&step);
	hid_t d = put_data(step, "b", H5T_STD_U16LE, 1, (hsize_t[]){ 6 }, H5P_DEFAULT, x);

	put_text(d, "dtype", "bf16");
	H5Dclose(d);
	done(f, step);
	vn_recording *r = opens();
	expect_values(r, "b", VN_BF16, 6);
	vn_recording_close(r);

	f = make(&step);
	H5Dclose(put_data(step, "b", H5T_STD_U16LE, 1, (hsize_t[]){ 6 }, H5P_DEFAULT, x));
	done(f, step);
	is_refused("/step.0/b", "without the attribute dtype");
}

static void a_hard_link_is_a_second_name(void)
{
	hid_t step, f = make(&step);
	H5Lcreate_hard(step, "embed", step, "again", H5P_DEFAULT, H5P_DEFAULT);
	done(f, step);
	vn_recording *r = opens();
	CU_ASSERT_EQUAL(vn_recording_count(r), 2);
	CU_ASSERT_EQUAL(vn_recording_entry(r, 0)->same_as + vn_recording_entry(r, 1)->same_as, -1);
	expect_values(r, "again", VN_F32, 6);
	vn_recording_close(r);
}

static void reads(vn_recording *r, int step, const char *name, int64_t rows, int64_t columns, const double *x)
{
	const int   i = vn_recording_find(r, step, name);
	const void *data;
	double      have[6];
	vn_error    err = { 0 };
	CU_ASSERT_TRUE_FATAL(i >= 0);
	CU_ASSERT_EQUAL(vn_recording_entry(r, i)->shape.dim[0], rows);
	CU_ASSERT_EQUAL(vn_recording_entry(r, i)->shape.dim[1], columns);
	CU_ASSERT_EQUAL_FATAL(vn_recording_data(r, i, &data, &err), VN_OK);
	vn_to_f64(have, data, VN_F32, (size_t)(rows * columns));
	for (int64_t k = 0; k < rows * columns; k++)
		CU_ASSERT_EQUAL(have[k], x[k]);
	vn_recording_release(r, i);
}

/* One tensor under two names in step 0, and filed under step 1 as well. */
static void a_view_is_of_one_step_and_of_all_its_names(void)
{
	static const double all[] = { 1, 2, 3, 4, 5, 6 }, turned[] = { 4, 5, 6 }, columns[] = { 4, 5, 6 };
	hid_t step, f = make(&step), next = H5Gcreate2(f, "step.1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_int(next, "position", 0);
	put_int(next, "tokens", 2);
	H5Lcreate_hard(step, "embed", step, "final_norm", H5P_DEFAULT, H5P_DEFAULT);
	H5Lcreate_hard(step, "embed", next, "embed", H5P_DEFAULT, H5P_DEFAULT);
	H5Gclose(next);
	done(f, step);
	vn_recording  *r = opens();
	const vn_step *s;
	vn_error       err = { 0 };
	int            order[VN_MAX_RANK];

	CU_ASSERT_EQUAL(vn_view_rows(r, 0, 1, 2, &err), VN_ERR_USAGE); /* there are two */
	CU_ASSERT_EQUAL(vn_view_rows(r, 7, 0, 1, &err), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_view_rows(r, 0, 1, 1, &err), VN_OK);
	reads(r, 0, "embed", 1, 3, turned);
	reads(r, 0, "final_norm", 1, 3, turned);
	reads(r, 1, "embed", 2, 3, all);
	vn_recording_steps(r, &s);
	CU_ASSERT_EQUAL(s[0].first_row, 1);
	CU_ASSERT_EQUAL(s[0].rows, 1);
	CU_ASSERT_EQUAL(s[1].rows, 2);

	CU_ASSERT_TRUE(vn_view_order("token hidden", "hidden token", 2, order));
	CU_ASSERT_EQUAL(vn_view_axes(r, vn_recording_find(r, 0, "final_norm"), order, &err), VN_OK);
	reads(r, 0, "embed", 3, 1, columns);
	reads(r, 1, "embed", 2, 3, all);

	CU_ASSERT_FALSE(vn_view_order("token hidden", "token hidden", 2, order));
	CU_ASSERT_FALSE(vn_view_order("token hidden", "hidden ffn", 2, order));
	CU_ASSERT_FALSE(vn_view_order("token token", "token token", 2, order));
	CU_ASSERT_FALSE(vn_view_order("token hidden", "hidden token dim", 2, order));
	CU_ASSERT_FALSE(vn_view_order("", "", 2, order));
	vn_recording_close(r);
}

static void an_incomplete_file_may_lack_anything(void)
{
	hid_t f = create(path);
	put_text(f, "format", "vernier-checkpoint");
	put_int(f, "format_version", 1);
	put_int(f, "complete", 0);
	H5Fclose(f);
	vn_recording *r = opens();
	CU_ASSERT_FALSE(vn_recording_complete(r));
	CU_ASSERT_EQUAL(vn_recording_count(r), 0);
	vn_recording_close(r);
}

/* ---- files that are none ---------------------------------------------------------------- */

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
	is_refused("damaged HDF5 structure", "");
	unlink(path);
	is_refused("No such file", "");
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	is_refused("not a regular file", "");
	unlink(path);
	CU_ASSERT_EQUAL(vn_recording_open(dir, &r, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is a directory"));
	H5Fclose(create(path));
	is_refused("not a checkpoint file", "");
}

static void a_truncated_file_is_refused_wherever_it_is_cut(void)
{
	hid_t step, f = make(&step);
	done(f, step);
	struct stat st;
	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	for (off_t size = st.st_size - 1; size > 0; size -= 512) {
		CU_ASSERT_EQUAL(truncate(path, size), 0);
		is_refused(size < 8 ? "not an HDF5 file" : "damaged HDF5 structure", "");
	}
}

static void what_must_be_there_is_missed(void)
{
	static const struct { const char *of, *what, *why; } part[] = {
		{ "/", "complete", "complete is missing" },   { "/", "format_version", "format_version" },
		{ "/", "format", "not a checkpoint file" },   { "/run", "engine", "no attribute engine" },
		{ "/run", "precision", "no attribute precision" },
	};
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		hid_t step, f = make(&step);
		H5Adelete_by_name(f, part[i].of, part[i].what, H5P_DEFAULT);
		done(f, step);
		is_refused(part[i].why, "");
	}
	static const char *const list[] = { "run/token_ids", "run/positions", "run" };
	for (int i = 0; i < 3; i++) {
		hid_t step, f = make(&step);
		H5Ldelete(f, list[i], H5P_DEFAULT);
		done(f, step);
		is_refused("/run", "");
	}
}

/* ---- links --------------------------------------------------------------------------------- */

static void links_other_than_hard_ones_are_refused(void)
{
	hid_t step, f = make(&step);
	H5Lcreate_external("/etc/passwd", "/x", step, "out", H5P_DEFAULT, H5P_DEFAULT);
	done(f, step);
	is_refused("/step.0", "out is an external link");

	f = make(&step);
	H5Lcreate_soft("/step.0", step, "round", H5P_DEFAULT, H5P_DEFAULT);
	done(f, step);
	is_refused("/step.0", "round is a soft link");

	f = make(&step);
	H5Ldelete(f, "run/token_ids", H5P_DEFAULT);
	H5Lcreate_external("/etc/passwd", "/x", f, "run/token_ids", H5P_DEFAULT, H5P_DEFAULT);
	done(f, step);
	is_refused("/run/token_ids", "external link");

	f = make(&step);
	H5Lcreate_soft("/run", f, "notes", H5P_DEFAULT, H5P_DEFAULT);
	done(f, step);
	is_refused("/", "soft link");
}

static void a_group_within_itself_is_refused(void)
{
	hid_t step, f = make(&step);
	H5Lcreate_hard(f, "/step.0", step, "round", H5P_DEFAULT, H5P_DEFAULT);
	done(f, step);
	is_refused("/step.0/round", "a group with two names");

	f = make(&step);
	H5Lcreate_hard(f, "/", step, "root", H5P_DEFAULT, H5P_DEFAULT);
	done(f, step);
	is_refused("/step.0/root", "a group with two names");
}

static void long_and_double_names_are_refused(void)
{
	char  name[200];
	hid_t step, f = make(&step);

	memset(name, 'x', 128);
	name[128] = '\0';
	put_floats(step, name);
	done(f, step);
	is_refused("/step.0", "more than 127 bytes");

	f = make(&step);
	hid_t g = H5Gcreate2(step, "layer0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_floats(g, "q");
	put_floats(step, "layer0.q");
	H5Gclose(g);
	done(f, step);
	is_refused("layer0.q", "twice");

	f = make(&step);
	put_floats(step, "bell\a");
	done(f, step);
	is_refused("/step.0", "control characters");
}

/* ---- datasets ------------------------------------------------------------------------------- */

static void storage_elsewhere_is_refused(void)
{
	hid_t step, f = make(&step), dcpl = H5Pcreate(H5P_DATASET_CREATE), space;

	H5Pset_external(dcpl, "/etc/passwd", 0, 24);
	H5Dclose(put_data(step, "outside", H5T_IEEE_F32LE, 2, (hsize_t[]){ 2, 3 }, dcpl, NULL));
	H5Pclose(dcpl);
	done(f, step);
	is_refused("/step.0/outside", "in another file");

	f = make(&step);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	space = H5Screate_simple(2, (hsize_t[]){ 2, 3 }, NULL);
	H5Pset_virtual(dcpl, space, "/etc/passwd", "x", space);
	H5Dclose(put_data(step, "virtual", H5T_IEEE_F32LE, 2, (hsize_t[]){ 2, 3 }, dcpl, NULL));
	H5Sclose(space);
	H5Pclose(dcpl);
	done(f, step);
	is_refused("/step.0/virtual", "a virtual dataset");
}

static void absurd_sizes_are_refused(void)
{
	const hsize_t eight[8] = { 1, 1, 1, 1, 1, 1, 1, 1 }, huge[2] = { (hsize_t)1 << 30, (hsize_t)1 << 30 };
	hid_t step, f = make(&step), dcpl;

	H5Dclose(put_data(step, "rank8", H5T_IEEE_F32LE, 8, eight, H5P_DEFAULT, NULL));
	done(f, step);
	is_refused("/step.0/rank8", "rank 8, more than 6");

	f = make(&step);
	H5Dclose(put_data(step, "huge", H5T_IEEE_F32LE, 2, huge, H5P_DEFAULT, NULL));
	done(f, step);
	is_refused("/step.0/huge", "");

	f = make(&step);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(dcpl, 2, (hsize_t[]){ 64, 64 });
	H5Pset_deflate(dcpl, 9);
	H5Dclose(put_data(step, "bomb", H5T_IEEE_F32LE, 2, (hsize_t[]){ 1 << 24, 1 << 24 }, dcpl, NULL));
	H5Pclose(dcpl);
	done(f, step);
	is_refused("/step.0/bomb", "cannot come from the 0 that are stored");

	f = make(&step);
	H5Dclose(put_data(step, "unwritten", H5T_IEEE_F32LE, 2, (hsize_t[]){ 2, 3 }, H5P_DEFAULT, NULL));
	done(f, step);
	is_refused("/step.0/unwritten", "never written");

	f = make(&step);
	hid_t null = H5Screate(H5S_NULL);
	H5Dclose(H5Dcreate2(step, "null", H5T_IEEE_F32LE, null, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	H5Sclose(null);
	done(f, step);
	is_refused("/step.0/null", "no shape");
}

/* One tensor `x` of an integer type whose attribute dtype says `word`. */
static void make_codes(hid_t type, const char *word)
{
	static const unsigned char code[8] = { 0x38, 0x7e, 0x01, 0xff, 0, 0, 0, 0 };
	hid_t step, f = make(&step), d = put_data(step, "x", type, 1, (hsize_t[]){ 2 }, H5P_DEFAULT, code);
	if (word)
		put_text(d, "dtype", word);
	H5Dclose(d);
	done(f, step);
}

static void bytes_are_what_their_attribute_says(void)
{
	static const struct { const char *word; vn_dtype dtype; } good[] = { { "f8_e4m3", VN_F8_E4M3 }, { "f8_e5m2", VN_F8_E5M2 } };
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
	is_refused("/step.0/x", "it holds i32, its attribute dtype says f32");
	make_codes(H5T_STD_I8LE, "f8_e4m3");
	is_refused("/step.0/x", "its type is none of");
	make_codes(H5T_STD_I32LE, "int32"); /* a word of somebody else's */
	vn_recording *r = opens();
	CU_ASSERT_EQUAL(vn_recording_entry(r, vn_recording_find(r, 0, "x"))->dtype, VN_I32);
	vn_recording_close(r);
}

static void foreign_types_and_filters_are_refused(void)
{
	hid_t step, f = make(&step), pair = H5Tcreate(H5T_COMPOUND, 8), text = H5Tcopy(H5T_C_S1), dcpl;
	const char words[2][4] = { "ab", "cd" };
	const int64_t whole[2] = { 1, 2 };

	H5Tinsert(pair, "re", 0, H5T_IEEE_F32LE);
	H5Tinsert(pair, "im", 4, H5T_IEEE_F32LE);
	H5Dclose(put_data(step, "complex", pair, 1, (hsize_t[]){ 1 }, H5P_DEFAULT, (float[]){ 1, 2 }));
	done(f, step);
	is_refused("/step.0/complex", "none of f16, bf16, f32, f64");
	H5Tclose(pair);

	f = make(&step);
	H5Tset_size(text, 4);
	H5Dclose(put_data(step, "words", text, 1, (hsize_t[]){ 2 }, H5P_DEFAULT, words));
	H5Tclose(text);
	done(f, step);
	is_refused("/step.0/words", "none of f16, bf16, f32, f64");

	f = make(&step);
	H5Dclose(put_data(step, "whole", H5T_STD_I64LE, 1, (hsize_t[]){ 2 }, H5P_DEFAULT, whole));
	done(f, step);
	is_refused("/step.0/whole", "none of f16, bf16, f32, f64");

	f = make(&step);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(dcpl, 2, (hsize_t[]){ 2, 3 });
	H5Pset_scaleoffset(dcpl, H5Z_SO_FLOAT_DSCALE, 2);
	H5Dclose(put_data(step, "filtered", H5T_IEEE_F32LE, 2, (hsize_t[]){ 2, 3 }, dcpl, (float[6]){ 0 }));
	H5Pclose(dcpl);
	done(f, step);
	is_refused("/step.0/filtered", "is not one of deflate, shuffle, fletcher32");

	f = make(&step);
	hid_t named = H5Tcopy(H5T_IEEE_F32LE);
	H5Tcommit2(step, "type", named, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Tclose(named);
	done(f, step);
	is_refused("/step.0/type", "neither a tensor nor a group");
}

/* ---- attributes and what stands beside the tensors ------------------------------------------ */

static void attributes_of_the_wrong_kind_are_refused(void)
{
	static char long_text[5000];
	hid_t       step, f = make(&step), d, space, a;

	memset(long_text, 'y', sizeof long_text - 1);
	d = H5Dopen2(step, "embed", H5P_DEFAULT);
	put_text(d, "point", long_text);
	H5Dclose(d);
	done(f, step);
	is_refused("/step.0/embed", "attribute point has 4999 bytes");

	f = make(&step);
	d = H5Dopen2(step, "embed", H5P_DEFAULT);
	put_text(d, "order", "first");
	H5Dclose(d);
	done(f, step);
	is_refused("/step.0/embed", "order is not a whole number");

	f = make(&step);
	d = H5Dopen2(step, "embed", H5P_DEFAULT);
	put_text(d, "digest", "DEADBEEF");
	H5Dclose(d);
	done(f, step);
	is_refused("embed", "DEADBEEF");

	f = make(&step);
	space = H5Screate_simple(1, (hsize_t[]){ 1000 }, NULL);
	a = H5Acreate2(step, "position", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
	H5Aclose(a);
	H5Sclose(space);
	done(f, step);
	is_refused("/step.0", "does not hold one value");

	f = make(&step);
	put_int(step, "position", 5);
	done(f, step);
	is_refused("/step.0", "tokens after 5, the run has 2");
}

static void a_large_attribute_of_the_run_is_cut_and_not_trusted(void)
{
	static char big[60000];
	hid_t       step, f = make(&step), run = H5Gopen2(f, "run", H5P_DEFAULT);

	memset(big, 'z', sizeof big - 1);
	put_text(run, "prompt", big);
	put_text(run, "odd", "\xff\xfe ok");
	H5Gclose(run);
	done(f, step);
	vn_recording *r = opens();
	CU_ASSERT_EQUAL(strlen(vn_facts_get(vn_recording_run(r), "prompt")), VN_FACT_VALUE - 1);
	CU_ASSERT_STRING_EQUAL(vn_facts_get(vn_recording_run(r), "odd"), "?? ok");
	vn_recording_close(r);
}

static void token_ids_must_fit_their_digest_and_positions(void)
{
	hid_t step, f = make(&step), d = H5Dopen2(f, "run/token_ids", H5P_DEFAULT);
	put_text(d, "digest", "00000000000000000000000000000000");
	H5Dclose(d);
	done(f, step);
	is_refused("/run/token_ids", "its digest is");

	f = make(&step);
	H5Ldelete(f, "run/positions", H5P_DEFAULT);
	H5Dclose(put_data(f, "run/positions", H5T_STD_I32LE, 1, (hsize_t[]){ 1 }, H5P_DEFAULT, (int32_t[]){ 0 }));
	done(f, step);
	is_refused("2 token ids, but 1 positions", "");

	f = make(&step);
	H5Ldelete(f, "run/token_ids", H5P_DEFAULT);
	H5Dclose(put_data(f, "run/token_ids", H5T_STD_I64LE, 1, (hsize_t[]){ 2 }, H5P_DEFAULT, (int64_t[]){ 1, -1 }));
	done(f, step);
	is_refused("/run/token_ids", "element 1 is -1");
}

static void many_open_at_once_or_the_first_that_does_not_is_named(void)
{
	enum { N = 11, IDS = 50000 }; /* more files than are read at a time; ids of more than a piece of a pipe */
	static int32_t ids[IDS];
	const char    *list[N];
	char           one[sizeof path], two[sizeof path];
	vn_recording  *r[N];
	vn_error       err = { 0 };
	hid_t          step, f = make(&step);
	const int32_t *have;

	for (int i = 0; i < IDS; i++)
		ids[i] = 3 * i;
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "run/positions" : "run/token_ids";
		H5Ldelete(f, name, H5P_DEFAULT);
		H5Dclose(put_data(f, name, H5T_STD_I32LE, 1, (hsize_t[]){ IDS }, H5P_DEFAULT, ids));
	}
	done(f, step);
	for (int i = 0; i < N; i++)
		list[i] = path;
	CU_ASSERT_EQUAL_FATAL(vn_recording_open_all(list, N, r, &err), VN_OK);
	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL_FATAL(vn_recording_tokens(r[i], &have, NULL), IDS);
		CU_ASSERT_EQUAL(memcmp(have, ids, sizeof ids), 0);
		CU_ASSERT_EQUAL(vn_recording_count(r[i]), 1);
		vn_recording_close(r[i]);
	}

	snprintf(one, sizeof one, "%s/first.h5", dir);
	snprintf(two, sizeof two, "%s/second.h5", dir);
	H5Fclose(create(one));
	H5Fclose(create(two));
	for (int at = 0; at < N - 1; at++) {
		list[at] = one;
		list[at + 1] = two;
		CU_ASSERT_EQUAL(vn_recording_open_all(list, N, r, &err), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, one));
		for (int i = 0; i < N; i++)
			CU_ASSERT_PTR_NULL(r[i]);
		list[at] = list[at + 1] = path;
	}
	list[3] = two;
	list[N - 1] = "absent";
	CU_ASSERT_EQUAL(vn_recording_open_all(list, N, r, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, two));
	list[3] = path;
	CU_ASSERT_EQUAL(vn_recording_open_all(list, N, r, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "absent"));
	CU_ASSERT_EQUAL(vn_recording_open_all(list, 0, r, &err), VN_OK);
	unlink(one);
	unlink(two);
}

/* Bits turned over, also in a file without checksums: a recording or one line, and we
 * are still here. Tests/fuzz does the same by the thousands. */
static void damage_is_survived(void)
{
	hid_t       step, f = make(&step);
	struct stat st;
	done(f, step);
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
		TEST(a_foreign_file_with_the_least_there_must_be_opens),
		TEST(a_layer_that_is_not_said_is_the_name_s),
		TEST(big_endian_chunked_and_compressed_tensors_are_read),
		TEST(bfloat16_needs_its_mark),
		TEST(a_hard_link_is_a_second_name),
		TEST(a_view_is_of_one_step_and_of_all_its_names),
		TEST(an_incomplete_file_may_lack_anything),
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
		TEST(many_open_at_once_or_the_first_that_does_not_is_named),
		TEST(damage_is_survived),
		CU_TEST_INFO_NULL,
	};

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof path, "%s/run.h5", dir);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	int failed = run_suite("recordings with headers of version 1", tests);
	newer = true;
	failed |= run_suite("recordings with headers of version 2", tests);
	unlink(path);
	rmdir(dir);
	return failed;
}
