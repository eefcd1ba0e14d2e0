/* delta_rule.c: the recurrence of Gated DeltaNet, token by token, computed in double.
 *
 * A state is read through a key and written through the same key: what it already returns for that
 * key is first subtracted from the new value, which is the delta. The columns of a state, one for
 * each element of a value, are independent, so a block is a few columns of one head. Blocks depend
 * only on the shape and share nothing, so the number of threads changes no bit. Double is used
 * because the result of a row is small compared to the state, and the norm after it makes it large
 * again.
 */
#include "libref/ops/ops.h"

#include "libref/base/clones.h"
#include "libref/base/rounding.h"
#include "libref/ops/exp.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64, COLS = 32 }; /* a block of dk = 128 rows fits into the L1 cache */

/* The tokens of the first of several calls that were joined; or all. */
static int64_t first_call(const REAL(vn_delta) * a)
{
	int64_t n = 0;

	while (n < a->tokens && vn_call_row(a->past, a->begins, n) == 0)
		n++;
	return n;
}

/* The token that is applied to the state in turn `turn`: less than 0 before the call's tokens,
 * which make results, and T or more behind them. */
static int64_t token_of(int kept, int64_t turn, int64_t T, int64_t before)
{
	if (turn >= T)
		return T - 1;
	return turn >= 0 ? turn : kept == VN_KEPT_FORMER ? turn + before : 0;
}

/* Columns [from, from + n) of head h. s, chunk: scratch (dk, COLS). chunk holds a state that decays
 * without being updated, for an experiment. */
VN_CLONES
static void compute_block(real *y, const REAL(vn_delta) * a, int64_t h, int64_t from, int64_t n, double *s)
{
	double       *chunk = s + a->dk * COLS;
	const int64_t nk = a->key_heads, nv = a->value_heads, dk = a->dk, dv = a->dv;
	const bool    modulo = a->x && a->x->delta.head_map == VN_HEADS_MODULO;
	const int64_t at_key = (modulo ? h % nk : h / (nv / nk)) * dk, at_value = h * dv + from,
				  at_state = h * dk * dv + from, restart = a->x ? a->x->delta.restart : 0;
	const int                form = a->x ? a->x->delta.form : VN_DELTA_USUAL;
	const int                forgets = a->x ? a->x->delta.forgets : 0, kept = a->x ? a->x->delta.kept : VN_KEPT_USUAL;
	const vn_rounding_format rounded = form == VN_DELTA_G_BF16  ? VN_FORMAT_BF16
	                                   : form == VN_DELTA_G_F16 ? VN_FORMAT_F16
	                                                            : VN_FORMAT_NONE,
							 found = forgets == 2 ? VN_FORMAT_BF16 : VN_FORMAT_F16;

	for (int64_t i = 0; i < dk; i++)
		for (int64_t c = 0; c < COLS; c++)
			s[i * COLS + c] = c < n ? (double)a->state[at_state + i * dv + c] : 0.0;

	const int64_t T = a->tokens,
				  leading = T == 0 || a->past         ? 0
	                        : kept == VN_KEPT_FORMER  ? first_call(a)
	                        : kept == VN_KEPT_PADDING ? VN_PADDING_TOKENS
	                                                  : 0,
				  trailing = T == 0                   ? 0
	                         : kept == VN_KEPT_AGAIN  ? 1
	                         : kept == VN_KEPT_DRAFTS ? 2
	                                                  : 0;
	for (int64_t turn = -leading; turn < T + trailing; turn++) {
		const int64_t t = token_of(kept, turn, T, leading);
		const real   *q = a->q + t * nk * dk + at_key, *k = a->k + t * nk * dk + at_key; /* (dk) */
		const real   *v = a->v + t * nv * dv + at_value;                                 /* (n) */
		const double  g = (double)a->g[t * nv + h], beta = form == VN_DELTA_NO_BETA ? 1.0 : (double)a->beta[t * nv + h];
		const double  decay = form == VN_DELTA_NO_DECAY ? 1.0
		                      : form == VN_DELTA_FACTOR ? g
		                                                : vn_exp(rounded ? vn_in_format(g, rounded) : g);
		/* The decay comes before the update, or after it. Factors of 1 change no bit. */
		const double  before = form == VN_DELTA_DECAY_LATE ? 1.0 : decay,
					 late = form == VN_DELTA_DECAY_LATE ? decay : 1.0;
		const double memory = form == VN_DELTA_NO_DELTA ? 0.0 : form == VN_DELTA_MEMORY_FIRST ? 1.0 : before;
		const double update = form == VN_DELTA_READ_FIRST ? 0.0 : 1.0;
		double       m[COLS] = { 0 }, d[COLS] = { 0 }, o[COLS] = { 0 };

		const bool begins = forgets && t == vn_call_row(a->past, a->begins, t);
		if ((restart && (a->past + t) % restart == 0) || begins)
			for (int64_t i = 0; i < dk * COLS; i++)
				s[i] = !begins || forgets == 1 ? 0.0 : forgets == 4 ? 0.5 * s[i] : vn_in_format(s[i], found);
		if (form == VN_DELTA_UNSOLVED && t % CHUNK == 0)
			memcpy(chunk, s, (size_t)(dk * COLS) * sizeof *s);
		/* m = k^T S of the decayed state. The common factor is applied last. */
		for (int64_t i = 0; i < dk; i++)
			for (int c = 0; c < COLS; c++)
				m[c] += (double)k[i] * (form == VN_DELTA_UNSOLVED ? chunk : s)[i * COLS + c];
		for (int64_t i = 0; form == VN_DELTA_UNSOLVED && i < dk * COLS; i++)
			chunk[i] *= decay;
		for (int64_t c = 0; c < n; c++)
			d[c] = form == VN_DELTA_BETA_KEYS     ? (double)v[c] - beta * (memory * m[c])
			       : form == VN_DELTA_BETA_VALUES ? beta * (double)v[c] - memory * m[c]
			                                      : beta * ((double)v[c] - memory * m[c]);
		for (int64_t i = 0; i < dk; i++)
			for (int c = 0; c < COLS; c++) {
				const double old = before * s[i * COLS + c], new = (double)k[i] * d[c];
				s[i * COLS + c] = late * (old + new);
				o[c] += (double)q[i] * (late * (old + update * new));
			}
		for (int64_t c = 0; turn == t && c < n; c++)
			y[t * nv * dv + at_value + c] = (real)(a->scale * o[c]);
	}
	for (int64_t i = 0; i < dk && !(kept == VN_KEPT_FIRST && a->past > 0); i++)
		for (int64_t c = 0; c < n; c++)
			a->state[at_state + i * dv + c] = (real)s[i * COLS + c];
}

