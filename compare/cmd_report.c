/* cmd_report.c: vernier report FILE.json: a report in another form, without the recordings. */
#include "compare/commands.h"
#include "compare/compare_line.h"
#include "compare/options.h"
#include "capture/base/warnings.h"
#include "capture/file/output.h"
#include "capture/file/reporting.h"
#include "libref/base/say.h"

typedef struct settings {
	const char *file, *path;
	int         form, colour;
	bool        force, all;
} settings;

enum { UNSAID = -1 };

static const vn_option options[] = {
	{ "format", 0, VN_CHOOSE(settings, form), .argument = "FORM", .words = &vn_report_names, .set_without = "output",
	  .help = "Form of the report, as of vernier compare. Default: text, or by the ending of PATH." },
	{ "output", 'o', VN_INTO(settings, path), .argument = "PATH",
	  .help = "Write the report to PATH. Default: stdout." },
	VN_REPORTING_FORCE(settings, force, "report"),
	VN_COLOUR_OPTION(settings, colour),
	VN_NO_CONFIG_OPTION,
	{ "all", 0, VN_INTO(settings, all), .help = "text: a line for every checkpoint, as of vernier compare." },
};

const vn_command vn_report_command = {
	.name = "report",
	.synopsis = "FILE.json [OPTION]...",
	.about = "Write the report of an earlier comparison in another form: FILE.json is the JSON report of vernier "
			 "compare or explain, of this version or of the one before. The recordings are not needed. A file "
			 "that is no such report, that lacks a key, or whose checkpoints contradict its verdict is refused.",
	VN_OPTION_TABLE(options),
	.examples = "vernier report report.json\n"
				"vernier report report.json -o report.html",
	.status = "0 within limits, 1 outside, 2 trouble",
};

static vn_status write_report(const settings *k, const vn_document *doc, vn_error *err)
{
	const vn_report_options o = { .colour = !k->path && vn_colours((vn_colour_choice)k->colour),
		                          .all = k->all,
		                          .path = k->path };
	const vn_report_form   *form = k->form == UNSAID ? NULL : vn_report_at(k->form);
	vn_output               out;
	vn_status               st = form ? VN_OK : vn_report_by_ending(k->path, &form, err);

	if (!st && !(st = vn_output_open(&out, k->path, VN_PLACE_REPORT, k->force, err)))
		st = vn_output_close(&out, form->write(doc, &o, out.file, err), err);
	return st;
}

static vn_status render(const settings *k, int *status, vn_error *err)
{
	VN_ENDS(vn_document_finish) vn_document doc = { .first = -1 };
	vn_status                               st;

	if (k->path && vn_same_file(k->path, k->file))
		return vn_fail(err, VN_ERR_USAGE, "%s: is the report that is read; give -o another name", k->path);
	if (k->path && (st = vn_place_check(k->path, VN_PLACE_REPORT, k->force, err)))
		return st;
	if (!(st = vn_document_read(k->file, &doc, err)) && !(st = write_report(k, &doc, err)) && k->path)
		vn_say(stdout, "%s: %s Written: %s\n", vn_document_text(doc.verdict_words), vn_document_text(doc.summary),
		       k->path);
	*status = !doc.within;
	return st;
}

int cmd_report(int argc, char **argv)
{
	settings  k = { .form = UNSAID };
	vn_error  err = { "" };
	int       status = 2;
	const int said = vn_options_read(&vn_report_command, argc, argv, &k);

	if (said)
		return said == 1 ? 0 : 2;
	if (argc - optind != 1)
		return vn_complain("report", "one JSON report is needed; %d given", argc - optind);
	k.file = argv[optind];
	const vn_status st = render(&k, &status, &err);
	return vn_command_end("report", st, &err, false, status);
}
