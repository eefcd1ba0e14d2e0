/* name_map_fit.c: finds the shipped map that knows an engine's names; see name_map.h. */
#include "capture/names/name_map.h"

#include "libref/base/error.h"

/* Rules that drop a tensor count too: they know the name. */
static bool is_known(const vn_name_map *m, const char *name)
{
	int n;

	for (int i = 0; i < m->n; i++)
		if (vn_name_map_rule_match(&m->rule[i], name, &n))
			return true;
	return false;
}

vn_status vn_name_map_fit(const char *const *name, int n, const char **best, int *fits, vn_error *err)
{
	*best = NULL;
	*fits = 0;
	for (int s = 0; vn_name_maps[s]; s++) {
		vn_name_map *m = NULL;
		int          known = 0;
		vn_status    st = vn_name_map_open(vn_name_maps[s], &m, err);
		if (st == VN_ERR_NOTFOUND) /* vernier is not installed whole */
			continue;
		if (st)
			return st;
		for (int i = 0; i < n; i++)
			known += is_known(m, name[i]);
		vn_name_map_destroy(m);
		if (known > *fits && 2 * known >= n) {
			*best = vn_name_maps[s];
			*fits = known;
		}
	}
	return VN_OK;
}
