/* put_judge.c: see put_judge.h. */
#include "capture/put_judge.h"

#include "capture/run/against.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor that agrees and is not written. */
typedef struct kept_tensor {
	struct kept_tensor *next;
	vn_tensor_label     label;
	vn_tensor           t;
	vn_left_out         about;
} kept_tensor;

struct vn_put_judge {
	vn_against        a;
	double            keep_above; /* 0: by the format */
	kept_tensor      *first, **last;
	vn_left_out_lines lines;
	int64_t           judged;
	char              off[VN_NAME_MAX + 32];
};

vn_status vn_put_judge_open(const char *reference, double keep_above, vn_put_judge **judge, vn_error *err)
{
	vn_put_judge *j = *judge = calloc(1, sizeof *j);

	if (!j)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", reference);
	j->keep_above = keep_above;
	j->last = &j->first;
	return vn_against_open(&j->a, reference, err);
}

static void free_kept(kept_tensor *k)
{
	vn_left_out_finish(&k->about);
	vn_tensor_free(&k->t);
	free(k);
}

void vn_put_judge_close(vn_put_judge *j)
{
	if (!j)
		return;
	for (kept_tensor *k = j->first, *next; k; k = next) {
		next = k->next;
		free_kept(k);
	}
	vn_left_out_lines_finish(&j->lines);
	vn_recording_close(j->a.ref);
	free(j);
}

/* ---- one tensor ---------------------------------------------------------------------- */

enum { AT_ONCE = 4096 };

/* sum (c - r)^2 / sum r^2 */
static double measure_nmse(const vn_tensor *c, const vn_tensor *r, int64_t n, double *most)
{
	double error = 0, square = 0, x[AT_ONCE], y[AT_ONCE];

	*most = 0;
	for (int64_t at = 0; at < n; at += AT_ONCE) {
		const int64_t k = n - at < AT_ONCE ? n - at : AT_ONCE;
		vn_tensor_numbers(r, at, k, x);
		vn_tensor_numbers(c, at, k, y);
		for (int64_t i = 0; i < k; i++) {
			const double d = y[i] - x[i];
			error += d * d;
			square += x[i] * x[i];
			*most = fmax(*most, fabs(d));
		}
	}
	return square > 0 ? error / square : error > 0 ? (double)INFINITY : error;
}

/* The nmse up to which a tensor agrees. The Python recorder has the same two (against.py);
 * tests/capture/python/python_recorder.py compares what both leave out. */
static const double LIMIT_WIDE = 1e-9, LIMIT_NARROW = 1e-5;

static double limit_of(const vn_put_judge *j, vn_dtype dtype)
{
	return j->keep_above > 0 ? j->keep_above : vn_dtype_size(dtype) >= 4 ? LIMIT_WIDE : LIMIT_NARROW;
}

