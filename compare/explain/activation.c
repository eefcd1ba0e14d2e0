/* activation.c: see activation.h. */
#include "compare/explain/activation.h"

#include <math.h>

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
	return x > 30 ? x : log1p(exp(x));
}

static double in_sigmoid(double x)
{
	return sigmoid(x);
}
static double in_tanh(double x)
{
	return tanh(x);
}
static double in_softplus(double x)
{
	return softplus(x);
}
static double in_mish(double x)
{
	return x * tanh(softplus(x));
}
static double in_elu(double x)
{
	return x > 0 ? x : expm1(x);
}
static double in_selu(double x)
{
	return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x));
}
static double in_leaky(double x)
{
	return x > 0 ? x : 0.01 * x;
}
static double in_relu6(double x)
{
	return fmin(fmax(x, 0), 6);
}
static double in_relu2(double x)
{
	return x > 0 ? x * x : 0;
}
static double in_hardsigm(double x)
{
	return fmin(fmax(x / 6 + 0.5, 0), 1);
}
static double in_hardswish(double x)
{
	return x * in_hardsigm(x);
}
static double in_softsign(double x)
{
	return x / (1 + fabs(x));
}
static double in_exp(double x)
{
	return exp(x);
}

/* clang-format off */
static const struct { const char *name; double (*of)(double x); } known[] = {
	{ "sigmoid", in_sigmoid }, { "tanh", in_tanh }, { "softplus", in_softplus }, { "mish", in_mish }, { "elu", in_elu },
	{ "selu", in_selu }, { "leaky relu (0.01)", in_leaky }, { "relu6", in_relu6 }, { "squared relu", in_relu2 },
	{ "hard sigmoid", in_hardsigm }, { "hard swish", in_hardswish }, { "softsign", in_softsign }, { "exp", in_exp },
};
/* clang-format on */
int vn_n_activations(void)
{
	return (int)(sizeof known / sizeof *known);
}

const char *vn_activation_name(int which)
{
	return known[which].name;
}

bool vn_is_activation(const vn_explain_trial *t)
{
	const vn_plan *p = t->site->plan;
	const vn_node *n = &p->node[p->value[t->site->target].node];

	/* A wide one is a fault's: a cap, or a format. */
	return (n->op == VN_OP_GATED || n->op == VN_OP_ACT) && n->c.act.act <= VN_QUICK_GELU &&
	       (n->op == VN_OP_ACT || n->x.gated.form == VN_GATE_USUAL) && n->out[0] == t->site->target;
}

vn_status vn_activation_make(const vn_explain_trial *t, int which, int64_t n, int64_t stride, double *y, vn_error *err)
{
	const vn_tensor *cand = &t->site->cand;
	vn_tensor        gate, up = { 0 };
	vn_status        st;

	if (!vn_is_activation(t) || cand->shape.rank < 2)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "not an activation");
	const bool    gated = t->site->plan->node[t->site->plan->value[t->site->target].node].op == VN_OP_GATED;
	const int64_t first = t->site->first * (vn_shape_count(&cand->shape) / cand->shape.dim[0]);
	if ((st = vn_recompute_input(t->recompute, 0, VN_FINE_WIDTH, &gate, err)) ||
	    (gated && (st = vn_recompute_input(t->recompute, 1, VN_FINE_WIDTH, &up, err))))
		return st;
	for (int64_t i = 0; i < n; i++)
		y[i] = known[which].of(vn_number_at(&gate, first + i * stride)) *
		       (gated ? vn_number_at(&up, first + i * stride) : 1);
	return VN_OK;
}
