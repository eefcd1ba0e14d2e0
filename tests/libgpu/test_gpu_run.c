/* test_gpu_run.c: whole forward passes: against the reference engine, against
 * themselves, with taps of every kind. */
#include "tests/support/test_gpu_help.h"

#include "libgpu/engine.h"
#include "libref/exec/eval.h"
#include "libref/exec/ref.h"

static const int64_t T = 37;

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

static void ref_run(const model *m, vn_policy policy, const bool *want, int64_t tokens, keep *k)
{
	int32_t *ids = some_ids(tokens, m->plan->vocab);
	vn_ref  *r = NULL;
	vn_error err = { "" };
	keep_start(k, m->plan);
	vn_taps taps = { .want = want, .sink = keep_sink(k) };
	CU_ASSERT_EQUAL_FATAL(
		vn_ref_create(m->plan, m->weight, &(vn_ref_options) { .policy = policy, .threads = 1 }, &r, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_ops.forward(r, ids, tokens, &taps, &err), VN_OK);
	vn_ref_ops.destroy(r);
	free(ids);
}

/* ---- against the reference ---------------------------------------------------------- */

static void f32_is_within_1e5_of_the_reference(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model  m;
		keep   g, r;
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
		if (policy.sums == VN_F16 && !sums_in_half(d))
			continue;
		model  m;
		keep   g, r, f;
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
		const vn_policy policy = sums_in_half(d) ? ACC16 : F16;
		model           m;
		keep            a, b;
		model_start(&m, block_plan(small), VN_F16);
		bool *want = want_all(m.plan, true);
		gpu_run(&m, on(d, policy), want, VN_ROWS_ALL, T, 20, &a);
		gpu_run(&m, on(d, policy), want, VN_ROWS_ALL, T, 20, &b);
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
			model         m;
			keep          a, b;
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
				int           bad = 0;
				for (int v = 0; v < m.plan->n_values; v++) {
					const vn_value *x = &m.plan->value[v];
					const bool      keyed = x->size[x->rank - 1] == VN_S;
					const int64_t   heads = keyed ? x->size[0] : 1, row = keyed ? T : vn_value_row(x);
					if (x->alias_of >= 0)
						continue;
					if (x->state >= 0) { /* whole, whatever the rows */
						CU_ASSERT_EQUAL((int64_t)b.v[v].n, T * row);
						bad += b.v[v].n != a.v[v].n || memcmp(b.v[v].x, a.v[v].x, a.v[v].n * sizeof(float)) != 0;
						continue;
					}
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

/* The device works on the first part while the second is recorded; node by node, with a wait behind
 * each, nothing overlaps. */
static void a_long_pass_goes_in_two_parts_to_the_same_bits(void)
{
	shape_of long_ = small;
	enum { TOKENS = 5 };

	long_.layers = 9;
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  at_once, by_node;
		model_start(&m, block_plan(long_), VN_F16);
		CU_ASSERT_TRUE(m.plan->n_nodes >= 100);
		bool    *want = want_all(m.plan, false);
		int32_t *ids = some_ids(2 * TOKENS, small.V);
		vn_facts facts = { 0 };
		vn_error err = { "" };
		vn_gpu  *g = engine(&m, on(d, F16)), *h = engine(&m, on(d, F16));
		keep_start(&at_once, m.plan);
		keep_start(&by_node, m.plan);
		for (int call = 0; call < 2; call++) {
			forward(g, ids + call * TOKENS, TOKENS, &(vn_taps) { .want = want, .sink = keep_sink(&at_once) });
			CU_ASSERT_EQUAL(vn_gpu_ops.begin(h, ids + call * TOKENS, TOKENS,
			                                 &(vn_taps) { .want = want, .sink = keep_sink(&by_node) }, &err),
			                VN_OK);
			for (int n = 0; n < m.plan->n_nodes; n++) {
				CU_ASSERT_EQUAL(vn_gpu_ops.run(h, n, n + 1, &err), VN_OK);
				CU_ASSERT_EQUAL(vn_gpu_ops.flush(h, &err), VN_OK);
			}
			CU_ASSERT_EQUAL(vn_gpu_ops.end(h, true, &err), VN_OK);
		}
		CU_ASSERT_EQUAL(different(&at_once, &by_node, want), 0);
		vn_gpu_ops.facts(g, &facts);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "submits"), "2");
		vn_gpu_ops.destroy(g);
		vn_gpu_ops.destroy(h);
		keep_stop(&at_once);
		keep_stop(&by_node);
		free(ids);
		free(want);
		model_stop(&m);
	}
}

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
		vn_gpu_ops.facts(g, &facts);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "submits"), "1");
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "weights_overflowed"), "0");
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&facts, "device"), devices_[d].name);
		CU_ASSERT_PTR_NULL(vn_gpu_node_ms(g, &total)); /* nobody asked for them */
		CU_ASSERT_TRUE(total > 0.0 || !vn_facts_get(&facts, "device_ms"));
		vn_gpu_time_nodes(g, true);
		vn_gpu_ops.reset(g);
		forward(g, ids, T, &taps);
		const double *ms = vn_gpu_node_ms(g, &total);
		CU_ASSERT_TRUE(ms || !vn_facts_get(&facts, "device_ms"));
		if (ms) {
			int joined = 0; /* to the command of another node */
			for (int i = 0; i < m.plan->n_nodes; i++) {
				CU_ASSERT_TRUE(ms[i] >= 0.0);
				joined += ms[i] == 0.0;
				sum += ms[i];
			}
			CU_ASSERT_TRUE(total > 0.0 && fabs(sum - total) <= 1e-9 * total + 1e-9);
			CU_ASSERT_TRUE(joined > 0 && ms[0] > 0.0);
		}
		vn_gpu_ops.destroy(g);
		keep_stop(&k);
		free(ids);
		free(want);
		model_stop(&m);
	}
}

