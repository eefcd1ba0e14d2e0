/* test_gpu_run.c: whole forward passes: against the reference engine, against
 * themselves, with taps of every kind, and through failures. */
#include "tests/test_gpu_help.h"

#include "libgpu/engine.h"
#include "libgpu/suitable.h"
#include "libref/exec/ref.h"

#include <sys/stat.h>
#include <unistd.h>

static const shape_of small = { .layers = 3, .D = 44, .H = 6, .G = 2, .K = 10, .F = 175, .V = 211, .context = 700,
                                .rotary = 10 };
static const int64_t T = 37;

/* One engine's run in one call (split 0) or two; everything tapped that `want` says. */
static void gpu_run(const model *m, vn_gpu_options o, const bool *want, vn_tap_rows rows, int64_t tokens, int64_t split,
                    keep *k)
{
	int32_t *ids = some_ids(tokens, m->plan->vocab);
	vn_gpu  *g = engine(m, o);
	keep_start(k, m->plan);
	vn_taps taps = { .want = want, .rows = rows, .first = 3, .last = 8, .sink = keep_sink(k) };
	if (g && (split == 0 || forward(g, ids, split, &taps) == VN_OK)) {
		if (split)
			keep_next(k, m->plan);
		forward(g, ids + split, tokens - split, &taps);
	}
	vn_gpu_destroy(g);
	free(ids);
}

static void ref_run(const model *m, vn_policy policy, const bool *want, int64_t tokens, keep *k)
{
	int32_t *ids = some_ids(tokens, m->plan->vocab);
	vn_ref  *r = NULL;
	vn_error err = { "" };
	keep_start(k, m->plan);
	vn_taps taps = { .want = want, .sink = keep_sink(k) };
	CU_ASSERT_EQUAL_FATAL(vn_ref_create(m->plan, m->weight, &(vn_ref_options){ .policy = policy, .threads = 1 }, &r, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_forward(r, ids, tokens, &taps, &err), VN_OK);
	vn_ref_destroy(r);
	free(ids);
}

static double nmse(const kept *a, const kept *ref)
{
	double err = 0.0, all = 0.0;
	if (a->n != ref->n)
		return INFINITY;
	for (size_t i = 0; i < a->n; i++) {
		err += pow((double)a->x[i] - (double)ref->x[i], 2);
		all += pow((double)ref->x[i], 2);
	}
	return all > 0.0 ? err / all : err;
}

/* Of the values that both have: how many differ in a bit, or in length. */
static int different(const keep *a, const keep *b, const bool *want)
{
	int n = 0;
	for (int v = 0; v < a->n; v++)
		if (want[v])
			n += a->v[v].n != b->v[v].n || memcmp(a->v[v].x, b->v[v].x, a->v[v].n * sizeof(float)) != 0;
	return n;
}

static vn_gpu_options on(int d, vn_policy p)
{
	return (vn_gpu_options){ .policy = p, .device = devices_[d].index, .validate = true };
}

/* ---- against the reference ---------------------------------------------------------- */

static void f32_is_within_1e5_of_the_reference(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  g, r;
		double worst = 0.0;
		model_start(&m, block_plan(small), VN_F32);
		bool *want = want_all(m.plan, true);
		gpu_run(&m, on(d, F32), want, VN_ROWS_ALL, T, 0, &g);
		ref_run(&m, F32, want, T, &r);
		for (int v = 0; v < m.plan->n_values; v++)
			if (m.plan->value[v].alias_of < 0) {
				const double e = sqrt(nmse(&g.v[v], &r.v[v]));
				CU_ASSERT_TRUE(e <= 1e-5);
				CU_ASSERT_TRUE(vn_shape_equal(&g.v[v].shape, &r.v[v].shape));
				worst = fmax(worst, e);
			}
		printf("worst %.2g ", worst);
		CU_ASSERT_EQUAL(g.n_order, r.n_order);
		CU_ASSERT_EQUAL(memcmp(g.order, r.order, (size_t)g.n_order * sizeof *g.order), 0);
		keep_stop(&g);
		keep_stop(&r);
		free(want);
		model_stop(&m);
	}
}

