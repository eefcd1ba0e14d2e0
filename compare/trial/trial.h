/* trial.h: a possible mistake as data.
 *
 * A trial says what is wrong (its finding), where, and how to reproduce it (its change).
 * trial_apply.h reproduces it, score.h measures how much error it leaves. Strategies make
 * trials: catalogue.h here, and the folders estimate, rearrange and explain. The text for a
 * person (id, words, also, heads_only, contradicted_by) is written last, from the other fields
 * (explain/sentences.h). No answer depends on it.
 */
#pragma once

#include "compare/comparison/comparison.h"
#include "compare/replay/recompute.h"
#include "libref/base/rounding.h"
#include "libref/plan/fault.h"

enum { VN_CONSTANTS_MOST = 13, VN_BLOCKS_MOST = 64, VN_HEADS_MOST = 256, VN_LIST_MOST = 256, VN_ID = 32 };
enum { VN_TRIAL_NODES = 4096 }; /* of a larger plan, the last operations are left out of vn_trial.at */

/* What is wrong. VN_FINDING_FAULT: one mistake of the catalogue, or two. A new finding needs a row
 * in findings.def and an estimator. */
typedef enum vn_finding {
#define FINDING(name, ...) VN_FINDING_##name,
#define SAID(name, ...)    VN_FINDING_##name,
#include "compare/trial/findings.def"
	VN_N_FINDINGS
} vn_finding;

/* Where constants are changed: at the node, at all operations of its kind in its layer, or at all
 * operations of its kind. */
typedef enum vn_applied_places { VN_AT_NODE, VN_IN_LAYER, VN_EVERYWHERE } vn_applied_places;

/* A table of blocks of `block` tokens: block i is replaced by block from[i]. of: 0 keys and values,
 * 1 keys, 2 values. */
typedef struct vn_block_table {
	int   block, of, n;
	short from[VN_BLOCKS_MOST];
} vn_block_table;
/* Tokens of calls after the first (newest: only the newest token) are cached some slots late (by:
 * how many; less than 0: early). A slot that nothing was written to holds zeros. of: as in
 * vn_block_table. */
typedef struct vn_applied_slots {
	int  of, by;
	bool newest;
} vn_applied_slots;

/* What a cache slot may hold instead of a token of the sequence, whose number is 0 or more. */
enum {
	VN_HOLDS_NOTHING = -1,   /* its key and value are zero */
	VN_HOLDS_NO_VALUES = -2, /* only its value is */
	VN_HOLDS_NO_KEYS = -3,   /* only its key is */
	VN_HOLDS_UNSEEN = -4,    /* no query sees it */
	VN_HOLDS_UNKNOWN = -5,   /* the key or value of no token of the sequence */
};
/* What the cache holds in place of tokens first to first + n - 1. */
typedef struct vn_applied_cached {
	int first, n;
	int holds;  /* the first of the tokens there, or VN_HOLDS_... except UNKNOWN */
	int others; /* how many other tokens fit as well */
} vn_applied_cached;
/* What one slot holds in place of its own key (of 1) or value (of 2). */
typedef struct vn_one_cached {
	int slot, of;
	int holds;  /* the token there; VN_HOLDS_UNKNOWN */
	int others; /* how many other tokens fit as well */
} vn_one_cached;

/* What is changed of the tokens that a cache holds: keys and values are scaled by a number;
 * quantised with one scale for each token and head, and read without it, or with that of another
 * format (number); empty; a token is in the cache twice; or a range is exchanged with the one from
 * `number` on; or tokens of later calls are `number` slots late; or a key head has what the one
 * `number` before it should (0: heads are reversed); or tokens are in reversed order; or heads are
 * stored before tokens, but read as tokens before heads (number 1; -1: the reverse); or columns
 * are in order n of vn_changed_columns. of: as in vn_block_table. */
