#version 460
// attention_coop: attention.comp by cooperative matrices.
//
//   q (T,H,K) half in     k, v half in, the cache (mask.glsl)     sinks (H) half in, or none
//   y (T,H,U) half out, or parts (parts.glsl)
//   push      vn_push_attention
//   dispatch  x: heads, y: parts of each block of 4 MM queries; both in strides of the grid
//
// K and U are at most WIDTH, and multiples of 8 if WIDTH is 128 or less; columns past them are 0.
// SHARES subgroups share MM queries. Each subgroup computes the scores of its share of a tile's
// keys, and its share of the context's columns, which stay in cooperative matrices. A lane holds 1
// / PARTS of a row of scores, in registers, as float. Scores and weights pass between matrices and
// lanes through a strip of shared memory for the MM queries; each subgroup writes its own slice of
// it. At the end the context passes through it too.
//
// Weights are powers of 2 relative to a base: the largest score of the row in some tile. The base
// moves only when a score exceeds it by more than SLACK, because the context must then pass
// through the strip to be rescaled: in the first tile, and seldom later. Each row has its own
// base. A row whose base stays is multiplied by 1 when another's moves, so its bits do not depend
// on other rows.
//
// A weight is not rounded to half. It is multiplied by SCALE and split into the sum of two halves,
// which keeps 22 bits of it, down to 2^-31 of the base; the sum of weights is kept times SCALE,
// too. So what leaves a workgroup is relative to the base less LOG_SCALE. Products of halves are
// exact, so only two things differ from attention.comp: the order of sums, and the device's exp2,
// which is accurate to 20 bits for weights that count.
//
// Forbidden keys have weight 0. That does not suffice if a value is infinite or NaN: a tile with
// such a value is summed key by key, without the keys that a query does not see.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "coop.glsl"
#include "mask.glsl"
#include "parts.glsl"

// For heads of any width. The other shaders omit the code that reads single numbers,
// because loading it takes time.
#define ANY (WIDTH > 128)
// A lane has 64 numbers of the context at most.
#define SHARES (MM * WIDTH > 64 * SUBGROUP ? MM * WIDTH / (64 * SUBGROUP) : 1)
const uint  SUBGROUPS = 4 * SHARES, LANES = SUBGROUPS * SUBGROUP, QUERIES = 4 * MM, KEYS = SHARES > 1 ? 32 : 64;
const uint  SLICE = KEYS / SHARES, WIDTHS = WIDTH / KEYS; // WIDTHS: SLICEs in a subgroup's columns
const uint  BESIDE = SUBGROUP / MM, PARTS = SHARES * BESIDE;
const uint  OWN = KEYS / 4 / PARTS;                       // fours of KEYS that a lane has
const uint  ROW = WIDTH / 8, PITCH = ROW + 1;             // of keys or values, 8 halves to a uvec4
const uint  EACH = KEYS * ROW / LANES, EACH_QUERY = QUERIES * ROW / LANES;
const uint  STRIP = KEYS / 4 + 1, STRIPS = QUERIES * STRIP; // a row of a strip: KEYS floats, padded
const float SLACK = 8.0, SCALE = 128.0, LOG_SCALE = 7.0; // 2^SLACK SCALE is a half
// Keys and values have a place each, which saves two barriers of four.
const bool  TWO = WIDTH <= 64 || WIDTH > 128 && MM == 16;
// Mesa's lavapipe treats a subgroup barrier as a workgroup barrier, so all subgroups must execute
// the same number of them.
const bool  TOGETHER = MM == 8 || SHARES > 1;
const uint  KEYS_AT = STRIPS, VALUES_AT = STRIPS + (TWO ? KEYS * PITCH : 0);
layout(local_size_x = 4 * SHARES * SUBGROUP) in;

shared uvec4 sh[STRIPS + (TWO ? 2 : 1) * KEYS * PITCH]; // strips; keys or queries; values
shared float said[LANES];                // of one lane to the others of its row
shared uint  odd_tile;                   // 1 + the first key of a tile with a value that is not finite
// 1 + the first key of the last tile in which a base moved; TOGETHER: moved_tile[0] counts for all
shared uint  moved_tile[SUBGROUPS];

