/* fault_shim.c: the n-th call of malloc, read, rename... fails. For LD_PRELOAD;
 * tests/attack/fault_sweep.py drives it.
 *
 * Calls before main and calls of the dynamic loader never fail, nor those that a Vulkan driver
 * makes: libraries that were not there when main began, but for the Vulkan loader. What a driver
 * does without memory is not ours to mend (it aborts, or goes on with a null pointer). Nor do those
 * of libseccomp, which crashes or does not end without memory: vernier calls it only where there is
 * enough (capture/file/sandbox.c). The environment selects the calls that fail:
 *
 *   VN_FAULT_CALL      names of calls, by commas, or a family: memory, file, process.
 *                      Unset: nothing fails
 *   VN_FAULT_AT        which of these calls, from 1 on, over all processes together
 *   VN_FAULT_STICKY=1  every one of them from there on
 *   VN_FAULT_PERCENT   instead of VN_FAULT_AT: so many of a hundred, drawn with VN_FAULT_SEED
 *   VN_FAULT_CHILDREN=1  also in forked processes, which are otherwise left alone and not counted
 *   VN_FAULT_OWN=1     only calls made by the program itself, not by libraries
 *   VN_FAULT_TALLY     a file of zero bytes (struct tally): the calls counted, the calls that
 *                      failed, then how often each call of the table was made, all uint64_t
 *   VN_FAULT_TIME      what time() and gettimeofday() say, so that files are the same byte for byte
 *   VN_FAULT_TRACE     a file that gets the stack of the first call that failed
 *   VN_FAULT_LIST=1    print the table's names and end
 *
 * A call that fails sets errno as the kernel would. A call with an effect despite its failure
 * (close) has that effect.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The C library's own: no look-up, which would need memory. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *old, size_t n);
void *__libc_memalign(size_t align, size_t n);

enum { MEMORY = 1, FILES = 2, PROCESS = 4 };

/* NAME_part: the call reads or writes less than asked for. NAME_again: a signal interrupts it.
 * NAME_end: the file or the pipe ends early. */
