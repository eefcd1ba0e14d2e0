/* catalogue.c: see catalogue.h. */
#include "compare/trial/catalogue.h"
#include "compare/trial/fit.h"
#include "compare/trial/score.h"

#include "libref/base/alloc.h"
#include "libref/plan/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_read(const vn_plan *p, int root)
{
	for (int i = 0; i < p->n_nodes; i++)
		for (int k = 0; k < p->node[i].n_in; k++)
			if (vn_plan_root(p, p->node[i].in[k]) == root)
				return true;
	return false;
}

/* Bits prove a number format: an operation that rounds to it produces only its numbers. */
static bool could_be(const vn_case *t, const vn_node *made)
{
	const vn_act             as = made->op == VN_OP_ACT ? (vn_act)made->c.act.act : VN_IDENTITY;
	const vn_rounding_format format = as == VN_AS_BF16_CUT ? VN_FORMAT_BF16 : VN_FORMAT_F16;
	const int64_t            n = vn_shape_count(&t->site->cand.shape);

	if ((as != VN_AS_BF16_CUT && as != VN_AS_F16_CUT) ||
	    t->site->cand.dtype == (as == VN_AS_BF16_CUT ? VN_BF16 : VN_F16))
		return true;
	for (int64_t i = 0; i < n; i++) {
		const double x = (double)(float)vn_tensor_number(&t->site->cand, i);
		if (isfinite(x) && x != vn_in_format(x, format))
			return false;
	}
	return true;
}

/* Records which value's numbers a value holds if the faulty plan copies another value to it. */
static void put_held(const vn_plan *faulty, int root, vn_trial *h)
{
	const vn_node *n = &faulty->node[faulty->value[root].node];

	if (h->recorder_fault && n->op == VN_OP_SLICE && n->c.slice.from == 0 && n->c.slice.width == n->c.slice.stride)
		snprintf(h->recorded_instead, sizeof h->recorded_instead, "%s", faulty->value[n->in[0]].name);
}

/* A trial that leaves more than this share of the error in some columns does not
 * explain it: an answer must leave less than half (vn_case_fits). */
#define LEAVES 0.75

/* Computes some columns of a trial. Returns whether they leave so much error that the rest need not
 * be computed. */
static bool estimate_columns(vn_case *t, const vn_plan *plan, const vn_tensor *weights, vn_trial *h)
{
	const vn_replayed *unmodified = &t->x->unmodified.residual;
	double             share;

	if (!vn_recompute_touched(t->recompute, plan, weights))
		return true; /* it changes nothing here */
	if (!vn_case_made(t, vn_recompute_estimate_columns(t->recompute, plan, weights, &share, vn_case_error(t))) ||
	    share <= LEAVES)
		return false;
	h->estimated = true;
	h->residual = *unmodified;
	h->residual.local = share * unmodified->local;
	h->limit_fraction = share * t->x->unmodified.limit_fraction;
	vn_case_keep(t->x, h);
	return true;
}

/* One fault at n nodes at once, or (fault[1] is 0 or more) two faults at one node. */
typedef struct made_fault {
	int        fault[2];
	const int *node;
	int        n;
} made_fault;

/* some: estimates it from these columns alone; NULL: computes all. Returns whether nothing is left
 * to be tried. */
