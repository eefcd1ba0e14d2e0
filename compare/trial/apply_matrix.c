/* apply_matrix.c: see apply_matrix.h. */
#include "compare/trial/apply_matrix.h"

#include "libref/base/arrange.h"
#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the matrix as the file has it ----------------------------------------------------------- */

static bool is_plain(const vn_tensor *w)
{
	return w->shape.rank == 2 && (w->dtype == VN_F32 || w->dtype == VN_F16 || w->dtype == VN_BF16);
}

static void add_part(vn_matrix_made *e, const vn_tensor *w)
{
	e->w[e->n] = w;
	e->rows[e->n++] = w->shape.dim[e->transposed ? 1 : 0];
}

bool vn_matrix_made_open(vn_matrix_made *e, const vn_plan *p, const vn_tensor *weights, int node, bool fused,
                         vn_dtype storage)
{
	const vn_node *n = &p->node[node];

	*e = (vn_matrix_made) { .storage = storage };
	if (n->op != VN_OP_LINEAR || n->w[0] < 0 || !is_plain(&weights[n->w[0]]))
		return false;
	e->transposed = n->c.linear.transposed;
	e->M = weights[n->w[0]].shape.dim[e->transposed ? 1 : 0];
	e->N = weights[n->w[0]].shape.dim[e->transposed ? 0 : 1];
	for (int i = 0; fused && i < p->n_nodes && e->n < VN_FUSED_MOST; i++) {
		const vn_node *o = &p->node[i];
		if (o->op != VN_OP_LINEAR || o->layer != n->layer || o->in[0] != n->in[0] || !is_plain(&weights[o->w[0]]) ||
		    o->c.linear.transposed)
			continue;
		if (i == node)
			e->own = e->n;
		add_part(e, &weights[o->w[0]]);
	}
	if (!fused)
		add_part(e, &weights[n->w[0]]);
	return !fused || (e->n > 1 && !e->transposed);
}

/* Element i of the fused matrix, row by row. */
static double element_at(const vn_matrix_made *e, int64_t i)
{
	int k = 0;

	for (; k + 1 < e->n && i >= e->rows[k] * e->N; k++)
		i -= e->rows[k] * e->N;
	return vn_tensor_number(e->w[k], e->transposed ? i % e->N * e->M + i / e->N : i);
}

/* ---- formats --------------------------------------------------------------------------------- */

static double as_stored(const vn_matrix_made *e, double x)
{
	float f = (float)x;
	if (e->storage != VN_F16 && e->storage != VN_BF16)
		return x;
	vn_round_f32(&f, e->storage, 1);
	return (double)f;
}

static double largest_of(const vn_matrix_made *e, bool stored)
{
	double most = 0;

	for (int64_t i = 0; i < e->M * e->N; i++)
		most = fmax(most, fabs(vn_tensor_number(e->w[e->own], i)));
	return stored ? as_stored(e, most) : most;
}

static void put_format(vn_matrix_made *e, const vn_applied_matrix *edit, double *row)
{
	double most = 0;

	for (int64_t i = 0; edit->stored && i < e->N; i++)
		row[i] = as_stored(e, row[i]);
	if (edit->scaled == VN_SCALE_OF_ROWS)
		most = vn_largest(row, e->N);
	else if (edit->scaled == VN_SCALE_OF_ALL)
		most = e->largest = e->largest > 0 ? e->largest : largest_of(e, edit->stored);
	vn_in_format_by(row, e->N, edit->format, most, e->nudge);
	for (int64_t i = 0; i < e->N; i++) /* numbers read from 8 bits are stored as the engine stores weights */
		row[i] = as_stored(e, row[i]);
}

/* ---- edits ----------------------------------------------------------------------------------- */

/* Index i of n is in one of edit->n shards. Returns where it comes from. */
static int64_t shard_index(const vn_applied_matrix *edit, int64_t i, int64_t n)
{
	return vn_arranged(&(vn_arrange) { VN_ARRANGE_LISTED, .a = edit->n, .list = edit->from }, i, n);
}

/* (2, width / 2) becomes (width / 2, 2) in each head; back: the reverse. */
static vn_arrange pairs_of(int64_t width, bool back)
{
	return (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = back ? width / 2 : 2, .b = back ? 2 : width / 2,
		                  .period = width };
}

int64_t vn_matrix_pair_row(const vn_applied_matrix *edit, int64_t i, int64_t M)
{
	const vn_arrange there = pairs_of(edit->from[0], edit->n), back = pairs_of(edit->from[1], !edit->n);

	return vn_arranged(&there, edit->from[1] ? vn_arranged(&back, i, M) : i, M);
}

