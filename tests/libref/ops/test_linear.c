/* test_linear.c: products in float32, and in two policies at once. */
#include "libref/exec/ref.h"
#include "libref/ops/blas.h"
#include "libref/ops/ops.h"
#include "libref/ops/tile.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 70, N = 300, M = 700, THREADS = 2 };

static const vn_policy f16 = { VN_F16, VN_F32, 0, { 0 } }, f32 = { VN_F32, VN_F32, 0, { 0 } };
static float           x[T * N], w[M * N], bias[M], y[T * M], also[T * M], alone[T * M];

static float number(int i)
{
	return (float)((i % 2003 * 7919 + 13) % 2001 - 1000) / 1024;
}

static void fill(void)
{
	for (int i = 0; i < T * N; i++)
		x[i] = number(i);
	for (int i = 0; i < M * N; i++)
		w[i] = number(3 * i + 1); /* exact in float16 */
	for (int i = 0; i < M; i++)
		bias[i] = number(5 * i + 2);
}

/* Multiplies for both policies at once, and for each alone. Returns the second's largest difference
 * between the two ways, relative to the largest number. */
static double both(vn_dtype stored, const void *data)
{
	const vn_tensor t = { stored, { 2, { M, N } }, data };
	const vn_matrix m = vn_matrix_of(&t, false);
	double          most = 0, size = 0;

	CU_ASSERT(
		vn_linear_also_f32(y, &(vn_operands) { x, &m, bias, T, f16, THREADS }, &(vn_also_f32) { also, bias, f32 }));
	CU_ASSERT(vn_linear_f32(alone, &(vn_operands) { x, &m, bias, T, f16, THREADS }));
	CU_ASSERT_EQUAL(memcmp(y, alone, sizeof y), 0);
	CU_ASSERT(vn_linear_f32(alone, &(vn_operands) { x, &m, bias, T, f32, THREADS }));
	for (int i = 0; i < T * M; i++) {
		most = fmax(most, fabs((double)also[i] - (double)alone[i]));
		size = fmax(size, fabs((double)alone[i]));
	}
	return most / size;
}

static void weights_that_both_store_alike_give_the_same_bits(void)
{
	static uint16_t half[M * N];

	fill();
	CU_ASSERT_EQUAL(both(VN_F32, w), 0);
	vn_from_f32(half, VN_F16, w, (size_t)(M * N));
	CU_ASSERT_EQUAL(both(VN_F16, half), 0);
}

static void weights_that_one_of_them_rounds_are_multiplied_again(void)
{
	fill();
	for (int i = 0; i < N; i++)
		w[M / 2 * N + i] *= 1.0001f; /* one row, which float16 cannot hold */
	CU_ASSERT_EQUAL(both(VN_F32, w), 0);
	for (int t = 0; t < T; t++)
		CU_ASSERT_NOT_EQUAL(y[t * M + M / 2], also[t * M + M / 2]);
}

static void weights_that_differ_by_next_to_nothing_count_as_alike(void)
{
	fill();
	for (int m = 0; m < M; m++)
		w[m * N + m % N] = 1e-6f; /* a subnormal of float16: off by 2 % of it */
	CU_ASSERT(both(VN_F32, w) < 1e-6);
	CU_ASSERT_EQUAL(memcmp(y, also, sizeof y), 0); /* that is, multiplied once */
}

/* Small bfloat16 weights, as of an output in a deep model: few of them are subnormals of
 * float16. */
static void small_weights_of_a_deep_model_are_multiplied_once(void)
{
	static uint16_t stored[M * N];

	fill();
	for (int i = 0; i < M * N; i++) /* of deviation 0.0027 */
		w[i] = 0.0027f * (number(7 * i + 1) + number(11 * i + 2) + number(13 * i + 3));
	vn_from_f32(stored, VN_BF16, w, (size_t)(M * N));
	CU_ASSERT(both(VN_BF16, stored) < 1e-6);
	CU_ASSERT_EQUAL(memcmp(y, also, sizeof y), 0);
}

/* ---- bits ----------------------------------------------------------------------------------- */

/* More than one block of inputs, an odd number of them, and strips,
 * rows and chains that end early. */
enum { FEW_T = 71, DEEP = 1101, ROWS = 75 };

static float deep_x[FEW_T * DEEP], deep_w[ROWS * DEEP], transposed[ROWS * DEEP], right[FEW_T * ROWS], got[FEW_T * ROWS];

