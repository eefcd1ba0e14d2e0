/* explain_steps.c: what each step says of a point held against its other steps.
 *
 * A mistake of an engine is made in every step, unless it is of one kind of them by its nature
 * (what is cached, positions behind the first call): then it changes nothing in the others. So a mistake of the
 * catalogue that explains a checkpoint is made at the same point of other steps, too. A step that is
 * right, and would not be with it, speaks against it: it may be that the engine has other code for other steps, so it
 * stays the answer, with these words, where nothing else is one. A step of as many tokens that is wrong otherwise, and that
 * nothing explains, refutes it: what is wrong there looks like it here.
 *
 * What was fitted is made of constants, and made again by them; where nothing explains a step, what was fitted in another may.
 * What was recorded alone, and arrangements, are left out; where these have another number in another step, that is said. */
#include "compare/explain/explain_inside.h"

#include "libref/plan/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERWISE = 16 }; /* steps of another answer that one is held against, at most */
enum { RIGHT = 3 }; /* steps that came out right in which a hypothesis is made, at most */

/* In another step it leaves, or would have left, more than what a floor that is a little too small explains. */
#define BEYOND 4.0
/* A step that is wrong by so much is wrong for a reason; what was fitted elsewhere and leaves half of it is not that. */
#define WRONG 2.0

/* What became of a hypothesis at a checkpoint. */
typedef struct verdict {
	vn_hypothesis h;
	int           point;
	double        used; /* NaN: it changes nothing there */
} verdict;

/* The explanations of one point. */
typedef struct group {
	vn_trial        *t;
	vn_explanation **x; /* (n) */
	int              n;
	verdict         *known;
	int              n_known, room;
	vn_hypothesis  (*refuted)[VN_EXPLAIN_KEPT]; /* (n): taken out of x->by, to stand last there */
	int             *n_refuted;
} group;

static const char *name_of(const vn_comparison *c, const vn_explanation *x)
{
	return c->point[x->point].name;
}

static bool one_token(const vn_comparison *c, int point)
{
	const vn_step *s = vn_recording_step(c->cand, c->point[point].step);
	return s && s->tokens == 1;
}

/* The same mistake at the same places. */
static bool same_mistake(const vn_hypothesis *a, const vn_hypothesis *b)
{
	return a->node == b->node && strcmp(a->id, b->id) == 0 && strcmp(a->also, b->also) == 0 && memcmp(a->part, b->part, sizeof a->part) == 0
	       && (vn_is_made(a) ? vn_is_made(b) && strcmp(a->words, b->words) == 0 : !vn_is_made(b));
}

/* ---- a hypothesis in another step ----------------------------------------------------------------- */

static vn_status make_there(vn_trial *t, const vn_hypothesis *h, verdict *v, vn_error *err)
{
	vn_explanation  there = { .point = v->point, .by = calloc(VN_EXPLAIN_KEPT, sizeof *there.by) };
	vn_explanation *here = t->x;
	vn_status       st = there.by ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for hypotheses");

	t->x = &there;
	for (int k = 0; !st && k < (h->made.first != h->made.last ? 3 : 1); k++) { /* of numbers from one to another these, too */
		vn_hypothesis with = *h;
		if (k)
			vn_made_number(&with, (double)(k == 1 ? h->made.first : h->made.last));
		there.n = 0;
		st = vn_explain_with(t, &with, err);
		for (int i = 0; i < there.n; i++)
			if (same_mistake(&there.by[i], h) && !(there.by[i].used >= v->used))
				v->used = there.by[i].used;
	}
	t->x = here;
	free(there.by);
	return st;
}

static vn_status used_there(group *g, const vn_hypothesis *h, int point, double *used, vn_error *err)
{
	verdict   v = { .h = *h, .point = point, .used = (double)NAN };
	vn_status st;

	for (int i = 0; i < g->n_known; i++)
		if (g->known[i].point == point && same_mistake(&g->known[i].h, h)) {
			*used = g->known[i].used;
			return VN_OK;
		}
	if (g->n_known == g->room) {
		verdict *more = realloc(g->known, (size_t)(2 * g->room + 16) * sizeof *more);
		if (!more)
			return vn_fail(err, VN_ERR_NOMEM, "no memory for hypotheses");
		g->known = more;
		g->room = 2 * g->room + 16;
	}
	if (!(st = make_there(g->t, h, &v, err)))
		g->known[g->n_known++] = v;
	*used = v.used;
	return st;
}

