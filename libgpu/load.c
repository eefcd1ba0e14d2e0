/* load.c: see load.h. */
#include "libgpu/load.h"

#include "libgpu/halves.h"
#include "libgpu/workers.h"

#include "libref/base/progress.h"
#include "libref/base/trouble.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

VkDeviceSize vn_gpu_weights_block = (VkDeviceSize)256 << 20, vn_gpu_weights_upload = (VkDeviceSize)32 << 20;
int64_t      vn_gpu_weights_panel = 256 * 1024; /* 2 MiB of double stay in cache */
bool         vn_gpu_weights_halves_there;

/* A part of a matrix (M,N) on the device, with its size: whole rows, or a piece of one. */
typedef struct part {
	int64_t row, rows, col, cols;
} part;

/* A piece: what a worker converts at a time. A weight that is not transposed counts as a matrix of
 * one row. */
typedef struct weight_piece {
	int          weight;
	part         p;
	int64_t      at;   /* its first element */
	VkDeviceSize up;   /* its place in the upload buffer */
	int64_t      over; /* how many numbers overflowed */
} weight_piece;

/* A worker's own memory. */
typedef struct panels {
	void *wide;       /* (panel) floats, or doubles of a weight that has them */
	char *stored;     /* (panel) in the storage format */
	char *transposed; /* (panel) as stored in the file, in another order */
} panels;

typedef struct load {
	vn_encoder      *e;
	vn_gpu_weights  *w;
	const vn_tensor *from;
	vn_dtype         storage;
	bool            *over; /* (n_weights): matrices to transpose */
	bool            *bf16; /* (n_weights): the device converts them to half */
	panels           panels[VN_WORKERS_MAX];
	int              workers;
	vn_buffer        upload; /* only when the host cannot write device memory */
	/* the next piece: its weight, and where it begins there */
	int              weight;
	int64_t          row, col;
	weight_piece    *batch; /* (VN_WORK_MAX): pieces being converted */
	int              n;
} load;

/* Assigns each weight a block and an offset in it. Returns the number of blocks;
 * sizes: bytes of each. */
