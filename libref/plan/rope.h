/* rope.h: the rotary frequencies of a model, one float per pair of columns.
 *
 * HuggingFace computes them in float32 even for a float64 model, with every step rounded,
 * so their last bits belong to the model: at position 30000 one ulp of a frequency turns
 * the angle by 2e-3. This file follows that chain operation by operation. The formulas
 * are in specs, models.md 1.5 and 1.6.
 *
 * The power base^(2i/R) has two sources in torch: a vectorised one for whole blocks of
 * the exponents, and the C library's powf for what is left over. Both round differently,
 * in about one element of a hundred. The block is 32 on a machine with AVX-512 and 16
 * with AVX2, so a reference made on one is not always one made on the other: R = 32 and
 * R = 96 are the common widths where the two can differ. See pow_block.
 *
 * Ownership  values only, nothing to free.
 * Threads    safe, no state. Assumes round to nearest.
 * Errors     none: the caller has read and checked the configuration; what is out of
 *            range here is a programmer's mistake and asserted.
 */
#ifndef VN_LIBREF_PLAN_ROPE_H
#define VN_LIBREF_PLAN_ROPE_H

#include <stdbool.h>
#include <stdint.h>

/* The last two depend on the length of the sequence: every call turns its own
 * queries and keys by the length so far, and keys that are cached keep the turn
 * they had. So does transformers, in one sequence of calls. */
typedef enum vn_rope_type {
	VN_ROPE_DEFAULT,
	VN_ROPE_LINEAR,
	VN_ROPE_YARN,
	VN_ROPE_LLAMA3,
	VN_ROPE_DYNAMIC,
	VN_ROPE_LONGROPE,
	VN_N_ROPES
} vn_rope_type;

/* Which columns of a head turn together, pair i < R/2: i and i + R/2, 2i and 2i + 1, i and
 * i + K/2 (K the width of the head). Models of our families have the first. */
typedef enum vn_pairing { VN_PAIR_HALVES, VN_PAIR_NEIGHBOURS, VN_PAIR_ACROSS, VN_N_PAIRINGS } vn_pairing;

/* How other implementations round an angle, none of them a fault (compare/replay/reference_variants.h): as torch does; frequency and product
 * in double; the frequency in double, rounded once, and a product of floats; each pair's angle that of the pair before times one float. */
typedef enum vn_angles { VN_ANGLES_TORCH, VN_ANGLES_WIDE, VN_ANGLES_ONCE, VN_ANGLES_CHAIN, VN_N_ANGLES } vn_angles;

/* A list of numbers that belongs to a plan. */
typedef struct vn_list {
	int    n;
	float *x; /* (n) */
} vn_list;

/* Named as in config.json where the name is the same. A zero takes the default given;
 * where none is given the type that uses the field requires it. */
typedef struct vn_rope {
	vn_rope_type type;
	double theta;             /* the base, rope_theta; above 1 */
	int    rotary_dim;        /* R, rotated columns of a head; even, at least 2 (dynamic: 4) */
	double factor;            /* linear, yarn, llama3, dynamic, longrope: context stretch, a ratio.
	                             yarn, longrope: 0 means max_context / original_context */
	double low_freq_factor;   /* llama3: original_context / longest kept wavelength */
	double high_freq_factor;  /* llama3: original_context / shortest scaled wavelength */
	double beta_fast;         /* yarn: turns within original_context; 0 means 32 */
	double beta_slow;         /* yarn: the same, of the slow end; 0 means 1 */
	double attention_factor;  /* yarn, longrope: multiplies cos and sin; 0 means derived */
	double mscale;            /* yarn: used when both this and the next are not 0 */
	double mscale_all_dim;
	int    original_context;  /* yarn, llama3, longrope: original_max_position_embeddings, tokens */
	int    max_context;       /* max_position_embeddings, tokens; for dynamic, and for factor 0 */
	int    short_factor;      /* longrope: lists of R/2 divisors, for sequences up to original_context */
	int    long_factor;       /* and for longer ones: 1 + the number of the list, 0: none */
	bool   truncate;          /* yarn: ramp ends at whole pairs. Note: true is HF's default */
	int    pow_block;         /* exponents per vector step of the torch that made the
	                             reference: 32 AVX-512, 16 AVX2, anything above R/2 none;
	                             0 means 32 */
	/* For experiments: */
	int    pairing;           /* vn_pairing */
	int    offset;            /* added to every position */
	double turn;              /* multiplies every angle; 0 means 1 */
	int    half_angles;       /* 1: position, frequency and their product are rounded to f16 */
	int    step_offset;       /* added to every position behind the first call */
	int    step_zero;         /* 1: every call counts positions from 0 */
	int    sections;          /* 1: pairs i with i mod 3 in {1, 2} stay at position 0 */
	int    steps;             /* a replay's: vn_intermediate_rounding of cos, sin and both products */
	int    one_position;      /* 1: every token stands at position `offset` */
	int    angles;            /* a replay's: vn_angles */
} vn_rope;

/* inv_freq (R/2): radians per position, for pair i = 0 .. R/2-1.
 * attention_factor: multiplies cos and sin, in float, after they are taken; 1 but for
 * yarn and longrope. lists: the plan's; longrope alone reads them. length: tokens of the
 * sequence so far, those of the call included; dynamic and longrope alone look at it.
 * Equal to HF's model.rotary_emb.inv_freq and attention_scaling, bit for bit. */
void vn_rope_frequencies(const vn_rope *r, const vn_list *lists, int64_t length, float *inv_freq, float *attention_factor);

/* The same where powers are taken in double, kept (R/2), and what the scaling multiplies them by, stretch (R/2): frequencies are
 * their products. inv_freq (R/2): as above. Returns the base of the powers. */
double vn_rope_frequencies_wide(const vn_rope *r, const vn_list *lists, int64_t length, float *inv_freq, double *kept, double *stretch,
                                float *attention_factor);

/* The angle, in radians, of pair i with frequency f for token t of a call behind `past`
 * tokens: the product of floats. */
float vn_rope_angle(const vn_rope *r, float f, int64_t i, int64_t past, int64_t t);
/* The two columns of pair i in a head of K. */
void  vn_rope_pair(const vn_rope *r, int64_t K, int64_t i, int64_t *first, int64_t *second);

#endif
