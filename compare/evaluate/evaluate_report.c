/* evaluate_report.c: see evaluate_report.h. */
#include "compare/evaluate/evaluate_report.h"
#include "compare/text/shell.h"
#include "compare/text/json.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const side[2] = { "reference", "candidate" };

static double low(vn_mean m)
{
	return m.mean - VN_Z95 * m.error;
}

static double high(vn_mean m)
{
	return m.mean + VN_Z95 * m.error;
}

static const char *fact(const vn_evaluated *x, int s, const char *key)
{
	const char *v = vn_facts_get(&x->engine[s], key);
	return v ? v : "unknown";
}

/* ---- for a person --------------------------------------------------------------- */

/* What a token says, to be freed; NULL when nobody knows. */
static char *show(const vn_evaluated *x, int32_t id)
{
	return x->tokenizer && id >= 0 ? vn_tokenizer_show(x->tokenizer, id) : NULL;
}

static void said(const vn_evaluated *x, const int32_t *token, bool tie, FILE *out)
{
	for (int s = 0; s < 2; s++) {
		char *word = show(x, token[s]);
		if (s)
			fputs(" against ", out);
		if (token[s] < 0)
			fputs("nothing", out);
		else
			fprintf(out, "%" PRId32, token[s]);
		if (word)
			fprintf(out, " \"%s\"", word);
		free(word);
	}
	fputs(tie ? ", a near tie" : "", out);
}

static void head(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	char path[4096];
	snprintf(path, sizeof path, "%s", x->model);
	fprintf(out, "%-11s %s (%s weights)\n", "model", vn_text_clean(path, sizeof path), x->weights);
	snprintf(path, sizeof path, "%s", x->text);
	fprintf(out, "%-11s %s: %" PRId64 " tokens, %" PRId64 " of them scored in %" PRId64 " window%s of %" PRId64 ", %" PRId64
	        " apart\n", "text", vn_text_clean(path, sizeof path), e->tokens, e->scored, e->windows, e->windows == 1 ? "" : "s", x->o->window,
	        x->o->stride);
	for (int s = 0; s < 2; s++)
		fprintf(out, "%-11s %s, %s, %s\n", side[s], fact(x, s, "engine"), fact(x, s, "precision"), fact(x, s, "device"));
}

static void perplexities(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	fputc('\n', out);
	for (int s = 0; s < 2; s++) {
		fprintf(out, "%-11s %-9s ", s ? "" : "perplexity", side[s]);
		if (isnan(e->loss[s].mean))
			fputs("none: some scores are NaN\n", out);
		else
			fprintf(out, "%.7g   (95 %%: %.5g to %.5g); mean loss %.7g\n", e->perplexity[s], exp(low(e->loss[s])), exp(high(e->loss[s])),
			        e->loss[s].mean);
	}
	fprintf(out, "%-11s %-9s ", "", "gap");
	if (isnan(e->gap.mean))
		fputs("none\n", out);
	else
		fprintf(out, "%+.3g %%   (95 %%: %+.3g to %+.3g %%), token by token\n", 100 * expm1(e->gap.mean), 100 * expm1(low(e->gap)),
		        100 * expm1(high(e->gap)));
}

static void choices(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	fprintf(out, "%-11s agrees in %.6g %% of the tokens (%.6g %% with near ties)", "argmax", 100 * e->strict, 100 * e->agree);
	if (e->differ_at >= 0) {
		fprintf(out, "; first apart at token %" PRId64 ": ", e->differ_at);
		said(x, e->differ, e->differ_tie, out);
	}
	fprintf(out, "\n%-11s ", "divergence");
	if (isnan(e->kl.mean))
		fprintf(out, "none; the first token without is %" PRId64 "\n", e->kl_max_at);
	else
		fprintf(out, "mean %.3g +- %.2g, p99 %.3g, max %.3g at token %" PRId64 "\n", e->kl.mean, VN_Z95 * e->kl.error, e->kl_p99,
		        e->kl_max, e->kl_max_at);
	if (x->o->decode == 0)
		return;
	fprintf(out, "%-11s behind %" PRId64 " tokens: ", "greedy", e->prompt);
	if (e->part_at < 0) {
		fprintf(out, "the same for %" PRId64 " tokens\n", e->steps);
		return;
	}
	fprintf(out, "parts at its token %" PRId64 ": ", e->part_at);
	said(x, e->part, e->part_tie, out);
	fputc('\n', out);
}

void vn_evaluate_warnings(const vn_evaluation *e, vn_lines *lines)
{
	for (int s = 0; s < 2; s++)
		if (e->echoes[s])
			vn_lines_add(lines, "the %s repeats its input: the tensor that reaches its output head resembles the embedding", side[s]);
	for (int s = 0; s < 2; s++)
		if (e->nonfinite[s])
			vn_lines_add(lines, "the %s's scores hold NaN or infinity at %" PRId64 " of %" PRId64 " tokens", side[s], e->nonfinite[s], e->scored);
}

