/* cmd_merge.c: vernier merge PART...: joins the summaries of processes that shared a
 * comparison of folders. */
#include "compare/commands.h"
#include "compare/folders/together.h"
#include "compare/options.h"
#include "capture/file/reporting.h"
#include "capture/file/output.h"
#include "capture/base/warnings.h"
#include "libref/base/alloc.h"

#include <stdlib.h>

typedef struct settings {
	const char *path;
	bool        force, quiet;
	char      **file;
	int         n;
} settings;

static const vn_option options[] = {
	{ "output", 'o', VN_INTO(settings, path), .argument = "FILE",
	  .help = "Write the joined summary to FILE: the same bytes as the --summary of one process that compares all "
	          "pairs. Default: none." },
	VN_REPORTING_FORCE(settings, force, "report"),
	{ "quiet", 'q', VN_INTO(settings, quiet), .help = "Print nothing on stdout. The exit status gives the verdict." },
};

const vn_command vn_merge_command = {
	.name = "merge",
	.synopsis = "PART... [OPTION]...",
	.about =
		"Join the summaries of all parts of a comparison of folders: N processes ran vernier compare REFS CANDS... "
		"--part I/N --summary FILE. A part that is missing, repeated or of another comparison is refused.",
	VN_OPTION_TABLE(options),
	.examples = "vernier merge part1.json part2.json\n"
				"vernier merge part*.json -o all.json",
	.status = "0 every pair is within its limits, 1 at least one is outside, 2 trouble, here or in a pair",
};

static vn_status check_output(const settings *k, vn_error *err)
{
	for (int i = 0; k->path && i < k->n; i++)
		if (vn_same_file(k->path, k->file[i]))
			return vn_fail(err, VN_ERR_USAGE, "%s: is one of the parts; the joined summary cannot replace it", k->path);
	return k->path ? vn_place_check(k->path, VN_PLACE_REPORT, k->force, err) : VN_OK;
}

static vn_status merge_recordings(const settings *k, int *status, vn_error *err)
{
	vn_together *part = vn_alloc_zero((size_t)k->n, sizeof *part), whole = { .sides = 0 };
	vn_output    out;
	vn_status    st = check_output(k, err);

	for (int i = 0; !st && i < k->n; i++)
		st = vn_together_read(k->file[i], &part[i], err);
	if (!st && !(st = vn_together_join(part, (const char *const *)k->file, k->n, &whole, err))) {
		if (!k->quiet)
			vn_together_text(&whole, stdout);
		if (k->path && !(st = vn_output_open(&out, k->path, VN_PLACE_REPORT, k->force, err))) {
			st = vn_together_json(&whole, out.file, err);
			st = vn_output_close(&out, st, err);
		}
		*status = vn_together_status(&whole);
	}
	vn_together_free(&whole);
	for (int i = 0; i < k->n; i++)
		vn_together_free(&part[i]);
	free(part);
	return st;
}

int cmd_merge(int argc, char **argv)
{
	settings  k = { 0 };
	vn_error  err = { "" };
	int       status = 0;
	const int said = vn_options_read(&vn_merge_command, argc, argv, &k);

	if (said)
		return said == 1 ? 0 : 2;
	k.file = argv + optind;
	k.n = argc - optind;
	if (k.n == 0)
		return vn_complain("merge", "the summaries of all parts are needed: vernier merge part*.json");
	const vn_status st = merge_recordings(&k, &status, &err);
	return vn_command_end("merge", st, &err, false, status);
}
