/* rope.c: the rotary frequencies of a model, one float per pair of columns. */
#include "libref/plan/rope.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* ---- torch's vectorised power ------------------------------------------------------
 *
 * torch calls SLEEF's powf (1.0 ulp), exp(y log x) in pairs of floats. It is good to
 * about 0.51 ulp, which is not the correctly rounded power, and its bits are HF's bits.
 * So this is that algorithm, for x > 1 and 0 <= y < 1: the constants are SLEEF's, and the
 * order of every addition matters. Every fmaf is one rounding; no others may be fused.
 * SLEEF is by Naoki Shibata and contributors, Boost Software License 1.0. */

typedef struct float_pair {
	float hi, lo; /* the value is hi + lo */
} float_pair;

/* a + b with its exact error, for any order of magnitudes */
static float_pair add_any(float a, float b)
{
	const float s = a + b, v = s - a;

	return (float_pair) { s, (a - (s - v)) + (b - v) };
}

/* the rest for |a| >= |b| */
static float_pair add(float a, float b)
{
	const float s = a + b;

	return (float_pair) { s, (a - s) + b };
}

static float_pair add_pair(float_pair a, float_pair b)
{
	const float s = a.hi + b.hi;

	return (float_pair) { s, (((a.hi - s) + b.hi) + a.lo) + b.lo };
}

static float_pair add_any_pair(float_pair a, float_pair b)
{
	const float_pair s = add_any(a.hi, b.hi);

	return (float_pair) { s.hi, s.lo + (a.lo + b.lo) };
}

static float_pair mul(float_pair a, float_pair b)
{
	const float p = a.hi * b.hi;

	return (float_pair) { p, fmaf(a.hi, b.lo, fmaf(a.lo, b.hi, fmaf(a.hi, b.hi, -p))) };
}

static float_pair mul_float(float_pair a, float b)
{
	const float p = a.hi * b;

	return (float_pair) { p, fmaf(a.lo, b, fmaf(a.hi, b, -p)) };
}

static float_pair square(float_pair a)
{
	const float p = a.hi * a.hi;

	return (float_pair) { p, fmaf(a.hi + a.hi, a.lo, fmaf(a.hi, a.hi, -p)) };
}

static float_pair divide(float_pair n, float_pair d)
{
	const float t = 1.0f / d.hi;
	const float q = n.hi * t;
	const float u = fmaf(t, n.hi, -q);
	const float e = fmaf(-d.lo, t, fmaf(-d.hi, t, 1.0f));

	return (float_pair) { q, fmaf(q, e, fmaf(n.lo, t, u)) };
}

/* log(m 2^e) = e log 2 + 2 atanh((m-1)/(m+1)), m in [3/4, 3/2) */
static float_pair log_pair(float x)
{
	const float_pair ln2 = { 0.69314718246459960938f, -1.904654323148236017e-09f };
	const float_pair c3 = { 0.66666662693023681640625f, 3.69183861259614332084311e-09f };

	const int        e = ilogbf(x * (1.0f / 0.75f));
	const float      m = ldexpf(x, -e);
	const float_pair z = divide(add_any(-1.0f, m), add_any(1.0f, m));
	const float_pair zz = square(z);

	float t = 0.240320354700088500976562f;
	t = fmaf(t, zz.hi, 0.285112679004669189453125f);
	t = fmaf(t, zz.hi, 0.400007992982864379882812f);

	float_pair s = mul_float(ln2, (float)e);
	s = add_pair(s, (float_pair) { z.hi * 2.0f, z.lo * 2.0f });
	return add_pair(s, mul(mul(zz, z), add_any_pair(mul_float(zz, t), c3)));
}

/* exp(q log 2 + s) = 2^q (1 + s + s^2 u(s)) */
static float exp_pair(float_pair d)
{
	const float q = rintf((d.hi + d.lo) * 1.44269504088896340736f);
	const float ln2_hi = 0.693145751953125f, ln2_lo = 1.428606765330187045e-06f;

	float_pair s = add_any_pair(d, (float_pair) { q * -ln2_hi, 0.0f });
	s = add_any_pair(s, (float_pair) { q * -ln2_lo, 0.0f });
	s = add(s.hi, s.lo);

	float u = 0.00136324646882712841033936f;
	u = fmaf(u, s.hi, 0.00836596917361021041870117f);
	u = fmaf(u, s.hi, 0.0416710823774337768554688f);
	u = fmaf(u, s.hi, 0.166665524244308471679688f);
	u = fmaf(u, s.hi, 0.499999850988388061523438f);

	float_pair t = add_pair(s, mul_float(square(s), u));
	t = add_pair((float_pair) { 1.0f, 0.0f }, t);
	return ldexpf(t.hi + t.lo, (int)q);
}

