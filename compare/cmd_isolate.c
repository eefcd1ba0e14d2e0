/* cmd_isolate.c: vernier isolate MODEL: which operations to replace to repair a run. */
#include "compare/commands.h"
#include "compare/options.h"
#include "capture/file/output.h"
#include "capture/file/reporting.h"
#include "compare/isolate/repair.h"

#include "capture/run/arguments.h"
#include "capture/run/interrupt.h"
#include "capture/run/recorder_fault.h"
#include "capture/file/place.h"
#include "capture/run/ids_from.h"
#include "capture/run/prompt.h"
#include "capture/base/warnings.h"
#include "libgpu/gpu.h"
#include "libref/base/glob.h"
#include "libref/base/say.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct settings {
	const char       *model, *forced, *forced_from, *precision, *as;
	vn_prompt_source  source;
	const char       *point[MOST], *precise[MOST], *inject[MOST];
	int               n_inject, kv; /* kv: -1: not given */
	vn_policy         as_policy;
	vn_runner_options o;
	vn_reporting      report;
	vn_lines          notes; /* what the user's settings gave */
} settings;

#define complain(...) vn_complain("isolate", __VA_ARGS__)

static vn_option_taker take_precision;

static const char *const gpu_policies = VN_GPU_POLICIES;

static const vn_option options[] = {
	VN_GROUP("What to run"),
	{ "prompt", 0, VN_INTO(settings, source.text), .argument = "TEXT|@FILE",
	  .help = "Run this text, or the contents of a file or pipe, as for vernier capture." },
	VN_NO_SPECIAL_OPTION(settings, source.no_special, "prompt"),
	VN_IDS_OPTIONS(settings, source),
	VN_FORCE_IDS_OPTIONS(settings, forced, forced_from, "", ""),
	VN_GROUP("What is good"),
	{ "limits", 0, VN_INTO(settings, o.limits), .argument = "FILE", .set_without = "",
	  .help =
	      "A run is good if it is within these limits, as vernier compare judges. Default: the shipped limits for the "
	      "candidate's precision." },
	{ "points", 0, VN_COLLECT(settings, point, o.recipe.n_patterns), .argument = "GLOB",
	  .help = "Judge only these checkpoints. Default: all." },
	{ "reference-precision", 0, VN_INTO(settings, as), .argument = "P", .words = &vn_policy_names,
	  .help = "Precision of the replaced operations and of the floor. Default: the run's own." },
	VN_GROUP("The GPU"),
	{ "precision", 0, .kind = VN_TAKE_EACH, .take = take_precision, .argument = "P", .words = &gpu_policies,
	  .help = "Precision of the GPU run. P@GLOB: of the operations that make these checkpoints. Default: f16." },
	VN_MTP_OPTION(settings, o.cand.mtp),
	VN_DEVICE_OPTION(settings, o.cand.device),
	VN_KV_OPTION(settings, kv),
	{ "inject", 0, VN_COLLECT(settings, inject, n_inject), .argument = "FAULT@GLOB",
	  .help =
	      "Make this fault in the GPU run, to see it found. Only faults that change neither the list of operations nor "
	      "their inputs can be used." },
	VN_GROUP("Another engine"),
	{ "check", 0, VN_INTO(settings, o.check), .argument = "CMD", .because = "runs another engine",
	  .not_with = "reference-precision|precision|inject|device|kv",
	  .help = "Test another engine instead of the GPU. For each set of operations to replace, sh runs CMD with their "
	          "names, separated by commas, in VERNIER_FORCE_REF. CMD must exit with 0 if its run is good and with 1 "
	          "if it is bad." },
	{ "check-recording", 0, VN_INTO(settings, o.recording), .argument = "FILE", .needs = "check",
	  .help =
	      "CMD writes this recording and exits with 0; the run is good if the recording is within the limits. FILE is "
	      "removed after each run." },
	VN_ALLOW_OPTION(settings, o.compare.allow, " the recording of CMD"),
	VN_GROUP("The report"),
	VN_THREADS_OPTION(settings, o.compare.threads),
	VN_REPORTING_OPTIONS(settings, report, ""),
	VN_REPORTING_FORCE(settings, report.force, "report, or the FILE of --check-recording"),
	VN_STRICT_OPTION(settings, report.strict, ""),
};

const vn_command vn_isolate_command = {
	.name = "isolate",
	.synopsis = "MODEL --ids LIST|--ids-from REC|--prompt TEXT [OPTION]...\nMODEL --check CMD [OPTION]...",
	.about = "Find the operations that must be replaced by the reference to bring a run back within its limits "
			 "(vernier help isolate.md). The candidate is the GPU, or any engine that a command drives. If "
			 "VERNIER_FORCE_REF is set, each of its globs (such as '*.{q,k}_rope') is tried first and is a row of "
			 "the report.",
	VN_OPTION_TABLE(options),
	.model = true,
	.tells = true,
	.examples = "vernier isolate MODEL --prompt @prompt.txt\n"
				"vernier isolate MODEL --ids 1,2 --check './same.sh'",
	.status = "0 nothing to isolate, 1 outside the limits, isolated or not (or a warning with --strict), 2 trouble",
};

