/* explain_help.h: compares a run of the trained llama with a fault, and opens a case at one of its
 * checkpoints. */
#pragma once

#include "compare/trial/score.h"
#include "tests/support/llama_help.h"
#include "tests/support/trial.h"

#define LOOSE "version: 1\ndefaults: { nmse: 1.0e-8 }\n"

typedef struct explained {
	trial       compared;
	vn_findings x;
	vn_case     t;
	vn_failure  failed;
	vn_error    err;
} explained;

/* Compares a run of the llama with that fault with an unmodified one. */
static inline void compare_llama_as(explained *e, const char *fault, vn_compare_options o)
{
	*e = (explained) { .compared.o = o };
	CU_ASSERT_EQUAL_FATAL(record_llama("unmodified.h5", NULL, &e->err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(record_llama("faulty.h5", fault, &e->err), VN_OK);
	judge(&e->compared, "unmodified.h5", "faulty.h5", NULL, LOOSE);
	CU_ASSERT_EQUAL_FATAL(e->compared.st, VN_OK);
}

static inline void compare_llama(explained *e, const char *fault)
{
	compare_llama_as(e, fault, (vn_compare_options) { .model = LLAMA, .replay = VN_REPLAY_SAME, .threads = 1 });
}

/* Compares a recording of these numbers with one of others. */
static inline void compare_two(explained *e, int prompt, int decode, const given *ref, const given *cand, int n)
{
	*e = (explained) { .compared.o = { .model = GIVEN_MODEL, .replay = VN_REPLAY_ALWAYS, .threads = 1 } };
	CU_ASSERT_EQUAL_FATAL(record_given("ref.h5", prompt, decode, ref, n, &e->err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(record_given("cand.h5", prompt, decode, cand, n, &e->err), VN_OK);
	judge(&e->compared, "ref.h5", "cand.h5", NULL, LOOSE);
	if (e->compared.st)
		printf("\n    %s\n", e->compared.err.text);
	CU_ASSERT_EQUAL_FATAL(e->compared.st, VN_OK);
}

/* Compares a recording of these numbers with itself. */
static inline void compare_given(explained *e, int prompt, int decode, const given *of, int n)
{
	*e = (explained) { .compared.o = { .model = GIVEN_MODEL, .replay = VN_REPLAY_SAME, .threads = 1 } };
	CU_ASSERT_EQUAL_FATAL(record_given("given.h5", prompt, decode, of, n, &e->err), VN_OK);
	judge(&e->compared, "given.h5", "given.h5", NULL, LOOSE);
	if (e->compared.st)
		printf("\n    %s\n", e->compared.err.text);
	CU_ASSERT_EQUAL_FATAL(e->compared.st, VN_OK);
}

/* Returns the checkpoint of that name in a step. */
static inline const vn_checkpoint *checkpoint_at(const explained *e, const char *name, int step)
{
	const vn_comparison *c = &e->compared.c;

	for (int i = 0; i < c->result.checkpoints.n; i++)
		if (c->result.checkpoints.of[i].step == step && strcmp(c->result.checkpoints.of[i].name, name) == 0)
			return &c->result.checkpoints.of[i];
	CU_FAIL_FATAL("no such checkpoint");
	return NULL;
}

/* Opens a case at that checkpoint of a step, with the result of the unmodified operation. */
static inline void stand_at(explained *e, const char *name, int step)
{
	vn_comparison *c = &e->compared.c;

	e->x.checkpoint = -1;
	for (int i = 0; i < c->result.checkpoints.n; i++)
		if (c->result.checkpoints.of[i].step == step && strcmp(c->result.checkpoints.of[i].name, name) == 0)
			e->x.checkpoint = i;
	CU_ASSERT_FATAL(e->x.checkpoint >= 0);
	e->x.by = calloc(VN_EXPLAIN_KEPT, sizeof *e->x.by);
	e->t = (vn_case) { .failed = &e->failed, .opened = &c->opened, .result = &c->result, .x = &e->x };
	CU_ASSERT_EQUAL_FATAL(vn_recompute_create(&c->opened, &c->result.checkpoints, &e->t.recompute, &e->err), VN_OK);
	e->t.site = vn_recompute_site(e->t.recompute);
	CU_ASSERT_EQUAL_FATAL(vn_recompute_at(e->t.recompute, e->x.checkpoint, &e->err), VN_OK);
	const vn_plan *p = e->t.site->plan;
	CU_ASSERT_EQUAL_FATAL(vn_recompute_run(e->t.recompute, p, e->t.site->weights, VN_OWN_WIDTH, &e->t.own, &e->err),
	                      VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_recompute_run(e->t.recompute, p, e->t.site->weights, VN_FINE_WIDTH, &e->t.fine, &e->err),
	                      VN_OK);
	CU_ASSERT_EQUAL_FATAL((vn_score_unmodified(&e->t), e->failed.st), VN_OK);
}

/* The best answer so far. The test fails if no answer is within its limits. */
static inline vn_trial answer_of(const explained *e)
{
	CU_ASSERT_FATAL(e->x.n > 0);
	CU_ASSERT_TRUE(e->x.by[0].limit_fraction <= 1);
	return e->x.by[0];
}

/* Numbers in (-1, 1) without a pattern, the same in every run. */
static inline float given_number(int i, int seed)
{
	return (float)((i * 7919 + seed * 104729) % 2003) / 1001.5f - 1;
}

static inline int node_named(const explained *e, const char *name)
{
	const vn_plan *p = e->t.site->plan;
	const int      v = vn_plan_find(p, name);
	return v < 0 ? -1 : p->value[vn_plan_root(p, v)].node;
}

/* Closes the case that stand_at opened. */
static inline void leave_stand(explained *e)
{
	vn_tensor_free(&e->t.own);
	vn_tensor_free(&e->t.fine);
	free(e->x.by);
	vn_recompute_destroy(e->t.recompute);
}

static inline void end_explained(explained *e)
{
	leave_stand(e);
	finish(&e->compared);
}

/* Runs a suite whose tests share *e: a correct run of the llama, compared with itself. Returns the
 * exit status. */
static inline int run_suite_of_correct(const char *name, CU_TestInfo *tests, explained *e)
{
	if (!make_folder())
		return 1;
	*e = (explained) { .compared.o = { .model = LLAMA, .replay = VN_REPLAY_ALWAYS, .threads = 1 } };
	if (record_llama("run.h5", NULL, &e->err))
		return 1;
	judge(&e->compared, "run.h5", "run.h5", NULL, LOOSE);
	const int failed = e->compared.st || run_suite(name, tests);
	finish(&e->compared);
	return !remove_folder() || failed;
}
