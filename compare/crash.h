/* crash.h: what a crash inside somebody else's library comes to.
 *
 * Drivers, LLVM within them and OpenMP crash or abort where memory runs out. That is exit status 2 and a line that
 * names the signal and the library. A crash in code of our own stays one: nothing is hidden. */
#ifndef VN_COMPARE_CRASH_H
#define VN_COMPARE_CRASH_H

/* From here on, in all threads; children set their signals themselves (child.c, scribe.c). */
void vn_crash_explain(void);

#endif
