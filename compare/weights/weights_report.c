/* weights_report.c: see weights_report.h. */
#include "compare/weights/weights_report.h"
#include "compare/weights/weights.h"

#include "compare/text/json.h"
#include "compare/text/markup.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12, WIDEST = 60, CELL = 200 };

static const vn_weight_difference *first_of(const vn_weights *w, const vn_weight_line *l)
{
	return &w->found[l->first];
}

/* Number of rows shown of all. */
static int count_shown(const vn_weights *w, int most)
{
	return most > 0 && w->n_lines > most + 1 ? most : w->n_lines;
}

enum { WHICH = 1024 };

static const char *shown_which(const vn_weight_line *l, char text[WHICH])
{
	snprintf(text, WHICH, "%s", l->which);
	return vn_text_clean(text, WHICH);
}

/* ---- for a terminal ------------------------------------------------------------------- */

void vn_weights_text(const vn_weights *w, int most, FILE *out)
{
	char text[VN_WEIGHT_SAYS], summary[VN_WEIGHT_WORDS], which[WHICH];
	int  width = 0, side[2] = { 9, 9 };

	if (!w)
		return;
	vn_say(out, "%-10s %s\n", "weights", vn_weights_summary(w, summary));
	const int n = count_shown(w, most);
	for (int i = 0; i < n; i++) {
		const int k = (int)strlen(shown_which(&w->line[i], which));
		width = k > width ? k : width;
		for (int s = 0; s < 2; s++)
			side[s] = (int)strlen(w->line[i].side[s]) > side[s] ? (int)strlen(w->line[i].side[s]) : side[s];
	}
	width = width > WIDEST ? WIDEST : width;
	if (n)
		vn_say(out, "  %-*s  %-*s  %-*s  difference\n", width, "", side[0], "reference", side[1], "candidate");
	for (int i = 0; i < n; i++) {
		const vn_weight_line *l = &w->line[i];
		vn_weight_line_says(w, l, text);
		shown_which(l, which);
		if ((int)strlen(which) > width)
			vn_say(out, "  %s\n", which);
		vn_say(out, "  %-*s  %-*s  %-*s  %s; %s\n", width, (int)strlen(which) > width ? "" : which, side[0], l->side[0],
		       side[1], l->side[1], vn_text_clean(text, sizeof text), vn_weight_line_proof(w, l));
	}
	if (n < w->n_lines)
		fprintf(out, "  %d more rows (vernier weights shows them all)\n", w->n_lines - n);
}

void vn_weights_lines(const vn_weights *w, vn_lines *lines)
{
	char      text[VN_WEIGHT_SAYS], summary[VN_WEIGHT_WORDS];
	const int n = count_shown(w, SHOWN);

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

static json_t *group_json(const vn_weights *w, const vn_weight_line *l)
{
	static const char *const    measures[VN_N_WEIGHT_MEASURES] = { [VN_WEIGHT_APART] = "relative_difference",
		                                                           [VN_WEIGHT_CORRELATION] = "correlation",
		                                                           [VN_WEIGHT_RMS] = "rms_ratio",
		                                                           [VN_WEIGHT_PLACES] = "nonfinite_places" };
	static const char *const    proofs[] = { [VN_PROOF_STATISTICS] = "statistics",
		                                     [VN_PROOF_NUMBERS] = "numbers",
		                                     [VN_PROOF_TABLE] = "table",
		                                     [VN_PROOF_DIGEST] = "digest" };
	const vn_weight_difference *d = first_of(w, l);
	json_t                     *list = json_array();

	for (int i = l->first; i < l->first + l->n; i++) {
		const vn_weight_difference *x = &w->found[i];
		json_t *one = json_pack("{s:o, s:i, s:o, s:o}", "name", vn_json_text((x->row[0] ? x->row[0] : x->row[1])->name),
		                        "layer", x->layer, "reference", row_json(x->row[0]), "candidate", row_json(x->row[1]));
		if (x->measured)
			json_object_set_new(one, measures[x->measured], vn_json_real(x->measure));
		json_array_append_new(list, one);
	}
	return json_pack("{s:o, s:s, s:s, s:s, s:s?, s:o, s:b, s:s, s:o}", "which", vn_json_text(l->which), "reference",
	                 l->side[0], "candidate", l->side[1], "kind", d->kind, "id", *d->id ? d->id : NULL, "words",
	                 vn_json_text(d->words), "certain", d->certain, "evidence", proofs[d->proof], "weights", list);
}

json_t *vn_weights_json(const vn_weights *w)
{
	if (!w)
		return json_null();
	json_t *groups = json_array();
	for (int i = 0; i < w->n_lines; i++)
		json_array_append_new(groups, group_json(w, &w->line[i]));
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "reference", w->n[0], "candidate", w->n[1], "same", w->same,
	                 "rounded", w->rounded, "same_statistics", w->alike, "differ", w->n_found, "groups", groups);
}

/* ---- for pages ------------------------------------------------------------------------------- */

void vn_weights_markdown(const vn_weights *w, FILE *out)
{
	char text[VN_WEIGHT_SAYS];

	if (!w)
		return;
	vn_say(out, "- **Weights** %s\n", vn_weights_summary(w, text));
	const int n = count_shown(w, SHOWN);
	if (n)
		fputs("\n| weights | reference | candidate | difference | |\n|---|---|---|---|---|\n", out);
	for (int i = 0; i < n; i++) {
		const vn_weight_line *l = &w->line[i];
		const char           *cell[] = { l->which, l->side[0], l->side[1], vn_weight_line_says(w, l, text) };
		for (size_t k = 0; k < sizeof cell / sizeof *cell; k++) {
			fputs("| ", out);
			vn_markdown_code(out, cell[k], CELL, 1);
			fputc(' ', out);
		}
		vn_say(out, "| %s |\n", vn_weight_line_proof(w, l));
	}
	if (n < w->n_lines)
		fprintf(out, "\n%d more rows.\n", w->n_lines - n);
	if (n)
		fputc('\n', out);
}

void vn_weights_html(const vn_weights *w, FILE *out)
{
	char text[VN_WEIGHT_SAYS];

	if (!w)
		return;
	vn_say(out, "<dt>weights</dt><dd>%s", vn_weights_summary(w, text));
	if (w->n_lines)
		fputs("\n<div class=\"scroll\"><table class=\"weights\">"
		      "<thead><tr><th>weights</th><th>reference</th><th>candidate</th><th>difference</th>"
		      "<th></th></tr></thead><tbody>\n",
		      out);
	for (int i = 0; i < w->n_lines; i++) {
		const vn_weight_line *l = &w->line[i];
		const char           *cell[] = { l->which, l->side[0], l->side[1], vn_weight_line_says(w, l, text),
			                             vn_weight_line_proof(w, l) };
		fputs("<tr>", out);
		for (size_t k = 0; k < sizeof cell / sizeof *cell; k++) {
			fputs(k ? "<td>" : "<td><code>", out);
			vn_html_text(out, cell[k]);
			fputs(k ? "</td>" : "</code></td>", out);
		}
		fputs("</tr>\n", out);
	}
	fputs(w->n_lines ? "</tbody></table></div></dd>\n" : "</dd>\n", out);
}
