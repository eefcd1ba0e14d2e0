/* cmd_evaluate.c: vernier evaluate MODEL: a text through the reference and the engine under test. */
#include "compare/commands.h"
#include "compare/evaluate/evaluate_report.h"
#include "compare/options.h"
#include "compare/text/output.h"

#include "capture/run/interrupt.h"
#include "capture/file/place.h"
#include "capture/run/prompt.h"
#include "capture/base/warnings.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW_DEFAULT = 512, DECODE_DEFAULT = 64 };

typedef struct command {
	const char *model, *ids, *text, *precision;
	const char *device_text; /* as given, for complaints */
	bool        no_special, ref;
	int64_t     window, stride; /* 0: unsaid */
	vn_engine_options   cand;
	vn_evaluate_options o;
	vn_reporting        report;
} command;

#define complain(...) vn_complain("evaluate", __VA_ARGS__)

static void usage(FILE *to)
{
	fprintf(to, "usage: vernier evaluate MODEL --text FILE|--ids LIST|@FILE [--window N] [--stride N] [--decode N]\n"
	        "                        [--candidate gpu|ref] [--precision %s] [--device N]\n"
	        "                        [--threads N] [--format text|json] [-o PATH] [--strict] [--force]\n"
	        "  --text FILE     the text; with --no-special-tokens nothing is put in front of it\n"
	        "  --ids LIST      or its token ids\n"
	        "  --window N      so many tokens at a time; %d unless said, or the model's context\n"
	        "  --stride N      from one window to the next; half a window unless said\n"
	        "  --decode N      greedy steps, until the two part; %d unless said\n"
	        "  --candidate E   the engine under test: gpu, or the reference once more, in another precision\n"
	        "  --precision P   of the candidate; f16 unless said\n"
	        "  --device N      as `vernier devices` counts them\n"
	        "  --threads N     at most so many; one a processor unless said\n"
	        "  --format, -o    text or json, to stdout or PATH\n"
	        "  --strict        " VN_STRICT_HELP "\n"
	        "  --force         replace a report that exists\n"
	        "exit status: 0 done, 1 done with a warning (--strict), 2 trouble\n", vn_policy_names, WINDOW_DEFAULT, DECODE_DEFAULT);
}

static int read_candidate(command *k, const char *name)
{
	k->ref = strcmp(name, "ref") == 0;
	return k->ref || strcmp(name, "gpu") == 0 ? 0 : complain("--candidate is gpu or ref, not '%s'", name);
}

enum { IDS = 256, WINDOW, STRIDE, DECODE, CANDIDATE, PRECISION, DEVICE, THREADS, TEXT, NO_SPECIAL };

static int read_option(void *context, int c, const char *value, char *const *argv)
{
	command *k = context;
	int64_t  n = 0;
	int      st;

	switch (c) {
	case IDS:        k->ids = value; return 0;
	case TEXT:       k->text = value; return 0;
	case NO_SPECIAL: k->no_special = true; return 0;
	case PRECISION:  k->precision = value; return 0;
	case CANDIDATE:  return read_candidate(k, value);
	case WINDOW:     return vn_option_whole("evaluate", "--window", value, 2, INT32_MAX, &k->window);
	case STRIDE:     return vn_option_whole("evaluate", "--stride", value, 1, INT32_MAX, &k->stride);
	case DECODE:     return vn_option_whole("evaluate", "--decode", value, 0, INT32_MAX, &k->o.decode);
	case THREADS:    return vn_option_threads("evaluate", value, &k->o.threads);
	case DEVICE:
		k->device_text = value;
		st = vn_option_whole("evaluate", "--device", value, 0, 255, &n);
		k->cand.device = (int)n;
		return st;
	default:
		return vn_option_reporting("evaluate", c, value, argv, &k->report);
	}
}

/* What the options say together. */
static int check(command *k, int argc, char **argv)
{
	if (vn_option_model("evaluate", argc, argv, &k->model))
		return 2;
	if (!k->ids && !k->text)
		return complain("--text FILE or --ids LIST is needed: the text to evaluate");
	if (k->ids && (k->text || k->no_special))
		return complain("--ids says which tokens, then what is %s?", k->text ? "--text" : "--no-special-tokens");
	if (k->ref && k->device_text)
		return complain("--device is for the gpu engine");
	if (!k->precision)
		k->precision = "f16";
	if (!vn_policy_from_name(k->precision, &k->cand.policy))
		return complain("--precision is one of %s, not '%s'", vn_policy_names, k->precision);
	k->cand.gpu = !k->ref;
	k->cand.threads = k->o.threads;
	return 0;
}

