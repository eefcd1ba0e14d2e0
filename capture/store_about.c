/* store_about.c: what a store says about the run beside its tensors: /run, /model,
 * /plan. See store.h. */
#include "capture/store_inside.h"

#include "capture/plan_json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A one-dimensional dataset of n elements. */
static bool put_list(hid_t group, const char *name, hid_t disk, hid_t memory, int64_t n, const void *data,
                     const char *digest)
{
	hsize_t dim = (hsize_t)n;
	hid_t   space = H5Screate_simple(1, &dim, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hid_t   dset = H5I_INVALID_HID;
	bool    good = space >= 0 && dcpl >= 0 && H5Pset_obj_track_times(dcpl, false) >= 0 &&
	            (dset = H5Dcreate2(group, name, disk, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0 &&
	            (n == 0 || H5Dwrite(dset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0) &&
	            (!digest || vn_h5_put_text(dset, "digest", digest));
	if (dset >= 0)
		good &= H5Dclose(dset) >= 0;
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (space >= 0)
		H5Sclose(space);
	return good;
}

static bool put_lines(hid_t group, const char *name, char *const *line, int64_t n)
{
	hid_t type = vn_h5_text_type();
	bool  good = type >= 0 && put_list(group, name, type, type, n, line, NULL);
	if (type >= 0)
		H5Tclose(type);
	return good;
}

/* ---- /run ---------------------------------------------------------------------- */

static bool put_ids(hid_t group, const char *name, const int32_t *list, int64_t n, bool known)
{
	vn_digest d = vn_digest_of(list, (size_t)n * sizeof *list);
	return put_list(group, name, H5T_STD_I32LE, H5T_NATIVE_INT32, n, list, known ? d.hex : NULL);
}

/* Ids that are known only later are written where they belong, as tensors are:
 * the list has its length from the start, and no structure of the file changes. */
static bool expect_ids(vn_store *s, hid_t group, const int32_t *ids, int64_t n)
{
	if (s->unknown == 0)
		return true;
	hid_t   d = H5Dopen2(group, "token_ids", H5P_DEFAULT);
	haddr_t at = d >= 0 ? H5Dget_offset(d) : HADDR_UNDEF;

	if (d >= 0)
		H5Dclose(d);
	if (at == HADDR_UNDEF || !(s->ids = malloc((size_t)n * sizeof *ids)))
		return false;
	memcpy(s->ids, ids, (size_t)n * sizeof *ids);
	s->n_ids = n;
	s->ids_at = (int64_t)at;
	return true;
}

vn_status vn_store_run(vn_store *s, const vn_facts *facts, const int32_t *ids, const int32_t *positions,
                       int64_t n, vn_error *err)
{
	vn_status st = vn_store_enter(s, err);
	if (st)
		return st;
	for (int64_t i = n; i > 0 && ids[i - 1] < 0; i--)
		s->unknown++;
	hid_t g = H5Gcreate2(s->file, "run", H5P_DEFAULT, s->groups, H5P_DEFAULT);
	bool  good = g >= 0;
	for (int i = 0; good && i < facts->n; i++)
		good = vn_h5_put_text(g, facts->fact[i].key, facts->fact[i].value);
	good = good && put_ids(g, "token_ids", ids, n, s->unknown == 0) && put_ids(g, "positions", positions, n, true) &&
	       expect_ids(s, g, ids, n);
	if (g >= 0)
		H5Gclose(g);
	st = vn_store_settle(s, good, "/run", true, err);
	vn_h5_unlock();
	return st;
}

static bool put_ids_digest(vn_store *s)
{
	const vn_digest d = vn_digest_of(s->ids, (size_t)s->n_ids * sizeof *s->ids);
	hid_t           o = H5Dopen2(s->file, "run/token_ids", H5P_DEFAULT);
	bool            good = o >= 0 && vn_h5_put_text(o, "digest", d.hex);
	if (o >= 0)
		H5Dclose(o);
	return good;
}

vn_status vn_store_token(vn_store *s, int64_t at, int32_t id, vn_error *err)
{
	vn_status st = vn_store_status(s, err);
	if (st)
		return st;
	assert(at == s->n_ids - s->unknown && id >= 0);
	s->ids[at] = id;
	s->unknown--;
	if ((st = vn_write_at(s->place.fd, s->place.partial, "/run/token_ids", &id, sizeof id, s->ids_at + at * 4, err)) ||
	    s->unknown > 0)
		return st;
	if ((st = vn_store_enter(s, err)))
		return st;
	st = vn_store_settle(s, put_ids_digest(s), "/run/token_ids", true, err);
	vn_h5_unlock();
	return st;
}

vn_status vn_store_token_text(vn_store *s, char *const *text, int64_t n, vn_error *err)
{
	vn_status st = vn_store_enter(s, err);
	if (st)
		return st;
	hid_t g = H5Gopen2(s->file, "run", H5P_DEFAULT);
	bool  good = g >= 0 && put_lines(g, "token_text", text, n);
	if (g >= 0)
		H5Gclose(g);
	st = vn_store_settle(s, good, "/run/token_text", true, err);
	vn_h5_unlock();
	return st;
}

vn_status vn_store_facts(vn_store *s, const vn_facts *facts, vn_error *err)
{
	vn_status st = vn_store_enter(s, err);
	if (st)
		return st;
	hid_t g = H5Gopen2(s->file, "run", H5P_DEFAULT);
	bool  good = g >= 0;
	for (int i = 0; good && i < facts->n; i++) {
		const char *key = facts->fact[i].key;
		good = (H5Aexists(g, key) <= 0 || H5Adelete(g, key) >= 0) && vn_h5_put_text(g, key, facts->fact[i].value);
	}
	if (g >= 0)
		H5Gclose(g);
	st = vn_store_settle(s, good, "/run", true, err);
	vn_h5_unlock();
	return st;
}

/* ---- /model and /plan ---------------------------------------------------------- */

enum { WEIGHT_SHAPE_TEXT = 96 }; /* of four axes; readers of older versions take no more */

/* A row of /model/weights as it is in the file. */
typedef struct row {
	char    name[VN_NAME_MAX], dtype[8], shape[WEIGHT_SHAPE_TEXT], digest[VN_DIGEST_TEXT];
	double  min, max, mean, rms;
	int64_t nan, inf;
} row;

static hid_t row_type(void)
{
	static const struct { const char *name; size_t at; size_t text; int real; } field[] = {
		{ "name", offsetof(row, name), VN_NAME_MAX, 0 },     { "dtype", offsetof(row, dtype), 8, 0 },
		{ "shape", offsetof(row, shape), WEIGHT_SHAPE_TEXT, 0 }, { "digest", offsetof(row, digest), VN_DIGEST_TEXT, 0 },
		{ "min", offsetof(row, min), 0, 1 },                 { "max", offsetof(row, max), 0, 1 },
		{ "mean", offsetof(row, mean), 0, 1 },               { "rms", offsetof(row, rms), 0, 1 },
		{ "nan", offsetof(row, nan), 0, 0 },                 { "inf", offsetof(row, inf), 0, 0 },
	};
	hid_t t = H5Tcreate(H5T_COMPOUND, sizeof(row)), text = H5Tcopy(H5T_C_S1);

	H5Tset_cset(text, H5T_CSET_UTF8);
	for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
		if (field[i].text)
			H5Tset_size(text, field[i].text);
		H5Tinsert(t, field[i].name, field[i].at,
		          field[i].text ? text : field[i].real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64);
	}
	H5Tclose(text);
	return t;
}

static bool put_weights(hid_t group, const vn_weight_row *w, int n)
{
	row  *rows = calloc((size_t)n + 1, sizeof *rows);
	hid_t type = row_type();
	bool  good = rows && type >= 0;

	for (int i = 0; good && i < n; i++) {
		row *r = &rows[i];
		*r = (row){ .min = w[i].stats.min, .max = w[i].stats.max, .mean = w[i].stats.mean, .rms = w[i].stats.rms,
		            .nan = w[i].stats.nan, .inf = w[i].stats.inf };
		snprintf(r->name, sizeof r->name, "%s", w[i].name);
		snprintf(r->dtype, sizeof r->dtype, "%s", vn_dtype_word(w[i].dtype));
		snprintf(r->digest, sizeof r->digest, "%s", w[i].digest.hex);
		for (int k = 0, at = 0; k < w[i].shape.rank; k++)
			at += snprintf(r->shape + at, sizeof r->shape - (size_t)at, "%s%" PRId64, k ? "x" : "", w[i].shape.dim[k]);
	}
	good = good && put_list(group, "weights", type, type, n, rows, NULL);
	if (type >= 0)
		H5Tclose(type);
	free(rows);
	return good;
}

static bool put_model(vn_store *s, const vn_model_words *w, const vn_weight_row *rows, int n)
{
	const struct { const char *key, *text; } word[] = {
		{ "family", w->family }, { "config", w->config }, { "provenance", w->provenance }, { "format", w->format }, { "path", w->path },
	};
	hid_t g = H5Gcreate2(s->file, "model", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	bool  good = g >= 0;
	for (size_t i = 0; good && i < sizeof word / sizeof *word; i++)
		good = !word[i].text || vn_h5_put_text(g, word[i].key, word[i].text);
	good = good && (!rows || put_weights(g, rows, n));
	if (g >= 0)
		H5Gclose(g);
	return good;
}

static bool put_plan(vn_store *s, const vn_plan_text *t)
{
	hid_t g = H5Gcreate2(s->file, "plan", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	bool  good = g >= 0 && vn_h5_put_int(g, "layers", t->layers) && vn_h5_put_int(g, "vocab", t->vocab) &&
	            vn_h5_put_int(g, "context", t->context) && put_lines(g, "nodes", t->node, t->n_nodes) &&
	            put_lines(g, "values", t->value, t->n_values) && put_lines(g, "weights", t->weight, t->n_weights);
	if (g >= 0)
		H5Gclose(g);
	return good;
}

vn_status vn_store_model(vn_store *s, const vn_model *m, const vn_weight_row *rows, vn_error *err)
{
	const vn_model_words w = { vn_model_family(m), vn_model_config(m), vn_model_provenance(m), vn_model_format(m), vn_model_path(m) };
	vn_plan_text text = { 0 };
	vn_status    st = s->plan ? vn_plan_to_text(s->plan, &text, err) : VN_OK;

	if (st)
		return st;
	if (!(st = vn_store_enter(s, err))) {
		const bool good = put_model(s, &w, rows, vn_model_plan(m)->n_weights) && (!s->plan || put_plan(s, &text));
		st = vn_store_settle(s, good, "/model or /plan", true, err);
		vn_h5_unlock();
	}
	vn_plan_text_free(&text);
	return st;
}

vn_status vn_store_words(vn_store *s, const vn_model_words *w, vn_error *err)
{
	vn_status st = vn_store_enter(s, err);

	if (st)
		return st;
	st = vn_store_settle(s, put_model(s, w, NULL, 0), "/model", true, err);
	vn_h5_unlock();
	return st;
}
