#version 460
// attention: context of a block of queries of one head over a part of the keys.
//
//   s[i,j]   = scale * dot(q[i,h,:], k[j,g,:])      g: h / (H/G)
//   y[i,h,:] = sum_j softmax_j(s[i,j]) v[j,g,:]     over the keys that i may see
//
//   q (T,H,K) real in     k, v real in, the cache (mask.glsl)     sinks (H) real in, or none
//   y (T,H,U) real out, or parts (parts.glsl)
//   push      vn_push_attention
//   dispatch  x: parts of each block of QUERIES queries, y: heads; both in strides of the grid
//
// U is at most 64 SLICES. Tiles of QUERIES x KEYS; maximum, sum and context are
// rescaled when the maximum grows (online softmax), all in float, and a score or a
// probability is never stored. Tiles start at multiples of KEYS, so the order of a
// query's sums does not depend on the block it is in. Tiles that no query of the
// block sees are skipped.
//
// A lane keeps scores of 8 queries x 4 keys in registers, later 8 queries x 4
// columns of each slice of 64. lane / 16 selects its queries, lane % 16 its keys or
// columns. Operands pass through shared memory as float, STEP columns at a time,
// queries and keys transposed. Shared memory is exactly 32 KiB: the operands of the
// scores, the folds of a row, and the values use `panel` one after the other.
//
// Forbidden keys are left out, not multiplied by 0: numbers of a later token, even
// NaN, must not reach an earlier one. HIDDEN marks the weight of such a key.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "mask.glsl"
#include "parts.glsl"

const uint  LANES = 128, QUERIES = 64, KEYS = 64, STEP = 32;
const float HIDDEN = -1.0; // no weight is below 0
layout(local_size_x = 128) in;

// In fours of rows: queries [STEP][QUERIES/4], then keys [STEP][KEYS/4]; or values [KEYS][64/4]; or
// [16][QUERIES/4] maxima, what rows are relative to [QUERIES/4], their rescaling [QUERIES/4], and
// [16][QUERIES/4] sums.
shared vec4 panel[2 * STEP * 16];
shared vec4 ps[KEYS * 16]; // weights exp(s - max), [KEYS][QUERIES/4], the fours of a row exchanged: weight_at

const uint K_PANEL = STEP * 16, BASES = 256, RESCALES = 272, SUMS = 512;

// Lanes write neighbouring keys at the same time. Without the exchange all would
// hit the same banks.
uint weight_at(uint key, uint four) { return key * 16 + (four ^ key / 4); }

uint lane_()    { return gl_LocalInvocationID.x; }
uint lane_row() { return gl_LocalInvocationID.x / 16 * 8; }
uint lane_col() { return gl_LocalInvocationID.x % 16; }

// Columns of a row from d on; 0 after the last. No load is in a branch that lanes take
// differently: the next load would wait.
void load8(Real from, uint row, uint d, out vec4 a, out vec4 b)
{
	if (p.K % 8 == 0) {
		const uint at = (row + min(d, p.K - 8)) / 8;
		a = vec4(Real8(from).v[at].a);
		b = vec4(Real8(from).v[at].b);
		a = d < p.K ? a : vec4(0.0);
		b = d < p.K ? b : vec4(0.0);
	} else {
		[[unroll]] for (uint m = 0; m < 4; m++) {
			const float low = float(from.v[row + min(d + m, p.K - 1)]),
			            high = float(from.v[row + min(d + 4 + m, p.K - 1)]);
			a[m] = d + m < p.K ? low : 0.0;
			b[m] = d + 4 + m < p.K ? high : 0.0;
		}
	}
}

vec4 load4(Real from, uint row, uint d)
{
	vec4 x;

	if (p.U % 4 == 0)
		x = vec4(Real4(from).v[(row + min(d, p.U - 4)) / 4]);
	else
		[[unroll]] for (uint m = 0; m < 4; m++)
			x[m] = float(from.v[row + min(d + m, p.U - 1)]);
	return x;
}

