/* selftest.c: see selftest.h. */
#include "capture/view/calls.h"
#include "compare/chapters/compare.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/selftest/selftest_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const vn_mutation_group vn_mutation_groups[] = {
	{ "numbers", vn_selftest_numbers },   { "places", vn_selftest_places },
	{ "steps", vn_selftest_steps },       { "names", vn_selftest_names },
	{ "shapes", vn_selftest_shapes },     { "files", vn_selftest_files },
	{ "contract", vn_selftest_contract }, { NULL, NULL },
};

static void close_all(vn_mutation_harness *c)
{
	vn_recording_close(c->floor);
	vn_recording_close(c->cand);
	vn_recording_close(c->ref);
	c->floor = c->cand = c->ref = NULL;
	free(c->shared);
	c->shared = NULL;
}

static vn_status open_all(vn_mutation_harness *c, vn_error *err)
{
	const char *const path[] = { c->h->ref, c->h->cand, c->h->floor };
	vn_recording     *r[3] = { NULL };
	vn_status         st = vn_recording_open_all(path, c->h->floor ? 3 : 2, r, err);
	vn_call          *call;
	int               n = 0;
	c->ref = r[0];
	c->cand = r[1];
	c->floor = r[2];
	for (int i = 0; i < 3; i++)
		if (r[i])
			vn_recording_drop_stats(r[i]);
	if (st || (st = vn_calls_common(c->ref, c->cand, &call, &n, err)))
		return st;
	free(call);
	if (n)
		return vn_fail(
			err, VN_ERR_UNSUPPORTED,
			"%s and %s split the run into different calls, which compare joins: give selftest two recordings with the "
			"same calls",
			c->h->ref, c->h->cand);
	return vn_mutation_harness_second_names(c, err);
}

vn_status vn_mutation_harness_open(const vn_selftest_pair *h, const char *dir, int threads,
                                   vn_mutation_harness **harness, vn_error *err)
{
	vn_mutation_harness *c = *harness = calloc(1, sizeof *c);
	vn_status            st;

	if (!c)
		return vn_fail(err, VN_ERR_NOMEM, "no memory");
	c->h = h;
	c->o.threads = threads;
	snprintf(c->ref_copy, sizeof c->ref_copy, "%s/reference.h5", dir);
	snprintf(c->cand_copy, sizeof c->cand_copy, "%s/candidate.h5", dir);
	if ((st = open_all(c, err))) {
		vn_mutation_harness_close(c);
		*harness = NULL;
	}
	return st;
}

void vn_mutation_harness_close(vn_mutation_harness *c)
{
	if (!c)
		return;
	close_all(c);
	free(c);
}

/* ---- what was found ---------------------------------------------------------------------- */

static const char *metric_name(vn_metric m)
{
	return m < VN_N_METRICS ? vn_metric_get(m)->name : "any metric";
}

static void say_expected(const vn_expected *w, const char *target, vn_outcome *o)
{
	if (w->status == VN_N_CHECKPOINT_STATUSES)
		snprintf(o->expected, sizeof o->expected, "refused: ...%s...", w->says);
	else
		snprintf(o->expected, sizeof o->expected, "%s%s%s%s%.60s%s", vn_checkpoint_status_text(w->status),
		         w->status == VN_OUTSIDE ? " by " : "", w->status == VN_OUTSIDE ? metric_name(w->metric) : "",
		         w->anywhere ? "" : ": ", w->anywhere ? "" : target, w->many ? " and others" : "");
}

static bool is_broken(const vn_checkpoint *p, vn_metric m)
{
	for (int i = 0; i < p->n_checks; i++) {
		const vn_check k = vn_check_at(p, i);
		if (!k.holds && (m == VN_N_METRICS || k.metric == m))
			return true;
	}
	return false;
}

/* For a mutation of every step, one step is charged with the errors of all. */
static bool broken_there(const vn_comparison *c, const vn_mutation *m, int at)
{
	for (int i = 0; i < c->result.n_checkpoints && m->when == VN_EVERY_STEP; i++)
		if (strcmp(c->result.checkpoint[i].name, c->result.checkpoint[at].name) == 0 &&
		    is_broken(&c->result.checkpoint[i], m->want.metric))
			return true;
	return is_broken(&c->result.checkpoint[at], m->want.metric);
}

/* Was the comparison that ended with `st` refused for this reason? */
static bool is_refused_so(const vn_comparison *c, const vn_expected *w, vn_status st)
{
	return w->status == VN_N_CHECKPOINT_STATUSES && ((w->allow && vn_lines_refused(&c->result.refusals, w->allow)) ||
	                                                 (w->refused && st == w->refused && !c->result.refusals.n));
}

