/* float_bits.h: a float and its bits. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float from_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

static inline uint32_t to_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return u;
}
