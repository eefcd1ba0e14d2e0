/* selftest_runs.c: makes correct recordings for the self-test, so that it needs no data: a small
 * synthetic model, run by the reference engine in every precision, with three tokens decoded after
 * the prompt; and, for a few points, with as many tokens as are needed to judge a channel. */
#include "compare/selftest/selftest.h"

#include "capture/run/hybrid.h"
#include "capture/run/run.h"
#include "libref/model/synth.h"

#include <stdio.h>
#include <string.h>

/* FLOORS: first slot of the floors, after three slots for each pair. STEPS: first slot of the runs
 * with many steps, two for each pair. */
enum { FLOORS = 3 * VN_SELFTEST_PAIRS, STEPS = 4 * VN_SELFTEST_PAIRS, LAYERS = 2, OTHER_WEIGHTS = 1 };

typedef struct length {
	int         prompt, decoded;
	const char *point;
} length;

static const length whole = { 17, 3, "*" }, many_steps = { 3, 9, "layer*.{q_rope,output}" };

/* Any ids serve; these are all different. */
static void write_ids(int32_t *id, int n, int first)
{
	for (int i = 0; i < n; i++)
		id[i] = (first + 37 * i) % 512;
}

static vn_status record_run(const char *model, const char *precision, const length *l, int first, int threads,
                            const char *path, vn_error *err)
{
	int32_t           id[32];
	vn_engine_options o = { .threads = threads, .device = -1 };
	vn_engine         e = { 0 };
	vn_model         *m = NULL;
	vn_recorded       done;
	vn_status         st;

	write_ids(id, l->prompt + l->decoded, first);
	const vn_recipe r = {
		.path = path,
		.ids = id,
		.n_ids = l->prompt,
		.decode = l->decoded,
		.forced = id + l->prompt,
		.pattern = &l->point,
		.n_patterns = 1,
		.first_layer = -1,
		.last_layer = -1,
		.precision = precision,
		.command = "vernier selftest",
		.threads = threads,
	};
	if (!vn_policy_from_name(precision, &o.policy))
		return vn_fail(err, VN_ERR_USAGE, "no precision %s", precision);
	if (!(st = vn_model_open(model, &m, err)) && !(st = vn_recipe_check(&r, vn_model_plan(m), err)) &&
	    !(st = vn_engine_open(&e, m, &o, err)))
		st = vn_record(&r, m, &e, &done, err);
	vn_engine_close(&e);
	vn_model_close(m);
	return st;
}

static vn_status make_run(vn_own_runs *own, int slot, const char *dir, const char *what, const char *model,
                          const char *precision, const length *l, int first, int threads, vn_error *err)
{
	snprintf(own->path[slot], sizeof own->path[slot], "%s/%s.%s.h5", dir, what, precision);
	return record_run(model, precision, l, first, threads, own->path[slot], err);
}

/* If steps[0] was made, its reference serves the others. */
static vn_status make_steps(vn_own_runs *own, int i, const char *dir, const char *precision, const char *reference,
                            int threads, vn_error *err)
{
	const int slot = STEPS + 2 * i;
	vn_status st = VN_OK;

	if ((!i && (st = make_run(own, STEPS + 1, dir, "steps", own->model, reference, &many_steps, 1, threads, err))) ||
	    (st = make_run(own, slot, dir, "steps", own->model, precision, &many_steps, 1, threads, err)) ||
	    (i && (st = make_run(own, slot + 1, dir, "steps.floor", own->model, precision, &many_steps, 1, threads, err))))
		return st;
	own->steps[i] = (vn_selftest_pair) {
		.name = own->pair[i].name,
		.ref = own->path[i ? STEPS : STEPS + 1],
		.cand = own->path[slot],
		.floor = i ? own->path[slot + 1] : NULL,
		.model = own->model,
	};
	own->pair[i].steps = &own->steps[i];
	return VN_OK;
}

vn_status vn_own_runs_make(const char *dir, int threads, vn_own_runs *own, vn_error *err)
{
	static const struct {
		const char *name, *ref;
	} pair[VN_SELFTEST_PAIRS] = {
		{ "f32", "f64" },
		{ "f16", "f32" },
		{ "f16-acc16", "f32" },
		{ "bf16", "f32" },
	};
	vn_synth_options o = { .layers = LAYERS, .dtype = VN_F32 };
	char             unrelated_run[4096], *model = own->model;
	vn_status        st;

	snprintf(own->model, sizeof own->model, "%.3900s/model", dir);
	snprintf(unrelated_run, sizeof unrelated_run, "%.4000s/unrelated", dir);
	if ((st = vn_synth_write("tiny", model, &o, err)))
		return st;
	o.seed = OTHER_WEIGHTS;
	if ((st = vn_synth_write("tiny", unrelated_run, &o, err)) ||
	    (st = make_run(own, 0, dir, "run", model, "f64", &whole, 1, threads, err)))
		return st;
	for (int i = 0; i < VN_SELFTEST_PAIRS; i++) {
		char(*path)[4096] = &own->path[1 + 3 * i];
		if ((st = make_run(own, 1 + 3 * i, dir, "run", model, pair[i].name, &whole, 1, threads, err)))
			return st;
		if (i < 2 && (st = make_run(own, 2 + 3 * i, dir, "earlier", model, pair[i].name, &whole, 2, threads, err)))
			return st;
		if (i < 2 &&
		    (st = make_run(own, 3 + 3 * i, dir, "unrelated", unrelated_run, pair[i].name, &whole, 1, threads, err)))
			return st;
		/* The same run again, because the floor must not be the candidate. */
		if (i && (st = make_run(own, FLOORS + i, dir, "floor", model, pair[i].name, &whole, 1, threads, err)))
			return st;
		own->pair[i] = (vn_selftest_pair) {
			.name = pair[i].name,
			.ref = own->path[i ? 1 : 0],
			.cand = path[0],
			.floor = i ? own->path[FLOORS + i] : NULL,
			.model = model,
			.earlier = path[1],
			.unrelated_run = path[2],
			.numbers_alone = i >= 2,
		};
		if ((st = make_steps(own, i, dir, pair[i].name, pair[i].ref, threads, err)))
			return st;
	}
	return VN_OK;
}
