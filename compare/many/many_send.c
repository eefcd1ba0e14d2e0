/* many_send.c: see many_send.h. One function for each kind of value does both directions, so that
 * what is read is what was written. */
#include "compare/many/many_send.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct passage {
	FILE *file;
	bool  sends;
} passage;

static bool pass_bytes(const passage *c, void *x, size_t bytes)
{
	return bytes == 0 || (c->sends ? fwrite(x, bytes, 1, c->file) : fread(x, bytes, 1, c->file)) == 1;
}

/* Its length, -1 for NULL, then the text. A text that is received is allocated. */
static bool pass_text(const passage *c, char **text)
{
	int n = c->sends && *text ? (int)strlen(*text) : -1;

	if (!pass_bytes(c, &n, sizeof n))
		return false;
	if (!c->sends && n >= 0 && !(*text = calloc((size_t)n + 1, 1)))
		return false;
	return n < 0 || pass_bytes(c, *text, (size_t)n);
}

static bool pass_lines(const passage *c, vn_lines *l)
{
	int  n = l->n;
	bool good = pass_bytes(c, &n, sizeof n);
	for (int i = 0; i < n && good; i++) {
		char *text = c->sends ? l->line[i] : NULL;
		good = pass_text(c, &text);
		if (good && !c->sends)
			vn_lines_add(l, "%s", text);
		if (!c->sends)
			free(text);
	}
	return good && l->n == n;
}

/* Everything but the rows and the reports. first: its first divergence. */
static bool pass_words(const passage *c, vn_many_candidate *x, int *first)
{
	char **const text[] = { &x->verdict, &x->trouble,   &x->counts, &x->start,
		                    &x->about,   &x->ref_about, &x->limits, &x->floor };
	bool         good = pass_bytes(c, &x->status, sizeof x->status) && pass_bytes(c, x->digests, sizeof x->digests) &&
	            pass_bytes(c, first, sizeof *first);

	for (size_t i = 0; i < sizeof text / sizeof *text && good; i++)
		good = pass_text(c, text[i]);
	return good && pass_lines(c, &x->warnings) && pass_lines(c, &x->refusals) && pass_lines(c, &x->next);
}

/* text: its label and its name. */
static bool pass_row(const passage *c, char *text[2], vn_many_row *row, vn_many_cell *cell)
{
	return pass_text(c, &text[0]) && pass_text(c, &text[1]) && pass_bytes(c, &row->step, sizeof row->step) &&
	       pass_bytes(c, &row->layer, sizeof row->layer) && pass_bytes(c, cell, sizeof *cell);
}

/* A report that is received goes to the end of m->reports. */
static bool pass_report(const passage *c, vn_many *m, vn_many_kept *text)
{
	long n = text->bytes;

	if (!pass_bytes(c, &n, sizeof n))
		return false;
	if (c->sends || n == 0)
		return n == 0 || vn_many_copy(m, text, c->file);
	if (fseek(m->reports, 0, SEEK_END) != 0 || (text->from = ftell(m->reports)) < 0)
		return false;
	text->bytes = n;
	return vn_many_copy_bytes(c->file, n, m->reports) && fflush(m->reports) == 0;
}

bool vn_many_send(vn_many *m, FILE *out)
{
	const passage      c = { out, true };
	vn_many_candidate *x = &m->candidate[0];
	int                n = x->status == 2 ? 0 : m->n_rows;
	bool               good = pass_words(&c, x, &x->first) && pass_bytes(&c, &n, sizeof n);

	for (int i = 0; i < n && good; i++) {
		const vn_many_row *row = &m->row[i];
		char              *text[] = { (char *)(uintptr_t)row->label, (char *)(uintptr_t)row->name }; /* only read */
		good = pass_row(&c, text, &m->row[i], &x->cell[i]);
	}
	return good && pass_report(&c, m, &x->json) && pass_report(&c, m, &x->page) && fflush(out) == 0;
}

static vn_status receive_rows(const passage *c, vn_many *m, vn_many_candidate *x, int first, vn_error *err)
{
	int       n = 0;
	vn_status st = pass_bytes(c, &n, sizeof n) ? VN_OK
	                                           : vn_fail(err, VN_ERR_IO, "the results of a process cannot be read");

	if (!st && n)
		st = vn_many_cells(m, x, n, err);
	for (int i = 0; i < n && !st; i++) {
		char        *text[2] = { NULL };
		vn_many_row  row;
		vn_many_cell cell;
		if (pass_row(c, text, &row, &cell)) {
			row.label = text[0];
			row.name = text[1];
			st = vn_many_put(m, x, &row, &cell, i == first, err);
		} else {
			st = vn_fail(err, VN_ERR_IO, "the results of a process cannot be read");
		}
		free(text[0]);
		free(text[1]);
	}
	return st || n == 0 ? st : vn_many_filled(m, x, err);
}

vn_status vn_many_receive(vn_many *m, const char *path, FILE *in, vn_error *err)
{
	const passage      c = { in, false };
	vn_many_candidate *x = &m->candidate[m->n++];
	int                first = -1;
	vn_status          st = VN_OK;

	*x = (vn_many_candidate) { .path = path, .first = -1 };
	if (fseek(in, 0, SEEK_SET) != 0 || !pass_words(&c, x, &first))
		st = vn_fail(err, VN_ERR_IO, "the results of a process cannot be read: %s", strerror(errno));
	if (!st)
		st = receive_rows(&c, m, x, first, err);
	if (!st && (!pass_report(&c, m, &x->json) || !pass_report(&c, m, &x->page)))
		st = vn_fail(err, VN_ERR_IO, "a temporary file for the reports of the candidates: %s", strerror(errno));
	return st;
}
