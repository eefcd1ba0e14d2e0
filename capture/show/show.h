/* show.h: prints a recording for `vernier show`: as text, as JSON, and the results of its checks. */
#ifndef VN_CAPTURE_SHOW_H
#define VN_CAPTURE_SHOW_H

#include "capture/recording/recording.h"
#include "capture/show/check.h"

#include "libref/base/json.h"

#include <stdio.h>

/* ---- as text (show_text.c) ---------------------------------------------------------- */

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

/* ---- as JSON, and checked ----------------------------------------------------------- */

/* Prints the whole recording, a step of it (step not NULL), or entry i if i >= 0 (data: its numbers), as JSON; schema
 * "vernier-show/1". Returns false if it cannot be written. */
bool vn_show_json(const vn_recording *r, const vn_step *step, int i, const void *data, FILE *out);

/* Prints text from files as vn_utf8_shown does, so that a terminal does not obey it. Returns the
 * number of bytes printed. */
size_t vn_show_put(const char *text, FILE *out);

/* Prints one line per finding, and one of counts. */
void vn_show_check(const vn_file_check *c, FILE *out);
void vn_show_counts(const vn_file_check *c, FILE *out); /* that line alone, without a newline */
/* Prints the same as JSON, schema "vernier-check/1". Returns false if it cannot be written. */
bool vn_show_check_json(const vn_recording *r, const vn_file_check *c, FILE *out);

/* Returns a text of a file as JSON, with bytes that are not UTF-8 as \xff; "" and NULL: null. */
json_t *vn_show_text(const char *s);

/* ---- what to do next (show_next.c) -------------------------------------------------- */

/* Returns commands for a shell, the most useful first: after the whole recording (i < 0) or entry i was
 * shown, and after it was checked. */
json_t *vn_show_next(const vn_recording *r, int i);
json_t *vn_show_next_after(const vn_recording *r, const vn_file_check *c);

/* ---- into a file (show_values.c) ---------------------------------------------------- */

/* Writes entry i (data: its numbers) to path, in the form that its ending selects. .txt or .csv:
 * one line per row of the last axis, with enough digits to give the same numbers back. .npy: the
 * same bits (bf16 and float8 as float32, which represents them exactly). Refuses an existing path
 * unless force. */
vn_status vn_show_values(const vn_entry *e, const void *data, const char *path, bool force, vn_error *err);
/* Does the path end in one of those forms? */
bool      vn_show_values_form(const char *path);

/* Returns element k of data as a double. */
double vn_show_value(const void *data, vn_dtype dtype, int64_t k);

#endif
