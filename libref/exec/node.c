/* node.c: one node of a call: gather its inputs, evaluate, hand over what is tapped. */
#include "libref/exec/convert.h"
#include "libref/exec/ref_internal.h"

#include "libref/base/room.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 256 << 20, /* bytes of one piece of a streamed value */
	SCORE_ROWS = 64    /* rows of attention scores that a thread computes at a time */
};

void vn_ref_round_cache(const vn_state *s, vn_policy policy, void *rows, int64_t tokens, int threads)
{
	const vn_role_format of = policy.role[VN_ROLE_CACHE];
	const bool           channels = of == VN_ROLE_INT8_CHANNEL && s->input == VN_ATTN_K;
	/* q8_0: blocks may go on from head to head; rotated: llama.cpp's matrix for values is small */
	const int64_t        all = vn_state_row(s), head = s->size[s->rank - 1],
				  n = of == VN_ROLE_Q8_0 || of == VN_ROLE_INT8_TOKEN || channels              ? all
	                  : of == VN_ROLE_Q8_0_ROTATED && s->input == VN_ATTN_V && head % 64 == 0 ? 64
	                                                                                          : head;
	const vn_role_format f = of == VN_ROLE_INT8_TOKEN || (of == VN_ROLE_INT8_CHANNEL && !channels) ? VN_ROLE_INT8 : of;

	if (!f)
		return;
	vn_eval_for(policy)->round(rows, tokens * all / n, n, f,
	                           policy.role[VN_OTHER_TIES] && (f == VN_ROLE_INT8 || f == VN_ROLE_Q8_0 || channels),
	                           threads);
	/* read back in 16 bits; not by the more precise run, which measures the floor */
	if (policy.storage == VN_F16 || policy.storage == VN_BF16)
		vn_round_f32(rows, policy.storage, (size_t)(tokens * all));
}

static void append_rows(vn_ref *r, int state, const void *rows)
{
	void *to = vn_states_append(&r->states, state, rows);

	if (!r->policy.role[VN_CACHE_OF_PROMPT] || r->position == 0)
		vn_ref_round_cache(&r->plan->state[state], r->policy, to, r->call.tokens, r->threads);
}

/* Values such as keys are appended to those of earlier calls at once, where attention reads them.
 * Later calls then have them even if another engine computes this call's attention. */
void vn_ref_placed(vn_ref *r, int value)
{
	const vn_value *v = &r->plan->value[value];

	r->holder[r->slots.slot[value]] = value;
	for (int i = v->node + 1; i <= v->last_use; i++) {
		const vn_node *n = &r->plan->node[i];
		for (int k = 0; k < n->n_state; k++) {
			const int from = r->plan->state[n->state[k]].input;
			if (from >= 0 && n->in[from] == value)
				append_rows(r, n->state[k], vn_ref_at(r, value));
		}
	}
}

vn_status vn_ref_interrupted(const vn_ref *r, vn_error *err)
{
	return r->stop && r->stop(r->stop_ctx) ? vn_fail(err, VN_ERR_INTERRUPTED, "interrupted") : VN_OK;
}

/* ---- taps ------------------------------------------------------------------------ */

static bool is_wanted(const vn_taps *t, int value)
{
	return t && value >= 0 && t->want[value];
}

static vn_status write_values(vn_ref *r, const vn_taps *t, vn_dtype as, const void *data, int64_t n, vn_error *err)
{
	void     *to = t->sink.place ? t->sink.place(t->sink.ctx, (size_t)n) : NULL;
	vn_status st = VN_OK;

	if (to) {
		vn_convert(to, as, data, r->eval->width, (size_t)n, r->threads); /* exact: already rounded */
		return VN_OK;
	}
	if (as == r->eval->width)
		return n ? t->sink.write(t->sink.ctx, data, (size_t)n, err) : VN_OK;
	for (int64_t i = 0; !st && i < n; i += VN_REF_CONVERT) {
		int64_t m = n - i < VN_REF_CONVERT ? n - i : VN_REF_CONVERT;
		vn_convert(r->convert, as, (const float *)data + i, VN_F32, (size_t)m, r->threads); /* exact, too */
		st = t->sink.write(t->sink.ctx, r->convert, (size_t)m, err);
	}
	return st;
}

