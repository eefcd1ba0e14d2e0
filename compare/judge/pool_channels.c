/* pool_channels.c: see pool_channels.h. */
#include "compare/comparison/checkpoint.h"
#include "compare/judge/count.h"
#include "compare/judge/pool_channels.h"
#include "compare/metrics/average.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDEST = 1 << 16 }; /* most channels, as in channels.c */

/* A step is wrong as a whole when its squared error is this many times the median step's. */
#define AS_A_WHOLE 100.0

const vn_metric vn_channel_metrics[VN_CHANNEL_METRICS] = { VN_M_WORST_CHANNEL_NMSE, VN_M_WORST_CHANNEL_SCALE };

int vn_channel_metric(vn_metric m)
{
	for (int i = 0; i < VN_CHANNEL_METRICS; i++)
		if (vn_channel_metrics[i] == m)
			return i;
	return -1;
}

int vn_channel_steps(const vn_checkpoints *all, const vn_pools *pools, const vn_checkpoint *p, vn_metric m)
{
	const int i = vn_channel_metric(m);
	if (i < 0 || p->channels < 0)
		return 0;
	const vn_channel_pool *g = &pools->channel_pool[p->channels];
	return g->charged[i] == p - all->of ? g->steps : 0;
}

/* ---- which belong together -------------------------------------------------------------- */

typedef struct channel_point {
	const char *name;
	int         point;
	int64_t     outer, rows, inner;
} channel_point;

VN_ORDER_BY(compare_members, channel_point, x->name == y->name ? 0 : strcmp(x->name, y->name),
            (x->rows == 1) - (y->rows == 1), VN_ORDER(x->point, y->point))

/* Whether a checkpoint holds rows of tokens that are too few to have channels of their own. */
static bool belongs_to_pool(const vn_opened *o, const vn_checkpoints *all, int point, channel_point *m)
{
	const vn_checkpoint *p = &all->of[point];
	if (p->m.n == 0 || p->m.worst_nmse_channel >= 0)
		return false;
	const vn_entry *e = vn_recording_entry(o->ref, p->ref);
	const char     *axes = vn_entry_axes(e);
	const int       token = vn_token_axis(axes, e->shape.rank);
	*m = (channel_point) { p->name, point, 1, 1, 1 };
	for (int i = 0; i < e->shape.rank; i++)
		*(i < token ? &m->outer : i == token ? &m->rows : &m->inner) *= e->shape.dim[i];
	return token >= 0 && (*axes ? vn_axes_find(axes, "key") < 0 : e->shape.rank == 2) && m->outer * m->inner <= WIDEST;
}

/* Engines compute calls of one token and of several differently, so the two are pooled apart: an
 * error in one kind would be diluted by the other. */
static bool are_alike(const vn_opened *o, const vn_checkpoints *all, const channel_point *x, const channel_point *y)
{
	const vn_checkpoint *a = &all->of[x->point], *b = &all->of[y->point];
	return x->outer == y->outer && x->inner == y->inner && (x->rows == 1) == (y->rows == 1) &&
	       strcmp(x->name, y->name) == 0 &&
	       vn_recording_entry(o->ref, a->ref)->dtype == vn_recording_entry(o->ref, b->ref)->dtype &&
	       vn_recording_entry(o->cand, a->cand)->dtype == vn_recording_entry(o->cand, b->cand)->dtype;
}

/* ---- rows -------------------------------------------------------------------------------- */

void vn_channel_row_copy(const vn_channel_pool *g, const vn_tensor *t, int64_t row, unsigned char *to)
{
	const size_t  run = (size_t)g->inner * vn_dtype_size(t->dtype);
	const int64_t rows = vn_shape_count(&t->shape) / (g->outer * g->inner);
	for (int64_t o = 0; o < g->outer; o++)
		memcpy(to + (size_t)o * run, (const unsigned char *)t->data + (size_t)(o * rows + row) * run, run);
}

