/* product_help.h: a matrix product of the trained qwen2, computed by the suite. */
#pragma once

#define GIVEN_MODEL VERNIER_SOURCE "/fixtures/qwen2-trained"
#include "tests/support/explain_help.h"

enum { PRODUCT_TOKENS = 9 };

typedef struct product {
	const char *point, *input;
	int         T, N, M; /* x (T,N)  w (M,N)  b (M)  y (T,M) */
	double     *w, *b;   /* b: zeros, if it has none */
	float      *x, *y;
	explained   e;
} product;

/* Reads the product's weights and makes an input. The result is not computed yet. */
static inline void open_product(product *p, const char *point, const char *input)
{
	vn_error  err = { "" };
	vn_model *m = NULL;

	*p = (product) { .point = point, .input = input, .T = PRODUCT_TOKENS };
	CU_ASSERT_EQUAL_FATAL(vn_model_open(GIVEN_MODEL, &m, &err), VN_OK);
	const vn_plan   *plan = vn_model_plan(m);
	const vn_node   *n = &plan->node[plan->value[vn_plan_find(plan, point)].node];
	const vn_tensor *w = &vn_model_weights(m)[n->w[0]];
	p->M = (int)w->shape.dim[0];
	p->N = (int)w->shape.dim[1];
	p->w = calloc((size_t)(p->M * p->N), sizeof *p->w);
	p->b = calloc((size_t)p->M, sizeof *p->b);
	p->x = calloc((size_t)(p->T * p->N), sizeof *p->x);
	p->y = calloc((size_t)(p->T * p->M), sizeof *p->y);
	vn_to_f64(p->w, w->data, w->dtype, (size_t)(p->M * p->N));
	if (n->w[1] >= 0)
		vn_to_f64(p->b, vn_model_weights(m)[n->w[1]].data, vn_model_weights(m)[n->w[1]].dtype, (size_t)p->M);
	for (int i = 0; i < p->T * p->N; i++)
		p->x[i] = given_number(i, 3);
	vn_model_close(m);
}

/* y = x w^T + b, with these weights. */
static inline void multiply(product *p, const double *w)
{
	for (int t = 0; t < p->T; t++)
		for (int m = 0; m < p->M; m++) {
			double sum = p->b[m];
			for (int k = 0; k < p->N; k++)
				sum += (double)p->x[t * p->N + k] * w[m * p->N + k];
			p->y[t * p->M + m] = (float)sum;
		}
}

/* A trial at the product, whose recording holds x and y. */
static inline void record_product(product *p)
{
	const given of[] = { { p->input, p->x }, { p->point, p->y } };

	compare_given(&p->e, p->T, 0, of, 2);
	stand_at(&p->e, p->point, 0);
}

static inline void close_product(product *p)
{
	free(p->w);
	free(p->b);
	free(p->x);
	free(p->y);
	end_explained(&p->e);
}
