/* selftest_numbers.c: mutations of numbers: right name, shape and format, wrong numbers. */
#include "compare/selftest/selftest_internal.h"

#include <math.h>
#include <string.h>

static double rms_of(const vn_mutation_context *p, const double *x)
{
	double sum = 0.0;
	for (int64_t i = 0; i < p->T * p->W; i++)
		sum += x[i] * x[i];
	return sqrt(sum / (double)(p->T * p->W));
}

static int64_t find_largest(const vn_mutation_context *p, const double *x)
{
	int64_t at = 0;
	for (int64_t i = 0; i < p->T * p->W; i++)
		if (fabs(x[i]) > fabs(x[at]))
			at = i;
	return at;
}

/* A pseudorandom number between -1 and 1, derived from i. */
static double random_number(int64_t i)
{
	uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return ldexp((double)((x ^ x >> 31) >> 11), -52) - 1.0;
}

static void scale_numbers(const vn_mutation_context *p, double *x, double by)
{
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] *= by;
}

/* ---- NaN, infinity, zeros ------------------------------------------------ */

void vn_mutation_nan(const vn_mutation_context *p, double *x)
{
	x[p->T * p->W / 2] = (double)NAN;
}
static void one_inf(const vn_mutation_context *p, double *x)
{
	x[p->T * p->W / 2] = (double)INFINITY;
}
static void minus_inf(const vn_mutation_context *p, double *x)
{
	x[p->T * p->W / 2] = -(double)INFINITY;
}
static void last_nan(const vn_mutation_context *p, double *x)
{
	x[p->T * p->W - 1] = (double)NAN;
}
void vn_mutation_zeroed(const vn_mutation_context *p, double *x)
{
	scale_numbers(p, x, 0.0);
}

static void all_nan(const vn_mutation_context *p, double *x)
{
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] = (double)NAN;
}

static void all_minus_inf(const vn_mutation_context *p, double *x)
{
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] = -(double)INFINITY;
}

static void minus_inf_behind(const vn_mutation_context *p, double *x)
{
	for (int64_t i = p->W; i < p->T * p->W; i++)
		x[i] = -(double)INFINITY;
}

static void scores_masked(const vn_mutation_context *p, double *x)
{
	for (int64_t i = 0; i < p->T * p->W; i += 2)
		x[i] = -(double)INFINITY;
}

static void half_zero(const vn_mutation_context *p, double *x)
{
	memset(x + p->T * p->W / 2, 0, (size_t)(p->T * p->W - p->T * p->W / 2) * sizeof *x);
}

static void row_zero(const vn_mutation_context *p, double *x)
{
	memset(row_of(p, x, p->T / 2), 0, (size_t)p->W * sizeof *x);
}

static void channel_zero(const vn_mutation_context *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++)
		row_of(p, x, t)[p->W / 2] = 0.0;
}

static void all_equal(const vn_mutation_context *p, double *x)
{
	const double value = rms_of(p, x);
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] = value;
}

static void fill_garbage(const vn_mutation_context *p, double *x)
{
	const double size = rms_of(p, x);
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] = 1.7 * size * random_number(i);
}

/* ---- sizes and signs --------------------------------------------------------------------- */

/* bf16.yaml allows some tensors a factor of 1.019. */
static void scaled_little(const vn_mutation_context *p, double *x)
{
	scale_numbers(p, x, p->t.dtype == VN_BF16 ? 1.03 : 1.01);
}
static void scaled_some(const vn_mutation_context *p, double *x)
{
	scale_numbers(p, x, 1.03);
}
static void numbers_halved(const vn_mutation_context *p, double *x)
{
	scale_numbers(p, x, 0.5);
}
void vn_mutation_negated(const vn_mutation_context *p, double *x)
{
	scale_numbers(p, x, -1.0);
}

static void row_scaled(const vn_mutation_context *p, double *x)
{
	for (int64_t i = 0; i < p->W; i++)
		row_of(p, x, p->T - 1)[i] *= 1.1;
}

static void channel_scaled(const vn_mutation_context *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++)
		row_of(p, x, t)[p->W / 3] *= 1.15;
}

/* Gives both sides one large channel, as in trained models, and scales everything else
 * in the candidate. */
