/* explain_words.h: explanations in words, the same in every report. */
#ifndef VN_COMPARE_EXPLAIN_WORDS_H
#define VN_COMPARE_EXPLAIN_WORDS_H

#include "compare/explain/explain.h"

#define VN_EXPLAINED 900

/* "R1: RoPE pairs columns 2i and 2i + 1, ...", or "none of 31 known mistakes fits". */
const char *vn_say_explained(const vn_comparison *c, const vn_explanation *x, char text[VN_EXPLAINED]);
/* How sure that is: what is left, the runner-up, aliases and what would separate them; else what the error looks like. */
void        vn_say_explained_more(const vn_comparison *c, const vn_explanation *x, vn_lines *lines);
/* All of them, a line each: origins with one answer share it ("layer0.q_rope and 23 more origins: R1, ..."). */
void        vn_say_explanations(const vn_comparison *c, vn_lines *lines);
/* The explanation of a checkpoint; NULL: it has none. */
const vn_explanation *vn_explanation_of(const vn_comparison *c, int point);

#endif
