/* screen.c: see screen.h. */
#include "capture/run/screen.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor of this step that agrees and is not written. */
typedef struct held_tensor {
	vn_tensor   t; /* data NULL: none */
	vn_left_out about;
} held_tensor;

struct vn_screen {
	const vn_run_judge *judge;
	void               *self;
	const vn_plan      *plan;
	const bool         *want;
	bool                stop, stopped;
	vn_sink             to;
	char                reference[VN_FACT_VALUE];
	vn_judged_by        by;
	/* The tensor being received. */
	int                 value, step;
	vn_tensor           now;
	void               *data;
	size_t              at, room;
	/* The state of a step: (n_values). */
	held_tensor        *held;
	int                 oldest; /* no value before it is held */
	bool               *written;
	bool               *asked;  /* for the inputs of the tensor being received */
	int                *reader; /* (n_values) the last operation whose recorded result depends on it */
	/* The state of the run. */
	vn_left_out_lines   lines;
	int64_t             judged, outside;
	char                first[VN_OPINION_WORDS + VN_NAME_MAX + 80], first_name[VN_NAME_MAX + 32];
};

/* ---- opening ------------------------------------------------------------------------ */

static bool is_wanted(const vn_screen *s, int value)
{
	return s->want[value] || s->want[vn_plan_root(s->plan, value)];
}

/* The readers of an output that is not recorded count as readers of its inputs. Nodes are in
 * execution order. */
static void find_readers(vn_screen *s)
{
	for (int v = 0; v < s->plan->n_values; v++)
		s->reader[v] = -1;
	for (int k = s->plan->n_nodes - 1; k >= 0; k--) {
		const vn_node *n = &s->plan->node[k];
		int            last = k;
		for (int o = 0; o < n->n_out; o++)
			if (n->out[o] >= 0 && !is_wanted(s, n->out[o]) && s->reader[n->out[o]] > last)
				last = s->reader[n->out[o]];
		for (int i = 0; i < n->n_in; i++) {
			const int v = vn_plan_root(s->plan, n->in[i]);
			s->reader[v] = last > s->reader[v] ? last : s->reader[v];
		}
	}
}

vn_status vn_screen_open(const vn_run_judge *judge, const vn_run_reference *a, const bool *want, bool stop,
                         vn_screen **screen, vn_error *err)
{
	const size_t n = (size_t)a->plan->n_values + 1;
	vn_screen   *s = *screen = vn_alloc(1, sizeof *s);

	*s = (vn_screen) { .judge = judge,
		               .plan = a->plan,
		               .want = want,
		               .stop = stop,
		               .value = -1,
		               .held = vn_alloc_zero(n, sizeof *s->held),
		               .written = vn_alloc_zero(n, sizeof *s->written),
		               .asked = vn_alloc_zero(n, sizeof *s->asked),
		               .reader = vn_alloc_zero(n, sizeof *s->reader) };
	snprintf(s->reference, sizeof s->reference, "%s", a->reference);
	find_readers(s);
	return judge->open(a, &s->self, &s->by, err);
}

static void drop_held(held_tensor *h)
{
	vn_tensor_free(&h->t);
	vn_left_out_finish(&h->about);
	*h = (held_tensor) { 0 };
}

void vn_screen_close(vn_screen *s)
{
	if (!s)
		return;
	for (int v = 0; s->held && v < s->plan->n_values; v++)
		drop_held(&s->held[v]);
	vn_left_out_lines_finish(&s->lines);
	s->judge->close(s->self);
	VN_FREE(s->data, s->held, s->written, s->asked, s->reader, s);
}

/* ---- what is left out ---------------------------------------------------------------- */

static vn_status leave_out(vn_screen *s, held_tensor *h, vn_error *err)
{
	const vn_status st = vn_left_out_add(&s->lines, &h->about, err);

	if (!st)
		drop_held(h);
	return st;
}

/* Leaves out the tensors that only operations before node `next` read. */
static vn_status leave_out_before(vn_screen *s, int next, vn_error *err)
{
	vn_status st = VN_OK;

	for (int v = s->oldest; v < s->plan->n_values && !st; v++) {
		if (s->held[v].t.data && s->reader[v] < next)
			st = leave_out(s, &s->held[v], err);
		if (v == s->oldest && !s->held[v].t.data && s->plan->value[v].node < next)
			s->oldest++;
	}
	return st;
}

/* ---- what is written ------------------------------------------------------------------ */

static vn_status write_tensor(vn_screen *s, int value, const vn_tensor *t, vn_error *err)
{
	vn_status st = s->to.begin(s->to.ctx, value, t->dtype, &t->shape, err);

	if (!st && !(st = s->to.write(s->to.ctx, t->data, (size_t)vn_shape_count(&t->shape), err)))
		st = s->to.end(s->to.ctx, err);
	s->written[value] = !st;
	return st;
}

/* Writes the inputs of the operation that makes a value. In place of an input that was not
 * recorded, writes the tensors that it was made from. */
static vn_status write_inputs(vn_screen *s, int value, vn_error *err)
{
	const vn_node *n = &s->plan->node[s->plan->value[value].node];
	vn_status      st = VN_OK;

	for (int i = 0; i < n->n_in && !st; i++) {
		const int    v = vn_plan_root(s->plan, n->in[i]);
		held_tensor *h = &s->held[v];
		if (h->t.data && !(st = write_tensor(s, v, &h->t, err)))
			drop_held(h);
		else if (!st && !is_wanted(s, v) && !s->asked[v]) {
			s->asked[v] = true; /* the residual stream leads to it by many paths */
			st = write_inputs(s, v, err);
		}
	}
	return st;
}