// 16 columns of a row of 64, which a lane transposes.
void rotate(uint to, vec4 x[4])
{
	const uint r = lane_() % 64, d = lane_() / 64 * 16;

	[[unroll]] for (uint n = 0; n < 4; n++)
		[[unroll]] for (uint m = 0; m < 4; m++)
			panel[to + (d + 4 * n + m) * 16 + r / 4][r % 4] = x[n][m];
}

// Columns [d0, d0 + 64) of the values of keys from j0 on. Keys from `to` on and columns past the
// last hold any number: such keys get no weight, and such columns are not stored.
void load_values(uint j0, uint to, uint h, uint d0, out vec4 x[8])
{
	[[unroll]] for (uint n = 0; n < 8; n++)
		x[n] = load4(p.v, value_row(min(j0 + 8 * n + lane_() / 16, to - 1), h), d0 + lane_col() * 4);
}

// s[r][c]: score of query i0 + lane_row() + r and key j0 + 4 lane_col() + c; past the last query or
// key, any number.
void score_tile(uint i0, uint j0, uint to, uint h, out vec4 s[8])
{
	const uint i = min(i0 + lane_() % 64, p.T - 1), j = min(j0 + lane_() % 64, to - 1);
	const uint q_at = (i * p.H + h) * p.K, k_at = key_row(j, h), d1 = lane_() / 64 * 16;

	[[unroll]] for (uint r = 0; r < 8; r++)
		s[r] = vec4(0.0);
	for (uint d0 = 0; d0 < p.K; d0 += STEP) {
		vec4 q[4], k[4];
		[[unroll]] for (uint n = 0; n < 4; n += 2) {
			load8(p.q, q_at, d0 + d1 + 4 * n, q[n], q[n + 1]);
			load8(p.k, k_at, d0 + d1 + 4 * n, k[n], k[n + 1]);
		}
		rotate(0, q);
		rotate(K_PANEL, k);
		barrier();
		for (uint d = 0; d < STEP; d += 8)
			[[unroll]] for (uint n = 0; n < 8; n++) {
				const vec4 key = panel[K_PANEL + (d + n) * 16 + lane_col()];
				const vec4 q0 = panel[(d + n) * 16 + lane_row() / 4], q1 = panel[(d + n) * 16 + lane_row() / 4 + 1];
				[[unroll]] for (uint r = 0; r < 4; r++) {
					s[r] += q0[r] * key;
					s[r + 4] += q1[r] * key;
				}
			}
		barrier();
	}
	[[unroll]] for (uint r = 0; r < 8; r++)
		[[unroll]] for (uint c = 0; c < 4; c++)
			s[r][c] = capped(s[r][c] * p.scale);
}

// The keys before `to` that query i sees: n of them, from `first` on.
void seen_of(uint i, uint to, out uint first, out uint n)
{
	first = keys_begin(i);
	n = max(min(keys_end(i), to), first) - first;
}

// Every query of the block sees every key of the tile.
bool all_seen(uint i0, uint j0, uint to)
{
	return j0 + KEYS <= to && visible(i0, j0 + KEYS - 1) && visible(i0 + QUERIES - 1, j0);
}

// Folds the maxima of rows, 16 lanes a row: in lanes under QUERIES, one for each row, top is the
// row's. base, rescale: of this lane's rows.
void fold_maxima(const vec4 most[2], inout float top, out vec4 base[2], out vec4 rescale[2])
{
	panel[lane_col() * 16 + lane_row() / 4] = most[0];
	panel[lane_col() * 16 + lane_row() / 4 + 1] = most[1];
	barrier();
	if (lane_() < QUERIES) {
		const uint four = lane_() / 4, n = lane_() % 4;
		const float old = top;
		[[unroll]] for (uint c = 0; c < 16; c++)
			top = max(top, panel[c * 16 + four][n]);
		// Only scores of -inf so far: exp(-inf - 0) is 0, but exp(-inf + inf) would be NaN.
		const float to = top == -INFINITY ? 0.0 : top;
		panel[BASES + four][n] = to;
		panel[RESCALES + four][n] = exp_(old - to);
	}
	barrier();
	[[unroll]] for (uint n = 0; n < 2; n++) {
		base[n] = panel[BASES + lane_row() / 4 + n];
		rescale[n] = panel[RESCALES + lane_row() / 4 + n];
	}
}

