/* recompute_run.c: computes a checkpoint by a plan, walking backward over the plan from it, because
 * only one of three hundred nodes is needed; vn_ref would walk forward. */
#include "compare/replay/recompute_internal.h"
#include "capture/view/batched.h"
#include "libref/exec/ref.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SCORE_ROWS_AT_ONCE = 64 }; /* of attention scores at a time */

typedef vn_recompute_plan run;

/* ---- computing ------------------------------------------------------------------------------- */

/* Computes a node call by call, as the steps were: some plans treat cached tokens differently
 * from those of the current call. */
typedef struct node_calls {
	const vn_node *n;
	vn_args        a;              /* of the current call */
	const void    *in[VN_MAX_IN];  /* for all tokens */
	int64_t        row[VN_MAX_IN]; /* elements of one token's row of each input */
	/* States of fixed size. Those that grow are read from what the calls leave, not kept. */
	char          *kept[VN_MAX_STATE];
	bool           fixed; /* some state has a fixed size, so each call needs the one before */
	int64_t        few;   /* computes only these first tokens of the only call; 0: all */
	vn_keep_rule   keep;
} node_calls;

static void end_call(node_calls *k)
{
	for (int i = 0; i < VN_MAX_STATE; i++)
		free(k->kept[i]);
}

/* Rounds the rows of each call, as when they were appended. */
static void round_calls(const run *r, const vn_state *s, char *kept)
{
	const bool of_prompt = r->w->policy.role[VN_CACHE_OF_PROMPT];

	for (int64_t at = 0, i = 0; at < r->p->site.tokens && !(of_prompt && i); at += r->p->step[i++].tokens) {
		const int64_t left = r->p->site.tokens - at, n = r->p->step[i].tokens;
		vn_ref_round_cache(s, r->w->policy, kept + (size_t)(at * vn_state_row(s)) * r->w->size, n < left ? n : left,
		                   r->p->threads);
	}
}

static void make_states(run *r, node_calls *k)
{
	for (int i = 0; i < k->n->n_state; i++) {
		const vn_state *s = &r->plan->state[k->n->state[i]];
		const bool      grows = s->input >= 0, others = vn_kept_input(k->keep, k->n->state[i]) >= 0;
		const size_t    n = (size_t)(vn_state_row(s) * (grows ? r->p->site.tokens : 1));
		k->fixed = k->fixed || !grows;
		if (grows && !others && !r->w->policy.role[VN_ROLE_CACHE]) {
			k->a.state[i] = (void *)(uintptr_t)k->in[s->input]; /* holds all tokens and is only read */
			continue;
		}
		k->a.state[i] = k->kept[i] = vn_alloc_zero(n, r->w->size);
		if (grows && !others) {
			memcpy(k->kept[i], k->in[s->input], n * r->w->size);
			round_calls(r, s, k->kept[i]);
		}
	}
}

vn_args vn_recompute_args(const run *r, const vn_node *n)
{
	vn_args a = vn_eval_args(r->plan, n, r->weight, r->w->policy, r->p->threads);

	if (r->w == &r->p->w[VN_FINE_WIDTH] &&
	    r->p->site.n_span > 1) /* as in a replay, where some roundings go to the other side */
		a.policy.products = VN_PRODUCTS_PLAIN;
	return a;
}

static vn_status begin_call(run *r, int node, node_calls *k, vn_error *err)
{
	const vn_node *n = &r->plan->node[node];
	vn_status      st = VN_OK;

	*k = (node_calls) { .n = n, .a = vn_recompute_args(r, n), .keep = vn_node_keep_rule(r->plan, n) };
	for (int i = 0; !st && i < n->n_in; i++) {
		st = vn_recompute_value(r, n->in[i], &k->in[i], err);
		k->row[i] = vn_value_row(&r->plan->value[n->in[i]]);
	}
	if (!st)
		make_states(r, k);
	return st;
}

