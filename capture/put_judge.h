/* put_judge.h: judges the tensors of the C API while they are recorded; see
 * vernier_capture_against in include/vernier_capture.h.
 *
 * Equal digests of finite numbers agree (capture/run/against.h). Otherwise the reference's numbers
 * are read, and their nmse decides.
 * Without a plan, the inputs of an operation are unknown. So tensors that agree stay in memory
 * until the next layer ends, and are written if one that disagrees follows.
 *
 * Owner   vn_put_judge_close frees it. The store is borrowed for the call.
 * Threads one at a time.
 */
#pragma once

#include "capture/store/store.h"

typedef struct vn_put_judge vn_put_judge;

/* Opens the reference. keep_above: the nmse from which a tensor is kept; 0: 1e-9 for float32 and
 * wider, 1e-5 for narrower formats. */
vn_status vn_put_judge_open(const char *reference, double keep_above, vn_put_judge **j, vn_error *err);
void      vn_put_judge_close(vn_put_judge *j); /* NULL is allowed */

/* Begins a step with these tokens (n), after `position` others. */
vn_status   vn_put_judge_step(vn_put_judge *j, int number, int64_t position, const int32_t *ids, int64_t n,
                              vn_error *err);
/* Writes a tensor, or keeps it back. Takes ownership of t->data (from malloc), also after a
 * failure. */
vn_status   vn_put_judge_put(vn_put_judge *j, vn_store *s, const vn_tensor_label *l, vn_tensor *t, vn_error *err);
/* Leaves out the tensors that are still kept back, and adds facts for /run. Call vn_put_judge_lines
 * afterwards: it writes the list of what was left out. */
vn_status   vn_put_judge_end(vn_put_judge *j, vn_facts *facts, vn_error *err);
vn_status   vn_put_judge_lines(const vn_put_judge *j, vn_store *s, vn_error *err);
/* Returns the name of the first tensor that did not agree, or "". */
const char *vn_put_judge_first(const vn_put_judge *j);
