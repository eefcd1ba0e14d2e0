/* weights_likely.c: explains a weight that differs if no digest decides: by both sides' numbers,
 * else by statistics, whose findings are only likely. */
#include "compare/weights/weights_internal.h"

#include "compare/weights/weights.h"

#include "libref/base/text.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Tolerance for doubles summed in another order. */
static const double SUMS = 1e-10;
/* Numbers needed for statistics to identify a distribution, and for the rms to
 * identify a rounding. */
enum { ENOUGH_FOR_FIT = 256, MANY = 1024 };

static bool same_in_any_order(const vn_weight_row *a, const vn_weight_row *b)
{
	const vn_stats *x = &a->stats, *y = &b->stats;
	return x->nan == y->nan && x->inf == y->inf && x->min == y->min && x->max == y->max && x->min < x->max &&
	       fabs(x->rms - y->rms) <= SUMS * x->rms && fabs(x->mean - y->mean) <= SUMS * x->rms;
}

/* An ulp of 1 in the coarser of two formats. */
static double unit_of(const vn_weight_row *a, const vn_weight_row *b)
{
	const int x = vn_dtype_digits(a->dtype), y = vn_dtype_digits(b->dtype);
	return ldexp(1.0, -(x < y ? x : y));
}

/* ---- the same numbers -------------------------------------------------------------- */

/* From F32 or F64 every narrower format is one rounding away. */
static int finer_side(const vn_weight_trial *t)
{
	for (int k = 0; k < 2; k++)
		if ((t->row[k]->dtype == VN_F32 || t->row[k]->dtype == VN_F64) &&
		    vn_dtype_digits(t->row[!k]->dtype) < vn_dtype_digits(t->row[k]->dtype))
			return k;
	return -1;
}

/* Truncation moves every number toward zero, by a third of an ulp on average. Rounding moves the
 * rms by at most that over the root of the number count. */
static bool was_cut(const vn_weight_row *a, const vn_weight_row *b, vn_dtype as)
{
	const vn_weight_change truncated = { .kind = VN_WEIGHT_CHANGE_TRUNCATED, .as = as },
						   rounded = { .kind = VN_WEIGHT_CHANGE_ROUNDED, .as = as };
	const vn_stats *x = &a->stats, *y = &b->stats;
	const double    unit = ldexp(1.0, -vn_dtype_digits(as)), shrunk = (x->rms - y->rms) / x->rms;
	const bool      ends = vn_weight_change_number(&rounded, x->min) != y->min ||
	                  vn_weight_change_number(&rounded, x->max) != y->max;

	return vn_weight_change_number(&truncated, x->min) == y->min &&
	       vn_weight_change_number(&truncated, x->max) == y->max && (ends || x->n >= MANY) && shrunk > 0.1 * unit &&
	       shrunk < 0.7 * unit;
}

static bool is_near(double x, double y, double room)
{
	return fabs(x - y) <= room;
}

/* Undoing the 1 + w or -exp(A_log) of a GGUF converter leaves one rounding of that result
 * (specs/models.md, 4.6). Under a mere reordering the statistics agree to the last digits. */
static bool is_undone(const vn_weight_trial *t)
{
	const vn_weight_row *a = t->row[0], *b = t->row[1];
	const vn_stats      *x = &a->stats, *y = &b->stats;
	const double room = t->name.change == VN_GGUF_DECAY ? 5e-7 : vn_weight_part_is_norm(t->name.part) ? 6.1e-8 : 0.0;

	if (t->side[0]->gguf == t->side[1]->gguf || a->dtype != VN_F32 || b->dtype != VN_F32 || room == 0.0 ||
	    x->nan + x->inf + y->nan + y->inf || !vn_shape_equal(&a->shape, &b->shape))
		return false;
	if (t->numbers[0] && t->numbers[1])
		return vn_weight_fit_of(t->numbers[0], t->numbers[1]).largest <= room;
	return !same_in_any_order(a, b) && is_near(x->min, y->min, room) && is_near(x->max, y->max, room) &&
	       is_near(x->mean, y->mean, room) && is_near(x->rms, y->rms, room);
}

/* Do these numbers, in the format of side k, have its digest? */
static bool holds_numbers(const vn_weight_trial *t, int k, const vn_tensor *numbers)
{
	vn_weight_numbers m;

	vn_weight_numbers_of(&numbers, 1, &m);
	const vn_digest x = vn_weight_numbers_digest(&m, &vn_weight_in_place, &vn_weight_unchanged, t->row[k]->dtype, 0,
	                                             t->numbers[k]);
	vn_weight_numbers_free(&m);
	return strcmp(x.hex, t->row[k]->digest.hex) == 0;
}

