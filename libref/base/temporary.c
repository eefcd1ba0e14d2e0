/* temporary.c: see temporary.h. */
#include "libref/base/temporary.h"

#include "libref/base/system.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, PATH_ROOM = 4096 };

static struct {
	volatile bool listed;
	pid_t         owner; /* a forked child must not remove the files */
	char          path[PATH_ROOM];
} slot[MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_int creating; /* calls of vn_temporary_begin without their vn_temporary_add */
static atomic_int waiting;  /* the signal that ends the program, or 0 */

static struct {
	volatile pid_t pid, owner; /* a forked child must not end it */
} reader;

/* The signal has its default action again, so raise ends the program: at once, or from within the
 * handler as soon as that returns. Called with nothing being created. */
static void leave_nothing(int number)
{
	if (reader.pid > 0 && reader.owner == getpid())
		kill(reader.pid, number);
	vn_temporary_end();
	raise(number);
}

/* waiting is written before creating is read, and vn_temporary_begin does both in the opposite
 * order: at least one of the two sees the other. */
static void at_signal(int number)
{
	waiting = number;
	if (creating == 0)
		leave_nothing(number);
}

void vn_temporary_catch(int number)
{
	struct sigaction now = { .sa_handler = at_signal, .sa_flags = (int)SA_RESETHAND };

	sigemptyset(&now.sa_mask);
	sigaction(number, &now, NULL);
}

/* Keeps handlers of programs that end in order at a signal (capture/run/interrupt.h), and signals
 * that are ignored (nohup). */
static void clean_up_at_signals(void)
{
	static const int list[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction old;

	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			vn_temporary_catch(list[i]);
}

static void end_creation(void)
{
	if (--creating == 0 && waiting)
		leave_nothing(waiting);
}

void vn_temporary_begin(void)
{
	pthread_mutex_lock(&lock);
	clean_up_at_signals();
	pthread_mutex_unlock(&lock);
	creating++;
	if (!waiting)
		return;
	end_creation(); /* a signal has arrived: create nothing more */
	for (;;)
		pause();
}

void vn_temporary_reader(pid_t pid)
{
	vn_temporary_begin();
	reader.owner = getpid();
	reader.pid = pid;
	vn_temporary_add(NULL);
}

void vn_temporary_add(const char *path)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; path && i < MOST && strlen(path) < PATH_ROOM; i++)
		if (!slot[i].listed) {
			strcpy(slot[i].path, path);
			slot[i].owner = getpid();
			slot[i].listed = true;
			break;
		}
	pthread_mutex_unlock(&lock);
	end_creation();
}

void vn_temporary_forget(const char *path)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++)
		if (slot[i].listed && strcmp(slot[i].path, path) == 0)
			slot[i].listed = false;
	pthread_mutex_unlock(&lock);
}

/* A file, or a folder of files. */
static void remove_path(const char *path)
{
	if (unlinkat(AT_FDCWD, path, 0) == 0)
		return;
	const int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0) {
		vn_folder_clear(folder);
		close(folder);
	}
	unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

bool vn_temporary_clear(const char *path)
{
	struct stat s;

	remove_path(path);
	vn_temporary_forget(path);
	return lstat(path, &s) != 0;
}

void vn_temporary_end(void)
{
	enum { TRIES = 100 };
	const struct timespec moment = { .tv_nsec = 5000000 };

	vn_close_range(3, ~0u); /* now a folder can be opened, too */
	for (int i = 0; i < MOST; i++)
		if (slot[i].listed && slot[i].owner == getpid())
			remove_path(slot[i].path);
	for (int i = 0; i < TRIES && waitpid(-1, NULL, WNOHANG) >= 0; i++)
		nanosleep(&moment, NULL);
}
