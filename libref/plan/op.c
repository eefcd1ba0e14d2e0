/* op.c: the operations by name, and their constants by name.
 *
 * Constants live in plain structs (plan.h); this table tells files, reports and
 * experiments where. A number of any kind travels as a double. */
#include "libref/plan/plan.h"

#include <math.h>
#include <string.h>

typedef enum kind { REAL, WHOLE, FLAG, TRUTH, LIST } kind; /* double; int; int 0 or 1 (or an enum); bool; int */

typedef struct row {
	vn_op       op;
	const char *name;
	kind        kind;
	size_t      at;
	double      low, high; /* range that vn_const_set accepts */
} row;

/* A node lists the constants of an experiment after those of a model, wherever their fields are. */
#define AT(field) offsetof(vn_node, c.field)
#define EX(field) offsetof(vn_node, x.field)

/* clang-format off */
static const row table[] = {
	{ VN_OP_RMS_NORM,  "eps",                  REAL,  AT(norm.eps), 0, 1e6 },
	{ VN_OP_RMS_NORM,  "offset",               REAL,  AT(norm.offset), -1e6, 1e6 },
	{ VN_OP_RMS_NORM,  "eps_outside",          FLAG,  EX(norm.eps_outside), 0, 1 },
	{ VN_OP_RMS_NORM,  "divisor",              WHOLE, EX(norm.divisor), 0, 2147483647 },
	{ VN_OP_RMS_NORM,  "sum_f16",              FLAG,  EX(norm.sum_f16), 0, 1 },
	{ VN_OP_RMS_NORM,  "first_f16",            FLAG,  EX(norm.first_f16), 0, 1 },
	{ VN_OP_LAYER_NORM, "sum_f16",             FLAG,  EX(norm.sum_f16), 0, 1 },
	{ VN_OP_L2_NORM,   "sum_f16",              FLAG,  EX(norm.sum_f16), 0, 1 },
	{ VN_OP_GATED_NORM, "sum_f16",             FLAG,  EX(norm.sum_f16), 0, 1 },
	{ VN_OP_RMS_NORM,  "width",                WHOLE, EX(norm.width), 0, 2147483647 },
	{ VN_OP_LAYER_NORM, "eps",                 REAL,  AT(norm.eps), 0, 1e6 },
	{ VN_OP_LAYER_NORM, "offset",              REAL,  AT(norm.offset), -1e6, 1e6 },
	{ VN_OP_LAYER_NORM, "eps_outside",         FLAG,  EX(norm.eps_outside), 0, 1 },
	{ VN_OP_LAYER_NORM, "divisor",             WHOLE, EX(norm.divisor), 0, 2147483647 },
	{ VN_OP_LAYER_NORM, "keep_mean",           FLAG,  EX(norm.keep_mean), 0, 1 },
	{ VN_OP_LINEAR,    "transposed",           FLAG,  AT(linear.transposed), 0, 1 },
	{ VN_OP_SLICE,     "stride",               WHOLE, AT(slice.stride), 1, 2147483647 },
	{ VN_OP_SLICE,     "from",                 WHOLE, AT(slice.from), 0, 2147483647 },
	{ VN_OP_SLICE,     "width",                WHOLE, AT(slice.width), 1, 2147483647 },
	{ VN_OP_ROPE,      "type",                 WHOLE, AT(rope.rope.type), 0, VN_N_ROPES - 1 },
	{ VN_OP_ROPE,      "theta",                REAL,  AT(rope.rope.theta), 0x1.000002p0, 1e30 },
	{ VN_OP_ROPE,      "rotary_dim",           WHOLE, AT(rope.rope.rotary_dim), 2, 65536 },
	{ VN_OP_ROPE,      "factor",               REAL,  AT(rope.rope.factor), 0, 1e30 },
	{ VN_OP_ROPE,      "low_freq_factor",      REAL,  AT(rope.rope.low_freq_factor), 0, 1e30 },
	{ VN_OP_ROPE,      "high_freq_factor",     REAL,  AT(rope.rope.high_freq_factor), 0, 1e30 },
	{ VN_OP_ROPE,      "beta_fast",            REAL,  AT(rope.rope.beta_fast), 0, 1e30 },
	{ VN_OP_ROPE,      "beta_slow",            REAL,  AT(rope.rope.beta_slow), 0, 1e30 },
	{ VN_OP_ROPE,      "attention_factor",     REAL,  AT(rope.rope.attention_factor), 0, 1e30 },
	{ VN_OP_ROPE,      "mscale",               REAL,  AT(rope.rope.mscale), 0, 1e30 },
	{ VN_OP_ROPE,      "mscale_all_dim",       REAL,  AT(rope.rope.mscale_all_dim), 0, 1e30 },
	{ VN_OP_ROPE,      "original_context",     WHOLE, AT(rope.rope.original_context), 0, 2147483647 },
	{ VN_OP_ROPE,      "max_context",          WHOLE, AT(rope.rope.max_context), 0, 2147483647 },
	{ VN_OP_ROPE,      "truncate",             TRUTH, AT(rope.rope.truncate), 0, 1 },
	{ VN_OP_ROPE,      "short_factor",         LIST,  AT(rope.rope.short_factor), 0, 4096 },
	{ VN_OP_ROPE,      "long_factor",          LIST,  AT(rope.rope.long_factor), 0, 4096 },
	{ VN_OP_ROPE,      "pairing",              WHOLE, AT(rope.rope.pairing), 0, VN_N_PAIRINGS - 1 },
	{ VN_OP_ROPE,      "offset",               WHOLE, AT(rope.rope.offset), -16777216, 16777216 },
	{ VN_OP_ROPE,      "turn",                 REAL,  AT(rope.rope.turn), -1024, 1024 },
	{ VN_OP_ROPE,      "half_angles",          FLAG,  AT(rope.rope.half_angles), 0, 1 },
	{ VN_OP_ROPE,      "step_offset",          WHOLE, AT(rope.rope.step_offset), -16777216, 16777216 },
	{ VN_OP_ROPE,      "step_zero",            FLAG,  AT(rope.rope.step_zero), 0, 1 },
	{ VN_OP_ROPE,      "sections",             FLAG,  AT(rope.rope.sections), 0, 1 },
	{ VN_OP_ROPE,      "one_position",         FLAG,  AT(rope.rope.one_position), 0, 1 },
	{ VN_OP_POSITIONS, "step_zero",            FLAG,  EX(positions.step_zero), 0, 1 },
	{ VN_OP_ATTENTION, "scale",                REAL,  AT(attention.scale), -1e30, 1e30 },
	{ VN_OP_ATTENTION, "heads",                WHOLE, AT(attention.heads), 1, 65536 },
	{ VN_OP_ATTENTION, "kv_heads",             WHOLE, AT(attention.kv_heads), 1, 65536 },
	{ VN_OP_ATTENTION, "head_dim",             WHOLE, AT(attention.head_dim), 1, 65536 },
	{ VN_OP_ATTENTION, "causal",               FLAG,  AT(attention.causal), 0, 1 },
	{ VN_OP_ATTENTION, "window",               WHOLE, AT(attention.window), 0, 2147483647 },
	{ VN_OP_ATTENTION, "sinks",                WHOLE, EX(attention.sinks), 0, 4095 },
	{ VN_OP_ATTENTION, "ahead",                WHOLE, EX(attention.ahead), -65536, 65536 },
	{ VN_OP_ATTENTION, "head_map",             WHOLE, EX(attention.head_map), 0, VN_N_HEAD_MAPS - 1 },
	{ VN_OP_ATTENTION, "blind",                WHOLE, EX(attention.blind), 0, 2 },
	{ VN_OP_ATTENTION, "leak",                 WHOLE, EX(attention.leak), 0, 2 },
	{ VN_OP_ATTENTION, "padding",              WHOLE, EX(attention.padding), 0, 65536 },
	{ VN_OP_ATTENTION, "from_zero",            FLAG,  EX(attention.from_zero), 0, 1 },
	{ VN_OP_ATTENTION, "form",                 WHOLE, EX(attention.form), 0, VN_N_ATTN_FORMS - 1 },
	{ VN_OP_ATTENTION, "cache_form",           WHOLE, EX(attention.cache), 0, VN_N_CACHE_FORMS - 1 },
	{ VN_OP_ATTENTION, "cache_block",          WHOLE, EX(attention.cache_block), 0, 16777216 },
	{ VN_OP_ATTENTION, "cache_of",             WHOLE, EX(attention.cache_of), 0, 2 },
	{ VN_OP_ATTENTION, "cache_steps",          FLAG,  EX(attention.cache_steps), 0, 1 },
	{ VN_OP_ATTENTION, "again",                FLAG,  EX(attention.again), 0, 1 },
	{ VN_OP_ACT,       "act",                  WHOLE, AT(act.act), 0, VN_N_ACTS - 1 },
	{ VN_OP_GATED,     "act",                  WHOLE, AT(act.act), 0, VN_N_ACTS - 1 },
	{ VN_OP_GATED,     "form",                 WHOLE, EX(gated.form), 0, VN_N_GATE_FORMS - 1 },
	{ VN_OP_CAUSAL_CONV,      "channels",             WHOLE, AT(conv.channels), 1, 2147483647 },
	{ VN_OP_CAUSAL_CONV,      "taps",                 WHOLE, AT(conv.taps), 2, 65536 },
	{ VN_OP_CAUSAL_CONV,      "linear",               WHOLE, EX(conv.linear), 0, 2147483647 },
	{ VN_OP_CAUSAL_CONV,      "forgets",              FLAG,  EX(conv.forgets), 0, 1 },
	{ VN_OP_CAUSAL_CONV,      "ahead",                WHOLE, EX(conv.ahead), 0, 65536 },
	{ VN_OP_LOG_DECAY, "form",                 WHOLE, EX(decay.form), 0, VN_N_DECAY_FORMS - 1 },
	{ VN_OP_L2_NORM,   "eps",                  REAL,  AT(norm.eps), 0, 1e6 },
	{ VN_OP_L2_NORM,   "eps_outside",          FLAG,  EX(norm.eps_outside), 0, 1 },
	{ VN_OP_L2_NORM,   "divisor",              WHOLE, EX(norm.divisor), 0, 2147483647 },
	{ VN_OP_DELTA_RULE, "scale",               REAL,  AT(delta.scale), -1e30, 1e30 },
	{ VN_OP_DELTA_RULE, "key_heads",           WHOLE, AT(delta.key_heads), 1, 65536 },
	{ VN_OP_DELTA_RULE, "value_heads",         WHOLE, AT(delta.value_heads), 1, 65536 },
	{ VN_OP_DELTA_RULE, "key_dim",             WHOLE, AT(delta.key_dim), 1, 65536 },
	{ VN_OP_DELTA_RULE, "value_dim",           WHOLE, AT(delta.value_dim), 1, 65536 },
	{ VN_OP_DELTA_RULE, "form",                WHOLE, EX(delta.form), 0, VN_N_DELTA_FORMS - 1 },
	{ VN_OP_DELTA_RULE, "head_map",            WHOLE, EX(delta.head_map), 0, VN_HEADS_MODULO },
	{ VN_OP_DELTA_RULE, "turned",              FLAG,  EX(delta.turned), 0, 1 },
	{ VN_OP_DELTA_RULE, "restart",             WHOLE, EX(delta.restart), 0, 2147483647 },
	{ VN_OP_ROWS,      "form",                 WHOLE, AT(rows.form), 0, VN_N_ROWS_FORMS - 1 },
	{ VN_OP_ROWS,      "by",                   WHOLE, AT(rows.by), -16777216, 16777216 },
	{ VN_OP_ROWS,      "inner",                WHOLE, AT(rows.inner), 0, 2147483647 },
	{ VN_OP_GATED_NORM, "eps",                 REAL,  AT(norm.eps), 0, 1e6 },
	{ VN_OP_GATED_NORM, "eps_outside",         FLAG,  EX(norm.eps_outside), 0, 1 },
	{ VN_OP_GATED_NORM, "gate",                WHOLE, EX(norm.gate), 0, VN_N_ACTS - 1 },
	{ VN_OP_GATED_NORM, "gate_first",          FLAG,  EX(norm.gate_first), 0, 1 },
	{ VN_OP_GATED_NORM, "divisor",             WHOLE, EX(norm.divisor), 0, 2147483647 },
};
/* clang-format on */

