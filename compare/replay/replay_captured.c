/* replay_captured.c: finds tensors that were recorded at the wrong place, or overwritten. The
 * candidate then continued with other numbers, and what reads the tensor comes out right with the
 * reference's numbers in its place.
 *
 * Several tensors may be wrong captures. If one operation reads them, it comes out right only with
 * all of them replaced, so every subset of its inputs is tried, the smallest first. If one was
 * computed from another, its correct content is computed from the other's correct content: hooks
 * that sit one operation early are wrong in a row.
 */
#include "compare/replay/replay_state.h"

#include "libref/base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a value should be ------------------------------------------------------------------ */

static void drop_saved(vn_replay *r, int which)
{
	vn_saved *s = &r->saved[which];
	for (int a = 0; a < VN_N_CONTENTS; a++)
		for (int i = 0; i < VN_N_ENGINES; i++)
			free(s->data[a][i]);
	r->n_saved--;
	memmove(s, s + 1, (size_t)(r->n_saved - which) * sizeof *s);
}

void vn_replay_forget(vn_replay *r)
{
	while (r->n_saved)
		drop_saved(r, r->n_saved - 1);
}

static bool read_after(const vn_plan *plan, int node, int root)
{
	for (int k = node + 1; k < plan->n_nodes; k++)
		if (vn_replay_reads(plan, k, root))
			return true;
	return false;
}

static void make_room(vn_replay *r, int k)
{
	for (int s = r->n_saved - 1; s >= 0; s--)
		if (!read_after(r->plan, k, r->saved[s].value))
			drop_saved(r, s);
	if (r->n_saved == VN_SAVED)
		drop_saved(r, 0);
}

/* Keeps the numbers that the engines hold of the value now. */
static vn_status keep_saved(vn_replay *r, vn_saved *s, vn_replay_content as, vn_error *err)
{
	const vn_shape whole = vn_replay_shape(r, s->value);
	vn_status      st = VN_OK;

	for (int i = 0; !st && i < VN_N_ENGINES; i++) {
		const vn_dtype t = vn_policy_dtype(r->e[i].policy, vn_value_wide(r->plan, s->value));
		s->data[as][i] = vn_alloc((size_t)vn_shape_count(&whole), vn_dtype_size(t));
		st = vn_ref_ops.read(r->e[i].ref, s->value, s->data[as][i], err);
	}
	return st;
}

/* ---- other numbers in the place of a node's inputs ------------------------------------------- */

/* The inputs of node k that are in error, as indices into saved, and what replaces each. */
typedef struct suspects {
	int               k, n, which[VN_MAX_IN];
	vn_replay_content now[VN_MAX_IN];
} suspects;

static suspects suspects_of(const vn_replay *r, int k)
{
	suspects s = { .k = k };
	for (int i = 0; i < r->n_saved && s.n < VN_MAX_IN; i++)
		if (vn_replay_reads(r->plan, k, r->saved[i].value)) {
			s.now[s.n] = VN_AS_CAPTURED;
			s.which[s.n++] = i;
		}
	return s;
}

static bool has_further(const vn_replay *r, const suspects *s, unsigned set)
{
	for (int i = 0; i < s->n; i++)
		if (set >> i & 1 && r->saved[s->which[i]].data[VN_FURTHER][0])
			return true;
	return false;
}

/* Runs the node again with the inputs of the set corrected and the others as captured. */
static vn_status run_with(vn_replay *r, suspects *s, unsigned set, vn_replay_content as, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; !st && i < s->n; i++) {
		const vn_saved         *v = &r->saved[s->which[i]];
		const vn_replay_content want = !(set >> i & 1) ? VN_AS_CAPTURED : v->data[as][0] ? as : VN_DIRECT;
		if (want == s->now[i])
			continue;
		if (want == VN_AS_CAPTURED)
			st = vn_replay_take(r, v->value, v->point, err);
		for (int e = 0; !st && want != VN_AS_CAPTURED && e < VN_N_ENGINES; e++)
			st = vn_ref_ops.write(r->e[e].ref, v->value, v->data[want][e], err);
		s->now[i] = want;
	}
	return st ? st : vn_replay_run_node(r, s->k, err);
}

