/* cache_changed.c: see cache_slots.h.
 *
 * Each change is computed for one query at a time, from its scores and the values. Slots are named
 * as engines fill them: by the first call, by later calls, by the newest token, or by blocks.
 */
#include "compare/explain/cache_slots.h"
#include "compare/explain/last_query.h"
#include "compare/trial/attend.h"
#include "compare/trial/search.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An error below this many floors in every step is easily reduced by chance: there are many
 * changes. */
#define CLEAR 4.0
/* Another change that leaves no more than this many times the limit may be the answer as well. */
#define APART 4.0
/* The same if the answer leaves next to nothing. */
#define NEAR_APART 2.0
enum {
	LARGEST_BLOCK = 256,
	LEAST_FITTED = 8,
	LEAST_EXCHANGED = 4
}; /* tokens of a block; of one whose factor is fitted */
enum { FITTED_STEPS = 3, FARTHEST_HEAD = 8 };
#define MOST_WORK    4e9 /* multiplications for all blocks of a size; of more, they are not tried */
#define ALMOST_EMPTY (1.0 / 16)
#define NEAR_ONE     (1.0 / 64) /* 128 / 127 and what lies in between are */
static const vn_range factors = { 1.0 / 64, 1024, 71, false };
#define ROUNDINGS  8.0  /* the candidate rounds each sum of a product, and here only its result is rounded */
#define MOST_NOISE 1e-4 /* of the squares: rounding that may change more proves nothing */
#define EQUAL      1e-6
#define NEAR       0.5 /* a factor's grid must reduce the error to this share */

/* A step of one token. */
typedef struct changed_query {
	vn_findings  *x;
	vn_last_query a;
	int64_t       prompt; /* tokens of the first call */
	double        size;   /* the squares of what was recorded */
	double       *error;  /* (G): squared error of the unmodified operation in the heads of a key head */
	/* (S) each: scores, values' weights; (K): the changed key or value, the result of a head */
	double       *s, *p, *row, *y, *other;
} changed_query;

/* All steps, and the key heads in which the change is made. */
typedef struct changed_steps {
	changed_query *q;
	int            n;
	bool           in[VN_HEADS_MOST];
	vn_dtype       storage;
	/* products, scores and probabilities are rounded to it, as transformers does; in float32, this
	 * widens the floor: large keys make large rounding errors of scores */
	bool           rounded;
} changed_steps;

/* ---- a query --------------------------------------------------------------------------------- */

/* The slots of all tokens in the cache, or of those of the first call. */
static int64_t filled(const changed_query *q, const vn_applied_changed *c)
{
	return c->slots == VN_SLOTS_FIRST_CALL ? q->prompt : q->a.past;
}

/* Where the row of slot j and head h is read, if heads and tokens are exchanged. */
static int64_t place_of(const changed_query *q, const vn_applied_changed *c, int64_t j, int h)
{
	const int64_t g = h / (q->a.H / q->a.G);

	return c->number > 0 ? j * q->a.G + g : g * filled(q, c) + j;
}

/* The slot whose content slot j has: of an exchange, that at its place in the other block; of
 * tokens that moved, that of the token which was written here; -1: nothing was. */
static int64_t held_by(const changed_query *q, const vn_applied_changed *c, int64_t j, int h)
{
	const int64_t late = j - (int64_t)c->number, n = filled(q, c);

	if (c->kind == VN_CHANGED_HEADS_FIRST)
		return j >= n ? j : c->number > 0 ? place_of(q, c, j, h) % n : place_of(q, c, j, h) / q->a.G;

	if (c->kind == VN_CHANGED_MOVED)
		return late >= q->prompt && late < q->a.S ? late : j < q->prompt ? j : -1;
	if (c->kind == VN_CHANGED_REVERSED)
		return j < n ? n - 1 - j : j;
	const int64_t by = c->kind == VN_CHANGED_EXCHANGED ? (int64_t)c->number - c->first : 0;

	return j >= c->first && j < c->first + c->n ? j + by : j >= c->first + by && j < c->first + by + c->n ? j - by : j;
}

static bool is_changed(const changed_query *q, const vn_applied_changed *c, int64_t j)
{
	if (c->kind == VN_CHANGED_EXCHANGED || c->kind == VN_CHANGED_MOVED || c->kind == VN_CHANGED_REVERSED)
		return held_by(q, c, j, 0) != j;
	switch (c->slots) {
	case VN_SLOTS_ALL: return true;
	case VN_SLOTS_FIRST_CALL: return j < q->prompt;
	case VN_SLOTS_LATER: return j >= q->prompt;
	case VN_SLOTS_NEWEST: return j == q->a.S - 1;
	case VN_SLOTS_RANGE: return j >= c->first && j < c->first + c->n && j < q->a.past;
	}
	return false;
}

/* A head that reads the key head whose rows slot j has for head h. */
static int held_head(const changed_query *q, const vn_applied_changed *c, int64_t j, int h)
{
	const int     group = q->a.H / q->a.G;
	const int64_t n = filled(q, c);

	if (c->kind == VN_CHANGED_HEADS_FIRST && j < n)
		return (int)(c->number > 0 ? place_of(q, c, j, h) / n : place_of(q, c, j, h) % q->a.G) * group;
	if (c->kind == VN_CHANGED_ROLLED && c->number == 0)
		return (q->a.G - 1 - h / group) * group;
	return c->kind != VN_CHANGED_ROLLED ? h : (h + (q->a.G - (int)c->number) * group) % q->a.H;
}

