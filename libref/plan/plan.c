/* plan.c: using a plan. Building one: build.c. */
#include "libref/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *copy_of(const void *src, int n, size_t size)
{
	void *p = malloc(n ? (size_t)n * size : 1);
	if (p && n)
		memcpy(p, src, (size_t)n * size);
	return p;
}

static bool append_list(vn_plan *p, int n, const float *x)
{
	vn_list *more = realloc(p->list, ((size_t)p->n_lists + 1) * sizeof *more);

	if (!more)
		return false;
	p->list = more;
	p->list[p->n_lists] = (vn_list) { n, copy_of(x, n, sizeof *x) };
	if (!p->list[p->n_lists].x)
		return false;
	p->n_lists++;
	return true;
}

int vn_list_add(vn_plan *p, int n, const float *x)
{
	for (int i = 0; i < p->n_lists; i++)
		if (p->list[i].n == n && memcmp(p->list[i].x, x, (size_t)n * sizeof *x) == 0)
			return i + 1;
	return append_list(p, n, x) ? p->n_lists : 0;
}

vn_status vn_plan_clone(const vn_plan *p, vn_plan **copy, vn_error *err)
{
	vn_plan *c = *copy = calloc(1, sizeof *c);
	if (c) {
		*c = *p;
		c->node = copy_of(p->node, p->n_nodes, sizeof *p->node);
		c->value = copy_of(p->value, p->n_values, sizeof *p->value);
		c->weight = copy_of(p->weight, p->n_weights, sizeof *p->weight);
		c->state = copy_of(p->state, p->n_states, sizeof *p->state);
		c->list = NULL;
		c->n_lists = 0;
		bool good = c->node && c->value && c->weight && c->state;
		for (int i = 0; good && i < p->n_lists; i++)
			good = append_list(c, p->list[i].n, p->list[i].x);
		if (good)
			return VN_OK;
	}
	vn_plan_destroy(c);
	*copy = NULL;
	return vn_fail(err, VN_ERR_NOMEM, "no memory for a plan of %d nodes", p->n_nodes);
}

void vn_plan_destroy(vn_plan *p)
{
	if (!p)
		return;
	VN_FREE(p->node, p->value, p->weight, p->state);
	for (int i = 0; i < p->n_lists; i++)
		free(p->list[i].x);
	VN_FREE(p->list, p);
}

int vn_plan_find(const vn_plan *p, const char *name)
{
	for (int i = 0; i < p->n_values; i++)
		if (strcmp(p->value[i].name, name) == 0)
			return i;
	return -1;
}

int vn_plan_of_point(const vn_plan *p, vn_point point)
{
	for (int i = 0; i < p->n_values; i++)
		if (p->value[i].point == point)
			return i;
	return -1;
}

int vn_plan_last_layer(const vn_plan *p)
{
	const int      v = vn_plan_of_point(p, VN_POINT_FINAL_NORM);
	const vn_node *n = v < 0 ? NULL : &p->node[p->value[v].node];

	return n && n->n_in > 0 ? p->value[vn_plan_root(p, n->in[0])].layer : p->layers - 1;
}

int vn_plan_root(const vn_plan *p, int value)
{
	while (p->value[value].alias_of >= 0)
		value = p->value[value].alias_of;
	return value;
}

vn_shape vn_value_shape(const vn_value *v, int64_t tokens, int64_t keys)
{
	vn_shape s = { .rank = v->rank };
	for (int i = 0; i < v->rank; i++)
		s.dim[i] = v->size[i] == VN_T ? tokens : v->size[i] == VN_S ? keys : v->size[i];
	return s;
}

int64_t vn_value_row(const vn_value *v)
{
	int64_t n = 1;
	for (int i = 1; i < v->rank; i++)
		n *= v->size[i];
	return n;
}

bool vn_value_streams(const vn_plan *p, int value)
{
	const vn_value *v = &p->value[vn_plan_root(p, value)];
	const vn_op     op = p->node[v->node].op;

	if (v->state >= 0 || v->last_use >= 0)
		return false;
	return v->size[0] != VN_T || op == VN_OP_LINEAR || (op == VN_OP_ACT && v->on_demand);
}

bool vn_value_wide(const vn_plan *p, int value)
{
	const vn_value *v = &p->value[vn_plan_root(p, value)];

	return v->wide || (v->state >= 0 && p->state[v->state].wide);
}

