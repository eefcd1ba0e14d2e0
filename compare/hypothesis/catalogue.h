/* catalogue.h: tries the faults of the catalogue as hypotheses: one fault at one operation, one at
 * several operations, two at one. */
#ifndef VN_COMPARE_CATALOGUE_H
#define VN_COMPARE_CATALOGUE_H

#include "compare/hypothesis/trial.h"

/* Tries every fault; if only is not NULL, only its answers and its runner-up. */
vn_status vn_catalogue(vn_explain_trial *t, const vn_explanation *only, vn_error *err);
/* Tries every fault at one operation, which need not be between the checkpoint and recorded
 * tensors. */
vn_status vn_catalogue_at(vn_explain_trial *t, int node, vn_error *err);
/* For logits, most rejected faults are computed in some columns only (vn_hypothesis.estimated).
 * Computes the best of them in all columns, because reports show it as the runner-up. Does nothing
 * if it leaves as much error in those columns as the correct operation. */
vn_status vn_catalogue_measure_next(vn_explain_trial *t, vn_error *err);
/* Are pairs of faults tried here? There must be a single operation in which an engine can get
 * several things wrong. */
bool      vn_catalogue_has_pairs(const vn_explain_trial *t);
vn_status vn_catalogue_pairs(vn_explain_trial *t, vn_error *err);
/* Marks what the best answer cannot be told from. If it is a window: the other windows within the
 * floor. If it is a skipped rotation, or a mask that hides a query's own key: the other mistake
 * with the same effect. */
vn_status vn_catalogue_alike(vn_explain_trial *t, vn_error *err);
/* Tries the answer, if it is a mistake of a norm, together with an eps of any size. */
vn_status vn_catalogue_eps_beside(vn_explain_trial *t, vn_error *err);

#endif
