/* layout_match.c: see layout_match.h. */
#include "compare/profile/sampling.h"
#include "compare/profile/layout_match.h"

#include "capture/recording/numbers.h"
#include "compare/comparison/checkpoint.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIKELY_NMSE 0.05 /* nmse of a layout match */
#define BETTER      16.0 /* how many times better than in the candidate's own place */

/* One pair of tensors, and the search for the candidate's elements in the reference. */
typedef struct search {
	const vn_opened *o;
	const vn_entry  *re, *ce;
	vn_numbers      *ref, *cand;
	const vn_shape  *shape;
	int64_t          n;
	double           own, limit;     /* own: nmse in its own place; limit: nmse a match must reach */
	int64_t          at[VN_SAMPLED]; /* flat positions */
	int              sampled;
	bool             wrong; /* the operation makes this order, and what reads it does not use it */
	vn_layout_match *best;
} search;

/* ---- a map from the reference's positions to the candidate's --------------------------------- */

typedef struct layout_map {
	const search         *s;
	const vn_arrangement *by;    /* NULL: each number in its own place */
	vn_permutation        axes;  /* VN_ARRANGED_AXES */
	vn_arrange            along; /* else */
	int64_t               inner; /* numbers for each index of the axis */
} layout_map;

static layout_map map_back(const search *s, const vn_arrangement *by)
{
	layout_map m = { .s = s, .by = by, .inner = 1 };
	if (by->kind == VN_ARRANGED_AXES) {
		m.axes = vn_permutation_back(s->shape, by->order);
		return m;
	}
	m.along = vn_arrange_back(&by->along);
	for (int i = by->axis + 1; i < s->shape->rank; i++)
		m.inner *= s->shape->dim[i];
	return m;
}

/* Offset in the candidate of the reference's element `at`; -1: none. */
static int64_t map_index(const layout_map *m, int64_t at)
{
	if (!m->by)
		return at;
	if (m->by->kind == VN_ARRANGED_AXES)
		return vn_strided(m->axes.rank, m->axes.size, m->axes.stride, at);
	const int64_t n = m->s->shape->dim[m->by->axis], i = at / m->inner % n, to = vn_arranged(&m->along, i, n);
	return to < 0 ? -1 : at + (to - i) * m->inner;
}

static double drawn_nmse(const layout_map *m, vn_numbers *ref)
{
	vn_sampled x = { 0 };
	for (int i = 0; i < m->s->sampled; i++) {
		const int64_t to = map_index(m, m->s->at[i]);
		if (to >= 0)
			vn_sampled_add(&x, vn_numbers_value(ref, m->s->at[i]), vn_numbers_value(m->s->cand, to));
	}
	return vn_sampled_nmse(&x);
}

/* The nmse over all elements. A large tensor with permuted axes is sampled with an odd step (axis
 * lengths are usually even), because each element is read separately. */
static double whole_nmse(const layout_map *m, vn_numbers *ref)
{
	const bool    scattered = m->by && m->by->kind == VN_ARRANGED_AXES && !vn_numbers_are_few(m->s->cand);
	const int64_t step = scattered ? m->s->n / VN_SAMPLED_MOST | 1 : 1;
	vn_sampled    x = { 0 };
	for (int64_t i = 0; i < m->s->n; i += step) {
		const int64_t to = map_index(m, i);
		if (to >= 0)
			vn_sampled_add(&x, vn_numbers_value(ref, i), vn_numbers_value(m->s->cand, to));
	}
	return vn_sampled_nmse(&x);
}

/* The nmse that is good enough to report and better than the best so far. */
static double limit_of_match(const search *s)
{
	return fmin(s->limit, s->best->kind == VN_LAYOUT_MATCH_NOTHING ? s->limit : s->best->nmse / 2);
}

static bool is_better(const search *s, const layout_map *m, vn_numbers *ref, double *nmse)
{
	const double limit = limit_of_match(s);
	return drawn_nmse(m, ref) <= 2 * limit && (*nmse = whole_nmse(m, ref)) <= limit;
}

__attribute__((format(printf, 4, 5))) static void set_match(search *s, vn_layout_kind kind, double nmse,
                                                            const char *format, ...)
{
	va_list args;
	s->best->kind = kind;
	s->best->nmse = nmse;
	va_start(args, format);
	vsnprintf(s->best->words, sizeof s->best->words, format, args);
	va_end(args);
}

/* ---- kinds ---------------------------------------------------------------------------------- */

static void write_label(const vn_entry *e, char text[VN_LABEL])
{
	if (e->step)
		snprintf(text, VN_LABEL, "step.%d/%s", e->step, e->name);
	else
		snprintf(text, VN_LABEL, "%s", e->name);
	vn_text_clean(text, VN_LABEL);
}