static int assign_blocks(vn_gpu_weights *w, const vn_plan *plan, bool guard, VkDeviceSize *sizes)
{
	VkDeviceSize end = 0; /* of the open block */
	int          open = -1, n = 0;

	for (int i = 0; i < w->n; i++) {
		vn_gpu_weight_place *p = &w->at[i];
		p->bytes = (VkDeviceSize)vn_shape_count(&plan->weight[i].shape) * vn_dtype_size(p->dtype);
		const VkDeviceSize start = (end + (guard && end ? VN_ZONE : 0) + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
		const bool         fits = open >= 0 && start + p->bytes <= vn_gpu_weights_block;
		p->block = fits ? open : n++;
		p->offset = fits ? start : 0;
		sizes[p->block] = p->offset + p->bytes;
		if (p->bytes <= vn_gpu_weights_block) { /* else it has a block of its own */
			open = p->block;
			end = sizes[open];
		}
	}
	return n;
}

/* Usually no number is, and the compiler vectorises this loop. */
static bool any_infinite(const char *stored, vn_dtype storage, size_t n)
{
	unsigned any = 0;

	for (size_t i = 0; i < n && storage == VN_F16; i++) {
		uint16_t h;
		memcpy(&h, stored + 2 * i, 2);
		any |= (h & 0x7FFF) == 0x7C00;
	}
	for (size_t i = 0; i < n && storage == VN_F32; i++) {
		uint32_t f;
		memcpy(&f, stored + 4 * i, 4);
		any |= (f & 0x7FFFFFFF) == 0x7F800000;
	}
	return any;
}

/* Finite numbers that became infinite in the storage format. x: float or double. */
static int64_t count_new_infinities(const void *x, vn_dtype from, const char *stored, vn_dtype storage, size_t n)
{
	int64_t  count = 0;
	uint16_t h;
	float    f;

	if (!any_infinite(stored, storage, n))
		return 0;
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

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Transposes that part of a matrix stored as (N,M) into `transposed`, in squares of 16, so that
 * neither side skips through memory. */
static const char *transpose_part(char *transposed, const vn_tensor *t, const part *p)
{
	enum { SIDE = 16 };
	const size_t  size = vn_dtype_size(t->dtype);
	const int64_t M = t->shape.dim[1];

	for (int64_t c0 = 0; c0 < p->cols; c0 += SIDE)
		for (int64_t r0 = 0; r0 < p->rows; r0 += SIDE)
			for (int64_t r = r0; r < p->rows && r < r0 + SIDE; r++)
				for (int64_t c = c0; c < p->cols && c < c0 + SIDE; c++)
					memcpy(transposed + (size_t)(r * p->cols + c) * size,
					       (const char *)t->data + (size_t)((p->col + c) * M + p->row + r) * size, size);
	return transposed;
}

static size_t piece_elements(const weight_piece *q)
{
	return (size_t)(q->p.rows * q->p.cols);
}

static char *piece_place(const load *l, const weight_piece *q)
{
	const vn_gpu_weight_place *at = &l->w->at[q->weight];
	char                      *block = l->w->block[at->block].map;

	return block ? block + at->offset + (size_t)q->at * vn_dtype_size(at->dtype) : (char *)l->upload.map + q->up;
}

/* A double is converted directly to the storage format: through float it would be rounded twice,
 * and differ from the reference. */
static void convert_piece(const load *l, panels *own, const char *src, weight_piece *q)
{
	const vn_dtype from = l->from[q->weight].dtype, to = l->w->at[q->weight].dtype;
	const size_t   n = piece_elements(q);

	if (from == VN_F64) {
		vn_to_f64(own->wide, src, VN_F64, n);
		vn_from_f64(own->stored, to, own->wide, n);
	} else {
		vn_to_f32(own->wide, src, from, n);
		vn_from_f32(own->stored, to, own->wide, n);
	}
	q->over = count_new_infinities(own->wide, from, own->stored, to, n);
}

/* Converts one piece of the batch into device memory or the upload buffer. */
static bool upload_piece(void *ctx, int which, int worker)
{
	load            *l = ctx;
	panels          *own = &l->panels[worker];
	weight_piece    *q = &l->batch[which];
	const vn_tensor *t = &l->from[q->weight];
	const vn_dtype   to = l->w->at[q->weight].dtype;
	const char      *src = (const char *)t->data + vn_dtype_bytes(t->dtype, (size_t)q->at);

	if (l->over[q->weight])
		src = transpose_part(own->transposed, t, &q->p);
	if (t->dtype != to && !l->bf16[q->weight]) {
		convert_piece(l, own, src, q);
		src = own->stored;
	}
	memcpy(piece_place(l, q), src, piece_elements(q) * vn_dtype_size(to));
	return true;
}

static bool next_piece(load *l, weight_piece *q)
{
	for (; l->weight < l->w->n; l->weight++, l->row = l->col = 0) {
		const vn_shape *s = &l->from[l->weight].shape;
		const bool      over = l->over[l->weight];
		const int64_t   M = over ? s->dim[1] : 1, N = over ? s->dim[0] : vn_shape_count(s);
		if (l->row >= M || N == 0)
			continue;
		const int64_t rows = N < vn_gpu_weights_panel ? vn_gpu_weights_panel / N : 1,
					  cols = smaller(N, vn_gpu_weights_panel);
		*q = (weight_piece) { .weight = l->weight,
			                  .at = l->row * N + l->col,
			                  .p = { l->row, smaller(rows, M - l->row), l->col, smaller(cols, N - l->col) } };
		l->col += cols;
		if (l->col >= N) {
			l->col = 0;
			l->row += rows;
		}
		return true;
	}
	return false;
}

/* As many pieces as fit. */
static void fill_batch(load *l)
{
	const size_t largest = (size_t)vn_gpu_weights_panel * sizeof(float);
	VkDeviceSize used = 0;

	l->n = 0;
	while (l->n < VN_WORK_MAX && (!l->upload.map || used + largest <= vn_gpu_weights_upload) &&
	       next_piece(l, &l->batch[l->n])) {
		weight_piece *q = &l->batch[l->n++];
		q->up = used;
		const VkDeviceSize bytes = piece_elements(q) * vn_dtype_size(l->w->at[q->weight].dtype);
		used += (bytes + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);
	}
}

static int64_t bytes_read(const load *l, int weight, int64_t elements)
{
	return (int64_t)vn_dtype_bytes(l->from[weight].dtype, (size_t)elements);
}

static vn_status work_on_batch(load *l, vn_progress *bar, int64_t *done, vn_error *err)
{
	vn_workers w;
	vn_status  st = VN_OK;

	vn_workers_start(&w, l->n, l->workers, upload_piece, l);
	for (int seen = 0; seen < l->n && !st && !(st = vn_encode_asked_to_stop(l->e, err));) {
		const int which = vn_workers_next(&w, seen);
		if (which < 0)
			continue;
		seen++;
		*done += bytes_read(l, l->batch[which].weight, (int64_t)piece_elements(&l->batch[which]));
		vn_progress_at(bar, *done);
	}
	vn_workers_stop(&w);
	return st;
}

static void count_overflows(load *l)
{
	for (int i = 0; i < l->n; i++)
		vn_gpu_weights_overflow(l->w, l->batch[i].weight, l->batch[i].over);
}

/* Copies from the upload buffer to the device. */
static vn_status copy_batch(load *l, vn_error *err)
{
	const int i = l->e->cur;
	vn_status st;

	if (!l->e->recording)
		vn_encode_begin(l->e);
	for (int k = 0; k < l->n; k++) {
		const weight_piece        *q = &l->batch[k];
		const vn_gpu_weight_place *at = &l->w->at[q->weight];
		const size_t               size = vn_dtype_size(at->dtype);
		vn_encode_copy(l->e, &l->upload, q->up, &l->w->block[at->block], at->offset + (VkDeviceSize)q->at * size,
		               piece_elements(q) * size);
	}
	return (st = vn_encode_submit(l->e, err)) ? st : vn_encode_wait(l->e, i, err);
}

static int64_t bytes_of_all(const load *l)
{
	int64_t bytes = 0;

	for (int i = 0; i < l->w->n; i++)
		bytes += bytes_read(l, i, vn_shape_count(&l->from[i].shape));
	return bytes;
}

static vn_status load_all(load *l, bool progress, vn_error *err)
{
	VN_ENDS(vn_progress_stop) vn_progress bar = { 0 };
	int64_t                               done = 0;
	vn_status                             st = VN_OK;

	if (progress)
		vn_progress_begin(&bar, &(vn_progress) { .what = "loading", .total = bytes_of_all(l), .bytes = true });
	for (fill_batch(l); l->n && !st; fill_batch(l)) {
		if ((st = work_on_batch(l, &bar, &done, err)) || (l->upload.map && (st = copy_batch(l, err))))
			break;
		count_overflows(l);
	}
	return st;
}

/* A router's bias is added to scores in float32, and models keep it so. */
static void find_formats(const load *l, const vn_plan *p)
{
	for (int i = 0; i < l->w->n; i++)
		l->w->at[i].dtype = l->storage;
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_TOP_K && p->node[i].w[VN_ROUTER_BIAS] >= 0)
			l->w->at[p->node[i].w[VN_ROUTER_BIAS]].dtype = VN_F32;
}

/* over (n_weights): set for matrices that every reader needs transposed. */
static vn_status find_over(const vn_plan *p, bool *over, vn_error *err)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < p->n_nodes; i++) {
			const vn_node *n = &p->node[i];
			for (int k = 0; k < n->n_w; k++) {
				const bool here = n->op == VN_OP_LINEAR && k == 0 && n->c.linear.transposed;
				if (n->w[k] < 0)
					continue;
				over[n->w[k]] |= here;
				if (pass == 1 && over[n->w[k]] != here)
					return vn_fail(
						err, VN_ERR_UNSUPPORTED,
						"weight %s is read both as stored and transposed: the GPU engine does not support this",
						p->weight[n->w[k]].name);
			}
		}
	return VN_OK;
}

