/* evaluate_report.c: see evaluate_report.h. */
#include "compare/evaluate/evaluate_report.h"
#include "compare/text/runs.h"
#include "compare/text/json.h"

#include "libref/base/say.h"
#include "libref/base/shell.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const side[2] = { "reference", "candidate" };

static double lower_bound(vn_mean m)
{
	return m.mean - VN_Z95 * m.error;
}

static double upper_bound(vn_mean m)
{
	return m.mean + VN_Z95 * m.error;
}

static const char *find_fact(const vn_evaluated *x, int s, const char *key)
{
	const char *v = vn_facts_get(&x->engine[s], key);
	return v ? v : "unknown";
}

/* ---- for a person --------------------------------------------------------------- */

/* Text of a token, to be freed by the caller; NULL when unknown. */
static char *token_text(const vn_evaluated *x, int32_t id)
{
	return x->tokenizer && id >= 0 ? vn_tokenizer_show(x->tokenizer, id) : NULL;
}

static void print_choice(const vn_evaluated *x, const int32_t *token, bool tie, FILE *out)
{
	for (int s = 0; s < 2; s++) {
		VN_FREED char *word = token_text(x, token[s]);
		if (s)
			fputs(" against ", out);
		if (token[s] < 0)
			fputs("no token (scores not finite)", out);
		else
			fprintf(out, "%" PRId32, token[s]);
		if (word)
			vn_say(out, " \"%s\"", word);
	}
	fputs(tie ? ", a near tie" : "", out);
}

static const char *clean_path(const char *path, char room[4096])
{
	snprintf(room, 4096, "%s", path);
	return vn_text_clean(room, 4096);
}

static void text_of_model(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	char                 path[4096];
	vn_say(out, "%-11s %s (%s weights, %s)\n", "model", clean_path(x->model, path), x->weights[0], x->format[0]);
	vn_say(out,
	       "%-11s %s: %" PRId64 " tokens, %" PRId64 " of them scored in %" PRId64 " window%s of %" PRId64 ", %" PRId64
	       " apart\n",
	       "text", clean_path(x->text, path), e->tokens, e->scored, e->windows, e->windows == 1 ? "" : "s",
	       x->o->window, x->o->stride);
	for (int i = 0; x->notes && i < x->notes->n; i++)
		vn_say(out, "%-11s %s\n", "note", x->notes->line[i]);
}

static void text_of_recordings(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	vn_say(out, "%-11s %" PRId64 " tokens, %" PRId64 " of them scored, in %" PRId64 " recording%s", "text", e->tokens,
	       e->scored, e->windows, e->windows == 1 ? "" : "s");
	if (x->o->stride)
		fprintf(out, ": windows of one text, %" PRId64 " tokens apart\n", x->o->stride);
	else
		vn_say(out, "%s\n", e->windows == 1 ? "" : ", each a text of its own");
	if (x->unscored)
		vn_say(out, "%-11s %" PRId64 " token%s not scored: one side has no logits for them\n", "note", x->unscored,
		       x->unscored == 1 ? "" : "s");
}

static void print_head(const vn_evaluated *x, FILE *out)
{
	char path[4096];
	if (x->model)
		text_of_model(x, out);
	else
		text_of_recordings(x, out);
	for (int s = 0; s < 2; s++) {
		vn_say(out, "%-11s ", side[s]);
		if (!x->model)
			vn_say(out, "%s: ", clean_path(x->recorded[s], path));
		vn_say(out, "%s, %s, %s", find_fact(x, s, "engine"), find_fact(x, s, "precision"), find_fact(x, s, "device"));
		if (!x->model)
			vn_say(out, "; %s weights%s%s%s", x->weights[s], *x->format[s] ? " (" : "", clean_path(x->format[s], path),
			       *x->format[s] ? ")" : "");
		if (x->injected && s == 1)
			vn_say(out, ", with the fault %s", x->injected);
		fputc('\n', out);
	}
}

enum { INTERVAL = 80 };

/* "   (95 %: 3.1 to 4.2)"; "" for a single token, which has no interval. */
static const char *say_interval(const char *number, double from, double to, const char *unit, char text[INTERVAL])
{
	char a[24], b[24];

	*text = 0;
	if (!isnan(from) && !isnan(to)) {
		snprintf(a, sizeof a, number, from);
		snprintf(b, sizeof b, number, to);
		snprintf(text, INTERVAL, "   (95 %%: %s to %s%s)", a, b, unit);
	}
	return text;
}

