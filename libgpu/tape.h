/* tape.h: records command buffers, and submits them again where possible. Inside libgpu only.
 *
 * Commands are first listed on a tape. If a command buffer already holds the same commands, it is
 * submitted again; else one is recorded from the tape. Consecutive decoded tokens list the same
 * commands, because nothing that changes from token to token is part of a command: shaders read
 * such values from memory (vn_kernel_in_memory), which is filled before each submit.
 *
 * When a buffer is destroyed, all command buffers become invalid, because Vulkan may give its
 * handle to another buffer.
 */
#pragma once

#include "libgpu/memory.h"

#define VN_TAPE_BUFFERS 8 /* a call has one or two; states of fixed size take turns in two buffers */

typedef enum vn_tape_kind {
	VN_TAPE_BARRIER, /* of shaders and copies against the same */
	VN_TAPE_HOST_BARRIER,
	VN_TAPE_DISPATCH,
	VN_TAPE_DISPATCH_IN_MEMORY,
	VN_TAPE_COPY,
	VN_TAPE_FILL,
	VN_TAPE_STAMP,
	VN_TAPE_RESET_STAMPS,
} vn_tape_kind;

/* What the kind does not need is 0. */
typedef struct vn_tape_entry {
	uint32_t     kind;
	uint32_t     bytes; /* of a push block behind the command */
	uint32_t     x, y;  /* workgroups; a stamp's index, the number of stamps; the number to fill with */
	VkPipeline   pipeline;
	VkBuffer     from, to;
	VkDeviceSize from_at, to_at, n; /* from_at: or where a push block in memory begins */
} vn_tape_entry;

/* Bytes that grow. Empty when zeroed. */
typedef struct vn_tape {
	uint8_t *bytes;
	size_t   n, room;
} vn_tape;

typedef struct vn_tape_buffer {
	VkCommandBuffer cmd;
	vn_tape         tape;      /* what it holds */
	vn_buffer       blocks;    /* push blocks in memory */
	uint64_t        used;      /* when it was last submitted; 0: it holds nothing */
	uint64_t        destroyed; /* d->destroyed when it was recorded */
	bool            flying;    /* submitted and not yet waited for */
} vn_tape_buffer;

typedef struct vn_tape_buffers {
	vn_device       *d;
	VkPipelineLayout layout;
	VkQueryPool      queries; /* NULL: no stamps */
	vn_tape_buffer   of[VN_TAPE_BUFFERS];
	uint64_t         clock;
	long             recorded; /* how many times one was recorded */
	bool             always;   /* for tests: record each time */
} vn_tape_buffers;

/* Adds a command, and its push block. Returns false without memory. */
bool vn_tape_add(vn_tape *t, const vn_tape_entry *c, const void *push);
/* Adds a push block in memory and sets *at to its place. Returns false without memory. */
bool vn_tape_add_block(vn_tape *t, const void *push, size_t bytes, VkDeviceSize *at);
void vn_tape_free(vn_tape *t);

vn_status vn_tape_buffers_create(vn_device *d, VkCommandPool pool, vn_tape_buffers *r, vn_error *err);
void      vn_tape_buffers_destroy(vn_tape_buffers *r); /* none is flying; r may be zeroed */

/* Sets *rec to a command buffer that holds the commands of the tape and is not flying, with
 * `blocks` in its memory. */
vn_status vn_tape_buffers_find(vn_tape_buffers *r, vn_tape *tape, const vn_tape *blocks, vn_tape_buffer **rec,
                               vn_error *err);
