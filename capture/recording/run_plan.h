/* run_plan.h: the plan of a run of any PyTorch module, as its recording has it
 * (specs/checkpoint.md): which operation of which step made a tensor, and from which.
 *
 * Unlike vn_plan it names no formula: it can be followed, not computed.
 *
 * Owner   a plan belongs to its recording; names are interned.
 * Errors  name the line: a file that contradicts itself is VN_ERR_FORMAT.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

/* A result of a node. */
typedef struct vn_run_value {
	const char *name;
	int         step, node;
} vn_run_value;

/* One call of a leaf module or of a function. */
typedef struct vn_run_node {
	const char *op, *path; /* its class or function; the module that it is or ran in: "" the outermost */
	int         step;
	int         first_in, n_in; /* of vn_run_plan.in */
} vn_run_node;

typedef struct vn_run_plan {
	vn_run_node  *node; /* (n), in execution order */
	int           n;
	vn_run_value *value; /* (n_values), sorted by step, then name */
	int           n_values;
	int          *in; /* (n_in): values */
	int           n_in;
} vn_run_plan;

/* Reads the lines of /plan/nodes. *plan is NULL after a failure. */
vn_status vn_run_plan_read(char *const *line, int n, vn_run_plan **plan, vn_error *err);
void      vn_run_plan_free(vn_run_plan *plan);
/* Returns the index of a result; the node that made it; -1: there is none. */
int       vn_run_plan_value(const vn_run_plan *plan, int step, const char *name);
int       vn_run_plan_maker(const vn_run_plan *plan, int step, const char *name);
