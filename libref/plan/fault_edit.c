/* fault_edit.c: looking at a plan and changing it, for the chapters of faults. */
#include "libref/plan/fault_internal.h"

#include "libref/base/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- looking ------------------------------------------------------------------------ */

double vn_fault_const(const vn_node *n, const char *name)
{
	for (int i = 0; vn_const_name(n->op, i); i++)
		if (strcmp(vn_const_name(n->op, i), name) == 0)
			return vn_const_get(n, i);
	return 0.0;
}

int vn_fault_value(const vn_plan *p, int layer, vn_point point)
{
	for (int v = 0; v < p->n_values; v++)
		if (p->value[v].layer == layer && p->value[v].point == point)
			return vn_plan_root(p, v);
	return -1;
}

int vn_fault_width(const vn_plan *p)
{
	const int v = vn_fault_value(p, -1, VN_POINT_EMBED);

	return v < 0 ? 0 : (int)vn_value_row(&p->value[v]);
}

/* Returns the node that makes a point in a layer, if it is not n, but has its operation and weights
 * of the same shapes; else NULL. */
static const vn_node *find_alike(const vn_plan *p, const vn_node *n, int layer, vn_point point)
{
	const int      v = vn_fault_value(p, layer, point);
	const vn_node *t = v < 0 ? NULL : &p->node[p->value[v].node];

	if (!t || t == n || t->op != n->op || t->n_w != n->n_w || (n->n_w && n->w[0] < 0))
		return NULL;
	for (int i = 0; i < n->n_w; i++)
		if ((n->w[i] < 0) != (t->w[i] < 0) ||
		    (n->w[i] >= 0 && !vn_shape_equal(&p->weight[n->w[i]].shape, &p->weight[t->w[i]].shape)))
			return NULL;
	return t;
}

const vn_node *vn_fault_twin(const vn_plan *p, const vn_node *n, int layer)
{
	return n->layer < 0 || layer < 0 ? NULL : find_alike(p, n, layer, vn_fault_point(p, n));
}

const vn_node *vn_fault_beside(const vn_plan *p, const vn_node *n)
{
	static const vn_point pair[][2] = {
		{ VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ },  { VN_POINT_K_PROJ, VN_POINT_V_PROJ },
		{ VN_POINT_GDN_B, VN_POINT_GDN_A },        { VN_POINT_Q_NORM, VN_POINT_K_NORM },
		{ VN_POINT_ATTN_NORM, VN_POINT_MLP_NORM }, { VN_POINT_MTP_EMBED_NORM, VN_POINT_MTP_HIDDEN_NORM },
	};

	for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
		for (int k = 0; k < 2; k++)
			if (vn_fault_point(p, n) == pair[i][k])
				return find_alike(p, n, n->layer, pair[i][!k]);
	return NULL;
}

/* ---- changing ------------------------------------------------------------------------ */

static vn_status no_memory(vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "no memory for a fault");
}

vn_status vn_fault_insert(vn_faulty *f, int at, vn_node n, int like, int *value, vn_error *err)
{
	vn_plan  *p = f->plan;
	vn_node  *nodes = realloc(p->node, ((size_t)p->n_nodes + 1) * sizeof *nodes);
	vn_value *values;

	if (nodes)
		p->node = nodes;
	if (!nodes || !(values = realloc(p->value, ((size_t)p->n_values + 1) * sizeof *values)))
		return no_memory(err);
	p->value = values;
	*value = p->n_values;
	vn_value more = values[like];
	more.alias_of = -1;
	snprintf(more.name, sizeof more.name, "%.*s~%d", VN_NAME_MAX - 16, values[like].name, *value);
	values[*value] = more;
	n.n_out = 1;
	n.out[0] = p->n_values++;
	memmove(p->node + at + 1, p->node + at, (size_t)(p->n_nodes - at) * sizeof *p->node);
	p->node[at] = n;
	p->n_nodes++;
	for (int v = 0; v < p->n_values; v++)
		p->value[v].node += v != *value && p->value[v].node >= at;
	p->value[*value].node = at;
	return VN_OK;
}

