/* test_fault.c: known mistakes made on purpose: their table, where each applies, the plan after
 * injection. parity_faults.py tests their effect on the numbers. */
#include "libref/base/dtype.h"
#include "libref/model/model.h"
#include "libref/plan/fault.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const families[] = { "gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text" };
enum { N_FAMILIES = sizeof families / sizeof *families };

static vn_model *open_fixture(const char *family)
{
	char      path[512];
	vn_model *m = NULL;

	snprintf(path, sizeof path, VERNIER_SOURCE "/fixtures/%s-trained", family);
	CU_ASSERT_EQUAL_FATAL(vn_model_open(path, &m, NULL), VN_OK);
	return m;
}

static void every_fault_has_an_id_of_its_own_and_a_line(void)
{
	for (int i = 0; i < vn_n_faults(); i++) {
		CU_ASSERT(strlen(vn_fault_id(i)) >= 2 && strlen(vn_fault_means(i)) > 5);
		CU_ASSERT(!strpbrk(vn_fault_id(i), "@ ,") && !strchr(vn_fault_means(i), '\n'));
		for (int k = 0; k < i; k++)
			CU_ASSERT_STRING_NOT_EQUAL(vn_fault_id(i), vn_fault_id(k));
	}
}

static void an_id_without_its_variant_is_the_first_of_them(void)
{
	CU_ASSERT_STRING_EQUAL(vn_fault_id(vn_fault_find("A1")), "A1.missing");
	CU_ASSERT_STRING_EQUAL(vn_fault_id(vn_fault_find("A1.twice")), "A1.twice");
	CU_ASSERT_STRING_EQUAL(vn_fault_id(vn_fault_find("N1")), "N1.1e-5");
	CU_ASSERT_STRING_EQUAL(vn_fault_id(vn_fault_find("R1")), "R1");
	const char *none[] = { "", "R", "A", "A1.", "A1.tw", "r1", "R99", "." };
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		CU_ASSERT_EQUAL(vn_fault_find(none[i]), -1);
}

static bool other_weights(const vn_faulty *f, const vn_plan *unmodified)
{
	return vn_faulty_plan(f)->n_weights != unmodified->n_weights;
}

/* One node of one model. */
static void try_node(const vn_model *m, const vn_plan *copy, int fault, int node, int *made)
{
	const vn_plan *p = vn_model_plan(m);
	const char    *name = p->value[p->node[node].out[0]].name;
	char           what[VN_NAME_MAX + 32];
	vn_faulty     *f = NULL;
	vn_error       e;

	snprintf(what, sizeof what, "%s@%s", vn_fault_id(fault), name);
	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(p, vn_model_weights(m), &f, NULL), VN_OK);
	CU_ASSERT_TRUE(vn_plan_equal(vn_faulty_plan(f), p));
	if (vn_fault_why_not(fault, p, node)) {
		CU_ASSERT_EQUAL(vn_faulty_inject(f, what, &e), VN_ERR_USAGE);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, what));
		CU_ASSERT_TRUE(vn_plan_equal(vn_faulty_plan(f), p));
	} else if (vn_faulty_inject(f, what, &e)) { /* the format of the weights says no */
		CU_ASSERT(strstr(e.text, "leaves the weights there unchanged") || strstr(e.text, "not f16 or bf16") ||
		          strstr(e.text, "for other block formats"));
	} else {
		const vn_plan *q = vn_faulty_plan(f);
		CU_ASSERT_EQUAL(vn_plan_check(q, NULL), VN_OK);
		CU_ASSERT(!vn_plan_equal(q, p) || other_weights(f, p) || vn_faulty_early(f, &(const int *) { NULL }));
		CU_ASSERT(q->n_values >= p->n_values);
		for (int v = 0; v < p->n_values; v++)
			CU_ASSERT_STRING_EQUAL(q->value[v].name, p->value[v].name);
		for (int w = 0; w < q->n_weights; w++)
			CU_ASSERT(vn_shape_equal(&q->weight[w].shape, &vn_faulty_weights(f)[w].shape));
		++*made;
	}
	CU_ASSERT_TRUE(vn_plan_equal(copy, p)); /* the unmodified plan stays unmodified */
	vn_faulty_destroy(f);
}