vn_status vn_channel_rows(const vn_checkpoints *points, const vn_channel_source *from, const vn_channel_pool *g,
                          vn_tensor *t, unsigned char **data, vn_error *err)
{
	const int first = from->entry(from->o, &points->of[g->row[0].point]);
	vn_status st = VN_OK;

	*data = NULL;
	if (first < 0)
		return VN_OK;
	*t = (vn_tensor) { .dtype = vn_recording_entry(from->r, first)->dtype,
		               .shape = { .rank = 2, .dim = { g->rows, g->outer * g->inner } } };
	const size_t row = (size_t)t->shape.dim[1] * vn_dtype_size(t->dtype);
	bool         all = true;
	*data = vn_alloc((size_t)g->rows, row);
	for (int i = 0; i < g->rows && all && !st; i++) {
		const int e = from->entry(from->o, &points->of[g->row[i].point]);
		vn_tensor of;
		if (!(all = e >= 0 && vn_recording_entry(from->r, e)->dtype == t->dtype))
			break;
		if (!(st = vn_entry_tensor(from->r, e, &of, err)))
			vn_channel_row_copy(g, &of, g->row[i].row, *data + row * (size_t)i);
		vn_recording_release(from->r, e);
		vn_opened_was_read(from->o, &points->of[g->row[i].point]);
	}
	if (st || !all) {
		free(*data);
		*data = NULL;
	}
	t->data = *data;
	return st;
}

static int entry_of_ref(const vn_opened *o, const vn_checkpoint *p)
{
	(void)o;
	return p->ref;
}

static int entry_of_cand(const vn_opened *o, const vn_checkpoint *p)
{
	(void)o;
	return p->cand;
}

vn_status vn_channel_rows_of_ref(const vn_opened *o, const vn_checkpoints *all, const vn_channel_pool *g, vn_tensor *t,
                                 unsigned char **data, vn_error *err)
{
	return vn_channel_rows(all, &(vn_channel_source) { o, o->ref, entry_of_ref }, g, t, data, err);
}

/* ---- which step it starts at ----------------------------------------------------------------- */

/* Members of a pool, or some of them. */
typedef struct members {
	const channel_point *of;
	int                  n;
} members;

/* One channel over the sampled rows. */
typedef struct channel {
	int64_t at;
	double  rr, dd; /* mean squares */
} channel;

/* The reference's number and the candidate's; false: not finite. */
static bool values_at(const vn_tensor t[2], int64_t at, double x[2])
{
	for (int side = 0; side < 2; side++)
		vn_to_f64(&x[side], (const unsigned char *)t[side].data + (size_t)at * vn_dtype_size(t[side].dtype),
		          t[side].dtype, 1);
	return isfinite(x[0]) && isfinite(x[1]);
}

/* The squares of the reference's number and of the difference.
 * Returns false if one is not finite. */
static bool pair_at(const vn_tensor t[2], int64_t at, double *rr, double *dd)
{
	double     x[2];
	const bool finite = values_at(t, at, x);
	*rr = x[0] * x[0];
	*dd = (x[1] - x[0]) * (x[1] - x[0]);
	return finite;
}

static channel channel_of(const vn_tensor t[2], int64_t at)
{
	channel k = { .at = at };
	int     n = 0;
	for (int64_t i = 0; i < t[0].shape.dim[0]; i++) {
		double rr, dd;
		if (!pair_at(t, i * t[0].shape.dim[1] + at, &rr, &dd))
			continue;
		k.rr += rr;
		k.dd += dd;
		n++;
	}
	k.rr /= n ? n : 1;
	k.dd /= n ? n : 1;
	return k;
}

/* Is the error in all rows of a part, not in a single one? Either no single row has most of the
 * error, or the other rows are off by at least half as much, in size and in the same direction.
 * (The error of a factor is largest where the number is largest: one of 8 normal numbers has half
 * of all squares in one case of five.) */
