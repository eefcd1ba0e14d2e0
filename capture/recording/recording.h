/* recording.h: reads a checkpoint file, which may be untrusted.
 *
 * Everything is checked when the file is opened (specs/checkpoint.md, last chapter), so later code
 * can rely on it. Contiguous tensors are mapped: their bytes come from the page cache and are valid
 * until close. Compressed, chunked and big-endian tensors are read on demand into memory, or from
 * 16 MB on into a scratch file, which is mapped.
 *
 * Threads  open, close and read from one thread at a time; mapped bytes may be used by many, and
 *          parts read by many at once.
 * Errors   name the file and the object. Numbers that contradict the digest in the file are
 *          VN_ERR_DAMAGED (verify.h).
 */
#pragma once

#include "capture/recording/entry.h"
#include "capture/recording/run_plan.h"
#include "libref/base/facts.h"
#include "libref/model/model.h"

typedef struct vn_recording vn_recording;

/* A fact of the run, "model": its table of weights is that of the model that import was given. */
#define VN_WEIGHTS_FROM "weights_from"

/* Opens a checkpoint file. The caller closes *r. */
vn_status vn_recording_open(const char *path, vn_recording **r, vn_error *err);
/* Opens several files in parallel: all of them, or none. If several fail, the error is that of the
 * first. A file that is given more than once is read once, and each recording of it is
 * independent. */
vn_status vn_recording_open_all(const char *const *path, int n, vn_recording **r, vn_error *err);
/* Opens a replay file (specs/checkpoint.md): a recording whose tensors are NAME.expected,
 * NAME.floor and NAME.again, without tokens. The functions above refuse one, this one refuses
 * recordings. */
vn_status vn_recording_open_replayed(const char *path, vn_recording **r, vn_error *err);
void      vn_recording_close(vn_recording *r);

const char     *vn_recording_path(const vn_recording *r);
/* The name that reports show: the path, or another of a file that is gone when they are read. */
const char     *vn_recording_shown(const vn_recording *r);
bool            vn_recording_complete(const vn_recording *r);
/* number of ranks it was joined from (ranks.h); 0: one file */
int             vn_recording_ranks(const vn_recording *r);
const vn_facts *vn_recording_run(const vn_recording *r);                   /* attributes of /run */
const char     *vn_recording_root(const vn_recording *r, const char *key); /* "created", "tool"...; NULL */
int64_t         vn_recording_tokens(const vn_recording *r, const int32_t **ids, const int32_t **positions);
/* Returns the number of prompts of a batched recording (batched.h), whose ids and positions follow
 * each other; 0: not batched. */
int64_t         vn_recording_batch(const vn_recording *r);
/* Counts objects of the file that vernier does not read ("/notes", "/run/extra"), and gives the
 * first VN_UNREAD_NAMED names. For a derived recording: those of its sources. */
enum { VN_UNREAD_NAMED = 8 };
int          vn_recording_unread(const vn_recording *r, const char *name[VN_UNREAD_NAMED]);
/* Returns the text of each token, escaped as by vn_utf8_escape; NULL if the file does not have
 * it. */
char *const *vn_recording_token_text(const vn_recording *r);
/* Returns the number of tensors that agreed with a reference during the run and were left out
 * (left_out.h), sorted by step and name. */
struct vn_left_out;
int                vn_recording_left_out(const vn_recording *r, const struct vn_left_out **list);
/* Attributes of /model; NULL if absent. */
const char        *vn_recording_family(const vn_recording *r);
const char        *vn_recording_config(const vn_recording *r);
/* of the weights: "trained", "synthetic", or else "unknown" */
const char        *vn_recording_provenance(const vn_recording *r);
/* Was the table of weights copied from a model (VN_WEIGHTS_FROM), so that nobody measured those of
 * the run? */
bool               vn_recording_copied_weights(const vn_recording *r);
/* Returns the path of the model, or NULL; and only if it exists on this machine. r may be NULL. */
const char        *vn_recording_model_named(const vn_recording *r);
const char        *vn_recording_model_here(const vn_recording *r);
/* format of the weights: "gguf Q4_K, Q6_K, F32" */
const char        *vn_recording_format(const vn_recording *r);
int                vn_recording_weights(const vn_recording *r, const vn_weight_row **rows); /* sorted by name */
/* Returns the plan in /plan, checked; NULL if the file has none. */
const vn_plan     *vn_recording_plan(const vn_recording *r);
/* Does its plan have a multi-token-prediction head? */
bool               vn_recording_has_mtp(const vn_recording *r);
/* Returns the plan of a run of any PyTorch module, if /plan is one; else NULL. */
const vn_run_plan *vn_recording_run_plan(const vn_recording *r);
/* Lines of JSON in a replay file; none in a recording. */
typedef enum vn_replayed_lines {
	VN_REPLAYED_RESULTS,
	VN_REPLAYED_UNJUDGED,
	VN_REPLAYED_SETTINGS,
	VN_N_REPLAYED_LINES
} vn_replayed_lines;
typedef struct vn_recording_lines {
	char **line;
	int    n;
} vn_recording_lines;
const vn_recording_lines *vn_recording_replayed(const vn_recording *r, vn_replayed_lines which);
/* Returns the number of layers of the model: by the plan, or else by the last layer recorded. */
int                       vn_recording_layers(const vn_recording *r);

