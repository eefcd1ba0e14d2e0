/* gguf_config.c: see gguf_config.h. */
#include "libref/model/gguf_config.h"

#include "libref/family/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KEY = 128, ARCH = 64 };

typedef struct maker {
	const vn_gguf   *f;
	const vn_family *family;
	const char      *arch, *path;
	json_t          *o;    /* what comes of it */
	json_t          *rope; /* its rope_parameters */
	vn_error        *err;
} maker;

vn_status vn_gguf_arch(const vn_gguf *f, char *text, size_t room, vn_error *err)
{
	vn_gguf_text t;

	if (!vn_gguf_text_at(vn_gguf_get(f, "general.architecture"), 0, &t) || t.bytes == 0 || t.bytes >= room ||
	    memchr(t.data, '\0', t.bytes))
		return vn_fail(err, VN_ERR_FORMAT, "%s: metadata 'general.architecture' is missing or empty", vn_gguf_path(f));
	memcpy(text, t.data, t.bytes);
	text[t.bytes] = '\0';
	return VN_OK;
}

/* Reports a bad key: "x.gguf: metadata 'qwen2.block_count' is missing". */
__attribute__((format(printf, 4, 5))) static vn_status refuse_key(const maker *m, vn_status st, const char *key,
                                                                  const char *format, ...)
{
	char    text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return vn_fail(m->err, st, "%s: metadata '%s.%s' %s", m->path, m->arch, key, text);
}

static const vn_gguf_value *value_of(const maker *m, const char *key)
{
	char full[KEY];
	snprintf(full, sizeof full, "%s.%s", m->arch, key);
	return vn_gguf_get(m->f, full);
}

static vn_status read_int(const maker *m, const char *key, int64_t *x)
{
	const vn_gguf_value *v = value_of(m, key);
	int64_t              first = -1, n;

	if (!v)
		return VN_OK;
	for (size_t i = 0; i < v->n; i++) {
		if (!vn_gguf_int_at(v, i, &n) || n < 0 || n > INT32_MAX)
			return refuse_key(m, VN_ERR_FORMAT, key, "must be a whole number from 0 to %d", INT32_MAX);
		if (i > 0 && n != first)
			return refuse_key(m, VN_ERR_UNSUPPORTED, key, "is not the same for all layers");
		first = n;
	}
	if (v->n == 0)
		return refuse_key(m, VN_ERR_FORMAT, key, "is empty");
	*x = first;
	return VN_OK;
}

vn_status vn_gguf_arch_int(const vn_gguf *f, const char *key, int64_t *x, vn_error *err)
{
	char        arch[ARCH];
	const maker m = { .f = f, .arch = arch, .path = vn_gguf_path(f), .err = err };
	vn_status   st = vn_gguf_arch(f, arch, sizeof arch, err);

	return st ? st : read_int(&m, key, x);
}

static vn_status report_missing(const maker *m, const char *key)
{
	return refuse_key(m, VN_ERR_FORMAT, key, "is missing");
}

/* Copies a required key to a field. */
static vn_status copy_int(const maker *m, const char *key, const char *field)
{
	int64_t         x = -1;
	const vn_status st = read_int(m, key, &x);

	if (st)
		return st;
	if (x < 0)
		return report_missing(m, key);
	json_object_set_new(m->o, field, json_integer(x));
	return VN_OK;
}

static vn_status read_real(const maker *m, const char *key, double *x)
{
	const vn_gguf_value *v = value_of(m, key);

	if (v && (v->array || !vn_gguf_real_at(v, 0, x) || !isfinite(*x)))
		return refuse_key(m, VN_ERR_FORMAT, key, "must be a number");
	return VN_OK;
}

static vn_status copy_real(const maker *m, const char *key, const char *field)
{
	double          x = NAN;
	const vn_status st = read_real(m, key, &x);

	if (st)
		return st;
	if (isnan(x))
		return report_missing(m, key);
	json_object_set_new(m->o, field, json_real(x));
	return VN_OK;
}

static vn_status read_bool(const maker *m, const char *key, bool *x)
{
	const vn_gguf_value *v = value_of(m, key);

	if (v && (v->array || !vn_gguf_bool_at(v, 0, x)))
		return refuse_key(m, VN_ERR_FORMAT, key, "must be true or false");
	return VN_OK;
}