vn_status vn_fault_behind(vn_faulty *f, int node, int at, vn_node maker, bool alone, vn_error *err)
{
	const int v = f->plan->node[node].out[0];
	int       own;
	vn_status st = vn_fault_insert(f, at + 1, maker, v, &own, err);

	if (st)
		return st;
	for (int i = alone ? 0 : at + 1; i < (alone ? f->plan->n_nodes : at + 2); i++)
		for (int k = 0; k < f->plan->node[i].n_in; k++)
			if (f->plan->node[i].in[k] == v)
				f->plan->node[i].in[k] = own;
	f->plan->node[node].out[0] = own;
	f->plan->node[at + 1].out[0] = v;
	return VN_OK;
}

vn_status vn_fault_follow(vn_faulty *f, int node, vn_node maker, vn_error *err)
{
	return vn_fault_behind(f, node, node, maker, false, err);
}

vn_status vn_fault_feed(vn_faulty *f, int node, int input, vn_node maker, vn_error *err)
{
	int             own;
	const vn_status st = vn_fault_insert(f, node, maker, f->plan->node[node].in[input], &own, err);

	if (!st)
		f->plan->node[node + 1].in[input] = own;
	return st;
}

vn_node vn_fault_rows(int layer, int form, int by, int inner, int value)
{
	return (
		vn_node) { .op = VN_OP_ROWS, .layer = layer, .x.rows = { form, by, inner }, .n_in = 2, .in = { value, value } };
}

vn_node vn_fault_act(int layer, vn_act act, int value)
{
	return (vn_node) { .op = VN_OP_ACT, .layer = layer, .c.act.act = act, .n_in = 1, .in = { value } };
}

vn_node vn_fault_copy(const vn_plan *p, int layer, int value)
{
	const int row = (int)vn_value_row(&p->value[value]);

	return (vn_node) { .op = VN_OP_SLICE, .layer = layer, .c.slice = { row, 0, row }, .n_in = 1, .in = { value } };
}

void vn_fault_copy_of(vn_faulty *f, int node, int value)
{
	vn_node *n = &f->plan->node[node];
	vn_node  copy = vn_fault_copy(f->plan, n->layer, value);

	copy.n_out = 1;
	copy.out[0] = n->out[0];
	*n = copy;
}

bool vn_fault_plain(const vn_plan *p, const vn_node *n)
{
	const vn_value *y = &p->value[n->out[0]];
	return !y->on_demand && !y->wide && !strchr(y->name, '~');
}

vn_status vn_fault_weight(vn_faulty *f, int like, int *weight, vn_error *err)
{
	vn_plan   *p = f->plan;
	vn_weight *weights = realloc(p->weight, ((size_t)p->n_weights + 1) * sizeof *weights);
	vn_tensor *tensors = realloc(f->weight, ((size_t)p->n_weights + 1) * sizeof *tensors);

	p->weight = weights ? weights : p->weight;
	f->weight = tensors ? tensors : f->weight;
	if (!weights || !tensors)
		return no_memory(err);
	weights[p->n_weights] = weights[like];
	tensors[p->n_weights] = tensors[like];
	*weight = p->n_weights++;
	return VN_OK;
}

vn_status vn_fault_replace(vn_faulty *f, int node, int slot, vn_tensor w, vn_error *err)
{
	void  *bytes = (void *)(uintptr_t)w.data;
	void **own = bytes ? realloc(f->own, ((size_t)f->n_own + 1) * sizeof *own) : NULL;
	int new = -1;

	f->own = own ? own : f->own;
	if (!own) {
		free(bytes);
		return no_memory(err);
	}
	f->own[f->n_own++] = bytes;
	const vn_status st = vn_fault_weight(f, f->plan->node[node].w[slot], &new, err);
	if (st)
		return st;
	f->plan->weight[new].shape = w.shape;
	f->weight[new] = w;
	f->plan->node[node].w[slot] = new;
	return VN_OK;
}

/* A result that the file's format cannot hold (a sum of two halves) would add another error, so it
 * is stored in f32, or in f64 if the file's is. */
