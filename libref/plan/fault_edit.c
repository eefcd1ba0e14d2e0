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

const vn_node *vn_fault_twin(const vn_plan *p, const vn_node *n, int layer)
{
	const int v = n->layer < 0 || layer < 0 || layer >= p->layers ? -1 : vn_fault_value(p, layer, vn_fault_point(p, n));
	const vn_node *t = v < 0 ? NULL : &p->node[p->value[v].node];

	if (!t || t == n || t->op != n->op || t->n_w != n->n_w)
		return NULL;
	for (int i = 0; i < n->n_w; i++)
		if ((n->w[i] < 0) != (t->w[i] < 0) ||
		    (n->w[i] >= 0 && !vn_shape_equal(&p->weight[n->w[i]].shape, &p->weight[t->w[i]].shape)))
			return NULL;
	return t;
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

vn_node vn_fault_rows(int layer, int form, int by, int inner, int value)
{
	return (
		vn_node) { .op = VN_OP_ROWS, .layer = layer, .x.rows = { form, by, inner }, .n_in = 2, .in = { value, value } };
}

vn_node vn_fault_act(int layer, vn_act act, int value)
{
	return (vn_node) { .op = VN_OP_ACT, .layer = layer, .c.act.act = act, .n_in = 1, .in = { value } };
}

bool vn_fault_plain(const vn_plan *p, const vn_node *n)
{
	const vn_value *y = &p->value[n->out[0]];
	return !y->on_demand && !y->wide && !strchr(y->name, '~');
}

void vn_fault_copy_of(vn_faulty *f, int node, int value)
{
	vn_node  *n = &f->plan->node[node];
	const int row = (int)vn_value_row(&f->plan->value[value]);

	n->op = VN_OP_SLICE;
	memset(&n->c, 0, sizeof n->c);
	memset(&n->x, 0, sizeof n->x);
	n->c.slice.stride = n->c.slice.width = row;
	n->n_in = 1;
	n->in[0] = value;
	n->n_w = 0;
	n->n_out = 1;
}

static bool own_memory(vn_faulty *f, void *memory)
{
	void **more = realloc(f->own, ((size_t)f->n_own + 1) * sizeof *more);

	if (!more)
		return false;
	f->own = more;
	f->own[f->n_own++] = memory;
	return true;
}

/* A result that the file's format cannot hold (a sum of two halves) would add another error, so it
 * is stored in f32, or in f64 if the file's is. */
static vn_dtype wide_enough(vn_dtype d)
{
	return d == VN_F64 ? VN_F64 : VN_F32;
}

double *vn_fault_numbers(const vn_faulty *f, int weight)
{
	const vn_tensor *w = &f->weight[weight];
	const size_t     n = (size_t)vn_shape_count(&w->shape);
	double          *x = malloc((n ? n : 1) * sizeof *x);

	if (x)
		vn_to_f64(x, w->data, w->dtype, n);
	return x;
}

vn_status vn_fault_weight(vn_faulty *f, int like, double *numbers, const vn_shape *shape, int *weight, vn_error *err)
{
	vn_plan       *p = f->plan;
	const vn_shape s = shape ? *shape : p->weight[like].shape; /* by value, because the array may move */
	vn_weight     *weights = realloc(p->weight, ((size_t)p->n_weights + 1) * sizeof *weights);
	vn_tensor     *tensors = NULL;
	void          *bytes = NULL;

	if (weights) {
		p->weight = weights;
		tensors = realloc(f->weight, ((size_t)p->n_weights + 1) * sizeof *tensors);
	}
	if (tensors)
		f->weight = tensors;
	const vn_dtype as = wide_enough(f->weight[like].dtype);
	const size_t   n = (size_t)vn_shape_count(&s);
	bool           good = tensors && (!numbers || (bytes = malloc(vn_dtype_bytes(as, n ? n : 1))));
	if (good && bytes && !own_memory(f, bytes)) {
		free(bytes);
		good = false;
	}
	if (good) {
		weights[p->n_weights] = weights[like];
		weights[p->n_weights].shape = s;
		tensors[p->n_weights] = f->weight[like];
		tensors[p->n_weights].shape = s;
		if (bytes) {
			vn_from_f64(bytes, as, numbers, n);
			tensors[p->n_weights].dtype = as;
			tensors[p->n_weights].data = bytes;
		}
		*weight = p->n_weights++;
	}
	free(numbers);
	return good ? VN_OK : no_memory(err);
}

vn_status vn_fault_bytes(vn_faulty *f, int like, int *weight, unsigned char **bytes, vn_error *err)
{
	const vn_tensor w = f->weight[like];
	const size_t    n = vn_dtype_bytes(w.dtype, (size_t)vn_shape_count(&w.shape));
	const vn_status st = vn_fault_weight(f, like, NULL, NULL, weight, err);

	if (st)
		return st;
	*bytes = malloc(n ? n : 1);
	if (!*bytes || !own_memory(f, *bytes)) {
		free(*bytes);
		return no_memory(err);
	}
	memcpy(*bytes, w.data, n);
	f->weight[*weight].data = *bytes;
	return VN_OK;
}

/* Makes the node read `bytes` (count numbers of format `as`) in place of weight w;
 * f takes ownership. */
static vn_status replace_weight(vn_faulty *f, int node, int slot, int w, vn_dtype as, void *bytes, vn_error *err)
{
	int new = -1;
	const vn_status st = vn_fault_weight(f, w, NULL, NULL, &new, err);

	if (st || !own_memory(f, bytes)) {
		free(bytes);
		return st ? st : no_memory(err);
	}
	f->weight[new].dtype = as;
	f->weight[new].data = bytes;
	f->plan->node[node].w[slot] = new;
	return VN_OK;
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

/* Changes a weight by one of two functions: number by number, or in rows of a given length. */
static vn_status in_runs(const vn_fault_row *r, vn_faulty *f, int node, int slot, size_t run, vn_fault_each *each,
                         vn_fault_run *rows, vn_error *err)
{
	const int       w = f->plan->node[node].w[slot];
	const vn_tensor from = f->weight[w];
	const vn_dtype  as = wide_enough(from.dtype);
	const size_t    all = (size_t)vn_shape_count(&from.shape);
	unsigned char  *bytes = malloc(vn_dtype_bytes(as, all ? all : 1));
	double         *x = malloc(2 * run * sizeof *x), *y = x ? x + run : NULL;
	bool            same = true;
	element_range   part[VN_SOME_BLOCKS];
	const int       parts = list_ranges(f, &from.shape, part);

	if (!bytes || !x) {
		free(bytes);
		free(x);
		return no_memory(err);
	}
	for (int p = 0; p < parts; p++)
		for (size_t i = part[p].from; i < part[p].to; i += run) {
			const size_t n = part[p].to - i < run ? part[p].to - i : run;
			vn_to_f64(x, (const unsigned char *)from.data + vn_dtype_bytes(from.dtype, i), from.dtype, n);
			if (rows)
				rows(r, x, y, (int64_t)n);
			for (size_t k = 0; each && k < n; k++)
				y[k] = each(r, x[k]);
			same = same && memcmp(x, y, n * sizeof *x) == 0;
			vn_from_f64(bytes + vn_dtype_bytes(as, i), as, y, n);
		}
	free(x);
	if (!same)
		return replace_weight(f, node, slot, w, as, bytes, err);
	f->kept++;
	free(bytes);
	return VN_OK;
}

vn_status vn_fault_change_each(const vn_fault_row *r, vn_faulty *f, int node, int slot, vn_fault_each *change,
                               vn_error *err)
{
	enum { RUN = 4096 }; /* a multiple of every block size */

	return in_runs(r, f, node, slot, RUN, change, NULL, err);
}

vn_status vn_fault_change_rows(const vn_fault_row *r, vn_faulty *f, int node, int slot, vn_fault_run *change,
                               vn_error *err)
{
	const vn_shape *s = &f->weight[f->plan->node[node].w[slot]].shape;

	return in_runs(r, f, node, slot, (size_t)s->dim[s->rank - 1], NULL, change, err);
}

vn_status vn_fault_arrange(vn_faulty *f, int node, int slot, int axis, const vn_arrange *m, vn_error *err)
{
	const int       w = f->plan->node[node].w[slot];
	const vn_tensor from = f->weight[w];
	const bool      blocks = vn_dtype_block(from.dtype) > 1; /* numbers that change only as part of a row */
	const vn_dtype  as = blocks ? VN_F32 : from.dtype;
	const size_t    size = vn_dtype_size(as), all = (size_t)vn_shape_count(&from.shape) * size;
	size_t          outer = 1, n = 1, piece = size;
	unsigned char  *bytes = malloc(all + 1), *loose = blocks ? malloc(all + 1) : NULL;
	const void     *x = blocks ? loose : from.data;

	if (!bytes || (blocks && !loose)) {
		free(bytes);
		free(loose);
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
			vn_arrange_part(bytes, x, m, 1, n, piece, at / piece, (at + many) / piece);
		else
			vn_arrange_bytes(bytes + at, (const char *)x + at, m, many / (n * piece), n, piece);
		same = same && memcmp(bytes + at, (const char *)x + at, many) == 0;
	}
	free(loose);
	if (!same)
		return replace_weight(f, node, slot, w, as, bytes, err);
	f->kept++;
	free(bytes);
	return VN_OK;
}

vn_status vn_fault_arrange_outputs(vn_faulty *f, int node, const vn_arrange *m, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	vn_status      st = vn_fault_arrange(f, node, 0, n->c.linear.transposed, m, err);

	return !st && f->plan->node[node].w[1] >= 0 ? vn_fault_arrange(f, node, 1, 0, m, err) : st;
}

vn_status vn_fault_change_weight(const vn_fault_row *r, vn_faulty *f, int node, int slot, vn_fault_change *change,
                                 vn_error *err)
{
	const int      w = f->plan->node[node].w[slot];
	const vn_shape s = f->plan->weight[w].shape;
	double        *x = vn_fault_numbers(f, w), *y = vn_fault_numbers(f, w);
	int new = -1;

	if (!x || !y) {
		free(x);
		free(y);
		return no_memory(err);
	}
	change(r, &s, x, y);
	const bool same = memcmp(x, y, (size_t)vn_shape_count(&s) * sizeof *x) == 0;
	free(x);
	if (same) {
		f->kept++;
		free(y);
		return VN_OK;
	}
	const vn_status st = vn_fault_weight(f, w, y, NULL, &new, err);
	if (!st)
		f->plan->node[node].w[slot] = new;
	return st;
}

double vn_fault_times(const vn_fault_row *r, double x)
{
	return x * r->x;
}

/* ---- for rows of several chapters ---------------------------------------------------------- */

vn_status vn_make_set(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_const_set(&f->plan->node[node], r->constant, r->x, err);
}

vn_status vn_make_no_bias(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].w[1] = -1;
	return VN_OK;
}

/* The node becomes a copy of its first input. */
vn_status vn_make_skipped(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	vn_fault_copy_of(f, node, f->plan->node[node].in[0]);
	return VN_OK;
}
