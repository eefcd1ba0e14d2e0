/* report_text.c: a comparison for a person at a terminal, or reading a log. */
#include "compare/judge/baseline.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/judge/judge_left_out.h"
#include "compare/result/words.h"
#include "compare/replay/local.h"
#include "compare/report/report.h"
#include "compare/text/places.h"
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
	const vn_document       *doc;
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

static void recording_line(const page *p, const char *what, const json_t *side)
{
	char path[PATH_MAX];
	vn_say(p->out, "%-10s %s  %s(%s; %s)%s\n", what, vn_printable_path(vn_document_member(side, "path"), path), DIM(p),
	       vn_document_member(side, "recorded_by"), vn_document_member(side, "tensors"), PLAIN(p));
}

/* Whether the first screen defines the floor, which it does once it names a limit. */
static bool defines_floor(const vn_document *doc)
{
	return doc->first >= 0 && json_is_string(doc->floor);
}

/* Were the operations recomputed by a replay file, whose names tell layers, steps and places? */
static bool is_by_file(const vn_document *doc)
{
	return json_is_string(doc->floor) && strncmp(vn_document_text(doc->floor), "of each operation", 17) == 0;
}

static void floor_line(const page *p)
{
	const vn_document *doc = p->doc;
	char               path[PATH_MAX];
	const char        *means = defines_floor(doc) ? "" : VN_FLOOR_MEANS;
	const char        *note = !json_is_string(doc->floor)    ? "give --model MODEL or --floor FILE"
	                          : p->floors || is_by_file(doc) ? ""
	                                                         : "both recordings have this format, so only single "
	                                                           "operations have a floor: column local";
	vn_say(p->out, "%-10s %s", "floor",
	       json_is_string(doc->floor) ? vn_printable_path(vn_document_text(doc->floor), path) : "none");
	if (*means || *note)
		vn_say(p->out, "  %s(%s%s%s)%s", DIM(p), means, *means && *note ? "; " : "", note, PLAIN(p));
	fputc('\n', p->out);
}

static void print_head(const page *p)
{
	const vn_document *doc = p->doc;
	char               path[PATH_MAX];
	recording_line(p, "reference", doc->reference);
	recording_line(p, "candidate", doc->candidate);
	vn_say(p->out, "%-10s %s  %s(%s)%s\n", "limits", vn_printable_path(vn_document_limits(doc), path), DIM(p),
	       vn_document_member(doc->limits, "chosen"), PLAIN(p));
	vn_weights_text(doc->weights, WEIGHTS, p->out);
	if (!json_is_true(doc->bitwise))
		floor_line(p);
	for (int i = 0; i < vn_document_lines(doc->notes); i++)
		vn_say(p->out, "%-10s %s\n", "note", vn_document_line(doc->notes, i));
	for (int i = 0; i < vn_document_lines(doc->warnings); i++)
		vn_say(p->out, "%-10s %s\n", "warning", vn_document_line(doc->warnings, i));
	fputc('\n', p->out);
}

/* Where both runs have one format and the same model, the run that measures floors repeats the
 * reference bit for bit: there are floors of operations alone (local). */
static bool has_floors(const vn_document *doc)
{
	double ratio;
	bool   measured = false;
	for (int i = 0; i < doc->n; i++) {
		if (vn_ratio_of(doc, &doc->checkpoint[i], &ratio) && ratio > 0)
			return true;
		measured = measured || doc->checkpoint[i].m.n;
	}
	return !json_is_true(doc->replayed) || !measured;
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
	const bool has_ratio = vn_ratio_of(p->doc, k, &ratio);
	if (p->floors)
		print_cell(p, 8, has_ratio, ratio < 1000 ? "%.2f" : "%.1e", ratio);
	if (json_is_true(p->doc->replayed))
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
	const vn_document *doc = p->doc;
	int                first = -1, last = -1;
	char               label[VN_LABEL];
	for (int i = from; i < to; i++)
		if (doc->checkpoint[i].layer >= 0) {
			first = first < 0 || doc->checkpoint[i].layer < first ? doc->checkpoint[i].layer : first;
			last = doc->checkpoint[i].layer > last ? doc->checkpoint[i].layer : last;
		}
	if (to - from == 1) {
		vn_say(p->out, "%s", vn_label(&doc->checkpoint[from], label));
		return;
	}
	if (doc->checkpoint[from].step != doc->checkpoint[to - 1].step)
		fprintf(p->out, "steps %d-%d, ", doc->checkpoint[from].step, doc->checkpoint[to - 1].step);
	else if (doc->checkpoint[from].step > 0)
		fprintf(p->out, "step %d, ", doc->checkpoint[from].step);
	if (first >= 0 && first == last)
		fprintf(p->out, "layer %d: ", first);
	else if (first >= 0)
		fprintf(p->out, "layers %d-%d: ", first, last);
	int n = 0;
	for (int i = from; i < to; i++)
		n += !is_absent(&doc->checkpoint[i]);
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
	const vn_document *doc = p->doc;
	int                worst = -1, unlimited = 0, measured = 0;
	char               label[VN_LABEL];
	double             ratio;
	for (int i = from; i < to; i++)
		measured += !is_absent(&doc->checkpoint[i]);
	if (!measured)
		return; /* said below the table */
	while (is_absent(&doc->checkpoint[from]))
		from++;
	while (is_absent(&doc->checkpoint[to - 1]))
		to--;
	for (int i = from; i < to; i++) {
		const vn_checkpoint *k = &doc->checkpoint[i];
		unlimited += k->status == VN_UNLIMITED;
		if (k->m.n && (worst < 0 || k->m.value[VN_M_NMSE] > doc->checkpoint[worst].m.value[VN_M_NMSE]))
			worst = i;
	}
	const vn_checkpoint_status word = unmeasured_status(&doc->checkpoint[from]);
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
		vn_say(p->out, "%s; worst nmse %.2g", DIM(p), doc->checkpoint[worst].m.value[VN_M_NMSE]);
		if (to - from > 1)
			vn_say(p->out, " at %s", vn_label(&doc->checkpoint[worst], label));
		if (vn_ratio_of(doc, &doc->checkpoint[worst], &ratio))
			fprintf(p->out, " (%.2g x floor)", ratio);
		fputs(PLAIN(p), p->out);
	}
	fputc('\n', p->out);
}

