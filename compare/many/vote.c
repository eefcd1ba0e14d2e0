/* vote.c: see vote.h. */
#include "compare/many/vote.h"

#include "compare/result/words.h"
#include "libref/base/alloc.h"
#include "libref/base/shell.h"
#include "libref/base/text.h"

#include <math.h>
#include <string.h>

/* The comparison of recordings i and j among all pairs. */
static int pair_of(int n, int i, int j)
{
	const int low = i < j ? i : j, high = i < j ? j : i;
	return low * n - low * (low + 1) / 2 + high - low - 1;
}

/* All pairs of n recordings. */
typedef struct ballots {
	const vn_many *pairs;
	char *const   *path; /* (n) */
	int            n;
} ballots;

/* Does recording i have the checkpoint of this row, as a comparison with another one shows? */
static bool is_there(const ballots *b, int row, int i)
{
	for (int j = 0; j < b->n; j++) {
		const int           pair = j == i ? -1 : pair_of(b->n, i, j);
		const vn_many_cell *x = pair < 0 ? NULL : vn_many_cell_of(b->pairs, row, pair);
		const bool          is_ref = x && b->pairs->candidate[pair].path != b->path[i];
		if (x && b->pairs->candidate[pair].status != 2 && x->status != (is_ref ? VN_EXTRA : VN_MISSING))
			return true;
	}
	return false;
}

static bool do_agree(const ballots *b, int row, int i, int j)
{
	const int           pair = pair_of(b->n, i, j);
	const vn_many_cell *x = vn_many_cell_of(b->pairs, row, pair);
	return b->pairs->candidate[pair].status != 2 && !(x && x->fails);
}

/* If no comparison of recording i succeeded, returns the pair that says why. NULL: it was
 * compared. */
static const vn_many_candidate *never_compared(const ballots *b, int i)
{
	const vn_many_candidate *said = NULL;
	for (int j = 0; j < b->n; j++) {
		if (j == i)
			continue;
		said = &b->pairs->candidate[pair_of(b->n, i, j)];
		if (said->status != 2)
			return NULL;
	}
	return said;
}

/* A pair that could not be compared although each recording was compared with others; NULL: none.
 * Nobody knows whether such a pair agrees. */
static const vn_many_candidate *lost_pair(const ballots *b)
{
	for (int i = 0; i < b->n; i++)
		for (int j = i + 1; j < b->n; j++) {
			const vn_many_candidate *pair = &b->pairs->candidate[pair_of(b->n, i, j)];
			if (pair->status == 2 && !never_compared(b, i) && !never_compared(b, j))
				return pair;
		}
	return NULL;
}

/* How many recordings have the checkpoint of a row. */
static int count_voters(const ballots *b, int row)
{
	int n = 0;
	for (int i = 0; i < b->n; i++)
		n += is_there(b, row, i);
	return n;
}

/* A recording that lacks the checkpoint has no vote, and is not outvoted. */
static bool with_majority(const ballots *b, int row, int i)
{
	int votes = 1;
	for (int j = 0; j < b->n; j++)
		votes += j != i && is_there(b, row, j) && do_agree(b, row, i, j);
	return !is_there(b, row, i) || 2 * votes > count_voters(b, row);
}

static vn_status elect_majority(vn_vote *v, const ballots *b, vn_error *err)
{
	int best = -1;

	for (int i = 0; i < b->n; i++) {
		int with = 0;
		for (int row = 0; row < b->pairs->n_rows; row++)
			with += is_there(b, row, i) && with_majority(b, row, i);
		if (with > best && !never_compared(b, i)) {
			best = with;
			v->many.elected = i;
		}
	}
	return best >= 0 ? VN_OK
	                 : vn_fail(err, VN_ERR_MISMATCH, "no two of the %d recordings could be compared: %s", b->n,
	                           vn_many_said(&b->pairs->candidate[0], "trouble"));
}

/* The result of comparing with the elected recording, and whether this one belongs
 * to the majority. */
static vn_many_cell cell_of(const ballots *b, int row, int elected, int i)
{
	const vn_many_cell *x = i == elected ? NULL : vn_many_cell_of(b->pairs, row, pair_of(b->n, elected, i));
	vn_many_cell        cell = { .there = true,
		                         .self = i == elected,
		                         .status = VN_WITHIN,
		                         .nmse = NAN,
		                         .over_floor = NAN,
		                         .cosine = NAN,
		                         .max_abs = NAN,
		                         .max_rel = NAN };
	if (x)
		cell = *x;
	cell.origin = false;
	cell.fails = !with_majority(b, row, i);
	cell.there = x || i == elected || cell.fails;
	if (!x && i != elected)
		cell.status = VN_MISSING;
	return cell;
}

/* ---- warnings and commands of the pairs ----------------------------------------------- */

static bool always_with_majority(const ballots *b, int i)
{
	for (int row = 0; row < b->pairs->n_rows; row++)
		if (!with_majority(b, row, i))
			return false;
	return true;
}