/* Copies an optional key to a field of o. */
static vn_status copy_real_to(const maker *m, const char *key, json_t *o, const char *field)
{
	double          x = NAN;
	const vn_status st = read_real(m, key, &x);

	if (!st && !isnan(x))
		json_object_set_new(o, field, json_real(x));
	return st;
}

/* Copies an optional key to the RoPE settings. */
static vn_status rope_real(const maker *m, const char *key, const char *field)
{
	return copy_real_to(m, key, m->rope, field);
}

static bool is_read(const vn_family *f, const char *key)
{
	for (const vn_gguf_field *x = f->gguf.fields; x && x->field; x++)
		if (x->from && strcmp(x->from, key) == 0)
			return true;
	return false;
}

/* Models of one architecture may be of two families, of which one has experts, or which choose
 * experts by another function. */
const vn_family *vn_gguf_family_of(const vn_gguf *f, const char *arch)
{
	int64_t experts = 0, gating = 1;

	if (vn_gguf_arch_int(f, "expert_count", &experts, NULL) || vn_gguf_arch_int(f, "expert_gating_func", &gating, NULL))
		return vn_family_of_arch(arch);
	for (int i = 0; vn_family_at(i); i++) {
		const vn_family *one = vn_family_at(i);
		if (one->gguf.arch && strcmp(one->gguf.arch, arch) == 0 && (!experts || is_read(one, "expert_count")) &&
		    (!one->gguf.gating || one->gguf.gating == gating))
			return one;
	}
	return vn_family_of_arch(arch);
}

/* Keys that change an architecture's computation, and the value, besides 0,
 * that changes nothing. */
static vn_status refuse_what_we_do_not_do(const maker *m)
{
	const struct {
		const char *key;
		double      harmless;
	} keys[] = {
		{ "expert_count", 0 },
		{ "attention.clamp_kqv", 0 },
		{ "attention.max_alibi_bias", 0 },
		{ "attn_logit_softcapping", 0 },
		{ "final_logit_softcapping", 0 },
		{ "logit_scale", 1 },
		{ "residual_scale", 1 },
		{ "embedding_scale", 1 },
		{ "rope.scaling.yarn_log_multiplier", 0 },
		{ "rope.scaling.yarn_ext_factor", 1 },
		{ "attention.temperature_scale", 0 },
		{ "expert_gating_func", m->family->gguf.gating ? m->family->gguf.gating : 1 },
		{ "expert_weights_scale", 1 },
		{ "expert_group_count", 1 },
	};
	vn_status st;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		double x = 0;
		if ((st = read_real(m, keys[i].key, &x)))
			return st;
		if (x != 0 && x != keys[i].harmless && !is_read(m->family, keys[i].key))
			return refuse_key(m, VN_ERR_UNSUPPORTED, keys[i].key, "is %g, which is not supported", x);
	}
	bool causal = true, parallel = false;
	if ((st = read_bool(m, "attention.causal", &causal)) || (st = read_bool(m, "use_parallel_residual", &parallel)))
		return st;
	if (!causal)
		return refuse_key(m, VN_ERR_UNSUPPORTED, "attention.causal", "is false, which is not supported");
	if (parallel)
		return refuse_key(m, VN_ERR_UNSUPPORTED, "use_parallel_residual", "is true, which is not supported");
	return VN_OK;
}

static bool has_tensor(const maker *m, const char *tensor)
{
	return vn_gguf_find(m->f, tensor) != NULL;
}

static int64_t count_rows(const maker *m, const char *tensor)
{
	const vn_gguf_tensor *t = vn_gguf_find(m->f, tensor);
	return t && t->t.shape.rank == 2 ? t->t.shape.dim[0] : -1;
}

