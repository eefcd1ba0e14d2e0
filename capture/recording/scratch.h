/* scratch.h: room for a tensor that has to be made before it can be read: from compressed chunks.
 *
 * A small one is memory that processes share. A large one is a mapped file without a name, so that no more of it need
 * be in memory than is looked at: in the folder TMPDIR, else /var/tmp (on a disk where /tmp is not), else /tmp; and
 * memory like a small one where none of them has room.
 */
#ifndef VN_CAPTURE_SCRATCH_H
#define VN_CAPTURE_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* From how many bytes on it is a file. */
enum { VN_SCRATCH_FILE = 16 << 20 };

typedef struct vn_scratch {
	void  *data;  /* shared with children; NULL: none */
	size_t bytes;
	int    file;  /* 0: it is memory */
} vn_scratch;

/* Zeros. false: no memory. */
bool vn_scratch_make(vn_scratch *s, size_t bytes);
/* Children that are started from now on do not see it (sandbox.h). */
void vn_scratch_keep(const vn_scratch *s);
/* Pages that were touched count as memory until this; what is in them stays. Those of memory do all the same. */
void vn_scratch_forget(const vn_scratch *s);
/* Gives it back; safe on a zeroed one, which it becomes. */
void vn_scratch_end(vn_scratch *s);

#endif
