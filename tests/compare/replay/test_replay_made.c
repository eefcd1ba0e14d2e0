/* test_replay_made.c: tests compare/replay/replay_made.c. */
#include "compare/replay/replay_state.h"
#include "tests/support/suite.h"

#include <string.h>

static vn_replay_engine e;

static void begin(const bool *last)
{
	e = (vn_replay_engine) { .last = last };
}

static void end(void)
{
	for (int i = 0; i < VN_MAX_OUT + 2; i++)
		vn_node_output_free(&e.out[i]);
}

/* Hands over a value of rows by columns, in parts of at most `part` numbers. */
static void hand_over(int value, int64_t rows, int64_t cols, const float *x, size_t part)
{
	const vn_sink  to = vn_replay_sink(&e);
	const vn_shape shape = { 2, { rows, cols } };
	vn_error       err = { "" };

	CU_ASSERT_EQUAL_FATAL(to.begin(to.ctx, value, VN_F32, &shape, &err), VN_OK);
	for (size_t at = 0, n = (size_t)(rows * cols); at < n; at += part)
		CU_ASSERT_EQUAL(to.write(to.ctx, x + at, n - at < part ? n - at : part, &err), VN_OK);
	CU_ASSERT_EQUAL(to.end(to.ctx, &err), VN_OK);
}

static const float six[] = { 1, 2, 3, 4, 5, 6 };

static void parts_are_joined(void)
{
	begin(NULL);
	hand_over(7, 3, 2, six, 4);
	hand_over(9, 1, 2, six + 2, 2);
	const vn_node_output *m = vn_replay_made(&e, 7), *other = vn_replay_made(&e, 9);
	CU_ASSERT_FATAL(m && other);
	CU_ASSERT_EQUAL(m->have, sizeof six);
	CU_ASSERT_EQUAL(memcmp(m->data, six, sizeof six), 0);
	CU_ASSERT_EQUAL(m->t.shape.dim[0], 3);
	CU_ASSERT_EQUAL(memcmp(other->data, six + 2, 2 * sizeof *six), 0);
	CU_ASSERT_PTR_NULL(vn_replay_made(&e, 8));
	end();
}

/* An engine stores some numbers itself, where there is room. */
static void numbers_are_stored_in_place(void)
{
	begin(NULL);
	const vn_sink  to = vn_replay_sink(&e);
	const vn_shape shape = { 2, { 3, 2 } };
	vn_error       err = { "" };

	CU_ASSERT_EQUAL_FATAL(to.begin(to.ctx, 7, VN_F32, &shape, &err), VN_OK);
	CU_ASSERT_EQUAL(to.write(to.ctx, six, 2, &err), VN_OK);
	float *at = to.place(to.ctx, 3);
	CU_ASSERT_PTR_EQUAL_FATAL(at, (float *)(void *)e.out[0].data + 2);
	memcpy(at, six + 2, 3 * sizeof *six);
	CU_ASSERT_PTR_NULL(to.place(to.ctx, 2));
	CU_ASSERT_EQUAL(to.write(to.ctx, six + 5, 1, &err), VN_OK);
	CU_ASSERT_EQUAL(to.end(to.ctx, &err), VN_OK);
	CU_ASSERT_EQUAL(vn_replay_made(&e, 7)->have, sizeof six);
	CU_ASSERT_EQUAL(memcmp(e.out[0].data, six, sizeof six), 0);
	end();
}

static bool lend(const vn_replay_engine *to, bool *in_file)
{
	const vn_sink  sink = vn_replay_sink(&e);
	const vn_shape shape = { 2, { 3, 2 } };
	vn_error       err = { "" };

	e.n_out = 0;
	e.keeps = to->keeps;
	CU_ASSERT_EQUAL_FATAL(sink.begin(sink.ctx, 1, VN_F32, &shape, &err), VN_OK);
	const bool lent = sink.lend(sink.ctx, six, 6);
	CU_ASSERT_TRUE(lent || sink.write(sink.ctx, six, 6, &err) == VN_OK);
	CU_ASSERT_EQUAL(sink.end(sink.ctx, &err), VN_OK);
	*in_file = vn_node_output_in_file(vn_replay_made(&e, 1));
	return lent;
}

/* Numbers that stay with the engine are not copied, unless they must outlast another run of the
 * node, or one row of them is kept. Memory of an engine is never given back as pages of a file. */
static void numbers_are_borrowed(void)
{
	const bool last[] = { false, true };
	bool       in_file;

	begin(NULL);
	CU_ASSERT_TRUE(lend(&(vn_replay_engine) { .keeps = false }, &in_file));
	CU_ASSERT_EQUAL(e.out[0].room, 0); /* what is borrowed takes none */
	e.out[0].room = sizeof six;        /* a file of an earlier node */
	CU_ASSERT_FATAL(vn_scratch_make(&e.out[0].large, VN_SCRATCH_FILE));
	e.out[0].data = e.out[0].large.data;
	CU_ASSERT_TRUE(lend(&(vn_replay_engine) { .keeps = false }, &in_file));
	CU_ASSERT_FALSE(in_file);
	CU_ASSERT_PTR_EQUAL(e.out[0].t.data, six);
	CU_ASSERT_EQUAL(e.out[0].have, sizeof six);
	CU_ASSERT_FALSE(lend(&(vn_replay_engine) { .keeps = true }, &in_file));
	CU_ASSERT_EQUAL(in_file, e.out[0].large.file != 0);
	end();
	begin(last);
	CU_ASSERT_FALSE(lend(&(vn_replay_engine) { .keeps = false }, &in_file));
	end();
}

/* The next node writes in the place of the last one, and needs no more memory for less. */
static void room_is_used_again(void)
{
	begin(NULL);
	hand_over(7, 3, 2, six, 6);
	const void *was = e.out[0].data;
	e.n_out = 0;
	hand_over(8, 1, 2, six + 4, 2);
	CU_ASSERT_PTR_NULL(vn_replay_made(&e, 7));
	CU_ASSERT_PTR_EQUAL(e.out[0].data, was);
	CU_ASSERT_EQUAL(e.out[0].room, sizeof six);
	CU_ASSERT_EQUAL(vn_replay_made(&e, 8)->have, 2 * sizeof *six);
	CU_ASSERT_EQUAL(memcmp(e.out[0].data, six + 4, 2 * sizeof *six), 0);
	end();
}

static void of_some_values_the_last_row_is_kept(void)
{
	const bool last[] = { false, true, false };

	begin(last);
	hand_over(1, 3, 2, six, 6);
	hand_over(2, 3, 2, six, 6);
	const vn_node_output *m = vn_replay_made(&e, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	CU_ASSERT_EQUAL(m->t.shape.dim[0], 1);
	CU_ASSERT_EQUAL(m->have, 2 * sizeof *six);
	CU_ASSERT_EQUAL(memcmp(m->data, six + 4, 2 * sizeof *six), 0);
	CU_ASSERT_EQUAL(vn_replay_made(&e, 2)->t.shape.dim[0], 3);
	end();
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(parts_are_joined),     TEST(numbers_are_stored_in_place),
		TEST(room_is_used_again),   TEST(of_some_values_the_last_row_is_kept),
		TEST(numbers_are_borrowed), CU_TEST_INFO_NULL,
	};
	return run_suite("replay_made", tests);
}
