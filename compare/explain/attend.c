/* attend.c: see attend.h. */
#include "compare/explain/attend.h"
#include "compare/explain/edit_matrix.h"

#include <math.h>

/* The keys that the query at position i sees: from *first to *last. */
static void seen(const vn_node *n, const vn_attend_edit *edit, int64_t i, int64_t *first, int64_t *last)
{
	const int64_t window = n->c.attention.window;

	*last = edit->kind == VN_ATTEND_CALLS_FROM_ZERO ? i % edit->call : i;
	*first = window && *last + 1 > window ? *last + 1 - window : 0;
	if (edit->kind == VN_ATTEND_CALLS_ALONE && *first < i - i % edit->call)
		*first = i - i % edit->call;
}

static double score(const vn_attend *a, const vn_attend_edit *edit, int64_t i, int h, int64_t j)
{
	const int     K = a->n->c.attention.head_dim, H = a->n->c.attention.heads, G = a->n->c.attention.kv_heads;
	const double *q = a->q + (i * H + h) * K, *k = a->k + (j * G + h / (H / G)) * K;
	double        dot = 0;

	for (int d = 0; d < K; d++)
		dot += q[d] * k[d];
	dot *= a->n->c.attention.scale;
	if (edit->kind == VN_ATTEND_CAP)
		dot = edit->number * tanh(dot / edit->number);
	return vn_in_format(dot, edit->scores);
}

/* Probabilities of keys first to last into a->s. */
static void softmax(const vn_attend *a, const vn_attend_edit *edit, int64_t i, int h, int64_t first, int64_t last)
{
	double top = edit->kind == VN_ATTEND_SINK ? edit->number : -(double)INFINITY, sum = 0;

	for (int64_t j = first; j <= last; j++)
		top = fmax(top, a->s[j] = score(a, edit, i, h, j));
	for (int64_t j = first; j <= last; j++)
		sum += a->s[j] = exp(a->s[j] - top);
	sum += edit->kind == VN_ATTEND_SINK ? exp(edit->number - top) : 0;
	for (int64_t j = first; j <= last; j++)
		a->s[j] = vn_in_format(a->s[j] / sum, edit->probs);
}

void vn_attend_row(const vn_attend *a, const vn_attend_edit *edit, int64_t i, int output, double *y)
{
	const int     K = a->n->c.attention.head_dim, H = a->n->c.attention.heads, G = a->n->c.attention.kv_heads;
	const int64_t width = vn_attend_width(a, output);
	int64_t       first, last;

	seen(a->n, edit, i, &first, &last);
	for (int64_t k = 0; k < H * width; k++)
		y[k] = 0;
	for (int h = 0; h < H; h++, y += width) {
		if (output == VN_ATTN_SCORES) {
			for (int64_t j = 0; j < a->S; j++)
				y[j] = score(a, edit, i, h, j);
			continue;
		}
		softmax(a, edit, i, h, first, last);
		for (int64_t j = first; j <= last; j++)
			if (output == VN_ATTN_PROBS)
				y[j] = a->s[j];
			else
				for (int d = 0; d < K; d++)
					y[d] += a->s[j] * a->v[(j * G + h / (H / G)) * K + d];
	}
}

int64_t vn_attend_width(const vn_attend *a, int output)
{
	return output == VN_ATTN_CONTEXT ? a->n->c.attention.head_dim : a->S;
}

int64_t vn_attend_at(const vn_attend *a, int output, int64_t T, int64_t row, int h)
{
	return (output == VN_ATTN_CONTEXT ? row * a->n->c.attention.heads + h : h * T + row) * vn_attend_width(a, output);
}
