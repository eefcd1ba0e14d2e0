/* test_experts.c: the operations of experts in three policies, against plain loops in double. */
#include "libref/base/rounding.h"
#include "libref/ops/blas.h"
#include "tests/support/suite.h"
#include "tests/support/test_ops_help.h"

#include <stdio.h>

static void check(const double *y, const double *want, int64_t n, double most)
{
	for (int64_t i = 0; i < n; i++) {
		CU_ASSERT(fabs(y[i] - want[i]) <= most);
		if (!(fabs(y[i] - want[i]) <= most))
			fprintf(stderr, "%lld: wanted %g, have %g\n", (long long)i, want[i], y[i]);
	}
}

static void top_k_has_the_largest_first_and_of_equal_ones_the_first(void)
{
	const double x[] = { 1, 3, 2, 3, -1, /**/ 0, 0, 0, 0, 0, /**/ 5, 4, (double)NAN, -(double)INFINITY, 4 };
	const double want[] = { 1, 3, 2, 0, 1, 2, 2, 0, 1 }, next[] = { 3, 2, 0, 1, 2, 3, 0, 1, 4 };

	for (int pi = 0; pi < N_POLICIES; pi++)
		for (int skip = 0; skip < 2; skip++) {
			void         *in = widened(x, 15, policies[pi]);
			const vn_node n = { .op = VN_OP_TOP_K, .c.top_k = { .columns = 5, .k = 3 }, .x.top_k.skip = skip };
			const vn_args a = { .policy = policies[pi], .threads = 2, .tokens = 3, .in = { in }, .wide = true };
			double       *y = eval(&n, &a, 3, 3);
			check(y, skip ? next : want, 9, 0);
			free(in), free(y);
		}
}

static void weights_are_shares_of_all_or_of_the_chosen(void)
{
	const double x[] = { 0, log(2), log(4), log(1) }, ids[] = { 2, 1 }, e2 = exp(0.5), e1 = exp(0.25);
	const struct {
		int    normalised, form;
		double want[2];
	} row[] = {
		{ 0, VN_ROUTE_USUAL, { 4 / 8.0, 2 / 8.0 } },
		{ 1, VN_ROUTE_USUAL, { 4 / 6.0, 2 / 6.0 } },
		{ 0, VN_ROUTE_CHOSEN, { 4 / 6.0, 2 / 6.0 } },
		{ 0, VN_ROUTE_TWICE, { e2 / (e2 + e1), e1 / (e2 + e1) } },
		{ 0, VN_ROUTE_SIGMOID, { 0.8, 2 / 3.0 } },
		{ 0, VN_ROUTE_FEWER, { 4 / 8.0, 0 } },
		{ 1, VN_ROUTE_FEWER, { 1, 0 } },
		{ 1, VN_ROUTE_SIGMOID, { 0.8 / (0.8 + 2 / 3.0), 2 / 3.0 / (0.8 + 2 / 3.0) } },
	};

	for (size_t k = 0; k < sizeof row / sizeof *row; k++)
		for (int pi = 0; pi < 2; pi++) {
			void         *logits = widened(x, 4, policies[pi]), *chosen = widened(ids, 2, policies[pi]);
			const vn_node n = { .op = VN_OP_ROUTE,
				                .c.route = { .columns = 4, .normalised = row[k].normalised },
				                .x.route.form = row[k].form };
			const vn_args a = { .policy = policies[pi], .threads = 1, .tokens = 1, .in = { logits, chosen } };
			double       *y = eval(&n, &a, 2, 2);
			check(y, row[k].want, 2, pi == 1 ? 1e-15 : 1e-7);
			free(logits), free(chosen), free(y);
		}
}

/* Of all experts: gate, up (F,D), down (D,F), each in a tensor of its own. */
enum { E = 5, T = 9, K = 3, D = 7, F = 11 };

static double silu(double u)
{
	return u / (1 + exp(-u));
}

