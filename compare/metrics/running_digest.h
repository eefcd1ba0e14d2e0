/* running_digest.h: digests of a pair of tensors while its units are measured, in any order.
 *
 * A digest needs the bytes in order. The thread that has measured a unit, which is still in a
 * cache, continues the digest over all consecutive measured units, unless another thread is doing
 * that.
 */
#pragma once

#include "compare/metrics/pages.h"

#include "capture/recording/verify.h"

#include <pthread.h>

typedef struct vn_running_digest {
	int64_t units, unit; /* number of units; elements in each */
	struct {
		pthread_mutex_t lock;
		vn_digester    *digester; /* NULL: not requested, or no memory */
		int64_t         next;     /* the first unit not yet added */
	} side[2];
	/* (units), the caller's; NULL: units are not contiguous, so vn_running_digest_end adds
	 * everything */
	_Atomic bool       *measured;
	const vn_stretches *stretches; /* stretches that were released before the digest reads them are released again */
} vn_running_digest;

/* Begins the requested digests of a job. Does not set units, unit, measured and stretches. */
void vn_running_digest_begin(vn_running_digest *d, const vn_job *job);
bool vn_running_digest_wanted(const vn_running_digest *d);
/* Call when a unit is measured. */
void vn_running_digest_unit(vn_running_digest *d, const vn_pair *p, int64_t unit);
/* Call when all units are measured: sets `found` of the job. */
void vn_running_digest_end(vn_running_digest *d, const vn_pair *p, vn_job *job);
void vn_running_digest_drop(vn_running_digest *d);
