/* fault_inside.h: what the chapters of the catalogue share: rows, and the ways to change a plan.
 *
 * Inside libref/plan only. A chapter (fault_rope.c...) is a table of rows and the
 * functions they name. A function that makes a fault may leave what follows from the
 * rest (value.node, last_use, states) as it is: vn_plan_settle comes after it.
 */
#ifndef VN_LIBREF_PLAN_FAULT_INSIDE_H
#define VN_LIBREF_PLAN_FAULT_INSIDE_H

#include "libref/plan/fault.h"

struct vn_faulty {
	const vn_plan *sound; /* what it was made of; its values and weights have the same numbers here */
	vn_plan   *plan;   /* the copy */
	vn_tensor *weight; /* (n_weights of the copy) */
	void     **own;    /* the numbers of weights that are ours */
	int        n_own;
	int        kept;   /* weights that a change left as they were */
};

typedef struct vn_fault_row vn_fault_row;

struct vn_fault_row {
	const char *id, *means;
	unsigned    ops;      /* of the nodes that it is for: VN_ON(ROPE) | ... */
	/* Beyond them; half a sentence, or NULL when it fits. NULL: as of a constant. */
	const char *(*why_not)(const vn_fault_row *r, const vn_plan *p, const vn_node *n);
	/* NULL: constant `name` becomes x. */
	vn_status   (*make)(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err);
	const char *name;
	double      x;        /* a parameter, whose meaning is the functions' */
};

#define VN_ON(op) (1u << VN_OP_##op)

typedef struct vn_fault_chapter {
	const vn_fault_row *row;
	int                 n;
} vn_fault_chapter;

extern const vn_fault_chapter vn_faults_rope, vn_faults_attention, vn_faults_weights, vn_faults_norms, vn_faults_mlp,
	vn_faults_capture, vn_faults_numbers, vn_faults_cache, vn_faults_reads, vn_faults_gdn, vn_faults_blocks, vn_faults_split;

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
	return &f->sound->node[f->sound->value[f->plan->node[node].out[0]].node];
}

/* "it is so already" when constant r->name is r->x: for constants. */
const char *vn_fault_const_why_not(const vn_fault_row *r, const vn_plan *p, const vn_node *n);

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
/* Where numbers only change places. Number `at` is that which was at the result, or 0 (less than 0), and so on for *n in a row. */
typedef int64_t vn_fault_place(const vn_fault_row *r, const vn_shape *s, int64_t at, int64_t *n);
vn_status vn_fault_change_places(const vn_fault_row *r, vn_faulty *f, int node, int slot, vn_fault_place *place, vn_error *err);
/* vn_fault_change_weight of a product's matrix, and of its bias where there is one, with another r->x. */
vn_status vn_fault_change_both(const vn_fault_row *r, vn_faulty *f, int node, double x, vn_fault_change *change, vn_error *err);

/* y = x times r->x. */
double vn_fault_times(const vn_fault_row *r, double x);

/* ---- for rows -------------------------------------------------------------------------- */

const char *vn_fault_anywhere(const vn_fault_row *r, const vn_plan *p, const vn_node *n); /* NULL */
const char *vn_fault_biased(const vn_fault_row *r, const vn_plan *p, const vn_node *n);   /* weight 1 is there */
vn_status   vn_fault_no_bias(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err);
vn_status   vn_fault_skipped(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err); /* a copy of input 0 */

#endif
