/* sandbox.c: see sandbox.h. */
#include "capture/file/sandbox.h"

#include "libref/base/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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

static void close_from_to(unsigned from, unsigned to)
{
	struct rlimit most;

	if (from > to)
		return;
#ifdef SYS_close_range
	if (syscall(SYS_close_range, from, to, 0) == 0)
		return;
#endif
	if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < to)
		to = (unsigned)most.rlim_cur;
	for (unsigned fd = from; fd <= to && fd < 1u << 20; fd++)
		close((int)fd);
}

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
		close_from_to(from, (unsigned)low - 1);
		from = (unsigned)low + 1;
	}
	if (high >= 3) {
		close_from_to(from, (unsigned)high - 1);
		from = (unsigned)high + 1;
	}
	close_from_to(from, ~0u);
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

	while (fd >= 0 && (n = read(fd, text + have, sizeof text - 1 - have)) > 0) {
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

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if defined(ARCHITECTURE) && !defined(VN_SANITIZED)

#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000u /* before Linux 4.14 treated as: kill the thread */
#endif

/* An allowed call: always, or if `argument` equals `value`, or if it has none of the
 * bits of `value`. */
typedef struct call_rule {
	unsigned call;
	enum { ALWAYS, IS, HAS_NOT } when;
	int      argument;
	unsigned value;
} call_rule;

/* Calls that an exploit would try, and that no library makes while reading. They end the process at
 * once, and the parent reports SIGSYS. Any other forbidden call fails with ENOSYS, as on a kernel
 * without it: the C library makes various calls on its own, which differ between versions (memory
 * sizes, random numbers, a file in /proc), and continues without them. */
static const unsigned never[] = {
	SYS_execve,
	SYS_execveat,
	SYS_clone,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_socket,
	SYS_socketpair,
	SYS_connect,
	SYS_bind,
	SYS_sendto,
	SYS_sendmsg,
	SYS_kill,
	SYS_tkill,
	SYS_rt_sigqueueinfo,
	SYS_bpf,
	SYS_userfaultfd,
	SYS_perf_event_open,
	SYS_memfd_create,
	SYS_unshare,
	SYS_setns,
	SYS_mount,
	SYS_keyctl,
	SYS_init_module,
	SYS_finit_module,
	SYS_kexec_load,
#ifdef SYS_fork
	SYS_fork,
	SYS_vfork,
#endif
#ifdef SYS_clone3
	SYS_clone3,
#endif
#ifdef SYS_io_uring_setup
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
#endif
};

enum { X32 = 0x40000000, MOST = 256 };

typedef struct program {
	struct sock_filter code[MOST];
	unsigned short     n;
} program;

static void add_instruction(program *p, unsigned op, uint32_t k, unsigned yes, unsigned no)
{
	if (p->n < MOST)
		p->code[p->n++] = (struct sock_filter) { (uint16_t)op, (uint8_t)yes, (uint8_t)no, k };
}

static void add_load(program *p, size_t offset)
{
	add_instruction(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_return(program *p, uint32_t what)
{
	add_instruction(p, BPF_RET | BPF_K, what, 0, 0);
}

/* The accumulator holds the call number, also after a rule that does not match. Both machines are
 * little-endian, so the low half of an argument comes first. These arguments are ints, so the
 * kernel ignores the high half. */
static void add_rule(program *p, const call_rule *r)
{
	const unsigned length = r->when == ALWAYS ? 1 : 4;

	add_instruction(p, BPF_JMP | BPF_JEQ | BPF_K, r->call, 0, length);
	if (r->when != ALWAYS) {
		add_load(p, offsetof(struct seccomp_data, args) + 8 * (size_t)r->argument);
		add_instruction(p, BPF_JMP | (r->when == IS ? BPF_JEQ : BPF_JSET) | BPF_K, r->value, r->when == IS ? 1 : 0,
		                r->when == IS ? 0 : 1);
		add_return(p, SECCOMP_RET_ERRNO | EPERM);
	}
	add_return(p, SECCOMP_RET_ALLOW);
}

static void add_rules(program *p, const call_rule *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_rule(p, &r[i]);
}

static bool enter_seccomp(const vn_sandbox *s)
{
	const unsigned  pipe = (unsigned)s->pipe, file = (unsigned)s->file, self = (unsigned)getpid();
	const call_rule allowed[] = {
		{ SYS_pread64, IS, 0, file },
		{ SYS_write, IS, 0, pipe },
		{ SYS_mmap, HAS_NOT, 2, PROT_EXEC },
		{ SYS_mprotect, HAS_NOT, 2, PROT_EXEC },
		{ SYS_brk, ALWAYS, 0, 0 },
		{ SYS_munmap, ALWAYS, 0, 0 },
		{ SYS_mremap, ALWAYS, 0, 0 },
		{ SYS_madvise, IS, 2, MADV_DONTNEED },
		{ SYS_clock_gettime, ALWAYS, 0, 0 },   /* where the vDSO cannot */
		{ SYS_setitimer, IS, 0, ITIMER_PROF }, /* vn_child_patience */
		{ SYS_restart_syscall, ALWAYS, 0, 0 }, /* after a stop and SIGCONT */
		{ SYS_getpid, ALWAYS, 0, 0 },          /* abort(): */
		{ SYS_gettid, ALWAYS, 0, 0 },
		{ SYS_rt_sigprocmask, ALWAYS, 0, 0 },
		{ SYS_tgkill, IS, 0, self },
		{ SYS_exit_group, ALWAYS, 0, 0 },
	};
	const call_rule writing[] = { { SYS_pwrite64, IS, 0, file },
		                          { SYS_ftruncate, IS, 0, file },
		                          { SYS_lseek, IS, 0, file } };
	const call_rule talking[] = { { SYS_sendmsg, IS, 0, pipe }, { SYS_recvfrom, IS, 0, pipe } };
	program         p = { .n = 0 };

	add_load(&p, offsetof(struct seccomp_data, arch));
	add_instruction(&p, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	add_return(&p, SECCOMP_RET_KILL_PROCESS);
	add_load(&p, offsetof(struct seccomp_data, nr));
	add_instruction(&p, BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
	add_return(&p, SECCOMP_RET_KILL_PROCESS);
	add_rules(&p, allowed, sizeof allowed / sizeof *allowed);
	if (s->writes)
		add_rules(&p, writing, sizeof writing / sizeof *writing);
	if (s->talks)
		add_rules(&p, talking, sizeof talking / sizeof *talking);
	for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
		add_instruction(&p, BPF_JMP | BPF_JEQ | BPF_K, never[i], 0, 1);
		add_return(&p, SECCOMP_RET_KILL_PROCESS);
	}
	add_return(&p, SECCOMP_RET_ERRNO | ENOSYS);
	if (p.n == MOST)
		abort(); /* the tables exceed the program's size */
	/* Uses the system call: valgrind would pass prctl through and then be caught by
	 * the filter itself. */
	const struct sock_fprog filter = { p.n, p.code };
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
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
