/* test_shards.c: weights in one file or many, and an index that lies. */
#include "libref/model/shards.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

/* A fresh directory d with shards 1 (tensors a, b) and 2 (tensor c), no index yet. */
static void two_files(char *d)
{
	toy_model m = { 0 };

	toy_directory(d);
	toy_add(&m, "a", VN_F32, 2, 3);
	toy_add(&m, "b", VN_F16, 4, 0);
	toy_add(&m, "c", VN_BF16, 5, 0);
	toy_save_part(&m, 0, 2, d, "1.safetensors", NULL);
	toy_save_part(&m, 2, 3, d, "2.safetensors", "{\"provenance\":\"trained\"}");
	toy_free(&m);
}

static void index_of(const char *d, const char *json)
{
	toy_write_text(d, "model.safetensors.index.json", json);
}

#define GOOD \
	"{\"metadata\":{\"total_size\":1},\"weight_map\":{\"c\":\"2.safetensors\",\"a\":\"1.safetensors\"," \
	"\"b\":\"1.safetensors\"}}"

/* Checks that the model is refused with this status and that the message has every one of these
 * words. */
static void refused(const char *d, vn_status want, const char *const *word)
{
	vn_shards s;
	vn_error  e = { "" };

	CU_ASSERT_EQUAL(vn_shards_open(d, &s, &e), want);
	CU_ASSERT_EQUAL(s.n_files, 0);
	CU_ASSERT_PTR_NULL(s.all);
	for (; *word; word++) {
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, *word));
		if (!strstr(e.text, *word))
			fprintf(stderr, "wanted '%s', have '%s'\n", *word, e.text);
	}
	vn_shards_close(&s);
}

#define REFUSED(d, status, ...) refused(d, status, (const char *const[]) { __VA_ARGS__, NULL })

static void an_index_gathers_its_files_sorted_by_name(void)
{
	vn_shards s;
	vn_error  e = { "untouched" };
	char      d[256];

	two_files(d);
	index_of(d, GOOD);
	CU_ASSERT_EQUAL_FATAL(vn_shards_open(d, &s, &e), VN_OK);
	CU_ASSERT_EQUAL(s.n, 3);
	CU_ASSERT_EQUAL(s.n_files, 2);
	CU_ASSERT_EQUAL(s.unlisted, 0);
	CU_ASSERT_STRING_EQUAL(s.all[0].name, "a");
	CU_ASSERT_STRING_EQUAL(s.all[2].name, "c");
	CU_ASSERT_STRING_EQUAL(s.all[1].name, "b");
	CU_ASSERT_PTR_NOT_NULL(strstr(s.all[2].path, "2.safetensors"));
	CU_ASSERT_STRING_EQUAL(e.text, "untouched");
	vn_shards_close(&s);
	CU_ASSERT_PTR_NULL(s.all);
	vn_shards_close(&s);
	toy_remove(d);
}

static void a_single_file_needs_no_index_and_is_preferred(void)
{
	toy_model m = { 0 };
	vn_shards s;
	char      d[256];

	two_files(d);
	index_of(d, "not even JSON");
	toy_add(&m, "only", VN_F32, 2, 2);
	toy_save_part(&m, 0, 1, d, "model.safetensors", NULL);
	CU_ASSERT_EQUAL_FATAL(vn_shards_open(d, &s, NULL), VN_OK);
	CU_ASSERT_EQUAL(s.n, 1);
	CU_ASSERT_STRING_EQUAL(s.all[0].name, "only");
	vn_shards_close(&s);
	toy_free(&m);
	toy_remove(d);
}

static void a_directory_with_neither_says_so(void)
{
	char d[256];

	toy_directory(d);
	REFUSED(d, VN_ERR_NOTFOUND, d, "model.safetensors", "index.json");
	toy_remove(d);
	REFUSED(d, VN_ERR_NOTFOUND, d);
}

static void a_file_that_leaves_the_directory_is_refused(void)
{
	const char *bad[] = { "../../etc/passwd", "/etc/passwd", "..",      "a/../../b", "a/..",
		                  "../1.safetensors", "./../x",      "a//../b", "" };
	char        json[256], d[256];

	two_files(d);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(json, sizeof json, "{\"weight_map\":{\"a\":\"%s\"}}", bad[i]);
		index_of(d, json);
		REFUSED(d, VN_ERR_FORMAT, "index.json", ": a: ", bad[i], "is outside the model's directory");
	}
	toy_remove(d);
}

static void dots_that_stay_inside_are_only_names(void)
{
	const char *good[] = { "..x.safetensors", "x...safetensors", "sub/x.safetensors" };
	toy_model   m = { 0 };
	vn_shards   s;
	char        json[256], d[256];

	toy_directory(d);
	mkdir(toy_path(d, "sub"), 0700);
	toy_add(&m, "a", VN_F32, 1, 0);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		toy_save_part(&m, 0, 1, d, good[i], NULL);
		snprintf(json, sizeof json, "{\"weight_map\":{\"a\":\"%s\"}}", good[i]);
		index_of(d, json);
		CU_ASSERT_EQUAL(vn_shards_open(d, &s, NULL), VN_OK);
		CU_ASSERT_EQUAL(s.n, 1);
		vn_shards_close(&s);
	}
	toy_free(&m);
	toy_remove(d);
}

