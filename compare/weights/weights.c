/* weights.c: see weights.h. */
#include "compare/weights/weights_internal.h"
#include "compare/weights/weights.h"

#include "compare/metrics/team.h"

#include "libref/base/alloc.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where the numbers are ------------------------------------------------------------- */

vn_tensor *vn_weights_numbers(const vn_weight_row *row, int n, const vn_model *m, int threads)
{
	const int      own = vn_model_plan(m)->n_weights;
	vn_weight_row *rows = vn_alloc_zero((size_t)own, sizeof *rows);
	vn_tensor     *t = vn_alloc_zero((size_t)n, sizeof *t);
	bool           any = false;

	for (int i = 1; i < n; i++)
		assert(strcmp(row[i - 1].name, row[i].name) <= 0); /* vn_weight_twin searches by halves */
	vn_model_digests(m, threads, rows);
	for (int i = 0; i < own; i++) {
		const vn_weight_row *r = vn_weight_twin(row, n, rows[i].name);
		if (!r || r->dtype != rows[i].dtype || strcmp(r->digest.hex, rows[i].digest.hex) != 0 ||
		    !vn_shape_equal(&r->shape, &rows[i].shape))
			continue;
		vn_model_need(m, i);
		t[r - row] = vn_model_weights(m)[i];
		any = true;
	}
	free(rows);
	if (any)
		return t;
	free(t);
	return NULL;
}

/* ---- one by one ------------------------------------------------------------------------ */

static const vn_tensor *numbers_of(const vn_weight_side *s, const vn_weight_row *r)
{
	const vn_tensor *t = s->numbers && r ? &s->numbers[r - s->row] : NULL;
	return t && t->data ? t : NULL;
}

/* Judges one weight; fills *found if it differs. */
static vn_weight_fate look_at(const vn_weight_side *ref, const vn_weight_side *cand, const vn_weight_row *a,
                              const vn_weight_row *b, vn_weight_difference *found)
{
	vn_weight_difference d = { .row = { a, b }, .words = "" };
	vn_weight_trial      t = { .side = { ref, cand },
		                       .row = { a, b },
		                       .numbers = { numbers_of(ref, a), numbers_of(cand, b) } };
	vn_weight_fate       fate;

	t.name = vn_weight_name_of(a ? ref : cand, a ? a->name : b->name);
	t.heads = vn_weight_heads_of(ref->plan ? ref->plan : cand->plan, t.name.layer);
	if (a && b && (fate = vn_weight_same_numbers(&t)) != VN_WEIGHT_DIFFERS)
		return fate;
	d.layer = t.name.layer;
	d.part = t.name.tail;
	bool same = false, fused = (!a || !b) && vn_weight_fused(&t, &d, &same);
	if (same)
		return VN_WEIGHT_SAME;
	if (!fused && !vn_weight_by_table(&t, &d) && !vn_weight_by_digest(&t, &d) && !vn_weight_by_numbers(&t, &d))
		vn_weight_by_statistics(&t, &d);
	*found = d;
	return VN_WEIGHT_DIFFERS;
}

typedef struct looked {
	const vn_weight_side *ref, *cand;
	vn_weight_difference *d;
	vn_weight_fate       *f;
} looked;

static void look_at_row(void *ctx, int i)
{
	const looked         *l = ctx;
	const vn_weight_side *ref = l->ref, *cand = l->cand, *other = i < ref->n ? cand : ref;
	const vn_weight_row  *own = i < ref->n ? &ref->row[i] : &cand->row[i - ref->n];
	const vn_weight_row  *twin = vn_weight_twin(other->row, other->n, own->name);

	if (i < ref->n)
		l->f[i] = look_at(ref, cand, own, twin, &l->d[i]);
	else if (!twin)
		l->f[i] = look_at(ref, cand, NULL, own, &l->d[i]);
}

static void group_rows(vn_weights *w, const vn_weight_side *ref, const vn_weight_side *cand)
{
	VN_FREED vn_weight_name *names = vn_alloc((size_t)ref->n + (size_t)cand->n, sizeof *names);
	int                      n = 0;

	for (int i = 0; i < ref->n; i++)
		names[n++] = vn_weight_name_of(ref, ref->row[i].name);
	for (int i = 0; i < cand->n; i++)
		if (!vn_weight_twin(ref->row, ref->n, cand->row[i].name))
			names[n++] = vn_weight_name_of(cand, cand->row[i].name);
	vn_weights_group(w, names, n);
}

