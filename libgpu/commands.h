/* commands.h: the subcommand of this room. argv[0] is the command's name; the
 * exit status is 0 or 2. Results go to stdout, talk to stderr. */
#ifndef VN_LIBGPU_COMMANDS_H
#define VN_LIBGPU_COMMANDS_H

#include "libref/base/options.h"

extern const vn_command vn_devices_command;

int cmd_devices(int argc, char **argv);

#endif
