/* vulkan.h: the functions of Vulkan, from the loader, which is opened when a device is first asked for.
 *
 * A command that uses no GPU does not load it, and the program starts where there is none.
 *
 * Threads  one at a time calls vn_vulkan_load; the functions as Vulkan says.
 */
#ifndef VN_LIBGPU_VULKAN_H
#define VN_LIBGPU_VULKAN_H

#include "libref/base/error.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

/* Every one that libgpu calls; loaders for Vulkan 1.3 export them all. */
#define VN_VULKAN_FUNCTIONS(X) \
	X(AllocateCommandBuffers) X(AllocateMemory) X(BeginCommandBuffer) X(BindBufferMemory) \
	X(CmdBindPipeline) X(CmdCopyBuffer) X(CmdDispatch) X(CmdFillBuffer) X(CmdPipelineBarrier2) \
	X(CmdPushConstants) X(CmdResetQueryPool) X(CmdWriteTimestamp2) X(CreateBuffer) X(CreateCommandPool) \
	X(CreateComputePipelines) X(CreateDevice) X(CreateFence) X(CreateInstance) X(CreatePipelineCache) \
	X(CreatePipelineLayout) X(CreateQueryPool) X(CreateShaderModule) X(DestroyBuffer) \
	X(DestroyCommandPool) X(DestroyDevice) X(DestroyFence) X(DestroyInstance) X(DestroyPipeline) \
	X(DestroyPipelineCache) X(DestroyPipelineLayout) X(DestroyQueryPool) X(DestroyShaderModule) \
	X(EndCommandBuffer) X(EnumerateInstanceExtensionProperties) X(EnumerateInstanceLayerProperties) \
	X(EnumerateInstanceVersion) X(EnumeratePhysicalDevices) X(FreeMemory) X(GetBufferDeviceAddress) \
	X(GetBufferMemoryRequirements) X(GetDeviceQueue) X(GetInstanceProcAddr) X(GetPhysicalDeviceFeatures2) \
	X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) \
	X(GetPhysicalDeviceQueueFamilyProperties) X(GetPipelineCacheData) X(GetQueryPoolResults) X(MapMemory) \
	X(QueueSubmit2) X(ResetCommandBuffer) X(ResetFences) X(WaitForFences)

/* What has the loader and a driver that needs no GPU. */
#define VN_VULKAN_PACKAGES \
	"Debian and Ubuntu: libvulkan1 mesa-vulkan-drivers; Fedora: vulkan-loader mesa-vulkan-drivers; " \
	"Arch: vulkan-icd-loader vulkan-swrast; openSUSE: libvulkan1 Mesa-vulkan-drivers"

typedef struct vn_vulkan {
#define X(name) PFN_vk##name name;
	VN_VULKAN_FUNCTIONS(X)
#undef X
} vn_vulkan;

extern vn_vulkan vn_vk; /* filled by vn_vulkan_load */

/* Before any other call of Vulkan; does nothing when it has been done. VN_ERR_DEVICE where there is no loader,
 * or one without some function. */
vn_status vn_vulkan_load(vn_error *err);

#endif
