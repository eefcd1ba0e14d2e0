/* cmd_show.c: `vernier show`: what a recording holds. */
#include "capture/commands.h"
#include "capture/recording/verify.h"
#include "capture/show/show.h"
#include "capture/base/warnings.h"
#include "libref/base/nearest.h"
#include "libref/base/options.h"
#include "libref/base/printed.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

typedef struct options {
	int  format;
	const char *values;
	bool weights, checks, strict, force;
} options;

enum { TEXT, JSON };

static const vn_option known[] = {
	{ "values", 0, VN_INTO(options, values), .argument = "PATH",
	  .help =
	      "Write the numbers of the tensor NAME to PATH: .txt or .csv, a line for each row of its last axis, or .npy. "
	      "vernier import reads .txt and .npy." },
	{ "force", 0, VN_INTO(options, force), .help = "Replace a PATH that exists." },
	{ "weights", 0, VN_INTO(options, weights), .help = "Show the table of weights that the run used." },
	{ "check", 0, VN_INTO(options, checks),
	  .help = "Check what must hold in any recording: digests match their numbers, residuals are the sums that their "
	          "names say, rotations keep lengths, probabilities add up to 1 and exclude later keys, the first token's "
	          "context is its v, tokens of one id have one embedding row. Exit status 1 if something does not hold. "
	          "Warns if the logits peak at their input token, or if the chosen tokens look like no text. vernier "
	          "compare makes the checks other than digests in both files, where the divergence starts, or everywhere "
	          "if nothing diverges, and warns. It checks the digest of every tensor that it reads." },
	{ "format", 0, VN_CHOOSE(options, format), .argument = "text|json", .help = "Form of the output. Default: text." },
	{ "strict", 0, VN_INTO(options, strict), .help = "Treat every warning as a failure: exit status 1." },
};

const vn_command vn_show_command = {
	.name = "show",
	.synopsis = "FILE [NAME | step.N/NAME | step.N] [OPTION]...\nFILE --check",
	.about = "Show the contents of a recording, one tensor with statistics and first values, or the tensors of one "
	         "step.",
	.option = known,
	.n = sizeof known / sizeof *known,
	.status = "0 shown, and with --check all of it holds; 1 some does not; 2 trouble",
};

/* The step that a name such as "step.3" stands for; NULL if it is no step name. */
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
	const vn_step *step;
	const char    *bare = strchr(name, '/') ? strchr(name, '/') + 1 : name;
	const int      n = vn_recording_steps(r, &step);

	if (strncmp(name, "step.", 5) == 0 && bare == name) {
		vn_fail(err, VN_ERR_NOTFOUND, "%s: no step named '%s': it has %d step%s, from step.0", vn_recording_path(r),
		        name, n, n == 1 ? "" : "s");
		return;
	}
	vn_nearest_start(&near, bare);
	for (int i = 0; i < vn_recording_count(r); i++) {
		const char *own = vn_recording_entry(r, i)->name, *dot = strchr(own, '.');
		vn_nearest_try(&near, own);
		if (dot && strcmp(dot + 1, bare) == 0 && !vn_nearest_found(&near)) /* a point without its layer */
			vn_nearest_settle(&near, own);
	}
	const char *found = vn_nearest_found(&near);
	char        whole[VN_NEAREST_MAX];
	if (found && bare != name && snprintf(whole, sizeof whole, "%.*s%s", (int)(bare - name), name, found) < (int)sizeof whole)
		vn_nearest_settle(&near, whole);
	vn_fail(err, VN_ERR_NOTFOUND, "%s: no checkpoint named '%s'%s", vn_recording_path(r), name, vn_nearest_hint(&near));
}

/* Looks for "NAME" in every step, for "step.1/NAME" in that step. */
static int find(const vn_recording *r, const char *name, vn_error *err)
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

