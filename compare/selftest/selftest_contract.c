/* selftest_contract.c: mutations of the contract: right numbers of another prompt, model, run or
 * plan. */
#include "compare/selftest/selftest_internal.h"

#include "libref/base/json.h"

#include <stdlib.h>
#include <string.h>

/* ---- tokens --------------------------------------------------------------------------------- */

static const char ids_at[] = "/run/token_ids", positions_at[] = "/run/positions";

/* A copy of the ids or positions, for changing. */
static int32_t *copy_tokens(const vn_mutation_context *p, bool ids, int64_t *n)
{
	const int32_t *list[2];
	*n = vn_recording_tokens(p->original, &list[0], &list[1]);
	int32_t *copy = malloc(((size_t)*n + 1) * sizeof *copy);
	if (copy)
		memcpy(copy, list[!ids], (size_t)*n * sizeof *copy);
	return copy;
}

static void put_list(vn_edit *e, const char *object, int32_t *list, int64_t n, bool honest)
{
	if (!list) {
		vn_edit_fail(e, object, "no memory");
		return;
	}
	vn_edit_ids(e, object, list, n, honest);
	free(list);
}

static void other_id(vn_edit *e, const vn_mutation_context *p)
{
	int64_t  n;
	int32_t *list = copy_tokens(p, true, &n);
	if (list)
		list[n / 2] ^= 1;
	put_list(e, ids_at, list, n, true);
}

static void id_less(vn_edit *e, const vn_mutation_context *p)
{
	int64_t  n, m;
	int32_t *list = copy_tokens(p, true, &n), *at = copy_tokens(p, false, &m);
	put_list(e, ids_at, list, n - 1, true);
	put_list(e, positions_at, at, m - 1, true);
}

static void id_rot(vn_edit *e, const vn_mutation_context *p)
{
	int64_t  n;
	int32_t *list = copy_tokens(p, true, &n);
	if (list)
		list[0] ^= 1;
	put_list(e, ids_at, list, n, false);
}

static void id_negative(vn_edit *e, const vn_mutation_context *p)
{
	int64_t  n;
	int32_t *list = copy_tokens(p, true, &n);
	if (list)
		list[n - 1] = -1;
	put_list(e, ids_at, list, n, true);
}

static void later_positions(vn_edit *e, const vn_mutation_context *p)
{
	int64_t  n;
	int32_t *list = copy_tokens(p, false, &n);
	for (int64_t i = 0; list && i < n; i++)
		list[i]++;
	put_list(e, positions_at, list, n, true);
}

static void other_position(vn_edit *e, const vn_mutation_context *p)
{
	int64_t  n;
	int32_t *list = copy_tokens(p, false, &n);
	if (list)
		list[n - 1]--;
	put_list(e, positions_at, list, n, true);
}

static void no_ids(vn_edit *e, const vn_mutation_context *p)
{
	(void)p;
	vn_edit_unlink(e, ids_at);
}
/* Makes the recording of other tokens, with the ids of this run's tokens. */
static void dressed_up(vn_edit *e, const vn_mutation_context *p)
{
	int64_t  n;
	int32_t *list = copy_tokens(p, true, &n);
	put_list(e, ids_at, list, n, true);
}

static void as_it_is(vn_edit *e, const vn_mutation_context *p)
{
	(void)e;
	(void)p;
}

/* ---- the model ------------------------------------------------------------------------------- */

/* Changes the first of these config keys that is present. */
static void config_key(vn_edit *e, const vn_mutation_context *p, const char *const *key, double times)
{
	json_t *config = vn_json_parse(vn_recording_config(p->original), 0), *x = NULL;
	while (config && *key && !(x = json_object_get(config, *key)))
		key++;
	if (!x)
		vn_edit_fail(e, "/model", "the config has none of the keys");
	else if (json_is_integer(x))
		json_integer_set(x, (json_int_t)(times * (double)json_integer_value(x)));
	else
		json_real_set(x, times * json_real_value(x));
	char *text = config ? vn_json_dump(config, JSON_INDENT(2)) : NULL;
	if (text)
		vn_edit_text(e, "/model", "config", text);
	free(text);
	json_decref(config);
}

