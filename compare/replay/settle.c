/* settle.c: see settle.h. */
#include "compare/replay/settle.h"

#include "compare/replay/draws.h"
#include "compare/replay/settle_pass.h"

#include "libref/base/alloc.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* TRIALS: passes of B at most. A row may be behind another choice from WRONG floors on; BETTER: of
 * its error is left, at most, where a choice is changed, since others may still be wrong. RESTARTS:
 * of rows that stay wrong. STALLED: rounds that may leave more than LESS of what is wrong: a fault
 * leaves nearly all. FAR: times as wrong as a row may be by chance. APART: a candidate's rows may
 * stand apart so many times as often as a draw's. FEW: one-row steps of which each may be wrong.
 * HALF, RARE: one of so many rows may stay wrong. */
enum { TRIALS = 24, RESTARTS = 2, STALLED = 2, APART = 2, FEW = 2, HALF = 2, RARE = 32 };
#define WRONG  3.0
#define BETTER 0.97
#define LESS   0.9
#define FAR    4.0

void vn_settle_close(vn_replay *r)
{
	if (r->settled) {
		vn_settled_drop(r->settled);
		free(r->settled->rows);
	}
	free(r->settled);
	r->settled = NULL;
}

/* ---- trials ---------------------------------------------------------------------------------- */

static double least_wrong(const vn_settled *s, int end, int64_t t)
{
	return WRONG * fmax(fmax(s->floor[end * s->tokens + t], s->least[end]), DBL_MIN);
}

/* error: (ends, tokens) */
static bool is_far(const vn_settled *s, const double *error, int end, int64_t t)
{
	return error[end * s->tokens + t] > least_wrong(s, end, t);
}

static bool is_wrong(const vn_settled *s, int end, int64_t t)
{
	return is_far(s, s->error, end, t);
}

/* How wrong the rows are together: of each, the logarithm of what it is beyond. */
static double sum_wrong(const vn_settled *s)
{
	double sum = 0;

	for (int e = 0; e < s->ends; e++)
		for (int64_t t = 0; t < s->tokens; t++)
			sum += is_wrong(s, e, t) ? log(s->error[e * s->tokens + t] / least_wrong(s, e, t)) : 0;
	return sum;
}

/* Marks the tokens (tokens) of which some result behind the choice is wrong. */
static void mark_wrong(const vn_settled *s, const vn_settled_choice *c, bool *wrong)
{
	for (int64_t t = 0; t < s->tokens; t++) {
		wrong[t] = false;
		for (int e = 0; !wrong[t] && e < s->ends; e++)
			wrong[t] = c->behind[e] && is_wrong(s, e, t);
	}
}

/* The share of a token's error behind the choice that the trial left. */
static double share_left(const vn_settled *s, const vn_settled_choice *c, int64_t t)
{
	double was = 0, is = 0;

	for (int e = 0; e < s->ends; e++)
		if (c->behind[e] && s->error[e * s->tokens + t] >= 0) {
			was += s->error[e * s->tokens + t];
			is += s->other[e * s->tokens + t];
		}
	return was > 0 ? is / was : 1;
}

/* What was best so far of a token behind an end. */
typedef struct best_way {
	double left;
	int    choice, way;
} best_way;

typedef struct trials {
	int            done, restarts, stalled;
	double         wrong;      /* the least sum_wrong */
	bool          *tried;      /* (choices, ways, tokens) */
	unsigned char *by, *least; /* (choices, tokens): before a trial; with the least error */
	best_way      *best, *now; /* (ends, tokens), by a choice's first end; `now` is tried */
} trials;

static bool *tried_rows(const trials *x, const vn_settled *s, int of, int way)
{
	return x->tried + ((size_t)of * VN_CHOICE_WAYS + (size_t)way) * (size_t)s->tokens;
}

/* Lists what is to be tried; returns whether there is anything. */
static bool list_tries(const vn_settled *s, const trials *x)
{
	VN_FREED bool *wrong = vn_alloc((size_t)s->tokens, sizeof *wrong);
	bool           any = false;

	for (int i = 0; i < s->n; i++) {
		mark_wrong(s, &s->of[i], wrong);
		for (int w = 0; w < VN_CHOICE_WAYS; w++)
			for (int64_t t = 0; t < s->tokens; t++) {
				const bool is = wrong[t] && vn_settled_has(&s->of[i], w, t) && s->of[i].by[t] != w;
				tried_rows(x, s, i, w)[t] = is;
				any = any || is;
			}
	}
	return any;
}

/* Takes the turn-th way that is to be tried of each token and first end; returns whether there is
 * one. Tokens hardly depend on each other, so each tries what only it has. */
