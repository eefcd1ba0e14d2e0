/* cache_rows.c: see cache_slots.h.
 *
 * A recorded cache holds the bits of its tokens' keys or values, so which token a slot holds is
 * read off, not fitted.
 */
#include "compare/explain/cache_slots.h"
#include "compare/rearrange/rearranged.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"

#include <stdlib.h>

enum { NO_TOKEN = -1, ZEROS = -2 };

typedef struct held_rows {
	vn_rearranged r;
	int64_t       S, N;        /* (S,N) */
	int64_t       first, last; /* slots that do not hold their own token */
	int64_t      *of;          /* (S): the token that each slot holds, NO_TOKEN or ZEROS */
} held_rows;

static bool holds(const held_rows *x, int64_t slot, int64_t token)
{
	const double *is = x->r.cand + slot * x->N, *due = x->r.own + token * x->N;

	for (int64_t i = 0; i < x->N; i++)
		if (is[i] != due[i]) /* 0 and -0 are equal */
			return false;
	return true;
}

static bool is_zero(const held_rows *x, int64_t slot)
{
	const double *is = x->r.cand + slot * x->N;
	int64_t       i = 0;

	while (i < x->N && is[i] == 0)
		i++;
	return i == x->N;
}

/* Of tokens with equal numbers, such as values of one id in the first layer, the one that continues
 * the slots before, then the nearest. */
static int64_t find_token(const held_rows *x, int64_t slot)
{
	const int64_t before = slot ? x->of[slot - 1] : NO_TOKEN;

	if (holds(x, slot, slot))
		return slot;
	if (is_zero(x, slot))
		return ZEROS;
	if (before >= 0 && before + 1 < x->S && holds(x, slot, before + 1))
		return before + 1;
	for (int64_t by = 1; by < x->S; by++)
		if (slot >= by && holds(x, slot, slot - by))
			return slot - by;
		else if (slot + by < x->S && holds(x, slot, slot + by))
			return slot + by;
	return NO_TOKEN;
}

/* Returns whether some slots hold others' tokens or none, and each of these is known. */
static bool find_tokens(held_rows *x)
{
	x->first = -1;
	for (int64_t j = 0; j < x->S; j++) {
		x->of[j] = find_token(x, j);
		if (x->of[j] == NO_TOKEN)
			return false;
		x->first = x->first < 0 && x->of[j] != j ? j : x->first;
		x->last = x->of[j] != j ? j : x->last;
	}
	return x->first >= 0;
}

/* Is each of some tokens twice in a row, or all of them and then all again? Writes which ones. */
static bool are_twice(const held_rows *x, vn_applied_changed *c)
{
	const int64_t late = x->first - x->of[x->first];
	int64_t       from = x->first - 1, end = from, j = x->first;

	if (x->first < 1 || x->of[x->first] < 0 || x->last != x->S - 1 || late < 1)
		return false;
	while (j < x->S && j - x->of[j] == late)
		j++;
	if (j == x->S) {
		from = x->of[x->first];
		end = x->first - 1;
	} else {
		for (j = x->first; j < x->S && (x->of[j] == x->of[j - 1] || x->of[j] == x->of[j - 1] + 1); j++)
			if (x->of[j] == x->of[j - 1]) {
				if (x->of[j] > end + 1)
					return false; /* not one run of tokens */
				end = x->of[j];
			}
		if (j < x->S)
			return false;
	}
	*c = (vn_applied_changed) { VN_CHANGED_TWICE, VN_SLOTS_RANGE, .first = (int)from, .n = (int)(end - from + 1) };
	return true;
}

/* Is it one run of slots that are 0, or hold others' tokens in their order? */
static bool is_one_run(const held_rows *x)
{
	const bool zeros = x->of[x->first] == ZEROS;

	for (int64_t j = x->first + 1; j <= x->last; j++)
		if (x->of[j] != (zeros ? ZEROS : x->of[j - 1] + 1))
			return false;
	return true;
}

static void try_slots(held_rows *x, vn_finding finding, const vn_applied *applied)
{
	vn_trial h = { .finding = finding, .applied = *applied, .node = vn_case_node(x->r.t) };

	for (int64_t j = x->first; j <= x->last; j++)
		for (int64_t i = 0; i < x->N; i++) {
			x->r.a[j * x->N + i] = x->of[j] == ZEROS ? 0 : x->r.own[x->of[j] * x->N + i];
			x->r.b[j * x->N + i] = x->of[j] == ZEROS ? 0 : x->r.fine[x->of[j] * x->N + i];
		}
	const vn_tensor a = { VN_F64, x->r.like->shape, x->r.a }, b = { VN_F64, x->r.like->shape, x->r.b };
	vn_try_numbers(x->r.t, &a, &b, NULL, &h);
}

static void judge(held_rows *x)
{
	const bool       keys = x->r.t->site->target == x->r.t->site->plan->node[vn_case_node(x->r.t)].out[VN_ATTN_K_CACHE];
	const bool       zeros = x->of[x->first] == ZEROS;
	vn_applied       twice = { .kind = VN_BY_CHANGED };
	const vn_applied other = { .kind = VN_BY_CACHED,
		                       .cached = { (int)x->first, (int)(x->last - x->first + 1),
		                                   !zeros ? (int)x->of[x->first]
		                                   : keys ? VN_HOLDS_NO_KEYS
		                                          : VN_HOLDS_NO_VALUES,
		                                   0 } };

	if (are_twice(x, &twice.changed)) {
		try_slots(x, VN_FINDING_CACHE_TWICE, &twice);
		/* In the last slot alone, an earlier token: its run may begin again. */
		if (x->first < x->last || x->first - x->of[x->first] == 1)
			return;
	}
	if (is_one_run(x))
		try_slots(x, zeros ? VN_FINDING_CACHE_EMPTY : VN_FINDING_CACHE_OTHER_TOKENS, &other);
}

void vn_explain_cache_rows(vn_case *t)
{
	const vn_node *n = t->site->plan ? &t->site->plan->node[vn_case_node(t)] : NULL;
	held_rows      x = { .S = t->site->cand.shape.dim[0] };

	if (!n || n->op != VN_OP_ATTENTION || t->site->sampled || t->site->cand.shape.rank < 2 || x.S < 2 ||
	    (t->site->target != n->out[VN_ATTN_K_CACHE] && t->site->target != n->out[VN_ATTN_V_CACHE]))
		return;
	x.N = vn_shape_count(&t->site->cand.shape) / x.S;
	x.of = vn_alloc((size_t)x.S, sizeof *x.of);
	vn_rearranged_open(&x.r, t);
	if (find_tokens(&x))
		judge(&x);
	vn_rearranged_close(&x.r);
	free(x.of);
}
