/* report_json_explain.h: explanations in schema vernier-compare/2. New references are returned. */
#ifndef VN_COMPARE_REPORT_JSON_EXPLAIN_H
#define VN_COMPARE_REPORT_JSON_EXPLAIN_H

#include "compare/report/report.h"
#include "compare/text/json.h"

/* The comparison must have explanations. */
json_t *vn_json_explanations(const vn_comparison *c);

#endif
