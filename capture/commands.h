/* commands.h: the subcommands that live in capture/.
 *
 * Each takes its own arguments; argv[0] is its name. Exit status: 0 done; 1 a warning under
 * --strict, or `show --check` found an error; 2 trouble. Results go to stdout, messages to
 * stderr. */
#pragma once

#include "capture/run/against.h"
#include "libref/base/options.h"

int cmd_capture(int argc, char **argv, const vn_run_judge *judge); /* judge: for --against */
int cmd_import(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_points(int argc, char **argv);

/* The option tables, from which help, manual and completions are printed. */
extern const vn_command vn_capture_command, vn_import_command, vn_points_command, vn_show_command;
