/* redirect.h: finds operations that are right but read the wrong value or the wrong weights. */
#ifndef VN_COMPARE_REDIRECT_H
#define VN_COMPARE_REDIRECT_H

#include "compare/trial/case.h"

/* Tries another checkpoint as an input (layer index off by one, buffers not swapped), the keys or
 * values of another layer, and another layer's weights. All recorded values and all layers are
 * tried in a few rows; the best are then tried in full. */
void vn_redirect(vn_case *t);
/* Tries content from the step before, and embeddings of other tokens of the sequence. */
void vn_redirect_in_time(vn_case *t);

#endif
