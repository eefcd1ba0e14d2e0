/* cmd_calibrate.c: vernier calibrate REF CAND... -o LIMITS: limits fitted to correct runs. */
#include "compare/judge/calibrate.h"
#include "compare/commands.h"
#include "compare/options.h"
#include "capture/file/output.h"
#include "compare/match/sides.h"
#include "compare/chapters/compare.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/check_words.h"
#include "compare/judge/judge.h"

#include "capture/base/warnings.h"
#include "capture/recording/left_out.h"

#include "libref/base/alloc.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <stdlib.h>

enum { MAX_PAIRS = 256 };

#define complain(...) vn_complain("calibrate", __VA_ARGS__)

typedef struct run_pair {
	const char   *ref, *cand, *floor;
	vn_comparison c;
} run_pair;

typedef struct settings {
	run_pair       pair[MAX_PAIRS];
	int            n;
	const char    *ref, *floor; /* while arguments are read */
	int            group;       /* index of the first pair of this REF */
	const char    *output, *name;
	double         margin;
	bool           force;
	vn_comparing   how;
	vn_sides       sides; /* names and rows; the files are listed above */
	vn_calibration fit;
} settings;

/* ---- arguments --------------------------------------------------------------------- */

/* Ends the group of pairs that share a REF and gives it its floor. */
static vn_status end_group(settings *k, vn_error *err)
{
	if (k->ref && k->group == k->n)
		return vn_fail(err, VN_ERR_USAGE, "%s: a reference without a candidate", k->ref);
	for (int i = k->group; i < k->n; i++)
		k->pair[i].floor = k->floor;
	k->group = k->n;
	k->floor = NULL;
	return VN_OK;
}

static vn_status take_ref(void *to, const vn_option *option, const char *path, vn_error *err)
{
	settings       *k = to;
	const vn_status st = end_group(k, err);
	(void)option;
	k->ref = path;
	return st;
}

static vn_status take_file(void *to, const vn_option *option, const char *path, vn_error *err)
{
	settings *k = to;
	if (!k->ref)
		return take_ref(k, option, path, err);
	if (k->n == MAX_PAIRS)
		return vn_fail(err, VN_ERR_USAGE, "more than %d candidates", MAX_PAIRS);
	k->pair[k->n++] = (run_pair) { .ref = k->ref, .cand = path };
	return VN_OK;
}

/* One for each reference. */
static vn_status take_floor(void *to, const vn_option *option, const char *path, vn_error *err)
{
	settings *k = to;
	(void)option;
	if (!k->ref)
		return vn_fail(err, VN_ERR_USAGE, "--floor must follow the REF that it belongs to");
	if (k->floor)
		return vn_fail(err, VN_ERR_USAGE, "--floor is given twice");
	k->floor = path;
	return VN_OK;
}

static const vn_option options[] = {
	VN_GROUP("Recordings"),
	{ NULL, 0, .kind = VN_TAKE_EACH, .take = take_file },
	{ "ref", 0, .kind = VN_TAKE_EACH, .take = take_ref, .argument = "REF",
	  .help =
	      "The reference of the candidates that follow: another prompt, another model. Default: the first recording." },
	VN_NAMES_OPTION(settings, sides.names, sides.n_names, "every CAND's", .set_without = ""),
	VN_REF_NAMES_OPTION(settings, sides.ref_names, sides.n_ref_names, "every REF's"),
	VN_POINTS_OPTION(settings, how),
	VN_ALLOW_OPTION(settings, how.o.allow, ""),
	VN_THREADS_OPTION(settings, how.o.threads),
	VN_GROUP("Floor"),
	{ "floor", 0, .kind = VN_TAKE_EACH, .take = take_floor, .argument = "FILE",
	  .help = "A recording by the reference engine in the candidates' precision, on the tokens of the REF before it. "
	          "Give one for each REF, or none. With a floor, limits are multiples of it; plain limits apply to "
	          "checkpoints without a floor. Default: none." },
	{ "model", 0, VN_INTO(settings, how.o.model), .argument = "MODEL", .set_without = "floor",
	  .help =
	      "Compute the floor by running the reference on these weights in CAND's precision. Cannot be combined with "
	      "--floor. Default: none." },
	VN_FLOOR_PRECISION_OPTION(settings, how),
	VN_GROUP("Limits"),
	{ "output", 'o', VN_INTO(settings, output), .argument = "LIMITS", .help = "The limits file to write. Required." },
	{ "force", 0, VN_INTO(settings, force), .help = "Replace LIMITS if vernier calibrate wrote it." },
	{ "margin", 0, VN_INTO(settings, margin), VN_RANGE(1, 1000), .argument = "X",
	  .help = "Each limit is X times the worst value of these runs, 1 to 1000. Default: 2." },
	{ "name", 0, VN_INTO(settings, name), .argument = "NAME",
	  .help = "Name of the limits, for reports. Default: calibrated." },
	VN_STRICT_OPTION(settings, how.o.strict, ", and LIMITS is not written"),
	VN_NO_CONFIG_OPTION,
};

