/* apply_computed.c: see apply_computed.h. */
#include "compare/explain/activation.h"
#include "compare/explain/apply_computed.h"
#include "compare/explain/attend.h"
#include "compare/explain/edit_matrix.h"
#include "compare/explain/linear_product.h"
#include "compare/explain/narrow.h"
#include "compare/explain/own_calls.h"
#include "compare/explain/rotate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a product ------------------------------------------------------------------------------------------ */

/* The table of weights with another tensor in the place of weight w. */
static vn_status replace_weight(const vn_plan *p, int w, vn_made *made, vn_error *err)
{
	const vn_status st = vn_made_copy_table(made, p, err);
	if (st)
		return st;
	made->table[w].data = made->rows;
	made->table[w].dtype = VN_F32;
	return VN_OK;
}

/* Where the candidate's product can be compared: T rows of input and result. x NULL: nowhere. */
typedef struct product_rows {
	double          *x; /* (T,N) */
	int64_t          T;
	const vn_tensor *bias, *cand;
} product_rows;

/* How much of the error of channel m changing weight n by `by` removes; if it does, `off` (T)
 * changes. */
static bool improves_rows(const product_rows *p, int64_t N, int64_t n, double by, double *off)
{
	double before = 0, after = 0;

	for (int64_t t = 0; t < p->T; t++) {
		const double with = off[t] + by * p->x[t * N + n];
		before += off[t] * off[t];
		after += with * with;
	}
	for (int64_t t = 0; after < before && t < p->T; t++)
		off[t] += by * p->x[t * N + n];
	return after < before;
}

/* Row m of the edited matrix. Weights that lie so near the middle between two numbers of a format
 * that an engine's last bit decides are rounded to what fits the candidate better. row: (N); room:
 * (2 N + T) */
static void settled_row(vn_edited *e, const vn_matrix_edit *edit, int64_t m, const product_rows *p, double *row,
                        double *room)
{
	double *low = room, *high = room + e->N, *off = room + 2 * e->N;
	bool    ties = false;

	vn_edited_row(e, edit, m, row);
	if (!p->x || edit->kind != VN_EDIT_FORMAT || !edit->scaled || edit->of == VN_OF_INPUTS)
		return;
	e->nudge = -VN_NUDGE;
	vn_edited_row(e, edit, m, low);
	e->nudge = VN_NUDGE;
	vn_edited_row(e, edit, m, high);
	e->nudge = 0;
	for (int64_t n = 0; n < e->N && !ties; n++)
		ties = low[n] != high[n];
	for (int64_t t = 0; ties && t < p->T; t++) {
		off[t] = (p->bias ? vn_number_at(p->bias, m) : 0) - vn_number_at(p->cand, t * e->M + m);
		for (int64_t n = 0; n < e->N; n++)
			off[t] += p->x[t * e->N + n] * row[n];
	}
	for (int64_t n = 0; ties && n < e->N; n++) {
		const double other = row[n] == low[n] ? high[n] : low[n];
		if (other != row[n] && improves_rows(p, e->N, n, other - row[n], off))
			row[n] = other;
	}
}