static bool goes_on(const vn_tensor t[2], int64_t at)
{
	double rr = 0, rd = 0, dd = 0, row[3] = { 0, 0, 0 }; /* sums; those of the row with the largest error */
	for (int64_t i = 0; i < t[0].shape.dim[0]; i++) {
		double x[2];
		if (!values_at(t, i * t[0].shape.dim[1] + at, x))
			return false;
		const double d = x[1] - x[0];
		rr += x[0] * x[0];
		rd += x[0] * d;
		dd += d * d;
		if (d * d > row[2])
			memcpy(row, (double[3]) { x[0] * x[0], x[0] * d, d * d }, sizeof row);
	}
	const double r = rr - row[0];
	if (row[2] <= dd / 2)
		return true;
	return r > 0 && (dd - row[2]) / r >= dd / rr / 2 && (rd - row[1]) / r * rd >= rd * rd / rr / 2;
}

/* Is this step's number of the channel off? Its squared error must be at least a quarter of the
 * channel's mean; or, where the number is small, a 64th of it, if its relative error is at least
 * half the channel's and it is four times as far off as all other numbers of the step. */
static bool is_off(const channel *k, const vn_checkpoint *p, double rr, double dd)
{
	const double n = (double)p->m.finite, each = p->m.value[VN_M_RMSE] * p->m.value[VN_M_RMSE],
				 size = p->m.ref_rms * p->m.ref_rms;
	const double others = n > 1 ? fmax(n * each - dd, 0) / (n - 1) * fmax(size > 0 ? k->rr / size : 1, 1) : 0;
	return dd >= k->dd / 4 || (dd >= k->dd / 64 && dd * k->rr >= k->dd * rr / 4 && dd >= 16 * others);
}

/* in: (n). *first: the first member with this error; unchanged if there is none. */
static vn_status find_first(const vn_opened *o, const vn_checkpoints *all, members in, const channel *k, int *first,
                            vn_error *err)
{
	vn_status st = VN_OK;
	bool      found = false;
	for (int i = 0; i < in.n && !found && !st; i++) {
		const vn_checkpoint *p = &all->of[in.of[i].point];
		vn_tensor            t[2];
		if (!(st = vn_entry_tensor(o->ref, p->ref, &t[0], err)) &&
		    !(st = vn_entry_tensor(o->cand, p->cand, &t[1], err)))
			for (int64_t row = 0; row < in.of[i].rows && !found; row++) {
				double        rr, dd;
				const int64_t outer = k->at / in.of[i].inner, inner = k->at % in.of[i].inner;
				found = pair_at(t, (outer * in.of[i].rows + row) * in.of[i].inner + inner, &rr, &dd) &&
				        is_off(k, p, rr, dd);
			}
		vn_recording_release(o->ref, p->ref);
		vn_recording_release(o->cand, p->cand);
		vn_opened_was_read(o, p);
		if (found)
			*first = in.of[i].point;
	}
	return st;
}

/* ---- a pool ---------------------------------------------------------------------------------- */

static void choose_rows(members in, vn_channel_pool *g)
{
	int64_t all = 0, before = 0;
	for (int i = 0; i < in.n; i++)
		all += in.of[i].rows;
	g->rows = (int)(all < VN_CHANNEL_ROWS ? all : VN_CHANNEL_ROWS);
	for (int i = 0, at = 0; i < g->rows; i++) {
		const int64_t row = vn_channel_row(i, g->rows, all);
		while (row >= before + in.of[at].rows)
			before += in.of[at++].rows;
		g->row[i] = (vn_pooled_row) { in.of[at].point, row - before };
	}
}

/* An error in only a part of the steps is smaller in all of them together. So parts are also
 * measured by themselves. A part counts if it shows this many times the error that all steps
 * together show. */
#define OF_A_PART 1.5
enum { PARTS = 4 };

/* Has the pool enough different tokens? If one token or phrase is repeated, its rows are nearly
 * alike, and so are their roundings: these look like an error in all rows, but are not a fault. */
static bool are_different(const vn_opened *o, const vn_checkpoints *points, const vn_channel_pool *g)
{
	const int32_t *all;
	const int64_t  n = vn_recording_tokens(o->ref, &all, NULL);
	int32_t        id[VN_CHANNEL_ROWS];
	int            known = 0;
	for (int i = 0; i < g->rows; i++) {
		const vn_step *s = vn_recording_step(o->ref, points->of[g->row[i].point].step);
		const int64_t  at = s ? s->position + s->first_row + g->row[i].row : -1;
		if (at >= 0 && at < n && all[at] >= 0)
			id[known++] = all[at];
	}
	return vn_judge_count_ids(id, known) == VN_CHANNEL_FEWEST;
}

