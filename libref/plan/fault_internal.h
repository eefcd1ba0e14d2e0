/* fault_internal.h: what the chapters of the catalogue share: rows, and the ways to change a plan.
 *
 * Inside libref/plan only. A chapter (fault_rope.c...) is a table of rows and the
 * functions they name. A function that makes a fault may leave what follows from the
 * rest (value.node, last_use, states) as it is: vn_plan_settle comes after it.
 */
#ifndef VN_LIBREF_PLAN_FAULT_INTERNAL_H
#define VN_LIBREF_PLAN_FAULT_INTERNAL_H

#include "libref/plan/fault.h"

#include "libref/base/arrange.h"

struct vn_faulty {
	const vn_plan *unmodified; /* what it was made of; its values and weights have the same numbers here */
	vn_plan   *plan;   /* the copy */
	vn_tensor *weight; /* (n_weights of the copy) */
	void     **own;    /* the numbers of weights that are ours */
	int        n_own;
	int        kept;   /* weights that a change left as they were */
};

typedef struct vn_fault_row vn_fault_row;
typedef vn_status vn_fault_make(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err);

typedef enum vn_fault_need {
	VN_NEEDS_NOTHING,
#define NEED(name, holds, why) VN_NEED_##name,
#include "libref/plan/fault_needs.def"
} vn_fault_need;

/* A row of catalogue.def. */
struct vn_fault_row {
	const char   *id, *title;
	unsigned      on;       /* of the nodes that it is for: bits of vn_op */
	vn_fault_need needs[3];
	vn_fault_make *make;
	const char   *constant;
	double        x;
};

#define FAULT(name, id, title, on, needs, make, constant, x) vn_fault_make vn_make_##make;
#include "libref/plan/catalogue.def"

/* ---- x of a row --------------------------------------------------------------------- */

enum { SCALE_MISSING, SCALE_TWICE, SCALE_BY_WIDTH, SCALE_BY_HEAD, SCALE_BY_ROTATED };
enum { YARN_RAMP, YARN_CONTEXT, YARN_STRETCH, YARN_COLUMNS };
enum { FUSED_BY_ROWS, FUSED_BY_HALVES, FUSED_BY_RANKS }; /* FUSED_BY_RANKS and more: of so many ranks */
enum { BLOCK_SWAPPED, BLOCK_LOW_SCALES, BLOCK_PLUS_MIN };
/* What is recorded in its place. */
enum { RECORD_BEFORE, RECORD_AFTER, RECORD_CONTEXT, RECORD_OUT, RECORD_GATED, RECORD_LAYER_BEFORE, RECORD_FINAL, RECORD_ONE_TILE };
/* vn_cache_form, of what (cache_of), and whether it is so from the second call on. */
#define CACHE(form, of, steps) ((form) + 16 * (of) + 64 * (steps))
#define CACHE_FORM(x) ((int)(x) % 16)
#define CACHE_OF(x)   ((int)(x) / 16 % 4)

/* ---- looking (fault_edit.c) --------------------------------------------------------- */

/* The node that makes an input. */
static inline const vn_node *vn_fault_maker(const vn_plan *p, const vn_node *n, int input)
{
	return &p->node[p->value[n->in[input]].node];
}

static inline vn_point vn_fault_point(const vn_plan *p, const vn_node *n)
{
	return p->value[n->out[0]].point;
}

double   vn_fault_const(const vn_node *n, const char *name);
/* The value of a point in a layer, not a second name; -1: none. */
int      vn_fault_value(const vn_plan *p, int layer, vn_point point);
int      vn_fault_width(const vn_plan *p);  /* D of the model */

/* What a node was before anything was injected. */
static inline const vn_node *vn_fault_sound(const vn_faulty *f, int node)
{
	return &f->unmodified->node[f->unmodified->value[f->plan->node[node].out[0]].node];
}

/* ---- looking, for what a row needs ------------------------------------------------------- */