/* Do the warnings of the pair of i and j concern i? */
static bool is_warned(const vn_vote *v, const ballots *b, int i, int j)
{
	const bool with_i = always_with_majority(b, i), with_j = always_with_majority(b, j);
	if (with_i != with_j)
		return with_j;
	return i != v->many.elected && (j == v->many.elected || i > j);
}

static bool has_line(const json_t *lines, const char *line)
{
	for (int i = 0; i < vn_document_lines(lines); i++)
		if (strcmp(vn_document_line(lines, i), line) == 0)
			return true;
	return false;
}

/* Names the pair, unless its reference is the elected one, which the report shows as such. What
 * several pairs say of recording i as the reference, or as the candidate, is added once. */
static void add_warnings(vn_vote *v, const ballots *b, int i)
{
	vn_many_candidate *x = &v->many.candidate[i];
	json_t            *said[2] = { json_array(), json_array() }, *all = json_array();
	for (int j = 0; j < b->n; j++) {
		if (j == i || !is_warned(v, b, i, j))
			continue;
		const vn_many_candidate *pair = &b->pairs->candidate[pair_of(b->n, i, j)];
		const bool               is_ref = pair->path != x->path;
		char                     named[32] = "";
		size_t                   k;
		json_t                  *line;
		if (is_ref || j != v->many.elected)
			snprintf(named, sizeof named, "%c as the reference of %c: ", vn_many_letter(is_ref ? i : j),
			         vn_many_letter(is_ref ? j : i));
		json_array_foreach(vn_many_list(pair, "warnings"), k, line)
		{
			if (has_line(said[is_ref], json_string_value(line)))
				continue;
			json_array_append(said[is_ref], line);
			json_array_append_new(all, json_sprintf("%s%s", named, json_string_value(line)));
		}
	}
	json_decref(said[0]);
	json_decref(said[1]);
	json_object_set_new(x->head, "warnings", all);
}

/* Writes "vernier COMMAND REF CAND". */
static void begin_command(char line[VN_SHELL_LINE], const char *command, const char *ref, const char *cand)
{
	snprintf(line, VN_SHELL_LINE, "vernier %s", command);
	vn_shell_add(line, VN_SHELL_LINE, ref);
	vn_shell_add(line, VN_SHELL_LINE, cand);
}

/* Adds the first command of recording i's pair with the elected one. If i is outvoted, the elected
 * one must be the reference of the command: if i was that of the pair, the two change places. There
 * is no command if i's format is finer, because a coarser recording cannot judge it. */
static void add_command(vn_vote *v, const vn_many_candidate *pair, const int *digits, int i)
{
	static const char *const command[] = { "explain", "compare" };
	vn_many_candidate       *x = &v->many.candidate[i];
	const vn_many_candidate *elected = &v->many.candidate[v->many.elected];
	char                     as_is[VN_SHELL_LINE], turned[VN_SHELL_LINE];
	const json_t            *next = vn_many_list(pair, "next");
	const char              *line = vn_document_lines(next) ? vn_document_line(next, 0) : NULL;

	if (line && (pair->path == x->path || x->first < 0))
		json_object_set_new(x->head, "next", json_pack("[s]", line));
	else if (line && digits[i] <= digits[v->many.elected])
		for (size_t k = 0; k < sizeof command / sizeof *command; k++) {
			begin_command(as_is, command[k], x->path, elected->path);
			begin_command(turned, command[k], elected->path, x->path);
			if (*as_is && strncmp(line, as_is, strlen(as_is)) == 0) {
				VN_ENDS(vn_lines_free) vn_lines more = { 0 };
				vn_lines_add(&more, "%s%s", turned, line + strlen(as_is));
				json_object_set_new(x->head, "next", vn_json_lines(&more));
			}
		}
}

/* ---- a recording ------------------------------------------------------------------------ */

/* The digests of recording i that were checked: those of the comparison that read most of it. */
static vn_verified digests_of(const ballots *b, int i, const char *path)
{
	vn_verified most = { 0 };

	for (int j = 0; j < b->n; j++) {
		const vn_many_candidate *pair = j == i ? NULL : &b->pairs->candidate[pair_of(b->n, i, j)];
		const vn_verified        d = pair ? vn_many_digests(pair, pair->path == path) : most;
		if (d.checked + d.wrong + d.without > most.checked + most.wrong + most.without)
			most = d;
	}
	return most;
}

/* The program that recorded recording i, from any comparison that opened it. */
static const char *about_of(const ballots *b, int i, const char *path)
{
	for (int j = 0; j < b->n; j++) {
		const vn_many_candidate *pair = j == i ? NULL : &b->pairs->candidate[pair_of(b->n, i, j)];
		if (pair && vn_many_list(pair, "about"))
			return vn_many_said(pair, pair->path == path ? "about" : "ref_about");
	}
	return "";
}

/* The checkpoints of one recording: those put to the vote, and those that it lacks or alone has. */
typedef struct count {
	int with, voted, lacks, alone;
} count;