static void lead_through(vn_saved *s, vn_checkpoint *point)
{
	for (int i = 0; i < s->n_through; i++)
		if (s->through[i] == point)
			return;
	if (s->n_through < VN_SAVED)
		s->through[s->n_through++] = point;
}

/* Keeps the numbers that node k makes if all values that it is computed from are correct. */
static vn_status keep_further(vn_replay *r, int k, vn_saved *s, vn_error *err)
{
	suspects  in = suspects_of(r, k);
	vn_status st;

	if (!in.n)
		return VN_OK;
	if ((st = run_with(r, &in, ~0u, VN_FURTHER, err)) || (st = keep_saved(r, s, VN_FURTHER, err)))
		return st;
	for (int i = 0; i < in.n; i++) {
		const vn_saved *v = &r->saved[in.which[i]];
		lead_through(s, v->point);
		for (int t = 0; t < v->n_through; t++)
			lead_through(s, v->through[t]);
	}
	return run_with(r, &in, 0, VN_AS_CAPTURED, err);
}

vn_status vn_replay_save(vn_replay *r, int k, int value, vn_error *err)
{
	const vn_shape  whole = vn_replay_shape(r, value);
	const vn_entry *e = vn_recording_entry(r->o->cand, r->point[value]->cand);
	vn_status       st;

	if (vn_replay_no_place(r->plan, value) || r->plan->value[value].state >= 0 || !vn_shape_equal(&whole, &e->shape))
		return VN_OK;
	vn_saved new = { .value = value, .point = r->point[value] };
	if (!(st = keep_saved(r, &new, VN_DIRECT, err)))
		st = keep_further(r, k, &new, err);
	make_room(r, k);
	r->saved[r->n_saved++] = new; /* counted even if half filled: vn_replay_forget frees it */
	return st;
}

/* ---- which was captured wrongly -------------------------------------------------------------- */

/* The outputs of the node, by index: those that are wrong, and which of them came out right. */
typedef struct outputs {
	bool wrong[VN_MAX_OUT + 2], right[VN_MAX_OUT + 2];
	int  n_wrong, n_right;
} outputs;

static outputs wrong_outputs(const vn_replay *r)
{
	outputs o = { .n_wrong = 0 };
	for (int i = 0; i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const vn_checkpoint *p = r->point[r->e[VN_REPLAY_OWN].out[i].value];
		o.wrong[i] = p && vn_local_beyond(p) && !vn_local_is_order(p) && p->replay.charged_to < 0;
		o.n_wrong += o.wrong[i];
	}
	return o;
}

/* Measures which of the wrong outputs are right now. */
static vn_status find_right_outputs(vn_replay *r, outputs *o, vn_error *err)
{
	vn_status st = VN_OK;
	o->n_right = 0;
	for (int i = 0; !st && i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const vn_node_output *m = &r->e[VN_REPLAY_OWN].out[i];
		o->right[i] = false;
		if (!o->wrong[i])
			continue;
		vn_checkpoint p = *r->point[m->value];
		st = vn_replay_measure(r, m, p.replay.wrong_in_order ? p.replay.columns : VN_COLUMNS_SAME, &p, err);
		o->n_right += o->right[i] = !vn_local_beyond(&p);
	}
	return st;
}

static void charge_right_outputs(vn_replay *r, const outputs *o, const vn_checkpoint *to)
{
	for (int i = 0; i < r->e[VN_REPLAY_OWN].n_out; i++)
		if (o->right[i])
			r->point[r->e[VN_REPLAY_OWN].out[i].value]->replay.charged_to = (int)(to - r->all->of);
}

typedef struct captured_match {
	unsigned          set;
	vn_replay_content as;
	int               right; /* outputs */
} captured_match;

