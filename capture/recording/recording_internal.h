/* recording_internal.h: the fields of vn_recording. For the files that open, derive or view one, in
 * recording/, view/view.c, view/batched.c and import/; included nowhere else. */
#pragma once

#include "capture/recording/left_out.h"
#include "capture/file/plan_json.h"
#include "capture/recording/recording.h"
#include "capture/recording/run_plan.h"
#include "capture/recording/scan.h"
#include "capture/recording/scratch.h"
#include "libref/base/json.h"

#include <sys/types.h>
#include <time.h>

/* A view of a tensor (view.h): axis k is the file's axis order[k], from index from[k] on. */
typedef struct vn_view {
	vn_shape   whole; /* in the file; the entry has the shape as viewed */
	int        order[VN_MAX_RANK];
	int64_t    from[VN_MAX_RANK];
	vn_scratch made; /* the numbers of the view, once made */
} vn_view;

/* A gathered tensor (derive.h): one whole source tensor, or n pieces. */
typedef struct vn_gathered {
	bool      whole;
	int       base, entry; /* if whole; then n is 1, and there is no piece */
	vn_joined how;
	int       n;
	vn_piece  piece[];
} vn_gathered;

/* The state of a stored tensor's digest check (proof.c, verify.c). */
typedef enum vn_proof_state {
	VN_PROOF_NOT_READ,
	VN_PROOF_DEFERRED, /* handed out unchecked */
	VN_PROOF_LENT,     /* handed out unchecked; the borrower computes the digest */
	VN_PROOF_BUSY,     /* a thread is computing the digest */
	VN_PROOF_RIGHT,
	VN_PROOF_WRONG,
	VN_PROOF_WITHOUT, /* handed out; the file has no digest for it */
} vn_proof_state;

/* One per stored tensor; shared by its views. */
typedef struct vn_proof {
	vn_digest  *found; /* VN_PROOF_WRONG: the digest of the numbers; else NULL */
	int         entry; /* in its file, whose digest the numbers must have */
	_Atomic int state;
} vn_proof;

/* Where the numbers of an entry are. */
typedef struct vn_entry_source {
	int64_t      offset;  /* in the file; -1: must be read by HDF5 */
	uint64_t     address; /* of the object */
	int64_t      bytes;
	vn_scratch   loaded;   /* read by a child, or gathered; else empty */
	vn_view     *view;     /* NULL: seen as stored */
	vn_gathered *gathered; /* NULL: stored in this file */
	int          foreign;  /* 1 + index of an array of vn_foreign; 0: stored in a checkpoint file */
	bool         parts;    /* foreign, and can be read in parts */
	bool         ahead;    /* loaded before anyone asked for it */
	vn_proof    *proof;    /* owned by the recording; NULL: not stored in a checkpoint file */
} vn_entry_source;

/* Reads numbers that are not in a checkpoint file (dump.h): bytes [at, at + n) of array i; without
 * `parts`, all of them. */
typedef struct vn_foreign {
	void *context;
	vn_status (*read)(void *context, int i, size_t at, size_t n, void *to, vn_error *err);
	void (*close)(void *context);
} vn_foreign;

struct vn_recording {
	char                *path;
	int                  fd;
	int64_t              bytes;
	dev_t                device; /* and inode: which file it is */
	ino_t                inode;
	/* when the file was last written to, and when that or anything else about it last changed, at
	 * opening */
	struct timespec      changed, touched;
	vn_foreign           foreign;
	const unsigned char *map;  /* the whole file, or NULL before first use */
	_Atomic int64_t      read; /* bytes read since vn_recording_forget, as vn_recording_was_read counts */

	bool               complete;
	json_t            *root, *model; /* attributes: an object of texts */
	vn_facts           run;
	int32_t           *ids, *positions;
	int64_t            n_ids, n_positions;
	int64_t            batch; /* number of prompts in ids, one after the other; 0: not a batch */
	char              *unread[VN_UNREAD_NAMED];
	int                n_unread;
	char             **token_text;
	int                n_texts;
	vn_left_out       *left_out; /* sorted */
	int                n_left_out;
	vn_weight_row     *weight;
	int                n_weights;
	vn_plan           *plan;
	bool               has_plan;
	vn_plan_text       text;         /* only while opening */
	bool               has_run_plan; /* /plan is that of a run; its nodes are in `text`, too */
	vn_run_plan       *run_plan;
	/* of a replay file: results, unjudged, settings */
	vn_recording_lines replayed[VN_N_REPLAYED_LINES];

	vn_step         *step;
	int              n_steps;
	vn_entry        *entry;
	vn_entry_source *source; /* (n_entries) */
	vn_stats        *stats;  /* (n_stats), of the entries that have some */
	int              n_stats;
	int              n_entries;
	int             *by_name; /* (n_entries), sorted by step, then name */
	vn_recording   **base;    /* sources of a derived recording (derive.h) */
	int              n_bases;
	/* for one prompt of several (batched.h): prompt: its number; row (n): the columns of the first
	 * call that are padding, the first `before` of them before the prompt; packed: columns of all
	 * calls that belong to other prompts; row NULL: not one of several */
	struct {
		int64_t prompt, *row, n, before;
		bool    packed;
	} padding;
	bool stateless; /* one of packed prompts, and not the last, whose states alone a call leaves (batched.h) */
	int  ranks;     /* number of ranks it was joined from (ranks.h); 0: one file */
	int  in_files;  /* tensors now in scratch files */
	struct {
		/* entries that the last child went through, and how many of them it read; 0: failed or none
		 * yet */
		int from, to, many;
	} ahead;
	bool      separate;            /* no tensor has names in two steps (view.c) */
	vn_proof *proof;               /* (n_entries), for a checkpoint file; else NULL */
	bool      allow_damage, defer; /* verify.h */
};

