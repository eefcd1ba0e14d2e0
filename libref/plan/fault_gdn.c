/* fault_gdn.c: faults of Gated DeltaNet and of gated attention (specs/models.md, 9.9). */
#include "libref/plan/fault_inside.h"

#include <math.h>
#include <string.h>

/* ---- decay and beta ------------------------------------------------------------------------- */

static void zeros(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	(void)r, (void)x;
	memset(y, 0, (size_t)vn_shape_count(s) * sizeof *y);
}

static vn_status no_dt(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_weight(r, f, node, 1, zeros, err);
}

static const char *b_or_a(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_point at = vn_fault_point(p, n);
	(void)r;
	return at != VN_POINT_GDN_B && at != VN_POINT_GDN_A ? "it is for the projections of beta and of the decay" : NULL;
}

static vn_status exchange(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = vn_fault_sound(f, node);
	const int      v = vn_fault_value(f->sound, n->layer, vn_fault_point(f->sound, n) == VN_POINT_GDN_B ? VN_POINT_GDN_A : VN_POINT_GDN_B);

	(void)r, (void)err;
	memcpy(f->plan->node[node].w, f->sound->node[f->sound->value[v].node].w, sizeof n->w);
	return VN_OK;
}

static const char *beta(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_point(p, n) != VN_POINT_GDN_BETA ? "it is for beta" : vn_fault_const_why_not(r, p, n);
}

/* ---- queries and keys -------------------------------------------------------------------------- */

/* sqrt(sum / much + 1) is 1. */
static vn_status not_normed(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_status st = vn_const_set(&f->plan->node[node], "divisor", 2147483647, err);

	(void)r;
	return st ? st : vn_const_set(&f->plan->node[node], "eps", 1.0, err);
}

static vn_status by_mean(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_value *y = &f->plan->value[f->plan->node[node].out[0]];
	(void)r;
	return vn_const_set(&f->plan->node[node], "divisor", y->size[y->rank - 1], err);
}

static const char *shared_keys(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return n->c.delta.key_heads == 1 || n->c.delta.key_heads == n->c.delta.value_heads
	           ? "every map of its heads is the same (one key head, or one each)" : vn_fault_const_why_not(r, p, n);
}

/* ---- the convolution ----------------------------------------------------------------------------- */

static void reversed(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	const int64_t J = s->dim[s->rank - 1];

	(void)r;
	for (int64_t i = 0; i < vn_shape_count(s); i++)
		y[i] = x[i - i % J + J - 1 - i % J];
}

static vn_status reverse(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_weight(r, f, node, 0, reversed, err);
}

/* Queries and keys are the first channels. */
static int silent(const vn_plan *p, const vn_node *n)
{
	const int v = vn_fault_value(p, n->layer, VN_POINT_GDN_V);
	return v < 0 ? 0 : n->c.conv.channels - (int)vn_value_row(&p->value[v]);
}

static const char *before_rule(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return silent(p, n) < 1 ? "it is for a convolution of queries, keys and values" : NULL;
}

static vn_status queries_and_keys(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r;
	return vn_const_set(n, "linear", silent(f->plan, n) + 1, err);
}

static const char *of_conv(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_point(p, vn_fault_maker(p, n, 0)) != VN_POINT_GDN_CONV ? "it is for queries, keys and values out of a convolution" : NULL;
}

/* Values first. */
static vn_status values_first(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node  *n = &f->plan->node[node];
	const int values = (int)vn_value_row(&f->plan->value[vn_fault_value(f->plan, n->layer, VN_POINT_GDN_V)]);

	(void)r;
	return vn_const_set(n, "from", vn_fault_point(f->plan, n) == VN_POINT_GDN_V ? 0 : n->c.slice.from + values, err);
}

static vn_status channels_round(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];

	(void)r;
	return vn_fault_follow(f, node, vn_fault_rows(n->layer, VN_ROWS_ROUND, silent(f->plan, n), 0, n->out[0]), err);
}

/* ---- gates --------------------------------------------------------------------------------------- */

static const char *of_z(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_point(p, n) != VN_POINT_GDN_Z         ? "it is for the projection of z"
	     : p->value[n->out[0]].size[1] == 1               ? "there is one head" : NULL;
}

