/* split.h: a text cut into pieces by a regular expression.
 *
 * Matches are pieces, and so is what lies between them ("Isolated" in
 * tokenizer.json): the pieces tile the text.
 *
 * Threads  a split is read-only and may be shared; a work is one thread's.
 * Time     each place of the text has a share of steps and of bytes to look at, and all share a reserve, a
 *          multiple of the text's length. A pattern that wants more is refused: none takes exponential
 *          time, none looks through the whole text from every place.
 */
#ifndef VN_LIBREF_TEXT_SPLIT_H
#define VN_LIBREF_TEXT_SPLIT_H

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_split vn_split;

/* pattern: as in tokenizer.json (pattern.h), or literal: the text itself.
 * Refused: what is not supported, what does not compile. */
vn_status vn_split_create(const char *pattern, size_t bytes, bool literal, vn_split **split, vn_error *err);
void      vn_split_destroy(vn_split *s);

/* Memory for matching, and what is left of the reserve of steps. */
typedef struct vn_split_work vn_split_work;
vn_split_work *vn_split_work_create(size_t bytes); /* for texts of so many bytes in all; NULL without memory */
void           vn_split_work_destroy(vn_split_work *w);

/* The end of the piece that begins at byte `at` < bytes of text (well-formed
 * UTF-8): the next begins there. */
vn_status vn_split_next(const vn_split *s, vn_split_work *w, const char *text, size_t bytes, size_t at, size_t *end, vn_error *err);

#endif
