/* bench_ref.c: the reference pass against the bare products it is made of.
 *
 *   bench_ref [--json] [--pass] MODEL [TOKENS [THREADS [ROUNDS]]]
 *
 * Measures in turn, in one run: cblas_sgemm on every shape the plan's linear nodes have (float32
 * operands ready in memory, OpenBLAS's own threads), and for each expert on the rows of tokens that
 * the pass routes to it, the forward pass without taps, the forward
 * pass recording every default point, and a plain write of as many bytes as it recorded, synced as
 * a recording is (fsync). Then the last two once more in memory (/dev/shm), which no disk slows
 * down. --pass: only the first two. The recording goes into the folder where this runs. Prints the
 * median of each, the ratios and the peak memory; --json prints every round. Exit status 1: a limit
 * is exceeded. */
#include "capture/store/store.h"
#include "libref/base/json.h"
#include "libref/base/progress.h"
#include "libref/base/spin.h"
#include "libref/exec/convert.h"
#include "libref/exec/ref.h"
#include "libref/model/model.h"
#include "libref/ops/blas.h"
#include "tests/support/median.h"

#include <cblas.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MAX_ROUNDS = 9 };

static const double RECORDING = 1.3; /* times pass and write, as in tests/bench/bench_record.py */

static void fail(const vn_error *err)
{
	fprintf(stderr, "bench_ref: %s\n", err->text);
	exit(2);
}

static void *allocate(size_t bytes)
{
	void *p = malloc(bytes);
	if (!p) {
		fprintf(stderr, "bench_ref: no memory for %zu bytes\n", bytes);
		exit(2);
	}
	return p;
}

