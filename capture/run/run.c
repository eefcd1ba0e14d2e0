/* run.c: see run.h. */
#include "capture/run/run.h"

#include "capture/run/interrupt.h"
#include "capture/run/listen.h"
#include "capture/run/screen.h"
#include "capture/file/place.h"
#include "capture/store/store.h"
#include "libref/base/alloc.h"
#include "libref/base/digest.h"
#include "libref/base/progress.h"
#include "libref/exec/convert.h"
#include "libref/exec/sample.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool *choose_values(const vn_recipe *r, const vn_plan *plan, vn_error *err)
{
	bool *want = vn_alloc_zero((size_t)plan->n_values, sizeof *want);

	if (r->follow) {
		memcpy(want, r->follow->any, (size_t)plan->n_values * sizeof *want);
	} else if (vn_taps_choose(plan, r->pattern, r->n_patterns, (int[]) { r->first_layer, r->last_layer }, want, err)) {
		free(want);
		want = NULL;
	}
	return want;
}

vn_status vn_ids_check(const int32_t *ids, int64_t n, const vn_plan *plan, vn_error *err)
{
	for (int64_t i = 0; i < n; i++)
		if (ids[i] < 0 || ids[i] >= plan->vocab)
			return vn_fail(err, VN_ERR_USAGE,
			               "token id %" PRId32 " (number %" PRId64 " of %" PRId64 ") is outside the vocabulary of %d",
			               ids[i], i + 1, n, plan->vocab);
	return VN_OK;
}

vn_status vn_recipe_check(const vn_recipe *r, const vn_plan *plan, vn_error *err)
{
	vn_status st;

	if (r->n_ids < 1)
		return vn_fail(err, VN_ERR_USAGE, "no token ids: a run needs at least one");
	if ((st = vn_ids_check(r->ids, r->n_ids, plan, err)) ||
	    (r->forced && (st = vn_ids_check(r->forced, r->decode, plan, err))))
		return st;
	if (r->n_ids > plan->context)
		return vn_fail(err, VN_ERR_USAGE,
		               "%" PRId64 " tokens are more than the model's context of %d: shorten the prompt", r->n_ids,
		               plan->context);
	if (r->decode > plan->context - r->n_ids)
		return vn_fail(err, VN_ERR_USAGE,
		               "%" PRId64 " token%s and %" PRId64 " decoded after %s are more than the model's context of %d: "
		               "decode at most %" PRId64 ", or shorten the prompt",
		               r->n_ids, r->n_ids == 1 ? "" : "s", r->decode, r->n_ids == 1 ? "it" : "them", plan->context,
		               plan->context - r->n_ids);
	if (r->last_layer >= plan->layers)
		return vn_fail(err, VN_ERR_USAGE, "layers %d-%d: the model has layers 0-%d", r->first_layer, r->last_layer,
		               plan->layers - 1);
	if (r->rows == VN_ROWS_RANGE && r->last >= r->n_ids + r->decode)
		return vn_fail(err, VN_ERR_USAGE, "tokens %" PRId64 "-%" PRId64 ": the run has tokens 0-%" PRId64, r->first,
		               r->last, r->n_ids + r->decode - 1);
	bool *want = choose_values(r, plan, err);
	if (!want)
		return VN_ERR_USAGE;
	free(want);
	if (r->against && access(r->against, R_OK) != 0)
		return vn_fail(err, VN_ERR_IO, "--against: %s: %s", r->against, strerror(errno));
	return vn_place_check(r->path, VN_PLACE_RECORDING, r->force, err);
}

/* A digest of what was chosen to be recorded and checked; empty: everything, and no checks. The
 * command says it, too, but also what changes no number (--threads), and maybe not whole. */
static vn_digest digest_choice(const vn_recipe *r)
{
	const int64_t all[] = { r->first_layer, r->last_layer,    r->rows,     r->first,
		                    r->last,        r->stop_at_first, r->validate, r->guard };
	vn_digester  *d;

	if ((r->n_patterns == 0 && r->first_layer < 0 && r->rows == VN_ROWS_ALL && !r->stop_at_first && !r->validate &&
	     !r->guard) ||
	    !(d = vn_digester_create()))
		return (vn_digest) { "" };
	vn_digester_add(d, all, sizeof all);
	for (int i = 0; i < r->n_patterns; i++)
		vn_digester_add(d, r->pattern[i], strlen(r->pattern[i]) + 1);
	return vn_digester_finish(d);
}

