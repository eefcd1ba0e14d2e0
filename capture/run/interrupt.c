/* interrupt.c: see interrupt.h. */
#include "capture/run/interrupt.h"

#include "libref/base/temporary.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t flag;

static const int list[] = { SIGINT, SIGTERM, SIGHUP };

/* The next signal ends the program, whichever it is. */
static void note_signal(int sig)
{
	struct sigaction old;
	flag = sig;
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
		if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler == note_signal)
			vn_temporary_catch(list[i]);
}

void vn_interrupt_catch(void)
{
	/* Without SA_RESETHAND: another thread may get a second signal, as timeout(1) sends,
	 * before note_signal runs. */
	struct sigaction now = { .sa_handler = note_signal, .sa_flags = SA_RESTART }, old;

	sigemptyset(&now.sa_mask);
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
		/* nohup ignores SIGHUP on purpose. A shell ignores SIGINT for background jobs, but an
		 * explicit SIGINT is still meant for us. */
		if (list[i] != SIGHUP || (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN))
			sigaction(list[i], &now, NULL);
}

int vn_interrupted_by(void)
{
	return flag;
}

bool vn_interrupted(void)
{
	return flag != 0;
}
