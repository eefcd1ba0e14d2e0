/* mapped.c: see mapped.h. */
#include "libref/base/mapped.h"

#include "libref/base/temporary.h"
#include "libref/base/text.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST = 64 };

static struct mapped_file {
	const char *base; /* NULL: free */
	size_t      bytes;
	char        path[512];
} slot[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void vn_mapped_add(const void *base, size_t bytes, const char *path)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++)
		if (!slot[i].base) {
			snprintf(slot[i].path, sizeof slot[i].path, "%s", path);
			vn_text_clean(slot[i].path, sizeof slot[i].path);
			slot[i].bytes = bytes;
			slot[i].base = base;
			break;
		}
	pthread_mutex_unlock(&lock);
}

void vn_mapped_drop(const void *base)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; base && i < MOST; i++)
		if (slot[i].base == base)
			slot[i].base = NULL;
	pthread_mutex_unlock(&lock);
}

static void report_signal(int signal, siginfo_t *info, void *context)
{
	static const char why[] = ": reading failed: another program shortened the file, or the disk fails\n";
	char              line[sizeof slot->path + sizeof why + 16];
	const char       *path = "a mapped file";
	const uintptr_t   at = (uintptr_t)info->si_addr;

	(void)signal, (void)context;
	for (int i = 0; i < MOST; i++)
		if (slot[i].base && at >= (uintptr_t)slot[i].base && at - (uintptr_t)slot[i].base < slot[i].bytes)
			path = slot[i].path;
	const size_t n = vn_text_put(line, vn_text_put(line, vn_text_put(line, 0, "vernier: "), path), why);
	if (write(2, line, n) < 0) {} /* nothing more can be done */
	vn_temporary_end();
	_exit(2);
}

void vn_mapped_explain(void)
{
	struct sigaction act = { .sa_sigaction = report_signal, .sa_flags = SA_SIGINFO };
	sigaction(SIGBUS, &act, NULL);
}
