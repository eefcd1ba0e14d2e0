/* cmd_table.c: vernier table REF CAND...: the values of every checkpoint, side by side. */
#include "compare/commands.h"
#include "compare/compare_line.h"
#include "compare/many/many_report.h"
#include "compare/table/table.h"
#include "capture/file/reporting.h"
#include "capture/file/output.h"

#include "capture/base/warnings.h"

#include "libref/base/alloc.h"
#include "libref/plan/point.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_DEFAULT = 8 };

typedef struct settings {
	vn_compare_line line; /* without a candidate: those of `many` are compared one by one */
	const char     *token, *path;
	int             first, form;
	vn_table        table;
} settings;

#define complain(...) vn_complain("table", __VA_ARGS__)

enum { UNSAID = -1 };

static const char *const forms = "text|json|markdown|html|csv"; /* as vn_table_form */

static const vn_option options[] = {
	VN_GROUP("What is shown"),
	{ "first", 0, VN_INTO(settings, first), VN_RANGE(0, VN_TABLE_VALUES), .argument = "N",
	  .help = "Show the first N values of the token. Default: 8." },
	{ "token", 0, VN_INTO(settings, token), .argument = "N|worst",
	  .help =
	      "Show the values of this token, counted from 0 in each step. worst: at each checkpoint, of the token with "
	      "the largest error. Default: worst." },
	VN_POINTS_OPTION(settings, line.how),
	VN_GROUP("How it is judged"),
	{ "limits", 0, VN_INTO(settings, line.limits), .argument = "FILE", .set_without = "",
	  .help = "The limits. Default: those that vernier compare chooses for each candidate." },
	VN_ALLOW_OPTION(settings, line.how.o.allow, ""),
	VN_STRICT_OPTION(settings, line.how.o.strict, ". A candidate with a warning is outside its limits"),
	{ "model", 0, VN_INTO(settings, line.how.o.model), .argument = "MODEL", .set_without = "floor",
	  .help = "Compute the floor with these weights, as vernier compare does. Default: none." },
	{ "floor", 0, VN_INTO(settings, line.floor), .argument = "FILE",
	  .help = "Take the floor from this recording. Default: none." },
	VN_NAMES_OPTION(settings, line.sides.names, line.sides.n_names, "the candidates'", .set_without = ""),
	VN_REF_NAMES_OPTION(settings, line.sides.ref_names, line.sides.n_ref_names, "REF's"),
	VN_THREADS_OPTION(settings, line.how.o.threads),
	VN_GROUP("The table"),
	{ "format", 0, VN_CHOOSE(settings, form), .argument = "FORM", .words = &forms, .set_without = "output",
	  .help = "Form of the table. Default: text, or by the ending of PATH: .json, .md, .html, .csv. JSON has the "
	          "schema vernier-table/1." },
	{ "output", 'o', VN_INTO(settings, path), .argument = "PATH", .help = "Write the table to PATH. Default: stdout." },
	VN_REPORTING_FORCE(settings, line.force, "table"),
	VN_NO_CONFIG_OPTION,
};

const vn_command vn_table_command = {
	.name = "table",
	.synopsis = "REF CAND... [OPTION]...",
	.about = "Show for every checkpoint the first values of one token, in REF and in each of up to 16 candidates; "
			 "minimum, maximum, mean and rms of the whole tensor; the largest absolute and relative error; and the "
			 "status that vernier compare gives (vernier help table.md).",
	VN_OPTION_TABLE(options),
	.examples = "vernier table ref.h5 cand.h5\n"
				"vernier table ref.h5 a.h5 b.h5 --points 'layer1.*'",
	.status = "0 within limits, 1 outside, 2 trouble",
	.tells = true,
};

static vn_status choose_form(settings *k, vn_error *err)
{
	static const vn_table_form by_ending[] = { VN_TABLE_TEXT, VN_TABLE_JSON, VN_TABLE_MARKDOWN, VN_TABLE_HTML,
		                                       VN_TABLE_CSV };
	int                        which;
	vn_status                  st = VN_OK;

	if (k->form != UNSAID)
		k->table.form = (vn_table_form)k->form;
	else if (!(st = vn_output_ending(k->path, "json|md|html|csv", &which, err)))
		k->table.form = by_ending[which + 1];
	return st;
}

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int parse_arguments(settings *k, int argc, char **argv)
{
	int      st = vn_options_read(&vn_table_command, argc, argv, k);
	vn_error err;

	if (st)
		return st;
	if (argc - optind < 2)
		return complain("a reference and at least one candidate are needed; %d given", argc - optind);
	for (int i = optind; i < argc; i++) {
		const char *dot = strrchr(argv[i], '.');
		vn_point    p;
		if (vn_point_from_name(dot ? dot + 1 : argv[i], &p) && access(argv[i], F_OK) != 0)
			return complain("'%s' is a checkpoint, not a recording: --points '%s'", argv[i], argv[i]);
	}
	if (argc - optind > 1 + VN_MANY_MOST)
		return complain("at most %d candidates, not %d", VN_MANY_MOST, argc - optind - 1);
	k->table.token = VN_TABLE_WORST;
	if (k->token && strcmp(k->token, "worst") != 0 && !vn_text_whole(k->token, 0, INT32_MAX, &k->table.token))
		return complain("--token takes worst or a whole number from 0, not '%s'", k->token);
	if ((st = vn_options_check_comparing("table", &k->line.how, k->line.floor)))
		return st;
	k->line.how.o.replay = VN_REPLAY_NEVER;
	k->line.ref = argv[optind];
	k->line.many = argv + optind + 1;
	k->line.n_many = argc - optind - 1;
	k->path = k->path && strcmp(k->path, "-") == 0 ? NULL : k->path;
	if (choose_form(k, &err))
		return complain("%s", err.text);
	k->table.first = k->first;
	return 0;
}

