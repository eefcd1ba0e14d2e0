/* fail_layer.c: a Vulkan layer in which the n-th call of a function fails. fail_layer.py drives it,
 * and checks that it has every function of libgpu that returns a VkResult.
 *
 * It is an implicit layer: such a layer also sees the calls that need no instance. The environment
 * says what fails:
 *
 *   VN_LAYER_FUNCTION  a name without "vk"; unset: nothing fails
 *   VN_LAYER_AT        which of its calls, from 1 on
 *   VN_LAYER_RESULT    with which VkResult. VK_INCOMPLETE: the answer lacks its last part
 *   VN_LAYER_STICKY=1  every one of its calls from there on
 *   VN_LAYER_LOST=1    from there on, every function that can say VK_ERROR_DEVICE_LOST says it
 *   VN_LAYER_DISCRETE=1  device memory is hidden from the host, as that of a discrete GPU
 *   VN_LAYER_TALLY     a file of zero bytes (uint64_t): how many calls failed, then how often each
 *                      function of the table was called
 *
 * What a function that fails leaves undefined, by Vulkan's rules, is filled with bytes that are no
 * handle. A call that fails does nothing else.
 */
#include <vulkan/vulkan.h>
#include <vulkan/vk_layer.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LAYER  "VK_LAYER_VERNIER_fail"
#define EXPORT __attribute__((visibility("default")))
#define SPOILT 0xDB /* no handle, no address, and a count far too large */

/* The functions that return a VkResult, with the results that Vulkan allows them beside VK_SUCCESS
 * and those of extensions that libgpu does not use. */
/* clang-format off */
#define BEFORE(X) \
	X(EnumerateInstanceVersion, "-1") \
	X(EnumerateInstanceExtensionProperties, "5 -1 -2 -6") \
	X(EnumerateInstanceLayerProperties, "5 -1 -2")
#define INSTANCE(X) \
	X(CreateInstance, "-1 -2 -3 -6 -7 -9") \
	X(EnumeratePhysicalDevices, "5 -1 -2 -3") \
	X(EnumerateDeviceExtensionProperties, "5 -1 -2 -6") \
	X(CreateDevice, "-1 -2 -3 -7 -8 -10 -4") \
	X(CreateDebugUtilsMessengerEXT, "-1") \
	X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR, "5 -1 -2")
#define DEVICE(X) \
	X(AllocateCommandBuffers, "-1 -2") \
	X(AllocateMemory, "-1 -2 -1000072003 -1000257000") \
	X(BeginCommandBuffer, "-1 -2") \
	X(BindBufferMemory, "-1 -2 -1000257000") \
	X(CreateBuffer, "-1 -2 -1000257000") \
	X(CreateCommandPool, "-1 -2") \
	X(CreateComputePipelines, "-1 -2") \
	X(CreateFence, "-1 -2") \
	X(CreatePipelineCache, "-1 -2") \
	X(CreatePipelineLayout, "-1 -2") \
	X(CreateQueryPool, "-1 -2") \
	X(CreateShaderModule, "-1 -2") \
	X(EndCommandBuffer, "-1 -2") \
	X(GetPipelineCacheData, "5 -1 -2") \
	X(GetQueryPoolResults, "1 -1 -2 -4") \
	X(MapMemory, "-1 -2 -5") \
	X(QueueSubmit2, "-1 -2 -4") \
	X(ResetFences, "-2") \
	X(SetDebugUtilsObjectNameEXT, "-1 -2") \
	X(WaitForFences, "2 -1 -2 -4")
/* clang-format on */

enum function {
#define X(name, results) F_##name,
	BEFORE(X) INSTANCE(X) DEVICE(X)
#undef X
		N_FUNCTIONS
};

static const struct {
	const char *name, *results;
} function[N_FUNCTIONS] = {
#define X(name, results) { #name, results },
	BEFORE(X) INSTANCE(X) DEVICE(X)
#undef X
};

