#version 460
// attention_coop: attention.comp by cooperative matrices.
//
//   q (T,H,K) half in     k, v half in, the cache (mask.glsl)     y (T,H,K) half out, or parts (parts.glsl)
//   push      vn_push_attention
//   dispatch  x: heads, y: parts of each block of 4 MM queries; both in strides of the grid
//
// K is a multiple of 8 and at most WIDTH. A subgroup has MM queries and all keys of a tile; the context stays in
// matrices. A lane has a PARTS-th of a row of scores, in registers and in float. Between the two stands a strip of
// shared memory, a subgroup's own: scores, then weights; at the end the context.
//
// Weights are powers of 2, relative to a base, the largest score of the row in some tile. It moves when a score
// exceeds it by more than SLACK, for the context passes through the strip then: in the first tile and seldom again. A
// row moves by itself and is multiplied by 1 where another moves: its bits are its own.
//
// A weight is not rounded to half: it goes as the sum of two halves, times SCALE, which keeps 22 bits of it, and 2^-31
// of the base at least, and the sum of weights is kept times SCALE, too. Products of halves are exact, so what differs
// from attention.comp is the order of sums, and the device's exp2, which is good to 20 bits where a weight counts.
//
// Forbidden keys weigh 0. That is not enough where a value is infinite or NaN: a tile that holds such a one is
// summed key by key, those left out that a query does not see.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "coop.glsl"
#include "mask.glsl"
#include "parts.glsl"

const uint  SUBGROUPS = 4, LANES = SUBGROUPS * SUBGROUP, QUERIES = SUBGROUPS * MM, KEYS = 64;
const uint  PARTS = SUBGROUP / MM, OWN = 16 / PARTS; // OWN: fours of 64 columns of a row that a lane has
const uint  ROW = WIDTH / 8, PITCH = ROW + 1;        // of keys or values, 8 halves to a uvec4
const uint  EACH = KEYS * ROW / LANES, WIDTHS = WIDTH / 64;
const uint  STRIP = 17, STRIPS = QUERIES * STRIP;    // a row of a strip: 64 floats, or 64 and 64 halves; padded
const float SLACK = 8.0, SCALE = 128.0;      // 2^SLACK SCALE is a half
const bool  TWO = WIDTH <= 64;               // keys and values have a place each, which saves two barriers of four
// Mesa's lavapipe takes a barrier of a subgroup for one of the workgroup: each subgroup has to come to as many.
const bool  TOGETHER = MM == 8;
const uint  KEYS_AT = STRIPS, VALUES_AT = STRIPS + (TWO ? KEYS * PITCH : 0);
layout(local_size_x = 4 * SUBGROUP) in;

shared uvec4 sh[STRIPS + (TWO ? 2 : 1) * KEYS * PITCH]; // strips; keys or queries; values
shared float said[LANES];                // of one lane to the others of its row
shared uint  odd_tile;                   // 1 + the first key of a tile with a value that is not finite
// 1 + that of the last in which a base moved; TOGETHER: the first counts for all
shared uint  moved_tile[SUBGROUPS];

uvec4 next[EACH];

uint strip()  { return gl_SubgroupID * MM * STRIP; }
uint row_at() { return strip() + gl_SubgroupInvocationID % MM * STRIP; }
uint part_()  { return gl_SubgroupInvocationID / MM; }
uint mover()  { return TOGETHER ? 0 : gl_SubgroupID; }

void fetch_queries(uint i0, uint h)
{
	[[unroll]] for (uint n = 0; n < EACH; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES, i = i0 + e / ROW, d = e % ROW * 8;
		next[n] = e / ROW < QUERIES && i < p.T && d < p.K ? Words4(p.q).v[((i * p.H + h) * p.K + d) / 8] : uvec4(0);
	}
}

void fetch_keys(uint j0, uint to, uint h)
{
	[[unroll]] for (uint n = 0; n < EACH; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES, j = j0 + e / ROW, d = e % ROW * 8;
		next[n] = j < to && d < p.K ? Words4(p.k).v[(k_row(j, h) + d) / 8] : uvec4(0);
	}
}

void fetch_values(uint j0, uint to, uint h)
{
	uint odd = 0; // an exponent of ones carries into the bit above it

	[[unroll]] for (uint n = 0; n < EACH; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES, j = j0 + e / ROW, d = e % ROW * 8;
		next[n] = j < to && d < p.K ? Words4(p.v).v[(v_row(j, h) + d) / 8] : uvec4(0);
		[[unroll]] for (uint m = 0; m < 4; m++)
			odd |= (next[n][m] & 0x7C007C00u) + 0x04000400u;
	}
	if ((odd & 0x80008000u) != 0)
		odd_tile = j0 + 1;
}

