/* profile.c: see profile.h. */
#include "compare/profile/profile.h"
#include "compare/metrics/team.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 8, EVERY_MAX = 16, TREND = 8 };

#define GAP        16.0 /* ratio of relative energies, for indices with many elements */
#define GAP_OF_FEW 100.0
#define MANY       16  /* elements an index needs for a stable energy */
#define EXPLAINED  0.1 /* share of the error that may remain when one factor or offset explains it */

/* ---- which indices ------------------------------------------------------------------ */

typedef struct ranked {
	double  e; /* relative error */
	int64_t i;
} ranked;

VN_ORDER_BY(by_error, ranked, VN_ORDER(x->e, y->e), VN_ORDER(x->i, y->i))

/* An index with almost no magnitude of its own is measured against the others. */
static void rank_positions(const vn_axis_profile *a, double noise, ranked *r)
{
	double mean = 0;
	for (int64_t i = 0; i < a->n; i++)
		mean += a->at[i].ref / (double)a->n;
	for (int64_t i = 0; i < a->n; i++) {
		const double size = fmax(a->at[i].ref, 1e-3 * mean);
		const double e = size > 0 ? a->at[i].error / size : a->at[i].error;
		r[i] = (ranked) { e > noise ? e : 0, i };
	}
	qsort(r, (size_t)a->n, sizeof *r, by_error);
}

/* Position of the widest gap, as the first index above it; 0: none. */
static int64_t find_gap(const ranked *r, int64_t n, double least)
{
	int64_t best = 0;
	double  widest = least;
	if (!(r[n - 1].e > 0))
		return 0;
	for (int64_t i = 1; i < n; i++) {
		const double gap = r[i - 1].e > 0 ? r[i].e / r[i - 1].e : r[i].e > 0 ? 1e300 : 0.0;
		if (gap >= widest) {
			best = i;
			widest = gap;
		}
	}
	return best;
}

/* ---- their pattern -------------------------------------------------------------------- */

/* The noun for an axis, "head" or "heads". Axis names are those of specs/points.md. */
static const char *noun_of(const char *axis, bool one, char *text, size_t room)
{
	static const struct {
		const char *axis, *one, *many;
	} words[] = {
		{ "hidden", "channel", "channels" },
		{ "ffn", "ffn channel", "ffn channels" },
		{ "vocab", "vocabulary entry", "vocabulary entries" },
		{ "key_dim", "key dim", "key dims" },
		{ "kv_head", "kv head", "kv heads" },
		{ "lin_mix", "lin_mix channel", "lin_mix channels" },
		{ "qkv", "qkv channel", "qkv channels" },
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(axis, words[i].axis) == 0)
			return one ? words[i].one : words[i].many;
	if (strncmp(axis, "axis ", 5) == 0)
		snprintf(text, room, one ? "index of %s:" : "indices of %s:", axis);
	else
		snprintf(text, room, one ? "%s" : "%ss", axis);
	return text;
}

static bool is_arithmetic(const bool *hit, int64_t n, int64_t every, int64_t from)
{
	for (int64_t i = 0; i < n; i++)
		if (hit[i] != (i % every == from))
			return false;
	return true;
}

/* "of 64"; of kept rows: "of 20-69". */
static void add_whole(const vn_axis_profile *a, char *text, size_t room)
{
	if (a->first)
		vn_text_add(text, room, " of %" PRId64 "-%" PRId64, a->first, a->first + a->n - 1);
	else
		vn_text_add(text, room, " of %" PRId64, a->n);
}

