#version 460
// attention_experiment: context of a block of queries of one head, streaming over keys, with any
// experiment of vn_experiment.attention. Only a node that an experiment changes runs it; speed does
// not matter here.
//
//   s[i,j]   = scale * dot(q[i,h,:], k[j,g,:])      g: key_head(h)
//   y[i,h,:] = sum_j softmax_j(s[i,j]) v[j,g,:]     over the keys that i may see
//
//   q (T,H,K) real in     k, v real in, the cache (mask.glsl)     y (T,H,K) real out
//   push      vn_push_attention (mask in mask.glsl)
//   dispatch  x: blocks of QUERIES queries, y: heads; both in strides of the grid
//
// K is at most 256. Keys pass in tiles of KEYS; maximum, sum and context are
// rescaled when the maximum grows (online softmax), all in float, and a score
// or a probability is never stored. Tiles start at multiples of KEYS, so the
// order of a query's sums does not depend on the block it is in.
// A lane computes the scores of one key for four queries, later two columns of
// the context for all queries. Forbidden keys are left out, not multiplied by 0:
// numbers of a later token, even NaN, must not reach an earlier one.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "mask.glsl"

const uint LANES = 128, QUERIES = 8, KEYS = 64, KMAX = 256;
layout(local_size_x = 128) in;

shared float qs[QUERIES * KMAX];
shared float ps[QUERIES * KEYS];   // scores, then weights exp(s - max)
shared float fold[QUERIES * 16];   // 16 lanes share a query's maximum and sum
shared float rescale[QUERIES], total[QUERIES];

void load_queries(uint i0, uint h)
{
	for (uint e = gl_LocalInvocationID.x; e < QUERIES * p.K; e += LANES) {
		const uint i = i0 + e / p.K, d = e % p.K;
		qs[e] = i < p.T ? float(p.q.v[(i * p.H + h) * p.K + d]) : 0.0;
	}
}

void score_tile(uint i0, uint j0, uint keys, uint h)
{
	const uint c = gl_LocalInvocationID.x % KEYS, r0 = gl_LocalInvocationID.x / KEYS * 4, j = j0 + c;
	float s[4] = float[4](0.0, 0.0, 0.0, 0.0);

	const uint row = j < keys ? k_row(j, h) : 0;
	if (j < keys && there(row)) {
		if (p.K % 4 == 0 && as_kept()) {
			for (uint d = 0; d < p.K; d += 4) {
				const vec4 k = vec4(Real4(p.k).v[(row + d) / 4]);
				[[unroll]] for (uint r = 0; r < 4; r++)
					[[unroll]] for (uint n = 0; n < 4; n++)
						s[r] += qs[(r0 + r) * p.K + d + n] * k[n];
			}
		} else {
			for (uint d = 0; d < p.K; d++) {
				const float k = k_of(row, d);
				[[unroll]] for (uint r = 0; r < 4; r++)
					s[r] += qs[(r0 + r) * p.K + d] * k;
			}
		}
	}
	[[unroll]] for (uint r = 0; r < 4; r++)
		ps[(r0 + r) * KEYS + c] = masked(i0 + r0 + r, j, scaled(s[r]));
}

void block(uint i0, uint h)
{
	const uint id = gl_LocalInvocationID.x;
	const uint r = id / 16, lane = id % 16; // this lane's query and its sixteenth, in the softmax
	float top = -INFINITY, sum = 0.0;       // of query r; the same in its 16 lanes
	float acc[QUERIES][2];

	[[unroll]] for (uint n = 0; n < QUERIES; n++)
		acc[n][0] = acc[n][1] = 0.0;
	load_queries(i0, h);
	barrier();

	const uint keys = keys_end(min(i0 + QUERIES, p.T) - 1);
	for (uint j0 = keys_begin(i0) / KEYS * KEYS; j0 < keys; j0 += KEYS) {
		score_tile(i0, j0, keys, h);
		barrier();

		float most = top;
		for (uint c = lane; c < KEYS; c += 16)
			if (j0 + c < keys && visible(i0 + r, j0 + c))
				most = max(most, ps[r * KEYS + c]);
		fold[id] = most;
		barrier();
		for (uint n = 0; n < 16; n++)
			most = max(most, fold[r * 16 + n]);
		// Only scores of -inf so far: exp(-inf - 0) is 0, but exp(-inf + inf) would be NaN.
		const float base = most == -INFINITY ? 0.0 : most;
		const float scale_old = exp_(top - base);
		float part = 0.0;
		for (uint c = lane; c < KEYS; c += 16) {
			const bool  seen = j0 + c < keys && visible(i0 + r, j0 + c);
			const float w = seen ? exp_(ps[r * KEYS + c] - base) : 0.0;
			ps[r * KEYS + c] = w;
			part += w;
		}
		barrier(); // fold is read above
		fold[id] = part;
		if (lane == 0)
			rescale[r] = scale_old;
		barrier();
		part = 0.0;
		for (uint n = 0; n < 16; n++)
			part += fold[r * 16 + n];
		sum = sum * scale_old + part;
		top = most;

		const uint n_keys = min(KEYS, keys - j0);
		[[unroll]] for (uint half_ = 0; half_ < 2; half_++) {
			const uint d = id + half_ * LANES;
			if (d < p.K) {
				[[unroll]] for (uint n = 0; n < QUERIES; n++)
					acc[n][half_] *= rescale[n];
				for (uint c = 0; c < n_keys; c++) {
					const float v = v_of(v_row(j0 + c, h), d);
					[[unroll]] for (uint n = 0; n < QUERIES; n++)
						if (visible(i0 + n, j0 + c))
							acc[n][half_] += ps[n * KEYS + c] * v;
				}
			}
		}
		barrier(); // ps, fold and rescale are read above
	}

	if (lane == 0)
		total[r] = whole(sum, top);
	barrier();
	[[unroll]] for (uint half_ = 0; half_ < 2; half_++) {
		const uint d = id + half_ * LANES;
		if (d < p.K)
			[[unroll]] for (uint n = 0; n < QUERIES; n++)
				if (i0 + n < p.T)
					put(p.y, ((i0 + n) * p.H + h) * p.K + d,
					    keys_end(i0 + n) > keys_begin(i0 + n) ? acc[n][half_] / total[n] : 0.0);
	}
	barrier(); // qs and total are read above
}

#include "attention_experiment.glsl"

void main()
{
	if (other_softmax()) {
		rows();
		return;
	}
	for (uint h = gl_WorkGroupID.y; h < p.H; h += gl_NumWorkGroups.y)
		for (uint i0 = gl_WorkGroupID.x * QUERIES; i0 < p.T; i0 += gl_NumWorkGroups.x * QUERIES)
			block(i0, h);
}
