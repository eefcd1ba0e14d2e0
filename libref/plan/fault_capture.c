/* fault_capture.c: faults of buffers, captures and tensor-parallel ranks
 * (specs/faults.md, chapter P).
 *
 * A faulty capture is also a change of the plan: the node makes an additional value, which later
 * nodes read, and the checkpoint shows another value.
 */
#include "libref/plan/fault_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Are a's numbers the first columns of b? */
static bool is_first_part(const vn_plan *p, int a, int b)
{
	const vn_node *n = &p->node[p->value[a].node];

	return n->op == VN_OP_SLICE && n->c.slice.from == 0 && n->c.slice.stride == (int)vn_value_row(&p->value[b]) &&
	       vn_plan_root(p, n->in[0]) == b;
}

/* Can b be recorded in place of a? It has as many elements, or (wider) more. */
static bool is_alike(const vn_plan *p, int a, int b, bool wider)
{
	const vn_value *x = &p->value[a], *y = &p->value[b];
	const int64_t   more = vn_value_row(y) - vn_value_row(x);
	return a != b && !y->on_demand && !y->wide && y->state < 0 && x->size[0] == VN_T && y->size[0] == VN_T &&
	       (wider ? more > 0 && !is_first_part(p, a, b) : more == 0) && !strchr(y->name, '~');
}

/* The nearest such checkpoint before or after a node; -1: none. */
static int find_neighbour(const vn_plan *p, const vn_node *n, int step, bool wider)
{
	for (int i = (int)(n - p->node) + step; i >= 0 && i < p->n_nodes; i += step)
		if (is_alike(p, n->out[0], p->node[i].out[0], wider))
			return p->node[i].out[0];
	return -1;
}

/* The value recorded in place of a node's output. */

int vn_fault_recorded(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_point at = vn_fault_point(p, n);
	int            v = -1;

	switch ((int)r->x) {
	case RECORD_BEFORE:
	case RECORD_ONE_TILE: return find_neighbour(p, n, -1, false);
	case RECORD_AFTER: return find_neighbour(p, n, 1, false);
	case RECORD_FIRST_COLUMNS: return find_neighbour(p, n, -1, true);
	case RECORD_CONTEXT: v = at == VN_POINT_ATTN_OUT ? vn_fault_value(p, n->layer, VN_POINT_ATTN_CONTEXT) : -1; break;
	case RECORD_OUT: v = at == VN_POINT_ATTN_CONTEXT ? vn_fault_value(p, n->layer, VN_POINT_ATTN_OUT) : -1; break;
	case RECORD_GATED: v = at == VN_POINT_ATTN_CONTEXT ? vn_fault_value(p, n->layer, VN_POINT_ATTN_GATED) : -1; break;
	case RECORD_LAYER_BEFORE: v = n->layer > 0 ? vn_fault_value(p, n->layer - 1, at) : -1; break;
	case RECORD_FINAL:
		v = at == VN_POINT_OUTPUT && n->layer == vn_plan_last_layer(p) ? vn_fault_value(p, -1, VN_POINT_FINAL_NORM)
		                                                               : -1;
		break;
	}
	return v >= 0 && is_alike(p, n->out[0], v, false) ? v : -1;
}

vn_status vn_make_record_other(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_plan *p = f->plan;
	const int      u = vn_fault_recorded(r, p, &p->node[node]), made = p->value[u].node;
	vn_node        copy = vn_fault_copy(p, p->node[node].layer, u);

	copy.c.slice.width = (int)vn_value_row(&p->value[p->node[node].out[0]]);
	return vn_fault_behind(f, node, made > node ? made : node, copy, true, err);
}

vn_status vn_make_early(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int v = f->plan->node[node].out[0];
	int      *more;

	(void)r;
	for (int i = 0; i < f->n_early; i++)
		if (f->early[i] == v)
			return VN_OK;
	if (!(more = realloc(f->early, ((size_t)f->n_early + 1) * sizeof *more)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a fault");
	f->early = more;
	f->early[f->n_early++] = v;
	return VN_OK;
}

/* Tiles of sixteen rows with the values from before the node, which later nodes read too.
 * x: RECORD_BEFORE, every other tile, or RECORD_ONE_TILE. */
vn_status vn_make_in_tiles(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	vn_node        tiles = vn_fault_rows(n->layer, VN_ROWS_TILES, 16, r->x == RECORD_ONE_TILE ? 3 : 0, n->out[0]);

	tiles.in[1] = vn_fault_recorded(r, f->plan, n);
	return vn_fault_follow(f, node, tiles, err);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

double vn_rank_sum_number(const vn_rank_sum *s)
{
	return (s->no_bias ? -1 : 1) * (VN_RANKS_MOST * (double)s->present + s->ranks);
}

vn_rank_sum vn_rank_sum_of(double number)
{
	const uint64_t is = (uint64_t)fabs(number);

	return (vn_rank_sum) { (int)(is % VN_RANKS_MOST), is / VN_RANKS_MOST, number < 0 };
}

/* Keeps the inputs of the present ranks: the columns of W (M, N), or the rows of (N, M). */
static void keep_columns(const vn_fault_run *run, double by)
{
	const vn_rank_sum sum = vn_rank_sum_of(by);

	for (int64_t k = 0; k < run->n; k++)
		run->y[k] = sum.present >> k / (run->n / sum.ranks) & 1 ? run->x[k] : 0.0;
}

static void keep_rows(const vn_fault_run *run, double by)
{
	const vn_rank_sum sum = vn_rank_sum_of(by);

	for (int64_t k = 0; k < run->n; k++)
		run->y[k] = sum.present >> run->row / (run->rows / sum.ranks) & 1 ? run->x[k] : 0.0;
}

vn_status vn_make_one_rank(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node   whole = f->plan->node[node], part = whole;
	vn_status st = vn_fault_change(f, node, 0, whole.c.linear.transposed ? keep_rows : keep_columns, r->x, err);

	if (st)
		return st;
	part.w[0] = f->plan->node[node].w[0];
	part.w[1] = vn_rank_sum_of(r->x).no_bias ? -1 : part.w[1];
	f->plan->node[node].w[0] = whole.w[0];
	return vn_fault_behind(f, node, node, part, true, err);
}

vn_status vn_make_reduced(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_make_temperature(r, f, node, err);

	return st || f->plan->node[node].w[1] < 0 ? st : vn_make_bias_times(r, f, node, err);
}
