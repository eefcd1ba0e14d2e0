/* recompute_estimate.c: estimates the error that a plan leaves: in the logits, from some columns of
 * some rows; of a whole plan, on the first tokens of a call (recompute.h). */
#include "compare/replay/recompute_internal.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_TOKENS = 64 /* tokens of a call */, PART = 8 /* 1 of so many is computed */ };

/* Does no query of an attention see tokens behind its own, whatever else a fault changes? */
static bool sees_no_later(const vn_node *n)
{
	const vn_experiment *e = vn_node_experiment(n);
	const int            form = e ? e->attention.form : VN_ATTN_USUAL, cache = e ? e->attention.cache : VN_CACHE_USUAL;

	return n->c.attention.causal &&
	       (!e || (e->attention.ahead <= 0 && !e->attention.blind && !e->attention.leak && !e->attention.again &&
	               !e->attention.blocks && !e->attention.prefix && !e->attention.window_of && !e->attention.unseen &&
	               !e->attention.stale && e->attention.head_map != VN_HEADS_FLAT && form != VN_ATTN_OVER_QUERIES &&
	               (cache == VN_CACHE_USUAL || cache == VN_CACHE_LATE || cache == VN_CACHE_F16 ||
	                cache == VN_CACHE_F8 || cache == VN_CACHE_F8_WIDE)));
}

/* Does the node make each row from the tokens up to its own, whatever follows? */
static bool is_causal(const vn_plan *plan, const vn_node *n)
{
	switch (n->op) {
	case VN_OP_EMBED:
	case VN_OP_LINEAR:
	case VN_OP_SLICE:
	case VN_OP_ACT:
	case VN_OP_GATED:
	case VN_OP_ADD: return true;
	case VN_OP_RMS_NORM:
	case VN_OP_LAYER_NORM:
	case VN_OP_L2_NORM: return !n->x.norm.width;
	/* the frequencies of the other types follow from the length of the text */
	case VN_OP_ROPE: return n->c.rope.rope.type != VN_ROPE_DYNAMIC && n->c.rope.rope.type != VN_ROPE_LONGROPE;
	case VN_OP_ATTENTION: return sees_no_later(n) && vn_node_keep_rule(plan, n).state < 0;
	case VN_OP_ROWS:
		return n->x.rows.form == VN_ROWS_TILES || n->x.rows.form == VN_ROWS_ROUND ||
		       n->x.rows.form == VN_ROWS_LOG_SOFTMAX;
	default: return false;
	}
}

static bool all_causal(const vn_plan *plan)
{
	for (int i = 0; i < plan->n_nodes; i++)
		if (!is_causal(plan, &plan->node[i]))
			return false;
	return true;
}

/* Is the checkpoint the rows of all tokens of the only call? */
static bool is_one_call(const vn_recompute *p)
{
	const vn_value *v = &p->site.plan->value[p->site.target];
	return p->when == 0 && p->site.first == 0 && p->rows == p->site.tokens && !p->site.sampled && v->state < 0 &&
	       v->size[0] == VN_T;
}

vn_status vn_recompute_estimate_first(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, double *off,
                                      vn_error *err)
{
	const int64_t      few = p->site.tokens / PART;
	const size_t       n = (size_t)(few * vn_value_row(&p->site.plan->value[p->site.target]));
	const void        *data;
	vn_recompute_plan  r;
	vn_recompute_error sums = { 0 };

	*off = (double)NAN;
	if (p->site.tokens < LEAST_TOKENS || few > p->site.prompt || !is_one_call(p) || !all_causal(plan))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "its first tokens are not computed alone");
	double *z = vn_alloc(2 * n, sizeof *z), *c = z + n;
	vn_recompute_begin(&r, p, plan, weights, &p->w[VN_OWN_WIDTH]);
	r.few = few;
	const vn_status st = vn_recompute_value(&r, p->site.target, &data, err);
	if (!st) {
		vn_to_f64(z, data, r.w->eval->width, n);
		vn_to_f64(c, p->site.cand.data, p->site.cand.dtype, n);
		vn_recompute_add_error(z, c, (int64_t)n, &sums);
		*off = vn_recompute_nmse(sums);
	}
	vn_recompute_end(&r);
	free(z);
	return st;
}

enum {
	WIDTH = 256, /* columns of a block */
	WORST = VN_SOME_BLOCKS / 2,
	LEAST = 4 * VN_SOME_BLOCKS * WIDTH /* with fewer columns, all are computed at once */
};

