/* cmd_evaluate.c: vernier evaluate MODEL: a text through the reference and the engine under test. */
#include "compare/commands.h"
#include "compare/evaluate_report.h"
#include "compare/output.h"

#include "capture/arguments.h"
#include "capture/interrupt.h"
#include "capture/place.h"
#include "capture/prompt.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_DEFAULT = 512, DECODE_DEFAULT = 64 };

typedef struct command {
	const char *model, *ids, *text, *path, *precision;
	const char *device_text; /* as given, for complaints */
	bool        no_special, json, form_said, force, ref;
	int64_t     window, stride; /* 0: unsaid */
	vn_engine_options   cand;
	vn_evaluate_options o;
} command;

static void usage(FILE *to)
{
	fprintf(to, "usage: vernier evaluate MODEL --text FILE|--ids LIST|@FILE [--window N] [--stride N] [--decode N]\n"
	        "                        [--candidate gpu|ref] [--precision %s] [--device N]\n"
	        "                        [--threads N] [--format text|json] [-o PATH] [--force]\n"
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
	        "  --force         replace a report that exists\n"
	        "exit status: 0 done, 2 trouble\n", vn_policy_names, WINDOW_DEFAULT, DECODE_DEFAULT);
}

static vn_status read_format(command *k, const char *name, vn_error *err)
{
	if (strcmp(name, "text") != 0 && strcmp(name, "json") != 0)
		return vn_fail(err, VN_ERR_USAGE, "--format is text or json, not '%s'", name);
	k->json = strcmp(name, "json") == 0;
	k->form_said = true;
	return VN_OK;
}

static vn_status read_candidate(command *k, const char *name, vn_error *err)
{
	k->ref = strcmp(name, "ref") == 0;
	return k->ref || strcmp(name, "gpu") == 0
	       ? VN_OK : vn_fail(err, VN_ERR_USAGE, "--candidate is gpu or ref, not '%s'", name);
}

enum { IDS = 256, WINDOW, STRIDE, DECODE, CANDIDATE, PRECISION, DEVICE, THREADS, FORMAT, FORCE, TEXT, NO_SPECIAL };

static vn_status read_option(command *k, int c, char *const *argv, vn_error *err)
{
	int64_t   n = 0;
	vn_status st;

	switch (c) {
	case IDS:       k->ids = optarg; return VN_OK;
	case TEXT:      k->text = optarg; return VN_OK;
	case NO_SPECIAL: k->no_special = true; return VN_OK;
	case 'o':       k->path = optarg; return VN_OK;
	case FORCE:     k->force = true; return VN_OK;
	case PRECISION: k->precision = optarg; return VN_OK;
	case FORMAT:    return read_format(k, optarg, err);
	case CANDIDATE: return read_candidate(k, optarg, err);
	case WINDOW:    return vn_read_whole("--window", optarg, 2, INT32_MAX, &k->window, err);
	case STRIDE:    return vn_read_whole("--stride", optarg, 1, INT32_MAX, &k->stride, err);
	case DECODE:    return vn_read_whole("--decode", optarg, 0, INT32_MAX, &k->o.decode, err);
	case DEVICE:
		k->device_text = optarg;
		st = vn_read_whole("--device", optarg, 0, 255, &n, err);
		k->cand.device = (int)n;
		return st;
	case THREADS:
		st = vn_read_whole("--threads", optarg, 1, 4096, &n, err);
		k->o.threads = (int)n;
		return st;
	case ':':
		return vn_fail(err, VN_ERR_USAGE, "option '%s' wants a value", argv[optind - 1]);
	default:
		return vn_fail(err, VN_ERR_USAGE, "unknown option '%s'", argv[optind - 1]);
	}
}

/* What the options say together. */
static vn_status check(command *k, int argc, char **argv, vn_error *err)
{
	const char *end = k->path ? strrchr(k->path, '.') : NULL;

	if (argc - optind < 1)
		return vn_fail(err, VN_ERR_USAGE, "a model is needed");
	if (argc - optind > 1)
		return vn_fail(err, VN_ERR_USAGE, "one model, then what is '%s'?", argv[optind + 1]);
	if (!k->ids && !k->text)
		return vn_fail(err, VN_ERR_USAGE, "--text FILE or --ids LIST is needed: the text to evaluate");
	if (k->ids && (k->text || k->no_special))
		return vn_fail(err, VN_ERR_USAGE, "--ids says which tokens, then what is %s?", k->text ? "--text" : "--no-special-tokens");
	if (k->ref && k->device_text)
		return vn_fail(err, VN_ERR_USAGE, "--device is for the gpu engine");
	if (!k->precision)
		k->precision = "f16";
	if (!vn_policy_from_name(k->precision, &k->cand.policy))
		return vn_fail(err, VN_ERR_USAGE, "--precision is one of %s, not '%s'", vn_policy_names, k->precision);
	if (!k->form_said)
		k->json = end && strcmp(end, ".json") == 0;
	k->model = argv[optind];
	k->cand.gpu = !k->ref;
	k->cand.threads = k->o.threads;
	return VN_OK;
}

