/* map.c: see map.h. */
#include "libref/base/map.h"
#include "libref/base/files.h"
#include "libref/base/system.h"
#include "libref/base/temporary.h"
#include "libref/base/text.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 256 }; /* the largest published models are in 163 files */

static struct mapped_file {
	const char *base; /* NULL: free */
	size_t      bytes;
	char        path[512];
} slot[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void vn_mapped_add(const void *base, size_t bytes, const char *path)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++)
		if (!slot[i].base) {
			snprintf(slot[i].path, sizeof slot[i].path, "%s", path);
			vn_text_clean(slot[i].path, sizeof slot[i].path);
			slot[i].bytes = bytes;
			slot[i].base = base;
			break;
		}
	pthread_mutex_unlock(&lock);
}

void vn_mapped_drop(const void *base)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; base && i < MOST; i++)
		if (slot[i].base == base)
			slot[i].base = NULL;
	pthread_mutex_unlock(&lock);
}

static void report_signal(int signal, siginfo_t *info, void *context)
{
	static const char why[] = ": reading failed: another program shortened the file, or the disk fails\n";
	char              line[sizeof slot->path + sizeof why + 16];
	const char       *path = "a mapped file";
	const uintptr_t   at = (uintptr_t)info->si_addr;

	(void)signal, (void)context;
	for (int i = 0; i < MOST; i++)
		if (slot[i].base && at >= (uintptr_t)slot[i].base && at - (uintptr_t)slot[i].base < slot[i].bytes)
			path = slot[i].path;
	const size_t n = vn_text_put(line, vn_text_put(line, vn_text_put(line, 0, "vernier: "), path), why);
	if (write(2, line, n) < 0) {} /* nothing more can be done */
	vn_temporary_end();
	_exit(2);
}

/* ---- files that change ----------------------------------------------------------------------- */

/* A file that vn_map_open has mapped, and what was known of it then. */
typedef struct open_map {
	struct open_map *next;
	const void      *data;
	struct stat      was;
	char             path[];
} open_map;

static open_map *opened;
static char      changed[VN_ERROR_MAX]; /* the first that changed; "": none */

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Whoever writes can set the time of writing back, but not that of the last change of any kind. */
static void check_map(const open_map *m)
{
	struct stat now;

	if (!*changed && (stat(m->path, &now) != 0 || now.st_dev != m->was.st_dev || now.st_ino != m->was.st_ino ||
	                  now.st_size != m->was.st_size || !same_time(now.st_mtim, m->was.st_mtim) ||
	                  !same_time(now.st_ctim, m->was.st_ctim)))
		snprintf(changed, sizeof changed, "%s", m->path);
}

static bool remember_map(const void *data, const char *path, const struct stat *was)
{
	open_map *m = malloc(sizeof *m + strlen(path) + 1);

	if (!m)
		return false;
	*m = (open_map) { .data = data, .was = *was };
	strcpy(m->path, path);
	pthread_mutex_lock(&lock);
	m->next = opened;
	opened = m;
	pthread_mutex_unlock(&lock);
	return true;
}

static void forget_map(const void *data)
{
	pthread_mutex_lock(&lock);
	for (open_map **at = &opened; data && *at; at = &(*at)->next)
		if ((*at)->data == data) {
			open_map *m = *at;
			check_map(m);
			*at = m->next;
			free(m);
			break;
		}
	pthread_mutex_unlock(&lock);
}

vn_status vn_maps_unchanged(vn_error *err)
{
	pthread_mutex_lock(&lock);
	for (const open_map *m = opened; m; m = m->next)
		check_map(m);
	const bool one = *changed; /* which then stays as it is */
	pthread_mutex_unlock(&lock);
	return one ? vn_fail(err, VN_ERR_IO,
	                     "%s: another program changed the file, its permissions or its links while it was read, "
	                     "and its contents may be others: run this again",
	                     changed)
	           : VN_OK;
}

