/* test_replay_node.c: tests compare/replay/replay.c. */
#include "tests/support/attention_help.h"

/* layer1's attention of the llama; the rotated queries were not recorded. */
enum { CALL = 8 };

static float plain_q[TOKENS * H * K], probs[H * CALL * CALL];

/* Queries rotated with this theta, 500000 in the model. */
static void fill(double theta)
{
	double p[TOKENS], y[K];

	make_up_inputs();
	memcpy(plain_q, q, sizeof q);
	for (int i = 0; i < CALL * H; i++)
		rotate_row(q + i * K, i / H, theta);
	attend_all(&(mistake) { 0 }, 0, CALL);
	for (int h = 0; h < H; h++)
		for (int t = 0; t < CALL; t++) {
			attend(&(mistake) { 0 }, t, h, p, y);
			for (int j = 0; j < CALL; j++)
				probs[(h * CALL + t) * CALL + j] = (float)p[j];
		}
}

static void compare(explained *e)
{
	const given of[] = { { "layer1.q_proj", plain_q },
		                 { "layer1.k_rope", k },
		                 { "layer1.v_proj", v },
		                 { "layer1.attn_probs", probs },
		                 { "layer1.attn_context", context } };
	compare_given(e, CALL, 0, of, 5);
}

static void an_error_of_a_span_is_charged_once(void)
{
	explained e;

	fill(10000);
	compare(&e);
	const vn_checkpoint *p = checkpoint_at(&e, "layer1.attn_probs", 0),
						*c = checkpoint_at(&e, "layer1.attn_context", 0);
	CU_ASSERT_EQUAL(p->replay.span, 2); /* the rotation and the attention */
	CU_ASSERT_EQUAL(c->replay.span, 2);
	CU_ASSERT_TRUE(vn_local_beyond(p) && vn_local_beyond(c));
	const bool first = p->replay.charged_to < 0;
	CU_ASSERT_EQUAL((first ? p : c)->replay.charged_to, -1);
	CU_ASSERT_EQUAL((first ? c : p)->replay.charged_to, (int)((first ? p : c) - e.compared.c.result.checkpoints.of));
	CU_ASSERT_NOT_EQUAL(p->origin, c->origin);
	end_explained(&e);
}

static void a_cleared_span_is_charged_with_nothing(void)
{
	explained e;

	fill(500000);
	compare(&e);
	const vn_checkpoint *p = checkpoint_at(&e, "layer1.attn_probs", 0),
						*c = checkpoint_at(&e, "layer1.attn_context", 0);
	CU_ASSERT_TRUE(p->replayed && c->replayed);
	CU_ASSERT_EQUAL(p->replay.span, 2);
	CU_ASSERT_FALSE(vn_local_beyond(p) || vn_local_beyond(c));
	CU_ASSERT_TRUE(p->replay.charged_to < 0 && c->replay.charged_to < 0);
	CU_ASSERT_FALSE(p->origin || c->origin);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(an_error_of_a_span_is_charged_once),
		TEST(a_cleared_span_is_charged_with_nothing),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("replay_node", tests);
	return !remove_folder() || failed;
}
