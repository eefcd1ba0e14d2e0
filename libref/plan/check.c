/* check.c: the rules of a plan, in one place for all engines and files: see
 * vn_plan_check and vn_plan_settle in plan.h. */
#include "libref/plan/plan.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of the walk over a plan being checked. */
typedef struct walk {
	const vn_plan *p;
	int           *made, *last; /* (n_values): the node that makes it, the last that reads it; -1 */
	int            states;      /* of the nodes so far */
	vn_error      *err;
} walk;

static bool there(int index, int n)
{
	return index >= 0 && index < n;
}

static const char no_fit[] = "the shapes of its inputs, weights and outputs do not fit together";

__attribute__((format(printf, 3, 4))) static vn_status node_bad(const walk *w, int i, const char *format, ...)
{
	const vn_node *n = &w->p->node[i];
	const bool     op = (unsigned)n->op<VN_N_OPS, named = n->n_out> 0 && n->out[0] >= 0 && n->out[0] < w->p->n_values;
	char           why[256];
	va_list        list;

	va_start(list, format);
	vsnprintf(why, sizeof why, format, list);
	va_end(list);
	return vn_fail(w->err, VN_ERR_UNSUPPORTED, "nodes[%d] (%s%s%s): %s", i, op ? vn_op_name(n->op) : "?",
	               named ? ", " : "", named ? w->p->value[n->out[0]].name : "", why);
}

/* ---- weights and values by themselves ------------------------------------------- */

static bool is_shaped(const vn_value *v, int rank, int a, int b, int c)
{
	const int size[] = { a, b, c };
	return v->rank == rank && memcmp(v->size, size, (size_t)rank * sizeof *size) == 0;
}

static bool same(const vn_value *a, const vn_value *b)
{
	return a->rank == b->rank && memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) == 0;
}

static bool is_state(const vn_value *v, const vn_state *s, int state)
{
	return v->state == state && v->rank == s->rank && memcmp(v->size, s->size, (size_t)s->rank * sizeof *s->size) == 0;
}

/* Elements in a token's row; 0 if another axis is tokens or keys, or if they exceed 2^31. */
static int64_t row(const vn_value *v)
{
	int64_t n = 1;
	if (v->size[0] != VN_T)
		return 0;
	for (int i = 1; i < v->rank; i++) {
		if (v->size[i] < 1 || n > INT32_MAX / v->size[i])
			return 0;
		n *= v->size[i];
	}
	return n;
}

static vn_status check_weights(const vn_plan *p, vn_error *err)
{
	for (int i = 0; i < p->n_weights; i++) {
		const vn_shape *s = &p->weight[i].shape;
		int64_t         n = INT64_MAX / 16; /* the byte count must fit too */

		bool good = memchr(p->weight[i].name, '\0', VN_NAME_MAX) && s->rank >= 0 && s->rank <= VN_PLAN_RANK;
		for (int k = 0; good && k < s->rank; k++) {
			good = s->dim[k] >= 1 && s->dim[k] <= INT32_MAX && s->dim[k] <= n;
			n = good ? n / s->dim[k] : n;
		}
		if (!good)
			return vn_fail(err, VN_ERR_UNSUPPORTED,
			               "weights[%d] (%.*s): its name is not terminated, or its shape is invalid", i,
			               VN_NAME_MAX - 1, p->weight[i].name);
	}
	return VN_OK;
}

static vn_status check_values(const vn_plan *p, vn_error *err)
{
	for (int i = 0; i < p->n_values; i++) {
		const vn_value *v = &p->value[i];
		const char     *why = NULL;

		if (!memchr(v->name, '\0', VN_NAME_MAX) || (unsigned)v->point >= VN_N_POINTS)
			why = "its name is not terminated, or its point is unknown";
		else if (v->layer < -1 || v->layer >= p->layers)
			why = "the model has no such layer";
		else if (v->rank < 1 || v->rank > VN_PLAN_RANK)
			why = "expected 1 to 4 sizes";
		for (int k = 0; !why && k < v->rank; k++)
			if (v->size[k] < 1 && v->size[k] != VN_T && v->size[k] != VN_S)
				why = "a size is neither above 0 nor a number of tokens";
		if (!why && v->alias_of >= 0 && (v->alias_of >= i || !same(v, &p->value[v->alias_of])))
			why = "it is a second name for a later value or one of another shape";
		if (!why && v->alias_of < -1)
			why = "it is a second name for a value that does not exist";
		if (!why && v->state != -1 && (!there(v->state, p->n_states) || p->state[v->state].value != vn_plan_root(p, i)))
			why = "the state that it shows does not exist or belongs to another value";
		if (why)
			return vn_fail(err, VN_ERR_UNSUPPORTED, "values[%d] (%.*s): %s", i, VN_NAME_MAX - 1, v->name, why);
	}
	return VN_OK;
}