static vn_dtype stored_as(const vn_ref *r, int value)
{
	return vn_policy_dtype(r->policy, vn_value_wide(r->plan, value));
}

static vn_status announce_value(vn_ref *r, const vn_taps *t, int value, int64_t rows, int64_t keys, vn_error *err)
{
	const vn_shape s = vn_value_shape(&r->plan->value[value], rows, keys);
	return t->sink.begin(t->sink.ctx, value, stored_as(r, value), &s, err);
}

/* Hands over a value (T, ...) that is complete in memory. */
static vn_status hand_over(vn_ref *r, const vn_taps *t, int value, vn_error *err)
{
	const int64_t  row = vn_value_row(&r->plan->value[value]);
	const vn_dtype as = stored_as(r, value);
	int64_t        first, count;
	vn_status      st;

	vn_taps_select(t, r->position, r->call.tokens, &first, &count);
	if (count == 0)
		return VN_OK;
	const char *data = (const char *)vn_ref_at(r, value) + (size_t)(first * row) * r->size;
	const bool  lends = t->sink.lend && as == r->eval->width;
	if ((st = announce_value(r, t, value, count, 0, err)) ||
	    (!(lends && t->sink.lend(t->sink.ctx, data, (size_t)(count * row))) &&
	     (st = write_values(r, t, as, data, count * row, err))))
		return st;
	return t->sink.end(t->sink.ctx, err);
}

/* Hands over the states that a node's outputs show: the growing ones, or the others. */
static vn_status hand_over_states(vn_ref *r, const vn_taps *t, const vn_node *n, bool growing, vn_error *err)
{
	vn_status st = VN_OK;

	for (int k = 0; k < n->n_state && !st; k++) {
		const vn_state *s = &r->plan->state[n->state[k]];
		int64_t         first, count, all;
		if (!is_wanted(t, s->value) || (s->input >= 0) != growing)
			continue;
		vn_taps_select(t, r->position, r->call.tokens, &first, &count);
		if (count == 0)
			continue;
		const void *now = vn_states_see(&r->states, n->state[k], &all);
		if ((st = announce_value(r, t, s->value, 0, r->position + r->call.tokens, err)) ||
		    (st = write_values(r, t, vn_policy_dtype(r->policy, s->wide), now, all, err)))
			break;
		st = t->sink.end(t->sink.ctx, err);
	}
	return st;
}

/* Hands over scores or probabilities (H,T,S), computed a few rows at a time. */
static vn_status hand_over_rows(vn_ref *r, const vn_taps *t, const vn_node *n, const vn_args *a, int slot,
                                vn_error *err)
{
	const int64_t S = a->past + a->tokens, step = (int64_t)SCORE_ROWS * r->threads;
	int64_t       first, count;
	vn_status     st;

	vn_taps_select(t, a->past, a->tokens, &first, &count);
	if (count == 0)
		return VN_OK;
	char *rows = malloc((size_t)(step * S) * r->size);
	if (!rows)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for attention rows over %" PRId64 " keys", S);
	st = announce_value(r, t, n->out[slot], count, S, err);
	for (int64_t h = 0; !st && h < n->c.attention.heads; h++)
		for (int64_t i = 0; !st && i < count; i += step) {
			const int64_t here = count - i < step ? count - i : step;
			bool          good = true;
#pragma omp parallel for num_threads(here > SCORE_ROWS ? r->threads : 1) reduction(&& : good)
			for (int64_t j = 0; j < here; j += SCORE_ROWS)
				good = !r->eval->rows(
						   n, a,
						   (vn_score_rows) { slot, h, first + i + j, here - j < SCORE_ROWS ? here - j : SCORE_ROWS },
						   rows + (size_t)(j * S) * r->size, NULL) &&
				       good;
			st = !good ? vn_fail(err, VN_ERR_NOMEM, "no memory for attention rows over %" PRId64 " keys", S)
			           : write_values(r, t, r->policy.storage, rows, here * S, err);
		}
	st = st ? st : t->sink.end(t->sink.ctx, err);
	free(rows);
	return st;
}

