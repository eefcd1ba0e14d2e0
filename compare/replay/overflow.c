/* overflow.c: see overflow.h. */
#include "compare/replay/overflow.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/localise.h"
#include "compare/replay/local.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The reference rounds differently: its number may be smaller by this factor than the
 * candidate's before it overflowed. */
#define NEARLY 0.99

static bool has_bad(const vn_checkpoint *p)
{
	return p->m.n && p->m.nan[1] + p->m.inf[1] > p->m.nan[0] + p->m.inf[0];
}

/* The narrowest format that the candidate is known to use. */
static vn_dtype format_of(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_dtype stored = vn_recording_entry(o->cand, p->cand)->dtype, ran = o->policy.storage;
	return o->model && vn_dtype_max(ran) < vn_dtype_max(stored) ? ran : stored;
}

/* The largest number that the reference reaches where the candidate is not finite. 0: at one of
 * these places it is in range. */
static double reached_by(const vn_tensor *ref, const vn_tensor *cand, double largest)
{
	double most = 0;
	for (int64_t i = 0; i < vn_shape_count(&ref->shape); i++) {
		const double r = vn_tensor_number(ref, i);
		if (isfinite(vn_tensor_number(cand, i)) || !isfinite(r))
			continue;
		if (fabs(r) < NEARLY * largest)
			return 0;
		most = fmax(most, fabs(r));
	}
	return most;
}

/* The checkpoints that one was computed from. */
typedef struct inputs {
	const int *of;
	int        n;
} inputs;

static const vn_checkpoint *input_of(const vn_opened *o, const vn_checkpoints *all, const vn_checkpoint *p, inputs in,
                                     int value)
{
	for (int i = 0; i < in.n; i++) {
		const vn_checkpoint *q = &all->of[in.of[i]];
		if (q->step == p->step &&
		    vn_plan_root(vn_model_plan(o->model), vn_plan_find(vn_model_plan(o->model), q->name)) == value)
			return q;
	}
	return NULL;
}

/* Numbers from, from + step, ... of a tensor. */
typedef struct vector {
	const vn_tensor *t;
	int64_t          from, step;
} vector;

/* The largest |partial sum| of a product of N terms, summed in their order. */
static void sum_up(vn_overflow *o, vector x, vector w, int64_t N, double bias)
{
	double sum = 0, most = 0;

	for (int64_t k = 0; k < N; k++) {
		sum += vn_tensor_number(x.t, x.from + k * x.step) * vn_tensor_number(w.t, w.from + k * w.step);
		if (fabs(sum) > most) {
			most = fabs(sum);
			o->term = k + 1;
		}
	}
	o->terms = N;
	o->whole = fabs(sum + bias);
	o->reached = most;
}

static vn_status find_partial_sum(const vn_opened *o, const vn_checkpoints *all, const vn_checkpoint *p, inputs from,
                                  vn_overflow *over, vn_error *err)
{
	const vn_plan *plan = o->model ? vn_model_plan(o->model) : NULL;
	const int v = plan ? vn_plan_find(plan, p->name) : -1, k = v < 0 ? -1 : plan->value[vn_plan_root(plan, v)].node;
	const vn_node       *node = k < 0 ? NULL : &plan->node[k];
	const vn_checkpoint *in = node && node->op == VN_OP_LINEAR
	                              ? input_of(o, all, p, from, vn_plan_root(plan, node->in[0]))
	                              : NULL;
	vn_overflow          found = *over;
	vn_tensor            x;
	vn_status            st;

	if (!in)
		return VN_OK;
	const vn_tensor *weights = vn_model_weights(o->model), *w = &weights[node->w[0]];
	const int64_t    N = vn_value_row(&plan->value[node->in[0]]), M = vn_value_row(&plan->value[node->out[0]]);
	if (M <= 0 || N <= 0 || w->dtype >= VN_N_DTYPES || vn_shape_count(&w->shape) != N * M || in->m.n % N != 0 ||
	    p->m.n % M != 0 || in->m.n / N != p->m.n / M)
		return VN_OK;
	if ((st = vn_entry_tensor(o->cand, in->cand, &x, err)))
		return st;
	const int64_t row = p->m.bad_at / M, channel = p->m.bad_at % M;
	const bool    transposed = node->c.linear.transposed;
	sum_up(&found, (vector) { &x, row * N, 1 }, (vector) { w, transposed ? channel : channel * N, transposed ? M : 1 },
	       N, node->w[1] >= 0 ? vn_tensor_number(&weights[node->w[1]], channel) : 0);
	vn_recording_release(o->cand, in->cand);
	if (found.reached > found.largest)
		*over = found;
	return VN_OK;
}

static vn_status find_overflow(const vn_opened *o, const vn_checkpoints *all, vn_checkpoint *p, inputs from,
                               vn_error *err)
{
	vn_overflow over = { .format = format_of(o, p) };
	vn_tensor   ref, cand;
	vn_status   st;

	over.largest = vn_dtype_max(over.format);
	if ((st = vn_entry_tensor(o->ref, p->ref, &ref, err)) || (st = vn_entry_tensor(o->cand, p->cand, &cand, err)))
		return st;
	over.reached = reached_by(&ref, &cand, over.largest);
	vn_recording_release(o->cand, p->cand);
	vn_recording_release(o->ref, p->ref);
	if (over.reached == 0 && p->m.bad_at >= 0 && (st = find_partial_sum(o, all, p, from, &over, err)))
		return st;
	if (over.reached > 0)
		p->overflow = over;
	return VN_OK;
}

static bool only_bad(const vn_checkpoint *p)
{
	vn_replayed l = p->replay;
	l.bad = 0;
	return p->replay.bad && vn_local_limit_fraction(&l, p->m.n) <= 1;
}

vn_status vn_replay_find_overflows(const vn_opened *o, vn_checkpoints *all, const vn_localised *localised,
                                   vn_error *err)
{
	VN_FREED int *input = vn_alloc((size_t)all->n, sizeof *input);
	vn_status     st = VN_OK;

	for (int i = 0; !st && i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		const bool     asked = o->plan && p->fails && (has_bad(p) || (p->replayed && p->replay.bad));
		const int      n = asked ? vn_inputs_of(o, all, localised, i, input, all->n) : -1;
		int            behind = -1;
		for (int k = 0; k < n && behind < 0; k++)
			behind = has_bad(&all->of[input[k]]) ? input[k] : -1;
		if (n >= 0 && behind < 0 && has_bad(p))
			st = find_overflow(o, all, p, (inputs) { input, n }, err);
		else if (behind >= 0 && p->replayed && p->replay.charged_to < 0 && only_bad(p))
			p->replay.charged_to = behind;
	}
	return st;
}

bool vn_overflow_is_all(const vn_checkpoint *p)
{
	return p->overflow.reached > 0 && p->replayed && !vn_local_beyond(p);
}

const char *vn_replay_say_overflow(const vn_checkpoint *p, char *text)
{
	const vn_overflow *o = &p->overflow;

	*text = '\0';
	vn_text_add(text, VN_WORDS, "it passed %.6g, the largest %s: ", o->largest, vn_dtype_name(o->format));
	if (o->terms)
		vn_text_add(text, VN_WORDS, "the running sum reaches %.3g at term %" PRId64 " of %" PRId64 " (%.3g in the end)",
		            o->reached, o->term, o->terms, o->whole);
	else
		vn_text_add(text, VN_WORDS, "the reference reaches %.3g where the candidate has NaN or infinity", o->reached);
	return text;
}
