/* report_json.h: what the files that write vernier-compare/1 share. */
#ifndef VN_COMPARE_REPORT_JSON_H
#define VN_COMPARE_REPORT_JSON_H

#include "compare/text/json.h"
#include "compare/report/report.h"

json_t *vn_json_name(const vn_checkpoint *p);
/* Of a comparison that has explanations. */
json_t *vn_json_explanations(const vn_comparison *c);
/* One divergence in full. */
json_t *vn_json_divergence(const vn_comparison *c, const vn_report_detail *x);

#endif