/* Describes the set of indices; returns false when they follow no pattern and are many. */
static bool describe_pattern(const bool *hit, const vn_axis_profile *a, char *text, size_t room)
{
	char          name[48];
	const int64_t n = a->n, at = a->first;
	const char   *axis = a->name, *what = noun_of(axis, false, name, sizeof name);
	int64_t       count = 0, first = -1, last = -1;
	for (int64_t i = 0; i < n; i++)
		if (hit[i]) {
			first = first < 0 ? i : first;
			last = i;
			count++;
		}
	if (count == 1)
		snprintf(text, room, "%s %" PRId64, noun_of(axis, true, name, sizeof name), at + first);
	else if (last - first + 1 == count)
		snprintf(text, room, "%s %" PRId64 "-%" PRId64, what, at + first, at + last);
	if (count == 1 || last - first + 1 == count) {
		add_whole(a, text, room);
		return true;
	}
	for (int64_t every = 2; every <= EVERY_MAX && 3 * every <= n; every++)
		if (is_arithmetic(hit, n, every, first)) {
			if (every == 2)
				snprintf(text, room, "%s %s", (at + first) % 2 ? "odd" : "even", what);
			else
				snprintf(text, room, "%s %" PRId64 ", %" PRId64 ", %" PRId64 "...", what, at + first,
				         at + first + every, at + first + 2 * every);
			add_whole(a, text, room);
			return true;
		}
	if (count > LISTED)
		return false;
	snprintf(text, room, "%s ", what);
	for (int64_t i = first; i <= last; i++)
		if (hit[i])
			vn_text_add(text, room, "%s%" PRId64, i == first ? "" : ", ", at + i);
	add_whole(a, text, room);
	return true;
}

/* ---- trend ------------------------------------------------------------------------------ */

/* For the indices that are hit: the correlation of log error with log
 * (1 + index), and its range. */
static const char *describe_trend(const vn_axis_profile *a, const bool *hit)
{
	double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0, low = INFINITY, high = 0;
	for (int64_t i = 0; i < a->n; i++) {
		const double e = a->at[i].ref > 0 ? a->at[i].error / a->at[i].ref : 0;
		if (!hit[i] || !(e > 0))
			continue;
		const double u = log1p((double)i), v = log(e);
		n++, x += u, y += v, xx += u * u, yy += v * v, xy += u * v;
		low = fmin(low, e);
		high = fmax(high, e);
	}
	const double sx = xx - x * x / n, sy = yy - y * y / n, r = (xy - x * y / n) / sqrt(sx * sy);
	if (n < TREND || high < 4 * low || !(fabs(r) > 0.8))
		return "";
	return r > 0 ? "grows with" : "fades with";
}

/* ---- one axis ------------------------------------------------------------------------------ */

/* Reports non-finite numbers by their place on this axis. The remaining error, mostly harmless
 * rounding, is then not described. */
static bool say_bad(vn_profile *p, const vn_axis_profile *a, bool *hit)
{
	char    text[160];
	int64_t count = 0;
	for (int64_t i = 0; i < a->n; i++)
		count += hit[i] = a->at[i].bad > 0;
	if (count == a->n || !describe_pattern(hit, a, text, sizeof text))
		return false;
	vn_lines_add(&p->words, "the NaN and infinities are in %s", text);
	return true;
}

static void say_split(vn_profile *p, const vn_axis_profile *a, const ranked *r, int64_t from, bool *hit)
{
	char   text[160], name[48], way[48] = "";
	double inside = 0;
	for (int64_t i = 0; i < a->n; i++)
		hit[i] = false;
	for (int64_t i = from; i < a->n; i++) {
		hit[r[i].i] = true;
		inside += a->at[r[i].i].error;
	}
	if (*describe_trend(a, hit))
		snprintf(way, sizeof way, "; it %s the %s", describe_trend(a, hit),
		         strncmp(a->name, "axis ", 5) ? noun_of(a->name, true, name, sizeof name) : a->name);
	if (!describe_pattern(hit, a, text, sizeof text)) {
		/* Without a pattern, only a few spared indices or a few affected ones are worth naming. */
		if (2 * (a->n - from) > a->n || inside < 0.9 * p->all.error)
			return;
		snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " %s", a->n - from, a->n,
		         noun_of(a->name, false, name, sizeof name));
	}
	const char *carry = a->n - from == 1 ? "carries" : "carry";
	if (r[from - 1].e > 0)
		vn_lines_add(&p->words, "%s %s %.4g %% of the error%s", text, carry, 100 * inside / p->all.error, way);
	else
		vn_lines_add(&p->words, "%s %s all of the error; the others are %s%s", text, carry,
		             p->noise > 0 ? "within their floor" : "exact", way);
}