static void echo(const vn_evaluated *x, FILE *out)
{
	const vn_evaluation *e = x->e;
	fprintf(out, "%-11s scores peak at the input token: reference %.4g %%, candidate %.4g %%; in the text: %.4g %%\n", "echo",
	        100 * e->echo[0], 100 * e->echo[1], 100 * e->repeats);
	vn_lines lines = { 0 };
	vn_evaluate_warnings(e, &lines);
	for (int i = 0; i < lines.n; i++)
		fprintf(out, "%-11s %s\n", "warning", lines.line[i]);
	vn_lines_free(&lines);
}

void vn_evaluate_text(const vn_evaluated *x, FILE *out)
{
	head(x, out);
	perplexities(x, out);
	choices(x, out);
	echo(x, out);
}

/* ---- for a program ------------------------------------------------------------------- */

/* JSON has no NaN and no infinity: null. */
static json_t *id(int32_t i)
{
	return i < 0 ? json_null() : json_integer(i);
}

static json_t *interval(vn_mean m, double (*f)(double))
{
	return json_pack("[o, o]", vn_json_real(f(low(m))), vn_json_real(f(high(m))));
}

static json_t *engine(const vn_evaluated *x, int s)
{
	const vn_evaluation *e = x->e;
	json_t *run = json_object();
	for (int i = 0; i < x->engine[s].n; i++)
		json_object_set_new(run, x->engine[s].fact[i].key, vn_json_text(x->engine[s].fact[i].value));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:f, s:b}", "run", run, "perplexity", vn_json_real(e->perplexity[s]),
	                 "interval", interval(e->loss[s], exp), "loss", vn_json_real(e->loss[s].mean),
	                 "loss_error", vn_json_real(e->loss[s].error), "nonfinite", (json_int_t)e->nonfinite[s], "echo", e->echo[s],
	                 "echoes", (int)e->echoes[s]);
}

static json_t *word(const vn_evaluated *x, int32_t token)
{
	char   *w = show(x, token);
	json_t *j = vn_json_text(w);
	free(w);
	return j;
}

static json_t *parting(const vn_evaluated *x, int64_t at, const int32_t *token, bool tie)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:b}", "at", (json_int_t)at, "reference", id(token[0]), "candidate", id(token[1]),
	                 "reference_text", word(x, token[0]), "candidate_text", word(x, token[1]), "near_tie", (int)tie);
}

static json_t *greedy(const vn_evaluated *x)
{
	const vn_evaluation *e = x->e;
	return json_pack("{s:I, s:I, s:o}", "prompt", (json_int_t)e->prompt, "steps", (json_int_t)e->steps, "parts",
	                 e->part_at < 0 ? json_null() : parting(x, e->part_at, e->part, e->part_tie));
}

vn_status vn_evaluate_json(const vn_evaluated *x, FILE *out, vn_error *err)
{
	const vn_evaluation *e = x->e;
	vn_lines next = { 0 };
	json_t *j = json_pack("{s:s, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "schema", "vernier-evaluate/1", "model", vn_json_text(x->model),
	                      "weights", x->weights, "text",
	                      vn_json_text(x->text), "tokens", (json_int_t)e->tokens, "scored", (json_int_t)e->scored, "window",
	                      (json_int_t)x->o->window, "stride", (json_int_t)x->o->stride, "windows", (json_int_t)e->windows);
	json_t *gap = json_pack("{s:o, s:o, s:o, s:o}", "loss", vn_json_real(e->gap.mean), "loss_error", vn_json_real(e->gap.error),
	                        "perplexity_ratio", vn_json_real(exp(e->gap.mean)), "interval", interval(e->gap, exp));
	json_t *argmax = json_pack("{s:f, s:f, s:o}", "agreement", e->agree, "strict", e->strict, "first_apart",
	                           e->differ_at < 0 ? json_null() : parting(x, e->differ_at, e->differ, e->differ_tie));
	json_t *kl = json_pack("{s:o, s:o, s:o, s:o, s:I}", "mean", vn_json_real(e->kl.mean), "error", vn_json_real(e->kl.error), "p99",
	                       vn_json_real(e->kl_p99), "max", vn_json_real(e->kl_max), "max_at", (json_int_t)e->kl_max_at);

	json_object_set_new(j, "reference", engine(x, 0));
	json_object_set_new(j, "candidate", engine(x, 1));
	json_object_set_new(j, "gap", gap);
	json_object_set_new(j, "argmax", argmax);
	json_object_set_new(j, "kl", kl);
	json_object_set_new(j, "greedy", x->o->decode ? greedy(x) : json_null());
	json_object_set_new(j, "repeats", json_real(e->repeats));
	vn_shell_runs(x->model, x->source, "", &next);
	json_object_set_new(j, "next", vn_json_lines(&next));
	vn_lines_free(&next);
	const bool good = vn_json_print(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) && fputc('\n', out) != EOF;
	json_decref(j);
	return good ? VN_OK : vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
}
