/* many_markdown.c: reports several candidates as a comment on a pull request, with bounded size. */
#include "compare/many/many_report.h"
#include "compare/text/markup.h"
#include "libref/base/alloc.h"
#include "libref/base/say.h"

#include <stdlib.h>

enum {
	ROOM = 65000, /* bytes of all */
	HEAD = 400,   /* of the head of the table, and the line that counts omitted rows */
	SHOWN = 200,  /* of a name */
	WORDS = 600,  /* of a verdict */
	SAID = 40     /* lines */
};

static void print_candidates(const vn_many *m, FILE *out)
{
	char words[VN_MANY_VERDICT];
	fputs("| | candidate | verdict | limits | floor |\n|---|---|---|---|---|\n", out);
	for (int i = 0; i < m->n; i++) {
		const vn_many_candidate *x = &m->candidate[i];
		vn_say(out, "| %c | ", vn_many_letter(i));
		vn_markdown_code(out, x->path, SHOWN, 1);
		if (*vn_many_said(x, "about"))
			vn_markdown_say(out, SHOWN, 1, " %s", vn_many_said(x, "about"));
		vn_markdown_say(out, WORDS, 1, x->status ? " | \u274c %s" : " | \u2705 %s", vn_many_say_verdict(x, words));
		vn_markdown_say(out, SHOWN, 1, " | %s | %s |\n", *vn_many_said(x, "limits") ? vn_many_said(x, "limits") : "-",
		                *vn_many_said(x, "floor") ? vn_many_said(x, "floor") : "none");
	}
	fputc('\n', out);
}

static bool print_row(const void *ctx, int row, FILE *out)
{
	const vn_many *m = ctx;
	char           text[VN_MANY_CELL], odd[VN_MANY_LETTERS];
	if (!vn_many_fails(m, row))
		return false;
	vn_markdown_say(out, SHOWN, 1, "| %s", m->row[row].label);
	vn_say(out, " | %s", vn_many_say_odd(m, row, odd));
	for (int i = 0; i < m->n; i++)
		if (m->candidate[i].status < 2)
			vn_say(out, " | %s", vn_many_say_cell(vn_many_cell_of(m, row, i), text));
	fputs(" |\n", out);
	return true;
}

/* Writes rows in which a candidate is outside, in at most `room` bytes. */
static void print_table(const vn_many *m, size_t room, FILE *out)
{
	int left = 0;
	for (int row = 0; row < m->n_rows; row++)
		left += vn_many_fails(m, row);
	if (left == 0)
		return;
	vn_say(out, "%s\n\n| checkpoint | outside", vn_many_legend(m));
	for (int i = 0; i < m->n; i++)
		if (m->candidate[i].status < 2)
			vn_say(out, " | %c", vn_many_letter(i));
	fputs(" |\n|---|---", out);
	for (int i = 0; i < m->n; i++)
		if (m->candidate[i].status < 2)
			fputs("|--:", out);
	fputs("|\n", out);
	vn_markdown_rows(out, room > HEAD ? room - HEAD : 0, print_row, m, m->n_rows, &left);
	if (left)
		fprintf(out, "\n%d more checkpoints have a candidate outside; a comment has no room for them.\n", left);
	fputc('\n', out);
}

static void print_top(const vn_many *m, FILE *out)
{
	vn_lines said = { 0 };
	char     who[VN_MANY_WHO];

	vn_say(out, "### %s vernier: %s\n\n%s; judged by ", vn_many_status(m) ? "\u274c" : "\u2705", vn_many_say_all(m),
	       vn_many_say_who(m, who));
	vn_markdown_code(out, m->ref, SHOWN, 0);
	if (*vn_many_ref_about(m))
		vn_markdown_say(out, SHOWN, 0, " %s", vn_many_ref_about(m));
	fputs("\n\n", out);
	print_candidates(m, out);
	for (int i = 0; i < m->notes.n; i++)
		vn_markdown_say(out, WORDS, 0, "- note: %s\n", m->notes.line[i]);
	vn_many_say(m, &said);
	for (int i = 0; i < said.n && i < SAID; i++)
		vn_markdown_say(out, WORDS, 0, "- %s\n", said.line[i]);
	vn_lines_free(&said);
	if (vn_many_count(m, 1))
		vn_many_next(m, &said);
	for (int i = 0; i < said.n && i < SAID; i++) {
		vn_say(out, i ? "- then: " : "- next: ");
		vn_markdown_code(out, said.line[i], WORDS, 0);
		fputc('\n', out);
	}
	vn_lines_free(&said);
	fputc('\n', out);
}

vn_status vn_many_markdown(const vn_many *m, const vn_many_options *o, FILE *out, vn_error *err)
{
	vn_text_stream top;

	(void)o;
	(void)err;
	print_top(m, vn_alloc_stream(&top));
	vn_alloc_streamed(&top);
	fwrite(top.text, 1, top.bytes, out);
	free(top.text);
	print_table(m, top.bytes < ROOM ? ROOM - top.bytes : 0, out);
	return VN_OK;
}