static vn_status judge_numbers(vn_put_judge *j, const vn_tensor *t, vn_judgement *by, vn_error *err)
{
	vn_tensor ref;
	double    most;

	by->opinion = VN_OPINION_OUTSIDE;
	const vn_status st = vn_entry_tensor(j->a.ref, by->entry, &ref, err);
	if (st)
		return st;
	const double nmse = measure_nmse(t, &ref, vn_shape_count(&t->shape), &most);
	vn_recording_release(j->a.ref, by->entry);
	vn_recording_forget(j->a.ref);
	if (!(nmse <= limit_of(j, t->dtype)))
		return VN_OK;
	by->opinion = VN_OPINION_AGREES;
	if (!(by->about.measure = calloc(3, sizeof *by->about.measure)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for what was measured");
	by->about.measure[by->about.n++] = (vn_said_measure) { "nmse", nmse };
	by->about.measure[by->about.n++] = (vn_said_measure) { "max_abs", most };
	by->about.measure[by->about.n++] = (vn_said_measure) { "nonfinite", 0 };
	return VN_OK;
}

static vn_status judge_tensor(vn_put_judge *j, const vn_tensor_label *l, const vn_tensor *t, vn_judgement *by,
                              vn_error *err)
{
	vn_against_look(&j->a, l->name, t, by);
	if (by->opinion != VN_OPINION_OPEN)
		return VN_OK;
	/* For logits, the nmse is not all that a comparison judges, so they must be equal. */
	if (by->plain && strcmp(l->basis, vn_point_get(VN_POINT_LOGITS)->basis) != 0)
		return judge_numbers(j, t, by, err);
	by->opinion = by->plain ? VN_OPINION_OUTSIDE : VN_OPINION_NONE;
	return VN_OK;
}

/* ---- what is kept back ------------------------------------------------------------------ */

static vn_status leave_out(vn_put_judge *j, vn_error *err)
{
	kept_tensor    *k = j->first;
	const vn_status st = vn_left_out_add(&j->lines, &k->about, err);

	if (st)
		return st;
	if (!(j->first = k->next))
		j->last = &j->first;
	free_kept(k);
	return VN_OK;
}

/* Leaves out the tensors kept back, except those of this layer and the one directly before them.
 * layer -2: leaves out all. */
static vn_status leave_out_but(vn_put_judge *j, int layer, vn_error *err)
{
	vn_status st = VN_OK;

	while (!st && j->first &&
	       (layer == -2 || (j->first->label.layer != layer && j->first->next && j->first->next->label.layer != layer)))
		st = leave_out(j, err);
	return st;
}

static vn_status write_tensor(vn_store *s, const vn_tensor_label *l, const vn_tensor *t, vn_error *err)
{
	vn_status st = vn_store_begin(s, l, t->dtype, &t->shape, err);

	if (!st && !(st = vn_store_write(s, t->data, (size_t)vn_shape_count(&t->shape), err)))
		st = vn_store_end(s, err);
	return st;
}

static vn_status write_kept(vn_put_judge *j, vn_store *s, vn_error *err)
{
	vn_status st = VN_OK;

	while (j->first && !st) {
		kept_tensor *k = j->first;
		st = write_tensor(s, &k->label, &k->t, err);
		j->first = k->next;
		free_kept(k);
	}
	j->last = j->first ? j->last : &j->first;
	return st;
}

vn_status vn_put_judge_put(vn_put_judge *j, vn_store *s, const vn_tensor_label *l, vn_tensor *t, vn_error *err)
{
	vn_judgement by = { 0 };
	kept_tensor *k = NULL;
	vn_status    st = leave_out_but(j, l->layer, err);

	if (st || (st = judge_tensor(j, l, t, &by, err)))
		goto done;
	j->judged += by.opinion != VN_OPINION_NONE;
	if (by.opinion == VN_OPINION_AGREES) {
		if (!(k = calloc(1, sizeof *k))) {
			st = vn_fail(err, VN_ERR_NOMEM, "no memory for %s", l->name);
			goto done;
		}
		*k = (kept_tensor) { .label = *l, .t = *t, .about = by.about };
		*j->last = k;
		j->last = &k->next;
		return VN_OK;
	}
	if (by.opinion == VN_OPINION_OUTSIDE && !*j->off)
		snprintf(j->off, sizeof j->off, "%s%.0d%s%s", j->a.step ? "step." : "", j->a.step, j->a.step ? "/" : "",
		         l->name);
	if (by.opinion == VN_OPINION_OUTSIDE)
		st = write_kept(j, s, err);
	st = st ? st : write_tensor(s, l, t, err);
done:
	vn_left_out_finish(&by.about);
	vn_tensor_free(t);
	return st;
}

/* ---- steps and the end ------------------------------------------------------------------- */

vn_status vn_put_judge_step(vn_put_judge *j, int number, int64_t position, const int32_t *ids, int64_t n, vn_error *err)
{
	const vn_status st = leave_out_but(j, -2, err);

	vn_against_step(&j->a, number, position, ids, n);
	return st;
}

vn_status vn_put_judge_end(vn_put_judge *j, vn_facts *facts, vn_error *err)
{
	vn_facts_set(facts, "against", "%s", vn_recording_path(j->a.ref));
	if (j->keep_above > 0)
		vn_facts_set(facts, "against_limits", "nmse at most %g", j->keep_above);
	else
		vn_facts_set(facts, "against_limits", "nmse at most %g (f32), %g (16 bits)", LIMIT_WIDE, LIMIT_NARROW);
	vn_facts_set(facts, "judged", "%" PRId64, j->judged);
	return leave_out_but(j, -2, err);
}

vn_status vn_put_judge_lines(const vn_put_judge *j, vn_store *s, vn_error *err)
{
	return j->lines.n ? vn_store_left_out(s, j->lines.line, j->lines.n, err) : VN_OK;
}

const char *vn_put_judge_first(const vn_put_judge *j)
{
	return j->off;
}
