/* fault_weights.c: faults of weights and linears (specs/models.md, 9.5). */
#include "libref/plan/fault_inside.h"

#include "libref/base/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const vn_shape *shape_of(const vn_plan *p, const vn_node *n)
{
	return &p->weight[n->w[0]].shape;
}

/* ---- the other way round -------------------------------------------------------------------- */

static const char *square(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_shape *s = shape_of(p, n);
	return (s->dim[0] == s->dim[1]) != (r->x > 0) ? (r->x > 0 ? "its matrix is not square" : "its matrix is square") : NULL;
}

/* The same bytes, rows for columns. A weight of its own: the sound one may have other readers. */
static vn_status transposed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int       w = f->plan->node[node].w[0];
	const vn_shape *s = &f->plan->weight[w].shape, turned = { .rank = 2, .dim = { s->dim[1], s->dim[0] } };
	int             new;
	const vn_status st = vn_fault_weight(f, w, NULL, &turned, &new, err);

	(void)r;
	if (!st) {
		f->plan->node[node].w[0] = new;
		f->plan->node[node].c.linear.transposed = !f->plan->node[node].c.linear.transposed;
	}
	return st;
}

/* ---- gate and up -------------------------------------------------------------------------------- */

static const char *feed_forward(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_point(p, n) != VN_POINT_MLP_ACT ? "it is for the feed-forward part" : NULL;
}

static vn_status exchange(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int gate = n->in[0];

	(void)r, (void)err;
	n->in[0] = n->in[1];
	n->in[1] = gate;
	return VN_OK;
}

/* The projection that stands beside this one. */
static const vn_node *beside(const vn_plan *p, const vn_node *n, vn_point a, vn_point b)
{
	const vn_point at = vn_fault_point(p, n);
	const int      v = at == a || at == b ? vn_fault_value(p, n->layer, at == a ? b : a) : -1;
	const vn_node *o = v < 0 ? NULL : &p->node[p->value[v].node];

	return o && o->op == VN_OP_LINEAR && vn_shape_equal(shape_of(p, o), shape_of(p, n)) && (o->w[1] < 0) == (n->w[1] < 0) ? o : NULL;
}

static const char *gate_or_up(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return !beside(p, n, VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ) ? "it is for the projections of gate and up" : NULL;
}

static const char *key_or_value(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return !beside(p, n, VN_POINT_K_PROJ, VN_POINT_V_PROJ) ? "it is for projections of keys and values of one size" : NULL;
}

static vn_status others_weights(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = vn_fault_sound(f, node), *gate = beside(f->sound, n, VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ);
	const vn_node *o = gate ? gate : beside(f->sound, n, VN_POINT_K_PROJ, VN_POINT_V_PROJ);

	(void)r, (void)err;
	memcpy(f->plan->node[node].w, o->w, sizeof o->w);
	return VN_OK;
}

enum { BY_ROWS, BY_HALVES, BY_RANKS }; /* BY_RANKS and more: of so many ranks */

/* Which row of gate and up joined (M each) is taken for row i of the same: the two row by row, which were halves; halves, which were row by row; halves,
 * which were those of `how` ranks in turn. */
static size_t joined_row(int how, size_t i, size_t M)
{
	const size_t share = how < BY_RANKS ? M : M / (size_t)how, block = share ? i / share : 0;

	return how == BY_ROWS ? i % M * 2 + i / M : how == BY_HALVES ? i % 2 * M + i / 2 : block % 2 * M + block / 2 * share + i % share;
}

static const char *gate_of_ranks(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const char *why = gate_or_up(r, p, n);
	return why ? why : shape_of(p, n)->dim[0] % 2 ? "two ranks cannot share its rows" : NULL;
}

