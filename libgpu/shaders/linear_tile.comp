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
//
// No load stands in a branch, which would keep the next one waiting: rows and inputs past the end are the last ones again,
// whose sums nobody stores or takes.
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

layout(buffer_reference, std430, buffer_reference_align = 16) buffer Float4 { vec4 v[]; };

shared sum4 xs[2 * STEP * X_ROW], ws[2 * STEP * W_ROW];

sum4 x_next[X_MINE], w_next[W_MINE];
uint x_row[X_MINE], w_row[W_MINE]; // where those rows begin

// The e-th four of a panel of so many rows: two lanes share a sector of memory, and neighbours go down the rows.
uint row_of(uint e, uint rows)
{
	return e / 2 % rows;
}

uint input_of(uint e, uint rows)
{
	return (e % 2 + e / (2 * rows) * 2) * 4;
}

uint mine(uint i)
{
	return gl_LocalInvocationID.x + i * LANES;
}

void fetch(uint n0)
{
	[[unroll]] for (uint i = 0; i < X_MINE; i++)
		x_next[i] = sum4(Real4(p.x).v[(x_row[i] + min(n0 + input_of(mine(i), TT), p.N - 4)) / 4]);
	[[unroll]] for (uint i = 0; i < W_MINE; i++)
		w_next[i] = sum4(Real4(p.w).v[(w_row[i] + min(n0 + input_of(mine(i), TM), p.N - 4)) / 4]);
}

void keep(uint stage)
{
	[[unroll]] for (uint i = 0; i < X_MINE; i++) {
		const uint r = row_of(mine(i), TT), n = stage * STEP + input_of(mine(i), TT);
		[[unroll]] for (uint j = 0; j < 4; j++)
			xs[(n + j) * X_ROW + r / 4][r % 4] = x_next[i][j];
	}
	[[unroll]] for (uint i = 0; i < W_MINE; i++) {
		const uint r = row_of(mine(i), TM), n = stage * STEP + input_of(mine(i), TM);
		[[unroll]] for (uint j = 0; j < 4; j++)
			ws[(n + j) * W_ROW + r / 4][r % 4] = w_next[i][j];
	}
}

// The same, one input after the other, where rows do not begin at fours.
void carry(uint stage, uint t0, uint m0, uint n0)
{
	for (uint e = gl_LocalInvocationID.x; e < TT * STEP; e += LANES) {
		const uint r = e / STEP, n = e % STEP;
		xs[(stage * STEP + n) * X_ROW + r / 4][r % 4] = sum_t(p.x.v[min(t0 + r, p.T - 1) * p.N + min(n0 + n, p.N - 1)]);
	}
	for (uint e = gl_LocalInvocationID.x; e < TM * STEP; e += LANES) {
		const uint r = e / STEP, n = e % STEP;
		ws[(stage * STEP + n) * W_ROW + r / 4][r % 4] = sum_t(p.w.v[min(m0 + r, p.M - 1) * p.N + min(n0 + n, p.N - 1)]);
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

// Where the sums of a tile go: rows of y, or those of a share.
void leave(uint t0, uint m0, uint share, uint lt, uint lm)
{
	const bool parts = p.shares > 1;
	const uint row = (p.M + 7) / 8 * 8;

	if (!parts && p.has_bias != 0)
		[[unroll]] for (uint j = 0; j < EACH_M; j++) {
			const sum_t b = sum_t(p.b.v[min(m0 + (lm + j / 4 * ACROSS) * 4 + j % 4, p.M - 1)]);
			[[unroll]] for (uint i = 0; i < EACH_T; i++)
				acc[i][j / 4][j % 4] += b;
		}
	if (parts || (p.y_wide != 0 && p.M % 4 == 0)) {
#if !STORE_F16
		// Both are floats: one way out is less code to wait for.
		Real y = p.y;
		if (parts)
			y = Real(p.sums);
		const uint stride = parts ? row : p.y_stride, first = parts ? share * p.T : 0;
#endif
		[[unroll]] for (uint i = 0; i < EACH_T; i++) {
			const uint t = t0 + (lt + i / 4 * DOWN) * 4 + i % 4;
			[[unroll]] for (uint j = 0; j < EACH_M / 4; j++) {
				const uint m = m0 + (lm + j * ACROSS) * 4;
				if (t >= p.T || m >= p.M)
					continue;
#if STORE_F16
				if (parts)
					Float4(p.sums).v[((share * p.T + t) * row + m) / 4] = vec4(acc[i][j]);
				else
					put4(p.y, t * p.y_stride + m, vec4(acc[i][j]));
#else
				put4(y, (first + t) * stride + m, acc[i][j]);
#endif
			}
		}
	} else {
		[[unroll]] for (uint i = 0; i < EACH_T; i++) {
			const uint t = t0 + (lt + i / 4 * DOWN) * 4 + i % 4;
			[[unroll]] for (uint j = 0; j < EACH_M; j++) {
				const uint m = m0 + (lm + j / 4 * ACROSS) * 4 + j % 4;
				if (t < p.T && m < p.M)
					put(p.y, t * p.y_stride + m, float(acc[i][j / 4][j % 4]));
			}
		}
	}
}

void tile(uint t0, uint m0, uint share)
{
	const uint lm = gl_LocalInvocationID.x % ACROSS, lt = gl_LocalInvocationID.x / ACROSS;
	const uint panels = (p.N + STEP - 1) / STEP, first = share * panels / p.shares * STEP;
	const uint end = min((share + 1) * panels / p.shares * STEP, p.N);
	const bool fours = p.width >= 4;

	[[unroll]] for (uint i = 0; i < X_MINE; i++)
		x_row[i] = min(t0 + row_of(mine(i), TT), p.T - 1) * p.N;
	[[unroll]] for (uint i = 0; i < W_MINE; i++)
		w_row[i] = min(m0 + row_of(mine(i), TM), p.M - 1) * p.N;
	[[unroll]] for (uint i = 0; i < EACH_T; i++)
		[[unroll]] for (uint j = 0; j < EACH_M / 4; j++)
			acc[i][j] = sum4(0.0);
	if (fours) {
		fetch(first);
		keep(0);
	} else {
		carry(0, t0, m0, first);
	}
	barrier();
	uint stage = 0;
	for (uint n0 = first; n0 < end; n0 += STEP) {
		const uint next = n0 + STEP;
		if (next < end && fours)
			fetch(next);
		// Not padded to STEP: a term 0 * 0 more would turn a sum of -0 to +0.
		if (next <= end)
			for (uint n = 0; n < STEP; n += AT_ONCE)
				[[unroll]] for (uint i = 0; i < AT_ONCE; i++)
					add(lt, lm, stage * STEP + n + i);
		else
			for (uint n = 0; n < end - n0; n++)
				add(lt, lm, stage * STEP + n);
		stage = 1 - stage;
		if (next < end && fours)
			keep(stage);
		else if (next < end)
			carry(stage, t0, m0, next);
		barrier();
	}

	leave(t0, m0, share, lt, lm);
}

void main()
{
	const uint down = (p.T + TT - 1) / TT;

	for (uint m0 = gl_WorkGroupID.y * TM; m0 < p.M; m0 += gl_NumWorkGroups.y * TM)
		for (uint i = gl_WorkGroupID.x; i < down * p.shares; i += gl_NumWorkGroups.x)
			tile(i % down * TT, m0, i / down);
}
