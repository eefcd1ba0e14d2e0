/* signals.h: the signals that a helper thread blocks, so that the program's main thread handles
 * them.
 *
 * All signals except those that report a fault of the thread itself (SIGSEGV...): if these were
 * blocked, the process would end without a message.
 */
#pragma once

#include <signal.h>

static inline void vn_signals_of_others(sigset_t *set)
{
	sigfillset(set);
	sigdelset(set, SIGBUS);
	sigdelset(set, SIGSEGV);
	sigdelset(set, SIGFPE);
	sigdelset(set, SIGILL);
	sigdelset(set, SIGABRT);
}
