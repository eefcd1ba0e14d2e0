/* arguments.h: ranges, lists of token ids and files as people name them.
 *
 * A complaint states the rule and quotes the offender.
 */
#ifndef VN_CAPTURE_ARGUMENTS_H
#define VN_CAPTURE_ARGUMENTS_H

#include "libref/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* "3-7" or "3", both ends included, the first not above the last. */
vn_status vn_read_range(const char *what, const char *text, int64_t *first, int64_t *last, vn_error *err);
/* "1,2,3" or "1 2 3", a JSON array of them, or "@FILE" with one of these in it. The array may be the only row of another
 * ([[1,2,3]], a batch of one) or stand in an object as "token_ids", "input_ids" or "ids". *ids is the caller's to free. */
vn_status vn_read_ids(const char *what, const char *text, int32_t **ids, int64_t *n, vn_error *err);
/* All bytes of a file or pipe, at most 64 MiB; a NUL is put behind them. *text is the caller's to free. */
vn_status vn_read_file(const char *path, char **text, size_t *bytes, vn_error *err);

#endif