/* The checkpoint under test. For a mutation of every step, the first that fails; -1: none. */
static int find_subject(const vn_comparison *c, const vn_mutation *m, const vn_entry *target)
{
	for (int i = 0; i < c->result.n_checkpoints; i++) {
		const vn_checkpoint *p = &c->result.checkpoint[i];
		const bool           named = target && strcmp(p->name, target->name) == 0;
		if (m->want.anywhere           ? p->status == m->want.status && p->fails
		    : m->when == VN_EVERY_STEP ? named && p->fails
		                               : named && p->step == target->step)
			return i;
	}
	return -1;
}

static void say_found(const vn_comparison *c, int i, vn_outcome *o)
{
	const vn_checkpoint *p = i >= 0 ? &c->result.checkpoint[i] : NULL;
	const bool           limit = p && p->worst >= 0;

	if (c->result.within)
		snprintf(o->found, sizeof o->found, "within limits");
	else if (!p)
		snprintf(o->found, sizeof o->found, "%d outside, the first %s", c->result.n_fails,
		         c->result.first >= 0 ? c->result.checkpoint[c->result.first].name : "not measured");
	else
		snprintf(o->found, sizeof o->found, "%s%s%s: %.60s%s", vn_checkpoint_status_text(p->status),
		         limit ? " by " : "", limit ? metric_name(vn_check_at(p, p->worst).metric) : "", p->name,
		         c->result.n_fails > 1 ? " and others" : "");
}

/* Judges a comparison that completed. */
static vn_status judge_mutation(const vn_comparison *c, const vn_mutation *mutation, const vn_entry *target,
                                vn_outcome *o, vn_error *err)
{
	const vn_expected *w = &mutation->want;
	const int          i = find_subject(c, mutation, target);
	vn_layout_match    like = { 0 };
	vn_status          st;

	say_found(c, i, o);
	o->status = c->result.within ? 0 : 1;
	if (c->result.within || i < 0)
		return VN_OK;
	const vn_checkpoint *p = &c->result.checkpoint[i];
	bool                 good = p->status == w->status && p->fails && (w->many || c->result.n_fails == 1);
	if (w->status == VN_OUTSIDE)
		good = good && broken_there(c, mutation, i) && (w->anywhere || c->result.first == i);
	good = good && (!w->misfit || p->misfit == w->misfit) && (!w->reordered || p->reordered) &&
	       (!w->invalid_floor || c->result.n_invalid_floors);
	if (good && w->like) {
		if ((st = vn_layout_match_find(c, i, &like, err)))
			return st;
		/* Without digests, a tensor cannot be found among the candidate's other tensors. */
		const vn_layout_kind instead = w->like == VN_LAYOUT_MATCH_OWN && !*vn_entry_digest(target).hex
		                                   ? VN_LAYOUT_MATCH_OTHER
		                                   : w->like;
		if (like.kind != w->like && like.kind != instead) {
			good = false;
			snprintf(o->found, sizeof o->found, "outside, but not recognised: %.200s",
			         *like.words ? like.words : "no message");
		}
	}
	o->caught = good ? VN_CAUGHT : VN_MISSED;
	return VN_OK;
}

/* Judges a comparison that failed. Trouble of this machine is not a finding. */
static vn_status judge_refusal(const vn_comparison *c, const vn_expected *w, bool edited, vn_status st,
                               const vn_error *why, vn_outcome *o, vn_error *err)
{
	/* Mutations of bytes are meant to cause VN_ERR_IO. */
	if (st == VN_ERR_NOMEM || st == VN_ERR_INTERRUPTED || (st == VN_ERR_IO && edited)) {
		*err = *why;
		return st;
	}
	const char *line = c->result.refusals.n ? c->result.refusals.line[0] : why->text, *file = strstr(line, ".h5: ");
	snprintf(o->found, sizeof o->found, "refused: %.280s", file ? file + strlen(".h5: ") : line);
	o->status = 2;
	if (w && is_refused_so(c, w, st))
		o->caught = VN_CAUGHT;
	/* A copy that was edited but not damaged opens. If it does not, the machine is in trouble:
	 * usually HDF5 lacks memory. */
	else if (edited && !c->opened.cand) {
		*err = *why;
		return st;
	}
	return VN_OK;
}

/* Runs `vernier compare` on two paths; NULL: the unmodified recording. m NULL: expects the
 * comparison to pass. */
