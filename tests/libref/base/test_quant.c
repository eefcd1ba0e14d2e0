/* test_quant.c: blocks of quantised weights, bit for bit as ggml's own package reads them.
 *
 * The digests come from fixtures/quant_blocks.py, which dequantises the same
 * blocks with the gguf package; the single values follow from ggml's
 * formulas. */
#include "libref/ops/blas.h"
#include "libref/base/digest.h"
#include "libref/base/quant.h"
#include "libref/base/stats.h"
#include "libref/exec/eval.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 1000, LONGEST = 256 };

static const struct {
	vn_dtype    d;
	int         scale[2];
	const char *digest;
} format[] = {
	{ VN_Q4_0, { 0, -1 }, "269f240283db4ea23c1eaa92b0cdcdbb" },
	{ VN_Q4_1, { 0, 2 }, "487a0b9e0b48aea7304bec803f101a7e" },
	{ VN_Q5_0, { 0, -1 }, "e0ad1e2d6a18d98f899736aa812d4968" },
	{ VN_Q5_1, { 0, 2 }, "09c1f931da6b67dcb72c4233f634f8df" },
	{ VN_Q8_0, { 0, -1 }, "455910d6f955a5b6680f1df464d6c08a" },
	{ VN_Q4_K, { 0, 2 }, "c83dec4a80c9af3dc372f872c8eb5068" },
	{ VN_Q5_K, { 0, 2 }, "399dc178943d59b28de20dae72111622" },
	{ VN_Q6_K, { 208, -1 }, "c866885acc5be7065338f67eb084650d" },
};

enum { FORMATS = sizeof format / sizeof *format };

static size_t block_bytes(vn_dtype d)
{
	return vn_dtype_bytes(d, vn_dtype_block(d));
}

/* The generator of quant_blocks.py. free() it. */
static unsigned char *blocks_of(size_t i, size_t blocks)
{
	const size_t   size = block_bytes(format[i].d);
	uint32_t       x = (uint32_t)size;
	unsigned char *p = malloc(blocks * size);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	for (size_t k = 0; k < blocks * size; k++) {
		x = x * 1664525u + 1013904223u;
		p[k] = (unsigned char)(x >> 24);
	}
	for (size_t b = 0; b < blocks; b++)
		for (int s = 0; s < 2; s++)
			if (format[i].scale[s] >= 0)
				p[b * size + (size_t)format[i].scale[s] + 1] &= 0xbf;
	return p;
}

static float *floats(size_t n)
{
	float *y = malloc((n + 1) * sizeof *y);
	CU_ASSERT_PTR_NOT_NULL_FATAL(y);
	y[n] = 77.0f; /* must stay */
	return y;
}

static void every_format_has_its_size_and_name(void)
{
	/* clang-format off */
	const struct { vn_dtype d; size_t block, bytes; const char *name, *word; } want[] = {
		{ VN_Q4_0, 32, 18, "q4_0", "Q4_0" }, { VN_Q4_1, 32, 20, "q4_1", "Q4_1" }, { VN_Q5_0, 32, 22, "q5_0", "Q5_0" },
		{ VN_Q5_1, 32, 24, "q5_1", "Q5_1" }, { VN_Q8_0, 32, 34, "q8_0", "Q8_0" }, { VN_Q4_K, 256, 144, "q4_k", "Q4_K" },
		{ VN_Q5_K, 256, 176, "q5_k", "Q5_K" }, { VN_Q6_K, 256, 210, "q6_k", "Q6_K" },
		{ VN_F16, 1, 2, "f16", "F16" }, { VN_BF16, 1, 2, "bf16", "BF16" }, { VN_F32, 1, 4, "f32", "F32" },
		  { VN_F64, 1, 8, "f64", "F64" },
		{ VN_F8_E4M3, 1, 1, "f8_e4m3", "F8_E4M3" }, { VN_F8_E5M2, 1, 1, "f8_e5m2", "F8_E5M2" },
		  { VN_I32, 1, 4, "i32", "I32" },
	};
	/* clang-format on */

	CU_ASSERT_EQUAL((int)(sizeof want / sizeof *want), VN_N_WEIGHT_DTYPES);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		vn_dtype d = VN_N_WEIGHT_DTYPES;
		CU_ASSERT_EQUAL(vn_dtype_block(want[i].d), want[i].block);
		CU_ASSERT_EQUAL(vn_dtype_bytes(want[i].d, 3 * want[i].block), 3 * want[i].bytes);
		CU_ASSERT_EQUAL(vn_dtype_bytes(want[i].d, 0), 0);
		CU_ASSERT_STRING_EQUAL(vn_dtype_name(want[i].d), want[i].name);
		CU_ASSERT_STRING_EQUAL(vn_dtype_word(want[i].d), want[i].word);
		CU_ASSERT(vn_dtype_from_name(want[i].word, &d) && d == want[i].d);
	}
}

