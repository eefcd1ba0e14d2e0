/* explain_late.c: a run in steps that is a step behind, or a token: a checkpoint is what the step before recorded (a buffer that is not written
 * anew), or what it should have made there; an embedding is that of another token of the sequence. Neither is a change of a plan: the numbers are
 * there. */
#include "compare/explain/explain_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AWAY = 16, SOME = 3 }; /* tokens that an embedding's is before or behind its own, at most; of these the nearest that fit */

/* ---- the step before ---------------------------------------------------------------------------------- */

/* The same checkpoint in the step before, of the same shape; -1. */
static int point_before(const vn_trial *t)
{
	const vn_comparison *c = t->c;
	const vn_checkpoint *me = &c->point[t->x->point];
	const vn_step       *step;
	const int            n = vn_recording_steps(c->cand, &step);
	int                  before = -1;

	for (int i = 1; i < n; i++)
		before = step[i].number == me->step ? step[i - 1].number : before;
	for (int i = 0; before >= 0 && i < c->n_points; i++) {
		const vn_checkpoint *p = &c->point[i];
		if (p->step == before && p->m.n && strcmp(p->name, me->name) == 0
		    && vn_shape_equal(&vn_recording_entry(c->cand, p->cand)->shape, &vn_recording_entry(c->cand, me->cand)->shape))
			return i;
	}
	return -1;
}

/* One number everywhere, 0 mostly, is what was never written, in each step anew. */
static bool is_one_number(const vn_tensor *x)
{
	enum { BLOCK = 1024 };
	const size_t n = (size_t)vn_shape_count(&x->shape), width = vn_dtype_size(x->dtype);
	double       first = 0, block[BLOCK];
	bool         one = true;

	for (size_t at = 0; at < n && one; at += BLOCK) {
		const size_t m = n - at < BLOCK ? n - at : BLOCK;
		vn_to_f64(block, (const unsigned char *)x->data + at * width, x->dtype, m);
		first = at ? first : block[0];
		for (size_t i = 0; i < m; i++)
			one = one && block[i] == first;
	}
	return one;
}

/* What was recorded there. */
static vn_status recorded(vn_trial *t, int point, vn_hypothesis *h, vn_error *err)
{
	const int entry = t->c->point[point].cand;
	vn_tensor x;
	vn_status st = vn_entry_tensor(t->c->cand, entry, &x, err);

	if (st)
		return st;
	st = vn_shape_equal(&x.shape, &vn_probe_candidate(t->probe)->shape) && !is_one_number(&x) ? vn_weigh_numbers(t, &x, &x, h, err) : VN_OK;
	vn_recording_release(t->c->cand, entry);
	return st;
}

/* What the operation should have made there: the probe turns to it, and back. */
static vn_status should_be(vn_trial *t, int point, vn_hypothesis *h, vn_error *err)
{
	const vn_plan   *p = vn_probe_plan(t->probe);
	const vn_tensor *w = vn_probe_weights(t->probe);
	vn_tensor own = { 0 }, fine = { 0 };
	vn_error  none = { "" };
	vn_status st = vn_probe_at(t->probe, point, &none);

	if (!st && !(st = vn_probe_run(t->probe, p, w, VN_PROBE_OWN, &own, &none)))
		st = vn_probe_run(t->probe, p, w, VN_PROBE_FINE, &fine, &none);
	const vn_status back = vn_probe_at(t->probe, t->x->point, err);
	if (!st && !back && vn_shape_equal(&own.shape, &vn_probe_candidate(t->probe)->shape))
		st = vn_weigh_numbers(t, &own, &fine, h, &none);
	if (st && st != VN_ERR_UNSUPPORTED)
		*err = none;
	free((void *)(uintptr_t)own.data);
	free((void *)(uintptr_t)fine.data);
	return back ? back : st == VN_ERR_UNSUPPORTED ? VN_OK : st;
}

/* ---- another token's embedding -------------------------------------------------------------------------- */

/* Rows of the table by tokens `by` further on; 0 where there is none. x: of the checkpoint's rows. */
static void embedded(const vn_trial *t, int by, double *x)
{
	const vn_plan   *p = vn_probe_plan(t->probe);
	const vn_tensor *table = &vn_probe_weights(t->probe)[p->node[p->value[vn_probe_target(t->probe)].node].w[0]];
	const int64_t    D = table->shape.dim[1], V = table->shape.dim[0], rows = vn_probe_candidate(t->probe)->shape.dim[0];
	const int32_t   *ids;
	const int64_t    n = vn_recording_tokens(t->c->cand, &ids, NULL);

	for (int64_t i = 0; i < rows; i++) {
		const int64_t at = vn_probe_first(t->probe) + i + by;
		if (at >= 0 && at < n && ids[at] >= 0 && ids[at] < V)
			vn_to_f64(x + i * D, (const char *)table->data + vn_dtype_bytes(table->dtype, (size_t)(ids[at] * D)), table->dtype, (size_t)D);
		else
			memset(x + i * D, 0, (size_t)D * sizeof *x);
	}
}

