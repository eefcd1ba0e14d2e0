#version 460
// attention_coop: attention.comp by cooperative matrices.
//
//   q (T,H,K) half in     k, v half in, the cache (mask.glsl)     y (T,H,K) half out, or parts (parts.glsl)
//   push      vn_push_attention
//   dispatch  x: parts of each block of 4 MM queries, y: heads; both in strides of the grid
//
// K is a multiple of 8 and at most WIDTH. A subgroup has MM queries and all keys of a tile; a lane has a PARTS-th of a
// row of them, of its scores and of its context, in registers and in float. Between the two stands a strip of
// shared memory, a subgroup's own: scores, then weights, then what a tile adds to the context.
//
// A weight is not rounded to half: it goes as the sum of two halves, times SCALE, which keeps 22 bits of it and keeps
// both out of the subnormals, and the sum of weights is kept times SCALE, too. Products of halves are exact, so what
// differs from attention.comp is the order of sums.
//
// Forbidden keys weigh 0. That is not enough where a value is infinite or NaN: a tile that holds such a one is
// summed key by key, those left out that a query does not see.
#extension GL_GOOGLE_include_directive : require
#include "coop.glsl"
#include "real.glsl"
#include "mask.glsl"
#include "parts.glsl"

const uint  SUBGROUPS = 4, LANES = SUBGROUPS * SUBGROUP, QUERIES = SUBGROUPS * MM, KEYS = 64;
const uint  PARTS = SUBGROUP / MM, OWN = 16 / PARTS; // OWN: fours of 64 columns of a row that a lane has
const uint  ROW = WIDTH / 8, PITCH = ROW + 1;        // of keys or values, 8 halves to a uvec4
const uint  EACH = KEYS * ROW / LANES, WIDTHS = WIDTH / 64;
const uint  STRIP = 17, STRIPS = QUERIES * STRIP;    // a row of a strip: 64 floats, or 64 and 64 halves; padded
const float SCALE = 32768.0;
layout(local_size_x = 4 * SUBGROUP) in;

shared uvec4 sh[STRIPS + KEYS * PITCH]; // strips; keys, values or queries
shared float said[LANES];               // of one lane to the others of its row
shared uint  odd_tile;                  // 1 + the first key of a tile with a value that is not finite

uvec4 next[EACH];

uint strip()  { return gl_SubgroupID * MM * STRIP; }
uint row_at() { return strip() + gl_SubgroupInvocationID % MM * STRIP; }
uint part_()  { return gl_SubgroupInvocationID / MM; }

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
	bool odd = false;

	[[unroll]] for (uint n = 0; n < EACH; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES, j = j0 + e / ROW, d = e % ROW * 8;
		next[n] = j < to && d < p.K ? Words4(p.v).v[(v_row(j, h) + d) / 8] : uvec4(0);
		[[unroll]] for (uint m = 0; m < 4; m++)
			odd = odd || (next[n][m] & 0x7C00u) == 0x7C00u || (next[n][m] & 0x7C000000u) == 0x7C000000u;
	}
	if (odd)
		odd_tile = j0 + 1;
}

void keep()
{
	[[unroll]] for (uint n = 0; n < EACH; n++) {
		const uint e = gl_LocalInvocationID.x + n * LANES;
		sh[STRIPS + e / ROW * PITCH + e % ROW] = next[n];
	}
}

// Folds over the lanes of a row. A barrier of the workgroup stands inside, and one has to come before the next call.
float most_of_row(float x)
{
	said[gl_LocalInvocationID.x] = x;
	barrier();
	const uint first = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID % MM;
	x = said[first];
	[[unroll]] for (uint n = 1; n < PARTS; n++)
		x = max(x, said[first + n * MM]);
	return x;
}

float sum_of_row()
{
	const uint first = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID % MM;
	float x = said[first];

	[[unroll]] for (uint n = 1; n < PARTS; n++)
		x += said[first + n * MM];
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
			LOAD_COLS(b, sh, STRIPS + j * MN * PITCH + k * (MK / 8), PITCH);
			s = MULADD(q[k], b, s);
		}
		STORE_ROWS(s, sh, strip() + j * (MN / 4), STRIP);
	}
}

// Two numbers as two halves each: the first 11 bits, and what is left. Cut by integers, for a compiler may take unpackHalf2x16 of
// packHalf2x16 for what went in, and nothing would be left.
void split(vec2 w, out uint high, out uint low)
{
	const vec2 cut = vec2(uintBitsToFloat(floatBitsToUint(w.x) & 0xFFFFE000u), uintBitsToFloat(floatBitsToUint(w.y) & 0xFFFFE000u));

	high = packHalf2x16(cut);
	low = packHalf2x16(w - cut);
}

