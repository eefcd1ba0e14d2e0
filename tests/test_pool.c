/* test_pool.c: steps of one token are judged together where one row says nothing
 * (compare/pool.c) or one small tensor (compare/few.c), in recordings made here
 * number by number. */
#include "compare/compare.h"
#include "capture/store.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { V_MOST = 160, D = 4, PROMPT = 20, MOST = 64 };

static char           dir[] = "/tmp/vn-pool-XXXXXX";
static vn_plan       *plan;
static int            V = 16; /* scores of a row: a small tensor */
static const int32_t *decoded; /* instead of the usual ids */

static const char *at(const char *name)
{
	static char path[4][80];
	static int  turn;
	char *p = path[turn++ % 4];
	snprintf(p, sizeof *path, "%s/%s", dir, name);
	return p;
}

static void make_plan(void)
{
	vn_builder *b = vn_plan_begin(1, V, 1024);
	const int   table = vn_plan_weight(b, "embed", 2, (int64_t[]){ V, D });

	vn_plan_layer(b, -1);
	vn_plan_linear(b, vn_plan_embed(b, table, VN_POINT_EMBED), table, -1, 0, VN_POINT_LOGITS);
	if (vn_plan_finish(b, &plan, NULL))
		abort();
}

/* Scores of step i, off[i] times a shape of errors away from the reference's. */
static void scores_of(int step, int row, double off, float *x)
{
	for (int k = 0; k < V; k++)
		x[k] = (float)(3 * sin(1.7 * k + 2.3 * step + 0.9 * row) + off * cos(5.1 * k + step));
}

/* A recording of PROMPT tokens and n steps behind them; off[0] is the prompt's. */
static void record(const char *name, int n, const double *off)
{
	const int     v = vn_plan_find(plan, "logits");
	int32_t       ids[PROMPT + MOST], positions[PROMPT + MOST];
	vn_store     *s = NULL;
	vn_facts      f = { 0 };
	vn_error      err = { "" };
	vn_status     st;

	for (int i = 0; i < PROMPT + n; i++) {
		ids[i] = decoded && i >= PROMPT ? decoded[i - PROMPT] : i % V;
		positions[i] = i;
	}
	vn_facts_set(&f, "engine", "test");
	vn_facts_set(&f, "precision", "f16");
	st = vn_store_create(at(name), true, plan, &s, &err);
	if (!st)
		st = vn_store_run(s, &f, ids, positions, PROMPT + n, &err);
	for (int i = 0; !st && i <= n; i++) {
		const int      rows = i ? 1 : PROMPT;
		const vn_sink  k = vn_store_sink(s);
		const vn_shape shape = { .rank = 2, .dim = { rows, V } };
		float          x[PROMPT * V_MOST];
		for (int r = 0; r < rows; r++)
			scores_of(i, r, off[i], x + r * V);
		(void)((st = vn_store_step(s, i, i ? PROMPT + i - 1 : 0, rows, 0, rows, &err)) ||
		       (st = k.begin(k.ctx, v, VN_F32, &shape, &err)) || (st = k.write(k.ctx, x, (size_t)(rows * V), &err)) ||
		       (st = k.end(k.ctx, &err)));
	}
	if (!st)
		st = vn_store_commit(&s, &err);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
}

typedef struct trial {
	vn_comparison c;
	vn_compare_options o;
	vn_status st;
	vn_error  err;
} trial;

static void compare(trial *t, const char *floor_file, const char *limits)
{
	t->c = (vn_comparison) { .options = &t->o };
	t->st = vn_limits_parse("t.yaml", limits, strlen(limits), &t->c.limits, &t->err);
	if (!t->st)
		t->st = vn_recording_open(at("ref"), &t->c.ref, &t->err);
	if (!t->st)
		t->st = vn_recording_open(at("cand"), &t->c.cand, &t->err);
	if (!t->st && floor_file)
		t->st = vn_recording_open(at(floor_file), &t->c.floor, &t->err);
	if (!t->st)
		t->st = vn_compare(&t->c, &t->err);
}

static void finish(trial *t)
{
	vn_comparison_finish(&t->c);
	vn_limits_destroy(t->c.limits);
	vn_recording_close(t->c.floor);
	vn_recording_close(t->c.cand);
	vn_recording_close(t->c.ref);
}

