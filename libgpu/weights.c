/* weights.c: the weights of a plan on the device. */
#include "libgpu/weights.h"

#include "libref/base/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UPLOAD ((VkDeviceSize)32 << 20)
#define PANEL  (256 * 1024) /* elements converted at a time, whole blocks: 2 MiB of double stay in cache */

VkDeviceSize vn_weights_block = (VkDeviceSize)256 << 20;

typedef struct load {
	vn_encoder *e;
	vn_gpu_weights *w;
	vn_dtype    storage;
	void       *panel;  /* (PANEL) floats, or doubles of a weight that has them */
	char       *stored; /* (PANEL) in the storage format */
	char       *turned; /* (PANEL) as stored in the file, in another order */
	vn_buffer   upload; /* only when the host cannot write device memory */
	VkDeviceSize used;  /* of upload */
} load;

/* Assigns each weight a block and an offset in it. Returns the number of blocks; sizes: bytes of each. */
static int assign_blocks(vn_gpu_weights *w, const vn_plan *plan, size_t element, bool guard, VkDeviceSize *sizes)
{
	VkDeviceSize end = 0; /* of the open block */
	int          open = -1, n = 0;

	for (int i = 0; i < w->n; i++) {
		vn_weight_place *p = &w->at[i];
		p->bytes = (VkDeviceSize)vn_shape_count(&plan->weight[i].shape) * element;
		const VkDeviceSize start = (end + (guard && end ? VN_ZONE : 0) + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
		const bool own = p->bytes > vn_weights_block;
		if (own || open < 0 || start + p->bytes > vn_weights_block) {
			p->block = n++;
			p->offset = 0;
			if (!own) {
				open = p->block;
				end = p->bytes;
			}
			sizes[p->block] = p->bytes;
		} else {
			p->block = open;
			p->offset = start;
			end = start + p->bytes;
			sizes[open] = end;
		}
	}
	return n;
}

/* Finite numbers that became infinite in the storage format. x: float or double. */
static int64_t overflows(const void *x, vn_dtype from, const char *stored, vn_dtype storage, size_t n)
{
	int64_t  count = 0;
	uint16_t h;
	float    f;

	for (size_t i = 0; i < n; i++) {
		bool infinite;
		if (storage == VN_F16) {
			memcpy(&h, stored + 2 * i, 2);
			infinite = (h & 0x7FFF) == 0x7C00;
		} else {
			memcpy(&f, stored + 4 * i, 4);
			infinite = isinf(f);
		}
		count += infinite && (from == VN_F64 ? isfinite(((const double *)x)[i]) : isfinite(((const float *)x)[i]));
	}
	return count;
}

static vn_status flush(load *l, vn_error *err)
{
	const int i = l->e->cur;
	vn_status st;

	if (!l->e->recording)
		return VN_OK;
	if ((st = vn_encode_submit(l->e, err)) || (st = vn_encode_wait(l->e, i, err)))
		return st;
	l->used = 0;
	return VN_OK;
}

static vn_status upload_bytes(load *l, const vn_weight_place *p, VkDeviceSize at, VkDeviceSize bytes, vn_error *err)
{
	vn_buffer *b = &l->w->block[p->block];
	vn_status  st;

	if (b->map) {
		memcpy((char *)b->map + p->offset + at, l->stored, bytes);
		return VN_OK;
	}
	if (l->used + bytes > UPLOAD && (st = flush(l, err)))
		return st;
	if (!l->e->recording && (st = vn_encode_begin(l->e, err)))
		return st;
	memcpy((char *)l->upload.map + l->used, l->stored, bytes);
	vn_encode_copy(l->e, &l->upload, l->used, b, p->offset + at, bytes);
	l->used += (bytes + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
	return VN_OK;
}

/* The place and size of a part of a matrix (M,N), as it will lie: whole rows, or a piece of one. */
typedef struct part {
	int64_t row, rows, col, cols;
} part;

/* That part of one that is stored (N,M), in l->turned. In squares of 16, so that
 * neither side skips through memory. */
static const char *turn_over(load *l, const vn_tensor *t, const part *p)
{
	enum { SIDE = 16 };
	const size_t  size = vn_dtype_size(t->dtype);
	const int64_t M = t->shape.dim[1];

	for (int64_t c0 = 0; c0 < p->cols; c0 += SIDE)
		for (int64_t r0 = 0; r0 < p->rows; r0 += SIDE)
			for (int64_t r = r0; r < p->rows && r < r0 + SIDE; r++)
				for (int64_t c = c0; c < p->cols && c < c0 + SIDE; c++)
					memcpy(l->turned + (size_t)(r * p->cols + c) * size,
					       (const char *)t->data + (size_t)((p->col + c) * M + p->row + r) * size, size);
	return l->turned;
}

/* m elements of weight i, from element `at` of what will lie on the device. */
static vn_status convert(load *l, int i, const vn_tensor *t, const char *src, int64_t at, size_t m, vn_error *err)
{
	const size_t to = vn_dtype_size(l->storage);

	if (t->dtype == l->storage) {
		memcpy(l->stored, src, m * to);
	} else {
		/* A double goes straight to the storage format: by way of float it
		 * would be rounded twice, to another number than the reference has. */
		if (t->dtype == VN_F64) {
			vn_to_f64(l->panel, src, VN_F64, m);
			vn_from_f64(l->stored, l->storage, l->panel, m);
		} else {
			vn_to_f32(l->panel, src, t->dtype, m);
			vn_from_f32(l->stored, l->storage, l->panel, m);
		}
		const int64_t over = overflows(l->panel, t->dtype, l->stored, l->storage, m);
		if (over && !l->w->overflowed)
			l->w->first_overflowed = i;
		l->w->overflowed += over;
	}
	return upload_bytes(l, &l->w->at[i], (VkDeviceSize)at * to, m * to, err);
}

static vn_status convert_all(load *l, int i, const vn_tensor *t, vn_error *err)
{
	const int64_t n = vn_shape_count(&t->shape);
	vn_status     st = VN_OK;

	for (int64_t at = 0; at < n && !st; at += PANEL) {
		const size_t m = (size_t)(n - at < PANEL ? n - at : PANEL);
		st = convert(l, i, t, (const char *)t->data + vn_dtype_bytes(t->dtype, (size_t)at), at, m, err);
	}
	return st;
}

/* The same of a matrix that is stored (N,M) and will lie (M,N). */
static vn_status convert_over(load *l, int i, const vn_tensor *t, vn_error *err)
{
	const int64_t M = t->shape.dim[1], N = t->shape.dim[0], rows = N < PANEL ? PANEL / N : 1, cols = N < PANEL ? N : PANEL;
	vn_status     st = VN_OK;

	for (int64_t r = 0; r < M && !st; r += rows)
		for (int64_t c = 0; c < N && !st; c += cols) {
			const part p = { r, M - r < rows ? M - r : rows, c, N - c < cols ? N - c : cols };
			st = convert(l, i, t, turn_over(l, t, &p), r * N + c, (size_t)(p.rows * p.cols), err);
		}
	return st;
}

/* over (n_weights): the matrices that every reader wants turned over. */
static vn_status find_over(const vn_plan *p, bool *over, vn_error *err)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < p->n_nodes; i++) {
			const vn_node *n = &p->node[i];
			for (int k = 0; k < n->n_w; k++) {
				const bool here = n->op == VN_OP_LINEAR && k == 0 && n->c.linear.transposed;
				if (n->w[k] < 0)
					continue;
				if (pass == 0 && here)
					over[n->w[k]] = true;
				if (pass == 1 && over[n->w[k]] != here)
					return vn_fail(err, VN_ERR_UNSUPPORTED, "weight %s is read both as it is stored and turned over: not on the GPU",
					               p->weight[n->w[k]].name);
			}
		}
	return VN_OK;
}

