/* policy.h: a precision policy: the formats in which a run stores and accumulates.
 *
 *   name          stored in   products summed in   everything else computed in
 *   f64           f64         f64                  f64
 *   f32           f32         f32 or better        f32 or better
 *   f16           f16         f32 or better        f32
 *   f16-acc16     f16         f16                  f32
 *   bf16          bf16        f32 or better        f32
 *   ggml          f32         f32 or better        f32; products round their inputs (vn_products)
 *   ggml-kv16     the same, with keys and values in f16
 *   ggml-flash16  the same, with flash attention over them
 *
 * "Stored" means every named output and every weight: each is rounded once to that format.
 * "Products" are those of `linear`. Inside a norm, a rotation or an attention (scores, softmax and
 * the sum over values), 16-bit policies compute in float32 from stored inputs and round the result
 * once. With f16-acc16, a linear's running sum is rounded to f16 after every term; the bias is
 * added last, also rounded.
 *
 * What else ggml's CPU backend rounds: specs/models.md, 3.1.
 */
#ifndef VN_LIBREF_PLAN_POLICY_H
#define VN_LIBREF_PLAN_POLICY_H

#include "libref/base/dtype.h"
#include "libref/base/error.h"

#include <stdbool.h>

typedef enum vn_products {
	VN_PRODUCTS_PLAIN, /* inputs as stored */
	/* inputs of a linear are rounded according to its weight's format (libref/ops/ggml.h) */
	VN_PRODUCTS_GGML,
	/* also: attention's keys and values are float16, as are the queries and probabilities they are
	 * multiplied by */
	VN_PRODUCTS_GGML_KV16,
	/* also: keys and values are float16, as is the running sum over keys of the context, for fewer
	 * than 64 tokens */
	VN_PRODUCTS_GGML_FLASH16
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

/* Returns the number of digits (vn_dtype_digits) that a number can have after a product: those of
 * the storage format, or of the coarsest format to which a product rounds its inputs (8-bit
 * integers count as bfloat16's 7). */
int       vn_policy_digits(vn_policy p);
/* Returns the more precise policy that a run in p is compared with, operation by operation: the
 * same products, but in f32 (for 16-bit runs) or f64, and attention without roundings. */
vn_policy vn_policy_fine(vn_policy p);

/* Returns the format of a value or state; wide: as in vn_state. */
vn_dtype vn_policy_dtype(vn_policy p, bool wide);

const char *vn_policy_name(vn_policy p);
int         vn_policy_from_name(const char *name, vn_policy *p); /* 0 when unknown */
/* Same, and also accepts other engines' words: "fp16", "torch.bfloat16", "F16"..., in any case. */
int         vn_policy_from_word(const char *word, vn_policy *p);
/* Returns the format of a run in which only some operations round: "bf16" for "autocast-bf16" or
 * "mixed-bf16"; else NULL. Such a run rounds less than the policy that vn_policy_from_word returns
 * for it, so the policy's limits and floor hold. */
const char *vn_policy_partly(const char *word);
/* Reads the value of a user's `option`, one of the names "f32|f16|..."; the error lists these, and
 * suggests the nearest. */
vn_status   vn_policy_read(const char *option, const char *names, const char *name, vn_policy *p, vn_error *err);
extern const char *const vn_policy_names; /* all of them: "f32|f64|..." */

#endif
