/* encode.c: recording a forward pass, with its barriers. */
#include "libgpu/encode.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SLICE   100000000 /* ns of waiting between two questions */
#define SHADERS VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT
#define COPIES  (VK_PIPELINE_STAGE_2_COPY_BIT | VK_PIPELINE_STAGE_2_CLEAR_BIT)
#define WRITTEN (VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT)
#define TOUCHED (WRITTEN | VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT)

static vn_status create(vn_encoder *e, uint32_t queries, vn_error *err)
{
	vn_device *d = e->d;
	char       name[32];
	VkResult   r;

	r = vn_vk.CreateCommandPool(d->device,
	                            &(VkCommandPoolCreateInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
	                                                         .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
	                                                         .queueFamilyIndex = d->family },
	                            NULL, &e->pool);
	if (r != VK_SUCCESS)
		return vn_device_fail(d, r, err, "command pool");
	vn_device_name(d, VK_OBJECT_TYPE_COMMAND_POOL, (uint64_t)e->pool, "passes");
	r = vn_vk.AllocateCommandBuffers(
		d->device,
		&(VkCommandBufferAllocateInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
	                                     .commandPool = e->pool,
	                                     .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
	                                     .commandBufferCount = 3 },
		e->cmd);
	if (r != VK_SUCCESS)
		return vn_device_fail(d, r, err, "command buffers");
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "pass %d", i);
		vn_device_name(d, VK_OBJECT_TYPE_COMMAND_BUFFER, (uint64_t)(uintptr_t)e->cmd[i], name);
		r = vn_vk.CreateFence(d->device, &(VkFenceCreateInfo) { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO }, NULL,
		                      &e->fence[i]);
		if (r != VK_SUCCESS)
			return vn_device_fail(d, r, err, "fence");
		vn_device_name(d, VK_OBJECT_TYPE_FENCE, (uint64_t)e->fence[i], name);
	}
	if (d->ns_per_tick > 0.0) {
		r = vn_vk.CreateQueryPool(d->device,
		                          &(VkQueryPoolCreateInfo) { .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
		                                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
		                                                     .queryCount = queries },
		                          NULL, &e->queries);
		if (r != VK_SUCCESS)
			return vn_device_fail(d, r, err, "timestamps");
		e->n_queries = queries;
		vn_device_name(d, VK_OBJECT_TYPE_QUERY_POOL, (uint64_t)e->queries, "timestamps");
	}
	return VN_OK;
}

vn_status vn_encoder_create(vn_device *d, vn_kernels *k, uint32_t queries, vn_encoder *e, vn_error *err)
{
	*e = (vn_encoder) { .d = d, .k = k, .epoch = 1 };
	const vn_status st = create(e, queries, err);
	if (st)
		vn_encoder_destroy(e);
	return st;
}

void vn_encoder_destroy(vn_encoder *e)
{
	if (!e->d)
		return;
	vn_encode_abandon(e);
	for (int i = 0; i < 3; i++)
		if (e->fence[i])
			vn_vk.DestroyFence(e->d->device, e->fence[i], NULL);
	if (e->queries)
		vn_vk.DestroyQueryPool(e->d->device, e->queries, NULL);
	if (e->pool)
		vn_vk.DestroyCommandPool(e->d->device, e->pool, NULL);
	*e = (vn_encoder) { 0 };
}

static void barrier(vn_encoder *e, VkPipelineStageFlags2 to, VkAccessFlags2 access)
{
	vn_vk.CmdPipelineBarrier2(e->cmd[e->cur], &(VkDependencyInfo) { .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
	                                                                .memoryBarrierCount = 1,
	                                                                .pMemoryBarriers = &(VkMemoryBarrier2) {
																		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
																		.srcStageMask = SHADERS | COPIES,
																		.srcAccessMask = WRITTEN,
																		.dstStageMask = to,
																		.dstAccessMask = access } });
}

vn_status vn_encode_begin(vn_encoder *e, vn_error *err)
{
	const VkResult r = vn_vk.BeginCommandBuffer(
		e->cmd[e->cur], &(VkCommandBufferBeginInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
	                                                  .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT });

	assert(!e->recording && !e->flying[e->cur]);
	if (r != VK_SUCCESS)
		return vn_device_fail(e->d, r, err, "a command buffer cannot be begun");
	e->recording = true;
	e->bound = VK_NULL_HANDLE;
	barrier(e, SHADERS | COPIES, TOUCHED);
	e->epoch++;
	return VN_OK;
}

void vn_encode_reset_stamps(vn_encoder *e)
{
	if (e->queries)
		vn_vk.CmdResetQueryPool(e->cmd[e->cur], e->queries, 0, e->n_queries);
}

void vn_encode_stamp(vn_encoder *e, uint32_t i)
{
	if (e->queries && i < e->n_queries)
		vn_vk.CmdWriteTimestamp2(e->cmd[e->cur], VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, e->queries, i);
}

