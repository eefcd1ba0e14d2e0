/* replay_node.c: one node of a replay: run in both engines, measured against what the
 * candidate made, which then takes its place. */
#include "compare/floor/floor_check.h"
#include "compare/replay/replay_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers handed over ------------------------------------------------------------------ */

/* Scores over a vocabulary are larger than all else together, and two engines make them. */
enum { LARGE = 64 << 20, STRETCH = 16 << 20 };

void vn_made_free(vn_made *m)
{
	if (!m->large.data)
		free(m->data);
	vn_scratch_end(&m->large);
	m->data = NULL;
	m->room = 0;
}

static bool make_room(vn_made *m, size_t bytes)
{
	vn_made_free(m);
	if (bytes >= LARGE && vn_scratch_make(&m->large, bytes))
		m->data = m->large.data;
	else
		m->data = malloc(bytes);
	m->room = m->data ? bytes : 0;
	return m->data != NULL;
}

static vn_status take_begin(void *context, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_replay_engine *e = context;
	vn_made *m = &e->out[e->n_out];
	const size_t bytes = (size_t)vn_shape_count(shape) * vn_dtype_size(dtype);
	m->value = value;
	m->dtype = dtype;
	m->shape = *shape;
	m->have = 0;
	return bytes <= m->room || make_room(m, bytes) ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory to replay a node");
}

static vn_status take_write(void *context, const void *data, size_t elements, vn_error *err)
{
	vn_replay_engine *e = context;
	vn_made *m = &e->out[e->n_out];
	const size_t bytes = elements * vn_dtype_size(m->dtype);
	(void)err;
	if (m->have + bytes <= m->room) {
		memcpy(m->data + m->have, data, bytes);
		if (m->large.data && m->have / STRETCH != (m->have + bytes) / STRETCH)
			vn_scratch_forget(&m->large);
		m->have += bytes;
	}
	return VN_OK;
}

static vn_status take_end(void *context, vn_error *err)
{
	vn_replay_engine *e = context;
	(void)err;
	e->n_out += e->n_out < VN_MAX_OUT + 1;
	return VN_OK;
}

vn_sink vn_replay_sink(vn_replay_engine *e)
{
	return (vn_sink) { e, take_begin, take_write, take_end };
}

static const vn_made *find_made(const vn_replay_engine *e, int value)
{
	for (int i = 0; i < e->n_out; i++)
		if (e->out[i].value == value)
			return &e->out[i];
	return NULL;
}

/* ---- what it added itself -------------------------------------------------------------------- */

/* The inputs' relative errors together; NaN where none is known. */
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

/* A reference of no more digits than the candidate's rounded here as well. Of that B knows nothing, so it is in B - R and came with
 * no input: taken off, and where little else is left nothing can be said of a gain. Nor can it where B itself rounds what goes in. */
static bool own_rounding(const vn_replay *r, const vn_node *node, vn_replayed *l)
{
	vn_policy of_ref;

	if (node->op == VN_OP_LINEAR && r->c->policy.products)
		return true;
	vn_policy_of_recording(r->c->ref, &of_ref);
	if (vn_policy_finer(of_ref, r->e[VN_OWN].policy))
		return false;
	const bool most = l->inherited < 4 * l->floor;
	l->inherited = fmax(0, l->inherited - l->floor);
	return most;
}