/* The floor: what the reference loses by storing (and summing) as the device does. */
static void within_four_floors(vn_policy policy)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  g, r, f;
		double worst = 0.0;
		model_start(&m, block_plan(small), VN_F16);
		bool *want = want_all(m.plan, true);
		gpu_run(&m, on(d, policy), want, VN_ROWS_ALL, T, 0, &g);
		ref_run(&m, F32, want, T, &r);
		ref_run(&m, policy, want, T, &f);
		for (int v = 0; v < m.plan->n_values; v++)
			if (m.plan->value[v].alias_of < 0) {
				const double e = nmse(&g.v[v], &r.v[v]), floor_ = nmse(&f.v[v], &r.v[v]);
				CU_ASSERT_TRUE(e <= 4.0 * floor_);
				worst = fmax(worst, floor_ > 0.0 ? e / floor_ : 0.0);
			}
		printf("worst %.2f floors ", worst);
		keep_stop(&g);
		keep_stop(&r);
		keep_stop(&f);
		free(want);
		model_stop(&m);
	}
}

static void f16_is_within_four_floors(void)
{
	within_four_floors(F16);
}

static void half_sums_are_within_four_floors(void)
{
	within_four_floors(ACC16);
}

/* ---- against itself ------------------------------------------------------------------- */