void vn_matrix_made_row(vn_matrix_made *e, const vn_applied_matrix *edit, int64_t m, double *row)
{
	const int64_t N = e->N;
	const double  factor = edit->kind == VN_MATRIX_FACTOR ? edit->factor : 1;
	int64_t       at = m, all = 0;

	for (int k = 0; k < e->n; k++) {
		at += k < e->own ? e->rows[k] : 0;
		all += e->rows[k];
	}
	for (int64_t n = 0; n < N; n++) {
		int64_t i = at * N + n;
		switch (edit->kind) {
		case VN_MATRIX_TRANSPOSED:
			i = vn_arranged(&(vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = N, .b = all }, i, all * N);
			break;
		case VN_MATRIX_BACK:
			i = vn_arranged(&(vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = all, .b = N }, i, all * N);
			break;
		case VN_MATRIX_RANKS: i = at * N + shard_index(edit, n, N); break;
		case VN_MATRIX_ROLLED: i = at * N + ((n - (int64_t)edit->factor) % N + N) % N; break;
		case VN_MATRIX_ROWS: i = shard_index(edit, at, e->M) * N + n; break;
		case VN_MATRIX_PAIRS: i = vn_matrix_pair_row(edit, at, e->M) * N + n; break;
		default: break;
		}
		const bool zero = edit->kind == VN_MATRIX_ZERO || (edit->kind == VN_MATRIX_TAIL && n >= N - edit->n);
		row[n] = zero ? 0 : factor * element_at(e, i);
	}
	if (edit->kind == VN_MATRIX_FORMAT && edit->of != VN_OF_INPUTS)
		put_format(e, edit, row);
}

void vn_matrix_made_input(const vn_applied_matrix *edit, double nudge, double *x, int64_t N)
{
	if (edit->kind == VN_MATRIX_FORMAT && edit->of != VN_OF_WEIGHTS)
		vn_in_format_by(x, N, edit->format, edit->scaled ? vn_largest(x, N) : 0, edit->scaled ? nudge : 0);
}

/* ---- the product with it --------------------------------------------------------------------- */

/* The product's rows that can be compared: T rows of input and result. x NULL: none. */
typedef struct product_rows {
	double          *x; /* (T,N) */
	int64_t          T;
	const vn_tensor *bias, *cand;
} product_rows;

/* Does weight n + `by` reduce the squared error `off` (T) of a channel? If so, updates `off`. */
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

/* Writes row m of the edited matrix. A weight near the middle of two numbers of the format, where
 * an engine's last bit decides, is rounded to the number that fits the candidate better. row: (N);
 * room: (2 N + T) */
