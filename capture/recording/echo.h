/* echo.h: checks whether the recorded logits peak at the input token.
 *
 * They do if the tensor that reaches the output head resembles the embedding: layers add nothing,
 * or the head gets the wrong tensor. Without a mistake, it also happens in a model with tied
 * embedding and head whose layers add little (untrained, or very small).
 */
#pragma once

#include "capture/recording/recording.h"

/* At most this many rows are read, evenly spread. */
enum { VN_ECHO_ROWS = 256 };

typedef struct vn_echo {
	int64_t rows;    /* read */
	int64_t peaks;   /* rows whose highest score is that of the input token */
	int64_t repeats; /* rows after which the text repeats the input token */
} vn_echo;

/* Counts. rows is 0 if there are no logits, or the recording is a batch of prompts. */
vn_status vn_echo_of(vn_recording *r, vn_echo *e, vn_error *err);

/* Is `share`, measured on n rows, far above the expected share? */
bool vn_echoes(double share, double expected, int64_t n);