typedef enum vn_changed_kind {
	VN_CHANGED_SCALED,
	VN_CHANGED_UNSCALED,
	VN_CHANGED_ROUNDED,
	VN_CHANGED_EMPTY,
	VN_CHANGED_TWICE,
	VN_CHANGED_EXCHANGED,
	VN_CHANGED_MOVED,
	VN_CHANGED_ROLLED,
	VN_CHANGED_REVERSED,
	VN_CHANGED_HEADS_FIRST,
	VN_CHANGED_COLUMNS
} vn_changed_kind;
/* Rolled by `number`; reversed; column i + K/2 behind column i; even ones, then odd ones. */
typedef enum vn_changed_columns {
	VN_COLUMN_ROLLED,
	VN_COLUMN_REVERSED,
	VN_COLUMN_PAIRS,
	VN_COLUMN_HALVES
} vn_changed_columns;
/* Which tokens: all; those of the first call, or of later ones; the newest; n from `first` on. */
typedef enum vn_changed_slots {
	VN_SLOTS_ALL,
	VN_SLOTS_FIRST_CALL,
	VN_SLOTS_LATER,
	VN_SLOTS_NEWEST,
	VN_SLOTS_RANGE
} vn_changed_slots;
typedef struct vn_applied_changed {
	vn_changed_kind    kind;
	vn_changed_slots   slots;
	int                of, first, n;
	/* factors; values: of the values, if `of` is 0. ROUNDED: the scale read is the largest number /
	 * number; 0: the format's; less than 0: none. UNSCALED: 1: what `of` leaves out is quantised
	 * too, and scaled */
	double             number, values;
	vn_rounding_format format;
} vn_applied_changed;

/* The bounds that VN_FINDING_CLAMPED sets. */
typedef enum vn_clamp { VN_CLAMP_ABOVE, VN_CLAMP_BELOW, VN_CLAMP_BOTH } vn_clamp;

/* A change of the matrix of a product, or of its input, before the multiplication. */
enum { VN_FUSED_MOST = 8, VN_CROSSED_MOST = 8 };
typedef enum vn_matrix_kind {
	VN_MATRIX_TRANSPOSED, /* the bytes of (M,N) are read as those of its transpose (N,M) */
	VN_MATRIX_BACK,       /* it was transposed, and the bytes are read as if it were not */
	VN_MATRIX_TAIL,       /* the last n inputs are left out of the sum */
	VN_MATRIX_RANKS,      /* inputs of rank i of n are multiplied by the weights of rank from[i] */
	VN_MATRIX_ROWS,       /* block i of n of the rows is block from[i] */
	/* rows of heads of from[0] are put in the order of RoPE's neighbouring pairs (n: 1, of its
	 * split halves), and then back as heads of from[1] (0: not) */
	VN_MATRIX_PAIRS,
	VN_MATRIX_ZERO,
	VN_MATRIX_FACTOR, /* times `factor` */
	VN_MATRIX_ROLLED, /* columns are rolled by `factor` */
	VN_MATRIX_FORMAT, /* rounded */
} vn_matrix_kind;
typedef enum vn_rounded_part { VN_OF_WEIGHTS, VN_OF_INPUTS, VN_OF_BOTH } vn_rounded_part;
/* VN_SCALE_OF_ROWS: one scale per row of the matrix, or per token of the input */
typedef enum vn_rounded_scale { VN_NO_SCALE, VN_SCALE_OF_ALL, VN_SCALE_OF_ROWS } vn_rounded_scale;
typedef struct vn_applied_matrix {
	vn_matrix_kind     kind;
	bool               fused; /* the edit applies to all matrices of this input, fused, before they are split */
	int                n, from[VN_CROSSED_MOST];
	double             factor;
	vn_rounding_format format;
	vn_rounded_part    of;
	vn_rounded_scale   scaled;
	bool               stored; /* the weights were rounded to the engine's storage format before */
} vn_applied_matrix;

/* A change of the mask or the softmax. The first three, up to VN_ATTEND_CALLS_FUTURE, are of calls
 * (estimate_attention.c relies on the order). */
