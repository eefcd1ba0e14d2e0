/* test_reference_variants.c: tests compare/replay/reference_variants.c. */
#include "compare/replay/reference_variants.h"
#include "libref/plan/rope.h"
#include "tests/support/suite.h"

#include <string.h>

static const vn_policy f16 = { .storage = VN_F16 }, bf16 = { .storage = VN_BF16 }, f32 = { .storage = VN_F32 },
					   f64 = { .storage = VN_F64 };

/* How many other implementations the head of reference_variants.h names,
 * by operation and precision. */
static void each_operation_has_the_implementations_that_are_known(void)
{
	static const struct {
		vn_op op;
		int   narrow, f32, f64;
	} row[] = {
		/* RoPE: three ways to round an angle; in 16 bits, cos, sin and products too */
		{ VN_OP_ATTENTION, 1, 1, 0 },   { VN_OP_ROPE, 4, 3, 0 },
		{ VN_OP_RMS_NORM, 2, 0, 0 },    { VN_OP_GATED_NORM, 2, 0, 0 }, /* the weight in float32 */
		{ VN_OP_L2_NORM, 1, 0, 0 },     { VN_OP_GATED, 2, 0, 0 },      /* the activation rounded; its formula as well */
		{ VN_OP_CAUSAL_CONV, 2, 0, 0 }, { VN_OP_DELTA_RULE, 1, 1, 1 }, /* in chunks */
		{ VN_OP_EMBED, 0, 0, 0 },       { VN_OP_ADD, 0, 0, 0 },
		{ VN_OP_LINEAR, 0, 0, 0 },      { VN_OP_LAYER_NORM, 1, 0, 0 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const vn_node n = { .op = row[i].op };
		CU_ASSERT_EQUAL(vn_reference_variants_count(&n, f16), row[i].narrow);
		CU_ASSERT_EQUAL(vn_reference_variants_count(&n, bf16), row[i].narrow);
		CU_ASSERT_EQUAL(vn_reference_variants_count(&n, f32), row[i].f32);
		CU_ASSERT_EQUAL(vn_reference_variants_count(&n, f64), row[i].f64);
	}
}

static void gelu_tanh_may_round_its_square_in_bfloat16(void)
{
	vn_node n = { .op = VN_OP_ACT, .c.act = { .act = VN_GELU_TANH } };

	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, bf16), 2);
	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, f16), 1);
	CU_ASSERT_PTR_NULL(vn_node_experiment(&n));
	vn_reference_variant_put(&n, bf16, 1);
	CU_ASSERT_EQUAL(n.x.act.formula, 2);
	CU_ASSERT_PTR_EQUAL(vn_node_experiment(&n), &n.x);
	CU_ASSERT_FALSE(vn_node_is_experiment(&n)); /* a variant is no mistake */
	n.c.act.act = VN_GELU;
	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, bf16), 1);
}

static void a_weight_of_a_norm_in_float32_widens_no_floor(void)
{
	static const vn_op op[] = { VN_OP_RMS_NORM, VN_OP_GATED_NORM, VN_OP_LAYER_NORM };

	for (size_t i = 0; i < sizeof op / sizeof *op; i++) {
		vn_node   n = { .op = op[i] };
		const int last = vn_reference_variants_count(&n, f16) - 1;
		CU_ASSERT_TRUE(vn_reference_variant_judges_alone(&n, last));
		CU_ASSERT_FALSE(last && vn_reference_variant_judges_alone(&n, 0));
		vn_reference_variant_put(&n, f16, last);
		CU_ASSERT_EQUAL(n.x.norm.wide_weight, 1);
		CU_ASSERT_EQUAL(n.x.norm.rounding, 0);
		CU_ASSERT_FALSE(vn_node_is_experiment(&n));
	}
}

static void a_product_has_another_if_it_rounds_to_blocks_of_32(void)
{
	vn_node   n = { .op = VN_OP_LINEAR, .c.linear.kept = 1 + VN_Q8_0 };
	vn_policy blocks = { .storage = VN_F32, .products = 1 };

	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, blocks), 1);
	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, f32), 0); /* a precision without blocks */
	n.c.linear.kept = 1 + VN_F16;
	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, blocks), 0);
	n.c.linear.kept = 0;
	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, blocks), 0);
}

static void a_product_divided_between_ranks_is_added_up_in_16_bits(void)
{
	vn_node n = { .op = VN_OP_LINEAR, .c.linear.ranks = 4 };

	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, bf16), 1);
	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, f32), 0); /* in any order */
	CU_ASSERT_FALSE(vn_reference_variant_judges_alone(&n, 0));
	vn_reference_variant_put(&n, f16, 0);
	CU_ASSERT_EQUAL(n.x.linear.parts, 4);
	CU_ASSERT_NOT_EQUAL(n.x.linear.rounding, 0);
}

