/* test_json.c: JSON, above all when memory runs out: Jansson's k-th allocation
 * fails, for every k; for every third with a sanitizer. */
#include "libref/base/json.h"

#include "capture/file/plan_json.h"
#include "libref/base/sanitizer.h"
#include "libref/base/trouble.h"
#include "tests/support/plan_help.h"

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

static size_t asked; /* bytes of all allocations, with malloc's own */

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
	asked += n < 24 ? 32 : (n + 8 + 15) / 16 * 16;
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

/* The members that vn_json_next reads, as an object; NULL: it refuses the text. */
static json_t *collected(const char *text, size_t bytes, json_error_t *why)
{
	vn_json_members m = { .text = text, .bytes = bytes };
	json_t         *name, *value, *all = json_object();

	while (vn_json_next(&m, &name, &value, why)) {
		json_object_set_new(all, json_string_value(name), value);
		json_decref(name);
	}
	CU_ASSERT_TRUE(!name && !value);
	if (!*why->text)
		return all;
	json_decref(all);
	return NULL;
}

static void members_one_at_a_time_are_those_of_the_whole(void)
{
	static const char *const text[] = {
		"{}",
		" { \n } \t\r\n",
		"{\"a\":1}",
		"{ \"a\" : 1 , \"b\" : [ {} , \"}\" ] }  ",
		"{\"\\u00e4 \\\" \xc3\xa4\":{\"a\":{\"a\":null}},\"\":-1.5e3}",
		"{\"t\":true,\"f\":false,\"n\":null,\"s\":\"x,\\\"}\"}",
		"",
		"   ",
		"{",
		"[]",
		"7",
		"\"a\":1",
		"{\"a\"",
		"{\"a\":",
		"{\"a\":1",
		"{\"a\":1,",
		"{\"a\":1,}",
		"{,}",
		"{\"a\":1,,\"b\":2}",
		"{\"a\" 1}",
		"{\"a\":1 \"b\":2}",
		"{\"a\":1;\"b\":2}",
		"{a:1}",
		"{1:1}",
		"{\"a\":}",
		"{\"a\":tru}",
		"{\"a\":truex}",
		"{\"a\":01}",
		"{\"a\":1.}",
		"{\"a\":99999999999999999999}",
		"{\"a\":{\"b\":1,\"b\":1}}",
		"{\"a\xff\":1}",
		"{\"a\":\"\xc3\"}",
		"{\"a\":1\xc3\xa4}",
		"{\"a\\u0000\":1}",
		"{\"a\":1}x",
		"{\"a\":1}}",
		"{\"a\":1}{\"a\":1}",
		"{\"a\n\":1}",
	};

	for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
		const size_t bytes = strlen(text[i]);
		json_error_t why, of_all;
		char        *exact = malloc(bytes + 1); /* a sanitizer sees what is read behind it */
		memcpy(exact, text[i], bytes);
		json_t *want = vn_json_load(text[i], bytes, JSON_REJECT_DUPLICATES, &of_all);
		json_t *have = collected(exact, bytes, &why);
		if (want && json_is_array(want)) { /* an object is asked for */
			json_decref(want);
			want = NULL;
		}
		CU_ASSERT_EQUAL(have != NULL, want != NULL);
		CU_ASSERT_TRUE(!want || json_equal(have, want));
		CU_ASSERT_TRUE(have || (why.position >= 0 && why.position <= (int)bytes));
		if (!have != !want)
			fprintf(stderr, "%s: %s\n", text[i], have ? "read" : why.text);
		json_decref(want);
		json_decref(have);
		free(exact);
	}
}

static void a_wrong_member_is_told_with_its_place(void)
{
	json_error_t why;

	CU_ASSERT_PTR_NULL(collected("{\"a\":1,\"bc\":tru}", 16, &why));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "tru"));
	CU_ASSERT_EQUAL(why.position, 15);
	CU_ASSERT_PTR_NULL(collected("{\"a\":1 \"b\":2}", 13, &why));
	CU_ASSERT_STRING_EQUAL(why.text, "',' or '}' expected");
	CU_ASSERT_EQUAL(why.position, 7);
	CU_ASSERT_PTR_NULL(collected("{\"a\":[1\0],\"b\":2}", 15, &why)); /* Jansson would pass over it */
	CU_ASSERT_STRING_EQUAL(why.text, "NUL byte");
	CU_ASSERT_EQUAL(why.position, 7);
}

