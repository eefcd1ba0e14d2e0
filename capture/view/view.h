/* view.h: shows a recording with its axes in another order, or with fewer rows.
 *
 * Two engines may have the same numbers in another order of axes, or one kept every token and the
 * other only the last. If both files state this themselves (dims strings, rows of a step), one can
 * be shown as the other without guessing. Afterwards entries have the new shape, axes and rows, and
 * reading returns the numbers in that form. The digest and the statistics in the file no longer
 * apply; the digest is cleared.
 */
#pragma once

#include "capture/recording/recording.h"

/* Finds the order of axes that makes `to` from `from`: axis i of `to` is axis order[i] of `from`.
 * Returns false unless both have the same words, each once. */
bool vn_view_order(const char *from, const char *to, int rank, int order[VN_MAX_RANK]);

/* Shows entry i, and every other name of its tensor, with axes in that order. */
void vn_view_axes(vn_recording *r, int i, const int order[VN_MAX_RANK]);

/* Restricts a step to rows [first, first + rows) of the call's tokens, which must be among those it
 * kept, in every tensor that has a token axis as long as the kept rows. */
vn_status vn_view_rows(vn_recording *r, int step, int64_t first, int64_t rows, vn_error *err);

/* Same for entry i alone, and every other name of its tensor: [first, first + rows) counts from its
 * first kept row. */
vn_status vn_view_entry_rows(vn_recording *r, int i, int64_t first, int64_t rows, vn_error *err);