/* ---- nodes --------------------------------------------------------------------------- */

/* Rows of a call, one per token: n from `first` on. */
typedef struct token_rows {
	int64_t first, n;
} token_rows;

/* Hands over those rows of a piece, which holds the rows `held`, that are selected. */
static vn_status write_piece(vn_ref *r, int value, const char *piece, token_rows held, token_rows selected,
                             vn_error *err)
{
	const int64_t row = vn_value_row(&r->plan->value[value]), end = selected.first + selected.n - held.first;
	const int64_t from = selected.first > held.first ? selected.first - held.first : 0,
				  to = end < held.n ? end : held.n;

	return selected.n && to > from ? write_values(r, r->call.taps, stored_as(r, value),
	                                              piece + (size_t)(from * row) * r->size, (to - from) * row, err)
	                               : VN_OK;
}

/* Room for one piece of a streamed value; NULL without memory. */
static char *piece_of(vn_ref *r, size_t bytes)
{
	if (bytes > r->piece_bytes) {
		free(r->piece);
		r->piece = vn_room_large(bytes);
		r->piece_bytes = r->piece ? bytes : 0;
	}
	return r->piece;
}

/* Streams the first output of a node: hands over rows in pieces as they are computed. also: an
 * engine that shares the node, or NULL. */
static vn_status run_in_pieces(vn_ref *r, vn_ref *also, const vn_node *n, const vn_args *a, vn_error *err)
{
	const vn_taps  *t = r->call.taps;
	const int       value = n->out[0];
	const vn_value *v = &r->plan->value[value];
	const int64_t   row = vn_value_row(v), in_row = vn_value_row(&r->plan->value[n->in[0]]);
	int64_t         step = PIECE / (row * (int64_t)r->size), first = 0, count = 0;
	vn_status       st = VN_OK;

	step = step < 1 ? 1 : step > a->tokens ? a->tokens : step;
	/* pieces of equal size, so that one is stored while the next is computed */
	step = (a->tokens + (a->tokens + step - 1) / step - 1) / ((a->tokens + step - 1) / step);
	char   *piece = piece_of(r, (size_t)(step * row) * r->size);
	char   *other = also ? piece_of(also, (size_t)(step * row) * also->size) : NULL;
	vn_also both = also ? (vn_also) { also->policy, vn_value_wide(also->plan, value), other } : (vn_also) { 0 };
	if (!piece || (also && !other))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %" PRId64 " rows of %s", step, v->name);
	if (!st && is_wanted(t, value))
		vn_taps_select(t, a->past, a->tokens, &first, &count);
	if (!st && count)
		st = announce_value(r, t, value, count, 0, err);
	if (!st && count && also)
		st = announce_value(also, also->call.taps, value, count, 0, err);
	for (int64_t i = 0; !st && i < a->tokens; i += step) {
		if ((st = vn_ref_interrupted(r, err)))
			break;
		vn_args part = *a;
		part.tokens = a->tokens - i < step ? a->tokens - i : step;
		part.past = a->past + i;
		part.in[0] = (const char *)a->in[0] + (size_t)(i * in_row) * r->size;
		part.also = also ? &both : NULL;
		if ((st = r->eval->node(n, &part, row, v->size[v->rank - 1], piece, err)))
			break;
		if (r->made)
			r->made(r->made_ctx, (int)(n - r->plan->node), i, part.tokens, piece);
		const token_rows held = { i, part.tokens }, selected = { first, count };
		if ((st = write_piece(r, value, piece, held, selected, err)))
			break;
		if (also)
			st = write_piece(also, value, other, held, selected, err);
	}
	if (!st && count)
		st = t->sink.end(t->sink.ctx, err);
	if (!st && count && also)
		st = also->call.taps->sink.end(also->call.taps->sink.ctx, err);
	return st;
}

