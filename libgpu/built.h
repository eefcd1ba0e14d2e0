/* built.h: the pipelines of one device, and their layout. Inside libgpu only.
 *
 * They belong to the device, so an engine that is given a device of another one need not build them
 * again, as in the tests (tests/kept_devices.h).
 *
 * Threads  vn_built_find and vn_built_add from any thread.
 */
#ifndef VN_LIBGPU_BUILT_H
#define VN_LIBGPU_BUILT_H

#include "libgpu/vulkan.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct vn_built {
	VkPipelineLayout layout;    /* NULL: none yet */
	char            *cache_dir; /* of the pipeline cache that they were built with; NULL: the default */
	struct vn_built_one {
		const uint32_t *words; /* of its shader, which is part of the program */
		VkPipeline      pipeline;
	} * of;
	int             n;
	pthread_mutex_t lock;
} vn_built;

/* Returns an empty list; NULL: no memory. */
vn_built  *vn_built_create(void);
/* Destroys the pipelines and the layout, too. b may be NULL. */
void       vn_built_destroy(VkDevice device, vn_built *b);
/* Pipelines belong to one pipeline cache: destroys those of another one, so that each cache holds
 * all that was built for it. Returns false if there is no memory for the name. */
bool       vn_built_for(VkDevice device, vn_built *b, const char *cache_dir);
/* Returns the pipeline of a shader, or NULL. */
VkPipeline vn_built_find(vn_built *b, const uint32_t *words);
/* The list owns the pipeline. Returns false if there is no memory; the caller then destroys it. */
bool       vn_built_add(vn_built *b, const uint32_t *words, VkPipeline pipeline);

#endif
