/* commands.h: the subcommands of this room. argv[0] is the command's name; the
 * exit status is 0 or 2. Results go to stdout, talk to stderr. */
#ifndef VN_CAPTURE_COMMANDS_H
#define VN_CAPTURE_COMMANDS_H

#include "libref/base/options.h"

int cmd_capture(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_points(int argc, char **argv);

/* What help, the manual and completions are printed from. */
extern const vn_command vn_capture_command, vn_import_command, vn_points_command, vn_show_command;

#endif
