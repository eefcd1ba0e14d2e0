/* criteria.c: see criteria.h. */
#include "compare/result/criteria.h"
#include "compare/comparison/checkpoint.h"
#include "compare/replay/local.h"
#include "compare/weights/weights.h"

#include "libref/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum criterion_state { FAILS, HOLDS, NOT_MEASURED } criterion_state;

static void add(json_t *list, const char *name, criterion_state state, const char *words)
{
	char text[VN_WORDS];

	snprintf(text, sizeof text, "%s%s", state == NOT_MEASURED ? "not measured: " : "", words);
	json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "name", name, "holds",
	                                      state == NOT_MEASURED ? json_null() : json_boolean(state == HOLDS), "words",
	                                      vn_json_text(text)));
}

static void add_weights(json_t *list, const vn_result *r)
{
	const vn_weights *w = r->weights;
	char              text[VN_WEIGHT_WORDS];

	add(list, "weights loaded",
	    !w || w->copied ? NOT_MEASURED
	    : w->n_found    ? FAILS
	                    : HOLDS,
	    !w          ? "record the table of weights on both sides"
	    : w->copied ? "a table was copied from a model; record that of the run"
	                : vn_weights_summary(w, text));
}

static void add_shapes(json_t *list, const vn_result *r)
{
	const int *n = r->verdict.n_status, wrong = n[VN_MISSHAPEN];
	int        seen = wrong;
	char       text[80];

	for (int i = 0; i < r->checkpoints.n; i++)
		seen += r->checkpoints.of[i].m.n || r->checkpoints.of[i].status == VN_EQUAL ||
		        r->checkpoints.of[i].status == VN_AGREED;
	snprintf(text, sizeof text, "%d of %d tensors have the reference's shape", seen - wrong, seen);
	add(list, "shapes", !seen ? NOT_MEASURED : wrong ? FAILS : HOLDS, seen ? text : "no tensor was compared");
}

/* ---- products -------------------------------------------------------------------------------- */

/* Engines store the matrices of one input as one, and split the result. */
static bool shares_its_input(const vn_plan *p, const vn_node *n)
{
	for (int i = 0; n->op == VN_OP_LINEAR && i < p->n_nodes; i++)
		if (&p->node[i] != n && p->node[i].op == VN_OP_LINEAR && p->node[i].in[0] == n->in[0])
			return true;
	return false;
}

static bool has_bias(const vn_plan *p, const vn_node *n)
{
	(void)p;
	return n->op == VN_OP_LINEAR && n->w[1] >= 0;
}

/* The products of a kind: how many the plan has, were recomputed and right, were wrong. One whose
 * error may be another operation's, or the capture's, is neither. */
typedef struct product_count {
	int         due, right, wrong;
	const char *first; /* the first that is wrong */
} product_count;

static product_count count_products(const vn_result *r, const vn_plan *p,
                                    bool (*is)(const vn_plan *p, const vn_node *n))
{
	product_count c = { 0 };
	enum { UNSEEN, RIGHT, WRONG } *state = vn_alloc_zero((size_t)p->n_nodes, sizeof *state);

	for (int i = 0; i < r->checkpoints.n; i++) {
		const vn_checkpoint *k = &r->checkpoints.of[i];
		const int            node = k->value >= 0 ? p->value[k->value].node : -1;
		if (node < 0 || !vn_local_judges(k))
			continue;
		const bool beyond = vn_local_beyond(k) && !vn_local_is_order(k);
		const bool wrong = beyond && k->replay.span == 1 && k->replay.charged_to < 0 && !k->replay.recorder_fault;
		if (wrong && !c.first && is(p, &p->node[node]))
			c.first = k->name;
		if (wrong)
			state[node] = WRONG;
		else if (!beyond && state[node] == UNSEEN)
			state[node] = RIGHT;
	}
	for (int i = 0; i < p->n_nodes; i++)
		if (is(p, &p->node[i])) {
			c.due++;
			c.right += state[i] == RIGHT;
			c.wrong += state[i] == WRONG;
		}
	free(state);
	return c;
}

static void add_products(json_t *list, const vn_opened *o, const vn_result *r, const char *name, const char *kind,
                         bool (*is)(const vn_plan *p, const vn_node *n))
{
	const vn_plan *p = o->plan ? o->plan : o->model ? vn_model_plan(o->model) : NULL;
	product_count  c = { 0 };
	char           text[VN_WORDS];

	if (p)
		c = count_products(r, p, is);
	if (!p)
		snprintf(text, sizeof text, "neither file holds a plan; give --model");
	else if (!c.due)
		snprintf(text, sizeof text, "the model has no %s", kind);
	else if (c.wrong)
		snprintf(text, sizeof text, "%d of %d %s are wrong; the first is %s", c.wrong, c.due, kind, c.first);
	else if (c.right == c.due)
		snprintf(text, sizeof text, "%d %s, recomputed from the candidate's inputs, are right", c.due, kind);
	else
		snprintf(text, sizeof text, "%d of %d %s were recomputed%s", c.right, c.due, kind,
		         r->replayed ? "; record the others with their inputs" : "; give --model");
	add(list, name, c.wrong ? FAILS : p && c.due && c.right == c.due ? HOLDS : NOT_MEASURED, text);
}

json_t *vn_criteria_json(const vn_opened *o, const vn_result *r)
{
	json_t    *list = json_array();
	const bool bits = o->request.options->bitwise;

	add_weights(list, r);
	add_shapes(list, r);
	add_products(list, o, r, "fused products split", "products that share their input", shares_its_input);
	add_products(list, o, r, "biases", "products with a bias", has_bias);
	add(list, "deterministic",
	    !bits               ? NOT_MEASURED
	    : r->verdict.within ? HOLDS
	                        : FAILS,
	    !bits               ? "record the run twice, and compare both with --bitwise"
	    : r->verdict.within ? "all compared tensors have the same bits in both runs"
	                        : "the runs differ in their bits");
	return list;
}
