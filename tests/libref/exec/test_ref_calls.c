/* test_ref_calls.c: calls of the reference: what must not change a bit,
 * and what is refused or stopped. */
#include "tests/support/ref_help.h"

/* ---- what must not change a bit -------------------------------------------------------------- */

static void any_number_of_threads_gives_the_same_bits(void)
{
	int32_t long_id[LONG];

	long_ids(long_id, 64);
	for (size_t i = 0; i < 4; i++) {
		keep a, b;
		run(&a, all_policies[i], 1, "*", long_id, 64);
		for (int threads = 2; threads <= 3; threads++) {
			run(&b, all_policies[i], threads, "*", long_id, 64);
			for (int v = 0; v < a.plan->n_values; v++)
				if (a.plan->value[v].alias_of < 0)
					CU_ASSERT(same_bits(&a, &b, a.plan->value[v].name));
			keep_clear(&b);
		}
		keep_clear(&a);
	}
}

static void numbers_that_the_engine_stores_itself_are_those_it_writes(void)
{
	for (size_t i = 0; i < sizeof all_policies / sizeof *all_policies; i++)
		for (int threads = 1; threads <= 8; threads *= 2) {
			vn_ref *r = engine(vn_model_plan(model), all_policies[i], threads);
			keep    a, b;

			run(&a, all_policies[i], 1, "*", ids, T);
			keep_start(&b, vn_model_plan(model), "*");
			b.places = true;
			forward(r, ids, T, &b);
			CU_ASSERT_EQUAL(b.protocol_errors, 0);
			CU_ASSERT_EQUAL(b.calls, 2 * b.n); /* begun and ended, never written */
			for (int k = 0; k < a.n; k++)
				CU_ASSERT(same_bits(&a, &b, a.plan->value[a.order[k]].name));
			keep_clear(&a);
			keep_clear(&b);
			vn_ref_ops.destroy(r);
		}
}

static void taps_change_no_bit_of_the_logits(void)
{
	const char *glob[] = { "{logits,layer*.attn_probs,layer0.gate_act}", "{logits,layer1.input}", "logits" };

	for (size_t i = 0; i < 4; i++) {
		keep a, b;
		run(&a, all_policies[i], 2, "*", ids, T);
		for (int g = 0; g < 3; g++) {
			run(&b, all_policies[i], 2, glob[g], ids, T);
			CU_ASSERT(same_bits(&a, &b, "logits"));
			keep_clear(&b);
		}
		/* without any tap: the next call sees what this one left in the cache */
		vn_ref *tapped = engine(vn_model_plan(model), all_policies[i], 2),
			   *silent = engine(vn_model_plan(model), all_policies[i], 2);
		keep_clear(&a);
		keep_start(&a, vn_model_plan(model), "*");
		forward(tapped, ids, T - 1, &a);
		forward(silent, ids, T - 1, NULL);
		keep_start(&b, vn_model_plan(model), "logits");
		forward(tapped, ids + T - 1, 1, &a);
		forward(silent, ids + T - 1, 1, &b);
		CU_ASSERT(same_bits(&a, &b, "logits"));
		vn_ref_ops.destroy(tapped);
		vn_ref_ops.destroy(silent);
		keep_clear(&a);
		keep_clear(&b);
	}
}

static void a_second_run_and_a_reset_give_the_same_bits(void)
{
	keep    a, b;
	vn_ref *r = engine(vn_model_plan(model), F32, 2);
	int32_t long_id[LONG];

	long_ids(long_id, 64);
	run(&a, F32, 2, "*", ids, T);
	keep_start(&b, vn_model_plan(model), "*");
	forward(r, long_id, 64, NULL); /* something else first: memory and cache are used */
	vn_ref_ops.reset(r);
	CU_ASSERT_EQUAL(vn_ref_ops.position(r), 0);
	forward(r, ids, T, &b);
	for (int v = 0; v < a.plan->n_values; v++)
		if (a.plan->value[v].alias_of < 0)
			CU_ASSERT(same_bits(&a, &b, a.plan->value[v].name));
	vn_ref_ops.destroy(r);
	keep_clear(&a);
	keep_clear(&b);
}

static void changing_the_last_token_changes_nothing_before_it(void)
{
	int32_t one[64], two[64];

	long_ids(one, 64);
	memcpy(two, one, sizeof two);
	two[63] = (two[63] + 11) % 32;
	for (size_t i = 0; i < 4; i++) {
		keep a, b;
		run(&a, all_policies[i], 2, "*", one, 64);
		run(&b, all_policies[i], 2, "*", two, 64);
		CU_ASSERT_FALSE(same_bits(&a, &b, "logits"));
		for (int v = 0; v < a.plan->n_values; v++)
			if (a.plan->value[v].alias_of < 0)
				CU_ASSERT(rows_same(&a, &b, v, 63));
		keep_clear(&a);
		keep_clear(&b);
	}
}

