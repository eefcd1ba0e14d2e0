/* cmd_evaluate.c: vernier evaluate: a text through the reference and the engine under test, or the
 * recordings that two engines made of one text. */
#include "compare/commands.h"
#include "compare/evaluate/evaluate_report.h"
#include "compare/evaluate/recorded_text.h"
#include "compare/match/folders.h"
#include "compare/options.h"
#include "capture/file/output.h"
#include "capture/file/reporting.h"

#include "capture/recording/garbage.h"
#include "capture/recording/verify.h"
#include "capture/run/hybrid.h"
#include "capture/run/interrupt.h"
#include "capture/run/prompt.h"
#include "capture/base/warnings.h"
#include "libref/base/alloc.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW_DEFAULT = 512, DECODE_DEFAULT = 64, MOST_FAULTS = 16, MOST_CANDIDATES = 16 };
enum { MOST_RECORDED = 2048 }; /* tokens of a text that the report proposes to record whole */

typedef struct settings {
	const char         *model, *text, *precision;
	vn_prompt_source    source; /* without the text */
	int                 candidate;
	bool                no_special, recordings, mtp;
	int64_t             window, stride; /* 0: not given */
	const char         *inject[MOST_FAULTS];
	int                 n_inject;
	char                injected[VN_FACT_VALUE]; /* all of them */
	char *const        *file;                    /* --recordings: the reference, then n_files - 1 candidates */
	int                 n_files;
	vn_engine_options   cand;
	vn_evaluate_options o;
	vn_reporting        report;
	vn_lines            notes; /* what the user's settings gave */
} settings;

#define complain(...) vn_complain("evaluate", __VA_ARGS__)

enum { UNSAID = -1, GPU, REF };
_Static_assert(WINDOW_DEFAULT == 512 && DECODE_DEFAULT == 64, "as the help says");

static const vn_option options[] = {
	VN_GROUP("The text"),
	{ "text", 0, VN_INTO(settings, text), .argument = "FILE",
	  .help =
	      "The file with the text, which the model's tokenizer splits (@FILE is the same). This, --ids or --ids-from "
	      "is required." },
	VN_NO_SPECIAL_OPTION(settings, no_special, "text"),
	VN_IDS_OPTIONS(settings, source),
	{ "window", 0, VN_INTO(settings, window), VN_RANGE(2, INT32_MAX), .argument = "N",
	  .help = "Tokens per window. Default: 512, or the model's context if that is smaller." },
	{ "stride", 0, VN_INTO(settings, stride), VN_RANGE(1, INT32_MAX), .argument = "N",
	  .help = "Tokens from one window to the next. A window scores only tokens that no earlier window scored. Default: "
	          "half a window." },
	{ "decode", 0, VN_INTO(settings, o.decode), VN_RANGE(0, INT32_MAX), .argument = "N",
	  .help = "Decode greedily after the first half window, until the two engines differ or for N steps. Default: 64. "
	          "0: do not decode." },
	VN_GROUP("Recorded logits"),
	{ "recordings", 0, VN_INTO(settings, recordings), .because = "runs no model",
	  .not_with =
	      "text|ids|ids-from|batch-row|no-special-tokens|window|decode|candidate|precision|inject|replay-routing"
	      "|mtp|device",
	  .help = "Run no model: REF and each CAND are recordings of logits (the point logits) by any engine, or folders "
	          "of such recordings. Files of two folders are paired by name. Each pair is a text of its own; with "
	          "--stride N the files, in the order of their names, are windows of one text that begin N tokens apart." },
	VN_GROUP("The engine under test"),
	{ "candidate", 0, VN_CHOOSE(settings, candidate), .argument = "gpu|ref",
	  .help = "The engine under test. ref is the reference in another precision, which shows the effect of the number "
	          "format alone. Default: gpu." },
	{ "precision", 0, VN_INTO(settings, precision), .argument = "P", .words = &vn_policy_names,
	  .help =
	      "Precision of the candidate; the GPU has f16, f16-acc16 and f32. The reference is float32. Default: f16." },
	{ "inject", 0, VN_COLLECT(settings, inject, n_inject), .argument = "FAULT@GLOB",
	  .help = "Make this fault in the candidate, to see what it costs in perplexity. vernier points --faults lists the "
	          "faults." },
	VN_MTP_OPTION(settings, mtp),
	VN_DEVICE_OPTION(settings, cand.device),
	VN_THREADS_OPTION(settings, o.threads),
	{ "replay-routing", 0, VN_INTO(settings, o.replay_routing),
	  .help = "Also run the reference with the experts and weights that the candidate chose: how much of the gap is "
	          "routing, and how much arithmetic." },
	VN_GROUP("The report"),
	VN_REPORTING_OPTIONS(settings, report, ""),
	VN_REPORTING_FORCE(settings, report.force, "report"),
	VN_STRICT_OPTION(settings, report.strict, ""),
};