/* From the smallest error to the largest, of the indices that have more than rounding. */
static void say_trend(vn_profile *p, const vn_axis_profile *a, const ranked *r, const bool *hit)
{
	int64_t first = 0;

	while (first < a->n - 1 && !(r[first].e > 0))
		first++;
	if (r[first].e > 0 && first < a->n - 1)
		vn_lines_add(&p->words, "the error %s the %s: from %.2g to %.2g relative to the reference",
		             describe_trend(a, hit), a->name, sqrt(r[first].e), sqrt(r[a->n - 1].e));
}

static void say_axis(vn_profile *p, const vn_axis_profile *a, ranked *r, bool *hit)
{
	if (a->n < 2)
		return;
	if ((p->all.bad && say_bad(p, a, hit)) || !(p->all.error > 0))
		return;
	rank_positions(a, p->noise, r);
	const int64_t from = find_gap(r, a->n, p->n / a->n >= MANY ? GAP : GAP_OF_FEW);
	if (from > 0) {
		say_split(p, a, r, from, hit);
		return;
	}
	for (int64_t i = 0; i < a->n; i++)
		hit[i] = true;
	if ((strcmp(a->name, "token") == 0 || strcmp(a->name, "key") == 0) && *describe_trend(a, hit))
		say_trend(p, a, r, hit);
}

/* Fills p->words from the sums. */
static void say_profile(vn_profile *p)
{
	int64_t most = 1;
	for (int i = 0; i < p->n_axes; i++)
		most = p->axis[i].n > most ? p->axis[i].n : most;
	ranked *r = vn_alloc((size_t)most, sizeof *r);
	bool   *hit = vn_alloc((size_t)most, sizeof *hit);

	for (int i = 0; i < p->n_axes; i++)
		say_axis(p, &p->axis[i], r, hit);
	VN_FREE(r, hit);
	if (p->n >= MANY && p->all.error > 0 && p->all.ref > 0) {
		/* The explanation must cover most of the error and apply to a nonzero candidate: almost
		 * nothing is not "the reference times almost nothing". */
		const double whole = fmin(p->all.error / p->all.ref, p->factor * p->factor);
		const double there = fmin(p->all.error / p->all.ref,
		                          fmax(1 + 2 * (p->factor - 1) + p->all.error / p->all.ref, 0.0));
		if (p->factor == 0 && p->apart <= 0)
			vn_lines_add(&p->words, "the candidate is 0 throughout");
		else if (p->apart <= EXPLAINED * whole)
			vn_lines_add(&p->words,
			             "the candidate is the reference times %.5g, which explains all but %.2g %% of the error",
			             p->factor, 100 * p->apart * p->all.ref / p->all.error);
		else if (p->level <= EXPLAINED * there)
			vn_lines_add(&p->words,
			             "the candidate is the reference plus %.5g, which explains all but %.2g %% of the error",
			             p->offset, 100 * p->level * p->all.ref / p->all.error);
	}
}

enum { PIECE = VN_NUMBERS, PARTS = 1 << 16 /* of rows that are kept at a time */ };

/* Sums of a part of a row: energies, r.c and c - r. */
typedef struct row_part {
	vn_energy energy;
	double    rc, d;
	int64_t   finite;
} row_part;

static void add_energy(vn_energy *to, const vn_energy *x)
{
	to->error += x->error;
	to->ref += x->ref;
	to->bad += x->bad;
}

static void add_part(row_part *to, const row_part *x)
{
	add_energy(&to->energy, &x->energy);
	to->rc += x->rc;
	to->d += x->d;
	to->finite += x->finite;
}

static bool same_bad(double r, double c)
{
	return (isnan(r) && isnan(c)) || (isinf(r) && r == c);
}

