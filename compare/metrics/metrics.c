/* metrics.c: the table of metrics. The pass itself is in measure.c. */
#include "compare/metrics/metrics.h"

#include "libref/plan/point.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */
static const vn_metric_info table[VN_N_METRICS] = {
	[VN_M_COSINE] = {
		.name = "cosine", .better = VN_HIGHER, .kind = VN_KIND_COSINE,
		.loose = -1, .loose_means = "can never fail", .unit = "",
		.means = "r.c / (|r| |c|); blind to scale and to one bad channel" },
	[VN_M_NMSE] = {
		.name = "nmse", .kind = VN_KIND_SQUARES, .over_floor = true,
		.loose = 1, .loose_means = "lets a tensor of zeros pass", .unit = "",
		.means = "sum (c-r)^2 / sum r^2; about 2 (1 - cosine) when only the direction is off" },
	/* loose: errors in the tensor's own units are large or small only relative to it (limits_use.h) */
	[VN_M_RMSE] = {
		.name = "rmse", .kind = VN_KIND_ERROR, .over_floor = true,
		.loose = 1e38, .loose_means = "almost never fails", .unit = "units of the tensor",
		.means = "root of the mean of (c-r)^2" },
	[VN_M_MAX_ABS] = {
		.name = "max_abs", .kind = VN_KIND_ERROR, .pool = VN_POOL_MAX, .over_floor = true,
		.loose = 1e38, .loose_means = "almost never fails", .unit = "units of the tensor",
		.means = "largest |c-r|" },
	[VN_M_MEAN_ABS] = {
		.name = "mean_abs", .kind = VN_KIND_ERROR, .pool = VN_POOL_MEAN, .over_floor = true,
		.loose = 1e38, .loose_means = "almost never fails", .unit = "units of the tensor",
		.means = "mean |c-r|" },
	[VN_M_MAX_REL] = {
		.name = "max_rel", .kind = VN_KIND_ERROR, .pool = VN_POOL_MAX, .over_floor = true,
		.loose = 1e38, .loose_means = "almost never fails", .unit = "",
		.means = "largest |c-r| / max(|r|, rms of the row / 8)" },
	[VN_M_MEAN_REL] = {
		.name = "mean_rel", .kind = VN_KIND_ERROR, .pool = VN_POOL_MEAN, .over_floor = true,
		.loose = 1e38, .loose_means = "almost never fails", .unit = "",
		.means = "mean of |c-r| / max(|r|, rms of the row / 8)" },
	[VN_M_NORM_RATIO] = {
		.name = "norm_ratio", .better = VN_NEAR_ONE, .kind = VN_KIND_NORM,
		.loose = 1, .loose_means = "lets a tensor of zeros pass", .unit = "",
		.means = "|c| / |r|; a limit is the distance from 1 on either side" },
	[VN_M_SCALE] = {
		.name = "scale", .kind = VN_KIND_FACTOR, .pool = VN_POOL_MAX, .over_floor = true,
		.loose = 1, .loose_means = "lets a tensor of zeros pass", .unit = "",
		.means = "distance from 1 of the factor that fits c to r, beyond 6 of its standard errors; or the "
		         "median of the factors of the channels" },
	[VN_M_WORST_TOKEN_COSINE] = {
		.name = "worst_token_cosine", .better = VN_HIGHER, .kind = VN_KIND_COSINE, .worst = VN_WORST_TOKEN,
		.worst_at = offsetof(vn_measured, worst_token),
		.loose = -1, .loose_means = "can never fail", .unit = "",
		.means = "the lowest cosine of one token's row" },
	[VN_M_WORST_TOKEN_NMSE] = {
		.name = "worst_token_nmse", .kind = VN_KIND_SQUARES, .worst = VN_WORST_TOKEN,
		.worst_at = offsetof(vn_measured, worst_nmse_token), .over_floor = true,
		.loose = 1, .loose_means = "lets a tensor of zeros pass", .unit = "",
		.means = "the highest nmse of one token's row; detects a wrong scale that a very large token hides in nmse" },
	[VN_M_WORST_CHANNEL_NMSE] = {
		.name = "worst_channel_nmse", .kind = VN_KIND_SQUARES, .worst = VN_WORST_CHANNEL,
		.worst_at = offsetof(vn_measured, worst_nmse_channel), .over_floor = true,
		.loose = 1, .loose_means = "lets a tensor of zeros pass", .unit = "",
		.means = "the highest nmse of one channel over 32 tokens; detects an error that a very large channel "
		         "hides in nmse" },
	[VN_M_WORST_CHANNEL_SCALE] = {
		.name = "worst_channel_scale", .kind = VN_KIND_FACTOR, .worst = VN_WORST_CHANNEL,
		.worst_at = offsetof(vn_measured, worst_scale_channel), .over_floor = true,
		.loose = 1, .loose_means = "lets a tensor of zeros pass", .unit = "",
		.means = "the largest scale error of one channel over 32 tokens" },
	[VN_M_ULP_P50] = {
		.name = "ulp_p50", .kind = VN_KIND_ULPS, .pool = VN_POOL_NEVER, .over_floor = true,
		.loose = 4294967296.0, .loose_means = "can never fail in float32 or less", .unit = "ulp",
		.means = "median distance in ULPs of the coarser format" },
	[VN_M_ULP_P99] = {
		.name = "ulp_p99", .kind = VN_KIND_ULPS, .pool = VN_POOL_NEVER, .over_floor = true,
		.loose = 4294967296.0, .loose_means = "can never fail in float32 or less", .unit = "ulp",
		.means = "99th percentile of the distance in ULPs (above 15, to an eighth of an octave)" },
	[VN_M_ULP_MAX] = {
		.name = "ulp_max", .kind = VN_KIND_ULPS, .pool = VN_POOL_MAX, .over_floor = true,
		.loose = 4294967296.0, .loose_means = "can never fail in float32 or less", .unit = "ulp",
		.means = "largest distance in ULPs" },
	/* loose: a tensor with a million NaN is useless */
	[VN_M_NONFINITE] = {
		.name = "nonfinite", .kind = VN_KIND_COUNT,
		.loose = 1e6, .loose_means = "almost never fails", .unit = "count",
		.means = "positions with a NaN or an infinity on either side; in attention scores, minus infinity on "
		         "both sides is a mask and not counted" },
	[VN_M_HEADROOM] = {
		.name = "headroom", .kind = VN_KIND_RANGE,
		.loose = 1, .loose_means = "can never fail", .unit = "",
		.means = "max |c| / largest number of the candidate's format" },
	/* loose: no file holds a tensor of 1e15 elements */
	[VN_M_DIFFERING] = {
		.name = "differing", .kind = VN_KIND_COUNT,
		.loose = 1e15, .loose_means = "can never fail", .unit = "count",
		.means = "elements whose bits differ, or whose float64 values differ if the formats do" },
	[VN_M_ARGMAX_AGREEMENT] = {
		.name = "argmax_agreement", .better = VN_HIGHER, .kind = VN_KIND_SHARE, .scores = true,
		.loose = 0, .loose_means = "can never fail", .unit = "share of rows",
		.means = "the candidate's highest score is the reference's highest, or ties with it (closer than a "
		         "64th of the row's deviation)" },
	[VN_M_TOP5_AGREEMENT] = {
		.name = "top5_agreement", .better = VN_HIGHER, .kind = VN_KIND_SHARE, .scores = true,
		.loose = 0, .loose_means = "can never fail", .unit = "share",
		.means = "share of the five highest scores of a row that both sides have in common" },
	/* loose: uniform scores diverge by ln V from certainty, which is 12 for 150,000 tokens */
	[VN_M_KL_MEAN] = {
		.name = "kl_mean", .kind = VN_KIND_DIVERGENCE, .over_floor = true, .scores = true,
		.loose = 10, .loose_means = "lets unrelated logits pass", .unit = "nat",
		.means = "mean over rows of KL(softmax r || softmax c)" },
	[VN_M_KL_P99] = {
		.name = "kl_p99", .kind = VN_KIND_DIVERGENCE, .pool = VN_POOL_NEVER, .over_floor = true, .scores = true,
		.loose = 50, .loose_means = "almost never fails", .unit = "nat",
		.means = "99th percentile over rows" },
	[VN_M_KL_MAX] = {
		.name = "kl_max", .kind = VN_KIND_DIVERGENCE, .over_floor = true, .scores = true,
		.loose = 50, .loose_means = "almost never fails", .unit = "nat",
		.means = "the worst row" },
};
/* clang-format on */

const vn_metric_info *vn_metric_get(vn_metric m)
{
	return &table[m];
}

int vn_metric_from_name(const char *name, vn_metric *m)
{
	for (int i = 0; i < VN_N_METRICS; i++)
		if (strcmp(table[i].name, name) == 0) {
			*m = (vn_metric)i;
			return 1;
		}
	return 0;
}

bool vn_metric_is_error(vn_metric m)
{
	return table[m].kind != VN_KIND_COUNT && table[m].kind != VN_KIND_RANGE;
}

int64_t vn_metric_worst_of(const vn_measured *x, vn_metric m)
{
	int64_t at = -1;
	if (table[m].worst)
		memcpy(&at, (const char *)x + table[m].worst_at, sizeof at);
	return at;
}

int vn_token_axis(const char *axes, int rank)
{
	const int a = *axes ? vn_axes_find(axes, "token") : rank >= 2 ? 0 : -1;
	return a < rank ? a : -1;
}
