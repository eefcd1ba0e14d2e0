/* many_send.c: see many_send.h. */
#include "compare/many/many_send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------- */

static bool put_bytes(FILE *out, const void *x, size_t bytes)
{
	return bytes == 0 || fwrite(x, bytes, 1, out) == 1;
}

static bool get_bytes(FILE *in, void *x, size_t bytes)
{
	return bytes == 0 || fread(x, bytes, 1, in) == 1;
}

/* Its length, -1 for NULL, then the text. */
static bool put_text(FILE *out, const char *text)
{
	const int n = text ? (int)strlen(text) : -1;
	return put_bytes(out, &n, sizeof n) && (n < 0 || put_bytes(out, text, (size_t)n));
}

static bool get_text(FILE *in, char **text)
{
	int n;
	*text = NULL;
	if (!get_bytes(in, &n, sizeof n))
		return false;
	if (n < 0)
		return true;
	if (!(*text = calloc((size_t)n + 1, 1)))
		return false;
	return get_bytes(in, *text, (size_t)n);
}

static bool put_lines(FILE *out, const vn_lines *l)
{
	bool good = put_bytes(out, &l->n, sizeof l->n);
	for (int i = 0; i < l->n && good; i++)
		good = put_text(out, l->line[i]);
	return good;
}

static bool get_lines(FILE *in, vn_lines *l)
{
	int  n = 0;
	bool good = get_bytes(in, &n, sizeof n);
	for (int i = 0; i < n && good; i++) {
		char *text;
		if ((good = get_text(in, &text)))
			vn_lines_add(l, "%s", text);
		free(text);
	}
	return good && l->n == n;
}

/* ---- reports --------------------------------------------------------------------------- */

static bool put_report(FILE *out, const vn_many *m, const vn_many_kept *text)
{
	return put_bytes(out, &text->bytes, sizeof text->bytes) && (text->bytes == 0 || vn_many_copy(m, text, out));
}

static bool get_report(FILE *in, vn_many *m, vn_many_kept *text)
{
	char buffer[1 << 14];
	long left;

	*text = (vn_many_kept) { 0 };
	if (!get_bytes(in, &left, sizeof left))
		return false;
	if (left) {
		const long end = fseek(m->reports, 0, SEEK_END) == 0 ? ftell(m->reports) : -1;
		if (end < 0)
			return false;
		*text = (vn_many_kept) { end, left };
	}
	while (left > 0) {
		const size_t n = left < (long)sizeof buffer ? (size_t)left : sizeof buffer;
		if (!get_bytes(in, buffer, n) || (text->bytes && !put_bytes(m->reports, buffer, n)))
			return false;
		left -= (long)n;
	}
	return !text->bytes || fflush(m->reports) == 0;
}

/* ---- a candidate ----------------------------------------------------------------------- */

enum { TEXTS = 7 };

bool vn_many_send(const vn_many *m, FILE *out)
{
	const vn_many_candidate *x = &m->candidate[0];
	const char *const text[TEXTS] = { x->trouble, x->counts, x->start, x->about, x->ref_about, x->limits, x->floor };
	const int         n = x->status == 2 ? 0 : m->n_rows;
	bool good = put_bytes(out, &x->status, sizeof x->status) && put_bytes(out, &x->verdict, sizeof x->verdict) &&
	            put_bytes(out, x->digests, sizeof x->digests) && put_bytes(out, &x->first, sizeof x->first);

	for (int i = 0; i < TEXTS && good; i++)
		good = put_text(out, text[i]);
	good = good && put_lines(out, &x->warnings) && put_lines(out, &x->refusals) && put_lines(out, &x->next) &&
	       put_bytes(out, &n, sizeof n);
	for (int i = 0; i < n && good; i++)
		good = put_text(out, m->row[i].label) && put_text(out, m->row[i].name) &&
		       put_bytes(out, &m->row[i], sizeof m->row[i]) && put_bytes(out, &x->cell[i], sizeof x->cell[i]);
	return good && put_report(out, m, &x->json) && put_report(out, m, &x->page) && fflush(out) == 0;
}

static vn_status get_rows(FILE *in, vn_many *m, vn_many_candidate *x, int first, vn_error *err)
{
	int       n = 0;
	vn_status st = get_bytes(in, &n, sizeof n) ? VN_OK
	                                           : vn_fail(err, VN_ERR_IO, "the results of a process cannot be read");

	if (!st && n)
		st = vn_many_cells(m, x, n, err);
	for (int i = 0; i < n && !st; i++) {
		char        *label = NULL, *name = NULL;
		vn_many_row  row;
		vn_many_cell cell;
		if (!get_text(in, &label) || !get_text(in, &name) || !get_bytes(in, &row, sizeof row) ||
		    !get_bytes(in, &cell, sizeof cell)) {
			st = vn_fail(err, VN_ERR_IO, "the results of a process cannot be read");
		} else {
			row.label = label;
			row.name = name;
			st = vn_many_put(m, x, &row, &cell, i == first, err);
		}
		free(label);
		free(name);
	}
	return st || n == 0 ? st : vn_many_filled(m, x, err);
}

static bool get_words(FILE *in, vn_many_candidate *x, int *first)
{
	char **const text[TEXTS] = { &x->trouble, &x->counts, &x->start, &x->about, &x->ref_about, &x->limits, &x->floor };
	bool         good = get_bytes(in, &x->status, sizeof x->status) && get_bytes(in, &x->verdict, sizeof x->verdict) &&
	            get_bytes(in, x->digests, sizeof x->digests) && get_bytes(in, first, sizeof *first);

	for (int i = 0; i < TEXTS && good; i++)
		good = get_text(in, text[i]);
	return good && get_lines(in, &x->warnings) && get_lines(in, &x->refusals) && get_lines(in, &x->next);
}

vn_status vn_many_receive(vn_many *m, const char *path, FILE *in, vn_error *err)
{
	vn_many_candidate *x = &m->candidate[m->n++];
	int                first = -1;
	vn_status          st = VN_OK;

	*x = (vn_many_candidate) { .path = path, .first = -1 };
	if (fseek(in, 0, SEEK_SET) != 0 || !get_words(in, x, &first))
		st = vn_fail(err, VN_ERR_IO, "the results of a process cannot be read: %s", strerror(errno));
	if (!st)
		st = get_rows(in, m, x, first, err);
	if (!st && (!get_report(in, m, &x->json) || !get_report(in, m, &x->page)))
		st = vn_fail(err, VN_ERR_IO, "a temporary file for the reports of the candidates: %s", strerror(errno));
	return st;
}
