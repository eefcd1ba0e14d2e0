/* test_weights_tried.c: tests compare/weights/weights_tried.c, the explanations of a weight
 * that are certain. */
#include "tests/support/weights_help.h"

#include <math.h>
#include <string.h>

#define LAYER "model.layers."

enum { ROWS = 4, COLS = 4, N = ROWS * COLS };

static const char q1[] = LAYER "1.self_attn.q_proj.weight";

static float a[N], b[N];

static void fill(void)
{
	for (int i = 0; i < N; i++)
		a[i] = b[i] = (float)((7 * i) % 16 - 7) / 4;
}

static vn_weight_row row(const char *name, const float *x)
{
	const vn_tensor t = f32(x, ROWS, COLS);
	return row_of(name, &t);
}

/* A trial of one weight that both sides have. */
static vn_weight_trial trial_of(const vn_weight_row *ref, const vn_weight_row *cand)
{
	return (vn_weight_trial) { .row = { ref, cand }, .name = vn_weight_name_of(NULL, (ref ? ref : cand)->name) };
}

/* The finding from the tables alone: kind and id, or "" "". */
static void table_says(const vn_weight_row *ref, const vn_weight_row *cand, const char *kind, const char *id)
{
	const vn_weight_trial t = trial_of(ref, cand);
	vn_weight_difference  d = { 0 };
	const bool            found = vn_weight_by_table(&t, &d);

	CU_ASSERT_EQUAL(found, *kind != 0);
	CU_ASSERT_STRING_EQUAL(found ? d.kind : "", kind);
	CU_ASSERT_STRING_EQUAL(found ? d.id : "", id);
	CU_ASSERT_TRUE(!found || d.certain);
}

static void tables_tell_what_is_absent_or_of_another_size(void)
{
	fill();
	const vn_weight_row ref = row(q1, a), bias = row(LAYER "1.self_attn.q_proj.bias", a);
	vn_weight_row       cand = row(q1, b);

	table_says(NULL, &cand, "extra", "");
	table_says(&ref, NULL, "missing", "");
	table_says(&bias, NULL, "missing", "W6"); /* a bias */
	cand = row(q1, (const float[N]) { 9, 8, 7 });
	table_says(&ref, &cand, "", ""); /* other numbers of the same kind */
	cand.shape.dim[0] = 3;
	table_says(&ref, &cand, "size", "");
}

static void a_table_of_tokens_may_be_padded(void)
{
	static const float more[N + COLS] = { 1, 2, 3 };
	const vn_tensor    t = f32(more, ROWS + 1, COLS);

	fill();
	const vn_weight_row   ref = row("model.embed_tokens.weight", a), cand = row_of("model.embed_tokens.weight", &t);
	const vn_weight_trial trial = trial_of(&ref, &cand);
	vn_weight_difference  d = { 0 };
	CU_ASSERT_TRUE(vn_weight_by_table(&trial, &d));
	CU_ASSERT_STRING_EQUAL(d.kind, "vocabulary");
	CU_ASSERT_STRING_EQUAL(d.id, "W19");
	CU_ASSERT_STRING_EQUAL(d.words, "1 rows more (a padded vocabulary)");
}

static void numbers_that_no_model_has_are_told(void)
{
	float x[N];

	fill();
	const vn_weight_row ref = row(q1, a);
	memset(x, 0, sizeof x);
	vn_weight_row cand = row(q1, x);
	table_says(&ref, &cand, "zeros", "W11");
	table_says(&cand, &ref, "zeros", "W11"); /* in the reference */
	for (int i = 0; i < N; i++)
		x[i] = 0.02f;
	cand = row(q1, x);
	table_says(&ref, &cand, "constant", "W11");
	memcpy(x, a, sizeof x);
	x[3] = NAN;
	cand = row(q1, x);
	table_says(&ref, &cand, "not-finite", "");
	/* infinities in float16 where the reference is beyond 65504 */
	memcpy(x, a, sizeof x);
	x[3] = 70000;
	const vn_weight_row large = row(q1, x);
	x[3] = INFINITY;
	cand = row(q1, x);
	cand.dtype = VN_F16;
	table_says(&large, &cand, "overflowed", "W13");
}

static void the_same_bytes_may_be_read_otherwise(void)
{
	fill();
	const vn_weight_row ref = row(q1, a);
	vn_weight_row       cand = ref;

	cand.dtype = VN_I32;
	table_says(&ref, &cand, "misread", "W12");
	cand = ref;
	cand.shape = (vn_shape) { 3, { ROWS, 1, COLS } };
	table_says(&ref, &cand, "shape", "");
	cand.shape = (vn_shape) { 2, { ROWS / 2, 2 * COLS } };
	table_says(&ref, &cand, "reinterpreted", "W1b");
}

