/* quant.c: see quant.h. One function per format; inner loops have a fixed length and no branches,
 * so that the compiler vectorises them. */
#include "libref/base/quant.h"

#include "libref/base/clones.h"

#include <assert.h>
#include <string.h>

enum { SMALL = 32, LARGE = 256 }; /* weights of a block */

static float half_at(const unsigned char *p)
{
	uint16_t h;
	memcpy(&h, p, 2);
	return vn_f16_to_f32(h);
}

/* f16 d; i8 q[32] */
VN_CLONES
static void q8_0(float *y, const unsigned char *b, size_t blocks)
{
	for (; blocks; blocks--, b += 34, y += SMALL) {
		const float        d = half_at(b);
		const signed char *q = (const signed char *)b + 2;
		for (int j = 0; j < SMALL; j++)
			y[j] = d * (float)q[j];
	}
}

/* f16 d; u8 q[16]: the first half in the low nibbles */
VN_CLONES
static void q4_0(float *y, const unsigned char *b, size_t blocks)
{
	for (; blocks; blocks--, b += 18, y += SMALL) {
		const float          d = half_at(b);
		const unsigned char *q = b + 2;
		for (int j = 0; j < SMALL / 2; j++) {
			y[j] = d * (float)((q[j] & 15) - 8);
			y[j + SMALL / 2] = d * (float)((q[j] >> 4) - 8);
		}
	}
}

/* f16 d; f16 m; u8 q[16] */
VN_CLONES
static void q4_1(float *y, const unsigned char *b, size_t blocks)
{
	for (; blocks; blocks--, b += 20, y += SMALL) {
		const float          d = half_at(b), m = half_at(b + 2);
		const unsigned char *q = b + 4;
		for (int j = 0; j < SMALL / 2; j++) {
			y[j] = d * (float)(q[j] & 15) + m;
			y[j + SMALL / 2] = d * (float)(q[j] >> 4) + m;
		}
	}
}

/* Adds the fifth bits: bit j of a word belongs to weight j. */
static void five_bits(int *x, const unsigned char *high, const unsigned char *q)
{
	const uint32_t h = (uint32_t)high[0] | (uint32_t)high[1] << 8 | (uint32_t)high[2] << 16 | (uint32_t)high[3] << 24;
	for (int j = 0; j < SMALL / 2; j++) {
		x[j] = (q[j] & 15) | (int)(h >> j & 1) << 4;
		x[j + SMALL / 2] = q[j] >> 4 | (int)(h >> (j + 16) & 1) << 4;
	}
}

/* f16 d; u8 high[4]; u8 q[16] */
VN_CLONES
static void q5_0(float *y, const unsigned char *b, size_t blocks)
{
	int x[SMALL];
	for (; blocks; blocks--, b += 22, y += SMALL) {
		const float d = half_at(b);
		five_bits(x, b + 2, b + 6);
		for (int j = 0; j < SMALL; j++)
			y[j] = d * (float)(x[j] - 16);
	}
}

/* f16 d; f16 m; u8 high[4]; u8 q[16] */
VN_CLONES
static void q5_1(float *y, const unsigned char *b, size_t blocks)
{
	int x[SMALL];
	for (; blocks; blocks--, b += 24, y += SMALL) {
		const float d = half_at(b), m = half_at(b + 2);
		five_bits(x, b + 4, b + 8);
		for (int j = 0; j < SMALL; j++)
			y[j] = d * (float)x[j] + m;
	}
}

/* Eight scales and eight minima of 6 bits, packed in 12 bytes, times those of the block. */
static void scales_and_minima(const unsigned char *b, float scale[8], float minimum[8])
{
	const float          d = half_at(b), dmin = half_at(b + 2);
	const unsigned char *s = b + 4;
	for (int i = 0; i < 4; i++) {
		scale[i] = d * (float)(s[i] & 63);
		minimum[i] = dmin * (float)(s[i + 4] & 63);
		scale[i + 4] = d * (float)((s[i + 8] & 15) | s[i] >> 6 << 4);
		minimum[i + 4] = dmin * (float)(s[i + 8] >> 4 | s[i + 4] >> 6 << 4);
	}
}

