/* test_overflow.c: tests compare/replay/overflow.c. */
#include "compare/replay/overflow.h"
#include "compare/comparison/checkpoint.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* layer1.q_proj of the llama in float32, whose largest number is 3.403e38. */
enum { T = 2, D = 48, CHANNEL = 5, HALF = 24 };

#define LARGE 3e38

static float  x[T * D], ref[T * D], cand[T * D];
static double sum_of_half, sum; /* of the terms of CHANNEL in the first token */

/* The first half of the terms of CHANNEL is positive, the second negative;
 * all other inputs are 0. */
static void fill(double size)
{
	vn_error  err = { "" };
	vn_model *m = NULL;
	double    w;

	CU_ASSERT_EQUAL_FATAL(vn_model_open(LLAMA, &m, &err), VN_OK);
	const vn_plan   *p = vn_model_plan(m);
	const vn_tensor *t = &vn_model_weights(m)[p->node[p->value[vn_plan_find(p, "layer1.q_proj")].node].w[0]];
	memset(x, 0, sizeof x);
	memset(ref, 0, sizeof ref);
	memset(cand, 0, sizeof cand);
	sum_of_half = sum = 0;
	for (int n = 0; n < D; n++) {
		vn_to_f64(&w, (const char *)t->data + (size_t)(CHANNEL * D + n) * vn_dtype_size(t->dtype), t->dtype, 1);
		x[n] = (float)copysign(size, n < HALF ? w : -w);
		sum += (double)x[n] * w;
		sum_of_half = n == HALF - 1 ? sum : sum_of_half;
	}
	vn_model_close(m);
}

/* Compares the two runs. Returns the checkpoint. */
static const vn_checkpoint *compared(trial *t)
{
	const given of_ref[] = { { "layer1.attn_norm", x }, { "layer1.q_proj", ref } },
				of_cand[] = { { "layer1.attn_norm", x }, { "layer1.q_proj", cand } };
	vn_error err = { "" };

	*t = (trial) { .o = { .model = LLAMA, .replay = VN_REPLAY_SAME, .threads = 1 } };
	CU_ASSERT_EQUAL_FATAL(record_given("ref.h5", T, 0, of_ref, 2, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(record_given("cand.h5", T, 0, of_cand, 2, &err), VN_OK);
	judge(t, "ref.h5", "cand.h5", NULL, LOOSE);
	CU_ASSERT_EQUAL_FATAL(t->st, VN_OK);
	for (int i = 0; i < t->c.result.checkpoints.n; i++)
		if (strcmp(t->c.result.checkpoints.of[i].name, "layer1.q_proj") == 0)
			return &t->c.result.checkpoints.of[i];
	CU_FAIL_FATAL("no such checkpoint");
	return NULL;
}

/* The expected number is finite and small, but the sum of the first terms overflowed. */
static void a_running_sum_that_leaves_the_range_is_found(void)
{
	char  text[VN_WORDS], want[VN_WORDS];
	trial t;

	fill(LARGE);
	CU_ASSERT_TRUE_FATAL(sum_of_half > 3.41e38); /* else this weight does not show it */
	cand[CHANNEL] = INFINITY;
	const vn_checkpoint *p = compared(&t);
	CU_ASSERT_EQUAL(p->overflow.format, VN_F32);
	CU_ASSERT_EQUAL(p->overflow.term, HALF);
	CU_ASSERT_EQUAL(p->overflow.terms, D);
	CU_ASSERT_DOUBLE_EQUAL(p->overflow.reached / sum_of_half, 1, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(p->overflow.whole / fabs(sum), 1, 1e-9);
	snprintf(want, sizeof want,
	         "it passed 3.40282e+38, the largest f32: the running sum reaches %.3g at term 24 of 48 (%.3g in the end)",
	         sum_of_half, fabs(sum));
	CU_ASSERT_STRING_EQUAL(vn_replay_say_overflow(p, text), want);
	finish(&t);
}

static void a_sum_within_the_range_is_no_overflow(void)
{
	trial t;

	fill(1);
	cand[CHANNEL] = INFINITY;
	const vn_checkpoint *p = compared(&t);
	CU_ASSERT_TRUE(p->fails);
	CU_ASSERT_EQUAL(p->overflow.reached, 0);
	CU_ASSERT_FALSE(vn_overflow_is_all(p));
	finish(&t);
}

/* Within a hundredth of the largest number, the other's rounding may have passed it. */
static void a_result_beyond_the_range_is_found(void)
{
	char  text[VN_WORDS];
	trial t;

	fill(1);
	ref[3] = 3.39e38f;
	cand[3] = INFINITY;
	const vn_checkpoint *p = compared(&t);
	CU_ASSERT_EQUAL(p->overflow.reached, (double)3.39e38f);
	CU_ASSERT_EQUAL(p->overflow.terms, 0);
	CU_ASSERT_STRING_EQUAL(vn_replay_say_overflow(p, text),
	                       "it passed 3.40282e+38, the largest f32: the reference reaches 3.39e+38 where the candidate "
	                       "has NaN or infinity");
	finish(&t);
	ref[3] = 3.3e38f; /* 0.97 of it */
	p = compared(&t);
	CU_ASSERT_EQUAL(p->overflow.reached, 0);
	finish(&t);
	ref[3] = 3.39e38f; /* and one that is in range elsewhere */
	cand[D + 7] = NAN;
	p = compared(&t);
	CU_ASSERT_EQUAL(p->overflow.reached, 0);
	finish(&t);
}

static void it_is_all_if_the_replay_agrees(void)
{
	vn_checkpoint p = { .overflow = { .reached = 1 },
		                .replay = {
							.local = 1, .floor = 1, .floor_token = 1, .floor_max = 1, .independent_numbers = 1000 } };

	CU_ASSERT_FALSE(vn_overflow_is_all(&p));
	p.replayed = true;
	CU_ASSERT_TRUE(vn_overflow_is_all(&p));
	p.replay.local = 100; /* floors */
	CU_ASSERT_FALSE(vn_overflow_is_all(&p));
	p.replay.local = 1;
	p.overflow.reached = 0;
	CU_ASSERT_FALSE(vn_overflow_is_all(&p));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_running_sum_that_leaves_the_range_is_found),
		TEST(a_sum_within_the_range_is_no_overflow),
		TEST(a_result_beyond_the_range_is_found),
		TEST(it_is_all_if_the_replay_agrees),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("overflow", tests);
	return !remove_folder() || failed;
}
