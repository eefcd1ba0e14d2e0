/* encode.h: lists the commands of a forward pass, with barriers, and submits them. Inside libgpu
 * only.
 *
 * A command states which buffers it reads and writes. A barrier is put before it exactly if one of
 * them was written since the last barrier, or was read and is now written. A barrier covers all
 * memory, shaders and copies: on the device the wait is what costs, not the scope.
 *
 * Commands are recorded when they are submitted, unless a command buffer holds the same ones
 * already (tape.h). There are two places for command buffers, so that one can run while the
 * commands of the other are listed. Submission order is execution order; every command buffer
 * begins with a barrier against all earlier work. A third place is for the first use of a shader.
 *
 * While the encoder is listing, nothing is recorded: a dispatch only marks its shader as listed.
 */
#pragma once

#include "libgpu/kernels.h"
#include "libgpu/tape.h"

#define VN_USES_MAX  16
#define VN_CMD_ASIDE 2 /* the place of vn_encode_first_use */

typedef struct vn_encoder {
	vn_device      *d;
	vn_kernels     *k;
	VkCommandPool   pool;
	VkCommandBuffer aside;
	vn_tape_buffers buffers;
	vn_tape_buffer *sent[3]; /* the submitted buffer in each place; NULL in the third */
	VkFence         fence[3];
	bool            flying[3]; /* submitted and not yet waited for */
	int             cur;       /* the place of the commands to come */
	bool            recording;
	vn_tape         tape, blocks; /* commands so far; push blocks in memory */
	unsigned        epoch;        /* counts barriers */
	struct {
		vn_buffer *b;
		bool       write;
	} use[VN_USES_MAX];
	int         uses;
	VkQueryPool queries; /* NULL: no timestamps */
	uint32_t    n_queries;
	int         submits;  /* in the last pass */
	int         barriers; /* between its commands */
	/* for experiments and tests: the barriers before the next commands are left out, except inside
	 * a divided product */
	bool        omit;
	int         left_out;    /* how many were */
	bool (*stop)(void *ctx); /* NULL: never asked */
	void     *stop_ctx;
	bool      listing;
	bool      listed[VN_N_KERNELS];
	vn_status failed; /* a pipeline could not be built, or no memory: the next submit fails with `why` */
	vn_error  why;
} vn_encoder;

vn_status vn_encoder_create(vn_device *d, vn_kernels *k, uint32_t queries, vn_encoder *e, vn_error *err);
void      vn_encoder_destroy(vn_encoder *e); /* waits; e may be zeroed, or as a failed create left it */

void vn_encode_begin(vn_encoder *e);
void vn_encode_reset_stamps(vn_encoder *e);
void vn_encode_stamp(vn_encoder *e, uint32_t i);

/* Declare the uses of the next dispatch or copy. */
void vn_encode_reads(vn_encoder *e, vn_buffer *b);
void vn_encode_writes(vn_encoder *e, vn_buffer *b);

/* Records the uses declared since the last dispatch or copy. Returns true if a barrier must come
 * before them. Called by dispatch and copy; records no command. */
bool vn_encode_note_uses(vn_encoder *e);

/* Returns how many workgroups, or tiles, take n elements at `each` elements apiece. */
static inline int64_t count_groups(int64_t n, int64_t each)
{
	return (n + each - 1) / each;
}

/* Records a dispatch. push: the kernel's push block. x, y: workgroups; fewer run if the device has
 * a limit, and the shader then loops in strides. */
void vn_encode_dispatch(vn_encoder *e, vn_kernel kernel, const void *push, int64_t x, int64_t y);

/* Runs a shader over no workgroup and waits for it, since some drivers compile it only then. A call
 * may be open. */
vn_status vn_encode_first_use(vn_encoder *e, vn_kernel kernel, vn_error *err);

/* Offsets count from the first byte inside the zones. */
void vn_encode_copy(vn_encoder *e, vn_buffer *src, VkDeviceSize from, vn_buffer *dst, VkDeviceSize to, VkDeviceSize n);
/* Same, to memory for the host. Each byte of dst may be written once per command buffer. */
void vn_encode_copy_out(vn_encoder *e, vn_buffer *src, VkDeviceSize from, vn_buffer *dst, VkDeviceSize to,
                        VkDeviceSize n);
/* zeroes it inside the zones; its size is a multiple of 4 */
void vn_encode_clear(vn_encoder *e, vn_buffer *b);
void vn_encode_poison(vn_encoder *e, vn_buffer *b); /* including the zones */
/* Writes a number to the start of a buffer that only the host reads, in about this place of the
 * work: no barrier orders it. */
void vn_encode_count(vn_encoder *e, const vn_buffer *b, uint32_t number);

/* Ends and submits the current command buffer, and switches to the other one, which may still be
 * running. */
vn_status vn_encode_submit(vn_encoder *e, vn_error *err);
/* Waits for command buffer i; returns at once if it is not running. */
vn_status vn_encode_wait(vn_encoder *e, int i, vn_error *err);
/* Returns VN_ERR_INTERRUPTED if the engine's owner wants to stop. Waiting also asks, ten times a
 * second; commands may then still be running, and abandon waits for them. */
vn_status vn_encode_asked_to_stop(vn_encoder *e, vn_error *err);
/* After a failure: waits for running commands, and discards recorded ones. */
void      vn_encode_abandon(vn_encoder *e);
