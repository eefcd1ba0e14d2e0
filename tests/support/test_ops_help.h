/* test_ops_help.h: helpers of the tests of operations. They call operations through vn_eval, as the
 * engines do, so the tests cover rounding to the storage format. Inputs are halves, which every
 * format holds exactly, so both widths and the plain loop get the same numbers. */
#pragma once

#include "libref/exec/eval.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define F32   ((vn_policy) { VN_F32, VN_F32, 0, { 0 } })
#define F64   ((vn_policy) { VN_F64, VN_F64, 0, { 0 } })
#define F16   ((vn_policy) { VN_F16, VN_F32, 0, { 0 } })
#define ACC16 ((vn_policy) { VN_F16, VN_F16, 0, { 0 } })

enum { N_POLICIES = 3 };
static const vn_policy policies[] = { { VN_F32, VN_F32, 0, { 0 } },
	                                  { VN_F64, VN_F64, 0, { 0 } },
	                                  { VN_F16, VN_F32, 0, { 0 } } };

static uint32_t seed = 1;

/* A half in (-1, 1). */
static inline double draw(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (double)vn_f16_to_f32(vn_f32_to_f16((float)(seed >> 8) / 8388608.0f - 1.0f));
}

static inline double *draws(int64_t n)
{
	double *x = malloc((size_t)(n + 1) * sizeof *x);

	CU_ASSERT_PTR_NOT_NULL_FATAL(x);
	for (int64_t i = 0; i < n; i++)
		x[i] = draw();
	return x;
}

/* As the engine of the policy wants them. */
static inline void *widened(const double *x, int64_t n, vn_policy p)
{
	const vn_dtype w = vn_eval_for(p)->width;
	void          *y = malloc((size_t)(n + 1) * vn_dtype_size(w));

	CU_ASSERT_PTR_NOT_NULL_FATAL(y);
	vn_from_f64(y, w, x, (size_t)n);
	return y;
}

/* A weight in dtype d, at an address off from alignment; free(raw). */
static inline vn_tensor stored(const double *x, vn_dtype d, int rank, int64_t m, int64_t n, size_t off, void **raw)
{
	const int64_t count = rank == 2 ? m * n : m;
	char         *p = malloc((size_t)count * vn_dtype_size(d) + off + 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	*raw = p;
	vn_from_f64(p + off, d, x, (size_t)count);
	return (vn_tensor) { d, { rank, { m, n } }, p + off };
}

/* The output of one node as doubles, which the caller frees. */
static inline double *eval(const vn_node *n, const vn_args *a, int64_t row, int64_t dim)
{
	const vn_eval *e = vn_eval_for(a->policy);
	const int64_t  count = a->tokens * row;
	char          *out = malloc((size_t)(count + 1) * vn_dtype_size(e->width));
	double        *y = malloc((size_t)(count + 1) * sizeof *y);

	CU_ASSERT_FATAL(out && y);
	memset(out, 0xff, (size_t)(count + 1) * vn_dtype_size(e->width)); /* NaN: what is not written shows */
	CU_ASSERT_EQUAL(e->node(n, a, row, dim, out, NULL), VN_OK);
	for (size_t i = 0; i < vn_dtype_size(e->width); i++)
		CU_ASSERT_EQUAL((unsigned char)out[(size_t)count * vn_dtype_size(e->width) + i], 0xff); /* and nothing behind */
	vn_to_f64(y, out, e->width, (size_t)count);
	free(out);
	return y;
}

/* What a policy may be off by, relative to the size of what was added up: one
 * rounding to the storage format, and `terms` roundings of the arithmetic. */
static inline double slack(vn_policy p, double terms)
{
	const double width = vn_eval_for(p)->width == VN_F64 ? 0x1p-53 : 0x1p-24;
	return ldexp(0.5, -vn_dtype_digits(p.storage)) * 1.0001 + width * terms;
}

static inline void compare(const double *got, const double *want, const double *size, int64_t n, double tolerance,
                           const char *what)
{
	double worst = 0;

	for (int64_t i = 0; i < n; i++) {
		const double d = fabs(got[i] - want[i]) / (tolerance * size[i] + 0x1p-25);
		worst = d <= worst ? worst : d; /* a NaN stays */
	}
	CU_ASSERT(worst <= 1.0);
	if (!(worst <= 1.0))
		fprintf(stderr, "%s: %g times what is allowed\n", what, worst);
}

static inline bool same(const double *a, const double *b, int64_t n)
{
	return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}