static bool same_numbers(const int *a, const int *b, int n)
{
	return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* Compares lists by content; a list is given by its number + 1, 0 for none. */
static bool same_list(const vn_plan *p, int x, const vn_plan *q, int y)
{
	const vn_list none = { 0, NULL }, *a = x > 0 ? &p->list[x - 1] : &none, *b = y > 0 ? &q->list[y - 1] : &none;

	return a->n == b->n && (a->n == 0 || memcmp(a->x, b->x, (size_t)a->n * sizeof *a->x) == 0);
}

/* States are not compared, because they follow from the node. */
static bool same_node(const vn_plan *p, const vn_node *a, const vn_plan *q, const vn_node *b)
{
	if (a->op != b->op || a->layer != b->layer || a->n_in != b->n_in || a->n_w != b->n_w || a->n_out != b->n_out ||
	    !same_numbers(a->in, b->in, a->n_in) || !same_numbers(a->w, b->w, a->n_w) ||
	    !same_numbers(a->out, b->out, a->n_out))
		return false;
	for (int i = 0; vn_const_name(a->op, i); i++) {
		const double x = vn_const_get(a, i), y = vn_const_get(b, i);
		if (vn_const_is_list(a->op, i) ? !same_list(p, (int)x, q, (int)y) : !(x == y))
			return false;
	}
	return true;
}

static bool same_value(const vn_value *a, const vn_value *b)
{
	return strcmp(a->name, b->name) == 0 && a->point == b->point && a->layer == b->layer && a->node == b->node &&
	       a->slot == b->slot && a->alias_of == b->alias_of && a->wide == b->wide && a->rank == b->rank &&
	       same_numbers(a->size, b->size, a->rank);
}

bool vn_plan_equal(const vn_plan *a, const vn_plan *b)
{
	bool same = a->n_nodes == b->n_nodes && a->n_values == b->n_values && a->n_weights == b->n_weights &&
	            a->vocab == b->vocab && a->context == b->context;

	for (int i = 0; same && i < a->n_nodes; i++)
		same = same_node(a, &a->node[i], b, &b->node[i]);
	for (int i = 0; same && i < a->n_values; i++)
		same = same_value(&a->value[i], &b->value[i]);
	for (int i = 0; same && i < a->n_weights; i++)
		same = strcmp(a->weight[i].name, b->weight[i].name) == 0 &&
		       vn_shape_equal(&a->weight[i].shape, &b->weight[i].shape);
	return same;
}

/* Describes one difference of two nodes: a constant, an input or a weight. */
static void node_difference(const vn_plan *p, const vn_node *a, const vn_plan *q, const vn_node *b, char *what)
{
	const char *op = vn_op_name(a->op), *name = "nothing";

	for (int i = a->n_out - 1; i >= 0; i--)
		name = a->out[i] >= 0 ? p->value[a->out[i]].name : name;
	if (a->op != b->op) {
		snprintf(what, VN_PLAN_DIFFERENCE, "%s is computed by %s", name, op);
		return;
	}
	for (int i = 0; vn_const_name(a->op, i); i++)
		if (!vn_const_is_list(a->op, i) && !(vn_const_get(a, i) == vn_const_get(b, i))) {
			snprintf(what, VN_PLAN_DIFFERENCE, "%s of %s has %s %.9g", op, name, vn_const_name(a->op, i),
			         vn_const_get(a, i));
			return;
		}
	for (int i = 0; i < a->n_in && i < b->n_in; i++)
		if (strcmp(p->value[a->in[i]].name, q->value[b->in[i]].name) != 0) {
			snprintf(what, VN_PLAN_DIFFERENCE, "%s of %s reads %s", op, name, p->value[a->in[i]].name);
			return;
		}
	snprintf(what, VN_PLAN_DIFFERENCE, "%s of %s has different weights, outputs or lists", op, name);
}

char *vn_plan_difference(const vn_plan *a, const vn_plan *b, char *what)
{
	snprintf(what, VN_PLAN_DIFFERENCE, "%d nodes, %d values, %d weights, context %d, vocabulary %d", a->n_nodes,
	         a->n_values, a->n_weights, a->context, a->vocab);
	for (int i = 0; i < a->n_nodes && i < b->n_nodes; i++)
		if (!same_node(a, &a->node[i], b, &b->node[i])) {
			node_difference(a, &a->node[i], b, &b->node[i], what);
			return what;
		}
	for (int i = 0; i < a->n_values && i < b->n_values; i++)
		if (!same_value(&a->value[i], &b->value[i])) {
			snprintf(what, VN_PLAN_DIFFERENCE, "value %d is %s%s%s", i, a->value[i].name,
			         a->value[i].alias_of >= 0 ? ", another name of " : "",
			         a->value[i].alias_of >= 0 ? a->value[a->value[i].alias_of].name : "");
			return what;
		}
	return what;
}