uvec4 next[EACH > EACH_QUERY ? EACH : EACH_QUERY];

uint rows()   { return gl_SubgroupID / SHARES * MM; } // the first of the subgroup's queries in the block
uint share()  { return SHARES > 1 ? gl_SubgroupID % SHARES : 0; }
uint strip()  { return rows() * STRIP; }
uint row_at() { return strip() + gl_SubgroupInvocationID % MM * STRIP; }
uint part_()  { return share() * BESIDE + gl_SubgroupInvocationID / MM; }
uint mover()  { return TOGETHER ? 0 : gl_SubgroupID; }
// Columns of a row n wide that are read 8 at a time: all or none.
#if ANY
uint eights(uint n) { return n % 8 == 0 ? n : 0; }
#else
uint eights(uint n) { return n; }
#endif

// Synchronises the subgroups that share queries.
void rows_barrier()
{
	if (SHARES > 1)
		barrier();
	else
		subgroupBarrier();
}

// If rows consist of eights, they come from `next`; other rows are read when they are kept,
// number by number.
void fetch_queries(uint i0, uint h)
{
	[[unroll]] for (uint n = 0; n < EACH_QUERY; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES, i = i0 + e / ROW, d = e % ROW * 8;
		next[n] = i < p.T && d < eights(p.K) ? Words4(p.q).v[((i * p.H + h) * p.K + d) / 8] : uvec4(0);
	}
}

void fetch_keys(uint j0, uint to, uint h)
{
	[[unroll]] for (uint n = 0; n < EACH; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES, j = j0 + e / ROW, d = e % ROW * 8;
		next[n] = j < to && d < eights(p.K) ? Words4(p.k).v[(key_row(j, h) + d) / 8] : uvec4(0);
	}
}

// Adding one carries an exponent of all ones into the bit above it.
const uint ODD = 0x80008000u;

uint carried(uvec4 x)
{
	const uvec4 u = (x & 0x7C007C00u) + 0x04000400u;

	return u.x | u.y | u.z | u.w;
}

void fetch_values(uint j0, uint to, uint h)
{
	uint odd = 0;

	[[unroll]] for (uint n = 0; n < EACH; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES, j = j0 + e / ROW, d = e % ROW * 8;
		next[n] = j < to && d < eights(p.U) ? Words4(p.v).v[(value_row(j, h) + d) / 8] : uvec4(0);
		odd |= carried(next[n]);
	}
	if ((odd & ODD) != 0)
		odd_tile = j0 + 1;
}

// Rows [first, to) of at most n. Not unrolled, because this code seldom runs.
void gather(Real from, bool queries, bool values, uint first, uint to, uint h, uint n, uint at)
{
	uint odd = 0;

	[[dont_unroll]] for (uint e = gl_LocalInvocationID.x; e < n * ROW; e += LANES) {
		const uint r = first + e / ROW, d0 = e % ROW * 8;
		const uint end = r < to ? min(d0 + 8, values ? p.U : p.K) : 0, j = min(r, to - 1);
		const uint row = queries ? (r * p.H + h) * p.K : values ? value_row(j, h) : key_row(j, h);
		uvec4 x = uvec4(0);
		[[dont_unroll]] for (uint d = d0; d < end; d++)
			x[d % 8 / 2] |= uint(Bits(from).v[row + d]) << d % 2 * 16;
		sh[at + e / ROW * PITCH + e % ROW] = x;
		odd |= carried(x);
	}
	if (values && (odd & ODD) != 0)
		odd_tile = first + 1;
}

void keep_queries(uint i0, uint h)
{
	if (!ANY || eights(p.K) != 0)
		[[unroll]] for (uint n = 0; n < EACH_QUERY; n++) {
			const uint e = gl_LocalInvocationID.x + n * LANES;
			sh[KEYS_AT + e / ROW * PITCH + e % ROW] = next[n];
		}
	else
		gather(p.q, true, false, i0, p.T, h, QUERIES, KEYS_AT);
}

void keep(bool values, uint j0, uint to, uint h)
{
	const uint at = values ? VALUES_AT : KEYS_AT;

	if (!ANY || eights(values ? p.U : p.K) != 0)
		[[unroll]] for (uint n = 0; n < EACH; n++) {
			const uint e = gl_LocalInvocationID.x + n * LANES;
			sh[at + e / ROW * PITCH + e % ROW] = next[n];
		}
	else
		gather(values ? p.v : p.k, false, values, j0, to, h, KEYS, at);
}

