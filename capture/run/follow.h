/* follow.h: a run that follows a recording: on its tokens, in its calls, and of each call the
 * checkpoints and rows that the recording has.
 *
 * So the run can be compared with the recording of an engine that recorded little, in any calls: a
 * prompt in chunks, decoded tokens, a call on a cache that was filled by one of which nothing was
 * kept.
 */
#pragma once

#include "libref/plan/tap.h"

/* The recording, with another engine's names translated by maps, and one prompt of several. */
typedef struct vn_follow_source {
	const char        *path;  /* NULL: none is followed */
	const char *const *names; /* (n_names) name maps */
	int                n_names;
	int64_t            row; /* -1: not given, the recording holds one prompt */
} vn_follow_source;

typedef struct vn_follow {
	int32_t *ids; /* (n) the tokens of all calls */
	int64_t  n;
	vn_step *call; /* (n_calls), numbered from 0 */
	int      n_calls, n_values;
	bool    *want; /* (n_calls, n_values) as in vn_taps: of the plan, under each name that was recorded */
	bool    *any;  /* (n_values) in any call */
	/* tensors that are no checkpoint of the plan, and the first one's name */
	int      unknown;
	char     first[VN_NAME_MAX];
} vn_follow;

/* Reads what the recording has. plan: of the model that is to run; its shapes complete what a name
 * map does not say. Call vn_follow_finish afterwards, also after a failure. Errors: no ids; several
 * prompts and no row; no checkpoint of this plan. */
vn_status vn_follow_read(const vn_follow_source *from, const vn_plan *plan, vn_follow *f, vn_error *err);
void      vn_follow_finish(vn_follow *f);

/* What is recorded of call i, for a sink that is set by the caller. */
vn_taps vn_follow_taps(const vn_follow *f, int i);
