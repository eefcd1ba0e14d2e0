/* profile.c: see profile.h; the words are in profile_words.c. */
#include "compare/profile.h"

#include "libref/plan/point.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 4096 };

/* What a walk along the last axis adds up before the outer axes hear of it. */
typedef struct run {
	double  error, ref;
	int64_t bad;
} run;

typedef struct totals {
	double  rr, rc, d; /* r.r, r.c, sum of c - r */
	int64_t finite;
} totals;

static bool same_bad(double r, double c)
{
	return (isnan(r) && isnan(c)) || (isinf(r) && r == c);
}

static void add_piece(vn_axis_profile *last, int64_t from, const double *r, const double *c, size_t n, run *sum, totals *all)
{
	for (size_t i = 0; i < n; i++) {
		const double d = c[i] - r[i];
		if (!isfinite(d)) {
			if (!(isfinite(r[i]) && isfinite(c[i])) && same_bad(r[i], c[i]))
				continue;
			last->bad[from + (int64_t)i]++;
			sum->bad++;
			continue;
		}
		last->error[from + (int64_t)i] += d * d;
		last->ref[from + (int64_t)i] += r[i] * r[i];
		sum->error += d * d;
		sum->ref += r[i] * r[i];
		all->rc += r[i] * c[i];
		all->d += d;
		all->finite++;
	}
}

/* Axes in front of the last one, as an odometer. */
static void sum_up(vn_profile *p, const vn_tensor *ref, const vn_tensor *cand, totals *all)
{
	vn_axis_profile *last = &p->axis[p->n_axes - 1];
	const unsigned char *data[2] = { ref->data, cand->data };
	const size_t size[2] = { vn_dtype_size(ref->dtype), vn_dtype_size(cand->dtype) };
	int64_t at[VN_MAX_RANK] = { 0 };
	double  r[PIECE], c[PIECE];

	for (int64_t row = 0; row < p->n / last->n; row++) {
		run sum = { 0 };
		for (int64_t i = 0; i < last->n; i += PIECE) {
			const size_t n = (size_t)(last->n - i < PIECE ? last->n - i : PIECE), from = (size_t)(row * last->n + i);
			vn_to_f64(r, data[0] + from * size[0], ref->dtype, n);
			vn_to_f64(c, data[1] + from * size[1], cand->dtype, n);
			add_piece(last, i, r, c, n, &sum, all);
		}
		p->error += sum.error;
		p->ref += sum.ref;
		p->bad += sum.bad;
		for (int a = p->n_axes - 2; a >= 0; a--) {
			p->axis[a].error[at[a]] += sum.error;
			p->axis[a].ref[at[a]] += sum.ref;
			p->axis[a].bad[at[a]] += sum.bad;
		}
		for (int a = p->n_axes - 2; a >= 0 && ++at[a] == p->axis[a].n; a--)
			at[a] = 0;
	}
}

static vn_status axis_of(vn_axis_profile *a, int i, const char *axes, int64_t n, vn_error *err)
{
	size_t word;
	axes = vn_axes_word(axes, i, &word);
	if (word && word < sizeof a->name)
		snprintf(a->name, sizeof a->name, "%.*s", (int)word, axes);
	else
		snprintf(a->name, sizeof a->name, "axis %d", i);
	a->n = n;
	a->error = calloc((size_t)n, sizeof *a->error);
	a->ref = calloc((size_t)n, sizeof *a->ref);
	a->bad = calloc((size_t)n, sizeof *a->bad);
	if (!a->error || !a->ref || !a->bad)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a profile of %" PRId64 " indices", n);
	return VN_OK;
}

vn_status vn_profile_of(const vn_tensor *ref, const vn_tensor *cand, const char *axes, double noise, vn_profile *p, vn_error *err)
{
	totals    all = { 0 };
	vn_status st;

	*p = (vn_profile) { .n_axes = ref->shape.rank ? ref->shape.rank : 1, .n = vn_shape_count(&ref->shape), .noise = noise };
	for (int i = 0; i < p->n_axes; i++)
		if ((st = axis_of(&p->axis[i], i, axes, ref->shape.rank ? ref->shape.dim[i] : 1, err)))
			return st;
	sum_up(p, ref, cand, &all);
	p->factor = p->ref > 0 ? all.rc / p->ref : 1.0;
	p->offset = all.finite ? all.d / (double)all.finite : 0.0;
	/* (c - f r)^2 = (c-r)^2 - (f-1)^2 r.r, for f of least squares; the same for the mean. */
	p->apart = p->ref > 0 ? fmax(p->error / p->ref - (p->factor - 1) * (p->factor - 1), 0.0) : 0.0;
	p->level = p->ref > 0 ? fmax(p->error - p->offset * all.d, 0.0) / p->ref : 0.0;
	return vn_profile_say(p, err);
}

void vn_profile_free(vn_profile *p)
{
	for (int i = 0; i < p->n_axes; i++) {
		free(p->axis[i].error);
		free(p->axis[i].ref);
		free(p->axis[i].bad);
	}
	vn_lines_free(&p->words);
	*p = (vn_profile) { 0 };
}
