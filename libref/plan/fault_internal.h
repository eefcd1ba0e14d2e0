/* fault_internal.h: a row of the catalogue of faults, and the ways to change a plan. Inside
 * libref/plan only.
 *
 * The rows are in catalogue.def. fault_makes.def and the chapters (fault_rope.c...) hold what they
 * name. What makes a fault need not update what follows from the rest (value.node, last_use,
 * states): vn_plan_settle is called after it.
 */
#pragma once

#include "libref/plan/fault.h"

#include "libref/base/arrange.h"

struct vn_faulty {
	/* the original plan; its values and weights have the same numbers in the copy */
	const vn_plan      *unmodified;
	vn_plan            *plan;   /* the copy */
	vn_tensor          *weight; /* (n_weights of the copy) */
	void              **own;    /* data of weights that we allocated */
	int                 n_own;
	int                 kept;           /* weights that a change left equal */
	const vn_some_rows *some;           /* of a large matrix only these rows are made; NULL: all */
	int                *early, n_early; /* vn_faulty_early */
};

typedef struct vn_fault_row vn_fault_row;
typedef vn_status           vn_fault_make(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err);

typedef enum vn_fault_need {
	VN_NEED_NOTHING,
#define NEED(name, holds, why) VN_NEED_##name,
#include "libref/plan/fault_needs.def"
} vn_fault_need;

/* A row of catalogue.def. */
struct vn_fault_row {
	const char    *id, *title;
	unsigned       on; /* bit mask of the operations (vn_op) that it applies to */
	vn_fault_need  needs[3];
	vn_fault_make *make;
	const char    *constant;
	double         x;
};

#define FAULT(name, id, title, on, needs, make, constant, x) vn_fault_make vn_make_##make;
#include "libref/plan/catalogue.def"

/* ---- meaning of x in a row --------------------------------------------------------- */

enum {
	SCALE_MISSING,
	SCALE_TWICE,
	SCALE_BY_WIDTH,
	SCALE_BY_HEAD,
	SCALE_BY_ROTATED,
	SCALE_NO_FACTOR,
	SCALE_ROOT_FACTOR,
	SCALE_FACTOR_TWICE
};
/* What the cache of latent attention gives later calls: a row of the rotated keys, then the latent
 * vector, read in the other order (of the reverse: BACK); the latent before its norm; the keys
 * before their rotation */
enum { LATENT_SECOND, LATENT_BACK, LATENT_RAW, LATENT_UNROTATED };
enum { YARN_RAMP, YARN_CONTEXT, YARN_STRETCH, YARN_COLUMNS };
enum { FUSED_BY_ROWS, FUSED_BY_HALVES, FUSED_BY_RANKS }; /* larger values: of that many ranks */
enum { ALL_ROWS = 1 << 24 };                             /* in tiles of so many: in one tile */
enum {
	BLOCK_SWAPPED,
	BLOCK_LOW_SCALES,
	BLOCK_PLUS_MIN,
	BLOCK_NO_SUBSCALES, /* up to here in formats with scales of 6 bits only */
	BLOCK_NO_MIN,
	BLOCK_NO_SCALE
};
/* x of a faulty capture: what is recorded in place of the node's output */
enum {
	RECORD_BEFORE,
	RECORD_AFTER,
	RECORD_CONTEXT,
	RECORD_OUT,
	RECORD_GATED,
	RECORD_LAYER_BEFORE,
	RECORD_FINAL,
	RECORD_ONE_TILE,
	RECORD_FIRST_COLUMNS
};
/* x = a vn_cache_form, what it applies to (cache_of), and whether only from the second call on. */
#define CACHE(form, of, steps) ((form) + 32 * (of) + 128 * (steps))
#define CACHE_FORM(x)          ((int)(x) % 32)
#define CACHE_OF(x)            ((int)(x) / 32 % 4)

/* ---- queries (fault_edit.c) --------------------------------------------------------- */

