/* count.c: see count.h. */
#include "compare/judge/count.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ONE_OF 1e-3

static int ascending(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return (x > y) - (x < y);
}

/* The ids of one checkpoint's rows to id (NULL: only counted); returns how many. */
static int64_t ids_of(const vn_comparison *c, const vn_checkpoint *p, int32_t *id)
{
	const int32_t *all, *at;
	const int64_t  n = vn_recording_tokens(c->ref, &all, &at);
	const vn_step *s = vn_recording_step(c->ref, p->step);
	if (!s || s->rows <= 0 || s->position + s->first_row < 0 || s->position + s->first_row + s->rows > n)
		return 0;
	for (int64_t i = 0; id && i < s->rows; i++)
		id[i] = all[s->position + s->first_row + i];
	return s->rows;
}

/* Of points [first, last], of one pool where it is not below 0. */
static int64_t collect(const vn_comparison *c, int64_t first, int64_t last, int pool, int32_t *id)
{
	int64_t n = 0;
	for (int64_t i = first; i <= last; i++)
		if (pool < 0 || c->point[i].pool == pool)
			n += ids_of(c, &c->point[i], id ? id + n : NULL);
	return n;
}

static int64_t distinct_of(const vn_comparison *c, int64_t first, int64_t last, int pool, int64_t *rows)
{
	const int64_t n = collect(c, first, last, pool, NULL);
	int32_t *id = n > 0 ? malloc((size_t)n * sizeof *id) : NULL;
	int64_t  distinct = 1;

	*rows = n > 0 ? n : 1;
	if (!id)
		return *rows; /* then nothing is allowed for */
	collect(c, first, last, pool, id);
	qsort(id, (size_t)n, sizeof *id, ascending);
	for (int64_t i = 1; i < n; i++)
		distinct += id[i] != id[i - 1];
	free(id);
	return distinct;
}

int64_t vn_count_distinct(const vn_comparison *c, const vn_checkpoint *p, int64_t *rows)
{
	if (p->pool < 0)
		return distinct_of(c, p - c->point, p - c->point, -1, rows);
	*rows = c->pool[p->pool].rows;
	return c->pool[p->pool].distinct;
}

void vn_count_pool(const vn_comparison *c, int pool)
{
	vn_pool *g = &c->pool[pool];
	g->distinct = distinct_of(c, g->first, g->last, pool, &g->rows);
}

int64_t vn_count_allowed(double limit, int64_t n)
{
	const double q = 1 - limit;
	double rest = 1; /* of more than k */
	if (!(q > 0))
		return 0;
	if (q >= 1)
		return n;
	for (int64_t k = 0; k < n; k++) {
		const double x = (double)k, m = (double)n;
		rest -= exp(lgamma(m + 1) - lgamma(x + 1) - lgamma(m - x + 1) + x * log(q) + (m - x) * log1p(-q));
		if (rest <= ONE_OF)
			return k;
	}
	return n;
}

double vn_count_limit(double limit, int64_t n)
{
	return n > 0 ? fmin(limit, 1 - (double)vn_count_allowed(limit, n) / (double)n) : limit;
}

static int token_axes(const char *axes)
{
	int n = 0;
	for (const char *p = axes; (p = strstr(p, "token")); p += 5)
		n++;
	return n;
}

double vn_count_scale(const vn_comparison *c, const vn_checkpoint *p, double scale, double nmse)
{
	int64_t      rows;
	const double n = (double)p->m.finite, share = (double)vn_count_distinct(c, p, &rows) / (double)rows;
	const double fewer = n * pow(share, token_axes(vn_entry_axes(vn_recording_entry(c->ref, p->ref))));
	const double rest = fmax(nmse - scale * scale, 0x1p-20);
	return fewer < n ? fmax(0, scale - 6 * sqrt(rest) * (1 / sqrt(fewer) - 1 / sqrt(n))) : scale;
}