const vn_command vn_evaluate_command = {
	.name = "evaluate",
	.synopsis =
		"MODEL --text FILE|--ids LIST|--ids-from REC [OPTION]...\n--recordings REF CAND... [--stride N] [OPTION]...",
	.about =
		"Run a text through the reference and through the engine under test: the perplexity of both, how often both "
		"choose the same next token, the "
		"divergence of their distributions, and how long they agree in greedy decoding (vernier help evaluate.md).\n"
		"With --recordings, all of this except decoding, from logits that two engines recorded.",
	VN_OPTION_TABLE(options),
	.model = true,
	.tells = true,
	.examples = "vernier evaluate MODEL --text wiki.txt\n"
				"vernier evaluate --recordings q8.h5 q4.h5",
	.status = "0 done, 1 done with a warning (--strict), 2 trouble",
};

/* Name of the file that holds the ids, for the report. */
static const char *name_of_ids(const vn_prompt_source *from)
{
	return from->recording ? from->recording : from->list[0] == '@' ? from->list + 1 : "--ids";
}

static int check_recordings(settings *k, int argc, char **argv)
{
	if (argc - optind < 2)
		return complain("--recordings needs a reference and at least one candidate; %d given", argc - optind);
	if (argc - optind > 1 + MOST_CANDIDATES)
		return complain("at most %d candidates, not %d", MOST_CANDIDATES, argc - optind - 1);
	k->file = argv + optind;
	k->n_files = argc - optind;
	for (int i = 0; i < k->n_files; i++)
		if (vn_is_model(k->file[i]))
			return complain("--recordings runs no model, and %s is one: give only the recordings, REF CAND...",
			                k->file[i]);
	for (int i = 1; i < k->n_files; i++)
		if (vn_options_check_folders("evaluate", k->file[0], k->file[i], ""))
			return 2;
	return 0;
}

static bool is_recording(int argc, char **argv)
{
	const char *dot = optind < argc ? strrchr(argv[optind], '.') : NULL;
	return dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0);
}

/* Checks the options against each other. */
static int check_options(settings *k, int argc, char **argv)
{
	if (k->recordings)
		return check_recordings(k, argc, argv);
	if (k->o.decode == UNSAID)
		k->o.decode = DECODE_DEFAULT;
	if (k->candidate == UNSAID)
		k->candidate = GPU;
	if (is_recording(argc, argv))
		return complain("%s is a recording: give a model, or --recordings REF CAND to judge recorded logits",
		                argv[optind]);
	if (argc - optind > 1)
		return complain("unexpected '%s': one model is evaluated; for two, record the logits of each on one text "
		                "(vernier capture ref MODEL --points logits), then vernier evaluate --recordings A.h5 B.h5",
		                argv[optind + 1]);
	if (vn_option_model("evaluate", argc, argv, &k->model))
		return 2;
	if (!k->source.list && !k->source.recording && !k->text)
		return complain("--text FILE, --ids LIST or --ids-from REC is needed: the text to evaluate");
	if (k->text && k->text[0] == '@') /* as behind --prompt */
		k->text++;
	if (k->text && access(k->text, F_OK) != 0 && errno == ENOENT)
		return complain("--text '%s': no such file; write the text to a file, and name that", k->text);
	if (k->candidate == REF && k->cand.device >= 0)
		return complain("--device is for the gpu engine");
	if (!k->precision)
		k->precision = "f16";
	if (vn_option_policy("evaluate", "precision", vn_policy_names, k->precision, &k->cand.policy))
		return 2;
	vn_options_notes((const char *const[][2]) { { "MODEL", k->model } }, 1, &k->notes);
	k->cand.gpu = k->candidate == GPU;
	k->cand.threads = k->o.threads;
	return 0;
}

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int parse_arguments(settings *k, int argc, char **argv)
{
	*k = (settings) { .o.decode = UNSAID,
		              .candidate = UNSAID,
		              .cand.device = UNSAID,
		              .source.row = UNSAID,
		              .report.format = VN_FORM_UNSAID };
	const int st = vn_options_read(&vn_evaluate_command, argc, argv, k);
	return st ? st : vn_reporting_choose("evaluate", &k->report) ? 2 : check_options(k, argc, argv);
}

