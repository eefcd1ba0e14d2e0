/* mapped.h: which files are mapped, so that one that becomes shorter can be named.
 *
 * What another program cuts off a file while it is mapped ends whoever reads it
 * there with SIGBUS. A program cannot go on from that, but it can say why.
 *
 * Threads  any. Of many files only some are remembered; then no name is said.
 */
#ifndef VN_LIBREF_BASE_MAPPED_H
#define VN_LIBREF_BASE_MAPPED_H

#include <stddef.h>

void vn_mapped_add(const void *base, size_t bytes, const char *path);
void vn_mapped_drop(const void *base); /* before it is unmapped; safe on what was not added */

/* For programs, not for libraries: SIGBUS becomes one line on stderr, and exit status 2. */
void vn_mapped_explain(void);

#endif