#define BIT(slot) (1u << (slot))
#define ALL       (~0u)

/* Slots: inputs, weights, weights that must be there, outputs. */
/* clang-format off */
static const vn_op_info ops[VN_N_OPS] = {
	[VN_OP_EMBED]       = { "embed", 0, 1, 1, 1, .by_position = true, .is_costly = true },
	[VN_OP_RMS_NORM]    = { "rms_norm", 1, 1, 1, 1, .is_norm = true, .in_float32 = ALL },
	[VN_OP_POSITIONS]   = { "positions", 0, 1, 1, 1, .by_position = true },
	[VN_OP_LAYER_NORM]  = { "layer_norm", 1, 2, 1, 1, .is_norm = true },
	[VN_OP_LINEAR]      = { "linear", 1, 2, 1, 1, .is_costly = true },
	[VN_OP_SLICE]       = { "slice", 1, 0, 0, 1, .mixes = 0 },
	[VN_OP_ROPE]        = { "rope", 1, 0, 0, 1, .by_position = true },
	[VN_OP_ATTENTION]   = { "attention", 3, 0, 0, 5, /* or 4 inputs: VN_ATTN_KEPT */
	                        .state = { [VN_ATTN_KEYS] = "keys", [VN_ATTN_VALUES] = "values" },
	                        .mixes = ALL ^ BIT(VN_ATTN_Q), .is_costly = true, .in_float32 = ALL ^ BIT(VN_ATTN_SCORES) },
	[VN_OP_ACT]         = { "act", 1, 0, 0, 1, .mixes = 0 },
	[VN_OP_GATED]       = { "gated", 2, 0, 0, 1, .mixes = 0 },
	[VN_OP_ADD]         = { "add", 2, 0, 0, 1, .mixes = 0 },
	[VN_OP_CAUSAL_CONV] = { "causal_conv", 1, 1, 1, 2, .state = { "last rows" }, .mixes = ALL },
	[VN_OP_L2_NORM]     = { "l2_norm", 1, 0, 0, 1, .is_norm = true, .in_float32 = ALL },
	[VN_OP_LOG_DECAY]   = { "log_decay", 1, 2, 2, 1, .in_float32 = ALL },
	[VN_OP_DELTA_RULE]  = { "delta_rule", 5, 0, 0, 2, .state = { "states" }, .mixes = ALL, .is_costly = true,
	                        .in_float32 = ALL },
	[VN_OP_GATED_NORM]  = { "gated_norm", 2, 1, 1, 1, .is_norm = true, .in_float32 = ALL },
	[VN_OP_ROWS]        = { "rows", 2, 0, 0, 1, .mixes = ALL },
};
/* clang-format on */

