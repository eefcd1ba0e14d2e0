/* numbers.c: see numbers.h. */
#include "capture/recording/numbers.h"
#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE_BYTES = 16 << 20 };

vn_numbers *vn_numbers_open(vn_recording *r, int entry, vn_error *err)
{
	vn_numbers *s = vn_alloc(1, sizeof *s);
	s->recording = r;
	s->entry = entry;
	s->st = VN_OK;
	s->err = err;
	s->data = NULL;
	s->at = 0;
	s->n = 0;
	return s;
}

void vn_numbers_close(vn_numbers *s)
{
	if (s)
		vn_recording_release(s->recording, s->entry);
	free(s);
}

int64_t vn_numbers_count(const vn_numbers *s)
{
	return vn_shape_count(&vn_recording_entry(s->recording, s->entry)->shape);
}

size_t vn_numbers_left(int64_t n, int64_t at)
{
	return n - at < VN_NUMBERS ? (size_t)(n - at) : VN_NUMBERS;
}

vn_status vn_numbers_raw(vn_numbers *s, int64_t at, size_t n, vn_error *err)
{
	s->at = at;
	s->n = n;
	return vn_recording_read(s->recording, s->entry, at, (int64_t)n, s->raw, err);
}

vn_status vn_numbers_read(vn_numbers *s, int64_t at, size_t n, vn_error *err)
{
	const vn_status st = vn_numbers_raw(s, at, n, err);
	if (!st)
		vn_to_f64(s->x, s->raw, vn_recording_entry(s->recording, s->entry)->dtype, n);
	return st;
}

vn_status vn_numbers_compare(vn_recording *r, int i, vn_recording *s, int k, vn_numbers_differ *d, vn_error *err)
{
	vn_numbers   *a = vn_numbers_open(r, i, err), *b = vn_numbers_open(s, k, err);
	const int64_t n = vn_numbers_count(a);
	vn_status     st = VN_OK;
	*d = (vn_numbers_differ) { .first = -1 };
	for (int64_t at = 0; !st && at < n; at += VN_NUMBERS) {
		const size_t m = vn_numbers_left(n, at);
		if ((st = vn_numbers_read(a, at, m, err)) || (st = vn_numbers_read(b, at, m, err)) ||
		    memcmp(a->x, b->x, m * sizeof *a->x) == 0)
			continue;
		d->bits = true;
		for (size_t j = 0; j < m; j++) {
			const double x = a->x[j], y = b->x[j];
			if (x == y || (isnan(x) && isnan(y)))
				continue;
			const double apart = isfinite(x) && isfinite(y) ? fabs(x - y) : (double)INFINITY;
			d->most = apart > d->most ? apart : d->most;
			d->first = d->count++ ? d->first : at + (int64_t)j;
		}
	}
	vn_numbers_close(a);
	vn_numbers_close(b);
	return st;
}

vn_status vn_numbers_stats(vn_numbers *s, vn_stats *stats, vn_error *err)
{
	const vn_dtype dtype = vn_recording_entry(s->recording, s->entry)->dtype;
	const int64_t  n = vn_numbers_count(s);
	vn_stats_sum   sum = { 0 };
	vn_status      st = VN_OK;

	for (int64_t at = 0; !st && at < n; at += VN_NUMBERS) {
		const size_t m = vn_numbers_left(n, at);
		if (!(st = vn_numbers_raw(s, at, m, err)))
			vn_stats_add(&sum, s->raw, dtype, m);
	}
	*stats = vn_stats_finish(&sum);
	return st;
}

bool vn_numbers_are_few(const vn_numbers *s)
{
	return vn_numbers_count(s) <=
	       WHOLE_BYTES / (int64_t)vn_dtype_size(vn_recording_entry(s->recording, s->entry)->dtype);
}

double vn_numbers_value(vn_numbers *s, int64_t at)
{
	const vn_entry *e = vn_recording_entry(s->recording, s->entry);
	const void     *data;
	double          x;
	if (s->data) {
		vn_to_f64(&x, s->data + (size_t)at * vn_dtype_size(e->dtype), e->dtype, 1);
		return x;
	}
	if (at >= s->at && at - s->at < (int64_t)s->n)
		return s->x[at - s->at];
	if (s->st)
		return NAN;
	if (vn_numbers_are_few(s)) {
		s->st = vn_recording_data(s->recording, s->entry, &data, s->err);
		s->data = data;
	} else {
		const bool on = at == s->at + (int64_t)s->n;
		s->st = vn_numbers_read(s, at, on ? vn_numbers_left(vn_numbers_count(s), at) : 1, s->err);
		s->n = s->st ? 0 : s->n;
	}
	return s->st ? (double)NAN : vn_numbers_value(s, at);
}
