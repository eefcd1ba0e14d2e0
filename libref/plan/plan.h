/* plan.h: the forward pass of a model as data.
 *
 * A plan is a list of nodes in execution order. A node has an operation, its constants, the weights
 * it reads, its inputs (values made by earlier nodes) and its outputs. A value has a name
 * ("layer3.q_rope"), axes and a basis; recorded in one step, it is a checkpoint. Every engine and
 * every tool works on plans; none of them knows which family of models it has. A family is one
 * file, libref/family/family_*.c, that builds its plan.
 *
 * Sizes   an axis of a call's tokens has size VN_T, one of the keys (cached and new) VN_S; every
 *         other size is fixed. vn_value_shape replaces VN_T and VN_S by numbers.
 * Memory  what a node keeps between calls is a vn_state; which states a node has follows from its
 *         operation and constants. The engine holds them; a value may show a state as it is after
 *         the call.
 * Owner   a plan owns everything in it; pointers into it live until destroy. A plan must not change
 *         while an engine holds it: to run one with a changed constant, clone it and change the
 *         clone.
 * Rules   all are in vn_plan_check, which every engine calls first.
 */
#pragma once

#include "libref/base/error.h"
#include "libref/base/tensor.h"
#include "libref/plan/point.h"
#include "libref/plan/rope.h"

#define VN_NAME_MAX  128 /* length of a checkpoint's or weight's name, with NUL */
#define VN_MAX_IN    5
#define VN_MAX_OUT   6
#define VN_MAX_W     6
#define VN_MAX_STATE 2 /* per node */

enum { VN_T = -1, VN_S = -2 };
enum { VN_PLAN_RANK = 4 }; /* maximum number of axes of a value, a state or a weight */

/* The operations: op.def says what each one computes. */
typedef enum vn_op {
#define OP(NAME, ...) VN_OP_##NAME,
#include "libref/plan/op.def"
	VN_N_OPS
} vn_op;

/* specs/models.md, "Activations". VN_GELU is the exact one, by the error function. From VN_RELU on,
 * all but VN_QUICK_GELU are for experiments only, instead of another activation or after a node.
 * The last ones convert a number to another format: to float16; to float16 with its largest number
 * instead of infinity, without subnormals (0), or rounded towards 0; to bfloat16 rounded towards
 * 0. */
/* clang-format off */
typedef enum vn_act {
	VN_SILU, VN_GELU, VN_GELU_TANH, VN_SIGMOID, VN_RELU, VN_QUICK_GELU, VN_IDENTITY, VN_TWO_SIGMOID, VN_SOFT_CAP,
	VN_TANH, VN_SOFTPLUS, VN_MISH, VN_ELU, VN_SELU, VN_LEAKY_RELU, VN_RELU6, VN_SQUARED_RELU, VN_HARD_SIGMOID,
		VN_HARD_SWISH, VN_SOFTSIGN, VN_EXP,
	VN_AS_F16, VN_AS_F16_SATURATED, VN_AS_F16_FLUSHED, VN_AS_F16_CUT, VN_AS_BF16_CUT, VN_N_ACTS
} vn_act;
/* clang-format on */
/* The forms of a gated product: f(gate) up, f(gate up), f(gate) f(up). */
typedef enum vn_gate_form { VN_GATE_USUAL, VN_GATE_PRODUCT, VN_GATE_BOTH, VN_N_GATE_FORMS } vn_gate_form;
/* The key head of query head h: h / (H/G); h mod G. Only for attention, where heads from G on read
 * past the end: h, with keys and values of heads from G on 0; or (S,G,K) read with the stride of
 * one head, so head h mod G of token j + h / G, 0 after the last token. */
typedef enum vn_head_map {
	VN_HEADS_GROUPED,
	VN_HEADS_MODULO,
	VN_HEADS_NONE,
	VN_HEADS_FLAT,
	VN_N_HEAD_MAPS
} vn_head_map;
/* The softmax of VN_OP_ATTENTION, in the order of the enum: the usual one; over the queries of the
 * call that see a key; over the heads; of exp(s) without subtracting the maximum, in float32; the
 * same in float16; with probabilities rounded to float16; to bfloat16; with products rounded to
 * float16 before they are scaled; with a maximum that starts at 0, and exponentials rounded to
 * float16 for the product with the values, not for their sum. */
