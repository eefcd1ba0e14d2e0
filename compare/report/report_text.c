/* report_text.c: a comparison for a person at a terminal, or reading a log. */
#include "compare/judge/baseline.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/judge/judge_left_out.h"
#include "compare/report/next.h"
#include "compare/report/words.h"
#include "compare/explain/explain_words.h"
#include "compare/replay/local.h"
#include "compare/report/report.h"
#include "compare/weights/weights_report.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Origins shown in full, and origins named on the first screen. */
enum { DETAILS = 8, NAMED = 4, WEIGHTS = 12 /* rows of their table */ };

typedef struct page {
	const vn_comparison     *c;
	const vn_story          *s;
	const vn_report_options *o;
	FILE                    *out;
	int                      width;  /* of the name column */
	bool                     floors; /* false: no column of floors */
} page;

#define RED(p)   VN_RED((p)->o->colour)
#define GREEN(p) VN_GREEN((p)->o->colour)
#define DIM(p)   VN_DIM((p)->o->colour)
#define BOLD(p)  VN_BOLD((p)->o->colour)
#define PLAIN(p) VN_COLOUR_OFF((p)->o->colour)

/* ---- head ----------------------------------------------------------------- */

static void recording_line(const page *p, const char *what, const vn_recording *r)
{
	char who[VN_RECORDER], path[PATH_MAX], tensors[VN_TENSORS_WORDS];
	vn_say(p->out, "%-10s %s  %s(%s; %s)%s\n", what, vn_printable_path(vn_recording_path(r), path), DIM(p),
	       vn_report_say_recorder(r, who), vn_recording_say_tensors(r, 0, vn_recording_count(r), tensors), PLAIN(p));
}

/* Whether the first screen defines the floor, which it does once it names a limit. */
static bool defines_floor(const vn_comparison *c)
{
	return vn_first_failure(c) >= 0 && *c->result.floor_from;
}

static void floor_line(const page *p)
{
	const vn_comparison *c = p->c;
	char                 path[PATH_MAX];
	const char          *means = defines_floor(c) ? "" : VN_FLOOR_MEANS;
	const char          *note = !*c->result.floor_from ? "give --model MODEL or --floor FILE"
	                            : p->floors            ? ""
	                                                   : "both recordings have this format, so only single operations "
	                                                     "have a floor: column local";
	vn_say(p->out, "%-10s %s", "floor", *c->result.floor_from ? vn_printable_path(c->result.floor_from, path) : "none");
	if (*means || *note)
		vn_say(p->out, "  %s(%s%s%s)%s", DIM(p), means, *means && *note ? "; " : "", note, PLAIN(p));
	fputc('\n', p->out);
}

static void print_head(const page *p)
{
	const vn_comparison *c = p->c;
	char                 path[PATH_MAX];
	recording_line(p, "reference", c->opened.ref);
	recording_line(p, "candidate", c->opened.cand);
	vn_say(p->out, "%-10s %s  %s(%s)%s\n", "limits", vn_printable_path(vn_report_say_limits(c), path), DIM(p),
	       p->o->limits_chosen, PLAIN(p));
	vn_weights_text(c->result.weights, WEIGHTS, p->out);
	if (!c->request.options->bitwise)
		floor_line(p);
	for (int i = 0; i < c->result.notes.n; i++)
		vn_say(p->out, "%-10s %s\n", "note", c->result.notes.line[i]);
	for (int i = 0; i < c->result.warnings.n; i++)
		vn_say(p->out, "%-10s %s\n", "warning", c->result.warnings.line[i]);
	fputc('\n', p->out);
}

/* Where both runs have one format and the same model, the run that measures floors repeats the
 * reference bit for bit: there are floors of operations alone (local). */
static bool has_floors(const vn_comparison *c)
{
	double ratio;
	bool   measured = false;
	for (int i = 0; i < c->result.n_checkpoints; i++) {
		if (vn_ratio_of(c, &c->result.checkpoint[i], &ratio) && ratio > 0)
			return true;
		measured = measured || c->result.checkpoint[i].m.n;
	}
	return !c->result.replayed || !measured;
}

