/* words.c: see words.h. */
#include "compare/result/words.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/judge/judge.h"
#include "compare/judge/localise.h"

#include "compare/replay/overflow.h"
#include "compare/replay/replay.h"
#include "compare/replayed/replayed_words.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the verdict ---------------------------------------------------------------- */

const char *vn_report_say_verdict(const vn_opened *o, const vn_result *r)
{
	if (r->verdict.strict)
		return "OUTSIDE by --strict";
	if (o->request.options->baseline)
		return !r->verdict.within                             ? "WORSE than the baseline"
		       : r->n_since[VN_KNOWN] + r->n_since[VN_BETTER] ? "no worse than the baseline"
		                                                      : "within limits";
	if (r->verdict.within && r->verdict.n_status[VN_ACCUMULATED])
		return "within by operation";
	return r->verdict.within ? "within limits" : "OUTSIDE limits";
}

void vn_report_say_digests(const vn_verified *d, char *text, size_t room)
{
	const int64_t all = d->checked + d->wrong;
	if (all)
		vn_text_add(text, room, "; %" PRId64 " digest%s checked", all, all == 1 ? "" : "s");
	if (d->wrong)
		vn_text_add(text, room, ", %" PRId64 " do%s not match", d->wrong, d->wrong == 1 ? "es" : "");
	if (d->without)
		vn_text_add(text, room, all ? ", %" PRId64 " tensor%s without one" : "; %" PRId64 " tensor%s without a digest",
		            d->without, d->without == 1 ? "" : "s");
}

static int failing_measured(const vn_result *r)
{
	int n = 0;
	for (int i = 0; i < r->checkpoints.n; i++)
		n += r->checkpoints.of[i].fails && r->checkpoints.of[i].m.n;
	return n;
}

/* Was every operation before the last accumulated error judged alone, and all of its rows? */
static bool judged_before(const vn_opened *o, const vn_result *r)
{
	int n = r->checkpoints.n;

	if (o->replayed)
		return !vn_recording_replayed(o->replayed->recording, VN_REPLAYED_UNJUDGED)->n;
	while (n && r->checkpoints.of[n - 1].status != VN_ACCUMULATED)
		n--;
	for (int i = 0; i < n; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[i];
		const vn_step       *step = vn_recording_step(o->ref, p->step);
		if (!p->m.n || !p->replayed || p->replay.span > 1 || (step && step->rows != step->tokens))
			return false;
	}
	return true;
}

