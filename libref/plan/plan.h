/* plan.h: the forward pass of a model as data.
 *
 * A plan is a list of nodes in execution order. A node has an operation, its
 * constants, the weights it reads, its inputs (values made by earlier nodes)
 * and its outputs. A value *is* a checkpoint: it has a name ("layer3.q_rope"),
 * axes and a basis. Every engine and every tool walks plans; none of them knows
 * which family of models it is walking. A family is one page in
 * libref/family/family_*.c that builds one.
 *
 * Sizes   an axis of the tokens of a call has size VN_T, one of the keys
 *         (cached and new) VN_S; every other size is fixed. vn_value_shape
 *         puts the numbers in.
 * Memory  what a node keeps between calls is a vn_state; which ones a node has
 *         follows from its operation and constants. An executor holds them; a
 *         value may show one as it is after the call.
 * Owner   a plan owns everything in it; pointers into it live until destroy.
 *         A plan is not changed while an executor holds it: to run one with a
 *         changed constant, clone it and set the constant in the clone.
 * Rules   vn_plan_check has them all, and every engine asks it first.
 */
#ifndef VN_LIBREF_PLAN_PLAN_H
#define VN_LIBREF_PLAN_PLAN_H

#include "libref/base/error.h"
#include "libref/base/tensor.h"
#include "libref/plan/point.h"
#include "libref/plan/rope.h"

#define VN_NAME_MAX 128 /* a checkpoint's or weight's name with its NUL */
#define VN_MAX_IN   5
#define VN_MAX_OUT  6
#define VN_MAX_W    4
#define VN_MAX_STATE 2 /* of one node */

enum { VN_T = -1, VN_S = -2 };
enum { VN_PLAN_RANK = 4 }; /* axes of a value, a state or a weight at most */

/* What an operation computes, with the letters of specs/models.md. Inputs,
 * weights and outputs stand in the order of the slots of vn_node. */
typedef enum vn_op {
	VN_OP_EMBED,     /* w (V,D)               -> y[t] = w[ids[t]]                     (T,D) */
	VN_OP_RMS_NORM,  /* x, w (N)              -> over the last axis, N wide; eps, offset  as x */
	VN_OP_POSITIONS, /* w (C,D)               -> y[t] = w[p], p the position of t     (T,D) */
	VN_OP_LAYER_NORM, /* x, w (N), bias (N)?  -> over the last axis, N wide; eps      as x  */
	VN_OP_LINEAR,    /* x, w (M,N), bias (M)? -> x w^T + bias                         (T,M) */
	VN_OP_SLICE,     /* x                     -> some of its columns                  (T,...) */
	VN_OP_ROPE,      /* x (T,H,K)             -> rotated by position                  (T,H,K) */
	VN_OP_ATTENTION, /* q (T,H,K), k, v (T,G,K), kept (T,G,K)? -> context (T,H,K), scores (H,T,S)?, probs (H,T,S)?,
	                  * states k_cache (S,G,K)?, v_cache (S,G,K)? */
	VN_OP_ACT,       /* x                     -> f(x)                                 as x  */
	VN_OP_GATED,     /* gate, up              -> f(gate) * up                         as up */
	VN_OP_ADD,       /* a, b                  -> a + b                                as a  */
	VN_OP_CAUSAL_CONV,      /* x (T,X), w (X,1,J)    -> silu of each channel's causal convolution (T,X),
	                  * state conv_state (J-1,X)? */
	VN_OP_L2_NORM,   /* x                     -> over the last axis, to length one; eps    as x */
	VN_OP_LOG_DECAY, /* x (T,N), A_log (N), dt_bias (N) -> -exp(A_log) softplus(x + dt_bias) (T,N) */
	VN_OP_DELTA_RULE, /* q, k (T,nk,dk), v (T,nv,dv), g, beta (T,nv) -> core (T,nv,dv), state (nv,dk,dv)? */
	VN_OP_GATED_NORM, /* x, z, w (N)          -> rms_norm(x) silu(z), over the last axis; eps  as x */
	VN_OP_ROWS,      /* x, other              -> the rows of a call, as an experiment has them (vn_rows_form) as x */
	VN_N_OPS
} vn_op;