/* Measures `in` of the pooled checkpoints as one, and finds the first of all of them with the same
 * error. *g: unchanged if they have no channels together. */
static vn_status measure_part(const vn_opened *o, const vn_checkpoints *all, members whole, members in,
                              vn_channel_pool *g, vn_error *err)
{
	vn_channel_pool         part = { .outer = in.of[0].outer,
		                             .inner = in.of[0].inner,
		                             .steps = in.n,
		                             .wider = -1,
		                             .floor = { (double)NAN, (double)NAN } };
	VN_FREED unsigned char *own = NULL, *other = NULL;
	vn_tensor               t[2];
	vn_measured             m;
	vn_status               st;

	choose_rows(in, &part);
	if (part.rows < VN_CHANNEL_FEWEST || (in.n < whole.n && !are_different(o, all, &part)))
		return VN_OK;
	if ((st = vn_channel_rows_of_ref(o, all, &part, &t[0], &own, err)) ||
	    (st = vn_channel_rows(all, &(vn_channel_source) { o, o->cand, entry_of_cand }, &part, &t[1], &other, err)) ||
	    (st = vn_measure(&t[0], &t[1], "token hidden", o->request.options->threads, &m, err)) ||
	    m.worst_nmse_channel < 0)
		return st;
	part.channel[0] = m.worst_nmse_channel;
	part.channel[1] = m.worst_scale_channel;
	for (int i = 0; i < VN_CHANNEL_METRICS && !st; i++) {
		const channel k = channel_of(t, part.channel[i]);
		part.value[i] = in.n == whole.n || goes_on(t, part.channel[i]) ? m.value[vn_channel_metrics[i]] : 0;
		part.charged[i] = in.of[0].point;
		st = find_first(o, all, whole, &k, &part.charged[i], err);
	}
	if (!st)
		*g = part;
	return st;
}

/* Judges the part's rows instead of all rows, in each metric that shows more there. */
static void take_part(vn_channel_pool *g, const vn_channel_pool *part)
{
	const vn_channel_pool all = *g;

	*g = *part;
	for (int i = 0; i < VN_CHANNEL_METRICS; i++)
		if (!(part->value[i] > all.value[i])) {
			g->value[i] = all.value[i];
			g->channel[i] = all.channel[i];
			g->charged[i] = all.charged[i];
		}
}

static bool shows_more(const vn_channel_pool *part, const vn_channel_pool *g)
{
	for (int i = 0; i < VN_CHANNEL_METRICS; i++)
		if (part->value[i] > OF_A_PART * g->value[i])
			return true;
	return false;
}

static vn_status measure_parts(const vn_opened *o, const vn_checkpoints *points, members in, vn_channel_pool *g,
                               vn_error *err)
{
	const int             parts = in.n / VN_CHANNEL_FEWEST < PARTS ? in.n / VN_CHANNEL_FEWEST : PARTS;
	const vn_channel_pool all = *g;
	vn_status             st = VN_OK;

	for (int i = 0; i < parts && parts > 1 && !st; i++) {
		const int       from = (int)((int64_t)in.n * i / parts), to = (int)((int64_t)in.n * (i + 1) / parts);
		vn_channel_pool part = { .rows = 0 };
		if (!(st = measure_part(o, points, in, (members) { in.of + from, to - from }, &part, err)) && part.rows &&
		    shows_more(&part, &all) && shows_more(&part, g))
			take_part(g, &part);
	}
	return st;
}

/* Measures the checkpoints `in`, more than one, of one name and form, as one. *made: the pool's
 * number; unchanged if they have no channels together. */
