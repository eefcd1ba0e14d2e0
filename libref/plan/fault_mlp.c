/* fault_mlp.c: faults of the feed-forward part, the embedding and the output
 * (specs/faults.md, chapter M). */
#include "libref/plan/fault_internal.h"

#include <math.h>
#include <string.h>

vn_status vn_make_by_width(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_fault_row with = *r;

	with.x = sqrt((double)f->plan->weight[f->plan->node[node].w[0]].shape.dim[1]);
	return vn_fault_change_each(&with, f, node, 0, vn_fault_times, err);
}

/* x: rows by which the table is shifted, cyclically. */
vn_status vn_make_moved_table(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_arrange(f, node, 0, 0, &(vn_arrange) { VN_ARRANGE_ROUND, .a = (int64_t)r->x }, err);
}

vn_status vn_make_of_embedding(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].in[0] = vn_fault_value(f->plan, -1, VN_POINT_EMBED);
	return VN_OK;
}

/* x: shift in rows. */
vn_status vn_make_input_shifted(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int x = f->plan->node[node].in[0];
	int       moved;
	vn_status st = vn_fault_insert(f, node, vn_fault_rows(-1, VN_ROWS_SHIFTED, (int)r->x, 0, x), x, &moved, err);

	if (!st)
		f->plan->node[node + 1].in[0] = moved;
	return st;
}

vn_status vn_make_tokens_shifted(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_follow(f, node, vn_fault_rows(-1, VN_ROWS_SHIFTED, (int)r->x, 0, f->plan->node[node].out[0]), err);
}

vn_status vn_make_capped(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_fault_follow(f, node, vn_fault_act(-1, VN_SOFT_CAP, f->plan->node[node].out[0]), err);
}

vn_status vn_make_log_softmax(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_fault_follow(f, node, vn_fault_rows(-1, VN_ROWS_LOG_SOFTMAX, 0, 0, f->plan->node[node].out[0]), err);
}

vn_status vn_make_temperature(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 0, vn_fault_times, err);
}
