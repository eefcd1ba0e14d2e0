/* leading.c: see rearranged.h. Numbers that a wrong distance takes from outside an operand are not
 * known: there, the candidate's own are taken, and enough others must be right. */
#include "compare/rearrange/rearranged.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTHS = 96, ROWS_LEAST = 4, SAMPLED_ROWS = 3, SAMPLED_CHANNELS = 8 };
#define NUMBERS_MOST  ((int64_t)1 << 24) /* of a matrix */
#define PRODUCTS_MOST ((int64_t)1 << 31) /* multiplications of a product */
#define LEAVES        0.01               /* of the error: a right distance leaves less */

typedef struct leading {
	vn_rearranged *r;
	int64_t        T, M, N; /* of (T,M) = (T,N) (N,M); N is 0 if the operation is no product */
	double        *x, *w;   /* (T,N), (M,N) as stored */
	bool           transposed;
	int64_t        width[WIDTHS];
	int            n;
} leading;

/* ---- the widths that are tried --------------------------------------------------------------- */

static void add_width(leading *l, int64_t width)
{
	bool known = width < 1 || width > NUMBERS_MOST || l->n == WIDTHS;

	for (int i = 0; i < l->n; i++)
		known = known || l->width[i] == width;
	if (!known)
		l->width[l->n++] = width;
}

/* The widths of rows in this layer, of products of one input together, and of padded rows. */
static void list_widths(leading *l)
{
	const vn_plan *p = l->r->t->site->plan;
	const vn_node *me = &p->node[p->value[l->r->t->site->target].node];

	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node *n = &p->node[i];
		int64_t        all = 0, own = vn_value_row(&p->value[n->out[0]]);
		if (n->layer != me->layer)
			continue;
		add_width(l, own);
		for (int k = 0; k < p->n_nodes; k++)
			if (p->node[k].layer == n->layer && n->n_in && p->node[k].n_in && p->node[k].op == VN_OP_LINEAR &&
			    p->node[k].in[0] == n->in[0])
				all += vn_value_row(&p->value[p->node[k].out[0]]);
		add_width(l, all);
		add_width(l, all - own);
	}
	for (int of = 0; of < 2; of++) {
		const int64_t width = of ? l->N : l->M;
		for (int64_t times = 2; width && times <= 4; times++)
			add_width(l, times * width);
		for (int64_t more = 1; width && more <= 64; more *= 2)
			add_width(l, width + more);
	}
	add_width(l, l->T);
}

/* ---- the result ------------------------------------------------------------------------------ */

/* Writes rows of own and fine at this distance, over the candidate's numbers. Returns false if too
 * few of them can be known, or if they do not fit. */
static bool put_rows(leading *l, int64_t apart)
{
	vn_rearranged *r = l->r;
	int64_t        rows = 0;
	double         left = 0, was = 0;

	memcpy(r->a, r->cand, (size_t)r->n * sizeof *r->a);
	memcpy(r->b, r->cand, (size_t)r->n * sizeof *r->b);
	for (int64_t t = 0; t < l->T && t * apart < r->n; t++) {
		const int64_t some = r->n - t * apart < l->M ? r->n - t * apart : l->M;
		rows += some == l->M;
		memcpy(r->a + t * apart, r->own + t * l->M, (size_t)some * sizeof *r->a);
		memcpy(r->b + t * apart, r->fine + t * l->M, (size_t)some * sizeof *r->b);
	}
	for (int64_t t = 1; t < l->T && t * apart < r->n; t++) {
		const int64_t end = apart < l->M && t + 1 < l->T ? apart : l->M; /* the next row overwrites the rest */
		for (int64_t i = t * apart; i < t * apart + end && i < r->n; i++) {
			left += (r->cand[i] - r->a[i]) * (r->cand[i] - r->a[i]);
			was += (r->cand[i] - r->own[i]) * (r->cand[i] - r->own[i]);
		}
	}
	return rows >= ROWS_LEAST && left <= LEAVES * was;
}

/* ---- a product ------------------------------------------------------------------------------- */

/* Computes a number of the product with another distance in an operand. Returns false if it would
 * read from outside the operand. */
static bool multiply_at(const leading *l, vn_leading_of of, int64_t apart, int64_t t, int64_t m, double *y)
{
	double sum = 0;

	for (int64_t n = 0; n < l->N; n++) {
		int64_t a = t * l->N + n, b = l->transposed ? n * l->M + m : m * l->N + n;
		if (of == VN_LEADING_INPUT)
			a = apart ? t * apart + n : n * l->T + t;
		else
			b = l->transposed ? n * apart + m : m * apart + n;
		if (a >= l->T * l->N || b >= l->M * l->N)
			return false;
		sum += l->x[a] * l->w[b];
	}
	*y = sum;
	return true;
}

