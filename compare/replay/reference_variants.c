/* reference_variants.c: see reference_variants.h. */
#include "compare/replay/reference_variants.h"
#include "libref/ops/ggml.h"
#include "libref/ops/intermediate.h"

static bool is_narrow(vn_dtype storage)
{
	return storage == VN_F16 || storage == VN_BF16;
}

/* Blocks of 32: how the processor computes their scale shows in the last digit of a few numbers. */
static bool in_blocks(const vn_node *n)
{
	return n->c.linear.kept && vn_dtype_block((vn_dtype)(n->c.linear.kept - 1)) == 32;
}

/* The cube of gelu_tanh, whose square torch rounds in bfloat16. */
static bool has_squares(const vn_node *n, vn_dtype storage)
{
	return n->c.act.act == VN_GELU_TANH && storage == VN_BF16;
}

int vn_reference_variants_count(const vn_node *n, vn_policy policy)
{
	const vn_dtype storage = policy.storage;

	switch (n->op) {
	case VN_OP_LINEAR: return (policy.products && in_blocks(n)) || (n->c.linear.ranks && is_narrow(storage));
	case VN_OP_DELTA_RULE: /* the chunked form computes no mistakes */
		return !n->x.delta.form && !n->x.delta.head_map && !n->x.delta.kept && !n->x.delta.restart &&
		       !n->x.delta.forgets;
	case VN_OP_ATTENTION: return is_narrow(storage) || storage == VN_F32;
	case VN_OP_ROPE: /* for the angles, and in 16 bits also for intermediate roundings */
		return is_narrow(storage) ? VN_N_ANGLES : storage == VN_F32 ? VN_N_ANGLES - 1 : 0;
	case VN_OP_RMS_NORM:
	case VN_OP_GATED_NORM: return is_narrow(storage) ? 2 : 0; /* the second: transformers' gpt-oss in float16 */
	case VN_OP_LAYER_NORM:
	case VN_OP_L2_NORM: return is_narrow(storage);
	case VN_OP_ACT: return is_narrow(storage) && vn_act_has_formula(n->c.act.act) ? 1 + has_squares(n, storage) : 0;
	case VN_OP_GATED: return is_narrow(storage) ? 2 + has_squares(n, storage) : 0;
	case VN_OP_CAUSAL_CONV: return is_narrow(storage) ? 2 : 0;
	case VN_OP_SCALE: return is_narrow(storage) && n->c.scale.cap != 0;
	case VN_OP_EXPERTS: return is_narrow(storage);
	case VN_OP_COMBINE: return is_narrow(storage) ? 2 : 0;
	default: return 0;
	}
}

void vn_reference_variant_put(vn_node *n, vn_policy policy, int i)
{
	const vn_dtype           storage = policy.storage;
	const vn_rounding_format rounding = storage == VN_F16    ? VN_FORMAT_F16
	                                    : storage == VN_BF16 ? VN_FORMAT_BF16
	                                                         : VN_FORMAT_F32;

	switch (n->op) {
	case VN_OP_LINEAR:
		if (policy.products)
			n->x.linear.inverse = VN_GGML_INVERTED;
		else {
			n->x.linear.parts = n->c.linear.ranks;
			n->x.linear.rounding = (int)rounding;
		}
		break;
	case VN_OP_DELTA_RULE: n->x.delta.chunked = 1; break;
	case VN_OP_ATTENTION: n->x.attention.rounding = (int)rounding; break;
	case VN_OP_ROPE:
		if (is_narrow(storage) && i == 0)
			n->x.rope.rounding = (int)rounding;
		else
			n->x.rope.angles = i + !is_narrow(storage);
		break;
	case VN_OP_LAYER_NORM: n->x.norm.wide_weight = 1; break;
	case VN_OP_RMS_NORM:
	case VN_OP_GATED_NORM:
	case VN_OP_L2_NORM:
		if (i)
			n->x.norm.wide_weight = 1;
		else
			n->x.norm.rounding = (int)rounding;
		break;
	case VN_OP_ACT:
	case VN_OP_GATED:
		n->x.act.rounding = (int)rounding;
		n->x.act.formula = i + (n->op == VN_OP_ACT);
		break;
	case VN_OP_SCALE: n->x.scale.rounding = (int)rounding; break;
	case VN_OP_EXPERTS: n->x.experts.rounding = (int)rounding; break;
	case VN_OP_COMBINE:
		n->x.combine.rounding = (int)rounding;
		n->x.combine.sums = i > 0;
		break;
	case VN_OP_CAUSAL_CONV:
		n->x.conv.rounding = (int)rounding;
		n->x.conv.formula = i > 0;
		break;
	default: break;
	}
}

bool vn_reference_variant_judges_alone(const vn_node *n, int i)
{
	/* Differences of one digit come from the processor and are the same everywhere. In float16,
	 * the formula of gelu_tanh differs from the exact gelu by as much. */
	return (n->op == VN_OP_LINEAR && !n->c.linear.ranks) || n->op == VN_OP_ACT || n->op == VN_OP_LAYER_NORM ||
	       (i > 0 && (n->op == VN_OP_GATED || n->op == VN_OP_CAUSAL_CONV || vn_op_get(n->op)->is_norm));
}