/* clang-format off */
#define CALLS(X) \
	X(malloc, MEMORY, ENOMEM) X(calloc, MEMORY, ENOMEM) X(realloc, MEMORY, ENOMEM) \
	X(aligned_alloc, MEMORY, ENOMEM) X(posix_memalign, MEMORY, ENOMEM) X(mmap, MEMORY, ENOMEM) \
	X(munmap, 0, ENOMEM) X(madvise, 0, EINVAL) X(create, FILES, ENOSPC) X(open, FILES, EMFILE) \
	X(fopen, FILES, EMFILE) X(opendir, FILES, EMFILE) X(read, FILES, EIO) X(pread, FILES, EIO) \
	X(fread, FILES, EIO) X(getline, FILES, EIO) X(write, FILES, ENOSPC) X(pwrite, FILES, ENOSPC) \
	X(fwrite, FILES, ENOSPC) X(fflush, FILES, ENOSPC) X(fclose, FILES, EIO) X(ftruncate, FILES, ENOSPC) \
	X(fallocate, FILES, ENOSPC) \
	X(fsync, FILES, EIO) X(rename, FILES, EIO) X(close, FILES, EIO) X(fstat, FILES, EIO) \
	X(stat, FILES, EIO) X(flock, FILES, ENOLCK) X(recv, FILES, EIO) X(send, FILES, ENOBUFS) X(mkdir, FILES, ENOSPC) \
	X(mkstemp, FILES, ENOSPC) X(fork, PROCESS, EAGAIN) X(pipe, PROCESS, EMFILE) \
	X(pthread_create, PROCESS, EAGAIN) X(poll, PROCESS, ENOMEM) X(dup2, PROCESS, EBUSY) \
	X(mutex_init, PROCESS, ENOMEM) X(cond_init, PROCESS, ENOMEM) X(mremap, MEMORY, ENOMEM) \
	X(mprotect, MEMORY, ENOMEM) X(fopencookie, MEMORY, ENOMEM) X(open_memstream, MEMORY, ENOMEM) \
	X(dup, FILES, EMFILE) X(lseek, FILES, EIO) X(fseek, FILES, EIO) X(access, FILES, EIO) \
	X(link, FILES, EIO) X(readlink, FILES, EIO) X(realpath, FILES, EIO) X(scandir, FILES, ENOMEM) \
	X(readdir, FILES, EIO) X(tmpfile, FILES, EMFILE) X(waitpid, PROCESS, ECHILD) X(waitid, PROCESS, ECHILD) \
	X(sched_getaffinity, PROCESS, ENOSYS) X(sem_init, PROCESS, ENOSPC) X(read_part, 0, 0) \
	X(read_again, 0, EINTR) X(pread_part, 0, 0) X(pread_again, 0, EINTR) X(write_part, 0, 0) \
	X(write_again, 0, EINTR) X(pwrite_part, 0, 0) X(pwrite_again, 0, EINTR) X(read_end, 0, 0) \
	X(pread_end, 0, 0) X(recv_part, 0, 0) X(recv_again, 0, EINTR) X(recv_end, 0, 0) X(send_part, 0, 0) \
	X(send_again, 0, EINTR) X(poll_again, 0, EINTR) X(waitpid_again, 0, EINTR) X(sem_wait_again, 0, EINTR) \
	X(open_again, 0, EINTR) X(fsync_again, 0, EINTR) X(unlink, 0, EIO) X(rmdir, 0, EIO) X(remove, 0, EIO) \
	X(fcntl, 0, EINVAL) X(ftell, 0, EIO) X(setvbuf, 0, ENOMEM) X(setenv, 0, ENOMEM) X(sigaction, 0, EINVAL) \
	X(sigaltstack, 0, ENOMEM) X(prctl, 0, EINVAL) X(setrlimit, 0, EPERM) X(getrlimit, 0, EINVAL) \
	X(setitimer, 0, EINVAL) X(setsockopt, 0, ENOBUFS) X(sysconf, 0, EINVAL) X(clock_gettime, 0, EINVAL) \
	X(clock_getcpuclockid, 0, ESRCH) X(mincore, 0, EAGAIN) X(sync_file_range, 0, EIO) X(truncate, 0, EIO) \
	X(dlopen, 0, 0) X(closedir, 0, EIO) X(syscall, 0, ENOSYS) X(time, 0, EOVERFLOW) X(localtime, 0, EOVERFLOW) \
	X(fgetc, 0, EIO)
/* clang-format on */

enum call {
#define X(name, family, number) C_##name,
	CALLS(X)
#undef X
		N_CALLS
};

static const struct {
	const char *name;
	int         family, number;
} call[N_CALLS] = {
#define X(name, family, number) { #name, family, number },
	CALLS(X)
#undef X
};

struct tally {
	_Atomic uint64_t counted, failed, each[N_CALLS];
};

static struct tally own_tally, *tally = &own_tally;
static bool         active, selected[N_CALLS], sticky, children, child, own;
static uint64_t     at, percent, seed;
static time_t       fixed_time;
static uintptr_t    loader_from, loader_to;   /* the address range of the dynamic loader's code */
static uintptr_t    seccomp_from, seccomp_to; /* of libseccomp's */
static uintptr_t    program_from, program_to; /* and the program's */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static const char        *trace; /* NULL: not asked for */
static _Thread_local bool tracing;

static _Atomic int being_traced;

/* Uses system calls directly, which must neither fail nor be counted. */
static void write_trace(void)
{
	void *frame[40];
	tracing = true;
	const int n = backtrace(frame, 40),
			  fd = (int)syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0) {
		backtrace_symbols_fd(frame, n, fd);
		syscall(SYS_close, fd);
	}
	tracing = false;
}

enum { LIBRARIES = 512 };
static uintptr_t first_library[LIBRARIES]; /* the addresses of those that were there when main began */
static int       first_libraries;

struct search {
	uintptr_t at;
	bool      driver;
};