/* Prints warnings to stderr, unless the text on stdout shows them. */
static void print_warnings(const settings *k, const vn_evaluated *x)
{
	VN_ENDS(vn_lines_free) vn_lines lines = { 0 };
	vn_evaluate_warnings(x, &lines);
	for (int i = 0; i < lines.n; i++)
		if (k->report.path || k->report.json)
			vn_warn("evaluate", "%s", lines.line[i]);
		else
			vn_warned("%s", lines.line[i]);
}

static vn_status print_report(const settings *k, const vn_evaluated *x, int n, vn_error *err)
{
	vn_output out;
	vn_status st = vn_output_open(&out, k->report.path, VN_PLACE_REPORT, k->report.force, err);

	if (!st) {
		if (k->report.json)
			st = vn_evaluate_json(x, n, out.file, err);
		else
			vn_evaluate_text(x, n, out.file);
		st = vn_output_close(&out, st, err);
	}
	for (int i = 0; i < n && !st && k->report.path; i++)
		vn_say(stdout, "perplexity %.7g, of the reference %.7g (%+.3g %%).%s%s\n", x[i].e->perplexity[1],
		       x[i].e->perplexity[0], 100 * expm1(x[i].e->gap.mean), i == n - 1 ? " Written: " : "",
		       i == n - 1 ? k->report.path : "");
	for (int i = 0; i < n; i++)
		print_warnings(k, &x[i]);
	return st;
}

/* ---- a model ------------------------------------------------------------------------- */

/* Makes the faulty copy of the model for the candidate only. */
static vn_status make_faulty(settings *k, const vn_model *m, vn_faulty **f, vn_error *err)
{
	size_t    at = 0;
	vn_status st = k->n_inject ? vn_faulty_create(vn_model_plan(m), vn_model_weights(m), f, err) : VN_OK;

	for (int i = 0; !st && i < k->n_inject; i++) {
		st = vn_faulty_inject(*f, k->inject[i], err);
		at += (size_t)snprintf(k->injected + at, sizeof k->injected - at, "%s%s", i ? " " : "", k->inject[i]);
		if (!st && at >= sizeof k->injected)
			st = vn_fail(err, VN_ERR_USAGE, "all faults together can have at most %zu characters",
			             sizeof k->injected - 1);
	}
	k->cand.faulty = *f;
	return st ? vn_context(err, st, "--inject") : VN_OK;
}

/* The options of vernier capture that select the text. A pipe cannot be read again. */
static void say_tokens(const settings *k, char line[VN_SHELL_LINE])
{
	char from[PATH_MAX + 1];

	if (!k->text)
		vn_options_say_source(&k->source, line);
	else if (strncmp(k->text, "/dev/", 5) != 0 && snprintf(from, sizeof from, "@%s", k->text) < (int)sizeof from)
		vn_options_say_source(&(vn_prompt_source) { .text = from, .no_special = k->no_special, .row = UNSAID }, line);
}

/* The options of vernier capture that run the candidate again. "" if they are too long. */
static void say_candidate(const settings *k, char line[VN_SHELL_LINE])
{
	char device[16];

	vn_shell_begin(line);
	vn_shell_option(line, "--precision", k->precision);
	for (int i = 0; i < k->n_inject; i++)
		vn_shell_option(line, "--inject", k->inject[i]);
	snprintf(device, sizeof device, "%d", k->cand.device);
	if (k->cand.device >= 0)
		vn_shell_option(line, "--device", device);
	vn_shell_end(line);
}

