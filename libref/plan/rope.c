/* rope.c: see rope.h. */
#include "libref/plan/rope.h"

#include <math.h>

void vn_rope_frequencies(const vn_rope *r, float *inv_freq, float *attention_factor)
{
	for (int i = 0; i < r->rotary_dim / 2; i++)
		inv_freq[i] = 1.0f / powf((float)r->theta, (float)(2 * i) / (float)r->rotary_dim);
	*attention_factor = 1.0f;
}
