/* test_store.c: writing the checkpoint file (capture/store.h), judged by
 * reading it back, and what is left when writing ends badly. */
#include "capture/plan_json.h"
#include "capture/recording.h"
#include "capture/store.h"

#include <CUnit/Basic.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/vn-store-XXXXXX";
static char path[64], partial[80];

/* ---- a small plan: embed, two layers of norm and projection, a head ----------- */

enum { D = 8, H = 2, V = 11, L = 2, T = 5 };

static vn_plan *make_plan(void)
{
	vn_builder *b = vn_plan_begin(L, V, 64);
	vn_plan    *p = NULL;
	vn_rope     rope = { .theta = 10000, .rotary_dim = D / H };
	int         table = vn_plan_weight(b, "embed", 2, (int64_t[]){ V, D });
	int         x = vn_plan_embed(b, table, VN_POINT_EMBED);

	for (int l = 0; l < L; l++) {
		char name[32];
		vn_plan_layer(b, l);
		vn_plan_name(b, x, VN_POINT_INPUT);
		snprintf(name, sizeof name, "norm%d", l);
		int h = vn_plan_rms_norm(b, x, vn_plan_weight(b, name, 1, (int64_t[]){ D }), 1e-6, VN_POINT_ATTN_NORM);
		snprintf(name, sizeof name, "square%d", l);
		int w = vn_plan_weight(b, name, 2, (int64_t[]){ D, D });
		int q = vn_plan_rope(b, vn_plan_linear(b, h, w, -1, H, VN_POINT_Q_PROJ), &rope, VN_POINT_Q_ROPE);
		int k = vn_plan_linear(b, h, w, -1, H, VN_POINT_K_PROJ), v = vn_plan_linear(b, h, w, -1, H, VN_POINT_V_PROJ);
		int c = vn_plan_attention(b, q, k, v, 0.5, 0, VN_POINT_ATTN_CONTEXT);
		int o = vn_plan_linear(b, c, w, -1, 0, VN_POINT_ATTN_OUT);
		vn_plan_act(b, VN_SILU, o, VN_POINT_GATE_ACT, true);
		x = vn_plan_add(b, x, o, VN_POINT_OUTPUT);
	}
	vn_plan_layer(b, -1);
	vn_plan_linear(b, x, table, -1, 0, VN_POINT_LOGITS);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
	return p;
}

/* ---- helpers ---------------------------------------------------------------------- */

static const int32_t ids[] = { 1, 2, 3, 4, 5 }, positions[] = { 0, 1, 2, 3, 4 };

static vn_store *begin_store(const vn_plan *p, bool force)
{
	vn_store *s = NULL;
	vn_facts  f = { 0 };
	vn_error  err = { 0 };

	vn_facts_set(&f, "engine", "test");
	vn_facts_set(&f, "precision", "f32");
	if (vn_store_create(path, force, p, &s, &err) || vn_store_run(s, &f, ids, positions, T, &err) ||
	    vn_store_step(s, 0, 0, T, 0, T, &err))
		fprintf(stderr, "%s\n", err.text);
	return s;
}

static vn_status put(vn_store *s, int value, vn_dtype dtype, int64_t rows, int64_t columns, const void *data, vn_error *err)
{
	vn_sink   k = vn_store_sink(s);
	vn_shape  shape = { .rank = 2, .dim = { rows, columns } };
	vn_status st;

	(void)((st = k.begin(k.ctx, value, dtype, &shape, err)) ||
	       (st = k.write(k.ctx, data, (size_t)(rows * columns), err)) || (st = k.end(k.ctx, err)));
	return st;
}

static vn_recording *open_file(const char *name)
{
	vn_recording *r = NULL;
	vn_error      err = { 0 };
	if (vn_recording_open(name, &r, &err))
		fprintf(stderr, "%s\n", err.text);
	return r;
}

static bool exists(const char *name)
{
	struct stat st;
	return stat(name, &st) == 0;
}

static void clear(void)
{
	unlink(path);
	unlink(partial);
}

/* ---- tests -------------------------------------------------------------------------- */