static int find_driver(struct dl_phdr_info *i, size_t size, void *ctx)
{
	struct search *s = ctx;
	bool           here = false;

	(void)size;
	for (int k = 0; k < i->dlpi_phnum; k++) {
		const uintptr_t from = i->dlpi_addr + i->dlpi_phdr[k].p_vaddr;
		here |= i->dlpi_phdr[k].p_type == PT_LOAD && s->at >= from && s->at < from + i->dlpi_phdr[k].p_memsz;
	}
	if (!here)
		return 0;
	s->driver = !i->dlpi_name || !strstr(i->dlpi_name, "/libvulkan.so");
	for (int k = 0; k < first_libraries; k++)
		s->driver = s->driver && first_library[k] != i->dlpi_addr;
	return 1;
}

/* Does a Vulkan driver, or a library that only it uses, make the call? The stack is asked only
 * where the caller is a library that others use, too: it takes time. */
static bool is_drivers(const void *from)
{
	void         *frame[64];
	struct search s = { .at = (uintptr_t)from };

	if (s.at >= program_from && s.at < program_to)
		return false;
	tracing = true;
	dl_iterate_phdr(find_driver, &s);
	const int n = s.driver ? 0 : backtrace(frame, 64);
	for (int i = 0; i < n && !s.driver; i++) {
		s.at = (uintptr_t)frame[i];
		dl_iterate_phdr(find_driver, &s);
	}
	tracing = false;
	return s.driver;
}

/* Does this call fail? from: the caller's address. */
static bool fails(enum call c, const void *from)
{
	if (!active || tracing || ((uintptr_t)from >= loader_from && (uintptr_t)from < loader_to) || (child && !children))
		return false;
	if ((uintptr_t)from >= seccomp_from && (uintptr_t)from < seccomp_to)
		return false;
	if (own && ((uintptr_t)from < program_from || (uintptr_t)from >= program_to))
		return false;
	tally->each[c]++;
	if (!selected[c])
		return false;
	const uint64_t n = ++tally->counted;
	if (percent ? mix(n ^ mix(seed)) % 100 >= percent : sticky ? at == 0 || n < at : n != at)
		return false;
	if (is_drivers(from))
		return false;
	/* Another thread whose call fails too may end the program, so it waits until the
	 * stack is written. */
	being_traced++;
	if (tally->failed++ == 0 && trace)
		write_trace();
	being_traced--;
	for (int i = 0; trace && being_traced && i < 1000000; i++)
		sched_yield();
	errno = call[c].number;
	return true;
}

#define FAILS(name) fails(C_##name, __builtin_return_address(0))

