/* report_json_detail.h: one divergence in full, in schema vernier-compare/2. New references are
 * returned. */
#ifndef VN_COMPARE_REPORT_JSON_DETAIL_H
#define VN_COMPARE_REPORT_JSON_DETAIL_H

#include "compare/report/report.h"
#include "compare/text/json.h"

json_t *vn_json_name(const vn_checkpoint *p);
json_t *vn_json_divergence(const vn_comparison *c, const vn_report_detail *x);

#endif
