#version 460
// add_norm: a sum and its root-mean-square norm, one workgroup per row.
//
//   x[r,n] = a[r,n] + b[r,n]
//   y[r,n] = (offset + g[n]) * x[r,n] / sqrt(mean_n(x[r,:]^2) + eps)
//
//   a, b (R,N) real in     g (N) real in     x, y (R,N) real out
//   shares > 0: first computes b from partial sums and bias, as linear_join does, and writes it
//   push      vn_push_add_norm
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// The bits are those of linear_join, add and rms_norm run one by one: each value is rounded when it
// is stored, and the lanes sum and fold in the same order. A lane scales only numbers that it
// stored itself.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "stored.glsl"

const uint LANES = 128;
layout(local_size_x = 128) in;
PUSH(vn_push_add_norm);
#include "root.glsl"
#include "fold.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Float4 { vec4 v[]; };

// As linear_join: a row of sums is N rounded up to 8.
float joined(uint r, uint n)
{
	const uint row = (p.N + 7) / 8 * 8, all = p.R * row, e = r * row + n;
	float sum = p.sums.v[e];

	for (uint z = 1; z < p.shares; z++)
		sum += p.sums.v[z * all + e];
	if (p.has_bias != 0)
		sum += float(p.bias.v[n]);
	return put_stored(p.b, r * p.N + n, sum);
}

void joined8(uint r, uint n, out vec4 a, out vec4 b)
{
	const uint all = p.R * p.N / 4, e = (r * p.N + n) / 4; // in fours
	a = Float4(p.sums).v[e];
	b = Float4(p.sums).v[e + 1];
	for (uint z = 1; z < p.shares; z++) {
		a += Float4(p.sums).v[z * all + e];
		b += Float4(p.sums).v[z * all + e + 1];
	}
	if (p.has_bias != 0) {
		a += vec4(Real8(p.bias).v[n / 8].a);
		b += vec4(Real8(p.bias).v[n / 8].b);
	}
	put8_stored(p.b, r * p.N + n, a, b);
}

float squares(uint r)
{
	const uint lane = gl_LocalInvocationID.x, row = r * p.N;
	precise float ss = 0.0;

	if (p.N % 8 == 0)
		for (uint n = 8 * lane; n < p.N; n += 8 * LANES) {
			vec4 a, b;
			if (p.shares > 0) {
				joined8(r, n, a, b);
			} else {
				a = vec4(Real8(p.b).v[(row + n) / 8].a);
				b = vec4(Real8(p.b).v[(row + n) / 8].b);
			}
			a = vec4(Real8(p.a).v[(row + n) / 8].a) + a;
			b = vec4(Real8(p.a).v[(row + n) / 8].b) + b;
			put8_stored(p.x, row + n, a, b);
			ss += ((a.x * a.x + a.y * a.y) + (a.z * a.z + a.w * a.w))
			    + ((b.x * b.x + b.y * b.y) + (b.z * b.z + b.w * b.w));
		}
	else
		for (uint n = lane; n < p.N; n += LANES) {
			const float b = p.shares > 0 ? joined(r, n) : float(p.b.v[row + n]);
			const float x = put_stored(p.x, row + n, float(p.a.v[row + n]) + b);
			ss += x * x;
		}
	return ss;
}

void scale(uint row, float root)
{
	const uint lane = gl_LocalInvocationID.x;

	if (p.N % 8 == 0)
		for (uint n = lane; n < p.N / 8; n += LANES) {
			vec4 a, b;
			stored8(p.x, row + 8 * n, a, b);
			put8(p.y, row + 8 * n, (p.offset + vec4(Real8(p.g).v[n].a)) * (a / root),
			     (p.offset + vec4(Real8(p.g).v[n].b)) * (b / root));
		}
	else
		for (uint n = lane; n < p.N; n += LANES)
			put(p.y, row + n, (p.offset + float(p.g.v[n])) * (stored(p.x, row + n) / root));
}

void main()
{
	for (uint r = gl_WorkGroupID.x; r < p.R; r += gl_NumWorkGroups.x)
		scale(r * p.N, root_of(fold_sum(squares(r)), float(p.N)));
}
