/* signals.h: the signals that a thread of our own leaves to the thread that runs the program.
 *
 * Not those of a fault in the thread itself: blocked, they end the process without a word.
 */
#ifndef VN_LIBREF_BASE_SIGNALS_H
#define VN_LIBREF_BASE_SIGNALS_H

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

#endif
