/* like.h: the axes and sizes that a checkpoint should have.
 *
 * A tensor of another engine often states neither. They come from the same checkpoint in the other
 * recording of the comparison, or from a plan. Code that splits, joins or reshapes foreign tensors
 * asks here.
 */
#ifndef VN_CAPTURE_LIKE_H
#define VN_CAPTURE_LIKE_H

#include "capture/recording/recording.h"

enum { VN_LIKE_WORDS = 64 };

typedef struct vn_like {
	const vn_recording *recording; /* NULL: none */
	const vn_plan      *plan;      /* NULL: none */
	int                 ranks;     /* the tensors asked about are of one of so many ranks; 1: whole */
	struct { char word[24]; int64_t size; } length[VN_LIKE_WORDS]; /* axes that mean one number everywhere; -1: not one */
	int                 n;
} vn_like;

/* One checkpoint of a step. Sizes are of the whole, not of a rank. */
typedef struct vn_looks {
	const vn_like *like;
	char           axes[72];      /* "" : a name that is none of ours */
	vn_shape       shape;         /* of axes; rank 0: not known */
	int64_t        rows;          /* that the step has of tokens; -1: not known */
} vn_looks;

/* plan NULL: the recording's own, if it has one. Both are borrowed. */
void     vn_like_init(vn_like *like, const vn_recording *r, const vn_plan *plan, int ranks);
/* step: of the recording that is asked about, for tokens and keys; NULL: not known. */
vn_looks vn_like_of(const vn_like *like, const char *name, const vn_step *step);
/* How long an axis of it is on one rank; -1: not known. context: a vn_looks (a vn_dims_size of dims.h). */
int64_t  vn_looks_size(void *looks, const char *word);
/* That axis of so many, cut for like->ranks (specs/models.md, chapter 8). */
int64_t  vn_like_of_rank(const vn_like *like, const char *word, int64_t size);
/* Is an axis of that name cut between ranks? */
bool     vn_like_sharded(const char *word);

#endif
