/* suitable.h: the Vulkan devices of a machine, and which required features each lacks. Inside
 * libgpu only.
 *
 * The engine's requirements are defined here, once.
 */
#pragma once

#include "libgpu/vulkan.h"

/* Required of every device; the shaders rely on them. */
#define VN_SHARED_BYTES 32768 /* shared memory of one workgroup */
#define VN_LANES_MAX    128   /* invocations of one workgroup */

/* What `vernier devices` shows of one Vulkan device. */
typedef struct vn_gpu_device {
	int     index; /* the argument of --device */
	char    name[256];
	char    type[32]; /* "discrete", "integrated", "virtual", "cpu", "other" */
	char    driver[512];
	char    api[32];      /* "1.3.230" */
	int64_t memory;       /* size of the largest device-local heap in bytes */
	char    missing[512]; /* required features that it lacks, separated by commas; "": suitable */
} vn_gpu_device;

/* Lists all devices of the machine; the caller frees *list. No device: VN_OK and *n == 0. No
 * Vulkan: VN_ERR_DEVICE. */
vn_status vn_gpu_devices(vn_gpu_device **list, int *n, vn_error *err);

typedef struct vn_physical {
	VkPhysicalDevice physical;
	vn_gpu_device    info;
	uint32_t         family; /* the queue family to use */
	int              rank;   /* 0 discrete, 1 integrated, 2 virtual, 3 other, 4 cpu: lower is better */
} vn_physical;

/* What a device reports. vn_abilities_missing lists the requirements that it does not meet, as in
 * vn_gpu_device.missing; it makes no query, so that it can be tested. */
typedef struct vn_abilities {
	uint32_t api;
	bool     storage16, addresses, synchronization2, compute;
	uint32_t shared_bytes, lanes;
} vn_abilities;

#define VN_MISSING_TEXT 512
void vn_abilities_missing(const vn_abilities *a, char missing[VN_MISSING_TEXT]);

/* Returns an instance that is never destroyed, which keeps the drivers loaded. Each time NVIDIA's
 * driver is loaded, it takes thread-local storage that it does not give back: after some forty
 * devices there is none left, and the loader can only report "no driver on this machine". */
vn_status vn_instance_kept(VkInstance *instance, vn_error *err);

/* Returns the error for an instance that could not be created. */
vn_status vn_instance_fail(VkResult r, vn_error *err);

/* Lists the devices; the caller frees *list. */
vn_status vn_physical_list(VkInstance instance, vn_physical **list, int *n, vn_error *err);
bool      vn_physical_float16(VkPhysicalDevice p); /* arithmetic in half */