static bool is_half(vn_dtype storage)
{
	return storage == VN_F16 || storage == VN_BF16;
}

static double stored(vn_dtype storage, double x)
{
	float f = (float)x;

	if (is_half(storage))
		vn_round_f32(&f, storage, 1);
	return is_half(storage) || storage == VN_F32 ? (double)f : x;
}

/* The column that is in place of column d. */
static int changed_column(const vn_applied_changed *c, int d, int K)
{
	switch ((vn_changed_columns)c->n) {
	case VN_COLUMN_REVERSED: return K - 1 - d;
	case VN_COLUMN_PAIRS: return d % 2 * (K / 2) + d / 2;
	case VN_COLUMN_HALVES: return d % (K / 2) * 2 + d / (K / 2);
	case VN_COLUMN_ROLLED: break;
	}
	return ((d - (int)c->number) % K + K) % K;
}

/* Writes to `to` what a slot holds in place of x (K). number: the factor of keys or values. */
static void change_row(const vn_applied_changed *c, double number, vn_dtype storage, const double *x, int K, double *to)
{
	if (c->kind == VN_CHANGED_ROUNDED) {
		memcpy(to, x, (size_t)K * sizeof *to);
		if (c->number >= 0)
			vn_in_format_read_by(to, K, c->format, c->number);
		for (int d = 0; d < K; d++)
			to[d] = stored(storage, c->number < 0 ? vn_in_format(to[d], c->format) : to[d]);
		return;
	}
	if (c->kind == VN_CHANGED_COLUMNS) {
		for (int d = 0; d < K; d++)
			to[d] = x[changed_column(c, d, K)];
		return;
	}
	const vn_rounding_format as = c->format ? c->format : VN_FORMAT_INT8;
	const double             most = vn_largest(x, K), full = as == VN_FORMAT_INT8 ? 127 : 448;

	for (int d = 0; d < K; d++)
		to[d] = stored(storage, c->kind == VN_CHANGED_SCALED     ? number * x[d]
		                        : c->kind == VN_CHANGED_UNSCALED ? vn_in_format(most > 0 ? x[d] / most * full : 0, as)
		                        : c->kind == VN_CHANGED_EMPTY    ? 0
		                                                         : x[d]);
}

/* Rows of keys (side 1) or values (2) as a slot holds them: also those that are quantised like the
 * changed ones, and read by their scales. */
static bool changes_side(const vn_applied_changed *c, int side)
{
	return !c->of || c->of == side || (c->kind == VN_CHANGED_UNSCALED && c->number > 0);
}

static vn_applied_changed change_of_side(const vn_applied_changed *c, int side)
{
	vn_applied_changed of = *c;

	if (c->kind == VN_CHANGED_UNSCALED && c->of && c->of != side) {
		of.kind = VN_CHANGED_ROUNDED;
		of.format = c->format ? c->format : VN_FORMAT_INT8;
		of.number = 0;
	}
	return of;
}

static double in_storage(const changed_steps *x, double number)
{
	return x->rounded ? stored(x->storage, number) : number;
}

/* The score of head h for the key, changed if c is not NULL. */
static double score(const changed_steps *x, const changed_query *q, const vn_applied_changed *c, int h, int64_t j)
{
	const vn_last_query *a = &q->a;
	const bool           here = c && changes_side(c, 1);
	const int64_t        held = here ? held_by(q, c, j, h) : j;
	const double        *key = vn_last_query_row(a, a->k, held < 0 ? j : held, here ? held_head(q, c, j, h) : h);

	if (held < 0)
		return vn_attend_score(a->n, 0);
	if (here) {
		const vn_applied_changed keys = change_of_side(c, 1);
		change_row(&keys, keys.number, x->storage, key, a->K, q->row);
		key = q->row;
	}
	return in_storage(x, vn_attend_score(a->n, in_storage(x, vn_dot(a->q + h * a->K, key, a->K))));
}

/* Writes to q->p the weights of the values of head h. Keys that are twice in the cache count
 * twice. */
static void weigh(const changed_steps *x, const changed_query *q, const vn_applied_changed *c, int h)
{
	double top = q->a.sink[h];

	for (int64_t j = q->a.first; j < q->a.S; j++) {
		q->s[j] = score(x, q, c && is_changed(q, c, j) ? c : NULL, h, j);
		top = fmax(top, q->s[j]);
	}
	double sum = exp(q->a.sink[h] - top);
	for (int64_t j = q->a.first; j < q->a.S; j++)
		sum += q->p[j] = exp(q->s[j] - top) * (c && c->kind == VN_CHANGED_TWICE && is_changed(q, c, j) ? 2 : 1);
	for (int64_t j = 0; j < q->a.S; j++)
		q->p[j] = j < q->a.first ? 0 : in_storage(x, q->p[j] / sum);
}

