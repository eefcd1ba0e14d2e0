/* test_weights_fused.c: tests compare/weights/weights_fused.c, weights that one side has in one
 * piece and the other in parts. */
#include "tests/support/weights_help.h"

#include <stddef.h>
#include <string.h>

#define LAYER "model.layers.0."

/* Four rows of q, two of k and of v: two heads, one group, of a width of two. */
static const float qkv[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -11, 12, 13, 14, 15, 16 };

typedef struct made {
	vn_weight_row        row[2][4]; /* [0] the parts, sorted by name, and one more; [1] the whole */
	vn_tensor            numbers[2][3];
	vn_weight_side       side[2];
	vn_weight_difference d;
	bool                 found, same;
} made;

/* k, q and v by name; whole: what the fused one holds. */
static void make_qkv(made *m, const char *prefix, const float *whole)
{
	static const struct {
		const char *name;
		int         row, rows;
	} part[] = { { "k", 4, 2 }, { "q", 0, 4 }, { "v", 6, 2 } };
	char name[VN_NAME_MAX];

	*m = (made) { 0 };
	for (int i = 0; i < 3; i++) {
		m->numbers[0][i] = f32(qkv + 2 * part[i].row, part[i].rows, 2);
		snprintf(name, sizeof name, "%s%s_proj.weight", prefix, part[i].name);
		m->row[0][i] = row_of(name, &m->numbers[0][i]);
	}
	m->numbers[1][0] = f32(whole, 8, 2);
	snprintf(name, sizeof name, "%sqkv_proj.weight", prefix);
	m->row[1][0] = row_of(name, &m->numbers[1][0]);
	for (int k = 0; k < 2; k++)
		m->side[k] = (vn_weight_side) { .row = m->row[k], .n = k ? 1 : 3, .numbers = m->numbers[k] };
}

/* Judges the row that only one side has. parts_are: the side with the parts. */
static bool tried(made *m, const vn_weight_row *own, int parts_are)
{
	vn_weight_trial t = { .heads = { .H = 2, .G = 1, .K = 2, .R = 2 } };
	const bool      is_part = own >= m->row[0] && own < m->row[0] + 4;

	t.side[parts_are] = &m->side[0];
	t.side[!parts_are] = &m->side[1];
	t.row[is_part ? parts_are : !parts_are] = own;
	m->same = true;
	memset(&m->d, 0, sizeof m->d);
	return m->found = vn_weight_fused(&t, &m->d, &m->same);
}

static void the_parts_in_order_are_the_same(void)
{
	made m;

	make_qkv(&m, LAYER "self_attn.", qkv);
	for (int side = 0; side < 2; side++) {
		CU_ASSERT_TRUE(tried(&m, &m.row[1][0], side)); /* asked of the whole */
		CU_ASSERT_TRUE(m.same);
		for (int i = 0; i < 3; i++) {
			CU_ASSERT_TRUE(tried(&m, &m.row[0][i], side)); /* and of each part */
			CU_ASSERT_TRUE(m.same);
		}
	}
}

static void the_parts_in_another_order_are_that_mistake(void)
{
	float exchanged[16];
	made  m;

	memcpy(exchanged, qkv, 8 * sizeof *qkv);
	memcpy(exchanged + 8, qkv + 12, 4 * sizeof *qkv);
	memcpy(exchanged + 12, qkv + 8, 4 * sizeof *qkv);
	make_qkv(&m, LAYER "self_attn.", exchanged);
	CU_ASSERT_TRUE(tried(&m, &m.row[1][0], 0));
	CU_ASSERT_FALSE(m.same);
	CU_ASSERT_STRING_EQUAL(m.d.kind, "parts");
	CU_ASSERT_STRING_EQUAL(m.d.id, "W2");
	CU_ASSERT_EQUAL(m.d.proof, VN_PROOF_DIGEST);
	CU_ASSERT_TRUE(m.d.certain);
	CU_ASSERT_EQUAL(strncmp(m.d.words, "fused: ", 7), 0);
}

/* Two numbers exchanged: no mistake that is known, and the statistics agree. */
static void an_unknown_order_is_likely_and_no_more(void)
{
	float whole[16];
	made  m;

	memcpy(whole, qkv, sizeof whole);
	whole[0] = qkv[13];
	whole[13] = qkv[0];
	make_qkv(&m, LAYER "self_attn.", whole);
	CU_ASSERT_TRUE(tried(&m, &m.row[0][0], 1));
	CU_ASSERT_FALSE(m.same);
	CU_ASSERT_STRING_EQUAL(m.d.kind, "fused");
	CU_ASSERT_STRING_EQUAL(m.d.words, "q, k and v are fused, in an order that no known mistake gives");
	CU_ASSERT_EQUAL(m.d.proof, VN_PROOF_STATISTICS);
	CU_ASSERT_FALSE(m.d.certain);
}

