/* test_ops_gpt2.c: what GPT-2 needs beside the common operations, in both widths,
 * against plain loops in double: layer norm, positions, slices, gelu, and
 * products with matrices that are stored [in,out]. */
#include "libref/ops/blas.h"
#include "tests/support/suite.h"
#include "tests/support/test_ops_help.h"

/* ---- norm, rows, columns ------------------------------------------------------------------- */

static void layer_norm_is_its_formula_with_and_without_bias(void)
{
	const struct {
		int    T, heads, N;
		double eps, shift;
	} row[] = {
		{ 1, 1, 1, 1e-5, 0 },    { 2, 1, 3, 1e-5, 0 },   { 3, 4, 5, 1e-12, 0 }, { 17, 1, 768, 1e-5, 0 },
		{ 3, 1, 4096, 1e-5, 0 }, { 5, 1, 48, 1e-5, 64 }, /* far from zero: a mean of squares would cancel */
	};

	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		for (int pi = 0; pi < N_POLICIES; pi++)
			for (int biased = 0; biased < 2; biased++) {
				const int N = row[k].N, R = row[k].T * row[k].heads;
				double   *x = draws(R * N), *g = draws(N), *b = draws(N), *want = malloc((size_t)(R * N) * 8);
				double   *size = malloc((size_t)(R * N) * 8);
				for (int i = 0; i < R * N; i++)
					x[i] = vn_f16_to_f32(vn_f32_to_f16((float)(x[i] + row[k].shift)));
				void           *graw, *braw, *in = widened(x, R * N, policies[pi]);
				const vn_tensor gt = stored(g, VN_F16, 1, N, 0, 1, &graw), bt = stored(b, VN_F16, 1, N, 0, 1, &braw);
				const vn_node   n = { .op = VN_OP_LAYER_NORM, .c.norm.eps = row[k].eps };
				const vn_args   a = { .policy = policies[pi],
					                  .threads = 2,
					                  .tokens = row[k].T,
					                  .in = { in },
					                  .w = { &gt, biased ? &bt : NULL } };
				for (int r = 0; r < R; r++) {
					double mean = 0, var = 0;
					for (int i = 0; i < N; i++)
						mean += x[r * N + i] / N;
					for (int i = 0; i < N; i++)
						var += pow(x[r * N + i] - mean, 2) / N;
					for (int i = 0; i < N; i++) {
						const double y = (x[r * N + i] - mean) / sqrt(var + row[k].eps) * g[i],
									 plus = biased ? b[i] : 0;
						want[r * N + i] = y + plus;
						/* in float64 the mean itself is rounded: relative to what was added up */
						size[r * N + i] = fabs(y) + fabs(plus) +
						                  (policies[pi].storage == VN_F64 ? (fabs(mean) + 1) / sqrt(var + row[k].eps)
						                                                  : 0);
					}
				}
				double *y = eval(&n, &a, (int64_t)row[k].heads * N, N);
				compare(y, want, size, R * N, slack(policies[pi], policies[pi].storage == VN_F64 ? 40 : 1),
				        "layer_norm");
				free(x), free(g), free(b), free(want), free(graw), free(braw), free(in), free(y), free(size);
			}
}

