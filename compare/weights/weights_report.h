/* weights_report.h: writes the table of weights that differ, in every form of report.
 *
 * Text from files is cleaned or escaped here. w may be NULL (no weights were compared): then
 * nothing is written (JSON: null). */
#ifndef VN_COMPARE_WEIGHTS_REPORT_H
#define VN_COMPARE_WEIGHTS_REPORT_H

#include "compare/text/lines.h"
#include "compare/weights/weights.h"

#include <jansson.h>
#include <stdio.h>

/* Writes one line if all weights agree, else the table with at most `most` rows (0: all). */
void    vn_weights_text(const vn_weights *w, int most, FILE *out);
json_t *vn_weights_json(const vn_weights *w); /* specs/json.md */
void    vn_weights_markdown(const vn_weights *w, FILE *out);
void    vn_weights_html(const vn_weights *w, FILE *out); /* a dt and dd of the story */
/* For refusals: the summary, then one line per row of the table. */
void    vn_weights_lines(const vn_weights *w, vn_lines *lines);

#endif