/* ref and floor, and a candidate whose step i is factor[i] floors away. */
static void make(int n, const double *factor, int exact)
{
	double off[MOST + 1] = { 0 };

	record("ref", n, off);
	for (int i = 0; i <= n; i++)
		off[i] = i == exact ? 0 : 1e-3;
	record("floor", n, off);
	for (int i = 0; i <= n; i++)
		off[i] = 1e-3 * factor[i];
	record("cand", n, off);
}

static void all(double *factor, int n, double x)
{
	for (int i = 0; i <= n; i++)
		factor[i] = i ? x : 1;
}

static const char over[] = "version: 1\nrules: [ { match: logits, kl_mean_over_floor: 4, without_floor: { kl_mean: 1.0e-2 } } ]\n";

static int failing(const trial *t)
{
	int n = 0;
	for (int i = 0; i < t->c.n_points; i++)
		n += t->c.point[i].fails;
	return n;
}

/* ---- tests ---------------------------------------------------------------------- */

static void a_step_whose_floor_is_nought_by_chance_is_no_finding(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	all(factor, 32, 1);
	make(32, factor, 7);
	compare(&t, "floor", over);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_TRUE(t.c.within);
	CU_ASSERT_EQUAL_FATAL(t.c.n_pools, 1);
	CU_ASSERT_EQUAL(t.c.pool[0].n, 32);
	CU_ASSERT_EQUAL(t.c.point[t.c.pool[0].first].step, 1);
	CU_ASSERT_EQUAL(t.c.point[t.c.pool[0].last].step, 32);
	finish(&t);
}