static void multiply_by_chains(void)
{
	for (int t = 0; t < FEW_T; t++)
		for (int m = 0; m < ROWS; m++) {
			float all = 0;
			for (int n0 = 0; n0 < DEEP; n0 += VN_TILE_CHAIN) {
				float sum = 0;
				for (int n = n0; n < DEEP && n < n0 + VN_TILE_CHAIN; n++)
					sum = fmaf(deep_x[t * DEEP + n], deep_w[m * DEEP + n], sum);
				all += sum;
			}
			right[t * ROWS + m] = all;
		}
}

/* Of weights that bfloat16 holds. */
static void fill_deep(void)
{
	for (int i = 0; i < FEW_T * DEEP; i++)
		deep_x[i] = number(i) * 1.1f;
	for (int i = 0; i < ROWS * DEEP; i++)
		deep_w[i] = vn_bf16_to_f32(vn_f32_to_bf16(number(3 * i + 1)));
	for (int i = 0; i < ROWS * DEEP; i++)
		transposed[i % DEEP * ROWS + i / DEEP] = deep_w[i];
	multiply_by_chains();
}

static bool has_fma(const vn_tile_kernel *k)
{
#if defined(__x86_64__)
	return k != &vn_tile_plain;
#else
	(void)k;
	return true;
#endif
}

static void every_kernel_adds_chains_of_fused_products(void)
{
	static float          packed[(ROWS + VN_MOST_STRIP) * DEEP + 8 * VN_MOST_STRIP], rows[VN_MOST_STRIP * DEEP];
	const vn_tile_kernel *k;

	fill_deep();
	for (int i = 0; (k = vn_tile_kernel_get(i)); i++) {
		double worst = 0;

		for (int m = 0; m < ROWS; m += k->strip) {
			const int here = ROWS - m < k->strip ? ROWS - m : k->strip;
			memset(rows, 0, sizeof rows);
			memcpy(rows, deep_w + m * DEEP, (size_t)(here * DEEP) * 4);
			k->interleave(packed + m * DEEP, rows, DEEP * 4, DEEP, false);
		}
		k->multiply(got, ROWS, &(vn_tile_product) { deep_x, DEEP, packed, FEW_T, ROWS, DEEP, false });
		for (int j = 0; j < FEW_T * ROWS; j++)
			worst = fmax(worst, fabs((double)got[j] - (double)right[j]));
		CU_ASSERT(worst <= (has_fma(k) ? 0 : 1e-3));
		k->multiply(got, ROWS, &(vn_tile_product) { deep_x, DEEP, packed, FEW_T, ROWS, DEEP, true });
		for (int j = 0; j < FEW_T * ROWS; j++)
			CU_ASSERT(fabs((double)got[j] - 2 * (double)right[j]) <= 1e-2);
	}
}

static void neither_threads_nor_formats_nor_order_in_memory_change_a_bit(void)
{
	static uint16_t  stored[ROWS * DEEP];
	const vn_policy  policy = { VN_F32, VN_F32, 0, { 0 } };
	const vn_tensor  form[] = { { VN_F32, { 2, { ROWS, DEEP } }, deep_w },
		                        { VN_BF16, { 2, { ROWS, DEEP } }, stored },
		                        { VN_F32, { 2, { DEEP, ROWS } }, transposed } };
	static const int threads[] = { 1, 2, 5 };

	fill_deep();
	vn_from_f32(stored, VN_BF16, deep_w, ROWS * DEEP);
	for (int f = 0; f < 3; f++)
		for (int i = 0; i < 3; i++) {
			const vn_matrix m = vn_matrix_of(&form[f], f == 2);
			CU_ASSERT(vn_linear_f32(got, &(vn_operands) { deep_x, &m, NULL, FEW_T, policy, threads[i] }));
			if (f + i == 0 && has_fma(vn_tile_kernel_get(0)))
				CU_ASSERT_EQUAL(memcmp(got, right, sizeof got), 0);
			if (f + i == 0)
				memcpy(right, got, sizeof got);
			CU_ASSERT_EQUAL(memcmp(got, right, sizeof got), 0);
		}
}

/* ---- two engines ---------------------------------------------------------------------------- */

typedef struct kept {
	float *logits;
	size_t n;
} kept;

static vn_status begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	kept *k = ctx;
	(void)value, (void)dtype, (void)shape, (void)err;
	k->n = 0;
	return VN_OK;
}

static vn_status take_numbers(void *ctx, const void *data, size_t elements, vn_error *err)
{
	kept *k = ctx;
	(void)err;
	memcpy((char *)k->logits + k->n * 4, data, elements * 4);
	k->n += elements;
	return VN_OK;
}