/* ---- table ---------------------------------------------------------------- */

static void print_cell(const page *p, int width, bool known, const char *format, double x)
{
	char text[40] = "-";
	if (known)
		snprintf(text, sizeof text, format, isnan(x) ? (double)NAN : x); /* a NaN is written without its sign */
	vn_say(p->out, "  %*s", width, text);
}

/* The error that the operation added, in floors, and its gain. */
static void replay_cells(const page *p, const vn_checkpoint *k)
{
	const double local = vn_local_shown(k);
	print_cell(p, 8, !isnan(local), local < 1000 ? "%.2f" : "%.1e", local);
	print_cell(p, 5, k->replayed && !isnan(k->replay.gain), "%.2g", k->replay.gain);
}

static void print_metric(const page *p, int width, const char *format, const vn_checkpoint *k, vn_metric m)
{
	const double x = vn_metric_shown(k, m);
	print_cell(p, width, !isnan(x), format, x);
}

static void print_row(const page *p, const vn_checkpoint *k)
{
	char        label[VN_LABEL], words[VN_WORDS];
	double      ratio = 0;
	const char *colour = k->fails ? RED(p) : k->status == VN_WITHIN ? GREEN(p) : DIM(p);
	vn_say(p->out, "%s%-10s%s  %-*s", colour,
	       k->fails && k->status == VN_OUTSIDE  ? "OUTSIDE"
	       : k->since >= VN_BETTER && !k->fails ? vn_judge_since_text(k->since)
	                                            : vn_checkpoint_status_text(k->status),
	       PLAIN(p), p->width, vn_label(k, label));
	if (k->m.n == 0) {
		vn_say(p->out, "  %s%s%s\n", k->detail ? k->detail : "", k->contents ? "; " : "",
		       k->contents ? k->contents : "");
		return;
	}
	print_metric(p, 9, "%.2e", k, VN_M_NMSE);
	const bool has_ratio = vn_ratio_of(p->c, k, &ratio);
	if (p->floors)
		print_cell(p, 8, has_ratio, ratio < 1000 ? "%.2f" : "%.1e", ratio);
	if (p->c->result.replayed)
		replay_cells(p, k);
	print_metric(p, 11, "%.8f", k, VN_M_COSINE);
	print_metric(p, 9, "%.2e", k, VN_M_MAX_ABS);
	if (p->o->all)
		print_metric(p, 9, "%.2e", k, VN_M_MAX_REL);
	print_metric(p, 11, "%.8f", k, VN_M_WORST_TOKEN_COSINE);
	if (k->worst >= 0)
		vn_say(p->out, "  %s", vn_judge_say_failure(k, words));
	fputc('\n', p->out);
}

/* Is the checkpoint in one recording only, and may it be? */
static bool is_absent(const vn_checkpoint *k)
{
	return !k->fails && k->since < VN_BETTER && (k->status == VN_MISSING || k->status == VN_EXTRA);
}

/* Writes "layers 0-3: 12 checkpoints", with the steps unless all are step 0. */
static void say_run(const page *p, int from, int to)
{
	const vn_comparison *c = p->c;
	int                  first = -1, last = -1;
	char                 label[VN_LABEL];
	for (int i = from; i < to; i++)
		if (c->result.checkpoint[i].layer >= 0) {
			first = first < 0 || c->result.checkpoint[i].layer < first ? c->result.checkpoint[i].layer : first;
			last = c->result.checkpoint[i].layer > last ? c->result.checkpoint[i].layer : last;
		}
	if (to - from == 1) {
		vn_say(p->out, "%s", vn_label(&c->result.checkpoint[from], label));
		return;
	}
	if (c->result.checkpoint[from].step != c->result.checkpoint[to - 1].step)
		fprintf(p->out, "steps %d-%d, ", c->result.checkpoint[from].step, c->result.checkpoint[to - 1].step);
	else if (c->result.checkpoint[from].step > 0)
		fprintf(p->out, "step %d, ", c->result.checkpoint[from].step);
	if (first >= 0 && first == last)
		fprintf(p->out, "layer %d: ", first);
	else if (first >= 0)
		fprintf(p->out, "layers %d-%d: ", first, last);
	int n = 0;
	for (int i = from; i < to; i++)
		n += !is_absent(&c->result.checkpoint[i]);
	vn_say(p->out, "%d checkpoint%s", n, n == 1 ? "" : "s");
}