static vn_status check_files(const settings *k, vn_error *err)
{
	if (k->path && vn_same_file(k->path, k->line.limits))
		return vn_fail(err, VN_ERR_USAGE, "%s: is an input of this table; the table cannot replace it", k->path);
	for (int i = 0; i < k->line.n_many; i++) {
		if (k->path && (vn_same_file(k->path, k->line.many[i]) || vn_same_file(k->path, k->line.ref)))
			return vn_fail(err, VN_ERR_USAGE, "%s: is an input of this table; the table cannot replace it", k->path);
		if (vn_same_file(k->line.ref, k->line.many[i]) && !(k->line.how.o.allow & VN_ALLOW_ITSELF))
			return vn_fail(err, VN_ERR_USAGE,
			               "%s is the same file as the reference, %s: a recording always agrees "
			               "with itself (--allow itself compares it all the same)",
			               k->line.many[i], k->line.ref);
	}
	return k->path ? vn_place_check(k->path, VN_PLACE_REPORT, k->line.force, err) : VN_OK;
}

/* Warnings go to stderr: the table has no room for them. */
static void print_warnings(const vn_many *m)
{
	fflush(stdout);
	for (int i = 0; i < m->n; i++)
		for (int j = 0; j < vn_document_lines(vn_many_list(&m->candidate[i], "warnings")); j++)
			vn_warn("table", "%s: %s", m->candidate[i].path,
			        vn_document_line(vn_many_list(&m->candidate[i], "warnings"), j));
}

/* Some call must have the token to show. */
static vn_status check_token(const settings *k, vn_comparison **c, vn_error *err)
{
	const vn_step *step;
	int64_t        most = 0;

	for (int i = 0; i < k->line.n_many && k->table.token != VN_TABLE_WORST; i++) {
		const int n = c[i]->opened.ref ? vn_recording_steps(c[i]->opened.ref, &step) : 0;
		for (int s = 0; s < n; s++)
			most = step[s].tokens > most ? step[s].tokens : most;
	}
	return k->table.token == VN_TABLE_WORST || k->table.token < most || most == 0
	           ? VN_OK
	           : vn_fail(err, VN_ERR_USAGE, "--token %lld: the calls of %s have at most %lld tokens, 0 to %lld",
	                     (long long)k->table.token, k->line.ref, (long long)most, (long long)most - 1);
}

/* All comparisons stay open, because the table reads each reference tensor once
 * for all candidates. */
static vn_status make_table(settings *k, vn_many *m, vn_comparison **c, vn_error *err)
{
	vn_status st = check_files(k, err);
	vn_output out;
	char      who[VN_MANY_WHO], again[VN_SHELL_LINE], chosen[128];

	*m = (vn_many) { .ref = k->line.ref };
	vn_compare_settings(&k->line, &m->notes);
	for (int i = 0; i < k->line.n_many && !st; i++) {
		vn_error why = { "" };
		c[i] = vn_alloc_zero(1, sizeof *c[i]);
		vn_compare_line one = k->line;
		one.cand = one.many[i];
		one.ranks = &one.many[i];
		one.n_ranks = 1;
		c[i]->opened.request.options = &k->line.how.o;
		vn_compare_again(&one, again);
		c[i]->opened.request.again = *again ? again : NULL;
		const vn_status judged = vn_compare_judge(&one, c[i], chosen, sizeof chosen, &why);
		st = vn_compare_add(m, k->line.many[i], c[i], "", judged, &why, err);
		c[i]->opened.request.again = NULL; /* the line was for this candidate alone */
		if (!st && judged)
			vn_say(stderr, "vernier table: %s%s\n", why.text, judged == VN_ERR_DAMAGED ? " (--allow digest)" : "");
		if (!st)
			vn_lines_print_refusals(&c[i]->result.remarks.refusals, "", "", stderr);
	}
	st = st ? st : check_token(k, c, err);
	k->table.many = m;
	k->table.of = c;
	const bool printed = m->n_rows || (k->table.form == VN_TABLE_JSON && !k->path); /* the reasons at least */
	if (st || !printed || (st = vn_output_open(&out, k->path, VN_PLACE_REPORT, k->line.force, err)))
		return st;
	st = vn_table_write(&k->table, out.file, err);
	if ((st = vn_output_close(&out, st, err)))
		return st;
	if (k->path)
		vn_say(stdout, "%s: %s. Written: %s\n", vn_many_say_all(m), vn_many_say_who(m, who), k->path);
	return VN_OK;
}

int cmd_table(int argc, char **argv)
{
	settings       k = { .first = FIRST_DEFAULT,
		                 .form = UNSAID,
		                 .line.command = &vn_compare_command,
		                 .line.sides = { .batch_row = -1, .ref_batch_row = -1 } };
	vn_comparison *c[VN_MANY_MOST] = { NULL };
	vn_many        m = { 0 };
	vn_error       err = { "" };
	const int      said = parse_arguments(&k, argc, argv);

	if (said)
		return said == 1 ? 0 : 2;
	const vn_status st = make_table(&k, &m, c, &err);
	const int       status = st ? 2 : vn_many_status(&m);
	if (st)
		vn_say(stderr, "vernier table: %s\n", err.text);
	else
		print_warnings(&m);
	if (status == 2 || k.table.form == VN_TABLE_CSV) /* a CSV has no place for them */
		vn_options_print_notes("table", &m.notes);
	vn_warnings_end("table", k.line.how.o.strict && status < 2, 0);
	vn_many_finish(&m);
	for (int i = 0; i < VN_MANY_MOST && c[i]; i++) {
		vn_comparison_close(c[i]);
		free(c[i]);
	}
	return status;
}
