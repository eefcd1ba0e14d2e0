/* test_policy.c: precision policies by name. */
#include "libref/plan/policy.h"
#include "tests/support/suite.h"

#include <string.h>

static void every_name_in_the_help_text_is_a_policy_and_leads_back(void)
{
	char list[128];
	int  n = 0;

	CU_ASSERT_FATAL(strlen(vn_policy_names) < sizeof list);
	strcpy(list, vn_policy_names);
	for (char *name = strtok(list, "|"); name; name = strtok(NULL, "|"), n++) {
		vn_policy p;
		CU_ASSERT_TRUE_FATAL(vn_policy_from_name(name, &p));
		CU_ASSERT_STRING_EQUAL(vn_policy_name(p), name);
	}
	CU_ASSERT_EQUAL(n, 8);
}

static void each_policy_stores_and_sums_as_the_header_says(void)
{
	const struct {
		const char *name;
		vn_dtype    storage, sums;
		vn_products products;
	} row[] = {
		{ "f64", VN_F64, VN_F64, VN_PRODUCTS_PLAIN },
		{ "f32", VN_F32, VN_F32, VN_PRODUCTS_PLAIN },
		{ "f16", VN_F16, VN_F32, VN_PRODUCTS_PLAIN },
		{ "f16-acc16", VN_F16, VN_F16, VN_PRODUCTS_PLAIN },
		{ "bf16", VN_BF16, VN_F32, VN_PRODUCTS_PLAIN },
		{ "ggml", VN_F32, VN_F32, VN_PRODUCTS_GGML },
		{ "ggml-kv16", VN_F32, VN_F32, VN_PRODUCTS_GGML_KV16 },
		{ "ggml-flash16", VN_F32, VN_F32, VN_PRODUCTS_GGML_FLASH16 },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_policy p;
		CU_ASSERT_TRUE_FATAL(vn_policy_from_name(row[i].name, &p));
		CU_ASSERT_EQUAL(p.storage, row[i].storage);
		CU_ASSERT_EQUAL(p.sums, row[i].sums);
		CU_ASSERT_EQUAL(p.products, row[i].products);
	}
}

static void a_finer_run_rounds_the_same_products_and_no_attention(void)
{
	const struct {
		const char *name, *fine;
		int         digits;
		vn_products products;
	} row[] = {
		{ "f32", "f64", 23, VN_PRODUCTS_PLAIN },        { "f16", "f32", 10, VN_PRODUCTS_PLAIN },
		{ "bf16", "f32", 7, VN_PRODUCTS_PLAIN },        { "ggml", "f64", 7, VN_PRODUCTS_GGML },
		{ "ggml-flash16", "f64", 7, VN_PRODUCTS_GGML },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_policy p, fine;
		CU_ASSERT_TRUE_FATAL(vn_policy_from_name(row[i].name, &p) && vn_policy_from_name(row[i].fine, &fine));
		fine.products = row[i].products;
		CU_ASSERT_TRUE(vn_policy_same(vn_policy_fine(p), fine));
		CU_ASSERT_EQUAL(vn_policy_digits(p), row[i].digits);
	}
}

static void other_names_are_unknown_and_leave_the_policy_alone(void)
{
	const char *bad[] = { "", "F32", "bf16 ", "bfloat16", "f16 ", "f16-acc32", "f16-acc16 ", "fp16" };
	vn_policy   p = { VN_F64, VN_F64, 0, { 0 } };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CU_ASSERT_FALSE(vn_policy_from_name(bad[i], &p));
	CU_ASSERT_EQUAL(p.storage, VN_F64);
	CU_ASSERT_STRING_EQUAL(vn_policy_name((vn_policy) { VN_BF16, VN_F16, 0, { 0 } }), "unknown");
}