/* "+0.1 %   (95 %: ...)" of a mean gap. */
static void print_gap(const char *front, vn_mean gap, FILE *out)
{
	char text[INTERVAL];

	vn_say(out, "%s%+.3g %%%s", front, 100 * expm1(gap.mean),
	       say_interval("%+.3g", 100 * expm1(lower_bound(gap)), 100 * expm1(upper_bound(gap)), " %", text));
}

static void print_perplexities(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	char                 text[INTERVAL];
	fputc('\n', out);
	for (int s = 0; s < 2; s++) {
		vn_say(out, "%-11s %-9s ", s ? "" : "perplexity", side[s]);
		if (isnan(e->loss[s].mean))
			fputs("none: some scores are NaN\n", out);
		else
			vn_say(out, "%.7g%s; mean loss %.7g%s\n", e->perplexity[s],
			       say_interval("%.5g", exp(lower_bound(e->loss[s])), exp(upper_bound(e->loss[s])), "", text),
			       e->loss[s].mean,
			       e->vocab && lower_bound(e->loss[s]) > log((double)e->vocab)
			           ? ": worse than guessing among all tokens: are these tokens of another model's vocabulary?"
			           : "");
	}
	vn_say(out, "%-11s %-9s ", "", "gap");
	if (isnan(e->gap.mean))
		fputs("none\n", out);
	else {
		print_gap("", e->gap, out);
		vn_say(out, ", token by token; %+.4g in perplexity\n", e->perplexity[1] - e->perplexity[0]);
	}
}

static void print_routing(const vn_evaluation *e, FILE *out)
{
	vn_say(out, "%-11s ", "routing");
	if (isnan(e->routing.mean)) {
		fputs("none: some scores are NaN\n", out);
		return;
	}
	print_gap("the candidate's experts and weights alone: gap ", e->routing, out);
	vn_say(out, ", divergence %.3g\n%-11s ", e->routing_kl.mean, "");
	print_gap("its arithmetic adds ", e->arithmetic, out);
	fputc('\n', out);
}

static void print_choices(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	vn_say(out, "%-11s agrees in %.6g %% of the tokens (%.6g %% with near ties), top 5 in %.6g %%", "argmax",
	       100 * e->strict, 100 * e->agree, 100 * e->top5);
	if (e->differ_at >= 0) {
		fprintf(out, "; first apart at token %" PRId64 ": ", e->differ_at);
		print_choice(x, e->differ, e->differ_tie, out);
	}
	vn_say(out, "\n%-11s ", "divergence");
	if (isnan(e->kl.mean))
		fprintf(out, "none; token %" PRId64 " is the first without one\n", e->kl_max_at);
	else {
		char error[32] = ""; /* one token alone has none */
		if (!isnan(e->kl.error))
			snprintf(error, sizeof error, " +- %.2g", VN_Z95 * e->kl.error);
		vn_say(out, "mean %.3g%s, p99 %.3g, max %.3g at token %" PRId64 "\n", e->kl.mean, error, e->kl_p99, e->kl_max,
		       e->kl_max_at);
	}
	if (e->drafts)
		vn_say(
			out,
			"%-11s the head's greedy draft is the next greedy token: reference %.4g %%, candidate %.4g %% of %" PRId64
			" tokens\n",
			"drafts", 100 * e->accepted[0], 100 * e->accepted[1], e->drafts);
	if (x->o->decode == 0)
		return;
	vn_say(out, "%-11s after %" PRId64 " token%s: ", "greedy", e->prompt, e->prompt == 1 ? "" : "s");
	if (e->part_at < 0) {
		vn_say(out, "the same for %" PRId64 " token%s\n", e->steps, e->steps == 1 ? "" : "s");
		return;
	}
	fprintf(out, "differs at token %" PRId64 ": ", e->part_at);
	print_choice(x, e->part, e->part_tie, out);
	fputc('\n', out);
}

