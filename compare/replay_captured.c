/* replay_captured.c: a tensor that was recorded at the wrong place, or that somebody wrote
 * over: then the candidate went on with other numbers than these, and what reads it comes
 * out right on what the reference computes in its place. */
#include "compare/replay_inside.h"

#include <stdlib.h>
#include <string.h>

static void drop(vn_saved *s)
{
	for (int i = 0; i < VN_N_ENGINES; i++)
		free(s->data[i]);
	*s = (vn_saved) { 0 };
}

void vn_replay_forget(vn_replay *r)
{
	while (r->n_saved)
		drop(&r->saved[--r->n_saved]);
}

vn_status vn_replay_save(vn_replay *r, int value, vn_error *err)
{
	const vn_shape whole = vn_replay_shape(r, value);
	const vn_entry *e = vn_recording_entry(r->c->cand, r->c->point[r->point[value]].cand);
	vn_saved s = { .value = value, .point = r->point[value] };
	vn_status st = VN_OK;

	if (vn_replay_no_place(r->plan, value) || r->plan->value[value].state >= 0 || !vn_shape_equal(&whole, &e->shape))
		return VN_OK;
	for (int i = 0; !st && i < VN_N_ENGINES; i++) {
		const vn_dtype as = vn_policy_dtype(r->e[i].policy, vn_value_wide(r->plan, value));
		s.data[i] = malloc((size_t)vn_shape_count(&whole) * vn_dtype_size(as));
		st = s.data[i] ? vn_ref_read(r->e[i].ref, value, s.data[i], err)
		               : vn_fail(err, VN_ERR_NOMEM, "no memory to replay %s", r->plan->value[value].name);
	}
	if (st) {
		drop(&s);
		return st;
	}
	if (r->n_saved == VN_SAVED) {
		drop(&r->saved[0]);
		memmove(r->saved, r->saved + 1, (VN_SAVED - 1) * sizeof *r->saved);
		r->n_saved--;
	}
	r->saved[r->n_saved++] = s;
	return VN_OK;
}

static bool came_out_otherwise(const vn_replay *r, const vn_made *m)
{
	const int point = r->point[m->value];
	return point >= 0 && r->c->point[point].replayed && vn_local_beyond(&r->c->point[point]) && r->c->point[point].replay.behind < 0;
}

/* The node once more; fills right with those outputs that come out right now. */
static vn_status again(vn_replay *r, int k, const bool *wrong, bool *right, bool *any, vn_error *err)
{
	vn_status st = vn_replay_run_node(r, k, err);
	*any = false;
	for (int i = 0; !st && i < r->e[VN_OWN].n_out; i++) {
		const vn_made *m = &r->e[VN_OWN].out[i];
		right[i] = false;
		if (!wrong[i])
			continue;
		vn_checkpoint p = r->c->point[r->point[m->value]];
		st = vn_replay_measure(r, &r->plan->node[k], m, &p, err);
		*any = (right[i] = !vn_local_beyond(&p)) || *any;
	}
	return st;
}

static vn_status try(vn_replay *r, int k, const vn_saved *s, bool *wrong, bool *found, vn_error *err)
{
	bool right[VN_MAX_OUT + 2];
	vn_status st = VN_OK;

	for (int i = 0; !st && i < VN_N_ENGINES; i++)
		st = vn_ref_write(r->e[i].ref, s->value, s->data[i], err);
	if (st || (st = again(r, k, wrong, right, found, err)))
		return st;
	if (!*found) {
		if (!(st = vn_replay_take(r, s->value, err)))
			st = vn_replay_run_node(r, k, err);
		return st;
	}
	r->c->point[s->point].replay.captured = true;
	for (int i = 0; i < r->e[VN_OWN].n_out; i++)
		if (wrong[i] && right[i])
			r->c->point[r->point[r->e[VN_OWN].out[i].value]].replay.behind = s->point;
	return VN_OK;
}

vn_status vn_replay_captured(vn_replay *r, int k, vn_error *err)
{
	const vn_node *node = &r->plan->node[k];
	bool wrong[VN_MAX_OUT + 2] = { false }, some = false, found = false;
	vn_status st = VN_OK;

	for (int i = 0; i < r->e[VN_OWN].n_out; i++)
		some = (wrong[i] = came_out_otherwise(r, &r->e[VN_OWN].out[i])) || some;
	for (int i = 0; !st && !found && some && i < node->n_in; i++)
		for (int s = 0; !st && !found && s < r->n_saved; s++)
			if (r->saved[s].value == vn_plan_root(r->plan, node->in[i]))
				st = try(r, k, &r->saved[s], wrong, &found, err);
	return st;
}
