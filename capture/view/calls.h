/* calls.h: joins several calls of a run into one step, so that runs with different calls can be
 * compared.
 *
 * One engine runs a prompt at once, another in chunks; one decodes token by token what another
 * reads as a prompt. Both compute the same numbers for each token, in different steps. Wherever
 * both runs end a call after the same token, all calls since the last such token become one step on
 * either side: token rows are concatenated, and a cache or state is the one after the last call.
 */
#pragma once

#include "capture/recording/recording.h"

/* A joined step: tokens [position, position + tokens). */
typedef struct vn_call {
	int     number;
	int64_t position, tokens;
} vn_call;

/* Finds the longest list of calls that the steps of both recordings can be joined to, numbered as
 * a's, and returns how many. The caller frees *call. 0: their steps are equal, or those of either
 * do not follow each other up to the same last token, or hold several prompts. */
int vn_calls_common(const vn_recording *a, const vn_recording *b, vn_call **call);

/* Finds the steps of r that make up a call: *count steps from index *first. Returns false if no run
 * of steps is exactly that call. */
bool vn_calls_steps(const vn_recording *r, const vn_call *call, int *first, int *count);

/* Can r's steps be joined to these calls? */
bool vn_calls_fit(const vn_recording *r, const vn_call *call, int n);

/* Replaces *r, which must fit, by the derived recording with these calls as steps. The caller
 * closes *r, also after a failure. Of the token rows, those that are consecutive up to the last row
 * of a call are kept. *left: tensors that cannot be joined and are dropped, such as scores whose
 * keys grow from call to call; one: the name of the first. */
vn_status vn_calls_join(vn_recording **r, const vn_call *call, int n, int *left, char one[VN_NAME_MAX], vn_error *err);
