/* disk.c: see disk.h. */
#include "capture/file/disk.h"

#include "libref/base/system.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { START_WRITING = 16 << 20 }; /* bytes written through the cache before writeback is started */

void vn_disk_open(vn_disk *d, int fd, const char *path)
{
	*d = (vn_disk) { .fd = fd, .path = path, .direct = vn_open_direct(fd) };
}

void vn_disk_close(vn_disk *d)
{
	if (d->direct >= 0)
		close(d->direct);
	d->direct = -1;
}

vn_status vn_write_at(vn_open_file to, const char *object, const void *data, size_t bytes, int64_t at, vn_error *err)
{
	const char *from = data;
	while (bytes > 0) {
		ssize_t n = pwrite(to.fd, from, bytes, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return vn_fail(err, VN_ERR_IO, "%s: cannot write %s: %s", to.path, object,
			               strerror(n < 0 ? errno : ENOSPC));
		from += n;
		bytes -= (size_t)n;
		at += n;
	}
	return VN_OK;
}

/* Writes as much as direct I/O can; the rest, and every error, is left to the buffered path. */
static size_t write_pages(vn_disk *d, const void *data, size_t bytes, int64_t at)
{
	const char *from = data;
	size_t      done = 0;

	if (d->direct < 0 || (uintptr_t)data % VN_DISK_PAGE || at % VN_DISK_PAGE)
		return 0;
	while (bytes - done >= VN_DISK_PAGE) {
		ssize_t n = pwrite(d->direct, from + done, (bytes - done) / VN_DISK_PAGE * VN_DISK_PAGE,
		                   (off_t)at + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || n % VN_DISK_PAGE) {
			/* The file system accepts O_DIRECT but not the write, or has larger pages. */
			if (n < 0 && errno == EINVAL)
				vn_disk_close(d);
			break;
		}
		done += (size_t)n;
	}
	return done;
}

vn_status vn_disk_write(vn_disk *d, const char *object, const void *data, size_t bytes, int64_t at, vn_error *err)
{
	const size_t  done = write_pages(d, data, bytes, at), rest = bytes - done;
	const int64_t from = at + (int64_t)done;

	if (rest == 0)
		return VN_OK;
	vn_status st = vn_write_at((vn_open_file) { d->fd, d->path }, object, (const char *)data + done, rest, from, err);
	/* Starts writeback early, so that the final sync is short. File systems without this call do it
	 * all in the sync. */
	if (d->waiting == 0 || from < d->at)
		d->at = from;
	d->waiting += (int64_t)rest;
	if (d->waiting >= START_WRITING) {
		vn_start_writing(d->fd, d->at, from + (int64_t)rest - d->at);
		d->waiting = 0;
	}
	return st;
}
