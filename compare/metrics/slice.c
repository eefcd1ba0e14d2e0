/* slice.c: see slice.h.
 *
 * Blocks with a NaN or an infinity are detected by their sums (the square of a finite float32
 * cannot overflow a double), and measured again with both numbers at such positions set to zero,
 * which adds nothing to any sum.
 */
#include "compare/metrics/slice.h"

#include <math.h>
#include <string.h>

/* One block: the mapped bytes themselves, or float32 converted into `room`. */
static vn_side narrow_block(const vn_pair *p, int side, int64_t at, size_t n, float *room)
{
	const vn_dtype       d = p->dtype[side];
	const unsigned char *src = vn_pair_at(p, side, at);
	if (d == VN_F32 || p->grid == VN_F16 || p->grid == VN_BF16) /* next to an f8, halves are converted too */
		return (vn_side) { src, d };
	p->kernel->load(room, src, d, n);
	return (vn_side) { room, VN_F32 };
}

static void load_copy(const vn_metric_kernel *k, float *to, vn_side *from, size_t n)
{
	if (from->data != to)
		k->load(to, from->data, from->dtype, n);
	*from = (vn_side) { to, VN_F32 };
}

static bool count_nonfinite(const vn_pair *p, vn_sums *s, double r, double c, int64_t at)
{
	if (isfinite(r) && isfinite(c))
		return true;
	s->nan[0] += isnan(r) != 0;
	s->nan[1] += isnan(c) != 0;
	s->inf[0] += isinf(r) != 0;
	s->inf[1] += isinf(c) != 0;
	if (p->masks && r == c && r < 0) {
		s->masked++;
	} else { /* a slice without a result */
		s->bad++;
		if (s->bad_at < 0)
			s->bad_at = at;
	}
	return false;
}

static int64_t zero_nonfinite(const vn_pair *p, float *r, float *c, size_t n, int64_t at, vn_sums *s)
{
	int64_t finite = 0;
	for (size_t i = 0; i < n; i++)
		if (count_nonfinite(p, s, (double)r[i], (double)c[i], at + (int64_t)i))
			finite++;
		else
			r[i] = c[i] = 0.0f;
	return finite;
}

/* An eighth of the rms, the scale against which numbers near zero are measured. */
static double row_scale(double rr, int64_t n)
{
	return n > 0 ? sqrt(rr / (double)n) / 8 : 0.0;
}

/* Takes the sums of a slice out of the spread. Where the reference is all zero, any other number is
 * infinitely far away. */
static void take_spread(vn_sums *s, vn_spread *spread)
{
	s->rel = spread->rel;
	s->max_rel = spread->max_rel;
	s->max_ulp = (double)spread->max_ulp;
	spread->rel = spread->max_rel = 0;
	spread->max_ulp = 0;
	if (s->sq.rr == 0.0)
		s->rel = s->max_rel = s->sq.cc > 0.0 ? (double)INFINITY : 0.0;
}

static void join_sums(vn_sums *s, const vn_block_sums *b, int64_t at)
{
	s->sq.rr += b->rr;
	s->sq.cc += b->cc;
	s->sq.rc += b->rc;
	s->sq.dd += b->dd;
	s->sq.ad += b->ad;
	s->max_r = fmax(s->max_r, b->max_r);
	s->max_c = fmax(s->max_c, b->max_c);
	if (s->max_block < 0 || b->max_d > s->max_d) {
		s->max_d = b->max_d;
		s->max_block = at;
	}
}

void vn_slice_narrow(const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_slicing *with)
{
	const vn_metric_kernel *k = p->kernel;
	vn_spread              *spread = &with->spread;
	float                   room[2][VN_BLOCK];
	bool                    dirty = false;

	*s = (vn_sums) { .max_block = -1, .bad_at = -1, .differs_at = -1 };
	for (size_t i = 0; i < n; i += VN_BLOCK) {
		const size_t  m = n - i < VN_BLOCK ? n - i : VN_BLOCK;
		const int64_t from = at + (int64_t)i;
		vn_side       r = narrow_block(p, 0, from, m, room[0]), c = narrow_block(p, 1, from, m, room[1]);
		vn_block_sums b;

		k->sums(r, c, m, &b);
		if (with->scores)
			vn_scores_sweep_block(with->scores, from - with->scores->at, m);
		if (isfinite(b.rr) && isfinite(b.cc)) {
			s->finite += (int64_t)m;
		} else {
			load_copy(k, room[0], &r, m);
			load_copy(k, room[1], &c, m);
			s->finite += zero_nonfinite(p, room[0], room[1], m, from, s);
			k->sums(r, c, m, &b);
			dirty = true;
		}
		join_sums(s, &b, from);
	}

	if (p->brief)
		return;
	const double scale = row_scale(s->sq.rr, s->finite);
	vn_sums      again = { .bad_at = -1 }; /* already counted */
	for (size_t i = 0; i < n; i += VN_BLOCK) {
		const size_t  m = n - i < VN_BLOCK ? n - i : VN_BLOCK;
		const int64_t from = at + (int64_t)i;
		vn_side       r = narrow_block(p, 0, from, m, room[0]), c = narrow_block(p, 1, from, m, room[1]);

		if (dirty) {
			load_copy(k, room[0], &r, m);
			load_copy(k, room[1], &c, m);
			spread->count[0][0] -= (uint32_t)((int64_t)m - zero_nonfinite(p, room[0], room[1], m, from, &again));
		}
		for (int side = 0; side < 2; side++)
			spread->ahead[side] = vn_ahead_next(&with->ahead, side, m * vn_dtype_size(p->dtype[side]));
		k->spread(r, c, m, scale > 0 ? scale : 1.0, p->grid, spread);
	}
	take_spread(s, spread);
}