void vn_mapped_explain(void)
{
	struct sigaction act = { .sa_sigaction = report_signal, .sa_flags = SA_SIGINFO };
	sigaction(SIGBUS, &act, NULL);
}

int vn_plain_open(const char *path, int flags)
{
	const int   fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat s;

	if (fd < 0)
		return -1;
	const bool told = fstat(fd, &s) == 0;
	if (told && S_ISREG(s.st_mode))
		return fd;
	const int why = !told ? errno : S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
	close(fd);
	errno = why;
	return -1;
}

int vn_stat_settled(int fd, struct stat *s)
{
	enum { TICK = 12000000, SECOND = 1000000000, TRIES = 20 }; /* ns; 10 ms is the longest tick of Linux */
	struct timespec now = { 0 };

	for (int i = 0; i < TRIES; i++) {
		if (fstat(fd, s) != 0)
			return -1;
		const bool      told = clock_gettime(CLOCK_REALTIME, &now) == 0; /* else it waits for as long as it may */
		const long long seconds = (long long)now.tv_sec - s->st_ctim.tv_sec;
		const long long age = seconds * SECOND + now.tv_nsec - s->st_ctim.tv_nsec;
		if (told && (seconds < -1 || seconds > 1 || age < -TICK || age > TICK))
			break;
		nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
	}
	return 0;
}

typedef struct regular {
	const char *path;
	int         fd;
	struct stat s;
} regular;

/* Opens an input that is a regular file. flags: O_NOFOLLOW, or 0. */
static vn_status open_regular(const char *path, int flags, regular *f, vn_error *err)
{
	vn_status st = VN_OK;

	/* O_NONBLOCK, because opening a pipe without a writer would hang. */
	f->path = path;
	if ((f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags)) < 0)
		return vn_fail(err, errno == ENOENT ? VN_ERR_NOTFOUND : VN_ERR_IO, "%s: %s", path, strerror(errno));
	if (vn_stat_settled(f->fd, &f->s) != 0)
		st = vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(f->s.st_mode))
		st = vn_fail(err, VN_ERR_IO, "%s: not a regular file", path);
	if (st)
		close(f->fd);
	else
		vn_input_note(f->fd);
	return st;
}

vn_status vn_map_open(const char *path, vn_map *map, vn_error *err)
{
	regular   f;
	vn_status st = open_regular(path, 0, &f, err);
	void     *p;

	*map = (vn_map) { NULL, 0 };
	if (st)
		return st;
	if (f.s.st_size == 0)
		goto done;
	p = mmap(NULL, (size_t)f.s.st_size, PROT_READ, MAP_PRIVATE, f.fd, 0);
	if (p == MAP_FAILED) {
		st = vn_fail(err, VN_ERR_IO, "%s: cannot map %lld bytes: %s", path, (long long)f.s.st_size, strerror(errno));
		goto done;
	}
	/* Child processes that read untrusted files do not need this mapping. */
	vn_map_not_inherited(p, (size_t)f.s.st_size);
	if (!remember_map(p, path, &f.s)) {
		munmap(p, (size_t)f.s.st_size);
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
		goto done;
	}
	vn_mapped_add(p, (size_t)f.s.st_size, path);
	*map = (vn_map) { p, (size_t)f.s.st_size };
done:
	close(f.fd);
	return st;
}

void vn_map_forget(const vn_map *map, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	madvise((void *)(size_t)map->data, bytes / page * page, MADV_DONTNEED);
}

void vn_map_release(const void *data, size_t bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)data;
	const uintptr_t first = (at + page - 1) / page * page, end = (at + bytes) / page * page;
	bool            known = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++)
		known = known || (slot[i].base && at >= (uintptr_t)slot[i].base &&
		                  at + bytes <= (uintptr_t)slot[i].base + slot[i].bytes);
	if (known && end > first)
		madvise((void *)first, end - first, MADV_DONTNEED);
	pthread_mutex_unlock(&lock);
}

void vn_map_close(vn_map *map)
{
	vn_mapped_drop(map->data);
	forget_map(map->data);
	if (map->data)
		munmap((void *)(size_t)map->data, map->bytes);
	*map = (vn_map) { NULL, 0 };
}