/* The state that an input's rows were appended to, where the node reads them;
 * -1: it reads the input itself. */
static int find_joined_state(const vn_ref *r, const vn_node *n, int input)
{
	for (int k = 0; k < n->n_state; k++)
		if (r->plan->state[n->state[k]].input == input)
			return n->state[k];
	return -1;
}

/* Stores what the node's rule says, after the call, which read its own rows. */
static vn_status apply_keep_rule(vn_ref *r, const vn_node *n, const vn_args *a, vn_error *err)
{
	const vn_keep_rule k = vn_node_keep_rule(r->plan, n);
	vn_status          st;

	if (k.state < 0)
		return VN_OK;
	if (k.rope >= 0 && r->position > 0 &&
	    (st = vn_eval_rotate_rows(r->plan, k.rope,
	                              (vn_args) { .policy = r->policy, .threads = r->threads, .tokens = r->position },
	                              vn_states_open(&r->states, k.state), err)))
		return st;
	for (int i = 0; i < k.n; i++)
		append_rows(r, k.state + i, a->in[k.input + i]);
	return VN_OK;
}

/* Checks that all inputs of a node are present. */
static vn_status check_inputs(const vn_ref *r, const vn_node *n, vn_error *err)
{
	const char *name = r->plan->value[n->out[0]].name;

	for (int i = 0; i < n->n_in; i++) {
		const int state = find_joined_state(r, n, i);
		if (state >= 0 ? !vn_states_ready(&r->states, state) : !vn_ref_holds(r, n->in[i]))
			return vn_fail(
				err, VN_ERR_USAGE,
				"%s: its input %s is not in memory: it was neither computed nor written, or is already freed", name,
				r->plan->value[n->in[i]].name);
	}
	for (int k = 0; k < n->n_state; k++)
		if (!vn_states_ready(&r->states, n->state[k]))
			return vn_fail(err, VN_ERR_USAGE, "%s: its %s are missing: an earlier call neither computed nor wrote them",
			               name, vn_state_word(r->plan, n->state[k]));
	return VN_OK;
}

/* Asks for the weights of the experts that some token is routed to. */
static void ask_for_experts(const vn_ref *r, const vn_node *n, const vn_args *a)
{
	const void   *ids = a->in[VN_EXPERTS_IDS];
	const int64_t all = a->tokens * vn_value_row(&r->plan->value[n->in[VN_EXPERTS_IDS]]);

	for (int64_t i = 0; i < all; i++) {
		const double id = r->size == 8 ? ((const double *)ids)[i] : (double)((const float *)ids)[i];
		for (int k = 0; id >= 0 && id < n->c.experts.experts && k < n->n_w; k++)
			if (n->w[k] >= 0)
				r->need(r->need_ctx, n->w[k] + (int)id);
	}
}