/* The next definition of a function; looked up once. */
#define NEXT(name) \
	static __typeof__(name) *next_; \
	if (!next_) \
	*(void **)&next_ = dlsym(RTLD_NEXT, #name)

/* ---- memory ---------------------------------------------------------------------------------- */

void *malloc(size_t n)
{
	return FAILS(malloc) ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t each)
{
	return FAILS(calloc) ? NULL : __libc_calloc(n, each);
}
void *realloc(void *old, size_t n)
{
	return FAILS(realloc) ? NULL : __libc_realloc(old, n);
}
void *aligned_alloc(size_t align, size_t n)
{
	return FAILS(aligned_alloc) ? NULL : __libc_memalign(align, n);
}
void *memalign(size_t align, size_t n)
{
	return FAILS(aligned_alloc) ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	void *got = FAILS(posix_memalign) ? NULL : __libc_memalign(align, n);
	if (!got)
		return ENOMEM;
	*p = got;
	return 0;
}

void *mmap(void *where, size_t n, int prot, int flags, int fd, off_t from)
{
	NEXT(mmap);
	return FAILS(mmap) ? MAP_FAILED : next_(where, n, prot, flags, fd, from);
}

void *mmap64(void *where, size_t n, int prot, int flags, int fd, off64_t from)
{
	NEXT(mmap64);
	return FAILS(mmap) ? MAP_FAILED : next_(where, n, prot, flags, fd, from);
}

/* A wrapper that fails or passes the call on. */
#define PASS(result, name, as, parameters, arguments, failure) \
	result name parameters \
	{ \
		NEXT(name); \
		return FAILS(as) ? failure : next_ arguments; \
	}

PASS(int, munmap, munmap, (void *p, size_t n), (p, n), -1)
PASS(int, madvise, madvise, (void *p, size_t n, int advice), (p, n, advice), -1)

/* ---- files ----------------------------------------------------------------------------------- */

#define OPEN(name, parameters, arguments) \
	int name parameters \
	{ \
		NEXT(name); \
		mode_t  mode = 0; \
		va_list more; \
		va_start(more, flags); \
		if (flags & (O_CREAT | O_TMPFILE)) \
			mode = va_arg(more, mode_t); \
		va_end(more); \
		if (fails(flags & O_CREAT ? C_create : C_open, __builtin_return_address(0)) || FAILS(open_again)) \
			return -1; \
		return next_ arguments; \
	}
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
PASS(int, __open_2, open, (const char *path, int flags), (path, flags), -1)
PASS(int, __open64_2, open, (const char *path, int flags), (path, flags), -1)
PASS(FILE *, fopen, fopen, (const char *path, const char *mode), (path, mode), NULL)
PASS(FILE *, fopen64, fopen, (const char *path, const char *mode), (path, mode), NULL)
PASS(FILE *, fdopen, fopen, (int fd, const char *mode), (fd, mode), NULL)
PASS(DIR *, opendir, opendir, (const char *path), (path), NULL)
PASS(struct dirent *, readdir, readdir, (DIR * d), (d), NULL)
PASS(struct dirent64 *, readdir64, readdir, (DIR * d), (d), NULL)

#define PART(name) (FAILS(name##_part) && n > 1 ? (n + 1) / 2 : n)
#define READS(name, base, parameters, arguments) \
	ssize_t name parameters \
	{ \
		NEXT(name); \
		if (FAILS(base) || FAILS(base##_again)) \
			return -1; \
		if (FAILS(base##_end)) \
			return 0; \
		n = PART(base); \
		return next_ arguments; \
	}
READS(read, read, (int fd, void *to, size_t n), (fd, to, n))
READS(pread, pread, (int fd, void *to, size_t n, off_t from), (fd, to, n, from))
READS(pread64, pread, (int fd, void *to, size_t n, off64_t from), (fd, to, n, from))
ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t n, off_t from, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t n, off64_t from, size_t room);
READS(__read_chk, read, (int fd, void *to, size_t n, size_t room), (fd, to, n, room))
READS(__pread_chk, pread, (int fd, void *to, size_t n, off_t from, size_t room), (fd, to, n, from, room))
READS(__pread64_chk, pread, (int fd, void *to, size_t n, off64_t from, size_t room), (fd, to, n, from, room))
/* Writes to stderr never fail: errors could not be reported. */
ssize_t write(int fd, const void *from, size_t n)
{
	NEXT(write);
	if (fd != 2 && (FAILS(write) || FAILS(write_again)))
		return -1;
	return next_(fd, from, PART(write));
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t to)
{
	NEXT(pwrite);
	return FAILS(pwrite) || FAILS(pwrite_again) ? -1 : next_(fd, from, PART(pwrite), to);
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t to)
{
	NEXT(pwrite64);
	return FAILS(pwrite) || FAILS(pwrite_again) ? -1 : next_(fd, from, PART(pwrite), to);
}
READS(recv, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags))
PASS(ssize_t, send, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags), -1)

/* sendmsg_part sends half of the first piece. */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	NEXT(sendmsg);
	struct msghdr part = *m;
	struct iovec  first = m->msg_iovlen ? *m->msg_iov : (struct iovec) { NULL, 0 };
	if (FAILS(send) || FAILS(send_again))
		return -1;
	if (first.iov_len > 1 && FAILS(send_part)) {
		first.iov_len = (first.iov_len + 1) / 2;
		part.msg_iov = &first;
		part.msg_iovlen = 1;
	}
	return next_(fd, &part, flags);
}
PASS(int, ftruncate, ftruncate, (int fd, off_t n), (fd, n), -1)
PASS(int, ftruncate64, ftruncate, (int fd, off64_t n), (fd, n), -1)
PASS(int, fallocate, fallocate, (int fd, int mode, off_t from, off_t n), (fd, mode, from, n), -1)
PASS(int, posix_fallocate, fallocate, (int fd, off_t from, off_t n), (fd, from, n), ENOSPC)
#define AGAIN(result, name, as, parameters, arguments, failure) \
	result name parameters \
	{ \
		NEXT(name); \
		return FAILS(as) || FAILS(as##_again) ? failure : next_ arguments; \
	}
AGAIN(int, fsync, fsync, (int fd), (fd), -1)
AGAIN(int, fdatasync, fsync, (int fd), (fd), -1)
PASS(int, unlink, unlink, (const char *path), (path), -1)
PASS(int, unlinkat, unlink, (int dir, const char *path, int flags), (dir, path, flags), -1)
PASS(int, rmdir, rmdir, (const char *path), (path), -1)
PASS(int, remove, remove, (const char *path), (path), -1)
PASS(int, truncate, truncate, (const char *path, off_t n), (path, n), -1)
PASS(int, truncate64, truncate, (const char *path, off64_t n), (path, n), -1)
PASS(int, sync_file_range, sync_file_range, (int fd, off64_t from, off64_t n, unsigned how), (fd, from, n, how), -1)
PASS(int, closedir, closedir, (DIR * d), (d), -1)
PASS(long, ftell, ftell, (FILE * f), (f), -1)
PASS(off_t, ftello, ftell, (FILE * f), (f), -1)
PASS(off64_t, ftello64, ftell, (FILE * f), (f), -1)
PASS(int, fseeko, fseek, (FILE * f, off_t to, int from), (f, to, from), -1)
PASS(int, fseeko64, fseek, (FILE * f, off64_t to, int from), (f, to, from), -1)
PASS(int, setvbuf, setvbuf, (FILE * f, char *buffer, int how, size_t n), (f, buffer, how, n), -1)

/* A dlopen that failed leaves a text for dlerror(), which the Vulkan loader reads: so here. */
void *dlopen(const char *path, int how)
{
	NEXT(dlopen);
	return next_(FAILS(dlopen) ? "/nonexistent/made to fail" : path, how);
}

int fcntl64(int fd, int what, ...);
#define FCNTL(name) \
	int name(int fd, int what, ...) \
	{ \
		NEXT(name); \
		va_list more; \
		va_start(more, what); \
		void *x = va_arg(more, void *); /* an int passes in the same place */ \
		va_end(more); \
		return FAILS(fcntl) ? -1 : next_(fd, what, x); \
	}
FCNTL(fcntl)
FCNTL(fcntl64)
PASS(int, rename, rename, (const char *from, const char *to), (from, to), -1)
PASS(int, renameat2, rename, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags),
     -1)
PASS(int, fstat, fstat, (int fd, struct stat *st), (fd, st), -1)
PASS(int, fstat64, fstat, (int fd, struct stat64 *st), (fd, st), -1)
PASS(int, stat, stat, (const char *path, struct stat *st), (path, st), -1)
PASS(int, stat64, stat, (const char *path, struct stat64 *st), (path, st), -1)
PASS(int, lstat, stat, (const char *path, struct stat *st), (path, st), -1)
PASS(int, lstat64, stat, (const char *path, struct stat64 *st), (path, st), -1)
int flock(int fd, int how);
PASS(int, flock, flock, (int fd, int how), (fd, how), -1)
PASS(int, mkdir, mkdir, (const char *path, mode_t mode), (path, mode), -1)
PASS(int, mkstemp, mkstemp, (char *path), (path), -1)
PASS(int, mkostemp, mkstemp, (char *path, int flags), (path, flags), -1)
PASS(char *, mkdtemp, mkstemp, (char *path), (path), NULL)

int close(int fd)
{
	NEXT(close);
	const bool bad = FAILS(close);
	const int  r = next_(fd);
	if (bad)
		errno = call[C_close].number;
	return bad ? -1 : r;
}

/* Streams need their own wrappers: the C library's reads and writes do not go through the functions
 * above. */
static void mark_error(FILE *f)
{
	enum { ERROR_SEEN = 0x20 }; /* _IO_ERR_SEEN; ferror() reads it */
	if (f)
		f->_flags |= ERROR_SEEN;
}

size_t fread(void *to, size_t each, size_t n, FILE *f)
{
	NEXT(fread);
	if (!FAILS(fread))
		return next_(to, each, n, f);
	mark_error(f);
	return 0;
}

size_t fwrite(const void *from, size_t each, size_t n, FILE *f)
{
	NEXT(fwrite);
	if (f == stderr || !FAILS(fwrite))
		return next_(from, each, n, f);
	mark_error(f);
	return 0;
}

int fgetc(FILE *f)
{
	NEXT(fgetc);
	if (!FAILS(fgetc))
		return next_(f);
	mark_error(f);
	return EOF;
}

int fflush(FILE *f)
{
	NEXT(fflush);
	if (f == stderr || !FAILS(fflush))
		return next_(f);
	mark_error(f);
	return EOF;
}

int fclose(FILE *f)
{
	NEXT(fclose);
	const bool bad = FAILS(fclose);
	const int  r = next_(f);
	if (bad)
		errno = call[C_fclose].number;
	return bad ? EOF : r;
}

ssize_t getline(char **line, size_t *room, FILE *f)
{
	NEXT(getline);
	if (!FAILS(getline))
		return next_(line, room, f);
	mark_error(f);
	return -1;
}

/* ---- processes and threads ------------------------------------------------------------------- */

pid_t fork(void)
{
	NEXT(fork);
	const pid_t pid = FAILS(fork) ? -1 : next_();
	child |= pid == 0;
	return pid;
}

PASS(int, pipe, pipe, (int ends[2]), (ends), -1)
PASS(int, pipe2, pipe, (int ends[2], int flags), (ends, flags), -1)
PASS(int, socketpair, pipe, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends), -1)
PASS(int, dup2, dup2, (int from, int to), (from, to), -1)
AGAIN(int, poll, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms), -1)
int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t room);
AGAIN(int, __poll_chk, poll, (struct pollfd * p, nfds_t n, int ms, size_t room), (p, n, ms, room), -1)
PASS(int, mprotect, mprotect, (void *p, size_t n, int what), (p, n, what), -1)
PASS(FILE *, fopencookie, fopencookie, (void *restrict x, const char *restrict mode, cookie_io_functions_t f),
     (x, mode, f), NULL)
