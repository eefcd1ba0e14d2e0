/* limits_own.c: finds and reads the limits that come with vernier, by precision or by weight
 * format. See limits.h. */
#include "compare/limits/limits.h"

#include "libref/family/family.h"
#include "libref/plan/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The engine's own word for its precision. */
static const char *file_for(const char *precision, bool gdn)
{
	vn_policy p;
	if (!vn_policy_from_word(precision, &p))
		return NULL;
	if (p.products || (vn_policy_mixed(p) && vn_dtype_digits(p.storage) > vn_dtype_digits(VN_F16)))
		return gdn ? "ggml-gdn.yaml" : "ggml.yaml";
	if (p.storage == VN_F16)
		return p.sums == VN_F16 ? (gdn ? "fp16-acc16-gdn.yaml" : "fp16-acc16.yaml")
		       : gdn            ? "fp16-acc32-gdn.yaml"
		                        : "fp16-acc32.yaml";
	return p.storage != VN_BF16 ? "fp32.yaml" : gdn ? "bf16-gdn.yaml" : "bf16.yaml";
}

/* Coarsest first, because a file of several block formats has the error of the coarsest. Q4_K files
 * may use blocks of 4 or 5 bits for rows that are no multiple of 256. */
static const char *const blocks[][2] = {
	{ "Q4_K", "q4_k.yaml" },
	{ "Q5_K", "q5_k.yaml" },
	{ "Q6_K", "q6_k.yaml" },
	{ "Q8_0", "q8_0.yaml" },
};
enum { N_BLOCKS = sizeof blocks / sizeof *blocks };

const char *vn_limits_of_blocks(const char *format, const char *family)
{
	int  coarsest = N_BLOCKS;
	bool others = false;
	if (strncmp(format, "gguf ", 5) != 0)
		return NULL;
	for (const char *p = format + 5; *p; p += strspn(p, ", ")) {
		const size_t n = strcspn(p, ", ");
		int          k = 0;
		while (k < N_BLOCKS && (strlen(blocks[k][0]) != n || memcmp(p, blocks[k][0], n) != 0))
			k++;
		coarsest = k < coarsest ? k : coarsest;
		others = others || (*p == 'Q' && k == N_BLOCKS);
		p += n;
	}
	if (coarsest == N_BLOCKS || (others && coarsest > 0))
		return NULL;
	const bool gdn = vn_family_is_recurrent(family);
	return !gdn || coarsest == 0 ? blocks[coarsest][1] : coarsest == N_BLOCKS - 1 ? "q8_0-gdn.yaml" : NULL;
}

vn_status vn_limits_own(const char *precision, const char *family, vn_limits **l, vn_error *err)
{
	const char *name = file_for(precision, vn_family_is_recurrent(family));
	return name ? vn_limits_shipped(name, l, err)
	            : vn_fail(err, VN_ERR_USAGE,
	                      "no shipped limits for precision '%.40s'; give --limits FILE, or --precision %s", precision,
	                      vn_policy_names);
}

vn_status vn_limits_bitwise(vn_limits **l, vn_error *err)
{
	static const char text[] = "version: 1\nname: bitwise\n"
							   "defaults: { differing: 0, nonfinite: 0, why: the same bits in every element }\n";
	const vn_status   st = vn_limits_built_in("--bitwise", text, sizeof text - 1, l, err);
	/* Allows any number of non-finite values. A file cannot say this: `none` means 0 there. */
	if (!st)
		(*l)->rule[0]->key[VN_PLAIN][VN_M_NONFINITE].value = (double)INFINITY;
	return st;
}

vn_status vn_limits_built_in(const char *name, const char *text, size_t n, vn_limits **l, vn_error *err)
{
	const vn_status st = vn_limits_parse(name, text, n, l, err);
	if (!st) /* the user did not write these rules and cannot fix their warnings */
		vn_lines_free(&(*l)->warnings);
	for (int i = 0; !st && i < (*l)->n_rules; i++) {
		vn_rule *r = (*l)->rule[i];
		r->line = 0;
		for (int f = 0; f < VN_N_FORMS; f++)
			for (int m = 0; m < VN_N_METRICS; m++)
				r->key[f][m].line = 0;
	}
	return st;
}
