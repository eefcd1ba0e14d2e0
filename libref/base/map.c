/* map.c: see map.h. */
#include "libref/base/map.h"

#include "libref/base/files.h"
#include "libref/base/mapped.h"
#include "libref/base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int vn_plain_open(const char *path, int flags)
{
	const int   fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat s;

	if (fd < 0)
		return -1;
	const bool told = fstat(fd, &s) == 0;
	if (told && S_ISREG(s.st_mode))
		return fd;
	const int why = !told ? errno : S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
	close(fd);
	errno = why;
	return -1;
}

vn_status vn_map_open(const char *path, vn_map *map, vn_error *err)
{
	vn_status   st = VN_OK;
	struct stat s;
	void       *p;

	*map = (vn_map) { NULL, 0 };
	/* O_NONBLOCK, because opening a pipe without a writer would hang. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return vn_fail(err, errno == ENOENT ? VN_ERR_NOTFOUND : VN_ERR_IO, "%s: %s", path, strerror(errno));
	if (fstat(fd, &s) != 0) {
		st = vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
		goto done;
	}
	if (!S_ISREG(s.st_mode)) {
		st = vn_fail(err, VN_ERR_IO, "%s: not a regular file", path);
		goto done;
	}
	vn_input_note(fd);
	if (s.st_size == 0)
		goto done;
	p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED) {
		st = vn_fail(err, VN_ERR_IO, "%s: cannot map %lld bytes: %s", path, (long long)s.st_size, strerror(errno));
		goto done;
	}
	vn_map_not_inherited(p, (size_t)s.st_size); /* child processes that read untrusted files do not need this mapping */
	vn_mapped_add(p, (size_t)s.st_size, path);
	*map = (vn_map) { p, (size_t)s.st_size };
done:
	close(fd);
	return st;
}

void vn_map_forget(const vn_map *map, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	madvise((void *)(size_t)map->data, bytes / page * page, MADV_DONTNEED);
}

void vn_map_close(vn_map *map)
{
	vn_mapped_drop(map->data);
	if (map->data)
		munmap((void *)(size_t)map->data, map->bytes);
	*map = (vn_map) { NULL, 0 };
}

vn_status vn_file_there(const char *path, bool *there, vn_error *err)
{
	struct stat link;

	*there = access(path, F_OK) == 0 || (errno == ENOENT && lstat(path, &link) == 0);
	return *there || errno == ENOENT || errno == ENOTDIR ? VN_OK
	                                                     : vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
}

vn_status vn_read_text(const char *path, size_t limit, char **text, size_t *bytes, vn_error *err)
{
	vn_map    m;
	vn_status st = vn_map_open(path, &m, err);

	*text = NULL;
	if (st)
		return st;
	if (m.bytes > limit)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: the file has %zu bytes, at most %zu are allowed", path, m.bytes, limit);
	else if (!(*text = malloc(m.bytes + 1)))
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %zu bytes", path, m.bytes);
	if (!st) {
		if (m.bytes)
			memcpy(*text, m.data, m.bytes);
		(*text)[m.bytes] = '\0';
		*bytes = m.bytes;
	}
	vn_map_close(&m);
	return st;
}
