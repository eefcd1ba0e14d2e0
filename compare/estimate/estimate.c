/* estimate.c: see estimate.h. First, each operation near the checkpoint is tried in its own way.
 * If others lie between the checkpoint and captured values, an engine may use one number for
 * several of them: it is fitted for all of a kind, for those of a layer, and for one alone. */
#include "compare/estimate/estimate.h"
#include "compare/trial/fit.h"
#include "compare/trial/score.h"
#include "compare/trial/trial_apply.h"

#include <math.h>

enum { ALONE = 4 }; /* the most operations, starting with the checkpoint's own, that are each tried in their own way */
enum { TRIED_ALONE = 4 }; /* the most layers between captured tensors, and operations of a kind, tried one by one */

typedef void (*estimator)(vn_case *t, const vn_trial *at);

#define OF(op) (UINT64_C(1) << VN_OP_##op)
#define NORMS  (OF(RMS_NORM) | OF(LAYER_NORM) | OF(L2_NORM) | OF(GATED_NORM))

/* ---- learned positions ----------------------------------------------------------------------- */

enum { TESTED = 8 }; /* the most tokens that are compared with the rows of the table */

/* The squared error of the candidate's token `at` if its row of the table is `by` further on. */
static double row_off_by(const vn_case *t, const vn_tensor *table, int64_t at, int64_t by)
{
	const int64_t D = table->shape.dim[1], row = t->site->first + at;
	double        sum = 0;

	for (int64_t d = 0; d < D; d++) {
		const double e = vn_tensor_number(&t->own, at * D + d) - vn_tensor_number(table, row * D + d) +
		                 vn_tensor_number(table, (row + by) * D + d) - vn_tensor_number(&t->site->cand, at * D + d);
		sum += e * e;
	}
	return sum;
}

/* The shift that leaves the least error; 0: no shift leaves any finite error. */
static int64_t shift_of(const vn_case *t, const vn_tensor *table)
{
	const int64_t rows = t->site->cand.shape.dim[0], C = table->shape.dim[0], first = t->site->first,
				  some = rows < TESTED ? rows : TESTED;
	double  least = (double)INFINITY;
	int64_t best = 0;

	for (int64_t by = -first - rows; by < C - first; by++) {
		double sum = 0;
		for (int64_t i = 0; i < some && sum < least; i++) {
			const int64_t at = some < 2 ? 0 : (rows - 1) * i / (some - 1), to = first + at + by;
			/* A row outside the table stays as it is, as in trial_apply.c. */
			sum += row_off_by(t, table, at, to >= 0 && to < C ? by : 0);
		}
		if (sum < least) {
			least = sum;
			best = by;
		}
	}
	return best;
}

/* Estimates which row of the table of learned positions each token was given. at->node must look up
 * learned positions. */