static void a_thousand_blocks_are_those_of_the_gguf_package(void)
{
	for (size_t i = 0; i < FORMATS; i++) {
		const size_t   n = BLOCKS * vn_dtype_block(format[i].d);
		unsigned char *b = blocks_of(i, BLOCKS);
		float         *y = floats(n);
		vn_to_f32(y, b, format[i].d, n);
		CU_ASSERT_STRING_EQUAL(vn_digest_of(y, n * sizeof *y).hex, format[i].digest);
		CU_ASSERT_EQUAL(y[n], 77.0f);
		free(b), free(y);
	}
}

static void the_worked_examples_of_the_specification_hold(void)
{
	unsigned char q4[144], q6[210];
	float         y[LONGEST];
	double        sum = 0;

	memcpy(q4, "\x00\x38\x00\x34", 4); /* 0.5 and 0.25 */
	for (int i = 0; i < 12; i++)
		q4[4 + i] = (unsigned char)(37 * i + 11);
	for (int i = 0; i < 128; i++)
		q4[16 + i] = (unsigned char)(53 * i + 7);
	vn_to_f32(y, q4, VN_Q4_K, LONGEST);
	CU_ASSERT(y[0] == 30.75f && y[1] == 58.25f && y[2] == -2.25f && y[3] == 25.25f);
	CU_ASSERT(y[32] == -1.0f && y[33] == 71.0f && y[128] == 1.75f && y[129] == 9.25f && y[255] == 42.5f);
	for (int i = 0; i < LONGEST; i++)
		sum += (double)y[i];
	CU_ASSERT_EQUAL(sum, 21180.0);

	for (int i = 0; i < 128; i++)
		q6[i] = (unsigned char)(29 * i + 5);
	for (int i = 0; i < 64; i++)
		q6[128 + i] = (unsigned char)(71 * i + 3);
	for (int i = 0; i < 16; i++)
		q6[192 + i] = (unsigned char)((13 * i + 1) % 64 - 32);
	memcpy(q6 + 208, "\x00\x30", 2); /* 0.125 */
	vn_to_f32(y, q6, VN_Q6_K, LONGEST);
	CU_ASSERT(y[0] == -81.375f && y[1] == -7.75f && y[2] == 3.875f && y[3] == 77.5f);
	CU_ASSERT(y[32] == 16.875f && y[33] == -1.25f && y[128] == 23.625f && y[129] == 2.25f && y[255] == 35.0f);
	sum = 0;
	for (int i = 0; i < LONGEST; i++)
		sum += (double)y[i];
	CU_ASSERT_EQUAL(sum, 157.5);
}

static void a_part_of_whole_blocks_is_that_part_of_the_whole(void)
{
	for (size_t i = 0; i < FORMATS; i++) {
		const vn_dtype d = format[i].d;
		const size_t   block = vn_dtype_block(d), n = 37 * block;
		unsigned char *b = blocks_of(i, 37), *off = malloc(37 * block_bytes(d) + 1);
		float         *all = floats(n), *part = floats(n);
		vn_to_f32(all, b, d, n);
		CU_ASSERT_PTR_NOT_NULL_FATAL(off);
		memcpy(off + 1, b, 37 * block_bytes(d));
		for (size_t at = 0; at <= 36; at += 4) {
			vn_to_f32(part, off + 1 + vn_dtype_bytes(d, at * block), d, block);
			CU_ASSERT_EQUAL(memcmp(part, all + at * block, block * sizeof *part), 0);
		}
		vn_to_f32(part, off + 1, d, 0);
		free(b), free(off), free(all), free(part);
	}
}

