/* probe.c: see probe.h. A walk backwards over a plan, by hand where vn_ref walks forwards:
 * a plan of three hundred nodes is asked for one of them. */
#include "compare/probe.h"
#include "compare/names.h"

#include "libref/exec/eval.h"
#include "libref/ops/blas.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
	SAMPLE = 64,          /* rows of a vocabulary's scores */
	MANY = 1 << 25,       /* elements above which they are sampled */
	ROWS = 64             /* of attention scores at a time */
};

typedef struct width {
	vn_policy      policy;
	const vn_eval *eval;
	size_t         size;  /* bytes of a number */
	void         **sound; /* (values): what was captured, or the sound plan made; NULL: not yet */
} width;

struct vn_probe {
	vn_comparison   *c;
	const vn_plan   *plan;
	const vn_tensor *weight;
	vn_names         names;
	const vn_step   *step;    /* all of them */
	int              n_steps;
	int             *point;   /* (steps, values): the checkpoint that was captured of a root value; -1 */
	int              threads;
	width            w[VN_PROBE_WIDTHS];
	/* the checkpoint */
	int              at, target, when; /* checkpoint, its root value, its step counted from 0 */
	int64_t          tokens;  /* of all steps up to it */
	int64_t          first, rows; /* its own among them */
	int64_t          sample[SAMPLE];
	int              n_sample; /* 0: all of its rows */
	vn_tensor        cand;
	void            *own;     /* cand's numbers, where they are not the file's */
	int             *span, n_span;
};

/* What a plan that is tried computes beside the sound one. */
typedef struct run {
	vn_probe        *p;
	const vn_plan   *plan;
	const vn_tensor *weight;
	width           *w;
	signed char     *touched; /* (values of the plan): -1 not known yet */
	void           **made;    /* (values of the plan) that are touched */
} run;

/* ---- what was captured -------------------------------------------------------------------- */

static int captured(const vn_probe *p, int step, int root)
{
	return p->point[(size_t)step * (size_t)p->plan->n_values + (size_t)root];
}

/* In all steps up to the checkpoint's, whole. */
static bool known(const vn_probe *p, int root)
{
	if (root >= p->plan->n_values || root == p->target || p->plan->value[root].state >= 0 || vn_value_streams(p->plan, root))
		return false;
	for (int i = 0; i <= p->when; i++) {
		const int point = captured(p, i, root);
		const vn_shape s = vn_value_shape(&p->plan->value[root], p->step[i].tokens, 0);
		if (point < 0 || p->c->point[point].replay.captured || !vn_shape_equal(&s, &vn_recording_entry(p->c->cand, p->c->point[point].cand)->shape))
			return false;
	}
	return true;
}

static vn_status load(vn_probe *p, width *w, int root, void **data, vn_error *err)
{
	const int64_t row = vn_value_row(&p->plan->value[root]);
	const vn_dtype as = vn_policy_dtype(w->policy, vn_value_wide(p->plan, root));
	char     *x = malloc((size_t)(p->tokens * row) * w->size + 1);
	vn_status st = x ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %s", p->plan->value[root].name);
	size_t    at = 0;

	for (int i = 0; !st && i <= p->when; i++) {
		const int entry = p->c->point[captured(p, i, root)].cand;
		const size_t n = (size_t)(p->step[i].tokens * row);
		vn_tensor t;
		if ((st = vn_entry_tensor(p->c->cand, entry, &t, err)))
			break;
		if (w->size == 8)
			vn_to_f64((double *)x + at, t.data, t.dtype, n);
		else
			vn_to_f32_as((float *)x + at, t.data, t.dtype, as, n);
		at += n;
		vn_recording_release(p->c->cand, entry);
	}
	if (st)
		free(x);
	else
		*data = x;
	return st;
}

/* ---- what a plan has otherwise ---------------------------------------------------------------- */

static bool same_weight(const vn_tensor *a, const vn_tensor *b)
{
	return a->data == b->data && a->dtype == b->dtype && vn_shape_equal(&a->shape, &b->shape);
}

