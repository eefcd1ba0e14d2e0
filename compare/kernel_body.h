/* kernel_body.h: the loops behind kernel.h, in the vector types of GCC and Clang.
 *
 * The including file says what it is compiled for:
 *   TARGET         attribute of every function here
 *   KERNEL         name of the table it defines, KERNEL_NAME the same as a string
 *   KERNEL_AVX2    defined: AVX2 and F16C instructions may be used
 *   KERNEL_AVX512  defined: AVX-512 F, BW, DQ and VL too
 * Everything is on eight lanes, whatever the width of a register. Eight doubles
 * are one vector with AVX-512 and two halves without: GCC 12 keeps vectors that
 * are wider than a register in memory, which costs four times the time.
 */
#include "compare/kernel.h"

#include <string.h>
#ifdef KERNEL_AVX2
#include <immintrin.h>
#endif

typedef float    v8f __attribute__((vector_size(32)));
typedef int32_t  v8i __attribute__((vector_size(32)));
typedef uint32_t v8u __attribute__((vector_size(32)));
#ifdef KERNEL_AVX512
enum { PARTS = 1 };
typedef double   vd __attribute__((vector_size(64)));
typedef int64_t  vl __attribute__((vector_size(64)));
#else
enum { PARTS = 2 };
typedef double   vd __attribute__((vector_size(32)));
typedef int64_t  vl __attribute__((vector_size(32)));
typedef float    v4f __attribute__((vector_size(16)));
#endif
typedef struct d8 {
	vd part[PARTS]; /* eight doubles */
} d8;

#define INLINE TARGET static inline __attribute__((always_inline))
#define EACH_PART(h) for (int h = 0; h < PARTS; h++)

INLINE v8f load8(const unsigned char *p, size_t i)
{
	v8f x;
	memcpy(&x, p + 4 * i, sizeof x);
	return x;
}

/* The last n < 8 numbers, with zeros behind them: they add nothing to a sum. */
INLINE v8f load_tail(const unsigned char *p, size_t i, size_t n)
{
	float x[8] = { 0 };
	v8f   v;
	memcpy(x, p + 4 * i, 4 * n);
	memcpy(&v, x, sizeof v);
	return v;
}

INLINE v8f abs8(v8f x) { return (v8f)((v8i)x & 0x7fffffff); }
INLINE vd  abs_d(vd x) { return (vd)((vl)x & INT64_MAX); }

/* Neither is NaN nor a negative zero. */
INLINE v8f max8(v8f a, v8f b)
{
#ifdef KERNEL_AVX2
	return (v8f)_mm256_max_ps((__m256)a, (__m256)b);
#else
	const v8i m = a > b;
	return (v8f)(((v8i)a & m) | ((v8i)b & ~m));
#endif
}

INLINE v8u max8u(v8u a, v8u b)
{
#ifdef KERNEL_AVX2
	return (v8u)_mm256_max_epu32((__m256i)a, (__m256i)b);
#else
	const v8u m = (v8u)(a > b);
	return (a & m) | (b & ~m);
#endif
}

INLINE d8 to_double(v8f x)
{
	d8 d;
#if defined(KERNEL_AVX512)
	d.part[0] = (vd)_mm512_cvtps_pd((__m256)x);
#elif defined(KERNEL_AVX2)
	d.part[0] = (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x));
	d.part[1] = (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1));
#else
	const v4f low = { x[0], x[1], x[2], x[3] }, high = { x[4], x[5], x[6], x[7] };
	d.part[0] = __builtin_convertvector(low, vd);
	d.part[1] = __builtin_convertvector(high, vd);
#endif
	return d;
}

