/* test_options.c: one table is parsed, and help, manual and completions are printed from it. */
#include "libref/base/options.h"
#include "tests/support/suite.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct command {
	const char *model, *faults, *map[2], *operand[4];
	double      scale;
	int64_t     row;
	int         threads, format, n_maps, n_operands;
	bool        strict;
} command;

static const char *const sizes = "small|large";

static vn_status take_operand(void *to, const vn_option *o, const char *value, vn_error *err)
{
	command *k = to;
	(void)o;
	if (k->n_operands == 4)
		return vn_fail(err, VN_ERR_USAGE, "more than 4 files");
	k->operand[k->n_operands++] = value;
	return VN_OK;
}

static const vn_option rows[] = {
	VN_GROUP("Input"),
	{ "model", 'm', VN_INTO(command, model), .argument = "MODEL", .words = &sizes,
	  .help = "The model. Default: none." },
	{ "names", 0, VN_COLLECT(command, map, n_maps), .argument = "MAP", .help = "A map." },
	{ "row", 0, VN_INTO(command, row), VN_RANGE(0, 9), .argument = "N", .help = "A row." },
	{ "scale", 0, VN_INTO(command, scale), VN_RANGE(1, 10), .argument = "X",
	  .help = "A scale, such as .5 with --row and \\." },
	VN_GROUP("Output"),
	{ "threads", 0, VN_INTO(command, threads), VN_RANGE(1, 1024), .argument = "N", .help = "Threads." },
	{ "format", 0, VN_CHOOSE(command, format), .argument = "text|json", .help = "The form. Default: text." },
	{ "faults", 0, VN_MAYBE(command, faults), .argument = "GLOB", .help = "Faults." },
	{ "strict", 's', VN_INTO(command, strict), .help = "It's [strict]: fail." },
};
static const vn_command plain = { .name = "try",
	                              .synopsis = "A [OPTION]...",
	                              .about = "Try it.",
	                              .option = rows,
	                              .n = sizeof rows / sizeof *rows,
	                              .status = "0 done",
	                              .letter = 't' };

static const vn_option ordered_rows[] = {
	{ "strict", 's', VN_INTO(command, strict), .help = "Fail." },
	{ NULL, 0, .kind = VN_TAKE_EACH, .take = take_operand },
};
static const vn_command ordered = { "try", "A...", "Try it.", ordered_rows, 2, NULL, true, 0, NULL, NULL, false };

/* A table of two commands. */
static const vn_option shared_rows[] = {
	{ "model", 'm', VN_INTO(command, model), .argument = "MODEL", .help = "May be given.", .only = "try" },
	{ "model", 'm', VN_INTO(command, model), .argument = "MODEL", .help = "Must be given.", .only = "other" },
	{ "strict", 's', VN_INTO(command, strict), .help = "Fail.", .only = "try" },
	{ "strict-row", 0, VN_INTO(command, row), VN_RANGE(0, 9), .argument = "N", .help = "A row." },
};
static const vn_command shared = { "try", "A", "Try it.", shared_rows, 4, NULL, false, 0, "other", NULL, false };
static const vn_command other = { "other", "A", "Try it.", shared_rows, 4, NULL, false, 0, "try", NULL, false };

/* Options that exclude or need others. */
static const vn_option beside_rows[] = {
	{ "model", 'm', VN_INTO(command, model), .argument = "MODEL", .help = "A model.", .not_with = "row|scale" },
	{ "row", 0, VN_INTO(command, row), VN_RANGE(0, 9), .argument = "N", .help = "A row.", .needs = "faults|threads" },
	{ "scale", 0, VN_INTO(command, scale), VN_RANGE(1, 10), .argument = "X", .help = "A scale.", .not_with = "strict",
	  .because = "is no flag" },
	{ "threads", 0, VN_INTO(command, threads), VN_RANGE(1, 1024), .argument = "N", .help = "Threads." },
	{ "strict", 's', VN_INTO(command, strict), .help = "Fail." },
};
static const vn_command beside = { "try", "A", "Try it.", beside_rows, 5, NULL, false, 0, NULL, NULL, false };

