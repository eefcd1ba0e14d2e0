/* test_sample.c: the next token: the generator against its authors' vectors, the
 * draws against the probabilities they are drawn from. */
#include "libref/exec/sample.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the generator ------------------------------------------------------------ */

/* kat_vectors of Random123. */
static void philox_gives_its_authors_numbers(void)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} row[] = {
		{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
		  { 0xffffffff, 0xffffffff },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xa4093822, 0x299f31d0 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	uint32_t out[4];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_philox(row[i].counter, row[i].key, out);
		CU_ASSERT_EQUAL(memcmp(out, row[i].out, sizeof out), 0);
	}
}

static void a_draw_is_the_upper_bits_of_two_words(void)
{
	/* 0x6627e8d5 and 0xe169c58d of the first vector */
	const double u = ((double)(0x6627e8d5u >> 5) * 67108864.0 + (double)(0xe169c58du >> 6)) / 9007199254740992.0;

	CU_ASSERT_EQUAL(vn_draw(0, 0), u);
	for (uint64_t i = 0; i < 100000; i++) {
		const double x = vn_draw(7, i);
		if (!(x >= 0.0 && x < 1.0)) {
			CU_FAIL("a draw outside [0, 1)");
			return;
		}
	}
}

static void every_bit_of_seed_and_step_changes_the_draw(void)
{
	const double u = vn_draw(0, 0);

	for (int bit = 0; bit < 64; bit++) {
		CU_ASSERT_NOT_EQUAL(vn_draw((uint64_t)1 << bit, 0), u);
		CU_ASSERT_NOT_EQUAL(vn_draw(0, (uint64_t)1 << bit), u);
	}
}

/* ---- greedy --------------------------------------------------------------------- */

static int32_t pick(const float *x, int64_t V, double temperature, double u)
{
	int32_t id = -7;
	CU_ASSERT_EQUAL(vn_sample(&(vn_next_scores) { x, VN_F32, V }, temperature, u, &id, NULL), VN_OK);
	return id;
}

static void of_equal_scores_the_lowest_id_is_taken(void)
{
	const float x[] = { -1, 3, 2, 3, 3 };
	CU_ASSERT_EQUAL(pick(x, 5, 0, 0.999), 1);
	CU_ASSERT_EQUAL(pick(x + 2, 3, 0, 0), 1);
	CU_ASSERT_EQUAL(pick(x, 1, 0, 0), 0);
}

static void the_highest_is_found_behind_every_border(void)
{
	enum { V = 2500 };
	float *x = calloc(V, sizeof *x);

	for (int at = 0; at < V; at += 7) {
		x[at] = 1;
		CU_ASSERT_EQUAL(pick(x, V, 0, 0), at);
		CU_ASSERT_EQUAL(pick(x, V, 0.02, 0.5), at); /* e^-50 is left for the others */
		x[at] = 0;
	}
	free(x);
}

/* ---- drawn ------------------------------------------------------------------------ */

static void u_walks_through_the_ids_in_order(void)
{
	const float x[] = { 0, 0, -INFINITY, 0, 0 };
	CU_ASSERT_EQUAL(pick(x, 5, 1, 0.0), 0);
	CU_ASSERT_EQUAL(pick(x, 5, 1, 0.2499), 0);
	CU_ASSERT_EQUAL(pick(x, 5, 1, 0.25), 1);
	CU_ASSERT_EQUAL(pick(x, 5, 1, 0.4999), 1);
	CU_ASSERT_EQUAL(pick(x, 5, 1, 0.5), 3);
	CU_ASSERT_EQUAL(pick(x, 5, 1, 0x1.fffffffffffffp-1), 4);
}

static void what_has_no_weight_is_never_drawn(void)
{
	const float x[] = { -INFINITY, 5, 4, -INFINITY, -INFINITY };
	CU_ASSERT_EQUAL(pick(x, 5, 1, 0.0), 1);
	CU_ASSERT_EQUAL(pick(x, 5, 1, 0x1.fffffffffffffp-1), 2);
	CU_ASSERT_EQUAL(pick(x, 5, 1e-300, 0x1.fffffffffffffp-1), 1);
	for (int i = 0; i < 3000; i++) {
		/* A whole that rounding cannot push below the part: sums of many different sizes. */
		float y[97];
		for (int k = 0; k < 97; k++)
			y[k] = k < 90 ? (float)(20 * vn_draw(3, (uint64_t)(i * 97 + k))) : -INFINITY;
		const int32_t id = pick(y, 97, 0.3 + i * 0.001, 0x1.fffffffffffffp-1);
		CU_ASSERT(id >= 0 && id < 90);
	}
}

/* Counts of many draws against the probabilities: sum (count - np)^2 / np is
 * chi-square with V - 1 degrees of freedom, so 40 for V = 8 has p = 1e-6. */
