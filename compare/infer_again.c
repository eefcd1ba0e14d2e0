/* infer_again.c: see infer_again.h. */
#include "compare/infer_again.h"

#include "compare/chapters/compare.h"

#include "capture/recording/derive.h"
#include "capture/view/calls.h"
#include "capture/view/vocab_view.h"
#include "libref/base/alloc.h"
#include "libref/plan/vocab_part.h"

#include <stdlib.h>
#include <string.h>

/* Can a part of the recordings be compared? The same options would open other files, or rows,
 * again. */
static bool can_cut(const vn_compare_line *k)
{
	return !k->floor && !k->replayed && k->sides.batch_row < 0 && k->sides.ref_batch_row < 0;
}

bool vn_infer_is_long(const vn_compare_line *k, const vn_opened *o)
{
	const vn_step *step;
	return vn_recording_steps(o->ref, &step) > VN_INFER_STEPS && can_cut(k);
}

bool vn_infer_is_wide(const vn_compare_line *k, const vn_opened *o)
{
	return o->plan && vn_plan_has_vocab_part(o->plan) && can_cut(k);
}

/* Leaves the steps whose calls these are. Like vn_calls_join. */
static vn_status cut_steps(vn_recording **r, const vn_call *call, vn_error *err)
{
	const int32_t *ids, *positions;
	char           one[VN_NAME_MAX];
	int            left = 0;
	vn_status      st = vn_calls_join(r, call, VN_INFER_STEPS, &left, one, err);
	int64_t        n = 0;

	if (st)
		return st;
	for (int i = 0; i < VN_INFER_STEPS; i++)
		n += call[i].tokens;
	if (vn_recording_tokens(*r, &ids, &positions) < n)
		return VN_OK;
	int32_t *kept[2] = { vn_alloc((size_t)n, sizeof **kept), vn_alloc((size_t)n, sizeof **kept) };
	memcpy(kept[0], ids, (size_t)n * sizeof *ids);
	memcpy(kept[1], positions, (size_t)n * sizeof *positions);
	vn_derive_tokens(*r, kept[0], kept[1], n);
	return VN_OK;
}

/* Leaves the first steps of both recordings, if those of either follow each other; later: the last
 * ones, behind one of all tokens before. */
static vn_status keep_some_steps(vn_opened *o, bool later, bool *cut, vn_error *err)
{
	const vn_step *step;
	vn_call        call[VN_INFER_STEPS];

	const int behind = vn_recording_steps(o->ref, &step) - VN_INFER_STEPS;
	for (int i = 0; i < VN_INFER_STEPS; i++) {
		const vn_step *s = &step[i + (later && i ? behind : 0)];
		call[i] = (vn_call) { s->number, s->position, s->tokens };
	}
	if (later)
		call[0].tokens = call[1].position - call[0].position;
	*cut = vn_calls_fit(o->ref, call, VN_INFER_STEPS) && vn_calls_fit(o->cand, call, VN_INFER_STEPS);
	const vn_status st = *cut ? cut_steps(&o->ref, call, err) : VN_OK;
	return st || !*cut ? st : cut_steps(&o->cand, call, err);
}

/* Opens these steps. They are kept in x->first, because opening all takes longer than what is
 * done with them. */
static vn_status open_steps(const vn_inference *x, vn_comparison *c, bool *cut, vn_error *err)
{
	vn_recording *const first[2] = { x->first[0], x->first[1] };
	vn_compare_line     k = *x->k;

	*cut = first[0] != NULL;
	if (*cut) {
		k.n_ranks = 1;
		k.sides.n_names = k.sides.n_ref_names = 0;
		x->first[0] = x->first[1] = NULL; /* the comparison's, also after a failure */
		return vn_compare_open(&k, c, first, x->chosen, x->room, err);
	}
	vn_status st = vn_compare_open(x->k, c, NULL, x->chosen, x->room, err);
	if (!st && vn_infer_is_long(x->k, &c->opened))
		st = keep_some_steps(&c->opened, x->later, cut, err);
	*cut = *cut || x->vocab;
	if (!st && x->vocab && !(st = vn_vocab_view(&c->opened.ref, x->vocab, err)))
		st = vn_vocab_view(&c->opened.cand, x->vocab, err);
	return st;
}

vn_status vn_infer_again(const vn_inference *x, vn_policy policy, vn_judged_part part, const vn_bound *bound,
                         vn_comparison *c, vn_error *err)
{
	*c = (vn_comparison) { .opened.request = { .options = x->options,
		                                       .again = x->again,
		                                       .infers = true,
		                                       .inferred = policy,
		                                       .unexplained = true,
		                                       .only_local = part != VN_JUDGE_WHOLE,
		                                       .sampled = x->vocab > 0,
		                                       .bound = bound } };
	bool      cut = false;
	vn_status st = open_steps(x, c, &cut, err);
	st = st ? st : vn_compare(c, err);
	if (cut && c->opened.ref && c->opened.cand) {
		x->first[0] = c->opened.ref;
		x->first[1] = c->opened.cand;
		c->opened.ref = c->opened.cand = NULL;
	}
	return st;
}
