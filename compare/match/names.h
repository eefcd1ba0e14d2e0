/* names.h: an index of a plan's values by name, for comparisons that look up thousands of names in
 * plans of thousands of values. */
#pragma once

#include "libref/plan/plan.h"

typedef struct vn_named_value {
	const char *name;
	int         value;
} vn_named_value;

typedef struct vn_names {
	const vn_plan  *plan;    /* borrowed */
	vn_named_value *by_name; /* (n_values), sorted by name */
} vn_names;

/* Builds the index. plan may be NULL: then no name is found. Call vn_names_finish afterwards. */
void vn_names_init(vn_names *n, const vn_plan *plan);
void vn_names_finish(vn_names *n);
/* vn_names_find returns the value with this name; vn_names_root returns the value that it is an
 * alias of, or the value itself. -1: no such name. */
int  vn_names_find(const vn_names *n, const char *name);
int  vn_names_root(const vn_names *n, const char *name);
