/* arguments.h: numbers, ranges and lists of token ids as people write them.
 *
 * A complaint states the rule and quotes the offender.
 */
#ifndef VN_CAPTURE_ARGUMENTS_H
#define VN_CAPTURE_ARGUMENTS_H

#include "libref/base/error.h"

#include <stdint.h>

/* A whole number from low to high, nothing behind it. what: "--threads". */
vn_status vn_read_whole(const char *what, const char *text, int64_t low, int64_t high, int64_t *x, vn_error *err);
/* "3-7" or "3", both ends included, the first not above the last. */
vn_status vn_read_range(const char *what, const char *text, int64_t *first, int64_t *last, vn_error *err);
/* "1,2,3", or "@FILE" with the same in it, where blanks and newlines separate
 * too. *ids is the caller's to free. */
vn_status vn_read_ids(const char *what, const char *text, int32_t **ids, int64_t *n, vn_error *err);

#endif