/* Finds the nearest checkpoint of the reference, which is only reported. rearrange.c blames the
 * recorder, so it needs equal bits with a checkpoint of the candidate. */
static vn_status try_others(search *s, vn_error *err)
{
	enum { LOOKED_AT = 64 << 20 }; /* bytes of a mapped file; each read loads its neighbours too */
	const layout_map m = { .s = s };
	int64_t          looked = 0;
	char             text[VN_LABEL];
	vn_status        st = VN_OK;
	for (int i = 0; !st && i < vn_recording_count(s->o->ref); i++) {
		const vn_entry *e = vn_recording_entry(s->o->ref, i);
		double          nmse;
		if (e == s->re || s->re->same_as == i || e->same_as >= 0 || vn_shape_count(&e->shape) != s->n)
			continue;
		vn_numbers *t = vn_alloc_check(vn_numbers_open(s->o->ref, i, err));
		if (is_better(s, &m, t, &nmse)) {
			write_label(e, text);
			set_match(s, VN_LAYOUT_MATCH_OTHER, nmse,
			          "its numbers are those of %s in the reference (nmse %.2g against %.2g)", text, nmse, s->own);
			s->best->entry = i;
		}
		st = t->st;
		vn_numbers_close(t);
		if ((looked += s->n * (int64_t)vn_dtype_size(e->dtype)) >= LOOKED_AT) {
			vn_recording_forget(s->o->ref);
			looked = 0;
		}
	}
	return st;
}

/* Or neither has one. */
static bool same_digest(const vn_entry *a, const vn_entry *b)
{
	return strcmp(vn_entry_digest(a).hex, vn_entry_digest(b).hex) == 0;
}

/* Matches by digest: a buffer that an earlier checkpoint had already captured,
 * or that was never written. */
static void try_own(search *s)
{
	char text[VN_LABEL];
	for (int i = 0; *vn_entry_digest(s->ce).hex && i < vn_recording_count(s->o->cand); i++) {
		const vn_entry *e = vn_recording_entry(s->o->cand, i);
		const int       there = vn_recording_find(s->o->ref, e->step, e->name);
		if (e == s->ce || e->same_as >= 0 || !same_digest(e, s->ce) || there < 0 ||
		    same_digest(vn_recording_entry(s->o->ref, there), s->re))
			continue;
		write_label(e, text);
		set_match(
			s, VN_LAYOUT_MATCH_OWN, 0,
			"equal bit for bit to the candidate's %s: one buffer captured twice, or a buffer that was never written",
			text);
		s->best->entry = i;
		return;
	}
}

/* Names of the axes in the order that the candidate seems to have. */
static void name_axes(const char *axes, const int *order, int rank, char *text, size_t room)
{
	*text = 0;
	for (int i = 0; i < rank; i++) {
		size_t      n;
		const char *p = vn_axes_word(axes, order[i], &n);
		if (n)
			vn_text_add(text, room, "%s%.*s", i ? " " : "", (int)n, p);
		else
			vn_text_add(text, room, "%saxis %d", i ? ", " : "", order[i]);
	}
}

static void set_arrangement(search *s, const vn_arrangement *a, double nmse)
{
	const char *axes = vn_entry_axes(s->re);
	char        text[240];

	switch (a->kind) {
	case VN_ARRANGED_AXES:
		name_axes(axes, a->order, s->shape->rank, text, sizeof text);
		set_match(s, VN_LAYOUT_MATCH_PERMUTED, nmse,
		          "its numbers agree if its axes are read as '%s' (nmse %.2g; as labelled %.2g)", text, nmse, s->own);
		memcpy(s->best->order, a->order, sizeof a->order);
		break;
	case VN_ARRANGED_COLUMNS:
		vn_text_say_columns((vn_column_order)a->number, axes, s->shape->rank, text, sizeof text);
		set_match(s, VN_LAYOUT_MATCH_COLUMNS, nmse,
		          "its numbers agree if its columns are read as %s (nmse %.2g; as labelled %.2g)%s%s",
		          vn_columns_name((vn_column_order)a->number), nmse, s->own, s->wrong ? "" : "; ",
		          s->wrong ? "" : text);
		s->best->order[0] = a->number;
		break;
	case VN_ARRANGED_MOVED:
		set_match(s, VN_LAYOUT_MATCH_SHIFTED, nmse,
		          "its row t is row t %c %d of the reference (nmse %.2g over the shared rows, %.2g unshifted)",
		          a->number > 0 ? '+' : '-', abs(a->number), nmse, s->own);
		break;
	case VN_ARRANGED_REVERSED:
		set_match(s, VN_LAYOUT_MATCH_REVERSED, nmse,
		          "its rows are those of the reference in reverse order (nmse %.2g, %.2g as recorded)", nmse, s->own);
		break;
	}
}

