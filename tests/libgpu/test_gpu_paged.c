/* test_gpu_paged.c: a paged cache gives the bits of a contiguous one, for any order of its blocks.
 * The invariants of models.md 7.3 on a paged cache: test_gpu_invariants.c. */
#include "tests/support/test_gpu_help.h"

#include "libgpu/engine.h"

static const int64_t T = 37;

static vn_gpu_options paged(int d, vn_policy policy, int block, uint64_t scatter)
{
	vn_gpu_options o = on(d, policy);
	o.paged = true;
	o.block = block;
	o.scatter = scatter;
	return o;
}

/* ---- the same bits --------------------------------------------------------------------- */

/* clang-format off */
static const shape_of shapes[] = {
	{ .layers = 2, .D = 44, .H = 6, .G = 2, .K = 10, .F = 75, .V = 111, .context = 300, .rotary = 10 },
	{ .layers = 2, .D = 32, .H = 4, .G = 4, .K = 8, .F = 40, .V = 64, .context = 90, .rotary = 8, .window = 7,
	  .q_norm = 1 },
	{ .layers = 1, .D = 64, .H = 5, .G = 1, .K = 33, .F = 96, .V = 99, .context = 512, .rotary = 32 },
};
/* clang-format on */

/* Taps every value, also values made on demand: scores, probabilities, the cache. */
static void paged_and_contiguous_are_the_same_to_the_bit(void)
{
	static const int     block[] = { 1, 3, 16, 37, 4096 };
	static const int64_t split[] = { 0, 1, 20, 36 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t s = 0; s < COUNT(shapes); s++)
			for (size_t i = 0; i < COUNT(block); i++) {
				const vn_policy policy = i % 2 ? F16 : F32;
				model           m;
				keep            a, b;
				if (!is_tried(d))
					continue;
				model_start(&m, block_plan(shapes[s]), policy.storage);
				bool *want = want_all(m.plan, true);
				gpu_run(&m, on(d, policy), want, VN_ROWS_ALL, T, split[(s + i) % COUNT(split)], &a);
				gpu_run(&m, paged(d, policy, block[i], s + i), want, VN_ROWS_ALL, T, split[(s + i) % COUNT(split)], &b);
				CU_ASSERT_EQUAL(different(&a, &b, want), 0);
				CU_ASSERT_EQUAL(a.n_order, b.n_order);
				keep_stop(&a);
				keep_stop(&b);
				free(want);
				model_stop(&m);
			}
}

