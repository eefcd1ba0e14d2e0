/* test_sides.c: tests compare/match/sides.c, opening the two sides of a comparison. */
#include "compare/match/sides.h"
#include "tests/support/match_help.h"

static const float              x[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const vn_compare_options none;

/* So many tokens in calls of so many each; the last may be shorter. */
static void record(const char *name, int64_t tokens, int64_t call, int32_t from)
{
	vn_store *s = begin_recording(name, tokens, from, NULL);
	int       number = 0;

	for (int64_t t = 0; t < tokens; t += call) {
		const int64_t n = tokens - t < call ? tokens - t : call;
		begin_step(s, number++, t, n, 0, n);
		put_tensor(s, "embed", "", n, 2, x + 2 * t);
	}
	commit(s);
}

/* Opens ref and the n candidates; the caller closes. */
static vn_status sides(vn_comparison *c, int n, const char *const *cand, int64_t row, vn_error *err)
{
	const vn_sides s = { .ref = at("ref"), .cand = cand, .n_cand = n, .batch_row = row, .ref_batch_row = -1 };
	*c = (vn_comparison) { .opened.request.options = &none };
	return vn_sides_open(&s, &c->opened, &c->result.remarks, err);
}

static void ordinary_recordings_are_opened_as_they_are(void)
{
	vn_comparison c;

	record("ref", 4, 4, 0);
	record("cand", 4, 4, 0);
	CU_ASSERT_EQUAL_FATAL(sides(&c, 1, (const char *[]) { at("cand") }, -1, NULL), VN_OK);
	CU_ASSERT_STRING_EQUAL(vn_recording_path(c.opened.ref), at("ref"));
	CU_ASSERT_STRING_EQUAL(vn_recording_path(c.opened.cand), at("cand"));
	CU_ASSERT_PTR_NULL(c.opened.floor);
	CU_ASSERT_EQUAL(c.result.remarks.notes.n, 0);
	close_sides(&c);
}

static void calls_of_other_lengths_are_one_step(void)
{
	const vn_step *s;
	const void    *data = NULL;
	vn_comparison  c;

	record("ref", 5, 5, 0);
	record("cand", 5, 2, 0);
	CU_ASSERT_EQUAL_FATAL(sides(&c, 1, (const char *[]) { at("cand") }, -1, NULL), VN_OK);
	one_line(
		&c.result.remarks.notes,
		"calls: tokens 0-4 are one call in the reference, calls of 2 + 2 + 1 in the candidate: compared as one step, "
		"0");
	CU_ASSERT_EQUAL(vn_recording_steps(c.opened.cand, &s), 1);
	CU_ASSERT_EQUAL(s->tokens, 5);
	CU_ASSERT_EQUAL_FATAL(vn_recording_calls(c.opened.cand, &s), 3); /* they are still known */
	CU_ASSERT_EQUAL(s[1].position, 2);
	CU_ASSERT_EQUAL(s[2].tokens, 1);
	CU_ASSERT_EQUAL(vn_recording_calls(c.opened.ref, &s), 1);
	const int i = vn_recording_find(c.opened.cand, 0, "embed");
	CU_ASSERT_TRUE_FATAL(i >= 0);
	CU_ASSERT_EQUAL_FATAL(vn_recording_data(c.opened.cand, i, &data, NULL), VN_OK);
	CU_ASSERT_EQUAL(memcmp(data, x, 10 * sizeof *x), 0);
	vn_recording_release(c.opened.cand, i);
	close_sides(&c);
}

/* The last call is the same on both sides. */
static void only_calls_that_are_joined_are_said(void)
{
	vn_comparison c;

	record("ref", 5, 4, 0);
	record("cand", 5, 2, 0);
	CU_ASSERT_EQUAL_FATAL(sides(&c, 1, (const char *[]) { at("cand") }, -1, NULL), VN_OK);
	one_line(
		&c.result.remarks.notes,
		"calls: tokens 0-3 are one call in the reference, calls of 2 + 2 in the candidate: compared as one step, 0");
	close_sides(&c);
}

static void many_calls_are_counted(void)
{
	vn_comparison c;

	record("ref", 6, 6, 0);
	record("cand", 6, 1, 0);
	CU_ASSERT_EQUAL_FATAL(sides(&c, 1, (const char *[]) { at("cand") }, -1, NULL), VN_OK);
	one_line(
		&c.result.remarks.notes,
		"calls: tokens 0-5 are one call in the reference, calls of 1 + 1 + 1 + 1 + ... (6) in the candidate: compared "
		"as one step, 0");
	close_sides(&c);
}

/* Runs that do not end with the same token. */
static void steps_of_other_tokens_are_said(void)
{
	vn_comparison c;

	record("ref", 4, 4, 0);
	record("cand", 3, 3, 0);
	CU_ASSERT_EQUAL_FATAL(sides(&c, 1, (const char *[]) { at("cand") }, -1, NULL), VN_OK);
	one_line(&c.result.remarks.notes,
	         "calls: step 0 has 4 tokens from position 0 in the reference, 3 from position 0 in the candidate: "
	         "calls are joined only if the steps of both recordings hold every token up to the same last one");
	close_sides(&c);
}

static void a_row_of_one_prompt_is_refused(void)
{
	char          want[2 * PATH_MAX];
	vn_comparison c;
	vn_error      err = { "" };

	record("ref", 4, 4, 0);
	record("cand", 4, 4, 0);
	CU_ASSERT_EQUAL(sides(&c, 1, (const char *[]) { at("cand") }, 0, &err), VN_OK); /* its only one */
	close_sides(&c);
	CU_ASSERT_EQUAL(sides(&c, 1, (const char *[]) { at("cand") }, 1, &err), VN_ERR_USAGE);
	snprintf(want, sizeof want, "%s: --batch-row 1, but it holds one prompt", at("cand"));
	CU_ASSERT_STRING_EQUAL(err.text, want);
	close_sides(&c);
}

static void one_file_as_two_ranks_is_refused(void)
{
	char          want[2 * PATH_MAX];
	vn_comparison c;
	vn_error      err = { "" };

	record("ref", 4, 4, 0);
	record("cand", 4, 4, 0);
	CU_ASSERT_EQUAL(sides(&c, 2, (const char *[]) { at("cand"), at("cand") }, -1, &err), VN_ERR_USAGE);
	snprintf(want, sizeof want, "%s: given twice, as rank 0 and as rank 1", at("cand"));
	CU_ASSERT_STRING_EQUAL(err.text, want);
	CU_ASSERT_PTR_NULL(c.opened.ref);
	close_sides(&c);
}

static void a_file_that_is_not_there_leaves_nothing_open(void)
{
	vn_comparison c;
	vn_error      err = { "" };

	record("ref", 4, 4, 0);
	CU_ASSERT_NOT_EQUAL(sides(&c, 1, (const char *[]) { at("none") }, -1, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, at("none")));
	CU_ASSERT_PTR_NULL(c.opened.ref);
	CU_ASSERT_PTR_NULL(c.opened.cand);
	close_sides(&c);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(ordinary_recordings_are_opened_as_they_are),
		TEST(calls_of_other_lengths_are_one_step),
		TEST(only_calls_that_are_joined_are_said),
		TEST(many_calls_are_counted),
		TEST(steps_of_other_tokens_are_said),
		TEST(a_row_of_one_prompt_is_refused),
		TEST(one_file_as_two_ranks_is_refused),
		TEST(a_file_that_is_not_there_leaves_nothing_open),
		CU_TEST_INFO_NULL,
	};

	if (!make_folder())
		return 1;
	const int failed = run_suite("sides", tests);
	return !remove_folder() || failed;
}
