/* test_places.c: tests compare/text/places.c. */
#include "compare/text/places.h"
#include "tests/support/suite.h"

#include <string.h>

static void numbers_of_layers_and_calls_are_left_out(void)
{
	static const char *const row[][2] = {
		{ "model.layers.3.mlp.gate", "model.layers.*.mlp.gate" },
		{ "model.layers.31.mlp.gate:1", "model.layers.*.mlp.gate:1" },
		{ "model.layers.3.self_attn.matmul.1", "model.layers.*.self_attn.matmul.1" }, /* the second call */
		{ "encoder.block@2.norm", "encoder.block.norm" },
		{ "layer3.q_rope", "layer*.q_rope" },
		{ "layer12.q_rope", "layer*.q_rope" },
		{ "features.3", "features.3" },
		{ "2.weight", "*.weight" },
		{ "lm_head", "lm_head" },
		{ "a@b", "a@b" },
		{ "", "" },
	};
	char text[VN_NAME_MAX];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		CU_ASSERT_STRING_EQUAL(vn_place_of(row[i][0], text), row[i][1]);
}

static void a_name_of_any_length_fits(void)
{
	char name[VN_NAME_MAX], text[VN_NAME_MAX];

	for (size_t i = 0; i < sizeof name; i++)
		name[i] = i % 2 ? '.' : '7';
	name[sizeof name - 1] = '\0';
	CU_ASSERT_EQUAL(strlen(vn_place_of(name, text)), sizeof name - 1);
}

static void places_are_said_with_their_counts(void)
{
	vn_name_places p = { 0 };
	char           text[120];

	vn_places_add(&p, "layers.0.gate");
	vn_places_add(&p, "lm_head");
	vn_places_add(&p, "layers.1.gate");
	vn_places_add(&p, "layers.1.up");
	vn_places_add(&p, "layers.2.up");
	CU_ASSERT_STRING_EQUAL(vn_places_say(&p, 2, text, sizeof text), "layers.*.gate (2), lm_head and 2 more");
	CU_ASSERT_STRING_EQUAL(vn_places_say(&p, 9, text, sizeof text), "layers.*.gate (2), lm_head, layers.*.up (2)");
	vn_places_free(&p);
	CU_ASSERT_EQUAL(p.n, 0);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(numbers_of_layers_and_calls_are_left_out),
		TEST(a_name_of_any_length_fits),
		TEST(places_are_said_with_their_counts),
		CU_TEST_INFO_NULL,
	};
	return run_suite("places", tests);
}
