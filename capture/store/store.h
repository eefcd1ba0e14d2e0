/* store.h: writes a checkpoint file.
 *
 * Format: specs/checkpoint.md. A store writes PATH.partial and renames it on commit. If it ends in
 * any other way, kill -9 included, the .partial file remains: it can be opened, and is marked
 * incomplete; PATH is untouched. Tensors are given in execution order, in pieces (as to a vn_sink).
 * The store's own thread writes them, so a piece costs the caller one copy, and the caller waits
 * only if more than the queue's budget is unwritten.
 *
 * Owner    the code that creates a store commits or abandons it.
 * Threads  one thread at a time per store. HDF5 runs in a process of its own (scribe.h), which
 *          vn_store_create forks.
 * Errors   an error of the writing thread is reported by the next call and by commit. Check commit:
 *          a full disk often shows only there.
 */
#pragma once

#include "capture/store/label.h"
#include "libref/base/facts.h"
#include "libref/model/model.h"
#include "libref/plan/tap.h"

typedef struct vn_store vn_store;

/* Creates a store. force: an existing PATH will be replaced on commit; otherwise it is refused
 * here. The plan is borrowed until the store ends. plan NULL: tensors are given by name
 * (vn_store_begin), and the file has no /plan. */
vn_status vn_store_create(const char *path, bool force, const vn_plan *plan, vn_store **store, vn_error *err);

/* Same without a plan, for rewriting a whole file: PATH.partial holds no tensor before the commit,
 * a step may have any number of names, in linear time, and a failure leaves no PATH.partial. */
vn_status vn_store_create_whole(const char *path, bool force, vn_store **store, vn_error *err);

/* Writes /run: facts as attributes, all token ids with their positions. Ids that are not yet known
 * are -1, and come last. */
vn_status vn_store_run(vn_store *s, const vn_facts *facts, const int32_t *ids, const int32_t *positions, int64_t n,
                       vn_error *err);
/* The ids of the next vn_store_run are those of so many prompts of one length, one after the other,
 * and all are known. 0: of one prompt. */
void      vn_store_batch(vn_store *s, int64_t prompts);
/* Sets id number `at`, which was -1. Call it before the step that processes the token. */
vn_status vn_store_token(vn_store *s, int64_t at, int32_t id, vn_error *err);
/* Writes the text of each of the n tokens, escaped as by vn_utf8_escape. */
vn_status vn_store_token_text(vn_store *s, char *const *text, int64_t n, vn_error *err);
/* Writes /run/left_out: a line (capture/recording/left_out.h) for each of n tensors that agreed
 * with a reference. At most once, after the last vn_store_run. */
vn_status vn_store_left_out(vn_store *s, char *const *line, int64_t n, vn_error *err);
/* Adds facts to /run, or replaces earlier ones. */
vn_status vn_store_facts(vn_store *s, const vn_facts *facts, vn_error *err);
/* Writes /model and, if the store has a plan, /plan. rows: (n_weights of the model's plan); NULL:
 * no table of weights. */
vn_status vn_store_model(vn_store *s, const vn_model *m, const vn_weight_row *rows, vn_error *err);
/* Same for a model that only these texts describe (NULL: left out), and a table of n weights; rows
 * NULL: none. */
typedef struct vn_model_words {
	const char *family, *config, *provenance, *format, *path;
} vn_model_words;
vn_status vn_store_words(vn_store *s, const vn_model_words *w, const vn_weight_row *rows, int n, vn_error *err);

/* Begins a step; tensors that follow belong to it. Rows as from vn_taps_select. */
vn_status vn_store_step(vn_store *s, const vn_step *step, vn_error *err);
/* Returns the sink to put into vn_taps. Owned by the store. */
vn_sink   vn_store_sink(vn_store *s);
/* Writes a tensor by name: begin, all its numbers in one or more writes, end. The label is copied.
 * A name that the step already has is an error of the writing thread. */
vn_status vn_store_begin(vn_store *s, const vn_tensor_label *l, vn_dtype dtype, const vn_shape *shape, vn_error *err);
vn_status vn_store_write(vn_store *s, const void *data, size_t elements, vn_error *err);
vn_status vn_store_end(vn_store *s, vn_error *err);
/* Sets the function that copies written numbers: copy(to, from, bytes, threads). Default: memcpy in
 * the caller's thread. */
void vn_store_copier(vn_store *s, void (*copy)(void *to, const void *from, size_t bytes, int threads), int threads);
/* Writes second names that were asked for (want: as in vn_taps, aliases unresolved), as hard links
 * to what this step wrote. */
vn_status vn_store_aliases(vn_store *s, const bool *want, vn_error *err);

/* Marks the recorded run as interrupted: commit then leaves the file marked incomplete, under its
 * final name. */
void      vn_store_cut(vn_store *s);
/* Completes the file: marks it complete, syncs, renames. Frees the store and sets *s to NULL, also
 * after a failure. */
vn_status vn_store_commit(vn_store **s, vn_error *err);
/* Waits for tensors in progress, and returns how many are in the file. bytes may be NULL. */
int64_t   vn_store_tensors(vn_store *s, int64_t *bytes);
/* Ends the store without commit. The .partial file remains, marked incomplete; it is removed if it
 * has no tensors, or the store rewrites a whole file. Returns how many tensors remain in it, or -1
 * if that is not known because HDF5 crashed. *s may be NULL. */
int64_t   vn_store_abandon(vn_store **s);
/* In a forked child of the process that created the store: closes the child's copies of its
 * descriptors, and sets *s to NULL. The file, its scribe, threads and locks belong to the parent,
 * so nothing else is done; the memory is not freed, since a thread of the parent may have held it.
 * *s may be NULL. */
void      vn_store_forget(vn_store **s);
