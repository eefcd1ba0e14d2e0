/* logit_rows.h: finds the logits that follow each token of a recording.
 *
 * It does not matter which steps the tokens came in: one engine may have read a text at once, the
 * other token by token, or kept only the last row of a step.
 */
#pragma once

#include "capture/recording/recording.h"

typedef struct vn_logit_row {
	int     entry; /* -1: not recorded */
	int64_t row;
} vn_logit_row;

/* Finds the row of each of the first `tokens` tokens. *at: (tokens), by malloc. *width: V; 0: the
 * recording has no logits. VN_ERR_SHAPE for logits that are not (rows, V). */
vn_status vn_logit_rows_of(const vn_recording *r, int64_t tokens, vn_logit_row **at, int64_t *width, vn_error *err);

/* Reads which token has the highest score after each token of a recording. */
typedef struct vn_choices {
	vn_recording  *recording;
	vn_logit_row  *at;    /* (tokens) */
	int64_t        width; /* V; 0: the recording has no logits */
	unsigned char *room;  /* one row */
	int            held;  /* the entry that was read last; -1 */
} vn_choices;

/* Opens, as vn_logit_rows_of. Call vn_choices_close also after a failure. */
vn_status vn_choices_open(vn_choices *c, vn_recording *r, int64_t tokens, vn_error *err);
void      vn_choices_close(vn_choices *c);
/* Reads the row after a token, which must be recorded. *id: the place of its highest score, of
 * equal ones the first; -1: one is NaN. */
vn_status vn_choices_read(vn_choices *c, int64_t token, int64_t *id, vn_error *err);
