/* device.c: one opened Vulkan device. */
#include "libgpu/device.h"

#include "libref/base/text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALIDATION "VK_LAYER_KHRONOS_validation"

bool               vn_device_hide_memory, vn_device_no_coop, vn_device_old_layer;
_Thread_local bool vn_device_unheard;
vn_device_opener  *vn_gpu_open_device = vn_device_open;
vn_device_closer  *vn_gpu_close_device = vn_device_close;

vn_status vn_device_fail(const vn_device *d, VkResult r, vn_error *err, const char *what)
{
	if (d->trouble)
		d->trouble->failed = true;
	return vn_fail(err, VN_ERR_DEVICE, "%s: %s: %s (%d)", d->info.name[0] ? d->info.name : "Vulkan", what,
	               vn_result_text(r), (int)r);
}

void vn_device_name(const vn_device *d, VkObjectType type, uint64_t handle, const char *name)
{
	if (!d->set_name)
		return;
	d->set_name(d->device,
	            &(VkDebugUtilsObjectNameInfoEXT) { .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
	                                               .objectType = type,
	                                               .objectHandle = handle,
	                                               .pObjectName = name });
}

vn_status vn_device_complaint(const vn_device *d, vn_error *err)
{
	if (d->trouble->complaints == 0)
		return VN_OK;
	return vn_fail(err, VN_ERR_DEVICE, "%s: validation: %s (%d in all)", d->info.name, d->trouble->complaint,
	               d->trouble->complaints);
}

/* Keeps the first line of the first message; counts all. */
static void keep_message(vn_device_trouble *h, const VkDebugUtilsMessengerCallbackDataEXT *data)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (h->complaints++ == 0 && data->pMessage) {
		/* "Validation Error: [ ID ] objects; | MessageID = n | text": the text. */
		const char *text = strstr(data->pMessage, "MessageID");
		text = text ? strchr(text, '|') : NULL;
		snprintf(h->complaint, sizeof(h->complaint), "%s: %s", data->pMessageIdName ? data->pMessageIdName : "message",
		         text ? text + 2 : data->pMessage);
		h->complaint[strcspn(h->complaint, "\n")] = '\0';
	}
	pthread_mutex_unlock(&lock);
}

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT      severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT             types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *ctx)
{
	(void)severity;
	if (vn_device_unheard)
		return VK_FALSE;
	/* General messages are the loader's: drivers of other devices that did
	 * not load. They say nothing about us. */
	if (!(types & (VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT)))
		return VK_FALSE;
	keep_message(ctx, data);
	return VK_FALSE;
}

static VkResult list_layers(VkPhysicalDevice device, const void *context, uint32_t *n, void *list)
{
	(void)device, (void)context;
	return vn_vk.EnumerateInstanceLayerProperties(n, list);
}

/* Sets *version to that of Vulkan which a layer was made for; 0: there is no such layer. */
static vn_status layer_version(const char *name, uint32_t *version, vn_error *err)
{
	VN_FREED void  *all = NULL;
	uint32_t        n;
	const vn_status st = vn_vulkan_list(
		&(vn_vulkan_question) { list_layers, NULL, NULL, sizeof(VkLayerProperties), "the list of layers" }, &all, &n,
		err);

	*version = 0;
	for (const VkLayerProperties *l = all; l && l < (const VkLayerProperties *)all + n && !*version; l++)
		*version = strcmp(l->layerName, name) == 0 ? l->specVersion : 0;
	return st;
}