static bool try_made(vn_case *t, const made_fault *m, const vn_some_rows *some)
{
	const int     *fault = m->fault, *node = m->node, n = m->n;
	const vn_plan *plan = t->site->plan;
	const int      root = vn_plan_root(plan, vn_plan_find(plan, t->result->checkpoints.of[t->x->checkpoint].name));
	const bool     pair = fault[1] >= 0;
	vn_trial       h = { .fault = { 1 + fault[0], 1 + fault[1] }, .node = node[0], .places = n > 1 ? n : 0 };
	char           what[VN_NAME_MAX + 40];
	vn_faulty     *f;
	bool           settled = !vn_case_made(t, vn_faulty_create(plan, t->site->weights, &f, vn_case_error(t)));

	h.other = n > 1 ? node[1] : 0;
	for (int i = 0; i < n; i++)
		if (node[i] < VN_TRIAL_NODES)
			h.at[node[i] / 64] |= UINT64_C(1) << (node[i] % 64);
	if (settled)
		return true;
	vn_faulty_make_some(f, some);
	/* not made: the weights do not change, or the fault does not apply to their format or after the
	 * other */
	for (int i = 0; !settled && i < (pair ? 2 : n); i++) {
		snprintf(what, sizeof what, "%s@%s", vn_fault_id(fault[pair ? i : 0]),
		         plan->value[plan->node[node[pair ? 0 : i]].out[0]].name);
		settled = !vn_case_made(t, vn_faulty_inject(f, what, vn_case_error(t)));
	}
	if (!settled) {
		const vn_plan *made = vn_faulty_plan(f);
		h.recorder_fault = !pair && is_read(plan, root) && !is_read(made, root);
		put_held(made, root, &h);
		settled = (t->consumed != VN_CONSUMED_UNKNOWN && h.recorder_fault != (t->consumed == VN_CONSUMED_OTHERS)) ||
		          !could_be(t, &made->node[made->value[root].node]);
		if (!settled && some)
			settled = estimate_columns(t, made, vn_faulty_weights(f), &h);
		else if (!settled)
			vn_try_plan(t, made, vn_faulty_weights(f), &h);
	}
	vn_faulty_destroy(f);
	return settled;
}

static void try_fault(vn_case *t, int fault, const int *node, int n)
{
	const vn_plan   *p = t->site->plan;
	const made_fault m = { { fault, -1 }, node, n };
	const bool       by_column = t->some && n == 1 && vn_value_row(&p->value[p->node[node[0]].out[0]]) == t->some->of;

	if (!by_column || !try_made(t, &m, t->some))
		try_made(t, &m, NULL);
}

void vn_catalogue_measure_next(vn_case *t)
{
	vn_findings *x = t->x;

	while (x->n > x->n_alias && x->by[x->n_alias].estimated && !x->by[x->n_alias].places &&
	       x->by[x->n_alias].residual.local < x->unmodified.residual.local) {
		const vn_trial h = x->by[x->n_alias];
		memmove(x->by + x->n_alias, x->by + x->n_alias + 1, (size_t)(x->n - x->n_alias - 1) * sizeof *x->by);
		x->n--;
		try_made(t, &(made_fault) { { vn_trial_row(&h), -1 }, &h.node, 1 }, NULL);
		vn_case_conclude(t);
	}
}

static bool of_query_or_key(const vn_plan *p, int node)
{
	switch (p->value[p->node[node].out[0]].point) {
	case VN_POINT_Q_PROJ:
	case VN_POINT_K_PROJ:
	case VN_POINT_Q_NORM:
	case VN_POINT_K_NORM:
	case VN_POINT_Q_ROPE:
	case VN_POINT_K_ROPE: return true;
	default: return false;
	}
}

/* An engine repeats a mistake wherever it does the same. Tries the fault at all n nodes that it
 * fits, in each layer, and at each layer's queries and keys. */
static void try_together(vn_case *t, int fault, const int *fit, int n)
{
	enum { FEW_LAYERS = 4 }; /* the most layers between captured tensors whose parts are tried */
	const vn_plan *plan = t->site->plan;
	int           *some = vn_alloc((size_t)n, sizeof *some), low = plan->layers, high = 0;

	if (n >= 2)
		try_fault(t, fault, fit, n);
	for (int i = 0; i < n; i++) {
		const int layer = plan->node[fit[i]].layer;
		low = layer >= 0 && layer < low ? layer : low;
		high = layer > high ? layer : high;
	}
	for (int layer = low; n >= 2 && layer <= high && high - low < FEW_LAYERS; layer++)
		for (int pair = 0; pair < 2; pair++) {
			int k = 0, all = 0;
			for (int i = 0; i < n; i++) {
				const bool here = plan->node[fit[i]].layer == layer;
				all += here;
				if (here && (!pair || of_query_or_key(plan, fit[i])))
					some[k++] = fit[i];
			}
			if (k >= 2 && k < n && !(pair && k == all))
				try_fault(t, fault, some, k);
		}
	free(some);
}

