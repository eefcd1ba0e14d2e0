/* cmd_weights.c: vernier weights A B: which weights of two models or recordings differ, and how. */
#include "compare/text/json.h"
#include "compare/text/runs.h"
#include "compare/weights/weights.h"
#include "compare/commands.h"

#include "compare/options.h"
#include "compare/weights/weights_report.h"
#include "compare/weights/weights_side.h"

#include "capture/base/warnings.h"
#include "capture/file/output.h"
#include "capture/file/reporting.h"
#include "capture/recording/recording.h"
#include "libref/base/alloc.h"
#include "libref/base/json.h"
#include "libref/base/say.h"
#include "libref/base/shell.h"

#include <stdlib.h>
#include <string.h>

#define complain(...) vn_complain("weights", __VA_ARGS__)

typedef struct settings {
	const char  *path[2], *model;
	int          threads;
	vn_reporting report;
} settings;

static const vn_option options[] = {
	{ "model", 0, VN_INTO(settings, model), .argument = "MODEL",
	  .help =
	      "For recordings: the model of one of them. Its numbers decide where the tables of weights cannot. Default: "
	      "only the tables are used." },
	VN_REPORTING_OPTIONS(settings, report, " JSON has the schema vernier-weights/2."),
	VN_REPORTING_FORCE(settings, report.force, "report"),
	VN_STRICT_OPTION(settings, report.strict, ""),
	VN_THREADS_OPTION(settings, threads),
};

const vn_command vn_weights_command = {
	.name = "weights",
	.synopsis = "A B [OPTION]...",
	.about =
		"List the weights that differ between A, the reference, and B, and how: missing, never loaded, transposed, "
		"permuted for RoPE, taken from another "
		"layer, truncated, quantised, another revision (vernier help weights.md).\n"
		"A and B are recordings, or models: a directory with config.json and *.safetensors, or a GGUF file.",
	VN_OPTION_TABLE(options),
	.examples = "vernier weights MODEL other.gguf\n"
				"vernier weights MODEL cand.h5",
	.status = "0 the same weights, 1 some differ (or a warning with --strict), 2 trouble",
};

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int parse_arguments(settings *k, int argc, char **argv)
{
	const int st = vn_options_read(&vn_weights_command, argc, argv, k);
	if (st)
		return st;
	if (argc - optind != 2)
		return complain("two recordings or models are needed; %d given", argc - optind);
	k->path[0] = argv[optind];
	k->path[1] = argv[optind + 1];
	return vn_reporting_choose("weights", &k->report);
}

/* Takes numbers from the model's files for a side without numbers, if the files hold that side's
 * weights. */
static vn_status take_numbers(const settings *k, const vn_model *m, vn_opened_weights w[2], vn_tensor *numbers[2],
                              vn_error *err)
{
	bool any = false;

	for (int s = 0; s < 2; s++) {
		if (w[s].side.numbers)
			continue;
		w[s].side.numbers = numbers[s] = vn_weights_numbers(w[s].side.row, w[s].side.n, m, k->threads);
		any = any || numbers[s];
		if (!w[s].side.plan)
			w[s].side.plan = vn_model_plan(m);
	}
	return any ? VN_OK
	           : vn_fail(err, VN_ERR_MISMATCH, "%s: holds no weight of %s or %s", k->model, k->path[0], k->path[1]);
}

/* Does compare accept these two recordings? They must be of one family and of the same tokens. */
static bool are_comparable(const vn_recording *a, const vn_recording *b)
{
	const int32_t *ids[2], *positions;
	const char    *family[] = { vn_recording_family(a), vn_recording_family(b) };
	const int64_t  n = vn_recording_tokens(a, &ids[0], &positions);
	return (!family[0] || !family[1] || strcmp(family[0], family[1]) == 0) &&
	       n == vn_recording_tokens(b, &ids[1], &positions) &&
	       (n <= 0 || memcmp(ids[0], ids[1], (size_t)n * sizeof **ids) == 0);
}

/* Proposes the command that shows what the differences do to a run: it records a side that is a
 * model, with the tokens of the other side if that is a recording, and compares both. */
