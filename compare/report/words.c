/* words.c: see words.h. */
#include "compare/report/words.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"

#include "compare/replay/replay.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the verdict ---------------------------------------------------------------- */

const char *vn_say_verdict(const vn_comparison *c)
{
	if (c->strict)
		return "OUTSIDE by --strict";
	if (c->options->baseline)
		return !c->within ? "WORSE than the baseline" : c->n_since[VN_KNOWN] + c->n_since[VN_BETTER] ? "no worse than the baseline"
		                                                                                            : "within limits";
	if (c->within && c->n_status[VN_ACCUMULATED])
		return "within by operation";
	return c->within ? "within limits" : "OUTSIDE limits";
}

/* "; 74 digests checked, 2 do not match, 3 tensors without one" */
static void add_digests(const vn_verified *d, char text[VN_WORDS])
{
	const int64_t all = d->checked + d->wrong;
	if (all)
		vn_text_add(text, VN_WORDS, "; %" PRId64 " digest%s checked", all, all == 1 ? "" : "s");
	if (d->wrong)
		vn_text_add(text, VN_WORDS, ", %" PRId64 " do%s not match", d->wrong, d->wrong == 1 ? "es" : "");
	if (d->without)
		vn_text_add(text, VN_WORDS, all ? ", %" PRId64 " tensor%s without one" : "; %" PRId64 " tensor%s without a digest", d->without, d->without == 1 ? "" : "s");
}

const char *vn_say_counts(const vn_comparison *c, char text[VN_WORDS])
{
	const int measured = c->n_status[VN_WITHIN] + c->n_status[VN_OUTSIDE] + c->n_status[VN_ACCUMULATED] + c->n_status[VN_UNLIMITED];
	text[0] = 0;
	if (c->within || c->strict) {
		vn_text_add(text, VN_WORDS, "%d checkpoint%s compared", measured, measured == 1 ? "" : "s");
		if (c->n_status[VN_UNLIMITED])
			vn_text_add(text, VN_WORDS, ", %d of them without a limit", c->n_status[VN_UNLIMITED]);
		if (measured < c->n_points)
			vn_text_add(text, VN_WORDS, ", %d not (allowed%s)", c->n_points - measured, c->options->baseline ? " or known" : "");
	} else {
		vn_text_add(text, VN_WORDS, "%d of %d checkpoint%s", c->n_fails, c->n_points, c->n_points == 1 ? "" : "s");
		for (int s = VN_MISSING; s < VN_N_STATUS_WORDS; s++)
			if (c->n_status[s])
				vn_text_add(text, VN_WORDS, ", %d %s", c->n_status[s], vn_status_text((vn_status_word)s));
	}
	if (c->n_status[VN_ACCUMULATED])
		vn_text_add(text, VN_WORDS, "; accumulated error beyond its limit at %d checkpoint%s, every operation up to there cleared",
		            c->n_status[VN_ACCUMULATED], c->n_status[VN_ACCUMULATED] == 1 ? "" : "s");
	const int known = c->n_since[VN_KNOWN] + c->n_since[VN_BETTER];
	if (known)
		vn_text_add(text, VN_WORDS, ", %d outside as in the baseline", known);
	if (c->n_neither)
		vn_text_add(text, VN_WORDS, "; %" PRId64 " more of the plan %s in neither recording", c->n_neither, c->n_neither == 1 ? "is" : "are");
	add_digests(&c->digests, text);
	if (c->strict)
		vn_text_add(text, VN_WORDS, "; %d warning%s (--strict)", c->warnings.n, c->warnings.n == 1 ? " fails it" : "s fail it");
	vn_text_add(text, VN_WORDS, ".");
	return text;
}

static int wrong_captures(const vn_comparison *c)
{
	int n = 0;
	for (int i = 0; i < c->n_origins; i++)
		n += c->point[c->origins[i]].replay.captured;
	return n;
}

static int other_orders(const vn_comparison *c)
{
	int n = 0;
	for (int i = 0; i < c->n_origins; i++)
		n += vn_local_is_order(&c->point[c->origins[i]]);
	return n;
}

