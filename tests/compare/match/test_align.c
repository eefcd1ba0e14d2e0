/* test_align.c: tests compare/match/align.c, rows and axes that two recordings
 * declare differently. */
#include "compare/match/align.h"
#include "tests/support/match_help.h"

static const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, transposed[] = { 1, 3, 5, 7, 2, 4, 6, 8 };

static vn_comparison pair(void)
{
	return (vn_comparison) { .opened = { .ref = opened("ref"), .cand = opened("cand") } };
}

/* The tensor of step 0 has this shape and these numbers. */
static void holds(vn_recording *r, const char *name, int64_t rows, int64_t columns, const float *want)
{
	const int   i = vn_recording_find(r, 0, name);
	const void *data = NULL;

	CU_ASSERT_TRUE_FATAL(i >= 0);
	const vn_shape *s = &vn_recording_entry(r, i)->shape;
	CU_ASSERT_EQUAL_FATAL(s->rank, 2);
	CU_ASSERT_EQUAL_FATAL(s->dim[0], rows);
	CU_ASSERT_EQUAL_FATAL(s->dim[1], columns);
	CU_ASSERT_EQUAL_FATAL(vn_recording_data(r, i, &data, NULL), VN_OK);
	CU_ASSERT_EQUAL(memcmp(data, want, (size_t)(rows * columns) * sizeof *want), 0);
	vn_recording_release(r, i);
}

/* One step of four tokens, of which rows [first, first + rows) were kept. */
static void kept(const char *name, int64_t first, int64_t rows)
{
	vn_store *s = begin_recording(name, 4, 0, NULL);
	begin_step(s, 0, 0, 4, first, rows);
	put_tensor(s, "embed", "", rows, 2, x + 2 * first);
	commit(s);
}

static void rows_that_both_kept_are_compared(void)
{
	kept("ref", 0, 3);
	kept("cand", 1, 3);
	vn_comparison c = pair();
	CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "candidate", true, NULL), VN_OK);
	holds(c.opened.ref, "embed", 2, 2, x + 2);
	holds(c.opened.cand, "embed", 2, 2, x + 2);
	one_line(&c.result.remarks.notes, "step 0: rows 0-2 in the reference, 1-3 in the candidate: compared on 1-2");
	close_sides(&c);
}

static void one_row_in_common_is_enough_and_none_changes_nothing(void)
{
	kept("ref", 0, 2);
	for (int64_t first = 1; first <= 2; first++) {
		kept("cand", first, 4 - first);
		vn_comparison c = pair();
		CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "candidate", true, NULL), VN_OK);
		CU_ASSERT_EQUAL(c.result.remarks.notes.n, first == 1);
		if (first == 1)
			one_line(&c.result.remarks.notes,
			         "step 0: rows 0-1 in the reference, 1-3 in the candidate: compared on 1-1");
		holds(c.opened.ref, "embed", first == 1 ? 1 : 2, 2, first == 1 ? x + 2 : x);
		holds(c.opened.cand, "embed", first == 1 ? 1 : 2, 2, first == 1 ? x + 2 : x + 4);
		close_sides(&c);
	}
}

static void the_same_rows_need_no_note(void)
{
	kept("ref", 1, 2);
	kept("cand", 1, 2);
	vn_comparison c = pair();
	CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "candidate", true, NULL), VN_OK);
	CU_ASSERT_EQUAL(c.result.remarks.notes.n, 0);
	holds(c.opened.cand, "embed", 2, 2, x + 2);
	close_sides(&c);
}

/* Rows chosen before stay: a floor is cut to them, and a floor that lacks one of them stays
 * whole. */
static void a_floor_is_cut_and_the_reference_is_not(void)
{
	for (int lacks = 0; lacks < 2; lacks++) {
		kept("ref", 1, 2);
		kept("cand", lacks ? 2 : 0, lacks ? 2 : 4);
		vn_comparison c = pair();
		CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "floor", false, NULL), VN_OK);
		holds(c.opened.ref, "embed", 2, 2, x + 2);
		holds(c.opened.cand, "embed", 2, 2, lacks ? x + 4 : x + 2);
		CU_ASSERT_EQUAL(c.result.remarks.notes.n, !lacks);
		if (!lacks)
			one_line(&c.result.remarks.notes, "step 0: rows 1-2 in the reference, 0-3 in the floor: compared on 1-2");
		close_sides(&c);
	}
}

/* Only the reference has step 1, and the candidate's step 0 has other tokens. */
static void other_steps_are_left_alone(void)
{
	vn_store *s = begin_recording("ref", 4, 0, NULL);
	begin_step(s, 0, 0, 3, 0, 3);
	put_tensor(s, "embed", "", 3, 2, x);
	begin_step(s, 1, 3, 1, 0, 1);
	put_tensor(s, "embed", "", 1, 2, x);
	commit(s);
	kept("cand", 1, 3);
	vn_comparison c = pair();
	CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "candidate", true, NULL), VN_OK);
	CU_ASSERT_EQUAL(c.result.remarks.notes.n, 0);
	holds(c.opened.ref, "embed", 3, 2, x);
	holds(c.opened.cand, "embed", 3, 2, x + 2);
	close_sides(&c);
}