/* For the test: "NAME RESULTS" of every function, one a line. */
EXPORT const char *vn_fail_layer_table(void);
const char        *vn_fail_layer_table(void)
{
	return
#define X(name, results) #name " " results "\n"
		BEFORE(X) INSTANCE(X) DEVICE(X)
#undef X
			;
}

/* ---- what fails ------------------------------------------------------------------------------ */

struct tally {
	_Atomic uint64_t failed, each[N_FUNCTIONS];
};

static struct tally own_tally, *tally = &own_tally;
static const char  *chosen;
static uint64_t     at;
static VkResult     with;
static bool         sticky, all_lost, discrete;
static atomic_bool  lost;

static uint64_t number_of(const char *name)
{
	const char *s = getenv(name);
	return s ? (uint64_t)strtoll(s, NULL, 10) : 0;
}

__attribute__((constructor)) static void read_settings(void)
{
	const char *path = getenv("VN_LAYER_TALLY");
	const int   fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd >= 0) {
		void *p = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED)
			tally = p;
		close(fd);
	}
	chosen = getenv("VN_LAYER_FUNCTION");
	at = number_of("VN_LAYER_AT");
	with = (VkResult)number_of("VN_LAYER_RESULT");
	sticky = number_of("VN_LAYER_STICKY");
	all_lost = number_of("VN_LAYER_LOST");
	discrete = number_of("VN_LAYER_DISCRETE");
}

/* Counts a call. Returns the result with which it fails, else VK_SUCCESS. */
static VkResult failure(enum function f)
{
	const uint64_t n = ++tally->each[f];
	VkResult       r = VK_SUCCESS;

	if (lost && strstr(function[f].results, "-4"))
		r = VK_ERROR_DEVICE_LOST;
	else if (chosen && strcmp(chosen, function[f].name) == 0 && (sticky ? n >= at : n == at))
		r = with;
	if (r != VK_SUCCESS)
		tally->failed++;
	lost = lost || (r != VK_SUCCESS && all_lost);
	return r;
}

/* ---- the next layer's functions -------------------------------------------------------------- */

/* An object of the loader begins with the address of its table, which is the same in all objects of
 * an instance or of a device. The next layer's functions are asked for when it is created: later
 * the loader answers with the first layer's. */
static void *key_of(const void *object)
{
	void *key;

	memcpy(&key, object, sizeof key);
	return key;
}

#define PASSED(X) X(GetPhysicalDeviceMemoryProperties, "") X(GetBufferMemoryRequirements, "")

enum { N_NEXT = N_FUNCTIONS + 2 };
static const char *const next_name[N_NEXT] = {
#define X(name, results) "vk" #name,
	BEFORE(X) INSTANCE(X) DEVICE(X) PASSED(X)
#undef X
};

typedef PFN_vkVoidFunction (*asker)(const void *instance_or_device, const char *name);

static struct {
	void              *key;
	const void        *object;
	asker              ask;
	PFN_vkVoidFunction of[N_NEXT];
} next[64];
static int             n_next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_next(const void *object, asker ask)
{
	pthread_mutex_lock(&lock);
	int i = 0;
	while (i < n_next && next[i].key != key_of(object))
		i++;
	if (i == (int)(sizeof next / sizeof *next))
		abort();
	n_next += i == n_next;
	next[i].key = key_of(object);
	next[i].object = object;
	next[i].ask = ask;
	for (int k = 0; k < N_NEXT; k++)
		next[i].of[k] = ask(object, next_name[k]);
	pthread_mutex_unlock(&lock);
}

