/* claims.c: compares what each tensor of a recording declares with the plan of its file. A tensor
 * under another tensor's name measures something else than the name means, however close its
 * numbers are. */
#include "compare/comparison/checkpoint.h"
#include "compare/match/contract.h"
#include "compare/match/names.h"

#include <stdio.h>
#include <string.h>

enum { CLAIMS_NAMED = 4 }; /* claims named; the rest are counted */

/* Checks the labels of an entry against the plan and writes a wrong one as half a line. Returns 0
 * if all are right. last: the preceding value in this step. */
static int find_wrong_claim(const vn_plan *plan, const vn_entry *e, int value, int last, char *text, size_t room)
{
	const int       root = vn_plan_root(plan, value);
	const vn_value *x = &plan->value[value], *y = &plan->value[root]; /* a second name has the labels of the first */
	const char     *point = vn_point_get(x->point)->name, *first = vn_point_get(y->point)->name,
			   *op = vn_op_name(plan->node[y->node].op);

	if (*e->point && strcmp(e->point, point) != 0 && strcmp(e->point, first) != 0)
		return snprintf(text, room, "its point is %s, the plan has %s", e->point, point);
	if (*e->point && e->layer != x->layer && e->layer != y->layer)
		return snprintf(text, room, "its layer is %d, the plan has %d", e->layer, x->layer);
	if (*e->op && strcmp(e->op, op) != 0)
		return snprintf(text, room, "its op is %s, the plan has %s", e->op, op);
	if (e->order >= 0 && last >= 0 && root < last)
		return snprintf(text, room, "its order is %d, but the plan computes it before %s", e->order,
		                plan->value[last].name);
	return 0;
}

void vn_contract_claims(const vn_opened *o, vn_remarks *remarks, const vn_recording *r, const char *who)
{
	const vn_plan *plan = vn_recording_plan(r);
	vn_names       names;
	char           text[3 * VN_NAME_MAX];
	int            last = -1, step = -1, n = 0;

	vn_names_init(&names, plan);
	for (int i = 0; plan && i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		const int       v = vn_names_find(&names, e->name);
		if (v < 0)
			continue;
		if (find_wrong_claim(plan, e, v, e->step == step ? last : -1, text, sizeof text) && n++ < CLAIMS_NAMED)
			vn_remarks_refuse(o, remarks, VN_ALLOW_CLAIMS, "claims", "names: %s of the %s: %s", e->name, who, text);
		if (e->order >= 0)
			last = vn_plan_root(plan, v);
		step = e->step;
	}
	if (n > CLAIMS_NAMED)
		vn_remarks_refuse(o, remarks, VN_ALLOW_CLAIMS, "claims", "names: %d more tensors of the %s contradict the plan",
		                  n - CLAIMS_NAMED, who);
	vn_names_finish(&names);
}
