/* test_weights_report.c: tests compare/weights/weights_report.c. */
#include "compare/weights/weights_report.h"
#include "tests/support/weights_help.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static vn_weight_row        row[2];
static vn_weight_difference found[40];
static vn_weight_line       line[40];

/* A table of n lines, one difference each. */
static vn_weights table(int n)
{
	static char which[40][32];

	for (int k = 0; k < 2; k++) {
		row[k] = (vn_weight_row) { .name = "layers.0.q", .dtype = k ? VN_F16 : VN_BF16, .shape = { 2, { 2, 3 } } };
		snprintf(row[k].digest.hex, sizeof row[k].digest.hex, "%s", k ? "" : "abc");
		row[k].stats = (vn_stats) { .min = -1, .max = 2, .mean = 0.5, .rms = k ? (double)INFINITY : 1.5 };
	}
	for (int i = 0; i < n; i++) {
		snprintf(which[i], sizeof which[i], "<%d>", i);
		found[i] = (vn_weight_difference) { .row = { &row[0], &row[1] },
			                                .layer = i,
			                                .kind = "rounded",
			                                .id = "W1",
			                                .words = "rounded to float16",
			                                .measured = VN_WEIGHT_APART,
			                                .measure = 0.25,
			                                .proof = VN_PROOF_NUMBERS,
			                                .certain = true };
		line[i] = (vn_weight_line) { .which = which[i], .side = { "bf16", "f16" }, .first = i, .n = 1 };
	}
	return (vn_weights) {
		.n = { 9, 8 }, .same = 5, .rounded = 1, .found = found, .n_found = n, .line = line, .n_lines = n
	};
}

/* What a writer writes; the caller frees it. */
#define WRITTEN(call) \
	do { \
		size_t size; \
		FILE  *out = open_memstream(&text, &size); \
		call; \
		fclose(out); \
	} while (0)

static int count(const char *text, const char *what)
{
	int n = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

static void a_terminal_gets_a_table(void)
{
	const vn_weights w = table(2);
	char            *text = NULL;
	json_t          *j = vn_weights_json(&w);

	WRITTEN(vn_weights_text(j, 0, out));
	CU_ASSERT_STRING_EQUAL(
		text, "weights    2 of 8 differ\n"
			  "       reference  candidate  difference\n"
			  "  <0>  bf16       f16        rounded to float16 (W1), 25 % apart; certain, by the numbers\n"
			  "  <1>  bf16       f16        rounded to float16 (W1), 25 % apart; certain, by the numbers\n");
	free(text);
	json_decref(j);
}

/* One row too many takes no more room than the line that says so. */
static void a_long_table_is_cut(void)
{
	const vn_weights w = table(6);
	char            *text = NULL;
	json_t          *j = vn_weights_json(&w);

	WRITTEN(vn_weights_text(j, 4, out));
	CU_ASSERT_EQUAL(count(text, "certain"), 4);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n  2 more rows (vernier weights shows them all)\n"));
	free(text);
	WRITTEN(vn_weights_text(j, 5, out));
	CU_ASSERT_EQUAL(count(text, "certain"), 6);
	CU_ASSERT_PTR_NULL(strstr(text, "more"));
	free(text);
	json_decref(j);
}

static void one_line_is_enough_for_equal_weights(void)
{
	vn_weights w = table(0);
	char      *text = NULL;

	w.rounded = 0;
	json_t *j = vn_weights_json(&w);
	WRITTEN(vn_weights_text(j, 0, out));
	CU_ASSERT_STRING_EQUAL(text, "weights    5, all equal\n");
	free(text);
	WRITTEN(vn_weights_text(NULL, 0, out));
	CU_ASSERT_STRING_EQUAL(text, "");
	free(text);
	json_decref(j);
}

static void refusals_are_a_summary_and_a_line_a_row(void)
{
	const vn_weights w = table(2);
	vn_lines         l = { 0 };

	vn_weights_lines(&w, &l);
	CU_ASSERT_EQUAL_FATAL(l.n, 3);
	CU_ASSERT_STRING_EQUAL(l.line[0], "weights: 2 of 8 differ");
	CU_ASSERT_STRING_EQUAL(l.line[1],
	                       "weights: <0>: bf16, f16: rounded to float16 (W1), 25 % apart; certain, by the numbers");
	vn_lines_free(&l);
}

static void programs_get_every_number(void)
{
	const vn_weights w = table(1);
	json_t          *j = vn_weights_json(&w), *group = json_array_get(json_object_get(j, "groups"), 0),
		   *one = json_array_get(json_object_get(group, "weights"), 0), *ref = json_object_get(one, "reference"),
		   *cand = json_object_get(one, "candidate");

	CU_ASSERT_EQUAL(json_integer_value(json_object_get(j, "reference")), 9);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(j, "same")), 5);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(j, "differ")), 1);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(group, "id")), "W1");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(group, "evidence")), "numbers");
	CU_ASSERT_TRUE(json_is_true(json_object_get(group, "certain")));
	CU_ASSERT_EQUAL(json_real_value(json_object_get(one, "relative_difference")), 0.25);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(ref, "digest")), "abc");
	CU_ASSERT_TRUE(json_is_null(json_object_get(cand, "digest")));
	CU_ASSERT_EQUAL(json_real_value(json_object_get(ref, "rms")), 1.5);
	CU_ASSERT_TRUE(json_is_null(json_object_get(cand, "rms"))); /* JSON has no infinity */
	CU_ASSERT_EQUAL(json_integer_value(json_array_get(json_object_get(ref, "shape"), 1)), 3);
	json_decref(j);
	j = vn_weights_json(NULL);
	CU_ASSERT_TRUE(json_is_null(j));
	json_decref(j);
}

/* Names come from files. */
static void pages_escape_what_files_say(void)
{
	const vn_weights w = table(1);
	char            *text = NULL;
	json_t          *j = vn_weights_json(&w);

	WRITTEN(vn_weights_html(j, out));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<code>&lt;0&gt;</code></td><td data-head=\"reference\">bf16</td>"));
	CU_ASSERT_EQUAL(count(text, "<0>"), 0);
	CU_ASSERT_EQUAL(count(text, "<dt>weights</dt>"), 1);
	free(text);
	json_decref(j);
	line[0].which = (char[]) { "a|b" };
	j = vn_weights_json(&w);
	WRITTEN(vn_weights_markdown(j, out));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "- **Weights** 1 of 7 differ\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "a|b")); /* a cell's end */
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "| certain, by the numbers |\n"));
	free(text);
	json_decref(j);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_terminal_gets_a_table),
		TEST(a_long_table_is_cut),
		TEST(one_line_is_enough_for_equal_weights),
		TEST(refusals_are_a_summary_and_a_line_a_row),
		TEST(programs_get_every_number),
		TEST(pages_escape_what_files_say),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_report", tests);
}
