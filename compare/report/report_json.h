/* report_json.h: the longer parts of schema vernier-compare/2. The caller releases the objects that
 * are returned. */
#ifndef VN_COMPARE_REPORT_JSON_H
#define VN_COMPARE_REPORT_JSON_H

#include "compare/report/report.h"
#include "compare/text/json.h"

json_t *vn_json_name(const vn_checkpoint *p);
/* report_json_detail.c: one divergence in full */
json_t *vn_json_divergence(const vn_comparison *c, const vn_report_detail *x);
/* report_json_explain.c: the explanations, which the comparison must have */
json_t *vn_json_explanations(const vn_comparison *c);

#endif
