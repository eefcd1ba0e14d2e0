/* weights_internal.h: what the files of weights.h share: the part a weight plays, the
 * orders its numbers may be in, the changes they may have gone through. */
#ifndef VN_COMPARE_WEIGHTS_INTERNAL_H
#define VN_COMPARE_WEIGHTS_INTERNAL_H

#include "compare/weights/weights.h"

#include "libref/plan/fault.h"

/* ---- names (weights_names.c) -------------------------------------------------- */

typedef enum vn_weight_part {
	VN_PART_OTHER, VN_PART_EMBED, VN_PART_HEAD, VN_PART_Q, VN_PART_K, VN_PART_V, VN_PART_O, VN_PART_QKV, VN_PART_C_ATTN,
	VN_PART_GATE, VN_PART_UP, VN_PART_GATE_UP, VN_PART_DOWN, VN_PART_NORM, VN_PART_NORM_IN, VN_PART_NORM_POST,
	VN_PART_NORM_Q, VN_PART_NORM_K, VN_PART_GDN_QKV, VN_PART_GDN_Z, VN_PART_GDN_B, VN_PART_GDN_A, VN_PART_GDN_CONV,
	VN_PART_GDN_DT, VN_PART_GDN_LOG, VN_PART_GDN_NORM, VN_PART_GDN_OUT
} vn_weight_part;

typedef struct vn_weight_name {
	vn_weight_part     part;
	int         layer; /* -1: outside layers */
	const char *tail;  /* behind the layer; the whole name where there is none */
	bool        bias;
} vn_weight_name;

vn_weight_name vn_weight_name_of(const char *name);
bool           vn_part_is_norm(vn_weight_part p);
/* The mistake of exchanging two parts; VN_NO_MISTAKE: none that is known. */
vn_mistake     vn_part_exchange(vn_weight_part a, vn_weight_part b);
/* The row of this name; NULL. */
const vn_weight_row *vn_weight_find(const vn_weight_row *rows, int n, const char *name);

/* The same, but prefixes may differ: model.language_model.norm.weight is model.norm.weight. */
const vn_weight_row *vn_weight_twin(const vn_weight_row *rows, int n, const char *name);

/* ---- orders (weights_order.c) -------------------------------------------------- */

/* Sizes of the heads of a layer; 0: not known. */
typedef struct vn_heads {
	int H, G, K, R;     /* query and key heads, their width, rotated columns */
	int nk, nv, dk, dv; /* of a delta rule */
} vn_heads;
vn_heads vn_heads_of(const vn_plan *p, int layer);

typedef enum vn_order_kind {
	VN_ORDER_SAME, VN_ORDER_PAIRS, VN_ORDER_BLOCKS, VN_ORDER_PARTS_BY_HEAD, VN_ORDER_PARTS_BY_GROUP, VN_ORDER_HALVES, VN_ORDER_TILED,
	VN_ORDER_REVERSED, VN_ORDER_SHARDS, VN_ORDER_EVERY_OTHER, /* an axis */
	VN_ORDER_TURNED, VN_ORDER_SHEARED                          /* the whole matrix */
} vn_order_kind;

/* Where each number comes from. Of a matrix of M rows and N columns (a vector: one column). */
typedef struct vn_order {
	vn_order_kind kind;
	int           axis;      /* 0: rows, 1: columns */
	bool          back;      /* the other way round: these are the candidate's, the reference's follow */
	int64_t       p[8];      /* what the kind needs */
	vn_mistake    id;
	const char   *word;      /* of specs/weights.md */
	char          says[VN_WEIGHT_WORDS];
} vn_order;

enum { VN_MOST_ORDERS = 64 };
/* The orders that a weight of this part and shape may be read in by mistake, other being what
 * the other side says its shape is; the same order is not among them. Returns how many. */
int vn_orders_of(const vn_weight_name *name, const vn_shape *shape, const vn_shape *other, const vn_heads *h, vn_order list[VN_MOST_ORDERS]);
/* Where index i of an axis of n comes from. */
int64_t vn_order_from(const vn_order *o, int64_t i, int64_t n);

/* ---- changes (weights_change.c) -------------------------------------------------- */

