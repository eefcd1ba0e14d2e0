/* last_query.c: see last_query.h. */
#include "compare/explain/last_query.h"
#include "compare/trial/attend.h"

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
	q->first = n->c.attention.window && q->S > n->c.attention.window ? q->S - n->c.attention.window : 0;
	q->single = s->tokens == 1;
	return true;
}

/* The last row of each of `outer` blocks. */
static double *last_rows(const vn_tensor *t, int64_t outer, int64_t row)
{
	const int64_t n = vn_shape_count(&t->shape) / outer;
	double       *x = malloc((size_t)(outer * row) * sizeof *x + 1);

	for (int64_t i = 0; x && i < outer; i++)
		vn_tensor_numbers(t, (i + 1) * n - row, row, x + i * row);
	return x;
}

vn_status vn_last_query_read(const vn_case *t, vn_last_query *q, vn_error *err)
{
	static const int of[] = { VN_ATTN_Q, VN_ATTN_K, VN_ATTN_V };
	const int64_t    row = (int64_t)q->H * q->K, keys = q->S * q->G * q->K;
	vn_tensor        in[3];
	vn_status        st = VN_OK;

	for (int i = 0; !st && i < 3; i++)
		st = vn_recompute_input(t->recompute, of[i], VN_FINE_WIDTH, &in[i], err);
	if (st)
		return st;
	q->q = last_rows(&in[0], 1, row);
	q->k = vn_case_doubles_of(&in[1], 0, keys);
	q->v = vn_case_doubles_of(&in[2], 0, keys);
	q->is = q->output == VN_ATTN_CONTEXT ? last_rows(&t->site->cand, 1, row) : last_rows(&t->site->cand, q->H, q->S);
	return q->q && q->k && q->v && q->is ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for keys and values");
}

void vn_last_query_close(vn_last_query *q)
{
	free(q->q);
	free(q->is);
	free(q->k);
	free(q->v);
}

int64_t vn_last_query_width(const vn_last_query *q)
{
	return q->output == VN_ATTN_CONTEXT ? q->K : q->S;
}

const double *vn_last_query_row(const vn_last_query *q, const double *of, int64_t j, int h)
{
	return of + (j * q->G + h / (q->H / q->G)) * q->K;
}
