/* model.c: see model.h. */
#include "libref/model/model.h"

#include "libref/base/map.h"
#include "libref/model/shards.h"
#include "libref/plan/family.h"

#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX = 4 << 20, WARNINGS_MAX = 16, WARNING_TEXT = 512 };

struct vn_model {
	char            *path, *config;
	const char      *family;
	const char      *provenance;
	json_t          *json;
	vn_shards        shards;
	vn_plan         *plan;
	vn_tensor       *weight;      /* (n_weights) */
	const char     **file_name;   /* (n_weights) as the files spell it */
	int              n_warnings;
	char             warning[WARNINGS_MAX][WARNING_TEXT];
};

/* The prefixes a checkpoint may put where ours say "model."; the first that
 * finds the first weight of the plan is used for all. */
static const char *const prefixes[] = {
	"model.", "", "transformer.", "model.language_model.", "language_model.model.", "model.model.",
};

/* Tensors that are no weights: buffers of old files, parts of other modalities. */
static bool ignored(const char *name)
{
	static const char *const starts[] = { "mtp.", "model.visual.", "visual." };
	const char *tail = ".rotary_emb.inv_freq";
	size_t      n = strlen(name), m = strlen(tail);

	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return n >= m && strcmp(name + n - m, tail) == 0;
}

__attribute__((format(printf, 2, 3)))
static void warn(vn_model *m, const char *format, ...)
{
	va_list args;
	if (m->n_warnings == WARNINGS_MAX)
		return;
	va_start(args, format);
	vsnprintf(m->warning[m->n_warnings++], WARNING_TEXT, format, args);
	va_end(args);
}

static vn_status open_config(vn_model *m, vn_error *err)
{
	char             path[4096];
	size_t           bytes;
	json_error_t     je;
	const vn_family *family;
	vn_status        st;

	if (snprintf(path, sizeof path, "%s/config.json", m->path) >= (int)sizeof path)
		return vn_fail(err, VN_ERR_USAGE, "%s: path too long", m->path);
	if ((st = vn_read_text(path, CONFIG_MAX, &m->config, &bytes, err)))
		return st;
	if (!(m->json = json_loadb(m->config, bytes, 0, &je)))
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d:%d: %s", path, je.line, je.column, je.text);
	if (!json_is_object(m->json))
		return vn_fail(err, VN_ERR_FORMAT, "%s: not a JSON object", path);
	if (json_is_object(json_object_get(m->json, "quantization_config")))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: quantization_config: quantised weights are not supported", path);
	if ((st = vn_family_find(path, m->json, &family, err)))
		return st;
	m->family = family->model_type;
	return family->plan(path, m->json, &m->plan, err);
}

static const struct vn_shard_tensor *look_up(const vn_model *m, const char *prefix, const char *name)
{
	char        file_name[2 * VN_NAME_MAX];
	const char *rest = strncmp(name, "model.", 6) == 0 ? name + 6 : NULL;

	if (!rest) /* outside the trunk: lm_head.weight */
		return vn_shards_find(&m->shards, name);
	snprintf(file_name, sizeof file_name, "%s%s", prefix, rest);
	return vn_shards_find(&m->shards, file_name);
}

static vn_status take(vn_model *m, int i, const struct vn_shard_tensor *found, vn_error *err)
{
	const vn_weight    *w = &m->plan->weight[i];
	const vn_st_tensor *t = found->tensor;
	vn_shape            s = { .rank = t->rank <= VN_MAX_RANK ? t->rank : -1 };
	char                have[VN_SHAPE_TEXT], need[VN_SHAPE_TEXT];
	vn_dtype            dtype;

	for (int j = 0; j < s.rank; j++)
		s.dim[j] = t->dim[j];
	if (s.rank < 0 || !vn_shape_equal(&s, &w->shape))
		return vn_fail(err, VN_ERR_SHAPE, "%s: %s: shape %s, the config needs %s", found->path, t->name,
		               s.rank < 0 ? "of high rank" : vn_shape_text(&s, have), vn_shape_text(&w->shape, need));
	if (!vn_dtype_from_name(t->dtype, &dtype))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s: dtype %s is not supported (F64, F32, F16, BF16 are)", found->path, t->name, t->dtype);
	m->weight[i] = (vn_tensor){ dtype, s, t->data };
	m->file_name[i] = t->name;
	return VN_OK;
}

/* A tied model that brings an output matrix all the same: the embedding is
 * used, as transformers does; say so when the two differ. */
