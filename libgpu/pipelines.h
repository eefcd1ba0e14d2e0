/* pipelines.h: the pipelines of one device, and their layout. Inside libgpu only.
 *
 * They belong to the device, so a second engine on the same device uses them again, as in the tests
 * (tests/support/kept_devices.h).
 *
 * Threads  vn_pipelines_find and vn_pipelines_add from any thread.
 */
#pragma once

#include "libgpu/vulkan.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct vn_pipeline {
	const uint32_t *words; /* of its shader, which is part of the program */
	VkPipeline      pipeline;
} vn_pipeline;

typedef struct vn_pipelines {
	VkPipelineLayout layout;    /* NULL: none yet */
	char            *cache_dir; /* of the pipeline cache that they were built with; NULL: the default */
	vn_pipeline     *of;
	int              n;
	pthread_mutex_t  lock;
} vn_pipelines;

/* Returns an empty list; NULL: no memory. */
vn_pipelines *vn_pipelines_create(void);
/* Destroys the pipelines and the layout, too. p may be NULL. */
void          vn_pipelines_destroy(VkDevice device, vn_pipelines *p);
/* Pipelines belong to one pipeline cache: destroys those of another one, so that each cache holds
 * all that was built for it. Returns false if there is no memory for the name. */
bool          vn_pipelines_keep_for(VkDevice device, vn_pipelines *p, const char *cache_dir);
/* Returns the pipeline of a shader, or NULL. */
VkPipeline    vn_pipelines_find(vn_pipelines *p, const uint32_t *words);
/* The list owns the pipeline. Returns false if there is no memory; the caller then destroys it. */
bool          vn_pipelines_add(vn_pipelines *p, const uint32_t *words, VkPipeline pipeline);
