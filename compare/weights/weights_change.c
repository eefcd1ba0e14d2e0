/* weights_change.c: what may have happened to each number of a weight
 * (specs/faults.md: W12 to W15, N6, G1). */
#include "compare/weights/weights_change.h"

#include "libref/base/quantise.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const double F16_MAX = 65504.0, F16_NORMAL = 0x1p-14;
enum { GGML_BLOCK = 32 };

/* ---- one number ------------------------------------------------------------------- */

static double round_to(double x, vn_dtype as)
{
	unsigned char bits[8];
	vn_from_f64(bits, as, &x, 1);
	vn_to_f64(&x, bits, as, 1);
	return x;
}

/* Truncates toward zero into a 16-bit format. */
static double truncate_to(double x, vn_dtype as)
{
	const double near = round_to(x, as);
	uint16_t     bits;

	if (!(fabs(near) > fabs(x)))
		return near;
	bits = as == VN_F16 ? vn_f32_to_f16((float)near) : vn_f32_to_bf16((float)near);
	bits--; /* the next value toward zero */
	return (double)(as == VN_F16 ? vn_f16_to_f32(bits) : vn_bf16_to_f32(bits));
}

static double relabel_bits(double x, vn_dtype from, vn_dtype as)
{
	unsigned char bits[8];
	vn_from_f64(bits, from, &x, 1);
	vn_to_f64(&x, bits, as, 1);
	return x;
}

double vn_weight_change_number(const vn_weight_change *c, double x)
{
	switch (c->kind) {
	case VN_WEIGHT_CHANGE_ROUNDED: return round_to(x, c->as);
	case VN_WEIGHT_CHANGE_TRUNCATED: return truncate_to(x, c->as);
	case VN_WEIGHT_CHANGE_SATURATED: return round_to(fmax(-F16_MAX, fmin(F16_MAX, x)), VN_F16);
	case VN_WEIGHT_CHANGE_FLUSHED:
		return fabs(x) < F16_NORMAL ? copysign(0.0, c->x > 0 ? x : 0.0) : round_to(x, VN_F16);
	case VN_WEIGHT_CHANGE_FLUSHED_SATURATED:
		return fabs(x) < F16_NORMAL ? copysign(0.0, c->x > 0 ? x : 0.0)
		                            : round_to(fmax(-F16_MAX, fmin(F16_MAX, x)), VN_F16);
	case VN_WEIGHT_CHANGE_PLUS: return x + c->x;
	case VN_WEIGHT_CHANGE_TIMES: return x * c->x;
	case VN_WEIGHT_CHANGE_DECAY: return (double)(float)-exp(x);
	default: return x;
	}
}

