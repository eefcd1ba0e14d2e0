/* blas.c: see blas.h. */
#include "libref/ops/blas.h"

#include "libref/base/room.h"

#include <cblas.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Kernel families of OpenBLAS's x86 builds that use AVX2 or more. */
static const char *const wide[] = { "SkylakeX", "Cooperlake", "Sapphirerapids", "Haswell", "Zen", "Excavator" };

/* AVX2 kernels on an AVX-512 machine (Zen) are a choice; kernels without AVX2 on
 * a machine that has it are the trap. */
const char *vn_blas_better(const char *core, int avx2, int avx512)
{
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
		if (strcasecmp(wide[i], core) == 0)
			return NULL;
	return !avx2 ? NULL : avx512 ? "SKYLAKEX" : "HASWELL";
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
	int changed = set("OPENBLAS_CORETYPE", better_here()) | set("OPENBLAS_NUM_THREADS", "1");

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

/* OpenBLAS's own, in no header of it; absent from some builds. */
extern void *blas_memory_alloc(int position) __attribute__((weak));
extern void  blas_memory_free(void *buffer) __attribute__((weak));

enum {
	MOST_BUFFERS = 128,  /* Debian's build has twice as many places */
	BUFFER = 128 << 20,  /* bytes of one, as OpenBLAS asks for it on x86-64 and arm64 */
	MARGIN = 32 << 20,   /* bytes, for all else that is yet to come */
};

/* Of a thread of OpenMP's, which ends the program where it cannot make one. */
static size_t stack_bytes(void)
{
	pthread_attr_t attr;
	size_t         bytes = 0;

	if (pthread_attr_init(&attr) == 0) {
		pthread_attr_getstacksize(&attr, &bytes);
		pthread_attr_destroy(&attr);
	}
	return bytes;
}

vn_status vn_blas_reserve(int threads, vn_error *err)
{
	void     *buffer[MOST_BUFFERS];
	int       n = 0;
	vn_status st = VN_OK;

	/* Held all at once: a buffer that is free is handed out again. */
	while (!st && n < threads && n < MOST_BUFFERS) {
		if (!vn_room_for(BUFFER))
			st = vn_fail(err, VN_ERR_NOMEM, "no address space for OpenBLAS, which takes 128 MiB for each of %d threads: raise "
			             "the limit (ulimit -v), or use fewer threads", threads);
		else if (!blas_memory_alloc || !blas_memory_free)
			break;
		else
			buffer[n++] = blas_memory_alloc(0);
	}
	if (!st && !vn_room_for((size_t)(threads + 1) * stack_bytes() + MARGIN)) /* one is a recording's */
		st = vn_fail(err, VN_ERR_NOMEM, "no address space for the stacks of %d threads: raise the limit (ulimit -v), or use fewer "
		             "threads", threads);
	while (n > 0)
		blas_memory_free(buffer[--n]);
	return st;
}
