#version 460
// linear_vec: x w^T + bias for one token: a matrix times a vector.
//
//   y[m] = sum_n x[n] w[m,n] + b[m]
//
//   x (N) real in     w (M,N) real in     b (M) real in, or none     y (M) real out
//   push      vn_push_linear (T is 1); shares: lanes that share an output, a power of two
//   dispatch  any x: a workgroup makes 128 / shares outputs, in strides of the grid
//
// GATED: two products, w_up (M,N), b_up, up (M) those of the second, and gated[m] = f(y[m]) * up[m], f: activation.glsl;
// push vn_push_linear_gated. The bits are those of one after the other: what is stored goes on.
//
// Lane i of an output sums pieces of 16 bytes i, i + shares, ... of a row, each by itself before it joins the others;
// then the lanes fold in halves. Rows that cannot be read so wide are read number by number in the same order, so
// the bits do not depend on it.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "linear.glsl"
#if GATED
#include "stored.glsl"
#include "activation.glsl"
#endif

const uint LANES = 128, FLIGHT = 4; // loads under way
layout(local_size_x = 128) in;

#if STORE_F16
const uint EACH = 8;
#define piece uvec4
#else
const uint EACH = 4;
#define piece vec4
#endif
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Pieces { piece v[]; };

shared sum_t part[LANES];
#if GATED
shared sum_t part_up[LANES];
#endif

sum_t dot_of(piece x, piece w)
{
	sum_t s = sum_t(0.0);

	[[unroll]] for (uint i = 0; i < 4; i++) {
#if SUM_F16
		const f16vec2 a = unpackFloat2x16(x[i]), b = unpackFloat2x16(w[i]);
#elif STORE_F16
		const vec2 a = unpackHalf2x16(x[i]), b = unpackHalf2x16(w[i]);
#endif
#if STORE_F16
		s = fma(a.x, b.x, s);
		s = fma(a.y, b.y, s);
#else
		s = fma(x[i], w[i], s);
#endif
	}
	return s;
}

sum_t wide_row(Real weight, uint m, uint lane)
{
	const uint n = p.N / EACH, row = m * n, step = p.shares;
	sum_t sum = sum_t(0.0);
	uint k = lane;

	for (; k + (FLIGHT - 1) * step < n; k += FLIGHT * step) {
		piece x[FLIGHT], w[FLIGHT];
		[[unroll]] for (uint i = 0; i < FLIGHT; i++)
			w[i] = Pieces(weight).v[row + k + i * step];
		[[unroll]] for (uint i = 0; i < FLIGHT; i++)
			x[i] = Pieces(p.x).v[k + i * step];
		[[unroll]] for (uint i = 0; i < FLIGHT; i++)
			sum += dot_of(x[i], w[i]);
	}
	for (; k < n; k += step)
		sum += dot_of(Pieces(p.x).v[k], Pieces(weight).v[row + k]);
	return sum;
}

sum_t narrow_row(Real weight, uint m, uint lane)
{
	sum_t sum = sum_t(0.0);

	for (uint k = lane * EACH; k < p.N; k += p.shares * EACH) {
		sum_t s = sum_t(0.0);
		for (uint n = k; n < min(k + EACH, p.N); n++)
			s = fma(sum_t(p.x.v[n]), sum_t(weight.v[m * p.N + n]), s);
		sum += s;
	}
	return sum;
}

// This lane's share of output m.
sum_t row_of(Real weight, uint m, uint lane)
{
	return m >= p.M ? sum_t(0.0) : p.width >= EACH ? wide_row(weight, m, lane) : narrow_row(weight, m, lane);
}

// Output m of a sum.
float with_bias(sum_t sum, uint has_bias, Real b, uint m)
{
	if (has_bias != 0)
		sum += sum_t(b.v[m]);
	return float(sum);
}

void main()
{
	const uint id = gl_LocalInvocationID.x, outs = LANES / p.shares, lane = id % p.shares;

	for (uint m0 = gl_WorkGroupID.x * outs; m0 < p.M; m0 += gl_NumWorkGroups.x * outs) {
		const uint m = m0 + id / p.shares;
		part[id] = row_of(p.w, m, lane);
#if GATED
		part_up[id] = row_of(p.w_up, m, lane);
#endif
		barrier();
		for (uint k = p.shares / 2; k > 0; k /= 2) {
			if (lane < k) {
				part[id] += part[id + k];
#if GATED
				part_up[id] += part_up[id + k];
#endif
			}
			barrier();
		}
		if (lane == 0 && m < p.M) {
#if GATED
			const float gate = put_stored(p.y, m, with_bias(part[id], p.has_bias, p.b, m));
			const float up = put_stored(p.up, m, with_bias(part_up[id], p.up_has_bias, p.b_up, m));
			put(p.gated, m, activation(p.act, gate) * up);
#else
			put(p.y, m, with_bias(part[id], p.has_bias, p.b, m));
#endif
		}
		barrier(); // part is read above and written by the next outputs
	}
}