static command k;

/* Reads a command line made of words. `said` gets what it printed on stderr or stdout. */
static char said[8192];
static int  rest;

static int read_line(const vn_command *c, const char *words)
{
	static char room[400];
	char       *argv[32] = { (char[]) { "try" } };
	int         argc = 1;
	FILE       *f = tmpfile();

	snprintf(room, sizeof room, "%s", words);
	for (char *w = strtok(room, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	fflush(stdout);
	const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
	CU_ASSERT_FATAL(f && dup2(fileno(f), STDOUT_FILENO) >= 0 && dup2(fileno(f), STDERR_FILENO) >= 0);
	k = (command) { 0 };
	const int st = vn_options_read(c, argc, argv, &k);
	rest = argc - optind;
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	rewind(f);
	said[fread(said, 1, sizeof said - 1, f)] = '\0';
	fclose(f);
	return st;
}

static void each_kind_is_stored(void)
{
	CU_ASSERT_EQUAL(
		read_line(&plain, "a -m tiny --names x --names=y --row 9 --scale 2.5 b --threads 4 --format json -s"), 0);
	CU_ASSERT_STRING_EQUAL(k.model, "tiny");
	CU_ASSERT_EQUAL_FATAL(k.n_maps, 2);
	CU_ASSERT_STRING_EQUAL(k.map[1], "y");
	CU_ASSERT_EQUAL(k.row, 9);
	CU_ASSERT_EQUAL(k.scale, 2.5);
	CU_ASSERT_EQUAL(k.threads, 4);
	CU_ASSERT_EQUAL(k.format, 1);
	CU_ASSERT_TRUE(k.strict);
	CU_ASSERT_EQUAL(rest, 2);
	CU_ASSERT_STRING_EQUAL(said, "");
}

static void what_was_not_given_is_left_alone(void)
{
	CU_ASSERT_EQUAL(read_line(&plain, ""), 0);
	CU_ASSERT_PTR_NULL(k.model);
	CU_ASSERT_EQUAL(k.threads + k.n_maps + k.format, 0);
	CU_ASSERT_FALSE(k.strict);
}

static void a_wrong_line_names_the_option_and_the_help(void)
{
	/* clang-format off */
	static const struct { const char *line, *said; } wrong[] = {
		{ "--nothing",            "unknown option '--nothing'" },
		{ "-x",                   "unknown option '-x'" },
		{ "--modle a",            "unknown option '--modle' (did you mean '--model'?)" },
		{ "--json",               "unknown option '--json' (did you mean '--format json'?)" },
		{ "--row=1 --s",          "ambiguous option '--s': --scale, --strict" },
		{ "--model",              "--model needs a value: --model MODEL" },
		{ "--format",             "--format needs a value: text or json" },
		{ "--model a --model b",  "--model is given twice" },
		{ "-m a --model b",       "--model is given twice" },
		{ "--row 1 --row 2",      "--row is given twice" },
		{ "--row 10",             "--row takes a whole number from 0 to 9, not '10'" },
		{ "--row 1x",             "--row takes a whole number from 0 to 9, not '1x'" },
		{ "--scale nan",          "--scale takes a number from 1 to 10, not 'nan'" },
		{ "--format xml",         "--format takes text or json, not 'xml'" },
		{ "--format tex",         "--format takes text or json, not 'tex' (did you mean 'text'?)" },
		{ "--format text|json",   "--format takes text or json, not 'text|json'" },
		{ "--names a --names b --names c", "--names can be given at most 2 times" },
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char all[200];
		CU_ASSERT_EQUAL(read_line(&plain, wrong[i].line), 2);
		snprintf(all, sizeof all, "vernier try: %s\n(vernier try --help)\n", wrong[i].said);
		CU_ASSERT_STRING_EQUAL(said, all);
	}
	CU_ASSERT_EQUAL(read_line(&ordered, "--model a"), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "the model is given without an option, vernier try A..."));
}

static void an_optional_argument_stands_behind_an_equals_sign(void)
{
	CU_ASSERT_EQUAL(read_line(&plain, "--faults R1"), 0);
	CU_ASSERT_STRING_EQUAL(k.faults, "");
	CU_ASSERT_EQUAL(rest, 1);
	CU_ASSERT_EQUAL(read_line(&plain, "--faults=R1"), 0);
	CU_ASSERT_STRING_EQUAL(k.faults, "R1");
	CU_ASSERT_EQUAL(read_line(&plain, "-h"), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "options: "));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "--faults[=GLOB], "));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "All of it: vernier try --help\n"));
	CU_ASSERT_EQUAL(read_line(&plain, "--help"), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "--faults[=GLOB] "));
}