/* Makes these tokens those of the call. */
static void place_call(const run *r, node_calls *k, int64_t position, int64_t tokens)
{
	const int32_t *ids;

	vn_recording_tokens(r->p->o->cand, &ids, NULL);
	k->a.ids = ids + position;
	k->a.begins = r->p->site.begins + position;
	k->a.past = position;
	k->a.prompt = position > 0 ? r->p->site.prompt : 0;
	k->a.tokens = tokens;
	for (int i = 0; i < k->n->n_in; i++)
		k->a.in[i] = (const char *)k->in[i] + (size_t)(position * k->row[i]) * r->w->size;
}

/* A call of a step. */
typedef struct call_place {
	int     step;
	int64_t position, tokens;
} call_place;

static call_place whole_step(const run *r, int step)
{
	return (call_place) { step, r->p->step[step].position, r->p->step[step].tokens };
}

/* Prepares the call. If the node keeps other rows than it reads, puts together the kept rows of
 * earlier calls and this call's own. */
static vn_status prepare_call(run *r, node_calls *k, call_place c, vn_error *err)
{
	vn_status st = VN_OK;

	place_call(r, k, c.position, k->few ? k->few : c.tokens);
	for (int i = 0; !st && i < k->n->n_state; i++) {
		const int from = r->plan->state[k->n->state[i]].input, kept = vn_kept_input(k->keep, k->n->state[i]);
		if (from < 0 || kept < 0)
			continue;
		const size_t row = (size_t)k->row[from] * r->w->size, past = (size_t)c.position * row;
		memcpy(k->kept[i], k->in[kept], past);
		memcpy(k->kept[i] + past, (const char *)k->in[from] + past, (size_t)c.tokens * row);
		for (int j = c.step - 1; !st && j > 0 && k->keep.rope >= 0; j--) /* once for every call since */
			st = vn_eval_rotate_rows(
				r->plan, k->keep.rope,
				(vn_args) { .policy = k->a.policy, .threads = k->a.threads, .tokens = r->p->step[j].position },
				k->kept[i], err);
	}
	return st;
}

/* Does the node compute a call otherwise than a part of a longer one? Either it keeps other rows
 * than it reads, or its cache is another one. */
static bool goes_by_calls(const vn_plan *plan, const vn_node *n)
{
	return vn_node_keep_rule(plan, n).state >= 0 || (n->op == VN_OP_ATTENTION && n->x.attention.cache);
}

/* What to compute at once from `position` on: the step, or of a node that goes by calls, the call,
 * of several that were joined to one step. */
static call_place call_in_step(const run *r, const node_calls *k, int step, int64_t position)
{
	const int64_t  end = r->p->step[step].position + r->p->step[step].tokens;
	int64_t        to = end;
	const vn_step *call;
	const int      n = vn_recording_calls(r->p->o->cand, &call);

	for (int i = 0; i < n && !k->few && goes_by_calls(r->plan, k->n); i++)
		if (call[i].position > position && call[i].position < to)
			to = call[i].position;
	return (call_place) { step, position, to - position };
}

/* Did the candidate record all states that the node has before this step? */
static bool has_states(const run *r, const node_calls *k, int step)
{
	bool recorded = step > 0;

	for (int i = 0; recorded && i < k->n->n_state; i++)
		recorded = vn_recompute_has_state(r->p, step - 1, r->plan->state[k->n->state[i]].value);
	return recorded;
}

/* Before a call, replaces the states of fixed size by those that the candidate recorded after the
 * call before: what earlier calls did wrong is in them, whether this mistake or another. */
static vn_status take_states(run *r, node_calls *k, int step, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; !st && has_states(r, k, step) && i < k->n->n_state; i++)
		st = vn_recompute_load_state(r->p, r->w, step - 1, r->plan->state[k->n->state[i]].value, k->kept[i], err);
	return st;
}

/* ---- another state --------------------------------------------------------------------------- */

