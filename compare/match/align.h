/* align.h: brings another recording to the axes and rows of the reference, if both declare theirs.
 *
 * Changes  the views of the recordings: axes and rows as the comparison sees them; the files stay
 *          as they are
 * Fills    notes
 */
#pragma once

#include "capture/recording/recording.h"
#include "compare/text/lines.h"

/* Permutes other's axes into the order of the reference, ref, and restricts both recordings to the
 * token rows that both kept. who: the role of other in messages. cut_reference: false for a floor,
 * when the reference's rows are already fixed; then only the floor's rows are cut. */
vn_status vn_align(vn_recording *ref, vn_lines *notes, vn_recording *other, const char *who, bool cut_reference,
                   vn_error *err);
