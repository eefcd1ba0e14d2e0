/* warnings.h: what a person should know of and what does not stop the work.
 *
 * Every command warns by this alone: a line on stderr, whatever -q says, counted for --strict. The list is the
 * process's, of the command that runs: one thread.
 */
#ifndef VN_CAPTURE_WARNINGS_H
#define VN_CAPTURE_WARNINGS_H

#include <stdbool.h>

/* "vernier capture: warning: ..." */
__attribute__((format(printf, 2, 3)))
void vn_warn(const char *command, const char *format, ...);
/* The same of what a report on stdout shows anyway: it is counted, and no line is written. */
__attribute__((format(printf, 1, 2)))
void vn_warned(const char *format, ...);

/* Forgets them: another piece of work begins. */
void vn_warnings_begin(void);
/* With strict, a command that would end with 0 and has warned ends with 1, and a line that names the warnings:
 * "vernier capture: --strict: 2 warnings: ...; ...". Everything else is returned as it is. */
int  vn_warnings_end(const char *command, bool strict, int status);

#endif