static vn_status run_node(run *r, node_calls *k, void *to, vn_error *err)
{
	const vn_value *v = &r->plan->value[k->n->out[0]];

	return r->w->eval->node(k->n, &k->a, vn_value_row(v), v->size[v->rank - 1], to, err);
}

/* Rounds, multiplies or exchanges the states, as r->p->other says. */
static vn_status change_states(run *r, node_calls *k, vn_error *err)
{
	const vn_other_state *o = r->p->other;
	const bool            rolled = o->kind == VN_STATE_ROLLED, turned = o->kind == VN_STATE_TURNED;
	const int             heads = rolled || turned ? k->n->c.delta.value_heads : 1;

	for (int i = 0; i < k->n->n_state; i++) {
		const int64_t    n = vn_state_row(&r->plan->state[k->n->state[i]]), each = n / heads;
		VN_FREED double *was = malloc((size_t)(2 * n) * sizeof *was);
		if (!was)
			return vn_fail(err, VN_ERR_NOMEM, "no memory for states");
		vn_to_f64(was, k->kept[i], r->w->eval->width, (size_t)n);
		for (int64_t j = 0; j < n; j++) {
			const int64_t h = j / each, e = j % each, dk = k->n->c.delta.key_dim,
						  of = turned || !rolled ? h
			                   : o->calls        ? (h + heads - o->calls) % heads
			                                     : heads - 1 - h;
			const double x = was[of * each + (turned ? e % dk * (each / dk) + e / dk : e)];
			was[n + j] = rolled || turned ? x : o->kind == VN_STATE_TIMES ? o->factor * x : vn_in_format(x, o->format);
		}
		vn_from_f64(k->kept[i], r->w->eval->width, was + n, (size_t)n);
	}
	return VN_OK;
}

/* The rows of padding of an input in format w. *n: how many. */
static vn_status read_padding(run *r, int input, void **to, int64_t *n, vn_error *err)
{
	const int       root = vn_plan_root(r->plan, input);
	const vn_dtype  as = vn_policy_dtype(r->w->policy, vn_value_wide(r->plan, root));
	double         *x;
	const vn_status st = vn_batched_padding(r->p->o->cand, r->plan->value[root].name, r->p->step->number, &x, n, err);

	*to = x;
	if (!st && x && r->w->size != sizeof *x) {
		const size_t all = (size_t)(*n * vn_value_row(&r->plan->value[root]));
		if ((*to = malloc(all * sizeof(float) + 1)))
			vn_to_f32_as(*to, x, VN_F64, as, all);
		free(x);
	}
	return st || *to || !x ? st : vn_fail(err, VN_ERR_NOMEM, "no memory for padding");
}

/* Runs the node on the padding, or the other prompts, before the first call, which leaves its
 * states. */
static vn_status run_padding(run *r, node_calls *k, vn_error *err)
{
	void     *in[VN_MAX_IN] = { NULL }, *out = NULL;
	int64_t   n, rows = 0;
	vn_status st = VN_OK;

	for (int i = 0; !st && i < k->n->n_in; i++)
		if (!(st = read_padding(r, k->n->in[i], &in[i], &n, err))) {
			if (!n || (rows && n != rows))
				st = vn_fail(err, VN_ERR_UNSUPPORTED, "no padding was recorded");
			rows = n;
			k->a.in[i] = in[i];
		}
	if (!st && !(out = vn_alloc((size_t)(rows * vn_value_row(&r->plan->value[k->n->out[0]])), r->w->size)))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for padding");
	if (!st) {
		k->a.past = 0;
		k->a.tokens = rows;
		st = run_node(r, k, out, err);
	}
	for (int i = 0; i < VN_MAX_IN; i++)
		free(in[i]);
	free(out);
	return st;
}

