/* tape.c: see tape.h. */
#include "libgpu/tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ALIGN  16
#define BLOCKS_LEAST ((VkDeviceSize)64 << 10)

#define SHADERS VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT
#define COPIES  (VK_PIPELINE_STAGE_2_COPY_BIT | VK_PIPELINE_STAGE_2_CLEAR_BIT)
#define WRITTEN (VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT)
#define TOUCHED (WRITTEN | VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT)

/* ---- tapes ---------------------------------------------------------------------------- */

static uint8_t *reserve_bytes(vn_tape *t, size_t n)
{
	if (t->n + n > t->room) {
		const size_t room = 2 * (t->n + n) + 4096;
		uint8_t     *bytes = realloc(t->bytes, room);
		if (!bytes)
			return NULL;
		t->bytes = bytes;
		t->room = room;
	}
	t->n += n;
	return t->bytes + t->n - n;
}

bool vn_tape_add(vn_tape *t, const vn_tape_entry *c, const void *push)
{
	uint8_t *at = reserve_bytes(t, sizeof *c + c->bytes);

	if (!at)
		return false;
	memcpy(at, c, sizeof *c);
	if (c->bytes)
		memcpy(at + sizeof *c, push, c->bytes);
	return true;
}

bool vn_tape_add_block(vn_tape *t, const void *push, size_t bytes, VkDeviceSize *at)
{
	uint8_t *to;

	*at = t->n;
	if (!(to = reserve_bytes(t, (bytes + BLOCK_ALIGN - 1) & ~(size_t)(BLOCK_ALIGN - 1))))
		return false;
	memcpy(to, push, bytes);
	return true;
}

void vn_tape_free(vn_tape *t)
{
	free(t->bytes);
	*t = (vn_tape) { 0 };
}

/* ---- recording a tape ------------------------------------------------------------------ */

static void record_barrier(VkCommandBuffer cmd, VkPipelineStageFlags2 to, VkAccessFlags2 access)
{
	vn_vk.CmdPipelineBarrier2(
		cmd, &(VkDependencyInfo) { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
	                               .memoryBarrierCount = 1,
	                               .pMemoryBarriers = &(VkMemoryBarrier2) { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
	                                                                        .srcStageMask = SHADERS | COPIES,
	                                                                        .srcAccessMask = WRITTEN,
	                                                                        .dstStageMask = to,
	                                                                        .dstAccessMask = access } });
}

static void record_dispatch(const vn_tape_buffers *r, const vn_tape_buffer *rec, const vn_tape_entry *c,
                            const void *push, VkPipeline *bound)
{
	const VkDeviceAddress at = rec->blocks.address + c->from_at;
	const bool            in_memory = c->kind == VN_TAPE_DISPATCH_IN_MEMORY;

	if (c->pipeline != *bound)
		vn_vk.CmdBindPipeline(rec->cmd, VK_PIPELINE_BIND_POINT_COMPUTE, c->pipeline);
	*bound = c->pipeline;
	vn_vk.CmdPushConstants(rec->cmd, r->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
	                       in_memory ? (uint32_t)sizeof at : c->bytes, in_memory ? &at : push);
	vn_vk.CmdDispatch(rec->cmd, c->x, c->y, 1);
}

static void add_command(const vn_tape_buffers *r, const vn_tape_buffer *rec, const vn_tape_entry *c, const void *push,
                        VkPipeline *bound)
{
	switch ((vn_tape_kind)c->kind) {
	case VN_TAPE_BARRIER: record_barrier(rec->cmd, SHADERS | COPIES, TOUCHED); break;
	case VN_TAPE_HOST_BARRIER: record_barrier(rec->cmd, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT); break;
	case VN_TAPE_DISPATCH:
	case VN_TAPE_DISPATCH_IN_MEMORY: record_dispatch(r, rec, c, push, bound); break;
	case VN_TAPE_COPY:
		vn_vk.CmdCopyBuffer(rec->cmd, c->from, c->to, 1,
		                    &(VkBufferCopy) { .srcOffset = c->from_at, .dstOffset = c->to_at, .size = c->n });
		break;
	case VN_TAPE_FILL: vn_vk.CmdFillBuffer(rec->cmd, c->to, c->to_at, c->n, c->x); break;
	case VN_TAPE_STAMP:
		vn_vk.CmdWriteTimestamp2(rec->cmd, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, r->queries, c->x);
		break;
	case VN_TAPE_RESET_STAMPS: vn_vk.CmdResetQueryPool(rec->cmd, r->queries, 0, c->x); break;
	}
}

