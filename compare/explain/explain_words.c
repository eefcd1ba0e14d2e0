/* explain_words.c: see explain_words.h. */
#include "compare/explain/explain_words.h"
#include "compare/explain/sentences.h"
#include "compare/trial/score.h"
#include "compare/replay/local.h"
#include "compare/comparison/checkpoint.h"
#include "compare/match/contract.h"
#include "compare/replay/overflow.h"
#include "compare/replay/replay_words.h"
#include "libref/base/text.h"
#include "libref/plan/fault.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHERE = VN_WORDS };
enum { ANSWERS = 8 }; /* the most answers that get a line of their own */

/* Is this value recorded, and replayed without an error? */
static bool recorded_right(const vn_result *r, int step, const char *name)
{
	for (int i = 0; i < r->checkpoints.n; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[i];
		if (p->step == step && p->replayed && strcmp(p->name, name) == 0)
			return !vn_local_beyond(p) && !p->replay.recorder_fault;
	}
	return false;
}

/* ", at layer1.q_rope and layer1.k_rope", if a trial was made elsewhere than at the
 * checkpoint alone. */
static const char *made_at(const vn_opened *o, const vn_result *r, const vn_findings *x, const vn_trial *h,
                           char text[WHERE])
{
	if (h->node < 0)
		return *text = '\0', text;
	const vn_plan *p = vn_model_plan(o->model);
	const int      v = vn_plan_find(p, r->checkpoints.of[x->checkpoint].name);
	const bool     here = v >= 0 && p->value[vn_plan_root(p, v)].node == h->node;
	const char    *name = p->value[p->node[h->node].out[0]].name;
	snprintf(text, WHERE, "%s%s%s%s%s%s", *h->heads_only ? ", " : "", h->heads_only,
	         !here      ? ", at "
	         : *h->also ? ", here"
	                    : "",
	         here ? "" : name, h->also,
	         !here && !*h->also && recorded_right(r, r->checkpoints.of[x->checkpoint].step, name)
	             ? ", which is recorded as it should be"
	             : "");
	return text;
}

const char *vn_explain_say_one(const vn_opened *o, const vn_result *r, const vn_findings *x, char text[VN_EXPLAINED])
{
	char at[WHERE];

	text[0] = 0;
	if (vn_local_is_order(&r->checkpoints.of[x->checkpoint]))
		vn_text_add(text, VN_EXPLAINED, "%s", vn_replay_say_column_order(o, &r->checkpoints.of[x->checkpoint], at));
	else if (vn_overflow_is_all(&r->checkpoints.of[x->checkpoint]))
		vn_text_add(text, VN_EXPLAINED, "%s", vn_replay_say_overflow(&r->checkpoints.of[x->checkpoint], at));
	else if (*x->why_not)
		vn_text_add(text, VN_EXPLAINED, "not explained: %s", x->why_not);
	else if (!x->n_fit)
		vn_text_add(text, VN_EXPLAINED, "none of %d known mistakes fits", x->n_tried);
	else {
		const vn_trial *h = &x->by[0];
		vn_text_add(text, VN_EXPLAINED, "%s%s%s%s%s%s%s%s", h->id, *h->id ? ": " : "", h->words,
		            made_at(o, r, x, h, at), *h->recorded_instead ? " (" : "", h->recorded_instead,
		            *h->recorded_instead ? ")" : "",
		            *h->id && !h->recorder_fault && h->finding != VN_FINDING_PARALLEL_BLOCK &&
		                    r->checkpoints.of[x->checkpoint].replay.recorder_fault
		                ? "; only the recording is wrong: the run continued with other numbers"
		                : "");
	}
	return text;
}

static void list_aliases(const vn_opened *o, const vn_result *r, const vn_findings *x, vn_lines *lines)
{
	char text[VN_EXPLAINED] = "", at[WHERE];
	for (int i = 1; i < x->n_alias; i++)
		if (vn_alias_in_all_steps(r, r->why, x, i))
			vn_text_add(text, VN_EXPLAINED, "%s%s%s%s%s", *text ? "; " : "", x->by[i].id, *x->by[i].id ? ", " : "",
			            x->by[i].words, made_at(o, r, x, &x->by[i], at));
	if (!*text)
		return;
	vn_lines_add(lines, "equally good on this data: %s", text);
	if (*x->separating_input)
		vn_lines_add(lines, "to tell them apart: %s", x->separating_input);
}

/* The answers that fit here but not in the other steps. */
static void list_refuted(const vn_findings *x, vn_lines *lines)
{
	for (int i = x->n_alias; i < x->n; i++)
		if (x->by[i].refuted)
			vn_lines_add(lines, "%s fits here too, but is ruled out: %s", *x->by[i].id ? x->by[i].id : x->by[i].words,
			             x->by[i].contradicted_by);
}

/* The recording itself says that its positions count from another number than the reference's. */
static bool as_recorded(const vn_opened *o, const vn_trial *h)
{
	const int    row = vn_trial_row(h);
	const double from = h->finding == VN_FINDING_OFFSET && !h->paired  ? vn_trial_constant(h, "offset")
	                    : row == vn_mistake_fault(VN_MISTAKE_R3_PLUS)  ? 1
	                    : row == vn_mistake_fault(VN_MISTAKE_R3_MINUS) ? -1
	                                                                   : 0;
	int64_t      by;

	return vn_positions_moved(o, &by) && from == (double)by;
}

/* "explains 99.99 % of the error; ", rounded down. An answer that fits this well is no
 * coincidence. */