// Over the lanes of a row. Another call must not follow without a barrier between them.
float of_row(float x, bool sum)
{
	const uint first = gl_SubgroupID / SHARES * SHARES * SUBGROUP + gl_SubgroupInvocationID % MM;

	said[gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID] = x;
	rows_barrier();
	x = said[first];
	[[unroll]] for (uint n = 1; n < PARTS; n++)
		x = sum ? x + said[first + n * MM] : max(x, said[first + n * MM]);
	return x;
}

// The keys of this part that the lane's query sees are [seen_from, seen_to).
uint seen_from, seen_to;

bool seen(uint j) { return j >= seen_from && j < seen_to; }

uint slice() { return strip() + share() * (SLICE / 4); }

void score_tile(const MAT_A q[WIDTH / MK])
{
	[[unroll]] for (uint j = 0; j < SLICE / MN; j++) {
		MAT_C s = MAT_C(0.0);
		[[unroll]] for (uint k = 0; k < WIDTH / MK; k++) {
			MAT_B b;
			LOAD_COLS(b, sh, KEYS_AT + (share() * SLICE + j * MN) * PITCH + k * (MK / 8), PITCH);
			s = MULADD(q[k], b, s);
		}
		STORE_ROWS(s, sh, slice() + j * (MN / 4), STRIP);
	}
}

// Splits two numbers into two halves each: the first 11 bits, and the rest. Uses integers, because
// a compiler may replace unpackHalf2x16(packHalf2x16(x)) by x, and the rest would be 0.
void split(vec2 w, out uint high, out uint low)
{
	const vec2 cut = vec2(uintBitsToFloat(floatBitsToUint(w.x) & 0xFFFFE000u),
	                      uintBitsToFloat(floatBitsToUint(w.y) & 0xFFFFE000u));

	high = packHalf2x16(cut);
	low = packHalf2x16(w - cut);
}

// The place in a slice of the high halves of the weights of key c;
// the low halves are SLICE / 8 after it.
uint weight_at(uint c) { return c / SLICE * (SLICE / 4) + c % SLICE / 8; }

// Weights of this lane, times SCALE, into the strip. Returns their sum. all: every query of the
// block sees every key of the tile.
float weigh(uint j0, bool all, const vec4 s[OWN], float base)
{
	float sum = 0.0;

	[[unroll]] for (uint n = 0; n < OWN; n += 2) {
		uvec4 high, low;
		[[unroll]] for (uint m = 0; m < 2; m++) {
			vec4 w = SCALE * exp2(s[n + m] - base);
			if (!all)
				[[unroll]] for (uint c = 0; c < 4; c++)
					if (!seen(j0 + (part_() * OWN + n + m) * 4 + c))
						w[c] = 0.0;
			sum += (w.x + w.y) + (w.z + w.w);
			split(w.xy, high[2 * m], low[2 * m]);
			split(w.zw, high[2 * m + 1], low[2 * m + 1]);
		}
		const uint at = row_at() + weight_at((part_() * OWN + n) * 4);
		sh[at] = high;
		sh[at + SLICE / 8] = low;
	}
	return sum;
}

// The weights of the strip times the values, into acc.
void add_values(inout MAT_C acc[WIDTHS * SLICE / MN])
{
	[[unroll]] for (uint k = 0; k < KEYS / MK; k++) {
		MAT_A high, low;
		LOAD_ROWS(high, sh, strip() + weight_at(k * MK), STRIP);
		LOAD_ROWS(low, sh, strip() + weight_at(k * MK) + SLICE / 8, STRIP);
		[[unroll]] for (uint j = 0; j < WIDTHS * SLICE / MN; j++) {
			MAT_B b;
			LOAD_ROWS(b, sh, VALUES_AT + k * MK * PITCH + share() * (ROW / SHARES) + j * (MN / 8), PITCH);
			acc[j] = MULADD(high, b, acc[j]);
			acc[j] = MULADD(low, b, acc[j]);
		}
	}
}

