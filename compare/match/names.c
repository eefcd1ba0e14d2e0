/* names.c: see names.h. */
#include "compare/match/names.h"

#include <stdlib.h>
#include <string.h>

/* For qsort_r, a GNU extension like the rest of the build's _GNU_SOURCE; `plan` is its context. */
static int compare_names(const void *a, const void *b, void *plan)
{
	const vn_plan *p = plan;
	return strcmp(p->value[*(const int *)a].name, p->value[*(const int *)b].name);
}

vn_status vn_names_init(vn_names *n, const vn_plan *plan, vn_error *err)
{
	*n = (vn_names) { .plan = plan };
	if (!plan)
		return VN_OK;
	if (!(n->by_name = malloc(((size_t)plan->n_values + 1) * sizeof *n->by_name)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d names", plan->n_values);
	for (int i = 0; i < plan->n_values; i++)
		n->by_name[i] = i;
	vn_plan *p = (vn_plan *)(uintptr_t)plan; /* qsort_r takes a pointer without const */
	qsort_r(n->by_name, (size_t)plan->n_values, sizeof *n->by_name, compare_names, p);
	return VN_OK;
}

void vn_names_finish(vn_names *n)
{
	free(n->by_name);
	*n = (vn_names) { 0 };
}

int vn_names_find(const vn_names *n, const char *name)
{
	int lo = 0, hi = n->plan ? n->plan->n_values : 0;
	while (lo < hi) {
		const int mid = lo + (hi - lo) / 2, value = n->by_name[mid], order = strcmp(name, n->plan->value[value].name);
		if (order == 0)
			return value;
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return -1;
}

int vn_names_root(const vn_names *n, const char *name)
{
	const int value = vn_names_find(n, name);
	return value < 0 ? -1 : vn_plan_root(n->plan, value);
}