/* Sizes that every architecture has, under its own field names. */
static vn_status copy_sizes(const maker *m, const char *D, const char *L, const char *H, const char *context)
{
	int64_t   V = count_rows(m, "token_embd.weight"), layers = -1, extra = 0;
	vn_status st;

	if ((st = read_int(m, "vocab_size", &V)) || (st = read_int(m, "block_count", &layers)) ||
	    (st = read_int(m, "nextn_predict_layers", &extra)) || (st = copy_int(m, "embedding_length", D)) ||
	    (st = copy_int(m, "attention.head_count", H)) || (st = copy_int(m, "context_length", context)))
		return st;
	if (layers < 0)
		return report_missing(m, "block_count");
	if (extra > layers)
		return refuse_key(m, VN_ERR_FORMAT, "nextn_predict_layers",
		                  "is %" PRId64 ", but the model has only %" PRId64 " blocks", extra, layers);
	if (V < 0)
		return vn_fail(m->err, VN_ERR_NOTFOUND, "%s: tensor 'token_embd.weight' is missing or not a matrix", m->path);
	json_object_set_new(m->o, "vocab_size", json_integer(V));
	json_object_set_new(m->o, L, json_integer(layers - extra));
	if (extra > 1)
		json_object_set_new(m->o, "mtp_num_hidden_layers", json_integer(extra));
	json_object_set_new(m->o, "tie_word_embeddings", json_boolean(!has_tensor(m, "output.weight")));
	return VN_OK;
}

static vn_status set_heads(const maker *m)
{
	const int64_t D = json_integer_value(json_object_get(m->o, "hidden_size"));
	const int64_t H = json_integer_value(json_object_get(m->o, "num_attention_heads"));
	int64_t       G = H, K = H > 0 ? D / H : 0, value;
	double        scale = 0;
	vn_status     st;

	if (!value_of(m, "attention.key_length") && H > 0 && D % H)
		return refuse_key(m, VN_ERR_FORMAT, "attention.key_length",
		                  "is missing, and %" PRId64 " columns cannot be split evenly into %" PRId64 " heads", D, H);
	if ((st = read_int(m, "attention.head_count_kv", &G)) || (st = read_int(m, "attention.key_length", &K)))
		return st;
	value = K;
	if ((st = read_int(m, "attention.value_length", &value)) || (st = read_real(m, "attention.scale", &scale)))
		return st;
	if (value != K)
		return refuse_key(m, VN_ERR_UNSUPPORTED, "attention.value_length",
		                  "is %" PRId64 ", but the key length is %" PRId64 "; only equal lengths are supported", value,
		                  K);
	if (scale != 0 && !(fabs(scale * sqrt((double)K) - 1) <= 1e-6))
		return refuse_key(m, VN_ERR_UNSUPPORTED, "attention.scale",
		                  "is %g, which is not supported (supported: 1 / sqrt(%" PRId64 "))", scale, K);
	json_object_set_new(m->o, "num_key_value_heads", json_integer(G));
	json_object_set_new(m->o, "head_dim", json_integer(K));
	return VN_OK;
}

/* Heads of which R columns rotate, shared by all keys. Newer files describe one key for all heads,
 * as wide as the latent vector, and have the heads' own widths under keys that end in _mla. */
static vn_status set_latent_heads(const maker *m)
{
	const bool  newer = value_of(m, "attention.key_length_mla");
	const char *keys = newer ? "attention.key_length_mla" : "attention.key_length",
			   *values = newer ? "attention.value_length_mla" : "attention.value_length";
	int64_t   R = -1, K = -1, U = -1;
	double    scale = 0;
	vn_status st;

	if ((st = read_int(m, "rope.dimension_count", &R)) || (st = read_int(m, keys, &K)) ||
	    (st = read_int(m, values, &U)) || (st = read_real(m, "attention.scale", &scale)))
		return st;
	if (R < 0 || K < 0 || U < 0)
		return report_missing(m, R < 0 ? "rope.dimension_count" : K < 0 ? keys : values);
	if (K <= R)
		return refuse_key(m, VN_ERR_FORMAT, keys, "is %" PRId64 ", but %" PRId64 " columns rotate", K, R);
	if (scale != 0)
		return refuse_key(m, VN_ERR_UNSUPPORTED, "attention.scale", "is %g, which is not supported", scale);
	json_object_set(m->o, "num_key_value_heads", json_object_get(m->o, "num_attention_heads"));
	json_object_set_new(m->o, "head_dim", json_integer(R));
	json_object_set_new(m->o, "qk_rope_head_dim", json_integer(R));
	json_object_set_new(m->o, "qk_nope_head_dim", json_integer(K - R));
	json_object_set_new(m->o, "v_head_dim", json_integer(U));
	return VN_OK;
}

/* Reads "linear", "yarn", or NULL for none. A factor without a type means linear, as in llama.cpp;
 * the first files stored it under its own key. */
