/* replay_node.c: replays one node: runs it in both engines, compares it with the candidate, charges
 * it if the error is its own, and replaces its outputs by the candidate's numbers. */
#include "compare/replay/draws.h"

#include <math.h>
#include <string.h>

static vn_status measure_all(vn_replay *r, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const vn_node_output *m = &r->e[VN_REPLAY_OWN].out[i];
		vn_checkpoint        *p = r->point[m->value];
		if (!p || !vn_replay_made(&r->e[VN_REPLAY_FINE], m->value) ||
		    !vn_shape_equal(&m->t.shape, &vn_recording_entry(r->o->ref, p->ref)->shape) ||
		    !vn_shape_equal(&m->t.shape, &vn_recording_entry(r->o->cand, p->cand)->shape))
			continue;
		int span, charged;
		vn_trace_span(&r->trace, r->at, m->value, &span, &charged);
		p->replay.span = span;
		if ((st = vn_replay_measure(r, m, VN_COLUMNS_SAME, p, err)))
			break;
		p->replay.charged_to = charged;
		vn_draws_pool(r, m->value, &p->replay);
		if (!vn_local_beyond(p))
			p->replay.charged_to = -1;
	}
	return st;
}

/* A checkpoint that is this many times nearer to the reference than to what its captured inputs
 * give was not computed from these inputs, if it is within its limits, or if an operation before
 * these inputs is wrong, whose error it has. */
#define NEARER 16.0

/* Is q's error another checkpoint's? Steps share the operations that made the cache, so the same
 * checkpoint of an earlier step may have been charged for q. */
static bool is_charged_elsewhere(const vn_replay *r, const vn_checkpoint *q)
{
	const vn_checkpoint *to = q->replay.charged_to < 0 ? NULL : &r->all->of[q->replay.charged_to];
	return to && !(to->step < q->step && strcmp(to->name, q->name) == 0);
}

/* Returns the first wrong input of the span that was walked last. *n: number of wrong inputs not
 * known to be wrong captures; *unknown: one of them. */
static vn_checkpoint *wrong_inputs(const vn_replay *r, vn_checkpoint **unknown, int *n)
{
	vn_checkpoint *first = NULL;
	*n = 0;
	*unknown = NULL;
	for (size_t i = 0; i < r->trace.n_span; i++) {
		const size_t   cell = r->trace.span[i], values = (size_t)r->plan->n_values;
		const vn_node *node = &r->plan->node[r->plan->value[cell % values].node];
		for (int k = 0; cell / values == (size_t)r->at && k < node->n_in; k++) {
			const int      value = vn_plan_root(r->plan, node->in[k]);
			vn_checkpoint *q = r->point[value];
			if (!q || !vn_trace_kept(&r->trace, r->at, value) || !q->fails || !vn_local_beyond(q) ||
			    is_charged_elsewhere(r, q))
				continue;
			const bool known = q->replay.recorder_fault || q->replay.charged_to >= 0;
			first = first ? first : q;
			*n += !known && q != *unknown;
			*unknown = known ? *unknown : q;
		}
	}
	return first;
}

/* Was the node run with this input corrected (replay_captured.c)? Then the result is known. */
static bool is_tested(const vn_replay *r, int k, const vn_checkpoint *input)
{
	for (int i = 0; i < r->n_saved; i++)
		if (r->saved[i].point == input && vn_replay_reads(r->plan, k, r->saved[i].value))
			return true;
	return false;
}

/* Is an operation of this step wrong before that of q, and not by its capture alone? */
static bool is_wrong_before(const vn_replay *r, const vn_checkpoint *q)
{
	for (int i = r->first[r->at]; i < r->first[r->at + 1]; i++) {
		const vn_checkpoint *p = r->in_step[i];
		if (p < q && p->fails && vn_local_beyond(p) && p->replay.charged_to < 0 && !p->replay.recorder_fault)
			return true;
	}
	return false;
}

/* Charges the node's error to its inputs: the run continued with other numbers than the captured
 * ones. Some operations in between were not captured, so the node cannot be run with corrected
 * inputs (replay_captured.c). */
static bool charge_inputs(const vn_replay *r, int k, vn_checkpoint *p)
{
	vn_checkpoint *unknown, *first;
	int            n;

	if (!(NEARER * p->m.value[VN_M_NMSE] <= p->replay.local) || !(first = wrong_inputs(r, &unknown, &n)) ||
	    (p->fails && !is_wrong_before(r, first)))
		return false;
	if (n == 1 && is_tested(r, k, unknown))
		return false;
	if (n == 1)
		unknown->replay.recorder_fault = true;
	p->replay.charged_to = first->replay.charged_to >= 0 ? first->replay.charged_to : (int)(first - r->all->of);
	return true;
}

static vn_status charge_node(vn_replay *r, int k, vn_error *err)
{
	vn_status st = VN_OK;
	int       span, charged;
	for (int i = 0; !st && i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const int      value = r->e[VN_REPLAY_OWN].out[i].value;
		vn_checkpoint *p = r->point[value];
		if (!p || !vn_local_beyond(p) || p->replay.charged_to >= 0)
			continue;
		vn_trace_span(&r->trace, r->at, value, &span, &charged);
		p->replay.charged_to = charged; /* a checkpoint already charged with an operation of the span */
		if (charged >= 0 || charge_inputs(r, k, p))
			continue;
		vn_trace_charge(&r->trace, (int)(p - r->all->of));
		st = vn_local_is_order(p) ? VN_OK : vn_replay_save(r, k, value, err);
	}
	return st;
}

/* Restores judged values only: a value that is not judged must not hide the error of what reads
 * it. */
static vn_status put_back(vn_replay *r, int value, vn_error *err)
{
	const vn_checkpoint *p = r->point[value];

	r->error[value] = (double)NAN;
	if (!p || !p->replayed || vn_replay_no_place(r->plan, value))
		return VN_OK;
	r->error[value] = sqrt(p->m.value[VN_M_NMSE]);
	return vn_replay_take(r, value, p, err);
}

vn_status vn_replay_node(vn_replay *r, int k, vn_error *err)
{
	const vn_node *node = &r->plan->node[k];
	vn_status      st;
	if ((st = vn_replay_run_node(r, k, err)) || (st = vn_draws_node(r, k, err)) || (st = measure_all(r, err)) ||
	    (st = vn_replay_columns(r, k, err)) || (st = vn_replay_overwritten(r, k, err)) ||
	    (st = vn_replay_captured(r, k, err)) || (st = charge_node(r, k, err)))
		return st;
	for (int i = 0; !st && i < node->n_out; i++)
		if (node->out[i] >= 0)
			st = put_back(r, node->out[i], err);
	if (r->e[VN_REPLAY_OWN].n_out) { /* the mapped pages of the recordings must not add up beside the weights */
		vn_recording_forget(r->o->ref);
		vn_recording_forget(r->o->cand);
	}
	return st;
}
