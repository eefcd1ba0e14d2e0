/* freed.h: what ends when a function, or a block of it, is left, by whichever way.
 *
 *	VN_FREED char *text = vn_alloc(n, 1);
 *	VN_ENDS(vn_lines_free) vn_lines lines = { 0 };
 *
 * Variables end in the reverse order of their declarations, after the value of a return is known.
 * Each is initialised where it is declared, and what it holds is not handed on.
 */
#pragma once

#include <stddef.h>

/* Calls end(&variable). */
#define VN_ENDS(end) __attribute__((cleanup(end)))
/* Calls free(variable). */
#define VN_FREED VN_ENDS(vn_free_at)
void vn_free_at(const void *variable);

/* Frees each of several pointers. */
#define VN_FREE(...) vn_free_each(sizeof((void *[]) { __VA_ARGS__ }) / sizeof(void *), (void *[]) { __VA_ARGS__ })
void vn_free_each(size_t n, void *const *p);