/* Weights of three layers, by name as tables have them, each with numbers of its own. */
enum { Q0, GATE1, UP1, Q1, Q2, ALL };
static const char *const names[ALL] = { LAYER "0.self_attn.q_proj.weight", LAYER "1.mlp.gate_proj.weight",
	                                    LAYER "1.mlp.up_proj.weight", q1, LAYER "2.self_attn.q_proj.weight" };

static void digest_says(int at, const int holds[ALL], const char *kind, const char *id, const char *words)
{
	vn_weight_row ref[ALL], cand[ALL];
	float         x[N];

	for (int i = 0; i < ALL; i++)
		for (int side = 0; side < 2; side++) {
			for (int n = 0; n < N; n++)
				x[n] = (float)(n + 100 * (side ? holds[i] : i));
			(side ? cand : ref)[i] = row(names[i], x);
		}
	const vn_weight_side sides[] = { { .row = ref, .n = ALL }, { .row = cand, .n = ALL } };
	vn_weight_trial      t = trial_of(&ref[at], &cand[at]);
	vn_weight_difference d = { .words = "" };
	t.side[0] = &sides[0];
	t.side[1] = &sides[1];
	CU_ASSERT_EQUAL(vn_weight_by_digest(&t, &d), *kind != 0);
	CU_ASSERT_STRING_EQUAL(*kind ? d.kind : "", kind);
	CU_ASSERT_STRING_EQUAL(d.id, id);
	CU_ASSERT_STRING_EQUAL(d.words, words);
}

static void a_weight_that_holds_another_is_told_which(void)
{
	digest_says(Q1, (const int[ALL]) { Q0, GATE1, UP1, Q0, Q2 }, "layer", "W9",
	            "holds the weights of the previous layer");
	digest_says(Q1, (const int[ALL]) { Q0, GATE1, UP1, Q2, Q2 }, "layer", "W9", "holds the weights of the next layer");
	digest_says(Q2, (const int[ALL]) { Q0, GATE1, UP1, Q1, Q0 }, "layer", "W9", "holds the weights of layer 0");
	digest_says(Q1, (const int[ALL]) { Q0, GATE1, UP1, 9, Q2 }, "", "", ""); /* of none */
	digest_says(Q1, (const int[ALL]) { Q0, GATE1, UP1, GATE1, Q2 }, "other-weight", "", "holds mlp.gate_proj.weight");
}

static void two_that_hold_each_other_are_exchanged(void)
{
	digest_says(GATE1, (const int[ALL]) { Q0, UP1, GATE1, Q1, Q2 }, "exchanged", "W4",
	            "mlp.gate_proj.weight and mlp.up_proj.weight exchanged");
	digest_says(UP1, (const int[ALL]) { Q0, UP1, GATE1, Q1, Q2 }, "exchanged", "W4",
	            "mlp.gate_proj.weight and mlp.up_proj.weight exchanged");
}

/* The finding from the numbers about a weight whose candidate is b. */
static bool numbers_say(const char *name, vn_weight_difference *d)
{
	const vn_tensor      ta = f32(a, ROWS, COLS), tb = f32(b, ROWS, COLS);
	const vn_weight_row  ref = row_of(name, &ta), cand = row_of(name, &tb);
	const vn_weight_side sides[] = { { .row = &ref, .n = 1, .numbers = &ta },
		                             { .row = &cand, .n = 1, .numbers = &tb } };
	vn_weight_trial      t = trial_of(&ref, &cand);

	t.side[0] = &sides[0];
	t.side[1] = &sides[1];
	t.numbers[0] = &ta;
	t.numbers[1] = &tb;
	*d = (vn_weight_difference) { 0 };
	return vn_weight_by_numbers(&t, d);
}

static void another_order_or_another_number_is_found(void)
{
	vn_weight_difference d;

	fill();
	for (int i = 0; i < N; i++)
		b[i] = a[i % COLS * ROWS + i / COLS];
	CU_ASSERT_TRUE(numbers_say(LAYER "1.mlp.down_proj.weight", &d));
	CU_ASSERT_STRING_EQUAL(d.id, "W1");
	CU_ASSERT_TRUE(d.certain);
	fill();
	b[5] += 0.125f; /* one number alone */
	CU_ASSERT_FALSE(numbers_say(LAYER "1.mlp.down_proj.weight", &d));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(tables_tell_what_is_absent_or_of_another_size),
		TEST(a_table_of_tokens_may_be_padded),
		TEST(numbers_that_no_model_has_are_told),
		TEST(the_same_bytes_may_be_read_otherwise),
		TEST(a_weight_that_holds_another_is_told_which),
		TEST(two_that_hold_each_other_are_exchanged),
		TEST(another_order_or_another_number_is_found),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_tried", tests);
}
