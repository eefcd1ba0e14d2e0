/* catalogue.h: tries the faults of the catalogue as trials: one fault at one operation, one at
 * several operations, two at one. */
#pragma once

#include "compare/trial/case.h"

/* Tries every fault of the catalogue. only: tries only the answers and the runner-up of that
 * explanation; NULL: all. */
void vn_catalogue(vn_case *t, const vn_findings *only);
/* Tries every fault at one operation, which need not be between the checkpoint and recorded
 * tensors. */
void vn_catalogue_at(vn_case *t, int node);
/* For logits, most rejected faults are computed in some columns only (vn_trial.estimated).
 * Computes the best of them in all columns, because reports show it as the runner-up. Does nothing
 * if the best of them leaves as much error in those columns as the correct operation. */
void vn_catalogue_measure_next(vn_case *t);
/* Are pairs of faults tried here? There must be a single operation in which an engine can get
 * several things wrong. */
bool vn_catalogue_has_pairs(const vn_case *t);
void vn_catalogue_pairs(vn_case *t);
/* Adds the trials that have the same effect as the best answer: for a window, the range of
 * windows within the floor; for a skipped rotation, or a mask that hides a query's own key, the
 * other mistake. */
void vn_catalogue_alike(vn_case *t);
/* Tries the answer, if it is a mistake of a norm, together with an eps of any size. */
void vn_catalogue_eps_beside(vn_case *t);
