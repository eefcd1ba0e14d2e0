/* names.h: an index of the values of a plan by name. A comparison looks up thousands of names in
 * plans of thousands of values. */
#ifndef VN_COMPARE_NAMES_H
#define VN_COMPARE_NAMES_H

#include "libref/plan/plan.h"

#include <stdint.h>

typedef struct vn_names {
	const vn_plan *plan; /* borrowed */
	int *by_name;        /* (n_values), sorted by name */
} vn_names;

/* plan may be NULL: then no name is found. */
vn_status vn_names_init(vn_names *n, const vn_plan *plan, vn_error *err);
void      vn_names_finish(vn_names *n);
/* The value of this name, and the one whose second name it may be; -1 when absent. */
int       vn_names_find(const vn_names *n, const char *name);
int       vn_names_root(const vn_names *n, const char *name);

#endif
