/* pages.c: see pages.h. */
#include "compare/metrics/pages.h"

#include <sys/mman.h>

/* The bound holds for both sides together. A thread takes its next units before it measures others
 * (measure.c), so a slow one can hold the end of a stretch and the beginning of the next: of t
 * threads, t - 1 hold two, and the last works in one more. A stretch given back too early is mapped
 * again page by page. */
enum { STRETCHES_BYTES = 64 << 20, LONGEST = 32 << 20, SHORTEST = 8 << 20 };

static int64_t bytes_of(const vn_pair *p)
{
	return (int64_t)(vn_dtype_size(p->dtype[0]) + vn_dtype_size(p->dtype[1]));
}

bool vn_pair_gives_back(const vn_pair *p)
{
	return p->mapped && p->n * bytes_of(p) >= VN_GIVES_BACK;
}

vn_stretches vn_stretches_of(const vn_pair *p, int64_t units, int64_t unit, int threads)
{
	int64_t      bytes = STRETCHES_BYTES / (threads > 0 ? 2 * threads - 1 : 1);
	vn_stretches s = { .all = units };
	bytes = bytes > LONGEST ? LONGEST : bytes < SHORTEST ? SHORTEST : bytes;
	if (!p->mapped || p->n * bytes_of(p) <= bytes)
		return s;
	s.units = bytes / (unit > 0 ? unit * bytes_of(p) : 1);
	s.units = s.units > 0 ? s.units : 1;
	s.count = (units + s.units - 1) / s.units;
	return s;
}

static int64_t bounds_of(const vn_stretches *s, int64_t unit, int64_t *from, int64_t *to)
{
	const int64_t which = unit / s->units;
	*from = which * s->units;
	*to = *from + s->units < s->all ? *from + s->units : s->all;
	return which;
}

bool vn_stretch_ends(vn_stretches *s, int64_t unit, int64_t *from, int64_t *to)
{
	if (s->units == 0)
		return false;
	const int64_t which = bounds_of(s, unit, from, to);
	return ++s->ended[which] == *to - *from;
}

bool vn_stretch_over(const vn_stretches *s, int64_t unit, int64_t *from, int64_t *to)
{
	if (s->units == 0)
		return false;
	const int64_t which = bounds_of(s, unit, from, to);
	return unit == *to - 1 && s->ended[which] == *to - *from;
}

void vn_pair_give_back(const vn_pair *p, int64_t from, int64_t to)
{
	const uintptr_t page = 4096;
	for (int side = 0; side < 2; side++) {
		const size_t    size = vn_dtype_size(p->dtype[side]);
		const uintptr_t a = ((uintptr_t)p->data[side] + (uintptr_t)from * size + page - 1) / page * page;
		const uintptr_t b = ((uintptr_t)p->data[side] + (uintptr_t)to * size) / page * page;
		if (b > a)
			madvise((void *)a, b - a, MADV_DONTNEED);
	}
}