void vn_evaluate_warnings(const vn_evaluated *x, vn_lines *lines)
{
	const vn_evaluation *e = x->e;
	for (int s = 0; s < 2; s++)
		if (e->echoes[s])
			vn_lines_add(lines,
			             "the %s repeats its input: the tensor that reaches its output head resembles the embedding",
			             side[s]);
	for (int s = 0; s < 2; s++)
		if (e->nonfinite[s])
			vn_lines_add(lines, "the %s's scores hold NaN or infinity at %" PRId64 " of %" PRId64 " tokens", side[s],
			             e->nonfinite[s], e->scored);
	for (int i = 0; x->garbage && i < x->garbage->n; i++)
		vn_lines_add(lines, "%s", x->garbage->line[i]);
}

static void print_echo(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	vn_say(out, "%-11s scores peak at the input token: reference %.4g %%, candidate %.4g %%; in the text: %.4g %%\n",
	       "echo", 100 * e->echo[0], 100 * e->echo[1], 100 * e->repeats);
	VN_ENDS(vn_lines_free) vn_lines lines = { 0 };
	vn_evaluate_warnings(x, &lines);
	for (int i = 0; i < lines.n; i++)
		vn_say(out, "%-11s %s\n", "warning", lines.line[i]);
}

void vn_evaluate_text(const vn_evaluated *x, int n, FILE *out)
{
	for (int i = 0; i < n; i++) {
		if (i)
			fputc('\n', out);
		print_head(&x[i], out);
		print_perplexities(&x[i], out);
		if (x[i].e->routed)
			print_routing(x[i].e, out);
		print_choices(&x[i], out);
		print_echo(&x[i], out);
	}
}

/* ---- for a program ------------------------------------------------------------------- */

/* JSON has no NaN or infinity: null stands for them. */
static json_t *id_json(int32_t i)
{
	return i < 0 ? json_null() : json_integer(i);
}

static json_t *interval_json(vn_mean m, double (*f)(double))
{
	return json_pack("[o, o]", vn_json_real(f(lower_bound(m))), vn_json_real(f(upper_bound(m))));
}

static json_t *engine_json(const vn_evaluated *x, int s)
{
	const vn_evaluation *e = x->e;
	json_t              *run = json_object();
	for (int i = 0; i < x->engine[s].n; i++)
		json_object_set_new(run, x->engine[s].fact[i].key, vn_json_text(x->engine[s].fact[i].value));
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:f, s:b}", "path", vn_json_text(x->recorded[s]),
	                 "run", run, "weights", x->weights[s], "weights_format",
	                 *x->format[s] ? vn_json_text(x->format[s]) : json_null(), "perplexity",
	                 vn_json_real(e->perplexity[s]), "interval", interval_json(e->loss[s], exp), "loss",
	                 vn_json_real(e->loss[s].mean), "loss_error", vn_json_real(e->loss[s].error), "nonfinite",
	                 (json_int_t)e->nonfinite[s], "echo", e->echo[s], "echoes", (int)e->echoes[s]);
}

static json_t *word_json(const vn_evaluated *x, int32_t token)
{
	VN_FREED char *w = token_text(x, token);
	json_t        *j = vn_json_text(w);
	return j;
}

static json_t *parting_json(const vn_evaluated *x, int64_t at, const int32_t *token, bool tie)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:b}", "at", (json_int_t)at, "reference", id_json(token[0]),
	                 "candidate", id_json(token[1]), "reference_text", word_json(x, token[0]), "candidate_text",
	                 word_json(x, token[1]), "near_tie", (int)tie);
}

static json_t *greedy_json(const vn_evaluated *x)
{
	const vn_evaluation *e = x->e;
	return json_pack("{s:I, s:I, s:o}", "prompt", (json_int_t)e->prompt, "steps", (json_int_t)e->steps,
	                 "first_difference",
	                 e->part_at < 0 ? json_null() : parting_json(x, e->part_at, e->part, e->part_tie));
}

static void compare_them(const vn_evaluated *x, vn_lines *next)
{
	char line[VN_SHELL_LINE] = "vernier compare";
	for (int s = 0; s < 2; s++)
		vn_shell_add(line, sizeof line, x->recorded[s]);
	if (strcmp(x->format[0], x->format[1]) != 0) /* compare refuses other numbers, such as those of two quantisations */
		vn_shell_option(line, "--allow", "weights");
	if (*line)
		vn_lines_add(next, "%s", line);
}

