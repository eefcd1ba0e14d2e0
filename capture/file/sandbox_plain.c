/* sandbox_plain.c: see sandbox.h. What of it plain POSIX can do: no descriptors and no environment,
 * no new descriptor, no file longer than it is, no new process. Paths that are opened by other
 * means, the network and other processes are not kept away; both layers are reported as missing. */
#include "capture/file/sandbox.h"

#include "libref/base/system.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

void vn_sandbox_begin(const vn_sandbox *s)
{
	static char *none[] = { NULL };
	const int    low = s->file < s->pipe ? s->file : s->pipe, high = s->file < s->pipe ? s->pipe : s->file;
	const int    null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned     from = 3;

	/* The C library may write to 0, 1 and 2 when it aborts. */
	for (int fd = 0; fd <= 2; fd++)
		if (fd != low && fd != high && null != fd && (null < 0 || dup2(null, fd) < 0))
			close(fd);
	for (int i = 0; i < 2; i++) {
		const int kept = i == 0 ? low : high;
		if (kept < 3)
			continue;
		if ((unsigned)kept > from)
			vn_close_range(from, (unsigned)kept - 1);
		from = (unsigned)kept + 1;
	}
	vn_close_range(from, ~0u);
	environ = none;
}

int vn_sandbox_close(const vn_sandbox *s)
{
	static const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_NOFILE, &none); /* open descriptors stay open */
	setrlimit(RLIMIT_NPROC, &none);
	if (!s->writes)
		setrlimit(RLIMIT_FSIZE, &none); /* does not apply to pipes and mappings */
	return VN_SANDBOX_LANDLOCK | VN_SANDBOX_SECCOMP;
}
