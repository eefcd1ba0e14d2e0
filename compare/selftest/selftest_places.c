/* selftest_places.c: mutations of places: the right numbers of another token, head, layer, point or
 * step. */
#include "compare/selftest/selftest_internal.h"

#include "libref/base/arrange.h"

#include <string.h>

/* Reorders axis n of (outer,n,piece). */
static void arrange_blocks(const vn_mutation_context *p, double *x, vn_arrange m, int64_t outer, int64_t n,
                           int64_t piece)
{
	memcpy(p->y, x, (size_t)(p->T * p->W) * sizeof *x); /* room of the same size */
	vn_arrange_bytes(x, p->y, &m, (size_t)outer, (size_t)n, (size_t)piece * sizeof *x);
}

static void arrange_tokens(const vn_mutation_context *p, double *x, vn_arrange m)
{
	arrange_blocks(p, x, m, 1, p->T, p->W);
}

static void arrange_heads(const vn_mutation_context *p, double *x, vn_arrange m)
{
	arrange_blocks(p, x, m, p->T, p->H, p->K);
}

static void arrange_numbers(const vn_mutation_context *p, double *x, vn_arrange m)
{
	arrange_blocks(p, x, m, 1, p->T * p->W, 1);
}

#define MOVED(name, what, ...) \
	static void name(const vn_mutation_context *p, double *x) \
	{ \
		arrange_##what(p, x, (vn_arrange) { __VA_ARGS__ }); \
	}

MOVED(rows_reversed, tokens, VN_ARRANGE_REVERSED, .each = 1)
MOVED(tokens_late, tokens, VN_ARRANGE_SHIFTED, .a = -1)
MOVED(tokens_early, tokens, VN_ARRANGE_SHIFTED, .a = 1)
MOVED(tokens_swapped, tokens, VN_ARRANGE_EXCHANGED, .a = p->T / 2, .b = p->T / 2 - 1)
MOVED(off_by_one, numbers, VN_ARRANGE_SHIFTED, .a = 1)
MOVED(pairs_swapped, numbers, VN_ARRANGE_REVERSED, .each = 1, .period = 2)
MOVED(heads_reversed, heads, VN_ARRANGE_REVERSED, .each = 1)
MOVED(transposed, numbers, VN_ARRANGE_TRANSPOSED, .a = p->T, .b = p->W)
MOVED(halves_interleaved, numbers, VN_ARRANGE_TRANSPOSED, .a = 2, .b = p->K / 2, .period = p->K)

static void heads_first(const vn_mutation_context *p, double *x)
{
	arrange_blocks(p, x, (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = p->T, .b = p->H }, 1, p->T * p->H, p->K);
}

void vn_mutation_heads_swapped(const vn_mutation_context *p, double *x)
{
	arrange_heads(p, x, (vn_arrange) { VN_ARRANGE_EXCHANGED, .b = 1 });
}

static void row_copied(const vn_mutation_context *p, double *x)
{
	memcpy(row_of(p, x, p->T / 2), row_of(p, x, p->T / 2 - 1), (size_t)p->W * sizeof *x);
}

static void first_for_last(const vn_mutation_context *p, double *x)
{
	memcpy(row_of(p, x, p->T - 1), x, (size_t)p->W * sizeof *x);
}

void vn_mutation_to_others(const vn_mutation_context *p, double *x)
{
	memcpy(x, p->y, (size_t)(p->T * p->W) * sizeof *x);
}

static void half_others(const vn_mutation_context *p, double *x)
{
	memcpy(row_of(p, x, p->T / 2), p->y + p->T / 2 * p->W, (size_t)((p->T - p->T / 2) * p->W) * sizeof *x);
}

const vn_mutation vn_selftest_places[] = {
	{ "rows-reversed", "tokens in reverse order", VN_NEEDS_TENSOR, .eight = true, .numbers = rows_reversed,
	  .want = AS(VN_LAYOUT_MATCH_REVERSED) },
	{ "tokens-late", "shifted by one token", VN_NEEDS_TENSOR, .numbers = tokens_late,
	  .want = AS(VN_LAYOUT_MATCH_SHIFTED) },
	{ "tokens-early", "shifted by one token, the other way", VN_NEEDS_TENSOR, .numbers = tokens_early,
	  .want = AS(VN_LAYOUT_MATCH_SHIFTED) },
	{ "row-copied", "one token's row is its neighbour's", VN_NEEDS_TENSOR, .eight = true, .numbers = row_copied,
	  .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "tokens-swapped", "two tokens exchanged", VN_NEEDS_TENSOR, .eight = true, .numbers = tokens_swapped,
	  .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "first-for-last", "the last token's row is the first one's", VN_NEEDS_TENSOR, .numbers = first_for_last,
	  .want = BY(VN_M_WORST_TOKEN_NMSE) },
	{ "off-by-one", "read with an offset of one number", VN_NEEDS_TENSOR, .numbers = off_by_one,
	  .want = BY(VN_M_NMSE) },
	{ "pairs-swapped", "even and odd channels interchanged", VN_NEEDS_TENSOR, .numbers = pairs_swapped,
	  .want = BY(VN_M_NMSE) },
	{ "transposed", "stored column by column, with the old shape", VN_NEEDS_TENSOR, .numbers = transposed,
	  .want = BY(VN_M_NMSE) },
	{ "heads-swapped", "two heads exchanged", VN_NEEDS_HEADS, .numbers = vn_mutation_heads_swapped,
	  .want = AS(VN_LAYOUT_MATCH_HEADS) },
	{ "heads-first", "heads before tokens, with the old shape", VN_NEEDS_HEADS, .numbers = heads_first,
	  .want = AS(VN_LAYOUT_MATCH_PERMUTED) },
	{ "halves-interleaved", "the halves of each head interleaved", VN_NEEDS_HEADS, .numbers = halves_interleaved,
	  .want = BY(VN_M_NMSE) },

	{ "other-layer", "the numbers of the same point of another layer", VN_NEEDS_LAYERS,
	  .numbers = vn_mutation_to_others, .want = AS(VN_LAYOUT_MATCH_OWN) },
	{ "other-layer-in-both", "the numbers of the same point of another layer on both sides", VN_NEEDS_LAYERS,
	  VN_SIDE_BOTH, .numbers = vn_mutation_to_others,
	  .want = { .status = VN_OUTSIDE, .metric = VN_M_NMSE, .many = true, .anywhere = true } },
	{ "other-point", "the numbers of another point of the layer", VN_NEEDS_PAIR, .numbers = vn_mutation_to_others,
	  .want = AS(VN_LAYOUT_MATCH_OWN) },
	{ "half-other-point", "half overwritten by another point", VN_NEEDS_PAIR, .numbers = half_others,
	  .want = BY(VN_M_NMSE) },
	{ "stale-step", "the numbers of the step before", VN_NEEDS_STEPS, .numbers = vn_mutation_to_others, .want = ANY },
	{ "stale-step-in-both", "the numbers of the step before on both sides", VN_NEEDS_STEPS, VN_SIDE_BOTH,
	  .numbers = vn_mutation_to_others, .want = NOTHING },

	{ "scores-late", "logits shifted by one token", VN_NEEDS_SCORES, .numbers = tokens_late, .want = BY(VN_M_KL_MEAN) },
	REFERENCE("tokens-late", "shifted by one token", VN_NEEDS_TENSOR, tokens_late),
	REFERENCE("heads-reversed", "heads in reverse order", VN_NEEDS_HEADS, heads_reversed),
	REFERENCE("other-point", "the numbers of another point of the layer", VN_NEEDS_PAIR, vn_mutation_to_others),
	{ .name = NULL }
};