/* f16 d; f16 dmin; u8 scales[12]; u8 q[128] */
VN_CLONES
static void q4_k(float *y, const unsigned char *b, size_t blocks)
{
	float scale[8], minimum[8];
	for (; blocks; blocks--, b += 144) {
		const unsigned char *q = b + 16;
		scales_and_minima(b, scale, minimum);
		for (int u = 0; u < 8; u += 2, q += 32, y += 64)
			for (int l = 0; l < 32; l++) {
				y[l] = scale[u] * (float)(q[l] & 15) - minimum[u];
				y[l + 32] = scale[u + 1] * (float)(q[l] >> 4) - minimum[u + 1];
			}
	}
}

/* f16 d; f16 dmin; u8 scales[12]; u8 high[32]; u8 q[128]: bit u of high[l] is the
 * fifth of group u */
VN_CLONES
static void q5_k(float *y, const unsigned char *b, size_t blocks)
{
	float scale[8], minimum[8];
	for (; blocks; blocks--, b += 176) {
		const unsigned char *high = b + 16, *q = b + 48;
		scales_and_minima(b, scale, minimum);
		for (int u = 0; u < 8; u += 2, q += 32, y += 64)
			for (int l = 0; l < 32; l++) {
				y[l] = scale[u] * (float)((q[l] & 15) | (high[l] >> u & 1) << 4) - minimum[u];
				y[l + 32] = scale[u + 1] * (float)(q[l] >> 4 | (high[l] >> (u + 1) & 1) << 4) - minimum[u + 1];
			}
	}
}

/* u8 low[128]; u8 high[64]; i8 scales[16]; f16 d: two halves of 128 weights,
 * one scale for 16 weights */
VN_CLONES
static void q6_k(float *y, const unsigned char *b, size_t blocks)
{
	for (; blocks; blocks--, b += 210) {
		const float          d = half_at(b + 208);
		const unsigned char *low = b, *high = b + 128;
		const signed char   *s = (const signed char *)b + 192;
		for (int h = 0; h < 2; h++, low += 64, high += 32, s += 8, y += 128)
			for (int e = 0; e < 2; e++) { /* the halves of a group of 32 */
				const float s0 = d * (float)s[e], s1 = d * (float)s[e + 2], s2 = d * (float)s[e + 4],
							s3 = d * (float)s[e + 6];
				for (int l = 16 * e; l < 16 * e + 16; l++) {
					y[l] = s0 * (float)(((low[l] & 15) | (high[l] & 3) << 4) - 32);
					y[l + 32] = s1 * (float)(((low[l + 32] & 15) | (high[l] >> 2 & 3) << 4) - 32);
					y[l + 64] = s2 * (float)((low[l] >> 4 | (high[l] >> 4 & 3) << 4) - 32);
					y[l + 96] = s3 * (float)((low[l + 32] >> 4 | high[l] >> 6 << 4) - 32);
				}
			}
	}
}

void vn_dequantise(float *dst, const void *src, vn_dtype from, size_t elements)
{
	const size_t blocks = elements / vn_dtype_block(from);

	assert(elements % vn_dtype_block(from) == 0);
	switch ((int)from) {
	case VN_Q4_0: q4_0(dst, src, blocks); break;
	case VN_Q4_1: q4_1(dst, src, blocks); break;
	case VN_Q5_0: q5_0(dst, src, blocks); break;
	case VN_Q5_1: q5_1(dst, src, blocks); break;
	case VN_Q8_0: q8_0(dst, src, blocks); break;
	case VN_Q4_K: q4_k(dst, src, blocks); break;
	case VN_Q5_K: q5_k(dst, src, blocks); break;
	case VN_Q6_K: q6_k(dst, src, blocks); break;
	default: assert(0);
	}
}
