/* recording_internal.h: what the files of recording.h, receive.c, view.c, derive.c and dump.c share. Nobody else includes it. */
#ifndef VN_CAPTURE_RECORDING_INTERNAL_H
#define VN_CAPTURE_RECORDING_INTERNAL_H

#include "capture/recording/derive.h"
#include "capture/file/plan_json.h"
#include "capture/recording/recording.h"
#include "capture/recording/scan.h"
#include "capture/recording/scratch.h"

/* How a tensor is to be seen (view.h): axis k is axis order[k] of the file's, from index from[k] on. */
typedef struct vn_view {
	vn_shape whole, shape; /* in the file; as it is seen */
	int      order[VN_MAX_RANK];
	int64_t  from[VN_MAX_RANK];
	vn_scratch made;       /* the numbers so, or nothing */
} vn_view;

/* A tensor made of others (derive.h): all of one, or pieces. */
typedef struct vn_gathered {
	bool      whole;
	int       base, entry; /* whole */
	vn_joined how;
	vn_dtype  dtype;
	vn_shape  shape;
	int       n;
	vn_piece  piece[];
} vn_gathered;

/* Of what pieces make; to: room for the box. What is added takes 8 bytes a number of the box more. */
vn_status vn_gathered_region(vn_recording *r, const vn_gathered *gathered, const vn_region *box, void *to, vn_error *err);

/* A stored tensor and the digest that the file has of it (proof.c, verify.c). */
typedef enum vn_proof_state {
	VN_PROOF_NOT_READ,
	VN_PROOF_DEFERRED, /* handed out, not checked */
	VN_PROOF_LENT,     /* the same, and the borrower takes its digest */
	VN_PROOF_BUSY,     /* some thread takes its digest */
	VN_PROOF_RIGHT,
	VN_PROOF_WRONG,
	VN_PROOF_WITHOUT,  /* handed out, and the file has no digest of it */
} vn_proof_state;

/* The views of one tensor share it. */
typedef struct vn_proof {
	vn_digest  *found;   /* where it is VN_PROOF_WRONG; else NULL */
	int         entry;   /* of its file, whose digest it is held against */
	_Atomic int state;
} vn_proof;

/* Where the numbers of an entry are. */
typedef struct vn_extent {
	int64_t  offset;  /* in the file; -1: HDF5 must read them */
	uint64_t address; /* of the object */
	int64_t  bytes;
	vn_scratch loaded; /* shared with the child that read them, or made by the gathered; or nothing */
	vn_view *view;    /* NULL: as they are */
	vn_gathered *gathered; /* NULL: in this file */
	int      foreign; /* 1 + the number of an array of vn_foreign; 0: it is in a checkpoint file */
	bool     parts;   /* a foreign one that may be read in parts */
	bool     ahead;   /* loaded, and nobody has asked for it */
	vn_proof *proof;  /* the recording's; NULL: it is in no checkpoint file */
} vn_extent;

/* Whoever reads numbers that are in no checkpoint file (dump.h): bytes [at, at + n) of array i; of one without `parts` all. */
typedef struct vn_foreign {
	void      *context;
	vn_status (*read)(void *context, int i, size_t at, size_t n, void *to, vn_error *err);
	void      (*close)(void *context);
} vn_foreign;

typedef struct vn_attribute_word {
	char *key, *value;
} vn_attribute_word;

struct vn_recording {
	char     *path;
	int       fd;
	int64_t   bytes;
	vn_foreign foreign;
	const unsigned char *map; /* the whole file, or NULL before the first need */

	bool      complete;
	vn_attribute_word  *root, *model; /* attributes */
	int       n_root, n_model;
	vn_facts  run;
	int32_t  *ids, *positions;
	int64_t   n_ids, n_positions;
	int64_t   batch; /* prompts in them, one after the other; 0: one, not a batch */
	char     *unread[VN_UNREAD_NAMED];
	int       n_unread;
	char    **token_text;
	int       n_texts, room_texts;
	vn_weight_row *weight;
	int       n_weights, room_weights;
	vn_plan  *plan;
	bool      has_plan;
	vn_plan_text text; /* only while opening */
	int       room_nodes, room_values, room_plan_weights;

