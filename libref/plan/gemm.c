/* gemm.c: see gemm.h. */
#include "libref/plan/gemm.h"
#include "libref/base/text.h"

#include <inttypes.h>

static vn_gemm of_linear(const vn_plan *p, const vn_node *node)
{
	const vn_shape *w = &p->weight[node->w[0]].shape;
	const bool      in_first = node->c.linear.transposed; /* stored (N,M) in the letters of plan.h */
	const int64_t   in = w->dim[in_first ? 0 : 1], out = w->dim[in_first ? 1 : 0];

	return (vn_gemm) { .of = "linear",
		               .m = VN_T,
		               .n = out,
		               .k = in,
		               .transposed = !in_first,
		               .lda = in,
		               .ldb = in_first ? out : in,
		               .ldc = out,
		               .batch = 1,
		               .share = 1,
		               .alpha = 1 };
}

/* Of one query head: the scores q (T,K) k (S,K)^T, or the context, probs (T,S) v (S,U). Heads lie
 * side by side in a row of q, k, v and the context. */
static vn_gemm of_attention(const vn_node *node, bool scores)
{
	const int H = node->c.attention.heads, G = node->c.attention.kv_heads, K = node->c.attention.head_dim,
			  U = vn_attention_value_dim(&node->c);

	return (vn_gemm) { .of = scores ? "scores" : "context",
		               .m = VN_T,
		               .n = scores ? VN_S : U,
		               .k = scores ? K : VN_S,
		               .transposed = scores,
		               .lda = scores ? (int64_t)H * K : VN_S,
		               .ldb = (int64_t)G * (scores ? K : U),
		               .ldc = scores ? VN_S : (int64_t)H * U,
		               .batch = H,
		               .share = H / G,
		               .alpha = scores ? node->c.attention.scale : 1 };
}

int vn_gemms_of(const vn_plan *p, int value, vn_gemm g[VN_MAX_GEMM])
{
	const vn_value *v = &p->value[value];
	const vn_node  *node = &p->node[v->node];

	if (node->op == VN_OP_LINEAR) {
		g[0] = of_linear(p, node);
		return 1;
	}
	if (node->op != VN_OP_ATTENTION || (v->slot != VN_ATTN_CONTEXT && v->slot != VN_ATTN_SCORES))
		return 0;
	g[0] = of_attention(node, true);
	if (v->slot == VN_ATTN_SCORES)
		return 1;
	g[1] = of_attention(node, false);
	return 2;
}

static int64_t resolve_size(int64_t size, int64_t tokens, int64_t keys)
{
	return size == VN_T ? tokens : size == VN_S ? keys : size;
}

vn_gemm vn_gemm_at(const vn_gemm *g, int64_t tokens, int64_t keys)
{
	vn_gemm at = *g;

	at.m = resolve_size(g->m, tokens, keys);
	at.n = resolve_size(g->n, tokens, keys);
	at.k = resolve_size(g->k, tokens, keys);
	at.lda = resolve_size(g->lda, tokens, keys);
	at.ldb = resolve_size(g->ldb, tokens, keys);
	at.ldc = resolve_size(g->ldc, tokens, keys);
	return at;
}

void vn_gemm_shares(const vn_plan *p, int64_t tokens, int64_t keys, double *share)
{
	enum { OTHER = 4096 }; /* a node without a product takes about as long as this many multiplications per token */

	share[0] = 0;
	for (int i = 0; i < p->n_nodes; i++) {
		vn_gemm   g[VN_MAX_GEMM];
		const int n = vn_gemms_of(p, p->node[i].out[0], g);
		double    work = OTHER * (double)tokens;
		if (p->node[i].op == VN_OP_EXPERTS) /* each slot of a token goes through three matrices */
			work += 3 * (double)tokens * p->value[p->node[i].out[0]].size[1] *
			        (double)vn_shape_count(&p->weight[p->node[i].w[VN_EXPERT_GATE]].shape);
		for (int k = 0; k < n; k++) {
			const vn_gemm at = vn_gemm_at(&g[k], tokens, keys);
			work += (double)at.m * (double)at.n * (double)at.k * at.batch;
		}
		share[i + 1] = share[i] + work;
	}
	const double all = share[p->n_nodes];
	for (int i = 1; i <= p->n_nodes; i++)
		share[i] /= all;
}

static void append_size(char text[VN_GEMM_TEXT], const char *before, int64_t size)
{
	if (size == VN_T || size == VN_S)
		vn_text_add(text, VN_GEMM_TEXT, "%s%s", before, size == VN_T ? "tokens" : "keys");
	else
		vn_text_add(text, VN_GEMM_TEXT, "%s%" PRId64, before, size);
}

const char *vn_gemm_text(const vn_gemm *g, char text[VN_GEMM_TEXT])
{
	text[0] = 0;
	append_size(text, "M=", g->m);
	append_size(text, " N=", g->n);
	append_size(text, " K=", g->k);
	append_size(text, " A row-major lda=", g->lda);
	append_size(text, g->transposed ? ", B transposed ldb=" : ", B row-major ldb=", g->ldb);
	append_size(text, ", ldc=", g->ldc);
	if (g->alpha != 1)
		vn_text_add(text, VN_GEMM_TEXT, ", alpha=%.6g", g->alpha);
	if (g->batch > 1)
		vn_text_add(text, VN_GEMM_TEXT, "; %s of each of %d heads", g->of, g->batch);
	if (g->share > 1)
		vn_text_add(text, VN_GEMM_TEXT, ", %d share one B", g->share);
	return text;
}