static vn_status check_validation(bool installed, vn_error *err)
{
	bool      watches;
	vn_status st;

	if (!installed)
		return vn_fail(err, VN_ERR_DEVICE, "--validate: the layer " VALIDATION " is not installed");
	/* Without it the layer checks calls, but not data races between them. */
	if ((st = vn_vulkan_has(NULL, VALIDATION, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME, &watches, err)))
		return st;
	if (vn_device_old_layer || !watches)
		return vn_fail(err, VN_ERR_DEVICE,
		               "--validate: the layer " VALIDATION
		               " is too old to watch synchronisation: it lacks " VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
	return VN_OK;
}

static vn_status open_instance(vn_device *d, bool validate, vn_error *err)
{
	const char *extension[2], *layer[] = { VALIDATION };
	uint32_t    extensions = 0, version = 0, layer_is = 0;
	bool        debug;
	VkInstance  kept;
	vn_status   st;
	VkResult    r;

	if ((st = vn_vulkan_has(NULL, NULL, VK_EXT_DEBUG_UTILS_EXTENSION_NAME, &debug, err)) ||
	    (validate && (st = layer_version(VALIDATION, &layer_is, err))))
		return st;
	if ((r = vn_vk.EnumerateInstanceVersion(&version)) != VK_SUCCESS)
		return vn_vulkan_fail(r, err, "the loader's version");
	if (version < VK_API_VERSION_1_3)
		return vn_fail(err, VN_ERR_DEVICE, "the Vulkan loader supports %u.%u; 1.3 is required",
		               VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
	if (validate && (st = check_validation(layer_is && debug, err)))
		return st;
	d->old_layer = validate && layer_is < VN_COOP_LAYER;
	if ((st = vn_instance_kept(&kept, err)))
		return st;
	if (debug)
		extension[extensions++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
	if (validate)
		extension[extensions++] = VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME;

	const VkDebugUtilsMessengerCreateInfoEXT messages = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
		.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
		                   VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
		.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
		               VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
		.pfnUserCallback = on_message,
		.pUserData = d->trouble
	};
	const VkValidationFeatureEnableEXT on[] = { VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT };
	const VkValidationFeaturesEXT      features = { .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
		                                            .pNext = &messages,
		                                            .enabledValidationFeatureCount = 1,
		                                            .pEnabledValidationFeatures = on };

	r = vn_vk.CreateInstance(
		&(VkInstanceCreateInfo) {
			.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
			.pNext = validate ? &features : NULL,
			.pApplicationInfo = &(VkApplicationInfo) { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
	                                                   .pApplicationName = "vernier",
	                                                   .apiVersion = VK_API_VERSION_1_3 },
			.enabledLayerCount = validate ? 1 : 0,
			.ppEnabledLayerNames = layer,
			.enabledExtensionCount = extensions,
			.ppEnabledExtensionNames = extension },
		NULL, &d->instance);
	if (r != VK_SUCCESS) {
		d->instance = VK_NULL_HANDLE;
		return vn_instance_fail(r, err);
	}
	if (debug)
		d->set_name = (PFN_vkSetDebugUtilsObjectNameEXT)(void (*)(void))vn_vk.GetInstanceProcAddr(
			d->instance, "vkSetDebugUtilsObjectNameEXT");
	if (validate) {
		PFN_vkCreateDebugUtilsMessengerEXT create = (PFN_vkCreateDebugUtilsMessengerEXT)(void (*)(
			void))vn_vk.GetInstanceProcAddr(d->instance, "vkCreateDebugUtilsMessengerEXT");
		if (!create)
			return vn_fail(err, VN_ERR_DEVICE, "--validate: validation messages cannot be received");
		if ((r = create(d->instance, &messages, NULL, &d->messenger)) != VK_SUCCESS) {
			d->messenger = VK_NULL_HANDLE;
			return vn_vulkan_fail(r, err, "validation messages cannot be received");
		}
	}
	return VN_OK;
}

/* The device that the user asked for, by option or environment; -1: none. */
static vn_status find_wanted(const vn_physical *list, int n, int index, int *found, vn_error *err)
{
	const char *name = getenv("VERNIER_DEVICE");

	*found = -1;
	if (index < 0 && name && *name) {
		char      *end;
		const long number = strtol(name, &end, 10);
		if (*end == '\0') {
			if (number < 0 || number >= n)
				return vn_fail(err, VN_ERR_DEVICE,
				               "there is no Vulkan device %.40s (VERNIER_DEVICE): the machine has %d, counted from 0",
				               name, n);
			index = (int)number;
		} else {
			for (int i = 0; i < n && *found < 0; i++)
				if (vn_text_find(list[i].info.name, name))
					*found = i;
			if (*found < 0)
				return vn_fail(err, VN_ERR_DEVICE, "no Vulkan device has \"%s\" in its name (VERNIER_DEVICE)", name);
		}
	}
	if (index >= n)
		return vn_fail(err, VN_ERR_DEVICE, "there is no Vulkan device %d: the machine has %d, counted from 0", index,
		               n);
	if (index >= 0)
		*found = index;
	return VN_OK;
}

static vn_status choose_device(vn_device *d, int index, vn_error *err)
{
	VN_FREED vn_physical *list = NULL;
	int                   n = 0, wanted = -1, best;
	vn_status             st;

	if ((st = vn_physical_list(d->instance, &list, &n, err)))
		return st;
	if (n == 0)
		return vn_fail(err, VN_ERR_DEVICE, "no Vulkan device on this machine");
	if ((st = find_wanted(list, n, index, &wanted, err)))
		return st;
	best = wanted;
	for (int i = 0; wanted < 0 && i < n; i++)
		if (!list[i].info.missing[0] && (best < 0 || list[i].rank < list[best].rank))
			best = i;
	if (best < 0)
		best = 0; /* none is suitable: report what the first one lacks */
	d->physical = list[best].physical;
	d->info = list[best].info;
	d->family = list[best].family;
	if (d->info.missing[0])
		st = vn_fail(err, VN_ERR_DEVICE, "device %d (%s) cannot be used: it lacks %s", d->info.index, d->info.name,
		             d->info.missing);
	return st;
}

static void read_properties(vn_device *d)
{
	VkPhysicalDeviceVulkan11Properties v11 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES };
	VkPhysicalDeviceVulkan13Properties v13 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES,
		                                       .pNext = &v11 };
	VkPhysicalDeviceProperties2        all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &v13 };
	VkQueueFamilyProperties            family[16];
	uint32_t                           families = 16;

	vn_vk.GetPhysicalDeviceProperties2(d->physical, &all);
	vn_vk.GetPhysicalDeviceMemoryProperties(d->physical, &d->memory);
	vn_vk.GetPhysicalDeviceQueueFamilyProperties(d->physical, &families, family);
	d->properties = all.properties;
	memcpy(d->driver_uuid, v11.driverUUID, VK_UUID_SIZE);
	d->max_allocation = v11.maxMemoryAllocationSize;
	if (v13.maxBufferSize && v13.maxBufferSize < d->max_allocation)
		d->max_allocation = v13.maxBufferSize;

	const uint32_t bits = family[d->family].timestampValidBits;
	if (bits) {
		d->ns_per_tick = (double)d->properties.limits.timestampPeriod;
		d->tick_mask = bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
	}

	/* A small window into device memory (256 MiB on older machines) is not enough. */
	VkDeviceSize largest = 0;
	for (uint32_t i = 0; i < d->memory.memoryHeapCount; i++)
		if (d->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && d->memory.memoryHeaps[i].size > largest)
			largest = d->memory.memoryHeaps[i].size;
	const VkMemoryPropertyFlags both = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
	                                   VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++)
		if ((d->memory.memoryTypes[i].propertyFlags & both) == both &&
		    d->memory.memoryHeaps[d->memory.memoryTypes[i].heapIndex].size == largest)
			d->direct = !vn_device_hide_memory;
}

