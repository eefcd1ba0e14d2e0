/* metrics.c: the table of metrics. The pass itself is in measure.c. */
#include "compare/metrics/metrics.h"

#include "libref/plan/point.h"

#include <math.h>
#include <string.h>

static const vn_metric_info table[VN_N_METRICS] = {
	[VN_M_COSINE] = { "cosine", VN_HIGHER, false, false, 1, "",
	                  "r.c / (|r| |c|); blind to scale and to one bad channel" },
	[VN_M_NMSE] = { "nmse", VN_LOWER, true, false, INFINITY, "",
	                "sum (c-r)^2 / sum r^2; about 2 (1 - cosine) when only the direction is off" },
	[VN_M_RMSE] = { "rmse", VN_LOWER, true, false, INFINITY, "units of the tensor", "root of the mean of (c-r)^2" },
	[VN_M_MAX_ABS] = { "max_abs", VN_LOWER, true, false, INFINITY, "units of the tensor", "largest |c-r|" },
	[VN_M_MEAN_ABS] = { "mean_abs", VN_LOWER, true, false, INFINITY, "units of the tensor", "mean |c-r|" },
	[VN_M_MAX_REL] = { "max_rel", VN_LOWER, true, false, INFINITY, "", "largest |c-r| / max(|r|, rms of the row / 8)" },
	[VN_M_MEAN_REL] = { "mean_rel", VN_LOWER, true, false, INFINITY, "",
	                    "mean of |c-r| / max(|r|, rms of the row / 8)" },
	[VN_M_NORM_RATIO] = { "norm_ratio", VN_NEAR_ONE, false, false, INFINITY, "",
	                      "|c| / |r|; a limit is the distance from 1 on either side" },
	[VN_M_SCALE] = { "scale", VN_LOWER, true, false, INFINITY, "",
	                 "distance from 1 of the factor that fits c to r, beyond 6 of its standard errors; or the median "
	                 "of the factors of the channels" },
	[VN_M_WORST_TOKEN_COSINE] = { "worst_token_cosine", VN_HIGHER, false, false, 1, "",
	                              "the lowest cosine of one token's row" },
	[VN_M_WORST_TOKEN_NMSE] = { "worst_token_nmse", VN_LOWER, true, false, INFINITY, "",
	                            "the highest nmse of one token's row; detects a wrong scale that a very large token "
	                            "hides in nmse" },
	[VN_M_WORST_CHANNEL_NMSE] = { "worst_channel_nmse", VN_LOWER, true, false, INFINITY, "",
	                              "the highest nmse of one channel over 32 tokens; detects an error that a very large "
	                              "channel hides in nmse" },
	[VN_M_WORST_CHANNEL_SCALE] = { "worst_channel_scale", VN_LOWER, true, false, INFINITY, "",
	                               "the largest scale error of one channel over 32 tokens" },
	[VN_M_ULP_P50] = { "ulp_p50", VN_LOWER, true, false, INFINITY, "ulp",
	                   "median distance in ULPs of the coarser format" },
	[VN_M_ULP_P99] = { "ulp_p99", VN_LOWER, true, false, INFINITY, "ulp",
	                   "99th percentile of the distance in ULPs (above 15, to an eighth of an octave)" },
	[VN_M_ULP_MAX] = { "ulp_max", VN_LOWER, true, false, INFINITY, "ulp", "largest distance in ULPs" },
	[VN_M_NONFINITE] = { "nonfinite", VN_LOWER, false, false, INFINITY, "count",
	                     "positions with a NaN or an infinity on either side; in attention scores, minus infinity on "
	                     "both sides is a mask and not counted" },
	[VN_M_HEADROOM] = { "headroom", VN_LOWER, false, false, INFINITY, "",
	                    "max |c| / largest number of the candidate's format" },
	[VN_M_DIFFERING] = { "differing", VN_LOWER, false, false, INFINITY, "count",
	                     "elements whose bits differ, or whose float64 values differ if the formats do" },
	[VN_M_ARGMAX_AGREEMENT] = { "argmax_agreement", VN_HIGHER, false, true, 1, "share of rows",
	                            "the candidate's highest score is the reference's highest, or ties with it (closer "
	                            "than a 64th of the row's deviation)" },
	[VN_M_TOP5_AGREEMENT] = { "top5_agreement", VN_HIGHER, false, true, 1, "share",
	                          "share of the five highest scores of a row that both sides have in common" },
	[VN_M_KL_MEAN] = { "kl_mean", VN_LOWER, true, true, INFINITY, "nat",
	                   "mean over rows of KL(softmax r || softmax c)" },
	[VN_M_KL_P99] = { "kl_p99", VN_LOWER, true, true, INFINITY, "nat", "99th percentile over rows" },
	[VN_M_KL_MAX] = { "kl_max", VN_LOWER, true, true, INFINITY, "nat", "the worst row" },
};

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

int vn_token_axis(const char *axes, int rank)
{
	const int a = *axes ? vn_axes_find(axes, "token") : rank >= 2 ? 0 : -1;
	return a < rank ? a : -1;
}
