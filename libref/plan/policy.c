/* policy.c: see policy.h. */
#include "libref/plan/policy.h"

#include <string.h>

static const struct { const char *name; vn_policy policy; } table[] = {
	{ "f32",       { VN_F32, VN_F32 } },
	{ "f64",       { VN_F64, VN_F64 } },
	{ "f16",       { VN_F16, VN_F32 } },
	{ "f16-acc16", { VN_F16, VN_F16 } },
	{ "bf16",      { VN_BF16, VN_F32 } },
};

const char *const vn_policy_names = "f32|f64|f16|f16-acc16|bf16";

vn_dtype vn_policy_dtype(vn_policy p, bool wide)
{
	return wide && p.storage != VN_F64 ? VN_F32 : p.storage;
}

const char *vn_policy_name(vn_policy p)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].policy.storage == p.storage && table[i].policy.sums == p.sums)
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

int vn_policy_from_word(const char *word, vn_policy *p)
{
	static const char *const other[][2] = {
		{ "fp16", "f16" }, { "float16", "f16" }, { "half", "f16" }, { "fp32", "f32" }, { "float32", "f32" }, { "float", "f32" },
		{ "fp64", "f64" }, { "float64", "f64" }, { "double", "f64" }, { "bfloat16", "bf16" },
	};
	char lower[16] = "";
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