/* The same, when the last token poisons its own row: the embedding of id 31 is NaN. */
static void a_nan_in_the_last_token_reaches_nothing_before_it(void)
{
	vn_tensor weight[TOY_MOST];
	float     embedding[TOY_V * TOY_D];
	int32_t   one[64], two[64];

	memcpy(weight, vn_model_weights(model), (size_t)vn_model_plan(model)->n_weights * sizeof *weight);
	memcpy(embedding, weight[0].data, sizeof embedding);
	for (int d = 0; d < TOY_D; d++)
		embedding[31 * TOY_D + d] = NAN;
	weight[0].data = embedding;
	for (int t = 0; t < 64; t++)
		one[t] = two[t] = (7 * t + 3) % 31;
	two[63] = 31;
	/* the tied output matrix has the NaN row as well: a NaN in column 31 of the
	 * logits everywhere */
	for (size_t i = 0; i < 4; i++) {
		keep    a, b;
		vn_ref *r;
		CU_ASSERT_EQUAL_FATAL(vn_ref_create(vn_model_plan(model), weight,
		                                    &(vn_ref_options) { .policy = all_policies[i], .threads = 2 }, &r, NULL),
		                      VN_OK);
		keep_start(&a, vn_model_plan(model), "*");
		keep_start(&b, vn_model_plan(model), "*");
		forward(r, one, 64, &a);
		vn_ref_ops.reset(r);
		forward(r, two, 64, &b);
		for (int v = 0; v < a.plan->n_values; v++)
			if (a.plan->value[v].alias_of < 0 && a.plan->value[v].point != VN_POINT_LOGITS)
				CU_ASSERT(rows_same(&a, &b, v, 63));
		vn_ref_ops.destroy(r);
		keep_clear(&a);
		keep_clear(&b);
	}
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void any_split_of_a_prompt_gives_the_logits_of_one_prefill(void)
{
	const vn_policy policy[] = { F32, F64 };
	const double    tolerance[] = { 3e-6, 1e-13 }; /* models.md 7.3 */
	int32_t         long_id[LONG];

	long_ids(long_id, 64);
	for (int i = 0; i < 2; i++)
		for (int step = 1; step <= 33; step += step < 4 ? 1 : 14) {
			keep    a, b;
			vn_ref *r = engine(vn_model_plan(model), policy[i], 1);
			double  worst = 0;
			size_t  n, m;

			run(&a, policy[i], 1, "logits", long_id, 64);
			double *whole = doubles(&a, "logits", &n);
			keep_start(&b, vn_model_plan(model), "logits");
			for (int t = 0; t < 64; t += step) {
				const int here = 64 - t < step ? 64 - t : step;
				forward(r, long_id + t, here, &b);
				double *part = doubles(&b, "logits", &m);
				CU_ASSERT_EQUAL_FATAL(m, (size_t)here * TOY_V);
				for (size_t j = 0; j < m; j++)
					worst = fmax(worst, fabs(part[j] - whole[(size_t)t * TOY_V + j]));
				free(part);
				CU_ASSERT_EQUAL(vn_ref_ops.position(r), t + here);
			}
			CU_ASSERT(worst <= tolerance[i]);
			if (!(worst <= tolerance[i]))
				fprintf(stderr, "steps of %d: %g\n", step, worst);
			vn_ref_ops.destroy(r);
			free(whole);
			keep_clear(&a);
			keep_clear(&b);
		}
}

static void selected_rows_are_those_of_the_whole_and_no_others(void)
{
	const struct {
		vn_tap_rows rows;
		int64_t     first, last;
		int         from, count;
	} row[] = {
		{ VN_ROWS_LAST, 0, 0, 7, 1 },
		{ VN_ROWS_RANGE, 2, 4, 2, 3 },
		{ VN_ROWS_RANGE, 0, 0, 0, 1 },
		{ VN_ROWS_RANGE, 6, 99, 6, 2 },
	};
	keep a, b;

	run(&a, F32, 2, "*", ids, T);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_ref *r = engine(vn_model_plan(model), F32, 2);
		keep_start(&b, vn_model_plan(model), "*");
		b.rows = row[i].rows, b.first = row[i].first, b.last = row[i].last;
		forward(r, ids, T, &b);
		for (int v = 0; v < a.plan->n_values; v++) {
			if (a.plan->value[v].alias_of >= 0)
				continue;
			if (a.plan->value[v].state >= 0) { /* whole, whatever the rows */
				CU_ASSERT(same_bits(&a, &b, a.plan->value[v].name));
				continue;
			}
			const vn_shape *s = &b.value[v].shape;
			const bool      score = a.plan->value[v].size[0] != VN_T;
			CU_ASSERT_EQUAL_FATAL(s->dim[score ? 1 : 0], row[i].count);
			const int64_t outer = score ? TOY_H : 1, n = vn_shape_count(s) / outer / row[i].count;
			for (int64_t o = 0; o < outer; o++)
				CU_ASSERT_EQUAL(memcmp(b.value[v].data + (size_t)(o * row[i].count * n) * 4,
				                       a.value[v].data + (size_t)((o * T + row[i].from) * n) * 4,
				                       (size_t)(row[i].count * n) * 4),
				                0);
		}
		keep_clear(&b);
		vn_ref_ops.destroy(r);
	}
	keep_clear(&a);
}

