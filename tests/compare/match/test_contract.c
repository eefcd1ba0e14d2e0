/* test_contract.c: tests compare/match/contract.c, whether two recordings may be
 * compared at all. */
#include "compare/match/contract.h"
#include "tests/support/match_help.h"

static const float x[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

/* n tokens at positions from `from` on, all in one step; facts of /run;
 * cut: its run was interrupted. */
static void record(const char *name, int64_t n, int32_t from, const vn_facts *facts, bool cut)
{
	vn_store *s = begin_recording(name, n, from, facts);
	if (n) {
		begin_step(s, 0, 0, n, 0, n);
		put_tensor(s, "embed", "", n, 2, x);
	}
	if (cut)
		vn_store_cut(s);
	commit(s);
}

typedef struct verdict {
	vn_status st;
	vn_lines  notes, refusals;
	vn_error  err;
} verdict;

static verdict of(unsigned allow)
{
	const vn_compare_options o = { .allow = allow };
	vn_comparison            c = { .opened = { .request.options = &o, .ref = opened("ref"), .cand = opened("cand") } };
	verdict                  v = { 0 };

	v.st = vn_contract(&c.opened, &c.result.remarks, c.opened.cand, "candidate", &c.result.weights, &v.err);
	v.notes = c.result.remarks.notes;
	v.refusals = c.result.remarks.refusals;
	vn_weights_free(c.result.weights);
	vn_recording_close(c.opened.ref);
	vn_recording_close(c.opened.cand);
	return v;
}

static bool has_line(const vn_lines *l, const char *want)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->line[i], want) == 0)
			return true;
	return false;
}

static void drop(verdict *v)
{
	vn_lines_free(&v->notes);
	vn_lines_free(&v->refusals);
}

/* Checks that there is one refusal, and that it is a note once its word allows it. */
static void is_refused(unsigned bit, const char *word, const char *what)
{
	char    line[600], want[3 * PATH_MAX];
	verdict v = of(0);

	CU_ASSERT_EQUAL(v.st, VN_ERR_MISMATCH);
	snprintf(want, sizeof want, "%s and %s are not comparable", at("ref"), at("cand"));
	CU_ASSERT_STRING_EQUAL(v.err.text, want);
	snprintf(line, sizeof line, "%s (--allow %s)", what, word);
	one_line(&v.refusals, line);
	drop(&v);
	v = of(bit);
	CU_ASSERT_EQUAL(v.st, VN_OK);
	CU_ASSERT_EQUAL(v.refusals.n, 0);
	snprintf(line, sizeof line, "allowed (%s): %s", word, what);
	CU_ASSERT_TRUE(has_line(&v.notes, line));
	drop(&v);
}

static void the_same_run_is_comparable(void)
{
	record("ref", 4, 0, NULL, false);
	record("cand", 4, 0, NULL, false);
	verdict v = of(0);
	CU_ASSERT_EQUAL(v.st, VN_OK);
	CU_ASSERT_EQUAL(v.refusals.n, 0);
	CU_ASSERT_TRUE(has_line(&v.notes, "config: the reference records none; not checked"));
	drop(&v);
}

static void other_tokens_are_refused(void)
{
	record("ref", 4, 0, NULL, false);
	record("cand", 3, 0, NULL, false);
	is_refused(
		VN_ALLOW_TOKEN_IDS, "token_ids",
		"token ids: 4 in the reference, 3 in the candidate; the reference has 1 more at the end: 8; to compare the "
		"rest, record both on the same tokens, with --ids-from");
	record("cand", 4, 1, NULL, false);
	verdict v = of(0);
	CU_ASSERT_EQUAL(v.st, VN_ERR_MISMATCH);
	one_line(&v.refusals,
	         "positions: token 0 is at position 0 in the reference, 1 in the candidate (--allow positions)");
	drop(&v);
}

static void an_interrupted_run_is_refused(void)
{
	record("ref", 4, 0, NULL, true);
	record("cand", 4, 0, NULL, false);
	is_refused(VN_ALLOW_INCOMPLETE, "incomplete", "the reference is incomplete: its run was interrupted");
	record("ref", 4, 0, NULL, false);
	record("cand", 4, 0, NULL, true);
	is_refused(VN_ALLOW_INCOMPLETE, "incomplete", "the candidate is incomplete: its run was interrupted");
}

static void one_rank_alone_is_refused(void)
{
	vn_facts f = { 0 };

	record("ref", 4, 0, NULL, false);
	vn_facts_set(&f, "rank", "1");
	record("cand", 4, 0, &f, false);
	is_refused(VN_ALLOW_RANKS, "ranks", "ranks: the candidate is rank 1 of several; compare all of them with --shard");
	vn_facts_set(&f, "world_size", "2");
	record("cand", 4, 0, &f, false);
	is_refused(VN_ALLOW_RANKS, "ranks", "ranks: the candidate is rank 1 of 2; compare all of them with --shard");
	f = (vn_facts) { 0 };
	vn_facts_set(&f, "world_size", "2");
	record("cand", 4, 0, &f, false);
	is_refused(VN_ALLOW_RANKS, "ranks", "ranks: the candidate is one of 2; compare all of them with --shard");
	vn_facts_set(&f, "rank", "0");
	vn_facts_set(&f, "world_size", "1");
	record("cand", 4, 0, &f, false); /* the only one */
	verdict v = of(0);
	CU_ASSERT_EQUAL(v.st, VN_OK);
	drop(&v);
}

