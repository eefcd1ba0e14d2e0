/* check_words.h: writes a checked limit in words, the same in every report. */
#pragma once

#include "compare/comparison/checkpoint.h"

/* Writes, for example, "worst_token_nmse_over_floor 812, limit 16 at token 3 (fp16-acc32.yaml:10)",
 * with enough digits to show on which side of the limit the value is. Returns text. */
const char *vn_judge_say_check(const vn_checkpoint *p, const vn_check *k, char text[VN_WORDS]);

/* Returns why the rule of the worst check has its limit; NULL if no check is broken, or the rule
 * does not say. */
const char *vn_judge_worst_why(const vn_checkpoint *p);

/* Writes why a checkpoint fails: its worst check, or why it was not measured. Returns text. */
const char *vn_judge_say_failure(const vn_checkpoint *p, char text[VN_WORDS]);
