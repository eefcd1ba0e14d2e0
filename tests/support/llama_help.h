/* llama_help.h: records runs of the trained llama, with or without a fault, and given numbers as
 * such a run, in the folder of folder.h. */
#pragma once

#include "capture/run/engine.h"
#include "capture/run/run.h"
#include "capture/store/store.h"
#include "libref/exec/ref.h"
#include "libref/plan/fault.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#define LLAMA VERNIER_SOURCE "/fixtures/llama-trained"
/* The model of what record_given files. A suite may define another one first. */
#ifndef GIVEN_MODEL
#define GIVEN_MODEL LLAMA
#endif

enum { PROMPT = 17, TOKENS = 19 }; /* in steps of one behind the prompt */

/* fault: "R1@layer1.q_rope"; NULL: none. */
static inline vn_status record_llama_in(const char *precision, const char *name, const char *fault, vn_error *err)
{
	static const char *const every = "*";
	int32_t                  id[TOKENS];
	vn_ref_options           o = { .threads = 1 };
	vn_ref                  *ref = NULL;
	vn_model                *m = NULL;
	vn_faulty               *f = NULL;
	vn_recorded              done;
	vn_status                st;

	for (int i = 0; i < TOKENS; i++)
		id[i] = (7 + 37 * i) % 200;
	const vn_recipe r = {
		.path = at(name),
		.force = true,
		.ids = id,
		.n_ids = PROMPT,
		.decode = TOKENS - PROMPT,
		.forced = id + PROMPT,
		.pattern = &every,
		.n_patterns = 1,
		.first_layer = -1,
		.last_layer = -1,
		.precision = precision,
		.command = "test",
		.threads = 1,
	};
	vn_policy_from_name(precision, &o.policy);
	if (!(st = vn_model_open(LLAMA, &m, err)) &&
	    !(st = vn_faulty_create(vn_model_plan(m), vn_model_weights(m), &f, err)) &&
	    !(st = fault ? vn_faulty_inject(f, fault, err) : VN_OK)) {
		/* not vn_engine_open, which would link the GPU */
		const vn_plan   *p = fault ? vn_faulty_plan(f) : vn_model_plan(m);
		const vn_tensor *w = fault ? vn_faulty_weights(f) : vn_model_weights(m);
		if (!(st = vn_ref_create(p, w, &o, &ref, err))) {
			vn_engine e = { "ref", ref, &vn_ref_ops, p->n_values, false };
			st = vn_record(&r, m, &e, &done, err);
		}
	}
	vn_ref_ops.destroy(ref);
	vn_faulty_destroy(f);
	vn_model_close(m);
	return st;
}

static inline vn_status record_llama(const char *name, const char *fault, vn_error *err)
{
	return record_llama_in("f32", name, fault, err);
}

/* The numbers of the weight (0) or bias (1) of the operation that makes a value; the caller frees
 * them. *n: how many. */
static inline double *given_weight(const char *of, int which, int64_t *n)
{
	vn_error  err = { "" };
	vn_model *m = NULL;
	double   *x = NULL;

	*n = 0;
	CU_ASSERT_EQUAL_FATAL(vn_model_open(GIVEN_MODEL, &m, &err), VN_OK);
	const vn_plan *p = vn_model_plan(m);
	const int      w = p->node[p->value[vn_plan_find(p, of)].node].w[which];
	if (w >= 0) {
		const vn_tensor *t = &vn_model_weights(m)[w];
		*n = vn_shape_count(&t->shape);
		x = malloc((size_t)*n * sizeof *x);
		vn_to_f64(x, t->data, t->dtype, (size_t)*n);
	}
	vn_model_close(m);
	return x;
}

enum { GIVEN_MOST = 160 }; /* tokens of record_given */

/* Numbers to record under a name: rows of all tokens. */
typedef struct given {
	const char  *name;
	const float *x;
} given;

/* A step that record_given leaves out, as a recorder would that stopped for a while; 0: none. */
static int given_gap;

/* Records only these values, of a prompt of `prompt` tokens with ids 5, 6, ... and of `decode`
 * steps. */
static inline vn_status record_given(const char *name, int prompt, int decode, const given *of, int n, vn_error *err)
{
	int32_t        id[GIVEN_MOST], position[GIVEN_MOST];
	vn_model      *m = NULL;
	vn_weight_row *rows = NULL;
	vn_store      *s = NULL;
	vn_facts       facts = { 0 };
	vn_status      st;

	for (int32_t i = 0; i < prompt + decode; i++) {
		id[i] = 5 + i;
		position[i] = i;
	}
	vn_facts_set(&facts, "engine", "test");
	vn_facts_set(&facts, "precision", "f32");
	if ((st = vn_model_open(GIVEN_MODEL, &m, err)))
		return st;
	const vn_plan *p = vn_model_plan(m);
	rows = calloc((size_t)p->n_weights, sizeof *rows);
	vn_model_table(m, 1, rows);
	if (!(st = vn_store_create(at(name), true, p, &s, err)) &&
	    !(st = vn_store_run(s, &facts, id, position, prompt + decode, err)) && !(st = vn_store_model(s, m, rows, err)))
		for (int step = 0; !st && step <= decode; step++) {
			const int64_t first = step ? prompt + step - 1 : 0, T = step ? 1 : prompt;
			if (step && step == given_gap)
				continue;
			st = vn_store_step(s, &(vn_step) { step, first, T, 0, T }, err);
			for (int i = 0; !st && i < n; i++) {
				const int      v = vn_plan_find(p, of[i].name);
				const vn_shape shape = vn_value_shape(&p->value[v], T, first + T);
				const size_t   count = (size_t)vn_shape_count(&shape);
				const vn_sink  to = vn_store_sink(s);
				if (!(st = to.begin(to.ctx, v, VN_F32, &shape, err)) &&
				    !(st = to.write(to.ctx, of[i].x + (size_t)first * (count / (size_t)T), count, err)))
					st = to.end(to.ctx, err);
			}
		}
	st = st ? st : vn_store_commit(&s, err);
	if (st) {
		printf("\n    %s\n", err->text);
		vn_store_abandon(&s);
	}
	free(rows);
	vn_model_close(m);
	return st;
}
