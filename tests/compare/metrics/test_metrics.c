/* test_metrics.c: the metrics against plain loops and numbers worked out by hand. */
#include "compare/metrics/average.h"
#include "compare/metrics/channels.h"
#include "compare/metrics/kernel.h"
#include "compare/metrics/tokens.h"
#include "tests/support/suite.h"
#include "tests/support/uniform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static vn_tensor tensor(const void *data, vn_dtype dtype, int rank, int64_t a, int64_t b, int64_t c)
{
	return (vn_tensor) { dtype, { rank, { a, b, c } }, data };
}

static vn_measured measure(const vn_tensor *r, const vn_tensor *c, const char *axes, bool scores, int threads)
{
	vn_job   job = { .ref = *r, .cand = *c, .axes = axes, .scores = scores };
	vn_error err = { "" };
	CU_ASSERT_EQUAL(vn_measure_many(&job, 1, threads, &err), VN_OK);
	return job.m;
}

static vn_measured measure_floats(const float *r, const float *c, int64_t n)
{
	const vn_tensor a = tensor(r, VN_F32, 1, n, 0, 0), b = tensor(c, VN_F32, 1, n, 0, 0);
	return measure(&a, &b, "", false, 1);
}

#define CLOSE(x, y) CU_ASSERT(fabs((x) - (y)) <= 1e-12 * fabs(y))

static void hand_computed_numbers_come_out(void)
{
	const float       r[] = { 3, 4, 0, 0 }, c[] = { 3, 4, 0, 1 };
	const vn_measured m = measure_floats(r, c, 4);
	CLOSE(m.value[VN_M_COSINE], 25 / (5 * sqrt(26)));
	CLOSE(m.value[VN_M_NMSE], 1.0 / 25);
	CLOSE(m.value[VN_M_RMSE], 0.5);
	CLOSE(m.value[VN_M_MAX_ABS], 1.0);
	CLOSE(m.value[VN_M_MEAN_ABS], 0.25);
	CU_ASSERT_EQUAL(m.value[VN_M_MAX_REL], 3.2); /* rms 2.5: an eighth of it replaces the zero */
	CU_ASSERT_EQUAL(m.value[VN_M_MEAN_REL], 0.8);
	CLOSE(m.value[VN_M_NORM_RATIO], sqrt(26) / 5);
	CU_ASSERT_EQUAL(m.at, 3);
	CU_ASSERT_EQUAL(m.ref_at, 0.0);
	CU_ASSERT_EQUAL(m.cand_at, 1.0);
	CU_ASSERT_EQUAL(m.value[VN_M_ULP_P50], 0.0);
	CU_ASSERT_EQUAL(m.value[VN_M_ULP_MAX], (double)0x3f800000);
}

static void the_pass_agrees_with_plain_loops(void)
{
	enum { T = 37, D = 3001, N = T * D };
	float *r = malloc(N * sizeof *r), *c = malloc(N * sizeof *c);
	double rr = 0, cc = 0, rc = 0, dd = 0, ad = 0, worst = 2, worst_nmse = 0, rel = 0, max_rel = 0;
	int    worst_token = -1;
	for (int i = 0; i < N; i++) {
		r[i] = (float)uniform();
		c[i] = (float)((double)r[i] * (1 + 1e-3 * uniform()));
	}
	for (int t = 0; t < T; t++) {
		double a = 0, b = 0, ab = 0, e = 0;
		for (int d = 0; d < D; d++) {
			const double x = (double)r[t * D + d], y = (double)c[t * D + d];
			a += x * x;
			b += y * y;
			ab += x * y;
			dd += (y - x) * (y - x);
			e += (y - x) * (y - x);
			ad += fabs(y - x);
		}
		for (int d = 0; d < D; d++) {
			const double x = (double)r[t * D + d], y = (double)c[t * D + d];
			const double q = fabs(y - x) / fmax(fabs(x), sqrt(a / D) / 8);
			rel += q;
			max_rel = fmax(max_rel, q);
		}
		worst_nmse = fmax(worst_nmse, e / a);
		if (ab / sqrt(a * b) < worst) {
			worst = ab / sqrt(a * b);
			worst_token = t;
		}
		rr += a;
		cc += b;
		rc += ab;
	}
	const vn_tensor   a = tensor(r, VN_F32, 2, T, D, 0), b = tensor(c, VN_F32, 2, T, D, 0);
	const vn_measured m = measure(&a, &b, "token hidden", false, 2);
	CLOSE(m.value[VN_M_COSINE], rc / sqrt(rr * cc));
	CLOSE(m.value[VN_M_NMSE], dd / rr);
	CLOSE(m.value[VN_M_MEAN_ABS], ad / N);
	CLOSE(m.value[VN_M_WORST_TOKEN_COSINE], worst);
	CLOSE(m.value[VN_M_WORST_TOKEN_NMSE], worst_nmse);
	CU_ASSERT_EQUAL(m.worst_token, worst_token);
	CLOSE(m.value[VN_M_MEAN_REL], rel / N);
	CLOSE(m.value[VN_M_MAX_REL], max_rel);
	free(r);
	free(c);
}

/* Distances counted one by one, and their exact percentiles. */
static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void ulps_are_counted_in_the_coarser_format(void)
{
	enum { N = 5000 };
	static float    r[N];
	static uint16_t c[N];
	static double   d[N];
	for (int i = 0; i < N; i++) {
		r[i] = (float)(uniform() * 8);
		const int      far = i % 7 == 0 ? i % 400 : 1; /* places of the half grid */
		const uint16_t h = vn_f32_to_f16(r[i]);
		c[i] = (uint16_t)((h & 0x7fff) > 1000 ? h - far : h + far);
		d[i] = far;
	}
	const vn_tensor   a = tensor(r, VN_F32, 1, N, 0, 0), b = tensor(c, VN_F16, 1, N, 0, 0);
	const vn_measured m = measure(&a, &b, "", false, 1), back = measure(&b, &a, "", false, 1);
	qsort(d, N, sizeof *d, ascending);
	CU_ASSERT_EQUAL(m.grid, VN_F16);
	CU_ASSERT_EQUAL(m.value[VN_M_ULP_P50], d[N / 2]);
	CU_ASSERT(m.value[VN_M_ULP_P99] >= d[N * 99 / 100 - 1] && m.value[VN_M_ULP_P99] <= d[N * 99 / 100 - 1] * 1.125);
	CU_ASSERT_EQUAL(m.value[VN_M_ULP_MAX], d[N - 1]);
	CU_ASSERT_EQUAL(back.value[VN_M_ULP_P99], m.value[VN_M_ULP_P99]);
}

