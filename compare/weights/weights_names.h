/* weights_names.h: which part of a model a weight is (query projection, norm...), by its name. */
#ifndef VN_COMPARE_WEIGHTS_NAMES_H
#define VN_COMPARE_WEIGHTS_NAMES_H

#include "compare/weights/weights.h"

#include "libref/plan/fault.h"

/* clang-format off */
typedef enum vn_weight_part {
	VN_PART_OTHER, VN_PART_EMBED, VN_PART_HEAD, VN_PART_Q, VN_PART_K, VN_PART_V, VN_PART_O, VN_PART_QKV, VN_PART_C_ATTN,
	VN_PART_GATE, VN_PART_UP, VN_PART_GATE_UP, VN_PART_DOWN, VN_PART_NORM, VN_PART_NORM_IN, VN_PART_NORM_POST,
	VN_PART_NORM_Q, VN_PART_NORM_K, VN_PART_GDN_QKV, VN_PART_GDN_Z, VN_PART_GDN_B, VN_PART_GDN_A, VN_PART_GDN_CONV,
	VN_PART_GDN_DT, VN_PART_GDN_LOG, VN_PART_GDN_NORM, VN_PART_GDN_OUT
} vn_weight_part;
/* clang-format on */

typedef struct vn_weight_name {
	vn_weight_part part;
	int            layer; /* -1: outside layers */
	const char    *tail;  /* the name after the layer; the whole name if there is no layer */
	bool           bias;
} vn_weight_name;

vn_weight_name       vn_weight_name_of(const char *name);
bool                 vn_weight_part_is_norm(vn_weight_part p);
/* Returns the mistake of exchanging two weights or two biases of a layer, or VN_NO_MISTAKE. */
vn_mistake           vn_weight_exchange(const vn_weight_name *x, const vn_weight_name *y);
/* Returns the row of this name, or NULL. Prefixes may differ: model.language_model.norm.weight is
 * model.norm.weight. */
const vn_weight_row *vn_weight_twin(const vn_weight_row *rows, int n, const char *name);

/* Returns the weight of another part in the same layer and trunk as this row; NULL: none. */
const vn_weight_row *vn_weight_beside(const vn_weight_side *side, const vn_weight_row *row, const vn_weight_name *name,
                                      vn_weight_part part);

#endif
