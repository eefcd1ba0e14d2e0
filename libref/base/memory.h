/* memory.h: whether memory ran out in this process.
 *
 * Most callers of malloc say so when they get nothing. Some cannot: a line of a report that is dropped, a file
 * that then looks as if it were not there. Nothing of that may become a result. So the program sees every failed
 * allocation of its own (compare/memory_watch.c, put before malloc by the linker; json.h for Jansson's), and what
 * is final asks here first: a recording or a report before it gets its name, the program before its exit status.
 */
#ifndef VN_LIBREF_BASE_MEMORY_H
#define VN_LIBREF_BASE_MEMORY_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>

void vn_memory_lost(void);     /* an allocation failed */
bool vn_memory_ran_out(void);  /* one has */
/* VN_OK, or VN_ERR_NOMEM with "WHAT: memory ran out". */
vn_status vn_memory_whole(const char *what, vn_error *err);

/* What a caller can do without, aligned; its failure is not remembered. To be freed by free. */
void *vn_memory_spare(size_t align, size_t bytes);
bool  vn_memory_sparing(void); /* in this thread, now: for who watches */

#endif
