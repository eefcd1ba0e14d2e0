/* model.c: see model.h. */
#include "libref/model/model.h"

#include "libref/base/alloc.h"
#include "libref/base/arrange.h"
#include "libref/base/glob.h"
#include "libref/base/json.h"
#include "libref/base/map.h"
#include "libref/family/config.h"
#include "libref/family/family.h"
#include "libref/plan/vocab_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A weight as a file has it: a tensor, or a part of one. */
typedef struct found_weight {
	const vn_source_tensor *t;
	int64_t                 at, of; /* part `at` of `of`, along the first two axes; of 0: the whole */
	bool                    across; /* vn_spelling */
} found_weight;

struct vn_model {
	char                   *path;
	vn_source              *source;
	const vn_family        *family;
	json_t                 *json; /* the source's config */
	vn_plan                *plan;
	vn_tensor              *weight;    /* (n_weights) */
	const char            **file_name; /* (n_weights) names in the file's spelling; of a part of a tensor, in ours */
	void                  **made;      /* (n_weights) data that is not as in a file; NULL: as in the file */
	const vn_source_tensor *untied;    /* an output matrix although the config says tied; NULL: none */
	bool                    mapped;    /* VN_MODEL_MAPPED */
	found_weight           *expert;    /* (n_weights) where it is in its file; t NULL: not an expert's. If mapped */
};

static bool is_ignored(const vn_naming *n, const char *name)
{
	for (const char *const *glob = n->ignored; *glob; glob++)
		if (vn_glob_match(*glob, name))
			return true;
	return false;
}

static vn_status read_config(vn_model *m, vn_error *err)
{
	const char  *path = m->source->config_path;
	json_error_t je;
	vn_status    st;

	if (!(m->json = vn_json_load(m->source->config, m->source->config_bytes, 0, &je)))
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d:%d: not JSON: %s", path, je.line, je.column, je.text);
	if (!json_is_object(m->json))
		return vn_fail(err, VN_ERR_FORMAT, "%s: not a JSON object", path);
	if ((st = vn_family_find(path, m->json, &m->family, err)) || (st = vn_config_refuse(path, m->family, m->json, err)))
		return st;
	return m->family->plan(path, m->json, &m->plan, err);
}

/* The tensor with this name under one prefix. Tensors outside the trunk may use another:
 * language_model.lm_head.weight. */
static const vn_source_tensor *look_up(const vn_model *m, const char *prefix, const char *name)
{
	const char  *stem = m->family->naming->stem;
	const size_t n = strlen(stem), outer = strlen(prefix) > n ? strlen(prefix) - n : 0;
	char         file_name[2 * VN_NAME_MAX];

	if (strncmp(name, stem, n) == 0) {
		snprintf(file_name, sizeof file_name, "%s%s", prefix, name + n);
		return vn_source_find(m->source, file_name);
	}
	const vn_source_tensor *found = vn_source_find(m->source, name);
	if (!found && outer && strcmp(prefix + outer, stem) == 0) {
		snprintf(file_name, sizeof file_name, "%.*s%s", (int)outer, prefix, name);
		found = vn_source_find(m->source, file_name);
	}
	return found;
}

/* The weight where another spelling has it. */
static found_weight look_up_spelled(const vn_model *m, const char *prefix, const char *name)
{
	const char  *tail = vn_after_layer(name, m->family->naming);
	char         other[3 * VN_NAME_MAX];
	found_weight found = { 0 };
	long         expert;

	for (const vn_spelling *s = m->family->naming->spellings; tail && s && s->name && !found.t; s++) {
		const size_t before = (size_t)(tail - name);
		snprintf(other, sizeof other, "%.*s", (int)before, name);
		if (!vn_respell(s->name, s->file, tail, other + before, sizeof other - before, &expert))
			continue;
		found = (found_weight) { look_up(m, prefix, other), expert * s->parts + s->part, s->parts, s->across };
		if (found.t && s->parts)
			found.of = found.t->rank > 0 ? found.t->dim[0] * s->parts : 1;
	}
	return found;
}

