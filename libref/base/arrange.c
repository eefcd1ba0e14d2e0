/* arrange.c: see arrange.h. */
#include "libref/base/arrange.h"

#include <assert.h>
#include <string.h>

/* The source of an index, and how many indices from there on continue it: the source of index i + k
 * is from + k; if from is negative, none of them has one. */
typedef struct arrange_run {
	int64_t from, n;
} arrange_run;

static arrange_run run_of_clamped(int64_t from, int64_t n)
{
	return from < 0 ? (arrange_run) { 0, 1 } : from < n ? (arrange_run) { from, n - from } : (arrange_run) { n - 1, 1 };
}

static arrange_run run_of_moved(int64_t from, int64_t n)
{
	return from < 0   ? (arrange_run) { -1, -from }
	       : from < n ? (arrange_run) { from, n - from }
	                  : (arrange_run) { -1, n };
}

static arrange_run run_of_parts(const vn_arrange *m, int64_t i)
{
	const int64_t start[] = { 0, m->part[0], m->part[0] + m->part[1] }, all = start[2] + m->part[2], group = i / all;

	i %= all;
	for (int k = 0; k < 3; k++) {
		const int64_t part = m->order[k], n = m->part[part];
		if (i < n)
			return (arrange_run) { m->a * start[part] + group * n + i, n - i };
		i -= n;
	}
	return (arrange_run) { -1, 1 }; /* not reached: i was less than all */
}

static arrange_run run_of_sections(const vn_arrange *m, int64_t i)
{
	const int64_t start[] = { 0, m->part[0], m->part[0] + m->part[1] }, all = start[2] + m->part[2],
				  part = i < m->a * start[1]   ? 0
	                     : i < m->a * start[2] ? 1
	                                           : 2,
				  n = m->part[part];
	int64_t from = 0;

	i -= m->a * start[part];
	for (int k = 0; m->order[k] != part; k++)
		from += m->part[m->order[k]];
	return (arrange_run) { i / n * all + from + i % n, n - i % n };
}

static arrange_run run_of_list(const vn_arrange *m, int64_t i, int64_t n)
{
	const int64_t each = n / m->a;

	return i < m->a * each ? (arrange_run) { m->list[i / each] * each + i % each, each - i % each }
	                       : (arrange_run) { i, n - i };
}

static arrange_run run_of_padded(const vn_arrange *m, int64_t i, int64_t n)
{
	const int64_t stride = m->a + m->b, last = n / m->a - 1, row = i / stride < last ? i / stride : last,
				  at = i - row * stride, end = row < last && stride < m->a ? stride : m->a;

	return at < end ? (arrange_run) { row * m->a + at, end - at }
	                : (arrange_run) { -1, row < last ? stride - at : n - i };
}

static arrange_run run_of_apart(const vn_arrange *m, int64_t i, int64_t n)
{
	const int64_t rest = m->a - i % m->a, from = i / m->a * m->b + i % m->a;

	return from < n ? (arrange_run) { from, rest < n - from ? rest : n - from } : (arrange_run) { -1, rest };
}

/* Of index i within one period of n. */
static arrange_run run_in_period(const vn_arrange *m, int64_t i, int64_t n)
{
	const int64_t each = m->each ? m->each : 1, piece = i / each, at = i % each, rest = each - at;

	switch (m->rule) {
	case VN_ARRANGE_TRANSPOSED:
		return piece < m->a * m->b ? (arrange_run) { (piece % m->a * m->b + piece / m->a) * each + at, rest }
		                           : (arrange_run) { i, n - i };
	case VN_ARRANGE_ROUND: i = ((i + m->a) % n + n) % n; break;
	case VN_ARRANGE_REVERSED: return (arrange_run) { (n / each - 1 - piece) * each + at, rest };
	case VN_ARRANGE_EXCHANGED:
		return (arrange_run) { (piece == m->a ? m->b : piece == m->b ? m->a : piece) * each + at, rest };
	case VN_ARRANGE_LISTED: return run_of_list(m, i, n);
	case VN_ARRANGE_SHIFTED: return run_of_clamped(i + m->a, n);
	case VN_ARRANGE_MOVED: return run_of_moved(i + m->a, n);
	case VN_ARRANGE_PARTS: return run_of_parts(m, i);
	case VN_ARRANGE_SECTIONS: return run_of_sections(m, i);
	case VN_ARRANGE_PADDED: return run_of_padded(m, i, n);
	case VN_ARRANGE_APART: return run_of_apart(m, i, n);
	}
	return (arrange_run) { i, n - i };
}

