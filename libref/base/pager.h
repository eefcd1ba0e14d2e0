/* pager.h: the program that a person reads long output in: less, or VERNIER_PAGER, or PAGER. */
#ifndef VN_LIBREF_BASE_PAGER_H
#define VN_LIBREF_BASE_PAGER_H

#include <sys/types.h>

/* Starts it, if standard output is a terminal that can show it, and its program is there. Returns
 * the pipe that it reads, and its process in *pid; -1: there is no pager. SIGINT and SIGQUIT then
 * belong to it: they no longer end this process. The value "cat" or "" means no pager. */
int  vn_pager_start(pid_t *pid);
/* Ends its input, and waits until the reader leaves it. */
void vn_pager_end(int pipe, pid_t pid);

#endif
