/* blas.c: see blas.h. The one file that knows OpenBLAS. */
#include "libref/ops/blas.h"

#include "libref/base/room.h"

#include <assert.h>
#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* VN_BLAS_LIBRARY is "libopenblas.so.0" or the name the build found. It has no slash, so the loader
 * searches its own folders and never the current one. VN_BLAS_PREFIX is prepended to each symbol in
 * builds against renamed packages. */
#ifdef VN_BLAS_PREFIX
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define BLAS(name)  JOIN(VN_BLAS_PREFIX, name)
#else
#define BLAS(name) name
#endif
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

enum {
	LIBRARY = 64 << 20, /* address space for loading it: 0.3.21 with libgfortran takes 41 MB */
	BUFFER = 128 << 20, /* bytes of working memory for each thread, as OpenBLAS requests on x86-64 and arm64 */
	MOST_BUFFERS = 128, /* Debian's build has twice this number */
	MARGIN = 32 << 20,  /* bytes for all later allocations */
};

static struct {
	pthread_mutex_t lock; /* for loading; callers of products have seen it done */
	void           *library;

	__typeof__(&BLAS(cblas_dgemm))              dgemm;
	__typeof__(&BLAS(openblas_get_corename))    core;
	__typeof__(&BLAS(openblas_get_config))      version;
	__typeof__(&BLAS(openblas_set_num_threads)) set_threads;

	/* OpenBLAS functions in no public header; missing from some builds. */
	void *(*memory_alloc)(int position);
	void (*memory_free)(void *buffer);
} blas = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- kernels ------------------------------------------------------------------------- */

/* Kernel families of OpenBLAS's x86 builds that use AVX2 or better. */
static const char *const wide[] = { "SkylakeX", "Cooperlake", "Sapphirerapids", "Haswell", "Zen", "Excavator" };

/* AVX2 kernels on an AVX-512 machine (Zen) may be chosen on purpose. Kernels without AVX2 on a
 * machine that has it are a mistake. */
const char *vn_blas_better(const char *core, int avx2, int avx512)
{
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
		if (strcasecmp(wide[i], core) == 0)
			return NULL;
	return !avx2 ? NULL : avx512 ? "SKYLAKEX" : "HASWELL";
}