void keep(uint to)
{
	[[unroll]] for (uint n = 0; n < EACH; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES;
		sh[to + e / ROW * PITCH + e % ROW] = next[n];
	}
}

// Over the lanes of a row. Another call must not follow without a barrier between them.
float of_row(float x, bool sum)
{
	const uint first = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID % MM;

	said[gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID] = x;
	subgroupBarrier();
	x = said[first];
	[[unroll]] for (uint n = 1; n < PARTS; n++)
		x = sum ? x + said[first + n * MM] : max(x, said[first + n * MM]);
	return x;
}

// The keys of this part that the lane's query sees are [seen_from, seen_to).
uint seen_from, seen_to;

bool seen(uint j) { return j >= seen_from && j < seen_to; }

void score_tile(const MAT_A q[WIDTH / MK])
{
	[[unroll]] for (uint j = 0; j < KEYS / MN; j++) {
		MAT_C s = MAT_C(0.0);
		[[unroll]] for (uint k = 0; k < WIDTH / MK; k++) {
			MAT_B b;
			LOAD_COLS(b, sh, KEYS_AT + j * MN * PITCH + k * (MK / 8), PITCH);
			s = MULADD(q[k], b, s);
		}
		STORE_ROWS(s, sh, strip() + j * (MN / 4), STRIP);
	}
}

// Two numbers as two halves each: the first 11 bits, and what is left. Cut by integers, for a compiler may take
// unpackHalf2x16 of packHalf2x16 for what went in, and nothing would be left.
void split(vec2 w, out uint high, out uint low)
{
	const vec2 cut = vec2(uintBitsToFloat(floatBitsToUint(w.x) & 0xFFFFE000u),
	                      uintBitsToFloat(floatBitsToUint(w.y) & 0xFFFFE000u));

	high = packHalf2x16(cut);
	low = packHalf2x16(w - cut);
}

// Weights of this lane, times SCALE, into the strip. Returns their sum. all: every query of the block sees every key of
// the tile.
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
		sh[row_at() + (part_() * OWN + n) / 2] = high;
		sh[row_at() + 8 + (part_() * OWN + n) / 2] = low;
	}
	return sum;
}

