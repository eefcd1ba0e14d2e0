/* test_recompute_touched.c: tests compare/replay/recompute_touched.c. */
#include "tests/support/explain_help.h"

#include "compare/replay/recompute_internal.h"

#include <math.h>

/* Can the fault be made at the checkpoint, and is the plan with it recognised as different? */
static bool is_touched(explained *e, int fault, const char *name, int *tried)
{
	vn_faulty *f = NULL;
	char       what[VN_NAME_MAX + 32];
	bool       yes = true;

	snprintf(what, sizeof what, "%s@%s", vn_fault_id(fault), name);
	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(e->t.site->plan, e->t.site->weights, &f, &e->err), VN_OK);
	if (!vn_faulty_inject(f, what, &e->err)) {
		++*tried;
		yes = vn_recompute_touched(e->t.recompute, vn_faulty_plan(f), vn_faulty_weights(f));
	}
	vn_faulty_destroy(f);
	return yes;
}

static void every_fault_at_a_checkpoint_makes_it_another(void)
{
	const int on_gpu_alone = vn_fault_find("P9.barrier");
	explained e;
	int       tried = 0, missed = 0;

	compare_llama(&e, NULL);
	stand_at(&e, "layer1.q_rope", 0);
	const vn_comparison *c = &e.compared.c;
	for (int i = 0; i < c->result.checkpoints.n; i++) {
		const vn_plan *p = e.t.site->plan;
		const int      node = node_named(&e, c->result.checkpoints.of[i].name);
		/* A fault of the recording is one of its node's first value. */
		if (c->result.checkpoints.of[i].step > 0 || node < 0 || p->node[node].layer != 1 ||
		    strcmp(p->value[p->node[node].out[0]].name, c->result.checkpoints.of[i].name) != 0)
			continue;
		CU_ASSERT_EQUAL_FATAL(vn_recompute_at(e.t.recompute, i, &e.err), VN_OK);
		for (int fault = 0; fault < vn_n_faults(); fault++)
			if (fault != on_gpu_alone && !vn_fault_why_not(fault, p, node) &&
			    !is_touched(&e, fault, c->result.checkpoints.of[i].name, &tried)) {
				missed++;
				fprintf(stderr, "%s at %s changes nothing\n", vn_fault_id(fault), c->result.checkpoints.of[i].name);
			}
	}
	CU_ASSERT_EQUAL(missed, 0);
	CU_ASSERT_TRUE(tried > 300);
	end_explained(&e);
}

static void the_model_s_own_plan_changes_nothing(void)
{
	explained  e;
	vn_faulty *f = NULL;

	compare_llama(&e, NULL);
	stand_at(&e, "layer1.attn_context", 0);
	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(e.t.site->plan, e.t.site->weights, &f, &e.err), VN_OK);
	CU_ASSERT_FALSE(vn_recompute_touched(e.t.recompute, vn_faulty_plan(f), vn_faulty_weights(f)));
	vn_faulty_destroy(f);
	end_explained(&e);
}

/* The logits by a plan with a fault; the caller frees them. */
static float *logits_with(explained *e, const char *what)
{
	vn_faulty *f = NULL;
	vn_tensor  out = { 0 };

	CU_ASSERT_EQUAL_FATAL(vn_faulty_create(e->t.site->plan, e->t.site->weights, &f, &e->err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_faulty_inject(f, what, &e->err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(
		vn_recompute_run(e->t.recompute, vn_faulty_plan(f), vn_faulty_weights(f), VN_OWN_WIDTH, &out, &e->err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(out.dtype, VN_F32);
	vn_faulty_destroy(f);
	return (float *)(uintptr_t)out.data;
}

/* A fault that only changes the finished logits does not compute their product again; other weights
 * do. */
static void plans_that_go_on_with_the_checkpoint_share_it(void)
{
	explained e;

	compare_llama(&e, NULL);
	stand_at(&e, "logits", 0);
	float *capped = logits_with(&e, "M9.cap@logits");
	float *other = logits_with(&e, "W12@logits");
	float *kept = e.t.recompute->w[VN_OWN_WIDTH].unmodified[e.t.site->target];
	CU_ASSERT_PTR_NOT_NULL_FATAL(kept);
	CU_ASSERT_DOUBLE_EQUAL(capped[0], 30 * tanh((double)kept[0] / 30), 1e-5);
	kept[0] = 60;
	float *again = logits_with(&e, "M9.cap@logits"), *other_again = logits_with(&e, "W12@logits");
	CU_ASSERT_DOUBLE_EQUAL(again[0], 30 * tanh(2.0), 1e-5);
	CU_ASSERT_EQUAL(again[1], capped[1]);
	CU_ASSERT_EQUAL(other_again[0], other[0]);
	free(capped);
	free(other);
	free(again);
	free(other_again);
	end_explained(&e);
}

/* Is the context recognised as the unmodified plan's with this window of its attention? */
static bool context_is_same(explained *e, int window)
{
	const int         node = node_named(e, "layer1.attn_context"), value = e->t.site->plan->node[node].out[0];
	vn_plan          *plan;
	vn_recompute_plan r;
	const void       *data;

	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(e->t.site->plan, &plan, &e->err), VN_OK);
	plan->node[node].c.attention.window = window;
	CU_ASSERT_TRUE(vn_recompute_touched(e->t.recompute, plan, e->t.site->weights));
	vn_recompute_begin(&r, e->t.recompute, plan, e->t.site->weights, &e->t.recompute->w[VN_OWN_WIDTH]);
	CU_ASSERT_EQUAL_FATAL(vn_recompute_value(&r, value, &data, &e->err), VN_OK);
	const bool same = !vn_recompute_is_touched(&r, value);
	CU_ASSERT_EQUAL(same, data == r.w->unmodified[value]);
	vn_recompute_end(&r);
	vn_plan_destroy(plan);
	return same;
}

/* What follows a change that changes no number is not computed again. */
static void a_window_longer_than_the_text_changes_nothing(void)
{
	enum { WORDS = 16, SIZE = 48 };
	static float input[WORDS * SIZE], out[WORDS * SIZE];
	const given  of[] = { { "layer0.output", input }, { "layer1.attn_out", out } };
	vn_tensor    z;
	explained    e;

	for (int i = 0; i < WORDS * SIZE; i++) {
		input[i] = (float)sin(i * 1.7 + i / SIZE);
		out[i] = (float)cos(i * 2.3);
	}
	compare_given(&e, WORDS, 0, of, 2);
	stand_at(&e, "layer1.attn_out", 0);
	CU_ASSERT_EQUAL_FATAL(vn_recompute_run(e.t.recompute, e.t.site->plan, e.t.site->weights, VN_OWN_WIDTH, &z, &e.err),
	                      VN_OK);
	vn_tensor_free(&z);
	CU_ASSERT_TRUE(context_is_same(&e, 100));
	CU_ASSERT_FALSE(context_is_same(&e, 2));
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = { TEST(a_window_longer_than_the_text_changes_nothing),
		                    TEST(every_fault_at_a_checkpoint_makes_it_another),
		                    TEST(the_model_s_own_plan_changes_nothing),
		                    TEST(plans_that_go_on_with_the_checkpoint_share_it), CU_TEST_INFO_NULL };
	if (!make_folder())
		return 1;
	const int failed = run_suite("recompute_touched", tests);
	return !remove_folder() || failed;
}
