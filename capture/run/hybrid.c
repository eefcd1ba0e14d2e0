/* hybrid.c: see hybrid.h. */
#include "capture/run/hybrid.h"

#include "libref/base/alloc.h"
#include "libref/base/glob.h"
#include "libref/plan/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int match_nodes(const vn_plan *p, const char *glob, bool second, bool *node)
{
	int hits = 0;

	for (int v = 0; v < p->n_values; v++)
		if ((p->value[v].alias_of >= 0) == second && vn_glob_match(glob, p->value[v].name)) {
			node[p->value[v].node] = true;
			hits++;
		}
	return hits;
}

vn_status vn_toggles_match(const vn_plan *p, const char *glob, bool *node, vn_error *err)
{
	const vn_status st = vn_glob_check(glob, err);

	if (st)
		return st;
	if (match_nodes(p, glob, false, node) || match_nodes(p, glob, true, node))
		return VN_OK;
	return vn_taps_nothing(p, glob, err);
}

vn_status vn_toggles_precision(const vn_plan *p, const char *precise, vn_policy *policy, vn_error *err)
{
	const char *at = strchr(precise, '@');
	char        word[16];
	vn_policy   want;
	vn_status   st;

	if (!at || (size_t)(at - precise) >= sizeof word)
		return vn_fail(err, VN_ERR_USAGE, "'%s' is not a precision at some checkpoints, like f32@layer0.*", precise);
	memcpy(word, precise, (size_t)(at - precise));
	word[at - precise] = '\0';
	if ((st = vn_policy_read("--precision", vn_policy_names, word, &want, err)))
		return vn_context(err, st, "'%s'", precise);
	VN_FREED bool *node = vn_alloc_zero((size_t)p->n_nodes, sizeof *node);
	st = vn_toggles_match(p, at + 1, node, err);
	for (int i = 0; !st && i < p->n_nodes; i++)
		if (node[i])
			policy[i] = want;
	return st;
}

const char **vn_toggles_split(char *text, int *n)
{
	size_t room = 1;
	int    depth = 0;

	for (const char *c = text; *c; c++)
		room += *c == ',';
	*n = 0;
	const char **list = vn_alloc(room, sizeof *list);
	if (*text)
		list[(*n)++] = text;
	for (char *c = text; *c; c++) {
		depth += (*c == '{') - (*c == '}' && depth > 0);
		if (*c == ',' && depth == 0) {
			*c = '\0';
			list[(*n)++] = c + 1;
		}
	}
	return list;
}

enum { MOST_SIDES = 16 }; /* two engines times the precisions in use */

typedef struct engine_side {
	vn_engine e;
	bool      gpu, faulty; /* faulty: the plan of o.faulty, if there is one; else the model's own */
	vn_policy policy;
} engine_side;

typedef struct hybrid {
	const vn_model   *model;
	const vn_plan    *plan;
	vn_engine_options o;                /* of the first side; without toggles */
	engine_side       side[MOST_SIDES]; /* the first runs all nodes not assigned elsewhere */
	int               n;
	vn_policy        *policy; /* (n_nodes) */
	int              *on;     /* (n_nodes): its side */
	unsigned         *has;    /* (n_values): a bit for each side that holds the value in this call */
	int               forced; /* nodes of a GPU run that run on the reference */
	char              force_ref[VN_FACT_VALUE], precise[VN_FACT_VALUE]; /* as given, truncated with dots */
	/* For a value that is copied between sides: */
	char             *move; /* its numbers */
	double           *wide; /* the same, while they are converted */
	size_t            room; /* how many numbers fit into each */
} hybrid;

/* ---- which node where ------------------------------------------------------------- */

/* Finds the side like this one, opening it if needed. */
static vn_status side_for(hybrid *h, engine_side like, int *which, vn_error *err)
{
	vn_engine_options o = h->o;
	vn_status         st;

	for (int s = 0; s < h->n; s++)
		if (h->side[s].gpu == like.gpu && h->side[s].faulty == like.faulty &&
		    vn_policy_same(h->side[s].policy, like.policy)) {
			*which = s;
			return VN_OK;
		}
	if (h->n == MOST_SIDES)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "more than %d engines in one run", MOST_SIDES);
	o.gpu = like.gpu;
	o.policy = like.policy;
	o.quiet = h->o.quiet || h->n > 0; /* one progress line, not two */
	if (!like.faulty)
		o.faulty = NULL;
	if ((st = vn_engine_open_plain(&like.e, h->model, &o, err)))
		return st;
	h->side[h->n] = like;
	*which = h->n++;
	return VN_OK;
}

/* forced: (n_nodes) nodes that run on the correct reference, in precision `as`, or in their own if
 * it is NULL. */
