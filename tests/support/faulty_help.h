/* faulty_help.h: runs of the trained model in fixtures/ with faults put in, compared. Shared by
 * test_compare.c and test_report.c. */
#pragma once

#include "compare/comparison/comparison.h"
#include "tests/support/suite.h"
#include "tests/support/trial.h"

#include "capture/store/store.h"
#include "libref/exec/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL VERNIER_SOURCE "/fixtures/qwen2-trained"
enum { TOKENS = 17, DECODE = 2 };

static vn_model      *model;
static vn_weight_row *rows;

/* How a recorded run differs from a correct one. */
typedef struct fault {
	const char *theta_of; /* this value's node rotates with another theta */
	const char *bias_of;  /* this value's linear node gets another bias */
	const char *nan_in;   /* the first number of this value is recorded as NaN */
	const char *points;   /* record only these */
	const char *link;     /* and this second name of a tensor, as a link */
	const char *copy;     /* and this second name, with numbers of its own */
	bool        nan_in_copy;
	int32_t     first_id; /* instead of the prompt's */
	bool        no_plan, cut_off, other_weights;
	int         decode;    /* steps behind the prompt */
	const char *precision; /* NULL: f32 */
} fault;

typedef struct bend {
	vn_sink        to;
	int            value; /* gets a NaN; -1 */
	bool           first, here;
	vn_dtype       dtype;
	int            copied, copy; /* this value is filed once more, as that one; -1 */
	bool           nan_in_copy, copying;
	vn_shape       shape;
	unsigned char *data;
	size_t         have;
} bend;

static inline vn_status bend_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	bend *b = ctx;
	b->here = value == b->value;
	b->first = true;
	b->dtype = dtype;
	b->copying = value == b->copied;
	b->shape = *shape;
	b->have = 0;
	if (b->copying)
		b->data = malloc((size_t)vn_shape_count(shape) * vn_dtype_size(dtype));
	return b->to.begin(b->to.ctx, value, dtype, shape, err);
}

static inline vn_status bend_write(void *ctx, const void *data, size_t elements, vn_error *err)
{
	bend        *b = ctx;
	const size_t size = vn_dtype_size(b->dtype);
	if (b->copying) {
		memcpy(b->data + b->have, data, elements * size);
		b->have += elements * size;
	}
	if (!b->here || !b->first || elements == 0)
		return b->to.write(b->to.ctx, data, elements, err);
	b->first = false;
	char       *copy = malloc(elements * size);
	const float nan = NAN;
	memcpy(copy, data, elements * size);
	vn_from_f32(copy, b->dtype, &nan, 1);
	const vn_status st = b->to.write(b->to.ctx, copy, elements, err);
	free(copy);
	return st;
}

static inline vn_status bend_end(void *ctx, vn_error *err)
{
	bend     *b = ctx;
	vn_status st = b->to.end(b->to.ctx, err);
	if (st || !b->copying)
		return st;
	const float nan = NAN;
	if (b->nan_in_copy)
		vn_from_f32(b->data, b->dtype, &nan, 1);
	if (!(st = b->to.begin(b->to.ctx, b->copy, b->dtype, &b->shape, err)) &&
	    !(st = b->to.write(b->to.ctx, b->data, b->have / vn_dtype_size(b->dtype), err)))
		st = b->to.end(b->to.ctx, err);
	free(b->data);
	b->copying = false;
	return st;
}

static inline vn_status run_steps(vn_store *s, vn_ref *ref, const vn_plan *plan, const fault *f, const int32_t *ids,
                                  vn_error *err)
{
	bool         *want = calloc((size_t)plan->n_values, sizeof *want);
	bool         *links = calloc((size_t)plan->n_values, sizeof *links);
	bend          b = { .to = vn_store_sink(s),
		                .value = f->nan_in ? vn_plan_root(plan, vn_plan_find(plan, f->nan_in)) : -1,
		                .copy = f->copy ? vn_plan_find(plan, f->copy) : -1,
		                .copied = -1,
		                .nan_in_copy = f->nan_in_copy };
	const vn_taps taps = { .want = want,
		                   .rows = VN_ROWS_ALL,
		                   .sink = { .ctx = &b, .begin = bend_begin, .write = bend_write, .end = bend_end } };
	vn_status     st = vn_taps_choose(plan, &f->points, f->points ? 1 : 0, NULL, want, err);
	int64_t       done = 0;
	if (b.copy >= 0)
		b.copied = vn_plan_root(plan, b.copy);
	if (f->link)
		links[vn_plan_find(plan, f->link)] = true;
	for (int step = 0; !st && step <= f->decode; step++) {
		const int64_t n = step ? 1 : TOKENS;
		if (!(st = vn_store_step(s, &(vn_step) { step, done, n, 0, n }, err)))
			st = vn_ref_ops.forward(ref, ids + done, n, &taps, err);
		if (!st && f->link)
			st = vn_store_aliases(s, links, err);
		done += n;
	}
	free(links);
	free(want);
	return st;
}

