/* ranks_internal.h: what ranks.c, ranks_which.c and ranks_same.c share. Nobody else includes it. */
#ifndef VN_CAPTURE_RANKS_INTERNAL_H
#define VN_CAPTURE_RANKS_INTERNAL_H

#include "capture/recording/derive.h"
#include "capture/view/ranks.h"

enum { VN_MOST_JOINED = 256, VN_RANKS_SAID = 8, VN_RANKS_LINE = 500 };

typedef struct vn_ranks_job {
	vn_recording *const *rank; /* in order */
	vn_recording *made;
	int           n, said;
	char          last[VN_RANKS_LINE]; /* that was said */
	vn_ranks_use *use;
	vn_error     *err;
} vn_ranks_job;

__attribute__((format(printf, 2, 3))) void vn_ranks_say(vn_ranks_job *j, const char *format, ...);

/* Are they the ranks of one run, all of them? Put in order; use->all_told where a file says of how many it is one. */
vn_status vn_ranks_which(vn_recording **rank, int n, vn_ranks_use *use, vn_error *err);
/* Every rank has a tensor of one shape. entry: (n) of them. */
vn_status vn_ranks_same_shape(const vn_ranks_job *j, const int *entry);
/* Those of ranks [from, to) are the same bits. */
vn_status vn_ranks_check_replicas(vn_ranks_job *j, const int *entry, int from, int to);
/* Into made: one of what all have, or the sum of partial results. */
vn_status vn_ranks_replicated(vn_ranks_job *j, const int *entry);

#endif
