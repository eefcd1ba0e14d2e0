/* counted.h: memory in which a test counts what sandboxed children do.
 *
 * A child unmaps writable memory that it shares with its parent (capture/file/sandbox.h), unless it
 * is a file with a name: so this is one, in the folder of temporary files, until the program exits.
 */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char counted_path[] = "/tmp/vn-counted-XXXXXX";

static void counted_remove(void)
{
	unlink(counted_path);
}

/* Returns zeroed memory, one at a time; MAP_FAILED on failure. */
static inline void *counted_map(size_t bytes)
{
	counted_remove(); /* of an earlier call */
	memcpy(counted_path + sizeof counted_path - 7, "XXXXXX", 6);
	const int fd = mkstemp(counted_path);
	void *p = fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
	                                                      : MAP_FAILED;
	if (fd >= 0) {
		atexit(counted_remove);
		close(fd);
	}
	return p;
}
