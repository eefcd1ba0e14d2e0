/* cmd_isolate.c: vernier isolate MODEL: which operations to replace to repair a run. */
#include "compare/commands.h"
#include "compare/options.h"
#include "compare/output.h"
#include "compare/repair.h"

#include "capture/arguments.h"
#include "capture/interrupt.h"
#include "capture/place.h"
#include "capture/prompt.h"
#include "libref/base/glob.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct command {
	const char *model, *ids, *prompt, *forced, *path, *precision, *as;
	const char *gpu_alone; /* an option that is for the GPU of this process alone; NULL */
	const char *point[MOST], *precise[MOST], *inject[MOST];
	int         n_inject;
	bool        no_special, json, form_said, force;
	vn_policy   as_policy;
	vn_experiment_options o;
} command;

static void usage(FILE *to)
{
	fprintf(to, "usage: vernier isolate MODEL --ids LIST|@FILE|--prompt TEXT|@FILE [--force-ids LIST] [--limits FILE]\n"
	        "                       [--precision P|P@GLOB]... [--reference-precision P] [--points GLOB]... [--device N] [--kv paged]\n"
	        "                       [--check CMD [--check-recording FILE]] [--allow %s]\n"
	        "                       [--threads N] [--format text|json] [-o PATH] [--force]\n"
	        "  --ids, --prompt what to run, as of vernier capture; --force-ids: then these tokens, a step each\n"
	        "  --limits FILE   what is good; else vernier's own limits for the candidate's precision\n"
	        "  --points GLOB   judge by these checkpoints alone\n"
	        "  --precision P   of the GPU run, f16 unless said; P@GLOB: of the nodes that make these checkpoints\n"
	        "  --reference-precision P  of what is replaced; the run's unless said. P: %s\n"
	        "  --inject FAULT@GLOB  make this fault in the GPU run, to see it found; vernier points --faults\n"
	        "  --device N, --kv contiguous|paged  of the GPU\n"
	        "  --check CMD     another engine: sh runs CMD with the names to replace in VERNIER_FORCE_REF, comma-separated;\n"
	        "                  it ends with 0 where the run is good, with 1 where it is bad\n"
	        "  --check-recording FILE  CMD writes this recording and ends with 0; good is what is within the limits\n"
	        "  --allow WORDS   differences that shall not refuse a recording of CMD, as of vernier compare\n"
	        "  --threads N     at most so many; one a processor unless said\n"
	        "  --format, -o    text or json, to stdout or PATH\n"
	        "  --force         replace a report or a recording that exists\n"
	        "exit status: 0 nothing to isolate, 1 outside the limits, isolated or not, 2 trouble\n", vn_allow_names, vn_policy_names);
}

enum { IDS = 256, PROMPT, NO_SPECIAL, FORCE_IDS, LIMITS, POINTS, PRECISION, AS, DEVICE, KV, CHECK, RECORDING, ALLOW, THREADS, FORMAT, FORCE, INJECT };

static vn_status put(const char **list, int *n, const char *option, vn_error *err)
{
	if (*n == MOST)
		return vn_fail(err, VN_ERR_USAGE, "%s can be given at most %d times", option, MOST);
	list[(*n)++] = optarg;
	return VN_OK;
}