static void a_prompt_cut_in_two_calls_gives_the_same_to_rounding(void)
{
	static const int64_t split[] = { 1, 16, 36 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(split); i++) {
			model m;
			keep  a, b;
			model_start(&m, block_plan(small), VN_F32);
			bool *want = want_all(m.plan, false);
			gpu_run(&m, on(d, F32), want, VN_ROWS_ALL, T, 0, &a);
			gpu_run(&m, on(d, F32), want, VN_ROWS_ALL, T, split[i], &b);
			for (int v = 0; v < m.plan->n_values; v++)
				if (want[v] && m.plan->value[v].alias_of < 0)
					CU_ASSERT_TRUE(sqrt(nmse(&b.v[v], &a.v[v])) <= 1e-5);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

static void taps_do_not_change_a_bit_of_the_logits(void)
{
	static const int64_t tokens[] = { 1, 5, 37 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(tokens); i++) {
			model m;
			keep  a, b;
			model_start(&m, block_plan(small), VN_F16);
			bool *all = want_all(m.plan, true), *logits = calloc((size_t)m.plan->n_values, sizeof *logits);
			logits[vn_plan_find(m.plan, "logits")] = true;
			gpu_run(&m, on(d, F16), all, VN_ROWS_ALL, tokens[i], 0, &a);
			gpu_run(&m, on(d, F16), logits, VN_ROWS_ALL, tokens[i], 0, &b);
			CU_ASSERT_EQUAL(different(&a, &b, logits), 0);
			keep_stop(&a);
			keep_stop(&b);
			free(logits);
			free(all);
			model_stop(&m);
		}
}

static void two_runs_give_the_same_bits(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  a, b;
		model_start(&m, block_plan(small), VN_F16);
		bool *want = want_all(m.plan, true);
		gpu_run(&m, on(d, ACC16), want, VN_ROWS_ALL, T, 20, &a);
		gpu_run(&m, on(d, ACC16), want, VN_ROWS_ALL, T, 20, &b);
		CU_ASSERT_EQUAL(different(&a, &b, want), 0);
		keep_stop(&a);
		keep_stop(&b);
		free(want);
		model_stop(&m);
	}
}

static void a_tiny_staging_buffer_gives_the_same_bits_as_a_large_one(void)
{
	static const int64_t size[] = { 1, 4096, 100000 }, tokens[] = { 1, 37 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(size) * COUNT(tokens); i++) {
			model m;
			keep  a, b;
			const int64_t n = tokens[i / COUNT(size)];
			model_start(&m, block_plan(small), VN_F16);
			bool          *want = want_all(m.plan, true);
			vn_gpu_options tiny = on(d, F16);
			tiny.staging = size[i % COUNT(size)]; /* 1: rounded up to 256 bytes, less than a row of logits */
			gpu_run(&m, on(d, F16), want, VN_ROWS_ALL, n, 0, &a);
			gpu_run(&m, tiny, want, VN_ROWS_ALL, n, 0, &b);
			CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			CU_ASSERT_EQUAL(a.n_order, b.n_order);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

static void selected_rows_are_the_rows_of_the_whole(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (int last = 0; last < 2; last++)
			for (int64_t size = 256; size <= 1 << 20; size *= 4096) {
				model m;
				keep  a, b;
				model_start(&m, block_plan(small), VN_F16);
				bool          *want = want_all(m.plan, true);
				vn_gpu_options o = on(d, F16);
				o.staging = size;
				gpu_run(&m, o, want, VN_ROWS_ALL, T, 0, &a);
				gpu_run(&m, o, want, last ? VN_ROWS_LAST : VN_ROWS_RANGE, T, 0, &b);
				const int64_t first = last ? T - 1 : 3, count = last ? 1 : 6;
				int bad = 0;
				for (int v = 0; v < m.plan->n_values; v++) {
					const vn_value *x = &m.plan->value[v];
					const bool      keyed = x->size[x->rank - 1] == VN_S;
					const int64_t   heads = keyed ? x->size[0] : 1, row = keyed ? T : vn_value_row(x);
					if (x->alias_of >= 0)
						continue;
					CU_ASSERT_EQUAL((int64_t)b.v[v].n, heads * count * row);
					CU_ASSERT_EQUAL(b.v[v].shape.dim[keyed ? 1 : 0], count);
					for (int64_t h = 0; h < heads && (int64_t)b.v[v].n == heads * count * row; h++)
						bad += memcmp(b.v[v].x + h * count * row, a.v[v].x + (h * T + first) * row,
						              (size_t)(count * row) * sizeof(float)) != 0;
				}
				CU_ASSERT_EQUAL(bad, 0);
				keep_stop(&a);
				keep_stop(&b);
				free(want);
				model_stop(&m);
			}
}

static void rows_outside_the_call_are_not_handed_over(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  k;
		model_start(&m, block_plan(small), VN_F16);
		bool *want = want_all(m.plan, true);
		gpu_run(&m, on(d, F16), want, VN_ROWS_RANGE, 3, 0, &k); /* positions 3 to 8 of a call of 0 to 2 */
		CU_ASSERT_EQUAL(k.n_order, 0);
		keep_stop(&k);
		free(want);
		model_stop(&m);
	}
}

/* ---- one pass ------------------------------------------------------------------------- */

static void a_pass_is_one_submit_and_every_node_has_its_time(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  k;
		model_start(&m, block_plan(small), VN_F16);
		bool    *want = want_all(m.plan, true);
		int32_t *ids = some_ids(T, small.V);
		vn_gpu  *g = engine(&m, on(d, F16));
		vn_facts facts = { 0 };
		double   total = -1.0, sum = 0.0;
		keep_start(&k, m.plan);
		vn_taps taps = { .want = want, .sink = keep_sink(&k) };
		CU_ASSERT_PTR_NULL(vn_gpu_node_ms(g, &total));
		forward(g, ids, T, &taps);
		vn_gpu_facts(g, &facts);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "submits"), "1");
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed"), "0");
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "device"), devices_[d].name);
		const double *ms = vn_gpu_node_ms(g, &total);
		if (ms) {
			for (int i = 0; i < m.plan->n_nodes; i++) {
				CU_ASSERT_TRUE(ms[i] >= 0.0);
				sum += ms[i];
			}
			CU_ASSERT_TRUE(total > 0.0 && fabs(sum - total) <= 1e-9 * total + 1e-9);
		}
		vn_gpu_destroy(g);
		keep_stop(&k);
		free(ids);
		free(want);
		model_stop(&m);
	}
}

