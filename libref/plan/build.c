/* build.c: builds a plan node by node. Sizes are checked where they are combined, so that an error
 * names the weight. All rules are in check.c, which a finished plan has passed. */
#include "libref/plan/plan.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vn_builder {
	vn_plan  *plan;
	int       layer;
	vn_status status; /* of the first failure, after which calls do nothing useful */
	vn_error  err;
	int       room_nodes, room_values, room_weights, room_states;
	bool     *named; /* (layers + 1, VN_N_POINTS): checkpoints that exist; row 0 is outside layers */
};

vn_builder *vn_plan_begin(int layers, int vocab, int context)
{
	vn_builder *b = calloc(1, sizeof *b);
	if (!b || !(b->plan = calloc(1, sizeof *b->plan)) ||
	    !(b->named = calloc(((size_t)layers + 1) * VN_N_POINTS, sizeof *b->named))) {
		if (b)
			free(b->plan);
		free(b);
		return NULL;
	}
	b->layer = -1;
	b->plan->layers = layers;
	b->plan->vocab = vocab;
	b->plan->context = context;
	return b;
}

vn_status vn_plan_finish(vn_builder *b, vn_plan **plan, vn_error *err)
{
	if (!b->status)
		b->status = vn_plan_check(b->plan, &b->err);
	vn_status st = b->status;
	if (st) {
		vn_plan_destroy(b->plan);
		b->plan = NULL;
		vn_fail(err, st, "%s", b->err.text);
	}
	*plan = b->plan;
	free(b->named);
	free(b);
	return st;
}

void vn_plan_layer(vn_builder *b, int layer)
{
	assert(layer < b->plan->layers);
	b->layer = layer;
}

static int broken(vn_builder *b, vn_status st, const char *format, const char *what)
{
	if (!b->status)
		b->status = vn_fail(&b->err, st, format, what);
	return 0;
}

static void *room(vn_builder *b, void *list, int n, int *have, size_t size)
{
	if (n < *have)
		return list;
	int   more = *have ? 2 * *have : 64;
	void *p = realloc(list, (size_t)more * size);
	if (!p) {
		broken(b, VN_ERR_NOMEM, "no memory for a plan%s", "");
		return list;
	}
	*have = more;
	return p;
}

int vn_plan_weight(vn_builder *b, const char *name, int rank, const int64_t *dim)
{
	vn_plan  *p = b->plan;
	vn_weight w = { .shape.rank = rank };

	assert(rank <= VN_PLAN_RANK);
	for (int i = 0; i < rank; i++)
		w.shape.dim[i] = dim[i];
	if (snprintf(w.name, sizeof w.name, "%s", name) >= (int)sizeof w.name)
		return broken(b, VN_ERR_UNSUPPORTED, "the weight name %s is too long", name);
	for (int i = 0; i < p->n_weights; i++)
		if (strcmp(p->weight[i].name, name) == 0) {
			if (!vn_shape_equal(&p->weight[i].shape, &w.shape))
				broken(b, VN_ERR_SHAPE, "weight %s is used with two shapes", name);
			return i;
		}
	p->weight = room(b, p->weight, p->n_weights, &b->room_weights, sizeof *p->weight);
	if (b->status)
		return 0;
	p->weight[p->n_weights] = w;
	return p->n_weights++;
}

int vn_plan_list(vn_builder *b, int n, const float *x)
{
	const int list = b->status ? 0 : vn_list_add(b->plan, n, x);

	return list || b->status ? list : broken(b, VN_ERR_NOMEM, "no memory for a plan%s", "");
}

static int value(vn_builder *b, vn_point point, int rank, const int *size)
{
	vn_plan    *p = b->plan;
	const char *name = vn_point_get(point)->name;
	vn_value    v = { .point = point, .layer = b->layer, .node = p->n_nodes, .state = -1, .alias_of = -1 };

	v.last_use = -1;
	v.rank = rank;
	for (int i = 0; i < rank; i++)
		v.size[i] = size[i];
	if (b->layer >= 0)
		snprintf(v.name, sizeof v.name, "layer%d.%s", b->layer, name);
	else
		snprintf(v.name, sizeof v.name, "%s", name);
	/* Layer and point determine the name. Searching all existing names would take seconds for a config of a
	 * thousand layers. */
	bool *named = &b->named[(size_t)(b->layer + 1) * VN_N_POINTS + point];
	if (*named)
		return broken(b, VN_ERR_UNSUPPORTED, "two checkpoints are named %s", v.name);
	*named = true;
	p->value = room(b, p->value, p->n_values, &b->room_values, sizeof *p->value);
	if (b->status)
		return 0;
	p->value[p->n_values] = v;
	return p->n_values++;
}

