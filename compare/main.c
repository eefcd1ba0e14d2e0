/* main.c: finds the command in a table and runs it. */
#include "capture/commands.h"
#include "capture/file/child.h"
#include "capture/run/interrupt.h"
#include "compare/against/against.h"
#include "compare/commands.h"
#include "compare/metrics/kernel.h"
#include "compare/project.h"
#ifdef VERNIER_GPU
#include "libgpu/commands.h"
#endif

#include "libref/base/files.h"
#include "libref/base/map.h"
#include "libref/base/printed.h"
#include "libref/base/sanitizer.h"
#include "libref/base/say.h"
#include "libref/base/spin.h"
#include "libref/base/system.h"
#include "libref/base/temporary.h"
#include "libref/base/trouble.h"
#include "libref/model/hub.h"

#include <errno.h>
#include <fcntl.h>
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

static int run_help(int argc, char **argv);

static const vn_command_row command[] = {
#ifdef VERNIER_GPU
	{ run_capture, "run a model on the reference or the GPU, and record it", VN_WORK_RUN, &vn_capture_command },
#else
	{ run_capture, "run a model on the reference, and record it", VN_WORK_RUN, &vn_capture_command },
#endif
	{ cmd_compare, "judge one recording by another: where do they begin to differ?", VN_WORK_RUN_IF_MODEL,
	  &vn_compare_command },
	{ cmd_explain, "compare, and name the mistake that makes each difference", VN_WORK_RUN, &vn_explain_command },
	{ cmd_table, "show the values of two recordings or more side by side", VN_WORK_RUN_IF_MODEL, &vn_table_command },
	{ cmd_show, "print what a recording holds", VN_WORK_READ, &vn_show_command },
	{ cmd_import, "convert another engine's dump to a recording", VN_WORK_READ, &vn_import_command },
	{ cmd_weights, "list the weights that differ between two models, and how", VN_WORK_READ, &vn_weights_command },
	{ cmd_isolate, "find the operations that must be replaced to repair a run", VN_WORK_RUN, &vn_isolate_command },
	{ cmd_evaluate, "perplexity and agreement of two engines on a text", VN_WORK_RUN, &vn_evaluate_command },
	{ cmd_calibrate, "fit limits to correct runs", VN_WORK_RUN_IF_MODEL, &vn_calibrate_command },
	{ cmd_limits, "check a limits file and print the limits that it sets", VN_WORK_READ, &vn_limits_command },
	{ cmd_merge, "join the results of several processes that compared folders", VN_WORK_READ, &vn_merge_command },
	{ cmd_report, "write the report of an earlier comparison in another form", VN_WORK_READ, &vn_report_command },
	{ cmd_points, "list the checkpoints of a model, and the known mistakes", VN_WORK_READ, &vn_points_command },
#ifdef VERNIER_GPU
	{ cmd_devices, "list the Vulkan devices of this machine", VN_WORK_READ, &vn_devices_command },
#endif
	{ cmd_doctor, "print what works on this machine and what does not", VN_WORK_PRINT, &vn_doctor_command },
	{ cmd_synth, "write a synthetic model of a real shape", VN_WORK_READ, &vn_synth_command },
	{ run_help, "print the options of a command, or a page of the documentation", VN_WORK_PRINT, &vn_help_command },
	{ cmd_version, "print the version", VN_WORK_PRINT, &vn_version_command },
};
#ifdef VERNIER_GPU
static const vn_command_table table = { command, sizeof command / sizeof *command, "ref|gpu" };
#else
static const vn_command_table table = { command, sizeof command / sizeof *command, "ref" };
#endif

static int run_help(int argc, char **argv)
{
	return cmd_help(argc, argv, &table);
}

/* Whether the command computes. Restarting the program (vn_spin_briefly) costs as much as
 * comparing 0.1 GB. */