/* Bytes of values alive at once, maximum over nodes: a lower bound for any arena. */
static int64_t most_alive(const vn_plan *p, const vn_arena *a, int64_t tokens)
{
	int64_t most = 0;

	for (int i = 0; i < p->n_nodes; i++) {
		int64_t alive = 0;
		for (int v = 0; v < p->n_values; v++) {
			const vn_value *value = &p->value[v];
			if (value->alias_of < 0 && a->slot_of[v] >= 0 && value->node <= i &&
			    (value->node == i || value->last_use >= i))
				alive += (vn_value_wide(p, v) ? 4 : 2) * tokens * vn_value_row(value);
		}
		most = alive > most ? alive : most;
	}
	return most;
}

/* Far fewer values are alive at once than there are. */
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
		CU_ASSERT_TRUE(g->arena.bytes <= 2 * most_alive(m.plan, &g->arena, 300));
		CU_ASSERT_TRUE(g->arena.bytes * 10 <= all);
		vn_gpu_ops.destroy(g);
		free(ids);
		model_stop(&m);
	}
}

/* ---- parts of a pass ------------------------------------------------------------------- */

/* Takes node `name` from elsewhere and computes the rest on the device, then two more tokens all on
 * the device. own: `elsewhere` is an earlier run on the device; else libref's eval. */