static vn_status compare_mutated(vn_mutation_harness *k, const char *ref, const char *cand, const vn_mutation *m,
                                 const vn_entry *target, vn_outcome *o, vn_error *err)
{
	const vn_selftest_unit unit = m ? m->unit : VN_UNIT_GIVEN;
	vn_compare_options     options = k->o;
	if (unit == VN_UNIT_MODEL)
		options.model = k->h->model;
	vn_comparison c = { .opened.floor = unit == VN_UNIT_NONE || options.model ? NULL : k->floor,
		                .request.options = &options };
	vn_recording *own_ref = NULL, *own_cand = NULL;
	vn_error      why = { "" };
	vn_status     st = VN_OK, bad = VN_OK;

	o->caught = VN_MISSED;
	if ((ref && (st = vn_recording_open(ref, &own_ref, &why))) ||
	    (cand && (st = vn_recording_open(cand, &own_cand, &why))))
		goto done;
	c.opened.ref = own_ref ? own_ref : k->ref;
	c.opened.cand = own_cand ? own_cand : k->cand;
	const char *precision = vn_facts_get(vn_recording_run(c.opened.cand), "precision");
	if ((st = k->h->limits ? vn_limits_open(k->h->limits, &c.request.limits, &why)
	                       : vn_limits_own(precision ? precision : "", vn_recording_family(c.opened.cand),
	                                       &c.request.limits, &why)) ||
	    (st = vn_compare(&c, &why)))
		goto done;
	if (m) {
		bad = judge_mutation(&c, m, target, o, err);
	} else {
		o->caught = c.result.within ? VN_CAUGHT : VN_MISSED;
		o->status = c.result.within ? 0 : 1;
		say_found(&c, c.result.first, o);
	}
done:
	if (st)
		bad = judge_refusal(&c, m ? &m->want : NULL, m && !m->file, st, &why, o, err);
	const bool aligned = c.result.notes.n >
	                     0; /* the recordings may stay cut or transposed to fit each other (capture/view/view.h) */
	vn_comparison_finish(&c);
	vn_limits_destroy(c.request.limits);
	vn_recording_close(own_ref);
	vn_recording_close(own_cand);
	if (!aligned || bad)
		return bad;
	close_all(k);
	return open_all(k, err);
}

vn_status vn_mutation_harness_unchanged(vn_mutation_harness *c, vn_outcome *o, vn_error *err)
{
	vn_status st;

	*o = (vn_outcome) { .expected = "within limits" };
	if (!(st = compare_mutated(c, NULL, NULL, NULL, NULL, o, err)) && o->status == 2)
		st = vn_fail(err, VN_ERR_MISMATCH, "%s and %s cannot be compared: %s", c->h->ref, c->h->cand,
		             o->found + strlen("refused: "));
	return st;
}

vn_status vn_mutation_harness_try(vn_mutation_harness *c, const vn_mutation *m, vn_outcome *o, vn_error *err)
{
	const vn_entry *target, *other;
	const char     *cause = vn_mutation_harness_why_not(c, m, &target, &other);
	const bool      ref = m->side != VN_SIDE_CAND, cand = m->side != VN_SIDE_REF;
	vn_status       st = VN_OK;

	*o = (vn_outcome) { .caught = VN_NOT_RUN };
	if (c->h->numbers_alone && !m->numbers && !m->bits && m->needs != VN_NEEDS_FLOOR) {
		*o = (vn_outcome) { .caught = VN_ELSEWHERE, .found = "does not depend on the precision" };
		return VN_OK;
	}
	say_expected(&m->want, target ? target->name : "", o);
	if (cause) {
		snprintf(o->found, sizeof o->found, "%s", cause);
		return VN_OK;
	}
	const char *from = m->needs == VN_NEEDS_EARLIER         ? c->h->earlier
	                   : m->needs == VN_NEEDS_UNRELATED_RUN ? c->h->unrelated_run
	                                                        : c->h->cand;
	if ((ref && (st = vn_mutate(m, VN_SIDE_REF, c->ref, c->h->ref, c->ref_copy, target, other, err))) ||
	    (cand && (st = vn_mutate(m, VN_SIDE_CAND, c->cand, from, c->cand_copy, target, other, err))))
		goto done;
	st = compare_mutated(c, ref ? c->ref_copy : NULL, cand ? c->cand_copy : NULL, m, target, o, err);
done:
	if (remove(c->ref_copy) != 0 && errno != ENOENT && !st)
		st = vn_fail(err, VN_ERR_IO, "%s: %s", c->ref_copy, strerror(errno));
	remove(c->cand_copy);
	return st;
}
