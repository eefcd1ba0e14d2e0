/* show_next.h: proposes what to do next with a recording. */
#ifndef VN_CAPTURE_SHOW_NEXT_H
#define VN_CAPTURE_SHOW_NEXT_H

#include "capture/show/check.h"
#include "libref/base/json.h"

/* Returns commands for a shell, the most useful first: after the whole recording (i < 0) or entry i
 * was shown, and after it was checked. */
json_t *vn_show_next(const vn_recording *r, int i);
json_t *vn_show_next_after(const vn_recording *r, const vn_file_check *c);

#endif
