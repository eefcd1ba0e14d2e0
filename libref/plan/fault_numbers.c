/* fault_numbers.c: faults of precision (specs/models.md, 9.8). */
#include "libref/plan/fault_inside.h"

/* What a node makes, as another format holds it: everybody behind it reads that. */
static const char *stored(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return !vn_fault_plain(p, n) ? "it is made on demand, or stored in full width" : NULL;
}

static vn_status held(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_follow(f, node, vn_fault_act(f->plan->node[node].layer, (vn_act)r->x, f->plan->node[node].out[0]), err);
}

#define ANY (VN_ON(EMBED) | VN_ON(RMS_NORM) | VN_ON(LAYER_NORM) | VN_ON(LINEAR) | VN_ON(ROPE) | VN_ON(ATTENTION) | VN_ON(ACT) | \
             VN_ON(GATED) | VN_ON(ADD) | VN_ON(CAUSAL_CONV) | VN_ON(DELTA_RULE) | VN_ON(GATED_NORM))

static const vn_fault_row rows[] = {
	{ "P1", "stored as float16: what is too large becomes infinite", ANY, stored, held, NULL, VN_AS_F16 },
	{ "P1.saturated", "stored as float16: what is too large becomes 65504", ANY, stored, held, NULL, VN_AS_F16_SATURATED },
	{ "P2", "products of queries and keys in float16 before they are scaled", VN_ON(ATTENTION), NULL, NULL, "form", VN_ATTN_SCORES_F16 },
	{ "P3", "stored as float16 without its subnormals", ANY, stored, held, NULL, VN_AS_F16_FLUSHED },
	{ "P5", "stored as float16, rounded towards 0", ANY, stored, held, NULL, VN_AS_F16_CUT },
	{ "P5.bf16", "stored as bfloat16, rounded towards 0", ANY, stored, held, NULL, VN_AS_BF16_CUT },
};

const vn_fault_chapter vn_faults_numbers = { rows, sizeof rows / sizeof *rows };
