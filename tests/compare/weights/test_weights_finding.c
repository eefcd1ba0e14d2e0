/* test_weights_finding.c: tests compare/weights/weights_finding.c. */
#include "compare/weights/weights_finding.h"
#include "tests/support/suite.h"

#include <string.h>

static vn_weight_difference d;

static uint64_t shards(int n, int by)
{
	vn_weight_is(&d, 1, VN_PROOF_DIGEST, VN_FOUND(SHARDS_ROTATED), n, by);
	return d.key;
}

static uint64_t scaled(int side, const char *name, double by)
{
	vn_weight_is(&d, side, VN_PROOF_NUMBERS, VN_FOUND(SCALED), name, *name ? ", " : "", by);
	return d.key;
}

static void a_finding_has_its_title_kind_and_id(void)
{
	vn_weight_is(&d, 0, VN_PROOF_STATISTICS, VN_FOUND(SHARDS_ROTATED), 8, 3);
	CU_ASSERT_STRING_EQUAL(d.words, "in the reference: its 8 shards rotated by 3");
	CU_ASSERT_STRING_EQUAL(d.kind, "shards");
	CU_ASSERT_STRING_EQUAL(d.id, "W19");
	CU_ASSERT_FALSE(d.certain);
}

static void the_key_is_of_the_finding_its_side_and_its_parameters(void)
{
	CU_ASSERT_EQUAL(shards(8, 3), shards(8, 3));
	CU_ASSERT_NOT_EQUAL(shards(8, 3), shards(8, 2));
	CU_ASSERT_NOT_EQUAL(shards(8, 3), shards(4, 3));
	CU_ASSERT_NOT_EQUAL(scaled(1, "K", 64), scaled(0, "K", 64));
	CU_ASSERT_NOT_EQUAL(scaled(1, "K", 64), scaled(1, "", 64));
	vn_weight_is(&d, 1, VN_PROOF_TABLE, VN_FOUND(MORE_ROWS), 5LL);
	const uint64_t more = d.key;
	vn_weight_is(&d, 1, VN_PROOF_TABLE, VN_FOUND(FEWER_ROWS), 5LL);
	CU_ASSERT_NOT_EQUAL(d.key, more);
	vn_weight_is(&d, 1, VN_PROOF_TABLE, VN_FOUND(FEWER_ROWS), 5LL + (1LL << 32));
	CU_ASSERT_NOT_EQUAL(d.key, more);
}

/* A factor measured in two layers. */
static void a_factor_counts_to_six_digits(void)
{
	CU_ASSERT_EQUAL(scaled(1, "", 0.1234561), scaled(1, "", 0.1234562));
	CU_ASSERT_NOT_EQUAL(scaled(1, "", 0.123456), scaled(1, "", 0.123457));
}

/* A title that lost its %s would show less than its key separates. */
static void a_title_has_a_conversion_for_each_parameter(void)
{
	static const char *const titles[] = {
#define WEIGHT(name, mistake, kind, title) title,
#include "libref/plan/catalogue.def"
	};

	for (int i = 0; i < VN_N_FOUND; i++) {
		char   types[8] = "";
		size_t n = 0;
		for (const char *at = titles[i]; (at = strchr(at, '%')) && n < sizeof types - 1; at++) {
			at += strcspn(at, "sdlg"); /* %.60s, %lld */
			types[n++] = *at;
		}
		CU_ASSERT_STRING_EQUAL(types, vn_weight_entry_of((vn_weight_finding)i)->parameters);
	}
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(a_finding_has_its_title_kind_and_id),
		TEST(the_key_is_of_the_finding_its_side_and_its_parameters),
		TEST(a_factor_counts_to_six_digits),
		TEST(a_title_has_a_conversion_for_each_parameter),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_finding", tests);
}
