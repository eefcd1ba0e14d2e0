#version 460
// attn_scores: scaled products of queries and keys, before the mask.
//
//   y[i,j] = scale * dot(q[i,h0,:], k[j0+j,g,:])      also for forbidden keys
//
//   q (T,H,K) real in     k real in, the cache (mask.glsl)
//   y (T,n_keys) real out: all T rows of head h0, keys j0 to j0+n_keys
//   push      vn_push_attention (mask.glsl); v is not read
//   dispatch  any x; one lane an element, in strides of the grid
//
// Runs only when the scores are tapped.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "mask.glsl"

layout(local_size_x = 64) in;

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.T * p.n_keys; e += gl_NumWorkGroups.x * 64) {
		const uint q = (e / p.n_keys * p.H + p.h0) * p.K;
		const uint k = key_row(p.j0 + e % p.n_keys, p.h0);
		float s = 0.0;
		for (uint d = 0; d < p.K; d++)
			s += float(p.q.v[q + d]) * float(p.k.v[k + d]);
		put(p.y, e, capped(s * p.scale));
	}
}
