/* gpt2.c: GPT-2.
 *
 * A pre-norm decoder with layer norms and biases everywhere: learned positions
 * are added to the embedding, queries, keys and values come out of one product,
 * the feed-forward part has no gate. Its matrices are stored [in,out]. */
#include "libref/family/family.h"

#include "libref/family/config.h"

#include <math.h>
#include <stdio.h>

typedef struct gpt2 {
	int    V, D, F, L, H, context;
	double eps;
	vn_act act;
	bool   tied;
	bool   scale;    /* scores by K^-1/2 */
	bool   by_layer; /* also divide by (layer + 1) */
} gpt2;

/* Reads a size under its own name or its name in newer families. In transformers both set one
 * field, and the last one written wins. */
static vn_status read_size(const char *path, const json_t *j, const char *const name[2], int high, int *out,
                           vn_error *err)
{
	int       own = 0, alias = 0;
	vn_status st;

	if ((st = vn_config_int(path, j, name[0], 1, high, &own, err)) ||
	    (st = vn_config_int(path, j, name[1], 1, high, &alias, err)))
		return st;
	if (own && alias && own != alias)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s is %d, but %s is %d", path, name[0], own, name[1], alias);
	*out = own ? own : alias ? alias : *out;
	return VN_OK;
}

static vn_status read_config(const char *path, const json_t *j, gpt2 *c, vn_error *err)
{
	bool      cross = false;
	vn_status st;

	*c = (gpt2) { .V = 50257,
		          .D = 768,
		          .L = 12,
		          .H = 12,
		          .context = 1024,
		          .eps = 1e-5,
		          .act = VN_GELU_TANH,
		          .tied = true,
		          .scale = true };
	if ((st = vn_config_int(path, j, "vocab_size", 1, 1 << 24, &c->V, err)) ||
	    (st = read_size(path, j, (const char *[]) { "n_embd", "hidden_size" }, 1 << 20, &c->D, err)) ||
	    (st = read_size(path, j, (const char *[]) { "n_layer", "num_hidden_layers" }, 1024, &c->L, err)) ||
	    (st = read_size(path, j, (const char *[]) { "n_head", "num_attention_heads" }, 4096, &c->H, err)) ||
	    (st = read_size(path, j, (const char *[]) { "n_positions", "max_position_embeddings" }, 1 << 24, &c->context,
	                    err)))
		return st;
	c->F = 4 * c->D;
	if ((st = vn_config_int(path, j, "n_inner", 1, 1 << 22, &c->F, err)) ||
	    (st = vn_config_real(path, j, "layer_norm_epsilon", 0, 1, &c->eps, err)) ||
	    (st = vn_config_act(path, j, "activation_function", &c->act, err)) ||
	    (st = vn_config_bool(path, j, "tie_word_embeddings", &c->tied, err)) ||
	    (st = vn_config_bool(path, j, "scale_attn_weights", &c->scale, err)) ||
	    (st = vn_config_bool(path, j, "scale_attn_by_inverse_layer_idx", &c->by_layer, err)) ||
	    (st = vn_config_bool(path, j, "add_cross_attention", &cross, err)))
		return st;
	/* reorder_and_upcast_attn asks for float32 scores, which are float32 or better here */
	if (cross)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: add_cross_attention is not supported", path);
	if (c->D % c->H)
		return vn_fail(err, VN_ERR_FORMAT, "%s: n_embd %d is not a multiple of %d heads", path, c->D, c->H);
	return VN_OK;
}

/* The weight "transformer.h.3.attn.c_attn.weight": layer 3, name attn.c_attn, kind weight; of shape
 * (m) or, if n is not 0, (m,n). */
static int add_weight(vn_builder *p, int layer, const char *name, const char *kind, int64_t m, int64_t n)
{
	char full[VN_NAME_MAX];
	snprintf(full, sizeof full, "transformer.h.%d.%s.%s", layer, name, kind);
	return vn_plan_weight(p, full, n ? 2 : 1, (int64_t[]) { m, n });
}

