/* test_recording.c: reading checkpoint files (capture/recording/recording.h) that are as they
 * should be; test_recording_bad.c has those that are not. */
#include "capture/view/view.h"
#include "tests/support/recording_help.h"

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
	hid_t step, f = make_file(&step);
	close_file(f, step);
	vn_recording  *r = opens();
	const vn_step *s;
	CU_ASSERT_TRUE(vn_recording_complete(r));
	CU_ASSERT_PTR_NULL(vn_recording_plan(r));
	CU_ASSERT_PTR_NULL(vn_recording_family(r));
	CU_ASSERT_EQUAL_FATAL(vn_recording_steps(r, &s), 1);
	CU_ASSERT_EQUAL(s->tokens, 2);
	CU_ASSERT_EQUAL(s->rows, 2);
	CU_ASSERT_PTR_NULL(vn_recording_stats(r, vn_recording_entry(r, 0)));
	CU_ASSERT_EQUAL(vn_recording_entry(r, 0)->order, -1);
	CU_ASSERT_EQUAL(vn_recording_find(r, 0, "nothing"), -1);
	CU_ASSERT_EQUAL(vn_recording_find(r, 1, "embed"), -1);
	expect_values(r, "embed", VN_F32, 6);
	vn_recording_close(r);
}

static void what_nobody_reads_is_told(void)
{
	const char *name[VN_UNREAD_NAMED];
	hid_t       step, f = make_file(&step), run = H5Gopen2(f, "run", H5P_DEFAULT);

	H5Gclose(H5Gcreate2(f, "notes\x1b", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	put_floats(run, "timings");
	H5Gclose(run);
	close_file(f, step);
	is_refused("/", "control characters");

	f = make_file(&step);
	run = H5Gopen2(f, "run", H5P_DEFAULT);
	H5Gclose(H5Gcreate2(f, "notes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	put_floats(run, "timings");
	H5Gclose(run);
	close_file(f, step);
	vn_recording *r = opens();
	CU_ASSERT_EQUAL_FATAL(vn_recording_unread(r, name), 2);
	CU_ASSERT_STRING_EQUAL(name[0], "/run/timings");
	CU_ASSERT_STRING_EQUAL(name[1], "/notes");
	vn_recording_close(r);
}

static void a_layer_that_is_not_said_is_the_name_s(void)
{
	static const struct {
		const char *name;
		int         said, layer;
	} is[] = {
		{ "layer3.output", -2, 3 },  { "layer0.output", 7, 7 }, { "layer12", -2, -1 },
		{ "layers.1", -2, -1 },      { "layer-1.x", -2, -1 },   { "layer99999999999.x", -2, -1 },
		{ "layer3.v_proj", -1, -1 },
	};
	hid_t step, f = make_file(&step);
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
	close_file(f, step);
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
	hid_t              step, f = make_file(&step), dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hid_t              space = H5Screate_simple(2, (hsize_t[]) { 2, 3 }, NULL), d;

	d = H5Dcreate2(step, "big", H5T_IEEE_F64BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
	H5Dclose(d);
	H5Pset_chunk(dcpl, 2, (hsize_t[]) { 2, 2 });
	H5Dclose(put_data(step, "chunked", H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, dcpl, x));
	H5Pset_shuffle(dcpl);
	H5Pset_deflate(dcpl, 6);
	H5Pset_fletcher32(dcpl);
	H5Dclose(put_data(step, "gzip", H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, dcpl, x));
	H5Pclose(dcpl);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_layout(dcpl, H5D_COMPACT);
	H5Dclose(put_data(step, "compact", H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, dcpl, x));
	H5Pclose(dcpl);
	H5Sclose(space);
	close_file(f, step);

	vn_recording *r = opens();
	expect_values(r, "big", VN_F64, 6);
	expect_values(r, "chunked", VN_F32, 6);
	expect_values(r, "gzip", VN_F32, 6);
	expect_values(r, "compact", VN_F32, 6);
	vn_recording_close(r);
}

static void a_group_that_continues_another_adds_nothing_to_names(void)
{
	hid_t step, f = make_file(&step);
	hid_t more = H5Gcreate2(step, "more.1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	hid_t layer = H5Gcreate2(step, "layer3", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	hid_t more_of_it = H5Gcreate2(layer, "more", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

	put_int(more, "continues", 1);
	put_int(more_of_it, "continues", 1);
	put_floats(more, "Qcur-7");
	put_floats(more, "more.1");
	put_floats(more_of_it, "q_proj");
	H5Gclose(more_of_it);
	H5Gclose(layer);
	H5Gclose(more);
	close_file(f, step);
	vn_recording *r = opens();
	CU_ASSERT_EQUAL(vn_recording_count(r), 4);
	expect_values(r, "Qcur-7", VN_F32, 6);
	expect_values(r, "more.1", VN_F32, 6);
	expect_values(r, "layer3.q_proj", VN_F32, 6);
	vn_recording_close(r);

	f = make_file(&step); /* without the attribute, or with 0, the group is part of the name */
	more = H5Gcreate2(step, "more.1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_int(more, "continues", 0);
	put_floats(more, "Qcur-7");
	H5Gclose(more);
	close_file(f, step);
	r = opens();
	expect_values(r, "more.1.Qcur-7", VN_F32, 6);
	vn_recording_close(r);
}

static void bfloat16_needs_its_mark(void)
{
	static const uint16_t x[6] = { 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0 };
	hid_t                 step, f = make_file(&step);
	hid_t                 d = put_data(step, "b", H5T_STD_U16LE, 1, (hsize_t[]) { 6 }, H5P_DEFAULT, x);

	put_text(d, "dtype", "bf16");
	H5Dclose(d);
	close_file(f, step);
	vn_recording *r = opens();
	expect_values(r, "b", VN_BF16, 6);
	vn_recording_close(r);

	f = make_file(&step);
	H5Dclose(put_data(step, "b", H5T_STD_U16LE, 1, (hsize_t[]) { 6 }, H5P_DEFAULT, x));
	close_file(f, step);
	is_refused("/step.0/b", "without the attribute dtype");
}

static void a_hard_link_is_a_second_name(void)
{
	hid_t step, f = make_file(&step);
	H5Lcreate_hard(step, "embed", step, "again", H5P_DEFAULT, H5P_DEFAULT);
	close_file(f, step);
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
	for (int64_t from = 0; from < rows * columns; from++) /* and every part of it */
		for (int64_t n = 0; from + n <= rows * columns; n++) {
			float part[6] = { 0 };
			CU_ASSERT_EQUAL(vn_recording_read(r, i, from, n, part, &err), VN_OK);
			for (int64_t k = 0; k < n; k++)
				CU_ASSERT_EQUAL((double)part[k], x[from + k]);
		}
}

/* One tensor under two names in step 0, and filed under step 1 as well. */
static void a_view_is_of_one_step_and_of_all_its_names(void)
{
	static const double all[] = { 1, 2, 3, 4, 5, 6 }, second_row[] = { 4, 5, 6 }, columns[] = { 4, 5, 6 };
	hid_t step, f = make_file(&step), next = H5Gcreate2(f, "step.1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_int(next, "position", 0);
	put_int(next, "tokens", 2);
	H5Lcreate_hard(step, "embed", step, "final_norm", H5P_DEFAULT, H5P_DEFAULT);
	H5Lcreate_hard(step, "embed", next, "embed", H5P_DEFAULT, H5P_DEFAULT);
	H5Gclose(next);
	close_file(f, step);
	vn_recording  *r = opens();
	const vn_step *s;
	vn_error       err = { 0 };
	int            order[VN_MAX_RANK];

	CU_ASSERT_EQUAL(vn_view_rows(r, 0, 1, 2, &err), VN_ERR_USAGE); /* there are two */
	CU_ASSERT_EQUAL(vn_view_rows(r, 7, 0, 1, &err), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_view_rows(r, 0, 1, 1, &err), VN_OK);
	reads(r, 0, "embed", 1, 3, second_row);
	reads(r, 0, "final_norm", 1, 3, second_row);
	reads(r, 1, "embed", 2, 3, all);
	vn_recording_steps(r, &s);
	CU_ASSERT_EQUAL(s[0].first_row, 1);
	CU_ASSERT_EQUAL(s[0].rows, 1);
	CU_ASSERT_EQUAL(s[1].rows, 2);

	CU_ASSERT_TRUE(vn_view_order("token hidden", "hidden token", 2, order));
	vn_view_axes(r, vn_recording_find(r, 0, "final_norm"), order);
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

static void many_open_at_once_or_the_first_that_does_not_is_named(void)
{
	enum { N = 11, IDS = 50000 }; /* more files than are read at a time; ids of more than a piece of a pipe */
	static int32_t ids[IDS];
	const char    *list[N];
	char           one[sizeof path], two[sizeof path];
	vn_recording  *r[N];
	vn_error       err = { 0 };
	hid_t          step, f = make_file(&step);
	const int32_t *have;

	for (int i = 0; i < IDS; i++)
		ids[i] = 3 * i;
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "run/positions" : "run/token_ids";
		H5Ldelete(f, name, H5P_DEFAULT);
		H5Dclose(put_data(f, name, H5T_STD_I32LE, 1, (hsize_t[]) { IDS }, H5P_DEFAULT, ids));
	}
	close_file(f, step);
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

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_foreign_file_with_the_least_there_must_be_opens),
		TEST(what_nobody_reads_is_told),
		TEST(a_layer_that_is_not_said_is_the_name_s),
		TEST(big_endian_chunked_and_compressed_tensors_are_read),
		TEST(a_group_that_continues_another_adds_nothing_to_names),
		TEST(bfloat16_needs_its_mark),
		TEST(a_hard_link_is_a_second_name),
		TEST(a_view_is_of_one_step_and_of_all_its_names),
		TEST(an_incomplete_file_may_lack_anything),
		TEST(many_open_at_once_or_the_first_that_does_not_is_named),
		CU_TEST_INFO_NULL,
	};
	return run_recordings("recordings", tests);
}
