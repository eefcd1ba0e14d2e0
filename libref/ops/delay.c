/* delay.c: rows one token later. */
#include "libref/ops/ops.h"

#include <string.h>

void REAL(vn_delay)(real *y, const REAL(vn_delayed) * a)
{
	const int64_t N = a->N;
	const size_t  row = (size_t)N * sizeof *y;

	for (int64_t t = 0; t < a->T; t++)
		if (a->e && a->e->delay.own)
			memcpy(y + t * N, a->x + t * N, row);
		else if (a->e && a->e->delay.forgets && vn_call_row(a->past, a->begins, t) == t)
			memset(y + t * N, 0, row);
		else
			memcpy(y + t * N, t ? a->x + (t - 1) * N : a->state, row);
	memcpy(a->state, a->x + (a->T - 1) * N, row);
}
