/* recorded_text.h: the scores of the tokens of a text, from logits that two engines recorded.
 *
 * Each pair of recordings is a text of its own, or the next window of one text. Row i of the
 * logits scores token i + 1, so the first token of a text is not scored. Which steps the tokens
 * came in does not matter: one engine may have read the text at once, the other token by token.
 */
#pragma once

#include "compare/evaluate/evaluate.h"

#include "capture/recording/recording.h"

typedef struct vn_recorded_text {
	int32_t        *ids; /* (n) the tokens of all texts, one text after the other */
	int64_t         n;
	vn_token_score *score; /* (m) of the tokens that both sides have a row for */
	int64_t         m;
	int64_t         vocab;    /* of the logits */
	int64_t         windows;  /* pairs added */
	int64_t         longest;  /* tokens of the longest pair */
	int64_t         unscored; /* tokens without a row on one side or both */
} vn_recorded_text;

/* Appends the scores of one pair. stride 0: the pair is a text of its own. Otherwise the pair is
 * the next window of one text: it begins `stride` tokens after the one before it, its first tokens
 * repeat that window's last ones, and only tokens that no window has scored yet are scored (as
 * vernier evaluate MODEL does).
 *
 * Both recordings need the same tokens, and logits (rows, V) of the same V in any format. threads
 * 0: one a processor. Errors: VN_ERR_MISMATCH for two recordings that do not belong together, or a
 * window that does not continue the text; VN_ERR_SHAPE for logits that are not (rows, V);
 * VN_ERR_DAMAGED for numbers that contradict their digest. After a failure, the caller may only
 * free x. */
vn_status vn_recorded_text_add(vn_recorded_text *x, vn_recording *ref, vn_recording *cand, int64_t stride, int threads,
                               vn_error *err);

void vn_recorded_text_free(vn_recorded_text *x);
