/* test_catalogue.c: tests compare/trial/catalogue.c. */
#include "compare/trial/catalogue.h"
#include "tests/support/attention_help.h"

/* layer1.q_rope of the llama. */
enum { CALL = 12, S = CALL + 1 };

static float x[S * H * K], y[S * H * K];

/* neighbours: columns 2i and 2i + 1 are a pair. */
static void rotate(double theta, bool neighbours)
{
	for (int i = 0; i < S * H * K; i++)
		y[i] = x[i] = given_number(i, 1);
	for (int i = 0; i < S * H; i++) {
		float row[K];
		for (int d = 0; d < K; d++)
			row[d] = y[i * K + (neighbours ? d % (K / 2) * 2 + d / (K / 2) : d)];
		rotate_row(row, i / H, theta);
		for (int d = 0; d < K; d++)
			y[i * K + (neighbours ? d % (K / 2) * 2 + d / (K / 2) : d)] = row[d];
	}
}

static void stand_with(explained *e, int step)
{
	const given of[] = { { "layer1.q_proj", x }, { "layer1.q_rope", y } };

	compare_given(e, CALL, 1, of, 2);
	stand_at(e, "layer1.q_rope", step);
}

static bool is_fault(const vn_trial *h, const char *want)
{
	char id[VN_ID];
	return strcmp(vn_trial_id(h, id), want) == 0;
}

static void a_fault_is_found_by_its_numbers(void)
{
	explained e;
	int       tried;

	rotate(500000, true);
	stand_with(&e, 0);
	CU_ASSERT_EQUAL((vn_catalogue(&e.t, NULL), e.failed.st), VN_OK);
	vn_case_conclude(&e.t);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_TRUE(is_fault(&h, "R1"));
	CU_ASSERT_EQUAL(h.node, node_named(&e, "layer1.q_rope"));
	CU_ASSERT_EQUAL(e.x.n_alias, 1);
	CU_ASSERT_TRUE((tried = e.x.n_tried) > 20);
	end_explained(&e);

	/* and where only its answer is wanted, that and the runner-up are tried */
	rotate(500000, true);
	stand_with(&e, 0);
	vn_trial          by[2] = { h, { .fault = { 1 + vn_fault_find("R12") } } };
	const vn_findings only = { .by = by, .n = 2, .n_alias = 1 };
	CU_ASSERT_EQUAL((vn_catalogue(&e.t, &only), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(e.x.n_tried, 2);
	CU_ASSERT_EQUAL(e.x.n, 2);
	CU_ASSERT_TRUE(is_fault(&e.x.by[0], "R1") && is_fault(&e.x.by[1], "R12"));
	end_explained(&e);
}

static void faults_of_one_operation_are_tried_there(void)
{
	explained e;

	rotate(500000, true);
	stand_with(&e, 0);
	CU_ASSERT_EQUAL((vn_catalogue_at(&e.t, node_named(&e, "layer1.q_rope")), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_TRUE(is_fault(&h, "R1"));
	end_explained(&e);
	stand_with(&e, 0);
	CU_ASSERT_EQUAL((vn_catalogue_at(&e.t, node_named(&e, "layer1.down_proj")), e.failed.st), VN_OK);
	CU_ASSERT_FALSE(vn_case_answered(&e.t)); /* what comes behind it changes nothing here */
	end_explained(&e);
}

static void two_faults_at_one_operation_are_found_together(void)
{
	explained e;

	rotate(10000, true);
	stand_with(&e, 0);
	CU_ASSERT_EQUAL((vn_catalogue(&e.t, NULL), e.failed.st), VN_OK);
	CU_ASSERT_FALSE(vn_case_answered(&e.t));
	CU_ASSERT_TRUE(vn_catalogue_has_pairs(&e.t));
	CU_ASSERT_EQUAL((vn_catalogue_pairs(&e.t), e.failed.st), VN_OK);
	const vn_trial h = answer_of(&e);
	CU_ASSERT_TRUE(is_fault(&h, "R1+R2.1e4") || is_fault(&h, "R2.1e4+R1"));
	e.t.brief = true;
	CU_ASSERT_FALSE(vn_catalogue_has_pairs(&e.t));
	end_explained(&e);
}

/* A reader that is right with what was recorded shows that the run consumed it. */
static void readers_tell_what_the_run_consumed(void)
{
	const given plain[] = { { "layer1.q_proj", x }, { "layer1.q_rope", y } };
	explained   e;

	rotate(500000, false);
	compare_given(&e, CALL, 0, plain, 2);
	stand_at(&e, "layer1.q_proj", 0);
	CU_ASSERT_TRUE(vn_case_consumed_as_recorded(&e.t));
	CU_ASSERT_EQUAL(vn_case_consumed(&e.t), VN_CONSUMED_AS_RECORDED);
	end_explained(&e);
	rotate(500000, true); /* its only reader is wrong */
	compare_given(&e, CALL, 0, plain, 2);
	stand_at(&e, "layer1.q_proj", 0);
	CU_ASSERT_FALSE(vn_case_consumed_as_recorded(&e.t));
	CU_ASSERT_EQUAL(vn_case_consumed(&e.t), VN_CONSUMED_UNKNOWN);
	e.compared.c.result.checkpoints.of[e.x.checkpoint].replay.recorder_fault = true;
	CU_ASSERT_EQUAL(vn_case_consumed(&e.t), VN_CONSUMED_OTHERS);
	end_explained(&e);
}

/* In a step of one token, a mask that hides the query's own key has the effect of a cache that does
 * not hold it yet. */
static void what_does_the_same_is_added(void)
{
	explained e;
	bool      mask = false, cache = false;

	make_up_inputs();
	attend_all(&(mistake) { 0 }, 0, CALL);
	attend_all(&(mistake) { .first = 0, .last = CALL - 1 }, CALL, S);
	stand_at_context(&e, CALL, 1, 1);
	CU_ASSERT_EQUAL((vn_catalogue(&e.t, NULL), e.failed.st), VN_OK);
	vn_case_conclude(&e.t);
	CU_ASSERT_EQUAL((vn_catalogue_alike(&e.t), e.failed.st), VN_OK);
	for (int i = 0; i < e.x.n_alias; i++) {
		mask = mask || is_fault(&e.x.by[i], "A3.strict");
		cache = cache || e.x.by[i].finding == VN_FINDING_OWN_KEY_MISSING;
	}
	CU_ASSERT_TRUE(mask);
	CU_ASSERT_TRUE(cache);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_fault_is_found_by_its_numbers),
		TEST(faults_of_one_operation_are_tried_there),
		TEST(two_faults_at_one_operation_are_found_together),
		TEST(readers_tell_what_the_run_consumed),
		TEST(what_does_the_same_is_added),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("catalogue", tests);
	return !remove_folder() || failed;
}
