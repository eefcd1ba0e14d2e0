/* main.c: finds the command in a table and runs it. */
#include "capture/base/shipped.h"
#include "capture/commands.h"
#include "capture/file/child.h"
#include "compare/against/against.h"
#include "compare/commands.h"
#include "compare/crash.h"
#include "compare/metrics/kernel.h"
#ifdef VERNIER_GPU
#include "libgpu/commands.h"
#endif

#include "libref/base/mapped.h"
#include "libref/base/nearest.h"
#include "libref/base/options.h"
#include "libref/base/printed.h"
#include "libref/base/room.h"
#include "libref/base/sanitizer.h"
#include "libref/base/spin.h"
#include "libref/base/temporary.h"
#include "libref/base/text.h"
#include "libref/base/trouble.h"
#include "libref/model/synth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Opens the standard descriptors that are closed. Otherwise a file opened later would take such a
 * number, and printed text would go into it. */
static void occupy_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		/* A descriptor opened for reading cannot be written, so output that goes nowhere is
		 * reported as trouble. */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd) {
			fputs("vernier: /dev/null cannot be opened in place of a standard stream that is closed\n", stderr);
			_exit(2);
		}
}

static int run_capture(int argc, char **argv)
{
	return cmd_capture(argc, argv, &vn_against_judge);
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
	enum { NEVER, WITH_MODEL, ALWAYS } computes; /* runs a model; WITH_MODEL: if --model is given */
	const vn_command *options;
} command[] = {
#ifdef VERNIER_GPU
	{ "capture", run_capture, "run a model on the reference or the GPU, and record it", ALWAYS, &vn_capture_command },
#else
	{ "capture", run_capture, "run a model on the reference, and record it", ALWAYS, &vn_capture_command },
#endif
	{ "compare", cmd_compare, "judge one recording by another: where do they begin to differ?", WITH_MODEL,
	  &vn_compare_command },
	{ "explain", cmd_explain, "compare, and name the mistake that makes each difference", ALWAYS, &vn_explain_command },
	{ "table", cmd_table, "show the values of two recordings or more side by side", WITH_MODEL, &vn_table_command },
	{ "show", cmd_show, "print what a recording holds", NEVER, &vn_show_command },
	{ "import", cmd_import, "convert another engine's dump to a recording", NEVER, &vn_import_command },
	{ "weights", cmd_weights, "list the weights that differ between two models, and how", NEVER, &vn_weights_command },
	{ "isolate", cmd_isolate, "find the operations that must be replaced to repair a run", ALWAYS,
	  &vn_isolate_command },
	{ "evaluate", cmd_evaluate, "perplexity and agreement of two engines on a text", ALWAYS, &vn_evaluate_command },
	{ "calibrate", cmd_calibrate, "fit limits to correct runs", WITH_MODEL, &vn_calibrate_command },
	{ "limits", cmd_limits, "check a limits file and print the limits that it sets", NEVER, &vn_limits_command },
	{ "merge", cmd_merge, "join the results of several processes that compared folders", NEVER, &vn_merge_command },
	{ "points", cmd_points, "list the checkpoints of a model, and the known mistakes", NEVER, &vn_points_command },
#ifdef VERNIER_GPU
	{ "devices", cmd_devices, "list the Vulkan devices of this machine", NEVER, &vn_devices_command },
#endif
	{ "selftest", cmd_selftest, "check that compare catches the mistakes it should catch", ALWAYS,
	  &vn_selftest_command },
	{ "synth", cmd_synth, "write a synthetic model of a real shape", NEVER, &vn_synth_command },
};

/* Fits a terminal of 24 lines of 80 columns; a narrower one wraps it. */
static void print_usage(FILE *to)
{
	static const struct {
		const char *text;
		int         indent;
	} end[] = {
		{ "  vernier capture ref MODEL --prompt TEXT -o ref.h5", 4 },
		{ "  vernier compare ref.h5 cand.h5 --model MODEL -o report.html", 4 },
		{ "  vernier explain ref.h5 cand.h5 --model MODEL", 4 },
		{ "vernier help COMMAND: options; usage.md: guide; compare.md: terms; --version.", 0 },
		{ "Exit status: 0 within limits or done, 1 outside limits, 2 trouble.", 0 },
	};

	vn_options_wrap(to, "vernier: where do two runs of one transformer model differ, and why?", 0, 0);
	fputs("\n\n", to);
	for (size_t i = 0; i < sizeof command / sizeof *command; i++) {
		const int indent = fprintf(to, "  %-10s ", command[i].name);
		vn_options_wrap(to, command[i].help, indent, indent);
		fputc('\n', to);
	}
	for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
		fputs(i == 0 ? "\n" : "", to);
		const int at = fprintf(to, "%*s", (int)strspn(end[i].text, " "), "");
		vn_options_wrap(to, end[i].text + at, at, end[i].indent);
		fputc('\n', to);
	}
}