/* The status of a checkpoint that passes without being measured; else VN_WITHIN. */
static vn_checkpoint_status unmeasured_status(const vn_checkpoint *k)
{
	return k->status == VN_AGREED || k->status == VN_EQUAL ? k->status : VN_WITHIN;
}

/* Shows a run of checkpoints within their limits in one line. */
static void print_within(const page *p, int from, int to)
{
	const vn_comparison *c = p->c;
	int                  worst = -1, unlimited = 0, measured = 0;
	char                 label[VN_LABEL];
	double               ratio;
	for (int i = from; i < to; i++)
		measured += !is_absent(&c->result.checkpoint[i]);
	if (!measured)
		return; /* said below the table */
	while (is_absent(&c->result.checkpoint[from]))
		from++;
	while (is_absent(&c->result.checkpoint[to - 1]))
		to--;
	for (int i = from; i < to; i++) {
		const vn_checkpoint *k = &c->result.checkpoint[i];
		unlimited += k->status == VN_UNLIMITED;
		if (k->m.n && (worst < 0 || k->m.value[VN_M_NMSE] > c->result.checkpoint[worst].m.value[VN_M_NMSE]))
			worst = i;
	}
	const vn_checkpoint_status word = unmeasured_status(&c->result.checkpoint[from]);
	vn_say(p->out, "%s%-10s%s  ", GREEN(p), vn_checkpoint_status_text(word), PLAIN(p));
	say_run(p, from, to);
	if (word != VN_WITHIN)
		vn_say(p->out, "%s; %s%s", DIM(p),
		       word == VN_EQUAL ? "by their digests, not read"
		                        : "left out of the candidate, judged while it was recorded",
		       PLAIN(p));
	if (unlimited)
		fprintf(p->out, ", %d of them without a limit", unlimited);
	if (worst >= 0) {
		vn_say(p->out, "%s; worst nmse %.2g", DIM(p), c->result.checkpoint[worst].m.value[VN_M_NMSE]);
		if (to - from > 1)
			vn_say(p->out, " at %s", vn_label(&c->result.checkpoint[worst], label));
		if (vn_ratio_of(c, &c->result.checkpoint[worst], &ratio))
			fprintf(p->out, " (%.2g x floor)", ratio);
		fputs(PLAIN(p), p->out);
	}
	fputc('\n', p->out);
}

static bool is_quiet(const page *p, int i)
{
	const vn_checkpoint *k = &p->c->result.checkpoint[i];
	return !p->o->all && !k->fails &&
	       (k->status == VN_WITHIN || k->status == VN_ACCUMULATED || k->status == VN_UNLIMITED ||
	        unmeasured_status(k) != VN_WITHIN || is_absent(k));
}

/* One line with the points of the absent checkpoints. */
static void say_absent(const page *p, vn_checkpoint_status status, const char *where)
{
	enum { POINTS_NAMED = 12 };
	const vn_comparison *c = p->c;
	const char          *said[POINTS_NAMED];
	int                  n = 0, points = 0;
	for (int i = 0; i < c->result.n_checkpoints; i++) {
		const char *point = vn_point_of(&c->result.checkpoint[i]);
		bool        again = false;
		if (!is_absent(&c->result.checkpoint[i]) || c->result.checkpoint[i].status != status)
			continue;
		n++;
		for (int k = 0; k < points && k < POINTS_NAMED; k++)
			again = again || strcmp(said[k], point) == 0;
		if (!again && points++ < POINTS_NAMED)
			said[points - 1] = point;
	}
	if (!n || p->o->all)
		return;
	vn_say(p->out, "%-10s  %d checkpoint%s not in the %s (allowed):", vn_checkpoint_status_text(status), n,
	       n == 1 ? "" : "s", where);
	for (int k = 0; k < points && k < POINTS_NAMED; k++)
		vn_say(p->out, "%s %s", k ? "," : "", said[k]);
	vn_say(p->out, "%s\n", points > POINTS_NAMED ? ", ..." : "");
}

