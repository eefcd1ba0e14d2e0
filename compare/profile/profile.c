/* profile.c: see profile.h; the words are in profile_words.c. */
#include "compare/profile/profile.h"

#include "libref/plan/point.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 4096 };

typedef struct totals {
	double  rc, d; /* sums of r.c and c - r */
	int64_t finite;
} totals;

static void add_energy(vn_energy *to, const vn_energy *x)
{
	to->error += x->error;
	to->ref += x->ref;
	to->bad += x->bad;
}

static bool same_bad(double r, double c)
{
	return (isnan(r) && isnan(c)) || (isinf(r) && r == c);
}

/* Adds n elements to those of the last axis that they are (last), and to the sum of its row. */
static void add_piece(vn_energy *last, const double *r, const double *c, size_t n, vn_energy *sum, totals *all)
{
	for (size_t i = 0; i < n; i++) {
		const double d = c[i] - r[i];
		if (!isfinite(d)) {
			if (!(isfinite(r[i]) && isfinite(c[i])) && same_bad(r[i], c[i]))
				continue;
			last[i].bad++;
			sum->bad++;
			continue;
		}
		last[i].error += d * d;
		last[i].ref += r[i] * r[i];
		sum->error += d * d;
		sum->ref += r[i] * r[i];
		all->rc += r[i] * c[i];
		all->d += d;
		all->finite++;
	}
}

/* Where one side's numbers are: in memory or in a recording. */
typedef struct number_source {
	const vn_tensor *tensor;
	vn_numbers      *part;
} number_source;

static vn_status read_piece(const number_source *s, int64_t from, size_t n, double *x, vn_error *err)
{
	vn_status st = VN_OK;
	if (s->tensor)
		vn_to_f64(x, (const unsigned char *)s->tensor->data + (size_t)from * vn_dtype_size(s->tensor->dtype),
		          s->tensor->dtype, n);
	else if (!(st = vn_numbers_read(s->part, from, n, err)))
		memcpy(x, s->part->x, n * sizeof *x);
	return st;
}

/* The axes before the last one, as an odometer. */
static vn_status sum_up(vn_profile *p, const number_source *ref, const number_source *cand, totals *all, vn_error *err)
{
	vn_axis_profile *last = &p->axis[p->n_axes - 1];
	const int64_t    rows = p->n / last->n, together = last->n < PIECE ? PIECE / last->n : 1; /* rows read at a time */
	int64_t          at[VN_MAX_RANK] = { 0 };
	double           r[PIECE], c[PIECE];
	vn_status        st;

	for (int64_t row = 0; row < rows; row++) {
		vn_energy sum = { 0 }; /* of the last axis, added to the outer ones at its end */
		for (int64_t i = 0; i < last->n; i += PIECE) {
			const int64_t first = row % together;
			const size_t  n = (size_t)(last->n - i < PIECE ? last->n - i : PIECE);
			const int64_t count = together == 1 ? (int64_t)n
			                                    : (rows - row < together ? rows - row : together) * last->n;
			if (first == 0 && ((st = read_piece(ref, row * last->n + i, (size_t)count, r, err)) ||
			                   (st = read_piece(cand, row * last->n + i, (size_t)count, c, err))))
				return st;
			add_piece(last->at + i, r + first * last->n, c + first * last->n, n, &sum, all);
		}
		add_energy(&p->all, &sum);
		for (int a = p->n_axes - 2; a >= 0; a--)
			add_energy(&p->axis[a].at[at[a]], &sum);
		for (int a = p->n_axes - 2; a >= 0 && ++at[a] == p->axis[a].n; a--)
			at[a] = 0;
	}
	return VN_OK;
}

static void begin_axis(vn_axis_profile *a, int i, const vn_profile_subject *of, int64_t n)
{
	size_t      word;
	const char *axes = vn_axes_word(of->axes, i, &word);
	if (word && word < sizeof a->name)
		snprintf(a->name, sizeof a->name, "%.*s", (int)word, axes);
	else
		snprintf(a->name, sizeof a->name, "axis %d", i);
	a->n = n;
	a->first = strcmp(a->name, "token") == 0 ? of->first_token : 0;
	a->at = vn_alloc_zero((size_t)n, sizeof *a->at);
}

static vn_status profile_axes(const vn_shape *shape, const vn_profile_subject *of, const number_source *ref,
                              const number_source *cand, vn_profile *p, vn_error *err)
{
	totals    all = { 0 };
	vn_status st;

	p->n_axes = shape->rank ? shape->rank : 1;
	p->n = vn_shape_count(shape);
	for (int i = 0; i < p->n_axes; i++)
		begin_axis(&p->axis[i], i, of, shape->rank ? shape->dim[i] : 1);
	if ((st = sum_up(p, ref, cand, &all, err)))
		return st;
	p->factor = p->all.ref > 0 ? all.rc / p->all.ref : 1.0;
	p->offset = all.finite ? all.d / (double)all.finite : 0.0;
	/* (c - f r)^2 = (c-r)^2 - (f-1)^2 r.r for the least-squares factor f;
	 * the mean offset is treated the same way. */
	p->apart = p->all.ref > 0 ? fmax(p->all.error / p->all.ref - (p->factor - 1) * (p->factor - 1), 0.0) : 0.0;
	p->level = p->all.ref > 0 ? fmax(p->all.error - p->offset * all.d, 0.0) / p->all.ref : 0.0;
	vn_profile_say(p);
	return VN_OK;
}

vn_status vn_profile_of(const vn_tensor *ref, const vn_tensor *cand, const vn_profile_subject *of, vn_profile *p,
                        vn_error *err)
{
	*p = (vn_profile) { .noise = of->noise };
	return profile_axes(&ref->shape, of, &(number_source) { .tensor = ref }, &(number_source) { .tensor = cand }, p,
	                    err);
}

vn_status vn_profile_read(vn_numbers *ref, vn_numbers *cand, vn_profile *p, vn_error *err)
{
	const vn_entry          *e = vn_recording_entry(ref->recording, ref->entry);
	const vn_step           *s = vn_recording_step(ref->recording, e->step);
	const vn_profile_subject of = { .axes = vn_entry_axes(e), .first_token = s ? s->first_row : 0 };

	*p = (vn_profile) { 0 };
	return profile_axes(&e->shape, &of, &(number_source) { .part = ref }, &(number_source) { .part = cand }, p, err);
}

void vn_profile_free(vn_profile *p)
{
	for (int i = 0; i < p->n_axes; i++)
		free(p->axis[i].at);
	vn_lines_free(&p->words);
	*p = (vn_profile) { 0 };
}
