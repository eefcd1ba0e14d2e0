/* test_gpu_attention.c: attention over keys in parts and in tiles, against a double loop.
 *
 * Queries, keys and values are columns of one table, so that a test sets every number of
 * them. Calls of up to 8 tokens go another way than longer ones (libgpu/ops_attention.c),
 * and either has its keys in parts when there are many. */
#include "tests/support/test_gpu_truth.h"

typedef struct heads {
	int H, G, K, window;
} heads;

/* Columns of the table. */
static int columns(const heads *s, int n)
{
	int row = 0;

	for (int i = 0; i < n; i++)
		row += (s[i].H + 2 * s[i].G) * s[i].K;
	return row;
}

/* table (C, columns): a token's id is its position. One layer for each of the n: an engine
 * takes long to create. Where there are four heads, they have sinks. */
static vn_plan *attention_plan(const heads *s, int n, int context)
{
	const int   row = columns(s, n);
	vn_builder *b = vn_plan_begin(n, context, context);
	vn_plan    *p = NULL;
	vn_error    err = { "" };

	vn_plan_layer(b, 0);
	const int x = vn_plan_embed(b, vn_plan_weight(b, "table", 2, (int64_t[]) { context, row }), VN_POINT_INPUT);
	for (int i = 0, at = 0; i < n; at += (s[i].H + 2 * s[i].G) * s[i].K, i++) {
		const int Q = s[i].H * s[i].K, KV = s[i].G * s[i].K;
		vn_plan_layer(b, i);
		const int q = vn_plan_slice(b, x, (vn_columns) { row, at, Q }, s[i].H, VN_POINT_Q_PROJ);
		const int k = vn_plan_slice(b, x, (vn_columns) { row, at + Q, KV }, s[i].G, VN_POINT_K_PROJ);
		const int v = vn_plan_slice(b, x, (vn_columns) { row, at + Q + KV, KV }, s[i].G, VN_POINT_V_PROJ);
		const int y = vn_plan_attention(b, q, k, v, 1.0 / sqrt(s[i].K), s[i].window);
		if (s[i].H == 4)
			vn_plan_sinks(b, y, vn_plan_weight(b, "sinks", 1, (int64_t[]) { 4 }));
	}
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, &err), VN_OK);
	return p;
}

static float *table_row(const model *m, int64_t token)
{
	return (float *)(uintptr_t)m->weight[0].data + token * m->weight[0].shape.dim[1];
}

/* Scores of about 4, so that single keys count and maxima move from part to part; sinks below and
 * above them. */
static void start(model *m, const heads *s, int n, int context, vn_policy policy)
{
	model_start(m, attention_plan(s, n, context), policy.storage);
	for (int64_t t = 0; t < context; t++)
		for (int i = 0, at = 0; i < n; at += (s[i].H + 2 * s[i].G) * s[i].K, i++)
			for (int d = 0; d < s[i].H * s[i].K; d++)
				table_row(m, t)[at + d] *= 8.0f;
	for (int h = 0; h < 4 && m->plan->n_weights > 1; h++)
		((float *)(uintptr_t)m->weight[1].data)[h] = 5.0f * (float)h - 2.0f;
}

/* The second run of the suite tests cooperative matrices: only they differ from the first run. */
static bool by_coop;

static bool is_new(const heads *s, int n, vn_policy policy, int64_t tokens)
{
	bool some = !by_coop;

	for (int i = 0; i < n; i++)
		some = some || ((s[i].K % 8 == 0 || s[i].K > 128) && policy.storage == VN_F16 && tokens > 8);
	return some;
}

static int32_t *positions_of(int64_t n)
{
	int32_t *ids = malloc((size_t)n * sizeof *ids);
	for (int64_t i = 0; i < n; i++)
		ids[i] = (int32_t)i;
	return ids;
}

static int context_of(const model *m)
{
	return vn_plan_find(m->plan, "layer0.attn_context");
}

/* `tokens` behind `past`: keeps queries, keys and values of all, the rest of the last call.
 * all: scores and probabilities, too. */
static bool run(const model *m, vn_gpu_options o, int64_t past, int64_t tokens, bool all, keep *k)
{
	bool    *want = calloc((size_t)m->plan->n_values, sizeof *want), *last = want_all(m->plan, all);
	int32_t *ids = positions_of(past + tokens);
	vn_gpu  *g = engine(m, o);
	bool     good = g != NULL;

	keep_start(k, m->plan);
	for (int i = 0; i < m->plan->n_values; i++)
		want[i] = m->plan->value[i].point <= VN_POINT_V_PROJ || m->plan->value[i].point == VN_POINT_ATTN_CONTEXT;
	vn_taps before = { .want = want, .sink = keep_sink(k) }, taps = { .want = last, .sink = keep_sink(k) };
	good = good && (past == 0 || forward(g, ids, past, &before) == VN_OK);
	keep_next(k, m->plan);
	good = good && forward(g, ids + past, tokens, &taps) == VN_OK;
	vn_gpu_ops.destroy(g);
	free(ids);
	free(last);
	free(want);
	return good;
}

