/* report_text.c: a comparison for a person at a terminal, or reading a log. */
#include "compare/report.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Of origins so many are told in full, and so many named on the first screen. */
enum { DETAILS = 8, NAMED = 4 };

typedef struct page {
	const vn_comparison *c;
	const vn_story *s;
	const vn_report_options *o;
	FILE *out;
	int   width; /* of the name column */
} page;

#define RED(p)   ((p)->o->colour ? "\033[31m" : "")
#define GREEN(p) ((p)->o->colour ? "\033[32m" : "")
#define DIM(p)   ((p)->o->colour ? "\033[2m" : "")
#define BOLD(p)  ((p)->o->colour ? "\033[1m" : "")
#define PLAIN(p) ((p)->o->colour ? "\033[0m" : "")

/* ---- head ----------------------------------------------------------------- */

/* A path as a terminal may be shown it. */
static const char *shown(const char *path, char room[PATH_MAX])
{
	snprintf(room, PATH_MAX, "%s", path);
	return vn_text_clean(room);
}

static void recording_line(const page *p, const char *what, const vn_recording *r)
{
	static const char *const keys[] = { "engine", "engine_version", "precision", "device" };
	char text[1200] = "", path[PATH_MAX];
	size_t used = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *v = vn_facts_get(vn_recording_run(r), keys[i]);
		if (v && *v)
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", v);
	}
	vn_text_clean(text); /* it comes from strangers */
	int second = 0; /* names of a tensor that has one already: it is compared once */
	for (int i = 0; i < vn_recording_count(r); i++)
		second += vn_recording_entry(r, i)->same_as >= 0;
	fprintf(p->out, "%-10s %s  %s(%s; %d tensors", what, shown(vn_recording_path(r), path), DIM(p), text,
	        vn_recording_count(r) - second);
	if (second)
		fprintf(p->out, ", %d of them under a second name too", second);
	fprintf(p->out, ")%s\n", PLAIN(p));
}

static void head(const page *p)
{
	const vn_comparison *c = p->c;
	char path[PATH_MAX];
	recording_line(p, "reference", c->ref);
	recording_line(p, "candidate", c->cand);
	fprintf(p->out, "%-10s %s  %s(%s)%s\n", "limits", shown(c->limits->path, path), DIM(p), p->o->limits_chosen, PLAIN(p));
	fprintf(p->out, "%-10s %s\n", "floor", *c->floor_from ? shown(c->floor_from, path) : "none (--model DIR or --floor FILE gives one)");
	for (int i = 0; i < c->notes.n; i++)
		fprintf(p->out, "%-10s %s\n", "note", c->notes.line[i]);
	for (int i = 0; i < c->warnings.n; i++)
		fprintf(p->out, "%-10s %s\n", "warning", c->warnings.line[i]);
	fputc('\n', p->out);
}

/* ---- table ---------------------------------------------------------------- */

static void cell(FILE *out, int width, const char *format, double x)
{
	char text[40];
	if (isnan(x))
		snprintf(text, sizeof text, "nan");
	else if (isinf(x))
		snprintf(text, sizeof text, x > 0 ? "inf" : "-inf");
	else
		snprintf(text, sizeof text, format, x);
	fprintf(out, "  %*s", width, text);
}

static void row(const page *p, const vn_checkpoint *k)
{
	char label[VN_LABEL], words[VN_WORDS];
	double ratio;
	const char *colour = k->fails ? RED(p) : k->status == VN_WITHIN ? GREEN(p) : DIM(p);
	fprintf(p->out, "%s%-10s%s  %-*s", colour, k->fails && k->status == VN_OUTSIDE ? "OUTSIDE"
	        : vn_status_text(k->status), PLAIN(p), p->width, vn_label(k, label));
	if (k->m.n == 0) {
		fprintf(p->out, "  %s\n", k->detail);
		return;
	}
	cell(p->out, 9, "%.2e", k->m.value[VN_M_NMSE]);
	if (vn_ratio_of(k, &ratio))
		cell(p->out, 8, ratio < 1000 ? "%.2f" : "%.1e", ratio);
	else
		fprintf(p->out, "  %8s", "-");
	cell(p->out, 11, "%.8f", k->m.value[VN_M_COSINE]);
	cell(p->out, 9, "%.2e", k->m.value[VN_M_MAX_ABS]);
	cell(p->out, 11, "%.8f", k->m.value[VN_M_WORST_TOKEN_COSINE]);
	if (k->worst >= 0)
		fprintf(p->out, "  %s", vn_say_failure(k, words));
	fputc('\n', p->out);
}