/* x: how rows of gate and up are taken. */
static vn_status interleaved(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = vn_fault_sound(f, node), *o = beside(f->sound, n, VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ);
	const bool     up = vn_fault_point(f->sound, n) == VN_POINT_UP_PROJ;
	vn_status      st = VN_OK;

	for (int k = 0; k < 2 && !st && n->w[k] >= 0; k++) {
		const vn_shape *s = &f->sound->weight[n->w[k]].shape;
		const size_t    M = (size_t)s->dim[0], row = s->rank > 1 ? (size_t)s->dim[1] : 1;
		if (r->x > BY_RANKS && M % (size_t)r->x)
			return vn_fail(err, VN_ERR_USAGE, "%.0f ranks cannot share %zu rows", r->x, M);
		double *first = vn_fault_numbers(f, up ? o->w[k] : n->w[k]), *second = vn_fault_numbers(f, up ? n->w[k] : o->w[k]);
		double *y = vn_fault_numbers(f, n->w[k]);
		int     new = -1;
		for (size_t m = 0; first && second && y && m < M; m++) {
			const size_t from = joined_row((int)r->x, m + (up ? M : 0), M);
			memcpy(y + m * row, from < M ? first + from * row : second + (from - M) * row, row * sizeof *y);
		}
		if (!first || !second || !y) {
			free(y);
			st = vn_fail(err, VN_ERR_NOMEM, "no memory for a fault");
		} else if (!(st = vn_fault_weight(f, n->w[k], y, NULL, &new, err))) {
			f->plan->node[node].w[k] = new;
		}
		free(first);
		free(second);
	}
	return st;
}

/* ---- biases --------------------------------------------------------------------------------------- */

static vn_status bias_times(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 1, vn_fault_times, err);
}

static const char *other_bias(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return !beside(p, n, VN_POINT_K_PROJ, VN_POINT_V_PROJ) || n->w[1] < 0 ? "it is for the projections of keys and values with a bias" : NULL;
}

static vn_status others_bias(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].w[1] = beside(f->sound, vn_fault_sound(f, node), VN_POINT_K_PROJ, VN_POINT_V_PROJ)->w[1];
	return VN_OK;
}

/* ---- another's weights -------------------------------------------------------------------------------- */

/* x: by how many layers; 0: the first one's. */
static const vn_node *twin(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_twin(p, n, r->x == 0 ? 0 : n->layer + (int)r->x);
}

static const char *of_layers(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return !twin(r, p, n) ? "no such layer has weights like these" : NULL;
}

static vn_status twins_weights(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *o = twin(r, f->sound, vn_fault_sound(f, node));

	(void)err;
	memcpy(f->plan->node[node].w, o->w, sizeof o->w);
	return VN_OK;
}

/* The table of tokens. */
static int embedding(const vn_plan *p)
{
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_EMBED)
			return p->node[i].w[0];
	return -1;
}

static const char *head(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_point(p, n) != VN_POINT_LOGITS            ? "it is for the output matrix"
	     : r->x == 0 && n->w[0] == embedding(p)               ? "the output matrix is the embedding already"
	     : r->x == 0 && !vn_shape_equal(shape_of(p, n), &p->weight[embedding(p)].shape) ? "the embedding has other sizes" : NULL;
}

static vn_status tied(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	f->plan->node[node].w[0] = embedding(f->plan);
	return VN_OK;
}

static double zero(const vn_fault_row *r, double x)
{
	(void)r, (void)x;
	return 0;
}

static vn_status never_loaded(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 0, zero, err);
}

/* ---- formats -------------------------------------------------------------------------------------------- */

static vn_status read_as_other(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int w = f->plan->node[node].w[0];
	int       new;
	vn_status st;

	(void)r;
	if (f->weight[w].dtype != VN_F16 && f->weight[w].dtype != VN_BF16)
		return vn_fail(err, VN_ERR_USAGE, "weight %s is %s, not f16 or bf16", f->plan->weight[w].name, vn_dtype_name(f->weight[w].dtype));
	if ((st = vn_fault_weight(f, w, NULL, NULL, &new, err)))
		return st;
	f->weight[new].dtype = f->weight[w].dtype == VN_F16 ? VN_BF16 : VN_F16;
	f->plan->node[node].w[0] = new;
	return VN_OK;
}

static double truncated(const vn_fault_row *r, double x)
{
	float    a = (float)x;
	uint32_t bits;

	(void)r;
	memcpy(&bits, &a, 4);
	bits &= 0xFFFF0000u;
	memcpy(&a, &bits, 4);
	return (double)a;
}

/* What float16 would make an infinity or a subnormal. */
static double clamped(const vn_fault_row *r, double x)
{
	(void)r;
	return fabs(x) > 65504.0 ? copysign(65504.0, x) : fabs(x) < 0x1p-14 ? 0.0 : x;
}

/* Rows padded to a multiple of 16, and more, read as if they were not. */
static int64_t sheared(const vn_fault_row *r, const vn_shape *s, int64_t at, int64_t *n)
{
	const int64_t N = s->dim[1], stride = N + (int64_t)r->x, column = at % stride;

	*n = column < N ? N - column : stride - column;
	return column < N ? at / stride * N + column : -1;
}