static bool runs_model(const vn_command_row *c, int argc, char **argv)
{
	return c && (c->work == VN_WORK_RUN ||
	             (c->work == VN_WORK_RUN_IF_MODEL && vn_option_is_given(c->options, "model", argc - 1, argv + 1)));
}

/* Output that could not be printed counts as failure: a full disk behind `>` is trouble. So is a
 * run in which the system refused a request anywhere, because the answer may be incomplete
 * (trouble.h). A reader that left early (head) is no trouble, but gets no verdict either. */
static int finish_streams(int status)
{
	vn_error err;

	const bool lost = fflush(stdout) != 0 || ferror(stdout);
	vn_printed_end();
	if (lost) {
		if (status != 2) /* otherwise an error was already printed */
			vn_say(stderr, "vernier: standard output cannot be written: %s\n", vn_printed_lost());
		return 2;
	}
	if (status != 2 && vn_trouble_since(0, "vernier", &err)) {
		vn_say(stderr, "%s\n", err.text);
		status = 2;
	}
	if (status != 2 && vn_maps_unchanged(&err)) {
		vn_say(stderr, "vernier: %s\n", err.text);
		status = 2;
	}
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
	vn_say(stderr, "vernier: VERNIER_KERNEL: %s\n", err.text);
	return false;
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

/* ---- a sandbox that lacks something --------------------------------------------------------- */

#ifndef VN_SANITIZED    /* such a build never has all of it */
static int untold = -1; /* a pipe with one byte, so that of all processes of a command one tells */

static void let_one_tell(void)
{
	int ends[2];

	if (vn_pipe(ends) != 0)
		return;
	if (write(ends[1], "", 1) == 1) /* whoever comes after the first reads the end of the pipe */
		untold = ends[0];
	close(ends[1]);
}

/* A note, not a warning: containers lack a layer, and --strict must not fail there. */
static void tell_gaps(const char *missing)
{
	char mine;

	if (untold < 0 || read(untold, &mine, 1) == 1) /* no other process has told */
		vn_say(stderr,
		       "vernier: note: the sandbox in which files are read lacks %s here (vernier --version --verbose)\n",
		       missing);
}
#endif

static int enter_command(int argc, char **argv)
{
	const vn_command_row *c = argc > 1 ? vn_command_table_find(&table, argv[1]) : NULL;

	vn_trouble_program();
	vn_program_note(argv[0]);
	vn_inputs_watch(true);
	occupy_standard_streams();
	if (!raise_stack())
		return 2;
	signal(SIGXFSZ, SIG_IGN); /* a file too large (ulimit -f) then fails its write, and the partial output is removed */
	if (runs_model(c, argc, argv))
		vn_spin_briefly(argv); /* first, because it may restart the program */
	vn_mapped_explain();
#ifndef VN_SANITIZED
	let_one_tell();
	if (c && strcmp(c->options->name, "version") != 0)
		vn_child_on_gaps(tell_gaps);
#endif
	if (!vn_printed_start()) {
		fputs("vernier: no memory for its output\n", stderr);
		return 2;
	}
	if (!heed_environment())
		return 2;
	vn_hub_replace(argc, argv);
	vn_options_settings(vn_project_setting);
	if (argc < 2) {
		vn_command_table_usage(&table, stderr);
		return 2;
	}
	return finish_streams(c ? c->run(argc - 1, argv + 1) : vn_command_table_unknown(&table, argv[1]));
}

int main(int argc, char **argv)
{
	atexit(not_by_the_door);
	const int status = enter_command(argc, argv);
	left_ = true;
	if (status == 2 && vn_interrupted_by()) { /* a shell script stops only at a command that a signal ended */
		signal(vn_interrupted_by(), SIG_DFL);
		raise(vn_interrupted_by());
	}
#ifdef VN_SANITIZED
	return status; /* leak detection runs at exit */
#else
	/* All output is written. Exit without the cleanup of libraries: after memory ran out it
	 * crashes, and prints to standard output after our flush. */
	_exit(status);
#endif
}