/* specs/models.md, "Activations". VN_GELU is the exact one, by the error function.
 * From VN_RELU on they are no family's: an experiment puts them in another's place, or behind a node. The last are a number
 * as another format holds it: as float16, one with its infinities as its largest numbers, without its subnormals (0), rounded
 * towards 0; as bfloat16 rounded towards 0. */
typedef enum vn_act {
	VN_SILU, VN_GELU, VN_GELU_TANH, VN_SIGMOID, VN_RELU, VN_QUICK_GELU, VN_IDENTITY, VN_TWO_SIGMOID, VN_SOFT_CAP, VN_AS_F16,
	VN_AS_F16_SATURATED, VN_AS_F16_FLUSHED, VN_AS_F16_CUT, VN_AS_BF16_CUT, VN_N_ACTS
} vn_act;
/* What a gated product is: f(gate) up, f(gate up), f(gate) f(up). */
typedef enum vn_gate_form { VN_GATE_USUAL, VN_GATE_PRODUCT, VN_GATE_BOTH, VN_N_GATE_FORMS } vn_gate_form;
/* The key head of query head h: h / (H/G), h mod G. Of attention alone, heads from G on reading past the end: h, where
 * keys and values from G on are 0; or, of (S,G,K) read with the stride of a head, head h mod G of token j + h / G, 0
 * behind the last. */
typedef enum vn_head_map { VN_HEADS_GROUPED, VN_HEADS_MODULO, VN_HEADS_NONE, VN_HEADS_FLAT, VN_N_HEAD_MAPS } vn_head_map;
/* The softmax of VN_OP_ATTENTION: over the queries of the call that see a key, over the heads; of exp(s) without the
 * maximum, in float32, in float16; with its probabilities rounded to float16, to bfloat16; of products rounded to
 * float16 before they are scaled. */
typedef enum vn_attn_form {
	VN_ATTN_USUAL, VN_ATTN_OVER_QUERIES, VN_ATTN_OVER_HEADS, VN_ATTN_NO_MAX, VN_ATTN_NO_MAX_F16, VN_ATTN_PROBS_F16,
	VN_ATTN_PROBS_BF16, VN_ATTN_SCORES_F16, VN_N_ATTN_FORMS
} vn_attn_form;
/* What VN_OP_ATTENTION reads for token j of S, in blocks of B: the last token that has j's place in a block; the token B
 * further on; that of block (j / B) xor 1; a block (B,G,K) as if it were (G,B,K); 0 from the first token of the call on; from there on
 * the last token before the call; the next token in a ring of B; numbers rounded to float16, to float8 (e4m3, those
 * too large to 448); in the last block that of the same place in the first, where a sequence before this one, that began as it
 * does, left it; the same of the places behind the last token alone, which every query sees; the token B before; numbers rounded to float8
 * (e5m2, those too large to 57344). What is no token's is 0. */
typedef enum vn_cache_form {
	VN_CACHE_USUAL, VN_CACHE_BLOCKLESS, VN_CACHE_NEXT, VN_CACHE_SWAPPED, VN_CACHE_HEADS_FIRST, VN_CACHE_LATE, VN_CACHE_STALE,
	VN_CACHE_RING, VN_CACHE_F16, VN_CACHE_F8, VN_CACHE_FORMER, VN_CACHE_SEEN, VN_CACHE_PAST, VN_CACHE_F8_WIDE,
	VN_N_CACHE_FORMS
} vn_cache_form;

/* Of VN_OP_ROWS, with rows t of T and constants by, inner: x[t + by] in the first call, 0 where there is none; x as its numbers lie
 * when its columns are cut into parts of `inner`, and the parts go first; the rows of the first half and of the second in turn;
 * other[t] where t / by is odd, or inner - 1 where inner is not 0; x less the logarithm of the sum of its exponentials; column n + by,
 * counted round, in the place of column n. */
typedef enum vn_rows_form {
	VN_ROWS_USUAL, VN_ROWS_SHIFTED, VN_ROWS_PARTS_FIRST, VN_ROWS_IN_TURN, VN_ROWS_TILES, VN_ROWS_LOG_SOFTMAX, VN_ROWS_ROUND, VN_N_ROWS_FORMS
} vn_rows_form;

