/* settle_pass.c: see settle_pass.h. */
#include "compare/replay/settle_pass.h"

#include "compare/replay/draws.h"
#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 2 }; /* that show the floor of a row and the errors of scores */
#define SAME 0.75   /* of three experts in another order, two slots may become one right and one wrong */

void vn_settled_drop(vn_settled *s)
{
	for (int i = 0; i < s->n; i++) {
		vn_choice_ways_finish(&s->of[i].ways);
		VN_FREE(s->of[i].behind, s->of[i].by, s->of[i].order, s->of[i].ids, s->of[i].loose);
	}
	VN_FREE(s->of, s->end, s->of_end, s->error, s->floor, s->own, s->other, s->least, s->drawn);
	*s = (vn_settled) { .rows = s->rows };
}

/* ---- what is behind a choice ----------------------------------------------------------------- */

static bool is_end(const vn_replay *r, int value)
{
	const vn_checkpoint *p = r->point[value];

	return p && vn_axes_find(vn_entry_axes(vn_recording_entry(r->o->ref, p->ref)), "token") == 0 &&
	       r->plan->value[value].state < 0;
}

/* Is the whole value taken from the candidate, so that nothing behind it depends on what is before
 * it? */
static bool is_taken(const vn_replay *r, int value)
{
	const vn_checkpoint *p = r->point[value];
	const vn_shape       whole = vn_replay_shape(r, value);

	return p && !vn_replay_no_place(r->plan, value) &&
	       vn_shape_equal(&vn_recording_entry(r->o->cand, p->cand)->shape, &whole);
}

/* Fills c->behind; returns whether it has any. reached: (values) */
static bool find_behind(const vn_replay *r, const vn_settled *s, vn_settled_choice *c, bool *reached)
{
	memset(reached, 0, (size_t)r->plan->n_values * sizeof *reached);
	reached[r->plan->node[c->ways.node].out[0]] = true;
	c->first = -1;
	for (int k = c->ways.node + 1; k < r->plan->n_nodes; k++) {
		const vn_node *n = &r->plan->node[k];
		bool           reads = false;
		for (int i = 0; i < n->n_in; i++)
			reads = reads || (n->in[i] >= 0 && reached[vn_plan_root(r->plan, n->in[i])]);
		for (int o = 0; reads && o < n->n_out; o++) {
			const int value = n->out[o] >= 0 ? vn_plan_root(r->plan, n->out[o]) : -1;
			if (value < 0)
				continue;
			reached[value] = reached[value] || !is_taken(r, value);
			if (s->end[value] >= 0) {
				c->behind[s->end[value]] = true;
				c->first = c->first < 0 ? s->end[value] : c->first;
			}
		}
	}
	return c->first >= 0;
}

/* What an operation makes that reads these ids as its input `slot`, if it was recorded; -1. */
static int find_made(const vn_replay *r, int ids, vn_op op, int slot)
{
	for (int k = 0; k < r->plan->n_nodes; k++) {
		const vn_node *n = &r->plan->node[k];
		const int value = n->op == op && vn_plan_root(r->plan, n->in[slot]) == ids ? vn_plan_root(r->plan, n->out[0])
		                                                                           : -1;
		if (value >= 0 && is_taken(r, value))
			return value;
	}
	return -1;
}

/* Reads the weights of a choice, of which only they were recorded: its order is theirs. Slots of
 * what each expert makes may be in another one. */
static vn_status read_order(const vn_replay *r, vn_settled_choice *c, vn_error *err)
{
	const int            ids = vn_plan_root(r->plan, r->plan->node[c->ways.node].out[0]);
	const int            weights = find_made(r, ids, VN_OP_ROUTE, VN_ROUTE_IDS);
	const vn_checkpoint *p = weights < 0 ? NULL : r->point[weights];
	const int64_t        n = c->ways.rows * c->ways.k;
	unsigned char       *own = NULL;
	vn_tensor            t;
	vn_status            st;

	c->each = find_made(r, ids, VN_OP_EXPERTS, VN_EXPERTS_IDS);
	c->order = c->each < 0 ? NULL : vn_alloc((size_t)(VN_CHOICE_WAYS * n), sizeof *c->order);
	for (int64_t i = 0; c->order && i < VN_CHOICE_WAYS * n; i++)
		c->order[i] = (int)(i % c->ways.k);
	if (!p || (st = vn_replay_candidate(r->o, p, p->replay.columns, &t, &own, err)))
		return p ? st : VN_OK;
	c->ways.weights = vn_alloc((size_t)n, sizeof *c->ways.weights);
	vn_tensor_numbers(&t, 0, n, c->ways.weights);
	free(own);
	vn_recording_release(r->o->cand, p->cand);
	return VN_OK;
}

