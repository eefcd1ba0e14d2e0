/* vulkan.c: see vulkan.h. */
#include "libgpu/vulkan.h"

#include "libref/base/room.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The loader's name on every Linux. It has no slash, so only the loader's own folders are searched,
 * never the current one. */
#define LOADER "libvulkan.so.1"

/* Bytes of address space. lavapipe crashes in LLVM where it gets no memory: seen with
 * up to 600 MB left. */
enum { ROOM = 1 << 30 };

vn_vulkan vn_vk;

/* ISO C does not convert an object pointer to a function pointer. missing: the first name that the
 * library lacks. */
static void find_function(void *library, const char *name, void *function, const char **missing)
{
	void *symbol = dlsym(library, name);

	memcpy(function, &symbol, sizeof symbol);
	if (!symbol && !*missing)
		*missing = name;
}

vn_status vn_vulkan_load(vn_error *err)
{
	static void *library; /* never unloaded: drivers have threads of their own */
	const char  *missing = NULL;

	if (library)
		return VN_OK;
	if (!vn_room_for(ROOM))
		return vn_fail(err, VN_ERR_NOMEM,
		               "no Vulkan device: drivers need 1 GiB of address space; less is available: "
		               "raise the limit (ulimit -v)");
	if (!(library = dlopen(LOADER, RTLD_NOW | RTLD_LOCAL)))
		return vn_fail(
			err, VN_ERR_DEVICE,
			"no Vulkan device: the Vulkan loader cannot be loaded: %s (install it and a driver: " VN_VULKAN_PACKAGES
			")",
			dlerror());
#define X(name) find_function(library, "vk" #name, &vn_vk.name, &missing);
	VN_VULKAN_FUNCTIONS(X)
#undef X
	if (!missing)
		return VN_OK;
	vn_fail(err, VN_ERR_DEVICE, "no Vulkan device: the Vulkan loader is too old: it lacks %s; Vulkan 1.3 is required",
	        missing);
	dlclose(library);
	library = NULL;
	return VN_ERR_DEVICE;
}

const char *vn_result_text(VkResult r)
{
	/* clang-format off */
	switch (r) {
	case VK_SUCCESS:                        return "success";
	case VK_TIMEOUT:                        return "timeout";
	case VK_INCOMPLETE:                     return "incomplete answer";
	case VK_ERROR_OUT_OF_HOST_MEMORY:       return "out of host memory";
	case VK_ERROR_OUT_OF_DEVICE_MEMORY:     return "out of device memory";
	case VK_ERROR_INITIALIZATION_FAILED:    return "initialisation failed";
	case VK_ERROR_DEVICE_LOST:              return "device lost";
	case VK_ERROR_MEMORY_MAP_FAILED:        return "memory cannot be mapped";
	case VK_ERROR_LAYER_NOT_PRESENT:        return "layer not present";
	case VK_ERROR_EXTENSION_NOT_PRESENT:    return "extension not present";
	case VK_ERROR_FEATURE_NOT_PRESENT:      return "feature not present";
	case VK_ERROR_INCOMPATIBLE_DRIVER:      return "no usable driver";
	case VK_ERROR_TOO_MANY_OBJECTS:         return "too many objects";
	case VK_ERROR_FRAGMENTATION:            return "memory is fragmented";
	case VK_ERROR_OUT_OF_POOL_MEMORY:       return "pool is full";
	case VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS: return "no address space left";
	default:                                return "unknown Vulkan error";
	}
	/* clang-format on */
}

vn_status vn_vulkan_fail(VkResult r, vn_error *err, const char *what)
{
	return vn_fail(err, r == VK_ERROR_OUT_OF_HOST_MEMORY ? VN_ERR_NOMEM : VN_ERR_DEVICE, "Vulkan: %s: %s (%d)", what,
	               vn_result_text(r), (int)r);
}

/* The list may grow between the question for its length and that for its entries. */
vn_status vn_vulkan_list(const vn_vulkan_question *q, void **list, uint32_t *n, vn_error *err)
{
	enum { TRIES = 8 };
	VkResult r = VK_INCOMPLETE;

	*list = NULL;
	for (int i = 0; i < TRIES && r == VK_INCOMPLETE; i++) {
		free(*list);
		*list = NULL;
		*n = 0;
		if ((r = q->ask(q->device, q->context, n, NULL)) != VK_SUCCESS)
			continue; /* incomplete: asks again */
		if (!(*list = calloc(*n ? *n : 1, q->each))) {
			const uint32_t wanted = *n;
			*n = 0;
			return vn_fail(err, VN_ERR_NOMEM, "Vulkan: %s: no memory for a list of %u", q->what, wanted);
		}
		r = q->ask(q->device, q->context, n, *list);
	}
	if (r == VK_SUCCESS)
		return VN_OK;
	free(*list);
	*list = NULL;
	*n = 0;
	return vn_vulkan_fail(r, err, q->what);
}

static VkResult list_extensions(VkPhysicalDevice device, const void *layer, uint32_t *n, void *list)
{
	return device ? vn_vk.EnumerateDeviceExtensionProperties(device, layer, n, list)
	              : vn_vk.EnumerateInstanceExtensionProperties(layer, n, list);
}

vn_status vn_vulkan_has(VkPhysicalDevice device, const char *layer, const char *extension, bool *has, vn_error *err)
{
	VN_FREED void *all = NULL;
	uint32_t       n;
	vn_status st = vn_vulkan_list(&(vn_vulkan_question) { list_extensions, device, layer, sizeof(VkExtensionProperties),
	                                                      "the list of extensions" },
	                              &all, &n, err);

	*has = false;
	for (const VkExtensionProperties *e = all; e && e < (const VkExtensionProperties *)all + n && !*has; e++)
		*has = strcmp(e->extensionName, extension) == 0;
	return st;
}
