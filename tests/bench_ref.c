/* bench_ref.c: the reference pass against the bare products it is made of.
 *
 *   bench_ref MODEL [TOKENS [THREADS [ROUNDS]]]
 *
 * In one run and turn about: cblas_sgemm on every shape the plan's linear nodes
 * have (float32 operands ready in memory, OpenBLAS's own threads), the forward
 * pass without taps, and the forward pass recording every default point.
 * Prints the median of each, the two ratios and the peak memory. */
#include "capture/store/store.h"
#include "libref/base/progress.h"
#include "libref/base/spin.h"
#include "libref/exec/ref.h"
#include "libref/model/model.h"
#include "libref/ops/blas.h"
#include "tests/median.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_ROUNDS = 9 };

static void fail(const vn_error *err)
{
	fprintf(stderr, "bench_ref: %s\n", err->text);
	exit(2);
}

static void *need(size_t bytes)
{
	void *p = malloc(bytes);
	if (!p) {
		fprintf(stderr, "bench_ref: no memory for %zu bytes\n", bytes);
		exit(2);
	}
	return p;
}

/* Every linear of the plan, once, in order. */
static double bare_products(const vn_plan *p, int64_t T, int threads)
{
	size_t x = 0, w = 0, y = 0;

	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_LINEAR) {
			const vn_shape *s = &p->weight[p->node[i].w[0]].shape;
			size_t          M = (size_t)s->dim[0], N = (size_t)s->dim[1];
			x = N * (size_t)T > x ? N * (size_t)T : x;
			w = M * N > w ? M * N : w;
			y = M * (size_t)T > y ? M * (size_t)T : y;
		}
	float *X = need(x * 4), *W = need(w * 4), *Y = need(y * 4);
	for (size_t i = 0; i < x; i++)
		X[i] = (float)(i % 251) * 0.01f - 1.0f;
	for (size_t i = 0; i < w; i++)
		W[i] = (float)(i % 241) * 0.01f - 1.0f;
	memset(Y, 0, y * 4);

	openblas_set_num_threads(threads);
	double start = vn_seconds();
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_LINEAR) {
			const vn_shape *s = &p->weight[p->node[i].w[0]].shape;
			int             M = (int)s->dim[0], N = (int)s->dim[1];
			cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)T, M, N, 1.0f, X, N, W, N, 0.0f, Y, M);
		}
	double took = vn_seconds() - start;
	openblas_set_num_threads(1);
	free(X);
	free(W);
	free(Y);
	return took;
}

static double pass(const vn_model *m, vn_ref *r, const int32_t *ids, int64_t T, bool record, const char *path)
{
	const vn_plan *p = vn_model_plan(m);
	vn_error       err = { "" };
	vn_store      *store = NULL;
	bool          *want = need((size_t)p->n_values * sizeof *want);
	vn_taps        taps = { .want = want, .rows = VN_ROWS_ALL };
	double         start = vn_seconds();

	vn_ref_reset(r);
	if (record) {
		if (vn_taps_choose(p, NULL, 0, -1, -1, want, &err) || vn_store_create(path, true, p, &store, &err) ||
		    vn_store_step(store, 0, 0, T, 0, T, &err))
			fail(&err);
		taps.sink = vn_store_sink(store);
	}
	if (vn_ref_forward(r, ids, T, record ? &taps : NULL, &err))
		fail(&err);
	if (record && vn_store_commit(&store, &err))
		fail(&err);
	free(want);
	return vn_seconds() - start;
}

/* The OpenBLAS that is linked for the bare products has chosen its kernels by now. vernier loads
 * one that has chosen badly once more (libref/ops/blas.c); here the whole program begins again with
 * that choice. */
static void choose_kernels(char **argv)
{
#if defined(__x86_64__)
	const char *better = vn_blas_better(openblas_get_corename(),
	                                    __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
	                                    __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
	                                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
	if (better && setenv("OPENBLAS_CORETYPE", better, 0) == 0 && !getenv("BENCH_REF_AGAIN") &&
	    setenv("BENCH_REF_AGAIN", "1", 1) == 0)
		execv("/proc/self/exe", argv);
#else
	(void)argv;
#endif
}

static double peak_gib(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss / (1024.0 * 1024.0);
}

int main(int argc, char **argv)
{
	choose_kernels(argv);
	vn_spin_briefly(argv);
	if (argc < 2 || argc > 5) {
		fprintf(stderr, "usage: bench_ref MODEL [TOKENS [THREADS [ROUNDS]]]\n");
		return 2;
	}
	const int64_t T = argc > 2 ? atol(argv[2]) : 512;
	const int     threads = argc > 3 ? atoi(argv[3]) : 2;
	int           rounds = argc > 4 ? atoi(argv[4]) : 3;
	vn_error      err = { "" };
	vn_model     *m;
	vn_ref       *r;
	double        bare[MAX_ROUNDS], plain[MAX_ROUNDS], recorded[MAX_ROUNDS], peak = 0;
	char          path[] = "bench_ref.h5";

	rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	if (vn_model_open(argv[1], &m, &err))
		fail(&err);
	vn_ref_options o = { .policy = { VN_F32, VN_F32, 0 }, .threads = threads };
	if (vn_ref_create(vn_model_plan(m), vn_model_weights(m), &o, &r, &err))
		fail(&err);
	double weights = 0;
	for (int i = 0; i < vn_model_plan(m)->n_weights; i++) {
		const vn_tensor *w = &vn_model_weights(m)[i];
		weights += (double)vn_dtype_bytes(w->dtype, (size_t)vn_shape_count(&w->shape)) / (1 << 30);
	}
	int32_t *ids = need((size_t)T * sizeof *ids);
	for (int64_t t = 0; t < T; t++)
		ids[t] = (int32_t)((t * 7919 + 13) % vn_model_plan(m)->vocab);

	pass(m, r, ids, T, false, path); /* page the weights in */
	pass(m, r, ids, T, true, path);
	peak = peak_gib(); /* before the bare products take memory of their own */
	for (int i = 0; i < rounds; i++) {
		bare[i] = bare_products(vn_model_plan(m), T, threads);
		plain[i] = pass(m, r, ids, T, false, path);
		recorded[i] = pass(m, r, ids, T, true, path);
	}
	unlink(path);
	double b = median(bare, rounds), p = median(plain, rounds), c = median(recorded, rounds);
	printf("%s, %lld tokens, %d threads, %s, median of %d\n", argv[1], (long long)T, threads, vn_blas_core(), rounds);
	printf("bare cblas_sgemm     %7.3f s\n", b);
	printf("forward, no taps     %7.3f s   %.2f times the bare products (limit 1.25)\n", p, p / b);
	printf("forward, recording   %7.3f s   %.2f times the forward without (limit 1.50)\n", c, c / p);
	printf("peak memory          %7.2f GiB = weights %.2f + %.2f GiB (limit 1.50)\n", peak, weights, peak - weights);
	vn_ref_destroy(r);
	vn_model_close(m);
	free(ids);
	return p / b <= 1.25 && c / p <= 1.5 && peak - weights <= 1.5 ? 0 : 1;
}
