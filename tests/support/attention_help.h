/* attention_help.h: layer1's attention of the llama model, computed by the suite with or without a
 * mistake. */
#pragma once

#include "tests/support/explain_help.h"

#include <math.h>

enum { H = 6, G = 2, K = 8 }; /* heads, of keys, their width */

static float q[TOKENS * H * K], k[TOKENS * G * K], v[TOKENS * G * K], context[TOKENS * H * K];

/* The mistake of a query's computation. 0 in a field: no mistake of that kind. */
typedef struct mistake {
	int    first, last; /* first and last key that it sees; 0, 0: all up to its own */
	int    early;       /* number of first keys that it sees in addition */
	double times, cap;  /* the scale of scores is multiplied by it; scores are capped */
	double sink, plus;  /* a further score of value 0 (0: none); added to the sum, whose largest term is 1 */
	double (*score)(double), (*prob)(double); /* rounded */
	int *key, *value;                         /* (tokens): the token whose key and value each slot holds; -1: zeros */
} mistake;

static inline void make_up_inputs(void)
{
	for (int i = 0; i < TOKENS * H * K; i++)
		q[i] = 2 * given_number(i, 1);
	for (int i = 0; i < TOKENS * G * K; i++) {
		k[i] = given_number(i, 2);
		v[i] = given_number(i, 3);
	}
}

static inline double score_of(const mistake *m, int t, int h, int slot)
{
	const int token = m->key ? m->key[slot] : slot;
	double    s = 0;

	for (int d = 0; token >= 0 && d < K; d++)
		s += (double)q[(t * H + h) * K + d] * (double)k[(token * G + h / (H / G)) * K + d];
	s *= (m->times > 0 ? m->times : 1) / sqrt(K);
	s = m->cap > 0 ? m->cap * tanh(s / m->cap) : s;
	return m->score ? m->score(s) : s;
}

static inline bool is_seen(const mistake *m, int t, int slot)
{
	const bool all = !m->first && !m->last;
	return slot < m->early || (slot >= m->first && slot <= (all ? t : m->last));
}

/* The probabilities p of a head's query over the slots, and its context y (K). */
static inline void attend(const mistake *m, int t, int h, double p[TOKENS], double y[K])
{
	double top = -INFINITY, sum = 0;

	for (int j = 0; j < TOKENS; j++)
		top = j <= t && is_seen(m, t, j) ? fmax(top, score_of(m, t, h, j)) : top;
	for (int j = 0; j < TOKENS; j++)
		sum += p[j] = j <= t && is_seen(m, t, j) ? exp(score_of(m, t, h, j) - top) : 0;
	sum += m->plus + (m->sink != 0 ? exp(m->sink - top) : 0);
	for (int d = 0; d < K; d++)
		y[d] = 0;
	for (int j = 0; j <= t; j++) {
		const int token = m->value ? m->value[j] : j;
		p[j] = m->prob ? m->prob(p[j] / sum) : p[j] / sum;
		for (int d = 0; token >= 0 && d < K; d++)
			y[d] += p[j] * (double)v[(token * G + h / (H / G)) * K + d];
	}
}

/* Fills the context of tokens [from, to). */
static inline void attend_all(const mistake *m, int from, int to)
{
	double p[TOKENS], y[K];

	for (int t = from; t < to; t++)
		for (int h = 0; h < H; h++) {
			attend(m, t, h, p, y);
			for (int d = 0; d < K; d++)
				context[(t * H + h) * K + d] = (float)y[d];
		}
}

/* A trial at the context of a step; the prompt has `call` tokens. */
static inline void stand_at_context(explained *e, int call, int decode, int step)
{
	const given of[] = {
		{ "layer1.q_rope", q }, { "layer1.k_rope", k }, { "layer1.v_proj", v }, { "layer1.attn_context", context }
	};

	compare_given(e, call, decode, of, 4);
	stand_at(e, "layer1.attn_context", step);
}

/* Rotates a head's row (K) of token t as the llama does: its scaling slows down pairs that take
 * more than 16 to 64 tokens for a full rotation. */
static inline void rotate_row(float *row, int t, double theta)
{
	const double two_pi = 6.283185307179586;

	for (int i = 0; i < K / 2; i++) {
		const double f = pow(theta, -2.0 * i / K), tokens = two_pi / f, fast = fmin(fmax((64 / tokens - 1) / 3, 0), 1),
					 angle = t * (fast * f + (1 - fast) * f / 8), a = (double)row[i], b = (double)row[i + K / 2];
		row[i] = (float)(a * cos(angle) - b * sin(angle));
		row[i + K / 2] = (float)(b * cos(angle) + a * sin(angle));
	}
}

/* Rotates the queries and keys of n tokens, and keeps those before. */
static inline void rotate_inputs(int n, double of_queries, double of_keys, float *plain_q, float *plain_k)
{
	memcpy(plain_q, q, sizeof q);
	memcpy(plain_k, k, sizeof k);
	for (int i = 0; i < n * H; i++)
		rotate_row(q + i * K, i / H, of_queries);
	for (int i = 0; i < n * G; i++)
		rotate_row(k + i * K, i / G, of_keys);
}