static void check_on(int d, const heads *s, int n, vn_policy policy, int64_t past, int64_t tokens, bool all)
{
	model    m;
	keep     k;
	int32_t *ids = positions_of(past + tokens);

	start(&m, s, n, (int)(past + tokens), policy);
	if (run(&m, on(d, policy), past, tokens, all, &k))
		for (int v = 0; v < m.plan->n_values; v++)
			if (k.v[v].n && m.plan->value[v].alias_of < 0) {
				const int64_t bad = wrong(&m, &k, v, policy, ids, past, tokens);
				CU_ASSERT_EQUAL(bad, 0);
				if (bad)
					printf("  H %d G %d K %d window %d and others\n", s->H, s->G, s->K, s->window);
			}
	free(ids);
	keep_stop(&k);
	model_stop(&m);
}

/* One of many combinations. */
static void check_layers(const heads *s, int n, vn_policy policy, int64_t past, int64_t tokens, bool all)
{
	for (int d = 0; d < n_devices_; d++)
		if (is_new(s, n, policy, tokens) && is_tried(d))
			check_on(d, s, n, policy, past, tokens, all);
}

static void check(heads s, vn_policy policy, int64_t past, int64_t tokens, bool all)
{
	check_layers(&s, 1, policy, past, tokens, all);
}

