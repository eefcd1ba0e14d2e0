/* rotate.c: see rotate.h. */
#include "compare/explain/rotate.h"
#include "compare/explain/edit_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The sine and cosine of pair i at that position. */
static void table_at(const vn_rope *r, const vn_rotate_edit *e, float frequency, float factor, int64_t i,
                     int64_t position, double *c, double *s)
{
	const int64_t at = e->call ? position % e->call : position;
	const double  p = vn_in_format((double)vn_rope_angle(r, 1.0f, i, 0, at), e->positions);
	const float   f = (float)vn_in_format((double)frequency, e->frequencies);
	const double  angle = vn_in_format((double)((float)p * f), e->angles);
	const double  cosine = vn_in_format(cos(angle) * (double)factor, e->table),
				 sine = vn_in_format(sin(angle) * (double)factor, e->table);

	*c = e->exchanged ? sine : cosine;
	*s = e->exchanged ? cosine : sine;
}

bool vn_rotate_rows(const vn_plan *p, const vn_node *n, const vn_rotate_edit *edit, const int32_t *ids, const double *x,
                    int64_t first, int64_t T, int64_t S, int64_t H, int64_t K, double *y)
{
	const vn_rope *r = &n->c.rope.rope;
	const int64_t  half = r->rotary_dim / 2;
	float         *f = malloc((size_t)half * sizeof *f + 1), factor = 1;

	if (!f)
		return false;
	vn_rope_frequencies(r, p->list, S, f, &factor);
	memcpy(y, x, (size_t)(T * H * K) * sizeof *y);
	for (int64_t t = 0; t < T; t++)
		for (int64_t i = 0; i < half; i++) {
			double  c, s;
			int64_t j, k;
			table_at(r, edit, f[i], factor, i, edit->by_ids ? ids[t] : first + t, &c, &s);
			vn_rope_pair(r, K, i, &j, &k);
			for (int64_t h = 0; h < H; h++) {
				const double *xh = x + (t * H + h) * K;
				double       *yh = y + (t * H + h) * K;
				yh[j] = xh[j] * c - xh[k] * s;
				yh[k] = xh[k] * c + xh[j] * s;
			}
		}
	free(f);
	return true;
}