static void the_largest_difference_is_found_where_float32_cannot_tell(void)
{
	enum { N = 3 * VN_BLOCK };
	static float r[N], c[N];
	r[5] = -60000;
	c[5] = 0x1p-24f;
	r[N - 5] = -60000; /* a block further on, larger by 2^-24: 38 bits below the difference */
	c[N - 5] = 0x1p-23f;
	const vn_measured m = measure_floats(r, c, N);
	CU_ASSERT_EQUAL(m.at, N - 5);
	CU_ASSERT_EQUAL(m.value[VN_M_MAX_ABS], 60000 + 0x1p-23);
	CU_ASSERT_EQUAL(m.value[VN_M_MAX_REL], (60000 + 0x1p-23) / 60000);
}

static void the_two_zeros_are_no_distance_apart_and_signs_are_crossed(void)
{
	const float zero[] = { 0.0f, -0.0f }, swapped[] = { -0.0f, 0.0f };
	CU_ASSERT_EQUAL(measure_floats(zero, swapped, 2).value[VN_M_ULP_MAX], 0.0);
	const float tiny[] = { 1e-45f }, minus[] = { -1e-45f };
	CU_ASSERT_EQUAL(measure_floats(tiny, minus, 1).value[VN_M_ULP_MAX], 2.0);
	const float big[] = { 3.4e38f }, least[] = { -3.4e38f };
	CU_ASSERT(measure_floats(big, least, 1).value[VN_M_ULP_MAX] > 4.27e9); /* beyond 32 bits signed */
}

static void a_nan_on_either_side_is_counted_and_found(void)
{
	const float       good[] = { 1, 2, 3 }, bad[] = { 1, NAN, 3 };
	const vn_measured a = measure_floats(bad, good, 3), b = measure_floats(good, bad, 3),
					  c = measure_floats(bad, bad, 3);
	CU_ASSERT_EQUAL(a.value[VN_M_NONFINITE], 1.0);
	CU_ASSERT_EQUAL(b.value[VN_M_NONFINITE], 1.0);
	CU_ASSERT_EQUAL(c.value[VN_M_NONFINITE], 1.0);
	CU_ASSERT_EQUAL(a.nan[0], 1);
	CU_ASSERT_EQUAL(a.nan[1], 0);
	CU_ASSERT_EQUAL(b.nan[1], 1);
	CU_ASSERT_EQUAL(b.bad_at, 1);
	CU_ASSERT_EQUAL(b.value[VN_M_NMSE], 0.0); /* of the positions that can be compared */
	CU_ASSERT_EQUAL(b.finite, 2);
}

static double nonfinite_scores(const float *r, const float *c, int n)
{
	vn_error err = { "" };
	vn_job job = { .ref = { VN_F32, { 1, { n } }, r }, .cand = { VN_F32, { 1, { n } }, c }, .axes = "", .masks = true };
	CU_ASSERT_EQUAL_FATAL(vn_measure_many(&job, 1, 1, &err), VN_OK);
	CU_ASSERT_EQUAL(job.m.masked + (int64_t)job.m.value[VN_M_NONFINITE] + job.m.finite >= n, 1);
	return job.m.value[VN_M_NONFINITE];
}

static void minus_infinity_on_both_sides_is_a_mask_among_scores(void)
{
	const float a[] = { INFINITY, 1 }, b[] = { -INFINITY, 1 }, c[] = { 3, 1 };
	CU_ASSERT_EQUAL(nonfinite_scores(b, b, 2), 0.0);
	CU_ASSERT_EQUAL(nonfinite_scores(a, a, 2), 1.0);
	CU_ASSERT_EQUAL(nonfinite_scores(b, b, 1), 1.0); /* nothing else to compare */
	CU_ASSERT_EQUAL(nonfinite_scores(a, b, 2), 1.0);
	CU_ASSERT_EQUAL(nonfinite_scores(b, c, 2), 1.0);
	CU_ASSERT_EQUAL(measure_floats(b, b, 2).value[VN_M_NONFINITE], 1.0); /* of anything else it is nobody's result */
	CU_ASSERT_EQUAL(measure_floats(a, a, 2).value[VN_M_NONFINITE], 1.0);
	CU_ASSERT_EQUAL(measure_floats(b, b, 1).value[VN_M_NONFINITE], 1.0); /* nothing else to compare */
	CU_ASSERT_EQUAL(measure_floats(a, b, 2).value[VN_M_NONFINITE], 1.0);
	CU_ASSERT_EQUAL(measure_floats(a, c, 2).value[VN_M_NONFINITE], 1.0);
	CU_ASSERT_EQUAL(measure_floats(c, a, 2).value[VN_M_NONFINITE], 1.0);
}

static void nonfinite_positions_do_not_enter_the_histogram(void)
{
	enum { N = 4000 };
	static float r[N], c[N];
	for (int i = 0; i < N; i++)
		r[i] = c[i] = i % 2 ? NAN : 1.0f;
	for (int i = 0; i < N / 2 + 4; i += 2)
		c[i] = nextafterf(1.0f, 2.0f); /* a little more than half of the 2000 comparable ones */
	c[0] = 2.0f;
	const vn_measured m = measure_floats(r, c, N);
	CU_ASSERT_EQUAL(m.finite, 2000);
	CU_ASSERT_EQUAL(m.value[VN_M_ULP_P50], 1.0);
	CU_ASSERT_EQUAL(m.value[VN_M_ULP_MAX], (double)0x00800000);
}

