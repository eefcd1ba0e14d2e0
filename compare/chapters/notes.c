/* notes.c: see notes.h. */
#include "compare/chapters/notes.h"

#include "compare/judge/count.h"
#include "compare/metrics/channels.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

void vn_warn_unused_rules(vn_comparison *c)
{
	if (c->opened.request.options->n_points)
		return;
	for (int i = 0; i < c->opened.request.limits->n_rules; i++) {
		const vn_rule *r = c->opened.request.limits->rule[i];
		if (r->match && !r->hit && !r->shipped)
			vn_lines_add(&c->result.remarks.warnings, "%s:%d: no checkpoint matches '%s'", r->file, r->line, r->match);
	}
}

void vn_note_masks(vn_comparison *c)
{
	long long n = 0;
	int       points = 0;
	for (int i = 0; i < c->result.checkpoints.n; i++) {
		n += c->result.checkpoints.of[i].m.masked;
		points += c->result.checkpoints.of[i].m.masked > 0;
	}
	if (n)
		vn_lines_add(
			&c->result.remarks.notes,
			"attn_scores: %lld positions of %d checkpoint%s are minus infinity on both sides; these are masks, and are "
			"left out",
			n, points, points == 1 ? "" : "s");
}

/* With one token attention returns v whatever q, k, rotation and mask are. A wrong RoPE pairing
 * shows from a few tokens on, a wrong theta from about ten. */
enum { ENOUGH_TO_JUDGE = 16 };

void vn_warn_unread(vn_result *result, const char *who, const vn_recording *r)
{
	const char *name[VN_UNREAD_NAMED];
	const int   n = vn_recording_unread(r, name);
	for (int i = 0; i < n && i < VN_UNREAD_NAMED; i++)
		vn_lines_add(&result->remarks.warnings, "%s of the %s is ignored: it is not part of a checkpoint file", name[i],
		             who);
	if (n > VN_UNREAD_NAMED)
		vn_lines_add(&result->remarks.warnings, "%d more objects of the %s are ignored", n - VN_UNREAD_NAMED, who);
}

/* Compared here, during the candidate's run, or by the candidate's digests. */
static bool was_compared(const vn_checkpoint *p)
{
	return p->m.n || p->status == VN_AGREED || p->status == VN_EQUAL;
}

/* Is a tensor compared that is made of the last layer? */
static bool has_end(const vn_comparison *c)
{
	const vn_plan *p = c->opened.plan;
	int            last = -1;
	bool           end = false;

	for (int i = 0; i < p->n_nodes; i++)
		last = p->node[i].layer == p->layers - 1 ? i : last;
	for (int i = 0; i < c->result.checkpoints.n && !end; i++) {
		const int v = vn_plan_find(p, c->result.checkpoints.of[i].name);
		end = v >= 0 && p->value[vn_plan_root(p, v)].node > last && was_compared(&c->result.checkpoints.of[i]);
	}
	return end;
}

void vn_note_part(vn_comparison *c)
{
	const vn_step *step;
	const int      steps = vn_recording_steps(c->opened.cand, &step);
	const int64_t  all = vn_recording_tokens(c->opened.cand, NULL, NULL);
	int64_t        first = all, last = -1;
	int            low = INT_MAX, high = -1;
	char           layers[48];

	for (int i = 0; i < steps; i++) {
		const int64_t from = step[i].position + step[i].first_row;
		first = from < first ? from : first;
		last = from + step[i].rows - 1 > last ? from + step[i].rows - 1 : last;
	}
	for (int i = 0; i < c->result.checkpoints.n; i++)
		if (was_compared(&c->result.checkpoints.of[i]) && c->result.checkpoints.of[i].layer >= 0) {
			low = c->result.checkpoints.of[i].layer < low ? c->result.checkpoints.of[i].layer : low;
			high = c->result.checkpoints.of[i].layer > high ? c->result.checkpoints.of[i].layer : high;
		}
	if (last >= 0 && (first > 0 || last < all - 1))
		vn_lines_add(&c->result.remarks.notes,
		             "tokens %" PRId64 "-%" PRId64 " of %" PRId64
		             " are compared: a fault that affects only other tokens is not found%s",
		             first, last, all,
		             last == 0 ? ", and at position 0 rotations, masks and caches have no effect" : "");
	snprintf(layers, sizeof layers, low == high ? "layer %d" : "layers %d-%d", low, high);
	if (high >= 0 && c->opened.plan && (low > 0 || high < c->opened.plan->layers - 1))
		vn_lines_add(&c->result.remarks.notes, "%s of %d %s compared: a fault in %s", layers, c->opened.plan->layers,
		             low == high ? "is" : "are",
		             high < c->opened.plan->layers - 1 && !has_end(c)
		                 ? "a later layer is not found"
		                 : "another layer shows only in what is made of it");
}

void vn_note_few_tokens(vn_comparison *c)
{
	const int32_t  *id, *at;
	const long long n = vn_recording_tokens(c->opened.ref, &id, &at);
	const int       of = vn_judge_count_ids(id, n);
	if (n == 0 && vn_recording_run_plan(c->opened.ref))
		return; /* its inputs are no tokens */
	if (n < ENOUGH_TO_JUDGE)
		vn_lines_add(&c->result.remarks.notes,
		             "%lld token%s: below %d, faults in rotations, masks and caches may be invisible", n,
		             n == 1 ? "" : "s", ENOUGH_TO_JUDGE);
	if (n > 0 && of < VN_CHANNEL_FEWEST)
		vn_lines_add(&c->result.remarks.notes,
		             "%d different token%s: below %d, faults in single channels may be invisible", of,
		             of == 1 ? "" : "s", VN_CHANNEL_FEWEST);
}
