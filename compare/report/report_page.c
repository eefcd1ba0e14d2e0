/* report_page.c: see report_page.h. */
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/baseline.h"
#include "compare/report/report_page.h"
#include "libref/base/alloc.h"
#include "libref/base/system.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the page ------------------------------------------------------------------------ */

/* A stream that writes to a file. In JSON a '<' occurs only inside strings; escaping it keeps the
 * enclosing element from ending. */
static ssize_t write_escaped(void *file, const char *text, size_t n)
{
	FILE *out = file;
	for (size_t at = 0; at < n;) {
		const char  *next = memchr(text + at, '<', n - at);
		const size_t plain = next ? (size_t)(next - text) - at : n - at;
		fwrite(text + at, 1, plain, out);
		if (next)
			fputs("\\u003c", out);
		at += plain + (next != NULL);
	}
	return ferror(out) ? 0 : (ssize_t)n;
}

FILE *vn_page_data(FILE *out)
{
	return vn_alloc_check(vn_stream_open(out, write_escaped, NULL));
}

vn_status vn_page_end(FILE *data, const char *rest, vn_status st, FILE *out, vn_error *err)
{
	if (fclose(data) != 0 && !st)
		st = vn_fail(err, VN_ERR_IO, "the page could not be written");
	fputs(rest, out);
	return st;
}

const char *vn_page_until(const char *at, const char *placeholder, FILE *out)
{
	const char *page = at ? at : (const char *)vn_page, *end = strstr(page, placeholder);
	fwrite(page, 1, (size_t)(end - page), out);
	return end + strlen(placeholder);
}

/* ---- rows ---------------------------------------------------------------------------- */

/* The texts that a checkpoint shares with many others. */
static json_t *kind_of(const vn_document *doc, const vn_checkpoint *p)
{
	const vn_tensor_facts about = vn_document_about(doc, p);
	json_t               *j = json_object(), *metrics = json_array();
	char                  usual[VN_NAME_MAX];

	/* 100,000 names would be most of a page. Most names follow from the layer, which is in the
	 * row. */
	snprintf(usual, sizeof usual, "layer%d.%s", p->layer, vn_point_of(p));
	json_object_set_new(j, "name", strcmp(p->name, usual) != 0 ? vn_json_text(p->name) : NULL);
	json_object_set_new(j, "point", vn_json_text(vn_point_of(p)));
	json_object_set_new(j, "op", vn_json_text(about.op));
	json_object_set_new(j, "shape", vn_json_integers(about.shape.dim, about.shape.rank));
	json_object_set_new(j, "axes", vn_json_text(about.axes));
	json_object_set_new(j, "elements", json_integer(p->m.n));
	json_object_set_new(j, "status", json_string(vn_checkpoint_status_text(p->status)));
	json_object_set_new(j, "fails", json_boolean(p->fails));
	json_object_set_new(j, "origin", json_boolean(p->origin));
	if (p->since > VN_UNCHANGED)
		json_object_set_new(j, "since", json_string(vn_judge_since_text(p->since)));
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		char           key[VN_KEY_TEXT];
		json_array_append_new(metrics, json_string(vn_limit_key(k.form, k.metric, key)));
	}
	json_object_set_new(j, "limited", metrics);
	return j;
}

json_int_t vn_page_number(json_t *index, json_t *list, json_t *value)
{
	VN_FREED char *text = vn_json_dump(value, JSON_COMPACT);
	const json_t  *old = text ? json_object_get(index, text) : NULL;
	json_int_t     number = old ? json_integer_value(old) : (json_int_t)json_array_size(list);

	if (!old && (!text || json_object_set_new(index, text, json_integer(number)) || json_array_append(list, value)))
		number = -1;
	json_decref(value);
	return number;
}

static void put_number(FILE *out, double x)
{
	if (isfinite(x))
		fprintf(out, ",%.3g", x);
	else
		fputs(",null", out);
}

bool vn_page_row(const vn_page_shared *k, const vn_document *doc, const vn_checkpoint *p, int at, FILE *out)
{
	const json_int_t kind = vn_page_number(k->index, k->kind, kind_of(doc, p));
	double           limit_fraction = NAN;
	int              most = -1;

	if (kind < 0)
		return false;
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check check = vn_check_at(p, i);
		const double   x = vn_check_limit_fraction(&check);
		if (most < 0 || x > limit_fraction) {
			most = i;
			limit_fraction = x;
		}
	}
	fprintf(out, "%d,%lld,%d,%d", at, (long long)kind, p->step, p->order);
	put_number(out, vn_metric_shown(p, VN_M_NMSE));
	put_number(out, p->has_floor ? vn_floor_value(p, VN_M_NMSE) : NAN);
	put_number(out, limit_fraction);
	fprintf(out, ",%d,%d", most, p->layer);
	return true;
}
