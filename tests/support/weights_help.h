/* weights_help.h: rows of weight tables made of numbers. Shared by the suites of
 * compare/weights. */
#pragma once

#include "compare/weights/weights_internal.h"
#include "libref/base/intern.h"
#include "tests/support/suite.h"

#include <stdio.h>

static inline vn_weight_row row_of(const char *name, const vn_tensor *t)
{
	const size_t  n = (size_t)vn_shape_count(&t->shape);
	char          own[VN_NAME_MAX];
	vn_weight_row r = { .dtype = t->dtype,
		                .shape = t->shape,
		                .digest = vn_digest_of(t->data, vn_dtype_bytes(t->dtype, n)),
		                .stats = vn_stats_of(t->data, t->dtype, n) };
	snprintf(own, sizeof own, "%s", name);
	r.name = vn_intern(own);
	return r;
}

static inline vn_tensor f32(const float *x, int64_t rows, int64_t cols)
{
	return (vn_tensor) { VN_F32, { 2, { rows, cols } }, x };
}
