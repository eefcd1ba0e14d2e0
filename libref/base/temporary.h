/* temporary.h: a list of temporary files and folders that must not outlive the run.
 *
 * The code that creates a file removes it or gives it its final name. But a library may crash, or
 * end the program if memory or threads run out (as OpenMP does); compare/main.c then removes
 * everything on the list. From the first vn_temporary_begin on, SIGINT, SIGTERM and SIGHUP also
 * remove it, unless the program handles them.
 *
 * Threads  any.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Call before the file or folder is created: a signal that arrives before vn_temporary_add is
 * delivered after it. Exactly one vn_temporary_add follows, in the same thread. */
void vn_temporary_begin(void);
/* Adds a file, or a folder with the files in it. The path is copied; NULL: nothing was created. If
 * the list is full or the path is too long, it is not added. */
void vn_temporary_add(const char *path);
/* Call when it is removed, or gets its final name. */
void vn_temporary_forget(const char *path);
/* Removes it with the files in it, and takes it off the list. Returns false if it is still
 * there. */
bool vn_temporary_clear(const char *path);

/* A child process that would hold the terminal if this one ended without it: it gets the signal
 * first. 0: none. */
void vn_temporary_reader(pid_t pid);

/* From now on this signal removes everything on the list and ends the program. Safe in a signal
 * handler. */
void vn_temporary_catch(int number);

/* Removes everything on the list, closes every file, and waits a moment for child processes that
 * this ends. Safe in a signal handler; allocates nothing. */
void vn_temporary_end(void);
