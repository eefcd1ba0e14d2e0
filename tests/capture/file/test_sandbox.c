/* test_sandbox.c: what code in a child (child.h) cannot do, by code that tries.
 *
 * Each action is a function that returns 0 if it succeeded, else errno. It is tried in a plain
 * fork, where it must succeed, or the test would prove nothing (an action that this machine forbids
 * is reported and left out); in a child; and in children without seccomp, without Landlock, and
 * without both, where the remaining layers must refuse it. */
#include "capture/file/child.h"
#include "capture/file/sandbox.h"
#include "capture/recording/recording.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char         content[] = "what the file holds";
static char               folder[] = "/tmp/vn-sandbox-XXXXXX";
static int                file, other, tcp, named, abstract; /* descriptors of this process: files, listening sockets */
static char               path[64], victim[64], socket_path[64];
static struct sockaddr_in tcp_at = { .sin_family = AF_INET };
static struct sockaddr_un named_at = { .sun_family = AF_UNIX }, abstract_at = { .sun_family = AF_UNIX };
static socklen_t          abstract_size;
static pid_t              parent;
static const char        *first_variable; /* its text in the memory that the program was started with */
static void              *page;           /* that this process shares with its children, as a crew of workers does */
static int                missing;        /* layers that this machine or build does not have */

/* ---- actions -------------------------------------------------------------------------------- */

static int error_of(long result)
{
	return result >= 0 ? 0 : errno ? errno : EIO;
}

static int opening(const char *what, int flags)
{
	return error_of(open(what, flags, 0600));
}

static int open_relative(void)
{
	return opening("relative", O_RDWR | O_CREAT);
}
static int open_absolute(void)
{
	return opening("/etc/passwd", O_RDONLY);
}
static int open_directory(void)
{
	return opening("/", O_RDONLY | O_DIRECTORY);
}
static int open_own_memory(void)
{
	return opening("/proc/self/mem", O_RDWR);
}
static int open_descriptor(void)
{
	char at[64];
	snprintf(at, sizeof at, "/proc/self/fd/%d", file);
	return opening(at, O_RDWR);
}
static int open_without_name(void)
{
	return opening(folder, O_TMPFILE | O_RDWR);
}
static int open_as_new(void)
{
	struct open_how how = { .flags = O_RDONLY };
	return error_of(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how));
}
static int look_at_path(void)
{
	struct stat s;
	return error_of(stat("/etc/passwd", &s));
}
static int rename_file(void)
{
	return error_of(rename(victim, "elsewhere"));
}
static int unlink_file(void)
{
	return error_of(unlink(victim));
}
static int make_folder(void)
{
	return error_of(mkdir("new", 0700));
}
static int make_link(void)
{
	return error_of(symlink("/etc/passwd", "passwd"));
}
static int cut_file(void)
{
	return error_of(truncate(victim, 0));
}
static int change_mode(void)
{
	return error_of(chmod(victim, 0777));
}
static int change_folder(void)
{
	return error_of(chdir("/"));
}

/* By a call that fails where a write would end the process. */
static int write_shared_page(void)
{
	struct iovec to = { page, 1 };
	return error_of(syscall(SYS_pread64, file, to.iov_base, to.iov_len, (off_t)0));
}

static int make_socket(void)
{
	return error_of(socket(AF_INET, SOCK_STREAM, 0));
}
static int make_socket_pair(void)
{
	int two[2];
	return error_of(socketpair(AF_UNIX, SOCK_STREAM, 0, two));
}
static int connecting(const void *to, socklen_t size, int family)
{
	const int s = socket(family, SOCK_STREAM, 0);
	return s < 0 ? errno : error_of(connect(s, to, size));
}
static int connect_tcp(void)
{
	return connecting(&tcp_at, sizeof tcp_at, AF_INET);
}
static int connect_unix(void)
{
	return connecting(&named_at, sizeof named_at, AF_UNIX);
}
static int connect_abstract(void)
{
	return connecting(&abstract_at, abstract_size, AF_UNIX);
}
static int bind_tcp(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	const int                s = socket(AF_INET, SOCK_STREAM, 0);
	return s < 0 ? errno : error_of(bind(s, (const void *)&any, sizeof any));
}
static int accept_inherited(void)
{
	return error_of(listen(tcp, 2));
}

