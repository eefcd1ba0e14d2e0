/* test_intermediate.c: intermediate results of an operation, rounded as other implementations do
 * (libref/ops/intermediate.h).
 *
 * Truth is torch 2.13's, bit for bit: transformers 5.17's NewGELUActivation, silu(x) * up,
 * x / (1 + exp(-x)) * up, LlamaRMSNorm, Qwen3_5RMSNormGated, l2norm, apply_rotary_pos_emb and
 * conv1d then silu, on tensors of 16 bits. */
#include "tests/support/suite.h"
#include "tests/support/test_ops_help.h"
#include "libref/ops/intermediate.h"

#include <stddef.h>
#include <string.h>

enum { N = 8 };

static const double x[N] = { -0x1.0cp1, -0x1.b8p0, -0x1.1p-1, -0x1.7cp1, -0x1.0cp1, 0x1.18p0, -0x1.88p1, -0x1.8p0 };
static const double up[N] = { -0x1.f8p0, -0x1.cp0, -0x1.38p1, -0x1.bp1, 0x1.18p1, -0x1.dp0, 0x1.58p0, -0x1.6p-1 };
static const double weight[N] = { 0x1.6p-3, 0x1.5p0, 0x1.04p0, -0x1.ep-3, 0x1p0, -0x1.58p0, -0x1.38p0, -0x1.5cp0 };

static const struct truth {
	vn_policy          policy;
	vn_rounding_format rounding;
	double             gelu_new[N], gated[N], formula[N], rms_norm[N], gated_norm[N], l2_norm[N], rope[N], conv[N];
} truth[] = {
	{
		.policy = { VN_F16, VN_F32, 0, { 0 } },
		.rounding = VN_FORMAT_F16,
		.gelu_new = { -0x1.36p-5, -0x1.2e8p-4, -0x1.43cp-3, -0x1.1dp-8, -0x1.36p-5, 0x1.e34p-1, -0x1.88p-9,
	                  -0x1.9c8p-4 },
		.gated = { 0x1.cf4p-2, 0x1.d4p-2, 0x1.eacp-2, 0x1.f54p-2, -0x1.014p-1, -0x1.7c4p0, -0x1.788p-3, 0x1.814p-3 },
		.formula = { 0x1.cfp-2, 0x1.d4p-2, 0x1.eacp-2, 0x1.f54p-2, -0x1.014p-1, -0x1.7c4p0, -0x1.788p-3, 0x1.814p-3 },
		.rms_norm = { -0x1.678p-3, -0x1.198p0, -0x1.0d8p-2, 0x1.5b4p-2, -0x1.058p0, -0x1.6ecp-1, 0x1.d1cp0, 0x1.fdp-1 },
		.gated_norm = { 0x1.5acp-5, 0x1.23cp-2, 0x1.a64p-5, -0x1.364p-5, -0x1.014p1, 0x1.754p-3, 0x1.f04p0,
	                    -0x1.d44p-3 },
		.l2_norm = { -0x1.71cp-2, -0x1.2f8p-2, -0x1.774p-4, -0x1.064p-1, -0x1.71cp-2, 0x1.824p-3, -0x1.0e8p-1,
	                 -0x1.09p-2 },
		.rope = { 0x1.2f4p1, -0x1.f74p0, -0x1.c18p-2, -0x1.7b8p1, 0x1.c78p0, 0x1.13p-1, -0x1.89cp1, -0x1.824p0 },
		.conv = { -0x1.dp-3, 0x1.0ccp1, -0x1.e5p-4, 0x1.074p1, -0x1.038p-3, -0x1.1f4p-4, -0x1.fbp-7, 0x1.dc8p1 },
	},
	{
		.policy = { VN_BF16, VN_F32, 0, { 0 } },
		.rounding = VN_FORMAT_BF16,
		.gelu_new = { -0x1.2ep-5, -0x1.2ep-4, -0x1.44p-3, -0x1.7cp-8, -0x1.2ep-5, 0x1.e4p-1, -0x0p0, -0x1.a4p-4 },
		.gated = { 0x1.cep-2, 0x1.d4p-2, 0x1.eap-2, 0x1.f6p-2, -0x1.02p-1, -0x1.7cp0, -0x1.78p-3, 0x1.8p-3 },
		.formula = { 0x1.ccp-2, 0x1.d4p-2, 0x1.eap-2, 0x1.f4p-2, -0x1p-1, -0x1.7cp0, -0x1.78p-3, 0x1.8p-3 },
		.rms_norm = { -0x1.68p-3, -0x1.1ap0, -0x1.0ep-2, 0x1.5ap-2, -0x1.06p0, -0x1.7p-1, 0x1.d2p0, 0x1.fcp-1 },
		.gated_norm = { 0x1.5cp-5, 0x1.24p-2, 0x1.a8p-5, -0x1.36p-5, -0x1.02p1, 0x1.76p-3, 0x1.fp0, -0x1.d4p-3 },
		.l2_norm = { -0x1.72p-2, -0x1.3p-2, -0x1.78p-4, -0x1.06p-1, -0x1.72p-2, 0x1.84p-3, -0x1.1p-1, -0x1.0ap-2 },
		.rope = { 0x1.2ep1, -0x1.f8p0, -0x1.c2p-2, -0x1.7cp1, 0x1.c4p0, 0x1.14p-1, -0x1.8ap1, -0x1.82p0 },
		.conv = { -0x1.dp-3, 0x1.0ep1, -0x1.e6p-4, 0x1.06p1, -0x1.02p-3, -0x1.2p-4, -0x1p-6, 0x1.dep1 },
	},
};
enum { FORMATS = sizeof truth / sizeof *truth };

