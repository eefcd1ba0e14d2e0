#version 460
// rope: rotary position embedding of R columns, from `first` on.
//
//   i < R/2:  y[t,h,first+lo] = x[t,h,first+a] c[t,i] - x[t,h,first+b] s[t,i]
//             y[t,h,first+hi] = x[t,h,first+b] c[t,i] + x[t,h,first+a] s[t,i]
//   others:   y[t,h,d]        = x[t,h,d]
//
// By pairs: lo, hi and a, b are i, i + R/2; or 2i, 2i + 1; or (VN_PAIR_SORTED) the former, and the
// latter.
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
#include "forms.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_rope);

// The host checks the same condition: ops.c.
bool by_four() { return p.R % 8 == 0 && p.K % 4 == 0 && p.first == 0 && p.pairs == VN_PAIR_HALVES; }

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
		const uint t = e / (p.H * p.K), head = e / p.K * p.K + p.first, d = e - head; // large before `first`
		if (d >= p.R) {
			p.y.v[e] = p.x.v[e];
			continue;
		}
		const bool beside = p.pairs == VN_PAIR_NEIGHBOURS, low = beside ? d % 2 == 0 : d < half_;
		const uint i = beside ? d / 2 : low ? d : d - half_, at = (t * half_ + i) * 2;
		const uint first = head + (p.pairs == VN_PAIR_HALVES ? i : 2 * i);
		const float c = p.table.v[at], s = p.table.v[at + 1];
		const float a = float(p.x.v[first]), b = float(p.x.v[first + (p.pairs == VN_PAIR_HALVES ? half_ : 1)]);
		precise const float rotated = low ? a * c - b * s : b * c + a * s;
		put(p.y, e, rotated);
	}
}
