/* test_plan_json.c: a plan as the text in a file, there and back (capture/file/plan_json.h). */
#include "capture/file/plan_json.h"
#include "tests/support/store_help.h"

static void a_plan_survives_the_way_through_text(void)
{
	vn_plan     *p = make_plan(), *q = NULL;
	vn_plan_text t;
	vn_error     err = { 0 };

	p->value[vn_plan_find(p, "layer0.q_rope")].wide = true;
	CU_ASSERT_EQUAL(vn_plan_to_text(p, &t, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_OK);
	if (!q)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(q);
	CU_ASSERT_EQUAL(q->n_states, p->n_states);
	for (int i = 0; i < p->n_states && i < q->n_states; i++) { /* not memcmp: there is a gap behind `wide` */
		const vn_state *a = &p->state[i], *b = &q->state[i];
		CU_ASSERT_TRUE(a->node == b->node && a->value == b->value && a->input == b->input && a->wide == b->wide &&
		               a->rank == b->rank && memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) == 0);
	}
	CU_ASSERT_EQUAL_FATAL(q->n_nodes, p->n_nodes);
	CU_ASSERT_EQUAL_FATAL(q->n_values, p->n_values);
	for (int i = 0; i < p->n_values; i++) {
		const vn_value *a = &p->value[i], *b = &q->value[i];
		CU_ASSERT_STRING_EQUAL(a->name, b->name);
		CU_ASSERT_TRUE(a->point == b->point && a->layer == b->layer && a->node == b->node && a->slot == b->slot &&
		               a->alias_of == b->alias_of && a->rank == b->rank && a->last_use == b->last_use &&
		               a->on_demand == b->on_demand && a->wide == b->wide &&
		               memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) == 0);
	}
	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node *a = &p->node[i], *b = &q->node[i];
		CU_ASSERT_TRUE(a->op == b->op && a->layer == b->layer && a->n_in == b->n_in && a->n_w == b->n_w &&
		               a->n_out == b->n_out);
		for (int k = 0; vn_const_name(a->op, k); k++)
			CU_ASSERT_EQUAL(vn_const_get(a, k), vn_const_get(b, k));
	}
	vn_plan_destroy(q);
	vn_plan_destroy(p);
	vn_plan_text_free(&t);
}

/* LongRoPE's lists are in the nodes that use them. */
static void lists_of_a_plan_survive_the_way_through_text(void)
{
	vn_builder  *b = vn_plan_begin(0, 8, 64);
	vn_plan     *p = NULL, *q = NULL;
	vn_plan_text t;
	vn_error     err = { 0 };
	vn_rope      rope = { .type = VN_ROPE_LONGROPE,
		                  .theta = 1e4,
		                  .rotary_dim = 4,
		                  .factor = 4,
		                  .original_context = 16,
		                  .max_context = 64,
		                  .short_factor = vn_plan_list(b, 2, (float[]) { 1, 1.1f }),
		                  .long_factor = vn_plan_list(b, 2, (float[]) { 2, 4.7f }) };
	const int    x = vn_plan_embed(b, vn_plan_weight(b, "x", 2, (int64_t[]) { 8, 8 }), VN_POINT_EMBED);

	vn_plan_rope(b, vn_plan_slice(b, x, (vn_columns) { 8, 0, 8 }, 2, VN_POINT_Q_PROJ), &rope, VN_POINT_Q_ROPE);
	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_plan_to_text(p, &t, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.node[2], "\"short_factor\": [1, 1.10000002384185"));
	CU_ASSERT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(q);
	CU_ASSERT_EQUAL(q->n_lists, 2);
	CU_ASSERT_TRUE(vn_plan_equal(p, q));
	vn_plan_destroy(q);

	const struct {
		const char *from, *to;
	} bad[] = { { "[1, 1.1", "[1, \"1\", 1.1" },
		        { "[1, 1.1", "[1, 1e39, 1.1" },
		        { "[1, 1.1", "[1, 2, 1.1" },
		        { "\"theta\": 10000", "\"theta\": []" },
		        { "\"factor\": 4,", "\"factor\": 4, \"other\": 1," },
		        { "\"long_factor\": [2, 4.6999998092651367]", "\"long_factor\": 1" } };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *line = t.node[2], *at = strstr(line, bad[i].from), *now = NULL;
		CU_ASSERT_TRUE_FATAL(
			at && asprintf(&now, "%.*s%s%s", (int)(at - line), line, bad[i].to, at + strlen(bad[i].from)) > 0);
		t.node[2] = now;
		CU_ASSERT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_ERR_FORMAT);
		CU_ASSERT_PTR_NULL(q);
		t.node[2] = line;
		free(now);
	}
	vn_plan_destroy(p);
	vn_plan_text_free(&t);
}

