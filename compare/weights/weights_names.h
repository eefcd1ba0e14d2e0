/* weights_names.h: which part of a model a weight is (query projection, norm...), by its name. */
#pragma once

#include "compare/weights/weights_difference.h"

#include "libref/family/family.h"
#include "libref/plan/fault.h"

/* The part of a weight is the point (vn_point) that it makes: queries with gates are Q_PROJ, any
 * rows of an embedding EMBED. These further parts are products that other engines fuse. */
enum { VN_PART_OTHER = VN_N_POINTS, VN_PART_QKV, VN_PART_GATE_UP };

typedef struct vn_weight_name {
	int            part;
	int            layer;  /* -1: outside layers */
	const char    *tail;   /* the name after the layer; the whole name if there is no layer */
	vn_gguf_change change; /* what a converter to GGUF changes in it */
	bool           bias;
} vn_weight_name;

/* side: the one with this name; NULL, or without a family: any family that has such a weight. */
vn_weight_name       vn_weight_name_of(const vn_weight_side *side, const char *name);
bool                 vn_weight_part_is_norm(int part);
/* Returns the mistake of exchanging two weights or two biases of a layer, or VN_NO_MISTAKE. */
vn_mistake           vn_weight_exchange(const vn_weight_name *x, const vn_weight_name *y);
/* Returns the row of this name, or NULL. Prefixes may differ: model.language_model.norm.weight is
 * model.norm.weight. */
const vn_weight_row *vn_weight_twin(const vn_weight_row *rows, int n, const char *name);

/* Returns the weight of another part in the same layer and trunk as this row; NULL: none. */
const vn_weight_row *vn_weight_beside(const vn_weight_side *side, const vn_weight_row *row, const vn_weight_name *name,
                                      int part);
