/* cmd_isolate.c: vernier isolate MODEL: which operations to replace to repair a run. */
#include "compare/commands.h"
#include "compare/comparison/checkpoint.h"
#include "compare/options.h"
#include "compare/text/output.h"
#include "compare/isolate/repair.h"

#include "capture/run/arguments.h"
#include "capture/run/interrupt.h"
#include "capture/run/recorder_fault.h"
#include "capture/file/place.h"
#include "capture/run/prompt.h"
#include "capture/base/warnings.h"
#include "libref/base/glob.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct command {
	const char *model, *ids, *prompt, *forced, *precision, *as;
	const char *gpu_alone; /* an option that is for the GPU of this process alone; NULL */
	const char *point[MOST], *precise[MOST], *inject[MOST];
	int         n_inject;
	bool        no_special;
	vn_policy   as_policy;
	vn_experiment_options o;
	vn_reporting report;
} command;

#define complain(...) vn_complain("isolate", __VA_ARGS__)

static void usage(FILE *to)
{
	fprintf(to, "usage: vernier isolate MODEL --ids LIST|@FILE|--prompt TEXT|@FILE [--force-ids LIST] [--limits FILE]\n"
	        "                       [--precision P|P@GLOB]... [--reference-precision P] [--points GLOB]... [--device N] [--kv paged]\n"
	        "                       [--check CMD [--check-recording FILE]] [--allow %s]\n"
	        "                       [--threads N] [--format text|json] [-o PATH] [--strict] [--force]\n"
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
	        "  --strict        " VN_STRICT_HELP "\n"
	        "  --force         replace a report or a recording that exists\n"
	        "exit status: 0 nothing to isolate, 1 outside the limits, isolated or not, 2 trouble\n", vn_allow_names, vn_policy_names);
}

enum { IDS = 256, PROMPT, NO_SPECIAL, FORCE_IDS, LIMITS, POINTS, PRECISION, AS, DEVICE, KV, CHECK, RECORDING, ALLOW, THREADS, INJECT };

static int put(const char *option, const char *value, const char **list, int *n)
{
	return vn_option_more("isolate", option, value, list, n, MOST);
}

static int read_option(void *context, int c, const char *value, char *const *argv)
{
	command *k = context;
	vn_error err;
	int64_t  n = 0;
	int      st = 0;

	switch (c) {
	case IDS:        k->ids = value; break;
	case PROMPT:     k->prompt = value; break;
	case NO_SPECIAL: k->no_special = true; break;
	case FORCE_IDS:  k->forced = value; break;
	case LIMITS:     k->o.limits = value; break;
	case AS:         k->as = value; break;
	case CHECK:      k->o.check = value; break;
	case RECORDING:  k->o.recording = value; break;
	case POINTS:
		return vn_glob_check(value, &err) ? complain("%s", err.text) : put("--points", value, k->point, &k->o.recipe.n_patterns);
	case PRECISION:
		k->gpu_alone = "--precision";
		if (strchr(value, '@'))
			return put("--precision", value, k->precise, &k->o.cand.n_precise);
		k->precision = value;
		break;
	case INJECT:
		k->gpu_alone = "--inject";
		return put("--inject", value, k->inject, &k->n_inject);
	case DEVICE:
		k->gpu_alone = "--device";
		st = vn_option_whole("isolate", "--device", value, 0, 255, &n);
		k->o.cand.device = (int)n;
		break;
	case KV:
		k->gpu_alone = "--kv";
		k->o.cand.paged = strcmp(value, "paged") == 0;
		if (!k->o.cand.paged && strcmp(value, "contiguous") != 0)
			return complain("--kv is contiguous or paged, not '%s'", value);
		break;
	case THREADS:
		st = vn_option_threads("isolate", value, &k->o.compare.threads);
		k->o.cand.threads = k->o.compare.threads;
		break;
	case ALLOW:
		return vn_option_allow("isolate", value, &k->o.compare.allow);
	default:
		return vn_option_reporting("isolate", c, value, argv, &k->report);
	}
	return st;
}

