/* words.h: a comparison in words, the same in every report. Names of checkpoints are
 * as vn_utf8_escape shows them; what else comes from files is passed on as it is. */
#ifndef VN_COMPARE_WORDS_H
#define VN_COMPARE_WORDS_H

#include "compare/comparison/checkpoint.h"

/* The name with its step where that is not 0 ("step.2/layer3.q_rope"), printable; text of VN_LABEL bytes. */
/* "OUTSIDE limits", and what goes with it: "5 of 38 checkpoints, 2 extra.", which
 * names nothing, and "It starts at layer0.v_proj: ...", "" where nothing is outside. */
const char *vn_say_verdict(const vn_comparison *c);
const char *vn_say_counts(const vn_comparison *c, char text[VN_WORDS]);
const char *vn_say_start(const vn_comparison *c, char text[VN_WORDS]);

/* Why origins are origins: half a sentence. */
const char *vn_say_origin(const vn_comparison *c);
/* Operations that are outside and only magnify what they were given, a line each, those that do it most. */
void vn_say_cleared(const vn_comparison *c, vn_lines *lines);

/* What became of it since the baseline, a line each: what got better among it. */
void vn_say_baseline(const vn_comparison *c, vn_lines *lines);

/* What logits come to, a line each: "logits: argmax agrees in 98.57 % ...". And
 * where the candidate comes near what its format can hold. */
void vn_say_scores(const vn_comparison *c, vn_lines *lines);

#endif
