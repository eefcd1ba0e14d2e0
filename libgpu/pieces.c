/* pieces.c: values that are never held whole. */
#include "libgpu/pieces.h"

#include "libgpu/ops.h"
#include "libgpu/transfer.h"

/* The matrices that a value consists of: heads, each of rows of one length. */
typedef struct value_rows {
	int64_t heads, row;
	int64_t from, to; /* rows that are made, of each head */
} value_rows;

static value_rows form_of(const vn_gpu_pass *w, int value)
{
	const vn_value *v = &w->g->plan->value[value];
	value_rows      f = { .heads = 1, .row = vn_value_row(v), .from = 0, .to = w->tokens };

	if (w->g->plan->node[v->node].op == VN_OP_ATTENTION) {
		f.heads = v->size[0];
		f.row = w->past + w->tokens;
	}
	if (v->on_demand) {
		f.from = w->first;
		f.to = vn_pass_wants(w, value) ? w->first + w->count : w->first;
	}
	return f;
}

VkDeviceSize vn_pieces_scratch(const vn_gpu_pass *w)
{
	const VkDeviceSize element = vn_dtype_size(w->g->policy.storage), limit = (VkDeviceSize)1 << 30; /* 2^29 halves */
	const VkDeviceSize most = w->g->staging.size < limit ? w->g->staging.size : limit;
	VkDeviceSize       bytes = VN_ZONE;

	for (int i = 0; i < w->g->cache.n && w->g->cache.pages.block; i++) { /* to be gathered for a tap or a read */
		const VkDeviceSize whole = (VkDeviceSize)(w->past + w->tokens) * w->g->cache.slot[i].row_bytes;
		if (w->g->cache.slot[i].grows && whole > bytes)
			bytes = whole;
	}
	for (int v = 0; v < w->g->plan->n_values; v++) {
		if (w->g->plan->value[v].alias_of >= 0 || !vn_value_streams(w->g->plan, v))
			continue;
		const value_rows   f = form_of(w, v);
		const VkDeviceSize whole = (VkDeviceSize)((f.to - f.from) * f.row) * element;
		if (whole > bytes)
			bytes = whole;
	}
	return bytes < most ? bytes : most;
}

static void compute_piece(vn_gpu_pass *w, int value, int64_t head, vn_gpu_piece p)
{
	const vn_value *v = &w->g->plan->value[value];

	if (w->g->guard)
		vn_encode_poison(&w->g->encoder, &w->g->scratch);
	if (v->node == w->g->break_skip)
		return;
	switch (w->g->plan->node[v->node].op) {
	case VN_OP_LINEAR: vn_ops_linear_part(w, v->node, p); break;
	case VN_OP_ACT: vn_ops_act_part(w, v->node, p); break;
	default: vn_ops_attention_part(w, v->node, v->slot, head, p);
	}
}

static vn_status tap_piece(vn_gpu_pass *w, int value, const value_rows *f, int64_t head, vn_gpu_piece p, vn_error *err)
{
	const size_t  element = vn_dtype_size(w->g->policy.storage);
	const int64_t from = p.row > w->first ? p.row : w->first; /* what of it is wanted */
	const int64_t to = p.row + p.rows < w->first + w->count ? p.row + p.rows : w->first + w->count;
	vn_status     st = VN_OK;

	if (w->g->guard)
		st = vn_transfer_take(
			w, (vn_transfer_part) { .value = value, .start = (head * w->tokens + p.row) * f->row + p.col },
			&w->g->scratch, 0, p.rows * p.cols, err);
	if (st || !vn_pass_wants(w, value) || from >= to)
		return st;
	return vn_transfer_take(
		w,
		(vn_transfer_part) {
			.value = value, .hand = true, .start = (head * w->count + from - w->first) * f->row + p.col },
		&w->g->scratch, (VkDeviceSize)((from - p.row) * p.cols) * element, (to - from) * p.cols, err);
}

void vn_pieces_list(vn_gpu_pass *w, int value)
{
	const value_rows f = form_of(w, value);

	if (f.from < f.to)
		compute_piece(w, value, 0, (vn_gpu_piece) { f.from, 1, 0, 1 });
}

vn_status vn_pieces_encode(vn_gpu_pass *w, int value, vn_error *err)
{
	const value_rows f = form_of(w, value);
	const int64_t    room = (int64_t)(w->g->scratch.size / vn_dtype_size(w->g->policy.storage));
	const int64_t    rows_fit = room / f.row;
	vn_status        st = VN_OK;

	for (int64_t head = 0; head < f.heads; head++) {
		for (int64_t row = f.from; row < f.to;) {
			const int64_t rows = rows_fit < 1 ? 1 : rows_fit < f.to - row ? rows_fit : f.to - row;
			const int64_t cols = rows_fit < 1 ? room : f.row;
			for (int64_t col = 0; col < f.row && !st; col += cols) {
				const vn_gpu_piece p = { row, rows, col, cols < f.row - col ? cols : f.row - col };
				compute_piece(w, value, head, p);
				st = tap_piece(w, value, &f, head, p, err);
			}
			if (st)
				return st;
			row += rows;
		}
	}
	return VN_OK;
}

vn_status vn_pieces_state(vn_gpu_pass *w, vn_transfer_part part, vn_buffer *now, vn_error *err)
{
	const int64_t all = vn_pass_elements(w, part.value);
	const int     state = w->g->plan->value[part.value].state;
	const size_t  element = vn_dtype_size(w->g->policy.storage);
	const int64_t room = (int64_t)(w->g->scratch.size / element);
	vn_status     st = VN_OK;

	if (!w->g->cache.slot[state].grows || !w->g->cache.pages.block)
		return vn_transfer_take(w, part, now, 0, all, err);
	for (; part.start < all && !st; part.start += room) {
		const int64_t n = room < all - part.start ? room : all - part.start;
		if (w->g->guard)
			vn_encode_poison(&w->g->encoder, &w->g->scratch);
		vn_ops_gather(w, state, part.start, n);
		st = vn_transfer_take(w, part, &w->g->scratch, 0, n, err);
		part.to = part.to ? part.to + (size_t)n * element : NULL;
	}
	return st;
}