static bool same_node(const run *r, int value)
{
	const vn_probe *p = r->p;
	const vn_node  *a = &p->plan->node[p->plan->value[value].node], *b = &r->plan->node[r->plan->value[value].node];
	bool same = a->op == b->op && a->n_in == b->n_in && a->n_w == b->n_w && memcmp(&a->c, &b->c, sizeof a->c) == 0 &&
	            memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) == 0;

	for (int i = 0; same && i < a->n_w; i++)
		same = (a->w[i] < 0) == (b->w[i] < 0) && (a->w[i] < 0 || same_weight(&p->weight[a->w[i]], &r->weight[b->w[i]]));
	return same;
}

static bool touched(run *r, int value)
{
	const int root = vn_plan_root(r->plan, value);
	bool yes;

	if (r->touched[root] >= 0)
		return r->touched[root];
	if (known(r->p, root)) {
		r->touched[root] = 0;
		return false;
	}
	yes = root >= r->p->plan->n_values || !same_node(r, root);
	const vn_node *n = &r->plan->node[r->plan->value[root].node];
	for (int i = 0; !yes && i < n->n_in; i++)
		yes = touched(r, n->in[i]);
	r->touched[root] = yes;
	return yes;
}

/* ---- computing --------------------------------------------------------------------------------- */

static vn_status value_of(run *r, int value, const void **data, vn_error *err);

/* A node, call by call as the steps were: tokens that were cached count otherwise than those of the call in some plans. */
typedef struct call {
	const vn_node *n;
	vn_args     a;                 /* of the call at hand */
	const void *in[VN_MAX_IN];     /* for all tokens */
	int64_t     row[VN_MAX_IN];    /* elements of one token's row of them */
	char       *kept[VN_MAX_STATE]; /* states of fixed size; those that grow where others read what calls leave than what they made */
	bool        fixed;             /* some state has a fixed size: every call is needed for the next */
} call;

static void end_call(call *k)
{
	for (int i = 0; i < VN_MAX_STATE; i++)
		free(k->kept[i]);
}

/* Keys that later calls find in the place of those of this one. */
static bool keeps_others(const call *k)
{
	return k->n->op == VN_OP_ATTENTION && k->n->n_in > VN_ATTN_KEPT;
}

static vn_status make_states(run *r, call *k, vn_error *err)
{
	for (int i = 0; i < k->n->n_state; i++) {
		const vn_state *s = &r->plan->state[k->n->state[i]];
		const bool grows = s->input >= 0, others = grows && s->input == VN_ATTN_K && keeps_others(k);
		const size_t n = (size_t)(vn_state_row(s) * (grows ? r->p->tokens : 1));
		k->fixed = k->fixed || !grows;
		if (grows && !others)
			k->a.state[i] = (void *)(uintptr_t)k->in[s->input]; /* of all tokens, and only read */
		else if (!(k->a.state[i] = k->kept[i] = calloc(n + 1, r->w->size)))
			return vn_fail(err, VN_ERR_NOMEM, "no memory for a state");
	}
	return VN_OK;
}

static vn_status begin_call(run *r, int node, call *k, vn_error *err)
{
	const vn_probe *p = r->p;
	const vn_node  *n = &r->plan->node[node];
	vn_status       st = VN_OK;

	*k = (call) { .n = n, .a = { .policy = r->w->policy, .threads = p->threads, .lists = r->plan->list, .wide = vn_value_wide(r->plan, n->out[0]) } };
	for (int i = 0; !st && i < n->n_in; i++) {
		st = value_of(r, n->in[i], &k->in[i], err);
		k->row[i] = vn_value_row(&r->plan->value[n->in[i]]);
	}
	for (int i = 0; i < n->n_w; i++)
		k->a.w[i] = n->w[i] >= 0 ? &r->weight[n->w[i]] : NULL;
	return st ? st : make_states(r, k, err);
}

/* The call turns to a step. Of keys that are kept otherwise: the kept ones of the calls before, and this call's own. */
static void turn_to(run *r, call *k, int step)
{
	const vn_step *s = &r->p->step[step];
	const int32_t *ids;

	vn_recording_tokens(r->p->c->cand, &ids, NULL);
	k->a.ids = ids + s->position;
	k->a.past = s->position;
	k->a.tokens = s->tokens;
	for (int i = 0; i < k->n->n_in; i++)
		k->a.in[i] = (const char *)k->in[i] + (size_t)(s->position * k->row[i]) * r->w->size;
	for (int i = 0; i < k->n->n_state; i++) {
		const int from = r->plan->state[k->n->state[i]].input;
		if (from < 0 || !k->kept[i])
			continue;
		const size_t row = (size_t)k->row[from] * r->w->size, past = (size_t)s->position * row;
		memcpy(k->kept[i], k->in[VN_ATTN_KEPT], past);
		memcpy(k->kept[i] + past, (const char *)k->in[from] + past, (size_t)s->tokens * row);
	}
}

