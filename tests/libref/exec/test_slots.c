/* test_slots.c: no two values that live at once share memory, by brute force. */
#include "libref/exec/states.h"
#include "libref/family/family.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>

static vn_plan *qwen2(int layers, int tied)
{
	char     text[512];
	vn_plan *p = NULL;

	snprintf(text, sizeof text,
	         "{\"vocab_size\":48,\"hidden_size\":24,\"intermediate_size\":40,\"num_hidden_layers\":%d,"
	         "\"num_attention_heads\":6,\"num_key_value_heads\":2,\"head_dim\":10,\"max_position_embeddings\":64,"
	         "\"tie_word_embeddings\":%s}",
	         layers, tied ? "true" : "false");
	json_t *o = json_loads(text, 0, NULL);
	CU_ASSERT_EQUAL_FATAL(vn_family_qwen2.plan("c", o, &p, NULL), VN_OK);
	json_decref(o);
	return p;
}

/* The nodes at which a value needs memory: from its own node to its last reader. */
typedef struct lifetime {
	int from, to;
} lifetime;

static lifetime *lifetimes_of(const vn_plan *p)
{
	lifetime *of = calloc((size_t)p->n_values, sizeof *of);

	for (int v = 0; v < p->n_values; v++)
		of[v] = (lifetime) { p->value[v].node, p->value[v].node };
	for (int i = 0; i < p->n_nodes; i++)
		for (int j = 0; j < p->node[i].n_in; j++)
			of[p->node[i].in[j]].to = i;
	return of;
}

static void check(const vn_plan *p)
{
	lifetime *of = lifetimes_of(p);
	vn_slots  s;

	CU_ASSERT_TRUE_FATAL(vn_slots_assign(&s, p));
	for (int a = 0; a < p->n_values; a++) {
		if (s.offset[a] < 0) { /* only what is never read from memory has none */
			CU_ASSERT(of[a].from == of[a].to);
			continue;
		}
		CU_ASSERT(s.offset[a] + vn_value_row(&p->value[a]) <= s.total);
		for (int b = 0; b < a; b++) {
			if (s.offset[b] < 0 || of[b].to < of[a].from || of[a].to < of[b].from)
				continue;
			CU_ASSERT(s.offset[a] + vn_value_row(&p->value[a]) <= s.offset[b] ||
			          s.offset[b] + vn_value_row(&p->value[b]) <= s.offset[a]);
		}
	}
	free(of);
	vn_slots_finish(&s);
	CU_ASSERT_PTR_NULL(s.offset);
	vn_slots_finish(&s);
}

static void no_two_live_values_of_a_model_overlap(void)
{
	for (int layers = 1; layers <= 5; layers++) {
		vn_plan *p = qwen2(layers, layers % 2);
		check(p);
		vn_plan_destroy(p);
	}
}

/* Random plans: inputs drawn from all earlier values, mixed widths. */
static void no_two_live_values_of_a_random_plan_overlap(void)
{
	uint32_t u = 1;

	for (int round = 0; round < 200; round++) {
		vn_builder *b = vn_plan_begin(8, 9, 16);
		int         made[200], n = 0;
		vn_plan    *p;

		made[n++] = vn_plan_embed(b, vn_plan_weight(b, "e", 2, (int64_t[]) { 9, 8 }), VN_POINT_EMBED);
		for (int l = 0; l < 8; l++) {
			vn_plan_layer(b, l);
			for (int i = 0; i < 11; i++) {
				char name[64];
				u = u * 1664525u + 1013904223u;
				const int x = made[(u >> 8) % (uint32_t)n], m = 1 + (int)(u >> 20) % 30;
				snprintf(name, sizeof name, "w%d", m);
				/* all are (T, 8): through a linear of any width and back */
				const int y = vn_plan_linear(b, x, vn_plan_weight(b, name, 2, (int64_t[]) { m, 8 }), -1, 0,
				                             (vn_point)(2 * i));
				snprintf(name, sizeof name, "back%d", m);
				const int z = vn_plan_linear(b, y, vn_plan_weight(b, name, 2, (int64_t[]) { 8, m }), -1, 0,
				                             (vn_point)(2 * i + 1));
				made[n++] = z;
			}
		}
		vn_plan_layer(b, -1);
		vn_plan_add(b, made[0], made[n - 1], VN_POINT_OUTPUT); /* the first lives to the end */
		CU_ASSERT_EQUAL_FATAL(vn_plan_finish(b, &p, NULL), VN_OK);
		check(p);
		vn_plan_destroy(p);
	}
}

static void more_layers_need_no_more_memory(void)
{
	vn_plan *two = qwen2(2, 1), *many = qwen2(12, 1);
	vn_slots a, b;

	CU_ASSERT_TRUE_FATAL(vn_slots_assign(&a, two) && vn_slots_assign(&b, many));
	CU_ASSERT_EQUAL(a.total, b.total);
	vn_slots_finish(&a);
	vn_slots_finish(&b);
	vn_plan_destroy(two);
	vn_plan_destroy(many);
}

static void aliases_states_and_what_streams_have_no_memory_of_their_own(void)
{
	vn_plan    *p = qwen2(2, 1);
	const char *none[] = { "layer0.input",      "layer1.input",    "layer0.k_cache", "layer0.attn_scores",
		                   "layer1.attn_probs", "layer0.gate_act", "logits" };
	vn_slots    s;

	CU_ASSERT_TRUE_FATAL(vn_slots_assign(&s, p));
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		CU_ASSERT_EQUAL(s.offset[vn_plan_find(p, none[i])], -1);
	CU_ASSERT(s.offset[vn_plan_find(p, "layer0.mlp_act")] >= 0);
	vn_slots_finish(&s);
	vn_plan_destroy(p);
}

static void an_empty_plan_needs_nothing(void)
{
	vn_plan *p;
	vn_slots s;

	CU_ASSERT_EQUAL_FATAL(vn_plan_finish(vn_plan_begin(0, 0, 0), &p, NULL), VN_OK);
	CU_ASSERT_TRUE(vn_slots_assign(&s, p));
	CU_ASSERT_EQUAL(s.total, 0);
	vn_slots_finish(&s);
	vn_plan_destroy(p);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(no_two_live_values_of_a_model_overlap), TEST(no_two_live_values_of_a_random_plan_overlap),
		TEST(more_layers_need_no_more_memory),       TEST(aliases_states_and_what_streams_have_no_memory_of_their_own),
		TEST(an_empty_plan_needs_nothing),           CU_TEST_INFO_NULL,
	};
	return run_suite("slots", tests);
}