/* Alive at once are far fewer values than there are. */
static void memory_of_values_is_used_again(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		shape_of s = small;
		s.layers = 12;
		model_start(&m, block_plan(s), VN_F16);
		int32_t *ids = some_ids(300, s.V);
		vn_gpu  *g = engine(&m, on(d, F16));
		int64_t  all = 0;
		forward(g, ids, 300, NULL);
		for (int v = 0; v < m.plan->n_values; v++)
			if (m.plan->value[v].alias_of < 0 && g->arena.slot_of[v] >= 0)
				all += 2 * 300 * vn_value_row(&m.plan->value[v]);
		CU_ASSERT_TRUE(g->arena.bytes <= 2 * g->arena.peak);
		CU_ASSERT_TRUE(g->arena.bytes * 10 <= all);
		vn_gpu_destroy(g);
		free(ids);
		model_stop(&m);
	}
}

static void the_cache_grows_past_its_first_room(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  a, b;
		model_start(&m, block_plan(small), VN_F32);
		bool *logits = calloc((size_t)m.plan->n_values, sizeof *logits);
		const int v = vn_plan_find(m.plan, "logits");
		logits[v] = true;
		vn_gpu_options o = on(d, F32);
		gpu_run(&m, o, logits, VN_ROWS_ALL, 600, 250, &a); /* 256 rows, then 1024, cut to the context of 700 */
		gpu_run(&m, o, logits, VN_ROWS_ALL, 600, 0, &b);
		CU_ASSERT_TRUE(sqrt(nmse(&a.v[v], &b.v[v])) <= 1e-5);
		o.guard = true;
		keep c;
		gpu_run(&m, o, logits, VN_ROWS_ALL, 600, 250, &c);
		CU_ASSERT_EQUAL(different(&a, &c, logits), 0);
		keep_stop(&a);
		keep_stop(&b);
		keep_stop(&c);
		free(logits);
		model_stop(&m);
	}
}

/* ---- the guard -------------------------------------------------------------------------- */

static void a_guarded_run_passes_and_gives_the_same_bits(void)
{
	static const int64_t size[] = { 0, 1000 };
	for (int d = 0; d < n_devices_; d++)
		for (int half = 0; half < 2; half++)
			for (size_t i = 0; i < COUNT(size); i++) {
				model m;
				keep  a, b;
				model_start(&m, block_plan(small), VN_F16);
				bool          *want = want_all(m.plan, true);
				vn_gpu_options o = on(d, half ? F16 : F32);
				o.staging = size[i];
				gpu_run(&m, o, want, VN_ROWS_RANGE, T, 5, &a);
				o.guard = true;
				gpu_run(&m, o, want, VN_ROWS_RANGE, T, 5, &b);
				CU_ASSERT_EQUAL(different(&a, &b, want), 0);
				keep_stop(&a);
				keep_stop(&b);
				free(want);
				model_stop(&m);
			}
}

static void guard_says(const char *value, bool skip, const char *expect)
{
	for (int d = 0; d < n_devices_; d++) {
		model          m;
		vn_error       err = { "" };
		vn_gpu_options o = on(d, F16);
		model_start(&m, block_plan(small), VN_F16);
		int32_t *ids = some_ids(T, small.V);
		o.guard = true;
		vn_gpu *g = engine(&m, o);
		*(skip ? &g->break_skip : &g->break_overrun) = m.plan->value[vn_plan_find(m.plan, value)].node;
		CU_ASSERT_EQUAL(vn_gpu_forward(g, ids, T, NULL, &err), VN_ERR_DEVICE);
		if (strcmp(err.text, expect) != 0)
			printf("\n  guard: %s\n", err.text);
		CU_ASSERT_STRING_EQUAL(err.text, expect);
		CU_ASSERT_EQUAL(vn_gpu_position(g), 0);
		g->break_skip = g->break_overrun = -1;
		forward(g, ids, T, NULL);
		vn_gpu_destroy(g);
		free(ids);
		model_stop(&m);
	}
}

