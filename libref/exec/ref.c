/* ref.c: the reference engine, see ref.h.
 *
 * A call is: make room in the cache and for the values (slots.h says where each
 * lies), then node by node: gather inputs, evaluate, hand over what is tapped.
 * Whoever runs a call in parts may leave nodes out and write their outputs, so
 * nothing is taken for granted: each slot knows whose numbers lie in it, each
 * cache how far it is filled, and a node whose inputs are not there is refused.
 * The output of a last linear (the logits) is as large as everything else
 * together and nobody reads it, so it is made and handed over in pieces. */
#include "libref/exec/ref.h"

#include "libref/base/progress.h"
#include "libref/exec/eval.h"
#include "libref/exec/slots.h"
#include "libref/ops/blas.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 256 << 20,    /* bytes of a piece of a value that nobody reads */
	CONVERT = 1 << 16,    /* elements converted to the storage format at a time */
	ROWS = 64             /* rows of attention scores a thread makes at a time */
};

typedef struct cache {
	char *k, *v;     /* (room, row) each, in the width of the policy */
	int64_t room, row;
	int64_t filled[2]; /* tokens, from the first on, whose keys (0) and values (1) are here */
} cache;

struct vn_ref {
	const vn_plan   *plan;
	const vn_tensor *weights;
	vn_policy        policy;
	const vn_eval   *eval;
	int              threads;
	bool             progress;
	bool           (*stop)(void *ctx);
	void            *stop_ctx;
	int64_t          position;
	size_t           size;     /* bytes of a number: 4 or 8 */
	cache           *cache;    /* (plan->caches) */
	vn_slots         slots;
	int             *holder;   /* (slots.n): the value whose numbers lie there; -1: none */
	char            *memory;   /* of all slots, for room_tokens tokens */
	int64_t          room_tokens;
	void            *convert;  /* (CONVERT) in the storage format */
	struct {
		bool           open;
		const int32_t *ids;    /* (tokens), the caller's */
		int64_t        tokens;
		const vn_taps *taps;   /* the caller's, or NULL */
		vn_progress    progress;
	} call;
};