static vn_dtype wide_enough(vn_dtype d)
{
	return d == VN_F64 ? VN_F64 : VN_F32;
}

vn_status vn_fault_store(vn_faulty *f, int node, int slot, const vn_shape *shape, double *numbers, vn_error *err)
{
	const vn_tensor *w = &f->weight[f->plan->node[node].w[slot]];
	const vn_dtype   as = wide_enough(w->dtype);
	const size_t     n = (size_t)vn_shape_count(shape ? shape : &w->shape);
	void            *bytes = numbers ? malloc(vn_dtype_bytes(as, n ? n : 1)) : NULL;

	if (bytes)
		vn_from_f64(bytes, as, numbers, n);
	free(numbers);
	return vn_fault_replace(f, node, slot, (vn_tensor) { as, shape ? *shape : w->shape, bytes }, err);
}

/* Elements of a weight that are made; one of several ranges. */
typedef struct element_range {
	size_t from, to;
} element_range;

static int list_ranges(const vn_faulty *f, const vn_shape *s, element_range to[VN_SOME_BLOCKS])
{
	const vn_some_rows *some = f->some;
	const size_t        all = (size_t)vn_shape_count(s);

	if (!some || s->rank != 2 || s->dim[0] != some->of) {
		to[0] = (element_range) { 0, all };
		return 1;
	}
	for (int i = 0; i < some->n; i++)
		to[i] = (element_range) { (size_t)(some->first[i] * s->dim[1]),
			                      (size_t)((some->first[i] + some->width) * s->dim[1]) };
	return some->n;
}

/* Ends a change: the node reads these bytes, or its weight is as before. */
static vn_status end_change(vn_faulty *f, int node, int slot, vn_tensor made, bool same, vn_error *err)
{
	if (!same)
		return vn_fault_replace(f, node, slot, made, err);
	f->kept++;
	free((void *)(uintptr_t)made.data);
	return VN_OK;
}

vn_status vn_fault_change(vn_faulty *f, int node, int slot, vn_fault_changer *change, double by, vn_error *err)
{
	const vn_tensor  from = f->weight[f->plan->node[node].w[slot]];
	const vn_dtype   as = wide_enough(from.dtype);
	const size_t     all = (size_t)vn_shape_count(&from.shape), n = (size_t)from.shape.dim[from.shape.rank - 1];
	unsigned char   *bytes = malloc(vn_dtype_bytes(as, all));
	VN_FREED double *x = malloc(2 * n * sizeof *x);
	double          *y = x ? x + n : NULL;
	bool             same = true;
	element_range    part[VN_SOME_BLOCKS];
	const int        parts = list_ranges(f, &from.shape, part);

	if (!bytes || !x) {
		free(bytes);
		return no_memory(err);
	}
	for (int p = 0; p < parts; p++)
		for (size_t i = part[p].from; i < part[p].to; i += n) {
			vn_to_f64(x, (const unsigned char *)from.data + vn_dtype_bytes(from.dtype, i), from.dtype, n);
			change(&(vn_fault_run) { x, y, (int64_t)n, (int64_t)(i / n), (int64_t)(all / n) }, by);
			same = same && memcmp(x, y, n * sizeof *x) == 0;
			vn_from_f64(bytes + vn_dtype_bytes(as, i), as, y, n);
		}
	return end_change(f, node, slot, (vn_tensor) { as, from.shape, bytes }, same, err);
}

