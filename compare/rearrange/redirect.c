/* redirect.c: see rearrange.h. */
#include "compare/rearrange/rearrange.h"
#include "compare/trial/catalogue.h"
#include "compare/trial/score.h"
#include "compare/trial/trial_apply.h"

#include "libref/plan/fault.h"

#include <math.h>

enum { NEAREST = 3 }; /* that are computed in full */
enum { SPANNED = 6 }; /* the most operations between the checkpoint and captured values that are tried */
#define LEAVES 0.25   /* the most that a redirected read may leave of the rows' error */

typedef struct nearest_reads {
	vn_case    *t;
	double      unmodified; /* nmse of the rows with correct reads */
	vn_findings ranked;     /* the best, with the nmse of their rows as limit_fraction */
} nearest_reads;

static double estimate_error(vn_case *t, const vn_plan *p)
{
	double off = (double)NAN;

	if (p)
		vn_case_made(t, vn_recompute_estimate_tokens(t->recompute, p, t->site->weights, &off, vn_case_error(t)));
	return off;
}

/* Keeps h in the list, ranked by its error in the rows. */
static void rank_trial(nearest_reads *near, vn_trial *h)
{
	vn_plan *p = vn_trial_plan(near->t, h);

	h->limit_fraction = estimate_error(near->t, p);
	vn_plan_destroy(p);
	if (h->limit_fraction < LEAVES * near->unmodified)
		vn_case_keep(&near->ranked, h);
}

/* ---- what it may read ------------------------------------------------------------------------ */

static vn_finding input_finding(const vn_node *n, int input)
{
	return n->op != VN_OP_ATTENTION || !input ? VN_FINDING_OTHER_INPUT
	       : input == VN_ATTN_V               ? VN_FINDING_OTHER_VALUES
	                                          : VN_FINDING_OTHER_KEYS;
}

static void other_inputs(nearest_reads *near, int node)
{
	const vn_plan *p = near->t->site->plan;
	const vn_node *n = &p->node[node];

	for (int i = 0; i < n->n_in; i++)
		for (int v = 0; v < p->n_values; v++) {
			vn_trial h = { .finding = input_finding(n, i), .node = node, .applied.kind = VN_BY_READS };
			if (!vn_case_could_read(near->t, n, i, v))
				continue;
			h.applied.reads.in[i] = 1 + v;
			rank_trial(near, &h);
		}
}

/* For attentions, reads keys and values of other layers together. */
static void other_cache(nearest_reads *near, int node)
{
	const vn_plan *p = near->t->site->plan;
	const vn_node *n = &p->node[node];

	for (int i = 0; i < node; i++) {
		const vn_node *o = &p->node[i];
		vn_trial       h = VN_TRIAL(OTHER_CACHE, node, .kind = VN_BY_READS);
		if (o->op != VN_OP_ATTENTION)
			continue;
		const int k = vn_plan_root(p, o->in[VN_ATTN_K]), v = vn_plan_root(p, o->in[VN_ATTN_V]);
		if (!vn_case_could_read(near->t, n, VN_ATTN_K, k) || !vn_case_could_read(near->t, n, VN_ATTN_V, v))
			continue;
		h.applied.reads.in[VN_ATTN_K] = 1 + k;
		h.applied.reads.in[VN_ATTN_V] = 1 + v;
		rank_trial(near, &h);
	}
}

/* Tries a kernel that norms queries and keys itself: the recorded normed values are not those it
 * used. */
static void try_unnormed(vn_case *t, int node)
{
	const vn_plan *p = t->site->plan;
	const vn_node *n = &p->node[node];
	vn_trial       h = VN_TRIAL(UNNORMED, node, .kind = VN_BY_READS);

	for (int i = VN_DELTA_Q; i <= VN_DELTA_K; i++) {
		const vn_node *norm = &p->node[p->value[vn_plan_root(p, n->in[i])].node];
		const int      raw = norm->op == VN_OP_L2_NORM ? vn_plan_root(p, norm->in[0]) : -1;
		if (raw < 0 || !vn_case_could_read(t, n, i, raw))
			return;
		h.applied.reads.in[i] = 1 + raw;
	}
	vn_try(t, &h);
}

/* Tries a kernel that computes decay or beta, or norms queries or keys, by itself and wrongly,
 * while the recorded values are right. */
static void made_inside(vn_case *t, int node)
{
	static const int of[] = { VN_DELTA_G, VN_DELTA_BETA, VN_DELTA_Q, VN_DELTA_K };
	const vn_plan   *p = t->site->plan;

	for (size_t i = 0; i < sizeof of / sizeof *of && !vn_case_answered(t); i++) {
		const int made = vn_plan_root(p, p->node[node].in[of[i]]);
		vn_recompute_disregard(t->recompute, made);
		if (p->value[made].node >= 0)
			vn_catalogue_at(t, p->value[made].node);
	}
	vn_recompute_disregard(t->recompute, -1);
}