/* Makes the states those that r->p->other says. out: room for the outputs of all tokens. */
static vn_status take_other(run *r, node_calls *k, int step, void *out, vn_error *err)
{
	const vn_other_state *o = r->p->other;
	const vn_step        *before = step ? &r->p->step[step - 1] : NULL;
	const int             from = o->kind == VN_STATE_EARLIER ? step - o->calls : o->kind == VN_STATE_FIRST ? 1 : step;

	if (o->kind >= VN_STATE_PADDING)
		return step || (o->kind == VN_STATE_PACKED) != vn_batched_is_packed(r->p->o->cand)
		           ? vn_fail(err, VN_ERR_UNSUPPORTED, "not the first call, or packed otherwise")
		           : run_padding(r, k, err);
	if (!has_states(r, k, from) || (o->kind == VN_STATE_FIRST && step < 2))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "no such state was recorded");
	vn_status st = take_states(r, k, from, err);
	if (!st && o->kind >= VN_STATE_ROUNDED && o->kind <= VN_STATE_TURNED)
		st = change_states(r, k, err);
	for (int i = 0; !st && o->kind == VN_STATE_AGAIN && i < o->calls; i++) {
		place_call(r, k, before->position + before->tokens - 1, 1);
		st = run_node(r, k, out, err);
	}
	return st;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* Writes the first output for the tokens from step `from` to the checkpoint's into x, which has
 * room for all tokens. */
static vn_status run_calls(run *r, node_calls *k, int from, void *x, vn_error *err)
{
	const vn_value *v = &r->plan->value[k->n->out[0]];
	const int64_t   row = vn_value_row(v);
	vn_status       st = VN_OK;

	for (int i = from; !st && i <= r->p->when; i++) {
		const int  target = r->plan->value[r->p->site.target].node;
		const bool other = r->p->other && i == r->p->when && k->n == &r->plan->node[target];
		if (k->fixed && (st = other ? take_other(r, k, i, x, err) : take_states(r, k, i, err)))
			break;
		const vn_step *s = &r->p->step[i];
		for (call_place c = call_in_step(r, k, i, s->position); !st && c.tokens > 0;
		     c = call_in_step(r, k, i, c.position + c.tokens))
			if (!(st = prepare_call(r, k, c, err)))
				st = run_node(r, k, (char *)x + (size_t)(k->a.past * row) * r->w->size, err);
	}
	return st;
}

static vn_status first_output(run *r, node_calls *k, int from, void **out, vn_error *err)
{
	const vn_value *v = &r->plan->value[k->n->out[0]];
	void           *x = vn_alloc((size_t)(r->p->site.tokens * vn_value_row(v)), r->w->size);
	while (k->fixed && from > 0 && !has_states(r, k, from))
		from--;
	const vn_status st = run_calls(r, k, from, x, err);

	*out = st ? NULL : x;
	if (st)
		free(x);
	return st;
}

/* Once its inputs are made: is the touched value the unmodified plan's after all, since they came
 * out as there? Many changes change no number (a window longer than the text, for instance). */
static bool came_out_same(run *r, int root)
{
	if (vn_node_keep_rule(r->plan, &r->plan->node[r->plan->value[root].node]).state >= 0)
		return false; /* it also reads what earlier calls kept */
	r->touched[root] = -1;
	return !vn_recompute_is_touched(r, root);
}

/* Gives up a touched value that has the unmodified plan's numbers: what is made of it has them
 * too. */
static void drop_unmodified(run *r, int root)
{
	const int64_t rows = r->few ? r->few : r->p->site.tokens, row = vn_value_row(&r->plan->value[root]);
	const size_t  bytes = (size_t)(rows * row) * r->w->size;

	if (root >= r->base->n_values || !r->w->unmodified[root] || vn_value_row(&r->base->value[root]) != row ||
	    memcmp(r->made[root], r->w->unmodified[root], bytes) != 0)
		return;
	free(r->made[root]);
	r->made[root] = NULL;
	r->touched[root] = 0;
}

