/* test_bpe.c: vocabularies, merges, and the pieces they make; the alphabet of bytes. */
#include "libref/text/bpe.h"
#include "libref/text/bytelevel.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vn_status token(vn_bpe *b, const char *text, int64_t id, vn_error *e)
{
	return vn_bpe_add_token(b, text, strlen(text), id, e);
}

static vn_status merge(vn_bpe *b, const char *left, const char *right, vn_error *e)
{
	return vn_bpe_add_merge(b, left, strlen(left), right, strlen(right), e);
}

/* a b c, then what merges make of them, with ids 0, 1, 2... */
static vn_bpe *abc(bool whole_first, const char *const *more)
{
	vn_bpe  *b = vn_bpe_create(whole_first);
	vn_error e = { "" };
	int64_t  id = 0;

	for (char c = 'a'; c <= 'c'; c++)
		CU_ASSERT_EQUAL(vn_bpe_add_token(b, &c, 1, id++, &e), VN_OK);
	for (; *more; more++)
		CU_ASSERT_EQUAL(token(b, *more, id++, &e), VN_OK);
	return b;
}

#define ABC(whole, ...) abc(whole, (const char *const[]) { __VA_ARGS__, NULL })

/* The tokens of a piece, as text with blanks between. */
static void encodes(const vn_bpe *b, const char *piece, const char *want)
{
	vn_bpe_work w = { 0 };
	vn_ids      ids = { 0 };
	vn_error    e = { "" };
	char        have[256] = "";

	CU_ASSERT_EQUAL(vn_bpe_encode(b, piece, strlen(piece), &w, &ids, &e), VN_OK);
	for (size_t i = 0; i < ids.n; i++) {
		size_t      n;
		const char *text = vn_bpe_text(b, ids.id[i], &n);
		snprintf(have + strlen(have), sizeof have - strlen(have), "%s%.*s", i ? " " : "", (int)n, text);
	}
	CU_ASSERT_STRING_EQUAL(have, want);
	free(ids.id);
	vn_bpe_work_finish(&w);
}

static void bytes_have_characters_of_their_own(void)
{
	/* specs/models.md, "Bytes to characters" */
	static const struct {
		unsigned char byte;
		const char   *text;
	} known[] = {
		{ 32, "\xc4\xa0" },   { 10, "\xc4\x8a" },   { 9, "\xc4\x89" },    { 0x7f, "\xc4\xa1" },
		{ 0xa0, "\xc5\x82" }, { 0xad, "\xc5\x83" }, { 'a', "a" },         { '!', "!" },
		{ '~', "~" },         { 0xa1, "\xc2\xa1" }, { 0xff, "\xc3\xbf" }, { 0, "\xc4\x80" },
	};
	char   all[256], text[512], back[512];
	size_t n;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		n = vn_bytelevel_write(text, (const char *)&known[i].byte, 1);
		CU_ASSERT(n == strlen(known[i].text) && memcmp(text, known[i].text, n) == 0);
	}
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	n = vn_bytelevel_write(text, all, 256);
	CU_ASSERT(vn_bytelevel_read(back, &n, text, n) && n == 256 && memcmp(back, all, 256) == 0);
	CU_ASSERT_FALSE(vn_bytelevel_read(back, &n, "a b", 3));      /* a blank is no character of it */
	CU_ASSERT_FALSE(vn_bytelevel_read(back, &n, "\xc2\xad", 2)); /* U+00AD */
	CU_ASSERT_FALSE(vn_bytelevel_read(back, &n, "\xc5\x84", 2)); /* U+0144, the first behind it */
	CU_ASSERT_FALSE(vn_bytelevel_read(back, &n, "\xe4\xb8\xad", 3));
	CU_ASSERT_FALSE(vn_bytelevel_read(back, &n, "\xff", 1));
}

static void the_lowest_rank_goes_first(void)
{
	/* specs/models.md, "Merging" */
	vn_bpe *b = ABC(false, "bc", "ab", "abc");

	CU_ASSERT(!merge(b, "b", "c", NULL) && !merge(b, "a", "b", NULL) && !merge(b, "a", "bc", NULL));
	encodes(b, "abcab", "abc ab");
	encodes(b, "", "");
	encodes(b, "a", "a");
	encodes(b, "cab", "c ab");
	vn_bpe_destroy(b);
}

static void of_equal_ranks_the_leftmost_goes_first(void)
{
	vn_bpe *b = ABC(false, "aa", "aaaa");

	CU_ASSERT(!merge(b, "a", "a", NULL) && !merge(b, "aa", "aa", NULL));
	encodes(b, "aaa", "aa a");
	encodes(b, "aaaaaaa", "aaaa aa a");
	vn_bpe_destroy(b);
}

static void a_pair_that_has_become_another_is_not_merged(void)
{
	vn_bpe *b = ABC(false, "ab", "bc", "abc", "ca");

	CU_ASSERT(!merge(b, "b", "c", NULL) && !merge(b, "c", "a", NULL) && !merge(b, "a", "b", NULL));
	encodes(b, "abca", "a bc a");
	encodes(b, "bcbcab", "bc bc ab");
	vn_bpe_destroy(b);
}

