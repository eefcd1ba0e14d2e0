/* show_check.c: prints the findings of `vernier show FILE --check` as text and as JSON. */
#include "capture/show/show_check.h"
#include "capture/show/show_json.h"
#include "capture/show/show_text.h"

#include "libref/base/json.h"
#include "libref/base/say.h"

#include <stdio.h>

static void print_finding(const vn_file_finding *f, FILE *out)
{
	vn_say(out, "%-7s ", f->damaged ? "DAMAGED" : "BROKEN");
	if (f->step)
		fprintf(out, "step.%d/", f->step);
	vn_show_put(f->words, out);
	fputc('\n', out);
}

void vn_show_check(const vn_file_check *c, FILE *out)
{
	for (int i = 0; i < c->n; i++)
		print_finding(&c->finding[i], out);
	vn_show_counts(c, out);
	fputc('\n', out);
}

void vn_show_counts(const vn_file_check *c, FILE *out)
{
	fprintf(out, "%d identities checked, %d broken; %d digests, %d wrong", c->identities, c->identities_broken,
	        c->digests, c->digests_wrong);
}

static json_t *findings_json(const vn_file_check *c)
{
	json_t *list = json_array();

	for (int i = 0; i < c->n; i++)
		json_array_append_new(list, json_pack("{s:s, s:i, s:s?, s:o}", "kind",
		                                      c->finding[i].damaged ? "damaged" : "broken", "step", c->finding[i].step,
		                                      "name", c->finding[i].name, "text", vn_show_text(c->finding[i].words)));
	return list;
}

bool vn_show_check_json(const vn_recording *r, const vn_file_check *c, FILE *out)
{
	json_t *warnings = json_array();

	for (int i = 0; i < c->n_warnings; i++)
		json_array_append_new(warnings, vn_show_text(c->warning[i]));
	VN_OWNED json_t *j = json_pack(
		"{s:s, s:o, s:b, s:b, s:{s:i, s:i}, s:{s:i, s:i}, s:o, s:o, s:o}", "schema", "vernier-check/1", "file",
		vn_show_text(vn_recording_path(r)), "complete", (int)vn_recording_complete(r), "holds", c->n == 0, "identities",
		"checked", c->identities, "broken", c->identities_broken, "digests", "checked", c->digests, "wrong",
		c->digests_wrong, "findings", findings_json(c), "warnings", warnings, "next", vn_show_next_after(r, c));

	const bool good = j && vn_json_print(j, out, JSON_INDENT(1)) && fputc('\n', out) != EOF;

	return good;
}
