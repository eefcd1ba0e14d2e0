/* overflow.h: where numbers first left the range of their format.
 *
 * A replay in the candidate's precision overflows as the candidate did: the operation agrees, and
 * still it is where the infinities start. What reads them only passes them on, whatever it makes
 * of them: in one engine 0 x infinity is NaN, in another that skips the product it is nothing.
 *
 * Such a checkpoint has NaN or infinity where the reference has none, and none of its inputs has.
 * Either the reference itself is beyond the format's largest number at each of these places, or a
 * partial sum of the product is, computed in float64 from the candidate's input and the weights.
 */
#ifndef VN_COMPARE_OVERFLOW_H
#define VN_COMPARE_OVERFLOW_H

#include "compare/comparison/comparison.h"

/* Fills overflow of checkpoints; and replay.behind of those beyond their floor only by NaN and
 * infinities that an input has, too. After vn_localise. Fails for want of memory, or of a recording
 * that cannot be read. */
vn_status   vn_find_overflows(vn_comparison *c, vn_error *err);

/* "it passed 65504, the largest f16: ..."; text of VN_WORDS bytes. */
const char *vn_say_overflow(const vn_checkpoint *p, char *text);

/* It overflowed, and the replay has no other fault in it: there is nothing else to explain. */
bool        vn_overflow_is_all(const vn_checkpoint *p);

#endif
