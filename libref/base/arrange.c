/* arrange.c: see arrange.h. */
#include "libref/base/arrange.h"

#include <assert.h>
#include <string.h>

static int64_t clamp_index(int64_t i, int64_t n)
{
	return i < 0 ? 0 : i < n ? i : n - 1;
}

static int64_t of_parts(const vn_arrange *m, int64_t i)
{
	const int64_t start[] = { 0, m->part[0], m->part[0] + m->part[1] }, all = start[2] + m->part[2], group = i / all;

	i %= all;
	for (int k = 0; k < 3; k++) {
		const int64_t part = m->order[k], n = m->part[part];
		if (i < n)
			return m->a * start[part] + group * n + i;
		i -= n;
	}
	return -1; /* not reached: i was less than all */
}

static int64_t of_list(const vn_arrange *m, int64_t i, int64_t n)
{
	const int64_t each = n / m->a;
	return i < m->a * each ? m->list[i / each] * each + i % each : i;
}

/* The source of index i within one period of n. */
static int64_t source_in_period(const vn_arrange *m, int64_t i, int64_t n)
{
	const int64_t each = m->each ? m->each : 1, piece = i / each, at = i % each;

	switch (m->rule) {
	case VN_ARRANGE_TRANSPOSED: return piece < m->a * m->b ? (piece % m->a * m->b + piece / m->a) * each + at : i;
	case VN_ARRANGE_ROUND: return ((i + m->a) % n + n) % n;
	case VN_ARRANGE_REVERSED: return (n / each - 1 - piece) * each + at;
	case VN_ARRANGE_EXCHANGED: return (piece == m->a ? m->b : piece == m->b ? m->a : piece) * each + at;
	case VN_ARRANGE_LISTED: return of_list(m, i, n);
	case VN_ARRANGE_SHIFTED: return clamp_index(i + m->a, n);
	case VN_ARRANGE_MOVED: return i + m->a >= 0 && i + m->a < n ? i + m->a : -1;
	case VN_ARRANGE_PARTS: return of_parts(m, i);
	case VN_ARRANGE_PADDED: return i % (m->a + m->b) < m->a ? i / (m->a + m->b) * m->a + i % (m->a + m->b) : -1;
	}
	return i;
}

int64_t vn_arranged(const vn_arrange *m, int64_t i, int64_t n)
{
	const int64_t period = m->period ? m->period : n - m->before;

	const int64_t at = i < m->before ? 0 : (i - m->before) % period;

	if (i < m->before || i - at + period > n)
		return i;
	const int64_t from = source_in_period(m, at, period);
	return from < 0 ? -1 : i - at + from;
}

vn_arrange vn_arrange_back(const vn_arrange *m)
{
	vn_arrange back = *m;

	assert(m->rule != VN_ARRANGE_LISTED && m->rule != VN_ARRANGE_SHIFTED && m->rule != VN_ARRANGE_PADDED &&
	       m->rule != VN_ARRANGE_PARTS);
	if (m->rule == VN_ARRANGE_TRANSPOSED) {
		back.a = m->b;
		back.b = m->a;
	} else if (m->rule == VN_ARRANGE_ROUND || m->rule == VN_ARRANGE_MOVED)
		back.a = -m->a;
	return back; /* REVERSED and EXCHANGED are their own inverses */
}

/* outer axes, indices [from, to) of n */
static void arrange_part(void *y, const void *x, const vn_arrange *m, size_t outer, size_t n, size_t piece, size_t from,
                         size_t to)
{
	for (size_t i = from; i < to; i++) {
		const int64_t source = vn_arranged(m, (int64_t)i, (int64_t)n);
		for (size_t o = 0; o < outer; o++) {
			char *at = (char *)y + (o * n + i) * piece;
			if (source < 0)
				memset(at, 0, piece);
			else
				memcpy(at, (const char *)x + (o * n + (size_t)source) * piece, piece);
		}
	}
}

void vn_arrange_bytes(void *y, const void *x, const vn_arrange *m, size_t outer, size_t n, size_t piece)
{
	arrange_part(y, x, m, outer, n, piece, 0, n);
}

void vn_arrange_part(void *y, const void *x, const vn_arrange *m, size_t n, size_t piece, size_t from, size_t to)
{
	arrange_part(y, x, m, 1, n, piece, from, to);
}

/* ---- axes -------------------------------------------------------------------------------- */

vn_permutation vn_permutation_of(const vn_shape *s, const int *order)
{
	vn_permutation p = { .rank = s->rank };
	int64_t        stride[VN_MAX_RANK], step = 1;

	for (int i = s->rank - 1; i >= 0; step *= s->dim[i--])
		stride[i] = step;
	for (int i = 0; i < s->rank; i++) {
		p.size[i] = s->dim[order[i]];
		p.stride[i] = stride[order[i]];
	}
	return p;
}

vn_permutation vn_permutation_back(const vn_shape *s, const int *order)
{
	vn_permutation p = { .rank = s->rank };
	int64_t        step = 1;

	for (int i = s->rank - 1; i >= 0; step *= s->dim[order[i--]]) {
		p.size[order[i]] = s->dim[order[i]];
		p.stride[order[i]] = step;
	}
	return p;
}

int64_t vn_permuted(const vn_permutation *p, int64_t i)
{
	int64_t at = 0;

	for (int k = p->rank - 1; k >= 0; i /= p->size[k--])
		at += i % p->size[k] * p->stride[k];
	return at;
}

void vn_permute(double *y, const double *x, const vn_permutation *p)
{
	int64_t index[VN_MAX_RANK] = { 0 }, n = 1, at = 0;

	for (int k = 0; k < p->rank; k++)
		n *= p->size[k];
	for (int64_t i = 0; i < n; i++) {
		y[i] = x[at];
		for (int k = p->rank - 1; k >= 0; k--) {
			at += p->stride[k];
			if (++index[k] < p->size[k])
				break;
			at -= p->stride[k] * p->size[k];
			index[k] = 0;
		}
	}
}
