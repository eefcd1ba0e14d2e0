/* identities_read.c: see identities_internal.h. */
#include "capture/show/identities_internal.h"

#include "capture/view/view.h"
#include "libref/base/alloc.h"
#include "libref/base/clones.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE = 64, FETCHED_AHEAD = 4096 };

static void drop_parts(vn_identity_walk *w)
{
	for (int i = 0; i < w->n_held; i++)
		vn_recording_release(w->r, w->held[i]);
	vn_recording_forget(w->r);
	w->n_held = 0;
	w->bytes = w->read = 0;
}

void vn_parts_end(vn_identity_walk *w)
{
	drop_parts(w);
	for (int i = 0; i < VN_MOST_INPUTS; i++)
		free(w->part[i]);
}

static int64_t bytes_of(const vn_entry *e)
{
	return vn_shape_count(&e->shape) * (int64_t)vn_dtype_size(e->dtype);
}

static void hold_tensor(vn_identity_walk *w, int entry)
{
	const vn_entry *e = vn_recording_entry(w->r, entry);
	for (int i = 0; i < w->n_held; i++)
		if (w->held[i] == entry)
			return;
	w->held[w->n_held++] = entry;
	w->bytes += bytes_of(e);
}

/* Whether the axes are in the order of the point's, which the identities assume. */
static bool in_order(const vn_entry *e, const char *point)
{
	int      order[VN_MAX_RANK];
	vn_point p;
	if (!*e->axes || !vn_point_from_name(point, &p))
		return true;
	const char *own = vn_point_get(p)->axes;
	return vn_axes_find(e->axes, "token") == vn_axes_find(own, "token") &&
	       !vn_view_order(e->axes, own, e->shape.rank, order);
}

bool vn_parts_load(vn_identity_walk *w, vn_parts *s, int layer, const char *point)
{
	char name[VN_NAME_MAX];
	if (layer < 0)
		snprintf(name, sizeof name, "%s", point);
	else
		snprintf(name, sizeof name, "layer%d.%s", layer, point);
	const int       i = w->st ? -1 : vn_recording_find(w->r, w->step, name);
	const void     *data = NULL;
	const vn_entry *e = i < 0 ? NULL : vn_recording_entry(w->r, i);
	if (!e || vn_shape_count(&e->shape) == 0 || !in_order(e, point))
		return false;
	if ((bytes_of(e) <= VN_WHOLE_BYTES || vn_recording_mapped(w->r, i)) &&
	    (w->st = vn_recording_data(w->r, i, &data, w->err)))
		return false;
	hold_tensor(w, i);
	s->w = w;
	s->e[s->n] = e;
	s->entry[s->n] = i;
	s->data[s->n++] = data;
	return true;
}

void vn_parts_done(vn_identity_walk *w, vn_parts *s)
{
	if (w->bytes > w->most || w->n_held > VN_MOST_HELD - VN_MOST_INPUTS)
		drop_parts(w);
	s->n = 0;
}

/* Reads the parts of a tensor one after the other. */
static const unsigned char *in_part(vn_identity_walk *w, const vn_parts *s, int which, int64_t from, size_t n)
{
	const size_t      size = vn_dtype_size(s->e[which]->dtype);
	const int64_t     all = vn_shape_count(&s->e[which]->shape);
	vn_identity_part *p = w->part[which];
	if (!p)
		p = w->part[which] = vn_alloc_zero(1, sizeof *p);
	if (p->entry != s->entry[which] || from < p->from || from + (int64_t)n > p->from + p->n) {
		p->entry = s->entry[which];
		p->from = from;
		p->n = all - from < VN_IDENTITIES_WINDOW ? all - from : VN_IDENTITIES_WINDOW;
		if ((w->st = vn_recording_read(w->r, p->entry, from, p->n, p->raw, w->err))) {
			p->n = 0;
			return NULL;
		}
	}
	return p->raw + (size_t)(from - p->from) * size;
}