/* ---- does a node's sizes and constants fit what it reads and makes ------------------- */

static bool linear_fits(const vn_value *x, const vn_value *y, const vn_shape *w, int transposed, const vn_shape *bias)
{
	return !(transposed & ~1) && w->rank == 2 && row(x) == w->dim[!transposed] && row(y) == w->dim[transposed] &&
	       (y->rank == 2 || y->rank == 3) && (!bias || (bias->rank == 1 && bias->dim[0] == w->dim[transposed]));
}

static bool norm_fits(const vn_value *x, const vn_value *y, const vn_shape *w, const vn_shape *bias)
{
	return row(x) && (!w || (w->rank == 1 && w->dim[0] == x->size[x->rank - 1])) && same(x, y) &&
	       (!bias || vn_shape_equal(bias, w));
}

static bool slice_fits(const vn_value *x, const vn_value *y, int stride, int from, int width)
{
	return row(x) && row(y) && stride >= 1 && row(x) % stride == 0 && from >= 0 && width >= 1 && width <= stride &&
	       from <= stride - width && row(x) / stride * width == row(y);
}

static vn_status check_rope(const walk *w, int i)
{
	const vn_node  *n = &w->p->node[i];
	const vn_value *x = &w->p->value[n->in[0]];
	const int       R = n->c.rope.rope.rotary_dim;

	if (x->rank != 3 || !row(x) || !same(x, &w->p->value[n->out[0]]))
		return node_bad(w, i, no_fit);
	if (R < 2 || R % 2 || R > x->size[2])
		return node_bad(w, i, "rotary_dim is %d, expected an even number from 2 to the head width %d", R, x->size[2]);
	char why[VN_ROPE_WHY];
	return vn_rope_check(&n->c.rope.rope, w->p->list, w->p->n_lists, why) ? VN_OK : node_bad(w, i, "%s", why);
}

static vn_status check_attention(const walk *w, int i)
{
	const vn_plan  *p = w->p;
	const vn_node  *n = &p->node[i];
	const vn_value *q = &p->value[n->in[VN_ATTN_Q]], *k = &p->value[n->in[VN_ATTN_K]], *v = &p->value[n->in[VN_ATTN_V]];
	const vn_value *context = &p->value[n->out[VN_ATTN_CONTEXT]];
	const int       H = n->c.attention.heads, G = n->c.attention.kv_heads, K = n->c.attention.head_dim;

	if (!row(q) || !row(k) || !row(v))
		return node_bad(w, i, no_fit);
	if (H < 1 || G < 1 || K < 1 || H % G || !is_shaped(q, 3, VN_T, H, K) || !is_shaped(k, 3, VN_T, G, K) ||
	    !is_shaped(v, 3, VN_T, G, K) || !same(context, q) ||
	    (n->n_in > VN_ATTN_KEPT && !same(&p->value[n->in[VN_ATTN_KEPT]], k)))
		return node_bad(w, i, "%d heads and %d key heads of width %d do not fit the shapes of its inputs", H, G, K);
	if (context->on_demand)
		return node_bad(w, i, "its context is computed only on demand, so keys and values would not be cached");
	for (int s = VN_ATTN_SCORES; s <= VN_ATTN_PROBS; s++)
		if (n->out[s] >= 0 && (!is_shaped(&p->value[n->out[s]], 3, H, VN_T, VN_S) || !p->value[n->out[s]].on_demand))
			return node_bad(w, i, "its scores or probabilities have the wrong shape or are not computed on demand");
	if (!isfinite(n->c.attention.scale) || (n->c.attention.causal & ~1) || n->c.attention.window < 0)
		return node_bad(w, i, "invalid scale %g, causal %d or window %d", n->c.attention.scale, n->c.attention.causal,
		                n->c.attention.window);
	if ((unsigned)n->x.attention.head_map >= VN_N_HEAD_MAPS || (unsigned)n->x.attention.leak > 2 ||
	    n->x.attention.padding < 0 || (unsigned)n->x.attention.blind > 2 || abs(n->x.attention.ahead) > 1 << 24 ||
	    (n->x.attention.from_zero & ~1) || (unsigned)n->x.attention.form >= VN_N_ATTN_FORMS)
		return node_bad(w, i, "invalid head_map %d, leak %d, padding %d, ahead %d, blind %d, from_zero %d or form %d",
		                n->x.attention.head_map, n->x.attention.leak, n->x.attention.padding, n->x.attention.ahead,
		                n->x.attention.blind, n->x.attention.from_zero, n->x.attention.form);
	if ((n->x.attention.again & ~1) ||
	    (n->x.attention.again &&
	     (n->n_in <= VN_ATTN_KEPT || p->node[p->value[n->in[VN_ATTN_KEPT]].node].op != VN_OP_ROPE)))
		return node_bad(w, i, "invalid again %d: it must be 0, or 1 if the cached keys are the output of a RoPE",
		                n->x.attention.again);
	if ((unsigned)n->x.attention.cache >= VN_N_CACHE_FORMS ||
	    n->x.attention.cache_block < (n->x.attention.cache != 0) || n->x.attention.cache_block > 1 << 24 ||
	    (unsigned)n->x.attention.cache_of > (n->x.attention.cache == VN_CACHE_SEEN ? 0 : 2) ||
	    (n->x.attention.cache_steps & ~1))
		return node_bad(w, i, "invalid cache %d, cache_block %d, cache_of %d or cache_steps %d", n->x.attention.cache,
		                n->x.attention.cache_block, n->x.attention.cache_of, n->x.attention.cache_steps);
	return VN_OK;
}

