/* test_attend.c: tests compare/trial/attend.c. */
#include "compare/trial/attend.h"
#include "tests/support/attention_help.h"

enum { CALL = 12, NEAR = 7 }; /* a query that sees keys 0 to 7 */

typedef struct opened {
	explained      e;
	vn_attend_case a;
} opened;

static void open_attention(opened *o, const char *point)
{
	const mistake none = { 0 };

	make_up_inputs();
	attend_all(&none, 0, CALL);
	const given of[] = {
		{ "layer1.q_rope", q }, { "layer1.k_rope", k }, { "layer1.v_proj", v }, { "layer1.attn_context", context }
	};
	compare_given(&o->e, CALL, 0, of, 4);
	stand_at(&o->e, point, 0);
	CU_ASSERT_TRUE_FATAL(vn_attend_open(&o->a, &o->e.t, node_named(&o->e, point)));
}

static void close_attention(opened *o)
{
	vn_attend_close(&o->a);
	end_explained(&o->e);
}

/* Checks that row NEAR under the edit equals the mistake's result. */
static void makes(const vn_applied_attention *edit, const mistake *m)
{
	opened o;
	double y[H * K], p[TOKENS], want[K];

	open_attention(&o, "layer1.attn_context");
	CU_ASSERT_EQUAL(vn_attend_width(&o.a), K);
	CU_ASSERT_EQUAL(vn_attend_at(&o.a, CALL, 5, 2), (5 * H + 2) * K);
	vn_attend_prepare(&o.a, edit);
	vn_attend_row(&o.a, edit, NEAR, NULL, y);
	for (int h = 0; h < H; h++) {
		attend(m, NEAR, h, p, want);
		for (int d = 0; d < K; d++)
			CU_ASSERT_DOUBLE_EQUAL(y[h * K + d], want[d], 1e-12);
	}
	close_attention(&o);
}

static void calls_recorded_as_one_see_other_keys(void)
{
	/* a call of 5 tokens from 5 on: position 7 is its third */
	makes(&(vn_applied_attention) { .kind = VN_ATTEND_CALLS_FROM_ZERO, .call = 5 }, &(mistake) { .last = 2 });
	makes(&(vn_applied_attention) { .kind = VN_ATTEND_CALLS_ALONE, .call = 5 }, &(mistake) { .first = 5, .last = 7 });
}

static void a_sink_takes_its_share(void)
{
	makes(&(vn_applied_attention) { .kind = VN_ATTEND_SINK, .number = 1.5 }, &(mistake) { .sink = 1.5 });
	makes(&(vn_applied_attention) { .kind = VN_ATTEND_SINK, .number = 9 }, &(mistake) { .sink = 9 });
	makes(&(vn_applied_attention) { .kind = VN_ATTEND_SUM_PLUS, .number = 1 }, &(mistake) { .plus = 1 });
}

static void scores_are_capped(void)
{
	makes(&(vn_applied_attention) { .kind = VN_ATTEND_CAP, .number = 2 }, &(mistake) { .cap = 2 });
}

/* Row NEAR of head 0 under the edit, of a model whose scores have a cap of 5 and a sink of 1.5, is
 * that of the mistake. */
static void makes_in_such_a_model(const vn_applied_attention *edit, const mistake *m)
{
	double  y[H * K], p[TOKENS], want[K];
	opened  o;
	vn_node n;

	open_attention(&o, "layer1.attn_context");
	n = *o.a.n;
	n.c.attention.cap = 5;
	o.a.n = &n;
	o.a.sink[0] = 1.5;
	vn_attend_prepare(&o.a, edit);
	vn_attend_row(&o.a, edit, NEAR, NULL, y);
	attend(m, NEAR, 0, p, want);
	for (int d = 0; d < K; d++)
		CU_ASSERT_DOUBLE_EQUAL(y[d], want[d], 1e-12);
	CU_ASSERT_TRUE(vn_attend_applies(&o.a, &(vn_applied_attention) { .kind = VN_ATTEND_SINK }));
	n.w[VN_ATTN_SINKS] = 0;
	CU_ASSERT_FALSE(vn_attend_applies(&o.a, &(vn_applied_attention) { .kind = VN_ATTEND_SINK }));
	close_attention(&o);
}

static void a_model_with_caps_and_sinks_keeps_them(void)
{
	makes_in_such_a_model(&(vn_applied_attention) { .kind = VN_ATTEND_ROUNDED }, &(mistake) { .cap = 5, .sink = 1.5 });
	makes_in_such_a_model(&(vn_applied_attention) { .kind = VN_ATTEND_CAP, .number = 2 },
	                      &(mistake) { .cap = 2, .sink = 1.5 });
}

/* bfloat16 has 8 significant bits, including the leading one. */
static double bf16(double x)
{
	int          e;
	const double m = frexp(x, &e);
	return ldexp(rint(ldexp(m, 8)), e - 8);
}

static void scores_and_probabilities_are_rounded(void)
{
	makes(&(vn_applied_attention) { .kind = VN_ATTEND_ROUNDED, .scores = VN_FORMAT_BF16 },
	      &(mistake) { .score = bf16 });
	makes(&(vn_applied_attention) { .kind = VN_ATTEND_ROUNDED, .probs = VN_FORMAT_BF16 }, &(mistake) { .prob = bf16 });
}

