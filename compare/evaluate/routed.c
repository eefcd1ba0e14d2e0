/* routed.c: see routed.h. */
#include "compare/evaluate/routed.h"

#include "libref/base/alloc.h"

#include <stdlib.h>
#include <string.h>

void vn_routed_init(vn_routed *r, const vn_plan *plan, bool *want)
{
	*r = (vn_routed) { .of = vn_alloc_zero((size_t)plan->n_nodes + 1, sizeof *r->of),
		               .open = -1,
		               .n_nodes = plan->n_nodes };
	for (int i = 0; i < plan->n_nodes; i++) {
		const int out = plan->node[i].out[0];
		if (plan->node[i].op != VN_OP_TOP_K && plan->node[i].op != VN_OP_ROUTE)
			continue;
		r->of[r->n++] = (vn_routed_value) { .value = out, .node = i, .slots = vn_value_row(&plan->value[out]) };
		want[out] = true;
	}
}

void vn_routed_finish(vn_routed *r)
{
	for (int i = 0; i < r->n; i++)
		free(r->of[i].data);
	free(r->of);
	*r = (vn_routed) { 0 };
}

bool vn_routed_begin(vn_routed *r, int value, vn_dtype dtype)
{
	r->open = -1;
	for (int i = 0; i < r->n; i++)
		if (r->of[i].value == value)
			r->open = i;
	if (r->open >= 0) {
		r->of[r->open].dtype = dtype;
		r->of[r->open].have = 0;
	}
	return r->open >= 0;
}

void vn_routed_take(vn_routed *r, const void *data, size_t elements)
{
	vn_routed_value *v = &r->of[r->open];
	const size_t     bytes = elements * vn_dtype_size(v->dtype), at = v->have * vn_dtype_size(v->dtype);

	if (at + bytes > v->room) {
		v->room = 2 * (at + bytes);
		v->data = vn_alloc_resized(v->data, v->room, 1);
	}
	memcpy(v->data + at, data, bytes);
	v->have += elements;
}

static vn_status put_chosen(const vn_engine *e, const vn_routed_value *v, int64_t tokens, vn_error *err)
{
	if (v->have != (size_t)(tokens * v->slots))
		return vn_fail(err, VN_ERR_SHAPE, "the candidate chose experts for some of the tokens only");
	VN_FREED float *x = vn_alloc(v->have + 1, sizeof *x);

	vn_to_f32(x, v->data, v->dtype, v->have);
	return e->ops->write(e->self, v->value, x, err);
}

vn_status vn_routed_forward(vn_routed *r, const vn_engine *e, const int32_t *ids, int64_t tokens, const vn_taps *taps,
                            vn_error *err)
{
	vn_status st = e->ops->begin(e->self, ids, tokens, taps, err);
	int       next = 0;

	for (int i = 0; i < r->n && !st; i++) {
		if (!(st = e->ops->run(e->self, next, r->of[i].node, err)))
			st = put_chosen(e, &r->of[i], tokens, err);
		next = r->of[i].node + 1;
	}
	st = st ? st : e->ops->run(e->self, next, r->n_nodes, err);
	const vn_status ended = e->ops->end(e->self, !st, st ? NULL : err);
	return st ? st : ended;
}
