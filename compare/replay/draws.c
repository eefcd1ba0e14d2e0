/* draws.c: see draws.h. */
#include "compare/replay/draws.h"

#include "compare/replay/draw_channels.h"
#include "libref/base/alloc.h"
#include "libref/base/digest.h"
#include "libref/exec/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Few rows need more draws: the mean error must be known better than the candidate's own. */
enum { FEW_ROWS = 32, SOME_ROWS = 128, SOME_DRAWS = 6, FEWEST_DRAWS = 4 };
enum { ROWS_READ = 64, ERRORS = VN_DRAWS_MOST * ROWS_READ /* of one output */ };

typedef struct draw {
	vn_replay_engine   e;
	vn_plan           *plan; /* with the angles of another correct engine */
	vn_random_rounding rounding;
} draw;

/* The local errors of the steps of one value, in floors. */
typedef struct step_pool {
	double sum, freedom; /* of ratio times degrees of freedom; of degrees of freedom */
} step_pool;

struct vn_draws {
	draw                draw[VN_DRAWS_MOST];
	int                 n;
	unsigned char      *ends;   /* (steps, values): a span ends at this value */
	bool               *want;   /* (values), in this step */
	step_pool          *pool;   /* (values) */
	vn_pooled_channels *pooled; /* (n_pooled), numbered as checkpoints' `channels` */
	int                 n_pooled;
	vn_span_floor       floor[VN_MAX_OUT + 2]; /* of the outputs of the node that was run last */
	double             *error; /* (outputs, VN_DRAWS_MOST, ROWS_READ): squared error of rows over their square */
	vn_channel_errors   channels[VN_MAX_OUT + 2]; /* of the same outputs */
	double             *row[2];                   /* (row_room), scratch */
	size_t              row_room;
};

/* ---- where spans end ------------------------------------------------------------------------- */

/* The value of a checkpoint that the replay measures; -1: it measures none. */
static int value_of(const vn_replay *r, const vn_checkpoint *p)
{
	return p->m.n ? vn_names_root(&r->names, p->name) : -1;
}

static bool is_whole(const vn_replay *r, const vn_checkpoint *p, const vn_step *s, int value)
{
	const vn_entry *e = vn_recording_entry(r->o->cand, p->cand);
	const vn_shape  whole = vn_value_shape(&r->plan->value[value], s->tokens, s->position + s->tokens);
	return vn_shape_equal(&e->shape, &whole);
}

/* Marks the values of a step that the replay will take from the candidate, as vn_replay_take
 * does. */
static void mark_kept(const vn_replay *r, vn_trace *t, const vn_step *step, int at)
{
	for (int i = r->first[at]; i < r->first[at + 1]; i++) {
		const int value = value_of(r, r->in_step[i]);
		if (value >= 0 && !vn_replay_no_place(r->plan, value))
			vn_trace_keep(t, at, value, is_whole(r, r->in_step[i], step, value) ? VN_KEPT_ALL : VN_KEPT_ROWS);
	}
}

/* *found: some span has several operations. */
static vn_status find_ends(vn_replay *r, const vn_step *step, int steps, unsigned char *ends, bool *found,
                           vn_error *err)
{
	VN_ENDS(vn_trace_finish) vn_trace t = { 0 };
	vn_status                         st = vn_trace_init(&t, r->plan, steps, err);

	for (int at = 0; !st && at < steps; at++) { /* a span reaches back, never forward */
		mark_kept(r, &t, &step[at], at);
		for (int i = r->first[at]; i < r->first[at + 1]; i++) {
			const int value = value_of(r, r->in_step[i]);
			int       nodes, charged;
			if (value < 0)
				continue;
			vn_trace_span(&t, at, value, &nodes, &charged);
			if (nodes == 1)
				continue;
			ends[(size_t)at * (size_t)r->plan->n_values + (size_t)value] = 1;
			*found = true;
		}
	}
	return st;
}

