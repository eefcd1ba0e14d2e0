/* many.c: see many.h. */
#include "compare/many/many.h"
#include "compare/comparison/checkpoint.h"
#include "compare/report/report.h"
#include "compare/result/words.h"

#include "libref/base/grow.h"
#include "libref/base/intern.h"
#include "libref/base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

vn_status vn_many_begin(vn_many *m, const char *ref, unsigned keep, vn_error *err)
{
	*m = (vn_many) { .ref = ref, .keep = keep };
	if (keep && !(m->reports = tmpfile()))
		return vn_fail(err, VN_ERR_IO, "a temporary file for the reports of the candidates: %s", strerror(errno));
	return VN_OK;
}

/* ---- rows ------------------------------------------------------------------------ */

static int by_label(const void *a, const void *b)
{
	const vn_many_label *x = a, *y = b;
	return strcmp(x->label, y->label);
}

vn_status vn_many_filled(vn_many *m, vn_many_candidate *x, vn_error *err)
{
	/* There was room for rows that no candidate before it has. */
	vn_many_cell *less = realloc(x->cell, ((size_t)m->n_rows + 1) * sizeof *less);
	x->cell = less ? less : x->cell;
	x->n_cells = m->n_rows;
	vn_many_label *sorted = realloc(m->by_label, ((size_t)m->n_rows + 1) * sizeof *sorted);
	if (!sorted)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d checkpoints", m->n_rows);
	m->by_label = sorted;
	for (int i = m->n_sorted; i < m->n_rows; i++)
		sorted[i] = (vn_many_label) { m->row[i].label, i };
	m->n_sorted = m->n_rows;
	qsort(sorted, (size_t)m->n_rows, sizeof *sorted, by_label);
	return VN_OK;
}

/* The row of a label, or -1. Rows added by the current candidate are not searched, because no two
 * of its checkpoints share a label. */
static int find_row(const vn_many *m, const char *label)
{
	const vn_many_label  key = { label, 0 };
	const vn_many_label *at = m->n_sorted ? bsearch(&key, m->by_label, (size_t)m->n_sorted, sizeof key, by_label)
	                                      : NULL;
	return at ? at->row : -1;
}

static int add_row(vn_many *m, const vn_many_row *row)
{
	vn_many_row *more = vn_grown(m->row, (size_t)m->n_rows, sizeof *more);
	if (!more)
		return -1;
	m->row = more;
	m->row[m->n_rows] = (vn_many_row) { vn_intern(row->label), vn_intern(row->name), row->step, row->layer };
	return m->row[m->n_rows].label && m->row[m->n_rows].name ? m->n_rows++ : -1;
}

vn_status vn_many_put(vn_many *m, vn_many_candidate *x, const vn_many_row *row, const vn_many_cell *cell, bool first,
                      vn_error *err)
{
	int at = find_row(m, row->label);
	if (at < 0 && (at = add_row(m, row)) < 0)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d checkpoints", m->n_rows);
	x->cell[at] = *cell;
	x->first = first ? at : x->first;
	return VN_OK;
}