static vn_status place_nodes(hybrid *h, const bool *forced, const vn_policy *as, vn_error *err)
{
	h->forced = 0;
	for (int i = 0; i < h->plan->n_nodes; i++) {
		const bool      on_ref = forced[i] || (h->o.gpu && vn_node_is_experiment(&h->plan->node[i]));
		const vn_status st = side_for(h,
		                              (engine_side) { .gpu = h->o.gpu && !on_ref,
		                                              .faulty = !forced[i],
		                                              .policy = forced[i] && as ? *as : h->policy[i] },
		                              &h->on[i], err);
		if (st) /* the node that needs an unavailable side */
			return st == VN_ERR_UNSUPPORTED ? vn_context(err, st, "%s", h->plan->value[h->plan->node[i].out[0]].name)
			                                : st;
		h->forced += on_ref;
	}
	return VN_OK;
}

/* ---- one call ------------------------------------------------------------------------ */

static vn_dtype dtype_on(const hybrid *h, int s, int value)
{
	return vn_policy_dtype(h->side[s].policy, vn_value_wide(h->plan, value));
}

static void make_room(hybrid *h, size_t numbers)
{
	if (numbers <= h->room)
		return;
	h->move = vn_alloc_resized(h->move, numbers, sizeof(double));
	h->wide = vn_alloc_resized(h->wide, numbers, sizeof(double));
	h->room = numbers;
}

/* Copies a value from the side that made it to side s. */
static vn_status bring_value(hybrid *h, int s, int value, int64_t tokens, vn_error *err)
{
	const int      home = h->on[h->plan->value[value].node];
	const vn_dtype from = dtype_on(h, home, value), to = dtype_on(h, s, value);
	const size_t   n = (size_t)(tokens * vn_value_row(&h->plan->value[value]));
	vn_engine     *a = &h->side[home].e, *b = &h->side[s].e;
	vn_status      st;

	make_room(h, n);
	if ((st = a->ops->read(a->self, value, h->move, err)))
		return st;
	if (from != to) { /* through double, so it is rounded once */
		vn_to_f64(h->wide, h->move, from, n);
		vn_from_f64(h->move, to, h->wide, n);
	}
	if (!(st = b->ops->write(b->self, value, h->move, err)))
		h->has[value] |= 1u << s;
	return st;
}

/* Runs nodes [from, to) on their side after copying their inputs there. */
static vn_status run_nodes(hybrid *h, int from, int to, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	const int      s = h->on[from];
	const vn_plan *p = h->plan;
	vn_engine     *e = &h->side[s].e;
	vn_status      st = e->ops->run(e->self, from, from, err); /* skips the nodes before */

	for (int i = from; i < to && !st; i++) {
		const vn_node *n = &p->node[i];
		if (p->value[n->out[0]].on_demand && !(taps && taps->want[n->out[0]]))
			continue; /* no side runs it */
		for (int k = 0; k < n->n_in && !st; k++) {
			const int v = vn_plan_root(p, n->in[k]);
			if (!(h->has[v] & 1u << s) && p->value[v].node < from)
				st = bring_value(h, s, v, tokens, err);
		}
		for (int k = 0; k < n->n_out; k++)
			if (n->out[k] >= 0)
				h->has[n->out[k]] |= 1u << s;
	}
	return st ? st : e->ops->run(e->self, from, to, err);
}

static vn_status run_segments(hybrid *h, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	const int n = h->plan->n_nodes;
	vn_status st = VN_OK;
	int       to;

	memset(h->has, 0, (size_t)h->plan->n_values * sizeof *h->has);
	for (int from = 0; from < n && !st; from = to) {
		vn_engine *e = &h->side[h->on[from]].e;
		for (to = from + 1; to < n && h->on[to] == h->on[from]; to++) {}
		st = run_nodes(h, from, to, tokens, taps, err);
		if (!st && taps && to < n)
			st = e->ops->flush(e->self, err); /* the next side writes to the same sink */
	}
	return st;
}

/* Ends the sides that can fail first, before any has kept the call. */
static vn_status end_call(hybrid *h, bool keep, vn_error *err)
{
	vn_status st = VN_OK;

	for (int gpu = 1; gpu >= 0; gpu--)
		for (int s = 0; s < h->n; s++)
			if (h->side[s].gpu == gpu) {
				vn_engine      *e = &h->side[s].e;
				const vn_status now = e->ops->end(e->self, keep && !st, st ? NULL : err);
				st = st ? st : now;
			}
	return st;
}

static vn_status run_forward(void *self, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	hybrid   *h = self;
	vn_status st = VN_OK;

	for (int s = 0; s < h->n; s++) {
		vn_engine *e = &h->side[s].e;
		if (e->ops->position(e->self) != h->side[0].e.ops->position(h->side[0].e.self))
			return vn_fail(err, VN_ERR_USAGE, "the engines of the hybrid run are at different tokens: reset them");
	}
	for (int s = 0; s < h->n && !st; s++)
		st = h->side[s].e.ops->begin(h->side[s].e.self, ids, tokens, taps, err);
	st = st ? st : run_segments(h, tokens, taps, err);
	if (!st)
		return end_call(h, true, err);
	end_call(h, false, NULL);
	return st;
}

