/* watch.c: notes memory that the program's own calls do not get, and paths that they cannot look
 * at, which a caller may take for absent ones; see libref/base/trouble.h.
 *
 * The linker redirects the program's calls to the functions here (--wrap, compare/CMakeLists.txt;
 * each name below is in its list). Nothing changes for the caller, except that an open that a
 * signal interrupts is repeated. Calls made inside libraries are not redirected; libraries report
 * their own failures.
 */
#include "libref/base/trouble.h"

#include "libref/base/system.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY(name, parameters, arguments, bytes) \
	void *__real_##name parameters; \
	void *__wrap_##name parameters; \
	void *__wrap_##name parameters \
	{ \
		void *p = __real_##name arguments; \
		if (!p && (bytes) > 0) \
			vn_trouble_note(NULL); \
		return p; \
	}
#define PATH(name, parameters, arguments) \
	int __real_##name parameters; \
	int __wrap_##name parameters; \
	int __wrap_##name parameters \
	{ \
		const int r = __real_##name arguments, number = errno; \
		if (r < 0 && vn_trouble_is(number)) \
			vn_trouble_note(strerror(number)); \
		errno = number; \
		return r; \
	}
#define OPEN(name, parameters, arguments) \
	int __real_##name parameters; \
	int __wrap_##name parameters; \
	int __wrap_##name parameters \
	{ \
		va_list list; \
		va_start(list, flags); \
		const int mode = va_arg(list, int); /* callees read it only if one was passed */ \
		va_end(list); \
		int fd; \
		VN_UNINTERRUPTED(fd, __real_##name arguments); \
		return fd; \
	}

MEMORY(malloc, (size_t n), (n), n)
MEMORY(calloc, (size_t n, size_t each), (n, each), n > 0 && each > 0)
MEMORY(realloc, (void *old, size_t n), (old, n), n)
MEMORY(aligned_alloc, (size_t align, size_t n), (align, n), n)
MEMORY(strdup, (const char *s), (s), 1)
MEMORY(strndup, (const char *s, size_t n), (s, n), 1)
PATH(access, (const char *path, int how), (path, how))
PATH(stat, (const char *path, struct stat *s), (path, s))
PATH(lstat, (const char *path, struct stat *s), (path, s))
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int in, const char *path, int flags, ...), (in, path, flags, mode))