/* The first output for the tokens of steps [from, the checkpoint's], into x, which has room for all tokens. */
static vn_status walk(run *r, call *k, int from, void *x, vn_error *err)
{
	const vn_value *v = &r->plan->value[k->n->out[0]];
	const int64_t   row = vn_value_row(v);
	vn_status       st = VN_OK;

	for (int i = from; !st && i <= r->p->when; i++) {
		turn_to(r, k, i);
		st = r->w->eval->node(k->n, &k->a, row, v->size[v->rank - 1], (char *)x + (size_t)(k->a.past * row) * r->w->size, err);
	}
	return st;
}

static vn_status first_output(run *r, call *k, int from, void **out, vn_error *err)
{
	const vn_value *v = &r->plan->value[k->n->out[0]];
	void           *x = malloc((size_t)(r->p->tokens * vn_value_row(v)) * r->w->size + 1);
	const vn_status st = x ? walk(r, k, k->fixed ? 0 : from, x, err) : vn_fail(err, VN_ERR_NOMEM, "no memory for %s", v->name);

	*out = st ? NULL : x;
	if (st)
		free(x);
	return st;
}

/* A value for all tokens: captured, made for a plan before this one, or made now. */
static vn_status value_of(run *r, int value, const void **data, vn_error *err)
{
	const int root = vn_plan_root(r->plan, value);
	const bool own = touched(r, root);
	void    **at = own ? &r->made[root] : &r->w->sound[root];
	call      k = { 0 };
	vn_status st = VN_OK;

	if (!*at && !own && known(r->p, root))
		st = load(r->p, r->w, root, at, err);
	else if (!*at && r->plan->node[r->plan->value[root].node].out[0] != root)
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s is not what its operation makes first", r->plan->value[root].name);
	else if (!*at) {
		if (!(st = begin_call(r, r->plan->value[root].node, &k, err)))
			st = first_output(r, &k, 0, at, err);
		end_call(&k);
	}
	*data = *at;
	return st;
}

/* ---- the checkpoint ---------------------------------------------------------------------------- */

/* Attention scores or probabilities of the checkpoint's rows. */
static vn_status rows_of(run *r, call *k, int slot, void *out, vn_error *err)
{
	const vn_probe *p = r->p;
	const int64_t   S = p->tokens, heads = k->n->c.attention.heads, first = p->first - p->step[p->when].position;
	int bad = 0;

	turn_to(r, k, p->when);
#pragma omp parallel for collapse(2) num_threads(p->threads)
	for (int64_t h = 0; h < heads; h++)
		for (int64_t i = 0; i < p->rows; i += ROWS)
			if (r->w->eval->rows(k->n, &k->a, slot, h, first + i, p->rows - i < ROWS ? p->rows - i : ROWS,
			                     (char *)out + (size_t)((h * p->rows + i) * S) * r->w->size, NULL)) {
#pragma omp atomic write
				bad = 1;
			}
	return bad ? vn_fail(err, VN_ERR_NOMEM, "no memory for attention rows") : VN_OK;
}

/* Only some rows of the input of a node whose tokens know nothing of each other. */
static vn_status sampled(run *r, call *k, void **out, vn_error *err)
{
	const vn_probe *p = r->p;
	const vn_value *v = &r->plan->value[k->n->out[0]];
	const size_t    row = (size_t)k->row[0] * r->w->size;
	char           *x = malloc(row * SAMPLE + 1);
	vn_status       st;

	*out = malloc((size_t)(vn_value_row(v) * SAMPLE) * r->w->size);
	if (!x || !*out) {
		free(x);
		return vn_fail(err, VN_ERR_NOMEM, "no memory for rows of scores");
	}
	for (int i = 0; i < p->n_sample; i++)
		memcpy(x + (size_t)i * row, (const char *)k->in[0] + (size_t)p->sample[i] * row, row);
	k->a.in[0] = x;
	k->a.tokens = p->n_sample;
	st = r->w->eval->node(k->n, &k->a, vn_value_row(v), v->size[v->rank - 1], *out, err);
	free(x);
	return st;
}