static void add_values(const changed_steps *x, const changed_query *q, const vn_applied_changed *c, int h, double *y)
{
	const vn_last_query *a = &q->a;

	memset(y, 0, (size_t)a->K * sizeof *y);
	for (int64_t j = a->first; j < a->S; j++) {
		const bool    here = c && changes_side(c, 2) && c->kind != VN_CHANGED_TWICE && is_changed(q, c, j);
		const int64_t held = here ? held_by(q, c, j, h) : j;
		const double *v = vn_last_query_row(a, a->v, held < 0 ? j : held, here ? held_head(q, c, j, h) : h);
		if (held < 0)
			continue;
		if (here) {
			const vn_applied_changed values = change_of_side(c, 2);
			change_row(&values, c->of ? values.number : c->values, x->storage, v, a->K, q->row);
			v = q->row;
		}
		for (int d = 0; d < a->K; d++)
			y[d] += q->p[j] * v[d];
	}
}

/* Keys that are twice in the cache have two probabilities, and the recording has the first S. A
 * range is there again as a whole, a call's only token at once. */
static void copy_probs(const changed_query *q, const vn_applied_changed *c, double *y)
{
	const bool    twice = c && c->kind == VN_CHANGED_TWICE;
	const int64_t end = twice && c->slots == VN_SLOTS_RANGE ? c->first + c->n : 0;
	int64_t       n = 0;

	for (int64_t j = 0; j < q->a.S && n < q->a.S; j++) {
		const bool there = twice && is_changed(q, c, j);
		y[n++] = there ? q->p[j] / 2 : q->p[j];
		if (there && !end && n < q->a.S)
			y[n++] = q->p[j] / 2;
		for (int64_t k = c ? c->first : 0; j + 1 == end && k < end && n < q->a.S; k++)
			y[n++] = q->p[k] / 2;
	}
}

/* Writes what head h makes with the change; NULL: without it. */
static void make_head(const changed_steps *x, const changed_query *q, const vn_applied_changed *c, int h, double *y)
{
	if (q->a.output == VN_ATTN_SCORES) {
		for (int64_t j = 0; j < q->a.S; j++)
			y[j] = score(x, q, c && is_changed(q, c, j) ? c : NULL, h, j);
		return;
	}
	weigh(x, q, c, h);
	if (q->a.output == VN_ATTN_PROBS)
		copy_probs(q, c, y);
	else
		add_values(x, q, c, h, y);
}

/* The squared error of a head, and (in float32, if asked for) what rounding may make of it. */
static double head_error(const changed_steps *x, const changed_query *q, const vn_applied_changed *c, int h,
                         double *noise)
{
	const int64_t n = vn_last_query_width(&q->a);
	changed_steps exact = *x;

	exact.rounded = x->rounded && is_half(x->storage);
	make_head(&exact, q, c, h, q->y);
	*noise = 0;
	if (x->rounded && !exact.rounded) {
		make_head(x, q, c, h, q->other);
		*noise = vn_square_distance(q->y, q->other, n);
	}
	return vn_square_distance(q->y, q->a.is + h * n, n);
}

/* The floors that a step leaves with the change in the key heads of x->in. */
static double left_in(const changed_steps *x, const changed_query *q, const vn_applied_changed *c)
{
	const int group = q->a.H / q->a.G;
	double    dd = 0, all = 0, noise;

	for (int h = 0; h < q->a.H; h++)
		if (x->in[h / group]) {
			dd += head_error(x, q, c, h, &noise);
			all += noise;
		} else
			dd += h % group ? 0 : q->error[h / group];
	return all / q->size < MOST_NOISE ? dd / (q->size * q->x->unmodified.residual.floor + ROUNDINGS * ROUNDINGS * all)
	                                  : (double)INFINITY;
}