/* Finds a smallest set of inputs among those that make the most outputs right. */
static vn_status search_suspects(vn_replay *r, suspects *s, outputs *o, captured_match *best, vn_error *err)
{
	vn_status st = VN_OK;

	*best = (captured_match) { 0 };
	for (int size = 1; size <= s->n; size++)
		for (unsigned set = 1; set < 1u << s->n; set++)
			for (int as = VN_DIRECT; __builtin_popcount(set) == size && as < VN_N_CONTENTS; as++) {
				if (as == VN_FURTHER && !has_further(r, s, set))
					continue;
				if ((st = run_with(r, s, set, (vn_replay_content)as, err)) || (st = find_right_outputs(r, o, err)))
					return st;
				if (o->n_right > best->right)
					*best = (captured_match) { set, (vn_replay_content)as, o->n_right };
				if (o->n_right == o->n_wrong)
					return VN_OK;
			}
	return st;
}

static void mark_captured(vn_replay *r, const suspects *s, const captured_match *f, const outputs *o)
{
	const vn_checkpoint *first = NULL;

	for (int i = s->n - 1; i >= 0; i--) { /* backward, because drop_saved moves later ones */
		if (!(f->set >> i & 1))
			continue;
		const vn_saved *v = &r->saved[s->which[i]];
		first = v->point;
		v->point->replay.recorder_fault = true;
		for (int t = 0; s->now[i] == VN_FURTHER && t < v->n_through; t++)
			v->through[t]->replay.recorder_fault = true;
		drop_saved(r, s->which[i]); /* from here on, the correct content is in place */
	}
	charge_right_outputs(r, o, first);
}

vn_status vn_replay_captured(vn_replay *r, int k, vn_error *err)
{
	outputs        o = wrong_outputs(r);
	suspects       s = suspects_of(r, k);
	captured_match f;
	vn_status      st;

	if (!o.n_wrong || !s.n)
		return VN_OK;
	if ((st = search_suspects(r, &s, &o, &f, err)) || (st = run_with(r, &s, f.set, f.as, err)) || !f.right ||
	    (st = find_right_outputs(r, &o, err)))
		return st;
	mark_captured(r, &s, &f, &o);
	return VN_OK;
}

/* ---- an input that was overwritten before it was read ---------------------------------------- */

/* The checkpoint of this step that recorded the numbers which overwrote the value `root`, or NULL.
 * A checkpoint within its limits cannot be charged: the node that read it would be cleared, and
 * nothing would be outside. */
static const vn_checkpoint *replaced_by(const vn_replay *r, int root)
{
	for (int i = r->first[r->at]; i < r->first[r->at + 1]; i++) {
		const vn_checkpoint *p = r->in_step[i];
		if (p->overwritten && p->fails && vn_names_root(&r->names, p->overwritten) == root)
			return p;
	}
	return NULL;
}

/* Writes that checkpoint for each input of node k, or NULL. Returns the first. */
static const vn_checkpoint *find_replaced(const vn_replay *r, int k, const vn_checkpoint *by[VN_MAX_IN])
{
	const vn_checkpoint *first = NULL;
	for (int i = 0; i < r->plan->node[k].n_in; i++) {
		const int root = vn_plan_root(r->plan, r->plan->node[k].in[i]);
		by[i] = r->point[root] && vn_trace_kept(&r->trace, r->at, root) ? replaced_by(r, root) : NULL;
		first = first ? first : by[i];
	}
	return first;
}

static vn_status put_inputs(vn_replay *r, int k, const vn_checkpoint *const by[VN_MAX_IN], bool replaced, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < r->plan->node[k].n_in; i++) {
		const int root = vn_plan_root(r->plan, r->plan->node[k].in[i]);
		if (by[i])
			st = vn_replay_take(r, root, replaced ? by[i] : r->point[root], err);
	}
	return st ? st : vn_replay_run_node(r, k, err);
}

vn_status vn_replay_overwritten(vn_replay *r, int k, vn_error *err)
{
	outputs              o = wrong_outputs(r);
	const vn_checkpoint *by[VN_MAX_IN], *first = o.n_wrong ? find_replaced(r, k, by) : NULL;
	vn_status            st;

	if (!first)
		return VN_OK;
	if ((st = put_inputs(r, k, by, true, err)) || (st = find_right_outputs(r, &o, err)))
		return st;
	charge_right_outputs(r, &o, first);
	return put_inputs(r, k, by, false, err);
}