static void keep_rows(const vn_probe *p, const run *r, int64_t row, void *x)
{
	memmove(x, (char *)x + (size_t)(p->first * row) * r->w->size, (size_t)(p->rows * row) * r->w->size);
}

/* A state that the checkpoint shows, as the last call leaves it. */
static vn_status state_of(run *r, call *k, const vn_state *s, void **out, vn_error *err)
{
	const size_t n = (size_t)vn_shape_count(&r->p->cand.shape) * r->w->size;
	vn_status    st;
	void        *x;

	if (s->input >= 0) {
		const int from = s->input == VN_ATTN_K && keeps_others(k) ? VN_ATTN_KEPT : s->input;
		if (!(*out = malloc(n + 1)))
			return vn_fail(err, VN_ERR_NOMEM, "no memory for a state");
		memcpy(*out, k->in[from], n);
		return VN_OK;
	}
	for (int i = 0; i < k->n->n_state; i++)
		if (&r->plan->state[k->n->state[i]] == s) {
			st = first_output(r, k, 0, &x, err);
			free(x);
			*out = k->kept[i];
			k->kept[i] = NULL;
			return st;
		}
	return vn_fail(err, VN_ERR_UNSUPPORTED, "no state is kept");
}

static vn_status make(run *r, call *k, int slot, void **out, vn_error *err)
{
	const vn_probe *p = r->p;
	const vn_value *v = &r->plan->value[p->target];
	vn_status       st;

	if (p->n_sample)
		return k->n->op == VN_OP_LINEAR && slot == 0 ? sampled(r, k, out, err) : vn_fail(err, VN_ERR_UNSUPPORTED, "not a sum over columns");
	if (v->state >= 0)
		return state_of(r, k, &r->plan->state[v->state], out, err);
	if (slot == 0) {
		if (!(st = first_output(r, k, p->when, out, err)))
			keep_rows(p, r, vn_value_row(v), *out);
		return st;
	}
	if (k->n->op != VN_OP_ATTENTION)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s is made by the way", v->name);
	if (!(*out = malloc((size_t)vn_shape_count(&p->cand.shape) * r->w->size + 1)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %s", v->name);
	return rows_of(r, k, slot, *out, err);
}

static bool fits(const run *r, int slot)
{
	const vn_probe *p = r->p;
	const vn_value *v = &r->plan->value[p->target];
	const bool      state = v->state >= 0;
	vn_shape s = vn_value_shape(v, p->n_sample ? p->n_sample : p->rows, p->tokens);

	return (slot >= 0 || state) && vn_shape_equal(&s, &p->cand.shape);
}

static vn_status begin_run(run *r, vn_probe *p, const vn_plan *plan, const vn_tensor *weight, width *w, vn_error *err)
{
	const size_t n = (size_t)plan->n_values + 1;

	*r = (run) { p, plan, weight, w, malloc(n), calloc(n, sizeof *r->made) };
	if (!r->touched || !r->made)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d values", plan->n_values);
	memset(r->touched, -1, n);
	return VN_OK;
}

static void end_run(run *r)
{
	for (int v = 0; r->made && v < r->plan->n_values; v++)
		free(r->made[v]);
	free(r->made);
	free(r->touched);
}

bool vn_probe_touched(vn_probe *p, const vn_plan *plan, const vn_tensor *weights)
{
	run r;
	vn_error none;
	const bool yes = !begin_run(&r, p, plan, weights, &p->w[VN_PROBE_OWN], &none) && touched(&r, p->target);

	end_run(&r);
	return yes;
}

vn_status vn_probe_run(vn_probe *p, const vn_plan *plan, const vn_tensor *weights, vn_probe_as as, vn_tensor *out, vn_error *err)
{
	const int node = plan->value[p->target].node;
	int       slot = -1;
	call      k = { 0 };
	void     *data = NULL;
	run       r;
	vn_status st = begin_run(&r, p, plan, weights, &p->w[as], err);

	for (int i = 0; i < plan->node[node].n_out; i++)
		slot = plan->node[node].out[i] == p->target ? i : slot;
	if (!st && !fits(&r, slot))
		st = vn_fail(err, VN_ERR_UNSUPPORTED, "%s comes out in another shape", plan->value[p->target].name);
	if (!st && !(st = begin_call(&r, node, &k, err)))
		st = make(&r, &k, slot, &data, err);
	end_call(&k);
	end_run(&r);
	if (st)
		free(data);
	else
		*out = (vn_tensor) { r.w->eval->width, p->cand.shape, data };
	return st;
}

vn_status vn_probe_input(vn_probe *p, int input, vn_probe_as as, vn_tensor *out, vn_error *err)
{
	const int v = p->plan->node[p->plan->value[p->target].node].in[input];
	const void *data;
	run r;
	vn_status st = begin_run(&r, p, p->plan, p->weight, &p->w[as], err);

	if (!st && !(st = value_of(&r, v, &data, err)))
		*out = (vn_tensor) { r.w->eval->width, vn_value_shape(&p->plan->value[v], p->tokens, p->tokens), data };
	end_run(&r);
	return st;
}

/* ---- turning to a checkpoint ---------------------------------------------------------------------- */

static void forget(vn_probe *p)
{
	for (int w = 0; w < VN_PROBE_WIDTHS; w++)
		for (int v = 0; p->w[w].sound && v < p->plan->n_values; v++) {
			free(p->w[w].sound[v]);
			p->w[w].sound[v] = NULL;
		}
	if (p->at >= 0 && !p->own)
		vn_recording_release(p->c->cand, p->c->point[p->at].cand);
	free(p->own);
	p->own = NULL;
	p->at = -1;
	p->n_sample = 0;
}

static vn_status take_candidate(vn_probe *p, vn_error *err)
{
	const vn_checkpoint *k = &p->c->point[p->at];
	const vn_value *v = &p->plan->value[p->target];
	const vn_step  *s = &p->step[p->when];
	vn_tensor t;
	vn_status st = vn_entry_tensor(p->c->cand, k->cand, &t, err);

	p->first = s->position + s->first_row;
	p->rows = s->rows;
	if (st)
		return st;
	p->cand = t;
	if (v->size[0] != VN_T || p->rows <= SAMPLE || vn_value_row(v) * p->rows <= MANY || v->node < 0 || p->plan->node[v->node].op != VN_OP_LINEAR)
		return VN_OK;
	const size_t row = (size_t)vn_value_row(v) * vn_dtype_size(t.dtype);
	char        *x = p->own = malloc(row * SAMPLE);
	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for rows of %s", v->name);
	for (int i = 0; i < SAMPLE; i++) {
		const int64_t at = (p->rows - 1) * i / (SAMPLE - 1);
		p->sample[i] = p->first + at;
		memcpy(x + (size_t)i * row, (const char *)t.data + (size_t)at * row, row);
	}
	p->n_sample = SAMPLE;
	p->cand.data = x;
	p->cand.shape.dim[0] = SAMPLE;
	vn_recording_release(p->c->cand, k->cand);
	return VN_OK;
}

static void find_span(vn_probe *p, int value)
{
	const int root = vn_plan_root(p->plan, value), node = p->plan->value[root].node;

	for (int i = 0; i < p->n_span; i++)
		if (p->span[i] == node)
			return;
	if (known(p, root))
		return;
	p->span[p->n_span++] = node;
	for (int i = 0; i < p->plan->node[node].n_in; i++)
		find_span(p, p->plan->node[node].in[i]);
}

static bool follow(const vn_probe *p, int upto)
{
	const int32_t *at;
	const int64_t  n = vn_recording_tokens(p->c->cand, NULL, &at);
	int64_t        position = 0;

	for (int i = 0; i <= upto; position += p->step[i++].tokens)
		if (p->step[i].position != position || p->step[i].tokens <= 0 || p->step[i].tokens > n - position)
			return false;
	for (int64_t t = 0; t < position; t++)
		if (at[t] != t)
			return false;
	return true;
}

vn_status vn_probe_at(vn_probe *p, int point, vn_error *err)
{
	const vn_checkpoint *k = &p->c->point[point];
	const int root = vn_names_root(&p->names, k->name);

	forget(p);
	p->when = 0;
	while (p->when < p->n_steps && p->step[p->when].number != k->step)
		p->when++;
	if (root < 0 || p->when == p->n_steps || !k->m.n || !follow(p, p->when))
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s cannot be computed again", k->name);
	p->at = point;
	p->target = root;
	p->tokens = p->step[p->when].position + p->step[p->when].tokens;
	p->n_span = 0;
	find_span(p, root);
	return take_candidate(p, err);
}

const int *vn_probe_span(vn_probe *p, int *n)
{
	*n = p->n_span;
	return p->span;
}

const vn_plan   *vn_probe_plan(const vn_probe *p)      { return p->plan; }
const vn_tensor *vn_probe_weights(const vn_probe *p)   { return p->weight; }
int              vn_probe_target(const vn_probe *p)    { return p->target; }
const vn_tensor *vn_probe_candidate(const vn_probe *p) { return &p->cand; }

const char *vn_probe_axes(const vn_probe *p)
{
	return vn_entry_axes(vn_recording_entry(p->c->ref, p->c->point[p->at].ref));
}

/* ---- life -------------------------------------------------------------------------------------------- */

/* Of two names of a value the one that is outside, as a replay takes it. */
static void find_points(vn_probe *p)
{
	const vn_comparison *c = p->c;
	const size_t values = (size_t)p->plan->n_values;

	for (size_t i = 0; i < (size_t)p->n_steps * values; i++)
		p->point[i] = -1;
	for (int i = 0; i < c->n_points; i++) {
		const int root = c->point[i].m.n ? vn_names_root(&p->names, c->point[i].name) : -1;
		for (int s = 0; root >= 0 && s < p->n_steps; s++) {
			int *at = &p->point[(size_t)s * values + (size_t)root];
			if (p->step[s].number == c->point[i].step && (*at < 0 || c->point[*at].status != VN_OUTSIDE))
				*at = i;
		}
	}
}

vn_status vn_probe_create(vn_comparison *c, vn_probe **probe, vn_error *err)
{
	vn_probe *p = *probe = calloc(1, sizeof *p);
	vn_status st;

	if (!p)
		return vn_fail(err, VN_ERR_NOMEM, "no memory");
	p->c = c;
	p->at = -1;
	p->plan = vn_model_plan(c->model);
	p->weight = vn_model_weights(c->model);
	p->n_steps = vn_recording_steps(c->cand, &p->step);
	p->threads = c->options->threads > 0 ? c->options->threads : omp_get_num_procs();
	p->w[VN_PROBE_OWN].policy = c->policy;
	vn_policy_from_name(c->policy.storage == VN_F16 || c->policy.storage == VN_BF16 ? "f32" : "f64", &p->w[VN_PROBE_FINE].policy);
	st = vn_names_init(&p->names, p->plan, err);
	for (int i = 0; !st && i < VN_PROBE_WIDTHS; i++) {
		p->w[i].eval = vn_eval_for(p->w[i].policy);
		p->w[i].size = vn_dtype_size(p->w[i].eval->width);
		if (!(p->w[i].sound = calloc((size_t)p->plan->n_values + 1, sizeof *p->w[i].sound)))
			st = vn_fail(err, VN_ERR_NOMEM, "no memory for %d values", p->plan->n_values);
	}
	if (!st && (!(p->point = malloc((size_t)p->n_steps * (size_t)p->plan->n_values * sizeof *p->point + 1))
	            || !(p->span = malloc(((size_t)p->plan->n_nodes + 1) * sizeof *p->span))))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %d values", p->plan->n_values);
	vn_blas_single();
	if (!st && !(st = vn_blas_reserve(p->threads, err)))
		find_points(p);
	if (st) {
		vn_probe_destroy(p);
		*probe = NULL;
	}
	return st;
}

void vn_probe_destroy(vn_probe *p)
{
	if (!p)
		return;
	forget(p);
	vn_names_finish(&p->names);
	for (int i = 0; i < VN_PROBE_WIDTHS; i++)
		free(p->w[i].sound);
	free(p->point);
	free(p->span);
	free(p);
}
