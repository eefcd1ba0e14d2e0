/* choice_ways.c: see choice_ways.h. */
#include "compare/replay/choice_ways.h"

#include "libref/base/alloc.h"
#include "libref/exec/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scores nearer to each other than this many of their errors (root of the mean square) may change
 * places. With 6, one tie of 3,000 rows was missed: 5.7 of the errors of such a difference. */
#define REACH 8.0

/* Way 1 to LOWERED: of the last choices, each alone; then the last one and what takes its place;
 * the whole groups of all chosen ones; one group, also if none of it is chosen: it may have kept
 * another out. */
enum { LOWERED = 5, TWICE, ALL, GROUP };

void vn_choice_ways_init(vn_choice_ways *w, const vn_plan *plan, int node, int64_t rows)
{
	const int k = plan->node[node].c.top_k.k, E = plan->node[node].c.top_k.columns;
	const int groups = plan->node[node].c.top_k.groups;

	*w = (vn_choice_ways) { .node = node, .rows = rows, .k = k, .experts = E, .in_group = groups ? E / groups : 1 };
	w->unsorted = plan->node[node].w[0] >= 0;
	w->ids = vn_alloc_zero((size_t)(VN_CHOICE_WAYS * rows * k), sizeof *w->ids);
	w->is = vn_alloc_zero((size_t)(VN_CHOICE_WAYS * rows), sizeof *w->is);
	w->score = vn_alloc_zero((size_t)(rows * E), sizeof *w->score);
	w->error = vn_alloc_zero((size_t)rows, sizeof *w->error);
}

void vn_choice_ways_finish(vn_choice_ways *w)
{
	VN_FREE(w->ids, w->is, w->score, w->error, w->weights);
}

static vn_status read_numbers(const vn_replay_engine *e, const vn_plan *plan, int value, int64_t n, double *x,
                              vn_error *err)
{
	const vn_dtype  as = vn_policy_dtype(e->policy, vn_value_wide(plan, value));
	VN_FREED void  *raw = vn_alloc((size_t)n, sizeof *x);
	const vn_tensor t = { as, { .rank = 1, .dim = { n } }, raw };
	const vn_status st = vn_ref_ops.read(e->ref, value, raw, err);

	if (!st)
		vn_tensor_numbers(&t, 0, n, x);
	return st;
}

static vn_status write_numbers(const vn_replay_engine *e, const vn_plan *plan, int value, int64_t n, const double *x,
                               vn_error *err)
{
	const vn_dtype as = vn_policy_dtype(e->policy, vn_value_wide(plan, value));
	VN_FREED void *raw = vn_alloc((size_t)n, sizeof *x);

	vn_convert(raw, as, x, VN_F64, (size_t)n, 1);
	return vn_ref_ops.write(e->ref, value, raw, err);
}

vn_status vn_choice_errors(vn_choice_ways *w, const vn_plan *plan, vn_replay_engine *const *e, int n, vn_error *err)
{
	const int        value = plan->node[w->node].in[0];
	const int64_t    E = w->experts, all = w->rows * E;
	VN_FREED double *x = vn_alloc((size_t)all, sizeof *x), *y = vn_alloc((size_t)all, sizeof *y);
	vn_status        st = read_numbers(e[0], plan, value, all, x, err);

	memset(w->error, 0, (size_t)w->rows * sizeof *w->error);
	for (int i = 1; !st && i < n; i++) {
		st = read_numbers(e[i], plan, value, all, y, err);
		for (int64_t t = 0; !st && t < w->rows; t++) {
			double dd = 0;
			for (int64_t j = t * E; j < (t + 1) * E; j++)
				dd += (y[j] - x[j]) * (y[j] - x[j]) / (double)E;
			w->error[t] = i < n - 1 ? w->error[t] + dd / (n - 2) : fmax(w->error[t], dd);
		}
	}
	return st;
}

/* A little more than one rounding of a score in the format in which it was recorded, since a tie is
 * one rounding wide; VN_N_DTYPES: it was not. */
static double one_rounding(double score, vn_dtype recorded)
{
	const double least = recorded == VN_F16 ? 0x1p-14 : 0x1p-126; /* normal numbers */

	return recorded == VN_N_DTYPES ? 0 : 1.5 * ldexp(1, ilogb(fmax(fabs(score), least)) - vn_dtype_digits(recorded));
}

static bool has_id(const double *set, int64_t k, double id)
{
	bool found = false;

	for (int64_t i = 0; !found && i < k; i++)
		found = set[i] == id;
	return found;
}

static bool is_same_set(const double *a, const double *b, int64_t k)
{
	bool same = true;

	for (int64_t i = 0; same && i < k; i++)
		same = has_id(b, k, a[i]);
	return same;
}

static double reach_of(const vn_choice_ways *w, int64_t row, double score)
{
	return fmax(REACH * sqrt(w->error[row]), one_rounding(score, w->recorded));
}

