/* weights_report.c: see weights_report.h. */
#include "compare/weights/weights_report.h"

#include "compare/text/json.h"
#include "compare/text/markup.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12, WIDEST = 60, CELL = 200 };

/* Number of rows shown of all. */
static int count_shown(int n, int most)
{
	return most > 0 && n > most + 1 ? most : n;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

/* The cells of a row: which, reference, candidate, difference, proof. */
enum { WHICH, SIDES, SAID = SIDES + 2, PROOF, N_CELLS };

static int rows_of(const json_t *w)
{
	return (int)json_array_size(json_object_get(w, "groups"));
}

static void cells_of(const json_t *w, int row, const char *cell[N_CELLS])
{
	static const char *const key[N_CELLS] = { "which", "reference", "candidate", "said", "proof" };
	const json_t            *group = json_array_get(json_object_get(w, "groups"), (size_t)row);

	for (int i = 0; i < N_CELLS; i++)
		cell[i] = text_of(group, key[i]);
}

/* ---- for a terminal ------------------------------------------------------------------- */

enum { ROOM = 1024 };

static char *clean(const char *cell, char text[ROOM])
{
	snprintf(text, ROOM, "%s", cell);
	return vn_text_clean(text, ROOM);
}

void vn_weights_text(const json_t *w, int most, FILE *out)
{
	const char *cell[N_CELLS];
	char        said[ROOM], which[ROOM];
	int         width = 0, side[2] = { 9, 9 };

	if (!*text_of(w, "summary"))
		return;
	vn_say(out, "%-10s %s\n", "weights", text_of(w, "summary"));
	const int n = count_shown(rows_of(w), most);
	for (int i = 0; i < n; i++) {
		cells_of(w, i, cell);
		const int k = (int)strlen(clean(cell[WHICH], which));
		width = k > width ? k : width;
		for (int s = 0; s < 2; s++)
			side[s] = (int)strlen(cell[SIDES + s]) > side[s] ? (int)strlen(cell[SIDES + s]) : side[s];
	}
	width = width > WIDEST ? WIDEST : width;
	if (n)
		vn_say(out, "  %-*s  %-*s  %-*s  difference\n", width, "", side[0], "reference", side[1], "candidate");
	for (int i = 0; i < n; i++) {
		cells_of(w, i, cell);
		clean(cell[WHICH], which);
		if ((int)strlen(which) > width)
			vn_say(out, "  %s\n", which);
		vn_say(out, "  %-*s  %-*s  %-*s  %s; %s\n", width, (int)strlen(which) > width ? "" : which, side[0],
		       cell[SIDES], side[1], cell[SIDES + 1], clean(cell[SAID], said), cell[PROOF]);
	}
	if (n < rows_of(w))
		fprintf(out, "  %d more rows (vernier weights shows them all)\n", rows_of(w) - n);
}

void vn_weights_lines(const vn_weights *w, vn_lines *lines)
{
	char      text[VN_WEIGHT_SAYS], summary[VN_WEIGHT_WORDS];
	const int n = count_shown(w->n_lines, SHOWN);

	vn_lines_add(lines, "weights: %s", vn_weights_summary(w, summary));
	for (int i = 0; i < n; i++) {
		const vn_weight_line *l = &w->line[i];
		vn_lines_add(lines, "weights: %s: %s, %s: %s; %s", l->which, l->side[0], l->side[1],
		             vn_weight_line_says(w, l, text), vn_weight_line_proof(w, l));
	}
	if (n < w->n_lines)
		vn_lines_add(lines, "weights: %d more rows (vernier weights shows them all)", w->n_lines - n);
}

/* ---- for programs ----------------------------------------------------------------------- */

static json_t *row_json(const vn_weight_row *r)
{
	return r ? json_pack("{s:s, s:o, s:s?, s:o, s:o, s:o, s:o}", "dtype", vn_dtype_name(r->dtype), "shape",
	                     vn_json_integers(r->shape.dim, r->shape.rank), "digest", *r->digest.hex ? r->digest.hex : NULL,
	                     "min", vn_json_real(r->stats.min), "max", vn_json_real(r->stats.max), "mean",
	                     vn_json_real(r->stats.mean), "rms", vn_json_real(r->stats.rms))
	         : json_null();
}

static json_t *weights_json(const vn_weights *w, const vn_weight_line *l)
{
	static const char *const measures[VN_N_WEIGHT_MEASURES] = { [VN_WEIGHT_APART] = "relative_difference",
		                                                        [VN_WEIGHT_CORRELATION] = "correlation",
		                                                        [VN_WEIGHT_RMS] = "rms_ratio",
		                                                        [VN_WEIGHT_PLACES] = "nonfinite_places" };
	json_t                  *list = json_array();

	for (int i = l->first; i < l->first + l->n; i++) {
		const vn_weight_difference *x = &w->found[i];
		json_t *one = json_pack("{s:o, s:i, s:o, s:o}", "name", vn_json_text((x->row[0] ? x->row[0] : x->row[1])->name),
		                        "layer", x->layer, "reference", row_json(x->row[0]), "candidate", row_json(x->row[1]));
		if (x->measured)
			json_object_set_new(one, measures[x->measured], vn_json_real(x->measure));
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *group_json(const vn_weights *w, const vn_weight_line *l, bool whole)
{
	static const char *const    proofs[] = { [VN_PROOF_STATISTICS] = "statistics",
		                                     [VN_PROOF_NUMBERS] = "numbers",
		                                     [VN_PROOF_TABLE] = "table",
		                                     [VN_PROOF_DIGEST] = "digest" };
	const vn_weight_difference *d = &w->found[l->first];
	char                        says[VN_WEIGHT_SAYS];

	return json_pack("{s:o, s:s, s:s, s:s, s:s?, s:o, s:b, s:s, s:o, s:o, s:s}", "which", vn_json_text(l->which),
	                 "reference", l->side[0], "candidate", l->side[1], "kind", d->kind, "id", *d->id ? d->id : NULL,
	                 "words", vn_json_text(d->words), "certain", d->certain, "evidence", proofs[d->proof], "weights",
	                 whole ? weights_json(w, l) : json_array(), "said", vn_json_text(vn_weight_line_says(w, l, says)),
	                 "proof", vn_weight_line_proof(w, l));
}

static json_t *report_json(const vn_weights *w, bool whole)
{
	char summary[VN_WEIGHT_WORDS];

	if (!w)
		return json_null();
	json_t *groups = json_array();
	for (int i = 0; i < w->n_lines; i++)
		json_array_append_new(groups, group_json(w, &w->line[i], whole));
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:s}", "reference", w->n[0], "candidate", w->n[1], "same",
	                 w->same, "rounded", w->rounded, "same_statistics", w->alike, "differ", w->n_found, "groups",
	                 groups, "summary", vn_weights_summary(w, summary));
}

json_t *vn_weights_json(const vn_weights *w)
{
	return report_json(w, true);
}

json_t *vn_weights_rows(const vn_weights *w)
{
	return report_json(w, false);
}

/* ---- for pages ------------------------------------------------------------------------------- */

void vn_weights_markdown(const json_t *w, FILE *out)
{
	const char *cell[N_CELLS];

	if (!*text_of(w, "summary"))
		return;
	fputs("- **Weights** ", out);
	vn_markdown_text(out, text_of(w, "summary"), 0);
	fputc('\n', out);
	const int n = count_shown(rows_of(w), SHOWN);
	if (n)
		fputs("\n| weights | reference | candidate | difference | |\n|---|---|---|---|---|\n", out);
	for (int i = 0; i < n; i++) {
		cells_of(w, i, cell);
		for (int k = 0; k < PROOF; k++) {
			fputs("| ", out);
			vn_markdown_code(out, cell[k], CELL, 1);
			fputc(' ', out);
		}
		fputs("| ", out);
		vn_markdown_text(out, cell[PROOF], 1);
		fputs(" |\n", out);
	}
	if (n < rows_of(w))
		fprintf(out, "\n%d more rows.\n", rows_of(w) - n);
	if (n)
		fputc('\n', out);
}

void vn_weights_html(const json_t *w, FILE *out)
{
	static const char *const head[N_CELLS] = { "", "reference", "candidate", "difference", "" };
	const char              *cell[N_CELLS];

	if (!*text_of(w, "summary"))
		return;
	vn_html_say(out, "<dt>weights</dt><dd>%s", text_of(w, "summary"));
	if (rows_of(w))
		fputs("\n<div class=\"scroll\"><table class=\"weights stack\">"
		      "<thead><tr><th>weights</th><th>reference</th><th>candidate</th><th>difference</th>"
		      "<th></th></tr></thead><tbody>\n",
		      out);
	for (int i = 0; i < rows_of(w); i++) {
		cells_of(w, i, cell);
		fputs("<tr>", out);
		for (int k = 0; k < N_CELLS; k++) {
			vn_say(out, "<td data-head=\"%s\">%s", head[k], k ? "" : "<code>");
			vn_html_text(out, cell[k]);
			fputs(k ? "</td>" : "</code></td>", out);
		}
		fputs("</tr>\n", out);
	}
	fputs(rows_of(w) ? "</tbody></table></div></dd>\n" : "</dd>\n", out);
}
