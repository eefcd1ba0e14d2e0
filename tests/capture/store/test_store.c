/* test_store.c: writing the checkpoint file (capture/store/store.h), judged by reading it back. */
#include "capture/file/object_header.h"
#include "tests/support/store_help.h"

#include <fcntl.h>
#include <hdf5.h>
#include <math.h>

static void what_is_written_is_read_back(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[T * D] = { 1, 2, 3, -4 };
	const void *data;
	vn_error    err = { 0 };
	int         v = vn_plan_find(p, "layer1.attn_norm");

	CU_ASSERT_EQUAL(put_tensor(s, v, VN_F32, T, D, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	CU_ASSERT_PTR_NULL(s);
	CU_ASSERT_FALSE(exists(partial));

	vn_recording *r = open_file(path);
	CU_ASSERT_TRUE(vn_recording_complete(r));
	CU_ASSERT_EQUAL(vn_recording_count(r), 1);
	CU_ASSERT_STRING_EQUAL(vn_facts_get(vn_recording_run(r), "engine"), "test");
	const int32_t *again;
	CU_ASSERT_EQUAL(vn_recording_tokens(r, &again, NULL), T);
	CU_ASSERT_EQUAL(memcmp(again, ids, sizeof ids), 0);
	int i = vn_recording_find(r, 0, "layer1.attn_norm");
	CU_ASSERT_EQUAL_FATAL(i, 0);
	const vn_entry *e = vn_recording_entry(r, i);
	CU_ASSERT_STRING_EQUAL(e->op, "rms_norm");
	CU_ASSERT_STRING_EQUAL(e->axes, "token hidden");
	CU_ASSERT_EQUAL(e->layer, 1);
	CU_ASSERT_EQUAL(vn_recording_stats(r, e)->max, 3);
	CU_ASSERT_EQUAL(vn_recording_stats(r, e)->min, -4);
	CU_ASSERT_EQUAL(vn_recording_stats(r, e)->absmax, 4);
	CU_ASSERT_STRING_EQUAL(vn_entry_digest(e).hex, vn_digest_of(x, sizeof x).hex);
	CU_ASSERT_EQUAL(vn_recording_data(r, i, &data, &err), VN_OK);
	CU_ASSERT_EQUAL(memcmp(data, x, sizeof x), 0);
	vn_recording_close(r);
	vn_plan_destroy(p);
	remove_files();
}

static void ids_may_come_with_their_steps(void)
{
	const float    x[D] = { 1 };
	const int32_t  all[] = { 1, 2, 3, 4, 5, 9, 0, 10 };
	const int32_t *again, *positions_again;
	vn_plan       *p = make_plan();
	vn_store      *s = begin_decoding(p, 3);
	vn_error       err = { 0 };
	const int      v = vn_plan_find(p, "layer0.attn_norm");

	CU_ASSERT_EQUAL(vn_store_step(s, &(vn_step) { 0, 0, T, T - 1, 1 }, &err), VN_OK);
	CU_ASSERT_EQUAL(put_tensor(s, v, VN_F32, 1, D, x, &err), VN_OK);
	for (int i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(vn_store_token(s, T + i - 1, all[T + i - 1], &err), VN_OK);
		CU_ASSERT_EQUAL(vn_store_step(s, &(vn_step) { i, T + i - 1, 1, 0, 1 }, &err), VN_OK);
		CU_ASSERT_EQUAL(put_tensor(s, v, VN_F32, 1, D, x, &err), VN_OK);
	}
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path); /* which refuses ids that are not those of their digest */
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_TRUE(vn_recording_complete(r));
	CU_ASSERT_EQUAL_FATAL(vn_recording_tokens(r, &again, &positions_again), T + 3);
	CU_ASSERT_EQUAL(memcmp(again, all, sizeof all), 0);
	CU_ASSERT_EQUAL(positions_again[T + 2], T + 2);
	vn_recording_close(r);
	remove_files();
	vn_plan_destroy(p);
}

static void a_run_cut_off_has_the_ids_of_the_steps_it_came_to(void)
{
	const float x[D] = { 1 };
	vn_plan    *p = make_plan();
	vn_store   *s = begin_decoding(p, 3);
	vn_error    err = { 0 };

	CU_ASSERT_EQUAL(vn_store_step(s, &(vn_step) { 0, 0, T, T - 1, 1 }, &err), VN_OK);
	CU_ASSERT_EQUAL(put_tensor(s, vn_plan_find(p, "layer0.attn_norm"), VN_F32, 1, D, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_token(s, T, 7, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_step(s, &(vn_step) { 1, T, 1, 0, 1 }, &err), VN_OK);
	vn_store_abandon(&s);
	vn_recording *r = open_file(partial);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_FALSE(vn_recording_complete(r));
	const int32_t *again;
	CU_ASSERT_EQUAL(vn_recording_tokens(r, &again, NULL), T + 1);
	CU_ASSERT_EQUAL(again[T], 7);
	vn_recording_close(r);
	remove_files();
	vn_plan_destroy(p);
}

static void what_tokens_say_comes_back(void)
{
	static char a[] = "The", b[] = "", c[] = " caf\xc3\xa9", d[] = "\\n", e[] = "\\xff";
	char *const text[T] = { a, b, c, d, e };
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	vn_error    err = { 0 };

	CU_ASSERT_EQUAL(vn_store_token_text(s, text, T, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	for (int i = 0; i < T; i++)
		CU_ASSERT_STRING_EQUAL(vn_recording_token_text(r)[i], text[i]);
	vn_recording_close(r);
	remove_files();
	s = begin_store(p, false);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	r = open_file(path);
	CU_ASSERT_PTR_NULL(vn_recording_token_text(r));
	vn_recording_close(r);
	vn_plan_destroy(p);
	remove_files();
}

static void every_dtype_comes_back_bit_for_bit(void)
{
	vn_plan      *p = make_plan();
	vn_store     *s = begin_store(p, false);
	unsigned char raw[T * D * 8];
	vn_error      err = { 0 };

	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (unsigned char)(i * 37 + 11);
	for (int d = 0; d < VN_N_DTYPES; d++) {
		CU_ASSERT_EQUAL(vn_store_step(s, &(vn_step) { d + 1, 0, T, 0, T }, &err), VN_OK);
		CU_ASSERT_EQUAL(put_tensor(s, 0, (vn_dtype)d, T, D, raw, &err), VN_OK);
	}
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	for (int d = 0; d < VN_N_DTYPES; d++) {
		const void *data;
		int         i = vn_recording_find(r, d + 1, "embed");
		CU_ASSERT_TRUE_FATAL(i >= 0);
		CU_ASSERT_EQUAL((int)vn_recording_entry(r, i)->dtype, d);
		CU_ASSERT_EQUAL(vn_recording_data(r, i, &data, &err), VN_OK);
		CU_ASSERT_EQUAL(memcmp(data, raw, T * D * vn_dtype_size((vn_dtype)d)), 0);
	}
	vn_recording_close(r);
	vn_plan_destroy(p);
	remove_files();
}

static void a_tensor_of_many_pieces_has_the_statistics_of_the_whole(void)
{
	enum { ROWS = T, COLUMNS = 600000, PIECE = 7777 }; /* three blocks; no piece fits a block */
	vn_plan  *p = make_plan();
	vn_store *s = begin_store(p, false);
	float    *x = malloc(sizeof *x * ROWS * COLUMNS);
	vn_sink   k = vn_store_sink(s);
	vn_shape  shape = { .rank = 2, .dim = { ROWS, COLUMNS } };
	vn_error  err = { 0 };

	for (int i = 0; i < ROWS * COLUMNS; i++)
		x[i] = sinf((float)i);
	x[123456] = NAN;
	x[2345678] = INFINITY;
	CU_ASSERT_EQUAL(k.begin(k.ctx, 0, VN_F32, &shape, &err), VN_OK);
	for (size_t at = 0; at < ROWS * COLUMNS; at += PIECE)
		CU_ASSERT_EQUAL(k.write(k.ctx, x + at, ROWS * COLUMNS - at < PIECE ? ROWS * COLUMNS - at : PIECE, &err), VN_OK);
	CU_ASSERT_EQUAL(k.end(k.ctx, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);

	vn_recording   *r = open_file(path);
	const vn_entry *e = vn_recording_entry(r, 0);
	vn_stats        whole = vn_stats_of(x, VN_F32, ROWS * COLUMNS);
	CU_ASSERT_EQUAL(vn_recording_stats(r, e)->nan, 1);
	CU_ASSERT_EQUAL(vn_recording_stats(r, e)->inf, 1);
	CU_ASSERT_EQUAL(vn_recording_stats(r, e)->mean, whole.mean);
	CU_ASSERT_EQUAL(vn_recording_stats(r, e)->rms, whole.rms);
	CU_ASSERT_STRING_EQUAL(vn_entry_digest(e).hex, vn_digest_of(x, sizeof *x * ROWS * COLUMNS).hex);
	vn_recording_close(r);
	free(x);
	vn_plan_destroy(p);
	remove_files();
}

static void statistics_of_nothing_but_nan_are_nan(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[T] = { NAN, NAN, NAN, NAN, NAN };
	vn_error    err = { 0 };

	CU_ASSERT_EQUAL(put_tensor(s, 0, VN_F32, T, 1, x, &err), VN_OK);
	CU_ASSERT_EQUAL(put_tensor(s, 1, VN_F32, T, 0, x, &err), VN_OK); /* and a tensor without elements */
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording   *r = open_file(path);
	const vn_entry *e = vn_recording_entry(r, 0);
	CU_ASSERT_EQUAL(vn_recording_stats(r, e)->nan, T);
	CU_ASSERT_TRUE(isnan(vn_recording_stats(r, e)->min) && isnan(vn_recording_stats(r, e)->max) &&
	               isnan(vn_recording_stats(r, e)->mean) && isnan(vn_recording_stats(r, e)->rms));
	const void *data = x;
	CU_ASSERT_EQUAL(vn_recording_data(r, 1, &data, &err), VN_OK);
	CU_ASSERT_PTR_NULL(data);
	vn_recording_close(r);
	vn_plan_destroy(p);
	remove_files();
}

static void second_names_are_the_same_tensor(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[T * D] = { 1 };
	bool       *want = calloc((size_t)p->n_values, sizeof *want);
	vn_error    err = { 0 };
	int         output = vn_plan_find(p, "layer0.output"), input = vn_plan_find(p, "layer1.input");

	want[output] = want[input] = true;
	CU_ASSERT_EQUAL(put_tensor(s, output, VN_F32, T, D, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_aliases(s, want, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	int           i = vn_recording_find(r, 0, "layer1.input");
	CU_ASSERT_EQUAL(vn_recording_count(r), 2);
	CU_ASSERT_TRUE_FATAL(i >= 0);
	CU_ASSERT_EQUAL(vn_recording_entry(r, i)->same_as, vn_recording_find(r, 0, "layer0.output"));
	vn_recording_close(r);
	free(want);
	vn_plan_destroy(p);
	remove_files();
}

/* HDF5 reads what the header reader leaves to it, ten times slower, and nobody would notice. */
static bool is_read_by_its_header(const char *object)
{
	typedef struct attributes {
		char    axes[64], digest[64];
		int64_t order;
		double  max;
	} attributes;
	static const vn_header_attribute list[] = {
		{ "axes", VN_ATTRIBUTE_TEXT, offsetof(attributes, axes), 64 },
		{ "digest", VN_ATTRIBUTE_TEXT, offsetof(attributes, digest), 64 },
		{ "order", VN_ATTRIBUTE_WHOLE, offsetof(attributes, order), 0 },
		{ "max", VN_ATTRIBUTE_REAL, offsetof(attributes, max), 0 },
	};
	const hid_t       f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
	vn_header_reader *r = calloc(1, sizeof *r);
	H5O_info_t        info;
	attributes        to;
	vn_object_header  h;
	struct stat       st;

	CU_ASSERT_TRUE_FATAL(r && f >= 0 && H5Oget_info_by_name2(f, object, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
	                     stat(path, &st) == 0);
	H5Fclose(f);
	r->fd = open(path, O_RDONLY);
	r->bytes = st.st_size;
	const bool good = vn_object_header_read(r, info.addr, list, 4, &to, &h) && h.found == 15;
	close(r->fd);
	free(r);
	return good;
}

static void what_is_written_is_read_without_hdf5(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[T * D] = { 1 };
	bool       *want = calloc((size_t)p->n_values, sizeof *want);
	vn_error    err = { 0 };
	int         output = vn_plan_find(p, "layer0.output"), norm = vn_plan_find(p, "layer1.attn_norm");

	want[output] = want[vn_plan_find(p, "layer1.input")] = true;
	CU_ASSERT_EQUAL(put_tensor(s, output, VN_F32, T, D, x, &err), VN_OK);
	CU_ASSERT_EQUAL(put_tensor(s, norm, VN_F32, T, D, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_aliases(s, want, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	CU_ASSERT_TRUE(is_read_by_its_header("step.0/layer1/attn_norm"));
	CU_ASSERT_TRUE(is_read_by_its_header("step.0/layer0/output")); /* of two names */
	free(want);
	vn_plan_destroy(p);
	remove_files();
}

static void too_few_and_too_many_numbers_are_refused(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	vn_sink     k = vn_store_sink(s);
	vn_shape    shape = { .rank = 1, .dim = { 4 } };
	const float x[8] = { 0 };
	vn_error    err = { 0 };

	CU_ASSERT_EQUAL(k.begin(k.ctx, 0, VN_F32, &shape, &err), VN_OK);
	CU_ASSERT_EQUAL(k.write(k.ctx, x, 5, &err), VN_ERR_SHAPE);
	CU_ASSERT_EQUAL(k.write(k.ctx, x, 3, &err), VN_OK);
	CU_ASSERT_EQUAL(k.end(k.ctx, &err), VN_ERR_SHAPE);
	/* The store stays usable, and nothing of that name is left. */
	CU_ASSERT_EQUAL(put_tensor(s, 1, VN_F32, T, 1, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_tensors(s, NULL), 1);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	CU_ASSERT_EQUAL(vn_recording_count(r), 1);
	vn_recording_close(r);
	vn_plan_destroy(p);
	remove_files();
}

static void a_large_tensor_that_was_never_ended_leaves_no_trace(void)
{
	enum { MANY = T * (3 << 16) }; /* four blocks */
	vn_plan  *p = make_plan();
	vn_store *s = begin_store(p, false);
	vn_sink   k = vn_store_sink(s);
	vn_shape  shape = { .rank = 1, .dim = { MANY } };
	float    *x = calloc(MANY, sizeof *x);
	vn_error  err = { 0 };

	CU_ASSERT_EQUAL(k.begin(k.ctx, 0, VN_F32, &shape, &err), VN_OK);
	CU_ASSERT_EQUAL(k.write(k.ctx, x, MANY / 2, &err), VN_OK);
	x[0] = 5;
	CU_ASSERT_EQUAL(put_tensor(s, 2, VN_F32, T, MANY / T, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	CU_ASSERT_EQUAL_FATAL(vn_recording_count(r), 1);
	CU_ASSERT_STRING_EQUAL(vn_recording_entry(r, 0)->name, p->value[2].name);
	CU_ASSERT_STRING_EQUAL(vn_entry_digest(vn_recording_entry(r, 0)).hex, vn_digest_of(x, sizeof *x * MANY).hex);
	vn_recording_close(r);
	free(x);
	vn_plan_destroy(p);
	remove_files();
}

static void a_name_is_written_once(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[4] = { 0 };
	vn_error    err = { 0 };

	put_tensor(s, 0, VN_F32, 1, 4, x, &err);
	put_tensor(s, 0, VN_F32, 1, 4, x, &err);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "embed is given twice"));
	CU_ASSERT_FALSE(exists(path));
	vn_plan_destroy(p);
	remove_files();
}

static void an_abandoned_store_leaves_a_partial_file_that_says_so(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[T * D] = { 1 };
	vn_sink     k = vn_store_sink(s);
	vn_shape    shape = { .rank = 2, .dim = { T, D } };
	vn_error    err = { 0 };

	put_tensor(s, 0, VN_F32, T, D, x, &err);
	k.begin(k.ctx, 2, VN_F32, &shape, &err); /* and one that is only half there */
	k.write(k.ctx, x, D, &err);
	vn_store_abandon(&s);
	CU_ASSERT_FALSE(exists(path));
	vn_recording *r = open_file(partial);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_FALSE(vn_recording_complete(r));
	CU_ASSERT_EQUAL(vn_recording_count(r), 1);
	vn_recording_close(r);
	vn_store_abandon(&s); /* safe on NULL */
	vn_plan_destroy(p);
	remove_files();
}

static void an_abandoned_store_without_tensors_leaves_nothing(void)
{
	vn_plan  *p = make_plan();
	vn_store *s = begin_store(p, false);
	vn_store_abandon(&s);
	CU_ASSERT_FALSE(exists(path) || exists(partial));
	vn_plan_destroy(p);
}

/* A foreign recording: names that are no points, no plan, and a run that was cut off. */
static void without_a_plan_tensors_are_given_by_name(void)
{
	static const char *const names[] = { "layer1.q_proj", "model", "model.norm" };
	const float              x[T] = { 1, 2, 3, 4, 5 };
	vn_store                *s = begin_store(NULL, false);
	vn_error                 err = { "" };
	const vn_model_words     words = { .family = "qwen2" };
	const vn_shape           shape = { .rank = 1, .dim = { T } };
	CU_ASSERT_EQUAL(vn_store_words(s, &words, NULL, 0, &err), VN_OK);
	for (int i = 0; i < 3; i++) {
		vn_tensor_label l = { .order = -1, .layer = vn_name_layer(names[i]), .axes = "token" };
		strcpy(l.name, names[i]);
		CU_ASSERT_EQUAL(vn_store_begin(s, &l, VN_F32, &shape, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_store_write(s, x, T, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_store_end(s, &err), VN_OK);
	}
	vn_store_cut(s);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_FALSE(vn_recording_complete(r));
	CU_ASSERT_STRING_EQUAL(vn_recording_family(r), "qwen2");
	CU_ASSERT_PTR_NULL(vn_recording_plan(r));
	CU_ASSERT_EQUAL(vn_recording_count(r), 3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(vn_recording_find(r, 0, names[i]) >= 0);
	vn_recording_close(r);
	remove_files();
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(what_is_written_is_read_back),
		TEST(what_tokens_say_comes_back),
		TEST(every_dtype_comes_back_bit_for_bit),
		TEST(a_tensor_of_many_pieces_has_the_statistics_of_the_whole),
		TEST(statistics_of_nothing_but_nan_are_nan),
		TEST(second_names_are_the_same_tensor),
		TEST(what_is_written_is_read_without_hdf5),
		TEST(too_few_and_too_many_numbers_are_refused),
		TEST(a_large_tensor_that_was_never_ended_leaves_no_trace),
		TEST(a_name_is_written_once),
		TEST(ids_may_come_with_their_steps),
		TEST(a_run_cut_off_has_the_ids_of_the_steps_it_came_to),
		TEST(an_abandoned_store_leaves_a_partial_file_that_says_so),
		TEST(an_abandoned_store_without_tensors_leaves_nothing),
		TEST(without_a_plan_tensors_are_given_by_name),
		CU_TEST_INFO_NULL,
	};
	return run_store_suite("store", tests);
}