/* ---- bits ---------------------------------------------------------------- */

#define COUNT(type) \
	do { \
		for (size_t i = 0; i < n; i++) { \
			type x, y; \
			memcpy(&x, a + i * sizeof x, sizeof x); \
			memcpy(&y, b + i * sizeof y, sizeof y); \
			count += x != y; \
		} \
	} while (0)

static int64_t count_differing(const unsigned char *a, const unsigned char *b, size_t bytes, size_t n)
{
	int64_t count = 0;
	if (memcmp(a, b, bytes * n) == 0)
		return 0;
	if (bytes == 1)
		COUNT(uint8_t);
	else if (bytes == 2)
		COUNT(uint16_t);
	else if (bytes == 4)
		COUNT(uint32_t);
	else
		COUNT(uint64_t);
	return count;
}

void vn_slice_differing(const vn_pair *p, int64_t at, size_t n, vn_sums *s)
{
	double room[2][VN_BLOCK];

	for (size_t i = 0; i < n; i += VN_BLOCK) {
		const size_t         m = n - i < VN_BLOCK ? n - i : VN_BLOCK;
		const int64_t        from = at + (int64_t)i;
		const unsigned char *side[2] = { (const unsigned char *)room[0], (const unsigned char *)room[1] };
		size_t               bytes = sizeof **room;
		if (p->dtype[0] == p->dtype[1]) {
			bytes = vn_dtype_size(p->dtype[0]);
			for (int j = 0; j < 2; j++)
				side[j] = vn_pair_at(p, j, from);
		} else {
			for (int j = 0; j < 2; j++)
				vn_block_double(p, j, from, m, room[j]);
		}
		const int64_t count = count_differing(side[0], side[1], bytes, m);
		for (size_t j = 0; count && s->differs_at < 0 && j < m; j++)
			if (memcmp(side[0] + j * bytes, side[1] + j * bytes, bytes) != 0)
				s->differs_at = from + (int64_t)j;
		s->differing += count;
	}
}

/* ---- f64 and i32 --------------------------------------------------------- */

/* Loads both sides of a block, with zeros where either is not finite.
 * Returns the number of finite pairs. */
static int64_t wide_block(const vn_pair *p, int64_t at, size_t n, double x[2][VN_BLOCK], double max[2], vn_sums *s)
{
	int64_t finite = 0;
	vn_block_double(p, 0, at, n, x[0]);
	vn_block_double(p, 1, at, n, x[1]);
	if (p->kernel->wide_sizes(x[0], x[1], n, max))
		return (int64_t)n;
	for (size_t i = 0; i < n; i++)
		if (count_nonfinite(p, s, x[0][i], x[1][i], at + (int64_t)i))
			finite++;
		else
			x[0][i] = x[1][i] = 0.0;
	p->kernel->wide_sizes(x[0], x[1], n, max);
	return finite;
}

/* Powers of two that scale the largest number of each side, and the largest difference, to between
 * a quarter and one, so that squares and sums neither overflow nor underflow. Their inverses must
 * be representable too: below 2^-1021 the numbers stay smaller. */
static void take_scales(const double max[2], int scale[3])
{
	for (int i = 0; i < 3; i++) {
		frexp(i < 2 ? max[i] : fmax(max[0], max[1]), &scale[i]);
		scale[i] = scale[i] > -1021 ? scale[i] : -1021;
	}
}

void vn_slice_wide(const vn_pair *p, int64_t at, size_t n, vn_sums *s, vn_slicing *with)
{
	double  x[2][VN_BLOCK], max[2] = { 0, 0 }, unit[3];
	vn_sums again = { .bad_at = -1 }; /* already counted */
	int    *scale = s->sq.scale;

	*s = (vn_sums) { .max_block = -1, .bad_at = -1, .differs_at = -1 };
	for (size_t i = 0; i < n; i += VN_BLOCK)
		s->finite += wide_block(p, at + (int64_t)i, n - i < VN_BLOCK ? n - i : VN_BLOCK, x, max, s);
	take_scales(max, scale);
	for (int i = 0; i < 3; i++)
		unit[i] = ldexp(1.0, -scale[i]);
	for (size_t i = 0; i < n; i += VN_BLOCK) {
		const size_t  m = n - i < VN_BLOCK ? n - i : VN_BLOCK;
		vn_block_sums b;
		wide_block(p, at + (int64_t)i, m, x, max, &again);
		p->kernel->wide_sums(x[0], x[1], m, unit, &b);
		join_sums(s, &b, at + (int64_t)i);
	}
	s->max_r = max[0];
	s->max_c = max[1];

	if (p->brief)
		return;

	/* With subnormal numbers the rms would lose precision, so the reference is scaled by 2^100. The
	 * difference of two of the largest numbers overflows, so halves are subtracted. */
	const int           up = scale[0] < -900 ? 100 : 0;
	const vn_wide_scale by = { .scale = ldexp(row_scale(s->sq.rr, s->finite), scale[0] + up),
		                       .up = ldexp(1.0, up),
		                       .half = scale[2] > 1023 ? 0.5 : 1.0 };
	for (size_t i = 0; i < n; i += VN_BLOCK) {
		const size_t  m = n - i < VN_BLOCK ? n - i : VN_BLOCK;
		const int64_t finite = wide_block(p, at + (int64_t)i, m, x, max, &again);
		p->kernel->wide_rel(x[0], x[1], m, by, &with->spread);
		p->kernel->wide_ulps(x[0], x[1], m, p->grid, &with->spread);
		with->spread.count[0][0] -= (uint32_t)((int64_t)m - finite);
	}
	take_spread(s, &with->spread);
}
