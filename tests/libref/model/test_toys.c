/* test_toys.c: toy models of other families (toy_model.h): every weight made from its
 * name, and numbers of a float64 program in numpy. Qwen2's is in test_ref.c, with all that is
 * asked of a run. */
#include "libref/exec/ref.h"
#include "libref/family/family.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

#include <math.h>

enum { T = 8 };

static const int32_t ids[T] = { 3, 1, 4, 1, 5, 9, 2, 6 };

/* First and last element, and the root of the sum of squares. */
typedef struct entry {
	const char *name;
	double      first, last, l2;
} entry;

typedef struct toy {
	const char  *config;
	const entry *rows;
	double       logits[8]; /* of the last row */
	int          argmax[T];
} toy;

/* clang-format off */
static const entry gpt2_rows[] = {
	{ "embed", -0.5899048, 0.493988, 4.725539 }, { "layer0.attn_residual", -1.423195, 0.4199219, 12.22265 },
	{ "layer0.attn_norm", -1.263413, 0.7873682, 12.46131 }, { "layer0.mlp_norm", -1.306769, 0.3173718, 11.09459 },
	{ "layer0.c_attn", 0.4186499, -3.122379, 26.37524 }, { "layer0.up_proj", -1.987781, -1.455101, 26.28214 },
	{ "layer0.q_proj", 0.4186499, 1.533325, 14.97316 }, { "layer0.mlp_act", -0.04646238, -0.106188, 17.54484 },
	{ "layer0.k_proj", -1.177944, -0.2733941, 15.92266 }, { "layer0.down_proj", 1.232475, 1.319344, 22.23098 },
	{ "layer0.v_proj", -0.6797475, -3.122379, 14.76235 }, { "layer0.output", -0.1907203, 1.739266, 25.74308 },
	{ "layer0.attn_probs", 1, 0.3764104, 4.347477 }, { "layer1.output", -1.964035, -0.276425, 31.38218 },
	{ "layer0.attn_context", -0.6797475, -0.6872653, 10.62414 }, { "final_norm", -0.5229965, -0.1570624, 11.36298 },
	{ "layer0.attn_out", -0.8332904, -0.07406611, 11.33727 }, { "logits", -1.051623, -0.3033224, 16.49059 },
	{ 0 },
};
/* clang-format on */

/* clang-format off */
static const entry qwen3_rows[] = {
	{ "embed", -0.4059296, -0.01412964, 3.374886 }, { "layer0.attn_out", 0.02774097, 0.3775517, 13.01268 },
	{ "layer0.attn_norm", -1.166639, -0.04480887, 10.51699 },
	{ "layer0.attn_residual", -0.3781886, 0.3634221, 12.90262 }, { "layer0.q_proj", 0.8374141, 0.2966771, 17.68953 },
	{ "layer0.mlp_norm", -0.1878721, 0.5742285, 11.19987 }, { "layer0.k_proj", -1.854315, -1.22978, 11.03792 },
	{ "layer0.gate_proj", 0.3201794, 1.232193, 14.62854 }, { "layer0.v_proj", 0.1885716, 0.5124877, 12.53186 },
	{ "layer0.up_proj", 1.270526, -0.219758, 14.30213 }, { "layer0.q_norm", 0.6923265, 0.260249, 16.41773 },
	{ "layer0.mlp_act", 0.2356847, -0.2096419, 12.52077 }, { "layer0.k_norm", -1.421365, -1.275325, 11.82714 },
	{ "layer0.down_proj", 0.5932256, 0.03186132, 13.17942 }, { "layer0.q_rope", 0.6923265, 0.2603992, 16.41773 },
	{ "layer0.output", 0.215037, 0.3952834, 18.50815 }, { "layer0.k_rope", -1.421365, -1.275195, 11.82714 },
	{ "layer1.output", -1.485345, -0.9038152, 27.19004 }, { "layer0.attn_probs", 1, 0.1180174, 3.788413 },
	{ "final_norm", -0.5985195, -0.3837504, 12.02448 }, { "layer0.attn_context", 0.1885716, -0.637378, 12.45961 },
	{ "logits", -0.1423794, -1.498413, 20.07942 },
	{ 0 },
};
/* clang-format on */

