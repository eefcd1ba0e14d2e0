/* grow.h: lists that become longer by one element at a time.
 *
 * The room of such a list follows from its length, so it needs no field: 64 elements, and from
 * there the next power of two.
 */
#ifndef VN_LIBREF_GROW_H
#define VN_LIBREF_GROW_H

#include <stddef.h>

/* Returns the list of n elements (NULL: none yet) with room for one more, to be stored in its
 * place. NULL: no memory; the list is as before. size: bytes of an element. */
void *vn_grown(void *list, size_t n, size_t size);

#endif
