/* trouble.h: notes what the machine refused (memory, a read, a write, a file, a process), so that
 * no result is built on it.
 *
 * Most callers report such a failure, and the run ends. Some cannot, or mistake it for something
 * else: a line is dropped from a report, a file looks damaged or absent. Therefore every refusal is
 * noted where it is seen: by vn_fail (error.h), by json.h for Jansson, by printed.h for what it
 * writes, and by the program for its own calls that get no memory or cannot look at a path
 * (compare/watch.c). Before something becomes final (a recording or report gets its name, the
 * program chooses its exit status), the code asks vn_trouble_since.
 *
 * Threads  any.
 */
#pragma once

#include "libref/base/status.h"

/* Notes a refusal. text: what was refused, for vn_trouble_since; the first text that is not NULL is
 * kept. */
void vn_trouble_note(const char *text);
/* Is this errno about the state of the machine (ENOMEM, EIO, EMFILE) rather than about the request
 * (ENOENT)? */
bool vn_trouble_is(int number);

/* The exit status of a child process to which the machine refused something. */
enum { VN_TROUBLE_STATUS = 250 };

/* Returns a mark for vn_trouble_since. A program with a single task calls vn_trouble_program first;
 * every later mark then equals the one at its start. */
unsigned    vn_trouble_mark(void);
void        vn_trouble_program(void);
/* Returns VN_OK, or VN_ERR_NOMEM with "WHAT: ..." if something was refused since the mark. */
vn_status   vn_trouble_since(unsigned mark, const char *what, vn_error *err);
/* Returns the text of the first refusal, for another process to note: "memory ran out" if none was
 * given; NULL: nothing was refused. */
const char *vn_trouble_text(void);

/* begin true: from now on this thread does optional work, whose failures are not noted; false: that
 * work has ended. Returns what it was before. */
bool vn_trouble_spare(bool begin);