static vn_status create_device(vn_device *d, bool float16, vn_error *err)
{
	const VkBool32                   coop = d->coop ? VK_TRUE : VK_FALSE;
	const char                      *extension[] = { VN_COOP_EXTENSION };
	vn_coop_features                 matrices = { .sType = VN_COOP_FEATURES, .cooperativeMatrix = VK_TRUE };
	VkPhysicalDeviceVulkan13Features v13 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
		.pNext = coop ? &matrices : NULL,
		.synchronization2 = VK_TRUE,
		.subgroupSizeControl = coop,
		.computeFullSubgroups = coop,
		/* Every 1.3 device has it; a workgroup's size in SPIR-V 1.6 asks for it. */
		.maintenance4 = VK_TRUE
	};
	VkPhysicalDeviceVulkan12Features v12 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
		                                     .pNext = &v13,
		                                     .bufferDeviceAddress = VK_TRUE,
		                                     .vulkanMemoryModel = coop,
		                                     .vulkanMemoryModelDeviceScope = coop,
		                                     .shaderFloat16 = float16 || coop ? VK_TRUE : VK_FALSE };
	VkPhysicalDeviceVulkan11Features v11 = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
		                                     .pNext = &v12,
		                                     .storageBuffer16BitAccess = VK_TRUE };
	const float                      one = 1.0f;

	vn_device_unheard = coop && d->old_layer;
	const VkResult r = vn_vk.CreateDevice(
		d->physical,
		&(VkDeviceCreateInfo) {
			.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
			.pNext = &v11,
			.queueCreateInfoCount = 1,
			.pQueueCreateInfos = &(VkDeviceQueueCreateInfo) { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
	                                                          .queueFamilyIndex = d->family,
	                                                          .queueCount = 1,
	                                                          .pQueuePriorities = &one },
			.enabledExtensionCount = coop,
			.ppEnabledExtensionNames = extension },
		NULL, &d->device);
	vn_device_unheard = false;
	if (r != VK_SUCCESS) {
		d->device = VK_NULL_HANDLE;
		return vn_device_fail(d, r, err, "the device cannot be opened");
	}
	return VN_OK;
}