/* Creates an empty recording; *r is NULL after a failure. path: its name in messages. */
vn_status vn_recording_create(const char *path, vn_recording **r, vn_error *err);
/* Adds a tensor, whose texts are copied. Returns false without memory. */
bool      vn_recording_add(vn_recording *r, const vn_entry *e, const vn_entry_source *s);
/* Stores the statistics of entry e, which is or will be an entry of the recording. Returns false
 * without memory. */
bool      vn_recording_keep_stats(vn_recording *r, vn_entry *e, const vn_stats *stats);

/* Sorts entries into execution order and links the names of one tensor. Refuses two tensors of one
 * name. */
vn_status vn_recording_sort(vn_recording *r, vn_error *err);

/* Marks the entries whose token rows are not what their step states (vn_entry.rows_off). */
void      vn_recording_mark_rows(vn_recording *r);
/* Same, and refuses the first of them. */
vn_status vn_recording_check_rows(vn_recording *r, vn_error *err);

/* Returns the entry that holds the numbers of entry i: i itself, unless it is a second name. */
static inline int vn_recording_primary(const vn_recording *r, int i)
{
	return r->entry[i].same_as >= 0 ? r->entry[i].same_as : i;
}

/* Returns the recording of the k-th of n tensors that a gathered one is made of. */
static inline vn_recording *vn_gathered_part(const vn_recording *r, const vn_gathered *g, int k, int *entry)
{
	*entry = g->whole ? g->entry : g->piece[k].entry;
	return r->base[g->whole ? g->base : g->piece[k].base];
}

/* Reads a primary entry that is not contiguous in a mapped file, as a whole (scratch.h), until
 * vn_recording_release. Any thread. */
vn_status         vn_recording_load(vn_recording *r, int i, const void **data, vn_error *err);
/* Calls each for the stored tensors that entry i is made of, until one fails. `each` gets the
 * recording of the file that stores the tensor, and the tensor's primary entry there. */
typedef vn_status vn_stored_do(vn_recording *r, int i, vn_error *err);
vn_status         vn_recording_each_stored(vn_recording *r, int i, vn_stored_do *each, vn_error *err);
/* Frees what was gathered or loaded; s may be empty. */
void              vn_recording_end(vn_recording *r, vn_scratch *s);

/* Call once the entries of a checkpoint file are in order. */
vn_status vn_proofs_make(vn_recording *r, vn_error *err);
void      vn_proofs_free(vn_recording *r);
/* Checks the digest of a primary entry (no view, not gathered) before its numbers are handed out;
 * reads it through HDF5 if necessary. Any thread. */
vn_status vn_proof_ask(const vn_recording *r, int i, vn_error *err);
/* Same for an entry that is contiguous in the file and lent (vn_recording_lend). */
vn_status vn_proof_lend(const vn_recording *r, int i, bool *unchecked, vn_error *err);
/* Computes the digest of a proof now. VN_ERR_DAMAGED: it differs from the one in the file, and
 * damage is not allowed. */
vn_status vn_proof_take(const vn_recording *r, int i, vn_proof *p, vn_error *err);
/* Records the digest that a borrower has computed of the numbers it was lent. */
void      vn_proof_vouch(const vn_recording *r, vn_proof *p, const vn_digest *found);
/* Says in words which tensor does not match its digest. */
void      vn_proof_words(const vn_recording *r, const vn_proof *p, char *words, size_t room);
/* Reads all n bytes at `at` of fd. Returns false on failure, with the reason in *why. */
bool      vn_pread_all(int fd, void *to, size_t n, int64_t at, const char **why);
/* n bytes at `at` of a file. */
typedef struct vn_file_part {
	int     fd;
	int64_t at;
	size_t  n;
} vn_file_part;
/* Reads a part of the recording's file, or of a scratch file of entry i, without a digest check. */
vn_status vn_recording_bytes(const vn_recording *r, int i, vn_file_part part, void *to, vn_error *err);

/* Fill n recordings from their files, checked but unsorted. The files are read in parallel, each
 * once, however many recordings are of it; if several are refused, the error is that of the
 * first. */
vn_status vn_receive(vn_recording *const *r, int n, vn_error *err);
/* For the fuzzer of frames (tests/fuzz/fuzz_frames.c): receives what comes through this descriptor,
 * which it closes, as if a child had sent it; and makes a recording of that, at path. */
vn_status vn_receive_pipe(vn_recording *r, int pipe, vn_error *err);
vn_status vn_recording_of_frames(const char *path, int pipe, vn_recording **r, vn_error *err);
