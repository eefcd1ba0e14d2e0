/* vulkan.h: the functions of Vulkan. The loader is opened when a device is first needed.
 *
 * So commands that use no GPU do not load it, and the program starts on machines without Vulkan.
 *
 * Threads  call vn_vulkan_load from one thread at a time; for the functions, see Vulkan's rules.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

/* All functions that libgpu calls; loaders for Vulkan 1.3 export them. */
/* clang-format off */
#define VN_VULKAN_FUNCTIONS(X) \
	X(AllocateCommandBuffers) X(AllocateMemory) X(BeginCommandBuffer) X(BindBufferMemory) X(CmdBindPipeline) \
	X(CmdCopyBuffer) X(CmdDispatch) X(CmdFillBuffer) X(CmdPipelineBarrier2) X(CmdPushConstants) \
	X(CmdResetQueryPool) X(CmdWriteTimestamp2) X(CreateBuffer) X(CreateCommandPool) X(CreateComputePipelines) \
	X(CreateDevice) X(CreateFence) X(CreateInstance) X(CreatePipelineCache) X(CreatePipelineLayout) \
	X(CreateQueryPool) X(CreateShaderModule) X(DestroyBuffer) X(DestroyCommandPool) X(DestroyDevice) \
	X(DestroyFence) X(DestroyInstance) X(DestroyPipeline) X(DestroyPipelineCache) X(DestroyPipelineLayout) \
	X(DestroyQueryPool) X(DestroyShaderModule) X(EndCommandBuffer) X(EnumerateDeviceExtensionProperties) \
	X(EnumerateInstanceExtensionProperties) X(EnumerateInstanceLayerProperties) X(EnumerateInstanceVersion) \
	X(EnumeratePhysicalDevices) X(FreeMemory) X(GetBufferDeviceAddress) X(GetBufferMemoryRequirements) \
	X(GetDeviceQueue) X(GetInstanceProcAddr) X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties) \
	X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceQueueFamilyProperties) \
	X(GetPipelineCacheData) X(GetQueryPoolResults) X(MapMemory) X(QueueSubmit2) \
	X(ResetFences) X(WaitForFences)
/* clang-format on */

/* Packages with the loader and a driver that needs no GPU. */
#define VN_VULKAN_PACKAGES \
	"Debian and Ubuntu: libvulkan1 mesa-vulkan-drivers; Fedora: vulkan-loader mesa-vulkan-drivers; " \
	"Arch: vulkan-icd-loader vulkan-swrast; openSUSE: libvulkan1 libvulkan_lvp"

typedef struct vn_vulkan {
#define X(name) PFN_vk##name name;
	VN_VULKAN_FUNCTIONS(X)
#undef X
} vn_vulkan;

extern vn_vulkan vn_vk; /* filled by vn_vulkan_load */

/* Loads the functions; call before any other function of Vulkan. Does nothing if they are loaded.
 * VN_ERR_DEVICE: there is no loader, or it lacks a function. */
vn_status vn_vulkan_load(vn_error *err);

const char *vn_result_text(VkResult r);
/* Fails with "Vulkan: WHAT: out of host memory (-1)" or the like. */
vn_status   vn_vulkan_fail(VkResult r, vn_error *err, const char *what);

typedef VkResult vn_vulkan_lister(VkPhysicalDevice device, const void *context, uint32_t *n, void *list);

typedef struct vn_vulkan_question {
	vn_vulkan_lister *ask;
	VkPhysicalDevice  device;
	const void       *context; /* passed to ask, like device */
	size_t            each;    /* bytes of an entry */
	const char       *what;    /* it lists, for the error */
} vn_vulkan_question;

/* Asks for a list, of entries that are zeroed before; again if it comes out incomplete. The caller
 * frees *list, which is NULL if it fails. */
vn_status vn_vulkan_list(const vn_vulkan_question *q, void **list, uint32_t *n, vn_error *err);

/* Sets *has: does a device, or a layer, or else the loader (both NULL) have an extension? */
vn_status vn_vulkan_has(VkPhysicalDevice device, const char *layer, const char *extension, bool *has, vn_error *err);
