/* explain.h: which known mistake reproduces a tensor that came out wrong.
 *
 * Every fault of the catalogue (libref/plan/fault.h) that can be made at the operation of
 * an origin, or at one between it and what was captured, is a hypothesis: the checkpoint is
 * computed with that fault on the candidate's own inputs, in the candidate's precision
 * (probe.h), and what the candidate has is held against it as a replay holds it against
 * the sound operation (local.h). A hypothesis explains the checkpoint when what is left
 * is within its floor, as of a healthy operation, and a quarter of the error at most (a sixteenth
 * of what was fitted, which has a number of its own to come near with, and of an error that is below 16 floors).
 *
 * Where several operations lie between the checkpoint and what was captured, one mistake is
 * tried at all of them at once, too, as an engine makes it: on queries and keys, in a layer, everywhere.
 *
 * Where none of the catalogue does, parameters are fitted (theta, eps, scales, an offset of
 * positions, a factor), and what the operation gives is tried in other arrangements; where some
 * heads alone came out otherwise, everything is tried in these. Where none of these does, the error is put into words.
 *
 * An answer is to hold in all steps of its point (explain_steps.c): where another step is right, which
 * it would have changed, or wrong otherwise, hypotheses of which this is not so go before it.
 *
 * Hypotheses that explain it and leave less than VN_EXPLAIN_APART times as much as the best
 * cannot be told from it by these numbers: aliases.
 */
#ifndef VN_COMPARE_EXPLAIN_H
#define VN_COMPARE_EXPLAIN_H

#include "compare/compare.h"

#define VN_EXPLAIN_APART 2.0
/* Less than this of a floor is nothing: who reproduces bits is not better than who comes as near as rounding does. */
#define VN_EXPLAIN_LEAST 0.25

/* How what is fitted is made: constants that are set, at its node, at all operations of that kind in its layer, or at all there are. */
typedef enum vn_reach { VN_AT_NODE, VN_IN_LAYER, VN_EVERYWHERE } vn_reach;
/* What the step before recorded; what the operation should have made there. */
typedef enum vn_late { VN_IN_TIME, VN_AS_RECORDED, VN_AS_IT_SHOULD } vn_late;
enum { VN_SETTINGS = 13, VN_TABLE_MOST = 64 };
/* A table of blocks of `block` tokens: in the place of block i stands from[i], of keys and values (0), keys (1), values (2). 0 tokens: none. */
typedef struct vn_block_table { int block, of, n; short from[VN_TABLE_MOST]; } vn_block_table;
typedef struct vn_setting {
	vn_reach reach;
	int      n;               /* constants */
	struct { const char *name; double value; } set[VN_SETTINGS];
	int      fault;           /* 1 + a row of the catalogue, which is made with `number` for its own; 0: none */
	double   number;          /* of an arrangement, which is not made again: what it is multiplied by, or the like */
	vn_block_table table;
	int      rows;            /* of learned positions: row p of the table is row p + rows */
	int64_t  first, last;     /* whole numbers that fit as well as the one that is set, where there are others; else 0, 0 */
	bool     later;           /* in calls behind the first alone */
	int      reads[VN_MAX_IN]; /* 1 + the value that is read in the place of an input; 0: its own */
	int      weights_of;      /* 1 + the node whose weights it has; 0: its own */
	int      late;            /* vn_late: no operation is made, what is there is of the step before */
	int      tokens;          /* of an embedding: every token's is that of the token so many further on */
} vn_setting;

enum { VN_PART_HEADS = 256 };

typedef struct vn_hypothesis {
	char        id[32];      /* of the catalogue, "R2.1e4"; of two, "R1+R2.1e4"; of what is fitted the id without variant; "" for an arrangement */
	char        words[240];  /* "RoPE with theta 10000" */
	char        holds[VN_NAME_MAX]; /* the checkpoint whose numbers were recorded in its place; "" */
	int         node;        /* of the model's plan: where it is made */
	char         also[VN_NAME_MAX + 8]; /* where else at once: " and layer1.k_rope"; "" */
	vn_setting  made;
	bool        part[VN_PART_HEADS]; /* where it is made in some heads alone: in these */
	char        in_part[64]; /* "in heads 4-7 of 8 alone"; "": in all */
	bool        capture;     /* of what was recorded, not of what the run went on with */
	vn_replayed local;       /* what is left with it */
	double      used;        /* vn_local_used of that: 1 is as much as a healthy operation may leave */
	char        against[120]; /* what another step of the same point says: "step 0 is right, which it would have changed"; "" */
	bool        refuted;     /* by that: it is no answer, and stands last */
} vn_hypothesis;

typedef struct vn_explanation {
	int            point;
	vn_hypothesis *by;       /* what was tried, those that leave least first: VN_EXPLAIN_KEPT at most */
	int            n;
	int            n_tried;  /* faults of the catalogue that fit some place */
	int            n_fit;    /* so many of them explain it; */
	int            n_alias;  /* of these so many, from the first, cannot be told apart: 1 is a clear answer */
	double         margin;   /* what the first that is no alias leaves over what the best leaves; INFINITY: none was tried */
	bool           fitted;   /* by no fault of the catalogue as it is */
	vn_hypothesis  sound;    /* what is left of the operation as it should be */
	char           separate[240]; /* the input that would tell aliases apart; "" */
	char           why_not[200];  /* it cannot be computed again; "" */
	int            like;     /* explained as this one is, without trying everything: an index into the explanations; -1 */
	vn_lines       looks;    /* the error in words, where nothing fits */
} vn_explanation;

enum { VN_EXPLAIN_KEPT = 8 };

typedef struct vn_explanations {
	vn_explanation *of;      /* an origin each, in their order */
	int             n;
	int             left_out; /* origins that were not looked at: there are too many */
} vn_explanations;

/* Explanations of c's origins, after vn_replay_run. Needs c->model. vn_explanations_free afterwards, whatever happened. */
vn_status vn_explain(vn_comparison *c, vn_explanations *x, vn_error *err);
void      vn_explanations_free(vn_explanations *x);

/* What is left, in floors: 4 is as much as a healthy operation may leave. */
double vn_hypothesis_left(const vn_hypothesis *h);

#endif
