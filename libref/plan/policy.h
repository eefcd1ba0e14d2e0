/* policy.h: a precision policy, what a run stores in and accumulates in.
 *
 *   name        stored in   products summed in   everything else computed in
 *   f64         f64         f64                  f64
 *   f32         f32         f32 or better        f32 or better
 *   f16         f16         f32 or better        f32
 *   f16-acc16   f16         f16                  f32
 *   bf16        bf16        f32 or better        f32
 *
 * "Stored" means every named output and every weight: each is rounded once to
 * that format. "Products" are those of `linear`: inside a norm, a rotation or
 * an attention (scores, softmax and the sum over values) 16-bit policies compute
 * in float32 from stored inputs and round the result once. With f16-acc16 a
 * linear's running sum is rounded to f16 after every term; the bias joins the
 * sum last, also rounded.
 */
#ifndef VN_LIBREF_PLAN_POLICY_H
#define VN_LIBREF_PLAN_POLICY_H

#include "libref/base/dtype.h"

#include <stdbool.h>

typedef struct vn_policy {
	vn_dtype storage;
	vn_dtype sums; /* of linear */
} vn_policy;

/* What a value or a state is stored as; wide as in vn_state. */
vn_dtype    vn_policy_dtype(vn_policy p, bool wide);

const char *vn_policy_name(vn_policy p);
int         vn_policy_from_name(const char *name, vn_policy *p); /* 0 when unknown */
/* The same, and other engines' words for it: "fp16", "torch.bfloat16", "F16"..., in any case */
int         vn_policy_from_word(const char *word, vn_policy *p);
extern const char *const vn_policy_names; /* "f32|f64|...", for help texts */

#endif
