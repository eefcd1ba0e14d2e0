/* family_qwen2.c: Qwen2 and Qwen2.5.
 *
 * A pre-norm decoder: grouped-query attention with biases on q, k and v alone,
 * rotary positions, a SiLU-gated feed-forward part, RMS norms. */
#include "libref/plan/family.h"

#include "libref/model/config.h"

#include <math.h>
#include <stdio.h>

static vn_status read_config(const char *path, const json_t *j, vn_config *c, vn_error *err)
{
	vn_status st;
	bool      sliding = false;

	*c = (vn_config){ .V = 151936, .D = 4096, .F = 22016, .L = 32, .H = 32, .context = 32768, .norm_eps = 1e-6,
	                  .rope.theta = 10000.0, .window = 4096, .full_layers = 28 };
	if ((st = vn_config_int(path, j, "vocab_size", 1, 1 << 24, &c->V, err)) ||
	    (st = vn_config_int(path, j, "hidden_size", 1, 1 << 20, &c->D, err)) ||
	    (st = vn_config_int(path, j, "intermediate_size", 1, 1 << 22, &c->F, err)) ||
	    (st = vn_config_int(path, j, "num_hidden_layers", 1, 1024, &c->L, err)) ||
	    (st = vn_config_int(path, j, "num_attention_heads", 1, 4096, &c->H, err)))
		return st;
	/* The class default of num_key_value_heads is 32; null means as many as heads. */
	c->G = json_object_get(j, "num_key_value_heads") ? c->H : 32;
	c->K = c->D / c->H;
	if ((st = vn_config_int(path, j, "num_key_value_heads", 1, 4096, &c->G, err)) ||
	    (st = vn_config_int(path, j, "head_dim", 1, 65536, &c->K, err)) ||
	    (st = vn_config_int(path, j, "max_position_embeddings", 1, 1 << 30, &c->context, err)) ||
	    (st = vn_config_real(path, j, "rms_norm_eps", 0, 1, &c->norm_eps, err)) ||
	    (st = vn_config_bool(path, j, "tie_word_embeddings", &c->tied, err)) ||
	    (st = vn_config_bool(path, j, "use_sliding_window", &sliding, err)) ||
	    (st = vn_config_int(path, j, "sliding_window", 1, 1 << 30, &c->window, err)) ||
	    (st = vn_config_int(path, j, "max_window_layers", 0, 1 << 20, &c->full_layers, err)) ||
	    (st = vn_config_act(path, j, "hidden_act", &c->act, err)))
		return st;
	if (c->K < 1 || c->H % c->G)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %d heads do not share %d key/value heads evenly", path, c->H, c->G);
	if (!json_is_number(json_object_get(j, "head_dim")) && c->D % c->H)
		return vn_fail(err, VN_ERR_FORMAT, "%s: hidden_size %d is not a multiple of %d heads", path, c->D, c->H);
	/* sliding_window: null means no window, absent means 4096 */
	json_t *window = json_object_get(j, "sliding_window");
	if (!sliding || (window && json_is_null(window)))
		c->window = 0;
	json_t *types = json_object_get(j, "layer_types");
	if (types && !json_is_null(types)) {
		if (!json_is_array(types))
			return vn_fail(err, VN_ERR_FORMAT, "%s: layer_types must be a list", path);
		if (json_array_size(types) != (size_t)c->L)
			return vn_fail(err, VN_ERR_FORMAT, "%s: layer_types has %zu entries for %d layers", path, json_array_size(types), c->L);
		c->layer_types = types;
	}
	c->rope.rotary_dim = c->K;
	return vn_config_rope(path, j, c->context, &c->rope, err);
}

/* "model.layers.3.self_attn.q_proj.weight", of shape (m) or (m,n) */
static int weight(vn_builder *p, int layer, const char *name, int64_t m, int64_t n)
{
	char full[VN_NAME_MAX];
	snprintf(full, sizeof full, "model.layers.%d.%s", layer, name);
	return vn_plan_weight(p, full, n ? 2 : 1, (int64_t[]){ m, n });
}

#define W(name, m, n) weight(p, l, name ".weight", m, n)
#define B(name, m)    weight(p, l, name ".bias", m, 0)

