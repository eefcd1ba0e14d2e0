/* put_judge.c: see put_judge.h. */
#include "capture/put_judge.h"

#include "capture/recording/left_out.h"
#include "capture/recording/recording.h"
#include "libref/base/stats.h"
#include "libref/plan/point.h"
#include "libref/base/grow.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor that agrees and is not written. */
typedef struct kept_tensor {
	struct kept_tensor *next;
	vn_tensor_label     label;
	void               *data;
	vn_left_out         about;
} kept_tensor;

struct vn_put_judge {
	vn_recording *ref;
	double        keep_above; /* 0: by the format */
	int           step;
	bool          same; /* the step has the reference's tokens */
	kept_tensor  *first, **last;
	char        **line;
	int64_t       n_lines, judged;
	char          off[VN_NAME_MAX + 32];
};

vn_status vn_put_judge_open(const char *reference, double keep_above, vn_put_judge **judge, vn_error *err)
{
	vn_put_judge *j = *judge = calloc(1, sizeof *j);

	if (!j)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", reference);
	j->keep_above = keep_above;
	j->last = &j->first;
	const vn_status st = vn_recording_open(reference, &j->ref, err);
	if (!st && !vn_recording_complete(j->ref))
		return vn_fail(err, VN_ERR_MISMATCH, "%s: is incomplete: its run was interrupted", reference);
	return st;
}

static void free_kept(kept_tensor *k)
{
	vn_left_out_finish(&k->about);
	free(k->data);
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
	for (int64_t i = 0; i < j->n_lines; i++)
		free(j->line[i]);
	free(j->line);
	vn_recording_close(j->ref);
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
		const size_t k = (size_t)(n - at < AT_ONCE ? n - at : AT_ONCE);
		vn_to_f64(x, (const char *)r->data + (size_t)at * vn_dtype_size(r->dtype), r->dtype, k);
		vn_to_f64(y, (const char *)c->data + (size_t)at * vn_dtype_size(c->dtype), c->dtype, k);
		for (size_t i = 0; i < k; i++) {
			const double d = y[i] - x[i];
			error += d * d;
			square += x[i] * x[i];
			*most = fmax(*most, fabs(d));
		}
	}
	return square > 0 ? error / square : error > 0 ? (double)INFINITY : error;
}

static double limit_of(const vn_put_judge *j, vn_dtype dtype)
{
	return j->keep_above > 0 ? j->keep_above : vn_dtype_size(dtype) >= 4 ? 1e-9 : 1e-5;
}

typedef enum tensor_opinion { AGREES, DIFFERS, NOT_JUDGED } tensor_opinion;

