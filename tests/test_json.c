/* test_json.c: JSON, above all when memory runs out: Jansson's k-th allocation
 * fails, for every k; for every third with a sanitizer. */
#include "libref/base/json.h"

#include "capture/file/plan_json.h"
#include "libref/base/sanitizer.h"
#include "libref/base/trouble.h"
#include "tests/plan_help.h"

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

/* A load that ends at a failed allocation leaks Jansson's memory (json.h). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libjansson";
}

#ifdef VN_SANITIZED
enum { STEP = 3 };
#else
enum { STEP = 1 };
#endif

static long left;   /* the allocation that fails, counted from 1; 0: none */
static bool sticky; /* and all behind it */
static bool fired;

static void fail_at(long k)
{
	left = k;
	fired = false;
}

void *__wrap_malloc(size_t n)
{
	const bool now = (fired && sticky && left) || left == 1;

	if (left > 1)
		left--;
	else if (now && !sticky)
		left = 0;
	fired |= now;
	return now ? NULL : __real_malloc(n);
}

static bool same_lines(char **a, int n, char **b, int m)
{
	bool same = n == m;
	for (int i = 0; same && i < n; i++)
		same = strcmp(a[i], b[i]) == 0;
	return same;
}

static bool same_text(const vn_plan_text *a, const vn_plan_text *b)
{
	return same_lines(a->node, a->n_nodes, b->node, b->n_nodes) &&
	       same_lines(a->value, a->n_values, b->value, b->n_values) &&
	       same_lines(a->weight, a->n_weights, b->weight, b->n_weights);
}

/* Lets the k-th allocation fail. Returns false if there were fewer. */
static bool write_once(const vn_plan *p, const vn_plan_text *good, long k)
{
	vn_plan_text t;
	vn_error     err = { "" };

	fail_at(k);
	const vn_status st = vn_plan_to_text(p, &t, &err);
	left = 0;
	if (st) {
		CU_ASSERT_EQUAL(st, VN_ERR_NOMEM);
		CU_ASSERT_TRUE(*err.text != '\0');
	} else {
		CU_ASSERT_TRUE(same_text(&t, good));
		vn_plan_text_free(&t);
	}
	return fired;
}

static void a_plan_is_written_whole_or_not_at_all(void)
{
	vn_plan     *p = toy();
	vn_plan_text good;
	vn_error     err;

	CU_ASSERT_EQUAL_FATAL(vn_plan_to_text(p, &good, &err), VN_OK);
	for (int s = 0; s < 2; s++) {
		long k = 1;
		sticky = s;
		while (write_once(p, &good, k))
			k += STEP;
		CU_ASSERT_TRUE(k > 1000); /* it came to the end of the plan */
	}
	vn_plan_text_free(&good);
	vn_plan_destroy(p);
}

static void a_plan_is_read_whole_or_not_at_all(void)
{
	vn_plan     *p = toy(), *again = NULL;
	vn_plan_text t;
	vn_error     err;
	long         k = 1, failed = 0;

	sticky = false;
	CU_ASSERT_EQUAL_FATAL(vn_plan_to_text(p, &t, &err), VN_OK);
	for (fired = true; fired; k += STEP) {
		fail_at(k);
		const vn_status st = vn_plan_from_text(&t, &again, &err);
		left = 0;
		if (!st)
			CU_ASSERT_TRUE(vn_plan_equal(p, again));
		failed += st != VN_OK;
		vn_plan_destroy(again);
		again = NULL;
	}
	CU_ASSERT_TRUE(failed > 1000 / STEP);
	vn_plan_text_free(&t);
	vn_plan_destroy(p);
}

static void a_member_of_an_object_that_is_null_counts_as_absent(void)
{
	json_t *o = vn_json_parse("{\"a\": 0, \"b\": null}", 0);

	CU_ASSERT_PTR_NOT_NULL(vn_json_field(o, "a"));
	CU_ASSERT_PTR_NULL(vn_json_field(o, "b"));
	CU_ASSERT_PTR_NULL(vn_json_field(o, "c"));
	CU_ASSERT_PTR_NULL(vn_json_field(vn_json_field(o, "a"), "b"));
	CU_ASSERT_PTR_NULL(vn_json_field(NULL, "a"));
	json_decref(o);
}

static void what_was_lost_before_is_not_written_later(void)
{
	json_t *o = json_object();

	fail_at(1);
	json_object_set_new(o, "a", json_integer(1)); /* and nobody looks */
	left = 0;
	CU_ASSERT_PTR_NULL(vn_json_dump(o, 0));
	char *text = vn_json_dump(o, 0); /* told once */
	CU_ASSERT_PTR_NOT_NULL(text);
	free(text);
	json_decref(o);
}

static void what_fails_is_noted_and_counts_from_a_mark(void)
{
	vn_error       err = { "" };
	const unsigned before = vn_trouble_mark();

	CU_ASSERT_EQUAL(vn_trouble_since(before, "x", &err), VN_OK);
	vn_fail(NULL, VN_ERR_FORMAT, "a damaged file");
	CU_ASSERT_EQUAL(vn_trouble_since(before, "x", &err), VN_OK);
	vn_fail(NULL, VN_ERR_NOMEM, "no memory");
	CU_ASSERT_EQUAL(vn_trouble_since(before, "x", &err), VN_ERR_NOMEM);
	CU_ASSERT_EQUAL(vn_trouble_since(vn_trouble_mark(), "x", &err), VN_OK);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_plan_is_written_whole_or_not_at_all),
		TEST(a_plan_is_read_whole_or_not_at_all),
		TEST(a_member_of_an_object_that_is_null_counts_as_absent),
		TEST(what_was_lost_before_is_not_written_later),
		TEST(what_fails_is_noted_and_counts_from_a_mark),
		CU_TEST_INFO_NULL,
	};
	return run_suite("json", tests);
}