static const char *share_explained(const vn_findings *x, char text[60])
{
	const double left = x->by[0].residual.local / x->unmodified.residual.local;

	text[0] = 0;
	if (left <= 0.01)
		snprintf(text, 60, "explains %.2f %% of the error; ", floor(1e4 * (1 - left)) / 100);
	return text;
}

void vn_explain_say_more(const vn_opened *o, const vn_result *r, const vn_findings *x, vn_lines *lines)
{
	char share[60];

	if (*x->why_not || vn_local_is_order(&r->checkpoints.of[x->checkpoint]) ||
	    vn_overflow_is_all(&r->checkpoints.of[x->checkpoint]))
		return;
	if (!x->n_fit) {
		/* An answer that explains less than half is a coincidence. Any finite number is less
		 * than an infinite error. */
		if (x->n && !x->by[0].refuted && isfinite(x->unmodified.limit_fraction) &&
		    x->by[0].limit_fraction < x->unmodified.limit_fraction / 2)
			vn_lines_add(lines, "nearest: %s%s%s%s%s; %sresidual %.3g floors (was %.3g, limit %.3g)", x->by[0].id,
			             *x->by[0].id ? ", " : "", x->by[0].words, *x->by[0].heads_only ? ", " : "",
			             x->by[0].heads_only, share_explained(x, share), vn_trial_residual(&x->by[0]),
			             vn_trial_residual(&x->unmodified), VN_LOCAL_LIMIT * vn_findings_limit(x));
		for (int i = 0; i < x->error_shape.n; i++)
			vn_lines_add(lines, "the error looks like: %s", x->error_shape.line[i]);
		list_refuted(x, lines);
		return;
	}
	char next[sizeof x->by->words + 60] = "";
	if (x->n > x->n_alias && !x->by[x->n_alias].refuted) {
		const vn_trial *h = &x->by[x->n_alias];
		/* the same id, or none: the runner-up is named by its words */
		const bool      by_id = *h->id && strcmp(h->id, x->by[0].id) != 0;
		if (strcmp(h->words, x->by[0].words) != 0) /* the same with other roundings */
			snprintf(next, sizeof next,
			         by_id ? "; runner-up %s is %.3g times worse" : "; runner-up \"%s\" is %.3g times worse",
			         by_id ? h->id : h->words, x->margin);
	}
	vn_lines_add(lines, "residual %.3g floors (was %.3g)%s", vn_trial_residual(&x->by[0]),
	             vn_trial_residual(&x->unmodified), next);
	for (int i = 0; i < x->error_shape.n; i++)
		vn_lines_add(lines, "where: %s", x->error_shape.line[i]);
	if (as_recorded(o, &x->by[0]))
		vn_lines_add(
			lines, "the candidate's recorded positions have this offset too: a convention. Attention scores depend on "
				   "differences of positions, so they are unaffected unless steps have different offsets");
	if (*x->by[0].contradicted_by)
		vn_lines_add(lines, "not in every step: %s", x->by[0].contradicted_by);
	if (x->n_alias > 1)
		list_aliases(o, r, x, lines);
	list_refuted(x, lines);
}

/* Are the columns of both in the same order, of the same axes? */
static bool same_columns(const vn_opened *o, const vn_checkpoint *p, const vn_checkpoint *q)
{
	const vn_entry *a = vn_recording_entry(o->ref, p->ref), *b = vn_recording_entry(o->ref, q->ref);

	return p->replay.columns == q->replay.columns && a->shape.rank == b->shape.rank &&
	       strcmp(vn_entry_axes(a), vn_entry_axes(b)) == 0;
}

/* Do both have one answer, so that one line states it? */
static bool are_alike(const vn_opened *o, const vn_result *r, const vn_findings *a, const vn_findings *b)
{
	const vn_checkpoint *p = &r->checkpoints.of[a->checkpoint], *q = &r->checkpoints.of[b->checkpoint];

	if (vn_local_is_order(p) || vn_local_is_order(q))
		return vn_local_is_order(p) == vn_local_is_order(q) && same_columns(o, p, q);
	return a->n_fit && b->n_fit && vn_trial_same(&a->by[0], &b->by[0]);
}

void vn_explain_say_all(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	char label[VN_LABEL], text[VN_EXPLAINED];
	int  said_of = 0, left = 0;
	for (int i = 0; r->why && i < r->why->n; i++) {
		const vn_findings *x = &r->why->of[i];
		int                more = 0;
		bool               said = false;
		for (int k = 0; k < i; k++)
			said = said || are_alike(o, r, x, &r->why->of[k]);
		if (said)
			continue;
		if (said_of++ >= ANSWERS) {
			left += r->checkpoints.of[x->checkpoint].origin;
			continue;
		}
		for (int k = i + 1; k < r->why->n; k++)
			more += r->checkpoints.of[r->why->of[k].checkpoint].origin && are_alike(o, r, x, &r->why->of[k]);
		vn_label(&r->checkpoints.of[x->checkpoint], label);
		vn_explain_say_one(o, r, x, text);
		if (more)
			vn_lines_add(lines, "%s and %d more origin%s: %s", label, more, more == 1 ? "" : "s", text);
		else
			vn_lines_add(lines, "%s: %s", label, text);
		vn_explain_say_more(o, r, x, lines);
	}
	if (left)
		vn_lines_add(lines, "%d more origin%s other answers: see --format json", left, left == 1 ? " has" : "s have");
	if (r->why && r->why->left_out)
		vn_lines_add(lines, "%d more origins were not examined: %s", r->why->left_out,
		             r->localised.n_origins > r->checkpoints.n / 4
		                 ? "too many checkpoints are origins; check the candidate's precision (--floor-precision)"
		                 : "there are too many");
}