/* Checks that a node's states are those derived from it, fit into memory, and match the values that show them. */
static vn_status check_states(walk *w, int i)
{
	const vn_plan *p = w->p;
	const vn_node *n = &p->node[i];
	vn_state       s[VN_MAX_STATE];

	if (n->n_state != vn_node_states(p, i, s) || n->n_state > p->n_states - w->states)
		return node_bad(w, i, "its states differ from those that its operation keeps");
	for (int k = 0; k < n->n_state; k++, w->states++) {
		const vn_state *a = &p->state[w->states], *b = &s[k];
		int64_t         room = INT64_MAX / 16 / (b->input >= 0 ? p->context + 1LL : 1);
		if (n->state[k] != w->states || a->node != b->node || a->value != b->value || a->input != b->input ||
		    a->wide != b->wide || a->rank != b->rank ||
		    memcmp(a->size, b->size, (size_t)b->rank * sizeof *b->size) != 0)
			return node_bad(w, i, "its states differ from those that its operation keeps");
		for (int d = b->input >= 0; d < b->rank; d++) {
			room = b->size[d] < 1 ? 0 : room / b->size[d];
			if (room < 1)
				return node_bad(w, i, "its state for %d tokens is too large to address", p->context);
		}
		if (b->value >= 0 && !is_state(&p->value[b->value], b, w->states))
			return node_bad(w, i, "%s does not have the shape of the state that it shows", p->value[b->value].name);
	}
	return VN_OK;
}

static bool conv_fits(const vn_node *n, const vn_value *x, const vn_value *y, const vn_shape *w)
{
	const int X = n->c.conv.channels, J = n->c.conv.taps;

	return X > 0 && J > 1 && n->x.conv.linear >= 0 && n->x.conv.linear <= X && !(n->x.conv.forgets & ~1) &&
	       n->x.conv.ahead >= 0 && n->x.conv.ahead <= 65536 && is_shaped(x, 2, VN_T, X, 0) && same(x, y) &&
	       w->rank == 3 && w->dim[0] == X && w->dim[1] == 1 && w->dim[2] == J;
}

