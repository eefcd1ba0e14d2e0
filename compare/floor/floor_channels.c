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
static void set_pool_floor(vn_checkpoints *all, vn_pools *pools, int g)
{
	for (int i = 0; i < VN_CHANNEL_METRICS; i++) {
		vn_checkpoint *p = &all->of[pools->channel_pool[g].charged[i]];
		if (p->channels == g && p->has_floor)
			p->floor[vn_channel_metrics[i]] = pools->channel_pool[g].floor[i];
	}
}

/* A step whose floor is this many times the median step's is left out: the floor or the reference
 * is wrong there, which is reported for that step. */
#define AS_A_WHOLE 100.0

static double floor_of(const vn_checkpoints *all, const vn_channel_pool *pool, int row)
{
	return vn_floor_value(&all->of[pool->row[row].point], VN_M_NMSE);
}

static void take_row(vn_tensor *t, unsigned char *data, int row, int to)
{
	const size_t bytes = (size_t)t->shape.dim[1] * vn_dtype_size(t->dtype);
	memmove(data + bytes * (size_t)to, data + bytes * (size_t)row, bytes);
	t->shape.dim[0] = to + 1;
}

/* The rows of a pool, in the reference and in the floor. */
typedef struct pool_rows {
	vn_tensor      t[2];
	unsigned char *data[2];
} pool_rows;

/* Moves the remaining rows to the front in both tensors, which hold their own data. */
static void leave_out(const vn_checkpoints *all, const vn_channel_pool *pool, pool_rows *rows)
{
	VN_FREED double *size = vn_alloc((size_t)pool->rows, sizeof *size);
	int              n = 0, kept = 0;

	for (int i = 0; i < pool->rows; i++)
		if (!isnan(floor_of(all, pool, i)))
			size[n++] = floor_of(all, pool, i);
	qsort(size, (size_t)n, sizeof *size, vn_ascending);
	const double most = n ? AS_A_WHOLE * size[vn_quantile_index(n, 0.5)] : 0;
	for (int i = 0; i < pool->rows && most > 0; i++)
		if (floor_of(all, pool, i) <= most) { /* a step with an unknown floor is left out too */
			take_row(&rows->t[0], rows->data[0], i, kept);
			take_row(&rows->t[1], rows->data[1], i, kept++);
		}
}

/* Overwrites the rows. value: NaN when they have no channels. */
static vn_status measure_pool(const vn_opened *o, const vn_checkpoints *all, const vn_channel_pool *pool,
                              pool_rows *rows, double *value, vn_error *err)
{
	vn_measured m;
	leave_out(all, pool, rows);
	const vn_status st = vn_measure(&rows->t[0], &rows->t[1], "token hidden", o->request.options->threads, &m, err);
	const bool      some = !st && m.worst_nmse_channel >= 0;
	for (int i = 0; i < VN_CHANNEL_METRICS; i++)
		value[i] = some ? m.value[vn_channel_metrics[i]] : (double)NAN;
	return st;
}

vn_status vn_floor_channels_of_file(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_channel_entry *entry,
                                    vn_error *err)
{
	vn_status st = VN_OK;
	for (int g = 0; g < pools->n_channel_pools && !st; g++) {
		vn_channel_pool *pool = &pools->channel_pool[g];
		pool_rows        rows = { .data = { NULL } };
		if (!(st = vn_channel_rows(all, &(vn_channel_source) { o, o->floor, entry }, pool, &rows.t[1], &rows.data[1],
		                           err)) &&
		    rows.data[1] && !(st = vn_channel_rows_of_ref(o, all, pool, &rows.t[0], &rows.data[0], err)))
			st = measure_pool(o, all, pool, &rows, pool->floor, err);
		VN_FREE(rows.data[0], rows.data[1]);
		set_pool_floor(all, pools, g);
	}
	return st;
}

static void keep_rows(const vn_checkpoints *all, vn_channel_pool *pool, const vn_checkpoint *p, int side,
                      const vn_tensor *t)
{
	const size_t row = (size_t)(pool->outer * pool->inner) * vn_dtype_size(t->dtype);
	for (int i = 0; i < pool->rows; i++) {
		if (pool->row[i].point != p - all->of)
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

void vn_floor_channels_keep(const vn_checkpoints *all, vn_pools *pools, const vn_checkpoint *p, int side,
                            const vn_tensor *t)
{
	for (int g = p->channels; g >= 0; g = pools->channel_pool[g].wider)
		keep_rows(all, &pools->channel_pool[g], p, side, t);
}

static vn_status take_channels(const vn_opened *o, const vn_checkpoints *all, vn_channel_pool *pool,
                               const vn_floor_run *run, vn_error *err)
{
	double         value[VN_CHANNEL_METRICS] = { (double)NAN, (double)NAN };
	unsigned char *own = NULL;
	pool_rows      rows;
	vn_status      st = VN_OK;

	if (pool->n_kept[0] == pool->rows && (!run->finer || pool->n_kept[1] == pool->rows)) {
		const vn_shape shape = { .rank = 2, .dim = { pool->rows, pool->outer * pool->inner } };
		rows.t[1] = (vn_tensor) { pool->kept_in[0], shape, pool->kept[0] };
		if (run->finer)
			rows.t[0] = (vn_tensor) { pool->kept_in[1], shape, pool->kept[1] };
		else
			st = vn_channel_rows_of_ref(o, all, pool, &rows.t[0], &own, err);
		rows.data[0] = run->finer ? pool->kept[1] : own;
		rows.data[1] = pool->kept[0];
		st = st ? st : measure_pool(o, all, pool, &rows, value, err);
		free(own);
	}
	for (int i = 0; i < VN_CHANNEL_METRICS; i++) {
		pool->floor[i] = run->joins ? vn_judge_floor_sum(vn_channel_metrics[i], pool->floor[i], value[i]) : value[i];
		pool->floor[i] = run->twice ? vn_judge_floor_sum(vn_channel_metrics[i], pool->floor[i], value[i])
		                            : pool->floor[i];
	}
	return st;
}

vn_status vn_floor_channels_take(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, const vn_floor_run *run,
                                 vn_error *err)
{
	vn_status st = VN_OK;
	for (int g = 0; g < pools->n_channel_pools && !st; g++) {
		st = take_channels(o, all, &pools->channel_pool[g], run, err);
		set_pool_floor(all, pools, g);
	}
	vn_floor_channels_drop(pools);
	return st;
}

void vn_floor_channels_drop(vn_pools *pools)
{
	for (int g = 0; g < pools->n_channel_pools; g++)
		for (int side = 0; side < 2; side++) {
			vn_channel_pool *pool = &pools->channel_pool[g];
			free(pool->kept[side]);
			pool->kept[side] = NULL;
			pool->n_kept[side] = 0;
		}
}
