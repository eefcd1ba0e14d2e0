/* layout.c: see layout.h. */
#include "compare/profile/layout.h"

#include "compare/profile/sampling.h"
#include "libref/base/arrange.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	vn_text_add(text, VN_LAYOUT_TEXT, "%s%s", *text ? " " : "", to - from > 1 ? "(" : "");
	for (int i = from; i < to; i++)
		vn_text_add(text, VN_LAYOUT_TEXT, "%s%s", i > from ? " " : "", l->a[i].word);
	vn_text_add(text, VN_LAYOUT_TEXT, "%s", to - from > 1 ? ")" : "");
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
static void say_axes(layout_search *s, const vn_entry *ref, const vn_shape *cand, char text[VN_LAYOUT_TEXT])
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
static void say_to_axes(const layout_search *s, const vn_entry *ref, char text[VN_LAYOUT_TEXT])
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

bool vn_layout_find(vn_numbers *ref, vn_numbers *cand, bool split, double limit, vn_layout *l)
{
	const vn_entry *re = vn_recording_entry(ref->recording, ref->entry),
				   *ce = vn_recording_entry(cand->recording, cand->entry);
	const atom_list own = atoms_of(re, 1);
	layout_search   s = { .ref = ref, .cand = cand, .n = vn_numbers_count(ref), .limit = limit, .best = limit };

	*l = (vn_layout) { .nmse = INFINITY };
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
