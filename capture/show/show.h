/* show.h: a recording as `vernier show` prints it: as text, as JSON, and what must hold in it alone. All goes to stdout. */
#ifndef VN_CAPTURE_SHOW_H
#define VN_CAPTURE_SHOW_H

#include "capture/recording/recording.h"

/* ---- as text (show_text.c) ---------------------------------------------------------- */

/* Its path, whether it is complete (a line on stderr where it is not) and how many tensors it holds. */
void vn_show_state(const vn_recording *r);
/* The state, /run, the model and every step. */
void vn_show_all(vn_recording *r);
/* The table by which another revision or a matrix never loaded is seen. */
void vn_show_weights(const vn_recording *r);
/* A line for each tensor of a step. Statistics that the file does not say are computed. */
void vn_show_step(vn_recording *r, const vn_step *s);
/* Entry i, data its numbers: what the file says of it, statistics, first rows. */
void vn_show_tensor(const vn_recording *r, int i, const void *data);

/* ---- as JSON, and checked ----------------------------------------------------------- */

/* The whole recording, or entry i when i >= 0 (data: its numbers), as JSON to
 * stdout; schema "vernier-show/1". False when it cannot be written. */
bool vn_show_json(const vn_recording *r, int i, const void *data);

/* Words from files may hold anything, and a terminal obeys some of it: as vn_utf8_shown has them, to stdout. Returns the
 * bytes of that. */
size_t vn_show_put(const char *text);

/* Every digest in the file against the numbers, and every identity (identities.h); a line for each that is not so.
 * 0: all of it holds, 1: some does not, 2: err says. */
int vn_show_check(vn_recording *r, vn_error *err);

/* ---- into a file (show_values.c) ---------------------------------------------------- */

/* Entry i, data its numbers, to path, by whose ending: .txt or .csv, a line for each row of the last axis, with as many
 * digits as give the same number again; or .npy, with the same bits (bf16 and float8 as float32, which holds them). An
 * existing path is refused unless force. */
vn_status vn_show_values(const vn_recording *r, int i, const void *data, const char *path, bool force, vn_error *err);
/* Is that a path whose ending says a form? */
bool      vn_show_values_form(const char *path);

/* Element k of data as a double. */
double vn_show_value(const void *data, vn_dtype dtype, int64_t k);

#endif