static void what_is_written_is_read_back(void)
{
	vn_plan     *p = make_plan();
	vn_store    *s = begin_store(p, false);
	const float  x[T * D] = { 1, 2, 3, -4 };
	const void  *data;
	vn_error     err = { 0 };
	int          v = vn_plan_find(p, "layer1.attn_norm");

	CU_ASSERT_EQUAL(put(s, v, VN_F32, T, D, x, &err), VN_OK);
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
	CU_ASSERT_EQUAL(e->stats.max, 3);
	CU_ASSERT_EQUAL(e->stats.min, -4);
	CU_ASSERT_EQUAL(e->stats.absmax, 4);
	CU_ASSERT_STRING_EQUAL(e->digest.hex, vn_digest_of(x, sizeof x).hex);
	CU_ASSERT_EQUAL(vn_recording_data(r, i, &data, &err), VN_OK);
	CU_ASSERT_EQUAL(memcmp(data, x, sizeof x), 0);
	vn_recording_close(r);
	vn_plan_destroy(p);
	clear();
}

/* T ids that are known and `more` that are not, and no step yet. */
static vn_store *begin_decoding(const vn_plan *p, int64_t more)
{
	const size_t n = (size_t)(T + more);
	vn_store *s = NULL;
	int32_t  *id = malloc(n * sizeof *id), *at = malloc(n * sizeof *at);
	vn_facts  f = { 0 };
	vn_error  err = { 0 };

	for (size_t i = 0; i < n; i++) {
		id[i] = i < T ? ids[i] : -1;
		at[i] = (int32_t)i;
	}
	vn_facts_set(&f, "engine", "test");
	vn_facts_set(&f, "precision", "f32");
	if (vn_store_create(path, true, p, &s, &err) || vn_store_run(s, &f, id, at, (int64_t)n, &err))
		fprintf(stderr, "%s\n", err.text);
	free(id);
	free(at);
	return s;
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

	CU_ASSERT_EQUAL(vn_store_step(s, 0, 0, T, T - 1, 1, &err), VN_OK);
	CU_ASSERT_EQUAL(put(s, v, VN_F32, 1, D, x, &err), VN_OK);
	for (int i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(vn_store_token(s, T + i - 1, all[T + i - 1], &err), VN_OK);
		CU_ASSERT_EQUAL(vn_store_step(s, i, T + i - 1, 1, 0, 1, &err), VN_OK);
		CU_ASSERT_EQUAL(put(s, v, VN_F32, 1, D, x, &err), VN_OK);
	}
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path); /* which refuses ids that are not those of their digest */
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_TRUE(vn_recording_complete(r));
	CU_ASSERT_EQUAL_FATAL(vn_recording_tokens(r, &again, &positions_again), T + 3);
	CU_ASSERT_EQUAL(memcmp(again, all, sizeof all), 0);
	CU_ASSERT_EQUAL(positions_again[T + 2], T + 2);
	vn_recording_close(r);
	clear();
	vn_plan_destroy(p);
}