// Weights into ps, their sums into sum of lanes under QUERIES.
void weigh(uint i0, uint j0, uint to, bool whole_, vec4 s[8], const vec4 base[2], inout float sum)
{
	vec4 part[2] = vec4[2](vec4(0.0), vec4(0.0));

	[[unroll]] for (uint r = 0; r < 8; r++) {
		uint first, n;
		seen_of(i0 + lane_row() + r, to, first, n);
		[[unroll]] for (uint c = 0; c < 4; c++) {
			const bool  use = whole_ || j0 + lane_col() * 4 + c - first < n;
			const float w = exp_(s[r][c] - base[r / 4][r % 4]);
			part[r / 4][r % 4] += use ? w : 0.0;
			s[r][c] = use ? w : HIDDEN;
		}
	}
	[[unroll]] for (uint n = 0; n < 2; n++) {
		panel[SUMS + lane_col() * 16 + lane_row() / 4 + n] = part[n];
		[[unroll]] for (uint c = 0; c < 4; c++)
			ps[weight_at(lane_col() * 4 + c, lane_row() / 4 + n)] =
			    vec4(s[4 * n][c], s[4 * n + 1][c], s[4 * n + 2][c], s[4 * n + 3][c]);
	}
	barrier();
	if (lane_() < QUERIES) {
		const uint four = lane_() / 4, n = lane_() % 4;
		sum *= panel[RESCALES + four][n];
		float more = 0.0;
		[[unroll]] for (uint c = 0; c < 16; c++)
			more += panel[SUMS + c * 16 + four][n];
		sum += more;
	}
	barrier(); // panel is read above
}

void keep_values(const vec4 x[8])
{
	[[unroll]] for (uint n = 0; n < 8; n++)
		panel[(8 * n + lane_() / 16) * 16 + lane_col()] = x[n];
}

// whole_: no weight is HIDDEN.
void add_values(bool whole_, inout vec4 acc[8])
{
	if (whole_)
		for (uint key = 0; key < KEYS; key += 8)
			[[unroll]] for (uint n = 0; n < 8; n++) {
				const vec4 v = panel[(key + n) * 16 + lane_col()];
				const vec4 w0 = ps[weight_at(key + n, lane_row() / 4)], w1 = ps[weight_at(key + n, lane_row() / 4 + 1)];
				[[unroll]] for (uint r = 0; r < 4; r++) {
					acc[r] += w0[r] * v;
					acc[r + 4] += w1[r] * v;
				}
			}
	else
		for (uint key = 0; key < KEYS; key += 4)
			[[unroll]] for (uint n = 0; n < 4; n++) {
				const vec4 v = panel[(key + n) * 16 + lane_col()];
				const vec4 w0 = ps[weight_at(key + n, lane_row() / 4)], w1 = ps[weight_at(key + n, lane_row() / 4 + 1)];
				[[unroll]] for (uint r = 0; r < 4; r++) {
					acc[r] = w0[r] != HIDDEN ? acc[r] + w0[r] * v : acc[r];
					acc[r + 4] = w1[r] != HIDDEN ? acc[r + 4] + w1[r] * v : acc[r + 4];
				}
			}
}

