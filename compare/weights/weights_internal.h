/* weights_internal.h: shared by the files of weights.h: what part a weight plays, the orders that
 * its numbers may be in, the changes that they may have gone through. */
#ifndef VN_COMPARE_WEIGHTS_INTERNAL_H
#define VN_COMPARE_WEIGHTS_INTERNAL_H

#include "compare/weights/weights.h"

#include "libref/plan/fault.h"

/* ---- names (weights_names.c) -------------------------------------------------- */

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

/* ---- findings ------------------------------------------------------------------- */

/* The rows WEIGHT of the catalogue. */
typedef enum vn_weight_finding {
#define WEIGHT(name, mistake, kind, title) VN_FOUND_##name,
#include "libref/plan/catalogue.def"
	VN_N_FOUND
} vn_weight_finding;

/* Their titles, as arrays, so that the compiler checks the arguments of each. */
#define WEIGHT(name, mistake, kind, title) __attribute__((unused)) static const char vn_found_##name[] = title;
#include "libref/plan/catalogue.def"

/* A finding as two arguments: its row and its title. */
#define VN_FOUND(name) VN_FOUND_##name, vn_found_##name

/* The row of a finding. */
typedef struct vn_weight_entry {
	vn_mistake  id;
	const char *kind;
} vn_weight_entry;
const vn_weight_entry *vn_weight_entry_of(vn_weight_finding found);

/* ---- orders (weights_order.c) -------------------------------------------------- */

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
	VN_ORDER_REVERSED, VN_ORDER_SHARDS, VN_ORDER_EVERY_OTHER, /* an axis */
	VN_ORDER_LISTED,                                           /* blocks of an axis: p: how many; their order, in hex */
	VN_ORDER_TURNED, VN_ORDER_SHEARED                          /* the whole matrix */
} vn_weight_order_kind;
/* clang-format on */

/* An order of a matrix of M rows and N columns (a vector: one column): where each number comes
 * from. */
typedef struct vn_weight_order {
	vn_weight_order_kind kind;
	int                  axis; /* 0: rows, 1: columns */
	bool                 back; /* the inverse of this order */
	int64_t              p[8]; /* parameters of the kind */
	vn_weight_finding    found;
	vn_mistake           id; /* in parts of some matrices another than the finding's */
	char                 says[VN_WEIGHT_WORDS];
} vn_weight_order;

enum { VN_MOST_ORDERS = 64 };
/* Lists the orders in which a weight of this part and shape may be read by mistake, without the
 * correct one. other: the other side's shape. Returns how many. */
int     vn_weight_orders_of(const vn_weight_name *name, const vn_shape *shape, const vn_shape *other,
                            const vn_weight_heads *h, vn_weight_order list[VN_MOST_ORDERS]);
/* Returns which index of an axis of length n goes to index i. */
int64_t vn_weight_order_from(const vn_weight_order *o, int64_t i, int64_t n);

/* ---- changes (weights_change.c) -------------------------------------------------- */

/* A change of every number by itself, or of blocks of numbers along a row. */
/* clang-format off */
typedef enum vn_weight_change_kind {
	VN_CHANGE_NONE, VN_CHANGE_ROUNDED, VN_CHANGE_TRUNCATED, VN_CHANGE_SATURATED, VN_CHANGE_FLUSHED,
		VN_CHANGE_FLUSHED_SATURATED,
	VN_CHANGE_PLUS, VN_CHANGE_PLUS_MINUS, VN_CHANGE_TIMES, VN_CHANGE_DECAY, VN_CHANGE_RELABELLED, VN_CHANGE_QUANTISED
} vn_weight_change_kind;
/* clang-format on */

typedef struct vn_weight_change {
	vn_weight_change_kind kind;
	vn_dtype              as; /* the format that it passed through */
	double                x;  /* the addend or factor; or 1 if zeros keep their sign */
	vn_weight_finding     found;
	char                  says[VN_WEIGHT_WORDS];
} vn_weight_change;

enum { VN_MOST_CHANGES = 48 };
/* Lists the changes that may have made b from a, judged by names, formats and statistics. Returns
 * how many. */
int    vn_weight_changes_of(const vn_weight_name *name, const vn_weight_row *a, const vn_weight_row *b,
                            const vn_weight_heads *h, vn_weight_change list[VN_MOST_CHANGES]);
/* Applies a change to one number; not for changes of blocks. */
double vn_weight_change_number(const vn_weight_change *c, double x);
/* Applies a change to n numbers x in float64 and stores them as `to` in dst. room: (n) floats of
 * scratch. */
void   vn_weight_change_row(const vn_weight_change *c, double *x, size_t n, vn_dtype to, void *dst, float *room);

/* ---- the numbers (weights_numbers.c) ------------------------------------------------- */