static double worst_left(const changed_steps *x, const vn_applied_changed *c, double enough)
{
	double most = 0;

	for (int i = 0; i < x->n && most <= enough; i++) {
		const double left = left_in(x, &x->q[i], c);
		most = !(left <= most) ? (isnan(left) ? (double)INFINITY : left) : most;
	}
	return most;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void close_query(changed_query *q)
{
	vn_last_query_close(&q->a);
	VN_FREE(q->error, q->s, q->p, q->row, q->y, q->other);
}

/* Returns whether it is a step of one token of an attention. */
static bool open_query(vn_case *t, vn_findings *x, changed_query *q)
{
	const vn_step *step;

	*q = (changed_query) { .x = x, .prompt = vn_recording_steps(t->opened->cand, &step) > 1 ? step[1].position : 0 };
	if (!vn_last_query_open(t, x, &q->a) || !q->a.past || q->a.G > VN_HEADS_MOST)
		return false;
	const size_t S = (size_t)q->a.S, K = (size_t)q->a.K;
	q->error = vn_alloc_zero((size_t)q->a.G, sizeof *q->error);
	q->s = vn_alloc_zero(S, sizeof *q->s);
	q->p = vn_alloc_zero(S, sizeof *q->p);
	q->row = vn_alloc_zero(K, sizeof *q->row);
	q->y = vn_alloc_zero(S + K, sizeof *q->y);
	q->other = vn_alloc_zero(S + K, sizeof *q->other);
	q->size = vn_dot(q->a.is, q->a.is, q->a.H * vn_last_query_width(&q->a));
	return q->size > 0 && isfinite(q->size);
}

/* Fills q->error. Finds the key heads that are wrong in some step. Returns how many. */
static int find_heads(const changed_steps *x, bool *in)
{
	const int G = x->q->a.G, group = x->q->a.H / G;
	int       some = 0;

	for (int g = 0; g < G; g++) {
		in[g] = false;
		for (int i = 0; i < x->n; i++) {
			const changed_query *q = &x->q[i];
			double               noise, all = 0;
			q->error[g] = 0;
			for (int h = g * group; h < (g + 1) * group; h++, all += noise)
				q->error[g] += head_error(x, q, NULL, h, &noise);
			const double floor = q->x->unmodified.residual.floor * q->size / G + ROUNDINGS * ROUNDINGS * all;
			in[g] = in[g] || !(q->error[g] <= VN_LOCAL_LIMIT * floor);
		}
		some += in[g];
	}
	return some;
}

/* ---- which change ---------------------------------------------------------------------------- */

/* Changes of which runs of slots are tried. */
enum { RUN_SCALED, RUN_INT8, RUN_E4M3, N_RUNS };

typedef struct changed_search {
	const changed_steps *x;
	/* Of each kind of change and what it changes: the best block, and what it leaves */
	vn_applied_changed   block[N_RUNS][3];
	double               block_left[N_RUNS][3];
	vn_applied_changed   best;
	double               left, second; /* in floors, of the step with the most */
	vn_applied_changed   now;
} changed_search;

static bool of_same_slots(const vn_applied_changed *a, const vn_applied_changed *b)
{
	return a->slots == b->slots && a->of == b->of && a->first == b->first && a->n == b->n;
}

/* Are both quantised, to different formats? Where keys are as large as that, a query attends to its
 * largest score in either. */
static bool differ_in_format(const vn_applied_changed *a, const vn_applied_changed *b)
{
	return a->kind == VN_CHANGED_UNSCALED && b->kind == a->kind && of_same_slots(a, b);
}

/* Is b the slots of a, which are empty, scaled by so little that nothing is left of them? */
static bool is_almost_empty(const vn_applied_changed *a, const vn_applied_changed *b)
{
	return a->kind == VN_CHANGED_EMPTY && b->kind == VN_CHANGED_SCALED && fabs(b->number) < ALMOST_EMPTY &&
	       of_same_slots(a, b);
}

/* Are both of 8 bits, or one and a factor near 1? Their numbers are nearly the same: the first that
 * fits stays, unless another leaves far less. */
static bool are_both_rounded(const vn_applied_changed *a, const vn_applied_changed *b)
{
	return a->kind == VN_CHANGED_ROUNDED && of_same_slots(a, b) &&
	       (b->kind == a->kind || (b->kind == VN_CHANGED_SCALED && fabs(b->number - 1) < NEAR_ONE));
}

/* Are both empty, in slots of which some are the same? One whose key and value hardly count may be
 * empty or not. */
static bool are_both_empty(const vn_applied_changed *a, const vn_applied_changed *b)
{
	return a->kind == VN_CHANGED_EMPTY && b->kind == a->kind && a->of == b->of && a->slots == VN_SLOTS_RANGE &&
	       b->slots == a->slots && a->first < b->first + b->n && b->first < a->first + a->n;
}

static void weigh_change(changed_search *s)
{
	const double enough = fmax(s->second, APART * VN_LOCAL_LIMIT), left = worst_left(s->x, &s->now, enough);

	const bool formats = differ_in_format(&s->best, &s->now), rounded = are_both_rounded(&s->best, &s->now),
			   alike = formats || rounded || are_both_empty(&s->best, &s->now);

	if (s->left <= VN_LOCAL_LIMIT && is_almost_empty(&s->best, &s->now))
		return;
	if (rounded && s->left <= VN_LOCAL_LIMIT && left * APART > s->left)
		return;
	if (formats && s->best.format != s->now.format && fmax(left, s->left) <= VN_LOCAL_LIMIT)
		s->best.format = VN_FORMAT_NONE;
	else if (left < s->left) {
		s->second = alike ? s->second : s->left;
		s->left = left;
		s->best = s->now;
	} else if (!alike)
		s->second = fmin(left, s->second);
}

/* The sum of squares that the first n steps leave, each in floors. */
static double error_of_steps(const changed_search *s, const vn_applied_changed *c, int n)
{
	double sum = 0;

	for (int i = 0; i < s->x->n && i < n; i++)
		sum += left_in(s->x, &s->x->q[i], c);
	return isnan(sum) ? (double)INFINITY : sum;
}

static double error_of_factor(void *of, double factor)
{
	const changed_search *s = of;
	vn_applied_changed    c = s->now;

	c.number = factor;
	return error_of_steps(s, &c, FITTED_STEPS);
}

/* The factor of values that fits best with the factor of keys: of what heads make, the part that
 * changed values make is multiplied by it. */
static double fit_values(const changed_search *s, const vn_applied_changed *c)
{
	vn_applied_changed with = *c;
	double             moved = 0, size = 0;

	for (int i = 0; i < s->x->n && i < FITTED_STEPS; i++) {
		const changed_query *q = &s->x->q[i];
		const int            group = q->a.H / q->a.G, K = q->a.K;
		for (int h = 0; h < q->a.H; h++) {
			if (!s->x->in[h / group])
				continue;
			with.values = 0;
			make_head(s->x, q, &with, h, q->other);
			with.values = 1;
			make_head(s->x, q, &with, h, q->y);
			for (int d = 0; d < K; d++) {
				const double part = q->y[d] - q->other[d];
				moved += part * (q->a.is[h * K + d] - q->other[d]);
				size += part * part;
			}
		}
	}
	return size > 0 ? moved / size : 1;
}

static double error_of_keys(void *of, double factor)
{
	changed_search *s = of;

	s->now.number = factor;
	s->now.values = fit_values(s, &s->now);
	return error_of_factor(s, factor);
}

/* Of all blocks, one inside a run of changed slots leaves least. */
static void keep_block(changed_search *s, int run, double factor)
{
	vn_applied_changed *block = &s->block[run][s->now.of];

	if (s->now.slots != VN_SLOTS_RANGE)
		return;
	const double left = error_of_factor(s, factor);
	if (block->n && !(left < s->block_left[run][s->now.of]))
		return;
	*block = s->now;
	block->number = factor;
	s->block_left[run][s->now.of] = left;
}

/* Fits the factor, in the fewest digits that leave little more. both: one of keys, and one of
 * values. */
static void weigh_factor(changed_search *s, bool both)
{
	vn_round_numbers written = { .most = 6, .near = true, .inverse = true }, values = written;
	double           number;
	bool             found = !both;

	s->now.kind = VN_CHANGED_SCALED;
	s->now.values = both ? 1 : s->now.values;
	const double   unmodified = error_of_factor(s, 1);
	const vn_least least = vn_search_scale(both ? error_of_keys : error_of_factor, s, factors, NEAR * unmodified);
	if (!both)
		keep_block(s, RUN_SCALED, least.x);
	if (!(least.error < NEAR * unmodified))
		return;
	const double enough = fmax(VN_EXPLAIN_APART * least.error, VN_EXPLAIN_LEAST * FITTED_STEPS);
	written.x = s->now.number = least.x;
	s->now.values = both ? fit_values(s, &s->now) : s->now.values;
	while (vn_next_round_number(&written, &number))
		if (error_of_factor(s, number) <= enough) {
			s->now.number = number;
			break;
		}
	if (!both && fabs(s->now.number) < ALMOST_EMPTY && error_of_factor(s, 0) <= enough)
		return; /* the slots are empty */
	values.x = s->now.values;
	while (!found && vn_next_round_number(&values, &s->now.values))
		found = error_of_factor(s, s->now.number) <= enough;
	s->now.values = found ? s->now.values : values.x;
	if (both && (s->now.number == 1 || s->now.values == 1)) { /* one of them is as it should be */
		s->now.of = s->now.number == 1 ? 2 : 1;
		s->now.number = s->now.of == 2 ? s->now.values : s->now.number;
	}
	weigh_change(s);
}

/* A cache in 8 bits, also one whose scale is not that by which it was rounded, or (less than 0)
 * without scales. */
static void weigh_rounded(changed_search *s)
{
	static const struct {
		vn_rounding_format format;
		double             full;
	} ways[] = {
		{ VN_FORMAT_INT8, 0 },       { VN_FORMAT_INT8, 127.5 },    { VN_FORMAT_INT8, 128 },
		{ VN_FORMAT_INT8_HALF, 0 },  { VN_FORMAT_INT8_HALF, 127 }, { VN_FORMAT_INT8_128, 0 },
		{ VN_FORMAT_INT8_128, 127 }, { VN_FORMAT_E4M3, 0 },        { VN_FORMAT_E4M3, -1 },
		{ VN_FORMAT_E5M2, -1 },
	};

	s->now.kind = VN_CHANGED_ROUNDED;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		s->now.format = ways[i].format;
		s->now.number = ways[i].full;
		weigh_change(s);
	}
	s->now.number = 0;
}

