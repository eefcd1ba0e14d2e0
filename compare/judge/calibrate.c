/* calibrate.c: see calibrate.h. */
#include "compare/judge/calibrate.h"
#include "capture/file/output.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/check_words.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"
#include "libref/plan/point.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was seen ------------------------------------------------------------------ */

vn_status vn_judge_sanity(bool floor, vn_limits **l, vn_error *err)
{
	char   text[2048];
	size_t n = (size_t)snprintf(text, sizeof text, "version: 1\nname: sanity\ndefaults:\n");
	for (int m = 0; m < VN_N_METRICS; m++) {
		const vn_metric_info *i = vn_metric_get((vn_metric)m);
		if (i->calibrated)
			n += (size_t)snprintf(text + n, sizeof text - n, "  %s: %g\n", i->name, i->sane);
		if (i->calibrated && i->over_floor && floor)
			n += (size_t)snprintf(text + n, sizeof text - n, "  %s_over_floor: %g\n", i->name, 1e300);
	}
	return vn_limits_built_in("of any correct run", text, n, l, err);
}

static void remember_check(vn_calibration *k, const vn_opened *o, const vn_pools *pools, const vn_checkpoint *p,
                           const vn_check *x)
{
	k->seen = vn_alloc_grown(k->seen, (size_t)k->n, sizeof *k->seen);
	k->seen[k->n] = (vn_seen) {
		.name = p->name,
		.file = vn_recording_path(o->cand),
		.form = x->form,
		.metric = x->metric,
		.value = x->value,
		.rows = p->pooled_logits >= 0 ? pools->pooled_logits[p->pooled_logits].n : p->rows,
		.layer = vn_name_layer(p->name),
		.digits = vn_dtype_digits(p->m.grid),
		.order = k->n,
	};
	k->n++;
}

vn_status vn_calibration_add(vn_calibration *k, const vn_opened *o, const vn_checkpoints *all, const vn_pools *pools,
                             vn_error *err)
{
	char label[VN_LABEL], words[VN_WORDS];
	k->pairs++;
	k->layers = o->request.limits->layers > k->layers ? o->request.limits->layers : k->layers;
	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &all->of[i];
		if (p->fails && p->worst < 0)
			return vn_fail(err, VN_ERR_MISMATCH, "%s is not a correct run, judged by %s: %s: %s",
			               vn_recording_path(o->cand), vn_recording_path(o->ref), vn_label(p, label),
			               vn_judge_say_failure(p, words));
		for (int n = 0; n < p->n_checks; n++) {
			const vn_check x = vn_check_at(p, n);
			if (x.form == VN_OVER_FLOOR && x.note) /* no floor, so no ratio to learn from */
				continue;
			if (!x.holds && x.form != VN_OVER_FLOOR)
				return vn_fail(err, VN_ERR_MISMATCH, "%s is not a correct run, judged by %s: %s: %s",
				               vn_recording_path(o->cand), vn_recording_path(o->ref), vn_label(p, label),
				               vn_judge_say_check(p, &x, words));
			if (x.metric != VN_M_NONFINITE)
				remember_check(k, o, pools, p, &x);
		}
	}
	return VN_OK;
}

void vn_calibration_free(vn_calibration *k)
{
	free(k->seen);
}

/* ---- one limit ------------------------------------------------------------------------- */

/* All observations of one key at one point. */
typedef struct observation_group {
	const vn_seen *seen;
	int            n;
	const vn_seen *worst;
	bool           none, deep;  /* none: no limit would make sense */
	double         first, last; /* first: the value for all layers when not deep */
} observation_group;

static bool high_is_good(const vn_seen *s)
{
	return s->form != VN_OVER_FLOOR && vn_metric_get(s->metric)->better == VN_HIGHER;
}

/* Equal bits may be chance, so no limit is below what one rounding to the coarser format causes: an
 * error of up to eps / 2, evenly distributed, so about eps^2 / 22 in nmse and almost nothing in the
 * norm. The factor of one channel is 1 within its error in most runs, but off by up to 8 eps in
 * some (fp16-acc32.yaml, bf16.yaml). */