static void hybrid(const model *m, int d, const char *name, const keep *whole, bool own, int64_t staging, bool guard,
                   keep *k)
{
	const vn_plan *p = m->plan;
	const int      out = vn_plan_find(p, name);
	const vn_node *n = &p->node[p->value[out].node];
	const int64_t  row = vn_value_row(&p->value[out]), count = T * row;
	int32_t       *ids = some_ids(T + 2, p->vocab);
	uint16_t      *half = malloc((size_t)count * sizeof *half);
	float         *y = malloc((size_t)count * sizeof *y), *in[VN_MAX_IN] = { NULL };
	vn_args        a = { .policy = F16, .threads = 1, .tokens = T, .ids = ids };
	vn_error       err = { "" };
	vn_gpu_options o = on(d, F16);
	o.staging = staging;
	o.guard = guard;
	vn_gpu *g = engine(m, o);
	keep_start(k, p);
	bool   *want = want_all(p, true);
	vn_taps taps = { .want = want, .sink = keep_sink(k) };
	CU_ASSERT_EQUAL(vn_gpu_ops.begin(g, ids, T, &taps, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, p->value[out].node, &err), VN_OK);
	for (int i = 0; i < n->n_in; i++) {
		const int64_t elements = T * vn_value_row(&p->value[n->in[i]]);
		uint16_t     *h = malloc((size_t)elements * sizeof *h);
		a.in[i] = in[i] = malloc((size_t)elements * sizeof *in[i]);
		CU_ASSERT_EQUAL(vn_gpu_ops.read(g, n->in[i], h, &err), VN_OK);
		vn_to_f32(in[i], h, VN_F16, (size_t)elements);
		const int root = vn_plan_root(p, n->in[i]);
		CU_ASSERT_EQUAL(memcmp(in[i], whole->v[root].x, (size_t)elements * sizeof(float)), 0);
		CU_ASSERT_EQUAL(k->v[root].ended, 1); /* taps have come by then */
		free(h);
	}
	for (int i = 0; i < n->n_w; i++)
		a.w[i] = n->w[i] < 0 ? NULL : &m->weight[n->w[i]];
	for (int i = 0; i < n->n_state; i++) /* the first call: its own rows are all there are */
		a.state[i] = in[p->state[n->state[i]].input];
	CU_ASSERT_EQUAL(vn_eval_for(F16)->node(n, &a, row, p->value[out].size[p->value[out].rank - 1], y, &err), VN_OK);
	vn_from_f32(half, VN_F16, own ? whole->v[out].x : y, (size_t)count);
	CU_ASSERT_EQUAL(vn_gpu_ops.write(g, out, half, &err), VN_OK);
	memset(half, 0xFF, (size_t)count * sizeof *half);
	CU_ASSERT_EQUAL(vn_gpu_ops.run(g, p->value[out].node + 1, p->n_nodes, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
	CU_ASSERT_EQUAL(vn_gpu_ops.end(g, true, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_gpu_ops.position(g), T);
	CU_ASSERT_EQUAL(k->v[out].n, 0);
	keep_next(k, p);
	forward(g, ids + T, 2, &taps);
	if (err.text[0])
		printf("\n  %s: %s\n", name, err.text);
	vn_gpu_ops.destroy(g);
	for (int i = 0; i < n->n_in; i++)
		free(in[i]);
	free(want);
	free(half);
	free(y);
	free(ids);
}

static void a_node_may_be_computed_elsewhere(void)
{
	static const char *const name[] = { "layer1.up_proj", "layer1.attn_out", "layer2.q_rope", "layer1.attn_context",
		                                "embed" };
	for (int d = 0; d < n_devices_; d++) {
		model m;
		keep  whole, ref, floor_;
		model_start(&m, block_plan(small), VN_F16);
		bool     *want = want_all(m.plan, true), *logits = calloc((size_t)m.plan->n_values, sizeof *logits);
		const int v = vn_plan_find(m.plan, "logits");
		logits[v] = true;
		keep_start(&whole, m.plan);
		int32_t *ids = some_ids(T + 2, m.plan->vocab);
		vn_gpu  *g = engine(&m, on(d, F16));
		vn_taps  taps = { .want = want, .sink = keep_sink(&whole) };
		forward(g, ids, T, &taps);
		keep_next(&whole, m.plan);
		forward(g, ids + T, 2, &taps);
		vn_gpu_ops.destroy(g);
		ref_run(&m, F32, logits, T + 2, &ref);
		ref_run(&m, F16, logits, T + 2, &floor_);
		for (size_t i = 0; i < COUNT(name); i++)
			for (int how = 0; how < 4; how++) { /* in one buffer and in many, guarded and not */
				keep k;
				if (!is_tried(d))
					continue;
				hybrid(&m, d, name[i], &whole, how != 0, how == 2 ? 1000 : 0, how == 3, &k);
				if (how == 0)
					CU_ASSERT_TRUE(nmse(&k.v[v], &ref.v[v]) <= 4.0 * nmse(&floor_.v[v], &ref.v[v]));
				if (how > 0)
					CU_ASSERT_EQUAL(different(&k, &whole, logits), 0);
				keep_stop(&k);
			}
		keep_stop(&whole);
		keep_stop(&ref);
		keep_stop(&floor_);
		free(ids);
		free(logits);
		free(want);
		model_stop(&m);
	}
}

static void parts_out_of_order_are_refused(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		vn_error err = { "" };
		uint16_t some[64 * 256] = { 0 };
		model_start(&m, block_plan(small), VN_F16);
		const vn_plan *p = m.plan;
		const int      up = vn_plan_find(p, "layer0.up_proj"), gate = vn_plan_find(p, "layer0.gate_proj");
		const int      act = vn_plan_find(p, "layer0.mlp_act"), ctx = vn_plan_find(p, "layer1.attn_context");
		int32_t       *ids = some_ids(T, p->vocab);
		vn_gpu        *g = engine(&m, on(d, F16));
#define NODE(v) (p->value[v].node)
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, 1, &err), VN_ERR_USAGE);
		CU_ASSERT_STRING_EQUAL(err.text, "no call has begun");
		CU_ASSERT_EQUAL(vn_gpu_ops.end(g, true, &err), VN_ERR_USAGE);
		CU_ASSERT_EQUAL(vn_gpu_ops.end(g, false, &err), VN_OK);
		/* an input is missing */
		vn_gpu_ops.begin(g, ids, T, NULL, &err);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, NODE(gate), &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, NODE(up), NODE(act) + 1, &err), VN_ERR_USAGE);
		CU_ASSERT_STRING_EQUAL(err.text, "layer0.mlp_act reads layer0.gate_proj, which was neither run nor written");
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, 1, &err), VN_ERR_USAGE); /* the call has ended */
		/* written late, which is no fault; read before and after its time, which is */
		vn_gpu_ops.begin(g, ids, T, NULL, &err);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, NODE(gate), &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, NODE(gate) + 1, NODE(act), &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.write(g, gate, some, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, NODE(act), NODE(act) + 1, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.read(g, act, some, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.read(g, gate, some, &err), VN_ERR_USAGE);
		vn_gpu_ops.begin(g, ids, T, NULL, &err);
		CU_ASSERT_EQUAL(vn_gpu_ops.read(g, gate, some, &err), VN_ERR_USAGE);
		vn_gpu_ops.begin(g, ids, T, NULL, &err);
		CU_ASSERT_EQUAL(vn_gpu_ops.write(g, gate, some, &err), VN_ERR_USAGE);
		/* backwards, past the end */
		vn_gpu_ops.begin(g, ids, T, NULL, &err);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, 3, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 2, 4, &err), VN_ERR_USAGE);
		vn_gpu_ops.begin(g, ids, T, NULL, &err);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, p->n_nodes + 1, &err), VN_ERR_USAGE);
		/* nothing kept, then an attention without the keys of an earlier call */
		vn_gpu_ops.begin(g, ids, T, NULL, &err);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, 3, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.end(g, false, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.position(g), 0);
		vn_gpu_ops.begin(g, ids, T, NULL, &err);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, NODE(act), &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.end(g, true, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.begin(g, ids, 2, NULL, &err), VN_OK);
		CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, NODE(ctx) + 1, &err), VN_ERR_USAGE);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "layer1.attn_context: its keys lack an earlier call"));
		vn_gpu_ops.reset(g);
		forward(g, ids, T, NULL);
		vn_gpu_ops.begin(g, ids, 2, NULL, &err);
