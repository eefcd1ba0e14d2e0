/* mapped.h: remembers which files are mapped, to name the one that another program truncates.
 *
 * Reading a mapped page that is no longer in the file raises SIGBUS. The program cannot go on, but
 * it can say which file it was.
 *
 * Threads  any. If there are too many files, some are not remembered, and no name is given.
 */
#ifndef VN_LIBREF_BASE_MAPPED_H
#define VN_LIBREF_BASE_MAPPED_H

#include <stddef.h>

void vn_mapped_add(const void *base, size_t bytes, const char *path);
void vn_mapped_drop(const void *base); /* before unmapping; base may be unknown */

/* For programs, not for libraries: makes SIGBUS print one line on stderr and exit with status 2. */
void vn_mapped_explain(void);

#endif
