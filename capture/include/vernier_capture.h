/* vernier_capture.h: record what an inference engine computes, straight into vernier's checkpoint file.
 *
 * The library libvernier-capture (pkg-config vernier-capture) for those who link HDF5 anyway; without it vernier_record.h
 * writes a directory that `vernier import` makes such a file of. C99 or C++11. The file: vernier's specs/checkpoint.md.
 *
 *     vernier_capture *c = vernier_capture_open("cand.h5", 0, "my engine", "f32");
 *     int64_t          shape[3] = { n_tokens, n_heads, head_dim };
 *     vernier_capture_step(c, ids, n_tokens);
 *     vernier_capture_put(c, "layer3.q_rope", "token head dim", "f32", q, 3, shape);
 *     if (vernier_capture_commit(c) != 0)
 *         fprintf(stderr, "%s\n", vernier_capture_error(c));
 *     vernier_capture_free(c);
 *
 * Errors   Functions return 0, or -1 after a failure. The first failure is kept: what is called behind it does nothing and
 *          returns -1, so a program may look at vernier_capture_commit alone. A NULL of open (no memory) fails everywhere.
 *          NULL where something is needed (ids, a name, a shape, strides, data, a key, a value, a config) is such a failure.
 * Cut off  The file is PATH.partial until vernier_capture_commit. Whatever ends the program before, kill -9 included, leaves a
 *          .partial file that opens, holds whole tensors only and says that it is incomplete; and PATH untouched.
 * Threads  One at a time per file. A thread of the library's own does the writing, and a process of its own, forked by open, runs
 *          HDF5: call open while no other thread of the program is inside HDF5.
 * Memory   Numbers are copied; they may change as soon as the call is back.
 */
#ifndef VERNIER_CAPTURE_H
#define VERNIER_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vernier_capture vernier_capture;

/* replace: 0: an existing PATH is refused. engine and precision ("f32", "f16", "bf16", or the engine's own word) are what reports
 * call the run. NULL: no memory; any other failure is that of the first call behind it. */
vernier_capture *vernier_capture_open(const char *path, int replace, const char *engine, const char *precision);

/* Anything else that explains the run: "device", "commit"... Keys have at most 31 bytes, values 255. */
int vernier_capture_say(vernier_capture *c, const char *key, const char *value);

/* The model's config.json, its text. */
int vernier_capture_config(vernier_capture *c, const char *json);

/* A forward call begins: the prompt, then every later call on the same cache. ids (n): the tokens that go in. Positions go on
 * from the call before; vernier_capture_step_at says them (n). */
int vernier_capture_step(vernier_capture *c, const int32_t *ids, size_t n);
int vernier_capture_step_at(vernier_capture *c, const int32_t *ids, const int32_t *positions, size_t n);

/* A tensor of the call. name: a checkpoint's ("layer3.q_rope", vernier's specs/points.md), or the engine's own, for
 * `vernier compare --names`. dims: one word an axis, outermost first, "token head dim"; NULL: those of the checkpoint. dtype: "f32",
 * "f16", "bf16", "f64", "i32", "f8_e4m3", "f8_e5m2". data: row-major, in this machine's byte order; may be NULL where the shape
 * has a 0. rank: at most 6. The axis token has as many rows as the call has tokens; of final_norm and logits it may have those of
 * each prompt's last token alone. A name is put once in a step. */
int vernier_capture_put(vernier_capture *c, const char *name, const char *dims, const char *dtype,
                        const void *data, int rank, const int64_t *shape);

/* The same of numbers that lie otherwise: element (i, j...) is at data + i * stride[0] + j * stride[1]..., in bytes, also
 * negative ones and 0. op: the engine's word for the operation that made it ("ROPE"), or NULL. */
int vernier_capture_put_strided(vernier_capture *c, const char *name, const char *dims, const char *dtype, const void *data,
                                int rank, const int64_t *shape, const int64_t *stride, const char *op);

/* All is there: finishes the file, on disk, under its name. Nothing but error and free may follow. */
int vernier_capture_commit(vernier_capture *c);

/* What failed first, one line; "" while nothing has. */
const char *vernier_capture_error(const vernier_capture *c);

/* Without a commit before it the .partial file stays, marked incomplete. Safe on NULL. */
void vernier_capture_free(vernier_capture *c);

#ifdef __cplusplus
}
#endif
#endif