/* Runs both engines over the text. */
static vn_status evaluate_engines(settings *k, const vn_model *m, const vn_tokenizer *tokenizer, vn_error *err)
{
	const vn_engine_options ro = { .policy = { VN_F32, VN_F32, 0, { 0 } }, .threads = k->o.threads, .device = -1 };
	vn_engine               engine[2] = { { 0 } };
	vn_evaluation           e;
	char                    source[VN_SHELL_LINE] = "", how[VN_SHELL_LINE];
	vn_evaluated            x = { .source = source,
		                          .runs_on = k->candidate == GPU ? "gpu" : "ref",
		                          .run_options = how,
		                          .model = vn_model_path(m),
		                          .weights = { vn_model_provenance(m), vn_model_provenance(m) },
		                          .format = { vn_model_format(m), vn_model_format(m) },
		                          .text = k->text ? k->text : name_of_ids(&k->source),
		                          .tokenizer = tokenizer,
		                          .notes = &k->notes,
		                          .o = &k->o,
		                          .e = &e };
	vn_faulty              *faulty = NULL;
	vn_status               st;

	if (!(st = make_faulty(k, m, &faulty, err)) && !(st = vn_engine_open(&engine[0], m, &ro, err)) &&
	    !(st = vn_engine_open(&engine[1], m, &k->cand, err)) &&
	    !(st = vn_evaluate(&k->o, vn_model_plan(m), &engine[0], &engine[1], &e, err))) {
		if (k->o.n <= MOST_RECORDED && k->o.n <= vn_model_plan(m)->context)
			say_tokens(k, source);
		if (k->mtp && *source)
			vn_text_add(source, sizeof source, " --mtp");
		say_candidate(k, how);
		for (int s = 0; s < 2; s++)
			engine[s].ops->facts(engine[s].self, &x.engine[s]);
		x.injected = k->n_inject ? k->injected : NULL;
		st = print_report(k, &x, 1, err);
	}
	vn_engine_close(&engine[1]);
	vn_engine_close(&engine[0]);
	vn_faulty_destroy(faulty);
	return st;
}

static vn_status run_model(settings *k, vn_error *err)
{
	/* the GPU reads all experts, and a fault may change some */
	const bool mapped = k->candidate != GPU && !k->n_inject;
	vn_model  *m = NULL;
	vn_prompt  text = { 0 };
	vn_status  st;

	if ((k->report.path && (st = vn_place_check(k->report.path, VN_PLACE_REPORT, k->report.force, err))) ||
	    (st = vn_model_open_as(k->model, vn_model_with(k->mtp) | (mapped ? VN_MODEL_MAPPED : 0), &m, err)) ||
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
		st = evaluate_engines(k, m, text.tokenizer, err);
	}
done:
	vn_model_close(m);
	vn_prompt_finish(&text);
	return st;
}

/* ---- recordings ------------------------------------------------------------------------ */

enum { WEIGHTS_FORMAT = 160 }; /* "gguf Q4_K, Q6_K, F32" */

typedef struct recorded_report {
	vn_recorded_text text;
	vn_facts         facts[2]; /* of the first pair */
	char             weights[2][VN_WORD_MAX], format[2][WEIGHTS_FORMAT];
	vn_evaluation    e;
	vn_lines         garbage; /* what the candidate chooses, if it looks like no text */
	bool             shows[VN_N_GARBAGE_SIGNS];
} recorded_report;

/* If many windows show a sign, the first is named. A window that cannot be read fails elsewhere. */
static vn_status look_for_garbage(vn_recording *const r[2], recorded_report *x, vn_error *err)
{
	vn_garbage g[2];
	vn_error   why = { "" };
	char       words[VN_GARBAGE_WORDS];
	vn_status  st = VN_OK;

	if (strcmp(vn_recording_provenance(r[0]), "synthetic") == 0)
		return VN_OK;
	for (int s = 0; s < 2 && !st; s++)
		st = vn_garbage_of(r[s], &g[s], &why);
	if (st)
		return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
	for (vn_garbage_sign i = 0; i < VN_N_GARBAGE_SIGNS; i++)
		if (!x->shows[i] && (x->shows[i] = vn_garbage_shows(&g[1], &g[0], i, words)))
			vn_lines_add(&x->garbage, "%s: the candidate's %s", vn_recording_path(r[1]), words);
	return VN_OK;
}

static vn_status add_pair(const settings *k, const char *ref, const char *cand, recorded_report *x, vn_error *err)
{
	const char   *path[2] = { ref, cand };
	vn_recording *r[2] = { NULL };
	vn_status     st;

	if (vn_same_file(ref, cand))
		return vn_fail(err, VN_ERR_USAGE, "%s is given as reference and as candidate", ref);
	if ((st = vn_recording_open_all(path, 2, r, err)))
		return st;
	for (int s = 0; s < 2 && x->text.windows == 0; s++) {
		x->facts[s] = *vn_recording_run(r[s]);
		const char *format = vn_recording_format(r[s]);
		snprintf(x->weights[s], sizeof x->weights[s], "%s", vn_recording_provenance(r[s]));
		snprintf(x->format[s], sizeof x->format[s], "%s", format ? format : "");
	}
	st = vn_recorded_text_add(&x->text, r[0], r[1], k->stride, k->o.threads, err);
	if (!st && !(st = look_for_garbage(r, x, err)) && !(st = vn_recording_verify(r[0], err)))
		st = vn_recording_verify(r[1], err);
	vn_recording_close(r[1]);
	vn_recording_close(r[0]);
	return st;
}