static void steps_that_are_off_together_are_charged_once_where_it_is_worst(void)
{
	double factor[MOST + 1], sum = 0, most = 0;
	trial  t = { 0 };

	all(factor, 32, 3); /* nine times the divergence */
	factor[21] = 6;
	make(32, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT_EQUAL(failing(&t), 1);
	CU_ASSERT_EQUAL(t.c.point[t.c.first].step, 21);
	const vn_checkpoint *p = &t.c.point[t.c.first];
	CU_ASSERT(p->worst >= 0 && p->check[p->worst].metric == VN_M_KL_MEAN && p->check[p->worst].steps == 32);
	CU_ASSERT(p->check[p->worst].value > 8 && p->check[p->worst].value < 12);
	for (int i = 0; i < t.c.n_points; i++)
		if (t.c.point[i].step > 0) {
			sum += t.c.point[i].m.value[VN_M_KL_MEAN];
			most = fmax(most, t.c.point[i].m.value[VN_M_KL_MEAN]);
		}
	CU_ASSERT_DOUBLE_EQUAL(t.c.pool[0].value[VN_M_KL_MEAN], sum / 32, 1e-15);
	CU_ASSERT_EQUAL(t.c.pool[0].value[VN_M_KL_MAX], most);
	CU_ASSERT_EQUAL(t.c.pool[0].value[VN_M_KL_P99], most); /* of 32 the 99th hundredth is the last */
	finish(&t);
}

static void the_prompt_is_judged_by_itself(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	all(factor, 16, 1);
	factor[0] = 3;
	make(16, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT_EQUAL(failing(&t), 1);
	CU_ASSERT_EQUAL(t.c.point[t.c.first].step, 0);
	finish(&t);
}

static void few_rows_have_no_ratio_but_a_cap(void)
{
	static const char lower[] = "version: 1\nrules: [ { match: logits, kl_mean_over_floor: 4, without_floor: { kl_mean: 1.0e-6 } } ]\n";
	static const char bare[] = "version: 1\nrules: [ { match: logits, kl_mean_over_floor: 4 } ]\n";
	double factor[MOST + 1];
	trial  t = { 0 };

	all(factor, 4, 3);
	make(4, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT_TRUE(t.c.within);
	finish(&t);
	compare(&t, "floor", lower);
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT_EQUAL(failing(&t), 1);
	finish(&t);
	compare(&t, "floor", bare); /* nothing that could pass it */
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.c.point[t.c.first].check[0].note, "too few rows"));
	finish(&t);
}

static void a_share_is_of_all_steps(void)
{
	static const char share[] = "version: 1\nrules: [ { match: logits, argmax_agreement: 0.95 } ]\n";
	double factor[MOST + 1];
	trial  t = { 0 };

	for (int bad = 1; bad <= 3; bad += 2) {
		all(factor, 40, 0);
		for (int i = 0; i < bad; i++)
			factor[5 + 10 * i] = 1e5; /* a hundred times the scores themselves */
		make(40, factor, -1);
		compare(&t, NULL, share);
		CU_ASSERT_EQUAL(t.st, VN_OK);
		CU_ASSERT_EQUAL(t.c.within, bad == 1); /* 97.5 %, and 92.5 % */
		CU_ASSERT_DOUBLE_EQUAL(t.c.pool[0].value[VN_M_ARGMAX_AGREEMENT], 1 - bad / 40.0, 1e-12);
		CU_ASSERT_EQUAL(failing(&t), bad == 1 ? 0 : 1);
		finish(&t);
	}
}

static void a_step_without_a_number_fails_them_all(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	all(factor, 16, 1);
	factor[3] = NAN;
	make(16, factor, -1);
	compare(&t, "floor", over);
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT_TRUE(isnan(t.c.pool[0].value[VN_M_KL_MEAN]));
	CU_ASSERT_EQUAL(t.c.point[t.c.pool[0].worst].step, 3);
	CU_ASSERT_EQUAL(t.c.point[t.c.first].step, 3);
	finish(&t);
}

static const char ratios[] = "version: 1\ndefaults: { nmse_over_floor: 4, worst_token_nmse_over_floor: 16 }\n";

static void a_small_tensor_is_no_finding_where_its_floor_is_nought_by_chance(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	all(factor, 32, 1);
	make(32, factor, 7);
	compare(&t, "floor", ratios);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_TRUE(t.c.within);
	CU_ASSERT_EQUAL_FATAL(t.c.n_few, 1);
	CU_ASSERT_EQUAL(t.c.few[0].n, 32); /* not the prompt */
	CU_ASSERT_EQUAL(t.c.few[0].numbers, 32 * V);
	CU_ASSERT_EQUAL(t.c.n_status[VN_WITHIN], 33); /* those that are judged at another step are not without limits */
	finish(&t);
}

static void a_small_tensor_that_is_off_at_every_step_is_charged_once(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	all(factor, 32, 3);
	factor[21] = 6; /* (31 * 9 + 36) / 32 = 9.8 */
	make(32, factor, -1);
	compare(&t, "floor", ratios);
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT_EQUAL_FATAL(failing(&t), 1);
	const vn_checkpoint *p = &t.c.point[t.c.first];
	CU_ASSERT_EQUAL(p->step, 21);
	CU_ASSERT(p->worst >= 0 && p->check[p->worst].metric == VN_M_NMSE && p->check[p->worst].steps == 32);
	CU_ASSERT(p->check[p->worst].value > 9 && p->check[p->worst].value < 11);
	finish(&t);
}

static void a_small_tensor_that_is_far_off_at_one_step_is_found(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	all(factor, 32, 1);
	factor[21] = 9; /* (31 + 81) / 32 = 3.5 in all */
	make(32, factor, -1);
	compare(&t, "floor", ratios);
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT_EQUAL_FATAL(failing(&t), 1);
	const vn_checkpoint *p = &t.c.point[t.c.first];
	CU_ASSERT_EQUAL(p->step, 21);
	CU_ASSERT(p->worst >= 0 && p->check[p->worst].metric == VN_M_WORST_TOKEN_NMSE && p->check[p->worst].value > 70);
	finish(&t);
}

static void what_is_said_of_few_together_is_of_all_their_numbers(void)
{
	double factor[MOST + 1], most = 0;
	trial  t = { 0 };

	for (int i = 0; i <= 16; i++)
		factor[i] = 1 + 0.1 * i;
	make(16, factor, -1);
	compare(&t, "floor", ratios);
	CU_ASSERT_EQUAL_FATAL(t.c.n_few, 1);
	double dd = 0, rr = 0;
	for (int i = 1; i <= 16; i++) {
		float  r[V_MOST], x[V_MOST];
		scores_of(i, 0, 0, r);
		scores_of(i, 0, 1e-3 * factor[i], x);
		for (int k = 0; k < V; k++) {
			const double d = (double)x[k] - (double)r[k];
			dd += d * d;
			rr += (double)r[k] * (double)r[k];
			most = fmax(most, fabs(d));
		}
	}
	const vn_few *g = &t.c.few[0];
	CU_ASSERT_DOUBLE_EQUAL(g->value[VN_M_NMSE], dd / rr, 1e-12 * dd / rr);
	CU_ASSERT_DOUBLE_EQUAL(g->value[VN_M_RMSE], sqrt(dd / (16 * V)), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(g->value[VN_M_MAX_ABS], most, 1e-12);
	CU_ASSERT_TRUE(isnan(g->value[VN_M_ULP_P50]) && isnan(g->value[VN_M_COSINE]) && isnan(g->value[VN_M_KL_MEAN]));
	finish(&t);
}

static void too_few_numbers_in_all_may_keep_to_the_cap_instead(void)
{
	static const char cap[] = "version: 1\ndefaults: { nmse_over_floor: 4, without_floor: { nmse: 1.0e-3 } }\n";
	static const char low[] = "version: 1\ndefaults: { nmse_over_floor: 4, without_floor: { nmse: 1.0e-7 } }\n";
	double factor[MOST + 1];
	trial  t = { 0 };

	all(factor, 2, 3);
	make(1, factor, -1); /* 16 numbers */
	compare(&t, "floor", cap);
	CU_ASSERT_TRUE(t.c.within);
	finish(&t);
	compare(&t, "floor", low);
	CU_ASSERT_FALSE(t.c.within);
	finish(&t);
	compare(&t, "floor", ratios);
	CU_ASSERT_FALSE(t.c.within);
	finish(&t);
	make(2, factor, -1); /* 32 are enough */
	compare(&t, "floor", cap);
	CU_ASSERT_FALSE(t.c.within);
	finish(&t);
}

static void a_tensor_that_is_not_small_is_judged_at_every_step(void)
{
	double factor[MOST + 1];
	trial  t = { 0 };

	vn_plan_destroy(plan);
	V = 160;
	make_plan();
	all(factor, 16, 1);
	factor[5] = factor[9] = 3;
	make(16, factor, -1);
	compare(&t, "floor", ratios);
	CU_ASSERT_EQUAL(t.c.n_few, 0);
	CU_ASSERT_EQUAL(failing(&t), 2);
	CU_ASSERT_EQUAL(t.c.point[t.c.first].step, 5);
	finish(&t);
	vn_plan_destroy(plan);
	V = 16;
	make_plan();
}

static void the_step_where_ids_part_is_named(void)
{
	static const int32_t mine[] = { 1, 2, 3, 4, 5 }, others[] = { 1, 2, 9, 4, 5 };
	const double off[6] = { 0 };
	trial        t = { 0 };

	decoded = mine;
	record("ref", 5, off);
	decoded = others;
	record("cand", 5, off);
	decoded = NULL;
	compare(&t, NULL, over);
	CU_ASSERT_EQUAL(t.st, VN_ERR_MISMATCH);
	CU_ASSERT_EQUAL_FATAL(t.c.refusals.n, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.c.refusals.line[0], "number 22, which is step 3, is 3 in the reference, 9 in the candidate: two that decode on"));
	finish(&t);
}

int main(void)
{
	unsigned failures = 1;

	if (!mkdtemp(dir) || CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	make_plan();

#define T(test) (CU_ADD_TEST(s, test) != NULL)
	CU_pSuite s = CU_add_suite("pool", NULL, NULL);
	if (s && T(a_step_whose_floor_is_nought_by_chance_is_no_finding) &&
	    T(steps_that_are_off_together_are_charged_once_where_it_is_worst) && T(the_prompt_is_judged_by_itself) &&
	    T(few_rows_have_no_ratio_but_a_cap) && T(a_share_is_of_all_steps) && T(a_step_without_a_number_fails_them_all) &&
	    T(a_small_tensor_is_no_finding_where_its_floor_is_nought_by_chance) &&
	    T(a_small_tensor_that_is_off_at_every_step_is_charged_once) && T(a_small_tensor_that_is_far_off_at_one_step_is_found) &&
	    T(what_is_said_of_few_together_is_of_all_their_numbers) && T(too_few_numbers_in_all_may_keep_to_the_cap_instead) &&
	    T(a_tensor_that_is_not_small_is_judged_at_every_step) &&
	    T(the_step_where_ids_part_is_named)) {
		CU_basic_set_mode(CU_BRM_VERBOSE);
		CU_basic_run_tests();
		failures = CU_get_number_of_failures();
	}
	CU_cleanup_registry();
	vn_plan_destroy(plan);
	for (int i = 0; i < 3; i++)
		unlink(at(((const char *const[]){ "ref", "cand", "floor" })[i]));
	rmdir(dir);
	return failures != 0;
}
