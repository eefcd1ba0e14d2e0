/* memory_watch.c: every allocation of the program's own, watched for failure; see libref/base/memory.h.
 *
 * The linker sends the program's calls through here (--wrap, compare/CMakeLists.txt). Libraries call past it:
 * what they make of a failure is theirs to say. */
#include "libref/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *seen(void *p, size_t n)
{
	if (!p && n && !vn_memory_sparing())
		vn_memory_lost();
	return p;
}

#define WATCH(name, parameters, arguments, bytes) \
	void *__real_##name parameters; \
	void *__wrap_##name parameters; \
	void *__wrap_##name parameters { return seen(__real_##name arguments, bytes); }

WATCH(malloc, (size_t n), (n), n)
WATCH(calloc, (size_t n, size_t each), (n, each), n && each)
WATCH(realloc, (void *old, size_t n), (old, n), n)
WATCH(aligned_alloc, (size_t align, size_t n), (align, n), n)
WATCH(strdup, (const char *s), (s), 1)
WATCH(strndup, (const char *s, size_t n), (s, n), 1)

int __wrap_posix_memalign(void **p, size_t align, size_t n);
int __real_posix_memalign(void **p, size_t align, size_t n);
int __wrap_posix_memalign(void **p, size_t align, size_t n)
{
	const int r = __real_posix_memalign(p, align, n);
	if (r == ENOMEM)
		seen(NULL, n);
	return r;
}