/* The line without the text from `from` up to `to`. */
static void cut_out(char *line, const char *from, const char *to)
{
	char *a = strstr(line, from), *b = a ? strstr(a, to) : NULL;

	CU_ASSERT_PTR_NOT_NULL_FATAL(b);
	memmove(a, b, strlen(b) + 1);
}

/* As they were before a cache could be a checkpoint: three outputs, and a
 * constant with the number of the cache; and no constant that came later. */
static void a_plan_of_an_older_file_still_opens(void)
{
	vn_plan     *p = make_plan(), *q = NULL;
	vn_plan_text t;
	vn_error     err = { 0 };
	int          attentions = 0, kept = 0;

	CU_ASSERT_EQUAL_FATAL(vn_plan_to_text(p, &t, &err), VN_OK);
	for (int i = 0; i < t.n_nodes; i++) {
		char *now;
		if (strstr(t.node[i], "\"rms_norm\""))
			cut_out(t.node[i], ", \"offset\"", "}");
		if (strstr(t.node[i], "\"linear\""))
			cut_out(t.node[i], "\"transposed\"", "}");
		if (strstr(t.node[i], "\"rope\""))
			cut_out(t.node[i], ", \"short_factor\"", "}");
		if (!strstr(t.node[i], "\"attention\""))
			continue;
		cut_out(strstr(t.node[i], "\"out\""), ", \"layer", "], \"const\"");
		char *at = strstr(t.node[i], "\"window\"");
		CU_ASSERT_TRUE_FATAL(
			asprintf(&now, "%.*s\"cache\": %d, %s", (int)(at - t.node[i]), t.node[i], attentions++, at) > 0);
		free(t.node[i]);
		t.node[i] = now;
	}
	for (int i = 0; i < t.n_values; i++)
		if (strstr(t.value[i], "_cache\"") || strstr(t.value[i], "attn_scores\"") || strstr(t.value[i], "attn_probs\""))
			free(t.value[i]);
		else
			t.value[kept++] = t.value[i];
	t.n_values = kept;
	CU_ASSERT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_OK);
	if (!q)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(q);
	CU_ASSERT_EQUAL(attentions, L);
	CU_ASSERT_EQUAL(q->n_states, p->n_states);
	for (int i = 0; i < q->n_states; i++)
		CU_ASSERT_EQUAL(q->state[i].value, -1);
	vn_plan_destroy(q);
	vn_plan_destroy(p);
	vn_plan_text_free(&t);
}