static void zeros_have_defined_metrics(void)
{
	const float       zero[] = { 0, 0 }, one[] = { 1, 1 };
	const vn_measured same = measure_floats(zero, zero, 2), ref = measure_floats(zero, one, 2);
	const vn_measured cand = measure_floats(one, zero, 2);
	CU_ASSERT_EQUAL(same.value[VN_M_COSINE], 1.0);
	CU_ASSERT_EQUAL(same.value[VN_M_NMSE], 0.0);
	CU_ASSERT_EQUAL(same.value[VN_M_NORM_RATIO], 1.0);
	CU_ASSERT_EQUAL(same.value[VN_M_MAX_REL], 0.0);
	CU_ASSERT_EQUAL(ref.value[VN_M_COSINE], 0.0);
	CU_ASSERT_EQUAL(ref.value[VN_M_NMSE], (double)INFINITY);
	CU_ASSERT_EQUAL(ref.value[VN_M_NORM_RATIO], (double)INFINITY);
	CU_ASSERT_EQUAL(ref.value[VN_M_MAX_REL], (double)INFINITY);
	CU_ASSERT_EQUAL(ref.value[VN_M_MEAN_REL], (double)INFINITY);
	CU_ASSERT_EQUAL(cand.value[VN_M_MAX_REL], 1.0);
	CU_ASSERT_EQUAL(cand.value[VN_M_COSINE], 0.0);
	CU_ASSERT_EQUAL(cand.value[VN_M_NMSE], 1.0);
	CU_ASSERT_EQUAL(cand.value[VN_M_NORM_RATIO], 0.0);
}

static void scores_have_heads_outside_tokens(void)
{
	/* (head 2, token 3, key 4): token 1 is wrong in head 1 only. */
	float r[24], c[24];
	for (int i = 0; i < 24; i++)
		r[i] = c[i] = 1;
	c[12 + 4] = -1;
	const vn_tensor   a = tensor(r, VN_F32, 3, 2, 3, 4), b = tensor(c, VN_F32, 3, 2, 3, 4);
	const vn_measured m = measure(&a, &b, "head token key", false, 1);
	CU_ASSERT_EQUAL(m.worst_token, 1);
	CLOSE(m.value[VN_M_WORST_TOKEN_COSINE], 6.0 / 8);
	CU_ASSERT_EQUAL(m.at, 16);

	/* Of equal differences the first in the tensor counts, not the first that was met. */
	enum { T = 70000 };
	static float x[2 * T], y[2 * T];
	x[T - 1] = x[T] = 1;
	const vn_tensor d = tensor(x, VN_F32, 3, 2, T, 1), e = tensor(y, VN_F32, 3, 2, T, 1);
	CU_ASSERT_EQUAL(measure(&d, &e, "head token key", false, 2).at, T - 1);
}

static void logits_are_judged_row_by_row(void)
{
	const float       r[] = { 0, 1, 2, 0, 5, 1, 0, 0 }, c[] = { 0, 1, 2, 0, 1, 5, 0, 2 };
	const vn_tensor   a = tensor(r, VN_F32, 2, 2, 4, 0), b = tensor(c, VN_F32, 2, 2, 4, 0);
	const vn_measured m = measure(&a, &b, "token vocab", true, 1);
	const double      z = exp(5) + exp(1) + 2, kl = (exp(5) * 4 - exp(1) * 4 - 2) / z - log(z) + log(z - 1 + exp(2));
	CLOSE(m.value[VN_M_ARGMAX_AGREEMENT], 0.5);
	CLOSE(m.value[VN_M_TOP5_AGREEMENT], 1.0); /* four scores, all of them in both */
	CU_ASSERT(fabs(m.value[VN_M_KL_MAX] - kl) < 1e-12);
	CU_ASSERT(fabs(m.value[VN_M_KL_MEAN] - kl / 2) < 1e-12);
	CU_ASSERT_EQUAL(m.worst_row, 1);
}

/* Of two scores that are equal in r and d apart in c: log cosh(d/2) = d^2/8 - d^4/192 + ... */
static void a_small_divergence_has_all_its_digits(void)
{
	for (double d = 1e-3; d > 1e-12; d /= 10) {
		const double    r[] = { 7, 7 }, c[] = { 7 + d, 7 }, e = c[0] - c[1];
		const vn_tensor a = tensor(r, VN_F64, 2, 1, 2, 0), b = tensor(c, VN_F64, 2, 1, 2, 0);
		CLOSE(measure(&a, &b, "token vocab", true, 1).value[VN_M_KL_MAX], e * e / 8 - e * e * e * e / 192);
	}
	/* One of a thousand equal scores stands out in c, by much: r's highest says
	 * nothing of the rest. */
	enum { V = 1000 };
	static double r[V], c[V];
	for (double d = 40; d > 1e-3; d /= 3) {
		c[0] = -d;
		const vn_tensor a = tensor(r, VN_F64, 2, 1, V, 0), b = tensor(c, VN_F64, 2, 1, V, 0);
		const double    want = d / V + log1p((exp(-d) - 1) / V); /* cancels to 1 in 2000 where d is least */
		CU_ASSERT(fabs(measure(&a, &b, "token vocab", true, 1).value[VN_M_KL_MAX] - want) < 1e-12 * want + 1e-19);
	}
}

/* Near rows, rows that differ by more than the series takes, and both beside each other,
 * against long double. */