/* Whether an earlier command has the same table of options, as compare has that of explain. */
static bool has_options_of_another(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (command[k].options->option == command[i].options->option)
			return true;
	return false;
}

/* Prints the command's section of vernier.1: `help --man COMMAND`. */
static int print_manual(const char *name)
{
	for (size_t i = 0; i < sizeof command / sizeof *command; i++)
		if (strcmp(name, command[i].name) == 0) {
			vn_options_section(command[i].options, "vernier", !has_options_of_another(i), stdout);
			return 0;
		}
	return vn_complain("help", "--man: no command '%.40s'", name);
}

/* Writes a manual page for each command to FOLDER/vernier-COMMAND.1: `help --man-pages FOLDER`. */
static int write_manual_pages(const char *folder)
{
	for (size_t i = 0; i < sizeof command / sizeof *command; i++) {
		char  path[PATH_MAX];
		FILE *to;

		if (!command[i].options)
			continue;
		if (snprintf(path, sizeof path, "%s/vernier-%s.1", folder, command[i].name) >= (int)sizeof path ||
		    !(to = fopen(path, "w")))
			return vn_complain("help", "--man-pages: %s: %s", path, strerror(errno));
		vn_options_page(command[i].options, "vernier", command[i].help, to);
		const bool whole = !ferror(to);
		if (fclose(to) != 0 || !whole)
			return vn_complain("help", "--man-pages: %s: cannot be written: %s", path, strerror(errno));
	}
	return 0;
}

/* Prints the prefix that holds share/vernier and include: `help --prefix`. */
static int print_prefix(void)
{
	static const char below[] = "/share/vernier/limits/fp32.yaml";
	char              path[PATH_MAX];
	vn_error          err;

	if (vn_shipped_find("limits", "fp32.yaml", path, &err))
		return vn_complain("help", "--prefix: %s", err.text);
	const size_t n = strlen(path), tail = sizeof below - 1;
	if (n < tail || strcmp(path + n - tail, below) != 0)
		return vn_complain("help", "--prefix: this program is not installed: its limits are %s", path);
	printf("%.*s\n", (int)(n - tail), path);
	return 0;
}

static bool is_page(const char *name)
{
	const size_t n = strlen(name);
	return n > 3 && strcmp(name + n - 3, ".md") == 0 && *name != '/' && !strstr(name, "..");
}

/* "usage" for "usage.md", "guides/c" for "guides/c.md"; a command of that name comes first. */
static bool is_bare_page(const char *name, char page[NAME_MAX + 1])
{
	char     path[PATH_MAX];
	vn_error err;

	for (size_t i = 0; i < sizeof command / sizeof *command; i++)
		if (strcmp(name, command[i].name) == 0)
			return false;
	return snprintf(page, NAME_MAX + 1, "%s.md", name) <= NAME_MAX && is_page(page) &&
	       !vn_shipped_find(".", page, path, &err);
}

/* Prints a page of the documentation: `help usage.md`, `help guides/c.md`. */
static int print_page(const char *name)
{
	char     path[PATH_MAX], block[8192];
	vn_error err;
	size_t   n;

	if (vn_shipped_find(".", name, path, &err)) {
		fprintf(stderr, "vernier help: no page '%.60s'; vernier help usage.md has links to all pages\n", name);
		return 2;
	}
	FILE *from = fopen(path, "r");
	if (!from)
		return vn_complain("help", "%s: %s", path, strerror(errno));
	while ((n = fread(block, 1, sizeof block, from)) > 0)
		fwrite(block, 1, n, stdout);
	const bool whole = !ferror(from);
	fclose(from);
	return whole ? 0 : vn_complain("help", "%s: cannot be read", path);
}

/* The possible values of a command's first argument; NULL: file names. */
static const char *first_values(const char *name, const char *limits, const char *shapes)
{
#ifdef VERNIER_GPU
	static const char engines[] = "ref|gpu";
#else
	static const char engines[] = "ref";
#endif
	return strcmp(name, "capture") == 0  ? engines
	       : strcmp(name, "synth") == 0  ? shapes
	       : strcmp(name, "limits") == 0 ? limits
	                                     : NULL;
}

/* Adds the pages of a folder of the documentation as `help` takes them: "usage.md|guides/c.md". */
static vn_status add_pages(const char *folder, const char *before, char *text, size_t room, vn_error *err)
{
	char            names[1000];
	const vn_status st = vn_shipped_names(folder, ".md", names, sizeof names, err);

	for (const char *name = names; !st && *name; name += strcspn(name, "|"), name += *name == '|')
		vn_text_add(text, room, "%s%s%.*s.md", *text ? "|" : "", before, (int)strcspn(name, "|"), name);
	return st;
}

