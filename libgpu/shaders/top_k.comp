#version 460
// top_k: the columns of the k largest numbers of each row, the largest first.
//
//   s[t,e] = x[t,e], or sigmoid(x[t,e]) + bias[e]
//   y[t,s] = the column of s[t,:] with s others before it
//
//   x (T,E) real in, with WIDE float     bias (E) float in, or none     y (T,k) float out
//   push      vn_push_top_k
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// A column is before another if its number is larger or, of equal ones, if it is the first. A NaN
// is larger than any number, and 0 equals -0. Lane i counts the columns before i, i+LANES, ...
//
// With groups, of E / groups columns, at most MOST of them: a group's number is the sum of its
// `best` largest; only the `used` groups before all others keep their columns, the rest are -inf.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 128, MOST = 256;
layout(local_size_x = 128) in;
PUSH(vn_push_top_k);

#if WIDE
#define FROM Float(p.x)
#else
#define FROM p.x
#endif

shared uint keys[LANES], sums[MOST];
shared bool left[MOST];

float score(uint row, uint e)
{
	const float x = float(FROM.v[row + e]), s = p.sigmoid != 0 ? 1.0 / (1.0 + exp_(-x)) : x;

	return p.has_bias != 0 ? s + p.bias.v[e] : s;
}

// Larger for larger numbers.
uint key(float x)
{
	const uint u = floatBitsToUint(x), size = u & 0x7FFFFFFFu;

	return size > 0x7F800000u ? 0xFFFFFFFFu : size == 0 ? 0x80000000u : size == u ? u | 0x80000000u : ~u;
}

uint key_of(uint row, uint e)
{
	return key(p.groups != 0 && left[e / (p.E / p.groups)] ? -INFINITY : score(row, e));
}

// The sum of the largest numbers of group g.
float sum_of(uint row, uint g)
{
	const uint n = p.E / p.groups, at = g * n;
	uint last = at;
	float sum = 0.0;

	for (uint i = 0; i < p.best; i++) {
		uint next = at + n;
		for (uint e = at; e < at + n; e++) {
			const uint mine = key(score(row, e)), before = key(score(row, last));
			const bool behind = i == 0 || mine < before || (mine == before && e > last);
			if (behind && (next == at + n || mine > key(score(row, next))))
				next = e;
		}
		last = next;
		sum += score(row, last);
	}
	return sum;
}

void leave_groups(uint row)
{
	for (uint g = gl_LocalInvocationID.x; g < p.groups; g += LANES)
		sums[g] = key(sum_of(row, g));
	barrier(); // and `left` was read
	for (uint g = gl_LocalInvocationID.x; g < p.groups; g += LANES) {
		uint n = 0;
		for (uint i = 0; i < p.groups; i++)
			n += sums[i] > sums[g] || (sums[i] == sums[g] && i < g) ? 1 : 0;
		left[g] = n >= p.used;
	}
	barrier();
}

// How many columns of a row are before column e. All lanes take part.
uint count_before(uint row, uint e)
{
	const uint lane = gl_LocalInvocationID.x, mine = key_of(row, min(e, p.E - 1));
	uint n = 0;

	for (uint from = 0; from < p.E; from += LANES) {
		barrier(); // the keys before these were read
		keys[lane] = key_of(row, min(from + lane, p.E - 1));
		barrier();
		for (uint i = 0; i < min(LANES, p.E - from); i++)
			n += keys[i] > mine || (keys[i] == mine && from + i < e) ? 1 : 0;
	}
	return n;
}

void main()
{
	for (uint t = gl_WorkGroupID.x; t < p.T; t += gl_NumWorkGroups.x) {
		if (p.groups != 0)
			leave_groups(t * p.E);
		for (uint from = 0; from < p.E; from += LANES) {
			const uint e = from + gl_LocalInvocationID.x, n = count_before(t * p.E, e);
			if (e < p.E && n < p.k)
				p.y.v[t * p.k + n] = float(e);
		}
	}
}
