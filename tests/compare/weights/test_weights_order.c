/* test_weights_order.c: tests compare/weights/weights_order.c, the orders that a weight may
 * be in by mistake. */
#include "compare/weights/weights_order.h"
#include "tests/support/suite.h"

#include <string.h>

/* Is this order of x (n letters, one for each row or column) y? */
static bool makes(const vn_weight_order *o, const char *x, const char *y)
{
	const int64_t n = (int64_t)strlen(x);

	for (int64_t i = 0; i < n; i++) {
		const int64_t from = vn_arranged(&o->rule, i, n);
		if (from < 0 || from >= n || x[from] != y[i])
			return false;
	}
	return true;
}

/* Row or column i of the new order is the letter of x that it comes from. */
static void each_order_takes_rows_from_where_it_says(void)
{
	static const vn_weight_heads four = { .H = 1, .G = 1, .K = 4 }, partial = { .H = 1, .G = 1, .K = 6, .R = 4 },
								 grouped = { .H = 2, .G = 1, .K = 2 }, groups = { .H = 4, .G = 2, .K = 1 },
								 gated = { .H = 2, .G = 2, .K = 1 }, delta = { .nk = 2, .nv = 4, .dk = 1, .dv = 1 };
	static const struct {
		const char            *name;
		const vn_weight_heads *h;
		vn_weight_axis         axis;
		const char            *says, *x, *y;
	} row[] = {
		{ "q_proj.weight", &four, VN_WEIGHT_ROWS, "rows permuted for RoPE with neighbouring pairs", "ABab", "AaBb" },
		{ "q_proj.weight", &four, VN_WEIGHT_ROWS, "rows permuted for RoPE with split halves", "AaBb", "ABab" },
		/* of a rotation in part */
		{ "k_proj.weight", &partial, VN_WEIGHT_ROWS, "rows permuted for RoPE with neighbouring pairs", "ABabxy",
		  "AaBbxy" },
		{ "qkv_proj.weight", &grouped, VN_WEIGHT_ROWS, "its parts in the order v, q, k", "QRSTKkVv", "VvQRSTKk" },
		{ "qkv_proj.weight", &grouped, VN_WEIGHT_ROWS, "its parts in the order k, v, q", "QRSTKkVv", "KkVvQRST" },
		{ "attn.c_attn.weight", &grouped, VN_WEIGHT_COLUMNS, "q, k and v of each head together", "QqRrKkLlVvWw",
		  "QqKkVvRrLlWw" },
		{ "attn.c_attn.weight", &grouped, VN_WEIGHT_COLUMNS, "q, k and v stored separately but read as interleaved",
		  "QqKkVvRrLlWw", "QqRrKkLlVvWw" },
		{ "qkv_proj.weight", &groups, VN_WEIGHT_ROWS, "q, k and v of each group of heads together", "QRSTKLVW",
		  "QRKVSTLW" },
		{ "qkv_proj.weight", &groups, VN_WEIGHT_ROWS, "q, k and v stored separately but read as interleaved",
		  "QRKVSTLW", "QRSTKLVW" },
		{ "q_proj.weight", &gated, VN_WEIGHT_ROWS, "all queries first, then all gates", "QGqg", "QqGg" },
		{ "q_proj.weight", &gated, VN_WEIGHT_ROWS, "all gates first, then all queries", "QGqg", "GgQq" },
		{ "q_proj.weight", &gated, VN_WEIGHT_ROWS, "queries and gates interleaved by head, read as halves", "QqGg",
		  "QGqg" },
		{ "q_proj.weight", &gated, VN_WEIGHT_ROWS, "queries and gates interleaved by head, read as halves", "GgQq",
		  "QGqg" },
		{ "in_proj_qkv.weight", &delta, VN_WEIGHT_ROWS, "value heads tiled, as in GGUF", "xyzwABab", "xyzwAaBb" },
		{ "linear_attn.out_proj.weight", &delta, VN_WEIGHT_COLUMNS, "value heads grouped, although they were not tiled",
		  "AaBb", "ABab" },
		{ "conv1d.weight", &delta, VN_WEIGHT_COLUMNS, "taps of the convolution reversed", "ABCD", "DCBA" },
		{ "embed_tokens.weight", &four, VN_WEIGHT_ROWS, "its two halves exchanged", "AaBb", "BbAa" },
		{ "embed_tokens.weight", &four, VN_WEIGHT_ROWS, "its 4 shards in reverse order", "AaBbCcDd", "DdCcBbAa" },
		{ "lm_head.weight", &four, VN_WEIGHT_ROWS, "its 4 shards rotated by 1", "AaBbCcDd", "BbCcDdAa" },
		{ "gate_up_proj.weight", &four, VN_WEIGHT_ROWS, "gate and up exchanged", "GgUu", "UuGg" },
		{ "gate_up_proj.weight", &four, VN_WEIGHT_ROWS, "rows of gate and up one by one read as halves", "GgfUuv",
		  "GfugUv" },
		{ "gate_up_proj.weight", &four, VN_WEIGHT_ROWS, "halves of gate and up read row by row", "GfugUv", "GgfUuv" },
	};
	vn_weight_order o[VN_MOST_ORDERS];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const vn_weight_name name = vn_weight_name_of(NULL, row[i].name);
		const int64_t        n = (int64_t)strlen(row[i].x);
		const vn_shape       shape = { 2, { row[i].axis ? 3 : n, row[i].axis ? n : 3 } };
		const int            all = vn_weight_orders_of(&name, &shape, &shape, row[i].h, o);
		bool                 found = false;
		for (int k = 0; k < all; k++)
			found = found || (strcmp(o[k].says, row[i].says) == 0 && o[k].axis == row[i].axis &&
			                  makes(&o[k], row[i].x, row[i].y));
		CU_ASSERT_TRUE(found);
	}
}

static bool is_permutation(const vn_weight_order *o, int64_t n)
{
	bool seen[512] = { false };

	for (int64_t i = 0; i < n; i++) {
		const int64_t from = vn_arranged(&o->rule, i, n);
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
		const vn_weight_name name = vn_weight_name_of(NULL, row[i].name);
		const vn_shape       shape = { 2, { row[i].rows, row[i].cols } };
		const int            n = vn_weight_orders_of(&name, &shape, &shape, &h, o);
		int                  axes = 0;
		for (int k = 0; k < n; k++)
			if (o[k].axis != VN_WEIGHT_NUMBERS) {
				CU_ASSERT_TRUE(is_permutation(&o[k], o[k].axis ? row[i].cols : row[i].rows));
				CU_ASSERT_NOT_EQUAL(o[k].id, VN_NO_MISTAKE);
				axes++;
			}
		CU_ASSERT(axes >= row[i].least);
	}
}

static void another_shape_may_only_be_transposed(void)
{
	const vn_weight_name name = vn_weight_name_of(NULL, "model.layers.0.mlp.down_proj.weight");
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
		TEST(each_order_takes_rows_from_where_it_says),
		TEST(every_order_of_an_axis_has_each_row_once),
		TEST(another_shape_may_only_be_transposed),
		CU_TEST_INFO_NULL,
	};
	return run_suite("weights_order", tests);
}