static bool is_quiet(const page *p, int i)
{
	const vn_checkpoint *k = &p->doc->checkpoint[i];
	return !p->o->all && !k->fails &&
	       (k->status == VN_WITHIN || k->status == VN_ACCUMULATED || k->status == VN_UNLIMITED ||
	        unmeasured_status(k) != VN_WITHIN || is_absent(k));
}

/* One line with the points of the absent checkpoints. */
static void say_absent(const page *p, vn_checkpoint_status status, const char *where)
{
	enum { POINTS_NAMED = 12 };
	const vn_document *doc = p->doc;
	const char        *said[POINTS_NAMED];
	int                n = 0, points = 0;
	for (int i = 0; i < doc->n; i++) {
		const char *point = vn_point_of(&doc->checkpoint[i]);
		bool        again = false;
		if (!is_absent(&doc->checkpoint[i]) || doc->checkpoint[i].status != status)
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
	const vn_document *doc = p->doc;
	vn_say(p->out, "%s%-10s  %-*s  %9s%s  %s%11s  %9s  %s%11s  %s%s\n", BOLD(p), "", p->width, "checkpoint", "nmse",
	       p->floors ? "   x floor" : "", json_is_true(doc->replayed) ? "   local   gain  " : "", "cosine", "max abs",
	       p->o->all ? "  max rel  " : "", "token cos", "limit broken", PLAIN(p));
	for (int i = 0; i < doc->n;) {
		int j = i;
		/* One line for a run of checkpoints within their limits, separately for the prompt and
		 * for later steps. */
		while (j < doc->n && is_quiet(p, j) && (doc->checkpoint[j].step > 0) == (doc->checkpoint[i].step > 0) &&
		       unmeasured_status(&doc->checkpoint[j]) == unmeasured_status(&doc->checkpoint[i]))
			j++;
		if (j > i)
			print_within(p, i, j);
		else
			print_row(p, &doc->checkpoint[j++]);
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
	const vn_document *doc = p->doc;
	int                missing = 0, extra = 0, not_run = 0;
	for (int i = 0; i < doc->n; i++) {
		const vn_checkpoint *k = &doc->checkpoint[i];
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
	const json_t *const lines[] = { p->doc->changes, p->doc->measured };
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < vn_document_lines(lines[k]); i++)
			vn_say(p->out, "%s\n", vn_document_line(lines[k], i));
}

static void print_verdict(const page *p)
{
	const char *start = vn_document_text(p->doc->start);
	vn_say(p->out, "%-10s %s%s%s%s: %s%s%s\n", "verdict", BOLD(p), p->doc->within ? GREEN(p) : RED(p),
	       vn_document_text(p->doc->verdict_words), PLAIN(p), vn_document_text(p->doc->summary), *start ? " " : "",
	       start);
}

/* ---- the first screen ------------------------------------------------------- */

/* Whether the operation of every origin is wrong, not only what was recorded of it. */
static bool operations_are_wrong(const vn_document *doc)
{
	for (int i = 0; i < doc->n_origins; i++) {
		const vn_checkpoint *p = &doc->checkpoint[doc->origin[i]];
		if (p->replay.recorder_fault || vn_local_is_order(p))
			return false;
	}
	return true;
}

/* One operation in all layers, calls and steps is one place. */
static void say_places(const page *p)
{
	vn_name_places places = { 0 };
	char           text[VN_WORDS];

	for (int i = 0; i < p->doc->n_origins; i++)
		vn_places_add(&places, p->doc->checkpoint[p->doc->origin[i]].name);
	vn_say(p->out, " %s", vn_places_say(&places, NAMED, text, sizeof text));
	vn_places_free(&places);
}

/* Is the origin at the place of one before it? */
static bool is_repeated(const vn_document *doc, int point)
{
	char place[VN_NAME_MAX], before[VN_NAME_MAX];

	vn_place_of(doc->checkpoint[point].name, place);
	for (int i = 0; is_by_file(doc) && i < doc->n_origins && doc->origin[i] != point; i++)
		if (strcmp(vn_place_of(doc->checkpoint[doc->origin[i]].name, before), place) == 0)
			return true;
	return false;
}

static void origins_line(const page *p)
{
	const vn_document *doc = p->doc;
	char               label[VN_LABEL];
	if (doc->n_origins < 2 && !(doc->n_origins == 1 && doc->origin[0] != doc->divergence))
		return;
	vn_say(p->out, "%-10s", "origins");
	if (is_by_file(doc))
		say_places(p);
	for (int i = 0; !is_by_file(doc) && i < doc->n_origins && i < NAMED; i++)
		vn_say(p->out, "%s %s", i ? "," : "", vn_label(&doc->checkpoint[doc->origin[i]], label));
	if (doc->n_origins > NAMED && !is_by_file(doc))
		fprintf(p->out, " and %d more", doc->n_origins - NAMED);
	if (operations_are_wrong(doc))
		vn_say(p->out, "  %s(" VN_ORIGIN_MEANS ")%s", DIM(p), PLAIN(p));
	fputc('\n', p->out);
}

/* Prints lines under a title. Returns how many. */
static int titled_lines(const page *p, const char *title, const json_t *lines)
{
	const int n = vn_document_lines(lines);
	for (int i = 0; i < n; i++)
		vn_say(p->out, "%-10s %s\n", i ? "" : title, vn_document_line(lines, i));
	return n;
}

/* The summary before any table: where the error starts and which limit is broken. */
static void first_screen(const page *p)
{
	const vn_document *doc = p->doc;
	const int          first = doc->first;
	char               label[VN_LABEL], words[VN_WORDS];
	if (first >= 0) {
		const vn_checkpoint *k = &doc->checkpoint[first];
		const json_t        *profile = json_object_get(vn_document_detail(doc, first), "profile");
		vn_say(p->out, "%-10s %s\n", "first", vn_label(k, label));
		vn_say(p->out, "%-10s %s\n", k->worst >= 0 ? "rule" : "finding", vn_judge_say_failure(k, words));
		if (vn_judge_worst_why(k))
			vn_say(p->out, "%-10s %s\"%.200s\"%s\n", "", DIM(p), vn_judge_worst_why(k), PLAIN(p));
		if (defines_floor(doc))
			vn_say(p->out, "%-10s %sfloor: " VN_FLOOR_MEANS "%s\n", "", DIM(p), PLAIN(p));
		titled_lines(p, "profile", json_object_get(profile, "words"));
		origins_line(p);
		titled_lines(p, "cleared", doc->cleared);
	}
	const int more = titled_lines(p, "explained", doc->explained) + titled_lines(p, "next", doc->next);
	if (first >= 0 || more)
		fputc('\n', p->out);
}

vn_status vn_report_text(const vn_document *doc, const vn_report_options *o, FILE *out, vn_error *err)
{
	page p = { doc, o, out, 10, has_floors(doc) };
	char label[VN_LABEL];

	(void)err;
	for (int i = 0; i < doc->n; i++)
		if (!is_quiet(&p, i)) {
			const int n = (int)strlen(vn_label(&doc->checkpoint[i], label));
			p.width = n > p.width ? n : p.width;
		}
	const bool short_one = doc->within && doc->first < 0 && !doc->n_origins;
	if (!short_one)
		first_screen(&p);
	print_head(&p);
	print_table(&p);
	for (int i = 0; i < vn_document_lines(doc->divergences) && i <= DETAILS; i++)
		if (doc->detail[i] == doc->divergence ||
		    (doc->checkpoint[doc->detail[i]].origin && !is_repeated(doc, doc->detail[i])))
			vn_report_full(doc, i, o->colour, out);
	if (doc->n_origins > DETAILS && !is_by_file(doc)) {
		fprintf(out, "more origins:");
		for (int i = DETAILS; i < doc->n_origins; i++)
			vn_say(out, " %s", vn_label(&doc->checkpoint[doc->origin[i]], label));
		fputs("\n\n", out);
	}
	print_findings(&p);
	print_scores(&p);
	print_verdict(&p); /* last, because a terminal and a log end there */
	return VN_OK;
}