static void a_long_run_past_the_first_room_too(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (int guard = 0; guard < 2; guard++) {
			model m;
			keep  a, b;
			model_start(&m, block_plan(small), VN_F16);
			bool          *want = calloc((size_t)m.plan->n_values, sizeof *want);
			vn_gpu_options o = paged(d, F16, 0, 99);
			want[vn_plan_find(m.plan, "logits")] = want[vn_plan_find(m.plan, "layer2.v_cache")] = true;
			o.guard = guard;
			gpu_run(&m, on(d, F16), want, VN_ROWS_LAST, 330, 250, &a); /* 16 blocks, then 44: not all of 64 */
			gpu_run(&m, o, want, VN_ROWS_LAST, 330, 250, &b);
			CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

static void a_tiny_staging_buffer_gathers_the_same(void)
{
	static const int64_t size[] = { 1, 1000 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(size); i++) {
			model m;
			keep  a, b;
			model_start(&m, block_plan(small), VN_F16);
			bool          *want = want_all(m.plan, true);
			vn_gpu_options o = paged(d, F16, 5, 0);
			o.staging = size[i];
			gpu_run(&m, on(d, F16), want, VN_ROWS_RANGE, T, 20, &a);
			gpu_run(&m, o, want, VN_ROWS_RANGE, T, 20, &b);
			CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

/* ---- where the blocks lie ------------------------------------------------------------------ */

static bool in_order(const vn_gpu *g)
{
	for (int64_t i = 0; i < g->cache.pages.used; i++)
		if (g->cache.pages.taken[i] != (uint32_t)i)
			return false;
	return true;
}

/* Each block at most once, and none that does not exist. */
static bool is_consistent(const vn_gpu *g)
{
	const vn_pages *p = &g->cache.pages;
	bool            seen[4096] = { false }, good = p->room <= (int64_t)COUNT(seen);

	for (int64_t i = 0; good && i < p->room; i++) {
		const uint32_t b = i < p->used ? p->taken[i] : p->free[i - p->used];
		good = b < p->room && !seen[b];
		if (good)
			seen[b] = true;
	}
	return good;
}

static void scattered_blocks_give_the_same_bits(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		keep     a, b;
		int32_t *ids = some_ids(T + 1, small.V);
		model_start(&m, block_plan(small), VN_F16);
		bool *want = want_all(m.plan, true);
		for (uint64_t seed = 0; seed < 4; seed++) {
			keep   *k = seed ? &b : &a;
			vn_gpu *g = engine(&m, paged(d, F16, 4, seed));
			keep_start(k, m.plan);
			const vn_taps taps = { .want = want, .sink = keep_sink(k) };
			forward(g, ids, T, &taps);
			keep_next(k, m.plan);
			forward(g, ids + T, 1, &taps);
			CU_ASSERT_EQUAL(g->cache.pages.used, 10);
			CU_ASSERT_TRUE(is_consistent(g));
			CU_ASSERT_EQUAL(in_order(g), seed == 0);
			if (seed) {
				CU_ASSERT_EQUAL(different(&a, &b, want), 0);
				keep_stop(&b);
			}
			vn_gpu_ops.destroy(g);
		}
		keep_stop(&a);
		free(want);
		free(ids);
		model_stop(&m);
	}
}

/* After a reset the blocks of the prompt before are taken again, others first. */
static void blocks_of_another_prompt_give_the_same_bits(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		keep     a, b;
		int32_t *ids = some_ids(100, small.V);
		model_start(&m, block_plan(small), VN_F16);
		bool   *want = want_all(m.plan, true);
		vn_gpu *fresh = engine(&m, paged(d, F16, 4, 0)), *used = engine(&m, paged(d, F16, 4, 0));
		keep_start(&a, m.plan);
		keep_start(&b, m.plan);
		const vn_taps taps_a = { .want = want, .sink = keep_sink(&a) },
					  taps_b = { .want = want, .sink = keep_sink(&b) };
		forward(fresh, ids, T, &taps_a);
		forward(used, ids + 30, 70, NULL);
		vn_gpu_ops.reset(used);
		forward(used, ids, T, &taps_b);
		CU_ASSERT_FALSE(in_order(used));
		CU_ASSERT_TRUE(is_consistent(used));
		CU_ASSERT_EQUAL(different(&a, &b, want), 0);
		for (int i = 1; i < 20; i++) { /* a pool never grows beyond the blocks that the tokens need */
			vn_gpu_ops.reset(used);
			forward(used, ids, 5 * i, NULL);
			forward(used, ids, 7 + i, NULL);
			CU_ASSERT_TRUE(is_consistent(used));
		}
		CU_ASSERT_EQUAL(used->cache.pages.room, 64);
		vn_gpu_ops.destroy(used);
		vn_gpu_ops.destroy(fresh);
		keep_stop(&a);
		keep_stop(&b);
		free(want);
		free(ids);
		model_stop(&m);
	}
}

/* The proof that shaders follow the table: with two entries exchanged behind
 * the engine's back, the cache shows the rows exchanged, and the logits differ. */
static void a_wrong_table_shows_in_the_cache(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		keep     a, b;
		int32_t *ids = some_ids(T, small.V);
		model_start(&m, block_plan(small), VN_F32);
		bool         *want = want_all(m.plan, true);
		const int     k = vn_plan_find(m.plan, "layer1.k_cache"), logits = vn_plan_find(m.plan, "logits");
		const int64_t row = vn_value_row(&m.plan->value[k]);
		for (int wrong = 0; wrong < 2; wrong++) {
			keep   *to = wrong ? &b : &a;
			vn_gpu *g = engine(&m, paged(d, F32, 4, 0));
			keep_start(to, m.plan);
			const vn_taps taps = { .want = want, .sink = keep_sink(to) };
			forward(g, ids, T - 1, NULL);
			if (wrong) {
				const uint32_t was = g->cache.pages.taken[2];
				g->cache.pages.taken[2] = g->cache.pages.taken[5];
				g->cache.pages.taken[5] = was;
			}
			forward(g, ids + T - 1, 1, &taps);
			vn_gpu_ops.destroy(g);
		}
		const size_t part = (size_t)(4 * row);
		CU_ASSERT_EQUAL(memcmp(a.v[k].x + 2 * part, b.v[k].x + 5 * part, part * sizeof(float)), 0);
		CU_ASSERT_EQUAL(memcmp(a.v[k].x + 5 * part, b.v[k].x + 2 * part, part * sizeof(float)), 0);
		CU_ASSERT_EQUAL(memcmp(a.v[k].x, b.v[k].x, 2 * part * sizeof(float)), 0);
		/* pairs moved together: rounding alone (specs/models.md 7.3) */
		CU_ASSERT_TRUE(fabsf(a.v[logits].x[0] - b.v[logits].x[0]) < 1e-4f);
		keep_stop(&a);
		keep_stop(&b);
		free(want);
		free(ids);
		model_stop(&m);
	}
}

/* ---- the rest of the engine ------------------------------------------------------------------ */

static void a_guarded_paged_run_gives_the_same_bits(void)
{
	for (int d = 0; d < n_devices_; d++)
		for (int half = 0; half < 2; half++) {
			model m;
			keep  a, b;
			model_start(&m, block_plan(small), VN_F16);
			bool          *want = want_all(m.plan, true);
			vn_gpu_options o = paged(d, half ? F16 : F32, 3, 5);
			gpu_run(&m, o, want, VN_ROWS_ALL, T, 5, &a);
			o.guard = true;
			o.staging = 3000;
			gpu_run(&m, o, want, VN_ROWS_ALL, T, 5, &b);
			CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

static void a_read_gathers(void)
{
	for (int d = 0; d < n_devices_; d++) {
		model    m;
		vn_error err = { "" };
		int32_t *ids = some_ids(T + 3, small.V);
		model_start(&m, block_plan(small), VN_F16);
		const int    k = vn_plan_find(m.plan, "layer1.k_cache"), node = m.plan->value[k].node;
		const size_t bytes = (size_t)((T + 3) * vn_value_row(&m.plan->value[k])) * 2;
		char        *x[3];
		for (int i = 0; i < 3; i++) {
			vn_gpu_options o = i ? paged(d, F16, 4, 77) : on(d, F16);
			o.staging = i == 2 ? 1000 : 0;
			vn_gpu *g = engine(&m, o);
			x[i] = malloc(bytes);
			forward(g, ids, T, NULL);
			CU_ASSERT_EQUAL(vn_gpu_ops.begin(g, ids + T, 3, NULL, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.run(g, 0, node + 1, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.read(g, k, x[i], &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.run(g, node + 1, m.plan->n_nodes, &err), VN_OK);
			CU_ASSERT_EQUAL(vn_gpu_ops.end(g, true, &err), VN_OK);
			vn_gpu_ops.destroy(g);
			CU_ASSERT_EQUAL(memcmp(x[0], x[i], bytes), 0);
		}
		for (int i = 0; i < 3; i++)
			free(x[i]);
		free(ids);
		model_stop(&m);
	}
}

static void an_engine_says_how_it_keeps_and_what_it_cannot(void)
{
	for (int d = 0; d < n_devices_; d++) {
		static const int bad[] = { -1, 65537 };
		model            m;
		vn_facts         f = { 0 };
		vn_gpu          *g;
		vn_error         err = { "" };
		model_start(&m, block_plan(shapes[1]), VN_F16);
		g = engine(&m, paged(d, F16, 0, 0));
		vn_gpu_ops.facts(g, &f);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "kv"), "paged");
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "block_size"), "16");
		vn_gpu_ops.destroy(g);
		g = engine(&m, on(d, F16));
		f = (vn_facts) { 0 };
		vn_gpu_ops.facts(g, &f);
		CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "kv"), "contiguous");
		CU_ASSERT_PTR_NULL(vn_facts_get(&f, "block_size"));
		vn_gpu_ops.destroy(g);
		for (size_t i = 0; i < COUNT(bad); i++) {
			vn_gpu_options o = paged(d, F16, bad[i], 0);
			CU_ASSERT_EQUAL(vn_gpu_create(m.plan, m.weight, &o, &g, &err), VN_ERR_USAGE);
			CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "1 to 65536"));
		}
		model_stop(&m);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "paged and contiguous are the same to the bit", paged_and_contiguous_are_the_same_to_the_bit },
		{ "a long run past the first room too", a_long_run_past_the_first_room_too },
		{ "a tiny staging buffer gathers the same", a_tiny_staging_buffer_gathers_the_same },
		{ "scattered blocks give the same bits", scattered_blocks_give_the_same_bits },
		{ "blocks of another prompt give the same bits", blocks_of_another_prompt_give_the_same_bits },
		{ "a wrong table shows in the cache", a_wrong_table_shows_in_the_cache },
		{ "a guarded paged run gives the same bits", a_guarded_paged_run_gives_the_same_bits },
		{ "a read gathers", a_read_gathers },
		{ "an engine says how it keeps and what it cannot", an_engine_says_how_it_keeps_and_what_it_cannot },
		CU_TEST_INFO_NULL
	};
	return run_gpu_suite("gpu paged", tests);
}
