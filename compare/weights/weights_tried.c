/* weights_tried.c: finds certain explanations of a weight that differs: from the tables alone, from
 * digests of other weights, and from digests of the reference's numbers after a change. */
#include "compare/weights/weights_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool vn_weight_measures(vn_weight_difference *d, vn_weight_measure what, double x)
{
	d->measured = what;
	d->measure = x;
	return true;
}

/* ---- the tables ------------------------------------------------------------------------ */

static bool is_constant(const vn_stats *s)
{
	return s->n > 1 && s->nan + s->inf == 0 && s->min == s->max;
}

/* Reports non-finite or constant numbers that only side k has. */
static bool judge_statistics(const vn_weight_trial *t, vn_weight_difference *d, int k)
{
	const vn_stats *s = &t->row[k]->stats, *other = &t->row[!k]->stats;

	if (s->inf && s->nan == 0 && other->inf == 0 && t->row[k]->dtype == VN_F16 && other->absmax > 65504.0)
		return vn_weight_is(d, k, VN_PROOF_TABLE, VN_FOUND(OVERFLOWED)) &&
		       vn_weight_measures(d, VN_WEIGHT_PLACES, (double)s->inf);
	if (s->nan + s->inf > other->nan + other->inf)
		return vn_weight_is(d, k, VN_PROOF_TABLE, VN_FOUND(NOT_FINITE)) &&
		       vn_weight_measures(d, VN_WEIGHT_PLACES, (double)(s->nan + s->inf));
	if (!is_constant(s) || is_constant(other))
		return false;
	if (s->max == 0.0)
		return t->name.bias ? vn_weight_is(d, k, VN_PROOF_TABLE, VN_FOUND(ZERO_BIAS))
		                    : vn_weight_is(d, k, VN_PROOF_TABLE, VN_FOUND(ZEROS));
	return t->name.bias ? vn_weight_is(d, k, VN_PROOF_TABLE, VN_FOUND(CONSTANT_BIAS), s->max)
	                    : vn_weight_is(d, k, VN_PROOF_TABLE, VN_FOUND(CONSTANT), s->max);
}

/* Whether the shapes are equal apart from dimensions of 1. */
static bool same_but_ones(const vn_shape *a, const vn_shape *b)
{
	int64_t x[VN_MAX_RANK], y[VN_MAX_RANK];
	int     n = 0, m = 0;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] != 1)
			x[n++] = a->dim[i];
	for (int i = 0; i < b->rank; i++)
		if (b->dim[i] != 1)
			y[m++] = b->dim[i];
	return n == m && memcmp(x, y, (size_t)n * sizeof *x) == 0;
}

static bool other_size(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_shape *a = &t->row[0]->shape, *b = &t->row[1]->shape;
	const bool      table = t->name.part == VN_POINT_EMBED || t->name.part == VN_POINT_LOGITS;

	if (vn_shape_count(a) == vn_shape_count(b))
		return false;
	if (table && a->rank == 2 && b->rank == 2 && a->dim[1] == b->dim[1])
		return b->dim[0] > a->dim[0]
		           ? vn_weight_is(d, 1, VN_PROOF_TABLE, VN_FOUND(MORE_ROWS), (long long)(b->dim[0] - a->dim[0]))
		           : vn_weight_is(d, 1, VN_PROOF_TABLE, VN_FOUND(FEWER_ROWS), (long long)(a->dim[0] - b->dim[0]));
	return vn_weight_is(d, 1, VN_PROOF_TABLE, VN_FOUND(SIZE));
}

bool vn_weight_by_table(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_row *a = t->row[0], *b = t->row[1];

	if (!a)
		return vn_weight_is(d, 1, VN_PROOF_TABLE, VN_FOUND(EXTRA));
	if (!b)
		return t->name.bias ? vn_weight_is(d, 1, VN_PROOF_TABLE, VN_FOUND(NO_BIAS))
		                    : vn_weight_is(d, 1, VN_PROOF_TABLE, VN_FOUND(MISSING));
	const bool same = *a->digest.hex && strcmp(a->digest.hex, b->digest.hex) == 0;
	if (same && a->dtype != b->dtype && vn_shape_equal(&a->shape, &b->shape))
		return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(RELABELLED), vn_dtype_name(a->dtype),
		                    vn_dtype_name(b->dtype));
	if (same && a->dtype == b->dtype && same_but_ones(&a->shape, &b->shape))
		return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(SHAPE));
	if (same && a->dtype == b->dtype)
		return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(OTHER_SHAPE));
	return other_size(t, d) || judge_statistics(t, d, 1) || judge_statistics(t, d, 0);
}

