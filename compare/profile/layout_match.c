/* layout_match.c: see layout_match.h. */
#include "compare/profile/sampling.h"
#include "compare/profile/layout_match.h"

#include "capture/recording/numbers.h"
#include "compare/text/columns.h"
#include "compare/comparison/checkpoint.h"

#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT_MAX = 2 };

#define LIKELY_NMSE 0.05 /* nmse of a layout match */
#define BETTER      16.0 /* how many times better than in the candidate's own place */

/* One pair of tensors, and the search for the candidate's elements in the reference. */
typedef struct search {
	const vn_comparison *c;
	const vn_entry      *re, *ce;
	vn_numbers          *ref, *cand;
	const vn_shape      *shape;
	int64_t              n;
	double               own, limit;     /* own: nmse in its own place; limit: nmse a match must reach */
	int64_t              at[VN_SAMPLED]; /* flat positions */
	int                  sampled;
	vn_layout_match     *best;
} search;

/* ---- a map from the candidate's positions to the reference's --------------------------------- */

typedef struct map {
	vn_layout_kind kind;
	const search  *s;
	vn_permutation axes; /* PERMUTED: from the candidate's axes to the reference's */
	int            axis; /* SHIFTED, REVERSED, COLUMNS: the axis */
	vn_arrange     along;
} map;

/* Offset in the candidate of the reference's element `at`; -1: none. */
static int64_t map_index(const map *m, int64_t at)
{
	const vn_shape *shape = m->s->shape;
	int64_t         inner = 1;
	if (m->kind == VN_LAYOUT_MATCH_OTHER)
		return at;
	if (m->kind == VN_LAYOUT_MATCH_PERMUTED)
		return vn_permuted(&m->axes, at);
	for (int i = m->axis + 1; i < shape->rank; i++)
		inner *= shape->dim[i];
	const int64_t n = shape->dim[m->axis], i = at / inner % n, to = vn_arranged(&m->along, i, n);
	return to < 0 ? -1 : at + (to - i) * inner;
}

static double drawn_nmse(const map *m, vn_numbers *ref)
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
static double whole_nmse(const map *m, vn_numbers *ref)
{
	const int64_t step = m->kind == VN_LAYOUT_MATCH_PERMUTED && !vn_numbers_are_few(m->s->cand)
	                         ? m->s->n / VN_SAMPLED_MOST | 1
	                         : 1;
	vn_sampled    x = { 0 };
	for (int64_t i = 0; i < m->s->n; i += step) {
		const int64_t to = map_index(m, i);
		if (to >= 0)
			vn_sampled_add(&x, vn_numbers_value(ref, i), vn_numbers_value(m->s->cand, to));
	}
	return vn_sampled_nmse(&x);
}