static bool begin_trial(vn_settled *s, const trials *x, int turn)
{
	VN_FREED int *before = vn_alloc_zero((size_t)(s->ends * s->tokens), sizeof *before);
	bool          any = false;

	for (int64_t j = 0; j < s->ends * s->tokens; j++)
		x->now[j].choice = -1;
	for (int i = 0; i < s->n; i++)
		for (int w = 0; w < VN_CHOICE_WAYS; w++)
			for (int64_t t = 0; t < s->tokens; t++) {
				const int64_t j = s->of[i].first * s->tokens + t;
				if (!tried_rows(x, s, i, w)[t] || before[j]++ != turn)
					continue;
				x->now[j] = (best_way) { 0, i, w };
				s->of[i].by[t] = (unsigned char)w;
				any = true;
			}
	return any;
}

/* Copies the ways that are taken to by (choices, tokens), or back. */
static void keep_ways(vn_settled *s, unsigned char *by, bool back)
{
	for (int i = 0; i < s->n; i++)
		memcpy(back ? s->of[i].by : by + i * s->tokens, back ? by + i * s->tokens : s->of[i].by, (size_t)s->tokens);
}

static void judge_trial(const vn_settled *s, const trials *x)
{
	for (int64_t j = 0; j < s->ends * s->tokens; j++) {
		best_way *now = &x->now[j];
		if (now->choice < 0)
			continue;
		now->left = share_left(s, &s->of[now->choice], j % s->tokens);
		if (now->left < x->best[j].left)
			x->best[j] = *now;
	}
}

/* Tries every way once. */
static vn_status try_ways(vn_replay *r, vn_settled *s, trials *x, const int32_t *ids, vn_error *err)
{
	vn_status st = VN_OK;

	for (int64_t i = 0; i < s->ends * s->tokens; i++)
		x->best[i] = (best_way) { BETTER, -1, 0 };
	keep_ways(s, x->by, false);
	for (int turn = 0; !st && x->done < TRIALS && begin_trial(s, x, turn); turn++) {
		x->done++;
		if (!(st = vn_settled_pass(r, s, s->other, false, ids, err)))
			judge_trial(s, x);
		keep_ways(s, x->by, true);
	}
	return st;
}

/* Takes what was best; if nothing was better, gives rows that stay wrong another start. Returns
 * whether some way changed. */
static bool take_best(vn_settled *s, trials *x)
{
	bool changed = false;

	for (int64_t i = 0; i < s->ends * s->tokens; i++)
		if (x->best[i].choice >= 0) {
			s->of[x->best[i].choice].by[i % s->tokens] = (unsigned char)x->best[i].way;
			changed = true;
		}
	if (changed || !x->restarts)
		return changed;
	x->restarts--;
	for (int i = 0; i < s->n; i++)
		for (int64_t t = 0; t < s->tokens; t++)
			if (s->of[i].by[t] && tried_rows(x, s, i, 0)[t]) {
				s->of[i].by[t] = 0;
				changed = true;
			}
	return changed;
}

static vn_status find_ways(vn_replay *r, vn_settled *s, const int32_t *ids, vn_error *err)
{
	const size_t T = (size_t)s->tokens, n = (size_t)s->n;
	trials       x = { 0,
		               RESTARTS,
		               0,
		               (double)INFINITY,
		               vn_alloc(n * VN_CHOICE_WAYS * T, sizeof *x.tried),
		               vn_alloc(n * T, 1),
		               vn_alloc_zero(n * T, 1),
		               vn_alloc((size_t)s->ends * T, sizeof *x.best),
		               vn_alloc((size_t)s->ends * T, sizeof *x.now) };
	vn_status    st = VN_OK;

	/* Floors, and what rounding may change, are measured first and last. */
	for (bool more = true, first = true; !st && more; first = false) {
		st = vn_settled_pass(r, s, s->error, first, ids, err);
		if (!st && first && s->reordered) /* weights behind slots */
			st = vn_settled_pass(r, s, s->error, first, ids, err);
		if (st)
			break;
		const double wrong = sum_wrong(s);
		x.stalled = wrong < LESS * x.wrong ? 0 : x.stalled + 1;
		if (wrong < x.wrong) {
			keep_ways(s, x.least, false);
			x.wrong = wrong;
		}
		more = x.stalled <= STALLED && x.done < TRIALS && list_tries(s, &x);
		st = more ? try_ways(r, s, &x, ids, err) : VN_OK;
		more = more && !st && take_best(s, &x);
	}
	keep_ways(s, x.least, true);
	st = st || !x.done ? st : vn_settled_pass(r, s, s->error, true, ids, err); /* not as in a trial */
	VN_FREE(x.tried, x.by, x.least, x.best, x.now);
	return st;
}