/* ---- digests of others ------------------------------------------------------------------ */

static bool equal_bytes(const vn_weight_row *x, const vn_weight_row *y)
{
	return x->dtype == y->dtype && *x->digest.hex && strcmp(x->digest.hex, y->digest.hex) == 0 &&
	       vn_shape_count(&x->shape) == vn_shape_count(&y->shape);
}

/* How similar another weight's place in the model is to this one's: the higher, the likelier a
 * mix-up. 0: unrelated. */
static int name_nearness(const vn_weight_name *own, const vn_weight_name *other)
{
	const bool neighbour = other->layer - own->layer == 1 || own->layer - other->layer == 1;
	if (strcmp(own->tail, other->tail) == 0)
		return neighbour ? 5 : other->layer == 0 ? 4 : 3;
	if (own->layer != other->layer)
		return 0;
	return vn_weight_exchange(own, other) ? 6 : 2;
}

static bool of_layer(vn_weight_difference *d, const vn_weight_name *own, const vn_weight_name *other)
{
	if (other->layer == own->layer - 1)
		return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(PREVIOUS_LAYER));
	if (other->layer == own->layer + 1)
		return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(NEXT_LAYER));
	return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(OTHER_LAYER), other->layer);
}

bool vn_weight_by_digest(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_side *ref = t->side[0], *cand = t->side[1];
	const vn_weight_row  *found = NULL;
	vn_weight_name        other = { 0 };
	int                   best = -1;

	for (int i = 0; i < ref->n; i++) {
		if (!equal_bytes(&ref->row[i], t->row[1]) || &ref->row[i] == t->row[0])
			continue;
		const vn_weight_name name = vn_weight_name_of(ref, ref->row[i].name);
		const int            near = name_nearness(&t->name, &name);
		if (near > best) {
			best = near;
			found = &ref->row[i];
			other = name;
		}
	}
	if (!found)
		return false;
	if (best >= 3 && best <= 5)
		return of_layer(d, &t->name, &other);
	const vn_mistake     id = vn_weight_exchange(&t->name, &other);
	const vn_weight_row *back = vn_weight_twin(cand->row, cand->n, found->name);
	const bool           both = back && equal_bytes(back, t->row[0]);
	if (both) { /* the sentence is the same for both weights */
		const bool first = strcmp(t->name.tail, other.tail) < 0;
		return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(EXCHANGED), first ? t->name.tail : other.tail,
		                    first ? other.tail : t->name.tail) &&
		       vn_weight_shows(d, id);
	}
	return vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(OTHER_WEIGHT),
	                    other.layer == t->name.layer ? other.tail : found->name) &&
	       vn_weight_shows(d, id);
}

/* ---- digests of the numbers changed ---------------------------------------------------------- */

/* Whether the numbers can be the same in another order: their ends are equal, or equal after
 * rounding to the other's format. */
static bool have_other_orders(const vn_weight_row *a, const vn_weight_row *b)
{
	const vn_weight_change none = { .kind = VN_WEIGHT_CHANGE_ROUNDED, .as = b->dtype };
	if (a->stats.nan != b->stats.nan || a->stats.inf != b->stats.inf || vn_dtype_block(b->dtype) > 1)
		return false;
	return vn_dtype_block(a->dtype) > 1 || (vn_weight_change_number(&none, a->stats.min) == b->stats.min &&
	                                        vn_weight_change_number(&none, a->stats.max) == b->stats.max);
}

/* Padding read as numbers: zeros in between, and the last rows missing. */
static bool is_padded(const vn_weight_row *a, const vn_weight_row *b, int64_t stride)
{
	const vn_stats *x = &a->stats, *y = &b->stats;
	const double    kept = (double)a->shape.dim[1] / (double)stride, ratio = y->rms * y->rms / (x->rms * x->rms);
	return y->min >= fmin(0, x->min) && y->max <= fmax(0, x->max) && ratio > 0.7 * kept && ratio < 1.4 * kept;
}

