/* heads.h: some heads alone that came out otherwise: a mistake that the others are spared. */
#ifndef VN_COMPARE_HEADS_H
#define VN_COMPARE_HEADS_H

#include "compare/explain/trial.h"

/* Heads that came out otherwise; *some: they are some, and not all. */
vn_status vn_part_find(const vn_explain_trial *t, vn_head_part *part, bool *some, vn_error *err);
/* Those that h is made in, at this checkpoint; false: it is made in all. */
bool      vn_part_of(const vn_explain_trial *t, const vn_hypothesis *h, vn_head_part *part);
/* Heads of z that are in no part become those of `unmodified`. */
void      vn_part_splice(const vn_head_part *part, const vn_tensor *z, const vn_tensor *unmodified);

#endif