static bool tied_copy(vn_model *m, const struct vn_shard_tensor *t)
{
	const vn_tensor *e = &m->weight[0];

	if (strcmp(t->tensor->name, "lm_head.weight") != 0)
		return false;
	for (int i = 0; i < m->plan->n_weights; i++)
		if (strcmp(m->plan->weight[i].name, "lm_head.weight") == 0)
			return false;
	size_t bytes = (size_t)vn_shape_count(&e->shape) * vn_dtype_size(e->dtype);
	if (t->tensor->bytes != bytes || memcmp(t->tensor->data, e->data, bytes) != 0)
		warn(m, "%s: lm_head.weight differs from the embedding although tie_word_embeddings is true; the embedding is used", t->path);
	return true;
}

static vn_status take_weights(vn_model *m, vn_error *err)
{
	const vn_plan *p = m->plan;
	const char    *prefix = prefixes[0];
	vn_status      st;

	m->weight = calloc((size_t)p->n_weights, sizeof *m->weight);
	m->file_name = calloc((size_t)p->n_weights, sizeof *m->file_name);
	bool *used = calloc(m->shards.n + 1, sizeof *used);
	if (!m->weight || !m->file_name || !used) {
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", m->path);
		goto done;
	}
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (look_up(m, prefixes[i], p->weight[0].name)) {
			prefix = prefixes[i];
			break;
		}
	for (int i = 0; i < p->n_weights; i++) {
		const struct vn_shard_tensor *found = look_up(m, prefix, p->weight[i].name);
		if (!found) {
			st = vn_fail(err, VN_ERR_NOTFOUND, "%s: weight %s is missing", m->path, p->weight[i].name);
			goto done;
		}
		if ((st = take(m, i, found, err)))
			goto done;
		used[found - m->shards.all] = true;
	}
	for (size_t i = 0; i < m->shards.n; i++) {
		const struct vn_shard_tensor *t = &m->shards.all[i];
		if (!used[i] && !ignored(t->tensor->name) && !tied_copy(m, t)) {
			st = vn_fail(err, VN_ERR_FORMAT, "%s: %s: no part of a %s model reads this tensor", t->path, t->tensor->name, m->family);
			goto done;
		}
	}
	st = VN_OK;
done:
	free(used);
	return st;
}

/* "trained" or "synthetic" when the maker of the files says so. */
static const char *find_provenance(const vn_model *m)
{
	const char *said = json_string_value(json_object_get(m->json, "vernier_provenance"));

	for (size_t i = 0; !said && i < m->shards.n_files; i++)
		said = vn_safetensors_meta(m->shards.file[i], "provenance");
	if (said && strcmp(said, "trained") == 0)
		return "trained";
	return said && strcmp(said, "synthetic") == 0 ? "synthetic" : "unknown";
}

vn_status vn_model_open(const char *path, vn_model **model, vn_error *err)
{
	vn_status st;
	vn_model *m = calloc(1, sizeof *m);

	*model = NULL;
	if (!m || !(m->path = strdup(path))) {
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
		goto done;
	}
	if ((st = open_config(m, err)) || (st = vn_shards_open(path, &m->shards, err)) || (st = take_weights(m, err)))
		goto done;
	m->provenance = find_provenance(m);
	if (m->shards.unlisted)
		warn(m, "%s: %zu tensors are in the files but not in the index", path, m->shards.unlisted);
	*model = m;
	m = NULL;
done:
	vn_model_close(m);
	return st;
}

void vn_model_close(vn_model *m)
{
	if (!m)
		return;
	vn_plan_destroy(m->plan);
	free(m->weight);
	free(m->file_name);
	vn_shards_close(&m->shards);
	json_decref(m->json);
	free(m->config);
	free(m->path);
	free(m);
}

const vn_plan   *vn_model_plan(const vn_model *m)       { return m->plan; }
const vn_tensor *vn_model_weights(const vn_model *m)    { return m->weight; }
const char      *vn_model_path(const vn_model *m)       { return m->path; }
const char      *vn_model_family(const vn_model *m)     { return m->family; }
const char      *vn_model_config(const vn_model *m)     { return m->config; }
const char      *vn_model_provenance(const vn_model *m) { return m->provenance; }

const char *vn_model_warning(const vn_model *m, int i)
{
	return i < m->n_warnings ? m->warning[i] : NULL;
}

void vn_model_table(const vn_model *m, int threads, vn_weight_row *rows)
{
	int n = m->plan->n_weights;

#pragma omp parallel for schedule(dynamic) num_threads(threads > 0 ? threads : omp_get_num_procs())
	for (int i = 0; i < n; i++) {
		const vn_tensor *w = &m->weight[i];
		size_t           count = (size_t)vn_shape_count(&w->shape);

		rows[i] = (vn_weight_row){ .dtype = w->dtype, .shape = w->shape };
		snprintf(rows[i].name, sizeof rows[i].name, "%s", m->file_name[i]);
		rows[i].digest = vn_digest_of(w->data, count * vn_dtype_size(w->dtype));
		rows[i].stats = vn_stats_of(w->data, w->dtype, count);
	}
}