static void other_eps(vn_edit *e, const vn_mutation_context *p)
{
	config_key(e, p, (const char *const[]) { "rms_norm_eps", "layer_norm_epsilon", NULL }, 10.0);
}

static void other_heads(vn_edit *e, const vn_mutation_context *p)
{
	config_key(e, p, (const char *const[]) { "num_attention_heads", "n_head", NULL }, 2.0);
}

/* Makes a weight row describe other numbers: another digest and range. */
static void other_weight(vn_edit *e, const vn_mutation_context *p)
{
	vn_edit_weight_text(e, p->weight, "digest", "00000000000000000000000000000000");
	vn_edit_weight_real(e, p->weight, "rms", 123.0);
}

static void weight_missing(vn_edit *e, const vn_mutation_context *p)
{
	(void)p;
	vn_edit_weights_fewer(e);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static const char nodes[] = "/plan/nodes", values[] = "/plan/values";

/* Makes an addition use its second input twice, so that layer 0's output counts it twice. */
static void plan_edge(vn_edit *e, const vn_mutation_context *p)
{
	const vn_plan *plan = vn_recording_plan(p->original);
	char           from[2 * VN_NAME_MAX + 32], to[2 * VN_NAME_MAX + 32];

	for (int i = 0; i < plan->n_nodes; i++) {
		const vn_node *n = &plan->node[i];
		if (n->op != VN_OP_ADD)
			continue;
		const char *a = plan->value[n->in[0]].name, *b = plan->value[n->in[1]].name;
		snprintf(from, sizeof from, "\"in\": [\"%s\", \"%s\"]", a, b);
		snprintf(to, sizeof to, "\"in\": [\"%s\", \"%s\"]", b, b);
		vn_edit_line(e, nodes, from, to);
		return;
	}
	vn_edit_fail(e, nodes, "the plan has no sum");
}

static void plan_alias(vn_edit *e, const vn_mutation_context *p)
{
	char           from[VN_NAME_MAX + 32], to[VN_NAME_MAX + 32];
	const vn_plan *plan = vn_recording_plan(p->original);

	for (int i = plan->n_values - 1; i >= 0; i--)
		if (plan->value[i].alias_of >= 0) {
			snprintf(from, sizeof from, "\"alias_of\": \"%s\"", plan->value[plan->value[i].alias_of].name);
			snprintf(to, sizeof to, "\"alias_of\": \"%s\"", plan->value[0].name);
			vn_edit_line(e, values, from, to);
			return;
		}
	vn_edit_fail(e, values, "the plan has no second name");
}

/* ---- the run --------------------------------------------------------------------------------- */

static void precision_other(vn_edit *e, const vn_mutation_context *p)
{
	const char *was = vn_facts_get(vn_recording_run(p->original), "precision");
	vn_edit_text(e, "/run", "precision", was && strcmp(was, "f16") == 0 ? "f16-acc16" : "f16");
}

const vn_mutation vn_selftest_contract[] = {
	{ "other-id", "one token is another", .edit = other_id, .want = REFUSED("token_ids", "token ids: number") },
	/* found by the steps or, if a file lacks them, by the other side */
	{ "id-less", "one token fewer than the steps have", .edit = id_less,
	  .want = { .status = VN_N_CHECKPOINT_STATUSES, .refused = VN_ERR_FORMAT, .allow = "token_ids", .says = "token" } },
	{ "id-rot", "a changed token id with its old digest", .edit = id_rot,
	  .want = FAILS(VN_ERR_FORMAT, "its digest is") },
	{ "id-negative", "an id outside the vocabulary", .edit = id_negative,
	  .want = FAILS(VN_ERR_FORMAT, "/run/token_ids") },
	{ "no-ids", "no token ids", .edit = no_ids, .want = FAILS(VN_ERR_FORMAT, "/run/token_ids") },
	{ "positions-later", "every position increased by one", .edit = later_positions,
	  .want = REFUSED("positions", "positions: token 0") },
	{ "position-other", "one position is that of another token", .edit = other_position,
	  .want = REFUSED("positions", "positions: ") },
	{ "no-engine", "no attribute engine", .text = { "/run", "engine", NULL },
	  .want = FAILS(VN_ERR_FORMAT, "attribute engine") },
	{ "no-precision", "no attribute precision", .text = { "/run", "precision", NULL },
	  .want = FAILS(VN_ERR_FORMAT, "attribute precision") },
	{ "precision-unknown", "an unknown precision", .text = { "/run", "precision", "approximate" },
	  .want = FAILS(VN_ERR_USAGE, "precision") },
	{ "precision-other", "a precision other than the floor's", VN_NEEDS_FLOOR, .edit = precision_other,
	  .want = REFUSED("precision", "the floor was run in") },
	{ "config-eps", "a config with ten times the epsilon", VN_NEEDS_CONFIG, .edit = other_eps,
	  .want = REFUSED("config", "config: ") },
	{ "config-heads", "a config with twice the heads", VN_NEEDS_CONFIG, .edit = other_heads,
	  .want = REFUSED("config", "config: ") },
	{ "config-cut", "a truncated config", VN_NEEDS_CONFIG, .text = { "/model", "config", "{\"model_type\": " },
	  .want = REFUSED("config", "not a JSON object") },
	{ "weight-other", "one weight with other numbers", VN_NEEDS_WEIGHTS, .edit = other_weight,
	  .want = REFUSED("weights", "weights: ") },
	{ "weight-digest", "one weight with other bits but equal statistics", VN_NEEDS_WEIGHTS,
	  .weight = { "digest", "00000000000000000000000000000001" }, .want = REFUSED("weights", "weights: ") },
	{ "weight-transposed", "one weight of another shape", VN_NEEDS_WEIGHTS, .weight = { "shape", "7x5" },
	  .want = REFUSED("weights", "(7, 5)") },
	{ "weight-renamed", "one weight under another name", VN_NEEDS_WEIGHTS,
	  .weight = { "name", "model.layers.0.self_attn.somebody.weight" },
	  .want = REFUSED("weights", "not in the candidate") },
	{ "weight-missing", "one weight that was never loaded", VN_NEEDS_WEIGHTS, .edit = weight_missing,
	  .want = REFUSED("weights", "not in the candidate") },
	{ "plan-mask", "a plan without the causal mask", VN_NEEDS_PLAN, .node = { "\"causal\": 1", "\"causal\": 0" },
	  .want = REFUSED("config", "plan: ") },
	{ "plan-eps", "a plan with another epsilon", VN_NEEDS_PLAN, .node = { "\"eps\": ", "\"eps\": 1" },
	  .want = REFUSED("config", "plan: ") },
	{ "plan-edge", "a plan that adds one input twice", VN_NEEDS_PLAN, .edit = plan_edge,
	  .want = REFUSED("config", "plan: ") },
	{ "plan-name", "a plan whose second name is that of another value", VN_NEEDS_PLAN, .edit = plan_alias,
	  .want = REFUSED("config", "plan") },
	{ "plan-context", "a plan with a shorter context", VN_NEEDS_PLAN, .whole = { "/plan", "context", 3 },
	  .want = REFUSED("config", "plan") },
	{ "plan-cut", "a plan that is not JSON", VN_NEEDS_PLAN, .node = { "\"op\": ", "\"op\": {" },
	  .want = FAILS(VN_ERR_FORMAT, "/plan") },
	{ "earlier-run", "a correct recording of other tokens", VN_NEEDS_EARLIER, .edit = as_it_is,
	  .want = REFUSED("token_ids", "token ids: number") },
	{ "earlier-run-relabelled", "the same, relabelled with these token ids", VN_NEEDS_EARLIER, .edit = dressed_up,
	  .want = { .status = VN_OUTSIDE, .metric = VN_N_METRICS, .many = true, .anywhere = true } },
	{ "other-model", "a correct recording of other weights", VN_NEEDS_UNRELATED_RUN, .edit = as_it_is,
	  .want = REFUSED("weights", "weights: ") },
	{ .name = NULL }
};