static vn_status add_folders(const settings *k, const char *ref, const char *cand, recorded_report *x, vn_error *err)
{
	VN_ENDS(vn_folder_pairs_free) vn_folder_pairs p = { 0 };
	char                                          path[2][PATH_MAX];
	vn_status                                     st = vn_folder_pairs_of((const char *[]) { ref, cand }, 2, &p, err);

	if (!st)
		vn_folder_pairs_by_number(&p);
	for (int i = 0; i < p.n && !st; i++) {
		for (int s = 0; s < 2 && !st; s++)
			if (!p.pair[i].there[s])
				st = vn_fail(err, VN_ERR_MISMATCH, "%s holds no %s, which %s holds", s ? cand : ref, p.pair[i].name,
				             s ? ref : cand);
			else if (snprintf(path[s], PATH_MAX, "%s/%s", s ? cand : ref, p.pair[i].name) >= PATH_MAX)
				st = vn_fail(err, VN_ERR_USAGE, "%s/%s: the path is too long", s ? cand : ref, p.pair[i].name);
		st = st                 ? st
		     : vn_interrupted() ? vn_fail(err, VN_ERR_INTERRUPTED, "interrupted")
		                        : add_pair(k, path[0], path[1], x, err);
	}
	return st;
}

static vn_status evaluate_recorded(const settings *k, const char *cand, recorded_report *x, vn_error *err)
{
	const char *ref = k->file[0];
	vn_status   st;

	if ((st = vn_match_is_folder(ref) ? add_folders(k, ref, cand, x, err) : add_pair(k, ref, cand, x, err)))
		return st;
	if (x->text.m == 0)
		return vn_fail(err, VN_ERR_MISMATCH, "%s and %s: no token has logits before it on both sides", ref, cand);
	x->e = (vn_evaluation) { .tokens = x->text.n, .windows = x->text.windows, .vocab = x->text.vocab, .part_at = -1 };
	vn_evaluate_sum(x->text.ids, x->text.score, x->text.m, &x->e);
	return VN_OK;
}

static vn_status run_recordings(settings *k, vn_error *err)
{
	const int                 n = k->n_files - 1;
	VN_FREED recorded_report *x = vn_alloc_zero((size_t)n, sizeof *x);
	VN_FREED vn_evaluated    *about = vn_alloc_zero((size_t)n, sizeof *about);
	vn_evaluate_options       o = { .stride = k->stride };
	vn_status                 st = VN_OK;

	if (k->report.path)
		st = vn_place_check(k->report.path, VN_PLACE_REPORT, k->report.force, err);
	for (int i = 0; !st && i < k->n_files; i++)
		if (k->report.path && vn_same_file(k->report.path, k->file[i]))
			st = vn_fail(err, VN_ERR_USAGE, "%s: is an input of this evaluation; the report cannot replace it",
			             k->report.path);
	vn_interrupt_catch();
	for (int i = 0; !st && i < n; i++) {
		st = evaluate_recorded(k, k->file[i + 1], &x[i], err);
		vn_recorded_text *t = &x[i].text;
		o.window = t->longest > o.window ? t->longest : o.window;
		about[i] = (vn_evaluated) { .recorded = { k->file[0], k->file[i + 1] },
			                        .unscored = t->unscored,
			                        .weights = { x[i].weights[0], x[i].weights[1] },
			                        .format = { x[i].format[0], x[i].format[1] },
			                        .source = "",
			                        .o = &o,
			                        .e = &x[i].e,
			                        .garbage = &x[i].garbage };
		for (int s = 0; s < 2; s++)
			about[i].engine[s] = x[i].facts[s];
		vn_recorded_text_free(t);
	}
	st = st ? st : print_report(k, about, n, err);
	for (int i = 0; i < n; i++)
		vn_lines_free(&x[i].garbage);
	return st;
}

int cmd_evaluate(int argc, char **argv)
{
	settings  k;
	vn_error  err = { "" };
	const int said = parse_arguments(&k, argc, argv);

	if (said)
		return said == 1 ? 0 : 2;
	const vn_status st = k.recordings ? run_recordings(&k, &err) : run_model(&k, &err);
	const int       status = vn_command_end("evaluate", st, &err, k.report.strict, 0);
	if (st)
		vn_options_print_notes("evaluate", &k.notes);
	vn_lines_free(&k.notes);
	return status;
}
