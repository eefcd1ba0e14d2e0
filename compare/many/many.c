/* many.c: see many.h. */
#include "compare/many/many.h"
#include "compare/comparison/checkpoint.h"
#include "compare/report/report.h"

#include "libref/base/alloc.h"
#include "libref/base/intern.h"
#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the head ---------------------------------------------------------------------- */

const char *vn_many_said(const vn_many_candidate *x, const char *key)
{
	return vn_document_member(x->head, key);
}

json_t *vn_many_list(const vn_many_candidate *x, const char *key)
{
	return json_object_get(x->head, key);
}

json_t *vn_many_member(const vn_many_candidate *x, const char *key)
{
	json_t *j = vn_many_list(x, key);
	return j ? json_incref(j) : json_null();
}

vn_verified vn_many_digests(const vn_many_candidate *x, int side)
{
	const json_t *n = json_array_get(vn_many_list(x, "digests"), (size_t)side);

	return (vn_verified) { json_integer_value(json_array_get(n, 0)), json_integer_value(json_array_get(n, 1)),
		                   json_integer_value(json_array_get(n, 2)) };
}

static json_t *digests_of(const vn_document *doc)
{
	json_t *both = json_array();

	for (int i = 0; i < 2; i++) {
		const vn_verified *v = &doc->verified[i];
		json_array_append_new(both, vn_json_integers((int64_t[]) { v->checked, v->wrong, v->without }, 3));
	}
	return both;
}

static json_t *head_of(const vn_document *doc)
{
	char limits[1200], floor[1200];

	snprintf(limits, sizeof limits, "%.800s (%.200s)", vn_document_limits(doc),
	         vn_document_member(doc->limits, "chosen"));
	snprintf(floor, sizeof floor, "%s", vn_document_text(doc->floor));
	return json_pack(
		"{s:i, s:O?, s:O?, s:O?, s:O?, s:O?, s:o, s:o, s:o, s:o, s:o, s:i, s:i}", "status", !doc->within, "verdict",
		doc->verdict_words, "counts", doc->summary, "start", doc->start, "warnings", doc->warnings, "next", doc->next,
		"about", vn_json_text(vn_document_member(doc->candidate, "recorded_by")), "ref_about",
		vn_json_text(vn_document_member(doc->reference, "recorded_by")), "limits",
		vn_json_text(vn_text_clean(limits, sizeof limits)), "floor", vn_json_text(vn_text_clean(floor, sizeof floor)),
		"digests", digests_of(doc), "rows", doc->n, "first", doc->first);
}

/* ---- the file ------------------------------------------------------------------------ */

FILE *vn_many_open(vn_error *err)
{
	FILE *file = tmpfile();

	if (!file)
		vn_fail(err, VN_ERR_IO, "a temporary file for the reports of the candidates: %s", strerror(errno));
	return file;
}

