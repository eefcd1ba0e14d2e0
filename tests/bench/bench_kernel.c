/* bench_kernel [NAME]: the cost of each sweep of a comparison, float32 against float16.
 * bench_kernel --read FILE...: how fast threads read files from the page cache.
 *
 * Each sweep of compare/metrics/kernel.h, and the digest, runs over numbers that are in the
 * cache: the limit of `vernier compare` on any memory. Prints nanoseconds a number, best of some
 * rounds; what a tensor and what logits cost with all their sweeps; and, for comparison, copying
 * the same numbers from memory, as cat does. NAME: a set of kernels (avx512, avx2, plain);
 * default: the best.
 *
 * --read: no comparison of these files is faster than reading them. For 1, 2, 4... threads,
 * prints seconds and GB/s of reading one word of each cache line of the mapped files, page
 * faults included, and of read() into a buffer that stays in the cache; best of some rounds.
 * Run by hand. */
#include "compare/metrics/kernel.h"
#include "compare/metrics/team.h"

#include "libref/base/digest.h"

#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 9, CACHED = 1 << 16, ALL = 32 << 20, AT_ONCE = 1 << 20 };

static float    r[ALL];
static uint16_t c[ALL];

static const vn_metric_kernel *kernel;
static vn_digester            *digester;

static void sums(size_t at)
{
	vn_block_sums s;
	kernel->sums((vn_side) { r + at, VN_F32 }, (vn_side) { c + at, VN_F16 }, VN_BLOCK, &s);
}

static void spread(size_t at)
{
	static vn_spread s;
	kernel->spread((vn_side) { r + at, VN_F32 }, (vn_side) { c + at, VN_F16 }, VN_BLOCK, 0.3, VN_F16, &s);
}

static void scores(size_t at)
{
	const double  first[2] = { 0, 0 };
	vn_score_sums s;
	kernel->scores((vn_side) { r + at, VN_F32 }, (vn_side) { c + at, VN_F16 }, VN_BLOCK, first, &s);
}

static void soft(size_t at)
{
	vn_soft s = { .rm = 4, .cm = 4 };
	kernel->soft((vn_side) { r + at, VN_F32 }, (vn_side) { c + at, VN_F16 }, VN_BLOCK, &s);
}

static void digest(size_t at)
{
	vn_digester_add(digester, r + at, VN_BLOCK * sizeof *r);
	vn_digester_add(digester, c + at, VN_BLOCK * sizeof *c);
}