static vn_status truncate_all(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 0, truncated, err);
}

static vn_status clamp_all(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_each(r, f, node, 0, clamped, err);
}

static vn_status shear(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_places(r, f, node, 0, sheared, err);
}

/* The two halves of a table, one for the other. */
static int64_t halves(const vn_fault_row *r, const vn_shape *s, int64_t at, int64_t *n)
{
	(void)r;
	*n = vn_shape_count(s) / 2;
	return at < *n ? at + *n : at - *n;
}

static const char *of_vocabulary(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return n->op == VN_OP_LINEAR && vn_fault_point(p, n) != VN_POINT_LOGITS ? "it is for the tables of tokens"
	     : shape_of(p, n)->dim[0] % 2                                       ? "its rows cannot be halved" : NULL;
}

static vn_status swap_halves(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_places(r, f, node, 0, halves, err);
}

#define HAS_WEIGHTS (VN_ON(RMS_NORM) | VN_ON(LAYER_NORM) | VN_ON(LINEAR) | VN_ON(CAUSAL_CONV) | VN_ON(LOG_DECAY) | VN_ON(GATED_NORM))

static const vn_fault_row rows[] = {
	{ "W1", "a square matrix the other way round", VN_ON(LINEAR), square, transposed, NULL, 1 },
	{ "W1b", "the bytes of a matrix taken for those of the other way round", VN_ON(LINEAR), square, transposed, NULL, -1 },
	{ "W4.act", "gate and up exchanged at the activation", VN_ON(GATED), feed_forward, exchange, NULL, 0 },
	{ "W4.weights", "gate with the weights of up, or up with those of gate", VN_ON(LINEAR), gate_or_up, others_weights, NULL, 0 },
	{ "W5", "a fused gate and up split row by row, not in halves", VN_ON(LINEAR), gate_or_up, interleaved, NULL, BY_ROWS },
	{ "W5.halves", "a fused gate and up split in halves, not row by row", VN_ON(LINEAR), gate_or_up, interleaved, NULL, BY_HALVES },
	{ "P17.gate", "shards of a fused gate and up joined rank by rank", VN_ON(LINEAR), gate_of_ranks, interleaved, NULL, BY_RANKS },
	{ "W6", "bias missing", VN_ON(LINEAR), vn_fault_biased, vn_fault_no_bias, NULL, 0 },
	{ "W7", "bias added twice", VN_ON(LINEAR), vn_fault_biased, bias_times, NULL, 2 },
	{ "W7.four", "bias added four times", VN_ON(LINEAR), vn_fault_biased, bias_times, NULL, 4 },
	{ "W8", "keys with the bias of values, or values with that of keys", VN_ON(LINEAR), other_bias, others_bias, NULL, 0 },
	{ "W9.next", "weights of the next layer", HAS_WEIGHTS, of_layers, twins_weights, NULL, 1 },
	{ "W9.before", "weights of the layer before", HAS_WEIGHTS, of_layers, twins_weights, NULL, -1 },
	{ "W9.first", "weights of the first layer", HAS_WEIGHTS, of_layers, twins_weights, NULL, 0 },
	{ "W10", "the embedding for an output matrix of its own", VN_ON(LINEAR), head, tied, NULL, 0 },
	{ "W11", "the output matrix was never loaded: zeros", VN_ON(LINEAR), head, never_loaded, NULL, 1 },
	{ "W12", "f16 read as bf16, or bf16 as f16", VN_ON(LINEAR) | VN_ON(EMBED), vn_fault_anywhere, read_as_other, NULL, 0 },
	{ "W13", "weights truncated to bf16", VN_ON(LINEAR), vn_fault_anywhere, truncate_all, NULL, 0 },
	{ "W14", "weights flushed and saturated as f16", VN_ON(LINEAR), vn_fault_anywhere, clamp_all, NULL, 0 },
	{ "W18", "padding of 8 behind each row of a matrix is ignored", VN_ON(LINEAR), vn_fault_anywhere, shear, NULL, 8 },
	{ "W19", "the halves of a table of tokens exchanged", VN_ON(LINEAR) | VN_ON(EMBED), of_vocabulary, swap_halves, NULL, 0 },
	{ "W4.kv", "keys with the weights of values, or values with those of keys", VN_ON(LINEAR), key_or_value, others_weights, NULL, 0 },
};

const vn_fault_chapter vn_faults_weights = { rows, sizeof rows / sizeof *rows };
