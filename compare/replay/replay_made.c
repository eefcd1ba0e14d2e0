/* replay_made.c: the engines of a replay, and the numbers that a node produces. */
#include "compare/replay/replay_state.h"

#include "libref/base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Logits are larger than everything else together, and two engines produce them. */
enum { LARGE = 64 << 20 };

void vn_node_output_free(vn_node_output *m)
{
	if (!m->large.data)
		free(m->data);
	vn_scratch_end(&m->large);
	m->data = NULL;
	m->room = 0;
}

/* Room for all of m->t, when it is known that it is not borrowed. */
static void make_room(vn_node_output *m)
{
	const size_t bytes = (size_t)vn_shape_count(&m->t.shape) * vn_dtype_size(m->t.dtype);

	if (bytes > m->room) {
		vn_node_output_free(m);
		m->data = bytes >= LARGE && vn_scratch_make(&m->large, bytes) ? m->large.data : vn_alloc(bytes, 1);
		m->room = bytes;
	}
	m->t.data = m->data;
}

static vn_status take_begin(void *context, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_replay_engine *e = context;
	vn_node_output   *m = &e->out[e->n_out];
	(void)err;
	m->value = value;
	m->t = (vn_tensor) { dtype, *shape, NULL };
	m->have = 0;
	return VN_OK;
}

static vn_status take_write(void *context, const void *data, size_t elements, vn_error *err)
{
	vn_replay_engine *e = context;
	vn_node_output   *m = &e->out[e->n_out];
	const size_t      bytes = elements * vn_dtype_size(m->t.dtype);
	(void)err;
	make_room(m);
	if (m->have + bytes <= m->room) {
		if (m->large.data)
			vn_scratch_write(&m->large, m->have, data, bytes);
		else
			memcpy(m->data + m->have, data, bytes);
		m->have += bytes;
	}
	return VN_OK;
}

/* A place in memory for a large tensor. A file is faster to write than to touch page by page. */
static void *take_place(void *context, size_t elements)
{
	vn_replay_engine *e = context;
	vn_node_output   *m = &e->out[e->n_out];
	const size_t      from = m->have, bytes = elements * vn_dtype_size(m->t.dtype);

	make_room(m);
	if (m->large.data || from + bytes > m->room)
		return NULL;
	m->have += bytes;
	return m->data + from;
}

/* Borrows a value where it is, unless the node is run again while its outputs are still needed
 * (replay_variants.c). */
static bool take_lent(void *context, const void *data, size_t elements)
{
	vn_replay_engine *e = context;
	vn_node_output   *m = &e->out[e->n_out];

	if (e->keeps || (e->last && e->last[m->value]))
		return false;
	m->t.data = data;
	m->have = elements * vn_dtype_size(m->t.dtype);
	return true;
}

/* Moves the last row to the front. */
static void keep_last(vn_node_output *m)
{
	const int64_t rows = m->t.shape.rank ? m->t.shape.dim[0] : 0;
	const size_t  row = rows > 1 ? m->have / (size_t)rows : 0;

	if (!row)
		return;
	if (m->large.data)
		vn_scratch_write(&m->large, 0, m->data + m->have - row, row);
	else
		memcpy(m->data, m->data + m->have - row, row);
	m->t.shape.dim[0] = 1;
	m->have = row;
}

static vn_status take_end(void *context, vn_error *err)
{
	vn_replay_engine *e = context;
	(void)err;
	if (e->last && e->last[e->out[e->n_out].value])
		keep_last(&e->out[e->n_out]);
	e->n_out += e->n_out < VN_MAX_OUT + 1;
	return VN_OK;
}

vn_sink vn_replay_sink(vn_replay_engine *e)
{
	return (vn_sink) {
		.ctx = e, .begin = take_begin, .write = take_write, .end = take_end, .place = take_place, .lend = take_lent
	};
}

const vn_node_output *vn_replay_made(const vn_replay_engine *e, int value)
{
	for (int i = 0; i < e->n_out; i++)
		if (e->out[i].value == value)
			return &e->out[i];
	return NULL;
}

/* ---- the engines ----------------------------------------------------------------------------- */

void vn_replay_engine_close(vn_replay_engine *e)
{
	vn_ref_ops.destroy(e->ref);
	e->ref = NULL;
	for (size_t i = 0; i < sizeof e->out / sizeof *e->out; i++)
		vn_node_output_free(&e->out[i]);
}

vn_status vn_replay_engine_begin(vn_replay_engine *e, const vn_step *step, const int32_t *ids, const bool *want,
                                 vn_error *err)
{
	const int64_t first = step->position + step->first_row;

	e->taps = (vn_taps) {
		.want = want, .rows = VN_ROWS_RANGE, .first = first, .last = first + step->rows - 1, .sink = vn_replay_sink(e)
	};
	return vn_ref_ops.begin(e->ref, ids + step->position, step->tokens, want ? &e->taps : NULL, err);
}

bool vn_replay_no_place(const vn_plan *plan, int value)
{
	const vn_value *v = &plan->value[value];
	return v->on_demand || vn_value_streams(plan, value) || (v->state >= 0 && plan->state[v->state].input >= 0);
}
