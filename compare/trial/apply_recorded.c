/* apply_recorded.c: see apply_recorded.h. */
#include "compare/trial/apply_recorded.h"

#include <stdlib.h>
#include <string.h>

vn_status vn_run_slots(const vn_case *t, const vn_plan *p, int of, const int64_t *token, vn_made *made, vn_error *err)
{
	const int64_t *const both[2] = { of == 2 ? NULL : token, of == 1 ? NULL : token };
	const vn_status      st = vn_recompute_run_slots(t->recompute, p, both, VN_OWN_WIDTH, &made->own, err);

	return st ? st : vn_recompute_run_slots(t->recompute, p, both, VN_FINE_WIDTH, &made->fine, err);
}

/* The token whose numbers slot j holds. Blocks that the table lacks stay in their own place. */
static int64_t token_of(const vn_block_table *b, int64_t j, int64_t S)
{
	const int64_t block = j / b->block, at = block < b->n ? b->from[block] * b->block + j % b->block : j;
	return at < S ? at : -1;
}

/* The token whose numbers slot j holds if the tokens from `from` on are written elsewhere. -1:
 * none. */
static int64_t token_in_slot(const vn_applied_slots *c, int64_t j, int64_t from, int64_t S)
{
	if (c->by < 0)
		return j < from + c->by ? j : j - c->by < S ? j - c->by : -1;
	return j < from ? j : j >= from + c->by ? j - c->by : -1;
}

