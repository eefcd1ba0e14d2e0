/* replay_columns.c: handles a value that is right except for the order of its columns. That order
 * is no mistake if the operations that read the value are right once it is undone.
 *
 * From there on, such a tensor is used in the reference's order. If an operation that reads it is
 * then wrong in both orders, it is computed once more from the columns as captured. If it is right
 * then, the run continued with the columns in that order (as with weights in one order that are
 * rotated in the other), and the operation that made the tensor is charged.
 *
 * An engine has one order in all layers. If a mistake follows a tensor, nothing proves its order,
 * but other layers may. The steps are then walked a second time with that order assumed, and the
 * mistake is measured in the reference's order.
 */
#include "compare/replay/replay_state.h"

#include <stdlib.h>

#define ORDER_LEAVES 0.0625 /* the most that another order may leave, of the error in the recorded order */

/* Does the candidate's tensor hold the numbers of both engines, with its columns in that order? */
static vn_status agrees_with_order(vn_replay *r, const vn_node_output *own, const vn_checkpoint *p,
                                   vn_column_order order, bool *yes, vn_error *err)
{
	const char            *axes = vn_entry_axes(vn_recording_entry(r->o->ref, p->ref));
	vn_checkpoint          as = *p;
	unsigned char         *data = NULL;
	vn_tensor              cand;
	const vn_local_tensors x = { .a = &own->t,
		                         .b = &vn_replay_made(&r->e[VN_REPLAY_FINE], own->value)->t,
		                         .c = &cand,
		                         .axes = axes,
		                         .storage = r->e[VN_REPLAY_OWN].policy.storage,
		                         .threads = r->o->request.options->threads };
	vn_status              st = vn_replay_candidate(r->o, p, order, &cand, &data, err);

	*yes = false;
	if (!st && !(st = vn_local_measure(&x, &as.replay, NULL, err)) &&
	    as.replay.local <= ORDER_LEAVES * p->replay.local) {
		if (vn_local_beyond(&as))
			st = vn_replay_judge_variants(r, own, &cand, axes, &as.replay, err);
		*yes = !st && !vn_local_beyond(&as);
	}
	free(data);
	vn_recording_release(r->o->cand, p->cand);
	return st;
}

/* Are all operations that read the value judged? One that is not judged could hide the order with
 * which the run continued. */
static bool readers_are_judged(const vn_replay *r, int root)
{
	int n = 0;
	for (int k = 0; k < r->plan->n_nodes; k++) {
		const vn_node *node = &r->plan->node[k];
		const bool     reads = vn_replay_reads(r->plan, k, root);
		bool           judged = false;
		for (int i = 0; i < node->n_out; i++)
			judged = judged || (node->out[i] >= 0 && r->point[vn_plan_root(r->plan, node->out[i])]);
		if (reads && !judged)
			return false;
		n += reads;
	}
	return n > 0;
}

static vn_column_order assumed_order(const vn_replay *r, int root)
{
	return r->assumed[r->plan->value[root].point];
}

/* Handles a tensor in an order proven by other layers, which is wrong in the reference's order
 * too. */
static vn_status wrong_in_order(vn_replay *r, const vn_node_output *m, vn_checkpoint *p, vn_error *err)
{
	vn_checkpoint   now = *p;
	const vn_status st = vn_replay_measure(r, m, assumed_order(r, m->value), &now, err);

	now.replay.span = p->replay.span;
	now.replay.columns = assumed_order(r, m->value);
	now.replay.wrong_in_order = true;
	if (!st)
		*p = now;
	return st;
}

/* Records the order in which the columns of each wrong output of node k are right. *right: there is
 * one for every output. */
static vn_status order_columns(vn_replay *r, bool *right, vn_error *err)
{
	vn_status st = VN_OK;

	*right = true;
	for (int i = 0; !st && i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const vn_node_output *m = &r->e[VN_REPLAY_OWN].out[i], *fine = vn_replay_made(&r->e[VN_REPLAY_FINE], m->value);
		vn_checkpoint        *p = r->point[m->value];
		const int64_t         width = m->t.shape.rank ? m->t.shape.dim[m->t.shape.rank - 1] : 0;
		bool                  yes = false;
		if (!p || !vn_local_beyond(p))
			continue;
		for (int order = VN_COLUMNS_PAIRS;
		     !st && !yes && fine && !p->scores && !p->replay.bad && p->replay.charged_to < 0 && order < VN_N_COLUMNS &&
		     width >= 4 && width % 2 == 0 && !vn_replay_no_place(r->plan, m->value) && readers_are_judged(r, m->value);
		     order++)
			if (!(st = agrees_with_order(r, m, p, (vn_column_order)order, &yes, err)) && yes)
				p->replay.columns = (vn_column_order)order;
		if (!st && !yes && assumed_order(r, m->value))
			st = wrong_in_order(r, m, p, err);
		*right = *right && yes;
	}
	return st;
}