/* ---- its life --------------------------------------------------------------------------- */

static int64_t read_position(const void *self)
{
	const hybrid *h = self;
	return h->side[0].e.ops->position(h->side[0].e.self);
}

static void reset_engines(void *self)
{
	hybrid *h = self;
	for (int s = 0; s < h->n; s++)
		h->side[s].e.ops->reset(h->side[s].e.self);
}

static void fill_facts(const void *self, vn_facts *f)
{
	const hybrid *h = self;

	h->side[0].e.ops->facts(h->side[0].e.self, f);
	if (h->force_ref[0])
		vn_facts_set(f, "force_ref", "%s", h->force_ref);
	if (h->precise[0])
		vn_facts_set(f, "precision_of", "%s", h->precise);
	if (h->forced)
		vn_facts_set(f, "forced_nodes", "%d", h->forced);
}

static void destroy_hybrid(void *self)
{
	hybrid *h = self;

	for (int s = 0; s < h->n; s++)
		vn_engine_close(&h->side[s].e);
	VN_FREE(h->policy, h->on, h->has, h->move, h->wide, h);
}

/* Joins the words with commas; a truncated list ends in dots. */
static void join_words(const char *const *word, int n, char *text)
{
	size_t at = 0;

	for (int i = 0; i < n && at < VN_FACT_VALUE; i++)
		at += (size_t)snprintf(text + at, VN_FACT_VALUE - at, "%s%s", i ? "," : "", word[i]);
	if (at >= VN_FACT_VALUE)
		memcpy(text + VN_FACT_VALUE - 4, "...", 4);
}

static vn_status prepare_hybrid(hybrid *h, const vn_engine_options *o, vn_error *err)
{
	const size_t   n = (size_t)h->plan->n_nodes + 1;
	VN_FREED bool *forced = vn_alloc_zero(n, sizeof *forced);
	vn_status      st = VN_OK;
	int            first;

	h->policy = vn_alloc_zero(n, sizeof *h->policy);
	h->on = vn_alloc_zero(n, sizeof *h->on);
	h->has = vn_alloc_zero((size_t)h->plan->n_values, sizeof *h->has);
	for (int i = 0; i < h->plan->n_nodes; i++)
		h->policy[i] = o->policy;
	for (int i = 0; !st && i < o->n_precise; i++)
		st = vn_toggles_precision(h->plan, o->precise[i], h->policy, err);
	for (int i = 0; !st && i < o->n_force_ref; i++)
		st = vn_toggles_match(h->plan, o->force_ref[i], forced, err);
	join_words(o->force_ref, o->n_force_ref, h->force_ref);
	join_words(o->precise, o->n_precise, h->precise);
	if (!st) /* the first side exists even without nodes */
		st = side_for(h, (engine_side) { .gpu = o->gpu, .faulty = true, .policy = o->policy }, &first, err);
	return st ? st : place_nodes(h, forced, NULL, err);
}

static double compile_seconds(const void *self)
{
	const hybrid *h = self;
	double        seconds = 0.0;

	for (int s = 0; s < h->n; s++)
		seconds += vn_engine_compiling(&h->side[s].e);
	return seconds;
}

static const vn_engine_ops ops = { .compiling = compile_seconds,
	                               .forward = run_forward,
	                               .position = read_position,
	                               .reset = reset_engines,
	                               .facts = fill_facts,
	                               .destroy = destroy_hybrid };

vn_status vn_hybrid_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	hybrid   *h = vn_alloc_zero(1, sizeof *h);
	vn_status st;

	*e = (vn_engine) { 0 };
	h->model = m;
	if (o->faulty && o->n_force_ref && !vn_faulty_keeps_nodes(o->faulty)) {
		destroy_hybrid(h);
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "a fault that adds operations or changes their inputs cannot be combined with the correct "
		               "reference");
	}
	h->plan = vn_engine_plan(m, o);
	h->o = *o;
	h->o.force_ref = h->o.precise = NULL;
	h->o.n_force_ref = h->o.n_precise = 0;
	if ((st = prepare_hybrid(h, o, err))) {
		destroy_hybrid(h);
		return st;
	}
	*e = (vn_engine) { h->side[0].e.name, h, &ops, h->plan->n_values, h->side[0].e.compiles };
	return VN_OK;
}

static bool has_experiment(const vn_plan *p)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (vn_node_is_experiment(&p->node[i]))
			return true;
	return false;
}

vn_status vn_engine_open(vn_engine *e, const vn_model *m, const vn_engine_options *o, vn_error *err)
{
	return o->n_force_ref || o->n_precise || (o->gpu && has_experiment(vn_engine_plan(m, o)))
	           ? vn_hybrid_open(e, m, o, err)
	           : vn_engine_open_plain(e, m, o, err);
}

vn_status vn_hybrid_force(const vn_engine *e, const bool *node, const vn_policy *as, vn_error *err)
{
	reset_engines(e->self);
	return place_nodes(e->self, node, as, err);
}
