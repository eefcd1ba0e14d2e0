#version 460
// rope: rotary position embedding, half-split pairing.
//
//   i < R/2:  y[t,h,i]     = x[t,h,i] c[t,i]     - x[t,h,i+R/2] s[t,i]
//             y[t,h,i+R/2] = x[t,h,i+R/2] c[t,i] + x[t,h,i] s[t,i]
//   d >= R:   y[t,h,d]     = x[t,h,d]
//
//   x (T,H,K) real in     table (T,R/2,2) float in: c, s     y (T,H,K) real out
//   push      vn_push_rope
//   dispatch  any x; a lane takes one element, or four pairs, or four unrotated ones,
//             in strides of the grid
//
// Cosine and sine come from the host: the device's own may be off by 2^-11. Products are rounded
// before they are added, here and in norm_rope.comp: the bits must not depend on whether a
// compiler fuses them.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_rope);

// The distance of the two columns of a pair; whether column d is the first of its pair;
// the index of its pair.
uint apart()      { return p.R / 2; }
bool low(uint d)  { return d < apart(); }
uint pair(uint d) { return low(d) ? d : d - apart(); }

// The host checks the same condition: ops.c.
bool by_four() { return p.R % 8 == 0 && p.K % 4 == 0; }

layout(buffer_reference, std430, buffer_reference_align = 16) buffer Float4 { vec4 v[]; };

// The order in a head: first its R/8 groups of four pairs, then groups of four unrotated elements.
void four(uint u)
{
	const uint pairs = p.R / 8, per = pairs + (p.K - p.R) / 4, row = u / per, i = u % per;
	const uint d = i < pairs ? 4 * i : p.R + 4 * (i - pairs), e = row * p.K + d;
	const vec4 a = vec4(Real4(p.x).v[e / 4]);

	if (i >= pairs) {
		put4(p.y, e, a);
		return;
	}
	const uint at = (row / p.H * (p.R / 2) + d) / 2; // in fours: two pairs
	const vec4 t0 = Float4(p.table).v[at], t1 = Float4(p.table).v[at + 1], b = vec4(Real4(p.x).v[(e + p.R / 2) / 4]);
	const vec4 c = vec4(t0.xz, t1.xz), s = vec4(t0.yw, t1.yw);
	precise const vec4 below = a * c - b * s, above = b * c + a * s;
	put4(p.y, e, below);
	put4(p.y, e + p.R / 2, above);
}

void main()
{
	const uint half_ = p.R / 2;

	if (by_four()) {
		for (uint u = gl_GlobalInvocationID.x; u < p.T * p.H * ((p.K - p.R / 2) / 4); u += gl_NumWorkGroups.x * 64)
			four(u);
		return;
	}

	for (uint e = gl_GlobalInvocationID.x; e < p.T * p.H * p.K; e += gl_NumWorkGroups.x * 64) {
		const uint t = e / (p.H * p.K), d = e % p.K, i = pair(d);
		if (i >= half_) {
			p.y.v[e] = p.x.v[e];
			continue;
		}
		const uint  at  = (t * half_ + i) * 2;
		const float c = p.table.v[at], s = p.table.v[at + 1];
		const float a = float(p.x.v[e]), b = float(p.x.v[low(d) ? e + apart() : e - apart()]);
		precise const float rotated = low(d) ? a * c - b * s : a * c + b * s;
		put(p.y, e, rotated);
	}
}
