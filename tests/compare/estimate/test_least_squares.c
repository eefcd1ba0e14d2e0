/* test_least_squares.c: tests compare/estimate/least_squares.c. */
#include "compare/estimate/least_squares.h"
#include "compare/estimate/linear_product.h"
#include "libref/ops/blas.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* A coefficient between -0.5 and 0.5, as if by chance. The solution is x[i] = sin i. */
static double draw(int64_t r, int64_t i)
{
	uint64_t z = (uint64_t)(r * 100003 + i + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return (double)(z >> 11) / (double)(INT64_C(1) << 53) - 0.5;
}

typedef struct given {
	int64_t N;
	int     zero; /* a column without coefficients; 0: none */
} given;

static void read_row(const void *context, int64_t r, double *row)
{
	const given *g = context;

	row[g->N] = 0;
	for (int64_t i = 0; i < g->N; i++) {
		row[i] = g->zero && i == g->zero ? 0 : draw(r, i);
		row[g->N] += row[i] * sin((double)i);
	}
}

static bool solve(given g, int64_t rows, int threads, double *x)
{
	return vn_least_squares(&(vn_equations) { g.N, rows, read_row, &g, threads }, x);
}

static void unknowns_are_found_at_any_size_by_any_number_of_threads(void)
{
	static const int64_t sizes[][2] = { { 1, 1 }, { 5, 7 }, { 127, 300 }, { 128, 200 }, { 129, 2500 }, { 400, 1024 } };
	double               x[400], y[400];

	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		CU_ASSERT_TRUE(solve((given) { sizes[k][0], 0 }, sizes[k][1], 1, x));
		CU_ASSERT_TRUE(solve((given) { sizes[k][0], 0 }, sizes[k][1], 3, y));
		for (int64_t i = 0; i < sizes[k][0]; i++) {
			CU_ASSERT_DOUBLE_EQUAL(x[i], sin((double)i), 1e-8);
			CU_ASSERT(x[i] == y[i]);
		}
	}
}

/* Of one unknown: sum w y / sum w^2. */
static void read_contradiction(const void *context, int64_t r, double *row)
{
	(void)context;
	row[0] = (double)r + 1;
	row[1] = r == 0 ? 7 : 1;
}

static void contradictions_leave_the_least_squares(void)
{
	double x;

	CU_ASSERT_TRUE(vn_least_squares(&(vn_equations) { 1, 3, read_contradiction, NULL, 2 }, &x));
	CU_ASSERT_DOUBLE_EQUAL(x, (7 + 2 + 3) / 14.0, 1e-14);
}

static void equations_that_do_not_determine_the_unknowns_are_refused(void)
{
	double x[200];

	CU_ASSERT_FALSE(solve((given) { 200, 150 }, 400, 2, x));
	CU_ASSERT_FALSE(solve((given) { 3, 0 }, 0, 1, x));
}

static double processor_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Of n numbers, by elimination in place. Returns the time that it took. */
static double elimination_s(int n)
{
	double *a = malloc((size_t)n * (size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b), start;

	for (int r = 0; r < n; r++) {
		b[r] = sin(r);
		for (int c = 0; c < n; c++)
			a[r * n + c] = draw(r, c);
	}
	start = processor_s();
	CU_ASSERT_TRUE(vn_estimate_solve(a, b, n));
	start = processor_s() - start;
	free(a);
	free(b);
	return start;
}

/* From twice as many equations: more than three times the arithmetic. Elimination takes 64 times as
 * long for 4 times as many. One thread: others may use time while they wait. */
static void thousands_of_unknowns_take_about_as_long_as_elimination(void)
{
	const int many = is_emulated() ? 300 : 2048; /* qemu would take ten minutes */
	double   *x = malloc((size_t)many * sizeof *x), peer = 64 * elimination_s(many / 4), start = processor_s();

	CU_ASSERT_TRUE(solve((given) { many, 0 }, 2 * many, 1, x));
	CU_ASSERT(processor_s() - start < 2 * peer || is_emulated());
	for (int i = 0; i < many; i++)
		CU_ASSERT_DOUBLE_EQUAL(x[i], sin(i), 1e-8);
	free(x);
}

int main(void)
{
	vn_error    err;
	CU_TestInfo tests[] = {
		TEST(unknowns_are_found_at_any_size_by_any_number_of_threads),
		TEST(contradictions_leave_the_least_squares),
		TEST(equations_that_do_not_determine_the_unknowns_are_refused),
		TEST(thousands_of_unknowns_take_about_as_long_as_elimination),
		CU_TEST_INFO_NULL,
	};
	return vn_blas_prepare(3, &err) || run_suite("least_squares", tests);
}