typedef enum vn_attend_kind {
	/* in calls of several tokens after the first, the mask counts queries from the start of each
	 * call */
	VN_ATTEND_CALLS_FROM_ZERO,
	VN_ATTEND_CALLS_ALONE,  /* such calls do not see keys of earlier calls */
	VN_ATTEND_CALLS_FUTURE, /* such calls see all keys of their own call, also later ones */
	/* calls after the one that has them do not see the `unseen` keys from `number` on */
	VN_ATTEND_CALLS_UNSEEN,
	VN_ATTEND_FIRST_KEY, /* a query sees the first key of the sequence alone */
	/* Calls of one token after the first see only: their own key; the first key in the window; the
	 * keys of the first call. */
	VN_ATTEND_ONE_OWN,
	VN_ATTEND_ONE_FIRST,
	VN_ATTEND_ONE_PROMPT,
	VN_ATTEND_LARGEST, /* the largest score of a query has all of its weight */
	VN_ATTEND_SINK,    /* one more score, `number`, whose value is 0 */
	/* `number` is added to the sum of exponentials after the largest score was subtracted */
	VN_ATTEND_SUM_PLUS,
	VN_ATTEND_CAP, /* scores become number * tanh(score / number), in place of another cap */
	/* numbers of the softmax, inputs of both products, or cached keys and values are rounded */
	VN_ATTEND_ROUNDED,
	VN_ATTEND_FROM_ZERO, /* the maximum of the softmax starts at 0; exponentials are rounded, their sum is not */
	VN_ATTEND_PADDING,   /* keys of the padding of its batch, or of prompts packed before, are seen */
	/* Heads of queries (number: 1), keys (2) and values (4) are stored before their tokens, but
	 * read as tokens before heads; plus 8: the reverse. */
	VN_ATTEND_HEADS_FIRST,
} vn_attend_kind;
typedef struct vn_applied_attention {
	vn_attend_kind     kind;
	int                call; /* the tokens of each call, though several calls were recorded as one; or VN_OWN_CALLS */
	/* formats in the softmax, of scores (if exps is set: also of their distance to the largest),
	 * exponentials, their sum, probabilities */
	vn_rounding_format scores, exps, sum, probs;
	vn_rounding_format inputs; /* queries and keys, and probabilities and values, when they are multiplied */
	vn_rounding_format cache;  /* keys and values */
	bool               scaled; /* with one scale for each token and head of the cache */
	double             number;
	int                unseen;
} vn_applied_attention;

/* An operation in a narrower format than the run's: only its result is rounded, or (whole) its
 * inputs too. */
typedef struct vn_applied_format {
	vn_rounding_format format;
	bool               whole;
	bool               router; /* of experts */
} vn_applied_format;

/* How a trial is reproduced. The kinds between VN_BY_CATALOGUE and VN_BY_RESULT are fitted
 * (vn_trial_is_fitted); those from VN_BY_RESULT on cannot be reproduced elsewhere. Two
 * switches name all kinds, so that the compiler finds where a new one needs a case: same_change in
 * trial.c, vn_trial_apply in trial_apply.c. */
