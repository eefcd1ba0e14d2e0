/* runner_check.c: the command that drives another engine. */
#include "compare/isolate/runner.h"

#include "libref/base/alloc.h"
#include "libref/base/say.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The names of the set's toggles, joined by commas, to be freed. */
static char *list_switched(const vn_runner *x, const bool *on)
{
	vn_text_stream s;
	const char    *comma = "";
	FILE          *out = vn_alloc_stream(&s);

	for (int i = 0; i < x->n; i++)
		if (on[i]) {
			vn_say(out, "%s%s", comma, x->name[i]);
			comma = ",";
		}
	return vn_alloc_streamed(&s);
}

__attribute__((noreturn)) static void run_command(const char *command, const char *toggles)
{
	const int nothing = open("/dev/null", O_RDWR);

	if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || setenv("VERNIER_FORCE_REF", toggles, 1))
		_exit(127);
	signal(SIGXFSZ, SIG_DFL); /* vernier ignores it */
	signal(SIGPIPE, SIG_DFL); /* exec keeps ignored signals ignored */
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

vn_status vn_runner_ask(const vn_runner *x, const bool *on, bool *good, vn_error *err)
{
	char *toggles = list_switched(x, on);
	int   status;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		run_command(x->o.check, toggles);
	free(toggles);
	if (pid < 0)
		return vn_fail(err, VN_ERR_IO, "the check cannot be started: %s", strerror(errno));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return vn_fail(err, VN_ERR_IO, "cannot wait for the check: %s", strerror(errno));
	if (WIFSIGNALED(status))
		return vn_fail(err, VN_ERR_IO, "the check '%.200s' was ended by signal %d", x->o.check, WTERMSIG(status));
	*good = WEXITSTATUS(status) == 0;
	if (WEXITSTATUS(status) > 1 || (x->o.recording && !*good))
		return vn_fail(err, VN_ERR_IO, "the check '%.200s' ended with status %d%s", x->o.check, WEXITSTATUS(status),
		               x->o.recording ? "; it must end with 0 when it has written its recording"
		                              : "; expected 0 (good) or 1 (bad)");
	if (x->o.recording && access(x->o.recording, F_OK) != 0)
		return vn_fail(err, VN_ERR_IO, "the check '%.200s' left no recording %s: %s", x->o.check, x->o.recording,
		               strerror(errno));
	return VN_OK;
}
