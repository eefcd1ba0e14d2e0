#version 460
// linear_coop: x w^T + bias for several tokens, by cooperative matrices.
//
//   y[t,m] = sum_n x[t,n] w[m,n] + b[m]
//
//   x (T,N) half in     w (M,N) half in     b (M) half in, or none; N a multiple of 8
//   y (T,M) half out, rows y_stride apart; with shares > 1 float partial sums instead, sums (shares,T,M') with
//   M' = M rounded up to 8: linear_join adds them
//   push      vn_push_linear
//   dispatch  any x: tiles of TILE_M x TILE_N matrices of outputs, times shares, in strides of the grid
//
// A subgroup makes OWN_M x OWN_N of a tile. Panels of PANEL matrices pass through shared memory; the next panel is under way in
// registers while this one is multiplied. STAGES 2: it has a place of its own there, which saves a barrier. Rows of a
// panel are padded by 16 bytes, so that the rows of a matrix hit different banks. Rows past T or M are the last one
// again and are not stored; inputs past N are 0 times 0. The sum of an output begins at +0 and takes N in steps of MK,
// in order, for any place of it in a tile: its bits depend on N, the shares and the device.
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
layout(local_size_x = TILE_M / OWN_M * (TILE_N / OWN_N) * SUBGROUP) in;
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Eight { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutEight { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutFour { vec4 v[]; };

// Panels of x, panels of w; then, in their place, a strip of MM rows of results for each subgroup.
const uint W_AT = STAGES * BM * PITCH, STRIP = (WN + 4) / 4; // a row of it, padded
const uint PANELS = STAGES * (BM + BN) * PITCH, STRIPS = SUBGROUPS * MM * STRIP;
shared uvec4 sh[PANELS > STRIPS ? PANELS : STRIPS];

uvec4 x_next[X_EACH], w_next[W_EACH];

uint x_row(uint t0, uint i) { return min(t0 + (gl_LocalInvocationID.x + i * LANES) / ROW, p.T - 1); }
uint w_row(uint m0, uint i) { return min(m0 + (gl_LocalInvocationID.x + i * LANES) / ROW, p.M - 1); }

// at: the first of the panel's inputs, in eights; n: eights of a row. Only the last panel asks where the row ends.
void fetch(uint t0, uint m0, uint at, uint n)
{
	if (at + ROW <= n) {
		[[unroll]] for (uint i = 0; i < X_EACH; i++)
			x_next[i] = Eight(p.x).v[x_row(t0, i) * n + at + (gl_LocalInvocationID.x + i * LANES) % ROW];
		[[unroll]] for (uint i = 0; i < W_EACH; i++)
			w_next[i] = Eight(p.w).v[w_row(m0, i) * n + at + (gl_LocalInvocationID.x + i * LANES) % ROW];
	} else {
		[[unroll]] for (uint i = 0; i < X_EACH; i++) {
			const uint k = at + (gl_LocalInvocationID.x + i * LANES) % ROW;
			x_next[i] = k < n ? Eight(p.x).v[x_row(t0, i) * n + k] : uvec4(0);
		}
		[[unroll]] for (uint i = 0; i < W_EACH; i++) {
			const uint k = at + (gl_LocalInvocationID.x + i * LANES) % ROW;
			w_next[i] = k < n ? Eight(p.w).v[w_row(m0, i) * n + k] : uvec4(0);
		}
	}
}

void keep(uint stage)
{
	[[unroll]] for (uint i = 0; i < X_EACH; i++) {
		const uint e = gl_LocalInvocationID.x + i * LANES;
		if (BM * ROW % LANES == 0 || e < BM * ROW)
			sh[(stage * BM + e / ROW) * PITCH + e % ROW] = x_next[i];
	}
	[[unroll]] for (uint i = 0; i < W_EACH; i++) {
		const uint e = gl_LocalInvocationID.x + i * LANES;
		if (BN * ROW % LANES == 0 || e < BN * ROW)
			sh[W_AT + (stage * BN + e / ROW) * PITCH + e % ROW] = w_next[i];
	}
}

// Eight columns of token t from m on.
void store(uint t, uint m, vec4 a, vec4 b)
{
	const uint n = min(8, p.M - m), at = t * p.y_stride + m;

	if (p.has_bias != 0)
		[[unroll]] for (uint i = 0; i < 4; i++) {
			a[i] += float(p.b.v[min(m + i, p.M - 1)]);
			b[i] += float(p.b.v[min(m + 4 + i, p.M - 1)]);
		}
	if (p.y_wide != 0 && n == 8)
		OutEight(p.y).v[at / 8] = uvec4(pack_halves(a.xy), pack_halves(a.zw), pack_halves(b.xy), pack_halves(b.zw));
	else
		[[unroll]] for (uint i = 0; i < 8; i++)
			if (i < n)
				put(p.y, at + i, i < 4 ? a[i % 4] : b[i % 4]);
}

// The same of one share.
void store_sums(uint t, uint m, uint share, vec4 a, vec4 b)
{
	const uint at = ((share * p.T + t) * ((p.M + 7) / 8) + m / 8) * 2;

	OutFour(p.sums).v[at] = a;
	OutFour(p.sums).v[at + 1] = b;
}

void tile(uint t0, uint m0, uint share)
{
	const uint lane = gl_SubgroupInvocationID, wm = gl_SubgroupID / (BN / WN) * WM, wn = gl_SubgroupID % (BN / WN) * WN;
	const uint n = p.N / 8, panels = (p.N + BK - 1) / BK;
	const uint first = share * panels / p.shares, last = (share + 1) * panels / p.shares;

	MAT_C acc[OWN_M][OWN_N];
	[[unroll]] for (uint i = 0; i < OWN_M; i++)
		[[unroll]] for (uint j = 0; j < OWN_N; j++)
			acc[i][j] = MAT_C(0.0);

	fetch(t0, m0, first * ROW, n);
	keep(0);
	barrier();
	for (uint s = first; s < last; s++) {
		const uint stage = STAGES == 1 ? 0 : (s - first) % 2;
		if (s + 1 < last)
			fetch(t0, m0, (s + 1) * ROW, n);
		[[unroll]] for (uint k = 0; k < PANEL; k++) {
			MAT_A a[OWN_M];
			[[unroll]] for (uint i = 0; i < OWN_M; i++)
				LOAD_ROWS(a[i], sh, (stage * BM + wm + i * MM) * PITCH + k * (MK / 8), PITCH);
			[[unroll]] for (uint j = 0; j < OWN_N; j++) {
				MAT_B b;
				LOAD_COLS(b, sh, W_AT + (stage * BN + wn + j * MN) * PITCH + k * (MK / 8), PITCH);
				[[unroll]] for (uint i = 0; i < OWN_M; i++)
					acc[i][j] = MULADD(a[i], b, acc[i][j]);
			}
		}
		if (STAGES == 1 || s + 1 == last)
			barrier();
		if (s + 1 < last) {
			keep(STAGES == 1 ? 0 : 1 - stage);
			barrier();
		}
	}

	// Every loop over matrices has to be unrolled before the driver sees it, or they lie in memory.
	const uint strip = gl_SubgroupID * MM * STRIP;
	[[unroll]] for (uint i = 0; i < OWN_M; i++) {
		[[unroll]] for (uint j = 0; j < OWN_N; j++)
			STORE_ROWS(acc[i][j], sh, strip + j * (MN / 4), STRIP);
		subgroupBarrier();
		[[unroll]] for (uint k = 0; k < MM * WN / 8 / SUBGROUP; k++) {
			const uint e = lane + k * SUBGROUP, r = e / (WN / 8), c = e % (WN / 8), t = t0 + wm + i * MM + r, m = m0 + wn + c * 8;
			const vec4 a = uintBitsToFloat(sh[strip + r * STRIP + c * 2]), b = uintBitsToFloat(sh[strip + r * STRIP + c * 2 + 1]);
			if (t < p.T && m < p.M) {
				if (p.shares > 1)
					store_sums(t, m, share, a, b);
				else
					store(t, m, a, b);
			}
		}
		subgroupBarrier();
	}
	barrier(); // the next tile's panels lie where the strips are
}

void main()
{
	const uint down = (p.T + BM - 1) / BM, across = (p.M + BN - 1) / BN, band = BAND * down;

	for (uint i = gl_WorkGroupID.x; i < down * across * p.shares; i += gl_NumWorkGroups.x) {
		const uint at = i % (down * across), left = at / band * BAND, in_band = at % band, wide = min(BAND, across - left);
		tile(in_band / wide * BM, (left + in_band % wide) * BN, i / (down * across));
	}
}