static void uses(vn_encoder *e, vn_buffer *b, bool write)
{
	assert(e->uses < VN_USES_MAX);
	e->use[e->uses].b = b->of ? b->of : b;
	e->use[e->uses++].write = write;
}

void vn_encode_reads(vn_encoder *e, vn_buffer *b)
{
	uses(e, b, false);
}

void vn_encode_writes(vn_encoder *e, vn_buffer *b)
{
	uses(e, b, true);
}

bool vn_encode_note_uses(vn_encoder *e)
{
	bool need = false;

	for (int i = 0; i < e->uses; i++) {
		const vn_buffer *b = e->use[i].b;
		if (b->epoch == e->epoch && (b->written || (b->read && e->use[i].write)))
			need = true;
	}
	e->epoch += need;
	for (int i = 0; i < e->uses; i++) {
		vn_buffer *b = e->use[i].b;
		if (b->epoch != e->epoch) {
			b->epoch = e->epoch;
			b->read = b->written = false;
		}
		if (e->use[i].write)
			b->written = true;
		else
			b->read = true;
	}
	e->uses = 0;
	return need;
}

/* Nothing is recorded, and no buffer is used. */
static bool is_listing(vn_encoder *e)
{
	if (e->listing)
		e->uses = 0;
	return e->listing;
}

/* Adds a barrier if the pending uses need one. */
static void add_needed_barrier(vn_encoder *e)
{
	const bool need = vn_encode_note_uses(e);

	e->left_out += need && e->early;
	if (need && !e->early && !e->break_barriers) {
		barrier(e, SHADERS | COPIES, TOUCHED);
		e->barriers++;
	}
}

static uint32_t at_most(int64_t want, uint32_t limit)
{
	return want < 1 ? 1 : want > (int64_t)limit ? limit : (uint32_t)want;
}

void vn_encode_dispatch(vn_encoder *e, vn_kernel kernel, const void *push, int64_t x, int64_t y)
{
	VkCommandBuffer cmd = e->cmd[e->cur];
	VkPipeline      pipeline;

	if (is_listing(e)) {
		e->listed[kernel] = true;
		return;
	}
	add_needed_barrier(e);
	if (e->failed || (e->failed = vn_kernel_pipeline(e->k, kernel, &pipeline, &e->why)))
		return;
	if (pipeline != e->bound)
		vn_vk.CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
	e->bound = pipeline;
	vn_vk.CmdPushConstants(cmd, e->k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, vn_kernel_push_bytes(kernel), push);
	vn_vk.CmdDispatch(cmd, at_most(x, e->d->limits.maxComputeWorkGroupCount[0]),
	                  at_most(y, e->d->limits.maxComputeWorkGroupCount[1]), 1);
}

static void copy(vn_encoder *e, const vn_buffer *src, VkDeviceSize from, const vn_buffer *dst, VkDeviceSize to,
                 VkDeviceSize n)
{
	if (is_listing(e))
		return;
	add_needed_barrier(e);
	if (n > 0)
		vn_vk.CmdCopyBuffer(
			e->cmd[e->cur], src->buffer, dst->buffer, 1,
			&(VkBufferCopy) { .srcOffset = src->offset + from, .dstOffset = dst->offset + to, .size = n });
}

void vn_encode_copy(vn_encoder *e, vn_buffer *src, VkDeviceSize from, vn_buffer *dst, VkDeviceSize to, VkDeviceSize n)
{
	uses(e, src, false);
	uses(e, dst, true);
	copy(e, src, from, dst, to, n);
}

void vn_encode_copy_out(vn_encoder *e, vn_buffer *src, VkDeviceSize from, vn_buffer *dst, VkDeviceSize to,
                        VkDeviceSize n)
{
	uses(e, src, false);
	copy(e, src, from, dst, to, n);
}

void vn_encode_clear(vn_encoder *e, vn_buffer *b)
{
	uses(e, b, true);
	if (is_listing(e))
		return;
	add_needed_barrier(e);
	vn_vk.CmdFillBuffer(e->cmd[e->cur], b->buffer, b->offset, b->size, 0);
}

void vn_encode_poison(vn_encoder *e, vn_buffer *b)
{
	uses(e, b, true);
	if (is_listing(e))
		return;
	add_needed_barrier(e);
	vn_vk.CmdFillBuffer(e->cmd[e->cur], b->buffer, 0, VK_WHOLE_SIZE, VN_POISON);
}

void vn_encode_count(vn_encoder *e, const vn_buffer *b, uint32_t number)
{
	if (!is_listing(e))
		vn_vk.CmdFillBuffer(e->cmd[e->cur], b->buffer, b->offset, sizeof number, number);
}

