/* coop.c: cooperative matrices: what a device has of them. */
#include "libgpu/coop.h"

#include <stdlib.h>

/* VkCooperativeMatrixPropertiesKHR, and the numbers in it. */
typedef struct size_listed {
	VkStructureType sType;
	void           *pNext;
	uint32_t        M, N, K, A, B, C, result;
	VkBool32        saturates;
	uint32_t        scope;
} size_listed;

enum { SIZE_LISTED = 1000506001, FLOAT16 = 0, FLOAT32 = 1, SCOPE_SUBGROUP = 3 };

typedef VkResult(VKAPI_PTR *list_sizes)(VkPhysicalDevice, uint32_t *, size_listed *);

/* shared: bytes of shared memory that the build allows a workgroup; halves: the shaders let the
 * device round to half (CMakeLists.txt). */
static const struct {
	uint32_t side, subgroup, shared;
	bool     halves;
} size_of[VN_N_COOPS] = {
	[VN_COOP_16] = { 16, 32, 49152, true },
	[VN_COOP_8] = { 8, 8, 32768, false },
};

uint32_t vn_coop_side(vn_coop c)
{
	return size_of[c].side;
}

uint32_t vn_coop_subgroup(vn_coop c)
{
	return size_of[c].subgroup;
}

static bool has_features(VkPhysicalDevice p)
{
	vn_coop_features                 coop = { .sType = VN_COOP_FEATURES };
	VkPhysicalDeviceVulkan13Features v13 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
		                                     .pNext = &coop };
	VkPhysicalDeviceVulkan12Features v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
		                                     .pNext = &v13 };
	VkPhysicalDeviceFeatures2        all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v12 };

	vn_vk.GetPhysicalDeviceFeatures2(p, &all);
	/* With the memory model an atomic operation of any shader asks for the scope of a device. */
	return coop.cooperativeMatrix && v12.vulkanMemoryModel && v12.vulkanMemoryModelDeviceScope && v12.shaderFloat16 &&
	       v13.subgroupSizeControl && v13.computeFullSubgroups;
}

/* Can conversions to half round to nearest and keep subnormals, whatever conversions of other
 * numbers do? */
static bool rounds_halves(VkPhysicalDevice p)
{
	VkPhysicalDeviceVulkan12Properties v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES };
	VkPhysicalDeviceProperties2        all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &v12 };

	vn_vk.GetPhysicalDeviceProperties2(p, &all);
	return v12.shaderRoundingModeRTEFloat16 && v12.shaderDenormPreserveFloat16 &&
	       v12.roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE &&
	       v12.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
}

/* Can the device have subgroups of this many lanes, and the workgroups that the shaders need? */
static bool has_room(VkPhysicalDevice p, vn_coop c)
{
	VkPhysicalDeviceVulkan13Properties v13 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES };
	VkPhysicalDeviceProperties2        all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &v13 };

	vn_vk.GetPhysicalDeviceProperties2(p, &all);
	return v13.minSubgroupSize <= size_of[c].subgroup && size_of[c].subgroup <= v13.maxSubgroupSize &&
	       v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT &&
	       all.properties.limits.maxComputeSharedMemorySize >= size_of[c].shared &&
	       all.properties.limits.maxComputeWorkGroupInvocations >= VN_COOP_LANES &&
	       all.properties.limits.maxComputeWorkGroupSize[0] >= VN_COOP_LANES;
}

static bool is_listed(const size_listed *list, uint32_t n, uint32_t side)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i].M == side && list[i].N == side && list[i].K == side && list[i].A == FLOAT16 &&
		    list[i].B == FLOAT16 && list[i].C == FLOAT32 && list[i].result == FLOAT32 &&
		    list[i].scope == SCOPE_SUBGROUP && !list[i].saturates)
			return true;
	return false;
}

/* context: the function that lists them. */
static VkResult ask_sizes(VkPhysicalDevice p, const void *context, uint32_t *n, void *list)
{
	for (size_listed *l = list; l && l < (size_listed *)list + *n; l++)
		l->sType = (VkStructureType)SIZE_LISTED;
	return (*(const list_sizes *)context)(p, n, list);
}

vn_status vn_coop_of(VkInstance instance, VkPhysicalDevice p, vn_coop *found, vn_error *err)
{
	const list_sizes ask = (list_sizes)(void (*)(void))vn_vk.GetInstanceProcAddr(
		instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
	uint32_t  n;
	void     *list;
	bool      has;
	vn_status st;

	*found = VN_COOP_NONE;
	if ((st = vn_vulkan_has(p, NULL, VN_COOP_EXTENSION, &has, err)) || !ask || !has || !has_features(p))
		return st;
	st = vn_vulkan_list(
		&(vn_vulkan_question) { ask_sizes, p, &ask, sizeof(size_listed), "the sizes of cooperative matrices" }, &list,
		&n, err);
	for (vn_coop c = VN_COOP_NONE + 1; c < VN_N_COOPS && !st && !*found; c++)
		if (is_listed(list, n, size_of[c].side) && has_room(p, c) && (!size_of[c].halves || rounds_halves(p)))
			*found = c;
	free(list);
	return st;
}