vec4 four_of(uint at, uint four)
{
	const uvec4 u = sh[at + four / 2];
	const uvec2 x = four % 2 == 0 ? u.xy : u.zw;

	return vec4(unpackHalf2x16(x.x), unpackHalf2x16(x.y));
}

// The n-th four columns of this lane in a row of the context.
uint four_at(uint n)
{
	return share() * (WIDTH / 4 / SHARES) + n / OWN * (SLICE / 4) + gl_SubgroupInvocationID / MM * OWN + n % OWN;
}

// The same for this lane's columns, key by key.
void odd_values(uint j0, out vec4 x[WIDTHS * OWN])
{
	[[unroll]] for (uint n = 0; n < WIDTHS * OWN; n++)
		x[n] = vec4(0.0);
	for (uint c = 0; c < KEYS; c++)
		if (seen(j0 + c)) {
			const uint  at = row_at() + weight_at(c);
			const float w = four_of(at, c / 4 % 2)[c % 4] + four_of(at + SLICE / 8, c / 4 % 2)[c % 4];
			[[unroll]] for (uint n = 0; n < WIDTHS * OWN; n++)
				x[n] += w * four_of(VALUES_AT + c * PITCH, four_at(n));
		}
}

// acc = acc * times + more (none: more is not read), row by row, through the strip, which is unused
// before and afterwards.
void change(inout MAT_C acc[WIDTHS * SLICE / MN], float times, bool none, const vec4 more[WIDTHS * OWN])
{
	[[unroll]] for (uint g = 0; g < WIDTHS; g++) {
		[[unroll]] for (uint j = 0; j < SLICE / MN; j++)
			STORE_ROWS(acc[g * (SLICE / MN) + j], sh, slice() + j * (MN / 4), STRIP);
		subgroupBarrier();
		[[unroll]] for (uint n = 0; n < OWN; n++) {
			const uint at = row_at() + part_() * OWN + n;
			const vec4 x = uintBitsToFloat(sh[at]);
			sh[at] = floatBitsToUint(none ? x * times : x + more[g * OWN + n]);
		}
		subgroupBarrier();
		[[unroll]] for (uint j = 0; j < SLICE / MN; j++)
			LOAD_ROWS(acc[g * (SLICE / MN) + j], sh, slice() + j * (MN / 4), STRIP);
		subgroupBarrier();
	}
}

// Its rows pass through the strip, SLICE columns of a subgroup at a time, and leave it in loops
// that are not unrolled: loading code that runs once takes longer than running it.
void write(uint i, uint h, uint part, const MAT_C acc[WIDTHS * SLICE / MN], float top, float sum)
{
	[[dont_unroll]] for (uint g = 0; g < WIDTHS; g++) {
		// Every index must be a constant: otherwise the matrices would be in memory,
		// not in registers.
		[[unroll]] for (uint j = 0; j < WIDTHS * SLICE / MN; j++)
			if (j / (SLICE / MN) == g)
				STORE_ROWS(acc[j], sh, slice() + j % (SLICE / MN) * (MN / 4), STRIP);
		subgroupBarrier();
		[[dont_unroll]] for (uint n = 0; n < OWN; n++) {
			const uint d = four_at(g * OWN + n) * 4;
			const vec4 x = uintBitsToFloat(sh[row_at() + part_() * OWN + n]);
			const uint end = i < p.T ? p.U : 0;
			if (d < end && parts() == 1 && (!ANY || p.U % 4 == 0))
				put4(p.y, (i * p.H + h) * p.U + d, x / sum);
			else if (d < end)
				[[unroll]] for (uint c = 0; c < 4; c++)
					if (!ANY || d + c < end) {
						if (ANY && parts() == 1)
							put(p.y, (i * p.H + h) * p.U + d + c, x[c] / sum);
						else
							Float(p.y).v[part_at(i, h, part) + d + c] = x[c];
					}
		}
		subgroupBarrier();
	}
	if (parts() > 1 && part_() == 0 && i < p.T) {
		Float(p.y).v[part_at(i, h, part) + p.U] = top;
		Float(p.y).v[part_at(i, h, part) + p.U + 1] = sum;
	}
}