/* The shape of a part: without the axis of experts, and a part of the next; of the last, and
 * transposed, if it is stored across. */
static vn_shape shape_of(const found_weight *f)
{
	const vn_source_tensor *t = f->t;
	vn_shape                s = { .rank = t->rank <= VN_MAX_RANK ? t->rank : -1 };

	for (int j = 0; j < s.rank; j++)
		s.dim[j] = t->dim[j];
	if (!f->of)
		return s;
	const int64_t parts = s.rank > 1 && t->dim[0] ? f->of / t->dim[0] : 0;
	const int     divided = f->across ? s.rank - 1 : 1;
	if (!parts || s.rank > 3 || f->at >= f->of || t->dim[divided] % parts)
		return (vn_shape) { .rank = -1 };
	return (vn_shape) { s.rank - 1, { t->dim[divided] / parts, s.rank == 2 ? 0 : f->across ? t->dim[1] : t->dim[2] } };
}

static void set_kept(vn_plan *p, int weight, int kept)
{
	for (int k = 0; k < p->n_nodes; k++) {
		vn_node *n = &p->node[k];
		if (n->op == VN_OP_LINEAR && n->w[0] == weight)
			n->c.linear.kept = kept;
		for (int i = 0; n->op == VN_OP_EXPERTS && i < VN_EXPERT_KINDS; i++)
			if (n->w[i] == weight)
				n->c.experts.kept[i] = kept; /* as of the first expert */
	}
}

/* Copies a part that is stored across: number (m,n) of expert e is (e, n, parts m + part) there. */
static void *copy_across(const vn_tensor *w, const found_weight *f)
{
	const int64_t M = w->shape.dim[0], N = w->shape.rank == 2 ? w->shape.dim[1] : 1, parts = f->of / f->t->dim[0];
	const size_t  size = vn_dtype_size(w->dtype);
	void         *copy = vn_alloc((size_t)(M * N), size);

	vn_arrange_across(copy, (const char *)f->t->data + (size_t)(f->at / parts * N * parts * M + f->at % parts) * size,
	                  (size_t)M, (size_t)N, (size_t)parts, size);
	return copy;
}

static vn_status take_tensor(vn_model *m, int i, const found_weight *f, vn_error *err)
{
	const vn_source_tensor *t = f->t;
	const vn_weight        *w = &m->plan->weight[i];
	const vn_shape          s = shape_of(f);
	char                    have[VN_SHAPE_TEXT], need[VN_SHAPE_TEXT];
	vn_dtype                dtype;

	if (s.rank < 0 || !vn_shape_equal(&s, &w->shape))
		return vn_fail(err, VN_ERR_SHAPE, "%s: %s: shape %s%s, the config needs %s", t->path, t->name,
		               s.rank >= 0 ? vn_shape_text(&s, have)
		               : f->of     ? "of no such matrix"
		                           : "of high rank",
		               f->of ? " of an expert" : "", vn_shape_text(&w->shape, need));
	if (!vn_dtype_from_name(t->dtype, &dtype) || (dtype >= VN_N_ENGINE_DTYPES && dtype < VN_N_DTYPES))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s: dtype %s is not supported (supported: F64, F32, F16, BF16)",
		               t->path, t->name, t->dtype);
	m->weight[i] = (vn_tensor) {
		dtype, s, t->data + vn_dtype_bytes(dtype, (size_t)(f->at * vn_shape_count(&s)) * (f->of && !f->across))
	};
	m->file_name[i] = f->of ? w->name : t->name;
	if (t->kept)
		vn_dtype_from_name(t->kept, &dtype);
	set_kept(m->plan, i, 1 + (int)dtype);
	if (m->mapped && strstr(w->name, ".experts."))
		m->expert[i] = *f;
	if (f->across)
		m->weight[i].data = m->made[i] = m->mapped ? NULL : copy_across(&m->weight[i], f);
	return VN_OK;
}

static int weight_of(const vn_plan *p, const char *name)
{
	for (int i = 0; i < p->n_weights; i++)
		if (strcmp(p->weight[i].name, name) == 0)
			return i;
	return -1;
}

