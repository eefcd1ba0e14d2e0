/* selftest_runs.c: healthy recordings for the self-test, so that it needs no data:
 * a small synthetic model, run by the reference engine in every precision there
 * is, with three tokens decoded behind the prompt. */
#include "compare/selftest/selftest.h"

#include "capture/run/engine.h"
#include "capture/run/run.h"
#include "libref/model/synth.h"

#include <stdio.h>
#include <string.h>

/* FLOORS: the slot before the first floor, behind three for each pair. */
enum { FLOORS = 3 * VN_SELFTEST_PAIRS, PROMPT = 17, DECODED = 3, LAYERS = 2, OTHER_WEIGHTS = 1 };

/* Any ids will do; these are all different. */
static void write_ids(int32_t *id, int n, int first)
{
	for (int i = 0; i < n; i++)
		id[i] = (first + 37 * i) % 512;
}

static vn_status record(const char *model, const char *precision, int first, int threads, const char *path, vn_error *err)
{
	static const char *const everything[] = { "*" };
	int32_t           id[PROMPT + DECODED];
	vn_engine_options o = { .threads = threads, .device = -1 };
	vn_engine         e = { 0 };
	vn_model         *m = NULL;
	vn_recorded       done;
	vn_status         st;

	write_ids(id, PROMPT + DECODED, first);
	const vn_recipe r = {
		.path = path, .ids = id, .n_ids = PROMPT, .decode = DECODED, .forced = id + PROMPT, .pattern = everything, .n_patterns = 1,
		.first_layer = -1, .last_layer = -1, .precision = precision, .command = "vernier selftest", .threads = threads,
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

static vn_status make(vn_own_runs *own, int slot, const char *dir, const char *what, const char *model, const char *precision, int first,
                      int threads, vn_error *err)
{
	snprintf(own->path[slot], sizeof own->path[slot], "%s/%s.%s.h5", dir, what, precision);
	return record(model, precision, first, threads, own->path[slot], err);
}

vn_status vn_own_runs_make(const char *dir, int threads, vn_own_runs *own, vn_error *err)
{
	static const struct { const char *name, *ref; } pair[VN_SELFTEST_PAIRS] = {
		{ "f32", "f64" }, { "f16", "f32" }, { "f16-acc16", "f32" }, { "bf16", "f32" },
	};
	vn_synth_options o = { .layers = LAYERS, .dtype = VN_F32 };
	char             stranger[4096], *model = own->model;
	vn_status        st;

	snprintf(own->model, sizeof own->model, "%.3900s/model", dir);
	snprintf(stranger, sizeof stranger, "%.4000s/stranger", dir);
	if ((st = vn_synth_write("tiny", model, &o, err)))
		return st;
	o.seed = OTHER_WEIGHTS;
	if ((st = vn_synth_write("tiny", stranger, &o, err)) || (st = make(own, 0, dir, "run", model, "f64", 1, threads, err)))
		return st;
	for (int i = 0; i < VN_SELFTEST_PAIRS; i++) {
		char (*path)[4096] = &own->path[1 + 3 * i];
		if ((st = make(own, 1 + 3 * i, dir, "run", model, pair[i].name, 1, threads, err)))
			return st;
		if (i < 2 && (st = make(own, 2 + 3 * i, dir, "earlier", model, pair[i].name, 2, threads, err)))
			return st;
		if (i < 2 && (st = make(own, 3 + 3 * i, dir, "stranger", stranger, pair[i].name, 1, threads, err)))
			return st;
		/* The same run again: a floor is never the candidate. */
		if (i && (st = make(own, FLOORS + i, dir, "floor", model, pair[i].name, 1, threads, err)))
			return st;
		own->pair[i] = (vn_healthy) {
			.name = pair[i].name, .ref = own->path[i ? 1 : 0], .cand = path[0], .floor = i ? own->path[FLOORS + i] : NULL,
			.model = model, .earlier = path[1], .stranger = path[2], .numbers_alone = i >= 2,
		};
	}
	return VN_OK;
}
