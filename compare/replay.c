/* replay.c: see replay.h. Two engines walk the plan node by node; after each node
 * what it made is measured, and then what the candidate made is put in its place. */
#include "compare/replay.h"

#include "compare/names.h"
#include "libref/exec/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OWN, FINE, N_ENGINES }; /* in the candidate's precision; more precisely */

/* What a node handed over: one of its outputs. */
typedef struct made {
	int            value;
	vn_dtype       dtype;
	vn_shape       shape;
	unsigned char *data;
	size_t         have, room;
} made;

typedef struct engine {
	vn_ref   *ref;
	vn_policy policy;
	made      out[VN_MAX_OUT + 2];
	int       n_out;
} engine;

typedef struct replay {
	vn_comparison *c;
	const vn_plan *plan;     /* the model's */
	vn_names       names;
	engine         e[N_ENGINES];
	bool          *want;     /* (values) */
	int           *point;    /* (values) of this step: its checkpoint; -1 */
	int           *entry;    /* (values): the candidate's tensor; -1 */
	int           *span;     /* (values): nodes since captured tensors */
	double        *error;    /* (values): relative error of the candidate against the reference; NaN: not known */
	const vn_step *step;
} replay;

/* ---- numbers handed over ------------------------------------------------------------------ */

static vn_status take_begin(void *context, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	engine *e = context;
	made   *m = &e->out[e->n_out];
	const size_t bytes = (size_t)vn_shape_count(shape) * vn_dtype_size(dtype);
	m->value = value;
	m->dtype = dtype;
	m->shape = *shape;
	m->have = 0;
	if (bytes > m->room) {
		free(m->data);
		m->room = 0;
		if (!(m->data = malloc(bytes)))
			return vn_fail(err, VN_ERR_NOMEM, "no memory to replay a node");
		m->room = bytes;
	}
	return VN_OK;
}

static vn_status take_write(void *context, const void *data, size_t elements, vn_error *err)
{
	engine *e = context;
	made   *m = &e->out[e->n_out];
	const size_t bytes = elements * vn_dtype_size(m->dtype);
	(void)err;
	if (m->have + bytes <= m->room) {
		memcpy(m->data + m->have, data, bytes);
		m->have += bytes;
	}
	return VN_OK;
}

static vn_status take_end(void *context, vn_error *err)
{
	engine *e = context;
	(void)err;
	e->n_out += e->n_out < VN_MAX_OUT + 1;
	return VN_OK;
}

/* ---- one node ------------------------------------------------------------------------------ */

/* One rounding to a format leaves this nmse: a sixth of the square of an ulp of 1 (specs/models.md 1.8 has 4.3e-8 of f16). Sums in
 * float32 leave some hundred times more, in whatever order, and no fault is so small. */
static double least_floor(vn_dtype storage)
{
	const double half = ldexp(1, -vn_dtype_digits(storage) - 1), rounding = 0.18 * half * half;
	return vn_dtype_digits(storage) > 10 ? 400 * rounding : rounding;
}

static vn_status distance(const vn_tensor *r, const vn_tensor *c, const char *axes, int threads, double *nmse, int64_t *bad, vn_error *err)
{
	vn_measured m;
	const vn_status st = vn_measure(r, c, axes, false, threads, &m, err);
	*nmse = m.value[VN_M_NMSE];
	*bad = (int64_t)m.value[VN_M_NONFINITE];
	return st;
}

static const made *find_made(const engine *e, int value)
{
	for (int i = 0; i < e->n_out; i++)
		if (e->out[i].value == value)
			return &e->out[i];
	return NULL;
}

/* The inputs' relative errors together; NaN where none is known. */
static double error_in(const replay *r, const vn_node *node)
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

static vn_status judge(replay *r, const vn_node *node, const made *own, const made *fine, vn_error *err)
{
	vn_comparison *c = r->c;
	vn_checkpoint *p = &c->point[r->point[own->value]];
	const vn_entry *e = vn_recording_entry(c->ref, p->ref);
	const vn_tensor a = { own->dtype, own->shape, own->data }, b = { fine->dtype, fine->shape, fine->data };
	const int threads = c->options->threads;
	vn_tensor cand, ref;
	double    local, floor, inherited;
	int64_t   bad, other;
	vn_status st;

	if (!vn_shape_equal(&a.shape, &e->shape) || !vn_shape_equal(&vn_recording_entry(c->cand, p->cand)->shape, &e->shape))
		return VN_OK;
	if ((st = vn_entry_tensor(c->cand, p->cand, &cand, err)) || (st = vn_entry_tensor(c->ref, p->ref, &ref, err))
	    || (st = distance(&a, &cand, vn_entry_axes(e), threads, &local, &bad, err))
	    || (st = distance(&b, &a, vn_entry_axes(e), threads, &floor, &other, err))
	    || (st = distance(&ref, &b, vn_entry_axes(e), threads, &inherited, &other, err)))
		return st;
	const double least = least_floor(r->e[OWN].policy.storage), in = error_in(r, node);
	p->replayed = true;
	p->replay = (vn_replayed) {
		.local = local, .floor = floor > least ? floor : least, .inherited = inherited, .bad = bad, .span = r->span[own->value],
		.gain = in > 0 ? sqrt(inherited) / in : (double)NAN,
	};
	vn_recording_release(c->cand, p->cand);
	vn_recording_release(c->ref, p->ref);
	return VN_OK;
}