/* Returns the node that makes an input. */
static inline const vn_node *vn_fault_maker(const vn_plan *p, const vn_node *n, int input)
{
	return &p->node[p->value[n->in[input]].node];
}

static inline vn_point vn_fault_point(const vn_plan *p, const vn_node *n)
{
	return p->value[n->out[0]].point;
}

double vn_fault_const(const vn_node *n, const char *name);
/* Returns the value of a point in a layer, not an alias; -1: none. */
int    vn_fault_value(const vn_plan *p, int layer, vn_point point);
int    vn_fault_width(const vn_plan *p); /* D of the model */

/* Returns the node as it was before anything was injected. */
static inline const vn_node *vn_fault_unmodified(const vn_faulty *f, int node)
{
	return &f->unmodified->node[f->unmodified->value[f->plan->node[node].out[0]].node];
}

/* ---- queries for the needs of a row ------------------------------------------------------ */

/* Returns the factor of cosine and sine. */
float          vn_fault_factor(const vn_plan *p, const vn_rope *rope);
/* Would other yarn or llama3 settings change the node's frequencies? */
bool           vn_fault_moves(const vn_fault_row *r, const vn_plan *p, const vn_node *n);
/* Returns how many rows of keys each query head gets, if that is an even number of pairs, and
 * others than a key head has; else 0. */
int            vn_fault_keys_per_query(const vn_plan *p, const vn_node *n);
/* Returns the factor of a SCALE_... fault for an attention. */
double         vn_fault_scale(const vn_fault_row *r, const vn_plan *p, const vn_node *n);
/* Does its scale contain yarn's factor of scores? */
bool           vn_fault_has_mscale(const vn_plan *p, const vn_node *n);
/* Returns the window of the first layer that has one; 0: no layer has. */
int            vn_fault_window(const vn_plan *p);
/* Returns the same rotation in the first layer that rotates otherwise; NULL: there is none. */
const vn_node *vn_fault_other_rope(const vn_plan *p, const vn_node *n);
/* For three fused parts that are split differently: returns the part that takes this part's
 * place. */
/* Returns the number of key heads of the attention in the node's layer; 0: it has none. */
int            vn_fault_kv_heads(const vn_plan *p, const vn_node *n);
int            vn_fault_part(const vn_fault_row *r, const vn_node *n);
/* The same for three products with a matrix each, which an engine joins: are its rows others? */
bool           vn_fault_rows_move(const vn_fault_row *r, const vn_plan *p, const vn_node *n);
/* For queries, keys and values with matrices of their own: the number of key heads, or 0 if it does
 * not divide that of query heads. -1: they have none. */
int            vn_fault_groups(const vn_plan *p, const vn_node *n);
/* Returns the counterpart of a node in its layer (of gate and up, keys and values, beta and decay,
 * the norms of queries and keys, the two norms of a layer), if it has weights of the same shapes;
 * else NULL. */
const vn_node *vn_fault_beside(const vn_plan *p, const vn_node *n);
/* Returns the same node r->x layers further on; x 0: in the first layer. NULL: there is none. */
const vn_node *vn_fault_other_layer(const vn_fault_row *r, const vn_plan *p, const vn_node *n);
/* Returns the weight that is the token embedding table. */
int            vn_fault_embedding(const vn_plan *p);
/* Returns how many columns a norm norms together. */
int            vn_fault_columns(const vn_plan *p, const vn_node *n);
/* Returns the norm that reads the residual input of a layer's sum; -1: none. */
int            vn_fault_norm_of_sum(const vn_plan *p, const vn_node *n);
/* For a layer's second sum: returns the residual input of the first; -1: none. */
int            vn_fault_first_base(const vn_plan *p, const vn_node *n);
/* Returns the value that a RECORD_... fault records; -1: none. */
int            vn_fault_recorded(const vn_fault_row *r, const vn_plan *p, const vn_node *n);
/* Returns the corresponding value of the previous layer; -1: none. */
int            vn_fault_before(const vn_plan *p, int value);
/* Returns how many channels of a convolution precede those of the values. */
int            vn_fault_before_values(const vn_plan *p, const vn_node *n);
/* Returns the projection after a gate, if its sizes fit the gate; -1: none. */
int            vn_fault_behind_gate(const vn_plan *p, const vn_node *n);

