#version 460
// linear_tile: x w^T + bias for several tokens.
//
//   y[t,m] = sum_n x[t,n] w[m,n] + b[m]
//
//   x (T,N) real in     w (M,N) real in     b (M) real in, or none
//   y (T,M) real out, rows y_stride apart; with shares > 1 partial sums instead, as linear_coop
//   push      vn_push_linear
//   dispatch  x: tiles of TT tokens, times shares, y: tiles of TM columns;
//             both in strides of the grid
//
// Consecutive workgroups read the same rows of w, which are many; the rows of x are few and
// stay in the cache.
//
// A lane keeps EACH_T tokens by EACH_M columns in registers, in groups of four that are TT or
// TM / EACH * 4 apart, so that neighbouring lanes read neighbouring words of shared memory. Panels
// of STEP inputs pass through shared memory, transposed, while the next panel is loaded into
// registers; AT_ONCE inputs of a panel are unrolled. Each output is one running sum over n = 0, 1,
// ... in order, or one such sum per share. So the bits of an output do not depend on its tile.
//
// GATED: two products of one shape and their gated product, as in linear_vec.comp. Half of a tile's
// columns are columns of the gate, the other half the same columns of w_up; a lane has groups of
// both. shares is 1.
//
// EXPERTS: the rows of a tile and their matrices are those of experts.glsl; shares is 1. dispatch:
// as many tiles of rows as T pairs and E experts can need.
//
// No load is in a branch, because a branch would delay the next load. Rows and inputs past the end
// repeat the last one; their sums are not used.
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
#if GATED
const uint COLUMNS = TM / 2; // of the result
Real weight(uint r) { return r < COLUMNS ? W : W_UP; }
#define WEIGHT(i) weight(i * LANES / 2 % TM) // all lanes take rows of one weight at once
#else
const uint COLUMNS = TM;
Real weight(uint r) { return W; }
#define WEIGHT(i) W
#endif
layout(local_size_x = TT / EACH_T * (TM / EACH_M)) in;

layout(buffer_reference, std430, buffer_reference_align = 16) buffer Float4 { vec4 v[]; };

shared sum4 xs[2 * STEP * X_ROW], ws[2 * STEP * W_ROW];

sum4 x_next[X_MINE], w_next[W_MINE];
uint x_row[X_MINE], w_row[W_MINE]; // where those rows begin

// Row of the e-th group of four inputs in a panel of `rows` rows: two lanes share a sector of
// memory, the next two take the next row.
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
		w_next[i] = sum4(Real4(WEIGHT(i)).v[(w_row[i] + min(n0 + input_of(mine(i), TM), p.N - 4)) / 4]);
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
		xs[(stage * STEP + n) * X_ROW + r / 4][r % 4] =
		    sum_t(p.x.v[x_row_of(min(t0 + r, rows_end - 1)) * p.N + min(n0 + n, p.N - 1)]);
	}
	for (uint e = gl_LocalInvocationID.x; e < TM * STEP; e += LANES) {
		const uint r = e / STEP, n = e % STEP;
		ws[(stage * STEP + n) * W_ROW + r / 4][r % 4] =
		    sum_t(weight(r).v[min(m0 + r % COLUMNS, p.M - 1) * p.N + min(n0 + n, p.N - 1)]);
	}
}

sum4 acc[EACH_T][EACH_M / 4];

// Adds one input to every sum of the lane. n: its row in shared memory.
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

#if GATED
// Adds the bias and stores an output, of one of the two products.
void leave_one(uint at, uint m, sum_t sum, bool up)
{
	if (up)
		put(p.up, at, float(p.up_has_bias != 0 ? sum + sum_t(B_UP.v[m]) : sum));
	else
		put(p.y, at, float(p.has_bias != 0 ? sum + sum_t(B.v[m]) : sum));
}