static void a_value_that_was_never_written_is_named(void)
{
	guard_says("layer1.q_rope", true, "layer1.q_rope was never written (row 0)");
	guard_says("logits", true, "logits was never written (row 0)");
	guard_says("embed", true, "embed was never written (row 0)");
}

static void a_value_that_was_overrun_is_named(void)
{
	guard_says("layer2.mlp_act", false, "layer2.mlp_act was overrun: something wrote 0 bytes behind its end");
}

/* ---- failures --------------------------------------------------------------------------- */

static void a_sink_that_fails_ends_the_run_and_leaves_the_position(void)
{
	static const int64_t size[] = { 0, 2000 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(size); i++)
			for (int64_t after = 0; after < 40; after += 13) {
				model          m;
				keep           a, b;
				vn_error       err = { "" };
				vn_gpu_options o = on(d, F16);
				model_start(&m, block_plan(small), VN_F16);
				bool    *want = want_all(m.plan, true);
				int32_t *ids = some_ids(T, small.V);
				o.staging = size[i];
				vn_gpu *g = engine(&m, o);
				keep_start(&a, m.plan);
				keep_start(&b, m.plan);
				a.fail_after = after;
				vn_taps taps = { .want = want, .sink = keep_sink(&a) };
				CU_ASSERT_EQUAL(vn_gpu_forward(g, ids, T, &taps, &err), VN_ERR_IO);
				CU_ASSERT_STRING_EQUAL(err.text, "disk full");
				CU_ASSERT_EQUAL(vn_gpu_position(g), 0);
				taps.sink = keep_sink(&b);
				forward(g, ids, T, &taps); /* and the engine still works */
				keep_stop(&a);
				gpu_run(&m, on(d, F16), want, VN_ROWS_ALL, T, 0, &a);
				CU_ASSERT_EQUAL(different(&a, &b, want), 0);
				vn_gpu_destroy(g);
				keep_stop(&a);
				keep_stop(&b);
				free(ids);
				free(want);
				model_stop(&m);
			}
}

static void bad_calls_are_refused_and_change_nothing(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		vn_error err = { "" };
		vn_gpu  *none = NULL;
		model_start(&m, block_plan(small), VN_F16);
		int32_t *ids = some_ids(701, small.V);
		vn_gpu  *g = engine(&m, on(d, F16));
		CU_ASSERT_EQUAL(vn_gpu_forward(g, ids, 0, NULL, &err), VN_ERR_USAGE);
		CU_ASSERT_EQUAL(vn_gpu_forward(g, ids, 701, NULL, &err), VN_ERR_USAGE);
		ids[1] = small.V;
		CU_ASSERT_EQUAL(vn_gpu_forward(g, ids, 2, NULL, &err), VN_ERR_USAGE);
		CU_ASSERT_STRING_EQUAL(err.text, "token 1: id 211 is outside the vocabulary of 211");
		ids[1] = -1;
		CU_ASSERT_EQUAL(vn_gpu_forward(g, ids, 2, NULL, &err), VN_ERR_USAGE);
		CU_ASSERT_EQUAL(vn_gpu_position(g), 0);
		ids[1] = 1;
		forward(g, ids, 4, NULL);
		CU_ASSERT_EQUAL(vn_gpu_forward(g, ids, 697, NULL, &err), VN_ERR_USAGE);
		CU_ASSERT_EQUAL(vn_gpu_position(g), 4);
		vn_gpu_reset(g);
		CU_ASSERT_EQUAL(vn_gpu_position(g), 0);
		vn_gpu_destroy(g);

		vn_gpu_options o = on(d, (vn_policy){ VN_F64, VN_F64 });
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &none, &err), VN_ERR_UNSUPPORTED);
		o = on(d, F16);
		o.device = 1000;
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &none, &err), VN_ERR_DEVICE);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "there is no Vulkan device 1000"));
		m.weight[2].shape.dim[0]++;
		o = on(d, F16);
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &none, &err), VN_ERR_SHAPE);
		m.weight[2].shape.dim[0]--;
		CU_ASSERT_PTR_NULL(none);
		free(ids);
		model_stop(&m);
	}
}