typedef enum vn_attn_form {
	VN_ATTN_USUAL,
	VN_ATTN_OVER_QUERIES,
	VN_ATTN_OVER_HEADS,
	VN_ATTN_NO_MAX,
	VN_ATTN_NO_MAX_F16,
	VN_ATTN_PROBS_F16,
	VN_ATTN_PROBS_BF16,
	VN_ATTN_SCORES_F16,
	VN_ATTN_FROM_ZERO_F16,
	VN_N_ATTN_FORMS
} vn_attn_form;
/* What VN_OP_ATTENTION reads for token j of S, in blocks of B. Positions without a token are 0. In
 * the order of the enum:
 *   usual         token j
 *   blockless     the last token with j's place in a block
 *   next          token j + B
 *   swapped       the token at j's place in block (j / B) xor 1
 *   heads first   a block (B,G,K) read as (G,B,K)
 *   late          0 from the first token of the call on
 *   stale         from there on, the last token before the call
 *   ring          the next token in a ring of B
 *   f16, f8       numbers rounded to float16; to float8 (e4m3, saturated at 448)
 *   former        in the last block, the same place of the first block, as left by an earlier
 *                 sequence with the same beginning
 *   seen          the same, only for places after the last token, which every query sees
 *   past          token j - B
 *   f8 wide       numbers rounded to float8 (e5m2, saturated at 57344)
 *   scaled        tokens of earlier calls times VN_CACHE_SCALE
 *   twice         further, the last token of earlier calls once more, which every query sees
 *   int8 half     each head's numbers rounded to int8 by their largest / 127.5, read by / 127
 *   bare          each head's numbers times 127 / their largest, rounded to integers
 *   part empty    0 for tokens of earlier calls, in key head 0
 *   later past    token j - B if it is of a later call than the first; else j if it is of the first
 *   later next    the same with token j + B
 *   heads rolled  for tokens of earlier calls, key head g - 1
 *   reversed      the tokens of earlier calls in reversed order
 *   whole heads   the tokens of earlier calls (P,G,K), read as (G,P,K)
 *   columns       for tokens of earlier calls, the two halves of the columns exchanged */
/* clang-format off */
typedef enum vn_cache_form {
	VN_CACHE_USUAL, VN_CACHE_BLOCKLESS, VN_CACHE_NEXT, VN_CACHE_SWAPPED, VN_CACHE_HEADS_FIRST, VN_CACHE_LATE,
		VN_CACHE_STALE,
	VN_CACHE_RING, VN_CACHE_F16, VN_CACHE_F8, VN_CACHE_FORMER, VN_CACHE_SEEN, VN_CACHE_PAST, VN_CACHE_F8_WIDE,
		VN_CACHE_SCALED, VN_CACHE_TWICE, VN_CACHE_INT8_HALF, VN_CACHE_BARE, VN_CACHE_PART_EMPTY,
		VN_CACHE_LATER_PAST, VN_CACHE_LATER_NEXT, VN_CACHE_HEADS_ROLLED, VN_CACHE_REVERSED, VN_CACHE_WHOLE_HEADS,
		VN_CACHE_COLUMNS,
	VN_N_CACHE_FORMS
} vn_cache_form;
/* clang-format on */
#define VN_CACHE_SCALE 0.25

/* VN_OP_ROWS, with rows t of T and constants by, inner. In the order of the enum:
 *   usual         x[t]
 *   shifted       x[t + by] in the first call, 0 if there is no such row
 *   parts first   x in memory order after its columns are cut into parts of `inner` and the parts
 *                 become the outer axis
 *   in turn       alternately rows of the first and the second half
 *   tiles         other[t] where t / by is odd or, if inner is not 0, equals inner - 1
 *   log softmax   x minus the logarithm of the sum of its exponentials
 *   round         column n + by, wrapping around, instead of column n
 *   apart         rows that begin `by` numbers apart in memory; 0 behind the end
 *   written       rows written so far apart into memory, read as x is */
typedef enum vn_rows_form {
	VN_ROWS_USUAL,
	VN_ROWS_SHIFTED,
	VN_ROWS_PARTS_FIRST,
	VN_ROWS_IN_TURN,
	VN_ROWS_TILES,
	VN_ROWS_LOG_SOFTMAX,
	VN_ROWS_ROUND,
	VN_ROWS_APART,
	VN_ROWS_WRITTEN,
	VN_N_ROWS_FORMS
} vn_rows_form;

/* VN_OP_LOG_DECAY, with u = x + dt_bias, in the order of the enum: -exp(A) softplus(u); exp(A)
 * softplus(u); A softplus(u); -A softplus(u); -exp(A) u. */
typedef enum vn_decay_form {
	VN_DECAY_USUAL,
	VN_DECAY_POSITIVE,
	VN_DECAY_RAW,
	VN_DECAY_NEGATED,
	VN_DECAY_LINEAR,
	VN_N_DECAY_FORMS
} vn_decay_form;
/* VN_OP_DELTA_RULE, in the order of the enum: the usual rule; the state does not decay; it decays
 * by g instead of exp(g); it decays between update and read; the output is read before the update;
 * the memory is read before the decay; nothing is subtracted from the new value; the memory is that
 * of the state before the last token of the call whose number is a multiple of 64, decayed; beta is
 * missing in the new value; beta is missing in the memory; g is rounded to bfloat16; to float16;
 * beta is missing in both. */