/* Each line with one word exchanged for another must be refused. */
static void a_plan_that_breaks_a_rule_is_refused(void)
{
	static const struct {
		const char *from, *to, *why;
	} change[] = {
		{ "\"op\": \"rope\"", "\"op\": \"ropf\"", "its op is unknown" },
		{ "\"rotary_dim\": 4", "\"rotary_dim\": 6", "rotary_dim is 6, expected" },
		{ "\"rotary_dim\": 4", "\"rotary_dim\": -4", "constant" },
		{ "\"theta\": 10000", "\"beta\": 10000", "constant" },
		{ "\"max_context\": 0, ", "", "constant is missing" },
		{ "\"heads\": 2", "\"heads\": 4", "do not fit" },
		{ "\"kv_heads\": 2", "\"kv_heads\": 0", "constant" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [\"layer1.attn_norm\"]", "computed by a later node" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [\"layer0.q_rope\"]", "computed by a later node" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [null]", "input does not exist" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [\"nothing\"]", "does not have" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": []", "number of inputs" },
		{ "\"in\": [\"layer0.attn_norm\"]", "\"in\": [\"layer0.input\"]", "second name" },
		{ "\"out\": [\"layer0.q_rope\"]", "\"out\": [\"layer0.q_proj\"]", "computed twice" },
		{ "\"out\": [\"layer0.q_rope\"]", "\"out\": [\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]", "too long" },
		{ "\"weights\": [\"norm0\"]", "\"weights\": [null]", "weight is missing" },
		{ "\"weights\": [\"norm0\"]", "\"weights\": [\"embed\"]", "do not fit" },
		{ "\"layer\": 1", "\"layer\": 2", "layer" },
		{ "\"sizes\": [\"T\", 8]", "\"sizes\": [\"T\", 9]", "" },
		{ "\"sizes\": [\"T\", 8]", "\"sizes\": [\"T\", 4611686018427387904]", "sizes" },
		{ "\"sizes\": [\"T\", 8]", "\"sizes\": [1,1,1,1,1]", "sizes" },
		{ "\"alias_of\": \"embed\"", "\"alias_of\": \"layer0.input\"", "second name" },
		{ "\"alias_of\": \"embed\"", "\"alias_of\": \"logits\"", "second name" },
		{ "\"alias_of\": \"embed\"", "\"alias_of\": null", "no node computes this value" },
		{ "\"name\": \"logits\"", "\"name\": \"embed\"", "twice" },
		{ "\"shape\": [8, 8]", "\"shape\": [8, 0]", "sizes" },
		{ "\"shape\": [8, 8]", "\"shape\": [8, 8, 1, 1, 1]", "shape" },
		{ "{", "[", "not a JSON object" },
	};
	vn_plan     *p = make_plan(), *q;
	vn_plan_text t;
	vn_error     err = { 0 };

	CU_ASSERT_EQUAL_FATAL(vn_plan_to_text(p, &t, &err), VN_OK);
	for (size_t c = 0; c < sizeof change / sizeof *change; c++) {
		char **line[] = { t.weight, t.value, t.node };
		int    n[] = { t.n_weights, t.n_values, t.n_nodes };
		bool   done = false;
		for (int k = 0; k < 3 && !done; k++)
			for (int i = 0; i < n[k] && !done; i++) {
				char *at = strstr(line[k][i], change[c].from), *old = line[k][i], *now;
				if (!at)
					continue;
				done = true;
				CU_ASSERT_TRUE_FATAL(
					asprintf(&now, "%.*s%s%s", (int)(at - old), old, change[c].to, at + strlen(change[c].from)) > 0);
				line[k][i] = now;
				*err.text = '\0';
				CU_ASSERT_NOT_EQUAL(vn_plan_from_text(&t, &q, &err), VN_OK);
				CU_ASSERT_PTR_NULL(q);
				if (!strstr(err.text, change[c].why))
					fprintf(stderr, "%s: expected '%s' in '%s'\n", change[c].to, change[c].why, err.text);
				CU_ASSERT_PTR_NOT_NULL(strstr(err.text, change[c].why));
				vn_plan_destroy(q);
				line[k][i] = old;
				free(now);
			}
		if (!done)
			fprintf(stderr, "no line has %s\n", change[c].from);
		CU_ASSERT_TRUE(done);
	}
	vn_plan_text_free(&t);
	vn_plan_destroy(p);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_plan_survives_the_way_through_text),
		TEST(lists_of_a_plan_survive_the_way_through_text),
		TEST(a_plan_of_an_older_file_still_opens),
		TEST(a_plan_that_breaks_a_rule_is_refused),
		CU_TEST_INFO_NULL,
	};
	return run_store_suite("plan_json", tests);
}