static void other_weights(nearest_reads *near, int node)
{
	const vn_plan *p = near->t->site->plan;

	for (int layer = 0; p->node[node].n_w && layer < p->layers; layer++) {
		const vn_node *twin = vn_fault_twin(p, &p->node[node], layer);
		vn_trial       h = VN_TRIAL(OTHER_WEIGHTS, node, .kind = VN_BY_READS);
		if (!twin)
			continue;
		h.applied.reads.weights = 1 + (int)(twin - p->node);
		rank_trial(near, &h);
		h.applied.reads.matrix = true;
		if (twin->op == VN_OP_LINEAR && twin->w[1] >= 0)
			rank_trial(near, &h);
	}
}

static bool are_partners(vn_point a, vn_point b)
{
	return (a == VN_POINT_K_PROJ && b == VN_POINT_V_PROJ) || (a == VN_POINT_GATE_PROJ && b == VN_POINT_UP_PROJ);
}

/* Tries the matrix of another product of the layer, with the product's own bias. */
static void other_matrices(nearest_reads *near, int node)
{
	const vn_plan *p = near->t->site->plan;
	const vn_node *n = &p->node[node];

	for (int i = 0; n->op == VN_OP_LINEAR && i < p->n_nodes; i++) {
		const vn_node *o = &p->node[i];
		if (i == node || o->op != VN_OP_LINEAR || o->layer != n->layer || o->w[0] == n->w[0] ||
		    o->c.linear.transposed != n->c.linear.transposed ||
		    !vn_shape_equal(&p->weight[o->w[0]].shape, &p->weight[n->w[0]].shape))
			continue;
		const vn_point at = p->value[n->out[0]].point, of = p->value[o->out[0]].point;
		vn_trial       h = { .node = node,
			                 .applied = { .kind = VN_BY_READS, .reads = { .weights = 1 + i, .matrix = true } } };
		h.finding = are_partners(at, of) || are_partners(of, at) ? VN_FINDING_PARTNERS_MATRIX : VN_FINDING_OTHER_MATRIX;
		rank_trial(near, &h);
	}
}

void vn_redirect(vn_case *t)
{
	const vn_plan *p = t->site->plan;
	vn_trial       best[VN_EXPLAIN_KEPT];
	nearest_reads  near = { .t = t, .ranked.by = best };
	const int      n = t->site->n_span, *span = t->site->span;

	if (t->consumed == VN_CONSUMED_OTHERS)
		return;
	if (n && p->node[span[0]].op == VN_OP_DELTA_RULE) {
		try_unnormed(t, span[0]);
		if (!vn_case_answered(t))
			made_inside(t, span[0]);
		return;
	}
	near.unmodified = estimate_error(t, p);
	if (isnan(near.unmodified))
		return;
	for (int i = 0; i < n && i < SPANNED; i++) {
		if (i && vn_op_get(p->node[span[i]].op)->is_costly)
			continue; /* elsewhere each try computes the whole result */
		other_inputs(&near, span[i]);
		other_weights(&near, span[i]);
		other_matrices(&near, span[i]);
		if (p->node[span[i]].op == VN_OP_ATTENTION)
			other_cache(&near, span[i]);
	}
	for (int i = 0; i < near.ranked.n && i < NEAREST; i++)
		vn_try(t, &best[i]);
}

/* ---- in time --------------------------------------------------------------------------------- */

/* AWAY: the largest distance in tokens between an embedding and its own token. SOME: number of
 * nearest fitting distances that are kept. */
enum { AWAY = 16, SOME = 3 };

/* Adds the other distances that fit as well, because ids repeat; other steps decide between
 * them. */
static void keep_tokens(vn_case *t, vn_trial *h)
{
	const vn_step *s = vn_case_step(t);

	for (int later = 0; later < (s && s->position > 0 ? 2 : 1); later++) {
		h->applied.later = later;
		vn_case_keep(t->x, h);
	}
}

static void try_tokens(vn_case *t)
{
	const int node = vn_case_node(t);
	vn_trial  of_position = VN_TRIAL(POSITION_FOR_ID, node, .kind = VN_BY_TOKENS);
	vn_score(t, &of_position);
	int n = 0;

	if (of_position.limit_fraction <= 1)
		keep_tokens(t, &of_position);
	for (int i = 2; n < SOME && i < 2 * AWAY + 2; i++) { /* 1 before, 1 after, 2 before... */
		vn_trial h = VN_TRIAL(OTHER_TOKEN, node, .kind = VN_BY_TOKENS, .tokens = i % 2 ? i / 2 : -(i / 2));
		vn_score(t, &h);
		if (!(h.limit_fraction <= 1))
			continue;
		n++;
		keep_tokens(t, &h);
	}
}

void vn_redirect_in_time(vn_case *t)
{
	const int node = vn_case_node(t);

	for (int due = 0; due < 2 && !vn_case_answered(t); due++) {
		vn_trial h = { .finding = due ? VN_FINDING_STEP_LATE : VN_FINDING_STEP_STALE,
			           .node = node,
			           .recorder_fault = t->consumed == VN_CONSUMED_OTHERS,
			           .applied = { .kind = VN_BY_STEP, .step.due = due } };
		vn_try(t, &h);
	}
	try_tokens(t); /* single tokens show the same, in the first step too */
}