/* Of VN_OP_LOG_DECAY, with u = x + dt_bias: -exp(A) softplus(u); exp(A) softplus(u); A softplus(u); -A softplus(u); -exp(A) u. */
typedef enum vn_decay_form {
	VN_DECAY_USUAL, VN_DECAY_POSITIVE, VN_DECAY_RAW, VN_DECAY_NEGATED, VN_DECAY_LINEAR, VN_N_DECAY_FORMS
} vn_decay_form;
/* Of VN_OP_DELTA_RULE: the state does not decay; decays by g, not exp(g); decays between update and read; the output
 * is read before the update; the memory before the decay; nothing is taken off the new value; the memory is that of the state
 * before the last token of the call whose number is a multiple of 64, decayed; beta is not in the new value, or not in the memory. */
typedef enum vn_delta_form {
	VN_DELTA_USUAL, VN_DELTA_NO_DECAY, VN_DELTA_FACTOR, VN_DELTA_DECAY_LATE, VN_DELTA_READ_FIRST, VN_DELTA_MEMORY_FIRST,
	VN_DELTA_NO_DELTA, VN_DELTA_UNSOLVED, VN_DELTA_BETA_KEYS, VN_DELTA_BETA_VALUES, VN_N_DELTA_FORMS
} vn_delta_form;

/* The arithmetic of other implementations, none of them a fault (compare/replay/reference_variants.h): what an operation makes on the way is kept
 * as float16, bfloat16 or float32; the delta rule goes a chunk of 64 tokens at a time, in float32. */
typedef enum vn_intermediate_rounding { VN_STEPS_WIDE, VN_STEPS_F16, VN_STEPS_BF16, VN_STEPS_F32 } vn_intermediate_rounding;
enum { VN_DELTA_CHUNK = 64 };

typedef struct vn_norm {
	double eps;
	double offset;      /* rms_norm, layer_norm: added to the weight, in the width of the arithmetic */
	/* A replay's: vn_intermediate_rounding. rms_norm and gated_norm: what is normed, and of gated_norm that times the weight; l2_norm: squares,
	 * their sum, that and eps, the factor. */
	int    steps;
} vn_norm;

/* The slots of VN_OP_ATTENTION: inputs, outputs, states. */
enum { VN_ATTN_Q, VN_ATTN_K, VN_ATTN_V, VN_ATTN_KEPT }; /* an experiment's, the fourth: what later calls find in the place of k */
enum { VN_ATTN_CONTEXT, VN_ATTN_SCORES, VN_ATTN_PROBS, VN_ATTN_K_CACHE, VN_ATTN_V_CACHE };
enum { VN_ATTN_KEYS, VN_ATTN_VALUES };
/* Those of VN_OP_DELTA_RULE. */
enum { VN_DELTA_Q, VN_DELTA_K, VN_DELTA_V, VN_DELTA_G, VN_DELTA_BETA };

/* Constants of a model, by operation. What only an experiment sets: vn_variant. */
typedef union vn_consts {
	vn_norm norm;
	struct {
		int transposed; /* 1: w is stored (N,M), as GPT-2's files have it */
		int kept;       /* 1 + the vn_dtype that the model's file has w in; 0: the one it has now. For products that ask (vn_products) */
		int inverse;    /* vn_ggml_scale; 0 in every model */
	} linear;
	/* Of every `stride` columns of x, [from, from + width). A row may hold several
	 * such blocks (heads); what is taken of them follows one another. */
	struct { int stride, from, width; } slice;
	struct { vn_rope rope; } rope;
	struct {
		double scale;     /* multiplies q.k; head_dim^-1/2 */
		int    heads, kv_heads, head_dim;
		int    causal;    /* 1: key j is visible to query i when j <= i */
		int    window;    /* keys a query sees, its own included; 0: all */
		int    steps;     /* a replay's (compare/replay/reference_variants.h): vn_intermediate_rounding of products, of scores, of probabilities */
	} attention;
	struct {
		vn_act act;
		/* A replay's: */
		int    steps;   /* vn_intermediate_rounding of f(...) before it meets up */
		int    formula; /* 1: and of every operation of f's formula (ops/steps.h) */
	} act; /* VN_OP_ACT and VN_OP_GATED */
	struct {
		int channels, taps;
		/* A replay's, as of an activation: of the convolution before silu; of silu's formula. */
		int steps, formula;
	} conv;
	struct { int form, by, inner; } rows; /* vn_rows_form */
	struct {
		double scale;         /* multiplies q; key_dim^-1/2 */
		int    key_heads, value_heads, key_dim, value_dim;
		int    chunked;   /* a replay's: 1: chunks of VN_DELTA_CHUNK tokens in float32; the rest as it is usual */
	} delta;
} vn_consts;