static double chi_square(const void *x, vn_dtype dtype, const double *p, int V, double temperature, uint64_t seed,
                         int n)
{
	int   *count = calloc((size_t)V, sizeof *count);
	double chi = 0;

	for (int i = 0; i < n; i++) {
		int32_t id = -1;
		CU_ASSERT_EQUAL_FATAL(
			vn_sample(&(vn_next_scores) { x, dtype, V }, temperature, vn_draw(seed, (uint64_t)i), &id, NULL), VN_OK);
		CU_ASSERT_FATAL(id >= 0 && id < V);
		count[id]++;
	}
	for (int k = 0; k < V; k++)
		chi += pow(count[k] - n * p[k], 2) / (n * p[k]);
	free(count);
	return chi;
}

static void draws_have_the_probabilities_of_the_softmax(void)
{
	enum { V = 8, N = 200000 };
	static const double temperature[] = { 0.7, 1.0, 1.5 };
	const float         x[V] = { 1.5f, -0.25f, 0, 2, 2, -1, 0.5f, 1 }; /* exact in f16 */
	const double        wide[V] = { 1.5, -0.25, 0, 2, 2, -1, 0.5, 1 };
	uint16_t            half[V];
	double              p[V], worst = 0;

	vn_from_f32(half, VN_F16, x, V);
	for (int t = 0; t < 3; t++) {
		double z = 0;
		for (int k = 0; k < V; k++)
			z += p[k] = exp(wide[k] / temperature[t]);
		for (int k = 0; k < V; k++)
			p[k] /= z;
		for (uint64_t seed = 1; seed <= 3; seed++) {
			worst = fmax(worst, chi_square(x, VN_F32, p, V, temperature[t], seed, N));
			worst = fmax(worst, chi_square(half, VN_F16, p, V, temperature[t], seed + 10, N));
			worst = fmax(worst, chi_square(wide, VN_F64, p, V, temperature[t], seed << 40, N));
		}
	}
	printf("worst chi-square %.1f, 7 degrees ", worst);
	CU_ASSERT(worst < 40);
}

static void steps_do_not_follow_one_another(void)
{
	enum { V = 4, N = 160000 };
	const float x[V] = { 0, 0, 0, 0 };
	int         pair[V][V] = { { 0 } }, last = 0;
	double      chi = 0;

	for (int i = 0; i <= N; i++) {
		const int32_t id = pick(x, V, 1, vn_draw(42, (uint64_t)i));
		if (i)
			pair[last][id]++;
		last = id;
	}
	for (int i = 0; i < V; i++)
		for (int k = 0; k < V; k++)
			chi += pow(pair[i][k] - N / 16.0, 2) / (N / 16.0);
	printf("chi-square %.1f, 15 degrees ", chi);
	CU_ASSERT(chi < 55);
}

static void the_format_of_the_scores_does_not_matter(void)
{
	enum { V = 1500 };
	float    x[V];
	uint16_t half[V], brain[V];
	double   wide[V];

	for (int k = 0; k < V; k++)
		x[k] = (float)((int)(16 * vn_draw(9, (uint64_t)k))) / 4; /* exact in all of them */
	vn_from_f32(half, VN_F16, x, V);
	vn_from_f32(brain, VN_BF16, x, V);
	vn_to_f64(wide, x, VN_F32, V);
	for (uint64_t i = 0; i < 200; i++) {
		const void    *from[] = { half, brain, wide };
		const vn_dtype dtype[] = { VN_F16, VN_BF16, VN_F64 };
		const double   u = vn_draw(1, i);
		const int32_t  id = pick(x, V, 0.7, u);
		for (int d = 0; d < 3; d++) {
			int32_t other = -1;
			CU_ASSERT_EQUAL(vn_sample(&(vn_next_scores) { from[d], dtype[d], V }, 0.7, u, &other, NULL), VN_OK);
			CU_ASSERT_EQUAL(other, id);
		}
	}
}

/* ---- refused ------------------------------------------------------------------------ */

static void scores_that_are_no_scores_are_refused(void)
{
	const float bad[][3] = {
		{ 0, NAN, 1 }, { NAN, 0, 0 }, { 0, 1, NAN }, { 0, INFINITY, 1 }, { -INFINITY, -INFINITY, -INFINITY }
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		for (int warm = 0; warm < 2; warm++) {
			vn_error err = { "" };
			int32_t  id;
			CU_ASSERT_EQUAL(vn_sample(&(vn_next_scores) { bad[i], VN_F32, 3 }, warm, 0.5, &id, &err), VN_ERR_FORMAT);
			CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no token can be chosen"));
		}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(philox_gives_its_authors_numbers),
		TEST(a_draw_is_the_upper_bits_of_two_words),
		TEST(every_bit_of_seed_and_step_changes_the_draw),
		TEST(of_equal_scores_the_lowest_id_is_taken),
		TEST(the_highest_is_found_behind_every_border),
		TEST(u_walks_through_the_ids_in_order),
		TEST(what_has_no_weight_is_never_drawn),
		TEST(draws_have_the_probabilities_of_the_softmax),
		TEST(steps_do_not_follow_one_another),
		TEST(the_format_of_the_scores_does_not_matter),
		TEST(scores_that_are_no_scores_are_refused),
		CU_TEST_INFO_NULL,
	};
	return run_suite("sample", tests);
}