/* Records mlp_norm of that many layers. */
static void with_axes(const char *name, const char *axes, int64_t rows, int64_t columns, const float *y, int tensors)
{
	char      point[40];
	vn_store *s = begin_recording(name, 4, 0, NULL);
	begin_step(s, 0, 0, 4, 0, 4);
	for (int i = 0; i < tensors; i++) {
		snprintf(point, sizeof point, "layer%d.mlp_norm", i);
		put_tensor(s, point, axes, rows, columns, y);
	}
	commit(s);
}

static void axes_in_another_order_are_transposed_and_noted_once(void)
{
	with_axes("ref", "token hidden", 4, 2, x, 3);
	with_axes("cand", "hidden token", 2, 4, transposed, 3);
	vn_comparison c = pair();
	CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "candidate", true, NULL), VN_OK);
	for (int i = 0; i < 3; i++) {
		char point[40];
		snprintf(point, sizeof point, "layer%d.mlp_norm", i);
		holds(c.opened.cand, point, 4, 2, x);
	}
	one_line(&c.result.remarks.notes, "axes 'hidden token' of the candidate are taken as 'token hidden'");
	close_sides(&c);
}

/* Other axes, the same ones, or a shape that does not agree in the other order
 * either: nothing is guessed. */
static void axes_are_not_guessed(void)
{
	static const struct {
		const char *axes;
		int64_t     rows, columns;
	} row[] = { { "token other", 4, 2 }, { "token hidden", 4, 2 }, { "hidden token", 1, 4 } };

	with_axes("ref", "token hidden", 4, 2, x, 1);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		with_axes("cand", row[i].axes, row[i].rows, row[i].columns, x, 1);
		vn_comparison c = pair();
		CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "candidate", true, NULL), VN_OK);
		CU_ASSERT_EQUAL(c.result.remarks.notes.n, 0);
		holds(c.opened.cand, "layer0.mlp_norm", row[i].rows, row[i].columns, x);
		close_sides(&c);
	}
}

/* final_norm of so many rows, of four tokens. */
static void ends(const char *name, int64_t rows, bool second)
{
	vn_store *s = begin_recording(name, 4, 0, NULL);
	begin_step(s, 0, 0, 4, 0, 4);
	put_tensor(s, "embed", "", 4, 2, x);
	put_tensor(s, "final_norm", "", rows, 2, x + 2 * (4 - rows));
	if (second)
		put_tensor(s, "logits", "", rows, 2, x + 2 * (4 - rows));
	commit(s);
}

static void one_row_at_the_end_is_the_last_token(void)
{
	for (int side = 0; side < 2; side++) {
		ends("ref", side ? 4 : 1, side);
		ends("cand", side ? 1 : 4, side);
		vn_comparison c = pair();
		CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "candidate", true, NULL), VN_OK);
		holds(c.opened.ref, "final_norm", 1, 2, x + 6);
		holds(c.opened.cand, "final_norm", 1, 2, x + 6);
		holds(c.opened.ref, "embed", 4, 2, x);
		one_line(
			&c.result.remarks.notes,
			side ? "2 tensors of the candidate have one row (first: final_norm), which is taken as the last token and "
				   "compared with that row of the reference"
				 : "1 tensor of the reference has one row (first: final_norm), which is taken as the last token and "
				   "compared with that row of the candidate");
		close_sides(&c);
	}
}

static void a_floor_of_one_row_does_not_cut_the_reference(void)
{
	ends("ref", 4, false);
	ends("cand", 1, false);
	vn_comparison c = pair();
	CU_ASSERT_EQUAL(vn_align(c.opened.ref, &c.result.remarks.notes, c.opened.cand, "floor", false, NULL), VN_OK);
	CU_ASSERT_EQUAL(c.result.remarks.notes.n, 0);
	holds(c.opened.ref, "final_norm", 4, 2, x);
	close_sides(&c);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(rows_that_both_kept_are_compared),
		TEST(one_row_in_common_is_enough_and_none_changes_nothing),
		TEST(the_same_rows_need_no_note),
		TEST(a_floor_is_cut_and_the_reference_is_not),
		TEST(other_steps_are_left_alone),
		TEST(axes_in_another_order_are_transposed_and_noted_once),
		TEST(axes_are_not_guessed),
		TEST(one_row_at_the_end_is_the_last_token),
		TEST(a_floor_of_one_row_does_not_cut_the_reference),
		CU_TEST_INFO_NULL,
	};

	if (!make_folder())
		return 1;
	const int failed = run_suite("align", tests);
	return !remove_folder() || failed;
}
