/* test_recompute_variant.c: tests compare/replay/recompute_variant.c. */
#include "tests/support/explain_help.h"

#include "compare/replay/recompute_internal.h"
#include "compare/replay/reference_variants.h"

#include <math.h>

/* A fault changes more than this many times what another implementation does, as a square. */
#define CLEAR 1e4

static double apart(const vn_tensor *a, const vn_tensor *b)
{
	double sum = 0;

	for (int64_t i = 0; i < vn_shape_count(&a->shape); i++) {
		const double d = vn_tensor_number(a, i) - vn_tensor_number(b, i);
		sum += d * d;
	}
	return sum;
}

static vn_tensor with_variant(explained *e, const vn_plan *p, const vn_tensor *weights, int i)
{
	vn_tensor z = { 0 };

	CU_ASSERT_EQUAL_FATAL(vn_recompute_run_variant(e->t.recompute, p, weights, i, &z, &e->err), VN_OK);
	return z;
}

/* How many implementations lose the fault at the node. */
static int count_lost(explained *e, const char *what, int node, int *tried)
{
	const vn_plan *p = e->t.site->plan;
	const int      value = p->node[node].out[0];
	vn_faulty     *f = NULL;
	vn_tensor      own = { 0 };
	int            lost = 0;

	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(p, e->t.site->weights, &f, &e->err), VN_OK);
	if (!vn_faulty_inject(f, what, &e->err)) {
		const vn_plan   *with = vn_faulty_plan(f);
		const vn_tensor *w = vn_faulty_weights(f);
		const vn_policy  policy = e->t.opened->policy;
		const int        n = vn_reference_variants_count(&with->node[with->value[value].node], policy);
		CU_ASSERT_EQUAL_FATAL(vn_recompute_run(e->t.recompute, with, w, VN_OWN_WIDTH, &own, &e->err), VN_OK);
		const double changed = apart(&own, &e->t.own);
		for (int i = 0; i < n && isfinite(changed); i++) {
			vn_tensor z = with_variant(e, with, w, i), correct = with_variant(e, p, e->t.site->weights, i);
			if (changed > CLEAR * apart(&correct, &e->t.own)) {
				++*tried;
				if (!(apart(&z, &own) < changed / 2)) {
					fprintf(stderr, "%s in implementation %d is lost\n", what, i);
					lost++;
				}
			}
			vn_tensor_free(&z);
			vn_tensor_free(&correct);
		}
		vn_tensor_free(&own);
	}
	vn_faulty_destroy(f);
	return lost;
}

/* The floor of a mistake is what other correct implementations make with the mistake. */
static void every_implementation_keeps_every_mistake(const char *precision, int step, int least)
{
	explained e = { .compared.o = { .model = LLAMA, .replay = VN_REPLAY_SAME, .threads = 1 } };
	int       tried = 0, lost = 0;

	CU_ASSERT_EQUAL_FATAL(record_llama_in(precision, "run.h5", NULL, &e.err), VN_OK);
	judge(&e.compared, "run.h5", "run.h5", NULL, LOOSE);
	CU_ASSERT_EQUAL_FATAL(e.compared.st, VN_OK);
	const vn_result *r = &e.compared.c.result;
	for (int i = 0; i < r->checkpoints.n; i++) {
		const vn_checkpoint *c = &r->checkpoints.of[i];
		char                 what[VN_NAME_MAX + 32];
		if (c->step != step || strncmp(c->name, "layer1.", 7) != 0)
			continue;
		stand_at(&e, c->name, step);
		const vn_plan *p = e.t.site->plan;
		const int      node = node_named(&e, c->name);
		for (int f = 0; f < vn_n_faults(); f++) {
			if (strcmp(p->value[p->node[node].out[0]].name, c->name) != 0 || vn_fault_why_not(f, p, node))
				continue;
			snprintf(what, sizeof what, "%s@%s", vn_fault_id(f), c->name);
			lost += count_lost(&e, what, node, &tried);
		}
		leave_stand(&e);
	}
	CU_ASSERT_EQUAL(lost, 0);
	CU_ASSERT_TRUE(tried >= least);
	finish(&e.compared);
}

static void in_float32(void)
{
	every_implementation_keeps_every_mistake("f32", 0, 100);
}

static void in_bfloat16(void)
{
	every_implementation_keeps_every_mistake("bf16", 0, 50);
}

static void in_later_calls(void)
{
	every_implementation_keeps_every_mistake("f32", 2, 50);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(in_float32),
		TEST(in_bfloat16),
		TEST(in_later_calls),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("recompute variant", tests);
	return !remove_folder() || failed;
}
