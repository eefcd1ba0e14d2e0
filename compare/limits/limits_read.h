/* limits_read.h: the interface between limits_file.c (files) and limits_read.c (the text of one
 * file). */
#ifndef VN_COMPARE_LIMITS_READ_H
#define VN_COMPARE_LIMITS_READ_H

#include "compare/limits/limits.h"

/* The file that a limits file extends, and where it says so. */
typedef struct vn_extends {
	char *name; /* NULL: none. Freed by the caller, also after a failure */
	int   line, column;
} vn_extends;

/* Parses the rules of one file, without the file it extends. extends: zeroed by the caller. */
vn_status vn_limits_text(const char *path, const char *text, size_t n, vn_limits **l, vn_extends *extends,
                         vn_error *err);

#endif
