/* encode.h: recording a forward pass into command buffers, with its barriers.
 *
 * Inside libgpu only. A command says which buffers it reads and writes; a
 * barrier is put before it exactly when one of them was written since the last
 * barrier, or read and is now written. A barrier is over all memory and over
 * shaders and copies: what it costs on the device is the wait, not the width.
 *
 * There are two command buffers, so that one can run while the other is
 * recorded. Submission order is execution order; every command buffer begins
 * with a barrier against all that came before.
 */
#ifndef VN_LIBGPU_ENCODE_H
#define VN_LIBGPU_ENCODE_H

#include "libgpu/kernels.h"
#include "libgpu/memory.h"

#define VN_USES_MAX 16

typedef struct vn_encoder {
	vn_device        *d;
	vn_kernels       *k;
	VkCommandPool     pool;
	VkCommandBuffer   cmd[2];
	VkFence           fence[2];
	bool              flying[2]; /* submitted and not waited for */
	bool            stuck; /* a software device does not compute any more: nothing of it can be waited for */
	int               cur;       /* the one to record into */
	bool              recording;
	VkPipeline        bound;     /* in it */
	unsigned          epoch;     /* counts barriers */
	struct { vn_buffer *b; bool write; } use[VN_USES_MAX];
	int               uses;
	VkQueryPool       queries;   /* NULL: no timestamps */
	uint32_t          n_queries;
	int               submits;   /* of the last pass */
	bool              early;          /* an experiment's: leave out the barriers before the commands at hand */
	int               left_out;       /* such barriers */
	bool              break_barriers; /* for tests: leave out those between commands */
	bool            (*stop)(void *ctx); /* NULL: never asked */
	void             *stop_ctx;
	vn_status         failed; /* a pipeline could not be built: the next submit fails with why */
	vn_error          why;
} vn_encoder;

vn_status vn_encoder_create(vn_device *d, vn_kernels *k, uint32_t queries, vn_encoder *e, vn_error *err);
void      vn_encoder_destroy(vn_encoder *e); /* waits; safe on a zeroed one */

vn_status vn_encode_begin(vn_encoder *e, vn_error *err);
void      vn_encode_reset_stamps(vn_encoder *e);
void      vn_encode_stamp(vn_encoder *e, uint32_t i);

/* Of the next dispatch or copy. */
void vn_encode_reads(vn_encoder *e, vn_buffer *b);
void vn_encode_writes(vn_encoder *e, vn_buffer *b);

/* The uses named since the last dispatch or copy go on record; true: a barrier
 * has to come before them. Dispatch and copy call it; it records no command. */
bool vn_encode_note_uses(vn_encoder *e);

/* push: the kernel's block. x and y: workgroups wanted; fewer run when the
 * device has a limit, and the shader goes in strides. */
void vn_encode_dispatch(vn_encoder *e, vn_kernel kernel, const void *push, int64_t x, int64_t y);

/* Offsets from the first byte inside the zones. */
void vn_encode_copy(vn_encoder *e, vn_buffer *src, VkDeviceSize from, vn_buffer *dst, VkDeviceSize to, VkDeviceSize n);
/* The same into memory for the host: each byte of dst is written once in a command buffer. */
void vn_encode_copy_out(vn_encoder *e, vn_buffer *src, VkDeviceSize from, vn_buffer *dst, VkDeviceSize to,
                        VkDeviceSize n);
void vn_encode_clear(vn_encoder *e, vn_buffer *b); /* zero, inside the zones; its size a multiple of 4 */
void vn_encode_poison(vn_encoder *e, vn_buffer *b); /* zones and all */

/* Ends and submits the current command buffer and turns to the other one, which
 * may still be flying. */
vn_status vn_encode_submit(vn_encoder *e, vn_error *err);
/* Waits for command buffer i; at once when it is not flying. */
vn_status vn_encode_wait(vn_encoder *e, int i, vn_error *err);
/* VN_ERR_INTERRUPTED when the engine's owner wants no more. Waiting asks too,
 * ten times a second; then something still flies, for abandon to wait for. */
vn_status vn_encode_asked_to_stop(vn_encoder *e, vn_error *err);
/* After a failure: waits for what flies, forgets what is recorded. */
void      vn_encode_abandon(vn_encoder *e);

#endif
