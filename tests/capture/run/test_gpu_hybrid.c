/* test_gpu_hybrid.c: runs that are partly the GPU's and partly the reference's, of trained models
 * of every family. */
#include "tests/support/test_gpu_help.h"

#include "capture/run/hybrid.h"

static const char *const family[] = { "gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text" };

enum { PROMPT = 19, STEPS = 3, TOKENS = PROMPT + STEPS };

static vn_model *load(const char *name)
{
	char      path[512];
	vn_model *m = NULL;
	vn_error  err = { "" };

	snprintf(path, sizeof path, "%s/fixtures/%s-trained", VERNIER_SOURCE, name);
	CU_ASSERT_EQUAL_FATAL(vn_model_open(path, &m, &err), VN_OK);
	return m;
}

static vn_engine_options gpu_on(int d, vn_policy p)
{
	return (vn_engine_options) { .gpu = true, .policy = p, .device = devices_[d].index, .threads = 1, .quiet = true };
}

/* A prompt, then a token at a time. on_demand: everything is tapped; else the logits alone. */
static void record(const vn_engine *e, const vn_plan *p, bool everything, keep *k)
{
	int32_t *ids = some_ids(TOKENS, p->vocab);
	bool    *want = want_all(p, true);
	vn_error err = { "" };

	for (int v = 0; !everything && v < p->n_values; v++)
		want[v] = p->value[v].point == VN_POINT_LOGITS;
	keep_start(k, p);
	const vn_taps taps = { .want = want, .sink = keep_sink(k) };
	for (int t = 0; t < TOKENS; t += t ? 1 : PROMPT) {
		const vn_status st = e->ops->forward(e->self, ids + t, t ? 1 : PROMPT, &taps, &err);
		CU_ASSERT_EQUAL(st, VN_OK);
		if (st) {
			printf("\n  forward: %s\n", err.text);
			break;
		}
		/* states and scores are those of the last step */
		if (t < TOKENS - 1)
			keep_next(k, p);
	}
	free(want);
	free(ids);
}

static void open_engine(vn_engine *e, const vn_model *m, const vn_engine_options *o, bool hybrid)
{
	vn_error err = { "" };
	CU_ASSERT_EQUAL(hybrid ? vn_hybrid_open(e, m, o, &err) : vn_engine_open(e, m, o, &err), VN_OK);
	if (!e->self) {
		printf("\n  open: %s\n", err.text);
		CU_FAIL_FATAL("no engine");
	}
}

/* One run of a fresh engine, everything tapped. */
static void record_anew(const vn_model *m, vn_engine_options o, bool hybrid, keep *k)
{
	vn_engine e;
	open_engine(&e, m, &o, hybrid);
	record(&e, vn_model_plan(m), true, k);
	vn_engine_close(&e);
}

static void same_run(const vn_plan *p, keep *a, keep *b)
{
	bool *want = want_all(p, true);
	for (int v = 0; v < p->n_values; v++)
		if (want[v] &&
		    (a->v[v].n != b->v[v].n || (a->v[v].n && memcmp(a->v[v].x, b->v[v].x, a->v[v].n * sizeof(float)) != 0)))
			printf("\n  %s differs\n", p->value[v].name);
	CU_ASSERT_EQUAL(different(a, b, want), 0);
	CU_ASSERT_EQUAL(a->n_order, b->n_order);
	CU_ASSERT_EQUAL(memcmp(a->order, b->order, (size_t)a->n_order * sizeof *a->order), 0);
	free(want);
	keep_stop(a);
	keep_stop(b);
}

static void everything_forced_is_the_reference_run_bit_for_bit(void)
{
	static const char *const all[] = { "*" };
	for (int d = 0; d < n_devices_; d++)
		for (size_t f = 0; f < COUNT(family); f++) {
			const vn_policy   policy = f % 2 ? F16 : F32;
			vn_engine_options o = gpu_on(d, policy);
			vn_model         *m = load(family[f]);
			keep              a, b;
			o.force_ref = all;
			o.n_force_ref = 1;
			record_anew(m, o, false, &a);
			record_anew(m, (vn_engine_options) { .policy = policy, .threads = 1, .quiet = true }, false, &b);
			same_run(vn_model_plan(m), &a, &b);
			vn_model_close(m);
		}
}

static void nothing_forced_is_the_plain_gpu_run_bit_for_bit(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (size_t f = 0; f < COUNT(family); f++) {
			vn_engine_options o = gpu_on(d, f % 2 ? F32 : F16);
			vn_model         *m = load(family[f]);
			keep              a, b;
			o.paged = f % 2;
			record_anew(m, o, true, &a);
			record_anew(m, o, false, &b);
			same_run(vn_model_plan(m), &a, &b);
			vn_model_close(m);
		}
}