static void a_divergence_is_that_of_long_double(void)
{
	enum { V = 3001 };
	static float        r[V], c[V];
	static const double apart[][2] = { { 1e-5, 1e-5 }, { 1e-3, 1e-3 }, { 0.03, 0.03 },
		                               { 0.2, 0.2 },   { 3, 3 },       { 1e-3, 3 } };
	for (size_t k = 0; k < sizeof apart / sizeof *apart; k++) {
		long double z[2] = { 0, 0 }, kl = 0;
		for (int i = 0; i < V; i++) {
			r[i] = (float)(12 * uniform());
			c[i] = (float)((double)r[i] + apart[k][i % 100 == 0] * uniform() + 7);
			z[0] += expl((long double)r[i]);
			z[1] += expl((long double)c[i]);
		}
		for (int i = 0; i < V; i++) {
			const long double y = (long double)r[i] - (long double)c[i] - logl(z[0] / z[1]);
			kl += expl((long double)r[i]) / z[0] * (expm1l(-y) + y);
		}
		const vn_tensor a = tensor(r, VN_F32, 2, 1, V, 0), b = tensor(c, VN_F32, 2, 1, V, 0);
		CLOSE(measure(&a, &b, "token vocab", true, 1).value[VN_M_KL_MAX], (double)kl);
	}
}

static void scores_may_be_as_low_as_they_can(void)
{
	const float       r[] = { -3e35f, -3e35f, -3.4e38f, -INFINITY, -3e35f, -1e38f, -2e38f, -3e35f, -3.4e38f };
	const vn_tensor   a = tensor(r, VN_F32, 2, 1, 9, 0);
	const vn_measured m = measure(&a, &a, "token vocab", true, 1);
	CU_ASSERT_EQUAL(m.value[VN_M_KL_MAX], 0.0);
	CU_ASSERT_EQUAL(m.value[VN_M_ARGMAX_AGREEMENT], 1.0);
	float c[9];
	memcpy(c, r, sizeof c);
	c[0] = -2e35f;
	const vn_tensor b = tensor(c, VN_F32, 2, 1, 9, 0);
	CLOSE(measure(&b, &a, "token vocab", true, 1).value[VN_M_KL_MAX], log(4)); /* all in one against one of four */
}

static void what_scores_share_makes_no_tie_of_them(void)
{
	const double    r[] = { 1e9 + 2, 1e9 + 1.9, 1e9 + 1 }, c[] = { 1, 2, 0 }; /* deviation 0.45: a tie is 0.007 */
	const vn_tensor a = tensor(r, VN_F64, 2, 1, 3, 0), b = tensor(c, VN_F64, 2, 1, 3, 0);
	CU_ASSERT_EQUAL(measure(&a, &b, "token vocab", true, 1).value[VN_M_ARGMAX_AGREEMENT], 0.0);
}

static void a_tie_may_fall_either_way(void)
{
	const float     r[] = { 2, 2, 1 }, c[] = { 1.9f, 2, 1 };
	const vn_tensor a = tensor(r, VN_F32, 2, 1, 3, 0), b = tensor(c, VN_F32, 2, 1, 3, 0);
	CU_ASSERT_EQUAL(measure(&a, &b, "token vocab", true, 1).value[VN_M_ARGMAX_AGREEMENT], 1.0);
	CU_ASSERT_EQUAL(measure(&b, &a, "token vocab", true, 1).value[VN_M_ARGMAX_AGREEMENT], 0.0);
	const float     close[] = { 2, 2.006f, 1 }; /* deviation 0.47: a tie is 0.0074 */
	const vn_tensor d = tensor(close, VN_F32, 2, 1, 3, 0),
					e = tensor((const float[]) { 2, 1.9f, 1 }, VN_F32, 2, 1, 3, 0);
	CU_ASSERT_EQUAL(measure(&d, &e, "token vocab", true, 1).value[VN_M_ARGMAX_AGREEMENT], 1.0);
}

static void a_nan_among_scores_is_a_nan_divergence(void)
{
	const float       r[] = { 0, 1, 2, 3 }, c[] = { 0, 1, NAN, 3 };
	const vn_tensor   a = tensor(r, VN_F32, 2, 2, 2, 0), b = tensor(c, VN_F32, 2, 2, 2, 0);
	const vn_measured m = measure(&a, &b, "token vocab", true, 1);
	CU_ASSERT(isnan(m.value[VN_M_KL_MEAN]) && isnan(m.value[VN_M_KL_MAX]));
	CU_ASSERT_EQUAL(m.value[VN_M_ARGMAX_AGREEMENT], 0.5);
	const float     masked[] = { 0, -INFINITY, 1, 2 };
	const vn_tensor d = tensor(masked, VN_F32, 2, 1, 4, 0);
	CU_ASSERT_EQUAL(measure(&d, &d, "token vocab", true, 1).value[VN_M_KL_MAX], 0.0);
}

static void same_digits(const vn_measured *a, const vn_measured *b)
{
	CU_ASSERT_EQUAL(memcmp(a->value, b->value, sizeof a->value), 0);
	CU_ASSERT_EQUAL(a->at, b->at);
	CU_ASSERT_EQUAL(a->worst_token, b->worst_token);
	CU_ASSERT_EQUAL(a->worst_nmse_token, b->worst_nmse_token);
}

static void any_number_of_threads_gives_the_same_digits(void)
{
	static const struct {
		int         rank;
		int64_t     dim[3];
		const char *axes;
	} shape[] = {
		{ 2, { 1000, 300, 1 }, "token hidden" }, { 3, { 4, 250, 300 }, "head token key" }, { 1, { 300000, 1, 1 }, "" },
		{ 2, { 2, 150000, 1 }, "token vocab" },  { 2, { 300000, 1, 1 }, "token hidden" },
	};
	enum { N = 300000 };
	float *r = malloc(N * sizeof *r), *c = malloc(N * sizeof *c);
	for (int i = 0; i < N; i++) {
		r[i] = (float)uniform();
		c[i] = r[i] + (float)(1e-3 * uniform());
	}
	for (size_t s = 0; s < sizeof shape / sizeof *shape; s++) {
		const vn_tensor   a = tensor(r, VN_F32, shape[s].rank, shape[s].dim[0], shape[s].dim[1], shape[s].dim[2]);
		const vn_tensor   b = tensor(c, VN_F32, shape[s].rank, shape[s].dim[0], shape[s].dim[1], shape[s].dim[2]);
		const vn_measured one = measure(&a, &b, shape[s].axes, s == 3, 1);
		for (int threads = 2; threads < 6; threads++) {
			const vn_measured more = measure(&a, &b, shape[s].axes, s == 3, threads);
			same_digits(&one, &more);
		}
	}
	free(r);
	free(c);
}

