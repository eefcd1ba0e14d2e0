/* misshapen.c: finds what a tensor holds that cannot be measured.
 *
 * A shape or axes that differ from the reference's are a finding, whatever the numbers are: nothing
 * is reshaped because it would fit. But the numbers may show what the tensor is: the reference's in
 * another order of axes, which a name map can declare, or another checkpoint (captured before
 * o_proj instead of after it).
 */
#include "compare/profile/misshapen.h"
#include "compare/profile/sampling.h"

#include "capture/recording/numbers.h"
#include "capture/view/dims.h"
#include "libref/base/alloc.h"
#include "libref/base/arrange.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the order of axes in which one tensor holds the numbers of another.
 *
 * Two tensors with the same number of elements may hold the same numbers with axes permuted, split,
 * merged or inserted. Shapes may hide this, so each tensor is treated as a list of numbers, and all
 * orders of up to five axes longer than one are tried: the reference's axes, and those with one of
 * them split as the candidate's shape suggests, or in half. 512 numbers select an order; all
 * numbers confirm it (262,144 of tensors over 16 MB).
 *
 * The result is only reported; nothing is rearranged.
 */

#define ORDER_TEXT 96

typedef struct found_order {
	double nmse; /* of the numbers in that order */
	bool   same; /* it is the reference's own order: only the shapes differ */
	/* "head token dim": the reference's axes in the candidate's order */
	char   order[ORDER_TEXT];
	/* the candidate's axes for a name map; "": its shape cannot be expressed in that order */
	char   axes[ORDER_TEXT];
	/* the reference's axes in the same words; "": its own dims string is enough */
	char   to_axes[ORDER_TEXT];
} found_order;

enum {
	PERMUTED = 5,
	MOST = 16,
	ENOUGH_FOR_ORDER = 32 /* ENOUGH_FOR_ORDER: numbers needed to tell one order from another */
};

/* An axis of the reference, or a part of one. */
typedef struct layout_atom {
	char    word[24];
	int64_t size, stride; /* in numbers of the reference */
	int     axis;
} layout_atom;

typedef struct atom_list {
	int         n;
	layout_atom a[MOST];
} atom_list;

typedef struct layout_search {
	vn_numbers *ref, *cand;
	int64_t     n, at[VN_SAMPLED];
	int         sampled;
	double      limit, best; /* nmse */
	atom_list   own;         /* the reference's order, in the atoms of the best match */
	atom_list   found;       /* the order of that match */
} layout_search;

/* ---- one order ------------------------------------------------------------------------------- */

/* Where the numbers of a list in some order are in the reference (vn_strided). */
typedef struct layout_order {
	int     n;
	int64_t size[MOST], stride[MOST];
} layout_order;

static layout_order order_of(const atom_list *l)
{
	layout_order order = { .n = l->n };
	for (int i = 0; i < l->n; i++) {
		order.size[i] = l->a[i].size;
		order.stride[i] = l->a[i].stride;
	}
	return order;
}

/* Adds position `at` of the candidate, and its number in the reference. */
static void add_pair(const layout_search *s, const layout_order *order, int64_t at, vn_sampled *x)
{
	const int64_t from = vn_strided(order->n, order->size, order->stride, at);
	vn_sampled_add(x, vn_numbers_value(s->ref, from), vn_numbers_value(s->cand, at));
}

static bool is_promising(const layout_search *s, const layout_order *order, double limit)
{
	vn_sampled x = { 0 };
	for (int i = 0; i < s->sampled; i++) {
		add_pair(s, order, s->at[i], &x);
		if (x.n == ENOUGH_FOR_ORDER && !(x.dd <= 16 * limit * x.rr))
			return false;
	}
	return vn_sampled_nmse(&x) <= 2 * limit;
}

/* The nmse in that order. Large tensors are sampled with an odd step, because axis lengths
 * are usually even. */
