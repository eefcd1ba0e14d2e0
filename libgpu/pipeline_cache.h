/* pipeline_cache.h: keeps compiled shaders on disk between runs. Inside libgpu only.
 *
 * There is one file per device and driver, named by their UUIDs. A file that is missing, truncated,
 * altered or from another driver is ignored; a directory that cannot be written is not an error.
 */
#pragma once

#include "libgpu/device.h"

/* dir NULL: $XDG_CACHE_HOME/vernier or ~/.cache/vernier. *hit: a file was used. */
vn_status vn_pipeline_cache_open(vn_device *d, const char *dir, VkPipelineCache *cache, bool *hit, vn_error *err);
/* Could vn_pipeline_cache_save write the file, as far as the folder shows? */
bool      vn_pipeline_cache_writable(const vn_device *d, const char *dir);
void      vn_pipeline_cache_save(vn_device *d, const char *dir, VkPipelineCache cache);