static void a_member_is_read_whole_or_not_at_all(void)
{
	static const char text[] =
		"{\"a long name of 40 bytes or so, and more\":[1,\"another long text\"],\"b\":{\"c\":1}}";
	long         k = 1, failed = 0;
	json_error_t why;

	sticky = false;
	for (fired = true; fired; k++) {
		vn_json_members m = { .text = text, .bytes = sizeof text - 1 };
		json_t         *name, *value;
		int             n = 0;
		fail_at(k);
		while (vn_json_next(&m, &name, &value, &why)) {
			CU_ASSERT_TRUE(n++ ? json_object_size(value) == 1 : json_array_size(value) == 2);
			json_decref(name);
			json_decref(value);
		}
		left = 0;
		CU_ASSERT_EQUAL(fired, strcmp(why.text, "not enough memory") == 0);
		CU_ASSERT_TRUE(fired || n == 2);
		failed += fired;
	}
	CU_ASSERT_TRUE(failed > 10);
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

/* The elements of a member's list, as text; what is wrong behind them is in *why. */
static void list_of(const char *text, char *found, json_error_t *why)
{
	vn_json_members m = { .text = text, .bytes = strlen(text) };
	json_t         *name, *value;
	bool            begun = false;

	*found = 0;
	CU_ASSERT_TRUE_FATAL(vn_json_key(&m, &name, why));
	json_decref(name);
	while (vn_json_element(&m, &begun, &value, why)) {
		sprintf(found + strlen(found), "%d ", (int)json_integer_value(value));
		json_decref(value);
	}
}

static void a_list_is_read_an_element_at_a_time(void)
{
	static const struct {
		const char *text, *found, *wrong;
	} cases[] = {
		{ "{\"a\": [1, 2,3 ] , \"b\": 4}", "1 2 3 ", "" },
		{ "{\"a\":[]}", "", "" },
		{ "{\"a\":[1 2]}", "1 ", "',' or ']' expected" },
		{ "{\"a\":[1,]}", "1 ", "" },
		{ "{\"a\":{}}", "", "'[' expected" },
		{ "{\"a\":[1", "1 ", "',' or ']' expected" },
	};
	char         found[40];
	json_error_t why;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		list_of(cases[i].text, found, &why);
		CU_ASSERT_STRING_EQUAL(found, cases[i].found);
		if (i != 3) /* there the words are Jansson's */
			CU_ASSERT_STRING_EQUAL(why.text, cases[i].wrong);
		CU_ASSERT_EQUAL(*why.text == 0, i < 2);
	}
}

/* The text of a list of n copies of a value. */
static char *make_list(const char *value, size_t n, size_t *bytes)
{
	const size_t one = strlen(value) + 1;
	char        *text = malloc(n * one + 2);

	text[0] = '[';
	for (size_t i = 0; i < n; i++) {
		memcpy(text + 1 + i * one, value, one - 1);
		text[(i + 1) * one] = ',';
	}
	text[ *bytes = n * one] = ']';
	++*bytes;
	return text;
}

static void a_tree_beyond_its_bound_is_not_loaded(void)
{
	static const char *const value[] = { "{}", "[]", "\"\"", "1", "\"\\\"],[\"", "{\"a\":1}", "[\"a\",\"b\"]" };
	enum { FEW = 1000 };

	for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
		size_t       bytes;
		char        *few = make_list(value[i], FEW, &bytes);
		json_error_t why;
		asked = 0;
		json_t      *j = vn_json_load(few, bytes, 0, &why);
		const size_t each = asked / FEW;
		CU_ASSERT_EQUAL(json_array_size(j), FEW);
		CU_ASSERT_TRUE(each > 0);
		json_decref(j);
		free(few);
		char *many = make_list(value[i], VN_JSON_MOST / each, &bytes);
		asked = 0;
		CU_ASSERT_PTR_NULL(vn_json_load(many, bytes, 0, &why));
		CU_ASSERT_EQUAL(asked, 0);
		CU_ASSERT_STRING_EQUAL(why.text, "its values would take more than 1 GiB of memory");
		free(many);
	}
}

static void what_stands_behind_a_value_does_not_count(void)
{
	size_t          bytes;
	char           *many = make_list("{}", VN_JSON_MOST / 128, &bytes);
	vn_json_members m = { .text = many, .bytes = bytes };
	json_error_t    why;
	json_t         *one;
	bool            begun = false;

	CU_ASSERT_TRUE(vn_json_element(&m, &begun, &one, &why));
	json_decref(one);
	free(many);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_plan_is_written_whole_or_not_at_all),
		TEST(a_plan_is_read_whole_or_not_at_all),
		TEST(a_member_of_an_object_that_is_null_counts_as_absent),
		TEST(members_one_at_a_time_are_those_of_the_whole),
		TEST(a_wrong_member_is_told_with_its_place),
		TEST(a_member_is_read_whole_or_not_at_all),
		TEST(what_was_lost_before_is_not_written_later),
		TEST(what_fails_is_noted_and_counts_from_a_mark),
		TEST(a_list_is_read_an_element_at_a_time),
		TEST(a_tree_beyond_its_bound_is_not_loaded),
		TEST(what_stands_behind_a_value_does_not_count),
		CU_TEST_INFO_NULL,
	};
	return run_suite("json", tests);
}
