/* session.c: see session.h. */
#include "capture/run/session.h"

#include "capture/run/hybrid.h"
#include "libref/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_of_recorder(const char *fault)
{
	return vn_recorder_fault_find(fault) >= 0;
}

/* Makes a faulty copy of the model for the engine, while recordings describe the
 * unmodified model. */
static vn_status make_faulty(vn_session *s, vn_error *err)
{
	vn_status st = VN_OK;
	size_t    at = 0;

	for (int i = 0; !st && i < s->n_inject; i++) {
		if (!is_of_recorder(s->inject[i]) && !s->faulty)
			st = vn_faulty_create(vn_model_plan(s->m), vn_model_weights(s->m), &s->faulty, err);
		if (!is_of_recorder(s->inject[i]) && !st)
			st = vn_faulty_inject(s->faulty, s->inject[i], err);
		if (st)
			return vn_context(err, st, "--inject");
		at += (size_t)snprintf(s->injected + at, sizeof s->injected - at, "%s%s", i ? " " : "", s->inject[i]);
		if (at >= sizeof s->injected)
			return vn_fail(err, VN_ERR_USAGE, "--inject: all faults together can have at most %zu characters",
			               sizeof s->injected - 1);
	}
	return st;
}

/* A recorder fault remembers earlier tensors, so each recording gets its own. */
static vn_status make_recorder_fault(const vn_session *s, vn_recorder_fault **f, vn_error *err)
{
	vn_status st = VN_OK;

	*f = NULL;
	for (int i = 0; !st && i < s->n_inject; i++)
		if (is_of_recorder(s->inject[i])) {
			*f = *f ? *f : vn_recorder_fault_create(vn_model_plan(s->m));
			st = vn_recorder_fault_inject(*f, s->inject[i], err);
		}
	return st ? vn_context(err, st, "--inject") : VN_OK;
}

vn_status vn_session_open(vn_session *s, const char *model, const vn_engine_options *run, const char *const *inject,
                          int n, vn_error *err)
{
	vn_recorder_fault *tried = NULL;
	vn_status          st;

	*s = (vn_session) { .run = *run, .inject = inject, .n_inject = n };
	/* The GPU reads all experts, and a fault may change some. */
	const bool mapped = !run->gpu && !n && !run->loaded;
	st = vn_model_open_as(model, vn_model_with(run->mtp) | (mapped ? VN_MODEL_MAPPED : 0), &s->m, err);
	if (st || (st = make_faulty(s, err)))
		return st;
	s->run.faulty = s->faulty;
	st = make_recorder_fault(s, &tried, err);
	vn_recorder_fault_destroy(tried);
	return st;
}

/* Makes the table of weights, unless it was made. beside: starts threads that make it. */
static void start_table(vn_session *s, bool beside)
{
	if (s->table)
		return;
	s->table = vn_alloc_zero((size_t)vn_model_plan(s->m)->n_weights, sizeof *s->table);
	if (!beside || !(s->making = vn_weight_table_start(s->m, s->run.threads, s->table)))
		vn_model_table(s->m, s->run.threads, s->table);
}

static void finish_table(vn_session *s, bool drop)
{
	if (s->making)
		vn_weight_table_finish(s->making, drop);
	s->making = NULL;
}

const vn_weight_row *vn_session_table(vn_session *s)
{
	start_table(s, false);
	finish_table(s, false);
	return s->table;
}

static vn_status open_engine(vn_session *s, vn_error *err)
{
	if (s->e.self)
		return VN_OK;
	if (s->run.gpu && s->run.threads == 0)
		start_table(s, true); /* runs while the device is opened and loads the same weights with as many threads */
	return vn_engine_open(&s->e, s->m, &s->run, err);
}

vn_status vn_session_facts(vn_session *s, const vn_recipe *of, vn_facts *facts, vn_error *err)
{
	vn_recipe       r = *of;
	const vn_status st = open_engine(s, err);

	r.inject = s->n_inject ? s->injected : NULL;
	if (!st)
		vn_run_facts(&r, &s->e, facts);
	return st;
}

vn_status vn_session_record(vn_session *s, const vn_recipe *of, vn_recorded *done, vn_error *err)
{
	vn_recipe          r = *of;
	vn_recorder_fault *f = NULL;
	vn_status          st;

	*done = (vn_recorded) { 0 };
	r.inject = s->n_inject ? s->injected : NULL;
	if ((st = make_recorder_fault(s, &f, err)) || (st = open_engine(s, err)))
		goto done;
	s->e.ops->reset(s->e.self);
	r.recorder_fault = f;
	r.weights = vn_session_table(s);
	st = vn_record(&r, s->m, &s->e, done, err);
done:
	vn_recorder_fault_destroy(f);
	return st;
}

void vn_session_close(vn_session *s)
{
	finish_table(s, true);
	vn_engine_close(&s->e);
	vn_faulty_destroy(s->faulty);
	vn_model_close(s->m);
	free(s->table);
	*s = (vn_session) { 0 };
}