/* The candidate's own numbers in place of what was computed, where they are all there. */
static vn_status put_back(replay *r, int value, bool *whole, vn_error *err)
{
	const vn_value *v = &r->plan->value[value];
	const int       entry = r->entry[value];
	const vn_shape  shape = vn_value_shape(v, r->step->tokens, r->step->position + r->step->tokens);
	*whole = false;
	if (entry < 0 || !vn_shape_equal(&vn_recording_entry(r->c->cand, entry)->shape, &shape) || v->on_demand || vn_value_streams(r->plan, value)
	    || (v->state >= 0 && r->plan->state[v->state].input >= 0))
		return VN_OK;
	const size_t n = (size_t)vn_shape_count(&shape);
	vn_tensor t;
	vn_status st = vn_entry_tensor(r->c->cand, entry, &t, err);
	double   *x = malloc((n + 1) * sizeof *x);
	void     *y = malloc((n + 1) * sizeof *x);
	if (!st && (!x || !y))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory to replay %s", v->name);
	if (!st)
		vn_to_f64(x, t.data, t.dtype, n);
	for (int i = 0; !st && i < N_ENGINES; i++) {
		vn_from_f64(y, vn_policy_dtype(r->e[i].policy, vn_value_wide(r->plan, value)), x, n);
		st = vn_ref_write(r->e[i].ref, value, y, err);
	}
	vn_recording_release(r->c->cand, entry);
	free(x);
	free(y);
	*whole = !st;
	return st;
}

/* How many nodes there are between this one and captured tensors, itself included. */
static int span_of(const replay *r, const vn_node *node)
{
	int most = 0;
	for (int i = 0; i < node->n_in; i++) {
		const int s = r->span[vn_plan_root(r->plan, node->in[i])];
		most = s > most ? s : most;
	}
	return most + 1;
}

static vn_status one_node(replay *r, int k, vn_error *err)
{
	const vn_node *node = &r->plan->node[k];
	const int span = span_of(r, node);
	bool      whole;
	vn_status st = VN_OK;
	for (int i = 0; !st && i < N_ENGINES; i++) {
		r->e[i].n_out = 0;
		st = vn_ref_run(r->e[i].ref, k, k + 1, err);
	}
	for (int i = 0; i < node->n_out; i++)
		if (node->out[i] >= 0)
			r->span[node->out[i]] = span;
	for (int i = 0; !st && i < r->e[OWN].n_out; i++) {
		const made *own = &r->e[OWN].out[i], *fine = find_made(&r->e[FINE], own->value);
		if (fine && r->point[own->value] >= 0)
			st = judge(r, node, own, fine, err);
	}
	for (int i = 0; !st && i < node->n_out; i++) {
		const int value = node->out[i];
		if (value < 0 || (st = put_back(r, value, &whole, err)))
			continue;
		if (whole)
			r->span[value] = 0;
		const int p = r->point[value];
		r->error[value] = p >= 0 && whole ? sqrt(r->c->point[p].m.value[VN_M_NMSE]) : (double)NAN;
	}
	return st;
}

/* ---- all of a step ------------------------------------------------------------------------- */

static void find_tensors(replay *r)
{
	vn_comparison *c = r->c;
	for (int v = 0; v < r->plan->n_values; v++) {
		r->point[v] = r->entry[v] = -1;
		r->want[v] = false;
		r->span[v] = 0;
		r->error[v] = (double)NAN;
	}
	for (int i = 0; i < vn_recording_count(c->cand); i++) {
		const vn_entry *e = vn_recording_entry(c->cand, i);
		const int root = e->step == r->step->number ? vn_names_root(&r->names, e->name) : -1;
		if (root >= 0 && r->entry[root] < 0)
			r->entry[root] = i;
	}
	for (int i = 0; i < c->n_points; i++) {
		const int root = c->point[i].step == r->step->number && c->point[i].m.n ? vn_names_root(&r->names, c->point[i].name) : -1;
		if (root < 0 || (r->point[root] >= 0 && c->point[r->point[root]].status == VN_OUTSIDE))
			continue;
		r->point[root] = i; /* of two names the one outside counts */
		r->entry[root] = c->point[i].cand;
		r->want[root] = true;
	}
}

static vn_status one_step(replay *r, vn_error *err)
{
	const int32_t *ids;
	const vn_step *s = r->step;
	const int64_t  first = s->position + s->first_row;
	vn_taps   taps[N_ENGINES];
	vn_status st = VN_OK;

	vn_recording_tokens(r->c->cand, &ids, NULL);
	find_tensors(r);
	for (int i = 0; !st && i < N_ENGINES; i++) {
		taps[i] = (vn_taps) { .want = r->want, .rows = VN_ROWS_RANGE, .first = first, .last = first + s->rows - 1,
		                      .sink = { &r->e[i], take_begin, take_write, take_end } };
		st = vn_ref_begin(r->e[i].ref, ids + s->position, s->tokens, &taps[i], err);
	}
	for (int k = 0; !st && k < r->plan->n_nodes; k++)
		st = one_node(r, k, err);
	for (int i = 0; i < N_ENGINES; i++)
		vn_ref_end(r->e[i].ref, !st);
	return st;
}