static int execute(void)
{
	char *const argv[] = { "true", NULL };
	return error_of(execve("/bin/true", argv, argv + 1));
}
static int execute_descriptor(void)
{
	char *const argv[] = { "true", NULL };
	return error_of(syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, argv + 1, 0));
}
static int reap(long pid)
{
	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid((pid_t)pid, NULL, 0) < 0 ? errno : error_of(pid);
}
static int fork_process(void)
{
	return reap(fork());
}
static int fork_lightly(void)
{
	const pid_t pid = vfork();
	if (pid == 0)
		_exit(0);
	return reap(pid);
}
static int clone_process(void)
{
	uint64_t args[8] = { [4] = SIGCHLD };
	return reap(syscall(SYS_clone3, args, sizeof args));
}
static void *nothing(void *x)
{
	return x;
}
static int start_thread(void)
{
	pthread_t t;
	const int why = pthread_create(&t, NULL, nothing, NULL);
	return why ? why : pthread_join(t, NULL);
}

static int trace_parent(void)
{
	const int why = error_of(ptrace(PTRACE_ATTACH, parent, NULL, NULL));
	if (!why && waitpid(parent, NULL, __WALL) == parent)
		ptrace(PTRACE_DETACH, parent, NULL, NULL);
	return why;
}
static int signal_parent(void)
{
	return error_of(kill(parent, 0));
}
static int stop_parent(void)
{
	return error_of(kill(parent, SIGCONT));
}
static int read_memory(pid_t of)
{
	char         to[sizeof content];
	struct iovec mine = { to, sizeof to }, theirs = { (void *)(uintptr_t)content, sizeof content };
	return error_of(process_vm_readv(of, &mine, 1, &theirs, 1, 0));
}
static int read_parent(void)
{
	return read_memory(parent);
}
static int read_own(void)
{
	return read_memory(getpid());
}

static int write_other(void)
{
	return error_of(write(other, "x", 1));
}
static int read_other(void)
{
	char c;
	return error_of(pread(other, &c, 1, 0));
}
static int write_file(void)
{
	return error_of(pwrite(file, "x", 1, 0));
}
static int cut_own_file(void)
{
	return error_of(ftruncate(file, 0));
}
static int write_output(void)
{
	struct stat s;
	return fstat(1, &s) == 0 && S_ISCHR(s.st_mode) && s.st_rdev == 0x103 ? EBADF : error_of(write(1, "", 0));
}
static int find_descriptor(void)
{
	for (int fd = 3; fd < 1024; fd++)
		if (fd != file && fcntl(fd, F_GETFD) >= 0 && fcntl(fd, F_GETFL) != O_WRONLY)
			return 0; /* not the pipe */
	return EBADF;
}
static int new_descriptor(void)
{
	return error_of(dup(file));
}
static int control_device(void)
{
	int n;
	return error_of(ioctl(file, FIONREAD, &n));
}