/* Whether it belongs to the majority in all checkpoints, and its status under --strict. */
static void say_one(vn_vote *v, vn_many_candidate *x, const vn_verified *digests, const count *n, bool strict)
{
	const int warned = strict ? vn_document_lines(vn_many_list(x, "warnings")) : 0;
	char      text[240];

	x->status = n->with < n->voted || warned;
	json_object_set_new(x->head, "verdict",
	                    json_string(n->with < n->voted ? "NOT with the majority"
	                                : x->status        ? "with the majority, FAILS by --strict"
	                                                   : "with the majority"));
	v->many.strict |= x->status && n->with == n->voted;
	snprintf(text, sizeof text, "%d of %d checkpoints", n->with < n->voted ? n->voted - n->with : n->with, n->voted);
	if (n->lacks)
		vn_text_add(text, sizeof text, ", %d not recorded", n->lacks);
	if (n->alone)
		vn_text_add(text, sizeof text, ", %d recorded by it alone", n->alone);
	vn_report_say_digests(digests, text, sizeof text);
	if (warned)
		vn_text_add(text, sizeof text, "; %d warning%s (--strict)", warned, warned == 1 ? "" : "s");
	vn_text_add(text, sizeof text, ".");
	json_object_set_new(x->head, "counts", json_string(text));
}

static count count_rows(const ballots *b, int i)
{
	count n = { 0 };

	for (int row = 0; row < b->pairs->n_rows; row++) {
		const bool there = is_there(b, row, i), voted = there && count_voters(b, row) > 1;
		n.lacks += !there;
		n.alone += there && !voted;
		n.voted += voted;
		n.with += voted && with_majority(b, row, i);
	}
	return n;
}

static void count_one(vn_vote *v, const ballots *b, const int *digits, int i, bool strict)
{
	vn_many_candidate       *x = &v->many.candidate[i];
	const vn_many_candidate *why = never_compared(b, i),
							*pair = &b->pairs->candidate[i == v->many.elected ? 0 : pair_of(b->n, v->many.elected, i)];
	const bool  judged = i != v->many.elected && pair->status != 2;
	const count n = count_rows(b, i);

	v->many.n = i + 1;
	if (why) {
		x->status = 2;
		x->head = json_incref(why->head);
		return;
	}
	if (!n.voted) {
		x->status = 2;
		x->head = vn_alloc_check(json_pack("{s:s, s:s}", "verdict", "not compared", "trouble",
		                                   "none of its checkpoints is in another recording"));
		return;
	}
	const vn_verified d = digests_of(b, i, x->path);
	x->head = json_pack("{s:s, s:O?, s:O?, s:[n,o]}", "about", about_of(b, i, x->path), "limits",
	                    judged ? vn_many_list(pair, "limits") : NULL, "floor",
	                    judged ? vn_many_list(pair, "floor") : NULL, "digests",
	                    vn_json_integers((int64_t[]) { d.checked, d.wrong, d.without }, 3));
	vn_alloc_check(x->head);
	x->cell = vn_alloc_zero((size_t)b->pairs->n_rows, sizeof *x->cell);
	x->n_cells = b->pairs->n_rows;
	for (int row = 0; row < b->pairs->n_rows; row++) {
		x->cell[row] = cell_of(b, row, v->many.elected, i);
		x->first = x->cell[row].fails && x->first < 0 ? row : x->first;
	}
	add_warnings(v, b, i);
	say_one(v, x, &d, &n, strict);
	if (judged) {
		add_command(v, pair, digits, i);
		x->json = pair->json;
		x->file = pair->file;
	}
}

vn_status vn_vote_count(vn_vote *v, const vn_many *pairs, char *const *path, const int *digits, int n, bool strict,
                        vn_error *err)
{
	const ballots            b = { pairs, path, n };
	const vn_many_candidate *lost = lost_pair(&b);
	vn_status                st;

	*v = (vn_vote) { .many = { .vote = true, .row = pairs->row, .n_rows = pairs->n_rows } };
	if (lost)
		return vn_fail(err, VN_ERR_MISMATCH, "no vote, because not every pair could be compared: %s%s%s",
		               vn_many_said(lost, "trouble"), vn_document_lines(vn_many_list(lost, "refusals")) ? ": " : "",
		               vn_document_line(vn_many_list(lost, "refusals"), 0));
	if ((st = elect_majority(v, &b, err)))
		return st;
	for (int i = 0; i < n; i++)
		v->many.candidate[i] = (vn_many_candidate) { .path = path[i], .first = -1 };
	for (int i = 0; i < n; i++)
		count_one(v, &b, digits, i, strict);
	snprintf(v->about, sizeof v->about, "the majority of %d recordings (no reference); numbers are against %c", n,
	         vn_many_letter(v->many.elected));
	v->many.ref = v->about;
	return VN_OK;
}

void vn_vote_finish(vn_vote *v)
{
	v->many.row = NULL; /* the pairs' */
	v->many.n_rows = 0;
	for (int i = 0; i < v->many.n; i++)
		v->many.candidate[i].file = NULL;
	vn_many_finish(&v->many);
}
