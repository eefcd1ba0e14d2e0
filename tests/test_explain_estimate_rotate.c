/* test_explain_estimate_rotate.c: tests compare/explain/estimate_rotate.c. */
#include "compare/explain/estimate_rotate.h"
#include "tests/explain_help.h"

#include <math.h>

/* layer1.q_rope of the llama; all its pairs but the first turn eight times more slowly than theta says. */
enum { CALL = 14, H = 6, K = 8 };

static float x[TOKENS * H * K], y[TOKENS * H * K];

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
		x[i] = given_number(i, 1);
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
				y[a] = (float)((double)x[a] * c - (double)x[b] * s);
				y[b] = (float)((double)x[b] * c + (double)x[a] * s);
			}
		}
}

static void stand_with(explained *e, int decode, int step)
{
	const given of[] = { { "layer1.q_proj", x }, { "layer1.q_rope", y } };

	compare_given(e, CALL, decode, of, 2);
	stand_at(e, "layer1.q_rope", step);
}

static vn_hypothesis estimated(const rotation *r)
{
	explained e;

	rotate(r, CALL);
	stand_with(&e, 0, 0);
	CU_ASSERT_EQUAL(vn_estimate_rotate(&e.t, &e.err), VN_OK);
	const vn_hypothesis h = answer_of(&e);
	CU_ASSERT_EQUAL(h.change.kind, VN_BY_ROTATION);
	end_explained(&e);
	return h;
}

static void calls_that_begin_at_zero_are_found(void)
{
	const vn_hypothesis h = estimated(&(rotation) { .restart = 5 });

	CU_ASSERT_EQUAL(h.finding, VN_CALLS_FROM_ZERO);
	CU_ASSERT_EQUAL(h.change.rotate.call, 5);
}

static void exchanged_sine_and_cosine_are_found(void)
{
	CU_ASSERT_EQUAL(estimated(&(rotation) { .exchanged = true }).finding, VN_SINE_FOR_COSINE);
}

static void what_was_rounded_is_told(void)
{
	vn_hypothesis h = estimated(&(rotation) { .frequencies = true });

	CU_ASSERT_EQUAL(h.finding, VN_ANGLES_ROUNDED);
	CU_ASSERT_EQUAL(h.change.rotate.frequencies, VN_FORMAT_BF16);
	CU_ASSERT_EQUAL(h.change.rotate.table, VN_FORMAT_NONE);
	h = estimated(&(rotation) { .table = true });
	CU_ASSERT_EQUAL(h.finding, VN_ANGLES_ROUNDED);
	CU_ASSERT_EQUAL(h.change.rotate.table, VN_FORMAT_BF16);
	CU_ASSERT_EQUAL(h.change.rotate.frequencies, VN_FORMAT_NONE);
}

static void ids_for_positions_are_found(void)
{
	explained e;

	rotate(&(rotation) { .ids = true }, CALL + 1);
	stand_with(&e, 1, 0);
	CU_ASSERT_EQUAL(vn_estimate_rotate_by_ids(&e.t, &e.err), VN_OK);
	vn_hypothesis h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, VN_TURNED_BY_IDS);
	CU_ASSERT_TRUE(h.change.rotate.by_ids);
	end_explained(&e);
	/* a step of one token, of two: an offset does the same, and no other step tells which */
	stand_with(&e, 1, 1);
	CU_ASSERT_EQUAL(vn_estimate_rotate_by_ids(&e.t, &e.err), VN_OK);
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
	rotate(&(rotation) { .ids = true }, CALL + 2);
	stand_with(&e, 2, 2);
	CU_ASSERT_EQUAL(vn_estimate_rotate_by_ids(&e.t, &e.err), VN_OK);
	CU_ASSERT_EQUAL(answer_of(&e).finding, VN_TURNED_BY_IDS);
	end_explained(&e);
}

/* With several steps, each shows its own call. */
static void a_restart_is_not_asked_of_several_steps(void)
{
	explained e;

	rotate(&(rotation) { .restart = 5 }, CALL + 1);
	stand_with(&e, 1, 0);
	CU_ASSERT_EQUAL(vn_estimate_rotate(&e.t, &e.err), VN_OK);
	for (int i = 0; i < e.x.n; i++)
		CU_ASSERT_NOT_EQUAL(e.x.by[i].finding, VN_CALLS_FROM_ZERO);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(calls_that_begin_at_zero_are_found),
		TEST(exchanged_sine_and_cosine_are_found),
		TEST(what_was_rounded_is_told),
		TEST(ids_for_positions_are_found),
		TEST(a_restart_is_not_asked_of_several_steps),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_rotate", tests);
	return !remove_folder() || failed;
}
