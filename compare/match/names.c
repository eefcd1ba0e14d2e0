/* names.c: see names.h. */
#include "compare/match/names.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <stdlib.h>
#include <string.h>

VN_ORDER_BY(compare_names, vn_named_value, strcmp(x->name, y->name))

void vn_names_init(vn_names *n, const vn_plan *plan)
{
	*n = (vn_names) { .plan = plan };
	if (!plan)
		return;
	n->by_name = vn_alloc((size_t)plan->n_values, sizeof *n->by_name);
	for (int i = 0; i < plan->n_values; i++)
		n->by_name[i] = (vn_named_value) { plan->value[i].name, i };
	qsort(n->by_name, (size_t)plan->n_values, sizeof *n->by_name, compare_names);
}

void vn_names_finish(vn_names *n)
{
	free(n->by_name);
	*n = (vn_names) { 0 };
}

int vn_names_find(const vn_names *n, const char *name)
{
	const vn_named_value  key = { name, -1 };
	const vn_named_value *found = n->plan
	                                  ? bsearch(&key, n->by_name, (size_t)n->plan->n_values, sizeof key, compare_names)
	                                  : NULL;
	return found ? found->value : -1;
}

int vn_names_root(const vn_names *n, const char *name)
{
	const int value = vn_names_find(n, name);
	return value < 0 ? -1 : vn_plan_root(n->plan, value);
}