const char *vn_report_say_counts(const vn_opened *o, const vn_result *r, char text[VN_WORDS])
{
	const int measured = r->verdict.n_status[VN_WITHIN] + r->verdict.n_status[VN_OUTSIDE] +
	                     r->verdict.n_status[VN_ACCUMULATED] + r->verdict.n_status[VN_UNLIMITED];
	text[0] = 0;
	if (r->verdict.within || r->verdict.strict) {
		vn_text_add(text, VN_WORDS, "%d checkpoint%s compared", measured, measured == 1 ? "" : "s");
		if (r->verdict.n_status[VN_UNLIMITED])
			vn_text_add(text, VN_WORDS, ", %d of them without a limit", r->verdict.n_status[VN_UNLIMITED]);
		const int agreed = r->verdict.n_status[VN_AGREED], equal = r->verdict.n_status[VN_EQUAL];
		if (agreed)
			vn_text_add(text, VN_WORDS, ", %d judged while recorded and left out", agreed);
		if (equal)
			vn_text_add(text, VN_WORDS, ", %d equal by %s and not read", equal,
			            equal == 1 ? "its digest" : "their digests");
		if (measured + agreed + equal < r->checkpoints.n)
			vn_text_add(text, VN_WORDS, ", %d not (allowed%s)", r->checkpoints.n - measured - agreed - equal,
			            o->request.options->baseline ? " or known" : "");
	} else {
		/* How many of a partial recording are outside would drown in what it lacks. */
		const int fails = failing_measured(r);
		if (fails && fails < r->verdict.n_fails)
			vn_text_add(text, VN_WORDS, "%d of %d compared checkpoint%s", fails, measured, measured == 1 ? "" : "s");
		else
			vn_text_add(text, VN_WORDS, "%d of %d checkpoint%s", r->verdict.n_fails, r->checkpoints.n,
			            r->checkpoints.n == 1 ? "" : "s");
		for (int s = VN_MISSING; s < VN_N_CHECKPOINT_STATUSES; s++)
			if (r->verdict.n_status[s])
				vn_text_add(text, VN_WORDS, ", %d %s", r->verdict.n_status[s],
				            vn_checkpoint_status_text((vn_checkpoint_status)s));
	}
	if (r->verdict.n_status[VN_ACCUMULATED])
		vn_text_add(
			text, VN_WORDS,
			"; accumulated error is over the limit at %d checkpoint%s, but each operation before%s is within its "
			"own limit",
			r->verdict.n_status[VN_ACCUMULATED], r->verdict.n_status[VN_ACCUMULATED] == 1 ? "" : "s",
			judged_before(o, r) ? "" : " that could be recomputed from the recording");
	const int known = r->n_since[VN_KNOWN] + r->n_since[VN_BETTER];
	if (known)
		vn_text_add(text, VN_WORDS, ", %d outside as in the baseline", known);
	if (r->unpaired.n_neither)
		vn_text_add(text, VN_WORDS, "; %" PRId64 " other checkpoint%s of the plan in neither recording",
		            r->unpaired.n_neither, r->unpaired.n_neither == 1 ? "" : "s");
	vn_report_say_digests(&r->digests, text, VN_WORDS);
	if (r->verdict.strict)
		vn_text_add(text, VN_WORDS, "; %d warning%s (--strict)", r->remarks.warnings.n,
		            r->remarks.warnings.n == 1 ? " fails it" : "s fail it");
	vn_text_add(text, VN_WORDS, ".");
	return text;
}

static int count_origins(const vn_result *r, bool (*is)(const vn_checkpoint *))
{
	int n = 0;
	for (int i = 0; i < r->localised.n_origins; i++)
		n += is(&r->checkpoints.of[r->localised.origins[i]]);
	return n;
}

static bool is_wrong_capture(const vn_checkpoint *p)
{
	return p->replay.recorder_fault;
}

/* Within its limits, alone or together with other steps, though its operation adds more error than
 * its precision explains. */
static bool is_inside(const vn_checkpoint *p)
{
	return !p->fails;
}

/* The first checkpoint that shows an overwritten one; NULL. */
static const vn_checkpoint *first_overwritten(const vn_result *r)
{
	for (int i = 0; i < r->checkpoints.n; i++)
		if (r->checkpoints.of[i].overwritten)
			return &r->checkpoints.of[i];
	return NULL;
}

/* Number of checkpoints outside their limits that were not recomputed. */
static int not_recomputed(const vn_result *r)
{
	int n = 0;
	for (int i = 0; i < r->checkpoints.n; i++)
		n += r->checkpoints.of[i].fails && r->checkpoints.of[i].m.n && !r->checkpoints.of[i].replayed;
	return n;
}

#define OVERWRITTEN "it should hold the candidate's own %s, which was overwritten between the two"

/* What happened to an origin; NULL: unknown. */
static const char *say_cause(const vn_checkpoint *origin, char text[VN_WORDS])
{
	if (origin->overflow.reached > 0)
		return vn_replay_say_overflow(origin, text);
	if (!origin->overwritten)
		return NULL;
	snprintf(text, VN_WORDS, OVERWRITTEN, origin->overwritten);
	return text;
}

