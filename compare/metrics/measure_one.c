/* measure_one.c: measures one pair of tensors; see metrics.h. */
#include "compare/metrics/metrics.h"

vn_status vn_measure(const vn_tensor *ref, const vn_tensor *cand, const char *axes, bool scores, int threads,
                     vn_measured *m, vn_error *err)
{
	return vn_measure_mapped(ref, cand, axes, scores, false, threads, m, err);
}

vn_status vn_measure_brief(const vn_tensor *ref, const vn_tensor *cand, const char *axes, bool mapped, int threads,
                           vn_measured *m, vn_error *err)
{
	vn_job          job = { .ref = *ref, .cand = *cand, .axes = axes, .mapped = mapped, .brief = true };
	const vn_status st = vn_measure_many(&job, 1, threads, err);
	*m = job.m;
	return st;
}

vn_status vn_measure_mapped(const vn_tensor *ref, const vn_tensor *cand, const char *axes, bool scores, bool mapped,
                            int threads, vn_measured *m, vn_error *err)
{
	vn_job          job = { .ref = *ref, .cand = *cand, .axes = axes, .scores = scores, .mapped = mapped };
	const vn_status st = vn_measure_many(&job, 1, threads, err);
	*m = job.m;
	return st;
}
