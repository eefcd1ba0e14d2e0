/* rope.c: rotary positions.
 *
 * The tables are float32 in every precision: transformers computes them so, in
 * a float64 model too, which makes them part of what the model is. What is done
 * with them is computed in double and rounded once. */
#include "libref/ops/ops.h"

#include "libref/ops/rope_table.h"
#include "libref/ops/steps.h"

#include <stdlib.h>
#include <string.h>

bool REAL(vn_rotate)(real *y, const real *x, const vn_rope *rope, const vn_list *lists, int64_t past, int64_t T, int64_t H, int64_t K)
{
	const int64_t half = rope->rotary_dim / 2;
	float        *f = malloc((size_t)half * 3 * sizeof *f), af; /* f, cos, sin: (half) each */
	float        *c = f + half, *s = c + half;
	const int     steps = rope->steps;

	if (!f)
		return false;
	vn_rope_frequencies(rope, lists, past + T, f, &af);
	for (int64_t t = 0; t < T; t++) {
		for (int64_t i = 0; i < half; i++) {
			const float angle = vn_rope_angle(rope, f[i], i, past, t);
			c[i] = (float)vn_stepped((double)(vn_rope_cos(angle) * af), steps);
			s[i] = (float)vn_stepped((double)(vn_rope_sin(angle) * af), steps);
		}
		for (int64_t h = 0; h < H; h++) {
			const real *xh = x + (t * H + h) * K;  /* (K) */
			real       *yh = y + (t * H + h) * K;  /* (K) */

			memcpy(yh, xh, (size_t)K * sizeof *yh);
			for (int64_t i = 0; i < half; i++) {
				int64_t j, k;
				vn_rope_pair(rope, K, i, &j, &k);
				const double a = (double)xh[j], b = (double)xh[k];
				yh[j] = (real)(vn_stepped(a * (double)c[i], steps) - vn_stepped(b * (double)s[i], steps));
				yh[k] = (real)(vn_stepped(b * (double)c[i], steps) + vn_stepped(a * (double)s[i], steps));
			}
		}
	}
	free(f);
	return true;
}