static void several_origins(const vn_opened *o, const vn_result *r, char text[VN_WORDS])
{
	const vn_checkpoint *origin = &r->checkpoints.of[r->localised.origins[0]];
	char                 label[VN_LABEL], words[VN_WORDS], placed[VN_WORDS], places[VN_WORDS];
	const char          *cause = say_cause(origin, words);
	const int            n = count_origins(r, is_wrong_capture), orders = count_origins(r, vn_local_is_order),
			  inside = count_origins(r, is_inside);
	const char *place = vn_replayed_place(o, origin, placed),
			   *folded = vn_replayed_origins(o, &r->checkpoints, &r->localised, places);
	vn_text_add(text, VN_WORDS, "The error starts at %d places; the first is %s%s%s%s%s", r->localised.n_origins,
	            place ? "in " : "", place ? place : vn_label(origin, label), cause ? ": " : "", cause ? cause : "",
	            folded ? "; all: " : "");
	vn_text_add(text, VN_WORDS, "%s", folded ? folded : "");
	if (inside)
		vn_text_add(text, VN_WORDS, "; %d of them %s within limits, but add%s more error than the precision explains",
		            inside, inside == 1 ? "is" : "are", inside == 1 ? "s" : "");
	if (n == r->localised.n_origins || orders == r->localised.n_origins)
		vn_text_add(text, VN_WORDS, ". All: %s.", vn_report_say_origin(o, r));
	else if (n)
		vn_text_add(text, VN_WORDS, "; %d of them %s", n, n == 1 ? "was captured wrongly" : "were captured wrongly");
	if (orders && orders < r->localised.n_origins)
		vn_text_add(text, VN_WORDS, "; %d of them %s", orders,
		            orders == 1 ? "has its columns in another order, not a mistake"
		                        : "have their columns in another order, not a mistake");
	if (n < r->localised.n_origins && orders < r->localised.n_origins)
		vn_text_add(text, VN_WORDS, ".");
}

/* Why the first checkpoint that is outside does not show where the error starts; NULL: an origin
 * shows it. */
static const char *say_outside(const vn_opened *o, const vn_result *r, const vn_checkpoint *first, char text[VN_WORDS])
{
	const int n = not_recomputed(r);

	if (first->invalid_floor)
		return first->detail ? first->detail : "its floor is not valid";
	if (vn_judge_fails_ungathered(first))
		return "vernier joined the shards; whether the engine gathers them before it samples is not recorded (--allow "
			   "ranks, if it does)";
	if (r->localised.n_origins)
		return NULL;
	if (!r->replayed)
		return o->plan || r->localised.run_graph
		           ? "no origin was found"
		           : "neither file holds a plan, so only the order is known, not the cause";
	if (n == 0)
		return "recomputed on the candidate's own inputs, every operation is within its precision: small errors "
			   "accumulate";
	snprintf(text, VN_WORDS, "%d of these could not be recomputed; the others are within their precision", n);
	return text;
}

const char *vn_report_say_start(const vn_opened *o, const vn_result *r, char text[VN_WORDS])
{
	const vn_checkpoint *first = r->localised.first >= 0 ? &r->checkpoints.of[r->localised.first] : NULL,
						*origin = r->localised.n_origins ? &r->checkpoints.of[r->localised.origins[0]] : NULL,
						*replaced = first_overwritten(r);
	char        label[VN_LABEL], words[VN_WORDS], placed[VN_WORDS];
	const char *why = first ? say_outside(o, r, first, words) : NULL;
	text[0] = 0;
	if (why)
		vn_text_add(text, VN_WORDS, "First outside: %s; %s.", vn_label(first, label), why);
	else if (origin && !first)
		vn_text_add(text, VN_WORDS, "But %s%s adds more error than its precision explains.", vn_label(origin, label),
		            r->localised.n_origins > 1 ? ", the first of several," : "");
	else if (r->localised.n_origins > 1)
		several_origins(o, r, text);
	else if (origin) {
		const char *place = vn_replayed_place(o, origin, placed);
		why = say_cause(origin, words);
		vn_text_add(text, VN_WORDS, "The error starts %s %s: %s.", place ? "in" : "at",
		            place ? place : vn_label(origin, label), why ? why : vn_report_say_origin(o, r));
	}
	if (r->localised.n_captured)
		vn_text_add(text, VN_WORDS, " %s%s used other numbers.",
		            vn_label(&r->checkpoints.of[r->localised.origins[r->localised.n_origins]], label),
		            r->localised.n_captured > 1
		                ? " and other checkpoints were captured wrongly: the operations that read them"
		                : " was captured wrongly: the operation that reads it");
	if (replaced && !replaced->origin)
		vn_text_add(text, VN_WORDS, "%s%s: " OVERWRITTEN ".", *text ? " Also " : "But ", vn_label(replaced, label),
		            replaced->overwritten);
	return text;
}