vn_weights *vn_weights_compare(const vn_weight_side *ref, const vn_weight_side *cand, int threads)
{
	const size_t    most = (size_t)ref->n + (size_t)cand->n;
	vn_weights     *w = vn_alloc_zero(1, sizeof *w);
	vn_weight_fate *f = vn_alloc_zero(most, sizeof *f);

	w->found = vn_alloc_zero(most, sizeof *w->found);
	w->n[0] = ref->n;
	w->n[1] = cand->n;
	w->copied = ref->copied || cand->copied;
	vn_team_each(threads, ref->n + cand->n, look_at_row, &(looked) { ref, cand, w->found, f });
	for (int i = 0; i < ref->n + cand->n; i++) {
		w->rounded += f[i] == VN_WEIGHT_ROUNDED || f[i] == VN_WEIGHT_ALIKE;
		w->alike += f[i] == VN_WEIGHT_ALIKE;
		w->same += f[i] == VN_WEIGHT_SAME && i < ref->n;
		w->extra += f[i] == VN_WEIGHT_DIFFERS && i >= ref->n;
		if (f[i] == VN_WEIGHT_DIFFERS)
			w->found[w->n_found++] = w->found[i];
	}
	free(f);
	if (w->n_found)
		group_rows(w, ref, cand);
	return w;
}

void vn_weights_free(vn_weights *w)
{
	if (!w)
		return;
	for (int i = 0; i < w->n_lines; i++)
		free(w->line[i].which);
	VN_FREE(w->line, w->found, w);
}

/* ---- in words -------------------------------------------------------------------------- */

/* Adds ", 5.1 to 6.9 % apart" for all differences in a line. */
static void say_measure(const vn_weight_difference *d, int n, char text[80])
{
	static const char *const says[VN_N_WEIGHT_MEASURES] = {
		[VN_WEIGHT_APART] = ", %s %% apart",
		[VN_WEIGHT_CORRELATION] = ", correlation %s",
		[VN_WEIGHT_RMS] = ", rms %s times",
		[VN_WEIGHT_PLACES] = ", in %s places",
	};
	const bool percent = d->measured == VN_WEIGHT_APART, count = d->measured == VN_WEIGHT_PLACES;
	double     low = d->measure, high = d->measure;
	char       range[56], from[24], to[24];

	*text = 0;
	if (!d->measured)
		return;
	for (int i = 1; i < n; i++) {
		low = fmin(low, d[i].measure);
		high = fmax(high, d[i].measure);
	}
	if (d->measured == VN_WEIGHT_RMS && isinf(high)) {
		snprintf(text, 80, ", zeros in the other");
		return;
	}
	const double unit = percent ? 100.0 : 1.0;
	snprintf(from, sizeof from, count || (percent && unit * low >= 99.5) ? "%.0f" : "%.2g", unit * low);
	snprintf(to, sizeof to, count || (percent && unit * high >= 99.5) ? "%.0f" : "%.2g", unit * high);
	snprintf(range, sizeof range, strcmp(from, to) == 0 ? "%s" : "%s to %s", from, to);
	snprintf(text, 80, says[d->measured], range);
}

char *vn_weight_line_says(const vn_weights *w, const vn_weight_line *l, char text[VN_WEIGHT_SAYS])
{
	const vn_weight_difference *d = &w->found[l->first];
	char                        measure[80];

	say_measure(d, l->n, measure);
	snprintf(text, VN_WEIGHT_SAYS, *d->id ? "%s (%s)%s" : "%s%s%s", d->words, d->id, measure);
	return text;
}

const char *vn_weight_line_proof(const vn_weights *w, const vn_weight_line *l)
{
	static const char *const words[][2] = {
		[VN_PROOF_STATISTICS] = { "likely, by statistics", "certain, by statistics" },
		[VN_PROOF_NUMBERS] = { "likely, by the numbers", "certain, by the numbers" },
		[VN_PROOF_TABLE] = { "likely, by the table", "certain, by the table" },
		[VN_PROOF_DIGEST] = { "likely, by digest", "certain, by digest" },
	};
	return words[w->found[l->first].proof][w->found[l->first].certain];
}

char *vn_weights_summary(const vn_weights *w, char text[VN_WEIGHT_WORDS])
{
	const int both = w->same + w->rounded;

	if (w->n_found)
		snprintf(text, VN_WEIGHT_WORDS, "%d of %d differ", w->n_found, both + w->n_found);
	else if (w->copied)
		snprintf(text, VN_WEIGHT_WORDS, "%d, copied from a model by import: nobody measured those of the run", both);
	else if (w->alike)
		snprintf(
			text, VN_WEIGHT_WORDS,
			"%d, equal within rounding (%d of them in another format, %d as far as statistics show: their numbers are "
			"not at hand)",
			both, w->rounded, w->alike);
	else if (w->rounded)
		snprintf(text, VN_WEIGHT_WORDS, "%d, equal within rounding (%d of them in another format)", both, w->rounded);
	else
		snprintf(text, VN_WEIGHT_WORDS, "%d, all equal", both);
	return text;
}
