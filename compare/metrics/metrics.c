/* metrics.c: the metrics by name: the table metrics.def. The pass itself is in measure.c. */
#include "compare/metrics/metrics.h"

#include "libref/plan/point.h"

#include <string.h>

static const vn_metric_info table[VN_N_METRICS] = {
#define METRIC(NAME, metric, ...) [VN_M_##NAME] = { .name = #metric, __VA_ARGS__ },
#include "compare/metrics/metrics.def"
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