typedef enum vn_applied_kind {
	VN_BY_CATALOGUE,  /* a row of the catalogue as it stands */
	VN_BY_NUMBER,     /* a row of the catalogue with another number */
	VN_BY_CONSTANTS,  /* other constants of the operation */
	VN_BY_ROWS,       /* learned positions: row p of the table is replaced by row p + rows */
	VN_BY_MATRIX,     /* a product's matrix or input is changed (apply_matrix.h) */
	VN_BY_ATTEND,     /* an attention's mask or softmax is changed (attend.h) */
	VN_BY_ROTATION,   /* a rotation's angles or tables are changed (vn_other_rotation) */
	VN_BY_NARROW,     /* computed or stored in a narrower format (vn_narrow_make) */
	VN_BY_ACTIVATION, /* another activation */
	VN_BY_READS,      /* other values or weights are read */
	VN_BY_BLOCKS,     /* cache blocks are exchanged (vn_block_table) */
	VN_BY_SLOTS,      /* tokens of calls after the first are cached in another slot (vn_applied_slots) */
	VN_BY_STATE,      /* a call begins with another state (vn_other_state) */
	VN_BY_STEP,       /* the content is from the step before */
	/* Each embedding is that of a later token in the sequence; VN_FINDING_POSITION_FOR_ID: of the
	 * token's position. */
	VN_BY_TOKENS,
	VN_BY_RESULT,     /* the result is rearranged */
	VN_BY_CACHED,     /* slots of a cache (vn_applied_cached) */
	VN_BY_CHANGED,    /* slots that hold their own tokens, changed (vn_applied_changed) */
	VN_BY_ONE_CACHED, /* one slot, of which only the key or only the value is wrong (vn_one_cached) */
	VN_BY_REPLAY      /* as a replay file has it: another operation, by the model itself */
} vn_applied_kind;

typedef struct vn_applied {
	vn_applied_kind kind;
	bool            later; /* only in calls after the first */
	union {
		struct {
			int    row;
			double value;
		} number;
		struct {
			vn_applied_places places;
			int               n;
			struct {
				const char *name;
				double      value;
			} set[VN_CONSTANTS_MOST];
		} constants;
		int rows;
		/* in: 1 + the value read in place of an input; weights: 1 + the node whose weights are
		 * used; 0: the node's own */
		/* matrix: only the matrix of these weights is used, with the node's own bias */
		struct {
			int  in[VN_MAX_IN], weights;
			bool matrix;
		} reads;
		vn_block_table       blocks;
		vn_applied_slots     slots;
		vn_applied_matrix    matrix;
		vn_applied_attention attend;
		vn_other_rotation    rotate;
		vn_applied_format    narrow;
		int                  activation; /* vn_act */
		/* due true: the previous step's correct tensor; false: the one it recorded */
		struct {
			bool due;
		} step;
		vn_other_state     state;
		int                tokens;
		vn_applied_cached  cached;
		vn_one_cached      one_cached;
		vn_applied_changed changed;
		/* VN_FINDING_VARIANT: a row of variants.def, and the texts in its sentence */
		struct {
			int         row;
			const char *is, *due;
		} variant;
		/* distinguishes the trial from others with the same finding */
		struct {
			double   number;
			int      factor; /* VN_FINDING_FACTOR: its vn_factor_name */
			/* the same: what was measured, and by how much it may be off; number may be a
			 * constant near it */
			double   measured, within;
			vn_clamp clamp; /* VN_FINDING_CLAMPED */
			/* an order; of rows and channels: the first and last of each run */
			int      n, list[VN_LIST_MOST];
			bool     more; /* there are more runs than the list has */
		} result;
	};
} vn_applied;

/* What another step of the point says against an answer. */
typedef enum vn_refutation {
	VN_NOTHING_AGAINST,
	VN_WRONG_OTHERWISE, /* the step is wrong too, but not by this mistake */
	VN_RIGHT_THERE,     /* the step is right, but this mistake would change it */
	VN_ONE_QUERY,       /* measured on one query of attention, and no other step confirms it */
	VN_ANOTHER_NUMBER   /* the step is wrong by the same mistake with another constant */
} vn_refutation;

