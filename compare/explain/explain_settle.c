/* explain_settle.c: which of several answers that the numbers cannot tell apart comes first, and
 * what would tell them apart. */
#include "compare/explain/explain_inside.h"

#include "libref/plan/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENOUGH_TOKENS = 70 }; /* from which masks, windows and chunks show (specs/models.md 9.10) */

/* What is fitted says its number, so words tell. */
static bool same_answer(const vn_hypothesis *a, const vn_hypothesis *b)
{
	return strcmp(a->id, b->id) == 0 && strcmp(a->words, b->words) == 0 && strcmp(a->in_part, b->in_part) == 0;
}

/* How many origins it explains. */
static int explains(const vn_explanations *x, const vn_hypothesis *h)
{
	int n = 0;
	for (int i = 0; i < x->n; i++)
		for (int k = 0; k < x->of[i].n_alias; k++)
			if (same_answer(&x->of[i].by[k], h)) {
				n++;
				break;
			}
	return n;
}

/* In how many places it could have been made: what fits few is the more telling. */
static int places(const vn_comparison *c, const char *id)
{
	const int f = *id ? vn_fault_find(id) : -1;
	return f < 0 ? 0 : vn_fault_count(f, vn_model_plan(c->model), NULL);
}

/* The counterpart of rotated queries are keys, of cached keys values, and back: faults of both are not faults of one. */
static const char *counterpart(const vn_comparison *c, const vn_explanation *x, char text[VN_NAME_MAX], const vn_checkpoint **found)
{
	char *at;

	*found = NULL;
	snprintf(text, VN_NAME_MAX, "%s", c->point[x->point].name);
	if ((at = strstr(text, "q_rope")) || (at = strstr(text, "k_rope")))
		*at = *at == 'q' ? 'k' : 'q';
	else if ((at = strstr(text, "k_cache")) || (at = strstr(text, "v_cache")))
		*at = *at == 'k' ? 'v' : 'k';
	for (int i = 0; at && i < c->n_points; i++)
		if (c->point[i].step == c->point[x->point].step && strcmp(c->point[i].name, text) == 0)
			*found = &c->point[i];
	return at ? text : NULL;
}

/* Keys and values of another layer, where the other cache came out right: it is of one of the two. */
static bool of_one_alone(const vn_comparison *c, const vn_explanation *x, const vn_hypothesis *h)
{
	char                 text[VN_NAME_MAX];
	const vn_checkpoint *beside;

	return strcmp(h->id, "C9") == 0 && counterpart(c, x, text, &beside) && beside && beside->replayed && !beside->origin;
}

typedef struct rank {
	int named, explains, places;
} rank;

/* An arrangement is no mistake by name, nor what another checkpoint denies; then what explains more; then what fits fewer places. */
static rank rank_of(const vn_comparison *c, const vn_explanations *all, const vn_explanation *x, const vn_hypothesis *h)
{
	return (rank) { *h->id != 0 && !of_one_alone(c, x, h), explains(all, h), places(c, h->id) };
}

static bool first(const rank *a, const rank *b)
{
	return a->named != b->named ? a->named > b->named : a->explains != b->explains ? a->explains > b->explains : a->places < b->places;
}

static void order(const vn_comparison *c, const vn_explanations *all, vn_explanation *x)
{
	for (int i = 1; i < x->n_alias; i++) {
		const vn_hypothesis h = x->by[i];
		const rank mine = rank_of(c, all, x, &h);
		int at = i;
		for (; at > 0; at--) {
			const rank other = rank_of(c, all, x, &x->by[at - 1]);
			if (!first(&mine, &other))
				break;
			x->by[at] = x->by[at - 1];
		}
		x->by[at] = h;
	}
}

/* ---- what would tell them apart -------------------------------------------------------------- */

static bool by_capture(const vn_explanation *x)
{
	for (int i = 1; i < x->n_alias; i++)
		if (x->by[i].capture != x->by[0].capture)
			return true;
	return false;
}

/* Where they are made at other places: one that is not the checkpoint's own operation. */
static const char *uncaptured(const vn_comparison *c, const vn_explanation *x)
{
	const vn_plan *p = vn_model_plan(c->model);
	const int      v = vn_plan_find(p, c->point[x->point].name), own = v < 0 ? -1 : p->value[vn_plan_root(p, v)].node;
	bool           apart = x->by[0].node != own; /* what it makes itself is the most telling */
	int            other = -1;

	for (int i = 0; i < x->n_alias; i++) {
		apart = apart || x->by[i].node != x->by[0].node || strcmp(x->by[i].also, x->by[0].also) != 0;
		other = other < 0 && x->by[i].node != own ? x->by[i].node : other;
	}
	return apart && other >= 0 ? p->value[p->node[other].out[0]].name : NULL;
}

static void separate(const vn_comparison *c, vn_explanation *x)
{
	char        other[VN_NAME_MAX];
	const char *name;
	const vn_checkpoint *beside;
	const char *id = strchr(c->point[x->point].name, '.');

	if (x->n_alias < 2)
		return;
	if ((name = uncaptured(c, x)))
		snprintf(x->separate, sizeof x->separate, "a recording that has %s too", name);
	else if (by_capture(x))
		snprintf(x->separate, sizeof x->separate, "a recording that has what reads %s too", id ? id + 1 : c->point[x->point].name);
	else if ((name = counterpart(c, x, other, &beside)) && beside)
		snprintf(x->separate, sizeof x->separate, "%s, which came out %s here", name, beside->origin ? "otherwise too" : "right");
	else if (name)
		snprintf(x->separate, sizeof x->separate, "a recording that has %s too", name);
	else if (vn_recording_tokens(c->cand, NULL, NULL) < ENOUGH_TOKENS)
		snprintf(x->separate, sizeof x->separate, "a prompt of %d tokens or more", ENOUGH_TOKENS);
	else
		snprintf(x->separate, sizeof x->separate, "another layer or another model, if at all: here they come to the same numbers");
}

void vn_explain_settle(const vn_comparison *c, vn_explanations *x)
{
	for (int i = 0; i < x->n; i++)
		order(c, x, &x->of[i]);
	for (int i = 0; i < x->n; i++)
		separate(c, &x->of[i]);
}
