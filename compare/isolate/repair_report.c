/* repair_report.c: reports the search for the operation at fault as text and as JSON. */
#include "compare/text/runs.h"
#include "compare/text/json.h"
#include "compare/isolate/repair.h"
#include "libref/base/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const char *op_of(const vn_runner *x, int toggle)
{
	return vn_op_name(x->plan->node[x->node[toggle]].op);
}

static const char *verdict_words(const vn_repair *r)
{
	return r->found.good ? "good" : r->found.helps ? "isolated" : "not_isolated";
}

/* ---- for a person ------------------------------------------------------------------ */

static void write_number(double kl, FILE *out)
{
	if (isnan(kl))
		fputs("unknown", out);
	else
		fprintf(out, "%.3g", kl);
}

static const char *outcome_words(const vn_runner *x, const vn_isolate_trial *t)
{
	if (vn_runner_compares(x))
		return t->within ? "within limits" : "OUTSIDE limits";
	return t->within ? "good" : "bad";
}

static void put_trial(const vn_runner *x, const char *what, const vn_isolate_trial *t, FILE *out)
{
	vn_say(out, "%-11s %s", what, outcome_words(x, t));
	if (vn_runner_compares(x)) {
		if (t->outside)
			vn_say(out, ": %d of %d checkpoints, the first %s", t->outside, x->compared, t->first);
		fputs("; logits KL mean ", out);
		write_number(t->kl, out);
	}
	fputc('\n', out);
}

/* What a person sets to make a run again. */
static void put_switch(const vn_runner *x, const bool *on, FILE *out)
{
	VN_FREED char *globs = vn_runner_switch(x, on);

	vn_say(out, "            VERNIER_FORCE_REF='%s' replaces them\n", globs ? globs : "");
}

static void put_members(const vn_runner *x, const bool *on, FILE *out)
{
	const char *comma = "";

	for (int i = 0; i < x->n; i++)
		if (on[i]) {
			vn_say(out, "%s%s (%s)", comma, x->name[i], op_of(x, i));
			comma = ", ";
		}
}

static void put_sets(const vn_runner *x, const vn_repair *r, FILE *out)
{
	for (int s = 0; s < r->found.n_sets; s++) {
		fputs(r->found.size[s] == 1 ? "culprit     " : "together    ", out);
		if (r->found.size[s] <= 4)
			put_members(x, r->found.set[s], out);
		else
			fprintf(out, "%d operations", r->found.size[s]);
		fputc('\n', out);
		if (r->found.size[s] > 1)
			put_switch(x, r->found.set[s], out);
		vn_say(out, "            %s\n", vn_repair_says_set(x, &r->found, s));
	}
	if (r->found.n_sets > 1)
		fputs("            each of these repairs the run alone: something that they share is at fault, or too few "
		      "checkpoints are judged\n",
		      out);
	if (r->found.more)
		fprintf(out, "            there may be more; the search stops at %d\n", VN_MOST_SETS);
	for (int i = 0; i < r->n_checks; i++) {
		const vn_repair_check *p = &r->check[i];
		vn_say(out, "%-11s %s (%s)\n            %s; %d checkpoint%s outside\n", i ? "" : "by itself",
		       x->name[p->toggle], op_of(x, p->toggle), vn_repair_says_check(p), p->t->outside,
		       p->t->outside == 1 ? "" : "s");
	}
}

static void put_own(const vn_runner *x, const vn_repair *r, FILE *out)
{
	for (int i = 0; i < r->n_own; i++) {
		const vn_repair_own *y = &r->own[i];
		char                 globs[PATH_MAX];
		vn_say(out, "%-11s VERNIER_FORCE_REF='%s', %d operation%s: %s", i ? "" : "own",
		       vn_printable_path(y->globs, globs), y->n, y->n == 1 ? "" : "s", outcome_words(x, y->t));
		if (vn_runner_compares(x)) {
			fprintf(out, ", %d of %d checkpoints; logits KL mean ", y->t->outside, x->compared);
			write_number(y->t->kl, out);
		}
		fputc('\n', out);
	}
}

static void put_curve(const vn_runner *x, const vn_repair *r, FILE *out)
{
	if (r->n_curve == 0)
		return;
	fputs("repair      the k worst operations replaced, worst first\n", out);
	vn_say(out, "            %4s %12s %8s  %s\n", "k", "logits KL", "outside", "with");
	for (int i = 0; i < r->n_curve; i++) {
		const vn_repaired *p = &r->curve[i];
		vn_say(out, "            %4d %12.3g %8d  %s%s\n", p->k, p->t->kl, p->t->outside,
		       p->worst < 0 ? "" : x->name[p->worst], p->t->within ? "  (within limits)" : "");
	}
}

void vn_repair_text(const vn_repair_about *a, const vn_runner *x, const vn_repair *r, FILE *out)
{
	char path[PATH_MAX];

	vn_say(out, "%-11s %s", "model", vn_printable_path(a->model, path));
	if (a->tokens)
		fprintf(out, ", %" PRId64 " tokens", a->tokens);
	vn_say(out, ", %s weights\n", a->weights);
	if (*x->recorded_by[0])
		vn_say(out, "%-11s %s\n", "reference", x->recorded_by[0]);
	vn_say(out, "%-11s %s%s%s", "candidate", vn_printable_path(a->candidate, path), a->precision ? " in " : "",
	       a->precision ? a->precision : "");
	if (*x->recorded_by[1])
		vn_say(out, "  (%s)", x->recorded_by[1]);
	fputc('\n', out);
	if (x->limits[0])
		vn_say(out, "%-11s %s\n", "limits", x->limits);
	for (int i = 0; i < a->notes->n; i++)
		vn_say(out, "%-11s %s\n", "note", a->notes->line[i]);
	put_trial(x, "unchanged", r->plain, out);
	if (r->whole)
		put_trial(x, "replaced", r->whole, out);
	put_own(x, r, out);
	if (r->found.good)
		fputs("There is nothing to isolate.\n", out);
	else if (!r->found.helps)
		fputs(
			"The divergence stays with every operation replaced: no kernel is at fault. Check the weights, tokens and "
			"limits (vernier compare).\n",
			out);
	put_sets(x, r, out);
	put_curve(x, r, out);
	vn_say(out, "%d run%s, %d replaceable operation%s.\n", x->runs, x->runs == 1 ? "" : "s", x->n,
	       x->n == 1 ? "" : "s");
}