PASS(FILE *, open_memstream, open_memstream, (char **text, size_t *n), (text, n), NULL)
PASS(int, dup, dup, (int fd), (fd), -1)
PASS(off_t, lseek, lseek, (int fd, off_t to, int from), (fd, to, from), -1)
PASS(off64_t, lseek64, lseek, (int fd, off64_t to, int from), (fd, to, from), -1)
PASS(int, fseek, fseek, (FILE * f, long to, int from), (f, to, from), -1)
PASS(int, access, access, (const char *path, int how), (path, how), -1)
PASS(int, link, link, (const char *from, const char *to), (from, to), -1)
PASS(ssize_t, readlink, readlink, (const char *restrict path, char *restrict to, size_t n), (path, to, n), -1)
PASS(char *, realpath, realpath, (const char *restrict path, char *restrict to), (path, to), NULL)
char *__realpath_chk(const char *path, char *to, size_t room);
PASS(char *, __realpath_chk, realpath, (const char *path, char *to, size_t room), (path, to, room), NULL)
PASS(int, scandir, scandir,
     (const char *restrict path, struct dirent ***restrict list, int (*wanted)(const struct dirent *),
      int (*order)(const struct dirent **, const struct dirent **)),
     (path, list, wanted, order), -1)
PASS(FILE *, tmpfile, tmpfile, (void), (), NULL)
AGAIN(pid_t, waitpid, waitpid, (pid_t pid, int *status, int how), (pid, status, how), -1)
PASS(int, waitid, waitid, (idtype_t what, id_t id, siginfo_t *info, int how), (what, id, info, how), -1)
PASS(int, sched_getaffinity, sched_getaffinity, (pid_t pid, size_t n, cpu_set_t *set), (pid, n, set), -1)
PASS(int, sem_wait, sem_wait_again, (sem_t * s), (s), -1)
PASS(int, setenv, setenv, (const char *key, const char *value, int over), (key, value, over), -1)
PASS(int, sigaction, sigaction, (int n, const struct sigaction *restrict now, struct sigaction *restrict was),
     (n, now, was), -1)
