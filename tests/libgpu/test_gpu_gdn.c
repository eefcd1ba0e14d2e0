/* test_gpu_gdn.c: the operations of Gated DeltaNet on the GPU against double loops over
 * what the device itself stored, in one call and behind others, and their states. */
#include "tests/support/test_gpu_help.h"

typedef struct gdn {
	int D, nk, nv, dk, dv, J;
} gdn;

static vn_plan *gdn_plan(gdn s)
{
	vn_builder *b = vn_plan_begin(1, 97, 512);
	vn_plan    *p = NULL;
	vn_error    err = { "" };
	const int   X = 2 * s.nk * s.dk + s.nv * s.dv;
	int         x = vn_plan_embed(b, weight2(b, "embed", 0, 97, s.D), VN_POINT_EMBED);

	vn_plan_layer(b, 0);
	x = vn_plan_rms_norm_one(b, x, weight2(b, "one", 0, s.D, 0), 1e-6, VN_POINT_ATTN_NORM);
	int qkv = vn_plan_linear(b, x, weight2(b, "qkv", 0, X, s.D), -1, 0, VN_POINT_GDN_QKV);
	vn_plan_causal_conv(b, qkv, vn_plan_weight(b, "conv", 3, (int64_t[]) { X, 1, s.J }), VN_POINT_GDN_CONV);
	int q = vn_plan_linear(b, x, weight2(b, "q", 0, s.nk * s.dk, s.D), -1, s.nk, VN_POINT_GDN_Q_CONV);
	int k = vn_plan_linear(b, x, weight2(b, "k", 0, s.nk * s.dk, s.D), -1, s.nk, VN_POINT_GDN_K_CONV);
	int v = vn_plan_linear(b, x, weight2(b, "v", 0, s.nv * s.dv, s.D), -1, s.nv, VN_POINT_GDN_V);
	int z = vn_plan_linear(b, x, weight2(b, "z", 0, s.nv * s.dv, s.D), -1, s.nv, VN_POINT_GDN_Z);
	int a = vn_plan_linear(b, x, weight2(b, "a", 0, s.nv, s.D), -1, 0, VN_POINT_GDN_A);
	int g = vn_plan_log_decay(b, a, weight2(b, "A_log", 0, s.nv, 0), weight2(b, "dt", 0, s.nv, 0), VN_POINT_GDN_G);
	int beta = vn_plan_linear(b, x, weight2(b, "b", 0, s.nv, s.D), -1, 0, VN_POINT_GDN_B);
	q = vn_plan_l2_norm(b, q, 1e-6, VN_POINT_GDN_Q);
	k = vn_plan_l2_norm(b, k, 1e-6, VN_POINT_GDN_K);
	int core = vn_plan_delta_rule(b, (int[]) { q, k, v, g, beta }, 1.0 / sqrt(s.dk), VN_POINT_GDN_CORE);
	vn_plan_gated_norm(b, core, z, weight2(b, "gated", 0, s.dv, 0), 1e-6, VN_POINT_GDN_NORM);
	if (vn_plan_finish(b, &p, &err))
		printf("\n  plan: %s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	return p;
}

/* Decays from long memory to almost none, and writing that keeps the state small. */
static void calm(const model *m, vn_dtype storage)
{
	for (int w = 0; w < m->plan->n_weights; w++) {
		float        *x = (void *)(uintptr_t)m->weight[w].data;
		const char   *name = m->plan->weight[w].name;
		const int64_t n = vn_shape_count(&m->weight[w].shape);
		for (int64_t i = 0; i < n; i++) {
			if (strcmp(name, "0.A_log") == 0)
				x[i] = (float)(-2.5 + 3.0 * uniform());
			else if (strcmp(name, "0.dt") == 0)
				x[i] = (float)(-1.0 + 2.0 * uniform());
			else if (strcmp(name, "0.b") == 0)
				x[i] *= 0.3f;
		}
		vn_round_f32(x, storage, (size_t)n);
	}
}

/* ---- what should come out -------------------------------------------------------------- */

static const float *of(const model *m, const keep *k, const char *point)
{
	char name[64];
	snprintf(name, sizeof name, "layer0.%s", point);
	return k->v[vn_plan_find(m->plan, name)].x;
}

static const float *weight(const model *m, const char *name)
{
	for (int w = 0; w < m->plan->n_weights; w++)
		if (strcmp(m->plan->weight[w].name, name) == 0)
			return m->weight[w].data;
	return NULL;
}

static double silu(double x)
{
	return x / (1.0 + exp(-x));
}

/* Elements of [from, n) that are off by more than the format and `units` roundings of
 * a float explain. */
static int off(const char *what, vn_policy policy, bool wide, const float *got, const double *want, const double *size,
               int64_t from, int64_t n, double units)
{
	int bad = 0;

	for (int64_t i = from; i < n; i++) {
		const double room = (policy.storage == VN_F16 && !wide ? 0.5001 * vn_dtype_ulp(VN_F16, want[i]) : 0.0) +
		                    units * 0x1p-24 * size[i] + 1e-12;
		if (fabs((double)got[i] - want[i]) <= room)
			continue;
		if (bad++ == 0)
			printf("\n  %s %s: element %lld is %.9g, should be %.9g (room %.3g)\n", vn_policy_name(policy), what,
			       (long long)i, (double)got[i], want[i], room);
	}
	return bad;
}

static int wrong_norms(const model *m, const keep *k, gdn s, vn_policy po, int64_t from, int64_t S)
{
	const int64_t rk = s.nk * s.dk, rv = s.nv * s.dv, most = S * (rk > rv ? rk : rv) + S * s.D;
	double       *y = malloc((size_t)most * 8), *size = malloc((size_t)most * 8);
	int           bad = 0;

	for (int part = 0; part < 2; part++) {
		const float *x = of(m, k, part ? "gdn_k_conv" : "gdn_q_conv");
		for (int64_t r = 0; r < S * s.nk; r++) {
			double ss = 0;
			for (int i = 0; i < s.dk; i++)
				ss += (double)x[r * s.dk + i] * (double)x[r * s.dk + i];
			for (int i = 0; i < s.dk; i++)
				size[r * s.dk + i] = fabs(y[r * s.dk + i] = (double)x[r * s.dk + i] / sqrt(ss + 1e-6));
		}
		bad += off(part ? "gdn_k" : "gdn_q", po, true, of(m, k, part ? "gdn_k" : "gdn_q"), y, size, from * rk, S * rk,
		           8);
	}
	const float *x = of(m, k, "gdn_core"), *z = of(m, k, "gdn_z"), *g = weight(m, "0.gated");
	for (int64_t r = 0; r < S * s.nv; r++) {
		double ss = 0;
		for (int i = 0; i < s.dv; i++)
			ss += (double)x[r * s.dv + i] * (double)x[r * s.dv + i];
		for (int i = 0; i < s.dv; i++) {
			const int64_t at = r * s.dv + i;
			size[at] = fabs(y[at] = (double)g[i] * (double)x[at] / sqrt(ss / s.dv + 1e-6) * silu((double)z[at]));
		}
	}
	bad += off("gdn_norm", po, false, of(m, k, "gdn_norm"), y, size, from * rv, S * rv, 12);
	const float *e = k->v[vn_plan_find(m->plan, "embed")].x, *one = weight(m, "0.one");
	for (int64_t t = 0; t < S; t++) {
		double ss = 0;
		for (int i = 0; i < s.D; i++)
			ss += (double)e[t * s.D + i] * (double)e[t * s.D + i];
		for (int i = 0; i < s.D; i++)
			size[t * s.D + i] = fabs(y[t * s.D + i] = (1.0 + (double)one[i]) * (double)e[t * s.D + i] /
			                                          sqrt(ss / s.D + 1e-6));
	}
	bad += off("attn_norm", po, false, of(m, k, "attn_norm"), y, size, from * s.D, S * s.D, 8);
	free(y), free(size);
	return bad;
}

static int wrong_conv(const model *m, const keep *k, gdn s, vn_policy po, int64_t from, int64_t S)
{
	const int64_t X = 2 * s.nk * s.dk + s.nv * s.dv;
	const float  *x = of(m, k, "gdn_qkv"), *w = weight(m, "conv"), *state = of(m, k, "gdn_conv_state");
	double       *y = malloc((size_t)(S * X) * 8), *size = malloc((size_t)(S * X) * 8);
	int           bad = 0;

	for (int64_t t = 0; t < S; t++)
		for (int64_t c = 0; c < X; c++) {
			double sum = 0, all = 0;
			for (int j = 0; j < s.J; j++) {
				const int64_t at = t - (s.J - 1) + j;
				const double  p = at < 0 ? 0.0 : (double)w[c * s.J + j] * (double)x[at * X + c];
				sum += p;
				all += fabs(p);
			}
			y[t * X + c] = silu(sum);
			size[t * X + c] = all + fabs(sum);
		}
	bad += off("gdn_conv", po, false, of(m, k, "gdn_conv"), y, size, from * X, S * X, 8);
	for (int j = 0; j < s.J - 1; j++)
		for (int64_t c = 0; c < X; c++) {
			const int64_t at = S - (s.J - 1) + j;
			bad += state[j * X + c] != (at < 0 ? 0.0f : x[at * X + c]);
		}
	free(y), free(size);
	return bad;
}

static int wrong_decay(const model *m, const keep *k, gdn s, vn_policy po, int64_t from, int64_t S)
{
	const float *x = of(m, k, "gdn_a"), *A = weight(m, "0.A_log"), *dt = weight(m, "0.dt");
	double      *y = malloc((size_t)(S * s.nv) * 8), *size = malloc((size_t)(S * s.nv) * 8);

	for (int64_t i = 0; i < S * s.nv; i++) {
		const double u = (double)x[i] + (double)dt[i % s.nv], rate = exp((double)A[i % s.nv]);
		y[i] = -rate * log1p(exp(u));
		size[i] = fabs(y[i]) + rate * (fabs((double)x[i]) + fabs((double)dt[i % s.nv])) * exp(u) / (1 + exp(u));
	}
	const int bad = off("gdn_g", po, true, of(m, k, "gdn_g"), y, size, from * s.nv, S * s.nv, 8);
	free(y), free(size);
	return bad;
}

/* The rule from the first token on. Its errors live as long as the state remembers: 40 roundings of
 * its largest number. */
static int wrong_rule(const model *m, const keep *k, gdn s, vn_policy po, int64_t from, int64_t S)
{
	const float *q = of(m, k, "gdn_q"), *kk = of(m, k, "gdn_k"), *v = of(m, k, "gdn_v"), *g = of(m, k, "gdn_g"),
				*beta = of(m, k, "gdn_b");
	const int64_t no = S * s.nv * s.dv, ns = (int64_t)s.nv * s.dk * s.dv;
	double       *o = calloc((size_t)no, 8), *size = calloc((size_t)no, 8), *st = calloc((size_t)ns, 8),
		   *most = calloc((size_t)ns, 8);

	for (int h = 0; h < s.nv; h++) {
		double *state = st + (int64_t)h * s.dk * s.dv, largest = 0;
		for (int64_t t = 0; t < S; t++) {
			const float *qt = q + (t * s.nk + h / (s.nv / s.nk)) * s.dk,
						*kt = kk + (t * s.nk + h / (s.nv / s.nk)) * s.dk;
			for (int c = 0; c < s.dv; c++) {
				const int64_t at = (t * s.nv + h) * s.dv + c;
				double        mem = 0, d;
				for (int i = 0; i < s.dk; i++)
					mem += (double)kt[i] * (state[i * s.dv + c] *= exp((double)g[t * s.nv + h]));
				d = (double)beta[t * s.nv + h] * ((double)v[at] - mem);
				for (int i = 0; i < s.dk; i++) {
					state[i * s.dv + c] += (double)kt[i] * d;
					o[at] += (double)qt[i] * state[i * s.dv + c] / sqrt(s.dk);
					largest = fmax(largest, fabs(state[i * s.dv + c]));
				}
				size[at] = largest;
			}
		}
		for (int i = 0; i < s.dk * s.dv; i++)
			most[(int64_t)h * s.dk * s.dv + i] = largest;
	}
	const int bad = off("gdn_core", po, false, of(m, k, "gdn_core"), o, size, from * s.nv * s.dv, no, 40) +
	                off("gdn_state", po, true, of(m, k, "gdn_state"), st, most, 0, ns, 40);
	free(o), free(size), free(st), free(most);
	return bad;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Makes calls of parts[i] tokens and checks the last one's results. */
static void check(gdn s, vn_policy policy, const int64_t *parts, int n)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  k;
		model_start(&m, gdn_plan(s), policy.storage);
		calm(&m, policy.storage);
		keep_start(&k, m.plan);
		bool    *want = want_all(m.plan, true);
		int32_t *ids = some_ids(512, 97);
		vn_taps  taps = { .want = want, .rows = VN_ROWS_ALL, .sink = keep_sink(&k) };
		vn_gpu  *g = engine(
			 &m, (vn_gpu_options) { .policy = policy, .device = devices_[d].index, .validate = true, .guard = true });
		int64_t past = 0;
		bool    ran = g != NULL;
		for (int i = 0; ran && i < n; i++) {
			keep_next(&k, m.plan);
			ran = forward(g, ids + past, parts[i], &taps) == VN_OK;
			past += parts[i];
		}
		if (ran) {
			const int64_t from = past - parts[n - 1];
			CU_ASSERT_EQUAL(wrong_norms(&m, &k, s, policy, from, past), 0);
			CU_ASSERT_EQUAL(wrong_conv(&m, &k, s, policy, from, past), 0);
			CU_ASSERT_EQUAL(wrong_decay(&m, &k, s, policy, from, past), 0);
			CU_ASSERT_EQUAL(wrong_rule(&m, &k, s, policy, from, past), 0);
		}
		vn_gpu_ops.destroy(g);
		free(ids);
		free(want);
		keep_stop(&k);
		model_stop(&m);
	}
}