void vn_recipe_facts(const vn_recipe *r, vn_facts *facts)
{
	const vn_digest choice = r->scenario ? digest_choice(r) : (vn_digest) { "" };

	vn_facts_set(facts, "precision", "%s", r->precision);
	vn_facts_set(facts, "command", "%s", r->command);
	if (*choice.hex)
		vn_facts_set(facts, "choice_digest", "%s", choice.hex);
	if (r->scenario)
		vn_facts_set(facts, "scenario", "%s", r->scenario);
	if (r->inject)
		vn_facts_set(facts, "inject", "%s", r->inject);
	if (r->against)
		vn_facts_set(facts, "against", "%s", r->against);
	if (r->follow && r->follow->n_calls > 1)
		vn_facts_set(facts, "decoding", "forced");
	if (r->decode == 0)
		return;
	vn_facts_set(facts, "decode", "%" PRId64, r->decode);
	vn_facts_set(facts, "decoding", "%s", r->forced ? "forced" : r->temperature > 0 ? "sampled" : "greedy");
	if (!r->forced && r->temperature > 0) {
		vn_facts_set(facts, "temperature", "%.17g", r->temperature);
		vn_facts_set(facts, "seed", "%" PRIu64, r->seed);
	}
}

void vn_run_facts(const vn_recipe *r, const vn_engine *e, vn_facts *facts)
{
	e->ops->facts(e->self, facts);
	vn_facts_set(facts, "engine", "%s", e->name);
	vn_facts_set(facts, "engine_version", "%s", VERNIER_VERSION);
	vn_recipe_facts(r, facts);
}

/* Facts known only after the run: times and memory, what was judged. */
static vn_status put_facts(vn_store *s, const vn_recipe *r, const vn_engine *e, const vn_screen *screen, vn_error *err)
{
	vn_facts facts = { 0 };
	vn_run_facts(r, e, &facts);
	if (screen)
		vn_screen_facts(screen, &facts);
	return vn_store_facts(s, &facts, err);
}

/* All ids and positions of the run. decoded: (decode); NULL: not known yet. */
static vn_status put_run(vn_store *s, const vn_recipe *r, const vn_engine *e, const int32_t *decoded, vn_error *err)
{
	const int64_t     n = r->n_ids + r->decode;
	vn_facts          facts = { 0 };
	VN_FREED int32_t *positions = vn_alloc((size_t)n, sizeof *positions), *ids = vn_alloc((size_t)n, sizeof *ids);

	for (int64_t i = 0; i < n; i++) {
		positions[i] = (int32_t)i;
		ids[i] = i < r->n_ids ? r->ids[i] : decoded ? decoded[i - r->n_ids] : -1;
	}
	vn_run_facts(r, e, &facts);
	return vn_store_run(s, &facts, ids, positions, n, err);
}

/* The text of the tokens, if known; decoded: (decode). */
static vn_status put_text(vn_store *s, const vn_recipe *r, const int32_t *decoded, vn_error *err)
{
	const int64_t n = r->n_ids + r->decode;

	if (!r->tokenizer)
		return VN_OK;
	VN_FREED char **text = vn_alloc((size_t)n, sizeof *text);
	for (int64_t i = 0; i < n; i++)
		text[i] = vn_tokenizer_show(r->tokenizer, i < r->n_ids ? r->ids[i] : decoded[i - r->n_ids]);
	const vn_status st = vn_store_token_text(s, text, n, err);
	for (int64_t i = 0; i < n; i++)
		free(text[i]);
	return st;
}

void vn_recorded_weights(const vn_weight_row *rows, int n, vn_recorded *done)
{
	for (int i = 0; i < n; i++) {
		if (rows[i].stats.nan + rows[i].stats.inf == 0)
			continue;
		if (done->nonfinite_weights++ == 0)
			snprintf(done->nonfinite, sizeof done->nonfinite,
			         "%s holds %" PRId64 " NaN and %" PRId64 " infinite values", rows[i].name, rows[i].stats.nan,
			         rows[i].stats.inf);
	}
}

static vn_status put_model(vn_store *s, const vn_recipe *r, const vn_model *m, vn_recorded *done, vn_error *err)
{
	VN_FREED vn_weight_row *own = r->weights ? NULL : vn_alloc_zero((size_t)vn_model_plan(m)->n_weights, sizeof *own);

	if (own)
		vn_model_table(m, r->threads, own);
	const vn_weight_row *rows = own ? own : r->weights;
	vn_recorded_weights(rows, vn_model_plan(m)->n_weights, done);
	return vn_store_model(s, m, rows, err);
}

/* One run of a recipe while it is recorded. */
typedef struct run {
	const vn_recipe *recipe;
	const vn_engine *engine;
	vn_store        *store;
	vn_screen       *screen; /* NULL: not judged */
	vn_listener      listener;
	int32_t         *decoded; /* (decode) */
	int64_t          steps;   /* how many were begun */
	vn_recorded     *done;
} run;

