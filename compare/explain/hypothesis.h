/* hypothesis.h: a mistake that may have been made, as data, and what it makes of a checkpoint.
 *
 * A hypothesis says what is wrong (its finding), where, and how it is made again (its change). No text is part of it but
 * the id of the catalogue: sentences are made of these fields at the end (explain_words.h).
 */
#ifndef VN_COMPARE_HYPOTHESIS_H
#define VN_COMPARE_HYPOTHESIS_H

#include "compare/comparison/comparison.h"
#include "libref/plan/plan.h"

enum { VN_CONSTANTS_MOST = 13, VN_BLOCKS_MOST = 64, VN_HEADS_MOST = 256, VN_LIST_MOST = 256, VN_ID = 32 };

/* What is wrong. A new one has a row in hypothesis.c (its id), one in explain_words.c (its sentence) and an estimator. */
typedef enum vn_finding {
	VN_FAULT, /* one of the catalogue, or two */
	VN_THETA, VN_THETA_PLAIN, VN_ROPE_FACTOR, VN_ROPE_CONTEXT, VN_ROPE_LOW, VN_ROPE_HIGH, VN_OFFSET, VN_OFFSET_LATER, VN_ONE_POSITION,
	VN_ANY_POSITION, VN_STRETCH, VN_ROTARY_WIDTH, VN_TABLE_OFFSET, VN_TABLE_OFFSET_LATER,
	VN_EPS, VN_EPS_OUTSIDE, VN_SCORE_SCALE, VN_DELTA_SCALE, VN_WINDOW, VN_WINDOW_AND_SINKS, VN_KEYS_OF_PADDING,
	VN_SLOTS_MOVED, VN_BLOCKS_EXCHANGED, VN_BLOCKS_REORDERED, VN_OWN_KEY_MISSING, VN_KEYS_UNSEEN, VN_CACHE_EMPTY, VN_CACHE_OTHER_TOKENS,
	VN_BIAS_TIMES, VN_RANKS_SUMMED, VN_SHARDS_JOINED, VN_SHARDS_ALONG_TOKENS, VN_SHARDS_REORDERED, VN_ROWS_PADDED,
	VN_TEMPERATURE, VN_CAP, VN_SUM_TIMES, VN_AVERAGE, VN_FACTOR, VN_ADDEND, VN_ONE_VALUE, VN_ZERO, VN_HEADS_REORDERED, VN_TOKENS_MOVED,
	VN_TOKENS_REVERSED, VN_AXES_RECORDED, VN_AXES_OF_HEADS, VN_AXES, VN_RECORDED_LATER, VN_RECORDED_BEFORE, VN_PARALLEL_BLOCK,
	VN_PARTLY_ZERO, VN_PARTLY_OTHER,
	VN_MATRIX_TURNED, VN_INPUTS_MISSING, VN_RANKS_CROSSED, VN_NEVER_LOADED, VN_WEIGHTS_ROUNDED, VN_WEIGHTS_QUANTISED, VN_PRODUCT_ROUNDED,
	VN_MASK_FROM_CALL, VN_CALLS_ALONE, VN_SOFTMAX_SINK, VN_SCORE_CAP, VN_SOFTMAX_ROUNDED, VN_ANGLES_ROUNDED, VN_CALLS_FROM_ZERO, VN_SINE_FOR_COSINE,
	VN_OTHER_WEIGHTS, VN_OTHER_CACHE, VN_OTHER_KEYS, VN_OTHER_VALUES, VN_OTHER_INPUT, VN_STEP_STALE, VN_STEP_LATE, VN_OTHER_TOKEN,
	VN_N_FINDINGS
} vn_finding;

/* Where constants are set: at the node, at all operations of its kind in its layer, or at all there are. */
typedef enum vn_reach { VN_AT_NODE, VN_IN_LAYER, VN_EVERYWHERE } vn_reach;

/* A table of blocks of `block` tokens: in the place of block i stands from[i], of keys and values (0), keys (1), values (2). */
typedef struct vn_block_table { int block, of, n; short from[VN_BLOCKS_MOST]; } vn_block_table;