/* The output matrix that a tied model stores nevertheless. */
static const vn_source_tensor *tied_copy(const vn_model *m, const char *prefix)
{
	const vn_naming *n = m->family->naming;

	return weight_of(m->plan, n->original) < 0 || weight_of(m->plan, n->copy) >= 0 ? NULL : look_up(m, prefix, n->copy);
}

static bool same_bytes(const vn_tensor *w, const vn_source_tensor *t)
{
	const size_t bytes = vn_dtype_bytes(w->dtype, (size_t)vn_shape_count(&w->shape));
	return t->bytes == bytes && memcmp(t->data, w->data, bytes) == 0;
}

static void forget_weights(vn_model *m)
{
	for (int i = 0; m->made && i < m->plan->n_weights; i++)
		free(m->made[i]);
	VN_FREE(m->made, m->weight, m->file_name, m->expert);
	m->expert = NULL;
	m->made = NULL;
	m->weight = NULL;
	m->file_name = NULL;
}

static vn_status take_weights(vn_model *m, vn_error *err)
{
	const vn_plan *p = m->plan;
	const char    *prefix = m->family->naming->prefixes[0];
	vn_status      st;

	m->weight = vn_alloc_zero((size_t)p->n_weights, sizeof *m->weight);
	m->file_name = vn_alloc_zero((size_t)p->n_weights, sizeof *m->file_name);
	m->made = vn_alloc_zero((size_t)p->n_weights, sizeof *m->made);
	m->expert = vn_alloc_zero((size_t)p->n_weights, sizeof *m->expert);
	bool *used = vn_alloc_zero(m->source->n, sizeof *used);
	for (const char *const *try = m->family->naming->prefixes; *try; try++)
		if (look_up(m, *try, p->weight[0].name)) {
			prefix = *try;
			break;
		}
	for (int i = 0; i < p->n_weights; i++) {
		found_weight found = { .t = look_up(m, prefix, p->weight[i].name) };
		if (!found.t)
			found = look_up_spelled(m, prefix, p->weight[i].name);
		if (!found.t) {
			st = vn_fail(err, VN_ERR_NOTFOUND, "%s: weight %s is missing", m->path, p->weight[i].name);
			goto done;
		}
		if ((st = take_tensor(m, i, &found, err)))
			goto done;
		used[found.t - m->source->tensor] = true;
	}
	const vn_source_tensor *copy = tied_copy(m, prefix);
	if (copy && !same_bytes(&m->weight[weight_of(p, m->family->naming->original)], copy))
		m->untied = copy;
	for (size_t i = 0; i < m->source->n; i++) {
		const vn_source_tensor *t = &m->source->tensor[i];
		if (!used[i] && t != copy && !is_ignored(m->family->naming, t->name)) {
			st = vn_fail(err, VN_ERR_FORMAT, "%s: %s: a %s model does not use this tensor", t->path, t->name,
			             m->family->model_type);
			goto done;
		}
	}
	st = VN_OK;
done:
	free(used);
	return st;
}

/* The config says tied, but the output matrix differs from the embedding. transformers 5 follows
 * the file, and so does the plan. */
static vn_status untie_output(vn_model *m, vn_error *err)
{
	json_t *text = json_object_get(m->json, "text_config");

	vn_source_warn(
		m->source,
		"%s: %s differs from the embedding although tie_word_embeddings is true; the separate tensor is used",
		m->untied->path, m->untied->name);
	json_object_set_new(m->json, "tie_word_embeddings", json_false());
	json_object_set_new(text, "tie_word_embeddings", json_is_object(text) ? json_false() : NULL);
	forget_weights(m);
	vn_plan_destroy(m->plan);
	vn_status st = m->family->plan(m->source->config_path, m->json, &m->plan, err);
	return st ? st : take_weights(m, err);
}