/* clang-format off */
static const entry llama_rows[] = {
	{ "embed", -0.4059296, -0.01412964, 3.374886 }, { "layer0.attn_residual", -0.3781896, 0.09015591, 12.79994 },
	{ "layer0.attn_norm", -1.166595, -0.04480582, 10.51643 }, { "layer0.mlp_norm", -0.1878794, 0.1384782, 11.10844 },
	{ "layer0.q_proj", 0.8373827, 0.2966569, 17.6886 }, { "layer0.gate_proj", 0.3201806, 0.4422781, 14.82753 },
	{ "layer0.k_proj", -1.854245, -1.229696, 11.03734 }, { "layer0.up_proj", 1.270528, -0.6044549, 14.01311 },
	{ "layer0.v_proj", 0.1885646, 0.5124527, 12.53121 }, { "layer0.mlp_act", 0.235686, -0.1627553, 12.78106 },
	{ "layer0.q_rope", 0.8373827, 0.2966868, 17.6886 }, { "layer0.down_proj", 0.5932307, 1.289158, 13.46496 },
	{ "layer0.k_rope", -1.854245, -1.229661, 11.03734 }, { "layer0.output", 0.2150411, 1.379313, 18.86561 },
	{ "layer0.attn_probs", 1, 0.1205439, 3.820065 }, { "layer1.output", -1.485295, 0.7130315, 25.00023 },
	{ "layer0.attn_context", 0.1885646, -0.7223737, 12.01165 }, { "final_norm", -0.5985154, 0.4007232, 11.98402 },
	{ "layer0.attn_out", 0.02773993, 0.1042855, 12.83727 }, { "logits", -0.1424594, -1.551784, 20.0172 },
	{ 0 },
};
/* clang-format on */

/* clang-format off */
static const entry mistral_rows[] = {
	{ "embed", -0.4059296, -0.01412964, 3.374886 }, { "layer0.attn_residual", -1.509721, -0.1502401, 12.26581 },
	{ "layer0.attn_norm", -1.166595, -0.04480582, 10.51643 }, { "layer0.mlp_norm", -0.76961, -0.2554776, 11.25518 },
	{ "layer0.q_proj", 0.8373827, -0.3308029, 12.03367 }, { "layer0.gate_proj", 0.07626376, 1.205157, 15.98217 },
	{ "layer0.k_proj", -1.854245, 0.1757735, 6.252791 }, { "layer0.up_proj", -0.5227714, 1.51869, 14.38936 },
	{ "layer0.v_proj", 0.1885646, -0.4238933, 8.805604 }, { "layer0.mlp_act", -0.02069402, 1.408276, 10.24224 },
	{ "layer0.q_rope", 0.8373827, -0.2610615, 12.03367 }, { "layer0.down_proj", -0.05582895, 2.146409, 12.39761 },
	{ "layer0.k_rope", -1.854245, 0.04430951, 6.252791 }, { "layer0.output", -1.56555, 1.996169, 17.90143 },
	{ "layer0.attn_probs", 1, 0.05129863, 4.089929 }, { "layer1.output", 0.780566, 2.574288, 23.67236 },
	{ "layer0.attn_context", 0.1885646, 1.463027, 9.791889 }, { "final_norm", 0.2451901, 1.001923, 12.01374 },
	{ "layer0.attn_out", -1.103792, -0.1361105, 11.20463 }, { "logits", 1.506497, -0.3367138, 20.41383 },
	{ 0 },
};
/* clang-format on */

static const toy toys[] = {
	{ "{\"model_type\":\"gpt2\",\"vocab_size\":32,\"n_positions\":16,\"n_embd\":16,\"n_head\":4,\"n_layer\":2,"
	  "\"n_inner\":64,\"layer_norm_epsilon\":1e-5}",
	  gpt2_rows,
	  { 0.506460, 1.017320, 1.994837, 0.860139, -1.197451, -1.134912, -0.222879, 0.670579 },
	  { 5, 25, 6, 25, 25, 2, 3, 2 } },
	{ "{\"model_type\":\"qwen3\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,"
	  "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,\"rope_theta\":1e6,\"rms_norm_eps\":1e-6,"
	  "\"max_position_embeddings\":64}",
	  qwen3_rows,
	  { -0.105614, 1.686366, -1.583389, -1.454922, -0.699139, 0.669460, 0.436470, 0.580693 },
	  { 12, 27, 26, 27, 26, 5, 14, 11 } },
	{ "{\"model_type\":\"llama\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,"
	  "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":8,\"rms_norm_eps\":1e-5,"
	  "\"max_position_embeddings\":512,\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":5e5,\"factor\":8,"
	  "\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":64}}",
	  llama_rows,
	  { -0.818308, 2.683488, -0.322872, -1.005019, -1.196202, 0.388437, 0.390911, 1.117310 },
	  { 12, 27, 26, 27, 18, 5, 14, 1 } },
	{ "{\"model_type\":\"mistral\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,"
	  "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":4,\"rope_theta\":1e4,"
	  "\"rms_norm_eps\":1e-5,\"max_position_embeddings\":64,\"sliding_window\":3}",
	  mistral_rows,
	  { -0.812356, -2.588767, -0.349742, -1.047476, -1.913527, 0.697804, -1.780345, -3.322925 },
	  { 6, 10, 18, 12, 19, 8, 20, 26 } },
};

/* Weights by the fill rule, as a plan wants them; free each data. */
static vn_tensor *fill(const vn_plan *p)
{
	vn_tensor *w = calloc((size_t)p->n_weights, sizeof *w);

	CU_ASSERT_PTR_NOT_NULL_FATAL(w);
	for (int i = 0; i < p->n_weights; i++) {
		const int64_t n = vn_shape_count(&p->weight[i].shape);
		float        *f = malloc((size_t)n * sizeof *f);
		uint32_t      x = toy_hash(p->weight[i].name);
		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		for (int64_t k = 0; k < n; k++)
			f[k] = toy_value(p->weight[i].name, &x);
		w[i] = (vn_tensor) { VN_F32, p->weight[i].shape, f };
	}
	return w;
}