void vn_plan_name(vn_builder *b, int x, vn_point point)
{
	if (b->status)
		return;
	vn_value of = b->plan->value[x];
	int      v = value(b, point, of.rank, of.size);
	if (b->status)
		return;
	b->plan->value[v].alias_of = x;
	b->plan->value[v].node = of.node;
	b->plan->value[v].slot = of.slot;
	b->plan->value[v].state = of.state;
	b->plan->value[v].on_demand = of.on_demand;
	b->plan->value[v].wide = of.wide;
}

/* Sets the states of the node being added. */
static void keep_states(vn_builder *b, int i)
{
	vn_plan  *p = b->plan;
	vn_state  s[VN_MAX_STATE];
	const int n = vn_node_states(p, i, s);

	for (int k = 0; k < n; k++) {
		p->state = room(b, p->state, p->n_states, &b->room_states, sizeof *p->state);
		if (b->status)
			return;
		if (s[k].value >= 0)
			p->value[s[k].value].state = p->n_states;
		p->node[i].state[p->node[i].n_state++] = p->n_states;
		p->state[p->n_states++] = s[k];
	}
}

/* Adds a node with its inputs and weights; its first output must exist. */
static void node(vn_builder *b, vn_op op, vn_consts c, int n_in, const int *in, int n_w, const int *w, int n_out,
                 const int *out)
{
	vn_plan *p = b->plan;
	vn_node  n = { .op = op, .layer = b->layer, .c = c, .n_in = n_in, .n_w = n_w, .n_out = n_out };

	if (b->status)
		return;
	p->node = room(b, p->node, p->n_nodes, &b->room_nodes, sizeof *p->node);
	if (b->status)
		return;
	for (int i = 0; i < n_in; i++) {
		n.in[i] = vn_plan_root(p, in[i]);
		p->value[n.in[i]].last_use = p->n_nodes;
	}
	for (int i = 0; i < n_w; i++)
		n.w[i] = w[i];
	for (int i = 0; i < n_out; i++) {
		n.out[i] = out[i];
		if (out[i] >= 0)
			p->value[out[i]].slot = i;
	}
	p->node[p->n_nodes] = n;
	keep_states(b, p->n_nodes++);
}

static const vn_consts NONE;

/* Looks up rows of a table with at least `rows` rows. */
static int table(vn_builder *b, vn_op op, int w, int rows, const char *of_what, vn_point out)
{
	if (b->status)
		return 0;
	const vn_shape *s = &b->plan->weight[w].shape;
	if (s->rank != 2 || s->dim[0] != rows)
		return broken(b, VN_ERR_SHAPE, of_what, b->plan->weight[w].name);
	int y = value(b, out, 2, (int[]) { VN_T, (int)s->dim[1] });
	node(b, op, NONE, 0, NULL, 1, &w, 1, &y);
	return y;
}

int vn_plan_embed(vn_builder *b, int w, vn_point out)
{
	return table(b, VN_OP_EMBED, w, b->plan->vocab, "weight %s does not have a row for every token", out);
}

int vn_plan_positions(vn_builder *b, int w, vn_point out)
{
	return table(b, VN_OP_POSITIONS, w, b->plan->context, "weight %s does not have a row for every position", out);
}

/* Adds an output shaped like x. */
static int like(vn_builder *b, int x, vn_point out)
{
	vn_value v = b->plan->value[x];
	return value(b, out, v.rank, v.size);
}

/* Norm of one input, or of two with one shape (x, z). w, and the bias of a layer norm, have the width of their
 * last axis. */
static int norm(vn_builder *b, vn_op op, int x, int z, int w, int bias, double eps, double offset, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	for (int k = 0; k < 2; k++) {
		const int       i = k ? bias : w;
		const vn_shape *s = i < 0 ? NULL : &b->plan->weight[i].shape;
		if (s && (s->rank != 1 || s->dim[0] != v->size[v->rank - 1]))
			return broken(b, VN_ERR_SHAPE, "weight %s is not as wide as the tensor that it norms",
			              b->plan->weight[i].name);
	}
	int y = like(b, x, out);
	node(b, op, (vn_consts) { .norm = { .eps = eps, .offset = offset } }, z < 0 ? 1 : 2, (int[]) { x, z },
	     op == VN_OP_LAYER_NORM ? 2 : 1, (int[]) { w, bias }, 1, &y);
	return y;
}

int vn_plan_rms_norm(vn_builder *b, int x, int w, double eps, vn_point out)
{
	return norm(b, VN_OP_RMS_NORM, x, -1, w, -1, eps, 0.0, out);
}

int vn_plan_rms_norm_one(vn_builder *b, int x, int w, double eps, vn_point out)
{
	return norm(b, VN_OP_RMS_NORM, x, -1, w, -1, eps, 1.0, out);
}