/* ---- what was not found ---------------------------------------------------------------------- */

/* How many other sets rounding may choose. */
static int count_ways(const vn_settled_choice *c, int64_t t)
{
	int n = 0;

	for (int w = 1; w < VN_CHOICE_WAYS; w++)
		n += vn_settled_has(c, w, t);
	return n;
}

/* The rows of a result: with a number, wrong ones, and which part may be wrong (0: none) because
 * rounding decides several choices of the first one that is far off (else of the first wrong one),
 * so that not every combination of them was tried. A choice of groups, and of experts in them, is
 * two; most are found, and a fault of experts shows in more rows. */
typedef struct end_rows {
	int64_t seen, wrong, part;
} end_rows;

static end_rows count_rows(const vn_settled *s, int end)
{
	end_rows n = { 0 };
	int64_t  first = -1;
	int      several = 0;
	bool     far = false;

	for (int64_t t = 0; t < s->tokens; t++) {
		const bool is = is_wrong(s, end, t), more = s->error[end * s->tokens + t] > FAR * least_wrong(s, end, t);
		n.seen += s->error[end * s->tokens + t] >= 0;
		n.wrong += is;
		first = is && (first < 0 || (more && !far)) ? t : first;
		far = far || more;
	}
	for (int i = 0; first >= 0 && i < s->n; i++)
		if (s->of[i].behind[end] && count_ways(&s->of[i], first))
			n.part = several++ ? HALF : s->of[i].ways.in_group > 1 ? RARE : 0;
	return n;
}

/* May wrong rows of a result be behind choices of which not every combination was tried? A row
 * alone says little: those of earlier steps count, too. */
static bool is_unsettled(const vn_settled *s, int end)
{
	const vn_settled_rows *all = s->of_end[end];
	const end_rows         n = count_rows(s, end);

	return n.part && (n.seen == 1 ? n.part * all->wrong <= all->seen + FEW : n.part * n.wrong <= n.seen);
}

/* ---- choices that every draw makes for itself ------------------------------------------------ */

/* Returns in how many rows of an end a draw errs by far more than all others do; draw -1: the
 * candidate. */
static int64_t count_apart(const vn_settled *s, int draws, int end, int draw)
{
	int64_t n = 0;

	for (int64_t t = end * s->tokens; t < (end + 1) * s->tokens; t++) {
		double most = s->least[end];
		for (int i = 0; i < draws; i++)
			most = i == draw ? most : fmax(most, s->drawn[i * s->ends * s->tokens + t]);
		n += (draw < 0 ? s->other[t] : s->drawn[draw * s->ends * s->tokens + t]) > WRONG * most;
	}
	return n;
}

/* Is the candidate one more draw? Then its rows stand apart about as often as a draw's do. */
static bool is_like_draws(const vn_settled *s, int draws, int end)
{
	vn_settled_rows *all = s->of_end[end];
	int64_t          most = 0;

	all->apart += count_apart(s, draws, end, -1);
	for (int i = 0; i < draws; i++) {
		all->drawn[i] += count_apart(s, draws, end, i);
		most = all->drawn[i] > most ? all->drawn[i] : most;
	}
	return all->apart <= APART * most + 1;
}

/* FOUND: as the search left it; FREE: the choices behind it are free; REFUSED: they must not be. */
typedef enum end_state { FOUND, FREE, REFUSED } end_state;

static void mark_free(vn_settled *s, const end_state *state)
{
	for (int i = 0; i < s->n; i++) {
		end_state most = FOUND;
		for (int e = 0; e < s->ends; e++)
			most = s->of[i].behind[e] && state[e] > most ? state[e] : most;
		s->of[i].free = most == FREE;
	}
}

/* Is an end farther from the candidate in more rows than with the ways that the search found? */
static bool is_worse(const vn_settled *s, int end)
{
	int64_t more = 0;

	for (int64_t t = 0; t < s->tokens; t++)
		more += is_far(s, s->other, end, t) - is_far(s, s->error, end, t);
	return more > 0;
}

/* Rounding decides so many choices of most rows that the search did not find those of the
 * candidate? If it is like a draw that chooses for itself, it is judged as one. */
