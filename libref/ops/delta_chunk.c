/* delta_chunk.c: the gated delta rule in chunks, in float32. It is not a reference: it shows what
 * float32 and another order of sums do in a correct engine
 * (compare/replay/reference_variants.h). */
#include "libref/ops/ops.h"

#include "libref/plan/plan.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { C = VN_DELTA_CHUNK };

typedef struct chunk_room {
	float  c[C], beta[C];
	float *k, *rows, *w, *u, *s; /* keys (C,dk), queries (C,dk), W (C,dk), U then N (C,dv), S (dk,dv) */
	float  A[C][C], P[C][C];
} chunk_room;

static float dot(const float *a, const float *b, int64_t n)
{
	float sum = 0.0f;
	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* y -= f x; adds when f is negative. */
static void subtract_scaled(float *y, float f, const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		y[i] -= f * x[i];
}

/* Returns a sum in float32; for a draw (a->x), rounded at random first. In a head that forgets
 * fast, the last digit of one sum, some 20, is most of a row's error, and no digit of g moves
 * it. */
static float round_sum(double sum, const REAL(vn_delta) * a, int64_t h, int64_t t)
{
	uint64_t x = ((uint64_t)a->x->delta.drawn << 32) + (uint64_t)((a->past + t) * a->value_heads + h);

	if (!a->x->delta.drawn)
		return (float)sum;
	for (int i = 0; i < 2; i++) {
		x *= 0xd6e8feb86659fd93u;
		x ^= x >> 32;
	}
	return (float)(sum + sum * FLT_EPSILON * ((double)(x & 0xffff) * 0x1p-16 - 0.5));
}

static void load_chunk(chunk_room *m, const REAL(vn_delta) * a, int64_t h, int64_t t, int64_t n)
{
	const int64_t nk = a->key_heads, nv = a->value_heads, dk = a->dk, dv = a->dv, g = h / (nv / nk);
	float         sum = 0.0f;

	for (int64_t i = 0; i < n; i++) {
		m->c[i] = sum = round_sum((double)sum + (double)a->g[(t + i) * nv + h], a, h, t + i);
		m->beta[i] = (float)a->beta[(t + i) * nv + h];
		for (int64_t d = 0; d < dk; d++) {
			m->rows[i * dk + d] = (float)a->q[((t + i) * nk + g) * dk + d] * (float)a->scale;
			m->k[i * dk + d] = (float)a->k[((t + i) * nk + g) * dk + d];
			m->w[i * dk + d] = m->beta[i] * m->k[i * dk + d] * expf(m->c[i]);
		}
		for (int64_t d = 0; d < dv; d++)
			m->u[i * dv + d] = m->beta[i] * (float)a->v[((t + i) * nv + h) * dv + d];
	}
}

static void compute_chunk(real *y, chunk_room *m, const REAL(vn_delta) * a, int64_t h, int64_t t, int64_t n)
{
	const int64_t nv = a->value_heads, dk = a->dk, dv = a->dv;

	load_chunk(m, a, h, t, n);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j <= i; j++) {
			const float decay = expf(m->c[i] - m->c[j]);
			m->A[i][j] = m->beta[i] * dot(m->k + i * dk, m->k + j * dk, dk) * decay;
			m->P[i][j] = dot(m->rows + i * dk, m->k + j * dk, dk) * decay;
		}
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < i; j++) {
			subtract_scaled(m->u + i * dv, m->A[i][j], m->u + j * dv, dv);
			subtract_scaled(m->w + i * dk, m->A[i][j], m->w + j * dk, dk);
		}
	for (int64_t i = 0; i < n; i++)
		for (int64_t d = 0; d < dk; d++)
			subtract_scaled(m->u + i * dv, m->w[i * dk + d], m->s + d * dv, dv);
	for (int64_t i = 0; i < n; i++)
		for (int64_t e = 0; e < dv; e++) {
			float sum = 0.0f, within = 0.0f;
			for (int64_t d = 0; d < dk; d++)
				sum += m->rows[i * dk + d] * expf(m->c[i]) * m->s[d * dv + e];
			for (int64_t j = 0; j <= i; j++)
				within += m->P[i][j] * m->u[j * dv + e];
			y[((t + i) * nv + h) * dv + e] = (real)(sum + within);
		}
	for (int64_t d = 0; d < dk; d++) {
		float *row = m->s + d * dv;
		for (int64_t e = 0; e < dv; e++)
			row[e] *= expf(m->c[n - 1]);
		for (int64_t i = 0; i < n; i++)
			subtract_scaled(row, -m->k[i * dk + d] * expf(m->c[n - 1] - m->c[i]), m->u + i * dv, dv);
	}
}

bool REAL(vn_delta_chunked)(real *y, const REAL(vn_delta) * a)
{
	const int64_t        dk = a->dk, dv = a->dv;
	VN_FREED chunk_room *m = malloc(sizeof *m);
	VN_FREED float      *x = malloc((size_t)(3 * C * dk + C * dv + dk * dv) * sizeof *x);

	for (int64_t h = 0; m && x && h < a->value_heads; h++) {
		real *state = a->state + h * dk * dv; /* (dk,dv) */
		m->k = x;
		m->rows = m->k + C * dk;
		m->w = m->rows + C * dk;
		m->u = m->w + C * dk;
		m->s = m->u + C * dv;
		for (int64_t i = 0; i < dk * dv; i++)
			m->s[i] = (float)state[i];
		for (int64_t t = 0; t < a->tokens; t += C)
			compute_chunk(y, m, a, h, t, a->tokens - t < C ? a->tokens - t : C);
		for (int64_t i = 0; i < dk * dv; i++)
			state[i] = (real)m->s[i];
	}
	return m && x;
}
