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
	const char *model, *text, *precision;
	vn_prompt_source source; /* but for the text */
	int         candidate;
	bool        no_special;
	int64_t     window, stride; /* 0: unsaid */
	vn_engine_options   cand;
	vn_evaluate_options o;
	vn_reporting        report;
} command;

#define complain(...) vn_complain("evaluate", __VA_ARGS__)

enum { GPU, REF };
_Static_assert(WINDOW_DEFAULT == 512 && DECODE_DEFAULT == 64, "as the help says");

static const vn_option options[] = {
	VN_GROUP("The text"),
	{ "text", 0, VN_INTO(command, text), .argument = "FILE", .help = "The text, through the model's tokenizer. This, --ids or --ids-from is required." },
	{ "no-special-tokens", 0, VN_INTO(command, no_special),
	  .help = "Put no special token before the text. Default: those that the tokenizer's file asks for." },
	{ "ids", 0, VN_INTO(command, source.list), .argument = "LIST|@FILE", .help = "The token ids of the text: 1,2,3, or [1,2,3], or a file or pipe that holds them, JSON too." },
	{ "ids-from", 0, VN_INTO(command, source.recording), .argument = "REC", .help = "Take the token ids of the prompt of the recording REC." },
	{ "window", 0, VN_INTO(command, window), VN_RANGE(2, INT32_MAX), .argument = "N",
	  .help = "Tokens per window. Default: 512, or the model's context if that is smaller." },
	{ "stride", 0, VN_INTO(command, stride), VN_RANGE(1, INT32_MAX), .argument = "N",
	  .help = "Tokens from one window to the next. A window scores only tokens that no earlier window scored. Default: half a window." },
	{ "decode", 0, VN_INTO(command, o.decode), VN_RANGE(0, INT32_MAX), .argument = "N",
	  .help = "At most N greedy steps behind the first half window, until the two differ. Default: 64; 0 for none." },
	VN_GROUP("The engine under test"),
	{ "candidate", 0, VN_CHOOSE(command, candidate), .argument = "gpu|ref",
	  .help = "The engine under test. ref is the reference in another precision, which shows the effect of the number format alone. Default: gpu." },
	{ "precision", 0, VN_INTO(command, precision), .argument = "P", .words = &vn_policy_names,
	  .help = "Precision of the candidate. The reference is float32. Default: f16." },
	{ "device", 0, VN_INTO(command, cand.device), VN_RANGE(0, 255), .argument = "N",
	  .help = "GPU number, as listed by vernier devices. Default: the best suitable device." },
	VN_THREADS_OPTION(command, o.threads),
	VN_GROUP("The report"),
	VN_REPORTING_OPTIONS(command, report),
	{ "force", 0, VN_INTO(command, report.force), .help = "Replace a report that exists." },
	VN_STRICT_OPTION(command, report.strict, ""),
};

const vn_command vn_evaluate_command = {
	.name = "evaluate", .synopsis = "MODEL --text FILE|--ids LIST|--ids-from REC [OPTION]...",
	.about = "Run a text through the reference and through the engine under test: the perplexity of both, how often both choose the same next token, the "
	         "divergence of their distributions, and how long they agree in greedy decoding (specs/evaluate.md).",
	.option = options, .n = sizeof options / sizeof *options, .status = "0 done, 1 done with a warning (--strict), 2 trouble",
};

/* The file of the ids, for the report. */
static const char *name_of_ids(const vn_prompt_source *from)
{
	return from->recording ? from->recording : from->list[0] == '@' ? from->list + 1 : "--ids";
}

/* What the options say together. */
static int check(command *k, int argc, char **argv)
{
	if (vn_option_model("evaluate", argc, argv, &k->model))
		return 2;
	const char *ids = k->source.list ? "--ids" : k->source.recording ? "--ids-from" : NULL;
	if (!ids && !k->text)
		return complain("--text FILE, --ids LIST or --ids-from REC is needed: the text to evaluate");
	if (ids && (k->text || k->no_special || (k->source.list && k->source.recording)))
		return complain("%s already gives the tokens; %s cannot be used with it", ids, k->text ? "--text" : k->no_special ? "--no-special-tokens" : "--ids-from");
	if (k->candidate == REF && k->cand.device >= 0)
		return complain("--device is for the gpu engine");
	if (!k->precision)
		k->precision = "f16";
	if (vn_option_policy("evaluate", "precision", k->precision, &k->cand.policy))
		return 2;
	k->cand.gpu = k->candidate == GPU;
	k->cand.threads = k->o.threads;
	return 0;
}

/* 0: go on; 1: help was asked for; 2: wrong. */
static int arguments(command *k, int argc, char **argv)
{
	*k = (command) { .o.decode = DECODE_DEFAULT, .cand.device = -1, .report.format = VN_FORM_UNSAID };
	const int st = vn_options_read(&vn_evaluate_command, argc, argv, k);
	vn_reporting_choose(&k->report);
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
	char          source[VN_SHELL_LINE] = "";
	vn_evaluated  x = { .source = source, .model = vn_model_path(m), .text = k->text ? k->text : name_of_ids(&k->source),
	                    .tokenizer = tokenizer, .o = &k->o, .e = &e };
	vn_status     st;

	if (!(st = vn_engine_open(&engine[0], m, &ro, err)) && !(st = vn_engine_open(&engine[1], m, &k->cand, err)) &&
	    !(st = vn_evaluate(&k->o, vn_model_plan(m), &engine[0], &engine[1], &e, err))) {
		if (!k->text && k->candidate == GPU && e.windows == 1)
			vn_say_source(&k->source, source);
		for (int s = 0; s < 2; s++)
			engine[s].ops->facts(engine[s].self, &x.engine[s]);
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
	vn_status   st;

	if ((k->report.path && (st = vn_place_check(k->report.path, VN_PLACE_TEXT, k->report.force, err))) || (st = vn_model_open(k->model, &m, err)) ||
	    (st = k->text ? vn_prompt_read_file(k->model, k->text, !k->no_special, &text, err)
	                  : vn_prompt_read(k->model, &k->source, &text, err)))
		goto done;
	vn_prompt_warn("evaluate", m, &text);
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

	if (said)
		return said == 1 ? 0 : 2;
	if (run(&k, &err)) {
		fprintf(stderr, "vernier evaluate: %s\n", err.text);
		return 2;
	}
	return vn_warnings_end("evaluate", k.report.strict, 0);
}