static void f32_everywhere_in_a_half_run_is_the_f32_run_bit_for_bit(void)
{
	static const char *const all[] = { "f32@*" };
	vn_model                *m = load("qwen2");
	for (int d = 0; d < n_devices_; d++)
		for (int gpu = 0; gpu < 2; gpu++) {
			vn_engine_options o = gpu_on(d, F16), plain = gpu_on(d, F32);
			keep              a, b;
			o.gpu = plain.gpu = gpu;
			o.precise = all;
			o.n_precise = 1;
			record_anew(m, o, false, &a);
			record_anew(m, plain, false, &b);
			same_run(vn_model_plan(m), &a, &b);
		}
	vn_model_close(m);
}

static double apart(const kept *a, const kept *b)
{
	double err = 0.0, all = 0.0;
	if (a->n != b->n || a->n == 0)
		return INFINITY;
	for (size_t i = 0; i < a->n; i++) {
		err += pow((double)a->x[i] - (double)b->x[i], 2);
		all += pow((double)b->x[i], 2);
	}
	return sqrt(err / all);
}

/* In float32 the two engines are so close that a value which came to the wrong place would show. */
static void any_subset_gives_the_run_and_taps_do_not_change_it(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (size_t f = 0; f < COUNT(family); f++) {
			vn_engine_options o = gpu_on(d, F32);
			vn_model         *m = load(family[f]);
			const vn_plan    *p = vn_model_plan(m);
			bool             *force = calloc((size_t)p->n_nodes, sizeof *force);
			double            worst = 0.0;
			vn_engine         e;
			keep              ref;
			record_anew(m, (vn_engine_options) { .policy = F32, .threads = 1, .quiet = true }, false, &ref);
			o.paged = f % 2 == 0;
			open_engine(&e, m, &o, true);
			seed_ = 40 + f;
			for (int round = 0; round < 4; round++) {
				const double share = round == 0 ? 0.1 : round == 3 ? 0.9 : 0.5;
				keep         a, b;
				for (int i = 0; i < p->n_nodes; i++)
					force[i] = (uniform() + 1.0) / 2.0 < share;
				CU_ASSERT_EQUAL(vn_hybrid_force(&e, force, NULL, NULL), VN_OK);
				record(&e, p, true, &a);
				for (int v = 0; v < p->n_values; v++)
					if (p->value[v].alias_of < 0 && p->value[v].point != VN_POINT_ATTN_SCORES) { /* infinities */
						const double x = apart(&a.v[v], &ref.v[v]);
						worst = fmax(worst, x);
						if (!(x < 2e-5))
							printf("\n  %s of %s is %g off\n", p->value[v].name, family[f], x);
					}
				CU_ASSERT_EQUAL(a.n_order, ref.n_order);
				CU_ASSERT_EQUAL(memcmp(a.order, ref.order, (size_t)a.n_order * sizeof *a.order), 0);
				e.ops->reset(e.self);
				record(&e, p, false, &b);
				const int logits = vn_plan_find(p, "logits");
				CU_ASSERT_EQUAL(a.v[logits].n, b.v[logits].n);
				CU_ASSERT_EQUAL(memcmp(a.v[logits].x, b.v[logits].x, a.v[logits].n * sizeof(float)), 0);
				keep_stop(&a);
				keep_stop(&b);
			}
			CU_ASSERT(worst < 2e-5);
			printf("%s %.1e ", family[f], worst);
			keep_stop(&ref);
			free(force);
			vn_engine_close(&e);
			vn_model_close(m);
		}
}

static void a_forced_node_changes_what_is_behind_it_alone(void)
{
	static const char *const forced[] = { "layer1.{mlp_norm,down_proj}", "layer0.attn_context" };
	vn_model                *m = load("llama");
	for (int d = 0; d < n_devices_; d++) {
		vn_engine_options o = gpu_on(d, F32);
		keep              a, b;
		o.force_ref = forced;
		o.n_force_ref = COUNT(forced);
		record_anew(m, o, false, &a);
		record_anew(m, gpu_on(d, F32), false, &b);
		const vn_plan *p = vn_model_plan(m);
		/* before the first forced node nothing can differ, and what is behind it does */
		const int      before = vn_plan_find(p, "layer0.q_rope"), behind = vn_plan_find(p, "logits");
		CU_ASSERT_EQUAL(memcmp(a.v[before].x, b.v[before].x, a.v[before].n * sizeof(float)), 0);
		CU_ASSERT(apart(&a.v[behind], &b.v[behind]) > 0.0);
		CU_ASSERT(apart(&a.v[behind], &b.v[behind]) < 1e-5);
		keep_stop(&a);
		keep_stop(&b);
	}
	vn_model_close(m);
}