static vn_status check_delta_rule(const walk *w, int i)
{
	const vn_node  *n = &w->p->node[i];
	const vn_value *in[5], *y = &w->p->value[n->out[0]];
	const int       nk = n->c.delta.key_heads, nv = n->c.delta.value_heads, dk = n->c.delta.key_dim,
			  dv = n->c.delta.value_dim;

	for (int k = 0; k < 5; k++)
		if (!row(in[k] = &w->p->value[n->in[k]]))
			return node_bad(w, i, no_fit);
	if (nk < 1 || nv < 1 || dk < 1 || dv < 1 || nv % nk || !is_shaped(in[VN_DELTA_Q], 3, VN_T, nk, dk) ||
	    !is_shaped(in[VN_DELTA_K], 3, VN_T, nk, dk) || !is_shaped(in[VN_DELTA_V], 3, VN_T, nv, dv) ||
	    !is_shaped(in[VN_DELTA_G], 2, VN_T, nv, 0) || !is_shaped(in[VN_DELTA_BETA], 2, VN_T, nv, 0) ||
	    !same(in[VN_DELTA_V], y))
		return node_bad(w, i,
		                "%d key heads of width %d and %d value heads of width %d do not fit the shapes of its inputs",
		                nk, dk, nv, dv);
	if (!isfinite(n->c.delta.scale))
		return node_bad(w, i, "scale is %g, expected a finite number", n->c.delta.scale);
	if ((unsigned)n->x.delta.form >= VN_N_DELTA_FORMS || (unsigned)n->x.delta.head_map > VN_HEADS_MODULO ||
	    n->x.delta.restart < 0 || (n->x.delta.turned & ~1))
		return node_bad(w, i, "invalid form %d, head_map %d or restart %d", n->x.delta.form, n->x.delta.head_map,
		                n->x.delta.restart);
	return VN_OK;
}

static vn_status check_norm(const walk *w, int i, const vn_shape *bias)
{
	const vn_plan  *p = w->p;
	const vn_node  *n = &p->node[i];
	const vn_value *x = &p->value[n->in[0]], *y = &p->value[n->out[0]];
	const vn_shape *m = n->n_w ? &p->weight[n->w[0]].shape : NULL;
	const int       width = n->x.norm.width;

	if (!norm_fits(x, y, m, bias) || (n->n_in > 1 && !same(x, &p->value[n->in[1]])))
		return node_bad(w, i, no_fit);
	if (!(isfinite(n->c.norm.eps) && n->c.norm.eps >= 0.0))
		return node_bad(w, i, "eps is %g, expected a finite number of at least 0", n->c.norm.eps);
	if (!isfinite(n->c.norm.offset))
		return node_bad(w, i, "offset is %g, expected a finite number", n->c.norm.offset);
	if ((n->x.norm.eps_outside & ~1) || (n->x.norm.keep_mean & ~1) || (n->x.norm.gate_first & ~1) ||
	    n->x.norm.divisor < 0 || (n->x.norm.sum_f16 & ~1) || (n->x.norm.first_f16 & ~1))
		return node_bad(w, i, "invalid eps_outside %d, keep_mean %d or divisor %d", n->x.norm.eps_outside,
		                n->x.norm.keep_mean, n->x.norm.divisor);
	if (n->op == VN_OP_GATED_NORM && n->x.norm.gate != VN_SILU && n->x.norm.gate != VN_SIGMOID)
		return node_bad(w, i, "unknown activation");
	if (width && (n->op != VN_OP_RMS_NORM || width < 1 || row(x) % width || width % x->size[x->rank - 1]))
		return node_bad(w, i, "its input cannot be normed in groups of %d columns", width);
	return VN_OK;
}

