/* sandbox.c: see sandbox.h. */
#define _GNU_SOURCE
#include "capture/file/sandbox.h"

#include "libref/base/room.h"
#include "libref/base/sanitizer.h"
#include "libref/base/system.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- descriptors and the environment -------------------------------------------------------- */

/* Closes all descriptors except pipe and file. 0, 1 and 2 go to /dev/null, because the C library
 * may write to them when it aborts. */
static void close_others(const vn_sandbox *s)
{
	const int low = s->file < s->pipe ? s->file : s->pipe, high = s->file < s->pipe ? s->pipe : s->file;
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2; fd++)
		if (fd != low && fd != high && null != fd && (null < 0 || dup2(null, fd) < 0))
			close(fd);
	unsigned from = 3;
	if (low >= 3) {
		vn_close_range(from, (unsigned)low - 1);
		from = (unsigned)low + 1;
	}
	if (high >= 3) {
		vn_close_range(from, (unsigned)high - 1);
		from = (unsigned)high + 1;
	}
	vn_close_range(from, ~0u);
}

/* Fields 48 to 51 of /proc/self/stat are the addresses of the arguments and the environment. */
static bool place_of_environment(uintptr_t *from, uintptr_t *to)
{
	enum { FIRST = 3, START = 50 }; /* the field after the name, which may contain blanks and parentheses */
	char   line[2048];
	FILE  *f = fopen("/proc/self/stat", "re");
	size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
	char  *p;

	if (f)
		fclose(f);
	line[n] = '\0';
	p = strrchr(line, ')');
	for (int field = FIRST - 1; p && field < START; field++)
		p = (p = strchr(p, ' ')) ? p + 1 : NULL;
	unsigned long long start, end;
	if (!p || sscanf(p, "%llu %llu", &start, &end) != 2)
		return false;
	*from = (uintptr_t)start;
	*to = (uintptr_t)end;
	return start > 0 && start < end;
}

/* Clears the environment variables and the original text of those set at the start. */
static void clear_environment(void)
{
	uintptr_t from, to;
	bool      ours = false; /* false for an address in an emulator that runs us */

	if (place_of_environment(&from, &to))
		for (char **e = environ; e && *e && !ours; e++)
			ours = (uintptr_t)*e >= from && (uintptr_t)*e < to;
	if (ours)
		explicit_bzero((void *)from, to - from);
	clearenv();
}

/* Is a line of /proc/self/maps about shared memory that this process could write? Not a file that
 * has a name on disk: this program maps none, and a preloaded library may count in one. */
static bool is_shared_memory(const char *line, const char *rights)
{
	const char *name = strchr(line, '/');
	return rights[1] == 'w' && rights[3] == 's' &&
	       (!name || strncmp(name, "/dev/", 5) == 0 || strncmp(name, "/memfd:", 7) == 0 ||
	        strncmp(name, "/SYSV", 5) == 0 || strstr(name, "(deleted)"));
}

/* Unmaps what others would read: the page of a crew of workers, memory of MPI, a driver's buffers.
 * A mapping that is not writable stays so: its descriptor was opened for reading. */
static void unmap_shared(const vn_sandbox *s)
{
	static char     text[1 << 14]; /* no allocation, which could be refused */
	const uintptr_t kept = (uintptr_t)s->shared;
	const int       fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t          have = 0;
	ssize_t         n;

	while (fd >= 0 && have < sizeof text - 1 && (n = read(fd, text + have, sizeof text - 1 - have)) > 0) {
		char *line = text, *end;
		text[have += (size_t)n] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			uintptr_t from, to;
			char      rights[5];
			*end = '\0';
			if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) == 3 &&
			    is_shared_memory(line, rights) && !(kept && from < kept + s->shared_bytes && kept < to))
				munmap((void *)from, to - from);
		}
		have = strlen(line);
		memmove(text, line, have);
	}
	if (fd >= 0)
		close(fd);
}

void vn_sandbox_begin(const vn_sandbox *s)
{
	unmap_shared(s);
	close_others(s);
	clear_environment();
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void set_limits(const vn_sandbox *s)
{
	static const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_NOFILE, &none); /* open descriptors stay open */
	setrlimit(RLIMIT_NPROC, &none);
	if (!s->writes)
		setrlimit(RLIMIT_FSIZE, &none); /* does not apply to pipes and mappings */
}

/* ---- Landlock -------------------------------------------------------------------------------- */

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self  446
#endif

/* From the kernel's documentation (userspace-api/landlock); older headers lack some fields. */
struct ruleset {
	uint64_t files, network, scopes;
};
enum { RULESET_VERSION = 1, NET_ABI = 4, SCOPE_ABI = 6 };

/* Handles every right known to the ABI and grants none. The kernel accepts any size of the
 * structure that it knows. */
