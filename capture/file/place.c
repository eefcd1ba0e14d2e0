/* place.c: see place.h. */
#include "capture/file/place.h"

#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory of path, by malloc. */
static char *parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Recordings begin like any HDF5 file; a text has no zero. */
static vn_status check_kind(const char *path, vn_place_kind kind, vn_error *err)
{
	static const char *const refusal[] = {
		[VN_PLACE_RECORDING] = "not a recording; --force replaces only recordings",
		[VN_PLACE_TEXT] = "not a text; --force replaces only texts",
		[VN_PLACE_NUMBERS] = "a recording; --force does not replace it by the numbers of a tensor",
	};
	char      head[4096];
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t   n = -1;

	while (fd >= 0 && (n = read(fd, head, sizeof head)) < 0 && errno == EINTR)
		;
	const int why = errno;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be read, to see what --force would replace: %s", path, strerror(why));
	const bool recording = n >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
	const bool fits = kind == VN_PLACE_RECORDING ? recording : kind == VN_PLACE_TEXT ? !memchr(head, 0, (size_t)n) : !recording;
	if (n == 0 || fits)
		return VN_OK;
	return vn_fail(err, VN_ERR_IO, "%s: is %s; remove the file first, or give another name", path, refusal[kind]);
}

vn_status vn_place_check(const char *path, vn_place_kind kind, bool force, vn_error *err)
{
	struct stat st;
	size_t      n = strlen(path);
	char       *dir;
	vn_status   s = VN_OK;

	if (n == 0)
		return vn_fail(err, VN_ERR_USAGE, "the name of the output file is empty");
	if (strcmp(path, "-") == 0)
		return vn_fail(err, VN_ERR_USAGE, "-o - is not supported; for a file of that name, give ./-");
	/* Not through a link: renaming would replace the link, /dev/stdout for one. */
	if (lstat(path, &st) == 0) {
		if (S_ISLNK(st.st_mode))
			return vn_fail(err, VN_ERR_IO, "%s: is a symbolic link; give the name of the file itself", path);
		if (S_ISDIR(st.st_mode))
			return vn_fail(err, VN_ERR_IO, "%s: is a directory; give the name of a file", path);
		if (!S_ISREG(st.st_mode))
			return vn_fail(err, VN_ERR_IO, "%s: is not a regular file", path);
		if (!force)
			return vn_fail(err, VN_ERR_IO, "%s: exists already; --force replaces it", path);
		return check_kind(path, kind, err);
	}
	if (errno != ENOENT)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	if (path[n - 1] == '/')
		return vn_fail(err, VN_ERR_IO, "%s: names a directory; give the name of a file", path);
	if (!(dir = parent(path)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	if (stat(dir, &st) != 0)
		s = vn_fail(err, VN_ERR_IO, "%s: no directory %s: %s", path, dir, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		s = vn_fail(err, VN_ERR_IO, "%s: %s is not a directory", path, dir);
	else if (access(dir, W_OK | X_OK) != 0)
		s = vn_fail(err, VN_ERR_IO, "%s: cannot write in %s: %s", path, dir, strerror(errno));
	free(dir);
	return s;
}

/* The process that wrote for one that was killed a moment ago (store/scribe.h) may still be about to end. */
static bool locked(int fd)
{
	enum { TRIES = 50, WAIT_US = 10000 };

	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; i++) {
		if (i == TRIES)
			return false;
		usleep(WAIT_US);
	}
	return true; /* or the file system has no locks */
}

/* Open and lock the partial file. Between the two calls its former owner may
 * have renamed it; then what we hold is not what the name means: once more. */
static vn_status open_partial(vn_place *p, vn_error *err)
{
	struct stat ours, named;

	for (int turn = 0; turn < 100; turn++) {
		enum { HOW = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
		p->fd = open(p->partial, HOW | O_EXCL, 0666);
		const bool made = p->fd >= 0;
		if (!made && errno == EEXIST)
			p->fd = open(p->partial, HOW, 0666);
		if (p->fd < 0)
			return vn_fail(err, VN_ERR_IO, "%s: cannot write: %s", p->partial,
			               errno == ELOOP ? "is a symbolic link" : strerror(errno));
		const bool told = fstat(p->fd, &ours) == 0;
		if (!told && made)
			unlink(p->partial);
		if (!told || !S_ISREG(ours.st_mode))
			return vn_fail(err, VN_ERR_IO, "%s: is not a regular file", p->partial);
		if (!locked(p->fd))
			return vn_fail(err, VN_ERR_IO, "%s: another process is writing it", p->partial);
		const int failed = stat(p->partial, &named) != 0 ? errno : 0;
		if (failed && failed != ENOENT) {
			if (made)
				unlink(p->partial);
			return vn_fail(err, VN_ERR_IO, "%s: cannot be read: %s", p->partial, strerror(failed));
		}
		if (!failed && named.st_ino == ours.st_ino && named.st_dev == ours.st_dev) {
			if (ftruncate(p->fd, 0) == 0)
				return VN_OK;
			const int why = errno;
			if (made)
				unlink(p->partial);
			return vn_fail(err, VN_ERR_IO, "%s: cannot write: %s", p->partial, strerror(why));
		}
		close(p->fd);
	}
	p->fd = -1;
	return vn_fail(err, VN_ERR_IO, "%s: keeps being renamed by another process", p->partial);
}

vn_status vn_place_open(vn_place *p, const char *path, vn_place_kind kind, bool force, vn_error *err)
{
	vn_status st;

	*p = (vn_place){ .fd = -1, .force = force, .mark = vn_trouble_mark() };
	if ((st = vn_place_check(path, kind, force, err)))
		return st;
	p->path = strdup(path);
	if (!p->path || asprintf(&p->partial, "%s.partial", path) < 0) {
		p->partial = NULL;
		st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	} else {
		st = open_partial(p, err);
	}
	if (st)
		vn_place_close(p);
	return st;
}

vn_status vn_place_settle(vn_place *p, vn_error *err)
{
	const vn_status whole = vn_trouble_since(p->mark, p->path, err);

	if (whole)
		return whole;
	/* A full disk may show itself only here. */
	if (fsync(p->fd) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot write: %s", p->partial, strerror(errno));
	int r = p->force ? -1 : renameat2(AT_FDCWD, p->partial, AT_FDCWD, p->path, RENAME_NOREPLACE);
	if (r != 0 && !p->force && errno == EEXIST)
		return vn_fail(err, VN_ERR_IO, "%s: another program created it during the recording; the recording is in %s", p->path,
		               p->partial);
	/* Not every file system knows RENAME_NOREPLACE. */
	if (r != 0 && (p->force || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
		r = rename(p->partial, p->path);
	if (r != 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be renamed to %s: %s", p->partial, p->path, strerror(errno));

	char *dir = parent(p->path);
	int   fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(dir);
	if (fd >= 0) {
		(void)!fsync(fd); /* the name; not every file system can */
		close(fd);
	}
	return VN_OK;
}

void vn_place_close(vn_place *p)
{
	if (p->fd >= 0 && p->partial)
		close(p->fd); /* gives the lock back */
	free(p->path);
	free(p->partial);
	*p = (vn_place){ .fd = -1 };
}
