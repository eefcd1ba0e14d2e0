/* pool_help.h: writes recordings of a prompt and steps of one token, number by number, and judges
 * one by another. Shared by test_pooled_logits.c and test_pooled_small.c.
 */
#pragma once

#include "tests/support/suite.h"
#include "tests/support/trial.h"

#include "capture/store/store.h"

#include <math.h>

enum { V_MOST = 160, D = 4, PROMPT = 20, MOST = 64 };

static vn_plan *plan;
static int      V = 16;           /* scores of a row: a small tensor */
static int      embed_worst = -1; /* from 0 on: with what the scores are made of, four times as far off at this step */
static struct {
	int    channel, first, last, every; /* of each every-th step from first to last */
	double by;
} off_channel = { .channel = -1 };
static int            negated = -1; /* a step that is so as a whole */
static int            chunk = 1;    /* tokens of a step behind the prompt */
static const int32_t *decoded;      /* instead of the usual ids */

static void make_plan(void)
{
	vn_builder *b = vn_plan_begin(1, V, 1024);
	const int   table = vn_plan_weight(b, "embed", 2, (int64_t[]) { V, D });

	vn_plan_layer(b, -1);
	vn_plan_linear(b, vn_plan_embed(b, table, VN_POINT_EMBED), table, -1, 0, VN_POINT_LOGITS);
	if (vn_plan_finish(b, &plan, NULL))
		abort();
}

/* Scores of step i, off[i] times a shape of errors away from the reference's. */
static int large = -1; /* a step whose numbers are four times as large */

static void scores_of(int step, int row, double off, float *x)
{
	const double size = step == large ? 4 : 1;
	for (int k = 0; k < V; k++)
		x[k] = (float)(size * (3 * sin(1.7 * k + 2.3 * step + 0.9 * row) + off * cos(5.1 * k + step)));
}

static vn_status put_tensor(vn_store *s, const char *name, int step, int rows, int width, double off, vn_error *err)
{
	const vn_sink  k = vn_store_sink(s);
	const vn_shape shape = { .rank = 2, .dim = { rows, width } };
	float          block[PROMPT * V_MOST], x[V_MOST];
	vn_status      st;

	for (int r = 0; r < rows; r++) {
		scores_of(step, r, off, x);
		if (off_channel.channel >= 0 && step >= off_channel.first && step <= off_channel.last &&
		    (step - off_channel.first) % off_channel.every == 0)
			x[off_channel.channel] *= (float)off_channel.by;
		for (int i = 0; i < width && step == negated; i++)
			x[i] = -x[i];
		memcpy(block + r * width, x, (size_t)width * sizeof *x);
	}
	(void)((st = k.begin(k.ctx, vn_plan_find(plan, name), VN_F32, &shape, err)) ||
	       (st = k.write(k.ctx, block, (size_t)(rows * width), err)) || (st = k.end(k.ctx, err)));
	return st;
}

/* A recording of PROMPT tokens and n steps behind them, n * chunk <= MOST; off[0] is the
 * prompt's. */
static void record(const char *name, int n, const double *off)
{
	int32_t   ids[PROMPT + MOST], positions[PROMPT + MOST];
	vn_store *s = NULL;
	vn_facts  f = { 0 };
	vn_error  err = { "" };
	vn_status st;

	for (int i = 0; i < PROMPT + n * chunk; i++) {
		ids[i] = decoded && i >= PROMPT ? decoded[i - PROMPT] : i % V;
		positions[i] = i;
	}
	vn_facts_set(&f, "engine", "test");
	vn_facts_set(&f, "precision", "f16");
	st = vn_store_create(at(name), true, plan, &s, &err);
	if (!st)
		st = vn_store_run(s, &f, ids, positions, PROMPT + n * chunk, &err);
	for (int i = 0; !st && i <= n; i++) {
		const int rows = i ? chunk : PROMPT;
		st = vn_store_step(s, &(vn_step) { i, i ? PROMPT + (i - 1) * chunk : 0, rows, 0, rows }, &err);
		if (!st && embed_worst >= 0)
			st = put_tensor(s, "embed", i, rows, D, i == embed_worst ? 4 * off[i] : off[i], &err);
		if (!st)
			st = put_tensor(s, "logits", i, rows, V, off[i], &err);
	}
	if (!st)
		st = vn_store_commit(&s, &err);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
}

static void compare(trial *t, const char *floor_file, const char *limits)
{
	/* the numbers are finer than f16, whose floors these are, and the floors larger than it leaves,
	 * and much like the candidate */
	t->o.allow |= VN_ALLOW_CLAIMS | VN_ALLOW_FLOOR;
	judge(t, "ref", "cand", floor_file, limits);
}

/* ref and floor, and a candidate whose step i is factor[i] floors away. */
static inline void make_recordings(int n, const double *factor, int exact)
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

static inline void set_all_factors(double *factor, int n, double x)
{
	for (int i = 0; i <= n; i++)
		factor[i] = i ? x : 1;
}

static bool clean_up(void)
{
	vn_plan_destroy(plan);
	return remove_folder();
}
