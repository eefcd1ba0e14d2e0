/* commands.h: the subcommands that live in compare/.
 *
 * Each takes its own arguments; argv[0] is its name. Exit status: 0 done, or within limits; 1 as
 * the command's --help says, such as outside; 2 trouble. Results go to stdout, messages to
 * stderr. */
#pragma once

#include "compare/command_table.h"

#include "libref/base/options.h"

int cmd_calibrate(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_evaluate(int argc, char **argv);
int cmd_help(int argc, char **argv, const vn_command_table *t);
int cmd_isolate(int argc, char **argv);
int cmd_limits(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_synth(int argc, char **argv);
int cmd_table(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_weights(int argc, char **argv);

/* The option tables, from which help, manual and completions are printed. */
extern const vn_command vn_calibrate_command, vn_compare_command, vn_doctor_command, vn_explain_command,
	vn_evaluate_command, vn_help_command, vn_isolate_command, vn_limits_command, vn_merge_command, vn_report_command,
	vn_synth_command, vn_table_command, vn_version_command, vn_weights_command;
