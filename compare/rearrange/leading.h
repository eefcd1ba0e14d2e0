/* leading.h: finds a wrong leading dimension: two rows of an operand are another distance apart in
 * memory than a row is wide, as in a call of BLAS with a wrong lda, ldb or ldc, or for rows of a
 * wider buffer that are recorded as if they were packed.
 */
#ifndef VN_COMPARE_LEADING_H
#define VN_COMPARE_LEADING_H

#include "compare/rearrange/rearranged.h"

/* Which operand has it: number `factor` of a trial's result. `number` is the distance, 0: columns
 * follow each other, not rows; list: the right distance. */
typedef enum vn_leading_of { VN_LEADING_INPUT, VN_LEADING_MATRIX, VN_LEADING_RESULT } vn_leading_of;

/* Tries the widths of the model near the operation, for a call of several tokens. */
void vn_rearrange_leading(vn_rearranged *r);

#endif