const unsigned char *vn_parts_raw(const vn_parts *s, int which, int64_t from, size_t n)
{
	const size_t size = vn_dtype_size(s->e[which]->dtype);
	if (!s->data[which])
		return in_part(s->w, s, which, from, n);
	/* Each page read from a mapped file counts as memory, and a tensor may be
	 * larger than all of it. */
	if ((s->w->read += (int64_t)(n * size)) > s->w->most) {
		vn_recording_forget(s->w->r);
		s->w->read = 0;
	}
	return s->data[which] + (size_t)from * size;
}

bool vn_parts_same(const vn_parts *s, int a, int b)
{
	const int x = s->e[a]->same_as >= 0 ? s->e[a]->same_as : s->entry[a],
			  y = s->e[b]->same_as >= 0 ? s->e[b]->same_as : s->entry[b];
	return x == y;
}

vn_dtype vn_parts_format(const vn_parts *s, int which)
{
	const vn_dtype is = s->e[which]->dtype;
	return s->w->known && is != VN_I32 ? vn_dtype_coarser(is, s->w->policy.storage) : is;
}

double vn_parts_value(const vn_parts *s, int which, int64_t i)
{
	double x;
	vn_parts_piece(s, which, i, 1, &x);
	return x;
}

void vn_parts_piece(const vn_parts *s, int which, int64_t from, size_t n, double *x)
{
	const unsigned char *raw = vn_parts_raw(s, which, from, n);
	const size_t         size = vn_dtype_size(s->e[which]->dtype);
	/* Prefetches what the next calls will read; nothing after the end of the file. */
	for (size_t at = 0; s->data[which] && at < n * size; at += CACHE_LINE)
		__builtin_prefetch(raw + FETCHED_AHEAD + at, 0, 2);
	if (raw)
		vn_to_f64(x, raw, s->e[which]->dtype, n);
	else
		memset(x, 0, n * sizeof *x);
}

size_t vn_piece_size(int64_t left)
{
	return left < VN_PIECE ? (size_t)left : VN_PIECE;
}

/* ---- loops over every number, written for vectors -------------------------------------------- */

enum { LANES = 8 };

/* Number of x with |x - (a + b)| within unit of the three. */
VN_CLONES
size_t vn_show_count_sums(const double *x, const double *a, const double *b, const double unit[VN_MOST_INPUTS],
                          size_t n)
{
	const double ux = unit[0], ua = unit[1], ub = unit[2];
	int64_t      good = 0;
	for (size_t j = 0; j < n; j++)
		good += fabs(x[j] - (a[j] + b[j])) <= ux * fabs(x[j]) + ua * fabs(a[j]) + ub * fabs(b[j]);
	return (size_t)good;
}

VN_CLONES
size_t vn_show_count_between(const double *x, double low, double high, size_t n)
{
	int64_t good = 0;
	for (size_t j = 0; j < n; j++)
		good += (x[j] >= low) & (x[j] <= high);
	return (size_t)good;
}

static double fold_lanes(const double lane[LANES])
{
	double all = 0;
	for (int k = 0; k < LANES; k++)
		all += lane[k];
	return all;
}

VN_CLONES
double vn_total(const double *x, size_t n)
{
	double lane[LANES] = { 0 };
	size_t j = 0;
	for (; j + LANES <= n; j += LANES)
		for (size_t k = 0; k < LANES; k++)
			lane[k] += x[j + k];
	for (; j < n; j++)
		lane[j % LANES] += x[j];
	return fold_lanes(lane);
}

VN_CLONES
double vn_total_squares(const double *x, size_t n)
{
	double lane[LANES] = { 0 };
	size_t j = 0;
	for (; j + LANES <= n; j += LANES)
		for (size_t k = 0; k < LANES; k++)
			lane[k] += x[j + k] * x[j + k];
	for (; j < n; j++)
		lane[j % LANES] += x[j] * x[j];
	return fold_lanes(lane);
}
