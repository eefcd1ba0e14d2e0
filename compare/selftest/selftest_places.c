/* selftest_places.c: the right numbers in the wrong places: of other tokens, heads, layers, points and steps. */
#include "compare/selftest/selftest_change.h"

#include <string.h>

static void swap(double *a, double *b, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		const double x = a[i];
		a[i] = b[i];
		b[i] = x;
	}
}

static void rows_reversed(const vn_patient *p, double *x)
{
	for (int64_t t = 0; t < p->T / 2; t++)
		swap(row(p, x, t), row(p, x, p->T - 1 - t), p->W);
}

static void tokens_late(const vn_patient *p, double *x)
{
	memmove(row(p, x, 1), x, (size_t)((p->T - 1) * p->W) * sizeof *x);
}

static void tokens_early(const vn_patient *p, double *x)
{
	memmove(x, row(p, x, 1), (size_t)((p->T - 1) * p->W) * sizeof *x);
}

static void row_copied(const vn_patient *p, double *x)
{
	memcpy(row(p, x, p->T / 2), row(p, x, p->T / 2 - 1), (size_t)p->W * sizeof *x);
}

static void tokens_swapped(const vn_patient *p, double *x)
{
	swap(row(p, x, p->T / 2), row(p, x, p->T / 2 - 1), p->W);
}

static void first_for_last(const vn_patient *p, double *x)
{
	memcpy(row(p, x, p->T - 1), x, (size_t)p->W * sizeof *x);
}

static void off_by_one(const vn_patient *p, double *x)
{
	memmove(x, x + 1, (size_t)(p->T * p->W - 1) * sizeof *x);
}

static void pairs_swapped(const vn_patient *p, double *x)
{
	for (int64_t i = 0; i + 1 < p->T * p->W; i += 2)
		swap(&x[i], &x[i + 1], 1);
}

void vn_change_heads_swapped(const vn_patient *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++)
		swap(row(p, x, t), row(p, x, t) + p->K, p->K);
}

static void heads_reversed(const vn_patient *p, double *x)
{
	for (int64_t t = 0; t < p->T; t++)
		for (int64_t h = 0; h < p->H / 2; h++)
			swap(row(p, x, t) + h * p->K, row(p, x, t) + (p->H - 1 - h) * p->K, p->K);
}

static void heads_first(const vn_patient *p, double *x)
{
	const vn_patient *q = p;
	double *y = p->y; /* room of the same size */
	memcpy(y, x, (size_t)(q->T * q->W) * sizeof *x);
	for (int64_t t = 0; t < p->T; t++)
		for (int64_t h = 0; h < p->H; h++)
			memcpy(x + (h * p->T + t) * p->K, y + (t * p->H + h) * p->K, (size_t)p->K * sizeof *x);
}

/* (T,W) as (W,T) in memory. */
static void transposed(const vn_patient *p, double *x)
{
	double *y = p->y;
	memcpy(y, x, (size_t)(p->T * p->W) * sizeof *x);
	for (int64_t t = 0; t < p->T; t++)
		for (int64_t i = 0; i < p->W; i++)
			x[i * p->T + t] = y[t * p->W + i];
}

static void halves_interleaved(const vn_patient *p, double *x)
{
	double *y = p->y;
	memcpy(y, x, (size_t)(p->T * p->W) * sizeof *x);
	for (int64_t h = 0; h < p->T * p->H; h++)
		for (int64_t i = 0; i < p->K / 2; i++) {
			x[h * p->K + 2 * i] = y[h * p->K + i];
			x[h * p->K + 2 * i + 1] = y[h * p->K + p->K / 2 + i];
		}
}

void vn_change_to_others(const vn_patient *p, double *x)
{
	memcpy(x, p->y, (size_t)(p->T * p->W) * sizeof *x);
}

