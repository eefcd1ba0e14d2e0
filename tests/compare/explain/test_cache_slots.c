/* test_cache_slots.c: tests compare/explain/cache_slots.c. */
#include "compare/explain/cache_slots.h"
#include "tests/support/explain_help.h"

#include <math.h>

/* layer1.attn_context of the llama: a prompt of twelve tokens and one step. */
enum { CALL = 12, S = CALL + 1, H = 6, G = 2, K = 8 };

static float q[S * H * K], k[S * G * K], v[S * G * K], context[S * H * K];

/* What the slots of earlier tokens hold when the last token reads them. */
typedef struct slots {
	int  key[S], value[S]; /* of which token; -1: zeros */
	bool seen[S];
} slots;

static slots correct_slots(void)
{
	slots s;
	for (int j = 0; j < S; j++) {
		s.key[j] = s.value[j] = j;
		s.seen[j] = true;
	}
	return s;
}

static double dot(int t, int h, int key)
{
	double sum = 0;
	for (int d = 0; key >= 0 && d < K; d++)
		sum += (double)q[(t * H + h) * K + d] * (double)k[(key * G + h / (H / G)) * K + d];
	return sum / sqrt(K);
}

static void attend(int t, int h, const slots *s)
{
	double weight[S], sum = 0;

	for (int j = 0; j <= t; j++)
		sum += weight[j] = s->seen[j] ? exp(dot(t, h, s->key[j])) : 0;
	for (int d = 0; d < K; d++) {
		double y = 0;
		for (int j = 0; j <= t; j++)
			y += s->value[j] < 0 ? 0 : weight[j] * (double)v[(s->value[j] * G + h / (H / G)) * K + d];
		context[(t * H + h) * K + d] = (float)(y / sum);
	}
}

static float number(int i, int seed)
{
	return (float)((i * 7919 + seed * 104729) % 2003) / 1000 - 1;
}

/* Explains the step that read these slots. Returns how many answers are kept; *best: the first. */
static int explained_as(const slots *last, vn_trial *best)
{
	const given of[] = {
		{ "layer1.q_rope", q }, { "layer1.k_rope", k }, { "layer1.v_proj", v }, { "layer1.attn_context", context }
	};
	const slots  plain = correct_slots();
	vn_findings *x;
	explained    e;

	for (int i = 0; i < S * H * K; i++)
		q[i] = 2 * number(i, 1);
	for (int i = 0; i < S * G * K; i++) {
		k[i] = number(i, 2);
		v[i] = number(i, 3);
	}
	for (int t = 0; t < S; t++)
		for (int h = 0; h < H; h++)
			attend(t, h, t == CALL ? last : &plain);
	compare_given(&e, CALL, 1, of, 4);
	stand_at(&e, "layer1.attn_context", 1);
	x = &e.x;
	CU_ASSERT_EQUAL((vn_explain_cache_slots(&e.t, &x, 1), e.failed.st), VN_OK);
	const int n = e.x.n;
	*best = n ? e.x.by[0] : (vn_trial) { 0 };
	end_explained(&e);
	return n;
}

static void expect_slots(const slots *s, vn_finding finding, int from, int n, int held)
{
	vn_trial h;

	CU_ASSERT_FATAL(explained_as(s, &h) > 0);
	CU_ASSERT_TRUE(h.limit_fraction <= 1);
	CU_ASSERT_EQUAL(h.finding, finding);
	CU_ASSERT_EQUAL(h.applied.cached.first, from);
	CU_ASSERT_EQUAL(h.applied.cached.n, n);
	CU_ASSERT_EQUAL(h.applied.cached.holds, held);
	CU_ASSERT_EQUAL(h.applied.cached.others, 0); /* no other fits as well */
}

static void slots_of_zeros_are_found(void)
{
	slots s = correct_slots();

	for (int j = 4; j < 8; j++)
		s.key[j] = s.value[j] = -1;
	expect_slots(&s, VN_FINDING_CACHE_EMPTY, 4, 4, VN_HOLDS_NOTHING);
	s = correct_slots();
	for (int j = 4; j < 8; j++)
		s.value[j] = -1;
	expect_slots(&s, VN_FINDING_CACHE_EMPTY, 4, 4, VN_HOLDS_NO_VALUES);
	s = correct_slots();
	s.key[9] = -1;
	expect_slots(&s, VN_FINDING_CACHE_EMPTY, 9, 1, VN_HOLDS_NO_KEYS);
}

static void slots_of_other_tokens_are_found(void)
{
	slots s = correct_slots();

	for (int j = 4; j < 8; j++)
		s.key[j] = s.value[j] = j + 4;
	expect_slots(&s, VN_FINDING_CACHE_OTHER_TOKENS, 4, 4, 8);
	s = correct_slots();
	s.key[6] = s.value[6] = 2;
	expect_slots(&s, VN_FINDING_CACHE_OTHER_TOKENS, 6, 1, 2);
}

/* Of any length, wherever they begin. */
static void slots_that_are_not_seen_are_found(void)
{
	slots s = correct_slots();

	for (int j = 3; j < 8; j++)
		s.seen[j] = false;
	expect_slots(&s, VN_FINDING_KEYS_UNSEEN, 3, 5, VN_HOLDS_UNSEEN);
}

static void a_correct_step_has_none(void)
{
	const slots s = correct_slots();
	vn_trial    h;

	CU_ASSERT_EQUAL(explained_as(&s, &h), 0);
}

/* An error in the first call is not one of the cache. */
static void a_step_without_a_cache_is_left_alone(void)
{
	vn_findings *x;
	explained    e;

	compare_llama(&e, "A1.missing@layer1.attn_context");
	stand_at(&e, "layer1.attn_context", 0);
	CU_ASSERT_TRUE(e.x.unmodified.limit_fraction > 1000);
	x = &e.x;
	CU_ASSERT_EQUAL((vn_explain_cache_slots(&e.t, &x, 1), e.failed.st), VN_OK);
	CU_ASSERT_EQUAL(e.x.n, 0);
	end_explained(&e);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(slots_of_zeros_are_found),
		TEST(slots_of_other_tokens_are_found),
		TEST(slots_that_are_not_seen_are_found),
		TEST(a_correct_step_has_none),
		TEST(a_step_without_a_cache_is_left_alone),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("cache slots", tests);
	return !remove_folder() || failed;
}