int             vn_recording_steps(const vn_recording *r, const vn_step **steps);
/* The calls of the run: its steps, but one by one where several were joined to one step
 * (calls.h). */
int             vn_recording_calls(const vn_recording *r, const vn_step **calls);
/* NULL: no step has that number */
const vn_step  *vn_recording_step(const vn_recording *r, int number);
/* Counts decoded tokens: the last single-token steps, after step 0. */
int64_t         vn_recording_decoded(const vn_recording *r);
/* Entries are in execution order: by step, then by `order`, or as sequence.h says if that is not
 * stated. */
int             vn_recording_count(const vn_recording *r);
const vn_entry *vn_recording_entry(const vn_recording *r, int i);
/* Writes how many tensors entries [from, to) are, each counted once: "33 tensors, 1 of them also
 * under a second name". Returns words. */
enum { VN_TENSORS_WORDS = 96 };
const char     *vn_recording_say_tensors(const vn_recording *r, int from, int to, char words[VN_TENSORS_WORDS]);
/* Returns the statistics that the file states; NULL if it states none, or after
 * vn_recording_drop_stats. */
const vn_stats *vn_recording_stats(const vn_recording *r, const vn_entry *e);
/* Frees all statistics: 64 bytes per tensor, which a comparison does not need. */
void            vn_recording_drop_stats(vn_recording *r);
/* Finds an entry by name, also by aliases of the plan; -1 if absent. */
int             vn_recording_find(const vn_recording *r, int step, const char *name);

/* Returns the numbers of entry i in *data (NULL for an empty tensor). They are in the mapped file,
 * or in memory that vn_recording_release (same i) frees. Tensors with a view (view.h) or gathered
 * ones (derive.h) are made as a whole; use vn_recording_read for parts. */
vn_status vn_recording_data(vn_recording *r, int i, const void **data, vn_error *err);
void      vn_recording_release(vn_recording *r, int i);
/* Are its numbers in a mapped file, in their final form? */
bool      vn_recording_mapped(const vn_recording *r, int i);
/* Maps the files of r. Returns true if all numbers are in them in their final form: then many
 * threads at once may call vn_recording_data, release and forget, and nothing is freed. */
bool      vn_recording_share(vn_recording *r);
/* Are entry i of a and entry j of b the same bytes of one mapped file, of the same shape and
 * format? */
bool      vn_recording_same_bytes(const vn_recording *a, int i, const vn_recording *b, int j);
/* Unmaps the file and frees everything loaded from it; reading maps or loads it again. Call before
 * fork, so that the child inherits neither. No data may be in use. */
void      vn_recording_unmap(vn_recording *r);

/* Read a part of entry i to `to`, in row-major order: a box, or elements [from, from + n). They use
 * less than 1 MB of stack, and 8 bytes per number if tensors are summed. Only tensors smaller than
 * 16 MB that are compressed, chunked or big-endian in their file are held as a whole, until
 * vn_recording_release (same i). */
vn_status vn_recording_read_region(vn_recording *r, int i, const vn_region *box, void *to, vn_error *err);
vn_status vn_recording_read(vn_recording *r, int i, int64_t from, int64_t n, void *to, vn_error *err);
/* Is every entry read without another process? Only HDF5, in a child (child.h), reads compressed,
 * chunked and big-endian tensors. For recordings of checkpoint files, not for foreign ones. */
bool      vn_recording_direct(vn_recording *r);
/* Loads the tensors of entry i that are not mapped, so that threads can read parts of them without
 * starting a process. They stay until vn_recording_release. */
vn_status vn_recording_fetch(vn_recording *r, int i, vn_error *err);
/* Releases pages of mapped files, which count as memory once they were read. Data that was handed
 * out stays valid. */
void      vn_recording_forget(vn_recording *r);
/* Counts what reading entry i has left in memory (64 kB more than its numbers), and calls
 * vn_recording_forget after each 64 MB. */
void      vn_recording_was_read(vn_recording *r, int i);

/* Returns a whole tensor: dtype, shape and numbers, which belong to the recording until
 * vn_recording_release. */
vn_status vn_entry_tensor(vn_recording *r, int entry, vn_tensor *t, vn_error *err);