/* Does one side hold the numbers of the other's blocks? */
static bool is_dequantised(const vn_weight_trial *t)
{
	const int k = vn_dtype_block(t->row[0]->dtype) > 1 ? 0 : 1;
	return vn_dtype_block(t->row[k]->dtype) > 1 && vn_dtype_block(t->row[!k]->dtype) == 1 && t->numbers[k] &&
	       *t->row[!k]->digest.hex && vn_shape_equal(&t->row[0]->shape, &t->row[1]->shape) &&
	       holds_numbers(t, !k, t->numbers[k]);
}

/* Are the numbers of both sides one rounding away from common numbers? Neither side's format holds
 * the other's numbers. */
static bool rounded_alike(const vn_weight_trial *t)
{
	enum { PIECE = 4096 };
	const vn_tensor *a = t->numbers[0], *b = t->numbers[1];
	const size_t     n = (size_t)vn_shape_count(&a->shape);
	const double     unit = 0.5 * (ldexp(1.0, -vn_dtype_digits(a->dtype)) + ldexp(1.0, -vn_dtype_digits(b->dtype))),
				 tiny = 0.5 * (vn_dtype_ulp(a->dtype, 0.0) + vn_dtype_ulp(b->dtype, 0.0));
	double x[PIECE], y[PIECE];
	bool   good = true;

	for (size_t i = 0; good && i < n; i += PIECE) {
		const size_t k = n - i < PIECE ? n - i : PIECE;
		vn_to_f64(x, (const char *)a->data + i * vn_dtype_size(a->dtype), a->dtype, k);
		vn_to_f64(y, (const char *)b->data + i * vn_dtype_size(b->dtype), b->dtype, k);
		for (size_t j = 0; j < k; j++)
			good = good && (x[j] == y[j] || (isnan(x[j]) && isnan(y[j])) ||
			                fabs(x[j] - y[j]) <= unit * fmin(fmax(fabs(x[j]), fabs(y[j])), DBL_MAX) + tiny);
	}
	return good;
}

vn_weight_fate vn_weight_same_numbers(const vn_weight_trial *t)
{
	const vn_weight_row *a = t->row[0], *b = t->row[1];
	const bool           formats = a->dtype != b->dtype;

	if (!formats && !vn_weights_same(a, b) && is_undone(t))
		return VN_WEIGHT_ROUNDED;
	if (is_dequantised(t))
		return VN_WEIGHT_ROUNDED;
	if (!vn_shape_equal(&a->shape, &b->shape) || !vn_weights_same(a, b))
		return VN_WEIGHT_DIFFERS;
	if (!formats)
		return VN_WEIGHT_SAME;
	const int k = finer_side(t);
	if (k < 0 && t->numbers[0] && t->numbers[1])
		return rounded_alike(t) ? VN_WEIGHT_ROUNDED : VN_WEIGHT_DIFFERS;
	if (k < 0 || !*t->row[!k]->digest.hex)
		return VN_WEIGHT_ALIKE;
	if (t->numbers[k])
		return holds_numbers(t, !k, t->numbers[k]) ? VN_WEIGHT_ROUNDED : VN_WEIGHT_DIFFERS;
	/* The finer side has the same statistics: it holds the coarser numbers,
	 * perhaps in another order. */
	if (t->numbers[!k] && *t->row[k]->digest.hex && same_in_any_order(a, b))
		return holds_numbers(t, k, t->numbers[!k]) ? VN_WEIGHT_ROUNDED : VN_WEIGHT_DIFFERS;
	return vn_dtype_size(t->row[!k]->dtype) == 2 && was_cut(t->row[k], t->row[!k], t->row[!k]->dtype)
	           ? VN_WEIGHT_DIFFERS
	           : VN_WEIGHT_ALIKE;
}

/* ---- fresh random numbers ---------------------------------------------------------------- */

/* Distributions that libraries use for weights they did not load: normal with 0.02, or uniform up
 * to one over the root of the columns. */
static const char *find_fresh(const vn_weight_row *r)
{
	const vn_stats *s = &r->stats;
	const double    n = (double)s->n, N = r->shape.rank > 1 ? (double)r->shape.dim[1] : 0.0;

	if (s->n < ENOUGH_FOR_FIT || s->nan + s->inf || !(s->rms > 0) || fabs(s->mean) > 5.0 * s->rms / sqrt(n))
		return NULL;
	const double tail = s->absmax / s->rms, normal = sqrt(2.0 * log(n));
	if (fabs(s->rms / 0.02 - 1.0) < 4.0 / sqrt(2.0 * n) + 2e-3 && tail > 0.7 * normal && tail < normal + 2.0)
		return "normal, deviation 0.02";
	if (N > 0 && fabs(s->absmax * sqrt(N) - 1.0) < 0.02 && fabs(tail - sqrt(3.0)) < 0.05)
		return "uniform up to 1/sqrt(columns)";
	return NULL;
}