	vn_step   *step;
	int        n_steps, room_steps;
	vn_entry  *entry;
	vn_extent *source; /* (n_entries) */
	vn_stats  *stats;  /* (n_stats), of the entries that have some */
	int        n_stats, room_stats;
	int        n_entries, room_entries;
	int       *by_name; /* (n_entries): by step, then name */
	vn_recording **base; /* of a derived one (derive.h): what it is made of */
	int            n_bases;
	int       ranks;    /* it was joined of so many (ranks.h); 0: it is one file's */
	int       in_files; /* so many tensors are in scratch files now */
	struct {
		int from, to, many; /* entries that the last child went through, and how many of them it read; 0: it failed, or none yet */
	} ahead;
	bool      separate; /* no tensor has names in two steps (view.c) */
	vn_proof *proof;    /* (n_entries), of a checkpoint file; NULL */
	bool      allow_damage, defer; /* verify.h */
};

/* Statistics of entry e, which becomes or is the recording's. false: no memory. */
bool vn_recording_keep_stats(vn_recording *r, vn_entry *e, const vn_stats *stats);

/* Entries in execution order, names of one tensor tied together; a name twice is refused. */
vn_status vn_recording_sort(vn_recording *r, vn_error *err);

/* What stands by tokens has the rows that its step says. */
vn_status vn_recording_check_rows(vn_recording *r, vn_error *err);

/* The entry whose numbers those of entry i are: itself but where it is a second name. */
static inline int vn_recording_primary(const vn_recording *r, int i)
{
	return r->entry[i].same_as >= 0 ? r->entry[i].same_as : i;
}

/* What HDF5 must read, as a whole (scratch.h) until vn_recording_release; of a primary entry. Any thread. */
vn_status vn_recording_load(vn_recording *r, int i, const void **data, vn_error *err);
/* Gives back what was made or loaded; safe where there is nothing. */
void      vn_recording_end(vn_recording *r, vn_scratch *s);

/* Once a checkpoint file's entries are in order. */
vn_status vn_proofs_make(vn_recording *r, vn_error *err);
void      vn_proofs_free(vn_recording *r);
/* Before numbers of a primary entry that is no view and not gathered are handed out, loaded where HDF5 reads it; any thread. */
vn_status vn_proof_ask(const vn_recording *r, int i, vn_error *err);
/* The same for one that lies in the file as it is and is lent (vn_recording_lend). */
vn_status vn_proof_lend(const vn_recording *r, int i, bool *unchecked, vn_error *err);
/* What the digest of a proof is, now; VN_ERR_DAMAGED: not the one that the file has, unless damage is allowed. */
vn_status vn_proof_take(const vn_recording *r, int i, vn_proof *p, vn_error *err);
/* A borrower has taken the digest of what it was lent. */
void      vn_proof_vouch(const vn_recording *r, vn_proof *p, const vn_digest *found);
/* Which tensor does not match its digest, in words. */
void      vn_proof_words(const vn_recording *r, const vn_proof *p, char *words, size_t room);
/* All n bytes at `at` of fd. False: *why says what went wrong. */
bool      vn_pread_all(int fd, void *to, size_t n, int64_t at, const char **why);
/* n bytes at `at` of fd, the recording's file or a scratch file of entry i; unchecked. */
vn_status vn_recording_bytes(const vn_recording *r, int i, int fd, int64_t at, size_t n, void *to, vn_error *err);

/* Fill in what their files hold, checked; unsorted. The files are read at the same
 * time; of several that are refused the first is told of. */
vn_status vn_receive(vn_recording *const *r, int n, vn_error *err);
/* For the fuzzer of frames (tests/fuzz/fuzz_frames.c): what comes through this descriptor, which is closed, as if a child had
 * sent it; and the recording that becomes of it, at path. */
vn_status vn_receive_pipe(vn_recording *r, int pipe, vn_error *err);
vn_status vn_recording_of_frames(const char *path, int pipe, vn_recording **r, vn_error *err);

#endif