static void estimate_positions(vn_case *t, const vn_trial *at)
{
	const vn_plan   *p = t->site->plan;
	const vn_tensor *c = &t->site->cand, *table = &t->site->weights[p->node[at->node].w[0]];
	const int64_t    past = vn_case_step(t)->position;
	vn_trial         h = VN_TRIAL(TABLE_OFFSET, at->node, .kind = VN_BY_ROWS), later = h;

	/* The checkpoint must be a row of the table, alone or added to something. */
	if (c->shape.rank != 2 || table->shape.rank != 2 || c->shape.dim[1] != table->shape.dim[1] ||
	    t->x->unmodified.residual.bad)
		return;
	const int64_t by = shift_of(t, table);
	h.applied.rows = later.applied.rows = (int)by;
	if (by)
		vn_fit_whole(t, &h, by, -table->shape.dim[0], table->shape.dim[0]);
	if (!by || !past)
		return;
	later.finding = VN_FINDING_TABLE_OFFSET_LATER;
	later.applied.later = true;
	vn_try(t, &later);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The state is lost every so many tokens: the first that is wrong is the first after a loss. */
static void lost_state(vn_case *t, const vn_trial *at)
{
	int64_t  first, last;
	vn_trial h = *at;

	vn_case_rows_off(t, NULL, &first, &last);
	if (t->site->first || first < 1)
		return;
	h.finding = VN_FINDING_STATE_LOST;
	vn_trial_constant_put(&h, "restart", (double)first);
	vn_try(t, &h);
}

/* The state that a call finds is multiplied: results depend on it linearly. */
static void fit_state_factor(vn_case *t, vn_trial *h)
{
	double  xy = 0, xx = 0;
	vn_made made;

	h->applied.state = (vn_other_state) { .kind = VN_STATE_TIMES };
	vn_trial_apply(t, h, &made);
	for (int64_t i = 0; made.fine.data && i < vn_shape_count(&made.fine.shape); i++) {
		const double without = vn_tensor_number(&made.fine, i), x = vn_tensor_number(&t->fine, i) - without;
		xy += x * (vn_tensor_number(&t->site->cand, i) - without);
		xx += x * x;
	}
	vn_made_finish(&made);
	if (isfinite(xy / xx))
		vn_fit_digits(t, h, xy / xx);
}

/* A call begins with another state than the call before left, or the first with one. */
static void other_states(vn_case *t, const vn_trial *at)
{
	enum { FARTHEST_HEAD = 8 };
	static const vn_other_state states[] = {
		{ .kind = VN_STATE_FIRST },
		{ .kind = VN_STATE_EARLIER, .calls = 1 },
		{ .kind = VN_STATE_EARLIER, .calls = 2 },
		{ .kind = VN_STATE_EARLIER, .calls = 3 },
		{ .kind = VN_STATE_AGAIN, .calls = 1 },
		{ .kind = VN_STATE_AGAIN, .calls = 2 },
		{ .kind = VN_STATE_ROUNDED, .format = VN_FORMAT_BF16 },
		{ .kind = VN_STATE_ROUNDED, .format = VN_FORMAT_F16 },
		{ .kind = VN_STATE_ROUNDED, .format = VN_FORMAT_E4M3 },
		{ .kind = VN_STATE_PADDING },
		{ .kind = VN_STATE_PACKED },
	};

	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		vn_trial h = *at;
		h.finding = VN_FINDING_OTHER_STATE;
		h.applied = (vn_applied) { .kind = VN_BY_STATE,
			                       .later = states[i].kind < VN_STATE_PADDING,
			                       .state = states[i] };
		vn_try(t, &h);
	}
	const vn_node *n = &t->site->plan->node[at->node];
	vn_trial       h = *at;
	h.finding = VN_FINDING_OTHER_STATE;
	h.applied = (vn_applied) { .kind = VN_BY_STATE, .later = true };
	if (n->op != VN_OP_DELTA_RULE)
		return;
	h.applied.state = (vn_other_state) { .kind = VN_STATE_TURNED };
	vn_try(t, &h);
	const int heads = n->c.delta.value_heads, last = heads > 2 ? heads - 2 : 1;
	for (int by = heads > 2 ? -1 : 1; by <= last && by < heads && by <= FARTHEST_HEAD; by++) {
		h.applied.state = (vn_other_state) { .kind = VN_STATE_ROLLED, .calls = by };
		vn_try(t, &h);
	}
	if (!vn_case_answered(t))
		fit_state_factor(t, &h);
}

/* How many tokens of a call an expert takes. */
static void fit_capacity(vn_case *t, const vn_trial *at)
{
	const vn_plan *p = t->site->plan;
	const int64_t  high = t->site->tokens * vn_value_row(&p->value[p->node[at->node].in[VN_EXPERTS_IDS]]);
	vn_trial       h = *at;

	h.finding = VN_FINDING_CAPACITY;
	vn_trial_constant_put(&h, "capacity", 1);
	const vn_least best = vn_case_best_whole(t, &h, 1, high);
	if (isfinite(best.error))
		vn_fit_whole(t, &h, (int64_t)best.x, 1, high);
}

/* Experts have the weights of those of another rank. The catalogue has the next one and the one
 * before. */