/* ---- engines --------------------------------------------------------------------------------- */

static void round_made(void *ctx, int node, int64_t first, int64_t tokens, void *x)
{
	const draw *d = ctx;
	vn_round_at_random(&d->rounding, node, vn_ref_ops.position(d->e.ref) + first, tokens, x);
}

/* The same recordings give the same draws. */
static uint64_t make_seed(const vn_opened *o)
{
	const vn_recording *const both[] = { o->ref, o->cand };
	vn_digester              *d = vn_alloc_check(vn_digester_create());
	vn_digest_bytes           bytes = { { 0 } };
	uint64_t                  seed;

	for (int k = 0; k < 2; k++) {
		const int32_t *ids, *positions;
		const int64_t  n = vn_recording_tokens(both[k], &ids, &positions);
		if (n > 0)
			vn_digester_add(d, ids, (size_t)n * sizeof *ids);
		for (int i = 0; i < vn_recording_count(both[k]); i++) {
			const vn_digest of = vn_entry_digest(vn_recording_entry(both[k], i));
			vn_digester_add(d, of.hex, strlen(of.hex));
		}
	}
	vn_digest_pack(vn_digester_finish(d).hex, &bytes);
	memcpy(&seed, bytes.byte, sizeof seed);
	return seed;
}

static int count_draws(const vn_step *step, int steps)
{
	int64_t rows = 0;
	for (int i = 0; i < steps; i++)
		rows += step[i].rows;
	return rows <= FEW_ROWS ? VN_DRAWS_MOST : rows <= SOME_ROWS ? SOME_DRAWS : FEWEST_DRAWS;
}

/* Gives draw i the arithmetic of another correct engine: engines round the angles of RoPE in
 * several ways (vn_angles), and compute the delta rule in chunks, whose sums of decays may be
 * large. */
static void turn_otherwise(vn_plan *plan, int i, uint64_t seed)
{
	for (int k = 0; k < plan->n_nodes; k++) {
		if (plan->node[k].op == VN_OP_ROPE) {
			plan->node[k].x.rope.angles = i % VN_N_ANGLES;
		} else if (plan->node[k].op == VN_OP_DELTA_RULE) {
			plan->node[k].x.delta.chunked = 1;
			plan->node[k].x.delta.drawn = (int)(vn_random_key(seed, k) & 0x7fffffff) | 1;
		}
	}
}

/* all: the seed of all draws */
static vn_status open_draw(vn_replay *r, draw *d, int i, uint64_t all, vn_error *err)
{
	const uint64_t seed = all + (uint64_t)i * 0x9e3779b97f4a7c15u;
	vn_status      st = vn_plan_clone(r->plan, &d->plan, err);
	if (st)
		return st;
	turn_otherwise(d->plan, i, seed);
	d->e.policy = r->e[VN_REPLAY_FINE].policy;
	d->e.last = r->last;
	d->rounding = (vn_random_rounding) { d->plan, vn_eval_for(d->e.policy)->width, r->o->policy, seed,
		                                 r->o->request.options->threads };
	const vn_ref_options o = {
		.policy = d->e.policy,
		.threads = r->o->request.options->threads,
		.made = round_made,
		.made_ctx = d,
		.need = vn_model_need,
		.need_ctx = r->o->model,
	};
	return vn_ref_create(d->plan, vn_model_weights(r->o->model), &o, &d->e.ref, err);
}

static vn_status open_all(vn_replay *r, const vn_step *step, int steps, vn_error *err)
{
	const size_t   values = (size_t)r->plan->n_values;
	const uint64_t seed = make_seed(r->o);
	vn_draws      *d = r->draws;
	vn_status      st = VN_OK;

	d->want = vn_alloc_zero(values, sizeof *d->want);
	d->pool = vn_alloc_zero(values, sizeof *d->pool);
	d->error = vn_alloc((VN_MAX_OUT + 2) * ERRORS, sizeof *d->error);
	for (int i = 0; !st && i < count_draws(step, steps); i++) {
		d->n = i + 1;
		st = open_draw(r, &d->draw[i], i, seed, err);
	}
	return st;
}

