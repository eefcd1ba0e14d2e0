/* draw_channels.c: see draw_channels.h. */
#include "compare/replay/draw_channels.h"

#include "compare/replay/local.h"
#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void vn_channels_begin(vn_channel_errors *c, int64_t n)
{
	if (!c->now || (size_t)n > c->room) {
		free(c->now);
		c->now = vn_alloc(3 * (size_t)n, sizeof *c->now);
		c->room = (size_t)n;
	}
	c->n = n;
	c->sum = c->now + c->room;
	c->squares = c->sum + c->room;
	memset(c->now, 0, 3 * c->room * sizeof *c->now);
}

void vn_channels_add(vn_channel_errors *c)
{
	for (int64_t i = 0; i < c->n; i++) {
		c->sum[i] += c->now[i];
		c->squares[i] += c->now[i] * c->now[i];
	}
}

double vn_channels_freedom(const vn_channel_errors *c, int draws)
{
	double  var = 0;
	int64_t n = 0;

	for (int64_t i = 0; i < c->n; i++) {
		const double mean = c->sum[i] / draws;
		if (mean > 0)
			var += (c->squares[i] / (mean * mean) - draws) / (draws - 1);
		n += mean > 0;
	}
	return var > 0 ? 2 * (double)n / var : 1;
}

double vn_channels_judge(const double *cand, const double *draws, int64_t n, double freedom)
{
	double worst = 0;

	for (int64_t i = 0; i < n; i++)
		if (!(cand[i] <= worst * draws[i]))
			worst = draws[i] > 0 && isfinite(cand[i]) ? cand[i] / draws[i] : (double)INFINITY;
	worst /= VN_SPAN_LIMIT * vn_local_chance(freedom);
	return worst >= 0 ? worst : (double)INFINITY;
}

double vn_channels_pool(vn_pooled_channels *pool, const vn_channel_errors *c, const double *draws, double freedom,
                        bool in_common)
{
	double all = 0;

	for (int k = 0; k < 2 && !pool->channel[k]; k++)
		pool->channel[k] = vn_alloc_zero((size_t)c->n, sizeof **pool->channel);
	for (int64_t i = 0; i < c->n; i++) {
		pool->channel[0][i] += c->now[i];
		pool->channel[1][i] += draws[i];
		all += draws[i];
	}
	pool->all += all;
	const double root = sqrt(pool->squares) + all / sqrt(freedom);
	pool->squares = in_common ? root * root : pool->squares + all * all / freedom;
	return vn_channels_judge(pool->channel[0], pool->channel[1], c->n,
	                         pool->squares > 0 ? pool->all * pool->all / pool->squares : freedom);
}