/* Whether a match is good enough to report and better than the best so far. */
static bool is_better(const search *s, const map *m, vn_numbers *ref, double *nmse)
{
	const double limit = fmin(s->limit, s->best->kind == VN_LAYOUT_MATCH_NOTHING ? s->limit : s->best->nmse / 2);
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

static vn_status try_others(search *s, vn_error *err)
{
	enum { LOOKED_AT = 64 << 20 }; /* bytes of a mapped file; each read loads its neighbours too */
	const map m = { .kind = VN_LAYOUT_MATCH_OTHER, .s = s };
	int64_t   looked = 0;
	char      text[VN_LABEL];
	vn_status st = VN_OK;
	for (int i = 0; !st && i < vn_recording_count(s->c->opened.ref); i++) {
		const vn_entry *e = vn_recording_entry(s->c->opened.ref, i);
		double          nmse;
		if (e == s->re || s->re->same_as == i || e->same_as >= 0 || vn_shape_count(&e->shape) != s->n)
			continue;
		vn_numbers *t = vn_numbers_open(s->c->opened.ref, i, err);
		if (!t)
			return VN_ERR_NOMEM;
		if (is_better(s, &m, t, &nmse)) {
			write_label(e, text);
			set_match(s, VN_LAYOUT_MATCH_OTHER, nmse,
			          "its numbers are those of %s in the reference (nmse %.2g against %.2g)", text, nmse, s->own);
			s->best->entry = i;
		}
		st = t->st;
		vn_numbers_close(t);
		if ((looked += s->n * (int64_t)vn_dtype_size(e->dtype)) >= LOOKED_AT) {
			vn_recording_forget(s->c->opened.ref);
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
	for (int i = 0; *vn_entry_digest(s->ce).hex && i < vn_recording_count(s->c->opened.cand); i++) {
		const vn_entry *e = vn_recording_entry(s->c->opened.cand, i);
		const int       there = vn_recording_find(s->c->opened.ref, e->step, e->name);
		if (e == s->ce || e->same_as >= 0 || !same_digest(e, s->ce) || there < 0 ||
		    same_digest(vn_recording_entry(s->c->opened.ref, there), s->re))
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
	size_t used = 0;
	*text = 0;
	for (int i = 0; i < rank && used < room; i++) {
		size_t      n;
		const char *p = vn_axes_word(axes, order[i], &n);
		used += n ? (size_t)snprintf(text + used, room - used, "%s%.*s", i ? " " : "", (int)n, p)
		          : (size_t)snprintf(text + used, room - used, "%saxis %d", i ? ", " : "", order[i]);
	}
}

static void try_permuted(search *s)
{
	enum { AXES_MOST = 4 }; /* axes at most */
	static const int orders[][AXES_MOST] = {
		{ 1, 0, 2, 3 }, { 0, 2, 1, 3 }, { 2, 1, 0, 3 }, { 1, 2, 0, 3 },
		{ 2, 0, 1, 3 }, { 0, 1, 3, 2 }, { 1, 0, 3, 2 }, { 0, 3, 2, 1 },
	};
	const vn_shape *shape = s->shape;
	char            names[96];
	for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
		map    m = { .kind = VN_LAYOUT_MATCH_PERMUTED, .s = s };
		double nmse;
		bool   fits = shape->rank > 1 && shape->rank <= AXES_MOST, moves = false;
		for (int i = 0; i < AXES_MOST; i++)
			fits = fits && (i < shape->rank || orders[k][i] == i);
		for (int i = 0; fits && i < shape->rank; i++)
			moves = moves || (orders[k][i] != i && shape->dim[i] > 1);
		if (!fits || !moves)
			continue;
		m.axes = vn_permutation_back(shape, orders[k]);
		if (!is_better(s, &m, s->ref, &nmse))
			continue;
		name_axes(vn_entry_axes(s->re), orders[k], shape->rank, names, sizeof names);
		set_match(s, VN_LAYOUT_MATCH_PERMUTED, nmse,
		          "it agrees if its axes are read as '%s' (nmse %.2g, %.2g as labelled)", names, nmse, s->own);
		memcpy(s->best->order, orders[k], sizeof orders[k]);
	}
}

/* Tries the halves of a rotated pair side by side or half a head apart, and gate and up interleaved
 * or one after the other. */
static void try_regrouped(search *s)
{
	const int64_t width = s->shape->rank ? s->shape->dim[s->shape->rank - 1] : 0;
	char          text[240];
	double        nmse;
	for (int order = VN_COLUMNS_PAIRS; width >= 4 && width % 2 == 0 && order < VN_N_COLUMNS; order++) {
		const map m = { .kind = VN_LAYOUT_MATCH_COLUMNS,
			            .s = s,
			            .axis = s->shape->rank - 1,
			            .along = vn_columns_arranged((vn_column_order)order, width) };
		if (!is_better(s, &m, s->ref, &nmse))
			continue;
		vn_say_columns((vn_column_order)order, vn_entry_axes(s->re), s->shape->rank, text, sizeof text);
		set_match(s, VN_LAYOUT_MATCH_COLUMNS, nmse,
		          "it agrees if its columns are read as %s (nmse %.2g, %.2g as labelled); %s",
		          vn_columns_name((vn_column_order)order), nmse, s->own, text);
		s->best->order[0] = order;
	}
}

static void try_shifted(search *s)
{
	const int axis = vn_token_axis(vn_entry_axes(s->re), s->shape->rank);
	double    nmse;
	if (axis < 0)
		return;
	for (int shift = -SHIFT_MAX; shift <= SHIFT_MAX; shift++) {
		const map m = {
			.kind = VN_LAYOUT_MATCH_SHIFTED, .s = s, .axis = axis, .along = { VN_ARRANGE_MOVED, .a = -shift }
		};
		if (!shift || !is_better(s, &m, s->ref, &nmse))
			continue;
		set_match(s, VN_LAYOUT_MATCH_SHIFTED, nmse,
		          "its row t is row t %c %d of the reference (nmse %.2g over the shared rows, %.2g unshifted)",
		          shift > 0 ? '+' : '-', abs(shift), nmse, s->own);
		s->best->shift = shift;
	}
	const map m = {
		.kind = VN_LAYOUT_MATCH_REVERSED, .s = s, .axis = axis, .along = { VN_ARRANGE_REVERSED, .each = 1 }
	};
	if (is_better(s, &m, s->ref, &nmse))
		set_match(s, VN_LAYOUT_MATCH_REVERSED, nmse,
		          "its rows are those of the reference in reverse order (nmse %.2g, %.2g as recorded)", nmse, s->own);
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
	double *x = malloc((size_t)(2 * heads * *count) * sizeof *x);
	for (int side = 0; x && side < 2; side++)
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
	size_t used = 0;
	*text = 0;
	for (int i = 0; i < n && i < 16 && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%d", i ? " " : "", order[i]);
	if (n > 16 && used < room)
		snprintf(text + used, room - used, " ...");
}

static vn_status try_heads(search *s, vn_error *err)
{
	static const char *const names[] = { "head", "kv_head", "lin_head", "lin_key" };
	const vn_shape          *shape = s->shape;
	char                     text[80];
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		const int axis = vn_axes_find(vn_entry_axes(s->re), names[k]);
		if (axis < 0 || axis >= shape->rank || shape->dim[axis] < 2 || shape->dim[axis] > VN_LAYOUT_MATCH_HEADS_MAX)
			continue;
		const int n = (int)shape->dim[axis];
		int       order[VN_LAYOUT_MATCH_HEADS_MAX] = { 0 };
		double    worst = 0;
		bool      moved = false;
		int64_t   count;
		double   *x = draw_heads(s, axis, &count);
		if (!x)
			return vn_fail(err, VN_ERR_NOMEM, "no memory for %d heads", n);
		for (int h = 0; h < n; h++) {
			double best = INFINITY;
			for (int g = 0; g < n; g++) {
				const double e = head_nmse(x + g * count, x + (n + h) * count, count);
				if (e < best) {
					best = e;
					order[h] = g;
				}
			}
			worst = fmax(worst, best);
			moved = moved || order[h] != h;
		}
		free(x);
		const double limit = fmin(s->limit, s->best->kind == VN_LAYOUT_MATCH_NOTHING ? s->limit : s->best->nmse / 2);
		if (!moved || worst > limit)
			continue;
		say_order(order, n, text, sizeof text);
		set_match(s, VN_LAYOUT_MATCH_HEADS, worst,
		          "its heads are the reference's heads %s (nmse of the worst head %.2g, %.2g as recorded)", text, worst,
		          s->own);
		memcpy(s->best->order, order, sizeof order);
	}
	return VN_OK;
}

vn_status vn_match_layout(const vn_comparison *c, int point, vn_layout_match *r, vn_error *err)
{
	const vn_checkpoint *p = &c->result.point[point];
	search               s = { .c = c,
		                       .re = vn_recording_entry(c->opened.ref, p->ref),
		                       .ce = vn_recording_entry(c->opened.cand, p->cand),
		                       .best = r };
	vn_status            st;

	*r = (vn_layout_match) { .entry = -1 };
	s.n = p->m.n;
	s.own = p->m.value[VN_M_NMSE];
	s.limit = fmin(LIKELY_NMSE, s.own / BETTER);
	if (s.n < VN_SAMPLED_FEWEST || p->m.value[VN_M_NONFINITE] > 0 || !(s.own > 0))
		return VN_OK;
	s.sampled = vn_sampled_positions(s.n, s.at);
	s.shape = &s.re->shape;
	s.ref = vn_numbers_open(c->opened.ref, p->ref, err);
	s.cand = s.ref ? vn_numbers_open(c->opened.cand, p->cand, err) : NULL;
	st = s.cand ? VN_OK : VN_ERR_NOMEM;
	if (!st) {
		try_permuted(&s);
		try_regrouped(&s);
		try_shifted(&s);
		if (!(st = try_heads(&s, err)) && !(st = try_others(&s, err)))
			st = s.ref->st ? s.ref->st : s.cand->st;
		try_own(&s);
	}
	vn_numbers_close(s.cand);
	vn_numbers_close(s.ref);
	return st;
}
