/* test_trusted.c: tests compare/match/trusted.c. */
#include "compare/match/trusted.h"
#include "tests/support/matched_help.h"

#include <math.h>

enum { T = 3, D = 4 };

/* A recording of these numbers of `embed` and of `final_norm`. */
static void record(const char *name, const float *embed, const float *norm)
{
	vn_store *s = begin_recording(name, T, 0, NULL);

	begin_step(s, 0, 0, T, 0, T);
	put_tensor(s, "embed", "", T, D, embed);
	put_tensor(s, "final_norm", "", T, D, norm);
	commit(s);
}

/* Matches a.h5 and b.h5, and believes digests. */
static void match_trusting(matched *m)
{
	match_files(m, "a.h5", "b.h5");
	CU_ASSERT_EQUAL_FATAL(m->st, VN_OK);
	vn_trust_digests(&m->c.opened, &m->c.result.checkpoints, &m->c.result.remarks);
}

static bool has_line(const vn_lines *l, const char *want)
{
	bool found = false;
	for (int i = 0; i < l->n; i++)
		found = found || strcmp(l->line[i], want) == 0;
	return found;
}

static float x[T * D], y[T * D];

static void fill(void)
{
	for (int i = 0; i < T * D; i++) {
		x[i] = (float)(i + 1);
		y[i] = (float)(i * i);
	}
}

static void equal_digests_are_believed_and_others_are_not(void)
{
	matched m = { .o = { .trust = true, .threads = 1 } };
	float   z[T * D];

	fill();
	memcpy(z, y, sizeof z);
	z[5] += 1;
	record("a.h5", x, y);
	record("b.h5", x, z);
	match_trusting(&m);
	CU_ASSERT_EQUAL(matched_as(&m, "embed")->status, VN_EQUAL);
	CU_ASSERT_NOT_EQUAL(matched_as(&m, "final_norm")->status, VN_EQUAL);
	/* 12 numbers of 4 bytes */
	CU_ASSERT_TRUE(has_line(&m.c.result.remarks.notes,
	                        "1 checkpoint of 48 bytes is equal by its digest and not read (--trust-digests): whether "
	                        "the files hold these numbers was not checked"));
	end_matched(&m);
}

static void with_strict_it_is_a_warning(void)
{
	matched m = { .o = { .trust = true, .strict = true, .threads = 1 } };

	fill();
	record("a.h5", x, y);
	record("b.h5", x, y);
	match_trusting(&m);
	CU_ASSERT_TRUE(has_line(&m.c.result.remarks.warnings,
	                        "2 checkpoints of 96 bytes are equal by their digests and not read (--trust-digests): "
	                        "whether the files hold these numbers was not checked"));
	end_matched(&m);
}

/* Constants prove little, and NaN is never equal: both are read. */
static void constants_and_nan_are_read_all_the_same(void)
{
	matched m = { .o = { .trust = true, .threads = 1 } };

	fill();
	for (int i = 0; i < T * D; i++)
		x[i] = 2;
	y[7] = NAN;
	record("a.h5", x, y);
	record("b.h5", x, y);
	match_trusting(&m);
	CU_ASSERT_NOT_EQUAL(matched_as(&m, "embed")->status, VN_EQUAL);
	CU_ASSERT_NOT_EQUAL(matched_as(&m, "final_norm")->status, VN_EQUAL);
	end_matched(&m);
}

static void digests_are_believed_if_asked_and_without_a_model(void)
{
	vn_compare_options o = { .trust = true };
	vn_comparison      c = { .opened.request.options = &o };

	CU_ASSERT_TRUE(vn_trusts(&c.opened));
	o.model = "model";
	CU_ASSERT_FALSE(vn_trusts(&c.opened));
	o = (vn_compare_options) { .trust = false };
	CU_ASSERT_FALSE(vn_trusts(&c.opened));
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(equal_digests_are_believed_and_others_are_not),
		TEST(with_strict_it_is_a_warning),
		TEST(constants_and_nan_are_read_all_the_same),
		TEST(digests_are_believed_if_asked_and_without_a_model),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("trusted digests", tests);
	return !remove_folder() || failed;
}
