/* crash.h: reports a crash inside a third-party library as an error.
 *
 * Drivers, the LLVM inside them, and OpenMP crash or abort when memory runs out. The program then
 * prints one line with the signal and the library, and exits with status 2. A crash in vernier's
 * own code is not caught. */
#ifndef VN_COMPARE_CRASH_H
#define VN_COMPARE_CRASH_H

/* Installs the signal handlers, for all threads. Child processes set their own (child.c,
 * scribe.c). */
void vn_crash_explain(void);

#endif