/* Checkpoints that are within their limits, or in their steps together, and whose operation adds more than its precision explains. */
static int within_limits(const vn_comparison *c)
{
	int n = 0;
	for (int i = 0; i < c->n_origins; i++)
		n += !c->point[c->origins[i]].fails;
	return n;
}

static void several_origins(const vn_comparison *c, char text[VN_WORDS])
{
	char label[VN_LABEL];
	const int n = wrong_captures(c), orders = other_orders(c), inside = within_limits(c);
	vn_text_add(text, VN_WORDS, "It starts at %d places; the first is %s", c->n_origins, vn_label(&c->point[c->origins[0]], label));
	if (inside)
		vn_text_add(text, VN_WORDS, "; %d of them %s within limits, and add%s more than the precision explains", inside, inside == 1 ? "is" : "are",
		            inside == 1 ? "s" : "");
	if (n == c->n_origins || orders == c->n_origins)
		vn_text_add(text, VN_WORDS, ": %s.", vn_say_origin(c));
	else if (n)
		vn_text_add(text, VN_WORDS, "; %d of them %s", n, n == 1 ? "is a wrong capture" : "are wrong captures");
	if (orders && orders < c->n_origins)
		vn_text_add(text, VN_WORDS, "; %d of them %s", orders, orders == 1 ? "has columns in another order, no mistake" : "are columns in another order, no mistakes");
	if (n < c->n_origins && orders < c->n_origins)
		vn_text_add(text, VN_WORDS, ".");
}

const char *vn_say_start(const vn_comparison *c, char text[VN_WORDS])
{
	char label[VN_LABEL];
	text[0] = 0;
	if (c->first >= 0 && c->point[c->first].invalid_floor)
		vn_text_add(text, VN_WORDS, "First outside: %s; %s.", vn_label(&c->point[c->first], label), c->point[c->first].detail ? c->point[c->first].detail : "its floor is none");
	else if (c->n_origins && c->first < 0)
		vn_text_add(text, VN_WORDS, "But %s%s adds more than its precision explains.", vn_label(&c->point[c->origins[0]], label),
		            c->n_origins > 1 ? ", the first of several," : "");
	else if (c->n_origins == 1)
		vn_text_add(text, VN_WORDS, "It starts at %s: %s.", vn_label(&c->point[c->origins[0]], label), vn_say_origin(c));
	else if (c->n_origins > 1)
		several_origins(c, text);
	else if (c->first >= 0 && c->replayed)
		vn_text_add(text, VN_WORDS, "First outside: %s; %s.", vn_label(&c->point[c->first], label),
		            "computed again on the candidate's own inputs no operation is beyond its precision: it adds up along the way");
	else if (c->first >= 0)
		vn_text_add(text, VN_WORDS, "First outside: %s; %s.", vn_label(&c->point[c->first], label), c->plan
		            ? "no origin could be told" : "neither file holds a plan, so only the order is known, not the cause");
	return text;
}

const char *vn_say_origin(const vn_comparison *c)
{
	if (c->n_origins && other_orders(c) == c->n_origins)
		return c->n_origins > 1 ? "their columns lie in another order, and what reads them is right so: no mistakes"
		                        : "its columns lie in another order, and what reads it is right so: no mistake";
	if (c->n_origins && wrong_captures(c) == c->n_origins)
		return c->n_origins > 1 ? "what reads them was computed from other numbers, which are right: they were captured wrongly, or changed after"
		                        : "what reads it was computed from other numbers, which are right: it was captured wrongly, or changed after";
	if (c->replayed)
		return c->n_origins > 1 ? "computed again on the candidate's own inputs they come out otherwise"
		                        : "computed again on the candidate's own inputs it comes out otherwise";
	return c->n_origins > 1 ? "what each was computed from is within limits" : "what that was computed from is within limits";
}

static bool magnifies(const vn_checkpoint *p)
{
	return p->replayed && p->status == VN_OUTSIDE && !vn_local_beyond(p) && p->replay.gain >= VN_GAIN_NAMED;
}

