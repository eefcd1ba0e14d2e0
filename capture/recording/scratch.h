/* scratch.h: memory for a tensor that has to be assembled before it can be read, for example from
 * compressed chunks.
 *
 * A small one is memory that processes share. A large one is a mapped file without a name, so that
 * only the parts in use occupy memory. The file is in $TMPDIR, else in /var/tmp (on disk, unlike
 * /tmp), else in /tmp. It takes at most three quarters of what is free there. If none has room, it
 * is memory like a small one, at most half of the machine's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* From this many bytes on it is a file. */
enum { VN_SCRATCH_FILE = 16 << 20 };

typedef struct vn_scratch {
	void  *data; /* shared with children; NULL: none */
	size_t bytes;
	int    file; /* 0: plain memory */
} vn_scratch;

/* Creates it, filled with zeros. Returns false if there is no memory. */
bool vn_scratch_make(vn_scratch *s, size_t bytes);
/* Copies bytes to offset `at`. Faster than copying to s->data where that is a file: whole pages
 * need not be zeroed first. */
void vn_scratch_write(vn_scratch *s, size_t at, const void *data, size_t bytes);
/* Hides it from children that are started from now on (sandbox.h). */
void vn_scratch_keep(const vn_scratch *s);
/* Releases touched pages of a file, which count as memory; the contents stay. No effect on plain
 * memory. */
void vn_scratch_forget(const vn_scratch *s);
/* Frees it and zeroes *s; *s may be zeroed already. */
void vn_scratch_end(vn_scratch *s);
