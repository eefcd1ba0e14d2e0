/* experts.c: see experts.h. */
#include "libref/family/experts.h"

#include <stdio.h>

enum { MOST_EXPERTS = 1 << 17 }; /* each has three rows in a plan; DeepSeek-V3 has 15,000 */

vn_status vn_config_experts(const char *path, const json_t *o, vn_config *c, vn_error *err)
{
	int       local = 0;
	vn_status st;

	if ((st = vn_config_int(path, o, "num_local_experts", 1, 65536, &local, err)))
		return st;
	if (local)
		c->experts = local;
	if ((st = vn_config_int(path, o, "num_experts", 1, 65536, &c->experts, err)) ||
	    (st = vn_config_int(path, o, "num_experts_per_tok", 1, 65536, &c->per_token, err)))
		return st;
	if (local && local != c->experts)
		return vn_fail(err, VN_ERR_FORMAT, "%s: num_experts is %d, but num_local_experts is %d", path, c->experts,
		               local);
	if (c->per_token > c->experts)
		return vn_fail(err, VN_ERR_FORMAT, "%s: num_experts_per_tok is %d, but there are %d experts", path,
		               c->per_token, c->experts);
	if (c->experts > MOST_EXPERTS / c->L)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "%s: %d experts in each of %d layers are not supported (at most %d in all)", path, c->experts,
		               c->L, MOST_EXPERTS);
	c->feed_forward = vn_decoder_experts;
	return VN_OK;
}

/* The weights (m,n) of all experts of a kind; n 0: biases (m). */
static int weights_of(vn_builder *p, int layer, int experts, const char *kind, int64_t m, int64_t n)
{
	char layers[VN_NAME_MAX], stem[2 * VN_NAME_MAX], tail[VN_NAME_MAX];

	snprintf(stem, sizeof stem, "%smlp.experts.", vn_decoder_stem(layer, layers));
	snprintf(tail, sizeof tail, ".%s.%s", kind, n ? "weight" : "bias");
	return vn_plan_weights(p, experts, stem, tail, (vn_shape) { n ? 2 : 1, { m, n } });
}

#define SHARED(x, kind, ...) \
	(snprintf(name, sizeof name, "%s." kind, c->shared ? c->shared : "mlp.shared_expert"), \
	 vn_decoder_linear(p, l, x, (vn_decoder_product) { name, __VA_ARGS__ }))

/* Adds what the expert of all tokens makes of h to the sum of the others. */
static int add_shared(vn_builder *p, const vn_config *c, int l, int h, int routed)
{
	const int D = c->D, F = c->shared_F;
	char      name[VN_NAME_MAX];
	int       gate, up, act, y, weight;

	gate = SHARED(h, "gate_proj", F, D, false, 0, VN_POINT_GATE_PROJ); /* (T,F) */
	up = SHARED(h, "up_proj", F, D, false, 0, VN_POINT_UP_PROJ);       /* (T,F) */
	vn_plan_act(p, c->act, gate, VN_POINT_GATE_ACT, true);             /* (T,F) */
	act = vn_plan_gated(p, c->act, gate, up, VN_POINT_MLP_ACT);        /* (T,F) */
	y = SHARED(act, "down_proj", D, F, false, 0, VN_POINT_SHARED_OUT); /* (T,D) */
	if (c->shared_gate) {
		const vn_decoder_product of = { "mlp.shared_expert_gate", 1, D, false, 0, VN_POINT_SHARED_GATE };
		weight = vn_plan_act(p, VN_SIGMOID, vn_decoder_linear(p, l, h, of), VN_POINT_SHARED_WEIGHT, false); /* (T,1) */
		y = vn_plan_combine(p, y, weight, VN_POINT_SHARED_GATED);                                           /* (T,D) */
	}
	return vn_plan_add(p, routed, y, VN_POINT_MOE_OUT); /* (T,D) */
}

int vn_decoder_experts(vn_builder *p, const vn_config *c, int l, int x)
{
	const int                D = c->D, E = c->experts, F = c->expert_F;
	const char *const        name = c->router ? c->router : "mlp.gate";
	const vn_decoder_product gate = { name, E, D, c->expert_bias, 0, VN_POINT_ROUTER_LOGITS };
	int                      h, logits, ids, weights, each, y, bias = -1;

	h = vn_decoder_norm(p, c, x, vn_decoder_weight(p, l, "post_attention_layernorm.weight", D, 0), VN_POINT_MLP_NORM);
	logits = vn_decoder_linear(p, l, h, gate); /* (T,E) */
	if (c->wide_logits)
		vn_plan_wide(p, logits);
	if (c->router_bias)
		bias = vn_decoder_weight(p, l, "mlp.gate.e_score_correction_bias", E, 0);
	ids = vn_plan_top_k(p, logits, bias, c->per_token, VN_POINT_ROUTER_IDS); /* (T,k) */
	vn_plan_set(p, ids, "sigmoid", c->router_sigmoid);
	vn_plan_set(p, ids, "groups", c->groups);
	vn_plan_set(p, ids, "groups_used", c->groups_used);
	vn_plan_set(p, ids, "best", c->best);
	weights = vn_plan_route(p, logits, ids, c->normalised, c->wide_weights, VN_POINT_ROUTER_WEIGHTS); /* (T,k) */
	vn_plan_set(p, weights, "sigmoid", c->router_sigmoid);
	vn_plan_set(p, weights, "scale", c->router_scale);

	const int w[] = { weights_of(p, l, E, "gate_proj", F, D),
		              weights_of(p, l, E, "up_proj", F, D),
		              weights_of(p, l, E, "down_proj", D, F),
		              c->expert_bias ? weights_of(p, l, E, "gate_proj", F, 0) : -1,
		              c->expert_bias ? weights_of(p, l, E, "up_proj", F, 0) : -1,
		              c->expert_bias ? weights_of(p, l, E, "down_proj", D, 0) : -1 };
	each = vn_plan_experts(p, h, ids, w, E, c->act, VN_POINT_EXPERT_OUT); /* (T,k,D) */
	vn_plan_set(p, each, "limit", c->expert_limit);
	vn_plan_set(p, each, "shift", c->expert_shift);
	y = vn_plan_combine(p, each, weights, c->shared_F ? VN_POINT_ROUTED_OUT : VN_POINT_MOE_OUT); /* (T,D) */
	if (c->shared_F)
		y = add_shared(p, c, l, h, y);
	return vn_plan_add(p, x, y, VN_POINT_OUTPUT); /* (T,D) */
}