static void settled_row(vn_matrix_made *e, const vn_applied_matrix *edit, int64_t m, const product_rows *p, double *row,
                        double *room)
{
	double *low = room, *high = room + e->N, *off = room + 2 * e->N;
	bool    ties = false;

	vn_matrix_made_row(e, edit, m, row);
	if (!p->x || edit->kind != VN_MATRIX_FORMAT || !edit->scaled || edit->of == VN_OF_INPUTS)
		return;
	e->nudge = -VN_NUDGE;
	vn_matrix_made_row(e, edit, m, low);
	e->nudge = VN_NUDGE;
	vn_matrix_made_row(e, edit, m, high);
	e->nudge = 0;
	for (int64_t n = 0; n < e->N && !ties; n++)
		ties = low[n] != high[n];
	for (int64_t t = 0; ties && t < p->T; t++) {
		off[t] = (p->bias ? vn_tensor_number(p->bias, m) : 0) - vn_tensor_number(p->cand, t * e->M + m);
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
static void read_rows(const vn_case *t, const vn_node *node, int64_t N, int64_t M, product_rows *p)
{
	vn_tensor in;

	*p = (product_rows) { .T = t->site->cand.shape.dim[0],
		                  .cand = &t->site->cand,
		                  .bias = node->w[1] >= 0 ? &t->site->weights[node->w[1]] : NULL };
	if (!(p->T * M != vn_shape_count(&t->site->cand.shape) || node->out[0] != t->site->target ||
	      t->site->first + p->T > t->site->tokens) &&
	    vn_case_input(t, 0, VN_FINE_WIDTH, &in))
		p->x = vn_case_doubles_of(&in, t->site->first * N, p->T * N);
}

static void apply_to_weights(const vn_case *t, const vn_trial *h, vn_matrix_made *e, vn_made *made)
{
	const vn_plan *p = t->site->plan;
	product_rows   rows;

	read_rows(t, &p->node[h->node], e->N, e->M, &rows);
	double *row = vn_alloc((size_t)(3 * e->N + rows.T), sizeof *row);
	float  *x = made->rows = vn_alloc((size_t)(e->M * e->N), sizeof *x);

	for (int64_t m = 0; m < e->M; m++) {
		settled_row(e, &h->applied.matrix, m, &rows, row, row + e->N);
		for (int64_t n = 0; n < e->N; n++)
			x[e->transposed ? n * e->M + m : m * e->N + n] = (float)row[n];
	}
	VN_FREE(row, rows.x);
	vn_made_put_weight(made, p, p->node[h->node].w[0], VN_F32);
}

/* y = x w for all rows, in double. w: room for settled_row. */
static void multiply_rows(vn_matrix_made *e, const vn_applied_matrix *edit, const product_rows *p, double *w, double *y)
{
	for (int64_t m = 0; m < e->M; m++) {
		const double b = p->bias ? vn_tensor_number(p->bias, m) : 0;
		settled_row(e, edit, m, p, w, w + e->N);
		for (int64_t t = 0; t < p->T; t++) {
			double s = 0;
			for (int64_t n = 0; n < e->N; n++)
				s += p->x[t * e->N + n] * w[n];
			y[t * e->M + m] = s + b;
		}
	}
}

/* TOGETHER: the most ties of one token that are settled together. */
enum { TOGETHER = 8 };

/* A tie: an input x[t * N + n] near the middle of two numbers of a format, where an engine's last
 * bit decides. Rounded to the other side it is greater by `by`. `error` and `errors` are half of
 * what that adds to the squared error of its token: the product with the present error, and with
 * another tie's change. */
typedef struct input_tie {
	int64_t t, n;
	double  by, error, errors[TOGETHER];
	bool    chosen;
} input_tie;

typedef struct input_ties {
	input_tie *of;
	size_t     n;
} input_ties;

/* Edits the inputs, and lists the ties. room: (2 N) */
static void edit_inputs(const vn_applied_matrix *edit, int64_t N, product_rows *p, double *room, input_ties *ties)
{
	double *low = room, *high = room + N;

	for (int64_t t = 0; t < p->T; t++) {
		double *x = p->x + t * N;
		memcpy(low, x, (size_t)N * sizeof *x);
		memcpy(high, x, (size_t)N * sizeof *x);
		vn_matrix_made_input(edit, 0, x, N);
		vn_matrix_made_input(edit, -VN_NUDGE, low, N);
		vn_matrix_made_input(edit, VN_NUDGE, high, N);
		for (int64_t n = 0; n < N; n++)
			if (low[n] != high[n]) {
				ties->of = vn_alloc_grown(ties->of, ties->n, sizeof *ties->of);
				ties->of[ties->n++] = (input_tie) { .t = t, .n = n, .by = (x[n] == low[n] ? high[n] : low[n]) - x[n] };
			}
	}
}

/* The end of the group of ties that begins with tie k and is settled together. */
static size_t end_of(const input_ties *ties, size_t k)
{
	size_t end = k;

	while (end < ties->n && end - k < TOGETHER && ties->of[end].t == ties->of[k].t)
		end++;
	return end;
}

/* Adds what one channel contributes to `error` and `errors` of ties k to end - 1. w: its weights;
 * off: its error. */
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

/* Chooses which of ties k to end - 1 are rounded to the other side, so that the least error is
 * left. */
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

/* Rounds the tied inputs to the side that fits the candidate better, and updates y. w: room for
 * settled_row. */
static void settle_inputs(vn_matrix_made *e, const vn_applied_matrix *edit, const product_rows *p,
                          const input_ties *ties, double *w, double *y)
{
	for (int64_t m = 0; ties->n && m < e->M; m++) {
		settled_row(e, edit, m, p, w, w + e->N);
		for (size_t k = 0, end; k < ties->n; k = end) {
			const int64_t at = ties->of[k].t * e->M + m;
			end = end_of(ties, k);
			add_errors(ties, k, end, w, y[at] - vn_tensor_number(p->cand, at));
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

/* The trial changes the inputs, which no plan expresses, so the product is computed here. */
static void apply_to_inputs(const vn_case *t, const vn_trial *h, vn_matrix_made *e, vn_made *made)
{
	const vn_applied_matrix *edit = &h->applied.matrix;
	input_ties               ties = { 0 };
	product_rows             p;

	read_rows(t, &t->site->plan->node[h->node], e->N, e->M, &p);
	if (!p.x)
		return;
	VN_FREED double *w = vn_alloc((size_t)(3 * e->N + p.T), sizeof *w);
	vn_made_room(t, made);
	edit_inputs(edit, e->N, &p, w, &ties);
	multiply_rows(e, edit, &p, w, (double *)made->fine.data);
	settle_inputs(e, edit, &p, &ties, w, (double *)made->fine.data);
	vn_made_round(t, made);
	VN_FREE(ties.of, p.x);
}

void vn_apply_matrix(const vn_case *t, const vn_trial *h, vn_made *made)
{
	vn_matrix_made e;

	if (!vn_matrix_made_open(&e, t->site->plan, t->site->weights, h->node, h->applied.matrix.fused,
	                         t->opened->policy.storage))
		return;
	if (h->applied.matrix.of == VN_OF_WEIGHTS)
		apply_to_weights(t, h, &e, made);
	else
		apply_to_inputs(t, h, &e, made);
}
