/* cmd_show.c: `vernier show`: what a recording holds. */
#include "capture/base/option_rows.h"
#include "capture/commands.h"
#include "capture/file/output.h"
#include "capture/file/reporting.h"
#include "capture/recording/verify.h"
#include "capture/show/show_check.h"
#include "capture/show/show_json.h"
#include "capture/show/show_text.h"
#include "capture/show/show_values.h"
#include "capture/base/warnings.h"
#include "libref/base/nearest.h"
#include "libref/base/options.h"
#include "libref/base/printed.h"
#include "libref/base/say.h"
#include "libref/base/shell.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
	const char  *values;
	bool         weights, checks, no_pager;
	vn_reporting report;
} options;

static const vn_option known[] = {
	{ "values", 0, VN_INTO(options, values), .argument = "PATH",
	  .help =
	      "Write the numbers of the tensor NAME to PATH. NAME may also be token_ids or positions. The ending of PATH "
	      "selects the form: .npy, or .txt or .csv with a line for each row of the last axis. vernier import reads "
	      ".txt and .npy." },
	{ "weights", 0, VN_INTO(options, weights), .help = "Show the table of weights that the run used." },
	{ "check", 0, VN_INTO(options, checks),
	  .help = "Check what must hold in any recording: digests match their numbers, residuals are the sums that their "
	          "names say, rotations keep lengths, probabilities add up to 1 and exclude later keys, the first token's "
	          "context is its v, tokens of one id have one embedding row. Exit status 1 if something does not hold. "
	          "Warns if the logits peak at their input token, or if the chosen tokens do not look like text. vernier "
	          "compare checks the digest of every tensor that it reads. It makes the other checks in both files, "
	          "where the divergence starts or, if nothing diverges, everywhere; in compare, a failed check is a "
	          "warning." },
	VN_REPORTING_OPTIONS(options, report, ""),
	VN_REPORTING_FORCE(options, report.force, "report, or the numbers at the PATH of --values"),
	VN_STRICT_OPTION(options, report.strict, ""),
	VN_PAGER_OPTION(options, no_pager),
};

const vn_command vn_show_command = {
	.name = "show",
	.synopsis = "FILE [NAME | step.N/NAME | step.N] [OPTION]...\nFILE --check",
	.about = "Show what a recording holds. With NAME, show one tensor, with statistics and first values; with step.N, "
			 "the tensors of one step.",
	.examples = "vernier show cand.h5\n"
				"vernier show cand.h5 layer1.q_rope",
	VN_OPTION_TABLE(known),
	.status =
		"0 shown (with --check: every check holds), 1 a check does not hold, or a warning with --strict, 2 trouble",
};

/* Returns the step called "step.3"; NULL: the name is not a step's. */
static const vn_step *step_named(const vn_recording *r, const char *name)
{
	const vn_step *step;
	char           own[32];

	for (int i = 0, n = vn_recording_steps(r, &step); i < n; i++) {
		snprintf(own, sizeof own, "step.%d", step[i].number);
		if (strcmp(own, name) == 0)
			return &step[i];
	}
	return NULL;
}

static void not_there(const vn_recording *r, const char *name, vn_error *err)
{
	vn_nearest     near;
	struct stat    is;
	const vn_step *step;
	const char    *bare = strchr(name, '/') ? strchr(name, '/') + 1 : name;
	const int      n = vn_recording_steps(r, &step);

	if (strncmp(name, "step.", 5) == 0 && bare == name) {
		vn_fail(err, VN_ERR_NOTFOUND, "%s: no step named '%s': it has %d step%s, from step.0", vn_recording_path(r),
		        name, n, n == 1 ? "" : "s");
		return;
	}
	if (strpbrk(name, "*?[{")) {
		vn_fail(err, VN_ERR_NOTFOUND,
		        "%s: '%s' is a pattern, and vernier show takes one name; vernier table REF CAND "
		        "--points '%s' shows several",
		        vn_recording_path(r), name, name);
		return;
	}
	if (stat(name, &is) == 0) {
		char line[VN_SHELL_LINE] = "vernier table";
		vn_shell_add(line, sizeof line, vn_recording_path(r));
		vn_shell_add(line, sizeof line, name);
		const bool folder = S_ISDIR(is.st_mode);
		vn_fail(err, VN_ERR_NOTFOUND, "%s: no checkpoint named '%s', which is a %s%s%s%s", vn_recording_path(r), name,
		        folder ? "folder" : "file", folder || !*line ? "" : ": ", folder ? "" : line,
		        folder || !*line ? "" : " shows both");
		return;
	}
	/* "layer1/q_rope", as HDF5's tools write it */
	char dotted[VN_NEAREST_MAX];
	bare = strncmp(name, "step.", 5) == 0 ? bare : name;
	snprintf(dotted, sizeof dotted, "%s", bare);
	for (char *slash = dotted; (slash = strchr(slash, '/'));)
		*slash = '.';
	vn_nearest_start(&near, dotted);
	for (int i = 0; i < vn_recording_count(r); i++) {
		const char *own = vn_recording_entry(r, i)->name, *dot = strchr(own, '.');
		vn_nearest_try(&near, own);
		if (dot && strcmp(dot + 1, dotted) == 0 && !vn_nearest_found(&near)) /* a point without its layer */
			vn_nearest_settle(&near, own);
	}
	for (int i = 0; i < vn_recording_count(r) && !vn_nearest_found(&near); i++) { /* a misspelt point */
		const char *own = vn_recording_entry(r, i)->name, *dot = strchr(own, '.');
		if (dot && vn_nearest_distance(dotted, dot + 1) == 1)
			vn_nearest_settle(&near, own);
	}
	const char *found = vn_nearest_found(&near);
	char        whole[VN_NEAREST_MAX];
	if (found && bare != name &&
	    snprintf(whole, sizeof whole, "%.*s%s", (int)(bare - name), name, found) < (int)sizeof whole)
		vn_nearest_settle(&near, whole);
	vn_fail(err, VN_ERR_NOTFOUND, "%s: no checkpoint named '%s'%s", vn_recording_path(r), name,
	        vn_nearest_found(&near) ? vn_nearest_hint(&near) : "; without a name, vernier show lists all");
}