/* ---- origins --------------------------------------------------------------------------------- */

double vn_local_over_floor(const vn_checkpoint *p)
{
	return !p->replayed ? (double)NAN : p->replay.bad ? (double)INFINITY : p->replay.local / p->replay.floor;
}

bool vn_local_beyond(const vn_checkpoint *p)
{
	/* Of so few numbers a floor may be next to nothing by luck (compare.h). */
	const double limit = p->m.n < VN_FEW_NUMBERS ? 4 * VN_LOCAL_LIMIT : VN_LOCAL_LIMIT;
	return p->replayed && !(vn_local_over_floor(p) <= limit);
}

/* With what each added itself known, the graph need not be asked: an origin may well stand on an input that is wrong. */
static vn_status name_origins(vn_comparison *c, vn_error *err)
{
	int *list = malloc(((size_t)c->n_points + 1) * sizeof *list), n = 0;
	if (!list)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for origins");
	for (int i = 0; i < c->n_points; i++) {
		vn_checkpoint *p = &c->point[i];
		/* What could not be replayed keeps what the graph says of it. */
		p->origin = p->replayed ? c->first >= 0 && vn_local_beyond(p) : p->origin;
		if (p->origin)
			list[n++] = i;
	}
	free(c->origins);
	c->origins = list;
	c->n_origins = n;
	return VN_OK;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static bool follows(const vn_comparison *c, const vn_step *s, int64_t position)
{
	const int32_t *at;
	const int64_t  n = vn_recording_tokens(c->cand, NULL, &at);
	if (s->position != position || s->tokens <= 0 || s->tokens > n - s->position)
		return false;
	for (int64_t t = s->position; t < s->position + s->tokens; t++)
		if (at[t] != t)
			return false;
	return true;
}

static vn_status open_engines(replay *r, const vn_model *m, vn_error *err)
{
	const char *precision = vn_facts_get(vn_recording_run(r->c->cand), "precision");
	vn_policy  own;
	if (r->c->options->floor_policy)
		own = *r->c->options->floor_policy;
	else if (!precision || !vn_policy_from_name(precision, &own))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: precision '%.40s' is none of %s", vn_recording_path(r->c->cand), precision ? precision : "",
		               vn_policy_names);
	r->e[OWN].policy = own;
	vn_policy_from_name(own.storage == VN_F16 || own.storage == VN_BF16 ? "f32" : "f64", &r->e[FINE].policy);
	vn_status st = VN_OK;
	for (int i = 0; !st && i < N_ENGINES; i++) {
		const vn_ref_options o = { .policy = r->e[i].policy, .threads = r->c->options->threads, .progress = i == OWN };
		st = vn_ref_create(r->plan, vn_model_weights(m), &o, &r->e[i].ref, err);
	}
	return st;
}

vn_status vn_replay_run(vn_comparison *c, vn_error *err)
{
	replay r = { .c = c };
	const vn_step *step;
	const int steps = vn_recording_steps(c->cand, &step);
	int64_t   position = 0;
	vn_status st;

	if (!c->model || (c->first < 0 && !c->options->replay))
		return VN_OK;
	r.plan = vn_model_plan(c->model);
	const size_t n = (size_t)r.plan->n_values + 1;
	r.want = malloc(n * sizeof *r.want);
	r.point = malloc(n * sizeof *r.point);
	r.entry = malloc(n * sizeof *r.entry);
	r.span = malloc(n * sizeof *r.span);
	r.error = malloc(n * sizeof *r.error);
	if (!r.want || !r.point || !r.entry || !r.span || !r.error)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory to replay %d values", r.plan->n_values);
	else if (!(st = vn_names_init(&r.names, r.plan, err)))
		st = open_engines(&r, c->model, err);
	for (int i = 0; !st && i < steps; i++) {
		if (!follows(c, &step[i], position)) {
			vn_lines_add(&c->notes, "replay: step %d does not continue the steps before it; from there on nothing is replayed", step[i].number);
			break;
		}
		r.step = &step[i];
		position += step[i].tokens;
		st = one_step(&r, err);
		c->replayed = true;
	}
	if (!st && c->replayed)
		st = name_origins(c, err);
	for (int i = 0; i < N_ENGINES; i++) {
		vn_ref_destroy(r.e[i].ref);
		for (size_t k = 0; k < sizeof r.e[i].out / sizeof *r.e[i].out; k++)
			free(r.e[i].out[k].data);
	}
	vn_names_finish(&r.names);
	free(r.want);
	free(r.point);
	free(r.entry);
	free(r.span);
	free(r.error);
	return st ? vn_context(err, st, "replay") : VN_OK;
}