static vn_status read_option(command *k, int c, char *const *argv, vn_error *err)
{
	int64_t   n = 0;
	vn_status st = VN_OK;

	switch (c) {
	case IDS:        k->ids = optarg; break;
	case PROMPT:     k->prompt = optarg; break;
	case NO_SPECIAL: k->no_special = true; break;
	case FORCE_IDS:  k->forced = optarg; break;
	case LIMITS:     k->o.limits = optarg; break;
	case AS:         k->as = optarg; break;
	case CHECK:      k->o.check = optarg; break;
	case RECORDING:  k->o.recording = optarg; break;
	case FORCE:      k->force = true; break;
	case 'o':        k->path = optarg; break;
	case POINTS:
		st = vn_glob_check(optarg, err);
		return st ? st : put(k->point, &k->o.recipe.n_patterns, "--points", err);
	case PRECISION:
		k->gpu_alone = "--precision";
		if (strchr(optarg, '@'))
			return put(k->precise, &k->o.cand.n_precise, "--precision", err);
		k->precision = optarg;
		break;
	case INJECT:
		k->gpu_alone = "--inject";
		return put(k->inject, &k->n_inject, "--inject", err);
	case DEVICE:
		k->gpu_alone = "--device";
		st = vn_read_whole("--device", optarg, 0, 255, &n, err);
		k->o.cand.device = (int)n;
		break;
	case KV:
		k->gpu_alone = "--kv";
		k->o.cand.paged = strcmp(optarg, "paged") == 0;
		if (!k->o.cand.paged && strcmp(optarg, "contiguous") != 0)
			return vn_fail(err, VN_ERR_USAGE, "--kv is contiguous or paged, not '%s'", optarg);
		break;
	case THREADS:
		st = vn_read_whole("--threads", optarg, 1, 1024, &n, err);
		k->o.cand.threads = k->o.compare.threads = (int)n;
		break;
	case ALLOW: {
		const char *bad = vn_allow_parse(optarg, &k->o.compare.allow);
		if (bad)
			return vn_fail(err, VN_ERR_USAGE, "--allow takes %s, not '%s'", vn_allow_names, bad);
		break;
	}
	case FORMAT:
		k->json = strcmp(optarg, "json") == 0;
		k->form_said = true;
		if (!k->json && strcmp(optarg, "text") != 0)
			return vn_fail(err, VN_ERR_USAGE, "--format is text or json, not '%s'", optarg);
		break;
	case ':':
		return vn_fail(err, VN_ERR_USAGE, "option '%s' wants a value", argv[optind - 1]);
	default:
		return vn_fail(err, VN_ERR_USAGE, "unknown option '%s'", argv[optind - 1]);
	}
	return st;
}

/* What the options say together. */
static vn_status check(command *k, int argc, char **argv, vn_error *err)
{
	const char *end = k->path ? strrchr(k->path, '.') : NULL;

	if (argc - optind < 1)
		return vn_fail(err, VN_ERR_USAGE, "a model is needed");
	if (argc - optind > 1)
		return vn_fail(err, VN_ERR_USAGE, "one model, then what is '%s'?", argv[optind + 1]);
	if (k->o.recording && !k->o.check)
		return vn_fail(err, VN_ERR_USAGE, "--check-recording is what a --check CMD writes");
	if (k->o.check && (k->gpu_alone || k->as))
		return vn_fail(err, VN_ERR_USAGE, "%s is of the GPU run, and --check runs another engine", k->as ? "--reference-precision" : k->gpu_alone);
	if (k->o.check && !k->o.recording && k->o.limits)
		return vn_fail(err, VN_ERR_USAGE, "--limits needs --check-recording: the exit status of --check has its own");
	if (!k->ids && !k->prompt && !(k->o.check && !k->o.recording))
		return vn_fail(err, VN_ERR_USAGE, "--ids LIST or --prompt TEXT is needed (or @FILE): the tokens to run");
	if (k->ids && (k->prompt || k->no_special))
		return vn_fail(err, VN_ERR_USAGE, "--ids says which tokens to run, then what is %s?", k->prompt ? "--prompt" : "--no-special-tokens");
	if (!k->precision)
		k->precision = "f16";
	if (!vn_policy_from_name(k->precision, &k->o.cand.policy))
		return vn_fail(err, VN_ERR_USAGE, "--precision is one of %s, not '%s'", vn_policy_names, k->precision);
	if (k->as && !vn_policy_from_name(k->as, &k->as_policy))
		return vn_fail(err, VN_ERR_USAGE, "--reference-precision is one of %s, not '%s'", vn_policy_names, k->as);
	if (!k->form_said)
		k->json = end && strcmp(end, ".json") == 0;
	k->model = argv[optind];
	k->o.as = k->as ? &k->as_policy : NULL;
	k->o.cand.gpu = k->o.cand.quiet = true;
	k->o.cand.precise = k->precise;
	k->o.recipe.pattern = k->point;
	return VN_OK;
}