/* ---- steps that speak against it -------------------------------------------------------------------- */

/* The first step in which the point came out right, the last one, and the one before x. */
static int right_ones(const vn_comparison *c, const vn_explanation *x, int point[RIGHT])
{
	const int step = c->point[x->point].step;
	int first = -1, last = -1, before = -1, n = 0;

	for (int i = 0; i < c->n_points; i++) {
		const vn_checkpoint *p = &c->point[i];
		if (!p->replayed || p->origin || vn_local_beyond(p) || p->replay.captured || p->replay.columns || strcmp(p->name, name_of(c, x)) != 0)
			continue;
		first = first < 0 || p->step < c->point[first].step ? i : first;
		last = last < 0 || p->step > c->point[last].step ? i : last;
		before = p->step < step && (before < 0 || p->step > c->point[before].step) ? i : before;
	}
	const int all[RIGHT] = { first, before, last };
	for (int i = 0; i < RIGHT; i++)
		if (all[i] >= 0 && (i < 1 || all[i] != all[0]) && (i < 2 || all[i] != all[1]))
			point[n++] = all[i];
	return n;
}

/* Is h among the answers of y? */
static bool answers(const vn_explanation *y, const vn_hypothesis *h)
{
	for (int i = 0; i < y->n_fit; i++)
		if (same_mistake(&y->by[i], h))
			return true;
	return false;
}

/* Does a step that is wrong, y, say whether h is what is wrong with x? What was fitted came near with a number of its own, which is to be
 * that of all steps, of those that have another answer, too. */
static bool has_a_say(const vn_comparison *c, const vn_explanation *y, const vn_explanation *x, const vn_hypothesis *h)
{
	if (y == x || *y->why_not || !(y->sound.used > (vn_is_made(h) ? WRONG : BEYOND)))
		return false;
	return vn_is_made(h) ? !answers(y, h) : (!y->n_fit || y->fitted) && one_token(c, y->point) == one_token(c, x->point);
}

/* A window of h's with the first keys in sight, of a step of one token: that is a range of keys that one query does not see, and no window yet. */
static bool of_one_query(const vn_comparison *c, const vn_explanation *x, const vn_hypothesis *h)
{
	bool sinks = false;
	for (int i = 0; i < h->made.n; i++)
		sinks = sinks || strcmp(h->made.set[i].name, "sinks") == 0;
	return sinks && one_token(c, x->point);
}

/* Is y as wrong with h? NaN: h cannot be seen there; of what calls of as many tokens have in common it should be. */
static bool stays_wrong(const vn_comparison *c, const vn_explanation *y, const vn_explanation *x, const vn_hypothesis *h, double used)
{
	if (!vn_is_made(h) || !isnan(used))
		return used > BEYOND || (vn_is_made(h) && used > fmax(1, y->sound.used / 2));
	return !h->made.later && !h->made.late && one_token(c, y->point) == one_token(c, x->point);
}

static vn_status hold_against(group *g, const vn_explanation *x, vn_hypothesis *h, vn_error *err)
{
	const vn_comparison *c = g->t->c;
	int       point[RIGHT];
	double    used;
	int       otherwise = 0;
	vn_status st = VN_OK;

	for (int i = 0; !st && !h->refuted && i < g->n; i++) {
		const vn_explanation *y = g->x[i];
		if (!has_a_say(c, y, x, h) || (y->n_fit && ++otherwise > OTHERWISE))
			continue;
		st = used_there(g, h, y->point, &used, err);
		if (!st && stays_wrong(c, y, x, h, used)) {
			h->refuted = true;
			snprintf(h->against, sizeof h->against, "step %d is wrong too, and not so", c->point[y->point].step);
		}
	}
	bool another = !of_one_query(c, x, h);
	for (int i = 0; !st && !h->refuted && !another && i < g->n; i++) {
		if (g->x[i] != x && !*g->x[i]->why_not && !(st = used_there(g, h, g->x[i]->point, &used, err)))
			another = used <= 1;
	}
	if (!another && !h->refuted) {
		h->refuted = true;
		snprintf(h->against, sizeof h->against, "read off one query, and no other step says so");
	}
	const int n = h->refuted ? 0 : right_ones(c, x, point);
	for (int i = 0; !st && !*h->against && i < n; i++) {
		st = used_there(g, h, point[i], &used, err);
		if (!st && used > BEYOND)
			snprintf(h->against, sizeof h->against, "step %d is right, which it would have changed", c->point[point[i]].step);
	}
	return st;
}