// Adds to sums: columns 64 slice + 4 lane_col() to + 3 of this lane's rows.
void write(uint i0, uint h, uint part, uint slice, const vec4 acc[8], const vec4 sums[2])
{
	const uint d = slice * 64 + lane_col() * 4;

	[[unroll]] for (uint r = 0; r < 8; r++) {
		const uint i = i0 + lane_row() + r, y = (i * p.H + h) * p.U;
		if (i >= p.T || d >= p.U)
			continue;
		const vec4 x = acc[r] / sums[r / 4][r % 4];
		if (parts() == 1 && p.U % 4 == 0)
			put4(p.y, y + d, x);
		else
			[[unroll]] for (uint n = 0; n < 4; n++)
				if (d + n < p.U) {
					if (parts() == 1)
						put(p.y, y + d + n, x[n]);
					else
						Float(p.y).v[part_at(i, h, part) + d + n] = acc[r][n];
				}
	}
}

void block(uint i0, uint h, uint part)
{
	const uint last = min(i0 + QUERIES, p.T) - 1;
	const uint from = max(keys_begin(i0), part_begin(part)) / KEYS * KEYS, to = min(keys_end(last), part_end(part));
	float top = -INFINITY, sum = 0.0; // of query i0 + lane, in lanes under QUERIES
	vec4  acc[SLICES][8], s[8], most[2], base[2], rescale[2];

	[[unroll]] for (uint slice = 0; slice < SLICES; slice++)
		[[unroll]] for (uint r = 0; r < 8; r++)
			acc[slice][r] = vec4(0.0);
	for (uint j0 = from; j0 < to; j0 += KEYS) {
		const bool whole_ = all_seen(i0, j0, to);
		score_tile(i0, j0, to, h, s);
		[[unroll]] for (uint r = 0; r < 8; r++) {
			float m = -INFINITY;
			uint first, n;
			seen_of(i0 + lane_row() + r, to, first, n);
			[[unroll]] for (uint c = 0; c < 4; c++)
				if (whole_ || j0 + lane_col() * 4 + c - first < n)
					m = max(m, s[r][c]);
			most[r / 4][r % 4] = m;
		}
		vec4 v[8]; // these loads are under way while weights are computed
		load_values(j0, to, h, 0, v);
		fold_maxima(most, top, base, rescale);
		weigh(i0, j0, to, whole_, s, base, sum);
		[[unroll]] for (uint slice = 0; slice < SLICES; slice++)
			if (slice * 64 < p.U) {
				if (slice > 0)
					load_values(j0, to, h, slice * 64, v);
				keep_values(v);
				barrier();
				[[unroll]] for (uint r = 0; r < 8; r++)
					acc[slice][r] *= rescale[r / 4][r % 4];
				add_values(whole_, acc[slice]);
				barrier(); // panel and ps are read above
			}
	}
	if (lane_() < QUERIES) {
		panel[lane_() / 4][lane_() % 4] = with_sink(sum, top, h);
		if (parts() > 1 && i0 + lane_() < p.T) {
			Float(p.y).v[part_at(i0 + lane_(), h, part) + p.U] = top;
			Float(p.y).v[part_at(i0 + lane_(), h, part) + p.U + 1] = sum;
		}
	}
	barrier();
	[[unroll]] for (uint slice = 0; slice < SLICES; slice++)
		write(i0, h, part, slice, acc[slice], vec4[2](panel[lane_row() / 4], panel[lane_row() / 4 + 1]));
	barrier(); // panel is read above
}

void main()
{
	const uint blocks = (p.T + QUERIES - 1) / QUERIES;

	for (uint h = gl_WorkGroupID.y; h < p.H; h += gl_NumWorkGroups.y)
		for (uint w = gl_WorkGroupID.x; w < blocks * parts(); w += gl_NumWorkGroups.x) {
			// The last blocks see the most keys and start first.
			const uint i0 = (blocks - 1 - w / parts()) * QUERIES, part = w % parts();
			if (part >= parts_begin(i0) && part < parts_end(min(i0 + QUERIES, p.T) - 1))
				block(i0, h, part);
		}
}