static void print_table(const page *p)
{
	const vn_comparison *c = p->c;
	vn_say(p->out, "%s%-10s  %-*s  %9s%s  %s%11s  %9s  %s%11s  %s%s\n", BOLD(p), "", p->width, "checkpoint", "nmse",
	       p->floors ? "   x floor" : "", c->result.replayed ? "   local   gain  " : "", "cosine", "max abs",
	       p->o->all ? "  max rel  " : "", "token cos", "limit broken", PLAIN(p));
	for (int i = 0; i < c->result.n_checkpoints;) {
		int j = i;
		/* One line for a run of checkpoints within their limits, separately for the prompt and
		 * for later steps. */
		while (j < c->result.n_checkpoints && is_quiet(p, j) &&
		       (c->result.checkpoint[j].step > 0) == (c->result.checkpoint[i].step > 0) &&
		       unmeasured_status(&c->result.checkpoint[j]) == unmeasured_status(&c->result.checkpoint[i]))
			j++;
		if (j > i)
			print_within(p, i, j);
		else
			print_row(p, &c->result.checkpoint[j++]);
		i = j;
	}
	say_absent(p, VN_MISSING, "candidate");
	say_absent(p, VN_EXTRA, "reference");
	fputc('\n', p->out);
}

/* ---- the end ------------------------------------------------------------------ */

static void one_sided(const page *p, int n, const char *where, const char *word)
{
	if (n)
		vn_say(p->out, "%d %s: exclude them with --points, or allow them with --allow %s\n", n, where, word);
}

static void print_findings(const page *p)
{
	const vn_comparison *c = p->c;
	int                  missing = 0, extra = 0, not_run = 0;
	for (int i = 0; i < c->result.n_checkpoints; i++) {
		const vn_checkpoint *k = &c->result.checkpoint[i];
		not_run += k->fails && k->not_run;
		missing += k->fails && k->status == VN_MISSING && !k->not_run;
		extra += k->fails && k->status == VN_EXTRA;
	}
	if (not_run)
		fprintf(p->out, "%d not run by the candidate: " VN_RECORD_WHOLE "\n", not_run);
	one_sided(p, missing, "missing in the candidate", "missing");
	one_sided(p, extra, "only in the candidate", "extra");
}

static void print_scores(const page *p)
{
	vn_lines lines = { 0 };
	vn_report_say_baseline(p->c, &lines);
	vn_report_say_scores(p->c, &lines);
	for (int i = 0; i < lines.n; i++)
		vn_say(p->out, "%s\n", lines.line[i]);
	vn_lines_free(&lines);
}

static void print_verdict(const page *p)
{
	char counts[VN_WORDS], start[VN_WORDS];
	vn_report_say_start(p->c, start);
	vn_say(p->out, "%-10s %s%s%s%s: %s%s%s\n", "verdict", BOLD(p), p->c->result.within ? GREEN(p) : RED(p),
	       vn_report_say_verdict(p->c), PLAIN(p), vn_report_say_counts(p->c, counts), *start ? " " : "", start);
}

/* ---- the first screen ------------------------------------------------------- */

/* Whether the operation of every origin is wrong, not only what was recorded of it. */
static bool operations_are_wrong(const vn_comparison *c)
{
	for (int i = 0; i < c->result.n_origins; i++) {
		const vn_checkpoint *p = &c->result.checkpoint[c->result.origins[i]];
		if (p->replay.recorder_fault || vn_local_is_order(p))
			return false;
	}
	return true;
}

