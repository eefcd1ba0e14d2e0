/* place.c: see place.h. */
#include "capture/file/place.h"

#include "libref/base/files.h"
#include "libref/base/text.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory of path, allocated. */
static char *parent_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

bool vn_same_file(const char *a, const char *b)
{
	struct stat x, y;
	return a && b && stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool vn_same_place(const char *a, const char *b)
{
	const char    *x = strrchr(a, '/'), *y = strrchr(b, '/');
	VN_FREED char *in = NULL, *also = NULL;
	bool           same = strcmp(x ? x + 1 : a, y ? y + 1 : b) == 0;

	if (same) {
		in = parent_folder(a);
		also = parent_folder(b);
		same = vn_same_file(in, also);
	}
	return same;
}

/* How files of each kind begin, and what else their first bytes contain. Recordings begin like any
 * HDF5 file. tests/cli/force.sh replaces a file of each kind. */
/* clang-format off */
static const struct { vn_place_kind kind; const char *begin, *hold; } mark[] = {
	{ VN_PLACE_RECORDING, "\x89HDF\r\n\x1a\n", "" },
	{ VN_PLACE_REPORT, "{", "\"schema\": \"vernier-" },
	{ VN_PLACE_REPORT, "<!doctype html>", "<meta name=\"generator\" content=\"vernier\">" },
	{ VN_PLACE_REPORT, "<!doctype html>", "content=\"default-src 'none'; style-src '" }, /* by older versions */
	{ VN_PLACE_REPORT, "<?xml ", "<testsuites name=\"vernier " },
	{ VN_PLACE_REPORT, "### \u2705 vernier: ", "" },                      /* compare, Markdown */
	{ VN_PLACE_REPORT, "### \u274c vernier: ", "" },
	{ VN_PLACE_REPORT, "- reference `", "\n\n| checkpoint |" },            /* table, Markdown */
	{ VN_PLACE_REPORT, "name,step,layer,point,op,shape,status,fails,", "" }, /* compare, CSV */
	{ VN_PLACE_REPORT, "checkpoint,token,recording,", "" },               /* table, CSV */
	{ VN_PLACE_REPORT, "reference  ", "\ncandidate  " },                  /* compare and table, text */
	{ VN_PLACE_REPORT, "reference  ", "\nA          " },                  /* the same of several candidates */
	{ VN_PLACE_REPORT, "verdict    ", "\nreference  " },                  /* the same by older versions */
	{ VN_PLACE_REPORT, "first      ", "\nreference  " },                  /* compare, outside, text */
	{ VN_PLACE_REPORT, "explained  ", "\nreference  " },
	{ VN_PLACE_REPORT, "warning    ", "\nreference  " },
	{ VN_PLACE_REPORT, "next       ", "\nreference  " },
	{ VN_PLACE_REPORT, "model       ", "\ncandidate   " },                /* evaluate and isolate, text */
	{ VN_PLACE_REPORT, "text        ", "\ncandidate   " },                /* evaluate of recordings, text */
	{ VN_PLACE_REPORT, "weights    ", " differ\n  " },                     /* weights, text */
	{ VN_PLACE_REPORT, "weights    ", ", all equal\n" },
	{ VN_PLACE_REPORT, "weights    ", ", equal within rounding (" },
	{ VN_PLACE_REPORT, "weight   ", " dtype shape   " },                 /* show --weights, text */
	{ VN_PLACE_REPORT, "\nstep.", "\n  order name   " },                  /* show of a step */
	{ VN_PLACE_REPORT, "", "\nrun\n  created   " },                      /* show of a recording: begins with its path */
	{ VN_PLACE_REPORT, "", "\n  dtype            " },                     /* of a tensor */
	{ VN_PLACE_REPORT, "", " identities checked, " },                     /* show --check */
	{ VN_PLACE_LIMITS, "# Fitted by vernier calibrate ", "" },
	{ VN_PLACE_MAP, "# Proposed by the numbers of ", "" },
	{ VN_PLACE_NUMBERS, "\x93NUMPY", "" },
	{ VN_PLACE_NUMBERS, "# dtype ", "\n# " },
	{ VN_PLACE_MANUAL, ".TH vernier-", "\"User Commands\"\n" },
};
/* clang-format on */

enum { HEAD = 8192 }; /* a path in the first line may have 4096 bytes */

/* Where the n bytes of a word are in the head: an empty one at its start. NULL: nowhere. */
static const char *find_bytes(const char *head, size_t bytes, const char *word, size_t n)
{
	for (size_t at = 0; at + n <= bytes; at++)
		if (memcmp(head + at, word, n) == 0)
			return head + at;
	return NULL;
}

static bool is_of_kind(const char *head, size_t n, vn_place_kind kind)
{
	for (size_t i = 0; i < sizeof mark / sizeof *mark; i++) {
		const size_t begin = strlen(mark[i].begin);
		if (mark[i].kind == kind && n >= begin && memcmp(head, mark[i].begin, begin) == 0 &&
		    find_bytes(head, n, mark[i].hold, strlen(mark[i].hold)))
			return true;
	}
	return n == 0;
}

/* The first bytes of a file, from an open descriptor. -1, with errno: they cannot be read. */
static ssize_t read_head(int fd, char head[HEAD])
{
	size_t  n = 0;
	ssize_t got = 1;

	while (n < HEAD && ((got = pread(fd, head + n, HEAD - n, (off_t)n)) > 0 || (got < 0 && errno == EINTR)))
		n += got > 0 ? (size_t)got : 0;
	return got < 0 ? -1 : (ssize_t)n;
}

static vn_status check_kind(const char *path, vn_place_kind kind, vn_error *err)
{
	static const char *const refusal[VN_N_PLACES] = {
		[VN_PLACE_RECORDING] = "not a recording; --force replaces only recordings",
		[VN_PLACE_REPORT] = "not a report of vernier; --force replaces only those",
		[VN_PLACE_LIMITS] = "not a limits file of calibrate; --force replaces only those",
		[VN_PLACE_MAP] = "not a name map of import; --force replaces only those",
		[VN_PLACE_MANUAL] = "not a manual page of vernier; only those are replaced",
		[VN_PLACE_NUMBERS] = "not the numbers of a tensor; --force replaces only those",
	};
	char          head[HEAD];
	const int     fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const ssize_t n = fd < 0 ? -1 : read_head(fd, head);
	const int     why = errno;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be read, so vernier does not know what --force would replace: %s",
		               path, strerror(why));
	return is_of_kind(head, (size_t)n, kind)
	           ? VN_OK
	           : vn_fail(err, VN_ERR_IO, "%s: is %s; remove the file first, or give another name", path, refusal[kind]);
}