static void try_arrangements(search *s)
{
	vn_arrangement list[VN_ARRANGEMENTS];
	const int      token = vn_token_axis(vn_entry_axes(s->re), s->shape->rank);
	const int      n = vn_arrangements(VN_ARRANGED_RECORDING, s->shape, token, list);
	double         nmse;

	for (int i = 0; i < n; i++) {
		const layout_map m = map_back(s, &list[i]);
		if (is_better(s, &m, s->ref, &nmse))
			set_arrangement(s, &list[i], nmse);
	}
}

/* Numbers sampled at the same places in every head of both sides: (heads, count) each.
 * The caller frees them. */
static double *draw_heads(const search *s, int axis, int64_t *count)
{
	int64_t inner = 1;
	for (int i = axis + 1; i < s->shape->rank; i++)
		inner *= s->shape->dim[i];
	const int64_t heads = s->shape->dim[axis], all = s->n / heads, step = all > VN_SAMPLED ? all / VN_SAMPLED : 1;
	*count = (all + step - 1) / step;
	double *x = vn_alloc((size_t)(2 * heads * *count), sizeof *x);
	for (int side = 0; side < 2; side++)
		for (int64_t h = 0; h < heads; h++)
			for (int64_t k = 0; k < *count; k++) {
				const int64_t i = k * step, base = i / inner * heads * inner + i % inner;
				x[(side * heads + h) * *count + k] = vn_numbers_value(side ? s->cand : s->ref, base + h * inner);
			}
	return x;
}

static double head_nmse(const double *ref, const double *cand, int64_t count)
{
	vn_sampled x = { 0 };
	for (int64_t k = 0; k < count; k++)
		vn_sampled_add(&x, ref[k], cand[k]);
	return vn_sampled_nmse(&x);
}

static void say_order(const int *order, int n, char *text, size_t room)
{
	*text = 0;
	for (int i = 0; i < n && i < 16; i++)
		vn_text_add(text, room, "%s%d", i ? " " : "", order[i]);
	if (n > 16)
		vn_text_add(text, room, " ...");
}

static void try_heads(search *s)
{
	const int axis = vn_head_axis(VN_ARRANGED_RECORDING, vn_entry_axes(s->re), s->shape);
	int       order[VN_HEADS_ORDERED] = { 0 };
	char      text[80];
	double    worst = 0;
	bool      moved = false;
	int64_t   count;

	if (axis < 0)
		return;
	const int n = (int)s->shape->dim[axis];
	double   *x = draw_heads(s, axis, &count);
	vn_nearest_rows(x + n * count, x, 1, n, count, order);
	for (int h = 0; h < n; h++) {
		worst = fmax(worst, head_nmse(x + order[h] * count, x + (n + h) * count, count));
		moved = moved || order[h] != h;
	}
	free(x);
	if (!moved || worst > limit_of_match(s))
		return;
	say_order(order, n, text, sizeof text);
	set_match(s, VN_LAYOUT_MATCH_HEADS, worst,
	          "its heads are the reference's heads %s (nmse of the worst head %.2g, %.2g as recorded)", text, worst,
	          s->own);
	memcpy(s->best->order, order, sizeof order);
}

vn_status vn_layout_match_find(const vn_opened *o, const vn_checkpoint *p, vn_layout_match *r, vn_error *err)
{
	search s = {
		.o = o, .re = vn_recording_entry(o->ref, p->ref), .ce = vn_recording_entry(o->cand, p->cand), .best = r
	};
	vn_status st;

	*r = (vn_layout_match) { .entry = -1 };
	s.n = p->m.n;
	s.wrong = p->origin && p->replayed && (p->replay.columns == VN_COLUMNS_SAME || p->replay.wrong_in_order);
	s.own = p->m.value[VN_M_NMSE];
	s.limit = fmin(LIKELY_NMSE, s.own / BETTER);
	if (s.n < VN_SAMPLED_FEWEST || p->m.value[VN_M_NONFINITE] > 0 || !(s.own > 0))
		return VN_OK;
	s.sampled = vn_sampled_positions(s.n, s.at);
	s.shape = &s.re->shape;
	s.ref = vn_alloc_check(vn_numbers_open(o->ref, p->ref, err));
	s.cand = vn_alloc_check(vn_numbers_open(o->cand, p->cand, err));
	try_arrangements(&s);
	try_heads(&s);
	if (!(st = try_others(&s, err)))
		st = s.ref->st ? s.ref->st : s.cand->st;
	try_own(&s);
	vn_numbers_close(s.cand);
	vn_numbers_close(s.ref);
	return st;
}