bool   vn_fault_moves(const vn_fault_row *r, const vn_plan *p, const vn_node *n); /* another yarn or llama3 has other frequencies */
double vn_fault_scale(const vn_fault_row *r, const vn_plan *p, const vn_node *n); /* SCALE_... of an attention */
int    vn_fault_window(const vn_plan *p);                                         /* of the first layer that has one */
int    vn_fault_part(const vn_fault_row *r, const vn_node *n);                    /* of three that are split otherwise: which stands in the place of this one */
/* Of queries, keys and values by matrices of their own: the key heads, 0 when they do not divide the query heads. -1: they are not so. */
int    vn_fault_groups(const vn_plan *p, const vn_node *n);
/* The projection that stands beside this one, with weights of the same shape; NULL. */
const vn_node *vn_fault_beside(const vn_plan *p, const vn_node *n, vn_point a, vn_point b);
const vn_node *vn_fault_other_layer(const vn_fault_row *r, const vn_plan *p, const vn_node *n); /* r->x layers on; 0: the first */
int    vn_fault_embedding(const vn_plan *p);                                      /* the table of tokens */
int    vn_fault_columns(const vn_plan *p, const vn_node *n);                      /* that a norm norms together */
/* The norm whose weights a norm may be given by mistake: of keys for queries, or of the feed-forward part for attention, and back. */
const vn_node *vn_fault_partner(const vn_plan *p, const vn_node *n, bool heads);
int    vn_fault_norm_of_sum(const vn_plan *p, const vn_node *n);                  /* that reads what a sum of a layer adds to; -1 */
int    vn_fault_norm_beside(const vn_plan *p, const vn_node *n);                  /* the same from either; -1 */
int    vn_fault_first_base(const vn_plan *p, const vn_node *n);                   /* what the first sum of a layer adds to, of the second; -1 */
int    vn_fault_recorded(const vn_fault_row *r, const vn_plan *p, const vn_node *n); /* RECORD_...; -1 */
int    vn_fault_before(const vn_plan *p, int value);                              /* what the layer before has in its place; -1 */
int    vn_fault_before_values(const vn_plan *p, const vn_node *n);                /* channels of a convolution before the values */
int    vn_fault_behind_gate(const vn_plan *p, const vn_node *n);                  /* the projection whose sizes a gate fits; -1 */

/* ---- changing (fault_edit.c) -------------------------------------------------------- */

/* A node with one output like value `like`, put in before node `at`; later nodes have a
 * number more. *value: the new value, nobody's checkpoint. */
vn_status vn_fault_insert(vn_faulty *f, int at, vn_node n, int like, int *value, vn_error *err);
/* `maker` behind node `at`, which is the node or a later one, makes what the node did: where it reads the node's output, it
 * reads what the node makes now, a value of the fault's own. alone: so do all others, and the checkpoint is recorded alone. */
vn_status vn_fault_behind(vn_faulty *f, int node, int at, vn_node maker, bool alone, vn_error *err);
/* The same right behind the node; others read what maker makes. */
vn_status vn_fault_follow(vn_faulty *f, int node, vn_node maker, vn_error *err);
/* A node (T,...) of an experiment's op (VN_OP_ROWS, VN_OP_ACT) that reads a value; by, inner: of rows. */
vn_node   vn_fault_rows(int layer, int form, int by, int inner, int value);
vn_node   vn_fault_act(int layer, vn_act act, int value);
/* A first output that goes by itself: not made on demand, not stored wide, not a fault's own. */
bool      vn_fault_plain(const vn_plan *p, const vn_node *n);
/* The node becomes a copy of a value of the shape of its output. */
void      vn_fault_copy_of(vn_faulty *f, int node, int value);
/* A weight more: these numbers (the call takes them, also when it fails) or, with
 * NULL, the bytes of weight `like`; dtype and shape as like's. shape NULL: like's. */
vn_status vn_fault_weight(vn_faulty *f, int like, double *numbers, const vn_shape *shape, int *weight, vn_error *err);
/* A weight more: the bytes of another in its format, changed by the caller; NULL bytes: no memory. */
vn_status vn_fault_bytes(vn_faulty *f, int like, int *weight, unsigned char **bytes, vn_error *err);
/* The numbers of a weight, the caller's to free(); NULL: no memory. */
double   *vn_fault_numbers(const vn_faulty *f, int weight);

/* The node's weight `slot` becomes what change makes of its numbers: x (count), as it
 * is; y (count), to be filled. */
typedef void vn_fault_change(const vn_fault_row *r, const vn_shape *s, const double *x, double *y);
vn_status vn_fault_change_weight(const vn_fault_row *r, vn_faulty *f, int node, int slot, vn_fault_change *change, vn_error *err);
/* Where each number becomes another by itself: a matrix of the vocabulary is never in memory as doubles. */
typedef double vn_fault_each(const vn_fault_row *r, double x);
vn_status vn_fault_change_each(const vn_fault_row *r, vn_faulty *f, int node, int slot, vn_fault_each *change, vn_error *err);
/* Where the last axis, n numbers, is changed by itself: x, as it is; y, to be filled. */
typedef void vn_fault_run(const vn_fault_row *r, const double *x, double *y, int64_t n);
vn_status vn_fault_change_rows(const vn_fault_row *r, vn_faulty *f, int node, int slot, vn_fault_run *change, vn_error *err);
/* Where numbers only change places, along an axis of the weight; -1: all of them in a row. */
vn_status vn_fault_arrange(vn_faulty *f, int node, int slot, int axis, const vn_arrange *m, vn_error *err);
/* The same of what a product makes: of its matrix, and of its bias where there is one. */
vn_status vn_fault_arrange_outputs(vn_faulty *f, int node, const vn_arrange *m, vn_error *err);

/* y = x times r->x. */
double vn_fault_times(const vn_fault_row *r, double x);

#endif
