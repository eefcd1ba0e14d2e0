/* view.h: a recording seen as if it had been made otherwise.
 *
 * Two engines may have the same numbers in another order of axes, or one kept every
 * token and the other the last alone. Where both files say so themselves (dims
 * strings, rows of a step), the one can be seen as the other without a guess. From
 * then on entries have the new shape, axes and rows, and reading gives the numbers
 * so. Digests and statistics of what was written no longer speak of it: the digest
 * is cleared.
 */
#ifndef VN_CAPTURE_VIEW_H
#define VN_CAPTURE_VIEW_H

#include "capture/recording/recording.h"

/* The order of axes that makes `from` into `to`: to's axis i is from's axis order[i].
 * false when the two are not the same names in another order, each once. */
bool vn_view_order(const char *from, const char *to, int rank, int order[VN_MAX_RANK]);

/* Entry i, and every other name of its tensor, with axes in that order. */
vn_status vn_view_axes(vn_recording *r, int i, const int order[VN_MAX_RANK], vn_error *err);

/* Rows [first, first + rows) of the tokens of a step, of those that it kept: every
 * tensor of the step that has an axis of tokens as long as the rows it kept. */
vn_status vn_view_rows(vn_recording *r, int step, int64_t first, int64_t rows, vn_error *err);

/* The same of entry i alone, and every other name of its tensor: [first, first + rows) of the rows it has. */
vn_status vn_view_entry_rows(vn_recording *r, int i, int64_t first, int64_t rows, vn_error *err);

#endif