static vn_status take_precision(void *to, const vn_option *option, const char *value, vn_error *err)
{
	settings *k = to;
	(void)option;
	return vn_take_precision(value, &k->precision, k->precise, &k->o.cand.n_precise, MOST, err);
}

/* Checks each GLOB of --points. Returns 0, or 2 after an error message. */
static int check_points(const settings *k)
{
	vn_error err;
	for (int i = 0; i < k->o.recipe.n_patterns; i++)
		if (vn_glob_check(k->point[i], &err))
			return complain("%s", err.text);
	return 0;
}

/* Checks each P of --precision P@GLOB. Returns 0, or 2 after an error message. */
static int check_precise(const settings *k)
{
	char      word[40];
	vn_policy policy;
	for (int i = 0; i < k->o.cand.n_precise; i++) {
		snprintf(word, sizeof word, "%.*s", (int)strcspn(k->precise[i], "@"), k->precise[i]);
		if (vn_option_policy("isolate", "precision", gpu_policies, word, &policy))
			return 2;
	}
	return 0;
}

/* Checks the options against each other. */
static int check_options(settings *k, int argc, char **argv)
{
	vn_error err;

	if (check_points(k) || vn_option_model("isolate", argc, argv, &k->model))
		return 2;
	if (k->o.check && !k->o.recording && vn_option_origin("limits"))
		k->o.limits = NULL;
	if (k->o.check && !k->o.recording && k->o.limits)
		return complain("--limits needs --check-recording: without it, the exit status of CMD is the verdict");
	if ((!k->o.check || k->o.recording) && vn_prompt_check(&k->source, &err))
		return complain("%s", err.text);
	if (!k->precision)
		k->precision = "f16";
	if (check_precise(k) || vn_option_policy("isolate", "precision", gpu_policies, k->precision, &k->o.cand.policy) ||
	    (k->as && vn_option_policy("isolate", "reference-precision", vn_policy_names, k->as, &k->as_policy)))
		return 2;
	k->o.as = k->as ? &k->as_policy : NULL;
	k->o.cand.gpu = k->o.cand.quiet = true;
	k->o.cand.precise = k->precise;
	k->o.cand.paged = k->kv == VN_KV_PAGED;
	k->o.cand.threads = k->o.compare.threads;
	k->o.recipe.pattern = k->point;
	vn_options_notes((const char *const[][2]) { { "MODEL", k->model }, { "--limits", k->o.limits } }, 2, &k->notes);
	return 0;
}

/* 0: go on; 1: help was asked for; 2: wrong. */
static int parse_arguments(settings *k, int argc, char **argv)
{
	*k = (settings) { .kv = -1,
		              .source.row = -1,
		              .report.format = VN_FORM_UNSAID,
		              .o = { .cand.device = -1, .recipe = { .first_layer = -1, .last_layer = -1 } } };
	const int st = vn_options_read(&vn_isolate_command, argc, argv, k);
	return st ? st : vn_reporting_choose("isolate", &k->report) ? 2 : check_options(k, argc, argv);
}

/* ---- the command ------------------------------------------------------------------ */

/* The options with which `capture` repeats this GPU run. */
static void say_gpu(const settings *k, char line[VN_SHELL_LINE])
{
	vn_shell_begin(line);
	vn_shell_option(line, "--precision", k->precision);
	for (int i = 0; i < k->o.cand.n_precise; i++)
		vn_shell_option(line, "--precision", k->precise[i]);
	for (int i = 0; i < k->n_inject; i++)
		vn_shell_option(line, "--inject", k->inject[i]);
	if (k->kv == VN_KV_PAGED)
		vn_shell_option(line, "--kv", "paged");
	vn_shell_end(line);
}

static vn_status print_report(const settings *k, const vn_runner *x, const vn_repair *r, vn_error *err)
{
	char      source[VN_SHELL_LINE] = "", gpu[VN_SHELL_LINE];
	vn_output out;

	if (!k->o.check && !k->forced && !k->forced_from)
		vn_options_say_source(&k->source, source);
	say_gpu(k, gpu);
	const vn_repair_about about = { .model = k->model,
		                            .weights = vn_model_provenance(k->o.model),
		                            .candidate = k->o.check ? k->o.check : "gpu",
		                            .precision = k->o.check ? NULL : k->precision,
		                            .tokens = k->o.recipe.n_ids + k->o.recipe.decode,
		                            .source = source,
		                            .gpu = gpu,
		                            .notes = &k->notes };
	vn_status             st = vn_output_open(&out, k->report.path, VN_PLACE_REPORT, k->report.force, err);
	if (!st) {
		if (k->report.json)
			st = vn_repair_json(&about, x, r, out.file, err);
		else
			vn_repair_text(&about, x, r, out.file);
		st = vn_output_close(&out, st, err);
	}
	if (!st && k->report.path)
		vn_say(stdout, "%s. Written: %s\n",
		       r->found.good    ? "The run is good: nothing to isolate"
		       : r->found.helps ? "The run is bad; isolated"
		                        : "The run is bad; not isolated",
		       k->report.path);
	return st;
}