// The weights of the strip times the values, into acc.
void add_values(inout MAT_C acc[WIDTH / MN])
{
	[[unroll]] for (uint k = 0; k < KEYS / MK; k++) {
		MAT_A high, low;
		LOAD_ROWS(high, sh, strip() + k * (MK / 8), STRIP);
		LOAD_ROWS(low, sh, strip() + 8 + k * (MK / 8), STRIP);
		[[unroll]] for (uint j = 0; j < WIDTH / MN; j++) {
			MAT_B b;
			LOAD_ROWS(b, sh, VALUES_AT + k * MK * PITCH + j * (MN / 8), PITCH);
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

// The same for this lane's columns, key by key.
void odd_values(uint j0, out vec4 x[WIDTHS * OWN])
{
	[[unroll]] for (uint n = 0; n < WIDTHS * OWN; n++)
		x[n] = vec4(0.0);
	for (uint c = 0; c < KEYS; c++)
		if (seen(j0 + c)) {
			const float w = four_of(row_at(), c / 4)[c % 4] + four_of(row_at() + 8, c / 4)[c % 4];
			[[unroll]] for (uint n = 0; n < WIDTHS * OWN; n++)
				x[n] += w * four_of(VALUES_AT + c * PITCH, n / OWN * 16 + part_() * OWN + n % OWN);
		}
}

// acc = acc times + more (none: not read), row by row, by way of the strip, which is free before and behind.
void change(inout MAT_C acc[WIDTH / MN], float times, bool none, const vec4 more[WIDTHS * OWN])
{
	[[unroll]] for (uint g = 0; g < WIDTHS; g++) {
		[[unroll]] for (uint j = 0; j < 64 / MN; j++)
			STORE_ROWS(acc[g * (64 / MN) + j], sh, strip() + j * (MN / 4), STRIP);
		subgroupBarrier();
		[[unroll]] for (uint n = 0; n < OWN; n++) {
			const uint at = row_at() + part_() * OWN + n;
			const vec4 x = uintBitsToFloat(sh[at]);
			sh[at] = floatBitsToUint(none ? x * times : x + more[g * OWN + n]);
		}
		subgroupBarrier();
		[[unroll]] for (uint j = 0; j < 64 / MN; j++)
			LOAD_ROWS(acc[g * (64 / MN) + j], sh, strip() + j * (MN / 4), STRIP);
		subgroupBarrier();
	}
}

// Columns 64 g to 64 g + 63 of the context. Its rows pass through the strip, and leave it in a loop that is not
// unrolled: code that runs once is waited for.
void write_columns(uint i, uint h, uint part, uint g, float sum)
{
	subgroupBarrier();
	[[dont_unroll]] for (uint n = 0; n < OWN; n++) {
		const uint d = (g * 16 + part_() * OWN + n) * 4;
		const vec4 x = uintBitsToFloat(sh[row_at() + part_() * OWN + n]);
		if (i < p.T && d < p.K && parts() == 1)
			put4(p.y, (i * p.H + h) * p.K + d, x / sum);
		else if (i < p.T && d < p.K)
			[[unroll]] for (uint c = 0; c < 4; c++)
				Float(p.y).v[part_at(i, h, part) + d + c] = x[c];
	}
	subgroupBarrier();
}

void keep_columns(const MAT_C acc[WIDTH / MN], uint g)
{
	[[unroll]] for (uint j = 0; j < 64 / MN; j++)
		STORE_ROWS(acc[g * (64 / MN) + j], sh, strip() + j * (MN / 4), STRIP);
}

void write(uint i, uint h, uint part, const MAT_C acc[WIDTH / MN], float base, float sum)
{
	keep_columns(acc, 0);
	write_columns(i, h, part, 0, sum);
	if (WIDTHS > 1) { // no loop, for then the matrices would lie in memory
		keep_columns(acc, WIDTHS - 1);
		write_columns(i, h, part, WIDTHS - 1, sum);
	}
	if (parts() > 1 && part_() == 0 && i < p.T) {
		Float(p.y).v[part_at(i, h, part) + p.K] = base * 0.69314718; // as a power of e
		Float(p.y).v[part_at(i, h, part) + p.K + 1] = sum;
	}
}

void block(uint i0, uint h, uint part)
{
	const uint i = i0 + gl_SubgroupID * MM + gl_SubgroupInvocationID % MM, last = min(i0 + QUERIES, p.T) - 1;
	const uint from = max(keys_begin(i0), part_begin(part)) / KEYS * KEYS, to = min(keys_end(last), part_end(part));
	const uint all_from = keys_begin(last), all_to = min(keys_end(i0), to); // seen by all
	const float unit = p.scale * 1.44269504; // scores as powers of 2
	float base = -INFINITY, sum = 0.0; // sum: of this lane's part of the row
	vec4  s[OWN], odd_sums[WIDTHS * OWN];
	MAT_A q[WIDTH / MK];
	MAT_C acc[WIDTH / MN];

	seen_from = keys_begin(i);
	seen_to = min(keys_end(i), to);
	[[unroll]] for (uint j = 0; j < WIDTH / MN; j++)
		acc[j] = MAT_C(0.0);
	fetch_queries(i0, h);
	keep(KEYS_AT);
	odd_tile = 0;
	moved_tile[mover()] = 0;
	barrier();
	[[unroll]] for (uint k = 0; k < WIDTH / MK; k++)
		LOAD_ROWS(q[k], sh, KEYS_AT + gl_SubgroupID * MM * PITCH + k * (MK / 8), PITCH);
	fetch_keys(from, to, h);
	barrier(); // queries are read above
	for (uint j0 = from; j0 < to; j0 += KEYS) {
		const bool all = j0 >= all_from && j0 + KEYS <= all_to;
		keep(KEYS_AT);
		barrier(); // and values are read below
		fetch_values(j0, to, h);
		score_tile(q);
		if (!TWO)
			barrier(); // keys are read above
		keep(VALUES_AT);
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
			// Nothing seen yet but -inf: there is nothing to multiply.
			const float times = base == old ? 1.0 : old == -INFINITY ? 0.0 : exp2(old - base);
			sum *= times;
			if (j0 != from)
				change(acc, times, true, odd_sums);
		}
		// exp(-inf - 0) is 0, exp(-inf + inf) no number.
		sum += weigh(j0, all, s, base == -INFINITY ? 0.0 : base);
		barrier(); // values and the strip are written; keys are read above
		if (odd_tile == j0 + 1) {
			odd_values(j0, odd_sums);
			subgroupBarrier();
			change(acc, 1.0, false, odd_sums);
		} else {
			add_values(acc);
		}
		subgroupBarrier(); // the strip is read above
		if (!TWO)
			barrier(); // values, too
	}
	sum = of_row(sum, true);
	write(i, h, part, acc, base, sum);
	barrier(); // sh is read above
}

void main()
{
	const uint blocks = (p.T + QUERIES - 1) / QUERIES;

	for (uint w = gl_WorkGroupID.y; w < blocks * parts(); w += gl_NumWorkGroups.y)
		for (uint h = gl_WorkGroupID.x; h < p.H; h += gl_NumWorkGroups.x) {
			// The last blocks see the most keys and start first, of all heads: devices take x first.
			const uint i0 = (blocks - 1 - w / parts()) * QUERIES, part = w % parts();
			if (part >= parts_begin(i0) && part < parts_end(min(i0 + QUERIES, p.T) - 1))
				block(i0, h, part);
		}
}
