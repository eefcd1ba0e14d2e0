/* fault_rope.c: faults of rotary positions (specs/faults.md, chapter R). */
#include "libref/plan/fault_internal.h"

#include <stdlib.h>
#include <string.h>

#define ROPE(n) ((n)->c.rope.rope)

/* ---- scaling ------------------------------------------------------------------------- */

float vn_fault_factor(const vn_plan *p, const vn_rope *rope)
{
	float *f = malloc((size_t)rope->rotary_dim * sizeof *f), af = 1.0f;

	if (f)
		vn_rope_frequencies(rope, p->list, 1, f, &af);
	free(f);
	return af;
}

/* Frequencies without scaling, but with the attention factor.
 * yarn with factor 1 would set neither. */
vn_status vn_make_factor_alone(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_rope    *rope = &ROPE(&f->plan->node[node]);
	const float af = vn_fault_factor(f->plan, rope);

	(void)r, (void)err;
	rope->type = VN_ROPE_YARN;
	rope->factor = 1.0;
	rope->attention_factor = (double)af;
	return VN_OK;
}

/* The constants with another yarn, or with llama3 scaling without the band in which wavelengths are
 * neither kept nor scaled. */
static vn_rope rescale(const vn_fault_row *r, const vn_node *n)
{
	vn_rope rope = ROPE(n);

	if (rope.type == VN_ROPE_LLAMA3 && r->x > 0)
		rope.high_freq_factor = rope.low_freq_factor * (1 + 1e-6);
	else if (rope.type == VN_ROPE_LLAMA3)
		rope.low_freq_factor = rope.high_freq_factor * (1 - 1e-6);
	else if (r->x == YARN_CONTEXT)
		rope.original_context = rope.max_context;
	else if (r->x == YARN_STRETCH)
		rope.factor = (double)rope.max_context / rope.original_context;
	else
		rope.truncate = false;
	if (rope.type == VN_ROPE_YARN && r->x == YARN_COLUMNS) {
		/* with these numbers of rotations the ramp spans pairs 0 to R */
		rope.beta_fast = rope.original_context / (2.0 * 3.14159265358979323846);
		rope.beta_slow = rope.beta_fast / (rope.theta * rope.theta);
	}
	return rope;
}

vn_status vn_make_rescaled(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	(void)err;
	ROPE(&f->plan->node[node]) = rescale(r, &f->plan->node[node]);
	return VN_OK;
}

/* The rotation of the first layer that rotates otherwise; NULL: there is none. */
const vn_node *vn_fault_other_rope(const vn_plan *p, const vn_node *n)
{
	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node *o = &p->node[i];
		if (o->op == VN_OP_ROPE && vn_fault_point(p, o) == vn_fault_point(p, n) &&
		    o->c.rope.rope.rotary_dim == n->c.rope.rope.rotary_dim &&
		    memcmp(&o->c.rope.rope, &n->c.rope.rope, sizeof n->c.rope.rope) != 0)
			return o;
	}
	return NULL;
}

/* A change that leaves every bit equal is no fault. */
bool vn_fault_moves(const vn_fault_row *r, const vn_plan *p, const vn_node *n)
{
	const vn_rope other = rescale(r, n);
	const size_t  pairs = (size_t)other.rotary_dim / 2;
	float        *f = malloc(2 * pairs * sizeof *f), af;
	bool          same = false;

	if (f) {
		vn_rope_frequencies(&ROPE(n), p->list, 1, f, &af);
		vn_rope_frequencies(&other, p->list, 1, f + pairs, &af);
		same = memcmp(f, f + pairs, pairs * sizeof *f) == 0;
	}
	free(f);
	return !same;
}

/* ---- what is rotated -------------------------------------------------------------------- */

/* Rotates the values like the keys. */
vn_status vn_make_values_too(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	vn_node rotation = *vn_fault_maker(f->plan, &f->plan->node[node], VN_ATTN_K);

	(void)r;
	rotation.in[0] = f->plan->node[node].in[VN_ATTN_V];
	return vn_fault_feed(f, node, VN_ATTN_V, rotation, err);
}

/* ---- rows of keys ---------------------------------------------------------------------------- */

int vn_fault_keys_per_query(const vn_plan *p, const vn_node *n)
{
	const vn_value *keys = &p->value[n->out[0]];
	const int       q = vn_fault_value(p, n->layer, VN_POINT_Q_PROJ), H = q < 0 ? 0 : p->value[q].size[1];
	const int       rows = keys->size[1] * keys->size[2], each = H && rows % H == 0 ? rows / H : 0;

	return vn_fault_point(p, n) == VN_POINT_K_PROJ && each >= 4 && each % 2 == 0 && each != keys->size[2] ? each : 0;
}

/* The file has neighbouring pairs of its own heads, which a converter takes for more heads; or (x)
 * a converter made neighbouring pairs for more heads, which are read as those of its own. */
vn_status vn_make_permuted_as_queries(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err)
{
	const int        K = f->plan->value[f->plan->node[node].out[0]].size[2];
	const int        each = vn_fault_keys_per_query(f->plan, &f->plan->node[node]);
	const int        first = r->x != 0 ? each : K, then = r->x != 0 ? K : each;
	const vn_arrange neighbours = { VN_ARRANGE_TRANSPOSED, .a = 2, .b = first / 2, .period = first },
					 halves = { VN_ARRANGE_TRANSPOSED, .a = then / 2, .b = 2, .period = then };
	const vn_status st = vn_fault_arrange_outputs(f, node, &neighbours, err);

	return st ? st : vn_fault_arrange_outputs(f, node, &halves, err);
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
