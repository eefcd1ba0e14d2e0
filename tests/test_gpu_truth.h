/* test_gpu_truth.h: what every operation should give, as a double loop over the
 * inputs that the device itself stored. Calls no engine's arithmetic. */
#ifndef VN_TESTS_TEST_GPU_TRUTH_H
#define VN_TESTS_TEST_GPU_TRUTH_H

#include "tests/test_gpu_help.h"

static const float *weight_of(const model *m, int w)
{
	return m->weight[w].data;
}

static double silu(double x)
{
	return x / (1.0 + exp(-x));
}

/* s[j] of query row i (of the whole sequence) and head h; returns the largest
 * sum of magnitudes that went into one. */
static double scores_of(const vn_node *n, const kept *q, const kept *k, int64_t i, int64_t h, int64_t S, double *s)
{
	double most = 0.0;
	const int64_t H = n->c.attention.heads, G = n->c.attention.kv_heads, K = n->c.attention.head_dim;
	for (int64_t j = 0; j < S; j++) {
		double size = s[j] = 0.0;
		for (int64_t d = 0; d < K; d++) {
			const double p = (double)q->x[(i * H + h) * K + d] * (double)k->x[(j * G + h / (H / G)) * K + d];
			s[j] += p;
			size += fabs(p);
		}
		s[j] *= n->c.attention.scale;
		most = fmax(most, size * n->c.attention.scale);
	}
	return most;
}

static void probs_of(const vn_node *n, int64_t i, int64_t S, double *s)
{
	const int64_t W = n->c.attention.window;
	double top = -INFINITY, sum = 0.0;
	for (int64_t j = 0; j < S; j++) {
		if (j > i || (W && j <= i - W))
			s[j] = -INFINITY;
		top = s[j] > top ? s[j] : top;
	}
	for (int64_t j = 0; j < S; j++)
		sum += s[j] = exp(s[j] - top);
	for (int64_t j = 0; j < S; j++)
		s[j] /= sum;
}

/* Row `row` (of the whole sequence of S tokens; for scores and probabilities of
 * head `head`) of a value: y, and size: the sum of the magnitudes that went
 * into each element, which is what rounding errors are relative to. */
static void truth(const model *m, const keep *k, int value, const int32_t *ids, int64_t S, int64_t head, int64_t row,
                  double *y, double *size)
{
	const vn_value *v = &m->plan->value[value];
	const vn_node  *n = &m->plan->node[v->node];
	const int64_t   width = vn_value_row(v);
	const kept     *a = n->n_in > 0 ? &k->v[n->in[0]] : NULL, *b = n->n_in > 1 ? &k->v[n->in[1]] : NULL;

	if (n->op == VN_OP_EMBED) {
		for (int64_t d = 0; d < width; d++)
			size[d] = fabs(y[d] = (double)weight_of(m, n->w[0])[ids[row] * width + d]);
	} else if (n->op == VN_OP_RMS_NORM) {
		const int64_t N = v->size[v->rank - 1];
		for (int64_t g = 0; g < width; g += N) {
			double ss = 0.0;
			for (int64_t d = 0; d < N; d++)
				ss += pow((double)a->x[row * width + g + d], 2);
			for (int64_t d = 0; d < N; d++)
				size[g + d] = fabs(y[g + d] = (double)weight_of(m, n->w[0])[d] * (double)a->x[row * width + g + d] /
				                              sqrt(ss / (double)N + n->c.norm.eps));
		}
	} else if (n->op == VN_OP_LINEAR) {
		const int64_t N = m->plan->weight[n->w[0]].shape.dim[1];
		for (int64_t o = 0; o < width; o++) {
			const double bias = n->n_w > 1 && n->w[1] >= 0 ? (double)weight_of(m, n->w[1])[o] : 0.0;
			y[o] = bias;
			size[o] = fabs(bias);
			for (int64_t d = 0; d < N; d++) {
				const double p = (double)a->x[row * N + d] * (double)weight_of(m, n->w[0])[o * N + d];
				y[o] += p;
				size[o] += fabs(p);
			}
		}
	} else if (n->op == VN_OP_ROPE) {
		const int64_t K = v->size[2], R = n->c.rope.rope.rotary_dim;
		float freq[256], factor;
		vn_rope_frequencies(&n->c.rope.rope, freq, &factor);
		for (int64_t e = 0; e < width; e++) {
			const float  *x = a->x + row * width + e / K * K;
			const int64_t d = e % K, i = d % (R / 2);
			if (d >= R) {
				size[e] = fabs(y[e] = (double)x[d]);
				continue;
			}
			const double angle = (double)(freq[i] * (float)row);
			const double lo = (double)x[i], hi = (double)x[i + R / 2], c = cos(angle) * (double)factor, s = sin(angle) * (double)factor;
			y[e] = d < R / 2 ? lo * c - hi * s : hi * c + lo * s;
			size[e] = fabs(lo) + fabs(hi);
		}
	} else if (n->op == VN_OP_ATTENTION) {
		double *s = malloc((size_t)S * sizeof *s);
		const int64_t H = n->c.attention.heads, G = n->c.attention.kv_heads, K = n->c.attention.head_dim;
		if (v->slot != VN_ATTN_CONTEXT) {
			const double most = scores_of(n, a, b, row, head, S, y);
			if (v->slot == VN_ATTN_PROBS)
				probs_of(n, row, S, y);
			for (int64_t j = 0; j < S; j++)
				size[j] = v->slot == VN_ATTN_PROBS ? y[j] * (2.0 + most) : most;
		} else {
			for (int64_t h = 0; h < H; h++) {
				const double most = scores_of(n, a, b, row, h, S, s);
				probs_of(n, row, S, s);
				for (int64_t d = 0; d < K; d++) {
					y[h * K + d] = size[h * K + d] = 0.0;
					for (int64_t j = 0; j < S; j++) {
						const double p = s[j] * (double)k->v[n->in[VN_ATTN_V]].x[(j * G + h / (H / G)) * K + d];
						y[h * K + d] += p;
						size[h * K + d] += (2.0 + most) * fabs(p); /* exp passes a score's own error on */
					}
				}
			}
		}
		free(s);
	} else {
		for (int64_t e = 0; e < width; e++) {
			const double p = (double)a->x[row * width + e], q = b ? (double)b->x[row * width + e] : 0.0;
			y[e] = n->op == VN_OP_ACT ? silu(p) : n->op == VN_OP_GATED ? silu(p) * q : p + q;
			size[e] = fabs(y[e]) + (n->op == VN_OP_ADD ? fabs(p) : 0.0);
		}
	}
}

