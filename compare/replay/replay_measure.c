/* replay_measure.c: the parts of replaying one node: both engines run it, their outputs are
 * compared with the candidate's, and the candidate's numbers take their place. */
#include "compare/floor/precision.h"
#include "compare/judge/count.h"
#include "compare/replay/draws.h"
#include "compare/replay/pool_steps.h"
#include "compare/replay/routing.h"
#include "libref/exec/convert.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>

/* ---- what it added itself -------------------------------------------------------------------- */

/* The combined relative error of the inputs; NaN if none is known. */
static double error_in(const vn_replay *r, const vn_node *node)
{
	double sum = 0;
	bool   known = false;
	for (int i = 0; i < node->n_in; i++) {
		const double x = r->error[vn_plan_root(r->plan, node->in[i])];
		known = known || !isnan(x);
		sum += isnan(x) ? 0 : x * x;
	}
	return known ? sqrt(sum) : (double)NAN;
}

/* A reference no finer than the candidate has rounded here as well. B does not have this rounding,
 * so B - R contains it although no input brought it. It is subtracted. If little is left, or if B
 * itself rounds its inputs, no gain can be computed. */
static bool own_rounding(const vn_replay *r, const vn_node *node, vn_replayed *l)
{
	vn_policy of_ref;

	if (node->op == VN_OP_LINEAR &&
	    (r->o->policy.products || r->o->policy.role[VN_ROLE_PRODUCTS] || r->o->policy.role[VN_ROLE_LINEAR]))
		return true;
	vn_policy_of_recording(r->o->ref, &of_ref);
	if (vn_policy_finer(of_ref, r->e[VN_REPLAY_OWN].policy))
		return false;
	const bool most = l->inherited < 4 * l->floor;
	l->inherited = isnan(l->inherited) ? l->inherited : fmax(0, l->inherited - l->floor);
	return most;
}

/* In f32 the order of a score's sum decides its error, and the score changes every probability of
 * its row by as large a share: the error is that of the few that are large. In one token of 6 heads
 * and 72 keys, 432 numbers, they are some 10. In 16 bits, rounding the stored number prevails,
 * which every engine does alike. */
static int64_t count_independent(const vn_replay *r, const vn_checkpoint *p, const char *axes)
{
	const int  rank = vn_recording_entry(r->o->ref, p->ref)->shape.rank;
	const bool few = r->e[VN_REPLAY_OWN].policy.storage == VN_F32 && rank > 0 && vn_axes_find(axes, "key") == rank - 1;
	return few ? (int64_t)vn_judge_count_carrying(r->o, p) : p->m.n;
}

/* Of the error of a norm, the share by which whole rows are too large or too small, if it is more
 * than chance gives. Roundings of numbers leave little of it; a factor 1 / rms that was itself
 * rounded to 16 bits leaves a third, long before the error is beyond its limit. */
#define SAME_IN_ROW 0.15

/* Not l2_norm: transformers rounds its factor (reference_variants.h). */
static bool is_norm(vn_op op)
{
	return op == VN_OP_RMS_NORM || op == VN_OP_LAYER_NORM || op == VN_OP_GATED_NORM;
}

typedef struct row_errors {
	double  along, all; /* squared error along the rows of a, and as a whole, relative to the rows */
	double  chance;     /* what is along the rows if each number errs by itself, in proportion to it */
	int64_t rows;       /* of different numbers: equal tokens err alike */
	double  last[64];   /* the errors of the last ones */
} row_errors;

static bool is_repeated(const row_errors *s, double ee)
{
	const int64_t room = sizeof s->last / sizeof *s->last, n = s->rows < room ? s->rows : room;

	for (int64_t i = 0; i < n; i++)
		if (s->last[i] == ee)
			return true;
	return false;
}

