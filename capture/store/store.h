/* store.h: writing a checkpoint file.
 *
 * Bytes on disk: specs/checkpoint.md. A store writes PATH.partial and renames
 * it when committed; whatever ends it otherwise, kill -9 included, leaves a
 * .partial file that opens and says it is incomplete, and PATH untouched. Tensors are given in execution
 * order, in pieces (as a vn_sink); a thread of the store's own files them, so
 * a piece costs its giver a copy, and it waits only when more than the queue's
 * budget is unwritten.
 *
 * Owner    whoever creates a store commits or abandons it.
 * Threads  one thread at a time per store. HDF5 runs in a process of its own (scribe.h), forked by create.
 * Errors   an error of the writing thread is reported by the next call and by
 *          commit. Check commit: a full disk often shows itself only there.
 */
#ifndef VN_CAPTURE_STORE_H
#define VN_CAPTURE_STORE_H

#include "capture/store/label.h"
#include "libref/base/facts.h"
#include "libref/model/model.h"
#include "libref/plan/tap.h"

typedef struct vn_store vn_store;

/* force: an existing PATH will be replaced at commit; otherwise it is refused
 * here. The plan is borrowed until the store ends; NULL where there is none: then tensors are
 * given by name (vn_store_begin), and the file has no /plan. */
vn_status vn_store_create(const char *path, bool force, const vn_plan *plan, vn_store **store, vn_error *err);

/* The same without a plan, for what is written again rather than in part: PATH.partial holds no tensor before the
 * commit, and a step any number of names, in time that is linear in it. */
vn_status vn_store_create_whole(const char *path, bool force, vn_store **store, vn_error *err);

/* /run: facts as attributes, all token ids with their positions; -1 for ids
 * that are known only later, behind all that are known now. */
vn_status vn_store_run(vn_store *s, const vn_facts *facts, const int32_t *ids, const int32_t *positions,
                       int64_t n, vn_error *err);
/* Id number `at`, which was -1, before the step that it goes into. */
vn_status vn_store_token(vn_store *s, int64_t at, int32_t id, vn_error *err);
/* What each of the n tokens says, as vn_utf8_escape shows it. */
vn_status vn_store_token_text(vn_store *s, char *const *text, int64_t n, vn_error *err);
/* Facts known only later, added to /run or put in place of earlier ones. */
vn_status vn_store_facts(vn_store *s, const vn_facts *facts, vn_error *err);
/* /model and, of a store that has one, /plan. rows: (n_weights of the model's plan); NULL: nothing is said of weights. */
vn_status vn_store_model(vn_store *s, const vn_model *m, const vn_weight_row *rows, vn_error *err);
/* The same of a model of which no more than words are known; a NULL one is left out. */
typedef struct vn_model_words {
	const char *family, *config, *provenance, *format, *path;
} vn_model_words;
vn_status vn_store_words(vn_store *s, const vn_model_words *w, vn_error *err);

/* Open step N; tensors that follow belong to it. Rows as vn_taps_select gives them. */
vn_status vn_store_step(vn_store *s, int step, int64_t position, int64_t tokens, int64_t first_row,
                        int64_t rows, vn_error *err);
/* The sink to put into vn_taps; borrowed from the store. */
vn_sink   vn_store_sink(vn_store *s);
/* A tensor by its name: begin, all its numbers in one or more writes, end. The label is copied. A name
 * that the step has already is an error of the writing thread. */
vn_status vn_store_begin(vn_store *s, const vn_tensor_label *l, vn_dtype dtype, const vn_shape *shape, vn_error *err);
vn_status vn_store_write(vn_store *s, const void *data, size_t elements, vn_error *err);
vn_status vn_store_end(vn_store *s, vn_error *err);
/* Second names the person asked for (want: as in vn_taps, aliases unresolved):
 * hard links to what this step wrote. */
vn_status vn_store_aliases(vn_store *s, const bool *want, vn_error *err);

/* The run that is recorded was cut off: commit then leaves the file marked incomplete, under its name. */
void      vn_store_cut(vn_store *s);
/* Finish, mark complete, sync, rename; ends and NULLs the store in any case. */
vn_status vn_store_commit(vn_store **s, vn_error *err);
/* How many tensors are in the file; waits for those under way. bytes may be NULL. */
int64_t   vn_store_tensors(vn_store *s, int64_t *bytes);
/* Leave the .partial file, marked incomplete; one without any tensor is removed. Safe on NULL. */
void      vn_store_abandon(vn_store **s);

#endif