/* Runs the engine once and records the call as a step. scores: choose a token by them. */
static vn_status record_step(run *x, int64_t number, const int32_t *ids, int64_t tokens, bool scores, vn_error *err)
{
	const vn_engine   *e = x->engine;
	const vn_listener *l = &x->listener;
	vn_recorded       *done = x->done;
	const int64_t      past = e->ops->position(e->self);
	vn_status          st;

	if (x->recipe->follow) {
		const vn_sink into = l->asked.sink;
		x->listener.asked = vn_follow_taps(x->recipe->follow, (int)number);
		x->listener.asked.sink = into;
	}
	const vn_taps taps = vn_listener_taps(&x->listener, past, tokens, scores);
	x->steps = number + 1;
	if ((x->screen && (st = vn_screen_step(x->screen, (int)number, past, ids, tokens, err))) ||
	    (st = vn_store_step(x->store, &(vn_step) { (int)number, past, tokens, l->to_first, l->to_count }, err)))
		return st;
	const double start = vn_seconds(), before = vn_engine_compiling(e);
	st = e->ops->forward(e->self, ids, tokens, &taps, err);
	const double compiling = vn_engine_compiling(e) - before;
	done->compiling += compiling;
	done->computing += vn_seconds() - start - compiling;
	done->compiled = e->compiles;
	if (!st && vn_interrupted())
		st = vn_fail(err, VN_ERR_INTERRUPTED, "interrupted");
	done->stopped = st && x->screen && vn_screen_stopped(x->screen);
	if ((st && !done->stopped) || l->to_count == 0)
		return st;
	const vn_status named = vn_store_aliases(x->store, x->screen ? vn_screen_written(x->screen) : l->asked.want, err);
	return named ? named : st;
}

/* The token that step `number` takes as input. */
static vn_status next_token(const vn_recipe *r, const vn_listener *l, int64_t number, int32_t *id, vn_error *err)
{
	if (r->forced) {
		*id = r->forced[number - 1];
		return VN_OK;
	}
	assert(l->heard);
	vn_status st = vn_sample(&(vn_next_scores) { l->row, l->dtype, l->plan->vocab }, r->temperature,
	                         vn_draw(r->seed, (uint64_t)number - 1), id, err);
	return st ? vn_context(err, st, "step %" PRId64, number - 1) : VN_OK;
}

/* For a recorder fault that needs a former prompt: runs the ids in reverse order,
 * then resets the engine. */
static vn_status run_former(const vn_recipe *r, const vn_engine *e, vn_error *err)
{
	VN_FREED bool    *want = vn_alloc_zero((size_t)e->n_values, sizeof *want);
	VN_FREED int32_t *ids = vn_alloc((size_t)r->n_ids, sizeof *ids);
	vn_status         st = VN_OK;

	for (int64_t i = 0; i < r->n_ids; i++)
		ids[i] = r->ids[r->n_ids - 1 - i];
	if (vn_recorder_fault_former(r->recorder_fault, want)) {
		const vn_taps taps = { .want = want,
			                   .rows = r->rows,
			                   .first = r->first,
			                   .last = r->last,
			                   .sink = vn_recorder_fault_keep(r->recorder_fault) };
		st = e->ops->forward(e->self, ids, r->n_ids, &taps, err);
		e->ops->reset(e->self);
	}
	return st;
}

/* The calls of the recording that is followed. */
static vn_status run_calls(run *x, vn_error *err)
{
	const vn_follow                      *f = x->recipe->follow;
	VN_ENDS(vn_progress_stop) vn_progress bar = { 0 };
	vn_status                             st = VN_OK;

	if (f->n_calls > 1)
		vn_progress_start(&bar, "step", f->n_calls);
	for (int i = 0; !st && i < f->n_calls; i++) {
		vn_progress_at(&bar, i);
		st = record_step(x, i, f->ids + f->call[i].position, f->call[i].tokens, false, err);
	}
	return st;
}

/* Step 0 is the prompt, every later step one token. */
static vn_status run_steps(run *x, vn_error *err)
{
	const vn_recipe                      *r = x->recipe;
	const bool                            chosen = r->decode > 0 && !r->forced;
	VN_ENDS(vn_progress_stop) vn_progress bar = { 0 };
	vn_status                             st;

	if (r->decode)
		vn_progress_start(&bar, "step", r->decode + 1);
	st = record_step(x, 0, r->ids, r->n_ids, chosen, err);
	for (int64_t i = 1; !st && i <= r->decode; i++) {
		int32_t *id = &x->decoded[i - 1];
		vn_progress_at(&bar, i);
		if (!(st = next_token(r, &x->listener, i, id, err)) &&
		    !(st = vn_store_token(x->store, r->n_ids + i - 1, *id, err)))
			st = record_step(x, i, id, 1, chosen && i < r->decode, err);
	}
	return st;
}

