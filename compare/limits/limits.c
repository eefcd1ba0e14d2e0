/* limits.c: see limits.h. Reading a file is in limits_file.c. */
#include "compare/limits/limits.h"

#include "capture/base/shipped.h"
#include "libref/base/glob.h"
#include "libref/plan/point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const vn_permission_info *vn_permission_get(vn_permission p)
{
	static const vn_permission_info table[VN_N_PERMISSIONS] = {
		[VN_PERMIT_MISSING] = { "missing", "refused", false },
		[VN_PERMIT_EXTRA] = { "extra", "refused", false },
		[VN_PERMIT_CONSTANT] = { "constant", "refused", false },
		[VN_PERMIT_OPERATION] = { "operation", "fail", false },
		[VN_PERMIT_ACCUMULATED] = { "accumulated", "fail", true },
	};
	return &table[p];
}

char *vn_limit_key(vn_form form, vn_metric m, char *text)
{
	snprintf(text, VN_KEY_TEXT, "%s%s", vn_metric_get(m)->name,
	         form == VN_OVER_FLOOR     ? "_over_floor"
	         : form == VN_OF_OPERATION ? "_of_operation"
	                                   : "");
	return text;
}

double vn_limit_subject(vn_metric m, vn_form form, double value)
{
	return form != VN_OVER_FLOOR && vn_metric_get(m)->better == VN_NEAR_ONE ? fabs(value - 1.0) : value;
}

bool vn_limit_holds(vn_metric m, vn_form form, double limit, double value)
{
	const double x = vn_limit_subject(m, form, value);
	if (form != VN_OVER_FLOOR && vn_metric_get(m)->better == VN_HIGHER)
		return x >= limit;
	return x <= limit;
}

/* Interpolates a limit by depth: `first` in layer 0, `last` in layer `layers` - 1, geometrically
 * between them (for metrics that must be high, the distance from 1 is interpolated). Outside
 * layers: embeddings use `first`, everything else `last`. */
static double limit_at_depth(vn_metric m, vn_form form, double first, double last, const char *name, int layers)
{
	const bool high = form != VN_OVER_FLOOR && vn_metric_get(m)->better == VN_HIGHER;
	const int  layer = vn_name_layer(name);
	vn_point   point;
	if (layer < 0)
		return vn_point_from_name(name, &point) && vn_point_get(point)->place == VN_BEFORE_LAYERS ? first : last;
	if (layer >= layers - 1 && layers > 0)
		return last;
	if (layer == 0 || layers == 0)
		return first;
	const double share = (double)layer / (layers - 1);
	/* In logarithms, because last / first may overflow a double. */
	const double a = log(high ? 1.0 - first : first), b = log(high ? 1.0 - last : last);
	const double x = exp(a + (b - a) * share);
	return high ? 1.0 - x : x;
}

const char *vn_limit_doubt(vn_form form, vn_metric m, double value)
{
	const vn_metric_info *info = vn_metric_get(m);
	if (form == VN_OVER_FLOOR)
		return value > 1e6 ? "times the floor almost never fails"
		       : value < 1 ? "times the floor: a correct run in that format may exceed it"
		                   : NULL;
	if (info->kind == VN_KIND_COSINE && value > info->loose && value <= 0)
		return "lets an unrelated tensor pass";
	/* A factor beyond 6 standard errors is 0 in most tensors, whatever their fault, and positive by
	 * chance in others. */
	if (info->kind == VN_KIND_FACTOR && value == 0)
		return "depends on the number of elements: rounding alone exceeds it in small tensors, and stays far below in "
			   "large ones";
	const bool loose = info->better == VN_HIGHER ? value <= info->loose : value >= info->loose;
	return loose ? info->loose_means : NULL;
}

const char *vn_rule_why(const vn_rule *r, vn_form form, vn_metric m)
{
	const char *own = r->why_of[form == VN_OVER_FLOOR][m];
	return own ? own : r->why;
}

static void apply_rule(const vn_limits *l, vn_rule *r, const char *name, vn_limit_set *set)
{
	for (int f = 0; f < VN_N_FORMS; f++)
		for (int m = 0; m < VN_N_METRICS; m++) {
			if (r->key[f][m].state == VN_SAID)
				set->limit[f][m] = (vn_limit) { r,
					                            !r->key[f][m].deep
					                                ? r->key[f][m].value
					                                : limit_at_depth((vn_metric)m, (vn_form)f, r->key[f][m].value,
					                                                 r->key[f][m].last, name, l->layers),
					                            r->key[f][m].line };
			else if (r->key[f][m].state == VN_LIFTED)
				set->limit[f][m] = (vn_limit) { 0 };
		}
	for (int i = 0; i < VN_N_PERMISSIONS; i++)
		if (r->permission[i] >= 0)
			set->permission[i] = r->permission[i] != vn_permission_get((vn_permission)i)->by_default ? r : NULL;
	r->hit = true;
}

void vn_limits_for(vn_limits *l, const char *name, vn_limit_set *set)
{
	memset(set, 0, sizeof *set);
	for (int i = 0; i < l->n_rules; i++)
		if (!l->rule[i]->match)
			apply_rule(l, l->rule[i], name, set);
	for (int i = 0; i < l->n_rules; i++)
		if (l->rule[i]->match && vn_glob_match(l->rule[i]->match, name))
			apply_rule(l, l->rule[i], name, set);
}

bool vn_limits_mention(const vn_limits *l, vn_metric m)
{
	for (int i = 0; i < l->n_rules; i++)
		for (int f = 0; f < VN_N_FORMS; f++)
			if (l->rule[i]->key[f][m].state == VN_SAID)
				return true;
	return false;
}

bool vn_limits_ask_floor(const vn_limits *l)
{
	for (int i = 0; i < l->n_rules; i++)
		for (int m = 0; m < VN_N_METRICS; m++)
			if (l->rule[i]->key[VN_OVER_FLOOR][m].state == VN_SAID)
				return true;
	return false;
}

void vn_limits_destroy(vn_limits *l)
{
	if (!l)
		return;
	for (int i = 0; i < l->n_rules; i++) {
		VN_FREE(l->rule[i]->file, l->rule[i]->match, l->rule[i]->why);
		for (int m = 0; m < VN_N_METRICS; m++)
			VN_FREE(l->rule[i]->why_of[0][m], l->rule[i]->why_of[1][m]);
		free(l->rule[i]);
	}
	vn_lines_free(&l->warnings);
	VN_FREE(l->rule, l->name, l->path, l);
}

vn_status vn_limits_find(const char *name, char *path, vn_error *err)
{
	return vn_shipped_find("limits", name, path, err);
}