/* Finds a value for all tokens: captured, made for an earlier plan, or made now. */
vn_status vn_recompute_value(run *r, int value, const void **data, vn_error *err)
{
	const int  root = vn_plan_root(r->plan, value);
	const bool own = vn_recompute_is_touched(r, root), checkpoint = vn_recompute_makes_target(r, root);
	void     **at = checkpoint ? &r->w->unmodified[r->p->site.target] : own ? &r->made[root] : &r->w->unmodified[root];
	node_calls k = { 0 };
	vn_status  st = VN_OK;

	if (!*at && !own && vn_recompute_known(r->p, root))
		st = vn_recompute_load(r->p, r->w, root, at, err);
	else if (!*at && r->plan->node[r->plan->value[root].node].out[0] != root)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s is not the first output of its operation and cannot be recomputed",
		             r->plan->value[root].name);
	else if (!*at) {
		st = begin_call(r, r->plan->value[root].node, &k, err);
		if (!st && own && !checkpoint && came_out_same(r, root)) {
			end_call(&k);
			return vn_recompute_value(r, root, data, err);
		}
		k.few = own && !checkpoint ? r->few : 0; /* what other plans use too is computed in full */
		st = st ? st : first_output(r, &k, 0, at, err);
		end_call(&k);
		if (!st && vn_recompute_held(r->p, root) == VN_HELD_ROWS)
			st = vn_recompute_load(r->p, r->w, root, at, err);
		if (!st && own && !checkpoint)
			drop_unmodified(r, root);
	}
	*data = !st && own && !checkpoint && !*at ? r->w->unmodified[root] : *at;
	return st;
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

/* Attention scores or probabilities, in the checkpoint's rows. */
static vn_status rows_of(run *r, node_calls *k, int slot, void *out, vn_error *err)
{
	const vn_recompute *p = r->p;
	const int64_t       S = p->site.tokens, heads = k->n->c.attention.heads,
				  first = p->site.first - p->step[p->when].position;
	const vn_status st = prepare_call(r, k, whole_step(r, p->when), err);
	int             bad = 0;

	if (st)
		return st;
#pragma omp        parallel for collapse(2) num_threads(p->threads)
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < p->rows; i += SCORE_ROWS_AT_ONCE)
            if (r->w->eval->rows(
						   k->n, &k->a,
						   (vn_score_rows) { slot, h, first + i,
                                      p->rows - i < SCORE_ROWS_AT_ONCE ? p->rows - i : SCORE_ROWS_AT_ONCE },
						   (char *)out + (size_t)((h * p->rows + i) * S) * r->w->size, NULL)) {
#pragma omp atomic write
                bad = 1;
			}
	return bad ? vn_fail(err, VN_ERR_NOMEM, "no memory for attention rows") : VN_OK;
}

/* Is each token computed on its own, from one value only? */
static bool goes_alone(const vn_node *n)
{
	return n->op == VN_OP_LINEAR || n->op == VN_OP_ACT ||
	       (n->op == VN_OP_ROWS && n->x.rows.form == VN_ROWS_LOG_SOFTMAX);
}

/* Those rows of a value, if they are kept; NULL. */
static const void *kept_rows(run *r, int value)
{
	const int root = vn_plan_root(r->plan, value), target = r->p->site.target;

	return vn_value_row(&r->plan->value[root]) == vn_value_row(&r->plan->value[target]) &&
	               vn_recompute_makes_target(r, root)
	           ? r->w->sampled
	           : NULL;
}