typedef struct vn_trial {
	vn_finding    finding;
	/* VN_FINDING_FAULT: 1 + row in the catalogue of the fault, and of a second one, or 0. With a
	 * fitted constant, [0] is a fault that is made at the same operation, or 0 */
	int           fault[2];
	bool          paired; /* columns are also paired in the other way */
	vn_applied    applied;
	int           node; /* in the model's plan: where the mistake is made; -1: no plan, at the checkpoint */
	/* places: number of operations at which it is made (0: one); other: one of them besides node */
	int           places, other;
	uint64_t      at[VN_TRIAL_NODES / 64]; /* a bit for each of these operations, with `places` */
	int           heads;                   /* made in some of `heads` heads; 0: in all */
	bool          part[VN_HEADS_MOST];     /* those heads */
	/* range of integers that fit as well as its own number; 0, 0: no others */
	int64_t       first, last;
	int64_t       first_also, last_also; /* same for a second number */
	bool          recorder_fault;        /* only what was recorded is wrong, not what the run continued with */
	vn_replayed   residual;
	/* residual / allowed residual of a correct operation; NaN: it changes nothing here */
	double        limit_fraction;
	bool          estimated; /* from some columns of the logits: it leaves too much error to be an answer */
	char          recorded_instead[VN_NAME_MAX]; /* the checkpoint whose numbers were recorded instead; "" */
	vn_refutation speaks_against;
	int           against_step;
	bool          refuted; /* it is no answer, and comes last */
	bool          lent;    /* found in another step or layer, where a wrong one would not fit */
	bool          beside;  /* another mechanism with the numbers of a fault of the catalogue, which comes first */

	/* Text for a person, written last (sentences.h). */
	/* in the catalogue: "R2.1e4"; of two faults: "R1+R2.1e4"; of a fitted one without variant; "":
	 * an arrangement */
	char id[VN_ID];
	char words[240]; /* "RoPE with theta 10000" */
	/* where else it is made at the same time: " and layer1.k_rope"; "" */
	char also[VN_NAME_MAX + 8];
	char heads_only[80];       /* "in heads 4-7 of 8 only"; "": in all heads */
	char contradicted_by[120]; /* "step 0 is right, but this mistake would change it"; "" */
} vn_trial;

/* A trial with that finding, made at a node by the change that the rest sets (vn_applied). */
#define VN_TRIAL(name, at, ...) ((vn_trial) { .finding = VN_FINDING_##name, .node = at, .applied = { __VA_ARGS__ } })

/* Returns its id in the catalogue; VN_NO_MISTAKE: an arrangement, or two mistakes at once. */
vn_mistake  vn_trial_mistake(const vn_trial *h);
/* Writes "R2.1e4", "R1+N2", or "" for an arrangement, to id. Returns id. */
const char *vn_trial_id(const vn_trial *h, char id[VN_ID]);
/* Returns the row of the catalogue with exactly that id, or -1. */
int         vn_trial_row(const vn_trial *h);
/* Is it made at this operation? */
bool        vn_trial_made_at(const vn_trial *h, int node);
/* Can it be reproduced in another step or layer by its change alone? */
bool        vn_trial_is_fitted(const vn_trial *h);
/* Is it two faults of the catalogue at one operation? */
bool        vn_trial_is_pair(const vn_trial *h);
/* Do both have the same finding and numbers, wherever they are made? Numbers are compared in as
 * many digits as reports show. */
bool        vn_trial_same(const vn_trial *a, const vn_trial *b);
/* Have they the same id at the same operation? One may be a fault of the catalogue and the other a
 * fitted number. */
bool        vn_trial_same_mistake(const vn_trial *a, const vn_trial *b);
/* Are both one mistake of the same operation, in whatever form and with whatever number: RoPE with
 * one theta and with another? Those without an id are, if their findings are the same. */
bool        vn_trial_same_mechanism(const vn_trial *a, const vn_trial *b);
/* Same, and are they also made at the same places? */
bool        vn_trial_same_place(const vn_trial *a, const vn_trial *b);

/* Sets a constant of its change, which becomes VN_BY_CONSTANTS. */
void        vn_trial_constant_put(vn_trial *h, const char *name, double value);
double      vn_trial_constant(const vn_trial *h, const char *name); /* NaN: no constant of that name */
/* Sets its number: the last constant, the number of its fault, or the offset of rows. */
void        vn_trial_number_put(vn_trial *h, double number);
/* The constant that is the number of a finding; NULL: none. */
const char *vn_finding_constant(vn_finding f);
/* Returns its number: the constant that its row in findings.def names, or the number of its
 * change, which must be of a kind that has one. */
double      vn_trial_number(const vn_trial *h);