static vn_status add_choice(const vn_replay *r, vn_settled *s, int node, bool *reached, vn_error *err)
{
	const vn_node       *n = &r->plan->node[node];
	const vn_checkpoint *scores = r->point[vn_plan_root(r->plan, n->in[0])];
	vn_settled_choice   *c = &s->of[s->n];
	const size_t         T = (size_t)s->tokens;

	if (n->op != VN_OP_TOP_K || r->point[vn_plan_root(r->plan, n->out[0])])
		return VN_OK;
	*c = (vn_settled_choice) { .ways.node = node, .behind = vn_alloc_zero((size_t)s->ends, sizeof *c->behind) };
	if (!find_behind(r, s, c, reached)) {
		free(c->behind);
		return VN_OK;
	}
	vn_choice_ways_init(&c->ways, r->plan, node, s->tokens);
	c->ways.recorded = scores ? vn_recording_entry(r->o->cand, scores->cand)->dtype : VN_N_DTYPES;
	c->by = vn_alloc_zero(T, 1);
	c->loose = vn_alloc_zero(T, sizeof *c->loose);
	c->ids = vn_alloc(T * (size_t)c->ways.k, sizeof *c->ids);
	s->n++;
	return read_order(r, c, err);
}

vn_status vn_settled_list(const vn_replay *r, vn_settled *s, vn_error *err)
{
	VN_FREED bool *reached = vn_alloc((size_t)r->plan->n_values, sizeof *reached);
	vn_status      st = VN_OK;

	s->tokens = r->step->tokens;
	s->end = vn_alloc((size_t)r->plan->n_values, sizeof *s->end);
	s->rows = s->rows ? s->rows : vn_alloc_zero((size_t)r->plan->n_values, sizeof *s->rows);
	for (int v = 0; v < r->plan->n_values; v++)
		s->end[v] = is_end(r, v) ? s->ends++ : -1;
	s->of_end = vn_alloc((size_t)s->ends, sizeof(vn_settled_rows *));
	for (int v = 0; v < r->plan->n_values; v++)
		if (s->end[v] >= 0)
			s->of_end[s->end[v]] = &s->rows[v];
	s->of = vn_alloc_zero((size_t)r->plan->n_nodes, sizeof *s->of);
	for (int k = 0; !st && s->ends && k < r->plan->n_nodes; k++)
		st = add_choice(r, s, k, reached, err);
	s->least = vn_alloc_zero((size_t)s->ends, sizeof *s->least);
	double **const errors[] = { &s->error, &s->floor, &s->own, &s->other };
	for (int i = 0; i < 4; i++)
		*errors[i] = vn_alloc((size_t)(s->ends * s->tokens), sizeof **errors[i]);
	return st;
}

/* ---- a pass ---------------------------------------------------------------------------------- */

/* Some engines that run the step: B, perhaps draws, and perhaps A, which is the last one. */
typedef struct pass {
	vn_replay_engine *e[2 + VN_DRAWS_MOST];
	int               n, draws;
	double           *error; /* (ends, tokens): to fill */
	double           *drawn; /* (draws, ends, tokens): likewise; NULL: the floor, by their mean */
} pass;

/* Where errors of the i-th engine are put; they are summed. */
static double *errors_of(const vn_settled *s, const pass *p, int i)
{
	if (i == 0)
		return p->error;
	if (p->drawn)
		return p->drawn + (i - 1) * s->ends * s->tokens;
	return i <= p->draws ? s->floor : s->own;
}

void vn_settled_ids(const vn_settled_choice *c, int way, int64_t t, double *ids)
{
	const double *of = vn_choice_way(&c->ways, way, t);

	for (int64_t i = 0; i < c->ways.k; i++)
		ids[i] = of[c->order ? c->order[(way * c->ways.rows + t) * c->ways.k + i] : i];
}

/* How far slot i of B is from slot j of the candidate. b, x: (k, n) */
static double slot_error(const double *b, const double *x, int64_t n, int64_t i, int64_t j)
{
	double sum = 0;

	for (int64_t m = 0; m < n; m++) {
		const double d = x[j * n + m] - b[i * n + m];
		sum += isfinite(d) ? d * d : 0;
	}
	return sum;
}

static void exchange(double *x, int64_t n, int64_t i, int64_t j)
{
	for (int64_t m = 0; m < n; m++) {
		const double was = x[i * n + m];
		x[i * n + m] = x[j * n + m];
		x[j * n + m] = was;
	}
}

/* Engines have experts whose scores tie in either order. Exchanges two of a token where that leaves
 * less than SAME of the error of what they make: b (k, n) of B, x of the candidate. Returns whether
 * it did. */