static void rows_outside_the_call_are_not_handed_over(void)
{
	keep    k;
	vn_ref *r = engine(vn_model_plan(model), F32, 1);

	keep_start(&k, vn_model_plan(model), "*");
	k.rows = VN_ROWS_RANGE, k.first = 5, k.last = 5;
	forward(r, ids, 4, &k);
	CU_ASSERT_EQUAL(k.n, 0);
	forward(r, ids + 4, 4, &k);
	CU_ASSERT(k.n > 0);
	CU_ASSERT_EQUAL(k.value[vn_plan_find(k.plan, "embed")].shape.dim[0], 1);
	vn_ref_ops.destroy(r);
	keep_clear(&k);
}

static void values_come_in_execution_order_and_aliases_once(void)
{
	keep k;

	run(&k, F32, 2, "*", ids, T);
	for (int i = 1; i < k.n; i++)
		CU_ASSERT(k.order[i] > k.order[i - 1]);
	CU_ASSERT_EQUAL(k.n, k.plan->n_values - TOY_L);
	keep_clear(&k);
	run(&k, F32, 2, "layer1.input", ids, T);
	CU_ASSERT_EQUAL(k.n, 1);
	CU_ASSERT_EQUAL(k.order[0], vn_plan_find(k.plan, "layer0.output"));
	keep_clear(&k);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void refused(vn_ref *r, const int32_t *id, int64_t n, const char *word)
{
	const int64_t before = vn_ref_ops.position(r);
	vn_error      e = { "" };

	CU_ASSERT_EQUAL(vn_ref_ops.forward(r, id, n, NULL, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, word));
	if (!strstr(e.text, word))
		fprintf(stderr, "wanted '%s', have '%s'\n", word, e.text);
	CU_ASSERT_EQUAL(vn_ref_ops.position(r), before);
}

static void calls_that_cannot_be_are_refused_and_change_nothing(void)
{
	const int32_t low[] = { 3, -1, 4 }, high[] = { 3, 1, 32 }, far_off[] = { 2147483647 };
	int32_t       long_id[LONG];
	vn_ref       *r = engine(vn_model_plan(model), F32, 1);
	keep          a, b;

	long_ids(long_id, LONG);
	refused(r, ids, 0, "the prompt is empty");
	refused(r, ids, -3, "the prompt is empty");
	refused(r, long_id, 65, "65 tokens exceed the model's context of 64");
	refused(r, low, 3, "token 1: id -1 is outside the vocabulary (0 to 31)");
	refused(r, high, 3, "token 2: id 32");
	refused(r, far_off, 1, "id 2147483647");
	forward(r, ids, 4, NULL);
	refused(r, ids, 0, "the prompt is empty");
	refused(r, long_id, 61, "65 tokens");
	refused(r, high, 3, "token 2");

	/* and the run goes on as if nothing had been said */
	run(&a, F32, 1, "logits", ids, T);
	keep_start(&b, vn_model_plan(model), "logits");
	forward(r, ids + 4, 4, &b);
	CU_ASSERT(nmse(&b, &b, "logits") == 0.0);
	CU_ASSERT(golden_near((double)((float *)(void *)b.value[vn_plan_find(b.plan, "logits")].data)[4 * TOY_V - 1],
	                      -0.02487613));
	vn_ref_ops.destroy(r);
	keep_clear(&a);
	keep_clear(&b);
}

static void the_whole_context_may_be_used_and_no_more(void)
{
	int32_t long_id[LONG];
	vn_ref *r = engine(vn_model_plan(model), F16, 2);

	long_ids(long_id, LONG);
	forward(r, long_id, 63, NULL);
	forward(r, long_id + 63, 1, NULL);
	CU_ASSERT_EQUAL(vn_ref_ops.position(r), 64);
	refused(r, long_id, 1, "65 tokens");
	vn_ref_ops.reset(r);
	forward(r, long_id, 64, NULL);
	vn_ref_ops.destroy(r);
}

static void a_sink_that_fails_ends_the_run_with_its_error(void)
{
	keep    k, good, after;
	vn_ref *r = engine(vn_model_plan(model), F32, 1);
	int     calls;

	run(&good, F32, 1, "*", ids, T);
	calls = good.calls;
	CU_ASSERT(calls >= 3 * good.n);
	for (int i = 0; i < calls; i++) {
		keep_start(&k, vn_model_plan(model), "*");
		k.fail_at = i;
		const vn_taps t = taps_of(&k);
		vn_error      e = { "" };
		CU_ASSERT_EQUAL(vn_ref_ops.forward(r, ids, T, &t, &e), VN_ERR_IO);
		CU_ASSERT_STRING_EQUAL(e.text, "the sink is full");
		CU_ASSERT_EQUAL(vn_ref_ops.position(r), 0);
		CU_ASSERT_EQUAL(k.calls, i + 1); /* nothing is handed over after that */
		keep_clear(&k);
	}
	keep_start(&after, vn_model_plan(model), "*");
	forward(r, ids, T, &after);
	CU_ASSERT(same_bits(&good, &after, "logits"));
	vn_ref_ops.destroy(r);
	keep_clear(&good);
	keep_clear(&after);
}

/* ---- stopping -------------------------------------------------------------------------------- */

typedef struct patience {
	int left, asked;
} patience;

static bool lost(void *ctx)
{
	patience *p = ctx;
	p->asked++;
	return p->left-- <= 0;
}

static void a_run_can_be_stopped_before_every_node_and_changes_nothing(void)
{
	const vn_plan *p = vn_model_plan(model);
	patience       until = { .left = 1000 };
	vn_ref        *r;
	keep           a, b;

	run(&a, F32, 1, "logits", ids, T);
	CU_ASSERT_EQUAL_FATAL(
		vn_ref_create(p, vn_model_weights(model),
	                  &(vn_ref_options) { .policy = F32, .threads = 1, .stop = lost, .stop_ctx = &until }, &r, NULL),
		VN_OK);
	forward(r, ids, 4, NULL);
	CU_ASSERT_EQUAL(until.asked, p->n_nodes + 1); /* once more for the one piece of the logits */
	for (int i = 0; i <= p->n_nodes; i++) {
		vn_error e = { "" };
		until = (patience) { .left = i };
		CU_ASSERT_EQUAL(vn_ref_ops.forward(r, ids + 4, 4, NULL, &e), VN_ERR_INTERRUPTED);
		CU_ASSERT_STRING_EQUAL(e.text, "interrupted");
		CU_ASSERT_EQUAL(until.asked, i + 1);
		CU_ASSERT_EQUAL(vn_ref_ops.position(r), 4);
	}
	until.left = 1000;
	vn_ref_ops.reset(r);
	keep_start(&b, p, "logits");
	forward(r, ids, T, &b);
	CU_ASSERT(same_bits(&a, &b, "logits"));
	vn_ref_ops.destroy(r);
	keep_clear(&a);
	keep_clear(&b);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(any_number_of_threads_gives_the_same_bits),
		TEST(numbers_that_the_engine_stores_itself_are_those_it_writes),
		TEST(taps_change_no_bit_of_the_logits),
		TEST(a_second_run_and_a_reset_give_the_same_bits),
		TEST(changing_the_last_token_changes_nothing_before_it),
		TEST(a_nan_in_the_last_token_reaches_nothing_before_it),
		TEST(any_split_of_a_prompt_gives_the_logits_of_one_prefill),
		TEST(selected_rows_are_those_of_the_whole_and_no_others),
		TEST(rows_outside_the_call_are_not_handed_over),
		TEST(values_come_in_execution_order_and_aliases_once),
		TEST(calls_that_cannot_be_are_refused_and_change_nothing),
		TEST(the_whole_context_may_be_used_and_no_more),
		TEST(a_sink_that_fails_ends_the_run_with_its_error),
		TEST(a_run_can_be_stopped_before_every_node_and_changes_nothing),
		CU_TEST_INFO_NULL,
	};
	return run_ref_suite("ref_calls", tests);
}