static int map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
}
static int make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? errno : error_of(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}
static int memory_file(void)
{
	return error_of(memfd_create("x", 0));
}
static int use_ring(void)
{
	char params[120] = { 0 };
	return error_of(syscall(SYS_io_uring_setup, 1, params));
}
static int use_bpf(void)
{
	union {
		uint32_t field[4];
		char     room[128];
	} map = { .field = { 2 /* array */, 4, 4, 1 } };
	return error_of(syscall(SYS_bpf, 0 /* BPF_MAP_CREATE */, &map, sizeof map));
}
static int use_faults(void)
{
	return error_of(syscall(SYS_userfaultfd, O_CLOEXEC));
}
static int use_prctl(void)
{
	return error_of(prctl(PR_SET_NAME, "x", 0, 0, 0));
}
static int be_dumpable(void)
{
	return error_of(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}
static int raise_limit(void)
{
	struct rlimit r = { 0, 0 };
	const int     bad = getrlimit(RLIMIT_CORE, &r);
	return bad ? errno : r.rlim_max == 0 ? error_of(setrlimit(RLIMIT_CORE, &(struct rlimit) { 1, 1 })) : 0;
}
static int other_space(void)
{
	return error_of(unshare(CLONE_FS));
}

static int find_variable(void)
{
	return getenv("PATH") ? 0 : ENOENT;
}
static int find_text(void)
{
	return *first_variable ? 0 : ENOENT;
}

#ifdef __x86_64__
static int call_as_i386(void)
{
	long pid;
	__asm__ volatile("int $0x80" : "=a"(pid) : "0"(20) : "memory", "r8", "r9", "r10", "r11");
	return pid == getpid() ? 0 : ENOSYS;
}
#endif

/* ---- what is done with them ------------------------------------------------------------------ */

enum { L = VN_SANDBOX_LANDLOCK, S = VN_SANDBOX_SECCOMP, ALWAYS = 4, SCOPES = 8 /* Landlock from ABI 6 on */ };

/* The layers that refuse the action. seccomp ends the process. */
/* clang-format off */
static const struct action {
	const char *name;
	int       (*run)(void);
	int         by;
	bool        ends;
} action[] = {
#define ACTION(run, by) { #run, run, by, false }
#define DEADLY(run, by) { #run, run, by, true }
	ACTION(open_relative, ALWAYS | L | S),
	ACTION(open_absolute, ALWAYS | L | S),
	ACTION(open_directory, ALWAYS | L | S),
	ACTION(open_own_memory, ALWAYS | L | S),
	ACTION(open_descriptor, ALWAYS | L | S),
	ACTION(open_without_name, ALWAYS | L | S),
	ACTION(open_as_new, ALWAYS | L | S),
	ACTION(look_at_path, S),
	ACTION(rename_file, L | S),
	ACTION(unlink_file, L | S),
	ACTION(make_folder, L | S),
	ACTION(make_link, L | S),
	ACTION(cut_file, L | S),
	ACTION(change_mode, S),
	ACTION(change_folder, S),
	DEADLY(make_socket, ALWAYS | S),
	DEADLY(make_socket_pair, ALWAYS | S),
	DEADLY(connect_tcp, ALWAYS | S),
	DEADLY(connect_unix, ALWAYS | S),
	DEADLY(connect_abstract, ALWAYS | S),
	DEADLY(bind_tcp, ALWAYS | S),
	ACTION(accept_inherited, ALWAYS | S),
	DEADLY(execute, L | S),
	DEADLY(execute_descriptor, L | S),
	DEADLY(fork_process, S),
	DEADLY(fork_lightly, S),
	DEADLY(clone_process, S),
	DEADLY(start_thread, S),
	DEADLY(trace_parent, L | S),
	DEADLY(signal_parent, SCOPES | S),
	DEADLY(stop_parent, SCOPES | S),
	DEADLY(read_parent, L | S),
	DEADLY(read_own, S),
	ACTION(write_other, ALWAYS | S),
	ACTION(read_other, ALWAYS | S),
	ACTION(write_shared_page, ALWAYS),
	ACTION(write_file, ALWAYS | S),
	ACTION(cut_own_file, S),
	ACTION(write_output, ALWAYS),
	ACTION(find_descriptor, ALWAYS | S),
	ACTION(new_descriptor, ALWAYS | S),
	ACTION(control_device, S),
	ACTION(map_code, S),
	ACTION(make_code, S),
	DEADLY(memory_file, ALWAYS | S),
	DEADLY(use_ring, ALWAYS | S),
	DEADLY(use_bpf, ALWAYS | S),
	DEADLY(use_faults, ALWAYS | S),
	ACTION(use_prctl, S),
	ACTION(be_dumpable, S),
	ACTION(raise_limit, S),
	DEADLY(other_space, S),
	ACTION(find_variable, ALWAYS),
	ACTION(find_text, ALWAYS),
#ifdef __x86_64__
	{ "call_as_i386", call_as_i386, S, true },
#endif
};
/* clang-format on */
enum { N_ACTIONS = sizeof action / sizeof *action };

/* Prepares the objects that the actions use. */
static void set_out(void)
{
	int fd;
	CU_ASSERT_FATAL(chdir(folder) == 0);
	unlink("relative");
	unlink("elsewhere");
	unlink("passwd");
	rmdir("new");
	CU_ASSERT_FATAL((fd = open(victim, O_WRONLY | O_CREAT | O_TRUNC, 0600)) >= 0 && write(fd, "v", 1) == 1 &&
	                close(fd) == 0);
	CU_ASSERT_FATAL(pwrite(file, content, sizeof content, 0) == sizeof content);
	CU_ASSERT_FATAL(pwrite(other, content, sizeof content, 0) == sizeof content);
}

/* Runs the action in a plain fork. Returns errno, 0, or -1 if the process was ended for it. */
static int in_a_fork(const struct action *a)
{
	int         status;
	const pid_t pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		signal(SIGCONT, SIG_IGN);
		_exit(a->run());
	}
	CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The exploit, run instead of a reader. Then the reader continues as if nothing had happened. */
static void exploit(void *ctx, int pipe)
{
	const struct action *a = ctx;
	const int            why = a ? a->run() : 0;
	char                *room = malloc(1 << 20), back[sizeof content] = "";

	vn_child_send(pipe, 1, &why, sizeof why);
	if (room && pread(file, back, sizeof back, 0) == sizeof back && memcmp(back + 1, content + 1, sizeof back - 1) == 0)
		vn_child_send(pipe, 2, "", 0);
	free(room);
}

enum { COULD, REFUSED, ENDED, BROKEN };

static int in_a_child(const struct action *a, int without, bool *consumed_as_recorded)
{
	vn_child       child;
	vn_error       err = { "" };
	vn_child_frame f = { 0 };
	int            why = -1, found = BROKEN;

	const vn_child_task task = {
		.path = path, .file = file, .work = exploit, .ctx = (void *)(uintptr_t)a, .without = without
	};
	CU_ASSERT_EQUAL_FATAL(vn_child_start(&child, &task, &err), VN_OK);
	*consumed_as_recorded = false;
	if (vn_child_receive(&child, &f, &err) == VN_OK && f.kind == 1 && f.bytes == sizeof why) {
		memcpy(&why, f.data, sizeof why);
		found = why ? REFUSED : COULD;
		free(f.data);
		*consumed_as_recorded = vn_child_receive(&child, &f, &err) == VN_OK && f.kind == 2;
	} else if (strstr(err.text, "it may be an attack") && !strchr(err.text, '\n')) {
		found = ENDED;
	} else if (strstr(err.text, "signal 25")) { /* SIGXFSZ */
		found = REFUSED;
		*consumed_as_recorded = true;
	}
	free(f.data);
	vn_child_end(&child);
	return found;
}

static bool possible[N_ACTIONS];

static void a_process_without_the_sandbox_can_do_it(void)
{
	for (int i = 0; i < N_ACTIONS; i++) {
		set_out();
		const int why = in_a_fork(&action[i]);
		possible[i] = why == 0;
		if (why)
			printf("\n    %s: not possible on this machine anyway (%s)", action[i].name,
			       why < 0 ? "signal" : strerror(why));
	}
	/* These actions need no right that a machine may withhold. */
	for (int i = 0; i < N_ACTIONS; i++)
		if (action[i].run == open_absolute || action[i].run == make_folder || action[i].run == fork_process ||
		    action[i].run == execute || action[i].run == write_other || action[i].run == map_code ||
		    action[i].run == find_variable || action[i].run == signal_parent)
			CU_ASSERT_TRUE(possible[i]);
}

static void expect(const struct action *a, int without)
{
	char      what[160];
	bool      consumed_as_recorded;
	const int there = ~(without | missing) & (ALWAYS | SCOPES | L | S), by = a->by & there & ~(there & L ? 0 : SCOPES);

	if (!by)
		return;
	set_out();
	const int found = in_a_child(a, without, &consumed_as_recorded);
	snprintf(what, sizeof what, "%s is refused%s%s%s", a->name, without & L ? " without Landlock" : "",
	         without & S ? " without seccomp" : "", found == BROKEN ? ", and the child goes on" : "");
	const bool good = a->ends && there & S ? found == ENDED : found == REFUSED && consumed_as_recorded;
	CU_assertImplementation(good, __LINE__, what, __FILE__, __func__, CU_FALSE);
}

static void all_without(int layers)
{
	for (int i = 0; i < N_ACTIONS; i++)
		if (possible[i])
			expect(&action[i], layers);
}

static void a_child_can_do_none_of_it(void)
{
	all_without(0);
}
static void seccomp_holds_without_landlock(void)
{
	all_without(L);
}
static void landlock_holds_without_seccomp(void)
{
	all_without(S);
}
static void the_rest_holds_without_either(void)
{
	all_without(L | S);
}

/* The table lists the layers that refuse each action. Without these layers the action must succeed,
 * or the table would be incomplete. */
static void what_nobody_refuses_goes_through(void)
{
	bool consumed_as_recorded;
	for (int i = 0; i < N_ACTIONS; i++)
		if (possible[i] && !(action[i].by & ALWAYS) &&
		    (action[i].run == make_folder || action[i].run == change_mode || action[i].run == map_code)) {
			set_out();
			CU_ASSERT_EQUAL(in_a_child(&action[i], L | S, &consumed_as_recorded), COULD);
			CU_ASSERT_TRUE(consumed_as_recorded);
		}
}

static void legitimate_work_goes_on(void)
{
	bool consumed_as_recorded;
	set_out();
	CU_ASSERT_EQUAL(in_a_child(NULL, 0, &consumed_as_recorded), COULD);
	CU_ASSERT_TRUE(consumed_as_recorded);
}

/* ---- who writes a checkpoint file (scribe.h) ------------------------------------------------- */

static int in_a_scribe(const struct action *a)
{
	int  ends[2], why = -1, status;
	bool told;

	CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	const pid_t pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		const vn_sandbox box = { .pipe = ends[1], .file = file, .writes = true, .talks = true };
		vn_sandbox_begin(&box);
		vn_sandbox_close(&box);
		why = a->run();
		struct iovec  part = { &why, sizeof why };
		struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
		_exit(sendmsg(ends[1], &m, MSG_NOSIGNAL) != sizeof why);
	}
	close(ends[1]);
	told = recv(ends[0], &why, sizeof why, MSG_WAITALL) == sizeof why;
	close(ends[0]);
	CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
	return told ? why ? REFUSED : COULD : WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? ENDED : BROKEN;
}