static void a_brief_pass_has_the_same_sums_and_leaves_the_rest_unset(void)
{
	static const vn_metric sums[] = { VN_M_NMSE, VN_M_COSINE, VN_M_MAX_ABS, VN_M_WORST_TOKEN_NMSE, VN_M_NONFINITE };
	enum { TOKENS = 300, N = 400 };
	float *r = malloc(TOKENS * N * sizeof *r), *c = malloc(TOKENS * N * sizeof *c);
	for (int i = 0; i < TOKENS * N; i++) {
		r[i] = (float)uniform();
		c[i] = r[i] + (float)(1e-3 * uniform());
	}
	c[77] = NAN;
	const vn_tensor   a = tensor(r, VN_F32, 2, TOKENS, N, 1), b = tensor(c, VN_F32, 2, TOKENS, N, 1);
	const vn_measured whole = measure(&a, &b, "token hidden", false, 2);
	vn_measured       brief;
	CU_ASSERT_EQUAL_FATAL(vn_measure_brief(&a, &b, "token hidden", 2, &brief, NULL), VN_OK);
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
		CU_ASSERT_TRUE(brief.has[sums[i]]);
		CU_ASSERT_EQUAL(brief.value[sums[i]], whole.value[sums[i]]);
	}
	CU_ASSERT_EQUAL(brief.at, whole.at);
	CU_ASSERT_EQUAL(brief.absmax[0], whole.absmax[0]);
	CU_ASSERT_TRUE(whole.has[VN_M_ULP_P99] && whole.has[VN_M_MEAN_REL] && whole.has[VN_M_WORST_CHANNEL_NMSE]);
	CU_ASSERT_FALSE(brief.has[VN_M_ULP_P99] || brief.has[VN_M_MEAN_REL] || brief.has[VN_M_WORST_CHANNEL_NMSE]);
	free(r);
	free(c);
}

static void unaligned_bytes_are_read_as_they_are(void)
{
	static unsigned char room[4 * 100 + 1];
	float                r[100];
	for (int i = 0; i < 100; i++)
		r[i] = (float)uniform();
	memcpy(room + 1, r, sizeof r);
	const vn_tensor a = tensor(r, VN_F32, 1, 100, 0, 0), b = tensor(room + 1, VN_F32, 1, 100, 0, 0);
	CU_ASSERT_EQUAL(measure(&a, &b, "", false, 1).value[VN_M_MAX_ABS], 0.0);
}

static void float64_agrees_with_float32_where_both_can_say_it(void)
{
	enum { N = 10000 };
	static float  r[N], c[N];
	static double x[N], y[N];
	for (int i = 0; i < N; i++) {
		x[i] = (double)(r[i] = (float)uniform());
		y[i] = (double)(c[i] = r[i] + (float)(1e-4 * uniform()));
	}
	const vn_tensor   a = tensor(x, VN_F64, 1, N, 0, 0), b = tensor(y, VN_F64, 1, N, 0, 0);
	const vn_measured wide = measure(&a, &b, "", false, 2), narrow = measure_floats(r, c, N);
	CLOSE(wide.value[VN_M_NMSE], narrow.value[VN_M_NMSE]);
	CLOSE(wide.value[VN_M_COSINE], narrow.value[VN_M_COSINE]);
	CU_ASSERT_EQUAL(wide.at, narrow.at);
	y[17] = (double)NAN;
	CU_ASSERT_EQUAL(measure(&a, &b, "", false, 1).value[VN_M_NONFINITE], 1.0);
	const vn_tensor f = tensor(r, VN_F32, 1, N, 0, 0);
	CU_ASSERT_EQUAL(measure(&a, &f, "", false, 1).value[VN_M_ULP_MAX], 0.0);
}

static void a_token_of_enormous_size_hides_no_other(void)
{
	float r[20], c[20]; /* five tokens of four numbers, the first 2000 times as large */
	for (int i = 0; i < 20; i++)
		r[i] = c[i] = i < 4 ? 2000.0f : 1.0f;
	for (int i = 12; i < 16; i++)
		c[i] = 1.5f;
	const vn_tensor   a = tensor(r, VN_F32, 2, 5, 4, 0), b = tensor(c, VN_F32, 2, 5, 4, 0);
	const vn_measured m = measure(&a, &b, "token hidden", false, 1);
	CU_ASSERT(m.value[VN_M_NMSE] < 1e-6);
	CU_ASSERT_EQUAL(m.value[VN_M_WORST_TOKEN_COSINE], 1.0);
	CU_ASSERT_EQUAL(m.value[VN_M_WORST_TOKEN_NMSE], 0.25);
	CU_ASSERT_EQUAL(m.worst_nmse_token, 3);
	CU_ASSERT_EQUAL(measure(&b, &a, "token hidden", false, 1).value[VN_M_WORST_TOKEN_NMSE], 1.0 / 9);
}

