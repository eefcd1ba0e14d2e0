/* report.c: the forms of reports, and what they share; see report.h. */
#include "compare/report/report.h"

#include <string.h>

static const vn_report_form forms[] = {
	{ "text", NULL, 9, vn_report_text },
	{ "json", ".json", 32, vn_report_json },
	{ "junit", ".xml", 32, vn_report_junit },
	{ "markdown", ".md", 9, vn_report_markdown },
	{ "html", ".html", 32, vn_report_html },
};
const char *const vn_report_names = "text|json|junit|markdown|html";

enum { N_FORMS = sizeof forms / sizeof *forms };

const vn_report_form *vn_report_by_name(const char *name)
{
	for (int i = 0; i < N_FORMS; i++)
		if (strcmp(forms[i].name, name) == 0)
			return &forms[i];
	return NULL;
}

static bool ends_in(const char *text, const char *end)
{
	const size_t n = strlen(text), k = strlen(end);
	return n >= k && strcmp(text + n - k, end) == 0;
}

const vn_report_form *vn_report_by_suffix(const char *path)
{
	for (int i = 0; i < N_FORMS; i++)
		if (forms[i].suffix && ends_in(path, forms[i].suffix))
			return &forms[i];
	return &forms[0];
}

const vn_entry *vn_entry_of(const vn_comparison *c, const vn_checkpoint *p)
{
	return p->ref >= 0 ? vn_recording_entry(c->ref, p->ref) : vn_recording_entry(c->cand, p->cand);
}

const char *vn_op_of(const vn_comparison *c, const vn_checkpoint *p)
{
	const vn_entry *e = vn_entry_of(c, p);
	return *e->op || p->value < 0 ? e->op : vn_op_name(c->plan->node[c->plan->value[p->value].node].op);
}

const char *vn_point_of(const vn_checkpoint *p)
{
	const char *dot = strchr(p->name, '.');
	return dot ? dot + 1 : p->name;
}

/* A reference in the candidate's own precision is its own floor, of 0: no unit to measure in. */
bool vn_ratio_of(const vn_comparison *c, const vn_checkpoint *p, double *ratio)
{
	const double x = p->m.value[VN_M_NMSE], f = p->few >= 0 ? c->few[p->few].floor[VN_M_NMSE] : vn_floor_value(p, VN_M_NMSE);
	if (!p->has_floor || !(f > 0.0 || x == 0.0))
		return false;
	*ratio = f == 0.0 && x == 0.0 ? 0.0 : x / f;
	return true;
}

int vn_first_failure(const vn_comparison *c)
{
	if (c->first >= 0)
		return c->first;
	for (int i = 0; i < c->n_points; i++)
		if (c->point[i].fails)
			return i;
	return -1;
}