PASS(int, sigaltstack, sigaltstack, (const stack_t *restrict now, stack_t *restrict was), (now, was), -1)
PASS(int, setrlimit, setrlimit, (__rlimit_resource_t what, const struct rlimit *most), (what, most), -1)
PASS(int, setrlimit64, setrlimit, (__rlimit_resource_t what, const struct rlimit64 *most), (what, most), -1)
PASS(int, getrlimit, getrlimit, (__rlimit_resource_t what, struct rlimit *most), (what, most), -1)
PASS(int, getrlimit64, getrlimit, (__rlimit_resource_t what, struct rlimit64 *most), (what, most), -1)
PASS(int, setitimer, setitimer,
     (__itimer_which_t which, const struct itimerval *restrict now, struct itimerval *restrict was), (which, now, was),
     -1)
PASS(int, setsockopt, setsockopt, (int fd, int level, int name, const void *x, socklen_t n), (fd, level, name, x, n),
     -1)
PASS(long, sysconf, sysconf, (int name), (name), -1)
PASS(int, clock_gettime, clock_gettime, (clockid_t id, struct timespec *t), (id, t), -1)
PASS(int, clock_getcpuclockid, clock_getcpuclockid, (pid_t pid, clockid_t *id), (pid, id), ESRCH)
PASS(int, mincore, mincore, (void *p, size_t n, unsigned char *in), (p, n, in), -1)
PASS(struct tm *, localtime, localtime, (const time_t *t), (t), NULL)
PASS(struct tm *, gmtime, localtime, (const time_t *t), (t), NULL)
PASS(struct tm *, localtime_r, localtime, (const time_t *restrict t, struct tm *restrict to), (t, to), NULL)
PASS(struct tm *, gmtime_r, localtime, (const time_t *restrict t, struct tm *restrict to), (t, to), NULL)