/* For an experiment: transposes every state from (dv,dk). */
static bool transpose_states(const REAL(vn_delta) * a)
{
	const int64_t  n = a->dk * a->dv;
	VN_FREED real *was = malloc((size_t)n * sizeof *was);
	const bool     good = was;

	for (int64_t h = 0; was && h < a->value_heads; h++) {
		real *now = a->state + h * n;
		memcpy(was, now, (size_t)n * sizeof *was);
		for (int64_t i = 0; i < n; i++)
			now[i] = was[i % a->dk * a->dv + i / a->dk];
	}
	return good;
}

/* For an experiment: each head finds the state of the head before. */
static bool roll_states(const REAL(vn_delta) * a)
{
	const int64_t  n = a->dk * a->dv, most = (a->value_heads - 1) * n;
	VN_FREED real *last = malloc((size_t)n * sizeof *last);

	if (!last)
		return false;
	memcpy(last, a->state + most, (size_t)n * sizeof *last);
	memmove(a->state + n, a->state, (size_t)most * sizeof *last);
	memcpy(a->state, last, (size_t)n * sizeof *last);
	return true;
}

bool REAL(vn_delta_rule)(real *y, const REAL(vn_delta) * a)
{
	const int64_t across = (a->dv + COLS - 1) / COLS;
	bool          good = true;

	if (a->x && a->x->delta.chunked)
		return REAL(vn_delta_chunked)(y, a);
	if (a->x && a->x->delta.kept == VN_KEPT_ROLLED && a->past > 0 && a->tokens > 0 && !roll_states(a))
		return false;
#pragma omp parallel num_threads(a->threads) reduction(&& : good)
	{
		double *s = aligned_alloc(64, (size_t)(2 * a->dk * COLS) * sizeof *s);
		good = s;
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < a->value_heads * across; i++) {
			const int64_t from = i % across * COLS;
			if (s) /* even without memory a thread must reach the loop, which a team shares */
				compute_block(y, a, i / across, from, a->dv - from < COLS ? a->dv - from : COLS, s);
		}
		free(s);
	}
	if (good && a->x && a->x->delta.kept == VN_KEPT_TURNED && a->tokens > 1)
		good = transpose_states(a);
	return good;
}
