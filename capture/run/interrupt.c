/* interrupt.c: see interrupt.h. */
#include "capture/run/interrupt.h"

#include "libref/base/temporary.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t flag;

static void note_signal(int sig)
{
	flag = 1;
	vn_temporary_catch(sig); /* the next one */
}

void vn_interrupt_catch(void)
{
	static const int list[] = { SIGINT, SIGTERM, SIGHUP };
	/* Without SA_RESETHAND: another thread may get a second signal, as timeout(1) sends, before note runs. */
	struct sigaction now = { .sa_handler = note_signal, .sa_flags = SA_RESTART }, old;

	sigemptyset(&now.sa_mask);
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
		/* nohup ignores SIGHUP on purpose. A shell ignores SIGINT for background jobs, but an explicit SIGINT
		 * is still meant for us. */
		if (list[i] != SIGHUP || (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN))
			sigaction(list[i], &now, NULL);
}

bool vn_interrupted(void)
{
	return flag != 0;
}