/* "layers 0-3: 12 checkpoints", of which steps, too, when they are not all of step 0. */
static void say_run(const page *p, int from, int to)
{
	const vn_comparison *c = p->c;
	int first = -1, last = -1;
	char label[VN_LABEL];
	for (int i = from; i < to; i++)
		if (c->point[i].layer >= 0) {
			first = first < 0 || c->point[i].layer < first ? c->point[i].layer : first;
			last = c->point[i].layer > last ? c->point[i].layer : last;
		}
	if (to - from == 1) {
		fprintf(p->out, "%s", vn_label(&c->point[from], label));
		return;
	}
	if (c->point[from].step != c->point[to - 1].step)
		fprintf(p->out, "steps %d-%d, ", c->point[from].step, c->point[to - 1].step);
	else if (c->point[from].step > 0)
		fprintf(p->out, "step %d, ", c->point[from].step);
	if (first >= 0 && first == last)
		fprintf(p->out, "layer %d: ", first);
	else if (first >= 0)
		fprintf(p->out, "layers %d-%d: ", first, last);
	fprintf(p->out, "%d checkpoints", to - from);
}

/* Healthy neighbours share a line. */
static void healthy_run(const page *p, int from, int to)
{
	const vn_comparison *c = p->c;
	int worst = -1, unlimited = 0;
	char label[VN_LABEL];
	double ratio;
	for (int i = from; i < to; i++) {
		const vn_checkpoint *k = &c->point[i];
		unlimited += k->status == VN_UNLIMITED;
		if (k->m.n && (worst < 0 || k->m.value[VN_M_NMSE] > c->point[worst].m.value[VN_M_NMSE]))
			worst = i;
	}
	fprintf(p->out, "%s%-10s%s  ", GREEN(p), "within", PLAIN(p));
	say_run(p, from, to);
	if (unlimited)
		fprintf(p->out, ", %d of them without a limit", unlimited);
	if (worst >= 0) {
		fprintf(p->out, "%s; worst nmse %.2g", DIM(p), c->point[worst].m.value[VN_M_NMSE]);
		if (to - from > 1)
			fprintf(p->out, " at %s", vn_label(&c->point[worst], label));
		if (vn_ratio_of(&c->point[worst], &ratio))
			fprintf(p->out, " (%.2g x floor)", ratio);
		fputs(PLAIN(p), p->out);
	}
	fputc('\n', p->out);
}

static bool quiet(const page *p, int i)
{
	const vn_checkpoint *k = &p->c->point[i];
	return !p->o->all && !k->fails && (k->status == VN_WITHIN || k->status == VN_UNLIMITED);
}

static void table(const page *p)
{
	const vn_comparison *c = p->c;
	fprintf(p->out, "%s%-10s  %-*s  %9s  %8s  %11s  %9s  %11s  %s%s\n", BOLD(p), "", p->width, "checkpoint", "nmse",
	        "x floor", "cosine", "max abs", "worst token", "limit broken", PLAIN(p));
	for (int i = 0; i < c->n_points; ) {
		int j = i;
		/* A line for a run of healthy ones: of the prompt, then of the steps behind it. */
		while (j < c->n_points && quiet(p, j) && (c->point[j].step > 0) == (c->point[i].step > 0))
			j++;
		if (j > i)
			healthy_run(p, i, j);
		else
			row(p, &c->point[j++]);
		i = j;
	}
	fputc('\n', p->out);
}

/* ---- one checkpoint in full -------------------------------------------------- */

static void values(const page *p, const char *what, const vn_told *d, int side)
{
	fprintf(p->out, "  %-14s", what);
	for (int i = 0; i < d->n_first; i++)
		fprintf(p->out, " %12.6g", d->first[side][i]);
	fputc('\n', p->out);
}

static void statistics(const page *p, const char *what, const vn_stats *s)
{
	fprintf(p->out, "  %-14s min %.6g  max %.6g  mean %.6g  rms %.6g", what, s->min, s->max, s->mean, s->rms);
	if (s->nan || s->inf)
		fprintf(p->out, "  %s%" PRId64 " NaN, %" PRId64 " Inf%s", RED(p), s->nan, s->inf, PLAIN(p));
	fputc('\n', p->out);
}

static void inputs(const page *p, const vn_told *d)
{
	const vn_comparison *c = p->c;
	char label[VN_LABEL];
	double ratio;
	fprintf(p->out, "  %-14s ", "inputs");
	if (d->n_input < 0)
		fprintf(p->out, "not known: no plan says what this was computed from\n");
	else if (d->n_input == 0)
		fprintf(p->out, "none was compared before it\n");
	for (int i = 0; i < d->n_input; i++) {
		const vn_checkpoint *k = &c->point[d->input[i]];
		if (i)
			fprintf(p->out, "  %-14s ", "");
		fprintf(p->out, "%s: %s nmse %.2g", k->status == VN_OUTSIDE ? "OUTSIDE limits" : "within limits",
		        vn_label(k, label), k->m.value[VN_M_NMSE]);
		if (vn_ratio_of(k, &ratio))
			fprintf(p->out, " (%.2g x floor)", ratio);
		fputc('\n', p->out);
	}
}

