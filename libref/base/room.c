/* room.c: see room.h. */
#include "libref/base/room.h"

#include "libref/base/trouble.h"

#include <sys/mman.h>

void *vn_room_keep(size_t bytes)
{
	vn_trouble_spare(true);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	vn_trouble_spare(false);
	return p == MAP_FAILED ? NULL : p;
}

void vn_room_return(void *room, size_t bytes)
{
	if (room)
		munmap(room, bytes);
}

bool vn_room_for(size_t bytes)
{
	void *p = vn_room_keep(bytes);

	vn_room_return(p, bytes);
	return p;
}