/* Poisons a whole block. A mapped block without zones is left to poison_gap: filling it with one
 * thread would take as long as converting the weights. */
static void poison_block(load *l, vn_buffer *b, bool guard)
{
	if (b->map && guard)
		memset((char *)b->map - b->offset, 0xFF, b->total);
	if (b->map)
		return;
	if (!l->e->recording)
		vn_encode_begin(l->e);
	vn_encode_poison(l->e, b);
}

/* Poisons the gap from the end of a weight to the place where the next one may begin. */
static void poison_gap(vn_gpu_weights *w, int weight)
{
	const vn_gpu_weight_place *at = &w->at[weight];
	const vn_buffer           *b = &w->block[at->block];
	const VkDeviceSize         end = at->offset + at->bytes;
	const VkDeviceSize         next = (end + VN_ZONE - 1) & ~(VkDeviceSize)(VN_ZONE - 1);

	if (b->map)
		memset((char *)b->map + end, 0xFF, (next < b->total ? next : b->total) - end);
}

static vn_status create_blocks(load *l, const vn_plan *plan, bool guard, vn_error *err)
{
	vn_gpu_weights *w = l->w;
	VkDeviceSize   *sizes = calloc(w->n ? (size_t)w->n : 1, sizeof(*sizes));
	vn_status       st = VN_OK;
	char            name[64];

	if (!sizes)
		return vn_fail(err, VN_ERR_NOMEM, "no memory to place %d weights", w->n);
	const int n = assign_blocks(w, plan, guard, sizes);
	if (!(w->block = calloc(n ? (size_t)n : 1, sizeof(*w->block))))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %d blocks of weights", n);
	for (int i = 0; i < n && !st; i++) {
		snprintf(name, sizeof(name), "weights %d", i);
		if (!(st = vn_buffer_create(l->e->d, &w->block[i], &(vn_buffer_need) { VN_ON_DEVICE, sizes[i], guard, name },
		                            err)))
			w->n_blocks = i + 1;
		if (!st)
			poison_block(l, &w->block[i], guard);
		w->bytes += (int64_t)sizes[i];
	}
	free(sizes);
	for (int i = 0; i < w->n && !st; i++)
		w->at[i].address = w->block[w->at[i].block].address + w->at[i].offset;
	for (int i = 0; i < w->n && !st && !guard; i++)
		poison_gap(w, i);
	return st;
}