int prctl(int what, ...)
{
	NEXT(prctl);
	unsigned long x[4];
	va_list       more;
	va_start(more, what);
	for (int i = 0; i < 4; i++)
		x[i] = va_arg(more, unsigned long);
	va_end(more);
	return FAILS(prctl) ? -1 : next_(what, x[0], x[1], x[2], x[3]);
}

long syscall(long number, ...)
{
	NEXT(syscall);
	long    x[6];
	va_list more;
	va_start(more, number);
	for (int i = 0; i < 6; i++)
		x[i] = va_arg(more, long);
	va_end(more);
	/* Only the program's own calls fail: drivers wait for threads by syscall(). */
	const uintptr_t from = (uintptr_t)__builtin_return_address(0);
	const bool      ours = from >= program_from && from < program_to;
	return ours && FAILS(syscall) ? -1 : next_(number, x[0], x[1], x[2], x[3], x[4], x[5]);
}
PASS(int, sem_init, sem_init, (sem_t * s, int shared, unsigned value), (s, shared, value), -1)

void *mremap(void *old, size_t n, size_t wanted, int flags, ...)
{
	NEXT(mremap);
	va_list list;
	va_start(list, flags);
	void *to = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
	va_end(list);
	return FAILS(mremap) ? MAP_FAILED : next_(old, n, wanted, flags, to);
}
PASS(int, pthread_mutex_init, mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), (m, a), ENOMEM)
PASS(int, pthread_cond_init, cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), (c, a), ENOMEM)
PASS(int, pthread_create, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *x),
     (t, a, run, x), EAGAIN)

