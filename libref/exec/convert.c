/* convert.c: see convert.h. */
#include "libref/exec/convert.h"

#include <omp.h>
#include <stdint.h>
#include <string.h>

enum {
	CONVERTED_AT_ONCE = 2048, /* numbers that are converted at a time: as doubles they stay in the first cache */
	SHARE = 1 << 15           /* numbers from which on another thread is worth starting */
};

static void convert_block(unsigned char *dst, vn_dtype to, const unsigned char *src, vn_dtype from, size_t n)
{
	double wide[CONVERTED_AT_ONCE];
	float  narrow[CONVERTED_AT_ONCE];

	if (from == to)
		memcpy(dst, src, vn_dtype_bytes(to, n));
	else if (to == VN_F32)
		vn_to_f32((float *)(void *)dst, src, from, n);
	else if (from == VN_F32) {
		memcpy(narrow, src, n * sizeof *narrow); /* src may be unaligned */
		vn_from_f32(dst, to, narrow, n);
	} else {
		vn_to_f64(wide, src, from, n);
		vn_from_f64(dst, to, wide, n);
	}
}

/* All or one: if fewer work, OpenMP ends the others, and starts them again for
 * the next operation. */
static int choose_threads(size_t n, int threads)
{
	return n >= 2 * SHARE ? threads : 1;
}

void vn_convert(void *dst, vn_dtype to, const void *src, vn_dtype from, size_t n, int threads)
{
	const int64_t blocks = (int64_t)((n + CONVERTED_AT_ONCE - 1) / CONVERTED_AT_ONCE);

#pragma omp parallel for num_threads(choose_threads(n, threads)) schedule(static)
	for (int64_t b = 0; b < blocks; b++) {
		const size_t at = (size_t)b * CONVERTED_AT_ONCE, here = n - at < CONVERTED_AT_ONCE ? n - at : CONVERTED_AT_ONCE;
		convert_block((unsigned char *)dst + vn_dtype_bytes(to, at), to,
		              (const unsigned char *)src + vn_dtype_bytes(from, at), from, here);
	}
}

void vn_copy(void *dst, const void *src, size_t bytes, int threads)
{
	const size_t pairs = bytes / 2;

	vn_convert(dst, VN_F16, src, VN_F16, pairs, threads > 0 ? threads : omp_get_num_procs());
	memcpy((char *)dst + 2 * pairs, (const char *)src + 2 * pairs, bytes - 2 * pairs);
}

void vn_round_shared(float *x, vn_dtype as, size_t n, int threads)
{
	const int64_t blocks = (int64_t)((n + CONVERTED_AT_ONCE - 1) / CONVERTED_AT_ONCE);

	if (as == VN_F32 || as == VN_F64)
		return;
#pragma omp parallel for num_threads(choose_threads(n, threads)) schedule(static)
	for (int64_t b = 0; b < blocks; b++) {
		const size_t at = (size_t)b * CONVERTED_AT_ONCE;
		vn_round_f32(x + at, as, n - at < CONVERTED_AT_ONCE ? n - at : CONVERTED_AT_ONCE);
	}
}