static const gdn odd = { .D = 23, .nk = 2, .nv = 6, .dk = 10, .dv = 7, .J = 4 };

static void every_op_is_right_for_any_number_of_tokens(void)
{
	const int64_t T[] = { 1, 2, 3, 17, 65, 200 };
	for (size_t i = 0; i < COUNT(T); i++) {
		check(odd, F32, &T[i], 1);
		check(odd, F16, &T[i], 1);
	}
}

static void every_op_is_right_for_any_heads_and_taps(void)
{
	static const gdn     of_[] = { { 8, 1, 1, 1, 1, 2 },     { 12, 1, 5, 3, 16, 3 }, { 16, 4, 4, 8, 17, 4 },
		                           { 20, 1, 2, 128, 40, 2 }, { 9, 3, 6, 33, 9, 5 },  { 7, 1, 1, 256, 19, 4 } };
	static const int64_t T = 21;
	for (size_t i = 0; i < COUNT(of_); i++) {
		check(of_[i], F32, &T, 1);
		check(of_[i], F16, &T, 1);
	}
}

static void every_op_goes_on_from_the_states_of_earlier_calls(void)
{
	static const int64_t parts[][5] = {
		{ 1, 1, 1, 1, 1 }, { 5, 1, 2, 1, 3 }, { 70, 1, 65, 1, 1 }, { 2, 64, 1, 64, 9 }
	};
	for (size_t i = 0; i < COUNT(parts); i++) {
		check(odd, F32, parts[i], 5);
		check(odd, F16, parts[i], 5);
	}
}