/* The rows of gate and up, mixed as a form says. */
static void gate_and_up(const double *gate, const double *up, const double *x, int form, double z[2 * F])
{
	double own[2 * F];

	for (int f = 0; f < 2 * F; f++) {
		const double *w = f < F ? gate + f * D : up + (f - F) * D;
		own[f] = 0;
		for (int d = 0; d < D; d++)
			own[f] += w[d] * x[d];
	}
	for (int f = 0; f < F; f++) {
		z[f] = form == VN_EXPERTS_BY_ROWS ? own[2 * f] : own[f];
		z[F + f] = form == VN_EXPERTS_BY_ROWS ? own[2 * f + 1] : own[F + f];
	}
	for (int i = 0; form == VN_EXPERTS_IN_HALVES && i < 2 * F; i++)
		z[i] = i % 2 ? own[F + i / 2] : own[i / 2];
}

static void every_token_goes_through_its_experts_and_no_others(void)
{
	double   *w = draws(3 * E * F * D), *x = draws(T * D), ids[T * K], want[T * K * D];
	vn_tensor t[3 * E];
	void     *raw[3 * E];

	for (int i = 0; i < T * K; i++)
		ids[i] = i < 9 ? 1 : (i * 7 + i / K) % E; /* of one, more than its share */
	ids[4] = E;                                   /* no expert's */
	ids[8] = -1;
	for (int i = 0; i < 3 * E; i++)
		t[i] = stored(w + i * F * D, VN_F16, 2, i < 2 * E ? F : D, i < 2 * E ? D : F, (size_t)i % 2, &raw[i]);
	for (int pi = 0; pi < N_POLICIES; pi++)
		for (int form = 0; form < VN_N_EXPERT_FORMS; form++)
			for (int k = 0; k < 15; k++) {
				const int     moved = k / 5 - 1, capacity = k % 5 - 1;
				void         *rows = widened(x, T * D, policies[pi]), *chosen = widened(ids, T * K, policies[pi]);
				const vn_node n = { .op = VN_OP_EXPERTS,
					                .c.experts = { .experts = E, .act = VN_SILU },
					                .x.experts = { .form = form, .moved = moved, .capacity = capacity } };
				const int     takes = capacity < 0 ? (T * K + E - 1) / E : capacity ? capacity : T * K;
				int           taken[E] = { 0 };
				const vn_args a = { .policy = policies[pi],
					                .threads = 2,
					                .tokens = T,
					                .in = { rows, chosen },
					                .w = { t, t + E, t + 2 * E } };
				for (int i = 0; i < T * K; i++) {
					const bool    is = ids[i] >= 0 && ids[i] < E && taken[(int)ids[i]]++ < takes;
					const int     e = is ? ((int)ids[i] + moved + E) % E : 0;
					const double *gate = w + e * F * D, *up = gate + E * F * D, *down = up + E * F * D;
					double        z[2 * F];
					gate_and_up(gate, up, x + i / K * D, form, z);
					for (int d = 0; d < D; d++) {
						want[i * D + d] = 0;
						for (int f = 0; is && f < F; f++)
							want[i * D + d] += down[d * F + f] * silu(z[f]) * z[F + f];
					}
				}
				double *y = eval(&n, &a, K * D, D);
				check(y, want, T * K * D, 20 * slack(policies[pi], 4));
				free(rows), free(chosen), free(y);
			}
	for (int i = 0; i < 3 * E; i++)
		free(raw[i]);
	free(w), free(x);
}

/* Calls of 2, 1 and 3 tokens after 4 others, joined: both experts add 1 and take, of each call, one
 * token, or their share (the first token of two, two of three). */
