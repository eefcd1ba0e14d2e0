/* pooled_small.h: steps of one token of small tensors, judged together where a multiple of the floor is limited (vn_pooled_small). */
#ifndef VN_COMPARE_FEW_H
#define VN_COMPARE_FEW_H

#include "compare/comparison/comparison.h"

/* few, of what is measured and has a floor. */
vn_status vn_pool_small(vn_comparison *c, vn_error *err);

/* Is this one taken over the steps of a small tensor? */
bool vn_pooled_small_has(vn_metric m);

/* All together break a limit of so many floors: is a step of that nmse one that they do so by? It is where the smaller ones together break none,
 * and with it they do, or where it is twice as far off as all. A healthy step's own ratio is luck, whatever another one does. */
bool vn_pooled_small_breaks_by(const vn_pooled_small *g, double nmse, double floors);

#endif
