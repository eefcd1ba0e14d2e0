#version 460
// linear_vec: x w^T + bias for one token: a matrix times a vector.
//
//   y[m] = sum_n x[n] w[m,n] + b[m]
//
//   x (N) real in     w (M,N) real in     b (M) real in, or none     y (M) real out
//   push      vn_push_linear (T is 1); shares: lanes that share an output, a power of two
//   dispatch  any x: a workgroup computes 128 / shares outputs, in strides of the grid
//
// GATED: a second product up[m] with w_up (M,N) and b_up, and gated[m] = f(y[m]) * up[m] (f:
// activation.glsl); push vn_push_linear. The bits are those of separate shaders, because each
// continues with the stored numbers.
//
// EXPERTS: one vector for each of T pairs of a token and a slot, with the matrices of its expert;
// if it has none, the outputs are 0. dispatch y: pairs, in strides of the grid. GATED: x is the row
// of the pair's token, which has k pairs.
//
// Lane i of an output takes the pieces of 16 bytes i, i + shares, ... of a row. It sums each piece
// by itself, then adds it to the others; then the lanes fold in halves. Rows that are not aligned
// to 16 bytes are read number by number in the same order, so the bits do not depend on alignment.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "linear.glsl"
#if GATED
#include "stored.glsl"
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

#if GATED
const uint ROWS = 2; // outputs whose loads are under way together
Real weight(uint r) { return r == 0 ? W : W_UP; }
#else
const uint ROWS = 1;
Real weight(uint r) { return W; }
#endif

shared sum_t part[ROWS][LANES];

#if EXPERTS
uint x_at, y_at; // where the rows of a pair begin
bool is_used;    // it has an expert

void use_pair(uint pair)
{
	const float id = Float(p.rows).v[pair];

	is_used = id >= 0.0 && id < float(p.E);
	if (is_used)
		use_expert(uint(id));
#if GATED
	x_at = pair / p.k * p.N;
#else
	x_at = pair * p.N;
#endif
	y_at = pair * p.M;
}
#else
const uint x_at = 0, y_at = 0;
const bool is_used = true;
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

void wide_rows(uint m, uint lane, inout sum_t sum[ROWS])
{
	const uint n = p.N / EACH, row = m * n, step = p.shares;
	uint k = lane;

	for (; k + (FLIGHT - 1) * step < n; k += FLIGHT * step) {
		piece x[FLIGHT], w[ROWS][FLIGHT];
		[[unroll]] for (uint r = 0; r < ROWS; r++)
			[[unroll]] for (uint i = 0; i < FLIGHT; i++)
				w[r][i] = Pieces(weight(r)).v[row + k + i * step];
		[[unroll]] for (uint i = 0; i < FLIGHT; i++)
			x[i] = Pieces(p.x).v[x_at / EACH + k + i * step];
		[[unroll]] for (uint r = 0; r < ROWS; r++)
			[[unroll]] for (uint i = 0; i < FLIGHT; i++)
				sum[r] += dot_of(x[i], w[r][i]);
	}
	for (; k < n; k += step) {
		const piece x = Pieces(p.x).v[x_at / EACH + k];
		[[unroll]] for (uint r = 0; r < ROWS; r++)
			sum[r] += dot_of(x, Pieces(weight(r)).v[row + k]);
	}
}

void narrow_rows(uint m, uint lane, inout sum_t sum[ROWS])
{
	for (uint k = lane * EACH; k < p.N; k += p.shares * EACH)
		[[unroll]] for (uint r = 0; r < ROWS; r++) {
			sum_t s = sum_t(0.0);
			for (uint n = k; n < min(k + EACH, p.N); n++)
				s = fma(sum_t(p.x.v[x_at + n]), sum_t(weight(r).v[m * p.N + n]), s);
			sum[r] += s;
		}
}

// Output m of a sum.
float with_bias(sum_t sum, uint has_bias, Real b, uint m)
{
	if (has_bias != 0 && is_used)
		sum += sum_t(b.v[m]);
	return float(sum);
}

void vector()
{
	const uint id = gl_LocalInvocationID.x, outs = LANES / p.shares, lane = id % p.shares;

	for (uint m0 = gl_WorkGroupID.x * outs; m0 < p.M; m0 += gl_NumWorkGroups.x * outs) {
		const uint m = m0 + id / p.shares;
		sum_t sum[ROWS];
		[[unroll]] for (uint r = 0; r < ROWS; r++)
			sum[r] = sum_t(0.0);
		if (is_used && m < p.M && p.width >= EACH)
			wide_rows(m, lane, sum);
		else if (is_used && m < p.M)
			narrow_rows(m, lane, sum);
		[[unroll]] for (uint r = 0; r < ROWS; r++)
			part[r][id] = sum[r];
		barrier();
		for (uint k = p.shares / 2; k > 0; k /= 2) {
			if (lane < k)
				[[unroll]] for (uint r = 0; r < ROWS; r++)
					part[r][id] += part[r][id + k];
			barrier();
		}
		if (lane == 0 && m < p.M) {
#if GATED
			const float gate = put_stored(p.y, y_at + m, with_bias(part[0][id], p.has_bias, B, m));
			const float up = put_stored(p.up, y_at + m, with_bias(part[1][id], p.up_has_bias, B_UP, m));
			put(p.gated, y_at + m, gated(gate, up));
#else
			put(p.y, y_at + m, with_bias(part[0][id], p.has_bias, B, m));
#endif
		}
		barrier(); // part is read above and written by the next outputs
	}
}

void main()
{
#if EXPERTS
	for (uint pair = gl_WorkGroupID.y; pair < p.T; pair += gl_NumWorkGroups.y) {
		use_pair(pair);
		vector();
	}
#else
	vector();
#endif
}
