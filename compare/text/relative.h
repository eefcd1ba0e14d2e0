/* relative.h: a command line as it is typed in another folder. */
#ifndef VN_COMPARE_RELATIVE_H
#define VN_COMPARE_RELATIVE_H

#include "libref/base/shell.h"

/* Writes the command for the folder of the file `from`: words that are files here become their
 * paths from there. The command itself if that does not fit, or if a path cannot be found.
 * Returns text. */
const char *vn_relative_command(const char *command, const char *from, char text[VN_SHELL_LINE]);

#endif