vn_status vn_draws_open(vn_replay *r, const vn_step *step, int steps, vn_error *err)
{
	bool      found = false;
	vn_status st;

	if (r->o->request.only_local)
		return VN_OK;
	unsigned char *ends = vn_alloc_zero((size_t)r->plan->n_values * (size_t)steps, 1);
	if ((st = find_ends(r, step, steps, ends, &found, err)) || !found) {
		free(ends);
		return st;
	}
	r->draws = vn_alloc_zero(1, sizeof *r->draws);
	r->draws->ends = ends;
	return open_all(r, step, steps, err);
}

void vn_draws_close(vn_replay *r)
{
	vn_draws *d = r->draws;

	if (!d)
		return;
	for (int i = 0; i < d->n; i++) {
		vn_replay_engine_close(&d->draw[i].e);
		vn_plan_destroy(d->draw[i].plan);
	}
	for (int g = 0; g < d->n_pooled; g++)
		VN_FREE(d->pooled[g].channel[0], d->pooled[g].channel[1]);
	VN_FREE(d->ends, d->want, d->pool, d->pooled, d->error);
	for (int o = 0; o < VN_MAX_OUT + 2; o++)
		free(d->channels[o].now);
	VN_FREE(d->row[0], d->row[1], d);
	r->draws = NULL;
}

int vn_draws_count(const vn_replay *r)
{
	return r->draws ? r->draws->n : 0;
}

vn_replay_engine *vn_draws_engine(const vn_replay *r, int i)
{
	return &r->draws->draw[i].e;
}

vn_status vn_draws_begin(vn_replay *r, const int32_t *ids, vn_error *err)
{
	vn_draws *d = r->draws;
	vn_status st = VN_OK;

	for (int v = 0; d && v < r->plan->n_values; v++)
		d->want[v] = d->ends[(size_t)r->at * (size_t)r->plan->n_values + (size_t)v];
	for (int i = 0; !st && i < vn_draws_count(r); i++)
		st = vn_replay_engine_begin(&d->draw[i].e, r->step, ids, d->want, err);
	return st;
}

void vn_draws_end(vn_replay *r, bool keep)
{
	for (int i = 0; i < vn_draws_count(r); i++)
		vn_ref_ops.end(r->draws->draw[i].e.ref, keep, NULL);
}

/* ---- one value ------------------------------------------------------------------------------- */

/* Makes room for two rows of so many numbers. */
static void make_row_room(vn_draws *d, size_t n)
{
	if (n <= d->row_room)
		return;
	for (int i = 0; i < 2; i++) {
		free(d->row[i]);
		d->row[i] = vn_alloc(n, sizeof *d->row[i]);
	}
	d->row_room = n;
}

static int64_t rows_of(const vn_tensor *t, int axis)
{
	return axis >= 0 ? t->shape.dim[axis] : 1;
}

/* The elements before, along and after the token axis. */
typedef struct axis_split {
	int64_t outer, rows, inner;
} axis_split;

/* Returns the squared error of row `at` of x over the square of fine's, and adds that of each
 * channel to channel (outer * inner). */
static double error_of_row(vn_draws *d, const vn_tensor *fine, const vn_tensor *x, axis_split s, int64_t at,
                           double *channel)
{
	const int64_t inner = s.inner;
	double        dd = 0, rr = 0;

	for (int64_t o = 0; o < s.outer; o++) {
		vn_tensor_numbers(fine, (o * s.rows + at) * inner, inner, d->row[0]);
		vn_tensor_numbers(x, (o * s.rows + at) * inner, inner, d->row[1]);
		for (int64_t i = 0; i < inner; i++) {
			const double b = d->row[0][i], e = d->row[1][i] - b;
			dd += isfinite(e) ? e * e : 0;
			channel[o * inner + i] += isfinite(e) ? e * e : 0;
			rr += isfinite(e) ? b * b : 0;
		}
	}
	return rr > 0 ? dd / rr : 0;
}