static void half_others(const vn_patient *p, double *x)
{
	memcpy(row(p, x, p->T / 2), p->y + p->T / 2 * p->W, (size_t)((p->T - p->T / 2) * p->W) * sizeof *x);
}

const vn_mutation vn_selftest_places[] = {
	{ "rows-reversed", "tokens backwards", VN_NEEDS_TENSOR, .eight = true, .numbers = rows_reversed, .want = AS(VN_LIKE_REVERSED) },
	{ "tokens-late", "shifted by one token", VN_NEEDS_TENSOR, .numbers = tokens_late, .want = AS(VN_LIKE_SHIFTED) },
	{ "tokens-early", "shifted by one token, the other way", VN_NEEDS_TENSOR, .numbers = tokens_early, .want = AS(VN_LIKE_SHIFTED) },
	{ "row-copied", "one token's row is its neighbour's", VN_NEEDS_TENSOR, .eight = true, .numbers = row_copied, .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "tokens-swapped", "two tokens in each other's place", VN_NEEDS_TENSOR, .eight = true, .numbers = tokens_swapped,
	  .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "first-for-last", "the last token's row is the first one's", VN_NEEDS_TENSOR, .numbers = first_for_last,
	  .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "off-by-one", "read from one number too far", VN_NEEDS_TENSOR, .numbers = off_by_one, .want = BY(VN_M_NMSE) },
	{ "pairs-swapped", "even and odd channels interchanged", VN_NEEDS_TENSOR, .numbers = pairs_swapped, .want = BY(VN_M_NMSE) },
	{ "transposed", "stored column by column, under the old shape", VN_NEEDS_TENSOR, .numbers = transposed,
	  .want = BY(VN_M_NMSE) },
	{ "heads-swapped", "two heads in each other's place", VN_NEEDS_HEADS, .numbers = vn_change_heads_swapped, .want = AS(VN_LIKE_HEADS) },
	{ "heads-first", "heads before tokens, under the old shape", VN_NEEDS_HEADS, .numbers = heads_first,
	  .want = AS(VN_LIKE_PERMUTED) },
	{ "halves-interleaved", "the halves of each head interleaved", VN_NEEDS_HEADS, .numbers = halves_interleaved,
	  .want = BY(VN_M_NMSE) },

	{ "other-layer", "the numbers of the same point of another layer", VN_NEEDS_LAYERS, .numbers = vn_change_to_others,
	  .want = AS(VN_LIKE_OWN) },
	{ "other-layer-in-both", "the numbers of the same point of another layer on both sides", VN_NEEDS_LAYERS, VN_SIDE_BOTH,
	  .numbers = vn_change_to_others, .want = { .status = VN_OUTSIDE, .metric = VN_M_NMSE, .many = true, .anywhere = true } },
	{ "other-point", "the numbers of another point of the layer", VN_NEEDS_PAIR, .numbers = vn_change_to_others, .want = AS(VN_LIKE_OWN) },
	{ "half-other-point", "half overwritten by another point", VN_NEEDS_PAIR, .numbers = half_others, .want = BY(VN_M_NMSE) },
	{ "stale-step", "the numbers of the step before", VN_NEEDS_STEPS, .numbers = vn_change_to_others, .want = ANY },
	{ "stale-step-in-both", "the numbers of the step before on both sides", VN_NEEDS_STEPS, VN_SIDE_BOTH, .numbers = vn_change_to_others, .want = NOTHING },

	{ "scores-late", "logits shifted by one token", VN_NEEDS_SCORES, .numbers = tokens_late, .want = BY(VN_M_KL_MEAN) },
	REFERENCE("tokens-late", "shifted by one token", VN_NEEDS_TENSOR, tokens_late),
	REFERENCE("heads-reversed", "heads backwards", VN_NEEDS_HEADS, heads_reversed),
	REFERENCE("other-point", "the numbers of another point of the layer", VN_NEEDS_PAIR, vn_change_to_others),
	{ .name = NULL }
};
