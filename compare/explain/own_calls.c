/* own_calls.c: see own_calls.h. */
#include "compare/explain/own_calls.h"

#include <stdlib.h>

int64_t *vn_own_calls(const vn_explain_trial *t, bool *later)
{
	const int64_t  S = t->site->tokens;
	const vn_step *call;
	const int      n = vn_recording_calls(t->c->opened.cand, &call);
	int64_t       *begins = malloc((size_t)S * sizeof *begins + 1);

	*later = false;
	for (int64_t i = 0; begins && i < S; i++)
		begins[i] = -1;
	for (int k = 1; begins && k < n; k++)
		for (int64_t i = call[k].position; call[k].tokens > 1 && i < call[k].position + call[k].tokens && i < S; i++) {
			begins[i] = call[k].position;
			*later = *later || i >= t->site->first;
		}
	return begins;
}

int64_t vn_call_of(const int64_t *begins, int call, int64_t i)
{
	return call == VN_OWN_CALLS ? begins[i] : i < call ? -1 : i - i % call;
}
