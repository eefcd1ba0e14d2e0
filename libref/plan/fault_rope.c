/* fault_rope.c: faults of rotary positions (specs/models.md, 9.3). */
#include "libref/plan/fault_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROPE(n) ((n)->c.rope.rope)

static int head(const vn_plan *p, const vn_node *n)
{
	return p->value[n->out[0]].size[2];
}

/* With one pair there is one way to pair, and its frequency is 1 whatever the base. */
static const char *pairs(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return ROPE(n).rotary_dim < 4 ? "only one pair of columns is rotated" : vn_fault_const_why_not(r, p, n);
}

static const char *partial(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return ROPE(n).rotary_dim == head(p, n) ? "all columns of a head are rotated" : NULL;
}

static const char *partial_pairs(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const char *why = partial(r, p, n);
	return why ? why : ROPE(n).rotary_dim < 4 ? "only one pair of columns is rotated" : NULL;
}

static vn_status whole_head(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_const_set(&f->plan->node[node], "rotary_dim", head(f->plan, &f->plan->node[node]), err);
}

/* theta^(2i/K) = (theta^(R/K))^(2i/R) */
static vn_status by_head(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r;
	return vn_const_set(n, "theta", pow(ROPE(n).theta, (double)ROPE(n).rotary_dim / head(f->plan, n)), err);
}

static const char *query(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_point(p, n) != VN_POINT_Q_ROPE ? "it is for queries alone" : vn_fault_const_why_not(r, p, n);
}

static const char *key(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	return vn_fault_point(p, n) != VN_POINT_K_ROPE ? "it is for keys alone" : vn_fault_const_why_not(r, p, n);
}

/* ---- scaling ------------------------------------------------------------------------- */

static const char *scaled(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r, (void)p;
	return ROPE(n).type == VN_ROPE_DEFAULT ? "its frequencies are not scaled" : NULL;
}

static const char *factor(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r, (void)p;
	return ROPE(n).type != VN_ROPE_YARN && ROPE(n).type != VN_ROPE_LONGROPE ? "its RoPE is neither yarn nor longrope" : NULL;
}

static float attention_factor(const vn_plan *p, const vn_rope *rope)
{
	float *f = malloc((size_t)rope->rotary_dim * sizeof *f), af = 1.0f;

	if (f)
		vn_rope_frequencies(rope, p->list, 1, f, &af);
	free(f);
	return af;
}

static vn_status factor_power(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	return vn_const_set(n, "attention_factor", pow((double)attention_factor(f->plan, &ROPE(n)), r->x), err);
}

/* Frequencies as they are without scaling, the factor kept: yarn by 1 is neither kept nor scaled. */
static vn_status factor_alone(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_rope    *rope = &ROPE(&f->plan->node[node]);
	const float af = attention_factor(f->plan, rope);

	(void)r, (void)err;
	rope->type = VN_ROPE_YARN;
	rope->factor = 1.0;
	rope->attention_factor = (double)af;
	return VN_OK;
}

/* What stays the same to the bit is no fault. */
static const char *moved(const vn_plan *p, const vn_rope *a, const vn_rope *b)
{
	const size_t n = (size_t)a->rotary_dim / 2;
	float       *f = malloc(2 * n * sizeof *f), af, bf;
	bool         same = false;

	if (f) {
		vn_rope_frequencies(a, p->list, 1, f, &af);
		vn_rope_frequencies(b, p->list, 1, f + n, &bf);
		same = memcmp(f, f + n, n * sizeof *f) == 0;
	}
	free(f);
	return same ? "its frequencies would be the same" : NULL;
}

enum { RAMP, CONTEXT, STRETCH, COLUMNS };

static vn_rope other_yarn(const vn_fault_row *r, const vn_node *n)
{
	vn_rope rope = ROPE(n);

	switch ((int)r->x) {
	case RAMP:
		rope.truncate = false;
		break;
	case CONTEXT:
		rope.original_context = rope.max_context;
		break;
	case STRETCH:
		rope.factor = (double)rope.max_context / rope.original_context;
		break;
	case COLUMNS: /* the pairs that turn so often are 0 and R */
		rope.beta_fast = rope.original_context / (2.0 * 3.14159265358979323846);
		rope.beta_slow = rope.beta_fast / (rope.theta * rope.theta);
		rope.truncate = false;
		break;
	}
	return rope;
}

static const char *yarn(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	if (ROPE(n).type != VN_ROPE_YARN)
		return "its RoPE is not yarn";
	if ((r->x == CONTEXT || r->x == STRETCH) && ROPE(n).max_context <= ROPE(n).original_context)
		return "its long context is not known";
	const vn_rope rope = other_yarn(r, n);
	return moved(p, &ROPE(n), &rope);
}

static vn_status make_yarn(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)err;
	ROPE(&f->plan->node[node]) = other_yarn(r, &f->plan->node[node]);
	return VN_OK;
}

/* No band between the wavelengths that are kept and those that are scaled: either all of it is kept, or all scaled. */
static vn_rope no_band(const vn_fault_row *r, const vn_node *n)
{
	vn_rope rope = ROPE(n);

	if (r->x > 0)
		rope.high_freq_factor = rope.low_freq_factor * (1 + 1e-6);
	else
		rope.low_freq_factor = rope.high_freq_factor * (1 - 1e-6);
	return rope;
}

