/* last_state.c: see last_state.h. */
#include "compare/estimate/last_state.h"

#include "compare/estimate/least_squares.h"
#include "libref/base/alloc.h"
#include "libref/ops/blas.h"

#include <math.h>
#include <omp.h>

/* WIDEST: a state of 4,096 numbers takes 4.2 s of processor, and twice as many eight times as long.
 * PER_NUMBER: equations for each number of the state; the smallest errors of any come from 2 on. */
enum { WIDEST = 8192, PER_NUMBER = 2 };
#define ON_NUMBERS 1e-3 /* mean square, in units of their distance */

/* The last product of a plan, and what makes logits of its scores. */
typedef struct head {
	const vn_tensor *matrix; /* (M, N) */
	int64_t          M, N;
	double           scale, cap; /* logits = cap tanh(scale scores / cap); cap 0: scale scores */
} head;

static bool find_head(const vn_opened *o, int value, head *h)
{
	const vn_plan *plan = o->plan;
	const vn_node *n = &plan->node[plan->value[value].node];

	*h = (head) { .scale = 1 };
	if (n->op == VN_OP_SCALE) {
		h->scale = n->c.scale.scale;
		h->cap = n->c.scale.cap;
		n = &plan->node[plan->value[vn_plan_root(plan, n->in[0])].node];
	}
	h->M = vn_value_row(&plan->value[n->out[0]]);
	h->N = n->op == VN_OP_LINEAR ? vn_value_row(&plan->value[n->in[0]]) : 0;
	if (!h->N || n->w[1] >= 0 || n->c.linear.transposed || h->N > WIDEST || h->M < h->N)
		return false;
	h->matrix = &vn_model_weights(o->model)[n->w[0]];
	return true;
}

/* Fills y (h->M) with the scores behind the last row of the checkpoint, if it has such rows. */
static vn_status read_scores(const vn_opened *o, const vn_checkpoint *p, const head *h, double *y, bool *found,
                             vn_error *err)
{
	vn_tensor       t;
	const vn_status st = vn_entry_tensor(o->cand, p->cand, &t, err);

	*found = !st && t.shape.rank > 0 && t.shape.dim[t.shape.rank - 1] == h->M;
	if (*found)
		vn_tensor_numbers(&t, vn_shape_count(&t.shape) - h->M, h->M, y);
	for (int64_t i = 0; *found && i < h->M; i++)
		y[i] = (h->cap != 0 ? h->cap * atanh(y[i] / h->cap) : y[i]) / h->scale;
	if (!st)
		vn_recording_release(o->cand, p->cand);
	return st;
}

/* The head's equations, if its matrix was rounded to a format. */
typedef struct head_equations {
	const head   *h;
	const double *y; /* (M) */
	int64_t       every;
	vn_dtype      rounded;
} head_equations;

static void read_equation(const void *context, int64_t r, double *row)
{
	const head_equations *e = context;
	const int64_t         N = e->h->N, at = r * e->every;

	vn_tensor_numbers(e->h->matrix, at * N, N, row);
	if (e->rounded != e->h->matrix->dtype) {
		uint16_t narrow[WIDEST];
		vn_from_f64(narrow, e->rounded, row, (size_t)N);
		vn_to_f64(row, narrow, e->rounded, (size_t)N);
	}
	row[N] = e->y[at];
}

/* The larger numbers alone: the smaller ones lie closer than the state is known. */
static bool is_on_numbers(const double *x, int64_t n, vn_dtype format)
{
	double rms = 0, off = 0, counted = 0;

	for (int64_t i = 0; i < n; i++)
		rms += x[i] * x[i] / (double)n;
	rms = sqrt(rms);
	for (int64_t i = 0; i < n; i++) {
		if (!(fabs(x[i]) > rms / 4))
			continue;
		const double at = x[i] / vn_dtype_ulp(format, x[i]);
		off += (at - round(at)) * (at - round(at));
		counted++;
	}
	return counted > 8 && off < ON_NUMBERS * counted;
}

vn_status vn_last_state_format(const vn_opened *o, const vn_checkpoint *p, vn_dtype *format, vn_error *err)
{
	static const vn_dtype narrow[] = { VN_BF16, VN_F16 }; /* what is on bfloat16's numbers may be on float16's */
	const int             asked = o->request.options->threads, threads = asked > 0 ? asked : omp_get_num_procs();
	head                  h;
	vn_status             st;
	bool                  found;

	*format = VN_F32;
	if (!o->model || !find_head(o, p->value, &h))
		return VN_OK;
	VN_FREED double *y = vn_alloc((size_t)h.M, sizeof *y), *x = vn_alloc((size_t)h.N, sizeof *x),
					*own = vn_alloc((size_t)h.N, sizeof *own);
	if ((st = read_scores(o, p, &h, y, &found, err)) || !found || (st = vn_blas_prepare(threads, err)))
		return st;
	const int64_t  rows = h.M < PER_NUMBER * h.N ? h.M : PER_NUMBER * h.N;
	head_equations e = { &h, y, h.M / rows, h.matrix->dtype };
	vn_equations   all = { h.N, rows, read_equation, &e, threads };
	const bool     have = vn_least_squares(&all, own);
	/* engines keep the matrix, or round it as well */
	for (int i = 0; *format == VN_F32 && i < 2; i++) {
		e.rounded = narrow[i];
		if ((have && is_on_numbers(own, h.N, narrow[i])) ||
		    (narrow[i] != h.matrix->dtype && vn_least_squares(&all, x) && is_on_numbers(x, h.N, narrow[i])))
			*format = narrow[i];
	}
	return VN_OK;
}