static bool allocate_panels(panels *own)
{
	const size_t n = (size_t)vn_gpu_weights_panel;

	own->wide = malloc(n * sizeof(double));
	own->stored = malloc(n * sizeof(float));
	own->transposed = malloc(n * sizeof(double));
	return own->wide && own->stored && own->transposed;
}

static void free_panels(panels *own)
{
	VN_FREE(own->transposed, own->stored, own->wide);
}

/* One worker at least. */
static vn_status allocate_lists(load *l, int n_weights, int threads, vn_error *err)
{
	const int most = vn_workers_count(VN_WORK_MAX, threads);

	l->w->at = calloc(n_weights ? (size_t)n_weights : 1, sizeof(*l->w->at));
	l->over = calloc((size_t)n_weights + 1, sizeof(*l->over));
	l->bf16 = calloc((size_t)n_weights + 1, sizeof(*l->bf16));
	l->batch = malloc(VN_WORK_MAX * sizeof(*l->batch));
	if (!l->w->at || !l->over || !l->bf16 || !l->batch || !allocate_panels(&l->panels[0]))
		return vn_fail(err, VN_ERR_NOMEM, "no memory to convert weights");
	vn_trouble_spare(true); /* with fewer workers it takes longer */
	for (l->workers = 1; l->workers < most && allocate_panels(&l->panels[l->workers]);)
		l->workers++;
	vn_trouble_spare(false);
	return VN_OK;
}

static vn_status check_shapes(const vn_plan *plan, const vn_tensor *from, vn_error *err)
{
	char have[VN_SHAPE_TEXT], need[VN_SHAPE_TEXT];

	for (int i = 0; i < plan->n_weights; i++)
		if (!vn_shape_equal(&from[i].shape, &plan->weight[i].shape))
			return vn_fail(err, VN_ERR_SHAPE, "weight %s has shape %s, expected %s", plan->weight[i].name,
			               vn_shape_text(&from[i].shape, have), vn_shape_text(&plan->weight[i].shape, need));
	return VN_OK;
}