static void check_one(heads s, vn_policy policy, int64_t past, int64_t tokens, bool slow_too)
{
	for (int d = 0; d < n_devices_; d++)
		if (is_new(&s, 1, policy, tokens) && (slow_too || !is_slow(d)))
			check_on(d, &s, 1, policy, past, tokens, false);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void one_token_is_right_behind_any_number_of_keys(void)
{
	static const int64_t past[] = { 0, 1, 126, 127, 128, 129, 255, 700 };
	for (size_t i = 0; i < COUNT(past); i++) {
		check((heads) { 4, 2, 16, 0 }, F32, past[i], 1, true);
		check((heads) { 3, 1, 24, 0 }, F16, past[i], 1, true);
	}
}

static void one_token_is_right_behind_thousands(void)
{
	check_one((heads) { 2, 1, 8, 0 }, F16, 4096, 1, false);
	check_one((heads) { 2, 1, 8, 0 }, F16, 1500, 1, true);
}

/* More than 64 parts of 128 keys: a workgroup goes over its part in two steps. */
static void a_part_may_be_longer_than_a_workgroup(void)
{
	check_one((heads) { 1, 1, 4, 0 }, F32, 8200, 2, false);
}

static void few_and_many_tokens_are_right(void)
{
	static const int64_t tokens[] = { 2, 8, 9, 64, 65, 300 };
	for (size_t i = 0; i < COUNT(tokens); i++) {
		check((heads) { 4, 2, 16, 0 }, i % 2 ? F32 : F16, 0, tokens[i], true);
		check((heads) { 3, 3, 12, 0 }, i % 2 ? F16 : F32, 330, tokens[i], true);
	}
}

/* ---- widths, windows, pages ------------------------------------------------------------------ */

/* Are all devices processors? */
static bool only_slow(void)
{
	for (int d = 0; d < n_devices_; d++)
		if (!is_slow(d))
			return false;
	return true;
}

/* The widest head of a plan decides which code all its heads run (kernels.c). LLVM takes ten
 * seconds to compile a shader of wide heads, so if all devices are processors, the widest are tried
 * in f32 only. */
static void heads_of_any_width_are_right(void)
{
	static const struct {
		heads of[5];
		int   n;
	} width[] = {
		{ { { 4, 2, 1, 0 }, { 2, 1, 7, 0 }, { 2, 2, 63, 0 }, { 4, 2, 64, 0 } }, 4 },
		{ { { 2, 1, 65, 0 }, { 4, 2, 72, 0 }, { 2, 1, 80, 0 }, { 2, 2, 96, 0 }, { 4, 2, 128, 0 } }, 5 },
		{ { { 4, 2, 130, 0 }, { 2, 1, 255, 0 }, { 2, 2, 256, 0 } }, 3 },
	};
	for (size_t i = 0; i < COUNT(width); i++)
		for (int f32 = 0; f32 < 2; f32++) {
			if (i == 2 && !f32 && !by_coop && only_slow())
				continue;
			check_layers(width[i].of, width[i].n, f32 ? F32 : F16, 140, 2, false);
			check_layers(width[i].of, width[i].n, f32 ? F32 : F16, 150, 70, false);
			check_layers(width[i].of, width[i].n, f32 ? F32 : F16, 3, 66, false);
		}
}

static void windows_that_pass_tiles_and_parts_over_are_right(void)
{
	static const heads of[] = {
		{ 3, 1, 8, 1 },   { 4, 2, 8, 63 },   { 3, 1, 8, 64 },  { 4, 1, 8, 65 },
		{ 3, 1, 8, 200 }, { 2, 1, 101, 77 }, { 2, 1, 201, 77 }
	}; /* the last only if a device is no processor */
	static const int64_t tokens[] = { 1, 3, 9, 130 };
	for (size_t t = 0; t < COUNT(tokens); t++)
		for (int f32 = 0; f32 < 2; f32++)
			check_layers(of, COUNT(of) - (!by_coop && only_slow()), f32 ? F32 : F16, 400, tokens[t], true);
}

/* A processor tries only the narrowest heads. The tests above try wider ones without pages. */
static void pages_give_the_same_bits(void)
{
	static const struct {
		heads of[2];
		int   n;
	} width[] = { { { { 4, 2, 16, 0 } }, 1 },
		          { { { 2, 1, 65, 0 }, { 2, 1, 80, 77 } }, 2 },
		          { { { 2, 2, 136, 0 } }, 1 } };
	static const int     block[] = { 1, 16, 37, 200 };
	static const int64_t tokens[] = { 1, 8, 9, 70 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(width); i++)
			for (size_t t = 0; t < COUNT(tokens); t++) {
				const vn_policy policy = (i + t) % 2 ? F32 : F16;
				vn_gpu_options  o = on(d, policy);
				model           m;
				keep            a, b;
				if ((i > 0 && is_slow(d)) || !is_new(width[i].of, width[i].n, policy, tokens[t]) || !is_tried(d))
					continue;
				start(&m, width[i].of, width[i].n, (int)(310 + tokens[t]), policy);
				bool *want = want_all(m.plan, true);
				o.paged = true;
				o.block = block[t];
				o.scatter = 5;
				if (run(&m, on(d, policy), 310, tokens[t], true, &a) && run(&m, o, 310, tokens[t], true, &b))
					CU_ASSERT_EQUAL(different(&a, &b, want), 0);
				keep_stop(&a);
				keep_stop(&b);
				free(want);
				model_stop(&m);
			}
}

/* ---- NaN and infinity ------------------------------------------------------------------------ */

/* Rows [from, to) of the context: not finite where `bad`, finite elsewhere. */
static void expect_bad(const model *m, const keep *k, int64_t from, int64_t to, bool bad)
{
	const int64_t width = vn_value_row(&m->plan->value[context_of(m)]);
	int64_t       off = 0;
	for (int64_t e = from * width; e < to * width; e++)
		off += !isnan(k->v[context_of(m)].x[e]) == bad;
	CU_ASSERT_EQUAL(off, 0);
}

/* Token 100 is NaN: those before it and those whose window is past it are not. */
static void a_nan_reaches_those_who_see_it_alone(void)
{
	static const int64_t split[] = { 0, 97, 100, 120, 200 };
	enum { ALL = 260, BAD = 100, WINDOW = 70 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(split); i++)
			for (int few = 0; few < 2; few++) {
				const heads   s = { 2, 1, i % 2 ? 200 : 24, WINDOW };
				const int64_t tokens = few ? 5 : ALL - split[i];
				model         m;
				keep          k;
				if (!is_new(&s, 1, F16, tokens) || !is_tried(d))
					continue;
				start(&m, &s, 1, ALL, F16);
				for (int e = s.H * s.K; e < (s.H + 2 * s.G) * s.K; e++)
					table_row(&m, BAD)[e] = NAN;
				if (run(&m, on(d, F16), split[i], tokens, false, &k)) {
					const int64_t end = split[i] + tokens, upto = BAD + WINDOW < end ? BAD + WINDOW : end;
					expect_bad(&m, &k, 0, BAD < end ? BAD : end, false);
					expect_bad(&m, &k, BAD, upto, true);
					expect_bad(&m, &k, BAD + WINDOW, end, false);
				}
				keep_stop(&k);
				model_stop(&m);
			}
}

/* Keys whose score is minus infinity, in float16 -2e6, count for nothing though their values are
 * large: in whole tiles and parts from the first on, in the midst, up to the last but one. */
static void keys_of_very_low_score_count_for_nothing(vn_policy policy)
{
	const bool wide = policy.storage == VN_F32;

	static const int     from[] = { 0, 128, 0, 200 }, to[] = { 128, 256, 300, 319 };
	static const int64_t tokens[] = { 1, 8, 40 };
	enum { ALL = 320 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t i = 0; i < COUNT(from); i++)
			for (size_t t = 0; t < COUNT(tokens); t++) {
				const heads s = { 2, 1, i % 2 ? 136 : 8, 0 };
				model       m;
				keep        k;
				int64_t     bad = 0;
				if (!is_new(&s, 1, policy, tokens[t]) || !is_tried(d))
					continue;
				start(&m, &s, 1, ALL, policy);
				for (int j = 0; j < ALL; j++) {
					table_row(&m, j)[0] = table_row(&m, j)[s.K] = 100.0f; /* of either head's query */
					table_row(&m, j)[s.H * s.K] = 0.0f;
					table_row(&m, j)[(s.H + s.G) * s.K] = 1.0f;
				}
				for (int j = from[i]; j < to[i]; j++) {
					table_row(&m, j)[s.H * s.K] = wide ? -3e38f : -65504.0f;
					table_row(&m, j)[(s.H + s.G) * s.K] = wide ? 1e30f : 60000.0f;
				}
				if (run(&m, on(d, policy), ALL - tokens[t], tokens[t], false, &k))
					for (int64_t r = to[i] > ALL - tokens[t] ? to[i] : ALL - tokens[t]; r < ALL; r++)
						for (int h = 0; h < s.H; h++)
							bad += !(fabs((double)k.v[context_of(&m)].x[(r * s.H + h) * s.K] - 1.0) <
							         (wide ? 1e-5 : 1e-3));
				CU_ASSERT_EQUAL(bad, 0);
				keep_stop(&k);
				model_stop(&m);
			}
}

static void keys_of_score_minus_infinity_count_for_nothing(void)
{
	keys_of_very_low_score_count_for_nothing(F32);
	keys_of_very_low_score_count_for_nothing(F16);
}

/* ---- taps and repeats ------------------------------------------------------------------------ */

static void taps_and_a_second_run_change_no_bit(void)
{
	static const int64_t tokens[] = { 1, 8, 40 };
	for (int d = 0; d < n_devices_; d++)
		for (size_t t = 0; t < COUNT(tokens); t++) {
			const heads s[] = { { 4, 2, 33, 0 }, { 4, 2, 40, 0 }, { 2, 1, 201, 0 } };
			model       m;
			keep        a, b;
			if (!is_new(s, COUNT(s), F16, tokens[t]))
				continue;
			start(&m, s, COUNT(s), (int)(300 + tokens[t]), F16);
			bool *want = want_all(m.plan, false);
			if (run(&m, on(d, F16), 300, tokens[t], false, &a) && run(&m, on(d, F16), 300, tokens[t], true, &b))
				CU_ASSERT_EQUAL(different(&a, &b, want), 0);
			keep_stop(&a);
			keep_stop(&b);
			free(want);
			model_stop(&m);
		}
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "one token is right behind any number of keys", one_token_is_right_behind_any_number_of_keys },
		{ "one token is right behind thousands", one_token_is_right_behind_thousands },
		{ "a part may be longer than a workgroup", a_part_may_be_longer_than_a_workgroup },
		{ "few and many tokens are right", few_and_many_tokens_are_right },
		{ "heads of any width are right", heads_of_any_width_are_right },
		{ "windows that pass tiles and parts over are right", windows_that_pass_tiles_and_parts_over_are_right },
		{ "pages give the same bits", pages_give_the_same_bits },
		{ "a NaN reaches those who see it alone", a_nan_reaches_those_who_see_it_alone },
		{ "keys of score minus infinity count for nothing", keys_of_score_minus_infinity_count_for_nothing },
		{ "taps and a second run change no bit", taps_and_a_second_run_change_no_bit },
		CU_TEST_INFO_NULL
	};
	int       bad = 0;
	bool      coop = false;
	vn_device dev;

	if (find_devices() == 0)
		return 77;
	use_kept_devices();
	for (int d = 0; d < n_devices_; d++)
		if (vn_device_open(&dev, devices_[d].index, false, false, NULL) == VN_OK) {
			coop = coop || dev.coop;
			vn_device_close(&dev);
		}
	vn_device_no_coop = true;
	bad |= run_suite("gpu attention", tests);
	vn_device_no_coop = false;
	by_coop = true;
	if (coop)
		bad |= run_suite("gpu attention by cooperative matrices", tests);
	else
		printf("skipped: no device has cooperative matrices\n");
	close_kept_devices();
	free(devices_);
	return bad;
}