static void behind_channel(const vn_mutation_context *p, double *x, double by)
{
	if (p->of != VN_SIDE_REF)
		scale_numbers(p, x, by);
	for (int64_t t = 0; t < p->T; t++)
		row_of(p, x, t)[p->W / 2] = 60000.0;
}

static void scaled_behind_channel(const vn_mutation_context *p, double *x)
{
	behind_channel(p, x, 1.03);
}
static void negated_behind_channel(const vn_mutation_context *p, double *x)
{
	behind_channel(p, x, -1.0);
}
static void zeroed_behind_channel(const vn_mutation_context *p, double *x)
{
	behind_channel(p, x, 0.0);
}

static void scaled_behind_number(const vn_mutation_context *p, double *x)
{
	if (p->of != VN_SIDE_REF)
		scale_numbers(p, x, 1.03);
	x[p->W / 2] = 2000.0;
}

static void negated_behind_number(const vn_mutation_context *p, double *x)
{
	for (int64_t i = 0; i < p->W && p->of != VN_SIDE_REF; i++)
		x[i] = -x[i];
	x[p->W / 2] = 2000.0;
}

static void head_scaled(const vn_mutation_context *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++)
		for (int64_t i = 0; i < p->K; i++)
			row_of(p, x, t)[(p->H - 1) * p->K + i] *= 1.05;
}

static void head_zero(const vn_mutation_context *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++)
		memset(row_of(p, x, t) + (p->H - 1) * p->K, 0, (size_t)p->K * sizeof *x);
}

static void add_offset(const vn_mutation_context *p, double *x)
{
	const double by = 0.02 * rms_of(p, x);
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] += by;
}

void vn_mutation_enlarged(const vn_mutation_context *p, double *x)
{
	scale_numbers(p, x, 1.3);
}

static void absolute_values(const vn_mutation_context *p, double *x)
{
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] = fabs(x[i]);
}

static void numbers_clipped(const vn_mutation_context *p, double *x)
{
	const double most = 0.4 * fabs(x[find_largest(p, x)]);
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] = fmin(fmax(x[i], -most), most);
}

static void add_noise(const vn_mutation_context *p, double *x)
{
	const double size = 0.03 * rms_of(p, x);
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] += size * random_number(i);
}

/* Adds one cast, to this many significant bits including the leading one. */
static void to_bits(const vn_mutation_context *p, double *x, int bits)
{
	for (int64_t i = 0; i < p->T * p->W; i++) {
		int          e;
		const double m = frexp(x[i], &e);
		x[i] = ldexp(rint(ldexp(m, bits)), e - bits);
	}
}

static void rounded_bf16(const vn_mutation_context *p, double *x)
{
	to_bits(p, x, 8);
}
static void rounded_fp8(const vn_mutation_context *p, double *x)
{
	to_bits(p, x, 4);
}

/* ---- scores ---------------------------------------------------------------------------------- */

static void scores_softmaxed(const vn_mutation_context *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++) {
		double *s = row_of(p, x, t), top = s[0], sum = 0.0;
		for (int64_t i = 0; i < p->W; i++)
			top = fmax(top, s[i]);
		for (int64_t i = 0; i < p->W; i++)
			sum += s[i] = exp(s[i] - top);
		for (int64_t i = 0; i < p->W; i++)
			s[i] /= sum;
	}
}

static void best_lowered(const vn_mutation_context *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++) {
		double *s = row_of(p, x, t);
		int64_t best = 0;
		for (int64_t i = 0; i < p->W; i++)
			best = s[i] > s[best] ? i : best;
		s[best] -= 2.0;
	}
}

static void vocabulary_shifted(const vn_mutation_context *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++)
		memmove(row_of(p, x, t), row_of(p, x, t) + 1, (size_t)(p->W - 1) * sizeof *x);
}

