/* selftest_report.c: see selftest_report.h. */
#include "compare/text/json.h"
#include "compare/selftest/selftest_report.h"
#include "libref/base/say.h"

#include <string.h>

static const char *const words[] = {
	[VN_CAUGHT] = "caught", [VN_MISSED] = "MISSED", [VN_NOT_RUN] = "not run", [VN_ELSEWHERE] = "-"
};

static const vn_outcome *outcome_of(const vn_selftest *s, int pair, int i)
{
	return &s->outcome[pair * (s->n_mutations + 1) + i];
}

int vn_mutations_count(void)
{
	int n = 0;
	for (const vn_mutation_group *g = vn_mutation_groups; g->name; g++)
		for (const vn_mutation *m = g->mutation; m->name; m++)
			n++;
	return n;
}

int vn_selftest_count(const vn_selftest *s, vn_caught what)
{
	int n = 0;
	for (int p = 0; p < s->n_pairs; p++)
		for (int i = 0; i <= s->n_mutations; i++)
			n += outcome_of(s, p, i)->caught == what && (i > 0 || what != VN_CAUGHT);
	return n;
}

/* ---- text --------------------------------------------------------------------------------- */

/* The outcome to report for a mutation: a missed one if any, else one that was tried. */
static const vn_outcome *find_telling(const vn_selftest *s, int i)
{
	const vn_outcome *best = outcome_of(s, 0, i);
	for (int p = 1; p < s->n_pairs; p++) {
		const vn_outcome *o = outcome_of(s, p, i);
		if (best->caught != VN_MISSED &&
		    (o->caught == VN_MISSED || (best->caught >= VN_NOT_RUN && o->caught < VN_NOT_RUN)))
			best = o;
	}
	return best;
}

/* The lengths of the longest name and the longest expectation that are printed. */
typedef struct report_widths {
	int name, expected;
} report_widths;

static report_widths widest_names(const vn_selftest *s)
{
	report_widths w = { (int)strlen("mutation"), (int)strlen("expected") };
	int           i = 1;
	for (const vn_mutation_group *g = vn_mutation_groups; g->name; g++)
		for (const vn_mutation *m = g->mutation; m->name; m++) {
			const vn_outcome *o = find_telling(s, i++);
			const int         name = (int)(strlen(g->name) + 1 + strlen(m->name)), expected = (int)strlen(o->expected);
			if (o->caught == VN_ELSEWHERE)
				continue;
			w.name = name > w.name ? name : w.name;
			w.expected = expected > w.expected ? expected : w.expected;
		}
	return w;
}

static void print_line(const vn_selftest *s, const char *group, const char *name, int i, report_widths w, FILE *out)
{
	char              full[64];
	const vn_outcome *o = find_telling(s, i);

	if (o->caught == VN_ELSEWHERE)
		return;
	snprintf(full, sizeof full, "%s%s%s", group, *group ? "/" : "", name);
	for (int p = 0; p < s->n_pairs; p++)
		vn_say(out, "%-9s ",
		       i == 0 && outcome_of(s, p, i)->caught == VN_CAUGHT   ? "within"
		       : i == 0 && outcome_of(s, p, i)->caught == VN_MISSED ? "OUTSIDE"
		                                                            : words[outcome_of(s, p, i)->caught]);
	vn_say(out, " %-*s  %-*s  %s\n", w.name, full, w.expected, o->expected, o->found);
}

/* Why a mutation was tried with no pair, so that nothing is known about it;
 * NULL if it was tried. */
static const char *untried_reason(const vn_selftest *s, int i)
{
	const char *why = NULL;
	for (int p = 0; p < s->n_pairs; p++) {
		const vn_outcome *o = outcome_of(s, p, i);
		if (o->caught < VN_NOT_RUN)
			return NULL;
		why = o->caught == VN_NOT_RUN ? o->found : why;
	}
	return why;
}

/* Prints "120: no tensor of...; 11: no plan", reasons in order of appearance.
 * Returns the number of mutations. */
static int print_reasons(const vn_selftest *s, FILE *out)
{
	int all = 0;
	for (int i = 1; i <= s->n_mutations; i++) {
		const char *why = untried_reason(s, i), *other;
		int         n = why != NULL, before = 0;
		for (int k = 1; why && k <= s->n_mutations; k++)
			if (k != i && (other = untried_reason(s, k)) && strcmp(other, why) == 0) {
				n++;
				before += k < i;
			}
		if (n && !before) {
			fputs(all ? "; " : "\nnot tried: ", out);
			vn_say(out, "%d: %s", n, why);
			all += n;
		}
	}
	if (all)
		fputc('\n', out);
	return all;
}