/* Prints completions: `help --completions SHELL`. */
static int print_completions(const char *name)
{
	enum { N = sizeof command / sizeof *command };
	vn_completed of[N];
	vn_shell     shell;
	vn_error     err;
	char         words[40], limits[1000], maps[400], shapes[400] = "", pages[2000] = "";

	if (!vn_shell_from_name(name, &shell))
		return vn_complain("help", "--completions takes %s, not '%.40s'",
		                   vn_text_words(vn_shell_names, words, sizeof words), name);
	if (vn_shipped_names("limits", "", limits, sizeof limits, &err) ||
	    vn_shipped_names("names", ".yaml", maps, sizeof maps, &err) || add_pages(".", "", pages, sizeof pages, &err) ||
	    add_pages("guides", "guides/", pages, sizeof pages, &err))
		return vn_complain("help", "--completions: %s", err.text);
	for (int i = 0; vn_synth_shape(i); i++)
		vn_text_add(shapes, sizeof shapes, "%s%s", i ? "|" : "", vn_synth_shape(i));
	for (int i = 0; i < N; i++)
		of[i] = (vn_completed) { command[i].name, command[i].help, command[i].options,
			                     first_values(command[i].name, limits, shapes),
			                     strcmp(command[i].name, "limits") == 0 };
	const vn_offer offer[] = { { "limits", limits }, { "names", maps }, { "ref-names", maps } };
	vn_options_completions(
		shell, &(vn_completions) { "vernier", of, offer, N, sizeof offer / sizeof *offer, "--help|--version", pages },
		stdout);
	return 0;
}

/* Whether the command computes. Restarting the program (vn_spin_briefly) costs as much as
 * comparing 0.1 GB. */
static bool runs_model(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof command / sizeof *command; i++)
		if (strcmp(argv[1], command[i].name) == 0)
			return command[i].computes == ALWAYS ||
			       (command[i].computes == WITH_MODEL &&
			        vn_option_is_given(command[i].options, "model", argc - 1, argv + 1));
	return false;
}

/* The names that other programs give to our commands. */
static const struct {
	const char *word, *is;
} elsewhere[] = {
	{ "diff", "compare" },   { "cmp", "compare" },         { "record", "capture" }, { "run", "capture" },
	{ "dump", "capture" },   { "convert", "import" },      { "info", "show" },      { "list", "points" },
	{ "bisect", "isolate" }, { "perplexity", "evaluate" }, { "ppl", "evaluate" },
};

/* HDF5 crashes when memory is short at its start. A recording's metadata needs some more. */
enum { LEAST_ROOM = 16 << 20 };