static vn_many_cell cell_of(const vn_document *doc, const vn_checkpoint *p)
{
	vn_many_cell x = { .measured = p->m.n > 0,
		               .fails = p->fails,
		               .origin = p->origin,
		               .status = p->status,
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

/* Writes a checkpoint in one line, as read_row reads it: numbers without loss, and the label. */
static bool write_row(const vn_document *doc, const vn_checkpoint *p, FILE *file)
{
	const vn_many_cell x = cell_of(doc, p);
	char               label[VN_LABEL];

	return fprintf(file, "%d %d %d %d %d %d %a %a %a %a %a %s\n", p->step, p->layer, x.status, x.measured, x.fails,
	               x.origin, x.nmse, x.cosine, x.max_abs, x.max_rel, x.over_floor, vn_label(p, label)) > 0;
}

/* Reads checkpoint i from its line, which must live as long as the row. Returns false if it is
 * another text. */
static bool read_row(char *line, int i, vn_many_row *row, vn_many_cell *x)
{
	int status, measured, fails, origin, from = 0;

	*x = (vn_many_cell) { .there = true, .point = i };
	sscanf(line, "%d %d %d %d %d %d %lf %lf %lf %lf %lf %n", &row->step, &row->layer, &status, &measured, &fails,
	       &origin, &x->nmse, &x->cosine, &x->max_abs, &x->max_rel, &x->over_floor, &from);
	char *end = strchr(line, '\n');
	if (!from || !end)
		return false;
	*end = 0;
	x->status = (vn_checkpoint_status)status;
	x->measured = measured;
	x->fails = fails;
	x->origin = origin;
	row->label = line + from;
	return true;
}

/* Adds the number of bytes to the head. */
static vn_status put_report(json_t *head, const char *key, const vn_document *doc, bool page, FILE *file, vn_error *err)
{
	const vn_report_options o = { .page = page };
	const long              from = ftell(file);
	const vn_status         st = vn_report_json(doc, &o, file, err);

	json_object_set_new(head, key, json_integer(ftell(file) - from));
	return st;
}

vn_status vn_many_reduce(const vn_document *doc, unsigned keep, FILE *file, json_t **head, vn_error *err)
{
	vn_status st = VN_OK;

	*head = vn_alloc_check(head_of(doc));
	if (keep & VN_MANY_KEEP_JSON)
		st = put_report(*head, "json", doc, false, file, err);
	if (!st && (keep & VN_MANY_KEEP_PAGES))
		st = put_report(*head, "page", doc, true, file, err);
	bool good = !st;
	for (int i = 0; good && i < doc->n; i++)
		good = write_row(doc, &doc->checkpoint[i], file);
	if (!st && (!good || fflush(file) != 0))
		st = vn_fail(err, VN_ERR_IO, "a temporary file for the reports of the candidates: %s", strerror(errno));
	if (st) {
		json_decref(*head);
		*head = NULL;
	}
	return st;
}

/* A missing or damaged file concerns one candidate; lack of memory or a signal ends the run. */
vn_status vn_many_trouble(vn_status why, const vn_error *trouble, const vn_lines *refusals, json_t **head,
                          vn_error *err)
{
	char text[sizeof trouble->text];

	if (why == VN_ERR_NOMEM || why == VN_ERR_INTERRUPTED)
		return vn_fail(err, why, "%s", trouble->text);
	snprintf(text, sizeof text, "%s", trouble->text);
	*head = vn_alloc_check(json_pack("{s:i, s:s, s:o, s:o}", "status", 2, "verdict", "not compared", "trouble",
	                                 vn_json_text(vn_text_clean(text, sizeof text)), "refusals",
	                                 vn_json_lines(refusals)));
	return VN_OK;
}

bool vn_many_copy(const vn_many_candidate *x, const vn_many_kept *text, FILE *out)
{
	char buffer[1 << 14];
	long left = text->bytes;

	for (bool good = fseek(x->file, text->from, SEEK_SET) == 0; left > 0;) {
		const size_t most = left < (long)sizeof buffer ? (size_t)left : sizeof buffer,
					 n = good ? fread(buffer, 1, most, x->file) : 0;
		if (n == 0 || fwrite(buffer, 1, n, out) != n)
			return false;
		left -= (long)n;
	}
	return true;
}

/* ---- rows ------------------------------------------------------------------------ */

VN_ORDER_BY(by_label, vn_many_label, strcmp(x->label, y->label))

static void end_cells(vn_many *m, vn_many_candidate *x)
{
	/* There was room for rows that no candidate before it has. */
	x->cell = vn_alloc_resized(x->cell, (size_t)m->n_rows, sizeof *x->cell);
	x->n_cells = m->n_rows;
	m->by_label = vn_alloc_resized(m->by_label, (size_t)m->n_rows, sizeof *m->by_label);
	for (int i = m->n_sorted; i < m->n_rows; i++)
		m->by_label[i] = (vn_many_label) { m->row[i].label, i };
	m->n_sorted = m->n_rows;
	qsort(m->by_label, (size_t)m->n_rows, sizeof *m->by_label, by_label);
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

/* Its name follows from its label. Returns its place. */
static int add_row(vn_many *m, const vn_many_row *row)
{
	VN_FREED char *name = vn_alloc_text(row->label);
	int            prefix = 0;

	if (row->step)
		sscanf(name, "step.%*d/%n", &prefix);
	vn_utf8_unescape(name + prefix);
	m->row = vn_alloc_grown(m->row, (size_t)m->n_rows, sizeof *m->row);
	m->row[m->n_rows] = (vn_many_row) { vn_alloc_check(vn_intern(row->label)), vn_alloc_check(vn_intern(name + prefix)),
		                                row->step, row->layer };
	return m->n_rows++;
}

static void put_cell(vn_many *m, vn_many_candidate *x, const vn_many_row *row, const vn_many_cell *cell)
{
	int at = find_row(m, row->label);
	if (at < 0)
		at = add_row(m, row);
	x->cell[at] = *cell;
	x->first = cell->point == (int)json_integer_value(vn_many_list(x, "first")) ? at : x->first;
}

/* Adds the n checkpoints from the lines behind the reports. */
static vn_status add_cells(vn_many *m, vn_many_candidate *x, int n, vn_error *err)
{
	char        *line = NULL;
	size_t       room = 0;
	vn_many_row  row;
	vn_many_cell cell;
	bool         good = n == 0 || fseek(x->file, x->page.from + x->page.bytes, SEEK_SET) == 0;

	x->n_cells = m->n_rows + n;
	x->cell = vn_alloc_zero((size_t)x->n_cells, sizeof *x->cell);
	for (int i = 0; i < n && good; i++)
		if ((good = getline(&line, &room, x->file) > 0 && read_row(line, i, &row, &cell)))
			put_cell(m, x, &row, &cell);
	free(line);
	if (!good)
		return vn_fail(err, VN_ERR_IO, "the results of a process cannot be read");
	end_cells(m, x);
	return VN_OK;
}

vn_status vn_many_add(vn_many *m, const char *path, json_t *head, FILE *file, vn_error *err)
{
	vn_many_candidate *x = &m->candidate[m->n++];
	const long         json = (long)json_integer_value(json_object_get(head, "json"));

	*x = (vn_many_candidate) {
		.path = path,
		.status = (int)json_integer_value(json_object_get(head, "status")),
		.head = head,
		.first = -1,
		.file = file,
		.json = { 0, json },
		.page = { json, (long)json_integer_value(json_object_get(head, "page")) },
	};
	const int       rows = (int)json_integer_value(json_object_get(head, "rows"));
	const vn_status st = x->status == 2 ? VN_OK : add_cells(m, x, rows, err);
	if (file && x->json.bytes + x->page.bytes == 0) {
		fclose(file);
		x->file = NULL;
	}
	return st;
}

void vn_many_finish(vn_many *m)
{
	for (int i = 0; i < m->n; i++) {
		json_decref(m->candidate[i].head);
		free(m->candidate[i].cell);
		if (m->candidate[i].file)
			fclose(m->candidate[i].file);
	}
	VN_FREE(m->row, m->by_label);
	vn_lines_free(&m->notes);
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
		if (vn_many_list(&m->candidate[i], "ref_about"))
			return vn_many_said(&m->candidate[i], "ref_about");
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
		if (vn_document_lines(vn_many_list(x, "next")) && x->status == shown)
			vn_lines_add(lines, "%s", vn_document_line(vn_many_list(x, "next"), 0));
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