static vn_status blocks(load *l, const vn_plan *plan, bool guard, vn_error *err)
{
	vn_gpu_weights   *w = l->w;
	VkDeviceSize *sizes = calloc(w->n ? (size_t)w->n : 1, sizeof(*sizes));
	vn_status     st = VN_OK;
	char          name[64];

	if (!sizes)
		return vn_fail(err, VN_ERR_NOMEM, "no memory to place %d weights", w->n);
	const int n = assign_blocks(w, plan, vn_dtype_size(l->storage), guard, sizes);
	if (!(w->block = calloc(n ? (size_t)n : 1, sizeof(*w->block))))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %d blocks of weights", n);
	for (int i = 0; i < n && !st; i++) {
		snprintf(name, sizeof(name), "weights %d", i);
		if (!(st = vn_buffer_create(l->e->d, &w->block[i], VN_ON_DEVICE, sizes[i], guard, name, err)))
			w->n_blocks = i + 1;
		if (!st && w->block[i].map)
			memset((char *)w->block[i].map - w->block[i].offset, 0xFF, w->block[i].total);
		else if (!st && (l->e->recording || !(st = vn_encode_begin(l->e, err))))
			vn_encode_poison(l->e, &w->block[i]);
		w->bytes += (int64_t)sizes[i];
	}
	free(sizes);
	for (int i = 0; i < w->n && !st; i++)
		w->at[i].address = w->block[w->at[i].block].address + w->at[i].offset;
	return st;
}