/* A fault at one operation may change another (a norm moved behind the sum is missing in front
 * of it). Adds the operations of the layer's other origins after the first n of `place`. */
static int and_origins(const vn_case *t, int *place, int n)
{
	const vn_result     *r = t->result;
	const vn_checkpoint *me = &r->checkpoints.of[t->x->checkpoint];
	const vn_plan       *plan = t->site->plan;

	for (int i = 0; i < r->localised.n_origins && n < plan->n_nodes; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[r->localised.origins[i]];
		const int            v = p->step == me->step && p->layer == me->layer ? vn_plan_find(plan, p->name) : -1;
		bool                 there = v < 0;
		for (int k = 0; !there && k < n; k++)
			there = place[k] == plan->value[vn_plan_root(plan, v)].node;
		if (!there)
			place[n++] = plan->value[vn_plan_root(plan, v)].node;
	}
	return n;
}

static void try_pair(vn_case *t, int a, int b, int node)
{
	try_made(t, &(made_fault) { { a, b }, &node, 1 }, NULL);
}

/* Tries a pair of faults at each operation between the checkpoint and recorded tensors. */
static void try_pair_again(vn_case *t, const vn_trial *h)
{
	const vn_site *site = t->site;

	for (int i = 0; i < site->n_span; i++)
		if (!vn_fault_why_not(h->fault[0] - 1, site->plan, site->span[i]) &&
		    !vn_fault_why_not(h->fault[1] - 1, site->plan, site->span[i]))
			try_pair(t, h->fault[0] - 1, h->fault[1] - 1, site->span[i]);
}

void vn_catalogue(vn_case *t, const vn_findings *only)
{
	const vn_plan *plan = t->site->plan;
	const int      spanned = t->site->n_span;
	int            n = spanned;
	VN_FREED int  *place = vn_alloc((size_t)plan->n_nodes, sizeof *place),
				 *fit = vn_alloc((size_t)plan->n_nodes, sizeof *fit);

	memcpy(place, t->site->span, (size_t)n * sizeof *place);
	n = and_origins(t, place, n);
	for (int f = 0; f < vn_n_faults(); f++) {
		bool wanted = !only;
		int  fits = 0;
		for (int i = 0; only && i < only->n && i <= only->n_alias; i++)
			wanted = wanted || vn_trial_row(&only->by[i]) == f;
		for (int k = 0; wanted && k < n; k++) {
			if (vn_fault_why_not(f, plan, place[k]))
				continue;
			fit[fits++] = place[k];
			try_fault(t, f, &place[k], 1);
		}
		t->x->n_tried += fits > 0;
		if (spanned > 1 && fits > 1)
			try_together(t, f, fit, fits);
	}
	for (int i = 0; only && i < only->n && i <= only->n_alias; i++)
		if (vn_trial_is_pair(&only->by[i]))
			try_pair_again(t, &only->by[i]);
}

void vn_catalogue_at(vn_case *t, int node)
{
	for (int f = 0; f < vn_n_faults(); f++) {
		if (vn_fault_why_not(f, t->site->plan, node))
			continue;
		t->x->n_tried++;
		try_fault(t, f, &node, 1);
	}
}

/* ---- two at one operation -------------------------------------------------------------------- */

/* Operations that are cheap enough to recompute some hundred times, and that engines get wrong
 * in several ways. */
static bool is_cheap(vn_op op)
{
	return op == VN_OP_ROPE || vn_op_get(op)->is_norm;
}

/* Is 1 / rms of a norm rounded? With any other change of it, the rows near a tie round the other
 * way, as they may in an engine that has this mistake alone. */
static bool rounds_a_row(int fault)
{
	static const vn_mistake of[] = { VN_MISTAKE_N21_F16, VN_MISTAKE_N21_BF16, VN_MISTAKE_N22_F16, VN_MISTAKE_N22_BF16 };
	bool                    is = false;

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		is = is || fault == vn_mistake_fault(of[i]);
	return is;
}

/* Mistakes of arithmetic and of weights. Two mistakes of buffers or formats at once are
 * improbable. */
