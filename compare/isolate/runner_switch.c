/* runner_switch.c: writes sets of toggles as globs, the form of VERNIER_FORCE_REF. */
#include "compare/isolate/runner.h"

#include "capture/run/toggles.h"
#include "libref/base/alloc.h"
#include "libref/base/say.h"

#include <stdio.h>
#include <stdlib.h>

vn_status vn_runner_select(const vn_runner *x, const char *globs, bool *on, vn_error *err)
{
	char        *text = vn_alloc_text(globs);
	bool        *node = vn_alloc_zero((size_t)x->plan->n_nodes, sizeof *node);
	int          n;
	const char **list = vn_toggles_split(text, &n);
	vn_status    st = VN_OK;

	for (int i = 0; i < n && !st; i++)
		st = vn_toggles_match(x->plan, list[i], node, err);
	for (int i = 0; i < x->n && !st; i++)
		on[i] = node[x->node[i]];
	free(list);
	free(node);
	free(text);
	return st;
}

/* Does an earlier toggle of the set have the same component? */
static bool has_begun(const vn_runner *x, const bool *on, int at)
{
	for (int i = 0; i < at; i++)
		if (on[i] && x->component[i] == x->component[at])
			return true;
	return false;
}

/* Counts the toggles of this component that are in a layer: those of the set, or (on NULL) all. */
static int count_switched(const vn_runner *x, const bool *on, int component)
{
	int n = 0;

	for (int i = 0; i < x->n; i++)
		n += x->component[i] == component && x->layer[i] >= 0 && (!on || on[i]);
	return n;
}

static void put_layers(const vn_runner *x, const bool *on, int component, FILE *out)
{
	const char *comma = "";

	for (int i = 0; i < x->n; i++)
		if (on[i] && x->component[i] == component && x->layer[i] >= 0) {
			vn_say(out, "%s%d", comma, x->layer[i]);
			comma = ",";
		}
}

static void put_component(const vn_runner *x, const bool *on, int first, FILE *out)
{
	const int   component = x->component[first], n = count_switched(x, on, component);
	const char *name = vn_name_in_layer(x->name[first]);

	if (x->layer[first] < 0 || n == 1) {
		vn_say(out, "%s", x->name[first]);
		return;
	}
	if (n == count_switched(x, NULL, component)) {
		vn_say(out, "*.%s", name);
		return;
	}
	fputs("layer{", out);
	put_layers(x, on, component, out);
	vn_say(out, "}.%s", name);
}

char *vn_runner_switch(const vn_runner *x, const bool *on)
{
	vn_text_stream s;
	const char    *comma = "";
	FILE          *out = vn_alloc_stream(&s);

	for (int i = 0; i < x->n; i++)
		if (on[i] && !has_begun(x, on, i)) {
			vn_say(out, "%s", comma);
			put_component(x, on, i, out);
			comma = ",";
		}
	return vn_alloc_streamed(&s);
}