typedef enum vn_delta_form {
	VN_DELTA_USUAL,
	VN_DELTA_NO_DECAY,
	VN_DELTA_FACTOR,
	VN_DELTA_DECAY_LATE,
	VN_DELTA_READ_FIRST,
	VN_DELTA_MEMORY_FIRST,
	VN_DELTA_NO_DELTA,
	VN_DELTA_UNSOLVED,
	VN_DELTA_BETA_KEYS,
	VN_DELTA_BETA_VALUES,
	VN_DELTA_G_BF16,
	VN_DELTA_G_F16,
	VN_DELTA_NO_BETA,
	VN_N_DELTA_FORMS
} vn_delta_form;
/* What a call of the delta rule leaves as its state, in the order of the enum: the usual one; of a
 * call of several tokens, its transpose; after the first call, that which it found; that with its
 * last token applied twice; or three times. The next two: what the first call finds in place of an
 * empty state: what its own tokens leave; its first token, applied VN_PADDING_TOKENS times. The
 * last: what each head finds in later calls: the state of the head before. */
typedef enum vn_kept_state {
	VN_KEPT_USUAL,
	VN_KEPT_TURNED,
	VN_KEPT_FIRST,
	VN_KEPT_AGAIN,
	VN_KEPT_DRAFTS,
	VN_KEPT_FORMER,
	VN_KEPT_PADDING,
	VN_KEPT_ROLLED,
	VN_N_KEPT_STATES
} vn_kept_state;
enum { VN_PADDING_TOKENS = 8 };

/* VN_OP_ROUTE, in the order of the enum: the usual weights; the softmax of the chosen logits alone;
 * the softmax of the chosen probabilities; sigmoids of the chosen logits; none for the last of
 * them; with the bias added. They are normalised as the constant says. */
typedef enum vn_route_form {
	VN_ROUTE_USUAL,
	VN_ROUTE_CHOSEN,
	VN_ROUTE_TWICE,
	VN_ROUTE_SIGMOID,
	VN_ROUTE_FEWER,
	VN_ROUTE_BIASED,
	VN_N_ROUTE_FORMS
} vn_route_form;
/* VN_OP_EXPERTS: where gate and up are taken from, both of them F rows. In the order of the enum:
 * their own; the rows of both, gate first, are read as if they were one of each in turn; and the
 * reverse. */
typedef enum vn_expert_form {
	VN_EXPERTS_USUAL,
	VN_EXPERTS_BY_ROWS,
	VN_EXPERTS_IN_HALVES,
	VN_N_EXPERT_FORMS
} vn_expert_form;

/* Tokens of a chunk in which other correct implementations compute the delta rule
 * (compare/replay/reference_variants.h). */
enum { VN_DELTA_CHUNK = 64 };

typedef struct vn_norm {
	double eps;
	double offset; /* rms_norm, layer_norm: added to the weight, in the width of the arithmetic */
} vn_norm;

/* The slots of VN_OP_ATTENTION: inputs, weights, outputs, states. */
/* KEPT and KEPT_VALUES, an experiment's: what later calls find instead of k and of v */
enum { VN_ATTN_Q, VN_ATTN_K, VN_ATTN_V, VN_ATTN_KEPT, VN_ATTN_KEPT_VALUES };
enum { VN_ATTN_SINKS };
enum { VN_ATTN_CONTEXT, VN_ATTN_SCORES, VN_ATTN_PROBS, VN_ATTN_K_CACHE, VN_ATTN_V_CACHE };
enum { VN_ATTN_KEYS, VN_ATTN_VALUES };
/* The weight of VN_OP_TOP_K and VN_OP_ROUTE; the inputs of VN_OP_JOIN. */
enum { VN_ROUTER_BIAS };
enum { VN_JOIN_A, VN_JOIN_B };
/* The input slots of VN_OP_DELTA_RULE. */
enum { VN_DELTA_Q, VN_DELTA_K, VN_DELTA_V, VN_DELTA_G, VN_DELTA_BETA };

/* The input slots of VN_OP_ROUTE, VN_OP_EXPERTS and VN_OP_COMBINE; the weights of an expert, behind
 * which its biases follow in the same order. */
enum { VN_ROUTE_LOGITS, VN_ROUTE_IDS };
enum { VN_EXPERTS_X, VN_EXPERTS_IDS };
enum { VN_COMBINE_X, VN_COMBINE_WEIGHTS };
enum { VN_EXPERT_GATE, VN_EXPERT_UP, VN_EXPERT_DOWN, VN_EXPERT_KINDS };

