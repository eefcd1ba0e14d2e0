/* temporary.h: files and folders of this run that must not outlive it.
 *
 * Whoever makes one removes it, or gives it its final name. But a library may end the program where memory or
 * threads run out (OpenMP's does), or crash: what is listed here is then removed by compare/main.c. SIGINT, SIGTERM and
 * SIGHUP that nobody handles remove it, too, from the first vn_temporary_add on.
 *
 * Threads  any.
 */
#ifndef VN_LIBREF_BASE_TEMPORARY_H
#define VN_LIBREF_BASE_TEMPORARY_H

/* A file, or a folder with all that is in it. The path is copied; beyond a few, or too long, it is not listed. */
void vn_temporary_add(const char *path);
void vn_temporary_forget(const char *path); /* removed, or of its final name */
void vn_temporary_clear(const char *path);  /* forgets it, and removes it with all that is in it */

/* Removes all that is listed, closes every file and waits a moment for processes of ours that end by that. Calls nothing that may not be called in a signal handler, and allocates nothing. */
void vn_temporary_end(void);

#endif