/* ---- configs alone ------------------------------------------------------------------ */

static void configs(const char *a, const char *b, unsigned allow, verdict *v)
{
	const vn_compare_options o = { .allow = allow };
	vn_comparison            c = { .opened.request.options = &o };

	vn_contract_config(&c.opened, &c.result.remarks, a, b, "candidate");
	*v = (verdict) { .notes = c.result.remarks.notes, .refusals = c.result.remarks.refusals };
}

static void one_config_makes_no_line(void)
{
	verdict v;
	configs("{\"a\": 1}", "{\"a\": 1}", 0, &v);
	CU_ASSERT_EQUAL(v.notes.n + v.refusals.n, 0);
	drop(&v);
	configs("{\"a\": 1, \"b\": [2]}", "{ \"b\":[2], \"a\":1 }", 0, &v); /* the same in other words */
	CU_ASSERT_EQUAL(v.notes.n + v.refusals.n, 0);
	drop(&v);
}

static void a_config_that_is_missing_is_a_note(void)
{
	verdict v;
	configs(NULL, "{}", 0, &v);
	one_line(&v.notes, "config: the reference records none; not checked");
	CU_ASSERT_EQUAL(v.refusals.n, 0);
	drop(&v);
	configs("{}", NULL, 0, &v);
	one_line(&v.notes, "config: the candidate records none; not checked");
	drop(&v);
	configs("{\"a\": 1}", "{}", 0, &v);
	one_line(&v.notes, "config: that of the candidate has no settings; not checked");
	CU_ASSERT_EQUAL(v.refusals.n, 0);
	drop(&v);
}

static void keys_that_differ_are_refused_one_by_one(void)
{
	verdict v;
	configs("{\"a\": 1, \"b\": 2}", "{\"a\": 3, \"c\": 4}", 0, &v);
	CU_ASSERT_EQUAL(v.refusals.n, 3);
	CU_ASSERT_TRUE(has_line(&v.refusals, "config: a is 1 in the reference, 3 in the candidate (--allow config)"));
	CU_ASSERT_TRUE(has_line(&v.refusals, "config: b is 2 in the reference, absent in the candidate (--allow config)"));
	CU_ASSERT_TRUE(has_line(&v.refusals, "config: c is absent in the reference, 4 in the candidate (--allow config)"));
	CU_ASSERT_EQUAL(v.notes.n, 0);
	drop(&v);
	configs("{\"a\": 1}", "{\"a\": 3}", VN_ALLOW_CONFIG, &v);
	CU_ASSERT_EQUAL(v.refusals.n, 0);
	one_line(&v.notes, "allowed (config): config: a is 1 in the reference, 3 in the candidate");
	drop(&v);
	configs("{\"eps\": 1e-06}", "{\"eps\": 0.1}", 0, &v);
	one_line(&v.refusals, "config: eps is 1e-6 in the reference, 0.1 in the candidate (--allow config)");
	drop(&v);
}

static void keys_of_no_arithmetic_are_notes(void)
{
	static const char *const keys[] = { "_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache" };
	char                     a[64], want[160];
	verdict                  v;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(a, sizeof a, "{\"%s\": 1, \"b\": 2}", keys[i]);
		configs(a, "{\"b\": 2}", 0, &v);
		CU_ASSERT_EQUAL(v.refusals.n, 0);
		snprintf(want, sizeof want, "config: %s is 1 in the reference, absent in the candidate (changes no arithmetic)",
		         keys[i]);
		one_line(&v.notes, want);
		drop(&v);
	}
}

static void what_is_no_object_is_refused(void)
{
	verdict v;
	configs("[1]", "{}", 0, &v);
	one_line(&v.refusals, "config: the config of the reference is not a JSON object (--allow config)");
	drop(&v);
	configs("{}", "{", 0, &v);
	one_line(&v.refusals, "config: the config of the candidate is not a JSON object (--allow config)");
	drop(&v);
}

/* A known family: one side writes out a default; then it writes out too many fields to list. */
static void one_arithmetic_in_two_spellings_is_a_note(void)
{
	static const char base[] =
		"\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", "
		"\"hidden_size\": 8, \"intermediate_size\": 16,\"num_attention_heads\": 2, \"num_key_value_heads\": 2, "
		"\"num_hidden_layers\": 1, \"vocab_size\": 16, \"rms_norm_eps\": 1e-5,\"max_position_embeddings\": 64, "
		"\"rope_theta\": 10000.0, \"hidden_act\": \"silu\", \"tie_word_embeddings\": true";
	char    a[800], b[800];
	verdict v;

	snprintf(a, sizeof a, "{%s}", base);
	snprintf(b, sizeof b, "{%s, \"k1\": 1}", base);
	configs(a, b, 0, &v);
	CU_ASSERT_EQUAL(v.refusals.n, 0);
	one_line(&v.notes, "config: k1 is absent in the reference, 1 in the candidate (changes no arithmetic)");
	drop(&v);
	snprintf(b, sizeof b, "{%s, \"k1\": 1, \"k2\": 1, \"k3\": 1, \"k4\": 1, \"k5\": 1}", base);
	configs(a, b, 0, &v);
	CU_ASSERT_EQUAL(v.refusals.n, 0);
	one_line(&v.notes,
	         "config: 5 fields differ between the reference and the candidate; none of them changes the arithmetic");
	drop(&v);
}

