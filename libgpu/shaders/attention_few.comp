#version 460
// attention_few: context of one query of one head over a part of the keys.
//
//   y[i,h,:] = sum_j softmax_j(scale * dot(q[i,h,:], k[j,g,:])) v[j,g,:]     g: h / (H/G)
//
//   q (T,H,K) real in     k, v real in, the cache (mask.glsl)     sinks (H) real in, or none
//   y (T,H,U) real out, or parts (parts.glsl)
//   push      vn_push_attention
//   dispatch  x: parts of each query, y: heads; both in strides of the grid
//
// For calls of few tokens: with one workgroup per block of queries (attention.comp), most of a
// device would be idle. K and U are at most 256. Keys are taken LANES at a time: a lane computes
// the score of one key; then the lanes compute columns of the context, four columns per lane and
// several groups of keys if U is a multiple of four. All in float, with the running maximum of an
// online softmax. The keys that a query sees are one range, so no mask is needed inside it.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "mask.glsl"
#include "parts.glsl"

const uint LANES = 128, KMAX = 256, FLIGHT = 8; // FLIGHT: loads that wait together
layout(local_size_x = 128) in;
#include "fold.glsl"

shared float qs[KMAX];
shared float ps[LANES]; // exp(s - maximum)
shared vec4  cs[LANES]; // the context of each group of keys

float dot8(uint row, uint d)
{
	const vec4 a = vec4(Real8(p.k).v[(row + d) / 8].a), b = vec4(Real8(p.k).v[(row + d) / 8].b);

	return (qs[d] * a.x + qs[d + 1] * a.y + qs[d + 2] * a.z + qs[d + 3] * a.w) +
	       (qs[d + 4] * b.x + qs[d + 5] * b.y + qs[d + 6] * b.z + qs[d + 7] * b.w);
}

float score(uint j, uint h)
{
	const uint row = key_row(j, h);
	float s = 0.0;
	uint  d = 0;

	if (p.K % 8 == 0) {
		for (; d + 8 * FLIGHT <= p.K; d += 8 * FLIGHT)
			[[unroll]] for (uint n = 0; n < FLIGHT; n++)
				s += dot8(row, d + 8 * n);
		for (; d < p.K; d += 8)
			s += dot8(row, d);
	}
	for (; d < p.K; d++)
		s += qs[d] * float(p.k.v[row + d]);
	return capped(s * p.scale);
}

// Columns 4u to 4u+3 of keys j0 + group, j0 + group + groups, ... of n.
vec4 four_columns(uint j0, uint n, uint h, uint u, uint group, uint groups)
{
	vec4 sum = vec4(0.0);

	for (uint c = group; c < n; c += FLIGHT * groups) {
		vec4 v[FLIGHT];
		[[unroll]] for (uint m = 0; m < FLIGHT; m++)
			v[m] = vec4(Real4(p.v).v[value_row(j0 + min(c + m * groups, n - 1), h) / 4 + u]);
		[[unroll]] for (uint m = 0; m < FLIGHT; m++)
			if (c + m * groups < n)
				sum += ps[c + m * groups] * v[m];
	}
	return sum;
}

// Columns d and, in .y, d + LANES.
vec4 single_columns(uint j0, uint n, uint h, uint d)
{
	vec4 sum = vec4(0.0);

	for (uint c = 0; c < n; c++) {
		const uint row = value_row(j0 + c, h);
		if (d < p.U)
			sum.x += ps[c] * float(p.v.v[row + d]);
		if (d + LANES < p.U)
			sum.y += ps[c] * float(p.v.v[row + d + LANES]);
	}
	return sum;
}

void write(uint i, uint h, uint part, uint d, float context, float top, float sum)
{
	if (parts() == 1) {
		put(p.y, (i * p.H + h) * p.U + d, context / with_sink(sum, top, h));
		return;
	}
	const uint at = part_at(i, h, part);
	Float(p.y).v[at + d] = context;
	if (d == 0) {
		Float(p.y).v[at + p.U] = top;
		Float(p.y).v[at + p.U + 1] = sum;
	}
}

void query(uint i, uint h, uint part)
{
	const uint lane = gl_LocalInvocationID.x;
	const bool fours = p.U % 4 == 0;
	const uint units = fours ? p.U / 4 : LANES, groups = LANES / units, u = lane % units, group = lane / units;
	const uint from = max(keys_begin(i), part_begin(part)), to = min(keys_end(i), part_end(part));
	float top = -INFINITY, sum = 0.0;
	vec4  acc = vec4(0.0);

	for (uint d = lane; d < p.K; d += LANES)
		qs[d] = float(p.q.v[(i * p.H + h) * p.K + d]);
	barrier();
	for (uint j0 = from; j0 < to; j0 += LANES) {
		const uint  n = min(LANES, to - j0);
		const float s = lane < n ? score(j0 + lane, h) : -INFINITY;
		const float most = max(top, fold_max(s));
		// Only scores of -inf so far: exp(-inf - 0) is 0, but exp(-inf + inf) would be NaN.
		const float base = most == -INFINITY ? 0.0 : most, old = exp_(top - base);
		const float w = lane < n ? exp_(s - base) : 0.0;
		ps[lane] = w;
		sum = sum * old + fold_sum(w); // and ps is written
		top = most;
		acc *= old;
		if (!fours)
			acc += single_columns(j0, n, h, lane);
		else if (group < groups)
			acc += four_columns(j0, n, h, u, group, groups);
		barrier(); // ps is read above
	}
	cs[lane] = acc;
	barrier();
	if (fours && lane < units)
		for (uint g = 1; g < groups; g++)
			cs[lane] += cs[g * units + lane];
	barrier();
	// Not unrolled: loading code that runs once takes longer than running it.
	[[dont_unroll]] for (uint d = lane; d < p.U; d += LANES)
		write(i, h, part, d, fours ? cs[d / 4][d % 4] : cs[lane][d / LANES], top, sum);
	barrier(); // qs and cs are read above
}

void main()
{
	for (uint h = gl_WorkGroupID.y; h < p.H; h += gl_NumWorkGroups.y)
		for (uint w = gl_WorkGroupID.x; w < p.T * parts(); w += gl_NumWorkGroups.x) {
			const uint i = w / parts(), part = w % parts();
			if (part >= parts_begin(i) && part < parts_end(i))
				query(i, h, part);
		}
}