vn_status vn_fault_arrange(vn_faulty *f, int node, int slot, int axis, const vn_arrange *m, vn_error *err)
{
	const vn_tensor         from = f->weight[f->plan->node[node].w[slot]];
	const bool              blocks = vn_dtype_block(from.dtype) > 1; /* numbers that change only as part of a row */
	const vn_dtype          as = blocks ? VN_F32 : from.dtype;
	const size_t            size = vn_dtype_size(as), all = (size_t)vn_shape_count(&from.shape) * size;
	size_t                  outer = 1, n = 1, piece = size;
	unsigned char          *bytes = malloc(all + 1);
	VN_FREED unsigned char *loose = blocks ? malloc(all + 1) : NULL;
	const void             *x = blocks ? loose : from.data;

	if (!bytes || (blocks && !loose)) {
		free(bytes);
		return no_memory(err);
	}
	if (blocks)
		vn_to_f32((float *)(void *)loose, from.data, from.dtype, all / size);
	for (int k = 0; k < from.shape.rank; k++)
		*(axis < 0 || k == axis ? &n : k < axis ? &outer : &piece) *= (size_t)from.shape.dim[k];
	bool          same = true;
	element_range part[VN_SOME_BLOCKS];
	const int     parts = list_ranges(f, &from.shape, part);
	for (int p = 0; p < parts; p++) {
		const size_t at = part[p].from * size, many = (part[p].to - part[p].from) * size;
		if (outer == 1)
			vn_arrange_part(bytes, x, m, n, piece, (vn_arrange_range) { at / piece, (at + many) / piece });
		else
			vn_arrange_bytes(bytes + at, (const char *)x + at, m, many / (n * piece), n, piece);
		same = same && memcmp(bytes + at, (const char *)x + at, many) == 0;
	}
	return end_change(f, node, slot, (vn_tensor) { as, from.shape, bytes }, same, err);
}

vn_status vn_fault_arrange_outputs(vn_faulty *f, int node, const vn_arrange *m, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	vn_status      st = vn_fault_arrange(f, node, 0, n->c.linear.transposed, m, err);

	return !st && f->plan->node[node].w[1] >= 0 ? vn_fault_arrange(f, node, 1, 0, m, err) : st;
}

vn_status vn_fault_mix(vn_faulty *f, int node, const vn_fault_joined *j, const vn_arrange *m, vn_error *err)
{
	const vn_node *const *source = j->source;
	const int64_t        *parts = j->parts;
	const int             n = j->n, which = j->which;
	int64_t               before = 0, all = 0;
	vn_status             st = VN_OK;

	for (int i = 0; i < n; i++) {
		before += i < which ? parts[i] : 0;
		all += parts[i];
	}
	for (int k = 0; k < 2 && !st && source[which]->w[k] >= 0; k++) {
		const int64_t count = vn_shape_count(&f->weight[source[which]->w[k]].shape), part = count / parts[which];
		for (int i = 0; i < n; i++)
			if (vn_shape_count(&f->weight[source[i]->w[k]].shape) != parts[i] * part)
				return vn_fail(err, VN_ERR_USAGE, "weight %s cannot be split into %lld parts of %lld numbers",
				               f->plan->weight[source[i]->w[k]].name, (long long)parts[i], (long long)part);
		double *x = malloc((size_t)(all * part) * sizeof *x), *y = malloc((size_t)count * sizeof *y), *to = x;

		for (int i = 0; x && i < n; to += parts[i++] * part) {
			const vn_tensor *w = &f->weight[source[i]->w[k]];
			vn_to_f64(to, w->data, w->dtype, (size_t)(parts[i] * part));
		}
		for (int64_t i = 0; x && y && i < parts[which]; i++)
			memcpy(y + i * part, x + vn_arranged(m, before + i, all) * part, (size_t)part * sizeof *y);
		if (!x) {
			free(y);
			y = NULL;
		}
		free(x);
		st = vn_fault_store(f, node, k, NULL, y, err);
	}
	return st;
}

/* ---- for rows of several chapters ---------------------------------------------------------- */

/* The node becomes a copy of its input x. */
vn_status vn_make_skipped(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)err;
	vn_fault_copy_of(f, node, f->plan->node[node].in[(int)r->x]);
	return VN_OK;
}

/* The second input changes places with input x. */
vn_status vn_make_exchange_inputs(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	int *in = f->plan->node[node].in, second = in[1];

	(void)err;
	in[1] = in[(int)r->x];
	in[(int)r->x] = second;
	return VN_OK;
}

/* The node uses the weights of its counterpart, from slot x on. */
vn_status vn_make_others_weights(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *o = vn_fault_beside(f->unmodified, vn_fault_unmodified(f, node));

	(void)err;
	for (int k = (int)r->x; k < o->n_w; k++)
		f->plan->node[node].w[k] = o->w[k];
	return VN_OK;
}