static void without_numbers_the_statistics_say_it(void)
{
	static const char *const says = "q, k and v are fused; the order can be found with the numbers (--model)";
	made                     m;

	make_qkv(&m, LAYER "self_attn.", qkv);
	m.side[0].numbers = NULL;
	CU_ASSERT_TRUE(tried(&m, &m.row[1][0], 0));
	CU_ASSERT_FALSE(m.same);
	CU_ASSERT_STRING_EQUAL(m.d.words, says);
	m.side[0].numbers = m.numbers[0];
	m.numbers[0][2].data = NULL; /* of one part alone */
	CU_ASSERT_TRUE(tried(&m, &m.row[1][0], 0));
	CU_ASSERT_STRING_EQUAL(m.d.words, says);
}

static void other_statistics_are_another_weight(void)
{
	static const struct {
		const char *what;
		size_t      at;
	} field[] = {
		{ "min", offsetof(vn_stats, min) },
		{ "max", offsetof(vn_stats, max) },
		{ "mean", offsetof(vn_stats, mean) },
		{ "rms", offsetof(vn_stats, rms) },
	};
	made m;

	for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
		make_qkv(&m, LAYER "self_attn.", qkv);
		m.side[0].numbers = NULL;
		*(double *)(void *)((char *)&m.row[1][0].stats + field[i].at) += 1e-6;
		CU_ASSERT_FALSE(tried(&m, &m.row[1][0], 0));
	}
	make_qkv(&m, LAYER "self_attn.", qkv);
	m.side[0].numbers = NULL;
	m.row[1][0].stats.n++;
	CU_ASSERT_FALSE(tried(&m, &m.row[1][0], 0));
	m.row[1][0].stats.n--;
	m.row[0][1].dtype = VN_BF16; /* one part in another format */
	CU_ASSERT_FALSE(tried(&m, &m.row[1][0], 0));
	m.row[0][1].dtype = VN_F32;
	m.row[0][1].stats.nan = 1;
	CU_ASSERT_FALSE(tried(&m, &m.row[1][0], 0));
	m.row[0][1].stats.nan = 0;
	CU_ASSERT_TRUE(tried(&m, &m.row[1][0], 0)); /* it was each of these alone */
}

/* Parts without rows are no fused weight. */
static void empty_parts_are_not_fused(void)
{
	made m;

	make_qkv(&m, LAYER "self_attn.", qkv);
	for (int i = 0; i < 4; i++) {
		vn_weight_row *r = i < 3 ? &m.row[0][i] : &m.row[1][0];
		m.side[0].numbers = m.side[1].numbers = NULL;
		r->shape.dim[0] = 0;
		r->stats = vn_stats_of(NULL, VN_F32, 0);
	}
	CU_ASSERT_FALSE(tried(&m, &m.row[1][0], 0));
}

static void a_part_that_is_missing_leaves_the_others_alone(void)
{
	made m;

	make_qkv(&m, LAYER "self_attn.", qkv);
	m.side[0].n = 2; /* no v, and the whole is q and k alone */
	m.numbers[1][0] = f32(qkv, 6, 2);
	m.row[1][0] = row_of(LAYER "self_attn.qkv_proj.weight", &m.numbers[1][0]);
	CU_ASSERT_FALSE(tried(&m, &m.row[1][0], 0));
	CU_ASSERT_FALSE(m.same);
	m.side[0].n = 3;
	m.side[1].n = 0; /* no whole */
	CU_ASSERT_FALSE(tried(&m, &m.row[0][0], 0));
}

/* Parts whose rows are of another length are no rows of one matrix: only the statistics speak. */
static void parts_of_other_columns_are_not_put_together(void)
{
	made m;

	make_qkv(&m, LAYER "self_attn.", qkv);
	m.row[0][2].shape = m.numbers[0][2].shape = (vn_shape) { 2, { 1, 4 } };
	CU_ASSERT_TRUE(tried(&m, &m.row[1][0], 0));
	CU_ASSERT_FALSE(m.same);
	CU_ASSERT_STRING_EQUAL(m.d.words, "q, k and v are fused; the order can be found with the numbers (--model)");
}