/* Adds n elements to those of the last axis that they are (last), and returns their sums. */
static row_part add_piece(vn_energy *last, const double *r, const double *c, size_t n)
{
	row_part sum = { .finite = 0 };

	for (size_t i = 0; i < n; i++) {
		const double d = c[i] - r[i];
		if (!isfinite(d)) {
			if (!(isfinite(r[i]) && isfinite(c[i])) && same_bad(r[i], c[i]))
				continue;
			last[i].bad++;
			sum.energy.bad++;
			continue;
		}
		last[i].error += d * d;
		last[i].ref += r[i] * r[i];
		sum.energy.error += d * d;
		sum.energy.ref += r[i] * r[i];
		sum.rc += r[i] * c[i];
		sum.d += d;
		sum.finite++;
	}
	return sum;
}

/* Where one side's numbers are: in memory or in a recording. */
typedef struct number_source {
	const vn_tensor *tensor;
	vn_numbers      *part;
} number_source;

static vn_status read_piece(const number_source *s, int64_t from, size_t n, double *x, vn_error *err)
{
	vn_status st = VN_OK;
	if (s->tensor)
		vn_tensor_numbers(s->tensor, from, (int64_t)n, x);
	else if (!(st = vn_numbers_read(s->part, from, n, err)))
		memcpy(x, s->part->x, n * sizeof *x);
	return st;
}

/* Rows that are summed at a time, piece by piece of the last axis. */
typedef struct row_block {
	const number_source *side;
	bool                 alone; /* one thread */
	vn_axis_profile     *last;
	int64_t              from, rows;
	row_part            *part; /* (pieces, rows) */
	vn_status           *st;   /* (pieces) */
	vn_error            *why;  /* (pieces) */
} row_block;

static vn_status sum_rows(row_block *b, int64_t piece, const number_source side[2])
{
	const int64_t of = b->last->n, at = piece * PIECE, n = of - at < PIECE ? of - at : PIECE;
	const int64_t together = n < of ? 1 : PIECE / of; /* rows read at a time */
	double        x[2][PIECE];
	vn_status     st;

	for (int64_t row = 0; row < b->rows; row++) {
		const int64_t first = row % together, from = (b->from + row) * of + at, left = b->rows - row,
					  count = n * (left < together ? left : together);
		for (int i = 0; first == 0 && i < 2; i++)
			if ((st = read_piece(&side[i], from, (size_t)count, x[i], &b->why[piece])))
				return st;
		b->part[piece * b->rows + row] = add_piece(b->last->at + at, x[0] + first * n, x[1] + first * n, (size_t)n);
	}
	return VN_OK;
}

static void sum_piece(void *ctx, int piece)
{
	row_block    *b = ctx;
	number_source own[2] = { b->side[0], b->side[1] };

	for (int i = 0; i < 2 && !b->alone; i++)
		own[i].part = own[i].part ? vn_numbers_open(own[i].part->recording, own[i].part->entry, &b->why[piece]) : NULL;
	b->st[piece] = sum_rows(b, piece, own);
	for (int i = 0; i < 2 && !b->alone; i++)
		vn_numbers_close(own[i].part);
}

/* Adds the rows to all axes before the last one, an odometer (at), and to *all. */
static void join_rows(vn_profile *p, const row_block *b, int64_t pieces, int64_t at[VN_MAX_RANK], row_part *all)
{
	for (int64_t row = 0; row < b->rows; row++) {
		row_part sum = { .finite = 0 };
		for (int64_t i = 0; i < pieces; i++)
			add_part(&sum, &b->part[i * b->rows + row]);
		add_part(all, &sum);
		for (int a = p->n_axes - 2; a >= 0; a--)
			add_energy(&p->axis[a].at[at[a]], &sum.energy);
		for (int a = p->n_axes - 2; a >= 0 && ++at[a] == p->axis[a].n; a--)
			at[a] = 0;
	}
}

