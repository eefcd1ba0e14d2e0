/* join.c: columns of heads side by side. */
#include "libref/ops/ops.h"

#include <string.h>

void REAL(vn_join)(real *y, const real *const in[2], int64_t T, int64_t dim, const vn_consts *c)
{
	const int64_t A = c->join.width, B = dim - A, share = c->join.heads / c->join.shared;

	for (int64_t r = 0; r < T * c->join.heads; r++, y += dim) {
		memcpy(y, in[VN_JOIN_A] + r * A, (size_t)A * sizeof *y);
		memcpy(y + A, in[VN_JOIN_B] + r / share * B, (size_t)B * sizeof *y);
	}
}
