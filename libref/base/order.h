/* order.h: what qsort and bsearch order by.
 *
 *	VN_ORDER_BY(by_name, line, strcmp(x->name, y->name), VN_ORDER(x->step, y->step))
 *	qsort(list, n, sizeof *list, by_name);
 */
#pragma once

/* Of two numbers: -1, 0 or 1. */
#define VN_ORDER(x, y) (((x) > (y)) - ((x) < (y)))

/* Defines a static function `name` that compares the elements *x and *y, by the first key that is
 * not 0; at most seven keys. */
#define VN_ORDER_BY(name, type, ...) VN_ORDER_KEYS(name, type, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define VN_ORDER_KEYS(name, type, first, k2, k3, k4, k5, k6, k7, ...) \
	static int name(const void *a, const void *b) \
	{ \
		const type *x = a; \
		const type *y = b; \
		int         order = (first); \
		order = order ? order : (k2); \
		order = order ? order : (k3); \
		order = order ? order : (k4); \
		order = order ? order : (k5); \
		order = order ? order : (k6); \
		return order ? order : (k7); \
	}
