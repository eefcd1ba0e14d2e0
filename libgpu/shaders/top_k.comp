#version 460
// top_k: the columns of the k largest numbers of each row, the largest first.
//
//   y[t,s] = the column of x[t,:] with s others before it
//
//   x (T,E) real in     y (T,k) float out
//   push      vn_push_top_k
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// A column is before another if its number is larger or, of equal ones, if it is the first. A NaN
// is larger than any number, and 0 equals -0. Lane i counts the columns before i, i+LANES, ...
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 128;
layout(local_size_x = 128) in;
PUSH(vn_push_top_k);

shared uint keys[LANES];

// Larger for larger numbers.
uint key(float x)
{
	const uint u = floatBitsToUint(x), size = u & 0x7FFFFFFFu;

	return size > 0x7F800000u ? 0xFFFFFFFFu : size == 0 ? 0x80000000u : size == u ? u | 0x80000000u : ~u;
}

// How many columns of a row are before column e. All lanes take part.
uint count_before(uint row, uint e)
{
	const uint lane = gl_LocalInvocationID.x, mine = key(float(p.x.v[row + min(e, p.E - 1)]));
	uint n = 0;

	for (uint from = 0; from < p.E; from += LANES) {
		barrier(); // the keys before these were read
		keys[lane] = key(float(p.x.v[row + min(from + lane, p.E - 1)]));
		barrier();
		for (uint i = 0; i < min(LANES, p.E - from); i++)
			n += keys[i] > mine || (keys[i] == mine && from + i < e) ? 1 : 0;
	}
	return n;
}

void main()
{
	for (uint t = gl_WorkGroupID.x; t < p.T; t += gl_NumWorkGroups.x)
		for (uint from = 0; from < p.E; from += LANES) {
			const uint e = from + gl_LocalInvocationID.x, n = count_before(t * p.E, e);
			if (e < p.E && n < p.k)
				p.y.v[t * p.k + n] = float(e);
		}
}
