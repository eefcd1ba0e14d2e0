/* uniform.h: random numbers that are the same in every run. */
#pragma once

#include <stdint.h>

static uint64_t seed = 88172645463325252u; /* a test may set it, to anything but 0 */

static inline double uniform(void) /* xorshift, in (-1, 1) */
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(int64_t)seed / 9.3e18;
}
