/* sentences.h: puts trials into words, once all answers are known. No code reads these
 * words. */
#pragma once

#include "compare/trial/findings.h"

/* Fills id, words, also, heads_only and contradicted_by of every trial, and separating_input
 * of every explanation. */
void        vn_explain_put_sentences(const vn_opened *o, const vn_result *r, vn_all_findings *x);
/* Returns whether alias i of x (0 < i < n_alias) explains the checkpoint in the other steps too:
 * false if it was tried in a step that the first trial explains, and does not fit there or is
 * ruled out there.
 * all: the explanations known (NULL: none). */
bool        vn_alias_in_all_steps(const vn_result *r, const vn_all_findings *all, const vn_findings *x, int i);
/* Returns the name of the counterpart of an explained checkpoint: rotated keys for rotated queries,
 * cached values for cached keys, and vice versa; NULL: none. Whether the counterpart is wrong too
 * distinguishes some faults. *found: the counterpart in the comparison, or NULL if it was not
 * recorded. */
const char *vn_counterpart(const vn_opened *o, const vn_result *r, const vn_findings *x, const vn_checkpoint **found);
