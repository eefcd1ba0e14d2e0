/* toggles.c: see toggles.h. */
#include "capture/run/toggles.h"

#include "libref/base/alloc.h"
#include "libref/base/glob.h"
#include "libref/plan/tap.h"

#include <stdlib.h>
#include <string.h>

static int match_nodes(const vn_plan *p, const char *glob, bool second, bool *node)
{
	int hits = 0;

	for (int v = 0; v < p->n_values; v++)
		if ((p->value[v].alias_of >= 0) == second && vn_glob_match(glob, p->value[v].name)) {
			node[p->value[v].node] = true;
			hits++;
		}
	return hits;
}

vn_status vn_toggles_match(const vn_plan *p, const char *glob, bool *node, vn_error *err)
{
	const vn_status st = vn_glob_check(glob, err);

	if (st)
		return st;
	if (match_nodes(p, glob, false, node) || match_nodes(p, glob, true, node))
		return VN_OK;
	return vn_taps_nothing(p, glob, err);
}

vn_status vn_toggles_precision(const vn_plan *p, const char *precise, vn_policy *policy, vn_error *err)
{
	const char *at = strchr(precise, '@');
	char        word[16];
	vn_policy   want;
	vn_status   st;

	if (!at || (size_t)(at - precise) >= sizeof word)
		return vn_fail(err, VN_ERR_USAGE, "'%s' is not a precision at some checkpoints, like f32@layer0.*", precise);
	memcpy(word, precise, (size_t)(at - precise));
	word[at - precise] = '\0';
	if ((st = vn_policy_read("--precision", vn_policy_names, word, &want, err)))
		return vn_context(err, st, "'%s'", precise);
	bool *node = vn_alloc_zero((size_t)p->n_nodes, sizeof *node);
	st = vn_toggles_match(p, at + 1, node, err);
	for (int i = 0; !st && i < p->n_nodes; i++)
		if (node[i])
			policy[i] = want;
	free(node);
	return st;
}

const char **vn_toggles_split(char *text, int *n)
{
	size_t room = 1;
	int    depth = 0;

	for (const char *c = text; *c; c++)
		room += *c == ',';
	*n = 0;
	const char **list = vn_alloc(room, sizeof *list);
	if (*text)
		list[(*n)++] = text;
	for (char *c = text; *c; c++) {
		depth += (*c == '{') - (*c == '}' && depth > 0);
		if (*c == ',' && depth == 0) {
			*c = '\0';
			list[(*n)++] = c + 1;
		}
	}
	return list;
}
