/* pager.c: see pager.h. */
#include "libref/base/pager.h"

#include "libref/base/system.h"

#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *find_pager(void)
{
	const char *own = getenv("VERNIER_PAGER"), *usual = getenv("PAGER");
	return own ? own : usual ? usual : "less";
}

/* Is the first word a program? The shell would notice only after the output is lost. */
static bool is_there(const char *command)
{
	const size_t n = strcspn(command, " \t");
	const char  *folder = getenv("PATH");
	char         path[PATH_MAX];

	if (memchr(command, '/', n) || strpbrk(command, "|&;<>()$`\\\"'*?[#~=%"))
		return true; /* for the shell */
	for (size_t m; folder; folder = folder[m] ? folder + m + 1 : NULL) {
		m = strcspn(folder, ":");
		if (snprintf(path, sizeof path, "%.*s/%.*s", (int)m, folder, (int)n, command) < (int)sizeof path &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

int vn_pager_start(pid_t *pid)
{
	const char                *pager = find_pager(), *terminal = getenv("TERM");
	posix_spawn_file_actions_t how;
	int                        ends[2];

	if (!isatty(STDOUT_FILENO) || !terminal || strcmp(terminal, "dumb") == 0 || !*pager || strcmp(pager, "cat") == 0 ||
	    !is_there(pager) || vn_pipe(ends) != 0)
		return -1;
	char       command[PATH_MAX];
	char      *words[] = { (char[]) { "sh" }, (char[]) { "-c" }, command, NULL };
	const bool fits = snprintf(command, sizeof command, "%s", pager) < (int)sizeof command;
	setenv("LESS", "FRX", 0); /* as git: no pause if all fits, colours, and the text stays on the screen */
	bool started = fits && posix_spawn_file_actions_init(&how) == 0;
	if (started) {
		started = posix_spawn_file_actions_adddup2(&how, ends[0], STDIN_FILENO) == 0 &&
		          posix_spawn(pid, "/bin/sh", &how, NULL, words, environ) == 0;
		posix_spawn_file_actions_destroy(&how);
	}
	close(ends[0]);
	if (!started) {
		close(ends[1]);
		return -1;
	}
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	return ends[1];
}

void vn_pager_end(int pipe, pid_t pid)
{
	pid_t r;

	close(pipe);
	VN_UNINTERRUPTED(r, waitpid(pid, NULL, 0));
	(void)r;
}
