/* map.h: maps a whole file for reading.
 *
 * The bytes stay valid until vn_map_close. If another program truncates the file meanwhile, reading
 * it raises SIGBUS, which ends this program with a message. Other changes are noted:
 * vn_maps_unchanged.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct stat;

typedef struct vn_map {
	const unsigned char *data; /* NULL for an empty file */
	size_t               bytes;
} vn_map;

/* Maps a regular file; anything else (directory, device, pipe) is VN_ERR_IO. */
vn_status vn_map_open(const char *path, vn_map *map, vn_error *err);
/* Lets go of the memory of the first bytes; they are read from the file again if needed. */
void      vn_map_forget(const vn_map *map, size_t bytes);
/* Does the same for the whole pages of any bytes, if they are in a mapped file that vn_mapped_add
 * knows; else nothing. */
void      vn_map_release(const void *data, size_t bytes);
void      vn_map_close(vn_map *map); /* map may be zeroed */
/* VN_ERR_IO, with the name of the first: another program changed, replaced or removed a file while
 * it was mapped. What was read of it may be neither the old nor the new contents. Threads: any. */
vn_status vn_maps_unchanged(vn_error *err);

/* Reads a small file into memory, followed by a NUL. The caller frees *text. Larger than limit:
 * VN_ERR_FORMAT. Written to meanwhile: VN_ERR_IO. */
vn_status vn_read_text(const char *path, size_t limit, char **text, size_t *bytes, vn_error *err);
/* The same of a file that decides what is done; *mine is false, and nothing is read, if another
 * user owns it, or the link that leads to it. VN_ERR_NOTFOUND: there is none
 * (any more); a link that leads nowhere is VN_ERR_IO. */
vn_status vn_read_own_text(const char *path, size_t limit, bool *mine, char **text, size_t *bytes, vn_error *err);

/* Opens a regular file for reading or, with O_RDWR, for both. Returns -1, with errno, for anything
 * else: opening a pipe would wait for its other end, and a device may do anything. */
int vn_plain_open(const char *path, int flags);

/* As fstat. A file that was changed in this moment may change again without another time, because
 * the file system's clock ticks every 1 to 10 ms: then this waits until it has ticked, for 20 ms at
 * most. */
int vn_stat_settled(int fd, struct stat *s);

/* Sets *there: does the name exist? If the system cannot say, that is an error, because the caller
 * would go on as if the file were absent. A broken link exists; opening it reports why it cannot be
 * read. */
vn_status vn_file_there(const char *path, bool *there, vn_error *err);

/* Remembers which files are mapped, to name the one that another program truncates.
 *
 * Reading a mapped page that is no longer in the file raises SIGBUS. The program cannot go on, but
 * it can say which file it was.
 *
 * Threads  any. If there are too many files, some are not remembered, and no name is given. */
void vn_mapped_add(const void *base, size_t bytes, const char *path);
void vn_mapped_drop(const void *base); /* before unmapping; base may be unknown */

/* For programs, not for libraries: makes SIGBUS print one line on stderr and exit with status 2. */
void vn_mapped_explain(void);
