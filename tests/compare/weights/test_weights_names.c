/* test_weights_names.c: tests compare/weights/weights_names.c, the part of a weight by its name. */
#include "compare/weights/weights_names.h"
#include "tests/support/suite.h"

#include <string.h>

static void a_name_tells_part_and_layer(void)
{
	static const struct {
		const char *name;
		int         part;
		int         layer;
		const char *tail;
		bool        bias;
	} row[] = {
		{ "model.layers.12.self_attn.q_proj.weight", VN_POINT_Q_PROJ, 12, "self_attn.q_proj.weight", false },
		{ "model.layers.0.self_attn.qkv_proj.bias", VN_PART_QKV, 0, "self_attn.qkv_proj.bias", true },
		{ "model.layers.3.mlp.gate_up_proj.weight", VN_PART_GATE_UP, 3, "mlp.gate_up_proj.weight", false },
		{ "model.layers.3.mlp.up_proj.weight", VN_POINT_UP_PROJ, 3, "mlp.up_proj.weight", false },
		{ "model.layers.3.self_attn.q_norm.weight", VN_POINT_Q_NORM, 3, "self_attn.q_norm.weight", false },
		{ "h.7.attn.c_proj.weight", VN_POINT_ATTN_OUT, 7, "attn.c_proj.weight", false },
		{ "h.7.mlp.c_proj.weight", VN_POINT_DOWN_PROJ, 7, "mlp.c_proj.weight", false },
		{ "model.layers.1.linear_attn.A_log", VN_POINT_GDN_G, 1, "linear_attn.A_log", false },
		{ "model.embed_tokens.weight", VN_POINT_EMBED, -1, "model.embed_tokens.weight", false },
		{ "model.norm.weight", VN_POINT_FINAL_NORM, -1, "model.norm.weight", false },
		{ "lm_head.weight", VN_POINT_LOGITS, -1, "lm_head.weight", false },
		{ "model.layers.x.q_projection", VN_PART_OTHER, -1, "model.layers.x.q_projection", false },
		{ "model.layers.99999999999.q_proj.weight", VN_POINT_Q_PROJ, -1, "model.layers.99999999999.q_proj.weight",
		  false },
		{ ".bias", VN_PART_OTHER, -1, ".bias", false },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const vn_weight_name x = vn_weight_name_of(NULL, row[i].name);
		CU_ASSERT_EQUAL(x.part, row[i].part);
		CU_ASSERT_EQUAL(x.layer, row[i].layer);
		CU_ASSERT_STRING_EQUAL(x.tail, row[i].tail);
		CU_ASSERT_EQUAL(x.bias, row[i].bias);
	}
}

/* Its files count from 0. */
static void the_layer_of_a_prediction_head_follows_the_others(void)
{
	vn_plan        plan = { .layers = 5 };
	vn_weight_side side = { .plan = &plan };

	CU_ASSERT_EQUAL(vn_weight_name_of(&side, "mtp.layers.0.self_attn.k_proj.weight").layer, 5);
	CU_ASSERT_EQUAL(vn_weight_name_of(&side, "model.layers.0.self_attn.k_proj.weight").layer, 0);
	CU_ASSERT_EQUAL(vn_weight_name_of(NULL, "mtp.layers.0.self_attn.k_proj.weight").layer, -1);
}

static void a_norm_is_any_of_them(void)
{
	CU_ASSERT_TRUE(vn_weight_part_is_norm(VN_POINT_K_NORM));
	CU_ASSERT_TRUE(vn_weight_part_is_norm(VN_POINT_GDN_NORM));
	CU_ASSERT_FALSE(vn_weight_part_is_norm(VN_POINT_DOWN_PROJ));
	CU_ASSERT_FALSE(vn_weight_part_is_norm(VN_POINT_GDN_QKV));
}

static vn_mistake exchange(const char *a, const char *b)
{
	const vn_weight_name x = vn_weight_name_of(NULL, a), y = vn_weight_name_of(NULL, b);
	return vn_weight_exchange(&x, &y);
}

static void an_exchange_is_one_mistake_either_way(void)
{
	CU_ASSERT_EQUAL(exchange("mlp.gate_proj.weight", "mlp.up_proj.weight"), VN_MISTAKE_W4);
	CU_ASSERT_EQUAL(exchange("mlp.up_proj.weight", "mlp.gate_proj.weight"), VN_MISTAKE_W4);
	CU_ASSERT_EQUAL(exchange("mlp.up_proj.weight", "mlp.down_proj.weight"), VN_NO_MISTAKE);
	CU_ASSERT_EQUAL(exchange("self_attn.k_proj.weight", "self_attn.v_proj.weight"), VN_MISTAKE_W4);
	CU_ASSERT_EQUAL(exchange("self_attn.v_proj.bias", "self_attn.k_proj.bias"), VN_MISTAKE_W8);
	CU_ASSERT_EQUAL(exchange("self_attn.v_proj.bias", "self_attn.k_proj.weight"), VN_NO_MISTAKE);
	CU_ASSERT_EQUAL(exchange("self_attn.o_proj.bias", "mlp.down_proj.bias"), VN_NO_MISTAKE);
}

static void a_twin_has_another_prefix(void)
{
	const vn_weight_row row[] = { { .name = "language_model.model.norm.weight" }, { .name = "lm_head.weight" } };

	CU_ASSERT_PTR_EQUAL(vn_weight_twin(row, 2, "lm_head.weight"), &row[1]);
	CU_ASSERT_PTR_NULL(vn_weight_twin(row, 2, "lm_head"));
	CU_ASSERT_PTR_EQUAL(vn_weight_twin(row, 2, "model.norm.weight"), &row[0]);
	CU_ASSERT_PTR_EQUAL(vn_weight_twin(row, 2, "norm.weight"), &row[0]);
	CU_ASSERT_PTR_NULL(vn_weight_twin(row, 2, "model.norm.bias"));
	CU_ASSERT_PTR_NULL(vn_weight_twin(row, 0, "model.norm.weight"));
}

static void a_twin_of_an_expert_may_be_spelled_otherwise(void)
{
	const vn_weight_row row[] = { { .name = "model.layers.2.block_sparse_moe.experts.10.w3.weight" },
		                          { .name = "model.layers.2.block_sparse_moe.gate.weight" },
		                          { .name = "model.layers.2.mlp.experts.3.down_proj.weight" } };

	CU_ASSERT_PTR_EQUAL(vn_weight_twin(row, 3, "model.layers.2.mlp.experts.10.up_proj.weight"), &row[0]);
	CU_ASSERT_PTR_EQUAL(vn_weight_twin(row, 3, "model.layers.2.mlp.gate.weight"), &row[1]);
	CU_ASSERT_PTR_EQUAL(vn_weight_twin(row, 3, "model.layers.2.block_sparse_moe.experts.3.w2.weight"), &row[2]);
	CU_ASSERT_PTR_NULL(vn_weight_twin(row, 3, "model.layers.2.mlp.experts.1.up_proj.weight"));
	CU_ASSERT_PTR_NULL(vn_weight_twin(row, 3, "model.layers.1.mlp.gate.weight"));
	CU_ASSERT_PTR_NULL(vn_weight_twin(row, 3, "model.layers.2.mlp.experts.x.up_proj.weight"));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_name_tells_part_and_layer),
		TEST(the_layer_of_a_prediction_head_follows_the_others),
		TEST(a_norm_is_any_of_them),
		TEST(an_exchange_is_one_mistake_either_way),
		TEST(a_twin_has_another_prefix),
		TEST(a_twin_of_an_expert_may_be_spelled_otherwise),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_names", tests);
}