/* A cache of S tokens is what its node was given, row by row and to the bit. */
static int64_t wrong_cache(const model *m, const keep *k, int value, int64_t S)
{
	const vn_value *v = &m->plan->value[value];
	const vn_node  *n = &m->plan->node[v->node];
	const kept     *in = &k->v[n->in[m->plan->state[v->state].input]];
	const size_t    count = (size_t)(S * vn_value_row(v));

	if (k->v[value].n == count && in->n == count && memcmp(k->v[value].x, in->x, count * sizeof(float)) == 0)
		return 0;
	printf("\n  %s of %lld tokens is not what was written to it\n", v->name, (long long)S);
	return 1;
}

/* Elements of the last `tokens` rows of a value that are off the truth by more
 * than the format and the order of sums explain. The first is printed. */
static int64_t wrong(const model *m, const keep *k, int value, vn_policy policy, const int32_t *ids, int64_t past,
                     int64_t tokens)
{
	const vn_value *v = &m->plan->value[value];
	if (v->state >= 0)
		return wrong_cache(m, k, value, past + tokens);
	const bool      keyed = v->size[v->rank - 1] == VN_S;
	const int64_t   S = past + tokens, heads = keyed ? v->size[0] : 1, width = keyed ? S : vn_value_row(v);
	const vn_op     op = m->plan->node[v->node].op;
	double         *y = malloc((size_t)width * sizeof *y), *size = malloc((size_t)width * sizeof *size);
	int64_t         bad = 0;
	/* A float sum of N terms in order is off by about sqrt(N)/2 units of its size, a half one likewise. */
	double unit = 1.5e-6;

	if (op == VN_OP_LINEAR && policy.sums == VN_F16)
		unit = 4.9e-4 * (2.0 + sqrt((double)m->plan->weight[m->plan->node[v->node].w[0]].shape.dim[1]));
	for (int64_t h = 0; h < heads; h++)
		for (int64_t t = 0; t < tokens; t++) {
			const float *got = keyed ? k->v[value].x + (h * tokens + t) * S : k->v[value].x + (past + t) * width;
			truth(m, k, value, ids, S, h, past + t, y, size);
			for (int64_t e = 0; e < width; e++) {
				const double room = (policy.storage == VN_F16 ? 0.5001 * vn_dtype_ulp(VN_F16, y[e]) : 0.0) + unit * size[e] + 1e-12;
				if (fabs((double)got[e] - y[e]) <= room)
					continue;
				if (bad++ == 0)
					printf("\n  %s %s past %lld tokens %lld: head %lld row %lld element %lld is %.9g, should be %.9g (room %.3g)\n",
					       vn_policy_name(policy), v->name, (long long)past, (long long)tokens, (long long)h, (long long)t,
					       (long long)e, (double)got[e], y[e], room);
			}
		}
	free(size);
	free(y);
	return bad;
}

#endif