static void options_exclude_and_need_others(void)
{
	CU_ASSERT_EQUAL(read_line(&beside, "--model m --row 1 --threads 2"), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "vernier try: --model and --row exclude each other\n"));
	CU_ASSERT_EQUAL(read_line(&beside, "-s --scale 2"), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "vernier try: --scale is no flag: --strict cannot be used with it\n"));
	CU_ASSERT_EQUAL(read_line(&beside, "--row 1"), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "vernier try: --row needs --threads N\n"));
	CU_ASSERT_EQUAL(read_line(&beside, "--row 1 --threads 2 --scale 3"), 0);
}

static void a_flag_may_be_repeated(void)
{
	CU_ASSERT_EQUAL(read_line(&plain, "-s -s --strict"), 0);
	CU_ASSERT_TRUE(k.strict);
}

static void operands_come_in_the_order_of_the_line(void)
{
	CU_ASSERT_EQUAL(read_line(&ordered, "a -s b -- -s"), 0);
	CU_ASSERT_EQUAL_FATAL(k.n_operands, 3);
	CU_ASSERT_STRING_EQUAL(k.operand[1], "b");
	CU_ASSERT_STRING_EQUAL(k.operand[2], "-s");
	CU_ASSERT_EQUAL(read_line(&ordered, "a b c d e"), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "more than 4 files"));
}

static void an_option_of_one_command_is_unknown_to_the_other(void)
{
	CU_ASSERT_EQUAL(read_line(&shared, "-s --mod a --strict-row 3"), 0);
	CU_ASSERT_TRUE(k.strict && k.row == 3);
	CU_ASSERT_EQUAL(read_line(&other, "-m a --strict-r 3"), 0);
	CU_ASSERT_STRING_EQUAL(k.model, "a");
	CU_ASSERT_EQUAL(read_line(&other, "--strict 3"), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "other: --strict is an option of vernier try, not of vernier other\n"));
	CU_ASSERT_EQUAL(read_line(&other, "-s"), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "unknown option '-s'"));
	CU_ASSERT_EQUAL(read_line(&shared, "--help"), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "The options are those of vernier other.\n"));
	CU_ASSERT_EQUAL(read_line(&other, "--help"), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "The options are those of vernier try, without --strict.\n"));
	CU_ASSERT_PTR_NULL(strstr(said, "--strict "));
	CU_ASSERT_PTR_NULL(strstr(said, "May be given."));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "Must be given."));
}

