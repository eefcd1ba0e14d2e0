/* arguments.h: parses ranges, lists of token ids and file names given by the user.
 *
 * Errors   state the rule and quote the argument.
 */
#pragma once

#include "libref/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Parses "3-7" or "3". Both ends are included; the first must not exceed the last. what: the
 * option, for messages. */
vn_status vn_arguments_read_range(const char *what, const char *text, int64_t *first, int64_t *last, vn_error *err);
/* Parses "1,2,3" or "1 2 3", a JSON array, or "@FILE" with one of these in the file. The array may
 * be the only row of another ([[1,2,3]], a batch of one), or the member "token_ids", "input_ids" or
 * "ids" of an object. The caller frees *ids. */
vn_status vn_arguments_read_ids(const char *what, const char *text, int32_t **ids, int64_t *n, vn_error *err);
/* The same, but a JSON array may have several rows of one length, one for each prompt of a batch:
 * they follow each other in *ids, and *rows says how many there are; 0: one list. In rows, -1 is
 * padding. */
vn_status vn_arguments_read_rows(const char *what, const char *text, int32_t **ids, int64_t *n, int64_t *rows,
                                 vn_error *err);
/* Reads a file or pipe of at most 64 MiB. A NUL follows the bytes. The caller frees *text. */
vn_status vn_arguments_read_file(const char *path, char **text, size_t *bytes, vn_error *err);
/* Takes the value of one --precision option. "P", the precision of the run, goes to *whole and may
 * be given once. "P@GLOB", the precision of some nodes, is appended to part, whose length is *n, at
 * most `most`. Borrows value. */
vn_status vn_take_precision(const char *value, const char **whole, const char **part, int *n, int most, vn_error *err);
