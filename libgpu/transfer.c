/* transfer.c: see transfer.h. */
#include "libgpu/transfer.h"

#include <string.h>

/* Elements before the token axis, and after it. */
static void count_around_tokens(const vn_gpu_pass *w, int value, int64_t *outer, int64_t *inner)
{
	const vn_value *v = &w->g->plan->value[value];
	const vn_shape  shape = vn_value_shape(v, w->tokens, w->past + w->tokens);
	int             axis = 0;

	while (axis < v->rank && v->size[axis] != VN_T)
		axis++;
	*outer = *inner = 1;
	for (int i = 0; i < v->rank; i++)
		*(i < axis ? outer : inner) *= i == axis ? 1 : shape.dim[i];
}

static vn_status check_written(const vn_gpu_pass *w, const vn_transfer_part *p, const void *data, vn_error *err)
{
	const vn_value *v = &w->g->plan->value[p->value];
	const uint16_t *half = data;
	const uint32_t *word = data;
	const bool      halves = vn_pass_dtype(w, p->value) == VN_F16;
	int64_t         outer, inner;

	for (int64_t i = 0; i < p->elements; i++) {
		if (halves ? half[i] != 0xFFFF : word[i] != VN_POISON)
			continue;
		count_around_tokens(w, p->value, &outer, &inner);
		const int64_t rows = p->hand ? w->count : w->tokens;
		const int64_t row = v->state >= 0 ? (p->start + i) / vn_value_row(v)
		                                  : (p->start + i) / inner % rows + (p->hand ? w->first : 0);
		return vn_fail(err, VN_ERR_DEVICE, "%s was never written (row %lld)", v->name, (long long)row);
	}
	return VN_OK;
}

static vn_status hand_over(const vn_gpu_pass *w, const vn_transfer_part *p, const void *data, vn_error *err)
{
	const vn_value *v = &w->g->plan->value[p->value];
	const vn_sink  *sink = &w->taps->sink;
	vn_staging     *s = &w->g->staging;
	vn_shape        shape = vn_value_shape(v, w->count, w->past + w->tokens);
	vn_status       st;

	if (p->start == 0) {
		s->handed = 0;
		if ((st = sink->begin(sink->ctx, p->value, vn_pass_dtype(w, p->value), &shape, err)))
			return st;
	}
	if ((st = sink->write(sink->ctx, data, (size_t)p->elements, err)))
		return st;
	s->handed += p->elements;
	return s->handed == vn_shape_count(&shape) ? sink->end(sink->ctx, err) : VN_OK;
}

/* Wait for command buffer i and hand over what it brought. */
static vn_status drain_buffer(vn_gpu_pass *w, int i, vn_error *err)
{
	vn_staging *s = &w->g->staging;
	vn_status   st;

	if ((st = vn_encode_wait(&w->g->encoder, i, err)))
		return st;
	for (int k = 0; k < s->n[i] && !st; k++) {
		const vn_transfer_part *p = &s->part[i][k];
		const void             *data = (const char *)s->buf[i].map + p->offset;
		if (w->g->guard)
			st = check_written(w, p, data, err);
		if (!st && p->hand)
			st = hand_over(w, p, data, err);
		if (!st && p->to)
			memcpy(p->to, data, (size_t)p->elements * vn_dtype_size(vn_pass_dtype(w, p->value)));
	}
	vn_staging_clear(s, i, w->g->guard);
	return st;
}

static vn_status submit_and_drain(vn_gpu_pass *w, vn_error *err)
{
	vn_encoder *e = &w->g->encoder;
	vn_status   st;

	if ((st = vn_encode_submit(e, err)) || (st = drain_buffer(w, e->cur, err)))
		return st;
	vn_encode_begin(e);
	return VN_OK;
}

vn_status vn_transfer_send(vn_gpu_pass *w, vn_error *err)
{
	vn_encoder *e = &w->g->encoder;

	return e->flying[1 - e->cur] ? VN_OK : submit_and_drain(w, err);
}

vn_status vn_transfer_take(vn_gpu_pass *w, vn_transfer_part part, vn_buffer *src, VkDeviceSize from, int64_t elements,
                           vn_error *err)
{
	vn_staging  *s = &w->g->staging;
	const size_t size = vn_dtype_size(vn_pass_dtype(w, part.value));
	vn_status    st;

	while (elements > 0) {
		int i = w->g->encoder.cur;
		s->used[i] = (s->used[i] + size - 1) & ~(size - 1); /* for the host to read */
		int64_t fit = (int64_t)((s->size - s->used[i]) / size);
		if (fit == 0) {
			if ((st = submit_and_drain(w, err)))
				return st;
			continue;
		}
		if (fit > elements)
			fit = elements;
		part.offset = s->used[i];
		part.elements = fit;
		if ((st = vn_staging_add(s, i, part, err)))
			return st;
		vn_encode_copy_out(&w->g->encoder, src, from, &s->buf[i], s->used[i], (VkDeviceSize)fit * size);
		s->used[i] += (size_t)fit * size;
		part.start += fit;
		part.to = part.to ? part.to + (size_t)fit * size : NULL;
		from += (VkDeviceSize)fit * size;
		elements -= fit;
	}
	return VN_OK;
}

vn_status vn_transfer_tap(vn_gpu_pass *w, int value, vn_buffer *src, vn_error *err)
{
	const size_t size = vn_dtype_size(vn_pass_dtype(w, value));
	int64_t      outer, inner;
	vn_status    st = VN_OK;

	count_around_tokens(w, value, &outer, &inner);
	if (w->g->guard)
		st = vn_transfer_take(w, (vn_transfer_part) { .value = value }, src, 0, outer * w->tokens * inner, err);
	if (vn_pass_wants(w, value))
		for (int64_t o = 0; o < outer && !st; o++)
			st = vn_transfer_take(w, (vn_transfer_part) { .value = value, .hand = true, .start = o * w->count * inner },
			                      src, (VkDeviceSize)((o * w->tokens + w->first) * inner) * size, w->count * inner,
			                      err);
	return st;
}

vn_status vn_transfer_finish(vn_gpu_pass *w, vn_error *err)
{
	vn_encoder *e = &w->g->encoder;
	vn_status   st;

	if ((st = vn_encode_submit(e, err)) || (st = drain_buffer(w, e->cur, err))) /* the older one first */
		return st;
	return drain_buffer(w, 1 - e->cur, err);
}

vn_status vn_transfer_flush(vn_gpu_pass *w, vn_error *err)
{
	const vn_status st = vn_transfer_finish(w, err);

	if (!st)
		vn_encode_begin(&w->g->encoder);
	return st;
}
