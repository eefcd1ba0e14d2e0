/* test_propose.c: layouts of a tensor, and what names say; the proposals themselves are tested by
 * cli/import_like.sh and parity_like.py. */
#include "capture/names/layout.h"
#include "capture/names/propose_internal.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static char found[VN_LAYOUTS][VN_LAYOUT_DIMS];

/* The layouts of q_rope of 5 tokens and 3 heads of 4. */
static int layouts(int rank, const int64_t *dim)
{
	const vn_axis_length axis[] = { { "token", 5 }, { "head", 3 }, { "dim", 4 } };
	vn_shape             shape = { .rank = rank };
	memcpy(shape.dim, dim, (size_t)rank * sizeof *dim);
	return vn_layouts(&shape, axis, 3, found);
}

static void axes_are_found_in_any_order_and_grouping(void)
{
	static const struct {
		int         rank;
		int64_t     dim[4];
		const char *text;
	} row[] = {
		{ 3, { 5, 3, 4 }, "token head dim" },
		{ 4, { 1, 3, 5, 4 }, "batch head token dim" },
		{ 3, { 1, 5, 12 }, "batch token (head dim)" },
		{ 2, { 15, 4 }, "(token head) dim" },
		{ 1, { 60 }, "(token head dim)" },
		{ 3, { 4, 3, 5 }, "dim head token" },
		{ 4, { 5, 1, 3, 4 }, "token one1 head dim" },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		CU_ASSERT(layouts(row[i].rank, row[i].dim) >= 1);
		CU_ASSERT_STRING_EQUAL(found[0], row[i].text);
	}
}

static void a_tensor_of_other_lengths_has_none(void)
{
	CU_ASSERT_EQUAL(layouts(3, (const int64_t[]) { 5, 3, 5 }), 0);
	CU_ASSERT_EQUAL(layouts(2, (const int64_t[]) { 5, 3 }), 0);
	CU_ASSERT_EQUAL(layouts(4, (const int64_t[]) { 2, 5, 3, 4 }), 0);
	CU_ASSERT_EQUAL(layouts(3, (const int64_t[]) { 0, 3, 4 }), 0);
}

/* Two axes of one length: the checkpoint's own order comes first. */
static void the_own_order_comes_first(void)
{
	const vn_axis_length axis[] = { { "token", 4 }, { "hidden", 4 } };
	const vn_shape       shape = { .rank = 2, .dim = { 4, 4 } };
	CU_ASSERT_EQUAL(vn_layouts(&shape, axis, 2, found), 2);
	CU_ASSERT_STRING_EQUAL(found[0], "token hidden");
	CU_ASSERT_STRING_EQUAL(found[1], "hidden token");
}

static void words_of_a_name_may_contradict_a_point(void)
{
	static const struct {
		const char *name;
		int         point;
		bool        contradict;
	} row[] = {
		{ "layers.0.k_proj", VN_POINT_V_PROJ, true },
		{ "layers.0.k_proj", VN_POINT_K_ROPE, false },
		{ "attn.wq", VN_POINT_K_PROJ, true },
		{ "selfAttn.keyProj", VN_POINT_V_PROJ, true },
		{ "attn.qkv", VN_POINT_V_PROJ, false },
		{ "present.0.value", VN_POINT_V_CACHE, false },
		{ "mlp.gate_proj", VN_POINT_UP_PROJ, true },
		{ "mlp.up", VN_POINT_UP_PROJ, false },
		{ "gate_up_proj", VN_POINT_UP_PROJ, false },
		{ "k_proj.in", VN_POINT_ATTN_NORM, false },
		{ "past_key_values.1.key", VN_POINT_V_CACHE, false },
		{ "block.t07", VN_POINT_V_PROJ, false },
		{ "blocks.0.hook_resid_mid", VN_POINT_INPUT, true },
		{ "layers.0.post_attention", VN_POINT_INPUT, true },
		{ "layers.0.post_attention", VN_POINT_ATTN_RESIDUAL, false },
		{ "layers.0.attention.input", VN_POINT_INPUT, false },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		CU_ASSERT_EQUAL(vn_words_contradict(vn_name_words(row[i].name), row[i].point), row[i].contradict);
}

static void names_that_differ_in_the_layer_are_a_family(void)
{
	static const char *const name[] = {
		"net/block_1/rope.2", "net/block_1/rope", "net/block_2/rope.2", "net/block_2/rope", "head", "exp?ert"
	};
	vn_tensor_name named[6] = { 0 };
	int            n = 0;
	for (int i = 0; i < 6; i++)
		named[i].name = name[i];
	vn_name_family *family = vn_families_of(named, 6, &n);
	CU_ASSERT_EQUAL(n, 4);
	for (int i = 0; i < n; i++) {
		const bool layers = strncmp(family[i].from, "net", 3) == 0;
		CU_ASSERT_EQUAL(family[i].n, layers ? 2 : 1);
		CU_ASSERT_EQUAL(family[i].member[0].n, layers ? 1 : -1);
		CU_ASSERT(!layers || strstr(family[i].from, "net/block_{n}/rope") == family[i].from);
	}
	vn_families_free(family, n);
}

int main(void)
{
	static CU_TestInfo tests[] = { TEST(axes_are_found_in_any_order_and_grouping),
		                           TEST(a_tensor_of_other_lengths_has_none),
		                           TEST(the_own_order_comes_first),
		                           TEST(words_of_a_name_may_contradict_a_point),
		                           TEST(names_that_differ_in_the_layer_are_a_family),
		                           CU_TEST_INFO_NULL };
	return run_suite("propose", tests);
}
