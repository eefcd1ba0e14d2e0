/* fault_rope.c: faults of rotary positions (specs/faults.md, chapter R). */
#include "libref/plan/fault_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROPE(n) ((n)->c.rope.rope)

static int get_head_dim(const vn_plan *p, const vn_node *n)
{
	return p->value[n->out[0]].size[2];
}

vn_status vn_make_whole_head(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_const_set(&f->plan->node[node], "rotary_dim", get_head_dim(f->plan, &f->plan->node[node]), err);
}

/* theta^(2i/K) = (theta^(R/K))^(2i/R) */
vn_status vn_make_by_head(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	(void)r;
	return vn_const_set(n, "theta", pow(ROPE(n).theta, (double)ROPE(n).rotary_dim / get_head_dim(f->plan, n)), err);
}

/* ---- scaling ------------------------------------------------------------------------- */

static float attention_factor(const vn_plan *p, const vn_rope *rope)
{
	float *f = malloc((size_t)rope->rotary_dim * sizeof *f), af = 1.0f;

	if (f)
		vn_rope_frequencies(rope, p->list, 1, f, &af);
	free(f);
	return af;
}

vn_status vn_make_factor_power(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];
	return vn_const_set(n, "attention_factor", pow((double)attention_factor(f->plan, &ROPE(n)), r->x), err);
}

/* Frequencies without scaling, but with the attention factor.
 * yarn with factor 1 would set neither. */
vn_status vn_make_factor_alone(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_rope    *rope = &ROPE(&f->plan->node[node]);
	const float af = attention_factor(f->plan, rope);

	(void)r, (void)err;
	rope->type = VN_ROPE_YARN;
	rope->factor = 1.0;
	rope->attention_factor = (double)af;
	return VN_OK;
}

/* A change that leaves every bit equal is no fault. */
static bool changes_frequencies(const vn_plan *p, const vn_rope *a, const vn_rope *b)
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
	return !same;
}

static vn_rope other_yarn(const vn_fault_row *r, const vn_node *n)
{
	vn_rope rope = ROPE(n);

	switch ((int)r->x) {
	case YARN_RAMP: rope.truncate = false; break;
	case YARN_CONTEXT: rope.original_context = rope.max_context; break;
	case YARN_STRETCH: rope.factor = (double)rope.max_context / rope.original_context; break;
	case YARN_COLUMNS: /* with these numbers of rotations the ramp spans pairs 0 to R */
		rope.beta_fast = rope.original_context / (2.0 * 3.14159265358979323846);
		rope.beta_slow = rope.beta_fast / (rope.theta * rope.theta);
		rope.truncate = false;
		break;
	}
	return rope;
}

vn_status vn_make_yarn(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)err;
	ROPE(&f->plan->node[node]) = other_yarn(r, &f->plan->node[node]);
	return VN_OK;
}

/* Removes the band between kept and scaled wavelengths: every wavelength is
 * either kept or scaled. */
static vn_rope no_band(const vn_fault_row *r, const vn_node *n)
{
	vn_rope rope = ROPE(n);

	if (r->x > 0)
		rope.high_freq_factor = rope.low_freq_factor * (1 + 1e-6);
	else
		rope.low_freq_factor = rope.high_freq_factor * (1 - 1e-6);
	return rope;
}

vn_status vn_make_llama3(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)err;
	ROPE(&f->plan->node[node]) = no_band(r, &f->plan->node[node]);
	return VN_OK;
}

bool vn_fault_moves(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_rope rope = ROPE(n).type == VN_ROPE_YARN ? other_yarn(r, n) : no_band(r, n);

	return changes_frequencies(p, &ROPE(n), &rope);
}

/* ---- what is rotated -------------------------------------------------------------------- */

/* Rotates the values like the keys. */
vn_status vn_make_values_too(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int v = f->plan->node[node].in[VN_ATTN_V];
	vn_node   rotation = *vn_fault_maker(f->plan, &f->plan->node[node], VN_ATTN_K);
	int       rotated;
	vn_status st;

	(void)r;
	rotation.in[0] = v;
	if (!(st = vn_fault_insert(f, node, rotation, v, &rotated, err)))
		f->plan->node[node + 1].in[VN_ATTN_V] = rotated;
	return st;
}

/* Permutes a head's rows to the order in GGUF llama files, where neighbours form pairs. */
vn_status vn_make_permuted(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int        K = f->plan->value[f->plan->node[node].out[0]].size[2];
	const vn_arrange neighbours = { VN_ARRANGE_TRANSPOSED, .a = 2, .b = K / 2, .period = K };

	(void)r;
	return vn_fault_arrange_outputs(f, node, &neighbours, err);
}

/* ---- what is cached ------------------------------------------------------------------------- */

vn_status vn_make_unrotated(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node *n = &f->plan->node[node];

	(void)r, (void)err;
	n->in[VN_ATTN_KEPT] = vn_fault_maker(f->plan, n, VN_ATTN_K)->in[0];
	n->n_in = VN_ATTN_KEPT + 1;
	return VN_OK;
}

vn_status vn_make_rotated_again(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int k = f->plan->node[node].in[VN_ATTN_K];
	vn_node   rotation = *vn_fault_maker(f->plan, &f->plan->node[node], VN_ATTN_K);
	int       twice;
	vn_status st;

	rotation.in[0] = k;
	if ((st = vn_fault_insert(f, node, rotation, k, &twice, err)))
		return st;
	f->plan->node[node + 1].in[VN_ATTN_KEPT] = twice;
	f->plan->node[node + 1].n_in = VN_ATTN_KEPT + 1;
	return vn_const_set(&f->plan->node[node + 1], "again", r->x, err);
}

/* ---- learned positions ------------------------------------------------------------------- */

/* Reads row p + 1 of the table for position p. */
vn_status vn_make_next_positions(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)r;
	return vn_fault_arrange(f, node, 0, 0, &(vn_arrange) { VN_ARRANGE_SHIFTED, .a = 1 }, err);
}
