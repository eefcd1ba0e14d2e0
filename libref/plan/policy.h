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
 *
 * A role that has another format than the rest follows the name: "f32,cache=f16,products=bf16".
 *
 *   weights    matrices of `linear` are rounded to it
 *   products   both operands of `linear` and of attention's two products are rounded to it; what
 *              they are multiplied to is summed and stored as the name says
 *   linear     both operands of `linear` only; not beside products
 *   cache      keys and values are kept in it, and attention reads them so; "int8-prompt": only
 *              those of the first call, as where another machine runs the prompt
 *   softmax    attention's probabilities are rounded to it
 *
 * Its formats: tf32, f16, bf16, f8 (e4m3, saturated at 448), int8 (a row shares a scale, that of a
 * token, a head or an output), q8_0 (blocks of 32 share one), q8_0-rotated (the same after each
 * head was multiplied by a Hadamard matrix, as llama.cpp does since 2026; only a cache). Also only
 * of a cache: int8-token (all heads of a token share a scale), int8-channel (of keys, a number of a
 * head shares a scale over the tokens of a call; values as int8) and f8-scaled (as int8). int8 and
 * q8_0 as products: only of linear. Only of linear, and only of its inputs: int8-inputs (a token
 * shares a scale, its largest number over 127.5) and q8-inputs (blocks of 32, over 127). A ggml
 * run multiplies blocks by blocks: with a cache in q8_0, queries are rounded like keys.
 */
#pragma once

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

/* The parts of a run that may have a format of their own. */
typedef enum vn_role {
	VN_ROLE_WEIGHTS,
	VN_ROLE_PRODUCTS,
	VN_ROLE_LINEAR,
	VN_ROLE_CACHE,
	VN_ROLE_SOFTMAX,
	VN_N_ROLES,
	/* of a policy, no role: if not 0, numbers halfway between two of an 8-bit cache become the
	 * other one: engines do either (vn_policy_fine) */
	VN_OTHER_TIES = VN_N_ROLES,
	/* no role either: if not 0, only the tokens of the first call are kept in the cache's format */
	VN_CACHE_OF_PROMPT,
	VN_ROLES_ROOM
} vn_role;
/* In order of their error, smallest first; then those of inputs. */
typedef enum vn_role_format {
	VN_ROLE_AS_STORED,
	VN_ROLE_TF32,
	VN_ROLE_F16,
	VN_ROLE_BF16,
	VN_ROLE_Q8_0,
	VN_ROLE_Q8_0_ROTATED,
	VN_ROLE_INT8,
	VN_ROLE_INT8_TOKEN,
	VN_ROLE_INT8_CHANNEL,
	VN_ROLE_F8,
	VN_ROLE_F8_SCALED,
	VN_ROLE_INT8_INPUTS,
	VN_ROLE_Q8_INPUTS,
	VN_N_ROLE_FORMATS
} vn_role_format;

/* Is it a format of a cache alone? */
static inline bool vn_role_of_cache(vn_role_format f)
{
	return f == VN_ROLE_Q8_0_ROTATED || f == VN_ROLE_INT8_TOKEN || f == VN_ROLE_INT8_CHANNEL || f == VN_ROLE_F8_SCALED;
}

/* Is it a format of the inputs of a product alone, whose matrix stays as it is? */
static inline bool vn_role_of_inputs(vn_role_format f)
{
	return f == VN_ROLE_INT8_INPUTS || f == VN_ROLE_Q8_INPUTS;
}

typedef struct vn_policy {
	vn_dtype       storage;
	vn_dtype       sums; /* of linear */
	vn_products    products;
	vn_role_format role[VN_ROLES_ROOM];
} vn_policy;

static inline bool vn_policy_same(vn_policy a, vn_policy b)
{
	for (int i = 0; i < VN_N_ROLES; i++)
		if (a.role[i] != b.role[i])
			return false;
	return a.storage == b.storage && a.sums == b.sums && a.products == b.products &&
	       !a.role[VN_CACHE_OF_PROMPT] == !b.role[VN_CACHE_OF_PROMPT];
}

/* Has some role a format of its own? */
static inline bool vn_policy_mixed(vn_policy p)
{
	for (int i = 0; i < VN_N_ROLES; i++)
		if (p.role[i])
			return true;
	return false;
}

/* Returns the number of digits (vn_dtype_digits) that a number can have after a product: those of
 * the storage format, or of the coarsest format to which a product rounds its inputs (8-bit
 * integers count as bfloat16's 7). */
int       vn_policy_digits(vn_policy p);
/* Returns the more precise policy that a run in p is compared with, operation by operation: the
 * same products and roles, but in f32 (for 16-bit runs) or f64, attention without ggml's
 * roundings, and VN_OTHER_TIES. */
vn_policy vn_policy_fine(vn_policy p);

/* Returns the format of a value or state; wide: as in vn_state. */
vn_dtype vn_policy_dtype(vn_policy p, bool wide);

const char *vn_policy_name(vn_policy p); /* valid until the end of the program */
/* What differs from the name of its storage, in words: "cache in f16; all else f32". Returns
 * text. */
const char *vn_policy_words(vn_policy p, char *text, size_t room);
int         vn_policy_from_name(const char *name, vn_policy *p); /* 0 when unknown */
/* Same, and also accepts other engines' words: "fp16", "torch.bfloat16", "F16"..., in any case. */
int         vn_policy_from_word(const char *word, vn_policy *p);
/* Returns the format of a run in which only some operations round: "bf16" for "autocast-bf16" or
 * "mixed-bf16"; else NULL. Such a run rounds less than the policy that vn_policy_from_word returns
 * for it, so the policy's limits and floor hold. */
const char *vn_policy_partly(const char *word);
/* Reads the value of a user's `option`, one of the names "f32|f16|..." and, if they are all names,
 * formats of roles; the error lists these, and suggests the nearest. */
vn_status   vn_policy_read(const char *option, const char *names, const char *name, vn_policy *p, vn_error *err);
extern const char *const vn_policy_names; /* all of them: "f32|f64|..." */