/* Computes the nmse if the digests differ and the statistics allow it to be within the limit. */
static vn_status measure_tensor(vn_put_judge *j, int entry, const vn_tensor *t, const vn_stats *own, vn_left_out *about,
                                tensor_opinion *o, vn_error *err)
{
	const vn_stats *said = vn_recording_stats(j->ref, vn_recording_entry(j->ref, entry));
	const double    most_off = limit_of(j, t->dtype);
	vn_tensor       ref;
	double          most;

	*o = DIFFERS;
	if (said && !(fabs(own->rms - said->rms) <= sqrt(most_off) * said->rms))
		return VN_OK;
	const vn_status st = vn_entry_tensor(j->ref, entry, &ref, err);
	if (st)
		return st;
	const double off = measure_nmse(t, &ref, own->n, &most);
	vn_recording_release(j->ref, entry);
	vn_recording_forget(j->ref);
	if (!(off <= most_off))
		return VN_OK;
	*o = AGREES;
	if (!(about->measure = calloc(3, sizeof *about->measure)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for what was measured");
	about->measure[about->n++] = (vn_said_measure) { "nmse", off };
	about->measure[about->n++] = (vn_said_measure) { "max_abs", most };
	about->measure[about->n++] = (vn_said_measure) { "nonfinite", 0 };
	return VN_OK;
}

static vn_status judge_tensor(vn_put_judge *j, const vn_tensor_label *l, const vn_tensor *t, vn_left_out *about,
                              tensor_opinion *o, vn_error *err)
{
	const int       entry = vn_recording_find(j->ref, j->step, l->name);
	const vn_entry *e = entry >= 0 ? vn_recording_entry(j->ref, entry) : NULL;
	const int64_t   n = vn_shape_count(&t->shape);

	*o = NOT_JUDGED;
	if (!e || !e->has_digest || n == 0)
		return VN_OK;
	*o = DIFFERS;
	if (!j->same || !vn_shape_equal(&e->shape, &t->shape))
		return VN_OK;
	const vn_stats own = vn_stats_of(t->data, t->dtype, (size_t)n);
	if (own.nan + own.inf > 0 || !(own.min < own.max)) {
		*o = NOT_JUDGED;
		return VN_OK;
	}
	*about = (vn_left_out) { .name = e->name,
		                     .step = j->step,
		                     .dtype = t->dtype,
		                     .shape = t->shape,
		                     .digest = vn_digest_of(t->data, (size_t)n * vn_dtype_size(t->dtype)),
		                     .reference = vn_entry_digest(e) };
	if (e->dtype == t->dtype && strcmp(about->digest.hex, about->reference.hex) == 0) {
		*o = AGREES;
		return VN_OK;
	}
	/* For logits, the nmse is not all that a comparison judges, so they must be equal. */
	if (strcmp(l->point, vn_point_get(VN_POINT_LOGITS)->name) == 0)
		return VN_OK;
	return measure_tensor(j, entry, t, &own, about, o, err);
}

/* ---- what is kept back ------------------------------------------------------------------ */

static vn_status leave_out(vn_put_judge *j, vn_error *err)
{
	kept_tensor *k = j->first;

	char **more = vn_grown(j->line, (size_t)j->n_lines, sizeof *more);
	if (!more)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for what is left out");
	j->line = more;
	if (!(j->line[j->n_lines] = vn_left_out_line(&k->about)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for what is left out");
	j->n_lines++;
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

static vn_status write_tensor(vn_store *s, const vn_tensor_label *l, vn_dtype dtype, const vn_shape *shape,
                              const void *data, vn_error *err)
{
	vn_status st = vn_store_begin(s, l, dtype, shape, err);

	if (!st && !(st = vn_store_write(s, data, (size_t)vn_shape_count(shape), err)))
		st = vn_store_end(s, err);
	return st;
}

static vn_status write_kept(vn_put_judge *j, vn_store *s, vn_error *err)
{
	vn_status st = VN_OK;

	while (j->first && !st) {
		kept_tensor *k = j->first;
		st = write_tensor(s, &k->label, k->about.dtype, &k->about.shape, k->data, err);
		j->first = k->next;
		free_kept(k);
	}
	j->last = j->first ? j->last : &j->first;
	return st;
}

vn_status vn_put_judge_put(vn_put_judge *j, vn_store *s, const vn_tensor_label *l, vn_dtype dtype,
                           const vn_shape *shape, void *data, vn_error *err)
{
	const vn_tensor t = { .dtype = dtype, .shape = *shape, .data = data };
	vn_left_out     about = { 0 };
	kept_tensor    *k = NULL;
	tensor_opinion  o;
	vn_status       st = leave_out_but(j, l->layer, err);

	if (st || (st = judge_tensor(j, l, &t, &about, &o, err)))
		goto done;
	j->judged += o != NOT_JUDGED;
	if (o == AGREES) {
		if (!(k = calloc(1, sizeof *k))) {
			st = vn_fail(err, VN_ERR_NOMEM, "no memory for %s", l->name);
			goto done;
		}
		*k = (kept_tensor) { .label = *l, .data = data, .about = about };
		*j->last = k;
		j->last = &k->next;
		return VN_OK;
	}
	if (o == DIFFERS && !*j->off)
		snprintf(j->off, sizeof j->off, "%s%.0d%s%s", j->step ? "step." : "", j->step, j->step ? "/" : "", l->name);
	if (o == DIFFERS)
		st = write_kept(j, s, err);
	if (!st)
		st = write_tensor(s, l, dtype, shape, data, err);
done:
	vn_left_out_finish(&about);
	free(data);
	return st;
}

/* ---- steps and the end ------------------------------------------------------------------- */

vn_status vn_put_judge_step(vn_put_judge *j, int number, int64_t position, const int32_t *ids, int64_t n, vn_error *err)
{
	const int32_t  *theirs;
	const int64_t   all = vn_recording_tokens(j->ref, &theirs, NULL);
	const vn_status st = leave_out_but(j, -2, err);

	j->step = number;
	j->same = vn_recording_batch(j->ref) == 0 && position + n <= all &&
	          memcmp(theirs + position, ids, (size_t)n * sizeof *ids) == 0;
	return st;
}

vn_status vn_put_judge_end(vn_put_judge *j, vn_facts *facts, vn_error *err)
{
	vn_facts_set(facts, "against", "%s", vn_recording_path(j->ref));
	if (j->keep_above > 0)
		vn_facts_set(facts, "against_limits", "nmse at most %g", j->keep_above);
	else
		vn_facts_set(facts, "against_limits", "nmse at most 1e-09 (f32), 1e-05 (16 bits)");
	vn_facts_set(facts, "judged", "%" PRId64, j->judged);
	return leave_out_but(j, -2, err);
}

vn_status vn_put_judge_lines(const vn_put_judge *j, vn_store *s, vn_error *err)
{
	return j->n_lines ? vn_store_left_out(s, j->line, j->n_lines, err) : VN_OK;
}

const char *vn_put_judge_first(const vn_put_judge *j)
{
	return j->off;
}