static void a_token_next_to_nothing_is_measured_against_the_median_token(void)
{
	const float       r[] = { 8, 8, 1e-3f, 8, 0 }, c[] = { 8, 8, 0, 8, 0.5f };
	const vn_tensor   a = tensor(r, VN_F32, 2, 5, 1, 0), b = tensor(c, VN_F32, 2, 5, 1, 0);
	const vn_measured m = measure(&a, &b, "token hidden", false, 1);
	CU_ASSERT_EQUAL(m.value[VN_M_WORST_TOKEN_NMSE], 0.25); /* 0.5^2 / (8 / 8)^2 */
	CU_ASSERT_EQUAL(m.worst_nmse_token, 4);
	/* If most tokens are zero, there is no median to measure against. */
	const float     few[] = { 0, 0, 0, 8, 0 };
	const vn_tensor d = tensor(few, VN_F32, 2, 5, 1, 0);
	CU_ASSERT_EQUAL(measure(&d, &b, "token hidden", false, 1).value[VN_M_WORST_TOKEN_NMSE], (double)INFINITY);
	CU_ASSERT_EQUAL(measure(&d, &d, "token hidden", false, 1).value[VN_M_WORST_TOKEN_NMSE], 0.0);
}

/* 1 or -1, at random. */
static int sign_of(int i)
{
	return (uint32_t)i * (uint32_t)i * 2654435761u >> 15 & 1 ? -1 : 1;
}

/* Ten tokens of 48 channels of size 1 to 7, channel 5 of 2000 in the first token alone or
 * of 60000 in all. */
enum { CHANNELS = 48, SOME_TOKENS = 10 };
static void with_a_massive_channel(float *x, bool everywhere)
{
	for (int i = 0; i < SOME_TOKENS * CHANNELS; i++)
		x[i] = (float)(sign_of(i) * (1.0 + 0.125 * (i % CHANNELS)));
	for (int t = 0; t < (everywhere ? SOME_TOKENS : 1); t++)
		x[t * CHANNELS + 5] = everywhere ? 60000.0f : 2000.0f;
}

static void a_massive_channel_hides_no_other(void)
{
	float r[SOME_TOKENS * CHANNELS], c[SOME_TOKENS * CHANNELS];
	for (int everywhere = 0; everywhere < 2; everywhere++) {
		with_a_massive_channel(r, everywhere);
		const vn_tensor a = tensor(r, VN_F32, 2, SOME_TOKENS, CHANNELS, 0),
						b = tensor(c, VN_F32, 2, SOME_TOKENS, CHANNELS, 0);
		for (int i = 0; i < SOME_TOKENS * CHANNELS; i++)
			c[i] = fabsf(r[i]) > 100 ? r[i] : 1.25f * r[i];
		vn_measured m = measure(&a, &b, "token hidden", false, 1);
		CU_ASSERT(m.value[VN_M_NMSE] < 2e-4);
		CLOSE(m.value[VN_M_SCALE], 0.25);
		CLOSE(m.value[VN_M_WORST_CHANNEL_NMSE], 0.0625);
		CU_ASSERT_DOUBLE_EQUAL(m.value[VN_M_WORST_CHANNEL_SCALE], 0.25, 1e-3);
		/* Only one channel is off; the others must not be reported. */
		memcpy(c, r, sizeof c);
		for (int t = 0; t < SOME_TOKENS; t++)
			c[t * CHANNELS + 40] *= 1.25f;
		m = measure(&a, &b, "token hidden", false, 1);
		CU_ASSERT_EQUAL(m.value[VN_M_SCALE], 0.0);
		CLOSE(m.value[VN_M_WORST_CHANNEL_NMSE], 0.0625);
		CU_ASSERT_DOUBLE_EQUAL(m.value[VN_M_WORST_CHANNEL_SCALE], 0.25, 1e-3);
		CU_ASSERT(m.worst_nmse_channel == 40 && m.worst_scale_channel == 40);
	}
	/* Keys of scores are tokens, and seven tokens are too few. */
	const vn_tensor a = tensor(r, VN_F32, 2, SOME_TOKENS, CHANNELS, 0),
					b = tensor(c, VN_F32, 2, SOME_TOKENS, CHANNELS, 0);
	const vn_measured scores = measure(&a, &b, "token key", false, 1);
	CU_ASSERT(scores.value[VN_M_WORST_CHANNEL_NMSE] == scores.value[VN_M_NMSE] && scores.worst_nmse_channel == -1);
	const vn_tensor   d = tensor(r, VN_F32, 2, 7, CHANNELS, 0), e = tensor(c, VN_F32, 2, 7, CHANNELS, 0);
	const vn_measured few = measure(&d, &e, "token hidden", false, 1);
	CU_ASSERT(few.value[VN_M_WORST_CHANNEL_SCALE] == few.value[VN_M_SCALE] && few.worst_scale_channel == -1);
}

static void a_channel_next_to_nothing_is_measured_against_the_median_channel(void)
{
	float r[8 * 9], c[8 * 9]; /* of eight tokens nine channels of size 2, the last 1e-3 and gone */
	for (int i = 0; i < 8 * 9; i++)
		r[i] = c[i] = i % 9 == 8 ? 1e-3f : 2.0f * (float)sign_of(i);
	for (int t = 0; t < 8; t++)
		c[t * 9 + 8] = 0.25f;
	const vn_tensor   a = tensor(r, VN_F32, 2, 8, 9, 0), b = tensor(c, VN_F32, 2, 8, 9, 0);
	const vn_measured m = measure(&a, &b, "token hidden", false, 1);
	CU_ASSERT_DOUBLE_EQUAL(m.value[VN_M_WORST_CHANNEL_NMSE], 0.0625, 1e-3); /* 0.25^2 / (2 / 2)^2 */
	CU_ASSERT_EQUAL(m.worst_nmse_channel, 8);
}

/* 32 tokens of many are sampled. If they were at equal distances, they would be every second one of
 * 63. */
