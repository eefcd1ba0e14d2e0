/* apply_recorded.c: see trial_apply.h. */
#include "compare/trial/trial_apply.h"

#include "libref/base/alloc.h"

#include <stdlib.h>
#include <string.h>

bool vn_run_slots(const vn_case *t, const vn_plan *p, int of, const int64_t *token, vn_made *made)
{
	const int64_t *const both[2] = { of == 2 ? NULL : token, of == 1 ? NULL : token };
	vn_error            *err = vn_case_error(t);

	return vn_case_made(t, vn_recompute_run_slots(t->recompute, p, both, VN_OWN_WIDTH, &made->own, err)) &&
	       vn_case_made(t, vn_recompute_run_slots(t->recompute, p, both, VN_FINE_WIDTH, &made->fine, err));
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
	const int64_t written = j - c->by;

	return written >= from && written < S ? written : j < from ? j : -1;
}

void vn_apply_slots(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const vn_plan *p = t->site->plan;
	const bool     blocks = h->applied.kind == VN_BY_BLOCKS;
	const int64_t  S = t->site->tokens;
	const vn_step *step;
	const int      steps = vn_recording_steps(t->opened->cand, &step),
			  of = blocks ? h->applied.blocks.of : h->applied.slots.of;

	if (t->part || p->node[h->node].op != VN_OP_ATTENTION || vn_case_node(t) != h->node ||
	    (blocks ? p->node[h->node].out[VN_ATTN_CONTEXT] != t->site->target : steps < 2))
		return;
	VN_FREED int64_t *token = vn_alloc((size_t)S, sizeof *token);
	for (int64_t j = 0; j < S; j++)
		token[j] = blocks ? token_of(&h->applied.blocks, j, S)
		                  : token_in_slot(&h->applied.slots, j, h->applied.slots.newest ? S - 1 : step[1].position, S);
	vn_run_slots(t, p, of, token, made);
}

void vn_apply_state(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const vn_other_state *state = &h->applied.state;
	vn_error             *err = vn_case_error(t);

	if (vn_case_node(t) == h->node &&
	    !(vn_case_made(t, vn_recompute_run_state(t->recompute, state, VN_OWN_WIDTH, &made->own, err)) &&
	      vn_case_made(t, vn_recompute_run_state(t->recompute, state, VN_FINE_WIDTH, &made->fine, err))))
		vn_made_finish(made);
}

/* The same checkpoint, with the same shape, in the step before. -1: none. */
static int point_before(const vn_case *t, int point)
{
	const vn_opened     *o = t->opened;
	const vn_result     *r = t->result;
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

static bool same_bits(const vn_case *t, int a, int b)
{
	vn_recording *cand = t->opened->cand;
	const int     entry[] = { t->result->checkpoints.of[a].cand, t->result->checkpoints.of[b].cand };
	bool          same = false;
	vn_tensor     x, y;

	if (!vn_case_made(t, vn_entry_tensor(cand, entry[0], &x, vn_case_error(t))))
		return false;
	if (vn_case_made(t, vn_entry_tensor(cand, entry[1], &y, vn_case_error(t)))) {
		same = x.dtype == y.dtype &&
		       memcmp(x.data, y.data, vn_dtype_bytes(x.dtype, (size_t)vn_shape_count(&x.shape))) == 0;
		vn_recording_release(cand, entry[1]);
	}
	vn_recording_release(cand, entry[0]);
	return same;
}

/* A stale value is that of a step in which it was right, maybe some steps ago. If it never
 * was, one mistake makes the same numbers in each of these steps (as a query that sees the
 * first key alone). */
static bool was_right(const vn_case *t, int point)
{
	while (vn_local_beyond(&t->result->checkpoints.of[point])) {
		const int before = point_before(t, point);
		if (before < 0 || !same_bits(t, point, before))
			return false;
		point = before;
	}
	return true;
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

static void apply_recorded(const vn_case *t, int point, vn_made *made)
{
	const int entry = t->result->checkpoints.of[point].cand;
	vn_tensor x;

	if (!vn_case_made(t, vn_entry_tensor(t->opened->cand, entry, &x, vn_case_error(t))))
		return;
	double *copy = vn_case_all_doubles_of(&x);
	if (vn_shape_equal(&x.shape, &t->site->cand.shape) && !is_one_number(copy, vn_shape_count(&x.shape)))
		made->own = made->fine = (vn_tensor) { VN_F64, x.shape, copy };
	else
		free(copy);
	vn_recording_release(t->opened->cand, entry);
}

/* What the operation should have made at another point: moves the recomputation there and back. */
static void apply_due(const vn_case *t, int point, vn_made *made)
{
	const bool all = vn_case_at(t, point) && vn_case_run(t, t->site->plan, made->weights, VN_OWN_WIDTH, &made->own) &&
	                 vn_case_run(t, t->site->plan, made->weights, VN_FINE_WIDTH, &made->fine);

	if (!vn_case_at(t, t->x->checkpoint) || !all || !vn_shape_equal(&made->own.shape, &t->site->cand.shape))
		vn_made_finish(made);
}

void vn_apply_step(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const int before = point_before(t, t->x->checkpoint);

	if (before >= 0 && h->applied.step.due)
		apply_due(t, before, made);
	else if (before >= 0 && was_right(t, before))
		apply_recorded(t, before, made);
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

void vn_apply_tokens(const vn_case *t, const vn_trial *h, vn_made *made)
{
	const vn_plan   *p = t->site->plan;
	const vn_node   *node = &p->node[vn_case_node(t)];
	const vn_tensor *table = &made->weights[node->w[0]];
	const vn_shape   s = t->site->cand.shape;

	if (node->op != VN_OP_EMBED || s.rank != 2 || table->shape.dim[1] != s.dim[1])
		return; /* the checkpoint is not made from a table by token ids alone */
	vn_made_room(t, made);
	embed_tokens(t, table, h, (double *)made->fine.data);
	vn_made_round(t, made);
}
