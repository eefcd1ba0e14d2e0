/* op.c: the operations by name, and their constants by name: the table op.def.
 *
 * Constants live in plain structs (plan.h); the table tells files, reports and
 * experiments where. A number of any kind travels as a double. */
#include "libref/plan/op_internal.h"

#include <math.h>
#include <string.h>

/* double; int; int 0 or 1 (or an enum); bool; int */
typedef enum constant_kind { REAL, WHOLE, FLAG, TRUTH, LIST } constant_kind;

typedef struct constant_row {
	vn_op         op;
	const char   *name;
	constant_kind kind;
	size_t        at;
	double        low, high; /* range that vn_const_set accepts */
	bool          later;     /* older files lack it */
} constant_row;

/* A node lists the constants of an experiment after those of a model, wherever their fields are. */
#define AT(field) offsetof(vn_node, c.field)
#define EX(field) offsetof(vn_node, x.field)

static const constant_row table[] = {
#define CONST(NAME, name, kind, at, low, high) { VN_OP_##NAME, #name, kind, at, low, high, false },
#define LATER(NAME, name, kind, at, low, high) { VN_OP_##NAME, #name, kind, at, low, high, true },
#include "libref/plan/op.def"
};

static const vn_op_info ops[VN_N_OPS] = {
#define OP(NAME, name, check, inputs, weights, required, outputs, ...) \
	[VN_OP_##NAME] = { #name, inputs, weights, required, outputs, __VA_ARGS__ },
#include "libref/plan/op.def"
};

/* clang-format off */
static const char *const act_names[VN_N_ACTS] = {
	[VN_SILU] = "silu", [VN_GELU] = "gelu", [VN_GELU_TANH] = "gelu_tanh", [VN_SIGMOID] = "sigmoid",
	[VN_RELU] = "relu", [VN_QUICK_GELU] = "quick_gelu", [VN_IDENTITY] = "identity",
	[VN_TWO_SIGMOID] = "two_sigmoid", [VN_SOFT_CAP] = "soft_cap", [VN_TANH] = "tanh", [VN_SOFTPLUS] = "softplus",
	[VN_MISH] = "mish", [VN_ELU] = "elu", [VN_SELU] = "selu", [VN_LEAKY_RELU] = "leaky relu (0.01)",
	[VN_RELU6] = "relu6", [VN_SQUARED_RELU] = "squared relu", [VN_HARD_SIGMOID] = "hard sigmoid",
	[VN_HARD_SWISH] = "hard swish", [VN_SOFTSIGN] = "softsign", [VN_EXP] = "exp", [VN_AS_F16] = "as_f16",
	[VN_AS_F16_SATURATED] = "as_f16_saturated", [VN_AS_F16_FLUSHED] = "as_f16_flushed",
	[VN_AS_F16_CUT] = "as_f16_cut", [VN_AS_BF16_CUT] = "as_bf16_cut",
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

static const constant_row *find_const(vn_op op, int i)
{
	for (size_t j = 0; j < sizeof table / sizeof *table; j++)
		if (table[j].op == op && i-- == 0)
			return &table[j];
	return NULL;
}

const char *vn_const_name(vn_op op, int i)
{
	const constant_row *r = find_const(op, i);
	return r ? r->name : NULL;
}

static bool is_experimental(const constant_row *r)
{
	return r->at >= offsetof(vn_node, x);
}

bool vn_const_is_list(vn_op op, int i)
{
	return find_const(op, i)->kind == LIST;
}

bool vn_const_is_optional(vn_op op, int i)
{
	const constant_row *r = find_const(op, i);
	return r->later || is_experimental(r);
}

static double read_value(const vn_node *n, const constant_row *r)
{
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

double vn_const_get(const vn_node *n, int i)
{
	return read_value(n, find_const(n->op, i));
}

const char *vn_const_beyond(const vn_node *n, double *value)
{
	for (size_t j = 0; j < sizeof table / sizeof *table; j++) {
		const constant_row *r = &table[j];
		if (r->op == n->op && !((*value = read_value(n, r)) >= r->low && *value <= r->high))
			return r->name;
	}
	return NULL;
}

vn_status vn_const_set(vn_node *n, const char *name, double value, vn_error *err)
{
	for (size_t j = 0; j < sizeof table / sizeof *table; j++) {
		const constant_row *r = &table[j];
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

/* Does no model have this activation? */
static bool is_odd(vn_act act)
{
	return act >= VN_RELU && act != VN_QUICK_GELU;
}

bool vn_node_is_experiment(const vn_node *n)
{
	bool is = n->op == VN_OP_ROWS || ((n->op == VN_OP_ACT || n->op == VN_OP_GATED) && is_odd(n->c.act.act)) ||
	          (n->op == VN_OP_EXPERTS && is_odd(n->c.experts.act)) ||
	          (n->op == VN_OP_ATTENTION && n->n_in > VN_ATTN_KEPT);

	for (size_t j = 0; j < sizeof table / sizeof *table; j++)
		is = is || (table[j].op == n->op && is_experimental(&table[j]) && read_value(n, &table[j]) != 0);
	return is;
}

const vn_experiment *vn_node_experiment(const vn_node *n)
{
	static const vn_experiment none;

	return memcmp(&n->x, &none, sizeof none) ? &n->x : NULL;
}

const vn_rope_experiment *vn_node_rope_experiment(const vn_node *n)
{
	const vn_experiment *e = vn_node_experiment(n);

	return e ? &e->rope : NULL;
}
