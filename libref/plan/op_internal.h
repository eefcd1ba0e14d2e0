/* op_internal.h: what the files op_*.c share. Inside libref/plan only.
 *
 * Each of these files holds some operations of op.def: the functions of plan.h that add a node to a
 * plan being built, and the rules of a finished node.
 */
#pragma once

#include "libref/plan/plan.h"

/* ---- building (build.c) -------------------------------------------------------------------- */

enum { VN_BUILD_NAMES = 4096 };
struct vn_builder {
	vn_plan  *plan;
	int       layer;
	vn_status status; /* of the first failure, after which calls do nothing useful */
	vn_error  err;
	int       room_nodes, room_values, room_weights, room_older;
	int      *newest; /* (VN_BUILD_NAMES): by the hash of a name, the last weight that has it, plus 1; 0: none */
	int      *older;  /* (n_weights): the one before it with the same hash, plus 1 */
	bool     *named;  /* (layers + 1, VN_N_POINTS): checkpoints that exist; row 0 is outside layers */
};

/* Keeps the first failure. format: with one %s, for what. Returns 0. */
int vn_build_fail(vn_builder *b, vn_status st, const char *format, const char *what);
/* Adds an output of the next node. */
int vn_build_value(vn_builder *b, vn_point point, int rank, const int *size);
/* Same, shaped like x. */
int vn_build_like(vn_builder *b, int x, vn_point out);
/* Marks an output as stored in full width; returns it. */
int vn_build_wide(vn_builder *b, int y);
/* Inputs, weights and outputs of a vn_node. */
#define VN_IN(n, ...)  .n_in = n, .in = { __VA_ARGS__ }
#define VN_W(n, ...)   .n_w = n, .w = { __VA_ARGS__ }
#define VN_OUT(n, ...) .n_out = n, .out = { __VA_ARGS__ }
/* Adds a node, whose layer is the builder's; its first output must exist. */
void vn_build_node(vn_builder *b, vn_node n);

/* ---- rules (check.c, op_fit.c) --------------------------------------------------------------- */

/* A walk over a plan being checked. */
typedef struct vn_plan_walk {
	const vn_plan  *p;
	int            *made, *last; /* (n_values): the node that makes it, the last that reads it; -1 */
	int             states;      /* of the nodes so far */
	vn_error       *err;
	/* the node being checked; its first input, weight and output, or NULL */
	int             node;
	const vn_node  *n;
	const vn_value *x, *y;
	const vn_shape *m;
} vn_plan_walk;

/* Do the sizes and constants of the node fit what it reads and makes? Its inputs, weights and
 * outputs exist. */
typedef vn_status vn_op_check(const vn_plan_walk *w);

/* Returns a constant whose value is beyond its range in op.def; NULL: there is none. */
const char *vn_const_beyond(const vn_node *n, double *value);

#define OP(NAME, name, check, ...) vn_op_check vn_check_##check;
#include "libref/plan/op.def"

__attribute__((format(printf, 2, 3))) vn_status vn_plan_check_fail(const vn_plan_walk *w, const char *format, ...);

/* Fails, unless `fit`, because the shapes of inputs, weights and outputs do not fit together. */
vn_status vn_plan_check_fit(const vn_plan_walk *w, bool fit);
/* Does the value have this rank and these sizes? */
bool      vn_plan_check_shape(const vn_value *v, int rank, int a, int b, int c);
bool      vn_plan_check_same_shape(const vn_value *a, const vn_value *b); /* shapes */
/* Returns the elements in a token's row; 0 if another axis is tokens or keys, or if they exceed
 * 2^31. */
int64_t   vn_plan_check_row(const vn_value *v);
