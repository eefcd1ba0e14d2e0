/* test_unmatched.c: tests compare/match/unmatched.c. */
#include "compare/match/match.h"
#include "tests/match_help.h"
#include "tests/trial.h"

enum { T = 3, D = 4 };

static void record(const char *file, const char *const *name, int n)
{
	static const float x[T * D] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3 };
	vn_store          *s = begin_recording(file, T, 0, NULL);

	begin_step(s, 0, 0, T, 0, T);
	for (int i = 0; i < n; i++)
		put_tensor(s, name[i], "token hidden", T, D, x);
	commit(s);
}

/* The notes about names from a comparison of these two. */
static void compare(trial *t, const char *const *ref, int n_ref, const char *const *cand, int n_cand, vn_lines *names)
{
	*t = (trial) { 0 };
	record("ref.h5", ref, n_ref);
	record("cand.h5", cand, n_cand);
	judge(t, "ref.h5", "cand.h5", NULL, "version: 1\ndefaults: { nmse: 1.0e-8 }\n");
	CU_ASSERT_EQUAL(t->st, VN_OK);
	for (int i = 0; i < t->c.result.notes.n; i++)
		if (strncmp(t->c.result.notes.line[i], "names: ", 7) == 0)
			vn_lines_add(names, "%s", t->c.result.notes.line[i]);
}

static void names_of_another_engine_are_told_with_their_map(void)
{
	static const char *const own[] = { "embed", "layer0.attn_norm", "layer0.mlp_norm" };
	static const char *const hf[] = { "model.embed_tokens", "model.layers.0.input_layernorm",
		                              "model.layers.0.post_attention_layernorm", "something" };
	vn_lines                 names = { 0 };
	trial                    t;

	compare(&t, own, 3, hf, 4, &names);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t.c.result.cand_map);
	CU_ASSERT_STRING_EQUAL(t.c.result.cand_map, "hf");
	CU_ASSERT_PTR_NULL(t.c.result.ref_map);
	one_line(&names, "names: 3 of 4 names that only the candidate has are known to the name map hf: add --names hf");
	finish(&t);
	vn_lines_free(&names);
	compare(&t, hf, 3, own, 3, &names);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t.c.result.ref_map);
	CU_ASSERT_STRING_EQUAL(t.c.result.ref_map, "hf");
	CU_ASSERT_PTR_NULL(t.c.result.cand_map);
	one_line(&names, "names: 3 of 3 names that only the reference has are known to the name map hf: add "
	                 "--ref-names hf");
	finish(&t);
	vn_lines_free(&names);
}

/* Two names do not identify an engine. */
static void of_two_names_no_map_is_told(void)
{
	static const char *const own[] = { "embed", "layer0.attn_norm" };
	static const char *const hf[] = { "embed", "model.embed_tokens", "model.layers.0.input_layernorm" };
	vn_lines                 names = { 0 };
	trial                    t;

	compare(&t, own, 2, hf, 3, &names);
	CU_ASSERT_PTR_NULL(t.c.result.cand_map);
	CU_ASSERT_EQUAL(names.n, 0);
	finish(&t);
	vn_lines_free(&names);
}

static void a_misspelt_name_is_told_with_what_was_meant(void)
{
	static const char *const own[] = { "embed", "layer0.attn_norm" }, *const other[] = { "embed", "layer0.atn_norm" };
	vn_lines names = { 0 };
	trial    t;

	compare(&t, own, 2, other, 2, &names);
	CU_ASSERT_TRUE(t.c.result.misspelt);
	one_line(&names,
	         "names: layer0.atn_norm is not a checkpoint name; did you mean layer0.attn_norm, which the candidate "
	         "lacks?");
	finish(&t);
	vn_lines_free(&names);
}

/* Another point, which the candidate has and nobody lacks, is only one more. */
static void a_checkpoint_s_own_name_is_not_misspelt(void)
{
	static const char *const own[] = { "embed", "layer0.attn_norm" }, *const other[] = { "embed", "layer1.attn_norm" };
	vn_lines names = { 0 };
	trial    t;

	compare(&t, own, 2, other, 2, &names);
	CU_ASSERT_FALSE(t.c.result.misspelt);
	CU_ASSERT_EQUAL(names.n, 0);
	finish(&t);
	vn_lines_free(&names);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(names_of_another_engine_are_told_with_their_map),
		TEST(of_two_names_no_map_is_told),
		TEST(a_misspelt_name_is_told_with_what_was_meant),
		TEST(a_checkpoint_s_own_name_is_not_misspelt),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("unmatched", tests);
	return !remove_folder() || failed;
}
