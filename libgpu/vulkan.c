/* vulkan.c: see vulkan.h. */
#include "libgpu/vulkan.h"

#include "libref/base/room.h"

#include <dlfcn.h>
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
