/* suitable.c: the Vulkan devices of a machine, and what each lacks. */
#include "libgpu/suitable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	VkPhysicalDeviceType type;
	int                  rank;
	const char          *name;
} kinds[] = {
	{ VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 0, "discrete" },
	{ VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 1, "integrated" },
	{ VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, 2, "virtual" },
	{ VK_PHYSICAL_DEVICE_TYPE_OTHER, 3, "other" },
	{ VK_PHYSICAL_DEVICE_TYPE_CPU, 4, "cpu" },
};

/* Returns the queue family for compute, if possible one without graphics; any compute family can
 * also copy. UINT32_MAX: there is none. */
static uint32_t compute_family(VkPhysicalDevice p)
{
	VkQueueFamilyProperties family[16];
	uint32_t                n = 16, found = UINT32_MAX;

	vn_vk.GetPhysicalDeviceQueueFamilyProperties(p, &n, family);
	for (uint32_t i = 0; i < n; i++)
		if (family[i].queueFlags & VK_QUEUE_COMPUTE_BIT && family[i].queueCount > 0 &&
		    (found == UINT32_MAX || !(family[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)))
			found = i;
	return found;
}

static void add_missing(char *missing, const char *what)
{
	const size_t used = strlen(missing);

	snprintf(missing + used, VN_MISSING_TEXT - used, "%s%s", used ? ", " : "", what);
}

void vn_abilities_missing(const vn_abilities *a, char missing[VN_MISSING_TEXT])
{
	missing[0] = '\0';
	if (a->api < VK_API_VERSION_1_3) {
		add_missing(missing, "Vulkan 1.3"); /* older devices have no queries for the rest */
		return;
	}
	if (!a->storage16)
		add_missing(missing, "16-bit storage (storageBuffer16BitAccess)");
	if (!a->addresses)
		add_missing(missing, "buffer device addresses (bufferDeviceAddress)");
	if (!a->synchronization2)
		add_missing(missing, "synchronization2");
	if (!a->compute)
		add_missing(missing, "compute queue");
	if (a->shared_bytes < VN_SHARED_BYTES)
		add_missing(missing, "32 KiB of shared memory");
	if (a->lanes < VN_LANES_MAX)
		add_missing(missing, "workgroups of 128");
}

static void find_missing(vn_physical *p, const VkPhysicalDeviceProperties *props)
{
	VkPhysicalDeviceVulkan13Features v13 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES };
	VkPhysicalDeviceVulkan12Features v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
		                                     .pNext = &v13 };
	VkPhysicalDeviceVulkan11Features v11 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
		                                     .pNext = &v12 };
	VkPhysicalDeviceFeatures2        all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v11 };

	if (props->apiVersion >= VK_API_VERSION_1_3)
		vn_vk.GetPhysicalDeviceFeatures2(p->physical, &all);
	vn_abilities_missing(&(vn_abilities) { .api = props->apiVersion,
	                                       .storage16 = v11.storageBuffer16BitAccess,
	                                       .addresses = v12.bufferDeviceAddress,
	                                       .synchronization2 = v13.synchronization2,
	                                       .compute = p->family != UINT32_MAX,
	                                       .shared_bytes = props->limits.maxComputeSharedMemorySize,
	                                       .lanes = props->limits.maxComputeWorkGroupInvocations },
	                     p->info.missing);
}

