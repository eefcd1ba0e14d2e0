/* weights_order.h: the orders in which the numbers of a weight may be stored. */
#ifndef VN_COMPARE_WEIGHTS_ORDER_H
#define VN_COMPARE_WEIGHTS_ORDER_H

#include "compare/weights/weights_finding.h"
#include "compare/weights/weights_names.h"

#include "libref/base/arrange.h"

/* Sizes of the heads of a layer; 0: not known. */
typedef struct vn_weight_heads {
	int H, G, K, R;     /* query heads, key heads, width of a head, rotated columns */
	int nk, nv, dk, dv; /* of a delta rule */
} vn_weight_heads;
vn_weight_heads vn_weight_heads_of(const vn_plan *p, int layer);

/* clang-format off */
typedef enum vn_weight_order_kind {
	VN_ORDER_SAME, VN_ORDER_PAIRS, VN_ORDER_BLOCKS, VN_ORDER_PARTS_BY_HEAD, VN_ORDER_PARTS_BY_GROUP, VN_ORDER_HALVES,
		VN_ORDER_TILED,
	VN_ORDER_REVERSED, VN_ORDER_SHARDS, VN_ORDER_EVERY_OTHER, VN_ORDER_LISTED, /* an axis */
	VN_ORDER_TRANSPOSED, VN_ORDER_SHEARED /* the whole matrix */
} vn_weight_order_kind;
/* clang-format on */

/* An order of a matrix of M rows and N columns (a vector: one column): where each number comes
 * from. */
typedef struct vn_weight_order {
	vn_weight_order_kind kind;
	int                  axis; /* 0: rows, 1: columns */
	bool                 back; /* the inverse of this order */
	int64_t              p[8]; /* parameters of the kind */
	const int           *list; /* LISTED: (p[0]), borrowed: the block at each place */
	vn_weight_finding    found;
	vn_mistake           id;  /* the catalogue's id; for parts of some matrices it is not the finding's */
	uint64_t             key; /* vn_weight_say */
	char                 says[VN_WEIGHT_WORDS];
} vn_weight_order;

enum { VN_MOST_ORDERS = 64 };
/* Lists the orders in which a weight of this part and shape may be read by mistake, without the
 * correct one. other: the other side's shape. Returns how many. */
int        vn_weight_orders_of(const vn_weight_name *name, const vn_shape *shape, const vn_shape *other,
                               const vn_weight_heads *h, vn_weight_order list[VN_MOST_ORDERS]);
/* Returns where the indices of an axis of length n come from, or all n numbers of a matrix, in the
 * order itself: o->back, which takes the inverse, has no effect here. */
vn_arrange vn_weight_order_rule(const vn_weight_order *o, int64_t n);

#endif
