/* words.h: a comparison in words, the same in every report. Names of checkpoints are
 * as vn_utf8_escape shows them; what else comes from files is passed on as it is. */
#ifndef VN_COMPARE_WORDS_H
#define VN_COMPARE_WORDS_H

#include "compare/compare.h"

/* The name with its step where that is not 0 ("step.2/layer3.q_rope"), printable; text of VN_LABEL bytes. */
#define VN_LABEL (4 * VN_NAME_MAX + 24)
const char *vn_label(const vn_checkpoint *p, char *text);

/* "OUTSIDE limits", and what goes with it: "5 of 38 checkpoints, 2 extra.", which
 * names nothing, and "It starts at layer0.v_proj: ...", "" where nothing is outside. */
#define VN_WORDS 480
const char *vn_say_verdict(const vn_comparison *c);
const char *vn_say_counts(const vn_comparison *c, char text[VN_WORDS]);
const char *vn_say_start(const vn_comparison *c, char text[VN_WORDS]);

/* Why origins are origins: half a sentence. */
/* "its columns lie as (freq 2), and what reads it is right so", with the axes of a name map that says so: of one whose replay.columns is set. */
const char *vn_say_lying(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS]);
const char *vn_say_origin(const vn_comparison *c);
/* "itself nmse 0.5 (1e+07 x floor), inherited 3e-07, ...": of one that was replayed; else "". */
const char *vn_say_replay(const vn_comparison *c, const vn_checkpoint *p, char text[VN_WORDS]);
/* Operations that are outside and only magnify what they were given, a line each, those that do it most. */
void vn_say_cleared(const vn_comparison *c, vn_lines *lines);

/* "worst_token_nmse_over_floor 812, limit 16 at token 3 (fp16-acc32.yaml:10)", with
 * as many digits as it takes to see on which side of the limit the value is. */
const char *vn_say_check(const vn_checkpoint *p, const vn_check *k, char text[VN_WORDS]);
/* Why a checkpoint fails: its worst check, or what kept it from being measured. */
const char *vn_say_failure(const vn_checkpoint *p, char text[VN_WORDS]);

/* What became of it since the baseline, a line each: what got better among it. */
void vn_say_baseline(const vn_comparison *c, vn_lines *lines);

/* What logits come to, a line each: "logits: argmax agrees in 98.57 % ...". And
 * where the candidate comes near what its format can hold. */
void vn_say_scores(const vn_comparison *c, vn_lines *lines);

#endif
