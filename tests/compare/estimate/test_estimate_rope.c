/* test_estimate_rope.c: tests compare/estimate/estimate_rope.c. */
#include "compare/estimate/estimate.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* layer1.q_rope of the llama. */
enum { CALL = 17, STEPS = 1, S = CALL + STEPS, H = 6, K = 8 };
#define TWO_PI 6.283185307179586

static float x[S * H * K], y[S * H * K];

/* A rotation with Llama 3's scaling of frequencies; over 0: without. */
typedef struct rotation {
	double theta, over, context, low, high;
	int    width, offset, alone; /* columns rotated; positions are moved; alone: one position for all, 0: no */
	double times;                /* positions are multiplied by it */
	bool   neighbours;           /* columns 2i and 2i + 1 are a pair, not i and i + width / 2 */
} rotation;

static rotation own(void)
{
	return (rotation) { .theta = 500000, .over = 8, .context = 64, .low = 1, .high = 4, .width = K, .times = 1 };
}

static double frequency(const rotation *r, int pair)
{
	const double f = pow(r->theta, -2.0 * pair / r->width), length = TWO_PI / f;

	if (r->over == 0 || length < r->context / r->high)
		return f;
	if (length > r->context / r->low)
		return f / r->over;
	const double smooth = (r->context / length - r->low) / (r->high - r->low);
	return (1 - smooth) * f / r->over + smooth * f;
}

static void rotate(const rotation *r)
{
	for (int i = 0; i < S * H * K; i++)
		y[i] = x[i] = given_number(i, 1);
	for (int t = 0; t < S; t++)
		for (int h = 0; h < H; h++)
			for (int i = 0; i < r->width / 2; i++) {
				const int a = (t * H + h) * K + (r->neighbours ? 2 * i : i),
						  b = r->neighbours ? a + 1 : a + r->width / 2;
				const double at = r->alone ? r->alone : (t + r->offset) * r->times, angle = at * frequency(r, i);
				y[a] = (float)((double)x[a] * cos(angle) - (double)x[b] * sin(angle));
				y[b] = (float)((double)x[b] * cos(angle) + (double)x[a] * sin(angle));
			}
}

/* Estimates the rotation of a step that recorded y. */
static void estimate(explained *e, int step)
{
	const given of[] = { { "layer1.q_proj", x }, { "layer1.q_rope", y } };

	compare_given(e, CALL, STEPS, of, 2);
	stand_at(e, "layer1.q_rope", step);
	CU_ASSERT_EQUAL((vn_estimate_rope(&e->t, &(vn_trial) { .node = node_named(e, "layer1.q_rope") }), e->failed.st),
	                VN_OK);
}

static void is_found(const rotation *r, int step, vn_finding finding, const char *constant, double value)
{
	explained e;

	rotate(r);
	estimate(&e, step);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_EQUAL(h.finding, finding);
	CU_ASSERT_EQUAL(h.paired, r->neighbours);
	CU_ASSERT_EQUAL(vn_trial_constant(&h, constant), value);
	end_explained(&e);
}

static void theta_is_read_off_many_tokens_and_off_one(void)
{
	rotation r = own();

	r.theta = 10000;
	is_found(&r, 0, VN_FINDING_THETA, "theta", 10000);
	r.theta = 123000;
	is_found(&r, 0, VN_FINDING_THETA, "theta", 123000);
	r.theta = 10000;
	is_found(&r, 1, VN_FINDING_THETA, "theta", 10000); /* a step of one token */
}

static void each_number_of_the_scaling_is_found(void)
{
	rotation r = own();

	r.over = 32;
	is_found(&r, 0, VN_FINDING_ROPE_FACTOR, "factor", 32);
	r = own();
	r.over = 0;
	is_found(&r, 0, VN_FINDING_ROPE_FACTOR, "factor", 1); /* no scaling at all */
	r.theta = 10000;
	is_found(&r, 0, VN_FINDING_THETA_PLAIN, "theta", 10000);
	/* pair 1 has a length of 167 tokens: it lies between 512 / 4 and 512 / 1 */
	r = own();
	r.context = 512;
	is_found(&r, 0, VN_FINDING_ROPE_CONTEXT, "original_context", 512);
}

static void moved_positions_are_found(void)
{
	rotation r = own();

	r.offset = 3;
	is_found(&r, 0, VN_FINDING_OFFSET, "offset", 3);
	r.offset = -40;
	is_found(&r, 0, VN_FINDING_OFFSET, "offset", -40);
	r.offset = 1;
	is_found(&r, 1, VN_FINDING_OFFSET, "offset", 1);
}

static void one_position_for_all_is_found(void)
{
	rotation r = own();

	r.alone = 5;
	is_found(&r, 0, VN_FINDING_ONE_POSITION, "offset", 5);
}

static void stretched_positions_are_found(void)
{
	rotation r = own();

	r.times = 0.25;
	is_found(&r, 0, VN_FINDING_STRETCH, "turn", 0.25);
	r.times = 1 / 3.0;
	is_found(&r, 0, VN_FINDING_STRETCH, "turn", 1 / 3.0);
}

static void fewer_rotated_columns_are_found(void)
{
	rotation r = own();

	r.width = 4;
	is_found(&r, 0, VN_FINDING_ROTARY_WIDTH, "rotary_dim", 4);
}

/* Columns are paired differently and theta differs: both are reported. */
static void another_pairing_is_found_beside_another_theta(void)
{
	rotation r = own();

	r.theta = 10000;
	r.neighbours = true;
	is_found(&r, 0, VN_FINDING_THETA, "theta", 10000);
}

static void what_is_no_rotation_has_no_answer(void)
{
	const rotation r = own();
	explained      e;

	rotate(&r);
	for (int i = 0; i < S * H * K; i++)
		y[i] += given_number(i, 5);
	estimate(&e, 0);
	CU_ASSERT_FALSE(vn_case_answered(&e.t));
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(theta_is_read_off_many_tokens_and_off_one),
		TEST(each_number_of_the_scaling_is_found),
		TEST(moved_positions_are_found),
		TEST(one_position_for_all_is_found),
		TEST(stretched_positions_are_found),
		TEST(fewer_rotated_columns_are_found),
		TEST(another_pairing_is_found_beside_another_theta),
		TEST(what_is_no_rotation_has_no_answer),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("estimate_rope", tests);
	return !remove_folder() || failed;
}