static vn_status fits(const walk *w, int i)
{
	const vn_plan  *p = w->p;
	const vn_node  *n = &p->node[i];
	const vn_value *x = n->n_in ? &p->value[n->in[0]] : NULL, *y = &p->value[n->out[0]];
	const vn_shape *m = n->n_w ? &p->weight[n->w[0]].shape : NULL;
	const vn_shape *bias = n->n_w > 1 && n->w[1] >= 0 ? &p->weight[n->w[1]].shape : NULL;
	bool            good = false;

	switch (n->op) {
	case VN_OP_EMBED: good = m->rank == 2 && m->dim[0] >= p->vocab && is_shaped(y, 2, VN_T, (int)m->dim[1], 0); break;
	case VN_OP_POSITIONS:
		good = m->rank == 2 && m->dim[0] >= p->context && is_shaped(y, 2, VN_T, (int)m->dim[1], 0) &&
		       !(n->x.positions.step_zero & ~1);
		break;
	case VN_OP_RMS_NORM:
	case VN_OP_LAYER_NORM:
	case VN_OP_L2_NORM:
	case VN_OP_GATED_NORM: return check_norm(w, i, bias);
	case VN_OP_LINEAR: good = linear_fits(x, y, m, n->c.linear.transposed, bias); break;
	case VN_OP_SLICE: good = slice_fits(x, y, n->c.slice.stride, n->c.slice.from, n->c.slice.width); break;
	case VN_OP_ROPE: return check_rope(w, i);
	case VN_OP_ATTENTION: return check_attention(w, i);
	case VN_OP_ACT: good = row(x) && same(x, y); break;
	case VN_OP_CAUSAL_CONV: good = conv_fits(n, x, y, m); break;
	case VN_OP_LOG_DECAY:
		good = row(x) && (unsigned)n->x.decay.form < VN_N_DECAY_FORMS && m->rank == 1 &&
		       is_shaped(x, 2, VN_T, (int)m->dim[0], 0) && vn_shape_equal(m, &p->weight[n->w[1]].shape) && same(x, y);
		break;
	case VN_OP_DELTA_RULE: return check_delta_rule(w, i);
	case VN_OP_ROWS:
		good = row(x) && row(x) == row(&p->value[n->in[1]]) && same(x, y);
		if (good && ((unsigned)n->c.rows.form >= VN_N_ROWS_FORMS || abs(n->c.rows.by) > 1 << 24 ||
		             (n->c.rows.form == VN_ROWS_TILES && n->c.rows.by < 1) ||
		             (n->c.rows.form == VN_ROWS_ROUND && (n->c.rows.by < 0 || n->c.rows.by >= row(x))) ||
		             (n->c.rows.form == VN_ROWS_PARTS_FIRST && (n->c.rows.inner < 1 || row(x) % n->c.rows.inner))))
			return node_bad(w, i, "invalid form %d, by %d or inner %d", n->c.rows.form, n->c.rows.by, n->c.rows.inner);
		break;
	case VN_OP_GATED:
	case VN_OP_ADD: good = row(x) && same(x, &p->value[n->in[1]]) && same(x, y); break;
	case VN_N_OPS: break;
	}
	if (good && (n->op == VN_OP_ACT || n->op == VN_OP_GATED) && (unsigned)n->c.act.act >= VN_N_ACTS)
		return node_bad(w, i, "unknown activation");
	if (good && (n->op == VN_OP_ACT || n->op == VN_OP_GATED) &&
	    (unsigned)n->x.gated.form >= (n->op == VN_OP_GATED ? VN_N_GATE_FORMS : 1u))
		return node_bad(w, i, "unknown form of a gated product");
	return good ? VN_OK : node_bad(w, i, no_fit);
}

/* ---- what is there and made when ------------------------------------------------------- */

static vn_status connect(walk *w, int i)
{
	const vn_plan *p = w->p;
	const vn_node *n = &p->node[i];

	if ((unsigned)n->op >= VN_N_OPS || n->layer < -1 || n->layer >= p->layers)
		return node_bad(w, i, "unknown operation, or the model has no such layer");
	const vn_op_info *o = vn_op_get(n->op);
	if ((n->n_in != o->n_in && !(n->op == VN_OP_ATTENTION && n->n_in == VN_ATTN_KEPT + 1)) || n->n_w != o->n_w ||
	    n->n_out != o->n_out)
		return node_bad(w, i, "wrong number of inputs, weights or outputs for its operation");
	for (int j = 0; j < n->n_w; j++)
		if (n->w[j] < (j < o->must_w ? 0 : -1) || n->w[j] >= p->n_weights)
			return node_bad(w, i, "a weight is missing");
	for (int j = 0; j < n->n_in; j++) {
		const int v = n->in[j];
		if (v < 0 || v >= p->n_values || p->value[v].alias_of >= 0 || w->made[v] < 0)
			return node_bad(w, i, "an input does not exist, is a second name, or is computed by a later node");
		if (p->value[v].on_demand || p->value[v].state != -1)
			return node_bad(w, i, "an input is computed only on demand, or shows a state");
		w->last[v] = i;
	}
	for (int j = 0; j < n->n_out; j++) {
		const int v = n->out[j];
		if (v == -1 && j > 0)
			continue;
		if (v < 0 || v >= p->n_values || p->value[v].alias_of >= 0 || w->made[v] >= 0)
			return node_bad(w, i, "an output does not exist, is a second name, or is computed twice");
		w->made[v] = i;
	}
	const vn_status st = fits(w, i);
	return st ? st : check_states(w, i);
}

