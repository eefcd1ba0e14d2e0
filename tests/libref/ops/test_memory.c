/* test_memory.c: operations of the reference when one thread of a team gets no
 * memory. The linker sends every malloc of ours through the functions below. */
#define VN_REAL 32
#include "libref/ops/ops.h"

#include "libref/ops/blas.h"
#include "tests/support/suite.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

enum { THREADS = 3, N = 80, M = 200, T = 130, H = 4, K = 8 };

static int poor = -1; /* the thread that gets nothing */

static bool refuse(void)
{
	return omp_in_parallel() && omp_get_thread_num() == poor;
}

void *__wrap_malloc(size_t n)
{
	return refuse() ? NULL : __real_malloc(n);
}
void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return refuse() ? NULL : __real_aligned_alloc(align, n);
}

static float     x[T * N], w[M * N], y[T * M], other[T * M], context[T * H * K];
static vn_tensor stored = { VN_F32, { 2, { M, N } }, w };

static void any_thread_without_memory_fails_the_call_and_never_hangs_it(void)
{
	const vn_policy     f16 = { VN_F16, VN_F32, 0, { 0 } };
	const vn_consts     c = { .attention = { .scale = 1, .heads = H, .kv_heads = H, .head_dim = K, .causal = 1 } };
	const vn_matrix     matrix = vn_matrix_of(&stored, false);
	const vn_operands   f = { x, &matrix, NULL, T, f16, THREADS }, one = { x, &matrix, NULL, 1, f16, THREADS };
	const vn_also_f32   also = { other, NULL, { VN_F32, VN_F32, 0, { 0 } } };
	const vn_attend_f32 at = { .q = x,
		                       .k = x,
		                       .v = x,
		                       .tokens = T,
		                       .c = &c,
		                       .threads = THREADS,
		                       .policy = { VN_F32, VN_F32, VN_PRODUCTS_PLAIN, { 0 } } };

	/* -1: all threads get memory; THREADS: no thread of the team has that number */
	for (poor = -1; poor <= THREADS; poor++) {
		const bool good = poor < 0 || poor == THREADS;
		for (int again = 0; again < 20; again++) {
			CU_ASSERT_EQUAL(vn_linear_f32(y, &f), good);
			CU_ASSERT_EQUAL(vn_linear_also_f32(y, &f, &also), good);
			CU_ASSERT_EQUAL(vn_linear_acc16(y, &one), good);
			CU_ASSERT_EQUAL(vn_attention_f32(context, &at), good);
		}
	}
	poor = -1;
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(any_thread_without_memory_fails_the_call_and_never_hangs_it),
		CU_TEST_INFO_NULL,
	};
	vn_error err = { "" };

	alarm(120); /* a hang is a failure too */
	if (vn_blas_prepare(2, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	return run_suite("memory", tests);
}
