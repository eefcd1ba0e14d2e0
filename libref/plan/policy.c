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