// Weights of this lane, times SCALE, into the strip. Returns their sum.
float weigh(uint j0, const vec4 s[OWN], float base)
{
	float sum = 0.0;

	[[unroll]] for (uint n = 0; n < OWN; n += 2) {
		uvec4 high, low;
		[[unroll]] for (uint m = 0; m < 2; m++) {
			vec4 w;
			[[unroll]] for (uint c = 0; c < 4; c++) {
				w[c] = seen(j0 + (part_() * OWN + n + m) * 4 + c) ? SCALE * exp_(s[n + m][c] - base) : 0.0;
				sum += w[c];
			}
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
	[[unroll]] for (uint j = 0; j < WIDTH / MN; j++)
		acc[j] = MAT_C(0.0);
	[[unroll]] for (uint k = 0; k < KEYS / MK; k++) {
		MAT_A high, low;
		LOAD_ROWS(high, sh, strip() + k * (MK / 8), STRIP);
		LOAD_ROWS(low, sh, strip() + 8 + k * (MK / 8), STRIP);
		[[unroll]] for (uint j = 0; j < WIDTH / MN; j++) {
			MAT_B b;
			LOAD_ROWS(b, sh, STRIPS + k * MK * PITCH + j * (MN / 8), PITCH);
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
void add_odd_values(uint j0, inout vec4 context[WIDTHS * OWN])
{
	for (uint c = 0; c < KEYS; c++)
		if (seen(j0 + c)) {
			const float w = four_of(row_at(), c / 4)[c % 4] + four_of(row_at() + 8, c / 4)[c % 4];
			[[unroll]] for (uint n = 0; n < WIDTHS * OWN; n++)
				context[n] += w * four_of(STRIPS + c * PITCH, n / OWN * 16 + part_() * OWN + n % OWN);
		}
}

void write(uint i, uint h, uint part, const vec4 context[WIDTHS * OWN], float top, float sum)
{
	if (i >= p.T)
		return;
	[[unroll]] for (uint n = 0; n < WIDTHS * OWN; n++) {
		const uint d = (n / OWN * 16 + part_() * OWN + n % OWN) * 4;
		if (d >= p.K)
			continue;
		if (parts() == 1)
			put4(p.y, (i * p.H + h) * p.K + d, context[n] / sum);
		else
			[[unroll]] for (uint c = 0; c < 4; c++)
				Float(p.y).v[part_at(i, h, part) + d + c] = context[n][c];
	}
	if (parts() > 1 && part_() == 0) {
		Float(p.y).v[part_at(i, h, part) + p.K] = top;
		Float(p.y).v[part_at(i, h, part) + p.K + 1] = sum;
	}
}

void block(uint i0, uint h, uint part)
{
	const uint i = i0 + gl_SubgroupID * MM + gl_SubgroupInvocationID % MM, last = min(i0 + QUERIES, p.T) - 1;
	const uint from = max(keys_begin(i0), part_begin(part)) / KEYS * KEYS, to = min(keys_end(last), part_end(part));
	float top = -INFINITY, sum = 0.0;
	vec4  context[WIDTHS * OWN], s[OWN];
	MAT_A q[WIDTH / MK];
	MAT_C acc[WIDTH / MN];

	seen_from = keys_begin(i);
	seen_to = min(keys_end(i), to);
	[[unroll]] for (uint n = 0; n < WIDTHS * OWN; n++)
		context[n] = vec4(0.0);
	fetch_queries(i0, h);
	keep();
	odd_tile = 0;
	barrier();
	[[unroll]] for (uint k = 0; k < WIDTH / MK; k++)
		LOAD_ROWS(q[k], sh, STRIPS + gl_SubgroupID * MM * PITCH + k * (MK / 8), PITCH);
	fetch_keys(from, to, h);
	barrier(); // queries are read above
	for (uint j0 = from; j0 < to; j0 += KEYS) {
		keep();
		barrier();
		fetch_values(j0, to, h);
		score_tile(q);
		barrier(); // keys are read above
		keep();
		if (j0 + KEYS < to)
			fetch_keys(j0 + KEYS, to, h);
		float most = top;
		[[unroll]] for (uint n = 0; n < OWN; n++) {
			s[n] = uintBitsToFloat(sh[row_at() + part_() * OWN + n]);
			[[unroll]] for (uint c = 0; c < 4; c++) {
				s[n][c] = scaled(s[n][c]);
				if (seen(j0 + (part_() * OWN + n) * 4 + c))
					most = max(most, s[n][c]);
			}
		}
		most = most_of_row(most); // and the strip is read
		// Nothing seen yet but -inf: exp(-inf - 0) is 0, exp(-inf + inf) no number.
		const float base = most == -INFINITY ? 0.0 : most, old = exp_(top - base);
		top = most;
		const float mine = weigh(j0, s, base);
		const bool  odd = odd_tile == j0 + 1;
		barrier(); // said is read above
		said[gl_LocalInvocationID.x] = mine;
		[[unroll]] for (uint n = 0; n < WIDTHS * OWN; n++)
			context[n] *= old;
		if (odd)
			add_odd_values(j0, context);
		else
			add_values(acc);
		barrier(); // weights and values are read above
		sum = sum * old + sum_of_row();
		if (odd)
			continue;
		[[unroll]] for (uint g = 0; g < WIDTHS; g++) {
			[[unroll]] for (uint j = 0; j < 64 / MN; j++)
				STORE_ROWS(acc[g * (64 / MN) + j], sh, strip() + j * (MN / 4), STRIP);
			barrier();
			[[unroll]] for (uint n = 0; n < OWN; n++)
				context[g * OWN + n] += uintBitsToFloat(sh[row_at() + part_() * OWN + n]);
			if (g + 1 < WIDTHS)
				barrier(); // the strip is read above
		}
	}
	write(i, h, part, context, top, sum);
	barrier(); // sh is read above
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
