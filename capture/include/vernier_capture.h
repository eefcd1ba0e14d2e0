/* vernier_capture.h: writes the tensors of an inference engine straight into a checkpoint file of
 * vernier.
 *
 * Link libvernier-capture (pkg-config vernier-capture); it needs HDF5. If your program should not
 * depend on HDF5, use vernier_record.h instead: it writes a directory, which `vernier import` turns
 * into a checkpoint file. C99 or C++11. `vernier help checkpoint.md` describes the file
 * format.
 *
 *     vernier_capture *c = vernier_capture_open("cand.h5", 0, "my engine", "f32");
 *     int64_t          shape[3] = { n_tokens, n_heads, head_dim };
 *     vernier_capture_step(c, ids, n_tokens);
 *     vernier_capture_put(c, "layer3.q_rope", "token head dim", "f32", q, 3, shape);
 *     if (vernier_capture_commit(c) != 0)
 *         fprintf(stderr, "%s\n", vernier_capture_error(c));
 *     vernier_capture_free(c);
 *
 * Errors   Functions return 0 on success and -1 on failure (and VERNIER_CAPTURE_STOPPED, if you ask
 *          to stop at the first difference). The first failure is kept: every later
 *          call does nothing and returns -1. So it is enough to check vernier_capture_commit. A
 *          NULL vernier_capture (open had no memory) fails in every function. A NULL argument where
 *          data is needed (ids, name, shape, strides, data, key, value, config) is an error.
 * Crashes  Until vernier_capture_commit the file is named PATH.partial and PATH is untouched. If
 *          the program ends between vernier_capture_open and that, even by kill -9, the .partial
 *          file can still be opened. It holds only whole tensors and is marked incomplete; what was
 *          put in the last 0.1 s may be missing, and what waits for a slow disk.
 * Threads  At most one thread at a time may use a vernier_capture. The library starts one thread,
 *          which writes, and forks one process in open, which runs HDF5. Call open only while no
 *          other thread of the program is inside HDF5.
 * Forks    A capture belongs to the process that opened it. In a child forked later, every call
 *          fails, vernier_capture_free leaves the file as it is, and exit is safe.
 * Memory   Data is copied. The caller may overwrite it as soon as a call returns.
 */
#ifndef VERNIER_CAPTURE_H
#define VERNIER_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vernier_capture vernier_capture;

/* Creates PATH.partial; one that an interrupted run left is overwritten, any other file of that
 * name is an error. replace: 0 refuses an existing PATH, 1 overwrites it on commit. Reports
 * name the run by engine and precision ("f32", "f16", "bf16", or a word of the engine's own).
 * Returns NULL if there is no memory. Any other failure is kept, and the next call returns -1. Free
 * the result with vernier_capture_free. */
vernier_capture *vernier_capture_open(const char *path, int replace, const char *engine, const char *precision);

/* Adds a fact about the run, such as "device" or "commit". A key has at most 31 bytes and is given
 * once; a value has at most 255 bytes. */
int vernier_capture_say(vernier_capture *c, const char *key, const char *value);

/* Adds the model's config: the text of its config.json. At most once. */
int vernier_capture_config(vernier_capture *c, const char *json);

/* Lists a weight that the engine has loaded, under the name and in the numbers, the order and the
 * format of the model's file: a weight that was never loaded, or loaded wrongly, is then seen. Only
 * its digest and statistics are written. A name is given once. dtype, data, shape: as of
 * vernier_capture_put. */
int vernier_capture_weight(vernier_capture *c, const char *name, const char *dtype, const void *data, int rank,
                           const int64_t *shape);

/* Compares the run, during recording, with the recording `reference` of another run, such as
 * yesterday's version. Only tensors that differ are written, each with the tensors put before it in
 * its layer. Call it before the first step. A tensor agrees if its digest is the reference's, or if
 * its nmse, sum (c - r)^2 / sum r^2, is at most keep_above; 0: 1e-9 for float32 and wider, 1e-5 for
 * narrower formats. Logits are left out only if they are equal. The reference must not be
 * PATH. The file lists what was left out
 * with its measured error, from which `vernier compare` judges it. Keeps the tensors of one layer
 * in memory, and forks a process to open the reference. */
int vernier_capture_against(vernier_capture *c, const char *reference, double keep_above);

/* Ends the run at the first tensor that differs from the reference. The call that puts this tensor
 * writes it and returns VERNIER_CAPTURE_STOPPED. Every later put and step does nothing and returns
 * the same: leave the forward pass and commit. The recording is then complete; its fact `stopped`
 * names the tensor. Call it after vernier_capture_against. */
enum { VERNIER_CAPTURE_STOPPED = 1 };
int vernier_capture_stop_at_first(vernier_capture *c);

/* Returns the name of the first tensor that differed from the reference, with its step
 * ("step.2/layer3.q_rope"); "" if none did so far. Valid until vernier_capture_free. */
const char *vernier_capture_differs(const vernier_capture *c);

/* Begins a step: one forward call, which is the prompt or any later call on the same cache. ids
 * (n): the input tokens, at least one. positions (n): their positions; vernier_capture_step
 * continues those of the previous step, from 0. */
int vernier_capture_step(vernier_capture *c, const int32_t *ids, size_t n);
int vernier_capture_step_at(vernier_capture *c, const int32_t *ids, const int32_t *positions, size_t n);

/* Writes one tensor of the current step.
 *   name   a checkpoint name ("layer3.q_rope", see `vernier points`), or the engine's own
 *          name for use with `vernier compare --names`. A step cannot hold two tensors of one name.
 *   dims   one word per axis, outermost first: "token head dim". NULL: the axes that the checkpoint
 *          has by definition.
 *   dtype  "f32", "f16", "bf16", "f64", "i32", "f8_e4m3" or "f8_e5m2"
 *   data   row-major, in this machine's byte order. May be NULL if an axis has length 0.
 *   shape  (rank) the length of each axis; rank is at most 6. The token axis has one row per token
 *          of the step; final_norm and logits may instead have one row per prompt, for its last
 *          token. */
int vernier_capture_put(vernier_capture *c, const char *name, const char *dims, const char *dtype, const void *data,
                        int rank, const int64_t *shape);

/* Sets the source line of the next tensor, which reports show as FILE:LINE. VERNIER_CAPTURE_HERE
 * sets its own line. The put functions do not set it, because most programs call them in one helper
 * function, so every tensor would get that function's line. A long path loses its beginning. */
int vernier_capture_at(vernier_capture *c, const char *file, int line);
#define VERNIER_CAPTURE_HERE(c) vernier_capture_at((c), __FILE__, __LINE__)

/* Same as vernier_capture_put, for data with strides: element (i, j...) is at data + i * stride[0]
 * + j * stride[1]... Strides are in bytes and may be negative or 0. op: the engine's name for the
 * operation that made the tensor ("ROPE"), or NULL. */
int vernier_capture_put_strided(vernier_capture *c, const char *name, const char *dims, const char *dtype,
                                const void *data, int rank, const int64_t *shape, const int64_t *stride,
                                const char *op);

/* Completes the file, flushes it to disk and renames it to PATH. Afterwards only
 * vernier_capture_error and vernier_capture_free may be called. */
int vernier_capture_commit(vernier_capture *c);

/* Returns the first error as one line, or "" if there was none. Valid until
 * vernier_capture_free. */
const char *vernier_capture_error(const vernier_capture *c);

/* Frees c. Without a commit, the .partial file remains, marked incomplete. NULL is allowed. */
void vernier_capture_free(vernier_capture *c);

#ifdef __cplusplus
}
#endif
#endif
