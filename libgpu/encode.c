/* encode.c: listing the commands of a forward pass, with its barriers. */
#include "libgpu/encode.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SLICE 100000000 /* nanoseconds between two checks */

vn_status vn_encoder_create(vn_device *d, vn_kernels *k, uint32_t queries, vn_encoder *e, vn_error *err)
{
	char      name[32];
	vn_status st;
	VkResult  r;

	*e = (vn_encoder) { .d = d, .k = k, .epoch = 1 };
	r = vn_vk.CreateCommandPool(d->device,
	                            &(VkCommandPoolCreateInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
	                                                         .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
	                                                         .queueFamilyIndex = d->family },
	                            NULL, &e->pool);
	if (r != VK_SUCCESS) {
		e->pool = VK_NULL_HANDLE;
		return vn_device_fail(d, r, err, "command pool");
	}
	vn_device_name(d, VK_OBJECT_TYPE_COMMAND_POOL, (uint64_t)e->pool, "passes");
	r = vn_vk.AllocateCommandBuffers(
		d->device,
		&(VkCommandBufferAllocateInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
	                                     .commandPool = e->pool,
	                                     .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
	                                     .commandBufferCount = 1 },
		&e->aside);
	if (r != VK_SUCCESS)
		return vn_device_fail(d, r, err, "command buffers");
	vn_device_name(d, VK_OBJECT_TYPE_COMMAND_BUFFER, (uint64_t)(uintptr_t)e->aside, "first use");
	if ((st = vn_tape_buffers_create(d, e->pool, &e->buffers, err)))
		return st;
	e->buffers.layout = k ? k->layout : VK_NULL_HANDLE;
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "pass %d", i);
		r = vn_vk.CreateFence(d->device, &(VkFenceCreateInfo) { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO }, NULL,
		                      &e->fence[i]);
		if (r != VK_SUCCESS) {
			e->fence[i] = VK_NULL_HANDLE;
			return vn_device_fail(d, r, err, "fence");
		}
		vn_device_name(d, VK_OBJECT_TYPE_FENCE, (uint64_t)e->fence[i], name);
	}
	if (d->ns_per_tick > 0.0) {
		r = vn_vk.CreateQueryPool(d->device,
		                          &(VkQueryPoolCreateInfo) { .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
		                                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
		                                                     .queryCount = queries },
		                          NULL, &e->queries);
		if (r != VK_SUCCESS) {
			e->queries = VK_NULL_HANDLE;
			return vn_device_fail(d, r, err, "timestamps");
		}
		e->n_queries = queries;
		e->buffers.queries = e->queries;
		vn_device_name(d, VK_OBJECT_TYPE_QUERY_POOL, (uint64_t)e->queries, "timestamps");
	}
	return VN_OK;
}

void vn_encoder_destroy(vn_encoder *e)
{
	if (!e->d)
		return;
	vn_encode_abandon(e);
	vn_tape_buffers_destroy(&e->buffers);
	vn_tape_free(&e->tape);
	vn_tape_free(&e->blocks);
	for (int i = 0; i < 3; i++)
		if (e->fence[i])
			vn_vk.DestroyFence(e->d->device, e->fence[i], NULL);
	if (e->queries)
		vn_vk.DestroyQueryPool(e->d->device, e->queries, NULL);
	if (e->pool)
		vn_vk.DestroyCommandPool(e->d->device, e->pool, NULL);
	*e = (vn_encoder) { 0 };
}

static void no_memory(vn_encoder *e)
{
	if (!e->failed)
		e->failed = vn_fail(&e->why, VN_ERR_NOMEM, "no memory for a list of commands");
}

static void add_entry(vn_encoder *e, vn_tape_entry c, const void *push)
{
	if (!vn_tape_add(&e->tape, &c, push))
		no_memory(e);
}

static void add_barrier(vn_encoder *e)
{
	add_entry(e, (vn_tape_entry) { .kind = VN_TAPE_BARRIER }, NULL);
}

void vn_encode_begin(vn_encoder *e)
{
	assert(!e->recording && !e->flying[e->cur]);
	e->recording = true;
	e->tape.n = e->blocks.n = 0;
	add_barrier(e);
	e->epoch++;
}

