/* test_weights.c: tests compare/weights/weights.c. */
#include "tests/support/llama_help.h"
#include "tests/support/weights_help.h"

#include <math.h>

enum { N = 4 };

static const float x[N][6] = {
	{ 1, 2, 3, 4, 5, 6 }, { -1, 0.5f, 2, -3, 7, 8 }, { 9, 8, 7, 6, 5, 4 }, { 0.25f, 1, 4, 9, 16, 25 }
};

static vn_weight_side side_of(vn_weight_row *rows, vn_tensor *numbers, int n)
{
	return (vn_weight_side) { .row = rows, .n = n, .numbers = numbers };
}

static void each_weight_is_same_rounded_different_or_on_one_side(void)
{
	static const float third = 1.0f / 3;
	float              fine[6], coarse[6], other[6];
	vn_tensor          a[N], b[N];
	vn_weight_row      ra[N], rb[N];

	for (int i = 0; i < 6; i++) {
		fine[i] = third * (float)(i + 1);
		coarse[i] = fine[i];
		other[i] = x[2][i] * (i % 2 ? 1.3f : 0.6f);
	}
	vn_round_f32(coarse, VN_BF16, 6);
	uint16_t half[6];
	for (int i = 0; i < 6; i++) {
		uint32_t bits;
		memcpy(&bits, &coarse[i], sizeof bits);
		half[i] = (uint16_t)(bits >> 16);
	}
	a[0] = b[0] = f32(x[0], 2, 3); /* the same */
	a[1] = f32(fine, 2, 3);        /* rounded to bfloat16 */
	b[1] = (vn_tensor) { VN_BF16, { 2, { 2, 3 } }, half };
	a[2] = f32(x[2], 2, 3); /* otherwise */
	b[2] = f32(other, 2, 3);
	a[3] = f32(x[3], 2, 3); /* on one side */
	b[3] = f32(x[1], 2, 3);
	for (int i = 0; i < N; i++) {
		const char name[] = { 'a' + (char)i, 0 };
		ra[i] = row_of(name, &a[i]);
		rb[i] = row_of(i < 3 ? name : "e", &b[i]);
	}
	const vn_weight_side ref = side_of(ra, a, N), cand = side_of(rb, b, N);
	vn_weights *const    w = vn_weights_compare(&ref, &cand, 1);
	CU_ASSERT_TRUE(w->n[0] == N && w->n[1] == N);
	CU_ASSERT_EQUAL(w->same, 1);
	CU_ASSERT_EQUAL(w->rounded, 1);
	CU_ASSERT_EQUAL(w->n_found, 3); /* c, d and e */
	CU_ASSERT_EQUAL(w->extra, 1);
	bool missing = false, extra = false;
	for (int i = 0; i < w->n_found; i++) {
		const vn_weight_difference *d = &w->found[i];
		missing = missing || (d->row[0] == &ra[3] && !d->row[1]);
		extra = extra || (!d->row[0] && d->row[1] == &rb[3]);
	}
	CU_ASSERT_TRUE(missing && extra);
	char text[VN_WEIGHT_WORDS];
	CU_ASSERT_STRING_EQUAL(vn_weights_summary(w, text), "3 of 5 differ");
	vn_weights_free(w);
}

/* Three numbers of one kind, in one line: their range. */
static void a_line_says_the_range_of_its_measures(void)
{
	static const struct {
		vn_weight_measure measured;
		double            low, high;
		const char       *says;
	} of[] = {
		{ VN_WEIGHT_APART, 0.0512, 0.069, "rounded (W1), 5.1 to 6.9 % apart" },
		{ VN_WEIGHT_APART, 0.05, 0.0501, "rounded (W1), 5 % apart" },
		{ VN_WEIGHT_APART, 1.2345, 2, "rounded (W1), 123 to 200 % apart" },
		{ VN_WEIGHT_PLACES, 12, 3456, "rounded (W1), in 12 to 3456 places" },
		{ VN_WEIGHT_RMS, 0.5, 0.5, "rounded (W1), rms 0.5 times" },
		{ VN_WEIGHT_RMS, 1, INFINITY, "rounded (W1), zeros in the other" },
		{ VN_WEIGHT_CORRELATION, 0.91, 0.99, "rounded (W1), correlation 0.91 to 0.99" },
		{ VN_WEIGHT_NOT_MEASURED, 0, 0, "rounded (W1)" },
	};

	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		vn_weight_difference d[3];
		char                 text[VN_WEIGHT_SAYS];
		for (int k = 0; k < 3; k++) {
			d[k] = (vn_weight_difference) { .words = "rounded",
				                            .measured = of[i].measured,
				                            .measure = k == 1 ? of[i].high : of[i].low };
			snprintf(d[k].id, sizeof d[k].id, "W1");
		}
		const vn_weights     w = { .found = d, .n_found = 3 };
		const vn_weight_line l = { .first = 0, .n = 3 };
		CU_ASSERT_STRING_EQUAL(vn_weight_line_says(&w, &l, text), of[i].says);
	}
}

static void a_line_says_how_sure_it_is(void)
{
	vn_weight_difference d = { .proof = VN_PROOF_DIGEST, .certain = true };
	const vn_weights     w = { .found = &d, .n_found = 1 };
	const vn_weight_line l = { .n = 1 };

	CU_ASSERT_STRING_EQUAL(vn_weight_line_proof(&w, &l), "certain, by digest");
	d.proof = VN_PROOF_STATISTICS;
	d.certain = false;
	CU_ASSERT_STRING_EQUAL(vn_weight_line_proof(&w, &l), "likely, by statistics");
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const vn_weight_row *)a)->name, ((const vn_weight_row *)b)->name);
}

static int weight_named(const vn_model *m, const char *name)
{
	int i = 0;
	while (strcmp(vn_model_weight_name(m, i), name) != 0)
		i++;
	return i;
}

/* The numbers of a model, for those rows that are its own. */
static void numbers_are_found_by_their_digests(void)
{
	vn_error  err = { "" };
	vn_model *m = NULL;

	CU_ASSERT_EQUAL_FATAL(vn_model_open(LLAMA, &m, &err), VN_OK);
	const int      n = vn_model_plan(m)->n_weights;
	vn_weight_row *rows = calloc((size_t)n, sizeof *rows);
	vn_model_table(m, 1, rows);
	qsort(rows, (size_t)n, sizeof *rows, compare_names);
	rows[3].digest.hex[0] = rows[3].digest.hex[0] == '0' ? '1' : '0'; /* of other numbers */
	char other[VN_NAME_MAX];
	snprintf(other, sizeof other, "%s_", rows[5].name);
	rows[5].name = other;
	vn_tensor *numbers = vn_weights_numbers(rows, n, m, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(numbers);
	for (int i = 0; i < n; i++)
		if (i == 3 || i == 5)
			CU_ASSERT_PTR_NULL(numbers[i].data)
		else
			CU_ASSERT_PTR_EQUAL(numbers[i].data, vn_model_weights(m)[weight_named(m, rows[i].name)].data)
	free(numbers);
	for (int i = 0; i < n; i++) {
		snprintf(other, sizeof other, "unrelated%03d", i);
		rows[i].name = vn_intern(other);
	}
	numbers = vn_weights_numbers(rows, n, m, 1);
	CU_ASSERT_PTR_NULL(numbers); /* none is its own */
	free(rows);
	vn_model_close(m);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(each_weight_is_same_rounded_different_or_on_one_side),
		TEST(a_line_says_the_range_of_its_measures),
		TEST(a_line_says_how_sure_it_is),
		TEST(numbers_are_found_by_their_digests),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights", tests);
}
