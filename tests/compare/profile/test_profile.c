/* test_profile.c: planted faults and the sentences about them; rounding noise, about which there
 * is no sentence. */
#include "compare/profile/profile.h"
#include "tests/support/suite.h"
#include "tests/support/uniform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 24, H = 14, K = 32, N = T * H * K };

static float ref[N], cand[N];

/* Rounding noise of a correct run everywhere. */
static void correct(double noise)
{
	for (int i = 0; i < N; i++) {
		ref[i] = (float)uniform();
		cand[i] = (float)((double)ref[i] + noise * uniform());
	}
}

static vn_profile of(const char *axes, vn_shape shape)
{
	const vn_tensor r = { VN_F32, shape, ref }, c = { VN_F32, shape, cand };
	vn_profile      p;
	vn_error        err;
	CU_ASSERT_EQUAL(vn_profile_of(&r, &c, &(vn_profile_subject) { .axes = axes }, &p, &err), VN_OK);
	return p;
}

static vn_profile of_heads(void)
{
	return of("token head dim", (vn_shape) { 3, { T, H, K } });
}

static void expect(vn_profile p, int n, const char *const *words)
{
	CU_ASSERT_EQUAL(p.words.n, n);
	for (int i = 0; i < n && i < p.words.n; i++)
		if (!strstr(p.words.line[i], words[i])) {
			CU_FAIL("other words");
			fprintf(stderr, "said '%s', not '%s'\n", p.words.line[i], words[i]);
		}
	for (int i = n; i < p.words.n; i++)
		fprintf(stderr, "said too: '%s'\n", p.words.line[i]);
	vn_profile_free(&p);
}

#define EXPECT(p, ...) \
	expect(p, (int)(sizeof((const char *[]) { __VA_ARGS__ }) / sizeof(char *)), (const char *[]) { __VA_ARGS__ })

static void of_noise_nothing_is_said(void)
{
	for (int round = 0; round < 20; round++) {
		correct(1e-3);
		expect(of_heads(), 0, NULL);
		/* One token: every index of the last axis is one number, and its error is luck. */
		expect(of("token hidden", (vn_shape) { 2, { 1, 896 } }), 0, NULL);
	}
	memcpy(cand, ref, sizeof ref);
	expect(of_heads(), 0, NULL);
}

static void sums_are_those_of_plain_loops(void)
{
	correct(0.3);
	vn_profile p = of_heads();
	double     head[H] = { 0 }, dim[K] = { 0 }, token[T] = { 0 };
	for (int i = 0; i < N; i++) {
		const double d = (double)cand[i] - (double)ref[i];
		dim[i % K] += d * d;
		head[i / K % H] += d * d;
		token[i / (K * H)] += d * d;
	}
	const double *want[] = { token, head, dim };
	for (int a = 0; a < 3; a++)
		for (int64_t i = 0; i < p.axis[a].n; i++)
			CU_ASSERT(fabs(p.axis[a].at[i].error - want[a][i]) <= 1e-12 * want[a][i]);
	vn_profile_free(&p);
}

static void heads_are_named(void)
{
	correct(1e-3);
	for (int i = 0; i < N; i++)
		if (i / K % H >= 4 && i / K % H <= 7)
			cand[i] = (float)uniform();
	EXPECT(of_heads(), "heads 4-7 of 14 carry 100 %");

	correct(1e-3);
	for (int i = 0; i < N; i++)
		if (i / K % H == 3 || i / K % H == 9 || i / K % H == 10)
			cand[i] = (float)uniform();
	EXPECT(of_heads(), "heads 3, 9, 10 of 14 carry 100 %");
}

/* A wrong rotation: nothing at position 0, more with each token. */
static void what_grows_with_the_token_is_said(void)
{
	correct(0);
	for (int t = 0; t < T; t++)
		for (int i = 0; i < H * K; i++) {
			float *c = &cand[t * H * K + i];
			*c = (float)((double)*c + 0.01 * t * uniform());
		}
	EXPECT(of_heads(), "tokens 1-23 of 24 carry all of the error; the others are exact; it grows with the token");
}

static void no_trend_is_said_of_what_is_within_the_floor(void)
{
	const vn_tensor r = { VN_F32, { 3, { T, H, K } }, ref }, c = { VN_F32, { 3, { T, H, K } }, cand };
	vn_profile      p;
	vn_error        err;

	correct(0);
	for (int i = 0; i < N; i++)
		cand[i] *= 1 + 1e-5f * (float)(1 + i / (H * K)) * (i % 2 ? 1 : -1);
	CU_ASSERT_EQUAL(vn_profile_of(&r, &c, &(vn_profile_subject) { .axes = "token head dim", .noise = 1 }, &p, &err),
	                VN_OK);
	expect(p, 0, NULL);
}

