/* test_listen.c: the listener between an engine and a store: the values that a store gets of a call
 * while another sink listens to its scores. The engine here is a loop, and its numbers encode their
 * positions. */
#include "capture/run/listen.h"
#include "libref/plan/plan.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { V = 13, D = 6, H = 2, MOST = 4096 };

static vn_plan *plan;

static void make_plan(void)
{
	vn_builder *b = vn_plan_begin(1, V, 64);
	const int   table = vn_plan_weight(b, "embed", 2, (int64_t[]) { V, D }),
			  w = vn_plan_weight(b, "square", 2, (int64_t[]) { D, D });

	vn_plan_layer(b, -1);
	int x = vn_plan_embed(b, table, VN_POINT_EMBED);
	vn_plan_layer(b, 0);
	vn_plan_name(b, x, VN_POINT_INPUT);
	const int q = vn_plan_linear(b, x, w, -1, H, VN_POINT_Q_PROJ), k = vn_plan_linear(b, x, w, -1, H, VN_POINT_K_PROJ);
	const int v = vn_plan_linear(b, x, w, -1, H, VN_POINT_V_PROJ);
	x = vn_plan_linear(b, vn_plan_attention(b, q, k, v, 0.5, 0), w, -1, 0, VN_POINT_ATTN_OUT);
	vn_plan_layer(b, -1);
	vn_plan_linear(b, x, table, -1, 0, VN_POINT_LOGITS);
	if (vn_plan_finish(b, &plan, NULL))
		abort();
}

/* ---- what the store gets -------------------------------------------------------- */

typedef struct store {
	struct {
		vn_shape shape;
		int      n, ended;
		float    x[MOST];
	} value[32];
	int now, begun;
} store;

static vn_status store_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	store *s = ctx;
	(void)err;
	CU_ASSERT_EQUAL(dtype, VN_F32);
	s->now = value;
	s->begun++;
	s->value[value].shape = *shape;
	s->value[value].n = s->value[value].ended = 0;
	return VN_OK;
}

static vn_status store_write(void *ctx, const void *data, size_t n, vn_error *err)
{
	store *s = ctx;
	(void)err;
	CU_ASSERT_FATAL(n > 0 && s->value[s->now].n + (int)n <= MOST);
	memcpy(s->value[s->now].x + s->value[s->now].n, data, n * sizeof(float));
	s->value[s->now].n += (int)n;
	return VN_OK;
}

static vn_status store_end(void *ctx, vn_error *err)
{
	store *s = ctx;
	(void)err;
	s->value[s->now].ended++;
	return VN_OK;
}

/* ---- what the engine does ----------------------------------------------------------- */

/* Number k of the whole tensor of a call. */
static float number(int value, int64_t past, int64_t k)
{
	return (float)(value * 100000 + past * 1000 + k);
}

/* Passes the tapped values on, in pieces of at most `piece` numbers. */
static void forward(const vn_taps *t, int64_t past, int64_t tokens, int64_t piece)
{
	int64_t first, count;
	float   x[MOST];

	vn_taps_select(t, past, tokens, &first, &count);
	for (int v = 0; v < plan->n_values && count > 0; v++) {
		const vn_value *value = &plan->value[v];
		if (value->alias_of >= 0 || !t->want[v])
			continue;
		const vn_shape whole = vn_value_shape(value, tokens, past + tokens),
					   cut = vn_value_shape(value, count, past + tokens);
		int axis = 0, n = 0;
		while (axis < value->rank && value->size[axis] != VN_T)
			axis++;
		int64_t outer = 1, inner = 1;
		for (int i = 0; i < axis; i++)
			outer *= whole.dim[i];
		for (int i = axis + 1; i < whole.rank; i++)
			inner *= whole.dim[i];
		/* what has no token axis, a cache, is handed over whole */
		const int64_t from = axis < value->rank ? first : 0, rows = axis < value->rank ? count : 1;
		for (int64_t o = 0; o < outer; o++)
			for (int64_t k = from * inner; k < (from + rows) * inner; k++)
				x[n++] = number(v, past, o * tokens * inner + k);
		CU_ASSERT_EQUAL(t->sink.begin(t->sink.ctx, v, VN_F32, &cut, NULL), VN_OK);
		for (int i = 0; i < n; i += (int)piece)
			CU_ASSERT_EQUAL(t->sink.write(t->sink.ctx, x + i, (size_t)(n - i < piece ? n - i : piece), NULL), VN_OK);
		CU_ASSERT_EQUAL(t->sink.end(t->sink.ctx, NULL), VN_OK);
	}
}

/* ---- tests ---------------------------------------------------------------------------- */

static const char *const everything = "*", *const no_logits = "{embed,layer*}";

typedef struct setting {
	const char *glob;
	vn_tap_rows rows;
	int64_t     first, last;
} setting;

static void choose(const setting *o, bool *want, store *s, vn_taps *t)
{
	CU_ASSERT_EQUAL_FATAL(vn_taps_choose(plan, &o->glob, 1, NULL, want, NULL), VN_OK);
	*t = (vn_taps) { .want = want,
		             .rows = o->rows,
		             .first = o->first,
		             .last = o->last,
		             .sink = { .ctx = s, .begin = store_begin, .write = store_write, .end = store_end } };
}

