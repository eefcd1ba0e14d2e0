/* pair.c: see pair.h. */
#include "compare/metrics/pair.h"

#include <string.h>

void vn_block_double(const vn_pair *p, int side, int64_t at, size_t n, double *x)
{
	const unsigned char *src = vn_pair_at(p, side, at);
	if (p->dtype[side] == VN_F64) {
		memcpy(x, src, n * sizeof *x);
		return;
	}
	if (p->dtype[side] == VN_I32) {
		vn_to_f64(x, src, VN_I32, n);
		return;
	}
	float room[VN_BLOCK];
	p->kernel->load(room, src, p->dtype[side], n);
	for (size_t i = 0; i < n; i++)
		x[i] = (double)room[i];
}