static void kept_rows_have_the_numbers_of_their_tokens(void)
{
	const vn_tensor          r = { VN_F32, { 3, { T, H, K } }, ref }, c = { VN_F32, { 3, { T, H, K } }, cand };
	const vn_profile_subject of = { .axes = "token head dim", .first_token = 40 };
	vn_profile               p;
	vn_error                 err;

	correct(0);
	for (int i = 3 * H * K; i < 6 * H * K; i++)
		cand[i] *= 1.5f;
	CU_ASSERT_EQUAL(vn_profile_of(&r, &c, &of, &p, &err), VN_OK);
	EXPECT(p, "tokens 43-45 of 40-63 carry all of the error; the others are exact");
}

static void parity_and_strides_are_seen(void)
{
	correct(1e-4);
	for (int i = 0; i < N; i++)
		if (i % K % 2)
			cand[i] = -ref[i];
	EXPECT(of_heads(), "odd dims of 32 carry");

	correct(1e-4);
	for (int i = 0; i < N; i++)
		if (i % K % 4 == 1)
			cand[i] = -ref[i];
	EXPECT(of_heads(), "dims 1, 5, 9... of 32 carry");
}

static void one_massive_channel_is_named(void)
{
	correct(1e-3);
	for (int i = 408; i < N; i += 896) {
		ref[i] = 26 * (float)(1 + 0.1 * uniform());
		cand[i] = 1.15f * ref[i];
	}
	EXPECT(of("token hidden", (vn_shape) { 2, { N / 896, 896 } }), "channel 408 of 896 carries 100 %");
}

static void a_factor_and_an_offset_are_said(void)
{
	correct(0);
	for (int i = 0; i < N; i++)
		cand[i] = 1.01f * ref[i];
	EXPECT(of_heads(), "reference times 1.01");
	for (int i = 0; i < N; i++)
		cand[i] = ref[i] + 0.25f;
	EXPECT(of_heads(), "reference plus 0.25");
}

static void what_is_not_finite_is_placed(void)
{
	correct(1e-3);
	for (int i = 0; i < K; i++)
		cand[(5 * H + 2) * K + i] = NAN;
	/* Equal infinities are no difference. */
	ref[0] = cand[0] = INFINITY;
	EXPECT(of_heads(), "NaN and infinities are in token 5 of 24", "NaN and infinities are in head 2 of 14");
}

/* Threads divide an axis of more than 4096 numbers; one thread alone goes row by row. */
static void sums_do_not_depend_on_threads(void)
{
	const vn_shape  wide = { 2, { 2, N / 2 } };
	const vn_tensor r = { VN_F32, wide, ref }, c = { VN_F32, wide, cand };
	vn_profile      p[2];
	vn_error        err;

	correct(1e-3);
	for (int i = 0; i < 2; i++) {
		const vn_profile_subject of = { .axes = "token vocab", .threads = i ? 3 : 1 };
		CU_ASSERT_EQUAL_FATAL(vn_profile_of(&r, &c, &of, &p[i], &err), VN_OK);
	}
	CU_ASSERT(p[0].all.error > 0);
	CU_ASSERT_EQUAL(memcmp(&p[0].all, &p[1].all, sizeof p[0].all), 0);
	CU_ASSERT_EQUAL(p[0].factor, p[1].factor);
	for (int a = 0; a < 2; a++)
		CU_ASSERT_EQUAL(memcmp(p[0].axis[a].at, p[1].axis[a].at, (size_t)wide.dim[a] * sizeof(vn_energy)), 0);
	vn_profile_free(&p[0]);
	vn_profile_free(&p[1]);
}

static void axes_without_names_have_numbers(void)
{
	correct(1e-3);
	for (int i = 0; i < N; i++)
		if (i / K % H == 3)
			cand[i] = 0;
	EXPECT(of("", (vn_shape) { 3, { T, H, K } }), "index of axis 1: 3 of 14 carries");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(of_noise_nothing_is_said),
		TEST(sums_are_those_of_plain_loops),
		TEST(sums_do_not_depend_on_threads),
		TEST(heads_are_named),
		TEST(what_grows_with_the_token_is_said),
		TEST(kept_rows_have_the_numbers_of_their_tokens),
		TEST(no_trend_is_said_of_what_is_within_the_floor),
		TEST(parity_and_strides_are_seen),
		TEST(one_massive_channel_is_named),
		TEST(a_factor_and_an_offset_are_said),
		TEST(what_is_not_finite_is_placed),
		TEST(axes_without_names_have_numbers),
		CU_TEST_INFO_NULL,
	};
	return run_suite("profile", tests);
}