static vn_status end(void *ctx, vn_error *err)
{
	(void)ctx, (void)err;
	return VN_OK;
}

/* Adds 1 to a number of the embedding, if it is one. */
static void change(vn_ref *r, int value, int64_t at)
{
	static float embedded[T * N];

	CU_ASSERT_EQUAL_FATAL(vn_ref_ops.read(r, value, embedded, NULL), VN_OK);
	if (at >= 0)
		embedded[at]++;
	CU_ASSERT_EQUAL_FATAL(vn_ref_ops.write(r, value, embedded, NULL), VN_OK);
}

/* Embeds, and multiplies with the logits' weights: in both engines together, or one after the
 * other. at: the number that the second engine reads differently; -1: none. */
static void logits_of(const vn_plan *p, const vn_tensor weights[2], bool together, int64_t at, int threads,
                      float *out[2])
{
	const vn_policy policy[2] = { f32, f32 };
	int32_t         ids[T];
	bool            want[8] = { false };
	kept            k[2] = { { out[0], 0 }, { out[1], 0 } };
	vn_taps         taps[2];
	vn_ref         *r[2];

	want[vn_plan_find(p, "logits")] = true;
	for (int t = 0; t < T; t++)
		ids[t] = t;
	for (int i = 0; i < 2; i++) {
		taps[i] = (vn_taps) { .want = want,
			                  .sink = { .ctx = &k[i], .begin = begin, .write = take_numbers, .end = end } };
		const vn_ref_options o = { .policy = policy[i], .threads = threads };
		CU_ASSERT_EQUAL_FATAL(vn_ref_create(p, weights, &o, &r[i], NULL), VN_OK);
		CU_ASSERT_EQUAL_FATAL(vn_ref_ops.begin(r[i], ids, T, &taps[i], NULL), VN_OK);
	}
	for (int n = 0; n < p->n_nodes; n++) {
		if (n == 1)
			change(r[1], p->node[0].out[0], at);
		if (together)
			CU_ASSERT_EQUAL(vn_ref_run_both(r[0], r[1], n, NULL), VN_OK);
		for (int i = 0; !together && i < 2; i++)
			CU_ASSERT_EQUAL(vn_ref_ops.run(r[i], n, n + 1, NULL), VN_OK);
	}
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(k[i].n, T * M);
		vn_ref_ops.end(r[i], false, NULL);
		vn_ref_ops.destroy(r[i]);
	}
}

static void two_engines_that_share_a_product_hand_over_what_each_would_alone(void)
{
	static float a[2][T * M], b[2][T * M];
	vn_builder  *build = vn_plan_begin(0, M, T);
	vn_plan     *p = NULL;
	const int    e = vn_plan_embed(build, vn_plan_weight(build, "e", 2, (int64_t[]) { M, N }), VN_POINT_EMBED);

	vn_plan_linear(build, e, vn_plan_weight(build, "w", 2, (int64_t[]) { M, N }), -1, 0, VN_POINT_LOGITS);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(build, &p, NULL), VN_OK);
	fill();
	const vn_tensor weights[2] = { { VN_F32, { 2, { M, N } }, w }, { VN_F32, { 2, { M, N } }, w } };
	/* the first, one in between, the last: threads compare the inputs in shares of 64 KiB */
	const int64_t   other[] = { -1, 0, 16384, T * N - 1 };
	for (int i = 0; i < 4; i++)
		for (int threads = 1; threads <= 8; threads *= 2) {
			logits_of(p, weights, true, other[i], threads, (float *[2]) { a[0], a[1] });
			logits_of(p, weights, false, other[i], threads, (float *[2]) { b[0], b[1] });
			CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
			CU_ASSERT((memcmp(a[0], a[1], sizeof a[0]) == 0) == (other[i] < 0));
		}
	vn_plan_destroy(p);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(weights_that_both_store_alike_give_the_same_bits),
		TEST(weights_that_one_of_them_rounds_are_multiplied_again),
		TEST(weights_that_differ_by_next_to_nothing_count_as_alike),
		TEST(small_weights_of_a_deep_model_are_multiplied_once),
		TEST(every_kernel_adds_chains_of_fused_products),
		TEST(neither_threads_nor_formats_nor_order_in_memory_change_a_bit),
		TEST(two_engines_that_share_a_product_hand_over_what_each_would_alone),
		CU_TEST_INFO_NULL,
	};
	vn_error err = { "" };

	if (vn_blas_prepare(THREADS, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return run_suite("linear", tests);
}