/* Heads stored before tokens, or the reverse, and columns in another order. */
static void weigh_orders(changed_search *s, bool some)
{
	const int  K = s->x->q->a.K;
	const bool whole = s->now.slots == VN_SLOTS_ALL || s->now.slots == VN_SLOTS_FIRST_CALL;

	s->now.kind = VN_CHANGED_HEADS_FIRST;
	for (s->now.number = -1; !some && whole && s->x->q->a.G > 1 && s->now.number <= 1; s->now.number += 2)
		weigh_change(s);
	s->now.kind = VN_CHANGED_COLUMNS;
	if (s->now.slots == VN_SLOTS_RANGE)
		return;
	for (s->now.n = VN_COLUMN_ROLLED; s->now.n <= (K % 2 ? VN_COLUMN_REVERSED : VN_COLUMN_HALVES); s->now.n++)
		for (int by = 1; by < (s->now.n == VN_COLUMN_ROLLED ? K : 2); by *= 2)
			for (int way = 1; way >= (s->now.n == VN_COLUMN_ROLLED && 2 * by < K ? -1 : 1); way -= 2) {
				s->now.number = way * by;
				weigh_change(s);
			}
	s->now.n = 0;
	s->now.number = 0;
}

/* Tries all changes of the slots of s->now. some: only in some heads. */
static void weigh_slots(changed_search *s, bool some)
{
	static const vn_rounding_format formats[] = { VN_FORMAT_INT8, VN_FORMAT_E4M3 };
	const bool                      values = s->x->q->a.output == VN_ATTN_CONTEXT;

	for (int of = values ? 0 : 1; of <= (values ? 2 : 1); of++) {
		s->now.of = of;
		s->now.kind = VN_CHANGED_UNSCALED;
		for (int both = 0; both <= (of && values && s->now.slots != VN_SLOTS_RANGE); both++)
			for (int i = 0; i < 2; i++) {
				s->now.number = both;
				s->now.format = formats[i];
				weigh_change(s);
				keep_block(s, RUN_INT8 + i, both);
			}
		s->now.number = 0;
		if (s->now.slots != VN_SLOTS_RANGE)
			weigh_rounded(s);
		s->now.format = VN_FORMAT_NONE;
		s->now.kind = VN_CHANGED_EMPTY;
		if (some)
			weigh_change(s);
		s->now.kind = VN_CHANGED_SCALED;
		if (of && (s->now.slots != VN_SLOTS_RANGE || s->now.n >= LEAST_FITTED))
			weigh_factor(s, false);
		s->now.kind = VN_CHANGED_ROLLED;
		for (int by = s->x->q->a.G < 3; /* of two, the reverse is a roll */
		     !some && s->now.slots != VN_SLOTS_RANGE && by < s->x->q->a.G && by <= FARTHEST_HEAD; by++) {
			s->now.number = by;
			weigh_change(s);
		}
		s->now.number = 0;
		weigh_orders(s, some);
	}
	/* reversed keys are to their values what reversed values are to their keys */
	s->now.of = 1;
	s->now.kind = VN_CHANGED_REVERSED;
	if (!some && (s->now.slots == VN_SLOTS_ALL || s->now.slots == VN_SLOTS_FIRST_CALL))
		weigh_change(s);
	s->now.of = 0;
	s->now.kind = VN_CHANGED_TWICE;
	if (s->x->q->a.output != VN_ATTN_SCORES)
		weigh_change(s);
}

