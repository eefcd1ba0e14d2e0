/* show_text.h: prints a recording for `vernier show` as text. */
#pragma once

#include "capture/recording/recording.h"

#include <stdio.h>

/* Prints its path, whether it is complete, and how many tensors it holds, without a newline. */
void vn_show_state(const vn_recording *r, FILE *out);
/* Prints the state, /run, the model and every step. */
void vn_show_all(vn_recording *r, FILE *out);
/* Prints the table of weights, which shows another revision, or a matrix that was never loaded. */
void vn_show_weights(const vn_recording *r, FILE *out);
/* Prints one line per tensor of a step. Computes statistics that the file does not have. */
void vn_show_step(vn_recording *r, const vn_step *s, FILE *out);
/* Prints entry i (data: its numbers): what the file states, statistics, first rows. */
void vn_show_tensor(const vn_recording *r, int i, const void *data, FILE *out);

/* Prints text from files as vn_utf8_shown does, so that a terminal does not obey it. Returns the
 * number of bytes printed. */
size_t vn_show_put(const char *text, FILE *out);

/* Returns element k of data as a double. */
double vn_show_value(const void *data, vn_dtype dtype, int64_t k);
