/* rope.c: rotary positions.
 *
 * The tables are float32 in every precision, as transformers computes them even in a float64 model,
 * so they are part of the model's definition. Everything else is computed in double and rounded
 * once.
 */
#include "libref/ops/ops.h"

#include "libref/ops/rope_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* cos and sin (R/2) of a position, as another implementation computes them (vn_angles). kept: of
 * vn_rope_frequencies_wide, followed by its `stretch`. */
static void other_angles(const vn_rope_input *r, double base, const double *kept, double position, float *c, float *s)
{
	const vn_rope            *rope = r->rope;
	const vn_rope_experiment *e = r->e;
	const double             *stretch = kept + rope->rotary_dim / 2;
	const float               step = (float)pow(base, -2.0 / rope->rotary_dim);
	float                     chain = 1.0f;

	for (int64_t k = 0; k < rope->rotary_dim / 2; k++) {
		const int64_t i = vn_rope_rolled(e, k, rope->rotary_dim / 2);
		const float   at = vn_rope_angle(e, 1.0f, i, position);
		chain = k ? chain * step : vn_rope_angle(e, 1.0f, 0, position);
		const double angle = e->angles == VN_ANGLES_WIDE   ? (double)at * (kept[k] * stretch[k])
		                     : e->angles == VN_ANGLES_ONCE ? (double)(at * (float)(kept[k] * stretch[k]))
		                                                   : (double)(at != 0.0f ? chain * (float)stretch[k] : 0.0f);
		c[i] = (float)cos(angle);
		s[i] = (float)sin(angle);
	}
}

/* Models of neighbouring pairs multiply complex numbers, for which torch takes the C library's
 * cosine and sine. */
static void complex_row(float *c, float *s, const float *angle, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		c[i] = cosf(angle[i]);
		s[i] = sinf(angle[i]);
	}
}

/* Rotates one head x (K) into y. */
static void rotate_head(real *y, const real *x, const vn_rope_input *r, const float *c, const float *s)
{
	const int64_t         half = r->rope->rotary_dim / 2, K = r->K;
	const int             rounding = r->e ? r->e->rounding : VN_FORMAT_NONE;
	const vn_rope_columns p = vn_rope_pair(r->rope, r->e, K, 0), next = vn_rope_pair(r->rope, r->e, K, 1);
	const int64_t         in = next.in[0] - p.in[0], out = next.out[0] - p.out[0];

	memcpy(y, x, (size_t)K * sizeof *y);
	for (int64_t i = 0; i < half; i++) {
		const double a = (double)x[p.in[0] + i * in], b = (double)x[p.in[1] + i * in];
		y[p.out[0] + i * out] = (real)(vn_in_format(a * (double)c[i], rounding) -
		                               vn_in_format(b * (double)s[i], rounding));
		y[p.out[1] + i * out] = (real)(vn_in_format(b * (double)c[i], rounding) +
		                               vn_in_format(a * (double)s[i], rounding));
	}
}

static double position_of(const vn_rope_input *r, int64_t t)
{
	/* positions that depend on calls do so in each of the calls that were joined to this one */
	const vn_other_rotation *o = r->e ? &r->e->other : NULL;
	const int                call = !o ? 0 : !o->call && (o->twice || o->words) ? VN_OWN_CALLS : o->call;

	return vn_rope_position(r->e, &(vn_rope_token) {
									  .past = r->past,
									  .t = t,
									  .id = r->ids ? r->ids[t] : 0,
									  .prompt = r->prompt,
									  .begin = call == VN_OWN_CALLS ? (r->begins ? r->begins[t] : -1)
	                                                                : vn_call_begin(NULL, call, r->past + t),
								  });
}

bool REAL(vn_rotate)(real *y, const real *x, const vn_rope_input *r)
{
	const vn_rope_experiment *e = r->e;
	const int64_t             half = r->rope->rotary_dim / 2, T = r->T, H = r->H, K = r->K;
	const vn_rounding_format  rounding = e ? (e->rounding ? (vn_rounding_format)e->rounding : e->other.table)
	                                       : VN_FORMAT_NONE;
	const bool                two = e && e->other_theta > 0, exchanged = e && e->other.exchanged,
			   other = e && e->angles != VN_ANGLES_TORCH && !e->half_angles && !two;
	double *kept = malloc((size_t)half * (2 * sizeof *kept + (size_t)(2 + 3 * T) * sizeof(float))),
		   *stretch = kept + half;                                                       /* (half) each */
	float *f = (float *)(stretch + half), *later = f + half, *tables = later + half, af; /* (half), (T,3,half) */
	double base = 0.0;

	if (!kept)
		return false;
	if (other)
		base = vn_rope_frequencies_wide(r->rope, r->lists, vn_rope_length(e, r->past, T), f,
		                                (double *[]) { kept, stretch }, &af);
	else
		vn_rope_frequencies(r->rope, r->lists, vn_rope_length(e, r->past, T), f, &af);
	if (two) {
		vn_rope with = *r->rope;
		with.theta = e->other_theta;
		vn_rope_frequencies(&with, r->lists, vn_rope_length(e, r->past, T), later, &af);
	}
#pragma omp parallel for num_threads(r->threads) schedule(static)
	for (int64_t t = 0; t < T; t++) {
		const float *own = two && r->past + t >= e->theta_from ? later : f;
		float       *c = tables + 3 * t * half, *s = c + half, *angle = s + half;
		const double position = position_of(r, t);

		if (other)
			other_angles(r, base, kept, position, c, s);
		for (int64_t k = 0; !other && k < half; k++) {
			const int64_t i = vn_rope_rolled(e, k, half);
			angle[i] = vn_rope_angle(e, own[k], i, position);
		}
		if (!other && r->rope->pairs == VN_PAIR_NEIGHBOURS)
			complex_row(c, s, angle, half);
		else if (!other)
			vn_rope_row(c, s, angle, half);
		for (int64_t i = 0; i < half; i++) {
			c[i] = (float)vn_in_format((double)(c[i] * af), rounding);
			s[i] = (float)vn_in_format((double)(s[i] * af), rounding);
		}
		for (int64_t h = 0; h < H; h++)
			rotate_head(y + (t * H + h) * K, x + (t * H + h) * K, r, exchanged ? s : c, exchanged ? c : s);
	}
	free(kept);
	return true;
}