static double measure_order(const layout_search *s, const layout_order *order)
{
	const int64_t step = vn_numbers_are_few(s->cand) && vn_numbers_are_few(s->ref) ? 1 : s->n / VN_SAMPLED_MOST | 1;
	vn_sampled    x = { 0 };
	for (int64_t i = 0; i < s->n; i += step)
		add_pair(s, order, i, &x);
	return vn_sampled_nmse(&x);
}

/* Keeps the first of several equally good orders: where two axes hold the same numbers,
 * their order is arbitrary. */
static void try_order(layout_search *s, const atom_list *own, const atom_list *found)
{
	const layout_order order = order_of(found);
	const double       limit = s->found.n ? s->best / 2 : s->limit;
	if (!is_promising(s, &order, limit))
		return;
	const double nmse = measure_order(s, &order);
	if (!(nmse <= limit))
		return;
	s->best = nmse;
	s->own = *own;
	s->found = *found;
}

/* Tries all orders of these atoms, starting with their own. */
static void try_permutations(layout_search *s, const atom_list *own, atom_list *order, unsigned taken)
{
	if (order->n == own->n) {
		try_order(s, own, order);
		return;
	}
	for (int i = 0; i < own->n; i++) {
		if (taken >> i & 1)
			continue;
		order->a[order->n++] = own->a[i];
		try_permutations(s, own, order, taken | 1u << i);
		order->n--;
	}
}

static void try_all(layout_search *s, const atom_list *own)
{
	atom_list order = { .n = 0 };
	if (own->n <= PERMUTED)
		try_permutations(s, own, &order, 0);
	else
		try_order(s, own, own);
}

/* ---- parts of axes --------------------------------------------------------------------------- */

static bool uses_axis(const atom_list *l, const char *word)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->a[i].word, word) == 0)
			return true;
	return false;
}

/* Splits atom i in two, the outer of length `outer`. A part's name is its length, as name maps
 * accept. */
static bool take_apart(atom_list *l, int i, int64_t outer)
{
	const layout_atom whole = l->a[i];
	const int64_t     inner = whole.size / outer;
	const bool        by_inner = inner == 2 && outer != 2;
	char              number[24], rest[24];
	snprintf(number, sizeof number, "%" PRId64, by_inner ? inner : outer);
	snprintf(rest, sizeof rest, "%s", inner == 2 || outer == 2 ? "freq" : "inner");
	if (l->n == MOST || uses_axis(l, number) || uses_axis(l, rest))
		return false;
	memmove(&l->a[i + 1], &l->a[i], (size_t)(l->n - i) * sizeof *l->a);
	l->n++;
	l->a[i].size = outer;
	l->a[i].stride = whole.stride * inner;
	l->a[i + 1].size = inner;
	memcpy(l->a[i + by_inner].word, number, sizeof number);
	memcpy(l->a[i + !by_inner].word, rest, sizeof rest);
	return true;
}

static void try_apart(layout_search *s, const atom_list *own, int i, int64_t outer)
{
	atom_list parts = *own;
	if (outer > 1 && outer < own->a[i].size && own->a[i].size % outer == 0 && take_apart(&parts, i, outer))
		try_all(s, &parts);
}

