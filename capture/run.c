/* run.c: see run.h. */
#include "capture/run.h"

#include "capture/interrupt.h"
#include "capture/place.h"
#include "capture/store.h"
#include "libref/base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool *choose(const vn_recipe *r, const vn_plan *plan, vn_error *err)
{
	bool *want = calloc((size_t)plan->n_values + 1, sizeof *want);

	if (!want) {
		vn_fail(err, VN_ERR_NOMEM, "no memory for %d checkpoints", plan->n_values);
	} else if (vn_taps_choose(plan, r->pattern, r->n_patterns, r->first_layer, r->last_layer, want, err)) {
		free(want);
		want = NULL;
	}
	return want;
}

vn_status vn_recipe_check(const vn_recipe *r, const vn_plan *plan, vn_error *err)
{
	if (r->n_ids < 1)
		return vn_fail(err, VN_ERR_USAGE, "no token ids: a run needs at least one");
	for (int64_t i = 0; i < r->n_ids; i++)
		if (r->ids[i] < 0 || r->ids[i] >= plan->vocab)
			return vn_fail(err, VN_ERR_USAGE, "token id %" PRId32 " (number %" PRId64 " of %" PRId64
			               ") is outside the vocabulary of %d", r->ids[i], i + 1, r->n_ids, plan->vocab);
	if (r->n_ids > plan->context)
		return vn_fail(err, VN_ERR_USAGE, "%" PRId64 " tokens are more than the model's context of %d", r->n_ids,
		               plan->context);
	if (r->last_layer >= plan->layers)
		return vn_fail(err, VN_ERR_USAGE, "layers %d-%d: the model has layers 0-%d", r->first_layer, r->last_layer,
		               plan->layers - 1);
	if (r->rows == VN_ROWS_RANGE && r->last >= r->n_ids)
		return vn_fail(err, VN_ERR_USAGE, "tokens %" PRId64 "-%" PRId64 ": the run has tokens 0-%" PRId64, r->first,
		               r->last, r->n_ids - 1);
	bool *want = choose(r, plan, err);
	if (!want)
		return VN_ERR_USAGE;
	free(want);
	return vn_place_check(r->path, r->force, err);
}

/* The store's sink, with a look at the signals before each tensor. */
static vn_status begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	const vn_sink *to = ctx;
	if (vn_interrupted())
		return vn_fail(err, VN_ERR_INTERRUPTED, "interrupted");
	return to->begin(to->ctx, value, dtype, shape, err);
}

static vn_status piece(void *ctx, const void *data, size_t elements, vn_error *err)
{
	const vn_sink *to = ctx;
	return to->write(to->ctx, data, elements, err);
}

static vn_status end(void *ctx, vn_error *err)
{
	const vn_sink *to = ctx;
	return to->end(to->ctx, err);
}

static void gather(const vn_recipe *r, const vn_engine *e, vn_facts *facts)
{
	e->facts(e->self, facts);
	vn_facts_set(facts, "engine", "%s", e->name);
	vn_facts_set(facts, "engine_version", "%s", VERNIER_VERSION);
	vn_facts_set(facts, "precision", "%s", r->precision);
	vn_facts_set(facts, "command", "%s", r->command);
}

/* What an engine knows only after it has run: times, memory. */
static vn_status put_facts(vn_store *s, const vn_recipe *r, const vn_engine *e, vn_error *err)
{
	vn_facts facts = { 0 };
	gather(r, e, &facts);
	return vn_store_facts(s, &facts, err);
}

static vn_status put_run(vn_store *s, const vn_recipe *r, const vn_engine *e, vn_error *err)
{
	vn_facts  facts = { 0 };
	int32_t  *positions = malloc((size_t)r->n_ids * sizeof *positions);
	vn_status st;

	if (!positions)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %" PRId64 " positions", r->n_ids);
	for (int64_t i = 0; i < r->n_ids; i++)
		positions[i] = (int32_t)i;
	gather(r, e, &facts);
	st = vn_store_run(s, &facts, r->ids, positions, r->n_ids, err);
	free(positions);
	return st;
}

static void count_unsound(const vn_weight_row *rows, int n, vn_recorded *done)
{
	for (int i = 0; i < n; i++) {
		if (rows[i].stats.nan + rows[i].stats.inf == 0)
			continue;
		if (done->unsound_weights++ == 0)
			snprintf(done->unsound, sizeof done->unsound, "%s holds %" PRId64 " NaN and %" PRId64 " infinite values",
			         rows[i].name, rows[i].stats.nan, rows[i].stats.inf);
	}
}

static vn_status put_model(vn_store *s, const vn_recipe *r, const vn_model *m, vn_recorded *done, vn_error *err)
{
	vn_weight_row *rows = calloc((size_t)vn_model_plan(m)->n_weights + 1, sizeof *rows);
	vn_status      st;

	if (!rows)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the table of weights");
	vn_model_table(m, r->threads, rows);
	count_unsound(rows, vn_model_plan(m)->n_weights, done);
	st = vn_store_model(s, m, rows, err);
	free(rows);
	return st;
}

/* One call of the engine, recorded as a step. */
static vn_status step(vn_store *s, int number, const int32_t *ids, int64_t tokens, const vn_engine *e,
                      const vn_taps *taps, vn_recorded *done, vn_error *err)
{
	int64_t   past = e->position(e->self), first, count;
	vn_status st;

	vn_taps_select(taps, past, tokens, &first, &count);
	if ((st = vn_store_step(s, number, past, tokens, first, count, err)))
		return st;
	double start = vn_seconds();
	st = e->forward(e->self, ids, tokens, taps, err);
	done->computing += vn_seconds() - start;
	if (!st && vn_interrupted())
		st = vn_fail(err, VN_ERR_INTERRUPTED, "interrupted");
	return st ? st : vn_store_aliases(s, taps->want, err);
}

vn_status vn_record(const vn_recipe *r, const vn_model *m, const vn_engine *e, vn_recorded *done, vn_error *err)
{
	const vn_plan *plan = vn_model_plan(m);
	double         start = vn_seconds();
	bool          *want = choose(r, plan, err);
	vn_store      *s = NULL;
	vn_status      st = want ? VN_OK : VN_ERR_USAGE;

	*done = (vn_recorded){ 0 };
	if (st || (st = vn_store_create(r->path, r->force, plan, &s, err)) || (st = put_run(s, r, e, err)) ||
	    (st = put_model(s, r, m, done, err)))
		goto done;

	vn_sink sink = vn_store_sink(s);
	vn_taps taps = { .want = want, .rows = r->rows, .first = r->first, .last = r->last,
	                 .sink = { .ctx = &sink, .begin = begin, .write = piece, .end = end } };
	/* Step 0 is the prompt; decoding would go on with one token a step. */
	if ((st = step(s, 0, r->ids, r->n_ids, e, &taps, done, err)) || (st = put_facts(s, r, e, err)))
		goto done;
	done->tensors = vn_store_tensors(s, &done->bytes);
	st = vn_store_commit(&s, err);
done:
	if (st && s) {
		int64_t  tensors = vn_store_tensors(s, NULL);
		vn_error why = err ? *err : (vn_error){ 0 };
		vn_store_abandon(&s);
		if (tensors > 0 && err)
			vn_fail(err, st, "%.*s; %s.partial holds %" PRId64 " tensors of an incomplete recording",
			        VN_ERROR_MAX / 2, why.text, r->path, tensors);
	}
	free(want);
	done->seconds = vn_seconds() - start;
	return st;
}
