/* replayed_words.c: see replayed_words.h. */
#include "compare/replayed/replayed_words.h"

#include "compare/text/places.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_MODULES = 64, NAMED = 4 };

/* The modules of a region, each once. */
typedef struct modules {
	const char *path[MOST_MODULES];
	int         n;
} modules;

static void add_module(modules *m, const char *path)
{
	for (int i = 0; i < m->n; i++)
		if (strcmp(m->path[i], path) == 0)
			return;
	if (m->n < MOST_MODULES)
		m->path[m->n++] = path;
}

static void add_maker(const vn_opened *o, modules *m, int step, const char *name)
{
	const vn_run_plan *plan = vn_recording_run_plan(o->ref);
	const int          node = plan ? vn_run_plan_maker(plan, step, name) : -1;
	if (node >= 0)
		add_module(m, plan->node[node].path);
}

/* The length of the longest path that all modules are in or are. */
static size_t common_length(const modules *m)
{
	const char *a = m->path[0];
	size_t      n = strlen(a);

	for (int i = 1; i < m->n; i++) {
		const char *b = m->path[i];
		size_t      k = 0;
		while (k < n && a[k] == b[k])
			k++;
		if (k == n ? b[k] == '\0' || b[k] == '.' : b[k] == '\0' && a[k] == '.') {
			n = k;
			continue;
		}
		while (k > 0 && !(a[k] == '.' && b[k] == '.'))
			k--;
		n = k;
	}
	return n;
}

/* Does a function of this module itself, which is not the outermost ones, belong to the region? */
static bool is_place(const modules *m, size_t n)
{
	for (int i = 0; i < m->n; i++)
		if (strlen(m->path[i]) == n && strchr(m->path[i], '.'))
			return true;
	return false;
}

/* Leaves out modules above all layers, such as the one that makes the masks, if others are left. */
static void drop_outermost(modules *m)
{
	int kept = 0, n = 0;

	for (int i = 0; i < m->n; i++)
		kept += strchr(m->path[i], '.') != NULL;
	for (int i = 0; i < m->n; i++)
		if (kept == 0 || strchr(m->path[i], '.'))
			m->path[n++] = m->path[i];
	m->n = n;
}

static void add_paths(const modules *m, char text[VN_WORDS])
{
	for (int k = 0; k < m->n && k < NAMED; k++)
		vn_text_add(text, VN_WORDS, "%s%s",
		            k == 0          ? ""
		            : k == m->n - 1 ? " or "
		                            : ", ",
		            *m->path[k] ? m->path[k] : "the model itself");
	if (m->n > NAMED)
		vn_text_add(text, VN_WORDS, " or %d more modules", m->n - NAMED);
}

const char *vn_replayed_place(const vn_opened *o, const vn_checkpoint *p, char text[VN_WORDS])
{
	const int i = vn_replayed_result_of(o, p);
	json_t   *line = i >= 0 && p->replay.span > 1 ? vn_replayed_line(o->replayed, i) : NULL;
	json_t   *region = line ? vn_json_field(line, "region") : NULL;
	modules   m = { .n = 0 };
	char      label[VN_LABEL];

	for (size_t k = 0; k < json_array_size(region); k++)
		add_maker(o, &m, p->step, json_string_value(json_array_get(region, k)));
	add_maker(o, &m, p->step, p->name);
	json_decref(line);
	drop_outermost(&m);
	if (m.n < 2)
		return NULL;
	const size_t common = common_length(&m);
	*text = '\0';
	if (is_place(&m, common))
		vn_text_add(text, VN_WORDS, "%.*s", (int)common, m.path[0]);
	else
		add_paths(&m, text);
	vn_text_add(text, VN_WORDS, ", at or before %s", vn_label(p, label));
	return text;
}

static void add_names(const json_t *names, const char *before, char text[VN_WORDS])
{
	const size_t n = json_array_size(names);

	for (size_t i = 0; i < n && i < NAMED; i++)
		vn_text_add(text, VN_WORDS, "%s%s", i ? ", " : before, json_string_value(json_array_get(names, i)));
	if (n > NAMED)
		vn_text_add(text, VN_WORDS, " and %d more", (int)(n - NAMED));
}

void vn_replayed_add_words(const vn_opened *o, const struct vn_replayed_findings *judged, const vn_checkpoint *p,
                           char text[VN_WORDS])
{
	const int i = p->replayed ? vn_replayed_result_of(o, p) : -1;
	json_t   *line = i >= 0 ? vn_replayed_line(o->replayed, i) : NULL;

	if (!line)
		return;
	const vn_ids_found *ids = &judged->of[i].ids;
	if (ids->n)
		vn_text_add(text, VN_WORDS, "; %" PRId64 " whole numbers, %" PRId64 " of them ties", ids->n, ids->ties);
	add_names(vn_json_field(line, "region"), "; computed together with ", text);
	add_names(vn_json_field(line, "extra"), "; the candidate has operations there that the reference lacks: ", text);
	if (p->origin && json_array_size(vn_json_field(line, "region")))
		vn_text_add(text, VN_WORDS, "; record(..., functions=\"all\") records these, too");
	if (p->replay.another_order)
		vn_text_add(text, VN_WORDS, "; another order of work: what was computed through it is right");
	json_decref(line);
}

const char *vn_replayed_origins(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised,
                                char text[VN_WORDS])
{
	VN_ENDS(vn_places_free) vn_name_places places = { 0 };
	const char                            *said = NULL;

	for (int i = 0; o->replayed && i < localised->n_origins; i++)
		vn_places_add(&places, all->of[localised->origins[i]].name);
	if (places.n && places.n < localised->n_origins)
		said = vn_places_say(&places, NAMED, text, VN_WORDS);
	return said;
}
