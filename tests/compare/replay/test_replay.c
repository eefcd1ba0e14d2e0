/* test_replay.c: tests compare/replay/replay.c: when a replay runs, through which steps, and which
 * checkpoints become origins. */
#include "compare/replay/replay.h"
#include "tests/support/explain_help.h"

enum { PROMPTED = 4, DECODED = 2, N = PROMPTED + DECODED, D = 48 };

static float norm[N * D], q[N * D], other_q[N * D];

static void make_up(void)
{
	for (int i = 0; i < N * D; i++) {
		norm[i] = given_number(i, 0);
		q[i] = given_number(i, 1);
		other_q[i] = given_number(i, 2);
	}
}

/* Compares what q_proj made of the same inputs. changed: with other numbers.
 * gap: a step that the candidate lacks. */
static void compare(explained *e, vn_replay_when when, bool changed, int gap)
{
	const given ref[] = { { "layer0.attn_norm", norm }, { "layer0.q_proj", q } },
				cand[] = { { "layer0.attn_norm", norm }, { "layer0.q_proj", changed ? other_q : q } };

	*e = (explained) { .compared.o = {
						   .model = LLAMA, .replay = when, .allow = VN_ALLOW_FLOOR | VN_ALLOW_STEPS, .threads = 1 } };
	CU_ASSERT_EQUAL_FATAL(record_given("ref.h5", PROMPTED, DECODED, ref, 2, &e->err), VN_OK);
	given_gap = gap;
	CU_ASSERT_EQUAL_FATAL(record_given("cand.h5", PROMPTED, DECODED, cand, 2, &e->err), VN_OK);
	given_gap = 0;
	judge(&e->compared, "ref.h5", "cand.h5", NULL, LOOSE);
	if (e->compared.st)
		printf("\n    %s\n", e->compared.err.text);
	CU_ASSERT_EQUAL_FATAL(e->compared.st, VN_OK);
}

static int count_replayed(const explained *e)
{
	const vn_comparison *c = &e->compared.c;
	int                  n = 0;

	for (int i = 0; i < c->result.checkpoints.n; i++)
		n += c->result.checkpoints.of[i].replayed;
	return n;
}

static bool has_line(const vn_lines *l, const char *says)
{
	for (int i = 0; i < l->n; i++)
		if (strstr(l->line[i], says))
			return true;
	return false;
}

static void it_runs_if_it_is_asked_for_or_something_is_outside(void)
{
	static const struct {
		vn_replay_when when;
		bool           changed, runs;
	} of[] = {
		{ VN_REPLAY_NEVER, true, false },  { VN_REPLAY_OUTSIDE, true, true }, { VN_REPLAY_OUTSIDE, false, false },
		{ VN_REPLAY_ALWAYS, false, true }, { VN_REPLAY_SAME, false, true },
	};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		explained e;
		compare(&e, of[i].when, of[i].changed, 0);
		CU_ASSERT_EQUAL(e.compared.c.result.replayed, of[i].runs);
		CU_ASSERT_EQUAL(count_replayed(&e) > 0, of[i].runs);
		finish(&e.compared);
	}
}

/* Equal recordings whose numbers no operation made. */
static void an_origin_is_what_its_inputs_do_not_give(void)
{
	explained e;

	compare(&e, VN_REPLAY_ALWAYS, false, 0);
	const vn_comparison *c = &e.compared.c;
	CU_ASSERT_EQUAL(c->result.localised.n_origins, c->result.checkpoints.n);
	for (int i = 0; i < c->result.localised.n_origins; i++)
		CU_ASSERT_TRUE(c->result.checkpoints.of[i].origin && c->result.localised.origins[i] == i &&
		               vn_local_beyond(&c->result.checkpoints.of[i]));
	finish(&e.compared);
}

static void steps_behind_a_gap_are_not_replayed(void)
{
	for (int gap = 0; gap < 2; gap++) {
		explained e;
		compare(&e, VN_REPLAY_ALWAYS, true, gap);
		CU_ASSERT_EQUAL(count_replayed(&e), gap ? 2 : 2 * (1 + DECODED));
		CU_ASSERT_EQUAL(checkpoint_at(&e, "layer0.q_proj", DECODED)->replayed, !gap);
		CU_ASSERT_EQUAL(
			has_line(&e.compared.c.result.remarks.notes, "step 2 does not start where the step before it ended"), gap);
		/* what was not replayed keeps the result of the graph */
		CU_ASSERT_TRUE(checkpoint_at(&e, "layer0.q_proj", DECODED)->origin);
		finish(&e.compared);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(it_runs_if_it_is_asked_for_or_something_is_outside),
		TEST(an_origin_is_what_its_inputs_do_not_give),
		TEST(steps_behind_a_gap_are_not_replayed),
		CU_TEST_INFO_NULL,
	};
	make_up();
	if (!make_folder())
		return 1;
	const int failed = run_suite("replay", tests);
	return !remove_folder() || failed;
}