static void who_writes_a_file_can_do_no_more_than_that(void)
{
	for (int i = 0; i < N_ACTIONS; i++) {
		const struct action *a = &action[i];
		char                 what[160];

		if (!possible[i] || (missing & S))
			continue;
		set_out();
		const int found = in_a_scribe(a);
		snprintf(what, sizeof what, "%s: %d", a->name, found);
		const int right = a->run == write_file || a->run == cut_own_file ? COULD : a->ends ? ENDED : REFUSED;
		CU_assertImplementation(found == right, __LINE__, what, __FILE__, __func__, CU_FALSE);
	}
}

/* ---- what the parent has read ---------------------------------------------------------------- */

static void look_at_number(void *ctx, int pipe)
{
	const int number = *(const volatile unsigned char *)ctx;
	vn_child_send(pipe, 1, &number, sizeof number);
}

static void numbers_of_another_recording_are_out_of_sight(void)
{
	vn_recording  *r;
	vn_child       child;
	vn_error       err = { "" };
	const void    *numbers = NULL;
	vn_child_frame f = { 0 };

	CU_ASSERT_EQUAL_FATAL(vn_recording_open(VERNIER_SOURCE "/fixtures/golden/qwen2-trained.p001.f32.h5", &r, &err),
	                      VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_recording_data(r, 0, &numbers, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(
		vn_child_start(
			&child,
			&(vn_child_task) { .path = path, .file = file, .work = look_at_number, .ctx = (void *)(uintptr_t)numbers },
			&err),
		VN_OK);
	CU_ASSERT_NOT_EQUAL(vn_child_receive(&child, &f, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "signal 11"));
	free(f.data);
	vn_child_end(&child);
	vn_recording_close(r);
}

/* ---- a socket that is left ------------------------------------------------------------------- */

static void connect_what_is_left(void *ctx, int pipe)
{
	const int family = *(const int *)ctx;
	const int why = error_of(family == AF_INET ? connect(file, (const void *)&tcp_at, sizeof tcp_at)
	                                           : connect(file, (const void *)&abstract_at, abstract_size));
	vn_child_send(pipe, 1, &why, sizeof why);
}

static int connecting_in_a_child(int family, int without)
{
	vn_child       child;
	vn_error       err = { "" };
	vn_child_frame f = { 0 };
	int            why = -1;
	const int      kept = file;

	CU_ASSERT_FATAL((file = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
	const vn_child_task task = {
		.path = path, .file = file, .work = connect_what_is_left, .ctx = &family, .without = without
	};
	CU_ASSERT_EQUAL_FATAL(vn_child_start(&child, &task, &err), VN_OK);
	if (vn_child_receive(&child, &f, &err) == VN_OK && f.bytes == sizeof why)
		memcpy(&why, f.data, sizeof why);
	free(f.data);
	vn_child_end(&child);
	close(file);
	file = kept;
	return why;
}

static void landlock_keeps_the_network_from_a_socket_that_is_left(void)
{
	static const struct {
		int family, from_abi;
	} way[] = { { AF_INET, 4 }, { AF_UNIX, 6 } };
	for (int i = 0; i < 2; i++)
		if (!(missing & L) && syscall(444, NULL, 0, 1) >= way[i].from_abi && (tcp >= 0 || way[i].family == AF_UNIX)) {
			CU_ASSERT_EQUAL(connecting_in_a_child(way[i].family, L | S), 0);
			CU_ASSERT_NOT_EQUAL(connecting_in_a_child(way[i].family, S), 0);
		}
}

/* ---- what it takes --------------------------------------------------------------------------- */

static int listening(int family, const void *at, socklen_t size)
{
	const int s = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return s >= 0 && bind(s, at, size) == 0 && listen(s, 64) == 0 ? s : -1;
}

static bool prepare(void)
{
	socklen_t size = sizeof tcp_at;
	char      words[64];
	vn_error  err;

	parent = getpid();
	first_variable = environ[0];
	signal(SIGCONT, SIG_IGN);
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return false;
	snprintf(path, sizeof path, "%s/file", folder);
	snprintf(victim, sizeof victim, "%s/victim", folder);
	snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	other = open("other", O_RDWR | O_CREAT, 0600);
	tcp_at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	tcp = listening(AF_INET, &tcp_at, sizeof tcp_at);
	strcpy(named_at.sun_path, socket_path);
	named = listening(AF_UNIX, &named_at, sizeof named_at);
	snprintf(abstract_at.sun_path + 1, sizeof abstract_at.sun_path - 1, "%s", folder);
	abstract_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(folder));
	abstract = listening(AF_UNIX, &abstract_at, abstract_size);
	if (tcp >= 0)
		getsockname(tcp, (void *)&tcp_at, &size);
	if (vn_child_sandbox_gaps(words, sizeof words, &err))
		return false;
	missing = (strstr(words, "Landlock") ? L : 0) | (strstr(words, "seccomp") ? S : 0) |
	          (syscall(444, NULL, 0, 1) < 6 ? SCOPES : 0);
	if (missing)
		printf("this machine or build has no %s\n", words);
	return file >= 0 && other >= 0 && named >= 0 && abstract >= 0;
}

static void tidy(void)
{
	static const char *const name[] = { "file", "victim", "socket", "other", "relative", "elsewhere", "passwd" };
	if (chdir(folder) != 0)
		return;
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		unlink(name[i]);
	rmdir("new");
	rmdir(folder);
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(a_process_without_the_sandbox_can_do_it),
		                           TEST(a_child_can_do_none_of_it),
		                           TEST(seccomp_holds_without_landlock),
		                           TEST(landlock_holds_without_seccomp),
		                           TEST(the_rest_holds_without_either),
		                           TEST(what_nobody_refuses_goes_through),
		                           TEST(legitimate_work_goes_on),
		                           TEST(who_writes_a_file_can_do_no_more_than_that),
		                           TEST(numbers_of_another_recording_are_out_of_sight),
		                           TEST(landlock_keeps_the_network_from_a_socket_that_is_left),
		                           CU_TEST_INFO_NULL };
	if (!prepare()) {
		perror("test_sandbox: cannot be prepared");
		return 2;
	}
	const int status = run_suite("sandbox", tests);
	tidy();
	return status;
}