/* Looks for "NAME" in every step, for "step.1/NAME" in that step. */
static int find_checkpoint(const vn_recording *r, const char *name, vn_error *err)
{
	const vn_step *step;
	const char    *slash = strchr(name, '/');
	int            n = vn_recording_steps(r, &step), found = -1;

	for (int i = 0; i < n && found < 0; i++) {
		char prefix[32];
		int  k = snprintf(prefix, sizeof prefix, "step.%d/", step[i].number);
		if (!slash)
			found = vn_recording_find(r, step[i].number, name);
		else if (strncmp(name, prefix, (size_t)k) == 0)
			found = vn_recording_find(r, step[i].number, slash + 1);
	}
	if (found < 0)
		not_there(r, name, err);
	return found;
}

static void warn_of_part(const vn_recording *r)
{
	if (!vn_recording_complete(r))
		vn_warn("show", "%s is INCOMPLETE: it holds only part of a run", vn_recording_path(r));
}

static vn_status not_written(vn_error *err)
{
	return vn_fail(err, VN_ERR_IO, "standard output cannot be written: %s",
	               vn_printed_lost() ? vn_printed_lost() : "no memory for the JSON");
}

/* The part of a recording that is written to a file. */
typedef struct shown {
	const options       *o;
	vn_recording        *r;
	const vn_step       *step;  /* NULL: not a step */
	int                  entry; /* -1: not a tensor */
	const void          *data;  /* of the tensor */
	const vn_file_check *found; /* NULL: not checked */
} shown;

static vn_status write_report(const shown *s, FILE *out, vn_error *err)
{
	if (s->o->report.json)
		return (s->found ? vn_show_check_json(s->r, s->found, out)
		                 : vn_show_json(s->r, s->step, s->entry, s->data, out))
		           ? VN_OK
		           : not_written(err);
	if (s->found) {
		vn_show_state(s->r, out);
		fputc('\n', out);
		vn_show_check(s->found, out);
	} else if (s->o->weights) {
		vn_show_weights(s->r, out);
	} else if (s->step) {
		vn_show_step(s->r, s->step, out);
	} else if (s->entry >= 0) {
		vn_show_tensor(s->r, s->entry, s->data, out);
	} else {
		vn_show_all(s->r, out);
	}
	return VN_OK;
}

static vn_status print_report(const shown *s, vn_error *err)
{
	const char *path = s->o->report.path;
	vn_output   out;
	vn_status   st = vn_output_open(&out, path, VN_PLACE_REPORT, s->o->report.force, err);

	st = st ? st : vn_output_close(&out, write_report(s, out.file, err), err);
	if (st || !path)
		return st;
	vn_show_state(s->r, stdout);
	if (s->found) {
		vn_say(stdout, ". ");
		vn_show_counts(s->found, stdout);
	}
	vn_say(stdout, ". Written: %s\n", path);
	return VN_OK;
}

/* Writes the token ids or positions, which are those of the whole run. Returns false for another
 * name. */
static bool write_tokens(const shown *s, const char *name, vn_status *st, vn_error *err)
{
	const int32_t *ids, *positions;
	const int64_t  n = vn_recording_tokens(s->r, &ids, &positions);
	const bool     is_ids = strcmp(name, "token_ids") == 0;
	const vn_entry e = { .name = name, .axes = "token", .dtype = VN_I32, .shape = { .rank = 1, .dim = { n } } };

	if (!is_ids && strcmp(name, "positions") != 0)
		return false;
	*st = vn_show_values(&e, is_ids ? ids : positions, s->o->values, s->o->report.force, err);
	if (!*st)
		vn_say(stdout, "%s: %" PRId64 " numbers. Written: %s\n", name, n, s->o->values);
	return true;
}