/* clang-format off */
static const char *const act_names[VN_N_ACTS] = {
	[VN_SILU] = "silu", [VN_GELU] = "gelu", [VN_GELU_TANH] = "gelu_tanh", [VN_SIGMOID] = "sigmoid",
	[VN_RELU] = "relu", [VN_QUICK_GELU] = "quick_gelu", [VN_IDENTITY] = "identity",
	[VN_TWO_SIGMOID] = "two_sigmoid", [VN_SOFT_CAP] = "soft_cap", [VN_AS_F16] = "as_f16",
		[VN_AS_F16_SATURATED] = "as_f16_saturated",
	[VN_AS_F16_FLUSHED] = "as_f16_flushed", [VN_AS_F16_CUT] = "as_f16_cut", [VN_AS_BF16_CUT] = "as_bf16_cut",
};
/* clang-format on */

const vn_op_info *vn_op_get(vn_op op)
{
	return &ops[op];
}

const char *vn_op_name(vn_op op)
{
	return ops[op].name;
}

bool vn_op_mixes_tokens(vn_op op, int input)
{
	return ops[op].mixes >> input & 1;
}

bool vn_op_is_by_token(vn_op op)
{
	return !ops[op].mixes && !ops[op].by_position;
}

const char *vn_act_name(vn_act act)
{
	return act_names[act];
}