vn_status vn_replay_measure(vn_replay *r, const vn_node *node, const vn_made *own, vn_column_order lie, vn_checkpoint *p, vn_error *err)
{
	const vn_made *fine = find_made(&r->e[VN_FINE], own->value);
	const double   in = error_in(r, node);
	vn_comparison *c = r->c;
	const char    *axes = vn_entry_axes(vn_recording_entry(c->ref, p->ref));
	const vn_tensor a = { own->dtype, own->shape, own->data }, b = { fine->dtype, fine->shape, fine->data };
	const int   threads = c->options->threads;
	const bool  mapped = !lie && own->large.file && fine->large.file && vn_recording_mapped(c->cand, p->cand) && vn_recording_mapped(c->ref, p->ref);
	unsigned char *sorted = NULL;
	vn_tensor   cand, ref;
	vn_measured given;
	vn_status   st;

	if ((st = vn_replay_candidate(c, p, lie, &cand, &sorted, err)) || (st = vn_entry_tensor(c->ref, p->ref, &ref, err))
	    || (st = vn_local_measure_mapped(&a, &b, &cand, axes, r->e[VN_OWN].policy.storage, mapped, threads, &p->replay, err))
	    || (st = vn_measure_mapped(&ref, &b, axes, false, mapped, threads, &given, err)))
		goto done;
	p->replayed = true;
	if (vn_local_beyond(p) && (st = vn_replay_allow(r, node, own, &cand, axes, &p->replay, err)))
		goto done;
	p->replay.inherited = given.finite ? given.value[VN_M_NMSE] : 0;
	p->replay.behind = -1;
	const bool hidden = own_rounding(r, node, &p->replay);
	p->replay.gain = in > 0 && !hidden ? sqrt(p->replay.inherited) / in : (double)NAN;
	vn_recording_release(c->cand, p->cand);
	vn_recording_release(c->ref, p->ref);
done:
	free(sorted);
	return st;
}

static vn_checkpoint *point_of(const vn_replay *r, const vn_made *m)
{
	const int point = r->point[m->value];
	return point >= 0 && r->c->point[point].replayed ? &r->c->point[point] : NULL;
}

static vn_status measure_all(vn_replay *r, const vn_node *node, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < r->e[VN_OWN].n_out; i++) {
		const vn_made *m = &r->e[VN_OWN].out[i];
		vn_checkpoint *p = r->point[m->value] >= 0 ? &r->c->point[r->point[m->value]] : NULL;
		if (!p || !find_made(&r->e[VN_FINE], m->value) || !vn_shape_equal(&m->shape, &vn_recording_entry(r->c->ref, p->ref)->shape)
		    || !vn_shape_equal(&m->shape, &vn_recording_entry(r->c->cand, p->cand)->shape))
			continue;
		if (!(st = vn_replay_measure(r, node, m, VN_COLUMNS_SAME, p, err)))
			st = vn_trace_span(&r->trace, r->at, m->value, &p->replay.span, &p->replay.behind, err);
		if (!vn_local_beyond(p))
			p->replay.behind = -1;
	}
	return st;
}

static vn_status charge(vn_replay *r, int k, vn_error *err)
{
	vn_status st = VN_OK;
	int span, behind;
	for (int i = 0; !st && i < r->e[VN_OWN].n_out; i++) {
		const int      value = r->e[VN_OWN].out[i].value;
		vn_checkpoint *p = point_of(r, &r->e[VN_OWN].out[i]);
		if (!p || !vn_local_beyond(p) || p->replay.behind >= 0 || (st = vn_trace_span(&r->trace, r->at, value, &span, &behind, err)))
			continue;
		p->replay.behind = behind; /* what the same operation made before */
		if (behind >= 0)
			continue;
		vn_trace_blame(&r->trace, r->point[value]);
		st = vn_local_is_order(p) ? VN_OK : vn_replay_save(r, k, value, err);
	}
	return st;
}

/* ---- the candidate's numbers in its place ---------------------------------------------------------- */

bool vn_replay_no_place(const vn_plan *plan, int value)
{
	const vn_value *v = &plan->value[value];
	return v->on_demand || vn_value_streams(plan, value) || (v->state >= 0 && plan->state[v->state].input >= 0);
}