void vn_weight_change_row(const vn_weight_change *c, double *x, size_t n, vn_dtype to, void *dst, float *room)
{
	if (c->kind == VN_WEIGHT_CHANGE_ROUNDED) {
		vn_from_f64(room, c->as, x, n);
		vn_to_f64(x, room, c->as, n);
	} else if (c->kind == VN_WEIGHT_CHANGE_QUANTISED) {
		unsigned char b[2 * GGML_BLOCK];
		for (size_t i = 0; i < n; i += GGML_BLOCK) {
			for (size_t j = 0; j < GGML_BLOCK; j++)
				room[j] = (float)x[i + j];
			vn_quantise(b, c->as, room, GGML_BLOCK);
			vn_to_f64(x + i, b, c->as, GGML_BLOCK);
		}
	} else {
		for (size_t i = 0; i < n; i++)
			x[i] = vn_weight_change_number(c, x[i]);
	}
	if (vn_dtype_block(to) == 1) {
		vn_from_f64(dst, to, x, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		room[i] = (float)x[i];
	vn_quantise(dst, to, room, n);
}

/* ---- which there may be ------------------------------------------------------------- */

typedef struct change_list {
	vn_weight_change    *c;
	int                  n;
	const vn_weight_row *a, *b;
} change_list;

/* Quantising keeps the largest magnitude, as a whole number of float16 scale steps. Formats with a
 * minimum also keep the smallest number. */
static bool blocks_fit(const vn_weight_change *c, const vn_weight_row *a, const vn_weight_row *b)
{
	const vn_stats *s = &a->stats, *t = &b->stats;
	const double    steps = c->as == VN_Q8_0 ? 127.0 : c->as == VN_Q4_0 ? 8.0 : c->as == VN_Q5_0 ? 16.0 : 0.0;

	if (!(fabs(t->rms - s->rms) <= 0.1 * s->rms))
		return false;
	if (steps > 0)
		return round_to(round_to((double)((float)s->absmax / (float)steps), VN_F16) * steps, b->dtype) == t->absmax;
	return round_to(round_to(s->min, VN_F16), b->dtype) == t->min;
}

/* Whether the smallest and largest numbers are where the change puts them. Every change except
 * quantising keeps or reverses the order of numbers. */
static bool ends_fit(const vn_weight_change *c, const vn_weight_row *a, const vn_weight_row *b)
{
	const vn_stats *s = &a->stats, *t = &b->stats;
	double          low = c->kind == VN_WEIGHT_CHANGE_RELABELLED ? relabel_bits(s->min, a->dtype, c->as)
	                                                             : vn_weight_change_number(c, s->min);
	double          high = c->kind == VN_WEIGHT_CHANGE_RELABELLED ? relabel_bits(s->max, a->dtype, c->as)
	                                                              : vn_weight_change_number(c, s->max);
	if (low > high) {
		const double was = low;
		low = high;
		high = was;
	}
	low = round_to(low, b->dtype);
	high = round_to(high, b->dtype);
	const double room = c->kind == VN_WEIGHT_CHANGE_DECAY ? 1e-6 : c->kind == VN_WEIGHT_CHANGE_TIMES ? 1e-2 : 0.0;
	return fabs(low - t->min) <= room * fabs(low) && fabs(high - t->max) <= room * fabs(high);
}

/* May the change explain the difference? Statistics cover finite numbers only, so they do not show
 * what became of numbers beyond the format's range. */
static bool may_explain(const vn_weight_change *c, const vn_weight_row *a, const vn_weight_row *b)
{
	if (c->kind == VN_WEIGHT_CHANGE_NONE)
		return true;
	return c->kind == VN_WEIGHT_CHANGE_QUANTISED ? blocks_fit(c, a, b) : ends_fit(c, a, b);
}

#define CHANGE(k, through, number) ((vn_weight_change) { .kind = VN_WEIGHT_CHANGE_##k, .as = through, .x = number })

/* Adds a change, unless it explains nothing. c: its kind, as and x. */
__attribute__((format(printf, 4, 5))) static void add(change_list *l, vn_weight_change c, vn_weight_finding found,
                                                      const char *title, ...)
{
	va_list args;

	c.found = found;
	if (l->n == VN_MOST_CHANGES || !may_explain(&c, l->a, l->b))
		return;
	va_start(args, title);
	c.key = vn_weight_say(c.says, found, title, args);
	va_end(args);
	l->c[l->n++] = c;
}

static double to_digits(double x, int digits)
{
	char text[40];
	snprintf(text, sizeof text, "%.*g", digits, x);
	return strtod(text, NULL);
}

/* Adds the factor as given and rounded to float32: code multiplies by both. */
static void add_factor(change_list *l, double factor, const char *name)
{
	const double as_float = (double)(float)factor;
	for (int k = 0; k < 2; k++)
		if (k == 0 || as_float != factor)
			add(l, CHANGE(TIMES, l->b->dtype, k ? as_float : factor), VN_FOUND(SCALED), name, *name ? ", " : "",
			    factor);
}

static void add_factors(change_list *l, const vn_weight_heads *h)
{
	const vn_stats *s = &l->a->stats, *t = &l->b->stats;
	const vn_shape *shape = &l->a->shape;
	const bool      negated = fabs(t->max - fabs(t->min)) > 0 && fabs(s->max + s->min) > 0 &&
	                     fabs(t->max / t->min - s->min / s->max) < fabs(t->max / t->min - s->max / s->min);
	const double ratio = (negated ? -1.0 : 1.0) * t->rms / s->rms;
	const double D = shape->rank > 1 ? (double)shape->dim[1] : 0.0, M = shape->rank ? (double)shape->dim[0] : 0.0;
	const struct {
		const char *name;
		double      value;
	} known[] = {
		{ "sqrt(K)", sqrt(h->K) },
		{ "1/sqrt(K)", h->K ? 1.0 / sqrt(h->K) : 0.0 },
		{ "K", h->K },
		{ "1/K", h->K ? 1.0 / h->K : 0.0 },
		{ "sqrt of the columns", sqrt(D) },
		{ "1/sqrt of the columns", D > 0 ? 1.0 / sqrt(D) : 0.0 },
		{ "sqrt of the rows", sqrt(M) },
		{ "1/sqrt of the rows", M > 0 ? 1.0 / sqrt(M) : 0.0 },
	};

	if (!isfinite(ratio) || ratio == 0.0 || fabs(ratio - 1.0) < 1e-6)
		return;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].value > 0.0 && known[i].value != 1.0 && fabs(fabs(ratio) / known[i].value - 1.0) < 3e-3)
			add_factor(l, copysign(known[i].value, ratio), known[i].name);
	for (int digits = 1; digits <= 5; digits++)
		if (fabs(to_digits(ratio, digits) / ratio - 1.0) < 3e-3 &&
		    (digits == 1 || to_digits(ratio, digits) != to_digits(ratio, digits - 1)))
			add_factor(l, to_digits(ratio, digits), "");
	add_factor(l, ratio, "");
}