/* Columns [from, from + width) of every `stride` columns. */
typedef struct vn_columns {
	int stride, from, width;
} vn_columns;

/* The constants of a model, by operation. */
typedef union vn_consts {
	vn_norm norm;
	struct {
		int transposed; /* 1: w is stored (N,M), as GPT-2's files have it */
		/* 1 + vn_dtype of w in the model's file; 0: its present format. Used by vn_products */
		int kept;
		/* of a product whose inputs are divided between ranks, which add up their parts: the number
		 * of ranks, if it is more than one; else 0 */
		int ranks;
	} linear;
	/* If a row of x has several such blocks of columns (heads), the results follow each other. */
	vn_columns slice;
	struct {
		int heads, shared, width; /* H, G, A */
	} join;
	struct {
		vn_rope rope;
	} rope;
	struct {
		double scale; /* multiplies q.k; head_dim^-1/2 */
		int    heads, kv_heads, head_dim;
		int    causal;    /* 1: key j is visible to query i when j <= i */
		int    window;    /* keys that a query sees, including its own; 0: all */
		double cap;       /* not 0: a scaled product s becomes the score cap tanh(s / cap) */
		int    value_dim; /* U, the width of values; 0: head_dim */
		int    first;     /* tokens before this one are not seen, except by themselves */
	} attention;
	struct {
		double scale, cap;
	} scale;
	/* VN_OP_ACT and VN_OP_GATED. An experiment sets another activation here, too: of a model, or of
	 * experiments only */
	struct {
		vn_act act;
	} act;
	struct {
		int channels, taps;
	} conv;
	struct {
		double scale; /* multiplies q; key_dim^-1/2 */
		int    key_heads, value_heads, key_dim, value_dim;
	} delta;
	struct {
		int columns, k;
		int sigmoid; /* 1: sigmoids of x are compared, and the bias is added to them */
		/* the columns are so many groups of one size, of which the best groups_used count: those
		 * with the largest sums of their `best` largest numbers. groups 0: one */
		int groups, groups_used, best;
	} top_k;
	struct {
		int    columns, normalised;
		int    sigmoid; /* 1: sigmoids, not a softmax */
		double scale;   /* 0: 1 */
	} route;
	struct {
		int slots;
	} combine;
	struct {
		int columns; /* N: it gives the state its size */
	} delay;
	struct {
		int    experts;
		vn_act act;
		/* gate is at most `limit`, and up within -limit and limit; 0: any. Then `shift` is added to
		 * up */
		double limit, shift;
		int    kept[VN_EXPERT_KINDS]; /* as of linear */
	} experts;
} vn_consts;

/* How a node computes its operation otherwise than usual. All 0 in every model: the usual formula,
 * bit for bit; vn_node_experiment is NULL. A fault (fault.h) changes the formula. A replay sets how
 * another correct implementation rounds it, or in which order it computes
 * (compare/replay/reference_variants.h): the members `rounding`, `formula`, `angles`, `inverse`,
 * `parts`, `sum_f32`, `wide_weight`, `chunked` and `drawn`, which the reference engine computes. */
