/* blas.c: see blas.h. */
#include "libref/ops/blas.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Kernel families of OpenBLAS's x86 builds, by what they use. */
static const struct { const char *core; int avx2, avx512; } cores[] = {
	{ "SkylakeX", 1, 1 }, { "Cooperlake", 1, 1 }, { "Sapphirerapids", 1, 1 },
	{ "Haswell", 1, 0 }, { "Zen", 1, 0 }, { "Excavator", 1, 0 },
};

const char *vn_blas_better(const char *core, int avx2, int avx512)
{
	int has_avx2 = 0, has_avx512 = 0;

	for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
		if (strcasecmp(cores[i].core, core) == 0) {
			has_avx2 = cores[i].avx2;
			has_avx512 = cores[i].avx512;
		}
	/* AVX2 kernels on an AVX-512 machine (Zen) are a choice; kernels without
	 * AVX2 on a machine that has it are the trap. */
	(void)has_avx512;
	if (has_avx2 || !avx2)
		return NULL;
	return avx512 ? "SKYLAKEX" : "HASWELL";
}

/* 1 when it was not set and now is. */
static int set(const char *name, const char *value)
{
	return value && !getenv(name) && setenv(name, value, 1) == 0;
}

static const char *better_here(void)
{
#if defined(__x86_64__)
	return vn_blas_better(openblas_get_corename(), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
	                      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
	                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
#else
	return NULL;
#endif
}

void vn_settle(char **argv)
{
	int changed = set("OPENBLAS_CORETYPE", better_here());

	if (!getenv("OMP_WAIT_POLICY")) {
		changed |= set("GOMP_SPINCOUNT", "2000");
		changed |= set("KMP_BLOCKTIME", "0");
	}
	if (changed)
		execv("/proc/self/exe", argv); /* comes back only on failure: then we are slow, not wrong */
}

const char *vn_blas_core(void)    { return openblas_get_corename(); }
const char *vn_blas_version(void) { return openblas_get_config(); }

void vn_blas_single(void)
{
	openblas_set_num_threads(1);
}
