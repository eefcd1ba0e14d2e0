/* json.h: what reports in JSON have in common.
 *
 * JSON is UTF-8 and has neither NaN nor infinity: bytes that are no UTF-8 are written
 * as \xff, such a number is null, and a neighbour may say which of them it was.
 * Every function gives a new reference.
 */
#ifndef VN_COMPARE_JSON_H
#define VN_COMPARE_JSON_H

#include "compare/text/lines.h"
#include "libref/base/json.h"

#include <stdint.h>

json_t *vn_json_text(const char *s); /* NULL: null */
json_t *vn_json_real(double x);
json_t *vn_json_integers(const int64_t *x, int n);
json_t *vn_json_lines(const vn_lines *l); /* strings */

/* "nan", "inf" or "-inf". */
const char *vn_json_not_finite(double x);
/* object[key] = x; when it is none, null, and flags[key] says what it was. */
void vn_json_put_real(json_t *object, const char *key, double x, json_t *flags);
/* object[key] = flags, if there are any; takes the reference. */
void vn_json_put_flags(json_t *object, const char *key, json_t *flags);

#endif