/* ---- one explanation ----------------------------------------------------------------------------------- */

/* Where something explains x as well that nothing speaks against, what something speaks against does not. */
static void take_out(group *g, int which)
{
	vn_explanation *x = g->x[which];
	bool sound = false;
	int  n = 0, gone = g->n_refuted[which];

	for (int i = 0; i < x->n_alias; i++)
		sound = sound || !*x->by[i].against;
	for (int i = 0; i < x->n; i++) {
		vn_hypothesis *h = &x->by[i];
		h->refuted = h->refuted || (sound && *h->against);
		if (h->refuted && gone < VN_EXPLAIN_KEPT)
			g->refuted[which][gone++] = *h;
		if (!h->refuted)
			x->by[n++] = *h;
	}
	x->n = n;
	g->n_refuted[which] = gone;
}

/* In the place of what is farthest from an answer, where the list is full. */
static void put_last(group *g, int which)
{
	vn_explanation *x = g->x[which];
	const int       n = g->n_refuted[which], most = VN_EXPLAIN_KEPT - n > x->n_fit ? VN_EXPLAIN_KEPT - n : x->n_fit;

	x->n = x->n < most ? x->n : most;
	for (int i = 0; i < n && x->n < VN_EXPLAIN_KEPT; i++)
		x->by[x->n++] = g->refuted[which][i];
}

static vn_status examine(group *g, int which, vn_error *err)
{
	vn_explanation *x = g->x[which];
	vn_status       st = VN_OK;

	for (int i = 0; !st && i < x->n_fit; i++)
		if (!x->by[i].capture && (vn_is_made(&x->by[i]) || (vn_fault_find(x->by[i].id) >= 0 && (!x->fitted || *x->by[i].in_part))))
			st = hold_against(g, x, &x->by[i], err);
	return st;
}

/* Without what was refuted. */
static bool answered(group *g, int which)
{
	take_out(g, which);
	if (g->n_refuted[which])
		vn_conclude(g->t);
	return g->x[which]->n_fit || !g->n_refuted[which];
}

static vn_status conclude(group *g, int which, vn_error *err)
{
	vn_explanation *x = g->x[which];
	const bool      fitted = x->fitted;
	vn_status       st = VN_OK;

	g->t->x = x;
	if (answered(g, which))
		return VN_OK;
	x->like = -1;
	/* What is found then is to hold, too; in some heads alone it would be found again. */
	for (int again = 0; !st && again < 2; again++) {
		g->t->whole = again > 0;
		if ((st = vn_explain_further(g->t, fitted || again, err)) || !x->n_fit || (st = examine(g, which, err)))
			break;
		g->t->x = x;
		if (answered(g, which))
			break;
	}
	g->t->whole = false;
	return st;
}

/* ---- an answer of another step -------------------------------------------------------------------------- */

/* What was fitted in another step, where nothing explains this one, which may have too few numbers to read it off. */
static vn_status lend(group *g, int which, vn_error *err)
{
	vn_explanation *x = g->x[which];
	vn_status       st = VN_OK;

	g->t->x = x;
	for (int i = 0; !st && !x->n_fit && i < g->n; i++)
		for (int k = 0; !st && !x->n_fit && g->x[i] != x && k < g->x[i]->n_alias; k++) {
			const vn_hypothesis *h = &g->x[i]->by[k];
			double               used;
			if (!vn_is_made(h) || *h->in_part || (st = used_there(g, h, x->point, &used, err)) || !(used <= 1))
				continue;
			g->t->x = x;
			if (!(st = vn_explain_with(g->t, h, err)))
				vn_conclude(g->t);
		}
	if (x->n_fit)
		vn_lines_free(&x->looks);
	return st;
}