static vn_status put(vn_replay_engine *e, const vn_plan *plan, int value, const vn_tensor *t, size_t from, size_t all, vn_error *err)
{
	const vn_dtype as = vn_policy_dtype(e->policy, vn_value_wide(plan, value));
	const size_t   n = (size_t)vn_shape_count(&t->shape);
	double        *x = malloc((n + 1) * sizeof *x);
	unsigned char *y = malloc((all + 1) * vn_dtype_size(as));
	vn_status st = x && y ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory to replay %s", plan->value[value].name);
	if (!st && n < all) /* the rows that were not captured stay as they were computed */
		st = vn_ref_read(e->ref, value, y, err);
	if (!st) {
		vn_to_f64(x, t->data, t->dtype, n);
		vn_from_f64(y + from * vn_dtype_size(as), as, x, n);
		st = vn_ref_write(e->ref, value, y, err);
	}
	free(x);
	free(y);
	return st;
}

vn_status vn_replay_take(vn_replay *r, int value, vn_error *err)
{
	const vn_checkpoint *p = &r->c->point[r->point[value]];
	const vn_shape whole = vn_replay_shape(r, value);
	unsigned char *own;
	vn_tensor t;
	vn_status st = vn_replay_candidate(r->c, p, p->replay.columns, &t, &own, err);

	if (st)
		return st;
	const bool   rows = !vn_shape_equal(&t.shape, &whole);
	const size_t from = rows ? (size_t)(r->step->first_row * vn_value_row(&r->plan->value[value])) : 0;
	for (int i = 0; !st && i < VN_N_ENGINES; i++)
		st = put(&r->e[i], r->plan, value, &t, from, (size_t)vn_shape_count(&whole), err);
	free(own);
	vn_recording_release(r->c->cand, p->cand);
	vn_trace_keep(&r->trace, r->at, value, rows ? VN_KEPT_ROWS : VN_KEPT_ALL);
	return st;
}

/* Only what was judged: what nobody looks at must not hide the error of what reads it. */
static vn_status put_back(vn_replay *r, int value, vn_error *err)
{
	const vn_checkpoint *p = r->point[value] >= 0 ? &r->c->point[r->point[value]] : NULL;

	r->error[value] = (double)NAN;
	if (!p || !p->replayed || vn_replay_no_place(r->plan, value))
		return VN_OK;
	r->error[value] = sqrt(p->m.value[VN_M_NMSE]);
	return vn_replay_take(r, value, err);
}

/* Numbers that the candidate rounded are known to the bit where they were captured. Of others a few fall on the other side, of which
 * there may be none in ours: there what all of these roundings do is the floor. */
static void round_alike(vn_replay *r, const vn_node *node)
{
	const bool known = node->op != VN_OP_LINEAR || vn_trace_kept(&r->trace, r->at, vn_plan_root(r->plan, node->in[0])) == VN_KEPT_ALL;

	vn_ref_products(r->e[VN_FINE].ref, known ? r->e[VN_FINE].policy.products : VN_PRODUCTS_PLAIN);
}

vn_status vn_replay_run_node(vn_replay *r, int k, vn_error *err)
{
	vn_status st = VN_OK;
	round_alike(r, &r->plan->node[k]);
	for (int i = 0; !st && i < VN_N_ENGINES; i++) {
		r->e[i].n_out = 0;
		st = vn_ref_run(r->e[i].ref, k, k + 1, err);
	}
	return st;
}

vn_status vn_replay_node(vn_replay *r, int k, vn_error *err)
{
	const vn_node *node = &r->plan->node[k];
	vn_status st;
	if ((st = vn_replay_run_node(r, k, err)) || (st = measure_all(r, node, err)) || (st = vn_replay_columns(r, k, err)) || (st = vn_replay_captured(r, k, err))
	    || (st = charge(r, k, err)))
		return st;
	for (int i = 0; !st && i < node->n_out; i++)
		if (node->out[i] >= 0)
			st = put_back(r, node->out[i], err);
	if (r->e[VN_OWN].n_out) { /* pages of the files are not to add up beside the weights */
		vn_recording_forget(r->c->ref);
		vn_recording_forget(r->c->cand);
	}
	return st;
}