static const char *better_here(const char *core)
{
#if defined(__x86_64__)
	return vn_blas_better(core, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
	                      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
	                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
#else
	(void)core;
	return NULL;
#endif
}

/* ---- loading ------------------------------------------------------------------------- */

/* Sets a variable; *was is its former value, NULL if it was not set.
 * Returns false without memory. */
static bool replace_variable(const char *name, const char *value, char **was)
{
	const char *now = getenv(name);

	*was = NULL;
	return (!now || (*was = strdup(now))) && setenv(name, value, 1) == 0;
}

static void put_back(const char *name, char *was)
{
	if (was)
		setenv(name, was, 1);
	else
		unsetenv(name);
	free(was);
}

/* While loading, OpenBLAS would start threads that take 128 MiB of address space each, and hang if
 * a thread cannot start. Child processes keep their own setting. */
static void *open_single(const char *core)
{
	char *threads, *kernels = NULL;
	void *library = NULL;

	if (replace_variable("OPENBLAS_NUM_THREADS", "1", &threads) &&
	    (!core || replace_variable("OPENBLAS_CORETYPE", core, &kernels)))
		library = dlopen(VN_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (core)
		put_back("OPENBLAS_CORETYPE", kernels);
	put_back("OPENBLAS_NUM_THREADS", threads);
	return library;
}

/* ISO C does not convert an object pointer to a function pointer. */
static void find_symbol(const char *name, void *function)
{
	void *symbol = dlsym(blas.library, name);

	memcpy(function, &symbol, sizeof symbol);
}

static bool find_functions(void)
{
	find_symbol(TEXT(BLAS(cblas_dgemm)), &blas.dgemm);
	find_symbol(TEXT(BLAS(openblas_get_corename)), &blas.core);
	find_symbol(TEXT(BLAS(openblas_get_config)), &blas.version);
	find_symbol(TEXT(BLAS(openblas_set_num_threads)), &blas.set_threads);
	find_symbol("blas_memory_alloc", &blas.memory_alloc);
	find_symbol("blas_memory_free", &blas.memory_free);
	return blas.dgemm && blas.core && blas.version && blas.set_threads;
}

static vn_status give_up(vn_status st)
{
	if (blas.library)
		dlclose(blas.library);
	blas.library = NULL;
	return st;
}

/* OpenBLAS chooses its kernels when it is loaded, so other kernels need a second load.
 * It is never unloaded otherwise. */
static vn_status load_library(vn_error *err)
{
	const char *better;

	if (!vn_room_for(LIBRARY))
		return vn_fail(err, VN_ERR_NOMEM,
		               "no address space to load OpenBLAS, which runs the model: raise the limit (ulimit -v)");
	blas.library = open_single(NULL);
	if (blas.library && find_functions() && !getenv("OPENBLAS_CORETYPE") && (better = better_here(blas.core()))) {
		dlclose(blas.library);
		blas.library = open_single(better);
	}
	if (!blas.library) {
		const char *why = dlerror();
		return vn_fail(err, VN_ERR_UNSUPPORTED, "OpenBLAS, which runs the model, cannot be loaded: %s",
		               why ? why : "no memory");
	}
	if (!find_functions())
		return give_up(vn_fail(err, VN_ERR_UNSUPPORTED,
		                       "%s is not OpenBLAS: it has no cblas_dgemm or no openblas_get_corename",
		                       VN_BLAS_LIBRARY));
	blas.set_threads(1); /* in case the program loaded it earlier */
	return VN_OK;
}

/* ---- working memory ------------------------------------------------------------------ */

static vn_status reserve_buffers(int threads, vn_error *err)
{
	void     *buffer[MOST_BUFFERS];
	int       n = 0;
	vn_status st = VN_OK;

	/* Holds all buffers at once, because a freed buffer is handed out again. */
	while (!st && blas.memory_alloc && blas.memory_free && n < threads && n < MOST_BUFFERS) {
		if (!vn_room_for(BUFFER))
			st = vn_fail(err, VN_ERR_NOMEM,
			             "no address space for OpenBLAS, which takes 128 MiB for each of %d "
			             "threads: raise the limit (ulimit -v), or use fewer threads",
			             threads);
		else
			buffer[n++] = blas.memory_alloc(0);
	}
	void *rest = st ? NULL : vn_room_keep((size_t)(threads - n) * BUFFER + MARGIN);
	if (!st && (!rest || !vn_room_for_threads(threads))) /* `threads` includes ours; one more writes the recording */
		st = vn_fail(err, VN_ERR_NOMEM,
		             "%d threads cannot be started: raise the limit (ulimit -v, ulimit -u), or use fewer threads",
		             threads);
	vn_room_return(rest, (size_t)(threads - n) * BUFFER + MARGIN);
	while (n > 0)
		blas.memory_free(buffer[--n]);
	return st;
}

vn_status vn_blas_prepare(int threads, vn_error *err)
{
	vn_status st = VN_OK;

	pthread_mutex_lock(&blas.lock);
	if (!blas.library)
		st = load_library(err);
	st = st ? st : reserve_buffers(threads, err);
	pthread_mutex_unlock(&blas.lock);
	return st;
}

/* ---- what it is for ------------------------------------------------------------------ */

void vn_gemm_f64(vn_gemm_size size, double scale, const double *a, const double *b, double *c, int c_row)
{
	const bool turned = size.layout == VN_BLAS_TRANSPOSED;

	assert(blas.library);
	blas.dgemm(CblasRowMajor, CblasNoTrans, turned ? CblasTrans : CblasNoTrans, size.m, size.n, size.k, scale, a,
	           size.k, b, turned ? size.k : size.n, 0.0, c, c_row);
}

const char *vn_blas_core(void)
{
	return blas.core();
}
const char *vn_blas_version(void)
{
	return blas.version();
}