static vn_status write_values(const shown *s, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(s->r, s->entry);
	const vn_status st = vn_show_values(e, s->data, s->o->values, s->o->report.force, err);

	if (!st) {
		vn_say(stdout, "step.%d/", e->step);
		vn_show_put(e->name, stdout);
		vn_say(stdout, ": %" PRId64 " numbers. Written: %s\n", vn_shape_count(&e->shape), s->o->values);
	}
	return st;
}

static vn_status show_recording(const char *path, const char *name, const options *o, vn_error *err)
{
	shown     s = { .o = o, .entry = -1 };
	vn_digest now;
	vn_status st = vn_recording_open(path, &s.r, err);

	if (!st)
		warn_of_part(s.r);
	if (!st && name && (s.step = step_named(s.r, name)))
		name = NULL;
	if (!st && s.step && o->values)
		st = vn_fail(err, VN_ERR_USAGE, "step.%d is a step; --values writes one tensor: step.%d/NAME", s.step->number,
		             s.step->number);
	if (!st && name && o->values && write_tokens(&s, name, &st, err))
		goto done;
	if (!st && name && (s.entry = find_checkpoint(s.r, name, err)) < 0)
		st = VN_ERR_NOTFOUND;
	if (!st && !o->values && !o->report.path) /* a file of damaged numbers would outlive the warning printed here */
		vn_recording_allow_damage(s.r);
	if (!st && name)
		st = vn_recording_data(s.r, s.entry, &s.data, err);
	st = st ? st : o->values ? write_values(&s, err) : print_report(&s, err);
	if (!st && name && !(st = vn_recording_found(s.r, s.entry, &now, err)) && *now.hex) /* damaged ones are shown too */
		st = vn_fail(err, VN_ERR_FORMAT, "%s: %s: the numbers were changed after they were written: their digest is %s",
		             path, vn_recording_entry(s.r, s.entry)->name, now.hex);
done:
	vn_recording_close(s.r);
	return st;
}

/* *holds: everything holds. */
static vn_status check_recording(const char *path, const options *o, bool *holds, vn_error *err)
{
	vn_file_check found = { 0 };
	shown         s = { .o = o, .entry = -1, .found = &found };
	vn_status     st = vn_recording_open(path, &s.r, err);

	if (!st) {
		warn_of_part(s.r);
		vn_recording_allow_damage(s.r);
		st = vn_file_check_run(s.r, &found, err);
	}
	st = st ? st : print_report(&s, err);
	for (int i = 0; !st && i < found.n_warnings; i++)
		if (o->report.json && !o->report.path)
			vn_warned("%s", found.warning[i]); /* the JSON on stdout shows it */
		else
			vn_warn("show", "%s", found.warning[i]);
	*holds = found.n == 0;
	vn_file_check_free(&found);
	vn_recording_close(s.r);
	return st;
}

/* Checks the options against each other. Returns 0, or 2 after an error message. */
static int check_arguments(const options *o, int argc, char **argv)
{
	if (argc - optind < 1)
		return vn_complain("show", "a recording is needed");
	if (argc - optind > 2)
		return vn_complain("show", "only one recording and one name can be given; unexpected '%s'", argv[optind + 2]);
	if (o->weights && argc - optind > 1)
		return vn_complain("show", "--weights takes no name; unexpected '%s'", argv[optind + 1]);
	if (o->checks && (o->weights || argc - optind > 1))
		return vn_complain("show", "--check checks the whole file; it takes no name and no --weights");
	const bool reports = o->report.path || o->report.format != VN_FORM_UNSAID;
	if (o->values && (argc - optind < 2 || o->weights || o->checks || reports))
		return vn_complain("show", "--values writes one tensor, and nothing else: vernier show FILE NAME --values %s",
		                   o->values);
	if (o->values && !vn_show_values_form(o->values))
		return vn_complain("show", "--values %s: the file ending selects the form: .txt, .csv or .npy", o->values);
	return 0;
}

int cmd_show(int argc, char **argv)
{
	options   o = { .report.format = VN_FORM_UNSAID };
	vn_error  err = { "" };
	const int said = vn_options_read(&vn_show_command, argc, argv, &o);

	if (said)
		return said == 1 ? 0 : 2;
	if (check_arguments(&o, argc, argv) || vn_reporting_choose("show", &o.report))
		return 2;
	if (!o.no_pager)
		vn_printed_page();
	bool            holds = true;
	const vn_status st = o.checks
	                         ? check_recording(argv[optind], &o, &holds, &err)
	                         : show_recording(argv[optind], argc - optind == 2 ? argv[optind + 1] : NULL, &o, &err);
	return vn_command_end("show", st, &err, o.report.strict, !holds);
}