static void copy(size_t at)
{
	static char to[VN_BLOCK * (sizeof *r + sizeof *c)];
	memcpy(to, r + at, VN_BLOCK * sizeof *r);
	memcpy(to + VN_BLOCK * sizeof *r, c + at, VN_BLOCK * sizeof *c);
	__asm__ volatile("" : : "r"(to) : "memory");
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nanoseconds for each number. within: size of the data that the sweep goes over repeatedly. */
static double cost(const char *name, void (*sweep)(size_t at), size_t within)
{
	double best = INFINITY;
	for (int k = 0; k < ROUNDS; k++) {
		const double start = now();
		for (size_t i = 0; i < (within < ALL ? AT_ONCE : ALL); i += VN_BLOCK)
			sweep(i % within);
		best = fmin(best, now() - start);
	}
	best *= 1e9 / (within < ALL ? AT_ONCE : ALL);
	printf("%-22s %6.3f ns a number\n", name, best);
	return best;
}

/* ---- reading files -------------------------------------------------------------------------- */

enum { PIECE = 256 << 10, MOST_FILES = 8, GIVEN_BACK = 16 << 20 };

/* The state that the threads share. Each piece is part of one file. */
typedef struct reading {
	bool             mapped;
	int              n, fd[MOST_FILES];
	size_t           bytes[MOST_FILES];
	unsigned char   *map[MOST_FILES];
	_Atomic size_t   next;
	_Atomic uint64_t sum; /* so that no read is optimised away */
} reading;

static uint64_t one_of_each_line(const unsigned char *p, size_t n)
{
	uint64_t sum = 0, x;
	for (size_t i = 0; i + 64 <= n; i += 64) {
		memcpy(&x, p + i, sizeof x);
		sum += x;
	}
	return sum;
}

/* Gives pages back now and then, so that reading needs as much memory as comparing. */
static void read_pieces(void *ctx, int thread)
{
	reading       *w = ctx;
	unsigned char *room = malloc(PIECE);
	uint64_t       sum = 0;
	(void)thread;
	for (size_t i; (i = w->next++ * PIECE), true;) {
		int k = 0;
		for (; k < w->n && i >= w->bytes[k]; k++)
			i -= w->bytes[k];
		if (k == w->n || !room)
			break;
		const size_t n = w->bytes[k] - i < PIECE ? w->bytes[k] - i : PIECE;
		if (w->mapped)
			sum += one_of_each_line(w->map[k] + i, n);
		else if (pread(w->fd[k], room, n, (off_t)i) == (ssize_t)n)
			sum += room[0];
		if (w->mapped && i >= GIVEN_BACK && i % GIVEN_BACK == 0)
			madvise(w->map[k] + i - GIVEN_BACK, GIVEN_BACK, MADV_DONTNEED);
	}
	w->sum += sum;
	free(room);
}

static double read_all(reading *w, bool mapped, int threads)
{
	double best = INFINITY;
	w->mapped = mapped;
	for (int round = 0; round < 4; round++) {
		const double start = now();
		w->next = 0;
		vn_team_run(threads, read_pieces, w);
		best = fmin(best, now() - start);
		for (int k = 0; k < w->n; k++)
			madvise(w->map[k], w->bytes[k], MADV_DONTNEED);
	}
	return best;
}

/* Leaves out the bytes after the last whole piece of a file. */
static int read_files(char *const *path, int n)
{
	reading w = { .n = n < MOST_FILES ? n : MOST_FILES };
	double  gb = 0;
	for (int k = 0; k < w.n; k++) {
		struct stat st;
		if ((w.fd[k] = open(path[k], O_RDONLY)) < 0 || fstat(w.fd[k], &st) != 0) {
			perror(path[k]);
			return 2;
		}
		w.bytes[k] = (size_t)st.st_size / PIECE * PIECE;
		w.map[k] = mmap(NULL, w.bytes[k], PROT_READ, MAP_SHARED, w.fd[k], 0);
		if (w.map[k] == MAP_FAILED) {
			perror(path[k]);
			return 2;
		}
		gb += (double)w.bytes[k] * 1e-9;
	}
	read_all(&w, false, 1); /* into the page cache */
	for (int threads = 1, all = vn_team_size(); threads <= all;
	     threads = threads < all && 2 * threads > all ? all : 2 * threads) {
		const double map = read_all(&w, true, threads), copy = read_all(&w, false, threads);
		printf("%2d threads, %.2f GB: mapped %.3f s, %5.1f GB/s; read() %.3f s, %5.1f GB/s\n", threads, gb, map,
		       gb / map, copy, gb / copy);
	}
	return 0;
}

int main(int argc, char **argv)
{
	vn_error err;
	if (argc > 2 && strcmp(argv[1], "--read") == 0)
		return read_files(argv + 2, argc - 2);
	if (argc > 1 && vn_metric_kernel_choose(argv[1], &err)) {
		fprintf(stderr, "bench_kernel: %s\n", err.text);
		return 2;
	}
	kernel = vn_metric_kernel_best();
	digester = vn_digester_create();
	for (size_t i = 0; i < ALL; i++) {
		r[i] = 3 * sinf((float)(i % 99991)) + cosf((float)(i % 1013));
		c[i] = vn_f32_to_f16(r[i]);
	}
	const double tensor = cost("sums", sums, CACHED) + cost("relative, ulps", spread, CACHED) +
	                      cost("digest", digest, CACHED);
	const double logits = tensor + cost("highest scores", scores, CACHED) + cost("exponentials", soft, CACHED);
	const double cat = cost("copy from memory", copy, ALL);
	printf("%s: a tensor %.2f ns, logits %.2f ns a number: %.2f and %.2f times the copy; two fifths logits: %.2f\n",
	       kernel->name, tensor, logits, tensor / cat, logits / cat, (0.6 * tensor + 0.4 * logits) / cat);
	vn_digester_finish(digester);
	return 0;
}