static double least_limit(const vn_seen *s)
{
	const double          eps = ldexp(1.0, -s->digits);
	const vn_metric_info *info = vn_metric_get(s->metric);
	if (info->kind == VN_KIND_FACTOR && info->worst == VN_WORST_CHANNEL)
		return s->form == VN_OVER_FLOOR ? 8.0 : 8 * eps;
	if (s->form == VN_OVER_FLOOR)
		return 1.0;
	return info->kind == VN_KIND_NORM ? eps / 16 : eps * eps / 16;
}

/* Above this value vernier limits would warn that the limit is too loose to be useful. */
static double most_seen(const vn_seen *s)
{
	if (s->form == VN_OVER_FLOOR)
		return 1e6;
	return vn_metric_get(s->metric)->scores ? (double)INFINITY : 0.99;
}

/* Rounds up to two digits, so that the fitted runs still pass. */
static double round_up(double x)
{
	const double unit = pow(10.0, floor(log10(x)) - 1);
	char         text[40];
	for (double k = ceil(x / unit);; k++) {
		snprintf(text, sizeof text, "%.1e", k * unit);
		if (strtod(text, NULL) >= x)
			return strtod(text, NULL);
	}
}

/* For a share of rows: when n rows had no fault, up to 3 in n may have one,
 * with 95 % confidence. */
static void fit_share(observation_group *g, double margin)
{
	double rows = 0;
	for (int i = 0; i < g->n; i++)
		rows += (double)g->seen[i].rows;
	const double room = fmax(margin * (1 - g->worst->value), rows > 0 ? 3 / rows : 1);
	g->first = floor(1e4 * (1 - room)) / 1e4;
	g->none = !(g->first > 0);
}

/* Fits log y = a + b layer to the worst value of each layer, then lifts the line above all of them.
 * Returns false with a single layer. */
static bool fit_slope(const observation_group *g, double *a, double *b)
{
	double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, lift = 0;
	for (int i = 0; i < g->n; i++) {
		const double x = g->seen[i].layer, y = log(fmax(g->seen[i].value, least_limit(&g->seen[i])));
		n++;
		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
	}
	const double spread = n * sxx - sx * sx;
	if (!(spread > 0))
		return false;
	*b = (n * sxy - sx * sy) / spread;
	*a = (sy - *b * sx) / n;
	for (int i = 0; i < g->n; i++)
		lift = fmax(lift, log(fmax(g->seen[i].value, least_limit(&g->seen[i]))) - (*a + *b * g->seen[i].layer));
	*a += lift;
	return true;
}

/* Fits a limit by depth only when its two numbers pay off: tighter by half or more
 * over all layers. */
static void fit_depth(observation_group *g, int layers, double margin)
{
	enum { TIGHTER_BY = 3 }; /* halves: 1.5 */
	double a, b;
	if (g->worst->layer < 0 || layers < 2 || !fit_slope(g, &a, &b))
		return;
	const double middle = exp(a + b * (layers - 1) / 2) * margin;
	const double first = exp(a) * margin, last = exp(a + b * (layers - 1)) * margin;
	if (!(g->first > TIGHTER_BY / 2.0 * middle) || fmax(first, last) >= most_seen(g->worst))
		return;
	g->deep = true;
	if (!isfinite(g->worst->value)) { /* the floor is 0 although the run is no copy */
		g->none = true;
		return;
	}
	g->first = round_up(fmax(first, least_limit(g->worst)));
	g->last = round_up(fmax(last, least_limit(g->worst)));
}

static void fit_group(observation_group *g, int layers, double margin)
{
	g->worst = g->seen;
	for (int i = 1; i < g->n; i++)
		if (high_is_good(g->worst) ? g->seen[i].value < g->worst->value : g->seen[i].value > g->worst->value)
			g->worst = &g->seen[i];
	if (high_is_good(g->worst)) {
		fit_share(g, margin);
		return;
	}
	g->first = round_up(fmax(margin * g->worst->value, least_limit(g->worst)));
	if (g->first > most_seen(g->worst)) {
		g->first = most_seen(g->worst);
		g->none = !(g->worst->value <= g->first);
	}
	fit_depth(g, layers, margin);
}

/* ---- rules -------------------------------------------------------------------------------- */