static const char *llama3(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	if (ROPE(n).type != VN_ROPE_LLAMA3)
		return "its RoPE is not llama3";
	const vn_rope rope = no_band(r, n);
	return moved(p, &ROPE(n), &rope);
}

static vn_status make_llama3(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)err;
	ROPE(&f->plan->node[node]) = no_band(r, &f->plan->node[node]);
	return VN_OK;
}

/* ---- what is rotated -------------------------------------------------------------------- */

static const char *rotated_keys(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_maker(p, n, VN_ATTN_K)->op != VN_OP_ROPE ? "its keys are not rotated" : NULL;
}

/* The values by the rotation of the keys. */
static vn_status values_too(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int v = f->plan->node[node].in[VN_ATTN_V];
	vn_node   turn = *vn_fault_maker(f->plan, &f->plan->node[node], VN_ATTN_K);
	int       turned;
	vn_status st;

	(void)r;
	turn.in[0] = v;
	if (!(st = vn_fault_insert(f, node, turn, v, &turned, err)))
		f->plan->node[node + 1].in[VN_ATTN_V] = turned;
	return st;
}

/* Rows of a head in the order that GGUF's llama files have, for neighbours to be pairs. */
static void neighbours(const vn_fault_row *r, const vn_shape *s, const double *x, double *y)
{
	const int64_t K = (int64_t)r->x, N = s->rank > 1 ? s->dim[1] : 1;

	for (int64_t m = 0; m < s->dim[0]; m++) {
		const int64_t d = m % K, from = m - d + (d % 2 ? d / 2 + K / 2 : d / 2);
		memcpy(y + m * N, x + from * N, (size_t)N * sizeof *y);
	}
}

/* The reader of a projection, or of its norm, rotates. */
static const char *to_rotate(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_value *y = &p->value[n->out[0]];
	bool            q = y->point == VN_POINT_Q_PROJ || y->point == VN_POINT_K_PROJ;

	(void)r;
	if (!q || y->rank != 3 || n->c.linear.transposed)
		return "it is for a projection of queries or keys by a matrix of its own";
	if (vn_fault_value(p, n->layer, VN_POINT_Q_ROPE) < 0)
		return "queries and keys are not rotated";
	return y->size[2] < 4 ? "heads have one pair of columns" : NULL;
}

static vn_status permuted(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_both(r, f, node, f->plan->value[f->plan->node[node].out[0]].size[2], neighbours, err);
}

/* ---- what is cached ------------------------------------------------------------------------- */

static const char *uncached(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_maker(p, n, VN_ATTN_K)->op != VN_OP_ROPE ? "it reads keys that are not rotated"
	     : n->n_in > VN_ATTN_KEPT                             ? "it caches other keys already" : NULL;
}

static vn_status unrotated(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];

	(void)r, (void)err;
	n->in[VN_ATTN_KEPT] = vn_fault_maker(f->plan, n, VN_ATTN_K)->in[0];
	n->n_in = VN_ATTN_KEPT + 1;
	return VN_OK;
}

static vn_status again(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int k = f->plan->node[node].in[VN_ATTN_K];
	vn_node   turn = *vn_fault_maker(f->plan, &f->plan->node[node], VN_ATTN_K);
	int       twice;
	vn_status st;

	turn.in[0] = k;
	if ((st = vn_fault_insert(f, node, turn, k, &twice, err)))
		return st;
	f->plan->node[node + 1].in[VN_ATTN_KEPT] = twice;
	f->plan->node[node + 1].n_in = VN_ATTN_KEPT + 1;
	return vn_const_set(&f->plan->node[node + 1], "again", r->x, err);
}

/* ---- learned positions ------------------------------------------------------------------- */

static const char *learned(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	(void)r;
	return vn_fault_maker(p, n, 1)->op != VN_OP_POSITIONS ? "it adds no learned positions" : NULL;
}

/* Row p of the table is row p + 1. */
static int64_t next_row(const vn_fault_row *r, const vn_shape *s, int64_t at, int64_t *n)
{
	const int64_t C = s->dim[0], D = s->dim[1];

	(void)r;
	*n = at < (C - 1) * D ? (C - 1) * D : D;
	return at < (C - 1) * D ? at + D : at;
}

static vn_status shifted(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	return vn_fault_change_places(r, f, node, 0, next_row, err);
}

