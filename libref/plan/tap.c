/* tap.c: see tap.h. */
#include "libref/plan/tap.h"

#include "libref/base/glob.h"
#include "libref/base/nearest.h"

#include <string.h>

void vn_taps_select(const vn_taps *t, int64_t past, int64_t tokens, int64_t *first, int64_t *count)
{
	int64_t a = 0, b = tokens - 1; /* rows of the call, inclusive */

	if (t->rows == VN_ROWS_LAST) {
		a = b;
	} else if (t->rows == VN_ROWS_RANGE) {
		a = t->first - past;
		b = t->last - past;
		a = a < 0 ? 0 : a;
		b = b > tokens - 1 ? tokens - 1 : b;
	}
	*first = a < tokens ? a : tokens;
	*count = b >= a ? b - a + 1 : 0;
}

static const char *value_name(const void *plan, int i)
{
	return ((const vn_plan *)plan)->value[i].name;
}

vn_status vn_taps_nothing(const vn_plan *p, const char *glob, vn_error *err)
{
	char hint[VN_POINT_HINT];

	return vn_fail(err, VN_ERR_USAGE, "'%s' matches no checkpoint of this model%s%s; vernier points MODEL lists them",
	               glob, strchr(glob, ',') ? ": give --points once for each" : "",
	               vn_point_hint(glob, value_name, p, p->n_values, hint));
}

vn_status vn_taps_choose(const vn_plan *p, const char *const *pattern, int n_patterns, const int layers[2], bool *want,
                         vn_error *err)
{
	const int first_layer = layers ? layers[0] : -1, last_layer = layers ? layers[1] : -1;

	memset(want, 0, (size_t)p->n_values * sizeof *want);
	for (int i = 0; i < n_patterns || i == 0; i++) {
		const char *glob = n_patterns ? pattern[i] : "*";
		vn_status   st = vn_glob_check(glob, err);
		int         hits = 0;

		if (st)
			return st;
		for (int v = 0; v < p->n_values; v++) {
			const vn_value *value = &p->value[v];
			if (!vn_glob_match(glob, value->name) || (n_patterns == 0 && value->on_demand))
				continue;
			hits++;
			if (first_layer >= 0 && value->layer >= 0 && (value->layer < first_layer || value->layer > last_layer))
				continue;
			want[v] = want[vn_plan_root(p, v)] = true;
		}
		if (hits == 0)
			return vn_taps_nothing(p, glob, err);
	}
	for (int v = 0; v < p->n_values; v++)
		if (want[v])
			return VN_OK;
	return vn_fail(err, VN_ERR_USAGE, "layers %d-%d: the patterns select nothing there", first_layer, last_layer);
}