/* Fills error with that of at most ROWS_READ rows, at equal distances, and c->now with that of
 * their channels. Returns the number of rows. axis: of the tokens; -1: there is none. */
static int64_t read_rows(vn_draws *d, const vn_tensor *fine, const vn_tensor *x, int axis, double *error,
                         vn_channel_errors *c)
{
	axis_split    s = { 1, rows_of(fine, axis), 1 };
	const int64_t step = (s.rows + ROWS_READ - 1) / ROWS_READ;
	int64_t       n = 0;

	for (int i = 0; i < fine->shape.rank; i++) {
		s.outer *= i < axis ? fine->shape.dim[i] : 1;
		s.inner *= i > axis ? fine->shape.dim[i] : 1;
	}
	make_row_room(d, (size_t)s.inner);
	if (c->n == 0)
		vn_channels_begin(c, s.outer * s.inner);
	memset(c->now, 0, (size_t)c->n * sizeof *c->now);
	for (int64_t t = 0; t < s.rows; t += step)
		error[n++] = error_of_row(d, fine, x, s, t, c->now);
	return n;
}

/* Returns the degrees of freedom of a row, from the scatter of its error over the draws: 2 /
 * variance of (error / its mean), averaged over rows. 1 if nothing scatters. */
static double freedom_of_row(const double *error, int draws, int64_t rows)
{
	double  var = 0;
	int64_t n = 0;

	for (int64_t t = 0; t < rows; t++) {
		double mean = 0;
		for (int i = 0; i < draws; i++)
			mean += error[i * ROWS_READ + t] / draws;
		for (int i = 0; i < draws && mean > 0; i++) {
			const double off = error[i * ROWS_READ + t] / mean - 1;
			var += off * off / (draws - 1);
		}
		n += mean > 0;
	}
	return var > 0 ? 2 * (double)n / var : 1;
}

static const char *axes_of(const vn_replay *r, int value)
{
	return vn_entry_axes(vn_recording_entry(r->o->ref, r->point[value]->ref));
}

static int token_axis(const vn_replay *r, int value)
{
	return vn_axes_find(axes_of(r, value), "token");
}

/* Adds draw i to output o. */
static vn_status add_draw(vn_replay *r, int i, int o, vn_error *err)
{
	vn_draws             *d = r->draws;
	vn_span_floor        *f = &d->floor[o];
	double               *error = d->error + o * ERRORS;
	const vn_node_output *x = vn_replay_made(&d->draw[i].e, f->value),
						 *fine = vn_replay_made(&r->e[VN_REPLAY_FINE], f->value);
	vn_measured m;
	vn_status   st;

	if (!x || !fine || !vn_shape_equal(&x->t.shape, &fine->t.shape)) {
		f->value = -1;
		return VN_OK;
	}
	if ((st = vn_measure_brief(&fine->t, &x->t, axes_of(r, f->value), r->o->request.options->threads, &m, err)))
		return st;
	if (!m.finite) { /* then nothing is known */
		f->value = -1;
		return VN_OK;
	}
	f->nmse += m.value[VN_M_NMSE] / d->n;
	f->token += m.value[VN_M_WORST_TOKEN_NMSE] / d->n;
	f->max += m.value[VN_M_MAX_ABS] / d->n;
	f->largest = m.absmax[0];
	const int     axis = token_axis(r, f->value);
	const int64_t rows = read_rows(d, &fine->t, &x->t, axis, error + i * ROWS_READ, &d->channels[o]);
	vn_channels_add(&d->channels[o]);
	if (i == d->n - 1) /* the mean itself is known from so many draws only */
		f->freedom = freedom_of_row(error, d->n, rows) * (double)rows_of(&fine->t, axis) * d->n / (d->n + 1);
	return VN_OK;
}

