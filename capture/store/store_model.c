/* store_model.c: /model with its table of weights, and /plan. See store.h. A file of its own: a program that links the library for
 * its C API alone needs no models. */
#include "capture/store/store_inside.h"

#include "capture/file/plan_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	row  *rows = calloc((size_t)n + 1, sizeof *rows); /* what is between columns is in the digest too: zeros */
	hid_t type = row_type();
	bool  good = rows && type >= 0;

	for (int i = 0; good && i < n; i++) {
		row *r = &rows[i];
		r->min = w[i].stats.min;
		r->max = w[i].stats.max;
		r->mean = w[i].stats.mean;
		r->rms = w[i].stats.rms;
		r->nan = w[i].stats.nan;
		r->inf = w[i].stats.inf;
		snprintf(r->name, sizeof r->name, "%s", w[i].name);
		snprintf(r->dtype, sizeof r->dtype, "%s", vn_dtype_word(w[i].dtype));
		snprintf(r->digest, sizeof r->digest, "%s", w[i].digest.hex);
		for (int k = 0, at = 0; k < w[i].shape.rank; k++)
			at += snprintf(r->shape + at, sizeof r->shape - (size_t)at, "%s%" PRId64, k ? "x" : "", w[i].shape.dim[k]);
	}
	good = good && vn_store_list(group, "weights", type, type, n, rows, vn_digest_of(rows, (size_t)n * sizeof *rows).hex);
	if (type >= 0)
		H5Tclose(type);
	free(rows);
	return good;
}

static bool put_model(vn_store *s, const vn_model_words *w, const vn_weight_row *rows, int n)
{
	hid_t g = vn_store_put_words(s, w);
	bool  good = g >= 0 && (!rows || put_weights(g, rows, n));
	if (g >= 0)
		H5Gclose(g);
	return good;
}

static bool put_plan(vn_store *s, const vn_plan_text *t)
{
	hid_t g = H5Gcreate2(s->file, "plan", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	bool  good = g >= 0 && vn_h5_put_int(g, "layers", t->layers) && vn_h5_put_int(g, "vocab", t->vocab) &&
	            vn_h5_put_int(g, "context", t->context) && vn_store_lines(g, "nodes", t->node, t->n_nodes) &&
	            vn_store_lines(g, "values", t->value, t->n_values) && vn_store_lines(g, "weights", t->weight, t->n_weights);
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
