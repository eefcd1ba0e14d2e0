/* selftest_steps.c: mutations of later steps: of one single-token call, of the last one, and of one
 * channel in all of them. */
#include "compare/selftest/selftest_internal.h"

static void step_scaled(const vn_mutation_context *p, double *x)
{
	for (int64_t i = 0; i < p->T * p->W; i++)
		x[i] *= 1.03;
}

static void channel_scaled(const vn_mutation_context *p, double *x)
{
	x[p->channel] *= 1.15;
}
static void channel_zeroed(const vn_mutation_context *p, double *x)
{
	x[p->channel] = 0.0;
}
static void channel_negated(const vn_mutation_context *p, double *x)
{
	x[p->channel] *= -1.0;
}

#define LATER(what, said, need, ...) \
	{ "later-" what, said ", in a later step of one token", need, .when = VN_A_STEP, __VA_ARGS__ }, \
	{ \
		"last-" what, said ", in the last step, of one token", need, .when = VN_LAST_STEP, __VA_ARGS__ \
	}

/* A single step may also be outside by itself. */
#define CHANNEL(what, said, f, m, ...) \
	{ \
		"channel-" what, "one channel " said " in every step of one token", VN_NEEDS_TENSOR, \
			.when = VN_EVERY_STEP, .numbers = f, .want = { .status = VN_OUTSIDE, .metric = m, .many = true }, \
			__VA_ARGS__ \
	}

const vn_mutation vn_selftest_steps[] = {
	LATER("nan", "one number is NaN", VN_NEEDS_TENSOR, .numbers = vn_mutation_nan, .want = BY(VN_M_NONFINITE)),
	LATER("nan-in-both", "a NaN in the same place on both sides", VN_NEEDS_TENSOR, .side = VN_SIDE_BOTH,
	      .numbers = vn_mutation_nan, .want = BY(VN_M_NONFINITE)),
	LATER("zeroed", "every number is 0", VN_NEEDS_TENSOR, .numbers = vn_mutation_zeroed, .want = BY(VN_M_NMSE)),
	LATER("zeroed-in-both", "every number on both sides is 0", VN_NEEDS_TENSOR, .side = VN_SIDE_BOTH,
	      .numbers = vn_mutation_zeroed, .want = NOTHING),
	LATER("negated", "every sign inverted", VN_NEEDS_TENSOR, .numbers = vn_mutation_negated, .want = BY(VN_M_NMSE)),
	LATER("enlarged", "1.3 times as large", VN_NEEDS_TENSOR, .numbers = vn_mutation_enlarged, .want = ANY),
	LATER("scaled", "1.03 times as large", VN_NEEDS_TENSOR, .fine = VN_FINE, .numbers = step_scaled, .want = ANY),
	LATER("sign-bit", "the sign of the largest number inverted", VN_NEEDS_TENSOR, .bits = vn_mutation_sign_bit,
	      .want = BY(VN_M_NMSE)),
	LATER("exponent-bit", "the first exponent bit of the largest number inverted", VN_NEEDS_TENSOR,
	      .bits = vn_mutation_exponent_bit, .want = ANY),
	LATER("heads-swapped", "two heads exchanged", VN_NEEDS_HEADS, .numbers = vn_mutation_heads_swapped,
	      .want = BY(VN_M_NMSE)), /* the metric varies, because a single token has few numbers */
	LATER("other-layer", "the numbers of the same point of another layer", VN_NEEDS_LAYERS,
	      .numbers = vn_mutation_to_others, .want = AS(VN_LAYOUT_MATCH_OWN)),
	{ "last-stale", "the numbers of the step before, in the last step", VN_NEEDS_STEPS, .when = VN_LAST_STEP,
	  .numbers = vn_mutation_to_others, .want = ANY },
	{ "last-stale-in-both", "the numbers of the step before on both sides, in the last step", VN_NEEDS_STEPS,
	  VN_SIDE_BOTH, .when = VN_LAST_STEP, .numbers = vn_mutation_to_others, .want = NOTHING },

	CHANNEL("scaled", "15 % off", channel_scaled, VN_N_METRICS, .fine = VN_FINE),
	CHANNEL("scaled-without-floor", "15 % off, without a floor,", channel_scaled, VN_N_METRICS, .unit = VN_UNIT_NONE),
	CHANNEL("zeroed", "0", channel_zeroed, VN_N_METRICS, .fine = VN_FINE),
	CHANNEL("zeroed-without-floor", "0, without a floor,", channel_zeroed, VN_M_WORST_CHANNEL_NMSE,
	        .unit = VN_UNIT_NONE),
	CHANNEL("negated", "with inverted sign", channel_negated, VN_N_METRICS, .fine = VN_FINE),
	CHANNEL("negated-without-floor", "with inverted sign, without a floor,", channel_negated, VN_M_WORST_CHANNEL_NMSE,
	        .unit = VN_UNIT_NONE),
	{ .name = NULL }
};