static void constants_that_do_not_fit_are_refused(void)
{
	model    m;
	vn_error err = { "" };
	vn_gpu  *g = NULL;
	vn_gpu_options o = on(0, F16);
	model_start(&m, block_plan(small), VN_F16);
	for (int i = 0; i < m.plan->n_nodes; i++)
		if (m.plan->node[i].op == VN_OP_ATTENTION)
			m.plan->node[i].c.attention.heads = 5;
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_UNSUPPORTED);
	CU_ASSERT_PTR_NULL(g);
	model_stop(&m);
}

static void weights_too_large_for_half_are_counted(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		vn_facts facts = { 0 };
		model_start(&m, block_plan(small), VN_F16);
		float *w = (void *)(uintptr_t)m.weight[2].data;
		w[3] = 65519.9f; /* rounds down to 65504 */
		w[5] = 65520.0f;
		w[9] = -1e30f;
		w[11] = INFINITY; /* was no number before */
		vn_gpu *g = engine(&m, on(d, F16));
		vn_gpu_facts(g, &facts);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed"), "2");
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed_in"), m.plan->weight[2].name);
		vn_gpu_destroy(g);
		model_stop(&m);
	}
}

/* 38 MB of embeddings pass through an upload buffer of 32; 75000 workgroups of
 * outputs are more than a device need start at once. */
static void weights_arrive_the_same_through_an_upload_buffer(void)
{
	const shape_of s = { .layers = 1, .D = 32, .H = 2, .G = 1, .K = 8, .F = 40, .V = 300000, .context = 4, .rotary = 8 };
	for (int d = 0; d < n_devices_; d++)
		for (int guard = 0; guard < 2; guard++) {
			model m;
			keep  a, b;
			model_start(&m, block_plan(s), VN_F32);
			bool          *want = want_all(m.plan, false);
			vn_gpu_options o = on(d, F32);
			gpu_run(&m, o, want, VN_ROWS_ALL, 3, 1, &a);
			vn_device_hide_memory = true;
			o.guard = guard;
			gpu_run(&m, o, want, VN_ROWS_ALL, 3, 1, &b);
			vn_device_hide_memory = false;
			CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

static void the_environment_names_a_device(void)
{
	model    m;
	vn_error err = { "" };
	vn_gpu  *g = NULL;
	vn_gpu_options o = { .policy = F16, .device = -1 };
	model_start(&m, block_plan(small), VN_F16);
	setenv("VERNIER_DEVICE", devices_[0].name, 1);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
	vn_gpu_destroy(g);
	setenv("VERNIER_DEVICE", "no such thing", 1);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_DEVICE);
	CU_ASSERT_STRING_EQUAL(err.text, "no Vulkan device has \"no such thing\" in its name (VERNIER_DEVICE)");
	setenv("VERNIER_DEVICE", "77", 1);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_DEVICE);
	unsetenv("VERNIER_DEVICE");
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
	vn_gpu_destroy(g);
	model_stop(&m);
}

static void a_device_that_lacks_something_says_what(void)
{
	const vn_abilities all = { VK_API_VERSION_1_3, true, true, true, true, 32768, 128 };
	char text[VN_MISSING_TEXT];
	vn_abilities a = all;
	vn_abilities_missing(&a, text);
	CU_ASSERT_STRING_EQUAL(text, "");
	a.storage16 = false;
	vn_abilities_missing(&a, text);
	CU_ASSERT_STRING_EQUAL(text, "16-bit storage (storageBuffer16BitAccess)");
	a.addresses = a.synchronization2 = a.compute = false;
	a.shared_bytes = 16384;
	a.lanes = 64;
	vn_abilities_missing(&a, text);
	CU_ASSERT_STRING_EQUAL(text, "16-bit storage (storageBuffer16BitAccess), buffer device addresses (bufferDeviceAddress), "
	                             "synchronization2, compute queue, 32 KiB of shared memory, workgroups of 128");
	a.api = VK_API_VERSION_1_2;
	vn_abilities_missing(&a, text);
	CU_ASSERT_STRING_EQUAL(text, "Vulkan 1.3");
}

