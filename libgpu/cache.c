/* cache.c: keys and values of earlier tokens. */
#include "libgpu/cache.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_ROWS 256

vn_status vn_cache_create(vn_cache *c, const vn_plan *plan, vn_dtype storage, vn_error *err)
{
	*c = (vn_cache){ .n = plan->caches };
	if (!(c->slot = calloc(c->n ? (size_t)c->n : 1, sizeof(*c->slot))))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d caches", plan->caches);
	for (int i = 0; i < plan->n_nodes; i++) {
		const vn_node *n = &plan->node[i];
		if (n->op == VN_OP_ATTENTION)
			c->slot[n->c.attention.cache].row_bytes = vn_dtype_size(storage) *
				(size_t)n->c.attention.kv_heads * (size_t)n->c.attention.head_dim;
	}
	return VN_OK;
}

void vn_cache_destroy(vn_device *d, vn_cache *c)
{
	for (int i = 0; i < c->n && c->slot; i++) {
		vn_buffer_destroy(d, &c->slot[i].k);
		vn_buffer_destroy(d, &c->slot[i].v);
	}
	free(c->slot);
	*c = (vn_cache){ 0 };
}

static vn_status grow(vn_encoder *e, vn_cache_slot *s, int i, int64_t rows, int64_t used, bool guard, vn_error *err)
{
	vn_buffer    k = { 0 }, v = { 0 };
	const size_t bytes = (size_t)rows * s->row_bytes, keep = (size_t)used * s->row_bytes;
	char         name[32];
	vn_status    st;

	snprintf(name, sizeof(name), "cache %d (keys)", i);
	if ((st = vn_buffer_create(e->d, &k, VN_ON_DEVICE, bytes, guard, name, err)))
		goto fail;
	snprintf(name, sizeof(name), "cache %d (values)", i);
	if ((st = vn_buffer_create(e->d, &v, VN_ON_DEVICE, bytes, guard, name, err)))
		goto fail;
	if (guard || keep) {
		const int cur = e->cur;
		if ((st = vn_encode_begin(e, err)))
			goto fail;
		if (guard) {
			vn_encode_poison(e, &k);
			vn_encode_poison(e, &v);
		}
		if (keep) {
			vn_encode_copy(e, &s->k, 0, &k, 0, keep);
			vn_encode_copy(e, &s->v, 0, &v, 0, keep);
		}
		if ((st = vn_encode_submit(e, err)) || (st = vn_encode_wait(e, cur, err)))
			goto fail;
	}
	vn_buffer_destroy(e->d, &s->k);
	vn_buffer_destroy(e->d, &s->v);
	s->k = k;
	s->v = v;
	s->rows = rows;
	return VN_OK;
fail:
	vn_encode_abandon(e);
	vn_buffer_destroy(e->d, &v);
	vn_buffer_destroy(e->d, &k);
	return st;
}

vn_status vn_cache_grow(vn_encoder *e, vn_cache *c, int64_t rows, int64_t used, int64_t context, bool guard,
                        vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; i < c->n && !st; i++) {
		int64_t want = c->slot[i].rows ? c->slot[i].rows : FIRST_ROWS;
		if (rows <= c->slot[i].rows)
			continue;
		while (want < rows)
			want *= 2;
		if (want > context)
			want = context;
		st = grow(e, &c->slot[i], i, want, used, guard, err);
	}
	c->bytes = 0;
	for (int i = 0; i < c->n; i++)
		c->bytes += (int64_t)(c->slot[i].k.held + c->slot[i].v.held);
	return st;
}

void vn_cache_forget(vn_cache *c, int64_t past)
{
	for (int i = 0; i < c->n; i++)
		if (c->slot[i].filled > past)
			c->slot[i].filled = past;
}
