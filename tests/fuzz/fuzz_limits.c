/* fuzz_limits.c: any bytes as a limits file: read, or refused with one line that says where. */
#include "compare/limits/limits.h"
#include "tests/fuzz/mutate.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_limits   *l = NULL;
	vn_limit_set set;
	vn_error     err = { "" };
	if (vn_limits_parse("fuzz.yaml", (const char *)data, size, &l, &err)) {
		if (l || !fuzz_one_line(err.text))
			abort(); /* not an assert: release builds have none */
		return 0;
	}
	l->layers = 7;
	vn_limits_for(l, "layer3.q_rope", &set);
	for (int f = 0; f < VN_N_FORMS; f++)
		for (int m = 0; m < VN_N_METRICS; m++)
			if (set.limit[f][m].rule && !isfinite(set.limit[f][m].value))
				abort(); /* a limit that nothing breaks */
	vn_limits_for(l, "logits", &set);
	vn_limits_destroy(l);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"version: 1\nname: x\ndefaults: { nmse_over_floor: 4, nonfinite: 0, without_floor: { nmse: 2.0e-3 }, "
	"worst_token_nmse: { first: 1.0e-6, last: 1.0e-3 }, why: \"a\" }\n"
	"rules:\n  - match: \"layer*.{q,k}_rope\"\n    cosine: 0.99999\n    max_abs: 2.5e-2\n    why: >\n      folded\n"
	"  - { match: logits, kl_mean: 1.0e-3, missing: allowed, nmse: none, why: measured }\n",
};

int main(int argc, char **argv)
{
	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