const vn_command vn_calibrate_command = {
	.name = "calibrate",
	.synopsis = "REF CAND... [--ref REF CAND...]... -o LIMITS [OPTION]...",
	.about =
		"Fit limits to correct runs: recordings of an engine that is known to compute the model right, and differs "
		"from the reference only by rounding. The first recording is the reference of those that follow.",
	VN_OPTION_TABLE(options),
	.examples = "vernier calibrate ref.h5 good1.h5 good2.h5 -o limits.yaml\n"
				"vernier compare ref.h5 cand.h5 --limits limits.yaml",
	.status = "0 written, 1 not written because of a warning (--strict), 2 not written: trouble, or a run that is not "
			  "correct",
};

static int check_options(settings *k)
{
	int floors = 0;
	for (int i = 0; i < k->n; i++)
		floors += k->pair[i].floor != NULL;
	if (k->n == 0)
		return complain("a reference and at least one candidate are needed");
	if (!k->output)
		return complain("-o LIMITS is missing");
	if (floors && floors < k->n)
		return complain("give --floor for every reference or for none");
	return vn_options_check_comparing("calibrate", &k->how, floors > 0);
}

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int parse_arguments(settings *k, int argc, char **argv)
{
	vn_error  err;
	const int st = vn_options_read(&vn_calibrate_command, argc, argv, k);
	if (st)
		return st;
	return end_group(k, &err) ? complain("%s", err.text) : check_options(k);
}

/* ---- the work -------------------------------------------------------------------------- */

/* Refuses a recording with a fault on purpose. */
static vn_status check_correct(const vn_recording *r, vn_error *err)
{
	const char *inject = vn_facts_get(vn_recording_run(r), "inject");

	return inject && *inject ? vn_fail(err, VN_ERR_MISMATCH,
	                                   "%s was recorded with a fault on purpose (%.80s): limits are fitted to correct "
	                                   "runs only",
	                                   vn_recording_path(r), inject)
	                         : VN_OK;
}

static vn_status compare_pair(settings *k, run_pair *p, vn_error *err)
{
	vn_comparison *c = &p->c;
	vn_status      st;
	c->opened.request.options = &k->how.o;
	vn_sides sides = k->sides;
	sides.ref = p->ref;
	sides.cand = &p->cand;
	sides.n_cand = 1;
	sides.floor = p->floor;
	sides.batch_row = sides.ref_batch_row = -1;
	if ((st = vn_sides_open(&sides, &c->opened, &c->result.remarks, err)) || (st = check_correct(c->opened.ref, err)) ||
	    (st = check_correct(c->opened.cand, err)) ||
	    (st = vn_judge_sanity(p->floor || k->how.o.model, &c->opened.request.limits, err)) || (st = vn_compare(c, err)))
		return st;
	const vn_left_out *list;
	if (vn_recording_left_out(c->opened.cand, &list) > 0)
		return vn_fail(err, VN_ERR_MISMATCH,
		               "%s was recorded against a reference and lacks what agreed with it: record it whole",
		               vn_recording_path(c->opened.cand));
	return vn_calibration_add(&k->fit, &c->opened, &c->result.checkpoints, &c->result.pools, err);
}

static void print_recording(const char *what, const vn_recording *r, FILE *out)
{
	static const char *const keys[] = { "engine", "engine_version", "precision", "device" };
	char                     text[1400];
	size_t                   used = (size_t)snprintf(text, sizeof text, "%.600s", vn_recording_path(r));
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *v = vn_facts_get(vn_recording_run(r), keys[i]);
		if (v && *v)
			used += (size_t)snprintf(text + used, sizeof text - used, ", %.150s", v);
	}
	vn_say(out, "#   %-4s %s\n", what, vn_text_clean(text, sizeof text));
}

static void print_head(const settings *k, FILE *out)
{
	fprintf(out,
	        "# Fitted by vernier calibrate " VERNIER_VERSION
	        ": each limit is %g times the worst value of these runs, and at least\n"
	        "# the error of one rounding to their format. Fit again after a change of device or driver.\n#\n",
	        k->margin);
	for (int i = 0; i < k->n; i++) {
		const run_pair *p = &k->pair[i];
		if (i == 0 || p->ref != k->pair[i - 1].ref)
			print_recording("REF", p->c.opened.ref, out);
		print_recording("CAND", p->c.opened.cand, out);
		if (*p->c.result.floor.from && (i == 0 || p->ref != k->pair[i - 1].ref)) {
			char text[sizeof p->c.result.floor.from];
			snprintf(text, sizeof text, "%s", p->c.result.floor.from);
			vn_say(out, "#   floor %s\n", vn_text_clean(text, sizeof text));
		}
	}
}