vn_status vn_recompute_sampled(run *r, int value, void **out, vn_error *err)
{
	const vn_recompute *p = r->p;
	const vn_value     *v = &r->plan->value[vn_plan_root(r->plan, value)];
	const vn_node      *n = &r->plan->node[v->node];
	const size_t        row = (size_t)vn_value_row(v) * r->w->size;
	const bool          wide = vn_value_row(v) == vn_value_row(&r->plan->value[p->site.target]);
	const bool          checkpoint = wide && vn_recompute_makes_target(r, vn_plan_root(r->plan, value));
	vn_args             a = vn_recompute_args(r, n);
	const void         *all;
	void               *x = NULL;
	vn_status           st = VN_OK;

	if (kept_rows(r, value)) {
		*out = vn_alloc(VN_RECOMPUTE_SAMPLE, row);
		memcpy(*out, r->w->sampled, row * (size_t)p->n_sample);
		return VN_OK;
	}
	if (wide && (!goes_alone(n) || n->out[0] != vn_plan_root(r->plan, value)))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s cannot be recomputed row by row", v->name);
	const void *kept = wide ? kept_rows(r, n->in[0]) : NULL;
	if (!kept && (st = wide ? vn_recompute_sampled(r, n->in[0], &x, err) : vn_recompute_value(r, value, &all, err)))
		return st;
	*out = vn_alloc(VN_RECOMPUTE_SAMPLE, row);
	for (int i = 0; !wide && i < p->n_sample; i++)
		memcpy((char *)*out + (size_t)i * row, (const char *)all + (size_t)p->sample[i] * row, row);
	if (wide) {
		a.in[0] = kept ? kept : x;
		a.tokens = p->n_sample;
		if ((st = r->w->eval->node(n, &a, vn_value_row(v), v->size[v->rank - 1], *out, err))) {
			free(*out);
			*out = NULL;
		}
	}
	free(x);
	if (!st && checkpoint) {
		r->w->sampled = vn_alloc((size_t)p->n_sample, row);
		memcpy(r->w->sampled, *out, row * (size_t)p->n_sample);
	}
	return st;
}

/* A first output in the checkpoint's rows. One that came out as the unmodified plan's in the first
 * call is made once for all such plans. */
static vn_status first_rows(run *r, node_calls *k, size_t row, void **out, vn_error *err)
{
	const vn_recompute *p = r->p;
	const int           target = p->site.target;
	const size_t        first = (size_t)p->site.first * row, bytes = (size_t)p->rows * row;
	const void         *all;
	vn_status           st;

	if (p->when == 0 && vn_recompute_is_touched(r, target) && came_out_same(r, target)) {
		if ((st = vn_recompute_value(r, target, &all, err)))
			return st;
		*out = vn_alloc(bytes, 1);
		memcpy(*out, (const char *)all + first, bytes);
		return VN_OK;
	}
	if (!(st = first_output(r, k, p->when, out, err)))
		memmove(*out, (char *)*out + first, bytes);
	return st;
}

/* Reads the state that the checkpoint shows: a growing state as the last call reads it, a fixed
 * state as that call leaves it. */
static vn_status state_of(run *r, node_calls *k, const vn_state *s, void **out, vn_error *err)
{
	const size_t n = (size_t)vn_shape_count(&r->p->site.cand.shape) * r->w->size;
	int          i = 0;
	vn_status    st;
	void        *x;

	while (i < k->n->n_state && &r->plan->state[k->n->state[i]] != s)
		i++;
	if (i == k->n->n_state)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: its operation keeps no such state",
		               r->plan->value[r->p->site.target].name);
	if (s->input >= 0) {
		if ((st = prepare_call(r, k, whole_step(r, r->p->when), err)))
			return st;
		*out = vn_alloc(n, 1);
		memcpy(*out, k->a.state[i], n);
		return VN_OK;
	}
	st = first_output(r, k, r->p->when, &x, err);
	free(x);
	*out = k->kept[i];
	k->kept[i] = NULL;
	return st;
}

static vn_status make_output(run *r, node_calls *k, int slot, void **out, vn_error *err)
{
	const vn_recompute *p = r->p;
	const vn_value     *v = &r->plan->value[p->site.target];
	const size_t        row = (size_t)vn_value_row(v) * r->w->size;

	if (v->state >= 0)
		return state_of(r, k, &r->plan->state[v->state], out, err);
	if (slot == 0)
		return first_rows(r, k, row, out, err);
	if (k->n->op != VN_OP_ATTENTION)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s is a side output of its operation and cannot be recomputed",
		               v->name);
	*out = vn_alloc((size_t)vn_shape_count(&p->site.cand.shape), r->w->size);
	return rows_of(r, k, slot, *out, err);
}

