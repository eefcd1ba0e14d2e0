/* room.h: asks whether memory or threads are available.
 *
 * Some libraries crash, end the program or wait for ever if they get none. Ask first, and fail with
 * an error message. The answer is valid only for a moment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Is this much address space available in one piece (as bounded by ulimit -v)? It is not touched,
 * so overcommitted memory does not show. */
bool vn_room_for(size_t bytes);

/* Can this many threads run at once (as bounded by ulimit -v and -u)? Starts them and lets them
 * end. OpenMP ends the program if it cannot start a thread. */
bool vn_room_for_threads(int n);

/* Allocates as malloc does, on large pages where the system has them: touching them first costs
 * less. Release with free. */
void *vn_room_large(size_t bytes);

/* Reserves bytes until vn_room_return; NULL: not available. */
void *vn_room_keep(size_t bytes);
void  vn_room_return(void *room, size_t bytes); /* NULL is allowed */