static void gate_and_up_are_two(void)
{
	static const float x[] = { 1, 2, 3, 4, 5, 6, 7, -8 }, exchanged[] = { 5, 6, 7, -8, 1, 2, 3, 4 };
	made               m = { 0 };

	m.numbers[0][0] = f32(x, 2, 2);
	m.numbers[0][1] = f32(x + 4, 2, 2);
	m.row[0][0] = row_of(LAYER "mlp.gate_proj.weight", &m.numbers[0][0]);
	m.row[0][1] = row_of(LAYER "mlp.up_proj.weight", &m.numbers[0][1]);
	m.side[0] = (vn_weight_side) { .row = m.row[0], .n = 2, .numbers = m.numbers[0] };
	m.side[1] = (vn_weight_side) { .row = m.row[1], .n = 1, .numbers = m.numbers[1] };
	for (int i = 0; i < 2; i++) {
		m.numbers[1][0] = f32(i ? exchanged : x, 4, 2);
		m.row[1][0] = row_of(LAYER "mlp.gate_up_proj.weight", &m.numbers[1][0]);
		CU_ASSERT_TRUE(tried(&m, &m.row[0][1], 0)); /* of up_proj, whose name ends as gate_up_proj's does */
		CU_ASSERT_EQUAL(m.same, i == 0);
	}
	CU_ASSERT_STRING_EQUAL(m.d.id, "W4");
	CU_ASSERT_TRUE(tried(&m, &m.row[1][0], 0)); /* and of the whole */
	m.side[0].numbers = NULL;
	CU_ASSERT_TRUE(tried(&m, &m.row[1][0], 0));
	CU_ASSERT_EQUAL(strncmp(m.d.words, "gate and up are fused", 21), 0);
}

static void names_that_only_look_so_are_not_parts(void)
{
	static const char *const names[] = { "model.norm.weight", LAYER "xq_proj.weight", LAYER "q_projection.weight",
		                                 LAYER "self_attn.o_proj.weight", "" };
	made                     m;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		make_qkv(&m, LAYER "self_attn.", qkv);
		m.row[0][1].name = names[i];
		CU_ASSERT_FALSE(tried(&m, &m.row[0][1], 0));
	}
	make_qkv(&m, LAYER "self_attn.x", qkv); /* xqkv_proj of xq_proj, xk_proj and xv_proj */
	CU_ASSERT_FALSE(tried(&m, &m.row[0][1], 0));
}

/* "qkv_proj." is two longer than "q_proj.". */
static void a_name_at_the_limit_is_found(void)
{
	char prefix[VN_NAME_MAX];
	made m;

	memset(prefix, 'p', sizeof prefix);
	strcpy(prefix + VN_NAME_MAX - sizeof "qkv_proj.weight" - 1, ".");
	make_qkv(&m, prefix, qkv);
	CU_ASSERT_EQUAL(strlen(m.row[1][0].name), VN_NAME_MAX - 1);
	CU_ASSERT_TRUE(tried(&m, &m.row[0][1], 0));
	CU_ASSERT_TRUE(m.same);
}

/* Cut by one, its fused name would be that of other weights, which are fused. */
static void a_name_beyond_the_limit_is_not_cut(void)
{
	char prefix[VN_NAME_MAX];
	made m;

	memset(prefix, 'p', sizeof prefix);
	strcpy(prefix + VN_NAME_MAX - sizeof "qkv_proj.weight", ".");
	make_qkv(&m, prefix, qkv); /* the whole's name ends in "weigh" */
	m.row[0][3] = m.row[0][1];
	for (int i = 0; i < 3; i++) {
		char name[VN_NAME_MAX];
		snprintf(name, sizeof name, "%.*s", (int)strlen(m.row[0][i].name) - 1, m.row[0][i].name);
		m.row[0][i].name = vn_intern(name);
	}
	CU_ASSERT_TRUE(tried(&m, &m.row[0][1], 0));
	CU_ASSERT_FALSE(tried(&m, &m.row[0][3], 0));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_parts_in_order_are_the_same),
		TEST(the_parts_in_another_order_are_that_mistake),
		TEST(an_unknown_order_is_likely_and_no_more),
		TEST(without_numbers_the_statistics_say_it),
		TEST(other_statistics_are_another_weight),
		TEST(empty_parts_are_not_fused),
		TEST(a_part_that_is_missing_leaves_the_others_alone),
		TEST(parts_of_other_columns_are_not_put_together),
		TEST(gate_and_up_are_two),
		TEST(names_that_only_look_so_are_not_parts),
		TEST(a_name_at_the_limit_is_found),
		TEST(a_name_beyond_the_limit_is_not_cut),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_fused", tests);
}
