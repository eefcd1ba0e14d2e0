/* ref_help.h: runs of the reference on the toy qwen2 of toy_model.h, with every value kept. */
#pragma once

#include "libref/exec/ref.h"
#include "libref/model/model.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

#include <math.h>

enum { T = 8, LONG = 70, MOST_VALUES = 64 };

static char          dir[256];
static vn_model     *model; /* float32 weights, every one of them exact */
static const int32_t ids[T] = { 3, 1, 4, 1, 5, 9, 2, 6 };

static const vn_policy F32 = { VN_F32, VN_F32, 0, { 0 } }, F64 = { VN_F64, VN_F64, 0, { 0 } },
					   F16 = { VN_F16, VN_F32, 0, { 0 } }, ACC16 = { VN_F16, VN_F16, 0, { 0 } };

static const vn_policy all_policies[] = { { VN_F32, VN_F32, 0, { 0 } },
	                                      { VN_F64, VN_F64, 0, { 0 } },
	                                      { VN_F16, VN_F32, 0, { 0 } },
	                                      { VN_F16, VN_F16, 0, { 0 } } };

/* ---- a sink that keeps everything ------------------------------------------------------ */

typedef struct keep {
	const vn_plan *plan;
	bool           want[MOST_VALUES];
	vn_tap_rows    rows;
	int64_t        first, last;
	int            order[MOST_VALUES], n; /* as handed over */
	int            open;                  /* the value that was begun and not ended; -1: none */
	size_t         left;                  /* elements still to come */
	int            protocol_errors;
	int            fail_at; /* the begin, write or end that fails; -1: none */
	bool           places;  /* it has a place for numbers */
	int            calls;
	struct {
		vn_dtype       dtype;
		vn_shape       shape;
		size_t         n;
		unsigned char *data;
	} value[MOST_VALUES];
} keep;

static inline vn_status maybe_fail(keep *k, vn_error *err)
{
	if (k->calls++ == k->fail_at)
		return vn_fail(err, VN_ERR_IO, "the sink is full");
	return VN_OK;
}

static inline vn_status keep_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	keep *k = ctx;

	k->protocol_errors += k->open >= 0 || !k->want[value] || k->value[value].data != NULL;
	k->open = value;
	k->order[k->n++] = value;
	k->left = (size_t)vn_shape_count(shape);
	k->value[value].dtype = dtype;
	k->value[value].shape = *shape;
	k->value[value].n = 0;
	k->value[value].data = malloc(k->left * vn_dtype_size(dtype) + 1);
	return maybe_fail(k, err);
}

static inline vn_status keep_write(void *ctx, const void *data, size_t n, vn_error *err)
{
	keep *k = ctx;

	if (k->open < 0 || n > k->left || n == 0) {
		k->protocol_errors++;
		return VN_OK;
	}
	const size_t size = vn_dtype_size(k->value[k->open].dtype);
	memcpy(k->value[k->open].data + k->value[k->open].n * size, data, n * size);
	k->value[k->open].n += n;
	k->left -= n;
	return maybe_fail(k, err);
}

static inline void *keep_place(void *ctx, size_t n)
{
	keep        *k = ctx;
	const size_t size = vn_dtype_size(k->value[k->open].dtype), from = k->value[k->open].n * size;

	k->protocol_errors += n > k->left;
	k->value[k->open].n += n;
	k->left -= n;
	return k->value[k->open].data + from;
}

static inline vn_status keep_end(void *ctx, vn_error *err)
{
	keep *k = ctx;

	k->protocol_errors += k->open < 0 || k->left != 0;
	k->open = -1;
	return maybe_fail(k, err);
}

static inline void keep_clear(keep *k)
{
	for (int v = 0; v < MOST_VALUES; v++) {
		free(k->value[v].data);
		k->value[v].data = NULL;
	}
	k->n = k->calls = 0;
	k->open = -1;
}

/* Taps every value of the plan that matches. */
static inline void keep_start(keep *k, const vn_plan *p, const char *glob)
{
	memset(k, 0, sizeof *k);
	k->plan = p;
	k->open = k->fail_at = -1;
	CU_ASSERT_EQUAL_FATAL(vn_taps_choose(p, &glob, 1, NULL, k->want, NULL), VN_OK);
}

static inline vn_taps taps_of(keep *k)
{
	return (vn_taps) { .want = k->want,
		               .rows = k->rows,
		               .first = k->first,
		               .last = k->last,
		               .sink = { .ctx = k,
		                         .begin = keep_begin,
		                         .write = keep_write,
		                         .end = keep_end,
		                         .place = k->places ? keep_place : NULL } };
}