static vn_status read_scaling(const maker *m, const char **type, double *factor)
{
	const vn_gguf_value *v = value_of(m, "rope.scaling.type");
	vn_gguf_text         t = { "", 0 };
	vn_status            st;

	*factor = NAN;
	if ((st = read_real(m, "rope.scale_linear", factor)) || (st = read_real(m, "rope.scaling.factor", factor)))
		return st;
	*type = v                                                 ? vn_gguf_is(v, "yarn")     ? "yarn"
	                                                            : vn_gguf_is(v, "linear") ? "linear"
	                                                                                      : NULL
	        : !isnan(*factor) && *factor != 0 && *factor != 1 ? "linear"
	                                                          : NULL;
	if (*type || !v || vn_gguf_is(v, "none"))
		return VN_OK;
	vn_gguf_text_at(v, 0, &t);
	return refuse_key(m, VN_ERR_UNSUPPORTED, "rope.scaling.type",
	                  "is '%.*s', which is not supported (supported: linear, yarn)", t.bytes < 32 ? (int)t.bytes : 32,
	                  t.data);
}

/* HuggingFace's attention_factor has two names. It belongs to yarn, but llama.cpp applies
 * it to every type. */
static vn_status attention_factor(const maker *m, bool yarn)
{
	static const char *const keys[] = { "rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor" };
	double                   x = NAN;
	vn_status                st;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		double other = NAN;
		if ((st = read_real(m, keys[i], &other)))
			return st;
		if (isnan(other))
			continue;
		if (!yarn && other != 1)
			return refuse_key(m, VN_ERR_UNSUPPORTED, keys[i],
			                  "is %g, which is not supported without the scaling type yarn", other);
		if (!isnan(x) && x != other)
			return refuse_key(m, VN_ERR_FORMAT, keys[i], "is %g, but '%s.%s' is %g", other, m->arch, keys[0], x);
		x = other;
	}
	json_object_set_new(m->rope, "attention_factor", yarn && !isnan(x) ? json_real(x) : NULL);
	return VN_OK;
}

/* Builds the object of all RoPE settings. */
static vn_status set_rope(const maker *m)
{
	const int64_t         K = json_integer_value(json_object_get(m->o, "head_dim"));
	const vn_gguf_tensor *divisors = vn_gguf_find(m->f, "rope_freqs.weight");
	const char           *type = NULL;
	int64_t               R = K, original = 0;
	double                factor;
	vn_status             st;

	json_object_set_new(m->rope, "rope_type", json_string("default"));
	json_object_set_new(m->rope, "rope_theta", json_real(10000.0));
	if ((st = rope_real(m, "rope.freq_base", "rope_theta")) || (st = read_int(m, "rope.dimension_count", &R)) ||
	    (st = read_int(m, "rope.scaling.original_context_length", &original)) ||
	    (st = read_scaling(m, &type, &factor)) || (st = attention_factor(m, type && strcmp(type, "yarn") == 0)))
		return st;
	if (R > K)
		return refuse_key(m, VN_ERR_FORMAT, "rope.dimension_count",
		                  "is %" PRId64 ", but a head has only %" PRId64 " columns", R, K);
	/* A fraction of the head that truncates to R columns: 0.25 exactly, or a value in between when
	 * the decimals do not end. */
	if (R != K && K > 0)
		json_object_set_new(m->rope, "partial_rotary_factor",
		                    json_real(((double)R + (8 * R % K ? 0.5 : 0)) / (double)K));
	if (divisors && type)
		return refuse_key(m, VN_ERR_UNSUPPORTED, "rope.scaling.type",
		                  "(%s) together with a tensor rope_freqs.weight is not supported", type);
	if (divisors)
		return vn_gguf_llama3(divisors, m->rope, R / 2, original, m->err);
	if (!type)
		return VN_OK;
	json_object_set_new(m->rope, "rope_type", json_string(type));
	json_object_set_new(m->rope, "original_max_position_embeddings", original ? json_integer(original) : NULL);
	json_object_set_new(m->rope, "factor", !isnan(factor) ? json_real(factor) : NULL);
	st = rope_real(m, "rope.scaling.yarn_beta_fast", "beta_fast");
	return st ? st : rope_real(m, "rope.scaling.yarn_beta_slow", "beta_slow");
}

