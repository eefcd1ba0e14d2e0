/* catalogue.h: the faults of the catalogue as hypotheses: where each can be made, alone, at several operations at once, two at one. */
#ifndef VN_COMPARE_CATALOGUE_H
#define VN_COMPARE_CATALOGUE_H

#include "compare/explain/trial.h"

/* Every fault; only: its answers and the next best alone; NULL: all. */
vn_status vn_catalogue(vn_explain_trial *t, const vn_explanation *only, vn_error *err);
/* Two at one operation, where there is one alone, of which an engine has several things to get wrong. */
bool      vn_catalogue_has_pairs(const vn_explain_trial *t);
vn_status vn_catalogue_pairs(vn_explain_trial *t, vn_error *err);
/* Where the best answer is a window of the catalogue: which others are within the floor. Where it is a rotation that was skipped, or a mask
 * that hides a query's own key: the other mistake that does the same. */
vn_status vn_catalogue_alike(vn_explain_trial *t, vn_error *err);
vn_went   vn_how_it_went(const vn_explain_trial *t);
/* Is an operation that reads the checkpoint right on its recorded numbers? Others that read it may not be. */
bool      vn_consumed_as_recorded(const vn_explain_trial *t);

#endif