void block(uint i0, uint h, uint part)
{
	const uint i = i0 + rows() + gl_SubgroupInvocationID % MM, last = min(i0 + QUERIES, p.T) - 1;
	const uint from = max(keys_begin(i0), part_begin(part)) / KEYS * KEYS, to = min(keys_end(last), part_end(part));
	const uint all_from = keys_begin(last), all_to = min(keys_end(i0), to); // seen by all
	const float unit = p.scale * 1.44269504; // scores as powers of 2
	float base = -INFINITY, sum = 0.0; // sum: of this lane's part of the row
	vec4  s[OWN], odd_sums[WIDTHS * OWN];
	MAT_A q[WIDTH / MK];
	MAT_C acc[WIDTHS * SLICE / MN];

	seen_from = keys_begin(i);
	seen_to = min(keys_end(i), to);
	[[unroll]] for (uint j = 0; j < WIDTHS * SLICE / MN; j++)
		acc[j] = MAT_C(0.0);
	fetch_queries(i0, h);
	keep_queries(i0, h);
	odd_tile = 0;
	moved_tile[mover()] = 0;
	barrier();
	[[unroll]] for (uint k = 0; k < WIDTH / MK; k++)
		LOAD_ROWS(q[k], sh, KEYS_AT + rows() * PITCH + k * (MK / 8), PITCH);
	fetch_keys(from, to, h);
	barrier(); // queries are read above
	for (uint j0 = from; j0 < to; j0 += KEYS) {
		const bool all = j0 >= all_from && j0 + KEYS <= all_to;
		keep(false, j0, to, h);
		barrier(); // and values are read below
		fetch_values(j0, to, h);
		score_tile(q);
		if (!TWO)
			barrier(); // keys are read above
		keep(true, j0, to, h);
		if (j0 + KEYS < to)
			fetch_keys(j0 + KEYS, to, h);
		subgroupBarrier();
		float most = -INFINITY;
		[[unroll]] for (uint n = 0; n < OWN; n++) {
			s[n] = uintBitsToFloat(sh[row_at() + part_() * OWN + n]) * unit;
			[[unroll]] for (uint c = 0; c < 4; c++)
				if (all || seen(j0 + (part_() * OWN + n) * 4 + c))
					most = max(most, s[n][c]);
		}
		most = of_row(most, false); // and the strip is read
		const float old = base;
		if (most > base + SLACK)
			base = most;
		if (base != old)
			moved_tile[mover()] = j0 + 1;
		if (TOGETHER)
			barrier();
		else
			subgroupBarrier();
		if (moved_tile[mover()] == j0 + 1) {
			// Only scores of -inf so far: there is nothing to multiply.
			const float times = base == old ? 1.0 : old == -INFINITY ? 0.0 : exp2(old - base);
			sum *= times;
			if (j0 != from)
				change(acc, times, true, odd_sums);
		}
		// exp(-inf - 0) is 0, but exp(-inf + inf) would be NaN.
		sum += weigh(j0, all, s, base == -INFINITY ? 0.0 : base);
		barrier(); // values and the strip are written; keys are read above
		if (odd_tile == j0 + 1) {
			odd_values(j0, odd_sums);
			rows_barrier();
			change(acc, 1.0, false, odd_sums);
		} else {
			add_values(acc);
		}
		subgroupBarrier(); // the strip is read above
		if (!TWO)
			barrier(); // values, too
	}
	sum = of_row(sum, true);
	const float top = (base - LOG_SCALE) * 0.69314718; // as a power of e
	write(i, h, part, acc, top, parts() == 1 ? with_sink(sum, top, h) : sum);
	barrier(); // sh is read above
}

void main()
{
	const uint blocks = (p.T + QUERIES - 1) / QUERIES;

	for (uint w = gl_WorkGroupID.y; w < blocks * parts(); w += gl_NumWorkGroups.y)
		for (uint h = gl_WorkGroupID.x; h < p.H; h += gl_NumWorkGroups.x) {
			// The last blocks see the most keys and start first,
			// of all heads: devices take x first.
			const uint i0 = (blocks - 1 - w / parts()) * QUERIES, part = w % parts();
			if (part >= parts_begin(i0) && part < parts_end(min(i0 + QUERIES, p.T) - 1))
				block(i0, h, part);
		}
}