static int same_point(const vn_seen *x, const vn_seen *y)
{
	return (x->layer >= 0) != (y->layer >= 0) ? (x->layer >= 0) - (y->layer >= 0)
	                                          : strcmp(vn_name_in_layer(x->name), vn_name_in_layer(y->name));
}

VN_ORDER_BY(by_key, vn_seen, same_point(x, y), VN_ORDER(y->form == VN_OVER_FLOOR, x->form == VN_OVER_FLOOR),
            VN_ORDER(x->form, y->form), VN_ORDER(x->metric, y->metric), VN_ORDER(x->order, y->order))

typedef struct order_group {
	observation_group *group;
	int                n, order;
} order_group;

VN_ORDER_BY(by_order, order_group, x->order - y->order)

/* Writes text in double quotes, escaping characters that YAML would interpret there. */
static void print_quoted(const char *text, FILE *out)
{
	VN_FREED char *clean = vn_utf8_escape(text, strlen(text));
	fputc('"', out);
	for (const char *c = clean ? clean : ""; *c; c++)
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else
			fputc(*c, out);
	fputc('"', out);
}

static void write_number(const observation_group *g, FILE *out)
{
	if (g->none)
		fprintf(out, "none");
	else if (g->deep)
		fprintf(out, "{ first: %.1e, last: %.1e }", g->first, g->last);
	else
		fprintf(out, high_is_good(g->worst) ? "%.4f" : "%.1e", g->first);
}

static void print_why(const vn_calibration *k, const observation_group *g, int n, FILE *out)
{
	char  *text = NULL, key[VN_KEY_TEXT];
	size_t size = 0;
	FILE  *to = open_memstream(&text, &size);
	if (to) {
		fprintf(to, "%d pair%s, %d number%s; worst", k->pairs, k->pairs == 1 ? "" : "s", g->n, g->n == 1 ? "" : "s");
		for (int i = 0; i < n; i++)
			fprintf(to, "%s %s %.3g at %s of %s", i ? "," : "", vn_limit_key(g[i].worst->form, g[i].worst->metric, key),
			        g[i].worst->value, g[i].worst->name, vn_text_file(g[i].worst->file));
		fprintf(to, "; margin %g", k->margin);
	}
	vn_text_close(to, &text);
	fputs("    why: ", out);
	print_quoted(text ? text : "", out);
	fputc('\n', out);
	free(text);
}

/* Whether a multiple of the floor is fitted for this metric. */
static const observation_group *over_floor(const observation_group *g, int n, vn_metric m)
{
	for (int i = 0; i < n; i++)
		if (g[i].worst->form == VN_OVER_FLOOR && g[i].worst->metric == m && !g[i].none)
			return &g[i];
	return NULL;
}

/* Whether the limit applies only without a floor. */
static bool stands_beside(const observation_group *g, int n, const vn_seen *s)
{
	const vn_metric_info *info = vn_metric_get(s->metric);
	return s->form == VN_PLAIN && over_floor(g, n,
	                                         info->over_floor ? s->metric
	                                         : info->scores   ? VN_M_KL_MEAN
	                                                          : VN_M_NMSE);
}

/* Writes keys at this indent. A limit next to a multiple of the floor applies where
 * there is no floor. */
static void print_keys(const observation_group *g, int n, const char *indent, FILE *out)
{
	char key[VN_KEY_TEXT];
	int  inner = 0;
	for (int i = 0; i < n; i++) {
		const vn_seen *s = g[i].worst;
		if (stands_beside(g, n, s)) {
			inner++;
			continue;
		}
		fprintf(out, "%s%s: ", indent, vn_limit_key(s->form, s->metric, key));
		write_number(&g[i], out);
		fputc('\n', out);
	}
	if (!inner)
		return;
	fprintf(out, "%swithout_floor: {", indent);
	for (int i = 0, said = 0; i < n; i++)
		if (stands_beside(g, n, g[i].worst)) {
			fprintf(out, "%s %s: ", said++ ? "," : "", vn_limit_key(VN_PLAIN, g[i].worst->metric, key));
			write_number(&g[i], out);
		}
	fputs(" }\n", out);
}

