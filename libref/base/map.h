/* map.h: a whole file mapped for reading.
 *
 * The bytes stay valid until unmap. A file that another program shortens while
 * it is mapped ends ours with SIGBUS, which can at least be told (mapped.h).
 */
#ifndef VN_LIBREF_BASE_MAP_H
#define VN_LIBREF_BASE_MAP_H

#include "libref/base/error.h"

#include <stddef.h>

typedef struct vn_map {
	const unsigned char *data; /* NULL for an empty file */
	size_t               bytes;
} vn_map;

/* Only regular files; anything else (directory, device, pipe) is VN_ERR_IO. */
vn_status vn_map_open(const char *path, vn_map *map, vn_error *err);
void      vn_map_close(vn_map *map); /* safe on a zeroed one */

/* A small file into memory with a NUL behind it; free() it. Larger than limit: VN_ERR_FORMAT. */
vn_status vn_read_text(const char *path, size_t limit, char **text, size_t *bytes, vn_error *err);

#endif
