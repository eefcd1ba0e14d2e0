#version 460
// combine: the weighted sum of what the experts of each token made of it.
//
//   y[t,d] = sum_s w[t,s] x[t,s,d]
//
//   x (T,k,D) real in     w (T,k) real in, with WIDE float     y (T,D) real out
//   push      vn_push_combine
//   dispatch  any x; a lane takes eight elements, or one, in strides of the grid
//
// Each output is one running sum over s = 0, 1, ... in float.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_combine);

#if WIDE
float weight(uint i) { return Float(p.w).v[i]; }
#else
float weight(uint i) { return float(p.w.v[i]); }
#endif

void eight(uint e)
{
	const uint row = p.D / 8, t = e / row, d = e % row;
	vec4 a = vec4(0.0), b = vec4(0.0);

	for (uint s = 0; s < p.k; s++) {
		const uint i = t * p.k + s;
		a += weight(i) * vec4(Real8(p.x).v[i * row + d].a);
		b += weight(i) * vec4(Real8(p.x).v[i * row + d].b);
	}
	put8(p.y, 8 * e, a, b);
}

void one(uint e)
{
	const uint t = e / p.D, d = e % p.D;
	float sum = 0.0;

	for (uint s = 0; s < p.k; s++)
		sum += weight(t * p.k + s) * float(p.x.v[(t * p.k + s) * p.D + d]);
	put(p.y, e, sum);
}

void main()
{
	const uint n = p.eights != 0 ? p.T * (p.D / 8) : p.T * p.D;

	for (uint e = gl_GlobalInvocationID.x; e < n; e += gl_NumWorkGroups.x * 64) {
		if (p.eights != 0)
			eight(e);
		else
			one(e);
	}
}
