/* document.c: see document.h. */
#include "compare/result/document.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/unmeasured.h"
#include "compare/replay/replay_words.h"
#include "compare/replayed/replayed_words.h"
#include "compare/result/document_json.h"
#include "compare/result/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *vn_document_limits(const vn_document *doc)
{
	return json_is_true(doc->bitwise) ? "none" : vn_document_member(doc->limits, "file");
}

/* ---- a checkpoint -------------------------------------------------------------------------- */

static const vn_entry *entry_of(const vn_opened *o, const vn_checkpoint *p)
{
	return p->ref >= 0 ? vn_recording_entry(o->ref, p->ref) : vn_recording_entry(o->cand, p->cand);
}

static const char *op_of(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_entry *e = entry_of(o, p);
	return *e->op || p->value < 0 ? e->op : vn_op_name(o->plan->node[o->plan->value[p->value].node].op);
}

static const vn_read_row *row_of(const vn_document *doc, const vn_checkpoint *p)
{
	return &doc->read->row[p - doc->checkpoint];
}

vn_tensor_facts vn_document_about(const vn_document *doc, const vn_checkpoint *p)
{
	if (doc->read)
		return row_of(doc, p)->about;
	const vn_entry *e = entry_of(doc->opened, p);
	return (vn_tensor_facts) { op_of(doc->opened, p), vn_entry_axes(e), e->shape };
}

const char *vn_document_replayed(const vn_document *doc, const vn_checkpoint *p, char text[VN_WORDS])
{
	if (!doc->read) {
		vn_replay_say_result(doc->opened, &doc->result->checkpoints, &doc->result->localised, p, text);
		vn_replayed_add_words(doc->opened, doc->result->judged, p, text);
		return text;
	}
	snprintf(text, VN_WORDS, "%s", row_of(doc, p)->replayed ? row_of(doc, p)->replayed : "");
	return text;
}

int vn_document_products(const vn_document *doc, const vn_checkpoint *p, vn_gemm g[VN_MAX_GEMM])
{
	if (!doc->read)
		return vn_replayed_products(doc->opened, p, g);
	memcpy(g, row_of(doc, p)->gemm, sizeof row_of(doc, p)->gemm);
	return row_of(doc, p)->n_gemm;
}

json_t *vn_document_sides(const vn_document *doc, const vn_checkpoint *p)
{
	return doc->read ? json_incref(row_of(doc, p)->sides) : vn_unmeasured_sides(doc->opened, p);
}

bool vn_ratio_of(const vn_document *doc, const vn_checkpoint *p, double *ratio)
{
	/* A reference in the candidate's own precision has a floor of 0, which cannot be a unit. */
	const double x = p->m.value[VN_M_NMSE], f = p->pooled_small >= 0
	                                                ? doc->pooled_small[p->pooled_small].floor[VN_M_NMSE]
	                                                : vn_floor_value(p, VN_M_NMSE);
	if (!p->has_floor || !p->m.finite || !(f > 0.0 || x == 0.0))
		return false;
	*ratio = f == 0.0 && x == 0.0 ? 0.0 : x / f;
	return true;
}

/* Is this its name in JSON? There, bytes that are no UTF-8 are escaped. */
static bool is_named(const vn_checkpoint *p, const char *name)
{
	if (strcmp(p->name, name) == 0)
		return true;
	if (!strstr(name, "\\x"))
		return false;
	VN_OWNED json_t *own = vn_json_text(p->name);
	return strcmp(vn_document_text(own), name) == 0;
}

int vn_document_find(const vn_document *doc, const char *name)
{
	int step = 0, end = 0;

	if (sscanf(name, "step.%d/%n", &step, &end) == 1 && end > 0)
		name += end;
	if (doc->read)
		return vn_reading_find(doc->read, name, step);
	for (int i = 0; i < doc->n; i++)
		if (doc->checkpoint[i].step == step && is_named(&doc->checkpoint[i], name))
			return i;
	return -1;
}

int vn_document_detail_at(const vn_document *doc, int point)
{
	for (int i = 0; i < vn_document_lines(doc->divergences); i++)
		if (doc->detail[i] == point)
			return i;
	return -1;
}

const json_t *vn_document_detail(const vn_document *doc, int point)
{
	const int at = vn_document_detail_at(doc, point);
	return at < 0 ? NULL : json_array_get(doc->divergences, (size_t)at);
}

const json_t *vn_document_explanation(const vn_document *doc, int point)
{
	json_t *name = vn_json_name(&doc->checkpoint[point]), *x;
	size_t  i;
	json_t *found = NULL;

	json_array_foreach(doc->explanations, i, x)
	{
		if (strcmp(vn_document_member(x, "checkpoint"), vn_document_text(name)) == 0)
			found = x;
	}
	json_decref(name);
	return found;
}

void vn_document_finish(vn_document *doc)
{
#define FIELD(key, kind, since, part) json_decref(doc->key);
#include "compare/result/fields.def"
#undef FIELD
	free(doc->detail);
	vn_reading_free(doc->read);
	*doc = (vn_document) { .n = 0 };
}
