/* test_gpu_fuse.c: fused nodes (libgpu/fuse.h) have the bits of nodes one by one, and a layer needs
 * few barriers. */
#include "tests/support/test_gpu_trained.h"

#include "libgpu/engine.h"

/* ---- bits ------------------------------------------------------------------------------------ */

enum { PROMPT = 17, CALLS = 4 };
static int64_t prompt_ = PROMPT;     /* tokens of the first call */
static bool    built_[VN_N_KERNELS]; /* what some run needed */

/* Every call in turn, with all values tapped or only the last. */
static void run(const vn_plan *p, const vn_tensor *weight, vn_gpu_options o, bool fused, bool all, keep *k)
{
	const int64_t call[CALLS] = { prompt_, 1, 3, 1 };
	const model   m = { (vn_plan *)(uintptr_t)p, (vn_tensor *)(uintptr_t)weight };
	vn_gpu       *g = engine(&m, o);
	int32_t      *ids = some_ids(prompt_ + 5, p->vocab), *at = ids;
	bool         *want = want_all(p, all);

	for (int v = 0; v < p->n_values - 1 && !all; v++)
		want[v] = false;
	keep_start(k, p);
	const vn_taps taps = { .want = want, .sink = keep_sink(k) };
	if (g) {
		g->break_fusion = !fused;
		for (int i = 0; i < CALLS; at += call[i++]) {
			keep_next(k, p);
			forward(g, at, call[i], &taps);
		}
		for (int i = 0; i < VN_N_KERNELS; i++)
			built_[i] = built_[i] || g->kernels.pipeline[i];
	}
	vn_gpu_ops.destroy(g);
	free(want);
	free(ids);
}

static void same_bits(const char *name, const vn_plan *p, const vn_tensor *weight, vn_gpu_options o)
{
	bool *all = want_all(p, true), *last = calloc((size_t)p->n_values, sizeof *last);
	keep  one, fused, quiet;

	last[p->n_values - 1] = true;
	run(p, weight, o, false, true, &one);
	run(p, weight, o, true, true, &fused);
	run(p, weight, o, true, false, &quiet);
	CU_ASSERT_EQUAL(different(&one, &fused, all), 0);
	CU_ASSERT_EQUAL(different(&one, &quiet, last), 0);
	for (int v = 0; v < p->n_values; v++)
		if (one.v[v].n != fused.v[v].n ||
		    (one.v[v].n && memcmp(one.v[v].x, fused.v[v].x, one.v[v].n * sizeof(float)) != 0)) {
			printf("\n  %s, %s: %s differs first", name, vn_policy_name(o.policy), p->value[v].name);
			break;
		}
	keep_stop(&one), keep_stop(&fused), keep_stop(&quiet);
	free(all), free(last);
}

static void every_family_has_the_bits_of_nodes_one_by_one(void)
{
	static const char *const family[] = { "qwen2", "llama", "mistral", "qwen3", "gpt2", "qwen3_5_text" };

	each_trained(family, COUNT(family), same_bits);
}

#define WIDE \
	"{\"model_type\":\"llama\",\"vocab_size\":67,\"intermediate_size\":520,\"num_hidden_layers\":1," \
	"\"num_attention_heads\":10," \
	"\"num_key_value_heads\":5,\"head_dim\":52,\"max_position_embeddings\":256,\"attention_bias\":true," \
	"\"mlp_bias\":true,"

/* Rows that are long enough for products whose parts are joined, in eights and not;
 * with zones and blocks, too. */
static void joined_products_have_them(void)
{
	static const char *const config[] = { WIDE "\"hidden_size\":520}", WIDE "\"hidden_size\":516}" };

	for (int d = 0; d < n_devices_; d++)
		for (size_t c = 0; c < COUNT(config); c++)
			for (int f32 = 0; f32 < 2; f32++) {
				model m;
				if (!is_tried(d))
					continue;
				vn_gpu_options o = on(d, f32 ? F32 : F16);
				model_start(&m, plan_of(config[c]), o.policy.storage);
				o.guard = c == 0 && f32;
				o.paged = c == 1 && f32;
				same_bits(config[c], m.plan, m.weight, o);
				model_stop(&m);
			}
}

/* Of the device's cooperative matrices; 0: it has none. */
static uint32_t side_of(int d)
{
	vn_device dev = { 0 };
	uint32_t  side = 0;

	if (vn_device_open(&dev, devices_[d].index, false, false, NULL) == VN_OK)
		side = vn_coop_side(dev.coop);
	vn_device_close(&dev);
	return side;
}

/* A gate and up in every tile that has a kernel for two; rows and columns in eights and not, with
 * biases and without. The last ones are for tiles of cooperative matrices. */