static bool reorder(vn_settled_choice *c, int64_t t, double *b, const double *x, int64_t n)
{
	double *ids = c->ids + t * c->ways.k;
	int    *order = c->order + (c->by[t] * c->ways.rows + t) * c->ways.k;
	bool    any = false;

	for (int64_t i = 0; i < c->ways.k; i++)
		for (int64_t j = i + 1; j < c->ways.k; j++) {
			const int was = order[i];
			if (!vn_choice_is_tie(&c->ways, t, ids, i, j) ||
			    !(slot_error(b, x, n, j, i) + slot_error(b, x, n, i, j) <
			      SAME * (slot_error(b, x, n, i, i) + slot_error(b, x, n, j, j))))
				continue;
			order[i] = order[j];
			order[j] = was;
			exchange(ids, 1, i, j);
			exchange(b, n, i, j);
			any = true;
			j = i; /* another one may fit better now */
		}
	return any;
}

/* each: the choice whose experts made b, and which has them in the candidate's order then; NULL.
 * Returns whether that order was another one. */
static bool set_errors(const vn_replay *r, const vn_tensor *b, const vn_tensor *x, double share,
                       vn_settled_choice *each, double *of_tokens)
{
	const int64_t    rows = b->shape.dim[0], n = rows ? vn_shape_count(&b->shape) / rows : 0;
	const int64_t    from = r->step->first_row + r->step->rows - rows; /* perhaps the last row alone */
	VN_FREED double *p = vn_alloc(2 * (size_t)n, sizeof *p);
	bool             other = false;

	for (int64_t i = 0; i < rows; i++) {
		double dd = 0, bb = 0;
		vn_tensor_numbers(b, i * n, n, p);
		vn_tensor_numbers(x, i * n, n, p + n);
		other = (each && reorder(each, from + i, p, p + n, n / each->ways.k)) || other;
		for (int64_t j = 0; j < n; j++) {
			const double d = p[n + j] - p[j];
			dd += isfinite(d) ? d * d : 0;
			bb += isfinite(d) ? p[j] * p[j] : 0;
		}
		of_tokens[from + i] = fmax(of_tokens[from + i], 0) + (bb > 0 ? share * dd / bb : 0);
	}
	return other;
}

/* The choice of the experts that make a value, if slots of it may be in another order; NULL. */
static vn_settled_choice *choice_of(const vn_settled *s, int value)
{
	vn_settled_choice *c = NULL;

	for (int i = 0; i < s->n; i++)
		c = s->of[i].each == value ? &s->of[i] : c;
	return c;
}

/* Measures what B made, and puts the candidate's numbers in its place. */
static vn_status take_made(vn_replay *r, vn_settled *s, const pass *p, vn_error *err)
{
	const vn_replay_engine *fine = p->e[0];
	vn_status               st = VN_OK;

	for (int o = 0; !st && o < fine->n_out; o++) {
		const vn_node_output *made = &fine->out[o];
		const vn_checkpoint  *at = r->point[made->value];
		if (!at || !vn_shape_equal(&made->t.shape, &vn_recording_entry(r->o->cand, at->cand)->shape))
			continue;
		const int64_t  end = s->end[made->value] * s->tokens;
		unsigned char *own = NULL;
		vn_tensor      t;
		if (end >= 0 && !(st = vn_replay_candidate(r->o, at, at->replay.columns, &t, &own, err))) {
			s->reordered = set_errors(r, &made->t, &t, 1, choice_of(s, made->value), p->error + end) || s->reordered;
			free(own);
			vn_recording_release(r->o->cand, at->cand);
		}
		for (int i = 1; !st && end >= 0 && i < p->n; i++) {
			const vn_node_output *x = vn_replay_made(p->e[i], made->value);
			if (x && vn_shape_equal(&x->t.shape, &made->t.shape))
				set_errors(r, &made->t, &x->t, p->drawn || i > p->draws ? 1 : 1.0 / p->draws, NULL,
				           end + errors_of(s, p, i));
		}
		if (!st && !vn_replay_no_place(r->plan, made->value))
			st = vn_replay_give(r, made->value, at, p->e, p->n, err);
	}
	return st;
}

/* An order was found with other scores, perhaps: it stays only where slots tie with these, too. */
static void keep_ties(const vn_settled_choice *c, int64_t t)
{
	const int64_t k = c->ways.k;
	const double *ids = vn_choice_way(&c->ways, c->by[t], t);
	int          *order = c->order ? c->order + (c->by[t] * c->ways.rows + t) * k : NULL;
	bool          good = true;

	for (int64_t i = 0; order && i < k; i++)
		good = good && (order[i] == i || vn_choice_is_tie(&c->ways, t, ids, i, order[i]));
	for (int64_t i = 0; order && !good && i < k; i++)
		order[i] = (int)i;
}

