/* build.c: builds a plan node by node; the operations are in op_*.c. Sizes are checked where they
 * are combined, so that an error names the weight. What follows from the rest (vn_plan_settle) is
 * filled in at the end: vn_plan_finish, in check.c. */
#include "libref/plan/op_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

vn_builder *vn_plan_begin(int layers, int vocab, int context)
{
	vn_builder *b = calloc(1, sizeof *b);
	if (!b || !(b->plan = calloc(1, sizeof *b->plan)) || !(b->newest = calloc(VN_BUILD_NAMES, sizeof *b->newest)) ||
	    !(b->named = calloc(((size_t)layers + 1) * VN_N_POINTS, sizeof *b->named))) {
		if (b)
			VN_FREE(b->newest, b->plan);
		free(b);
		return NULL;
	}
	b->layer = -1;
	b->plan->layers = layers;
	b->plan->vocab = vocab;
	b->plan->context = context;
	return b;
}

void vn_plan_layer(vn_builder *b, int layer)
{
	assert(layer < b->plan->layers);
	b->layer = layer;
}

int vn_build_fail(vn_builder *b, vn_status st, const char *format, const char *what)
{
	if (!b->status)
		b->status = vn_fail(&b->err, st, format, what);
	return 0;
}

static void *make_room(vn_builder *b, void *list, int n, int *have, size_t size)
{
	if (n < *have)
		return list;
	int   more = *have ? 2 * *have : 64;
	void *p = realloc(list, (size_t)more * size);
	if (!p) {
		vn_build_fail(b, VN_ERR_NOMEM, "no memory for a plan%s", "");
		return list;
	}
	*have = more;
	return p;
}

static int *names_like(const vn_builder *b, const char *name)
{
	uint32_t h = 2166136261; /* FNV-1a */
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619;
	return &b->newest[h % VN_BUILD_NAMES];
}

/* Returns its index; 0 without memory. */
static int add_weight(vn_builder *b, const vn_weight *w)
{
	vn_plan *p = b->plan;

	p->weight = make_room(b, p->weight, p->n_weights, &b->room_weights, sizeof *p->weight);
	b->older = make_room(b, b->older, p->n_weights, &b->room_older, sizeof *b->older);
	if (b->status)
		return 0;
	int *newest = names_like(b, w->name);
	b->older[p->n_weights] = *newest;
	p->weight[p->n_weights] = *w;
	*newest = ++p->n_weights;
	return p->n_weights - 1;
}

int vn_plan_weight(vn_builder *b, const char *name, int rank, const int64_t *dim)
{
	vn_plan  *p = b->plan;
	vn_weight w = { .shape.rank = rank };

	assert(rank <= VN_PLAN_RANK);
	for (int i = 0; i < rank; i++)
		w.shape.dim[i] = dim[i];
	if (snprintf(w.name, sizeof w.name, "%s", name) >= (int)sizeof w.name)
		return vn_build_fail(b, VN_ERR_UNSUPPORTED, "the weight name %s is too long", name);
	for (int i = *names_like(b, name) - 1; i >= 0; i = b->older[i] - 1)
		if (strcmp(p->weight[i].name, name) == 0) {
			if (!vn_shape_equal(&p->weight[i].shape, &w.shape))
				vn_build_fail(b, VN_ERR_SHAPE, "weight %s is used with two shapes", name);
			return i;
		}
	return add_weight(b, &w);
}

int vn_plan_weights(vn_builder *b, int n, const char *stem, const char *tail, vn_shape shape)
{
	const int first = b->plan->n_weights;

	for (int i = 0; i < n && !b->status; i++) {
		vn_weight w = { .shape = shape };
		/* no search for the name: there may be tens of thousands */
		if (snprintf(w.name, sizeof w.name, "%s%d%s", stem, i, tail) >= (int)sizeof w.name)
			return vn_build_fail(b, VN_ERR_UNSUPPORTED, "the weight name %s is too long", stem);
		add_weight(b, &w);
	}
	return b->status ? 0 : first;
}

int vn_plan_list(vn_builder *b, int n, const float *x)
{
	const int list = b->status ? 0 : vn_list_add(b->plan, n, x);

	return list || b->status ? list : vn_build_fail(b, VN_ERR_NOMEM, "no memory for a plan%s", "");
}

int vn_build_value(vn_builder *b, vn_point point, int rank, const int *size)
{
	vn_plan    *p = b->plan;
	const char *name = vn_point_get(point)->name;
	vn_value    v = { .point = point, .layer = b->layer, .alias_of = -1, .rank = rank };

	for (int i = 0; i < rank; i++)
		v.size[i] = size[i];
	if (b->layer >= 0)
		snprintf(v.name, sizeof v.name, "layer%d.%s", b->layer, name);
	else
		snprintf(v.name, sizeof v.name, "%s", name);
	/* Layer and point determine the name. Searching all existing names would take seconds for a
	 * config of a thousand layers. */
	bool *named = &b->named[(size_t)(b->layer + 1) * VN_N_POINTS + point];
	if (*named)
		return vn_build_fail(b, VN_ERR_UNSUPPORTED, "two checkpoints are named %s", v.name);
	*named = true;
	p->value = make_room(b, p->value, p->n_values, &b->room_values, sizeof *p->value);
	if (b->status)
		return 0;
	p->value[p->n_values] = v;
	return p->n_values++;
}

void vn_plan_name(vn_builder *b, int x, vn_point point)
{
	if (b->status)
		return;
	vn_value of = b->plan->value[x];
	int      v = vn_build_value(b, point, of.rank, of.size);
	if (b->status)
		return;
	b->plan->value[v].alias_of = x;
	b->plan->value[v].on_demand = of.on_demand;
	b->plan->value[v].wide = of.wide;
}

void vn_build_node(vn_builder *b, vn_node n)
{
	vn_plan *p = b->plan;

	if (b->status)
		return;
	p->node = make_room(b, p->node, p->n_nodes, &b->room_nodes, sizeof *p->node);
	if (b->status)
		return;
	n.layer = b->layer;
	for (int i = 0; i < n.n_in; i++)
		n.in[i] = vn_plan_root(p, n.in[i]);
	p->node[p->n_nodes++] = n;
}

void vn_plan_set(vn_builder *b, int value, const char *constant, double number)
{
	for (int i = b->plan->n_nodes - 1; !b->status && i >= 0; i--)
		for (int k = 0; k < b->plan->node[i].n_out; k++)
			if (b->plan->node[i].out[k] == value) {
				b->status = vn_const_set(&b->plan->node[i], constant, number, &b->err);
				return;
			}
}

int vn_build_like(vn_builder *b, int x, vn_point out)
{
	vn_value v = b->plan->value[x];
	return vn_build_value(b, out, v.rank, v.size);
}

void vn_plan_wide(vn_builder *b, int value)
{
	vn_build_wide(b, value);
}

int vn_build_wide(vn_builder *b, int y)
{
	if (!b->status)
		b->plan->value[y].wide = true;
	return y;
}
