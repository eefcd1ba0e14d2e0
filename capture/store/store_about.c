/* store_about.c: writes /run, and the texts of /model. See store.h. */
#include "capture/file/plan_json.h"
#include "capture/store/store_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_plan(vn_message *m, const vn_plan_text *t)
{
	vn_message_put_int(m, t->layers);
	vn_message_put_int(m, t->vocab);
	vn_message_put_int(m, t->context);
	vn_message_put_texts(m, t->node, t->n_nodes);
	vn_message_put_texts(m, t->value, t->n_values);
	vn_message_put_texts(m, t->weight, t->n_weights);
}

/* Reads the text back, because a text that differs from the plan would be noticed only on
 * opening the file. */
static vn_status plan_text(const vn_store *s, vn_plan_text *t, vn_error *err)
{
	vn_plan  *again = NULL;
	vn_status st = vn_plan_to_text(s->plan, t, err);

	if (!st && !(st = vn_plan_from_text(t, &again, err)) && !vn_plan_equal(s->plan, again))
		st = vn_fail(err, VN_ERR_IO, "%s: the text of the plan does not read back as the plan", s->place.partial);
	vn_plan_destroy(again);
	return st;
}

vn_status vn_store_model(vn_store *s, const vn_model *m, const vn_weight_row *rows, vn_error *err)
{
	const vn_model_words w = { vn_model_family(m), vn_model_config(m), vn_model_provenance(m), vn_model_format(m),
		                       vn_model_path(m) };
	VN_ENDS(vn_plan_text_free) vn_plan_text text = { 0 };
	vn_message                              out = { 0 };
	vn_status                               st = s->plan ? plan_text(s, &text, err) : VN_OK;

	if (!st) {
		vn_store_put_model(&out, &w, rows, vn_model_plan(m)->n_weights);
		vn_message_put_int(&out, s->plan != NULL);
		if (s->plan)
			put_plan(&out, &text);
		st = vn_store_do(s, VN_SCRIBE_MODEL, &out, NULL, err);
	}
	return st;
}

/* ---- /run ---------------------------------------------------------------------- */

static void put_ids(vn_message *m, const int32_t *list, int64_t n, bool known)
{
	const vn_digest d = vn_digest_of(list, (size_t)n * sizeof *list);
	vn_message_put_bytes(m, list, (size_t)n * sizeof *list);
	vn_message_put_text(m, known ? d.hex : NULL);
}

/* Ids known only later are written into space reserved for them, as tensors are: the list has its
 * full length from the start, so the file's structure does not change. */
