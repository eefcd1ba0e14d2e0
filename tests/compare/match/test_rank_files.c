/* test_rank_files.c: tests compare/match/rank_files.c. */
#include "compare/match/rank_files.h"
#include "tests/support/suite.h"
#include "tests/support/folder.h"

#include <sys/stat.h>
#include <unistd.h>

static void touch(const char *name)
{
	FILE *f = fopen(at(name), "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fclose(f);
}

static bool ends_in(const char *path, const char *end)
{
	return strlen(path) >= strlen(end) && strcmp(path + strlen(path) - strlen(end), end) == 0;
}

static void a_folder_lists_its_ranks_by_their_numbers(void)
{
	static const char *const want[] = { "/tp/rank0.h5", "/tp/rank2.h5", "/tp/rank10.h5" };
	vn_rank_files            r;
	vn_error                 err = { "" };
	char                     with_slash[PATH_MAX];

	CU_ASSERT_EQUAL_FATAL(mkdir(at("tp"), 0700), 0);
	touch("tp/rank10.h5");
	touch("tp/rank0.h5");
	touch("tp/rank2.h5");
	touch("tp/notes.txt");
	CU_ASSERT_TRUE(vn_rank_files_named(at("tp")));
	snprintf(with_slash, sizeof with_slash, "%s/", at("tp"));
	for (int slash = 0; slash < 2; slash++) {
		CU_ASSERT_EQUAL(vn_rank_files_of(slash ? with_slash : at("tp"), &r, &err), VN_OK);
		CU_ASSERT_EQUAL_FATAL(r.n, 3);
		for (int i = 0; i < 3; i++) {
			CU_ASSERT_TRUE(ends_in(r.file[i], want[i]));
			CU_ASSERT_EQUAL(access(r.file[i], F_OK), 0);
		}
		vn_rank_files_free(&r);
	}
}

static void files_are_joined_by_commas(void)
{
	vn_rank_files r;
	vn_error      err = { "" };

	CU_ASSERT_TRUE(vn_rank_files_named("b.h5,a.h5"));
	CU_ASSERT_EQUAL(vn_rank_files_of("b.h5,a.h5,c", &r, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(r.n, 3);
	CU_ASSERT_STRING_EQUAL(r.file[0], "b.h5"); /* in the order that was given */
	CU_ASSERT_STRING_EQUAL(r.file[1], "a.h5");
	CU_ASSERT_STRING_EQUAL(r.file[2], "c");
	vn_rank_files_free(&r);
	CU_ASSERT_TRUE(r.n == 0 && !r.file);
}

static void a_file_with_a_comma_in_its_name_is_one(void)
{
	vn_rank_files r;
	vn_error      err = { "" };

	touch("a,b.h5");
	CU_ASSERT_FALSE(vn_rank_files_named(at("a,b.h5")));
	CU_ASSERT_EQUAL(vn_rank_files_of(at("a,b.h5"), &r, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(r.n, 1);
	CU_ASSERT_STRING_EQUAL(r.file[0], at("a,b.h5"));
	vn_rank_files_free(&r);
	CU_ASSERT_FALSE(vn_rank_files_named("absent.h5"));
}

static void an_empty_name_and_an_empty_folder_are_refused(void)
{
	static const char *const bad[] = { "a.h5,,b.h5", ",a.h5", "a.h5," };
	vn_rank_files            r;
	vn_error                 err = { "" };

	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(vn_rank_files_of(bad[i], &r, &err), VN_ERR_USAGE);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i]));
		vn_rank_files_free(&r);
	}
	CU_ASSERT_EQUAL(vn_rank_files_of(bad[2], &r, &err), VN_ERR_USAGE);
	vn_rank_files_free(&r);
	CU_ASSERT_EQUAL_FATAL(mkdir(at("empty"), 0700), 0);
	CU_ASSERT_EQUAL(vn_rank_files_of(at("empty"), &r, &err), VN_ERR_NOTFOUND);
	vn_rank_files_free(&r);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_folder_lists_its_ranks_by_their_numbers),
		TEST(files_are_joined_by_commas),
		TEST(a_file_with_a_comma_in_its_name_is_one),
		TEST(an_empty_name_and_an_empty_folder_are_refused),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("rank_files", tests);
	return !remove_folder() || failed;
}