static void what_is_wrong_in_every_second_or_third_token_shows_in_the_sample(void)
{
	enum { MANY = 1000, W = 8 };
	static const int some[] = { 33, 63, 64, 94, 95, 96, 125, 127, 128, 157, 200, 201, MANY };
	static float     r[MANY * W], c[MANY * W];
	for (int i = 0; i < MANY * W; i++)
		r[i] = c[i] = i % W == 3 ? 1.0f : (float)sign_of(i);
	for (size_t k = 0; k < sizeof some / sizeof *some; k++)
		for (int every = 2; every <= 3; every++)
			for (int from = 0; from < every; from++) {
				const vn_tensor a = tensor(r, VN_F32, 2, some[k], W, 0), b = tensor(c, VN_F32, 2, some[k], W, 0);
				for (int t = from; t < some[k]; t += every)
					c[t * W + 3] = 3.0f;
				const vn_measured m = measure(&a, &b, "token hidden", false, 2);
				CU_ASSERT(m.value[VN_M_WORST_CHANNEL_NMSE] > 0.37 * 4 / every &&
				          m.value[VN_M_WORST_CHANNEL_NMSE] < 4 * 0.76);
				CU_ASSERT_EQUAL(m.worst_nmse_channel, 3);
				for (int t = from; t < some[k]; t += every)
					c[t * W + 3] = 1.0f;
			}
	/* One of each stretch, the first of all among them. */
	for (int64_t all = 1; all < 3000; all++)
		for (int64_t i = 0, rows = all < 32 ? all : 32; i < rows; i++)
			CU_ASSERT(vn_channel_row(i, rows, all) >= i * all / rows &&
			          vn_channel_row(i, rows, all) < (i + 1) * all / rows);
}

static double sum_of_squares(const double *x, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sum;
}

/* r and c scaled by the same power of two differ as they did before. */
static void float64_may_be_as_large_or_small_as_it_can(void)
{
	enum { T = 3, D = 50000, N = T * D };
	static const int power[] = { -1060, -565, 0, 664, 1020 };
	double          *x = malloc(2 * N * sizeof *x), *y = malloc(2 * N * sizeof *y), *r = x + N, *c = y + N;
	vn_measured      one = { .n = 0 };
	for (int i = 0; i < N; i++) {
		x[i] = rint(uniform() * 1024) / 1024; /* few digits: they survive among the subnormals */
		y[i] = i % 3 ? x[i] : rint(uniform() * 1024) / 1024;
	}
	const vn_tensor a = tensor(r, VN_F64, 2, T, D, 0), b = tensor(c, VN_F64, 2, T, D, 0);
	for (size_t p = 0; p < sizeof power / sizeof *power; p++) {
		for (int i = 0; i < N; i++) {
			r[i] = ldexp(x[i], power[p]);
			c[i] = ldexp(y[i], power[p]);
		}
		const vn_measured m = measure(&a, &b, "token hidden", false, 2),
						  same = measure(&a, &a, "token hidden", false, 2);
		static const vn_metric free_of_scale[] = { VN_M_COSINE,           VN_M_NMSE,
			                                       VN_M_NORM_RATIO,       VN_M_WORST_TOKEN_COSINE,
			                                       VN_M_WORST_TOKEN_NMSE, VN_M_MAX_REL,
			                                       VN_M_MEAN_REL };
		one = p ? one : m;
		CU_ASSERT(m.value[VN_M_NMSE] > 0.1 && m.value[VN_M_NMSE] < 2);
		for (size_t i = 0; i < sizeof free_of_scale / sizeof *free_of_scale; i++)
			CU_ASSERT_EQUAL(m.value[free_of_scale[i]], one.value[free_of_scale[i]]);
		if (power[p] > -1000) /* else the results themselves are subnormal */
			CLOSE(ldexp(m.value[VN_M_RMSE], -power[p]), sqrt(m.value[VN_M_NMSE] * sum_of_squares(x, N) / N));
		CU_ASSERT_EQUAL(same.value[VN_M_NMSE], 0.0);
		CU_ASSERT_EQUAL(same.value[VN_M_COSINE], 1.0);
		CU_ASSERT_EQUAL(same.value[VN_M_NORM_RATIO], 1.0);
	}
	/* One slice of another size than its neighbours, and zeros between. */
	for (int i = 0; i < N; i++) {
		r[i] = i / D == 1 ? 0.0 : ldexp(x[i], i / D ? -600 : 600);
		c[i] = i / D == 2 ? 2 * r[i] : r[i];
	}
	const vn_measured m = measure(&a, &b, "token hidden", false, 2);
	CU_ASSERT_EQUAL(m.value[VN_M_NMSE], 0.0); /* 1e-361 times the first token's */
	CU_ASSERT_EQUAL(m.value[VN_M_WORST_TOKEN_NMSE], 1.0);
	CU_ASSERT_EQUAL(m.worst_nmse_token, 2);
	free(x);
	free(y);
}

/* However large one side is, the other still counts. */
static void of_two_tensors_of_float64_each_has_a_size_of_its_own(void)
{
	enum { N = 3000 };
	static double r[N], c[N];
	for (int i = 0; i < N; i++) {
		r[i] = ldexp(uniform(), 1000);
		c[i] = ldexp(r[i], -1990);
	}
	const vn_tensor   a = tensor(r, VN_F64, 2, 3, N / 3, 0), b = tensor(c, VN_F64, 2, 3, N / 3, 0);
	const vn_measured m = measure(&a, &b, "token hidden", false, 1), back = measure(&b, &a, "token hidden", false, 1);
	CLOSE(m.value[VN_M_COSINE], 1.0);
	CLOSE(m.value[VN_M_WORST_TOKEN_COSINE], 1.0);
	CU_ASSERT_EQUAL(m.value[VN_M_NMSE], 1.0);
	CU_ASSERT_EQUAL(m.value[VN_M_MAX_REL], 1.0);
	CU_ASSERT_EQUAL(m.value[VN_M_NORM_RATIO], 0.0); /* 2^-1990 */
	CLOSE(back.value[VN_M_COSINE], 1.0);
	CU_ASSERT_EQUAL(back.value[VN_M_NMSE], (double)INFINITY);
	CU_ASSERT_EQUAL(back.value[VN_M_MAX_REL], (double)INFINITY);
	for (int i = 0; i < N; i++)
		c[i] = ldexp(r[i], -1000);
	CLOSE(measure(&a, &b, "token hidden", false, 1).value[VN_M_NORM_RATIO], 0x1p-1000);
}

