/* quantise.c: see quantise.h. Products in float32 use the scale before rounding; the stored scale
 * is its float16. */
#include "libref/base/quantise.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { SMALL = 32 };

bool vn_quantises(vn_dtype to)
{
	return to == VN_Q8_0 || to == VN_Q4_0 || to == VN_Q4_1 || to == VN_Q5_0 || to == VN_Q5_1;
}

static void put_half(unsigned char *p, float x)
{
	const uint16_t h = vn_f32_to_f16(x);
	memcpy(p, &h, 2);
}

static float inverse(float d)
{
	return d != 0.0f ? 1.0f / d : 0.0f;
}

/* x truncated to 0..most. NaN gives 0. */
static int clamp_to_int(float x, int most)
{
	return x >= 0.0f ? (x < (float)most ? (int)x : most) : 0;
}

static void q8_0(unsigned char *b, const float *x)
{
	float top = 0.0f;
	for (int j = 0; j < SMALL; j++)
		top = fmaxf(top, fabsf(x[j]));
	const float d = top / 127.0f, id = inverse(d);
	put_half(b, d);
	for (int j = 0; j < SMALL; j++) {
		const float       q = roundf(x[j] * id);
		const signed char c = q >= -127.0f && q <= 127.0f ? (signed char)q : 0;
		memcpy(b + 2 + j, &c, 1);
	}
}

/* The element of largest magnitude gets the lowest code; q (SMALL). */
static float from_the_largest(const float *x, int half, int *q)
{
	float top = 0.0f, at = 0.0f;
	for (int j = 0; j < SMALL; j++)
		if (fabsf(x[j]) > top) {
			top = fabsf(x[j]);
			at = x[j];
		}
	const float d = at / (float)-half, id = inverse(d);
	for (int j = 0; j < SMALL; j++)
		q[j] = clamp_to_int(x[j] * id + ((float)half + 0.5f), 2 * half - 1);
	return d;
}

static float from_the_least(const float *x, int most, int *q, float *least)
{
	float low = x[0], high = x[0];
	for (int j = 1; j < SMALL; j++) {
		low = fminf(low, x[j]);
		high = fmaxf(high, x[j]);
	}
	const float d = (high - low) / (float)most, id = inverse(d);
	for (int j = 0; j < SMALL; j++)
		q[j] = clamp_to_int((x[j] - low) * id + 0.5f, most);
	*least = low;
	return d;
}

/* The first half goes to the low nibbles, the second to the high ones. */
static void put_nibbles(unsigned char *b, const int *q)
{
	for (int j = 0; j < SMALL / 2; j++)
		b[j] = (unsigned char)((q[j] & 15) | (q[j + SMALL / 2] & 15) << 4);
}

/* Bit j of a word is the fifth bit of number j. */
static void put_fifths(unsigned char *b, const int *q)
{
	memset(b, 0, 4);
	for (int j = 0; j < SMALL; j++)
		b[j / 8] = (unsigned char)(b[j / 8] | (q[j] >> 4 & 1) << j % 8);
}

/* Any of the formats but Q8_0: scale, minimum if it has one, fifth bits if it has them, nibbles. */
static void quantise_small(unsigned char *b, vn_dtype to, const float *x)
{
	const bool five = to == VN_Q5_0 || to == VN_Q5_1;
	int        q[SMALL];
	float      low;

	if (to == VN_Q4_1 || to == VN_Q5_1) {
		put_half(b, from_the_least(x, five ? 31 : 15, q, &low));
		put_half(b + 2, low);
		b += 4;
	} else {
		put_half(b, from_the_largest(x, five ? 16 : 8, q));
		b += 2;
	}
	if (five) {
		put_fifths(b, q);
		b += 4;
	}
	put_nibbles(b, q);
}

void vn_quantise(void *dst, vn_dtype to, const float *src, size_t elements)
{
	unsigned char *b = dst;

	assert(vn_quantises(to) && elements % SMALL == 0);
	for (size_t i = 0; i < elements; i += SMALL) {
		if (to == VN_Q8_0)
			q8_0(b, src + i);
		else
			quantise_small(b, to, src + i);
		b += vn_dtype_bytes(to, SMALL);
	}
}