vn_status vn_place_check_folder(const char *path, vn_error *err)
{
	struct stat    st;
	VN_FREED char *dir = parent_folder(path);

	if (!dir)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
	if (stat(dir, &st) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: no directory %s: %s", path, dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return vn_fail(err, VN_ERR_IO, "%s: %s is not a directory", path, dir);
	return access(dir, W_OK | X_OK) == 0
	           ? VN_OK
	           : vn_fail(err, VN_ERR_IO, "%s: cannot write in %s: %s", path, dir, strerror(errno));
}

/* A file is first written under a longer name. */
static vn_status check_length(const char *path, vn_place_kind kind, vn_error *err)
{
	struct stat st;
	char        longest[PATH_MAX + 64];

	if (kind == VN_PLACE_RECORDING)
		snprintf(longest, sizeof longest, "%.*s.partial", PATH_MAX, path);
	else /* output.c */
		snprintf(longest, sizeof longest, "%.*s.%d.99.partial", PATH_MAX, path, INT_MAX);
	return strlen(longest) < PATH_MAX && (lstat(longest, &st) == 0 || errno != ENAMETOOLONG)
	           ? VN_OK
	           : vn_fail(err, VN_ERR_USAGE,
	                     "%.80s...: the name is too long: vernier adds up to %zu bytes to it while it writes", path,
	                     strlen(longest) - strlen(path));
}

vn_status vn_place_check(const char *path, vn_place_kind kind, bool force, vn_error *err)
{
	static const char *const elsewhere[] = {
		".npz", ".npy", ".safetensors", ".gguf", ".json", ".html", ".yaml", ".pt"
	};

	struct stat st;
	size_t      n = strlen(path);

	if (n == 0)
		return vn_fail(err, VN_ERR_USAGE, "the name of the output file is empty");
	if (strcmp(path, "-") == 0)
		return vn_fail(err, VN_ERR_USAGE, "-o - is not supported; for a file of that name, give ./-");
	if (check_length(path, kind, err))
		return VN_ERR_USAGE;
	for (size_t i = 0; kind == VN_PLACE_RECORDING && i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (n > strlen(elsewhere[i]) && strcmp(path + n - strlen(elsewhere[i]), elsewhere[i]) == 0)
			return vn_fail(err, VN_ERR_USAGE, "%s: a recording is an HDF5 file: give it a name that ends in .h5", path);
	/* Does not follow a link: rename would replace the link, such as /dev/stdout. */
	if (lstat(path, &st) == 0) {
		if (S_ISLNK(st.st_mode))
			return vn_fail(err, VN_ERR_IO, "%s: is a symbolic link; give the name of the file itself", path);
		if (S_ISDIR(st.st_mode))
			return vn_fail(err, VN_ERR_IO, "%s: is a directory; give the name of a file", path);
		if (!S_ISREG(st.st_mode))
			return vn_fail(err, VN_ERR_IO, "%s: not a regular file", path);
		if (!force)
			return vn_fail(err, VN_ERR_IO, "%s: exists already; --force replaces it", path);
		const vn_status other = check_kind(path, kind, err);
		return other               ? other
		       : vn_input_is(path) ? vn_fail(err, VN_ERR_IO, "%s: is read by this command; write to another name", path)
		                           : VN_OK;
	}
	if (errno != ENOENT)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	if (path[n - 1] == '/')
		return vn_fail(err, VN_ERR_IO, "%s: names a directory; give the name of a file", path);
	return vn_place_check_folder(path, err);
}

/* ---- PATH.partial --------------------------------------------------------------------------- */

/* What the first bytes say of a file: UNFINISHED and COMPLETE are recordings of capture/store. */
typedef enum leftover { SOMETHING_ELSE, UNFINISHED, COMPLETE } leftover;

static leftover kind_of_leftover(const char *head, size_t n)
{
	static const char signature[] = "\x89HDF\r\n\x1a\n", attribute[] = "\0complete", zero[8] = "",
					  begun[] = "vernier begins a recording here\n"; /* by older versions */
	enum { DESCRIBED = 16 }; /* bytes of the attribute's type and shape, before its number (scribe_file.c) */

	if (n >= strlen(begun) && memcmp(head, begun, strlen(begun)) == 0)
		return UNFINISHED;
	if (n < strlen(signature) || memcmp(head, signature, strlen(signature)) != 0)
		return SOMETHING_ELSE;
	const char *complete = find_bytes(head, n, attribute, sizeof attribute);
	const char *value = complete ? complete + sizeof attribute + DESCRIBED : NULL;
	if (!value || value + sizeof zero > head + n ||
	    !find_bytes(head, n, "vernier-checkpoint", strlen("vernier-checkpoint")))
		return SOMETHING_ELSE;
	return memcmp(value, zero, sizeof zero) == 0 ? UNFINISHED : COMPLETE;
}

/* May a file of that name be emptied? Only what an interrupted run left, under no other name, and
 * not if this command reads it. */
static vn_status check_leftover(const vn_place *p, const struct stat *st, vn_error *err)
{
	char          head[HEAD];
	const ssize_t n = read_head(p->fd, head);

	if (n < 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be read: %s", p->partial, strerror(errno));
	if (vn_input_is_open(p->fd))
		return vn_fail(err, VN_ERR_IO, "%s: is read by this command; give another name than %s", p->partial, p->path);
	if (st->st_nlink > 1)
		return vn_fail(err, VN_ERR_IO,
		               "%s: has another name, too (a hard link); remove this one, or give another name than %s",
		               p->partial, p->path);
	const leftover is = n == 0 ? UNFINISHED : kind_of_leftover(head, (size_t)n);
	return is == UNFINISHED ? VN_OK
	                        : vn_fail(err, VN_ERR_IO, "%s: %s; rename it, or give another name than %s", p->partial,
	                                  is == COMPLETE ? "is a recording that is marked as complete"
	                                                 : "exists, and is not what an interrupted run left",
	                                  p->path);
}

/* The writer process of a program that was just killed (store/scribe.h) may still be ending. */
static bool is_locked(int fd)
{
	enum { TRIES = 50, WAIT_US = 10000 };

	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; i++) {
		if (i == TRIES)
			return false;
		usleep(WAIT_US);
	}
	return true; /* or the file system has no locks */
}

/* Opens and locks the partial file. Its former owner may rename it between the two calls; then the
 * descriptor no longer matches the name, and we try again. */
static vn_status open_partial(vn_place *p, vn_error *err)
{
	struct stat ours, named;

	for (int turn = 0; turn < 100; turn++) {
		enum { HOW = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK };
		if (lstat(p->partial, &named) == 0 && !S_ISREG(named.st_mode))
			return vn_fail(err, VN_ERR_IO, "%s: is %s", p->partial,
			               S_ISLNK(named.st_mode) ? "a symbolic link" : "not a regular file");
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
			return vn_fail(err, VN_ERR_IO, "%s: not a regular file", p->partial);
		if (!is_locked(p->fd)) {
			errno = 0; /* it is no failure of the machine, which other recordings of the process would be told of */
			return vn_fail(err, VN_ERR_IO,
			               "%s: another process is writing it; wait until it has ended, or give another name than %s",
			               p->partial, p->path);
		}
		const int failed = stat(p->partial, &named) != 0 ? errno : 0;
		if (failed && failed != ENOENT) {
			if (made)
				unlink(p->partial);
			return vn_fail(err, VN_ERR_IO, "%s: cannot be read: %s", p->partial, strerror(failed));
		}
		if (!failed && named.st_ino == ours.st_ino && named.st_dev == ours.st_dev) {
			const vn_status free = made ? VN_OK : check_leftover(p, &named, err);
			if (free)
				return free;
			const vn_status st = ftruncate(p->fd, 0) != 0
			                         ? vn_fail(err, VN_ERR_IO, "%s: cannot write: %s", p->partial, strerror(errno))
			                         : VN_OK;
			if (st && made)
				unlink(p->partial);
			else if (!st)
				vn_output_note(p->fd);
			return st;
		}
		close(p->fd);
	}
	p->fd = -1;
	return vn_fail(err, VN_ERR_IO, "%s: keeps being renamed by another process", p->partial);
}

vn_status vn_place_open(vn_place *p, const char *path, bool force, vn_error *err)
{
	vn_status st;

	*p = (vn_place) { .fd = -1, .force = force, .mark = vn_trouble_mark() };
	if ((st = vn_place_check(path, VN_PLACE_RECORDING, force, err)))
		return st;
	p->path = strdup(path);
	if (!p->path || !(p->partial = vn_text_new("%s.partial", path))) {
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
	/* Some errors, such as a full disk, are reported only here. */
	if (vn_file_sync(p->fd) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot write: %s", p->partial, strerror(errno));
	const vn_status replaceable = p->force ? vn_place_check(p->path, VN_PLACE_RECORDING, true, err) : VN_OK;
	if (replaceable)
		return replaceable;
	const int r = p->force ? rename(p->partial, p->path) : vn_file_move(p->partial, p->path);
	if (r != 0 && !p->force && errno == EEXIST)
		return vn_fail(err, VN_ERR_IO,
		               "%s: another program has created it in the meantime, and it stays; this recording is complete, "
		               "too: give it another name than %s",
		               p->path, p->partial);
	if (r != 0)
		return vn_fail(err, VN_ERR_IO, "%s: cannot be renamed to %s: %s", p->partial, p->path, strerror(errno));

	char *dir = parent_folder(p->path);
	int   fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(dir);
	if (fd >= 0) {
		(void)!fsync(fd); /* syncs the name; some file systems cannot */
		close(fd);
	}
	return VN_OK;
}

void vn_place_close(vn_place *p)
{
	if (p->fd >= 0 && p->partial) {
		flock(p->fd, LOCK_UN); /* a process forked meanwhile may keep a copy of the descriptor */
		close(p->fd);
	}
	VN_FREE(p->path, p->partial);
	*p = (vn_place) { .fd = -1 };
}
