/* calls.h: joins several calls of a run into one step, so that runs with different calls can be
 * compared.
 *
 * One engine runs a prompt at once, another in chunks; one decodes token by token what another reads
 * as a prompt. Both compute the same numbers for each token, in different steps. Where both runs end
 * a call after the same token, all calls since the last such token become one step on either side:
 * rows of tokens are put one behind the other; a cache or state is that after the last call.
 */
#ifndef VN_CAPTURE_CALLS_H
#define VN_CAPTURE_CALLS_H

#include "capture/recording/recording.h"

/* A step as it is to be seen: tokens [position, position + tokens). */
typedef struct vn_call {
	int     number;
	int64_t position, tokens;
} vn_call;

/* The longest list of calls that the steps of both make, numbered as a's; the caller's to free. *n is 0 where their steps are the same
 * ones, or where either's do not follow each other from one token to the same last one, or are of several prompts. */
vn_status vn_calls_common(const vn_recording *a, const vn_recording *b, vn_call **call, int *n, vn_error *err);

/* Steps of r in call i: *count of them, from *first on. False: they are not just that call. */
bool      vn_calls_steps(const vn_recording *r, const vn_call *call, int *first, int *count);

/* Do r's steps make these calls? */
bool      vn_calls_fit(const vn_recording *r, const vn_call *call, int n);

/* *r, which fits, becomes the derived recording that has these calls for steps; it is the caller's to close also on failure. Of what a call of several steps kept the rows that
 * follow each other up to the last one are there. left: tensors that cannot be joined and are not there, such as scores whose keys become
 * more from call to call; one: the name of the first of them. */
vn_status vn_calls_join(vn_recording **r, const vn_call *call, int n, int *left, char one[VN_NAME_MAX], vn_error *err);

#endif
