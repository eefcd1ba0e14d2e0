/* test_replay_variants.c: tests compare/replay/replay_variants.c. */
#include "tests/support/attention_help.h"

/* layer1's attention of the llama. All scores are near 300, where float32 has steps of 3e-5: an
 * implementation that rounds them differs by 100 times more than the floor. */
enum { CALL = 8, D = 48 };

static float probs[H * CALL * CALL], out[CALL * D];

static double in_float32(double x)
{
	return (double)(float)x;
}

/* of_probs, of_context: what is wrong with those; the result of layer1.attn_out is right. */
static void make_up_attention(const mistake *of_probs, const mistake *of_context)
{
	int64_t n;
	double  p[TOKENS], y[K], *w = given_weight("layer1.attn_out", 0, &n); /* (D,H*K) */

	CU_ASSERT_EQUAL_FATAL(n, D * H * K);
	make_up_inputs();
	for (int i = 0; i < TOKENS * H; i++)
		q[i * K] = 30;
	for (int i = 0; i < TOKENS * G; i++)
		k[i * K] = 30;
	attend_all(&(mistake) { 0 }, 0, CALL);
	for (int t = 0; t < CALL; t++)
		for (int m = 0; m < D; m++) {
			double sum = 0;
			for (int i = 0; i < H * K; i++)
				sum += w[m * H * K + i] * (double)context[t * H * K + i];
			out[t * D + m] = (float)sum;
		}
	attend_all(of_context, 0, CALL);
	for (int h = 0; h < H; h++)
		for (int t = 0; t < CALL; t++) {
			attend(of_probs, t, h, p, y);
			for (int j = 0; j < CALL; j++)
				probs[(h * CALL + t) * CALL + j] = (float)p[j];
		}
	free(w);
}

/* Compares the attention with its context, or (false) with what is projected from it. */
static void compare_attention(explained *e, bool with_context)
{
	const given of[] = { { "layer1.q_rope", q },
		                 { "layer1.k_rope", k },
		                 { "layer1.v_proj", v },
		                 { "layer1.attn_probs", probs },
		                 { with_context ? "layer1.attn_context" : "layer1.attn_out", with_context ? context : out } };

	compare_given(e, CALL, 0, of, 5);
}

static void another_implementation_is_within_its_distance(void)
{
	const mistake rounded = { .score = in_float32 };
	explained     e;

	make_up_attention(&rounded, &rounded);
	compare_attention(&e, true);
	const char *const name[] = { "layer1.attn_probs", "layer1.attn_context" };
	for (int i = 0; i < 2; i++) {
		const vn_checkpoint *p = checkpoint_at(&e, name[i], 0);
		CU_ASSERT_TRUE_FATAL(p->replayed);
		CU_ASSERT_TRUE(p->replay.local > 1e-11); /* 40 floors without it */
		CU_ASSERT_TRUE(p->replay.floor > 1e-11 && p->replay.floor < 1e-8);
		CU_ASSERT_FALSE(vn_local_beyond(p) || p->origin);
	}
	finish(&e.compared);
}

static void what_needs_no_other_keeps_its_floor(void)
{
	explained e;

	make_up_attention(&(mistake) { 0 }, &(mistake) { 0 });
	compare_attention(&e, true);
	const vn_checkpoint *p = checkpoint_at(&e, "layer1.attn_context", 0);
	CU_ASSERT_TRUE(p->replayed && p->replay.floor < 1e-12 && !vn_local_beyond(p));
	finish(&e.compared);
}

static void a_mistake_is_beyond_all_implementations(void)
{
	const mistake scaled = { .times = 1.0001 };
	explained     e;

	make_up_attention(&(mistake) { 0 }, &scaled);
	compare_attention(&e, true);
	const vn_checkpoint *p = checkpoint_at(&e, "layer1.attn_context", 0);
	CU_ASSERT_TRUE(p->replay.floor > 1e-11); /* they were tried */
	CU_ASSERT_TRUE(vn_local_beyond(p) && p->origin);
	finish(&e.compared);
}

/* The context was not recorded. The projection reads it from the engine, which ran the other
 * implementation to judge the probabilities. */
static void what_follows_is_computed_from_the_node_as_it_is(void)
{
	explained e;

	make_up_attention(&(mistake) { .score = in_float32 }, &(mistake) { 0 });
	compare_attention(&e, false);
	const vn_checkpoint *judged = checkpoint_at(&e, "layer1.attn_probs", 0),
						*after = checkpoint_at(&e, "layer1.attn_out", 0);
	CU_ASSERT_TRUE(judged->replay.floor > 1e-11 && !vn_local_beyond(judged));
	CU_ASSERT_EQUAL(after->replay.span, 2);
	CU_ASSERT_TRUE(after->replay.local < 1e-12);
	CU_ASSERT_FALSE(vn_local_beyond(after));
	finish(&e.compared);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(another_implementation_is_within_its_distance),
		TEST(what_needs_no_other_keeps_its_floor),
		TEST(a_mistake_is_beyond_all_implementations),
		TEST(what_follows_is_computed_from_the_node_as_it_is),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("replay_variants", tests);
	return !remove_folder() || failed;
}