/* The delta rule with a mistake has no chunked form. */
static void a_mistaken_delta_rule_has_no_other(void)
{
	vn_node n = { .op = VN_OP_DELTA_RULE };

	n.x.delta.restart = 1;
	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, f32), 0);
	n.x.delta.restart = 0;
	n.x.delta.head_map = 1;
	CU_ASSERT_EQUAL(vn_reference_variants_count(&n, f16), 0);
}

static void all_that_are_counted_are_different(void)
{
	static const vn_op op[] = { VN_OP_ATTENTION, VN_OP_ROPE,  VN_OP_RMS_NORM,    VN_OP_GATED_NORM,
		                        VN_OP_L2_NORM,   VN_OP_GATED, VN_OP_CAUSAL_CONV, VN_OP_DELTA_RULE };
	const vn_policy    policy[] = { f16, bf16, f32 };

	for (size_t i = 0; i < sizeof op / sizeof *op; i++)
		for (size_t k = 0; k < 3; k++) {
			vn_node made[8], own;
			memset(&own, 0, sizeof own);
			own.op = op[i];
			const int n = vn_reference_variants_count(&own, policy[k]);
			for (int a = 0; a < n; a++) {
				memcpy(&made[a], &own, sizeof own);
				vn_reference_variant_put(&made[a], policy[k], a);
				CU_ASSERT_NOT_EQUAL(memcmp(&made[a], &own, sizeof own), 0);
				for (int b = 0; b < a; b++)
					CU_ASSERT_NOT_EQUAL(memcmp(&made[a], &made[b], sizeof own), 0);
			}
		}
}

static void angles_are_rounded_in_each_way_but_the_references(void)
{
	bool seen[VN_N_ANGLES] = { false };

	for (int i = 0; i < 3; i++) {
		vn_node n = { .op = VN_OP_ROPE };
		vn_reference_variant_put(&n, f32, i);
		CU_ASSERT_EQUAL(n.x.rope.rounding, 0);
		seen[n.x.rope.angles] = true;
	}
	CU_ASSERT_TRUE(!seen[VN_ANGLES_TORCH] && seen[VN_ANGLES_WIDE] && seen[VN_ANGLES_ONCE] && seen[VN_ANGLES_CHAIN]);
	for (int i = 0; i < 4; i++) {
		vn_node n = { .op = VN_OP_ROPE };
		vn_reference_variant_put(&n, bf16, i);
		CU_ASSERT_EQUAL(n.x.rope.rounding != 0, i == 0);
		CU_ASSERT_EQUAL(n.x.rope.angles, i); /* 0: torch's */
	}
}

static void the_formula_of_an_activation_judges_alone(void)
{
	const vn_node gated = { .op = VN_OP_GATED }, conv = { .op = VN_OP_CAUSAL_CONV }, act = { .op = VN_OP_ACT },
				  norm = { .op = VN_OP_RMS_NORM }, rope = { .op = VN_OP_ROPE }, linear = { .op = VN_OP_LINEAR };

	CU_ASSERT_TRUE(!vn_reference_variant_judges_alone(&gated, 0) && vn_reference_variant_judges_alone(&gated, 1));
	CU_ASSERT_TRUE(!vn_reference_variant_judges_alone(&conv, 0) && vn_reference_variant_judges_alone(&conv, 1));
	CU_ASSERT_TRUE(vn_reference_variant_judges_alone(&act, 0) && vn_reference_variant_judges_alone(&linear, 0));
	CU_ASSERT_FALSE(vn_reference_variant_judges_alone(&norm, 0) || vn_reference_variant_judges_alone(&rope, 3));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(each_operation_has_the_implementations_that_are_known),
		TEST(gelu_tanh_may_round_its_square_in_bfloat16),
		TEST(a_weight_of_a_norm_in_float32_widens_no_floor),
		TEST(a_product_has_another_if_it_rounds_to_blocks_of_32),
		TEST(a_product_divided_between_ranks_is_added_up_in_16_bits),
		TEST(a_mistaken_delta_rule_has_no_other),
		TEST(all_that_are_counted_are_different),
		TEST(angles_are_rounded_in_each_way_but_the_references),
		TEST(the_formula_of_an_activation_judges_alone),
		CU_TEST_INFO_NULL,
	};
	return run_suite("reference variants", tests);
}
