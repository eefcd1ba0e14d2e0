#version 460
// linear_tile: x w^T + bias for several tokens.
//
//   y[t,m] = sum_n x[t,n] w[m,n] + b[m]
//
//   x (T,N) real in     w (M,N) real in     b (M) real in, or none
//   y (T,M) real out, rows y_stride apart; with shares > 1 partial sums instead, as linear_coop
//   push      vn_push_linear
//   dispatch  x: tiles of TT tokens, times shares, y: tiles of TM columns; both in strides of the grid
//
// Workgroups that follow one another read the same rows of w, which are many; those of x are few and stay near.
//
// A lane keeps EACH_T tokens by EACH_M columns in registers, fours of either that lie TT or TM / EACH * 4 apart, so that
// neighbouring lanes read neighbouring words of shared memory. Panels of STEP inputs pass through it,
// transposed, while the next one is under way in registers; AT_ONCE of its inputs are unrolled. Each output is one running sum over n = 0, 1, ... in
// order, for any tile, or one for each share of them: the bits of an output do not depend on where the matrix was cut.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "linear.glsl"

#if SUM_F16
#define sum4 f16vec4
#else
#define sum4 vec4
#endif

const uint LANES = TT / EACH_T * (TM / EACH_M), FOURS = STEP / 4;
const uint ACROSS = TM / EACH_M, DOWN = TT / EACH_T; // lanes
const uint X_ROW = TT / 4 + 1, W_ROW = TM / 4 + 1;   // + 1: a column of stores hits different banks
const uint X_MINE = TT * FOURS / LANES, W_MINE = TM * FOURS / LANES;
layout(local_size_x = TT / EACH_T * (TM / EACH_M)) in;

shared sum4 xs[2 * STEP * X_ROW], ws[2 * STEP * W_ROW];

sum4 x_next[X_MINE], w_next[W_MINE];

// Four inputs from n on of row r of a, which has `rows`; 0 past either end.
sum4 four(Real a, uint r, uint rows, uint n)
{
	sum4 v = sum4(0.0);

	if (r < rows && n < p.N) {
		if (p.width >= 4)
			v = sum4(Real4(a).v[(r * p.N + n) / 4]);
		else
			[[unroll]] for (uint i = 0; i < 4; i++)
				if (n + i < p.N)
					v[i] = sum_t(a.v[r * p.N + n + i]);
	}
	return v;
}

// The e-th four of a panel of so many rows: two lanes share a sector of memory, and neighbours go down the rows.
uint row_of(uint e, uint rows)
{
	return e / 2 % rows;
}

uint input_of(uint e, uint rows)
{
	return (e % 2 + e / (2 * rows) * 2) * 4;
}

void fetch(uint t0, uint m0, uint n0)
{
	[[unroll]] for (uint i = 0; i < X_MINE; i++) {
		const uint e = gl_LocalInvocationID.x + i * LANES;
		x_next[i] = four(p.x, t0 + row_of(e, TT), p.T, n0 + input_of(e, TT));
	}
	[[unroll]] for (uint i = 0; i < W_MINE; i++) {
		const uint e = gl_LocalInvocationID.x + i * LANES;
		w_next[i] = four(p.w, m0 + row_of(e, TM), p.M, n0 + input_of(e, TM));
	}
}

void keep(uint stage)
{
	[[unroll]] for (uint i = 0; i < X_MINE; i++) {
		const uint e = gl_LocalInvocationID.x + i * LANES, r = row_of(e, TT), n = stage * STEP + input_of(e, TT);
		[[unroll]] for (uint j = 0; j < 4; j++)
			xs[(n + j) * X_ROW + r / 4][r % 4] = x_next[i][j];
	}
	[[unroll]] for (uint i = 0; i < W_MINE; i++) {
		const uint e = gl_LocalInvocationID.x + i * LANES, r = row_of(e, TM), n = stage * STEP + input_of(e, TM);
		[[unroll]] for (uint j = 0; j < 4; j++)
			ws[(n + j) * W_ROW + r / 4][r % 4] = w_next[i][j];
	}
}

sum4 acc[EACH_T][EACH_M / 4];

// One input into every sum of the lane. n: its row in shared memory.
void add(uint lt, uint lm, uint n)
{
	sum4 b[EACH_M / 4];

	[[unroll]] for (uint j = 0; j < EACH_M / 4; j++)
		b[j] = ws[n * W_ROW + lm + j * ACROSS];
	[[unroll]] for (uint i = 0; i < EACH_T / 4; i++) {
		const sum4 a = xs[n * X_ROW + lt + i * DOWN];
		[[unroll]] for (uint k = 0; k < 4; k++)
			[[unroll]] for (uint j = 0; j < EACH_M / 4; j++)
				acc[i * 4 + k][j] = fma(sum4(a[k]), b[j], acc[i * 4 + k][j]);
	}
}

void tile(uint t0, uint m0, uint share)
{
	const uint lm = gl_LocalInvocationID.x % ACROSS, lt = gl_LocalInvocationID.x / ACROSS;
	const uint panels = (p.N + STEP - 1) / STEP, first = share * panels / p.shares * STEP;
	const uint end = min((share + 1) * panels / p.shares * STEP, p.N);

	[[unroll]] for (uint i = 0; i < EACH_T; i++)
		[[unroll]] for (uint j = 0; j < EACH_M / 4; j++)
			acc[i][j] = sum4(0.0);
	fetch(t0, m0, first);
	keep(0);
	barrier();
	for (uint n0 = first; n0 < end; n0 += STEP) {
		const uint stage = (n0 - first) / STEP % 2;
		if (n0 + STEP < end)
			fetch(t0, m0, n0 + STEP);
		// Not padded to STEP: a term 0 * 0 more would turn a sum of -0 to +0.
		if (n0 + STEP <= end)
			for (uint n = 0; n < STEP; n += AT_ONCE)
				[[unroll]] for (uint i = 0; i < AT_ONCE; i++)
					add(lt, lm, stage * STEP + n + i);
		else
			for (uint n = 0; n < end - n0; n++)
				add(lt, lm, stage * STEP + n);
		if (n0 + STEP < end)
			keep(1 - stage);
		barrier();
	}

	[[unroll]] for (uint i = 0; i < EACH_T; i++) {
		const uint t = t0 + (lt + i / 4 * DOWN) * 4 + i % 4;
		[[unroll]] for (uint j = 0; j < EACH_M; j++) {
			const uint m = m0 + (lm + j / 4 * ACROSS) * 4 + j % 4;
			if (t < p.T && m < p.M && p.shares > 1) {
				p.sums.v[(share * p.T + t) * ((p.M + 7) / 8 * 8) + m] = float(acc[i][j / 4][j % 4]);
			} else if (t < p.T && m < p.M) {
				sum_t sum = acc[i][j / 4][j % 4];
				if (p.has_bias != 0)
					sum += sum_t(p.b.v[m]);
				put(p.y, t * p.y_stride + m, float(sum));
			}
		}
	}
}

void main()
{
	const uint down = (p.T + TT - 1) / TT;

	for (uint m0 = gl_WorkGroupID.y * TM; m0 < p.M; m0 += gl_NumWorkGroups.y * TM)
		for (uint i = gl_WorkGroupID.x; i < down * p.shares; i += gl_NumWorkGroups.x)
			tile(i % down * TT, m0, i / down);
}
