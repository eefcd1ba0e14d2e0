/* recording.h: recorded command buffers, which are submitted again. Inside libgpu only.
 *
 * Commands are first listed on a tape. If a command buffer already holds the same commands, it is
 * submitted again; else one is recorded from the tape. One decoded token after the other lists the
 * same commands, since what changes from token to token is part of no command: some shaders read
 * their push block from memory (vn_kernel_in_memory), and this memory is filled before each submit.
 *
 * A destroyed buffer makes all command buffers invalid: the handle may come back as that of
 * another buffer.
 */
#ifndef VN_LIBGPU_RECORDING_H
#define VN_LIBGPU_RECORDING_H

#include "libgpu/memory.h"

#define VN_RECORDINGS 8 /* a call has one or two; states of fixed size take turns in two buffers */

typedef enum vn_command_kind {
	VN_CMD_BARRIER, /* of shaders and copies against the same */
	VN_CMD_HOST_BARRIER,
	VN_CMD_DISPATCH,
	VN_CMD_DISPATCH_IN_MEMORY,
	VN_CMD_COPY,
	VN_CMD_FILL,
	VN_CMD_STAMP,
	VN_CMD_RESET_STAMPS,
} vn_command_kind;

/* What the kind does not need is 0. */
typedef struct vn_command {
	uint32_t     kind;
	uint32_t     bytes; /* of a push block behind the command */
	uint32_t     x, y;  /* workgroups; a stamp's index, the number of stamps; the number to fill with */
	VkPipeline   pipeline;
	VkBuffer     from, to;
	VkDeviceSize from_at, to_at, n; /* from_at: or where a push block in memory begins */
} vn_command;

/* Bytes that grow. Empty when zeroed. */
typedef struct vn_tape {
	uint8_t *bytes;
	size_t   n, room;
} vn_tape;

typedef struct vn_recording {
	VkCommandBuffer cmd;
	vn_tape         tape;      /* what it holds */
	vn_buffer       blocks;    /* push blocks in memory */
	uint64_t        used;      /* when it was last submitted; 0: it holds nothing */
	uint64_t        destroyed; /* d->destroyed when it was recorded */
	bool            flying;    /* submitted and not yet waited for */
} vn_recording;

typedef struct vn_recordings {
	vn_device       *d;
	VkPipelineLayout layout;
	VkQueryPool      queries; /* NULL: no stamps */
	vn_recording     of[VN_RECORDINGS];
	uint64_t         clock;
	long             recorded; /* how many times one was recorded */
	bool             always;   /* for tests: record each time */
} vn_recordings;

/* Adds a command, and its push block. Returns false without memory. */
bool vn_tape_add(vn_tape *t, const vn_command *c, const void *push);
/* Adds a push block in memory and sets *at to its place. Returns false without memory. */
bool vn_tape_add_block(vn_tape *t, const void *push, size_t bytes, VkDeviceSize *at);
void vn_tape_free(vn_tape *t);

vn_status vn_recordings_create(vn_device *d, VkCommandPool pool, vn_recordings *r, vn_error *err);
void      vn_recordings_destroy(vn_recordings *r); /* none is flying; r may be zeroed */

/* Sets *rec to a command buffer that holds the commands of the tape and is not flying, with `blocks`
 * in its memory. */
vn_status vn_recordings_find(vn_recordings *r, vn_tape *tape, const vn_tape *blocks, vn_recording **rec, vn_error *err);

#endif