vn_status vn_weights_create(vn_encoder *e, vn_gpu_weights *w, const vn_plan *plan, const vn_tensor *from, vn_dtype storage,
                            bool guard, bool progress, vn_error *err)
{
	load        l = { .e = e, .w = w, .storage = storage };
	vn_progress p = { 0 };
	vn_status   st = VN_OK;
	bool       *over = calloc((size_t)plan->n_weights + 1, sizeof(*over));

	*w = (vn_gpu_weights){ .n = plan->n_weights, .first_overflowed = -1 };
	w->at = calloc(w->n ? (size_t)w->n : 1, sizeof(*w->at));
	l.panel = malloc(PANEL * sizeof(double));
	l.stored = malloc(PANEL * vn_dtype_size(storage));
	l.turned = malloc(PANEL * sizeof(double));
	if (!w->at || !l.panel || !l.stored || !l.turned || !over) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory to convert weights");
		goto done;
	}
	if ((st = find_over(plan, over, err)))
		goto done;
	for (int i = 0; i < w->n; i++) {
		char have[VN_SHAPE_TEXT], need[VN_SHAPE_TEXT];
		if (!vn_shape_equal(&from[i].shape, &plan->weight[i].shape)) {
			st = vn_fail(err, VN_ERR_SHAPE, "weight %s has shape %s, expected %s", plan->weight[i].name,
			             vn_shape_text(&from[i].shape, have), vn_shape_text(&plan->weight[i].shape, need));
			goto done;
		}
	}
	if ((st = blocks(&l, plan, guard, err)))
		goto done;
	if (w->n_blocks && !w->block[0].map &&
	    (st = vn_buffer_create(e->d, &l.upload, VN_FOR_UPLOAD, UPLOAD, false, "weights on their way", err)))
		goto done;
	if (progress)
		vn_progress_start(&p, "weight", w->n);
	for (int i = 0; i < w->n && !st; i++) {
		st = (over[i] ? convert_over : convert_all)(&l, i, &from[i], err);
		if (progress)
			vn_progress_at(&p, i + 1);
	}
	if (progress)
		vn_progress_stop(&p);
	if (!st)
		st = flush(&l, err);
done:
	if (st)
		vn_encode_abandon(e);
	vn_buffer_destroy(e->d, &l.upload);
	free(over);
	free(l.turned);
	free(l.stored);
	free(l.panel);
	if (st)
		vn_weights_destroy(e->d, w);
	return st;
}

void vn_weights_destroy(vn_device *d, vn_gpu_weights *w)
{
	for (int i = 0; i < w->n_blocks; i++)
		vn_buffer_destroy(d, &w->block[i]);
	free(w->block);
	free(w->at);
	*w = (vn_gpu_weights){ 0 };
}