vn_status vn_plan_qwen2(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	vn_config    c;
	vn_status    st = read_config(path, config, &c, err);
	vn_builder  *p;
	int          h, q, k, v, ctx, o, gate, up, act, down, window;

	if (st)
		return st;
	if (!(p = vn_plan_begin(c.L, c.V, c.context)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a plan", path);

	const int     D = c.D, F = c.F, HK = c.H * c.K, GK = c.G * c.K;
	const double  scale = 1.0 / sqrt((double)c.K);
	int embedding = vn_plan_weight(p, "model.embed_tokens.weight", 2, (int64_t[]){ c.V, D });   /* (V,D) */

	int x = vn_plan_embed(p, embedding, VN_POINT_EMBED);                                            /* (T,D) */
	for (int l = 0; l < c.L; l++) {
		vn_plan_layer(p, l);
		if ((st = vn_config_window(path, &c, l, &window, err)))
			break;
		vn_plan_name(p, x, VN_POINT_INPUT);                                                         /* (T,D) */
		h = vn_plan_rms_norm(p, x, W("input_layernorm", D, 0), c.norm_eps, VN_POINT_ATTN_NORM);     /* (T,D) */
		q = vn_plan_linear(p, h, W("self_attn.q_proj", HK, D), B("self_attn.q_proj", HK), c.H, VN_POINT_Q_PROJ); /* (T,H,K) */
		k = vn_plan_linear(p, h, W("self_attn.k_proj", GK, D), B("self_attn.k_proj", GK), c.G, VN_POINT_K_PROJ); /* (T,G,K) */
		v = vn_plan_linear(p, h, W("self_attn.v_proj", GK, D), B("self_attn.v_proj", GK), c.G, VN_POINT_V_PROJ); /* (T,G,K) */
		q = vn_plan_rope(p, q, &c.rope, VN_POINT_Q_ROPE);                                           /* (T,H,K) */
		k = vn_plan_rope(p, k, &c.rope, VN_POINT_K_ROPE);                                           /* (T,G,K) */
		ctx = vn_plan_attention(p, q, k, v, scale, window, VN_POINT_ATTN_CONTEXT);                  /* (T,H,K) */
		o = vn_plan_linear(p, ctx, W("self_attn.o_proj", D, HK), -1, 0, VN_POINT_ATTN_OUT);         /* (T,D) */
		x = vn_plan_add(p, x, o, VN_POINT_ATTN_RESIDUAL);                                           /* (T,D) */

		h = vn_plan_rms_norm(p, x, W("post_attention_layernorm", D, 0), c.norm_eps, VN_POINT_MLP_NORM); /* (T,D) */
		gate = vn_plan_linear(p, h, W("mlp.gate_proj", F, D), -1, 0, VN_POINT_GATE_PROJ);           /* (T,F) */
		up = vn_plan_linear(p, h, W("mlp.up_proj", F, D), -1, 0, VN_POINT_UP_PROJ);                 /* (T,F) */
		vn_plan_act(p, c.act, gate, VN_POINT_GATE_ACT, true);                                       /* (T,F) */
		act = vn_plan_gated(p, c.act, gate, up, VN_POINT_MLP_ACT);                                  /* (T,F) */
		down = vn_plan_linear(p, act, W("mlp.down_proj", D, F), -1, 0, VN_POINT_DOWN_PROJ);         /* (T,D) */
		x = vn_plan_add(p, x, down, VN_POINT_OUTPUT);                                               /* (T,D) */
	}
	vn_plan_layer(p, -1);
	h = vn_plan_rms_norm(p, x, vn_plan_weight(p, "model.norm.weight", 1, (int64_t[]){ D }), c.norm_eps, VN_POINT_FINAL_NORM);
	int head = c.tied ? embedding : vn_plan_weight(p, "lm_head.weight", 2, (int64_t[]){ c.V, D });  /* (V,D) */
	vn_plan_linear(p, h, head, -1, 0, VN_POINT_LOGITS);                                             /* (T,V) */

	vn_status built = vn_plan_finish(p, plan, st ? NULL : err);
	if (st && !built) {
		vn_plan_destroy(*plan);
		*plan = NULL;
	}
	return st ? st : built;
}