/* yarn, lengths that select a scaling, bands, blocks of weights, mixed windows, heads as wide as a
 * gated model, experts, sinks, what Gemma has and prediction heads are no fixture's here:
 * parity_faults.py, parity_families.py, parity_mtp.py and parity_outside.py make them. */
static bool is_made_elsewhere(const char *id)
{
	static const char *const begins[] = { "R5.f",      "R6.",      "R7.",         "R17.", "W16",      "W17",
		                                  "W21",       "W22",      "A5.layer",    "E",    "G20.late", "R18",
		                                  "A19",       "A20",      "A21",         "N23",  "N15.post", "M4.",
		                                  "R1.halves", "R4.first", "M9.uncapped", "T",    "C13",      "W23" };

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (strncmp(id, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static void every_fault_is_made_where_it_fits_and_refused_elsewhere(void)
{
	int *made = calloc((size_t)vn_n_faults(), sizeof *made);

	for (int i = 0; i < N_FAMILIES; i++) {
		vn_model *m = open_fixture(families[i]);
		vn_plan  *copy = NULL;
		CU_ASSERT_EQUAL_FATAL(vn_plan_clone(vn_model_plan(m), &copy, NULL), VN_OK);
		for (int k = 0; k < vn_n_faults(); k++)
			for (int n = 0; n < copy->n_nodes; n++)
				try_node(m, copy, k, n, &made[k]);
		vn_plan_destroy(copy);
		vn_model_close(m);
	}
	for (int k = 0; k < vn_n_faults(); k++)
		CU_ASSERT(made[k] || is_made_elsewhere(vn_fault_id(k)));
	free(made);
}

static void refuse(const char *family, const char *what, const char *says)
{
	vn_model  *m = open_fixture(family);
	vn_faulty *f = NULL;
	vn_error   e = { "" };

	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(vn_model_plan(m), vn_model_weights(m), &f, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_faulty_inject(f, what, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, says));
	vn_faulty_destroy(f);
	vn_model_close(m);
}

/* A family's id is that of its variants, or of a fault, without what follows the dot. */
static void every_mistake_has_an_id_of_its_own_and_faults_come_first(void)
{
	CU_ASSERT_STRING_EQUAL(vn_mistake_id(VN_NO_MISTAKE), "");
	CU_ASSERT_EQUAL(vn_mistake_fault(VN_NO_MISTAKE), -1);
	for (int m = VN_NO_MISTAKE + 1; m < VN_N_MISTAKES; m++) {
		const char *id = vn_mistake_id((vn_mistake)m);
		const int   fault = vn_mistake_fault((vn_mistake)m);
		CU_ASSERT_EQUAL(fault, m <= vn_n_faults() ? m - 1 : -1);
		if (fault >= 0)
			CU_ASSERT_STRING_EQUAL(vn_fault_id(fault), id);
		for (int other = m + 1; other < VN_N_MISTAKES; other++)
			CU_ASSERT_STRING_NOT_EQUAL(vn_mistake_id((vn_mistake)other), id);
	}
	CU_ASSERT_EQUAL(vn_mistake_fault(VN_MISTAKE_P17_GATE), vn_fault_find("P17.gate"));
	CU_ASSERT_EQUAL(vn_mistake_fault(VN_MISTAKE_R2), -1);
}

static void what_cannot_be_is_refused_by_saying_what_can(void)
{
	refuse("qwen2", "R99@*", "no such fault");
	CU_ASSERT_STRING_EQUAL(vn_fault_id(vn_fault_find("P17")), "P17"); /* P17.gate comes before it */
	CU_ASSERT_STRING_EQUAL(vn_fault_id(vn_fault_find("A1")), "A1.missing");
	refuse("qwen2", "R1", "R1@layer0.*");
	refuse("qwen2", "@layer0.*", "no such fault");
	refuse("qwen2", "R1@", "pattern");
	refuse("qwen2", "R1@layer{0", "{");
	refuse("qwen2", "R1@layer7.*", "these can: layer0.q_rope, layer0.k_rope, layer1.q_rope, layer1.k_rope");
	refuse("qwen2", "R1@layer0.mlp_norm", "these can: layer0.q_rope");
	refuse("mistral", "A6@*", "all ways to map the heads are the same");
	refuse("gpt2", "R1@*", "no such operation");
	refuse("llama", "W13@*", "leaves the weights there unchanged"); /* bf16 as they are */
	refuse("qwen2", "W12@layer0.q_proj", "not f16 or bf16");
}

static void a_node_that_waits_for_nothing_is_named_once(void)
{
	vn_model  *m = open_fixture("qwen2");
	vn_faulty *f = NULL;
	const int *early;

	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(vn_model_plan(m), vn_model_weights(m), &f, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_faulty_early(f, &early), 0);
	CU_ASSERT_EQUAL(vn_faulty_inject(f, "P9.barrier@layer1.output", NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_faulty_early(f, &early), 1);
	CU_ASSERT_EQUAL(early[0], vn_plan_find(vn_model_plan(m), "layer1.output"));
	CU_ASSERT_EQUAL(vn_faulty_inject(f, "P9.barrier@layer1.output", NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_faulty_early(f, &early), 1);
	CU_ASSERT_EQUAL(vn_faulty_inject(f, "P9.barrier@layer1.{output,down_proj}", NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_faulty_early(f, &early), 2);
	vn_faulty_destroy(f);
	vn_model_close(m);
}

static void a_sum_of_ranks_is_a_number_and_back(void)
{
	static const vn_rank_sum of[] = { { 2, 1, false }, { 4, 7, true }, { 32, 0xfffffffe, true } };

	CU_ASSERT_EQUAL(vn_rank_sum_number(&of[0]), VN_RANKS_MOST + 2); /* P15 in the catalogue */
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		const vn_rank_sum back = vn_rank_sum_of(vn_rank_sum_number(&of[i]));
		CU_ASSERT_EQUAL(back.ranks, of[i].ranks);
		CU_ASSERT_EQUAL(back.present, of[i].present);
		CU_ASSERT_EQUAL(back.no_bias, of[i].no_bias);
	}
}

/* The shards of a fused product of queries, keys and values, for 2 ranks and more. */
static void a_number_of_ranks_has_to_divide_the_rows(void)
{
	vn_model      *m = open_fixture("gpt2");
	const vn_plan *p = vn_model_plan(m);
	const int      v = vn_plan_find(p, "layer0.c_attn"), node = p->value[v].node;
	const int      rows = (int)vn_value_row(&p->value[v]) / 3;

	for (int ranks = 0; ranks <= 9; ranks++) {
		vn_faulty *f = NULL;
		vn_error   e;
		CU_ASSERT_EQUAL_FATAL(vn_faulty_create(p, vn_model_weights(m), &f, NULL), VN_OK);
		const vn_status st = vn_faulty_make(f, vn_fault_find("P17"), node, ranks, &e);
		CU_ASSERT_EQUAL(st, ranks >= 2 && rows % ranks == 0 ? VN_OK : VN_ERR_USAGE);
		CU_ASSERT(!st || strstr(e.text, "cannot be split evenly into ranks"));
		CU_ASSERT_EQUAL(!st, other_weights(f, p));
		vn_faulty_destroy(f);
	}
	vn_model_close(m);
}

/* Each is applied to the plan that the earlier ones left. */
static void faults_add_up(void)
{
	vn_model  *m = open_fixture("qwen3");
	vn_faulty *f = NULL;

	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(vn_model_plan(m), vn_model_weights(m), &f, NULL), VN_OK);
	const char *all[] = { "R1@layer1.*", "N14.twice@layer0", "R9@*",        "N11@layer1", "W4.weights@layer*",
		                  "W5@layer0",   "R2@layer1.q_rope", "N16.twice@*", "N10@layer0" };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		CU_ASSERT_EQUAL(vn_faulty_inject(f, all[i], NULL), VN_OK);
	const vn_plan *p = vn_faulty_plan(f);
	const vn_node *k = &p->node[p->value[vn_plan_find(p, "layer1.k_rope")].node],
				  *q = &p->node[p->value[vn_plan_find(p, "layer1.q_rope")].node];
	CU_ASSERT(q->x.rope.pairing == VN_PAIR_NEIGHBOURS && k->x.rope.pairing == VN_PAIR_NEIGHBOURS);
	CU_ASSERT(q->c.rope.rope.theta == 1e4 && k->c.rope.rope.theta == 1e6);
	vn_error e;
	CU_ASSERT_EQUAL(vn_faulty_inject(f, "R1@layer1.*", &e), VN_ERR_USAGE); /* it is so already */
	/* Two weights are exchanged once: the second one does not exchange them back. */
	const vn_plan *s = vn_model_plan(m);
	const int      a = vn_plan_find(s, "layer1.q_norm"), b = vn_plan_find(s, "layer1.k_norm");
	CU_ASSERT_EQUAL(p->node[p->value[a].node].w[0], s->node[s->value[b].node].w[0]);
	CU_ASSERT_EQUAL(p->node[p->value[b].node].w[0], s->node[s->value[a].node].w[0]);
	vn_faulty_destroy(f);
	vn_model_close(m);
}

/* Blocks of quantised numbers cannot be read across: the numbers themselves are. */
static void a_quantised_matrix_is_transposed_as_numbers(void)
{
	vn_model  *m = NULL;
	vn_faulty *f = NULL;
	int        blocks = 0;

	CU_ASSERT_EQUAL_FATAL(vn_model_open(VERNIER_SOURCE "/fixtures/gguf/qwen2-wide.mixed.gguf", &m, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(vn_model_plan(m), vn_model_weights(m), &f, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_faulty_inject(f, "W1b@layer0.{k_proj,v_proj,gate_proj,up_proj,down_proj}", NULL), VN_OK);
	for (int i = 0; i < vn_model_plan(m)->n_nodes; i++) {
		const vn_node *a = &vn_model_plan(m)->node[i], *b = &vn_faulty_plan(f)->node[i];
		if (a->op != VN_OP_LINEAR || a->w[0] == b->w[0])
			continue;
		const vn_tensor x = vn_model_weights(m)[a->w[0]], y = vn_faulty_weights(f)[b->w[0]];
		const size_t    n = (size_t)vn_shape_count(&x.shape), all = n * sizeof(float);
		CU_ASSERT(y.shape.dim[0] == x.shape.dim[1] && y.shape.dim[1] == x.shape.dim[0]);
		CU_ASSERT_EQUAL(b->c.linear.transposed, !a->c.linear.transposed);
		if (vn_dtype_block(x.dtype) < 2)
			continue;
		float *numbers = malloc(all);
		CU_ASSERT_PTR_NOT_NULL_FATAL(numbers);
		vn_to_f32(numbers, x.data, x.dtype, n);
		CU_ASSERT_EQUAL_FATAL(y.dtype, VN_F32);
		CU_ASSERT_EQUAL(memcmp(numbers, y.data, all), 0);
		free(numbers);
		blocks++;
	}
	CU_ASSERT(blocks > 0);
	vn_faulty_destroy(f);
	vn_model_close(m);
}

int main(void)
{
	CU_TestInfo tests[] = { TEST(every_fault_has_an_id_of_its_own_and_a_line),
		                    TEST(an_id_without_its_variant_is_the_first_of_them),
		                    TEST(every_mistake_has_an_id_of_its_own_and_faults_come_first),
		                    TEST(every_fault_is_made_where_it_fits_and_refused_elsewhere),
		                    TEST(what_cannot_be_is_refused_by_saying_what_can),
		                    TEST(a_node_that_waits_for_nothing_is_named_once),
		                    TEST(a_sum_of_ranks_is_a_number_and_back),
		                    TEST(a_number_of_ranks_has_to_divide_the_rows),
		                    TEST(faults_add_up),
		                    TEST(a_quantised_matrix_is_transposed_as_numbers),
		                    CU_TEST_INFO_NULL };
	return run_suite("fault", tests);
}