static bool shape_fits(const run *r, int slot)
{
	const vn_recompute *p = r->p;
	const vn_value     *v = &r->plan->value[p->site.target];
	const bool          state = v->state >= 0;
	vn_shape            s = vn_value_shape(v, p->site.sampled ? p->n_sample : p->rows, p->site.tokens);

	return (slot >= 0 || state) && vn_shape_equal(&s, &p->site.cand.shape);
}

void vn_recompute_begin(run *r, vn_recompute *p, const vn_plan *plan, const vn_tensor *weight, vn_recompute_width *w)
{
	const size_t n = (size_t)plan->n_values;

	*r = (run) { p, plan, weight, w, p->site.plan, vn_alloc(n, 1), vn_alloc_zero(n, sizeof *r->made), 0 };
	memset(r->touched, -1, n);
}

void vn_recompute_end(run *r)
{
	for (int v = 0; v < r->plan->n_values; v++)
		free(r->made[v]);
	VN_FREE(r->made, r->touched);
}

vn_status vn_recompute_make(run *r, vn_tensor *out, vn_error *err)
{
	vn_recompute  *p = r->p;
	const vn_node *n = &r->plan->node[r->plan->value[p->site.target].node];
	int            slot = -1;
	node_calls     k = { 0 };
	void          *data = NULL;
	vn_status      st = VN_OK;

	for (int i = 0; i < n->n_out; i++)
		slot = n->out[i] == p->site.target ? i : slot;
	if (!shape_fits(r, slot))
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s cannot be compared: recomputed, it has another shape than recorded",
		             r->plan->value[p->site.target].name);
	if (!st && p->site.sampled)
		st = vn_recompute_sampled(r, p->site.target, &data, err);
	else if (!st && !(st = begin_call(r, r->plan->value[p->site.target].node, &k, err)))
		st = make_output(r, &k, slot, &data, err);
	end_call(&k);
	vn_recompute_end(r);
	if (st)
		free(data);
	else
		*out = (vn_tensor) { r->w->eval->width, p->site.cand.shape, data };
	return st;
}

vn_status vn_recompute_run(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, vn_recompute_as as,
                           vn_tensor *out, vn_error *err)
{
	run r;

	vn_recompute_begin(&r, p, plan, weights, &p->w[as]);
	return vn_recompute_make(&r, out, err);
}

vn_status vn_recompute_run_state(vn_recompute *p, const vn_other_state *other, vn_recompute_as as, vn_tensor *out,
                                 vn_error *err)
{
	p->other = other;
	const vn_status st = vn_recompute_run(p, p->site.plan, p->site.weights, as, out, err);
	p->other = NULL;
	return st;
}

vn_status vn_recompute_input(vn_recompute *p, int input, vn_recompute_as as, vn_tensor *out, vn_error *err)
{
	const int   v = p->site.plan->node[p->site.plan->value[p->site.target].node].in[input];
	const void *data;
	run         r;

	vn_recompute_begin(&r, p, p->site.plan, p->site.weights, &p->w[as]);
	const vn_status st = vn_recompute_value(&r, v, &data, err);
	if (!st)
		*out = (vn_tensor) { r.w->eval->width, vn_value_shape(&p->site.plan->value[v], p->site.tokens, p->site.tokens),
			                 data };
	vn_recompute_end(&r);
	return st;
}

/* ---- a few rows ------------------------------------------------------------------------------ */

/* Releases inputs that only this plan reads; there may be hundreds. */
static void unload_inputs(run *r, const vn_node *n, const bool *there)
{
	for (int i = 0; i < n->n_in; i++) {
		const int root = vn_plan_root(r->plan, n->in[i]);
		if (root >= r->p->site.plan->n_values || there[i])
			continue;
		free(r->w->unmodified[root]);
		r->w->unmodified[root] = NULL;
	}
}

