#version 460
// attention_odd: context of one query of one head, with a softmax that is no family's.
//
//   y[i,h,:] = sum_j p[i,j] v[j,g,:]     p: softmax.glsl
//
//   q (T,H,K) real in, of the whole call     k, v real in, the cache (mask.glsl)     y (T,H,K) real out
//   push      vn_push_attention (mask.glsl)
//   dispatch  x: queries, y: heads; both in strides of the grid
//
// K is at most 256. The row's maximum and sum first; then keys pass in tiles: a lane makes the
// probability of one, later two columns of the context.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "mask.glsl"
#include "softmax.glsl"

layout(local_size_x = 128) in;

shared float ps[LANES];

void row(uint i, uint h)
{
	const uint lane = gl_LocalInvocationID.x, keys = keys_end(i);
	float acc[2] = float[2](0.0, 0.0);

	row_sums(i, h);
	for (uint j0 = keys_begin(i); j0 < keys; j0 += LANES) {
		ps[lane] = j0 + lane < keys ? probability(i, h, j0 + lane) : 0.0;
		barrier();
		for (uint half_ = 0; half_ < 2; half_++) {
			const uint d = lane + half_ * LANES;
			for (uint c = 0; d < p.K && c < min(LANES, keys - j0); c++) {
				const uint row = v_row(j0 + c, h);
				acc[half_] += ps[c] * (row != NOWHERE ? kept(float(p.v.v[row + d]), 16) : 0.0);
			}
		}
		barrier(); // ps is read above
	}
	for (uint half_ = 0; half_ < 2; half_++)
		if (lane + half_ * LANES < p.K)
			put(p.y, (i * p.H + h) * p.K + lane + half_ * LANES, acc[half_]);
	barrier(); // tops and sums are read above
}

void main()
{
	for (uint h = gl_WorkGroupID.y; h < p.H; h += gl_NumWorkGroups.y)
		for (uint i = gl_WorkGroupID.x; i < p.T; i += gl_NumWorkGroups.x)
			row(i, h);
}