vn_status vn_many_cells(const vn_many *m, vn_many_candidate *x, int n, vn_error *err)
{
	x->n_cells = m->n_rows + n;
	if (!(x->cell = calloc((size_t)x->n_cells + 1, sizeof *x->cell)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d checkpoints", x->n_cells);
	return VN_OK;
}

/* ---- a candidate ----------------------------------------------------------------- */

static vn_many_cell reduce_cell(const vn_document *doc, const vn_checkpoint *p)
{
	vn_many_cell x = { .there = true,
		               .measured = p->m.n > 0,
		               .fails = p->fails,
		               .origin = p->origin,
		               .status = p->status,
		               .point = (int)(p - doc->checkpoint),
		               .nmse = NAN,
		               .cosine = NAN,
		               .max_abs = NAN,
		               .max_rel = NAN,
		               .over_floor = NAN };
	double       ratio;
	if (!x.measured)
		return x;
	x.nmse = vn_metric_shown(p, VN_M_NMSE);
	x.cosine = vn_metric_shown(p, VN_M_COSINE);
	x.max_abs = vn_metric_shown(p, VN_M_MAX_ABS);
	x.max_rel = vn_metric_shown(p, VN_M_MAX_REL);
	if (vn_ratio_of(doc, p, &ratio))
		x.over_floor = ratio;
	return x;
}

static vn_status add_cells(vn_many *m, vn_many_candidate *x, const vn_document *doc, vn_error *err)
{
	char      label[VN_LABEL];
	vn_status st = vn_many_cells(m, x, doc->n, err);

	for (int i = 0; i < doc->n && !st; i++) {
		const vn_checkpoint *p = &doc->checkpoint[i];
		const vn_many_row    row = { vn_label(p, label), p->name, p->step, p->layer };
		const vn_many_cell   cell = reduce_cell(doc, p);
		st = vn_many_put(m, x, &row, &cell, i == doc->first, err);
	}
	return st ? st : vn_many_filled(m, x, err);
}

static vn_status add_words(vn_many_candidate *x, const vn_document *doc, vn_error *err)
{
	char text[1200];

	x->verdict = strdup(vn_document_text(doc->verdict_words));
	x->counts = strdup(vn_document_text(doc->summary));
	x->start = strdup(vn_document_text(doc->start));
	x->about = strdup(vn_document_member(doc->candidate, "recorded_by"));
	x->ref_about = strdup(vn_document_member(doc->reference, "recorded_by"));
	snprintf(text, sizeof text, "%.800s (%.200s)", vn_document_limits(doc), vn_document_member(doc->limits, "chosen"));
	x->limits = strdup(vn_text_clean(text, sizeof text));
	snprintf(text, sizeof text, "%s", vn_document_text(doc->floor));
	x->floor = strdup(vn_text_clean(text, sizeof text));
	for (int i = 0; i < vn_document_lines(doc->warnings); i++)
		vn_lines_add(&x->warnings, "%s", vn_document_line(doc->warnings, i));
	for (int i = 0; i < vn_document_lines(doc->next); i++)
		vn_lines_add(&x->next, "%s", vn_document_line(doc->next, i));
	return x->verdict && x->counts && x->start && x->about && x->ref_about && x->limits && x->floor
	           ? VN_OK
	           : vn_fail(err, VN_ERR_NOMEM, "no memory for a report");
}

static vn_status add_report(vn_many *m, vn_many_kept *text, const vn_document *doc, bool page, vn_error *err)
{
	const vn_report_options o = { .page = page };
	const long              from = ftell(m->reports);
	vn_status               st = vn_report_json(doc, &o, m->reports, err);

	const long end = st || fflush(m->reports) != 0 || ferror(m->reports) ? -1 : ftell(m->reports);
	if (!st && (from < 0 || end < 0))
		st = vn_fail(err, VN_ERR_IO, "a temporary file for the reports of the candidates: %s", strerror(errno));
	*text = st ? (vn_many_kept) { 0 } : (vn_many_kept) { from, end - from };
	return st;
}

bool vn_many_copy_bytes(FILE *from, long left, FILE *to)
{
	char buffer[1 << 14];

	while (left > 0) {
		const size_t most = left < (long)sizeof buffer ? (size_t)left : sizeof buffer, n = fread(buffer, 1, most, from);
		if (n == 0 || fwrite(buffer, 1, n, to) != n)
			return false;
		left -= (long)n;
	}
	return true;
}

bool vn_many_copy(const vn_many *m, const vn_many_kept *text, FILE *out)
{
	return fseek(m->reports, text->from, SEEK_SET) == 0 && vn_many_copy_bytes(m->reports, text->bytes, out);
}

vn_status vn_many_add(vn_many *m, const char *path, const vn_document *doc, vn_error *err)
{
	vn_many_candidate *x = &m->candidate[m->n++];
	vn_status          st;

	*x = (vn_many_candidate) { .path = path, .first = -1, .status = doc->within ? 0 : 1 };
	memcpy(x->digests, doc->verified, sizeof x->digests);
	if ((st = add_words(x, doc, err)) || (st = add_cells(m, x, doc, err)))
		return st;
	if (m->keep & VN_MANY_KEEP_JSON)
		st = add_report(m, &x->json, doc, false, err);
	if (!st && (m->keep & VN_MANY_KEEP_PAGES))
		st = add_report(m, &x->page, doc, true, err);
	return st;
}

/* A missing or damaged file concerns one candidate; lack of memory or a signal ends the run. */
vn_status vn_many_add_trouble(vn_many *m, const char *path, vn_status why, const vn_error *trouble,
                              const vn_lines *refusals, vn_error *err)
{
	vn_many_candidate *x = &m->candidate[m->n++];
	char               text[sizeof trouble->text];

	snprintf(text, sizeof text, "%s", trouble->text);
	*x = (vn_many_candidate) { .path = path, .first = -1, .status = 2, .verdict = strdup("not compared") };
	x->trouble = strdup(vn_text_clean(text, sizeof text));
	for (int i = 0; i < refusals->n; i++)
		vn_lines_add(&x->refusals, "%s", refusals->line[i]);
	if (!x->trouble || !x->verdict)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a report");
	return why == VN_ERR_NOMEM || why == VN_ERR_INTERRUPTED ? vn_fail(err, why, "%s", trouble->text) : VN_OK;
}

void vn_many_finish(vn_many *m)
{
	for (int i = 0; i < m->n; i++) {
		vn_many_candidate *x = &m->candidate[i];
		char *const        text[] = {
				   x->verdict, x->trouble, x->counts, x->start, x->about, x->ref_about, x->limits, x->floor
		};
		for (size_t k = 0; k < sizeof text / sizeof *text; k++)
			free(text[k]);
		vn_lines_free(&x->warnings);
		vn_lines_free(&x->refusals);
		vn_lines_free(&x->next);
		free(x->cell);
	}
	free(m->row);
	free(m->by_label);
	if (m->reports)
		fclose(m->reports);
	*m = (vn_many) { 0 };
}

/* ---- questions ------------------------------------------------------------------- */

const vn_many_cell *vn_many_cell_of(const vn_many *m, int row, int candidate)
{
	const vn_many_candidate *x = &m->candidate[candidate];
	return row < x->n_cells && x->cell[row].there ? &x->cell[row] : NULL;
}

/* A candidate without a checkpoint that others have and the reference lacks agrees
 * with the reference. */
int vn_many_odd(const vn_many *m, int row)
{
	int compared = 0, outside = 0, last = VN_MANY_NONE;
	for (int i = 0; i < m->n; i++) {
		const vn_many_cell *x = vn_many_cell_of(m, row, i);
		compared += m->candidate[i].status != 2;
		outside += x && x->fails;
		last = x && x->fails ? i : last;
	}
	if (outside == 0)
		return VN_MANY_NONE;
	if (compared > 1 && outside == 1)
		return last;
	return compared > 1 && outside == compared ? VN_MANY_ALL : VN_MANY_SEVERAL;
}

/* Is candidate i worse than j? Those with the same verdict and first divergence
 * stand in their order. */
static bool is_worse(const vn_many *m, int i, int j)
{
	const vn_many_candidate *a = &m->candidate[i], *b = &m->candidate[j];
	if (a->status != b->status)
		return a->status > b->status;
	if (a->first != b->first)
		return b->first < 0 || (a->first >= 0 && a->first < b->first);
	return i < j;
}

int vn_many_shown(const vn_many *m, bool shown[VN_MANY_MOST])
{
	int kept = 0;
	for (int i = 0; i < m->n; i++) {
		int worse = 0;
		for (int j = 0; j < m->n; j++)
			worse += m->candidate[j].page.bytes && is_worse(m, j, i);
		shown[i] = m->candidate[i].page.bytes && worse < VN_MANY_PAGES;
		kept += m->candidate[i].page.bytes > 0;
	}
	return kept;
}

const char *vn_many_ref_about(const vn_many *m)
{
	for (int i = 0; i < m->n; i++)
		if (m->candidate[i].ref_about)
			return m->candidate[i].ref_about;
	return "";
}

bool vn_many_fails(const vn_many *m, int row)
{
	return vn_many_odd(m, row) != VN_MANY_NONE;
}

int vn_many_status(const vn_many *m)
{
	int worst = 0;
	for (int i = 0; i < m->n; i++)
		worst = m->candidate[i].status > worst ? m->candidate[i].status : worst;
	return worst;
}

char vn_many_letter(int candidate)
{
	return (char)('A' + candidate);
}

int vn_many_count(const vn_many *m, int status)
{
	int n = 0;
	for (int i = 0; i < m->n; i++)
		n += m->candidate[i].status == status;
	return n;
}

void vn_many_next(const vn_many *m, vn_lines *lines)
{
	const int shown = vn_many_count(m, 1) ? 1 : 0;
	if (m->vote && m->candidate[m->elected].status) /* no majority, so no reference to explain the others */
		return;
	for (int i = 0; i < m->n; i++) {
		const vn_many_candidate *x = &m->candidate[i];
		if (x->next.n && x->status == shown)
			vn_lines_add(lines, "%s", x->next.line[0]);
	}
}

static void say_leaves(const vn_many *m, vn_lines *lines)
{
	for (int i = 0; i < m->n; i++) {
		const vn_many_candidate *x = &m->candidate[i];
		if (x->first >= 0)
			vn_lines_add(lines, "%c leaves%s at %s", vn_many_letter(i), m->vote ? " the majority" : "",
			             m->row[x->first].label);
		else if (x->status < 2)
			vn_lines_add(lines, "%c never leaves %s", vn_many_letter(i), m->vote ? "the majority" : "its limits");
	}
}

void vn_many_say(const vn_many *m, vn_lines *lines)
{
	int odd[VN_MANY_MOST] = { 0 }, from[VN_MANY_MOST] = { 0 }, all = 0, first = -1;

	say_leaves(m, lines);
	for (int row = 0; row < m->n_rows; row++) {
		const int who = vn_many_odd(m, row);
		if (who >= 0 && odd[who]++ == 0)
			from[who] = row;
		first = who == VN_MANY_ALL && all == 0 ? row : first;
		all += who == VN_MANY_ALL;
	}
	for (int i = 0; i < m->n; i++)
		if (odd[i])
			vn_lines_add(lines, "%c is the odd one out at %d checkpoint%s, first at %s", vn_many_letter(i), odd[i],
			             odd[i] == 1 ? "" : "s", m->row[from[i]].label);
	if (all && m->vote)
		vn_lines_add(lines, "there is no majority at %d checkpoint%s, first at %s", all, all == 1 ? "" : "s",
		             m->row[first].label);
	else if (all)
		vn_lines_add(
			lines,
			"all candidates are outside at %d checkpoint%s, first at %s: compare two of them; where they agree, the "
			"reference is the odd one out",
			all, all == 1 ? "" : "s", m->row[first].label);
}