static void a_merge_given_twice_has_its_later_rank(void)
{
	vn_bpe *b = ABC(false, "ab", "bc");

	CU_ASSERT(!merge(b, "a", "b", NULL) && !merge(b, "b", "c", NULL) && !merge(b, "a", "b", NULL));
	encodes(b, "abc", "a bc");
	vn_bpe_destroy(b);
}

static void a_piece_that_is_a_token_may_be_taken_whole(void)
{
	vn_bpe *b = ABC(true, "ab", "cab"), *merging = ABC(false, "ab", "cab");

	CU_ASSERT(!merge(b, "a", "b", NULL) && !merge(merging, "a", "b", NULL));
	encodes(b, "cab", "cab");
	encodes(b, "cabc", "c ab c");
	encodes(merging, "cab", "c ab");
	vn_bpe_destroy(b);
	vn_bpe_destroy(merging);
}

static void refused(vn_status st, const vn_error *e, vn_status want, const char *text)
{
	CU_ASSERT_EQUAL(st, want);
	CU_ASSERT_STRING_EQUAL(e->text, text);
}

static void contradictions_are_refused(void)
{
	vn_bpe  *b = ABC(false, "ab");
	vn_error e = { "" };

	refused(token(b, "d", 1, &e), &e, VN_ERR_FORMAT, "'b' and 'd' have the same id 1");
	refused(token(b, "a", 9, &e), &e, VN_ERR_FORMAT, "'a' is listed twice, with the ids 0 and 9");
	refused(token(b, "d", -1, &e), &e, VN_ERR_FORMAT, "'d' has the id -1, expected 0 to 4194303");
	refused(token(b, "d", 1 << 22, &e), &e, VN_ERR_FORMAT, "'d' has the id 4194304, expected 0 to 4194303");
	refused(token(b, "d", INT64_MAX, &e), &e, VN_ERR_FORMAT,
	        "'d' has the id 9223372036854775807, expected 0 to 4194303");
	refused(token(b, "", 9, &e), &e, VN_ERR_FORMAT, "the token is empty");
	refused(merge(b, "x", "b", &e), &e, VN_ERR_FORMAT, "'x' is not in the vocabulary");
	refused(merge(b, "a", "x", &e), &e, VN_ERR_FORMAT, "'x' is not in the vocabulary");
	refused(merge(b, "b", "c", &e), &e, VN_ERR_FORMAT, "'bc' is not in the vocabulary");
	refused(merge(b, "", "c", &e), &e, VN_ERR_FORMAT, "'' is not in the vocabulary");
	CU_ASSERT_EQUAL(vn_bpe_ids(b), 4);
	CU_ASSERT_EQUAL(token(b, "d", 1000, &e), VN_OK);
	CU_ASSERT_EQUAL(vn_bpe_ids(b), 1001);
	CU_ASSERT_EQUAL(vn_bpe_find(b, "d", 1), 1000);
	vn_bpe_destroy(b);
}

static void a_byte_without_a_token_is_refused(void)
{
	vn_bpe     *b = ABC(false, "ab");
	vn_bpe_work w = { 0 };
	vn_ids      ids = { 0 };
	vn_error    e = { "" };

	refused(vn_bpe_encode(b, "a\xff", 2, &w, &ids, &e), &e, VN_ERR_UNSUPPORTED,
	        "the vocabulary has no token for the byte 0xff");
	free(ids.id);
	vn_bpe_work_finish(&w);
	vn_bpe_destroy(b);
}

static void long_texts_of_tokens_are_found(void)
{
	static char left[700], right[700], both[1401];
	vn_bpe     *b = ABC(false, "ab");

	memset(left, 'a', sizeof left - 1);
	memset(right, 'b', sizeof right - 1);
	snprintf(both, sizeof both, "%s%s", left, right);
	CU_ASSERT(!token(b, left, 10, NULL) && !token(b, right, 11, NULL));
	CU_ASSERT_EQUAL(merge(b, left, right, NULL), VN_ERR_FORMAT);
	CU_ASSERT_EQUAL(token(b, both, 12, NULL), VN_OK);
	CU_ASSERT_EQUAL(merge(b, left, right, NULL), VN_OK);
	vn_bpe_destroy(b);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(bytes_have_characters_of_their_own),
		TEST(the_lowest_rank_goes_first),
		TEST(of_equal_ranks_the_leftmost_goes_first),
		TEST(a_pair_that_has_become_another_is_not_merged),
		TEST(a_merge_given_twice_has_its_later_rank),
		TEST(a_piece_that_is_a_token_may_be_taken_whole),
		TEST(contradictions_are_refused),
		TEST(a_byte_without_a_token_is_refused),
		TEST(long_texts_of_tokens_are_found),
		CU_TEST_INFO_NULL,
	};
	return run_suite("bpe", tests);
}
