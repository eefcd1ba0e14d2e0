/* test_intern.c: one copy of each text. */
#include "libref/base/intern.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 20000, THREADS = 4 };

static void two_of_one_text_are_one(void)
{
	char a[] = "layer3.q_rope", b[] = "layer3.q_rope";

	CU_ASSERT_PTR_NOT_EQUAL(vn_intern(a), a);
	CU_ASSERT_PTR_EQUAL(vn_intern(a), vn_intern(b));
	CU_ASSERT_STRING_EQUAL(vn_intern(a), b);
	CU_ASSERT_PTR_NOT_EQUAL(vn_intern("layer3.q_rop"), vn_intern(b));
	CU_ASSERT_STRING_EQUAL(vn_intern(""), "");
}

static void a_text_stays_where_it_is_however_many_come(void)
{
	static const char *kept[MANY];
	char               text[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(text, sizeof text, "layer%d.x", i);
		CU_ASSERT_PTR_NOT_NULL_FATAL(kept[i] = vn_intern(text));
	}
	int wrong = 0;
	for (int i = 0; i < MANY; i++) {
		snprintf(text, sizeof text, "layer%d.x", i);
		wrong += strcmp(kept[i], text) != 0 || vn_intern(text) != kept[i];
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

static void a_text_of_any_length_is_kept(void)
{
	enum { MOST = 200000 };
	char *text = malloc(MOST + 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	for (size_t n = 1; n <= MOST; n = 3 * n + 1) {
		memset(text, 'y', n);
		text[n] = '\0';
		const char *kept = vn_intern(text);
		CU_ASSERT_STRING_EQUAL(kept, text);
		CU_ASSERT_PTR_EQUAL(vn_intern(text), kept);
	}
	free(text);
}

static void *intern_words(void *ctx)
{
	const char **got = ctx;
	char         text[32];

	for (int i = 0; i < MANY; i++) {
		snprintf(text, sizeof text, "thread.%d", i);
		got[i] = vn_intern(text);
	}
	return NULL;
}

static void threads_get_the_same(void)
{
	static const char *got[THREADS][MANY];
	pthread_t          t[THREADS];
	int                wrong = 0;

	for (int i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, intern_words, got[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 1; i < THREADS; i++)
		for (int k = 0; k < MANY; k++)
			wrong += got[i][k] != got[0][k];
	CU_ASSERT_EQUAL(wrong, 0);
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(two_of_one_text_are_one), TEST(a_text_stays_where_it_is_however_many_come),
		                           TEST(a_text_of_any_length_is_kept), TEST(threads_get_the_same), CU_TEST_INFO_NULL };
	return run_suite("intern", tests);
}
