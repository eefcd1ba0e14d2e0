/* room.h: asks whether memory or threads are available.
 *
 * Some libraries crash, end the program or wait for ever when they get none. Ask first, and fail with
 * an error message. The answer is true for a moment only. */
#ifndef VN_LIBREF_BASE_ROOM_H
#define VN_LIBREF_BASE_ROOM_H

#include <stdbool.h>
#include <stddef.h>

/* So many bytes of address space in one piece, which ulimit -v bounds. They are not
 * touched: that a machine promises more than it has shows nowhere. */
bool vn_room_for(size_t bytes);

/* So many threads at once, under ulimit -v and -u: they are started, and end. OpenMP ends the
 * program where it cannot start one. */
bool vn_room_for_threads(int n);

/* The bytes, kept until vn_room_return; NULL: there are none. */
void *vn_room_keep(size_t bytes);
void  vn_room_return(void *room, size_t bytes); /* safe on NULL */

#endif