/* Few converters write a window, and some omit which layers have it. */
static vn_status set_window(const maker *m)
{
	const vn_gguf_value *pattern = value_of(m, "attention.sliding_window_pattern");
	const int64_t        L = json_integer_value(json_object_get(m->o, "num_hidden_layers"));
	int64_t              W = 0;
	const vn_status      st = read_int(m, "attention.sliding_window", &W);
	bool                 slides = false;

	if (st || W == 0)
		return st;
	const vn_gguf_window window = m->family->gguf.window;
	if (window == VN_GGUF_WINDOW_FAMILY || (window == VN_GGUF_WINDOW_MISTRAL && !pattern)) {
		if (window == VN_GGUF_WINDOW_MISTRAL)
			json_object_set_new(m->o, "model_type", json_string("mistral"));
		json_object_set_new(m->o, "sliding_window", json_integer(W));
		return VN_OK;
	}
	if (window != VN_GGUF_WINDOW_PATTERN || !pattern || (int64_t)pattern->n < L ||
	    !vn_gguf_bool_at(pattern, 0, &slides))
		return refuse_key(m, VN_ERR_UNSUPPORTED, "attention.sliding_window",
		                  "is set, but no pattern selects the layers that have a window");
	json_t *types = json_array();
	for (int64_t i = 0; i < L; i++) {
		vn_gguf_bool_at(pattern, (size_t)i, &slides);
		json_array_append_new(types, json_string(slides ? "sliding_attention" : "full_attention"));
	}
	json_object_set_new(m->o, "layer_types", types);
	json_object_set_new(m->o, "use_sliding_window", json_true());
	json_object_set_new(m->o, "sliding_window", json_integer(W));
	return VN_OK;
}

/* ---- the fields ----------------------------------------------------------------------------- */

static vn_status set_decoder(const maker *m)
{
	vn_status st;

	const bool mixed = is_read(m->family, "expert_feed_forward_length") && !value_of(m, "feed_forward_length");

	if ((st = copy_sizes(m, "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")) ||
	    (!mixed && (st = copy_int(m, "feed_forward_length", "intermediate_size"))) ||
	    (st = copy_real(m, "attention.layer_norm_rms_epsilon", "rms_norm_eps")) ||
	    (st = (m->family->gguf.latent ? set_latent_heads : set_heads)(m)))
		return st;
	json_object_set_new(m->o, "hidden_act", json_string(m->family->gguf.act));
	json_object_set(m->o, "rope_parameters", m->rope);
	return set_rope(m);
}

static bool any_layer_has(const maker *m, const char *tensor)
{
	const int64_t L = json_integer_value(json_object_get(m->o, "num_hidden_layers"));
	char          name[KEY];

	for (int64_t i = 0; i < L; i++) {
		snprintf(name, sizeof name, "blk.%" PRId64 ".%s", i, tensor);
		if (has_tensor(m, name))
			return true;
	}
	return false;
}

/* Copies a key that may be missing. */
static vn_status copy_or(const maker *m, const vn_gguf_field *x)
{
	int64_t         n = x->absent;
	const vn_status st = read_int(m, x->from, &n);

	if (!st)
		json_object_set_new(m->o, x->field, json_integer(n));
	return st;
}

/* Copies a key that may be missing, which is null. */
static vn_status copy_or_null(const maker *m, const vn_gguf_field *x)
{
	if (value_of(m, x->from))
		return copy_int(m, x->from, x->field);
	json_object_set_new(m->o, x->field, json_null());
	return VN_OK;
}

static vn_status copy_truth(const maker *m, const vn_gguf_field *x)
{
	bool            b = false;
	const vn_status st = read_bool(m, x->from, &b);

	if (!st)
		json_object_set_new(m->o, x->field, json_boolean(b));
	return st;
}

static vn_status set_yarn_scale(const maker *m, const vn_gguf_field *x)
{
	double          tenth = 0;
	const vn_status st = read_real(m, x->from, &tenth);

	if (!st && tenth != 0)
		for (int i = 0; i < 2; i++) /* nine digits: 0.707, of the float32 0.0707 */
			json_object_set_new(m->rope, i ? "mscale_all_dim" : "mscale", json_real(round(tenth * 1e10) / 1e9));
	return st;
}