typedef union vn_experiment {
	struct {
		int eps_outside; /* 1: eps is added to the root, not under it */
		int divisor;     /* of the sum of squares; 0: the width (of l2_norm: 1) */
		int gate;        /* gated_norm: the vn_act of the gate, VN_SILU or VN_SIGMOID */
		int gate_first;  /* gated_norm: 1: x is gated, then normed */
		int keep_mean;   /* layer_norm: 1: the mean is not subtracted */
		int sum_f16;     /* 1: the sum of squares is rounded to float16 */
		int sum_f32;     /* 1: to float32, in which it may overflow */
		int wide_weight; /* 1: the weight is not rounded to the storage format */
		/* rms_norm: 1: the normalised input is rounded to float16 before the product with the
		 * weight */
		int first_f16;
		/* rms_norm: columns normed together, with the weight repeated; 0: the last axis */
		int width;
		/* vn_rounding_format. rms_norm and gated_norm: of the normalised input; gated_norm:
		 * also of its product with the weight; l2_norm: of the squares, their sum, the sum with
		 * eps, and the factor */
		int rounding;
		/* vn_rounding_format. Of the factor of a row, 1 / rms; rms_norm: of the squares, their
		 * mean and its sum with eps */
		int inverse, squares;
	} norm;
	struct {
		int step_zero;  /* 1: every call counts positions from 0 */
		int step_twice; /* 1: the tokens before the call are added to its positions again */
		int words;      /* 1: positions of a call, as 64-bit integers, are read as if they had 32 bits */
	} positions;
	struct {
		int words;
	} embed; /* 1: the same of token ids */
	struct {
		int inverse;  /* vn_ggml_scale */
		int parts;    /* the sum of so many products, each of as many columns; 0: one product */
		int rounding; /* vn_rounding_format, of each part and of each sum of them */
		int format;   /* vn_rounding_format, of inputs, weights and result; without parts */
	} linear;
	vn_rope_experiment rope;
	struct {
		int form, by, inner;
	} rows; /* vn_rows_form */
	struct {
		int sinks;     /* this many first keys are never hidden by a window */
		int ahead;     /* causal: key j is visible to query i when j <= i + ahead */
		int blind;     /* a query that sees no key: 0: context 0; 1: all keys equally; 2: NaN */
		int head_map;  /* vn_head_map */
		int leak;      /* a hidden key is seen: 1: with score 0; 2: with 1 added to its score; 3: with minus the cap */
		int padding;   /* additional keys with score 0 and value 0 */
		int from_zero; /* 1: for the mask, every call counts queries from position 0 */
		int blocks;    /* causal: a query also sees the rest of its block of this size; 0: not */
		int prefix;    /* causal: every query also sees this many first keys of its call's; 0: not */
		/* the window of all queries of a call is that of its first (1), of its last (2) */
		int window_of;
		int unseen;    /* calls after the first do not see this many first keys */
		int stale;     /* nor this many last ones */
		int key_sinks; /* 1: a query head takes the sink that has the number of its key head */
		/* each head has the queries, the keys or the values of the head so many before it */
		int query_roll, key_roll, value_roll;
		int form;        /* vn_attn_form */
		int cache;       /* vn_cache_form */
		int cache_block; /* tokens per block, if the form has blocks; at least 1 */
		int cache_of;    /* 0: keys and values; 1: only keys; 2: only values */
		int cache_steps; /* 1: only after the first call */
		/* 1: after every call, keys of earlier calls are passed again through the node that makes
		 * `kept`, a rope. A constant of this node, because no other node can change its state */
		int again;
		int rounding; /* vn_rounding_format of products, scores and probabilities */
	} attention;
	struct {
		int rounding; /* vn_rounding_format of the quotient by the cap, and of its tanh */
	} scale;
	struct {
		int form;     /* vn_gate_form, of VN_OP_GATED */
		int rounding; /* vn_rounding_format of f(...) before the product with up */
		int formula;  /* 1: also of every operation of f's formula (ops/intermediate.h); 2: and of its squares */
	} act;            /* VN_OP_ACT and VN_OP_GATED */
	struct {
		int linear;  /* silu is omitted from channel linear - 1 on; 0: nowhere */
		int forgets; /* 1: the state of earlier calls is 0 */
		/* the last tap is this many tokens ahead, 0 after the last token of the call */
		int ahead;
		/* as for an activation: of the convolution before silu; of silu's formula */
		int rounding, formula;
	} conv;
	struct {
		int form;
	} decay; /* vn_decay_form */
	struct {
		int form;     /* vn_delta_form */
		int head_map; /* vn_head_map, of the value heads */
		int kept;     /* vn_kept_state */
		/* the state is lost before every token whose position is a multiple of this; 0: never */
		int restart;
		/* the state of earlier calls is: 1: 0; 2: rounded to bfloat16; 3: to float16; 4: halved */
		int forgets;
		int chunked; /* 1: chunks of VN_DELTA_CHUNK tokens in float32 */
		int drawn;   /* of chunks: not 0: sums of g are rounded at random, from this seed of the node */
	} delta;
	struct {
		int skip; /* the first so many of each row are left out */
	} top_k;
	struct {
		int form; /* vn_route_form */
	} route;
	struct {
		int form;  /* vn_expert_form */
		int moved; /* expert e has the weights of expert e + moved, modulo their number */
		/* not 0: an expert takes the first so many tokens of a call; -1: its share, rounded up */
		int capacity;
		int rounding; /* vn_rounding_format of f(gate) before the product with up */
	} experts;
	struct {
		int rounding; /* vn_rounding_format of each product with a weight */
		int sums;     /* 1: also of the sum after each slot */
	} combine;
	struct {
		int own;     /* 1: each row is its own */
		int forgets; /* 1: the state of earlier calls is 0 */
	} delay;
} vn_experiment;

typedef struct vn_node {
	vn_op         op;
	int           layer; /* -1 outside layers */
	vn_consts     c;
	vn_experiment x; /* all 0: as usual */
	int           n_in, n_w, n_out, n_state;
	int           in[VN_MAX_IN];   /* values */
	int           w[VN_MAX_W];     /* weights; -1: an optional one that is absent */
	int           out[VN_MAX_OUT]; /* values; -1: an optional one that the family does not use */
	int           state[VN_MAX_STATE];
} vn_node;