static bool by_order(const vn_weight_trial *t, int from, const vn_weight_numbers *m, vn_weight_difference *d)
{
	const vn_weight_row *a = t->row[from], *b = t->row[!from];
	vn_weight_order      list[VN_MOST_ORDERS];
	const int            n = vn_weight_orders_of(&t->name, &t->row[0]->shape, &t->row[1]->shape, &t->heads, list);
	const bool           whole = have_other_orders(a, b);

	for (int i = 0; i < n; i++) {
		vn_weight_order o = list[i];
		if (o.rule.rule == VN_ARRANGE_PADDED ? from == 1 || !is_padded(a, b, o.rule.a + o.rule.b) : !whole)
			continue;
		if (from) /* the reverse, applied to the candidate's numbers */
			o.rule = vn_arrange_back(&o.rule);
		if (vn_weight_has_order(t, !from, m, &o, &vn_weight_unchanged, 0))
			return vn_weight_is_said(d, 1, VN_PROOF_DIGEST, list[i].found, list[i].key, list[i].says) &&
			       vn_weight_shows(d, list[i].id);
	}
	return whole && vn_weight_moved(t, from, m, d);
}

static bool by_change(const vn_weight_trial *t, int from, const vn_weight_numbers *m, vn_weight_difference *d)
{
	vn_weight_change list[VN_MOST_CHANGES];
	const int        n = vn_weight_changes_of(&t->name, t->row[from], t->row[!from], &t->heads, list);

	if (!vn_shape_equal(&t->row[0]->shape, &t->row[1]->shape))
		return false;
	for (int i = 0; i < n; i++)
		if (vn_weight_has_order(t, !from, m, &vn_weight_in_place, &list[i], 0))
			return vn_weight_is_said(d, !from, VN_PROOF_DIGEST, list[i].found, list[i].key, list[i].says);
	return false;
}

/* Rows of gate and up, interleaved in one matrix. */
static bool judge_interleaved(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_side *ref = t->side[0];
	const bool            up = t->name.part == VN_POINT_UP_PROJ;
	vn_weight_numbers     m;

	if ((t->name.part != VN_POINT_GATE_PROJ && !up) || !ref->numbers || !t->numbers[0])
		return false;
	const vn_weight_row *row = vn_weight_beside(ref, t->row[0], &t->name, up ? VN_POINT_GATE_PROJ : VN_POINT_UP_PROJ);
	const vn_tensor     *beside = row ? &ref->numbers[row - ref->row] : NULL;
	if (!beside || !beside->data || vn_dtype_block(row->dtype) > 1 || row->dtype != t->row[0]->dtype ||
	    !vn_shape_equal(&row->shape, &t->row[0]->shape))
		return false;
	bool found = false;
	vn_weight_numbers_of(up ? (const vn_tensor *const[]) { beside, t->numbers[0] }
	                        : (const vn_tensor *const[]) { t->numbers[0], beside },
	                     2, &m);
	for (int back = 0; !found && back < 2; back++) {
		vn_weight_order o = { .rule = { VN_ARRANGE_TRANSPOSED, .a = m.rows[0], .b = 2 }, .start = up ? m.rows[0] : 0 };
		if (back)
			o.rule = vn_arrange_back(&o.rule);
		found = vn_weight_has_order(t, 1, &m, &o, &vn_weight_unchanged, m.rows[0]) &&
		        (back ? vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(ROWS))
		              : vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(ROWS_BACK)));
	}
	vn_weight_numbers_free(&m);
	return found;
}

bool vn_weight_by_numbers(const vn_weight_trial *t, vn_weight_difference *d)
{
	bool found = false;

	if (judge_interleaved(t, d) || vn_weight_transposed_together(t, d))
		return true;
	for (int from = 0; !found && from < 2; from++) {
		vn_weight_numbers m;
		if (!t->numbers[from] || !*t->row[!from]->digest.hex)
			continue;
		vn_weight_numbers_of(&t->numbers[from], 1, &m);
		found = by_order(t, from, &m, d) || by_change(t, from, &m, d);
		vn_weight_numbers_free(&m);
	}
	return found;
}