static void a_run_cut_off_has_the_ids_of_the_steps_it_came_to(void)
{
	const float x[D] = { 1 };
	vn_plan    *p = make_plan();
	vn_store   *s = begin_decoding(p, 3);
	vn_error    err = { 0 };

	CU_ASSERT_EQUAL(vn_store_step(s, 0, 0, T, T - 1, 1, &err), VN_OK);
	CU_ASSERT_EQUAL(put(s, vn_plan_find(p, "layer0.attn_norm"), VN_F32, 1, D, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_token(s, T, 7, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_step(s, 1, T, 1, 0, 1, &err), VN_OK);
	vn_store_abandon(&s);
	vn_recording *r = open_file(partial);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_FALSE(vn_recording_complete(r));
	const int32_t *again;
	CU_ASSERT_EQUAL(vn_recording_tokens(r, &again, NULL), T + 1);
	CU_ASSERT_EQUAL(again[T], 7);
	vn_recording_close(r);
	clear();
	vn_plan_destroy(p);
}

static void what_tokens_say_comes_back(void)
{
	static char    a[] = "The", b[] = "", c[] = " caf\xc3\xa9", d[] = "\\n", e[] = "\\xff";
	char *const    text[T] = { a, b, c, d, e };
	vn_plan       *p = make_plan();
	vn_store      *s = begin_store(p, false);
	vn_error       err = { 0 };

	CU_ASSERT_EQUAL(vn_store_token_text(s, text, T, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	for (int i = 0; i < T; i++)
		CU_ASSERT_STRING_EQUAL(vn_recording_token_text(r)[i], text[i]);
	vn_recording_close(r);
	clear();
	s = begin_store(p, false);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	r = open_file(path);
	CU_ASSERT_PTR_NULL(vn_recording_token_text(r));
	vn_recording_close(r);
	vn_plan_destroy(p);
	clear();
}

static void every_dtype_comes_back_bit_for_bit(void)
{
	vn_plan       *p = make_plan();
	vn_store      *s = begin_store(p, false);
	unsigned char  raw[T * D * 8];
	vn_error       err = { 0 };

	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (unsigned char)(i * 37 + 11);
	for (int d = 0; d < VN_N_DTYPES; d++) {
		CU_ASSERT_EQUAL(vn_store_step(s, d + 1, 0, T, 0, T, &err), VN_OK);
		CU_ASSERT_EQUAL(put(s, 0, (vn_dtype)d, T, D, raw, &err), VN_OK);
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
	clear();
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
	CU_ASSERT_EQUAL(e->stats.nan, 1);
	CU_ASSERT_EQUAL(e->stats.inf, 1);
	CU_ASSERT_EQUAL(e->stats.mean, whole.mean);
	CU_ASSERT_EQUAL(e->stats.rms, whole.rms);
	CU_ASSERT_STRING_EQUAL(e->digest.hex, vn_digest_of(x, sizeof *x * ROWS * COLUMNS).hex);
	vn_recording_close(r);
	free(x);
	vn_plan_destroy(p);
	clear();
}

static void statistics_of_nothing_but_nan_are_nan(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[T] = { NAN, NAN, NAN, NAN, NAN };
	vn_error    err = { 0 };

	CU_ASSERT_EQUAL(put(s, 0, VN_F32, T, 1, x, &err), VN_OK);
	CU_ASSERT_EQUAL(put(s, 1, VN_F32, T, 0, x, &err), VN_OK); /* and a tensor without elements */
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording   *r = open_file(path);
	const vn_entry *e = vn_recording_entry(r, 0);
	CU_ASSERT_EQUAL(e->stats.nan, T);
	CU_ASSERT_TRUE(isnan(e->stats.min) && isnan(e->stats.max) && isnan(e->stats.mean) && isnan(e->stats.rms));
	const void *data = x;
	CU_ASSERT_EQUAL(vn_recording_data(r, 1, &data, &err), VN_OK);
	CU_ASSERT_PTR_NULL(data);
	vn_recording_close(r);
	vn_plan_destroy(p);
	clear();
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
	CU_ASSERT_EQUAL(put(s, output, VN_F32, T, D, x, &err), VN_OK);
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
	clear();
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
	CU_ASSERT_EQUAL(put(s, 1, VN_F32, T, 1, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_tensors(s, NULL), 1);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	CU_ASSERT_EQUAL(vn_recording_count(r), 1);
	vn_recording_close(r);
	vn_plan_destroy(p);
	clear();
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
	CU_ASSERT_EQUAL(put(s, 2, VN_F32, T, MANY / T, x, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	CU_ASSERT_EQUAL_FATAL(vn_recording_count(r), 1);
	CU_ASSERT_STRING_EQUAL(vn_recording_entry(r, 0)->name, p->value[2].name);
	CU_ASSERT_STRING_EQUAL(vn_recording_entry(r, 0)->digest.hex, vn_digest_of(x, sizeof *x * MANY).hex);
	vn_recording_close(r);
	free(x);
	vn_plan_destroy(p);
	clear();
}

static void a_name_is_written_once(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[4] = { 0 };
	vn_error    err = { 0 };

	put(s, 0, VN_F32, 1, 4, x, &err);
	put(s, 0, VN_F32, 1, 4, x, &err);
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_ERR_FORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "embed is given twice"));
	CU_ASSERT_FALSE(exists(path));
	vn_plan_destroy(p);
	clear();
}

static void an_abandoned_store_leaves_a_partial_file_that_says_so(void)
{
	vn_plan    *p = make_plan();
	vn_store   *s = begin_store(p, false);
	const float x[T * D] = { 1 };
	vn_sink     k = vn_store_sink(s);
	vn_shape    shape = { .rank = 2, .dim = { T, D } };
	vn_error    err = { 0 };

	put(s, 0, VN_F32, T, D, x, &err);
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
	clear();
}

static void an_abandoned_store_without_tensors_leaves_nothing(void)
{
	vn_plan  *p = make_plan();
	vn_store *s = begin_store(p, false);
	vn_store_abandon(&s);
	CU_ASSERT_FALSE(exists(path) || exists(partial));
	vn_plan_destroy(p);
}

static void expect_refusal(const vn_plan *p, const char *to, bool force, const char *why)
{
	vn_store *s = NULL;
	vn_error  err = { 0 };
	CU_ASSERT_NOT_EQUAL(vn_store_create(to, force, p, &s, &err), VN_OK);
	CU_ASSERT_PTR_NULL(s);
	if (!strstr(err.text, why))
		fprintf(stderr, "expected '%s' in '%s'\n", why, err.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

static void bad_output_paths_are_refused_with_a_reason(void)
{
	vn_plan *p = make_plan();
	char     name[128];

	expect_refusal(p, dir, true, "is a directory");
	expect_refusal(p, "", true, "empty");
	expect_refusal(p, "/dev/null", true, "not a regular file");
	snprintf(name, sizeof name, "%s/none/x.h5", dir);
	expect_refusal(p, name, false, "No such file or directory");
	snprintf(name, sizeof name, "%s/", path);
	expect_refusal(p, name, false, "names a directory");
	CU_ASSERT_EQUAL(symlink("/etc/passwd", partial), 0);
	expect_refusal(p, path, false, "symbolic link");
	clear();
	vn_plan_destroy(p);
}

static void an_existing_file_is_replaced_by_force_alone(void)
{
	vn_plan  *p = make_plan();
	vn_error  err;
	int       fd = open(path, O_WRONLY | O_CREAT, 0600);

	CU_ASSERT_EQUAL(write(fd, "old", 3), 3);
	close(fd);
	expect_refusal(p, path, false, "exists already");
	vn_store *s = begin_store(p, true);
	CU_ASSERT_PTR_NULL(open_file(path)); /* still the old one */
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_OK);
	vn_recording *r = open_file(path);
	CU_ASSERT_PTR_NOT_NULL(r);
	vn_recording_close(r);
	vn_plan_destroy(p);
	clear();
}

static void a_file_that_appears_meanwhile_is_not_replaced(void)
{
	vn_plan  *p = make_plan();
	vn_store *s = begin_store(p, false);
	vn_error  err;

	close(open(path, O_WRONLY | O_CREAT, 0600));
	CU_ASSERT_EQUAL(vn_store_commit(&s, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "appeared"));
	CU_ASSERT_TRUE(exists(partial));
	vn_plan_destroy(p);
	clear();
}

static void a_second_writer_is_refused(void)
{
	vn_plan  *p = make_plan();
	vn_store *s = begin_store(p, false);
	expect_refusal(p, path, true, "another process is writing it");
	vn_store_abandon(&s);
	s = begin_store(p, false);
	CU_ASSERT_PTR_NOT_NULL(s);
	vn_store_abandon(&s);
	vn_plan_destroy(p);
	clear();
}

/* In a child, because the limit is for good. */
static void a_full_disk_is_an_error_and_what_was_whole_stays(void)
{
	pid_t child = fork();
	int   status;

	if (child == 0) {
		vn_plan      *p = make_plan();
		vn_store     *s = begin_store(p, false);
		struct rlimit most = { 300 << 10, 300 << 10 };
		float        *x = calloc(1 << 20, sizeof *x);
		vn_error      err = { 0 };
		signal(SIGXFSZ, SIG_DFL); /* create ignores it itself; a parent may have done so before */
		vn_store_abandon(&s);
		s = begin_store(p, false);
		setrlimit(RLIMIT_FSIZE, &most);
		put(s, 0, VN_F32, T, 200, x, &err);
		put(s, 2, VN_F32, T, 1 << 17, x, &err);
		vn_status st = vn_store_commit(&s, &err);
		_exit(st == VN_ERR_IO && strstr(err.text, "attn_norm") && strstr(err.text, "File too large") ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_FALSE(exists(path));
	vn_recording *r = open_file(partial);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_FALSE(vn_recording_complete(r));
	CU_ASSERT_TRUE(vn_recording_find(r, 0, "embed") >= 0);
	CU_ASSERT_EQUAL(vn_recording_count(r), 1);
	vn_recording_close(r);
	clear();
}

/* 4 MiB of address space are left: less than HDF5 may need, which ends the program
 * where it gets none. */
static void want_of_memory_is_an_error_and_what_was_whole_stays(void)
{
	pid_t child = fork();
	int   status;

	if (child == 0) {
		vn_plan      *p = make_plan();
		vn_store     *s = begin_store(p, false);
		struct rlimit most = { 0 };
		float         x[T * D] = { 0 };
		long long     pages = 0;
		vn_error      err = { "" };
		put(s, 0, VN_F32, T, D, x, &err);
		vn_store_aliases(s, (bool[64]){ false }, &err); /* waits for what was put */
		FILE *f = fopen("/proc/self/statm", "r");
		if (!f || fscanf(f, "%lld", &pages) != 1)
			_exit(2);
		fclose(f);
		most.rlim_cur = most.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)4 << 20);
		setrlimit(RLIMIT_AS, &most);
		vn_status st = VN_OK;
		for (int v = 2; v < 8 && !st; v++)
			st = put(s, v, VN_F32, T, D, x, &err);
		if (!st)
			st = vn_store_commit(&s, &err);
		vn_store_abandon(&s);
		_exit(st == VN_ERR_NOMEM && strstr(err.text, "no memory for HDF5 to write it") ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_FALSE(exists(path));
	vn_recording *r = open_file(partial);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_FALSE(vn_recording_complete(r));
	CU_ASSERT_EQUAL(vn_recording_count(r), 1);
	vn_recording_close(r);
	clear();
}

/* The first words of a file are its signature, written last of the first things. */
static bool begun(const char *name)
{
	char  first[8] = "";
	FILE *f = fopen(name, "rb");
	bool  good = f && fread(first, 1, 8, f) == 8 && memcmp(first, "\211HDF\r\n\032\n", 8) == 0;

	if (f)
		fclose(f);
	return good;
}

/* A child writes steps as fast as it can, which go to disk ten times a second, and
 * is killed at a random moment. */
static void after_kill_9_the_partial_file_opens(void)
{
	enum { MOST = 20000 };
	int opened = 0, tensors = 0, decoded = 0;

	srand(1);
	for (int turn = 0; turn < 50; turn++) {
		vn_plan *p = make_plan();
		pid_t    child = fork();
		if (child == 0) {
			vn_store   *s = begin_decoding(p, MOST);
			const float x[T * D] = { 1 };
			bool        want[64];
			vn_error    err;
			memset(want, 1, sizeof want);
			for (int n = 0; n <= MOST; n++) {
				if (n)
					vn_store_token(s, T + n - 1, 1000 + n, &err);
				vn_store_step(s, n, n ? T + n - 1 : 0, n ? 1 : T, 0, n ? 1 : T, &err);
				for (int v = 0; v < p->n_values; v++)
					if (p->value[v].alias_of < 0 && p->value[v].size[0] == VN_T)
						put(s, v, VN_F32, n ? 1 : T, D, x, &err);
				vn_store_aliases(s, want, &err);
			}
		}
		usleep((useconds_t)(rand() % 250000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		vn_plan_destroy(p);
		struct stat   st;
		vn_error      err = { 0 };
		vn_recording *r = NULL;
		if (stat(partial, &st) != 0 || !begun(partial))
			continue; /* killed before its first word was whole */
		if (vn_recording_open(partial, &r, &err))
			fprintf(stderr, "turn %d: %s\n", turn, err.text);
		CU_ASSERT_PTR_NOT_NULL_FATAL(r);
		CU_ASSERT_FALSE(vn_recording_complete(r));
		/* No tensor is there that is not whole. */
		for (int i = 0; i < vn_recording_count(r); i++) {
			const void     *data;
			const vn_entry *e = vn_recording_entry(r, i);
			CU_ASSERT_EQUAL(vn_recording_data(r, i, &data, &err), VN_OK);
			CU_ASSERT_STRING_EQUAL(vn_digest_of(data, (size_t)vn_shape_count(&e->shape) * 4).hex, e->digest.hex);
		}
		/* Every step has its token, and no token is made up. */
		const int32_t *id;
		const vn_step *step;
		const int64_t  n = vn_recording_tokens(r, &id, NULL);
		const int      steps = vn_recording_steps(r, &step);
		for (int64_t i = T; i < n; i++)
			CU_ASSERT_EQUAL(id[i], 1001 + i - T);
		CU_ASSERT_TRUE(steps == 0 || n >= T + steps - 1);
		decoded += steps > 1;
		opened++;
		tensors += vn_recording_count(r);
		vn_recording_close(r);
	}
	CU_ASSERT_TRUE(opened > 20);
	CU_ASSERT_TRUE(tensors > 100);
	CU_ASSERT_TRUE(decoded > 10);
	clear();
}

static void a_plan_survives_the_way_through_text(void)
{
	vn_plan     *p = make_plan(), *q = NULL;
	vn_plan_text t;
	vn_error     err = { 0 };

	p->value[vn_plan_find(p, "layer0.q_rope")].wide = true;
	CU_ASSERT_EQUAL(vn_plan_to_text(p, &t, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_OK);
	if (!q)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(q);
	CU_ASSERT_EQUAL(q->n_states, p->n_states);
	for (int i = 0; i < p->n_states && i < q->n_states; i++) { /* not memcmp: there is a gap behind `wide` */
		const vn_state *a = &p->state[i], *b = &q->state[i];
		CU_ASSERT_TRUE(a->node == b->node && a->value == b->value && a->input == b->input && a->wide == b->wide &&
		               a->rank == b->rank && memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) == 0);
	}
	CU_ASSERT_EQUAL_FATAL(q->n_nodes, p->n_nodes);
	CU_ASSERT_EQUAL_FATAL(q->n_values, p->n_values);
	for (int i = 0; i < p->n_values; i++) {
		const vn_value *a = &p->value[i], *b = &q->value[i];
		CU_ASSERT_STRING_EQUAL(a->name, b->name);
		CU_ASSERT_TRUE(a->point == b->point && a->layer == b->layer && a->node == b->node && a->slot == b->slot &&
		               a->alias_of == b->alias_of && a->rank == b->rank && a->last_use == b->last_use &&
		               a->on_demand == b->on_demand && a->wide == b->wide && memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) == 0);
	}
	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node *a = &p->node[i], *b = &q->node[i];
		CU_ASSERT_TRUE(a->op == b->op && a->layer == b->layer && a->n_in == b->n_in && a->n_w == b->n_w &&
		               a->n_out == b->n_out);
		for (int k = 0; vn_const_name(a->op, k); k++)
			CU_ASSERT_EQUAL(vn_const_get(a, k), vn_const_get(b, k));
	}
	vn_plan_destroy(q);
	vn_plan_destroy(p);
	vn_plan_text_free(&t);
}

/* LongRoPE's lists stand in the nodes that use them. */
static void lists_of_a_plan_survive_the_way_through_text(void)
{
	vn_builder  *b = vn_plan_begin(0, 8, 64);
	vn_plan     *p = NULL, *q = NULL;
	vn_plan_text t;
	vn_error     err = { 0 };
	vn_rope      rope = { .type = VN_ROPE_LONGROPE, .theta = 1e4, .rotary_dim = 4, .factor = 4, .original_context = 16, .max_context = 64,
	                      .short_factor = vn_plan_list(b, 2, (float[]){ 1, 1.1f }), .long_factor = vn_plan_list(b, 2, (float[]){ 2, 4.7f }) };
	const int    x = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]){ 8, 8 }), VN_POINT_EMBED);

	vn_plan_rope(b, vn_plan_slice(b, x, 8, 0, 8, 2, VN_POINT_Q_PROJ), &rope, VN_POINT_Q_ROPE);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_plan_to_text(p, &t, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.node[2], "\"short_factor\": [1, 1.10000002384185"));
	CU_ASSERT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(q);
	CU_ASSERT_EQUAL(q->n_lists, 2);
	CU_ASSERT_TRUE(vn_plan_equal(p, q));
	vn_plan_destroy(q);

	const struct { const char *from, *to; } bad[] = { { "[1, 1.1", "[1, \"1\", 1.1" }, { "[1, 1.1", "[1, 1e39, 1.1" }, { "[1, 1.1", "[1, 2, 1.1" },
	                                                  { "\"theta\": 10000", "\"theta\": []" }, { "\"factor\": 4,", "\"factor\": 4, \"other\": 1," },
	                                                  { "\"long_factor\": [2, 4.6999998092651367]", "\"long_factor\": 1" } };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *line = t.node[2], *at = strstr(line, bad[i].from), *now = NULL;
		CU_ASSERT_TRUE_FATAL(at && asprintf(&now, "%.*s%s%s", (int)(at - line), line, bad[i].to, at + strlen(bad[i].from)) > 0);
		t.node[2] = now;
		CU_ASSERT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NULL(q);
		t.node[2] = line;
		free(now);
	}
	vn_plan_destroy(p);
	vn_plan_text_free(&t);
}

/* The line without what stands from `from` up to `to`. */
static void cut_out(char *line, const char *from, const char *to)
{
	char *a = strstr(line, from), *b = a ? strstr(a, to) : NULL;

	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	memmove(a, b, strlen(b) + 1);
}

/* As they were before a cache could be a checkpoint: three outputs, and a
 * constant with the number of the cache; and no constant that came later. */
static void a_plan_of_an_older_file_still_opens(void)
{
	vn_plan     *p = make_plan(), *q = NULL;
	vn_plan_text t;
	vn_error     err = { 0 };
	int          attentions = 0, kept = 0;

	CU_ASSERT_EQUAL_FATAL(vn_plan_to_text(p, &t, &err), VN_OK);
	for (int i = 0; i < t.n_nodes; i++) {
		char *now;
		if (strstr(t.node[i], "\"rms_norm\""))
			cut_out(t.node[i], ", \"offset\"", "}");
		if (strstr(t.node[i], "\"linear\""))
			cut_out(t.node[i], "\"transposed\"", "}");
		if (strstr(t.node[i], "\"rope\""))
			cut_out(t.node[i], ", \"short_factor\"", "}");
		if (!strstr(t.node[i], "\"attention\""))
			continue;
		cut_out(strstr(t.node[i], "\"out\""), ", \"layer", "], \"const\"");
		char *at = strstr(t.node[i], "\"window\"");
		CU_ASSERT_TRUE_FATAL(asprintf(&now, "%.*s\"cache\": %d, %s", (int)(at - t.node[i]), t.node[i], attentions++, at) > 0);
		free(t.node[i]);
		t.node[i] = now;
	}
	for (int i = 0; i < t.n_values; i++)
		if (strstr(t.value[i], "_cache\"") || strstr(t.value[i], "attn_scores\"") || strstr(t.value[i], "attn_probs\""))
			free(t.value[i]);
		else
			t.value[kept++] = t.value[i];
	t.n_values = kept;
	CU_ASSERT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_OK);
	if (!q)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(q);
	CU_ASSERT_EQUAL(attentions, L);
	CU_ASSERT_EQUAL(q->n_states, p->n_states);
	for (int i = 0; i < q->n_states; i++)
		CU_ASSERT_EQUAL(q->state[i].value, -1);
	vn_plan_destroy(q);
	vn_plan_destroy(p);
	vn_plan_text_free(&t);
}

/* Each line with one word exchanged for another must be refused. */
static void a_plan_that_breaks_a_rule_is_refused(void)
{
	static const struct { const char *from, *to, *why; } change[] = {
		{ "\"op\": \"rope\"", "\"op\": \"ropf\"", "op is none we know" },
		{ "\"rotary_dim\": 4", "\"rotary_dim\": 6", "do not fit" },
		{ "\"rotary_dim\": 4", "\"rotary_dim\": -4", "constant" },
		{ "\"theta\": 10000", "\"beta\": 10000", "constant" },
		{ "\"max_context\": 0, ", "", "constant is missing" },
		{ "\"heads\": 2", "\"heads\": 4", "do not fit" },
		{ "\"kv_heads\": 2", "\"kv_heads\": 0", "constant" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [\"layer1.attn_norm\"]", "made later" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [\"layer0.q_rope\"]", "made later" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [null]", "input is missing" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [\"nothing\"]", "does not have" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": []", "number of inputs" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [\"layer0.input\"]", "second name" },
		{ "\"out\": [\"layer0.q_rope\"]", "\"out\": [\"layer0.q_proj\"]", "made twice" },
		{ "\"out\": [\"layer0.q_rope\"]", "\"out\": [\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]", "too long" },
		{ "\"weights\": [\"norm0\"]", "\"weights\": [null]", "weight is missing" },
		{ "\"weights\": [\"norm0\"]", "\"weights\": [\"embed\"]", "do not fit" },
		{ "\"layer\": 1", "\"layer\": 2", "layer" },
		{ "\"sizes\": [\"T\", 8]", "\"sizes\": [\"T\", 9]", "" },
		{ "\"sizes\": [\"T\", 8]", "\"sizes\": [\"T\", 4611686018427387904]", "sizes" },
		{ "\"sizes\": [\"T\", 8]", "\"sizes\": [1,1,1,1,1]", "sizes" },
		{ "\"alias_of\": \"embed\"", "\"alias_of\": \"layer0.input\"", "second name" },
		{ "\"alias_of\": \"embed\"", "\"alias_of\": \"logits\"", "second name" },
		{ "\"alias_of\": \"embed\"", "\"alias_of\": null", "no node makes it" },
		{ "\"name\": \"logits\"", "\"name\": \"embed\"", "twice" },
		{ "\"shape\": [8, 8]", "\"shape\": [8, 0]", "sizes" },
		{ "\"shape\": [8, 8]", "\"shape\": [8, 8, 1, 1, 1]", "shape" },
		{ "{", "[", "not a JSON object" },
	};
	vn_plan     *p = make_plan(), *q;
	vn_plan_text t;
	vn_error     err = { 0 };

	CU_ASSERT_EQUAL_FATAL(vn_plan_to_text(p, &t, &err), VN_OK);
	for (size_t c = 0; c < sizeof change / sizeof *change; c++) {
		char **line[] = { t.weight, t.value, t.node };
		int    n[] = { t.n_weights, t.n_values, t.n_nodes };
		bool   done = false;
		for (int k = 0; k < 3 && !done; k++)
			for (int i = 0; i < n[k] && !done; i++) {
				char *at = strstr(line[k][i], change[c].from), *old = line[k][i], *now;
				if (!at)
					continue;
				done = true;
				CU_ASSERT_TRUE_FATAL(asprintf(&now, "%.*s%s%s", (int)(at - old), old, change[c].to,
				                              at + strlen(change[c].from)) > 0);
				line[k][i] = now;
				*err.text = '\0';
				CU_ASSERT_NOT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_OK);
				CU_ASSERT_PTR_NULL(q);
				if (!strstr(err.text, change[c].why))
					fprintf(stderr, "%s: expected '%s' in '%s'\n", change[c].to, change[c].why, err.text);
				CU_ASSERT_PTR_NOT_NULL(strstr(err.text, change[c].why));
				vn_plan_destroy(q);
				line[k][i] = old;
				free(now);
			}
		if (!done)
			fprintf(stderr, "no line has %s\n", change[c].from);
		CU_ASSERT_TRUE(done);
	}
	vn_plan_text_free(&t);
	vn_plan_destroy(p);
}

#define TEST(name) { #name, name }

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(what_is_written_is_read_back),
		TEST(what_tokens_say_comes_back),
		TEST(every_dtype_comes_back_bit_for_bit),
		TEST(a_tensor_of_many_pieces_has_the_statistics_of_the_whole),
		TEST(statistics_of_nothing_but_nan_are_nan),
		TEST(second_names_are_the_same_tensor),
		TEST(too_few_and_too_many_numbers_are_refused),
		TEST(a_large_tensor_that_was_never_ended_leaves_no_trace),
		TEST(a_name_is_written_once),
		TEST(ids_may_come_with_their_steps),
		TEST(a_run_cut_off_has_the_ids_of_the_steps_it_came_to),
		TEST(an_abandoned_store_leaves_a_partial_file_that_says_so),
		TEST(an_abandoned_store_without_tensors_leaves_nothing),
		TEST(bad_output_paths_are_refused_with_a_reason),
		TEST(an_existing_file_is_replaced_by_force_alone),
		TEST(a_file_that_appears_meanwhile_is_not_replaced),
		TEST(a_second_writer_is_refused),
		TEST(a_full_disk_is_an_error_and_what_was_whole_stays),
		TEST(want_of_memory_is_an_error_and_what_was_whole_stays),
		TEST(after_kill_9_the_partial_file_opens),
		TEST(a_plan_survives_the_way_through_text),
		TEST(lists_of_a_plan_survive_the_way_through_text),
		TEST(a_plan_of_an_older_file_still_opens),
		TEST(a_plan_that_breaks_a_rule_is_refused),
		CU_TEST_INFO_NULL
	};
	CU_SuiteInfo suites[] = { { "store", NULL, NULL, NULL, NULL, tests }, CU_SUITE_INFO_NULL };

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof path, "%s/run.h5", dir);
	snprintf(partial, sizeof partial, "%s.partial", path);
	if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return 1;
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	unsigned failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	rmdir(dir);
	return failed != 0;
}