/* What happened to the matrix of a product, or to its input, before they were multiplied. */
enum { VN_FUSED_MOST = 8, VN_CROSSED_MOST = 8 };
typedef enum vn_edit_kind {
	VN_EDIT_TURNED, /* its bytes, (M,N), are read as those of its transpose, (N,M) */
	VN_EDIT_BACK,   /* it was transposed, and its bytes are read as if it were not */
	VN_EDIT_TAIL,   /* the last n inputs are not in the sum */
	VN_EDIT_RANKS,  /* inputs of rank i of n meet the weights of rank from[i] */
	VN_EDIT_ZERO,
	VN_EDIT_FORMAT, /* rounded */
} vn_edit_kind;
typedef enum vn_weight_format {
	VN_FORMAT_NONE, VN_FORMAT_BF16, VN_FORMAT_F16, VN_FORMAT_TF32, VN_FORMAT_E4M3, VN_FORMAT_E5M2, VN_FORMAT_INT8, VN_N_FORMATS
} vn_weight_format;
typedef enum vn_edit_of { VN_OF_WEIGHTS, VN_OF_INPUTS, VN_OF_BOTH } vn_edit_of;
typedef enum vn_edit_scale { VN_NO_SCALE, VN_SCALE_OF_ALL, VN_SCALE_OF_ROWS } vn_edit_scale; /* of inputs: of each token */
typedef struct vn_matrix_edit {
	vn_edit_kind     kind;
	bool             fused; /* of all matrices of its input as one, before they were split */
	int              n, from[VN_CROSSED_MOST];
	vn_weight_format format;
	vn_edit_of       of;
	vn_edit_scale    scaled;
} vn_matrix_edit;

/* What a mask or a softmax does otherwise. */
typedef enum vn_attend_kind {
	VN_ATTEND_CALLS_FROM_ZERO, /* calls of `call` tokens, recorded as one: the mask counts queries from the first of each */
	VN_ATTEND_CALLS_ALONE,     /* they do not see the keys of those before */
	VN_ATTEND_SINK,            /* one more score, `number`, whose value is 0 */
	VN_ATTEND_CAP,             /* scores capped: number tanh(score / number) */
	VN_ATTEND_ROUNDED,         /* scores and probabilities rounded to these formats */
} vn_attend_kind;
typedef struct vn_attend_edit {
	vn_attend_kind   kind;
	int              call;
	vn_weight_format scores, probs;
	double           number;
} vn_attend_edit;

/* What a rotation does otherwise: formats that it keeps its numbers in. */
typedef struct vn_rotate_edit {
	vn_weight_format positions, frequencies, angles, table;
	int              call; /* positions count from 0 every so many tokens; 0: they do not */
	bool             exchanged; /* sine for cosine, and back */
} vn_rotate_edit;

typedef enum vn_change_kind {
	VN_BY_CATALOGUE, /* as rows of the catalogue are made; by walking it */
	VN_BY_NUMBER,    /* a row of the catalogue with a number of its own */
	VN_BY_CONSTANTS,
	VN_BY_ROWS,      /* of learned positions: row p of the table is row p + rows */
	VN_BY_MATRIX,    /* of a product: its matrix or its input is another (edit_matrix.h) */
	VN_BY_ATTEND,    /* of an attention: its mask or its softmax is another (attend.h) */
	VN_BY_ROTATION,  /* of a rotation: its angles or its tables are others (rotate.h) */
	VN_BY_READS,     /* what is another's is read */
	VN_BY_BLOCKS,
	VN_BY_STEP,      /* what is there is of the step before */
	VN_BY_TOKENS,    /* every token's embedding is that of the token so many further on */
	VN_BY_RESULT,    /* the result is arranged; that is not made again elsewhere */
} vn_change_kind;

typedef struct vn_change {
	vn_change_kind kind;
	bool           later; /* in calls behind the first alone */
	union {
		struct { int row; double value; } number;
		struct { vn_reach reach; int n; struct { const char *name; double value; } set[VN_CONSTANTS_MOST]; } constants;
		int rows;
		struct { int in[VN_MAX_IN], weights; } reads; /* 1 + the value in the place of an input, 1 + the node whose weights; 0: its own */
		vn_block_table blocks;
		vn_matrix_edit matrix;
		vn_attend_edit attend;
		vn_rotate_edit rotate;
		struct { bool due; } step; /* what should have been made there; else what was recorded */
		int tokens;
		struct { double number; int n, list[VN_LIST_MOST]; } result; /* what tells it from others of its finding */
	};
} vn_change;

