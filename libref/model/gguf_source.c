/* gguf_source.c: see gguf_source.h. */
#include "libref/model/gguf_source.h"

#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/model/gguf_config.h"
#include "libref/model/gguf_convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARCH = 64, HF_NAME = 256, HEADS_MAX = 1 << 20 };

typedef struct files {
	vn_gguf *gguf;
	size_t   n;
	struct {
		char *name;
		void *room;
	} * own; /* for each tensor: its new name, and its converted copy or NULL */
} files;

static void release_files(void *of)
{
	files *f = of;

	for (size_t i = 0; i < f->n; i++)
		VN_FREE(f->own[i].name, f->own[i].room);
	free(f->own);
	vn_gguf_close(f->gguf);
	free(f);
}

static vn_status head_counts(const vn_gguf *f, vn_gguf_heads *h, vn_error *err)
{
	const struct {
		const char *key;
		int64_t    *x;
	} want[] = {
		{ "attention.head_count", &h->query }, { "attention.head_count_kv", &h->key }, { "ssm.group_count", &h->nk },
		{ "ssm.time_step_rank", &h->nv },      { "ssm.state_size", &h->dk },
	};
	vn_status st = VN_OK;

	*h = (vn_gguf_heads) { .key = -1 };
	for (size_t i = 0; !st && i < sizeof want / sizeof *want; i++)
		if (!(st = vn_gguf_arch_int(f, want[i].key, want[i].x, err)) && *want[i].x > HEADS_MAX)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: metadata '%s' is %lld, at most %d is supported", vn_gguf_path(f),
			             want[i].key, (long long)*want[i].x, HEADS_MAX);
	if (h->key < 0)
		h->key = h->query;
	return st;
}

/* GPT-2 files may store the embedding twice. Identical matrices are tied. */
static bool is_copy(const vn_gguf *f)
{
	const vn_gguf_tensor *out = vn_gguf_find(f, "output.weight"), *in = vn_gguf_find(f, "token_embd.weight");
	return out && in && out->t.dtype == in->t.dtype && vn_shape_equal(&out->t.shape, &in->t.shape) &&
	       memcmp(out->t.data, in->t.data, out->bytes) == 0;
}