static vn_status choose(vn_replay *r, vn_settled_choice *c, const pass *p, bool trial, vn_error *err)
{
	vn_status st = VN_OK;
	int       ways = 1;

	for (int64_t t = 0; t < c->ways.rows; t++)
		ways = c->by[t] < ways ? ways : c->by[t] + 1;
	ways = trial ? ways : VN_CHOICE_WAYS; /* what follows a trial lists no others */
	if (p->draws && !p->drawn && !c->free)
		st = vn_choice_errors(&c->ways, r->plan, p->e, p->n, err);
	st = st ? st : vn_choice_find_ways(&c->ways, r->plan, p->e[0], ways, err);
	for (int64_t t = 0; !st && t < c->ways.rows; t++) {
		keep_ties(c, t);
		vn_settled_ids(c, c->by[t], t, c->ids + t * c->ways.k);
	}
	for (int i = 0; !st && i < p->n; i++)
		if (!c->free || i == 0 || i > p->draws)
			st = vn_choice_put(&c->ways, r->plan, c->ids, p->e[i], err);
	return st;
}

static vn_status run_nodes(vn_replay *r, vn_settled *s, const pass *p, vn_error *err)
{
	vn_status st = VN_OK;

	for (int k = 0, next = 0; !st && k < r->plan->n_nodes; k++) {
		vn_replay_round_alike(r, &r->plan->node[k]);
		for (int i = 0; !st && i < p->n; i++) {
			p->e[i]->n_out = 0;
			st = vn_ref_ops.run(p->e[i]->ref, k, k + 1, err);
		}
		st = st ? st : take_made(r, s, p, err);
		if (!st && next < s->n && s->of[next].ways.node == k)
			st = choose(r, &s->of[next++], p, p->error == s->other, err);
	}
	return st;
}

/* Draws round no weights: the floor is at least A's error. A few rows may have small floors by
 * chance: the mean over rows counts, too. */
static void set_least(const vn_settled *s)
{
	for (int e = 0; e < s->ends; e++) {
		double mean = 0, n = 0;
		for (int64_t i = e * s->tokens; i < (e + 1) * s->tokens; i++)
			if (s->error[i] >= 0) {
				s->floor[i] = fmax(s->floor[i], s->own[i]);
				mean += s->floor[i];
				n++;
			}
		s->least[e] = n > 0 ? mean / n / 4 : 0;
	}
}

static vn_status run_pass(vn_replay *r, vn_settled *s, pass *p, const int32_t *ids, vn_error *err)
{
	const size_t values = (size_t)r->plan->n_values, all = (size_t)(s->ends * s->tokens);
	vn_status    st = VN_OK;

	s->reordered = false;
	for (size_t i = 0; i < all; i++)
		p->error[i] = -1;
	for (int i = 0; !st && i < p->n; i++)
		st = vn_replay_engine_begin(p->e[i], r->step, ids, r->want, err);
	st = st ? st : run_nodes(r, s, p, err);
	for (int i = 0; i < p->n; i++)
		vn_ref_ops.end(p->e[i]->ref, false, NULL);
	memset(r->trace.kept + (size_t)r->at * values, VN_KEPT_NOTHING, values);
	return st;
}

vn_status vn_settled_pass(vn_replay *r, vn_settled *s, double *error, bool floors, const int32_t *ids, vn_error *err)
{
	pass p = { .e = { &r->e[VN_REPLAY_FINE] }, .n = 1, .error = error };

	for (int i = 0; floors && i < DRAWS && 2 * i < vn_draws_count(r); i++)
		p.e[++p.draws] = vn_draws_engine(r, 2 * i); /* the odd ones may have chosen otherwise before */
	p.n += p.draws;
	if (floors) {
		p.e[p.n++] = &r->e[VN_REPLAY_OWN];
		memset(s->floor, 0, (size_t)(s->ends * s->tokens) * sizeof *s->floor);
		memset(s->own, 0, (size_t)(s->ends * s->tokens) * sizeof *s->own);
	}
	const vn_status st = run_pass(r, s, &p, ids, err);
	if (floors)
		set_least(s);
	return st;
}

vn_status vn_settled_free(vn_replay *r, vn_settled *s, double *error, const int32_t *ids, vn_error *err)
{
	pass p = { .e = { &r->e[VN_REPLAY_FINE] }, .n = 1, .error = error };

	free(s->drawn);
	p.drawn = s->drawn = vn_alloc_zero((size_t)(VN_DRAWS_MOST * s->ends * s->tokens), sizeof *s->drawn);
	for (int i = 0; i < vn_draws_count(r); i++)
		p.e[++p.draws] = vn_draws_engine(r, i);
	p.n += p.draws;
	return run_pass(r, s, &p, ids, err);
}