static bool has_experts(const vn_plan *p)
{
	bool has = false;

	for (int i = 0; i < p->n_nodes; i++)
		has = has || p->node[i].op == VN_OP_EXPERTS;
	return has;
}

static void list_addresses(const vn_gpu_weights *w, void *to)
{
	for (int i = 0; i < w->n; i++)
		memcpy((char *)to + (size_t)i * sizeof w->at[i].address, &w->at[i].address, sizeof w->at[i].address);
}

/* Writes the address of every weight to the device. */
static vn_status write_addresses(load *l, bool guard, vn_error *err)
{
	vn_buffer         *all = &l->w->addresses, up = { 0 };
	const VkDeviceSize bytes = (VkDeviceSize)l->w->n * sizeof(VkDeviceAddress);
	const int          i = l->e->cur;
	vn_status          st;

	if ((st = vn_buffer_create(l->e->d, all, &(vn_buffer_need) { VN_ON_DEVICE, bytes, guard, "addresses of weights" },
	                           err)))
		return st;
	if (all->map) {
		if (guard)
			memset((char *)all->map - all->offset, 0xFF, all->total);
		list_addresses(l->w, all->map);
		return VN_OK;
	}
	if ((st = vn_buffer_create(l->e->d, &up,
	                           &(vn_buffer_need) { VN_FOR_UPLOAD, bytes, false, "addresses on their way" }, err)))
		return st;
	list_addresses(l->w, up.map);
	vn_encode_begin(l->e);
	if (guard)
		vn_encode_poison(l->e, all);
	vn_encode_copy(l->e, &up, 0, all, 0, bytes);
	if (!(st = vn_encode_submit(l->e, err)))
		st = vn_encode_wait(l->e, i, err);
	if (st)
		vn_encode_abandon(l->e);
	vn_buffer_destroy(l->e->d, &up);
	return st;
}

vn_status vn_gpu_weights_create(vn_encoder *e, vn_gpu_weights *w, const vn_plan *plan, const vn_tensor *from,
                                const vn_gpu_load *how, vn_error *err)
{
	const bool there = vn_gpu_weights_halves_there || strcmp(e->d->info.type, "cpu") != 0;
	load       l = { .e = e, .w = w, .from = from, .storage = how->storage };
	vn_status  st;

	*w = (vn_gpu_weights) { .n = plan->n_weights, .first_overflowed = -1 };
	if ((st = allocate_lists(&l, w->n, how->threads, err)))
		goto done;
	find_formats(&l, plan);
	if ((st = find_over(plan, l.over, err)) || (st = check_shapes(plan, from, err)) ||
	    (st = create_blocks(&l, plan, how->guard, err)))
		goto done;
	for (int i = 0; i < w->n; i++)
		l.bf16[i] = there && w->at[i].dtype == VN_F16 && from[i].dtype == VN_BF16;
	if (w->n_blocks && !w->block[0].map &&
	    (st = vn_buffer_create(
			 e->d, &l.upload, &(vn_buffer_need) { VN_FOR_UPLOAD, vn_gpu_weights_upload, false, "weights on their way" },
			 err)))
		goto done;
	if (!(st = load_all(&l, how->progress, err)))
		st = vn_halves_make(e, w, l.bf16, err);
	if (!st && has_experts(plan))
		st = write_addresses(&l, how->guard, err);
done:
	if (st)
		vn_encode_abandon(e);
	vn_buffer_destroy(e->d, &l.upload);
	for (int i = 0; i < VN_WORKERS_MAX; i++)
		free_panels(&l.panels[i]);
	VN_FREE(l.batch, l.bf16, l.over);
	return st;
}

void vn_gpu_weights_destroy(vn_device *d, vn_gpu_weights *w)
{
	for (int i = 0; i < w->n_blocks; i++)
		vn_buffer_destroy(d, &w->block[i]);
	vn_buffer_destroy(d, &w->addresses);
	VN_FREE(w->block, w->at);
	*w = (vn_gpu_weights) { 0 };
}