/* ---- a sink for doubles ------------------------------------------------------------------- */

typedef struct keep {
	double *x[128];
	size_t  n[128];
	int     open;
} keep;

static vn_status keep_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	keep *k = ctx;

	(void)err;
	CU_ASSERT_EQUAL(dtype, VN_F64);
	k->open = value;
	k->x[value] = malloc((size_t)vn_shape_count(shape) * sizeof(double));
	return VN_OK;
}

static vn_status keep_write(void *ctx, const void *data, size_t n, vn_error *err)
{
	keep *k = ctx;

	(void)err;
	memcpy(k->x[k->open] + k->n[k->open], data, n * sizeof(double));
	k->n[k->open] += n;
	return VN_OK;
}

static vn_status keep_end(void *ctx, vn_error *err)
{
	(void)ctx, (void)err;
	return VN_OK;
}

/* ---- the tables: seven digits of float64, and tables of cosines that are float32 ------------- */

static bool near(double x, double want)
{
	return fabs(x - want) <= 2e-6 * fmax(1.0, fabs(want));
}

static void check_row(const vn_plan *p, const keep *k, const entry *r)
{
	const int v = vn_plan_find(p, r->name);
	double    l2 = 0;

	CU_ASSERT_FATAL(v >= 0 && k->n[v] > 0);
	for (size_t i = 0; i < k->n[v]; i++)
		l2 += k->x[v][i] * k->x[v][i];
	const bool good = near(k->x[v][0], r->first) && near(k->x[v][k->n[v] - 1], r->last) && near(sqrt(l2), r->l2);
	CU_ASSERT_TRUE(good);
	if (!good)
		fprintf(stderr, "%s: %.7g %.7g %.7g, expected %.7g %.7g %.7g\n", r->name, k->x[v][0], k->x[v][k->n[v] - 1],
		        sqrt(l2), r->first, r->last, r->l2);
}

static void check_toy(const toy *t)
{
	json_t          *config = json_loads(t->config, 0, NULL);
	const vn_family *family;
	vn_plan         *p;
	vn_ref          *r;
	keep             k = { .open = -1 };
	bool             want[128];
	const char      *all = "*";

	CU_ASSERT_PTR_NOT_NULL_FATAL(config);
	CU_ASSERT_EQUAL_FATAL(vn_family_find("toy", config, &family, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(family->plan("toy", config, &p, NULL), VN_OK);
	json_decref(config);
	vn_tensor *w = fill(p);
	CU_ASSERT_FATAL(p->n_values <= 128);
	CU_ASSERT_EQUAL_FATAL(vn_taps_choose(p, &all, 1, NULL, want, NULL), VN_OK);
	const vn_taps taps = { .want = want,
		                   .sink = { .ctx = &k, .begin = keep_begin, .write = keep_write, .end = keep_end } };
	CU_ASSERT_EQUAL_FATAL(
		vn_ref_create(p, w, &(vn_ref_options) { .policy = { VN_F64, VN_F64, 0, { 0 } }, .threads = 2 }, &r, NULL),
		VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_ref_ops.forward(r, ids, T, &taps, NULL), VN_OK);

	for (const entry *e = t->rows; e->name; e++)
		check_row(p, &k, e);
	const int logits = vn_plan_find(p, "logits");
	CU_ASSERT_EQUAL_FATAL(k.n[logits], (size_t)(T * p->vocab));
	for (int i = 0; i < 8; i++)
		CU_ASSERT_TRUE(near(k.x[logits][(T - 1) * p->vocab + i], t->logits[i]));
	for (int row = 0; row < T; row++) {
		const double *x = k.x[logits] + row * p->vocab;
		int           best = 0;
		for (int i = 1; i < p->vocab; i++)
			best = x[i] > x[best] ? i : best;
		CU_ASSERT_EQUAL(best, t->argmax[row]);
	}

	vn_ref_ops.destroy(r);
	for (int v = 0; v < 128; v++)
		free(k.x[v]);
	for (int i = 0; i < p->n_weights; i++)
		free((void *)(size_t)w[i].data);
	free(w);
	vn_plan_destroy(p);
}

static void gpt2_has_the_numbers_of_the_specification(void)
{
	check_toy(&toys[0]);
}
static void qwen3_has_the_numbers_of_the_specification(void)
{
	check_toy(&toys[1]);
}
static void llama_has_the_numbers_of_the_specification(void)
{
	check_toy(&toys[2]);
}
static void mistral_has_the_numbers_of_the_specification(void)
{
	check_toy(&toys[3]);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(gpt2_has_the_numbers_of_the_specification),
		TEST(qwen3_has_the_numbers_of_the_specification),
		TEST(llama_has_the_numbers_of_the_specification),
		TEST(mistral_has_the_numbers_of_the_specification),
		CU_TEST_INFO_NULL,
	};
	return run_suite("toys", tests);
}