static void a_row_of_equal_numbers_norms_to_the_bias(void)
{
	double x[8], g[8], b[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	void  *graw, *braw;

	for (int i = 0; i < 8; i++)
		x[i] = 0.1, g[i] = 3;
	void           *in = widened(x, 8, F32);
	const vn_tensor gt = stored(g, VN_F32, 1, 8, 0, 0, &graw), bt = stored(b, VN_F32, 1, 8, 0, 0, &braw);
	const vn_node   n = { .op = VN_OP_LAYER_NORM, .c.norm.eps = 1e-5 };
	const vn_args   a = { .policy = F32, .threads = 1, .tokens = 1, .in = { in }, .w = { &gt, &bt } };
	double         *y = eval(&n, &a, 8, 8);

	for (int i = 0; i < 8; i++)
		CU_ASSERT(fabs(y[i] - b[i]) < 1e-5);
	free(graw), free(braw), free(in), free(y);
}

static void positions_are_the_rows_behind_the_cache(void)
{
	for (int pi = 0; pi < N_POLICIES; pi++)
		for (int d = 0; d < VN_N_ENGINE_DTYPES; d++)
			for (int past = 0; past <= 4; past += 2) {
				double         *w = draws(9 * 7);
				void           *raw;
				const vn_tensor t = stored(w, (vn_dtype)d, 2, 9, 7, (size_t)(d % 2), &raw);
				const vn_node   n = { .op = VN_OP_POSITIONS };
				const vn_args   a = { .policy = policies[pi], .threads = 2, .past = past, .tokens = 5, .w = { &t } };
				double         *y = eval(&n, &a, 7, 7);
				vn_to_f64(w, t.data, t.dtype, 9 * 7); /* bf16 has rounded them */
				CU_ASSERT(same(y, w + past * 7, 5 * 7));
				free(raw), free(y), free(w);
			}
}

static void a_slice_takes_the_same_columns_of_every_block(void)
{
	const struct {
		int T, blocks, stride, from, width;
	} row[] = {
		{ 1, 1, 1, 0, 1 }, { 3, 1, 12, 4, 4 }, { 3, 1, 12, 8, 4 },
		{ 2, 5, 6, 3, 3 }, { 17, 4, 7, 1, 2 }, { 5, 3, 4, 0, 4 },
	};

	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			const int T = row[k].T, B = row[k].blocks, S = row[k].stride, W = row[k].width;
			double   *x = draws(T * B * S), *want = malloc((size_t)(T * B * W) * 8), *to = want;
			void     *in = widened(x, T * B * S, policies[pi]);
			for (int b = 0; b < T * B; b++)
				for (int i = 0; i < W; i++)
					*to++ = x[b * S + row[k].from + i];
			const vn_node n = { .op = VN_OP_SLICE, .c.slice = { S, row[k].from, W } };
			const vn_args a = { .policy = policies[pi], .threads = 2, .tokens = T, .in = { in } };
			double       *y = eval(&n, &a, (int64_t)B * W, W);
			CU_ASSERT(same(y, want, (int64_t)T * B * W));
			free(x), free(want), free(in), free(y);
		}
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Formulas of models.md 1.3 in float64, nine digits; and far out, where they could overflow. */
static const double at[] = { -3, -1, -0.5, 0.5, 1, 3, 0, 90, -90, 60000, -60000 };
static const struct {
	vn_act act;
	double y[11];
} values[] = {
	{ VN_GELU_TANH,
	  { -0.003637392, -0.158808009, -0.154285990, 0.345714010, 0.841191991, 2.996362608, 0, 90, 0, 60000, 0 } },
	{ VN_GELU,
	  { -0.004049694, -0.158655254, -0.154268769, 0.345731231, 0.841344746, 2.995950306, 0, 90, 0, 60000, 0 } },
	{ VN_SIGMOID, { 0.047425873, 0.268941421, 0.377540669, 0.622459331, 0.731058579, 0.952574127, 0.5, 1, 0, 1, 0 } },
};

static void activations_have_the_values_of_the_specification(void)
{
	for (size_t k = 0; k < sizeof values / sizeof *values; k++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			const vn_node n = { .op = VN_OP_ACT, .c.act.act = values[k].act };
			void         *in = widened(at, 11, policies[pi]);
			const vn_args a = { .policy = policies[pi], .threads = 2, .tokens = 11, .in = { in } };
			double       *y = eval(&n, &a, 1, 1);
			for (int i = 0; i < 11; i++)
				CU_ASSERT(fabs(y[i] - values[k].y[i]) <= 1e-9 + slack(policies[pi], 1) * fabs(values[k].y[i]));
			free(in), free(y);
		}
}

/* As HuggingFace writes them, which cancels where x is negative: 1e-15 absolutely. */
static void activations_are_their_formulas_and_gate_as_they_act(void)
{
	enum { N = 20001 };
	double *x = malloc(N * 8), *up = draws(N);
	void   *in, *by;

	for (int i = 0; i < N; i++)
		x[i] = (i - 10000) / 1000.0;
	for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
		const vn_act  act = values[k].act;
		const vn_args a = {
			.policy = F64, .threads = 2, .tokens = N, .in = { in = widened(x, N, F64), by = widened(up, N, F64) }
		};
		double *y = eval(&(vn_node) { .op = VN_OP_ACT, .c.act.act = act }, &a, 1, 1);
		double *z = eval(&(vn_node) { .op = VN_OP_GATED, .c.act.act = act }, &a, 1, 1);
		double  worst = 0, gated = 0;
		for (int i = 0; i < N; i++) {
			const double u = x[i];
			const double want = act == VN_SIGMOID ? 1 / (1 + exp(-u))
			                    : act == VN_GELU
			                        ? 0.5 * u * (1 + erf(u / sqrt(2)))
			                        : 0.5 * u *
			                              (1 + tanh(sqrt(2 / 3.14159265358979323846) * (u + 0.044715 * u * u * u)));
			worst = fmax(worst, fabs(y[i] - want) / fmax(1, fabs(want)));
			gated = fmax(gated, fabs(z[i] - y[i] * up[i]));
		}
		CU_ASSERT(worst < 1e-15);
		CU_ASSERT(gated < 1e-14);
		free(y), free(z), free(in), free(by);
	}
	free(x), free(up);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Sizes around tiles, panels and the blocks that are transposed. */
static void a_matrix_stored_the_other_way_gives_the_same_bits(void)
{
	const struct {
		int T, M, N;
	} row[] = {
		{ 1, 1, 1 },    { 2, 3, 5 },      { 1, 65, 33 },     { 17, 16, 16 },
		{ 65, 64, 64 }, { 70, 300, 257 }, { 520, 530, 131 }, { 66, 129, 1030 },
	};
	const vn_policy all[] = { { VN_F32, VN_F32, 0, { 0 } },
		                      { VN_F64, VN_F64, 0, { 0 } },
		                      { VN_F16, VN_F32, 0, { 0 } },
		                      { VN_F16, VN_F16, 0, { 0 } } };

	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		for (int pi = 0; pi < 4; pi++)
			for (int d = 0; d < VN_N_ENGINE_DTYPES; d++) {
				const int T = row[k].T, M = row[k].M, N = row[k].N;
				double   *x = draws((int64_t)T * N), *w = draws((int64_t)M * N), *o = malloc((size_t)(M * N) * 8),
					   *b = draws(M);
				void *raw[3], *in = widened(x, (int64_t)T * N, all[pi]);
				for (int m = 0; m < M; m++)
					for (int n = 0; n < N; n++)
						o[n * M + m] = w[m * N + n];
				const vn_tensor straight = stored(w, (vn_dtype)d, 2, M, N, 0, &raw[0]);
				const vn_tensor over = stored(o, (vn_dtype)d, 2, N, M, (size_t)(d % 2), &raw[1]);
				const vn_tensor bias = stored(b, VN_F16, 1, M, 0, 0, &raw[2]);
				const vn_args   p = {
					  .policy = all[pi], .threads = 2, .tokens = T, .in = { in }, .w = { &straight, &bias }
				};
				const vn_args q = { .policy = all[pi], .threads = 1, .tokens = T, .in = { in }, .w = { &over, &bias } };
				double       *y = eval(&(vn_node) { .op = VN_OP_LINEAR }, &p, M, M);
				double       *z = eval(&(vn_node) { .op = VN_OP_LINEAR, .c.linear.transposed = 1 }, &q, M, M);
				CU_ASSERT(same(y, z, (int64_t)T * M));
				for (int i = 0; i < 3; i++)
					free(raw[i]);
				free(x), free(w), free(o), free(b), free(in), free(y), free(z);
			}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(layer_norm_is_its_formula_with_and_without_bias),
		TEST(a_row_of_equal_numbers_norms_to_the_bias),
		TEST(positions_are_the_rows_behind_the_cache),
		TEST(a_slice_takes_the_same_columns_of_every_block),
		TEST(activations_have_the_values_of_the_specification),
		TEST(activations_are_their_formulas_and_gate_as_they_act),
		TEST(a_matrix_stored_the_other_way_gives_the_same_bits),
		CU_TEST_INFO_NULL,
	};
	vn_error err = { "" };

	if (vn_blas_prepare(2, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return run_suite("ops_gpt2", tests);
}