/* Without replay, an origin is a checkpoint outside its limits whose compared inputs are inside. */
static const char *say_inputs(const vn_opened *o, const vn_result *r)
{
	const int n = r->localised.n_origins;
	int       unseen = 0, input;
	for (int i = 0; i < n; i++)
		unseen += vn_inputs_of(o, &r->checkpoints, &r->localised, r->localised.origins[i], &input, 1) == 0;
	if (n == 1)
		return unseen ? "none of its inputs was compared" : "its inputs are within limits";
	return unseen == n ? "none of their inputs was compared"
	       : unseen    ? "those of their inputs that were compared are within limits"
	                   : "the inputs of each are within limits";
}

const char *vn_report_say_origin(const vn_opened *o, const vn_result *r)
{
	if (r->localised.n_origins && count_origins(r, vn_local_is_order) == r->localised.n_origins)
		return r->localised.n_origins > 1
		           ? "their columns are in another order, not a mistake (the operations that read them use that order)"
		           : "its columns are in another order, not a mistake (the operation that reads it uses that order)";
	if (r->localised.n_origins && count_origins(r, is_wrong_capture) == r->localised.n_origins)
		return r->localised.n_origins > 1
		           ? "captured wrongly, or changed after the capture (the operations that read them used the right "
		             "numbers)"
		           : "captured wrongly, or changed after the capture (the operation that reads it used the right "
		             "numbers)";
	if (r->replayed)
		return r->localised.n_origins > 1 ? "recomputing them on the candidate's own inputs gives other results"
		                                  : "recomputing it on the candidate's own inputs gives another result";
	return say_inputs(o, r);
}

static bool is_magnified(const vn_checkpoint *p)
{
	return p->replayed && p->status == VN_OUTSIDE && !p->invalid_floor && !vn_local_beyond(p) &&
	       p->replay.gain >= VN_GAIN_NAMED;
}

void vn_report_say_cleared(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	(void)o;
	enum { NAMED = 4 };
	char label[VN_LABEL];
	int  named[NAMED], n = 0, all = 0;
	for (int i = 0; i < r->checkpoints.n; i++) {
		if (!is_magnified(&r->checkpoints.of[i]))
			continue;
		int at = n < NAMED ? n++ : NAMED; /* the largest first */
		for (; at > 0 && r->checkpoints.of[named[at - 1]].replay.gain < r->checkpoints.of[i].replay.gain; at--)
			if (at < NAMED)
				named[at] = named[at - 1];
		if (at < NAMED)
			named[at] = i;
		all++;
	}
	for (int i = 0; i < n; i++)
		vn_lines_add(
			lines,
			"%s only magnifies the error of its inputs, %.2g times, as the reference engine does on these inputs",
			vn_label(&r->checkpoints.of[named[i]], label), r->checkpoints.of[named[i]].replay.gain);
	if (all > n)
		vn_lines_add(lines, "%d more operations only magnify the error of their inputs, as the reference engine does",
		             all - n);
}

/* ---- the baseline ------------------------------------------------------------------- */