/* 0: go on; 1: help was asked for. */
static int read_options(command *k, int argc, char **argv, vn_status *st, vn_error *err)
{
	static const struct option longs[] = {
		{ "ids", 1, NULL, IDS }, { "text", 1, NULL, TEXT }, { "no-special-tokens", 0, NULL, NO_SPECIAL },
		{ "window", 1, NULL, WINDOW }, { "stride", 1, NULL, STRIDE }, { "decode", 1, NULL, DECODE },
		{ "candidate", 1, NULL, CANDIDATE }, { "precision", 1, NULL, PRECISION }, { "device", 1, NULL, DEVICE },
		{ "threads", 1, NULL, THREADS }, { "format", 1, NULL, FORMAT }, { "output", 1, NULL, 'o' },
		{ "force", 0, NULL, FORCE }, { "help", 0, NULL, 'h' }, { 0 },
	};
	int c;

	*k = (command) { .o.decode = DECODE_DEFAULT, .cand.device = -1 };
	*st = VN_OK;
	optind = 0; /* start afresh */
	opterr = 0;
	while (!*st && (c = getopt_long(argc, argv, ":o:h", longs, NULL)) != -1) {
		if (c == 'h')
			return 1;
		*st = read_option(k, c, argv, err);
	}
	if (!*st)
		*st = check(k, argc, argv, err);
	return 0;
}

static vn_status report(const command *k, const vn_evaluated *x, vn_error *err)
{
	vn_output out;
	vn_error  lost;
	vn_status st = vn_output_open(&out, k->path, k->force, err);

	if (st)
		return st;
	if (k->json)
		st = vn_evaluate_json(x, out.file, err);
	else
		vn_evaluate_text(x, out.file);
	const vn_status closed = vn_output_close(&out, st == VN_OK, &lost);
	if (!st && closed && err)
		*err = lost;
	return st ? st : closed;
}

/* Both engines over the text. */
static vn_status evaluate(command *k, const vn_model *m, const vn_tokenizer *tokenizer, vn_error *err)
{
	const vn_engine_options ro = { .policy = { VN_F32, VN_F32 }, .threads = k->o.threads, .device = -1 };
	vn_engine     engine[2] = { { 0 } };
	vn_evaluation e;
	vn_evaluated  x = { .model = vn_model_path(m), .text = k->text ? k->text : k->ids[0] == '@' ? k->ids + 1 : "--ids",
	                    .tokenizer = tokenizer, .o = &k->o, .e = &e };
	vn_status     st;

	if (!(st = vn_engine_open(&engine[0], m, &ro, err)) && !(st = vn_engine_open(&engine[1], m, &k->cand, err)) &&
	    !(st = vn_evaluate(&k->o, vn_model_plan(m), &engine[0], &engine[1], &e, err))) {
		for (int s = 0; s < 2; s++)
			engine[s].facts(engine[s].self, &x.engine[s]);
		st = report(k, &x, err);
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

	if ((k->path && (st = vn_place_check(k->path, k->force, err))) || (st = vn_model_open(k->model, &m, err)) ||
	    (st = k->text ? vn_prompt_read_file(k->model, k->text, !k->no_special, &text, err)
	                  : vn_prompt_read(k->model, k->ids, NULL, false, &text, err)))
		goto done;
	for (int i = 0; (warning = vn_model_warning(m, i)); i++)
		fprintf(stderr, "vernier evaluate: warning: %s\n", warning);
	if (*text.warning)
		fprintf(stderr, "vernier evaluate: warning: no text of the tokens: %s\n", text.warning);
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
	command   k;
	vn_error  err = { "" };
	vn_status st;

	if (read_options(&k, argc, argv, &st, &err)) {
		usage(stdout);
		return 0;
	}
	if (st) {
		fprintf(stderr, "vernier evaluate: %s\n(vernier evaluate --help)\n", err.text);
		return 2;
	}
	if (run(&k, &err)) {
		fprintf(stderr, "vernier evaluate: %s\n", err.text);
		return 2;
	}
	return 0;
}
