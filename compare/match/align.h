/* align.h: brings another recording to the axes and rows of the reference, if both declare theirs.
 *
 * Reads    opened.ref
 * Changes  the views of the recordings: axes and rows as the comparison sees them; the files stay
 *          as they are
 * Fills    lines of result.notes
 */
#ifndef VN_COMPARE_ALIGN_H
#define VN_COMPARE_ALIGN_H

#include "compare/comparison/comparison.h"

/* Permutes other's axes into the reference's order, and restricts both recordings to the token rows
 * that both kept. who: the role of other in messages. cut_reference: false for a floor, when the
 * reference's rows are already fixed; then only the floor's rows are cut. */
vn_status vn_align(vn_comparison *c, vn_recording *other, const char *who, bool cut_reference, vn_error *err);

#endif