static void try_moved(vn_case *t, const vn_trial *at)
{
	enum { RANKS = 16 };
	const int E = t->site->plan->node[at->node].c.experts.experts, each = (E + RANKS - 1) / RANKS;

	for (int by = each > 1 ? each : 2; by < E - 1 && !vn_case_answered(t); by += each) {
		vn_trial h = *at;
		h.finding = VN_FINDING_EXPERTS_MOVED;
		vn_trial_constant_put(&h, "moved", by);
		vn_try(t, &h);
	}
}

/* What is fitted at an operation: a function that reads the number off, or the constant of a
 * finding and its range: for an operation alone, and with other operations in between (no
 * steps: not fitted). The rows of an operation are tried in order until one answers; a row with
 * `beside` is always tried. */
static const struct estimator_row {
	uint64_t   ops;
	vn_finding finding;
	vn_range   alone, among;
	bool       times_own; /* the range is from the model's number / high to the model's number * high */
	bool       beside;
	estimator  read_alone, read_among;
} table[] = {
	{ OF(ROPE), .read_alone = vn_estimate_rope },
	{ OF(ROPE), .read_alone = vn_estimate_stretch_of_one, .beside = true },
	{ OF(ROPE), VN_FINDING_THETA, .among = { 10, 1e9, 73, true } },
	{ OF(POSITIONS), .read_alone = estimate_positions },
	{ NORMS, VN_FINDING_EPS, { 1e-13, 10, 17, false }, .among = { 1e-9, 10, 33, true } },
	/* eps outside the root: for rows of similar size it equals another eps under the root */
	{ NORMS, VN_FINDING_EPS_OUTSIDE, { 1e-13, 10, 17, false }, .beside = true },
	{ OF(ATTENTION), .read_alone = vn_estimate_window, .read_among = vn_estimate_window },
	{ OF(ATTENTION), .read_alone = vn_estimate_blocks },
	{ OF(ATTENTION), .read_alone = vn_estimate_prefix },
	{ OF(ATTENTION), .read_alone = vn_estimate_head_roll },
	{ OF(ATTENTION), VN_FINDING_SCORE_SCALE, { 0, 100, 17, false }, { 0, 100, 33, true }, .times_own = true },
	{ OF(EXPERTS), .read_alone = fit_capacity, .read_among = fit_capacity },
	{ OF(EXPERTS), .read_alone = try_moved, .read_among = try_moved },
	{ OF(DELTA_RULE), VN_FINDING_DELTA_SCALE, { 0, 100, 17, false }, .times_own = true },
	{ OF(DELTA_RULE), .read_alone = lost_state },
	{ OF(DELTA_RULE), .read_alone = other_states },
	{ OF(CAUSAL_CONV), .read_alone = other_states },
};

static double own_scale(const vn_node *n)
{
	return n->op == VN_OP_ATTENTION ? n->c.attention.scale : n->c.delta.scale;
}

static void fit_row(vn_case *t, const struct estimator_row *r, const vn_trial *at, vn_range in)
{
	vn_trial h = *at;

	h.finding = r->finding;
	if (r->times_own) {
		const double own = own_scale(&t->site->plan->node[at->node]);
		in.low = own / in.high;
		in.high = own * in.high;
	}
	if (r->finding == VN_FINDING_EPS_OUTSIDE)
		vn_trial_constant_put(&h, "eps_outside", 1);
	vn_fit_constant(t, &h, in);
	if (!r->times_own || vn_case_answered(t))
		return;
	vn_trial_number_put(&h, 0); /* no range of logarithms contains 0 */
	vn_try(t, &h);
}

/* Tries the rows of the operation at `at`. among: other operations are between it and the
 * checkpoint. */
static void fit_rows(vn_case *t, const vn_trial *at, bool among)
{
	const vn_op op = t->site->plan->node[at->node].op;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct estimator_row *r = &table[i];
		const vn_range              in = among ? r->among : r->alone;
		const estimator             read = among ? r->read_among : r->read_alone;
		if (!(r->ops >> op & 1) || (vn_case_answered(t) && !r->beside && i && table[i - 1].ops == r->ops))
			continue;
		if (read)
			read(t, at);
		else if (in.steps)
			fit_row(t, r, at, in);
	}
}

