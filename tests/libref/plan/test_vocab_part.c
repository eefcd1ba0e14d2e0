/* test_sample.c: tests libref/plan/vocab_part.c: which plans can compute some scores alone. */
#include "libref/plan/vocab_part.h"
#include "libref/family/family.h"
#include "tests/support/suite.h"

#include <string.h>

#define SIZES \
	"\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":2,\"num_attention_heads\":2," \
	"\"num_key_value_heads\":1,\"head_dim\":4,\"max_position_embeddings\":16}"

static void is_sampled(const char *config, int scores)
{
	vn_plan *p = vn_family_plan(config, NULL);
	int      n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(vn_plan_has_vocab_part(p), scores > 0);
	for (int v = 0; v < p->n_values; v++)
		n += vn_value_is_scores(p, v);
	CU_ASSERT_TRUE(scores == 0 || n == scores);
	vn_plan_destroy(p);
}

static void a_vocabulary_of_twice_the_sample_can_be_sampled(void)
{
	is_sampled("{\"model_type\":\"llama\",\"vocab_size\":8191," SIZES, 0);
	is_sampled("{\"model_type\":\"llama\",\"vocab_size\":8192," SIZES, 1);
}

static void so_can_scores_behind_a_cap(void)
{
	is_sampled("{\"model_type\":\"gemma2\",\"vocab_size\":8192,\"final_logit_softcapping\":30," SIZES, 2);
}

static void another_operation_on_scores_prevents_it(void)
{
	vn_plan *p = vn_family_plan("{\"model_type\":\"llama\",\"vocab_size\":8192," SIZES, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	for (int v = 0; v < p->n_values; v++)
		if (vn_value_is_scores(p, v))
			p->node[p->value[v].node].op = VN_OP_ADD;
	CU_ASSERT_FALSE(vn_plan_has_vocab_part(p));
	vn_plan_destroy(p);
}

static void blocks_lie_apart_and_inside(void)
{
	for (int64_t vocab = 2 * VN_VOCAB_PART; vocab < 300000; vocab += 9973)
		for (int b = 0; b < VN_VOCAB_BLOCKS; b++)
			CU_ASSERT_TRUE(vn_vocab_block(vocab, b) + VN_VOCAB_BLOCK <=
			               (b + 1 < VN_VOCAB_BLOCKS ? vn_vocab_block(vocab, b + 1) : vocab));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_vocabulary_of_twice_the_sample_can_be_sampled),
		TEST(so_can_scores_behind_a_cap),
		TEST(another_operation_on_scores_prevents_it),
		TEST(blocks_lie_apart_and_inside),
		CU_TEST_INFO_NULL,
	};
	return run_suite("vocab_part", tests);
}