static vn_status copy_quotient(const maker *m, const vn_gguf_field *x)
{
	int64_t   whole = 0, by = 0;
	vn_status st;

	if ((st = read_int(m, x->from, &whole)) || (st = read_int(m, x->by, &by)))
		return st;
	if (by < 1 || whole < 1 || whole % by)
		return refuse_key(m, VN_ERR_FORMAT, x->from, "(%" PRId64 ") is not a multiple of '%s.%s' (%" PRId64 ")", whole,
		                  m->arch, x->by, by);
	json_object_set_new(m->o, x->field, json_integer(whole / by));
	return VN_OK;
}

static vn_status set_word(const maker *m, const vn_gguf_field *x)
{
	int64_t         n = 0;
	const vn_status st = x->by ? read_int(m, x->by, &n) : VN_OK;

	if (!st && (!x->by || n > 1))
		json_object_set_new(m->o, x->field, json_string(x->from));
	return st;
}

static vn_status set_field(const maker *m, const vn_gguf_field *x)
{
	switch (x->kind) {
	case VN_GGUF_INT: return x->absent ? copy_or(m, x) : copy_int(m, x->from, x->field);
	case VN_GGUF_REAL: return copy_real(m, x->from, x->field);
	case VN_GGUF_MAYBE: return copy_real_to(m, x->from, m->o, x->field);
	case VN_GGUF_NULL: return copy_or_null(m, x);
	case VN_GGUF_TRUTH: return copy_truth(m, x);
	case VN_GGUF_QUOTIENT: return copy_quotient(m, x);
	case VN_GGUF_YARN_SCALE: return set_yarn_scale(m, x);
	case VN_GGUF_HAS: json_object_set_new(m->o, x->field, json_boolean(any_layer_has(m, x->from))); break;
	case VN_GGUF_TRUE: json_object_set_new(m->o, x->field, json_true()); break;
	case VN_GGUF_YARN_ENDS: json_object_set_new(m->rope, "truncate", json_false()); break;
	case VN_GGUF_WORD: return set_word(m, x);
	case VN_GGUF_ROWS:
		if (count_rows(m, x->from) >= 0)
			json_object_set_new(m->o, x->field, json_integer(count_rows(m, x->from)));
		break;
	}
	return VN_OK;
}

/* Fields in the order in which reports print them. */
static vn_status set_fields(const maker *m)
{
	const vn_gguf_family *g = &m->family->gguf;
	vn_status             st;

	json_object_set_new(m->o, "model_type", json_string(m->family->model_type));
	if ((st = g->act ? set_decoder(m) : copy_sizes(m, g->sizes[0], g->sizes[1], g->sizes[2], g->sizes[3])))
		return st;
	const int64_t layers = json_integer_value(json_object_get(m->o, "num_hidden_layers"));
	for (const vn_gguf_field *x = g->fields; x && x->field; x++)
		if ((!x->layers || x->layers == layers) && (st = set_field(m, x)))
			return st;
	return g->act ? set_window(m) : VN_OK;
}

/* "gpt2, llama, ..." */
static void list_archs(char *list, size_t room)
{
	size_t at = 0;

	for (int i = 0; vn_family_at(i); i++)
		if (vn_family_at(i)->gguf.arch && vn_family_of_arch(vn_family_at(i)->gguf.arch) == vn_family_at(i) && at < room)
			at += (size_t)snprintf(list + at, room - at, "%s%s", at ? ", " : "", vn_family_at(i)->gguf.arch);
}

vn_status vn_gguf_config(const vn_gguf *f, json_t **config, vn_error *err)
{
	char  arch[ARCH], list[256] = "";
	maker m = { .f = f, .arch = arch, .path = vn_gguf_path(f), .o = json_object(), .rope = json_object(), .err = err };
	vn_status st = vn_gguf_arch(f, arch, sizeof arch, err);

	*config = NULL;
	if (!st && !(m.family = vn_gguf_family_of(f, arch))) {
		list_archs(list, sizeof list);
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s: architecture '%s' is not supported (known: %s). " VN_FAMILY_NONE,
		             vn_gguf_path(f), arch, list);
	}
	if (!st && !(st = refuse_what_we_do_not_do(&m)))
		st = set_fields(&m);
	if (!st)
		*config = json_incref(m.o);
	json_decref(m.rope);
	json_decref(m.o);
	return st;
}