void vn_selftest_text(const vn_selftest *s, FILE *out)
{
	const int           missed = vn_selftest_count(s, VN_MISSED), none = vn_selftest_count(s, VN_NOT_RUN);
	const report_widths w = widest_names(s);
	int                 i = 0, alarms = 0;

	for (int p = 0; p < s->n_pairs; p++)
		vn_say(out, "%s: %s by %s%s%s\n", s->pair[p].name,
		       strrchr(s->pair[p].cand, '/') ? strrchr(s->pair[p].cand, '/') + 1 : s->pair[p].cand,
		       strrchr(s->pair[p].ref, '/') ? strrchr(s->pair[p].ref, '/') + 1 : s->pair[p].ref,
		       s->pair[p].floor ? ", with a floor" : "", s->pair[p].limits ? ", limits of --limits" : "");
	for (int p = 0; p < s->n_pairs; p++)
		if (outcome_of(s, p, 0)->caught == VN_MISSED)
			vn_say(out, "%s is not within limits (%s), as selftest needs: do not rely on its rows below\n",
			       s->pair[p].name, outcome_of(s, p, 0)->found);
	fputc('\n', out);
	for (int p = 0; p < s->n_pairs; p++)
		vn_say(out, "%-9s ", s->pair[p].name);
	vn_say(out, " %-*s  %-*s  %s\n", w.name, "mutation", w.expected, "expected", "found");
	print_line(s, "", "none", i++, w, out);
	for (const vn_mutation_group *g = vn_mutation_groups; g->name; g++)
		for (const vn_mutation *m = g->mutation; m->name; m++)
			print_line(s, g->name, m->name, i++, w, out);
	for (int p = 0; p < s->n_pairs; p++)
		alarms += outcome_of(s, p, 0)->caught == VN_MISSED;
	const int nothing = print_reasons(s, out);
	fputs(nothing ? "" : "\n", out);
	vn_say(out, "%s: %d caught, %d missed, %d false alarm%s, %d not run; of %d mutations, %d pair%s\n",
	       missed    ? "MISSED"
	       : nothing ? "all that ran were caught"
	                 : "all caught",
	       vn_selftest_count(s, VN_CAUGHT), missed - alarms, alarms, alarms == 1 ? "" : "s", none, s->n_mutations,
	       s->n_pairs, s->n_pairs == 1 ? "" : "s");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *outcome_json(const char *group, const vn_mutation *m, const vn_outcome *o)
{
	static const char *const keys[] = {
		[VN_CAUGHT] = "caught", [VN_MISSED] = "missed", [VN_NOT_RUN] = "not_run", [VN_ELSEWHERE] = "elsewhere"
	};
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "group", group, "name", m->name, "description", m->does,
	                 "outcome", keys[o->caught], "exit",
	                 o->caught >= VN_NOT_RUN ? json_null() : json_integer(o->status), "expected",
	                 vn_json_text(o->expected), "found", vn_json_text(o->found));
}

static json_t *pair_json(const vn_selftest *s, int p)
{
	json_t *list = json_array();
	int     i = 1;

	for (const vn_mutation_group *g = vn_mutation_groups; g->name; g++)
		for (const vn_mutation *m = g->mutation; m->name; m++)
			json_array_append_new(list, outcome_json(g->name, m, outcome_of(s, p, i++)));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "name", vn_json_text(s->pair[p].name), "reference",
	                 vn_json_text(s->pair[p].ref), "candidate", vn_json_text(s->pair[p].cand), "floor",
	                 vn_json_text(s->pair[p].floor), "limits", vn_json_text(s->pair[p].limits), "unchanged_within",
	                 outcome_of(s, p, 0)->caught == VN_CAUGHT, "found", vn_json_text(outcome_of(s, p, 0)->found),
	                 "mutations", list);
}

vn_status vn_selftest_json(const vn_selftest *s, FILE *out, vn_error *err)
{
	json_t *pairs = json_array();
	for (int p = 0; p < s->n_pairs; p++)
		json_array_append_new(pairs, pair_json(s, p));
	json_t    *root = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:[]}", "schema", "vernier-selftest/2", "verdict",
                             vn_selftest_count(s, VN_MISSED) ? "missed" : "caught", "mutations", s->n_mutations,
	                            "caught", vn_selftest_count(s, VN_CAUGHT), "missed", vn_selftest_count(s, VN_MISSED),
	                            "not_run", vn_selftest_count(s, VN_NOT_RUN), "pairs", pairs, "next");
	const bool good = vn_json_print(root, out, JSON_INDENT(1)) && fputc('\n', out) != EOF;
	json_decref(root);
	return good ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "the report cannot be written");
}