/* Is the checkpoint made of a table by its tokens alone? */
static bool is_embedding(const vn_trial *t)
{
	const vn_plan   *p = vn_probe_plan(t->probe);
	const vn_node   *n = &p->node[p->value[vn_probe_target(t->probe)].node];
	const vn_tensor *c = vn_probe_candidate(t->probe);

	return n->op == VN_OP_EMBED && c->shape.rank == 2 && vn_probe_weights(t->probe)[n->w[0]].shape.dim[1] == c->shape.dim[1];
}

static vn_status of_tokens(vn_trial *t, vn_hypothesis *h, vn_error *err)
{
	const vn_shape s = vn_probe_candidate(t->probe)->shape;
	const size_t   n = (size_t)vn_shape_count(&s);
	const vn_dtype as = t->c->policy.storage;
	double        *fine = malloc(n * sizeof *fine + 1), *own = malloc(n * sizeof *own + 1);
	vn_status      st = fine && own ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for embeddings");

	if (!st)
		embedded(t, h->made.tokens, fine);
	for (size_t i = 0; !st && i < n; i++) {
		float x = (float)fine[i];
		vn_round_f32(&x, as, as != VN_F64);
		own[i] = as == VN_F64 ? fine[i] : (double)x;
	}
	if (!st)
		st = vn_weigh_numbers(t, &(vn_tensor){ VN_F64, s, own }, &(vn_tensor){ VN_F64, s, fine }, h, err);
	free(own);
	free(fine);
	return st;
}

/* ---- as hypotheses ------------------------------------------------------------------------------------------ */

vn_status vn_weigh_late(vn_trial *t, vn_hypothesis *h, vn_error *err)
{
	const int before = h->made.late ? point_before(t) : -1;

	h->used = (double)NAN;
	if (t->part || t->x->sound.local.bad)
		return VN_OK;
	if (h->made.tokens)
		return is_embedding(t) ? of_tokens(t, h, err) : VN_OK;
	return before < 0 ? VN_OK : h->made.late == VN_AS_RECORDED ? recorded(t, before, h, err) : should_be(t, before, h, err);
}

/* By the others, where ids come again: other steps say which. */
static void keep_tokens(vn_trial *t, vn_hypothesis *h)
{
	const vn_step *s = vn_recording_step(t->c->cand, t->c->point[t->x->point].step);
	const int      by = h->made.tokens;
	char           which[40];

	snprintf(which, sizeof which, abs(by) == 1 ? "the token" : "the token %d", abs(by));
	for (int later = 0; later < (s && s->position > 0 ? 2 : 1); later++) {
		h->made.later = later;
		vn_hypothesis_say(h, "the embedding of %s %s%s", which, by < 0 ? "before" : "behind", later ? ", behind the first call" : "");
		vn_keep(t->x, h);
	}
}

static vn_status try_tokens(vn_trial *t, vn_error *err)
{
	vn_status st = VN_OK;
	int       n = 0;

	for (int i = 2; !st && n < SOME && is_embedding(t) && i < 2 * AWAY + 2; i++) { /* 1 before, 1 behind, 2 before... */
		vn_hypothesis h = { .id = "M5", .node = vn_probe_plan(t->probe)->value[vn_probe_target(t->probe)].node };
		h.made.tokens = i % 2 ? i / 2 : -(i / 2);
		if ((st = vn_weigh_late(t, &h, err)) || !(h.used <= 1))
			continue;
		n++;
		keep_tokens(t, &h);
	}
	return st;
}

vn_status vn_try_late(vn_trial *t, vn_error *err)
{
	static const char *const means[] = { "", "what the step before has: it was not made anew", "what was due in the step before: it is a step late" };
	vn_status st = VN_OK;

	for (int late = VN_AS_RECORDED; !st && late <= VN_AS_IT_SHOULD && !vn_trial_answered(t); late++) {
		vn_hypothesis h = { .id = "P8", .node = vn_probe_plan(t->probe)->value[vn_probe_target(t->probe)].node, .capture = t->went == VN_NOT_WENT_ON };
		h.made.late = late;
		vn_hypothesis_say(&h, "%s", means[late]);
		st = vn_try_made(t, &h, err);
	}
	return st ? st : try_tokens(t, err); /* which is the same of single tokens, and shows in the first of them, too */
}