vn_status vn_ref_create(const vn_plan *plan, const vn_tensor *weights, const vn_ref_options *o, vn_ref **ref, vn_error *err)
{
	vn_status st = vn_plan_check(plan, err);
	vn_ref   *r;

	*ref = NULL;
	if (st)
		return st;
	if (!(r = *ref = calloc(1, sizeof *r)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory");
	r->plan = plan;
	r->weights = weights;
	r->policy = o->policy;
	r->eval = vn_eval_for(o->policy);
	r->size = vn_dtype_size(r->eval->width);
	r->threads = o->threads > 0 ? o->threads : omp_get_num_procs();
	r->progress = o->progress;
	r->stop = o->stop;
	r->stop_ctx = o->stop_ctx;
	r->cache = calloc((size_t)plan->caches + 1, sizeof *r->cache);
	r->convert = malloc((size_t)CONVERT * 8);
	if (!r->cache || !r->convert || !vn_slots_assign(&r->slots, plan) ||
	    !(r->holder = malloc(((size_t)r->slots.n + 1) * sizeof *r->holder))) {
		vn_ref_destroy(r);
		*ref = NULL;
		return vn_fail(err, VN_ERR_NOMEM, "no memory");
	}
	vn_blas_single();
	return VN_OK;
}

void vn_ref_destroy(vn_ref *r)
{
	if (!r)
		return;
	vn_ref_end(r, false);
	for (int i = 0; r->cache && i < r->plan->caches; i++) {
		free(r->cache[i].k);
		free(r->cache[i].v);
	}
	free(r->cache);
	free(r->convert);
	free(r->holder);
	free(r->memory);
	vn_slots_finish(&r->slots);
	free(r);
}

int64_t vn_ref_position(const vn_ref *r)
{
	return r->position;
}

void vn_ref_reset(vn_ref *r)
{
	vn_ref_end(r, false);
	r->position = 0;
}

void vn_ref_facts(const vn_ref *r, vn_facts *f)
{
	vn_facts_set(f, "engine", "ref");
	vn_facts_set(f, "engine_version", "%s", VERNIER_VERSION);
	vn_facts_set(f, "device", "cpu");
	vn_facts_set(f, "precision", "%s", vn_policy_name(r->policy));
	vn_facts_set(f, "threads", "%d", r->threads);
	vn_facts_set(f, "blas", "%s", vn_blas_version());
	vn_facts_set(f, "blas_kernel", "%s", vn_blas_core());
	vn_facts_set(f, "rope_angles", "float32");
}

/* ---- memory -------------------------------------------------------------------- */

static void *at_value(const vn_ref *r, int value)
{
	return r->memory + (size_t)(r->slots.offset[value] * r->room_tokens) * r->size;
}

static vn_status grow_cache(vn_ref *r, const vn_node *n, int64_t keys, vn_error *err)
{
	cache  *c = &r->cache[n->c.attention.cache];
	int64_t row = (int64_t)n->c.attention.kv_heads * n->c.attention.head_dim;

	if (keys <= c->room)
		return VN_OK;
	int64_t room = keys > 2 * c->room ? keys : 2 * c->room;
	room = room > r->plan->context ? r->plan->context : room;
	char *k = realloc(c->k, (size_t)(room * row) * r->size);
	c->k = k ? k : c->k;
	char *v = realloc(c->v, (size_t)(room * row) * r->size);
	c->v = v ? v : c->v;
	if (!k || !v)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a cache of %" PRId64 " tokens", room);
	c->room = room;
	c->row = row;
	return VN_OK;
}

static vn_status make_room(vn_ref *r, int64_t tokens, vn_error *err)
{
	if (tokens > r->room_tokens) {
		free(r->memory);
		r->memory = NULL;
		r->room_tokens = 0;
		size_t bytes;
		if (__builtin_mul_overflow((size_t)r->slots.total, (size_t)tokens * r->size, &bytes) ||
		    !(r->memory = malloc(bytes ? bytes : 1)))
			return vn_fail(err, VN_ERR_NOMEM, "no memory for the values of %" PRId64 " tokens", tokens);
		r->room_tokens = tokens;
	}
	for (int i = 0; i < r->plan->n_nodes; i++)
		if (r->plan->node[i].op == VN_OP_ATTENTION) {
			vn_status st = grow_cache(r, &r->plan->node[i], r->position + tokens, err);
			if (st)
				return st;
		}
	return VN_OK;
}

/* Numbers of a value are in its memory now. Keys and values go behind those of
 * earlier calls at once, where the attention reads them: so they are there for
 * later calls even when somebody else computes this call's attention. */
static void placed(vn_ref *r, int value)
{
	const vn_value *v = &r->plan->value[value];

	r->holder[r->slots.slot[value]] = value;
	for (int i = v->node + 1; i <= v->last_use; i++) {
		const vn_node *n = &r->plan->node[i];
		for (int k = VN_ATTN_K; n->op == VN_OP_ATTENTION && k <= VN_ATTN_V; k++) {
			cache *c = &r->cache[n->c.attention.cache];
			size_t row = (size_t)c->row * r->size;
			if (n->in[k] != value)
				continue;
			memcpy((k == VN_ATTN_K ? c->k : c->v) + (size_t)r->position * row, at_value(r, value), (size_t)r->call.tokens * row);
			if (c->filled[k - VN_ATTN_K] >= r->position)
				c->filled[k - VN_ATTN_K] = r->position + r->call.tokens;
		}
	}
}

static bool holds(const vn_ref *r, int value)
{
	return r->slots.slot[value] >= 0 && r->holder[r->slots.slot[value]] == value;
}

static vn_status interrupted(const vn_ref *r, vn_error *err)
{
	return r->stop && r->stop(r->stop_ctx) ? vn_fail(err, VN_ERR_INTERRUPTED, "interrupted") : VN_OK;
}

/* ---- taps ------------------------------------------------------------------------ */

static bool wanted(const vn_taps *t, int value)
{
	return t && value >= 0 && t->want[value];
}

static vn_status put(vn_ref *r, const vn_taps *t, const void *data, int64_t n, vn_error *err)
{
	vn_dtype  as = r->policy.storage;
	vn_status st = VN_OK;

	if (as == r->eval->width)
		return n ? t->sink.write(t->sink.ctx, data, (size_t)n, err) : VN_OK;
	for (int64_t i = 0; !st && i < n; i += CONVERT) {
		int64_t m = n - i < CONVERT ? n - i : CONVERT;
		vn_from_f32(r->convert, as, (const float *)data + i, (size_t)m); /* exact: already rounded */
		st = t->sink.write(t->sink.ctx, r->convert, (size_t)m, err);
	}
	return st;
}

static vn_status announce(vn_ref *r, const vn_taps *t, int value, int64_t rows, int64_t keys, vn_error *err)
{
	vn_shape s = vn_value_shape(&r->plan->value[value], rows, keys);
	return t->sink.begin(t->sink.ctx, value, r->policy.storage, &s, err);
}

/* A value (T, ...) that is in memory as a whole. */
static vn_status hand_over(vn_ref *r, const vn_taps *t, int value, const void *data, int64_t tokens, vn_error *err)
{
	int64_t   first, count, row = vn_value_row(&r->plan->value[value]);
	vn_status st;

	vn_taps_select(t, r->position, tokens, &first, &count);
	if (count == 0)
		return VN_OK;
	if ((st = announce(r, t, value, count, 0, err)) ||
	    (st = put(r, t, (const char *)data + (size_t)(first * row) * r->size, count * row, err)))
		return st;
	return t->sink.end(t->sink.ctx, err);
}

/* Scores or probabilities (H,T,S), made a few rows at a time. */
static vn_status hand_over_rows(vn_ref *r, const vn_taps *t, const vn_node *n, const vn_args *a, int slot, vn_error *err)
{
	const int64_t S = a->past + a->tokens, step = (int64_t)ROWS * r->threads;
	int64_t       first, count;
	vn_status     st;

	vn_taps_select(t, a->past, a->tokens, &first, &count);
	if (count == 0)
		return VN_OK;
	char *rows = malloc((size_t)(step * S) * r->size);
	if (!rows)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for attention rows over %" PRId64 " keys", S);
	st = announce(r, t, n->out[slot], count, S, err);
	for (int64_t h = 0; !st && h < n->c.attention.heads; h++)
		for (int64_t i = 0; !st && i < count; i += step) {
			const int64_t here = count - i < step ? count - i : step;
			int           bad = 0;
#pragma omp parallel for num_threads(r->threads)
			for (int64_t j = 0; j < here; j += ROWS)
				if (r->eval->rows(n, a, slot, h, first + i + j, here - j < ROWS ? here - j : ROWS,
				                  rows + (size_t)(j * S) * r->size, NULL)) {
#pragma omp atomic write
					bad = 1;
				}
			st = bad ? vn_fail(err, VN_ERR_NOMEM, "no memory for attention rows over %" PRId64 " keys", S)
			         : put(r, t, rows, here * S, err);
		}
	if (!st)
		st = t->sink.end(t->sink.ctx, err);
	free(rows);
	return st;
}

/* ---- nodes --------------------------------------------------------------------------- */

/* A linear that nobody reads: rows in pieces, handed over as they come. */
static vn_status run_last(vn_ref *r, const vn_taps *t, const vn_node *n, const vn_args *a, vn_error *err)
{
	const int       value = n->out[0];
	const vn_value *v = &r->plan->value[value];
	const int64_t   row = vn_value_row(v), in_row = vn_value_row(&r->plan->value[n->in[0]]);
	int64_t         step = PIECE / (row * (int64_t)r->size), first = 0, count = 0;
	vn_status       st = VN_OK;

	step = step < 1 ? 1 : step > a->tokens ? a->tokens : step;
	/* pieces of one size: one is filed while the next is computed */
	step = (a->tokens + (a->tokens + step - 1) / step - 1) / ((a->tokens + step - 1) / step);
	char *piece = malloc((size_t)(step * row) * r->size);
	if (!piece)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %" PRId64 " rows of %s", step, v->name);
	if (wanted(t, value))
		vn_taps_select(t, a->past, a->tokens, &first, &count);
	if (count)
		st = announce(r, t, value, count, 0, err);
	for (int64_t i = 0; !st && i < a->tokens; i += step) {
		if ((st = interrupted(r, err)))
			break;
		vn_args part = *a;
		part.tokens = a->tokens - i < step ? a->tokens - i : step;
		part.past = a->past + i;
		part.in[0] = (const char *)a->in[0] + (size_t)(i * in_row) * r->size;
		if ((st = r->eval->node(n, &part, row, v->size[v->rank - 1], piece, err)))
			break;
		/* the rows of [first, first + count) that are in this piece */
		int64_t from = first > i ? first - i : 0, to = first + count - i < part.tokens ? first + count - i : part.tokens;
		if (count && to > from)
			st = put(r, t, piece + (size_t)(from * row) * r->size, (to - from) * row, err);
	}
	if (!st && count)
		st = t->sink.end(t->sink.ctx, err);
	free(piece);
	return st;
}

/* Is everything there that a node reads? */
static vn_status check_inputs(const vn_ref *r, const vn_node *n, vn_error *err)
{
	const char *name = r->plan->value[n->out[0]].name;

	for (int i = 0; i < n->n_in; i++) {
		bool there = holds(r, n->in[i]);
		if (n->op == VN_OP_ATTENTION && i != VN_ATTN_Q)
			there = r->cache[n->c.attention.cache].filled[i - VN_ATTN_K] >= r->position + r->call.tokens;
		if (!there)
			return vn_fail(err, VN_ERR_USAGE, "%s: its input %s is not there: neither run nor written, or gone", name,
			               r->plan->value[n->in[i]].name);
	}
	return VN_OK;
}

static vn_status run_node(vn_ref *r, const vn_node *n, vn_error *err)
{
	const vn_taps  *t = r->call.taps;
	const int64_t   tokens = r->call.tokens;
	const int       out = n->out[0];
	const vn_value *v = &r->plan->value[out];
	vn_args         a = { .policy = r->policy, .threads = r->threads, .past = r->position, .tokens = tokens, .ids = r->call.ids };
	vn_status       st;

	if (v->on_demand && !wanted(t, out))
		return VN_OK;
	if ((st = check_inputs(r, n, err)))
		return st;
	for (int i = 0; i < n->n_in; i++)
		a.in[i] = at_value(r, n->in[i]);
	for (int i = 0; i < n->n_w; i++)
		a.w[i] = n->w[i] >= 0 ? &r->weights[n->w[i]] : NULL;
	if (n->op == VN_OP_LINEAR && v->last_use < 0)
		return run_last(r, t, n, &a, err);
	if (n->op == VN_OP_ATTENTION) {
		a.in[VN_ATTN_K] = r->cache[n->c.attention.cache].k;
		a.in[VN_ATTN_V] = r->cache[n->c.attention.cache].v;
		for (int slot = VN_ATTN_SCORES; slot <= VN_ATTN_PROBS; slot++)
			if (wanted(t, n->out[slot]) && (st = hand_over_rows(r, t, n, &a, slot, err)))
				return st;
	}
	r->holder[r->slots.slot[out]] = -1; /* what a failure leaves there is nobody's */
	if ((st = r->eval->node(n, &a, vn_value_row(v), v->size[v->rank - 1], at_value(r, out), err)))
		return st;
	placed(r, out);
	return wanted(t, out) ? hand_over(r, t, out, at_value(r, out), tokens, err) : VN_OK;
}

/* ---- calls --------------------------------------------------------------------------- */

static vn_status check_call(const vn_ref *r, const int32_t *ids, int64_t tokens, vn_error *err)
{
	if (tokens < 1)
		return vn_fail(err, VN_ERR_USAGE, "empty prompt: at least one token is needed");
	if (tokens > r->plan->context - r->position)
		return vn_fail(err, VN_ERR_USAGE, "%" PRId64 " tokens, the model's context is %d", r->position + tokens, r->plan->context);
	for (int64_t i = 0; i < tokens; i++)
		if (ids[i] < 0 || ids[i] >= r->plan->vocab)
			return vn_fail(err, VN_ERR_USAGE, "token %" PRId64 ": id %" PRId32 " is outside the vocabulary (0 to %d)", i, ids[i],
			               r->plan->vocab - 1);
	return VN_OK;
}

vn_status vn_ref_begin(vn_ref *r, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_status st;

	if (r->call.open)
		return vn_fail(err, VN_ERR_USAGE, "a call is begun and not ended");
	if ((st = check_call(r, ids, tokens, err)) || (st = make_room(r, tokens, err)))
		return st;
	r->call.open = true;
	r->call.ids = ids;
	r->call.tokens = tokens;
	r->call.taps = taps;
	for (int i = 0; i < r->slots.n; i++)
		r->holder[i] = -1;
	/* what a call left behind that did not count */
	for (int i = 0; i < r->plan->caches; i++)
		for (int k = 0; k < 2; k++)
			if (r->cache[i].filled[k] > r->position)
				r->cache[i].filled[k] = r->position;
	if (r->progress)
		vn_progress_start(&r->call.progress, "node", r->plan->n_nodes);
	return VN_OK;
}

vn_status vn_ref_run(vn_ref *r, int from, int to, vn_error *err)
{
	vn_status st = VN_OK;

	if (!r->call.open)
		return vn_fail(err, VN_ERR_USAGE, "no call is begun");
	if (from < 0 || to > r->plan->n_nodes)
		return vn_fail(err, VN_ERR_USAGE, "nodes %d to %d: the plan has %d", from, to, r->plan->n_nodes);
	for (int i = from; !st && i < to; i++) {
		if (!(st = interrupted(r, err)))
			st = run_node(r, &r->plan->node[i], err);
		vn_progress_at(&r->call.progress, i + 1);
	}
	return st;
}

/* The value whose memory is meant; -1: a call or the memory is missing, and err says so. */
static int root_in_memory(const vn_ref *r, int value, vn_error *err)
{
	if (!r->call.open) {
		vn_fail(err, VN_ERR_USAGE, "no call is begun");
		return -1;
	}
	if (value < 0 || value >= r->plan->n_values) {
		vn_fail(err, VN_ERR_USAGE, "value %d: the plan has %d", value, r->plan->n_values);
		return -1;
	}
	const int root = vn_plan_root(r->plan, value);
	if (r->slots.slot[root] < 0) {
		vn_fail(err, VN_ERR_USAGE, "%s is never in memory: tap it", r->plan->value[value].name);
		return -1;
	}
	return root;
}

vn_status vn_ref_read(vn_ref *r, int value, void *data, vn_error *err)
{
	const int root = root_in_memory(r, value, err);

	if (root < 0)
		return VN_ERR_USAGE;
	if (!holds(r, root))
		return vn_fail(err, VN_ERR_USAGE, "%s is not there: neither run nor written, or gone", r->plan->value[value].name);
	const size_t n = (size_t)(r->call.tokens * vn_value_row(&r->plan->value[root]));
	if (r->policy.storage == r->eval->width)
		memcpy(data, at_value(r, root), n * r->size);
	else
		vn_from_f32(data, r->policy.storage, at_value(r, root), n); /* exact: already rounded */
	return VN_OK;
}

vn_status vn_ref_write(vn_ref *r, int value, const void *data, vn_error *err)
{
	const int root = root_in_memory(r, value, err);

	if (root < 0)
		return VN_ERR_USAGE;
	const size_t n = (size_t)(r->call.tokens * vn_value_row(&r->plan->value[root]));
	if (r->policy.storage == r->eval->width)
		memcpy(at_value(r, root), data, n * r->size);
	else
		vn_to_f32(at_value(r, root), data, r->policy.storage, n);
	placed(r, root);
	return VN_OK;
}

void vn_ref_end(vn_ref *r, bool keep)
{
	if (!r->call.open)
		return;
	vn_progress_stop(&r->call.progress);
	if (keep)
		r->position += r->call.tokens;
	memset(&r->call, 0, sizeof r->call);
}

vn_status vn_ref_forward(vn_ref *r, const int32_t *ids, int64_t tokens, const vn_taps *taps, vn_error *err)
{
	vn_status st = vn_ref_begin(r, ids, tokens, taps, err);

	if (st)
		return st;
	st = vn_ref_run(r, 0, r->plan->n_nodes, err);
	vn_ref_end(r, !st);
	return st;
}
