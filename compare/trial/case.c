/* case.c: see case.h. */
#include "compare/trial/case.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int vn_case_node(const vn_case *t)
{
	return t->site->plan ? t->site->plan->value[t->site->target].node : -1;
}

const vn_step *vn_case_step(const vn_case *t)
{
	return t->opened->cand ? vn_recording_step(t->opened->cand, t->result->checkpoints.of[t->x->checkpoint].step)
	                       : NULL;
}

vn_status vn_failure_of(const vn_failure *f, vn_error *err)
{
	if (f->st && err)
		*err = f->said;
	return f->st;
}

bool vn_case_made(const vn_case *t, vn_status st)
{
	if (st && st != VN_ERR_UNSUPPORTED && st != VN_ERR_USAGE && !t->failed->st) {
		t->failed->st = st;
		t->failed->said = t->failed->last;
	}
	return !st;
}

vn_error *vn_case_error(const vn_case *t)
{
	return &t->failed->last;
}

bool vn_case_at(const vn_case *t, int checkpoint)
{
	return vn_case_made(t, vn_recompute_at(t->recompute, checkpoint, vn_case_error(t)));
}

bool vn_case_run(const vn_case *t, const vn_plan *plan, const vn_tensor *weights, vn_recompute_as as, vn_tensor *out)
{
	return vn_case_made(t, vn_recompute_run(t->recompute, plan, weights, as, out, vn_case_error(t)));
}

bool vn_case_input(const vn_case *t, int input, vn_recompute_as as, vn_tensor *out)
{
	return vn_case_made(t, vn_recompute_input(t->recompute, input, as, out, vn_case_error(t)));
}