int vn_op_from_name(const char *name, vn_op *op)
{
	for (int i = 0; i < VN_N_OPS; i++)
		if (strcmp(ops[i].name, name) == 0) {
			*op = (vn_op)i;
			return 1;
		}
	return 0;
}

static const row *find(vn_op op, int i)
{
	for (size_t j = 0; j < sizeof table / sizeof *table; j++)
		if (table[j].op == op && i-- == 0)
			return &table[j];
	return NULL;
}

const char *vn_const_name(vn_op op, int i)
{
	const row *r = find(op, i);
	return r ? r->name : NULL;
}

bool vn_const_is_list(vn_op op, int i)
{
	return find(op, i)->kind == LIST;
}

bool vn_const_is_optional(vn_op op, int i)
{
	static const char *const later[] = { "transposed", "short_factor", "long_factor", "pairing",
		                                 "offset",     "turn",         "half_angles", "step_offset",
		                                 "step_zero",  "sections",     "one_position" };
	const row               *r = find(op, i);
	bool                     is = r->at >= offsetof(vn_node, x) || op == VN_OP_ROWS;

	for (size_t k = 0; k < sizeof later / sizeof *later; k++)
		is = is || strcmp(later[k], r->name) == 0;
	return is;
}

double vn_const_get(const vn_node *n, int i)
{
	const row  *r = find(n->op, i);
	const char *p = (const char *)n + r->at;
	double      real;
	int         whole;
	bool        truth;

	if (r->kind == REAL)
		return memcpy(&real, p, sizeof real), real;
	if (r->kind == TRUTH)
		return memcpy(&truth, p, sizeof truth), truth;
	return memcpy(&whole, p, sizeof whole), whole; /* enums are ints here */
}