static PFN_vkVoidFunction next_of(const void *object, const char *name)
{
	PFN_vkVoidFunction found = NULL;
	bool               kept = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < n_next; i++) {
		if (next[i].key != key_of(object))
			continue;
		for (int k = 0; k < N_NEXT; k++)
			if (strcmp(name, next_name[k]) == 0) {
				found = next[i].of[k];
				kept = true;
			}
		found = kept ? found : next[i].ask(next[i].object, name);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

#define NEXT(object, name) ((PFN_vk##name)next_of(object, "vk" #name))

static void spoil(void *p, size_t n)
{
	memset(p, SPOILT, n);
}

/* ---- the functions --------------------------------------------------------------------------- */

/* A function whose call passes or fails; `spoils` happens where it fails. */
#define FUNCTION(name, parameters, object, arguments, spoils) \
	static VKAPI_ATTR VkResult VKAPI_CALL layer_##name parameters \
	{ \
		const VkResult bad = failure(F_##name); \
		if (bad == VK_SUCCESS) \
			return NEXT(object, name) arguments; \
		spoils; \
		return bad; \
	}

/* One that fills a list. VK_INCOMPLETE: asked for all but the last; nothing fails where only the
 * number is asked for. DOWN(n, list) calls the next layer. */
#define LIST(name, parameters, DOWN) \
	static VKAPI_ATTR VkResult VKAPI_CALL layer_##name parameters \
	{ \
		const VkResult bad = failure(F_##name); \
		__typeof__(*n) there = 0; \
		if (bad == VK_INCOMPLETE && list && DOWN(&there, NULL) == VK_SUCCESS && there > 0) \
			*n = *n < there ? *n : there - 1; \
		if (bad == VK_SUCCESS || bad == VK_INCOMPLETE) \
			return DOWN(n, list); \
		spoil(n, sizeof *n); \
		return bad; \
	}

FUNCTION(CreateDebugUtilsMessengerEXT,
         (VkInstance i, const VkDebugUtilsMessengerCreateInfoEXT *info, const VkAllocationCallbacks *a,
          VkDebugUtilsMessengerEXT *to),
         i, (i, info, a, to), spoil(to, sizeof *to))
FUNCTION(AllocateCommandBuffers, (VkDevice d, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *to), d,
         (d, info, to), memset(to, 0, info->commandBufferCount * sizeof *to))
FUNCTION(BeginCommandBuffer, (VkCommandBuffer c, const VkCommandBufferBeginInfo *info), c, (c, info), )
FUNCTION(BindBufferMemory, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize from), d, (d, b, m, from), )
FUNCTION(CreateBuffer, (VkDevice d, const VkBufferCreateInfo *info, const VkAllocationCallbacks *a, VkBuffer *to), d,
         (d, info, a, to), spoil(to, sizeof *to))
FUNCTION(CreateCommandPool,
         (VkDevice d, const VkCommandPoolCreateInfo *info, const VkAllocationCallbacks *a, VkCommandPool *to), d,
         (d, info, a, to), spoil(to, sizeof *to))
FUNCTION(CreateComputePipelines,
         (VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo *info,
          const VkAllocationCallbacks *a, VkPipeline *to),
         d, (d, c, n, info, a, to), memset(to, 0, n * sizeof *to))
FUNCTION(CreateFence, (VkDevice d, const VkFenceCreateInfo *info, const VkAllocationCallbacks *a, VkFence *to), d,
         (d, info, a, to), spoil(to, sizeof *to))
FUNCTION(CreatePipelineCache,
         (VkDevice d, const VkPipelineCacheCreateInfo *info, const VkAllocationCallbacks *a, VkPipelineCache *to), d,
         (d, info, a, to), spoil(to, sizeof *to))
FUNCTION(CreatePipelineLayout,
         (VkDevice d, const VkPipelineLayoutCreateInfo *info, const VkAllocationCallbacks *a, VkPipelineLayout *to), d,
         (d, info, a, to), spoil(to, sizeof *to))
FUNCTION(CreateQueryPool,
         (VkDevice d, const VkQueryPoolCreateInfo *info, const VkAllocationCallbacks *a, VkQueryPool *to), d,
         (d, info, a, to), spoil(to, sizeof *to))
FUNCTION(CreateShaderModule,
         (VkDevice d, const VkShaderModuleCreateInfo *info, const VkAllocationCallbacks *a, VkShaderModule *to), d,
         (d, info, a, to), spoil(to, sizeof *to))
FUNCTION(EndCommandBuffer, (VkCommandBuffer c), c, (c), )
FUNCTION(GetQueryPoolResults,
         (VkDevice d, VkQueryPool q, uint32_t first, uint32_t n, size_t bytes, void *to, VkDeviceSize stride,
          VkQueryResultFlags flags),
         d, (d, q, first, n, bytes, to, stride, flags), spoil(to, bytes))
FUNCTION(MapMemory,
         (VkDevice d, VkDeviceMemory m, VkDeviceSize from, VkDeviceSize n, VkMemoryMapFlags flags, void **to), d,
         (d, m, from, n, flags, to), spoil(to, sizeof *to))
FUNCTION(QueueSubmit2, (VkQueue q, uint32_t n, const VkSubmitInfo2 *info, VkFence f), q, (q, n, info, f), )
FUNCTION(ResetFences, (VkDevice d, uint32_t n, const VkFence *f), d, (d, n, f), )
FUNCTION(SetDebugUtilsObjectNameEXT, (VkDevice d, const VkDebugUtilsObjectNameInfoEXT *info), d, (d, info), )
FUNCTION(WaitForFences, (VkDevice d, uint32_t n, const VkFence *f, VkBool32 all, uint64_t ns), d, (d, n, f, all, ns), )

#define DOWN(n, list) NEXT(i, EnumeratePhysicalDevices)(i, n, list)
LIST(EnumeratePhysicalDevices, (VkInstance i, uint32_t *n, VkPhysicalDevice *list), DOWN)
#undef DOWN
#define DOWN(n, list) NEXT(p, EnumerateDeviceExtensionProperties)(p, layer, n, list)
LIST(EnumerateDeviceExtensionProperties,
     (VkPhysicalDevice p, const char *layer, uint32_t *n, VkExtensionProperties *list), DOWN)
#undef DOWN
#define DOWN(n, list) NEXT(d, GetPipelineCacheData)(d, c, n, list)
LIST(GetPipelineCacheData, (VkDevice d, VkPipelineCache c, size_t *n, void *list), DOWN)
#undef DOWN

/* The headers of Debian 12 do not know its type. */
typedef VkResult(VKAPI_PTR *list_sizes)(VkPhysicalDevice, uint32_t *, void *);
#define DOWN(n, list) ((list_sizes)next_of(p, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"))(p, n, list)
LIST(GetPhysicalDeviceCooperativeMatrixPropertiesKHR, (VkPhysicalDevice p, uint32_t *n, void *list), DOWN)
#undef DOWN

/* The loader calls these three by their names in the manifest. */
#define CHAIN(name)   const VkEnumerate##name##Chain *chain
#define DOWN(n, list) chain->pfnNextLayer(chain->pNextLink, layer, n, list)
LIST(EnumerateInstanceExtensionProperties,
     (CHAIN(InstanceExtensionProperties), const char *layer, uint32_t *n, VkExtensionProperties *list), DOWN)
#undef DOWN
#define DOWN(n, list) chain->pfnNextLayer(chain->pNextLink, n, list)
LIST(EnumerateInstanceLayerProperties, (CHAIN(InstanceLayerProperties), uint32_t *n, VkLayerProperties *list), DOWN)
#undef DOWN

static VKAPI_ATTR VkResult VKAPI_CALL layer_EnumerateInstanceVersion(CHAIN(InstanceVersion), uint32_t *version)
{
	const VkResult bad = failure(F_EnumerateInstanceVersion);

	if (bad == VK_SUCCESS)
		return chain->pfnNextLayer(chain->pNextLink, version);
	spoil(version, sizeof *version);
	return bad;
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_CreateInstance(const VkInstanceCreateInfo  *info,
                                                           const VkAllocationCallbacks *a, VkInstance *to)
{
	VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)(uintptr_t)info->pNext;
	const VkResult             bad = failure(F_CreateInstance);
	VkResult                   r;

	if (bad != VK_SUCCESS) {
		spoil(to, sizeof *to);
		return bad;
	}
	while (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO)
		link = (VkLayerInstanceCreateInfo *)(uintptr_t)link->pNext;
	const PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	r = ((PFN_vkCreateInstance)get(NULL, "vkCreateInstance"))(info, a, to);
	if (r == VK_SUCCESS)
		keep_next(*to, (asker)get);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_CreateDevice(VkPhysicalDevice p, const VkDeviceCreateInfo *info,
                                                         const VkAllocationCallbacks *a, VkDevice *to)
{
	VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)(uintptr_t)info->pNext;
	const VkResult           bad = failure(F_CreateDevice);
	VkResult                 r;

	if (bad != VK_SUCCESS) {
		spoil(to, sizeof *to);
		return bad;
	}
	while (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO)
		link = (VkLayerDeviceCreateInfo *)(uintptr_t)link->pNext;
	const PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	r = NEXT(p, CreateDevice)(p, info, a, to);
	if (r == VK_SUCCESS)
		keep_next(*to, (asker)get);
	return r;
}

static VKAPI_ATTR VkResult VKAPI_CALL layer_AllocateMemory(VkDevice d, const VkMemoryAllocateInfo *info,
                                                           const VkAllocationCallbacks *a, VkDeviceMemory *to)
{
	const VkResult       bad = failure(F_AllocateMemory);
	VkMemoryAllocateInfo real = *info;

	real.memoryTypeIndex = discrete ? 0 : info->memoryTypeIndex;
	if (bad == VK_SUCCESS)
		return NEXT(d, AllocateMemory)(d, &real, a, to);
	spoil(to, sizeof *to);
	return bad;
}

/* A discrete GPU's memory: type 0 on the device, type 1 on the host. Both are the first type of the
 * driver. */
static VKAPI_ATTR void VKAPI_CALL layer_GetPhysicalDeviceMemoryProperties(VkPhysicalDevice                  p,
                                                                          VkPhysicalDeviceMemoryProperties *to)
{
	NEXT(p, GetPhysicalDeviceMemoryProperties)(p, to);
	if (!discrete)
		return;
	to->memoryTypeCount = 2;
	to->memoryTypes[1] = to->memoryTypes[0];
	to->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
	to->memoryTypes[1].propertyFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
	                                   VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
}

static VKAPI_ATTR void VKAPI_CALL layer_GetBufferMemoryRequirements(VkDevice d, VkBuffer b, VkMemoryRequirements *to)
{
	NEXT(d, GetBufferMemoryRequirements)(d, b, to);
	if (discrete)
		to->memoryTypeBits = 3;
}

/* ---- what the loader asks for ---------------------------------------------------------------- */

EXPORT PFN_vkVoidFunction VKAPI_CALL vn_fail_instance_proc(VkInstance instance, const char *name);
EXPORT PFN_vkVoidFunction VKAPI_CALL vn_fail_device_proc(VkDevice device, const char *name);
EXPORT VkResult VKAPI_CALL           vn_fail_negotiate(VkNegotiateLayerInterface *with_loader);
EXPORT VkResult VKAPI_CALL vn_fail_extensions(CHAIN(InstanceExtensionProperties), const char *layer, uint32_t *n,
                                              VkExtensionProperties *list);
EXPORT VkResult VKAPI_CALL vn_fail_layers(CHAIN(InstanceLayerProperties), uint32_t *n, VkLayerProperties *list);
EXPORT VkResult VKAPI_CALL vn_fail_version(CHAIN(InstanceVersion), uint32_t *version);

VkResult VKAPI_CALL vn_fail_extensions(CHAIN(InstanceExtensionProperties), const char *layer, uint32_t *n,
                                       VkExtensionProperties *list)
{
	return layer_EnumerateInstanceExtensionProperties(chain, layer, n, list);
}

VkResult VKAPI_CALL vn_fail_layers(CHAIN(InstanceLayerProperties), uint32_t *n, VkLayerProperties *list)
{
	return layer_EnumerateInstanceLayerProperties(chain, n, list);
}

VkResult VKAPI_CALL vn_fail_version(CHAIN(InstanceVersion), uint32_t *version)
{
	return layer_EnumerateInstanceVersion(chain, version);
}

static bool is_named(const char *name, const char *ours)
{
	return strncmp(name, "vk", 2) == 0 && strcmp(name + 2, ours) == 0;
}

static PFN_vkVoidFunction device_function(const char *name)
{
#define X(ours, results) \
	if (is_named(name, #ours)) \
		return (PFN_vkVoidFunction)layer_##ours;
	DEVICE(X)
#undef X
	if (is_named(name, "GetBufferMemoryRequirements"))
		return (PFN_vkVoidFunction)layer_GetBufferMemoryRequirements;
	return is_named(name, "GetDeviceProcAddr") ? (PFN_vkVoidFunction)vn_fail_device_proc : NULL;
}

static PFN_vkVoidFunction instance_function(const char *name)
{
#define X(ours, results) \
	if (is_named(name, #ours)) \
		return (PFN_vkVoidFunction)layer_##ours;
	INSTANCE(X)
#undef X
	if (is_named(name, "GetPhysicalDeviceMemoryProperties"))
		return (PFN_vkVoidFunction)layer_GetPhysicalDeviceMemoryProperties;
	return is_named(name, "GetInstanceProcAddr") ? (PFN_vkVoidFunction)vn_fail_instance_proc : NULL;
}

/* A function of an extension that the next layer lacks is lacking here, too. The loader asks for
 * others before there is an instance to ask. */
static bool is_extension(const char *name)
{
	const size_t n = strlen(name);

	return n > 3 && (strcmp(name + n - 3, "EXT") == 0 || strcmp(name + n - 3, "KHR") == 0);
}

PFN_vkVoidFunction VKAPI_CALL vn_fail_instance_proc(VkInstance instance, const char *name)
{
	PFN_vkVoidFunction ours = instance_function(name);

	ours = ours ? ours : device_function(name);
	if (!instance || (ours && !is_extension(name)))
		return ours;
	const PFN_vkVoidFunction theirs = next_of(instance, name);
	return theirs && ours ? ours : theirs;
}

PFN_vkVoidFunction VKAPI_CALL vn_fail_device_proc(VkDevice device, const char *name)
{
	const PFN_vkVoidFunction ours = device_function(name);

	if (ours && !is_extension(name))
		return ours;
	const PFN_vkVoidFunction theirs = next_of(device, name);
	return theirs && ours ? ours : theirs;
}

static PFN_vkVoidFunction VKAPI_CALL physical_proc(VkInstance instance, const char *name)
{
	const PFN_vkVoidFunction theirs = next_of(instance, name);

	return theirs && is_named(name, "GetPhysicalDeviceCooperativeMatrixPropertiesKHR") ? instance_function(name)
	                                                                                   : theirs;
}

VkResult VKAPI_CALL vn_fail_negotiate(VkNegotiateLayerInterface *with_loader)
{
	if (with_loader->loaderLayerInterfaceVersion > 2)
		with_loader->loaderLayerInterfaceVersion = 2;
	with_loader->pfnGetInstanceProcAddr = vn_fail_instance_proc;
	with_loader->pfnGetDeviceProcAddr = vn_fail_device_proc;
	with_loader->pfnGetPhysicalDeviceProcAddr = physical_proc;
	return VK_SUCCESS;
}
