/* show_next.c: suggests commands to run after `vernier show`. */
#include "capture/show/show_next.h"

#include "libref/base/json.h"
#include "libref/base/shell.h"

#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 12 };

/* Adds "vernier WORD...", unless a word cannot be typed. The last word is NULL. */
static void add_command(json_t *list, const char *const word[MOST_WORDS])
{
	char line[VN_SHELL_LINE] = "vernier";

	for (int i = 0; word[i]; i++)
		vn_shell_add(line, sizeof line, word[i]);
	if (*line)
		json_array_append_new(list, vn_json_text(line));
}

static void add_tensor(json_t *list, const vn_recording *r, int step, const char *name, const char *to)
{
	char which[VN_NAME_MAX + 24];

	snprintf(which, sizeof which, "step.%d/%s", step, name);
	add_command(list, (const char *[MOST_WORDS]) { "show", vn_recording_path(r), which, to ? "--values" : NULL, to });
}

static bool is_reference(const vn_recording *r)
{
	const char *engine = vn_facts_get(vn_recording_run(r), "engine");
	const char *precision = vn_facts_get(vn_recording_run(r), "precision");

	return engine && precision && strcmp(engine, "ref") == 0 && strcmp(precision, "f32") == 0;
}

/* Records the model anew with the same tokens, on the reference or, if the recording is the
 * reference's, on the GPU, and compares. */
static void add_comparison(json_t *list, const vn_recording *r)
{
	const char *own = vn_recording_path(r), *path = vn_recording_model_here(r);
	const char *model = path ? path : "MODEL";
	const bool  is_ref = is_reference(r);
	char        other[VN_SHELL_FILE];

	if (vn_recording_batch(r) > 1 || vn_recording_ranks(r) || !vn_recording_complete(r))
		return;
	strcpy(other, is_ref ? "gpu.h5" : "ref.h5");
	vn_shell_new_file(other, sizeof other);
	const bool forced = vn_recording_decoded(r) > 0;
	add_command(list, (const char *[MOST_WORDS]) { "capture", is_ref ? "gpu" : "ref", model, "--ids-from", own,
	                                               forced ? "--force-ids-from" : "-o", forced ? own : other,
	                                               forced ? "-o" : NULL, other });
	add_command(list,
	            (const char *[MOST_WORDS]) { "compare", is_ref ? own : other, is_ref ? other : own, "--model", model });
}

json_t *vn_show_next(const vn_recording *r, int i)
{
	json_t     *list = json_array();
	const char *path = vn_recording_path(r);

	if (i >= 0) {
		char to[VN_NAME_MAX + 8];
		snprintf(to, sizeof to, "%s.npy", vn_recording_entry(r, i)->name);
		vn_shell_new_file(to, sizeof to);
		add_tensor(list, r, vn_recording_entry(r, i)->step, vn_recording_entry(r, i)->name, to);
	}
	add_command(list, (const char *[MOST_WORDS]) { "show", path, "--check" });
	if (i < 0)
		add_comparison(list, r);
	return list;
}

json_t *vn_show_next_after(const vn_recording *r, const vn_file_check *c)
{
	json_t *list = json_array();

	for (int i = 0; i < c->n; i++)
		if (c->finding[i].name) {
			add_tensor(list, r, c->finding[i].step, c->finding[i].name, NULL);
			break;
		}
	if (c->digests_wrong == 0)
		add_comparison(list, r);
	return list;
}
