/* experts.c: what the experts chosen for each token make of it.
 *
 * Expert by expert: the rows of its tokens are gathered, so that each of its matrices is read once
 * and no row is computed that no token chose. An expert without tokens is not read at all. */
#include "libref/ops/ops.h"

#include <stdlib.h>
#include <string.h>

/* One expert's working memory, for `most` rows. */
typedef struct expert_room {
	int64_t *pair;        /* (most): slots of all tokens, T k of them, that chose it */
	real    *x;           /* (most,D) */
	real    *gate, *up;   /* (most,F) */
	real    *other, *out; /* (2F), (most,D) */
} expert_room;

static bool room_create(expert_room *r, int64_t most, int64_t D, int64_t F)
{
	*r = (expert_room) { malloc((size_t)most * sizeof *r->pair + 1),    malloc((size_t)(most * D) * sizeof(real) + 1),
		                 malloc((size_t)(most * F) * sizeof(real) + 1), malloc((size_t)(most * F) * sizeof(real) + 1),
		                 malloc((size_t)(2 * F) * sizeof(real) + 1),    malloc((size_t)(most * D) * sizeof(real) + 1) };
	return r->pair && r->x && r->gate && r->up && r->other && r->out;
}

static void room_destroy(expert_room *r)
{
	VN_FREE(r->pair, r->x, r->gate, r->up, r->other, r->out);
}

/* Puts the numbers of gate and up where an experiment reads them. */
static void mix_rows(expert_room *r, int64_t n, int64_t F, vn_expert_form form)
{
	for (int64_t i = 0; form != VN_EXPERTS_USUAL && i < n; i++) {
		real *gate = r->gate + i * F, *up = r->up + i * F;
		memcpy(r->other, gate, (size_t)F * sizeof *gate);
		memcpy(r->other + F, up, (size_t)F * sizeof *up);
		for (int64_t f = 0; f < 2 * F; f++) {
			const int64_t from = form == VN_EXPERTS_BY_ROWS ? (f < F ? 2 * f : 2 * (f - F) + 1)
			                                                : f / 2 + f % 2 * F; /* row f of the two in turn */
			(f < F ? gate : up)[f < F ? f : f - F] = r->other[from];
		}
	}
}

static void round_all(const REAL(vn_experts_in) * a, real *x, int64_t n)
{
#if VN_REAL == 32
	vn_round_f32(x, a->policy.storage, (size_t)n);
#else
	(void)a, (void)x, (void)n;
#endif
}

/* In place of n numbers of gate and of up. */
static void limit_all(real *gate, real *up, int64_t n, const vn_consts *c)
{
	const real limit = (real)c->experts.limit, shift = (real)c->experts.shift;

	for (int64_t i = 0; i < n && limit > 0; i++) {
		gate[i] = gate[i] > limit ? limit : gate[i];
		up[i] = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
	}
	for (int64_t i = 0; i < n && shift != 0; i++)
		up[i] += shift;
}

/* The rows r->x of n tokens, through expert e, to r->out. */
static bool run_expert(const REAL(vn_experts_in) * a, expert_room *r, int64_t e, int64_t n)
{
	const vn_consts     usual = { .act.act = a->c->experts.act };
	const vn_experiment rounds = { .act.rounding = a->x ? a->x->experts.rounding : 0 };

	if (!a->product(a->context, VN_EXPERT_GATE, e, r->x, n, r->gate) ||
	    !a->product(a->context, VN_EXPERT_UP, e, r->x, n, r->up))
		return false;
	round_all(a, r->gate, n * a->F);
	round_all(a, r->up, n * a->F);
	if (a->x)
		mix_rows(r, n, a->F, (vn_expert_form)a->x->experts.form);
	limit_all(r->gate, r->up, n * a->F, a->c);
	REAL(vn_gated)
	(r->gate, (const real *[]) { r->gate, r->up }, &usual, rounds.act.rounding ? &rounds : NULL, n * a->F, a->threads);
	round_all(a, r->gate, n * a->F);
	return a->product(a->context, VN_EXPERT_DOWN, e, r->gate, n, r->out);
}

/* How many tokens an expert takes of the call that begins in row t. */
static int64_t takes_of(const REAL(vn_experts_in) * a, int64_t t)
{
	const int64_t capacity = a->x ? a->x->experts.capacity : 0, E = a->c->experts.experts;
	int64_t       end = t + 1;

	while (capacity < 0 && end < a->T && vn_call_row(a->past, a->begins, end) != end)
		end++;
	return capacity < 0 ? ((end - t) * a->k + E - 1) / E : capacity ? capacity : a->T * a->k;
}

/* Fills r->x and r->pair with the rows that expert e takes; returns how many. Others become 0. */
static int64_t gather(const REAL(vn_experts_in) * a, expert_room *r, int64_t e, real *y)
{
	int64_t n = 0, left = takes_of(a, 0);

	for (int64_t i = 0; i < a->T * a->k; i++) {
		const int64_t t = i / a->k;
		if (t && i % a->k == 0 && vn_call_row(a->past, a->begins, t) == t)
			left = takes_of(a, t);
		if (a->ids[i] != (real)e)
			continue;
		if (left-- <= 0) {
			memset(y + i * a->D, 0, (size_t)a->D * sizeof *y);
			continue;
		}
		memcpy(r->x + n * a->D, a->rows + t * a->D, (size_t)a->D * sizeof *r->x);
		r->pair[n++] = i;
	}
	return n;
}

bool REAL(vn_experts)(real *y, const REAL(vn_experts_in) * a)
{
	const int64_t all = a->T * a->k, E = a->c->experts.experts, moved = a->x ? a->x->experts.moved : 0;
	int64_t      *count = calloc((size_t)E + 1, sizeof *count), most = 0;
	VN_ENDS(room_destroy) expert_room r = { 0 };
	bool                              good = count;

	for (int64_t i = 0; good && i < all; i++) {
		const real id = a->ids[i];
		if (id >= 0 && id < (real)E) {
			const int64_t n = ++count[(int64_t)id];
			most = n > most ? n : most;
		} else { /* no expert's: nothing is added */
			memset(y + i * a->D, 0, (size_t)a->D * sizeof *y);
		}
	}
	good = good && room_create(&r, most, a->D, a->F);
	for (int64_t e = 0; good && e < E; e++) {
		const int64_t n = count[e] ? gather(a, &r, e, y) : 0;
		good = !n || run_expert(a, &r, (e + moved + E) % E, n);
		for (int64_t i = 0; good && i < n; i++)
			memcpy(y + r.pair[i] * a->D, r.out + i * a->D, (size_t)a->D * sizeof *y);
	}
	free(count);
	return good;
}
