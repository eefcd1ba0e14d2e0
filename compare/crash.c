/* crash.c: see crash.h. The first frame outside the C library tells whose crash it is. */
#include "compare/crash.h"

#include "libref/base/temporary.h"
#include "libref/base/text.h"

#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NAME = 64, FRAMES = 64 };

/* What an address of code lies in. */
typedef struct library {
	char      name[NAME];
	bool      known, own, transparent;
} library;

typedef struct search {
	uintptr_t at;
	library   found;
	int       n;
} search;

static int find_library(struct dl_phdr_info *i, size_t size, void *ctx)
{
	static const char *const below[] = { "libc.so", "libpthread.so", "libm.so", "ld-linux", "linux-vdso", "libstdc++.so", "libgcc_s.so" };
	search     *s = ctx;
	const bool  own = s->n++ == 0; /* the program itself comes first */
	const char *slash = strrchr(i->dlpi_name, '/'), *name = slash ? slash + 1 : i->dlpi_name;

	(void)size;
	for (int k = 0; k < i->dlpi_phnum; k++) {
		const uintptr_t from = i->dlpi_addr + i->dlpi_phdr[k].p_vaddr;
		if (i->dlpi_phdr[k].p_type != PT_LOAD || s->at < from || s->at >= from + i->dlpi_phdr[k].p_memsz)
			continue;
		s->found = (library) { .known = true, .own = own };
		strncpy(s->found.name, name, NAME - 1);
		for (size_t b = 0; b < sizeof below / sizeof *below; b++)
			s->found.transparent |= strncmp(name, below[b], strlen(below[b])) == 0;
		return 1;
	}
	return 0;
}

/* Code that a driver made is in memory; a wild jump goes anywhere. */
static bool mapped(uintptr_t at)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char   there;
	return mincore((void *)(at / page * page), 1, &there) == 0;
}

/* The library of the crash; empty: code that a driver made. False: it is ours, or nobody knows. */
static bool stranger(char name[NAME])
{
	void     *frame[FRAMES];
	const int n = backtrace(frame, FRAMES);
	bool      passed = false; /* the handler and what called it */

	for (int i = 0; i < n; i++) {
		search s = { .at = (uintptr_t)frame[i] };
		dl_iterate_phdr(find_library, &s);
		if (!passed) {
			passed = s.found.transparent; /* the C library's return from the handler */
			continue;
		}
		if (s.found.transparent || (!s.found.known && !mapped(s.at)))
			continue; /* a call of nothing: the frame before it says who made it */
		memcpy(name, s.found.name, NAME);
		return !s.found.own;
	}
	return false;
}

static atomic_flag busy = ATOMIC_FLAG_INIT;

/* A crash in here ends the program: the signal is blocked. */
static void explain(int number)
{
	char   line[256], name[NAME] = "";
	size_t n = 0;

	if (atomic_flag_test_and_set(&busy)) /* threads of a driver crash one after the other */
		for (;;)
			pause();
	if (!stranger(name)) {
		signal(number, SIG_DFL);
		return; /* once more, and for good */
	}
	n = vn_text_put(line, n, "vernier: ");
	n = vn_text_put(line, n, *name ? name : "code that a driver made");
	n = vn_text_put(line, n, number == SIGABRT ? " gave up (SIGABRT)" : number == SIGSEGV ? " crashed (SIGSEGV)" : " crashed (SIGFPE or SIGILL)");
	n = vn_text_put(line, n, ", for want of memory or threads as a rule (ulimit -v, ulimit -u)\n");
	if (write(2, line, n) < 0) {} /* nothing more can be done */
	vn_temporary_end();
	_exit(2);
}

/* A library that calls itself without end when it gets no memory (libgfortran) leaves no stack for the handler. */
static char stack_of_handler[128 << 10];

void vn_crash_explain(void)
{
	static const int list[] = { SIGSEGV, SIGABRT, SIGFPE, SIGILL };
	const stack_t    stack = { .ss_sp = stack_of_handler, .ss_size = sizeof stack_of_handler };
	void *frame[2];

	backtrace(frame, 2); /* loads what it needs, while there is memory */
	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct sigaction action = { .sa_handler = explain, .sa_flags = SA_ONSTACK };
		sigemptyset(&action.sa_mask);
		sigaction(list[i], &action, NULL);
	}
}