/* ---- which columns --------------------------------------------------------------------------- */

/* The squared error of the columns [from, from + WIDTH), and the candidate's squares. */
static double off_in(const vn_recompute *p, const vn_tensor *own, int64_t of, int64_t from, double *cc)
{
	vn_recompute_error s = { 0 };
	double             z[WIDTH], c[WIDTH];

	for (int i = 0; i < p->n_sample; i++) {
		const int64_t at = vn_recompute_row(p, i) * of + from;
		vn_tensor_numbers(own, at, WIDTH, z);
		vn_tensor_numbers(&p->site.cand, at, WIDTH, c);
		vn_recompute_add_error(z, c, WIDTH, &s);
	}
	*cc = s.cc;
	return s.dd;
}

/* The last block ends with the last column, and may overlap the one before. */
static int64_t first_of(int64_t block, int64_t of)
{
	return block * WIDTH < of - WIDTH ? block * WIDTH : of - WIDTH;
}

/* chosen (blocks): all false. */
static void choose_blocks(vn_recompute *p, double *off, const double *cc, bool *chosen, int64_t blocks)
{
	double dd = 0, all = 0;

	for (int64_t i = 0; i < WORST; i++)
		chosen[(blocks - 1) * i / (WORST - 1)] = true;
	for (int k = 0; k < WORST; k++) {
		int64_t worst = 0;
		for (int64_t b = 1; b < blocks; b++)
			worst = off[b] > off[worst] ? b : worst;
		if (!(off[worst] > 0))
			break;
		chosen[worst] = true;
		off[worst] = -off[worst];
	}
	for (int64_t b = 0; b < blocks; b++) {
		if (!chosen[b])
			continue;
		p->some.first[p->some.n++] = first_of(b, p->some.of);
		dd += fabs(off[b]);
		all += cc[b];
	}
	p->some_off = all > 0 ? dd / all : 0;
}

const vn_some_rows *vn_recompute_choose(vn_recompute *p, const vn_tensor *own)
{
	const vn_value *v = &p->site.plan->value[p->site.target];
	const int64_t   of = vn_value_row(v), blocks = (of + WIDTH - 1) / WIDTH;

	p->some = (vn_some_rows) { .of = of, .width = WIDTH };
	if (!p->n_sample || of < LEAST)
		return NULL;
	double *off = vn_alloc((size_t)blocks, sizeof *off), *cc = vn_alloc_zero((size_t)blocks, sizeof *cc);
	bool   *chosen = vn_alloc_zero((size_t)blocks, sizeof *chosen);
#pragma omp parallel for num_threads(p->threads)
	for (int64_t b = 0; b < blocks; b++)
		off[b] = off_in(p, own, of, first_of(b, of), &cc[b]);
	choose_blocks(p, off, cc, chosen, blocks);
	VN_FREE(off, cc, chosen);
	if (!(p->some_off > 0 && isfinite(p->some_off)))
		p->some.n = 0;
	return p->some.n ? &p->some : NULL;
}

/* ---- computing them -------------------------------------------------------------------------- */

/* Copies the chosen columns of x (rows, of), `size` bytes each. */
static void *pick_columns(const vn_some_rows *s, const void *x, int64_t rows, size_t size)
{
	const size_t block = (size_t)s->width * size;
	char        *y = vn_alloc((size_t)(rows * s->n), block), *to = y;

	for (int64_t i = 0; i < rows; i++)
		for (int k = 0; k < s->n; k++, to += block)
			memcpy(to, (const char *)x + (size_t)(i * s->of + s->first[k]) * size, block);
	return y;
}

/* Reads the chosen columns of the candidate, in the sampled rows. */
static void read_candidate(const vn_recompute *p, double *c)
{
	const vn_tensor *t = &p->site.cand;

	for (int i = 0; i < p->n_sample; i++)
		for (int k = 0; k < p->some.n; k++, c += p->some.width)
			vn_to_f64(c,
			          (const char *)t->data +
			              (size_t)(vn_recompute_row(p, i) * p->some.of + p->some.first[k]) * vn_dtype_size(t->dtype),
			          t->dtype, (size_t)p->some.width);
}

/* The chosen outputs of a weight: rows of a matrix, or of a bias;
 * columns of a transposed matrix. */
