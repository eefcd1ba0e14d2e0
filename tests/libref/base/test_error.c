/* test_error.c: the message that a failure leaves for the user. */
#include "libref/base/error.h"
#include "tests/support/suite.h"

#include <string.h>

static void a_failure_returns_its_status_and_writes_its_text(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_fail(&e, VN_ERR_SHAPE, "%s: rank %d", "w", 3), VN_ERR_SHAPE);
	CU_ASSERT_STRING_EQUAL(e.text, "w: rank 3");
}

static void a_second_failure_replaces_the_first(void)
{
	vn_error e = { "" };

	vn_fail(&e, VN_ERR_IO, "a long first text");
	vn_fail(&e, VN_ERR_IO, "short");
	CU_ASSERT_STRING_EQUAL(e.text, "short");
}

static void context_is_put_before_what_is_there(void)
{
	vn_error e = { "" };

	vn_fail(&e, VN_ERR_IO, "disk full");
	CU_ASSERT_EQUAL(vn_context(&e, VN_ERR_IO, "layer %d", 7), VN_ERR_IO);
	CU_ASSERT_EQUAL(vn_context(&e, VN_ERR_IO, "run.h5"), VN_ERR_IO);
	CU_ASSERT_STRING_EQUAL(e.text, "run.h5: layer 7: disk full");
}

static void nobody_needs_to_listen(void)
{
	CU_ASSERT_EQUAL(vn_fail(NULL, VN_ERR_NOMEM, "x"), VN_ERR_NOMEM);
	CU_ASSERT_EQUAL(vn_context(NULL, VN_ERR_NOMEM, "x"), VN_ERR_NOMEM);
}

/* Names come from files: a line break or an escape must not reach a terminal. */
static void a_text_is_one_line_without_what_is_not_printable(void)
{
	vn_error e = { "" };

	vn_fail(&e, VN_ERR_FORMAT, "a\nb\033[2Jc\177d\te");
	CU_ASSERT_STRING_EQUAL(e.text, "a\\nb\\u{1b}[2Jc\\u{7f}d\\te");
	vn_context(&e, VN_ERR_FORMAT, "x\r\n");
	CU_ASSERT_STRING_EQUAL(e.text, "x\\r\\n: a\\nb\\u{1b}[2Jc\\u{7f}d\\te");
}

static void letters_outside_ascii_are_kept(void)
{
	vn_error e = { "" };

	vn_fail(&e, VN_ERR_FORMAT, "gewichte/gr\303\266\303\237e");
	CU_ASSERT_STRING_EQUAL(e.text, "gewichte/gr\303\266\303\237e");
}

static void a_long_text_is_cut_and_keeps_its_beginning(void)
{
	static char long_text[4 * VN_ERROR_MAX];
	vn_error    e = { "" };

	memset(long_text, 'a', sizeof long_text - 1);
	vn_fail(&e, VN_ERR_FORMAT, "%s", long_text);
	CU_ASSERT_EQUAL(strlen(e.text), VN_ERROR_MAX - 1);

	vn_context(&e, VN_ERR_FORMAT, "file");
	CU_ASSERT_EQUAL(strlen(e.text), VN_ERROR_MAX - 1);
	CU_ASSERT_EQUAL(strncmp(e.text, "file: aaa", 9), 0);

	vn_fail(&e, VN_ERR_FORMAT, "cause");
	vn_context(&e, VN_ERR_FORMAT, "%s", long_text);
	CU_ASSERT_EQUAL(strlen(e.text), VN_ERROR_MAX - 1);
	CU_ASSERT_EQUAL(e.text[0], 'a');
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_failure_returns_its_status_and_writes_its_text),
		TEST(a_second_failure_replaces_the_first),
		TEST(context_is_put_before_what_is_there),
		TEST(nobody_needs_to_listen),
		TEST(a_text_is_one_line_without_what_is_not_printable),
		TEST(letters_outside_ascii_are_kept),
		TEST(a_long_text_is_cut_and_keeps_its_beginning),
		CU_TEST_INFO_NULL,
	};
	return run_suite("error", tests);
}