static void help_has_every_option_and_keeps_to_its_width(void)
{
	CU_ASSERT_EQUAL(read_line(&plain, "--help --nothing"), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "usage: vernier try A [OPTION]...\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "\nInput:\n  -m, --model MODEL "));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "MODEL: small, large."));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "A map. May be repeated."));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "  -h, --help "));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "Exit status: 0 done.\n"));

	static char text[600];
	for (size_t i = 0; i + 4 < sizeof text; i += 4)
		memcpy(text + i, "abc ", 5);
	const vn_option  one[] = { { "an-option-with-a-long-name", 0, VN_INTO(command, model), .argument = "ARGUMENT",
		                         .help = text } };
	const vn_command wide = { "try", "A", text, one, 1, text, false, 0, NULL, NULL, false };
	CU_ASSERT_EQUAL(read_line(&wide, "--help"), 1);
	int lines = 0;
	for (const char *line = said; *line; lines++) {
		const size_t n = strcspn(line, "\n");
		CU_ASSERT(n <= 100);
		CU_ASSERT(n == 0 || line[n - 1] != ' ');
		line += n + (line[n] == '\n');
	}
	CU_ASSERT(lines > 18);
}

/* The text that `print` writes, to be freed. */
#define PRINTED(text, call) \
	char *text = NULL; \
	do { \
		size_t length; \
		FILE  *to = open_memstream(&text, &length); \
		CU_ASSERT_PTR_NOT_NULL_FATAL(to); \
		call; \
		fclose(to); \
	} while (0)

static void the_manual_has_names_in_bold_and_no_escape_by_accident(void)
{
	PRINTED(text, vn_options_section(&plain, "vernier", true, to));
	CU_ASSERT_PTR_NOT_NULL(strstr(
		text, ".TP\n\\fB-m\\fR, \\fB--model\\fR \\fIMODEL\\fR\nThe model.\nDefault: none.\nMODEL: small, large.\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "with \\fB--row\\fR and \\e.\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "Input"));
	free(text);
}

static void a_section_has_forms_description_and_exit_status(void)
{
	static const vn_command forms = { .name = "try",
		                              .synopsis = "A\nB --row N",
		                              .about = "Try it.\nOr --row.",
		                              .option = ordered_rows,
		                              .n = 2,
		                              .status = "0 done" };
	PRINTED(text, vn_options_section(&forms, "vernier", true, to));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\\fBvernier try\\fR A\n.br\n\\fBvernier try\\fR B \\fB--row\\fR N\n.PP\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, ".PP\nTry it.\n.PP\nOr \\fB--row\\fR.\n.TP\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n.PP\nExit status: 0 done.\n"));
	free(text);
	PRINTED(brief, vn_options_section(&forms, "vernier", false, to));
	CU_ASSERT_STRING_EQUAL(brief, "\\fBvernier try\\fR A\n.br\n\\fBvernier try\\fR B \\fB--row\\fR N\n"
	                              ".PP\nTry it.\n.PP\nOr \\fB--row\\fR.\n.PP\nExit status: 0 done.\n");
	free(brief);
}

