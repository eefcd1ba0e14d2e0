/* test_estimate_rotate.c: tests compare/estimate/estimate_rotate.c. */
#include "compare/estimate/estimate.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* ---- a rotation ------------------------------------------------------------------------------ */

/* layer1.q_rope of the llama; all its pairs but the first rotate eight times more slowly
 * than theta says. */
enum { CALL = 14, H = 6, K = 8 };

static float before[TOKENS * H * K], after[TOKENS * H * K];

static float bf16(double v)
{
	union {
		float    f;
		uint32_t bits;
	} a = { .f = (float)v };
	a.bits = (a.bits + 0x7fff + (a.bits >> 16 & 1)) & 0xffff0000;
	return a.f;
}

typedef struct rotation {
	int  restart;                       /* positions restart after so many tokens; 0: no */
	bool ids;                           /* positions are the ids */
	bool exchanged, frequencies, table; /* sine for cosine; rounded to bfloat16 */
} rotation;

static void rotate(const rotation *r, int tokens)
{
	for (int i = 0; i < tokens * H * K; i++)
		before[i] = given_number(i, 1);
	for (int t = 0; t < tokens; t++)
		for (int i = 0; i < K / 2; i++) {
			const double f = pow(500000, -2.0 * i / K) / (i ? 8 : 1), at = r->ids       ? 5 + t
			                                                               : r->restart ? t % r->restart
			                                                                            : t;
			const double angle = at * (r->frequencies ? (double)bf16(f) : f);
			double       c = r->table ? (double)bf16(cos(angle)) : cos(angle),
				   s = r->table ? (double)bf16(sin(angle)) : sin(angle);
			if (r->exchanged) {
				const double was = c;
				c = s;
				s = was;
			}
			for (int h = 0; h < H; h++) {
				const int a = (t * H + h) * K + i, b = a + K / 2;
				after[a] = (float)((double)before[a] * c - (double)before[b] * s);
				after[b] = (float)((double)before[b] * c + (double)before[a] * s);
			}
		}
}

static void stand_with(explained *e, int decode, int step)
{
	const given of[] = { { "layer1.q_proj", before }, { "layer1.q_rope", after } };

	compare_given(e, CALL, decode, of, 2);
	stand_at(e, "layer1.q_rope", step);
}