/* ---- the sink ------------------------------------------------------------------------- */

static vn_status begin_value(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_screen   *s = ctx;
	const size_t bytes = (size_t)vn_shape_count(shape) * vn_dtype_size(dtype);
	vn_status    st = leave_out_before(s, s->plan->value[value].node, err);

	if (st)
		return st;
	if (bytes > s->room || !s->data) {
		s->room = bytes + 1;
		s->data = vn_alloc_resized(s->data, s->room, 1);
	}
	s->value = value;
	s->now = (vn_tensor) { .dtype = dtype, .shape = *shape, .data = s->data };
	s->at = 0;
	return VN_OK;
}

static vn_status write_piece(void *ctx, const void *data, size_t elements, vn_error *err)
{
	vn_screen   *s = ctx;
	const size_t bytes = elements * vn_dtype_size(s->now.dtype);

	if (bytes > s->room - s->at)
		return vn_fail(err, VN_ERR_SHAPE, "%s: more numbers than its shape has", s->plan->value[s->value].name);
	memcpy((char *)s->data + s->at, data, bytes);
	s->at += bytes;
	return VN_OK;
}

static void note_first(vn_screen *s, const char *name, const char *words)
{
	if (s->outside++ > 0)
		return;
	snprintf(s->first_name, sizeof s->first_name, "%s%.0d%s%s", s->step ? "step." : "", s->step, s->step ? "/" : "",
	         name);
	snprintf(s->first, sizeof s->first, "%s is the first outside its limits: %s", s->first_name, words);
}

static vn_status hold_tensor(vn_screen *s, vn_left_out *about, vn_error *err)
{
	held_tensor *h = &s->held[s->value];

	*h = (held_tensor) { .t = s->now, .about = *about };
	*about = (vn_left_out) { 0 };
	s->data = NULL;
	s->room = 0;
	s->oldest = s->value < s->oldest ? s->value : s->oldest;
	/* Nothing will ask for it. */
	return s->reader[s->value] <= s->plan->value[s->value].node ? leave_out(s, h, err) : VN_OK;
}

static vn_status end_value(void *ctx, vn_error *err)
{
	vn_screen   *s = ctx;
	const char  *name = s->plan->value[s->value].name;
	vn_judgement j = { 0 };
	vn_status    st = s->judge->tensor(s->self, name, &s->now, &j, err);

	if (!st && j.opinion != VN_OPINION_NONE)
		s->judged++;
	if (!st && j.opinion == VN_OPINION_AGREES) {
		st = hold_tensor(s, &j.about, err);
	} else if (!st) {
		if (j.opinion == VN_OPINION_OUTSIDE) {
			memset(s->asked, 0, (size_t)s->plan->n_values * sizeof *s->asked);
			st = write_inputs(s, s->value, err);
		}
		st = st ? st : write_tensor(s, s->value, &s->now, err);
		if (!st && j.opinion == VN_OPINION_OUTSIDE)
			note_first(s, name, j.words);
		if (!st && j.opinion == VN_OPINION_OUTSIDE && s->stop) {
			s->stopped = true;
			st = vn_fail(err, VN_ERR_INTERRUPTED, "stopped at %s", s->first_name);
		}
	}
	vn_left_out_finish(&j.about);
	return st;
}

vn_sink vn_screen_sink(vn_screen *s, const vn_sink *to)
{
	s->to = *to;
	return (vn_sink) { .ctx = s, .begin = begin_value, .write = write_piece, .end = end_value };
}

/* ---- steps and the end ------------------------------------------------------------------ */

vn_status vn_screen_step(vn_screen *s, int number, int64_t position, const int32_t *ids, int64_t tokens, vn_error *err)
{
	const vn_status st = leave_out_before(s, s->plan->n_nodes, err);

	s->step = number;
	s->oldest = 0;
	memset(s->written, 0, (size_t)s->plan->n_values * sizeof *s->written);
	s->judge->step(s->self, number, position, ids, tokens);
	return st;
}

const bool *vn_screen_written(const vn_screen *s)
{
	for (int v = 0; v < s->plan->n_values; v++)
		if (s->plan->value[v].alias_of >= 0)
			s->written[v] = s->want[v] && s->written[vn_plan_root(s->plan, v)];
	return s->written;
}

vn_status vn_screen_finish(vn_screen *s, vn_store *to, vn_error *err)
{
	vn_status st = leave_out_before(s, s->plan->n_nodes, err);
	st = st ? st : s->judge->end(s->self, err);
	return st || s->lines.n == 0 ? st : vn_store_left_out(to, s->lines.line, s->lines.n, err);
}

void vn_screen_facts(const vn_screen *s, vn_facts *facts)
{
	vn_facts_set(facts, "against", "%s", s->reference);
	vn_facts_set(facts, "against_limits", "%s", s->by.limits);
	vn_facts_set(facts, "against_digest", "%s", s->by.reference.hex);
	vn_facts_set(facts, "judged", "%" PRId64, s->judged);
	if (s->outside) {
		vn_facts_set(facts, "outside", "%" PRId64, s->outside);
		vn_facts_set(facts, "found", "%s", s->first);
	}
	if (s->stopped)
		vn_facts_set(facts, "stopped", "%s", s->first_name);
}

bool vn_screen_stopped(const vn_screen *s)
{
	return s->stopped;
}

const char *vn_screen_found(const vn_screen *s, int64_t *judged, int64_t *left_out, int64_t *outside)
{
	*judged = s->judged;
	*left_out = s->lines.n;
	*outside = s->outside;
	return s->outside ? s->first : NULL;
}
