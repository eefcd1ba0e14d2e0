/* propose_write.c: a proposal as YAML, and for people; see propose.h. */
#include "capture/names/propose.h"

#include "libref/base/say.h"

#include <stdio.h>
#include <stdlib.h>

/* "4 of 4 confirmed (error 3e-07, next 0.91)" */
static const char *evidence_text(const vn_proposed_rule *r, char text[160])
{
	int n = 0;
	if (r->by_shape)
		return snprintf(text, 160, "by its shape alone"), text;
	n += snprintf(text, 160, "%d of %d confirmed", r->confirmed, r->n);
	if (r->confirmed)
		n += snprintf(text + n, (size_t)(160 - n), ", distance %.1g, the next %.1g", r->worst < 0 ? 0 : r->worst,
		              r->next);
	if (r->likely)
		n += snprintf(text + n, (size_t)(160 - n), ", %d likely", r->likely);
	if (r->against)
		snprintf(text + n, (size_t)(160 - n), ", %d elsewhere", r->against);
	return text;
}

static void write_rule(FILE *to, const vn_proposed_rule *r)
{
	char text[160];
	vn_say(to, "  - { from: \"%s\", ", r->from);
	if (*r->to)
		vn_say(to, "to: \"%s\", ", r->to);
	for (int i = 0; i < r->n_parts; i++)
		vn_say(to, "%s\"%s\"%s", i ? ", " : "parts: [", r->parts[i], i == r->n_parts - 1 ? "], " : "");
	if (r->n_parts)
		vn_say(to, "along: %s, ", r->along);
	if (*r->axes)
		vn_say(to, "axes: \"%s\"%s }  # %s\n", r->axes,
		       r->copy       ? ", copy: true"
		       : r->fallback ? ", fallback: true"
		                     : "",
		       evidence_text(r, text));
	else
		vn_say(to, "ignore: true }\n");
}

void vn_proposal_write(const vn_proposal *p, const char *source, FILE *to)
{
	vn_say(to, "# Proposed by the numbers of %s.\nversion: 1\nname: proposed\nrules:\n", source);
	for (int i = 0; i < p->n; i++)
		write_rule(to, &p->rule[i]);
	if (!p->n)
		vn_say(to, "  []\n");
}

static void print_list(FILE *to, const char *what, char *const *list, int n)
{
	enum { SHOWN = 6 };
	if (!n)
		return;
	vn_say(to, "%s: %d: ", what, n);
	for (int i = 0; i < n && i < SHOWN; i++)
		vn_say(to, "%s%s", i ? ", " : "", list[i]);
	vn_say(to, "%s\n", n > SHOWN ? "..." : "");
}

void vn_proposal_print(const vn_proposal *p, FILE *to)
{
	char text[160];
	vn_say(to, "proposed by the numbers: %d rules\n", p->n);
	for (int i = 0; i < p->n; i++) {
		const vn_proposed_rule *r = &p->rule[i];
		vn_say(to, "  %-44s ", r->from);
		if (!*r->axes) {
			vn_say(to, "ignored\n");
			continue;
		}
		for (int k = 0; !*r->to && k < r->n_parts; k++)
			vn_say(to, "%s%s", k ? " + " : "", r->parts[k]);
		if (*r->to)
			vn_say(to, "%-22s", r->to);
		vn_say(to, "  '%s'  %s%s\n", r->axes, r->copy || r->fallback ? "copy, " : "", evidence_text(r, text));
	}
	print_list(to, "no counterpart, left out", p->left, p->n_left);
	print_list(to, "checkpoints without a tensor", p->absent, p->n_absent);
	for (int i = 0; i < p->n_reports; i++)
		vn_say(to, "contradiction: %s\n", p->report[i]);
}