static void the_gate_and_up_of_many_tokens_have_them(void)
{
	enum { WITHOUT_MATRICES = 4 };
	static const struct {
		int     D, F;
		int64_t tokens;
	} shape[] = { { 72, 1032, 200 }, { 72, 1031, 70 },  { 70, 1030, 50 }, { 72, 8968, 200 },
		          { 72, 3656, 200 }, { 72, 4808, 200 }, { 72, 1448, 200 } }; /* 4X4 where matrices are of 8x8x8 */
	char config[512];

	for (int d = 0; d < n_devices_; d++) {
		memset(built_, 0, sizeof built_);
		const uint32_t side = side_of(d);
		const size_t   n = side == 8 ? COUNT(shape) : side ? COUNT(shape) - 1 : WITHOUT_MATRICES;
		bool           coop = false;
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < COUNT(policies); k++) {
				model m;
				if ((policies[k]->sums == VN_F16 && (shape[i].F > 2000 || !sums_in_half(d))) || !is_tried(d))
					continue;
				snprintf(config, sizeof config,
				         "{\"model_type\":\"llama\",\"vocab_size\":67,\"hidden_size\":%d,\"intermediate_size\":%d,"
				         "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":8,"
				         "\"max_position_embeddings\":256,\"mlp_bias\":%s}",
				         shape[i].D, shape[i].F, i % 2 ? "true" : "false");
				model_start(&m, plan_of(config), policies[k]->storage);
				prompt_ = shape[i].tokens;
				same_bits(config, m.plan, m.weight, on(d, *policies[k]));
				prompt_ = PROMPT;
				model_stop(&m);
			}
		for (int k = VN_K_COOP_8X8; k <= VN_K_COOP_1X2; k++)
			coop = coop || built_[k];
		CU_ASSERT(built_[VN_K_LINEAR_64X64_GATED] && built_[VN_K_LINEAR_64X128_GATED]);
		for (int k = VN_K_COOP_4X4_GATED; k <= VN_K_COOP_2X2_GATED; k++)
			CU_ASSERT_EQUAL(built_[k], coop);
	}
}

/* Sums of half numbers that are no numbers, and those that a half cannot hold. */
static void nan_and_infinity_pass_through(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(policies); i++) {
			model m;
			if (policies[i]->sums == VN_F16 && !sums_in_half(d))
				continue;
			model_start(&m, plan_of(WIDE "\"hidden_size\":520}"), policies[i]->storage);
			float *embed = (void *)(uintptr_t)m.weight[0].data;
			for (int64_t n = 0; n < 520; n++) {
				embed[3 * 520 + n] *= 6e4f; /* a residual near the largest half */
				embed[4 * 520 + n] *= 1e-7f;
			}
			embed[5 * 520 + 7] = NAN;
			embed[6 * 520 + 9] = INFINITY;
			vn_round_f32(embed, policies[i]->storage, (size_t)67 * 520);
			same_bits("odd numbers", m.plan, m.weight, on(d, *policies[i]));
			model_stop(&m);
		}
}

/* ---- barriers -------------------------------------------------------------------------------- */

static int barriers(int d, shape_of s, int64_t past, int64_t tokens, bool fused)
{
	model    m;
	int      n = 0;
	int32_t *ids = some_ids(past + tokens, s.V);

	model_start(&m, block_plan(s), VN_F16);
	vn_gpu *g = engine(&m, on(d, F16));
	if (g) {
		g->break_fusion = !fused;
		if (past)
			forward(g, ids, past, NULL);
		forward(g, ids + past, tokens, NULL);
		n = g->encoder.barriers;
	}
	vn_gpu_ops.destroy(g);
	model_stop(&m);
	free(ids);
	return n;
}

/* The barriers that three layers need more than two, of Qwen2 and of Qwen3, which norms its queries
 * and keys. */
static void a_layer_stands_on_few_barriers(void)
{
	static const struct {
		int64_t past, tokens;
		int     q_norm, one_by_one, fused, F;
	} of[] = {
		/* norm; q, k, v; rope; attention; product; sum; norm; gate, up; activation; product; sum */
		{ 0, 40, 0, 11, 9, 175 }, /* sum and norm are one */
		{ 5, 1, 0, 11, 8, 175 },  /* gate, up and activation, too */
		{ 0, 40, 1, 12, 9, 175 }, /* norms and rope, too */
		{ 5, 1, 1, 12, 8, 175 },
		{ 0, 40, 0, 12, 8, 1001 }, /* wide enough for large tiles, and for parts that are joined */
	};
	shape_of s = small;

	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(of); i++)
			for (int fused = 0; fused < 2; fused++) {
				s.layers = 2;
				s.q_norm = of[i].q_norm;
				s.F = of[i].F;
				const int two = barriers(d, s, of[i].past, of[i].tokens, fused);
				s.layers = 3;
				const int more = barriers(d, s, of[i].past, of[i].tokens, fused) - two;
				CU_ASSERT_EQUAL(more, fused ? of[i].fused : of[i].one_by_one);
				if (more != (fused ? of[i].fused : of[i].one_by_one))
					printf("\n  %lld tokens, %s: %d ", (long long)of[i].tokens, fused ? "fused" : "one by one", more);
			}
}

int main(void)
{
	CU_TestInfo tests[] = { { "a layer stands on few barriers", a_layer_stands_on_few_barriers },
		                    { "joined products have the bits of nodes one by one", joined_products_have_them },
		                    { "the gate and up of many tokens have them", the_gate_and_up_of_many_tokens_have_them },
		                    { "NaN and infinity pass through", nan_and_infinity_pass_through },
		                    { "every family has the bits of nodes one by one",
		                      every_family_has_the_bits_of_nodes_one_by_one },
		                    CU_TEST_INFO_NULL };

	return run_gpu_suite("gpu fuse", tests);
}