vn_status vn_device_open(vn_device *d, int index, bool float16, bool validate, vn_error *err)
{
	vn_status st;

	*d = (vn_device) { 0 };
	d->trouble = calloc(1, sizeof *d->trouble);
	d->pipelines = vn_pipelines_create();
	if (!d->trouble || !d->pipelines) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a device");
		goto fail;
	}
	if ((st = vn_vulkan_load(err)) || (st = open_instance(d, validate, err)) || (st = choose_device(d, index, err)))
		goto fail;
	if (float16 && !vn_physical_float16(d->physical)) {
		st = vn_fail(err, VN_ERR_DEVICE, "device %d (%s) cannot sum in f16: it lacks shaderFloat16", d->info.index,
		             d->info.name);
		goto fail;
	}
	read_properties(d);
	if ((!vn_device_no_coop && (st = vn_coop_of(d->instance, d->physical, &d->coop, err))) ||
	    (st = create_device(d, float16, err)))
		goto fail;
	vn_device_name(d, VK_OBJECT_TYPE_DEVICE, (uint64_t)(uintptr_t)d->device, "vernier");
	vn_vk.GetDeviceQueue(d->device, d->family, 0, &d->queue);
	vn_device_name(d, VK_OBJECT_TYPE_QUEUE, (uint64_t)(uintptr_t)d->queue, "queue");
	return VN_OK;
fail:
	vn_device_close(d);
	return st;
}

void vn_device_close(vn_device *d)
{
	vn_pipelines_destroy(d->device, d->pipelines);
	if (d->device)
		vn_vk.DestroyDevice(d->device, NULL);
	if (d->messenger) {
		PFN_vkDestroyDebugUtilsMessengerEXT destroy = (PFN_vkDestroyDebugUtilsMessengerEXT)(void (*)(
			void))vn_vk.GetInstanceProcAddr(d->instance, "vkDestroyDebugUtilsMessengerEXT");
		if (destroy)
			destroy(d->instance, d->messenger, NULL);
	}
	if (d->instance)
		vn_vk.DestroyInstance(d->instance, NULL);
	free(d->trouble);
	d->device = VK_NULL_HANDLE;
	d->messenger = VK_NULL_HANDLE;
	d->instance = VK_NULL_HANDLE;
	d->trouble = NULL;
	d->pipelines = NULL;
}