/* Checks that the correct runs pass the limits fitted to them; otherwise nothing is written. */
static vn_status prove_limits(settings *k, const char *text, size_t n, vn_error *err)
{
	vn_limits *l = NULL;
	vn_status  st = vn_limits_parse(k->output, text, n, &l, err);
	if (!st && l->warnings.n)
		st = vn_fail(err, VN_ERR_FORMAT, "not written: %s", l->warnings.line[0]);
	for (int i = 0; !st && i < k->n; i++) {
		vn_comparison *c = &k->pair[i].c;
		vn_limits     *sanity = c->opened.request.limits;
		l->layers = sanity->layers;
		c->opened.request.limits = l;
		for (int j = 0; !st && j < c->result.checkpoints.n; j++) {
			vn_checkpoint *p = &c->result.checkpoints.of[j];
			char           label[VN_LABEL], words[VN_WORDS];
			if (!p->m.n)
				continue;
			vn_checks_drop(p);
			p->worst = -1;
			p->fails = false;
			vn_judge(&c->opened, &c->result.checkpoints, &c->result.pools, &c->result.remarks.warnings, p);
			if (p->fails)
				st = vn_fail(err, VN_ERR_FORMAT, "not written: %s of %s would be outside: %s", vn_label(p, label),
				             k->pair[i].cand, vn_judge_say_failure(p, words));
		}
		c->opened.request.limits = sanity;
	}
	vn_limits_destroy(l);
	return st;
}

static vn_status check_place(const settings *k, vn_error *err)
{
	for (int i = 0; i < k->n; i++)
		if (vn_same_file(k->output, k->pair[i].ref) || vn_same_file(k->output, k->pair[i].cand) ||
		    vn_same_file(k->output, k->pair[i].floor))
			return vn_fail(err, VN_ERR_USAGE, "%s: is an input of this calibration; the limits cannot replace it",
			               k->output);
	return vn_place_check(k->output, VN_PLACE_LIMITS, k->force, err);
}

static vn_status write_limits(settings *k, vn_error *err)
{
	vn_text_stream s;
	vn_output      out;

	print_head(k, vn_alloc_stream(&s));
	vn_status st = vn_calibration_write(&k->fit, s.file, err);
	vn_alloc_streamed(&s);
	if (!st && !(st = prove_limits(k, s.text, s.bytes, err)) &&
	    !(st = vn_output_open(&out, k->output, VN_PLACE_LIMITS, k->force, err))) {
		fwrite(s.text, 1, s.bytes, out.file);
		st = vn_output_close(&out, VN_OK, err);
	}
	free(s.text);
	return st;
}

/* *strict: the exit status under --strict. When it is not 0, nothing is written. */
static vn_status run_calibrate(settings *k, int *strict, vn_error *err)
{
	vn_status st = check_place(k, err);
	k->fit.margin = k->margin;
	k->fit.name = k->name ? k->name : "calibrated";
	for (int i = 0; !st && i < k->n; i++) {
		st = compare_pair(k, &k->pair[i], err);
		if (st)
			vn_lines_print_refusals(&k->pair[i].c.result.remarks.refusals, "", "", stderr);
		for (int j = 0; !st && j < k->pair[i].c.result.remarks.warnings.n; j++)
			vn_warn("calibrate", "%s: %s", k->pair[i].cand, k->pair[i].c.result.remarks.warnings.line[j]);
	}
	*strict = vn_warnings_end("calibrate", k->how.o.strict, 0);
	return st || *strict ? st : write_limits(k, err);
}

int cmd_calibrate(int argc, char **argv)
{
	VN_FREED settings *k = vn_alloc_zero(1, sizeof *k);
	vn_error           err = { "" };
	k->margin = 2;
	const int said = parse_arguments(k, argc, argv);
	int       status = said == 1 ? 0 : 2;
	if (!said) {
		int             strict = 0;
		const vn_status st = run_calibrate(k, &strict, &err);
		status = st ? 2 : strict;
		if (st)
			vn_say(stderr, "vernier calibrate: %s\n", err.text);
		else if (!status)
			vn_say(stdout, "%s: limits of %d pair%s, margin %g\n", k->output, k->n, k->n == 1 ? "" : "s", k->margin);
	}
	for (int i = 0; i < k->n; i++)
		vn_comparison_close(&k->pair[i].c);
	vn_calibration_free(&k->fit);
	return status;
}