int vn_plan_gated_norm(vn_builder *b, int x, int z, int w, double eps, vn_point out)
{
	return norm(b, VN_OP_GATED_NORM, x, z, w, -1, eps, 0.0, out);
}

int vn_plan_layer_norm(vn_builder *b, int x, int w, int bias, double eps, vn_point out)
{
	return norm(b, VN_OP_LAYER_NORM, x, -1, w, bias, eps, 0.0, out);
}

/* (T, heads, m/heads), or (T, m). */
static int in_heads(vn_builder *b, int m, int heads, vn_point out)
{
	return heads ? value(b, out, 3, (int[]) { VN_T, heads, m / heads }) : value(b, out, 2, (int[]) { VN_T, m });
}

static int linear(vn_builder *b, int x, int w, int bias, int transposed, int heads, vn_point out)
{
	if (b->status)
		return 0;
	const vn_shape *s = &b->plan->weight[w].shape;
	if (s->rank != 2 || s->dim[!transposed] != vn_value_row(&b->plan->value[x]) ||
	    (heads && s->dim[transposed] % heads))
		return broken(b, VN_ERR_SHAPE, "the shape of weight %s does not fit its input", b->plan->weight[w].name);
	const vn_shape *of = bias >= 0 ? &b->plan->weight[bias].shape : NULL;
	if (of && (of->rank != 1 || of->dim[0] != s->dim[transposed]))
		return broken(b, VN_ERR_SHAPE, "the shape of bias %s does not fit its weight", b->plan->weight[bias].name);
	int y = in_heads(b, (int)s->dim[transposed], heads, out);
	node(b, VN_OP_LINEAR, (vn_consts) { .linear.transposed = transposed }, 1, &x, 2, (int[]) { w, bias }, 1, &y);
	return y;
}

int vn_plan_linear(vn_builder *b, int x, int w, int bias, int heads, vn_point out)
{
	return linear(b, x, w, bias, 0, heads, out);
}

int vn_plan_conv1d(vn_builder *b, int x, int w, int bias, int heads, vn_point out)
{
	return linear(b, x, w, bias, 1, heads, out);
}

int vn_plan_slice(vn_builder *b, int x, int stride, int from, int width, int heads, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	const int64_t   row = vn_value_row(v), all = stride < 1 ? 0 : row / stride * width;
	if (stride < 1 || row % stride || from < 0 || width < 1 || width > stride || from > stride - width ||
	    (heads && all % heads))
		return broken(b, VN_ERR_SHAPE, "%s: its input does not have the columns to take", v->name);
	int y = in_heads(b, (int)all, heads, out);
	node(b, VN_OP_SLICE, (vn_consts) { .slice = { stride, from, width } }, 1, &x, 0, NULL, 1, &y);
	return y;
}

int vn_plan_rope(vn_builder *b, int x, const vn_rope *rope, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	if (v->rank != 3 || rope->rotary_dim > v->size[2] || rope->rotary_dim < 2 || rope->rotary_dim % 2)
		return broken(b, VN_ERR_SHAPE, "%s: the rotary width must be even and at most the head width", v->name);
	int y = like(b, x, out);
	node(b, VN_OP_ROPE, (vn_consts) { .rope.rope = *rope }, 1, &x, 0, NULL, 1, &y);
	return y;
}

int vn_plan_attention(vn_builder *b, int q, int k, int v, double scale, int window, vn_point out)
{
	if (b->status)
		return 0;
	vn_value qv = b->plan->value[q], kv = b->plan->value[k], vv = b->plan->value[v];
	int      H = qv.size[1], G = kv.size[1], K = qv.size[2];
	if (qv.rank != 3 || kv.rank != 3 || vv.rank != 3 || kv.size[2] != K || vv.size[2] != K || vv.size[1] != G || H % G)
		return broken(b, VN_ERR_SHAPE, "%s: the shapes of queries, keys and values do not fit together", qv.name);
	vn_consts c = { .attention = {
						.scale = scale, .heads = H, .kv_heads = G, .head_dim = K, .causal = 1, .window = window } };
	/* in execution order: the cache, scores, probabilities, context */
	int       keys = value(b, VN_POINT_K_CACHE, 3, (int[]) { VN_S, G, K });
	int       values = value(b, VN_POINT_V_CACHE, 3, (int[]) { VN_S, G, K });
	int       scores = value(b, VN_POINT_ATTN_SCORES, 3, (int[]) { H, VN_T, VN_S });
	int       probs = value(b, VN_POINT_ATTN_PROBS, 3, (int[]) { H, VN_T, VN_S });
	int       context = like(b, q, out);
	if (b->status)
		return 0;
	b->plan->value[keys].on_demand = b->plan->value[values].on_demand = true;
	b->plan->value[scores].on_demand = b->plan->value[probs].on_demand = true;
	node(b, VN_OP_ATTENTION, c, 3, (int[]) { q, k, v }, 0, NULL, 5, (int[]) { context, scores, probs, keys, values });
	return context;
}