static void describe_device(vn_physical *p)
{
	VkPhysicalDeviceVulkan12Properties v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES };
	VkPhysicalDeviceProperties2        all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 };
	VkPhysicalDeviceMemoryProperties   memory;
	VkPhysicalDeviceProperties         plain;
	vn_gpu_device                     *info = &p->info;

	vn_vk.GetPhysicalDeviceProperties(p->physical, &plain);
	if (plain.apiVersion >= VK_API_VERSION_1_2)
		all.pNext = &v12;
	vn_vk.GetPhysicalDeviceProperties2(p->physical, &all);
	vn_vk.GetPhysicalDeviceMemoryProperties(p->physical, &memory);

	snprintf(info->name, sizeof(info->name), "%s", plain.deviceName);
	snprintf(info->driver, sizeof(info->driver), "%s%s%s", v12.driverName, v12.driverInfo[0] ? " " : "",
	         v12.driverInfo);
	snprintf(info->api, sizeof(info->api), "%u.%u.%u", VK_API_VERSION_MAJOR(plain.apiVersion),
	         VK_API_VERSION_MINOR(plain.apiVersion), VK_API_VERSION_PATCH(plain.apiVersion));
	snprintf(info->type, sizeof(info->type), "other");
	p->rank = 3;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].type == plain.deviceType) {
			p->rank = kinds[i].rank;
			snprintf(info->type, sizeof(info->type), "%s", kinds[i].name);
		}
	for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
		if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
		    (int64_t)memory.memoryHeaps[i].size > info->memory)
			info->memory = (int64_t)memory.memoryHeaps[i].size;
	p->family = compute_family(p->physical);
	find_missing(p, &plain);
}

vn_status vn_physical_list(VkInstance instance, vn_physical **list, int *n, vn_error *err)
{
	enum { MOST = 64, TRIES = 8 };
	VkPhysicalDevice device[MOST];
	uint32_t         count = 0;
	VkResult         r = VK_INCOMPLETE;

	*list = NULL;
	*n = 0;
	for (int i = 0; i < TRIES && r == VK_INCOMPLETE && count < MOST; i++) {
		count = MOST;
		r = vn_vk.EnumeratePhysicalDevices(instance, &count, device);
	}
	if (r == VK_ERROR_INITIALIZATION_FAILED)
		count = 0; /* what the loader says when there is no driver at all */
	else if (r != VK_SUCCESS && (r != VK_INCOMPLETE || count < MOST))
		return vn_vulkan_fail(r, err, "the list of devices");
	if (!(*list = calloc(count ? count : 1, sizeof(**list))))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a list of %u devices", count);
	for (uint32_t i = 0; i < count; i++) {
		(*list)[i].physical = device[i];
		(*list)[i].info.index = (int)i;
		describe_device(&(*list)[i]);
	}
	*n = (int)count;
	return VN_OK;
}

bool vn_physical_float16(VkPhysicalDevice p)
{
	VkPhysicalDeviceVulkan12Features v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES };
	VkPhysicalDeviceFeatures2        all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v12 };

	vn_vk.GetPhysicalDeviceFeatures2(p, &all);
	return v12.shaderFloat16;
}

vn_status vn_instance_fail(VkResult r, vn_error *err)
{
	if (r == VK_ERROR_INCOMPATIBLE_DRIVER)
		return vn_fail(
			err, VN_ERR_DEVICE,
			"no Vulkan device: no driver on this machine (Mesa's lavapipe needs no GPU: install mesa-vulkan-drivers, "
			"on Arch vulkan-swrast, on openSUSE libvulkan_lvp)");
	return vn_vulkan_fail(r, err, "it cannot be started");
}

vn_status vn_instance_kept(VkInstance *instance, vn_error *err)
{
	static VkInstance kept;
	VkResult          r = VK_SUCCESS;

	if (!kept)
		r = vn_vk.CreateInstance(
			&(VkInstanceCreateInfo) {
				.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
				.pApplicationInfo = &(VkApplicationInfo) { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		                                                   .pApplicationName = "vernier",
		                                                   .apiVersion = VK_API_VERSION_1_3 } },
			NULL, &kept);
	if (r != VK_SUCCESS) {
		kept = VK_NULL_HANDLE;
		return vn_instance_fail(r, err);
	}
	*instance = kept;
	return VN_OK;
}

vn_status vn_gpu_devices(vn_gpu_device **list, int *n, vn_error *err)
{
	VkInstance   instance;
	vn_physical *found;
	vn_status    st;

	*list = NULL;
	*n = 0;
	if ((st = vn_vulkan_load(err)) || (st = vn_instance_kept(&instance, err)) ||
	    (st = vn_physical_list(instance, &found, n, err)))
		return st;
	if (!(*list = calloc(*n ? (size_t)*n : 1, sizeof(**list)))) {
		*n = 0;
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a list of devices");
	}
	for (int i = 0; i < *n; i++)
		(*list)[i] = found[i].info;
	free(found);
	return st;
}