/* What happened to every number by itself, or to blocks of them along a row. */
typedef enum vn_change_kind {
	VN_CHANGE_NONE, VN_CHANGE_ROUNDED, VN_CHANGE_TRUNCATED, VN_CHANGE_SATURATED, VN_CHANGE_FLUSHED, VN_CHANGE_FLUSHED_SATURATED,
	VN_CHANGE_PLUS, VN_CHANGE_PLUS_MINUS, VN_CHANGE_TIMES, VN_CHANGE_DECAY, VN_CHANGE_RELABELLED, VN_CHANGE_QUANTISED
} vn_change_kind;

typedef struct vn_change {
	vn_change_kind kind;
	vn_dtype       as;       /* the format it went through */
	double         x;        /* added, the factor, or 1 where zeros keep their sign */
	vn_mistake     id;
	const char    *word;
	char           says[VN_WEIGHT_WORDS];
} vn_change;

enum { VN_MOST_CHANGES = 48 };
/* Those that may have made b of a, going by names, formats and statistics. */
int    vn_changes_of(const vn_weight_name *name, const vn_weight_row *a, const vn_weight_row *b, const vn_heads *h, vn_change list[VN_MOST_CHANGES]);
/* One number; of changes that are not of blocks. */
double vn_change_of(const vn_change *c, double x);
/* n numbers in float64, as stored in `to`: dst. room (n) floats. */
void   vn_change_row(const vn_change *c, double *x, size_t n, vn_dtype to, void *dst, float *room);

/* ---- the numbers (weights_numbers.c) ------------------------------------------------- */

/* A matrix in up to three parts, one below the other. */
typedef struct vn_weight_numbers {
	const unsigned char *data[3];
	int64_t              rows[3], cols;
	int                  n;
	vn_dtype             dtype; /* of single numbers */
	float               *own;   /* to be freed: what a quantised one stands for */
} vn_weight_numbers;
vn_status vn_numbers_of(const vn_tensor *const *t, int n, vn_weight_numbers *m, vn_error *err);
void      vn_numbers_free(vn_weight_numbers *m);
/* The digest of rows x cols of these numbers in another order and changed, stored in `to`;
 * rows: 0 for as many as there are. want, where it is at hand, is what should come out: at the first row that
 * is another the rest is spared. Empty then, and where memory is out. */
vn_digest vn_numbers_digest(const vn_weight_numbers *m, const vn_order *o, const vn_change *c, vn_dtype to, int64_t rows, const vn_tensor *want);

/* What two tensors of one size have in common. */
typedef struct vn_fit {
	double correlation, factor; /* candidate = factor * reference, by least squares */
	double nmse, residual;      /* of the difference, and of what the factor leaves, over the reference's square */
	double differing;           /* share of the numbers */
	double largest;             /* difference of two finite ones; infinite where one alone is not */
} vn_fit;
vn_fit vn_fit_of(const vn_tensor *a, const vn_tensor *b);

/* ---- verdicts (weights_tried.c, weights_likely.c) --------------------------------------- */

/* Where one weight stands among the others. */
typedef struct vn_weight_trial {
	const vn_weight_side *side[2];
	const vn_weight_row  *row[2];
	const vn_tensor      *numbers[2]; /* NULL: not known */
	vn_weight_name        name;
	vn_heads              heads;
} vn_weight_trial;

__attribute__((format(printf, 6, 7)))
bool vn_weight_is(vn_weight_difference *d, vn_proof proof, bool certain, const char *kind, vn_mistake id, const char *format, ...);

/* The same, with what was measured of it. */
bool vn_weight_measures(vn_weight_difference *d, const char *what, double x);

/* Each fills d and returns true where it knows. */
bool vn_weight_by_table(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_digest(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_numbers(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_statistics(const vn_weight_trial *t, vn_weight_difference *d);
/* One that is on one side alone, because the other has it in parts, or as a part. *same: and has the same numbers in it. */
bool vn_weight_fused(const vn_weight_trial *t, vn_weight_difference *d, bool *same);
/* Are these the numbers of a on their way through a format, whatever the digests say? */
bool vn_weight_same_numbers(const vn_weight_trial *t, bool *rounded);

/* Lines of the differences, which are sorted for it. all: the names of both sides, to know
 * whether all layers differ. */
vn_status vn_weights_group(vn_weights *w, const vn_weight_name *all, int n_all, vn_error *err);

#endif
