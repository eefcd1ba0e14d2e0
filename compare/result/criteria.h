/* criteria.h: what a developer asks first of a new engine, each answered only if it was measured.
 *
 * Reads    a comparison, after vn_compare_end
 * Fills    the member `criteria` of a document: a list of {"name", "holds" (null: not measured),
 *          "words"}
 */
#pragma once

#include "compare/comparison/comparison.h"
#include "compare/text/json.h"

json_t *vn_criteria_json(const vn_opened *o, const vn_result *r);
