/* report_text.c: a comparison for a person at a terminal, or reading a log. */
#include "capture/file/output.h"
#include "compare/judge/baseline.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/judge/judge_left_out.h"
#include "compare/result/folds.h"
#include "compare/result/words.h"
#include "compare/replay/local.h"
#include "compare/report/report.h"
#include "compare/text/places.h"
#include "compare/weights/weights_report.h"

#include "libref/base/alloc.h"
#include "libref/base/say.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Origins shown in full, and origins named on the first screen; the most lines without --all. */
enum {
	DETAILS = 8,
	NAMED = 4,
	WEIGHTS = 12 /* rows of their table */,
	LINES = 40,
	ROWS_ALONE = 3 /* the most missing checkpoints with rows of their own */
};

/* What a report leaves out until it fits into LINES: each leaves out what those before it do. */
typedef enum shortening { SHORT_NOT, SHORT_OTHERS, SHORT_FIRST, SHORT_DETAILS } shortening;

typedef struct page {
	const vn_document       *doc;
	const vn_report_options *o;
	FILE                    *out;
	int                      width;  /* of the name column */
	bool                     floors; /* false: no column of floors */
	shortening               left_out;
	int                      rows;    /* of the table, at most */
	int                      lost[2]; /* missing and extra checkpoints that fail */
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

static bool has_first_screen(const vn_document *doc)
{
	return !doc->within || doc->first >= 0 || doc->n_origins;
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
	for (int i = 0; i < vn_document_lines(doc->warnings) && !has_first_screen(doc); i++)
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

/* Is the checkpoint in one recording only? */
static bool is_absent(const vn_checkpoint *k)
{
	return k->since < VN_BETTER && !k->not_run && (k->status == VN_MISSING || k->status == VN_EXTRA);
}

/* How a checkpoint is shown: in a row of its own, or folded with others of its kind. */
typedef enum row_kind {
	ROW_ALONE,
	ROW_ABSENT, /* in one recording only: said below the table */
	ROW_WITHIN,
	ROW_AGREED,
	ROW_EQUAL,
	ROW_INHERITED, /* outside; its own operation, recomputed, is right */
	ROW_BEHIND,    /* outside, not recomputed; there are origins before it */
	ROW_NOT_RUN,   /* the candidate's run was stopped before it */
	N_ROW_KINDS
} row_kind;

static row_kind kind_of_failure(const vn_document *doc, int i)
{
	const vn_checkpoint *k = &doc->checkpoint[i];

	if (i == doc->first)
		return ROW_ALONE;
	if (k->status != VN_OUTSIDE || k->origin || !doc->n_origins || i < doc->origin[0])
		return ROW_ALONE;
	return !k->replayed ? ROW_BEHIND : vn_local_beyond(k) ? ROW_ALONE : ROW_INHERITED;
}

static row_kind kind_of(const page *p, int i)
{
	const vn_checkpoint *k = &p->doc->checkpoint[i];

	if (p->o->all)
		return ROW_ALONE;
	if (is_absent(k) && (!k->fails || p->lost[k->status == VN_EXTRA] > ROWS_ALONE))
		return ROW_ABSENT;
	if (k->not_run)
		return ROW_NOT_RUN;
	if (k->fails)
		return kind_of_failure(p->doc, i);
	return k->status == VN_AGREED                                                               ? ROW_AGREED
	       : k->status == VN_EQUAL                                                              ? ROW_EQUAL
	       : k->status == VN_WITHIN || k->status == VN_ACCUMULATED || k->status == VN_UNLIMITED ? ROW_WITHIN
	                                                                                            : ROW_ALONE;
}

/* The checkpoints of one kind in from..to. */
typedef struct folded {
	int first, last, n, layer[2], unlimited;
	int worst; /* of the largest nmse; -1 */
} folded;

static folded fold_of(const page *p, int from, int to, row_kind kind)
{
	folded f = { -1, -1, 0, { -1, -1 }, 0, -1 };

	for (int i = from; i < to; i++) {
		const vn_checkpoint *k = &p->doc->checkpoint[i];
		if (kind_of(p, i) != kind)
			continue;
		f.first = f.n++ ? f.first : i;
		f.last = i;
		f.unlimited += k->status == VN_UNLIMITED;
		if (k->layer >= 0) {
			f.layer[0] = f.layer[0] < 0 || k->layer < f.layer[0] ? k->layer : f.layer[0];
			f.layer[1] = k->layer > f.layer[1] ? k->layer : f.layer[1];
		}
		if (k->m.n && (f.worst < 0 || k->m.value[VN_M_NMSE] > p->doc->checkpoint[f.worst].m.value[VN_M_NMSE]))
			f.worst = i;
	}
	return f;
}

/* Writes "layers 0-3: 12 checkpoints", with the steps unless all are step 0. */
static void say_fold(const page *p, const folded *f, bool more)
{
	const vn_checkpoint *first = &p->doc->checkpoint[f->first], *last = &p->doc->checkpoint[f->last];
	char                 label[VN_LABEL];

	if (f->n == 1) {
		vn_say(p->out, "%s", vn_label(first, label));
		return;
	}
	if (first->step != last->step)
		fprintf(p->out, "steps %d-%d, ", first->step, last->step);
	else if (first->step > 0)
		fprintf(p->out, "step %d, ", first->step);
	if (f->layer[0] >= 0 && f->layer[0] == f->layer[1])
		fprintf(p->out, "layer %d: ", f->layer[0]);
	else if (f->layer[0] >= 0)
		fprintf(p->out, "layers %d-%d: ", f->layer[0], f->layer[1]);
	vn_say(p->out, "%d%s checkpoint%s", f->n, more ? " more" : "", f->n == 1 ? "" : "s");
}

/* Shows the checkpoints of one kind in from..to in one line. Returns the number of lines. */
static int print_fold(const page *p, int from, int to, row_kind kind)
{
	static const struct {
		const char *word, *about;
		bool        bad;
	} words[N_ROW_KINDS] = {
		[ROW_WITHIN] = { "within", "", false },
		[ROW_AGREED] = { "agreed", "; left out of the candidate, judged while it was recorded", false },
		[ROW_EQUAL] = { "equal", "; by their digests, not read", false },
		[ROW_INHERITED] = { "inherited", "", true },
		[ROW_BEHIND] = { "OUTSIDE", "", true },
		[ROW_NOT_RUN] = { "missing", "; not run: the recording stops before", false },
	};
	const vn_document *doc = p->doc;
	const folded       f = fold_of(p, from, to, kind);
	char               label[VN_LABEL];
	double             ratio;

	if (!f.n)
		return 0;
	if (f.n == 1 && words[kind].bad) {
		print_row(p, &doc->checkpoint[f.first]);
		return 1;
	}
	vn_say(p->out, "%s%-10s%s  ",
	       doc->checkpoint[f.first].fails ? RED(p)
	       : kind == ROW_NOT_RUN          ? DIM(p)
	                                      : GREEN(p),
	       words[kind].word, PLAIN(p));
	say_fold(p, &f, kind == ROW_BEHIND);
	vn_say(p->out, "%s%s%s", DIM(p), words[kind].about, PLAIN(p));
	if (f.unlimited)
		fprintf(p->out, ", %d of them without a limit", f.unlimited);
	if (f.worst >= 0) {
		vn_say(p->out, "%s; worst nmse %.2g", DIM(p), doc->checkpoint[f.worst].m.value[VN_M_NMSE]);
		if (f.n > 1)
			vn_say(p->out, " at %s", vn_label(&doc->checkpoint[f.worst], label));
		if (vn_ratio_of(doc, &doc->checkpoint[f.worst], &ratio))
			fprintf(p->out, " (%.2g x floor)", ratio);
		fputs(PLAIN(p), p->out);
	}
	fputc('\n', p->out);
	return 1;
}

/* One line with the points of the absent checkpoints. */
static void say_absent(const page *p, vn_checkpoint_status status, bool fails, const char *where)
{
	enum { POINTS_NAMED = 12 };
	const vn_document *doc = p->doc;
	const char        *said[POINTS_NAMED];
	int                n = 0, points = 0;
	for (int i = 0; i < doc->n; i++) {
		const vn_checkpoint *k = &doc->checkpoint[i];
		const char          *point = vn_point_of(k);
		bool                 again = false;
		if (k->status != status || k->fails != fails || kind_of(p, i) != ROW_ABSENT)
			continue;
		n++;
		for (int at = 0; at < points && at < POINTS_NAMED; at++)
			again = again || strcmp(said[at], point) == 0;
		if (!again && points++ < POINTS_NAMED)
			said[points - 1] = point;
	}
	if (!n)
		return;
	vn_say(p->out, "%s%-10s%s  %d checkpoint%s not in the %s%s:", fails ? RED(p) : "",
	       vn_checkpoint_status_text(status), fails ? PLAIN(p) : "", n, n == 1 ? "" : "s", where,
	       fails ? "" : " (allowed)");
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
	int rows = 0, cut = 0, outside = 0;
	for (int i = 0; i < doc->n;) {
		int j = i;
		/* A run of checkpoints that are folded, separately for the prompt and for later steps. */
		while (j < doc->n && kind_of(p, j) != ROW_ALONE &&
		       (doc->checkpoint[j].step > 0) == (doc->checkpoint[i].step > 0))
			j++;
		const bool alone = j == i;
		j += alone;
		if (rows >= p->rows && i != doc->first) {
			for (; i < j; i++) {
				cut += kind_of(p, i) != ROW_ABSENT;
				outside += doc->checkpoint[i].fails;
			}
		} else if (alone) {
			print_row(p, &doc->checkpoint[i]);
			rows++;
		} else {
			for (int kind = ROW_WITHIN; kind < N_ROW_KINDS; kind++)
				rows += print_fold(p, i, j, (row_kind)kind);
		}
		i = j;
	}
	if (cut)
		vn_say(p->out, "%-10s  %d more checkpoint%s, %d of them outside\n", "...", cut, cut == 1 ? "" : "s", outside);
	for (int fails = 1; fails >= 0; fails--) {
		say_absent(p, VN_MISSING, fails, "candidate");
		say_absent(p, VN_EXTRA, fails, "reference");
	}
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

static void print_criteria(const page *p)
{
	for (size_t i = 0; p->o->all && i < json_array_size(p->doc->criteria); i++) {
		const json_t *c = json_array_get(p->doc->criteria, i), *holds = json_object_get(c, "holds");
		vn_say(p->out, "%-10s %s: %s%s\n", i ? "" : "criteria", vn_document_member(c, "name"),
		       json_is_true(holds)    ? "yes: "
		       : json_is_false(holds) ? "NO: "
		                              : "",
		       vn_document_member(c, "words"));
	}
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
	VN_ENDS(vn_places_free) vn_name_places places = { 0 };
	char                                   text[VN_WORDS];

	for (int i = 0; i < p->doc->n_origins; i++)
		vn_places_add(&places, p->doc->checkpoint[p->doc->origin[i]].name);
	vn_say(p->out, " %s", vn_places_say(&places, NAMED, text, sizeof text));
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

/* The first origins; of more, one point in many steps and layers is one item. */
static void say_origins(const page *p)
{
	const vn_document *doc = p->doc;
	vn_fold            fold[NAMED];
	char               text[VN_WORDS], label[VN_LABEL];
	const int n = doc->n_origins > NAMED ? vn_folds_of(doc->checkpoint, doc->origin, doc->n_origins, fold, NAMED) : 0;
	int       told = 0;

	for (int i = 0; i < n && i < NAMED; i++) {
		vn_say(p->out, "%s %s", i ? ";" : "", vn_fold_say(doc->checkpoint, &fold[i], text));
		told += fold[i].n;
	}
	for (; !n && told < doc->n_origins; told++)
		vn_say(p->out, "%s %s", told ? "," : "", vn_label(&doc->checkpoint[doc->origin[told]], label));
	if (told < doc->n_origins)
		fprintf(p->out, " and %d more", doc->n_origins - told);
}

static void origins_line(const page *p)
{
	const vn_document *doc = p->doc;
	if (doc->n_origins < 2 && !(doc->n_origins == 1 && doc->origin[0] != doc->divergence))
		return;
	vn_say(p->out, "%-10s", "origins");
	if (is_by_file(doc))
		say_places(p);
	else
		say_origins(p);
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
	/* Swapped files, a reference that its model contradicts: what follows may mean nothing. */
	const int          warned = vn_document_lines(doc->warnings);
	for (int i = 0; i < warned; i++)
		vn_say(p->out, "%-10s %s\n", "warning", vn_document_line(doc->warnings, i));
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
	if (first >= 0 || more || warned)
		fputc('\n', p->out);
}

/* ---- the whole ---------------------------------------------------------------- */

static void print_details(const page *p)
{
	const vn_document *doc = p->doc;
	char               label[VN_LABEL];
	int                n = vn_document_lines(doc->divergences);

	for (int i = 0; i < n && i <= DETAILS && p->left_out < SHORT_DETAILS; i++)
		if (doc->detail[i] == doc->divergence ||
		    (p->left_out == SHORT_NOT && doc->checkpoint[doc->detail[i]].origin && !is_repeated(doc, doc->detail[i])))
			vn_report_full(doc, i, p->left_out >= SHORT_FIRST, p->o->colour, p->out);
	if (p->left_out == SHORT_NOT && doc->n_origins > DETAILS && !is_by_file(doc)) {
		fprintf(p->out, "more origins:");
		for (int i = DETAILS; i < doc->n_origins; i++)
			vn_say(p->out, " %s", vn_label(&doc->checkpoint[doc->origin[i]], label));
		fputs("\n\n", p->out);
	}
}

static void print_all(const page *p)
{
	const vn_document *doc = p->doc;

	if (has_first_screen(doc))
		first_screen(p);
	print_head(p);
	print_table(p);
	print_details(p);
	print_findings(p);
	print_scores(p);
	print_criteria(p);
	if (p->left_out)
		vn_say(p->out, "%-10s --all: a line for every checkpoint, and all details\n", "more");
	print_verdict(p); /* last, because a terminal and a log end there */
}

/* Returns the number of lines of the report. */
static int count_lines(page p)
{
	vn_text_stream s;
	int            lines = 0;

	p.out = vn_alloc_stream(&s);
	print_all(&p);
	for (const char *at = vn_alloc_streamed(&s); (at = strchr(at, '\n')); at++)
		lines++;
	free(s.text);
	return lines;
}

/* Leaves as many rows as there is room for; no details if those take the room. */
static void cut_table(page *p)
{
	enum { FEWEST = 10 };

	p->rows = 0;
	p->rows = LINES - count_lines(*p);
	if (p->rows < FEWEST) {
		p->rows = 0;
		p->left_out = SHORT_DETAILS;
		p->rows = LINES - count_lines(*p);
	}
	p->rows = p->rows < FEWEST ? FEWEST : p->rows;
}

vn_status vn_report_text(const vn_document *doc, const vn_report_options *o, FILE *out, vn_error *err)
{
	page p = { doc, o, out, 10, has_floors(doc), SHORT_NOT, INT_MAX, { 0, 0 } };
	char label[VN_LABEL];

	(void)err;
	for (int i = 0; i < doc->n; i++)
		p.lost[doc->checkpoint[i].status == VN_EXTRA] += doc->checkpoint[i].fails && is_absent(&doc->checkpoint[i]);
	for (int i = 0; i < doc->n; i++)
		if (kind_of(&p, i) == ROW_ALONE) {
			const int n = (int)strlen(vn_label(&doc->checkpoint[i], label));
			p.width = n > p.width ? n : p.width;
		}
	while (!o->all && count_lines(p) > LINES && p.rows == INT_MAX)
		if (p.left_out < SHORT_FIRST)
			p.left_out++;
		else
			cut_table(&p);
	print_all(&p);
	return VN_OK;
}