/* Lists the outputs of node k where spans end in d->floor, and returns their number. */
static int list_ends(vn_replay *r, int k)
{
	const vn_node *node = &r->plan->node[k];
	vn_draws      *d = r->draws;
	int            n = 0;

	for (int i = 0; i < VN_MAX_OUT + 2; i++)
		d->floor[i] = (vn_span_floor) { .value = -1 };
	for (int i = 0; i < VN_MAX_OUT + 2; i++)
		d->channels[i].n = 0;
	for (int i = 0; i < node->n_out; i++) {
		const int root = node->out[i] >= 0 ? vn_plan_root(r->plan, node->out[i]) : -1;
		if (root >= 0 && d->want[root] && r->point[root])
			d->floor[n++].value = root;
	}
	return n;
}

vn_status vn_draws_node(vn_replay *r, int k, vn_error *err)
{
	vn_draws *d = r->draws;
	const int n = d ? list_ends(r, k) : 0;
	vn_status st = VN_OK;

	for (int i = 0; !st && i < vn_draws_count(r); i++) {
		vn_replay_engine *e = &d->draw[i].e;
		e->n_out = 0;
		st = vn_ref_ops.run(e->ref, k, k + 1, err);
		for (int o = 0; !st && o < n; o++)
			if (d->floor[o].value >= 0)
				st = add_draw(r, i, o, err);
		for (int o = 0; o < e->n_out; o++)
			if (e->out[o].large.data) /* as large as all else together */
				vn_node_output_free(&e->out[o]);
	}
	return st;
}

const vn_span_floor *vn_draws_floor(const vn_replay *r, int value)
{
	for (int i = 0; r->draws && i < VN_MAX_OUT + 2; i++)
		if (r->draws->floor[i].value == value)
			return &r->draws->floor[i];
	return NULL;
}

static vn_pooled_channels *find_pool(vn_draws *d, int number)
{
	if (number >= d->n_pooled) {
		d->pooled = vn_alloc_resized(d->pooled, (size_t)number + 1, sizeof *d->pooled);
		memset(d->pooled + d->n_pooled, 0, (size_t)(number + 1 - d->n_pooled) * sizeof *d->pooled);
		d->n_pooled = number + 1;
	}
	return &d->pooled[number];
}

void vn_draws_channels(vn_replay *r, const vn_span_floor *f, const vn_tensor *near, const vn_tensor *cand,
                       vn_checkpoint *p)
{
	vn_draws          *d = r->draws;
	vn_channel_errors *c = &d->channels[f - d->floor];
	double             row[ROWS_READ];

	read_rows(d, near, cand, token_axis(r, f->value), row, c);
	const double freedom = vn_channels_freedom(c, d->n) * d->n / (d->n + 1);
	for (int64_t i = 0; i < c->n; i++)
		c->sum[i] /= d->n;
	p->replay.channel = vn_channels_judge(c->now, c->sum, c->n, freedom);
	if (p->in_channel_pool)
		p->replay.channel_of_steps = vn_channels_pool(find_pool(d, p->channels), c, c->sum, freedom, r->loose);
}

void vn_draws_pool(const vn_replay *r, int value, vn_replayed *l)
{
	const vn_span_floor *f = vn_draws_floor(r, value);
	step_pool           *pool = f ? &r->draws->pool[value] : NULL;

	if (!f || l->bad)
		return;
	pool->sum += vn_local_ratio(l) * f->freedom;
	pool->freedom += f->freedom;
	if (pool->sum / pool->freedom > VN_SPAN_LIMIT * vn_local_chance(pool->freedom))
		vn_local_set_slack(l, (double)INFINITY);
}