/* The gate of a norm, or the projection that makes it. x: how many heads on. */
static const char *gate_of_heads(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const char *why = of_z(r, p, n->op == VN_OP_GATED_NORM ? vn_fault_maker(p, n, 1) : n);
	return why ? why : r->x < 0 && p->value[n->out[0]].size[1] == 2 ? "of two heads the one before is the next" : NULL;
}

/* Rows by r->x on. */
static void next_head(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	const int64_t n = vn_shape_count(s), by = ((int64_t)r->x * s->dim[1] + n) % n;

	for (int64_t i = 0; i < n; i++)
		y[i] = x[(i + by) % n];
}

static vn_status another_head(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const vn_node *n = &f->plan->node[node];
	const int      by = (int)r->x * f->plan->value[n->out[0]].size[2], all = (int)vn_value_row(&f->plan->value[n->out[0]]);
	vn_fault_row   with = *r;

	if (n->op == VN_OP_GATED_NORM) { /* which reads the gates of other heads than it norms */
		const int z = n->in[1];
		int       v;
		vn_status st = vn_fault_insert(f, node, vn_fault_rows(n->layer, VN_ROWS_ROUND, (by + all) % all, 0, z), z, &v, err);
		if (!st)
			f->plan->node[node + 1].in[1] = v;
		return st;
	}
	with.x = by;
	return vn_fault_change_weight(&with, f, node, 0, next_head, err);
}

static const char *attention_gate(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_point(p, n) != VN_POINT_ATTN_GATED ? "it is for the gate of an attention" : r->name ? vn_fault_const_why_not(r, p, n) : NULL;
}

static vn_status no_gate(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r, (void)err;
	vn_fault_copy_of(f, node, f->plan->node[node].in[1]);
	return VN_OK;
}

/* The projection behind a gate, whose sizes the gate fits. */
static int behind_gate(const vn_plan *p, const vn_node *n)
{
	const int v = vn_fault_value(p, n->layer, VN_POINT_ATTN_OUT);
	return vn_fault_point(p, n) != VN_POINT_ATTN_GATED || v < 0 || vn_value_row(&p->value[v]) != vn_value_row(&p->value[n->in[0]]) ? -1 : p->value[v].node;
}

static const char *gate_fits(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const char *why = attention_gate(r, p, n);
	return why ? why : behind_gate(p, n) < 0 ? "heads together are not as wide as the model" : NULL;
}

static vn_status gate_late(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int out = behind_gate(f->plan, &f->plan->node[node]), row = (int)vn_value_row(&f->plan->value[f->plan->node[out].out[0]]);
	vn_node   gate = f->plan->node[node];
	vn_node   flat = { .op = VN_OP_SLICE, .layer = gate.layer, .c.slice = { row, 0, row }, .n_in = 1, .in = { gate.in[0] } }; /* (T,D) */
	vn_status st = no_gate(r, f, node, err);

	gate.in[1] = f->plan->node[out].out[0];
	if (st || (st = vn_fault_insert(f, out, flat, gate.in[1], &gate.in[0], err)))
		return st;
	return vn_fault_follow(f, out + 1, gate, err);
}