vn_status vn_plan_check(const vn_plan *p, vn_error *err)
{
	walk      w = { .p = p, .err = err };
	vn_status st;

	if (p->n_nodes < 0 || p->n_values < 0 || p->n_weights < 0 || p->layers < 0 || p->vocab < 0 || p->context < 0 ||
	    p->n_states < 0 || p->n_lists < 0)
		return vn_fail(err, VN_ERR_UNSUPPORTED,
		               "a count is negative: layers %d, vocab %d, context %d, states %d, nodes %d", p->layers, p->vocab,
		               p->context, p->n_states, p->n_nodes);
	if ((st = check_weights(p, err)) || (st = check_values(p, err)))
		return st;
	w.made = malloc(((size_t)p->n_values + 1) * sizeof *w.made);
	w.last = malloc(((size_t)p->n_values + 1) * sizeof *w.last);
	if (!w.made || !w.last) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a plan of %d nodes", p->n_nodes);
		goto done;
	}
	for (int v = 0; v < p->n_values; v++)
		w.made[v] = w.last[v] = -1;
	for (int i = 0; !st && i < p->n_nodes; i++)
		st = connect(&w, i);
	if (!st && w.states != p->n_states)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "states[%d]: no node keeps this state", w.states);
	for (int v = 0; !st && v < p->n_values; v++) {
		const vn_value *x = &p->value[v], *of = &p->value[x->alias_of >= 0 ? x->alias_of : v];
		const int       by = x->alias_of < 0 ? w.made[v] : of->node;
		if (x->alias_of < 0 && w.made[v] < 0)
			st = vn_fail(err, VN_ERR_UNSUPPORTED, "values[%d] (%s): no node computes this value", v, x->name);
		else if (x->last_use != w.last[v] || x->node != by || x->slot != of->slot || x->state != of->state ||
		         x->wide != of->wide || !there(x->slot, p->node[by].n_out) ||
		         p->node[by].out[x->slot] != vn_plan_root(p, v))
			st = vn_fail(err, VN_ERR_UNSUPPORTED,
			             "values[%d] (%s): the node recorded as computing it, or as its last reader, is the wrong one",
			             v, x->name);
	}
done:
	free(w.made);
	free(w.last);
	return st;
}

/* ---- what follows from the rest --------------------------------------------------------- */

/* Derives the rest of a plan. Checks indices only as far as needed to stay inside arrays; vn_plan_check checks
 * everything else. state: room for VN_MAX_STATE for each node. */
static void derive(vn_plan *p, vn_state *state)
{
	for (int v = 0; v < p->n_values; v++)
		p->value[v].node = p->value[v].slot = p->value[v].state = p->value[v].last_use = -1;
	free(p->state);
	p->state = state;
	p->n_states = 0;
	for (int i = 0; i < p->n_nodes; i++) {
		vn_node         *n = &p->node[i];
		const vn_op_info a = (unsigned)n->op < VN_N_OPS ? *vn_op_get(n->op) : (vn_op_info) { 0 };

		while (n->n_w < a.n_w && n->n_w >= a.must_w)
			n->w[n->n_w++] = -1;
		while (n->n_out < a.n_out && n->n_out >= 1)
			n->out[n->n_out++] = -1;
		for (int j = 0; j < n->n_in && j < VN_MAX_IN; j++)
			if (there(n->in[j], p->n_values))
				p->value[n->in[j]].last_use = i;
		for (int j = 0; j < n->n_out && j < VN_MAX_OUT; j++)
			if (there(n->out[j], p->n_values)) {
				p->value[n->out[j]].node = i;
				p->value[n->out[j]].slot = j;
			}
		n->n_state = vn_node_states(p, i, state + p->n_states);
		for (int k = 0; k < n->n_state; k++, p->n_states++) {
			n->state[k] = p->n_states;
			if (there(state[p->n_states].value, p->n_values))
				p->value[state[p->n_states].value].state = p->n_states;
		}
	}
	for (int v = 0; v < p->n_values; v++)
		if (there(p->value[v].alias_of, v)) {
			p->value[v].node = p->value[p->value[v].alias_of].node;
			p->value[v].slot = p->value[p->value[v].alias_of].slot;
			p->value[v].state = p->value[p->value[v].alias_of].state;
		}
}

vn_status vn_plan_settle(vn_plan *p, vn_error *err)
{
	const size_t n = p->n_nodes > 0 ? (size_t)p->n_nodes : 0;
	vn_state    *state = malloc((n * VN_MAX_STATE + 1) * sizeof *state);

	if (!state)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the states of %d nodes", p->n_nodes);
	derive(p, state);
	return vn_plan_check(p, err);
}
