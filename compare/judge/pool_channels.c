/* pool_channels.c: the channels of steps of one token, taken together; see vn_pool_channels.
 *
 * A single token has no channels to speak of, so a step of one would pass whatever becomes of one of them. Its steps are to the
 * channels what the rows of one tensor are: rows of a sample of them, evenly spaced as in channels.c, are put under each other
 * and measured as such a tensor. However many steps there are, so many are read again. What is found is charged to the first
 * step that has its share of it: a single one that is wrong makes a channel wrong for all of them.
 */
#include "compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 32, MOST = 1 << 16 }; /* as in channels.c: steps; numbers of one */

typedef struct member {
	const char *name;
	int         point;
} member;

static int by_name(const void *a, const void *b)
{
	const member *x = a, *y = b;
	const int name = strcmp(x->name, y->name);
	return name ? name : (x->point > y->point) - (x->point < y->point);
}

/* One token's numbers. Of a floor its channels stay unknown: what is over it is judged as few.c says. */
static bool belongs(const vn_comparison *c, const vn_checkpoint *p)
{
	if (p->m.n == 0 || p->m.n > MOST || p->m.worst_nmse_channel >= 0)
		return false;
	const vn_entry *e = vn_recording_entry(c->ref, p->ref);
	const char *axes = vn_entry_axes(e);
	const vn_step *s = vn_recording_step(c->ref, p->step);
	const int token = vn_token_axis(axes, e->shape.rank);
	if (!s || s->rows != 1 || vn_axes_find(axes, "key") >= 0)
		return false;
	return *axes ? token >= 0 && e->shape.dim[token] == 1 : e->shape.rank == 2 && e->shape.dim[0] == 1;
}

static bool alike(const vn_comparison *c, const vn_checkpoint *a, const vn_checkpoint *b)
{
	const vn_entry *x = vn_recording_entry(c->ref, a->ref), *y = vn_recording_entry(c->ref, b->ref);
	return x->dtype == y->dtype && vn_shape_equal(&x->shape, &y->shape)
	    && vn_recording_entry(c->cand, a->cand)->dtype == vn_recording_entry(c->cand, b->cand)->dtype;
}

static vn_status copy(vn_recording *r, int entry, unsigned char *to, size_t bytes, vn_error *err)
{
	vn_tensor t;
	const vn_status st = vn_entry_tensor(r, entry, &t, err);
	if (!st)
		memcpy(to, t.data, bytes);
	vn_recording_release(r, entry);
	return st;
}

/* The first of the rows that has half of its share, or more, of what the channel is off by. */
static int first_off(const vn_tensor t[2], int64_t channel)
{
	const int64_t rows = t[0].shape.dim[0], n = t[0].shape.dim[1];
	double off[SAMPLE], sum = 0.0;

	for (int64_t i = 0; i < rows; i++) {
		double x[2];
		for (int side = 0; side < 2; side++)
			vn_to_f64(&x[side], (const unsigned char *)t[side].data + (size_t)(i * n + channel) * vn_dtype_size(t[side].dtype), t[side].dtype, 1);
		off[i] = isfinite(x[0]) && isfinite(x[1]) ? fabs(x[1] - x[0]) : 0.0;
		sum += off[i] * off[i];
	}
	for (int i = 0; i < rows; i++)
		if (2.0 * (double)rows * off[i] * off[i] >= sum)
			return i;
	return 0;
}

/* in: n checkpoints of one name and form. */
static vn_status pool(vn_comparison *c, const member *in, int n, vn_error *err)
{
	static const vn_metric both[] = { VN_M_WORST_CHANNEL_NMSE, VN_M_WORST_CHANNEL_SCALE };
	vn_checkpoint *first = &c->point[in[0].point];
	const int      rows = n < SAMPLE ? n : SAMPLE;
	const vn_shape shape = { .rank = 2, .dim = { rows, first->m.n } };
	vn_tensor t[2] = { { .dtype = vn_recording_entry(c->ref, first->ref)->dtype, .shape = shape },
			{ .dtype = vn_recording_entry(c->cand, first->cand)->dtype, .shape = shape } };
	unsigned char *data[2] = { NULL };
	int         at[SAMPLE];
	vn_measured m;
	vn_status   st = VN_OK;

	for (int i = 0; i < rows; i++)
		at[i] = in[(int64_t)i * (n - 1) / (rows - 1)].point;
	for (int side = 0; side < 2 && !st; side++) {
		const size_t row = (size_t)first->m.n * vn_dtype_size(t[side].dtype);
		if (!(data[side] = malloc(row * (size_t)rows)))
			st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d steps", first->name, rows);
		for (int i = 0; i < rows && !st; i++) {
			const vn_checkpoint *p = &c->point[at[i]];
			st = copy(side ? c->cand : c->ref, side ? p->cand : p->ref, data[side] + row * (size_t)i, row, err);
		}
		t[side].data = data[side];
	}
	if (!st && !(st = vn_measure(&t[0], &t[1], "token hidden", false, c->options->threads, &m, err)) && m.worst_nmse_channel >= 0) {
		vn_checkpoint *off = &c->point[at[first_off(t, m.worst_nmse_channel)]];
		off->channel_steps = n;
		off->m.worst_nmse_channel = m.worst_nmse_channel;
		off->m.worst_scale_channel = m.worst_scale_channel;
		for (int i = 0; i < 2; i++)
			off->m.value[both[i]] = m.value[both[i]];
	}
	free(data[0]);
	free(data[1]);
	return st;
}

vn_status vn_pool_channels(vn_comparison *c, vn_error *err)
{
	member   *in = malloc(((size_t)c->n_points + 1) * sizeof *in);
	vn_status st = VN_OK;
	int       n = 0;

	if (!in)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d checkpoints", c->n_points);
	for (int i = 0; i < c->n_points; i++)
		if (belongs(c, &c->point[i]))
			in[n++] = (member) { c->point[i].name, i };
	qsort(in, (size_t)n, sizeof *in, by_name);
	for (int from = 0, to; !st && from < n; from = to) {
		for (to = from + 1; to < n && strcmp(in[to].name, in[from].name) == 0 && alike(c, &c->point[in[from].point], &c->point[in[to].point]); to++)
			;
		if (to - from > 1)
			st = pool(c, in + from, to - from, err);
	}
	free(in);
	return st;
}