static vn_run_reference reference_of(const vn_recipe *r, const vn_model *m)
{
	return (vn_run_reference) { .reference = r->against,
		                        .limits = r->limits,
		                        .precision = r->precision,
		                        .family = vn_model_family(m),
		                        .plan = vn_model_plan(m),
		                        .threads = r->threads };
}

vn_status vn_recipe_judged_by(const vn_recipe *r, const vn_model *m, vn_judged_by *by, vn_error *err)
{
	const vn_run_reference a = reference_of(r, m);
	void                  *self = NULL;
	const vn_status        st = r->judge->open(&a, &self, by, err);

	r->judge->close(self);
	return st;
}

static vn_status open_screen(const vn_recipe *r, const vn_model *m, const bool *want, vn_screen **screen, vn_error *err)
{
	const vn_run_reference a = reference_of(r, m);
	return r->against ? vn_screen_open(r->judge, &a, want, r->stop_at_first, screen, err) : VN_OK;
}

/* A run that stopped has fewer tokens than the recipe asks for. */
static vn_status put_end(const run *x, vn_error *err)
{
	vn_recorded *done = x->done;
	vn_recipe    ran = *x->recipe;
	vn_status    st = VN_OK;

	const vn_follow *f = ran.follow;
	if (f && x->steps < f->n_calls)
		ran.n_ids = f->call[x->steps].position;
	else if (!f)
		ran.decode = x->steps - 1;
	if (ran.decode < x->recipe->decode || ran.n_ids < x->recipe->n_ids)
		st = put_run(x->store, &ran, x->engine, x->decoded, err);
	if (st || (st = put_text(x->store, &ran, x->decoded, err)) ||
	    (x->screen && (st = vn_screen_finish(x->screen, x->store, err))) ||
	    (st = put_facts(x->store, &ran, x->engine, x->screen, err)))
		return st;
	const char *found = x->screen ? vn_screen_found(x->screen, &done->judged, &done->left_out, &done->outside) : NULL;
	snprintf(done->found, sizeof done->found, "%s", found ? found : "");
	return VN_OK;
}

vn_status vn_record(const vn_recipe *r, const vn_model *m, const vn_engine *e, vn_recorded *done, vn_error *err)
{
	const vn_plan *plan = vn_model_plan(m);
	double         start = vn_seconds();
	bool          *want = choose_values(r, plan, err);
	run            x = { .recipe = r, .engine = e, .done = done };
	vn_status      st = want ? VN_OK : VN_ERR_USAGE;

	*done = (vn_recorded) { 0 };
	x.decoded = vn_alloc((size_t)r->decode, sizeof *x.decoded);
	if (st || (st = open_screen(r, m, want, &x.screen, err)) ||
	    (st = vn_store_create(r->path, r->force, plan, &x.store, err)) || (st = put_run(x.store, r, e, NULL, err)) ||
	    (st = put_model(x.store, r, m, done, err)) || (r->recorder_fault && (st = run_former(r, e, err))))
		goto done;

	vn_store_copier(x.store, vn_copy, r->threads);
	const vn_sink into = vn_store_sink(x.store), file = x.screen ? vn_screen_sink(x.screen, &into) : into;
	const vn_taps asked = { .want = want,
		                    .rows = r->rows,
		                    .first = r->first,
		                    .last = r->last,
		                    .sink = r->recorder_fault ? vn_recorder_fault_sink(r->recorder_fault, &file) : file };
	if ((st = vn_listener_init(&x.listener, plan, e->n_values, &asked, r->decode > 0 && !r->forced, err)) ||
	    ((st = r->follow ? run_calls(&x, err) : run_steps(&x, err)) && !done->stopped) || (st = put_end(&x, err)))
		goto done;
	done->tensors = vn_store_tensors(x.store, &done->bytes);
	st = vn_store_commit(&x.store, err);
done:
	if (st && x.store) {
		const vn_error why = err ? *err : (vn_error) { 0 };
		const int64_t  tensors = vn_store_abandon(&x.store);
		char           count[48] = "";
		if (tensors > 0)
			snprintf(count, sizeof count, "%" PRId64 " tensors of ", tensors);
		if (tensors && err)
			vn_fail(err, st, "%.*s; %s.partial holds %san incomplete recording", VN_ERROR_MAX / 2, why.text, r->path,
			        count);
	}
	vn_listener_finish(&x.listener);
	vn_screen_close(x.screen);
	VN_FREE(x.decoded, want);
	done->seconds = vn_seconds() - start;
	return st;
}
