/* memory.c: buffers on the device. */
#include "libgpu/memory.h"

#include <stdio.h>

/* Of the allowed memory types that have all of `need`, returns the first that also has `like`, else
 * the first; UINT32_MAX: there is none. */
static uint32_t memory_type(const vn_device *d, uint32_t allowed, VkMemoryPropertyFlags need,
                            VkMemoryPropertyFlags like)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++) {
		const VkMemoryPropertyFlags has = d->memory.memoryTypes[i].propertyFlags;
		if (!(allowed >> i & 1) || (has & need) != need)
			continue;
		if ((has & like) == like)
			return i;
		if (found == UINT32_MAX)
			found = i;
	}
	return found;
}

static uint32_t type_for(const vn_device *d, vn_gpu_block place, uint32_t allowed)
{
	const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
	const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	uint32_t                    type;

	switch (place) {
	case VN_ON_DEVICE:
		if (d->direct && (type = memory_type(d, allowed, local | host, 0)) != UINT32_MAX)
			return type;
		return memory_type(d, allowed, local, 0);
	case VN_FOR_UPLOAD: return memory_type(d, allowed, host, local);
	case VN_FOR_READBACK:
	default:
		/* Uncached memory reads at a hundredth of the speed. */
		return memory_type(d, allowed, host, VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
	}
}

static vn_status bind_memory(vn_device *d, vn_buffer *b, vn_gpu_block place, vn_error *err)
{
	VkMemoryRequirements need;
	VkResult             r;

	vn_vk.GetBufferMemoryRequirements(d->device, b->buffer, &need);
	const uint32_t type = type_for(d, place, need.memoryTypeBits);
	if (type == UINT32_MAX)
		return vn_fail(err, VN_ERR_DEVICE, "%s: no memory type is suitable for %s", d->info.name, b->name);

	r = vn_vk.AllocateMemory(
		d->device,
		&(VkMemoryAllocateInfo) {
			.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
			.pNext = &(VkMemoryAllocateFlagsInfo) { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
	                                                .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT },
			.allocationSize = need.size,
			.memoryTypeIndex = type },
		NULL, &b->memory);
	if (r != VK_SUCCESS) {
		b->memory = VK_NULL_HANDLE;
		return vn_fail(err, VN_ERR_DEVICE, "%s: cannot allocate %llu bytes for %s: %s (%d)", d->info.name,
		               (unsigned long long)need.size, b->name, vn_result_text(r), (int)r);
	}
	b->held = need.size;
	d->allocated += (int64_t)need.size;
	vn_device_name(d, VK_OBJECT_TYPE_DEVICE_MEMORY, (uint64_t)b->memory, b->name);
	if ((r = vn_vk.BindBufferMemory(d->device, b->buffer, b->memory, 0)) != VK_SUCCESS)
		return vn_device_fail(d, r, err, b->name);

	if (d->memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT &&
	    (place != VN_ON_DEVICE || d->direct)) {
		void *at;
		if ((r = vn_vk.MapMemory(d->device, b->memory, 0, VK_WHOLE_SIZE, 0, &at)) != VK_SUCCESS)
			return vn_device_fail(d, r, err, b->name);
		b->map = (char *)at + b->offset;
	}
	b->address = b->offset +
	             vn_vk.GetBufferDeviceAddress(
					 d->device, &(VkBufferDeviceAddressInfo) { .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
	                                                           .buffer = b->buffer });
	return VN_OK;
}

vn_status vn_buffer_create(vn_device *d, vn_buffer *b, const vn_buffer_need *need, vn_error *err)
{
	const char        *name = need->name;
	const VkDeviceSize zone = need->guard ? VN_ZONE : 0;
	vn_status          st;
	VkResult           r;

	*b = (vn_buffer) { .size = need->size ? need->size : 4, .offset = zone };
	b->total = (b->size + 2 * zone + 3) & ~(VkDeviceSize)3;
	snprintf(b->name, sizeof(b->name), "%s", name);
	if (b->total > d->max_allocation)
		return vn_fail(err, VN_ERR_DEVICE, "%s: %s needs one allocation of %llu bytes; the device allows %llu",
		               d->info.name, name, (unsigned long long)b->total, (unsigned long long)d->max_allocation);

	r = vn_vk.CreateBuffer(d->device,
	                       &(VkBufferCreateInfo) {
							   .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
							   .size = b->total,
							   .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
							   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
	                                    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT },
	                       NULL, &b->buffer);
	if (r != VK_SUCCESS) {
		b->buffer = VK_NULL_HANDLE;
		st = vn_device_fail(d, r, err, name);
	} else {
		vn_device_name(d, VK_OBJECT_TYPE_BUFFER, (uint64_t)b->buffer, name);
		st = bind_memory(d, b, need->place, err);
	}
	if (st)
		vn_buffer_destroy(d, b);
	return st;
}

vn_status vn_buffer_ensure(vn_device *d, vn_buffer *b, const vn_buffer_need *need, vn_error *err)
{
	if (b->buffer && (need->guard ? b->size == need->size : b->size >= need->size))
		return VN_OK;
	vn_buffer_destroy(d, b);
	return vn_buffer_create(d, b, need, err);
}

void vn_buffer_destroy(vn_device *d, vn_buffer *b)
{
	if (b->buffer && !d->stuck) {
		vn_vk.DestroyBuffer(d->device, b->buffer, NULL);
		d->destroyed++;
	}
	if (b->memory && !d->stuck) {
		vn_vk.FreeMemory(d->device, b->memory, NULL); /* unmaps */
		d->allocated -= (int64_t)b->held;
	}
	*b = (vn_buffer) { 0 };
}
