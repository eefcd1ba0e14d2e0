/* heads.c: see heads.h. */
#include "compare/explain/heads.h"

#include "libref/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The axis of heads. Returns false if there is none, one head only, or too many heads. */
static bool heads_of(const vn_explain_trial *t, vn_head_part *part)
{
	const vn_shape *s = &t->site->cand.shape;
	const char     *axes = t->site->axes;
	int             axis = vn_axes_find(axes, "head");

	axis = axis < 0 ? vn_axes_find(axes, "kv_head") : axis;
	if (axis < 0 || axis >= s->rank || s->dim[axis] < 2 || s->dim[axis] > VN_HEADS_MOST)
		return false;
	part->heads = (int)s->dim[axis];
	part->outer = part->inner = 1;
	for (int i = 0; i < s->rank; i++)
		if (i != axis)
			*(i < axis ? &part->outer : &part->inner) *= s->dim[i];
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

/* Adds up for head h the squared errors of the candidate and of the more precise numbers, and
 * the squares of the expected numbers. */
static void add_squares(const vn_explain_trial *t, const vn_head_part *part, int h, double *x, double *dd, double *ff,
                        double *rr)
{
	const vn_tensor *of[3] = { &t->own, &t->fine, &t->site->cand };
	const size_t     n = (size_t)part->inner;

	*dd = *ff = *rr = 0;
	for (int64_t o = 0; o < part->outer; o++) {
		for (int i = 0; i < 3; i++)
			vn_to_f64(x + (size_t)i * n,
			          (const char *)of[i]->data + (size_t)(o * part->heads + h) * n * vn_dtype_size(of[i]->dtype),
			          of[i]->dtype, n);
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

vn_status vn_head_part_find(const vn_explain_trial *t, vn_head_part *part, bool *some, vn_error *err)
{
	int n = 0;

	*part = (vn_head_part) { 0 };
	*some = false;
	if (!heads_of(t, part))
		return VN_OK;
	double *x = malloc((size_t)(3 * part->inner) * sizeof *x + 1);
	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a head");
	for (int h = 0; h < part->heads; h++) {
		double dd, ff, rr;
		add_squares(t, part, h, x, &dd, &ff, &rr);
		part->in[h] = dd > BEYOND * fmax(ff, t->x->unmodified.local.floor * rr);
		n += part->in[h];
	}
	free(x);
	*some = n > 0 && n < part->heads;
	return VN_OK;
}

bool vn_head_part_of(const vn_explain_trial *t, const vn_hypothesis *h, vn_head_part *part)
{
	*part = (vn_head_part) { 0 };
	if (!h->heads || !heads_of(t, part))
		return false;
	memcpy(part->in, h->part, sizeof part->in);
	return true;
}
