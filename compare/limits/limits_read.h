/* limits_read.h: what limits_file.c asks of limits_read.c. */
#ifndef VN_COMPARE_LIMITS_READ_H
#define VN_COMPARE_LIMITS_READ_H

#include "compare/limits/limits.h"

/* What a file says it extends, and where it says so. */
typedef struct vn_extends {
	char *name; /* NULL: nothing; the caller's to free, also after a failure */
	int   line, column;
} vn_extends;

/* The rules of one file's text alone. extends: zeroed. */
vn_status vn_limits_text(const char *path, const char *text, size_t n, vn_limits **l, vn_extends *extends,
                         vn_error *err);

#endif
