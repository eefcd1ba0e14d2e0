/* test_match.c: tests compare/match/match.c, which tensors of two recordings are one checkpoint. */
#include "compare/match/match.h"
#include "tests/support/matched_help.h"

enum { T = 3, D = 4 };

static const float x[T * 2 * D] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

/* One recording of three tokens, with these tensors of T rows. */
static void record(const char *name, const char *const *tensor, int n)
{
	vn_store *s = begin_recording(name, T, 0, NULL);

	begin_step(s, 0, 0, T, 0, T);
	for (int i = 0; i < n; i++)
		put_tensor(s, tensor[i], "", T, D, x);
	commit(s);
}

static void names_are_paired_and_what_has_no_partner_fails(void)
{
	matched m = { .o = { .threads = 1 } };

	record("a.h5", (const char *const[]) { "embed", "layer0.attn_norm", "final_norm" }, 3);
	record("b.h5", (const char *const[]) { "final_norm", "embed", "layer0.output" }, 3);
	match_files(&m, "a.h5", "b.h5");
	CU_ASSERT_EQUAL_FATAL(m.st, VN_OK);
	CU_ASSERT_EQUAL(m.c.result.checkpoints.n, 4);
	CU_ASSERT_TRUE(matched_as(&m, "embed")->ref == 0 && matched_as(&m, "embed")->cand >= 0 &&
	               !matched_as(&m, "embed")->fails);
	CU_ASSERT_STRING_EQUAL(vn_recording_entry(m.c.opened.cand, matched_as(&m, "embed")->cand)->name, "embed");
	CU_ASSERT_FALSE(matched_as(&m, "final_norm")->fails);
	const vn_checkpoint *gone = matched_as(&m, "layer0.attn_norm"), *more = matched_as(&m, "layer0.output");
	CU_ASSERT_TRUE(gone->status == VN_MISSING && gone->fails && gone->cand < 0);
	CU_ASSERT_STRING_EQUAL(gone->detail, "not in the candidate");
	CU_ASSERT_TRUE(more->status == VN_EXTRA && more->fails && more->ref < 0);
	CU_ASSERT_STRING_EQUAL(more->detail, "not in the reference");
	CU_ASSERT_PTR_EQUAL(more, &m.c.result.checkpoints.of[3]); /* extras stand last */
	end_matched(&m);
	m = (matched) { .o = { .threads = 1, .allow = VN_ALLOW_MISSING | VN_ALLOW_EXTRA } };
	match_files(&m, "a.h5", "b.h5");
	CU_ASSERT_TRUE(!matched_as(&m, "layer0.attn_norm")->fails && !matched_as(&m, "layer0.output")->fails);
	CU_ASSERT_STRING_EQUAL(matched_as(&m, "layer0.output")->detail, "not in the reference (allowed)");
	end_matched(&m);
}

static void patterns_select_and_must_select_something(void)
{
	static const char *const some[] = { "layer*.attn_norm", "embed" }, *const none[] = { "layer9.*" };
	matched m = { .o = { .points = some, .n_points = 2, .threads = 1 } };

	record("a.h5", (const char *const[]) { "embed", "layer0.attn_norm", "final_norm" }, 3);
	record("b.h5", (const char *const[]) { "embed", "layer0.attn_norm", "final_norm" }, 3);
	match_files(&m, "a.h5", "b.h5");
	CU_ASSERT_EQUAL(m.st, VN_OK);
	CU_ASSERT_EQUAL(m.c.result.checkpoints.n, 2);
	end_matched(&m);
	m = (matched) { .o = { .points = none, .n_points = 1, .threads = 1 } };
	match_files(&m, "a.h5", "b.h5");
	CU_ASSERT_EQUAL(m.st, VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(m.err.text, "--points 'layer9.*' matches no checkpoint of"));
	end_matched(&m);
}

/* Records the second side with this shape, axes and step. Returns the text about `mine`. */
static void other_is(int64_t rows, int64_t columns, const char *axes, int64_t position, const char *detail)
{
	matched   m = { .o = { .threads = 1 } };
	vn_store *s = begin_recording("a.h5", T, 0, NULL);

	begin_step(s, 0, 0, T, 0, T);
	put_tensor(s, "mine", "token hidden", T, D, x);
	commit(s);
	s = begin_recording("b.h5", position + T, 0, NULL);
	begin_step(s, 0, position, T, 0, T);
	put_tensor(s, "mine", axes, rows, columns, x);
	commit(s);
	match_files(&m, "a.h5", "b.h5");
	CU_ASSERT_EQUAL_FATAL(m.st, VN_OK);
	const vn_checkpoint *p = matched_as(&m, "mine");
	CU_ASSERT_EQUAL(p->fails, *detail != 0);
	CU_ASSERT_EQUAL(p->status == VN_MISSHAPEN, *detail != 0);
	CU_ASSERT_STRING_EQUAL(p->detail ? p->detail : "", detail);
	end_matched(&m);
}

static void nothing_is_reshaped_to_make_it_fit(void)
{
	other_is(T, D, "token hidden", 0, "");
	other_is(T, 2 * D, "token hidden", 0, "shape (3, 4) in the reference, (3, 8) in the candidate");
	other_is(T, D, "token channel", 0, "axes 'token hidden' in the reference, 'token channel' in the candidate");
	other_is(T, D, "token token", 0, "axes 'token token' of (3, 4) in the candidate: a repeated word");
	other_is(T, D, "token hidden", 2,
	         "step 0 has 3 tokens from position 0 in the reference, 3 from position 2 in the candidate");
}

static void logits_are_scores(void)
{
	matched m = { .o = { .threads = 1 } };

	record("a.h5", (const char *const[]) { "final_norm", "logits" }, 2);
	record("b.h5", (const char *const[]) { "final_norm", "logits" }, 2);
	match_files(&m, "a.h5", "b.h5");
	CU_ASSERT_EQUAL_FATAL(m.st, VN_OK);
	CU_ASSERT_TRUE(matched_as(&m, "logits")->scores && !matched_as(&m, "final_norm")->scores);
	end_matched(&m);
}

static void recordings_of_nothing_cannot_be_compared(void)
{
	matched m = { .o = { .threads = 1 } };

	record("a.h5", NULL, 0);
	record("b.h5", NULL, 0);
	match_files(&m, "a.h5", "b.h5");
	CU_ASSERT_EQUAL(m.st, VN_ERR_MISMATCH);
	CU_ASSERT_STRING_EQUAL(m.err.text, "nothing to compare: the recordings hold no checkpoints");
	end_matched(&m);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(names_are_paired_and_what_has_no_partner_fails),
		TEST(patterns_select_and_must_select_something),
		TEST(nothing_is_reshaped_to_make_it_fit),
		TEST(logits_are_scores),
		TEST(recordings_of_nothing_cannot_be_compared),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("match", tests);
	return !remove_folder() || failed;
}
