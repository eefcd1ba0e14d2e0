/* injections.h: the mistakes of the catalogue that explain a comparison, as options of
 * `vernier capture` that make them again. */
#ifndef VN_COMPARE_INJECTIONS_H
#define VN_COMPARE_INJECTIONS_H

#include "compare/comparison/comparison.h"

enum { VN_INJECTIONS_MOST = 24 };

/* "R1@layer1.q_rope", "R1@layer*.q_rope", "R1@*" */
typedef char vn_injection[VN_NAME_MAX + 64];

/* Writes every mistake that an origin is explained by, at every operation at which it is made, in
 * as few patterns as name these operations alone. Left out is what --inject cannot make: a fitted
 * number, some heads of several, an answer that another step contradicts. Returns how many; -1:
 * they are too many for a command line. */
int vn_injections_of(const vn_opened *o, const vn_result *r, vn_injection what[VN_INJECTIONS_MOST]);

#endif