/* Any run of slots that are empty. work: multiplications for one. */
static void weigh_empty(changed_search *s, double work)
{
	const int past = (int)s->x->q->a.past, most = s->x->q->a.output == VN_ATTN_CONTEXT ? 2 : 1;

	if (work * past * past > MOST_WORK / 8)
		return;
	s->now = (vn_applied_changed) { .kind = VN_CHANGED_EMPTY, .slots = VN_SLOTS_RANGE };
	for (s->now.of = most == 2 ? 0 : 1; s->now.of <= most; s->now.of++)
		for (s->now.first = 0; s->now.first < past; s->now.first++)
			for (s->now.n = 1; s->now.n <= past - s->now.first; s->now.n++)
				weigh_change(s);
}

/* Moves one end of the run s->now to where it leaves least, or as little with fewer slots. Returns
 * whether that is elsewhere. */
static bool move_end(changed_search *s, bool last, double *left)
{
	const int past = (int)s->x->q->a.past, first = s->now.first, end = first + s->now.n;
	int       best = last ? end : first;

	for (int n = last ? past - first : end; n > 0; n--) {
		s->now.first = last ? first : end - n;
		s->now.n = n;
		const double now = error_of_steps(s, &s->now, s->x->n);
		if (now < *left * (1 + EQUAL)) {
			*left = now;
			best = last ? first + n : end - n;
		}
	}
	s->now.first = last ? first : best;
	s->now.n = (last ? best : end) - s->now.first;
	return best != (last ? end : first);
}

/* Is a block changed like the run an answer already? The run is it, or it with slots that hardly
 * count. */
static bool is_block(const changed_search *s, const vn_applied_changed *run)
{
	return s->left <= VN_LOCAL_LIMIT && s->best.kind == run->kind && s->best.slots == VN_SLOTS_RANGE &&
	       s->best.of == run->of && s->best.format == run->format;
}

/* From the block of a change that leaves least, moves its ends, and fits its factor, in turn. */
static void weigh_run(changed_search *s, const vn_applied_changed *block)
{
	enum { TURNS = 8 };
	const vn_last_query *q = &s->x->q->a;
	const double         work = (double)q->S * q->K * q->H * s->x->n * (double)q->past * TURNS * 2;
	const bool           scaled = block->kind == VN_CHANGED_SCALED;
	bool                 moved = true;
	double               left;

	if (!block->n || is_block(s, block) || work > (scaled ? MOST_WORK : MOST_WORK / 8))
		return;
	s->now = *block;
	left = error_of_steps(s, &s->now, s->x->n);
	for (int i = 0; i < TURNS && moved; i++) {
		moved = move_end(s, true, &left);
		moved = move_end(s, false, &left) || moved;
		if (!scaled)
			continue;
		const double   before = error_of_factor(s, s->now.number);
		const vn_least least = vn_search_scale(error_of_factor, s, factors, before);
		s->now.number = least.error < before ? least.x : s->now.number;
		left = error_of_steps(s, &s->now, s->x->n);
	}
	if (scaled && s->now.n >= LEAST_FITTED)
		weigh_factor(s, false);
	else if (!scaled)
		weigh_change(s);
}

