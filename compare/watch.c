/* watch.c: notes the program's own library calls that the machine refuses; see
 * libref/base/trouble.h.
 *
 * The linker redirects the program's calls to the functions here (--wrap, compare/CMakeLists.txt;
 * each name below is in its list). Nothing changes for the caller, except that an open that a
 * signal interrupts is repeated. Calls made inside libraries are not redirected; libraries report
 * their own failures.
 */
#include "libref/base/trouble.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void note_signal(int number)
{
	if (vn_trouble_is(number))
		vn_trouble_note(number == ENOMEM ? NULL : strerror(number));
}

static void *note_if_null(void *p, size_t n)
{
	if (!p && n)
		note_signal(ENOMEM);
	return p;
}

/* errno stays as the call set it. */
#define WATCH(type, name, parameters, arguments, failed) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters \
	{ \
		type r = __real_##name arguments; \
		const int              number = errno; \
		if (failed) \
			note_signal(number); \
		errno = number; \
		return r; \
	}
#define MEMORY(name, parameters, arguments, bytes) \
	void *__real_##name parameters; \
	void *__wrap_##name parameters; \
	void *__wrap_##name parameters \
	{ \
		return note_if_null(__real_##name arguments, bytes); \
	}
#define NUMBER(name, parameters, arguments) /* functions that return the error number */ \
	int __real_##name parameters; \
	int __wrap_##name parameters; \
	int __wrap_##name parameters \
	{ \
		const int r = __real_##name arguments; \
		note_signal(r); \
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
		const int r = (int)TEMP_FAILURE_RETRY(__real_##name arguments), number = errno; \
		if (r < 0) \
			note_signal(number); \
		errno = number; \
		return r; \
	}

MEMORY(malloc, (size_t n), (n), n)
MEMORY(calloc, (size_t n, size_t each), (n, each), n > 0 && each > 0)
MEMORY(realloc, (void *old, size_t n), (old, n), n)
MEMORY(aligned_alloc, (size_t align, size_t n), (align, n), n)
MEMORY(strdup, (const char *s), (s), 1)
MEMORY(strndup, (const char *s, size_t n), (s, n), 1)
NUMBER(posix_memalign, (void **p, size_t align, size_t n), (p, align, n))
WATCH(void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t from), (at, n, prot, flags, fd, from),
      r == MAP_FAILED)

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int in, const char *path, int flags, ...), (in, path, flags, mode))
WATCH(FILE *, fopen, (const char *path, const char *mode), (path, mode), !r)
WATCH(FILE *, fdopen, (int fd, const char *mode), (fd, mode), !r)
WATCH(FILE *, open_memstream, (char **text, size_t *n), (text, n), !r)
WATCH(DIR *, opendir, (const char *path), (path), !r)
WATCH(int, scandir,
      (const char *path, struct dirent ***list, int (*wanted)(const struct dirent *),
       int (*order)(const struct dirent **, const struct dirent **)),
      (path, list, wanted, order), r < 0)
WATCH(char *, mkdtemp, (char *path), (path), !r)
WATCH(int, mkdir, (const char *path, mode_t mode), (path, mode), r < 0)
WATCH(int, access, (const char *path, int how), (path, how), r < 0)
WATCH(int, stat, (const char *path, struct stat *s), (path, s), r < 0)
WATCH(int, lstat, (const char *path, struct stat *s), (path, s), r < 0)
WATCH(int, fstat, (int fd, struct stat *s), (fd, s), r < 0)
WATCH(int, ftruncate, (int fd, off_t n), (fd, n), r < 0)
WATCH(int, fsync, (int fd), (fd), r < 0)
WATCH(int, rename, (const char *from, const char *to), (from, to), r < 0)
WATCH(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), r < 0)
WATCH(int, link, (const char *from, const char *to), (from, to), r < 0)
WATCH(ssize_t, readlink, (const char *path, char *to, size_t n), (path, to, n), r < 0)
WATCH(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), r < 0)
WATCH(ssize_t, pread, (int fd, void *to, size_t n, off_t from), (fd, to, n, from), r < 0)
WATCH(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), r < 0)
WATCH(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t to), (fd, from, n, to), r < 0)
WATCH(size_t, fread, (void *to, size_t each, size_t n, FILE *f), (to, each, n, f), r < n && ferror(f))

/* An error flag at fclose means that earlier writes were lost, also for streams in memory. */
int __real_fclose(FILE *f);
int __wrap_fclose(FILE *f);
int __wrap_fclose(FILE *f)
{
	const int lost = ferror(f), r = __real_fclose(f), number = errno;
	if (lost || r != 0)
		note_signal(vn_trouble_is(number) ? number : EIO);
	errno = number;
	return r;
}

WATCH(pid_t, fork, (void), (), r < 0)
WATCH(int, pipe2, (int ends[2], int flags), (ends, flags), r < 0)
WATCH(int, socketpair, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends), r < 0)
WATCH(int, dup2, (int from, int to), (from, to), r < 0)
NUMBER(pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *x), (t, a, run, x))
NUMBER(pthread_mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), (m, a))
NUMBER(pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), (c, a))