static inline void record(const char *name, const fault *f)
{
	vn_error       err = { "" };
	vn_plan       *plan = NULL;
	vn_store      *s = NULL;
	vn_ref        *ref = NULL;
	int32_t        ids[TOKENS + DECODE], positions[TOKENS + DECODE];
	vn_facts       facts = { 0 };
	vn_ref_options o = { .threads = 1 };
	float          bias[4096];

	CU_ASSERT_FATAL(vn_plan_clone(vn_model_plan(model), &plan, &err) == VN_OK);
	CU_ASSERT_FATAL(vn_policy_from_name(f->precision ? f->precision : "f32", &o.policy));
	vn_tensor *w = malloc((size_t)plan->n_weights * sizeof *w);
	memcpy(w, vn_model_weights(model), (size_t)plan->n_weights * sizeof *w);
	if (f->theta_of)
		CU_ASSERT_FATAL(
			vn_const_set(&plan->node[plan->value[vn_plan_find(plan, f->theta_of)].node], "theta", 500, &err) == VN_OK);
	if (f->bias_of) {
		const int     i = plan->node[plan->value[vn_plan_find(plan, f->bias_of)].node].w[1];
		const int64_t n = vn_shape_count(&w[i].shape);
		for (int64_t k = 0; k < n; k++)
			bias[k] = 0.5f;
		w[i] = (vn_tensor) { VN_F32, w[i].shape, bias };
	}
	for (int i = 0; i < TOKENS + DECODE; i++) {
		ids[i] = (i * 37 + 11) % 500;
		positions[i] = i;
	}
	if (f->first_id)
		ids[0] = f->first_id;
	vn_facts_set(&facts, "engine", "test");
	vn_facts_set(&facts, "precision", "%s", vn_policy_name(o.policy));
	vn_weight_row first = rows[0];
	if (f->other_weights)
		rows[0].digest.hex[0] = rows[0].digest.hex[0] == 'a' ? 'b' : 'a';

	/* A faulty engine records the plan that it was meant to run. */
	vn_status st = vn_store_create(at(name), true, vn_model_plan(model), &s, &err);
	if (!st)
		st = vn_store_run(s, &facts, ids, positions, TOKENS + f->decode, &err);
	if (!st && !f->no_plan)
		st = vn_store_model(s, model, rows, &err);
	if (!st && !(st = vn_ref_create(plan, w, &o, &ref, &err)))
		st = run_steps(s, ref, plan, f, ids, &err);
	if (!st && f->cut_off)
		vn_store_abandon(&s);
	else if (!st)
		st = vn_store_commit(&s, &err);
	if (st)
		printf("\n    %s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	rows[0] = first;
	vn_ref_ops.destroy(ref);
	vn_plan_destroy(plan);
	free(w);
}

/* ---- one comparison ------------------------------------------------------------ */

static const char strict[] = "version: 1\ndefaults: { nmse: 1.0e-9, norm_ratio: 1.0e-4 }\n";

static inline void compare(trial *t, const char *ref, const char *cand, const char *limits)
{
	judge(t, ref, cand, NULL, limits);
}

static inline const vn_checkpoint *point(const trial *t, const char *name, int step)
{
	for (int i = 0; i < t->c.result.checkpoints.n; i++)
		if (strcmp(t->c.result.checkpoints.of[i].name, name) == 0 && t->c.result.checkpoints.of[i].step == step)
			return &t->c.result.checkpoints.of[i];
	CU_FAIL("no such checkpoint");
	return &t->c.result.checkpoints.of[0];
}

static inline int run_faulty(const char *title, CU_TestInfo *tests)
{
	vn_error err = { "" };

	if (!make_folder() || vn_model_open(MODEL, &model, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	rows = calloc((size_t)vn_model_plan(model)->n_weights, sizeof *rows);
	vn_model_table(model, 1, rows);
	const int failed = run_suite(title, tests);
	vn_model_close(model);
	free(rows);
	return !remove_folder() || failed;
}