static vn_status pick_weight(const vn_some_rows *s, const vn_tensor *w, bool transposed, vn_tensor *some, vn_error *err)
{
	const int     axis = transposed ? 1 : 0;
	const int64_t row = w->shape.rank == 2 && !transposed ? w->shape.dim[1] : 1;
	const size_t  block = vn_dtype_bytes(w->dtype, (size_t)(s->width * row));
	char         *y;

	*some = *w;
	if (w->shape.dim[axis] != s->of || (transposed && vn_dtype_block(w->dtype) > 1))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "another number of outputs");
	some->shape.dim[axis] = s->n * s->width;
	y = transposed ? pick_columns(s, w->data, w->shape.dim[0], vn_dtype_size(w->dtype)) : vn_alloc((size_t)s->n, block);
	for (int k = 0; !transposed && k < s->n; k++)
		memcpy(y + (size_t)k * block, (const char *)w->data + vn_dtype_bytes(w->dtype, (size_t)(s->first[k] * row)),
		       block);
	some->data = y;
	return VN_OK;
}

/* The sampled rows of a product's input, which is narrower than the logits, and the chosen outputs
 * of its weights. */
static vn_status prepare_product(vn_recompute_plan *r, const vn_node *n, vn_args *a, void **in, vn_tensor some[2],
                                 vn_error *err)
{
	const vn_value *v = &r->plan->value[vn_plan_root(r->plan, n->in[0])];
	vn_status       st = vn_value_row(v) == r->p->some.of ? vn_fail(err, VN_ERR_UNSUPPORTED, "a product of all columns")
	                                                      : vn_recompute_sampled(r, n->in[0], in, err);

	for (int i = 0; !st && i < 2; i++)
		if (a->w[i]) {
			st = pick_weight(&r->p->some, a->w[i], i == 0 && n->c.linear.transposed, &some[i], err);
			a->w[i] = &some[i];
		}
	return st;
}

/* Computes the chosen columns of the sampled rows of a value as wide as the logits. */
static vn_status compute_columns(vn_recompute_plan *r, int value, void **out, vn_error *err)
{
	const vn_recompute *p = r->p;
	const int           root = vn_plan_root(r->plan, value);
	const vn_value     *v = &r->plan->value[root];
	const vn_node      *n = &r->plan->node[v->node];
	const int64_t       wide = p->some.n * p->some.width;
	vn_tensor           some[2] = { { .data = NULL }, { .data = NULL } };
	vn_args             a = vn_recompute_args(r, n);
	VN_FREED void      *in = NULL;
	vn_status           st;

	*out = NULL;
	if (vn_value_row(v) != p->some.of || v->rank != 2 || n->out[0] != root || n->n_state)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s is not computed column by column", v->name);
	if (vn_recompute_makes_target(r, root) && r->w->sampled) {
		*out = pick_columns(&p->some, r->w->sampled, p->n_sample, r->w->size);
		return VN_OK;
	}
	if (n->op == VN_OP_LINEAR)
		st = prepare_product(r, n, &a, &in, some, err);
	else if (n->op == VN_OP_ACT)
		st = compute_columns(r, n->in[0], &in, err);
	else
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s is not computed column by column", v->name);
	a.in[0] = in;
	a.tokens = p->n_sample;
	if (!st) {
		*out = vn_alloc((size_t)(p->n_sample * wide), r->w->size);
		st = r->w->eval->node(n, &a, wide, wide, *out, err);
	}
	for (int i = 0; i < 2; i++)
		vn_tensor_free(&some[i]);
	return st;
}

vn_status vn_recompute_estimate_columns(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, double *share,
                                        vn_error *err)
{
	const size_t       n = (size_t)(p->n_sample * p->some.n * p->some.width);
	vn_recompute_plan  r;
	vn_recompute_error sums = { 0 };
	VN_FREED void     *out = NULL;
	double            *z = vn_alloc(2 * n, sizeof *z), *c = z + n;
	vn_status          st = p->some.n ? VN_OK : vn_fail(err, VN_ERR_UNSUPPORTED, "no columns are chosen");

	vn_recompute_begin(&r, p, plan, weights, &p->w[VN_OWN_WIDTH]);
	if (!st && !(st = compute_columns(&r, p->site.target, &out, err))) {
		vn_to_f64(z, out, r.w->eval->width, n);
		read_candidate(p, c);
		vn_recompute_add_error(z, c, (int64_t)n, &sums);
		*share = sums.dd / sums.cc / p->some_off;
	}
	free(z);
	vn_recompute_end(&r);
	return st;
}
