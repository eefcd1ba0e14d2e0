/* test_unmatched.c: tests compare/match/unmatched.c. */
#include "compare/match/match.h"
#include "tests/support/matched_help.h"

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

/* Matches these two; the notes are those about names. Finish with end_matched. */
static void match_names(matched *m, const char *const *ref, int n_ref, const char *const *cand, int n_cand)
{
	*m = (matched) { 0 };
	record("ref.h5", ref, n_ref);
	record("cand.h5", cand, n_cand);
	match_files(m, "ref.h5", "cand.h5");
	CU_ASSERT_EQUAL_FATAL(m->st, VN_OK);
	vn_lines_free(&m->c.result.remarks.notes);
	CU_ASSERT_EQUAL(vn_match_names(&m->c.opened, &m->c.result.checkpoints, &m->c.result.unpaired,
	                               &m->c.result.remarks.notes, &m->err),
	                VN_OK);
}

static void names_of_another_engine_are_told_with_their_map(void)
{
	static const char *const own[] = { "embed", "layer0.attn_norm", "layer0.mlp_norm" };
	static const char *const hf[] = { "model.embed_tokens", "model.layers.0.input_layernorm",
		                              "model.layers.0.post_attention_layernorm", "something" };
	matched                  m;

	match_names(&m, own, 3, hf, 4);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m.c.result.unpaired.cand_map);
	CU_ASSERT_STRING_EQUAL(m.c.result.unpaired.cand_map, "hf");
	CU_ASSERT_PTR_NULL(m.c.result.unpaired.ref_map);
	one_line(&m.c.result.remarks.notes,
	         "names: 3 of 4 names that only the candidate has are known to the name map hf: add --names hf");
	end_matched(&m);
	match_names(&m, hf, 3, own, 3);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m.c.result.unpaired.ref_map);
	CU_ASSERT_STRING_EQUAL(m.c.result.unpaired.ref_map, "hf");
	CU_ASSERT_PTR_NULL(m.c.result.unpaired.cand_map);
	one_line(&m.c.result.remarks.notes,
	         "names: 3 of 3 names that only the reference has are known to the name map hf: add "
	         "--ref-names hf");
	end_matched(&m);
}

/* Two names do not identify an engine. */
static void of_two_names_no_map_is_told(void)
{
	static const char *const own[] = { "embed", "layer0.attn_norm" };
	static const char *const hf[] = { "embed", "model.embed_tokens", "model.layers.0.input_layernorm" };
	matched                  m;

	match_names(&m, own, 2, hf, 3);
	CU_ASSERT_PTR_NULL(m.c.result.unpaired.cand_map);
	CU_ASSERT_EQUAL(m.c.result.remarks.notes.n, 0);
	end_matched(&m);
}

static void a_misspelt_name_is_told_with_what_was_meant(void)
{
	static const char *const own[] = { "embed", "layer0.attn_norm" }, *const other[] = { "embed", "layer0.atn_norm" };
	matched m;

	match_names(&m, own, 2, other, 2);
	CU_ASSERT_TRUE(m.c.result.unpaired.misspelt);
	one_line(&m.c.result.remarks.notes,
	         "names: layer0.atn_norm is not a checkpoint name; did you mean layer0.attn_norm, which the candidate "
	         "lacks?");
	end_matched(&m);
}

/* Another point, which the candidate has and nobody lacks, is only one more. */
static void a_checkpoint_s_own_name_is_not_misspelt(void)
{
	static const char *const own[] = { "embed", "layer0.attn_norm" }, *const other[] = { "embed", "layer1.attn_norm" };
	matched m;

	match_names(&m, own, 2, other, 2);
	CU_ASSERT_FALSE(m.c.result.unpaired.misspelt);
	CU_ASSERT_EQUAL(m.c.result.remarks.notes.n, 0);
	end_matched(&m);
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