static void a_role_of_another_format_is_part_of_the_name_and_leads_back(void)
{
	char      words[120];
	vn_policy p, q;

	CU_ASSERT_TRUE_FATAL(vn_policy_from_name("f32,cache=f16,products=bf16", &p));
	CU_ASSERT_EQUAL(p.role[VN_ROLE_CACHE], VN_ROLE_F16);
	CU_ASSERT_EQUAL(p.role[VN_ROLE_PRODUCTS], VN_ROLE_BF16);
	CU_ASSERT_EQUAL(p.role[VN_ROLE_SOFTMAX], VN_ROLE_AS_STORED);
	CU_ASSERT_STRING_EQUAL(vn_policy_name(p), "f32,products=bf16,cache=f16");
	CU_ASSERT_TRUE(vn_policy_from_name(vn_policy_name(p), &q) && vn_policy_same(p, q));
	CU_ASSERT_STRING_EQUAL(vn_policy_words(p, words, sizeof words), "products in bf16, cache in f16; all else f32");
	CU_ASSERT_EQUAL(vn_policy_digits(p), 7);
	CU_ASSERT_EQUAL(vn_policy_fine(p).role[VN_ROLE_CACHE], VN_ROLE_F16);
	CU_ASSERT_FALSE(vn_policy_same(p, vn_policy_fine(p)));
	CU_ASSERT_TRUE_FATAL(vn_policy_from_name("bf16,cache=int8-token-prompt", &q));
	CU_ASSERT_EQUAL(q.role[VN_ROLE_CACHE], VN_ROLE_INT8_TOKEN);
	CU_ASSERT_STRING_EQUAL(vn_policy_name(q), "bf16,cache=int8-token-prompt");
	CU_ASSERT_STRING_EQUAL(vn_policy_words(q, words, sizeof words),
	                       "cache of the first call in int8-token; all else bf16");
	CU_ASSERT_TRUE(vn_policy_from_name("bf16,cache=int8-token", &p) && !vn_policy_same(p, q));
	CU_ASSERT_TRUE(vn_policy_from_word("torch.Float32,softmax=f16", &p));
	CU_ASSERT_STRING_EQUAL(vn_policy_name(p), "f32,softmax=f16");
	CU_ASSERT_TRUE(vn_policy_from_word("ggml-kv-q8_0", &p));
	CU_ASSERT_STRING_EQUAL(vn_policy_name(p), "ggml,cache=q8_0-rotated");
}

static void a_role_is_named_once_with_a_format_that_it_can_have(void)
{
	const char *bad[] = { "f32,",
		                  "f32,cache",
		                  "f32,cache=",
		                  "f32,cache=int4",
		                  "f32,kv=f16",
		                  "f32,cache=f16,cache=bf16",
		                  "f32,cache=f16,",
		                  "f32,weights=q8_0-rotated",
		                  "f32 cache=f16",
		                  ",cache=f16",
		                  "f32,linear=f8-scaled",
		                  "f32,products=f16-prompt" };
	const char *gpu = "f16|f32";
	vn_policy   p;
	vn_error    err;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CU_ASSERT_FALSE(vn_policy_from_name(bad[i], &p));
	CU_ASSERT_EQUAL(vn_policy_read("--precision", vn_policy_names, "f32,kv=f16", &p, &err), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cache="));
	CU_ASSERT_EQUAL(vn_policy_read("--precision", gpu, "f32,cache=f16", &p, &err), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_policy_read("--precision", vn_policy_names, "f32,cache=f16", &p, &err), VN_OK);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_name_in_the_help_text_is_a_policy_and_leads_back),
		TEST(each_policy_stores_and_sums_as_the_header_says),
		TEST(a_finer_run_rounds_the_same_products_and_no_attention),
		TEST(a_role_of_another_format_is_part_of_the_name_and_leads_back),
		TEST(a_role_is_named_once_with_a_format_that_it_can_have),
		TEST(other_names_are_unknown_and_leave_the_policy_alone),
		CU_TEST_INFO_NULL,
	};
	return run_suite("policy", tests);
}
