/* fault_numbers.c: faults of precision (specs/faults.md, chapter P). */
#include "libref/plan/fault_internal.h"

vn_status vn_make_held(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_follow(f, node, vn_fault_act(f->plan->node[node].layer, (vn_act)r->x, f->plan->node[node].out[0]),
	                       err);
}