/* Ends and submits command buffer i. */
static vn_status send(vn_encoder *e, int i, vn_error *err)
{
	VkResult r;

	if ((r = vn_vk.EndCommandBuffer(e->cmd[i])) != VK_SUCCESS ||
	    (r = vn_vk.ResetFences(e->d->device, 1, &e->fence[i])) != VK_SUCCESS)
		return vn_device_fail(e->d, r, err, "a command buffer cannot be ended");
	r = vn_vk.QueueSubmit2(
		e->d->queue, 1,
		&(VkSubmitInfo2) {
			.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
			.commandBufferInfoCount = 1,
			.pCommandBufferInfos = &(VkCommandBufferSubmitInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
	                                                              .commandBuffer = e->cmd[i] } },
		e->fence[i]);
	if (r != VK_SUCCESS)
		return vn_device_fail(e->d, r, err, "a command buffer cannot be submitted");
	e->flying[i] = true;
	return VN_OK;
}

vn_status vn_encode_submit(vn_encoder *e, vn_error *err)
{
	vn_status st;

	if (e->failed)
		return vn_fail(err, e->failed, "%s", e->why.text);
	barrier(e, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
	e->recording = false;
	if ((st = send(e, e->cur, err)))
		return st;
	e->cur = 1 - e->cur;
	e->submits++;
	return VN_OK;
}

vn_status vn_encode_asked_to_stop(vn_encoder *e, vn_error *err)
{
	return e->stop && e->stop(e->stop_ctx) ? vn_fail(err, VN_ERR_INTERRUPTED, "interrupted") : VN_OK;
}

/* Without workgroups the shader reads nothing of the push block, but validation wants one. */
vn_status vn_encode_first_use(vn_encoder *e, vn_kernel kernel, vn_error *err)
{
	static const uint8_t  push[128];
	const VkCommandBuffer cmd = e->cmd[VN_CMD_ASIDE];
	VkPipeline            pipeline;
	vn_status             st = vn_kernel_pipeline(e->k, kernel, &pipeline, err);
	VkResult              r;

	if (st)
		return st;
	r = vn_vk.BeginCommandBuffer(cmd,
	                             &(VkCommandBufferBeginInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
	                                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT });
	if (r != VK_SUCCESS)
		return vn_device_fail(e->d, r, err, "a command buffer cannot be begun");
	vn_vk.CmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
	vn_vk.CmdPushConstants(cmd, e->k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push), push);
	vn_vk.CmdDispatch(cmd, 0, 1, 1);
	st = send(e, VN_CMD_ASIDE, err);
	return st ? st : vn_encode_wait(e, VN_CMD_ASIDE, err);
}

/* A software device that got no thread for a part of its work never finishes, and says nothing. It computes on
 * this process's time, of which next to nothing is then spent. A busy machine gives it more than that. */
typedef struct patience {
	double since, spent; /* seconds: when this began, and what the process had used */
} patience;

enum { IDLE_S = 4 };
static const double IDLE = 0.002; /* of the time that passes; asking ten times a second takes a tenth of it */

static double clock_s(clockid_t id)
{
	struct timespec t = { 0 };
	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_stuck(const vn_encoder *e, patience *p)
{
	const double now = clock_s(CLOCK_MONOTONIC), spent = clock_s(CLOCK_PROCESS_CPUTIME_ID);

	if (strcmp(e->d->info.type, "cpu") != 0)
		return false;
	if (p->since > 0 && now - p->since < IDLE_S)
		return false;
	const bool stuck = p->since > 0 && spent - p->spent < IDLE * (now - p->since);
	*p = (patience) { now, spent };
	return stuck;
}

vn_status vn_encode_wait(vn_encoder *e, int i, vn_error *err)
{
	patience  p = { 0 };
	vn_status st;
	VkResult  r;

	if (!e->flying[i])
		return VN_OK;
	/* Forever: a pass on a software device may take hours, and a lost one says so. */
	while ((r = vn_vk.WaitForFences(e->d->device, 1, &e->fence[i], VK_TRUE, SLICE)) == VK_TIMEOUT)
		if ((st = vn_encode_asked_to_stop(e, err)))
			return st;
		else if ((e->stuck = is_stuck(e, &p)))
			return vn_fail(err, VN_ERR_DEVICE, "%s: computes nothing more, usually for lack of threads (ulimit -u)",
			               e->d->info.name);
	if (r != VK_SUCCESS)
		return vn_device_fail(e->d, r, err, "the pass did not finish");
	e->flying[i] = false;
	return VN_OK;
}

void vn_encode_abandon(vn_encoder *e)
{
	for (int i = 0; i < 3; i++)
		if (e->flying[i]) {
			if (!e->stuck)
				vn_vk.WaitForFences(e->d->device, 1, &e->fence[i], VK_TRUE, UINT64_MAX);
			e->flying[i] = false;
		}
	if (e->recording)
		vn_vk.ResetCommandBuffer(e->cmd[e->cur], 0);
	e->recording = false;
	e->uses = 0;
	e->failed = VN_OK;
}
