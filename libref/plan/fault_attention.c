/* fault_attention.c: faults of attention (specs/models.md, 9.4). */
#include "libref/plan/fault_inside.h"

#include <math.h>

#define ATTN(n) ((n)->c.attention)

/* ---- scale ----------------------------------------------------------------------------- */

enum { MISSING, TWICE, BY_WIDTH, BY_HEAD, BY_ROTATED };

static double other_scale(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_node *k = vn_fault_maker(p, n, VN_ATTN_K);
	const int      K = ATTN(n).head_dim;

	switch ((int)r->x) {
	case MISSING:
		return 1.0;
	case TWICE:
		return ATTN(n).scale * ATTN(n).scale;
	case BY_WIDTH:
		return 1.0 / sqrt((double)vn_fault_width(p));
	case BY_HEAD:
		return 1.0 / K;
	default:
		return 1.0 / sqrt((double)(k->op == VN_OP_ROPE ? k->c.rope.rope.rotary_dim : K));
	}
}

static const char *scale_why_not(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return fabs(other_scale(r, p, n) / ATTN(n).scale - 1.0) < 1e-12 ? "its scale is that already" : NULL;
}

static vn_status set_scale(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	return vn_const_set(n, "scale", other_scale(r, f->plan, n), err);
}

/* ---- who sees whom ------------------------------------------------------------------------ */

static const char *causal(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return !ATTN(n).causal ? "it has no causal mask" : vn_fault_const_why_not(r, p, n);
}

/* x: vn_variant.attention.blind, of a query without a key. */
static vn_status hides_own(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_const_set(&f->plan->node[node], "ahead", -1, err);
	return st ? st : vn_const_set(&f->plan->node[node], "blind", r->x, err);
}

static const char *windowed(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)p;
	return !ATTN(n).window ? "it has no window" : ATTN(n).window + r->x < 1 ? "its window has one key" : NULL;
}

static const char *keeps_first(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return !ATTN(n).window ? "it has no window" : vn_fault_const_why_not(r, p, n);
}

static vn_status set_window(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	return vn_const_set(n, "window", r->x == 0 ? 0 : ATTN(n).window + r->x, err);
}

/* The window of the first layer that has one. */
static int window_of(const vn_plan *p)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION && ATTN(&p->node[i]).window)
			return ATTN(&p->node[i]).window;
	return 0;
}

static const char *windowless(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return ATTN(n).window ? "it has a window" : !window_of(p) ? "no layer has a window" : NULL;
}

static vn_status lend_window(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_const_set(&f->plan->node[node], "window", window_of(f->plan), err);
}

/* ---- heads --------------------------------------------------------------------------------- */

static const char *grouped(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return ATTN(n).kv_heads == 1 || ATTN(n).kv_heads == ATTN(n).heads ? "every map of its heads is the same (one key head, or one each)"
	                                                                  : vn_fault_const_why_not(r, p, n);
}

/* Beside the map of an engine that repeats keys and values, what it reads without. */
static const char *fewer_keys(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return ATTN(n).kv_heads == ATTN(n).heads ? "it has as many key heads as query heads" : vn_fault_const_why_not(r, p, n);
}

static const char *several(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return ATTN(n).heads == 1 ? "there is one head" : vn_fault_const_why_not(r, p, n);
}

static const char *as_many(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r, (void)p;
	return ATTN(n).heads != ATTN(n).kv_heads ? "it has fewer key heads than query heads" : NULL;
}

static vn_status exchange(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int other = (int)r->x, k = n->in[VN_ATTN_K];

	(void)err;
	n->in[VN_ATTN_K] = n->in[other];
	n->in[other] = k;
	return VN_OK;
}

/* The columns of the matrix behind an attention, for a context whose heads lie
 * innermost: W'[m, h K + k] = W[m, k H + h]. s: (M, N), or (N, M) transposed. */
static void heads_inside(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	const int     H = (int)fabs(r->x);
	const bool    transposed = r->x < 0;
	const int64_t N = s->dim[!transposed], M = s->dim[transposed], K = N / H;

	for (int64_t m = 0; m < M; m++)
		for (int64_t n = 0; n < N; n++) {
			const int64_t from = n % K * H + n / K;
			y[transposed ? n * M + m : m * N + n] = x[transposed ? from * M + m : m * N + from];
		}
}

static const char *of_heads(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_value *x = &p->value[n->in[0]];
	(void)r;
	return vn_fault_point(p, n) != VN_POINT_ATTN_OUT || x->rank != 3 ? "it is for the projection of an attention's heads"
	     : x->size[1] == 1 || x->size[2] == 1                        ? "there is one head, or heads are one wide" : NULL;
}

static vn_status inside_out(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	const int      H = f->plan->value[n->in[0]].size[1];
	vn_fault_row   with = *r;

	with.x = n->c.linear.transposed ? -H : H;
	return vn_fault_change_weight(&with, f, node, 0, heads_inside, err);
}

/* (H,T,K), read as (T,H K). */
static vn_status untransposed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];

	(void)r;
	return vn_fault_follow(f, node, vn_fault_rows(n->layer, VN_ROWS_PARTS_FIRST, 0, ATTN(n).head_dim, n->out[0]), err);
}

