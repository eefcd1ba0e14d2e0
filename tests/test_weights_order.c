/* test_weights_order.c: tests compare/weights/weights_order.c, the orders that a weight may
 * be in by mistake. */
#include "compare/weights/weights_order.h"
#include "tests/suite.h"

#include <string.h>

/* Row i of the new order is the letter of x that it comes from. */
static const char *ordered(const vn_weight_order *o, const char *x, char y[64])
{
	const int64_t    n = (int64_t)strlen(x);
	const vn_arrange rule = vn_weight_order_rule(o, n);

	for (int64_t i = 0; i < n; i++) {
		const int64_t from = vn_arranged(&rule, i, n);
		y[i] = from >= 0 && from < n ? x[from] : '?';
	}
	y[n] = 0;
	return y;
}

static void each_kind_takes_rows_from_where_it_says(void)
{
	static const struct {
		vn_weight_order o;
		const char     *x, *y;
	} row[] = {
		{ { .kind = VN_ORDER_SAME }, "ABCD", "ABCD" },
		{ { .kind = VN_ORDER_PAIRS, .p = { 4, 4 } }, "ABab", "AaBb" },
		/* halves as neighbours */
		{ { .kind = VN_ORDER_PAIRS, .p = { 6, 4 } }, "ABabxy", "AaBbxy" },
		/* of a rotation in part */
		{ { .kind = VN_ORDER_BLOCKS, .p = { 3, 2, 1, 2, 0, 1 } }, "QQqKkV", "VQQqKk" },
		{ { .kind = VN_ORDER_BLOCKS, .p = { 3, 2, 1, 1, 2, 0 } }, "QRqKkV", "KkVQRq" },
		{ { .kind = VN_ORDER_PARTS_BY_HEAD, .p = { 2, 2 } }, "QqRrKkLlVvWw", "QqKkVvRrLlWw" },
		{ { .kind = VN_ORDER_PARTS_BY_GROUP, .p = { 2, 2, 1 } }, "QRSTKLVW", "QRKVSTLW" },
		{ { .kind = VN_ORDER_HALVES, .p = { 2, 1, 0 } }, "QGqg", "QqGg" },
		{ { .kind = VN_ORDER_HALVES, .p = { 2, 1, 1 } }, "QGqg", "GgQq" },
		{ { .kind = VN_ORDER_TILED, .p = { 1, 2, 2, 1 } }, "xABab", "xAaBb" },
		{ { .kind = VN_ORDER_REVERSED }, "ABCD", "DCBA" },
		{ { .kind = VN_ORDER_SHARDS, .p = { 2, -1 } }, "AaBb", "BbAa" },
		{ { .kind = VN_ORDER_SHARDS, .p = { 4, 1 } }, "ABCD", "BCDA" },
		{ { .kind = VN_ORDER_EVERY_OTHER }, "GgfUuv", "GfugUv" },
	};
	char y[64];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		CU_ASSERT_STRING_EQUAL(ordered(&row[i].o, row[i].x, y), row[i].y);
}

static bool is_permutation(const vn_weight_order *o, int64_t n)
{
	const vn_arrange rule = vn_weight_order_rule(o, n);
	bool             seen[512] = { false };

	for (int64_t i = 0; i < n; i++) {
		const int64_t from = vn_arranged(&rule, i, n);
		if (from < 0 || from >= n || seen[from])
			return false;
		seen[from] = true;
	}
	return true;
}

static void every_order_of_an_axis_has_each_row_once(void)
{
	static const struct {
		const char *name;
		int64_t     rows, cols;
		int         least;
	} row[] = {
		{ "model.layers.0.self_attn.q_proj.weight", 32, 24, 4 },
		{ "model.layers.0.self_attn.qkv_proj.weight", 64, 24, 7 },
		{ "h.0.attn.c_attn.weight", 24, 96, 7 },
		{ "model.layers.0.mlp.gate_up_proj.weight", 48, 24, 3 },
		{ "model.embed_tokens.weight", 64, 24, 11 },
	};
	const vn_weight_heads h = { .H = 4, .G = 2, .K = 8, .R = 4 };
	vn_weight_order       o[VN_MOST_ORDERS];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const vn_weight_name name = vn_weight_name_of(row[i].name);
		const vn_shape       shape = { 2, { row[i].rows, row[i].cols } };
		const int            n = vn_weight_orders_of(&name, &shape, &shape, &h, o);
		int                  axes = 0;
		for (int k = 0; k < n; k++)
			if (o[k].kind < VN_ORDER_TRANSPOSED) {
				CU_ASSERT_TRUE(is_permutation(&o[k], o[k].axis ? row[i].cols : row[i].rows));
				CU_ASSERT_NOT_EQUAL(o[k].id, VN_NO_MISTAKE);
				axes++;
			}
		CU_ASSERT(axes >= row[i].least);
	}
}

static void another_shape_may_only_be_transposed(void)
{
	const vn_weight_name name = vn_weight_name_of("model.layers.0.mlp.down_proj.weight");
	const vn_shape       a = { 2, { 24, 48 } }, transposed = { 2, { 48, 24 } }, other = { 2, { 24, 24 } };
	vn_weight_order      o[VN_MOST_ORDERS];

	CU_ASSERT_EQUAL(vn_weight_orders_of(&name, &a, &transposed, &(vn_weight_heads) { 0 }, o), 1);
	CU_ASSERT_EQUAL(o[0].kind, VN_ORDER_TRANSPOSED);
	CU_ASSERT_EQUAL(o[0].id, VN_MISTAKE_W1);
	CU_ASSERT_EQUAL(vn_weight_orders_of(&name, &a, &other, &(vn_weight_heads) { 0 }, o), 0);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(each_kind_takes_rows_from_where_it_says),
		TEST(every_order_of_an_axis_has_each_row_once),
		TEST(another_shape_may_only_be_transposed),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_order", tests);
}