int64_t vn_arranged_run(const vn_arrange *m, int64_t i, int64_t n, int64_t *run)
{
	const int64_t period = m->period ? m->period : n - m->before;
	const int64_t at = i < m->before ? 0 : (i - m->before) % period;

	if (i < m->before || i - at + period > n) {
		*run = (i < m->before ? m->before : n) - i;
		return i;
	}
	const arrange_run r = run_in_period(m, at, period);
	*run = r.n < period - at ? r.n : period - at;
	return r.from < 0 ? -1 : i - at + r.from;
}

int64_t vn_arranged(const vn_arrange *m, int64_t i, int64_t n)
{
	int64_t run;

	return vn_arranged_run(m, i, n, &run);
}

vn_arrange vn_arrange_back(const vn_arrange *m)
{
	vn_arrange back = *m;

	assert(m->rule != VN_ARRANGE_LISTED && m->rule != VN_ARRANGE_SHIFTED && m->rule != VN_ARRANGE_PADDED &&
	       m->rule != VN_ARRANGE_APART);
	if (m->rule == VN_ARRANGE_TRANSPOSED) {
		back.a = m->b;
		back.b = m->a;
	} else if (m->rule == VN_ARRANGE_ROUND || m->rule == VN_ARRANGE_MOVED)
		back.a = -m->a;
	else if (m->rule == VN_ARRANGE_PARTS || m->rule == VN_ARRANGE_SECTIONS)
		back.rule = m->rule == VN_ARRANGE_PARTS ? VN_ARRANGE_SECTIONS : VN_ARRANGE_PARTS;
	return back; /* REVERSED and EXCHANGED are their own inverses */
}

/* Fills `count` pieces of y from the pieces of x that begin at `source`; negative: with zeros. */
static void put_run(char *y, const char *x, int64_t source, int64_t count, size_t piece)
{
	if (source < 0)
		memset(y, 0, (size_t)count * piece);
	else
		memcpy(y, x + (size_t)source * piece, (size_t)count * piece);
}

void vn_arrange_part(void *y, const void *x, const vn_arrange *m, size_t n, size_t piece, vn_arrange_range part)
{
	int64_t run;

	for (size_t i = part.from; i < part.to; i += (size_t)run) {
		const int64_t source = vn_arranged_run(m, (int64_t)i, (int64_t)n, &run);
		run = run < (int64_t)(part.to - i) ? run : (int64_t)(part.to - i);
		put_run((char *)y + i * piece, x, source, run, piece);
	}
}

void vn_arrange_across(void *y, const void *x, size_t M, size_t N, size_t apart, size_t size)
{
	enum { TILE = 32 }; /* stays in the cache on both sides */

	for (size_t m0 = 0; m0 < M; m0 += TILE)
		for (size_t n = 0; n < N; n++)
			for (size_t m = m0; m < M && m < m0 + TILE; m++)
				memcpy((char *)y + (m * N + n) * size, (const char *)x + (n * M + m) * apart * size, size);
}

void vn_arrange_bytes(void *y, const void *x, const vn_arrange *m, size_t outer, size_t n, size_t piece)
{
	int64_t run;

	for (size_t i = 0; i < n; i += (size_t)run) {
		const int64_t source = vn_arranged_run(m, (int64_t)i, (int64_t)n, &run);
		for (size_t o = 0; o < outer; o++)
			put_run((char *)y + (o * n + i) * piece, (const char *)x + o * n * piece, source, run, piece);
	}
}

/* ---- axes -------------------------------------------------------------------------------- */

int64_t vn_strided(int n, const int64_t *size, const int64_t *stride, int64_t i)
{
	int64_t at = 0;

	for (int k = n - 1; k >= 0; i /= size[k--])
		at += i % size[k] * stride[k];
	return at;
}

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