static void suggest_commands(const settings *k, const vn_opened_weights w[2], vn_lines *next)
{
	char        to[2][VN_SHELL_FILE] = { "reference.h5", "candidate.h5" };
	const char *made[2];

	if (w[0].recording && w[1].recording && !are_comparable(w[0].recording, w[1].recording))
		return;
	for (int i = 0; i < 2; i++) {
		vn_shell_new_file(to[i], sizeof to[i]);
		made[i] = w[i].recording ? k->path[i] : to[i];
	}
	for (int i = 0; i < 2; i++) {
		const bool first = i == 0 && !w[1].recording;
		const bool forced = w[!i].recording && vn_recording_decoded(w[!i].recording);
		if (!w[i].recording)
			vn_runs_add(next, "vernier", "capture", "ref", k->path[i], first ? "--ids" : "--ids-from",
			            first ? "1,2,3,4,5,6,7,8" : made[!i], forced ? "--force-ids-from" : NULL,
			            forced ? made[!i] : NULL, "-o", made[i]);
	}
	vn_runs_add(next, "vernier", "compare", made[0], made[1], "--allow", "weights");
}

static vn_status put_json(const settings *k, const vn_weights *w, const vn_opened_weights of[2], FILE *out,
                          vn_error *err)
{
	vn_lines next = { 0 };
	json_t  *j = vn_weights_json(w);
	json_object_set_new(j, "schema", json_string("vernier-weights/2"));
	if (w->n_found)
		suggest_commands(k, of, &next);
	json_object_set_new(j, "next", vn_json_lines(&next));
	vn_lines_free(&next);
	json_object_set_new(j, "paths", json_pack("[s, s]", k->path[0], k->path[1]));
	const bool good = vn_json_print(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
	json_decref(j);
	fputc('\n', out);
	return good ? VN_OK : vn_fail(err, VN_ERR_IO, "the JSON report could not be written");
}

static void put_text(const vn_weights *w, FILE *out)
{
	VN_OWNED json_t *j = vn_alloc_check(vn_weights_rows(w));

	vn_weights_text(j, 0, out);
}

static vn_status print_report(const settings *k, const vn_weights *w, const vn_opened_weights of[2], vn_error *err)
{
	char      summary[VN_WEIGHT_WORDS];
	vn_output out;
	vn_status st = vn_output_open(&out, k->report.path, VN_PLACE_REPORT, k->report.force, err);

	if (!st) {
		if (k->report.json)
			st = put_json(k, w, of, out.file, err);
		else
			put_text(w, out.file);
		st = vn_output_close(&out, st, err);
	}
	if (!st && k->report.path)
		vn_say(stdout, "weights: %s. Written: %s\n", vn_weights_summary(w, summary), k->report.path);
	return st;
}

int cmd_weights(int argc, char **argv)
{
	settings          k = { .report.format = VN_FORM_UNSAID };
	vn_opened_weights w[2] = { { .source = NULL } };
	vn_tensor        *numbers[2] = { NULL };
	vn_model         *model = NULL;
	vn_weights       *found = NULL;
	vn_lines          notes = { 0 };
	vn_error          err = { "" };
	bool              mtp = false;
	vn_status         st;
	const int         said = parse_arguments(&k, argc, argv);

	if (said)
		return said == 1 ? 0 : 2;
	if (k.report.path && (st = vn_place_check(k.report.path, VN_PLACE_REPORT, k.report.force, &err)))
		goto done; /* before the work */
	for (int i = 0; i < 2; i++)
		if ((st = vn_opened_weights_open(k.path[i], k.threads, &w[i], &notes, &err)))
			goto done;
	for (int i = 0; i < 2; i++)
		mtp = mtp || (w[i].recording && vn_recording_has_mtp(w[i].recording));
	if (k.model && ((st = vn_model_open_as(k.model, vn_model_with(mtp) | VN_MODEL_MAPPED, &model, &err)) ||
	                (st = take_numbers(&k, model, w, numbers, &err))))
		goto done;
	found = vn_weights_compare(&w[0].side, &w[1].side, k.threads);
	for (int i = 0; i < notes.n; i++)
		vn_say(stderr, "vernier weights: note: %s\n", notes.line[i]);
	st = print_report(&k, found, w, &err);
done:;
	const int status = !st && found->n_found > 0;
	vn_weights_free(found);
	VN_FREE(numbers[0], numbers[1]);
	vn_model_close(model);
	vn_opened_weights_close(&w[0]);
	vn_opened_weights_close(&w[1]);
	vn_lines_free(&notes);
	return vn_command_end("weights", st, &err, k.report.strict, status);
}