/* What the candidate has there, without the bias. */
static double without_bias(const leading *l, const double *z, int64_t t, int64_t m)
{
	const vn_plan *p = l->r->t->site->plan;
	const vn_node *n = &p->node[p->value[l->r->t->site->target].node];

	return z[t * l->M + m] - (n->w[1] >= 0 ? vn_tensor_number(&l->r->t->site->weights[n->w[1]], m) : 0);
}

/* Is it right at a few places? */
static bool is_likely(const leading *l, vn_leading_of of, int64_t apart)
{
	double left = 0, was = 0, y;
	int    met = 0;

	for (int64_t i = 1; i <= SAMPLED_ROWS; i++)
		for (int64_t k = 1; k <= SAMPLED_CHANNELS; k++) {
			const int64_t t = of == VN_LEADING_INPUT ? i : i * (l->T - 1) / SAMPLED_ROWS,
						  m = of == VN_LEADING_MATRIX ? k : k * (l->M - 1) / SAMPLED_CHANNELS;
			if (m >= l->M || !multiply_at(l, of, apart, t, m, &y))
				continue;
			const double is = without_bias(l, l->r->cand, t, m), own = without_bias(l, l->r->own, t, m);
			left += (y - is) * (y - is);
			was += (own - is) * (own - is);
			met++;
		}
	return met >= SAMPLED_CHANNELS && left <= LEAVES * was;
}

/* Fills a and b with the product. Returns false if too little of it can be known. */
static bool put_product(leading *l, vn_leading_of of, int64_t apart)
{
	vn_rearranged *r = l->r;
	int64_t        known = 0;

	for (int64_t t = 0; t < l->T; t++)
		for (int64_t m = 0; m < l->M; m++) {
			const int64_t i = t * l->M + m;
			double        y;
			r->a[i] = r->b[i] = r->cand[i];
			if (multiply_at(l, of, apart, t, m, &y)) {
				r->a[i] = r->b[i] = y + r->cand[i] - without_bias(l, r->cand, t, m);
				known++;
			}
		}
	return known >= ROWS_LEAST * (of == VN_LEADING_INPUT ? l->M : l->T);
}

/* Reads the operands of a product that is small enough. */
static void read_operands(leading *l)
{
	const vn_case *t = l->r->t;
	const vn_plan *p = t->site->plan;
	const vn_node *n = &p->node[p->value[t->site->target].node];
	vn_tensor      x;

	if (n->op != VN_OP_LINEAR)
		return;
	const int64_t N = vn_value_row(&p->value[n->in[0]]);
	if (N * l->M > NUMBERS_MOST || l->T * l->M > PRODUCTS_MOST / N || t->site->first + l->T > t->site->tokens)
		return;
	if (!vn_case_input(t, 0, VN_FINE_WIDTH, &x))
		return;
	l->x = vn_case_doubles_of(&x, t->site->first * N, l->T * N);
	l->w = vn_case_all_doubles_of(&t->site->weights[n->w[0]]);
	l->transposed = n->c.linear.transposed;
	l->N = N;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void try_distance(leading *l, vn_leading_of of, int64_t apart)
{
	const int64_t own = of == VN_LEADING_RESULT ? l->M : of == VN_LEADING_INPUT ? l->N : l->transposed ? l->M : l->N;
	vn_trial      h = { .finding = VN_FINDING_LEADING,
		                .recorder_fault = of == VN_LEADING_RESULT && l->r->t->consumed == VN_CONSUMED_OTHERS,
		                .applied.result = { .number = (double)apart, .factor = (int)of, .n = 1 } };

	h.applied.result.list[0] = (int)own;
	if (apart == own || (of == VN_LEADING_RESULT ? apart && !put_rows(l, apart)
	                                             : !is_likely(l, of, apart) || !put_product(l, of, apart)))
		return;
	vn_rearranged_judge(l->r, &l->r->t->x->unmodified.residual, &h);
}

void vn_rearrange_leading(vn_rearranged *r)
{
	const vn_case *t = r->t;
	leading        l = { .r = r, .T = vn_axes_find(t->site->axes, "token") == 0 ? r->like->shape.dim[0] : 0 };

	if (l.T <= ROWS_LEAST || t->part || t->site->sampled || t->site->begins_later || t->x->unmodified.residual.bad)
		return;
	l.M = r->n / l.T;
	read_operands(&l);
	list_widths(&l);
	for (int i = 0; i < l.n; i++) {
		try_distance(&l, VN_LEADING_RESULT, l.width[i]);
		for (int of = VN_LEADING_INPUT; l.N && of <= VN_LEADING_MATRIX; of++)
			try_distance(&l, (vn_leading_of)of, l.width[i]);
	}
	if (l.N)
		try_distance(&l, VN_LEADING_INPUT, 0);
	VN_FREE(l.x, l.w);
}