/* ---- arrangements ------------------------------------------------------------------------------------- */

/* Of arrangements, which are not made again: does y have the same with another number, beyond what the precision leaves open? */
static bool another_number(const vn_explanation *x, const vn_explanation *y)
{
	const vn_hypothesis *a = &x->by[0], *b = &y->by[0];
	const double         open = sqrt(x->sound.local.floor) + sqrt(y->sound.local.floor);

	return y->n_fit && y->fitted && !vn_is_made(b) && strcmp(a->id, b->id) == 0 && strcmp(a->words, b->words) != 0 && a->made.number != 0 &&
	       b->made.number != 0 && !(fabs(a->made.number / b->made.number - 1) <= open);
}

/* A temperature that is another in each step is right of its step; that it is, is said. */
static void say_numbers(group *g)
{
	for (int i = 0; i < g->n; i++) {
		vn_explanation *x = g->x[i];
		for (int k = 0; k < g->n && x->n_fit && x->fitted && !vn_is_made(&x->by[0]) && !*x->by[0].against; k++)
			if (another_number(x, g->x[k]))
				snprintf(x->by[0].against, sizeof x->by[0].against, "another number in step %d: %.80s", g->t->c->point[g->x[k]->point].step, g->x[k]->by[0].words);
	}
}

/* ---- one point --------------------------------------------------------------------------------------------- */

static bool unexplained(const group *g)
{
	for (int i = 0; i < g->n; i++)
		if (!g->x[i]->n_fit && !*g->x[i]->why_not)
			return true;
	return false;
}

/* A window that was read off steps of one token: keys that are not seen may be it as well. */
static bool is_window(const group *g)
{
	for (int i = 0; i < g->n; i++)
		if (g->x[i]->n_fit && vn_is_made(&g->x[i]->by[0]) && strcmp(g->x[i]->by[0].id, "A5") == 0 && one_token(g->t->c, g->x[i]->point))
			return true;
	return false;
}

static vn_status one_point(group *g, vn_error *err)
{
	vn_status st = VN_OK;

	g->n_known = 0;
	for (int i = 0; !st && i < g->n; i++)
		st = examine(g, i, err);
	/* Only then: what is refuted meanwhile leaves a step without an answer, which speaks against no other. */
	for (int i = 0; !st && i < g->n; i++)
		st = conclude(g, i, err);
	for (int i = 0; !st && i < g->n; i++)
		if (!g->x[i]->n_fit && !*g->x[i]->why_not)
			st = lend(g, i, err);
	if (!st && (unexplained(g) || is_window(g)))
		st = vn_explain_slots(g->t, g->x, g->n, err);
	say_numbers(g);
	for (int i = 0; i < g->n; i++)
		put_last(g, i);
	return st;
}

vn_status vn_explain_steps(vn_trial *t, vn_explanations *x, vn_error *err)
{
	const size_t n = (size_t)x->n + 1;
	const vn_step *step;
	group      g = { .t = t, .x = calloc(n, sizeof *g.x), .refuted = calloc(n, sizeof *g.refuted), .n_refuted = calloc(n, sizeof *g.n_refuted) };
	bool      *done = calloc(n, sizeof *done);
	vn_status  st = g.x && g.refuted && g.n_refuted && done ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %d explanations", x->n);

	for (int i = 0; !st && i < x->n && vn_recording_steps(t->c->cand, &step) > 1; i++) {
		if (done[i])
			continue;
		g.n = 0;
		for (int k = i; k < x->n; k++)
			if (!vn_local_is_order(&t->c->point[x->of[k].point]) && strcmp(name_of(t->c, &x->of[k]), name_of(t->c, &x->of[i])) == 0) {
				g.x[g.n++] = &x->of[k];
				done[k] = true;
			}
		st = g.n ? one_point(&g, err) : VN_OK;
	}
	free(g.x);
	free(g.refuted);
	free(g.n_refuted);
	free(g.known);
	free(done);
	return st;
}