void vn_recompute_add_error(const double *z, const double *c, int64_t n, vn_recompute_error *s)
{
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(c[i]))
			continue;
		s->dd += isfinite(z[i]) ? (z[i] - c[i]) * (z[i] - c[i]) : (double)INFINITY;
		s->cc += c[i] * c[i];
	}
}

double vn_recompute_nmse(vn_recompute_error s)
{
	return s.cc > 0 ? s.dd / s.cc : s.dd > 0 ? (double)INFINITY : 0;
}

/* The squared error of one token's row, computed as a call of its own, and the squares of the
 * candidate's row. */
static vn_status off_by(run *r, node_calls *k, int64_t at, void *room, vn_recompute_error *s, vn_error *err)
{
	const vn_recompute *p = r->p;
	const vn_value     *v = &r->plan->value[p->site.target];
	const int64_t       row = vn_value_row(v), token = p->site.first + at;
	double             *c = room, *x = c + row, *z = x + row;
	vn_status           st;

	place_call(r, k, token, 1);
	if ((st = r->w->eval->node(k->n, &k->a, row, v->size[v->rank - 1], x, err)))
		return st;
	vn_to_f64(c, (const char *)p->site.cand.data + (size_t)(at * row) * vn_dtype_size(p->site.cand.dtype),
	          p->site.cand.dtype, (size_t)row);
	vn_to_f64(z, x, r->w->eval->width, (size_t)row);
	vn_recompute_add_error(z, c, row, s);
	return VN_OK;
}

vn_status vn_recompute_estimate_tokens(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights, double *off,
                                       vn_error *err)
{
	enum { ESTIMATED = 8 /* tokens */ };
	const vn_value *v = &plan->value[p->site.target];
	const vn_node  *n = &plan->node[v->node];
	const bool      plain = n->out[0] == p->site.target && v->state < 0 && v->size[0] == VN_T && !p->site.sampled &&
	                   vn_node_keep_rule(plan, n).state < 0 && n->op != VN_OP_ROWS &&
	                   !(p->site.begins_later && goes_by_calls(plan, n));
	const int64_t      some = p->rows < ESTIMATED ? p->rows : ESTIMATED;
	VN_FREED void     *room = plain ? vn_alloc((size_t)(3 * vn_value_row(v)), sizeof(double)) : NULL;
	bool               there[VN_MAX_IN];
	vn_recompute_error sums = { 0 };
	node_calls         k = { 0 };
	run                r;
	vn_status          st = VN_OK;

	vn_recompute_begin(&r, p, plan, weights, &p->w[VN_OWN_WIDTH]);
	*off = (double)NAN;
	for (int i = 0; i < n->n_in; i++) {
		const int root = vn_plan_root(plan, n->in[i]);
		there[i] = root < p->site.plan->n_values && r.w->unmodified[root];
	}
	if (plain)
		st = begin_call(&r, v->node, &k, err);
	if (!st && (!plain || k.fixed))
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s cannot be recomputed row by row", v->name);
	for (int64_t i = 0; !st && i < some; i++)
		st = off_by(&r, &k, some < 2 ? 0 : (p->rows - 1) * i / (some - 1), room, &sums, err);
	if (!st)
		*off = vn_recompute_nmse(sums);
	end_call(&k);
	unload_inputs(&r, n, there);
	vn_recompute_end(&r);
	return st;
}

bool vn_recompute_touched(vn_recompute *p, const vn_plan *plan, const vn_tensor *weights)
{
	run r;

	vn_recompute_begin(&r, p, plan, weights, &p->w[VN_OWN_WIDTH]);
	const bool yes = vn_recompute_is_touched(&r, p->site.target);
	vn_recompute_end(&r);
	return yes;
}