vn_plan *vn_case_clone(const vn_case *t)
{
	vn_plan *copy;

	return vn_case_made(t, vn_plan_clone(t->site->plan, &copy, vn_case_error(t))) ? copy : NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Counts the elements before and after an axis. */
static void split_axes(const vn_shape *s, int axis, int64_t *outer, int64_t *inner)
{
	*outer = *inner = 1;
	for (int i = 0; i < s->rank; i++)
		if (i != axis)
			*(i < axis ? outer : inner) *= s->dim[i];
}

/* Adds the squared error of n elements from `at` on to *dd, and the squares of the expected ones to
 * *rr. NaN, and infinity in place of another number, are an infinite error. */
static void add_error(const vn_case *t, int64_t at, int64_t n, double *dd, double *rr)
{
	enum { AT_ONCE = 512 };
	double own[AT_ONCE], is[AT_ONCE];

	for (int64_t end = at + n; at < end; at += AT_ONCE) {
		const int64_t some = end - at < AT_ONCE ? end - at : AT_ONCE;
		vn_tensor_numbers(&t->own, at, some, own);
		vn_tensor_numbers(&t->site->cand, at, some, is);
		for (int64_t i = 0; i < some; i++) {
			*dd += own[i] == is[i] ? 0 : (own[i] - is[i]) * (own[i] - is[i]);
			*rr += isfinite(own[i]) ? own[i] * own[i] : 0;
		}
	}
}

void vn_case_rows_off(const vn_case *t, bool *off, int64_t *first, int64_t *last)
{
	const vn_shape *s = &t->site->cand.shape;
	const double    limit = VN_PEAK_LIMIT * t->x->unmodified.residual.floor_token;
	const int       token = vn_axes_find(t->site->axes, "token"), axis = token < 0 ? 0 : token;
	int64_t         outer, inner;

	*first = *last = -1;
	split_axes(s, axis, &outer, &inner);
	for (int64_t row = 0; axis < s->rank && row < s->dim[axis]; row++) {
		double dd = 0, rr = 0;
		for (int64_t o = 0; o < outer; o++)
			add_error(t, (o * s->dim[axis] + row) * inner, inner, &dd, &rr);
		const bool is_off = !(dd <= limit * rr);
		if (off)
			off[row] = is_off;
		*first = is_off && *first < 0 ? row : *first;
		*last = is_off ? row : *last;
	}
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* The axis of heads. Returns false if there is none, one head only, or too many heads. */
static bool heads_of(const vn_case *t, vn_head_part *part)
{
	const vn_shape *s = &t->site->cand.shape;
	const char     *axes = t->site->axes;
	int             axis = vn_axes_find(axes, "head");

	axis = axis < 0 ? vn_axes_find(axes, "kv_head") : axis;
	if (axis < 0 || axis >= s->rank || s->dim[axis] < 2 || s->dim[axis] > VN_HEADS_MOST)
		return false;
	part->heads = (int)s->dim[axis];
	split_axes(s, axis, &part->outer, &part->inner);
	return true;
}

void vn_head_part_splice(const vn_head_part *part, const vn_tensor *z, const vn_tensor *unmodified)
{
	const size_t block = (size_t)part->inner * vn_dtype_size(z->dtype);

	for (int64_t o = 0; o < part->outer; o++)
		for (int h = 0; h < part->heads; h++) {
			const size_t at = (size_t)(o * part->heads + h) * block;
			if (!part->in[h])
				memcpy((char *)(uintptr_t)z->data + at, (const char *)unmodified->data + at, block);
		}
}

#define BEYOND 16.0 /* a head with an error of this many floors is in error */

/* Squared errors of the candidate (dd) and of the more precise numbers (ff), and the squares of the
 * expected numbers (rr). */
typedef struct head_squares {
	double dd, ff, rr;
} head_squares;

/* Adds those of head h up. x: room for 3 heads. */
static head_squares add_squares(const vn_case *t, const vn_head_part *part, int h, double *x)
{
	const vn_tensor *of[3] = { &t->own, &t->fine, &t->site->cand };
	const int64_t    n = part->inner;
	head_squares     s = { 0, 0, 0 };

	for (int64_t o = 0; o < part->outer; o++) {
		for (int i = 0; i < 3; i++)
			vn_tensor_numbers(of[i], (o * part->heads + h) * n, n, x + i * n);
		for (int64_t i = 0; i < n; i++) {
			const double r = x[i], f = x[n + i] - r, d = x[2 * n + i] - r;
			if (isfinite(r) && isfinite(f)) {
				s.dd += isfinite(d) ? d * d : 1 + r * r;
				s.ff += f * f;
				s.rr += r * r;
			}
		}
	}
	return s;
}

bool vn_head_part_find(const vn_case *t, vn_head_part *part)
{
	int n = 0;

	*part = (vn_head_part) { 0 };
	if (!heads_of(t, part))
		return false;
	VN_FREED double *x = vn_alloc((size_t)(3 * part->inner), sizeof *x);
	for (int h = 0; h < part->heads; h++) {
		const head_squares s = add_squares(t, part, h, x);
		part->in[h] = s.dd > BEYOND * fmax(s.ff, t->x->unmodified.residual.floor * s.rr);
		n += part->in[h];
	}
	return n > 0 && n < part->heads;
}

bool vn_head_part_of(const vn_case *t, const vn_trial *h, vn_head_part *part)
{
	*part = (vn_head_part) { 0 };
	if (!h->heads || !heads_of(t, part))
		return false;
	memcpy(part->in, h->part, sizeof part->in);
	return true;
}

/* ---- what the run continued with ------------------------------------------------------------- */

bool vn_case_consumed_as_recorded(const vn_case *t)
{
	const vn_plan       *plan = t->site->plan;
	const vn_checkpoint *me = &t->result->checkpoints.of[t->x->checkpoint];
	const int            root = vn_plan_root(plan, vn_plan_find(plan, me->name));

	for (int i = 0; i < t->result->checkpoints.n; i++) {
		const vn_checkpoint *p = &t->result->checkpoints.of[i];
		if (p->step != me->step || !p->replayed || vn_local_beyond(p))
			continue;
		const int      v = vn_plan_find(plan, p->name);
		const vn_node *n = v < 0 ? NULL : &plan->node[plan->value[vn_plan_root(plan, v)].node];
		for (int k = 0; n && k < n->n_in; k++)
			if (vn_plan_root(plan, n->in[k]) == root)
				return true;
	}
	return false;
}

vn_consumed vn_case_consumed(const vn_case *t)
{
	return t->result->checkpoints.of[t->x->checkpoint].replay.recorder_fault ? VN_CONSUMED_OTHERS
	       : vn_case_consumed_as_recorded(t)                                 ? VN_CONSUMED_AS_RECORDED
	                                                                         : VN_CONSUMED_UNKNOWN;
}

/* ---- what a trial makes ----------------------------------------------------------------- */

void vn_made_put_weight(vn_made *made, const vn_plan *p, int w, vn_dtype dtype)
{
	made->table = vn_alloc((size_t)p->n_weights, sizeof *made->table);
	memcpy(made->table, made->weights, (size_t)p->n_weights * sizeof *made->table);
	made->table[w].data = made->rows;
	made->table[w].dtype = dtype;
	made->weights = made->table;
	made->plan = p;
}

void vn_made_room(const vn_case *t, vn_made *made)
{
	const size_t n = (size_t)vn_shape_count(&t->site->cand.shape);

	made->own = (vn_tensor) { VN_F64, t->site->cand.shape, vn_alloc(n, sizeof(double)) };
	made->fine = (vn_tensor) { VN_F64, t->site->cand.shape, vn_alloc(n, sizeof(double)) };
}

void vn_made_round(const vn_case *t, vn_made *made)
{
	const size_t   n = (size_t)vn_shape_count(&t->site->cand.shape);
	const vn_dtype as = t->opened->policy.storage;
	const double  *fine = made->fine.data;
	double        *own = (double *)made->own.data;

	for (size_t i = 0; i < n; i++) {
		float f = (float)fine[i];
		vn_round_f32(&f, as, as != VN_F64);
		own[i] = as == VN_F64 ? fine[i] : (double)f;
	}
}

void vn_made_finish(vn_made *made)
{
	if (made->fine.data != made->own.data)
		vn_tensor_free(&made->fine);
	vn_tensor_free(&made->own);
	VN_FREE(made->rows, made->table);
	vn_plan_destroy(made->copy);
	vn_faulty_destroy(made->faulty);
	*made = (vn_made) { 0 };
}

double *vn_case_doubles_of(const vn_tensor *t, int64_t from, int64_t n)
{
	double *x = vn_alloc((size_t)n, sizeof *x);

	vn_tensor_numbers(t, from, n, x);
	return x;
}

double *vn_case_all_doubles_of(const vn_tensor *t)
{
	return vn_case_doubles_of(t, 0, vn_shape_count(&t->shape));
}

double vn_dot(const double *a, const double *b, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

double vn_square_distance(const double *a, const double *b, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (a[i] - b[i]) * (a[i] - b[i]);
	return sum;
}
