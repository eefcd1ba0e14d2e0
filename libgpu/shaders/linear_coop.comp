#version 460
// linear_coop: x w^T + bias for several tokens, by cooperative matrices.
//
//   y[t,m] = sum_n x[t,n] w[m,n] + b[m]
//
//   x (T,N) half in     w (M,N) half in     b (M) half in, or none; N a multiple of 8
//   y (T,M) half out, rows y_stride apart; with shares > 1 float partial sums instead, sums
//   (shares,T,M') with M' = M rounded up to 8: linear_join adds them
//   push      vn_push_linear
//   dispatch  any x: tiles of TILE_M x TILE_N matrices of outputs, times shares,
//             in strides of the grid
//
// GATED: two products of one shape and their gated product, as in linear_vec.comp. Half of a tile's
// columns are columns of the gate, the other half the same columns of w_up. shares is 1.
//
// EXPERTS: as in linear_tile.comp; of GATED only the gated product is stored.
//
// A subgroup computes OWN_M x OWN_N matrices of a tile. Panels of PANEL matrices pass through
// shared memory; the next panel is loaded into registers while this one is multiplied. Rows of a
// panel are padded by 16 bytes, so that the rows of a matrix hit different banks. Rows past T or M
// repeat the last row and are not stored; inputs past N are 0. The sum of an output begins at +0
// and adds the N inputs in steps of MK, in order, wherever the output is in a tile: its bits depend
// on N, the shares and the device.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "coop.glsl"
#include "linear.glsl"