/* ---- positions and steps -------------------------------------------------------------- */

static void positions_may_be_moved_by_a_constant(void)
{
	static const struct {
		int64_t n;
		int32_t ref, cand;
		int64_t by;
	} row[] = {
		{ 4, 0, 3, 3 }, { 4, 0, 0, 0 }, { 4, 1, 3, 0 }, { 3, 0, 3, 0 }, { 1, 0, 2, 2 },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		int64_t by = -1;
		record("ref", row[i].n == 3 ? 4 : row[i].n, row[i].ref, NULL, false); /* 3: of other many tokens */
		record("cand", row[i].n, row[i].cand, NULL, false);
		vn_comparison c = { .opened = { .ref = opened("ref"), .cand = opened("cand") } };
		CU_ASSERT_EQUAL(vn_positions_moved(&c.opened, &by), row[i].by != 0);
		CU_ASSERT_EQUAL(by, row[i].by);
		close_sides(&c);
	}
}

/* Records five tokens in steps of 2, 2 and 1, without the steps in `but`. */
static void stepped(const char *name, int but)
{
	vn_store *s = begin_recording(name, 5, 0, NULL);
	for (int k = 0; k < 3; k++) {
		const int64_t n = k < 2 ? 2 : 1;
		if (k == but)
			continue;
		begin_step(s, k, 2 * k, n, 0, n);
		put_tensor(s, "embed", "", n, 2, x);
	}
	commit(s);
}

static void a_step_that_neither_has_is_refused(void)
{
	static const struct {
		int ref, cand, lines;
	} row[] = { { -1, -1, 0 }, { 1, -1, 0 }, { -1, 1, 0 }, { 1, 1, 1 } };
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		stepped("ref", row[i].ref);
		stepped("cand", row[i].cand);
		for (unsigned allow = 0; allow < 2; allow++) {
			const vn_compare_options o = { .allow = allow ? VN_ALLOW_STEPS : 0 };
			vn_comparison c = { .opened = { .request.options = &o, .ref = opened("ref"), .cand = opened("cand") } };
			vn_match_check_steps(&c.opened, &c.result.remarks);
			CU_ASSERT_EQUAL(c.result.remarks.refusals.n, allow ? 0 : row[i].lines);
			CU_ASSERT_EQUAL(c.result.remarks.notes.n, allow ? row[i].lines : 0);
			if (row[i].lines && !allow)
				CU_ASSERT_PTR_NOT_NULL(strstr(c.result.remarks.refusals.n ? c.result.remarks.refusals.line[0] : "",
				                              "steps: no step of either recording has "));
			close_sides(&c);
		}
	}
}

/* A prompt of three tokens and a decoded one; which of them has another id in the candidate. */
static void decoded(const char *name, int64_t other)
{
	other_id = other;
	vn_store *s = begin_recording(name, 4, 0, NULL);
	other_id = -1;
	begin_step(s, 0, 0, 3, 0, 3);
	put_tensor(s, "embed", "", 3, 2, x);
	begin_step(s, 1, 3, 1, 0, 1);
	put_tensor(s, "embed", "", 1, 2, x);
	commit(s);
}

static void another_token_is_named_with_its_step(void)
{
	decoded("ref", -1);
	decoded("cand", 1);
	is_refused(VN_ALLOW_TOKEN_IDS, "token_ids",
	           "token ids: number 1 is 6 in the reference, 50 in the candidate: "
	           "record both on the same tokens, with --ids-from and --force-ids-from");
	decoded("cand", 3);
	is_refused(VN_ALLOW_TOKEN_IDS, "token_ids",
	           "token ids: number 3, which is step 1, is 8 in the reference, 50 in the candidate: "
	           "the two runs decoded different tokens; --force-ids-from makes one run decode the other's");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_same_run_is_comparable),
		TEST(other_tokens_are_refused),
		TEST(an_interrupted_run_is_refused),
		TEST(one_rank_alone_is_refused),
		TEST(one_config_makes_no_line),
		TEST(a_config_that_is_missing_is_a_note),
		TEST(keys_that_differ_are_refused_one_by_one),
		TEST(keys_of_no_arithmetic_are_notes),
		TEST(what_is_no_object_is_refused),
		TEST(one_arithmetic_in_two_spellings_is_a_note),
		TEST(positions_may_be_moved_by_a_constant),
		TEST(a_step_that_neither_has_is_refused),
		TEST(another_token_is_named_with_its_step),
		CU_TEST_INFO_NULL,
	};

	if (!make_folder())
		return 1;
	const int failed = run_suite("contract", tests);
	return !remove_folder() || failed;
}
