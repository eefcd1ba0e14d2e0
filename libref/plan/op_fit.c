/* op_fit.c: the checks that the rules of several operations share: see op_internal.h. */
#include "libref/plan/op_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

vn_status vn_plan_check_fail(const vn_plan_walk *w, const char *format, ...)
{
	const vn_node *n = w->n;
	const bool     op = (unsigned)n->op<VN_N_OPS, named = n->n_out> 0 && n->out[0] >= 0 && n->out[0] < w->p->n_values;
	char           why[256];
	va_list        list;

	va_start(list, format);
	vsnprintf(why, sizeof why, format, list);
	va_end(list);
	return vn_fail(w->err, VN_ERR_UNSUPPORTED, "nodes[%d] (%s%s%s): %s", w->node, op ? vn_op_name(n->op) : "?",
	               named ? ", " : "", named ? w->p->value[n->out[0]].name : "", why);
}

vn_status vn_plan_check_fit(const vn_plan_walk *w, bool fit)
{
	return fit ? VN_OK : vn_plan_check_fail(w, "the shapes of its inputs, weights and outputs do not fit together");
}

bool vn_plan_check_shape(const vn_value *v, int rank, int a, int b, int c)
{
	const int size[] = { a, b, c };
	return v->rank == rank && memcmp(v->size, size, (size_t)rank * sizeof *size) == 0;
}

bool vn_plan_check_same_shape(const vn_value *a, const vn_value *b)
{
	return a->rank == b->rank && memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) == 0;
}

int64_t vn_plan_check_row(const vn_value *v)
{
	int64_t n = 1;
	if (v->size[0] != VN_T)
		return 0;
	for (int i = 1; i < v->rank; i++) {
		if (v->size[i] < 1 || n > INT32_MAX / v->size[i])
			return 0;
		n *= v->size[i];
	}
	return n;
}
