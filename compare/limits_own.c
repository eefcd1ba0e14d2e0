/* limits_own.c: vernier's own limits for a precision, see limits.h. */
#include "compare/limits.h"

#include <limits.h>
#include <string.h>

/* As engines write it. */
static const char *file_for(const char *precision)
{
	static const struct { const char *precision, *file; } own[] = {
		{ "f16", "fp16-acc32.yaml" }, { "f16-acc16", "fp16-acc16.yaml" }, { "fp16", "fp16-acc32.yaml" },
		{ "float16", "fp16-acc32.yaml" }, { "torch.float16", "fp16-acc32.yaml" }, { "half", "fp16-acc32.yaml" },
		{ "f32", "fp32.yaml" }, { "fp32", "fp32.yaml" }, { "float32", "fp32.yaml" }, { "torch.float32", "fp32.yaml" },
		{ "f64", "fp32.yaml" },
		{ "bf16", "bf16.yaml" }, { "bfloat16", "bf16.yaml" }, { "torch.bfloat16", "bf16.yaml" },
	};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strcmp(own[i].precision, precision) == 0)
			return own[i].file;
	return NULL;
}

vn_status vn_limits_shipped(const char *file, vn_limits **l, vn_error *err)
{
	char      path[PATH_MAX];
	vn_status st;

	if ((st = vn_limits_find(file, path, err)) || (st = vn_limits_read(path, l, err)))
		return st;
	for (int i = 0; i < (*l)->n_rules; i++)
		(*l)->rule[i]->shipped = true;
	return VN_OK;
}

vn_status vn_limits_own(const char *precision, vn_limits **l, vn_error *err)
{
	const char *name = file_for(precision);
	return name ? vn_limits_shipped(name, l, err)
	            : vn_fail(err, VN_ERR_USAGE, "no limits of vernier's own for precision '%.40s'; give --limits FILE", precision);
}