static void a_mean_has_an_uncertainty(void)
{
	const double x[] = { 1, 2, 3, 4 };
	CLOSE(vn_mean_of(x, 4).mean, 2.5);
	CLOSE(vn_mean_of(x, 4).error, sqrt(5.0 / 3 / 4));
	CU_ASSERT(isnan(vn_mean_of(x, 1).error));
	const double same[] = { 7, 7, 7 };
	CU_ASSERT_EQUAL(vn_mean_of(same, 3).error, 0.0);
}

static void headroom_is_of_the_candidate_s_format(void)
{
	const float     r[] = { 32752 };
	const uint16_t  c[] = { 0x77ff }; /* 32752 */
	const vn_tensor a = tensor(r, VN_F32, 1, 1, 0, 0), b = tensor(c, VN_F16, 1, 1, 0, 0);
	CLOSE(measure(&a, &b, "", false, 1).value[VN_M_HEADROOM], 0.5);
}

static vn_measured bits_of(const void *r, vn_dtype a, const void *c, vn_dtype b, int64_t n)
{
	vn_job   j = { .ref = tensor(r, a, 1, n, 0, 0), .cand = tensor(c, b, 1, n, 0, 0), .axes = "", .bits = true };
	vn_error err = { "" };
	CU_ASSERT_EQUAL(vn_measure_many(&j, 1, 2, &err), VN_OK);
	return j.m;
}

static void bits_that_differ_are_counted(void)
{
	enum { N = 200001 };
	float    *r = malloc(N * sizeof *r), *c = malloc(N * sizeof *c);
	double   *wide = malloc(N * sizeof *wide);
	uint16_t *half = malloc(N * sizeof *half);
	for (int i = 0; i < N; i++) {
		c[i] = r[i] = (float)i / 64;
		wide[i] = (double)r[i];
		half[i] = vn_f32_to_f16(r[i]);
	}
	CU_ASSERT_EQUAL(bits_of(r, VN_F32, c, VN_F32, N).value[VN_M_DIFFERING], 0.0);
	CU_ASSERT_EQUAL(bits_of(r, VN_F32, c, VN_F32, N).differs_at, -1);
	CU_ASSERT_EQUAL(bits_of(r, VN_F32, wide, VN_F64, N).value[VN_M_DIFFERING], 0.0);
	CU_ASSERT_EQUAL(bits_of(r, VN_F32, half, VN_F16, 2049).value[VN_M_DIFFERING], 0.0); /* up to 32 in steps of 1/64 */
	CU_ASSERT_EQUAL(bits_of(r, VN_F32, half, VN_F16, 2050).differs_at, 2049);
	CU_ASSERT_FALSE(measure_floats(r, c, N).has[VN_M_DIFFERING]);

	c[0] = -0.0f; /* equal as numbers */
	c[N - 1] = nextafterf(c[N - 1], 0);
	c[77777] = NAN;
	const vn_measured m = bits_of(r, VN_F32, c, VN_F32, N);
	CU_ASSERT_EQUAL(m.value[VN_M_DIFFERING], 3.0);
	CU_ASSERT_EQUAL(m.differs_at, 0);
	CU_ASSERT_EQUAL(bits_of(c, VN_F32, c, VN_F32, N).value[VN_M_DIFFERING], 0.0); /* the same NaN */
	c[0] = 0;
	CU_ASSERT_EQUAL(bits_of(wide, VN_F64, c, VN_F32, N).value[VN_M_DIFFERING], 2.0);
	CU_ASSERT_EQUAL(bits_of(wide, VN_F64, c, VN_F32, N).differs_at, 77777);
	free(r);
	free(c);
	free(wide);
	free(half);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(hand_computed_numbers_come_out),
		TEST(the_pass_agrees_with_plain_loops),
		TEST(the_largest_difference_is_found_where_float32_cannot_tell),
		TEST(ulps_are_counted_in_the_coarser_format),
		TEST(the_two_zeros_are_no_distance_apart_and_signs_are_crossed),
		TEST(a_nan_on_either_side_is_counted_and_found),
		TEST(minus_infinity_on_both_sides_is_a_mask_among_scores),
		TEST(nonfinite_positions_do_not_enter_the_histogram),
		TEST(zeros_have_defined_metrics),
		TEST(scores_have_heads_outside_tokens),
		TEST(logits_are_judged_row_by_row),
		TEST(a_small_divergence_has_all_its_digits),
		TEST(scores_may_be_as_low_as_they_can),
		TEST(what_scores_share_makes_no_tie_of_them),
		TEST(a_tie_may_fall_either_way),
		TEST(a_nan_among_scores_is_a_nan_divergence),
		TEST(any_number_of_threads_gives_the_same_digits),
		TEST(a_brief_pass_has_the_same_sums_and_leaves_the_rest_unset),
		TEST(unaligned_bytes_are_read_as_they_are),
		TEST(float64_agrees_with_float32_where_both_can_say_it),
		TEST(headroom_is_of_the_candidate_s_format),
		TEST(a_token_of_enormous_size_hides_no_other),
		TEST(a_token_next_to_nothing_is_measured_against_the_median_token),
		TEST(a_massive_channel_hides_no_other),
		TEST(a_channel_next_to_nothing_is_measured_against_the_median_channel),
		TEST(what_is_wrong_in_every_second_or_third_token_shows_in_the_sample),
		TEST(float64_may_be_as_large_or_small_as_it_can),
		TEST(of_two_tensors_of_float64_each_has_a_size_of_its_own),
		TEST(bits_that_differ_are_counted),
		TEST(a_mean_has_an_uncertainty),
		TEST(a_divergence_is_that_of_long_double),
		CU_TEST_INFO_NULL,
	};
	return run_suite("metrics", tests);
}
