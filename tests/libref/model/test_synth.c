/* test_synth.c: requests for a synthetic model that are refused, and the fate of the model that it
 * replaces. Writing one takes 300 megabytes (the smallest shape is a published one): one test does
 * so, the benchmarks do more. */
#include "libref/family/family.h"
#include "libref/model/synth.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

#include <sys/resource.h>

static char dir[256];

static void an_unknown_shape_is_refused_with_the_known_ones(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_synth_write("gpt9", toy_path(dir, "m"), &(vn_synth_options) { .layers = 1 }, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "'gpt9'"));
	for (int i = 0; vn_synth_shape(i); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, vn_synth_shape(i)));
	CU_ASSERT_PTR_NULL(vn_synth_shape(-1));
	CU_ASSERT_NOT_EQUAL(access(toy_path(dir, "m"), F_OK), 0);
}

/* As many numbers as their model cards count. */
static void every_shape_has_the_size_that_is_published(void)
{
	const struct {
		const char *shape;
		double      millions;
		int         layers;
	} row[] = {
		{ "gpt2-medium", 354.8, 24 },        { "llama-3.2-1b", 1235.8, 16 }, { "mistral-7b", 7241.7, 32 },
		{ "mixtral-8x7b", 46702.8, 32 },     { "olmoe-1b-7b", 6919.2, 16 },  { "qwen3-30b-a3b", 30532.1, 48 },
		{ "qwen2-0.5b", 494.0, 24 },         { "qwen3-0.6b", 596.0, 28 },    { "qwen3.5-0.8b", 752.4, 24 },
		{ "gemma-2-2b", 2614.3, 26 },        { "gemma-3-4b", 3880.3, 34 },   { "gpt-oss-20b", 20914.8, 24 },
		{ "deepseek-v2-lite", 15706.5, 27 }, { "tiny", 0.163, 3 },
	};
	size_t   known = 0;
	vn_plan *p;
	vn_error e;

	while (vn_synth_shape((int)known))
		known++;
	CU_ASSERT_EQUAL(known, sizeof row / sizeof *row);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		for (int layers = 0; layers < 2; layers++) {
			int64_t n = 0;
			CU_ASSERT_EQUAL_FATAL(vn_synth_plan(row[i].shape, layers, &p, &e), VN_OK);
			for (int w = 0; w < p->n_weights; w++)
				n += vn_shape_count(&p->weight[w].shape);
			CU_ASSERT_EQUAL(p->layers, layers ? 1 : row[i].layers);
			CU_ASSERT(layers ||
			          ((double)n > (row[i].millions - 0.1) * 1e6 && (double)n < (row[i].millions + 0.1) * 1e6));
			vn_plan_destroy(p);
		}
}

/* The names and shapes of transformers' GptOssExperts, and of Qwen3-MoE's checkpoint. */
static void the_file_has_the_tensors_that_transformers_reads(void)
{
	static const struct {
		const char *shape, *family, *name;
		vn_shape    stored;
	} row[] = {
		{ "gpt-oss-20b", "gpt_oss", "experts.gate_up_proj", { 3, { 32, 2880, 5760 } } },
		{ "gpt-oss-20b", "gpt_oss", "experts.gate_up_proj_bias", { 2, { 32, 5760 } } },
		{ "gpt-oss-20b", "gpt_oss", "experts.down_proj", { 3, { 32, 2880, 2880 } } },
		{ "gpt-oss-20b", "gpt_oss", "experts.down_proj_bias", { 2, { 32, 2880 } } },
		{ "qwen3-30b-a3b", "qwen3_moe", "experts.7.down_proj.weight", { 2, { 2048, 768 } } },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_plan        *p;
		vn_error        e;
		vn_synth_tensor t;
		int64_t         numbers = 0, all = 0;
		int             found = 0;

		CU_ASSERT_EQUAL_FATAL(vn_synth_plan(row[i].shape, 1, &p, &e), VN_OK);
		const vn_family *family = vn_family_named(row[i].family);
		for (int w = 0; w < p->n_weights; w++) {
			all += vn_shape_count(&p->weight[w].shape);
			if (!vn_synth_stored(family, p, w, &t))
				continue;
			numbers += vn_shape_count(&t.shape);
			const char *tail = strstr(t.name, row[i].name);
			if (tail && !tail[strlen(row[i].name)]) {
				found++;
				CU_ASSERT(vn_shape_equal(&t.shape, &row[i].stored));
			}
		}
		CU_ASSERT_EQUAL(found, 1);
		CU_ASSERT_EQUAL(numbers, all);
		vn_plan_destroy(p);
	}
}

static void a_directory_that_exists_is_left_alone_without_force(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", dir, &(vn_synth_options) { .layers = 1 }, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "exists"));
	CU_ASSERT_EQUAL(access(dir, F_OK), 0);
}

static void layers_that_cannot_be_are_refused_and_leave_nothing(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", toy_path(dir, "m"), &(vn_synth_options) { .layers = -1 }, &e),
	                VN_ERR_FORMAT);
	CU_ASSERT_NOT_EQUAL(access(toy_path(dir, "m"), F_OK), 0);
	CU_ASSERT_NOT_EQUAL(access(toy_path(dir, "m.partial"), F_OK), 0);
}

