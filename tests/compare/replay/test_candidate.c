/* test_candidate.c: tests compare/replay/candidate.c. */
#include "compare/replay/candidate.h"
#include "tests/support/matched_help.h"

#include <stdlib.h>

enum { WIDTH = 6, ROWS = 2 };

static const char name[] = "mine.x";

static void record(const char *file, const float *row)
{
	float     x[ROWS * WIDTH];
	vn_store *s = begin_recording(file, ROWS, 0, NULL);

	for (int i = 0; i < ROWS * WIDTH; i++)
		x[i] = row[i % WIDTH] + (float)(10 * (i / WIDTH));
	begin_step(s, 0, 0, ROWS, 0, ROWS);
	put_tensor(s, name, "token hidden", ROWS, WIDTH, x);
	commit(s);
}

/* The candidate's row, read as if its columns were in this order, must be 0 to 5. */
static void reads(const float *row, vn_column_order order)
{
	static const float counted[WIDTH] = { 0, 1, 2, 3, 4, 5 };
	matched            m = { .o = { .threads = 1 } };
	vn_tensor          t;
	unsigned char     *own = NULL;

	record("ref", counted);
	record("cand", row);
	match_files(&m, "ref", "cand");
	CU_ASSERT_EQUAL_FATAL(m.st, VN_OK);
	const vn_checkpoint *p = matched_as(&m, name);
	CU_ASSERT_EQUAL_FATAL(vn_replay_candidate(&m.c.opened, p, order, &t, &own, &m.err), VN_OK);
	CU_ASSERT_EQUAL(own != NULL, order != VN_COLUMNS_SAME);
	CU_ASSERT(!own || t.data == own);
	for (int i = 0; i < ROWS * WIDTH; i++)
		CU_ASSERT_EQUAL(((const float *)t.data)[i], (float)(i % WIDTH + 10 * (i / WIDTH)));
	free(own);
	vn_recording_release(m.c.opened.cand, p->cand);
	end_matched(&m);
}

static void columns_in_the_reference_s_order_are_the_file_s_own(void)
{
	reads((const float[]) { 0, 1, 2, 3, 4, 5 }, VN_COLUMNS_SAME);
}

static void columns_in_pairs_are_brought_to_halves(void)
{
	reads((const float[]) { 0, 3, 1, 4, 2, 5 }, VN_COLUMNS_PAIRS);
}

static void columns_in_halves_are_brought_to_pairs(void)
{
	reads((const float[]) { 0, 2, 4, 1, 3, 5 }, VN_COLUMNS_HALVES);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(columns_in_the_reference_s_order_are_the_file_s_own),
		TEST(columns_in_pairs_are_brought_to_halves),
		TEST(columns_in_halves_are_brought_to_pairs),
		CU_TEST_INFO_NULL,
	};

	if (!make_folder())
		return 1;
	const int failed = run_suite("candidate", tests);
	return !remove_folder() || failed;
}
