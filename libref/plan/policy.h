/* policy.h: a precision policy, what a run stores in and accumulates in.
 *
 *   name          stored in   products summed in   everything else computed in
 *   f64           f64         f64                  f64
 *   f32           f32         f32 or better        f32 or better
 *   f16           f16         f32 or better        f32
 *   f16-acc16     f16         f16                  f32
 *   bf16          bf16        f32 or better        f32
 *   ggml          f32         f32 or better        f32, but that products round what goes into them (vn_products)
 *   ggml-kv16     the same, with keys and values in f16
 *   ggml-flash16  the same, with flash attention over them
 *
 * "Stored" means every named output and every weight: each is rounded once to
 * that format. "Products" are those of `linear`: inside a norm, a rotation or
 * an attention (scores, softmax and the sum over values) 16-bit policies compute
 * in float32 from stored inputs and round the result once. With f16-acc16 a
 * linear's running sum is rounded to f16 after every term; the bias joins the
 * sum last, also rounded.
 *
 * What ggml's CPU backend rounds besides: specs/models.md, 3.1.
 */
#ifndef VN_LIBREF_PLAN_POLICY_H
#define VN_LIBREF_PLAN_POLICY_H

#include "libref/base/dtype.h"
#include "libref/base/error.h"

#include <stdbool.h>

typedef enum vn_products {
	VN_PRODUCTS_PLAIN,       /* of what is stored */
	VN_PRODUCTS_GGML,        /* what goes into a linear is rounded as the format of its weight asks (libref/ops/ggml.h) */
	VN_PRODUCTS_GGML_KV16,   /* and attention's keys and values are halves, and the queries and probabilities that meet them */
	VN_PRODUCTS_GGML_FLASH16 /* or keys and values are, and the context is, while it is summed over keys, of fewer than 64 tokens */
} vn_products;

typedef struct vn_policy {
	vn_dtype    storage;
	vn_dtype    sums; /* of linear */
	vn_products products;
} vn_policy;

static inline bool vn_policy_same(vn_policy a, vn_policy b)
{
	return a.storage == b.storage && a.sums == b.sums && a.products == b.products;
}

/* Digits that no number has more of which went through a product: those of the storage format, or of the coarsest that a product
 * rounds its inputs to (vn_dtype_digits: 8 bits are as good as bfloat16's 7). */
int         vn_policy_digits(vn_policy p);
/* The policy that a run in p is held against, one operation at a time: the same products, but in f32 (of a 16-bit run), or f64, and
 * attention without roundings. */
vn_policy   vn_policy_fine(vn_policy p);

/* What a value or a state is stored as; wide as in vn_state. */
vn_dtype    vn_policy_dtype(vn_policy p, bool wide);

const char *vn_policy_name(vn_policy p);
int         vn_policy_from_name(const char *name, vn_policy *p); /* 0 when unknown */
/* The same, and other engines' words for it: "fp16", "torch.bfloat16", "F16"..., in any case */
int         vn_policy_from_word(const char *word, vn_policy *p);
/* Of a run in which only some operations round to a format, "autocast-bf16" or "mixed-bf16", its word, "bf16"; else NULL. Such a
 * run rounds less than one in that format, which vn_policy_from_word makes of it: its limits and its floor hold. */
const char *vn_policy_partly(const char *word);
/* The same for what a person gave as `option`; the complaint has the names, and the one that is likely to be meant. */
vn_status   vn_policy_read(const char *option, const char *name, vn_policy *p, vn_error *err);
extern const char *const vn_policy_names; /* "f32|f64|...", for help texts */

#endif