/* What an experiment (fault.h) changes in the formula of an operation. All 0 in every model: the usual formula, bit for bit.
 * Those of VN_OP_ROPE stand in vn_rope. */
typedef union vn_variant {
	struct {
		int eps_outside; /* 1: eps joins the root, not what is under it */
		int divisor;     /* of the sum of squares; 0: the width (of l2_norm: 1) */
		int gate;        /* gated_norm: the vn_act of the gate, VN_SILU or VN_SIGMOID */
		int gate_first;  /* gated_norm: 1: x is gated, then normed */
		int keep_mean;   /* layer_norm: 1: the mean is not subtracted */
		int sum_f16;     /* 1: the sum of squares is rounded to float16 */
		int first_f16;   /* rms_norm: 1: what is normed is rounded to float16 before it meets the weight */
		int width;       /* rms_norm: columns normed together, the weight repeated over them; 0: the last axis */
	} norm;
	struct { int step_zero; } positions; /* 1: every call counts positions from 0 */
	struct {
		int sinks;       /* so many keys, from the first on, no window hides */
		int ahead;       /* causal: key j is visible to query i when j <= i + ahead */
		int blind;       /* a query that sees none: 0: context 0; 1: all keys alike; 2: NaN */
		int head_map;    /* vn_head_map */
		int leak;        /* a key out of sight is seen: 1: with score 0; 2: with 1 added to its score */
		int padding;     /* further keys of score 0, of value 0 */
		int from_zero;   /* 1: for the mask, the first query of every call stands at position 0 */
		int form;        /* vn_attn_form */
		int cache;       /* vn_cache_form */
		int cache_block; /* tokens, where the form has blocks; at least 1 */
		int cache_of;    /* 0: of keys and values, 1: of keys alone, 2: of values alone */
		int cache_steps; /* 1: not in the first call */
		int again;       /* 1: behind every call the keys of earlier calls become what the maker of `kept`, a rope, makes of them */
	} attention;
	struct { int form; } gated; /* vn_gate_form */
	struct {
		int linear;      /* without silu from channel linear - 1 on; 0: with it */
		int forgets;     /* 1: what earlier calls left is 0 */
		int ahead;       /* the last tap falls on the token so many further on, 0 behind the last of the call */
	} conv;
	struct { int form; } decay; /* vn_decay_form */
	struct {
		int form;        /* vn_delta_form */
		int head_map;    /* vn_head_map, of the value heads */
		int turned;      /* 1: a call of several tokens leaves the state as (dv,dk), and the next takes it for (dk,dv) */
		int restart;     /* the state is lost before every token whose position is a multiple of it; 0: never */
	} delta;
} vn_variant;

typedef struct vn_node {
	vn_op     op;
	int       layer; /* -1 outside layers */
	vn_consts c;
	vn_variant x; /* all 0: none */
	int       n_in, n_w, n_out, n_state;
	int       in[VN_MAX_IN];   /* values */
	int       w[VN_MAX_W];     /* weights; -1: an optional one that is absent */
	int       out[VN_MAX_OUT]; /* values; -1: an optional one that the family does not name */
	int       state[VN_MAX_STATE];
	bool      early;           /* for experiments, on the GPU alone: its commands do not wait for those before them */
} vn_node;

typedef struct vn_value {
	char     name[VN_NAME_MAX]; /* "layer3.q_rope", unique in the plan */
	vn_point point;
	int      layer;    /* -1 outside layers */
	int      node;     /* the producer */
	int      slot;     /* which of its outputs */
	int      state;    /* -1, or the state that it shows */
	int      alias_of; /* -1, or the value whose second name this is (then node, slot and state are its) */
	int      rank;
	int      size[VN_PLAN_RANK]; /* VN_T, VN_S or a number */
	int      last_use; /* last node that reads it; -1: none does */
	/* Not needed by any node: made only when somebody taps it (attention
	 * scores and probabilities, an activation inside a gated product). */
	bool     on_demand;
	bool     wide;     /* stored as float32 (float64 under f64), whatever the storage format */
} vn_value;