static void completions_have_commands_options_and_values(void)
{
	const vn_completed commands[] = { { "try", "Try it", &plain, "a|b", false, false },
		                              { "other", "It's other", NULL, "a.md|b.md", false, true } };
	const vn_offer     offer[] = { { "names", "hf|vllm" } };
	PRINTED(offered, vn_options_completions(&(vn_completions) { commands, offer, 2, 1 }, to));
	CU_ASSERT_EQUAL(strncmp(offered, "\ttry\twords\ta|b\tTry it\n", 20), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\n\t--try\t\t\tTry it\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\n\tother\twords\ta.md|b.md\tIt'\\''s other\nother\t\tnothing\t\t\n"));
	CU_ASSERT_PTR_NULL(strstr(offered, "--other"));
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\ntry\t--names\teither\thf|vllm\tA map\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\ntry\t--threads\tnothing\t\t"));
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\ntry\t--format\twords\ttext|json\tThe form\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\ntry\t--model\twords\tsmall|large\t"));
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\ntry\t-m\twords\tsmall|large\t"));
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\ntry\t--strict\t\t\tIt'\\''s [strict]: fail\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(offered, "\ntry\t--help\t\t\tPrint this help; -h: in short\ntry\t-h\t"));
	free(offered);
}

/* Whether the option is given in a command line of one word. */
static bool gives(const vn_command *c, const char *word, const char *name)
{
	char  text[40];
	char *argv[] = { (char[]) { "try" }, text };

	snprintf(text, sizeof text, "%s", word);
	return vn_option_is_given(c, name, 2, argv);
}

static void an_option_is_seen_before_it_is_read(void)
{
	char *after[] = { (char[]) { "try" }, (char[]) { "a" }, (char[]) { "--" }, (char[]) { "--model" } };

	CU_ASSERT_TRUE(gives(&plain, "--model", "model"));
	CU_ASSERT_TRUE(gives(&plain, "--model=a", "model"));
	CU_ASSERT_TRUE(gives(&plain, "--m", "model"));
	CU_ASSERT_TRUE(gives(&plain, "--mo=a", "model"));
	CU_ASSERT_FALSE(gives(&plain, "--", "model"));
	CU_ASSERT_FALSE(gives(&plain, "--modest", "model"));
	CU_ASSERT_FALSE(gives(&plain, "model", "model"));
	CU_ASSERT_FALSE(gives(&plain, "--s", "strict")); /* or --scale */
	CU_ASSERT_TRUE(gives(&plain, "--st", "strict"));
	CU_ASSERT_FALSE(gives(&ordered, "--model", "model")); /* not in its table */
	CU_ASSERT_TRUE(gives(&shared, "--strict", "strict")); /* though --strict-row begins so */
	CU_ASSERT_FALSE(gives(&other, "--strict", "strict"));
	CU_ASSERT_FALSE(vn_option_is_given(&plain, "model", 4, after));
}

static void note_value(void *text, const vn_option *o, const char *value)
{
	strcat(text, o->name);
	strcat(text, value ? "=" : " ");
	strcat(text, value ? value : "");
	strcat(text, value ? " " : "");
}

/* What was never given is not among them: NULL, false, a number below its range. */
static void the_values_that_are_set_are_gone_through(void)
{
	command given = { .row = -1 };
	char    text[200] = "";

	vn_options_each(&plain, &given, note_value, text);
	CU_ASSERT_STRING_EQUAL(text, "format=0 ");
	*text = 0;
	given = (command) { .model = "m", .map = { "a", "b" }, .n_maps = 2, .row = 0, .threads = 3, .strict = true };
	vn_options_each(&plain, &given, note_value, text);
	CU_ASSERT_STRING_EQUAL(text, "model=m names=a names=b row=0 threads=3 format=0 strict ");
	*text = 0;
	vn_options_each(&other, &given, note_value, text); /* only its own */
	CU_ASSERT_STRING_EQUAL(text, "model=m strict-row=0 ");
}

static vn_status find_setting(const char *by, const char *name, bool files, const char **value, const char **from,
                              vn_error *err)
{
	CU_ASSERT_STRING_EQUAL(by, "try");
	*from = files ? "a file" : "a variable";
	*value = strcmp(name, "format") == 0 ? (files ? "xml" : "json") : "given";
	return strcmp(name, "faults") == 0 ? vn_fail(err, VN_ERR_FORMAT, "a bad file") : VN_OK;
}

static void settings_count_where_no_argument_does(void)
{
	const vn_option set[] = {
		{ "model", 'm', VN_INTO(command, model), .argument = "MODEL", .help = "M.", .set_without = "threads|row" },
		{ "names", 0, VN_COLLECT(command, map, n_maps), .argument = "MAP", .help = "N.", .set_without = "",
		  .set_with = "strict" },
		{ "format", 0, VN_CHOOSE(command, format), .argument = "text|json", .help = "F.", .set_without = "" },
		{ "threads", 0, VN_INTO(command, threads), VN_RANGE(1, 9), .argument = "N", .help = "T." },
		{ "strict", 's', VN_INTO(command, strict), .help = "S." },
		VN_NO_CONFIG_OPTION,
		{ "faults", 0, VN_INTO(command, faults), .argument = "X", .help = "X.", .set_without = "", .set_with = "row" },
		{ "row", 0, VN_INTO(command, row), VN_RANGE(0, 9), .argument = "N", .help = "R." },
	};
	const vn_command try = { .name = "try", .synopsis = "A", .about = "T.", .option = set, .n = 8, .status = "0" };

	CU_ASSERT(read_line(&try, "a") == 0 && !k.model && !vn_option_origin("model"));
	vn_options_settings(find_setting);
	CU_ASSERT_EQUAL(read_line(&try, "a"), 0);
	CU_ASSERT_STRING_EQUAL(k.model, "given");
	CU_ASSERT_STRING_EQUAL(vn_option_origin("model"), "a file");
	CU_ASSERT_STRING_EQUAL(said, "vernier try: note: --model given: from a file\n");
	CU_ASSERT(k.n_maps == 0 && k.format == 0 && !vn_option_origin("format")); /* xml is a word of another command */
	CU_ASSERT_EQUAL(read_line(&try, "a -m mine -s --no-config"), 0);
	CU_ASSERT_STRING_EQUAL(k.model, "mine");
	CU_ASSERT(!vn_option_origin("model") && k.n_maps == 1 && k.format == 1);
	CU_ASSERT_STRING_EQUAL(vn_option_origin("names"), "a variable");
	CU_ASSERT_STRING_EQUAL(vn_option_origin("format"), "a variable");
	CU_ASSERT(read_line(&try, "a --threads 3") == 0 && !k.model);
	CU_ASSERT_EQUAL(read_line(&try, "a --row 3"), 2);
	CU_ASSERT_STRING_EQUAL(said, "vernier try: a bad file\n(vernier try --help)\n");
	vn_options_settings(NULL);
}

static void what_is_excluded_is_told_before_what_is_needed(void)
{
	const vn_option set[] = {
		{ "row", 0, VN_INTO(command, row), VN_RANGE(0, 9), .argument = "N", .needs = "model|faults" },
		{ "model", 0, VN_INTO(command, model), .argument = "MODEL" },
		{ "faults", 0, VN_INTO(command, faults), .argument = "X" },
		{ "strict", 0, VN_INTO(command, strict), .not_with = "model|threads", .because = "runs nothing" },
		{ "names", 0, VN_COLLECT(command, map, n_maps), .argument = "MAP", .not_with = "row|faults" },
		{ "threads", 0, VN_INTO(command, threads), VN_RANGE(1, 9), .argument = "N", .needs = "model" },
		{ "other", 0, VN_INTO(command, strict), .not_with = "model|faults" },
	};
	const vn_command         among = { .name = "try", .option = set, .n = 7 };
	static const char *const wrong[][2] = {
		{ "--row 1", "--row needs --model MODEL or --faults X" },
		{ "--row 1 --strict", "--row needs --faults X" },
		{ "--row 1 --other", "--row needs --model MODEL or --faults X, which other options exclude" },
		{ "--row 1 --names a", "--names and --row exclude each other" },
		{ "--threads 1", "--threads needs --model MODEL" },
		{ "--threads 1 --strict", "--strict runs nothing: --threads cannot be used with it" },
		{ "--row 1 --strict --model a", "--strict runs nothing: --model cannot be used with it" },
	};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CU_ASSERT_EQUAL(read_line(&among, wrong[i][0]), 2);
		CU_ASSERT(strncmp(said, "vernier try: ", 13) == 0 && strcspn(said + 13, "\n") == strlen(wrong[i][1]));
		CU_ASSERT_NSTRING_EQUAL(said + 13, wrong[i][1], strlen(wrong[i][1]));
	}
	CU_ASSERT_EQUAL(read_line(&among, "--row 1 --faults x --strict"), 0);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(each_kind_is_stored),
		TEST(what_was_not_given_is_left_alone),
		TEST(a_wrong_line_names_the_option_and_the_help),
		TEST(an_optional_argument_stands_behind_an_equals_sign),
		TEST(a_flag_may_be_repeated),
		TEST(options_exclude_and_need_others),
		TEST(operands_come_in_the_order_of_the_line),
		TEST(an_option_of_one_command_is_unknown_to_the_other),
		TEST(help_has_every_option_and_keeps_to_its_width),
		TEST(the_manual_has_names_in_bold_and_no_escape_by_accident),
		TEST(a_section_has_forms_description_and_exit_status),
		TEST(completions_have_commands_options_and_values),
		TEST(an_option_is_seen_before_it_is_read),
		TEST(the_values_that_are_set_are_gone_through),
		TEST(settings_count_where_no_argument_does),
		TEST(what_is_excluded_is_told_before_what_is_needed),
		CU_TEST_INFO_NULL,
	};
	return run_suite("options", tests);
}