static void a_place_that_is_not_there_is_an_io_error(void)
{
	vn_error e = { "" };

	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", toy_path(dir, "no/where"), &(vn_synth_options) { .layers = 1 }, &e),
	                VN_ERR_IO);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "no/where"));
}

/* dir/m with these files, each of one word: the model that is there already. */
static void put_file(const char *folder, const char *name, const char *word)
{
	char path[600];
	mkdir(toy_path(dir, folder), 0777);
	snprintf(path, sizeof path, "%s/%s/%s", dir, folder, name);
	FILE *f = fopen(path, "w");
	if (!f || fputs(word, f) < 0 || fclose(f) != 0)
		toy_die(path);
}

/* dir/m with a config and with weights that begin as those of synth. */
static void put_model(const char *folder)
{
	put_file(folder, "config.json", "old");
	put_file(folder, "model.safetensors", "8 bytes {\"__metadata__\":{\"format\":\"pt\",\"provenance\":\"synthetic\"}");
}

static bool still(const char *folder, const char *name, const char *word)
{
	char path[600], text[64] = "";
	snprintf(path, sizeof path, "%s/%s/%s", dir, folder, name);
	FILE *f = fopen(path, "r");
	if (!f)
		return false;
	const bool same = fgets(text, sizeof text, f) && strcmp(text, word) == 0;
	fclose(f);
	return same;
}

static bool exists(const char *name)
{
	return access(toy_path(dir, name), F_OK) == 0;
}

static void force_refuses_what_holds_more_than_a_model(void)
{
	vn_error e = { "" };

	put_file("more", "config.json", "old");
	put_file("more", "model.safetensors", "old");
	put_file("more", "tokenizer.json", "old");
	CU_ASSERT_EQUAL(
		vn_synth_write("qwen2-0.5b", toy_path(dir, "more"), &(vn_synth_options) { .layers = 1, .force = true }, &e),
		VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "tokenizer.json"));
	CU_ASSERT(still("more", "config.json", "old") && still("more", "model.safetensors", "old"));
	CU_ASSERT_TRUE(still("more", "tokenizer.json", "old"));
	CU_ASSERT_FALSE(exists("more.partial"));

	put_file("half.partial", "notes", "mine"); /* what stands where it would write is nobody else's */
	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", toy_path(dir, "half"), &(vn_synth_options) { .layers = 1 }, &e),
	                VN_ERR_USAGE);
	CU_ASSERT_TRUE(still("half.partial", "notes", "mine"));

	CU_ASSERT_EQUAL(symlink("more", toy_path(dir, "link")), 0);
	CU_ASSERT_EQUAL(
		vn_synth_write("qwen2-0.5b", toy_path(dir, "link"), &(vn_synth_options) { .layers = 1, .force = true }, &e),
		VN_ERR_USAGE);
}

static void a_full_disk_leaves_the_old_model_and_nothing_else(void)
{
	vn_error      e = { "" };
	struct rlimit old, small;

	put_model("full");
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit) { 1 << 20, old.rlim_max };
	setrlimit(RLIMIT_FSIZE, &small);
	CU_ASSERT_EQUAL(
		vn_synth_write("qwen2-0.5b", toy_path(dir, "full"), &(vn_synth_options) { .layers = 1, .force = true }, &e),
		VN_ERR_IO);
	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", toy_path(dir, "new/"), &(vn_synth_options) { .layers = 1 }, &e),
	                VN_ERR_IO);
	setrlimit(RLIMIT_FSIZE, &old);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "new.partial/model.safetensors"));
	CU_ASSERT(still("full", "config.json", "old") && exists("full/model.safetensors"));
	CU_ASSERT(!exists("full.partial") && !exists("full.old") && !exists("new") && !exists("new.partial"));
}

static void force_replaces_a_model_when_the_new_one_is_whole(void)
{
	vn_error    e = { "" };
	struct stat s;
	char        path[600];

	put_model("m");
	CU_ASSERT_EQUAL(vn_synth_write("qwen2-0.5b", toy_path(dir, "m//"),
	                               &(vn_synth_options) { .layers = 1, .dtype = VN_BF16, .force = true }, &e),
	                VN_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	CU_ASSERT_FALSE(still("m", "config.json", "old"));
	snprintf(path, sizeof path, "%s/m/model.safetensors", dir);
	CU_ASSERT(stat(path, &s) == 0 && s.st_size > 2 * 151936 * 896);
	CU_ASSERT(!exists("m.partial") && !exists("m.old"));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(an_unknown_shape_is_refused_with_the_known_ones),
		TEST(every_shape_has_the_size_that_is_published),
		TEST(the_file_has_the_tensors_that_transformers_reads),
		TEST(a_directory_that_exists_is_left_alone_without_force),
		TEST(layers_that_cannot_be_are_refused_and_leave_nothing),
		TEST(a_place_that_is_not_there_is_an_io_error),
		TEST(force_refuses_what_holds_more_than_a_model),
		TEST(a_full_disk_leaves_the_old_model_and_nothing_else),
		TEST(force_replaces_a_model_when_the_new_one_is_whole),
		CU_TEST_INFO_NULL,
	};

	toy_directory(dir);
	const int failures = run_suite("synth", tests);
	toy_remove(dir);
	return failures;
}