static void try_parts(layout_search *s, const atom_list *own, const vn_shape *cand)
{
	for (int i = 0; i < own->n; i++) {
		const int64_t size = own->a[i].size;
		try_apart(s, own, i, 2);
		if (size != 4)
			try_apart(s, own, i, size / 2);
		for (int k = 0; k < cand->rank; k++) {
			const int64_t length = cand->dim[k];
			if (length <= 2 || size % length != 0)
				continue;
			try_apart(s, own, i, length);
			if (size / length != length)
				try_apart(s, own, i, size / length);
		}
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static atom_list atoms_of(const vn_entry *e, int64_t longer_than)
{
	atom_list l = { .n = 0 };
	int64_t   stride = 1;
	for (int i = e->shape.rank - 1; i >= 0; stride *= e->shape.dim[i--]) {
		if (e->shape.dim[i] <= longer_than)
			continue;
		size_t      n;
		const char *word = vn_axes_word(vn_entry_axes(e), i, &n);
		memmove(&l.a[1], &l.a[0], (size_t)l.n++ * sizeof *l.a);
		l.a[0] = (layout_atom) { .size = e->shape.dim[i], .stride = stride, .axis = i };
		if (n && n < sizeof l.a[0].word)
			snprintf(l.a[0].word, sizeof l.a[0].word, "%.*s", (int)n, word);
		else
			snprintf(l.a[0].word, sizeof l.a[0].word, "axis%d", i);
	}
	return l;
}

/* Appends atoms from..to, in brackets when several form one axis. */
static void add_group(char *text, const atom_list *l, int from, int to)
{
	vn_text_add(text, ORDER_TEXT, "%s%s", *text ? " " : "", to - from > 1 ? "(" : "");
	for (int i = from; i < to; i++)
		vn_text_add(text, ORDER_TEXT, "%s%s", i > from ? " " : "", l->a[i].word);
	vn_text_add(text, ORDER_TEXT, "%s", to - from > 1 ? ")" : "");
}

/* Splits the first `outer` of atom i in both lists. */
static bool take_apart_both(layout_search *s, int i, int64_t outer)
{
	int k = 0;
	while (k < s->own.n && strcmp(s->own.a[k].word, s->found.a[i].word) != 0)
		k++;
	return k < s->own.n && take_apart(&s->own, k, outer) && take_apart(&s->found, i, outer);
}

/* Number of atoms from i on that together have that length; 0: none. */
static int axis_of(layout_search *s, int i, int64_t length)
{
	int n = 0;
	for (int64_t product = 1; product < length; n++) {
		const int64_t left = length % product == 0 ? length / product : 0;
		if (i + n >= s->found.n || left == 0)
			return 0;
		const int64_t size = s->found.a[i + n].size;
		if (left % size != 0 && (size % left != 0 || !take_apart_both(s, i + n, left)))
			return 0;
		product *= s->found.a[i + n].size;
	}
	return n;
}

/* Describes the candidate's shape: an axis of length one is an axis of the reference,
 * a batch, or nothing. */
static void say_axes(layout_search *s, const vn_entry *ref, const vn_shape *cand, char text[ORDER_TEXT])
{
	const atom_list all = atoms_of(ref, 0);
	atom_list       ones = { .n = 0 };
	int             at = 0, one = 0, others = 0, units = 0;
	for (int i = 0; i < all.n; i++)
		if (all.a[i].size == 1)
			ones.a[ones.n++] = all.a[i];
	for (int k = 0; k < cand->rank; k++)
		units += cand->dim[k] == 1;
	for (int k = 0; k < cand->rank; k++) {
		if (cand->dim[k] == 1 && one < ones.n && !(k == 0 && units > ones.n)) {
			add_group(text, &ones, one, one + 1);
			one++;
		} else if (cand->dim[k] == 1) {
			atom_list l = { .n = 1 };
			snprintf(l.a[0].word, sizeof l.a[0].word, k ? "unit%.0d" : "batch", others);
			others += k > 0;
			add_group(text, &l, 0, 1);
		} else {
			const int n = axis_of(s, at, cand->dim[k]);
			if (n == 0) {
				*text = '\0';
				return;
			}
			atom_list group = { .n = 0 };
			for (int i = units; at == 0 && i < ones.n; i++) /* the candidate lacks an axis for these */
				group.a[group.n++] = ones.a[i];
			for (int i = 0; i < n; i++)
				group.a[group.n++] = s->found.a[at++];
			add_group(text, &group, 0, group.n);
		}
	}
	if (at < s->found.n)
		*text = '\0';
}

/* The reference's axes, with split ones in brackets; empty when none is split. */
static void say_to_axes(const layout_search *s, const vn_entry *ref, char text[ORDER_TEXT])
{
	const atom_list all = atoms_of(ref, 0);
	bool            parts = false;
	for (int i = 0; i < all.n; i++) {
		int from = 0, to;
		while (from < s->own.n && s->own.a[from].axis != all.a[i].axis)
			from++;
		for (to = from; to < s->own.n && s->own.a[to].axis == all.a[i].axis; to++)
			;
		parts = parts || to - from > 1;
		if (to > from)
			add_group(text, &s->own, from, to);
		else
			add_group(text, &all, i, i + 1);
	}
	if (!parts)
		*text = '\0';
}

/* Searches for the order with the least nmse, at most `limit`. ref, cand: equally many numbers.
 * split: also split axes. Returns false if there is none, or on a read error, which is in ref->st
 * or cand->st. */
static bool find_layout(vn_numbers *ref, vn_numbers *cand, bool split, double limit, found_order *l)
{
	const vn_entry *re = vn_recording_entry(ref->recording, ref->entry),
				   *ce = vn_recording_entry(cand->recording, cand->entry);
	const atom_list own = atoms_of(re, 1);
	layout_search   s = { .ref = ref, .cand = cand, .n = vn_numbers_count(ref), .limit = limit, .best = limit };

	*l = (found_order) { .nmse = INFINITY };
	s.sampled = vn_sampled_positions(s.n, s.at);
	try_all(&s, &own);
	if (split)
		try_parts(&s, &own, &ce->shape);
	if (ref->st || cand->st || s.found.n == 0)
		return false;
	l->nmse = s.best;
	l->same = true;
	for (int i = 0; i < s.found.n; i++)
		l->same = l->same && strcmp(s.found.a[i].word, s.own.a[i].word) == 0;
	for (int i = 0; i < s.found.n; i++)
		add_group(l->order, &s.found, i, i + 1);
	if (!*vn_entry_axes(re))
		return true; /* a name map cannot express it */
	say_axes(&s, re, &ce->shape, l->axes);
	if (*l->axes)
		say_to_axes(&s, re, l->to_axes);
	return true;
}

/* Bounds, because a comparison should read its files once: misshapen tensors examined, tensors
 * compared with other checkpoints, and numbers read for all of them. */
enum { MOST_EXAMINED = 256, MOST_MATCHED = 32, MOST_NUMBERS = 1 << 26, FEWEST = 16 };

/* The nmse below which two tensors count as alike when no limit on nmse applies. */
#define SHAPE_NMSE 0.01

static double limit_of(const vn_opened *o, const char *name)
{
	vn_limit_set set;
	if (o->request.options->bitwise)
		return 0;
	vn_limits_for(o->request.limits, name, &set);
	for (int f = 0; f < VN_N_FORMS; f++)
		if (f != VN_OVER_FLOOR && set.limit[f][VN_M_NMSE].rule && isfinite(set.limit[f][VN_M_NMSE].value))
			return set.limit[f][VN_M_NMSE].value;
	return SHAPE_NMSE;
}

/* The content of the candidate's tensor, and the checkpoint that it was recognised as. */
typedef struct recognised_tensor {
	found_order how;
	int         entry; /* of the reference; -1: none */
} recognised_tensor;

/* limit: below that of the entry's name. split: axes may be parts of its axes. */
static vn_status hold_against(const vn_opened *o, int entry, vn_numbers *cand, bool split, recognised_tensor *f,
                              vn_error *err)
{
	const double limit = limit_of(o, vn_recording_entry(o->ref, entry)->name);
	found_order  l;
	vn_numbers  *ref = vn_alloc_check(vn_numbers_open(o->ref, entry, err));
	if (find_layout(ref, cand, split, f->entry >= 0 ? fmin(limit, f->how.nmse / 16) : limit, &l))
		*f = (recognised_tensor) { l, entry };
	const vn_status st = ref->st ? ref->st : cand->st;
	vn_numbers_close(ref);
	return st;
}

/* Looks for another checkpoint that matches far better than its own: neighbours in the residual
 * stream are similar anyway. */
static vn_status hold_against_others(const vn_opened *o, const vn_checkpoint *p, vn_numbers *cand, recognised_tensor *f,
                                     vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < vn_recording_count(o->ref); i++) {
		const vn_entry *e = vn_recording_entry(o->ref, i);
		if (i == p->ref || e->step != p->step || e->same_as >= 0 || vn_shape_count(&e->shape) != vn_numbers_count(cand))
			continue;
		st = hold_against(o, i, cand, false, f, err);
	}
	return st;
}

/* Writes the name map or option that would make the two match. */
static void say_map(const found_order *l, char *text, size_t room)
{
	if (!*l->axes)
		snprintf(text, room, "; its shape was recorded wrongly");
	else if (*l->to_axes)
		snprintf(text, room, ": declare this order in a name map with axes: \"%s\", to_axes: \"%s\"", l->axes,
		         l->to_axes);
	else
		snprintf(text, room, ": declare this order in a name map with axes: \"%s\"", l->axes);
}

static void describe_contents(const vn_opened *o, vn_checkpoint *p, const recognised_tensor *f)
{
	const found_order *l = &f->how;
	char               map[256] = "", text[512];
	if (f->entry != p->ref) {
		if (!l->same)
			snprintf(map, sizeof map, ", in the order '%s'", l->order);
		snprintf(text, sizeof text, "its numbers are those of %s in the reference%s (nmse %.2g)",
		         vn_recording_entry(o->ref, f->entry)->name, map, l->nmse);
	} else {
		say_map(l, map, sizeof map);
		snprintf(text, sizeof text, "it holds the reference's numbers in the %sorder '%s' (nmse %.2g)%s",
		         l->same ? "same " : "", l->order, l->nmse, map);
	}
	free(p->contents);
	p->contents = strdup(vn_text_clean(text, sizeof text)); /* names and axes are untrusted text */
}

static vn_status look_at(const vn_opened *o, vn_checkpoint *p, bool others, int64_t *numbers, vn_error *err)
{
	const vn_entry   *r = vn_recording_entry(o->ref, p->ref), *d = vn_recording_entry(o->cand, p->cand);
	const int64_t     n = vn_shape_count(&d->shape);
	recognised_tensor f = { .entry = -1 };
	vn_status         st = VN_OK;
	if (n < FEWEST || *numbers + n > MOST_NUMBERS)
		return VN_OK;
	*numbers += n;
	vn_numbers *cand = vn_alloc_check(vn_numbers_open(o->cand, p->cand, err));
	if (vn_shape_count(&r->shape) == n)
		st = hold_against(o, p->ref, cand, true, &f, err);
	if (!st && others)
		st = hold_against_others(o, p, cand, &f, err);
	if (!st && f.entry >= 0)
		describe_contents(o, p, &f);
	vn_numbers_close(cand);
	return st;
}

/* Nothing can be recognised in other rows or steps, in integers, or where the reference
 * has no valid axes. */
static bool may_be_examined(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_entry *e = vn_recording_entry(o->ref, p->ref), *f = vn_recording_entry(o->cand, p->cand);
	const vn_step  *r = vn_recording_step(o->ref, p->step), *d = vn_recording_step(o->cand, p->step);
	const char     *axes = vn_entry_axes(e), *why;
	vn_dims         dims;
	return (!*axes || (vn_dims_parse(axes, &dims, &why) && dims.n == e->shape.rank)) && e->dtype != VN_I32 &&
	       f->dtype != VN_I32 && r && d && r->position == d->position && r->tokens == d->tokens &&
	       r->first_row == d->first_row && r->rows == d->rows;
}

vn_status vn_tell_misshapen(const vn_opened *o, vn_checkpoints *all, vn_error *err)
{
	int64_t numbers = 0;
	int     examined = 0;
	for (int i = 0; i < all->n && examined < MOST_EXAMINED; i++) {
		vn_checkpoint *p = &all->of[i];
		vn_error       why;
		if (p->status != VN_MISSHAPEN || p->ref < 0 || p->cand < 0 || !may_be_examined(o, p))
			continue;
		const vn_status st = look_at(o, p, examined++ < MOST_MATCHED, &numbers, &why);
		if (vn_status_ends_job(st)) {
			*err = why;
			return st;
		}
	}
	if (examined) {
		vn_recording_forget(o->ref); /* the pages examined would accumulate */
		vn_recording_forget(o->cand);
	}
	return VN_OK;
}