/* A matrix in up to three parts, one below the other. */
typedef struct vn_weight_numbers {
	const unsigned char *data[3];
	int64_t              rows[3], cols;
	int                  n;
	vn_dtype             dtype; /* of single numbers */
	float               *own;   /* freed by vn_weight_numbers_free: the dequantised numbers */
} vn_weight_numbers;
vn_status vn_weight_numbers_of(const vn_tensor *const *t, int n, vn_weight_numbers *m, vn_error *err);
void      vn_weight_numbers_free(vn_weight_numbers *m);
/* Returns the digest of rows x cols numbers (rows 0: all) in order o, changed by c and stored as
 * `to`. want: the expected numbers, or NULL; at the first row that differs from them the function
 * stops and returns an empty digest. Also empty if memory runs out. */
vn_digest vn_weight_numbers_digest(const vn_weight_numbers *m, const vn_weight_order *o, const vn_weight_change *c,
                                   vn_dtype to, int64_t rows, const vn_tensor *want);

/* How two tensors of one size are related. */
typedef struct vn_weight_fit {
	double correlation, factor; /* candidate = factor * reference, by least squares */
	/* nmse of the difference, and of what remains with the factor, relative to the reference */
	double nmse, residual;
	double differing; /* fraction of the numbers */
	/* difference of two finite numbers; INFINITY if only one is finite */
	double largest;
} vn_weight_fit;
vn_weight_fit vn_weight_fit_of(const vn_tensor *a, const vn_tensor *b);

/* ---- verdicts (weights_tried.c, weights_likely.c) --------------------------------------- */

/* One weight that is being examined, with its surroundings. */
typedef struct vn_weight_trial {
	const vn_weight_side *side[2];
	const vn_weight_row  *row[2];
	const vn_tensor      *numbers[2]; /* NULL: not known */
	vn_weight_name        name;
	vn_weight_heads       heads;
} vn_weight_trial;

/* Fills *d with a finding: vn_weight_is(d, 1, VN_BY_TABLE, VN_FOUND(ZEROS)). It is certain unless it
 * is by statistics. side 0: it is the reference that is changed. Returns true, for use as a return
 * value. */
__attribute__((format(printf, 5, 6))) bool vn_weight_is(vn_weight_difference *d, int side, vn_weight_proof proof,
                                                        vn_weight_finding found, const char *title, ...);

/* Replaces the mistake of a finding that depends on the weights. Returns true. */
bool vn_weight_shows(vn_weight_difference *d, vn_mistake id);

/* Adds a measurement to *d. Returns true. */
bool vn_weight_measures(vn_weight_difference *d, vn_weight_measure what, double x);

/* Each fills *d and returns true if it finds an explanation. */
bool vn_weight_by_table(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_digest(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_numbers(const vn_weight_trial *t, vn_weight_difference *d);
bool vn_weight_by_statistics(const vn_weight_trial *t, vn_weight_difference *d);
/* Does side k of a trial hold these numbers in this order, after this change? rows 0: all. */
bool vn_weight_has_order(const vn_weight_trial *t, int k, const vn_weight_numbers *m, const vn_weight_order *o,
                         const vn_weight_change *c, int64_t rows);
/* Returns the weight of another part in the same layer and trunk as this row; NULL: none. */
const vn_weight_row *vn_weight_beside(const vn_weight_side *side, const vn_weight_row *row, const vn_weight_name *name,
                                      vn_weight_part part);
/* Are q, k and v, or gate and up, the rows of one fused matrix that was transposed as a whole? */
bool                 vn_weight_turned_together(const vn_weight_trial *t, vn_weight_difference *d);
/* Are they such rows in an unknown order, as far as statistics show? */
bool                 vn_weight_mixed(const vn_weight_trial *t, vn_weight_difference *d);
/* Are blocks of its rows or columns, the shards of several ranks, in another order? m: the numbers
 * of side from. */
bool vn_weight_by_shards(const vn_weight_trial *t, int from, const vn_weight_numbers *m, vn_weight_difference *d);
/* For a weight that exists on one side only because the other has it in parts, or as a part of a
 * fused one. *same: the numbers are equal. */
bool vn_weight_fused(const vn_weight_trial *t, vn_weight_difference *d, bool *same);
/* Do both sides have the same numbers up to a conversion of format, even if the digests differ?
 * ALIKE: in two formats, and the numbers that would tell are not at hand; their statistics
 * agree. */
typedef enum vn_weight_fate { VN_WEIGHT_SAME, VN_WEIGHT_ROUNDED, VN_WEIGHT_ALIKE, VN_WEIGHT_DIFFERS } vn_weight_fate;
vn_weight_fate vn_weight_same_numbers(const vn_weight_trial *t);

/* Makes the lines from the differences, which it sorts. all: the names of both sides, which tell
 * whether all layers differ. */
vn_status vn_weights_group(vn_weights *w, const vn_weight_name *all, int n_all, vn_error *err);

#endif