static void every_way_out_of_a_block_starts_from_its_floats(void)
{
	for (size_t i = 0; i < FORMATS; i++) {
		const vn_dtype d = format[i].d;
		const size_t   n = 40 * vn_dtype_block(d);
		unsigned char *b = blocks_of(i, 40);
		float         *y = floats(n), *half = floats(n), *want = floats(n);
		double        *wide = malloc(n * sizeof *wide);
		int            wrong = 0;
		CU_ASSERT_PTR_NOT_NULL_FATAL(wide);
		vn_to_f32(y, b, d, n);
		vn_to_f64(wide, b, d, n);
		for (size_t k = 0; k < n; k++)
			wrong += wide[k] != (double)y[k];
		CU_ASSERT_EQUAL(wrong, 0);
		memcpy(want, y, n * sizeof *y);
		vn_round_f32(want, VN_F16, n);
		vn_to_f32_as(half, b, d, VN_F16, n);
		CU_ASSERT_EQUAL(memcmp(half, want, n * sizeof *y), 0);
		const vn_stats s = vn_stats_of(b, d, n), t = vn_stats_of(y, VN_F32, n);
		CU_ASSERT_EQUAL(memcmp(&s, &t, sizeof s), 0);
		free(b), free(y), free(half), free(want), free(wide);
	}
}

/* ---- as weights ---------------------------------------------------------------------- */

static void *eval(const vn_node *n, const vn_args *a, int64_t row, size_t *bytes)
{
	const vn_eval *e = vn_eval_for(a->policy);
	*bytes = (size_t)(a->tokens * row) * vn_dtype_size(e->width);
	void *out = malloc(*bytes);
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	memset(out, 0xff, *bytes);
	CU_ASSERT_EQUAL(e->node(n, a, row, row, out, NULL), VN_OK);
	return out;
}

/* Runs one operation on a quantised matrix and on its floats. */
static void check_same(const vn_node *n, vn_args *a, vn_dtype d, const void *blocks, const float *y, int64_t M,
                       int64_t N, int64_t row)
{
	const vn_tensor quantised = { d, { 2, { M, N } }, blocks }, plain = { VN_F32, { 2, { M, N } }, y };
	size_t          bytes;

	a->w[0] = &plain;
	void *want = eval(n, a, row, &bytes);
	a->w[0] = &quantised;
	void *got = eval(n, a, row, &bytes);
	CU_ASSERT_EQUAL(memcmp(got, want, bytes), 0);
	free(got), free(want);
}

static void a_quantised_matrix_computes_as_its_floats_do(void)
{
	static const vn_policy policy[] = { { VN_F32, VN_F32, 0, { 0 } },
		                                { VN_F64, VN_F64, 0, { 0 } },
		                                { VN_F16, VN_F32, 0, { 0 } },
		                                { VN_F16, VN_F16, 0, { 0 } } };
	static const int32_t   ids[] = { 2, 0, 99, 2 };
	const int64_t          M = 100, N = 768, most = 80; /* both sides of linear_wide.c's choice */
	const vn_node          linear = { .op = VN_OP_LINEAR }, embed = { .op = VN_OP_EMBED };
	float                 *x = floats((size_t)(most * N));
	double                *wide = malloc((size_t)(most * N) * sizeof *wide);
	uint32_t               u = 5;

	CU_ASSERT_PTR_NOT_NULL_FATAL(wide);
	for (int64_t k = 0; k < most * N; k++) {
		u = u * 1664525u + 1013904223u;
		wide[k] = (double)(x[k] = vn_f16_to_f32((uint16_t)(u >> 16 & 0xbbff)));
	}
	for (size_t i = 0; i < FORMATS; i++) {
		const size_t   n = (size_t)(M * N);
		unsigned char *b = blocks_of(i, n / vn_dtype_block(format[i].d));
		float         *y = floats(n);
		vn_to_f32(y, b, format[i].d, n);
		for (size_t p = 0; p < 4; p++)
			for (int threads = 1; threads <= 3; threads += 2) {
				vn_args a = { .policy = policy[p], .threads = threads, .tokens = most };
				a.in[0] = vn_eval_for(policy[p])->width == VN_F64 ? (void *)wide : (void *)x;
				check_same(&linear, &a, format[i].d, b, y, M, N, M);
				a.tokens = 1;
				check_same(&linear, &a, format[i].d, b, y, M, N, M);
				a.tokens = 4;
				a.ids = ids;
				check_same(&embed, &a, format[i].d, b, y, M, N, N);
			}
		free(b), free(y);
	}
	free(x), free(wide);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_format_has_its_size_and_name),
		TEST(a_thousand_blocks_are_those_of_the_gguf_package),
		TEST(the_worked_examples_of_the_specification_hold),
		TEST(a_part_of_whole_blocks_is_that_part_of_the_whole),
		TEST(every_way_out_of_a_block_starts_from_its_floats),
		TEST(a_quantised_matrix_computes_as_its_floats_do),
		CU_TEST_INFO_NULL,
	};
	vn_error err = { "" };

	if (vn_blas_prepare(2, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return run_suite("quant", tests);
}