/* ---- changes (fault_edit.c) -------------------------------------------------------- */

/* Inserts a node before node `at`, with one output like value `like`; later nodes are renumbered.
 * *value: the new value, which is not a checkpoint. */
vn_status vn_fault_insert(vn_faulty *f, int at, vn_node n, int like, int *value, vn_error *err);
/* Makes a node's result pass through `maker`, which is inserted after node `at` (the node itself or
 * a later one). The maker then makes the node's output value; where it reads that value, it reads a
 * new value instead, which the node makes now. alone: other readers also read the new value, so
 * only the checkpoint changes. */
vn_status vn_fault_behind(vn_faulty *f, int node, int at, vn_node maker, bool alone, vn_error *err);
/* Same directly after the node; other readers read what maker makes. */
vn_status vn_fault_follow(vn_faulty *f, int node, vn_node maker, vn_error *err);
/* Returns an experiment's node (T,...), VN_OP_ROWS or VN_OP_ACT, that reads a value; by, inner:
 * constants of VN_OP_ROWS. */
vn_node   vn_fault_rows(int layer, int form, int by, int inner, int value);
vn_node   vn_fault_act(int layer, vn_act act, int value);
/* Is the node's first output an ordinary value: not on demand, not wide, not made by a fault? */
bool      vn_fault_plain(const vn_plan *p, const vn_node *n);
/* Makes a node read its input through `maker`, which is inserted before it and reads the input. */
vn_status vn_fault_feed(vn_faulty *f, int node, int input, vn_node maker, vn_error *err);
/* Returns a node that copies a value. */
vn_node   vn_fault_copy(const vn_plan *p, int layer, int value);
/* Makes the node a copy of a value, which has the shape of its output. */
void      vn_fault_copy_of(vn_faulty *f, int node, int value);
/* Adds a weight with the name, shape, format and bytes of weight `like`, for the caller to
 * change. */
vn_status vn_fault_weight(vn_faulty *f, int like, int *weight, vn_error *err);
/* Makes a node read a new weight in place of its weight `slot`. f frees the data of w, also after a
 * failure; NULL: no memory. */
vn_status vn_fault_replace(vn_faulty *f, int node, int slot, vn_tensor w, vn_error *err);
/* Same with these numbers, in a format that can hold sums of two; the call frees them. */
vn_status vn_fault_store(vn_faulty *f, int node, int slot, const vn_shape *shape, double *numbers, vn_error *err);

/* A row of the last axis of a weight: row `row` of `rows`. */
typedef struct vn_fault_run {
	const double *x; /* (n), the numbers */
	double       *y; /* (n), to be filled with the changed numbers */
	int64_t       n, row, rows;
} vn_fault_run;
typedef void vn_fault_changer(const vn_fault_run *run, double by);
/* Changes the node's weight `slot` row by row. by: a parameter of the change. */
vn_status    vn_fault_change(vn_faulty *f, int node, int slot, vn_fault_changer *change, double by, vn_error *err);
/* Rearranges it along one of its axes; axis -1: all numbers in a row. */
vn_status    vn_fault_arrange(vn_faulty *f, int node, int slot, int axis, const vn_arrange *m, vn_error *err);
/* Rearranges the outputs of a product: its matrix, and its bias if there is one. */
vn_status    vn_fault_arrange_outputs(vn_faulty *f, int node, const vn_arrange *m, vn_error *err);
/* Products that are rearranged as if they were one: each has so many parts, all of one size. */
typedef struct vn_fault_joined {
	const vn_node *const *source;
	const int64_t        *parts;
	int                   n, which; /* the product to change is source[which] */
} vn_fault_joined;
/* Same across these products. Changes the one at the node. */
vn_status vn_fault_mix(vn_faulty *f, int node, const vn_fault_joined *j, const vn_arrange *m, vn_error *err);
