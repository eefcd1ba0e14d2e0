/* test_output.c: reports whose file appeared after the first check. */
#include "capture/file/output.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/test_output_XXXXXX";

static void write_report(const char *text)
{
	FILE *f = fopen("report", "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void expect_text(const char *want)
{
	char  have[100] = "";
	FILE *f = fopen("report", "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT(fread(have, 1, sizeof have - 1, f) > 0);
	fclose(f);
	CU_ASSERT_STRING_EQUAL(have, want);
}

static void expect_no_temporary(void)
{
	CU_ASSERT_EQUAL(system("test \"$(ls)\" = report"), 0);
}

/* If two processes write the same report, the second fails and says what to do. */
static void a_file_that_appears_meanwhile_is_kept(void)
{
	vn_output o;
	vn_error  err = { "" };

	unlink("report");
	CU_ASSERT_EQUAL_FATAL(vn_output_open(&o, "report", VN_PLACE_REPORT, false, &err), VN_OK);
	fputs("mine", o.file);
	write_report("theirs");
	CU_ASSERT_EQUAL(vn_output_close(&o, VN_OK, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(
		err.text,
		"report: another program has created it in the meantime, and it stays; run this command again with --force, or "
		"with another name"));
	expect_text("theirs");
	expect_no_temporary();
}

static void force_replaces_our_own_only(void)
{
	vn_output o;
	vn_error  err = { "" };

	write_report("notes");
	CU_ASSERT_EQUAL(vn_output_open(&o, "report", VN_PLACE_REPORT, true, &err), VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is not a report of vernier; --force replaces only those"));
	write_report("### \xE2\x9C\x85 vernier: within limits\n");
	CU_ASSERT_EQUAL_FATAL(vn_output_open(&o, "report", VN_PLACE_REPORT, true, &err), VN_OK);
	fputs("mine", o.file);
	CU_ASSERT_EQUAL(vn_output_close(&o, VN_OK, &err), VN_OK);
	expect_text("mine");
	expect_no_temporary();
}

static void a_heading_with_the_word_further_down_is_not_ours(void)
{
	vn_error err = { "" };

	write_report("### Notes\nwhat vernier: said\n");
	CU_ASSERT_EQUAL(vn_place_check("report", VN_PLACE_REPORT, true, &err), VN_ERR_IO);
	expect_text("### Notes\nwhat vernier: said\n");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_file_that_appears_meanwhile_is_kept),
		TEST(force_replaces_our_own_only),
		TEST(a_heading_with_the_word_further_down_is_not_ours),
		CU_TEST_INFO_NULL,
	};
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return 1;
	const int status = run_suite("output", tests);
	unlink("report");
	rmdir(folder);
	return status;
}
