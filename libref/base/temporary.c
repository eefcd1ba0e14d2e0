/* temporary.c: see temporary.h. */
#include "libref/base/temporary.h"

#include "libref/base/text.h"
#include "libref/base/trouble.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range /* missing before kernel headers 5.9; the number is the same on all machines */
#define SYS_close_range 436
#endif

enum { MOST = 64, PATH_ROOM = 4096, DEEPEST = 3 };

static struct {
	volatile bool listed;
	pid_t         owner;  /* a forked child must not remove the files */
	int           folder; /* descriptor kept open for when no file can be opened; -1: a file */
	char          path[PATH_ROOM];
} slot[MOST];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_int creating; /* calls of vn_temporary_begin without their vn_temporary_add */
static atomic_int waiting;  /* the signal that ends the program, or 0 */

/* The signal has its default action again, so raise ends the program: at once, or from within the
 * handler as soon as that returns. Called with nothing being created. */
static void leave_nothing(int number)
{
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

void vn_temporary_add(const char *path)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; path && i < MOST && strlen(path) < PATH_ROOM; i++)
		if (!slot[i].listed) {
			strcpy(slot[i].path, path);
			slot[i].owner = getpid();
			slot[i].folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			slot[i].listed = true;
			break;
		}
	pthread_mutex_unlock(&lock);
	end_creation();
}

static void forget_slot(int i)
{
	if (slot[i].folder >= 0)
		close(slot[i].folder);
	slot[i].listed = false;
}

void vn_temporary_forget(const char *path)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++)
		if (slot[i].listed && strcmp(slot[i].path, path) == 0)
			forget_slot(i);
	pthread_mutex_unlock(&lock);
}

/* The record that getdents64 fills in; opendir would allocate. */
typedef struct directory_entry {
	unsigned long long inode, offset;
	unsigned short     bytes;
	unsigned char      type;
	char               name[];
} directory_entry;

static void remove_at(int in, const char *name, int depth);

static void empty_folder(int folder, int depth)
{
	_Alignas(directory_entry) char room[2048];
	long                           n;

	lseek(folder, 0, SEEK_SET);
	while ((n = syscall(SYS_getdents64, folder, room, sizeof room)) > 0)
		for (long at = 0; at < n;) {
			const directory_entry *e = (const directory_entry *)(const void *)(room + at);
			if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
				remove_at(folder, e->name, depth + 1);
			at += e->bytes;
		}
}

static void remove_at(int in, const char *name, int depth)
{
	if (unlinkat(in, name, 0) == 0 || depth > DEEPEST)
		return;
	const int folder = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return;
	empty_folder(folder, depth);
	close(folder);
	unlinkat(in, name, AT_REMOVEDIR);
}

static void remove_listed(int i)
{
	if (slot[i].folder >= 0) {
		empty_folder(slot[i].folder, 0);
		unlinkat(AT_FDCWD, slot[i].path, AT_REMOVEDIR);
	} else {
		remove_at(AT_FDCWD, slot[i].path, 0);
	}
}

static char left[VN_ERROR_MAX];
static bool left_noted;

const char *vn_temporary_left(void)
{
	return *left ? left : NULL;
}

bool vn_temporary_left_noted(void)
{
	return left_noted;
}

void vn_temporary_clear(const char *path)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++)
		if (slot[i].listed && strcmp(slot[i].path, path) == 0) {
			struct stat s;
			remove_listed(i);
			forget_slot(i);
			if (lstat(path, &s) == 0) {
				snprintf(left, sizeof left, "%s cannot be removed", path);
				vn_text_clean(left, sizeof left);
				left_noted = vn_trouble_note(left);
			}
		}
	pthread_mutex_unlock(&lock);
}

void vn_temporary_end(void)
{
	enum { TRIES = 100 };
	const struct timespec moment = { .tv_nsec = 5000000 };

	for (int i = 0; i < MOST; i++)
		if (slot[i].listed && slot[i].owner == getpid())
			remove_listed(i);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	for (int i = 0; i < TRIES && waitpid(-1, NULL, WNOHANG) >= 0; i++)
		nanosleep(&moment, NULL);
}
