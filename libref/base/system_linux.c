/* system_linux.c: see system.h. */
#define _GNU_SOURCE
#include "libref/base/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef SYS_close_range /* missing before kernel headers 5.9; the number is the same on all machines */
#define SYS_close_range 436
#endif

int vn_processors(void)
{
	cpu_set_t may;
	return sched_getaffinity(0, sizeof may, &may) == 0 ? CPU_COUNT(&may) : 1;
}

bool vn_end_with_parent(int number)
{
	return prctl(PR_SET_PDEATHSIG, number) == 0;
}

size_t vn_address_space(void)
{
	unsigned long pages = 0;
	FILE         *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

ssize_t vn_program_path(char *path, size_t room)
{
	return readlink("/proc/self/exe", path, room);
}

void vn_program_note(const char *word)
{
	(void)word;
}

/* ---- descriptors --------------------------------------------------------------------------- */

int vn_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC);
}

int vn_socket_pair(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

void vn_close_range(unsigned from, unsigned to)
{
	struct rlimit most;

	if (from > to || syscall(SYS_close_range, from, to, 0u) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < to)
		to = (unsigned)most.rlim_cur;
	for (unsigned fd = from; fd <= to && fd < 1u << 20; fd++)
		close((int)fd);
}

/* ---- files --------------------------------------------------------------------------------- */

int vn_memory_file(const char *label)
{
	return memfd_create(label, MFD_CLOEXEC);
}

int vn_nameless_file(const char *folder)
{
	char path[4096];
	int  fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

	if (fd < 0 && snprintf(path, sizeof path, "%s/vernier-XXXXXX", folder) < (int)sizeof path &&
	    (fd = vn_make_file(path)) >= 0)
		unlink(path);
	return fd;
}

int vn_make_file(char *template)
{
	return mkostemp(template, O_CLOEXEC);
}

bool vn_file_reserve(int fd, size_t bytes)
{
	return posix_fallocate(fd, 0, (off_t)bytes) == 0;
}

int vn_open_direct(int fd)
{
	char same[64];

	/* Opens the file again, because O_DIRECT belongs to the open file description. */
	snprintf(same, sizeof same, "/proc/self/fd/%d", fd);
	return open(same, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

void vn_start_writing(int fd, int64_t at, int64_t bytes)
{
	(void)sync_file_range(fd, at, bytes, SYNC_FILE_RANGE_WRITE);
}

int vn_rename_new(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

void vn_folder_clear(int folder)
{
	_Alignas(struct dirent64) char room[2048];
	ssize_t                        n;

	while ((n = getdents64(folder, room, sizeof room)) > 0)
		for (ssize_t at = 0; at < n; at += ((const struct dirent64 *)(const void *)(room + at))->d_reclen)
			unlinkat(folder, ((const struct dirent64 *)(const void *)(room + at))->d_name, 0);
}

bool vn_file_identify(int fd, const char *path, vn_file_id *id)
{
	const int    how = path ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH;
	struct statx x;
	struct stat  s;

	memset(id, 0, sizeof *id);
	if (statx(path ? AT_FDCWD : fd, path ? path : "", how, STATX_INO | STATX_BTIME, &x) == 0) {
		id->device = makedev(x.stx_dev_major, x.stx_dev_minor);
		id->inode = x.stx_ino;
		id->born = x.stx_mask & STATX_BTIME ? x.stx_btime.tv_sec * 1000000000 + x.stx_btime.tv_nsec : 0;
		return true;
	}
	if ((path ? lstat(path, &s) : fstat(fd, &s)) != 0) /* a kernel or container without statx */
		return false;
	id->device = s.st_dev;
	id->inode = s.st_ino;
	return true;
}

/* ---- memory and streams -------------------------------------------------------------------- */

void vn_map_not_inherited(void *p, size_t bytes)
{
	madvise(p, bytes, MADV_DONTFORK);
}

void vn_tree_free(void *root, void (*drop)(void *key))
{
	tdestroy(root, drop);
}

void vn_sort(void *list, size_t n, size_t size, int (*order)(const void *a, const void *b, void *context),
             void *context)
{
	qsort_r(list, n, size, order, context);
}
