/* notes.c: see notes.h. */
#include "compare/chapters/notes.h"

#include "compare/judge/count.h"
#include "compare/metrics/channels.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

void vn_warn_unused_rules(const vn_opened *o, vn_lines *warnings)
{
	if (o->request.options->n_points)
		return;
	for (int i = 0; i < o->request.limits->n_rules; i++) {
		const vn_rule *r = o->request.limits->rule[i];
		if (r->match && !r->hit && !r->shipped)
			vn_lines_add(warnings, "%s:%d: no checkpoint matches '%s'", r->file, r->line, r->match);
	}
}

void vn_note_masks(const vn_checkpoints *all, vn_lines *notes)
{
	long long n = 0;
	int       points = 0;
	for (int i = 0; i < all->n; i++) {
		n += all->of[i].m.masked;
		points += all->of[i].m.masked > 0;
	}
	if (n)
		vn_lines_add(
			notes,
			"attn_scores: %lld positions of %d checkpoint%s are minus infinity on both sides; these are masks, and are "
			"left out",
			n, points, points == 1 ? "" : "s");
}

/* With one token attention returns v whatever q, k, rotation and mask are. A wrong RoPE pairing
 * shows from a few tokens on, a wrong theta from about ten. */
enum { ENOUGH_TO_JUDGE = 16 };

void vn_warn_unread(vn_lines *warnings, const char *who, const vn_recording *r)
{
	const char *name[VN_UNREAD_NAMED];
	const int   n = vn_recording_unread(r, name);
	for (int i = 0; i < n && i < VN_UNREAD_NAMED; i++)
		vn_lines_add(warnings, "%s of the %s is ignored: it is not part of a checkpoint file", name[i], who);
	if (n > VN_UNREAD_NAMED)
		vn_lines_add(warnings, "%d more objects of the %s are ignored", n - VN_UNREAD_NAMED, who);
}

/* Compared here, during the candidate's run, or by the candidate's digests. */
static bool was_compared(const vn_checkpoint *p)
{
	return p->m.n || p->status == VN_AGREED || p->status == VN_EQUAL;
}

/* Is a tensor compared that is made of the model's last layer? */
static bool has_end(const vn_plan *p, const vn_checkpoints *all, int last_layer)
{
	int  last = -1;
	bool end = false;

	for (int i = 0; i < p->n_nodes; i++)
		last = p->node[i].layer == last_layer ? i : last;
	for (int i = 0; i < all->n && !end; i++) {
		const int v = vn_plan_find(p, all->of[i].name);
		end = v >= 0 && p->value[vn_plan_root(p, v)].node > last && was_compared(&all->of[i]);
	}
	return end;
}

static void note_layers(const vn_plan *p, const vn_checkpoints *points, vn_lines *notes)
{
	const int last = vn_plan_last_layer(p);
	int       low = INT_MAX, high = -1;
	char      layers[48];

	for (int i = 0; i < points->n; i++)
		if (was_compared(&points->of[i]) && points->of[i].layer >= 0) {
			low = points->of[i].layer < low ? points->of[i].layer : low;
			high = points->of[i].layer > high ? points->of[i].layer : high;
		}
	const bool later = high < last && !has_end(p, points, last);
	snprintf(layers, sizeof layers, low == high ? "layer %d" : "layers %d-%d", low, high);
	if (high >= 0 && (low > 0 || high < last))
		vn_lines_add(notes, "%s of %d %s compared: a fault in %s", layers, p->layers, low == high ? "is" : "are",
		             later ? "a later layer is not found" : "another layer shows only in what is made of it");
	if (high >= 0 && high <= last && last < p->layers - 1 && !later)
		vn_lines_add(notes, "the multi-token-prediction head is not compared: a fault in it is not found");
}

void vn_note_part(const vn_opened *o, const vn_checkpoints *points, vn_lines *notes)
{
	const vn_step *step;
	const int      steps = vn_recording_steps(o->cand, &step);
	const int64_t  all = vn_recording_tokens(o->cand, NULL, NULL);
	int64_t        first = all, last = -1;

	for (int i = 0; i < steps; i++) {
		const int64_t from = step[i].position + step[i].first_row;
		first = from < first ? from : first;
		last = from + step[i].rows - 1 > last ? from + step[i].rows - 1 : last;
	}
	if (last >= 0 && (first > 0 || last < all - 1))
		vn_lines_add(notes,
		             "tokens %" PRId64 "-%" PRId64 " of %" PRId64
		             " are compared: a fault that affects only other tokens is not found%s",
		             first, last, all,
		             last == 0 ? ", and at position 0 rotations, masks and caches have no effect" : "");
	if (o->plan)
		note_layers(o->plan, points, notes);
}

void vn_note_few_tokens(const vn_opened *o, vn_lines *notes)
{
	const int32_t  *id, *at;
	const long long n = vn_recording_tokens(o->ref, &id, &at);
	const int       of = vn_judge_count_ids(id, n);
	if (n == 0 && vn_recording_run_plan(o->ref))
		return; /* its inputs are no tokens */
	if (n < ENOUGH_TO_JUDGE)
		vn_lines_add(notes, "%lld token%s: below %d, faults in rotations, masks and caches may be invisible", n,
		             n == 1 ? "" : "s", ENOUGH_TO_JUDGE);
	if (n > 0 && of < VN_CHANNEL_FEWEST)
		vn_lines_add(notes, "%d different token%s: below %d, faults in single channels may be invisible", of,
		             of == 1 ? "" : "s", VN_CHANNEL_FEWEST);
}