/* Keys and values in 127 steps of the largest of a token and head. */
static void a_cache_in_eight_bits_has_a_scale_for_each_token_and_head(void)
{
	const vn_applied_attention edit = { .kind = VN_ATTEND_ROUNDED, .cache = VN_FORMAT_INT8, .scaled = true };
	const mistake              none = { 0 };
	double                     y[H * K], p[TOKENS], want[K];
	opened                     o;

	open_attention(&o, "layer1.attn_context");
	vn_attend_prepare(&o.a, &edit);
	vn_attend_row(&o.a, &edit, NEAR, NULL, y);
	for (int row = 0; row < CALL * G; row++)
		for (int of = 0; of < 2; of++) {
			float *x = (of ? v : k) + row * K, most = 0;
			for (int d = 0; d < K; d++)
				most = fmaxf(most, fabsf(x[d]));
			for (int d = 0; d < K; d++)
				x[d] = (float)(rint((double)x[d] / ((double)most / 127)) * ((double)most / 127));
		}
	for (int h = 0; h < H; h++) {
		attend(&none, NEAR, h, p, want);
		for (int d = 0; d < K; d++)
			CU_ASSERT_DOUBLE_EQUAL(y[h * K + d], want[d], 1e-6);
	}
	close_attention(&o);
}

static float probs[H * CALL * CALL];

/* A case at the probabilities, which a recording has as (head, token, key). */
static void open_probs(opened *o)
{
	const mistake none = { 0 };
	double        p[TOKENS], y[K];

	make_up_inputs();
	for (int h = 0; h < H; h++)
		for (int t = 0; t < CALL; t++) {
			attend(&none, t, h, p, y);
			for (int j = 0; j < CALL; j++)
				probs[(h * CALL + t) * CALL + j] = (float)p[j];
		}
	const given of[] = {
		{ "layer1.q_rope", q }, { "layer1.k_rope", k }, { "layer1.v_proj", v }, { "layer1.attn_probs", probs }
	};
	compare_given(&o->e, CALL, 0, of, 4);
	stand_at(&o->e, "layer1.attn_probs", 0);
	CU_ASSERT_TRUE_FATAL(vn_attend_open(&o->a, &o->e.t, node_named(&o->e, "layer1.attn_probs")));
}

static void probabilities_are_a_row_of_all_keys(void)
{
	const vn_applied_attention cap = { .kind = VN_ATTEND_CAP, .number = 2 };
	const mistake              capped = { .cap = 2 };
	double                     y[H * CALL], p[TOKENS], none[K];
	opened                     o;

	open_probs(&o);
	CU_ASSERT_EQUAL(vn_attend_width(&o.a), CALL);
	CU_ASSERT_EQUAL(vn_attend_at(&o.a, CALL, 5, 2), (2 * CALL + 5) * CALL);
	vn_attend_prepare(&o.a, &cap);
	vn_attend_row(&o.a, &cap, NEAR, NULL, y);
	for (int h = 0; h < H; h++) {
		attend(&capped, NEAR, h, p, none);
		for (int j = 0; j < CALL; j++)
			CU_ASSERT_DOUBLE_EQUAL(y[h * CALL + j], p[j], 1e-12);
	}
	close_attention(&o);
}

/* A probability in the middle between two of bfloat16 goes to the candidate's
 * side; others do not. */
static void what_lies_in_the_middle_goes_where_the_candidate_says(void)
{
	const vn_applied_attention edit = { .kind = VN_ATTEND_ROUNDED, .probs = VN_FORMAT_BF16 };
	const double               up = 1 + 0x1p-7, middle = 1 + 0x1p-8; /* in units of a quarter */
	double                     y[H * CALL], is[H * CALL];
	opened                     o;

	open_probs(&o);
	/* query NEAR of head 0 sees keys 0 and 1 alone, with the probabilities
	 * middle / 4 and the rest */
	for (int j = 2; j < CALL; j++)
		for (int d = 0; d < K; d++)
			o.a.k[j * G * K + d] = d ? 0 : -60;
	for (int d = 0; d < K; d++) {
		o.a.q[NEAR * H * K + d] = d ? 0 : 1;
		o.a.k[d] = d ? 0 : log((middle / 4) / (1 - middle / 4)) * sqrt(K);
		o.a.k[G * K + d] = 0;
	}
	vn_attend_prepare(&o.a, &edit);
	for (int way = 0; way < 2; way++) {
		memset(is, 0, sizeof is);
		is[0] = way ? up / 4 : 0.25;
		vn_attend_row(&o.a, &edit, NEAR, is, y);
		CU_ASSERT_EQUAL(y[0], is[0]);
		is[1] = 0.5; /* far from 1 - middle / 4 */
		vn_attend_row(&o.a, &edit, NEAR, is, y);
		CU_ASSERT_DOUBLE_EQUAL(y[1], bf16(1 - middle / 4), 1e-15);
	}
	close_attention(&o);
}

static void what_no_attention_makes_is_not_opened(void)
{
	const given    of[] = { { "layer1.q_proj", q }, { "layer1.q_rope", q } };
	vn_attend_case a;
	explained      e;

	make_up_inputs();
	compare_given(&e, CALL, 0, of, 2);
	stand_at(&e, "layer1.q_rope", 0);
	CU_ASSERT_FALSE(vn_attend_open(&a, &e.t, node_named(&e, "layer1.q_rope")));
	CU_ASSERT_PTR_NULL(a.q);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(calls_recorded_as_one_see_other_keys),
		TEST(a_sink_takes_its_share),
		TEST(scores_are_capped),
		TEST(a_model_with_caps_and_sinks_keeps_them),
		TEST(scores_and_probabilities_are_rounded),
		TEST(a_cache_in_eight_bits_has_a_scale_for_each_token_and_head),
		TEST(probabilities_are_a_row_of_all_keys),
		TEST(what_lies_in_the_middle_goes_where_the_candidate_says),
		TEST(what_no_attention_makes_is_not_opened),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("attend", tests);
	return !remove_folder() || failed;
}
