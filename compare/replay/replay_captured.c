/* replay_captured.c: finds tensors that were recorded at the wrong place, or overwritten. The
 * candidate then continued with other numbers, and what reads the tensor comes out right with the
 * reference's numbers in its place.
 *
 * Several tensors may be wrong captures. If one operation reads them, it comes out right only with
 * all of them replaced, so every subset of its inputs is tried, the smallest first. If one was
 * computed from another, its correct content is computed from the other's correct content: hooks
 * that sit one operation early are wrong in a row.
 */
#include "compare/replay/replay_captured.h"
#include "compare/replay/replay_measure.h"
#include "compare/replay/replay_state.h"

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

static bool node_reads(const vn_plan *plan, int node, int root)
{
	for (int i = 0; i < plan->node[node].n_in; i++)
		if (vn_plan_root(plan, plan->node[node].in[i]) == root)
			return true;
	return false;
}

static bool read_after(const vn_plan *plan, int node, int root)
{
	for (int k = node + 1; k < plan->n_nodes; k++)
		if (node_reads(plan, k, root))
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
		s->data[as][i] = malloc((size_t)vn_shape_count(&whole) * vn_dtype_size(t) + 1);
		st = s->data[as][i] ? vn_ref_ops.read(r->e[i].ref, s->value, s->data[as][i], err)
		                    : vn_fail(err, VN_ERR_NOMEM, "no memory to replay %s", r->plan->value[s->value].name);
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
		if (node_reads(r->plan, k, r->saved[i].value)) {
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
			st = vn_replay_take(r, v->value, err);
		for (int e = 0; !st && want != VN_AS_CAPTURED && e < VN_N_ENGINES; e++)
			st = vn_ref_ops.write(r->e[e].ref, v->value, v->data[want][e], err);
		s->now[i] = want;
	}
	return st ? st : vn_replay_run_node(r, s->k, err);
}

static void lead_through(vn_saved *s, int point)
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
	const vn_entry *e = vn_recording_entry(r->c->opened.cand, r->c->result.checkpoint[r->point[value]].cand);
	vn_saved       *s;
	vn_status       st;

	if (vn_replay_no_place(r->plan, value) || r->plan->value[value].state >= 0 || !vn_shape_equal(&whole, &e->shape))
		return VN_OK;
	vn_saved new = { .value = value, .point = r->point[value] };
	if (!(st = keep_saved(r, &new, VN_DIRECT, err)))
		st = keep_further(r, k, &new, err);
	make_room(r, k);
	s = &r->saved[r->n_saved++];
	*s = new; /* counted even if half filled: vn_replay_forget frees it */
	return st;
}

/* ---- which was captured wrongly -------------------------------------------------------------- */

static bool came_out_otherwise(const vn_replay *r, const vn_node_output *m)
{
	const int point = r->point[m->value];
	return point >= 0 && r->c->result.checkpoint[point].replayed && vn_local_beyond(&r->c->result.checkpoint[point]) &&
	       !vn_local_is_order(&r->c->result.checkpoint[point]) && r->c->result.checkpoint[point].replay.charged_to < 0;
}

/* right: which of the wrong outputs are right now. *n: their number. */
static vn_status find_right_outputs(vn_replay *r, int k, const bool *wrong, bool *right, int *n, vn_error *err)
{
	vn_status st = VN_OK;
	*n = 0;
	for (int i = 0; !st && i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const vn_node_output *m = &r->e[VN_REPLAY_OWN].out[i];
		right[i] = false;
		if (!wrong[i])
			continue;
		vn_checkpoint p = r->c->result.checkpoint[r->point[m->value]];
		st = vn_replay_measure(r, &r->plan->node[k], m, p.replay.wrong_in_order ? p.replay.columns : VN_COLUMNS_SAME,
		                       &p, err);
		*n += right[i] = !vn_local_beyond(&p);
	}
	return st;
}

typedef struct captured_match {
	unsigned          set;
	vn_replay_content as;
	int               right; /* outputs */
} captured_match;

static int size_of(unsigned set)
{
	int n = 0;
	for (; set; set &= set - 1)
		n++;
	return n;
}

/* Finds a smallest set of inputs among those that make the most outputs right. */
static vn_status search_suspects(vn_replay *r, suspects *s, const bool *wrong, int all, captured_match *best,
                                 vn_error *err)
{
	bool      right[VN_MAX_OUT + 2];
	vn_status st = VN_OK;
	int       n;

	*best = (captured_match) { 0 };
	for (int size = 1; size <= s->n; size++)
		for (unsigned set = 1; set < 1u << s->n; set++)
			for (int as = VN_DIRECT; size_of(set) == size && as < VN_N_CONTENTS; as++) {
				if (as == VN_FURTHER && !has_further(r, s, set))
					continue;
				if ((st = run_with(r, s, set, (vn_replay_content)as, err)) ||
				    (st = find_right_outputs(r, s->k, wrong, right, &n, err)))
					return st;
				if (n > best->right)
					*best = (captured_match) { set, (vn_replay_content)as, n };
				if (n == all)
					return VN_OK;
			}
	return st;
}

