/* ranks_internal.h: shared by ranks.c, ranks_which.c and ranks_same.c; included nowhere else. */
#pragma once

#include "capture/recording/derive.h"
#include "capture/view/ranks.h"

enum { VN_MOST_JOINED = 256, VN_RANKS_SAID = 8, VN_RANKS_LINE = 500 };

typedef struct vn_ranks_job {
	vn_recording *const *rank; /* in order */
	vn_recording        *made;
	int                  n, said, left_out;   /* messages passed on, and not */
	char                 last[VN_RANKS_LINE]; /* the last message */
	vn_ranks_use        *use;
	vn_error            *err;
} vn_ranks_job;

__attribute__((format(printf, 2, 3))) void vn_ranks_say(vn_ranks_job *j, const char *format, ...);

/* Checks that they are all ranks of one run, and sorts them. Sets use->all_told if a file states
 * the number of ranks. */
vn_status vn_ranks_which(vn_recording **rank, int n, vn_ranks_use *use, vn_error *err);
/* Checks that all ranks have a tensor in one shape. entry: (n) its entries. */
vn_status vn_ranks_same_shape(const vn_ranks_job *j, const int *entry);
/* Checks that the tensors of ranks [from, to) are bitwise equal. */
vn_status vn_ranks_check_replicas(vn_ranks_job *j, const int *entry, int from, int to);
/* Adds a tensor to `made`: one of the replicas, or the sum of partial results. */
vn_status vn_ranks_replicated(vn_ranks_job *j, const int *entry);