/* (T,D) of x (T,D) */
static int add_norm(vn_builder *p, const gpt2 *c, int layer, int x, const char *name, vn_point out)
{
	const int w = add_weight(p, layer, name, "weight", c->D, 0), bias = add_weight(p, layer, name, "bias", c->D, 0);

	return vn_plan_layer_norm(p, x, w, bias, c->eps, out);
}

/* (T,size[1]) of x (T,size[0]) */
static int add_product(vn_builder *p, int layer, int x, const char *name, const int size[2], vn_point out)
{
	const int w = add_weight(p, layer, name, "weight", size[0], size[1]);
	const int bias = add_weight(p, layer, name, "bias", size[1], 0);

	return vn_plan_conv1d(p, x, w, bias, 0, out);
}

#define NORM(x, name, out)          add_norm(p, &c, l, x, name, out)
#define PRODUCT(x, name, n, m, out) add_product(p, l, x, name, (int[]) { n, m }, out)

static vn_status plan_gpt2(const char *path, const json_t *config, vn_plan **plan, vn_error *err)
{
	gpt2        c;
	vn_status   st = read_config(path, config, &c, err);
	vn_builder *p;
	int         h, q, k, v, ctx, o, up, act, down;

	*plan = NULL;
	if (st)
		return st;
	if (!(p = vn_plan_begin(c.L, c.V, c.context)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a plan", path);

	const int    D = c.D, F = c.F, H = c.H;
	const double scale = c.scale ? 1.0 / sqrt((double)D / H) : 1.0;
	const int    wte = vn_plan_weight(p, "transformer.wte.weight", 2, (int64_t[]) { c.V, D });
	const int    wpe = vn_plan_weight(p, "transformer.wpe.weight", 2, (int64_t[]) { c.context, D });

	const int tokens = vn_plan_embed(p, wte, VN_POINT_TOKEN_EMBED);      /* (T,D) */
	const int positions = vn_plan_positions(p, wpe, VN_POINT_POS_EMBED); /* (T,D) */
	int       x = vn_plan_add(p, tokens, positions, VN_POINT_EMBED);     /* (T,D) */
	for (int l = 0; l < c.L; l++) {
		vn_plan_layer(p, l);
		vn_plan_name(p, x, VN_POINT_INPUT);                                            /* (T,D) */
		h = NORM(x, "ln_1", VN_POINT_ATTN_NORM);                                       /* (T,D) */
		h = PRODUCT(h, "attn.c_attn", D, 3 * D, VN_POINT_C_ATTN);                      /* (T,3D) */
		q = vn_plan_slice(p, h, (vn_columns) { 3 * D, 0, D }, H, VN_POINT_Q_PROJ);     /* (T,H,K) */
		k = vn_plan_slice(p, h, (vn_columns) { 3 * D, D, D }, H, VN_POINT_K_PROJ);     /* (T,H,K) */
		v = vn_plan_slice(p, h, (vn_columns) { 3 * D, 2 * D, D }, H, VN_POINT_V_PROJ); /* (T,H,K) */
		ctx = vn_plan_attention(p, q, k, v, c.by_layer ? scale / (l + 1) : scale, 0);  /* (T,H,K) */
		o = PRODUCT(ctx, "attn.c_proj", D, D, VN_POINT_ATTN_OUT);                      /* (T,D) */
		x = vn_plan_add(p, x, o, VN_POINT_ATTN_RESIDUAL);                              /* (T,D) */

		h = NORM(x, "ln_2", VN_POINT_MLP_NORM);                      /* (T,D) */
		up = PRODUCT(h, "mlp.c_fc", D, F, VN_POINT_UP_PROJ);         /* (T,F) */
		act = vn_plan_act(p, c.act, up, VN_POINT_MLP_ACT, false);    /* (T,F) */
		down = PRODUCT(act, "mlp.c_proj", F, D, VN_POINT_DOWN_PROJ); /* (T,D) */
		x = vn_plan_add(p, x, down, VN_POINT_OUTPUT);                /* (T,D) */
	}
	vn_plan_layer(p, -1);
	const int g = vn_plan_weight(p, "transformer.ln_f.weight", 1, (int64_t[]) { D });
	const int b = vn_plan_weight(p, "transformer.ln_f.bias", 1, (int64_t[]) { D });
	const int head = c.tied ? wte : vn_plan_weight(p, "lm_head.weight", 2, (int64_t[]) { c.V, D });
	x = vn_plan_layer_norm(p, x, g, b, c.eps, VN_POINT_FINAL_NORM); /* (T,D) */
	vn_plan_linear(p, x, head, -1, 0, VN_POINT_LOGITS);             /* (T,V) */
	return vn_plan_finish(p, plan, err);
}

static const vn_setting obeys[] = {
	{ "scale_attn_weights", VN_ONLY_TRUE, NULL },
	{ "scale_attn_by_inverse_layer_idx", VN_FALSE, NULL },
	{ 0 },
};

static const vn_naming naming = {
	.stem = "transformer.",
	.layers = "transformer.h.",
	.prefixes = (const char *const[]) { "transformer.", "", "model.", "model.transformer.", NULL },
	/* the causal mask and its fill value, stored as buffers */
	.ignored = (const char *const[]) { "*h.*.attn.bias", "*h.*.attn.masked_bias", NULL },
	.copy = "lm_head.weight",
	.original = "transformer.wte.weight",
};

static const vn_family_weight weights[] = {
	{ VN_POINT_TOKEN_EMBED, "transformer.wte", "token_embd", 0, 0 },
	{ VN_POINT_POS_EMBED, "transformer.wpe", "position_embd", 0, 0 },
	{ VN_POINT_FINAL_NORM, "transformer.ln_f", "output_norm", 0, 0 },
	{ VN_POINT_LOGITS, "lm_head", "output", 0, 0 },
	{ VN_POINT_ATTN_NORM, "ln_1", "attn_norm", 0, 0 },
	{ VN_POINT_MLP_NORM, "ln_2", "ffn_norm", 0, 0 },
	{ VN_POINT_C_ATTN, "attn.c_attn", "attn_qkv", VN_GGUF_TRANSPOSED, 0 },
	{ VN_POINT_ATTN_OUT, "attn.c_proj", "attn_output", VN_GGUF_TRANSPOSED, 0 },
	{ VN_POINT_UP_PROJ, "mlp.c_fc", "ffn_up", VN_GGUF_TRANSPOSED, 0 },
	{ VN_POINT_DOWN_PROJ, "mlp.c_proj", "ffn_down", VN_GGUF_TRANSPOSED, 0 },
	{ 0 },
};

static const vn_gguf_field fields[] = {
	{ VN_GGUF_REAL, "layer_norm_epsilon", "attention.layer_norm_epsilon", NULL, 0, 0 },
	/* converters always write 4 D as feed_forward_length */
	{ VN_GGUF_ROWS, "n_inner", "blk.0.ffn_up.weight", NULL, 0, 0 },
	{ VN_GGUF_WORD, "activation_function", "gelu_new", NULL, 0, 0 },
	{ 0 },
};

static const vn_published published[] = {
	{ "gpt2-medium",
	  "{\"architectures\": [\"GPT2LMHeadModel\"], \"model_type\": \"gpt2\", \"vocab_size\": 50257, \"n_positions\": "
	  "1024, \"n_embd\": 1024, \"n_layer\": 24, \"n_head\": 16, \"activation_function\": \"gelu_new\", "
	  "\"layer_norm_epsilon\": 1e-5, \"tie_word_embeddings\": true}" },
	{ 0 },
};

const vn_family vn_family_gpt2 = {
	.model_type = "gpt2",
	.plan = plan_gpt2,
	.obeys = obeys,
	.naming = &naming,
	.weights = weights,
	.gguf = { .arch = "gpt2", .sizes = { "n_embd", "n_layer", "n_head", "n_positions" }, .fields = fields },
	.published = published,
};
