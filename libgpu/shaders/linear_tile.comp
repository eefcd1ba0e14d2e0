#version 460
// linear_tile: x w^T + bias for several tokens.
//
//   y[t,m] = sum_n x[t,n] w[m,n] + b[m]
//
//   x (T,N) real in     w (M,N) real in     b (M) real in, or none
//   y (T,M) real out, rows y_stride apart
//   push      vn_push_linear
//   dispatch  x: tiles of 64 columns, y: tiles of 8 ROWS tokens; both in
//             strides of the grid
//
// A workgroup of 64 lanes makes 64 columns of 8 ROWS tokens; a lane keeps 8
// columns of ROWS tokens in registers: columns lane%8 + 8i, tokens lane/8 + 8i,
// so that neighbouring lanes read neighbouring words of shared memory. Panels
// of STEP inputs pass through shared memory, transposed. Each output is one
// running sum over n = 0, 1, ... in order, for any tile and any ROWS: the bits
// of an output do not depend on where the matrix was cut.
//
// sum_t is float; with SUM_F16 it is half and every fma rounds.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "linear.glsl"

#ifndef ROWS
#define ROWS 8
#endif

const uint TM = 64, TT = 8 * ROWS, STEP = 16, LANES = 64;
layout(local_size_x = 64) in;

shared sum_t xs[STEP][TT + 1]; // + 1: a column of stores hits different banks
shared sum_t ws[STEP][TM + 1];

void load_x(uint t0, uint n0)
{
	for (uint e = gl_LocalInvocationID.x; e < TT * STEP / 4; e += LANES) {
		const uint r = e / (STEP / 4), n = e % (STEP / 4) * 4, t = t0 + r;
		if (p.width >= 4) {
			const bool in_range = t < p.T && n0 + n < p.N;
			const vec4 v = in_range ? vec4(Real4(p.x).v[(t * p.N + n0 + n) / 4]) : vec4(0.0);
			[[unroll]] for (uint i = 0; i < 4; i++)
				xs[n + i][r] = sum_t(v[i]);
		} else {
			[[unroll]] for (uint i = 0; i < 4; i++) {
				const bool in_range = t < p.T && n0 + n + i < p.N;
				xs[n + i][r] = in_range ? sum_t(p.x.v[t * p.N + n0 + n + i]) : sum_t(0.0);
			}
		}
	}
}

void load_w(uint m0, uint n0)
{
	for (uint e = gl_LocalInvocationID.x; e < TM * STEP / 4; e += LANES) {
		const uint r = e / (STEP / 4), n = e % (STEP / 4) * 4, m = m0 + r;
		if (p.width >= 4) {
			const bool in_range = m < p.M && n0 + n < p.N;
			const vec4 v = in_range ? vec4(Real4(p.w).v[(m * p.N + n0 + n) / 4]) : vec4(0.0);
			[[unroll]] for (uint i = 0; i < 4; i++)
				ws[n + i][r] = sum_t(v[i]);
		} else {
			[[unroll]] for (uint i = 0; i < 4; i++) {
				const bool in_range = m < p.M && n0 + n + i < p.N;
				ws[n + i][r] = in_range ? sum_t(p.w.v[m * p.N + n0 + n + i]) : sum_t(0.0);
			}
		}
	}
}

void tile(uint t0, uint m0)
{
	const uint lm = gl_LocalInvocationID.x % 8, lt = gl_LocalInvocationID.x / 8;
	sum_t acc[ROWS][8];

	[[unroll]] for (uint i = 0; i < ROWS; i++)
		[[unroll]] for (uint j = 0; j < 8; j++)
			acc[i][j] = sum_t(0.0);

	for (uint n0 = 0; n0 < p.N; n0 += STEP) {
		load_x(t0, n0);
		load_w(m0, n0);
		barrier();
		// Not padded to STEP: a term 0 * 0 more would turn a sum of -0 to +0.
		const uint n1 = min(STEP, p.N - n0);
		for (uint n = 0; n < n1; n++) {
			sum_t a[ROWS], b[8];
			[[unroll]] for (uint i = 0; i < ROWS; i++)
				a[i] = xs[n][lt + 8 * i];
			[[unroll]] for (uint j = 0; j < 8; j++)
				b[j] = ws[n][lm + 8 * j];
			[[unroll]] for (uint i = 0; i < ROWS; i++)
				[[unroll]] for (uint j = 0; j < 8; j++)
					acc[i][j] = fma(a[i], b[j], acc[i][j]);
		}
		barrier();
	}

	[[unroll]] for (uint i = 0; i < ROWS; i++) {
		const uint t = t0 + lt + 8 * i;
		[[unroll]] for (uint j = 0; j < 8; j++) {
			const uint m = m0 + lm + 8 * j;
			if (t < p.T && m < p.M) {
				if (p.has_bias != 0)
					acc[i][j] += sum_t(p.b.v[m]);
				put(p.y, t * p.y_stride + m, float(acc[i][j]));
			}
		}
	}
}

void main()
{
	for (uint t0 = gl_WorkGroupID.y * TT; t0 < p.T; t0 += gl_NumWorkGroups.y * TT)
		for (uint m0 = gl_WorkGroupID.x * TM; m0 < p.M; m0 += gl_NumWorkGroups.x * TM)
			tile(t0, m0);
}