vn_status vn_file_there(const char *path, bool *there, vn_error *err)
{
	struct stat link;

	*there = access(path, F_OK) == 0 || (errno == ENOENT && lstat(path, &link) == 0);
	return *there || errno == ENOENT || errno == ENOTDIR ? VN_OK
	                                                     : vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
}

/* A file that another takes the place of loses a link, which changes its ctime, but not what it
 * holds. */
static bool is_unchanged(int fd, const struct stat *was)
{
	struct stat now;

	return fstat(fd, &now) == 0 && now.st_size == was->st_size && same_time(now.st_mtim, was->st_mtim) &&
	       (now.st_nlink != was->st_nlink || same_time(now.st_ctim, was->st_ctim));
}

/* Reads up to n bytes into text. */
static vn_status read_bytes(int fd, const char *path, char *text, size_t n, size_t *bytes, vn_error *err)
{
	ssize_t got = 1;

	*bytes = 0;
	while (got && *bytes < n) {
		VN_UNINTERRUPTED(got, read(fd, text + *bytes, n - *bytes));
		if (got < 0)
			return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
		*bytes += (size_t)got;
	}
	return VN_OK;
}

/* Reads an open file, and closes it. */
static vn_status read_open(const regular *f, size_t limit, char **text, size_t *bytes, vn_error *err)
{
	vn_status      st = VN_OK;
	const size_t   size = (size_t)f->s.st_size;
	VN_FREED char *all = size <= limit ? malloc(size + 1) : NULL;
	if (size > limit)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: the file has %zu bytes, at most %zu are allowed", f->path, size, limit);
	else if (!all)
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %zu bytes", f->path, size);
	else if (!(st = read_bytes(f->fd, f->path, all, size, bytes, err)) && !is_unchanged(f->fd, &f->s))
		st = vn_fail(err, VN_ERR_IO, "%s: another program changed the file while it was read: run this again", f->path);
	else if (!st && *bytes < size) {
		vn_trouble_note("a file could not be read to its end");
		st = vn_fail(err, VN_ERR_IO, "%s: reading it ended after %zu of its %zu bytes", f->path, *bytes, size);
	} else if (!st && *bytes >= 4 && memcmp(all, "\x89HDF", 4) == 0)
		st = vn_fail(err, VN_ERR_FORMAT, "%s: HDF5, as recordings are, not text", f->path);
	close(f->fd);
	if (st)
		return st;
	all[*bytes] = '\0';
	*text = all;
	all = NULL;
	return VN_OK;
}

vn_status vn_read_text(const char *path, size_t limit, char **text, size_t *bytes, vn_error *err)
{
	regular         f;
	const vn_status st = open_regular(path, 0, &f, err);

	*text = NULL;
	return st ? st : read_open(&f, limit, text, bytes, err);
}

/* The file that is open is asked whose it is: the name may lead to another by then. */
vn_status vn_read_own_text(const char *path, size_t limit, bool *mine, char **text, size_t *bytes, vn_error *err)
{
	struct stat link;
	regular     f;

	*text = NULL;
	*mine = false;
	if (lstat(path, &link) != 0)
		return vn_fail(err, errno == ENOENT ? VN_ERR_NOTFOUND : VN_ERR_IO, "%s: %s", path, strerror(errno));
	if (!(*mine = link.st_uid == geteuid())) /* anybody can leave a link in /tmp */
		return VN_OK;
	const bool      leads = S_ISLNK(link.st_mode);
	const vn_status st = open_regular(path, leads ? 0 : O_NOFOLLOW, &f, err);
	if (st)
		return leads && st == VN_ERR_NOTFOUND ? vn_fail(err, VN_ERR_IO, "%s: a link that leads nowhere", path) : st;
	if ((*mine = f.s.st_uid == geteuid()))
		return read_open(&f, limit, text, bytes, err);
	close(f.fd);
	return VN_OK;
}
