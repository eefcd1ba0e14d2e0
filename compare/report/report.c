/* report.c: facts about a comparison that several forms of report give; see report.h. */
#include "compare/report/report.h"
#include "compare/comparison/checkpoint.h"

#include <string.h>

const vn_entry *vn_entry_of(const vn_comparison *c, const vn_checkpoint *p)
{
	return p->ref >= 0 ? vn_recording_entry(c->opened.ref, p->ref) : vn_recording_entry(c->opened.cand, p->cand);
}

const char *vn_op_of(const vn_comparison *c, const vn_checkpoint *p)
{
	const vn_entry *e = vn_entry_of(c, p);
	return *e->op || p->value < 0 ? e->op : vn_op_name(c->opened.plan->node[c->opened.plan->value[p->value].node].op);
}

/* A reference in the candidate's own precision has a floor of 0, which cannot serve as a unit. */
bool vn_ratio_of(const vn_comparison *c, const vn_checkpoint *p, double *ratio)
{
	const double x = p->m.value[VN_M_NMSE], f = p->pooled_small >= 0
	                                                ? c->result.pooled_small[p->pooled_small].floor[VN_M_NMSE]
	                                                : vn_floor_value(p, VN_M_NMSE);
	if (!p->has_floor || !p->m.finite || !(f > 0.0 || x == 0.0))
		return false;
	*ratio = f == 0.0 && x == 0.0 ? 0.0 : x / f;
	return true;
}

int vn_first_failure(const vn_comparison *c)
{
	if (c->result.first >= 0)
		return c->result.first;
	for (int i = 0; i < c->result.n_checkpoints; i++)
		if (c->result.checkpoint[i].fails)
			return i;
	return -1;
}
