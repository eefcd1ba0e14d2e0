/* estimate_rotate.c: see estimate_rotate.h. */
#include "compare/explain/estimate_rotate.h"
#include "compare/explain/own_calls.h"
#include "compare/explain/score.h"

#include <stdlib.h>

/* The first token in error: where the second call began. 0: none, or the first token. */
static int first_off(const vn_explain_trial *t)
{
	const vn_tensor *own = &t->own, *cand = &t->site->cand;
	const int64_t    row = cand->shape.dim[1] * cand->shape.dim[2];
	const double     limit = VN_PEAK_LIMIT * t->x->unmodified.local.floor_token;
	double          *x = malloc((size_t)(2 * row) * sizeof *x + 1);
	int              at = 0;

	for (int64_t i = 0; x && i < cand->shape.dim[0] && !at; i++) {
		double dd = 0, yy = 0;
		vn_to_f64(x, (const char *)own->data + (size_t)(i * row) * vn_dtype_size(own->dtype), own->dtype, (size_t)row);
		vn_to_f64(x + row, (const char *)cand->data + (size_t)(i * row) * vn_dtype_size(cand->dtype), cand->dtype,
		          (size_t)row);
		for (int64_t k = 0; k < row; k++) {
			dd += (x[k] - x[row + k]) * (x[k] - x[row + k]);
			yy += x[k] * x[k];
		}
		at = dd <= limit * yy ? 0 : (int)i;
	}
	free(x);
	return at;
}

static bool can_be_made(const vn_explain_trial *t)
{
	const vn_plan *p = t->site->plan;

	return p->node[p->value[t->site->target].node].op == VN_OP_ROPE && t->site->cand.shape.rank == 3 && !t->part &&
	       t->consumed != VN_CONSUMED_OTHERS && !t->x->unmodified.local.bad;
}

vn_status vn_estimate_rotate_by_ids(vn_explain_trial *t, vn_error *err)
{
	const int      node = t->site->plan->value[t->site->target].node;
	const vn_step *s = vn_recording_step(t->c->opened.cand, t->c->result.point[t->x->point].step), *all;
	/* For a single token, rotation by its id equals rotation at some offset; other steps tell
	 * which. */
	const bool     enough = t->site->cand.shape.dim[0] > 1 || vn_recording_steps(t->c->opened.cand, &all) > 2;
	vn_status      st = VN_OK;

	for (int later = 0; !st && enough && can_be_made(t) && later < (s && s->position > 0 ? 2 : 1); later++) {
		vn_hypothesis h = { .finding = VN_TURNED_BY_IDS,
			                .node = node,
			                .change = { .kind = VN_BY_ROTATION, .later = later, .rotate.by_ids = true } };
		st = vn_try(t, &h, err);
	}
	return st;
}

vn_status vn_estimate_rotate(vn_explain_trial *t, vn_error *err)
{
	const int node = t->site->plan->value[t->site->target].node;

	if (!can_be_made(t))
		return VN_OK;
	const vn_step *step;
	bool           later;
	int64_t       *begins = vn_own_calls(t, &later);
	const int      off = later                                                                  ? VN_OWN_CALLS
	                     : vn_recording_steps(t->c->opened.cand, &step) == 1 && !t->site->first ? first_off(t)
	                                                                                            : 0;
	free(begins);
	if (!begins)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld tokens", (long long)t->site->tokens);
	/* clang-format off */
	const struct { vn_finding finding; vn_rotate_edit edit; } edits[] = {
		{ VN_CALLS_FROM_ZERO, { .call = off > 1 || later ? off : 0 } }, { VN_SINE_FOR_COSINE, { .exchanged = true } },
#define ROUNDED(format) \
		{ VN_ANGLES_ROUNDED, { .frequencies = format } }, { VN_ANGLES_ROUNDED, { .positions = format } }, \
		{ VN_ANGLES_ROUNDED, { .table = format } }, { VN_ANGLES_ROUNDED, { .angles = format } }, \
		{ VN_ANGLES_ROUNDED, { .positions = format, .frequencies = format } }, \
		{ VN_ANGLES_ROUNDED, { .positions = format, .frequencies = format, .angles = format } }, \
		{ VN_ANGLES_ROUNDED, { .positions = format, .frequencies = format, .angles = format, .table = format } }
		ROUNDED(VN_FORMAT_BF16), ROUNDED(VN_FORMAT_F16),
#undef ROUNDED
	};
	/* clang-format on */
	vn_status st = VN_OK;

	for (size_t i = edits[0].edit.call ? 0 : 1; !st && i < sizeof edits / sizeof *edits; i++) {
		vn_hypothesis h = { .finding = edits[i].finding,
			                .node = node,
			                .change = { .kind = VN_BY_ROTATION, .rotate = edits[i].edit } };
		st = vn_try(t, &h, err);
	}
	return st;
}