static void a_missing_shard_is_named(void)
{
	char d[256];

	two_files(d);
	index_of(d, GOOD);
	remove(toy_path(d, "2.safetensors"));
	REFUSED(d, VN_ERR_NOTFOUND, "index.json", "2.safetensors", "is not there");
	toy_remove(d);
}

static void a_shard_that_is_broken_is_named(void)
{
	char d[256];

	two_files(d);
	index_of(d, GOOD);
	toy_write(d, "2.safetensors", "x", 1);
	REFUSED(d, VN_ERR_FORMAT, "index.json", "2.safetensors", "too short");
	remove(toy_path(d, "2.safetensors"));
	mkdir(toy_path(d, "2.safetensors"), 0700);
	REFUSED(d, VN_ERR_IO, "2.safetensors", "not a regular file");
	toy_remove(d);
}

static void a_tensor_that_is_listed_and_not_there_is_named(void)
{
	char d[256];

	two_files(d);
	index_of(d, "{\"weight_map\":{\"a\":\"1.safetensors\",\"lost\":\"2.safetensors\"}}");
	REFUSED(d, VN_ERR_NOTFOUND, "index.json", "lost", "2.safetensors", "does not hold it");
	toy_remove(d);
}

static void a_tensor_in_two_files_is_refused(void)
{
	toy_model m = { 0 };
	char      d[256];

	two_files(d);
	toy_add(&m, "b", VN_F16, 4, 0);
	toy_add(&m, "c", VN_BF16, 5, 0);
	toy_save_part(&m, 0, 2, d, "2.safetensors", NULL);
	index_of(d, GOOD);
	REFUSED(d, VN_ERR_FORMAT, ".safetensors", ": b is in two files");
	toy_free(&m);
	toy_remove(d);
}

static void one_file_spelled_in_two_ways_is_one_file(void)
{
	vn_shards s;
	char      d[256];

	two_files(d);
	index_of(d, "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\".//./1.safetensors\"}}");
	CU_ASSERT_EQUAL_FATAL(vn_shards_open(d, &s, NULL), VN_OK);
	CU_ASSERT_EQUAL(s.n_files, 1);
	CU_ASSERT_EQUAL(s.n, 2);
	vn_shards_close(&s);
	toy_remove(d);
}

static void a_tensor_that_is_not_listed_is_counted_and_kept(void)
{
	vn_shards s;
	char      d[256];

	two_files(d);
	index_of(d, "{\"weight_map\":{\"a\":\"1.safetensors\",\"c\":\"2.safetensors\"}}");
	CU_ASSERT_EQUAL_FATAL(vn_shards_open(d, &s, NULL), VN_OK);
	CU_ASSERT_EQUAL(s.unlisted, 1);
	CU_ASSERT_STRING_EQUAL(s.unlisted_name[0], "b");
	CU_ASSERT_EQUAL(s.n, 3);
	CU_ASSERT_STRING_EQUAL(s.all[1].name, "b");
	vn_shards_close(&s);
	toy_remove(d);
}

static void an_index_that_is_no_index_is_refused(void)
{
	const char *bad[] = { "",
		                  "[]",
		                  "7",
		                  "{}",
		                  "{\"weight_map\":7}",
		                  "{\"weight_map\":[]}",
		                  "{\"weight_map\":{}}",
		                  "{\"weight_map\":{\"a\":\"x\"}",
		                  "{\"weight_map\":{\"a\":7}}",
		                  "{\"weight_map\":{\"a\":null}}",
		                  "{\"weight_map\":{\"a\":\"1.safetensors\",\"a\":\"2.safetensors\"}}" };
	char        d[256];

	two_files(d);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		index_of(d, bad[i]);
		REFUSED(d, VN_ERR_FORMAT, "model.safetensors.index.json");
	}
	index_of(d, "{\"weight_map\":\n{,}}");
	REFUSED(d, VN_ERR_FORMAT, "index.json:2:2:");
	toy_remove(d);
}

static void a_path_that_is_too_long_is_refused(void)
{
	static char path[5000];

	memset(path, 'x', sizeof path - 1);
	REFUSED(path, VN_ERR_USAGE, "xxxx");
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(an_index_gathers_its_files_sorted_by_name),
		TEST(a_single_file_needs_no_index_and_is_preferred),
		TEST(a_directory_with_neither_says_so),
		TEST(a_file_that_leaves_the_directory_is_refused),
		TEST(dots_that_stay_inside_are_only_names),
		TEST(a_missing_shard_is_named),
		TEST(a_shard_that_is_broken_is_named),
		TEST(a_tensor_that_is_listed_and_not_there_is_named),
		TEST(a_tensor_in_two_files_is_refused),
		TEST(one_file_spelled_in_two_ways_is_one_file),
		TEST(a_tensor_that_is_not_listed_is_counted_and_kept),
		TEST(an_index_that_is_no_index_is_refused),
		TEST(a_path_that_is_too_long_is_refused),
		CU_TEST_INFO_NULL,
	};
	return run_suite("shards", tests);
}