static void mark_captured(vn_replay *r, const suspects *s, const captured_match *f, const bool *wrong,
                          const bool *right)
{
	int first = -1;

	for (int i = s->n - 1; i >= 0; i--) { /* backward, because drop_saved moves later ones */
		if (!(f->set >> i & 1))
			continue;
		const vn_saved *v = &r->saved[s->which[i]];
		first = v->point;
		r->c->result.checkpoint[v->point].replay.recorder_fault = true;
		for (int t = 0; s->now[i] == VN_FURTHER && t < v->n_through; t++)
			r->c->result.checkpoint[v->through[t]].replay.recorder_fault = true;
		drop_saved(r, s->which[i]); /* from here on, the correct content is in place */
	}
	for (int i = 0; i < r->e[VN_REPLAY_OWN].n_out; i++)
		if (wrong[i] && right[i])
			r->c->result.checkpoint[r->point[r->e[VN_REPLAY_OWN].out[i].value]].replay.charged_to = first;
}

vn_status vn_replay_captured(vn_replay *r, int k, vn_error *err)
{
	bool           wrong[VN_MAX_OUT + 2] = { false }, right[VN_MAX_OUT + 2] = { false };
	suspects       s = suspects_of(r, k);
	captured_match f;
	vn_status      st;
	int            all = 0, n;

	for (int i = 0; i < r->e[VN_REPLAY_OWN].n_out; i++)
		all += wrong[i] = came_out_otherwise(r, &r->e[VN_REPLAY_OWN].out[i]);
	if (!all || !s.n || (st = search_suspects(r, &s, wrong, all, &f, err)))
		return all && s.n ? st : VN_OK;
	if ((st = run_with(r, &s, f.set, f.as, err)) || !f.right || (st = find_right_outputs(r, k, wrong, right, &n, err)))
		return st;
	mark_captured(r, &s, &f, wrong, right);
	return VN_OK;
}

/* ---- an input that was overwritten before it was read ---------------------------------------- */

/* The checkpoint of this step that recorded the numbers which overwrote the value `root`; -1: none.
 * A checkpoint within its limits cannot be charged: the node that read it would be cleared, and
 * nothing would be outside. */
static int replaced_by(const vn_replay *r, int root)
{
	for (int i = 0; i < r->c->result.n_checkpoints; i++) {
		const vn_checkpoint *p = &r->c->result.checkpoint[i];
		if (p->overwritten && p->fails && p->step == r->step->number &&
		    vn_names_root(&r->names, p->overwritten) == root)
			return i;
	}
	return -1;
}

/* Writes that checkpoint for each input of node k. Returns how many inputs have one. */
static int find_replaced(const vn_replay *r, int k, int by[VN_MAX_IN])
{
	int n = 0;
	for (int i = 0; i < r->plan->node[k].n_in; i++) {
		const int root = vn_plan_root(r->plan, r->plan->node[k].in[i]);
		by[i] = r->point[root] >= 0 && vn_trace_kept(&r->trace, r->at, root) ? replaced_by(r, root) : -1;
		n += by[i] >= 0;
	}
	return n;
}

static vn_status put_inputs(vn_replay *r, int k, const int by[VN_MAX_IN], bool replaced, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < r->plan->node[k].n_in; i++) {
		const int root = vn_plan_root(r->plan, r->plan->node[k].in[i]);
		if (by[i] >= 0)
			st = vn_replay_take_from(r, root, &r->c->result.checkpoint[replaced ? by[i] : r->point[root]], err);
	}
	return st ? st : vn_replay_run_node(r, k, err);
}

vn_status vn_replay_overwritten(vn_replay *r, int k, vn_error *err)
{
	bool      wrong[VN_MAX_OUT + 2] = { false }, right[VN_MAX_OUT + 2] = { false };
	int       by[VN_MAX_IN], all = 0, n, first = -1;
	vn_status st;

	for (int i = 0; i < r->e[VN_REPLAY_OWN].n_out; i++)
		all += wrong[i] = came_out_otherwise(r, &r->e[VN_REPLAY_OWN].out[i]);
	if (!all || !find_replaced(r, k, by))
		return VN_OK;
	if ((st = put_inputs(r, k, by, true, err)) || (st = find_right_outputs(r, k, wrong, right, &n, err)))
		return st;
	for (int i = 0; i < r->plan->node[k].n_in; i++)
		first = first < 0 ? by[i] : first;
	for (int i = 0; i < r->e[VN_REPLAY_OWN].n_out; i++)
		if (wrong[i] && right[i])
			r->c->result.checkpoint[r->point[r->e[VN_REPLAY_OWN].out[i].value]].replay.charged_to = first;
	return put_inputs(r, k, by, false, err);
}