/* ---- several at once ------------------------------------------------------------------------- */

/* Can one number be fitted for several operations of this kind at once? */
static bool is_shared(vn_op op)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].ops >> op & 1 && (table[i].among.steps || table[i].read_among))
			return true;
	return false;
}

/* Counts how many operations of the span h changes, and how many it could. */
static void count_places(vn_case *t, vn_trial *h)
{
	const vn_plan          *p = t->site->plan;
	const vn_node          *a = &p->node[h->node];
	const vn_applied_places places = h->applied.constants.places;
	const int               n = t->site->n_span, *span = t->site->span;

	h->places = 0;
	for (int i = 0; i < n; i++) {
		const vn_node *b = &p->node[span[i]];
		if (b->op != a->op || (places == VN_IN_LAYER && b->layer != a->layer) || (places == VN_AT_NODE && b != a))
			continue;
		h->other = span[i] != h->node ? span[i] : h->other;
		h->places++;
	}
	if (h->places < 2)
		h->places = h->other = 0;
}

/* Is operation i of the span the first of its kind there: in one layer, or (-1) in all layers? */
static bool is_first_of_kind(const vn_case *t, int layer, int i)
{
	const vn_node *node = t->site->plan->node, *n = &node[t->site->span[i]];
	bool           first = layer < 0 || n->layer == layer;

	for (int k = 0; k < i; k++) {
		const vn_node *before = &node[t->site->span[k]];
		first = first && (before->op != n->op || (layer >= 0 && before->layer != layer));
	}
	return first;
}

static void fit_each_kind(vn_case *t, int layer)
{

	for (int i = 0; i < t->site->n_span && !vn_case_answered(t); i++) {
		vn_trial h = { .node = t->site->span[i],
			           .applied = { .kind = VN_BY_CONSTANTS,
			                        .constants.places = layer < 0 ? VN_EVERYWHERE : VN_IN_LAYER } };
		if (!is_shared(t->site->plan->node[h.node].op) || !is_first_of_kind(t, layer, i))
			continue;
		count_places(t, &h);
		if (h.places)
			fit_rows(t, &h, true);
	}
}

/* Fits the operations after those that were tried in their own way, each alone, if they are few. */
static void fit_each_alone(vn_case *t)
{
	const vn_plan *p = t->site->plan;
	const int     *span = t->site->span, n = t->site->n_span;
	int            of[VN_N_OPS] = { 0 };

	for (int i = 0; i < n; i++)
		of[p->node[span[i]].op]++;
	for (int i = 0; i < n && !vn_case_answered(t); i++) {
		const vn_op op = p->node[span[i]].op;
		if (is_shared(op) && of[op] <= TRIED_ALONE && (i >= ALONE || (op == VN_OP_ROPE && i)))
			fit_rows(t, &(vn_trial) { .node = span[i] }, true);
	}
}

static void fit_together(vn_case *t)
{
	const vn_plan *p = t->site->plan;
	const int     *span = t->site->span, n = t->site->n_span;
	int            low = p->layers, high = -1;

	for (int i = 0; i < n; i++) {
		const int layer = p->node[span[i]].layer;
		low = layer >= 0 && layer < low ? layer : low;
		high = layer > high ? layer : high;
	}
	fit_each_kind(t, -1);
	for (int layer = low; high > low && high - low < TRIED_ALONE && layer <= high && !vn_case_answered(t); layer++)
		fit_each_kind(t, layer);
	if (!vn_case_answered(t))
		fit_each_alone(t);
}

void vn_estimate(vn_case *t)
{
	const int n = t->site->n_span, *span = t->site->span;

	for (int i = 0; i < n && i < ALONE; i++)
		fit_rows(t, &(vn_trial) { .node = span[i] }, false);
	if (!vn_case_answered(t) && n >= 2 && !t->brief)
		fit_together(t);
}
