/* recording.h: reading a checkpoint file, also a stranger's.
 *
 * Everything is checked when it is opened (specs/checkpoint.md, last chapter);
 * a file that opens can be walked without surprises. Contiguous tensors are
 * mapped: their bytes come straight from the page cache and are valid until
 * close. Compressed or chunked ones, and big-endian ones, are read on demand
 * into memory, or from 16 MB on into a scratch file that is mapped like one.
 *
 * Threads  open, close and read from one thread at a time; mapped bytes may be
 *          used by many, and parts read by many at once.
 * Errors   name the file and the object. Numbers that are not those of the digest that the file has of them are
 *          VN_ERR_DAMAGED (verify.h).
 */
#ifndef VN_CAPTURE_RECORDING_H
#define VN_CAPTURE_RECORDING_H

#include "libref/base/facts.h"
#include "libref/model/model.h"

typedef struct vn_recording vn_recording;

enum { VN_WORD_MAX = 32, VN_AXES_MAX = 64 };

typedef struct vn_step {
	int     number;
	int64_t position, tokens; /* cached before, new in this call */
	int64_t first_row, rows;  /* which rows of the call are here */
} vn_step;

/* One tensor under one name. Of the words there is one copy, however many tensors have it (libref/base/intern.h). */
typedef struct vn_entry {
	const char *name;            /* "layer3.q_rope"; less than VN_NAME_MAX bytes */
	const char *point, *op, *basis, *axes; /* "" when the file does not say; less than VN_WORD_MAX and, axes, VN_AXES_MAX */
	int       step;              /* number of its step */
	int       order;             /* place in the execution order; -1: the file does not say */
	int       layer;             /* -1 outside layers */
	int       same_as;           /* entry this one is a second name of (hard link), or -1 */
	vn_shape  shape;
	vn_dtype  dtype;
	int       stats;             /* vn_recording_stats */
	vn_digest_bytes digest;      /* vn_entry_digest */
	bool      has_digest;
	bool      viewed;            /* seen otherwise than it is stored (view.h), so that the digest is not that of its numbers */
	bool      rows_off;          /* its axes say tokens, and other many than rows were kept of its step */
} vn_entry;

vn_status vn_recording_open(const char *path, vn_recording **r, vn_error *err);
/* Several at once, each on a processor of its own; all of r or, of several that do not open, the first one's error. */
vn_status vn_recording_open_all(const char *const *path, int n, vn_recording **r, vn_error *err);
void      vn_recording_close(vn_recording *r);

const char     *vn_recording_path(const vn_recording *r);
bool            vn_recording_complete(const vn_recording *r);
int             vn_recording_ranks(const vn_recording *r); /* it was put together from so many (ranks.h); 0: it is one file */
const vn_facts *vn_recording_run(const vn_recording *r);      /* attributes of /run */
const char     *vn_recording_root(const vn_recording *r, const char *key); /* "created", "tool"...; NULL */
int64_t         vn_recording_tokens(const vn_recording *r, const int32_t **ids, const int32_t **positions);
/* Of a batched recording (batched.h): so many prompts, whose ids and positions come one after the other; 0: not batched. */
int64_t         vn_recording_batch(const vn_recording *r);
/* What its file holds that nobody reads ("/notes", "/run/extra"): how many; name (room for VN_UNREAD_NAMED): the first of them. Of
 * one that is made of others: theirs. */
enum { VN_UNREAD_NAMED = 8 };
int             vn_recording_unread(const vn_recording *r, const char *name[VN_UNREAD_NAMED]);
/* What each token says, as vn_utf8_escape shows it; NULL when the file does not tell. */
char *const    *vn_recording_token_text(const vn_recording *r);
/* Attributes of /model; NULL when absent. */
const char     *vn_recording_family(const vn_recording *r);
const char     *vn_recording_config(const vn_recording *r);
const char     *vn_recording_provenance(const vn_recording *r);
const char     *vn_recording_model_path(const vn_recording *r); /* where its model was, on the machine that ran it */
const char     *vn_recording_format(const vn_recording *r); /* what held the weights: "gguf Q4_K, Q6_K, F32" */
int             vn_recording_weights(const vn_recording *r, const vn_weight_row **rows); /* sorted by name */
/* /plan rebuilt and checked; NULL when the file has none. */
const vn_plan  *vn_recording_plan(const vn_recording *r);

int             vn_recording_steps(const vn_recording *r, const vn_step **steps);
const vn_step  *vn_recording_step(const vn_recording *r, int number); /* NULL: none of that number */
/* In execution order: by step, then order, where that is not said as sequence.h. */
int             vn_recording_count(const vn_recording *r);
const vn_entry *vn_recording_entry(const vn_recording *r, int i);
/* The point of an entry, by its attribute or its name; NULL when it is none of ours. */
const vn_point_info *vn_entry_point(const vn_entry *e);
/* As the file claims; empty when it does not. */
vn_digest       vn_entry_digest(const vn_entry *e);
/* As the file claims; NULL when it does not, or vn_recording_drop_stats was called. */
const vn_stats *vn_recording_stats(const vn_recording *r, const vn_entry *e);
/* Frees all of them: 64 bytes a tensor, which a comparison does not need. */
void            vn_recording_drop_stats(vn_recording *r);
/* The dims string of an entry: the file's own, or its point's, or "". */
const char     *vn_entry_axes(const vn_entry *e);
/* Is it behind the last layer? Engines that only want the next token make the scores of the last row alone, and what they come from. */
bool            vn_entry_last(const vn_entry *e);
/* By name, through aliases of the plan too; -1 when absent. */
int             vn_recording_find(const vn_recording *r, int step, const char *name);

/* The numbers of entry i. *data lies in the mapped file, or in room that
 * vn_recording_release (same i) gives back; NULL data for an empty tensor.
 * Whatever is seen otherwise (view.h) or gathered (derive.h) is made as a
 * whole: who does not need all of it reads parts. */
vn_status vn_recording_data(vn_recording *r, int i, const void **data, vn_error *err);
void      vn_recording_release(vn_recording *r, int i);
/* Are they in a mapped file as they are? */
bool      vn_recording_mapped(const vn_recording *r, int i);

/* A part of a tensor: size[k] indices from from[k] on along axis k. */
typedef struct vn_region {
	int64_t from[VN_MAX_RANK], size[VN_MAX_RANK];
} vn_region;

int64_t   vn_region_count(const vn_region *box, int rank);
/* The numbers of a part of entry i, in the tensor's order, one after the other: a box, or elements [from, from + n).
 * Takes less than 1 MB of stack beside `to`, and 8 bytes a number where several tensors are added; only what is
 * compressed, chunked or big-endian in its file and smaller than 16 MB is held as a whole until vn_recording_release (same i). */
vn_status vn_recording_read_region(vn_recording *r, int i, const vn_region *box, void *to, vn_error *err);
vn_status vn_recording_read(vn_recording *r, int i, int64_t from, int64_t n, void *to, vn_error *err);
/* Pages of mapped files that were read count as memory until this. Data that was handed out stays valid. */
void      vn_recording_forget(vn_recording *r);

/* The tensor of an entry, whole: dtype, shape and numbers, which are the recording's; vn_recording_release gives them back. */
vn_status vn_entry_tensor(vn_recording *r, int entry, vn_tensor *t, vn_error *err);

#endif