time_t time(time_t *t)
{
	NEXT(time);
	const time_t now = FAILS(time) ? (time_t)-1 : fixed_time ? fixed_time : next_(NULL);
	if (t)
		*t = now;
	return now;
}

/* HDF5's clock. */
int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	NEXT(gettimeofday);
	const int r = next_(t, zone);
	if (fixed_time && r == 0)
		*t = (struct timeval) { .tv_sec = fixed_time };
	return r;
}

/* ---- before main ----------------------------------------------------------------------------- */

static uintptr_t end_of(const struct dl_phdr_info *i)
{
	uintptr_t to = 0;
	for (int k = 0; k < i->dlpi_phnum; k++)
		if (i->dlpi_phdr[k].p_type == PT_LOAD && i->dlpi_addr + i->dlpi_phdr[k].p_vaddr + i->dlpi_phdr[k].p_memsz > to)
			to = i->dlpi_addr + i->dlpi_phdr[k].p_vaddr + i->dlpi_phdr[k].p_memsz;
	return to;
}

static int find_code(struct dl_phdr_info *i, size_t size, void *ctx)
{
	int *n = ctx;
	(void)size;
	if ((*n)++ == 0) { /* the program comes first */
		program_from = i->dlpi_addr;
		program_to = end_of(i);
	}
	if (first_libraries < LIBRARIES)
		first_library[first_libraries++] = i->dlpi_addr;
	if (i->dlpi_name && strstr(i->dlpi_name, "/libseccomp.so")) {
		seccomp_from = i->dlpi_addr;
		seccomp_to = end_of(i);
	}
	if (i->dlpi_name && strstr(i->dlpi_name, "ld-linux")) {
		loader_from = i->dlpi_addr;
		loader_to = end_of(i);
	}
	return 0;
}

static uint64_t number_of(const char *name)
{
	const char *s = getenv(name);
	return s ? strtoull(s, NULL, 10) : 0;
}

/* Is the word in a comma-separated list? */
static bool listed(const char *list, const char *word)
{
	const size_t n = strlen(word);
	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ',') && (p[n] == ',' || !p[n]))
			return true;
	return false;
}

static void select_calls(const char *list)
{
	for (int c = 0; c < N_CALLS; c++)
		selected[c] = listed(list, call[c].name) || ((call[c].family & MEMORY) && listed(list, "memory")) ||
		              ((call[c].family & FILES) && listed(list, "file")) ||
		              ((call[c].family & PROCESS) && listed(list, "process"));
}

static void read_settings(void)
{
	const char *list = getenv("VN_FAULT_CALL"), *path = getenv("VN_FAULT_TALLY");
	const int   fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (getenv("VN_FAULT_LIST")) {
		for (int c = 0; c < N_CALLS; c++)
			puts(call[c].name);
		exit(0);
	}
	if (fd >= 0) {
		void *p = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED)
			tally = p;
		close(fd);
	}
	select_calls(list ? list : "");
	at = number_of("VN_FAULT_AT");
	percent = number_of("VN_FAULT_PERCENT");
	seed = number_of("VN_FAULT_SEED");
	sticky = number_of("VN_FAULT_STICKY");
	children = number_of("VN_FAULT_CHILDREN");
	fixed_time = (time_t)number_of("VN_FAULT_TIME");
	own = number_of("VN_FAULT_OWN");
	trace = getenv("VN_FAULT_TRACE");
	backtrace(&(void *) { NULL }, 1);         /* loads the unwinder now, not when memory fails */
	dl_iterate_phdr(find_code, &(int) { 0 }); /* which is now among the libraries */
}

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **env)
{
	read_settings();
	active = true;
	return real_main(argc, argv, env);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end)
{
	NEXT(__libc_start_main);
	real_main = main;
	return next_(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