static float vector_pow(float x, float y)
{
	return y == 0.0f ? 1.0f : exp_pair(mul_float(log_pair(x), y));
}

/* ---- the frequencies --------------------------------------------------------------- */

/* base^(2i/R) for i = 0 .. n-1. Whole blocks use vector_pow, the rest powf. */
static void compute_powers(float *p, const vn_rope *r, float base, int n)
{
	const int block = r->pow_block ? r->pow_block : 32;
	const int whole = n - n % block;

	for (int i = 0; i < n; i++) {
		const float y = (float)(2 * i) / (float)r->rotary_dim;
		p[i] = i < whole ? vector_pow(base, y) : powf(base, y);
	}
}

/* Beyond the trained length, dynamic scaling raises the base. Up to that length transformers
 * computes with Python floats; beyond it with a one-element float tensor, whose power is taken in
 * double and rounded. */
static float dynamic_base(const vn_rope *r, int64_t length)
{
	const double exponent = r->rotary_dim / (r->rotary_dim - 2.0);

	if (length <= r->max_context)
		return (float)(r->theta * pow(r->factor * r->max_context / r->max_context - (r->factor - 1.0), exponent));

	const float stretch = (float)r->factor * (float)length / (float)r->max_context - (float)(r->factor - 1.0);
	return (float)r->theta * (float)pow((double)stretch, exponent);
}

/* Turns the powers p (R/2) into frequencies. */
static double longrope(const vn_rope *r, const vn_list *lists, int64_t length, float *p, int n)
{
	const double   factor = r->factor != 0.0 ? r->factor : (double)r->max_context / r->original_context;
	const vn_list *by = &lists[(length > r->original_context ? r->long_factor : r->short_factor) - 1];

	assert(by->n == n);
	for (int i = 0; i < n; i++)
		p[i] = 1.0f / (by->x[i] * p[i]);
	if (r->attention_factor != 0.0)
		return r->attention_factor;
	return factor <= 1.0 ? 1.0 : sqrt(1.0 + log(factor) / log(r->original_context));
}

/* Keeps short wavelengths, divides the frequency of long ones, and blends between. torch computes
 * number / tensor as reciprocal times number, with two roundings. */
static float llama3(const vn_rope *r, float f)
{
	const double low = r->low_freq_factor, high = r->high_freq_factor;
	const float  context = (float)r->original_context, factor = (float)r->factor;
	const float  wavelength = (1.0f / f) * (float)(2.0 * PI);

	if (wavelength > (float)(r->original_context / low))
		return f / factor;
	if (wavelength < (float)(r->original_context / high))
		return f;

	const float t = ((1.0f / wavelength) * context - (float)low) / (float)(high - low);
	return (1.0f - t) * f / factor + t * f;
}

/* The pair index, a real number, at which a pair rotates n times within the original context. */
static double yarn_index(const vn_rope *r, double n)
{
	return r->rotary_dim * log(r->original_context / (n * 2.0 * PI)) / (2.0 * log(r->theta));
}

static double yarn_mscale(double factor, double m)
{
	return factor <= 1.0 ? 1.0 : 0.1 * m * log(factor) + 1.0;
}

/* Turns the powers p (R/2) into frequencies: 1/p up to pair low, 1/(factor p) from pair high, and a
 * linear blend between. low and high are at most R-1, i at most R/2-1. */
static double yarn(const vn_rope *r, float *p, int n)
{
	const double factor = r->factor != 0.0 ? r->factor : (double)r->max_context / r->original_context;
	double       low = yarn_index(r, r->beta_fast != 0.0 ? r->beta_fast : 32.0);
	double       high = yarn_index(r, r->beta_slow != 0.0 ? r->beta_slow : 1.0);

	if (r->truncate) {
		low = floor(low);
		high = ceil(high);
	}
	low = fmax(low, 0.0);
	high = fmin(high, r->rotary_dim - 1);
	if (low == high)
		high += 0.001;

	for (int i = 0; i < n; i++) {
		const float kept = 1.0f / p[i], scaled = 1.0f / ((float)factor * p[i]);
		const float x = ((float)i - (float)low) / (float)(high - low);
		const float keep = 1.0f - fminf(fmaxf(x, 0.0f), 1.0f);

		p[i] = scaled * (1.0f - keep) + kept * keep;
	}

	if (r->attention_factor != 0.0)
		return r->attention_factor;
	if (r->mscale != 0.0 && r->mscale_all_dim != 0.0)
		return yarn_mscale(factor, r->mscale) / yarn_mscale(factor, r->mscale_all_dim);
	return yarn_mscale(factor, 1.0);
}