static const vn_fault_row rows[] = {
	{ "G1.positive", "the decay grows: exp(A_log) for -exp(A_log)", VN_ON(LOG_DECAY), NULL, NULL, "form", VN_DECAY_POSITIVE },
	{ "G1.raw", "A_log itself for -exp(A_log)", VN_ON(LOG_DECAY), NULL, NULL, "form", VN_DECAY_RAW },
	{ "G1.negated", "-A_log for -exp(A_log)", VN_ON(LOG_DECAY), NULL, NULL, "form", VN_DECAY_NEGATED },
	{ "G2.softplus", "the decay without softplus", VN_ON(LOG_DECAY), NULL, NULL, "form", VN_DECAY_LINEAR },
	{ "G2.bias", "the decay without dt_bias", VN_ON(LOG_DECAY), vn_fault_anywhere, no_dt, NULL, 0 },
	{ "G3", "the projection of beta with the weights of that of the decay, or back", VN_ON(LINEAR), b_or_a, exchange, NULL, 0 },
	{ "G4", "beta without sigmoid", VN_ON(ACT), beta, NULL, "act", VN_IDENTITY },
	{ "G4.two", "twice the sigmoid for beta", VN_ON(ACT), beta, NULL, "act", VN_TWO_SIGMOID },
	{ "G4.k", "beta on keys alone, not on values, in the delta rule", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_BETA_KEYS },
	{ "G4.v", "beta on values alone, not on keys, in the delta rule", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_BETA_VALUES },
	{ "G5.missing", "queries or keys of the delta rule not normed", VN_ON(L2_NORM), vn_fault_anywhere, not_normed, NULL, 0 },
	{ "G5.mean", "queries or keys of the delta rule normed by the mean square, not the sum", VN_ON(L2_NORM), vn_fault_anywhere, by_mean, NULL, 0 },
	{ "G6", "queries of the delta rule without their scale", VN_ON(DELTA_RULE), NULL, NULL, "scale", 1 },
	{ "G7.none", "the state does not decay", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_NO_DECAY },
	{ "G7.factor", "the state decays by g, not exp(g)", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_FACTOR },
	{ "G7.late", "the state decays between update and read", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_DECAY_LATE },
	{ "G8.output", "the output is read before the update", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_READ_FIRST },
	{ "G8.memory", "the memory is read before the decay", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_MEMORY_FIRST },
	{ "G9", "no delta: what the state says already is not taken off", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_NO_DELTA },
	{ "G10", "value head h reads key head h mod nk", VN_ON(DELTA_RULE), shared_keys, NULL, "head_map", VN_HEADS_MODULO },
	{ "G11", "taps of the convolution reversed", VN_ON(CAUSAL_CONV), vn_fault_anywhere, reverse, NULL, 0 },
	{ "G12", "the convolution without silu", VN_ON(CAUSAL_CONV), NULL, NULL, "linear", 1 },
	{ "G12.qk", "the convolution with silu for queries and keys alone", VN_ON(CAUSAL_CONV), before_rule, queries_and_keys, NULL, 0 },
	{ "G13", "the convolution sees the next token", VN_ON(CAUSAL_CONV), NULL, NULL, "ahead", 1 },
	{ "G13.lost", "the convolution does not see what earlier calls left", VN_ON(CAUSAL_CONV), NULL, NULL, "forgets", 1 },
	{ "G14", "the convolution split as values, queries, keys", VN_ON(SLICE), of_conv, values_first, NULL, 0 },
	{ "G14.channels", "what the convolution gives lies as values, queries, keys", VN_ON(CAUSAL_CONV), before_rule, channels_round, NULL, 0 },
	{ "G15", "the state lies the other way round behind a call of several tokens", VN_ON(DELTA_RULE), NULL, NULL, "turned", 1 },
	{ "G16", "the state is lost every 64 tokens", VN_ON(DELTA_RULE), NULL, NULL, "restart", 64 },
	{ "G17", "chunks of 64 tokens without their triangular solve", VN_ON(DELTA_RULE), NULL, NULL, "form", VN_DELTA_UNSOLVED },
	{ "G18.sigmoid", "sigmoid for silu in the gated norm", VN_ON(GATED_NORM), NULL, NULL, "gate", VN_SIGMOID },
	{ "G18.first", "gated before it is normed", VN_ON(GATED_NORM), NULL, NULL, "gate_first", 1 },
	{ "G18.head", "z of the next head", VN_ON(LINEAR) | VN_ON(GATED_NORM), gate_of_heads, another_head, NULL, 1 },
	{ "G18.before", "z of the head before", VN_ON(LINEAR) | VN_ON(GATED_NORM), gate_of_heads, another_head, NULL, -1 },
	{ "G20.missing", "attention is not gated", VN_ON(GATED), attention_gate, no_gate, NULL, 0 },
	{ "G20.late", "the gate of attention behind its projection", VN_ON(GATED), gate_fits, gate_late, NULL, 0 },
	{ "G20.silu", "silu for sigmoid in the gate of attention", VN_ON(GATED), attention_gate, NULL, "act", VN_SILU },
};

const vn_fault_chapter vn_faults_gdn = { rows, sizeof rows / sizeof *rows };