/* A config that cannot be read is reported later. */
static void ask_for_head(vn_source *s)
{
	json_t *config = vn_json_parse(s->config, 0);
	char   *text;

	if (!json_is_object(config) || json_is_true(json_object_get(config, VN_MTP_KEY))) {
		json_decref(config);
		return;
	}
	json_object_set_new(config, VN_MTP_KEY, json_true());
	text = vn_alloc_check(vn_json_dump(config, JSON_INDENT(2)));
	json_decref(config);
	free(s->config);
	s->config = text;
	s->config_bytes = strlen(text);
}

static vn_status open_source(const char *path, vn_source *source, bool mapped, vn_model **model, vn_error *err)
{
	vn_status st;
	vn_model *m = vn_alloc_zero(1, sizeof *m);

	*model = NULL;
	m->path = vn_alloc_text(path);
	m->source = source;
	m->mapped = mapped;
	if ((st = read_config(m, err)) || (st = take_weights(m, err)) || (m->untied && (st = untie_output(m, err))))
		goto done;
	*model = m;
	m = NULL;
done:
	vn_model_close(m);
	return st;
}

vn_status vn_model_open_as(const char *path, unsigned as, vn_model **model, vn_error *err)
{
	vn_source *s;
	vn_status  st = vn_source_open(path, &s, err);

	*model = NULL;
	if (!st && as & VN_MODEL_MTP)
		ask_for_head(s);
	return st ? st : open_source(path, s, as & VN_MODEL_MAPPED, model, err);
}

vn_status vn_model_open(const char *path, vn_model **model, vn_error *err)
{
	return vn_model_open_as(path, 0, model, err);
}

vn_status vn_model_of_source(const char *path, vn_source *source, vn_model **model, vn_error *err)
{
	return open_source(path, source, false, model, err);
}

void vn_model_close(vn_model *m)
{
	if (!m)
		return;
	forget_weights(m);
	vn_plan_destroy(m->plan);
	json_decref(m->json);
	vn_source_close(m->source);
	VN_FREE(m->path, m);
}

const vn_plan *vn_model_plan(const vn_model *m)
{
	return m->plan;
}

void vn_model_divide(vn_model *m, int ranks)
{
	for (int k = 0; k < m->plan->n_nodes; k++) {
		const vn_value *v = &m->plan->value[m->plan->node[k].out[0]];
		vn_point        p;
		if (m->plan->node[k].op == VN_OP_LINEAR && vn_name_layer(v->name) >= 0 &&
		    vn_point_from_name(vn_name_in_layer(v->name), &p) && strcmp(vn_point_get(p)->basis, "hidden") == 0)
			m->plan->node[k].c.linear.ranks = ranks > 1 ? ranks : 0;
	}
}

vn_status vn_model_round(vn_model *m, int i, vn_dtype to, vn_error *err)
{
	vn_tensor   *w = &m->weight[i];
	const size_t n = (size_t)vn_shape_count(&w->shape), width = vn_dtype_size(w->dtype), size = vn_dtype_size(to);
	char        *made = malloc(n * size + 1);
	double       part[1024];
	const size_t most = sizeof part / sizeof *part;

	if (!made)
		return vn_fail(err, VN_ERR_NOMEM, "%s: %s: no memory", m->path, m->file_name[i]);
	vn_model_need(m, i);
	const char *from = w->data;
	for (size_t at = 0; at < n; at += most) {
		const size_t k = n - at < most ? n - at : most;
		vn_to_f64(part, from + at * width, w->dtype, k);
		vn_from_f64(made + at * size, to, part, k);
	}
	free(m->made[i]);
	m->made[i] = made;
	*w = (vn_tensor) { to, w->shape, made };
	set_kept(m->plan, i, 1 + (int)to);
	vn_model_release(m, i);
	return VN_OK;
}