static void origins_line(const page *p)
{
	const vn_comparison *c = p->c;
	char                 label[VN_LABEL];
	if (c->result.n_origins < 2 && !(c->result.n_origins == 1 && c->result.origins[0] != c->result.first))
		return;
	vn_say(p->out, "%-10s", "origins");
	for (int i = 0; i < c->result.n_origins && i < NAMED; i++)
		vn_say(p->out, "%s %s", i ? "," : "", vn_label(&c->result.checkpoint[c->result.origins[i]], label));
	if (c->result.n_origins > NAMED)
		fprintf(p->out, " and %d more", c->result.n_origins - NAMED);
	if (operations_are_wrong(c))
		vn_say(p->out, "  %s(" VN_ORIGIN_MEANS ")%s", DIM(p), PLAIN(p));
	fputc('\n', p->out);
}

/* Prints the lines that `say` adds, under a title. Returns how many. */
static int titled_lines(const page *p, const char *title, void (*say)(const vn_comparison *, vn_lines *))
{
	vn_lines lines = { 0 };
	say(p->c, &lines);
	for (int i = 0; i < lines.n; i++)
		vn_say(p->out, "%-10s %s\n", i ? "" : title, lines.line[i]);
	const int n = lines.n;
	vn_lines_free(&lines);
	return n;
}

/* The summary before any table: where the error starts and which limit is broken. */
static void first_screen(const page *p)
{
	const vn_comparison *c = p->c;
	const int            first = vn_first_failure(c);
	char                 label[VN_LABEL], words[VN_WORDS];
	if (first >= 0) {
		const vn_checkpoint    *k = &c->result.checkpoint[first];
		const vn_report_detail *x = vn_story_find(p->s, first);
		vn_say(p->out, "%-10s %s\n", "first", vn_label(k, label));
		vn_say(p->out, "%-10s %s\n", k->worst >= 0 ? "rule" : "finding", vn_judge_say_failure(k, words));
		if (vn_judge_worst_why(k))
			vn_say(p->out, "%-10s %s\"%.200s\"%s\n", "", DIM(p), vn_judge_worst_why(k), PLAIN(p));
		if (defines_floor(c))
			vn_say(p->out, "%-10s %sfloor: " VN_FLOOR_MEANS "%s\n", "", DIM(p), PLAIN(p));
		for (int i = 0; x && i < x->profile.words.n; i++)
			vn_say(p->out, "%-10s %s\n", i ? "" : "profile", x->profile.words.line[i]);
		origins_line(p);
		titled_lines(p, "cleared", vn_report_say_cleared);
	}
	const int more = titled_lines(p, "explained", vn_explain_say_all) + titled_lines(p, "next", vn_next_commands);
	if (first >= 0 || more)
		fputc('\n', p->out);
}

vn_status vn_report_text(const vn_comparison *c, const vn_story *s, const vn_report_options *o, FILE *out,
                         vn_error *err)
{
	page p = { c, s, o, out, 10, has_floors(c) };
	char label[VN_LABEL];

	(void)err;
	for (int i = 0; i < c->result.n_checkpoints; i++)
		if (!is_quiet(&p, i)) {
			const int n = (int)strlen(vn_label(&c->result.checkpoint[i], label));
			p.width = n > p.width ? n : p.width;
		}
	const bool short_one = c->result.within && vn_first_failure(c) < 0 && !c->result.n_origins;
	if (!short_one)
		first_screen(&p);
	print_head(&p);
	print_table(&p);
	for (int i = 0; i < s->n && i <= DETAILS; i++)
		if (s->detail[i].checkpoint == c->result.first || c->result.checkpoint[s->detail[i].checkpoint].origin)
			vn_report_full(c, &s->detail[i], o->colour, out);
	if (c->result.n_origins > DETAILS) {
		fprintf(out, "more origins:");
		for (int i = DETAILS; i < c->result.n_origins; i++)
			vn_say(out, " %s", vn_label(&c->result.checkpoint[c->result.origins[i]], label));
		fputs("\n\n", out);
	}
	print_findings(&p);
	print_scores(&p);
	print_verdict(&p); /* last, because a terminal and a log end there */
	return VN_OK;
}