static bool never_loaded(const vn_weight_trial *t, vn_weight_difference *d)
{
	for (int k = 1; k >= 0; k--) {
		const char *how = find_fresh(t->row[k]), *other = find_fresh(t->row[!k]);
		if (how && !other && fabs(t->row[!k]->stats.rms / t->row[k]->stats.rms - 1.0) > 0.05)
			return vn_weight_is(d, k, VN_PROOF_STATISTICS, VN_FOUND(RANDOM_LIKELY), how);
	}
	return false;
}

/* ---- both known ------------------------------------------------------------------------ */

static bool judge_unrelated(const vn_weight_trial *t, const vn_weight_fit *f, vn_weight_difference *d)
{
	if (same_in_any_order(t->row[0], t->row[1]))
		vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(ORDER));
	else if (find_fresh(t->row[1]) && !find_fresh(t->row[0]))
		vn_weight_is(d, 1, VN_PROOF_NUMBERS, VN_FOUND(RANDOM));
	else
		vn_weight_is(d, 1, VN_PROOF_NUMBERS, VN_FOUND(UNRELATED));
	return vn_weight_measures(d, VN_WEIGHT_CORRELATION, f->correlation);
}

static bool of_blocks(const vn_weight_row *r)
{
	return vn_dtype_block(r->dtype) > 1;
}

/* Do the statistics agree as far as quantising leaves them? */
static bool blocks_may_fit(const vn_weight_row *a, const vn_weight_row *b)
{
	const vn_stats *x = &a->stats, *y = &b->stats;
	const double    step = vn_weight_block_step(a->dtype, b->dtype), room = step * fmax(x->absmax, y->absmax);
	return x->nan + x->inf + y->nan + y->inf == 0 && is_near(x->min, y->min, room) && is_near(x->max, y->max, room) &&
	       is_near(x->mean, y->mean, room) && is_near(x->rms, y->rms, (4.0 * step * step + 5e-3) * x->rms);
}

/* One side is quantised, or both in different block formats. */
static bool judge_quantised(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_row  *a = t->row[0], *b = t->row[1];
	const bool            here = of_blocks(b), both = t->numbers[0] && t->numbers[1];
	const char           *format = vn_dtype_name(here ? b->dtype : a->dtype);
	const vn_weight_proof proof = both ? VN_PROOF_NUMBERS : VN_PROOF_STATISTICS;
	vn_weight_block_fit   f = { 0 };

	if (!(of_blocks(a) || here) || a->dtype == b->dtype || !vn_shape_equal(&a->shape, &b->shape) ||
	    (!both && !blocks_may_fit(a, b)))
		return false;
	if (both)
		f = vn_weight_block_fit_of(t->numbers[0], t->numbers[1]);
	if (f.wrong)
		return 2 * f.wrong > f.blocks ? vn_weight_is(d, here, proof, VN_FOUND(QUANTISED_WRONG), format)
		                              : vn_weight_is(d, here, proof, VN_FOUND(QUANTISED_PARTLY), format);
	if (!here)
		return vn_weight_is(d, 0, proof, VN_FOUND(REFERENCE_QUANTISED), format);
	return vn_weight_is(d, 1, proof, VN_FOUND(QUANTISED), format);
}

static bool judge_measured(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_row *a = t->row[0], *b = t->row[1];

	if (!t->numbers[0] || !t->numbers[1] || !vn_shape_equal(&a->shape, &b->shape))
		return false;
	const vn_weight_fit f = vn_weight_fit_of(t->numbers[0], t->numbers[1]);
	const double        off = sqrt(f.nmse), unit = of_blocks(a) || of_blocks(b) ? 1e-3 : unit_of(a, b);
	if (f.differing == 0.0)
		return vn_weight_is(d, 1, VN_PROOF_NUMBERS, VN_FOUND(BITS));
	if (a->stats.n >= ENOUGH_FOR_FIT && fabs(f.correlation) < 6.0 / sqrt((double)a->stats.n))
		return judge_unrelated(t, &f, d);
	if (judge_quantised(t, d))
		return vn_weight_measures(d, VN_WEIGHT_APART, off);
	if (fabs(f.factor - 1.0) > 2.0 * unit && sqrt(f.residual) < unit * fabs(f.factor))
		return vn_weight_is(d, 1, VN_PROOF_NUMBERS, VN_FOUND(SCALED), "", "", f.factor);
	if (off < 0.5 && f.correlation > 0.7) {
		vn_weight_is(d, 1, VN_PROOF_NUMBERS, VN_FOUND(REVISION));
		d->certain = false;
	} else {
		vn_weight_is(d, 1, VN_PROOF_NUMBERS, VN_FOUND(OTHER));
	}
	return vn_weight_measures(d, VN_WEIGHT_APART, off);
}