void vn_rope_frequencies(const vn_rope *r, const vn_list *lists, int64_t length, float *inv_freq,
                         float *attention_factor)
{
	const int n = r->rotary_dim / 2;

	assert(r->theta > 1.0 && r->rotary_dim >= 2 && r->rotary_dim % 2 == 0);
	assert(r->pow_block >= 0);

	compute_powers(inv_freq, r, r->type == VN_ROPE_DYNAMIC ? dynamic_base(r, length) : (float)r->theta, n);
	*attention_factor = 1.0f;

	if (r->type == VN_ROPE_YARN) {
		assert(r->original_context > 0);
		*attention_factor = (float)yarn(r, inv_freq, n);
		return;
	}
	if (r->type == VN_ROPE_LONGROPE) {
		*attention_factor = (float)longrope(r, lists, length, inv_freq, n);
		return;
	}
	for (int i = 0; i < n; i++) {
		inv_freq[i] = 1.0f / inv_freq[i];
		if (r->type == VN_ROPE_LINEAR)
			inv_freq[i] /= (float)r->factor;
		else if (r->type == VN_ROPE_LLAMA3)
			inv_freq[i] = llama3(r, inv_freq[i]);
	}
}

double vn_rope_frequencies_wide(const vn_rope *r, const vn_list *lists, int64_t length, float *inv_freq,
                                double *const wide[2], float *attention_factor)
{
	const double base = r->type == VN_ROPE_DYNAMIC ? (double)dynamic_base(r, length) : r->theta;
	const int    n = r->rotary_dim / 2;

	compute_powers(inv_freq, r, (float)base, n);
	for (int i = 0; i < n; i++)
		wide[1][i] = (double)inv_freq[i];
	vn_rope_frequencies(r, lists, length, inv_freq, attention_factor);
	for (int i = 0; i < n; i++) {
		wide[0][i] = pow(base, -2.0 * i / r->rotary_dim);
		wide[1][i] *= (double)inv_freq[i];
	}
	return base;
}

int64_t vn_call_begin(const int64_t *begins, int call, int64_t i)
{
	return call == VN_OWN_CALLS ? begins[i] : !call || i < call ? -1 : i - i % call;
}

static double map_position(const vn_position_map *m, int64_t at)
{
	const double p = m->times * (double)at + m->plus;

	return at < m->first || (at > m->last && !m->open) ? (double)at : m->whole ? floor(p) : p;
}

/* The position of a token in a call that begins at `from`. */
static double position_in_call(const vn_other_rotation *o, int64_t at, int64_t from)
{
	if (o->twice)
		return (double)(at + from);
	return (at - from) % 2 ? 0.0 : (double)(from + (at - from) / 2);
}

int64_t vn_rope_length(const vn_rope_experiment *e, int64_t past, int64_t tokens)
{
	return !e || !e->length ? past + tokens : e->length < 0 ? tokens : e->length;
}

int64_t vn_rope_rolled(const vn_rope_experiment *e, int64_t k, int64_t n)
{
	return e && e->rolled ? ((k - e->rolled) % n + n) % n : k;
}

double vn_rope_position(const vn_rope_experiment *e, const vn_rope_token *token)
{
	const int64_t at = token->past + token->t;

	if (!e)
		return (double)at;
	const double is = e->one_position ? 0
	                  : e->step_zero  ? (double)token->t
	                  : e->step_stuck && token->prompt > 0
	                      ? (double)(token->prompt + (e->step_stuck == 1 ? 0 : 2 * (at - token->prompt)))
	                  : e->other.by_ids ? (double)token->id
	                  : e->other.moved  ? map_position(&e->other.map, at)
	                  : e->other.twice || e->other.words
	                      ? position_in_call(&e->other, at, token->begin > 0 ? token->begin : token->past)
	                  : token->begin > 0 ? (double)(at - token->begin)
	                                     : (double)at;
	return is + e->offset + (token->past > 0 ? e->step_offset : 0);
}