static bool may_join(const vn_case *t, int fault, int node)
{
	return strchr("RNWG", vn_fault_chapter(fault)) && !rounds_a_row(fault) &&
	       !vn_fault_why_not(fault, t->site->plan, node);
}

/* Fits an eps together with this mistake of a norm. */
static void try_eps_and(vn_case *t, int fault)
{
	const vn_range within = { 1e-9, 10, 33, true };
	const int      node = t->site->span[0];
	const vn_op    op = t->site->plan->node[node].op;
	vn_trial       h = { .finding = VN_FINDING_EPS,
		                 .node = node,
		                 .fault = { 1 + fault },
		                 .applied = { .kind = VN_BY_CONSTANTS, .constants.places = VN_AT_NODE } };

	if ((op != VN_OP_RMS_NORM && op != VN_OP_LAYER_NORM) || vn_fault_chapter(fault) != 'N' ||
	    strcmp(vn_fault_constant(fault), "eps") == 0 || !may_join(t, fault, node))
		return;
	vn_fit_constant(t, &h, within);
}

/* Fits an eps together with each other mistake of the norm. If several fit, the best is the
 * answer. */
static void try_eps_and_fault(vn_case *t)
{
	for (int f = 0; f < vn_n_faults(); f++)
		try_eps_and(t, f);
}

void vn_catalogue_eps_beside(vn_case *t)
{
	const vn_trial *h = &t->x->by[0];

	if (!(t->site->n_span != 1 || t->part || h->finding != VN_FINDING_FAULT || h->fault[1] ||
	      h->node != t->site->span[0]))
		try_eps_and(t, h->fault[0] - 1);
}

/* Pairs that are tried at expensive operations too: one mistake of a mask may move
 * both of its ends. */
static const struct {
	vn_mistake first, second;
} known_pairs[] = {
	{ VN_MISTAKE_A2, VN_MISTAKE_A5_MISSING },
	/* a mask one row ahead: the window ends a key later, and begins a key later */
	{ VN_MISTAKE_A3_AHEAD, VN_MISTAKE_A5_NARROW },
};

enum { N_KNOWN_PAIRS = sizeof known_pairs / sizeof *known_pairs };

static bool fits_pair(const vn_case *t, int i, int node)
{
	const vn_plan *p = t->site->plan;
	return !vn_fault_why_not(vn_mistake_fault(known_pairs[i].first), p, node) &&
	       !vn_fault_why_not(vn_mistake_fault(known_pairs[i].second), p, node);
}

bool vn_catalogue_has_pairs(const vn_case *t)
{
	const vn_site *s = t->site;
	bool           known = false;

	if (s->n_span != 1 || t->brief || t->part || t->consumed == VN_CONSUMED_OTHERS)
		return false;
	for (int i = 0; i < N_KNOWN_PAIRS; i++)
		known = known || fits_pair(t, i, s->span[0]);
	return known || is_cheap(s->plan->node[s->span[0]].op);
}

void vn_catalogue_pairs(vn_case *t)
{
	const int node = t->site->span[0];

	/* A fault of frequencies applies to all of them, so two faults of a rotation are tried in
	 * either order. */
	const bool either = t->site->plan->node[node].op == VN_OP_ROPE;
	for (int i = 0; i < N_KNOWN_PAIRS; i++)
		if (fits_pair(t, i, node))
			try_pair(t, vn_mistake_fault(known_pairs[i].first), vn_mistake_fault(known_pairs[i].second), node);
	if (vn_case_answered(t) || !is_cheap(t->site->plan->node[node].op))
		return;
	for (int a = 0; a < vn_n_faults(); a++)
		for (int b = either ? 0 : a + 1; may_join(t, a, node) && b < vn_n_faults(); b++)
			if (b != a && may_join(t, b, node))
				try_pair(t, a, b, node);
	/* In 16 bits, a fixed pair may fit within the floor where a fitted eps is right,
	 * and leaves far less. */
	if (!vn_case_answered(t) || vn_trial_residual(&t->x->by[0]) > VN_EXPLAIN_LEAST)
		try_eps_and_fault(t);
}

