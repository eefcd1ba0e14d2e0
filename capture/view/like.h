/* like.h: finds the axes and sizes that a checkpoint should have.
 *
 * A tensor of another engine often states neither. They come from the same checkpoint in the other
 * recording of the comparison, or from a plan. Code that splits, joins or reshapes foreign tensors
 * asks here.
 */
#pragma once

#include "capture/recording/recording.h"

enum { VN_LIKE_WORDS = 64 };

typedef struct vn_like {
	const vn_recording *recording; /* NULL: none */
	const vn_plan      *plan;      /* NULL: none */
	/* number of ranks; one of them holds the tensors in question. 1: they are whole */
	int                 ranks;
	/* axes with one length everywhere; -1: it differs */
	struct {
		char    word[24];
		int64_t size;
	} length[VN_LIKE_WORDS];
	int n;
} vn_like;

/* One checkpoint of a step. Sizes are those of the whole tensor, not of a rank. */
typedef struct vn_looks {
	const vn_like *like;
	char           axes[72]; /* "": not a checkpoint name */
	vn_shape       shape;    /* of axes; rank 0: not known */
	int64_t        rows;     /* token rows of the step; -1: not known */
} vn_looks;

/* plan NULL: the recording's own, if it has one. Both are borrowed. */
void     vn_like_init(vn_like *like, const vn_recording *r, const vn_plan *plan, int ranks);
/* step: of the recording in question, for the number of tokens and keys; NULL: not known. */
vn_looks vn_like_of(const vn_like *like, const char *name, const vn_step *step);
/* Returns the length of one of its axes on one rank; -1: not known. looks: a vn_looks (a
 * vn_dims_size of dims.h). */
int64_t  vn_looks_size(void *looks, const char *word);
/* Returns the length on one rank of an axis with `size` numbers in the whole (specs/names.md,
 * Ranks). */
int64_t  vn_like_of_rank(const vn_like *like, const char *word, int64_t size);
/* Is an axis of that name divided between ranks? */
bool     vn_like_sharded(const char *word);
