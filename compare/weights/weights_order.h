/* weights_order.h: the orders in which the numbers of a weight may be stored. */
#pragma once

#include "compare/weights/weights_finding.h"
#include "compare/weights/weights_names.h"

#include "libref/base/arrange.h"

/* Sizes of the heads of a layer; 0: not known. */
typedef struct vn_weight_heads {
	int H, G, K, R;     /* query heads, key heads, width of a head, rotated columns */
	int nk, nv, dk, dv; /* of a delta rule */
} vn_weight_heads;
vn_weight_heads vn_weight_heads_of(const vn_plan *p, int layer);

/* What all orders of a kind have in common, if no digest tells them apart. */
/* clang-format off */
typedef enum vn_weight_order_kind {
	VN_ORDER_SINGLE, /* no other order is like it */
	VN_ORDER_PAIRS, VN_ORDER_PARTS, VN_ORDER_HALVES, VN_ORDER_TILED, VN_ORDER_SHARDS, VN_ORDER_EVERY_OTHER,
	VN_ORDER_TRANSPOSED,
} vn_weight_order_kind;
/* clang-format on */

/* What an order moves. */
typedef enum vn_weight_axis { VN_WEIGHT_ROWS, VN_WEIGHT_COLUMNS, VN_WEIGHT_NUMBERS } vn_weight_axis;

/* An order of a matrix of M rows and N columns (a vector: one column): where each row, each column
 * or each of all numbers comes from. */
typedef struct vn_weight_order {
	vn_weight_order_kind kind;
	vn_weight_axis       axis;
	vn_arrange           rule;
	int64_t              start; /* the first row of the result, if it has some rows only */
	vn_weight_finding    found;
	vn_mistake           id;  /* the catalogue's id; for parts of some matrices it is not the finding's */
	uint64_t             key; /* vn_weight_say */
	char                 says[VN_WEIGHT_WORDS];
} vn_weight_order;

enum { VN_MOST_ORDERS = 64 };
/* Lists the orders in which a weight of this part and shape may be read by mistake, without the
 * correct one. other: the other side's shape. Returns how many. */
int vn_weight_orders_of(const vn_weight_name *name, const vn_shape *shape, const vn_shape *other,
                        const vn_weight_heads *h, vn_weight_order list[VN_MOST_ORDERS]);
