#version 460
// rows: rearranges the rows of a call for an experiment (vn_rows_form).
//
//   1  y[t] = x[t + by] in the first call, 0 if x has no such row
//   2  y holds x as (parts,T,inner): its columns cut into parts of `inner`, part after part
//   3  y takes a row of x's first half and a row of its second half in turn
//   4  y[t] = other[t] if t / by is odd, or inner - 1 if inner is not 0
//   5  y[t] = x[t] - log(sum exp(x[t]))
//   6  y[t,n] = x[t, (n + by) mod N]
//
//   x, other (T,N) real in     y (T,N) real out
//   push      vn_push_rows
//   dispatch  any x; a workgroup takes rows in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "forms.glsl"

const uint LANES = 128;
layout(local_size_x = 128) in;
PUSH(vn_push_rows);

shared float part[LANES];

// log(x) of a number from 1 on: Vulkan promises no more than 3 ulp outside [0.5, 2],
// and less inside.
float log_(float x)
{
	const float y = log(x);

	return y + (x * exp_(-y) - 1.0); // a step of Newton
}

// The largest of x[t], then the sum of exp(x[t] - largest).
float fold(uint t, bool sum, float top)
{
	const uint lane = gl_LocalInvocationID.x;
	float all = sum ? 0.0 : -INFINITY;

	for (uint n = lane; n < p.N; n += LANES) {
		const float x = float(p.x.v[t * p.N + n]);
		all = sum ? all + exp_(x - top) : max(all, x);
	}
	part[lane] = all;
	barrier();
	for (uint k = LANES / 2; k > 0; k /= 2) {
		if (lane < k)
			part[lane] = sum ? part[lane] + part[lane + k] : max(part[lane], part[lane + k]);
		barrier();
	}
	all = part[0];
	barrier(); // part is written again
	return all;
}

void main()
{
	for (uint t = gl_WorkGroupID.x; t < p.T; t += gl_NumWorkGroups.x) {
		float less = 0.0;
		if (p.form == VN_ROWS_LOG_SOFTMAX) {
			const float top = fold(t, false, 0.0);
			less = top + log_(fold(t, true, top));
		}
		int from = int(t);
		if (p.form == VN_ROWS_SHIFTED && p.P == 0)
			from += p.by;
		else if (p.form == VN_ROWS_IN_TURN)
			from = int(t % 2 * ((p.T + 1) / 2) + t / 2);
		for (uint n = gl_LocalInvocationID.x; n < p.N; n += LANES) {
			const uint e = t * p.N + n;
			if (p.form == VN_ROWS_LOG_SOFTMAX)
				put(p.y, e, float(p.x.v[e]) - less);
			else if (p.form == VN_ROWS_PARTS_FIRST)
				p.y.v[e] = p.x.v[e / p.inner % p.T * p.N + e / (p.inner * p.T) * p.inner + e % p.inner];
			else if (p.form == VN_ROWS_ROUND)
				p.y.v[e] = p.x.v[t * p.N + (n + uint(p.by)) % p.N];
			else if (p.form == VN_ROWS_TILES &&
			         (p.inner == 0 ? t / uint(p.by) % 2 == 1 : t / uint(p.by) == p.inner - 1))
				p.y.v[e] = p.other.v[e];
			else if (from >= 0 && from < int(p.T))
				p.y.v[e] = p.x.v[uint(from) * p.N + n];
			else // no selection between halves, which would be arithmetic in half
				put(p.y, e, 0.0);
		}
	}
}