static void add_row(row_errors *s, const double *x, const double *y, int64_t width)
{
	double xx = 0, xe = 0, ee = 0, x4 = 0;

	for (int64_t i = 0; i < width; i++) {
		const double e = y[i] - x[i];
		xx += x[i] * x[i];
		xe += x[i] * e;
		ee += e * e;
		x4 += x[i] * x[i] * x[i] * x[i];
	}
	if (!(xx > 0) || !isfinite(ee) || is_repeated(s, ee))
		return;
	s->along += xe * xe / xx / xx;
	s->all += ee / xx;
	s->chance += x4 / xx / xx * ee / xx;
	s->last[s->rows++ % (int64_t)(sizeof s->last / sizeof *s->last)] = ee;
}

/* Adds up the errors of c against a. */
static void add_rows(const vn_tensor *a, const vn_tensor *c, int64_t width, row_errors *s)
{
	VN_FREED double *x = vn_alloc(2 * (size_t)width, sizeof *x);
	const int64_t    n = vn_shape_count(&a->shape);

	for (int64_t at = 0; at < n; at += width) {
		vn_tensor_numbers(a, at, width, x);
		vn_tensor_numbers(c, at, width, x + width);
		add_row(s, x, x + width, width);
	}
}

/* Compares with other implementations, whose roundings widen no floor here. */
static vn_status compare_others(vn_replay *r, const vn_node_output *own, const vn_tensor *c, const char *axes,
                                vn_checkpoint *p, vn_error *err)
{
	const vn_replayed was = p->replay;
	const vn_status   st = vn_replay_judge_variants(r, own, c, axes, &p->replay, err);

	p->replay.floor = was.floor; /* a wider one hides a factor of a row */
	p->replay.floor_token = was.floor_token;
	p->replay.floor_max = was.floor_max;
	return st;
}

/* An error that rows have as a whole is a finding from one floor on. Weights that the candidate
 * does not round leave such an error, too. */
static vn_status judge_rows(vn_replay *r, const vn_node_output *own, const vn_tensor *c, const char *axes,
                            vn_checkpoint *p, vn_error *err)
{
	const vn_dtype   storage = r->e[VN_REPLAY_OWN].policy.storage;
	const vn_tensor *a = &own->t;
	row_errors       s = { 0 };
	vn_status        st = VN_OK;

	if (!is_norm(r->plan->node[r->plan->value[own->value].node].op) || p->replay.span != 1 ||
	    (storage != VN_F16 && storage != VN_BF16) || p->replay.bad || a->shape.rank < 2 ||
	    !(vn_local_ratio(&p->replay) > 1) || vn_local_beyond(p))
		return VN_OK;
	add_rows(a, c, a->shape.dim[a->shape.rank - 1], &s);
	if (!s.rows || s.along <= fmax(1.5 * vn_local_chance((double)s.rows) * s.chance, SAME_IN_ROW * s.all))
		return VN_OK;
	if (!(st = compare_others(r, own, c, axes, p, err)) && vn_local_ratio(&p->replay) > 1)
		p->replay.slack = 1 / VN_LOCAL_LIMIT;
	return st;
}

/* A call's own keys and values may be read as they are. Where the formats are searched, that is how
 * near a candidate is to one: within its floor, too. */
static bool may_read_own_keys(const vn_replay *r, const vn_node *node)
{
	return r->o->request.infers && node->op == VN_OP_ATTENTION && r->o->policy.role[VN_ROLE_CACHE] && r->at > 0;
}

