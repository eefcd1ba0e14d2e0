/* explain_part.c: some heads alone came out otherwise: a mistake that the others are spared. Every hypothesis is
 * made as ever, and heads that came out right are put back to what they should be. */
#include "compare/explain/explain_inside.h"

#include "libref/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The axis of heads; false: there is none, or one head, or too many. */
static bool heads_of(const vn_trial *t, vn_part *part)
{
	const vn_shape *s = &vn_probe_candidate(t->probe)->shape;
	const char     *axes = vn_probe_axes(t->probe);
	int             axis = vn_axes_find(axes, "head");

	axis = axis < 0 ? vn_axes_find(axes, "kv_head") : axis;
	if (axis < 0 || axis >= s->rank || s->dim[axis] < 2 || s->dim[axis] > VN_PART_HEADS)
		return false;
	part->heads = (int)s->dim[axis];
	part->outer = part->inner = 1;
	for (int i = 0; i < s->rank; i++)
		if (i != axis)
			*(i < axis ? &part->outer : &part->inner) *= s->dim[i];
	return true;
}

void vn_part_splice(const vn_part *part, const vn_tensor *z, const vn_tensor *sound)
{
	const size_t block = (size_t)part->inner * vn_dtype_size(z->dtype);

	for (int64_t o = 0; o < part->outer; o++)
		for (int h = 0; h < part->heads; h++) {
			const size_t at = (size_t)(o * part->heads + h) * block;
			if (!part->in[h])
				memcpy((char *)(uintptr_t)z->data + at, (const char *)sound->data + at, block);
		}
}

/* "in heads 1, 4-7 of 8 alone" */
static void say(vn_part *part)
{
	char which[40] = "";
	int  n = 0;

	for (int h = 0; h < part->heads; h++) {
		int last = h;
		n += part->in[h];
		if (!part->in[h] || (h && part->in[h - 1]))
			continue;
		while (last + 1 < part->heads && part->in[last + 1])
			last++;
		vn_text_add(which, sizeof which, last > h ? "%s%d-%d" : "%s%d", *which ? ", " : "", h, last);
	}
	if (strlen(which) >= sizeof which - 1)
		snprintf(part->words, sizeof part->words, "in %d of %d heads alone", n, part->heads);
	else
		snprintf(part->words, sizeof part->words, "in head%s %s of %d alone", n > 1 ? "s" : "", which, part->heads);
}

/* ---- which heads ------------------------------------------------------------------------------------ */

#define BEYOND 16.0 /* floors of a head, from which it came out otherwise */

/* Of head h: of the candidate and of more precise numbers the squares of what they are otherwise, and those of what it should be. */
static void squares(const vn_part *part, const vn_tensor *c, int h, double *x, double *dd, double *ff, double *rr)
{
	const vn_tensor *of[3] = { part->own, part->fine, c };
	const size_t     n = (size_t)part->inner;

	*dd = *ff = *rr = 0;
	for (int64_t o = 0; o < part->outer; o++) {
		for (int i = 0; i < 3; i++)
			vn_to_f64(x + (size_t)i * n, (const char *)of[i]->data + (size_t)(o * part->heads + h) * n * vn_dtype_size(of[i]->dtype), of[i]->dtype, n);
		for (size_t i = 0; i < n; i++) {
			const double r = x[i], f = x[n + i] - r, d = x[2 * n + i] - r;
			if (isfinite(r) && isfinite(f)) {
				*dd += isfinite(d) ? d * d : 1 + r * r;
				*ff += f * f;
				*rr += r * r;
			}
		}
	}
}

/* Some of them, not all. */
static vn_status find(const vn_trial *t, vn_part *part, bool *some, vn_error *err)
{
	double *x = malloc((size_t)(3 * part->inner) * sizeof *x + 1);
	int     n = 0;

	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a head");
	for (int h = 0; h < part->heads; h++) {
		double dd, ff, rr;
		squares(part, vn_probe_candidate(t->probe), h, x, &dd, &ff, &rr);
		part->in[h] = dd > BEYOND * fmax(ff, t->x->sound.local.floor * rr);
		n += part->in[h];
	}
	free(x);
	*some = n > 0 && n < part->heads;
	say(part);
	return VN_OK;
}

vn_status vn_try_part(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err)
{
	const int tried = t->x->n_tried;
	vn_part   part = { .own = own, .fine = fine };
	bool      some = false;
	vn_status st;

	if (t->whole || !heads_of(t, &part))
		return VN_OK;
	if ((st = find(t, &part, &some, err)) || !some)
		return st;
	t->part = &part;
	st = vn_try_catalogue(t, NULL, err);
	if (!st && !vn_trial_answered(t))
		st = vn_fit_nodes(t, err);
	t->part = NULL;
	t->x->n_tried = tried;
	vn_conclude(t);
	return st;
}

bool vn_part_of(const vn_trial *t, const vn_hypothesis *h, const vn_tensor *own, const vn_tensor *fine, vn_part *part)
{
	*part = (vn_part) { .own = own, .fine = fine };
	if (!*h->in_part || !heads_of(t, part))
		return false;
	memcpy(part->in, h->part, sizeof part->in);
	say(part);
	return true;
}