static const vn_fault_row rows[] = {
	{ "R1", "RoPE pairs columns 2i and 2i + 1, not i and i + R/2", VN_ON(ROPE), pairs, NULL, "pairing", VN_PAIR_NEIGHBOURS },
	{ "R1b", "weights in the order for neighbouring pairs, rotated by halves", VN_ON(LINEAR), to_rotate, permuted, NULL, 0 },
	{ "R2.1e4", "RoPE with theta 10000", VN_ON(ROPE), pairs, NULL, "theta", 1e4 },
	{ "R2.5e5", "RoPE with theta 500000", VN_ON(ROPE), pairs, NULL, "theta", 5e5 },
	{ "R2.1e6", "RoPE with theta 1000000", VN_ON(ROPE), pairs, NULL, "theta", 1e6 },
	{ "R2.1e7", "RoPE with theta 10000000", VN_ON(ROPE), pairs, NULL, "theta", 1e7 },
	{ "R2.1.5e5", "RoPE with theta 150000", VN_ON(ROPE), pairs, NULL, "theta", 1.5e5 },
	{ "R3.plus", "positions count from 1", VN_ON(ROPE), NULL, NULL, "offset", 1 },
	{ "R3.minus", "positions count from -1", VN_ON(ROPE), NULL, NULL, "offset", -1 },
	{ "R3b.q", "positions of queries alone count from 1", VN_ON(ROPE), query, NULL, "offset", 1 },
	{ "R3b.k", "positions of keys alone count from 1", VN_ON(ROPE), key, NULL, "offset", 1 },
	{ "R3b.next", "positions behind the first call are one too high", VN_ON(ROPE), NULL, NULL, "step_offset", 1 },
	{ "R3b.last", "positions behind the first call are one too low", VN_ON(ROPE), NULL, NULL, "step_offset", -1 },
	{ "R3b.zero", "positions count from 0 in every call", VN_ON(ROPE), NULL, NULL, "step_zero", 1 },
	{ "R4.all", "RoPE over all columns of a head that is rotated in part", VN_ON(ROPE), partial, whole_head, NULL, 0 },
	{ "R4.across", "RoPE pairs columns i and i + K/2 in a head that is rotated in part", VN_ON(ROPE), partial, NULL, "pairing", VN_PAIR_ACROSS },
	{ "R4.exponent", "RoPE's exponent divides by K in a head that is rotated in part", VN_ON(ROPE), partial_pairs, by_head, NULL, 0 },
	{ "R5.all", "RoPE without its scaling", VN_ON(ROPE), scaled, NULL, "type", VN_ROPE_DEFAULT },
	{ "R5.factor", "RoPE without its attention factor", VN_ON(ROPE), factor, factor_power, NULL, 0 },
	{ "R5.frequencies", "RoPE without its scaling but for the attention factor", VN_ON(ROPE), factor, factor_alone, NULL, 0 },
	{ "R6.context", "yarn with the long context for the original one", VN_ON(ROPE), yarn, make_yarn, NULL, CONTEXT },
	{ "R6.ramp", "yarn without whole ends of its ramp", VN_ON(ROPE), yarn, make_yarn, NULL, RAMP },
	{ "R6.stretch", "yarn by the ratio of its contexts, not by its factor", VN_ON(ROPE), yarn, make_yarn, NULL, STRETCH },
	{ "R6.columns", "yarn with its ramp over all columns", VN_ON(ROPE), yarn, make_yarn, NULL, COLUMNS },
	{ "R6.squared", "yarn with its attention factor squared", VN_ON(ROPE), factor, factor_power, NULL, 2 },
	{ "R6.root", "yarn with the root of its attention factor", VN_ON(ROPE), factor, factor_power, NULL, 0.5 },
	{ "R7.kept", "llama3 without its smooth band: kept", VN_ON(ROPE), llama3, make_llama3, NULL, 1 },
	{ "R7.scaled", "llama3 with its ends exchanged: the smooth band is scaled", VN_ON(ROPE), llama3, make_llama3, NULL, -1 },
	{ "R8", "RoPE turns the other way: the sign of the sine", VN_ON(ROPE), NULL, NULL, "turn", -1 },
	{ "R9", "values are rotated too", VN_ON(ATTENTION), rotated_keys, values_too, NULL, 0 },
	{ "R10", "rotated twice", VN_ON(ROPE), NULL, NULL, "turn", 2 },
	{ "R10.cached", "keys are rotated again when they are cached", VN_ON(ATTENTION), uncached, again, NULL, 0 },
	{ "R10.again", "keys are rotated again in every call that follows theirs", VN_ON(ATTENTION), uncached, again, NULL, 1 },
	{ "R11", "keys are cached before their rotation", VN_ON(ATTENTION), uncached, unrotated, NULL, 0 },
	{ "R12", "RoPE skipped", VN_ON(ROPE), vn_fault_anywhere, vn_fault_skipped, NULL, 0 },
	{ "R13", "positions, frequencies and angles in float16", VN_ON(ROPE), NULL, NULL, "half_angles", 1 },
	{ "R14", "pairs i with i mod 3 in {1, 2} are not rotated: sections of other positions, all 0", VN_ON(ROPE), pairs, NULL, "sections", 1 },
	{ "R15.missing", "learned positions are not added", VN_ON(ADD), learned, vn_fault_skipped, NULL, 0 },
	{ "R15.shifted", "learned positions count from 1", VN_ON(POSITIONS), vn_fault_anywhere, shifted, NULL, 0 },
	{ "R15.zero", "learned positions count from 0 in every call", VN_ON(POSITIONS), NULL, NULL, "step_zero", 1 },
};

const vn_fault_chapter vn_faults_rope = { rows, sizeof rows / sizeof *rows };
