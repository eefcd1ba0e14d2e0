/* test_trace.c: tests compare/replay/trace.c, the operations between a value and captured
 * tensors. */
#include "compare/replay/trace.h"
#include "libref/model/model.h"
#include "tests/support/suite.h"

static vn_model *model;
static vn_trace  t;

static int value(const char *name)
{
	const vn_plan *p = vn_model_plan(model);
	const int      v = vn_plan_find(p, name);
	CU_ASSERT_FATAL(v >= 0);
	return vn_plan_root(p, v);
}

static int span(int step, const char *name, int *charged_to)
{
	int nodes = 0;
	vn_trace_span(&t, step, value(name), &nodes, charged_to);
	return nodes;
}

static void begin(int steps)
{
	CU_ASSERT_EQUAL_FATAL(vn_trace_init(&t, vn_model_plan(model), steps, NULL), VN_OK);
}

static void a_captured_input_ends_the_span(void)
{
	int charged_to;

	begin(1);
	vn_trace_keep(&t, 0, value("layer0.attn_norm"), VN_KEPT_ALL);
	CU_ASSERT_EQUAL(vn_trace_kept(&t, 0, value("layer0.attn_norm")), VN_KEPT_ALL);
	CU_ASSERT_EQUAL(span(0, "layer0.q_proj", &charged_to), 1);
	CU_ASSERT_EQUAL(charged_to, -1);
	CU_ASSERT_EQUAL(span(0, "layer0.q_rope", &charged_to), 2); /* q_proj was not captured */
	vn_trace_keep(&t, 0, value("layer0.q_proj"), VN_KEPT_ALL);
	CU_ASSERT_EQUAL(span(0, "layer0.q_rope", &charged_to), 1);
	vn_trace_finish(&t);
}

static void a_span_is_charged_once(void)
{
	int charged_to;

	begin(1);
	vn_trace_keep(&t, 0, value("layer0.attn_norm"), VN_KEPT_ALL);
	span(0, "layer0.q_rope", &charged_to);
	CU_ASSERT_EQUAL(charged_to, -1);
	vn_trace_charge(&t, 17);
	span(0, "layer0.q_proj", &charged_to);
	CU_ASSERT_EQUAL(charged_to, 17);
	span(0, "layer0.k_rope", &charged_to); /* of other operations */
	CU_ASSERT_EQUAL(charged_to, -1);
	vn_trace_finish(&t);
}

/* Attention in a later step reads all keys, so captured rows of only some tokens are not enough. */
static void keys_of_earlier_steps_are_part_of_it(void)
{
	static const char *const name[] = { "layer0.q_rope", "layer0.k_rope", "layer0.v_proj" };
	int                      charged_to;

	begin(2);
	for (int i = 0; i < 3; i++)
		vn_trace_keep(&t, 1, value(name[i]), VN_KEPT_ALL);
	const int open = span(1, "layer0.attn_context", &charged_to);
	CU_ASSERT(open > 1); /* the keys and values of step 0 */
	for (int i = 0; i < 3; i++)
		vn_trace_keep(&t, 0, value(name[i]), VN_KEPT_ROWS);
	CU_ASSERT(span(1, "layer0.attn_context", &charged_to) > 1);
	for (int i = 0; i < 3; i++)
		vn_trace_keep(&t, 0, value(name[i]), VN_KEPT_ALL);
	CU_ASSERT_EQUAL(span(1, "layer0.attn_context", &charged_to), 1);
	vn_trace_finish(&t);
}

static void steps_without_number_are_refused(void)
{
	vn_error err = { "" };
	CU_ASSERT_EQUAL(vn_trace_init(&t, vn_model_plan(model), 1 << 30, &err), VN_ERR_UNSUPPORTED);
	vn_trace_finish(&t);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_captured_input_ends_the_span),
		TEST(a_span_is_charged_once),
		TEST(keys_of_earlier_steps_are_part_of_it),
		TEST(steps_without_number_are_refused),
		CU_TEST_INFO_NULL,
	};
	if (vn_model_open(VERNIER_SOURCE "/fixtures/llama-trained", &model, NULL))
		return 1;
	const int failed = run_suite("trace", tests);
	vn_model_close(model);
	return failed;
}