/* What speaks against an answer: another step of its point. */
typedef enum vn_against { VN_NOTHING_AGAINST, VN_WRONG_OTHERWISE, VN_RIGHT_THERE, VN_ONE_QUERY, VN_ANOTHER_NUMBER } vn_against;

typedef struct vn_hypothesis {
	vn_finding  finding;
	int         fault[2];  /* VN_FAULT: 1 + its row of the catalogue; the second, 0: there is none. Of a fitted constant the first: at one operation with it */
	bool        paired;    /* and columns are paired otherwise */
	vn_change   change;
	int         node;      /* of the model's plan: where it is made */
	int         places, other; /* at so many operations at once, 0 for one; another of them */
	int         heads;     /* where it is made in some of so many heads alone; 0: in all */
	bool        part[VN_HEADS_MOST]; /* in these */
	int64_t     first, last; /* whole numbers that fit as well as the one it has, where there are others; else 0, 0 */
	int64_t     first_also, last_also; /* of a second number */
	bool        capture;   /* of what was recorded, not of what the run went on with */
	vn_replayed local;     /* what is left with it */
	double      limit_fraction; /* of what a healthy operation may leave; NaN: it changes nothing here */
	char        holds[VN_NAME_MAX]; /* the checkpoint whose numbers were recorded in its place; "" */
	vn_against  speaks_against;
	int         against_step;
	bool        refuted;   /* it is no answer, and stands last */

	/* for a person, made last (explain_words.h) */
	char id[VN_ID];       /* of the catalogue, "R2.1e4"; of two, "R1+R2.1e4"; of what is fitted without variant; "" for an arrangement */
	char words[240];      /* "RoPE with theta 10000" */
	char also[VN_NAME_MAX + 8]; /* where else at once: " and layer1.k_rope"; "" */
	char in_part[64];     /* "in heads 4-7 of 8 only"; "": in all */
	char against[120];    /* "step 0 is right, which it would have changed"; "" */
} vn_hypothesis;

/* "R2.1e4"; "": an arrangement. */
const char *vn_hypothesis_id(const vn_hypothesis *h, char id[VN_ID]);
/* The row of the catalogue of that very id; -1: there is none. */
int         vn_hypothesis_row(const vn_hypothesis *h);
/* Can it be made again, in another step or layer, by its change alone? */
bool        vn_hypothesis_is_fitted(const vn_hypothesis *h);
/* The same finding with the same numbers, wherever. Numbers are the same in as many digits as are said of them. */
bool        vn_hypothesis_same(const vn_hypothesis *a, const vn_hypothesis *b);
/* The same at one checkpoint: at the same places, too. */
bool        vn_hypothesis_same_place(const vn_hypothesis *a, const vn_hypothesis *b);

/* A constant of its change, which becomes one of constants. */
void   vn_constant_put(vn_hypothesis *h, const char *name, double value);
double vn_constant_of(const vn_hypothesis *h, const char *name); /* NaN: it has none of that name */
/* Its number: the last constant, that of its fault, or how far rows are moved. */
void   vn_number_put(vn_hypothesis *h, double number);

/* ---- at a checkpoint ------------------------------------------------------------------------------------ */

struct vn_explain_trial;
typedef struct vn_faulty vn_faulty;

/* What a hypothesis makes: a plan to be run with weights, or numbers, or (neither) nothing here. */
typedef struct vn_made {
	const vn_plan   *plan;
	const vn_tensor *weights;
	vn_tensor        own, fine; /* in the candidate's precision, and in a finer one */
	vn_plan         *copy;      /* the rest is vn_made_finish's */
	vn_faulty       *faulty;
	vn_tensor       *table;
	void            *rows;
} vn_made;

vn_status vn_hypothesis_apply(const struct vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
void      vn_made_finish(vn_made *made);
/* The plan of one by constants or reads. VN_ERR_USAGE: a constant is not one of those that it may be. */
vn_status vn_hypothesis_plan(const struct vn_explain_trial *t, const vn_hypothesis *h, vn_plan **plan, vn_error *err);
/* h, which is of another layer's node, at this one: it reads what lies as far before or behind. False: there is none. */
bool      vn_hypothesis_move(const struct vn_explain_trial *t, vn_hypothesis *h, int node);
/* May the input of a node have been that value: recorded, there when it ran, of the shape? */
bool      vn_could_read(const struct vn_explain_trial *t, const vn_node *n, int input, int value);

#endif
