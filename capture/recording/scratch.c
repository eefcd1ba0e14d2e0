/* scratch.c: see scratch.h. */
#include "capture/recording/scratch.h"

#include "libref/base/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A file of 40 MB may ask for 40 GB, so a quarter of the free disk is left to others. */
static bool leaves_room(const char *folder, size_t bytes)
{
	struct statvfs disk;
	return statvfs(folder, &disk) == 0 && (double)bytes <= 0.75 * (double)disk.f_bavail * (double)disk.f_frsize;
}

/* Beyond half of the machine's memory the kernel would end processes, not refuse. */
static bool fits_memory(size_t bytes)
{
	return bytes < VN_SCRATCH_FILE ||
	       (double)bytes <= 0.5 * (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Allocates the blocks before they are written, because a full disk would otherwise raise SIGBUS.
 * Returns 0 on failure; descriptor 0 is never used. */
static int file_in(const char *folder, size_t bytes)
{
	if (!leaves_room(folder, bytes))
		return 0;
	const int fd = vn_nameless_file(folder);
	if (fd > 0 && vn_file_reserve(fd, bytes))
		return fd;
	if (fd >= 0)
		close(fd);
	return 0;
}

bool vn_scratch_make(vn_scratch *s, size_t bytes)
{
	const char *folder[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };
	*s = (vn_scratch) { .bytes = bytes };
	for (size_t i = 0; bytes >= VN_SCRATCH_FILE && !s->file && i < sizeof folder / sizeof *folder; i++)
		if (folder[i] && *folder[i])
			s->file = file_in(folder[i], bytes);
	s->data = s->file || fits_memory(bytes)
	              ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, s->file ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS,
	                     s->file ? s->file : -1, 0)
	              : MAP_FAILED;
	if (s->data != MAP_FAILED)
		return true;
	s->data = NULL;
	vn_scratch_end(s);
	return false;
}

void vn_scratch_write(vn_scratch *s, size_t at, const void *data, size_t bytes)
{
	const unsigned char *from = data;
	ssize_t              n;

	for (; s->file && bytes && (n = pwrite(s->file, from, bytes, (off_t)at)) > 0; bytes -= (size_t)n) {
		from += n;
		at += (size_t)n;
	}
	if (bytes) /* plain memory, or a file for which this fails: its contents are valid in either case */
		memcpy((unsigned char *)s->data + at, from, bytes);
}

void vn_scratch_keep(const vn_scratch *s)
{
	vn_map_not_inherited(s->data, s->bytes);
}

void vn_scratch_forget(const vn_scratch *s)
{
	if (s->file)
		madvise(s->data, s->bytes, MADV_DONTNEED);
}

void vn_scratch_end(vn_scratch *s)
{
	if (s->data)
		munmap(s->data, s->bytes);
	if (s->file)
		close(s->file);
	*s = (vn_scratch) { 0 };
}
