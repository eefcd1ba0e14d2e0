/* logit_rows.h: finds the logits that follow each token of a recording.
 *
 * It does not matter which steps the tokens came in: one engine may have read a text at once, the
 * other token by token, or kept only the last row of a step.
 */
#ifndef VN_CAPTURE_LOGIT_ROWS_H
#define VN_CAPTURE_LOGIT_ROWS_H

#include "capture/recording/recording.h"

typedef struct vn_logit_row {
	int     entry; /* -1: not recorded */
	int64_t row;
} vn_logit_row;

/* Finds the row of each of the first `tokens` tokens. *at: (tokens), by malloc. *width: V; 0: the
 * recording has no logits. VN_ERR_SHAPE for logits that are not (rows, V). */
vn_status vn_logit_rows_of(const vn_recording *r, int64_t tokens, vn_logit_row **at, int64_t *width, vn_error *err);

/* Returns the place of the highest of n scores, of equal ones the first; -1: one is NaN. */
int64_t vn_argmax(const unsigned char *data, vn_dtype dtype, int64_t n);

#endif