/* An input whose columns were reordered, or NULL. */
static vn_checkpoint *in_order(const vn_replay *r, int k, int input, int *root)
{
	*root = vn_plan_root(r->plan, r->plan->node[k].in[input]);
	return r->point[*root] && r->point[*root]->replay.columns ? r->point[*root] : NULL;
}

/* Measures node k's outputs again on the inputs as they are now. */
static vn_status measure_again(vn_replay *r, int k, vn_error *err)
{
	vn_status st = vn_replay_run_node(r, k, err);

	for (int i = 0; !st && i < r->e[VN_REPLAY_OWN].n_out; i++) {
		const vn_node_output *m = &r->e[VN_REPLAY_OWN].out[i];
		vn_checkpoint        *p = r->point[m->value];
		if (!p || !p->replayed)
			continue;
		const vn_column_order order = p->replay.wrong_in_order ? p->replay.columns : VN_COLUMNS_SAME;
		vn_checkpoint         now = *p;
		st = vn_replay_measure(r, m, order, &now, err);
		now.replay.span = p->replay.span;
		now.replay.columns = order;
		now.replay.wrong_in_order = order != VN_COLUMNS_SAME;
		if (!st)
			*p = now;
	}
	return st;
}

/* Is every output of node k right as captured? */
static bool is_right(const vn_replay *r, int k)
{
	for (int i = 0; i < r->plan->node[k].n_out; i++) {
		const int            value = r->plan->node[k].out[i];
		const vn_checkpoint *p = value < 0 ? NULL : r->point[vn_plan_root(r->plan, value)];
		if (p && p->replayed && (vn_local_beyond(p) || p->replay.columns))
			return false;
	}
	return true;
}

/* Runs node k on its inputs as captured, and leaves them so. If its outputs are right, or wrong in
 * both orders (which proves neither order), each input in another order counts as wrong. An order
 * that other layers prove stays, even if the node is wrong in both. */
static vn_status as_captured(vn_replay *r, int k, vn_error *err)
{
	const vn_node  *node = &r->plan->node[k];
	vn_column_order was[VN_MAX_IN] = { VN_COLUMNS_SAME };
	vn_checkpoint  *p;
	vn_status       st = VN_OK;
	bool            changed = false, back = false;
	int             root;

	for (int i = 0; !st && i < node->n_in; i++)
		if ((p = in_order(r, k, i, &root)) && !p->replay.wrong_in_order) {
			was[i] = p->replay.columns;
			p->replay.columns = VN_COLUMNS_SAME;
			st = vn_replay_take(r, root, p, err);
			changed = true;
		}
	if (st || !changed || (st = measure_again(r, k, err)) || is_right(r, k))
		return st;
	for (int i = 0; !st && i < node->n_in; i++)
		if (was[i] && assumed_order(r, vn_plan_root(r->plan, node->in[i])) == was[i]) {
			root = vn_plan_root(r->plan, node->in[i]);
			r->point[root]->replay.columns = was[i];
			st = vn_replay_take(r, root, r->point[root], err);
			back = true;
		}
	return st || !back ? st : measure_again(r, k, err);
}

vn_status vn_replay_columns(vn_replay *r, int k, vn_error *err)
{
	const vn_node *node = &r->plan->node[k];
	vn_checkpoint *p;
	bool           right;
	int            root;
	vn_status      st = order_columns(r, &right, err);

	if (st || !right)
		return st ? st : as_captured(r, k, err);
	for (int i = 0; i < node->n_in; i++)
		if ((p = in_order(r, k, i, &root)) && !p->replay.wrong_in_order)
			r->proven[r->plan->value[root].point] = p->replay.columns;
	return VN_OK;
}

bool vn_replay_columns_again(const vn_replay *r, vn_column_order next[VN_N_POINTS])
{
	bool again = false;

	for (int i = 0; i < r->all->n; i++) {
		const vn_checkpoint *p = &r->all->of[i];
		const int root = p->replayed && vn_local_beyond(p) && !p->replay.columns ? vn_names_root(&r->names, p->name)
		                                                                         : -1;
		if (root >= 0 && r->proven[r->plan->value[root].point] && !assumed_order(r, root))
			again = true;
	}
	if (again)
		for (int i = 0; i < VN_N_POINTS; i++)
			next[i] = r->proven[i] ? r->proven[i] : next[i];
	return again;
}