typedef struct vn_value {
	char     name[VN_NAME_MAX]; /* "layer3.q_rope", unique in the plan */
	vn_point point;
	int      layer; /* -1 outside layers */
	int      node;  /* the producer */
	int      slot;  /* which output of the node */
	int      state; /* the state that it shows; -1 */
	/* the value whose second name this is (node, slot and state are equal); -1 */
	int      alias_of;
	int      rank;
	int      size[VN_PLAN_RANK]; /* VN_T, VN_S or a number */
	int      last_use;           /* last node that reads it; -1: none */
	/* No node needs it: it is made only if it is tapped (attention scores and probabilities, an
	 * activation inside a gated product). */
	bool     on_demand;
	bool     wide; /* stored as float32 (float64 under f64), whatever the storage format */
} vn_value;

/* What a node keeps from one call to the next. Before the first call, a growing state has no rows,
 * and one of fixed size is zero. */
typedef struct vn_state {
	int  node;
	int  value; /* the value that shows it after the call; -1: none */
	int  input; /* it grows: the rows of this input of its node join it, call by call. -1: its
	             * size is fixed, and the node makes it anew from what it was */
	bool wide;  /* kept and shown as float32 (float64 under f64), whatever the storage format */
	int  rank;
	int  size[VN_PLAN_RANK]; /* VN_S first: a row per token; else fixed size */
} vn_state;

typedef struct vn_weight {
	char     name[VN_NAME_MAX]; /* as in the model's files, except for the family's prefix */
	vn_shape shape;
} vn_weight;

typedef struct vn_plan {
	int        n_nodes, n_values, n_weights, n_states, n_lists;
	vn_node   *node;
	vn_value  *value;
	vn_weight *weight;
	vn_state  *state;                  /* by node, in the order of its slots */
	vn_list   *list;                   /* lists of numbers, to which constants refer */
	int        layers, vocab, context; /* L, V, the longest sequence the model may see */
} vn_plan;

/* ---- building: what a family calls ---------------------------------
 * A builder never fails at a call: the first error is kept (memory, a duplicate name, sizes that do
 * not fit) and returned by vn_plan_finish. Values and weights are numbers >= 0. vn_plan_layer sets
 * the layer for names: in layer 3, "q_proj" becomes "layer3.q_proj". */
typedef struct vn_builder vn_builder;

vn_builder *vn_plan_begin(int layers, int vocab, int context);            /* NULL: no memory */
vn_status   vn_plan_finish(vn_builder *b, vn_plan **plan, vn_error *err); /* frees b in any case */

void vn_plan_layer(vn_builder *b, int layer); /* -1: outside layers */
/* Returns the weight with this full name. Asking again returns the same number. */
int  vn_plan_weight(vn_builder *b, const char *name, int rank, const int64_t *dim);
/* Adds n weights of one shape, "STEM0TAIL", "STEM1TAIL"..., one after the other, and returns the
 * first. */
int  vn_plan_weights(vn_builder *b, int n, const char *stem, const char *tail, vn_shape shape);
/* Adds a list of numbers and returns what a constant that refers to it holds. Equal lists are
 * stored once. */
int  vn_plan_list(vn_builder *b, int n, const float *x);
/* Adds a second name for a value: layerN.input is the previous layer's output. */
void vn_plan_name(vn_builder *b, int value, vn_point point);

/* Sets a constant of the node that makes a value, by its name. */
void vn_plan_set(vn_builder *b, int value, const char *constant, double number);

/* Stores a value in full width, whatever the storage format. */
void vn_plan_wide(vn_builder *b, int value);

/* Adds an operation on one input, without weights, whose output has the shape of the input. */
int  vn_plan_map(vn_builder *b, vn_op op, int x, vn_point out);
int  vn_plan_embed(vn_builder *b, int w, vn_point out);
int  vn_plan_positions(vn_builder *b, int w, vn_point out);
/* Norms over as many columns as the weight has: the last axis, or all of a token. */
int  vn_plan_rms_norm(vn_builder *b, int x, int w, double eps, vn_point out);
/* For models that store norm weights minus one. */
int  vn_plan_rms_norm_one(vn_builder *b, int x, int w, double eps, vn_point out);
int  vn_plan_layer_norm(vn_builder *b, int x, int w, int bias, double eps, vn_point out);
/* heads > 0: the output is (T, heads, M/heads); 0: (T, M). bias -1: none. */
int  vn_plan_linear(vn_builder *b, int x, int w, int bias, int heads, vn_point out);
/* Same with a weight that is stored as (N,M). */
int  vn_plan_conv1d(vn_builder *b, int x, int w, int bias, int heads, vn_point out);
/* Takes columns. heads as above. */
int  vn_plan_slice(vn_builder *b, int x, vn_columns c, int heads, vn_point out);
int  vn_plan_rope(vn_builder *b, int x, const vn_rope *rope, vn_point out);
/* Sets columns of b behind the columns of each head of a, or behind those of the token. */
int  vn_plan_join(vn_builder *b, int a, int x, vn_point out);
/* Its outputs are always named attn_context and, on demand, k_cache, v_cache, attn_scores and
 * attn_probs. */
