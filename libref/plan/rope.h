/* rope.h: the rotary frequencies of a model, one float per pair of columns.
 *
 * HuggingFace computes them in float32 even for a float64 model, with every step rounded, so their
 * last bits belong to the model: at position 30000 one ulp of a frequency changes the angle by
 * 2e-3. This file follows that chain operation by operation. The formulas are in specs/models.md,
 * 1.5 and 1.6.
 *
 * The power base^(2i/R) has two sources in torch: a vectorised one for whole blocks of exponents,
 * and the C library's powf for the rest. They round differently in about one element of a hundred.
 * The block is 32 on a machine with AVX-512 and 16 with AVX2, so two machines may make different
 * references: R = 32 and R = 96 are the common widths where they can differ. See pow_block.
 *
 * Owner    values only, nothing to free.
 * Threads  safe, no state. Assumes round to nearest.
 * Errors   none: the caller has checked the configuration; values out of range are programming
 *          errors and asserted.
 */
#pragma once

#include "libref/base/rounding.h"

#include <stdbool.h>
#include <stdint.h>

/* The last two types depend on the length of the sequence: every call rotates its own queries and
 * keys according to the length so far, and cached keys keep their rotation. transformers does the
 * same in one sequence of calls. */
typedef enum vn_rope_type {
	VN_ROPE_DEFAULT,
	VN_ROPE_LINEAR,
	VN_ROPE_YARN,
	VN_ROPE_LLAMA3,
	VN_ROPE_DYNAMIC,
	VN_ROPE_LONGROPE,
	VN_N_ROPES
} vn_rope_type;

/* The columns of pair i < R/2 in a head, from its first rotated column on: i and i + R/2; 2i and
 * 2i + 1; i and i + K/2 from column 0 on (K: width of the head; of experiments); 2i and 2i + 1, but
 * the rotated pair is written to i and i + R/2. */
typedef enum vn_pairing {
	VN_PAIR_HALVES,
	VN_PAIR_NEIGHBOURS,
	VN_PAIR_ACROSS,
	VN_PAIR_SORTED,
	VN_N_PAIRINGS
} vn_pairing;

/* How correct implementations round an angle (compare/replay/reference_variants.h), in the order of
 * the enum: as torch does; frequency and product in double; the frequency in double, rounded once,
 * and a product of floats; each pair's angle as the previous pair's times one float. */
typedef enum vn_angles { VN_ANGLES_TORCH, VN_ANGLES_WIDE, VN_ANGLES_ONCE, VN_ANGLES_CHAIN, VN_N_ANGLES } vn_angles;

/* A list of numbers that belongs to a plan. */
typedef struct vn_list {
	int    n;
	float *x; /* (n) */
} vn_list;

/* Names as in config.json where possible. Zero means the default stated; if none is stated, the
 * types that use the field require it. */
typedef struct vn_rope {
	vn_rope_type type;
	double       theta;            /* the base, rope_theta; above 1 */
	int          rotary_dim;       /* R, rotated columns of a head; even, at least 2 (dynamic: 4) */
	double       factor;           /* linear, yarn, llama3, dynamic, longrope: context stretch, a ratio.
	                             yarn, longrope: 0 means max_context / original_context */
	double       low_freq_factor;  /* llama3: original_context / longest kept wavelength */
	double       high_freq_factor; /* llama3: original_context / shortest scaled wavelength */
	double       beta_fast;        /* yarn: rotations within original_context; 0 means 32 */
	double       beta_slow;        /* yarn: the same, of the slow end; 0 means 1 */
	double       attention_factor; /* yarn, longrope: multiplies cos and sin; 0 means derived */
	double       mscale;           /* yarn: used if this and the next field are not 0 */
	double       mscale_all_dim;
	int          original_context; /* yarn, llama3, longrope: original_max_position_embeddings, tokens */
	int          max_context;      /* max_position_embeddings, tokens; for dynamic, and for factor 0 */
	/* longrope, for sequences up to original_context: 1 + the number of a list of R/2 divisors; 0:
	 * none */
	int          short_factor;
	int          long_factor; /* the same, for longer sequences */
	int          first;       /* the first rotated column of a head */
	int          pairs;       /* vn_pairing */
	bool         truncate;    /* yarn: ramp ends at whole pairs. HF's default is true */
	int          pow_block;   /* exponents per vector step of the torch that made the
	                             reference: 32 AVX-512, 16 AVX2, anything above R/2 none;
	                             0 means 32 */
} vn_rope;

/* Calls that a recording joined to one, or states as one. VN_OWN_CALLS, in place of their length:
 * the calls of the recording (vn_call_begin). */
enum { VN_OWN_CALLS = -1 };

/* Tokens at positions first to last, or (open) from first on, are rotated as if at times * position
 * + plus, rounded down if `whole`. */
typedef struct vn_position_map {
	int64_t first, last;
	double  times, plus;
	bool    whole, open;
} vn_position_map;

