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

static VkResult list_extensions(VkPhysicalDevice device, const char *layer, uint32_t *n, VkExtensionProperties *list)
{
	return device ? vn_vk.EnumerateDeviceExtensionProperties(device, layer, n, list)
	              : vn_vk.EnumerateInstanceExtensionProperties(layer, n, list);
}

bool vn_vulkan_has(VkPhysicalDevice device, const char *layer, const char *extension)
{
	uint32_t               n = 0;
	VkExtensionProperties *list;
	bool                   found = false;

	if (list_extensions(device, layer, &n, NULL) != VK_SUCCESS || n == 0 || !(list = calloc(n, sizeof *list)))
		return false;
	if (list_extensions(device, layer, &n, list) >= VK_SUCCESS)
		for (uint32_t i = 0; i < n && !found; i++)
			found = strcmp(list[i].extensionName, extension) == 0;
	free(list);
	return found;
}