bool vn_choice_is_tie(const vn_choice_ways *w, int64_t row, const double *ids, int64_t slot, int64_t other)
{
	const double *score = w->score + row * w->experts, *weight = w->weights ? w->weights + row * w->k : NULL;
	const double  a = score[(int64_t)ids[slot]], b = score[(int64_t)ids[other]];

	return fabs(a - b) <= reach_of(w, row, fmax(a, b)) || (weight ? weight[slot] == weight[other] : w->unsorted);
}

/* Is the expert in the group of a chosen one? */
static bool is_beside(const vn_choice_ways *w, const double *own, int64_t expert)
{
	bool beside = false;

	for (int64_t i = 0; !beside && i < w->k; i++)
		beside = expert / w->in_group == (int64_t)own[i] / w->in_group;
	return beside;
}

/* Lowers what the way lowers in a row's scores. The last ids have the lowest scores. */
static void lower_scores(const vn_choice_ways *w, int way, int64_t row, double *score)
{
	const double *own = vn_choice_way(w, 0, row), *next = vn_choice_way(w, 1, row);

	for (int64_t j = 0; way >= ALL && j < w->experts; j++)
		if (way == ALL ? is_beside(w, own, j) : j / w->in_group == way - GROUP)
			score[j] -= reach_of(w, row, score[j]);
	for (int64_t i = 0; way < ALL && i < w->k; i++) {
		const bool twice = way == TWICE && !has_id(own, w->k, next[i]);
		if (i == w->k - (way == TWICE ? 1 : way))
			score[(int64_t)own[i]] -= reach_of(w, row, score[(int64_t)own[i]]);
		if (twice)
			score[(int64_t)next[i]] -= reach_of(w, row, score[(int64_t)next[i]]);
	}
}

/* Marks the sets of a way that no way before it has. */
static void mark_new(const vn_choice_ways *w, int way)
{
	for (int64_t row = 0; row < w->rows; row++) {
		bool *is = &w->is[way * w->rows + row];
		*is = true;
		for (int before = 0; *is && before < way; before++)
			*is = !is_same_set(w->ids + (way * w->rows + row) * w->k, vn_choice_way(w, before, row), w->k);
	}
}

/* How many of the numbers x (n) are before x[i] if the largest is first. */
static int64_t rank_of(const double *x, int64_t n, int64_t i)
{
	int64_t rank = 0;

	for (int64_t j = 0; j < n; j++)
		rank += x[j] > x[i] || (x[j] == x[i] && j < i);
	return rank;
}

/* Puts ids (k) into the order of the weights (k), which grow with the scores (E). NaNs have no
 * order, and leave them as they are. */
static void order_ids(double *ids, const double *score, const double *weight, int64_t k)
{
	VN_FREED double *own = vn_alloc((size_t)k, sizeof *own), *was = vn_alloc((size_t)k, sizeof *was);
	bool             numbers = true;

	memcpy(was, ids, (size_t)k * sizeof *ids);
	for (int64_t i = 0; i < k; i++) {
		own[i] = score[(int64_t)ids[i]];
		numbers = numbers && !isnan(own[i]) && !isnan(weight[i]);
	}
	for (int64_t i = 0; numbers && i < k; i++)
		for (int64_t j = 0; j < k; j++)
			if (rank_of(own, k, j) == rank_of(weight, k, i))
				ids[i] = was[j];
}

vn_status vn_choice_find_ways(vn_choice_ways *w, const vn_plan *plan, vn_replay_engine *e, int ways, vn_error *err)
{
	const vn_node   *node = &plan->node[w->node];
	const int64_t    E = w->experts, all = w->rows * E, n = w->rows * w->k;
	VN_FREED double *now = vn_alloc((size_t)all, sizeof *now);
	vn_status        st = read_numbers(e, plan, node->in[0], all, w->score, err);

	st = st ? st : read_numbers(e, plan, node->out[0], n, w->ids, err);
	mark_new(w, 0);
	ways = node->c.top_k.groups || ways < GROUP ? ways : GROUP;
	for (int way = 1; !st && way < ways; way++) {
		memcpy(now, w->score, (size_t)all * sizeof *now);
		for (int64_t row = 0; row < w->rows; row++)
			lower_scores(w, way, row, now + row * E);
		if (!(st = write_numbers(e, plan, node->in[0], all, now, err)) &&
		    !(st = vn_ref_ops.run(e->ref, w->node, w->node + 1, err)) &&
		    !(st = read_numbers(e, plan, node->out[0], n, w->ids + way * n, err)))
			mark_new(w, way);
	}
	for (int64_t i = 0; !st && w->weights && i < ways * w->rows; i++)
		order_ids(w->ids + i * w->k, w->score + i % w->rows * E, w->weights + i % w->rows * w->k, w->k);
	return st || ways == 1 ? st : write_numbers(e, plan, node->in[0], all, w->score, err);
}

vn_status vn_choice_put(const vn_choice_ways *w, const vn_plan *plan, const double *ids, const vn_replay_engine *e,
                        vn_error *err)
{
	return write_numbers(e, plan, plan->node[w->node].out[0], w->rows * w->k, ids, err);
}