static void a_capacity_is_of_each_of_the_calls_that_were_joined(void)
{
	enum { ROWS = 6 };
	const double    one = 1, x[ROWS] = { 0 }, ids[ROWS] = { 0, 0, 0, 0, 0, 0 };
	const double    want[][ROWS] = { { 1, 0, 1, 1, 0, 0 }, { 1, 0, 1, 1, 1, 0 } };
	const int64_t   begins[ROWS] = { -1, -1, 6, 7, 7, 7 };
	void           *raw[2];
	const vn_tensor t = stored(&one, VN_F32, 2, 1, 1, 0, &raw[0]), b = stored(&one, VN_F32, 1, 1, 0, 0, &raw[1]);
	const vn_tensor two[] = { t, t }, bias[] = { b, b };

	for (int k = 0; k < 2; k++)
		for (int pi = 0; pi < 2; pi++) {
			void         *rows = widened(x, ROWS, policies[pi]), *chosen = widened(ids, ROWS, policies[pi]);
			const vn_node n = { .op = VN_OP_EXPERTS,
				                .c.experts = { .experts = 2, .act = VN_SILU },
				                .x.experts.capacity = k ? -1 : 1 };
			const vn_args a = { .policy = policies[pi],
				                .threads = 1,
				                .past = 4,
				                .tokens = ROWS,
				                .begins = begins,
				                .in = { rows, chosen },
				                .w = { two, two, two, NULL, NULL, bias } };
			double       *y = eval(&n, &a, 1, 1);
			check(y, want[k], ROWS, 0);
			free(rows), free(chosen), free(y);
		}
	free(raw[0]), free(raw[1]);
}

/* One expert of D 1, F 2: gate 9 x + 1 and x, up -20 x and x + 2, down (1, 0.5) and bias 3. */
static void gate_and_up_have_biases_a_limit_and_a_shift(void)
{
	const double    gate[] = { 9, 1 }, up[] = { -20, 1 }, down[] = { 1, 0.5 }, biases[] = { 1, 0, 0, 2, 3 };
	const double    x = 1, id = 0, most = 7, one = 1;
	const double    want = most / (1 + exp(-1.702 * most)) * (-most + 1) + 0.5 * one / (1 + exp(-1.702)) * (3 + 1) + 3;
	void           *raw[6];
	const vn_tensor t[] = {
		stored(gate, VN_F32, 2, 2, 1, 0, &raw[0]),       stored(up, VN_F32, 2, 2, 1, 0, &raw[1]),
		stored(down, VN_F32, 2, 1, 2, 0, &raw[2]),       stored(biases, VN_F32, 1, 2, 0, 0, &raw[3]),
		stored(biases + 2, VN_F32, 1, 2, 0, 0, &raw[4]), stored(biases + 4, VN_F32, 1, 1, 0, 0, &raw[5])
	};
	const vn_node n = { .op = VN_OP_EXPERTS,
		                .c.experts = { .experts = 1, .act = VN_QUICK_GELU, .limit = most, .shift = 1 } };

	for (int pi = 0; pi < 2; pi++) {
		void         *rows = widened(&x, 1, policies[pi]), *ids = widened(&id, 1, policies[pi]);
		const vn_args a = { .policy = policies[pi],
			                .threads = 1,
			                .tokens = 1,
			                .in = { rows, ids },
			                .w = { &t[0], &t[1], &t[2], &t[3], &t[4], &t[5] } };
		double       *y = eval(&n, &a, 1, 1);
		check(y, &want, 1, pi == 1 ? 1e-14 : 1e-5);
		free(rows), free(ids), free(y);
	}
	for (int i = 0; i < 6; i++)
		free(raw[i]);
}

/* All scores are 0 and all values 1: token t sees t + 1 keys, and a sink of log(3) counts as three
 * more. */
static void a_sink_takes_its_share_and_has_no_value(void)
{
	enum { H = 2, KEYS = 3 };
	const double    q[KEYS * H] = { 0 }, k[KEYS] = { 0 }, v[KEYS] = { 1, 1, 1 }, sinks[] = { log(3), -800 };
	void           *raw;
	const vn_tensor t = stored(sinks, VN_F64, 1, H, 0, 0, &raw);
	vn_node         n = { .op = VN_OP_ATTENTION,
		                  .c.attention = { .scale = 1, .heads = H, .kv_heads = 1, .head_dim = 1, .causal = 1 } };
	const int       forms[] = { VN_ATTN_USUAL, VN_ATTN_NO_MAX, VN_ATTN_FROM_ZERO_F16, VN_ATTN_PROBS_F16 };

	for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
		const vn_args a = { .policy = F64,
			                .threads = 1,
			                .tokens = KEYS,
			                .in = { q },
			                .state = { (void *)(size_t)k, (void *)(size_t)v },
			                .w = { &t } };
		n.x.attention.form = forms[f];
		double *y = eval(&n, &a, H, 1);
		for (int i = 0; i < KEYS; i++) {
			CU_ASSERT(fabs(y[H * i] - (i + 1) / (i + 4.0)) < (f ? 3e-4 : 1e-15));
			CU_ASSERT(fabs(y[H * i + 1] - 1) < 1e-3);
		}
		free(y);
	}
	free(raw);
}

