/* temporary.h: a list of temporary files and folders that must not outlive the run.
 *
 * Whoever creates one removes it or gives it its final name. But a library may end the program if
 * memory or threads run out (as OpenMP does), or crash; compare/main.c then removes what is on the
 * list. From the first vn_temporary_begin on, SIGINT, SIGTERM and SIGHUP that have no handler of
 * their own do so as well.
 *
 * Threads  any.
 */
#ifndef VN_LIBREF_BASE_TEMPORARY_H
#define VN_LIBREF_BASE_TEMPORARY_H

#include <stdbool.h>

/* Call before the file or folder is created: a signal that arrives between its creation and
 * vn_temporary_add waits for that. Exactly one vn_temporary_add follows, in the same thread. */
void        vn_temporary_begin(void);
/* Adds a file, or a folder with its contents. The path is copied; NULL: nothing was created. Not
 * listed if the list is full or the path is too long. */
void        vn_temporary_add(const char *path);
void        vn_temporary_forget(const char *path); /* call when it is removed, or gets its final name */
/* takes it off the list, and removes it with its contents; what cannot be removed is noted as
 * trouble (trouble.h) */
void        vn_temporary_clear(const char *path);
/* "PATH cannot be removed" of the last such path; NULL: there is none */
const char *vn_temporary_left(void);
/* Does that text stand in vn_trouble_since's answer already? */
bool        vn_temporary_left_noted(void);

/* From now on this signal removes everything on the list and ends the program. Safe in a signal
 * handler. */
void vn_temporary_catch(int number);

/* Removes everything on the list, closes every file, and waits a moment for child processes that
 * this ends. Safe in a signal handler; allocates nothing. */
void vn_temporary_end(void);

#endif