#undef NODE
		vn_gpu_ops.destroy(g); /* a call still open */
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
		bool     *logits = calloc((size_t)m.plan->n_values, sizeof *logits);
		const int v = vn_plan_find(m.plan, "logits");
		logits[v] = true;
		vn_gpu_options o = on(d, F32);
		gpu_run(&m, o, logits, VN_ROWS_ALL, 330, 250, &a); /* 256 rows, then 1024, cut to the context of 700 */
		gpu_run(&m, o, logits, VN_ROWS_ALL, 330, 0, &b);
		CU_ASSERT_TRUE(sqrt(nmse(&a.v[v], &b.v[v])) <= 1e-5);
		o.guard = true;
		keep c;
		gpu_run(&m, o, logits, VN_ROWS_ALL, 330, 250, &c);
		CU_ASSERT_EQUAL(different(&a, &c, logits), 0);
		keep_stop(&a);
		keep_stop(&b);
		keep_stop(&c);
		free(logits);
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "f32 is within 1e-5 of the reference", f32_is_within_1e5_of_the_reference },
		{ "f16 is within four floors", f16_is_within_four_floors },
		{ "half sums are within four floors", half_sums_are_within_four_floors },
		{ "a prompt cut in two calls gives the same to rounding",
		  a_prompt_cut_in_two_calls_gives_the_same_to_rounding },
		{ "taps do not change a bit of the logits", taps_do_not_change_a_bit_of_the_logits },
		{ "two runs give the same bits", two_runs_give_the_same_bits },
		{ "a tiny staging buffer gives the same bits as a large one",
		  a_tiny_staging_buffer_gives_the_same_bits_as_a_large_one },
		{ "selected rows are the rows of the whole", selected_rows_are_the_rows_of_the_whole },
		{ "rows outside the call are not handed over", rows_outside_the_call_are_not_handed_over },
		{ "a long pass goes in two parts, to the same bits", a_long_pass_goes_in_two_parts_to_the_same_bits },
		{ "a pass is one submit and every node has its time", a_pass_is_one_submit_and_every_node_has_its_time },
		{ "memory of values is used again", memory_of_values_is_used_again },
		{ "a node may be computed elsewhere", a_node_may_be_computed_elsewhere },
		{ "parts out of order are refused", parts_out_of_order_are_refused },
		{ "the cache grows past its first room", the_cache_grows_past_its_first_room },
		CU_TEST_INFO_NULL,
	};
	return run_gpu_suite("gpu run", tests);
}