/* Any run of slots that is changed in one way. */
static void weigh_runs(changed_search *s)
{
	for (int run = 0; run < N_RUNS; run++)
		for (int of = 0; of < 3; of++)
			weigh_run(s, &s->block[run][of]);
}

/* Two blocks whose keys are exchanged, but not their values: to a query that sees both, the reverse
 * is the same. */
static void weigh_exchanged(changed_search *s, double work)
{
	s->now = (vn_applied_changed) { .kind = VN_CHANGED_EXCHANGED, .slots = VN_SLOTS_RANGE, .of = 1 };
	for (s->now.n = LARGEST_BLOCK; s->now.n >= LEAST_EXCHANGED; s->now.n /= 2) {
		const int blocks = (int)s->x->q->a.past / s->now.n;
		for (int i = 0; work * blocks * blocks < MOST_WORK / 8 && i < blocks; i++)
			for (int k = i + 1; k < blocks; k++) {
				s->now.first = i * s->now.n;
				s->now.number = k * s->now.n;
				weigh_change(s);
			}
	}
}

/* Tokens of later calls in other slots than their own: farther late than there are such tokens,
 * none is read. */
static void weigh_moved(changed_search *s)
{
	enum { FARTHEST = 64 };
	int later = 0;
	for (int i = 0; i < s->x->n; i++)
		later = (int)fmax(later, (double)(s->x->q[i].a.S - s->x->q[i].prompt));
	/* scores and probabilities show keys alone */
	const int most = s->x->q->a.output == VN_ATTN_CONTEXT ? 2 : 0, from = (int)s->x->q->prompt;

	s->now = (vn_applied_changed) { .kind = VN_CHANGED_MOVED, .slots = VN_SLOTS_LATER };
	for (s->now.of = 0; s->now.of <= most; s->now.of++)
		for (int by = from < FARTHEST ? -from : -FARTHEST; by <= later && by <= FARTHEST; by++) {
			s->now.number = by;
			if (abs(by) > 1)
				weigh_change(s);
		}
}

/* Slots that no call fills as a whole: blocks of the tokens that all steps find in the cache. */
static void weigh_blocks(changed_search *s, bool some)
{
	const vn_last_query *a = &s->x->q->a;
	const double         work = (double)a->S * a->K * a->H * s->x->n;

	s->now.slots = VN_SLOTS_RANGE;
	for (int64_t size = LARGEST_BLOCK; size >= 1; size /= 2)
		for (int64_t i = 0; (double)(a->past / size) * work * factors.steps < MOST_WORK && i < a->past; i += size) {
			s->now.first = (int)i;
			s->now.n = (int)size;
			if (i || size < a->past)
				weigh_slots(s, some);
		}
	weigh_runs(s);
	if (some)
		weigh_empty(s, work);
	weigh_exchanged(s, work);
}

/* What is searched, in this order; TWO_FACTORS: of named slots. */
typedef enum search_in { IN_NAMED, IN_BLOCKS, TWO_FACTORS, N_SEARCHES } search_in;

static void find_change(changed_search *s, bool some, search_in in)
{
	static const vn_changed_slots named[] = { VN_SLOTS_ALL, VN_SLOTS_FIRST_CALL, VN_SLOTS_LATER, VN_SLOTS_NEWEST };

	bool single = true; /* the newest token is the only one of later calls */
	for (int i = 0; i < s->x->n; i++)
		single = single && s->x->q[i].prompt == s->x->q[i].a.S - 1;
	s->left = s->second = (double)INFINITY;
	memset(s->block, 0, sizeof s->block);
	if (in == IN_NAMED && !some)
		weigh_moved(s);
	if (in == IN_BLOCKS)
		weigh_blocks(s, some);
	if (in == IN_BLOCKS || (in == TWO_FACTORS && s->x->q->a.output != VN_ATTN_CONTEXT))
		return;
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		s->now = (vn_applied_changed) { .slots = named[i] };
		if (single && named[i] == VN_SLOTS_LATER)
			continue;
		if (in == IN_NAMED)
			weigh_slots(s, some);
		else
			weigh_factor(s, true);
	}
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Widens the floor by what a candidate in float32 may round otherwise. */
static void widen(vn_made *made, bool rounded)
{
	double *own = (double *)made->own.data, *fine = (double *)made->fine.data;

	for (int64_t i = 0; rounded && i < vn_shape_count(&made->own.shape); i++)
		own[i] = fine[i] + ROUNDINGS * (own[i] - fine[i]);
}