/* A cache directory that cannot be made, then one whose file is cut short and altered. */
static void a_bad_pipeline_cache_is_ignored(void)
{
	char     dir[] = "/tmp/vernier-test-XXXXXX", command[256];
	model    m;
	vn_error err = { "" };
	vn_gpu  *g = NULL;
	vn_gpu_options o = { .policy = F16, .device = devices_[0].index, .cache_dir = "/proc/nowhere" };
	model_start(&m, block_plan(small), VN_F16);
	CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
	vn_gpu_destroy(g);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	o.cache_dir = dir;
	static const struct { const char *change; bool hit; } step[] = {
		{ "true", false }, { "true", true }, { "truncate -s -1 %s/*", false }, { "true", true },
		{ "printf X | dd of=$(ls %s/*) bs=1 seek=40 conv=notrunc status=none", false }, { "rm %s/*", false },
	};
	for (size_t i = 0; i < COUNT(step); i++) {
		snprintf(command, sizeof command, step[i].change, dir);
		CU_ASSERT_EQUAL(system(command), 0);
		CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_OK);
		CU_ASSERT_EQUAL(g->kernels.cache_hit, step[i].hit);
		vn_gpu_destroy(g);
	}
	snprintf(command, sizeof command, "rm -r %s", dir);
	CU_ASSERT_EQUAL(system(command), 0);
	model_stop(&m);
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "f32 is within 1e-5 of the reference", f32_is_within_1e5_of_the_reference },
		{ "f16 is within four floors", f16_is_within_four_floors },
		{ "half sums are within four floors", half_sums_are_within_four_floors },
		{ "a prompt cut in two calls gives the same to rounding", a_prompt_cut_in_two_calls_gives_the_same_to_rounding },
		{ "taps do not change a bit of the logits", taps_do_not_change_a_bit_of_the_logits },
		{ "two runs give the same bits", two_runs_give_the_same_bits },
		{ "a tiny staging buffer gives the same bits as a large one", a_tiny_staging_buffer_gives_the_same_bits_as_a_large_one },
		{ "selected rows are the rows of the whole", selected_rows_are_the_rows_of_the_whole },
		{ "rows outside the call are not handed over", rows_outside_the_call_are_not_handed_over },
		{ "a pass is one submit and every node has its time", a_pass_is_one_submit_and_every_node_has_its_time },
		{ "memory of values is used again", memory_of_values_is_used_again },
		{ "the cache grows past its first room", the_cache_grows_past_its_first_room },
		{ "a guarded run passes and gives the same bits", a_guarded_run_passes_and_gives_the_same_bits },
		{ "a value that was never written is named", a_value_that_was_never_written_is_named },
		{ "a value that was overrun is named", a_value_that_was_overrun_is_named },
		{ "a sink that fails ends the run and leaves the position", a_sink_that_fails_ends_the_run_and_leaves_the_position },
		{ "bad calls are refused and change nothing", bad_calls_are_refused_and_change_nothing },
		{ "constants that do not fit are refused", constants_that_do_not_fit_are_refused },
		{ "weights too large for half are counted", weights_too_large_for_half_are_counted },
		{ "weights arrive the same through an upload buffer", weights_arrive_the_same_through_an_upload_buffer },
		{ "the environment names a device", the_environment_names_a_device },
		{ "a device that lacks something says what", a_device_that_lacks_something_says_what },
		{ "a bad pipeline cache is ignored", a_bad_pipeline_cache_is_ignored },
		CU_TEST_INFO_NULL,
	};
	return run_suite("gpu run", tests);
}
