/* recording_bytes.c: bytes of a recording's file; see recording_internal.h. */
#include "capture/recording/recording_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool vn_pread_all(int fd, void *to, size_t n, int64_t at, const char **why)
{
	for (char *p = to; n > 0;) {
		const ssize_t got = pread(fd, p, n, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			*why = got < 0 ? strerror(errno) : "the file became shorter";
			return false;
		}
		p += got;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

vn_status vn_recording_bytes(const vn_recording *r, int i, vn_file_part part, void *to, vn_error *err)
{
	const char *why;
	return vn_pread_all(part.fd, to, part.n, part.at, &why)
	           ? VN_OK
	           : vn_fail(err, VN_ERR_IO, "%s: cannot read %s: %s", r->path, r->entry[i].name, why);
}