int  vn_plan_attention(vn_builder *b, int q, int k, int v, double scale, int window);
/* Gives the attention that makes a value a score (H) for each query head, which takes part in the
 * softmax, but has no value. */
void vn_plan_sinks(vn_builder *b, int context, int w);
int  vn_plan_act(vn_builder *b, vn_act act, int x, vn_point out, bool on_demand);
int  vn_plan_gated(vn_builder *b, vn_act act, int gate, int up, vn_point out);
int  vn_plan_add(vn_builder *b, int a, int x, vn_point out);
/* Its state is always named gdn_conv_state. */
int  vn_plan_causal_conv(vn_builder *b, int x, int w, vn_point out);
/* The output is wide, like that of log_decay. */
int  vn_plan_l2_norm(vn_builder *b, int x, double eps, vn_point out);
int  vn_plan_log_decay(vn_builder *b, int x, int A_log, int dt_bias, vn_point out);
/* Its state is always named mtp_hidden_state. */
int  vn_plan_delay(vn_builder *b, int x, vn_point out);
/* in: q, k, v, g, beta. Its state is always named gdn_state. */
int  vn_plan_delta_rule(vn_builder *b, const int in[5], double scale, vn_point out);
int  vn_plan_gated_norm(vn_builder *b, int x, int z, int w, double eps, vn_point out);
/* The output is wide. bias -1: none. */
int  vn_plan_top_k(vn_builder *b, int x, int bias, int k, vn_point out);
/* wide: the weights are not rounded to the storage format. */
int  vn_plan_route(vn_builder *b, int logits, int ids, bool normalised, bool wide, vn_point out);
/* w: the first expert's gate, up and down, then their biases, or -1. */
int  vn_plan_experts(vn_builder *b, int x, int ids, const int w[2 * VN_EXPERT_KINDS], int experts, vn_act act,
                     vn_point out);
/* x (T,k,D), or (T,D) for one slot. */
int  vn_plan_combine(vn_builder *b, int x, int weights, vn_point out);

/* ---- using ---------------------------------------------------------------- */

/* Returns the number of a list, as a constant holds it; adds the list if the plan lacks it. 0: no
 * memory. */
int       vn_list_add(vn_plan *p, int n, const float *x);
vn_status vn_plan_clone(const vn_plan *p, vn_plan **copy, vn_error *err);
void      vn_plan_destroy(vn_plan *p);

/* Do both have the same nodes on the same values and weights with the same constants, that is, the
 * same arithmetic? */
bool vn_plan_equal(const vn_plan *a, const vn_plan *b);
/* Writes the first difference, seen from a, to what (VN_PLAN_DIFFERENCE bytes): "rms_norm of
 * layer0.attn_norm has eps 1e-06". Returns what. */
enum { VN_PLAN_DIFFERENCE = 3 * VN_NAME_MAX };
char *vn_plan_difference(const vn_plan *a, const vn_plan *b, char *what);

/* Checks everything that an engine relies on: the number of inputs, weights and outputs of each
 * operation; inputs made earlier; sizes that fit each other and the constants (heads, head width,
 * rotary columns); constants finite and in range; rows of fewer than 2^31 elements; and everything
 * that follows from the rest (node, slot, last_use, all of the states).
 * The plan may have any content: from a file, or a clone with changed constants. Not checked: that
 * names are unique. VN_ERR_UNSUPPORTED "nodes[7] (attention, layer0.attn_context): ...", or
 * VN_ERR_NOMEM. */
vn_status vn_plan_check(const vn_plan *p, vn_error *err);
/* Fills what follows from the rest, including absent optional weights and outputs; then calls
 * vn_plan_check. */
vn_status vn_plan_settle(vn_plan *p, vn_error *err);

int      vn_plan_find(const vn_plan *p, const char *name);   /* value by name; -1 if absent */
int      vn_plan_of_point(const vn_plan *p, vn_point point); /* the first value of a point; -1 if absent */
/* the last layer of the model itself, without the layer of a prediction head */
int      vn_plan_last_layer(const vn_plan *p);
/* the value that this is an alias of, or the value itself */
int      vn_plan_root(const vn_plan *p, int value);
vn_shape vn_value_shape(const vn_value *v, int64_t tokens, int64_t keys);
int64_t  vn_value_row(const vn_value *v); /* elements per row: all axes but the first */
/* Is the value made and handed over in pieces, because no node reads it and no engine holds it
 * whole? The output of a last linear (the logits, as large as all the rest together), rows over the
 * keys (scores), an activation on demand. */