/* Reads the inputs of the product, if its result is the checkpoint. The caller frees p->x. */
static vn_status read_rows(const vn_explain_trial *t, const vn_node *node, int64_t N, int64_t M, product_rows *p,
                           vn_error *err)
{
	vn_tensor in;
	vn_status st;

	*p = (product_rows) { .T = t->site->cand.shape.dim[0],
		                  .cand = &t->site->cand,
		                  .bias = node->w[1] >= 0 ? &t->site->weights[node->w[1]] : NULL };
	if (p->T * M != vn_shape_count(&t->site->cand.shape) || node->out[0] != t->site->target ||
	    t->site->first + p->T > t->site->tokens)
		return VN_OK;
	if ((st = vn_recompute_input(t->recompute, 0, VN_FINE_WIDTH, &in, err)))
		return st;
	if (!(p->x = malloc((size_t)(p->T * N) * sizeof *p->x + 1)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a product");
	vn_to_f64(p->x, (const char *)in.data + (size_t)(t->site->first * N) * vn_dtype_size(in.dtype), in.dtype,
	          (size_t)(p->T * N));
	return VN_OK;
}

static vn_status apply_to_weights(const vn_explain_trial *t, const vn_hypothesis *h, vn_edited *e, vn_made *made,
                                  vn_error *err)
{
	const vn_plan *p = t->site->plan;
	product_rows   rows;
	vn_status      st = read_rows(t, &p->node[h->node], e->N, e->M, &rows, err);
	double        *row = malloc((size_t)(3 * e->N + rows.T) * sizeof *row + 1);
	float         *x = made->rows = malloc((size_t)(e->M * e->N) * sizeof *x + 1);

	for (int64_t m = 0; !st && row && x && m < e->M; m++) {
		settled_row(e, &h->change.matrix, m, &rows, row, row + e->N);
		for (int64_t n = 0; n < e->N; n++)
			x[e->transposed ? n * e->M + m : m * e->N + n] = (float)row[n];
	}
	free(row);
	free(rows.x);
	return st         ? st
	       : row && x ? replace_weight(p, p->node[h->node].w[0], made, err)
	                  : vn_fail(err, VN_ERR_NOMEM, "no memory for a matrix");
}

/* y = x w for all rows, in double. w: room for settled_row. */
static void multiply_rows(vn_edited *e, const vn_matrix_edit *edit, const product_rows *p, double *w, double *y)
{
	for (int64_t m = 0; m < e->M; m++) {
		const double b = p->bias ? vn_number_at(p->bias, m) : 0;
		settled_row(e, edit, m, p, w, w + e->N);
		for (int64_t t = 0; t < p->T; t++) {
			double s = 0;
			for (int64_t n = 0; n < e->N; n++)
				s += p->x[t * e->N + n] * w[n];
			y[t * e->M + m] = s + b;
		}
	}
}

/* TOGETHER: that many ties of one token, at most, are settled together. */
enum { TOGETHER = 8 };

/* An input, x[t * N + n], that lies so near the middle between two numbers of a format that an engine's last bit
 * decides: it would be greater by `by`. error, errors: half of what that adds to the squared error of its token,
 * times the error that is there, and times what another tie adds. */
typedef struct input_tie {
	int64_t t, n;
	double  by, error, errors[TOGETHER];
	bool    chosen;
} input_tie;

typedef struct input_ties {
	input_tie *of;
	size_t     n, room;
} input_ties;

static vn_status add_tie(input_ties *list, input_tie tie, vn_error *err)
{
	if (list->n == list->room) {
		const size_t room = list->room ? 2 * list->room : 64;
		input_tie   *more = realloc(list->of, room * sizeof *more);
		if (!more)
			return vn_fail(err, VN_ERR_NOMEM, "no memory for %zu inputs", room);
		list->of = more;
		list->room = room;
	}
	list->of[list->n++] = tie;
	return VN_OK;
}

/* Edits the inputs, and lists the ties. room: (2 N) */
static vn_status edit_inputs(const vn_matrix_edit *edit, int64_t N, product_rows *p, double *room, input_ties *ties,
                             vn_error *err)
{
	double   *low = room, *high = room + N;
	vn_status st = VN_OK;

	for (int64_t t = 0; t < p->T; t++) {
		double *x = p->x + t * N;
		memcpy(low, x, (size_t)N * sizeof *x);
		memcpy(high, x, (size_t)N * sizeof *x);
		vn_edited_input(edit, 0, x, N);
		vn_edited_input(edit, -VN_NUDGE, low, N);
		vn_edited_input(edit, VN_NUDGE, high, N);
		for (int64_t n = 0; !st && n < N; n++)
			if (low[n] != high[n])
				st = add_tie(ties, (input_tie) { .t = t, .n = n, .by = (x[n] == low[n] ? high[n] : low[n]) - x[n] },
				             err);
	}
	return st;
}

/* The end of the ties that are settled together with tie k, the first of them. */
static size_t end_of(const input_ties *ties, size_t k)
{
	size_t end = k;

	while (end < ties->n && end - k < TOGETHER && ties->of[end].t == ties->of[k].t)
		end++;
	return end;
}

/* Adds what ties k to end - 1 change of a channel. w: its weights; off: its error. */
static void add_errors(const input_ties *ties, size_t k, size_t end, const double *w, double off)
{
	for (size_t i = k; i < end; i++) {
		input_tie   *tie = &ties->of[i];
		const double step = tie->by * w[tie->n];
		tie->error += step * off;
		for (size_t j = k; j < end; j++)
			tie->errors[j - k] += step * ties->of[j].by * w[ties->of[j].n];
	}
}

/* Chooses those of ties k to end - 1 that leave the least error if they are rounded to the other side. */
static void choose_ties(const input_ties *ties, size_t k, size_t end)
{
	unsigned best = 0;
	double   least = 0;

	for (unsigned set = 1; set < 1u << (end - k); set++) {
		double sum = 0;
		for (size_t i = 0; i < end - k; i++) {
			sum += set >> i & 1 ? 2 * ties->of[k + i].error : 0;
			for (size_t j = 0; j < end - k; j++)
				sum += set >> i & set >> j & 1 ? ties->of[k + i].errors[j] : 0;
		}
		best = sum < least ? set : best;
		least = fmin(sum, least);
	}
	for (size_t i = k; i < end; i++)
		ties->of[i].chosen = best >> (i - k) & 1;
}

/* Rounds the tied inputs to what fits the candidate better, and changes y accordingly. w: room for settled_row. */
static void settle_inputs(vn_edited *e, const vn_matrix_edit *edit, const product_rows *p, const input_ties *ties,
                          double *w, double *y)
{
	for (int64_t m = 0; ties->n && m < e->M; m++) {
		settled_row(e, edit, m, p, w, w + e->N);
		for (size_t k = 0, end; k < ties->n; k = end) {
			const int64_t at = ties->of[k].t * e->M + m;
			end = end_of(ties, k);
			add_errors(ties, k, end, w, y[at] - vn_number_at(p->cand, at));
		}
	}
	for (size_t k = 0, end; k < ties->n; k = end)
		choose_ties(ties, k, end = end_of(ties, k));
	for (int64_t m = 0; ties->n && m < e->M; m++) {
		settled_row(e, edit, m, p, w, w + e->N);
		for (size_t k = 0; k < ties->n; k++)
			if (ties->of[k].chosen)
				y[ties->of[k].t * e->M + m] += ties->of[k].by * w[ties->of[k].n];
	}
}

/* The hypothesis changes the inputs, which no plan expresses, so the product is computed here. */
static vn_status apply_to_inputs(const vn_explain_trial *t, const vn_hypothesis *h, vn_edited *e, vn_made *made,
                                 vn_error *err)
{
	const vn_matrix_edit *edit = &h->change.matrix;
	input_ties            ties = { 0 };
	product_rows          p;
	vn_status             st = read_rows(t, &t->site->plan->node[h->node], e->N, e->M, &p, err);

	if (st || !p.x)
		return st;
	double *w = malloc((size_t)(3 * e->N + p.T) * sizeof *w + 1);
	st = w ? vn_made_room(t, made, err) : vn_fail(err, VN_ERR_NOMEM, "no memory for a product");
	if (!st && !(st = edit_inputs(edit, e->N, &p, w, &ties, err))) {
		multiply_rows(e, edit, &p, w, (double *)made->fine.data);
		settle_inputs(e, edit, &p, &ties, w, (double *)made->fine.data);
		vn_made_round(t, made);
	}
	free(ties.of);
	free(p.x);
	free(w);
	return st;
}

/* Attention is computed here, in double, from everything that it read. */
vn_status vn_apply_attend(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_attend_edit *edit = &h->change.attend;
	bool                  makes;
	vn_attend             a;
	vn_status             st = vn_attend_open(&a, t, h->node, &makes, err);

	if (st || !makes)
		return st;
	const int64_t width = vn_attend_width(&a), H = a.n->c.attention.heads,
				  T = vn_shape_count(&t->site->cand.shape) / (width * H);
	double *y = malloc((size_t)(width * H) * sizeof *y + 1), *is = malloc((size_t)(width * H) * sizeof *is + 1);
	if (!y || !is)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for attention");
	else if (vn_attend_applies(&a, edit) && !(st = vn_attend_prepare(&a, edit, err)) &&
	         !(st = vn_made_room(t, made, err))) {
		double *all = (double *)made->fine.data;
		for (int64_t row = 0; row < T; row++) {
			for (int head = 0; head < (int)H; head++)
				vn_to_f64(is + head * width,
				          (const char *)t->site->cand.data +
				              (size_t)vn_attend_at(&a, T, row, head) * vn_dtype_size(t->site->cand.dtype),
				          t->site->cand.dtype, (size_t)width);
			vn_attend_row(&a, edit, t->site->first + row, is, y);
			for (int head = 0; head < (int)H; head++)
				memcpy(all + vn_attend_at(&a, T, row, head), y + head * width, (size_t)width * sizeof *y);
		}
		vn_made_round(t, made);
	}
	free(y);
	free(is);
	vn_attend_close(&a);
	return st;
}

vn_status vn_apply_narrow(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	vn_error  none = { "" };
	int64_t   off;
	vn_status st = vn_made_room(t, made, err);

	if (st)
		return st;
	if ((st = vn_narrow_make(t, &h->change.narrow, (double *)made->own.data, &off, &none)) == VN_OK)
		memcpy((double *)made->fine.data, made->own.data, (size_t)vn_shape_count(&made->own.shape) * sizeof(double));
	else
		vn_made_finish(made);
	if (st && st != VN_ERR_UNSUPPORTED)
		*err = none;
	return st == VN_ERR_UNSUPPORTED ? VN_OK : st;
}

vn_status vn_apply_activation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const int64_t n = vn_shape_count(&t->site->cand.shape);
	vn_error      none = { "" };
	vn_status     st = vn_made_room(t, made, err);

	if (st)
		return st;
	if (!(st = vn_activation_make(t, h->change.activation, n, 1, (double *)made->fine.data, &none)))
		vn_made_round(t, made);
	else
		vn_made_finish(made);
	if (st && st != VN_ERR_UNSUPPORTED)
		*err = none;
	return st == VN_ERR_UNSUPPORTED ? VN_OK : st;
}

/* Does the edit change any row of the checkpoint? */
static bool moves_some(const vn_explain_trial *t, const vn_rotate_edit *e, bool later)
{
	return e->moved ? e->map.first < t->site->first + t->site->cand.shape.dim[0] &&
	                      (e->map.open || e->map.last >= t->site->first)
	                : e->call != VN_OWN_CALLS || later;
}

vn_status vn_apply_rotation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const vn_node *n = &p->node[h->node];
	const vn_shape s = t->site->cand.shape;
	const int32_t *ids;
	vn_tensor      in;
	vn_status      st;

	if (n->op != VN_OP_ROPE || n->out[0] != t->site->target || s.rank != 3)
		return VN_OK;
	if (vn_recording_tokens(t->c->opened.cand, &ids, NULL) < t->site->first + s.dim[0])
		return VN_OK;
	bool     later;
	int64_t *begins = vn_own_calls(t, &later);
	st = begins ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %lld tokens", (long long)t->site->tokens);
	if (st || !moves_some(t, &h->change.rotate, later) ||
	    (st = vn_recompute_input(t->recompute, 0, VN_FINE_WIDTH, &in, err)) || (st = vn_made_room(t, made, err))) {
		free(begins);
		return st;
	}
	const size_t row = (size_t)(s.dim[1] * s.dim[2]), all = (size_t)s.dim[0] * row;
	double      *x = malloc(all * sizeof *x + 1);
	if (x)
		vn_to_f64(x, (const char *)in.data + (size_t)t->site->first * row * vn_dtype_size(in.dtype), in.dtype, all);
	if (!x || !vn_rotate_rows(p, n, &h->change.rotate, ids + t->site->first, begins, x, t->site->first, s.dim[0],
	                          t->site->tokens, s.dim[1], s.dim[2], (double *)made->fine.data))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a rotation");
	else
		vn_made_round(t, made);
	free(x);
	free(begins);
	return st;
}

vn_status vn_apply_matrix(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	vn_edited e;

	if (!vn_edited_open(&e, t->site->plan, t->site->weights, h->node, h->change.matrix.fused,
	                    t->c->opened.policy.storage))
		return VN_OK;
	return h->change.matrix.of == VN_OF_WEIGHTS ? apply_to_weights(t, h, &e, made, err)
	                                            : apply_to_inputs(t, h, &e, made, err);
}
