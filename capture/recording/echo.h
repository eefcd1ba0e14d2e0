/* echo.h: do the recorded logits peak at the token that went in?
 *
 * They do if the tensor that reaches the output head resembles the embedding: layers add nothing,
 * or the head gets the wrong tensor. A model whose embedding and head are tied and whose layers add
 * little (untrained, or very small) does it too, without a mistake.
 */
#ifndef VN_CAPTURE_ECHO_H
#define VN_CAPTURE_ECHO_H

#include "capture/recording/recording.h"

/* At most this many rows are read, evenly spread. */
enum { VN_ECHO_ROWS = 256 };

typedef struct vn_echo {
	int64_t rows;    /* read */
	int64_t peaks;   /* of them, whose highest score is that of their input token */
	int64_t repeats; /* of them, behind which the text repeats the input token */
} vn_echo;

/* Counts. rows is 0 if there are no logits, or the recording is a batch of prompts. */
vn_status vn_echo_of(vn_recording *r, vn_echo *e, vn_error *err);

/* Is a share of n rows far above the share that is expected? */
bool vn_echoes(double share, double expected, int64_t n);

#endif
