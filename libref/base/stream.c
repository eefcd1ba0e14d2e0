/* stream.c: vn_stream_open of system.h, which POSIX has under no name. */
#ifdef __linux__
#define _GNU_SOURCE
#include "libref/base/system.h"

FILE *vn_stream_open(void *cookie, ssize_t (*write)(void *cookie, const char *text, size_t n),
                     int (*close)(void *cookie))
{
	return fopencookie(cookie, "w", (cookie_io_functions_t) { .write = write, .close = close });
}
#else
#include "libref/base/system.h"

#include <stdlib.h>

typedef struct stream {
	void *cookie;
	ssize_t (*write)(void *cookie, const char *text, size_t n);
	int (*close)(void *cookie);
} stream;

static int write_stream(void *cookie, const char *text, int n)
{
	const stream *s = cookie;
	const ssize_t taken = s->write(s->cookie, text, (size_t)n);
	return taken > 0 ? (int)taken : -1;
}

static int close_stream(void *cookie)
{
	stream   *s = cookie;
	const int r = s->close ? s->close(s->cookie) : 0;
	free(s);
	return r;
}

FILE *vn_stream_open(void *cookie, ssize_t (*write)(void *cookie, const char *text, size_t n),
                     int (*close)(void *cookie))
{
	stream *s = malloc(sizeof *s);
	if (!s)
		return NULL;
	*s = (stream) { cookie, write, close };
	FILE *f = funopen(s, NULL, write_stream, NULL, close_stream);
	if (!f)
		free(s);
	return f;
}
#endif
