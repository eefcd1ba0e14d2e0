/* trouble.h: notes what the machine refused (memory, a read, a write, a file, a process), so that no
 * result is built on it.
 *
 * Most callers pass such a failure on, and the run ends. Some cannot, or mistake it for something
 * else: a line is dropped from a report, a file looks damaged or absent. Therefore every refusal is
 * noted where it is seen: by vn_fail (error.h), by json.h for Jansson, and by the program for each
 * library call of its own (compare/watch.c). Before something becomes final (a recording or a report
 * gets its name, the program chooses its exit status), the code asks vn_trouble_since.
 *
 * Threads  any.
 */
#ifndef VN_LIBREF_BASE_TROUBLE_H
#define VN_LIBREF_BASE_TROUBLE_H

#include "libref/base/error.h"

#include <stdbool.h>

/* Something was refused. text: what, for vn_trouble_since; the first one that is not NULL is kept. */
void vn_trouble_note(const char *text);
/* An error number that speaks of the machine's state and not of what was asked: ENOMEM, EIO, EMFILE, not ENOENT. */
bool vn_trouble_is(int number);

/* Until now. In a program that does one thing and ends, which says so first: from its start. */
unsigned vn_trouble_mark(void);
void     vn_trouble_program(void);
/* VN_OK, or VN_ERR_NOMEM with "WHAT: ...": something was refused since the mark. */
vn_status vn_trouble_since(unsigned mark, const char *what, vn_error *err);

/* Between the two, this thread asks for what it can do without: a failure is not noted. */
void vn_trouble_spare(bool begin);
bool vn_trouble_sparing(void); /* for who watches */

#endif