int vn_plan_act(vn_builder *b, vn_act act, int x, vn_point out, bool on_demand)
{
	if (b->status)
		return 0;
	int y = like(b, x, out);
	node(b, VN_OP_ACT, (vn_consts) { .act.act = act }, 1, &x, 0, NULL, 1, &y);
	if (!b->status)
		b->plan->value[y].on_demand = on_demand;
	return y;
}

/* Adds an operation on two inputs of one shape. */
static int pair(vn_builder *b, vn_op op, vn_consts c, int a, int x, vn_point out)
{
	if (b->status)
		return 0;
	vn_value u = b->plan->value[a], v = b->plan->value[x];
	if (u.rank != v.rank || memcmp(u.size, v.size, (size_t)u.rank * sizeof *u.size) != 0)
		return broken(b, VN_ERR_SHAPE, "%s: its two inputs have different shapes", u.name);
	int y = like(b, x, out);
	node(b, op, c, 2, (int[]) { a, x }, 0, NULL, 1, &y);
	return y;
}

int vn_plan_gated(vn_builder *b, vn_act act, int gate, int up, vn_point out)
{
	return pair(b, VN_OP_GATED, (vn_consts) { .act.act = act }, gate, up, out);
}

int vn_plan_add(vn_builder *b, int a, int x, vn_point out)
{
	return pair(b, VN_OP_ADD, NONE, a, x, out);
}

int vn_plan_causal_conv(vn_builder *b, int x, int w, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	const vn_shape *s = &b->plan->weight[w].shape;
	if (v->rank != 2 || s->rank != 3 || s->dim[0] != v->size[1] || s->dim[1] != 1 || s->dim[2] < 2)
		return broken(b, VN_ERR_SHAPE, "the shape of weight %s does not fit its input", b->plan->weight[w].name);
	const int X = (int)s->dim[0], J = (int)s->dim[2];
	int       y = like(b, x, out), state = value(b, VN_POINT_GDN_CONV_STATE, 2, (int[]) { J - 1, X });
	node(b, VN_OP_CAUSAL_CONV, (vn_consts) { .conv = { .channels = X, .taps = J } }, 1, &x, 1, &w, 2,
	     (int[]) { y, state });
	return y;
}

/* Marks an output as stored in full width. */
static int wide(vn_builder *b, int y)
{
	if (!b->status)
		b->plan->value[y].wide = true;
	return y;
}

int vn_plan_l2_norm(vn_builder *b, int x, double eps, vn_point out)
{
	if (b->status)
		return 0;
	int y = wide(b, like(b, x, out));
	node(b, VN_OP_L2_NORM, (vn_consts) { .norm.eps = eps }, 1, &x, 0, NULL, 1, &y);
	return y;
}

int vn_plan_log_decay(vn_builder *b, int x, int A_log, int dt_bias, vn_point out)
{
	if (b->status)
		return 0;
	const vn_value *v = &b->plan->value[x];
	const vn_shape *s = &b->plan->weight[A_log].shape;
	if (v->rank != 2 || s->rank != 1 || s->dim[0] != v->size[1] || !vn_shape_equal(s, &b->plan->weight[dt_bias].shape))
		return broken(b, VN_ERR_SHAPE, "the shape of weight %s or of its bias does not fit its input",
		              b->plan->weight[A_log].name);
	int y = wide(b, like(b, x, out));
	node(b, VN_OP_LOG_DECAY, NONE, 1, &x, 2, (int[]) { A_log, dt_bias }, 1, &y);
	return y;
}

int vn_plan_delta_rule(vn_builder *b, const int in[5], double scale, vn_point out)
{
	if (b->status)
		return 0;
	vn_value q = b->plan->value[in[VN_DELTA_Q]], v = b->plan->value[in[VN_DELTA_V]];
	if (q.rank != 3 || v.rank != 3 || v.size[1] % q.size[1])
		return broken(b, VN_ERR_SHAPE, "%s: the shapes of keys and values do not fit together", q.name);
	const vn_consts c = { .delta = { .scale = scale,
		                             .key_heads = q.size[1],
		                             .value_heads = v.size[1],
		                             .key_dim = q.size[2],
		                             .value_dim = v.size[2] } };
	int             y = like(b, in[VN_DELTA_V], out);
	int             state = value(b, VN_POINT_GDN_STATE, 3, (int[]) { v.size[1], q.size[2], v.size[2] });
	node(b, VN_OP_DELTA_RULE, c, 5, in, 0, NULL, 2, (int[]) { y, state });
	return y;
}
