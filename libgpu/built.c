/* built.c: see built.h. */
#include "libgpu/built.h"

#include "libref/base/grow.h"

#include <stdlib.h>
#include <string.h>

vn_built *vn_built_create(void)
{
	vn_built *b = calloc(1, sizeof *b);

	if (b)
		pthread_mutex_init(&b->lock, NULL);
	return b;
}

static void clear(VkDevice device, vn_built *b)
{
	for (int i = 0; i < b->n; i++)
		vn_vk.DestroyPipeline(device, b->of[i].pipeline, NULL);
	b->n = 0;
}

void vn_built_destroy(VkDevice device, vn_built *b)
{
	if (!b)
		return;
	clear(device, b);
	if (b->layout)
		vn_vk.DestroyPipelineLayout(device, b->layout, NULL);
	pthread_mutex_destroy(&b->lock);
	free(b->of);
	free(b->cache_dir);
	free(b);
}

bool vn_built_for(VkDevice device, vn_built *b, const char *cache_dir)
{
	char *name;

	if (b->cache_dir == cache_dir || (b->cache_dir && cache_dir && strcmp(b->cache_dir, cache_dir) == 0))
		return true;
	clear(device, b);
	name = cache_dir ? strdup(cache_dir) : NULL;
	if (cache_dir && !name)
		return false;
	free(b->cache_dir);
	b->cache_dir = name;
	return true;
}

VkPipeline vn_built_find(vn_built *b, const uint32_t *words)
{
	VkPipeline found = VK_NULL_HANDLE;

	pthread_mutex_lock(&b->lock);
	for (int i = 0; i < b->n && !found; i++)
		found = b->of[i].words == words ? b->of[i].pipeline : VK_NULL_HANDLE;
	pthread_mutex_unlock(&b->lock);
	return found;
}

bool vn_built_add(vn_built *b, const uint32_t *words, VkPipeline pipeline)
{
	pthread_mutex_lock(&b->lock);
	struct vn_built_one *more = vn_grown(b->of, (size_t)b->n, sizeof *more);
	if (more) {
		b->of = more;
		b->of[b->n++] = (struct vn_built_one) { words, pipeline };
	}
	pthread_mutex_unlock(&b->lock);
	return more != NULL;
}
