/* explain_replayed.h: finds which mistake reproduces a wrong result of a model of which vernier
 * knows no plan, by a replay file.
 *
 * The file has what the model itself makes of the candidate's inputs with one mistake (a row of
 * replayed/variants.def). Each is a trial, as are other arrangements of the right result
 * (rearrange/). A trial explains the result by the rules of explain.h.
 *
 * Reads   opened.ref, opened.cand, opened.replayed, result.judged, localised.origins
 * Fills   the caller's vn_all_findings
 */
#ifndef VN_COMPARE_EXPLAIN_REPLAYED_H
#define VN_COMPARE_EXPLAIN_REPLAYED_H

#include "compare/trial/findings.h"

vn_status vn_explain_replayed(const vn_opened *o, const vn_result *r, vn_all_findings *all, vn_error *err);

#endif
