/* against.c: see against.h. */
#include "compare/against/against.h"

#include "compare/comparison/checkpoint.h"
#include "compare/judge/count.h"
#include "compare/judge/judge_left_out.h"
#include "compare/match/match.h"
#include "capture/recording/verify.h"

#include <stdlib.h>
#include <string.h>

typedef struct judging {
	vn_opened          opened; /* the reference, its plan and the limits */
	vn_pools           pools;  /* empty, but for the width */
	vn_lines           warnings;
	bool               bits; /* also measure `differing`, because a limit uses it */
	vn_compare_options o;
	vn_against         a; /* its recording is opened.ref */
} judging;

static void close_judge(void *self)
{
	judging *j = self;

	if (!j)
		return;
	vn_lines_free(&j->warnings);
	vn_limits_destroy(j->opened.request.limits);
	vn_recording_close(j->opened.ref);
	free(j);
}

static vn_status check_reference(const vn_run_reference *a, const vn_recording *r, vn_error *err)
{
	const vn_plan *plan = vn_recording_plan(r);
	char           what[VN_PLAN_DIFFERENCE];

	if (plan && !vn_plan_equal(plan, a->plan))
		return vn_fail(err, VN_ERR_MISMATCH, "--against %s: of another model: %s there", a->reference,
		               vn_plan_difference(plan, a->plan, what));
	return VN_OK;
}

/* Everything of the reference that a judgement depends on. */
static vn_status digest_reference(const vn_recording *r, vn_digest *digest, vn_error *err)
{
	vn_digester   *d = vn_digester_create();
	const int32_t *ids = NULL, *positions = NULL;
	const int64_t  n = vn_recording_tokens(r, &ids, &positions);
	char           text[VN_SHAPE_TEXT];

	if (!d)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the digest of a reference");
	vn_digester_add(d, &n, sizeof n);
	vn_digester_add(d, ids, (size_t)n * sizeof *ids);
	if (positions)
		vn_digester_add(d, positions, (size_t)n * sizeof *positions);
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		vn_shape_text(&e->shape, text);
		vn_digester_add(d, &e->step, sizeof e->step);
		vn_digester_add(d, &e->dtype, sizeof e->dtype);
		vn_digester_add(d, e->name, strlen(e->name) + 1);
		vn_digester_add(d, text, strlen(text) + 1);
		if (e->has_digest)
			vn_digester_add(d, vn_entry_digest(e).hex, VN_DIGEST_TEXT);
	}
	*digest = vn_digester_finish(d);
	return VN_OK;
}

static vn_status open_judge(const vn_run_reference *a, void **self, vn_judged_by *by, vn_error *err)
{
	judging  *j = *self = calloc(1, sizeof *j);
	vn_status st;

	if (!j)
		return vn_fail(err, VN_ERR_NOMEM, "no memory to judge a run");
	j->opened.request.options = &j->o;
	j->o.threads = a->threads;
	st = vn_against_open(&j->a, a->reference, err);
	j->opened.ref = j->a.ref;
	if (st)
		return vn_context(err, st, "--against");
	if ((st = check_reference(a, j->opened.ref, err)) || (st = digest_reference(j->opened.ref, &by->reference, err)))
		return st;
	st = a->limits ? vn_limits_open(a->limits, &j->opened.request.limits, err)
	               : vn_limits_own(a->precision, a->family, &j->opened.request.limits, err);
	if (st)
		return vn_context(err, st, a->limits ? "--limits" : "--against");
	vn_limits *l = j->opened.request.limits;
	l->layers = vn_plan_last_layer(a->plan) + 1;
	j->opened.plan = a->plan;
	j->bits = vn_limits_mention(l, VN_M_DIFFERING);
	vn_judge_set_hidden(&j->opened, &j->pools);
	snprintf(by->limits, sizeof by->limits, "%.120s, digest %s", l->name ? l->name : l->path, l->digest.hex);
	return VN_OK;
}

static void begin_step(void *self, int number, int64_t position, const int32_t *ids, int64_t tokens)
{
	judging *j = self;

	vn_against_step(&j->a, number, position, ids, tokens);
}

static vn_status measure_tensor(judging *j, int entry, const vn_tensor *t, bool scores, vn_measured *m, vn_error *err)
{
	vn_recording   *ref = j->opened.ref;
	const vn_entry *e = vn_recording_entry(ref, entry);
	vn_job          job = { .cand = *t, .axes = vn_entry_axes(e), .scores = scores, .bits = j->bits };
	vn_status       st = vn_entry_tensor(ref, entry, &job.ref, err);

	if (!st && !(st = vn_measure_many(&job, 1, j->o.threads, err)) && (st = job.st) && err)
		*err = job.why;
	*m = job.m;
	vn_recording_release(ref, entry);
	return st;
}

/* What vn_judge_left_out needs to judge a tensor that the run left out. */
static vn_status list_measures(const vn_measured *m, vn_left_out *l, vn_error *err)
{
	_Static_assert(VN_N_METRICS + 2 <= VN_MEASURES_MAX, "a line has room for every metric");
	if (!(l->measure = calloc(VN_N_METRICS + 2, sizeof *l->measure)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for what was measured");
	for (int i = 0; i < VN_N_METRICS; i++)
		if (m->has[i])
			l->measure[l->n++] = (vn_said_measure) { vn_metric_get((vn_metric)i)->name, m->value[i] };
	l->measure[l->n++] = (vn_said_measure) { "absmax", m->absmax[0] };
	l->measure[l->n++] = (vn_said_measure) { "middle", m->middle };
	return VN_OK;
}

static vn_status judge_tensor(void *self, const char *name, const vn_tensor *t, vn_judgement *out, vn_error *err)
{
	judging  *j = self;
	char      why[VN_WORDS];
	vn_status st;

	vn_against_look(&j->a, name, t, out);
	if (out->opinion != VN_OPINION_OPEN)
		return VN_OK;
	vn_checkpoint p = vn_match_point(vn_recording_entry(j->a.ref, out->entry), out->entry, -1);
	if ((st = measure_tensor(j, out->entry, t, p.scores, &p.m, err)))
		return st;
	const bool holds = vn_judge_measured(&j->opened, &j->pools, &j->warnings, &p, why);
	out->opinion = !holds ? VN_OPINION_OUTSIDE : out->plain ? VN_OPINION_AGREES : VN_OPINION_NONE;
	if (!holds)
		snprintf(out->words, sizeof out->words, "%.*s", VN_OPINION_WORDS - 1, why);
	return out->opinion == VN_OPINION_AGREES ? list_measures(&p.m, &out->about, err) : VN_OK;
}

static vn_status end_judge(void *self, vn_error *err)
{
	return vn_recording_verify(((judging *)self)->opened.ref, err);
}

const vn_run_judge vn_against_judge = {
	.open = open_judge,
	.step = begin_step,
	.tensor = judge_tensor,
	.end = end_judge,
	.close = close_judge,
};