/* Adds a weight: the sampled rows of weight i. Returns its number. */
static int add_sample(vn_model *m, int i)
{
	const size_t all = (size_t)m->plan->n_weights;
	vn_plan     *p = m->plan;
	vn_tensor    t = m->weight[i];
	const size_t row = vn_dtype_bytes(t.dtype, (size_t)(vn_shape_count(&t.shape) / p->vocab));
	char        *made = vn_alloc(VN_VOCAB_PART * row, 1);

	for (size_t b = 0; b < VN_VOCAB_BLOCKS; b++)
		memcpy(made + b * VN_VOCAB_BLOCK * row, (const char *)t.data + (size_t)vn_vocab_block(p->vocab, (int)b) * row,
		       VN_VOCAB_BLOCK * row);
	t.shape.dim[0] = VN_VOCAB_PART;
	t.data = made;
	p->weight = vn_alloc_resized(p->weight, all + 1, sizeof *p->weight);
	m->weight = vn_alloc_resized(m->weight, all + 1, sizeof *m->weight);
	m->file_name = vn_alloc_resized(m->file_name, all + 1, sizeof *m->file_name);
	m->made = vn_alloc_resized(m->made, all + 1, sizeof *m->made);
	if (m->expert) {
		m->expert = vn_alloc_resized(m->expert, all + 1, sizeof *m->expert);
		m->expert[all] = (found_weight) { 0 };
	}
	p->weight[all] = p->weight[i];
	p->weight[all].shape = t.shape;
	m->weight[all] = t;
	m->file_name[all] = m->file_name[i];
	m->made[all] = made;
	return p->n_weights++;
}

void vn_model_vocab_part(vn_model *m)
{
	vn_plan *p = m->plan;

	for (int k = 0; k < p->n_nodes; k++)
		for (int i = 0; p->node[k].op == VN_OP_LINEAR && vn_value_is_scores(p, p->node[k].out[0]) && i < p->node[k].n_w;
		     i++)
			if (p->node[k].w[i] >= 0)
				p->node[k].w[i] = add_sample(m, p->node[k].w[i]);
	for (int v = 0; v < p->n_values; v++)
		if (vn_value_is_scores(p, v))
			p->value[v].size[1] = VN_VOCAB_PART;
}

const vn_tensor *vn_model_weights(const vn_model *m)
{
	return m->weight;
}
vn_tensor vn_model_read(const vn_model *m, int i, void **room)
{
	vn_tensor w = m->weight[i];

	*room = NULL;
	if (!w.data && m->expert[i].t)
		w.data = *room = copy_across(&w, &m->expert[i]);
	return w;
}

void vn_model_need(const void *model, int i)
{
	const vn_model *m = model;

	if (m->weight[i].data)
		return;
	m->weight[i] = vn_model_read(m, i, &m->made[i]);
	vn_model_release(m, i);
}

void vn_model_need_experts(const vn_model *m, const vn_node *n)
{
	for (int k = 0; n->op == VN_OP_EXPERTS && k < n->n_w; k++)
		for (int i = 0; n->w[k] >= 0 && i < n->c.experts.experts; i++)
			vn_model_need(m, n->w[k] + i);
}

void vn_model_release(const vn_model *m, int i)
{
	const found_weight *f = &m->expert[i];

	if (f->t && f->of) { /* the tensor's part of this expert */
		const size_t bytes = f->t->bytes / (size_t)f->t->dim[0], parts = (size_t)(f->of / f->t->dim[0]);
		vn_map_release(f->t->data + (size_t)f->at / parts * bytes, bytes);
	} else if (f->t)
		vn_map_release(f->t->data, f->t->bytes);
}

const char *vn_model_path(const vn_model *m)
{
	return m->path;
}
const char *vn_model_family(const vn_model *m)
{
	return m->family->model_type;
}
const char *vn_model_config(const vn_model *m)
{
	return m->source->config;
}

const char *vn_model_provenance(const vn_model *m)
{
	const char *said = json_string_value(json_object_get(m->json, "vernier_provenance"));

	if (!said)
		said = m->source->provenance;
	if (said && strcmp(said, "trained") == 0)
		return "trained";
	return said && strcmp(said, "synthetic") == 0 ? "synthetic" : "unknown";
}

const char *vn_model_format(const vn_model *m)
{
	return m->source->format;
}

const char *vn_model_weight_name(const vn_model *m, int i)
{
	return m->file_name[i];
}

const char *vn_model_warning(const vn_model *m, int i)
{
	return i < m->source->n_warnings ? m->source->warning[i] : NULL;
}