/* 0: go on; 1: help was asked for. */
static int read_options(command *k, int argc, char **argv, vn_status *st, vn_error *err)
{
	static const struct option longs[] = {
		{ "ids", 1, NULL, IDS }, { "prompt", 1, NULL, PROMPT }, { "no-special-tokens", 0, NULL, NO_SPECIAL },
		{ "force-ids", 1, NULL, FORCE_IDS }, { "limits", 1, NULL, LIMITS }, { "points", 1, NULL, POINTS },
		{ "precision", 1, NULL, PRECISION }, { "reference-precision", 1, NULL, AS }, { "device", 1, NULL, DEVICE },
		{ "kv", 1, NULL, KV }, { "inject", 1, NULL, INJECT }, { "check", 1, NULL, CHECK }, { "check-recording", 1, NULL, RECORDING }, { "allow", 1, NULL, ALLOW },
		{ "threads", 1, NULL, THREADS }, { "format", 1, NULL, FORMAT }, { "output", 1, NULL, 'o' }, { "force", 0, NULL, FORCE },
		{ "help", 0, NULL, 'h' }, { 0 },
	};
	int c;

	*k = (command){ .o = { .cand.device = -1, .recipe = { .first_layer = -1, .last_layer = -1 } } };
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

/* ---- the command ------------------------------------------------------------------ */

static vn_status report(const command *k, const vn_experiment *x, const vn_repair *r, vn_error *err)
{
	const vn_repair_about about = { .model = k->model, .candidate = k->o.check ? k->o.check : "gpu",
	                                .precision = k->o.check ? NULL : k->precision, .tokens = k->o.recipe.n_ids + k->o.recipe.decode };
	vn_output out;
	vn_error  lost;
	vn_status st = vn_output_open(&out, k->path, k->force, err);

	if (st)
		return st;
	if (k->json)
		st = vn_repair_json(&about, x, r, out.file, err);
	else
		vn_repair_text(&about, x, r, out.file);
	const vn_status closed = vn_output_close(&out, st == VN_OK, &lost);
	if (!st && closed && err)
		*err = lost;
	return st ? st : closed;
}

static vn_status isolate(command *k, bool *healthy, vn_error *err)
{
	vn_experiment x = { 0 };
	vn_repair     r = { 0 };
	vn_status     st = vn_experiment_open(&x, &k->o, err);

	if (!st && !(st = vn_repair_find(&x, &r, err)))
		st = report(k, &x, &r, err);
	*healthy = r.found.healthy;
	vn_repair_finish(&r);
	vn_experiment_close(&x);
	return st;
}

/* A faulty copy of the model for the GPU; what is replaced is sound. */
static vn_status make_faulty(command *k, const vn_model *m, vn_faulty **f, vn_error *err)
{
	vn_status st = k->n_inject ? vn_faulty_create(vn_model_plan(m), vn_model_weights(m), f, err) : VN_OK;

	for (int i = 0; i < k->n_inject && !st; i++)
		if ((st = vn_faulty_inject(*f, k->inject[i], err)))
			return vn_context(err, st, "--inject");
	if (!st && *f && !vn_faulty_keeps_nodes(*f))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "--inject: a fault that adds nodes, or changes what they read, cannot run beside the sound reference");
	k->o.cand.faulty = *f;
	return st;
}

static vn_status run(command *k, bool *healthy, vn_error *err)
{
	vn_model   *m = NULL;
	vn_prompt   text = { 0 };
	vn_faulty  *faulty = NULL;
	int32_t    *forced = NULL;
	const char *warning;
	vn_status   st;

	if ((k->path && (st = vn_place_check(k->path, k->force, err))) ||
	    (k->o.recording && (st = vn_place_check(k->o.recording, k->force, err))) ||
	    (k->forced && (st = vn_read_ids("--force-ids", k->forced, &forced, &k->o.recipe.decode, err))) ||
	    (st = vn_model_open(k->model, &m, err)) || (st = make_faulty(k, m, &faulty, err)) ||
	    ((k->ids || k->prompt) && (st = vn_prompt_read(k->model, k->ids, k->prompt, !k->no_special, &text, err))))
		goto done;
	for (int i = 0; (warning = vn_model_warning(m, i)); i++)
		fprintf(stderr, "vernier isolate: warning: %s\n", warning);
	k->o.model = m;
	k->o.recipe.ids = text.ids;
	k->o.recipe.n_ids = text.n;
	k->o.recipe.forced = forced;
	vn_interrupt_catch();
	st = isolate(k, healthy, err);
done:
	vn_faulty_destroy(faulty);
	vn_model_close(m);
	free(forced);
	vn_prompt_finish(&text);
	return st;
}

int cmd_isolate(int argc, char **argv)
{
	command   k;
	vn_error  err = { "" };
	vn_status st;
	bool      healthy = false;

	if (read_options(&k, argc, argv, &st, &err)) {
		usage(stdout);
		return 0;
	}
	if (st) {
		fprintf(stderr, "vernier isolate: %s\n(vernier isolate --help)\n", err.text);
		return 2;
	}
	if (run(&k, &healthy, &err)) {
		fprintf(stderr, "vernier isolate: %s\n", err.text);
		return 2;
	}
	return healthy ? 0 : 1;
}