/* An operation on `tokens` tokens of N / tokens numbers each. */
typedef struct operation {
	const char   *what;
	vn_node       n;
	size_t        rounding, want; /* where the node keeps how it rounds; of struct truth */
	const double *w;
	int64_t       tokens;
	bool          wide;
} operation;

static void expect(const operation *o, const struct truth *t)
{
	const double *want = (const double *)(const void *)((const char *)t + o->want);
	vn_node       n = o->n;
	memcpy((char *)&n + o->rounding, &t->rounding, sizeof(int));
	void *raw = NULL, *in = widened(x, N, t->policy), *also = widened(up, N, t->policy),
		 *state = calloc(N, sizeof(double));
	const vn_tensor weights = o->w ? stored(o->w, VN_F32, 1, n.op == VN_OP_CAUSAL_CONV ? 6 : N, 0, 0, &raw)
	                               : (vn_tensor) { 0 };
	const vn_args   a = { .policy = t->policy,
		                  .threads = 1,
		                  .past = n.op == VN_OP_ROPE ? 3 : 0,
		                  .tokens = o->tokens,
		                  .in = { in, also },
		                  .w = { o->w ? &weights : NULL },
		                  .state = { state },
		                  .wide = o->wide };
	double         *y = eval(&n, &a, N / o->tokens, N / o->tokens);

	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(y[i], want[i]);
		if (y[i] != want[i])
			fprintf(stderr, "%s of %s: number %d is %a, not %a\n", o->what, vn_dtype_name(t->policy.storage), i, y[i],
			        want[i]);
	}
	free(raw), free(in), free(also), free(state), free(y);
}

#define ROUNDS(kind) offsetof(vn_node, x.kind.rounding)
#define WANT(field)  offsetof(struct truth, field)
#define EXPECT(...) \
	do { \
		static const operation all[] = { __VA_ARGS__ }; \
		for (size_t i = 0; i < FORMATS * sizeof all / sizeof *all; i++) \
			expect(&all[i / FORMATS], &truth[i % FORMATS]); \
	} while (0)

static void activations_round_as_torch_does_one_operation_after_the_other(void)
{
	EXPECT({ "gelu_new",
	         { .op = VN_OP_ACT, .c.act.act = VN_GELU_TANH, .x.act.formula = 1 },
	         ROUNDS(act),
	         WANT(gelu_new),
	         NULL,
	         1,
	         false },
	       { "silu times up",
	         { .op = VN_OP_GATED, .c.act = { .act = VN_SILU } },
	         ROUNDS(act),
	         WANT(gated),
	         NULL,
	         1,
	         false },
	       { "silu's formula",
	         { .op = VN_OP_GATED, .c.act.act = VN_SILU, .x.act.formula = 1 },
	         ROUNDS(act),
	         WANT(formula),
	         NULL,
	         1,
	         false });
}

/* Of -2.734375 in bfloat16, torch makes the one in a tensor of 192 numbers and the
 * other in one of 8. */
static void the_cube_of_gelu_new_rounds_its_square_in_vectors(void)
{
	CU_ASSERT_EQUAL(vn_act_rounded(-2.734375, VN_GELU_TANH, VN_FORMAT_BF16, true), -0.01068115234375);
	CU_ASSERT_EQUAL(vn_act_rounded(-2.734375, VN_GELU_TANH, VN_FORMAT_BF16, false), -0.005340576171875);
}

static void norms_round_what_is_normed_as_transformers_does(void)
{
	EXPECT(
		{ "rms_norm",
	      { .op = VN_OP_RMS_NORM, .c.norm = { .eps = 1e-5 } },
	      ROUNDS(norm),
	      WANT(rms_norm),
	      weight,
	      1,
	      false },
		{ "gated_norm",
	      { .op = VN_OP_GATED_NORM, .c.norm = { .eps = 1e-5 } },
	      ROUNDS(norm),
	      WANT(gated_norm),
	      weight,
	      1,
	      false },
		{ "l2_norm", { .op = VN_OP_L2_NORM, .c.norm = { .eps = 1e-6 } }, ROUNDS(norm), WANT(l2_norm), NULL, 1, true });
}

static void a_rotation_and_a_convolution_round_on_the_way_as_torch_does(void)
{
	EXPECT({ "rope",
	         { .op = VN_OP_ROPE, .c.rope.rope = { .theta = 1e4, .rotary_dim = N } },
	         ROUNDS(rope),
	         WANT(rope),
	         NULL,
	         1,
	         false },
	       { "causal_conv",
	         { .op = VN_OP_CAUSAL_CONV, .c.conv = { .channels = 2, .taps = 3 } },
	         ROUNDS(conv),
	         WANT(conv),
	         weight,
	         4,
	         false });
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(activations_round_as_torch_does_one_operation_after_the_other),
		TEST(the_cube_of_gelu_new_rounds_its_square_in_vectors),
		TEST(norms_round_what_is_normed_as_transformers_does),
		TEST(a_rotation_and_a_convolution_round_on_the_way_as_torch_does),
		CU_TEST_INFO_NULL,
	};

	return run_suite("intermediate", tests);
}