/* No shader computes it. A forced node is the correct one. */
static void the_reference_computes_the_formula_of_a_fault(void)
{
	static const char *const forced[] = { "layer1.attn_context" };
	vn_model                *m = load("llama");
	const vn_plan           *p = vn_model_plan(m);
	const int                before = vn_plan_find(p, "layer0.output"), at = vn_plan_find(p, "layer1.attn_context");
	vn_error                 err = { "" };
	vn_faulty               *faulty;

	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(p, vn_model_weights(m), &faulty, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_faulty_inject(faulty, "A4@layer1", &err), VN_OK);
	for (int d = 0; d < n_devices_; d++) {
		vn_engine_options o = gpu_on(d, F32);
		keep              right, gpu, ref, repaired;
		record_anew(m, o, false, &right);
		o.faulty = faulty;
		record_anew(m, o, false, &gpu);
		record_anew(m, (vn_engine_options) { .policy = F32, .threads = 1, .quiet = true, .faulty = faulty }, false,
		            &ref);
		o.force_ref = forced;
		o.n_force_ref = COUNT(forced);
		record_anew(m, o, false, &repaired);
		CU_ASSERT_EQUAL(memcmp(gpu.v[before].x, right.v[before].x, right.v[before].n * sizeof(float)), 0);
		CU_ASSERT(apart(&gpu.v[at], &right.v[at]) > 1e-3);
		CU_ASSERT(apart(&gpu.v[at], &ref.v[at]) < 2e-5);
		CU_ASSERT(apart(&repaired.v[at], &right.v[at]) < 2e-5);
		keep_stop(&right);
		keep_stop(&gpu);
		keep_stop(&ref);
		keep_stop(&repaired);
	}
	vn_faulty_destroy(faulty);
	vn_model_close(m);
}

/* Rounded where a value changes sides: both engines, mixed in the same way, agree as well as
 * in one precision. */
static void precisions_may_be_mixed(void)
{
	static const char *const precise[] = { "f32@layer0.*", "f32@layer{1,2}.{q,k,gate}_proj", "f32@layer1.attn_residual",
		                                   "f16@layer0.v_proj" };
	for (size_t f = 0; f < COUNT(family); f += 2) {
		vn_model *m = load(family[f]);
		for (int d = 0; d < n_devices_; d++) {
			vn_engine_options o = gpu_on(d, F16);
			keep              a, b;
			o.precise = precise;
			o.n_precise = f == 0 ? 1 : COUNT(precise); /* GPT-2 has no such projections */
			record_anew(m, o, false, &a);
			o.gpu = false;
			record_anew(m, o, false, &b);
			const int logits = vn_plan_find(vn_model_plan(m), "logits");
			printf("%.1e ", apart(&a.v[logits], &b.v[logits]));
			CU_ASSERT(apart(&a.v[logits], &b.v[logits]) < 2e-3);
			keep_stop(&a);
			keep_stop(&b);
		}
		vn_model_close(m);
	}
}

static void refused(const vn_model *m, vn_engine_options o, const char *word)
{
	vn_engine e;
	vn_error  err = { "" };
	CU_ASSERT_NOT_EQUAL(vn_engine_open(&e, m, &o, &err), VN_OK);
	CU_ASSERT_PTR_NULL(e.self);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, word));
	if (!strstr(err.text, word))
		printf("\n  wanted '%s', have '%s'\n", word, err.text);
}

static void what_matches_nothing_or_cannot_be_is_refused_by_name(void)
{
	static const char *const nothing[] = { "layer0.*", "layer7.q_proj" }, *const wide[] = { "f64@logits" },
							 *const word[] = { "f8@logits" };
	vn_model                       *m = load("qwen2");
	vn_engine_options               o = gpu_on(0, F16);

	o.force_ref = nothing;
	o.n_force_ref = 2;
	refused(m, o, "layer7.q_proj");
	o.n_force_ref = 0;
	o.n_precise = 1;
	o.precise = wide;
	refused(m, o, "logits: the GPU engine computes");
	o.precise = word;
	refused(m, o, "'f8@logits'");
	vn_model_close(m);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(everything_forced_is_the_reference_run_bit_for_bit),
		TEST(nothing_forced_is_the_plain_gpu_run_bit_for_bit),
		TEST(f32_everywhere_in_a_half_run_is_the_f32_run_bit_for_bit),
		TEST(any_subset_gives_the_run_and_taps_do_not_change_it),
		TEST(a_forced_node_changes_what_is_behind_it_alone),
		TEST(the_reference_computes_the_formula_of_a_fault),
		TEST(precisions_may_be_mixed),
		TEST(what_matches_nothing_or_cannot_be_is_refused_by_name),
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("hybrid", tests);
}