vn_status vn_replay_measure(vn_replay *r, const vn_node_output *own, vn_column_order order, vn_checkpoint *p,
                            vn_error *err)
{
	const vn_node        *node = &r->plan->node[r->plan->value[own->value].node];
	const vn_node_output *fine = vn_replay_made(&r->e[VN_REPLAY_FINE], own->value);
	const double          in = error_in(r, node);
	const char           *axes = vn_entry_axes(vn_recording_entry(r->o->ref, p->ref));
	const int             threads = r->o->request.options->threads, span = p->replay.span;
	const bool            mapped = !order && vn_node_output_in_file(own) && vn_node_output_in_file(fine) &&
	                    vn_recording_mapped(r->o->cand, p->cand) && vn_recording_mapped(r->o->ref, p->ref);
	const vn_dtype          format = vn_local_format(node, own->value, span, r->e[VN_REPLAY_OWN].policy.storage);
	const vn_span_floor    *drawn = span > 1 ? vn_draws_floor(r, own->value) : NULL;
	VN_FREED unsigned char *sorted = NULL;
	vn_tensor               cand, ref;
	vn_local_tensors        x = { &own->t, &fine->t, &cand, &ref, axes, format, mapped, threads };
	vn_measured             given;
	vn_status               st;

	if ((st = vn_replay_candidate(r->o, p, order, &cand, &sorted, err)) ||
	    (st = vn_entry_tensor(r->o->ref, p->ref, &ref, err)))
		return st;
	const vn_tensor chosen = cand;
	if (node->op == VN_OP_TOP_K)
		cand = own->t; /* ids are right or wrong */
	if ((st = vn_local_measure(&x, &p->replay, &given, err)))
		return st;
	p->replay.span = span;
	if (node->op == VN_OP_TOP_K && (st = vn_routing_judge(r, node, &own->t, &chosen, &ref, &p->replay, err)))
		return st;
	p->replayed = true;
	p->replay.span = span;
	p->replay.independent_numbers = p->m.n;
	if (drawn) { /* A is a draw, too; B is their middle */
		const double to_own = p->replay.local;
		vn_local_take_floor(&p->replay, drawn, format);
		if ((st = vn_local_alone(&fine->t, &cand, axes, threads, &p->replay, err)))
			return st;
		vn_draws_channels(r, drawn, p->replay.local < to_own ? &fine->t : &own->t, &cand, p);
	} else if (vn_local_beyond(p) || r->step->rows == 1)
		p->replay.independent_numbers = count_independent(r, p, axes);
	if ((vn_local_beyond(p) || vn_replay_pools_step(r->o, p) || may_read_own_keys(r, node)) &&
	    (st = vn_replay_judge_variants(r, own, &cand, axes, &p->replay, err)))
		return st;
	if (vn_local_beyond(p) && (st = vn_replay_allow_sums(r, own, &p->replay, err)))
		return st;
	if ((st = judge_rows(r, own, &cand, axes, p, err)))
		return st;
	p->replay.inherited = given.finite ? given.value[VN_M_NMSE] : (double)NAN;
	p->replay.charged_to = -1;
	const bool hidden = own_rounding(r, node, &p->replay);
	p->replay.gain = in > 0 && !hidden ? sqrt(p->replay.inherited) / in : (double)NAN;
	vn_recording_release(r->o->cand, p->cand);
	vn_recording_release(r->o->ref, p->ref);
	return VN_OK;
}

/* ---- the candidate's numbers in its place ---------------------------------------------------- */

/* Uses the same memory for every value: fresh pages cost more than filling them. */
static void make_room(vn_replay *r, size_t bytes)
{
	if (bytes <= r->room_put)
		return;
	free(r->put);
	r->put = vn_alloc(bytes, 1);
	r->room_put = bytes;
}

static vn_status put_values(vn_replay *r, vn_replay_engine *e, int value, const vn_tensor *t, size_t from,
                            vn_error *err)
{
	const vn_dtype as = vn_policy_dtype(e->policy, vn_value_wide(r->plan, value));
	const vn_shape whole = vn_replay_shape(r, value);
	const size_t   n = (size_t)vn_shape_count(&t->shape), all = (size_t)vn_shape_count(&whole);
	vn_status      st = VN_OK;

	if (n == all && (t->dtype == as || vn_dtype_size(t->dtype) < vn_dtype_size(as))) /* a smaller one is exact */
		return vn_ref_write(e->ref, value, t->data, t->dtype, err);
	make_room(r, (all + 1) * vn_dtype_size(as));
	if (n < all &&
	    (st = vn_ref_ops.read(e->ref, value, r->put, err))) /* rows that were not captured stay as computed */
		return st;
	vn_convert(r->put + from * vn_dtype_size(as), as, t->data, t->dtype, n, r->o->request.options->threads);
	return vn_ref_ops.write(e->ref, value, r->put, err);
}