/* ---- for a program ------------------------------------------------------------------- */

static json_t *trial_json(const vn_runner *x, const vn_isolate_trial *t)
{
	json_t *j = json_object();

	json_object_set_new(j, "within", json_boolean(t->within));
	if (vn_runner_compares(x)) {
		json_object_set_new(j, "outside", json_integer(t->outside));
		json_object_set_new(j, "compared", json_integer(x->compared));
		json_object_set_new(j, "first", *t->first ? vn_json_text(t->first) : json_null());
		json_object_set_new(j, "kl_mean", vn_json_real(t->kl));
	}
	return j;
}

static json_t *recorders_json(const vn_runner *x)
{
	return *x->recorded_by[0] ? json_pack("{s:o, s:o}", "reference", vn_json_text(x->recorded_by[0]), "candidate",
	                                      vn_json_text(x->recorded_by[1]))
	                          : json_null();
}

static json_t *sets_json(const vn_runner *x, const vn_repair *r)
{
	json_t *list = json_array();

	for (int s = 0; s < r->found.n_sets; s++) {
		json_t        *names = json_array();
		VN_FREED char *globs = vn_runner_switch(x, r->found.set[s]);
		for (int i = 0; i < x->n; i++)
			if (r->found.set[s][i])
				json_array_append_new(names, vn_json_text(x->name[i]));
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:o, s:s}", "kind", r->found.size[s] == 1 ? "single" : "together", "replaced",
		                    names, "switch", vn_json_text(globs), "words", vn_repair_says_set(x, &r->found, s)));
	}
	return list;
}

static json_t *own_json(const vn_runner *x, const vn_repair *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->n_own; i++) {
		const vn_repair_own *y = &r->own[i];
		json_t *row = json_pack("{s:o, s:i, s:b}", "switch", vn_json_text(y->globs), "operations", y->n, "within",
		                        y->t->within);
		if (vn_runner_compares(x)) {
			json_object_set_new(row, "outside", json_integer(y->t->outside));
			json_object_set_new(row, "kl_mean", vn_json_real(y->t->kl));
		}
		json_array_append_new(list, row);
	}
	return list;
}

static json_t *checks_json(const vn_runner *x, const vn_repair *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->n_checks; i++) {
		const vn_repair_check *p = &r->check[i];
		json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:b, s:i, s:o, s:s}", "name",
		                                      vn_json_text(x->name[p->toggle]), "op", op_of(x, p->toggle),
		                                      "left_out_of", p->set < 0 ? json_null() : json_integer(p->set),
		                                      "own_within", vn_repair_own_within(p), "outside", p->t->outside,
		                                      "kl_mean", vn_json_real(p->t->kl), "words", vn_repair_says_check(p)));
	}
	return list;
}

static json_t *curve_json(const vn_runner *x, const vn_repair *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->n_curve; i++) {
		const vn_repaired *p = &r->curve[i];
		json_array_append_new(list,
		                      json_pack("{s:i, s:o, s:b, s:i, s:o}", "k", p->k, "with",
		                                p->worst < 0 ? json_null() : vn_json_text(x->name[p->worst]), "within",
		                                p->t->within, "outside", p->t->outside, "kl_mean", vn_json_real(p->t->kl)));
	}
	return list;
}

vn_status vn_repair_json(const vn_repair_about *a, const vn_runner *x, const vn_repair *r, FILE *out, vn_error *err)
{
	vn_lines         next = { 0 };
	VN_OWNED json_t *j = json_pack(
		"{s:s, s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "schema",
		"vernier-isolate/2", "verdict", verdict_words(r), "model", vn_json_text(a->model), "candidate",
		vn_json_text(a->candidate), "precision", vn_json_text(a->precision), "weights", a->weights, "recorded_by",
		recorders_json(x), "tokens", a->tokens ? json_integer(a->tokens) : json_null(), "limits",
		x->limits[0] ? vn_json_text(x->limits) : json_null(), "operations", x->n, "runs", x->runs, "unchanged",
		trial_json(x, r->plain), "all_replaced", r->whole ? trial_json(x, r->whole) : json_null(), "own_switches",
		own_json(x, r), "sets", sets_json(x, r), "more_sets", (int)r->found.more, "by_itself", checks_json(x, r),
		"curve", curve_json(x, r));

	if (!r->found.good)
		vn_runs_suggest(a->model, a->source, "gpu", a->gpu, &next);
	json_object_set_new(j, "next", vn_json_lines(&next));
	json_object_set_new(j, "notes", vn_json_lines(a->notes));
	vn_lines_free(&next);
	const bool good = vn_json_print(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) && fputc('\n', out) != EOF;
	return good ? VN_OK : vn_fail(err, VN_ERR_IO, "the report cannot be written");
}