void vn_encode_reset_stamps(vn_encoder *e)
{
	if (e->queries)
		add_entry(e, (vn_tape_entry) { .kind = VN_TAPE_RESET_STAMPS, .x = e->n_queries }, NULL);
}

void vn_encode_stamp(vn_encoder *e, uint32_t i)
{
	if (e->queries && i < e->n_queries)
		add_entry(e, (vn_tape_entry) { .kind = VN_TAPE_STAMP, .x = i }, NULL);
}

static void note_use(vn_encoder *e, vn_buffer *b, bool write)
{
	assert(e->uses < VN_USES_MAX);
	e->use[e->uses].b = b->of ? b->of : b;
	e->use[e->uses++].write = write;
}

void vn_encode_reads(vn_encoder *e, vn_buffer *b)
{
	note_use(e, b, false);
}

void vn_encode_writes(vn_encoder *e, vn_buffer *b)
{
	note_use(e, b, true);
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

	e->left_out += need && e->omit;
	if (need && !e->omit) {
		add_barrier(e);
		e->barriers++;
	}
}

static uint32_t at_most(int64_t want, uint32_t limit)
{
	return want < 1 ? 1 : want > (int64_t)limit ? limit : (uint32_t)want;
}

void vn_encode_dispatch(vn_encoder *e, vn_kernel kernel, const void *push, int64_t x, int64_t y)
{
	const uint32_t bytes = vn_kernel_push_bytes(kernel);
	vn_tape_entry  c = { .kind = VN_TAPE_DISPATCH, .bytes = bytes };

	if (is_listing(e)) {
		e->listed[kernel] = true;
		return;
	}
	add_needed_barrier(e);
	if (e->failed || (e->failed = vn_kernel_pipeline(e->k, kernel, &c.pipeline, &e->why)))
		return;
	c.x = at_most(x, e->d->properties.limits.maxComputeWorkGroupCount[0]);
	c.y = at_most(y, e->d->properties.limits.maxComputeWorkGroupCount[1]);
	if (vn_kernel_in_memory(kernel)) {
		c.kind = VN_TAPE_DISPATCH_IN_MEMORY;
		c.bytes = 0;
		if (!vn_tape_add_block(&e->blocks, push, bytes, &c.from_at))
			no_memory(e);
	}
	add_entry(e, c, push);
}

void vn_encode_copy_out(vn_encoder *e, vn_buffer *src, VkDeviceSize from, vn_buffer *dst, VkDeviceSize to,
                        VkDeviceSize n)
{
	note_use(e, src, false);
	if (is_listing(e))
		return;
	add_needed_barrier(e);
	if (n > 0)
		add_entry(e,
		          (vn_tape_entry) { .kind = VN_TAPE_COPY,
		                            .from = src->buffer,
		                            .to = dst->buffer,
		                            .from_at = src->offset + from,
		                            .to_at = dst->offset + to,
		                            .n = n },
		          NULL);
}

void vn_encode_copy(vn_encoder *e, vn_buffer *src, VkDeviceSize from, vn_buffer *dst, VkDeviceSize to, VkDeviceSize n)
{
	note_use(e, dst, true);
	vn_encode_copy_out(e, src, from, dst, to, n);
}

static void add_fill(vn_encoder *e, const vn_buffer *b, VkDeviceSize at, VkDeviceSize n, uint32_t number)
{
	add_entry(e, (vn_tape_entry) { .kind = VN_TAPE_FILL, .x = number, .to = b->buffer, .to_at = at, .n = n }, NULL);
}

static void fill_buffer(vn_encoder *e, vn_buffer *b, VkDeviceSize at, VkDeviceSize n, uint32_t number)
{
	note_use(e, b, true);
	if (is_listing(e))
		return;
	add_needed_barrier(e);
	add_fill(e, b, at, n, number);
}

void vn_encode_clear(vn_encoder *e, vn_buffer *b)
{
	fill_buffer(e, b, b->offset, b->size, 0);
}

void vn_encode_poison(vn_encoder *e, vn_buffer *b)
{
	fill_buffer(e, b, 0, VK_WHOLE_SIZE, VN_POISON);
}

void vn_encode_count(vn_encoder *e, const vn_buffer *b, uint32_t number)
{
	if (!is_listing(e))
		add_fill(e, b, b->offset, sizeof number, number);
}

