/* test_sentences_result.c: tests compare/explain/sentences_result.c. */
#include "compare/explain/sentence_writers.h"
#include "compare/explain/cache_slots.h"
#include "compare/rearrange/rearranged.h"
#include "libref/plan/fault.h"
#include "tests/support/suite.h"

#include <string.h>

/* A comparison of one checkpoint, and the plan of one attention that makes it. */
static vn_checkpoint point = { .name = "attn_context" };
static vn_value      value[] = { { .name = "attn_context" } };
static vn_node       node = { .op = VN_OP_ATTENTION };

/* The functions of findings.def, by finding. */
static vn_sentence_writer *const writers[VN_N_FINDINGS] = {
#define FINDING(name, ...)
#define SAID(name, mistake, digits, say) [VN_FINDING_##name] = vn_sentence_##say,
#include "compare/trial/findings.def"
};

/* A trial is told in these words. */
static void says(vn_trial h, const char *want)
{
	const vn_plan       p = { .n_nodes = 1, .node = &node, .n_values = 1, .value = value };
	const vn_comparison c = { .result = { .checkpoints = { .of = &point, .n = 1 } } };
	const vn_findings   x = { .checkpoint = 0 };
	char                text[200] = "";

	writers[h.finding](&(vn_sentence) { &c.opened, &c.result, &x, &p, &h, text, sizeof text });
	CU_ASSERT_STRING_EQUAL(text, want);
}

static vn_trial result(vn_finding finding, int n, const int *list)
{
	vn_trial h = { .finding = finding, .applied = { .kind = VN_BY_RESULT, .result.n = n } };

	memcpy(h.applied.result.list, list, (size_t)n * sizeof *list);
	return h;
}

/* Columns of heads are those of the whole product. */
static void columns_of_another_order_are_told(void)
{
	const int list[] = { 0, 2, 45, 1 };
	vn_trial  h = result(VN_FINDING_AXIS_REORDERED, 4, list);

	h.applied.result.number = 1;
	says(h, "columns 0-2 hold columns 45-47");
	value[0].rank = 3;
	says(h, "of the product (heads x dim): columns 0-2 hold columns 45-47");
	value[0].rank = 0;
}

static void slots_of_a_cache_are_told(void)
{
	says((vn_trial) { .finding = VN_FINDING_NEW_SLOTS_MOVED, .applied.slots = { .by = -1, .newest = true } },
	     "the newest tokens are written 1 slot before their own, so a slot that is read was never written");
	says((vn_trial) { .finding = VN_FINDING_NEW_SLOTS_MOVED, .applied.slots = { .by = 1, .of = 2 } },
	     "values of tokens after the first call are written 1 slot after their own, so a slot that is read was never "
	     "written");
	says((vn_trial) { .finding = VN_FINDING_KEYS_UNSEEN, .applied.cached = { .first = 3, .n = 2 } },
	     "keys 3-4 are not seen: masked, evicted, or overwritten with keys that no query attends to");
	says(
		(vn_trial) { .finding = VN_FINDING_CACHE_ONE_ALONE, .applied.one_cached = { .slot = 3, .of = 1, .holds = 64 } },
		"the cache holds the key of token 64 in place of token 3's; token 3's value is right");
	says((vn_trial) { .finding = VN_FINDING_CACHE_ONE_ALONE,
	                  .applied.one_cached = { .slot = 3, .of = 2, .holds = VN_HOLDS_UNKNOWN } },
	     "the cache holds an unknown value in place of token 3's: stale or overwritten; token 3's key is right");
}

/* A sum of those of 4 ranks that are in the mask. A few present ranks are listed; else the missing
 * ones. */
static void ranks_are_listed_from_the_shorter_side(void)
{
	vn_trial h = { .finding = VN_FINDING_RANKS_SUMMED, .applied = { .kind = VN_BY_NUMBER } };

	h.applied.number.value = 4 + (double)VN_RANKS_MOST * 2; /* rank 1 */
	says(h, "the part of rank 1 of 4, not the sum");
	h.applied.number.value = -(4 + (double)VN_RANKS_MOST * 7); /* all but rank 3 */
	says(h, "the sum without the part of rank 3 of 4, and no bias");
}

static void rows_and_channels_are_runs(void)
{
	vn_trial h = result(VN_FINDING_CHANNELS_ZERO, 2, (const int[]) { 0, 7 });

	says(result(VN_FINDING_PARTLY_ZERO, 4, (const int[]) { 3, 5, 9, 9 }), "partly written: tokens 3-5, 9 are 0");
	h.applied.result.more = true;
	h.applied.result.number = 48;
	says(h, "channels 0-7... of 48 are 0 in every token");
	h.applied.result.more = false;
	h.applied.result.number = 48;
	says(h, "channels 0-7 of 48 are 0 in every token");
	h = result(VN_FINDING_CHANNELS_ZERO, 2, (const int[]) { 7, 7 });
	h.applied.result.number = 48;
	says(h, "channel 7 of 48 is 0 in every token");
}

static void a_factor_has_its_name(void)
{
	vn_trial h = { .finding = VN_FINDING_FACTOR,
		           .applied = { .kind = VN_BY_RESULT, .result = { .number = 0.5, .factor = VN_OVER_QUERY_HEADS } } };

	says(h, "every element is multiplied by 0.5, which is 1 / query heads per key head");
	h.applied.result.factor = VN_NO_NAME;
	says(h, "every element is multiplied by 0.5");
	h.applied.result.measured = 0.50123;
	h.applied.result.within = 0.004;
	says(h, "every element is multiplied by 0.50123 +- 0.004");
	h.applied.result.factor = VN_OVER_QUERY_HEADS;
	says(h, "every element is multiplied by 0.50123 +- 0.004, in which 1 / query heads per key head = 0.5 lies");
	h.finding = VN_FINDING_CLAMPED;
	h.applied.result.clamp = VN_CLAMP_BOTH;
	h.applied.result.number = 100;
	says(h, "clamped: numbers beyond +-100 are set to this bound");
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(columns_of_another_order_are_told),
		TEST(slots_of_a_cache_are_told),
		TEST(ranks_are_listed_from_the_shorter_side),
		TEST(rows_and_channels_are_runs),
		TEST(a_factor_has_its_name),
		CU_TEST_INFO_NULL,
	};
	return run_suite("sentences_result", tests);
}
