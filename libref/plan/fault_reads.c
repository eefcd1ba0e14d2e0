/* fault_reads.c: an operation is right and reads what is another's: the index of a layer is off by one (specs/models.md, 9.6, 9.8, 9.9). */
#include "libref/plan/fault_inside.h"

/* What the layer before has in the place of a value; -1: nothing of its shape. */
static int before(const vn_plan *p, int value)
{
	const vn_value *v = &p->value[vn_plan_root(p, value)];
	const int       o = v->layer > 0 ? vn_fault_value(p, v->layer - 1, v->point)
	                  : v->layer == 0 && v->point == VN_POINT_OUTPUT ? vn_fault_value(p, -1, VN_POINT_EMBED) : -1;
	bool            same = o >= 0 && p->value[o].rank == v->rank && p->value[o].wide == v->wide && !p->value[o].on_demand;

	for (int i = 0; same && i < v->rank; i++)
		same = p->value[o].size[i] == v->size[i];
	return same ? o : -1;
}

static const char *has_before(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return !vn_fault_plain(p, n) ? "it is made on demand, or stored in full width" : before(p, n->in[0]) < 0 ? "the layer before has nothing like what it reads" : NULL;
}

static vn_status reads_before(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].in[0] = before(f->plan, f->plan->node[node].in[0]);
	return VN_OK;
}

/* x: 0: of keys and values, 1: of keys alone, 2: of values alone. */
static const char *cached_before(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return before(p, n->in[VN_ATTN_K]) < 0 || before(p, n->in[VN_ATTN_V]) < 0 ? "the layer before has no keys and values like these" : NULL;
}

static vn_status cache_before(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];

	(void)err;
	for (int i = VN_ATTN_K; i <= VN_ATTN_V; i++)
		if (r->x == 0 || r->x == i)
			n->in[i] = before(f->plan, n->in[i]);
	return VN_OK;
}

/* The first sum of a layer reads it, and is to be read by the second. */
static int base(const vn_plan *p, const vn_node *n)
{
	const vn_node *sum = vn_fault_maker(p, n, 0);
	return vn_fault_point(p, n) == VN_POINT_OUTPUT && sum->op == VN_OP_ADD && sum->layer == n->layer ? sum->in[0] : -1;
}

static const char *second_sum(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return base(p, n) < 0 ? "it is for the second sum of a layer" : NULL;
}

static vn_status first_base(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].in[0] = base(f->plan, &f->plan->node[node]);
	return VN_OK;
}

#define READERS (VN_ON(RMS_NORM) | VN_ON(LAYER_NORM) | VN_ON(LINEAR) | VN_ON(SLICE) | VN_ON(ROPE) | VN_ON(ATTENTION) | VN_ON(ACT) | VN_ON(GATED) | \
                 VN_ON(ADD) | VN_ON(GATED_NORM))

static const vn_fault_row rows[] = {
	{ "N14.input", "the second sum of a layer adds to its input, not to what the first made", VN_ON(ADD), second_sum, first_base, NULL, 0 },
	{ "P22", "what the layer before has is read in the place of its input, or of the first of them", READERS, has_before, reads_before, NULL, 0 },
	{ "C9", "keys and values of the layer before", VN_ON(ATTENTION), cached_before, cache_before, NULL, 0 },
	{ "C9.k", "keys of the layer before", VN_ON(ATTENTION), cached_before, cache_before, NULL, VN_ATTN_K },
	{ "C9.v", "values of the layer before", VN_ON(ATTENTION), cached_before, cache_before, NULL, VN_ATTN_V },
};

const vn_fault_chapter vn_faults_reads = { rows, sizeof rows / sizeof *rows };