vn_status vn_apply_slots(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const bool     blocks = h->applied.kind == VN_BY_BLOCKS;
	const int64_t  S = t->site->tokens;
	const vn_step *step;
	const int      steps = vn_recording_steps(t->opened->cand, &step),
			  of = blocks ? h->applied.blocks.of : h->applied.slots.of;
	int64_t *token;

	if (t->part || p->node[h->node].op != VN_OP_ATTENTION || vn_case_node(t) != h->node ||
	    (blocks ? p->node[h->node].out[VN_ATTN_CONTEXT] != t->site->target : steps < 2))
		return VN_OK;
	if (!(token = malloc((size_t)S * sizeof *token)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld tokens", (long long)S);
	for (int64_t j = 0; j < S; j++)
		token[j] = blocks ? token_of(&h->applied.blocks, j, S)
		                  : token_in_slot(&h->applied.slots, j, h->applied.slots.newest ? S - 1 : step[1].position, S);
	const vn_status st = vn_run_slots(t, p, of, token, made, err);
	free(token);
	return st;
}

vn_status vn_apply_state(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	vn_error  none = { "" };
	vn_status st = VN_OK;

	if (vn_case_node(t) != h->node)
		return VN_OK;
	if (!(st = vn_recompute_run_state(t->recompute, &h->applied.state, VN_OWN_WIDTH, &made->own, &none)))
		st = vn_recompute_run_state(t->recompute, &h->applied.state, VN_FINE_WIDTH, &made->fine, &none);
	if (st)
		vn_made_finish(made);
	return vn_unless_unsupported(st, &none, err);
}

/* The same checkpoint, with the same shape, in the step before. -1: none. */
static int point_before(const vn_opened *o, const vn_result *r, int point)
{
	const vn_checkpoint *me = &r->checkpoints.of[point];
	const vn_step       *step;
	const int            n = vn_recording_steps(o->cand, &step);
	int                  before = -1;

	for (int i = 1; i < n; i++)
		before = step[i].number == me->step ? step[i - 1].number : before;
	for (int i = 0; before >= 0 && i < r->checkpoints.n; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[i];
		if (p->step == before && p->m.n && strcmp(p->name, me->name) == 0 &&
		    vn_shape_equal(&vn_recording_entry(o->cand, p->cand)->shape, &vn_recording_entry(o->cand, me->cand)->shape))
			return i;
	}
	return -1;
}

static vn_status same_bits(const vn_opened *o, const vn_result *r, int a, int b, bool *same, vn_error *err)
{
	const int entry[] = { r->checkpoints.of[a].cand, r->checkpoints.of[b].cand };
	vn_tensor x, y;
	vn_status st = vn_entry_tensor(o->cand, entry[0], &x, err);

	*same = false;
	if (st)
		return st;
	if (!(st = vn_entry_tensor(o->cand, entry[1], &y, err))) {
		*same = x.dtype == y.dtype &&
		        memcmp(x.data, y.data, vn_dtype_bytes(x.dtype, (size_t)vn_shape_count(&x.shape))) == 0;
		vn_recording_release(o->cand, entry[1]);
	}
	vn_recording_release(o->cand, entry[0]);
	return st;
}

/* A stale value is that of a step in which it was right, maybe some steps ago. If it never
 * was, one mistake makes the same numbers in each of these steps (as a query that sees the
 * first key alone). */
static vn_status was_right(const vn_opened *o, const vn_result *r, int point, bool *right, vn_error *err)
{
	bool      same = true;
	vn_status st = VN_OK;

	while (!st && same && vn_local_beyond(&r->checkpoints.of[point])) {
		const int before = point_before(o, r, point);
		same = before >= 0;
		if (same && !(st = same_bits(o, r, point, before, &same, err)))
			point = before;
	}
	*right = same;
	return st;
}

/* One number everywhere, usually 0, is a buffer that no step writes: that is another mistake than a
 * stale value. */
static bool is_one_number(const double *x, int64_t n)
{
	for (int64_t i = 1; i < n; i++)
		if (!(x[i] == x[0]))
			return false;
	return true;
}

static vn_status apply_recorded(const vn_case *t, int point, vn_made *made, vn_error *err)
{
	const int entry = t->result->checkpoints.of[point].cand;
	vn_tensor x;
	vn_status st = vn_entry_tensor(t->opened->cand, entry, &x, err);

	if (st)
		return st;
	double *copy = vn_case_all_doubles_of(&x);
	if (!copy)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for the tensors of the step before");
	else if (vn_shape_equal(&x.shape, &t->site->cand.shape) && !is_one_number(copy, vn_shape_count(&x.shape)))
		made->own = made->fine = (vn_tensor) { VN_F64, x.shape, copy };
	else
		free(copy);
	vn_recording_release(t->opened->cand, entry);
	return st;
}

/* What the operation should have made at another point: moves the recomputation there and back. */
static vn_status apply_due(const vn_case *t, int point, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	vn_error       none = { "" };
	vn_status      st = vn_recompute_at(t->recompute, point, &none);

	if (!st && !(st = vn_recompute_run(t->recompute, p, made->weights, VN_OWN_WIDTH, &made->own, &none)))
		st = vn_recompute_run(t->recompute, p, made->weights, VN_FINE_WIDTH, &made->fine, &none);
	const vn_status back = vn_recompute_at(t->recompute, t->x->checkpoint, err);
	if (st || back || !vn_shape_equal(&made->own.shape, &t->site->cand.shape))
		vn_made_finish(made);
	return back ? back : vn_unless_unsupported(st, &none, err);
}

vn_status vn_apply_step(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const int before = point_before(t->opened, t->result, t->x->checkpoint);
	bool      right = true;
	vn_status st = before < 0 || h->applied.step.due ? VN_OK : was_right(t->opened, t->result, before, &right, err);

	if (st || before < 0 || !right)
		return st;
	return h->applied.step.due ? apply_due(t, before, made, err) : apply_recorded(t, before, made, err);
}

/* Writes to x, the rows of the checkpoint, the table's rows of the tokens `by` places further on,
 * or of positions instead of ids; 0 outside the text. */
static void embed_tokens(const vn_case *t, const vn_tensor *table, const vn_trial *h, double *x)
{
	const int64_t  D = table->shape.dim[1], V = table->shape.dim[0], rows = t->site->cand.shape.dim[0];
	const int32_t *ids;
	const int64_t  n = vn_recording_tokens(t->opened->cand, &ids, NULL);

	for (int64_t i = 0; i < rows; i++) {
		const int64_t at = t->site->first + i + h->applied.tokens, row = h->finding == VN_FINDING_POSITION_FOR_ID ? at
		                                                                 : at >= 0 && at < n ? ids[at]
		                                                                                     : -1;
		if (row >= 0 && row < V)
			vn_tensor_numbers(table, row * D, D, x + i * D);
		else
			memset(x + i * D, 0, (size_t)D * sizeof *x);
	}
}

vn_status vn_apply_tokens(const vn_case *t, const vn_trial *h, vn_made *made, vn_error *err)
{
	const vn_plan   *p = t->site->plan;
	const vn_node   *node = &p->node[vn_case_node(t)];
	const vn_tensor *table = &made->weights[node->w[0]];
	const vn_shape   s = t->site->cand.shape;
	vn_status        st;

	if (node->op != VN_OP_EMBED || s.rank != 2 || table->shape.dim[1] != s.dim[1])
		return VN_OK; /* the checkpoint is not made from a table by token ids alone */
	if ((st = vn_made_room(t, made, err)))
		return st;
	embed_tokens(t, table, h, (double *)made->fine.data);
	vn_made_round(t, made);
	return VN_OK;
}
