/* linear_product.c: see linear_product.h. */
#include "compare/estimate/linear_product.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>

enum { PRODUCT_ROWS = 8, CHANNELS = 128 }; /* rows and channels of a product that are tested */
#define WHOLE 0.1                          /* a coefficient this near to 0 or 1 counts as 0 or 1 */

int64_t vn_tested_product_row(const vn_tested_product *p, int64_t i)
{
	return p->R < 2 ? 0 : (p->T - 1) * i / (p->R - 1);
}

int64_t vn_tested_product_channel(const vn_tested_product *p, int64_t c)
{
	return p->M * c / p->C;
}

double vn_tested_product_error(const vn_tested_product *p, int64_t row, int64_t channel)
{
	return vn_tensor_number(p->cand, row * p->M + channel) - vn_tensor_number(p->own, row * p->M + channel);
}

vn_trial vn_tested_product_with(const vn_tested_product *p, vn_finding finding, vn_mistake fault, double number)
{
	return (vn_trial) { .finding = finding,
		                .node = p->node,
		                .applied = { .kind = VN_BY_NUMBER, .number = { vn_mistake_fault(fault), number } } };
}

bool vn_tested_product_may_have(const vn_tested_product *p, vn_mistake fault)
{
	return !vn_fault_why_not(vn_mistake_fault(fault), p->t->site->plan, p->node);
}

double vn_tested_product_error_sum(const vn_tested_product *p)
{
	double ee = 0;

	for (int64_t i = 0; i < p->R * p->C; i++)
		ee += p->error[i] * p->error[i];
	return ee;
}

bool vn_estimate_solve(double *a, double *b, int n)
{
	for (int i = 0; i < n; i++) {
		int best = i;
		for (int k = i + 1; k < n; k++)
			best = fabs(a[k * n + i]) > fabs(a[best * n + i]) ? k : best;
		if (!(fabs(a[best * n + i]) > 0))
			return false;
		for (int k = 0; k <= n; k++) {
			double      *u = k < n ? &a[i * n + k] : &b[i], *v = k < n ? &a[best * n + k] : &b[best];
			const double z = *u;
			*u = *v;
			*v = z;
		}
		for (int k = i + 1; k < n; k++) {
			const double f = a[k * n + i] / a[i * n + i];
			for (int j = i; j < n; j++)
				a[k * n + j] -= f * a[i * n + j];
			b[k] -= f * b[i];
		}
	}
	for (int i = n - 1; i >= 0; i--) {
		for (int k = i + 1; k < n; k++)
			b[i] -= a[i * n + k] * b[k];
		b[i] /= a[i * n + i];
	}
	return true;
}

bool vn_estimate_is_whole(double x)
{
	return fabs(x - round(x)) < WHOLE && round(x) >= 0 && round(x) <= 1;
}

bool vn_tested_product_open(vn_tested_product *p, int node)
{
	const vn_plan *plan = p->t->site->plan;
	const vn_node *n = &plan->node[node];

	if (n->op != VN_OP_LINEAR || p->t->part || p->t->x->unmodified.residual.bad)
		return false;
	p->n = n;
	p->node = node;
	p->point = plan->value[n->out[0]].point;
	p->w = &p->t->site->weights[n->w[0]];
	p->bias = n->w[1] >= 0 ? &p->t->site->weights[n->w[1]] : NULL;
	p->T = p->cand->shape.dim[0];
	p->M = vn_value_row(&plan->value[n->out[0]]);
	p->N = vn_value_row(&plan->value[n->in[0]]);
	p->R = p->T < PRODUCT_ROWS ? p->T : PRODUCT_ROWS;
	p->C = p->M < CHANNELS ? p->M : CHANNELS;
	return !p->t->site->sampled && (!vn_point_is_logits(p->point) || p->N * p->M <= VN_PRODUCT_MATRIX_MOST) &&
	       p->T * p->M == vn_shape_count(&p->cand->shape) && p->t->site->first + p->T <= p->t->site->tokens &&
	       (!n->c.linear.transposed || p->N * p->M <= VN_PRODUCT_MATRIX_MOST);
}

bool vn_tested_product_read(vn_tested_product *p)
{
	const int64_t first = p->t->site->first;
	vn_tensor     x;

	if (!vn_case_input(p->t, 0, VN_FINE_WIDTH, &x))
		return false;
	VN_FREED double *row = vn_alloc((size_t)(p->M > p->N ? p->M : p->N), sizeof *row);
	p->x = vn_alloc((size_t)(p->R * p->N), sizeof *p->x);
	p->wc = vn_alloc((size_t)(p->C * p->N), sizeof *p->wc);
	p->error = vn_alloc((size_t)(p->R * p->C), sizeof *p->error);
	for (int64_t r = 0; r < p->R; r++)
		vn_tensor_numbers(&x, (first + vn_tested_product_row(p, r)) * p->N, p->N, p->x + r * p->N);
	for (int64_t c = 0; !p->n->c.linear.transposed && c < p->C; c++)
		vn_tensor_numbers(p->w, vn_tested_product_channel(p, c) * p->N, p->N, p->wc + c * p->N);
	for (int64_t k = 0; p->n->c.linear.transposed && k < p->N; k++) {
		vn_tensor_numbers(p->w, k * p->M, p->M, row);
		for (int64_t c = 0; c < p->C; c++)
			p->wc[c * p->N + k] = row[vn_tested_product_channel(p, c)];
	}
	for (int64_t r = 0; r < p->R; r++)
		for (int64_t c = 0; c < p->C; c++)
			p->error[r * p->C + c] = vn_tested_product_error(p, vn_tested_product_row(p, r),
			                                                 vn_tested_product_channel(p, c));
	return true;
}