static void in_full(const page *p, const vn_told *x)
{
	const vn_comparison *c = p->c;
	const vn_checkpoint *k = &c->point[x->point];
	const vn_entry *r = vn_recording_entry(c->ref, k->ref), *d = vn_recording_entry(c->cand, k->cand);
	const char *title = x->point != c->first ? "origin" : k->origin ? "first divergence and origin" : "first divergence";
	char label[VN_LABEL], shape[VN_SHAPE_TEXT], words[VN_WORDS];
	fprintf(p->out, "%s%s: %s%s", BOLD(p), title, vn_label(k, label), PLAIN(p));
	if (k->layer >= 0)
		fprintf(p->out, "   layer %d, point %s", k->layer, vn_point_of(k));
	if (*vn_op_of(c, k))
		fprintf(p->out, ", op %s", vn_op_of(c, k));
	fprintf(p->out, ", %s %s, %s against %s\n", vn_shape_text(&r->shape, shape), vn_entry_axes(r),
	        vn_dtype_name(r->dtype), vn_dtype_name(d->dtype));
	for (int i = 0; i < k->n_checks; i++) {
		if (k->check[i].holds)
			continue;
		fprintf(p->out, "  %-14s %s", "outside", vn_say_check(k, &k->check[i], words));
		if (k->check[i].rule && k->check[i].rule->why)
			fprintf(p->out, " %s\"%.200s\"%s", DIM(p), k->check[i].rule->why, PLAIN(p));
		fputc('\n', p->out);
	}
	if (k->m.bad_at >= 0)
		fprintf(p->out, "  %-14s at %s; reference %" PRId64 " NaN %" PRId64 " Inf, candidate %" PRId64 " NaN %" PRId64
		        " Inf\n", "first nonfinite", x->where, k->m.nan[0], k->m.inf[0], k->m.nan[1], k->m.inf[1]);
	else if (k->m.at >= 0)
		fprintf(p->out, "  %-14s %s: reference %.9g, candidate %.9g, apart %.3g\n", "worst element", x->where,
		        k->m.ref_at, k->m.cand_at, k->m.value[VN_M_MAX_ABS]);
	fprintf(p->out, "  %-14s ulp (%s) p50 %g  p99 %g  max %g;  norm ratio %.6g;  max rel %.3g\n", "spread",
	        vn_dtype_name(k->m.grid), k->m.value[VN_M_ULP_P50], k->m.value[VN_M_ULP_P99], k->m.value[VN_M_ULP_MAX],
	        k->m.value[VN_M_NORM_RATIO], k->m.value[VN_M_MAX_REL]);
	for (int i = 0; i < x->profile.words.n; i++)
		fprintf(p->out, "  %-14s %s\n", i ? "" : "profile", x->profile.words.line[i]);
	values(p, "reference", x, 0);
	values(p, "candidate", x, 1);
	statistics(p, "reference", &x->stats[0]);
	statistics(p, "candidate", &x->stats[1]);
	inputs(p, x);
	fputc('\n', p->out);
}

/* ---- the end ------------------------------------------------------------------ */

static void findings(const page *p)
{
	const vn_comparison *c = p->c;
	int missing = 0, extra = 0;
	for (int i = 0; i < c->n_points; i++) {
		missing += c->point[i].fails && c->point[i].status == VN_MISSING;
		extra += c->point[i].fails && c->point[i].status == VN_EXTRA;
	}
	if (missing)
		fprintf(p->out, "%d missing in the candidate: restrict with --points, or --allow missing\n", missing);
	if (extra)
		fprintf(p->out, "%d only in the candidate: restrict with --points, or --allow extra\n", extra);
}

static void say_scores(const page *p, const char *what, const double *m, double strict)
{
	fprintf(p->out, "%s: argmax agrees in %.4g %% of the rows (%.4g %% with near ties), top 5 in %.4g %%, KL mean %.3g p99 %.3g max %.3g",
	        what, 100 * strict, 100 * m[VN_M_ARGMAX_AGREEMENT], 100 * m[VN_M_TOP5_AGREEMENT], m[VN_M_KL_MEAN], m[VN_M_KL_P99],
	        m[VN_M_KL_MAX]);
}