/* What the options say together. */
static int check(command *k, int argc, char **argv)
{
	if (vn_option_model("isolate", argc, argv, &k->model))
		return 2;
	if (k->o.recording && !k->o.check)
		return complain("--check-recording is what a --check CMD writes");
	if (k->o.check && (k->gpu_alone || k->as))
		return complain("%s is of the GPU run, and --check runs another engine", k->as ? "--reference-precision" : k->gpu_alone);
	if (k->o.check && !k->o.recording && k->o.limits)
		return complain("--limits needs --check-recording: the exit status of --check has its own");
	if (!k->ids && !k->prompt && !(k->o.check && !k->o.recording))
		return complain("--ids LIST or --prompt TEXT is needed (or @FILE): the tokens to run");
	if (k->ids && (k->prompt || k->no_special))
		return complain("--ids says which tokens to run, then what is %s?", k->prompt ? "--prompt" : "--no-special-tokens");
	if (!k->precision)
		k->precision = "f16";
	if (!vn_policy_from_name(k->precision, &k->o.cand.policy))
		return complain("--precision is one of %s, not '%s'", vn_policy_names, k->precision);
	if (k->as && !vn_policy_from_name(k->as, &k->as_policy))
		return complain("--reference-precision is one of %s, not '%s'", vn_policy_names, k->as);
	k->o.as = k->as ? &k->as_policy : NULL;
	k->o.cand.gpu = k->o.cand.quiet = true;
	k->o.cand.precise = k->precise;
	k->o.recipe.pattern = k->point;
	return 0;
}

/* 0: go on; 1: help was asked for; 2: wrong. */
static int arguments(command *k, int argc, char **argv)
{
	static const struct option longs[] = {
		VN_REPORTING_OPTIONS,
		{ "ids", 1, NULL, IDS }, { "prompt", 1, NULL, PROMPT }, { "no-special-tokens", 0, NULL, NO_SPECIAL },
		{ "force-ids", 1, NULL, FORCE_IDS }, { "limits", 1, NULL, LIMITS }, { "points", 1, NULL, POINTS },
		{ "precision", 1, NULL, PRECISION }, { "reference-precision", 1, NULL, AS }, { "device", 1, NULL, DEVICE },
		{ "kv", 1, NULL, KV }, { "inject", 1, NULL, INJECT }, { "check", 1, NULL, CHECK }, { "check-recording", 1, NULL, RECORDING },
		{ "allow", 1, NULL, ALLOW }, { "threads", 1, NULL, THREADS }, { "help", 0, NULL, 'h' }, { 0 },
	};
	*k = (command) { .o = { .cand.device = -1, .recipe = { .first_layer = -1, .last_layer = -1 } } };
	const int st = vn_option_all(argc, argv, ":o:h", longs, read_option, k);
	return st ? st : check(k, argc, argv);
}

/* ---- the command ------------------------------------------------------------------ */

typedef struct shown {
	bool                   json;
	vn_repair_about        about;
	const vn_experiment   *x;
	const vn_repair       *r;
} shown;

static vn_status write_report(const void *context, FILE *out, vn_error *err)
{
	const shown *s = context;
	if (s->json)
		return vn_repair_json(&s->about, s->x, s->r, out, err);
	vn_repair_text(&s->about, s->x, s->r, out);
	return VN_OK;
}

static vn_status report(const command *k, const vn_experiment *x, const vn_repair *r, vn_error *err)
{
	const shown s = { .json = k->report.json, .x = x, .r = r,
	                  .about = { .model = k->model, .candidate = k->o.check ? k->o.check : "gpu", .precision = k->o.check ? NULL : k->precision,
	                             .tokens = k->o.recipe.n_ids + k->o.recipe.decode } };
	return vn_output_report(k->report.path, k->report.force, write_report, &s, err);
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
		if (vn_recorder_fault_find(k->inject[i]) >= 0)
			return vn_fail(err, VN_ERR_USAGE, "--inject: %s is a mistake of a recording, and isolate runs both sides itself", k->inject[i]);
		else if ((st = vn_faulty_inject(*f, k->inject[i], err)))
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

	if ((k->report.path && (st = vn_place_check(k->report.path, k->report.force, err))) ||
	    (k->o.recording && (st = vn_place_check(k->o.recording, k->report.force, err))) ||
	    (k->forced && (st = vn_read_ids("--force-ids", k->forced, &forced, &k->o.recipe.decode, err))) ||
	    (st = vn_model_open(k->model, &m, err)) || (st = make_faulty(k, m, &faulty, err)) ||
	    ((k->ids || k->prompt) && (st = vn_prompt_read(k->model, k->ids, k->prompt, !k->no_special, &text, err))))
		goto done;
	for (int i = 0; (warning = vn_model_warning(m, i)); i++)
		vn_warn("isolate", "%s", warning);
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
	command  k;
	vn_error err = { "" };
	bool     healthy = false;
	const int said = arguments(&k, argc, argv);

	if (said == 1)
		usage(stdout);
	if (said)
		return said == 1 ? 0 : 2;
	if (run(&k, &healthy, &err)) {
		fprintf(stderr, "vernier isolate: %s\n", err.text);
		return 2;
	}
	return vn_warnings_end("isolate", k.report.strict, healthy ? 0 : 1);
}
