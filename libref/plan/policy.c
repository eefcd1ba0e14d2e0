/* policy.c: see policy.h. */
#include "libref/plan/policy.h"

#include "libref/base/nearest.h"
#include "libref/base/text.h"

#include <string.h>

/* clang-format off */
static const struct { const char *name; vn_policy policy; } table[] = {
	{ "f32",          { VN_F32, VN_F32, VN_PRODUCTS_PLAIN } },
	{ "f64",          { VN_F64, VN_F64, VN_PRODUCTS_PLAIN } },
	{ "f16",          { VN_F16, VN_F32, VN_PRODUCTS_PLAIN } },
	{ "f16-acc16",    { VN_F16, VN_F16, VN_PRODUCTS_PLAIN } },
	{ "bf16",         { VN_BF16, VN_F32, VN_PRODUCTS_PLAIN } },
	{ "ggml",         { VN_F32, VN_F32, VN_PRODUCTS_GGML } },
	{ "ggml-kv16",    { VN_F32, VN_F32, VN_PRODUCTS_GGML_KV16 } },
	{ "ggml-flash16", { VN_F32, VN_F32, VN_PRODUCTS_GGML_FLASH16 } },
};
/* clang-format on */

const char *const vn_policy_names = "f32|f64|f16|f16-acc16|bf16|ggml|ggml-kv16|ggml-flash16";

vn_dtype vn_policy_dtype(vn_policy p, bool wide)
{
	return wide && p.storage != VN_F64 ? VN_F32 : p.storage;
}

int vn_policy_digits(vn_policy p)
{
	return vn_dtype_digits(p.products && p.storage == VN_F32 ? VN_BF16 : p.storage);
}

vn_policy vn_policy_fine(vn_policy p)
{
	const vn_dtype in = p.storage == VN_F16 || p.storage == VN_BF16 ? VN_F32 : VN_F64;
	return (vn_policy) { in, in, p.products ? VN_PRODUCTS_GGML : VN_PRODUCTS_PLAIN };
}

const char *vn_policy_name(vn_policy p)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (vn_policy_same(table[i].policy, p))
			return table[i].name;
	return "unknown";
}

int vn_policy_from_name(const char *name, vn_policy *p)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(table[i].name, name) == 0) {
			*p = table[i].policy;
			return 1;
		}
	return 0;
}

const char *vn_policy_partly(const char *word)
{
	static const char *const before[] = { "autocast-", "mixed-" };
	for (size_t i = 0; i < sizeof before / sizeof *before; i++)
		if (strncmp(word, before[i], strlen(before[i])) == 0)
			return word + strlen(before[i]);
	return NULL;
}

int vn_policy_from_word(const char *word, vn_policy *p)
{
	static const char *const other[][2] = {
		{ "fp16", "f16" },  { "float16", "f16" }, { "half", "f16" },    { "fp32", "f32" },   { "float32", "f32" },
		{ "float", "f32" }, { "fp64", "f64" },    { "float64", "f64" }, { "double", "f64" }, { "bfloat16", "bf16" },
	};
	char lower[16] = "";
	word = vn_policy_partly(word) ? vn_policy_partly(word) : word;
	if (strncmp(word, "torch.", 6) == 0)
		word += 6;
	if (strlen(word) >= sizeof lower)
		return 0;
	for (size_t i = 0; word[i]; i++)
		lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] - 'A' + 'a' : word[i]);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (strcmp(other[i][0], lower) == 0)
			return vn_policy_from_name(other[i][1], p);
	return vn_policy_from_name(lower, p);
}

vn_status vn_policy_read(const char *option, const char *names, const char *name, vn_policy *p, vn_error *err)
{
	vn_nearest near;
	char       all[120];

	if (vn_text_is_word(names, name) && vn_policy_from_name(name, p))
		return VN_OK;
	vn_nearest_start(&near, name);
	vn_nearest_try_words(&near, names);
	/* the suggestion for a word at equal distances */
	if (vn_policy_from_word(name, p) && vn_text_is_word(names, vn_policy_name(*p)))
		vn_nearest_settle(&near, vn_policy_name(*p));
	return vn_fail(err, VN_ERR_USAGE, "%s takes %s, not '%s'%s", option, vn_text_words(names, all, sizeof all), name,
	               vn_nearest_hint(&near));
}