/* Of one thread, the time of the processor, which other programs do not lengthen. */
static double seconds(int threads)
{
	struct timespec t;

	if (threads > 1 || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		return vn_seconds();
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A product y = x w^T: w (M,N), x (T,N). */
typedef struct product {
	int  T, M, N;
	bool expert;
} product;

static product *computed; /* in the order of the plan */
static int      n_products;

static void add_product(int64_t T, const vn_shape *w, bool transposed, bool expert)
{
	if (n_products % 1024 == 0 && !(computed = realloc(computed, ((size_t)n_products + 1024) * sizeof *computed)))
		exit(2);
	computed[n_products++] = (product) { (int)T, (int)w->dim[transposed], (int)w->dim[!transposed], expert };
}

typedef struct observed {
	const vn_plan *p;
	bool           done; /* one pass is enough */
} observed;

/* Lists the products of a node that has run. */
static void list_products(void *ctx, int node, int64_t first, int64_t tokens, void *ids)
{
	observed      *o = ctx;
	const vn_plan *p = o->p;
	const vn_node *n = &p->node[node];

	for (int i = node; !o->done && n->op == VN_OP_TOP_K && i < p->n_nodes; i++) {
		const vn_node *e = &p->node[i];
		if (e->op != VN_OP_EXPERTS || e->in[VN_EXPERTS_IDS] != n->out[0])
			continue;
		const int64_t all = tokens * vn_value_row(&p->value[n->out[0]]);
		for (int x = 0; x < e->c.experts.experts; x++) {
			int64_t T = 0;
			for (int64_t k = 0; k < all; k++)
				T += ((const float *)ids)[k] == (float)x;
			for (int kind = 0; T && kind < VN_EXPERT_KINDS; kind++)
				add_product(T, &p->weight[e->w[kind]].shape, false, true);
		}
	}
	if (!o->done && n->op == VN_OP_LINEAR && first == 0)
		add_product(0, &p->weight[n->w[0]].shape, n->c.linear.transposed != 0, false);
}

/* Every product of the pass, once, in order. The weights of experts follow one another in memory
 * that no cache holds, as in a model. */
static double bare_products(int64_t T, int threads)
{
	const size_t far = (size_t)64 << 20;
	size_t       x = 0, w = 0, y = 0, at = 0;

	for (int i = 0; i < n_products; i++) {
		const product *p = &computed[i];
		const size_t   rows = (size_t)(p->expert ? p->T : T), M = (size_t)p->M, N = (size_t)p->N;
		x = N * rows > x ? N * rows : x;
		w = M * N + (p->expert ? far : 0) > w ? M * N + (p->expert ? far : 0) : w;
		y = M * rows > y ? M * rows : y;
	}
	float *X = allocate(x * 4), *W = allocate(w * 4), *Y = allocate(y * 4);
	for (size_t i = 0; i < x; i++)
		X[i] = (float)(i % 251) * 0.01f - 1.0f;
	for (size_t i = 0; i < w; i++)
		W[i] = (float)(i % 241) * 0.01f - 1.0f;
	memset(Y, 0, y * 4);

	openblas_set_num_threads(threads);
	double start = seconds(threads);
	for (int i = 0; i < n_products; i++) {
		const product *p = &computed[i];
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p->expert ? p->T : (int)T, p->M, p->N, 1.0f, X, p->N,
		            p->expert ? W + at : W, p->N, 0.0f, Y, p->M);
		at = p->expert ? (at + (size_t)p->M * (size_t)p->N) % far : at;
	}
	double took = seconds(threads) - start;
	openblas_set_num_threads(1);
	free(X);
	free(W);
	free(Y);
	return took;
}

static double pass(const vn_model *m, vn_ref *r, const int32_t *ids, int64_t T, bool record, int threads,
                   const char *path)
{
	const vn_plan *p = vn_model_plan(m);
	vn_error       err = { "" };
	vn_store      *store = NULL;
	bool          *want = allocate((size_t)p->n_values * sizeof *want);
	vn_taps        taps = { .want = want, .rows = VN_ROWS_ALL };
	double         start = seconds(threads);

	vn_ref_ops.reset(r);
	if (record) {
		if (vn_taps_choose(p, NULL, 0, NULL, want, &err) || vn_store_create(path, true, p, &store, &err) ||
		    vn_store_step(store, &(vn_step) { 0, 0, T, 0, T }, &err))
			fail(&err);
		vn_store_copier(store, vn_copy, threads);
		taps.sink = vn_store_sink(store);
	}
	if (vn_ref_ops.forward(r, ids, T, record ? &taps : NULL, &err))
		fail(&err);
	if (record && vn_store_commit(&store, &err))
		fail(&err);
	free(want);
	return seconds(threads) - start;
}

/* A new file of as many bytes as the one at path, by write(2) from memory. *sync: the seconds of
 * fsync, which are part of the result. */
static double plain_write(const char *path, const char *copy, double *sync)
{
	enum { PIECE = 1 << 20 };
	struct stat s = { .st_size = 0 };
	char       *piece = allocate(PIECE);

	memset(piece, 1, PIECE);
	stat(path, &s);
	const double start = vn_seconds();
	int          fd = open(copy, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	for (off_t at = 0; fd >= 0 && at < s.st_size; at += PIECE)
		if (write(fd, piece, s.st_size - at < PIECE ? (size_t)(s.st_size - at) : PIECE) <= 0) {
			perror("bench_ref");
			exit(2);
		}
	const double written = vn_seconds();
	if (fd < 0 || fsync(fd) || close(fd))
		exit(2);
	*sync = vn_seconds() - written;
	const double took = vn_seconds() - start;
	unlink(copy);
	free(piece);
	return took;
}

/* Has /dev/shm room for two files as large as the one at path? */
static bool fits_in_memory(const char *path)
{
	struct statvfs v;
	struct stat    s;

	return stat(path, &s) == 0 && statvfs("/dev/shm", &v) == 0 &&
	       (double)v.f_bavail * (double)v.f_frsize > 2.2 * (double)s.st_size;
}

static json_t *all_of(const double *x, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_real(x[i]));
	return list;
}

/* The OpenBLAS linked for the bare products has chosen its kernels before main. vernier loads
 * OpenBLAS again if it chose badly (libref/ops/blas.c); here the whole program restarts with the
 * better choice. */
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

typedef struct times {
	double bare[MAX_ROUNDS], plain[MAX_ROUNDS], recorded[MAX_ROUNDS], written[MAX_ROUNDS], synced[MAX_ROUNDS];
	double in_memory[MAX_ROUNDS], copied[MAX_ROUNDS]; /* recorded, and written, in /dev/shm */
	bool   fits;                                      /* in there */
	double peak, weights;
} times;

static void print_json(const times *t, int rounds, bool record)
{
	json_t *said = json_pack("{s:o, s:o, s:f, s:f}", "bare", all_of(t->bare, rounds), "pass", all_of(t->plain, rounds),
	                         "peak_gib", t->peak, "weights_gib", t->weights);

	if (record) {
		json_object_set_new(said, "recording", all_of(t->recorded, rounds));
		json_object_set_new(said, "write", all_of(t->written, rounds));
		json_object_set_new(said, "sync", all_of(t->synced, rounds));
	}
	if (record && t->fits) {
		json_object_set_new(said, "recording_in_memory", all_of(t->in_memory, rounds));
		json_object_set_new(said, "write_in_memory", all_of(t->copied, rounds));
	}
	if (!vn_json_print(said, stdout, JSON_INDENT(1)))
		exit(2);
	json_decref(said);
}

/* Returns whether every limit is kept. */
static bool print_text(times *t, int rounds, bool record)
{
	bool experts = false;
	for (int i = 0; i < n_products; i++)
		experts = experts || computed[i].expert;
	const double limit = experts ? 1.3 : 1.25;
	const double b = median(t->bare, rounds), p = median(t->plain, rounds), more = t->peak - t->weights;
	bool         kept = p / b <= limit && more <= 1.5;

	printf("bare cblas_sgemm     %7.3f s\n", b);
	printf("forward, no taps     %7.3f s   %.2f times the bare products (limit %.2f)\n", p, p / b, limit);
	if (record) {
		const double c = median(t->recorded, rounds), w = median(t->written, rounds);
		const double m = median(t->in_memory, rounds), n = median(t->copied, rounds);
		printf("forward, recording   %7.3f s   %.2f times the forward and a plain write of %.3f s, %.3f of it fsync "
		       "(limit %.2f)\n",
		       c, c / (p + w), w, median(t->synced, rounds), RECORDING);
		if (t->fits)
			printf("the same in memory   %7.3f s   %.2f times the forward and a plain write of %.3f s\n", m,
			       m / (p + n), n);
		kept = kept && c / (p + w) <= RECORDING;
	}
	printf("peak memory          %7.2f GiB = weights %.2f + %.2f GiB (limit 1.50)\n", t->peak, t->weights, more);
	return kept;
}

int main(int argc, char **argv)
{
	choose_kernels(argv);
	vn_spin_briefly(argv);
	bool json = false, record = true;
	for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
		json = json || strcmp(argv[1], "--json") == 0;
		record = record && strcmp(argv[1], "--pass") != 0;
	}
	if (argc < 2 || argc > 5) {
		fprintf(stderr, "usage: bench_ref [--json] [--pass] MODEL [TOKENS [THREADS [ROUNDS]]]\n");
		return 2;
	}
	const int64_t T = argc > 2 ? atol(argv[2]) : 512;
	const int     threads = argc > 3 ? atoi(argv[3]) : 2;
	int           rounds = argc > 4 ? atoi(argv[4]) : 3;
	vn_error      err = { "" };
	vn_model     *m;
	vn_ref       *r;
	times         t = { .peak = 0 };
	char          path[] = "bench_ref.h5", shm[64], shm_copy[64];

	rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	if (vn_model_open(argv[1], &m, &err))
		fail(&err);
	observed       seen = { vn_model_plan(m), false };
	vn_ref_options o = {
		.policy = { VN_F32, VN_F32, 0, { 0 } }, .threads = threads, .made = list_products, .made_ctx = &seen
	};
	if (vn_ref_create(vn_model_plan(m), vn_model_weights(m), &o, &r, &err))
		fail(&err);
	for (int i = 0; i < vn_model_plan(m)->n_weights; i++) {
		const vn_tensor *w = &vn_model_weights(m)[i];
		t.weights += (double)vn_dtype_bytes(w->dtype, (size_t)vn_shape_count(&w->shape)) / (1 << 30);
	}
	int32_t *ids = allocate((size_t)T * sizeof *ids);
	for (int64_t k = 0; k < T; k++)
		ids[k] = (int32_t)((k * 7919 + 13) % vn_model_plan(m)->vocab);

	snprintf(shm, sizeof shm, "/dev/shm/bench_ref.%d.h5", (int)getpid());
	snprintf(shm_copy, sizeof shm_copy, "/dev/shm/bench_ref.%d.copy", (int)getpid());
	pass(m, r, ids, T, false, threads, path); /* page the weights in */
	seen.done = true;
	if (record)
		pass(m, r, ids, T, true, threads, path);
	t.peak = peak_gib(); /* before the bare products take memory of their own */
	for (int i = 0; i < rounds; i++) {
		t.bare[i] = bare_products(T, threads);
		t.plain[i] = pass(m, r, ids, T, false, threads, path);
		if (record) {
			t.recorded[i] = pass(m, r, ids, T, true, threads, path);
			t.written[i] = plain_write(path, "bench_ref.copy", &t.synced[i]);
			if ((t.fits = fits_in_memory(path))) {
				double none;
				t.in_memory[i] = pass(m, r, ids, T, true, threads, shm);
				t.copied[i] = plain_write(shm, shm_copy, &none);
				unlink(shm);
			}
		}
	}
	unlink(path);
	bool kept = true;
	if (json)
		print_json(&t, rounds, record);
	else {
		printf("%s, %lld tokens, %d threads, %s, median of %d\n", argv[1], (long long)T, threads, vn_blas_core(),
		       rounds);
		kept = print_text(&t, rounds, record);
	}
	vn_ref_ops.destroy(r);
	vn_model_close(m);
	free(ids);
	return kept ? 0 : 1;
}