const uint BM = TILE_M * MM, BN = TILE_N * MN, BK = PANEL * MK; // tokens, columns, inputs
const uint WM = OWN_M * MM, WN = OWN_N * MN;                   // of a subgroup
const uint SUBGROUPS = TILE_M / OWN_M * (TILE_N / OWN_N), LANES = SUBGROUPS * SUBGROUP;
const uint ROW = BK / 8, PITCH = ROW + 1; // 8 halves to a uvec4
const uint X_EACH = (BM * ROW + LANES - 1) / LANES, W_EACH = (BN * ROW + LANES - 1) / LANES;
const uint BAND = 8; // columns of tiles: workgroups that run together share rows of w
const uint ROWS = LANES / ROW; // rows of a panel that the lanes load together: all of one weight
#if GATED
const uint COLUMNS = BN / 2; // of the result
Real weight(uint i) { return i * ROWS < COLUMNS ? W : W_UP; }
#else
const uint COLUMNS = BN;
Real weight(uint i) { return W; }
#endif
layout(local_size_x = TILE_M / OWN_M * (TILE_N / OWN_N) * SUBGROUP) in;
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Eight { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutEight { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutFour { vec4 v[]; };

// Panels of x, panels of w; then, in their place, rows of results: OUT_M matrices high of each
// subgroup at once, half of its own or all.
const uint W_AT = BM * PITCH, PANELS = (BM + BN) * PITCH;
const uint OUT_ROWS = OUT_M * MM * (TILE_M / OWN_M), OUT_ROW = (BN + 4) / 4; // a row is padded
const uint OUT = OUT_ROWS * OUT_ROW;
shared uvec4 sh[PANELS > OUT ? PANELS : OUT];

uvec4 x_next[X_EACH], w_next[W_EACH];

#if EXPERTS
uint x_rows[X_EACH]; // those of the tile
uint x_row(uint t0, uint i) { return x_rows[i]; }
#else
uint x_row(uint t0, uint i) { return min(t0 + (gl_LocalInvocationID.x + i * LANES) / ROW, p.T - 1); }
#endif
uint w_row(uint m0, uint i) { return min(m0 + i * ROWS % COLUMNS + gl_LocalInvocationID.x / ROW, p.M - 1); }

// at: the first of the panel's inputs, in eights; n: eights of a row. Only the last panel checks
// where the row ends.
void fetch(uint t0, uint m0, uint at, uint n)
{
	if (at + ROW <= n) {
		[[unroll]] for (uint i = 0; i < X_EACH; i++)
			x_next[i] = Eight(p.x).v[x_row(t0, i) * n + at + (gl_LocalInvocationID.x + i * LANES) % ROW];
		[[unroll]] for (uint i = 0; i < W_EACH; i++)
			w_next[i] = Eight(weight(i)).v[w_row(m0, i) * n + at + (gl_LocalInvocationID.x + i * LANES) % ROW];
	} else {
		[[unroll]] for (uint i = 0; i < X_EACH; i++) {
			const uint k = at + (gl_LocalInvocationID.x + i * LANES) % ROW;
			x_next[i] = k < n ? Eight(p.x).v[x_row(t0, i) * n + k] : uvec4(0);
		}
		[[unroll]] for (uint i = 0; i < W_EACH; i++) {
			const uint k = at + (gl_LocalInvocationID.x + i * LANES) % ROW;
			w_next[i] = k < n ? Eight(weight(i)).v[w_row(m0, i) * n + k] : uvec4(0);
		}
	}
}

void keep()
{
	[[unroll]] for (uint i = 0; i < X_EACH; i++) {
		const uint e = gl_LocalInvocationID.x + i * LANES;
		if (BM * ROW % LANES == 0 || e < BM * ROW)
			sh[e / ROW * PITCH + e % ROW] = x_next[i];
	}
	[[unroll]] for (uint i = 0; i < W_EACH; i++) {
		const uint e = gl_LocalInvocationID.x + i * LANES;
		if (BN * ROW % LANES == 0 || e < BN * ROW)
			sh[W_AT + e / ROW * PITCH + e % ROW] = w_next[i];
	}
}

// The results of this subgroup from matrix i on. Every loop over matrices has to be unrolled before
// the driver sees it.
void keep_results(const MAT_C acc[OWN_M][OWN_N], uint i)
{
	const uint at = (gl_SubgroupID / (BN / WN) * OUT_M * MM) * OUT_ROW + gl_SubgroupID % (BN / WN) * (WN / 4);

	[[unroll]] for (uint k = 0; k < OUT_M; k++)
		[[unroll]] for (uint j = 0; j < OWN_N; j++)
			STORE_ROWS(acc[i + k][j], sh, at + k * MM * OUT_ROW + j * (MN / 4), OUT_ROW);
}

#if GATED
// Two numbers of a row in shared memory, as they are stored.
uint two(uint r, uint c, uint has_bias, Real b, uint m)
{
	const uint at = r * OUT_ROW + c / 4;
	vec2 x = vec2(uintBitsToFloat(sh[at][c % 4]), uintBitsToFloat(sh[at][c % 4 + 1]));

	if (has_bias != 0)
		x += vec2(b.v[m], b.v[min(m + 1, p.M - 1)]);
	return pack_halves(x);
}

void put_two(Real y, uint at, uint x, bool one)
{
	if (p.y_wide != 0) {
		Words(y).v[at / 2] = x;
	} else {
		Bits(y).v[at] = uint16_t(x);
		if (!one)
			Bits(y).v[at + 1] = uint16_t(x >> 16);
	}
}

// Stores the rows in shared memory; i: the first matrix of each subgroup. Two columns per lane,
// because small tiles have few.
void store_rows(uint t0, uint m0, uint share, uint i)
{
	[[dont_unroll]] for (uint e = gl_LocalInvocationID.x; e < OUT_ROWS * (COLUMNS / 2); e += LANES) {
		const uint r = e / (COLUMNS / 2), c = e % (COLUMNS / 2) * 2;
		const uint t = t0 + r / (OUT_M * MM) * WM + i * MM + r % (OUT_M * MM), m = m0 + c, at = t * p.y_stride + m;
		if (t < rows_end && m < p.M) {
			const uint gate = two(r, c, p.has_bias, B, m), up = two(r, COLUMNS + c, p.up_has_bias, B_UP, m);
			const vec2 x = unpackHalf2x16(gate), y = unpackHalf2x16(up);
#if !EXPERTS
			put_two(p.y, at, gate, m + 1 == p.M);
			put_two(p.up, at, up, m + 1 == p.M);
#endif
			put_two(p.gated, at, pack_halves(vec2(gated(x.x, y.x), gated(x.y, y.y))), m + 1 == p.M);
		}
	}
}
#else
// Eight columns of token t from m on, in shared memory.
void store(uint t, uint m, uint from)
{
	const uint n = min(8, p.M - m), at = y_row_of(t) * p.y_stride + m;

	if (p.y_wide != 0 && n == 8) {
		vec4 a = uintBitsToFloat(sh[from]), b = uintBitsToFloat(sh[from + 1]);
		if (p.has_bias != 0)
			[[unroll]] for (uint i = 0; i < 4; i++) {
				a[i] += float(B.v[m + i]);
				b[i] += float(B.v[m + 4 + i]);
			}
		OutEight(p.y).v[at / 8] = uvec4(pack_halves(a.xy), pack_halves(a.zw), pack_halves(b.xy), pack_halves(b.zw));
	} else {
		[[dont_unroll]] for (uint i = 0; i < n; i++) {
			float x = uintBitsToFloat(sh[from + i / 4][i % 4]);
			if (p.has_bias != 0)
				x += float(B.v[m + i]);
			put(p.y, at + i, x);
		}
	}
}

// The same of one share.
void store_sums(uint t, uint m, uint share, uint from)
{
	const uint at = ((share * p.T + t) * ((p.M + 7) / 8) + m / 8) * 2;

	OutFour(p.sums).v[at] = uintBitsToFloat(sh[from]);
	OutFour(p.sums).v[at + 1] = uintBitsToFloat(sh[from + 1]);
}

// Stores the rows in shared memory; i: the first matrix of each subgroup. Not unrolled: a workgroup
// runs this once or twice, and code that was not run before must be loaded.
void store_rows(uint t0, uint m0, uint share, uint i)
{
	[[dont_unroll]] for (uint e = gl_LocalInvocationID.x; e < OUT_ROWS * (BN / 8); e += LANES) {
		const uint r = e / (BN / 8), c = e % (BN / 8), from = r * OUT_ROW + c * 2;
		const uint t = t0 + r / (OUT_M * MM) * WM + i * MM + r % (OUT_M * MM), m = m0 + c * 8;
		if (t < rows_end && m < p.M) {
			if (p.shares > 1)
				store_sums(t, m, share, from);
			else
				store(t, m, from);
		}
	}
}
#endif

void tile(uint t0, uint m0, uint share)
{
	const uint wm = gl_SubgroupID / (BN / WN) * WM, wn = gl_SubgroupID % (BN / WN) * WN;
	const uint n = p.N / 8, panels = (p.N + BK - 1) / BK;
	const uint first = share * panels / p.shares, last = (share + 1) * panels / p.shares;

	MAT_C acc[OWN_M][OWN_N];
	[[unroll]] for (uint i = 0; i < OWN_M; i++)
		[[unroll]] for (uint j = 0; j < OWN_N; j++)
			acc[i][j] = MAT_C(0.0);

#if EXPERTS
	[[unroll]] for (uint i = 0; i < X_EACH; i++)
		x_rows[i] = x_row_of(min(t0 + (gl_LocalInvocationID.x + i * LANES) / ROW, rows_end - 1));
#endif
	fetch(t0, m0, first * ROW, n);
	keep();
	barrier();
	for (uint s = first; s < last; s++) {
		if (s + 1 < last)
			fetch(t0, m0, (s + 1) * ROW, n);
		[[unroll]] for (uint k = 0; k < PANEL; k++) {
			MAT_A a[OWN_M];
			[[unroll]] for (uint i = 0; i < OWN_M; i++)
				LOAD_ROWS(a[i], sh, (wm + i * MM) * PITCH + k * (MK / 8), PITCH);
			[[unroll]] for (uint j = 0; j < OWN_N; j++) {
				MAT_B b;
				LOAD_COLS(b, sh, W_AT + (wn + j * MN) * PITCH + k * (MK / 8), PITCH);
				[[unroll]] for (uint i = 0; i < OWN_M; i++)
					acc[i][j] = MULADD(a[i], b, acc[i][j]);
			}
		}
		barrier();
		if (s + 1 < last) {
			keep();
			barrier();
		}
	}

	keep_results(acc, 0);
	barrier();
	store_rows(t0, m0, share, 0);
	barrier();
	if (OUT_M < OWN_M) { // not a loop: otherwise the matrices would be in memory, not in registers
		keep_results(acc, OWN_M - OUT_M);
		barrier();
		store_rows(t0, m0, share, OWN_M - OUT_M);
		barrier();
	}
}

#if EXPERTS
void main()
{
	const uint tiles = count_tiles(BM), across = (p.M + COLUMNS - 1) / COLUMNS;

	for (uint i = gl_WorkGroupID.x; i < tiles * across; i += gl_NumWorkGroups.x) {
		const uint t0 = find_tile(i % tiles, BM);
		if (t0 < rows_end)
			tile(t0, i / tiles * COLUMNS, 0);
	}
}
#else
void main()
{
	const uint down = (p.T + BM - 1) / BM, across = (p.M + COLUMNS - 1) / COLUMNS, band = BAND * down;

	for (uint i = gl_WorkGroupID.x; i < down * across * p.shares; i += gl_NumWorkGroups.x) {
		const uint at = i % (down * across), left = at / band * BAND,
		           in_band = at % band, wide = min(BAND, across - left);
		tile(in_band / wide * BM, (left + in_band % wide) * COLUMNS, i / (down * across));
	}
}
#endif
