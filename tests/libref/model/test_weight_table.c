/* test_weight_table.c: the table of weights that threads compute beside other work. */
#include "libref/model/weight_table.h"
#include "libref/model/synth.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

static char      dir[256], path[512];
static vn_model *model;
static int       n;

static void the_digits_do_not_depend_on_threads_nor_on_parts(void)
{
	const int      threads[] = { 1, 2, 5, 64 };
	const size_t   usual = vn_weight_table_least;
	vn_weight_row *one = calloc((size_t)n, sizeof *one), *row = calloc((size_t)n, sizeof *row);

	CU_ASSERT_FATAL(one && row);
	vn_model_table(model, 1, one);
	for (int i = 0; i < n; i++) {
		const vn_tensor *w = &vn_model_weights(model)[i];
		const size_t     count = (size_t)vn_shape_count(&w->shape);
		const vn_stats   stats = vn_stats_of(w->data, w->dtype, count);
		const vn_digest  digest = vn_digest_of(w->data, vn_dtype_bytes(w->dtype, count));
		CU_ASSERT_EQUAL(memcmp(&one[i].stats, &stats, sizeof stats), 0);
		CU_ASSERT_STRING_EQUAL(one[i].digest.hex, digest.hex);
	}
	vn_weight_table_least = 1; /* so that the embedding, of eight blocks, and the other matrices are divided */
	for (size_t k = 0; k < 2 * (sizeof threads / sizeof *threads); k++) {
		memset(row, 0, (size_t)n * sizeof *row);
		if (k % 2) {
			vn_model_table(model, threads[k / 2], row);
		} else {
			vn_weight_table *t = vn_weight_table_start(model, threads[k / 2], row);
			CU_ASSERT_PTR_NOT_NULL_FATAL(t);
			vn_weight_table_finish(t, false);
		}
		for (int i = 0; i < n; i++) {
			CU_ASSERT_STRING_EQUAL(row[i].name, one[i].name);
			CU_ASSERT_STRING_EQUAL(row[i].digest.hex, one[i].digest.hex);
			CU_ASSERT_EQUAL(memcmp(&row[i].stats, &one[i].stats, sizeof one[i].stats), 0);
		}
	}
	memset(row, 0, (size_t)n * sizeof *row);
	vn_model_digests(model, 5, row);
	for (int i = 0; i < n; i++) {
		CU_ASSERT_STRING_EQUAL(row[i].digest.hex, one[i].digest.hex);
		CU_ASSERT_EQUAL(row[i].stats.n, 0);
	}
	vn_weight_table_least = usual;
	free(one);
	free(row);
}

static void one_that_is_not_wanted_any_more_ends(void)
{
	vn_weight_row   *row = calloc((size_t)n, sizeof *row);
	vn_weight_table *t = row ? vn_weight_table_start(model, 2, row) : NULL;

	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	vn_weight_table_finish(t, true);
	free(row);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_digits_do_not_depend_on_threads_nor_on_parts),
		TEST(one_that_is_not_wanted_any_more_ends),
		CU_TEST_INFO_NULL,
	};
	const vn_synth_options o = { .layers = 1, .dtype = VN_F32 };
	vn_error               err = { "" };

	toy_directory(dir);
	snprintf(path, sizeof path, "%s/tiny", dir);
	if (vn_synth_write("tiny", path, &o, &err) || vn_model_open(path, &model, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	n = vn_model_plan(model)->n_weights;
	const int failures = run_suite("weight_table", tests);
	vn_model_close(model);
	toy_remove(dir);
	return failures;
}
