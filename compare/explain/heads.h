/* heads.h: handles mistakes that affect only some heads. */
#ifndef VN_COMPARE_HEADS_H
#define VN_COMPARE_HEADS_H

#include "compare/explain/trial.h"

/* Finds the heads that are wrong. *some: at least one is wrong, and at least one is right. */
vn_status vn_head_part_find(const vn_explain_trial *t, vn_head_part *part, bool *some, vn_error *err);
/* Fills *part with the heads that h affects at this checkpoint. Returns false if it affects all. */
bool      vn_head_part_of(const vn_explain_trial *t, const vn_hypothesis *h, vn_head_part *part);
/* Copies the heads that are not in `part` from `unmodified` to z. */
void      vn_head_part_splice(const vn_head_part *part, const vn_tensor *z, const vn_tensor *unmodified);

#endif