/* Formats to which an engine rounds the numbers of a rotation, and other positions. */
typedef struct vn_other_rotation {
	vn_rounding_format positions, frequencies, angles, table;
	int  call;  /* positions restart at 0 every `call` tokens, or (VN_OWN_CALLS) in every call; 0: they do not */
	bool moved; /* some tokens are at other positions */
	vn_position_map map;
	bool            exchanged; /* sine and cosine are exchanged */
	bool            by_ids;    /* the token ids are the positions */
	/* 1: the tokens before a call (of `call`, as above) are added to its positions again */
	int             twice;
	/* 1: the positions of a call, as 64-bit integers, are read as if they had 32 bits: every
	 * second one is 0 */
	int             words;
} vn_other_rotation;

/* What an experiment changes in pairs and angles; how a replay has them rounded. All 0: nothing. */
typedef struct vn_rope_experiment {
	int               pairing;      /* vn_pairing; 0: the model's */
	int               offset;       /* added to every position */
	double            angle_factor; /* multiplies every angle; 0 means 1 */
	int               half_angles;  /* 1: position, frequency and their product are rounded to f16 */
	int               step_offset;  /* added to every position after the first call */
	int               step_zero;    /* 1: every call counts positions from 0 */
	/* after the first call, positions stay at that of the second (1), or advance by two (2) */
	int               step_stuck;
	int               sections;     /* 1: pairs i with i mod 3 in {1, 2} stay at position 0 */
	int               one_position; /* 1: every token has position `offset` */
	double            other_theta;  /* that of tokens from position theta_from on; 0: theta */
	int               theta_from;
	int               rolled; /* pair i has the frequency of pair i + rolled, wrapping around */
	/* dynamic and longrope: the length of the sequence for which frequencies are computed; -1: that
	 * of the call; 0: the tokens so far */
	int               length;
	int               rounding; /* vn_rounding_format of cos, sin and both products */
	int               angles;   /* vn_angles */
	vn_other_rotation other;    /* what `explain` tries beyond the catalogue */
} vn_rope_experiment;

/* Computes inv_freq (R/2), in radians per position for pairs i = 0 .. R/2-1, and attention_factor,
 * which multiplies cos and sin in float; 1 except for yarn and longrope. lists: the plan's, used by
 * longrope. length: tokens of the sequence so far, including those of the call, used by dynamic and
 * longrope. Equal to HF's model.rotary_emb.inv_freq and attention_scaling, bit for bit. */
void vn_rope_frequencies(const vn_rope *r, const vn_list *lists, int64_t length, float *inv_freq,
                         float *attention_factor);

/* Same, and also in double: the powers wide[0] (R/2) and the scaling factors wide[1] (R/2), whose
 * products are the frequencies. inv_freq (R/2): as above. Returns the base of the powers. */
double vn_rope_frequencies_wide(const vn_rope *r, const vn_list *lists, int64_t length, float *inv_freq,
                                double *const wide[2], float *attention_factor);

/* Does a rotation with these constants have finite frequencies, computed without a division by
 * zero? If not, writes why. Every constant is in its range (op.def); rotary_dim is even, and at
 * least 2. */
enum { VN_ROPE_WHY = 256 };
bool vn_rope_check(const vn_rope *r, const vn_list *lists, int n_lists, char why[VN_ROPE_WHY]);

/* Below, e is NULL for the usual rotation (vn_node_rope_experiment). */
/* A token of a call: how many came before the call, its number in the call; for an experiment also
 * its id, and where its call begins (vn_call_begin). */
typedef struct vn_rope_token {
	int64_t past, t;
	int32_t id;
	int64_t begin, prompt; /* prompt: of a later call: tokens of the first; else 0 */
} vn_rope_token;
/* Returns the position by which a token is rotated; an experiment's may be a fraction. */
double  vn_rope_position(const vn_rope_experiment *e, const vn_rope_token *token);
/* Returns the length for which dynamic and longrope compute the frequencies of a call. */
int64_t vn_rope_length(const vn_rope_experiment *e, int64_t past, int64_t tokens);
/* Returns the pair, of n, that is rotated by frequency k of vn_rope_frequencies. */
int64_t vn_rope_rolled(const vn_rope_experiment *e, int64_t k, int64_t n);
/* Returns the angle in radians, a product of floats, of pair i with frequency f at a position. */
float   vn_rope_angle(const vn_rope_experiment *e, float f, int64_t i, double position);
/* Returns the position at which the call of token i begins, if calls have `call` tokens each, or
 * (VN_OWN_CALLS) as in begins. -1: the first call, or no calls are asked for (0); for VN_OWN_CALLS
 * also a call of one token. begins: (tokens) positions, as vn_site has them. */
int64_t vn_call_begin(const int64_t *begins, int call, int64_t i);
/* The two columns of pair i in a head of width K, as read and as written. */
typedef struct vn_rope_columns {
	int64_t in[2], out[2];
} vn_rope_columns;
vn_rope_columns vn_rope_pair(const vn_rope *r, const vn_rope_experiment *e, int64_t K, int64_t i);