INLINE double fold(d8 d)
{
	double x[8];
	memcpy(x, &d, sizeof x);
	return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

INLINE float fold_max(v8f x)
{
	float m = x[0];
	for (int i = 1; i < 8; i++)
		m = x[i] > m ? x[i] : m;
	return m;
}

/* ---- loading ------------------------------------------------------------ */

TARGET static void load(float *dst, const void *src, vn_dtype from, size_t n)
{
#ifdef KERNEL_AVX2
	const unsigned char *p = src;
	size_t i = 0;
	if (from == VN_F16 || from == VN_BF16)
		for (; i + 8 <= n; i += 8) {
			__m128i h;
			memcpy(&h, p + 2 * i, sizeof h);
			const __m256 x = from == VN_F16 ? _mm256_cvtph_ps(h)
				: (__m256)_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
			memcpy(dst + i, &x, sizeof x);
		}
	vn_to_f32(dst + i, p + vn_dtype_size(from) * i, from, n - i);
#else
	vn_to_f32(dst, src, from, n);
#endif
}

/* ---- first sweep: sums -------------------------------------------------- */

typedef struct lanes {
	d8  rr, cc, rc, dd, ad;
	v8f max_d, max_r, max_c;
} lanes;

INLINE void add_sums(lanes *s, v8f r, v8f c)
{
	const d8 rd = to_double(r), cd = to_double(c);
	EACH_PART(h) {
		const vd x = rd.part[h], y = cd.part[h], d = y - x;
		s->rr.part[h] += x * x;
		s->cc.part[h] += y * y;
		s->rc.part[h] += x * y;
		s->dd.part[h] += d * d;
		s->ad.part[h] += abs_d(d);
	}
	s->max_d = max8(s->max_d, abs8(c - r));
	s->max_r = max8(s->max_r, abs8(r));
	s->max_c = max8(s->max_c, abs8(c));
}

TARGET static void sums(const void *r, const void *c, size_t n, vn_block_sums *out)
{
	const unsigned char *rp = r, *cp = c;
	lanes  s;
	size_t i = 0;
	memset(&s, 0, sizeof s);
	for (; i + 8 <= n; i += 8)
		add_sums(&s, load8(rp, i), load8(cp, i));
	if (i < n)
		add_sums(&s, load_tail(rp, i, n - i), load_tail(cp, i, n - i));
	*out = (vn_block_sums) {
		.rr = fold(s.rr), .cc = fold(s.cc), .rc = fold(s.rc), .dd = fold(s.dd), .ad = fold(s.ad),
		.max_d = fold_max(s.max_d), .max_r = fold_max(s.max_r), .max_c = fold_max(s.max_c),
	};
}

/* ---- second sweep: relative differences and ULPs ------------------------ */

/* The numbers' places in the order of all numbers of the grid: neighbours
 * differ by one, both zeros are 0. */
INLINE v8i place(v8f x, vn_dtype grid)
{
	v8i bits, low;
	if (grid == VN_F16) {
#ifdef KERNEL_AVX2
		bits = (v8i)_mm256_cvtepu16_epi32(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#else
		for (int i = 0; i < 8; i++)
			bits[i] = vn_f32_to_f16(x[i]);
#endif
		low = bits & 0x7fff;
		bits <<= 16;
	} else if (grid == VN_BF16) {
		const v8u u = (v8u)x;
		bits = (v8i)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
		low = bits & 0x7fff;
		bits <<= 16;
	} else {
		bits = (v8i)x;
		low = bits & 0x7fffffff;
	}
	const v8i sign = bits >> 31;
	return (low ^ sign) - sign;
}

INLINE v8u distance(v8f r, v8f c, vn_dtype grid)
{
	const v8i a = place(r, grid), b = place(c, grid);
	const v8u d = (v8u)a - (v8u)b, less = (v8u)(a < b);
	return (d ^ less) - less;
}

INLINE v8i bucket8(v8u d)
{
	const v8i far = (v8i)d >> 31;               /* beyond 2^31: the last bucket */
	const v8i near = ((v8i)d | far) & 0x7fffffff;
	const v8i b = ((v8i)__builtin_convertvector(near, v8f) >> 20) - 1015;
	return b & ~(b >> 31);                      /* distance 0: bucket 0 */
}

typedef struct rel_lanes {
	d8  sum;
	v8f max;
	v8u max_ulp;
} rel_lanes;

INLINE v8i add_spread(rel_lanes *s, v8f r, v8f c, v8f scale, vn_dtype grid)
{
	const v8f q = abs8(c - r) / max8(abs8(r), scale);
	const v8u d = distance(r, c, grid);
	const d8  wide = to_double(q);
	EACH_PART(h)
		s->sum.part[h] += wide.part[h];
	s->max = max8(s->max, q);
	s->max_ulp = max8u(s->max_ulp, d);
	return bucket8(d);
}

INLINE void spread_in(const unsigned char *r, const unsigned char *c, size_t n, float scale, vn_dtype grid,
                      vn_spread *out)
{
	uint32_t  at[VN_BLOCK];
	rel_lanes s;
	v8f       floor8;
	size_t    i = 0;
	memset(&s, 0, sizeof s);
	for (int k = 0; k < 8; k++)
		floor8[k] = scale;
	for (; i + 8 <= n; i += 8) {
		const v8i b = add_spread(&s, load8(r, i), load8(c, i), floor8, grid);
		memcpy(at + i, &b, sizeof b);
	}
	if (i < n) {
		const v8i b = add_spread(&s, load_tail(r, i, n - i), load_tail(c, i, n - i), floor8, grid);
		memcpy(at + i, &b, sizeof *at * (n - i));
	}
	for (i = 0; i + 4 <= n; i += 4) {
		out->count[0][at[i]]++;
		out->count[1][at[i + 1]]++;
		out->count[2][at[i + 2]]++;
		out->count[3][at[i + 3]]++;
	}
	for (; i < n; i++)
		out->count[0][at[i]]++;

	const float max_rel = fold_max(s.max);
	out->rel += fold(s.sum);
	if (max_rel > out->max_rel)
		out->max_rel = max_rel;
	for (int k = 0; k < 8; k++)
		if (s.max_ulp[k] > out->max_ulp)
			out->max_ulp = s.max_ulp[k];
}

TARGET static void spread(const void *r, const void *c, size_t n, float scale, vn_dtype grid, vn_spread *out)
{
	switch (grid) { /* constants, so that the loop is compiled once for each */
	case VN_F16:  spread_in(r, c, n, scale, VN_F16, out); break;
	case VN_BF16: spread_in(r, c, n, scale, VN_BF16, out); break;
	default:      spread_in(r, c, n, scale, VN_F32, out); break;
	}
}

/* ---- scores ------------------------------------------------------------- */

/* e^x for x <= 0: x = k ln 2 + y, |y| <= 0.35, the Taylor series to y^13 (its
 * rest is below 1e-17), times 2^k. Below -700: 0. */
INLINE vd exp_d(vd x)
{
	const double one_half_2_52 = 6755399441055744.0; /* adding it leaves the nearest integer in the low bits */
	const vl tiny = x < -700.0;
	const vd in = (vd)((vl)x & ~tiny);
	const vd shifted = in * 1.4426950408889634 + one_half_2_52;
	const vd k = shifted - one_half_2_52;
	const vd y = (in - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
	static const double inv[] = { /* 1/13! ... 1/0! */
		1.6059043836821613e-10, 2.0876756987868099e-09, 2.5052108385441719e-08, 2.7557319223985891e-07,
		2.7557319223985893e-06, 2.4801587301587302e-05, 1.9841269841269841e-04, 1.3888888888888889e-03,
		8.3333333333333333e-03, 4.1666666666666667e-02, 1.6666666666666667e-01, 0.5, 1.0, 1.0,
	};
	vd p = y * inv[0] + inv[1];
	for (int i = 2; i < 14; i++)
		p = p * y + inv[i];
	const vl two_k = (vl)shifted << 52; /* k into the exponent; the constant's own bits fall out */
	return (vd)(((vl)p + two_k) & ~tiny);
}

/* Scores behind the end are so low that they weigh nothing. */
INLINE d8 load8d(const double *p, size_t n)
{
	double x[8];
	d8     d;
	if (n >= 8) {
		memcpy(&d, p, sizeof d);
		return d;
	}
	for (size_t i = 0; i < 8; i++)
		x[i] = i < n ? p[i] : -1e30;
	memcpy(&d, x, sizeof d);
	return d;
}

TARGET static void soft(const double *r, const double *c, size_t n, double rm, double cm, vn_soft *s)
{
	d8 zr, zc, t;
	memset(&zr, 0, sizeof zr);
	memset(&zc, 0, sizeof zc);
	memset(&t, 0, sizeof t);
	for (size_t i = 0; i < n; i += 8) {
		const d8 x = load8d(r + i, n - i), y = load8d(c + i, n - i);
		EACH_PART(h) {
			const vd e = exp_d(x.part[h] - rm);
			zr.part[h] += e;
			zc.part[h] += exp_d(y.part[h] - cm);
			t.part[h] += e * (x.part[h] - y.part[h]);
		}
	}
	s->zr += fold(zr);
	s->zc += fold(zc);
	s->t += fold(t);
}

const vn_kernel KERNEL = { KERNEL_NAME, load, sums, spread, soft };
