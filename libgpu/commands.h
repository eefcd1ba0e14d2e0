/* commands.h: the subcommand that libgpu/ implements: vernier devices.
 *
 * argv[0] is the command's name. Exit status: 0 done, 2 trouble. Results go to stdout, messages to
 * stderr. */
#pragma once

#include "libref/base/options.h"

int                     cmd_devices(int argc, char **argv);
extern const vn_command vn_devices_command; /* its option table, for help and completions */
