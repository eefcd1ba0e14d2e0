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
	char stem[VN_NAME_MAX], tail[VN_NAME_MAX];

	snprintf(stem, sizeof stem, "model.layers.%d.mlp.experts.", layer);
	snprintf(tail, sizeof tail, ".%s.%s", kind, n ? "weight" : "bias");
	return vn_plan_weights(p, experts, stem, tail, (vn_shape) { n ? 2 : 1, { m, n } });
}

int vn_decoder_experts(vn_builder *p, const vn_config *c, int l, int x)
{
	const int                D = c->D, E = c->experts, F = c->expert_F;
	const char *const        name = c->router ? c->router : "mlp.gate";
	const vn_decoder_product gate = { name, E, D, c->expert_bias, 0, VN_POINT_ROUTER_LOGITS };
	int                      h, logits, ids, weights, each, y;

	h = vn_decoder_norm(p, c, x, vn_decoder_weight(p, l, "post_attention_layernorm.weight", D, 0), VN_POINT_MLP_NORM);
	logits = vn_decoder_linear(p, l, h, gate);                                                        /* (T,E) */
	ids = vn_plan_top_k(p, logits, c->per_token, VN_POINT_ROUTER_IDS);                                /* (T,k) */
	weights = vn_plan_route(p, logits, ids, c->normalised, c->wide_weights, VN_POINT_ROUTER_WEIGHTS); /* (T,k) */

	const int w[] = { weights_of(p, l, E, "gate_proj", F, D),
		              weights_of(p, l, E, "up_proj", F, D),
		              weights_of(p, l, E, "down_proj", D, F),
		              c->expert_bias ? weights_of(p, l, E, "gate_proj", F, 0) : -1,
		              c->expert_bias ? weights_of(p, l, E, "up_proj", F, 0) : -1,
		              c->expert_bias ? weights_of(p, l, E, "down_proj", D, 0) : -1 };
	each = vn_plan_experts(p, h, ids, w, E, c->act, VN_POINT_EXPERT_OUT); /* (T,k,D) */
	vn_plan_set(p, each, "limit", c->expert_limit);
	vn_plan_set(p, each, "shift", c->expert_shift);
	y = vn_plan_combine(p, each, weights, VN_POINT_MOE_OUT); /* (T,D) */
	return vn_plan_add(p, x, y, VN_POINT_OUTPUT);            /* (T,D) */
}

#define EXPERTS "mlp.experts."

static const vn_spelling spellings[] = {
	{ "mlp.gate.weight", "block_sparse_moe.gate.weight", 0, 0, false },
	{ EXPERTS "*.gate_proj.weight", "block_sparse_moe.experts.*.w1.weight", 0, 0, false },
	{ EXPERTS "*.down_proj.weight", "block_sparse_moe.experts.*.w2.weight", 0, 0, false },
	{ EXPERTS "*.up_proj.weight", "block_sparse_moe.experts.*.w3.weight", 0, 0, false },
	{ EXPERTS "*.gate_proj.weight", EXPERTS "gate_up_proj", 0, 2, false },
	{ EXPERTS "*.up_proj.weight", EXPERTS "gate_up_proj", 1, 2, false },
	{ EXPERTS "*.down_proj.weight", EXPERTS "down_proj", 0, 1, false },
	/* from GGUF files */
	{ EXPERTS "*.gate_proj.weight", EXPERTS "gate_proj.weight", 0, 1, false },
	{ EXPERTS "*.up_proj.weight", EXPERTS "up_proj.weight", 0, 1, false },
	{ EXPERTS "*.down_proj.weight", EXPERTS "down_proj.weight", 0, 1, false },
	{ 0 },
};

const vn_naming vn_experts_naming = {
	.stem = "model.",
	.layers = "model.layers.",
	.prefixes = (const char *const[]) { "model.", "", "transformer.", "model.model.", NULL },
	.ignored = (const char *const[]) { "*.rotary_emb.inv_freq", NULL },
	.copy = "lm_head.weight",
	.original = "model.embed_tokens.weight",
	.spellings = spellings,
};