// Reads back what this lane has stored, in a loop that is not unrolled,
// because an activation is much code.
void leave(uint t0, uint m0, uint share, uint lt, uint lm)
{
	const uint m4 = m0 + lm * 4;
	const bool wide = p.y_wide != 0 && p.M % 4 == 0;

	[[unroll]] for (uint i = 0; i < EACH_T; i++) {
		const uint t = t0 + (lt + i / 4 * DOWN) * 4 + i % 4;
		if (t >= rows_end || m4 >= p.M)
			continue;
		if (wide) {
			sum4 gate = acc[i][0], up = acc[i][1];
			if (p.has_bias != 0)
				gate += sum4(Real4(B).v[m4 / 4]);
			if (p.up_has_bias != 0)
				up += sum4(Real4(B_UP).v[m4 / 4]);
			put4(p.y, t * p.y_stride + m4, vec4(gate));
			put4(p.up, t * p.y_stride + m4, vec4(up));
		} else {
			[[unroll]] for (uint j = 0; j < 8; j++)
				if (m4 + j % 4 < p.M)
					leave_one(t * p.y_stride + m4 + j % 4, m4 + j % 4, acc[i][j / 4][j % 4], j >= 4);
		}
	}
	[[dont_unroll]] for (uint i = 0; i < EACH_T; i++) {
		const uint t = t0 + (lt + i / 4 * DOWN) * 4 + i % 4, at = t * p.y_stride + m4;
		if (t >= rows_end)
			continue;
		if (wide && m4 < p.M) {
			vec4 x = vec4(Real4(p.y).v[at / 4]), up = vec4(Real4(p.up).v[at / 4]);
			[[unroll]] for (uint j = 0; j < 4; j++)
				x[j] = gated(x[j], up[j]);
			put4(p.gated, at, x);
		} else {
			[[dont_unroll]] for (uint j = 0; j < 4 && m4 + j < p.M; j++)
				put(p.gated, at + j, gated(float(p.y.v[at + j]), float(p.up.v[at + j])));
		}
	}
}
#else
// Where the sums of a tile go: rows of y, or those of a share.
void leave(uint t0, uint m0, uint share, uint lt, uint lm)
{
	const bool parts = p.shares > 1;
	const uint row = (p.M + 7) / 8 * 8;

	if (!parts && p.has_bias != 0)
		[[unroll]] for (uint j = 0; j < EACH_M; j++) {
			const sum_t b = sum_t(B.v[min(m0 + (lm + j / 4 * ACROSS) * 4 + j % 4, p.M - 1)]);
			[[unroll]] for (uint i = 0; i < EACH_T; i++)
				acc[i][j / 4][j % 4] += b;
		}
	if (parts || (p.y_wide != 0 && p.M % 4 == 0)) {
#if !STORE_F16
		// Both are floats: one common path is less code to load.
		Real y = p.y;
		if (parts)
			y = Real(p.sums);
		const uint stride = parts ? row : p.y_stride, first = parts ? share * p.T : 0;
#endif
		[[unroll]] for (uint i = 0; i < EACH_T; i++) {
			const uint t = t0 + (lt + i / 4 * DOWN) * 4 + i % 4;
			[[unroll]] for (uint j = 0; j < EACH_M / 4; j++) {
				const uint m = m0 + (lm + j * ACROSS) * 4;
				if (t >= rows_end || m >= p.M)
					continue;
#if STORE_F16
				if (parts)
					Float4(p.sums).v[((share * p.T + t) * row + m) / 4] = vec4(acc[i][j]);
				else
					put4(p.y, y_row_of(t) * p.y_stride + m, vec4(acc[i][j]));
#else
				put4(y, (first + y_row_of(t)) * stride + m, acc[i][j]);
#endif
			}
		}
	} else {
		[[unroll]] for (uint i = 0; i < EACH_T; i++) {
			const uint t = t0 + (lt + i / 4 * DOWN) * 4 + i % 4;
			[[unroll]] for (uint j = 0; j < EACH_M; j++) {
				const uint m = m0 + (lm + j / 4 * ACROSS) * 4 + j % 4;
				if (t < rows_end && m < p.M)
					put(p.y, y_row_of(t) * p.y_stride + m, float(acc[i][j / 4][j % 4]));
			}
		}
	}
}

#endif

void tile(uint t0, uint m0, uint share)
{
	const uint lm = gl_LocalInvocationID.x % ACROSS, lt = gl_LocalInvocationID.x / ACROSS;
	const uint panels = (p.N + STEP - 1) / STEP, first = share * panels / p.shares * STEP;
	const uint end = min((share + 1) * panels / p.shares * STEP, p.N);
	const bool fours = p.width >= 4;

	[[unroll]] for (uint i = 0; i < X_MINE; i++)
		x_row[i] = x_row_of(min(t0 + row_of(mine(i), TT), rows_end - 1)) * p.N;
	[[unroll]] for (uint i = 0; i < W_MINE; i++)
		w_row[i] = min(m0 + row_of(mine(i), TM) % COLUMNS, p.M - 1) * p.N;
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

#if EXPERTS
void main()
{
	const uint tiles = count_tiles(TT);

	for (uint m0 = gl_WorkGroupID.y * COLUMNS; m0 < p.M; m0 += gl_NumWorkGroups.y * COLUMNS)
		for (uint i = gl_WorkGroupID.x; i < tiles; i += gl_NumWorkGroups.x) {
			const uint t0 = find_tile(i, TT);
			if (t0 < rows_end)
				tile(t0, m0, 0);
		}
}
#else
void main()
{
	const uint down = (p.T + TT - 1) / TT;

	for (uint m0 = gl_WorkGroupID.y * COLUMNS; m0 < p.M; m0 += gl_NumWorkGroups.y * COLUMNS)
		for (uint i = gl_WorkGroupID.x; i < down * p.shares; i += gl_NumWorkGroups.x)
			tile(i % down * TT, m0, i / down);
}
#endif
