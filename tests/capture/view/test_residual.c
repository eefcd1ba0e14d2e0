/* test_residual.c: tests capture/view/residual.c: the sums of a layer, by the plan or as Llama. */
#include "capture/view/residual.h"
#include "libref/family/family.h"
#include "tests/support/suite.h"

#include <string.h>

#define SIZES \
	"\"vocab_size\":8,\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":2,\"num_attention_heads\":2," \
	"\"num_key_value_heads\":1,\"head_dim\":4,\"max_position_embeddings\":16"

static void is_sum(const vn_plan *p, int layer, int i, const char *after, const char *before, const char *below,
                   const char *added)
{
	vn_residual_sum s, found;

	CU_ASSERT_TRUE_FATAL(vn_residual_sum_at(p, layer, i, &s));
	CU_ASSERT_STRING_EQUAL(s.after, after);
	CU_ASSERT_STRING_EQUAL(s.before[0], before);
	CU_ASSERT_STRING_EQUAL(s.before[1], below);
	CU_ASSERT_STRING_EQUAL(s.added, added);
	CU_ASSERT_TRUE_FATAL(vn_residual_sum_of(p, added, &found));
	CU_ASSERT_STRING_EQUAL(found.after, after);
}

static void without_a_plan_or_with_that_of_a_llama_the_sums_are_the_same(void)
{
	vn_plan        *p = vn_family_plan("{\"model_type\":\"llama\"," SIZES "}", NULL);
	vn_residual_sum s;

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	for (int k = 0; k < 2; k++) {
		const vn_plan *plan = k ? p : NULL;
		is_sum(plan, 0, 0, "layer0.attn_residual", "layer0.input", "embed", "layer0.attn_out");
		is_sum(plan, 1, 0, "layer1.attn_residual", "layer1.input", "layer0.output", "layer1.attn_out");
		is_sum(plan, 1, 1, "layer1.output", "layer1.attn_residual", "", "layer1.down_proj");
		CU_ASSERT_FALSE(vn_residual_sum_at(plan, 1, 2, &s));
		CU_ASSERT_FALSE(vn_residual_sum_of(plan, "layer1.attn_context", &s));
		CU_ASSERT_FALSE(vn_residual_sum_of(plan, "attn_out", &s));
	}
	vn_plan_destroy(p);
}

static void a_norm_between_attention_and_stream_is_what_is_added(void)
{
	vn_plan        *p = vn_family_plan("{\"model_type\":\"gemma2\"," SIZES "}", NULL);
	vn_residual_sum s;

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	is_sum(p, 1, 0, "layer1.attn_residual", "layer1.input", "layer0.output", "layer1.attn_post_norm");
	is_sum(p, 1, 1, "layer1.output", "layer1.attn_residual", "", "layer1.mlp_post_norm");
	CU_ASSERT_FALSE(vn_residual_sum_of(p, "layer1.attn_out", &s));
	vn_plan_destroy(p);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(without_a_plan_or_with_that_of_a_llama_the_sums_are_the_same),
		TEST(a_norm_between_attention_and_stream_is_what_is_added),
		CU_TEST_INFO_NULL,
	};
	return run_suite("residual", tests);
}