/* A prompt of 7, then two single tokens: a store gets the same with and without a listener. */
static void a_store_gets_what_it_asked_for(const setting *o, int64_t piece)
{
	static store direct, through;
	bool         want[32];
	vn_taps      t, u;
	vn_listener  l;
	const int    logits = vn_plan_find(plan, "logits");

	memset(&direct, 0, sizeof direct);
	memset(&through, 0, sizeof through);
	choose(o, want, &direct, &t);
	choose(o, want, &through, &u);
	CU_ASSERT_EQUAL_FATAL(vn_listener_init(&l, plan, 0, &u, true, NULL), VN_OK);
	for (int64_t past = 0; past < 9; past += past ? 1 : 7) {
		const int64_t tokens = past ? 1 : 7;
		direct.begun = through.begun = 0;
		forward(&t, past, tokens, MOST);
		const vn_taps asked = vn_listener_taps(&l, past, tokens, true);
		forward(&asked, past, tokens, piece);
		CU_ASSERT_EQUAL(direct.begun, through.begun);
		for (int v = 0; v < plan->n_values; v++) {
			CU_ASSERT(vn_shape_equal(&direct.value[v].shape, &through.value[v].shape));
			CU_ASSERT_EQUAL(direct.value[v].n, through.value[v].n);
			CU_ASSERT_EQUAL(direct.value[v].ended, through.value[v].ended);
			CU_ASSERT_EQUAL(memcmp(direct.value[v].x, through.value[v].x, (size_t)direct.value[v].n * sizeof(float)),
			                0);
		}
		CU_ASSERT_TRUE(l.heard);
		CU_ASSERT_EQUAL(l.dtype, VN_F32);
		for (int k = 0; k < V; k++)
			CU_ASSERT_EQUAL(((const float *)l.row)[k], number(logits, past, (tokens - 1) * V + k));
	}
	vn_listener_finish(&l);
}

static void the_scores_are_heard_and_the_store_notices_nothing(void)
{
	const setting o[] = {
		{ everything, VN_ROWS_ALL, 0, 0 },   { everything, VN_ROWS_LAST, 0, 0 },  { everything, VN_ROWS_RANGE, 0, 0 },
		{ everything, VN_ROWS_RANGE, 2, 4 }, { everything, VN_ROWS_RANGE, 5, 7 }, { everything, VN_ROWS_RANGE, 8, 8 },
		{ everything, VN_ROWS_RANGE, 0, 8 }, { no_logits, VN_ROWS_ALL, 0, 0 },    { no_logits, VN_ROWS_LAST, 0, 0 },
		{ no_logits, VN_ROWS_RANGE, 1, 3 },  { no_logits, VN_ROWS_RANGE, 7, 8 },  { "logits", VN_ROWS_RANGE, 3, 3 },
	};
	static const int64_t piece[] = { 1, 2, 5, V, V + 1, 40, MOST };

	for (size_t i = 0; i < sizeof o / sizeof *o; i++)
		for (size_t k = 0; k < sizeof piece / sizeof *piece; k++)
			a_store_gets_what_it_asked_for(&o[i], piece[k]);
}

static void without_ears_nothing_more_is_asked_of_the_engine(void)
{
	const setting o = { no_logits, VN_ROWS_RANGE, 2, 4 };
	static store  s;
	bool          want[32];
	vn_taps       t;
	vn_listener   l;

	choose(&o, want, &s, &t);
	CU_ASSERT_EQUAL_FATAL(vn_listener_init(&l, plan, 0, &t, false, NULL), VN_OK);
	for (int64_t past = 0; past < 8; past += 7) {
		int64_t       first, count, own_first, own_count;
		const int64_t tokens = past ? 1 : 7;
		const vn_taps asked = vn_listener_taps(&l, past, tokens, true);
		vn_taps_select(&asked, past, tokens, &first, &count);
		vn_taps_select(&t, past, tokens, &own_first, &own_count);
		CU_ASSERT_EQUAL(count, own_count);
		CU_ASSERT(count == 0 || first == own_first);
		CU_ASSERT_FALSE(asked.want[vn_plan_find(plan, "logits")]);
	}
	vn_listener_finish(&l);
	CU_ASSERT_EQUAL_FATAL(vn_listener_init(&l, plan, 0, &t, true, NULL), VN_OK);
	const vn_taps quiet = vn_listener_taps(&l, 0, 7, false); /* not of this call */
	CU_ASSERT_FALSE(quiet.want[vn_plan_find(plan, "logits")]);
	forward(&quiet, 0, 7, 5);
	CU_ASSERT_FALSE(l.heard);
	vn_listener_finish(&l);
}

static void a_model_without_scores_is_refused(void)
{
	vn_builder *b = vn_plan_begin(1, V, 64);
	vn_plan    *other = NULL;
	vn_listener l;
	vn_error    err = { "" };
	bool        want[8] = { false };
	vn_taps     t = { .want = want };

	vn_plan_layer(b, -1);
	vn_plan_embed(b, vn_plan_weight(b, "embed", 2, (int64_t[]) { V, D }), VN_POINT_EMBED);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &other, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_listener_init(&l, other, 0, &t, true, &err), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no logits"));
	vn_listener_finish(&l);
	vn_plan_destroy(other);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_scores_are_heard_and_the_store_notices_nothing),
		TEST(without_ears_nothing_more_is_asked_of_the_engine),
		TEST(a_model_without_scores_is_refused),
		CU_TEST_INFO_NULL,
	};

	make_plan();
	const int failed = run_suite("listen", tests);
	vn_plan_destroy(plan);
	return failed;
}