bool     vn_value_streams(const vn_plan *p, int value);
bool     vn_value_wide(const vn_plan *p, int value); /* it is wide, or shows a wide state */

/* Fills s, which has room for VN_MAX_STATE, with the states of a node, and returns how many there
 * are. Safe for any node. */
int               vn_node_states(const vn_plan *p, int node, vn_state *s);
const char       *vn_state_word(const vn_plan *p, int state); /* "keys", for messages */
/* Returns U, the width of an attention's values and context. */
static inline int vn_attention_value_dim(const vn_consts *c)
{
	return c->attention.value_dim ? c->attention.value_dim : c->attention.head_dim;
}
/* Returns the first key that the query at a position sees. */
static inline int64_t vn_attention_first_key(const vn_consts *c, int64_t position)
{
	const int64_t window = c->attention.window, from = window && position + 1 > window ? position + 1 - window : 0,
				  hidden = c->attention.first < position ? c->attention.first : position;
	return from > hidden ? from : hidden;
}
/* Returns the elements of one row of a growing state, or of the whole of one of fixed size. */
int64_t vn_state_row(const vn_state *s);

/* What holds for every node of an operation (a row of op.def). */
typedef struct vn_op_info {
	const char *name;
	/* slots of a node; weights from must_w on may be absent (-1) */
	int         n_in, n_w, must_w, n_out;
	const char *state[VN_MAX_STATE]; /* what it keeps between calls, in words; NULL */
	/* inputs (bits) where a row of the output reads the rows of other tokens, too */
	unsigned    mixes;
	bool        by_position; /* depends on the token's position or id; no effect on other tokens */
	bool        is_norm;     /* divides each row by its size */
	bool        is_costly;   /* takes long: reads a matrix, or a row of every token for each */
	/* outputs (bits) that engines compute in float32 even where all else is float64 */
	unsigned    in_float32;
	/* inputs (bits), and whether the output, that shaders take in float32, whatever the storage
	 * format */
	unsigned    wide_in;
	bool        wide_out;
	/* the same where shaders take either format */
	unsigned    either_in;
	bool        either_out;
} vn_op_info;

const vn_op_info *vn_op_get(vn_op op);
/* Does a token of its output depend on other tokens of this input? */
bool              vn_op_mixes_tokens(vn_op op, int input);
/* Does it compute a token from its inputs at this token alone, whatever its position? */
bool              vn_op_is_by_token(vn_op op);

const char *vn_op_name(vn_op op);
int         vn_op_from_name(const char *name, vn_op *op);
const char *vn_act_name(vn_act act);

/* The constants of an operation by name, for files, reports and experiments. i counts from 0; NULL
 * after the last. Words (an activation, a type of RoPE) are numbers here, and so are lists: 1 + the
 * number of the plan's list, 0: none. */
const char *vn_const_name(vn_op op, int i);
bool        vn_const_is_list(vn_op op, int i);
bool        vn_const_is_optional(vn_op op, int i); /* older files lack it: 0 */
double      vn_const_get(const vn_node *n, int i);
vn_status   vn_const_set(vn_node *n, const char *name, double value, vn_error *err);
/* Does a node compute something that no supported model does: an experiment's constant that is not
 * 0, or an activation, operation or input of experiments only? Only the reference engine computes
 * such a node. */
bool        vn_node_is_experiment(const vn_node *n);

/* How the reference engine computes a node otherwise than usual; NULL: as usual. Unlike
 * vn_node_is_experiment, this includes the roundings of other correct implementations, and leaves
 * out an activation, which is in vn_consts. */
const vn_experiment      *vn_node_experiment(const vn_node *n);
/* Same, of a rope. */
const vn_rope_experiment *vn_node_rope_experiment(const vn_node *n);

/* What an experiment lets a node keep for later calls in place of the rows that this call reads.
 * After the call, the node `rope` rotates the rows of `state` from earlier calls once more; then
 * the call's rows of `input` are put into the state. The same of the n - 1 states and inputs that
 * follow. */
typedef struct vn_keep_rule {
	int state, input; /* -1: no such experiment */
	int rope;         /* -1: the earlier rows stay as they are */
	int n;
} vn_keep_rule;
vn_keep_rule      vn_node_keep_rule(const vn_plan *p, const vn_node *n);
/* Returns the input whose rows a state keeps; -1: it keeps those that the node reads. */
static inline int vn_kept_input(vn_keep_rule k, int state)
{
	return state >= k.state && state < k.state + k.n ? k.input + state - k.state : -1;
}