/* ---- statistics alone ------------------------------------------------------------------------ */

/* Writes " (R1b or W1: give --model to decide)" for the orders that are possible. */
static void say_ids(const vn_weight_order *list, int n, char text[64])
{
	vn_mistake said = VN_NO_MISTAKE;

	*text = 0;
	for (int i = 0; i < n; i++) {
		if (list[i].rule.rule == VN_ARRANGE_PADDED || list[i].id == said || strlen(text) > 40)
			continue;
		said = list[i].id;
		vn_text_add(text, 64, "%s%s", *text ? " or " : " (", vn_mistake_id(said));
	}
	if (*text)
		vn_text_add(text, 64, ": give --model to decide)");
}

static bool one_of_them(vn_weight_difference *d, const vn_weight_order *o)
{
	static const struct {
		vn_weight_finding found;
		const char       *title;
	} either[] = {
		[VN_ORDER_PAIRS] = { VN_FOUND(PAIRS_EITHER) },    [VN_ORDER_PARTS] = { VN_FOUND(PARTS_EITHER) },
		[VN_ORDER_HALVES] = { VN_FOUND(HALVES_EITHER) },  [VN_ORDER_TILED] = { VN_FOUND(TILED_EITHER) },
		[VN_ORDER_SHARDS] = { VN_FOUND(SHARDS_EITHER) },  [VN_ORDER_EVERY_OTHER] = { VN_FOUND(ROWS_EITHER) },
		[VN_ORDER_TRANSPOSED] = { VN_FOUND(TRANSPOSED) },
	};
	const bool     reshaped = o->kind == VN_ORDER_TRANSPOSED && o->id == VN_MISTAKE_W1B;
	const char    *says = reshaped ? vn_found_OLD_SHAPE : either[o->kind].title;
	const uint64_t key = vn_weight_key_of(reshaped ? VN_FOUND_OLD_SHAPE : either[o->kind].found, 0);

	/* The kind is that of the order's own finding: gate and up are shards, but have their own. */
	return vn_weight_is_said(d, 1, VN_PROOF_STATISTICS, o->found, says ? key : o->key, says ? says : o->says) &&
	       vn_weight_shows(d, o->id);
}

static bool another_order(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_row   *a = t->row[0], *b = t->row[1];
	const vn_weight_order *first = NULL;
	vn_weight_order        list[VN_MOST_ORDERS];
	const int              n = vn_weight_orders_of(&t->name, &a->shape, &b->shape, &t->heads, list);
	bool                   others = false;
	char                   ids[64];

	if (!same_in_any_order(a, b))
		return false;
	if (t->numbers[0] || t->numbers[1])
		return vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(ORDER));
	for (int i = 0; i < n; i++) {
		if (list[i].rule.rule == VN_ARRANGE_PADDED)
			continue;
		others = others || (first && list[i].id != first->id);
		first = first ? first : &list[i];
	}
	if (first && !others)
		return one_of_them(d, first);
	say_ids(list, n, ids);
	return vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(ORDER_LIKELY), ids);
}

/* Matching ends are weak evidence, two numbers of many: each kind of change must meet a
 * further condition. */
static bool fits_well(const vn_weight_change *c, const vn_weight_row *a, const vn_weight_row *b)
{
	const vn_stats *x = &a->stats, *y = &b->stats;
	const double    unit = unit_of(a, b), factor = c->x;

	switch (c->kind) {
	case VN_WEIGHT_CHANGE_ROUNDED:
		return (x->min != y->min || x->max != y->max) &&
		       fabs(y->rms / x->rms - 1.0) < (0.01 + 2.0 / sqrt((double)x->n)) * ldexp(1.0, -vn_dtype_digits(c->as));
	case VN_WEIGHT_CHANGE_TRUNCATED: return was_cut(a, b, c->as);
	case VN_WEIGHT_CHANGE_SATURATED: return x->absmax > 65504.0;
	case VN_WEIGHT_CHANGE_PLUS: return fabs(y->mean - x->mean - factor) < 1e-3;
	case VN_WEIGHT_CHANGE_TIMES:
		return fabs(factor - 1.0) > 1.5 * unit && fabs(y->rms / x->rms / fabs(factor) - 1.0) < unit &&
		       fabs((factor > 0 ? y->min : y->max) / x->min / factor - 1.0) < unit &&
		       fabs((factor > 0 ? y->max : y->min) / x->max / factor - 1.0) < unit &&
		       fabs(y->mean - factor * x->mean) < unit * y->rms;
	case VN_WEIGHT_CHANGE_DECAY:
	case VN_WEIGHT_CHANGE_RELABELLED: return true;
	case VN_WEIGHT_CHANGE_QUANTISED: /* the largest magnitude is one of the steps and has moved */
		return y->absmax != x->absmax && fabs(y->mean - x->mean) < 0.05 * x->rms &&
		       (c->as == VN_Q8_0 || c->as == VN_Q4_0 || c->as == VN_Q5_0);
	default: return false;
	}
}