/* A call that is not kept leaves the states unchanged: the next call gives the same result as
 * without it. A reset brings back the start. */
static void states_are_those_of_kept_calls_and_zero_at_the_start(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  a, b;
		model_start(&m, gdn_plan(odd), VN_F16);
		calm(&m, VN_F16);
		bool    *want = want_all(m.plan, true);
		int32_t *ids = some_ids(64, 97);
		vn_gpu  *g = engine(&m, (vn_gpu_options) { .policy = F16, .device = devices_[d].index, .guard = true });
		vn_error err = { "" };
		for (int round = 0; g && round < 2; round++) {
			keep_start(&a, m.plan);
			keep_start(&b, m.plan);
			const vn_taps ta = { .want = want, .rows = VN_ROWS_ALL, .sink = keep_sink(&a) },
						  tb = { .want = want, .rows = VN_ROWS_ALL, .sink = keep_sink(&b) };
			forward(g, ids, 9, NULL);
			forward(g, ids + 9, 5, &ta);
			vn_gpu_ops.reset(g);
			forward(g, ids, 9, NULL);
			CU_ASSERT_EQUAL(vn_gpu_ops.begin(g, ids + 20, 8, NULL, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, m.plan->n_nodes, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.end(g, false, &err), VN_OK);
			forward(g, ids + 9, 5, &tb);
			CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			vn_gpu_ops.reset(g);
			keep_stop(&a);
			keep_stop(&b);
		}
		vn_gpu_ops.destroy(g);
		free(ids);
		free(want);
		model_stop(&m);
	}
}