/* 0: go on; 1: help was asked for; 2: wrong. */
static int arguments(command *k, int argc, char **argv)
{
	static const struct option longs[] = {
		VN_REPORTING_OPTIONS,
		{ "ids", 1, NULL, IDS }, { "text", 1, NULL, TEXT }, { "no-special-tokens", 0, NULL, NO_SPECIAL },
		{ "window", 1, NULL, WINDOW }, { "stride", 1, NULL, STRIDE }, { "decode", 1, NULL, DECODE },
		{ "candidate", 1, NULL, CANDIDATE }, { "precision", 1, NULL, PRECISION }, { "device", 1, NULL, DEVICE },
		{ "threads", 1, NULL, THREADS }, { "help", 0, NULL, 'h' }, { 0 },
	};
	*k = (command) { .o.decode = DECODE_DEFAULT, .cand.device = -1 };
	const int st = vn_option_all(argc, argv, ":o:h", longs, read_option, k);
	return st ? st : check(k, argc, argv);
}

typedef struct shown { bool json; const vn_evaluated *x; } shown;

static vn_status write_report(const void *context, FILE *out, vn_error *err)
{
	const shown *s = context;
	if (s->json)
		return vn_evaluate_json(s->x, out, err);
	vn_evaluate_text(s->x, out);
	return VN_OK;
}

/* On stderr, unless the text on stdout has them. */
static void warn(const command *k, const vn_evaluation *e)
{
	vn_lines lines = { 0 };
	vn_evaluate_warnings(e, &lines);
	for (int i = 0; i < lines.n; i++)
		if (k->report.path || k->report.json)
			vn_warn("evaluate", "%s", lines.line[i]);
		else
			vn_warned("%s", lines.line[i]);
	vn_lines_free(&lines);
}

/* Both engines over the text. */
static vn_status evaluate(command *k, const vn_model *m, const vn_tokenizer *tokenizer, vn_error *err)
{
	const vn_engine_options ro = { .policy = { VN_F32, VN_F32, 0 }, .threads = k->o.threads, .device = -1 };
	vn_engine     engine[2] = { { 0 } };
	vn_evaluation e;
	vn_evaluated  x = { .model = vn_model_path(m), .text = k->text ? k->text : k->ids[0] == '@' ? k->ids + 1 : "--ids",
	                    .tokenizer = tokenizer, .o = &k->o, .e = &e };
	vn_status     st;

	if (!(st = vn_engine_open(&engine[0], m, &ro, err)) && !(st = vn_engine_open(&engine[1], m, &k->cand, err)) &&
	    !(st = vn_evaluate(&k->o, vn_model_plan(m), &engine[0], &engine[1], &e, err))) {
		for (int s = 0; s < 2; s++)
			engine[s].facts(engine[s].self, &x.engine[s]);
		st = vn_output_report(k->report.path, k->report.force, write_report, &(shown) { k->report.json, &x }, err);
		warn(k, &e);
	}
	vn_engine_close(&engine[1]);
	vn_engine_close(&engine[0]);
	return st;
}

static vn_status run(command *k, vn_error *err)
{
	vn_model   *m = NULL;
	vn_prompt   text = { 0 };
	const char *warning;
	vn_status   st;

	if ((k->report.path && (st = vn_place_check(k->report.path, k->report.force, err))) || (st = vn_model_open(k->model, &m, err)) ||
	    (st = k->text ? vn_prompt_read_file(k->model, k->text, !k->no_special, &text, err)
	                  : vn_prompt_read(k->model, k->ids, NULL, false, &text, err)))
		goto done;
	for (int i = 0; (warning = vn_model_warning(m, i)); i++)
		vn_warn("evaluate", "%s", warning);
	if (*text.warning)
		vn_warn("evaluate", "no text of the tokens: %s", text.warning);
	const int context = vn_model_plan(m)->context;
	k->o.ids = text.ids;
	k->o.n = text.n;
	k->o.window = k->window ? k->window : context < WINDOW_DEFAULT ? context : WINDOW_DEFAULT;
	k->o.stride = k->stride ? k->stride : (k->o.window + 1) / 2;
	if (!(st = vn_evaluate_check(&k->o, vn_model_plan(m), err))) {
		vn_interrupt_catch();
		st = evaluate(k, m, text.tokenizer, err);
	}
done:
	vn_model_close(m);
	vn_prompt_finish(&text);
	return st;
}

int cmd_evaluate(int argc, char **argv)
{
	command  k;
	vn_error err = { "" };
	const int said = arguments(&k, argc, argv);

	if (said == 1)
		usage(stdout);
	if (said)
		return said == 1 ? 0 : 2;
	if (run(&k, &err)) {
		fprintf(stderr, "vernier evaluate: %s\n", err.text);
		return 2;
	}
	return vn_warnings_end("evaluate", k.report.strict, 0);
}