static vn_status pool_members(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, members in, int *made,
                              vn_error *err)
{
	vn_channel_pool g = { .rows = 0 };
	vn_status       st = measure_part(o, all, in, in, &g, err);

	if (st || !g.rows || (st = measure_parts(o, all, in, &g, err)))
		return st;
	pools->channel_pool = vn_alloc_resized(pools->channel_pool, (size_t)pools->n_channel_pools + 1, sizeof g);
	for (int i = 0; i < in.n; i++)
		all->of[in.of[i].point].channels = pools->n_channel_pools;
	*made = pools->n_channel_pools;
	pools->channel_pool[pools->n_channel_pools++] = g;
	return VN_OK;
}

/* Moves the members that are not wrong as a whole to the front, in order. Returns their number. */
static int set_apart(const vn_checkpoints *all, channel_point *in, int n, channel_point *rest, double *size)
{
	int kept = 0;
	for (int i = 0; i < n; i++)
		size[i] = all->of[in[i].point].m.value[VN_M_NMSE];
	qsort(size, (size_t)n, sizeof *size, vn_ascending);
	const double most = AS_A_WHOLE * size[vn_quantile_index(n, 0.5)];
	for (int i = 0; i < n; i++)
		if (all->of[in[i].point].m.value[VN_M_NMSE] <= most)
			rest[kept++] = in[i];
	return kept;
}

static bool has_member(const channel_point *in, int n, int point)
{
	for (int i = 0; i < n; i++)
		if (in[i].point == point)
			return true;
	return false;
}

/* Pools all steps of a name. When a step that is wrong as a whole is charged, also pools the
 * remaining steps, so that another step is charged only for its own errors. */
static vn_status pool_twice(const vn_opened *o, vn_checkpoints *points, vn_pools *pools, channel_point *in, int n,
                            vn_error *err)
{
	VN_FREED channel_point *rest = vn_alloc((size_t)n, sizeof *rest);
	VN_FREED double        *size = vn_alloc((size_t)n, sizeof *size);
	int                     all = -1, without = -1, kept;
	vn_status               st;

	if (!(st = pool_members(o, points, pools, (members) { in, n }, &all, err)) && all >= 0 &&
	    (kept = set_apart(points, in, n, rest, size)) > 1 && kept < n) {
		const vn_channel_pool was = pools->channel_pool[all];
		if (!has_member(rest, kept, was.charged[0]) || !has_member(rest, kept, was.charged[1]))
			st = pool_members(o, points, pools, (members) { rest, kept }, &without, err);
		if (without >= 0)
			pools->channel_pool[without].wider = all;
	}
	return st;
}

static void mark_sample(vn_checkpoints *all, const vn_pools *pools)
{
	for (int g = 0; g < pools->n_channel_pools; g++)
		for (int i = 0; i < pools->channel_pool[g].rows; i++) {
			vn_checkpoint *p = &all->of[pools->channel_pool[g].row[i].point];
			p->in_channel_pool = p->in_channel_pool || p->channels == g;
		}
}

static void charge_members(vn_checkpoints *all, const vn_pools *pools)
{
	for (int g = 0; g < pools->n_channel_pools; g++)
		for (int i = 0; i < VN_CHANNEL_METRICS; i++) {
			const vn_channel_pool *from = &pools->channel_pool[g];
			vn_checkpoint         *p = &all->of[from->charged[i]];
			if (p->channels != g)
				continue; /* the remaining steps have a pool of their own */
			p->m.value[vn_channel_metrics[i]] = from->value[i];
			*(i ? &p->m.worst_scale_channel : &p->m.worst_nmse_channel) = from->channel[i];
		}
}

vn_status vn_pool_channels(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_error *err)
{
	VN_FREED channel_point *in = vn_alloc((size_t)all->n, sizeof *in);
	vn_status               st = VN_OK;
	int                     n = 0;

	for (int i = 0; i < all->n; i++)
		n += belongs_to_pool(o, all, i, &in[n]);
	qsort(in, (size_t)n, sizeof *in, compare_members);
	for (int from = 0, to; !st && from < n; from = to) {
		for (to = from + 1; to < n && are_alike(o, all, &in[from], &in[to]); to++)
			;
		if (to - from > 1)
			st = pool_twice(o, all, pools, in + from, to - from, err);
	}
	vn_opened_forget(o);
	mark_sample(all, pools);
	charge_members(all, pools);
	return st;
}
