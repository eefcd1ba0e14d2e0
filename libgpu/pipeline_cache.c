/* pipeline_cache.c: compiled shaders kept on disk between runs.
 *
 * The file has our header, then the driver's bytes. Drivers check their own header and trust the
 * rest, so ours has a length and a digest. */
#include "libgpu/pipeline_cache.h"

#include "libref/base/digest.h"
#include "libref/base/map.h"
#include "libref/base/system.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC     "vernier pipeline cache 1\n"
#define FILE_MAX_ (256u << 20) /* more than any driver writes */

typedef struct cache_head {
	char     magic[32];
	char     digest[40]; /* of the driver's bytes */
	uint64_t bytes;
} cache_head;

/* The directory, created if it does not exist. Returns false if it cannot be created. */
static bool make_directory(const char *dir, char *path, size_t room)
{
	const char *base;
	int         n;

	if (dir)
		n = snprintf(path, room, "%s", dir);
	else if ((base = getenv("XDG_CACHE_HOME")) && base[0] == '/')
		n = snprintf(path, room, "%s/vernier", base);
	else if ((base = getenv("HOME")) && base[0] == '/')
		n = snprintf(path, room, "%s/.cache/vernier", base);
	else
		return false;
	if (n <= 0 || (size_t)n >= room)
		return false;
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			mkdir(path, 0777);
			*p = '/';
		}
	return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static bool file_path(const vn_device *d, const char *dir, char *path, size_t room)
{
	char name[128], *p = name;

	p += snprintf(p, 32, "/%04x-%04x-", d->properties.vendorID & 0xFFFFFu, d->properties.deviceID & 0xFFFFFu);
	for (size_t i = 0; i < VK_UUID_SIZE; i++)
		p += snprintf(p, 3, "%02x", d->driver_uuid[i]);
	snprintf(p, 16, ".pipelines");
	if (!make_directory(dir, path, room) || strlen(path) + strlen(name) + 16 >= room)
		return false;
	strcat(path, name);
	return true;
}

/* Is there nothing of this name, or a regular file? Anything else is not ours to replace. */
static bool may_replace(const char *path)
{
	struct stat s;
	return lstat(path, &s) != 0 || S_ISREG(s.st_mode);
}

/* The driver's bytes, or NULL. */
static void *load_data(const vn_device *d, const char *path, size_t *bytes)
{
	const int  fd = vn_plain_open(path, O_RDONLY);
	FILE      *f = fd < 0 ? NULL : fdopen(fd, "rb");
	cache_head h;
	void      *data = NULL;

	if (!f) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	if (fread(&h, sizeof(h), 1, f) == 1 && memcmp(h.magic, MAGIC, sizeof(MAGIC)) == 0 &&
	    h.bytes >= sizeof(VkPipelineCacheHeaderVersionOne) && h.bytes <= FILE_MAX_ && (data = malloc(h.bytes))) {
		const VkPipelineCacheHeaderVersionOne *v = data;
		const bool                             whole = fread(data, 1, h.bytes, f) == h.bytes && fgetc(f) == EOF;
		h.digest[sizeof(h.digest) - 1] = '\0';
		if (whole && strcmp(vn_digest_of(data, h.bytes).hex, h.digest) == 0 && v->headerSize >= sizeof(*v) &&
		    v->headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && v->vendorID == d->properties.vendorID &&
		    v->deviceID == d->properties.deviceID &&
		    memcmp(v->pipelineCacheUUID, d->properties.pipelineCacheUUID, VK_UUID_SIZE) == 0) {
			*bytes = h.bytes;
			fclose(f);
			return data;
		}
	}
	free(data);
	fclose(f);
	return NULL;
}

vn_status vn_pipeline_cache_open(vn_device *d, const char *dir, VkPipelineCache *cache, bool *hit, vn_error *err)
{
	char     path[1024];
	size_t   bytes = 0;
	void    *data;
	VkResult r;

	vn_trouble_spare(true); /* without it, the start is slower */
	data = file_path(d, dir, path, sizeof(path)) ? load_data(d, path, &bytes) : NULL;
	vn_trouble_spare(false);
	*hit = data != NULL;
	r = vn_vk.CreatePipelineCache(d->device,
	                              &(VkPipelineCacheCreateInfo) { .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
	                                                             .initialDataSize = bytes,
	                                                             .pInitialData = data },
	                              NULL, cache);
	free(data);
	if (r != VK_SUCCESS) {
		*cache = VK_NULL_HANDLE;
		return vn_device_fail(d, r, err, "pipeline cache");
	}
	vn_device_name(d, VK_OBJECT_TYPE_PIPELINE_CACHE, (uint64_t)*cache, "pipeline cache");
	return VN_OK;
}

bool vn_pipeline_cache_writable(const vn_device *d, const char *dir)
{
	char path[1024];

	if (!file_path(d, dir, path, sizeof path) || !may_replace(path))
		return false;
	*strrchr(path, '/') = '\0';
	return access(path, W_OK | X_OK) == 0;
}

void vn_pipeline_cache_save(vn_device *d, const char *dir, VkPipelineCache cache)
{
	char   path[1024], partial[1100];
	size_t bytes = 0, old = 0;
	void  *data = NULL, *before = NULL;
	FILE  *f = NULL;
	bool   ok = false;

	vn_trouble_spare(true); /* the next run starts more slowly */
	if (!file_path(d, dir, path, sizeof(path)) ||
	    vn_vk.GetPipelineCacheData(d->device, cache, &bytes, NULL) != VK_SUCCESS || bytes == 0 ||
	    !(data = malloc(bytes)) || vn_vk.GetPipelineCacheData(d->device, cache, &bytes, data) != VK_SUCCESS ||
	    bytes < sizeof(VkPipelineCacheHeaderVersionOne)) /* lavapipe of Mesa 26.2.6 */
		goto done;
	if ((before = load_data(d, path, &old)) && old == bytes && memcmp(before, data, bytes) == 0)
		goto done; /* nothing new */
	if (!may_replace(path))
		goto done;
	snprintf(partial, sizeof(partial), "%s.XXXXXX", path);
	const int fd = vn_make_file(partial);
	if (fd < 0)
		goto done;
	if (!(f = fdopen(fd, "wb"))) {
		close(fd);
		remove(partial);
		goto done;
	}
	cache_head h = { .magic = MAGIC, .bytes = bytes };
	snprintf(h.digest, sizeof(h.digest), "%s", vn_digest_of(data, bytes).hex);
	ok = fwrite(&h, sizeof(h), 1, f) == 1 && fwrite(data, 1, bytes, f) == bytes;
	ok = fclose(f) == 0 && ok;
	if (!ok || rename(partial, path) != 0)
		remove(partial);
done:
	vn_trouble_spare(false);
	VN_FREE(before, data);
}
