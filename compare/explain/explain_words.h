/* explain_words.h: writes explanations in words, the same in every report. */
#pragma once

#include "compare/trial/findings.h"

#define VN_EXPLAINED 900

/* Writes "R1: RoPE pairs columns 2i and 2i + 1, ...", or "none of 31 known mistakes fits". Returns
 * text. */
const char *vn_explain_say_one(const vn_opened *o, const vn_result *r, const vn_findings *x, char text[VN_EXPLAINED]);
/* Adds how certain the answer is: the residual, the runner-up, aliases and the input that would
 * separate them; without an answer, the shape of the error. */
void        vn_explain_say_more(const vn_opened *o, const vn_result *r, const vn_findings *x, vn_lines *lines);
/* Adds all explanations, one line each. Origins with one answer share a line ("layer0.q_rope and 23
 * more origins: R1, ..."). */
void        vn_explain_say_all(const vn_opened *o, const vn_result *r, vn_lines *lines);