static const char *several_heads(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r, (void)p;
	return ATTN(n).heads == 1 ? "there is one head" : NULL;
}

static const vn_fault_row rows[] = {
	{ "A1.missing", "scores without their scale", VN_ON(ATTENTION), scale_why_not, set_scale, NULL, MISSING },
	{ "A1.twice", "scores scaled twice", VN_ON(ATTENTION), scale_why_not, set_scale, NULL, TWICE },
	{ "A1.hidden", "scores scaled by the root of the model's width, not the head's", VN_ON(ATTENTION), scale_why_not, set_scale, NULL, BY_WIDTH },
	{ "A1.head", "scores divided by the width of a head, not by its root", VN_ON(ATTENTION), scale_why_not, set_scale, NULL, BY_HEAD },
	{ "A1.rotated", "scores scaled by the root of the rotated columns, not of all", VN_ON(ATTENTION), scale_why_not, set_scale, NULL, BY_ROTATED },
	{ "A2", "no causal mask", VN_ON(ATTENTION), NULL, NULL, "causal", 0 },
	{ "A3.strict", "the mask hides a query's own key", VN_ON(ATTENTION), causal, NULL, "ahead", -1 },
	{ "A3.uniform", "the mask hides a query's own key; without a key it sees all of them alike", VN_ON(ATTENTION), causal, hides_own, "blind", 1 },
	{ "A3.nan", "the mask hides a query's own key; without a key it is NaN", VN_ON(ATTENTION), causal, hides_own, "blind", 2 },
	{ "A3.ahead", "the mask shows the next key", VN_ON(ATTENTION), causal, NULL, "ahead", 1 },
	{ "A3.chunk", "the mask counts queries from the first of the call, not of the sequence", VN_ON(ATTENTION), causal, NULL, "from_zero", 1 },
	{ "A4", "the mask makes scores 0, not minus infinity", VN_ON(ATTENTION), causal, NULL, "leak", 1 },
	{ "A4.one", "the mask adds 1 to scores, not minus infinity", VN_ON(ATTENTION), causal, NULL, "leak", 2 },
	{ "A5.missing", "no sliding window", VN_ON(ATTENTION), windowed, set_window, NULL, 0 },
	{ "A5.wide", "a sliding window of a key more", VN_ON(ATTENTION), windowed, set_window, NULL, 1 },
	{ "A5.narrow", "a sliding window of a key less", VN_ON(ATTENTION), windowed, set_window, NULL, -1 },
	{ "A5.sinks", "a sliding window that keeps the first four keys, too", VN_ON(ATTENTION), keeps_first, NULL, "sinks", 4 },
	{ "A5.layer", "a sliding window in a layer that has none", VN_ON(ATTENTION), windowless, lend_window, NULL, 0 },
	{ "A6", "query head h reads key head h mod G", VN_ON(ATTENTION), grouped, NULL, "head_map", VN_HEADS_MODULO },
	{ "A7.zeros", "heads without a key head of their number read zeros", VN_ON(ATTENTION), fewer_keys, NULL, "head_map", VN_HEADS_NONE },
	{ "A7.flat", "heads without a key head of their number read on in the next token's", VN_ON(ATTENTION), fewer_keys, NULL, "head_map", VN_HEADS_FLAT },
	{ "A8", "heads joined innermost: column k H + h", VN_ON(LINEAR), of_heads, inside_out, NULL, 0 },
	{ "A9", "heads before tokens, read as tokens before heads", VN_ON(ATTENTION), several_heads, untransposed, NULL, 0 },
	{ "A10.queries", "softmax over queries, not over keys", VN_ON(ATTENTION), NULL, NULL, "form", VN_ATTN_OVER_QUERIES },
	{ "A10.heads", "softmax over heads, not over keys", VN_ON(ATTENTION), several, NULL, "form", VN_ATTN_OVER_HEADS },
	{ "A11.kv", "keys and values exchanged", VN_ON(ATTENTION), vn_fault_anywhere, exchange, NULL, VN_ATTN_V },
	{ "A11.qk", "queries and keys exchanged", VN_ON(ATTENTION), as_many, exchange, NULL, VN_ATTN_Q },
	{ "A12", "softmax without its maximum: float32 overflows", VN_ON(ATTENTION), NULL, NULL, "form", VN_ATTN_NO_MAX },
	{ "A12.half", "softmax without its maximum, of exponentials in float16", VN_ON(ATTENTION), NULL, NULL, "form", VN_ATTN_NO_MAX_F16 },
	{ "A13.f16", "probabilities rounded to float16", VN_ON(ATTENTION), NULL, NULL, "form", VN_ATTN_PROBS_F16 },
	{ "A13.bf16", "probabilities rounded to bfloat16", VN_ON(ATTENTION), NULL, NULL, "form", VN_ATTN_PROBS_BF16 },
	{ "A14", "eight keys of padding are seen", VN_ON(ATTENTION), NULL, NULL, "padding", 8 },
};

const vn_fault_chapter vn_faults_attention = { rows, sizeof rows / sizeof *rows };