static void a_rule_or_a_width_without_a_shader_is_refused_by_name(void)
{
	model     m;
	vn_gpu   *g = NULL;
	vn_error  err = { "" };
	const gdn large = { .D = 4, .nk = 1, .nv = 1, .dk = 257, .dv = 2, .J = 2 };

	model_start(&m, gdn_plan(large), VN_F16);
	CU_ASSERT_EQUAL(
		vn_gpu_create(m.plan, m.weight, &(vn_gpu_options) { .policy = F16, .device = devices_[0].index }, &g, &err),
		VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "layer0.gdn_core"));
	model_stop(&m);
	for (int i = 0; i < 2; i++) {
		model_start(&m, gdn_plan(odd), VN_F16);
		const char *name = i ? "layer0.gdn_v" : "layer0.gdn_q";
		m.plan->value[vn_plan_find(m.plan, name)].wide = i;
		CU_ASSERT_EQUAL(
			vn_gpu_create(m.plan, m.weight, &(vn_gpu_options) { .policy = F16, .device = devices_[0].index }, &g, &err),
			VN_ERR_UNSUPPORTED);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, name));
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "every op is right for any number of tokens", every_op_is_right_for_any_number_of_tokens },
		{ "every op is right for any heads and taps", every_op_is_right_for_any_heads_and_taps },
		{ "every op goes on from the states of earlier calls", every_op_goes_on_from_the_states_of_earlier_calls },
		{ "states are those of kept calls and zero at the start",
		  states_are_those_of_kept_calls_and_zero_at_the_start },
		{ "a rule or a width without a shader is refused by name",
		  a_rule_or_a_width_without_a_shader_is_refused_by_name },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu gdn", tests);
}
