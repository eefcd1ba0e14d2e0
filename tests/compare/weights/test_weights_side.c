/* test_weights_side.c: tests compare/weights/weights_side.c. */
#include "compare/weights/weights_side.h"
#include "compare/weights/weights_internal.h"
#include "tests/support/llama_help.h"

#include <sys/stat.h>

static void write_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	CU_ASSERT_FATAL(f && fwrite(bytes, 1, n, f) == n);
	fclose(f);
}

static const vn_weight_row *row_named(const vn_weight_side *s, const char *name)
{
	for (int i = 0; i < s->n; i++)
		if (strcmp(s->row[i].name, name) == 0)
			return &s->row[i];
	return NULL;
}

/* A model of three tensors, one with a format that no weight has. */
static void the_files_of_a_model_are_summed_up(void)
{
	static const char  config[] = "{\"model_type\": \"unrelated\"}";
	static const char  header[] = "{\"a.weight\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]}, "
								  "\"b.weight\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [24, 32]}, "
								  "\"c.ids\": {\"dtype\": \"I32\", \"shape\": [1], \"data_offsets\": [32, 36]}}";
	static const float x[9] = { 1, -2, 3, 4, 5, 9, 0.5f, 0.5f, 0 };
	const uint64_t     n = sizeof header - 1;
	char               dir[PATH_MAX], file[sizeof n + sizeof header + sizeof x];
	vn_opened_weights  w;
	vn_lines           notes = { 0 };
	vn_error           err = { "" };

	snprintf(dir, sizeof dir, "%s", at("unrelated"));
	CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0700), 0);
	write_file(at("unrelated/config.json"), config, sizeof config - 1);
	memcpy(file, &n, sizeof n);
	memcpy(file + sizeof n, header, n);
	memcpy(file + sizeof n + n, x, sizeof x);
	write_file(at("unrelated/model.safetensors"), file, sizeof n + n + sizeof x);

	const vn_status st = vn_opened_weights_open(dir, 1, &w, &notes, &err);
	if (st)
		printf("\n    %s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	CU_ASSERT_EQUAL(w.side.n, 2);
	CU_ASSERT_PTR_NULL(w.recording);
	CU_ASSERT_PTR_NULL(w.side.plan); /* of no family */
	CU_ASSERT_FALSE(w.side.gguf);
	const vn_weight_row *a = row_named(&w.side, "a.weight"), *b = row_named(&w.side, "b.weight");
	CU_ASSERT_FATAL(a && b);
	CU_ASSERT_TRUE(a->dtype == VN_F32 && a->shape.rank == 2 && a->shape.dim[0] == 2 && a->shape.dim[1] == 3);
	CU_ASSERT_TRUE(a->stats.min == -2 && a->stats.max == 9);
	CU_ASSERT_DOUBLE_EQUAL(a->stats.mean, 20.0 / 6, 1e-12);
	CU_ASSERT_STRING_EQUAL(a->digest.hex, vn_digest_of(x, 24).hex);
	CU_ASSERT_TRUE(b->stats.min == 0.5 && b->stats.max == 0.5);
	CU_ASSERT_EQUAL(memcmp(w.side.numbers[a - w.side.row].data, x, 24), 0);
	CU_ASSERT_EQUAL_FATAL(notes.n, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(notes.line[0], "c.ids: format I32 with rank 1 is not supported; left out"));
	vn_opened_weights_close(&w);
	vn_lines_free(&notes);
}

/* The table of a recording says of each weight what the files say. */
static void a_recording_has_the_table_of_its_model(void)
{
	vn_opened_weights of_run, of_files;
	vn_lines          notes = { 0 };
	vn_error          err = { "" };

	CU_ASSERT_EQUAL_FATAL(record_llama("run.h5", NULL, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_opened_weights_open(at("run.h5"), 1, &of_run, &notes, &err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_opened_weights_open(LLAMA, 1, &of_files, &notes, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(of_run.recording);
	CU_ASSERT_PTR_NULL(of_run.side.numbers); /* it holds none */
	CU_ASSERT_PTR_NOT_NULL_FATAL(of_run.side.plan);
	CU_ASSERT_PTR_NOT_NULL_FATAL(of_files.side.plan);
	CU_ASSERT_EQUAL(of_run.side.plan->n_weights, of_files.side.plan->n_weights);
	CU_ASSERT_TRUE(of_run.side.n > 0);
	for (int i = 0; i < of_run.side.n; i++) {
		const vn_weight_row *x = &of_run.side.row[i], *y = vn_weight_twin(of_files.side.row, of_files.side.n, x->name);
		CU_ASSERT_FATAL(y != NULL);
		CU_ASSERT_STRING_EQUAL(x->digest.hex, y->digest.hex);
	}
	vn_opened_weights_close(&of_run);
	vn_opened_weights_close(&of_files);
	vn_lines_free(&notes);
}

static void what_holds_no_weights_is_refused_by_its_name(void)
{
	vn_opened_weights w;
	vn_lines          notes = { 0 };
	vn_error          err = { "" };

	write_file(at("noise"), "neither", 7);
	CU_ASSERT_NOT_EQUAL(vn_opened_weights_open(at("noise"), 1, &w, &notes, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, at("noise")));
	CU_ASSERT_TRUE(!w.recording && !w.source && !w.rows);
	CU_ASSERT_NOT_EQUAL(vn_opened_weights_open(at("absent"), 1, &w, &notes, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, at("absent")));
	write_file(at("cut.gguf"), "GGUF", 4); /* taken as a model by its first bytes */
	CU_ASSERT_NOT_EQUAL(vn_opened_weights_open(at("cut.gguf"), 1, &w, &notes, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, at("cut.gguf")));
	CU_ASSERT_PTR_NULL(strstr(err.text, "HDF5"));
	vn_lines_free(&notes);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(the_files_of_a_model_are_summed_up),
		TEST(a_recording_has_the_table_of_its_model),
		TEST(what_holds_no_weights_is_refused_by_its_name),
		CU_TEST_INFO_NULL,
	};
	if (!make_folder())
		return 1;
	const int failed = run_suite("weights_side", tests);
	return !remove_folder() || failed;
}