static bool judge_changed(const vn_weight_trial *t, vn_weight_difference *d)
{
	vn_weight_change list[VN_MOST_CHANGES];

	if (!vn_shape_equal(&t->row[0]->shape, &t->row[1]->shape))
		return false;
	for (int from = 0; from < 2; from++) {
		const vn_weight_row *a = t->row[from], *b = t->row[!from];
		const int            n = vn_dtype_block(a->dtype) > 1 || vn_dtype_block(b->dtype) > 1
		                             ? 0
		                             : vn_weight_changes_of(&t->name, a, b, &t->heads, list);
		/* When the numbers are available, exact changes were tried already. A factor or an
		 * exponential may round differently. */
		for (int i = 0; i < n; i++)
			if ((list[i].kind != VN_WEIGHT_CHANGE_TIMES || from == 0) &&
			    (!t->numbers[from] || list[i].kind == VN_WEIGHT_CHANGE_TIMES ||
			     list[i].kind == VN_WEIGHT_CHANGE_DECAY || list[i].kind == VN_WEIGHT_CHANGE_PLUS) &&
			    fits_well(&list[i], a, b))
				return vn_weight_is_said(d, !from, VN_PROOF_STATISTICS, list[i].found, list[i].key, list[i].says);
	}
	return false;
}

/* In another format digests cannot match. Statistics identify a weight when exactly one fits. */
static bool of_another(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_side *ref = t->side[0];
	const vn_weight_row  *b = t->row[1], *found = NULL;

	if (vn_dtype_block(b->dtype) > 1 || t->row[0]->dtype == b->dtype || b->stats.n < ENOUGH_FOR_FIT)
		return false;
	for (int i = 0; i < ref->n; i++) {
		const vn_weight_row   *a = &ref->row[i];
		const vn_weight_change none = { .kind = VN_WEIGHT_CHANGE_ROUNDED, .as = b->dtype };
		if (vn_dtype_block(a->dtype) > 1 || !vn_shape_equal(&a->shape, &b->shape) ||
		    vn_weight_change_number(&none, a->stats.min) != b->stats.min ||
		    vn_weight_change_number(&none, a->stats.max) != b->stats.max || !vn_weights_same(a, b))
			continue;
		if (found)
			return false;
		found = a;
	}
	if (!found)
		return false;
	const vn_weight_name other = vn_weight_name_of(t->side[0], found->name);
	const vn_mistake id = strcmp(other.tail, t->name.tail) == 0 ? VN_MISTAKE_W9 : vn_weight_exchange(&t->name, &other);
	if (id == VN_MISTAKE_W9)
		return vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(OTHER_LAYER), other.layer);
	return vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(OTHER_WEIGHT),
	                    other.layer == t->name.layer ? other.tail : found->name) &&
	       vn_weight_shows(d, id);
}

bool vn_weight_by_statistics(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_row *a = t->row[0], *b = t->row[1];
	const vn_stats      *x = &a->stats, *y = &b->stats;

	if (vn_weight_mixed(t, d) || judge_measured(t, d) || judge_quantised(t, d) || another_order(t, d) ||
	    judge_changed(t, d) || of_another(t, d) || never_loaded(t, d))
		return true;
	const double ratio = y->rms / x->rms;
	const bool   shape = vn_shape_equal(&a->shape, &b->shape);
	if (shape && fabs(ratio - 1.0) < 0.1 && fabs(y->mean - x->mean) < 0.1 * x->rms && y->absmax < 1.5 * x->absmax &&
	    x->absmax < 1.5 * y->absmax)
		vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(REVISION_LIKELY));
	else if (shape)
		vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(OTHER));
	else
		vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(OTHER_SHAPED));
	return vn_weight_measures(d, VN_WEIGHT_RMS, ratio);
}