/* Threads take pieces of the last axis. One alone goes row by row, as files are read fastest. */
static vn_status sum_up(vn_profile *p, const number_source side[2], int threads, row_part *all, vn_error *err)
{
	vn_axis_profile    *last = &p->axis[p->n_axes - 1];
	const int64_t       rows = p->n / last->n, pieces = (last->n + PIECE - 1) / PIECE;
	const int64_t       most = (pieces > 1 && threads == 1) || pieces > PARTS ? 1 : PARTS / pieces;
	VN_FREED row_part  *part = vn_alloc((size_t)(pieces * (most < rows ? most : rows)), sizeof *part);
	VN_FREED vn_status *st = vn_alloc_zero((size_t)pieces, sizeof *st);
	VN_FREED vn_error  *why = vn_alloc_zero((size_t)pieces, sizeof *why);
	int64_t             at[VN_MAX_RANK] = { 0 };
	row_block           b = { side, threads == 1, last, 0, 0, part, st, why };
	vn_status           failed = VN_OK;

	for (; !failed && b.from < rows; b.from += b.rows) {
		b.rows = rows - b.from < most ? rows - b.from : most;
		vn_team_each(threads, (int)pieces, sum_piece, &b);
		for (int64_t i = 0; !failed && i < pieces; i++)
			if ((failed = st[i]))
				*err = why[i];
		if (!failed)
			join_rows(p, &b, pieces, at, all);
	}
	p->all = all->energy;
	return failed;
}

static void begin_axis(vn_axis_profile *a, int i, const vn_profile_subject *of, int64_t n)
{
	size_t      word;
	const char *axes = vn_axes_word(of->axes, i, &word);
	if (word && word < sizeof a->name)
		snprintf(a->name, sizeof a->name, "%.*s", (int)word, axes);
	else
		snprintf(a->name, sizeof a->name, "axis %d", i);
	a->n = n;
	a->first = strcmp(a->name, "token") == 0 ? of->first_token : 0;
	a->at = vn_alloc_zero((size_t)n, sizeof *a->at);
}

static vn_status profile_axes(const vn_shape *shape, const vn_profile_subject *of, const number_source side[2],
                              vn_profile *p, vn_error *err)
{
	row_part  all = { .finite = 0 };
	vn_status st;

	p->n_axes = shape->rank ? shape->rank : 1;
	p->n = vn_shape_count(shape);
	for (int i = 0; i < p->n_axes; i++)
		begin_axis(&p->axis[i], i, of, shape->rank ? shape->dim[i] : 1);
	if ((st = sum_up(p, side, of->threads, &all, err)))
		return st;
	p->factor = p->all.ref > 0 ? all.rc / p->all.ref : 1.0;
	p->offset = all.finite ? all.d / (double)all.finite : 0.0;
	/* (c - f r)^2 = (c-r)^2 - (f-1)^2 r.r for the least-squares factor f;
	 * the mean offset is treated the same way. */
	p->apart = p->all.ref > 0 ? fmax(p->all.error / p->all.ref - (p->factor - 1) * (p->factor - 1), 0.0) : 0.0;
	p->level = p->all.ref > 0 ? fmax(p->all.error - p->offset * all.d, 0.0) / p->all.ref : 0.0;
	say_profile(p);
	return VN_OK;
}

vn_status vn_profile_of(const vn_tensor *ref, const vn_tensor *cand, const vn_profile_subject *of, vn_profile *p,
                        vn_error *err)
{
	*p = (vn_profile) { .noise = of->noise };
	return profile_axes(&ref->shape, of, (number_source[]) { { .tensor = ref }, { .tensor = cand } }, p, err);
}

vn_status vn_profile_read(vn_numbers *ref, vn_numbers *cand, int threads, vn_profile *p, vn_error *err)
{
	const vn_entry          *e = vn_recording_entry(ref->recording, ref->entry);
	const vn_step           *s = vn_recording_step(ref->recording, e->step);
	const vn_profile_subject of = { vn_entry_axes(e), s ? s->first_row : 0, 0, threads };

	*p = (vn_profile) { 0 };
	return profile_axes(&e->shape, &of, (number_source[]) { { .part = ref }, { .part = cand } }, p, err);
}

void vn_profile_free(vn_profile *p)
{
	for (int i = 0; i < p->n_axes; i++)
		free(p->axis[i].at);
	vn_lines_free(&p->words);
	*p = (vn_profile) { 0 };
}
