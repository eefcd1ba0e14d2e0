/* replay_columns.c: a value that is right but for the order of its columns, which is no
 * mistake where what reads it is right with that order undone.
 *
 * A tensor that agrees so is taken in the reference's order from there on. What reads it
 * and comes out otherwise then, in either order of its own, is computed once more on the
 * columns as they were captured: is it right so, the run went on with them in that order,
 * as with weights of one order that are rotated in the other, and the operation is charged. */
#include "compare/replay/replay_inside.h"

#include <stdlib.h>
#include <string.h>

#define LEFT 0.0625 /* of the error as it is labelled, at most, in another order */

static void undo(const vn_tensor *t, vn_column_order lie, unsigned char *to)
{
	const int64_t width = t->shape.dim[t->shape.rank - 1], n = vn_shape_count(&t->shape);
	const size_t  size = vn_dtype_size(t->dtype);

	for (int64_t i = 0; i < n; i++)
		memcpy(to + (size_t)i * size, (const unsigned char *)t->data + (size_t)(i - i % width + vn_column_at(lie, width, i % width)) * size, size);
}

vn_status vn_replay_undo_columns(const vn_checkpoint *p, vn_tensor *t, unsigned char **own, vn_error *err)
{
	*own = NULL;
	if (p->replay.columns == VN_COLUMNS_SAME)
		return VN_OK;
	if (!(*own = malloc((size_t)vn_shape_count(&t->shape) * vn_dtype_size(t->dtype) + 1)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory to replay %s", p->name);
	undo(t, p->replay.columns, *own);
	t->data = *own;
	return VN_OK;
}

/* Does the candidate's tensor hold what both engines made, its columns in that order? */
static vn_status agrees(vn_replay *r, const vn_node *node, const vn_made *a, const vn_made *b, const vn_checkpoint *p, vn_column_order lie, bool *yes, vn_error *err)
{
	const char    *axes = vn_entry_axes(vn_recording_entry(r->c->ref, p->ref));
	const vn_tensor own = { a->dtype, a->shape, a->data }, fine = { b->dtype, b->shape, b->data };
	vn_checkpoint  as = *p;
	unsigned char *data = NULL;
	vn_tensor      cand;
	vn_status      st = vn_entry_tensor(r->c->cand, p->cand, &cand, err);

	*yes = false;
	as.replay.columns = lie;
	if (!st && !(st = vn_replay_undo_columns(&as, &cand, &data, err))
	    && !(st = vn_local_measure(&own, &fine, &cand, axes, r->e[VN_OWN].policy.storage, r->c->options->threads, &as.replay, err))
	    && as.replay.local <= LEFT * p->replay.local) {
		if (vn_local_beyond(&as))
			st = vn_replay_allow(r, node, a, &cand, axes, &as.replay, err);
		*yes = !st && !vn_local_beyond(&as);
	}
	free(data);
	vn_recording_release(r->c->cand, p->cand);
	return st;
}

/* Is all that reads it judged? What is not would hide which order the run went on with. */
static bool readers_are_judged(const vn_replay *r, int root)
{
	int n = 0;
	for (int k = 0; k < r->plan->n_nodes; k++) {
		const vn_node *node = &r->plan->node[k];
		bool reads = false, judged = false;
		for (int i = 0; i < node->n_in; i++)
			reads = reads || vn_plan_root(r->plan, node->in[i]) == root;
		for (int i = 0; i < node->n_out; i++)
			judged = judged || (node->out[i] >= 0 && r->point[vn_plan_root(r->plan, node->out[i])] >= 0);
		if (reads && !judged)
			return false;
		n += reads;
	}
	return n > 0;
}

/* *right: all that node k makes is, in some order of its columns; the orders are noted. */
static vn_status order_columns(vn_replay *r, int k, bool *right, vn_error *err)
{
	vn_status st = VN_OK;

	*right = true;
	for (int i = 0; !st && i < r->e[VN_OWN].n_out; i++) {
		const vn_made *m = &r->e[VN_OWN].out[i], *fine = NULL;
		vn_checkpoint *p = r->point[m->value] >= 0 ? &r->c->point[r->point[m->value]] : NULL;
		const int64_t  width = m->shape.rank ? m->shape.dim[m->shape.rank - 1] : 0;
		bool           yes = false;
		for (int f = 0; f < r->e[VN_FINE].n_out; f++)
			fine = r->e[VN_FINE].out[f].value == m->value ? &r->e[VN_FINE].out[f] : fine;
		if (!p || !p->replayed || !vn_local_beyond(p))
			continue;
		for (int lie = VN_COLUMNS_PAIRS; !st && !yes && fine && !p->scores && !p->replay.bad && p->replay.behind < 0 && lie < VN_N_COLUMNS && width >= 4 && width % 2 == 0
		     && !vn_replay_no_place(r->plan, m->value) && readers_are_judged(r, m->value); lie++)
			if (!(st = agrees(r, &r->plan->node[k], m, fine, p, (vn_column_order)lie, &yes, err)) && yes)
				p->replay.columns = (vn_column_order)lie;
		*right = *right && yes;
	}
	return st;
}

/* Its inputs whose columns were put in order, or NULL. */
static vn_checkpoint *in_order(const vn_replay *r, int k, int input, int *root)
{
	*root = vn_plan_root(r->plan, r->plan->node[k].in[input]);
	const int point = *root < 0 ? -1 : r->point[*root];
	return point >= 0 && r->c->point[point].replay.columns ? &r->c->point[point] : NULL;
}

/* Node k on its inputs as they were captured, and so they stay: what it makes is right so, or wrong in both orders, which proves none;
 * then each is charged where it is. */
static vn_status as_captured(vn_replay *r, int k, vn_error *err)
{
	vn_checkpoint *p;
	vn_status st = VN_OK;
	int root, n = 0;

	for (int i = 0; !st && i < r->plan->node[k].n_in; i++)
		if ((p = in_order(r, k, i, &root))) {
			p->replay.columns = VN_COLUMNS_SAME;
			st = vn_replay_take(r, root, err);
			n++;
		}
	if (st || !n || (st = vn_replay_run_node(r, k, err)))
		return st;
	for (int i = 0; !st && i < r->e[VN_OWN].n_out; i++) {
		const vn_made *m = &r->e[VN_OWN].out[i];
		p = r->point[m->value] >= 0 ? &r->c->point[r->point[m->value]] : NULL;
		if (!p || !p->replayed)
			continue;
		vn_checkpoint now = *p;
		st = vn_replay_measure(r, &r->plan->node[k], m, &now, err);
		now.replay.span = p->replay.span;
		if (!st)
			*p = now;
	}
	return st;
}

vn_status vn_replay_columns(vn_replay *r, int k, vn_error *err)
{
	bool right;
	vn_status st = order_columns(r, k, &right, err);
	return st || right ? st : as_captured(r, k, err);
}