/* ---- what does the same ---------------------------------------------------------------------- */

static bool is_fault(const vn_trial *h, vn_mistake fault)
{
	return vn_trial_row(h) == vn_mistake_fault(fault);
}

/* A query that does not see its own key points to the mask, or to a cache that does not hold the
 * key yet; the latter occurs only after the first call. In a call of several tokens the cache
 * would lack all of their keys. */
static void try_not_yet(vn_case *t)
{
	const vn_step *s = vn_case_step(t);
	vn_trial       h = { .finding = VN_FINDING_OWN_KEY_MISSING, .applied.later = true };

	vn_trial_constant_put(&h, "ahead", -1);
	bool tried = !s || s->tokens != 1; /* or as the answer of another step */
	for (int i = 0; i < t->x->n; i++)
		tried = tried || t->x->by[i].finding == h.finding;
	for (int i = 0; !tried && i < t->x->n_alias; i++)
		if (is_fault(&t->x->by[i], VN_MISTAKE_A3_STRICT) && !t->x->by[i].places && !t->x->by[i].heads) {
			h.node = t->x->by[i].node;
			tried = true;
			vn_try(t, &h);
			vn_case_conclude(t);
		}
}

/* If queries and keys are rotated by the same angle, the products are those of no rotation. So
 * this fault also explains whatever skipping the rotation explains after both. */
static void try_rotated_alike(vn_case *t)
{
	const vn_plan *p = t->site->plan;
	const int      n = t->x->n_alias;
	bool           found = false;

	for (int i = 0; i < n && !found; i++) {
		const vn_trial *skipped = &t->x->by[i];
		vn_trial        h = { .finding = VN_FINDING_ANY_POSITION,
			                  .node = skipped->node,
			                  .places = skipped->places,
			                  .other = skipped->other };
		if (!is_fault(skipped, VN_MISTAKE_R12) || !skipped->places || p->node[skipped->node].op != VN_OP_ROPE)
			continue;
		found = true;
		vn_trial_constant_put(&h, "one_position", 1);
		vn_trial_constant_put(&h, "offset", 1);
		h.applied.constants.places = skipped->places > 2 ? VN_EVERYWHERE : VN_IN_LAYER;
		vn_score(t, &h);
		if (!(h.limit_fraction <= 1))
			continue;
		h.limit_fraction = skipped->limit_fraction; /* the same except for rounding */
		vn_case_keep(t->x, &h);
	}
	if (found)
		vn_case_conclude(t);
}

/* Adds to an answer of the catalogue the range of numbers that fit as well, which fitted answers
 * have. */
static void find_windows_beside(vn_case *t)
{
	vn_trial      *h = &t->x->by[0];
	const vn_plan *p = t->site->plan;
	vn_trial       as = { .node = h->node };
	const bool     fault = t->x->n_fit && h->finding == VN_FINDING_FAULT && !h->fault[1];
	const bool     wide = fault && is_fault(h, VN_MISTAKE_A5_WIDE), narrow = fault && is_fault(h, VN_MISTAKE_A5_NARROW);
	const bool     window = wide || narrow ||
	                    (fault && (is_fault(h, VN_MISTAKE_A5_SINKS) || is_fault(h, VN_MISTAKE_A5_LAYER)));
	int64_t now = 0;

	if (h->places || !window || p->node[h->node].op != VN_OP_ATTENTION)
		return;
	now = p->node[h->node].c.attention.window;
	for (int i = 0; !now && i < p->n_nodes; i++)
		now = p->node[i].op == VN_OP_ATTENTION ? p->node[i].c.attention.window : 0; /* that of another layer */
	now += wide ? 1 : narrow ? -1 : 0;
	vn_trial_constant_put(&as, "window", (double)now);
	const vn_whole_range good = vn_case_as_good(t, &as, now, (vn_whole_range) { 1, t->site->tokens });
	if (good.low == good.high)
		return;
	h->first = good.low;
	h->last = good.high;
}

void vn_catalogue_alike(vn_case *t)
{
	find_windows_beside(t);
	try_rotated_alike(t);
	try_not_yet(t);
}