/* The default for checkpoints without a rule: the loosest limit of any rule. */
static int collect_loosest(const observation_group *g, int n, observation_group *of)
{
	int found = 0;
	for (int f = VN_OVER_FLOOR; f >= VN_PLAIN; f--)
		for (int m = 0; m < VN_N_METRICS; m++) {
			const observation_group *worst = NULL;
			if (vn_metric_get((vn_metric)m)->scores)
				continue;
			for (int i = 0; i < n; i++)
				if (g[i].worst->form == (vn_form)f && g[i].worst->metric == (vn_metric)m && !g[i].none &&
				    (!worst || fmax(g[i].first, g[i].last) > fmax(worst->first, worst->last)))
					worst = &g[i];
			if (!worst)
				continue;
			of[found] = *worst;
			of[found].deep = false;
			of[found++].first = fmax(worst->first, worst->last);
		}
	return found;
}

static void write_rules(const vn_calibration *k, const observation_group *g, int n, const order_group *p, int n_points,
                        FILE *out)
{
	observation_group any[VN_N_FORMS * VN_N_METRICS];
	const int         n_any = collect_loosest(g, n, any);
	fputs("version: 1\nname: ", out);
	print_quoted(k->name, out);
	fputs("\n\ndefaults:\n  nonfinite: 0\n", out);
	print_keys(any, n_any, "  ", out);
	fprintf(out, "  why: \"the loosest of the rules below, for checkpoints that no run had; margin %g\"\n\nrules:\n",
	        k->margin);
	for (int i = 0; i < n_points; i++) {
		const vn_seen *s = p[i].group->worst;
		char           match[VN_NAME_MAX + 8];
		snprintf(match, sizeof match, "%s%s", s->layer >= 0 ? "layer@." : "", vn_name_in_layer(s->name));
		fputs(i ? "\n  - match: " : "  - match: ", out);
		/* Replaces characters that a glob cannot hold by `?`. */
		for (char *c = match; *c; c++)
			if (strchr("*?{},\"\\", *c) || (unsigned char)*c < 32 || (unsigned char)*c > 126)
				*c = '?';
		if (s->layer >= 0)
			fprintf(out, "\"layer*%s\"\n", match + strlen("layer@"));
		else
			fprintf(out, "\"%s\"\n", match);
		print_keys(p[i].group, p[i].n, "    ", out);
		print_why(k, p[i].group, p[i].n, out);
	}
}

static bool anything_differs(const vn_calibration *k)
{
	for (int i = 0; i < k->n; i++)
		if (k->seen[i].metric == VN_M_NMSE && k->seen[i].form == VN_PLAIN && k->seen[i].value > 0)
			return true;
	return false;
}

vn_status vn_calibration_write(vn_calibration *k, FILE *out, vn_error *err)
{
	if (!anything_differs(k))
		return vn_fail(err, VN_ERR_MISMATCH,
		               "no checkpoint differs from its reference: there is nothing to fit limits "
		               "to (to require equal bits, use compare --bitwise)");
	VN_FREED observation_group *g = vn_alloc_zero((size_t)k->n, sizeof *g);
	VN_FREED order_group       *p = vn_alloc_zero((size_t)k->n, sizeof *p);
	int                         n = 0, points = 0;
	qsort(k->seen, (size_t)k->n, sizeof *k->seen, by_key);
	for (int i = 0; i < k->n; i++) {
		const vn_seen *s = &k->seen[i], *before = i ? &k->seen[i - 1] : NULL;
		const bool     other = !before || same_point(s, before) != 0;
		if (other || s->form != before->form || s->metric != before->metric)
			g[n++].seen = s;
		if (other)
			p[points++] = (order_group) { &g[n - 1], 0, s->order };
		p[points - 1].n = (int)(&g[n] - p[points - 1].group);
		p[points - 1].order = s->order < p[points - 1].order ? s->order : p[points - 1].order;
		g[n - 1].n++;
	}
	for (int i = 0; i < n; i++)
		fit_group(&g[i], k->layers, k->margin);
	qsort(p, (size_t)points, sizeof *p, by_order);
	write_rules(k, g, n, p, points, out);
	return VN_OK;
}