void vn_say_cleared(const vn_comparison *c, vn_lines *lines)
{
	enum { NAMED = 4 };
	char label[VN_LABEL];
	int named[NAMED], n = 0, all = 0;
	for (int i = 0; i < c->n_points; i++) {
		if (!magnifies(&c->point[i]))
			continue;
		int at = n < NAMED ? n++ : NAMED; /* the largest first */
		for (; at > 0 && c->point[named[at - 1]].replay.gain < c->point[i].replay.gain; at--)
			if (at < NAMED)
				named[at] = named[at - 1];
		if (at < NAMED)
			named[at] = i;
		all++;
	}
	for (int i = 0; i < n; i++)
		vn_lines_add(lines, "%s only magnifies what it was given, %.2g times", vn_label(&c->point[named[i]], label), c->point[named[i]].replay.gain);
	if (all > n)
		vn_lines_add(lines, "%d more that magnify and add nothing themselves", all - n);
}

/* ---- the baseline ------------------------------------------------------------------- */

void vn_say_baseline(const vn_comparison *c, vn_lines *lines)
{
	enum { NAMED = 8 };
	const int *n = c->n_since;
	char label[VN_LABEL], words[VN_WORDS];
	if (!c->options->baseline)
		return;
	vn_lines_add(lines, "%s: %d outside as before, %d of them better; %d no longer outside; %d worse, %d new", c->options->baseline,
	             n[VN_KNOWN] + n[VN_BETTER], n[VN_BETTER], n[VN_FIXED], n[VN_WORSE], n[VN_NEW]);
	for (int i = 0, told = 0; i < c->n_points && told < NAMED; i++) {
		const vn_checkpoint *p = &c->point[i];
		if (p->since == VN_FIXED)
			vn_lines_add(lines, "no longer outside: %s", vn_label(p, label));
		else if (p->since == VN_BETTER)
			vn_lines_add(lines, "better: %s: %s", vn_label(p, label), vn_say_failure(p, words));
		told += p->since == VN_FIXED || p->since == VN_BETTER;
	}
}

/* ---- logits ------------------------------------------------------------------------ */

static const char *agreement(const double *m, double strict, double half, char text[VN_WORDS])
{
	char error[40] = "";
	if (half > 0)
		snprintf(error, sizeof error, " +- %.2g", half);
	snprintf(text, VN_WORDS, "argmax agrees in %.4g %% of the rows (%.4g %% with near ties), top 5 in %.4g %%, KL mean %.3g%s p99 %.3g max %.3g",
	         100 * strict, 100 * m[VN_M_ARGMAX_AGREEMENT], 100 * m[VN_M_TOP5_AGREEMENT], m[VN_M_KL_MEAN], error, m[VN_M_KL_P99],
	         m[VN_M_KL_MAX]);
	return text;
}

void vn_say_scores(const vn_comparison *c, vn_lines *lines)
{
	char label[VN_LABEL], text[VN_WORDS];
	for (int i = 0; i < c->n_points; i++) {
		const vn_checkpoint *k = &c->point[i];
		if (k->m.has[VN_M_KL_MEAN] && k->pool < 0)
			vn_lines_add(lines, "%s: %s", vn_label(k, label), agreement(k->m.value, k->m.argmax_strict, k->m.kl_half, text));
		if (k->m.n && k->m.value[VN_M_HEADROOM] > 0.25 && k->m.value[VN_M_HEADROOM] <= 1)
			vn_lines_add(lines, "%s: candidate reaches %.3g, %.0f %% of what %s can hold", vn_label(k, label),
			             k->m.absmax[1], 100 * k->m.value[VN_M_HEADROOM],
			             vn_dtype_name(vn_recording_entry(c->cand, k->cand)->dtype));
	}
	for (int i = 0; i < c->n_pools; i++) {
		const vn_pool *g = &c->pool[i];
		vn_lines_add(lines, "%s of %d steps (%d-%d): %s (step %d)", g->name, g->n, c->point[g->first].step,
		             c->point[g->last].step, agreement(g->value, g->argmax_strict, g->kl_half, text), c->point[g->worst].step);
	}
}
