/* report_json.h: functions shared by the files that write schema vernier-compare/1. They return new
 * references. */
#ifndef VN_COMPARE_REPORT_JSON_H
#define VN_COMPARE_REPORT_JSON_H

#include "compare/text/json.h"
#include "compare/report/report.h"

json_t *vn_json_name(const vn_checkpoint *p);
/* The comparison must have explanations. */
json_t *vn_json_explanations(const vn_comparison *c);
/* Describes one divergence in full. */
json_t *vn_json_divergence(const vn_comparison *c, const vn_report_detail *x);

#endif