bool vn_replay_reads(const vn_plan *plan, int k, int root)
{
	for (int i = 0; i < plan->node[k].n_in; i++)
		if (vn_plan_root(plan, plan->node[k].in[i]) == root)
			return true;
	return false;
}

/* Does an operation read the value, or (a state) the next call? */
static bool is_read(const vn_plan *plan, int value)
{
	bool read = plan->value[value].state >= 0;

	for (int k = 0; !read && k < plan->n_nodes; k++)
		read = vn_replay_reads(plan, k, value);
	return read;
}

vn_status vn_replay_give(vn_replay *r, int value, const vn_checkpoint *p, vn_replay_engine *const *e, int n,
                         vn_error *err)
{
	const vn_shape whole = vn_replay_shape(r, value);
	unsigned char *own;
	vn_tensor      t;
	vn_status      st = vn_replay_candidate(r->o, p, p->replay.columns, &t, &own, err);

	if (st)
		return st;
	const bool    rows = !vn_shape_equal(&t.shape, &whole);
	/* a single row is the step's last row */
	const int64_t skip = r->last[value] ? r->step->rows - 1 : 0;
	const size_t  from = rows ? (size_t)((r->step->first_row + skip) * vn_value_row(&r->plan->value[value])) : 0;
	if (!st && !rows)
		vn_ref_rounds(r->e[VN_REPLAY_FINE].ref, r->e[VN_REPLAY_FINE].policy);
	/* Logits are as large as all else, and nothing reads them. */
	for (int i = 0; !st && i < n && is_read(r->plan, value); i++)
		st = put_values(r, e[i], value, &t, from, err);
	free(own);
	vn_recording_release(r->o->cand, p->cand);
	vn_trace_keep(&r->trace, r->at, value, rows ? VN_KEPT_ROWS : VN_KEPT_ALL);
	return st;
}

vn_status vn_replay_take(vn_replay *r, int value, const vn_checkpoint *p, vn_error *err)
{
	vn_replay_engine *e[VN_N_ENGINES + VN_DRAWS_MOST];
	int               n = 0;

	while (n < VN_N_ENGINES) {
		e[n] = &r->e[n];
		n++;
	}
	for (int i = 0; i < vn_draws_count(r); i++)
		e[n++] = vn_draws_engine(r, i);
	return vn_replay_give(r, value, p, e, n, err);
}

/* Where the candidate's rounded numbers were captured, their bits are known. Elsewhere a few are
 * rounded to the other side, perhaps none of them in our run; there, the effect of all these
 * roundings is the floor. */
void vn_replay_round_alike(vn_replay *r, const vn_node *node)
{
	const vn_replay_engine *e = &r->e[VN_REPLAY_FINE];
	vn_policy               p = e->policy;
	const bool              known = node->op != VN_OP_LINEAR ||
	                   vn_trace_kept(&r->trace, r->at, vn_plan_root(r->plan, node->in[0])) == VN_KEPT_ALL;

	p.products = known ? p.products : VN_PRODUCTS_PLAIN;
	if (!known || node->op == VN_OP_ATTENTION) /* probabilities are never known */
		p.role[VN_ROLE_PRODUCTS] = p.role[VN_ROLE_LINEAR] = VN_ROLE_AS_STORED;
	p.role[VN_ROLE_SOFTMAX] = VN_ROLE_AS_STORED;
	p.role[VN_ROLE_CACHE] = VN_ROLE_AS_STORED; /* until the keys and values are known: vn_replay_take */
	vn_ref_rounds(e->ref, p);
}

vn_status vn_replay_run_node(vn_replay *r, int k, vn_error *err)
{
	vn_replay_round_alike(r, &r->plan->node[k]);
	for (int i = 0; i < VN_N_ENGINES; i++)
		r->e[i].n_out = 0;
	return vn_ref_run_both(r->e[VN_REPLAY_OWN].ref, r->e[VN_REPLAY_FINE].ref, k, err);
}
