/* last_query_help.h: a call of one token that reads other keys and values than were recorded. */
#pragma once

#include "tests/support/explain_help.h"

#include <math.h>

/* layer1.attn_context of the llama: a prompt of twelve tokens and one step. */
enum { CALL = 12, S = CALL + 1, H = 6, G = 2, K = 8, GROUP = H / G };

static float q[S * H * K], k[S * G * K], v[S * G * K], context[S * H * K];

/* What the last query reads in place of the right keys and values, and how often it reads a
 * token. */
static float  keys[S * G * K], values[S * G * K];
static double times[S];

static inline void fill(void)
{
	for (int i = 0; i < S * H * K; i++)
		q[i] = 2 * given_number(i, 1);
	for (int i = 0; i < S * G * K; i++) {
		keys[i] = k[i] = given_number(i, 2);
		values[i] = v[i] = given_number(i, 3);
	}
	for (int j = 0; j < S; j++)
		times[j] = 1;
}

static inline void attend(int t, int h, const float *of_keys, const float *of_values)
{
	double weight[S], sum = 0;

	for (int j = 0; j <= t; j++) {
		double dot = 0;
		for (int d = 0; d < K; d++)
			dot += (double)q[(t * H + h) * K + d] * (double)of_keys[(j * G + h / GROUP) * K + d];
		sum += weight[j] = exp(dot / sqrt(K)) * (t == CALL ? times[j] : 1);
	}
	for (int d = 0; d < K; d++) {
		double y = 0;
		for (int j = 0; j <= t; j++)
			y += weight[j] * (double)of_values[(j * G + h / GROUP) * K + d];
		context[(t * H + h) * K + d] = (float)(y / sum);
	}
}

typedef void      last_query_strategy(vn_case *t, vn_findings **x, int n);
/* Returns how many answers are kept; *best: the first. */
static inline int explained_by(last_query_strategy *explain, vn_trial *best)
{
	const given of[] = {
		{ "layer1.q_rope", q }, { "layer1.k_rope", k }, { "layer1.v_proj", v }, { "layer1.attn_context", context }
	};
	vn_findings *x;
	explained    e;

	for (int t = 0; t < S; t++)
		for (int h = 0; h < H; h++)
			attend(t, h, t == CALL ? keys : k, t == CALL ? values : v);
	compare_given(&e, CALL, 1, of, 4);
	stand_at(&e, "layer1.attn_context", 1);
	x = &e.x;
	explain(&e.t, &x, 1);
	CU_ASSERT_EQUAL(e.failed.st, VN_OK);
	const int n = e.x.n;
	*best = n ? e.x.by[0] : (vn_trial) { 0 };
	end_explained(&e);
	return n;
}