static vn_status expect_ids(vn_store *s, const int32_t *ids, int64_t n, int64_t at, vn_error *err)
{
	if (s->unknown == 0)
		return VN_OK;
	if (at < 0)
		return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot write /run/token_ids", s->place.partial);
	if (!(s->ids = malloc((size_t)n * sizeof *ids)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the token ids", s->place.partial);
	memcpy(s->ids, ids, (size_t)n * sizeof *ids);
	s->n_ids = n;
	s->ids_at = at;
	return VN_OK;
}

void vn_store_batch(vn_store *s, int64_t prompts)
{
	s->batch = prompts;
}

vn_status vn_store_run(vn_store *s, const vn_facts *facts, const int32_t *ids, const int32_t *positions, int64_t n,
                       vn_error *err)
{
	vn_message m = { 0 };
	vn_error   own = { "" };
	int64_t    at = -1;

	free(s->ids);
	s->ids = NULL;
	s->n_ids = s->unknown = 0;
	for (int64_t i = n; i > 0 && ids[i - 1] < 0 && !s->batch; i--)
		s->unknown++;
	vn_message_put_bytes(&m, facts, sizeof *facts);
	vn_message_put_int(&m, s->batch);
	put_ids(&m, ids, n, s->unknown == 0);
	put_ids(&m, positions, n, true);
	vn_status st = vn_store_do(s, VN_SCRIBE_RUN, &m, &at, err);
	if (st)
		return st;
	st = expect_ids(s, ids, n, at, &own);
	return vn_store_note_failure(s, st, &own, err);
}

vn_status vn_store_token(vn_store *s, int64_t at, int32_t id, vn_error *err)
{
	vn_status st = vn_store_status(s, err);
	if (st)
		return st;
	assert(at == s->n_ids - s->unknown && id >= 0);
	s->ids[at] = id;
	s->unknown--;
	if ((st = vn_write_at((vn_open_file) { s->place.fd, s->place.partial }, "/run/token_ids", &id, sizeof id,
	                      s->ids_at + at * 4, err)) ||
	    s->unknown > 0)
		return st;
	const vn_digest d = vn_digest_of(s->ids, (size_t)s->n_ids * sizeof *s->ids);
	vn_message      m = { 0 };
	vn_message_put_text(&m, d.hex);
	return vn_store_do(s, VN_SCRIBE_IDS_DIGEST, &m, NULL, err);
}

/* digest NULL: none. */
static vn_status put_texts(vn_store *s, const char *name, char *const *text, int64_t n, const char *digest,
                           vn_error *err)
{
	vn_message m = { 0 };
	vn_message_put_text(&m, name);
	vn_message_put_texts(&m, text, n);
	vn_message_put_text(&m, digest);
	return vn_store_do(s, VN_SCRIBE_TEXTS, &m, NULL, err);
}

vn_status vn_store_token_text(vn_store *s, char *const *text, int64_t n, vn_error *err)
{
	return put_texts(s, "token_text", text, n, NULL, err);
}

vn_status vn_store_left_out(vn_store *s, char *const *line, int64_t n, vn_error *err)
{
	vn_digester *d = vn_digester_create();

	if (!d)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", s->place.partial);
	for (int64_t i = 0; i < n; i++)
		vn_digester_add(d, line[i], strlen(line[i]) + 1);
	const vn_digest digest = vn_digester_finish(d);
	return put_texts(s, "left_out", line, n, digest.hex, err);
}

vn_status vn_store_facts(vn_store *s, const vn_facts *facts, vn_error *err)
{
	vn_message m = { 0 };
	vn_message_put_bytes(&m, facts, sizeof *facts);
	return vn_store_do(s, VN_SCRIBE_FACTS, &m, NULL, err);
}

static void put_rows(vn_message *m, const vn_weight_row *w, int n)
{
	vn_message_put_int(m, n * (int64_t)sizeof(vn_scribe_weight));
	for (int i = 0; i < n; i++) {
		vn_scribe_weight r;
		memset(&r, 0, sizeof r); /* zeroed, because the digest includes the padding between columns */
		r.min = w[i].stats.min;
		r.max = w[i].stats.max;
		r.mean = w[i].stats.mean;
		r.rms = w[i].stats.rms;
		r.nan = w[i].stats.nan;
		r.inf = w[i].stats.inf;
		snprintf(r.name, sizeof r.name, "%s", w[i].name);
		snprintf(r.dtype, sizeof r.dtype, "%s", vn_dtype_word(w[i].dtype));
		snprintf(r.digest, sizeof r.digest, "%s", w[i].digest.hex);
		for (int k = 0, at = 0; k < w[i].shape.rank; k++)
			at += snprintf(r.shape + at, sizeof r.shape - (size_t)at, "%s%" PRId64, k ? "x" : "", w[i].shape.dim[k]);
		vn_message_put_row(m, &r, sizeof r);
	}
}

void vn_store_put_model(vn_message *m, const vn_model_words *w, const vn_weight_row *rows, int n)
{
	vn_message_put_text(m, w->family);
	vn_message_put_text(m, w->config);
	vn_message_put_text(m, w->provenance);
	vn_message_put_text(m, w->format);
	vn_message_put_text(m, w->path);
	vn_message_put_int(m, rows != NULL);
	if (rows)
		put_rows(m, rows, n);
}

vn_status vn_store_words(vn_store *s, const vn_model_words *w, const vn_weight_row *rows, int n, vn_error *err)
{
	vn_message m = { 0 };

	vn_store_put_model(&m, w, rows, n);
	vn_message_put_int(&m, 0); /* no plan */
	return vn_store_do(s, VN_SCRIBE_MODEL, &m, NULL, err);
}
