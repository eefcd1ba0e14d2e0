/* checkpoint.h: small questions about a checkpoint, its checks and its floor, and the words of --allow. */
#ifndef VN_COMPARE_CHECKPOINT_H
#define VN_COMPARE_CHECKPOINT_H

#include "compare/comparison/comparison.h"

/* "token_ids,missing" into a set; the word that is none, else NULL. */
const char *vn_allow_parse(const char *list, unsigned *set);

extern const char *const vn_allow_names; /* "token_ids|config|...", for help */

const char *vn_status_text(vn_status_word s);

/* How much of its limit a value uses: 1 is the limit, more is outside; INFINITY where
 * the value is none, or the limit is 0 and the value is not. */
double vn_check_used(const vn_check *k);

/* What keeps it from being measured, at most 199 bytes and fit to be shown. Without memory nothing. */
__attribute__((format(printf, 2, 3)))
void      vn_checkpoint_say(vn_checkpoint *p, const char *format, ...);

/* Are the candidate's weights known to be others than the reference's? Then they are the model's no more (--allow weights). */
bool      vn_other_weights(const vn_comparison *c);

/* A measured value for a report. NaN: not measured, or no position is finite on both sides, where zero error would
 * say that all is well. Counts (nonfinite, differing) always have a value. */
double    vn_metric_shown(const vn_checkpoint *p, vn_metric m);

double    vn_floor_value(const vn_checkpoint *p, vn_metric m); /* NaN: not known */

/* As options->allow has it (options NULL: nothing is allowed), of a recording that is opened for c: before anything is read of it. */
void      vn_comparison_allow(const vn_comparison *c, vn_recording *r);

/* Pages of both files that were looked at count as memory until they are given back, 64 kB around a small tensor: by
 * vn_comparison_forget, which vn_comparison_looked calls where those of checkpoints come to 64 MB. Data that was handed out stays valid. */
void      vn_comparison_forget(vn_comparison *c);
void      vn_comparison_looked(vn_comparison *c, const vn_checkpoint *p);

/* The name with its step where that is not 0 ("step.2/layer3.q_rope"), printable; text of VN_LABEL bytes. */
#define VN_LABEL (4 * VN_NAME_MAX + 24)
const char *vn_label(const vn_checkpoint *p, char *text);

/* Sentences about a comparison fit into this. */
#define VN_WORDS 480

#endif