static void rows_are_added_by_weight(void)
{
	double *x = draws(T * K * D), *w = draws(T * K), want[T * D] = { 0 };

	for (int i = 0; i < T * K; i++)
		for (int d = 0; d < D; d++)
			want[i / K * D + d] += w[i] * x[i * D + d];
	for (int pi = 0; pi < N_POLICIES; pi++) {
		void         *rows = widened(x, T * K * D, policies[pi]), *weights = widened(w, T * K, policies[pi]);
		const vn_node n = { .op = VN_OP_COMBINE, .c.combine.slots = K };
		const vn_args a = { .policy = policies[pi], .threads = 2, .tokens = T, .in = { rows, weights } };
		double       *y = eval(&n, &a, D, D);
		check(y, want, T * D, 3 * slack(policies[pi], 4));
		free(rows), free(weights), free(y);
	}
	free(x), free(w);
}

/* 1 + 2^-11 is a tie in float16, and 2049 has no place there. */
static void products_and_sums_are_rounded_where_an_experiment_says(void)
{
	const double x[] = { 1 + 0x1p-10, 2048 }, w[] = { 0.5 + 0x1p-11, 1 };
	const struct {
		int    rounding, sums;
		double want;
	} row[] = { { 0, 0, 2048 + (1 + 0x1p-10) * (0.5 + 0x1p-11) },
		        { VN_FORMAT_F16, 0, 2048 + 0.5 + 0x1p-10 },
		        { VN_FORMAT_F16, 1, 2048 } };

	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		void         *rows = widened(x, 2, F64), *weights = widened(w, 2, F64);
		const vn_node n = { .op = VN_OP_COMBINE, .c.combine.slots = 2, .x.combine = { row[k].rounding, row[k].sums } };
		const vn_args a = { .policy = F64, .threads = 1, .tokens = 1, .in = { rows, weights } };
		double       *y = eval(&n, &a, 1, 1);
		check(y, &row[k].want, 1, 0);
		free(rows), free(weights), free(y);
	}
}

/* OLMoE: all heads of a token together. */
static void a_norm_is_as_wide_as_its_weight(void)
{
	double         *x = draws(2 * 6), *g = draws(6), want[12];
	void           *raw, *in = widened(x, 12, F64);
	const vn_tensor t = stored(g, VN_F16, 1, 6, 0, 0, &raw);
	const vn_node   n = { .op = VN_OP_RMS_NORM, .c.norm.eps = 1e-6 };
	const vn_args   a = { .policy = F64, .threads = 1, .tokens = 2, .in = { in }, .w = { &t } };

	for (int r = 0; r < 2; r++) {
		double ss = 0;
		for (int i = 0; i < 6; i++)
			ss += x[6 * r + i] * x[6 * r + i];
		for (int i = 0; i < 6; i++)
			want[6 * r + i] = g[i] * x[6 * r + i] / sqrt(ss / 6 + 1e-6);
	}
	double *y = eval(&n, &a, 6, 3); /* (T,2,3) */
	check(y, want, 12, 1e-15);
	free(raw), free(in), free(y), free(x), free(g);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_capacity_is_of_each_of_the_calls_that_were_joined),
		TEST(gate_and_up_have_biases_a_limit_and_a_shift),
		TEST(a_sink_takes_its_share_and_has_no_value),
		TEST(top_k_has_the_largest_first_and_of_equal_ones_the_first),
		TEST(weights_are_shares_of_all_or_of_the_chosen),
		TEST(every_token_goes_through_its_experts_and_no_others),
		TEST(rows_are_added_by_weight),
		TEST(products_and_sums_are_rounded_where_an_experiment_says),
		TEST(a_norm_is_as_wide_as_its_weight),
		CU_TEST_INFO_NULL,
	};
	vn_error e;

	if (vn_blas_prepare(2, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return run_suite("experts", tests);
}