static int run_command(const char *name, int argc, char **argv)
{
	if (!vn_room_for(LEAST_ROOM)) {
		fprintf(stderr, "vernier: 16 MB of address space are needed but not available: raise the limit (ulimit -v)\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof command / sizeof *command; i++)
		if (strcmp(name, command[i].name) == 0)
			return command[i].run(argc, argv);
	vn_nearest near;
	vn_nearest_start(&near, name);
	for (size_t i = 0; i < sizeof command / sizeof *command; i++)
		vn_nearest_try(&near, command[i].name);
	vn_nearest_try_words(&near, "help|version|--help|--version");
	if (strcmp(name, "-V") == 0)
		vn_nearest_settle(&near, "--version");
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (strcmp(name, elsewhere[i].word) == 0)
			vn_nearest_settle(&near, elsewhere[i].is);
	const bool option = *name == '-' && !vn_nearest_found(&near);
	fprintf(stderr, "vernier: no command '%.40s'%s; %s\n", name, vn_nearest_hint(&near),
	        option ? "options come after the command: vernier COMMAND [OPTION]..." : "vernier help lists the commands");
	return 2;
}

/* Output that could not be printed counts as failure: a full disk behind `>` is trouble. So is a
 * run in which the system refused a request anywhere, because the answer may be incomplete
 * (trouble.h). A reader that left early (head) is no trouble, but gets no verdict either. */
static int finish_streams(int status)
{
	vn_error err;

	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (status != 2) /* otherwise an error was already printed */
			fprintf(stderr, "vernier: standard output cannot be written: %s\n", vn_printed_lost());
		return 2;
	}
	const char *left = vn_temporary_left(); /* the user must remove it, whatever else is wrong */
	if (status != 2 && vn_trouble_since(0, "vernier", &err)) {
		fprintf(stderr, "%s\n", err.text);
		left = vn_temporary_left_noted() ? NULL : left;
		status = 2;
	}
	if (left)
		fprintf(stderr, "vernier: %s\n", left);
	if (status != 2 && vn_printed_left())
		vn_printed_leave();
	return status;
}

static bool left_; /* by the door */

/* Libraries may exit when memory or threads run out: HDF5 without a message, OpenMP with the status
 * that means "outside the limits" here. */
static void not_by_the_door(void)
{
	static const char line[] =
		"vernier: a library ended the run, usually for lack of memory or threads (ulimit -v, ulimit -u)\n";

	if (left_)
		return;
	if (write(2, line, sizeof line - 1) < 0) {} /* nothing more can be done */
	vn_temporary_end();
	_exit(2);
}

/* Reads the environment. An unknown kernel is an error, because another kernel must not
 * answer in its place. */
static bool heed_environment(void)
{
	const char *kernel = getenv("VERNIER_KERNEL");
	vn_error    err = { "" };

	if (!kernel || !*kernel || vn_metric_kernel_choose(kernel, &err) == VN_OK)
		return true;
	fprintf(stderr, "vernier: VERNIER_KERNEL: %s\n", err.text);
	return false;
}

/* Prints what protects this machine from a hostile file. */
static int tell_sandbox(void)
{
	char       missing[64];
	vn_error   err;
	const bool tried = vn_child_sandbox_gaps(missing, sizeof missing, &err) == VN_OK;

	printf("sandbox for recordings and .npz: %s%s\n",
	       !tried     ? "none: "
	       : *missing ? "in part; this machine or build has no "
	                  : "whole (Landlock, seccomp)",
	       tried ? missing : err.text);
	if (!tried)
		fprintf(stderr, "vernier: %s\n", err.text);
	return tried ? 0 : 2;
}

/* The stack grows at run time up to the soft limit of that moment. */
static bool raise_stack(void)
{
	enum { NEEDED = 512 << 10, WANTED = 8 << 20 };
	struct rlimit most;

	if (getrlimit(RLIMIT_STACK, &most) != 0 || most.rlim_cur >= WANTED)
		return true;
	most.rlim_cur = most.rlim_max < WANTED ? most.rlim_max : WANTED;
	setrlimit(RLIMIT_STACK, &most);
	if (most.rlim_cur >= NEEDED)
		return true;
	fprintf(stderr, "vernier: the stack is limited to %llu KiB; %d are needed (ulimit -s)\n",
	        (unsigned long long)most.rlim_cur >> 10, NEEDED >> 10);
	return false;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int enter_command(int argc, char **argv)
{
	char *help[] = { NULL, "--help", NULL };
	char  page[NAME_MAX + 1];

	vn_trouble_program();
	occupy_standard_streams();
	if (!raise_stack())
		return 2;
	signal(SIGXFSZ, SIG_IGN); /* a file too large (ulimit -f) then fails its write, and the partial output is removed */
	if (runs_model(argc, argv))
		vn_spin_briefly(argv); /* first, because it may restart the program */
	vn_mapped_explain();
#ifndef VN_SANITIZED /* a sanitizer's own report is more useful */
	vn_crash_explain();
#endif
	if (!vn_printed_start()) {
		fputs("vernier: no memory for its output\n", stderr);
		return 2;
	}
	if (!heed_environment())
		return 2;
	if (argc < 2) {
		print_usage(stderr);
		return 2;
	}
	if (is_one_of(argv[1], "--version", "-v", "version")) {
		puts("vernier " VERNIER_VERSION);
		return finish_streams(argc > 2 && strcmp(argv[2], "--verbose") == 0 ? tell_sandbox() : 0);
	}
	if (is_one_of(argv[1], "help", "--help", "-h")) {
		if (argc > 3 && strcmp(argv[2], "--man") == 0)
			return finish_streams(print_manual(argv[3]));
		if (argc > 3 && strcmp(argv[2], "--man-pages") == 0)
			return finish_streams(write_manual_pages(argv[3]));
		if (argc > 2 && strcmp(argv[2], "--prefix") == 0)
			return finish_streams(print_prefix());
		if (argc > 3 && strcmp(argv[2], "--completions") == 0)
			return finish_streams(print_completions(argv[3]));
		if (argc > 2 && is_page(argv[2]))
			return finish_streams(print_page(argv[2]));
		if (argc > 2 && is_bare_page(argv[2], page))
			return finish_streams(print_page(page));
		if (argc > 2 && !is_one_of(argv[2], "help", "--help", "-h")) {
			help[0] = argv[2];
			return finish_streams(run_command(argv[2], 2, help));
		}
		print_usage(stdout);
		return finish_streams(0);
	}
	return finish_streams(run_command(argv[1], argc - 1, argv + 1));
}

int main(int argc, char **argv)
{
	atexit(not_by_the_door);
	const int status = enter_command(argc, argv);
	left_ = true;
#ifdef VN_SANITIZED
	return status; /* leak detection runs at exit */
#else
	/* All output is written. Exit without the cleanup of libraries: after memory ran out it
	 * crashes, and prints to standard output after our flush. */
	_exit(status);
#endif
}
