/* floor_channels.c: see floor_channels.h. */
#include "compare/floor/floor_channels.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/judge.h"
#include "compare/judge/pool_channels.h"

#include "compare/metrics/average.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Copies the floor of all steps to the checkpoint of the charged step. */
static void set_pool_floor(vn_result *r, int g)
{
	for (int i = 0; i < VN_CHANNEL_METRICS; i++) {
		vn_checkpoint *p = &r->checkpoints.of[r->pools.channel_pool[g].charged[i]];
		if (p->channels == g && p->has_floor)
			p->floor[vn_channel_metrics[i]] = r->pools.channel_pool[g].floor[i];
	}
}

/* A step whose floor is this many times the median step's is left out: the floor or the reference
 * is wrong there, which is reported for that step. */
#define AS_A_WHOLE 100.0

static double floor_of(const vn_result *r, const vn_channel_pool *pool, int row)
{
	return vn_floor_value(&r->checkpoints.of[pool->row[row].point], VN_M_NMSE);
}

static void take_row(vn_tensor *t, unsigned char *data, int row, int to)
{
	const size_t bytes = (size_t)t->shape.dim[1] * vn_dtype_size(t->dtype);
	memmove(data + bytes * (size_t)to, data + bytes * (size_t)row, bytes);
	t->shape.dim[0] = to + 1;
}

/* Moves the remaining rows to the front in both tensors, which hold their own data. */
static void leave_out(const vn_result *r, const vn_channel_pool *pool, vn_tensor *t, unsigned char *const data[2])
{
	double *size = vn_alloc((size_t)pool->rows, sizeof *size);
	int     n = 0, kept = 0;

	for (int i = 0; i < pool->rows; i++)
		if (!isnan(floor_of(r, pool, i)))
			size[n++] = floor_of(r, pool, i);
	qsort(size, (size_t)n, sizeof *size, vn_ascending);
	const double most = n ? AS_A_WHOLE * size[vn_quantile_index(n, 0.5)] : 0;
	for (int i = 0; i < pool->rows && most > 0; i++)
		if (floor_of(r, pool, i) <= most) { /* a step with an unknown floor is left out too */
			take_row(&t[0], data[0], i, kept);
			take_row(&t[1], data[1], i, kept++);
		}
	free(size);
}

/* t: rows of the reference and of the floor run, both overwritten. value: NaN when the rows
 * have no channels. */
static vn_status measure_pool(const vn_comparison *c, const vn_channel_pool *pool, vn_tensor *t,
                              unsigned char *const data[2], double *value, vn_error *err)
{
	vn_measured m;
	leave_out(&c->result, pool, t, data);
	const vn_status st = vn_measure(&t[0], &t[1], "token hidden", c->opened.request.options->threads, &m, err);
	const bool      some = !st && m.worst_nmse_channel >= 0;
	for (int i = 0; i < VN_CHANNEL_METRICS; i++)
		value[i] = some ? m.value[vn_channel_metrics[i]] : (double)NAN;
	return st;
}

vn_status vn_floor_channels_of_file(vn_comparison *c, vn_channel_entry *entry, vn_error *err)
{
	vn_status st = VN_OK;
	for (int g = 0; g < c->result.pools.n_channel_pools && !st; g++) {
		vn_channel_pool *pool = &c->result.pools.channel_pool[g];
		unsigned char   *data[2] = { NULL };
		vn_tensor        t[2];
		if (!(st = vn_channel_rows(&c->result.checkpoints, &(vn_channel_source) { &c->opened, c->opened.floor, entry },
		                           pool, &t[1], &data[1], err)) &&
		    data[1] && !(st = vn_channel_rows_of_ref(&c->opened, &c->result.checkpoints, pool, &t[0], &data[0], err)))
			st = measure_pool(c, pool, t, data, pool->floor, err);
		free(data[0]);
		free(data[1]);
		set_pool_floor(&c->result, g);
	}
	return st;
}

static void keep_rows(vn_result *r, vn_channel_pool *pool, const vn_checkpoint *p, int side, const vn_tensor *t)
{
	const size_t row = (size_t)(pool->outer * pool->inner) * vn_dtype_size(t->dtype);
	for (int i = 0; i < pool->rows; i++) {
		if (pool->row[i].point != p - r->checkpoints.of)
			continue;
		if (!pool->kept[side]) {
			pool->kept_in[side] = t->dtype;
			pool->kept[side] = vn_alloc((size_t)pool->rows, row);
		}
		if (pool->kept_in[side] == t->dtype) {
			vn_channel_row_copy(pool, t, pool->row[i].row, pool->kept[side] + row * (size_t)i);
			pool->n_kept[side]++;
		}
	}
}

void vn_floor_channels_keep(vn_result *r, const vn_checkpoint *p, int side, const vn_tensor *t)
{
	for (int g = p->channels; g >= 0; g = r->pools.channel_pool[g].wider)
		keep_rows(r, &r->pools.channel_pool[g], p, side, t);
}

static vn_status take_channels(vn_comparison *c, vn_channel_pool *pool, bool finer, bool joins, bool twice,
                               vn_error *err)
{
	double         value[VN_CHANNEL_METRICS] = { (double)NAN, (double)NAN };
	vn_tensor      t[2];
	unsigned char *own = NULL;
	vn_status      st = VN_OK;

	if (pool->n_kept[0] == pool->rows && (!finer || pool->n_kept[1] == pool->rows)) {
		const vn_shape shape = { .rank = 2, .dim = { pool->rows, pool->outer * pool->inner } };
		t[1] = (vn_tensor) { pool->kept_in[0], shape, pool->kept[0] };
		if (finer)
			t[0] = (vn_tensor) { pool->kept_in[1], shape, pool->kept[1] };
		else
			st = vn_channel_rows_of_ref(&c->opened, &c->result.checkpoints, pool, &t[0], &own, err);
		unsigned char *const data[2] = { finer ? pool->kept[1] : own, pool->kept[0] };
		if (!st)
			st = measure_pool(c, pool, t, data, value, err);
		free(own);
	}
	for (int i = 0; i < VN_CHANNEL_METRICS; i++) {
		pool->floor[i] = joins ? vn_judge_floor_sum(vn_channel_metrics[i], pool->floor[i], value[i]) : value[i];
		pool->floor[i] = twice ? vn_judge_floor_sum(vn_channel_metrics[i], pool->floor[i], value[i]) : pool->floor[i];
	}
	return st;
}

vn_status vn_floor_channels_take(vn_comparison *c, bool finer, bool joins, bool twice, vn_error *err)
{
	vn_status st = VN_OK;
	for (int g = 0; g < c->result.pools.n_channel_pools && !st; g++) {
		st = take_channels(c, &c->result.pools.channel_pool[g], finer, joins, twice, err);
		set_pool_floor(&c->result, g);
	}
	vn_floor_channels_drop(&c->result);
	return st;
}

void vn_floor_channels_drop(vn_result *r)
{
	for (int g = 0; g < r->pools.n_channel_pools; g++)
		for (int side = 0; side < 2; side++) {
			vn_channel_pool *pool = &r->pools.channel_pool[g];
			free(pool->kept[side]);
			pool->kept[side] = NULL;
			pool->n_kept[side] = 0;
		}
}