vn_status vn_ref_node(vn_ref *r, vn_ref *also, int node, vn_error *err)
{
	const vn_node  *n = &r->plan->node[node];
	const vn_taps  *t = r->call.taps;
	const int       out = n->out[0];
	const vn_value *v = &r->plan->value[out];
	vn_args         a = vn_eval_args(r->plan, n, r->weights, r->policy, r->threads);
	vn_status       st;

	if (v->on_demand && !is_wanted(t, out))
		return VN_OK;
	if ((st = check_inputs(r, n, err)))
		return st;
	for (int i = 0; i < n->n_in; i++)
		a.in[i] = vn_ref_holds(r, n->in[i]) ? vn_ref_at(r, n->in[i]) : NULL;
	a.past = r->position;
	a.prompt = r->prompt;
	a.tokens = r->call.tokens;
	a.ids = r->call.ids;
	if (vn_value_streams(r->plan, out))
		return run_in_pieces(r, also, n, &a, err);
	for (int k = 0; k < n->n_state; k++)
		a.state[k] = vn_states_open(&r->states, n->state[k]);
	if ((st = hand_over_states(r, t, n, true, err)))
		return st;
	for (int slot = VN_ATTN_SCORES; n->op == VN_OP_ATTENTION && slot <= VN_ATTN_PROBS; slot++)
		if (is_wanted(t, n->out[slot]) && (st = hand_over_rows(r, t, n, &a, slot, err)))
			return st;
	vn_also both = { 0 };
	if (also) {
		also->holder[also->slots.slot[out]] = -1;
		both = (vn_also) { also->policy, vn_value_wide(also->plan, out), vn_ref_at(also, out) };
		a.also = &both;
	}
	if (r->need && n->op == VN_OP_EXPERTS)
		ask_for_experts(r, n, &a);
	r->holder[r->slots.slot[out]] = -1; /* the value in this slot is invalid after a failure */
	if ((st = r->eval->node(n, &a, vn_value_row(v), v->size[v->rank - 1], vn_ref_at(r, out), err)))
		return st;
	if (r->made)
		r->made(r->made_ctx, node, 0, a.tokens, vn_ref_at(r, out));
	for (int k = 0; k < n->n_state; k++)
		vn_states_made(&r->states, n->state[k]);
	if ((st = apply_keep_rule(r, n, &a, err)))
		return st;
	vn_ref_placed(r, out);
	if (is_wanted(t, out) && (st = hand_over(r, t, out, err)))
		return st;
	if (also) {
		vn_ref_placed(also, out);
		if (is_wanted(also->call.taps, out) && (st = hand_over(also, also->call.taps, out, err)))
			return st;
	}
	return hand_over_states(r, t, n, false, err);
}

static bool are_equal(const char *a, const char *b, size_t bytes, int threads)
{
	enum { SHARE = 64 << 10 };
	const int64_t shares = (int64_t)(bytes / SHARE) + 1;
	int           differ = 0;

/* All or one: see convert.c. */
#pragma omp parallel for num_threads(shares > 1 ? threads : 1) schedule(static) reduction(| : differ)
	for (int64_t i = 0; i < shares; i++) {
		const size_t at = (size_t)i * SHARE;
		differ |= memcmp(a + at, b + at, bytes - at < SHARE ? bytes - at : SHARE) != 0;
	}
	return !differ;
}

bool vn_ref_shares(const vn_ref *r, const vn_ref *also, int node)
{
	const vn_node *n = &r->plan->node[node], *m = &also->plan->node[node];
	const int      in = n->in[0], out = n->out[0];

	return n->op == VN_OP_LINEAR && m->op == VN_OP_LINEAR && !n->n_state && memcmp(&n->c, &m->c, sizeof n->c) == 0 &&
	       memcmp(&n->x, &m->x, sizeof n->x) == 0 && n->w[0] == m->w[0] && n->w[1] == m->w[1] && in == m->in[0] &&
	       out == m->out[0] && r->weights == also->weights && r->threads == also->threads && r->size == also->size &&
	       r->call.tokens == also->call.tokens && r->position == also->position &&
	       is_wanted(r->call.taps, out) == is_wanted(also->call.taps, out) &&
	       vn_eval_shares(n, &r->weights[n->w[0]], r->call.tokens, r->policy, also->policy) && vn_ref_holds(r, in) &&
	       vn_ref_holds(also, in) &&
	       are_equal(vn_ref_at(r, in), vn_ref_at(also, in),
	                 (size_t)(r->call.tokens * vn_value_row(&r->plan->value[in])) * r->size, r->threads);
}
