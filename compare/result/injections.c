/* injections.c: see injections.h. */
#include "compare/result/injections.h"

#include "compare/trial/findings.h"
#include "libref/plan/fault.h"
#include "libref/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which mistake is made at each operation. */
typedef struct made_mistakes {
	const vn_checkpoints *all;
	const vn_plan        *p;
	int                  *fault; /* (nodes): 1 + the fault; 0: none */
	const char          **name;  /* (nodes): the checkpoint by which the operation is named */
	bool                 *done;  /* (nodes) */
	vn_injection         *what;
	int                   n;
	bool                  full;
} made_mistakes;

static const char *name_of(const made_mistakes *m, int node)
{
	return m->name[node] ? m->name[node] : m->p->value[m->p->node[node].out[0]].name;
}

static void add_pattern(made_mistakes *m, int fault, const char *glob)
{
	if (m->n == VN_INJECTIONS_MOST)
		m->full = true;
	else
		snprintf(m->what[m->n++], sizeof *m->what, "%s@%s", vn_fault_id(fault), glob);
}

/* Can it be made on purpose, and would every step still be as it was found? */
static bool can_be_made(const vn_findings *x)
{
	const vn_trial *h = &x->by[0];

	return x->n_fit > 0 && h->finding == VN_FINDING_FAULT && !h->heads && !h->speaks_against;
}

/* What is recorded wrongly is named by its checkpoint, because an operation may have several. */
static void add_recorder_fault(made_mistakes *m, const vn_findings *x)
{
	const char *name = m->all->of[x->checkpoint].name;
	const int   fault = x->by[0].fault[0] - 1;
	char        same[sizeof(vn_injection)];

	snprintf(same, sizeof same, "%s@%s", vn_fault_id(fault), name);
	for (int i = 0; i < m->n; i++)
		if (strcmp(m->what[i], same) == 0)
			return;
	add_pattern(m, fault, name);
}

/* which: the first or the second of its faults. */
static void mark_places(made_mistakes *m, const vn_findings *x, int which)
{
	const vn_trial *h = &x->by[0];
	const char     *name = m->all->of[x->checkpoint].name;
	const int       v = vn_plan_find(m->p, name), own = v < 0 ? -1 : m->p->value[vn_plan_root(m->p, v)].node;

	for (int i = 0; i < m->p->n_nodes; i++) {
		if (!vn_trial_made_at(h, i) || m->fault[i])
			continue;
		m->fault[i] = h->fault[which];
		m->name[i] = i == own ? name : NULL;
	}
}

/* Selects the operations that a pattern would take with this one. */
typedef bool (*is_alike)(const made_mistakes *m, int node, int other);

static bool any_other(const made_mistakes *m, int node, int other)
{
	(void)m, (void)node, (void)other;
	return true;
}

static bool at_same_point(const made_mistakes *m, int node, int other)
{
	const char *a = m->p->value[m->p->node[node].out[0]].name, *b = m->p->value[m->p->node[other].out[0]].name;

	return m->p->node[node].layer >= 0 && m->p->node[other].layer >= 0 &&
	       strcmp(vn_name_in_layer(a), vn_name_in_layer(b)) == 0;
}

static bool in_same_layer(const made_mistakes *m, int node, int other)
{
	return m->p->node[node].layer >= 0 && m->p->node[node].layer == m->p->node[other].layer;
}

/* Is the mistake made at all operations alike that can have it, and at several? An operation with
 * another mistake may then have this one as well, since one is made after the other. */
static bool has_all(const made_mistakes *m, int node, is_alike alike)
{
	int n = 0;

	for (int i = 0; i < m->p->n_nodes; i++) {
		if (!alike(m, node, i) || (!m->fault[i] && vn_fault_why_not(m->fault[node] - 1, m->p, i)))
			continue;
		if (m->fault[i] != m->fault[node] || m->done[i])
			return false;
		n++;
	}
	return n > 1;
}

static void tick_off(made_mistakes *m, int node, is_alike alike)
{
	for (int i = 0; i < m->p->n_nodes; i++)
		m->done[i] = m->done[i] || (m->fault[i] == m->fault[node] && alike(m, node, i));
}

static void add_patterns_of(made_mistakes *m, int node)
{
	char glob[VN_NAME_MAX + 16] = "*";

	if (has_all(m, node, any_other))
		tick_off(m, node, any_other);
	else if (has_all(m, node, in_same_layer)) {
		tick_off(m, node, in_same_layer);
		snprintf(glob, sizeof glob, "layer%d", m->p->node[node].layer);
	} else if (has_all(m, node, at_same_point)) {
		tick_off(m, node, at_same_point);
		snprintf(glob, sizeof glob, "layer*.%s", vn_name_in_layer(name_of(m, node)));
	} else {
		m->done[node] = true;
		snprintf(glob, sizeof glob, "%s", name_of(m, node));
	}
	add_pattern(m, m->fault[node] - 1, glob);
}

int vn_injections_of(const vn_opened *o, const vn_result *r, vn_injection what[VN_INJECTIONS_MOST])
{
	const vn_plan         *p = vn_model_plan(o->model);
	const size_t           nodes = (size_t)p->n_nodes;
	const vn_all_findings *why = r->why;
	made_mistakes          m = { .all = &r->checkpoints,
		                         .p = p,
		                         .what = what,
		                         .fault = vn_alloc_zero(nodes, sizeof *m.fault),
		                         .name = vn_alloc_zero(nodes, sizeof *m.name),
		                         .done = vn_alloc_zero(nodes, sizeof *m.done) };

	for (int which = 0; which < 2; which++) {
		memset(m.fault, 0, nodes * sizeof *m.fault);
		memset(m.done, 0, nodes * sizeof *m.done);
		for (int i = 0; i < why->n; i++) {
			if (!can_be_made(&why->of[i]) || (which && !why->of[i].by[0].fault[1]))
				continue;
			if (why->of[i].by[0].recorder_fault)
				add_recorder_fault(&m, &why->of[i]);
			else
				mark_places(&m, &why->of[i], which);
		}
		for (int i = 0; i < p->n_nodes; i++)
			if (m.fault[i] && !m.done[i])
				add_patterns_of(&m, i);
	}
	free(m.fault);
	free(m.name);
	free(m.done);
	return m.full ? -1 : m.n;
}