static void add_formats(change_list *l)
{
	static const vn_dtype narrow[] = { VN_BF16, VN_F16 };
	const vn_dtype        from = l->a->dtype, to = l->b->dtype;

	for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
		const char *name = vn_dtype_name(narrow[i]);
		if (from != narrow[i]) {
			if (to != narrow[i])
				add(l, CHANGE(ROUNDED, narrow[i], 0), VN_FOUND(ROUNDED), name);
			add(l, CHANGE(TRUNCATED, narrow[i], 0), VN_FOUND(TRUNCATED), name);
		}
	}
	if (from != VN_F16) {
		add(l, CHANGE(SATURATED, VN_F16, 0), VN_FOUND(SATURATED));
		for (int sign = 0; sign < 2; sign++) {
			add(l, CHANGE(FLUSHED, VN_F16, sign), VN_FOUND(FLUSHED));
			add(l, CHANGE(FLUSHED_SATURATED, VN_F16, sign), VN_FOUND(FLUSHED_SATURATED));
		}
	}
	if (from == VN_F16 || from == VN_BF16) {
		const vn_dtype other = from == VN_F16 ? VN_BF16 : VN_F16;
		add(l, CHANGE(RELABELLED, other, 0), VN_FOUND(RELABELLED), vn_dtype_name(from), vn_dtype_name(other));
	}
}

static void add_blocks(change_list *l)
{
	const vn_shape *s = &l->a->shape;
	const int64_t   M = s->rank ? s->dim[0] : 1, N = M > 0 ? vn_shape_count(s) / M : 0;

	if (s->rank < 2 || N % GGML_BLOCK)
		return;
	for (int d = VN_N_DTYPES; d < VN_N_WEIGHT_DTYPES; d++)
		if (vn_quantises((vn_dtype)d))
			add(l, CHANGE(QUANTISED, (vn_dtype)d, 0), VN_FOUND(THROUGH_BLOCKS), vn_dtype_name((vn_dtype)d));
}

int vn_weight_changes_of(const vn_weight_name *name, const vn_weight_row *a, const vn_weight_row *b,
                         const vn_weight_heads *h, vn_weight_change c[VN_MOST_CHANGES])
{
	change_list l = { c, 0, a, b };

	if (vn_dtype_block(b->dtype) > 1) {
		if (vn_quantises(b->dtype))
			add(&l, CHANGE(NONE, b->dtype, 0), VN_FOUND(QUANTISED), vn_dtype_name(b->dtype));
		return l.n;
	}
	if (vn_dtype_block(a->dtype) > 1)
		return 0; /* its numbers themselves are the same weight: vn_weight_same_numbers */
	add_formats(&l);
	if (a->shape.rank == 1) {
		add(&l, CHANGE(PLUS, b->dtype, 1.0), VN_FOUND(PLUS_ONE));
		add(&l, CHANGE(PLUS, b->dtype, -1.0), VN_FOUND(LESS_ONE));
	}
	if (name->change == VN_GGUF_DECAY)
		add(&l, CHANGE(DECAY, b->dtype, 0), VN_FOUND(DECAY));
	add_factors(&l, h);
	add_blocks(&l);
	return l.n;
}