static vn_status make_config(vn_source *s, const vn_gguf *f, json_t **config, vn_error *err)
{
	vn_status st = vn_gguf_config(f, config, err);

	if (st)
		return st;
	if (is_copy(f))
		json_object_set_new(*config, "tie_word_embeddings", json_true());
	/* Fifteen digits hold every decimal of a float32, and print 1e-06;
	 * a double may need two more. */
	s->config = vn_json_dump(*config, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
	json_t *again = s->config ? vn_json_parse(s->config, 0) : NULL;
	if (again && !json_equal(again, *config)) {
		free(s->config);
		s->config = vn_json_dump(*config, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
	}
	json_decref(again);
	vn_alloc_check(s->config);
	s->config_path = vn_alloc_text(vn_gguf_path(f));
	s->config_bytes = strlen(s->config);
	return VN_OK;
}

/* What the names and conversions of all tensors depend on. */
typedef struct about {
	const vn_family *family;
	int64_t          layers, extra; /* blocks of the model, and of its next-token module */
	vn_gguf_heads    heads;
} about;

/* The tensor of values that belongs to one of keys, "blk.0.attn_v_b.weight" for attn_k_b, or the
 * reverse; NULL: none. */
static const vn_gguf_tensor *other_of_pair(const vn_gguf *f, const char *name, bool values)
{
	char        other[HF_NAME];
	const char *at = strstr(name, values ? "_k_b." : "_v_b.");

	snprintf(other, sizeof other, "%.*s_%c%s", at ? (int)(at - name) : 0, name, values ? 'v' : 'k', at ? at + 2 : "");
	return at ? vn_gguf_find(f, other) : NULL;
}

static vn_status add_tensor(vn_source *s, files *own, const about *a, const vn_gguf_tensor *t, vn_error *err)
{
	char                  hf[HF_NAME];
	const vn_gguf_change  change = vn_gguf_name(a->family, a->layers, a->extra, t->name, hf, sizeof hf);
	const vn_gguf_tensor *values = change == VN_GGUF_LATENT_K ? other_of_pair(own->gguf, t->name, true) : NULL;
	vn_tensor             out;
	vn_status             st;

	if (change == VN_GGUF_LATENT_V && other_of_pair(own->gguf, t->name, false))
		return VN_OK; /* joined to its keys */
	if ((change == VN_GGUF_LATENT_K && !values) || change == VN_GGUF_LATENT_V)
		return vn_fail(err, VN_ERR_NOTFOUND, "%s: tensor '%s' has no other half, attn_%c_b", t->path, t->name,
		               change == VN_GGUF_LATENT_K ? 'v' : 'k');
	if ((st = values ? vn_gguf_join_latent(t, values, &out, &own->own[own->n].room, err)
	                 : vn_gguf_undo(t, change, &a->heads, &out, &own->own[own->n].room, err)))
		return st;
	own->own[own->n++].name = vn_alloc_text(hf);
	vn_source_tensor *to = &s->tensor[s->n++];
	*to = (vn_source_tensor) { .name = own->own[own->n - 1].name,
		                       .path = t->path,
		                       .dtype = vn_dtype_word(out.dtype),
		                       .kept = vn_dtype_word(t->t.dtype),
		                       .rank = out.shape.rank,
		                       .data = out.data,
		                       .bytes = vn_dtype_bytes(out.dtype, (size_t)vn_shape_count(&out.shape)) };
	memcpy(to->dim, out.shape.dim, sizeof out.shape.dim);
	return VN_OK;
}

static vn_status add_tensors(vn_source *s, files *own, int64_t layers, vn_error *err)
{
	const vn_gguf *f = own->gguf;
	const size_t   n = vn_gguf_count(f);
	about          a = { .layers = layers };
	char           arch[ARCH];
	vn_status      st;

	s->tensor = vn_alloc_zero(n, sizeof *s->tensor);
	own->own = vn_alloc_zero(n, sizeof *own->own);
	if ((st = vn_gguf_arch(f, arch, sizeof arch, err)) || (st = head_counts(f, &a.heads, err)) ||
	    (st = vn_gguf_arch_int(f, "nextn_predict_layers", &a.extra, err)))
		return st;
	a.family = vn_gguf_family_of(f, arch); /* vn_gguf_config found it */
	for (size_t i = 0; i < n; i++) {
		const vn_gguf_tensor *t = vn_gguf_at(f, i);
		if (strcmp(t->name, "rope_freqs.weight") == 0) /* the config has it */
			continue;
		if ((st = add_tensor(s, own, &a, t, err)))
			return st;
	}
	qsort(s->tensor, s->n, sizeof *s->tensor, vn_source_by_name);
	for (size_t i = 1; i < s->n; i++)
		if (vn_source_by_name(&s->tensor[i - 1], &s->tensor[i]) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: two tensors of the file map to %s", s->tensor[i].path,
			               s->tensor[i].name);
	return VN_OK;
}

/* "gguf Q4_K, Q6_K, F32": the stored formats, the one with most bytes first. */
static void describe_formats(vn_source *s, const vn_gguf *f)
{
	size_t bytes[VN_N_WEIGHT_DTYPES] = { 0 };
	int    at = snprintf(s->format, sizeof s->format, "gguf");

	for (size_t i = 0; i < vn_gguf_count(f); i++)
		bytes[vn_gguf_at(f, i)->t.dtype] += vn_gguf_at(f, i)->bytes;
	for (int found = 0;; found++) {
		int most = 0;
		for (int d = 1; d < VN_N_WEIGHT_DTYPES; d++)
			most = bytes[d] > bytes[most] ? d : most;
		if (bytes[most] == 0 || at >= (int)sizeof s->format)
			return;
		at += snprintf(s->format + at, sizeof s->format - (size_t)at, "%s%s", found ? ", " : " ",
		               vn_dtype_word((vn_dtype)most));
		bytes[most] = 0;
	}
}

vn_status vn_source_of_gguf(vn_gguf *f, vn_source *s, vn_error *err)
{
	files    *own = vn_alloc_zero(1, sizeof *own);
	json_t   *config = NULL;
	vn_status st;

	own->gguf = f;
	s->files = own;
	s->release = release_files;
	if ((st = make_config(s, f, &config, err)))
		goto done;
	const char *L = json_object_get(config, "n_layer") ? "n_layer" : "num_hidden_layers";
	if ((st = add_tensors(s, own, json_integer_value(json_object_get(config, L)), err)))
		goto done;
	const vn_gguf_value *said = vn_gguf_get(f, "vernier.provenance");
	s->provenance = vn_gguf_is(said, "trained") ? "trained" : vn_gguf_is(said, "synthetic") ? "synthetic" : NULL;
	describe_formats(s, f);
done:
	json_decref(config);
	return st;
}