float vn_rope_angle(const vn_rope_experiment *e, float f, int64_t i, double position)
{
	if (!e)
		return (float)position * f;
	const vn_rounding_format half = e->half_angles ? VN_FORMAT_F16 : VN_FORMAT_NONE;
	const float p = e->sections && i % 3 ? 0.0f : (float)vn_in_format(position, half ? half : e->other.positions);
	f = (float)vn_in_format((double)f, half ? half : e->other.frequencies);
	return (float)vn_in_format((double)(p * f), half ? half : e->other.angles) *
	       (e->angle_factor != 0.0 ? (float)e->angle_factor : 1.0f);
}

vn_rope_columns vn_rope_pair(const vn_rope *r, const vn_rope_experiment *e, int64_t K, int64_t i)
{
	const int             pairs = e && e->pairing ? e->pairing : r->pairs;
	const int64_t         first = r->first, half = r->rotary_dim / 2;
	const vn_rope_columns halves = { { first + i, first + i + half }, { first + i, first + i + half } },
						  across = { { i, i + K / 2 }, { i, i + K / 2 } },
						  neighbours = { { first + 2 * i, first + 2 * i + 1 }, { first + 2 * i, first + 2 * i + 1 } },
						  sorted = { { first + 2 * i, first + 2 * i + 1 }, { first + i, first + i + half } };

	return pairs == VN_PAIR_NEIGHBOURS ? neighbours
	       : pairs == VN_PAIR_SORTED   ? sorted
	       : pairs == VN_PAIR_ACROSS   ? across
	                                   : halves;
}

/* ---- are its constants in range? ------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool say_why(char why[VN_ROPE_WHY], const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(why, VN_ROPE_WHY, format, list);
	va_end(list);
	return false;
}

static bool check_divisors(const vn_list *l, int n)
{
	bool good = l->n == n;

	for (int i = 0; good && i < n; i++)
		good = isfinite(l->x[i]) && l->x[i] > 0.0f;
	return good;
}

static bool check_longrope(const vn_rope *r, const vn_list *lists, char why[VN_ROPE_WHY])
{
	const int n = r->rotary_dim / 2;

	if (r->original_context < 2 || !(r->factor > 0.0 || r->max_context > 0))
		return say_why(why, "invalid longrope: factor %g, original_context %d, max_context %d", r->factor,
		               r->original_context, r->max_context);
	if (!r->short_factor || !check_divisors(&lists[r->short_factor - 1], n) || !r->long_factor ||
	    !check_divisors(&lists[r->long_factor - 1], n))
		return say_why(why, "short_factor and long_factor must be lists of %d numbers above 0", n);
	return true;
}

bool vn_rope_check(const vn_rope *r, const vn_list *lists, int n_lists, char why[VN_ROPE_WHY])
{
	if (r->pow_block < 0)
		return say_why(why, "pow_block is %d", r->pow_block);
	if (r->short_factor > n_lists || r->long_factor > n_lists)
		return say_why(why, "short_factor or long_factor names a list that does not exist");
	if ((r->type == VN_ROPE_LINEAR || r->type == VN_ROPE_LLAMA3 || r->type == VN_ROPE_DYNAMIC) &&
	    !((float)r->factor > 0.0f))
		return say_why(why, "factor is %g and must be above 0", r->factor);
	if ((r->type == VN_ROPE_YARN || r->type == VN_ROPE_LLAMA3) && r->original_context < 1)
		return say_why(why, "original_context is %d, expected at least 1", r->original_context);
	if (r->type == VN_ROPE_YARN && !(r->factor > 0.0) && !(r->factor == 0.0 && r->max_context > 0))
		return say_why(why, "invalid yarn factor %g with max_context %d", r->factor, r->max_context);
	if (r->type == VN_ROPE_LLAMA3 && !(r->low_freq_factor > 0.0 && r->high_freq_factor > r->low_freq_factor))
		return say_why(why, "low_freq_factor %g must be above 0 and below high_freq_factor %g", r->low_freq_factor,
		               r->high_freq_factor);
	if (r->type == VN_ROPE_DYNAMIC && (r->max_context < 1 || r->rotary_dim < 4))
		return say_why(
			why, "dynamic RoPE needs max_context of at least 1 (found %d) and rotary_dim of at least 4 (found %d)",
			r->max_context, r->rotary_dim);
	return r->type == VN_ROPE_LONGROPE ? check_longrope(r, lists, why) : true;
}
