/* system_plain.c: see system.h. Plain POSIX, for systems that are not Linux; tested on Linux. */
#include "libref/base/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int vn_processors(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (int)n : 1;
}

bool vn_end_with_parent(int number)
{
	(void)number;
	return true;
}

size_t vn_address_space(void)
{
	return 0;
}

/* ---- the program --------------------------------------------------------------------------- */

static char program[PATH_MAX]; /* absolute */

static bool is_program(const char *path)
{
	if (access(path, X_OK) == 0 && realpath(path, program))
		return true;
	*program = '\0';
	return false;
}

/* A word without a slash was found in PATH. */
void vn_program_note(const char *word)
{
	const char *folder = getenv("PATH");
	char        path[PATH_MAX];

	if (strchr(word, '/')) {
		is_program(word);
		return;
	}
	for (size_t n; folder; folder = folder[n] ? folder + n + 1 : NULL) {
		n = strcspn(folder, ":"); /* an empty one is the current folder */
		if (snprintf(path, sizeof path, "%.*s%s%s", (int)n, folder, n ? "/" : "./", word) < (int)sizeof path &&
		    is_program(path))
			return;
	}
}

ssize_t vn_program_path(char *path, size_t room)
{
	const size_t n = strnlen(program, sizeof program);

	if (!n || n > room) {
		errno = ENOENT;
		return -1;
	}
	memcpy(path, program, n);
	return (ssize_t)n;
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void close_on_exec(int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int vn_pipe(int ends[2])
{
	if (pipe(ends) != 0)
		return -1;
	close_on_exec(ends[0]);
	close_on_exec(ends[1]);
	return 0;
}

int vn_socket_pair(int ends[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		close_on_exec(ends[i]);
#ifdef SO_NOSIGPIPE
		setsockopt(ends[i], SOL_SOCKET, SO_NOSIGPIPE, &(int) { 1 }, sizeof(int));
#endif
	}
	return 0;
}

void vn_close_range(unsigned from, unsigned to)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < to)
		to = (unsigned)most.rlim_cur;
	for (unsigned fd = from; fd <= to && fd < 1u << 20; fd++)
		close((int)fd);
}

/* ---- files --------------------------------------------------------------------------------- */

int vn_memory_file(const char *label)
{
	const char *folder = getenv("TMPDIR");

	(void)label;
	return vn_nameless_file(folder && *folder ? folder : "/tmp");
}

int vn_nameless_file(const char *folder)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof path, "%s/vernier-XXXXXX", folder) >= (int)sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	const int fd = vn_make_file(path);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int vn_make_file(char *template)
{
	const int fd = mkstemp(template);
	if (fd >= 0)
		close_on_exec(fd);
	return fd;
}

/* posix_fallocate is optional, and macOS lacks it. */
bool vn_file_reserve(int fd, size_t bytes)
{
	static const char zeros[1 << 16];

	for (size_t at = 0; at < bytes;) {
		ssize_t      n;
		const size_t piece = bytes - at < sizeof zeros ? bytes - at : sizeof zeros;
		VN_UNINTERRUPTED(n, pwrite(fd, zeros, piece, (off_t)at));
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

int vn_open_direct(int fd)
{
	(void)fd;
	errno = ENOSYS;
	return -1;
}

void vn_start_writing(int fd, int64_t at, int64_t bytes)
{
	(void)fd, (void)at, (void)bytes;
}

int vn_rename_new(const char *from, const char *to)
{
	(void)from, (void)to;
	errno = ENOSYS;
	return -1;
}

void vn_folder_clear(int folder)
{
	const int            same = dup(folder);
	DIR                 *d = same >= 0 ? fdopendir(same) : NULL;
	const struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(folder, e->d_name, 0);
	if (d)
		closedir(d);
	else if (same >= 0)
		close(same);
}

bool vn_file_identify(int fd, const char *path, vn_file_id *id)
{
	struct stat s;

	memset(id, 0, sizeof *id);
	if ((path ? lstat(path, &s) : fstat(fd, &s)) != 0)
		return false;
	id->device = (uint64_t)s.st_dev;
	id->inode = s.st_ino;
	return true;
}

/* ---- memory and streams -------------------------------------------------------------------- */

void vn_map_not_inherited(void *p, size_t bytes)
{
	(void)p, (void)bytes;
}

static int compare_none(const void *a, const void *b)
{
	(void)a, (void)b;
	return 0; /* the first node met is the root */
}

void vn_tree_free(void *root, void (*drop)(void *key))
{
	while (root) {
		void *key = *(void **)root; /* a node begins with its key */
		tdelete(key, &root, compare_none);
		drop(key);
	}
}

static _Thread_local struct {
	int (*order)(const void *a, const void *b, void *context);
	void *context;
} sorting;

static int compare_two(const void *a, const void *b)
{
	return sorting.order(a, b, sorting.context);
}

void vn_sort(void *list, size_t n, size_t size, int (*order)(const void *a, const void *b, void *context),
             void *context)
{
	sorting.order = order;
	sorting.context = context;
	qsort(list, n, size, compare_two);
}
