/* socket.h: sends and receives whole messages between this process and one that it forked. */
#ifndef VN_LIBREF_BASE_SOCKET_H
#define VN_LIBREF_BASE_SOCKET_H

#include "libref/base/system.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

/* Send, or receive, exactly `bytes` bytes. On failure they return false and set errno; errno 0: the
 * other process has ended. */
static inline bool vn_socket_put(int fd, const void *data, size_t bytes)
{
	for (const char *p = data; bytes;) {
		const ssize_t n = send(fd, p, bytes, VN_SEND_FLAGS);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 || errno == EPIPE ? 0 : errno;
			return false;
		}
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

static inline bool vn_socket_get(int fd, void *data, size_t bytes)
{
	for (char *p = data; bytes;) {
		const ssize_t n = recv(fd, p, bytes, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 || errno == ECONNRESET ? 0 : errno;
			return false;
		}
		p += n;
		bytes -= (size_t)n;
	}
	return true;
}

#endif
