/* warnings.h: prints and counts warnings: messages that do not stop the work.
 *
 * Every command warns only through these functions: a line on stderr, regardless of -q, counted for
 * --strict. There is one list per process, for the command that runs. Use it from one thread.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

/* Prints "vernier capture: warning: ..." and counts it. */
__attribute__((format(printf, 2, 3))) void vn_warn(const char *command, const char *format, ...);
/* Same for a warning that a report on stdout shows anyway: only counts it. */
__attribute__((format(printf, 1, 2))) void vn_warned(const char *format, ...);

/* Clears the list, before another piece of work. */
void vn_warnings_begin(void);
/* Returns the exit status. With strict, if status is 0 and there were warnings, returns 1 and
 * prints a line that repeats them: "vernier capture: --strict: 2 warnings: ...; ...". */
int  vn_warnings_end(const char *command, bool strict, int status);
/* Returns the exit status of a command whose work ended with st. On an error, prints it and returns
 * 2; otherwise the same as vn_warnings_end. */
int  vn_command_end(const char *command, vn_status st, const vn_error *err, bool strict, int status);