static void try_change(vn_case *t, const changed_steps *x, const changed_query *q, const vn_applied_changed *c)
{
	const int     group = q->a.H / q->a.G;
	const int64_t n = vn_last_query_width(&q->a);
	const int     moved = c->kind == VN_CHANGED_MOVED ? (int)c->number : 0;
	vn_trial      h = { .finding = c->kind == VN_CHANGED_SCALED        ? VN_FINDING_CACHE_SCALED
		                           : c->kind == VN_CHANGED_UNSCALED    ? VN_FINDING_CACHE_UNSCALED
		                           : c->kind == VN_CHANGED_ROUNDED     ? VN_FINDING_CACHE_ROUNDED_SLOTS
		                           : c->kind == VN_CHANGED_TWICE       ? VN_FINDING_CACHE_TWICE
		                           : c->kind == VN_CHANGED_EMPTY       ? VN_FINDING_CACHE_PART_EMPTY
		                           : moved                             ? VN_FINDING_NEW_SLOTS_MOVED
		                           : c->kind == VN_CHANGED_ROLLED      ? VN_FINDING_CACHE_HEADS_ROLLED
		                           : c->kind == VN_CHANGED_REVERSED    ? VN_FINDING_CACHE_REVERSED
		                           : c->kind == VN_CHANGED_COLUMNS     ? VN_FINDING_CACHE_COLUMNS
		                           : c->kind == VN_CHANGED_HEADS_FIRST ? VN_FINDING_CACHE_HEADS_FIRST
		                                                               : VN_FINDING_CACHE_EXCHANGED,
		                .node = (int)(q->a.n - t->site->plan->node),
		                .applied = { .kind = VN_BY_CHANGED, .changed = *c } };
	vn_made       made;
	bool          all = true;

	if (moved)
		h.applied = (vn_applied) { .kind = VN_BY_SLOTS, .later = true, .slots = { c->of, moved, false } };
	if (!vn_last_query_begin(t, q->x, &made))
		return;
	for (int g = 0; g < q->a.G; g++)
		all = all && x->in[g];
	for (int i = 0; !all && i < q->a.H && q->a.H <= VN_HEADS_MOST; i++) {
		h.part[i] = x->in[i / group];
		h.heads = q->a.H;
	}
	changed_steps exact = *x;
	exact.rounded = x->rounded && is_half(x->storage);
	for (int i = 0; i < q->a.H; i++)
		make_head(x, q, x->in[i / group] ? c : NULL, i, (double *)made.fine.data + i * n);
	vn_made_round(t, &made);
	for (int i = 0; i < q->a.H; i++)
		make_head(&exact, q, x->in[i / group] ? c : NULL, i, (double *)made.fine.data + i * n);
	widen(&made, x->rounded && !exact.rounded);
	vn_last_query_try(t, &h, &made);
}

static bool is_clear(const changed_search *s)
{
	const double apart = s->left <= VN_EXPLAIN_LEAST ? NEAR_APART : APART;

	return s->left <= VN_LOCAL_LIMIT && s->second > apart * VN_LOCAL_LIMIT;
}

/* If the candidate rounds within the attention, as transformers does, the change leaves less when
 * that is computed too. Then its numbers are fitted again. */
static void fit_rounded(changed_search *s, changed_steps *x, bool some, search_in in)
{
	changed_search again = { .x = x };

	if (x->rounded || !is_half(x->storage))
		return;
	x->rounded = true;
	const bool closer = worst_left(x, &s->best, s->left) < s->left;
	if (closer)
		find_change(&again, some, in);
	if (closer && is_clear(&again))
		*s = again;
	x->rounded = closer;
}

/* A change that leaves more than a correct operation may, and the others far more: the rest may be
 * what the candidate rounds within the attention. Fits no number to it: roundings hide a number's
 * last digits. */
static void round_best(changed_search *s, changed_steps *x)
{
	if (x->rounded || !is_half(x->storage) || s->left <= VN_LOCAL_LIMIT || s->left > APART * VN_LOCAL_LIMIT)
		return;
	x->rounded = true;
	s->left = fmin(worst_left(x, &s->best, s->left), s->left);
}

/* Finds the change in all key heads, or else in those that are wrong. A key head that hardly reads
 * the slots does not show it. */
static void find_answer(vn_case *t, changed_steps *x)
{
	const int      G = x->q->a.G;
	changed_search s = { .x = x };
	bool           wrong[VN_HEADS_MOST];

	for (int way = 0; way < 2 * N_SEARCHES; way++) {
		const search_in in = (search_in)(way / 2);
		x->rounded = way % 2;
		const int some = find_heads(x, wrong);
		for (int part = 0; part < (some && some < G ? 2 : 1); part++) {
			for (int g = 0; g < G; g++)
				x->in[g] = !part || wrong[g];
			x->rounded = way % 2;
			find_change(&s, part, in);
			round_best(&s, x);
			if (!is_clear(&s))
				continue;
			fit_rounded(&s, x, part, in);
			for (int i = 0; i < x->n; i++)
				try_change(t, x, &x->q[i], &s.best);
			return;
		}
	}
}

void vn_explain_changed_slots(vn_case *t, vn_findings **x, int n)
{
	changed_steps all = { .q = vn_alloc_zero((size_t)n, sizeof *all.q), .storage = t->opened->policy.storage };
	bool          clear = false, fits = n > 0;

	for (int i = 0; i < n; i++)
		clear = clear || x[i]->unmodified.limit_fraction > CLEAR;
	for (int i = 0; clear && fits && i < n; i++)
		if (!*x[i]->why_not)
			fits = open_query(t, x[i], &all.q[all.n++]);
	if (clear && fits && all.n)
		find_answer(t, &all);
	for (int i = 0; i < all.n; i++)
		close_query(&all.q[i]);
	free(all.q);
}
