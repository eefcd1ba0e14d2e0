/* apply_computed.h: numbers of hypotheses that no plan expresses. They are computed here, in double, from what the
 * operation read.
 *
 * Each function fills *made, or leaves it empty if the hypothesis does not apply to the checkpoint.
 */
#ifndef VN_COMPARE_APPLY_COMPUTED_H
#define VN_COMPARE_APPLY_COMPUTED_H

#include "compare/explain/hypothesis_made.h"

vn_status vn_apply_matrix(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
vn_status vn_apply_attend(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
vn_status vn_apply_rotation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
vn_status vn_apply_narrow(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);
vn_status vn_apply_activation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err);

#endif
