/* rotate.c: see rotate.h. */
#include "compare/explain/rotate.h"
#include "compare/explain/edit_matrix.h"
#include "compare/explain/own_calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The position that is rotated by in the place of `at`. */
static double map_position(const vn_position_map *m, int64_t at)
{
	const double p = m->times * (double)at + m->plus;

	return at < m->first || (at > m->last && !m->open) ? (double)at : m->whole ? floor(p) : p;
}

/* The angle of pair i for one radian a position, which may lie between two. */
static double angle_at(const vn_rope *r, int64_t i, double at)
{
	const double low = floor(at), p = (double)vn_rope_angle(r, 1.0f, i, 0, (int64_t)low);

	return at == low ? p : p + (at - low) * ((double)vn_rope_angle(r, 1.0f, i, 0, (int64_t)low + 1) - p);
}

/* The sine and cosine of pair i at that position. */
static void table_at(const vn_rope *r, const vn_rotate_edit *e, float frequency, float factor, int64_t i, double at,
                     double *c, double *s)
{
	const double p = vn_in_format(angle_at(r, i, at), e->positions);
	const float  f = (float)vn_in_format((double)frequency, e->frequencies);
	const double angle = vn_in_format((double)((float)p * f), e->angles);
	const double cosine = vn_in_format(cos(angle) * (double)factor, e->table),
				 sine = vn_in_format(sin(angle) * (double)factor, e->table);

	*c = e->exchanged ? sine : cosine;
	*s = e->exchanged ? cosine : sine;
}

bool vn_rotate_rows(const vn_plan *p, const vn_node *n, const vn_rotate_edit *edit, const int32_t *ids,
                    const int64_t *begins, const double *x, int64_t first, int64_t T, int64_t S, int64_t H, int64_t K,
                    double *y)
{
	const vn_rope *r = &n->c.rope.rope;
	const int64_t  half = r->rotary_dim / 2;
	float         *f = malloc((size_t)half * sizeof *f + 1), factor = 1;

	if (!f)
		return false;
	vn_rope_frequencies(r, p->list, S, f, &factor);
	memcpy(y, x, (size_t)(T * H * K) * sizeof *y);
	for (int64_t t = 0; t < T; t++) {
		const int64_t from = edit->call ? vn_call_of(begins, edit->call, first + t) : -1;
		const double  at = edit->by_ids  ? (double)ids[t]
		                   : edit->moved ? map_position(&edit->map, first + t)
		                                 : (double)(first + t - (from > 0 ? from : 0));
		for (int64_t i = 0; i < half; i++) {
			double  c, s;
			int64_t j, k;
			table_at(r, edit, f[i], factor, i, at, &c, &s);
			vn_rope_pair(r, K, i, &j, &k);
			for (int64_t h = 0; h < H; h++) {
				const double *xh = x + (t * H + h) * K;
				double       *yh = y + (t * H + h) * K;
				yh[j] = xh[j] * c - xh[k] * s;
				yh[k] = xh[k] * c + xh[j] * s;
			}
		}
	}
	free(f);
	return true;
}