void vn_report_say_baseline(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	enum { NAMED = 8 };
	const int *n = r->n_since;
	char       label[VN_LABEL], words[VN_WORDS];
	if (!o->request.options->baseline)
		return;
	vn_lines_add(lines, "%s: %d outside as before, %d of them better; %d no longer outside; %d worse, %d new",
	             o->request.options->baseline, n[VN_KNOWN] + n[VN_BETTER], n[VN_BETTER], n[VN_FIXED], n[VN_WORSE],
	             n[VN_NEW]);
	for (int i = 0, told = 0; i < r->checkpoints.n && told < NAMED; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[i];
		if (p->since == VN_FIXED)
			vn_lines_add(lines, "no longer outside: %s", vn_label(p, label));
		else if (p->since == VN_BETTER)
			vn_lines_add(lines, "better: %s: %s", vn_label(p, label), vn_judge_say_failure(p, words));
		told += p->since == VN_FIXED || p->since == VN_BETTER;
	}
}

/* ---- logits ------------------------------------------------------------------------ */

static const char *agreement_words(const double *m, double strict, double half, char text[VN_WORDS])
{
	char error[40] = "";
	if (half > 0)
		snprintf(error, sizeof error, " +- %.2g", half);
	snprintf(text, VN_WORDS, "argmax agrees in %.4g %% of the rows (%.4g %% with near ties), top 5 in %.4g %%, KL",
	         100 * strict, 100 * m[VN_M_ARGMAX_AGREEMENT], 100 * m[VN_M_TOP5_AGREEMENT]);
	if (isnan(m[VN_M_KL_MEAN]))
		vn_text_add(text, VN_WORDS, " -: scores that are not finite");
	else
		vn_text_add(text, VN_WORDS, " mean %.3g%s p99 %.3g max %.3g", m[VN_M_KL_MEAN], error, m[VN_M_KL_P99],
		            m[VN_M_KL_MAX]);
	return text;
}

void vn_report_say_scores(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	char label[VN_LABEL], text[VN_WORDS];
	for (int i = 0; i < r->checkpoints.n; i++) {
		const vn_checkpoint *k = &r->checkpoints.of[i];
		if (k->m.has[VN_M_KL_MEAN] && k->pooled_logits < 0)
			vn_lines_add(lines, "%s: %s", vn_label(k, label),
			             agreement_words(k->m.value, k->m.argmax_strict, k->m.kl_half, text));
		const bool mask = o->replayed && k->replayed && !vn_local_beyond(k);
		if (!mask && k->m.n && k->m.value[VN_M_HEADROOM] > 0.25 && k->m.value[VN_M_HEADROOM] <= 1)
			vn_lines_add(lines, "%s: the candidate's largest value is %.3g, %.0f %% of the largest %s",
			             vn_label(k, label), k->m.absmax[1], 100 * k->m.value[VN_M_HEADROOM],
			             vn_dtype_name(vn_recording_entry(o->cand, k->cand)->dtype));
	}
	for (int i = 0; i < r->pools.n_pooled_logits; i++) {
		const vn_pooled_logits *g = &r->pools.pooled_logits[i];
		vn_lines_add(lines, "%s of %d steps (%d-%d): %s (worst in step %d)", g->name, g->n,
		             r->checkpoints.of[g->first].step, r->checkpoints.of[g->last].step,
		             agreement_words(g->value, g->argmax_strict, g->kl_half, text), r->checkpoints.of[g->worst].step);
	}
}

/* ---- recordings -------------------------------------------------------------------- */

const char *vn_report_say_recorder(const vn_recording *r, char text[VN_RECORDER])
{
	static const char *const keys[] = { "engine", "engine_version", "precision", "device" };

	*text = 0;
	for (size_t i = 0; r && i < sizeof keys / sizeof *keys; i++) {
		const char *v = vn_facts_get(vn_recording_run(r), keys[i]);
		if (v && *v)
			vn_text_add(text, VN_RECORDER, "%s%.90s", *text ? ", " : "", v);
	}
	if (r)
		vn_text_add(text, VN_RECORDER, "%s%s weights", *text ? "; " : "", vn_recording_provenance(r));
	return vn_text_clean(text, VN_RECORDER); /* it is untrusted text */
}

const char *vn_printable_path(const char *path, char room[PATH_MAX])
{
	snprintf(room, PATH_MAX, "%s", path);
	return vn_text_clean(room, PATH_MAX);
}
