/* device.h: one opened Vulkan device: its selection, its queue, its validation messages. Inside
 * libgpu only.
 *
 * A device is opened for one engine at a time.
 *
 * Threads  one thread at a time per device; messages may come from any.
 * Errors   a failed open leaves nothing behind; d may be zeroed for close.
 */
#pragma once

#include "libgpu/pipelines.h"
#include "libgpu/coop.h"
#include "libgpu/suitable.h"
#include "libgpu/vulkan.h"

#include <stdatomic.h>

/* What went wrong on a device while it was open. */
typedef struct vn_device_trouble {
	int         complaints;     /* warnings and errors of the validation layer */
	char        complaint[800]; /* the first one, in one line */
	atomic_bool failed;         /* vn_device_fail was called; for tests */
} vn_device_trouble;

typedef struct vn_device {
	VkInstance                       instance;
	VkDebugUtilsMessengerEXT         messenger;
	VkPhysicalDevice                 physical;
	VkDevice                         device;
	VkQueue                          queue;
	uint32_t                         family;
	VkPhysicalDeviceMemoryProperties memory;
	VkPhysicalDeviceProperties       properties;
	VkDeviceSize                     max_allocation; /* limit of one vkAllocateMemory, in bytes */
	bool                             direct;         /* the host can write all device memory */
	vn_coop                          coop;           /* cooperative matrices */
	double                           ns_per_tick;    /* 0: no timestamps on this queue */
	uint64_t                         tick_mask;
	uint8_t                          driver_uuid[VK_UUID_SIZE];
	vn_gpu_device                    info;
	int64_t                          allocated; /* bytes of device and host memory held now */
	uint64_t                         destroyed; /* buffers so far */

	PFN_vkSetDebugUtilsObjectNameEXT set_name; /* NULL: objects get no names */

	/* commands may run for ever, or nobody knows: they are not waited for, and what they use is
	 * not destroyed */
	bool               stuck;
	bool               old_layer; /* the layer does not know cooperative matrices */
	vn_device_trouble *trouble;   /* owned; the messenger's context, so it does not move with the device */
	vn_pipelines      *pipelines; /* owned */
} vn_device;

/* Opens a device. index: as in vn_gpu_options; VERNIER_DEVICE (an index or part of a name) replaces
 * -1. float16: products will be summed in float16. */
vn_status vn_device_open(vn_device *d, int index, bool float16, bool validate, vn_error *err);
void      vn_device_close(vn_device *d);

/* Ignore messages: this thread's current call uses what the layer does not know. */
extern _Thread_local bool vn_device_unheard;

/* For tests: what opens and closes the devices of engines. */
typedef vn_status        vn_device_opener(vn_device *d, int index, bool float16, bool validate, vn_error *err);
typedef void             vn_device_closer(vn_device *d);
extern vn_device_opener *vn_gpu_open_device;
extern vn_device_closer *vn_gpu_close_device;
/* For tests: devices opened from now on hide their memory from the host, like a discrete GPU. */
extern bool              vn_device_hide_memory;
/* For tests: devices opened from now on have no cooperative matrices. */
extern bool              vn_device_no_coop;
/* For tests: the validation layer lacks synchronisation validation. */
extern bool              vn_device_old_layer;

/* Returns VN_OK, or VN_ERR_DEVICE with the first message of the validation layer. */
vn_status vn_device_complaint(const vn_device *d, vn_error *err);

/* Names a Vulkan object. handle: the object as a number. */
void vn_device_name(const vn_device *d, VkObjectType type, uint64_t handle, const char *name);

/* Fails with "NAME: WHAT: out of device memory" or the like, for a VkResult that is not
 * VK_SUCCESS. May be called from any thread. */
vn_status vn_device_fail(const vn_device *d, VkResult r, vn_error *err, const char *what);