/* What a node keeps from one call to the next. Before the first call a state
 * that grows has no rows, and one of fixed size is zero. */
typedef struct vn_state {
	int  node;
	int  value; /* shows it as it is after the call; -1: none does */
	int  input; /* it grows: the rows of this input of its node join it, call by call. -1: its
	             * size is fixed, and the node makes it anew from what it was */
	bool wide;  /* kept and shown as float32 (float64 under f64), whatever the storage format */
	int  rank;
	int  size[VN_PLAN_RANK]; /* VN_S first: a row a token; without it the size is fixed */
} vn_state;

typedef struct vn_weight {
	char     name[VN_NAME_MAX]; /* as in the model's files, without the family's prefix rules */
	vn_shape shape;
} vn_weight;

typedef struct vn_plan {
	int        n_nodes, n_values, n_weights, n_states, n_lists;
	vn_node   *node;
	vn_value  *value;
	vn_weight *weight;
	vn_state  *state;                  /* node by node, in the order of its slots */
	vn_list   *list;                   /* numbers that are too many for constants: what a constant of a list counts */
	int        layers, vocab, context; /* L, V, the longest sequence the model may see */
} vn_plan;

/* ---- building: what a family page calls ---------------------------------
 * A builder never fails at a call: the first error is kept (memory, a name
 * twice, sizes that do not fit) and vn_plan_finish reports it. Values and
 * weights are handed around as numbers >= 0. Names are formed by
 * vn_plan_layer: inside layer 3, "q_proj" becomes "layer3.q_proj". */
typedef struct vn_builder vn_builder;

vn_builder *vn_plan_begin(int layers, int vocab, int context); /* NULL: no memory */
vn_status   vn_plan_finish(vn_builder *b, vn_plan **plan, vn_error *err); /* frees b in any case */

void vn_plan_layer(vn_builder *b, int layer); /* -1: outside layers */
/* A weight of the model by its full name; asked for twice, it is the same one. */
int  vn_plan_weight(vn_builder *b, const char *name, int rank, const int64_t *dim);
/* A list of numbers: what a constant says of it. The same numbers are one list. */
int  vn_plan_list(vn_builder *b, int n, const float *x);
/* A second name for a value: layerN.input is what came before. */
void vn_plan_name(vn_builder *b, int value, vn_point point);

int vn_plan_embed(vn_builder *b, int w, vn_point out);
int vn_plan_positions(vn_builder *b, int w, vn_point out);
int vn_plan_rms_norm(vn_builder *b, int x, int w, double eps, vn_point out);
/* For models that keep the weight of a norm less one. */
int vn_plan_rms_norm_one(vn_builder *b, int x, int w, double eps, vn_point out);
int vn_plan_layer_norm(vn_builder *b, int x, int w, int bias, double eps, vn_point out);
/* heads > 0: the output is (T, heads, M/heads); 0: (T, M). bias -1: none. */
int vn_plan_linear(vn_builder *b, int x, int w, int bias, int heads, vn_point out);
/* The same with a weight stored (N,M). */
int vn_plan_conv1d(vn_builder *b, int x, int w, int bias, int heads, vn_point out);
/* Columns [from, from + width) of every stride columns. heads as above. */
int vn_plan_slice(vn_builder *b, int x, int stride, int from, int width, int heads, vn_point out);
int vn_plan_rope(vn_builder *b, int x, const vn_rope *rope, vn_point out);
/* The names of what it makes on demand are always k_cache, v_cache, attn_scores, attn_probs. */
int vn_plan_attention(vn_builder *b, int q, int k, int v, double scale, int window, vn_point out);
int vn_plan_act(vn_builder *b, vn_act act, int x, vn_point out, bool on_demand);
int vn_plan_gated(vn_builder *b, vn_act act, int gate, int up, vn_point out);
int vn_plan_add(vn_builder *b, int a, int x, vn_point out);
/* Its state is always gdn_conv_state. */
int vn_plan_causal_conv(vn_builder *b, int x, int w, vn_point out);
/* Stored wide, as log_decay's output is. */
int vn_plan_l2_norm(vn_builder *b, int x, double eps, vn_point out);
int vn_plan_log_decay(vn_builder *b, int x, int A_log, int dt_bias, vn_point out);
/* in: q, k, v, g, beta. Its state is always gdn_state. */
int vn_plan_delta_rule(vn_builder *b, const int in[5], double scale, vn_point out);
int vn_plan_gated_norm(vn_builder *b, int x, int z, int w, double eps, vn_point out);