static vn_status isolate_cause(settings *k, bool *good, vn_error *err)
{
	VN_ENDS(vn_runner_close) vn_runner  x = { 0 };
	VN_ENDS(vn_repair_finish) vn_repair r = { 0 };
	vn_status                           st = vn_runner_open(&x, &k->o, err);

	if (!st && !(st = vn_repair_find(&x, getenv("VERNIER_FORCE_REF"), &r, err)))
		st = print_report(k, &x, &r, err);
	*good = r.found.good;
	return st;
}

/* Makes a faulty copy of the model for the GPU. Replaced operations use the unmodified model. */
static vn_status make_faulty(settings *k, const vn_model *m, vn_faulty **f, vn_error *err)
{
	vn_status st = k->n_inject ? vn_faulty_create(vn_model_plan(m), vn_model_weights(m), f, err) : VN_OK;

	for (int i = 0; i < k->n_inject && !st; i++)
		if (vn_recorder_fault_find(k->inject[i]) >= 0)
			return vn_fail(err, VN_ERR_USAGE, "--inject: %s is a mistake of the recording, but isolate records nothing",
			               k->inject[i]);
		else if ((st = vn_faulty_inject(*f, k->inject[i], err)))
			return vn_context(err, st, "--inject");
	if (!st && *f && !vn_faulty_keeps_nodes(*f))
		return vn_fail(
			err, VN_ERR_UNSUPPORTED,
			"--inject: a fault that adds operations or changes their inputs cannot be combined with the correct "
			"reference");
	k->o.cand.faulty = *f;
	return st;
}

static vn_status run_isolate(settings *k, bool *good, vn_error *err)
{
	VN_ENDS(vn_prompt_finish) vn_prompt text = { 0 };
	VN_FREED int32_t                   *forced = NULL;
	vn_model                           *m = NULL;
	vn_faulty                          *faulty = NULL;
	vn_status                           st;

	if ((k->report.path && (st = vn_place_check(k->report.path, VN_PLACE_REPORT, k->report.force, err))) ||
	    (k->o.recording && (st = vn_place_check(k->o.recording, VN_PLACE_RECORDING, k->report.force, err))) ||
	    (st = vn_ids_kept("--ids-from", k->o.recording, k->source.recording, err)) ||
	    (st = vn_ids_kept("--force-ids-from", k->o.recording, k->forced_from, err)) ||
	    (k->forced && (st = vn_arguments_read_ids("--force-ids", k->forced, &forced, &k->o.recipe.decode, err))) ||
	    (k->forced_from && (st = vn_ids_from(&(vn_ids_source) { "--force-ids-from", k->forced_from, k->source.row },
	                                         VN_IDS_DECODED, &forced, &k->o.recipe.decode, err))) ||
	    /* the GPU copies every expert */
	    (st = vn_model_open_as(k->model, vn_model_with(k->o.cand.mtp) | (k->o.check ? VN_MODEL_MAPPED : 0), &m, err)) ||
	    (st = make_faulty(k, m, &faulty, err)) ||
	    ((k->source.list || k->source.recording || k->source.text) &&
	     (st = vn_prompt_read(k->model, &k->source, &text, err))))
		goto done;
	vn_prompt_warn("isolate", m, NULL);
	k->o.model = m;
	k->o.recipe.ids = text.ids;
	k->o.recipe.n_ids = text.n;
	k->o.recipe.forced = forced;
	vn_interrupt_catch();
	st = isolate_cause(k, good, err);
done:
	vn_faulty_destroy(faulty);
	vn_model_close(m);
	return st;
}

int cmd_isolate(int argc, char **argv)
{
	settings  k;
	vn_error  err = { "" };
	bool      good = false;
	const int said = parse_arguments(&k, argc, argv);

	if (said)
		return said == 1 ? 0 : 2;
	const vn_status st = run_isolate(&k, &good, &err);
	if (st) {
		vn_say(stderr, "vernier isolate: %s\n", err.text);
		vn_options_print_notes("isolate", &k.notes);
	}
	vn_lines_free(&k.notes);
	return st ? 2 : vn_warnings_end("isolate", k.report.strict, good ? 0 : 1);
}
