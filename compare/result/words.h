/* words.h: the sentences that all reports share.
 *
 * Names of checkpoints are escaped with vn_utf8_escape; other text from files is passed through
 * unchanged. */
#pragma once

#include "compare/comparison/checkpoint.h"

#include <limits.h>

/* Defines the unit "floor"; each report says it once. */
#define VN_FLOOR_MEANS "the error that the number format alone causes"

/* Defines the term "origin". */
#define VN_ORIGIN_MEANS "checkpoints whose own operation is at fault"

/* Return the verdict ("OUTSIDE limits"); the counts ("5 of 38 checkpoints, 2 extra."); and where
 * the error starts ("The error starts at layer0.v_proj: ...", "" if nothing is outside). */
const char *vn_report_say_verdict(const vn_opened *o, const vn_result *r);
const char *vn_report_say_counts(const vn_opened *o, const vn_result *r, char text[VN_WORDS]);
const char *vn_report_say_start(const vn_opened *o, const vn_result *r, char text[VN_WORDS]);

/* Writes which program recorded it, as the recording states: "vernier-ref 1.0, f16, cpu; trained
 * weights". NULL: writes "". Returns text, cleaned. */
enum { VN_RECORDER = 400 };
const char *vn_report_say_recorder(const vn_recording *r, char text[VN_RECORDER]);

/* Returns a path that is safe to print on a terminal, in room. */
const char *vn_printable_path(const char *path, char room[PATH_MAX]);

/* Adds "; 74 digests checked, 2 do not match, 3 tensors without one" to a text of `room` bytes. */
void        vn_report_say_digests(const vn_verified *d, char *text, size_t room);
/* Returns why the origins are origins, for use after a colon. */
const char *vn_report_say_origin(const vn_opened *o, const vn_result *r);
/* Adds a line for each operation that is outside but only magnifies the error of its inputs,
 * largest gain first. */
void        vn_report_say_cleared(const vn_opened *o, const vn_result *r, vn_lines *lines);

/* Adds the changes since the baseline: one line of counts, then one line for each improvement. */
void vn_report_say_baseline(const vn_opened *o, const vn_result *r, vn_lines *lines);

/* Adds a line for each tensor of logits ("logits: argmax agrees in 98.57 % ..."), and for each
 * tensor with a value above a quarter of its format's range. */
void vn_report_say_scores(const vn_opened *o, const vn_result *r, vn_lines *lines);