static void scores_tempered(const vn_mutation_context *p, double *x)
{
	scale_numbers(p, x, 1.0 / 1.1);
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* Flips bit `from_top` of the number of largest magnitude; 0 is the sign bit. */
static void flip_bit(const vn_mutation_context *p, unsigned char *raw, int from_top)
{
	const size_t n = (size_t)(p->T * p->W), width = vn_dtype_size(p->t.dtype), bit = 8 * width - 1 - (size_t)from_top;
	size_t       at = 0;
	double       most = -1.0;

	for (size_t i = 0; i < n; i++) {
		double x;
		vn_to_f64(&x, raw + i * width, p->t.dtype, 1);
		if (fabs(x) > most) {
			most = fabs(x);
			at = i;
		}
	}
	raw[at * width + bit / 8] ^= (unsigned char)(1u << bit % 8); /* little-endian */
}

void vn_mutation_sign_bit(const vn_mutation_context *p, unsigned char *raw)
{
	flip_bit(p, raw, 0);
}
void vn_mutation_exponent_bit(const vn_mutation_context *p, unsigned char *raw)
{
	flip_bit(p, raw, 1);
}

static void flip_mantissa(const vn_mutation_context *p, unsigned char *raw)
{
	flip_bit(p, raw, (int)(8 * vn_dtype_size(p->t.dtype)) - vn_dtype_digits(p->t.dtype));
}

static void bytes_swapped(const vn_mutation_context *p, unsigned char *raw)
{
	const size_t n = (size_t)(p->T * p->W), width = vn_dtype_size(p->t.dtype);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < width / 2; k++) {
			const unsigned char c = raw[i * width + k];
			raw[i * width + k] = raw[(i + 1) * width - 1 - k];
			raw[(i + 1) * width - 1 - k] = c;
		}
}

