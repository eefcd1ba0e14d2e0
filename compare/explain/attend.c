/* attend.c: see attend.h. */
#include "compare/explain/attend.h"
#include "compare/explain/edit_matrix.h"

#include "capture/view/batched.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what it reads ----------------------------------------------------------------------------------------- */

static vn_status read_input(const vn_explain_trial *t, int input, int64_t heads, int64_t padding, const vn_attend *a,
                            double **x, vn_error *err)
{
	const int64_t row = heads * a->n->c.attention.head_dim;
	vn_tensor     in;
	vn_status     st = vn_recompute_input(t->recompute, input, VN_FINE_WIDTH, &in, err);

	if (st)
		return st;
	if (!(*x = malloc((size_t)((a->S + padding) * row) * sizeof **x + 1)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for queries, keys and values");
	vn_to_f64(*x, in.data, in.dtype, (size_t)(a->S * row));
	return VN_OK;
}

/* Reads the keys or values of padding that this call may see. *n is 0 if none were recorded. */
static vn_status read_padding(const vn_explain_trial *t, const vn_attend *a, int input, double **x, int64_t *n,
                              vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const char    *name = p->value[vn_plan_root(p, a->n->in[input])].name;
	const vn_step *s = vn_recording_step(t->c->opened.cand, t->c->result.point[t->x->point].step);
	const int      entry = s ? vn_recording_find(t->c->opened.cand, s->number, name) : -1;

	*x = NULL;
	*n = 0;
	/* A window counts cache columns, including padding. */
	if (entry < 0 || a->n->c.attention.window ||
	    vn_shape_count(&vn_recording_entry(t->c->opened.cand, entry)->shape) !=
	        s->rows * a->n->c.attention.kv_heads * a->n->c.attention.head_dim)
		return VN_OK;
	return vn_batched_padding(t->c->opened.cand, name, s->position > 0, x, n, err);
}

static vn_status read_inputs(vn_attend *a, const vn_explain_trial *t, vn_error *err)
{
	static const int of[] = { VN_ATTN_K, VN_ATTN_V };
	const int64_t    G = a->n->c.attention.kv_heads, row = G * a->n->c.attention.head_dim;
	double          *pad[2] = { NULL }, **to[2] = { &a->k, &a->v };
	int64_t          n[2] = { 0 };
	vn_status        st = read_input(t, VN_ATTN_Q, a->n->c.attention.heads, 0, a, &a->q, err);

	for (int i = 0; !st && i < 2; i++)
		st = read_padding(t, a, of[i], &pad[i], &n[i], err);
	a->padding = n[0] == n[1] ? n[0] : 0;
	for (int i = 0; !st && i < 2; i++)
		if (!(st = read_input(t, of[i], G, a->padding, a, to[i], err)) && a->padding)
			memcpy(*to[i] + a->S * row, pad[i], (size_t)(a->padding * row) * sizeof **to[i]);
	free(pad[0]);
	free(pad[1]);
	if (!st && !(a->s = malloc((size_t)(a->S + a->padding) * sizeof *a->s + 1)))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for queries, keys and values");
	return st;
}

vn_status vn_attend_open(vn_attend *a, const vn_explain_trial *t, int node, bool *made, vn_error *err)
{
	static const int outputs[] = { VN_ATTN_CONTEXT, VN_ATTN_SCORES, VN_ATTN_PROBS };

	*a = (vn_attend) { .n = &t->site->plan->node[node], .S = t->site->tokens };
	*made = false;
	for (size_t i = 0; i < sizeof outputs / sizeof *outputs && a->n->op == VN_OP_ATTENTION && !*made; i++) {
		a->output = outputs[i];
		*made = a->n->out[outputs[i]] == t->site->target;
	}
	const vn_status st = *made ? read_inputs(a, t, err) : VN_OK;
	if (st)
		vn_attend_close(a);
	return st;
}

void vn_attend_close(vn_attend *a)
{
	free(a->q);
	free(a->k);
	free(a->v);
	free(a->s);
	*a = (vn_attend) { 0 };
}

/* ---- what it makes ----------------------------------------------------------------------------------------- */

/* The keys that the query at position i sees: *first to *last. */
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

/* The j-th key that a query sees: first the n keys from `first` on, then padding. */
static int64_t key(const vn_attend *a, int64_t j, int64_t first, int64_t n)
{
	return j < n ? first + j : a->S + j - n;
}

/* Writes the probabilities of n keys from `first` on into a->s, followed by those of padding. */
static void softmax(const vn_attend *a, const vn_attend_edit *edit, int64_t i, int h, int64_t first, int64_t n,
                    int64_t padding)
{
	double top = edit->kind == VN_ATTEND_SINK ? edit->number : -(double)INFINITY, sum = 0;

	for (int64_t j = 0; j < n + padding; j++)
		top = fmax(top, a->s[j] = score(a, edit, i, h, key(a, j, first, n)));
	for (int64_t j = 0; j < n + padding; j++)
		sum += a->s[j] = exp(a->s[j] - top);
	sum += edit->kind == VN_ATTEND_SINK ? exp(edit->number - top) : 0;
	for (int64_t j = 0; j < n + padding; j++)
		a->s[j] = vn_in_format(a->s[j] / sum, edit->probs);
}

void vn_attend_row(const vn_attend *a, const vn_attend_edit *edit, int64_t i, double *y)
{
	const int     K = a->n->c.attention.head_dim, H = a->n->c.attention.heads, G = a->n->c.attention.kv_heads;
	const int64_t width = vn_attend_width(a), padding = edit->kind == VN_ATTEND_PADDING ? a->padding : 0;
	int64_t       first, last;

	seen(a->n, edit, i, &first, &last);
	const int64_t n = last + 1 - first;
	for (int64_t k = 0; k < H * width; k++)
		y[k] = 0;
	for (int h = 0; h < H; h++, y += width) {
		if (a->output == VN_ATTN_SCORES) {
			for (int64_t j = 0; j < a->S; j++)
				y[j] = score(a, edit, i, h, j);
			continue;
		}
		softmax(a, edit, i, h, first, n, padding);
		if (a->output == VN_ATTN_PROBS) {
			memcpy(y + first, a->s, (size_t)n * sizeof *y);
			continue;
		}
		for (int64_t j = 0; j < n + padding; j++) {
			const double *v = a->v + (key(a, j, first, n) * G + h / (H / G)) * K;
			for (int d = 0; d < K; d++)
				y[d] += a->s[j] * v[d];
		}
	}
}

int64_t vn_attend_width(const vn_attend *a)
{
	return a->output == VN_ATTN_CONTEXT ? a->n->c.attention.head_dim : a->S;
}

int64_t vn_attend_at(const vn_attend *a, int64_t T, int64_t row, int h)
{
	return (a->output == VN_ATTN_CONTEXT ? row * a->n->c.attention.heads + h : h * T + row) * vn_attend_width(a);
}
