/* checkpoint.h: small functions on one checkpoint, which all chapters use; and the words of
 * --allow.
 *
 * Reads   request.options (allow), opened.ref, opened.cand; the measurement, checks and floor of a
 *         checkpoint
 * Fills   detail of a checkpoint; lines of notes and refusals
 */
#pragma once

#include "compare/comparison/comparison.h"

/* Parses a comma-separated list such as "token_ids,missing" and adds its vn_allow bits to *set.
 * Returns NULL, or the first unknown word (a pointer into list). */
const char *vn_allow_parse(const char *list, unsigned *set);

/* Writes the words of the vn_allow bits, in the order of vn_allow_names. */
enum { VN_ALLOW_WORDS = 200 };
void vn_allow_list(unsigned set, char list[VN_ALLOW_WORDS]);

extern const char *const vn_allow_names; /* "token_ids|positions|...", for help */

const char *vn_checkpoint_status_text(vn_checkpoint_status s);

/* Returns how much of its limit a value uses: 1 is the limit, more is outside. INFINITY if the
 * value is not finite, or if the limit is 0 and the value is not. */
double vn_check_limit_fraction(const vn_check *k);

/* Returns the largest limit fraction of its checks; NaN: it has none. */
double vn_checkpoint_limit_fraction(const vn_checkpoint *p);

/* Sets p->detail, the reason why the checkpoint was not measured: one printable line, cut to 199
 * bytes. If there is no memory, detail becomes NULL. */
__attribute__((format(printf, 2, 3))) void vn_checkpoint_say(vn_checkpoint *p, const char *format, ...);

/* Returns a measured value for a report, or NaN if it was not measured. Also NaN if no position is
 * finite on both sides, where an error of 0 would look like agreement. Counts (nonfinite,
 * differing) always have a value. */
double vn_metric_shown(const vn_checkpoint *p, vn_metric m);

double vn_floor_value(const vn_checkpoint *p, vn_metric m); /* NaN: not known */

/* Adds a line to remarks.refusals; or to remarks.notes, if the user allows the difference by name.
 * word: the name, a literal. */
__attribute__((format(printf, 5, 6))) void vn_remarks_refuse(const vn_opened *o, vn_remarks *remarks, vn_allow bit,
                                                             const char *word, const char *format, ...);

/* vn_recording_forget of both sides; vn_recording_was_read of a checkpoint that both have. */
void vn_opened_forget(const vn_opened *o);
void vn_opened_was_read(const vn_opened *o, const vn_checkpoint *p);

/* Writes the name, prefixed with the step unless that is 0 ("step.2/layer3.q_rope"), to text
 * (VN_LABEL bytes), in printable characters. Returns text. */
#define VN_LABEL (4 * VN_NAME_MAX + 24)
const char *vn_label(const vn_checkpoint *p, char *text);

/* Returns the name without its layer ("q_rope" for "layer3.q_rope"): a pointer into it. Another
 * engine's name is returned whole, unless its file states a layer: then without its first word ("q"
 * for "block3.q"). */
const char *vn_point_of(const vn_checkpoint *p);

/* Buffer size for one sentence about a comparison. */
#define VN_WORDS 480
