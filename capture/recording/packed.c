/* packed.c: see packed.h. */
#include "capture/recording/packed.h"

#include <inttypes.h>
#include <stdlib.h>

int64_t vn_packed_count(const vn_recording *r)
{
	const int32_t *at;
	const vn_step *step;
	const int64_t  n = vn_recording_tokens(r, NULL, &at);
	int64_t        count = 0;
	if (vn_recording_batch(r) > 0 || vn_recording_steps(r, &step) < 1)
		return 0;
	for (int64_t i = step[0].position; i < step[0].position + step[0].tokens && i < n; i++)
		count += i == step[0].position || at[i] != (int64_t)at[i - 1] + 1;
	return count > 1 ? count : 0;
}

/* Adds one step's tokens. next (count): the next position of each prompt,
 * -1 before the first step. */
static bool add_step_tokens(const vn_step *s, const int32_t *at, int64_t count, int64_t *next, int64_t *of)
{
	const int64_t end = s->position + s->tokens;
	const bool    one_each = s->tokens == count;
	int64_t       k = -1;
	for (int64_t i = s->position; i < end; i++) {
		if (one_each || i == s->position || at[i] != (int64_t)at[i - 1] + 1)
			if (++k == count || (next[k] >= 0 && at[i] != next[k]))
				return false;
		of[i] = k;
		next[k] = (int64_t)at[i] + 1;
	}
	return k == count - 1;
}

vn_status vn_packed_prompts(const vn_recording *r, int64_t *of, vn_error *err)
{
	const int32_t    *at;
	const vn_step    *step;
	const int64_t     n = vn_recording_tokens(r, NULL, &at), count = vn_packed_count(r);
	const int         steps = vn_recording_steps(r, &step);
	VN_FREED int64_t *next = malloc(((size_t)count + 1) * sizeof *next);
	vn_status         st = VN_OK;

	if (!next)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %" PRId64 " prompts", vn_recording_path(r), count);
	for (int64_t k = 0; !st && k < count; k++)
		next[k] = -1;
	for (int64_t i = 0; !st && i < n; i++)
		of[i] = -1; /* of no step */
	for (int i = 0; !st && i < steps; i++)
		if (step[i].position + step[i].tokens > n || !add_step_tokens(&step[i], at, count, next, of))
			st = vn_fail(err, VN_ERR_FORMAT,
			             "%s: /step.%d: its tokens do not continue the %" PRId64
			             " prompts of the first step, in their order",
			             vn_recording_path(r), step[i].number, count);
	return st;
}