const vn_mutation vn_selftest_numbers[] = {
	{ "nan", "one number is NaN", VN_NEEDS_TENSOR, .numbers = vn_mutation_nan, .want = BY(VN_M_NONFINITE) },
	{ "nan-in-reference", "one number of the reference is NaN", VN_NEEDS_TENSOR, VN_SIDE_REF,
	  .numbers = vn_mutation_nan, .want = BY(VN_M_NONFINITE) },
	{ "nan-in-both", "a NaN in the same place on both sides", VN_NEEDS_TENSOR, VN_SIDE_BOTH, .numbers = vn_mutation_nan,
	  .want = BY(VN_M_NONFINITE) },
	{ "nan-everywhere", "every number is NaN", VN_NEEDS_TENSOR, .numbers = all_nan, .want = BY(VN_M_NONFINITE) },
	{ "nan-everywhere-in-both", "every number on both sides is NaN", VN_NEEDS_TENSOR, VN_SIDE_BOTH, .numbers = all_nan,
	  .want = BY(VN_M_NONFINITE) },
	{ "nan-at-the-end", "the very last number is NaN", VN_NEEDS_TENSOR, .numbers = last_nan,
	  .want = BY(VN_M_NONFINITE) },
	{ "nan-in-logits", "one score is NaN", VN_NEEDS_SCORES, .numbers = vn_mutation_nan, .want = BY(VN_M_NONFINITE) },
	{ "infinity", "one number is infinite", VN_NEEDS_TENSOR, .numbers = one_inf, .want = BY(VN_M_NONFINITE) },
	{ "infinity-in-reference", "one number of the reference is infinite", VN_NEEDS_TENSOR, VN_SIDE_REF,
	  .numbers = one_inf, .want = BY(VN_M_NONFINITE) },
	{ "infinity-in-both", "an infinity in the same place on both sides", VN_NEEDS_TENSOR, VN_SIDE_BOTH,
	  .numbers = one_inf, .want = BY(VN_M_NONFINITE) },
	{ "infinity-everywhere-in-both", "nothing but minus infinity on both sides", VN_NEEDS_TENSOR, VN_SIDE_BOTH,
	  .numbers = all_minus_inf, .want = BY(VN_M_NONFINITE) },
	{ "minus-infinity-in-both", "minus infinity in the same place on both sides, outside any mask", VN_NEEDS_TENSOR,
	  VN_SIDE_BOTH, .numbers = minus_inf, .want = BY(VN_M_NONFINITE) },
	{ "minus-infinity-nearly-everywhere", "minus infinity on both sides but for the first token", VN_NEEDS_TENSOR,
	  VN_SIDE_BOTH, .numbers = minus_inf_behind, .want = BY(VN_M_NONFINITE) },
	{ "minus-infinity-in-logits", "every second score on both sides is minus infinity", VN_NEEDS_SCORES, VN_SIDE_BOTH,
	  .numbers = scores_masked, .want = BY(VN_M_NONFINITE) },
	{ "minus-infinity", "one number is minus infinity", VN_NEEDS_TENSOR, .numbers = minus_inf,
	  .want = BY(VN_M_NONFINITE) },

	{ "zeroed", "every number is 0", VN_NEEDS_TENSOR, .numbers = vn_mutation_zeroed, .want = BY(VN_M_NMSE) },
	{ "zeroed-in-both", "every number on both sides is 0", VN_NEEDS_TENSOR, VN_SIDE_BOTH, .numbers = vn_mutation_zeroed,
	  .want = NOTHING },
	{ "scores-zeroed-in-both", "every score on both sides is 0", VN_NEEDS_SCORES, VN_SIDE_BOTH,
	  .numbers = vn_mutation_zeroed, .want = NOTHING },
	{ "all-equal-in-both", "one constant on both sides", VN_NEEDS_TENSOR, VN_SIDE_BOTH, .numbers = all_equal,
	  .want = NOTHING },
	{ "half-zero", "the second half was never written", VN_NEEDS_TENSOR, .numbers = half_zero, .want = BY(VN_M_NMSE) },
	{ "row-zero", "one token's numbers are 0", VN_NEEDS_TENSOR, .numbers = row_zero,
	  .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "channel-zero", "one channel is 0", VN_NEEDS_TENSOR, .numbers = channel_zero, .eight = true, .want = ANY },
	{ "all-equal", "one constant of the usual size", VN_NEEDS_TENSOR, .numbers = all_equal, .want = BY(VN_M_NMSE) },
	{ "garbage", "uninitialised memory of plausible size", VN_NEEDS_TENSOR, .numbers = fill_garbage,
	  .want = BY(VN_M_NMSE) },
	{ "scaled", "1.01 times as large, in bfloat16 1.03", VN_NEEDS_TENSOR, .fine = VN_FINE, .eight = true,
	  .numbers = scaled_little, .want = ANY },
	{ "scaled-without-floor", "1.01 times as large, in bfloat16 1.03, and no floor", VN_NEEDS_TENSOR,
	  .unit = VN_UNIT_NONE, .eight = true, .numbers = scaled_little, .want = ANY },
	{ "scores-scaled-without-floor", "logits 1.01 times as large, in bfloat16 1.03, and no floor", VN_NEEDS_SCORES,
	  .fine = VN_FAIR, .unit = VN_UNIT_NONE, .eight = true, .numbers = scaled_little, .want = ANY },
	{ "halved", "half as large", VN_NEEDS_TENSOR, .numbers = numbers_halved, .want = BY(VN_M_NMSE) },
	{ "negated", "every sign inverted", VN_NEEDS_TENSOR, .numbers = vn_mutation_negated, .want = BY(VN_M_NMSE) },
	{ "absolute", "absolute values", VN_NEEDS_TENSOR, .numbers = absolute_values, .want = BY(VN_M_NMSE) },
	{ "row-scaled", "one token's numbers 1.1 times as large", VN_NEEDS_TENSOR, .fine = VN_FINER, .numbers = row_scaled,
	  .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "channel-scaled", "one channel 15 % off", VN_NEEDS_TENSOR, .fine = VN_FINE, .numbers = channel_scaled,
	  .eight = true, .want = ANY },
	{ "channel-scaled-without-floor", "one channel 15 % off, and no floor", VN_NEEDS_TENSOR, .unit = VN_UNIT_NONE,
	  .numbers = channel_scaled, .eight = true, .want = ANY },
	{ "scaled-behind-a-channel",
	  "a channel of 60000 on both sides, and all others 1.03 times as large, without a floor", VN_NEEDS_TENSOR,
	  VN_SIDE_BOTH, .unit = VN_UNIT_NONE, .numbers = scaled_behind_channel, .want = BY(VN_M_SCALE) },
	{ "scaled-behind-a-number",
	  "a number of 2000 in the first token on both sides, and all others 1.03 times as large, without a floor",
	  VN_NEEDS_TENSOR, VN_SIDE_BOTH, .unit = VN_UNIT_NONE, .numbers = scaled_behind_number, .want = BY(VN_M_SCALE) },
	{ "negated-behind-a-channel", "a channel of 60000 on both sides, and all other signs inverted, without a floor",
	  VN_NEEDS_TENSOR, VN_SIDE_BOTH, .unit = VN_UNIT_NONE, .numbers = negated_behind_channel, .eight = true,
	  .want = BY(VN_M_WORST_CHANNEL_NMSE) },
	{ "zeroed-behind-a-channel", "a channel of 60000 on both sides, and all other numbers 0, without a floor",
	  VN_NEEDS_TENSOR, VN_SIDE_BOTH, .unit = VN_UNIT_NONE, .numbers = zeroed_behind_channel, .eight = true,
	  .want = BY(VN_M_WORST_CHANNEL_NMSE) },
	{ "token-negated-behind-a-number",
	  "a number of 2000 in the first token on both sides, and its other signs inverted, without a floor",
	  VN_NEEDS_TENSOR, VN_SIDE_BOTH, .fine = VN_FAIR, .unit = VN_UNIT_NONE, .numbers = negated_behind_number,
	  .eight = true, .want = BY(VN_M_WORST_CHANNEL_NMSE) },
	{ "head-scaled", "one head 5 % off", VN_NEEDS_HEADS, .fine = VN_FINER, .numbers = head_scaled, .eight = true,
	  .want = ANY },
	{ "offset", "a constant added, 2 % of the rms", VN_NEEDS_TENSOR, .fine = VN_FINEST, .numbers = add_offset,
	  .want = ANY },
	{ "noise", "noise added, 3 % of the rms at most", VN_NEEDS_TENSOR, .fine = VN_FINEST, .numbers = add_noise,
	  .want = ANY },
	{ "clipped", "clipped at 0.4 of the maximum", VN_NEEDS_TENSOR, .numbers = numbers_clipped, .want = ANY },
	{ "rounded-bf16", "rounded to bf16", VN_NEEDS_FINER, .fine = VN_FINEST, .numbers = rounded_bf16, .want = ANY },
	{ "rounded-fp8", "rounded to the bits of float8 e4m3", VN_NEEDS_TENSOR, .fine = VN_FINEST, .numbers = rounded_fp8,
	  .want = ANY },

	{ "scores-softmaxed", "probabilities recorded as logits", VN_NEEDS_SCORES, .numbers = scores_softmaxed,
	  .want = BY(VN_M_KL_MEAN) },
	{ "scores-shifted", "logits of the next vocabulary entry", VN_NEEDS_SCORES, .numbers = vocabulary_shifted,
	  .want = BY(VN_M_KL_MEAN) },
	{ "scores-tempered", "logits divided by 1.1", VN_NEEDS_SCORES, .fine = VN_FINE, .numbers = scores_tempered,
	  .want = ANY },
	{ "scores-channel-scaled", "one score of each row 15 % off", VN_NEEDS_SCORES, .fine = VN_FINE,
	  .numbers = channel_scaled, .eight = true, .want = ANY },
	{ "scores-best-lowered", "the best score of each row less by 2", VN_NEEDS_SCORES, .numbers = best_lowered,
	  .want = BY(VN_M_KL_MEAN) },

	REFERENCE("negated", "every sign inverted", VN_NEEDS_TENSOR, vn_mutation_negated),
	REFERENCE("enlarged", "1.3 times as large", VN_NEEDS_TENSOR, vn_mutation_enlarged),
	REFERENCE("scaled", "1.03 times as large", VN_NEEDS_TENSOR, scaled_some),
	REFERENCE("head-zero", "the last head 0", VN_NEEDS_HEADS, head_zero),
	REFERENCE("garbage", "uninitialised memory of plausible size", VN_NEEDS_TENSOR, fill_garbage),

	{ "sign-bit", "the sign of the largest number inverted", VN_NEEDS_TENSOR, .bits = vn_mutation_sign_bit,
	  .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "exponent-bit", "the first exponent bit of the largest number inverted", VN_NEEDS_TENSOR, .fine = VN_FAIR,
	  .bits = vn_mutation_exponent_bit, .want = ANY },
	{ "mantissa-bit", "the first mantissa bit of the largest number inverted", VN_NEEDS_TENSOR, .fine = VN_FINER,
	  .bits = flip_mantissa, .want = ANY },
	{ "bytes-swapped", "the bytes of every number reversed", VN_NEEDS_TENSOR, .bits = bytes_swapped, .want = ANY },
	{ .name = NULL }
};