static vn_trial estimated(const rotation *r)
{
	explained e;

	rotate(r, CALL);
	stand_with(&e, 0, 0);
	CU_ASSERT_EQUAL((vn_estimate_rotate(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.applied.kind, VN_BY_ROTATION);
	end_explained(&e);
	return h;
}

static void calls_that_begin_at_zero_are_found(void)
{
	const vn_trial h = estimated(&(rotation) { .restart = 5 });

	CU_ASSERT_EQUAL(h.finding, VN_FINDING_CALLS_FROM_ZERO);
	CU_ASSERT_EQUAL(h.applied.rotate.call, 5);
}

static void exchanged_sine_and_cosine_are_found(void)
{
	CU_ASSERT_EQUAL(estimated(&(rotation) { .exchanged = true }).finding, VN_FINDING_SINE_FOR_COSINE);
}

static void what_was_rounded_is_told(void)
{
	vn_trial h = estimated(&(rotation) { .frequencies = true });

	CU_ASSERT_EQUAL(h.finding, VN_FINDING_ANGLES_ROUNDED);
	CU_ASSERT_EQUAL(h.applied.rotate.frequencies, VN_FORMAT_BF16);
	CU_ASSERT_EQUAL(h.applied.rotate.table, VN_FORMAT_NONE);
	h = estimated(&(rotation) { .table = true });
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_ANGLES_ROUNDED);
	CU_ASSERT_EQUAL(h.applied.rotate.table, VN_FORMAT_BF16);
	CU_ASSERT_EQUAL(h.applied.rotate.frequencies, VN_FORMAT_NONE);
}

static void ids_for_positions_are_found(void)
{
	explained e;

	rotate(&(rotation) { .ids = true }, CALL + 1);
	stand_with(&e, 1, 0);
	CU_ASSERT_EQUAL((vn_estimate_rotate_by_ids(&e.t), e.failed.st), VN_OK);
	vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_ROTATED_BY_IDS);
	CU_ASSERT_TRUE(h.applied.rotate.by_ids);
	end_explained(&e);
	/* a step of one token, or of two: an offset has the same effect, and no other step decides */
	stand_with(&e, 1, 1);
	CU_ASSERT_EQUAL((vn_estimate_rotate_by_ids(&e.t), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
	rotate(&(rotation) { .ids = true }, CALL + 2);
	stand_with(&e, 2, 2);
	CU_ASSERT_EQUAL((vn_estimate_rotate_by_ids(&e.t), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(answer_of(&e).finding, VN_FINDING_ROTATED_BY_IDS);
	end_explained(&e);
}

/* With several steps, each shows its own call. */
static void a_restart_is_not_asked_of_several_steps(void)
{
	explained e;

	rotate(&(rotation) { .restart = 5 }, CALL + 1);
	stand_with(&e, 1, 0);
	CU_ASSERT_EQUAL((vn_estimate_rotate(&e.t), e.failed.st), VN_OK);
	for (int i = 0; i < e.x.n; i++)
		CU_ASSERT_NOT_EQUAL(e.x.by[i].finding, VN_FINDING_CALLS_FROM_ZERO);
	end_explained(&e);
}

/* ---- single tokens --------------------------------------------------------------------------- */

/* layer1.q_rope of the llama: heads of eight columns, all rotated. */
enum { T = 14, STEPS = 2, S = T + STEPS };

static float q[S * H * K], rope[S * H * K];

/* Rotates every row by its position in `at`. */
static void rotate_to(const vn_plan *p, const double *at)
{
	const vn_rope *r = &p->node[p->value[vn_plan_root(p, vn_plan_find(p, "layer1.q_rope"))].node].c.rope.rope;
	float          f[K / 2], factor;

	vn_rope_frequencies(r, p->list, S, f, &factor);
	for (int t = 0; t < S; t++)
		for (int h = 0; h < H; h++)
			for (int i = 0; i < K / 2; i++) {
				const float *x = q + (t * H + h) * K;
				float       *y = rope + (t * H + h) * K;
				const double c = cos(at[t] * (double)f[i]), s = sin(at[t] * (double)f[i]);
				const int    a = i, b = i + K / 2;
				y[a] = (float)((double)x[a] * c - (double)x[b] * s);
				y[b] = (float)((double)x[b] * c + (double)x[a] * s);
			}
}

/* The best answer in that step, of what those functions try. */
static bool found(const double *at, int step, vn_trial *best)
{
	const given of[] = { { "layer1.q_proj", q }, { "layer1.q_rope", rope } };
	vn_model   *m = NULL;
	vn_error    err;
	explained   e;

	for (int i = 0; i < S * H * K; i++)
		q[i] = (float)((i * 7919) % 2003) / 1000 - 1;
	CU_ASSERT_EQUAL_FATAL(vn_model_open(LLAMA, &m, &err), VN_OK);
	rotate_to(vn_model_plan(m), at);
	vn_model_close(m);
	compare_given(&e, T, STEPS, of, 2);
	stand_at(&e, "layer1.q_rope", step);
	e.x.fitted = true;
	CU_ASSERT_EQUAL((vn_estimate_rotated_tokens(&e.t), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(
		(vn_estimate_stretch_of_one(&e.t, &(vn_trial) { .node = node_named(&e, "layer1.q_rope") }), e.failed.st),
		VN_OK);
	const bool answered = vn_case_answered(&e.t);
	*best = e.x.n ? e.x.by[0] : (vn_trial) { 0 };
	end_explained(&e);
	return answered;
}

static void usual(double *at)
{
	for (int t = 0; t < S; t++)
		at[t] = t;
}

static void expect_rotation(const double *at, int64_t first, int64_t last, double times, double plus)
{
	vn_trial h;

	CU_ASSERT_TRUE_FATAL(found(at, 0, &h));
	const vn_position_map *m = &h.applied.rotate.map;
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_POSITIONS_OF_SOME);
	CU_ASSERT_EQUAL(m->first, first);
	CU_ASSERT_EQUAL(m->last, last);
	CU_ASSERT_DOUBLE_EQUAL(m->times, times, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(m->plus, plus, 1e-9);
}

static void a_run_with_another_offset_is_found(void)
{
	double at[S];

	usual(at);
	for (int t = 4; t < 9; t++)
		at[t] -= 3;
	expect_rotation(at, 4, 8, 1, -3);
	usual(at);
	at[11] += 2;
	expect_rotation(at, 11, 11, 1, 2);
}

static void a_stretch_or_one_position_is_found(void)
{
	double at[S];

	usual(at);
	at[7] /= 4;
	expect_rotation(at, 7, 7, 0.25, 0);
	usual(at);
	for (int t = 6; t < T; t++)
		at[t] *= 1.25;
	expect_rotation(at, 6, T - 1, 1.25, 0);
	usual(at);
	for (int t = 6; t < T; t++)
		at[t] = 5;
	expect_rotation(at, 6, T - 1, 0, 5);
}

static void halves_are_rounded_down(void)
{
	double   at[S];
	vn_trial h;

	usual(at);
	for (int t = 0; t < T; t++)
		at[t] = t / 2;
	expect_rotation(at, 1, T - 1, 0.5, 0);
	CU_ASSERT_TRUE(found(at, 0, &h));
	CU_ASSERT_TRUE(h.applied.rotate.map.whole);
}

/* Positions that no person meant are no answer. */
static void positions_without_a_rule_are_none(void)
{
	double   at[S];
	vn_trial h;

	usual(at);
	at[4] = 9;
	at[5] = 2;
	at[6] = 7;
	CU_ASSERT_FALSE(found(at, 0, &h));
	usual(at);
	CU_ASSERT_FALSE(found(at, 0, &h));
}

static void a_single_token_may_be_stretched(void)
{
	double   at[S];
	vn_trial h;

	usual(at);
	at[T + 1] /= 2;
	CU_ASSERT_TRUE_FATAL(found(at, 2, &h));
	CU_ASSERT_EQUAL(h.finding, VN_FINDING_STRETCH);
	CU_ASSERT_DOUBLE_EQUAL(vn_trial_constant(&h, "turn"), 0.5, 1e-9);
	CU_ASSERT_FALSE(found(at, 1, &h));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(calls_that_begin_at_zero_are_found),
		TEST(exchanged_sine_and_cosine_are_found),
		TEST(what_was_rounded_is_told),
		TEST(ids_for_positions_are_found),
		TEST(a_restart_is_not_asked_of_several_steps),
		TEST(a_run_with_another_offset_is_found),
		TEST(a_stretch_or_one_position_is_found),
		TEST(halves_are_rounded_down),
		TEST(positions_without_a_rule_are_none),
		TEST(a_single_token_may_be_stretched),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_rotate", tests);
	return !remove_folder() || failed;
}
