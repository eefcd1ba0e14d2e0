/* grow.h: lists that become longer by one element at a time.
 *
 * The room of such a list follows from its length, so it needs no field: 64 elements, and from
 * there the next power of two.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns the list of n elements (NULL: none yet) with room for one more, to be stored in its
 * place. NULL: no memory; the list is as before. size: bytes of an element. */
void *vn_grown(void *list, size_t n, size_t size);

/* Gives the list of n elements room for one more, in place. False: no memory; it is as before. */
#define VN_GROW(list, n) vn_grow(&(list), (size_t)(n), sizeof *(list))
bool vn_grow(void *list, size_t n, size_t size);