static void scores(const page *p)
{
	const vn_comparison *c = p->c;
	char label[VN_LABEL], together[VN_LABEL + 64];
	for (int i = 0; i < c->n_points; i++) {
		const vn_checkpoint *k = &c->point[i];
		if (k->m.has[VN_M_KL_MEAN] && k->pool < 0) {
			say_scores(p, vn_label(k, label), k->m.value, k->m.argmax_strict);
			fputc('\n', p->out);
		}
		if (k->m.n && k->m.value[VN_M_HEADROOM] > 0.25 && k->m.value[VN_M_HEADROOM] <= 1)
			fprintf(p->out, "%s: candidate reaches %.3g, %.0f %% of what %s can hold\n", vn_label(k, label),
			        k->m.absmax[1], 100 * k->m.value[VN_M_HEADROOM],
			        vn_dtype_name(vn_recording_entry(c->cand, k->cand)->dtype));
	}
	for (int i = 0; i < c->n_pools; i++) {
		const vn_pool *g = &c->pool[i];
		snprintf(together, sizeof together, "%s of %d steps (%d-%d)", g->name, g->n, c->point[g->first].step, c->point[g->last].step);
		say_scores(p, together, g->value, g->argmax_strict);
		fprintf(p->out, " (step %d)\n", c->point[g->worst].step);
	}
}

static void verdict(const page *p)
{
	char counts[VN_WORDS], start[VN_WORDS];
	vn_say_start(p->c, start);
	fprintf(p->out, "%s%s%s%s: %s%s%s\n", BOLD(p), p->c->within ? GREEN(p) : RED(p), vn_say_verdict(p->c), PLAIN(p),
	        vn_say_counts(p->c, counts), *start ? " " : "", start);
}

/* ---- the first screen ------------------------------------------------------- */

static void origins_line(const page *p)
{
	const vn_comparison *c = p->c;
	char label[VN_LABEL];
	if (c->n_origins < 2 && !(c->n_origins == 1 && c->origins[0] != c->first))
		return;
	fprintf(p->out, "%-10s", "origins");
	for (int i = 0; i < c->n_origins && i < NAMED; i++)
		fprintf(p->out, "%s %s", i ? "," : "", vn_label(&c->point[c->origins[i]], label));
	if (c->n_origins > NAMED)
		fprintf(p->out, " and %d more", c->n_origins - NAMED);
	fputc('\n', p->out);
}

/* What most people want to know, before any table: where it starts, and the rule that it broke. */
static void first_screen(const page *p)
{
	const vn_comparison *c = p->c;
	const int first = vn_first_failure(c);
	char label[VN_LABEL], words[VN_WORDS];
	fprintf(p->out, "%-10s ", "verdict");
	verdict(p);
	if (first >= 0) {
		const vn_checkpoint *k = &c->point[first];
		const vn_check *broken = k->worst >= 0 ? &k->check[k->worst] : NULL;
		const vn_told *x = vn_story_find(p->s, first);
		fprintf(p->out, "%-10s %s\n", "first", vn_label(k, label));
		fprintf(p->out, "%-10s %s\n", broken ? "rule" : "finding", vn_say_failure(k, words));
		if (broken && broken->rule && broken->rule->why)
			fprintf(p->out, "%-10s %s\"%.200s\"%s\n", "", DIM(p), broken->rule->why, PLAIN(p));
		for (int i = 0; x && i < x->profile.words.n; i++)
			fprintf(p->out, "%-10s %s\n", i ? "" : "profile", x->profile.words.line[i]);
		origins_line(p);
	}
	fputc('\n', p->out);
}

vn_status vn_report_text(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out, vn_error *err)
{
	page p = { c, s, o, out, 10 };
	char label[VN_LABEL];

	(void)err;
	for (int i = 0; i < c->n_points; i++)
		if (!quiet(&p, i)) {
			const int n = (int)strlen(vn_label(&c->point[i], label));
			p.width = n > p.width ? n : p.width;
		}
	first_screen(&p);
	head(&p);
	table(&p);
	for (int i = 0; i < s->n && i <= DETAILS; i++)
		if (s->told[i].point == c->first || c->point[s->told[i].point].origin)
			in_full(&p, &s->told[i]);
	if (c->n_origins > DETAILS) {
		fprintf(out, "more origins:");
		for (int i = DETAILS; i < c->n_origins; i++)
			fprintf(out, " %s", vn_label(&c->point[c->origins[i]], label));
		fputs("\n\n", out);
	}
	findings(&p);
	scores(&p);
	verdict(&p); /* again, where a log ends and a long report leaves a terminal */
	return VN_OK;
}