static vn_status free_choices(vn_replay *r, vn_settled *s, const int32_t *ids, vn_error *err)
{
	VN_FREED end_state     *state = vn_alloc_zero((size_t)s->ends, sizeof *state);
	VN_FREED unsigned char *by = vn_alloc((size_t)(s->n * s->tokens), 1);
	vn_status               st;
	bool                    any = false;

	for (int e = 0; e < s->ends; e++) {
		const end_rows n = count_rows(s, e);
		s->of_end[e]->seen += n.seen;
		s->of_end[e]->wrong += n.wrong;
		state[e] = n.part == HALF && !is_unsettled(s, e) ? FREE : FOUND;
		any = any || state[e] == FREE;
	}
	if (!any)
		return VN_OK;
	keep_ways(s, by, false);
	mark_free(s, state);
	for (int i = 0; i < s->n; i++)
		if (s->of[i].free)
			memset(s->of[i].by, 0, (size_t)s->tokens);
	if ((st = vn_settled_free(r, s, s->other, ids, err)))
		return st;
	for (int e = 0; e < s->ends; e++)
		if (state[e] == FREE ? !is_like_draws(s, vn_draws_count(r), e) : is_worse(s, e))
			state[e] = REFUSED;
	mark_free(s, state);
	for (int i = 0; i < s->n; i++) {
		if (!s->of[i].free)
			memcpy(s->of[i].by, by + i * s->tokens, (size_t)s->tokens);
		r->loose = r->loose || s->of[i].free;
	}
	return vn_settled_pass(r, s, s->error, true, ids, err);
}

static void mark_loose(vn_replay *r)
{
	vn_settled *s = r->settled;

	for (int i = 0; i < s->n; i++) {
		vn_settled_choice *c = &s->of[i];
		VN_FREED bool     *seen = vn_alloc_zero((size_t)s->tokens, sizeof *seen);
		for (int e = 0; e < s->ends; e++) {
			const bool unsettled = c->behind[e] && is_unsettled(s, e);
			for (int64_t t = 0; c->behind[e] && t < s->tokens; t++) {
				seen[t] = seen[t] || s->error[e * s->tokens + t] >= 0;
				c->loose[t] = c->loose[t] || (unsettled && is_wrong(s, e, t));
			}
		}
		for (int64_t t = 0; t < s->tokens; t++) {
			c->loose[t] = count_ways(c, t) && (c->loose[t] || !seen[t]);
			r->loose = r->loose || c->loose[t];
		}
	}
}

vn_status vn_settle_step(vn_replay *r, const int32_t *ids, vn_error *err)
{
	if (!r->draws)
		return VN_OK;
	if (!r->settled)
		r->settled = vn_alloc_zero(1, sizeof *r->settled);
	vn_settled_drop(r->settled);
	vn_status st = vn_settled_list(r, r->settled, err);
	st = !st && r->settled->n ? find_ways(r, r->settled, ids, err) : st;
	st = st || !r->settled->n ? st : free_choices(r, r->settled, ids, err);
	if (!st)
		mark_loose(r);
	return st;
}

/* ---- the choices ----------------------------------------------------------------------------- */

/* Fills ids (tokens, k) with those of a draw, the odd ones of which choose otherwise where a choice
 * is loose: each by the next way that there is. */
static void choose_otherwise(const vn_settled_choice *c, int draw, double *ids)
{
	memcpy(ids, c->ids, (size_t)(c->ways.rows * c->ways.k) * sizeof *ids);
	for (int64_t t = 0; draw % 2 && t < c->ways.rows; t++) {
		if (!c->loose[t])
			continue;
		int skip = draw / 2 % count_ways(c, t);
		for (int w = 0; w < VN_CHOICE_WAYS; w++)
			if (vn_settled_has(c, w, t) && w != c->by[t] && skip-- == 0)
				vn_settled_ids(c, w, t, ids + t * c->ways.k);
	}
}

vn_status vn_settle_node(const vn_replay *r, int k, vn_error *err)
{
	const vn_settled_choice *c = NULL;
	vn_status                st = VN_OK;

	for (int i = 0; r->settled && i < r->settled->n; i++)
		c = r->settled->of[i].ways.node == k ? &r->settled->of[i] : c;
	if (!c)
		return VN_OK;
	VN_FREED double *ids = vn_alloc((size_t)(c->ways.rows * c->ways.k), sizeof *ids);
	for (int i = 0; !st && i < VN_N_ENGINES; i++)
		st = vn_choice_put(&c->ways, r->plan, c->ids, &r->e[i], err);
	for (int i = 0; !st && !c->free && i < vn_draws_count(r); i++) {
		choose_otherwise(c, i, ids);
		st = vn_choice_put(&c->ways, r->plan, ids, vn_draws_engine(r, i), err);
	}
	return st;
}
