/* cmd_show.c: `vernier show`: what a recording holds. */
#include "capture/commands.h"
#include "capture/recording/verify.h"
#include "capture/show/show.h"
#include "capture/base/warnings.h"
#include "libref/base/printed.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] = "usage: vernier show FILE [NAME | step.N/NAME | step.N | --weights] [--format text|json] [--strict]\n"
                            "       vernier show FILE --check     what must hold in a file alone: digests, sums, rotations...\n"
                            "  --strict   " VN_STRICT_HELP "\n"
                            "exit status: 0 shown, and with --check all of it holds; 1 some does not; 2 trouble\n";

/* The step that "step.3" means; NULL when it is no such name. */
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

/* "NAME" is looked for in every step, "step.1/NAME" in that one. */
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
		vn_fail(err, VN_ERR_NOTFOUND, "%s: no checkpoint named '%s'", vn_recording_path(r), name);
	return found;
}

static vn_status show(const char *path, const char *name, bool weights, bool json, vn_error *err)
{
	vn_recording  *r = NULL;
	const void    *data = NULL;
	const vn_step *step = NULL;
	vn_digest      now;
	int            i = -1;
	vn_status      st = vn_recording_open(path, &r, err);

	if (!st && name && !json && (step = step_named(r, name)))
		name = NULL;
	if (!st && name && (i = find(r, name, err)) < 0)
		st = VN_ERR_NOTFOUND;
	if (!st)
		vn_recording_allow_damage(r);
	if (!st && name)
		st = vn_recording_data(r, i, &data, err);
	if (!st && json) {
		if (!vn_show_json(r, i, data))
			st = vn_fail(err, VN_ERR_IO, "standard output cannot be written: %s", vn_printed_lost() ? vn_printed_lost() : "no memory for the JSON");
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
	if (!st && name && !(st = vn_recording_found(r, i, &now, err)) && *now.hex) /* shown all the same, but not as good */
		st = vn_fail(err, VN_ERR_FORMAT, "%s: %s: the numbers are not those that were written: their digest is %s", path,
		             vn_recording_entry(r, i)->name, now.hex);
	vn_recording_close(r);
	return st;
}

/* 0: all holds, 1: not, 2: trouble. */
static int check(const char *path, vn_error *err)
{
	vn_recording *r = NULL;
	int           status = 2;

	if (!vn_recording_open(path, &r, err)) {
		vn_recording_allow_damage(r);
		vn_show_state(r);
		status = vn_show_check(r, err);
	}
	vn_recording_close(r);
	return status;
}

int cmd_show(int argc, char **argv)
{
	static const struct option longs[] = { { "format", 1, NULL, 'f' }, { "weights", 0, NULL, 'w' }, { "check", 0, NULL, 'c' }, { "strict", 0, NULL, 's' },
	                                        { "help", 0, NULL, 'h' }, { 0 } };
	const char *format = "text", *wrong = NULL;
	vn_error    err = { 0 };
	bool        weights = false, checks = false, strict = false;
	int         c;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", longs, NULL)) != -1 && !wrong) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (c == 'f')
			format = optarg;
		else if (c == 'w')
			weights = true;
		else if (c == 'c')
			checks = true;
		else if (c == 's')
			strict = true;
		else
			wrong = argv[optind - 1];
	}
	if (wrong)
		vn_fail(&err, VN_ERR_USAGE, "unknown option or no value: '%s'", wrong);
	else if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
		vn_fail(&err, VN_ERR_USAGE, "--format is text or json, not '%s'", format);
	else if (argc - optind < 1)
		vn_fail(&err, VN_ERR_USAGE, "a recording is needed");
	else if (argc - optind > 2)
		vn_fail(&err, VN_ERR_USAGE, "one recording and one name, then what is '%s'?", argv[optind + 2]);
	else if (weights && argc - optind > 1)
		vn_fail(&err, VN_ERR_USAGE, "--weights shows the weights; then what is '%s'?", argv[optind + 1]);
	else if (checks && (weights || argc - optind > 1 || strcmp(format, "text") != 0))
		vn_fail(&err, VN_ERR_USAGE, "--check is of the whole file, and in text");
	if (*err.text) {
		fprintf(stderr, "vernier show: %s\n%s", err.text, usage);
		return 2;
	}
	if (checks) {
		const int status = check(argv[optind], &err);
		if (status == 2)
			fprintf(stderr, "vernier show: %s\n", err.text);
		return vn_warnings_end("show", strict, status);
	}
	if (show(argv[optind], argc - optind == 2 ? argv[optind + 1] : NULL, weights, strcmp(format, "json") == 0, &err)) {
		fprintf(stderr, "vernier show: %s\n", err.text);
		return 2;
	}
	return vn_warnings_end("show", strict, 0);
}
