/* infer_roles.c: see infer_roles.h. */
#include "compare/infer_roles.h"

#include "compare/replay/local.h"

#include "libref/base/alloc.h"

#include <string.h>

void vn_role_walk_init(vn_role_walk *s, const vn_checkpoints *all, const vn_plan *plan)
{
	*s = (vn_role_walk) { .all = all, .plan = plan, .step = -1 };
	s->known = vn_alloc((size_t)plan->n_values, sizeof *s->known);
	s->seen = vn_alloc((size_t)plan->n_nodes, sizeof *s->seen);
}

void vn_role_walk_finish(vn_role_walk *s)
{
	VN_FREE(s->known, s->seen);
}

/* Attention decides between `products` and `linear`. */
static bool op_of_role(vn_op op, vn_role role)
{
	return op == (role == VN_ROLE_LINEAR || role == VN_ROLE_WEIGHTS ? VN_OP_LINEAR : VN_OP_ATTENTION);
}

/* Is there such an operation between the value and the captured ones before it? */
static bool span_has(vn_role_walk *s, int value, vn_role role)
{
	const int node = s->plan->value[value].node;

	if (node < 0 || s->seen[node])
		return false;
	s->seen[node] = true;
	const vn_node *n = &s->plan->node[node];
	if (op_of_role(n->op, role))
		return true;
	for (int i = 0; i < n->n_in; i++) {
		const int in = vn_plan_root(s->plan, n->in[i]);
		if (!s->known[in] && span_has(s, in, role))
			return true;
	}
	return false;
}

static void look_at_step(vn_role_walk *s, int step)
{
	memset(s->known, 0, (size_t)s->plan->n_values * sizeof *s->known);
	s->step = step;
	for (int i = 0; i < s->all->n; i++) {
		const vn_checkpoint *p = &s->all->of[i];
		if (p->step == step && p->replayed && p->value >= 0)
			s->known[vn_plan_root(s->plan, p->value)] = true;
	}
}

static vn_role_part part_of(vn_role_walk *s, const vn_checkpoint *p, vn_role role)
{
	if (!vn_local_judges(p) || p->value < 0)
		return VN_PART_NONE;
	if (p->step != s->step)
		look_at_step(s, p->step);
	memset(s->seen, 0, (size_t)s->plan->n_nodes * sizeof *s->seen);
	const int value = vn_plan_root(s->plan, p->value), node = s->plan->value[value].node;
	if (node < 0 || !span_has(s, value, role))
		return VN_PART_NONE;
	return p->replay.span > 1                                                                 ? VN_PART_AMONG
	       : s->plan->node[node].op == VN_OP_ATTENTION && s->plan->node[node].out[0] != value ? VN_PART_NONE
	                                                                                          : VN_PART_ALONE;
}

int vn_role_parts(vn_role_walk *s, vn_role role, vn_role_part *of)
{
	int alone = 0, among = 0;

	for (int i = 0; i < s->all->n; i++) {
		of[i] = part_of(s, &s->all->of[i], role);
		alone += of[i] == VN_PART_ALONE;
		among += of[i] == VN_PART_AMONG;
	}
	for (int i = 0; alone && i < s->all->n; i++)
		of[i] = of[i] == VN_PART_AMONG ? VN_PART_NONE : of[i];
	return alone ? alone : among;
}