/* A value as doubles, which the caller frees. NULL: it was not tapped. */
static inline double *doubles(const keep *k, const char *name, size_t *n)
{
	const int v = vn_plan_find(k->plan, name);

	*n = 0;
	if (v < 0 || !k->value[v].data)
		return NULL;
	double *x = malloc((k->value[v].n + 1) * sizeof *x);
	vn_to_f64(x, k->value[v].data, k->value[v].dtype, k->value[v].n);
	*n = k->value[v].n;
	return x;
}

static inline bool same_bits(const keep *a, const keep *b, const char *name)
{
	const int v = vn_plan_find(a->plan, name);
	return a->value[v].data && b->value[v].data && a->value[v].n == b->value[v].n &&
	       a->value[v].dtype == b->value[v].dtype &&
	       memcmp(a->value[v].data, b->value[v].data, a->value[v].n * vn_dtype_size(a->value[v].dtype)) == 0;
}

/* Rows of token t of a value: (T, ...), (S, ...) or (H, T, S). */
static inline bool rows_same(const keep *a, const keep *b, int v, int64_t before)
{
	const vn_shape *s = &a->value[v].shape;
	const size_t    size = vn_dtype_size(a->value[v].dtype);
	const bool      score = a->plan->value[v].size[a->plan->value[v].rank - 1] == VN_S;
	const int64_t   outer = score ? s->dim[0] : 1, rows = score ? s->dim[1] : s->dim[0];
	const size_t    row = (size_t)(vn_shape_count(s) / outer / rows) * size;

	for (int64_t o = 0; o < outer; o++)
		for (int64_t t = 0; t < before; t++) {
			/* scores against a later key are shown before the mask and may differ */
			const size_t n = a->plan->value[v].point == VN_POINT_ATTN_SCORES ? (size_t)before * size : row;
			if (memcmp(a->value[v].data + (size_t)(o * rows + t) * row, b->value[v].data + (size_t)(o * rows + t) * row,
			           n) != 0)
				return false;
		}
	return true;
}

static inline vn_ref *engine(const vn_plan *p, vn_policy policy, int threads)
{
	vn_ref *r;

	CU_ASSERT_EQUAL_FATAL(
		vn_ref_create(p, vn_model_weights(model), &(vn_ref_options) { .policy = policy, .threads = threads }, &r, NULL),
		VN_OK);
	return r;
}

static inline void forward(vn_ref *r, const int32_t *id, int64_t n, keep *k)
{
	const vn_taps t = k ? taps_of(k) : (vn_taps) { 0 };
	vn_error      e = { "" };

	if (k)
		keep_clear(k);
	CU_ASSERT_EQUAL(vn_ref_ops.forward(r, id, n, k ? &t : NULL, &e), VN_OK);
	if (k)
		CU_ASSERT_EQUAL(k->protocol_errors, 0);
}

/* One prefill of everything that matches. */
static inline void run(keep *k, vn_policy policy, int threads, const char *glob, const int32_t *id, int64_t n)
{
	vn_ref *r = engine(vn_model_plan(model), policy, threads);

	keep_start(k, vn_model_plan(model), glob);
	forward(r, id, n, k);
	vn_ref_ops.destroy(r);
}

static inline void long_ids(int32_t *id, int n)
{
	for (int t = 0; t < n; t++)
		id[t] = (7 * t + 3) % 32;
}

/* Seven digits are given; HuggingFace in float32 itself is within 3e-6. */
static inline bool golden_near(double a, double b)
{
	return fabs(a - b) <= 3e-6 + 6e-7 * fabs(b);
}

/* Mean squared error over mean square, of every logit. */
static inline double nmse(const keep *a, const keep *ref, const char *name)
{
	size_t  n, m;
	double *x = doubles(a, name, &n), *y = doubles(ref, name, &m), error = 0, square = 0;

	CU_ASSERT_EQUAL_FATAL(n, m);
	for (size_t i = 0; i < n; i++) {
		error += (x[i] - y[i]) * (x[i] - y[i]);
		square += y[i] * y[i];
	}
	free(x);
	free(y);
	return error / square;
}

/* Runs these tests. Returns the exit status of the program. */
static inline int run_ref_suite(const char *name, CU_TestInfo *tests)
{
	toy_model m;
	vn_error  e;

	toy_directory(dir);
	toy_build(&m, VN_F32);
	toy_save(&m, dir, TOY_CONFIG);
	toy_free(&m);
	if (vn_model_open(dir, &model, &e) != VN_OK) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	const int failed = run_suite(name, tests);
	vn_model_close(model);
	toy_remove(dir);
	return failed;
}