static vn_status record_commands(vn_tape_buffers *r, vn_tape_buffer *rec, vn_error *err)
{
	VkPipeline bound = VK_NULL_HANDLE;
	VkResult   res;

	res = vn_vk.BeginCommandBuffer(
		rec->cmd, &(VkCommandBufferBeginInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO });
	if (res != VK_SUCCESS)
		return vn_device_fail(r->d, res, err, "a command buffer cannot be begun");
	for (size_t at = 0; at < rec->tape.n;) {
		vn_tape_entry c;
		memcpy(&c, rec->tape.bytes + at, sizeof c);
		at += sizeof c;
		add_command(r, rec, &c, rec->tape.bytes + at, &bound);
		at += c.bytes;
	}
	if ((res = vn_vk.EndCommandBuffer(rec->cmd)) != VK_SUCCESS)
		return vn_device_fail(r->d, res, err, "a command buffer cannot be ended");
	r->recorded++;
	return VN_OK;
}

/* ---- the command buffers --------------------------------------------------------------- */

vn_status vn_tape_buffers_create(vn_device *d, VkCommandPool pool, vn_tape_buffers *r, vn_error *err)
{
	VkCommandBuffer cmd[VN_TAPE_BUFFERS];
	char            name[32];
	VkResult        res;

	*r = (vn_tape_buffers) { .d = d };
	res = vn_vk.AllocateCommandBuffers(
		d->device,
		&(VkCommandBufferAllocateInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
	                                     .commandPool = pool,
	                                     .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
	                                     .commandBufferCount = VN_TAPE_BUFFERS },
		cmd);
	if (res != VK_SUCCESS)
		return vn_device_fail(d, res, err, "command buffers");
	for (int i = 0; i < VN_TAPE_BUFFERS; i++) {
		r->of[i].cmd = cmd[i];
		snprintf(name, sizeof(name), "pass %d", i);
		vn_device_name(d, VK_OBJECT_TYPE_COMMAND_BUFFER, (uint64_t)(uintptr_t)cmd[i], name);
	}
	return VN_OK;
}

void vn_tape_buffers_destroy(vn_tape_buffers *r)
{
	for (int i = 0; i < VN_TAPE_BUFFERS; i++) {
		vn_buffer_destroy(r->d, &r->of[i].blocks);
		vn_tape_free(&r->of[i].tape);
	}
	*r = (vn_tape_buffers) { 0 };
}

static bool holds_tape(const vn_tape_buffers *r, const vn_tape_buffer *rec, const vn_tape *tape)
{
	return !r->always && rec->used && !rec->flying && rec->destroyed == r->d->destroyed && rec->tape.n == tape->n &&
	       memcmp(rec->tape.bytes, tape->bytes, tape->n) == 0;
}

/* The command buffer that was not submitted for the longest time. At most two are running. */
static vn_tape_buffer *find_oldest(vn_tape_buffers *r)
{
	vn_tape_buffer *found = NULL;

	for (int i = 0; i < VN_TAPE_BUFFERS; i++)
		if (!r->of[i].flying && (!found || r->of[i].used < found->used))
			found = &r->of[i];
	return found;
}

static vn_status make_room(vn_tape_buffers *r, vn_tape_buffer *rec, size_t bytes, vn_error *err)
{
	VkDeviceSize room = BLOCKS_LEAST;

	if (bytes == 0)
		return VN_OK;
	while (room < bytes)
		room *= 2;
	return vn_buffer_ensure(r->d, &rec->blocks, &(vn_buffer_need) { VN_FOR_UPLOAD, room, false, "push blocks" }, err);
}

/* rec takes the tape's bytes and leaves its own. */
static vn_status fill_buffer(vn_tape_buffers *r, vn_tape_buffer *rec, vn_tape *tape, size_t blocks, vn_error *err)
{
	const vn_tape had = rec->tape;
	vn_status     st;

	rec->used = 0;
	if ((st = make_room(r, rec, blocks, err)))
		return st;
	rec->destroyed = r->d->destroyed;
	rec->tape = *tape;
	*tape = had;
	tape->n = 0;
	return record_commands(r, rec, err);
}

vn_status vn_tape_buffers_find(vn_tape_buffers *r, vn_tape *tape, const vn_tape *blocks, vn_tape_buffer **rec,
                               vn_error *err)
{
	vn_tape_buffer *found = NULL;
	vn_status       st;

	for (int i = 0; i < VN_TAPE_BUFFERS && !found; i++)
		if (holds_tape(r, &r->of[i], tape))
			found = &r->of[i];
	if (!found && (st = fill_buffer(r, found = find_oldest(r), tape, blocks->n, err)))
		return st;
	if (blocks->n)
		memcpy(found->blocks.map, blocks->bytes, blocks->n);
	found->used = ++r->clock;
	*rec = found;
	return VN_OK;
}