static bool enter_landlock(void)
{
	static const int rights[] = { 0, 13, 14, 15, 15, 16 }; /* file rights, from ABI 0 on */
	const long       abi = syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);

	if (abi < 1)
		return false;
	const struct ruleset none = { .files = (UINT64_C(1) << rights[abi > 5 ? 5 : abi]) - 1,
		                          .network = 3 /* bind, connect */,
		                          .scopes = 3 /* abstract unix sockets, signals */ };
	const size_t         size = abi < NET_ABI ? 8 : abi < SCOPE_ABI ? 16 : sizeof none;
	const int            fd = (int)syscall(SYS_landlock_create_ruleset, &none, size, 0);
	const bool           done = fd >= 0 && syscall(SYS_landlock_restrict_self, fd, 0) == 0;
	if (fd >= 0)
		close(fd);
	return done;
}

/* ---- seccomp --------------------------------------------------------------------------------- */

#ifndef VN_SANITIZED

/* Calls that an exploit would try, and that no library makes while reading. They end the process at
 * once, and the parent reports SIGSYS. Any other forbidden call fails with ENOSYS, as on a kernel
 * without it: the C library makes various calls on its own, which differ between versions (memory
 * sizes, random numbers, a file in /proc), and continues without them. */
static const int never[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
	SCMP_SYS(clone),
	SCMP_SYS(clone3),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(socket),
	SCMP_SYS(socketpair),
	SCMP_SYS(connect),
	SCMP_SYS(bind),
	SCMP_SYS(sendto),
	SCMP_SYS(kill),
	SCMP_SYS(tkill),
	SCMP_SYS(rt_sigqueueinfo),
	SCMP_SYS(bpf),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(memfd_create),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(mount),
	SCMP_SYS(keyctl),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(sendmsg), /* the last: allowed to a process that talks */
};

static const int always[] = {
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(clock_gettime),   /* where the vDSO cannot */
	SCMP_SYS(restart_syscall), /* after a stop and SIGCONT */
	SCMP_SYS(getpid),          /* abort(): */
	SCMP_SYS(gettid),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(exit_group),
};

/* The arguments are ints: the kernel ignores the high half. */
#define IS(argument, value)     SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)(value))
#define HAS_NOT(argument, bits) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, bits, 0)

static bool add_rules(scmp_filter_ctx filter, const vn_sandbox *s)
{
	const struct {
		int                 call;
		struct scmp_arg_cmp when;
		bool                left_out;
	} allowed[] = {
		{ SCMP_SYS(pread64), IS(0, s->file), false },
		{ SCMP_SYS(write), IS(0, s->pipe), false },
		{ SCMP_SYS(mmap), HAS_NOT(2, PROT_EXEC), false },
		{ SCMP_SYS(mprotect), HAS_NOT(2, PROT_EXEC), false },
		{ SCMP_SYS(madvise), IS(2, MADV_DONTNEED), false },
		{ SCMP_SYS(setitimer), IS(0, ITIMER_PROF), false }, /* vn_child_patience */
		{ SCMP_SYS(tgkill), IS(0, getpid()), false },       /* abort() */
		{ SCMP_SYS(pwrite64), IS(0, s->file), !s->writes },
		{ SCMP_SYS(ftruncate), IS(0, s->file), !s->writes },
		{ SCMP_SYS(lseek), IS(0, s->file), !s->writes },
		{ SCMP_SYS(sendmsg), IS(0, s->pipe), !s->talks },
		{ SCMP_SYS(recvfrom), IS(0, s->pipe), !s->talks },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		good &= allowed[i].left_out ||
		        seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, allowed[i].call, 1, &allowed[i].when) == 0;
	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		good &= seccomp_rule_add(filter, SCMP_ACT_ALLOW, always[i], 0) == 0;
	for (size_t i = 0; i < sizeof never / sizeof *never - s->talks; i++)
		good &= seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, never[i], 0) == 0;
	return good;
}

/* libseccomp (2.5.4) crashes or does not end if it gets no memory. This process has its address
 * space for itself, so what is available now remains so. Where it is not, no answer of this process
 * counts any more. */
enum { ROOM = 4 << 20 };

static bool enter_seccomp(const vn_sandbox *s)
{
	if (!vn_room_for(ROOM)) {
		vn_trouble_note("no memory for the sandbox");
		return true;
	}
	/* Only by the system call, which seccomp_init has looked for: valgrind would pass prctl through
	 * and then be caught by the filter itself. */
	enum { SYSTEM_CALL = 3 };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	const bool      done = filter && seccomp_api_set(SYSTEM_CALL) == 0 &&
	                  seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0 &&
	                  add_rules(filter, s) && seccomp_load(filter) == 0;

	seccomp_release(filter);
	return done;
}

#else

static bool enter_seccomp(const vn_sandbox *s)
{
	(void)s;
	return false;
}

#endif

int vn_sandbox_close(const vn_sandbox *s)
{
	int missing = s->without & (VN_SANDBOX_LANDLOCK | VN_SANDBOX_SECCOMP);

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!(missing & VN_SANDBOX_LANDLOCK) && !enter_landlock())
		missing |= VN_SANDBOX_LANDLOCK;
	set_limits(s); /* Landlock needs a descriptor for its ruleset */
	if (!(missing & VN_SANDBOX_SECCOMP) && !enter_seccomp(s))
		missing |= VN_SANDBOX_SECCOMP;
	return missing;
}
