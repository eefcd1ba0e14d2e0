#version 460
// attn_probs: softmax of the scores over the keys a query may see.
//
//   y[i,j] = exp(s[i,j] - max_j s) / sum_j exp(s[i,j] - max_j s)    0 where forbidden;
//            exp(sinks[h0] - max_j s) is one term more of the sum
//
//   q (T,H,K) real in     k real in, the cache (mask.glsl)     sinks (H) real in, or none
//   y (T,n_keys) real out: all T rows of head h0, keys j0 to j0+n_keys
//   push      vn_push_attention (mask.glsl); v is not read
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// Two passes over the keys: the first computes maximum and sum, per lane and then
// folded in halves; the second computes the scores again, and from them the
// probabilities of the piece. Runs only when the probabilities are tapped; rounds
// once, from float.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "mask.glsl"

const uint LANES = 128, KMAX = 256;
layout(local_size_x = 128) in;

shared float qs[KMAX];
shared float tops[LANES], sums[LANES];

float score(uint j)
{
	const uint k = key_row(j, p.h0);
	float s = 0.0;
	for (uint d = 0; d < p.K; d++)
		s += qs[d] * float(p.k.v[k + d]);
	return capped(s * p.scale);
}

void row(uint i)
{
	const uint lane = gl_LocalInvocationID.x;

	for (uint d = lane; d < p.K; d += LANES)
		qs[d] = float(p.q.v[(i * p.H + p.h0) * p.K + d]);
	barrier();

	float top = -INFINITY, sum = 0.0;
	for (uint j = keys_begin(i) + lane; j < keys_end(i); j += LANES) {
		const float s = score(j), most = max(top, s);
		const float base = most == -INFINITY ? 0.0 : most;
		sum = sum * exp_(top - base) + exp_(s - base);
		top = most;
	}
	tops[lane] = top;
	sums[lane] = sum;
	barrier();
	for (uint k = LANES / 2; k > 0; k /= 2) {
		if (lane < k) {
			const float most = max(tops[lane], tops[lane + k]);
			const float base = most == -INFINITY ? 0.0 : most;
			sums[lane] = sums[lane] * exp_(tops[lane] - base) + sums[lane + k] * exp_(tops[lane + k] - base);
			tops[lane] = most;
		}
		barrier();
	}
	top = tops[0] == -INFINITY ? 0.0 : tops[0];
	sum = with_sink(sums[0], top, p.h0);
	for (uint c = lane; c < p.n_keys; c += LANES) {
		const uint j = p.j0 + c;
		put(p.y, i * p.n_keys + c, visible(i, j) ? exp_(score(j) - top) / sum : 0.0);
	}
	barrier(); // qs, tops and sums are read above
}

void main()
{
	for (uint i = gl_WorkGroupID.x; i < p.T; i += gl_NumWorkGroups.x)
		row(i);
}