static json_t *gap_json(vn_mean gap)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "loss", vn_json_real(gap.mean), "loss_error", vn_json_real(gap.error),
	                 "perplexity_ratio", vn_json_real(exp(gap.mean)), "interval", interval_json(gap, exp));
}

static json_t *routing_json(const vn_evaluation *e)
{
	json_t *gap = gap_json(e->routing);

	json_object_set_new(gap, "kl", vn_json_real(e->routing_kl.mean));
	return json_pack("{s:o, s:o}", "routing", gap, "arithmetic", gap_json(e->arithmetic));
}

static json_t *evaluation_json(const vn_evaluated *x)
{
	const vn_evaluation            *e = x->e;
	VN_ENDS(vn_lines_free) vn_lines next = { 0 };
	json_t *j = json_pack("{s:s, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "schema", "vernier-evaluate/2", "model",
	                      vn_json_text(x->model), "weights", x->weights[0], "text", vn_json_text(x->text), "tokens",
	                      (json_int_t)e->tokens, "scored", (json_int_t)e->scored, "window", (json_int_t)x->o->window,
	                      "stride", (json_int_t)x->o->stride, "windows", (json_int_t)e->windows);
	json_t *gap = gap_json(e->gap);
	json_t *argmax = json_pack(
		"{s:f, s:f, s:f, s:o}", "agreement", e->agree, "strict", e->strict, "top5", e->top5, "first_difference",
		e->differ_at < 0 ? json_null() : parting_json(x, e->differ_at, e->differ, e->differ_tie));
	json_t *kl = json_pack("{s:o, s:o, s:o, s:o, s:I}", "mean", vn_json_real(e->kl.mean), "error",
	                       vn_json_real(e->kl.error), "p99", vn_json_real(e->kl_p99), "max", vn_json_real(e->kl_max),
	                       "max_at", (json_int_t)e->kl_max_at);

	json_object_set_new(j, "reference", engine_json(x, 0));
	json_object_set_new(j, "candidate", engine_json(x, 1));
	json_object_set_new(gap, "perplexity", vn_json_real(e->perplexity[1] - e->perplexity[0]));
	json_object_set_new(j, "gap", gap);
	json_object_set_new(j, "argmax", argmax);
	json_object_set_new(j, "kl", kl);
	json_object_set_new(j, "greedy", x->o->decode ? greedy_json(x) : json_null());
	json_object_set_new(j, "routing", e->routed ? routing_json(e) : json_null());
	json_object_set_new(j, "drafts",
	                    e->drafts ? json_pack("{s:I, s:f, s:f}", "tokens", (json_int_t)e->drafts, "reference",
	                                          e->accepted[0], "candidate", e->accepted[1])
	                              : json_null());
	json_object_set_new(j, "repeats", json_real(e->repeats));
	json_object_set_new(j, "garbage", x->garbage ? vn_json_lines(x->garbage) : json_array());
	json_object_set_new(j, "notes", x->notes ? vn_json_lines(x->notes) : json_array());
	json_object_set_new(j, "injected", vn_json_text(x->injected));
	json_object_set_new(j, "unscored", json_integer(x->unscored));
	if (x->model)
		vn_runs_suggest(x->model, x->source, x->runs_on, x->run_options, &next);
	else
		compare_them(x, &next);
	json_object_set_new(j, "next", vn_json_lines(&next));
	return j;
}

vn_status vn_evaluate_json(const vn_evaluated *x, int n, FILE *out, vn_error *err)
{
	VN_OWNED json_t *j = n == 1 ? evaluation_json(x)
	                            : json_pack("{s:s, s:[], s:[]}", "schema", "vernier-evaluate-many/2", "evaluations",
	                                        "next");
	for (int i = 0; n > 1 && i < n; i++) {
		json_t *of = evaluation_json(&x[i]), *first = json_array_get(json_object_get(of, "next"), 0);
		if (first)
			json_array_append(json_object_get(j, "next"), first);
		json_array_append_new(json_object_get(j, "evaluations"), of);
	}
	const bool good = vn_json_print(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) && fputc('\n', out) != EOF;
	return good ? VN_OK : vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
}
