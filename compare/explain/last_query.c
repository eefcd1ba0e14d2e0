/* last_query.c: see last_query.h. */
#include "compare/explain/last_query.h"
#include "compare/trial/attend.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"

#include <stdlib.h>

bool vn_last_query_find(const vn_case *t, vn_last_query *q)
{
	const vn_node *n = &t->site->plan->node[vn_case_node(t)];
	const vn_step *s = vn_case_step(t);

	*q = (vn_last_query) { .n = n, .output = vn_attend_output(n, t->site->target) };
	if (q->output < 0 || !n->c.attention.causal || n->c.attention.value_dim || !s ||
	    s->first_row + s->rows != s->tokens)
		return false;
	q->H = n->c.attention.heads;
	q->G = n->c.attention.kv_heads;
	q->K = n->c.attention.head_dim;
	q->S = s->position + s->tokens;
	q->past = s->position;
	q->first = vn_attention_first_key(&n->c, q->S - 1);
	q->single = s->tokens == 1;
	return true;
}

/* The last row of each of `outer` blocks. */
static double *last_rows(const vn_tensor *t, int64_t outer, int64_t row)
{
	const int64_t n = vn_shape_count(&t->shape) / outer;
	double       *x = vn_alloc((size_t)(outer * row), sizeof *x);

	for (int64_t i = 0; i < outer; i++)
		vn_tensor_numbers(t, (i + 1) * n - row, row, x + i * row);
	return x;
}

bool vn_last_query_read(const vn_case *t, vn_last_query *q)
{
	static const int of[] = { VN_ATTN_Q, VN_ATTN_K, VN_ATTN_V };
	const int64_t    row = (int64_t)q->H * q->K, keys = q->S * q->G * q->K;
	vn_tensor        in[3];

	for (int i = 0; i < 3; i++)
		if (!vn_case_input(t, of[i], VN_FINE_WIDTH, &in[i]))
			return false;
	q->sink = vn_attend_sinks(t, q->n);
	q->q = last_rows(&in[0], 1, row);
	q->k = vn_case_doubles_of(&in[1], 0, keys);
	q->v = vn_case_doubles_of(&in[2], 0, keys);
	q->is = q->output == VN_ATTN_CONTEXT ? last_rows(&t->site->cand, 1, row) : last_rows(&t->site->cand, q->H, q->S);
	return true;
}

bool vn_last_query_open(vn_case *t, vn_findings *x, vn_last_query *q)
{
	*q = (vn_last_query) { .n = NULL };
	if (!vn_case_at(t, x->checkpoint))
		return false;
	t->x = x;
	return vn_last_query_find(t, q) && q->single &&
	       vn_shape_count(&t->site->cand.shape) == q->H * vn_last_query_width(q) && vn_last_query_read(t, q);
}

bool vn_last_query_begin(vn_case *t, vn_findings *x, vn_made *made)
{
	*made = (vn_made) { 0 };
	if (!vn_case_at(t, x->checkpoint))
		return false;
	t->x = x;
	x->fitted = x->fitted || !x->n_fit;
	vn_made_room(t, made);
	return true;
}

void vn_last_query_try(vn_case *t, vn_trial *h, vn_made *made)
{
	vn_try_numbers(t, &made->own, &made->fine, &t->x->unmodified.residual, h);
	vn_case_conclude(t);
	vn_made_finish(made);
}

void vn_last_query_close(vn_last_query *q)
{
	VN_FREE(q->q, q->is, q->k, q->v, q->sink);
}

int64_t vn_last_query_width(const vn_last_query *q)
{
	return q->output == VN_ATTN_CONTEXT ? q->K : q->S;
}

const double *vn_last_query_row(const vn_last_query *q, const double *of, int64_t j, int h)
{
	return of + (j * q->G + h / (q->H / q->G)) * q->K;
}
