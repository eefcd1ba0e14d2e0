/* pipelines.c: see pipelines.h. */
#include "libgpu/pipelines.h"

#include "libref/base/grow.h"

#include <stdlib.h>
#include <string.h>

vn_pipelines *vn_pipelines_create(void)
{
	vn_pipelines *p = calloc(1, sizeof *p);

	if (p)
		pthread_mutex_init(&p->lock, NULL);
	return p;
}

static void clear(VkDevice device, vn_pipelines *p)
{
	for (int i = 0; i < p->n; i++)
		vn_vk.DestroyPipeline(device, p->of[i].pipeline, NULL);
	p->n = 0;
}

void vn_pipelines_destroy(VkDevice device, vn_pipelines *p)
{
	if (!p)
		return;
	clear(device, p);
	if (p->layout)
		vn_vk.DestroyPipelineLayout(device, p->layout, NULL);
	pthread_mutex_destroy(&p->lock);
	VN_FREE(p->of, p->cache_dir, p);
}

bool vn_pipelines_keep_for(VkDevice device, vn_pipelines *p, const char *cache_dir)
{
	char *name;

	if (p->cache_dir == cache_dir || (p->cache_dir && cache_dir && strcmp(p->cache_dir, cache_dir) == 0))
		return true;
	clear(device, p);
	name = cache_dir ? strdup(cache_dir) : NULL;
	if (cache_dir && !name)
		return false;
	free(p->cache_dir);
	p->cache_dir = name;
	return true;
}

VkPipeline vn_pipelines_find(vn_pipelines *p, const uint32_t *words)
{
	VkPipeline found = VK_NULL_HANDLE;

	pthread_mutex_lock(&p->lock);
	for (int i = 0; i < p->n && !found; i++)
		found = p->of[i].words == words ? p->of[i].pipeline : VK_NULL_HANDLE;
	pthread_mutex_unlock(&p->lock);
	return found;
}

bool vn_pipelines_add(vn_pipelines *p, const uint32_t *words, VkPipeline pipeline)
{
	pthread_mutex_lock(&p->lock);
	const bool room = VN_GROW(p->of, p->n);
	if (room)
		p->of[p->n++] = (vn_pipeline) { words, pipeline };
	pthread_mutex_unlock(&p->lock);
	return room;
}