static vn_status show(const char *path, const char *name, const options *o, vn_error *err)
{
	const bool     weights = o->weights, json = o->format == JSON;
	vn_recording  *r = NULL;
	const void    *data = NULL;
	const vn_step *step = NULL;
	vn_digest      now;
	int            i = -1;
	vn_status      st = vn_recording_open(path, &r, err);

	if (!st)
		warn_of_part(r);
	if (!st && name && !json && !o->values && (step = step_named(r, name)))
		name = NULL;
	if (!st && name && (i = find(r, name, err)) < 0)
		st = VN_ERR_NOTFOUND;
	if (!st && !o->values) /* a file of damaged numbers would outlive the warning printed here */
		vn_recording_allow_damage(r);
	if (!st && name)
		st = vn_recording_data(r, i, &data, err);
	if (!st && o->values) {
		st = vn_show_values(r, i, data, o->values, o->force, err);
	} else if (!st && json) {
		if (!vn_show_json(r, i, data))
			st = not_written(err);
	} else if (!st) {
		if (weights)
			vn_show_weights(r);
		else if (step)
			vn_show_step(r, step);
		else if (name)
			vn_show_tensor(r, i, data);
		else
			vn_show_all(r);
	}
	if (!st && name && !(st = vn_recording_found(r, i, &now, err)) && *now.hex) /* damaged ones are shown too */
		st = vn_fail(err, VN_ERR_FORMAT, "%s: %s: the numbers were changed after they were written: their digest is %s",
		             path, vn_recording_entry(r, i)->name, now.hex);
	vn_recording_close(r);
	return st;
}

/* Returns 0 if everything holds, 1 if not, 2 on trouble. */
static int check(const char *path, bool json, vn_error *err)
{
	vn_recording *r = NULL;
	vn_file_check      found = { 0 };
	vn_status     st = vn_recording_open(path, &r, err);

	if (!st) {
		warn_of_part(r);
		vn_recording_allow_damage(r);
		if (!json)
			vn_show_state(r);
		st = vn_file_check_run(r, &found, err);
	}
	if (!st && !json)
		vn_show_check(&found);
	else if (!st && !vn_show_check_json(r, &found))
		st = not_written(err);
	const bool holds = found.n == 0;
	vn_file_check_free(&found);
	vn_recording_close(r);
	return st ? 2 : !holds;
}

/* Checks the options against each other. Returns 0, or 2 after an error message. */
static int together(const options *o, int argc, char **argv)
{
	if (argc - optind < 1)
		return vn_complain("show", "a recording is needed");
	if (argc - optind > 2)
		return vn_complain("show", "only one recording and one name can be given; unexpected '%s'", argv[optind + 2]);
	if (o->weights && argc - optind > 1)
		return vn_complain("show", "--weights takes no name; unexpected '%s'", argv[optind + 1]);
	if (o->checks && (o->weights || argc - optind > 1))
		return vn_complain("show", "--check checks the whole file; it takes no name and no --weights");
	if (o->values && (argc - optind < 2 || o->weights || o->checks || o->format != TEXT))
		return vn_complain("show", "--values writes one tensor, and nothing else: vernier show FILE NAME --values %s",
		                   o->values);
	if (o->values && !vn_show_values_form(o->values))
		return vn_complain("show", "--values %s: the ending says the form: .txt, .csv or .npy", o->values);
	return 0;
}

int cmd_show(int argc, char **argv)
{
	options   o = { .format = TEXT };
	vn_error  err = { "" };
	const int said = vn_options_read(&vn_show_command, argc, argv, &o);

	if (said)
		return said == 1 ? 0 : 2;
	if (together(&o, argc, argv))
		return 2;
	if (o.checks) {
		const int status = check(argv[optind], o.format == JSON, &err);
		if (status == 2)
			fprintf(stderr, "vernier show: %s\n", err.text);
		return vn_warnings_end("show", o.strict, status);
	}
	if (show(argv[optind], argc - optind == 2 ? argv[optind + 1] : NULL, &o, &err)) {
		fprintf(stderr, "vernier show: %s\n", err.text);
		return 2;
	}
	return vn_warnings_end("show", o.strict, 0);
}