/* Submits a command buffer, in place i. */
static vn_status submit_buffer(vn_encoder *e, VkCommandBuffer cmd, int i, vn_error *err)
{
	VkResult r;

	if ((r = vn_vk.ResetFences(e->d->device, 1, &e->fence[i])) == VK_SUCCESS)
		r = vn_vk.QueueSubmit2(
			e->d->queue, 1,
			&(VkSubmitInfo2) { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
		                       .commandBufferInfoCount = 1,
		                       .pCommandBufferInfos = &(
								   VkCommandBufferSubmitInfo) { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
		                                                        .commandBuffer = cmd } },
			e->fence[i]);
	if (r != VK_SUCCESS)
		return vn_device_fail(e->d, r, err, "a command buffer cannot be submitted");
	e->flying[i] = true;
	return VN_OK;
}

static void mark_landed(vn_encoder *e, int i)
{
	e->flying[i] = false;
	if (e->sent[i])
		e->sent[i]->flying = false;
	e->sent[i] = NULL;
}

vn_status vn_encode_submit(vn_encoder *e, vn_error *err)
{
	vn_tape_buffer *rec;
	vn_status       st;

	if (e->failed)
		return vn_fail(err, e->failed, "%s", e->why.text);
	if (e->d->stuck)
		return vn_fail(err, VN_ERR_DEVICE, "%s: earlier commands may still run", e->d->info.name);
	add_entry(e, (vn_tape_entry) { .kind = VN_TAPE_HOST_BARRIER }, NULL);
	e->recording = false;
	if ((st = e->failed) != VN_OK)
		return vn_fail(err, st, "%s", e->why.text);
	if ((st = vn_tape_buffers_find(&e->buffers, &e->tape, &e->blocks, &rec, err)) ||
	    (st = submit_buffer(e, rec->cmd, e->cur, err)))
		return st;
	rec->flying = true;
	e->sent[e->cur] = rec;
	e->cur = 1 - e->cur;
	e->submits++;
	return VN_OK;
}

vn_status vn_encode_asked_to_stop(vn_encoder *e, vn_error *err)
{
	return e->stop && e->stop(e->stop_ctx) ? vn_fail(err, VN_ERR_INTERRUPTED, "interrupted") : VN_OK;
}

/* Without workgroups the shader reads no push block, but validation requires one. */
vn_status vn_encode_first_use(vn_encoder *e, vn_kernel kernel, vn_error *err)
{
	static const uint8_t  push[128];
	const VkCommandBuffer cmd = e->aside;
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
	if ((r = vn_vk.EndCommandBuffer(cmd)) != VK_SUCCESS)
		return vn_device_fail(e->d, r, err, "a command buffer cannot be ended");
	st = submit_buffer(e, cmd, VN_CMD_ASIDE, err);
	return st ? st : vn_encode_wait(e, VN_CMD_ASIDE, err);
}

/* A software device that gets no thread for a part of its work never finishes, and reports nothing.
 * It computes in this process, which therefore uses next to no processor time while the device is
 * stuck. Even on a busy machine, a device that works uses more. */
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
	/* No time limit: a pass on a software device may take hours, and a lost device reports
	 * itself. */
	while ((r = vn_vk.WaitForFences(e->d->device, 1, &e->fence[i], VK_TRUE, SLICE)) == VK_TIMEOUT)
		if ((st = vn_encode_asked_to_stop(e, err)))
			return st;
		else if ((e->d->stuck = is_stuck(e, &p)))
			return vn_fail(err, VN_ERR_DEVICE, "%s: makes no progress, usually for lack of threads (ulimit -u)",
			               e->d->info.name);
	if (r != VK_SUCCESS)
		return vn_device_fail(e->d, r, err, "the pass did not finish");
	mark_landed(e, i);
	return VN_OK;
}

void vn_encode_abandon(vn_encoder *e)
{
	for (int i = 0; i < 3; i++)
		if (e->flying[i]) {
			if (!e->d->stuck)
				e->d->stuck = vn_vk.WaitForFences(e->d->device, 1, &e->fence[i], VK_TRUE, UINT64_MAX) != VK_SUCCESS;
			mark_landed(e, i);
		}
	e->recording = false;
	e->uses = 0;
	e->failed = VN_OK;
}
