/* weights_report.h: writes the table of weights that differ, in every form of report.
 *
 * The forms are written from the JSON. Text from files is cleaned or escaped here. If no weights
 * were compared, w is NULL, the JSON null, and nothing is written. */
#pragma once

#include "compare/text/lines.h"
#include "compare/weights/weights.h"

#include <jansson.h>
#include <stdio.h>

/* Writes one line if all weights agree, else the table with at most `most` rows (0: all). */
void    vn_weights_text(const json_t *w, int most, FILE *out);
json_t *vn_weights_json(const vn_weights *w); /* specs/json.md */
json_t *vn_weights_rows(const vn_weights *w); /* the same without the list of each group's weights: for a table */
void    vn_weights_markdown(const json_t *w, FILE *out);
void    vn_weights_html(const json_t *w, FILE *out); /* a dt and dd of the story */
/* For refusals: the summary, then one line per row of the table. */
void    vn_weights_lines(const vn_weights *w, vn_lines *lines);