vn_status vn_const_set(vn_node *n, const char *name, double value, vn_error *err)
{
	for (size_t j = 0; j < sizeof table / sizeof *table; j++) {
		const row *r = &table[j];
		if (r->op != n->op || strcmp(r->name, name) != 0)
			continue;
		bool odd = r->at == AT(rope.rope.rotary_dim) && r->op == VN_OP_ROPE && fmod(value, 2.0) != 0.0; /* pairs */
		if (!(value >= r->low && value <= r->high) || (r->kind != REAL && value != floor(value)) || odd)
			return vn_fail(err, VN_ERR_USAGE, "%s of %s: %g is not %s from %g to %g", name, ops[n->op].name, value,
			               r->kind == REAL ? "a number"
			               : odd           ? "an even number"
			                               : "a whole number",
			               r->low, r->high);
		char *p = (char *)n + r->at;
		int   whole = r->kind == REAL ? 0 : (int)value;
		bool  truth = value != 0;
		if (r->kind == REAL)
			memcpy(p, &value, sizeof value);
		else if (r->kind == TRUTH)
			memcpy(p, &truth, sizeof truth);
		else
			memcpy(p, &whole, sizeof whole);
		return VN_OK;
	}
	return vn_fail(err, VN_ERR_USAGE, "%s has no constant named %s", ops[n->op].name, name);
}

bool vn_node_is_variant(const vn_node *n)
{
	const vn_rope *r = &n->c.rope.rope;
	bool is = n->op == VN_OP_ROWS || ((n->op == VN_OP_ACT || n->op == VN_OP_GATED) && n->c.act.act >= VN_RELU);

	for (size_t j = 0; j < sizeof table / sizeof *table; j++)
		is = is || (table[j].op == n->op && table[j].at >= offsetof(vn_node, x) &&
		            *(const int *)(const void *)((const char *)n + table[j].at) != 0);
	return is || (n->op == VN_OP_ROPE && (r->pairing || r->offset || r->turn != 0 || r->half_angles || r->step_offset ||
	                                      r->step_zero || r->sections || r->one_position));
}