/* ---- using ---------------------------------------------------------------- */

/* The number of a list of a plan, as a constant says it; added when it is not there. 0: no memory. */
int       vn_list_add(vn_plan *p, int n, const float *x);
vn_status vn_plan_clone(const vn_plan *p, vn_plan **copy, vn_error *err);
void      vn_plan_destroy(vn_plan *p);

/* The same nodes on the same values and weights with the same constants: the
 * same arithmetic. */
bool      vn_plan_equal(const vn_plan *a, const vn_plan *b);
/* Where two first differ, of a's side, into VN_PLAN_DIFFERENCE bytes: "rms_norm of
 * layer0.attn_norm has eps 1e-06"; returns what. */
enum { VN_PLAN_DIFFERENCE = 3 * VN_NAME_MAX };
char     *vn_plan_difference(const vn_plan *a, const vn_plan *b, char *what);

/* Everything an engine relies on: as many inputs, weights and outputs as the
 * operation has, inputs made earlier, sizes that fit together and the constants
 * (heads, head width, rotary columns), constants finite and in range, sizes
 * bounded so that a row has fewer than 2^31 elements, and what follows from the
 * rest (node, slot, last_use, all of the states) as it must be.
 * Any content is allowed: a plan of a file, a clone with changed constants. Not
 * checked: that names are unique. VN_ERR_UNSUPPORTED "nodes[7] (attention,
 * layer0.attn_context): ...", or VN_ERR_NOMEM. */
vn_status vn_plan_check(const vn_plan *p, vn_error *err);
/* Fill in what follows from the rest, absent optional weights and outputs
 * included; then vn_plan_check. */
vn_status vn_plan_settle(vn_plan *p, vn_error *err);

int       vn_plan_find(const vn_plan *p, const char *name); /* value by name, -1 when absent */
int       vn_plan_root(const vn_plan *p, int value);        /* the value itself, or what it is an alias of */
vn_shape  vn_value_shape(const vn_value *v, int64_t tokens, int64_t keys);
int64_t   vn_value_row(const vn_value *v); /* elements of one row: all axes but the first */
/* No node reads it, and no engine holds it whole: it is made in pieces, and handed
 * over as it is made. The output of a last linear (the logits, as large as all
 * the rest together), rows over the keys (scores), an activation made on demand. */
bool      vn_value_streams(const vn_plan *p, int value);
bool      vn_value_wide(const vn_plan *p, int value); /* it is wide, or shows a state that is */

/* What a node of this operation and constants keeps: fills s, which has room for
 * VN_MAX_STATE, and returns how many. Safe for any node. */
int         vn_node_states(const vn_plan *p, int node, vn_state *s);
const char *vn_state_word(const vn_plan *p, int state); /* "keys", for messages */
/* Elements of a row of one that grows; of the whole of one that does not. */
int64_t     vn_state_row(const vn_state *s);
/* Whether a run of `tokens` tokens can go back to `to` of them, for the engines:
 * VN_ERR_USAGE when there are not so many, VN_ERR_UNSUPPORTED for a point in the
 * midst of a plan that keeps a state of fixed size, whose past is gone. */
vn_status   vn_plan_can_rewind(const vn_plan *p, int64_t tokens, int64_t to, vn_error *err);

const char *vn_op_name(vn_op op);
int         vn_op_from_name(const char *name, vn_op *op);
const char *vn_act_name(vn_act act);

/* The constants of an operation by name, for files, reports and experiments.
 * i counts from 0; NULL when there are no more. Words (an activation, a kind
 * of RoPE) are numbers here, and so are lists: 1 + the number of the plan's, 0: none. */
const char *vn_const_name(vn_op op, int i);
bool        vn_const_is_list(vn_op op, int i);
bool        vn_const_is_optional(vn_op op, int i); /* files of before it was there have none: 0 */
double      vn_const_get(const vn_node *n, int i);
vn_status   vn_const_set(vn_node *n, const char *name, double value, vn_error *err);
/* Does a node compute something that no model of our families does: a constant of an experiment is not 0, or its activation, its
 * pairs or its operation are no family's? */
bool        vn_node_is_variant(const vn_node *n);

#endif
